package emitter

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/tidemark-cdc/tidemark/schema"
)

// JSON as Kafka Connect's JsonConverter (Jackson) prints it: no blanks, control characters as \u with upper case hex,
// characters outside the BMP as two \u escapes, bytes in base64, numbers as Java prints them.

// escape classes of a byte inside a string: copied, or the letter of its short escape, or one of these.
const (
	escapeHex  = 'u' // \u00XX
	escapePair = 'p' // first byte of a character outside the BMP
)

var escapes = func() (t [256]byte) {
	for c := range 0x20 {
		t[c] = escapeHex
	}
	t['\b'], t['\t'], t['\n'], t['\f'], t['\r'] = 'b', 't', 'n', 'f', 'r'
	t['"'], t['\\'] = '"', '\\'
	for c := 0xf0; c < 0x100; c++ {
		t[c] = escapePair
	}
	return t
}()

// appendQuoted appends the UTF-8 text s as a JSON string. It looks at eight bytes at once, and copies them all even if
// only the first few need no escape: what is too much is overwritten.
func appendQuoted(dst, s []byte) []byte {
	dst = append(dst, '"')
	for len(s) >= 8 {
		w := binary.LittleEndian.Uint64(s)
		dst = binary.LittleEndian.AppendUint64(dst, w)
		if plainASCII(w) {
			s = s[8:]
			continue
		}
		hit := special(w)
		if hit == 0 {
			s = s[8:]
			continue
		}
		n := bits.TrailingZeros64(hit) / 8
		dst = dst[:len(dst)-8+n]
		if c := s[n]; c == '"' || c == '\\' {
			dst = append(dst, '\\', c)
			s = s[n+1:]
			continue
		}
		var m int
		dst, m = appendEscaped(dst, s[n:])
		s = s[n+m:]
	}
	if n := len(s); n > 0 {
		if w := shortWord(s); special(w) == 0 {
			dst = binary.LittleEndian.AppendUint64(dst, w)
			dst = dst[:len(dst)-8+n]
			s = nil
		}
	}
	for len(s) > 0 {
		if escapes[s[0]] == 0 {
			dst = append(dst, s[0])
			s = s[1:]
			continue
		}
		var m int
		dst, m = appendEscaped(dst, s)
		s = s[m:]
	}
	return append(dst, '"')
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// plainASCII says that no byte of w needs an escape and all are ASCII.
func plainASCII(w uint64) bool { return escapeMarks(w)&highs == 0 }

// escapeMarks sets a high bit if w is not plain ASCII. Each difference borrows, and sets the high bit, where a byte is too
// small; ^2 swaps the quote and the blank, so that the quote is below the limit.
func escapeMarks(w uint64) uint64 { return w | (w ^ ones*2 - ones*'!') | (w ^ ones*'\\' - ones) }

// appendPlain appends s as a JSON string if it is ASCII without anything to escape, and says whether it is. Nothing
// need be known of s: it may be the bytes of a cell.
func appendPlain(dst, s []byte) ([]byte, bool) {
	// Words are copied while they are looked at. The last bytes are those of a whole word, too: of a short text filled
	// up with blanks, of a longer one with some done already.
	n := len(dst)
	if cap(dst)-n < len(s)+10 {
		dst = slices.Grow(dst, len(s)+10)
	}
	if len(s) < 8 {
		w := shortWord(s)
		binary.LittleEndian.PutUint64(dst[n+1:n+9], w)
		if !plainASCII(w) {
			return dst, false
		}
	} else {
		to := dst[n+1 : cap(dst)][:len(s)]
		var marks uint64
		for i := 0; i < len(s)-16; i += 16 {
			v, w := binary.LittleEndian.Uint64(s[i:i+8]), binary.LittleEndian.Uint64(s[i+8:i+16])
			binary.LittleEndian.PutUint64(to[i:i+8], v)
			binary.LittleEndian.PutUint64(to[i+8:i+16], w)
			marks |= escapeMarks(v) | escapeMarks(w)
		}
		first, last := max(len(s)-16, 0), len(s)-8
		v, w := binary.LittleEndian.Uint64(s[first:first+8]), binary.LittleEndian.Uint64(s[last:last+8])
		binary.LittleEndian.PutUint64(to[first:first+8], v)
		binary.LittleEndian.PutUint64(to[last:last+8], w)
		if (marks|escapeMarks(v)|escapeMarks(w))&highs != 0 {
			return dst, false
		}
	}
	dst = dst[:n+2+len(s)]
	dst[n], dst[len(dst)-1] = '"', '"'
	return dst, true
}

// shortWord is a text of less than eight bytes as a word filled up with blanks.
func shortWord(s []byte) uint64 {
	if len(s) >= 4 {
		return halfWord(s)
	}
	return tinyWord(s)
}

// halfWord is shortWord for a text of at least four bytes.
func halfWord(s []byte) uint64 {
	n := len(s)
	return uint64(ones*' ')<<(8*n&63) | uint64(binary.LittleEndian.Uint32(s)) | uint64(binary.LittleEndian.Uint32(s[n-4:n]))<<((8*n-32)&63)
}

// tinyWord is shortWord for a text of less than four bytes.
func tinyWord(s []byte) uint64 {
	n := len(s)
	if n == 0 {
		return ones * ' '
	}
	half := n / 2
	return uint64(ones*' ')<<(8*n&63) | uint64(s[0]) | uint64(s[half])<<(8*half&63) | uint64(s[n-1])<<((8*n-8)&63)
}

// special marks the bytes of w that need an escape by their high bits: those below 0x20, quotes and backslashes, and
// those from 0xf0. The lowest mark is right, those above may be wrong; none is right, too.
func special(w uint64) uint64 {
	quote, backslash := w^ones*'"', w^ones*'\\'
	return ((w-ones*0x20)&^w | (quote-ones)&^quote | (backslash-ones)&^backslash | w&(w<<1)&(w<<2)&(w<<3)) & highs
}

const upperHex = "0123456789ABCDEF"

// appendEscaped appends the character that s begins with in its escaped form and returns its length in s.
func appendEscaped(dst, s []byte) ([]byte, int) {
	switch e := escapes[s[0]]; e {
	case escapeHex:
		return append(dst, '\\', 'u', '0', '0', upperHex[s[0]>>4], upperHex[s[0]&15]), 1
	case escapePair:
		r, n := utf8.DecodeRune(s)
		if r < 0x10000 { // not UTF-8, which a Value's text always is
			return utf8.AppendRune(dst, utf8.RuneError), n
		}
		r -= 0x10000
		return appendUnit(appendUnit(dst, 0xd800|uint16(r>>10)), 0xdc00|uint16(r&0x3ff)), n
	default:
		return append(dst, '\\', e), 1
	}
}

func appendUnit(dst []byte, u uint16) []byte {
	return append(dst, '\\', 'u', upperHex[u>>12], upperHex[u>>8&15], upperHex[u>>4&15], upperHex[u&15])
}

const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// appendBase64 appends b as a JSON string in padded standard base64.
func appendBase64(dst, b []byte) []byte {
	dst = slices.Grow(dst, (len(b)+2)/3*4+2)
	dst = append(dst, '"')
	for len(b) >= 3 {
		v := uint(b[0])<<16 | uint(b[1])<<8 | uint(b[2])
		dst = append(dst, base64Digits[v>>18&63], base64Digits[v>>12&63], base64Digits[v>>6&63], base64Digits[v&63])
		b = b[3:]
	}
	switch len(b) {
	case 2:
		v := uint(b[0])<<10 | uint(b[1])<<2
		dst = append(dst, base64Digits[v>>12&63], base64Digits[v>>6&63], base64Digits[v&63], '=')
	case 1:
		v := uint(b[0]) << 4
		dst = append(dst, base64Digits[v>>6&63], base64Digits[v&63], '=', '=')
	}
	return append(dst, '"')
}

// appendBase64Int is appendBase64 for a number in two's complement, big-endian, as short as can be.
func appendBase64Int(dst []byte, v int64) []byte {
	const longest = 1 + 3*4 + 1
	n := len(dst)
	if cap(dst)-n < longest {
		dst = slices.Grow(dst, longest)
	}
	size := bits.Len64(uint64(v^v>>63))/8 + 1 // one bit for the sign
	b := dst[n : n+longest]
	b[0], n = '"', 1
	for rest := uint64(v) << (64 - 8*size); size > 0; size -= 3 {
		binary.LittleEndian.PutUint32(b[n:], uint32(base64Digits[rest>>58])|uint32(base64Digits[rest>>52&63])<<8|
			uint32(base64Digits[rest>>46&63])<<16|uint32(base64Digits[rest>>40&63])<<24)
		rest <<= 24
		n += 4
	}
	for ; size < 0; size++ { // as many bytes were missing in the last group
		b[n+size] = '='
	}
	b[n] = '"'
	return dst[:len(dst)+n+1]
}

// appendNumber appends a float or double; Jackson writes those that are not finite as strings.
func appendNumber(dst []byte, v float64, single bool) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		dst = append(dst, '"')
		dst = schema.AppendDouble(dst, v)
		return append(dst, '"')
	}
	if single {
		return schema.AppendFloat(dst, float32(v))
	}
	return schema.AppendDouble(dst, v)
}

// appendJSON appends a value that is not Null. scale is that of a Decimal to be written as a number; it is below 0 for
// bytes to be written in base64.
func appendJSON(dst []byte, v *schema.Value, scale int) ([]byte, error) {
	switch v.Kind {
	case schema.Bool:
		if v.Int != 0 {
			return append(dst, "true"...), nil
		}
		return append(dst, "false"...), nil
	case schema.Int:
		return schema.AppendInt(dst, v.Int), nil
	case schema.Float:
		return appendNumber(dst, v.Float, true), nil
	case schema.Double:
		return appendNumber(dst, v.Float, false), nil
	case schema.String:
		return appendQuoted(dst, v.Bytes), nil
	case schema.Bytes:
		if scale >= 0 {
			return appendDecimal(dst, v.Bytes, scale), nil
		}
		return appendBase64(dst, v.Bytes), nil
	case schema.Point:
		x, y, err := pointXY(v.Bytes)
		if err != nil {
			return dst, err
		}
		dst = append(dst, `{"x":`...)
		dst = appendNumber(dst, x, false)
		dst = append(dst, `,"y":`...)
		dst = appendNumber(dst, y, false)
		dst = append(dst, `,"wkb":`...)
		dst = appendBase64(dst, v.Bytes)
		return appendSRID(dst, v.Int), nil
	case schema.Geometry:
		dst = append(dst, `{"wkb":`...)
		dst = appendBase64(dst, v.Bytes)
		return appendSRID(dst, v.Int), nil
	case schema.Vector:
		return appendVector(dst, ",", v.Bytes)
	}
	return dst, errors.New("no value of a known kind")
}

func appendSRID(dst []byte, srid int64) []byte {
	dst = append(dst, `,"srid":`...)
	if srid == schema.NoSRID {
		return append(dst, "null}"...)
	}
	return append(strconv.AppendInt(dst, javaSRID(srid), 10), '}')
}

// javaSRID is an SRID as Java has it: of 32 bits with a sign.
func javaSRID(srid int64) int64 { return int64(int32(srid)) }

// pointXY reads the coordinates of a WKB point of either byte order.
func pointXY(wkb []byte) (x, y float64, err error) {
	if len(wkb) < 21 {
		return 0, 0, errors.New("a point of less than 21 bytes")
	}
	a, b := binary.LittleEndian.Uint64(wkb[5:]), binary.LittleEndian.Uint64(wkb[13:])
	if wkb[0] == 0 {
		a, b = bits.ReverseBytes64(a), bits.ReverseBytes64(b)
	}
	return math.Float64frombits(a), math.Float64frombits(b), nil
}

// appendVector appends 32-bit floats in brackets.
func appendVector(dst []byte, between string, b []byte) ([]byte, error) {
	if len(b)%4 != 0 {
		return dst, errors.New("a vector whose length is not a multiple of 4 bytes")
	}
	dst = append(dst, '[')
	for i := 0; i < len(b); i += 4 {
		if i > 0 {
			dst = append(dst, between...)
		}
		v := math.Float32frombits(binary.LittleEndian.Uint32(b[i:]))
		dst = appendNumber(dst, float64(v), true)
	}
	return append(dst, ']'), nil
}

// appendSchema appends a Connect schema as JsonConverter prints it. field is the name that a struct's member has in
// its parent, nil outside structs; numbers says that decimals are numbers, in defaults too.
func appendSchema(dst []byte, t *schema.Type, field *string, numbers bool) ([]byte, error) {
	var err error
	dst = append(dst, `{"type":`...)
	dst = appendQuoted(dst, []byte(t.Type))
	if t.Type == "struct" {
		dst = append(dst, `,"fields":[`...)
		for i := range t.Fields {
			if i > 0 {
				dst = append(dst, ',')
			}
			f := &t.Fields[i]
			if dst, err = appendSchema(dst, f.Type, &f.Name, numbers); err != nil {
				return dst, err
			}
		}
		dst = append(dst, ']')
	}
	for _, part := range [...]struct {
		name string
		typ  *schema.Type
	}{{"items", t.Items}, {"keys", t.Keys}, {"values", t.Values}} {
		if part.typ == nil {
			continue
		}
		dst = append(dst, `,"`...)
		dst = append(dst, part.name...)
		dst = append(dst, `":`...)
		if dst, err = appendSchema(dst, part.typ, nil, numbers); err != nil {
			return dst, err
		}
	}
	dst = strconv.AppendBool(append(dst, `,"optional":`...), t.Optional)
	if t.Name != "" {
		dst = appendQuoted(append(dst, `,"name":`...), []byte(t.Name))
	}
	if t.Version != 0 {
		dst = strconv.AppendInt(append(dst, `,"version":`...), int64(t.Version), 10)
	}
	if t.Doc != "" || t.BlankDoc {
		dst = appendQuoted(append(dst, `,"doc":`...), []byte(t.Doc))
	}
	if len(t.Parameters) > 0 {
		dst = append(dst, `,"parameters":{`...)
		for i, p := range t.Parameters {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendQuoted(dst, []byte(p.Name))
			dst = append(dst, ':')
			dst = appendQuoted(dst, []byte(p.Value))
		}
		dst = append(dst, '}')
	}
	if t.Default != nil && t.Default.Kind != schema.Null {
		scale, decimal, err := decimalScale(t)
		if err != nil {
			return dst, err
		}
		if !decimal || !numbers {
			scale = -1
		}
		dst = append(dst, `,"default":`...)
		if dst, err = appendJSON(dst, t.Default, scale); err != nil {
			return dst, err
		}
	}
	if field != nil {
		dst = appendQuoted(append(dst, `,"field":`...), []byte(*field))
	}
	return append(dst, '}'), nil
}
