package schema

import (
	"bytes"
	"compress/zlib"
	"encoding/hex"
	"strings"
	"testing"
)

// Cells of COMPRESSED columns as a MariaDB 11.8 wrote them, and one with zlib's header, as with
// column_compression_zlib_wrap=ON.
func TestCompressedColumns(t *testing.T) {
	text := Column{Type: typeBlobCompressed, Meta: 2, Collation: 2304, Nullable: true}
	varchar := Column{Type: typeVarcharCompressed, Meta: 401, Collation: 8}
	blob := Column{Type: typeBlobCompressed, Meta: 2, Collation: 63}
	var wrapped bytes.Buffer
	w := zlib.NewWriter(&wrapped)
	w.Write([]byte(strings.Repeat("é", 300)))
	w.Close()
	for _, tt := range []struct {
		name string
		c    Column
		cell string
		want string
	}{
		{"TEXT", text, "8a1770edc24111000" + "00c02a0ac6aff0e0bb12f1ce9a2aaaaaaaaaafe1e", `"` + strings.Repeat("abc", 2000) + `"`},
		{"VARCHAR that is short", varchar, "00" + hex.EncodeToString([]byte("\xe9x")), `"éx"`},
		{"empty", varchar, "", `""`},
		{"with a header", text, "820258" + hex.EncodeToString(wrapped.Bytes()), `"` + strings.Repeat("é", 300) + `"`},
		{"BLOB", blob, "00ff", `"/w=="`},
	} {
		cell, err := hex.DecodeString(tt.cell)
		if err != nil {
			t.Fatal(err)
		}
		if _, v, err := decodeMode(t, Modes{}, tt.c, cell); err != nil || string(valueJSON(v)) != tt.want {
			t.Errorf("%s is %s, %v", tt.name, valueJSON(v), err)
		}
		if got := (Modes{}).Layout(&Table{Columns: []Column{tt.c}}, 0); got != (Layout{}) {
			t.Errorf("%s has the layout %+v", tt.name, got)
		}
	}
	if _, v, err := decodeMode(t, Modes{}, text, nil); err != nil || v.Kind != Null {
		t.Errorf("NULL is %+v, %v", v, err)
	}
	noAllocations(t, Modes{}, text, []byte("\x82\x02\x58"+wrapped.String()))
	masked := Modes{Masks: []Mask{{Match: everyColumn, Kind: MaskFixed, Length: 2}}}
	if got := masked.Layout(&Table{Columns: []Column{text}}, 0); got.Kind != LayoutMasked {
		t.Errorf("masked, the layout is %+v", got)
	}
}

func TestCompressedRejectsCorruptCells(t *testing.T) {
	for _, cell := range []string{"\x8a", "\x8a\x17", "\x8a\x17\x70", "\x82\x17\x70\x78", "\x8a\x17\x70\xff\xff\xff\xff\xff\xff\xff", "\x10abc", "\x8f\xff\xff\xff\xff\xff\xff\xffabc", "\x89\x05"} {
		if _, v, err := decodeMode(t, Modes{}, Column{Type: typeBlobCompressed, Meta: 2, Collation: 255}, []byte(cell)); err == nil {
			t.Errorf("%x is %+v", cell, v)
		}
	}
}
