package binlog

import (
	"slices"
	"sync/atomic"

	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// storedTables are the versions of what a statement has changed, for the schema store.
func (a *assembler) storedTables(touched []schema.TableName) []schema.StoredTable {
	var stored []schema.StoredTable
	for i, name := range touched {
		if slices.Contains(touched[:i], name) {
			continue
		}
		v := a.defs.catalog.Version(name)
		v.File, v.Pos = a.file, a.next
		if a.gtids {
			set := a.set
			if a.pending {
				set = set.Add(a.gtid)
			}
			v.GTIDs = set.String()
		}
		stored = append(stored, a.versions.add(name, v))
	}
	return stored
}

// versions keeps the versions of tables as a schema store has them. What they begin with is the catalog before the first
// statement.
type versions struct {
	tables map[schema.TableName]*schema.StoredTable
	saved  atomic.Pointer[offset.Offset] // stored last, as far as it was told
}

func (v *versions) begin(catalog *schema.Catalog) {
	if v.tables != nil {
		return
	}
	v.tables = make(map[schema.TableName]*schema.StoredTable)
	for _, t := range catalog.All() {
		v.tables[schema.TableName{Database: t.Database, Table: t.Table}] = &t
	}
}

// first is the definition of a table that no statement has changed yet.
func (v *versions) first(name schema.TableName) *schema.Definition {
	if t := v.tables[name]; t != nil && len(t.Versions) == 1 {
		return t.Versions[0].Definition
	}
	return nil
}

// add adds a version. What it returns is the caller's.
func (v *versions) add(name schema.TableName, version schema.StoredVersion) schema.StoredTable {
	t := v.tables[name]
	if t == nil {
		t = &schema.StoredTable{Database: name.Database, Table: name.Table}
		v.tables[name] = t
	}
	saved := func(*schema.StoredVersion) bool { return false }
	if o := v.saved.Load(); o != nil {
		saved = Reached(*o)
	}
	t.Add(version, saved)
	return *t
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
