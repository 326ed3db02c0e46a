package schema

import (
	"encoding/binary"
	"math"
)

// mapFloat maps FLOAT. Debezium makes a double of FLOAT(M,D), whose value is the 32-bit one all the same.
func mapFloat(def *ColumnDef) mapping {
	wide := def != nil && (def.Scale >= 0 || def.Length > 24)
	m := mapping{typ: Type{Type: "float"}, fallback: Value{Kind: Float}, parse: parseFloat}
	if wide {
		m = mapping{typ: Type{Type: "double"}, fallback: Value{Kind: Double}, parse: parseDouble}
	}
	kind := m.fallback.Kind
	m.decode = func(null Value) Decoder {
		return func(cell []byte, _ *Scratch) (Value, error) {
			if cell == nil {
				return null, nil
			}
			if len(cell) != 4 {
				return Value{}, wrongSize("FLOAT", len(cell), 4)
			}
			return Value{Kind: kind, Float: float64(math.Float32frombits(binary.LittleEndian.Uint32(cell)))}, nil
		}
	}
	return m
}

func mapDouble() mapping {
	return mapping{
		typ:      Type{Type: "double"},
		fallback: Value{Kind: Double},
		parse:    parseDouble,
		decode: func(null Value) Decoder {
			return func(cell []byte, _ *Scratch) (Value, error) {
				if cell == nil {
					return null, nil
				}
				if len(cell) != 8 {
					return Value{}, wrongSize("DOUBLE", len(cell), 8)
				}
				return Value{Kind: Double, Float: math.Float64frombits(binary.LittleEndian.Uint64(cell))}, nil
			}
		},
	}
}
