package emitter

import (
	"encoding/binary"
	"testing"

	"github.com/tidemark-cdc/tidemark/schema"
)

// TestShortWays compares what is written on the short ways with what the decoders alone give.
func TestShortWays(t *testing.T) {
	number := func(v int64, size int) []byte {
		return binary.LittleEndian.AppendUint64(nil, uint64(v))[:size]
	}
	text := func(s string) []byte { return append([]byte{0x0c, byte(len(s))}, s...) } // a JSON document
	for _, tt := range []struct {
		c     schema.Column
		cells [][]byte
	}{
		{schema.Column{Name: "tiny", Type: 1}, [][]byte{nil, {0}, {1}, {0x80}}},
		{schema.Column{Name: "utiny", Type: 1, Unsigned: true}, [][]byte{nil, {0}, {0x80}}},
		{schema.Column{Name: "int", Type: 3}, [][]byte{nil, number(-5, 4), number(12345678, 4)}},
		{schema.Column{Name: "uint", Type: 3, Unsigned: true}, [][]byte{nil, number(-5, 4), number(12345678, 4)}},
		{schema.Column{Name: "bigint", Type: 8}, [][]byte{nil, number(-5, 8), number(1234567890123456789, 8)}},
		{schema.Column{Name: "ubigint", Type: 8, Unsigned: true}, [][]byte{nil, number(-5, 8)}},
		{schema.Column{Name: "utf8", Type: 15, Meta: 60, Collation: 255}, [][]byte{
			nil, {}, []byte("plain"), []byte("a longer plain text"), []byte("né"), []byte("\xff"), []byte("a longer \"text\""), []byte("😀"),
		}},
		{schema.Column{Name: "latin1", Type: 15, Meta: 60, Collation: 8}, [][]byte{nil, {}, []byte("plain"), []byte("n\xe9"), []byte("\\")}},
		{schema.Column{Name: "utf16", Type: 15, Meta: 60, Collation: 54}, [][]byte{nil, {}, []byte("plain!")}},
		{schema.Column{Name: "json", Type: 245, Meta: 4}, [][]byte{
			nil,
			{},
			text(""), text("plain"), text("né"), text(`"`), text("😀"), text("\x01"), text("\xff"),
			{4, 1},
			{0, 0, 0, 4, 0},
			{0, 1, 0, 12, 0, 11, 0, 1, 0, 5, 0xff, 0xff, 'k'},
			{0, 1, 0, 20, 0, 11, 0, 9, 0, 4, 2, 0, 'a', ' ', 'l', 'o', 'n', 'g', 'k', 'e', 'y'},
			append([]byte{0, 1, 0, 24, 0, 11, 0, 1, 0, 0, 12, 0, 'o'}, 1, 0, 12, 0, 11, 0, 1, 0, 4, 0, 0, 'i'),
		}},
		{schema.Column{Name: "timestamp", Type: 17}, [][]byte{
			nil, {0, 0, 0, 0}, {0x60, 1, 2, 3}, {0x60, 1, 2, 3}, {0x60, 1, 2, 4}, nil, {0, 0, 0, 1}, {0x60, 1, 2, 3}, {0xff, 0xff, 0xff, 0xff},
		}},
		{schema.Column{Name: "milliseconds", Type: 17, Meta: 3}, [][]byte{nil, {0, 0, 0, 0, 0, 0}, {0x60, 1, 2, 3, 4, 5}}},
		{schema.Column{Name: "datetime", Type: 18}, [][]byte{
			nil, {0x99, 0xb8, 0x3a, 0x45, 0x67}, {0x99, 0xb8, 0x3a, 0x45, 0x67}, {0x80, 0, 0, 0, 0}, {0x99, 0xb8, 0x3a, 0x45, 0x68},
		}},
		{schema.Column{Name: "datetime3", Type: 18, Meta: 3}, [][]byte{nil, {0x99, 0xb8, 0x3a, 0x45, 0x67, 0, 9}, {0x8c, 0xb2, 0x42, 0, 0, 0x27, 0x0f}}},
		{schema.Column{Name: "decimal", Type: 246, Meta: 10<<8 | 2}, [][]byte{
			nil, {0x80, 0, 0, 0, 0}, {0x7f, 0xff, 0xff, 0xff, 0xfe}, {0x80, 0, 4, 0xd2, 0x38}, {0x85, 0xf5, 0xe0, 0xff, 99},
		}},
		{schema.Column{Name: "fraction", Type: 246, Meta: 4<<8 | 4}, [][]byte{nil, {0x80, 0}, {0x7f, 0xfe}, {0xa7, 0x0f}}},
	} {
		for _, tt.c.Nullable = range []bool{false, true} {
			table := &schema.Table{Database: "d", Name: "t", Columns: []schema.Column{tt.c}}
			typ, decode, err := schema.Modes{}.Column(table, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range []dialect{{}, {numbers: true}, {text: simpleText, defaults: true, numbers: true}, {text: avroBinary}} {
				var programs [2]*program
				for i, layout := range []schema.Layout{{}, schema.Modes{}.Layout(table, 0)} {
					s := rowShape("t", []column{{name: tt.c.Name, field: tt.c.Name, typ: typ, decode: decode, layout: layout}}, after)
					if programs[i], err = compile(&s, d, nil, ""); err != nil {
						t.Fatal(err)
					}
				}
				for _, cell := range tt.cells {
					r := run{after: [][]byte{cell}, scratch: new(schema.Scratch)}
					want, err := programs[0].append(nil, &r)
					if err != nil {
						t.Fatalf("%s %q: %v", tt.c.Name, cell, err)
					}
					if got, err := programs[1].append(nil, &r); err != nil || string(got) != string(want) {
						t.Errorf("%q: got %s and error %v, want %s", cell, got, err, want)
					}
				}
			}
		}
	}
}
