package schema

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
)

// Column gives the Connect schema and the decoder of the i-th column of t. Columns of the table's key are not optional.
// An error means that the column's type or character set is not supported; it names table and column. The result is
// the caller's; compile it once a table version.
func (m Modes) Column(t *Table, i int) (*Type, Decoder, error) {
	c := &t.Columns[i]
	typ, decode, err := mapColumn(c, c.Nullable && !slices.Contains(t.Key, i))
	if err != nil {
		return nil, nil, fmt.Errorf("column %s.%s.%s: %w", t.Database, t.Name, c.Name, err)
	}
	return typ, decode, nil
}

// mapping is a column's schema and decoder under construction.
type mapping struct {
	typ    Type
	decode func(null Value) Decoder // null is what a NULL gives
	layout Layout
	// fallback is what NULL, a zero date or the like gives in a column that must have a value and has no default.
	fallback Value
	// parse reads a default's text as Debezium reads it; nil for types without defaults. ok is false for a default
	// that means none.
	parse func(text string) (v Value, ok bool)
}

func mapColumn(c *Column, optional bool) (*Type, Decoder, error) {
	m, err := mapType(c, optional)
	if err != nil {
		return nil, nil, err
	}
	m.typ.Optional = optional
	null := m.fallback
	if c.Def != nil && c.Def.Default != nil && m.parse != nil {
		if v, ok := m.parse(*c.Def.Default); ok {
			m.typ.Default = &v
			null = v
		}
	}
	if optional {
		null = Value{}
	}
	return &m.typ, m.decode(null), nil
}

func mapType(c *Column, optional bool) (mapping, error) {
	switch c.Type {
	case typeTiny:
		if isBool(c.Def) {
			return mapBool(), nil
		}
		return mapInt("int16", 1, c.Unsigned), nil
	case typeShort:
		if c.Unsigned {
			return mapInt("int32", 2, true), nil
		}
		return mapInt("int16", 2, false), nil
	case typeInt24:
		return mapInt("int32", 3, c.Unsigned), nil
	case typeLong:
		if c.Unsigned {
			return mapInt("int64", 4, true), nil
		}
		return mapInt("int32", 4, false), nil
	case typeLonglong:
		return mapInt("int64", 8, c.Unsigned), nil
	case typeFloat:
		return mapFloat(c.Def), nil
	case typeDouble:
		return mapDouble(), nil
	case typeNewDecimal:
		return mapDecimal(int(c.Meta>>8), int(c.Meta&0xff))
	case typeBit:
		return mapBit(int(c.Meta>>8)*8 + int(c.Meta&0xff))
	case typeYear:
		return mapYear(), nil
	case typeDate, typeNewDate:
		return mapDate(optional), nil
	case typeTime, typeTime2:
		return mapTime(c)
	case typeDatetime, typeDatetime2:
		return mapDatetime(c, optional)
	case typeTimestamp, typeTimestamp2:
		return mapTimestamp(c, optional)
	case typeVarchar, typeVarString, typeString, typeBlob, typeTinyBlob, typeMediumBlob, typeLongBlob:
		return mapText(c)
	case typeEnum:
		return mapEnum(c), nil
	case typeSet:
		return mapSet(c), nil
	case typeJSON:
		return mapJSON(), nil
	case typeGeometry:
		return mapGeometry(c), nil
	case typeVector:
		return mapVector(), nil
	case typeDecimal:
		return mapping{}, fmt.Errorf("DECIMAL of a MySQL before 5.0 is not supported; ALTER TABLE … FORCE rewrites the table")
	}
	return mapping{}, fmt.Errorf("MySQL's type code %d is not supported", c.Type)
}

func isBool(def *ColumnDef) bool {
	return def != nil && (def.Type == "BOOL" || def.Type == "BOOLEAN")
}

func wrongSize(what string, got, want int) error {
	return fmt.Errorf("%s of %d bytes, want %d", what, got, want)
}

func mapBool() mapping {
	return mapping{
		typ:      Type{Type: "boolean"},
		fallback: Value{Kind: Bool},
		parse:    parseBool,
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
		layout:   Layout{Kind: LayoutInteger, Size: size, Unsigned: unsigned},
		parse:    func(text string) (Value, bool) { return parseInt(text, typ) },
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

func mapYear() mapping {
	return mapping{
		typ:      Type{Type: "int32", Name: yearName, Version: 1},
		fallback: Value{Kind: Int},
		parse:    parseYear,
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

func mapDecimal(precision, scale int) (mapping, error) {
	if err := checkDecimalType(precision, scale); err != nil {
		return mapping{}, err
	}
	var layout Layout
	if precision-scale <= groupDigits && scale <= groupDigits {
		layout = Layout{Kind: LayoutDecimal, Size: scale, Whole: precision - scale}
	}
	return mapping{
		layout: layout,
		typ: Type{Type: "bytes", Name: DecimalName, Version: 1, Parameters: []Parameter{
			{"scale", strconv.Itoa(scale)}, {"connect.decimal.precision", strconv.Itoa(precision)},
		}},
		fallback: Value{Kind: Bytes, Bytes: []byte{0}},
		parse:    func(text string) (Value, bool) { return parseDecimal(text, scale) },
		decode: func(null Value) Decoder {
			return func(cell []byte, scratch *Scratch, out *Value) error {
				if cell == nil {
					*out = null
					return nil
				}
				b, err := unscaledDecimal(cell, precision, scale, scratch)
				out.Kind, out.Bytes = Bytes, b
				return err
			}
		},
	}, nil
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
			parse:    parseBool,
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
		parse:    func(text string) (Value, bool) { return parseBits(text, size) },
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

func mapJSON() mapping {
	return mapping{
		typ:      Type{Type: "string", Name: jsonName, Version: 1},
		fallback: Value{Kind: String, Bytes: []byte("{}")},
		layout:   Layout{Kind: LayoutJSON},
		parse:    parseText,
		decode: func(null Value) Decoder {
			return func(cell []byte, scratch *Scratch, out *Value) error {
				// The server has no bytes for the JSON null that it puts into old rows when a NOT NULL column is added.
				if len(cell) == 0 {
					*out = null
					return nil
				}
				start := len(scratch.buf)
				buf, err := appendJSON(scratch.buf, cell)
				scratch.buf = buf
				if err != nil {
					return err
				}
				*out = Value{Kind: String, Bytes: scratch.since(start)}
				return nil
			}
		},
	}
}
