package schema

import (
	"strconv"
	"unsafe"
)

// decimalType is the schema of decimals in the mode "precise".
func decimalType(precision, scale int) Type {
	return Type{Type: "bytes", Name: DecimalName, Version: 1, Parameters: []Parameter{
		{"scale", strconv.Itoa(scale)}, {"connect.decimal.precision", strconv.Itoa(precision)},
	}}
}

func mapDecimal(precision, scale int, mode DecimalMode) (mapping, error) {
	if err := checkDecimalType(precision, scale); err != nil {
		return mapping{}, err
	}
	unscaled := func(text string) ([]byte, bool) { return parseUnscaled(text, scale) }
	switch mode {
	case DecimalDouble:
		return mapping{
			typ:      Type{Type: "double"},
			fallback: Value{Kind: Double},
			parse: orError(func(text string) (Value, bool) {
				n, ok := unscaled(text)
				if !ok {
					return Value{}, false
				}
				f, err := strconv.ParseFloat(unscaledText(n, scale), 64)
				return Value{Kind: Double, Float: f}, err == nil
			}),
			decode: func(null Value) Decoder {
				return func(cell []byte, scratch *Scratch, out *Value) error {
					if cell == nil {
						*out = null
						return nil
					}
					f, err := decimalDouble(cell, precision, scale, scratch)
					*out = Value{Kind: Double, Float: f}
					return err
				}
			},
		}, nil
	case DecimalString:
		return mapping{
			typ:      Type{Type: "string"},
			fallback: Value{Kind: String, Bytes: []byte(unscaledText([]byte{0}, scale))},
			layout:   Layout{Kind: LayoutPlain},
			parse: orError(func(text string) (Value, bool) {
				n, ok := unscaled(text)
				if !ok {
					return Value{}, false
				}
				return Value{Kind: String, Bytes: []byte(unscaledText(n, scale))}, true
			}),
			decode: func(null Value) Decoder {
				return func(cell []byte, scratch *Scratch, out *Value) error {
					if cell == nil {
						*out = null
						return nil
					}
					start := len(scratch.buf)
					buf, err := appendDecimalText(scratch.buf, cell, precision, scale)
					scratch.buf = buf
					*out = Value{Kind: String, Bytes: scratch.since(start)}
					return err
				}
			},
		}, nil
	}
	var layout Layout
	if precision-scale <= groupDigits && scale <= groupDigits {
		layout = Layout{Kind: LayoutDecimal, Size: uint8(scale), Whole: uint8(precision - scale)}
	}
	return mapping{
		layout:   layout,
		typ:      decimalType(precision, scale),
		fallback: Value{Kind: Bytes, Bytes: []byte{0}},
		parse: orError(func(text string) (Value, bool) {
			n, ok := unscaled(text)
			return Value{Kind: Bytes, Bytes: n}, ok
		}),
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

// exactPow10 are the powers of ten that a double holds exactly.
var exactPow10 = [...]float64{
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

// decimalDouble is the double nearest to a DECIMAL.
func decimalDouble(cell []byte, precision, scale int, scratch *Scratch) (float64, error) {
	if precision <= 15 { // below 2^53: one division rounds once
		g, negative, err := newDecimalGroups(cell, precision, scale)
		if err != nil {
			return 0, err
		}
		n, err := g.small()
		if negative {
			n = -n
		}
		return float64(n) / exactPow10[scale], err
	}
	start := len(scratch.buf)
	text, err := appendDecimalText(scratch.buf, cell, precision, scale)
	scratch.buf = text[:start]
	if err != nil {
		return 0, err
	}
	digits := text[start:]
	// A string of more than 32 bytes would be made on the heap. This one is gone when ParseFloat returns; digits, a
	// sign and a point are always a number.
	return strconv.ParseFloat(unsafe.String(&digits[0], len(digits)), 64)
}
