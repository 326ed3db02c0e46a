package binlog

import (
	"strings"
	"sync/atomic"

	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// mostStatement is how many bytes of a statement the schema store keeps.
const mostStatement = 400

// shortened is the beginning of a statement, in whole characters.
func shortened(sql string) string {
	if len(sql) <= mostStatement {
		return sql
	}
	return strings.ToValidUTF8(sql[:mostStatement], "") + "…"
}

// storedTables are the versions of what a statement has changed, for the schema store.
func (a *assembler) storedTables(touched []schema.TableName, sql string) []schema.StoredTable {
	if len(touched) == 0 {
		return nil
	}
	stored := a.versions.forget()
	seen := make(map[tableName]bool, len(touched))
	for _, name := range touched {
		key := a.defs.key(name.Database, name.Table)
		if seen[key] {
			continue
		}
		seen[key] = true
		v := a.defs.catalog.Version(name)
		v.File, v.Pos, v.Statement = a.file, a.next, shortened(sql)
		if a.gtids {
			set := a.set
			if a.sources != nil { // of those that do not count another server may know less
				set = set.Filter(a.sources)
			}
			if a.pending {
				set = set.Add(a.gtid)
			}
			v.GTIDs = set.String()
		}
		stored = append(stored, a.versions.add(key, name, v))
		_, lost := a.defs.lost[key]
		switch {
		case v.Definition != nil:
			delete(a.defs.lost, key)
		case name.Table != "":
			a.versions.dropped = append(a.versions.dropped, key)
			if !lost { // of a lost one the next version may still need what it was
				a.tables.dropped(name, key)
			}
		}
	}
	return stored
}

// versions keeps the versions of tables as a schema store has them. What they begin with is the catalog before the first
// statement.
type versions struct {
	tables  map[tableName]*schema.StoredTable // by definitions.key, under the name that they had first
	dropped []tableName                       // that may be forgotten when the stored offset lies behind that, in order
	saved   atomic.Pointer[offset.Offset]     // stored last, as far as it was told
}

func (v *versions) begin(d *definitions) {
	if v.tables != nil {
		return
	}
	v.tables = make(map[tableName]*schema.StoredTable)
	for _, t := range d.catalog.All() {
		v.tables[d.key(t.Database, t.Table)] = &t
	}
}

// first is the definition of a table that no statement has changed yet.
func (v *versions) first(key tableName) *schema.Definition {
	if t := v.tables[key]; t != nil && len(t.Versions) == 1 {
		return t.Versions[0].Definition
	}
	return nil
}

// add adds a version. What it returns is the caller's.
func (v *versions) add(key tableName, name schema.TableName, version schema.StoredVersion) schema.StoredTable {
	t := v.tables[key]
	if t == nil {
		t = &schema.StoredTable{Database: name.Database, Table: name.Table}
		v.tables[key] = t
	}
	t.Add(version, v.reached())
	return *t
}

// reached says of a version whether it holds at the stored offset.
func (v *versions) reached() func(*schema.StoredVersion) bool {
	if o := v.saved.Load(); o != nil {
		return Reached(*o)
	}
	return func(*schema.StoredVersion) bool { return false }
}

// forget takes out the tables that are gone for every restart to come: the store is told that they have no versions.
func (v *versions) forget() (gone []schema.StoredTable) {
	reached := v.reached()
	for ; len(v.dropped) > 0; v.dropped = v.dropped[1:] {
		t := v.tables[v.dropped[0]]
		if t == nil {
			continue
		}
		last := &t.Versions[len(t.Versions)-1]
		if last.Definition != nil { // it was made again
			continue
		}
		if !reached(last) {
			break
		}
		gone = append(gone, schema.StoredTable{Database: t.Database, Table: t.Table})
		delete(v.tables, v.dropped[0])
	}
	return gone
}

// Stored tells the reader that an offset was saved: versions of tables that hold only before it are left out of what
// [SchemaChange] has for the schema store. It is safe to call while another goroutine reads.
func (r *Reader) Stored(o offset.Offset) { r.asm.versions.saved.Store(&o) }

// Reached says of versions in a schema store whether they hold at an offset (I10, I11): what [schema.Catalog.Load] asks
// when a stream begins there.
func Reached(o offset.Offset) func(v *schema.StoredVersion) bool {
	return func(v *schema.StoredVersion) bool {
		if v.File == "" {
			return true
		}
		p := offset.Position{File: v.File, Pos: v.Pos}
		if v.GTIDs != "" {
			if set, err := offset.ParseGTIDSet(v.GTIDs); err == nil {
				p.GTIDs = set
			}
		}
		covers, known := o.Covers(p)
		return covers && known
	}
}
