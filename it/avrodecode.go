package it

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/linkedin/goavro/v2"
)

// schemaCodec decodes the records of one schema with goavro and makes plain values of them: unions without their branch, records as
// objects, numbers as numbers.
type schemaCodec struct {
	codec  *goavro.Codec
	text   string
	schema any
	names  map[string]map[string]any // records by full name
}

// newSchemaCodec takes a schema as a registry returns it.
func newSchemaCodec(text string) (*schemaCodec, error) {
	c := &schemaCodec{text: text, names: map[string]map[string]any{}}
	if err := json.Unmarshal([]byte(text), &c.schema); err != nil {
		return nil, err
	}
	// goavro does not take every default of a union, and makes numbers of decimals. Neither is needed to read the bytes.
	bare, err := json.Marshal(bareSchema(c.schema))
	if err != nil {
		return nil, err
	}
	if c.codec, err = goavro.NewCodec(string(bare)); err != nil {
		return nil, fmt.Errorf("goavro: %w in %s", err, text)
	}
	c.collect(c.schema, "")
	return c, nil
}

// bareSchema is a schema without defaults, logical types and foreign properties.
func bareSchema(schema any) any {
	switch s := schema.(type) {
	case []any:
		all := make([]any, len(s))
		for i := range s {
			all[i] = bareSchema(s[i])
		}
		return all
	case map[string]any:
		bare := map[string]any{}
		for name, v := range s {
			switch name {
			case "type", "items", "values", "fields":
				bare[name] = bareSchema(v)
			case "name", "namespace":
				bare[name] = v
			}
		}
		return bare
	}
	return schema
}

// collect notes the records of a schema, each with its namespace, which the names inside it are relative to.
func (c *schemaCodec) collect(schema any, space string) {
	switch s := schema.(type) {
	case []any:
		for _, branch := range s {
			c.collect(branch, space)
		}
	case map[string]any:
		if s["type"] != "record" {
			c.collect(s["type"], space)
			c.collect(s["items"], space)
			return
		}
		if own, ok := s["namespace"].(string); ok {
			space = own
		}
		s["namespace"] = space
		c.names[space+"."+s["name"].(string)] = s
		for _, f := range s["fields"].([]any) {
			c.collect(f.(map[string]any)["type"], space)
		}
	}
}

// decode makes plain values of the binary form, which has to end with the record. Bytes become what bytes makes of them.
func (c *schemaCodec) decode(data []byte, text func(schema map[string]any, b []byte) any) (any, error) {
	native, rest, err := c.codec.NativeFromBinary(data)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("%d bytes are left over", len(rest))
	}
	return c.plain(c.schema, "", native, text), nil
}

func (c *schemaCodec) plain(schema any, space string, v any, bytes func(map[string]any, []byte) any) any {
	switch s := schema.(type) {
	case []any:
		branch, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		for _, one := range branch {
			v = one
		}
		for _, t := range s {
			if t != "null" {
				return c.plain(t, space, v, bytes)
			}
		}
	case string:
		if !strings.Contains(s, ".") {
			s = space + "." + s
		}
		if record, ok := c.names[s]; ok {
			return c.plain(record, space, v, bytes)
		}
	case map[string]any:
		switch s["type"] {
		case "record":
			space, _ = s["namespace"].(string)
			object := map[string]any{}
			for _, f := range s["fields"].([]any) {
				field := f.(map[string]any)
				name := field["name"].(string)
				object[name] = c.plain(field["type"], space, v.(map[string]any)[name], bytes)
			}
			return object
		case "array":
			items := []any{}
			for _, item := range v.([]any) {
				items = append(items, c.plain(s["items"], space, item, bytes))
			}
			return items
		case "bytes":
			return bytes(s, v.([]byte))
		}
		if _, nested := s["type"].(string); !nested {
			return c.plain(s["type"], space, v, bytes)
		}
	}
	switch x := v.(type) {
	case []byte:
		return bytes(nil, x)
	case int32:
		return json.Number(strconv.FormatInt(int64(x), 10))
	case int64:
		return json.Number(strconv.FormatInt(x, 10))
	case float32:
		return float64(x)
	}
	return v
}

// decimalOf is the scale of a schema with the logical type decimal.
func decimalOf(schema map[string]any) (scale int, ok bool) {
	if schema["logicalType"] != "decimal" {
		return 0, false
	}
	n, _ := schema["scale"].(float64)
	return int(n), true
}

// tagged are bytes as the consumers in other languages print them.
func tagged(schema map[string]any, b []byte) any {
	if scale, ok := decimalOf(schema); ok {
		text, err := decimal(base64.StdEncoding.EncodeToString(b), scale)
		if err != nil {
			return err.Error()
		}
		return map[string]any{"decimal": text}
	}
	return map[string]any{"bytes": hex.EncodeToString(b)}
}

// asJSONConverter are bytes, decimals too, as Connect's JsonConverter prints them.
func asJSONConverter(_ map[string]any, b []byte) any { return base64.StdEncoding.EncodeToString(b) }

// AvroDecoder decodes keys and values with the schemas of a registry. Wide means Apicurio's global ids in 8 bytes, else Confluent's
// ids in 4.
type AvroDecoder struct {
	Registry *Registry
	Wide     bool
	// Global takes 4 bytes for a global id as well: Apicurio's as-confluent.
	Global bool
	codecs map[int64]*schemaCodec
}

// ID is the id in the prefix of a key or value, and what comes behind it.
func (d *AvroDecoder) ID(data []byte) (int64, []byte, error) {
	size := 5
	if d.Wide {
		size = 9
	}
	if len(data) < size || data[0] != 0 {
		return 0, nil, fmt.Errorf("no prefix of %d bytes that begins with 0: %x", size, data[:min(len(data), size)])
	}
	if d.Wide {
		id := binary.BigEndian.Uint64(data[1:])
		if id > math.MaxInt32 {
			return 0, nil, fmt.Errorf("no prefix of 9 bytes with an id: %x", data[:size])
		}
		return int64(id), data[size:], nil
	}
	return int64(binary.BigEndian.Uint32(data[1:])), data[size:], nil
}

// decode is the plain value of a key or value; nil for null.
func (d *AvroDecoder) decode(t testing.TB, data []byte, bytes func(map[string]any, []byte) any) (any, error) {
	if data == nil {
		return nil, nil
	}
	id, rest, err := d.ID(data)
	if err != nil {
		return nil, err
	}
	if d.codecs[id] == nil {
		text := ""
		if d.Wide || d.Global {
			text = d.Registry.GlobalSchema(t, id)
		} else {
			text = d.Registry.Schema(t, id)
		}
		codec, err := newSchemaCodec(text)
		if err != nil {
			return nil, err
		}
		if d.codecs == nil {
			d.codecs = map[int64]*schemaCodec{}
		}
		d.codecs[id] = codec
	}
	v, err := d.codecs[id].decode(rest, bytes)
	if err != nil {
		return nil, fmt.Errorf("schema %d: %w", id, err)
	}
	return v, nil
}

// AvroDecoder decodes what a connector with this kind of converter wrote; see [Registry.AvroConverter].
func (r *Registry) AvroDecoder(kind string) *AvroDecoder {
	return &AvroDecoder{Registry: r, Wide: kind == "apicurio", Global: kind == "apicurio4"}
}

// Text makes a text of a key or value of Debezium's that says which schema it has and what is in it: like JsonConverter's with
// schemas. The clock of the record is left out. The bytes have to be those that goavro
// writes.
func (d *AvroDecoder) Text(t testing.TB, data []byte) *string {
	t.Helper()
	v, err := d.decode(t, data, asJSONConverter)
	if err != nil {
		t.Fatal(err)
	}
	if v == nil {
		return nil
	}
	id, rest, _ := d.ID(data)
	codec := d.codecs[id].codec
	native, _, _ := codec.NativeFromBinary(rest)
	if again, err := codec.BinaryFromNative(nil, native); err != nil || !bytes.Equal(again, rest) {
		t.Errorf("goavro writes %x again as %x (%v)", rest, again, err)
	}
	if record, ok := v.(map[string]any); ok {
		_, row := record["op"]
		_, statement := record["databaseName"]
		if row || statement && record["source"] != nil {
			delete(record, "ts_ms")
			delete(record, "ts_us")
			delete(record, "ts_ns")
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, `{"schema":%s,"payload":`, d.codecs[id].text)
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		t.Fatal(err)
	}
	whole := strings.TrimSuffix(text.String(), "\n") + "}"
	return &whole
}

// JSON makes of Avro messages the same ones as JsonConverter without schemas would have written them, as the checker reads them.
func (d *AvroDecoder) JSON(t testing.TB, messages []Message) []Message {
	t.Helper()
	all := make([]Message, len(messages))
	for i, m := range messages {
		for _, part := range []*[]byte{&m.Key, &m.Value} {
			v, err := d.decode(t, *part, asJSONConverter)
			if err != nil {
				t.Fatalf("%s/%d@%d: %v", m.Topic, m.Partition, m.Offset, err)
			}
			if v == nil {
				continue
			}
			if *part, err = json.Marshal(v); err != nil {
				t.Fatal(err)
			}
		}
		all[i] = m
	}
	return all
}
