package schema

import (
	"math/big"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// decimalCell writes a DECIMAL as MySQL does: digits are precision digits, without point or sign.
func decimalCell(digits string, scale int, negative bool) []byte {
	whole := len(digits) - scale
	var groups []string
	if first := whole % groupDigits; first > 0 {
		groups = append(groups, digits[:first])
		digits = digits[first:]
	}
	for len(digits) > 0 {
		n := min(groupDigits, len(digits))
		groups = append(groups, digits[:n])
		digits = digits[n:]
		if len(digits) == scale {
			continue
		}
	}
	var cell []byte
	for _, g := range groups {
		n, _ := new(big.Int).SetString(g, 10)
		cell = append(cell, n.FillBytes(make([]byte, groupSize[len(g)]))...)
	}
	cell[0] ^= 0x80
	if negative {
		for i := range cell {
			cell[i] ^= 0xff
		}
	}
	return cell
}

func TestDecimal(t *testing.T) {
	for _, tt := range []struct {
		digits   string
		scale    int
		negative bool
		text     string
		unscaled int64
	}{
		{"00000", 2, false, "0.00", 0},
		{"00000", 2, true, "0.00", 0}, // minus zero
		{"00128", 0, false, "128", 128},
		{"00128", 0, true, "-128", -128},
		{"00129", 0, true, "-129", -129},
		{"0000000150", 2, false, "1.50", 150},
		{"0000000001", 5, true, "-0.00001", -1},
		{"999999999999999999", 9, false, "999999999.999999999", 999999999999999999},
		{"1", 1, true, "-0.1", -1},
	} {
		cell := decimalCell(tt.digits, tt.scale, tt.negative)
		var scratch Scratch
		got, err := unscaledDecimal(cell, len(tt.digits), tt.scale, &scratch)
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		if n := fromTwosComplement(got); n.Int64() != tt.unscaled {
			t.Errorf("unscaled %s = %v (%x), want %d", tt.text, n, got, tt.unscaled)
		}
		text, err := appendDecimalText(nil, cell, len(tt.digits), tt.scale)
		if err != nil || string(text) != tt.text {
			t.Errorf("text of %x = %s, %v, want %s", cell, text, err, tt.text)
		}
	}
}

func fromTwosComplement(b []byte) *big.Int {
	n := new(big.Int).SetBytes(b)
	if b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return n
}

// Every decimal comes out as its number, in as few bytes as two's complement needs.
func TestDecimalMatchesBigInt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		precision := rapid.IntRange(1, maxPrecision).Draw(t, "precision")
		scale := rapid.IntRange(0, min(maxScale, precision)).Draw(t, "scale")
		digits := rapid.StringOfN(rapid.RuneFrom([]rune("0123456789")), precision, precision, -1).Draw(t, "digits")
		negative := rapid.Bool().Draw(t, "negative")
		want, _ := new(big.Int).SetString(digits, 10)
		if negative {
			want.Neg(want)
		}
		var scratch Scratch
		cell := decimalCell(digits, scale, negative)
		got, err := unscaledDecimal(cell, precision, scale, &scratch)
		if err != nil {
			t.Fatal(err)
		}
		if fromTwosComplement(got).Cmp(want) != 0 {
			t.Fatalf("%x, want %v", got, want)
		}
		if len(got) > 1 && (got[0] == 0 && got[1] < 0x80 || got[0] == 0xff && got[1] >= 0x80) {
			t.Fatalf("%x is longer than it needs to be", got)
		}
		text, err := appendDecimalText(nil, cell, precision, scale)
		if err != nil {
			t.Fatal(err)
		}
		if n, _ := new(big.Int).SetString(strings.Replace(string(text), ".", "", 1), 10); n.Cmp(want) != 0 {
			t.Fatalf("%s, want %v", text, want)
		}
	})
}

func FuzzDecimal(f *testing.F) {
	f.Add([]byte{0x80, 0x00, 0x01, 0x32}, uint8(8), uint8(2))
	f.Fuzz(func(t *testing.T, cell []byte, precision, scale uint8) {
		column := Column{Type: typeNewDecimal, Meta: uint16(precision)<<8 | uint16(scale)}
		if checkDecimalType(int(precision), int(scale)) != nil || cell == nil {
			return
		}
		_, v, err := decodeMode(t, Modes{}, column, cell)
		_, double, err2 := decodeMode(t, Modes{Decimal: DecimalDouble}, column, cell)
		_, text, err3 := decodeMode(t, Modes{Decimal: DecimalString}, column, cell)
		if (err == nil) != (err2 == nil) || (err == nil) != (err3 == nil) {
			t.Fatalf("%x: %v, %v, %v", cell, err, err2, err3)
		}
		if err != nil {
			return
		}
		if len(v.Bytes) == 0 || len(v.Bytes) > 28 || len(text.Bytes) > 68 {
			t.Errorf("%x of DECIMAL(%d,%d) is %x, %s", cell, precision, scale, v.Bytes, text.Bytes)
		}
		if want := unscaledText(v.Bytes, int(scale)); want != string(text.Bytes) {
			t.Errorf("%x of DECIMAL(%d,%d) is %s, and precise %s", cell, precision, scale, text.Bytes, want)
		}
		if want, err := strconv.ParseFloat(string(text.Bytes), 64); err != nil || double.Float != want {
			t.Errorf("%s is %v, %v", text.Bytes, double.Float, err)
		}
	})
}
