package avro

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/schema"
)

// member is a member of a JSON object whose order counts.
type member struct {
	name  string
	value any
}

// ordered reads JSON: objects as []member, lists as []any, numbers as json.Number.
func ordered(t testing.TB, text string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var read func() any
	token := func() json.Token {
		tok, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		return tok
	}
	read = func() any {
		switch tok := token(); tok {
		case json.Delim('{'):
			o := []member{}
			for d.More() {
				o = append(o, member{token().(string), nil})
				o[len(o)-1].value = read()
			}
			token()
			return o
		case json.Delim('['):
			list := []any{}
			for d.More() {
				list = append(list, read())
			}
			token()
			return list
		default:
			return tok
		}
	}
	return read()
}

func find(o []member, name string) any {
	for _, m := range o {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// connectReader makes Connect schemas of the schemas that AvroData made of them.
type connectReader struct {
	t     testing.TB
	known map[string]*schema.Type
}

// connectType is the Connect schema of which AvroData made this text.
func connectType(t testing.TB, text string) *schema.Type {
	t.Helper()
	r := connectReader{t, map[string]*schema.Type{}}
	return r.read(ordered(t, text), "")
}

var connectNames = map[string]string{"int": "int32", "long": "int64"}

func (r connectReader) read(v any, space string) *schema.Type {
	switch v := v.(type) {
	case []any:
		i := 0
		if v[0] == "null" {
			i = 1
		}
		typ := *r.read(v[i], space)
		typ.Optional = true
		return &typ
	case string:
		if name, ok := connectNames[v]; ok {
			return &schema.Type{Type: name}
		}
		if typ := r.known[v]; typ != nil {
			return typ
		}
		if typ := r.known[space+"."+v]; typ != nil {
			return typ
		}
		return &schema.Type{Type: v}
	}
	return r.object(v.([]member), space)
}

func (r connectReader) object(o []member, space string) *schema.Type {
	typ := &schema.Type{Type: find(o, "type").(string)}
	if name, ok := connectNames[typ.Type]; ok {
		typ.Type = name
	}
	if s, ok := find(o, "connect.type").(string); ok {
		typ.Type = s
	}
	typ.Name, _ = find(o, "connect.name").(string)
	if doc, ok := find(o, "connect.doc").(string); ok {
		typ.Doc, typ.BlankDoc = doc, doc == ""
	}
	if v, ok := find(o, "connect.version").(json.Number); ok {
		typ.Version, _ = strconv.Atoi(v.String())
	}
	if list, ok := find(o, "connect.parameters").([]member); ok {
		for _, m := range list {
			typ.Parameters = append(typ.Parameters, schema.Parameter{Name: m.name, Value: m.value.(string)})
		}
	}
	switch typ.Type {
	case "record":
		typ.Type = "struct"
		if s, ok := find(o, "namespace").(string); ok {
			space = s
		}
		r.known[typ.Name] = typ
		for _, f := range find(o, "fields").([]any) {
			f := f.([]member)
			typ.Fields = append(typ.Fields, schema.Field{Name: find(f, "name").(string), Type: r.read(find(f, "type"), space)})
		}
	case "array":
		typ.Items = r.read(find(o, "items"), space)
	case "map":
		typ.Keys, typ.Values = &schema.Type{Type: "string"}, r.read(find(o, "values"), space)
	}
	if d := find(o, "connect.default"); d != nil {
		typ.Default = r.value(typ, d)
	}
	return typ
}

func (r connectReader) value(typ *schema.Type, v any) *schema.Value {
	switch v := v.(type) {
	case bool:
		if v {
			return &schema.Value{Kind: schema.Bool, Int: 1}
		}
		return &schema.Value{Kind: schema.Bool}
	case json.Number:
		switch typ.Type {
		case "float":
			f, err := strconv.ParseFloat(v.String(), 32)
			if err != nil {
				r.t.Fatal(err)
			}
			return &schema.Value{Kind: schema.Float, Float: f}
		case "double":
			f, err := v.Float64()
			if err != nil {
				r.t.Fatal(err)
			}
			return &schema.Value{Kind: schema.Double, Float: f}
		}
		i, err := v.Int64()
		if err != nil {
			r.t.Fatal(err)
		}
		return &schema.Value{Kind: schema.Int, Int: i}
	case string:
		if typ.Type == "string" {
			return &schema.Value{Kind: schema.String, Bytes: []byte(v)}
		}
		var b []byte
		for _, c := range v {
			b = append(b, byte(c))
		}
		return &schema.Value{Kind: schema.Bytes, Bytes: b}
	}
	r.t.Fatalf("a default of type %T", v)
	return nil
}
