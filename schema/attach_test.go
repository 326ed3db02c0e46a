package schema

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func tableOf(columns ...Column) *Table {
	return &Table{Database: "d", Name: "t", Columns: columns}
}

func defaults(t *Table) string {
	var all []string
	for _, c := range t.Columns {
		switch {
		case c.Def == nil:
			all = append(all, "?")
		case c.Def.Default == nil:
			all = append(all, c.Def.Type)
		default:
			all = append(all, c.Def.Type+"="+*c.Def.Default)
		}
	}
	return strings.Join(all, " ")
}

func TestAttach(t *testing.T) {
	def := func(name, typ string, length int, value string) ColumnDef {
		d := ColumnDef{Name: name, Type: typ, Length: length, Scale: -1}
		if value != "" {
			d.Default = &value
		}
		return d
	}
	id := Column{Name: "id", Type: typeLong}
	flag := Column{Name: "flag", Type: typeTiny, Nullable: true}
	text := Column{Name: "text", Type: typeVarchar, Collation: 255, Nullable: true}
	idDef, flagDef, textDef := def("id", "INT", -1, ""), def("flag", "TINYINT", 1, "1"), def("text", "VARCHAR", 9, "x")
	boolDef := def("flag", "BOOL", -1, "TRUE")

	first := tableOf(id, flag)
	first.Columns[0].Def, first.Columns[1].Def, first.Key = &idDef, &boolDef, []int{0}

	for _, tt := range []struct {
		name     string
		table    *Table
		def      *Definition
		prev     *Table
		want     string
		key      []int
		warnings []string
	}{
		{
			name: "all of it", table: tableOf(id, flag, text),
			def:  &Definition{Columns: []ColumnDef{idDef, flagDef, textDef}, Key: []string{"id"}},
			want: "INT TINYINT=1 VARCHAR=x", key: []int{0},
		},
		{
			name: "BOOL stays BOOL", table: tableOf(id, flag, text), prev: first,
			def:  &Definition{Columns: []ColumnDef{idDef, flagDef, textDef}, Key: []string{"id"}},
			want: "INT BOOL=1 VARCHAR=x", key: []int{0},
		},
		{
			name: "a column that the definition does not have yet", table: tableOf(id, flag, text), prev: first,
			def:  &Definition{Columns: []ColumnDef{idDef, flagDef}, Key: []string{"id"}},
			want: "INT BOOL=TRUE ?", key: []int{0},
			warnings: []string{"no definition of table d.t fits its columns in the binlog: the schema has no defaults for text"},
		},
		{
			name: "another type", table: tableOf(id, Column{Name: "flag", Type: typeLong}), prev: first,
			def:  &Definition{Columns: []ColumnDef{idDef, flagDef}, Key: []string{"id"}},
			want: "INT ?", key: []int{0},
			warnings: []string{"no definition of table d.t fits its columns in the binlog: the schema has no defaults for flag"},
		},
		{
			name: "nothing known", table: tableOf(id),
			want: "?",
			warnings: []string{
				"no definition of table d.t fits its columns in the binlog: the schema has no defaults for id",
				"table d.t has no primary key, and its unique keys are not known: its records have no key",
			},
		},
		{
			name: "the key's column is gone", table: tableOf(flag), prev: first,
			want:     "BOOL=TRUE",
			warnings: []string{"table d.t has no primary key and no longer the columns (id) that were its key: its records have none"},
		},
		{
			name: "a key over a nullable column", table: tableOf(text),
			def:  &Definition{Columns: []ColumnDef{textDef}, Key: []string{"text"}},
			want: "VARCHAR=x",
		},
	} {
		warnings := Attach(tt.table, tt.def, tt.prev)
		if diff := cmp.Diff(tt.warnings, warnings); diff != "" {
			t.Errorf("%s: warnings (-want +got)\n%s", tt.name, diff)
		}
		if got := defaults(tt.table); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		if diff := cmp.Diff(tt.key, tt.table.Key); diff != "" {
			t.Errorf("%s: key (-want +got)\n%s", tt.name, diff)
		}
	}
}

// The primary key of TABLE_MAP counts, whatever a definition says.
func TestAttachKeepsPrimaryKey(t *testing.T) {
	table := tableOf(Column{Name: "a", Type: typeLong}, Column{Name: "b", Type: typeLong})
	table.Key = []int{1}
	Attach(table, &Definition{Columns: []ColumnDef{{Name: "a", Type: "INT"}, {Name: "b", Type: "INT"}}, Key: []string{"a"}}, nil)
	if diff := cmp.Diff([]int{1}, table.Key); diff != "" {
		t.Error(diff)
	}
}
