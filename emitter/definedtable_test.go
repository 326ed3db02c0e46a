package emitter

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-cdc/tidemark/schema"
)

// TestDefinedTypes has definitions that no recorded binlog has: those of other connectors' schema histories, and wrong ones.
func TestDefinedTypes(t *testing.T) {
	text := schema.Modes{Converters: []schema.Converter{{Kind: schema.JDBCSinkDataTypes, String: func(string, string, string) bool { return true }}}}
	const character = `"parameters":{"__debezium.source.column.character_set":`
	for _, c := range []struct {
		def   schema.ColumnDef
		modes schema.Modes
		want  string // a piece of the schema, or of the error
	}{
		{schema.ColumnDef{Type: "INT ZEROFILL"}, schema.Modes{}, `"type":"int64"`},
		{schema.ColumnDef{Type: "SERIAL"}, schema.Modes{UnsignedBigint: schema.UnsignedPrecise}, schema.DecimalName},
		{schema.ColumnDef{Type: "BIGINT SIGNED"}, schema.Modes{UnsignedBigint: schema.UnsignedPrecise}, `"type":"int64"`},
		{schema.ColumnDef{Type: "DECIMAL", Length: 1 << 20, Scale: 2}, schema.Modes{}, "DECIMAL(255,2)"},
		{schema.ColumnDef{Type: "DECIMAL", Length: 5, Scale: 1 << 20}, schema.Modes{}, "DECIMAL(5,255)"},
		{schema.ColumnDef{Type: "BIT", Length: 1<<16 + 1}, schema.Modes{}, "BIT(255)"},
		{schema.ColumnDef{Type: "TIME", Length: 1 << 16}, schema.Modes{}, "255 digits"},
		{schema.ColumnDef{Type: "BIT", Length: 64}, schema.Modes{}, `"length":"64"`},
		{schema.ColumnDef{Type: "VARCHAR", Server: &schema.ServerColumn{Charset: "utf8"}}, text, character + `"utf8mb3"}`},
		{schema.ColumnDef{Type: "VARCHAR", Charset: "utf8", Server: &schema.ServerColumn{Charset: "latin1"}}, text, character + `"utf8"}`},
		{schema.ColumnDef{Type: "ENUM", Labels: []string{"a"}, Server: &schema.ServerColumn{Charset: "latin1"}}, text, character + `"latin1"}`},
		{schema.ColumnDef{Type: "SET", Labels: []string{"a"}, Server: &schema.ServerColumn{Charset: "binary"}}, text, "has no character set"},
		{schema.ColumnDef{Type: "TEXT", Server: &schema.ServerColumn{Charset: "BINARY"}}, schema.Modes{}, `"type":"bytes"`},
		{schema.ColumnDef{Type: "CLOB"}, schema.Modes{}, `"type":"string"`},
		{schema.ColumnDef{Type: "POLYGON"}, schema.Modes{}, "io.debezium.data.geometry.Geometry"},
		{schema.ColumnDef{Type: "POINT"}, schema.Modes{}, "io.debezium.data.geometry.Point"},
		{schema.ColumnDef{Type: ""}, schema.Modes{}, `column "c": it has no type`},
		{schema.ColumnDef{Type: "CIRCLE"}, schema.Modes{}, `column "c": its type CIRCLE is not known`},
	} {
		c.def.Name = "c"
		if c.def.Length == 0 {
			c.def.Length = -1
		}
		em, err := New(Config{Prefix: "p", Modes: c.modes})
		must(t, err)
		var got []byte
		s, err := em.TableSchemas(&schema.Definition{Database: "d", Name: "t", Columns: []schema.ColumnDef{c.def}})
		if err != nil {
			got = []byte(err.Error())
			if !strings.HasPrefix(err.Error(), "table d.t: column ") {
				t.Errorf("error %v", err)
			}
		} else {
			got, err = em.cfg.Value.AppendConnectSchema(nil, s.Value)
			must(t, err)
		}
		if !strings.Contains(string(got), c.want) {
			t.Errorf("%s: got %s, want %s", c.def.Type, got, c.want)
		}
	}
}

// TestDefinedKeys has keys by names in any case, and of columns that are not there.
func TestDefinedKeys(t *testing.T) {
	def := &schema.Definition{Columns: []schema.ColumnDef{{Name: "a", Type: "INT"}, {Name: "B", Type: "INT"}, {Name: "c😀", Type: "INT"}}}
	for _, c := range []struct {
		key  []string
		want []int
	}{
		{nil, nil},
		{[]string{"b", "A"}, []int{1, 0}},
		{[]string{"c😀"}, []int{2}},
		{[]string{"a", "x"}, nil},
	} {
		def.Key = c.key
		table, err := definedTable(def)
		must(t, err)
		if diff := cmp.Diff(c.want, table.Key); diff != "" {
			t.Errorf("%v: %s", c.key, diff)
		}
		if table.Columns[2].Name != "c?" {
			t.Errorf("the server does not call a column %s", table.Columns[2].Name)
		}
	}
}
