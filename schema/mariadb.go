package schema

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
)

// mariaDB maps the types that only MariaDB has. In TABLE_MAP they are other types (UUID and INET6 BINARY(16), INET4
// BINARY(4), VECTOR VARBINARY, JSON LONGTEXT), so that only the definition tells. ok is false for all others.
func (m *mapper) mariaDB() (mapped mapping, ok bool, err error) {
	c := m.c
	if c.Def == nil || !isText(c) {
		return mapping{}, false, nil
	}
	binary := c.Collation == binaryCollation
	switch strings.ToUpper(c.Def.Type) {
	case "UUID":
		if binary {
			mapped := mapFixed("UUID", 16, appendUUID)
			mapped.typ.Name, mapped.typ.Version = uuidName, 1
			return mapped, true, nil
		}
	case "INET6":
		if binary {
			return mapFixed("INET6", 16, appendInet6), true, nil
		}
	case "INET4":
		if binary {
			return mapFixed("INET4", 4, appendInet4), true, nil
		}
	case "VECTOR":
		if binary {
			return mapVector(), true, nil
		}
	case "JSON": // in the text of a DDL statement; SHOW CREATE TABLE has LONGTEXT
		if !binary {
			mapped, err := m.mapText()
			mapped.typ.Name, mapped.typ.Version = jsonName, 1
			mapped.fallback = Value{Kind: String, Bytes: []byte("{}")}
			return mapped, true, err
		}
	}
	return mapping{}, false, nil
}

// mapFixed maps a type of so many bytes, of which the binlog lacks the zeros at the end, as text. No default is read:
// Debezium knows none of UUID and none of these types at all.
func mapFixed(name string, size int, text func(dst, b []byte) []byte) mapping {
	return mapping{
		typ:      Type{Type: "string"},
		fallback: Value{Kind: String, Bytes: []byte{}},
		layout:   Layout{Kind: LayoutPlain},
		decode: func(null Value) Decoder {
			return func(cell []byte, scratch *Scratch, out *Value) error {
				if cell == nil {
					*out = null
					return nil
				}
				if len(cell) > size {
					return wrongSize(name, len(cell), size)
				}
				cell = padded(cell, size, scratch)
				start := len(scratch.buf)
				scratch.buf = text(scratch.buf, cell)
				*out = Value{Kind: String, Bytes: scratch.since(start)}
				return nil
			}
		},
	}
}

// appendUUID writes the usual form in lower case.
func appendUUID(dst, b []byte) []byte {
	for i, end := range [...]int{4, 6, 8, 10, 16} {
		start := 0
		if i > 0 {
			dst = append(dst, '-')
			start = [...]int{0, 4, 6, 8, 10}[i]
		}
		dst = hex.AppendEncode(dst, b[start:end])
	}
	return dst
}

func appendInet4(dst, b []byte) []byte {
	for i, c := range b {
		if i > 0 {
			dst = append(dst, '.')
		}
		dst = strconv.AppendUint(dst, uint64(c), 10)
	}
	return dst
}

// appendInet6 writes the form that MariaDB does: the longest run of zeros is left out, even if it is a single one, and
// addresses that hold one of IPv4 end with that.
func appendInet6(dst, b []byte) []byte {
	var words [8]uint16
	for i := range words {
		words[i] = binary.BigEndian.Uint16(b[2*i:])
	}
	gap, size := 0, 0
	for i := 0; i < len(words); i++ {
		n := 0
		for i+n < len(words) && words[i+n] == 0 {
			n++
		}
		if n > size {
			gap, size = i, n
		}
		i += n
	}
	four := gap == 0 && (size == 6 || size == 5 && words[5] == 0xffff)
	for i := 0; i < len(words); i++ {
		if size > 0 && i == gap {
			dst = append(dst, ':')
			if i += size - 1; i == len(words)-1 {
				dst = append(dst, ':')
			}
			continue
		}
		if i > 0 {
			dst = append(dst, ':')
		}
		if four && i == 6 {
			return appendInet4(dst, b[12:])
		}
		dst = strconv.AppendUint(dst, uint64(words[i]), 16)
	}
	return dst
}
