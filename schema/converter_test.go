package schema

import (
	"math"
	"strings"
	"testing"
)

func TestTinyIntOneToBoolean(t *testing.T) {
	one, off := "1", "0"
	tinyint := func(typ string, length int, dflt *string) Column {
		return Column{
			Name: "c", Type: typeTiny, Unsigned: strings.Contains(typ, "UNSIGNED"), Nullable: true,
			Def: &ColumnDef{Type: typ, Length: length, Scale: -1, Default: dflt},
		}
	}
	only := func(name string) func(_, _, _ string) bool {
		return func(database, table, column string) bool { return database+"."+table+"."+column == name }
	}
	for _, tt := range []struct {
		name string
		conv Converter
		c    Column
		cell []byte
		typ  string
		want string
		dflt string
	}{
		{"1", Converter{Length: true}, tinyint("TINYINT", 1, &one), []byte{1}, "boolean", "true", "true"},
		{"0", Converter{Length: true}, tinyint("TINYINT", 1, &off), []byte{0}, "boolean", "false", "false"},
		{"5", Converter{Length: true}, tinyint("TINYINT", 1, nil), []byte{5}, "boolean", "true", ""},
		{"-1 is not above zero", Converter{Length: true}, tinyint("TINYINT", 1, nil), []byte{0xff}, "boolean", "false", ""},
		{"200 is", Converter{Length: true}, tinyint("TINYINT UNSIGNED", 1, nil), []byte{200}, "boolean", "true", ""},
		{"NULL", Converter{Length: true}, tinyint("TINYINT", 1, nil), nil, "boolean", "null", ""},
		{"TINYINT(4)", Converter{Length: true}, tinyint("TINYINT", 4, nil), []byte{5}, "int16", "5", ""},
		{"no length", Converter{Length: true}, tinyint("TINYINT", -1, nil), []byte{5}, "int16", "5", ""},
		{"any length", Converter{}, tinyint("TINYINT", -1, nil), []byte{5}, "boolean", "true", ""},
		{"ZEROFILL is not of the family", Converter{}, tinyint("TINYINT UNSIGNED ZEROFILL", 1, nil), []byte{5}, "int16", "5", ""},
		{"BOOL is one already", Converter{}, tinyint("BOOL", -1, nil), []byte{0xff}, "boolean", "true", ""},
		{"selected", Converter{Length: true, Match: only("d.t.c")}, tinyint("TINYINT", 1, nil), []byte{5}, "boolean", "true", ""},
		{"not selected", Converter{Length: true, Match: only("d.t.x")}, tinyint("TINYINT", 1, nil), []byte{5}, "int16", "5", ""},
		{"SMALLINT", Converter{}, Column{Type: typeShort, Def: &ColumnDef{Type: "SMALLINT", Length: 1}}, le(5, 2), "int16", "5", ""},
	} {
		tt.conv.Kind = TinyIntOneToBoolean
		typ, v, err := decodeMode(t, Modes{Converters: []Converter{tt.conv}}, tt.c, tt.cell)
		dflt := ""
		if typ.Default != nil {
			dflt = string(valueJSON(*typ.Default))
		}
		if got := string(valueJSON(v)); err != nil || got != tt.want || typ.Type != tt.typ || dflt != tt.dflt {
			t.Errorf("%s: %s %s, default %q, %v, want %s %s, default %q", tt.name, typ.Type, got, dflt, err, tt.typ, tt.want, tt.dflt)
		}
	}
}

func TestJDBCSinkDataTypes(t *testing.T) {
	two, half := "2", "0.5"
	boolean := Converter{Kind: JDBCSinkDataTypes, Boolean: everyColumn}
	double := Converter{Kind: JDBCSinkDataTypes, Real: everyColumn}
	single := Converter{Kind: JDBCSinkDataTypes, Real: everyColumn, RealAsFloat: true}
	text := Converter{Kind: JDBCSinkDataTypes, String: everyColumn}
	def := func(typ string) *ColumnDef { return &ColumnDef{Type: typ, Length: -1, Scale: -1} }
	withDefault := func(d *ColumnDef, text *string) *ColumnDef { d.Default = text; return d }
	latin1 := &ColumnDef{Type: "VARCHAR", Length: 20, Scale: -1, Charset: "latin1"}
	float := func(f float64) []byte { return le(int64(math.Float64bits(f)), 8) }
	for _, tt := range []struct {
		name   string
		conv   Converter
		c      Column
		cell   []byte
		want   string
		schema string
	}{
		{"BOOL", boolean, Column{Type: typeTiny, Def: def("BOOL")}, []byte{1}, "1", `{"type":"int16","optional":false,"field":"c"}`},
		{"INT with a default", boolean, Column{Type: typeLong, Def: withDefault(def("INT"), &two)}, le(0, 4), "0", `{"type":"int16","optional":false,"default":1,"field":"c"}`},
		{"INT -5", boolean, Column{Type: typeLong, Def: def("INT")}, le(-5, 4), "0", ""},
		{"BIT(1)", boolean, Column{Type: typeBit, Meta: 1, Def: def("BIT")}, []byte{1}, "1", ""},
		{"BIGINT beyond 32 bits", boolean, Column{Type: typeLonglong, Def: def("BIGINT")}, le(1<<32, 8), "1", ""},
		{"DECIMAL 0.50", boolean, Column{Type: typeNewDecimal, Meta: 3<<8 | 2, Def: def("DECIMAL")}, decimalCell("050", 2, false), "0", ""},
		{"NULL", boolean, Column{Type: typeLong, Nullable: true, Def: def("INT")}, nil, "null", `{"type":"int16","optional":true,"field":"c"}`},

		{"REAL", double, Column{Type: typeDouble, Def: withDefault(def("REAL"), &half)}, float(12345678.9), "1.23456789e+07", `{"type":"double","optional":false,"default":5e-01,"field":"c"}`},
		{"REAL as float", single, Column{Type: typeDouble, Def: withDefault(def("REAL"), &half)}, float(12345678.9), "1.2345679e+07", `{"type":"float","optional":false,"default":5e-01,"field":"c"}`},
		{"FLOAT", double, Column{Type: typeFloat, Def: def("FLOAT")}, le(int64(math.Float32bits(0.5)), 4), "5e-01", ""},
		{"DECIMAL", double, Column{Type: typeNewDecimal, Meta: 3<<8 | 2, Def: def("DECIMAL")}, decimalCell("125", 2, true), "-1.25e+00", ""},
		{"BIGINT UNSIGNED", double, Column{Type: typeLonglong, Unsigned: true, Def: def("BIGINT UNSIGNED")}, le(-1, 8), "1.8446744073709552e+19", ""},
		{"BIT(1) as a number", double, Column{Type: typeBit, Meta: 1, Def: def("BIT")}, []byte{1}, "1e+00", ""},

		{"VARCHAR", text, Column{Type: typeVarchar, Meta: 20, Collation: 8, Def: latin1}, []byte("\xe9"), `"é"`, `{"type":"string","optional":false,"parameters":{"__debezium.source.column.character_set":"latin1"},"field":"c"}`},
		{"no definition", text, Column{Type: typeVarchar, Meta: 20, Collation: 255}, []byte("é"), `"é"`, `{"type":"string","optional":false,"parameters":{"__debezium.source.column.character_set":"utf8mb4"},"field":"c"}`},
		{"ENUM", text, Column{Type: typeEnum, Collation: 8, Labels: []string{"a", "b"}}, []byte{2}, `"b"`, ""},
	} {
		typ, v, err := decodeMode(t, Modes{Converters: []Converter{tt.conv}}, tt.c, tt.cell)
		if got := string(valueJSON(v)); err != nil || got != tt.want {
			t.Errorf("%s: %s, %v, want %s", tt.name, got, err, tt.want)
		}
		if got := schemaJSON(typ, "c", false); tt.schema != "" && got != tt.schema {
			t.Errorf("%s: schema %s, want %s", tt.name, got, tt.schema)
		}
	}

	// What it cannot convert Debezium writes as 0 or "".
	for _, tt := range []struct {
		conv Converter
		c    Column
		want string
	}{
		{boolean, Column{Name: "c", Type: typeVarchar, Meta: 20, Collation: 255}, "column d.t.c: a converter takes it for a number, but VARCHAR is no number"},
		{double, Column{Name: "c", Type: typeDate}, "DATE is no number; narrow the converter's selector"},
		{boolean, Column{Name: "c", Type: typeBit, Meta: 1 << 8}, "BIT is no number"},
		{text, Column{Name: "c", Type: typeLong}, "column d.t.c: JdbcSinkDataTypesConverter's selector.string takes it, but INT has no character set"},
		{text, Column{Name: "c", Type: typeBlob, Meta: 2, Collation: 63}, "BLOB has no character set"},
	} {
		_, _, err := Modes{Converters: []Converter{tt.conv}}.Column(&Table{Database: "d", Name: "t", Columns: []Column{tt.c}}, 0)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want %s", err, tt.want)
		}
	}

	// Cells that are too short are errors here, too.
	for _, c := range []Column{
		{Type: typeLong},
		{Type: typeLonglong, Unsigned: true},
		{Type: typeFloat},
		{Type: typeDouble},
		{Type: typeBit, Meta: 1},
		{Type: typeNewDecimal, Meta: 10 << 8},
	} {
		if _, v, err := decodeMode(t, Modes{Converters: []Converter{double}}, c, []byte{1, 2}); err == nil {
			t.Errorf("%+v of two bytes is %+v", c, v)
		}
	}
}

// The first converter that takes a column maps it.
func TestFirstConverter(t *testing.T) {
	never := func(_, _, _ string) bool { return false }
	m := Modes{Converters: []Converter{
		{Kind: JDBCSinkDataTypes, Boolean: never},
		{Kind: TinyIntOneToBoolean, Match: never},
		{Kind: JDBCSinkDataTypes, Boolean: everyColumn},
		{Kind: TinyIntOneToBoolean},
	}}
	typ, _, err := m.Column(&Table{Columns: []Column{{Type: typeTiny}}}, 0)
	if err != nil || typ.Type != "int16" {
		t.Errorf("%+v, %v", typ, err)
	}
	m.Converters = m.Converters[2:]
	m.Converters[0], m.Converters[1] = m.Converters[1], m.Converters[0]
	if typ, _, err = m.Column(&Table{Columns: []Column{{Type: typeTiny}}}, 0); err != nil || typ.Type != "boolean" {
		t.Errorf("%+v, %v", typ, err)
	}
}
