package schema

import (
	"encoding/binary"
	"fmt"
	"strconv"
)

func mapBool() mapping {
	return mapping{
		typ:      Type{Type: "boolean"},
		fallback: Value{Kind: Bool},
		parse:    orError(parseBool),
		decode: func(null Value) Decoder {
			return func(cell []byte, _ *Scratch, out *Value) error {
				if cell == nil {
					*out = null
					return nil
				}
				if len(cell) != 1 {
					return wrongSize("BOOL", len(cell), 1)
				}
				*out = boolValue(cell[0] != 0)
				return nil
			}
		},
	}
}

func boolValue(b bool) Value {
	if b {
		return Value{Kind: Bool, Int: 1}
	}
	return Value{Kind: Bool}
}

func mapInt(typ string, size int, unsigned bool) mapping {
	shift := 64 - 8*size
	return mapping{
		typ:      Type{Type: typ},
		fallback: Value{Kind: Int},
		layout:   Layout{Kind: LayoutInteger, Size: uint8(size), Unsigned: unsigned},
		parse:    orError(func(text string) (Value, bool) { return parseInt(text, typ) }),
		decode: func(null Value) Decoder {
			return func(cell []byte, _ *Scratch, out *Value) error {
				if cell == nil {
					*out = null
					return nil
				}
				if len(cell) != size {
					return wrongSize("integer", len(cell), size)
				}
				var v uint64
				switch size {
				case 8:
					v = binary.LittleEndian.Uint64(cell)
				case 4:
					v = uint64(binary.LittleEndian.Uint32(cell))
				case 3:
					v = uint64(binary.LittleEndian.Uint16(cell)) | uint64(cell[2])<<16
				case 2:
					v = uint64(binary.LittleEndian.Uint16(cell))
				default:
					v = uint64(cell[0])
				}
				if unsigned {
					// BIGINT UNSIGNED from 2^63 on is negative, as Debezium has it in its mode "long".
					out.Kind, out.Int = Int, int64(v)
					return nil
				}
				out.Kind, out.Int = Int, int64(v<<shift)>>shift
				return nil
			}
		},
	}
}

// mapUnsignedBigint maps BIGINT UNSIGNED in the mode "precise": a decimal of twenty digits.
func mapUnsignedBigint() mapping {
	return mapping{
		typ:      decimalType(20, 0),
		fallback: Value{Kind: Bytes, Bytes: []byte{0}},
		parse: orError(func(text string) (Value, bool) {
			n, ok := parseUnscaled(text, 0)
			return Value{Kind: Bytes, Bytes: n}, ok
		}),
		decode: func(null Value) Decoder {
			return func(cell []byte, scratch *Scratch, out *Value) error {
				if cell == nil {
					*out = null
					return nil
				}
				if len(cell) != 8 {
					return wrongSize("integer", len(cell), 8)
				}
				n := binary.LittleEndian.Uint64(cell)
				if n>>63 == 0 {
					*out = Value{Kind: Bytes, Bytes: appendInt64(int64(n), scratch)}
					return nil
				}
				start := len(scratch.buf)
				scratch.buf = binary.BigEndian.AppendUint64(append(scratch.buf, 0), n)
				*out = Value{Kind: Bytes, Bytes: scratch.since(start)}
				return nil
			}
		},
	}
}

func mapYear() mapping {
	return mapping{
		typ:      Type{Type: "int32", Name: yearName, Version: 1},
		fallback: Value{Kind: Int},
		parse:    orError(parseYear),
		decode: func(null Value) Decoder {
			return func(cell []byte, _ *Scratch, out *Value) error {
				if cell == nil {
					*out = null
					return nil
				}
				if len(cell) != 1 {
					return wrongSize("YEAR", len(cell), 1)
				}
				if cell[0] == 0 {
					*out = Value{Kind: Int}
					return nil
				}
				*out = Value{Kind: Int, Int: 1900 + int64(cell[0])}
				return nil
			}
		},
	}
}

func mapBit(length int) (mapping, error) {
	if length < 1 || length > 64 {
		return mapping{}, fmt.Errorf("BIT(%d) is not a type of MySQL", length)
	}
	size := (length + 7) / 8
	if length == 1 {
		return mapping{
			typ:      Type{Type: "boolean"},
			fallback: Value{Kind: Bool},
			parse:    orError(parseBool),
			decode: func(null Value) Decoder {
				return func(cell []byte, _ *Scratch, out *Value) error {
					if cell == nil {
						*out = null
						return nil
					}
					if len(cell) != 1 {
						return wrongSize("BIT(1)", len(cell), 1)
					}
					*out = boolValue(cell[0] != 0)
					return nil
				}
			},
		}, nil
	}
	return mapping{
		typ:      Type{Type: "bytes", Name: bitsName, Version: 1, Parameters: []Parameter{{"length", strconv.Itoa(length)}}},
		fallback: Value{Kind: Bytes, Bytes: []byte{}},
		parse:    orError(func(text string) (Value, bool) { return parseBits(text, size) }),
		decode: func(null Value) Decoder {
			return func(cell []byte, scratch *Scratch, out *Value) error {
				if cell == nil {
					*out = null
					return nil
				}
				if len(cell) != size {
					return wrongSize("BIT", len(cell), size)
				}
				b := scratch.take(size)
				for i, v := range cell {
					b[size-1-i] = v
				}
				*out = Value{Kind: Bytes, Bytes: b}
				return nil
			}
		},
	}, nil
}
