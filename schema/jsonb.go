package schema

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// The types of values in MySQL's binary JSON (sql-common/json_binary.h in its sources).
const (
	jsonbSmallObject = iota
	jsonbLargeObject
	jsonbSmallArray
	jsonbLargeArray
	jsonbLiteral
	jsonbInt16
	jsonbUint16
	jsonbInt32
	jsonbUint32
	jsonbInt64
	jsonbUint64
	jsonbDouble
	jsonbString
	jsonbOpaque = 15
)

// MySQL's own limit on the depth of a document.
const maxJSONDepth = 100

var (
	errJSONShort   = errors.New("JSON document is cut short")
	errJSONDeep    = fmt.Errorf("JSON document is nested deeper than %d levels", maxJSONDepth)
	errJSONOverlap = errors.New("JSON document has values that overlap")
)

// jsonPrinter writes a binary JSON document as Debezium's stream writes it: without blanks, keys in stored order. The
// text goes from call to call by value, in registers: in a field, each append would wait for the one before.
type jsonPrinter struct {
	// budget is how many bytes of the document may still be read. A document that MySQL wrote reads each byte once at
	// most; without the limit, a corrupt one could point at the same bytes again and again, and print without end.
	budget int
	// quoted makes text that can stand in a JSON string: quotes are escaped. What would need more is errJSONEscapes.
	quoted bool
}

// errJSONEscapes ends the printing of a quoted document that has more to escape than the quotes around its strings.
var errJSONEscapes = errors.New("JSON document with text to escape")

// appendJSON writes the text of a binary JSON document to dst.
func appendJSON(dst, doc []byte) ([]byte, error) {
	p := jsonPrinter{budget: len(doc)}
	return p.document(dst, doc)
}

// AppendQuotedJSON appends the text of a JSON column's cell as a JSON string, which saves the formats that want this to
// look for the quotes again. It does so for documents without control characters, quotes, backslashes and characters
// outside the BMP in strings; for others, and damaged ones, ok is false and dst as it was, and the column's [Decoder]
// has to be asked. It is safe for concurrent use.
func AppendQuotedJSON(dst, cell []byte) (text []byte, ok bool) {
	p := jsonPrinter{budget: len(cell), quoted: true}
	var err error
	if text = append(dst, '"'); len(cell) > 0 && cell[0] == jsonbSmallObject {
		text, err = p.quotedObject(text, cell[1:], 1)
	} else {
		text, err = p.document(text, cell)
	}
	if err != nil {
		return dst, false
	}
	return append(text, '"'), true
}

func (p *jsonPrinter) document(out, doc []byte) ([]byte, error) {
	if len(doc) == 0 {
		return out, errJSONShort
	}
	return p.value(out, doc[0], doc, 1, 1)
}

func (p *jsonPrinter) spend(n int) error {
	if p.budget -= n; p.budget < 0 {
		return errJSONOverlap
	}
	return nil
}

// value writes the value of a type that begins at data[at], which exists or is the end of data.
func (p *jsonPrinter) value(out []byte, kind byte, data []byte, at, depth int) ([]byte, error) {
	size := 0
	switch kind {
	case jsonbSmallObject, jsonbLargeObject, jsonbSmallArray, jsonbLargeArray:
		if depth > maxJSONDepth {
			return out, errJSONDeep
		}
		if kind == jsonbSmallObject && p.quoted {
			return p.quotedObject(out, data[at:], depth)
		}
		return p.container(out, kind, data[at:], depth)
	case jsonbString:
		n, rest, err := jsonLength(data[at:])
		if err != nil {
			return out, err
		}
		if n > len(rest) {
			return out, errJSONShort
		}
		return p.string(out, data, len(data)-len(rest), n)
	case jsonbOpaque:
		return p.opaque(out, data[at:])
	case jsonbLiteral:
		size = 1
	case jsonbInt16, jsonbUint16:
		size = 2
	case jsonbInt32, jsonbUint32:
		size = 4
	case jsonbInt64, jsonbUint64, jsonbDouble:
		size = 8
	default:
		return out, fmt.Errorf("JSON document has a value of type %d, which does not exist", kind)
	}
	if len(data)-at < size {
		return out, errJSONShort
	}
	if err := p.spend(size); err != nil {
		return out, err
	}
	return appendJSONScalar(out, kind, data[at:])
}

// appendJSONScalar writes a value of fixed size; data is long enough.
func appendJSONScalar(out []byte, kind byte, data []byte) ([]byte, error) {
	switch kind {
	case jsonbLiteral:
		switch data[0] {
		case 0:
			return append(out, "null"...), nil
		case 1:
			return append(out, "true"...), nil
		case 2:
			return append(out, "false"...), nil
		}
		return out, fmt.Errorf("JSON document has the literal %d, which does not exist", data[0])
	case jsonbInt16:
		return AppendInt(out, int64(int16(binary.LittleEndian.Uint16(data)))), nil
	case jsonbUint16:
		return AppendInt(out, int64(binary.LittleEndian.Uint16(data))), nil
	case jsonbInt32:
		return AppendInt(out, int64(int32(binary.LittleEndian.Uint32(data)))), nil
	case jsonbUint32:
		return AppendInt(out, int64(binary.LittleEndian.Uint32(data))), nil
	case jsonbInt64:
		return AppendInt(out, int64(binary.LittleEndian.Uint64(data))), nil
	case jsonbUint64:
		return strconv.AppendUint(out, binary.LittleEndian.Uint64(data), 10), nil
	}
	return appendJSONDouble(out, math.Float64frombits(binary.LittleEndian.Uint64(data)))
}

// container writes an object or array: a count, the size in bytes, for objects an entry of offset and length for each
// key, then an entry of type and value or offset for each value. Offsets count from the beginning of the container and
// have two bytes in the small form, four in the large.
func (p *jsonPrinter) container(out []byte, kind byte, data []byte, depth int) ([]byte, error) {
	width := 2
	if kind == jsonbLargeObject || kind == jsonbLargeArray {
		width = 4
	}
	object := kind == jsonbSmallObject || kind == jsonbLargeObject
	if len(data) < 2*width {
		return out, errJSONShort
	}
	count, size := jsonOffset(data, width), jsonOffset(data[width:], width)
	if size > len(data) {
		return out, errJSONShort
	}
	data = data[:size]
	keyEntry := 0
	if object {
		keyEntry = width + 2
	}
	values := 2*width + count*keyEntry
	head := values + count*(1+width)
	if head > size {
		return out, errJSONShort
	}
	if err := p.spend(head); err != nil {
		return out, err
	}
	open, shut := byte('['), byte(']')
	if object {
		open, shut = '{', '}'
	}
	out = append(out, open)
	keys, entries := data[2*width:values], data[values:head]
	for len(entries) > width {
		var err error
		if object && len(keys) >= width+2 {
			at, n := jsonOffset(keys, width), int(binary.LittleEndian.Uint16(keys[width:]))
			keys = keys[width+2:]
			if at > size || n > size-at {
				return out, errJSONShort
			}
			if w, ok := plainWord(data, at+n, n); ok { // the usual key, without a call
				out, err = p.word(out, w, n), p.spend(n)
			} else {
				out, err = p.string(out, data, at, n)
			}
			if err != nil {
				return out, err
			}
			out = append(out, ':')
		}
		kind, value := entries[0], entries[1:]
		entries = value[width:]
		if jsonInline(kind, width) {
			out, err = appendJSONScalar(out, kind, value)
		} else if at := jsonOffset(value, width); at >= size {
			err = errJSONShort
		} else if n := int(data[at]); kind == jsonbString && n < 0x80 && n < size-at { // the usual string, on a shorter way
			out, err = p.string(out, data, at+1, n)
		} else {
			out, err = p.value(out, kind, data, at, depth+1)
		}
		if err != nil {
			return out, err
		}
		if len(entries) > 0 {
			out = append(out, ',')
		}
	}
	return append(out, shut), nil
}

// quotedObject is container for small objects inside a string, the usual ones: it knows the widths, and writes short
// keys and values itself.
func (p *jsonPrinter) quotedObject(out, data []byte, depth int) ([]byte, error) {
	if len(data) < 4 {
		return out, errJSONShort
	}
	count, size := int(binary.LittleEndian.Uint16(data)), int(binary.LittleEndian.Uint16(data[2:]))
	values := 4 + 4*count
	head := values + 3*count
	if size > len(data) || head > size {
		return out, errJSONShort
	}
	if err := p.spend(head); err != nil {
		return out, err
	}
	if count == 0 {
		return append(out, "{}"...), nil
	}
	data = data[:size]
	out = append(out, '{')
	for i := range count {
		var err error
		key := binary.LittleEndian.Uint32(data[4+4*i:])
		at, n := int(key&0xffff), int(key>>16)
		if at+n > size {
			return out, errJSONShort
		}
		if w, ok := plainWord(data, at+n, n); ok {
			p.budget -= n // is looked at in the end: short strings are no more than the entries, paid above
			m := len(out)
			if cap(out)-m < 16 {
				out = slices.Grow(out, 16)
			}
			b := out[m : m+16]
			binary.LittleEndian.PutUint16(b, '\\'|'"'<<8)
			binary.LittleEndian.PutUint64(b[2:], w)
			binary.LittleEndian.PutUint32(b[2+n:], '\\'|'"'<<8|':'<<16)
			out = out[:m+5+n]
		} else {
			if out, err = p.string(out, data, at, n); err != nil {
				return out, err
			}
			out = append(out, ':')
		}
		entry := data[values+3*i : values+3*i+3]
		kind, value := entry[0], binary.LittleEndian.Uint16(entry[1:])
		switch at := int(value); kind {
		case jsonbInt16:
			out = AppendInt(out, int64(int16(value)))
		case jsonbLiteral, jsonbUint16:
			out, err = appendJSONScalar(out, kind, entry[1:])
		case jsonbString:
			if at+1 < size && at+1+int(data[at]) <= size && data[at] < 0x80 {
				n := int(data[at])
				if w, ok := plainWord(data, at+1+n, n); ok {
					p.budget -= n
					out = p.word(out, w, n)
				} else {
					out, err = p.string(out, data, at+1, n)
				}
				break
			}
			fallthrough
		default:
			if at >= size {
				return out, errJSONShort
			}
			out, err = p.value(out, kind, data, at, depth+1)
		}
		if err != nil {
			return out, err
		}
		out = append(out, ',')
	}
	out[len(out)-1] = '}'
	return out, p.spend(0)
}

// jsonInline says whether a value stands in its entry instead of at an offset.
func jsonInline(kind byte, width int) bool {
	switch kind {
	case jsonbLiteral, jsonbInt16, jsonbUint16:
		return true
	case jsonbInt32, jsonbUint32:
		return width == 4
	}
	return false
}

func jsonOffset(data []byte, width int) int {
	if width == 2 {
		return int(binary.LittleEndian.Uint16(data))
	}
	return int(binary.LittleEndian.Uint32(data))
}

// jsonLength reads a length of seven bits a byte, the least significant first.
func jsonLength(data []byte) (int, []byte, error) {
	n := 0
	for i := 0; i < 5 && i < len(data); i++ {
		n |= int(data[i]&0x7f) << (7 * i)
		if data[i]&0x80 == 0 {
			return n, data[i+1:], nil
		}
	}
	return 0, nil, errJSONShort
}

// opaque writes a value of a MySQL type that JSON does not have: decimals as numbers, times as text, all else as base64.
func (p *jsonPrinter) opaque(out, data []byte) ([]byte, error) {
	if len(data) == 0 {
		return out, errJSONShort
	}
	kind := data[0]
	n, data, err := jsonLength(data[1:])
	if err != nil {
		return out, err
	}
	if n > len(data) {
		return out, errJSONShort
	}
	data = data[:n]
	if err := p.spend(n); err != nil {
		return out, err
	}
	switch kind {
	case typeDecimal, typeNewDecimal:
		if n < 2 {
			return out, errJSONShort
		}
		precision, scale := int(data[0]), int(data[1])
		if err := checkDecimalType(precision, scale); err != nil {
			return out, err
		}
		return appendDecimalText(out, data[2:], precision, scale)
	}
	if out = p.quote(out); isTemporal(kind) {
		if n != 8 {
			return out, errJSONShort
		}
		out, err = appendJSONTemporal(out, kind, int64(binary.LittleEndian.Uint64(data)))
	} else {
		out = base64.StdEncoding.AppendEncode(out, data)
	}
	return p.quote(out), err
}

func isTemporal(kind byte) bool {
	switch kind {
	case typeDate, typeTime, typeTime2, typeDatetime, typeDatetime2, typeTimestamp, typeTimestamp2:
		return true
	}
	return false
}

// appendJSONTemporal writes a date or time from its packed form: the parts as in DATETIME or TIME above 24 bits of µs.
func appendJSONTemporal(out []byte, kind byte, packed int64) ([]byte, error) {
	negative := packed < 0
	if negative {
		packed = -packed
	}
	micros := int(packed & (1<<24 - 1))
	var c civil
	switch kind {
	case typeTime, typeTime2:
		t, err := joinTime(int(packed>>24), micros, false)
		if err != nil {
			return out, err
		}
		if negative {
			out = append(out, '-')
		}
		seconds := int(t / 1e6)
		c = civil{hour: seconds / 3600, minute: seconds / 60 % 60, second: seconds % 60, micros: micros}
		out = appendClock(out, c)
	default:
		var err error
		if c, err = unpackDatetime(uint64(packed>>24), micros); err != nil {
			return out, err
		}
		out = appendDate(out, c)
		if kind == typeDate {
			return out, nil
		}
		out = append(out, ' ')
		out = appendClock(out, c)
	}
	digits := 0
	if micros > 0 {
		for digits = 6; micros%10 == 0; digits-- {
			micros /= 10
		}
	}
	return appendFraction(out, c.micros, digits), nil
}

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
	w = binary.LittleEndian.Uint64(data[end-8:]) >> (64 - 8*uint(n))
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
