package avro

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

// FuzzAppendSchema holds that what is printed compiles, that it is the same as itself, and that a value of it can be
// decoded.
func FuzzAppendSchema(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		typ := drawType(t)
		o := Options{NoMeta: rapid.Bool().Draw(t, "no meta"), Scrub: rapid.Bool().Draw(t, "scrub")}
		text, err := o.AppendSchema(nil, typ)
		if err != nil {
			t.Fatal(err)
		}
		if err := Check(string(text)); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		changes, err := Compare(string(text), string(text))
		if err != nil || len(changes) > 0 {
			t.Fatalf("%v, %v: %s", changes, err, text)
		}
		c, err := NewCodec(string(text))
		if err != nil {
			t.Fatal(err)
		}
		data := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "data")
		if _, err := c.Native(data); err == nil {
			if b, err := c.AppendJSON(nil, data); err != nil || !json.Valid(b) {
				t.Fatalf("%s, %v: %s", b, err, text)
			}
		}
	}))
}

// FuzzCodec holds that bytes that are none of a schema are an error, and that those that goavro takes are taken if
// nothing is left over.
func FuzzCodec(f *testing.F) {
	c, err := NewCodec(allForms)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(allFormsBytes)
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := c.AppendJSON(nil, data)
		if err != nil {
			return
		}
		if !json.Valid(got) {
			t.Fatalf("%q", got)
		}
		if _, rest, err := c.codec.NativeFromBinary(data); err != nil || len(rest) > 0 {
			t.Fatalf("goavro: %v, %d left over", err, len(rest))
		}
	})
}

// FuzzSchemaTexts holds that no text of a schema is too much for any of the functions that take one.
func FuzzSchemaTexts(f *testing.F) {
	f.Add(allForms, []byte{0})
	f.Add(`{"type":"record","name":"R","fields":[{"name":"r","type":"R"}]}`, []byte{})
	for _, name := range goldens(f) {
		for _, s := range subjects(f, name)[:2] {
			f.Add(s.Schema, []byte{2, 0})
		}
	}
	f.Fuzz(func(t *testing.T, text string, data []byte) {
		check := Check(text)
		if same, err := SameBytes(text, text); err == nil && same != "" {
			t.Fatalf("not the same as itself: %s", same)
		}
		if changes, err := Compare(text, text); err == nil && len(changes) > 0 {
			t.Fatalf("not the same as itself: %v", changes)
		}
		c, err := NewCodec(text)
		if err != nil {
			if check == nil {
				t.Fatalf("taken by Check only: %v", err)
			}
			return
		}
		if b, err := c.AppendJSON(nil, data); err == nil && !json.Valid(b) {
			t.Fatalf("%q", b)
		}
	})
}
