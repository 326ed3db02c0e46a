package avro

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tidemark-cdc/tidemark/schema"
)

// intBits are the sizes of Connect's integers.
var intBits = map[string]int{"int8": 8, "int16": 16, "int32": 32, "int64": 64}

// appendDefault appends v, which is not NULL, as the default of t: numbers as Java prints them, bytes and decimals as a
// string with a character for each byte.
func appendDefault(dst []byte, t *schema.Type, v *schema.Value) ([]byte, error) {
	switch t.Type {
	case "boolean":
		if v.Kind != schema.Bool {
			break
		}
		if v.Int != 0 {
			return append(dst, "true"...), nil
		}
		return append(dst, "false"...), nil
	case "int8", "int16", "int32", "int64":
		if shift := 64 - intBits[t.Type]; v.Kind == schema.Int && v.Int<<shift>>shift == v.Int {
			return schema.AppendInt(dst, v.Int), nil
		}
	case "float", "double":
		if (v.Kind == schema.Float || v.Kind == schema.Double) && !math.IsNaN(v.Float) && !math.IsInf(v.Float, 0) {
			if t.Type == "float" {
				return schema.AppendFloat(dst, float32(v.Float)), nil
			}
			return schema.AppendDouble(dst, v.Float), nil
		}
	case "string":
		if v.Kind == schema.String {
			return appendQuoted(dst, string(v.Bytes)), nil
		}
	case "bytes":
		if v.Kind == schema.Bytes {
			return appendLatin(dst, v.Bytes), nil
		}
	case "array":
		if v.Kind != schema.Vector || t.Items == nil || t.Items.Type != "float" || len(v.Bytes)%4 != 0 {
			break
		}
		dst = append(dst, '[')
		for i := 0; i < len(v.Bytes); i += 4 {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = schema.AppendFloat(dst, math.Float32frombits(binary.LittleEndian.Uint32(v.Bytes[i:])))
		}
		return append(dst, ']'), nil
	}
	return dst, fmt.Errorf("the default does not fit the type %s", t.Type)
}
