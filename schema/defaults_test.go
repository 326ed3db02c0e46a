package schema

import (
	"encoding/base64"
	"testing"
)

// What a default's text becomes in the schema, beyond the cases of TestGoldenColumns.
func TestDefaults(t *testing.T) {
	b64 := func(s string) []byte {
		b, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	integer := func(n int64) *Value { return &Value{Kind: Int, Int: n} }
	text := func(s string) *Value { return &Value{Kind: String, Bytes: []byte(s)} }
	for _, tt := range []struct {
		name string
		c    Column
		def  ColumnDef
		text string
		want *Value
	}{
		{"integer through a double", Column{Type: typeLonglong}, ColumnDef{}, "9007199254740993", integer(9007199254740992)},
		{"half up", Column{Type: typeLong}, ColumnDef{}, "2.5", integer(3)},
		{"half up, negative", Column{Type: typeLong}, ColumnDef{}, "-2.5", integer(-2)},
		{"TRUE", Column{Type: typeTiny}, ColumnDef{}, "TRUE", integer(1)},
		{"BOOL FALSE", Column{Type: typeTiny}, ColumnDef{Type: "BOOL"}, "FALSE", &Value{Kind: Bool}},
		{"unsigned above int64", Column{Type: typeLonglong, Unsigned: true}, ColumnDef{}, "18446744073709551615", integer(1<<63 - 1)},
		{"function", Column{Type: typeLong}, ColumnDef{}, "unix_timestamp()", nil},
		{"decimal half up", Column{Type: typeNewDecimal, Meta: 5<<8 | 1}, ColumnDef{}, "-0.05", &Value{Kind: Bytes, Bytes: b64("/w==")}},
		{"decimal exponent", Column{Type: typeNewDecimal, Meta: 5 << 8}, ColumnDef{}, "1e2", &Value{Kind: Bytes, Bytes: []byte{100}}},
		{"decimal too large", Column{Type: typeNewDecimal, Meta: 5 << 8}, ColumnDef{}, "1e999999999", nil},
		{"bits padded", Column{Type: typeBit, Meta: 1<<8 | 4}, ColumnDef{}, "1", &Value{Kind: Bytes, Bytes: []byte{1, 0}}},
		{"zero day, NOT NULL", Column{Type: typeDate}, ColumnDef{}, "2020-00-10", integer(0)},
		{"zero day", Column{Type: typeDate, Nullable: true}, ColumnDef{}, "2020-00-10", nil},
		{"two-digit year", Column{Type: typeDate}, ColumnDef{}, "0069-05-06", integer(36285)},
		{"YEAR", Column{Type: typeYear}, ColumnDef{}, "70", integer(1970)},
		{"YEAR 0", Column{Type: typeYear}, ColumnDef{}, "0000", integer(2000)},
		{"TIMESTAMP with its digits", Column{Type: typeTimestamp2, Meta: 3}, ColumnDef{}, "2026-01-02 03:04:05.000", text("2026-01-02T03:04:05.000Z")},
		{"CURRENT_TIMESTAMP", Column{Type: typeTimestamp2, Meta: 3}, ColumnDef{}, "1970-01-01 00:00:00", text(epochText)},
		{"CURRENT_TIMESTAMP, nullable", Column{Type: typeTimestamp2, Nullable: true}, ColumnDef{}, "1970-01-01 00:00:00", nil},
		{"DATETIME before 1970", Column{Type: typeDatetime2, Meta: 3}, ColumnDef{}, "1969-12-31 23:59:59.9999", integer(-1)},
		{"TIME", Column{Type: typeTime2}, ColumnDef{}, "-00:00:01.5", integer(-1500000)},
		{"TIME of hours and minutes", Column{Type: typeTime2}, ColumnDef{}, "10:20", integer(37200000000)},
		{"introducer", Column{Type: typeVarchar, Collation: 255}, ColumnDef{}, "_latin1'x'", text("x")},
		{"no introducer", Column{Type: typeVarchar, Collation: 255}, ColumnDef{}, "_x", text("_x")},
		{"escapes stay", Column{Type: typeVarchar, Collation: 255}, ColumnDef{}, `it''s \\`, text(`it''s \\`)},
		{"FLOAT", Column{Type: typeFloat}, ColumnDef{Type: "FLOAT"}, "0.1", &Value{Kind: Float, Float: float64(float32(0.1))}},
		{"FLOAT(7,3)", Column{Type: typeFloat}, ColumnDef{Type: "FLOAT", Length: 7, Scale: 3}, "0.1", &Value{Kind: Double, Float: 0.1}},
	} {
		tt.c.Def = &tt.def
		if tt.def.Scale == 0 {
			tt.def.Length, tt.def.Scale = -1, -1
		}
		tt.def.Default = &tt.text
		typ, _, err := Modes{}.Column(&Table{Columns: []Column{tt.c}}, 0)
		if err != nil {
			t.Fatal(err)
		}
		got := typ.Default
		if (got == nil) != (tt.want == nil) || got != nil && !equalValues(*got, *tt.want) {
			t.Errorf("%s: default %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
