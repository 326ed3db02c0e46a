package schema

import (
	"encoding/base64"
	"encoding/hex"
)

// mapText maps CHAR to LONGTEXT, and their binary kin: the collation says which it is.
func (m *mapper) mapText() (mapping, error) {
	c := m.c
	if c.Collation == binaryCollation {
		return mapBinary(c, m.Binary), nil
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
		parse:    textDefault,
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
func mapBinary(c *Column, mode BinaryMode) mapping {
	length := 0
	if c.Type == typeString {
		length = c.charBytes()
	}
	if mode != BinaryBytes {
		return mapBinaryText(length, binaryText(mode))
	}
	return mapping{
		typ:      Type{Type: "bytes"},
		fallback: Value{Kind: Bytes, Bytes: []byte{}},
		binary:   true,
		parse: func(text string) (*Value, error) {
			return &Value{Kind: Bytes, Bytes: []byte(withoutIntroducer(text))}, nil
		},
		decode: func(null Value) Decoder {
			return func(cell []byte, scratch *Scratch, out *Value) error {
				if cell == nil {
					*out = null
					return nil
				}
				*out = Value{Kind: Bytes, Bytes: padded(cell, length, scratch)}
				return nil
			}
		},
	}
}

// mapBinaryText is mapBinary for the modes that write text.
func mapBinaryText(length int, encode func(dst, src []byte) []byte) mapping {
	return mapping{
		typ:      Type{Type: "string"},
		fallback: Value{Kind: String, Bytes: []byte{}},
		layout:   Layout{Kind: LayoutPlain},
		parse: func(text string) (*Value, error) {
			return &Value{Kind: String, Bytes: encode(nil, []byte(withoutIntroducer(text)))}, nil
		},
		decode: func(null Value) Decoder {
			return func(cell []byte, scratch *Scratch, out *Value) error {
				if cell == nil {
					*out = null
					return nil
				}
				cell = padded(cell, length, scratch)
				start := len(scratch.buf)
				scratch.buf = encode(scratch.buf, cell)
				*out = Value{Kind: String, Bytes: scratch.since(start)}
				return nil
			}
		},
	}
}

func binaryText(mode BinaryMode) func(dst, src []byte) []byte {
	switch mode {
	case BinaryBase64:
		return base64.StdEncoding.AppendEncode
	case BinaryBase64URL:
		return base64.URLEncoding.AppendEncode
	}
	return hex.AppendEncode
}

// padded is cell with zeros at its end, if it is shorter than length.
func padded(cell []byte, length int, scratch *Scratch) []byte {
	if len(cell) >= length {
		return cell
	}
	b := scratch.take(length)
	clear(b[copy(b, cell):])
	return b
}

// charBytes is the length of a CHAR or BINARY in bytes: lengths above 255 have their upper bits in the type byte,
// inverted.
func (c *Column) charBytes() int {
	return int(c.Meta>>12&3^3)<<8 | int(c.Meta&0xff)
}
