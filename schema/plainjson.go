package schema

import (
	"encoding/binary"
	"slices"
)

// AppendJSON appends the text of a JSON column's cell, as the column's [Decoder] gives it. For NULL and damaged cells ok is
// false and dst as it was, and the decoder has to be asked. last is the column's; nil: nothing is remembered. It is safe for
// concurrent use with different ones.
func AppendJSON(dst, cell []byte, last *LastKeys) (text []byte, ok bool) {
	p := jsonPrinter{budget: len(cell)}
	var err error
	if len(cell) > 0 && cell[0] == jsonbSmallObject {
		text, err = p.smallObject(dst, cell[1:], 1, last)
	} else {
		text, err = p.document(dst, cell)
	}
	if err != nil {
		return dst, false
	}
	return text, true
}

// smallObject is container for small objects, the usual ones, in a string or as a whole document: it knows the widths, and
// most members are written by putMembers. last may know its keys; it is nil inside documents.
func (p *jsonPrinter) smallObject(out, data []byte, depth int, last *LastKeys) ([]byte, error) {
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
	var known []jsonKey
	if last != nil {
		known = last.of(data, count, p.quoted)
	}
	if cap(out)-len(out) < memberRoom {
		out = slices.Grow(out, memberRoom*(count+1))
	}
	out = append(out, '{')
	for i := 0; ; i++ {
		var end int
		end, i = p.putMembers(out, data, i, known)
		if out = out[:end]; i >= count {
			break
		}
		var err error
		if out, err = p.member(out, data[4+4*i:], data[values+3*i:], data, depth); err != nil {
			return out, err
		}
		out = append(out, ',')
		if cap(out)-len(out) < memberRoom { // which may have been all
			out = slices.Grow(out, memberRoom*(count-i))
		}
	}
	out[len(out)-1] = '}'
	return out, p.spend(0)
}

// memberRoom is the room that a member that putMembers writes may need, and so much more that no place in it has to be checked.
const memberRoom = 72

// literals are the texts of literals with the comma behind them, and literalSizes their lengths.
var (
	literals = [4]uint64{
		'n' | 'u'<<8 | 'l'<<16 | 'l'<<24 | ','<<32, 't' | 'r'<<8 | 'u'<<16 | 'e'<<24 | ','<<32,
		'f' | 'a'<<8 | 'l'<<16 | 's'<<24 | 'e'<<32 | ','<<40,
	}
	literalSizes = [4]uint64{5, 5, 6}
)

// putMembers writes members of a small object from first on, each with a comma, behind out, within its capacity. It returns
// where they end and the first member that is not written, since it has more than a short plain key with a short plain
// string, a literal or a number of 16 bits, or needs more room. Keys that are known need not be short. It calls nothing, so
// that all it goes by stays in registers.
func (p *jsonPrinter) putMembers(out, data []byte, first int, known []jsonKey) (end, done int) {
	quote, q := uint64('"'), uint64(1)
	if p.quoted {
		quote, q = '\\'|'"'<<8, 2
	}
	n := uint64(len(out))
	out = out[:cap(out)]
	count := int(binary.LittleEndian.Uint16(data))
	keys, values := data[4:4+4*count], 4+4*count
	spent := 0 // is looked at in the end: short strings are no more than the entries, which are paid
	i := first
	for ; i < count && n+memberRoom <= uint64(len(out)); i++ {
		to := (*[memberRoom]byte)(out[n : n+memberRoom])
		var at uint64
		var paid int
		if i < len(known) {
			k := &known[i]
			*(*[len(k.text)]byte)(to[:]) = k.text
			at, paid = k.size, k.paid
		} else {
			key := binary.LittleEndian.Uint32(keys[4*i : 4*i+4])
			size := uint64(key >> 16)
			w, ok := shortWord(data, uint64(key&0xffff)+size, size)
			if !ok {
				break
			}
			paid = int(size)
			binary.LittleEndian.PutUint16(to[:], uint16(quote))
			binary.LittleEndian.PutUint64(to[q&3:], w)
			at = q + size
			binary.LittleEndian.PutUint32(to[at&15:], uint32(quote|':'<<(8*q&63)))
			at += q + 1
		}

		entry := binary.LittleEndian.Uint32(data[values+3*i-1 : values+3*i+3]) // and the byte before it
		kind, value := byte(entry>>8), uint16(entry>>16)
		switch kind {
		case jsonbString:
			start := uint64(value)
			if start >= uint64(len(data)) {
				return p.putSpent(spent, n, i)
			}
			size := uint64(data[start])
			w, ok := shortWord(data, start+1+size, size)
			if !ok {
				return p.putSpent(spent, n, i)
			}
			paid += int(size)
			binary.LittleEndian.PutUint16(to[at&31:], uint16(quote))
			binary.LittleEndian.PutUint64(to[(at&31)+(q&3):], w)
			at += q + size
			binary.LittleEndian.PutUint32(to[at&63:], uint32(quote|','<<(8*q&63)))
			at += q + 1
		case jsonbLiteral:
			if value&0xff > 2 {
				return p.putSpent(spent, n, i)
			}
			binary.LittleEndian.PutUint64(to[at&31:], literals[value&3])
			at += literalSizes[value&3]
		case jsonbInt16, jsonbUint16:
			v := uint32(value)
			if kind == jsonbInt16 && value >= 1<<15 {
				v = 1<<16 - v
				to[at&31] = '-'
				at++
			}
			digits, size := fiveDigits(v)
			binary.LittleEndian.PutUint64(to[at&63:], digits|','<<(8*size&63))
			at += size + 1
		default:
			return p.putSpent(spent, n, i)
		}
		n += at
		spent += paid
	}
	return p.putSpent(spent, n, i)
}

func (p *jsonPrinter) putSpent(spent int, n uint64, i int) (end, done int) {
	p.budget -= spent
	return int(n), i
}

// member writes a member without its comma: of its entries for the key and the value in an object.
func (p *jsonPrinter) member(out, key, entry, data []byte, depth int) ([]byte, error) {
	at, n := int(binary.LittleEndian.Uint16(key)), int(binary.LittleEndian.Uint16(key[2:]))
	if at+n > len(data) {
		return out, errJSONShort
	}
	out, err := p.string(out, data, at, n)
	if err != nil {
		return out, err
	}
	out = append(out, ':')
	kind, entry := entry[0], entry[1:3]
	if jsonInline(kind, 2) {
		return appendJSONScalar(out, kind, entry)
	}
	if at = int(binary.LittleEndian.Uint16(entry)); at >= len(data) {
		return out, errJSONShort
	}
	if n := int(data[at]); kind == jsonbString && n < 0x80 && n < len(data)-at { // the usual string, on a shorter way
		return p.string(out, data, at+1, n)
	}
	return p.value(out, kind, data, at, depth+1)
}

// shortWord is plainWord for at least one byte, of data that may end before.
func shortWord(data []byte, end, n uint64) (w uint64, ok bool) {
	if n-1 > 7 || end < 8 || end > uint64(len(data)) {
		return 0, false
	}
	w = binary.LittleEndian.Uint64(data[end-8:end]) >> ((64 - 8*n) & 63)
	return w, plainASCII(w | (blanks-' ')<<((8*n-8)&63))
}

// fiveDigits are the digits of a number below 100,000 in a word, and how many there are.
func fiveDigits(n uint32) (digits, size uint64) {
	switch {
	case n < 10:
		return uint64('0' + n), 1
	case n < 100:
		return uint64(pairs[n]), 2
	}
	high := n / 10_000
	n -= 10_000 * high
	digits = uint64(pairs[n/100%100]) | uint64(pairs[n%100])<<16
	switch {
	case high > 0:
		return uint64('0'+high) | digits<<8, 5
	case n < 1_000:
		return digits >> 8, 3
	}
	return digits, 4
}
