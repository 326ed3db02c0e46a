package schema

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
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
// has to be asked. last is the column's; nil: nothing is remembered. It is safe for concurrent use with different ones.
func AppendQuotedJSON(dst, cell []byte, last *LastKeys) (text []byte, ok bool) {
	p := jsonPrinter{budget: len(cell), quoted: true}
	var err error
	if text = append(dst, '"'); len(cell) > 0 && cell[0] == jsonbSmallObject {
		text, err = p.smallObject(text, cell[1:], 1, last)
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
			return p.smallObject(out, data[at:], depth, nil)
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
		c = clockOf(t)
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
	return appendShortFraction(out, c.micros), nil
}
