package schema

import (
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"
)

// TestLastDay compares numbers with what the decoder gives, for cells near each other and damaged ones: whatever has been
// remembered, the number must be right, or the decoder asked.
func TestLastDay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.IntRange(0, 3).Draw(t, "digits")
		table := &Table{Columns: []Column{{Type: typeDatetime2, Meta: uint16(digits), Nullable: true}}}
		_, decode, err := Modes{}.Column(table, 0)
		if err != nil {
			t.Fatal(err)
		}
		base := uint64(rapid.IntRange(0, 9999).Draw(t, "year")*13+rapid.IntRange(0, 12).Draw(t, "month")) << 22
		var last LastDay
		var scratch Scratch
		for range 20 {
			packed := base + uint64(rapid.OneOf(rapid.IntRange(1<<17, 1<<18-1), rapid.IntRange(0, 1<<22-1)).Draw(t, "in the month"))
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
			cell = cell[:len(cell)-rapid.SampledFrom([]int{0, 0, 0, 0, 1}).Draw(t, "cut")]
			var v Value
			err := decode(cell, &scratch, &v)
			millis, ok := last.Datetime(cell, digits)
			if ok && (err != nil || v.Kind != Int || millis != v.Int) {
				t.Fatalf("%x: got %d, want %d, error %v", cell, millis, v.Int, err)
			}
		}
	})
	var last LastDay
	if _, ok := last.Datetime(nil, 0); ok {
		t.Error("NULL was read")
	}
	for i, want := range []int64{-11644473599000, -11644473540000} { // 1601-01-01 00:00:01 and 00:01:00
		packed := uint64(1601*13+1)<<22 | 1<<17 | uint64(1+i*63) | 1<<39
		if got, ok := last.Datetime(binary.BigEndian.AppendUint64(nil, packed<<24)[:5], 0); !ok || got != want {
			t.Errorf("got %d, %v, want %d", got, ok, want)
		}
	}
}
