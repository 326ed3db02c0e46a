package schema

import (
	"encoding/binary"
	"fmt"
)

// The first bytes of a geometry of MySQL are its SRID; WKB follows.
const sridBytes = 4

// A WKB point: byte order, type 1, x and y.
const wkbPointBytes = 1 + 4 + 8 + 8

const mysqlPoint = 1 // of MySQL's geometry types in TABLE_MAP

func sridType() *Type { return &Type{Type: "int32", Optional: true} }

func mapGeometry(c *Column) mapping {
	if c.Geometry == mysqlPoint || c.Geometry == 0 && c.Def != nil && c.Def.Type == "POINT" {
		return mapPoint()
	}
	return mapping{
		typ: Type{Type: "struct", Name: geometryName, Version: 1, Doc: "Geometry", Fields: []Field{
			{"wkb", &Type{Type: "bytes"}}, {"srid", sridType()},
		}},
		// An empty GEOMETRYCOLLECTION.
		fallback: Value{Kind: Geometry, Int: NoSRID, Bytes: []byte{1, 7, 0, 0, 0, 0, 0, 0, 0}},
		decode: func(null Value) Decoder {
			return func(cell []byte, _ *Scratch, out *Value) error {
				if cell == nil {
					*out = null
					return nil
				}
				if len(cell) < sridBytes+5 {
					return fmt.Errorf("GEOMETRY of %d bytes, want at least %d", len(cell), sridBytes+5)
				}
				*out = Value{Kind: Geometry, Int: srid(cell), Bytes: cell[sridBytes:]}
				return nil
			}
		},
	}
}

func mapPoint() mapping {
	double := Type{Type: "double"}
	origin := make([]byte, wkbPointBytes)
	origin[0], origin[1] = 1, 1
	return mapping{
		typ: Type{Type: "struct", Name: pointName, Version: 1, Doc: "Geometry (POINT)", Fields: []Field{
			{"x", &double}, {"y", &double}, {"wkb", &Type{Type: "bytes", Optional: true}}, {"srid", sridType()},
		}},
		fallback: Value{Kind: Point, Int: NoSRID, Bytes: origin},
		decode: func(null Value) Decoder {
			return func(cell []byte, _ *Scratch, out *Value) error {
				if cell == nil {
					*out = null
					return nil
				}
				if len(cell) != sridBytes+wkbPointBytes {
					return wrongSize("POINT", len(cell), sridBytes+wkbPointBytes)
				}
				wkb := cell[sridBytes:]
				if wkb[0] != 1 || binary.LittleEndian.Uint32(wkb[1:]) != mysqlPoint {
					return fmt.Errorf("POINT holds another geometry (byte order %d, type %d)",
						wkb[0], binary.LittleEndian.Uint32(wkb[1:]))
				}
				*out = Value{Kind: Point, Int: srid(cell), Bytes: wkb}
				return nil
			}
		},
	}
}

// srid reads the spatial reference system; 0 is none.
func srid(cell []byte) int64 {
	if id := binary.LittleEndian.Uint32(cell); id != 0 {
		return int64(id)
	}
	return NoSRID
}

func mapVector() mapping {
	return mapping{
		typ:      Type{Type: "array", Items: &Type{Type: "float"}, Name: floatVectorName, Version: 1},
		fallback: Value{Kind: Vector, Bytes: []byte{}},
		decode: func(null Value) Decoder {
			return func(cell []byte, _ *Scratch, out *Value) error {
				if cell == nil {
					*out = null
					return nil
				}
				if len(cell)%4 != 0 {
					return fmt.Errorf("VECTOR of %d bytes, want a multiple of 4", len(cell))
				}
				*out = Value{Kind: Vector, Bytes: cell}
				return nil
			}
		},
	}
}
