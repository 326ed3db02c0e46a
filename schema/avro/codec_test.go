package avro

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const allForms = `{"type":"record","name":"a.All","fields":[
	{"name":"n","type":"null"},{"name":"b","type":"boolean"},{"name":"i","type":"int"},{"name":"l","type":"long"},
	{"name":"f","type":"float"},{"name":"d","type":"double"},{"name":"s","type":"string"},{"name":"y","type":"bytes"},
	{"name":"x","type":{"type":"fixed","name":"F","size":2}},{"name":"e","type":{"type":"enum","name":"E","symbols":["A","B"]}},
	{"name":"a","type":{"type":"array","items":["null","F"]}},{"name":"m","type":{"type":"map","values":"E"}},
	{"name":"self","type":["null","All"]},
	{"name":"dec","type":{"type":"bytes","scale":2,"precision":5,"logicalType":"decimal"}}]}`

var allFormsBytes = []byte{
	1,              // b
	1,              // i = -1
	2,              // l = 1
	0, 0, 0x80, 63, // f = 1
	0, 0, 0, 0, 0, 0, 0xf0, 0x7f, // d = Infinity
	4, 0xc3, 0xa4, // s = ä
	4, 0, 0xff, // y
	'h', 'i', // x
	2,                                       // e = B
	2, 0, 3, 6, 2, 'y', 'o', 2, 'h', 'o', 0, // a: one item, then two with the size of the block
	4, 2, 'z', 0, 2, 'k', 2, 0, // m
	0,       // self
	2, 0xff, // dec
}

func TestCodecDecodesAllForms(t *testing.T) {
	c, err := NewCodec(allForms)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.AppendJSON([]byte("> "), allFormsBytes)
	if err != nil {
		t.Fatal(err)
	}
	want := `> {"n":null,"b":true,"i":-1,"l":1,"f":1.0,"d":"Infinity","s":"ä","y":"\u0000ÿ","x":"hi","e":"B",` +
		`"a":[null,{"a.F":"yo"},{"a.F":"ho"}],"m":{"k":"B","z":"A"},"self":null,"dec":"ÿ"}`
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Error(d)
	}
	native, err := c.Native(allFormsBytes)
	if err != nil {
		t.Fatal(err)
	}
	row := native.(map[string]any)
	wantRow := map[string]any{
		"n": nil, "b": true, "i": int32(-1), "l": int64(1), "f": float32(1), "d": row["d"], "s": "ä", "y": []byte{0, 0xff},
		"x": []byte("hi"), "e": "B", "m": map[string]any{"k": "B", "z": "A"}, "self": nil, "dec": []byte{0xff},
		"a": []any{nil, map[string]any{"a.F": []byte("yo")}, map[string]any{"a.F": []byte("ho")}},
	}
	if d := cmp.Diff(wantRow, row); d != "" {
		t.Error(d)
	}
}

func TestCodecRefuses(t *testing.T) {
	for _, c := range []struct{ schema, data, want string }{
		{`"int"`, "", "the bytes end too early"},
		{`"int"`, "\x80", "the bytes end too early"},
		{`"int"`, "\x02\x02", "1 of 2 are left over"},
		{`"int"`, "\xff\xff\xff\xff\xff\x01", "an int is"},
		{`"long"`, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "a number of more than 64 bits"},
		{`"boolean"`, "\x02", "a boolean is 2"},
		{`"string"`, "\x04a", "the bytes end too early"},
		{`"string"`, "\x01", "string of length -1"},
		{`["null","int"]`, "\x04", "a union of 2 branches has branch 2"},
		{`{"type":"enum","name":"E","symbols":["A"]}`, "\x02", "an enum of 1 symbols has symbol 1"},
		{`{"type":"array","items":"null"}`, "\xfe\xff\xff\xff\x0f\x00", "2147483647 items in 1 bytes"},
		{`{"type":"array","items":"int"}`, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02", "9223372036854775808 items in 0 bytes"},
		{`{"type":"record","name":"R","fields":[{"name":"r","type":"R"}]}`, "", "values are more than 1000 deep in each other"},
		{`{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"float"}]}`, "\x00\x00", "b: the bytes end too early"},
	} {
		codec, err := NewCodec(c.schema)
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		got, err := codec.AppendJSON([]byte("x"), []byte(c.data))
		if err == nil || !strings.HasPrefix(err.Error(), "the bytes are not Avro of the schema: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.schema, err, c.want)
		}
		if string(got) != "x" {
			t.Errorf("dst is %q behind an error", got)
		}
	}
	if _, err := NewCodec(`["int","int"]`); err == nil {
		t.Error("a codec of no schema")
	}
}

// What Native returns may be kept when data is written over.
func TestNativeDoesNotAlias(t *testing.T) {
	c, err := NewCodec(`{"type":"record","name":"R","fields":[{"name":"s","type":"string"},{"name":"b","type":"bytes"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	data := []byte{2, 'a', 2, 'b'}
	v, err := c.Native(data)
	if err != nil {
		t.Fatal(err)
	}
	clear(data)
	if d := cmp.Diff(map[string]any{"s": "a", "b": []byte("b")}, v); d != "" {
		t.Error(d)
	}
}
