package avro

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidemark-cdc/tidemark/schema"
)

// avrodata.jsonl has random Connect schemas, as JsonConverter prints them, and what Confluent's AvroData 8.3.1 with Avro
// Java 1.12.1 made of them: by default, with connect.meta.data=false and with scrub.invalid.names=true. Apicurio's
// AvroData 2.6.13 made the same of all.
type avroDataCase struct{ Connect, Avro, NoMeta, Scrub string }

func TestAppendSchemaPrintsWhatAvroDataDoes(t *testing.T) {
	cases := lines[avroDataCase](t, "avrodata.jsonl")
	if len(cases) < 1000 {
		t.Fatalf("%d cases", len(cases))
	}
	for _, c := range cases {
		typ := jsonType(t, ordered(t, c.Connect).([]member))
		for _, form := range [...]struct {
			options Options
			want    string
		}{{Options{}, c.Avro}, {Options{NoMeta: true}, c.NoMeta}, {Options{Scrub: true}, c.Scrub}} {
			got, err := form.options.AppendSchema(nil, typ)
			if err != nil {
				t.Fatalf("%+v: %v\n%s", form.options, err, c.Connect)
			}
			if d := cmp.Diff(form.want, string(got)); d != "" {
				t.Fatalf("%+v of %s:\n%s", form.options, c.Connect, d)
			}
		}
	}
}

// jsonType reads a Connect schema that JsonConverter printed.
func jsonType(t testing.TB, o []member) *schema.Type {
	t.Helper()
	typ := &schema.Type{Type: find(o, "type").(string)}
	typ.Optional, _ = find(o, "optional").(bool)
	typ.Name, _ = find(o, "name").(string)
	if v, ok := find(o, "version").(json.Number); ok {
		typ.Version, _ = strconv.Atoi(v.String())
	}
	if doc, ok := find(o, "doc").(string); ok {
		typ.Doc, typ.BlankDoc = doc, doc == ""
	}
	if list, ok := find(o, "parameters").([]member); ok {
		for _, m := range list {
			typ.Parameters = append(typ.Parameters, schema.Parameter{Name: m.name, Value: m.value.(string)})
		}
	}
	for _, part := range [...]struct {
		name string
		to   **schema.Type
	}{{"items", &typ.Items}, {"keys", &typ.Keys}, {"values", &typ.Values}} {
		if v, ok := find(o, part.name).([]member); ok {
			*part.to = jsonType(t, v)
		}
	}
	if list, ok := find(o, "fields").([]any); ok {
		for _, f := range list {
			f := f.([]member)
			typ.Fields = append(typ.Fields, schema.Field{Name: find(f, "field").(string), Type: jsonType(t, f)})
		}
	}
	switch d := find(o, "default").(type) {
	case nil:
	case []any:
		typ.Default = &schema.Value{Kind: schema.Vector}
		for _, v := range d {
			f, err := v.(json.Number).Float64()
			if err != nil {
				t.Fatal(err)
			}
			typ.Default.Bytes = binary.LittleEndian.AppendUint32(typ.Default.Bytes, math.Float32bits(float32(f)))
		}
	case string:
		typ.Default = &schema.Value{Kind: schema.String, Bytes: []byte(d)}
		if typ.Type == "bytes" {
			b, err := base64.StdEncoding.DecodeString(d)
			if err != nil {
				t.Fatal(err)
			}
			typ.Default = &schema.Value{Kind: schema.Bytes, Bytes: b}
		}
	default:
		typ.Default = connectReader{t, nil}.value(typ, d)
	}
	return typ
}
