package schema

import (
	"encoding/binary"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// TestLastSecond compares texts with what the decoder gives, for cells near each other and damaged ones: whatever has
// been remembered, the text must be right, or the decoder asked.
func TestLastSecond(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.IntRange(0, 3).Draw(t, "digits")
		table := &Table{Columns: []Column{
			{Type: typeDatetime2, Meta: uint16(digits), Nullable: true}, {Type: typeTimestamp2, Nullable: true},
		}}
		_, decode, err := Modes{}.Column(table, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, decodeTimestamp, err := Modes{}.Column(table, 1)
		if err != nil {
			t.Fatal(err)
		}
		base := uint64(rapid.IntRange(100, 9999).Draw(t, "year")*13+rapid.IntRange(0, 12).Draw(t, "month")) << 22
		var last, lastTimestamp LastSecond
		var scratch Scratch
		for range 20 {
			packed := base + uint64(rapid.OneOf(rapid.IntRange(0, 1<<17), rapid.IntRange(0, 1<<22-1)).Draw(t, "in the month"))
			if !rapid.SampledFrom([]bool{false, false, false, true}).Draw(t, "negative") {
				packed |= 1 << 39
			}
			cell := binary.BigEndian.AppendUint64(nil, packed<<24)[:5]
			switch digits {
			case 1, 2:
				cell = append(cell, byte(rapid.IntRange(0, 101).Draw(t, "hundredths")))
			case 3:
				cell = binary.BigEndian.AppendUint16(cell, uint16(rapid.IntRange(0, 10001).Draw(t, "fraction")))
			}
			var v Value
			err := decode(cell, &scratch, &v)
			if text, ok := last.AppendDatetime([]byte("x"), cell, digits); ok {
				if want := "x" + strconv.FormatInt(v.Int, 10); err != nil || v.Kind != Int || string(text) != want {
					t.Fatalf("%x: got %s, want %s, error %v", cell, text, want, err)
				}
			} else if string(text) != "x" || err == nil && v.Kind == Int && v.Int >= 1e8*1000 {
				t.Fatalf("%x: nothing, and %s", cell, text)
			}

			second := rapid.OneOf(rapid.Uint32Range(0, 3), rapid.Uint32Range(1e9, 1e9+200_000), rapid.Uint32()).Draw(t, "second")
			cell = binary.BigEndian.AppendUint32(nil, second)
			if err := decodeTimestamp(cell, &scratch, &v); err != nil {
				t.Fatal(err)
			}
			if text, ok := lastTimestamp.AppendTimestamp([]byte("x"), cell); ok != (second != 0) || ok && string(text) != `x"`+string(v.Bytes)+`"` {
				t.Fatalf("%d: got %s, want %s", second, text, v.Bytes)
			}
		}
	})
}
