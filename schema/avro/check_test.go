package avro

import (
	"errors"
	"strings"
	"testing"
)

func TestCheckTakesWhatGoavroDoesNot(t *testing.T) {
	for _, text := range []string{
		`{"type":"record","name":"a.B","fields":[{"name":"d","type":[{"type":"bytes","scale":2,"precision":5,"logicalType":"decimal"},"null"],"default":"\u0001"}]}`,
		`{"type":"record","name":"a.B","fields":[{"name":"n","type":["long","null"],"default":9223372036854775807}]}`,
		`{"type":"record","name":"ä.Ö","fields":[{"name":"ü","type":"int"}]}`,
		// A scale above the precision makes a plain bytes of it, in Java.
		`{"type":"record","name":"a.B","fields":[{"name":"d","type":{"type":"bytes","scale":7,"precision":5,"logicalType":"decimal"}}]}`,
	} {
		if err := Check(text); err != nil {
			t.Errorf("%v: %s", err, text)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	field := func(rest string) string { return `{"type":"record","name":"a.B","fields":[{"name":"f",` + rest + `}]}` }
	for _, c := range []struct{ text, want string }{
		{``, "the Avro schema is not JSON"},
		{`"int" "int"`, "the Avro schema has something behind its end"},
		{`"Value"`, `the Avro schema is not valid: no type is named "Value"`},
		{`7`, "the Avro schema is not valid: a type is a name, a list or an object"},
		{`{}`, `the Avro schema is not valid: a type has no "type"`},
		{`{"type":"record"}`, "the Avro schema is not valid: a type of kind record has no name"},
		{`{"type":"record","name":"R"}`, "the Avro schema is not valid: the record R has no list of fields"},
		{`{"type":"record","name":"R","fields":[1]}`, "the Avro schema is not valid: field 0 of R is no object"},
		{`{"type":"record","name":"R","fields":[{}]}`, "the Avro schema is not valid: field 0 of R has no name"},
		{`{"type":"array"}`, `the Avro schema is not valid: a type has no "items"`},
		{`{"type":"map"}`, `the Avro schema is not valid: a type has no "values"`},
		{`{"type":"enum","name":"E"}`, "the Avro schema is not valid: the enum E has no symbols"},
		{`{"type":"enum","name":"E","symbols":["a-b"]}`, `the enum E has the symbol "a-b"`},
		{`{"type":"fixed","name":"F"}`, "the Avro schema is not valid: F is fixed and has no size"},
		{`{"type":"fixed","name":"F","size":-1}`, "the Avro schema is not valid: F is fixed and has the size -1"},
		{`["int",["null"]]`, "the Avro schema is not valid: a union has a union in it"},
		{`["int","int"]`, "the Avro schema is not valid: a union has int twice"},
		{field(`"type":"Value"`), `the Avro schema is not valid at f: no type is named "a.Value"`},
		{field(`"type":{"type":"record","name":"B","fields":[]}`), "the Avro schema is not valid at f: a.B is defined twice"},
		{field(`"type":"int"},{"name":"f","type":"int"`), `the Avro schema is not valid: a.B has two fields named "f"`},
		{field(`"type":"int","default":"x"`), "the default of the field f does not fit its type, int"},
		{field(`"type":"int","default":2147483648`), "the default of the field f does not fit its type, int"},
		{field(`"type":["null","int"],"default":0`), "the default of the field f does not fit its type, [null, int]"},
		{field(`"type":"bytes","default":"€"`), "the default of the field f does not fit its type, bytes"},
		{field(`"type":{"type":"array","items":"int"},"default":["x"]`), "the default of the field f does not fit its type, array of int"},
		{field(`"type":{"type":"map","values":"int"},"default":{"a":null}`), "the default of the field f does not fit its type, map of int"},
		{field(`"type":{"type":"enum","name":"E","symbols":["A"]},"default":"B"`), "the default of the field f does not fit its type, enum a.E"},
		{
			field(`"type":{"type":"record","name":"C","fields":[{"name":"x","type":"int"}]},"default":{}`),
			"the default of the field f does not fit its type, record a.C",
		},
	} {
		if err := Check(c.text); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s\ngot  %v\nwant %s", c.text, err, c.want)
		}
	}
}

func TestCheckNamesTheName(t *testing.T) {
	for _, c := range []struct{ text, name, path string }{
		{`{"type":"record","name":"p.1db.Key","fields":[]}`, "p.1db.Key", ""},
		{`{"type":"record","name":"Key","namespace":"a-b","fields":[]}`, "a-b.Key", ""},
		{`{"type":"record","name":"Key","fields":[{"name":"after","type":{"type":"record","name":"V","fields":[{"name":"x y","type":"int"}]}}]}`, "x y", "after.x y"},
	} {
		err := Check(c.text)
		var name *NameError
		if !errors.As(err, &name) || name.Name != c.name || strings.Join(name.Path, ".") != c.path {
			t.Errorf("%s: %v", c.text, err)
		}
	}
}

func TestCheckTakesAllForms(t *testing.T) {
	text := `{"type":"record","name":"a.b.All","fields":[
		{"name":"n","type":"null","default":null},
		{"name":"b","type":{"type":"boolean"},"default":true},
		{"name":"i","type":"int","default":-1},
		{"name":"f","type":"float","default":1},
		{"name":"d","type":"double","default":1e300},
		{"name":"s","type":{"type":{"type":"string"}},"default":"€"},
		{"name":"y","type":"bytes","default":"ÿ"},
		{"name":"x","type":{"type":"fixed","name":"F","size":2},"default":"ab"},
		{"name":"e","type":{"type":"enum","name":"other.E","symbols":["A","B"],"default":"A"},"default":"B"},
		{"name":"l","type":{"type":"array","items":"int"},"default":[1,2]},
		{"name":"m","type":{"type":"map","values":"F"},"default":{"k":"ab"}},
		{"name":"u","type":["other.E","null"],"default":"A"},
		{"name":"r","type":{"type":"record","name":"R","namespace":"c","fields":[{"name":"v","type":"int","default":3},{"name":"e","type":"other.E"}]},
			"default":{"e":"A"}},
		{"name":"self","type":["null","All"],"default":null}]}`
	if err := Check(text); err != nil {
		t.Error(err)
	}
}
