package avro

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/linkedin/goavro/v2"

	"github.com/tidemark-cdc/tidemark/schema"
)

// Codec decodes the Avro binary of one schema for people and for tests; it is not made for speed. Logical types are
// left alone: a decimal is bytes, a date an int. It is safe for concurrent use.
type Codec struct {
	root  *node
	names map[*node]string // in goavro's schema
	codec *goavro.Codec
}

// NewCodec returns the codec of a schema. An error means that it is not a valid one.
func NewCodec(text string) (*Codec, error) {
	root, err := parse(text)
	if err != nil {
		return nil, err
	}
	bare, names := plain(root)
	codec, err := goavro.NewCodec(bare)
	if err != nil {
		return nil, fmt.Errorf("the Avro schema does not compile: %w", err)
	}
	return &Codec{root, names, codec}, nil
}

// Native decodes data, which is the Avro binary alone, without a prefix. Values are what goavro makes of them: nil,
// bool, int32, int64, float32, float64, []byte, string, []any, map[string]any for maps and records, and
// map[string]any{branch: value} for what is not null in a union, where branch is the full name of a record. An error
// means that data is not a value of the schema, or that bytes are left over. Nothing of it aliases data.
func (c *Codec) Native(data []byte) (any, error) {
	rest, err := measure(c.root, data, 0)
	if err != nil {
		return nil, fmt.Errorf("the bytes are not Avro of the schema: %w", err)
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("the bytes are not Avro of the schema: %d of %d are left over", len(rest), len(data))
	}
	v, _, err := c.codec.NativeFromBinary(data)
	if err != nil {
		return nil, fmt.Errorf("the bytes are not Avro of the schema: %w", err)
	}
	return c.named(c.root, v)
}

// named gives back the names that goavro's schema does not have.
func (c *Codec) named(n *node, v any) (any, error) {
	var err error
	switch n.kind {
	case kindBytes, kindFixed:
		if b, ok := v.([]byte); ok {
			return slices.Clone(b), nil
		}
	case kindEnum:
		for i, s := range n.symbols {
			if v == symbolNumber(i) {
				return s, nil
			}
		}
	case kindArray:
		list, ok := v.([]any)
		for i := range list {
			if list[i], err = c.named(n.items, list[i]); err != nil {
				return nil, err
			}
		}
		if ok {
			return list, nil
		}
	case kindMap:
		o, ok := v.(map[string]any)
		for k := range o {
			if o[k], err = c.named(n.items, o[k]); err != nil {
				return nil, err
			}
		}
		if ok {
			return o, nil
		}
	case kindUnion:
		if v == nil {
			return nil, nil
		}
		o, _ := v.(map[string]any)
		for _, b := range n.branches {
			name := string(b.kind)
			if b.kind.named() {
				name = c.names[b]
			}
			if inner, ok := o[name]; ok {
				inner, err = c.named(b, inner)
				return map[string]any{b.label(): inner}, err
			}
		}
	case kindRecord:
		o, ok := v.(map[string]any)
		if !ok {
			break
		}
		out := make(map[string]any, len(n.fields))
		for i := range n.fields {
			if out[n.fields[i].name], err = c.named(n.fields[i].typ, o[fieldNumber(i)]); err != nil {
				return nil, err
			}
		}
		return out, nil
	default:
		return v, nil
	}
	return nil, fmt.Errorf("goavro makes %T of %s", v, n.words())
}

// AppendJSON appends data, decoded as Native does, in Avro's JSON encoding as Java prints it: fields in the order of the
// schema, {"branch": value} for what is not null in a union, a string with a character from U+0000 to U+00FF for each
// byte of bytes, floats widened to doubles. It has no blanks and no line end.
func (c *Codec) AppendJSON(dst, data []byte) ([]byte, error) {
	v, err := c.Native(data)
	if err != nil {
		return dst, err
	}
	return appendNative(dst, c.root, v), nil
}

// appendNative prints what named returned.
func appendNative(dst []byte, n *node, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case int32:
		return strconv.AppendInt(dst, int64(v), 10)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case float32:
		if v == 0 { // Java widens it by adding 0, and -0 gets lost
			return append(dst, "0.0"...)
		}
		return appendAnyDouble(dst, float64(v))
	case float64:
		return appendAnyDouble(dst, v)
	case string:
		return appendQuoted(dst, v)
	case []byte:
		return appendLatin(dst, v)
	case []any:
		dst = append(dst, '[')
		for i := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendNative(dst, n.items, v[i])
		}
		return append(dst, ']')
	case map[string]any:
		return appendObject(dst, n, v)
	}
	return dst
}

func appendObject(dst []byte, n *node, o map[string]any) []byte {
	dst = append(dst, '{')
	member := func(name string, n *node) {
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = append(appendQuoted(dst, name), ':')
		dst = appendNative(dst, n, o[name])
	}
	switch n.kind {
	case kindRecord:
		for i := range n.fields {
			member(n.fields[i].name, n.fields[i].typ)
		}
	case kindUnion:
		for _, b := range n.branches {
			if _, ok := o[b.label()]; ok {
				member(b.label(), b)
			}
		}
	case kindMap:
		names := make([]string, 0, len(o))
		for name := range o {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			member(name, n.items)
		}
	}
	return append(dst, '}')
}

// appendAnyDouble prints a double; one that is not finite is a string.
func appendAnyDouble(dst []byte, v float64) []byte {
	if !math.IsNaN(v) && !math.IsInf(v, 0) {
		return schema.AppendDouble(dst, v)
	}
	dst = append(dst, '"')
	dst = schema.AppendDouble(dst, v)
	return append(dst, '"')
}
