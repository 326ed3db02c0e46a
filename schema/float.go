package schema

import (
	"encoding/binary"
	"math"
	"strings"
)

// mapFloat maps FLOAT. Debezium makes a double of FLOAT(M,D) and of FLOAT by other names, whose value is the 32-bit one
// all the same.
func mapFloat(def *ColumnDef) mapping {
	wide := false
	if def != nil {
		switch strings.ToUpper(def.Type) {
		case "FLOAT", "FLOAT UNSIGNED", "FLOAT UNSIGNED ZEROFILL":
			wide = def.Scale >= 0 || def.Length > 24
		default: // FLOAT4, FLOAT SIGNED
			wide = true
		}
	}
	m := mapping{typ: Type{Type: "float"}, fallback: Value{Kind: Float}, parse: orError(parseFloat)}
	if wide {
		m = mapping{typ: Type{Type: "double"}, fallback: Value{Kind: Double}, parse: orError(parseDouble)}
	}
	kind := m.fallback.Kind
	m.decode = func(null Value) Decoder {
		return func(cell []byte, _ *Scratch, out *Value) error {
			if cell == nil {
				*out = null
				return nil
			}
			if len(cell) != 4 {
				return wrongSize("FLOAT", len(cell), 4)
			}
			*out = Value{Kind: kind, Float: float64(math.Float32frombits(binary.LittleEndian.Uint32(cell)))}
			return nil
		}
	}
	return m
}

func mapDouble() mapping {
	return mapping{
		typ:      Type{Type: "double"},
		fallback: Value{Kind: Double},
		parse:    orError(parseDouble),
		decode: func(null Value) Decoder {
			return func(cell []byte, _ *Scratch, out *Value) error {
				if cell == nil {
					*out = null
					return nil
				}
				if len(cell) != 8 {
					return wrongSize("DOUBLE", len(cell), 8)
				}
				*out = Value{Kind: Double, Float: math.Float64frombits(binary.LittleEndian.Uint64(cell))}
				return nil
			}
		},
	}
}
