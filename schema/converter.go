package schema

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// converted maps the column by the first converter that takes it, else by its type.
func (m *mapper) converted() (mapping, error) {
	for i := range m.Converters {
		c := &m.Converters[i]
		switch c.Kind {
		case TinyIntOneToBoolean:
			if m.isTinyIntOne(c) {
				return m.positive(Type{Type: "boolean"}, boolValue)
			}
		case JDBCSinkDataTypes:
			switch matches := func(selector func(database, table, column string) bool) bool {
				return selector != nil && selector(m.database, m.table, m.c.Name)
			}; {
			case matches(c.Boolean):
				return m.positive(Type{Type: "int16"}, func(b bool) Value {
					v := boolValue(b)
					v.Kind = Int
					return v
				})
			case matches(c.Real):
				return m.real(c.RealAsFloat)
			case matches(c.String):
				return m.stringWithCharset()
			}
		}
	}
	return m.typ()
}

// isTinyIntOne says whether TinyIntOneToBooleanConverter takes the column. ZEROFILL it does not know.
func (m *mapper) isTinyIntOne(c *Converter) bool {
	name, length, _ := m.c.source()
	switch strings.ToUpper(name) {
	case "TINYINT", "TINYINT UNSIGNED":
		return (!c.Length || length == 1) && (c.Match == nil || c.Match(m.database, m.table, m.c.Name))
	}
	return false
}

// numeric reads the cells and the default of a column of numbers.
type numeric struct {
	cell  func(cell []byte, scratch *Scratch) (float64, error) // cell is not nil
	parse func(text string) (float64, bool)
}

// errNotNumeric is why a converter for numbers does not take a column.
var errNotNumeric = errors.New("is no number")

// number gives the numbers of the column. Integers of more than 53 bits are rounded to a double, which Debezium does
// with them, too.
func (m *mapper) number() (numeric, error) {
	c := m.c
	integer := func(size int) numeric {
		return numeric{
			cell: func(cell []byte, _ *Scratch) (float64, error) {
				if len(cell) != size {
					return 0, wrongSize("integer", len(cell), size)
				}
				n := uint64(0)
				for i, b := range cell {
					n |= uint64(b) << (8 * i)
				}
				if c.Unsigned {
					return float64(n), nil
				}
				shift := 64 - 8*size
				return float64(int64(n<<shift) >> shift), nil
			},
			parse: number,
		}
	}
	switch c.Type {
	case typeTiny:
		return integer(1), nil
	case typeShort:
		return integer(2), nil
	case typeInt24:
		return integer(3), nil
	case typeLong:
		return integer(4), nil
	case typeLonglong:
		return integer(8), nil
	case typeFloat:
		return numeric{parse: number, cell: func(cell []byte, _ *Scratch) (float64, error) {
			if len(cell) != 4 {
				return 0, wrongSize("FLOAT", len(cell), 4)
			}
			return float64(math.Float32frombits(binary.LittleEndian.Uint32(cell))), nil
		}}, nil
	case typeDouble:
		return numeric{parse: number, cell: func(cell []byte, _ *Scratch) (float64, error) {
			if len(cell) != 8 {
				return 0, wrongSize("DOUBLE", len(cell), 8)
			}
			return math.Float64frombits(binary.LittleEndian.Uint64(cell)), nil
		}}, nil
	case typeNewDecimal:
		precision, scale := int(c.Meta>>8), int(c.Meta&0xff)
		if err := checkDecimalType(precision, scale); err != nil {
			return numeric{}, err
		}
		return numeric{
			cell: func(cell []byte, scratch *Scratch) (float64, error) {
				return decimalDouble(cell, precision, scale, scratch)
			},
			parse: func(text string) (float64, bool) {
				n, ok := parseUnscaled(text, scale)
				if !ok {
					return 0, false
				}
				f, err := strconv.ParseFloat(unscaledText(n, scale), 64)
				return f, err == nil
			},
		}, nil
	case typeBit:
		if c.Meta == 1 {
			return numeric{
				cell: func(cell []byte, _ *Scratch) (float64, error) {
					if len(cell) != 1 {
						return 0, wrongSize("BIT(1)", len(cell), 1)
					}
					return float64(cell[0]), nil
				},
				parse: func(text string) (float64, bool) {
					v, ok := parseBool(text)
					return float64(v.Int), ok
				},
			}, nil
		}
	}
	name, _, _ := c.source()
	return numeric{}, fmt.Errorf("a converter takes it for a number, but %s %w; narrow the converter's selector", name, errNotNumeric)
}

// positive says of a number whether its whole part is above zero, which the converters take for true.
func (m *mapper) positive(typ Type, value func(bool) Value) (mapping, error) {
	n, err := m.number()
	if err != nil {
		return mapping{}, err
	}
	return mapping{
		typ:      typ,
		fallback: value(false),
		parse: orError(func(text string) (Value, bool) {
			f, ok := n.parse(text)
			return value(f >= 1), ok
		}),
		decode: func(null Value) Decoder {
			return func(cell []byte, scratch *Scratch, out *Value) error {
				if cell == nil {
					*out = null
					return nil
				}
				f, err := n.cell(cell, scratch)
				*out = value(f >= 1)
				return err
			}
		},
	}, nil
}

// real is JdbcSinkDataTypesConverter's selector.real.
func (m *mapper) real(single bool) (mapping, error) {
	n, err := m.number()
	if err != nil {
		return mapping{}, err
	}
	typ, value := Type{Type: "double"}, func(f float64) Value { return Value{Kind: Double, Float: f} }
	if single {
		typ, value = Type{Type: "float"}, func(f float64) Value { return Value{Kind: Float, Float: float64(float32(f))} }
	}
	return mapping{
		typ:      typ,
		fallback: value(0),
		parse: orError(func(text string) (Value, bool) {
			f, ok := n.parse(text)
			return value(f), ok
		}),
		decode: func(null Value) Decoder {
			return func(cell []byte, scratch *Scratch, out *Value) error {
				if cell == nil {
					*out = null
					return nil
				}
				f, err := n.cell(cell, scratch)
				*out = value(f)
				return err
			}
		},
	}, nil
}

// stringWithCharset is JdbcSinkDataTypesConverter's selector.string: the text, and its character set as a parameter.
// Debezium reads every text of the stream as UTF-8 here; this is the text that the column has.
func (m *mapper) stringWithCharset() (mapping, error) {
	c := m.c
	charset := charsetName(c.Collation)
	if c.Def != nil && c.Def.Charset != "" {
		charset = c.Def.Charset
	}
	if enum := c.Type == typeEnum || c.Type == typeSet; charset == "" || charset == "binary" || !enum && !isText(c) {
		name, _, _ := c.source()
		return mapping{}, fmt.Errorf("JdbcSinkDataTypesConverter's selector.string takes it, but %s has no character set; "+
			"narrow the selector", name)
	}
	mapped, err := m.typ()
	if err != nil {
		return mapping{}, err
	}
	mapped.typ = Type{Type: "string", Parameters: []Parameter{{"__debezium.source.column.character_set", charset}}}
	return mapped, nil
}
