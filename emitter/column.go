package emitter

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"slices"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/schema"
)

// column is a column of a table as records have it.
type column struct {
	name   string // in the table
	field  string // in records
	typ    *schema.Type
	decode schema.Decoder
	// unavailable stands for a cell that is not known ([binlog.Unavailable]); nil if nothing can.
	unavailable *schema.Value
	index       int32 // in the row image
	layout      schema.Layout
}

// newColumn maps the i-th column of a table.
func newColumn(cfg *Config, modes *schema.Modes, t *schema.Table, i int) (column, error) {
	c := &t.Columns[i]
	typ, decode, err := modes.Column(t, i)
	if err != nil {
		return column{}, err
	}
	return column{
		name: c.Name, field: cfg.FieldNames.fieldName(c.Name), index: int32(i),
		typ: cfg.shared.typ(typ), decode: decode, layout: modes.Layout(t, i), unavailable: cfg.shared.value(placeholder(cfg, c, typ)),
	}, nil
}

// valueColumns are the columns of a row in a record's value.
func valueColumns(cfg *Config, t *schema.Table) ([]column, error) {
	columns := make([]column, 0, len(t.Columns))
	for i := range t.Columns {
		if !cfg.includes(t, i) {
			continue
		}
		c, err := newColumn(cfg, &cfg.Modes, t, i)
		if err != nil {
			return nil, err
		}
		columns = append(columns, c)
	}
	return columns, checkFields(cfg, t.Database, t.Name, columns)
}

// includes says whether the i-th column of a table is in the rows of values.
func (cfg *Config) includes(t *schema.Table, i int) bool {
	return cfg.Columns == nil || cfg.Columns(t.Database, t.Name, t.Columns[i].Name)
}

// keyColumns are the columns of the record key, in its order: those of message.key.columns if there are any, else the
// table's own. As in Debezium a key knows no masks and no parameters of source types.
func keyColumns(cfg *Config, t *schema.Table) ([]column, error) {
	var columns []column
	for _, i := range keyIndexes(cfg, t) {
		if i < 0 || i >= len(t.Columns) {
			return nil, fmt.Errorf("the record key names column %d of %d", i, len(t.Columns))
		}
		modes := cfg.Modes.Key()
		if cfg.includes(t, i) { // its bad values are told of and counted as those of the row
			modes.Invalid, modes.InvalidValues = nil, nil
		}
		c, err := newColumn(cfg, &modes, t, i)
		if err != nil {
			return nil, err
		}
		c.unavailable = nil // a record without its key would go to another partition
		columns = append(columns, c)
	}
	return columns, checkFields(cfg, t.Database, t.Name, columns)
}

func keyIndexes(cfg *Config, t *schema.Table) []int {
	var key []int
	for _, takes := range cfg.Keys {
		for i := range t.Columns {
			// Debezium stops at a column that two patterns take. It is meant once.
			if takes(t.Database, t.Name, t.Columns[i].Name) && !slices.Contains(key, i) {
				key = append(key, i)
			}
		}
	}
	if key == nil {
		return t.Key
	}
	return key
}

// checkFields looks for two columns with one name in records.
func checkFields(cfg *Config, database, table string, columns []column) error {
	seen := make(map[string]string, len(columns))
	for i := range columns {
		c := &columns[i]
		if other, twice := seen[c.field]; twice {
			return sameField(cfg, database, table, other, c.name, c.field)
		}
		seen[c.field] = c.name
	}
	return nil
}

func sameField(cfg *Config, database, table, a, b, field string) error {
	fix := fmt.Sprintf("rename one (ALTER TABLE %s.%s RENAME COLUMN %s TO …), or leave it out with column.exclude.list",
		quoteName(database), quoteName(table), quoteName(b))
	if cfg.FieldNames == AvroNames {
		fix = "set field.name.adjustment.mode=avro_unicode, which keeps such names apart, " + fix
	}
	return fmt.Errorf("the columns %s and %s of %s.%s both become the field %q (field.name.adjustment.mode=%s): %s",
		quoteName(a), quoteName(b), database, table, field, cfg.FieldNames, fix)
}

// quoteName is a name as SQL has it.
func quoteName(name string) string {
	return "`" + string(bytes.ReplaceAll([]byte(name), []byte("`"), []byte("``"))) + "`"
}

// CheckColumns says whether a table of these columns can be written: it names two columns that would become one field.
// [Emitter.Begin] finds the same, but only when the first row of the table comes.
func (e *Emitter) CheckColumns(database, table string, names []string) error {
	columns := make([]column, 0, len(names))
	for _, name := range names {
		if e.cfg.Columns == nil || e.cfg.Columns(database, table, name) {
			columns = append(columns, column{name: name, field: e.cfg.FieldNames.fieldName(name)})
		}
	}
	return checkFields(&e.cfg, database, table, columns)
}

// MySQL's type codes of strings, and the collation of those that are no text.
const (
	typeVarchar    = 15
	typeJSON       = 245
	typeTinyBlob   = 249
	typeMediumBlob = 250
	typeLongBlob   = 251
	typeBlob       = 252
	typeVarString  = 253
	typeString     = 254

	binaryCollation = 63
)

// placeholder is what stands for a cell of the column that is not in the row image; Null for types of which nothing can.
func placeholder(cfg *Config, c *schema.Column, t *schema.Type) schema.Value {
	switch c.Type {
	case typeVarchar, typeJSON, typeTinyBlob, typeMediumBlob, typeLongBlob, typeBlob, typeVarString, typeString:
	default:
		return schema.Value{}
	}
	b := []byte(cfg.Placeholder)
	switch {
	case t.Type == "bytes" && t.Name == "":
		return schema.Value{Kind: schema.Bytes, Bytes: b}
	case t.Type != "string":
		return schema.Value{}
	case c.Collation != binaryCollation:
		return schema.Value{Kind: schema.String, Bytes: b}
	}
	switch cfg.Modes.Binary {
	case schema.BinaryBase64:
		b = base64.StdEncoding.AppendEncode(nil, b)
	case schema.BinaryBase64URL:
		b = base64.URLEncoding.AppendEncode(nil, b)
	case schema.BinaryHex:
		b = hex.AppendEncode(nil, b)
	case schema.BinaryBytes:
	}
	return schema.Value{Kind: schema.String, Bytes: b}
}

// sameCells says whether two images have the same values in the columns given. Different bytes may be the same value,
// as a zero date and the epoch in a required column, or what a mask hides.
func (r *run) sameCells(columns []column, a, b [][]byte) (bool, error) {
	for i := range columns {
		c := &columns[i]
		if int(c.index) >= len(a) || int(c.index) >= len(b) {
			return false, fmt.Errorf("column %q: the row image has only %d columns", c.name, min(len(a), len(b)))
		}
		x, y := a[c.index], b[c.index]
		if r.incomplete {
			if unknown := binlog.IsUnavailable(x); unknown != binlog.IsUnavailable(y) {
				return false, nil
			} else if unknown {
				continue
			}
		}
		if (x == nil) == (y == nil) && bytes.Equal(x, y) {
			continue
		}
		if err := c.decode(x, r.scratch, &r.value); err != nil {
			return false, fmt.Errorf("column %q: %w", c.name, err)
		}
		if err := c.decode(y, r.scratch, &r.other); err != nil {
			return false, fmt.Errorf("column %q: %w", c.name, err)
		}
		if !sameValue(&r.value, &r.other) {
			return false, nil
		}
	}
	return true, nil
}

// sameValue compares two values of one column as Java's equals does: 0.0 is not -0.0.
func sameValue(a, b *schema.Value) bool {
	if a.Kind != b.Kind {
		return false
	}
	switch a.Kind {
	case schema.Null:
		return true
	case schema.Bool, schema.Int:
		return a.Int == b.Int
	case schema.Float, schema.Double:
		return math.Float64bits(a.Float) == math.Float64bits(b.Float)
	case schema.Point, schema.Geometry:
		return a.Int == b.Int && bytes.Equal(a.Bytes, b.Bytes)
	}
	return bytes.Equal(a.Bytes, b.Bytes)
}
