package schema

// mapText maps CHAR to LONGTEXT, and their binary kin: the collation says which it is.
func mapText(c *Column) (mapping, error) {
	if c.Collation == binaryCollation {
		return mapBinary(c), nil
	}
	charset := ""
	if c.Def != nil {
		charset = c.Def.Charset
	}
	text, err := textDecoderFor(c.Collation, charset)
	if err != nil {
		return mapping{}, err
	}
	return mapping{
		typ:      Type{Type: "string"},
		fallback: Value{Kind: String, Bytes: []byte{}},
		layout:   textLayout(text),
		parse:    parseText,
		decode: func(null Value) Decoder {
			return func(cell []byte, scratch *Scratch, out *Value) error {
				if cell == nil {
					*out = null
					return nil
				}
				out.Kind, out.Bytes = String, text(cell, scratch)
				return nil
			}
		},
	}, nil
}

// mapBinary maps BINARY, VARBINARY and BLOB. The server cuts the zeros at the end of BINARY(n), so they are put back.
func mapBinary(c *Column) mapping {
	length := 0
	if c.Type == typeString {
		length = c.charBytes()
	}
	return mapping{
		typ:      Type{Type: "bytes"},
		fallback: Value{Kind: Bytes, Bytes: []byte{}},
		parse:    parseBytes,
		decode: func(null Value) Decoder {
			return func(cell []byte, scratch *Scratch, out *Value) error {
				if cell == nil {
					*out = null
					return nil
				}
				if len(cell) >= length {
					*out = Value{Kind: Bytes, Bytes: cell}
					return nil
				}
				b := scratch.take(length)
				clear(b[copy(b, cell):])
				*out = Value{Kind: Bytes, Bytes: b}
				return nil
			}
		},
	}
}

// charBytes is the length of a CHAR or BINARY in bytes: lengths above 255 have their upper bits in the type byte,
// inverted.
func (c *Column) charBytes() int {
	return int(c.Meta>>12&3^3)<<8 | int(c.Meta&0xff)
}
