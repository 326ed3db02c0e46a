package avro

import (
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/schema"
)

func TestSameBytes(t *testing.T) {
	id := column{"id", colInt}
	documented := *colInt
	documented.Doc = "a comment"
	text := func(columns ...column) string { return envelope(t, append([]column{id}, columns...)...) }
	plain := func(columns ...column) string {
		typ := structure("p.db.t.Value", append([]column{id}, columns...)...)
		b, err := Options{NoMeta: true}.AppendSchema(nil, typ)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, c := range []struct{ name, a, b, want string }{
		{"the same", text(), text(), ""},
		{"a default", text(column{"a", colInt}), text(column{"a", defaulted(colInt, one)}), ""},
		{"a comment", text(column{"a", colInt}), text(column{"a", &documented}), ""},
		{"properties", plain(column{"a", colEnum}), rowAlone(t, id, column{"a", colEnum}), ""},
		{"TINYINT", text(column{"a", colTinyint}), text(column{"a", colInt}), ""},
		{"precision", text(column{"a", colDecimal("9", "2")}), text(column{"a", colDecimal("8", "2")}), ""},
		{"VARCHAR to ENUM", text(column{"a", colVarchar}), text(column{"a", colEnum}), ""},
		{
			"scale", text(column{"a", colDecimal("9", "2")}), text(column{"a", colDecimal("9", "3")}),
			"before.a is bytes (decimal of scale 2) in the first schema and bytes (decimal of scale 3) in the second",
		},
		{
			"decimal", text(column{"a", colDecimal("9", "2")}), text(column{"a", colBinary}),
			"before.a is bytes (decimal of scale 2) in the first schema and bytes in the second",
		},
		{
			"units", text(column{"a", colDatetime3}), text(column{"a", colDatetime6}),
			"before.a is io.debezium.time.Timestamp in the first schema and io.debezium.time.MicroTimestamp in the second",
		},
		{"a type", text(column{"a", colInt}), text(column{"a", colBigint}), "before.a is int in the first schema and long in the second"},
		{
			"NULL", text(column{"a", colInt}), text(column{"a", nullable(colInt)}),
			"before.a is int in the first schema and [null, int] in the second",
		},
		{
			"branches", text(column{"a", nullable(colInt)}), text(column{"a", nullable(defaulted(colInt, one))}),
			"before.a is [null, int] in the first schema and [int, null] in the second",
		},
		{"less", text(column{"a", colInt}), text(), "only the first schema has before.a"},
		{"more", text(), text(column{"a", nullable(colInt)}), "only the second schema has before.a"},
		{
			"order", text(column{"a", colInt}, column{"b", colInt}), text(column{"b", colInt}, column{"a", colInt}),
			"before: field 2 of p.db.t.Value is a in the first schema and b in the second",
		},
		{
			"a name", `{"type":"record","name":"a.Key","fields":[]}`, `{"type":"record","name":"b.Key","fields":[]}`,
			"the schema is record a.Key in the first schema and record b.Key in the second",
		},
		{
			"items", `{"type":"array","items":"int"}`, `{"type":"array","items":"long"}`,
			"the schema is array of int in the first schema and array of long in the second",
		},
		{
			"symbols", `{"type":"enum","name":"E","symbols":["A","B"]}`, `{"type":"enum","name":"E","symbols":["B","A"]}`,
			"the schema is an enum of A, B in the first schema and one of B, A in the second",
		},
		{
			"size", `{"type":"fixed","name":"E","size":1}`, `{"type":"fixed","name":"E","size":2}`,
			"the schema is of 1 bytes in the first schema and of 2 in the second",
		},
		{
			"a record in itself", `{"type":"record","name":"E","fields":[{"name":"e","type":["null","E"]}]}`,
			`{"type":"record","name":"E","fields":[{"name":"e","type":["null","E"]}]}`, "",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := SameBytes(c.a, c.b)
			if err != nil || got != c.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, c.want)
			}
			back, err := SameBytes(c.b, c.a)
			if err != nil || (back == "") != (got == "") {
				t.Errorf("the other way round: %s, %v", back, err)
			}
		})
	}
	for _, c := range [][2]string{{`{`, `"int"`}, {`"int"`, `{`}} {
		if _, err := SameBytes(c[0], c[1]); err == nil || !strings.Contains(err.Error(), "not JSON") {
			t.Errorf("%q: %v", c, err)
		}
	}
}

// rowAlone is a row's record alone.
func rowAlone(t *testing.T, columns ...column) string {
	t.Helper()
	return printed(t, &schema.Type{Type: "struct", Name: "p.db.t.Value", Fields: fieldsOf(columns)})
}
