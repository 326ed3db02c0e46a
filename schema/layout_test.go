package schema

import "testing"

func TestLayout(t *testing.T) {
	for _, tt := range []struct {
		c    Column
		want Layout
	}{
		{Column{Type: typeLonglong, Unsigned: true}, Layout{Kind: LayoutInteger, Size: 8, Unsigned: true}},
		{Column{Type: typeTiny}, Layout{Kind: LayoutInteger, Size: 1}},
		{Column{Type: typeTiny, Def: &ColumnDef{Type: "BOOL"}}, Layout{}}, // true and false
		{Column{Type: typeYear}, Layout{}},
		{Column{Type: typeVarchar, Collation: 255}, Layout{Kind: LayoutText}},
		{Column{Type: typeVarchar, Collation: 8}, Layout{Kind: LayoutText}},
		{Column{Type: typeVarchar, Collation: 28}, Layout{Kind: LayoutText}},
		{Column{Type: typeVarchar, Collation: 10}, Layout{}}, // swe7: [ is Ä
		{Column{Type: typeVarchar, Collation: 54}, Layout{}}, // utf16
		{Column{Type: typeVarchar, Collation: 63}, Layout{}}, // binary
		{Column{Type: typeVarchar, Collation: 9999}, Layout{}},
		{Column{Type: typeJSON, Meta: 4}, Layout{Kind: LayoutJSON}},
		{Column{Type: typeTimestamp2}, Layout{Kind: LayoutTimestamp}},
		{Column{Type: typeTimestamp2, Meta: 3}, Layout{Kind: LayoutPlain}},
		{Column{Type: typeNewDecimal, Meta: 10<<8 | 2}, Layout{Kind: LayoutDecimal, Size: 2, Whole: 8}},
		{Column{Type: typeNewDecimal, Meta: 20<<8 | 2}, Layout{}},
		{Column{Type: typeDatetime2, Meta: 3}, Layout{Kind: LayoutDatetime, Size: 3}},
		{Column{Type: typeDatetime2, Meta: 6}, Layout{}},
	} {
		if got := (Modes{}).Layout(&Table{Columns: []Column{tt.c}}, 0); got != tt.want {
			t.Errorf("%+v: got %+v, want %+v", tt.c, got, tt.want)
		}
	}
}
