package schema

import (
	"bufio"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The parameters of a source type, in their order. The captures types-alt1 and types-alt2 in TestGoldenColumns have them
// for every type.
func TestSourceTypes(t *testing.T) {
	decimal := Column{
		Name: "c", Type: typeNewDecimal, Meta: 10<<8 | 2,
		Def: &ColumnDef{Name: "c", Type: "DECIMAL UNSIGNED", Length: 10, Scale: 2, Comment: "it''s"},
	}
	matches := func(want string) func(database, table, column, typ string) bool {
		return func(database, table, column, typ string) bool { return database+"."+table+"."+column+" "+typ == want }
	}
	all := "scale=2 connect.decimal.precision=10 __debezium.source.column.type=DECIMAL UNSIGNED " +
		"__debezium.source.column.length=10 __debezium.source.column.scale=2 "
	for _, tt := range []struct {
		name string
		m    Modes
		want string
	}{
		{"none", Modes{}, "scale=2 connect.decimal.precision=10"},
		{"by column", Modes{SourceColumn: everyColumn}, all + "__debezium.source.column.name=c"},
		{"with comments", Modes{SourceColumn: everyColumn, Comments: true}, all + "__debezium.source.column.comment=it''s __debezium.source.column.name=c"},
		{"by type", Modes{SourceType: matches("d.t.c DECIMAL UNSIGNED")}, all + "__debezium.source.column.name=c"},
		{"by another type", Modes{SourceType: matches("d.t.c DECIMAL")}, "scale=2 connect.decimal.precision=10"},
		{"of a key column", Modes{SourceColumn: everyColumn}.Key(), "scale=2 connect.decimal.precision=10"},
	} {
		typ, _, err := tt.m.Column(&Table{Database: "d", Name: "t", Columns: []Column{decimal}}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := parameters(typ); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// Without a definition the source type is that of SHOW CREATE TABLE, but for what TABLE_MAP does not have: display
// widths, ZEROFILL, M,D of FLOAT and DOUBLE, the length of VECTOR.
func TestSourceTypeWithoutDefinition(t *testing.T) {
	var other []string
	defs := goldenDefinitions(t, "types")
	lines := bufio.NewScanner(openGzip(t, "columns.jsonl.gz"))
	lines.Buffer(nil, 1<<20)
	columns := 0
	for lines.Scan() {
		var line goldenColumn
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(line.Folders, "types-default") || line.Key {
			continue
		}
		columns++
		def := defs[line.Table]
		d := &def.Columns[def.index(line.Name)]
		c := Column{
			Name: line.Name, Type: line.Type, Meta: line.Meta, Unsigned: line.Unsigned, Collation: line.Collation,
			Labels: line.Labels, Geometry: line.Geometry,
		}
		name, length, scale := c.source()
		if name != d.Type || length != d.Length || scale != d.Scale {
			other = append(other, strings.TrimPrefix(line.Table, "inventory.")+"."+line.Name+" "+d.Type+" "+strconv.Itoa(d.Length))
		}
	}
	want := []string{ // with the type and length that the definition has
		"t_dec.d6_2z DECIMAL UNSIGNED ZEROFILL 6", "t_dec.db20_5 DOUBLE 20", "t_dec.f7_3 FLOAT 7", "t_dec.r10_2 DOUBLE 10",
		"t_def_nn.b TINYINT 1", "t_def_nn.f73 FLOAT 7", "t_def_nn.iz INT UNSIGNED ZEROFILL 5", "t_def_nn.ti1 TINYINT 1",
		"t_int.b TINYINT 1", "t_int.b2 TINYINT 1", "t_int.biz BIGINT UNSIGNED ZEROFILL 20", "t_int.bnn TINYINT 1",
		"t_int.iz INT UNSIGNED ZEROFILL 8", "t_int.ti1 TINYINT 1", "t_int.tiz TINYINT UNSIGNED ZEROFILL 3",
		"t_vec.v VECTOR 3", "t_vec.vd VECTOR 2048", "t_vec.vnn VECTOR 2",
	}
	if diff := cmp.Diff(want, other); diff != "" {
		t.Errorf("columns whose source type TABLE_MAP does not tell (-want +got)\n%s", diff)
	}
	if columns < 300 {
		t.Errorf("only %d columns", columns)
	}
}
