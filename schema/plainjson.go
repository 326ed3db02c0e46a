package schema

import (
	"encoding/binary"
	"slices"
)

// AppendJSON appends the text of a JSON column's cell, as the column's [Decoder] gives it. For NULL and damaged cells ok is
// false and dst as it was, and the decoder has to be asked. It is safe for concurrent use.
func AppendJSON(dst, cell []byte) (text []byte, ok bool) {
	p := jsonPrinter{budget: len(cell)}
	var err error
	if len(cell) > 0 && cell[0] == jsonbSmallObject {
		text, err = p.plainObject(dst, cell[1:])
	} else {
		text, err = p.document(dst, cell)
	}
	if err != nil {
		return dst, false
	}
	return text, true
}

// plainObject is quotedObject for an object that is a whole document and stands in no string.
func (p *jsonPrinter) plainObject(out, data []byte) ([]byte, error) {
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
		key := binary.LittleEndian.Uint32(data[4+4*i : 8+4*i])
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
			b[0] = '"'
			binary.LittleEndian.PutUint64(b[1:], w)
			binary.LittleEndian.PutUint16(b[1+n:3+n], '"'|':'<<8)
			out = out[:m+3+n]
		} else {
			if out, err = p.string(out, data, at, n); err != nil {
				return out, err
			}
			out = append(out, ':')
		}
		entry := (*[3]byte)(data[values+3*i : values+3*i+3])
		kind, value := entry[0], binary.LittleEndian.Uint16(entry[1:])
		switch at := int(value); kind {
		case jsonbInt16:
			out = AppendInt(out, int64(int16(value)))
		case jsonbUint16:
			out = AppendInt(out, int64(value))
		case jsonbLiteral:
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
			out, err = p.value(out, kind, data, at, 2)
		}
		if err != nil {
			return out, err
		}
		out = append(out, ',')
	}
	out[len(out)-1] = '}'
	return out, p.spend(0)
}
