package schema

import (
	"slices"
	"strings"
	"testing"
)

func TestColumns(t *testing.T) {
	text := func(s string) Value { return Value{Kind: String, Bytes: []byte(s)} }
	bytes := func(s string) Value { return Value{Kind: Bytes, Bytes: []byte(s)} }
	enum := Column{Type: typeEnum, Meta: typeEnum<<8 | 1, Collation: 45, Labels: []string{"a,b", `c\d`, ""}}
	set := Column{Type: typeSet, Meta: typeSet<<8 | 1, Collation: 45, Labels: []string{"r", "w", "x"}}
	nullable := func(c Column) Column { c.Nullable = true; return c }
	for _, tt := range []struct {
		name string
		c    Column
		cell []byte
		want Value
	}{
		{"BINARY padded", Column{Type: typeString, Meta: typeString<<8 | 5, Collation: 63}, []byte("ab"), bytes("ab\x00\x00\x00")},
		{"BINARY empty", Column{Type: typeString, Meta: typeString<<8 | 2, Collation: 63}, []byte{}, bytes("\x00\x00")},
		{"VARBINARY", Column{Type: typeVarchar, Meta: 5, Collation: 63}, []byte("ab"), bytes("ab")},
		{"CHAR", Column{Type: typeString, Meta: typeString<<8 | 20, Collation: 45}, []byte("ab"), text("ab")},
		{"latin1", Column{Type: typeVarchar, Meta: 5, Collation: 8}, []byte("\x80\xe9\x81"), text("€é\ufffd")},
		{"ascii", Column{Type: typeVarchar, Meta: 5, Collation: 11}, []byte("a\x80"), text("a\ufffd")},
		{"utf8mb4 malformed", Column{Type: typeBlob, Meta: 2, Collation: 255}, []byte("a\xe2\x82b"), text("a\ufffdb")},
		{"charset of the definition", Column{Type: typeBlob, Meta: 2, Def: &ColumnDef{Type: "TEXT", Charset: "latin1"}}, []byte("\xe9"), text("é")},
		{"ENUM", enum, []byte{1}, text("a,b")},
		{"ENUM two bytes", enum, []byte{2, 0}, text(`c\d`)},
		{"ENUM invalid", enum, []byte{0}, text("")},
		{"ENUM beyond", enum, []byte{9}, text("")},
		{"ENUM beyond, nullable", nullable(enum), []byte{9}, Value{}},
		{"SET", set, []byte{5}, text("r,x")},
		{"SET one", set, []byte{2}, text("w")},
		{"SET none", set, []byte{0}, text("")},
		{"BIT(1)", Column{Type: typeBit, Meta: 1}, []byte{1}, Value{Kind: Bool, Int: 1}},
		{"BIT(12)", Column{Type: typeBit, Meta: 1<<8 | 4}, []byte{8, 1}, bytes("\x01\x08")},
		{"BOOL", Column{Type: typeTiny, Def: &ColumnDef{Type: "BOOL"}}, []byte{0xff}, Value{Kind: Bool, Int: 1}},
		{"TINYINT", Column{Type: typeTiny}, []byte{0xff}, Value{Kind: Int, Int: -1}},
		{"TINYINT UNSIGNED", Column{Type: typeTiny, Unsigned: true}, []byte{0xff}, Value{Kind: Int, Int: 255}},
		{"MEDIUMINT", Column{Type: typeInt24}, []byte{0, 0, 0x80}, Value{Kind: Int, Int: -8388608}},
		{"BIGINT UNSIGNED", Column{Type: typeLonglong, Unsigned: true}, le(-1, 8), Value{Kind: Int, Int: -1}},
		{"JSON without bytes", Column{Type: typeJSON, Meta: 4}, []byte{}, text("{}")},
		{"JSON without bytes, nullable", Column{Type: typeJSON, Meta: 4, Nullable: true}, []byte{}, Value{}},
		{"NULL in a NOT NULL column", Column{Type: typeTimestamp2}, nil, text(epochText)},
		{"YEAR 0", Column{Type: typeYear}, []byte{0}, Value{Kind: Int}},
		{"FLOAT", Column{Type: typeFloat, Def: &ColumnDef{Type: "FLOAT", Length: 24, Scale: -1}}, le(0x3f000000, 4), Value{Kind: Float, Float: 0.5}},
		{"FLOAT4", Column{Type: typeFloat, Def: &ColumnDef{Type: "FLOAT4", Length: -1, Scale: -1}}, le(0x3f000000, 4), Value{Kind: Double, Float: 0.5}},
		{"FLOAT(7,3)", Column{Type: typeFloat, Def: &ColumnDef{Type: "FLOAT UNSIGNED", Length: 7, Scale: 3}}, le(0x3f000000, 4), Value{Kind: Double, Float: 0.5}},
		{"FLOAT(25)", Column{Type: typeDouble, Def: &ColumnDef{Type: "FLOAT", Length: 25, Scale: -1}}, le(0x3fe0000000000000, 8), Value{Kind: Double, Float: 0.5}},
	} {
		got, err := decodeCell(t, tt.c, tt.cell)
		if err != nil || !equalValues(got, tt.want) {
			t.Errorf("%s: %+v (%s), %v, want %+v", tt.name, got, got.Bytes, err, tt.want)
		}
	}
}

// NULL and zero dates in a column that must have a value give the schema's default, and the type's fallback without one.
func TestNullGivesDefault(t *testing.T) {
	text := func(s string) Value { return Value{Kind: String, Bytes: []byte(s)} }
	bytes := func(s string) Value { return Value{Kind: Bytes, Bytes: []byte(s)} }
	integer := func(n int64) Value { return Value{Kind: Int, Int: n} }
	nullable := func(c Column) Column { c.Nullable = true; return c }
	timestamp := Column{Type: typeTimestamp2}
	enum := Column{Type: typeEnum, Labels: []string{"a", "b"}}
	for _, tt := range []struct {
		name    string
		c       Column
		typ     string
		dflt    string
		cell    []byte
		want    Value
		without Value // without a default
	}{
		{"TIMESTAMP", timestamp, "TIMESTAMP", "2000-01-01 00:00:00", []byte{0, 0, 0, 0}, text("2000-01-01T00:00:00Z"), text(epochText)},
		{"TIMESTAMP, date only", timestamp, "TIMESTAMP", "2000-01-01", []byte{0, 0, 0, 0}, text("2000-01-01T00:00:00Z"), text(epochText)},
		{"TIMESTAMP before 5.6", Column{Type: typeTimestamp}, "TIMESTAMP", "2000-01-01", []byte{0, 0, 0, 0}, text("2000-01-01T00:00:00Z"), text(epochText)},
		{"TIMESTAMP, CURRENT_TIMESTAMP", timestamp, "TIMESTAMP", "1970-01-01 00:00:00", []byte{0, 0, 0, 0}, text(epochText), text(epochText)},
		{"TIMESTAMP, nullable", nullable(timestamp), "TIMESTAMP", "2000-01-01", []byte{0, 0, 0, 0}, Value{}, Value{}},
		{"TIMESTAMP, NULL", timestamp, "TIMESTAMP", "2000-01-01", nil, text("2000-01-01T00:00:00Z"), text(epochText)},
		{"DATETIME", Column{Type: typeDatetime2}, "DATETIME", "2000-01-01 00:00:00", datetimeCell(0, 0, 0, 0, 0, 0), integer(946684800000), integer(0)},
		{"DATETIME(6)", Column{Type: typeDatetime2, Meta: 6}, "DATETIME", "2000-01-01", append(datetimeCell(2020, 0, 1, 0, 0, 0), 0, 0, 0), integer(946684800000000), integer(0)},
		{"DATE", Column{Type: typeDate}, "DATE", "2000-01-01", le(0, 3), integer(10957), integer(0)},
		{"DATE, default zero", Column{Type: typeDate}, "DATE", "0000-00-00", le(0, 3), integer(0), integer(0)},
		{"DATE, default that cannot be read", Column{Type: typeDate}, "DATE", "x", le(0, 3), integer(0), integer(0)},
		{"TIME", Column{Type: typeTime2}, "TIME", "00:00:01", nil, integer(1000000), integer(0)},
		{"INT", Column{Type: typeLong}, "INT", "5", nil, integer(5), integer(0)},
		{"INT, default that cannot be read", Column{Type: typeLong}, "INT", "x", nil, integer(0), integer(0)},
		{"BOOL", Column{Type: typeTiny}, "BOOL", "TRUE", nil, Value{Kind: Bool, Int: 1}, Value{Kind: Bool}},
		{"BIT(8)", Column{Type: typeBit, Meta: 1 << 8}, "BIT", "101", nil, bytes("\x05"), bytes("")},
		{"DECIMAL", Column{Type: typeNewDecimal, Meta: 5<<8 | 1}, "DECIMAL", "1.5", nil, bytes("\x0f"), bytes("\x00")},
		{"FLOAT", Column{Type: typeFloat}, "FLOAT", "0.5", nil, Value{Kind: Float, Float: 0.5}, Value{Kind: Float}},
		{"DOUBLE", Column{Type: typeDouble}, "DOUBLE", "0.5", nil, Value{Kind: Double, Float: 0.5}, Value{Kind: Double}},
		{"VARCHAR", Column{Type: typeVarchar, Collation: 255}, "VARCHAR", "x", nil, text("x"), text("")},
		{"VARBINARY", Column{Type: typeVarchar, Collation: 63}, "VARBINARY", "x", nil, bytes("x"), bytes("")},
		{"ENUM", enum, "ENUM", "b", nil, text("b"), text("")},
		{"ENUM of index 0", enum, "ENUM", "b", []byte{0}, text(""), text("")},
		{"SET", Column{Type: typeSet, Labels: []string{"a", "b"}}, "SET", "a,b", nil, text("a,b"), text("")},
		{"SET of no members", Column{Type: typeSet, Labels: []string{"a", "b"}}, "SET", "a,b", []byte{0}, text(""), text("")},
		{"YEAR", Column{Type: typeYear}, "YEAR", "2000", nil, integer(2000), integer(0)},
		{"YEAR 0", Column{Type: typeYear}, "YEAR", "2000", []byte{0}, integer(0), integer(0)},
		{"INT 0", Column{Type: typeLong}, "INT", "5", le(0, 4), integer(0), integer(0)},
	} {
		for _, dflt := range []*string{&tt.dflt, nil} {
			want := tt.want
			if dflt == nil {
				want = tt.without
			}
			tt.c.Def = &ColumnDef{Type: tt.typ, Length: -1, Scale: -1, Default: dflt}
			got, err := decodeCell(t, tt.c, tt.cell)
			if err != nil || !equalValues(got, want) {
				t.Errorf("%s (default: %v): %+v (%s), %v, want %+v (%s)", tt.name, dflt != nil, got, got.Bytes, err, want, want.Bytes)
			}
		}
	}
}

// A column is optional if it can be NULL, whether or not it is in the record key, and if its definition says so.
func TestOptional(t *testing.T) {
	zero := "2000-01-01"
	for _, tt := range []struct {
		c    Column
		want bool
	}{
		{Column{Type: typeTimestamp2}, false},
		{Column{Type: typeTimestamp2, Nullable: true}, true},
		{Column{Type: typeTimestamp2, Def: &ColumnDef{Type: "TIMESTAMP", Default: &zero}}, false},
		{Column{Type: typeTimestamp2, Nullable: true, Def: &ColumnDef{Type: "TIMESTAMP", Default: &zero}}, true},
		{Column{Type: typeTimestamp2, Def: &ColumnDef{Type: "TIMESTAMP", Nullable: true, Default: &zero}}, true},
	} {
		typ, decode, err := Modes{}.Column(&Table{Key: []int{0}, Columns: []Column{tt.c}}, 0)
		if err != nil || typ.Optional != tt.want {
			t.Errorf("%+v: optional %v, %v, want %v", tt.c, typ.Optional, err, tt.want)
		}
		if v, err := call(decode, []byte{0, 0, 0, 0}, new(Scratch)); err != nil || (v.Kind == Null) != tt.want {
			t.Errorf("%+v: zero is %+v, %v", tt.c, v, err)
		}
	}
}

func TestColumnsRejectCorruptCells(t *testing.T) {
	for name, c := range map[string]Column{
		"INT":       {Type: typeLong},
		"FLOAT":     {Type: typeFloat},
		"DOUBLE":    {Type: typeDouble},
		"BIT(1)":    {Type: typeBit, Meta: 1},
		"BIT(8)":    {Type: typeBit, Meta: 1 << 8},
		"BOOL":      {Type: typeTiny, Def: &ColumnDef{Type: "BOOL"}},
		"ENUM":      {Type: typeEnum, Labels: []string{"a"}},
		"SET":       {Type: typeSet, Labels: []string{"a"}},
		"GEOMETRY":  {Type: typeGeometry},
		"POINT":     {Type: typeGeometry, Geometry: 1},
		"VECTOR":    {Type: typeVector},
		"DECIMAL":   {Type: typeNewDecimal, Meta: 10<<8 | 2},
		"DATE":      {Type: typeDate},
		"TIMESTAMP": {Type: typeTimestamp2},
	} {
		if got, err := decodeCell(t, c, []byte{1, 2, 3, 4, 5, 6, 7}); err == nil {
			t.Errorf("%s of 7 bytes: %+v, want an error", name, got)
		}
	}
}

func TestUnsupportedColumns(t *testing.T) {
	for _, tt := range []struct {
		c    Column
		want string
	}{
		{Column{Name: "c", Type: typeVarchar, Collation: 9999}, "column d.t.c: collation id 9999 is not known"},
		{Column{Name: "c", Type: typeVarchar}, "column d.t.c: the character set is not known"},
		{Column{Name: "c", Type: typeNewDecimal, Meta: 70 << 8}, "column d.t.c: DECIMAL(70,0) is not a type of MySQL"},
		{Column{Name: "c", Type: typeDatetime2, Meta: 7}, "column d.t.c: 7 digits after the second are not possible in MySQL"},
		{Column{Name: "c", Type: 200}, "column d.t.c: MySQL's type code 200 is not supported"},
	} {
		_, _, err := Modes{}.Column(&Table{Database: "d", Name: "t", Columns: []Column{tt.c}}, 0)
		if err == nil || err.Error() != tt.want {
			t.Errorf("error %v, want %s", err, tt.want)
		}
	}
}

// Labels go into the schema with the escapes of the definition's text, and into rows as they are.
func TestLabelsInSchema(t *testing.T) {
	c := Column{Name: "e", Type: typeEnum, Collation: 45, Labels: []string{"x,y", "it's", `b\s`}}
	for _, def := range []*ColumnDef{nil, {Type: "ENUM", Labels: []string{"x,y", "it''s", `b\\s`}}} {
		c.Def = def
		typ, _, err := Modes{}.Column(&Table{Columns: []Column{c}}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := typ.Parameter("allowed"); got != `x\,y,it's,b\\s` {
			t.Errorf("allowed is %s", got)
		}
	}
}

// Decoders do not allocate once the scratch has grown.
func TestDecodersDoNotAllocate(t *testing.T) {
	v := new(Value)
	doc, y2k := nested(3), "2000-01-01"
	for _, tt := range []struct {
		c    Column
		cell []byte
	}{
		{Column{Type: typeLonglong}, le(-5, 8)},
		{Column{Type: typeNewDecimal, Meta: 65<<8 | 30}, decimalCell(strings.Repeat("9", 65), 30, true)},
		{Column{Type: typeVarchar, Meta: 60, Collation: 255}, []byte("héllo")},
		{Column{Type: typeVarchar, Meta: 60, Collation: 8}, []byte("h\xe9llo")},
		{Column{Type: typeVarchar, Meta: 60, Collation: 28}, []byte("\xd6\xd0\xce\xc4")},
		{Column{Type: typeVarchar, Meta: 60, Collation: 54}, []byte("\x00a\xd8\x3d\xde\x00")},
		{Column{Type: typeString, Meta: typeString<<8 | 5, Collation: 63}, []byte("ab")},
		{Column{Type: typeDatetime2, Meta: 3}, append(datetimeCell(2026, 1, 2, 3, 4, 5), 0, 1)},
		{Column{Type: typeTimestamp2, Meta: 6}, []byte{0x60, 0, 0, 0, 0, 0, 1}},
		{Column{Type: typeTimestamp}, []byte{1, 2, 3, 0x60}},
		{Column{Type: typeTimestamp2, Def: &ColumnDef{Type: "TIMESTAMP", Default: &y2k}}, []byte{0, 0, 0, 0}},
		{Column{Type: typeTime2, Meta: 2}, []byte{0x7f, 0xff, 0xff, 0xfb}},
		{Column{Type: typeJSON, Meta: 4}, doc},
		{Column{Type: typeJSON, Meta: 4}, append([]byte{jsonbDouble}, le(0x3fb999999999999a, 8)...)},
		{Column{Type: typeJSON, Meta: 4}, append([]byte{jsonbDouble}, le(0x54b249ad2594c37d, 8)...)}, // 1e100
		{Column{Type: typeJSON, Meta: 4}, append([]byte{jsonbString, 4}, "a\x01\"\\"...)},
		{Column{Type: typeSet, Labels: []string{"a", "b"}}, []byte{3}},
		{Column{Type: typeEnum, Labels: []string{"a", "b"}}, []byte{2}},
		{Column{Type: typeBit, Meta: 2 << 8}, []byte{3, 1}},
		{Column{Type: typeGeometry, Geometry: 1}, slices.Concat(le(0, 4), []byte{1, 1, 0, 0, 0}, make([]byte, 16))},
	} {
		_, decode, err := Modes{}.Column(&Table{Columns: []Column{tt.c}}, 0)
		if err != nil {
			t.Fatal(err)
		}
		var scratch Scratch
		if err := decode(tt.cell, &scratch, v); err != nil {
			t.Fatalf("%+v: %v", tt.c, err)
		}
		if n := testing.AllocsPerRun(100, func() {
			scratch.Reset()
			if err := decode(tt.cell, &scratch, v); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%+v of %x: %v allocations", tt.c, tt.cell, n)
		}
	}
}

// Nor do they in the other modes, or when they meet values that their types cannot hold.
func TestDecodersOfModesDoNotAllocate(t *testing.T) {
	tiny, fixed := &ColumnDef{Type: "TINYINT", Length: 1}, &ColumnDef{Type: "UUID"}
	for _, tt := range []struct {
		m    Modes
		c    Column
		cell []byte
	}{
		{Modes{Decimal: DecimalDouble}, Column{Type: typeNewDecimal, Meta: 10<<8 | 2}, decimalCell("0000000150", 2, false)},
		{Modes{Decimal: DecimalDouble}, Column{Type: typeNewDecimal, Meta: 65<<8 | 30}, decimalCell(strings.Repeat("9", 65), 30, true)},
		{Modes{Decimal: DecimalString}, Column{Type: typeNewDecimal, Meta: 65<<8 | 30}, decimalCell(strings.Repeat("9", 65), 30, true)},
		{Modes{UnsignedBigint: UnsignedPrecise}, Column{Type: typeLonglong, Unsigned: true}, le(-1, 8)},
		{Modes{Binary: BinaryBase64}, Column{Type: typeString, Meta: typeString<<8 | 5, Collation: 63}, []byte("ab")},
		{Modes{Binary: BinaryHex}, Column{Type: typeBlob, Collation: 63}, []byte("ab")},
		{Modes{Time: TimeConnect}, Column{Type: typeTime2, Meta: 6, Nullable: true}, timeCell(-1)},
		{Modes{Time: TimeISOString}, Column{Type: typeTime2, Meta: 6}, timeCell(1)},
		{Modes{Time: TimeISOString}, Column{Type: typeDate}, le(2026<<9|2<<5|28, 3)},
		{Modes{Time: TimeISOString}, Column{Type: typeDatetime2, Meta: 6}, datetime6Cell(2026, 1, 2, 3, 4, 5, 6)},
		{Modes{Time: TimeMicroseconds}, Column{Type: typeDatetime2}, datetimeCell(2026, 1, 2, 3, 4, 5)},
		{Modes{Time: TimeNanoseconds}, Column{Type: typeDatetime2}, datetimeCell(1000, 1, 2, 3, 4, 5)},
		{Modes{}, Column{Type: typeDate}, le(2021<<9|2<<5|31, 3)},
		{Modes{Converters: []Converter{{Kind: TinyIntOneToBoolean, Length: true}}}, Column{Type: typeTiny, Def: tiny}, []byte{1}},
		{Modes{Converters: []Converter{{Kind: JDBCSinkDataTypes, Real: everyColumn}}}, Column{Type: typeNewDecimal, Meta: 20<<8 | 2}, decimalCell("00000000000000000150", 2, false)},
		{Modes{}, Column{Type: typeString, Meta: typeString<<8 | 16, Collation: 63, Def: fixed}, []byte("abc")},
	} {
		tt.m.Invalid = func(_, _, _, _ string) {}
		noAllocations(t, tt.m, tt.c, tt.cell)
	}
}

func BenchmarkDecoders(b *testing.B) {
	v := new(Value)
	for _, tt := range []struct {
		name string
		c    Column
		cell []byte
	}{
		{"bigint", Column{Type: typeLonglong}, le(-5, 8)},
		{"decimal(10,2)", Column{Type: typeNewDecimal, Meta: 10<<8 | 2}, decimalCell("0000123456", 2, true)},
		{"varchar", Column{Type: typeVarchar, Meta: 60, Collation: 255}, []byte("some text of usual length, héllo")},
		{"datetime(3)", Column{Type: typeDatetime2, Meta: 3}, append(datetimeCell(2026, 1, 2, 3, 4, 5), 0, 1)},
		{"timestamp", Column{Type: typeTimestamp2}, []byte{0x60, 0, 0, 0}},
		{"json", Column{Type: typeJSON, Meta: 4}, smallContainer(jsonbSmallObject, 1, 0, 12, 0, 11, 0, 1, 0, jsonbInt16, 5, 0, 'k')},
	} {
		b.Run(tt.name, func(b *testing.B) {
			_, decode, err := Modes{}.Column(&Table{Columns: []Column{tt.c}}, 0)
			if err != nil {
				b.Fatal(err)
			}
			var scratch Scratch
			b.ReportAllocs()
			for b.Loop() {
				scratch.Reset()
				if err := decode(tt.cell, &scratch, v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func call(d Decoder, cell []byte, scratch *Scratch) (v Value, err error) {
	err = d(cell, scratch, &v)
	return v, err
}
