package avro

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/linkedin/goavro/v2"
	"github.com/tidemark-cdc/tidemark/schema"
	"pgregory.net/rapid"
)

// randomTypes draws Connect schemas, of forms that Debezium never has, too.
type randomTypes struct {
	t      *rapid.T
	repeat bool // structs of the same name come again with other members; else there are some without a name
	n      int  // structs so far
	plain  bool // there is one without a namespace
}

func (r *randomTypes) chance(percent int) bool {
	return rapid.IntRange(1, 100).Draw(r.t, "chance") <= percent
}

func (r *randomTypes) pick(from ...string) string {
	return rapid.SampledFrom(from).Draw(r.t, "pick")
}

var someTexts = []string{"", "x", "Geometry (POINT)", "a\"b\\c", "tab\t line\n\r\b\f", "\x01\x1f\x7f", "ä/<>&€", "\u2028\u0085", "🐬"}

// leaf draws a type without parts.
func (r *randomTypes) leaf() *schema.Type {
	t := &schema.Type{Type: r.pick("boolean", "int8", "int16", "int32", "int64", "float", "double", "string", "bytes")}
	r.common(t)
	withDefault := r.chance(30)
	v := &schema.Value{}
	switch t.Type {
	case "boolean":
		v.Kind, v.Int = schema.Bool, int64(rapid.IntRange(0, 1).Draw(r.t, "bool"))
	case "int8", "int16", "int32", "int64":
		shift := 64 - intBits[t.Type]
		v.Kind, v.Int = schema.Int, rapid.Int64().Draw(r.t, "int")<<shift>>shift
		if t.Type == "int32" && r.chance(20) {
			t.Name = r.pick("org.apache.kafka.connect.data.Date", "org.apache.kafka.connect.data.Time")
			t.Version, t.Parameters, v.Int = 1, nil, int64(rapid.IntRange(0, 86399999).Draw(r.t, "date"))
		}
		if t.Type == "int64" && r.chance(20) {
			t.Name, t.Version, t.Parameters = "org.apache.kafka.connect.data.Timestamp", 1, nil
			v.Int %= 1 << 50
		}
	case "float":
		v.Kind, v.Float = schema.Float, float64(rapid.Float32().Draw(r.t, "float"))
		withDefault = withDefault && !math.IsInf(v.Float, 0) && !math.IsNaN(v.Float)
	case "double":
		v.Kind, v.Float = schema.Double, rapid.Float64().Draw(r.t, "double")
		withDefault = withDefault && !math.IsInf(v.Float, 0) && !math.IsNaN(v.Float)
	case "string":
		v.Kind, v.Bytes = schema.String, []byte(rapid.SampledFrom(someTexts).Draw(r.t, "text"))
	case "bytes":
		v.Kind, v.Bytes = schema.Bytes, rapid.SliceOfN(rapid.Byte(), 1, 4).Draw(r.t, "bytes")
		if r.chance(50) {
			t.Name, t.Version = schema.DecimalName, 1
			t.Parameters = []schema.Parameter{{Name: "scale", Value: strconv.Itoa(rapid.IntRange(0, 20).Draw(r.t, "scale"))}}
			if r.chance(70) {
				p := strconv.Itoa(rapid.IntRange(1, 30).Draw(r.t, "precision"))
				t.Parameters = append(t.Parameters, schema.Parameter{Name: "connect.decimal.precision", Value: p})
			}
			v.Bytes = shortest(v.Bytes)
		}
	}
	if withDefault {
		t.Default = v
	}
	return t
}

// shortest leaves the bytes of an integer out that say nothing, as Java does.
func shortest(b []byte) []byte {
	for len(b) > 1 && (b[0] == 0 && b[1] < 0x80 || b[0] == 0xff && b[1] >= 0x80) {
		b = b[1:]
	}
	return b
}

func (r *randomTypes) common(t *schema.Type) {
	t.Optional = r.chance(40)
	if r.chance(70) {
		return
	}
	t.Version = rapid.IntRange(0, 2).Draw(r.t, "version")
	if t.Type != "struct" && t.Type != "map" && r.chance(50) {
		t.Name = r.pick("io.debezium.data.Enum", "io.debezium.time.Year")
	}
	if r.chance(50) {
		t.Doc = rapid.SampledFrom(someTexts).Draw(r.t, "doc")
		t.BlankDoc = t.Doc == ""
	}
	if r.chance(50) {
		for _, name := range []string{"length", "allowed", "__debezium.source.column.type", "avro.x"} {
			if r.chance(50) {
				t.Parameters = append(t.Parameters, schema.Parameter{Name: name, Value: rapid.SampledFrom(someTexts).Draw(r.t, "value")})
			}
		}
	}
}

func (r *randomTypes) any(depth int) *schema.Type {
	if depth == 0 || r.chance(60) {
		return r.leaf()
	}
	switch rapid.IntRange(0, 5).Draw(r.t, "form") {
	case 0:
		t := &schema.Type{Type: "array", Items: r.any(depth - 1)}
		r.common(t)
		return t
	case 1:
		t := &schema.Type{Type: "array", Items: &schema.Type{Type: "float"}, Name: "io.debezium.data.FloatVector", Optional: r.chance(50)}
		if r.chance(50) {
			b := binary.LittleEndian.AppendUint32(nil, math.Float32bits(1.5))
			t.Default = &schema.Value{Kind: schema.Vector, Bytes: binary.LittleEndian.AppendUint32(b, math.Float32bits(-1e10))}
		}
		return t
	case 2:
		t := &schema.Type{Type: "map", Keys: &schema.Type{Type: r.pick("string", "int32")}, Values: r.any(depth - 1)}
		if t.Keys.Type == "int32" {
			t.Name = "a.b.Map" + strconv.Itoa(r.n)
			r.n++
		}
		r.common(t)
		return t
	}
	return r.structure(depth)
}

func (r *randomTypes) structure(depth int) *schema.Type {
	t := &schema.Type{Type: "struct"}
	r.n++
	switch {
	case r.repeat:
		t.Name = r.pick("a.b.C", "a.b.D", "a.C", "io.debezium.X", "NoSpace", "a.b.string", "a.b.record")
		if t.Name == "NoSpace" { // once only: Avro prints its name alone again, which means another one inside a namespace
			if r.plain {
				t.Name = "a.b.C"
			}
			r.plain = true
		}
	case r.chance(60):
		t.Name = fmt.Sprintf("p.t%d.Value", r.n)
	}
	r.common(t)
	for i := range rapid.IntRange(0, 4).Draw(r.t, "fields") {
		t.Fields = append(t.Fields, schema.Field{Name: r.pick("id", "näme", "_x", "a1") + strconv.Itoa(i), Type: r.any(depth - 1)})
	}
	return t
}

func drawType(t *rapid.T) *schema.Type {
	r := randomTypes{t: t, repeat: rapid.Bool().Draw(t, "repeat")}
	return r.structure(4)
}

// TestRandomSchemasCompile holds that what AppendSchema prints is what Check takes, and that goavro has nothing against it
// but what is known.
func TestRandomSchemasCompile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := drawType(t)
		for _, o := range [...]Options{{}, {NoMeta: true}, {Scrub: true}} {
			text, err := o.AppendSchema(nil, typ)
			if err != nil {
				t.Fatal(err)
			}
			if err := Check(string(text)); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			c, err := NewCodec(string(text))
			if err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			if _, err := goavro.NewCodec(c.codec.Schema()); err != nil {
				t.Fatal(err)
			}
		}
	})
}
