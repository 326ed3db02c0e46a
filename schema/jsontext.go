package schema

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strconv"
)

// appendJSONDouble writes what Java's Double.toString gives, but where that has an exponent, all the digits that the
// number has. Between 1e-3 and 1e7, where it has none, Java's digits are the shortest ones that give the number back.
func appendJSONDouble(out []byte, f float64) ([]byte, error) {
	abs := math.Abs(f)
	switch {
	case abs == 0 || abs >= 1e-3 && abs < 1e7:
		start := len(out)
		out = strconv.AppendFloat(out, f, 'f', -1, 64)
		if bytes.IndexByte(out[start:], '.') < 0 {
			out = append(out, ".0"...)
		}
		return out, nil
	case math.IsInf(f, 0) || math.IsNaN(f):
		return out, errors.New("JSON document has a number that is not finite")
	}
	return strconv.AppendFloat(out, f, 'f', fractionBits(abs), 64), nil
}

// fractionBits is the number of bits after the point, which is also the number of decimal digits after it.
func fractionBits(f float64) int {
	const mantissaBits = 52
	b := math.Float64bits(f)
	mantissa, exponent := b&(1<<mantissaBits-1), int(b>>mantissaBits)
	if exponent == 0 {
		exponent = 1
	} else {
		mantissa |= 1 << mantissaBits
	}
	exponent -= 1023 + mantissaBits
	for mantissa&1 == 0 && exponent < 0 {
		mantissa >>= 1
		exponent++
	}
	return max(0, -exponent)
}

const upperHex = "0123456789ABCDEF"

func (p *jsonPrinter) quote(out []byte) []byte {
	if p.quoted {
		out = append(out, '\\')
	}
	return append(out, '"')
}

// plainWord gives the n bytes of data before end in a word with zeros behind them if they are short, as most keys are,
// and plain. It is the word that ends with them, shifted until it begins with them.
func plainWord(data []byte, end, n int) (w uint64, ok bool) {
	if uint(n) > 8 || end < 8 {
		return 0, false
	}
	w = binary.LittleEndian.Uint64(data[end-8:end]) >> (64 - 8*uint(n))
	return w, plainASCII(w | blanks<<(8*uint(n)))
}

// word writes a word's n first bytes as a quoted string.
func (p *jsonPrinter) word(out []byte, w uint64, n int) []byte {
	if p.quoted {
		out = append(out, '\\', '"')
		out = binary.LittleEndian.AppendUint64(out, w)
		return append(out[:len(out)-8+n], '\\', '"')
	}
	out = binary.LittleEndian.AppendUint64(append(out, '"'), w)
	return append(out[:len(out)-8+n], '"')
}

// string writes the n bytes from data[at] as a quoted string; only quotes, backslashes and control characters are
// escaped.
func (p *jsonPrinter) string(out, data []byte, at, n int) ([]byte, error) {
	if err := p.spend(n); err != nil {
		return out, err
	}
	if w, ok := plainWord(data, at+n, n); ok {
		return p.word(out, w, n), nil
	}
	s := data[at : at+n]
	switch {
	case plainJSON(s), p.quoted && copyable(s):
		out = append(p.quote(out), s...)
		return p.quote(out), nil
	case p.quoted:
		return out, errJSONEscapes
	}
	return appendEscapedJSON(out, s), nil
}

// copyable says whether s is the same inside a string inside a string: UTF-8 without anything to escape.
func copyable(s []byte) bool {
	for _, b := range s {
		if b < ' ' || b == '"' || b == '\\' || b >= 0xf0 { // from 0xf0: outside the BMP
			return false
		}
	}
	return validUTF8(s)
}

// appendEscapedJSON writes a quoted string that is not plain.
func appendEscapedJSON(out, s []byte) []byte {
	out = append(out, '"')
	start := 0
	for i, b := range s {
		if b >= ' ' && b != '"' && b != '\\' {
			continue
		}
		out = appendText(out, s[start:i])
		start = i + 1
		switch b {
		case '"', '\\':
			out = append(out, '\\', b)
		case '\b':
			out = append(out, '\\', 'b')
		case '\t':
			out = append(out, '\\', 't')
		case '\f':
			out = append(out, '\\', 'f')
		case '\n':
			out = append(out, '\\', 'n')
		case '\r':
			out = append(out, '\\', 'r')
		default:
			out = append(out, '\\', 'u', '0', '0', upperHex[b>>4], upperHex[b&15])
		}
	}
	out = appendText(out, s[start:])
	return append(out, '"')
}

const (
	ones   = 0x0101_0101_0101_0101 // times a byte: the byte eight times
	blanks = ones * ' '
)

// plainASCII says whether the eight bytes of w are ASCII without anything to escape. Each difference borrows, and sets
// the high bit, where a byte is too small; ^2 swaps the quote and the blank, so that the quote is below the limit.
func plainASCII(w uint64) bool {
	return (w|(w^ones*2-ones*'!')|(w^ones*'\\'-ones))&(ones*0x80) == 0
}

// plainJSON says whether s is ASCII without anything to escape.
func plainJSON(s []byte) bool {
	for len(s) >= 8 {
		if !plainASCII(binary.LittleEndian.Uint64(s)) {
			return false
		}
		s = s[8:]
	}
	for _, b := range s {
		if b < ' ' || b >= 0x80 || b == '"' || b == '\\' {
			return false
		}
	}
	return true
}

// appendText writes characters that need no escape; what is not UTF-8 is replaced, as in columns.
func appendText(out, s []byte) []byte {
	if validUTF8(s) {
		return append(out, s...)
	}
	scratch := Scratch{buf: out}
	decodeUTF8(s, &scratch)
	return scratch.buf
}
