package emitter

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/tidemark-cdc/tidemark/schema"
)

// TestShortBinaryWays compares the short ways of all kinds with the column's decoder, with room for the cell and without.
func TestShortBinaryWays(t *testing.T) {
	le, be := binary.LittleEndian, binary.BigEndian
	var eight, four, two, one, wide, narrow, tiny, day, milli, second, text [][]byte
	for shift := range 64 {
		for _, v := range []uint64{1<<shift - 1, 1 << shift, -(1 << shift), -(1<<shift - 1)} {
			eight, four = append(eight, le.AppendUint64(nil, v)), append(four, le.AppendUint32(nil, uint32(v)))
			two, one = append(two, le.AppendUint16(nil, uint16(v))), append(one, []byte{byte(v)})
			for _, groups := range []uint64{v % 1_000_000_000 << 32, v%1_000_000_000<<32 | v>>7%1_000_000_000, v} {
				for _, sign := range []uint64{1 << 63, ^uint64(1 << 63)} { // a negative value has all bits inverted
					digits := be.AppendUint64(nil, groups^sign)
					wide, tiny = append(wide, digits), append(tiny, digits[:2])
					narrow = append(narrow, append(be.AppendUint32(nil, uint32((groups>>32%100_000_000)^sign>>32)), byte(v%128^sign)))
				}
			}
			packed := be.AppendUint64(nil, (2026*13+11)<<46|29<<41|uint64(shift%25)<<36|uint64(shift)<<30|uint64(63-shift)<<24|1<<63)
			day = append(day, packed[:5], le.AppendUint64(nil, v)[3:], packed[:5])
			milli = append(milli, append(packed[:5:5], byte(shift), 0xff), append(packed[:5:5], byte(shift/2), 0x11))
			second = append(second, be.AppendUint32(nil, uint32(1795955696+shift/3)), be.AppendUint32(nil, uint32(shift)))
		}
	}
	for n := range 36 {
		plain := bytes.Repeat([]byte("s"), n)
		text = append(text, plain)
		for at := range n {
			for _, c := range []byte{0, 0x1f, ' ', '~', 0x7f, 0x80, 0xff} {
				odd := bytes.Clone(plain)
				odd[at] = c
				text = append(text, odd)
			}
		}
	}
	for _, n := range []int{8190, 8191, 8192, 8193} {
		text = append(text, bytes.Repeat([]byte("s"), n))
	}
	for _, nullable := range []bool{false, true} {
		table := benchTable()
		table.Key, table.Columns = nil, nil
		kinds := []struct {
			column schema.Column
			cells  [][]byte
		}{
			{schema.Column{Type: 8}, eight},
			{schema.Column{Type: 3}, four},
			{schema.Column{Type: 2}, two},
			{schema.Column{Type: 1}, one},
			{schema.Column{Type: 246, Meta: 18<<8 | 9}, wide},
			{schema.Column{Type: 246, Meta: 10<<8 | 2}, narrow},
			{schema.Column{Type: 246, Meta: 4<<8 | 2}, tiny},
			{schema.Column{Type: 18}, day},
			{schema.Column{Type: 18, Meta: 3}, milli},
			{schema.Column{Type: 17}, second},
			{schema.Column{Type: 15, Meta: 40000, Collation: 255}, text},
		}
		for i, k := range kinds {
			k.column.Name, k.column.Nullable = string(rune('a'+i)), nullable
			table.Columns = append(table.Columns, k.column)
		}
		em := benchEmitter(t, Converter{Avro: avroConverter(new(testIDs))})
		columns, err := valueColumns(&em.cfg, table)
		if err != nil {
			t.Fatal(err)
		}
		var fields []shape
		for i := range columns {
			fields = append(fields, shape{typ: columns[i].typ, leaf: leaf{kind: leafCell, image: after, column: &columns[i]}})
		}
		b := builder{program: program{dialect: dialect{text: avroBinary}}}
		cells, err := b.newBinaryCells(fields)
		if err != nil {
			t.Fatal(err)
		}
		em.scratch.Of(table)
		r := run{scratch: &em.scratch}
		for i, k := range kinds {
			o := &op{kind: opBinaryCells, image: after, binary: cells[i : i+1]}
			taken := 0
			for _, cell := range append([][]byte{nil, {}, {1}}, k.cells...) {
				em.scratch.Reset()
				want, wantErr := b.appendBinaryDecoded([]byte("x"), &cells[i], cell, &r)
				for _, room := range []int{0, 1, 30, 60, 9000} {
					r.after = [][]byte{cell}
					dst := append(make([]byte, 0, 1+room), 'x')
					if _, done := putBinaryCells(dst, o, r.after, 0); done == 1 {
						taken++
					}
					got, err := b.appendBinaryCells(dst, o, &r)
					if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) {
						t.Fatalf("type %d, %d, nullable %v, cell %x, room %d: got %x, %v, want %x, %v", k.column.Type, k.column.Meta, nullable, cell, room, got, err, want, wantErr)
					}
				}
			}
			if short := k.column.Meta != 4<<8|2; taken < len(k.cells)/4 && short {
				t.Errorf("type %d, %d: the short way took %d of %d cells", k.column.Type, k.column.Meta, taken, len(k.cells))
			}
		}
	}
}
