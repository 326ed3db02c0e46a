package binlog

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/schema"
)

// version is one version of a table as TABLE_MAPs describe it, compiled.
type version struct {
	raw      []byte // the TABLE_MAP's body behind table id and flags; equal bytes mean the same version
	names    string // what it begins with: `length db 0 length table 0`
	database string
	name     string
	captured bool
	sequence bool               // it would be captured if it were a table
	def      *schema.Definition // what table was attached to
	table    *schema.Table      // nil when not captured
	cells    []cell
	err      error // why rows of it cannot be read; reported when there are any
	shape    int   // how many bytes of raw say how cells are cut: all before the optional metadata
	named    bool  // the TABLE_MAP itself names the columns
	altered  bool  // a statement has changed the table since
	checked  int   // definitions.changes when def was last seen to hold

	fillers  []filler // by column: the defaults, as far as an insert has needed them
	defaults [][]byte // their cells
}

// fullName is the table's name in messages.
func (v *version) fullName() string { return v.database + "." + v.name }

// tables keeps the newest version of every table, and the table ids of the open statement.
type tables struct {
	captured func(database, table string) bool
	defs     *definitions
	log      *zap.Logger
	maria    bool // the binlog is a MariaDB's
	// ahead says that definitions were read from the server at a later position: see confirmed. Nil: never.
	ahead func() bool

	// confirmed are the tables whose CREATE TABLE has come by while the definitions were ahead: what is known of them is
	// what they are here. What is known of others may hold only later.
	confirmed map[tableName]bool

	unnamed bool // the version of a captured table that was made last has no column names

	alike  alike
	newest map[string]*version // by the bytes `length db 0 length table 0` of the TABLE_MAP
	recent [64]*version        // some of newest, by the low bits of the table id that they had last
	open   []openTable         // ids mapped since the last end of a statement: few, so a list
}

type openTable struct {
	id uint64
	v  *version
}

// forget drops the ids of the open statement.
func (t *tables) forget() { t.open = t.open[:0] }

// lookup finds the version that a table id stands for in the open statement.
func (t *tables) lookup(id uint64) *version {
	for i := len(t.open) - 1; i >= 0; i-- {
		if t.open[i].id == id {
			return t.open[i].v
		}
	}
	return nil
}

// add takes in the TABLE_MAP at a position: its table id, and the body behind id and flags. It asks Definitions when the version is
// new, and errs only when that does or when the table cannot even be named.
func (t *tables) add(ctx context.Context, id uint64, body []byte, file string, pos int64) error {
	recent := &t.recent[id%uint64(len(t.recent))]
	if v := *recent; v != nil && bytes.Equal(v.raw, body) && t.holds(v) {
		t.open = append(t.open, openTable{id, v})
		return nil
	}
	names, err := namesLength(body)
	if err != nil {
		return err
	}
	prev := t.newest[string(body[:names])]
	if prev != nil && bytes.Equal(prev.raw, body) && t.holds(prev) {
		*recent = prev
		t.open = append(t.open, openTable{id, prev})
		return nil
	}
	v, err := t.version(ctx, bytes.Clone(body), prev, at(file, pos))
	if err != nil {
		return err
	}
	if t.newest == nil {
		t.newest = make(map[string]*version)
	}
	t.newest[v.names] = v
	if prev == nil || prev.table != v.table {
		t.alike.add(v, t.newest)
	}
	clear(t.recent[:]) // one of them may be prev
	t.open = append(t.open, openTable{id, v})
	return nil
}

// holds says whether the newest version of a table is that of another TABLE_MAP of the same bytes: the catalog has not come
// to another definition since, and no statement has changed the table whose columns nothing but the last TABLE_MAP names.
func (t *tables) holds(v *version) bool {
	if v.captured && v.checked != t.defs.changes {
		if t.defs.at(v.database, v.name) != v.def {
			return false
		}
		v.checked = t.defs.changes
	}
	return v.named || !v.altered
}

// anyOf says whether a captured table of a database is known: one that has come by, or that has a definition.
func (t *tables) anyOf(database string) bool {
	for _, v := range t.newest {
		if v.captured && strings.EqualFold(v.database, database) {
			return true
		}
	}
	for _, name := range t.defs.tables(database) {
		if t.captured(database, name) {
			return true
		}
	}
	return false
}

// version makes a new version of a table.
func (t *tables) version(ctx context.Context, raw []byte, prev *version, where string) (*version, error) {
	v := &version{raw: raw, checked: -1}
	database, name, rest, err := splitNames(raw)
	if err != nil {
		return nil, err
	}
	v.names = string(raw[:len(raw)-len(rest)])
	v.database, v.name = v.names[1:1+len(database)], v.names[len(v.names)-1-len(name):len(v.names)-1]
	if prev != nil {
		v.captured = prev.captured || prev.sequence
	} else {
		v.captured = t.captured(v.database, v.name)
	}
	if !v.captured {
		return v, nil
	}
	var has metadata
	if v.table, has, v.shape, v.err = parseTableMap(v.database, v.name, rest); v.err != nil {
		return v, nil
	}
	v.shape += len(raw) - len(rest)
	v.named = has.has(metaColumnName)
	t.unnamed = !v.named
	if v.cells, v.err = compileCells(v.table); v.err != nil {
		return v, nil
	}
	var before *schema.Table
	if prev != nil && prev.err == nil {
		before = prev.table
	}
	def := t.defs.at(v.database, v.name)
	if !v.named && t.ahead != nil && t.ahead() && !t.confirmed[t.defs.key(v.database, v.name)] {
		def = nil // nothing in the binlog would show that it does not hold yet
	}
	v.def = def
	if t.maria && isSequence(v.table, v.named, def) {
		t.log.Info("a sequence is not captured", zap.String("sequence", v.database+"."+v.name), zap.String("at", where))
		v.captured, v.sequence = false, true
		return v, nil
	}
	if !v.named {
		if def == nil {
			if def, v.err = t.defs.recover(ctx, v.database, v.name); v.err != nil {
				return v, nil
			}
			v.def = def
		}
		if v.err = v.complete(has, def, prev); v.err == nil {
			v.err = oldFractions(v.table)
		}
		return v, nil
	}
	if def == nil || !sameNames(v.table, def) {
		if def, err = t.defs.refresh(ctx, v.database, v.name); err != nil {
			return nil, fmt.Errorf("table %s.%s: its definition could not be read: %w", v.database, v.name, err)
		}
		if def != nil && sameNames(v.table, def) {
			t.defs.adopt(v.database, v.name, def)
			v.def = def
		}
	}
	if def == nil && !t.defs.known() {
		schema.Attach(v.table, nil, nil) // what it warns of is no surprise
		return v, nil
	}
	for _, w := range schema.Attach(v.table, def, before) {
		t.log.Warn("table definition", zap.String("table", v.database+"."+v.name), zap.String("at", where), zap.String("what", w))
	}
	v.err = oldFractions(v.table)
	return v, nil
}

// isSequence tells MariaDB's sequences from tables: in the binlog they are tables of one row, whose columns are always the
// same. Without names they are told by their types, and by having no definition.
func isSequence(t *schema.Table, named bool, def *schema.Definition) bool {
	columns := [...]string{"next_not_cached_value", "minimum_value", "maximum_value", "start_value", "increment", "cache_size", "cycle_option", "cycle_count"}
	if len(t.Columns) != len(columns) || !named && def != nil {
		return false
	}
	for i := range t.Columns {
		c := &t.Columns[i]
		if typ := map[bool]uint8{true: typeTiny, false: typeLongLong}[columns[i] == "cycle_option"]; c.Type != typ || c.Nullable || named && c.Name != columns[i] {
			return false
		}
	}
	return true
}

// oldFractions refuses columns whose cells TABLE_MAP does not say how to cut: those of MariaDB 5.3's form with a fraction.
func oldFractions(t *schema.Table) error {
	for i := range t.Columns {
		switch c := &t.Columns[i]; c.Type {
		case typeTime, typeDatetime, typeTimestamp:
			if c.Def != nil && c.Def.Length > 0 {
				return fmt.Errorf("column %s has %d digits after the second in the form of MariaDB 5.3 (SHOW CREATE TABLE marks it with mariadb-5.3), of which the binlog does not tell the size: "+
					"SET GLOBAL mysql56_temporal_format=ON, ALTER TABLE %s FORCE, and start behind that %s", c.Name, c.Def.Length, t.Name, howToStart)
			}
		}
	}
	return nil
}

// complete gives a version names whose TABLE_MAP has none: by the definition at this position, or, when there is none, as
// the last TABLE_MAP had them that did, if nothing has changed the table since.
func (v *version) complete(has metadata, def *schema.Definition, prev *version) error {
	if def == nil && prev != nil && prev.err == nil && prev.table != nil && !prev.altered && bytes.Equal(prev.raw[:prev.shape], v.raw[:v.shape]) {
		v.table = prev.table
		return nil
	}
	if err := complete(v.table, has, def); err != nil {
		return err
	}
	key := v.table.Key
	schema.Attach(v.table, def, nil) // it fits, and only the binlog's key could say more
	v.table.Key, v.table.BinlogKey = key, key
	return nil
}

// changed tells that a statement has changed a table in a way that nobody can tell: what is known of its columns no longer
// holds for a TABLE_MAP that does not name them.
func (t *tables) changed(database, table string) {
	key := t.defs.key(database, table)
	for _, v := range t.newest {
		if t.defs.key(v.database, v.name) == key {
			v.altered = true
		}
	}
}

// dropped forgets a table that is gone.
func (t *tables) dropped(name schema.TableName, key tableName) {
	for _, n := range [2]tableName{{name.Database, name.Table}, key} {
		id := append(append([]byte{byte(len(n.database))}, n.database...), 0, byte(len(n.table)))
		delete(t.newest, string(append(append(id, n.table...), 0)))
	}
	clear(t.recent[:])
}

// sameNames says whether the definition has the table's columns in their order.
func sameNames(t *schema.Table, def *schema.Definition) bool {
	if len(def.Columns) != len(t.Columns) {
		return false
	}
	for i := range def.Columns {
		if def.Columns[i].Name != t.Columns[i].Name {
			return false
		}
	}
	return true
}
