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

// jsonPrinter writes a binary JSON document as Debezium's stream writes it: without blanks, keys in stored order.
type jsonPrinter struct {
	out []byte
	// budget is how many bytes of the document may still be read. A document that MySQL wrote reads each byte once at
	// most; without the limit, a corrupt one could point at the same bytes again and again, and print without end.
	budget int
}

// appendJSON writes the text of a binary JSON document to dst.
func appendJSON(dst, doc []byte) ([]byte, error) {
	if len(doc) == 0 {
		return dst, errJSONShort
	}
	p := jsonPrinter{out: dst, budget: len(doc)}
	err := p.value(doc[0], doc[1:], 1)
	return p.out, err
}

func (p *jsonPrinter) spend(n int) error {
	if p.budget -= n; p.budget < 0 {
		return errJSONOverlap
	}
	return nil
}

// value writes the value of a type that begins at data.
func (p *jsonPrinter) value(kind byte, data []byte, depth int) error {
	size := 0
	switch kind {
	case jsonbSmallObject, jsonbLargeObject, jsonbSmallArray, jsonbLargeArray:
		if depth > maxJSONDepth {
			return errJSONDeep
		}
		return p.container(kind, data, depth)
	case jsonbString:
		n, rest, err := jsonLength(data)
		if err != nil {
			return err
		}
		if n > len(rest) {
			return errJSONShort
		}
		if err := p.spend(n); err != nil {
			return err
		}
		p.string(rest[:n])
		return nil
	case jsonbOpaque:
		return p.opaque(data)
	case jsonbLiteral:
		size = 1
	case jsonbInt16, jsonbUint16:
		size = 2
	case jsonbInt32, jsonbUint32:
		size = 4
	case jsonbInt64, jsonbUint64, jsonbDouble:
		size = 8
	default:
		return fmt.Errorf("JSON document has a value of type %d, which does not exist", kind)
	}
	if len(data) < size {
		return errJSONShort
	}
	if err := p.spend(size); err != nil {
		return err
	}
	return p.scalar(kind, data)
}

// scalar writes a value of fixed size; data is long enough.
func (p *jsonPrinter) scalar(kind byte, data []byte) error {
	switch kind {
	case jsonbLiteral:
		switch data[0] {
		case 0:
			p.out = append(p.out, "null"...)
		case 1:
			p.out = append(p.out, "true"...)
		case 2:
			p.out = append(p.out, "false"...)
		default:
			return fmt.Errorf("JSON document has the literal %d, which does not exist", data[0])
		}
	case jsonbInt16:
		p.int(int64(int16(binary.LittleEndian.Uint16(data))))
	case jsonbUint16:
		p.int(int64(binary.LittleEndian.Uint16(data)))
	case jsonbInt32:
		p.int(int64(int32(binary.LittleEndian.Uint32(data))))
	case jsonbUint32:
		p.int(int64(binary.LittleEndian.Uint32(data)))
	case jsonbInt64:
		p.int(int64(binary.LittleEndian.Uint64(data)))
	case jsonbUint64:
		p.out = strconv.AppendUint(p.out, binary.LittleEndian.Uint64(data), 10)
	case jsonbDouble:
		return p.double(math.Float64frombits(binary.LittleEndian.Uint64(data)))
	}
	return nil
}

func (p *jsonPrinter) int(n int64) {
	if uint64(n) < 10 {
		p.out = append(p.out, byte('0'+n))
		return
	}
	p.out = strconv.AppendInt(p.out, n, 10)
}

// container writes an object or array: a count, the size in bytes, for objects an entry of offset and length for each
// key, then an entry of type and value or offset for each value. Offsets count from the beginning of the container and
// have two bytes in the small form, four in the large.
func (p *jsonPrinter) container(kind byte, data []byte, depth int) error {
	width := 2
	if kind == jsonbLargeObject || kind == jsonbLargeArray {
		width = 4
	}
	object := kind == jsonbSmallObject || kind == jsonbLargeObject
	if len(data) < 2*width {
		return errJSONShort
	}
	count, size := jsonOffset(data, width), jsonOffset(data[width:], width)
	if size > len(data) {
		return errJSONShort
	}
	data = data[:size]
	keyEntry := 0
	if object {
		keyEntry = width + 2
	}
	values := 2*width + count*keyEntry
	head := values + count*(1+width)
	if head > size {
		return errJSONShort
	}
	if err := p.spend(head); err != nil {
		return err
	}
	open, shut := byte('['), byte(']')
	if object {
		open, shut = '{', '}'
	}
	p.out = append(p.out, open)
	for i := range count {
		if i > 0 {
			p.out = append(p.out, ',')
		}
		if object {
			entry := data[2*width+i*keyEntry:]
			at, n := jsonOffset(entry, width), int(binary.LittleEndian.Uint16(entry[width:]))
			if at > size || n > size-at {
				return errJSONShort
			}
			if err := p.spend(n); err != nil {
				return err
			}
			p.string(data[at : at+n])
			p.out = append(p.out, ':')
		}
		entry := data[values+i*(1+width):][:1+width]
		var err error
		if jsonInline(entry[0], width) {
			err = p.scalar(entry[0], entry[1:])
		} else if at := jsonOffset(entry[1:], width); at >= size {
			err = errJSONShort
		} else {
			err = p.value(entry[0], data[at:], depth+1)
		}
		if err != nil {
			return err
		}
	}
	p.out = append(p.out, shut)
	return nil
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
func (p *jsonPrinter) opaque(data []byte) error {
	if len(data) == 0 {
		return errJSONShort
	}
	kind := data[0]
	n, data, err := jsonLength(data[1:])
	if err != nil {
		return err
	}
	if n > len(data) {
		return errJSONShort
	}
	data = data[:n]
	if err := p.spend(n); err != nil {
		return err
	}
	switch kind {
	case typeDecimal, typeNewDecimal:
		if n < 2 {
			return errJSONShort
		}
		precision, scale := int(data[0]), int(data[1])
		if err := checkDecimalType(precision, scale); err != nil {
			return err
		}
		p.out, err = appendDecimalText(p.out, data[2:], precision, scale)
		return err
	case typeDate, typeTime, typeTime2, typeDatetime, typeDatetime2, typeTimestamp, typeTimestamp2:
		if n != 8 {
			return errJSONShort
		}
		return p.temporal(kind, int64(binary.LittleEndian.Uint64(data)))
	}
	p.out = append(p.out, '"')
	p.out = base64.StdEncoding.AppendEncode(p.out, data)
	p.out = append(p.out, '"')
	return nil
}

// temporal writes a date or time from its packed form: the parts as in DATETIME or TIME above 24 bits of µs.
func (p *jsonPrinter) temporal(kind byte, packed int64) error {
	negative := packed < 0
	if negative {
		packed = -packed
	}
	micros := int(packed & (1<<24 - 1))
	p.out = append(p.out, '"')
	var c civil
	switch kind {
	case typeTime, typeTime2:
		t, err := joinTime(int(packed>>24), micros, false)
		if err != nil {
			return err
		}
		if negative {
			p.out = append(p.out, '-')
		}
		seconds := int(t / 1e6)
		c = civil{hour: seconds / 3600, minute: seconds / 60 % 60, second: seconds % 60, micros: micros}
		p.out = appendClock(p.out, c)
	default:
		var err error
		if c, err = unpackDatetime(uint64(packed>>24), micros); err != nil {
			return err
		}
		p.out = appendDate(p.out, c)
		if kind == typeDate {
			p.out = append(p.out, '"')
			return nil
		}
		p.out = append(p.out, ' ')
		p.out = appendClock(p.out, c)
	}
	digits := 0
	if micros > 0 {
		for digits = 6; micros%10 == 0; digits-- {
			micros /= 10
		}
	}
	p.out = appendFraction(p.out, c.micros, digits)
	p.out = append(p.out, '"')
	return nil
}

// double writes what Java's Double.toString gives, but where that has an exponent, all the digits that the number has.
// Between 1e-3 and 1e7, where it has none, Java's digits are the shortest ones that give the number back.
func (p *jsonPrinter) double(f float64) error {
	abs := math.Abs(f)
	switch {
	case abs == 0 || abs >= 1e-3 && abs < 1e7:
		start := len(p.out)
		p.out = strconv.AppendFloat(p.out, f, 'f', -1, 64)
		for _, b := range p.out[start:] {
			if b == '.' {
				return nil
			}
		}
		p.out = append(p.out, ".0"...)
	case math.IsInf(f, 0) || math.IsNaN(f):
		return errors.New("JSON document has a number that is not finite")
	default:
		p.out = strconv.AppendFloat(p.out, f, 'f', fractionBits(abs), 64)
	}
	return nil
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

// string writes a quoted string; only quotes, backslashes and control characters are escaped.
func (p *jsonPrinter) string(s []byte) {
	if plainJSON(s) {
		p.out = append(p.out, '"')
		p.out = append(p.out, s...)
		p.out = append(p.out, '"')
		return
	}
	p.out = append(p.out, '"')
	start := 0
	for i, b := range s {
		if b >= ' ' && b != '"' && b != '\\' {
			continue
		}
		p.text(s[start:i])
		start = i + 1
		switch b {
		case '"', '\\':
			p.out = append(p.out, '\\', b)
		case '\b':
			p.out = append(p.out, '\\', 'b')
		case '\t':
			p.out = append(p.out, '\\', 't')
		case '\f':
			p.out = append(p.out, '\\', 'f')
		case '\n':
			p.out = append(p.out, '\\', 'n')
		case '\r':
			p.out = append(p.out, '\\', 'r')
		default:
			p.out = append(p.out, '\\', 'u', '0', '0', upperHex[b>>4], upperHex[b&15])
		}
	}
	p.text(s[start:])
	p.out = append(p.out, '"')
}

// plainJSON says whether s is ASCII without anything to escape.
func plainJSON(s []byte) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for len(s) >= 8 {
		w := binary.LittleEndian.Uint64(s)
		quote, backslash := w^ones*'"', w^ones*'\\'
		if (w|(w-ones*' ')|(quote-ones)|(backslash-ones))&highs != 0 { // may say no for an escape's neighbour only
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

// text writes characters that need no escape; what is not UTF-8 is replaced, as in columns.
func (p *jsonPrinter) text(s []byte) {
	if validUTF8(s) {
		p.out = append(p.out, s...)
		return
	}
	scratch := Scratch{buf: p.out}
	decodeUTF8(s, &scratch)
	p.out = scratch.buf
}
