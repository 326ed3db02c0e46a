package avro

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidemark-cdc/tidemark/schema"
)

func structure(name string, fields ...column) *schema.Type {
	return &schema.Type{Type: "struct", Name: name, Fields: fieldsOf(fields)}
}

func TestAppendSchemaForms(t *testing.T) {
	documented := *colDecimal("5", "2")
	documented.Doc = "say \"hi\"\n\x01ä🐬"
	documented.Default = &schema.Value{Kind: schema.Bytes, Bytes: []byte{0, 0xff, '"'}}
	blank := schema.Type{Type: "string", BlankDoc: true}
	negative := schema.Type{
		Type: "bytes", Name: schema.DecimalName, Version: 1,
		Parameters: []schema.Parameter{{Name: "scale", Value: "-2"}},
	}
	inner := structure("a.b.Inner", column{"x", colInt})
	other := structure("a.b.Inner", column{"x", colInt})
	other.Doc = "lost, as with AvroData"
	for _, c := range []struct {
		name    string
		options Options
		typ     *schema.Type
		want    string
	}{
		{"a word", Options{}, colInt, `"int"`},
		{"int8", Options{}, &schema.Type{Type: "int8"}, `{"type":"int","connect.type":"int8"}`},
		{"int8 without meta data", Options{NoMeta: true}, &schema.Type{Type: "int8"}, `"int"`},
		{
			"decimal",
			Options{},
			&documented,
			`{"type":"bytes","scale":2,"precision":5,"connect.doc":"say \"hi\"\n\u0001ä🐬","connect.version":1,` +
				`"connect.parameters":{"scale":"2","connect.decimal.precision":"5"},"connect.default":"\u0000ÿ\"",` +
				`"connect.name":"org.apache.kafka.connect.data.Decimal","logicalType":"decimal"}`,
		},
		{
			"decimal without meta data",
			Options{NoMeta: true},
			&documented,
			`{"type":"bytes","scale":2,"precision":5,"logicalType":"decimal"}`,
		},
		{
			"decimal without precision",
			Options{NoMeta: true},
			&negative,
			`{"type":"bytes","scale":-2,"precision":64,"logicalType":"decimal"}`,
		},
		{"a comment of nothing", Options{}, &blank, `{"type":"string","connect.doc":""}`},
		{
			"optional with a default",
			Options{},
			structure("a.R", column{"d", nullable(defaulted(colDouble, schema.Value{Kind: schema.Double, Float: 1e10}))}),
			`{"type":"record","name":"R","namespace":"a","fields":[{"name":"d","type":[{"type":"double","connect.default":1.0E10},"null"],"default":1.0E10}],` +
				`"connect.name":"a.R"}`,
		},
		{
			"the same record again",
			Options{NoMeta: true},
			structure("a.b.Outer", column{"p", inner}, column{"q", nullable(other)}, column{"r", structure("c.R", column{"s", inner})}),
			`{"type":"record","name":"Outer","namespace":"a.b","fields":[{"name":"p","type":{"type":"record","name":"Inner",` +
				`"fields":[{"name":"x","type":"int"}]}},{"name":"q","type":["null","Inner"],"default":null},` +
				`{"name":"r","type":{"type":"record","name":"R","namespace":"c","fields":[{"name":"s","type":"a.b.Inner"}]}}]}`,
		},
		{
			"no namespace in one",
			Options{NoMeta: true},
			structure("a.Outer", column{"p", structure("Inner")}, column{"q", structure("Inner")}),
			`{"type":"record","name":"Outer","namespace":"a","fields":[{"name":"p","type":{"type":"record","name":"Inner","namespace":"","fields":[]}},` +
				`{"name":"q","type":"Inner"}]}`,
		},
		{
			"scrubbed",
			Options{Scrub: true, NoMeta: true},
			structure("org.acme-corp.invalid record-name", column{"invalid field-name", colVarchar}),
			`{"type":"record","name":"invalid_record_name","namespace":"org.acme_corp","fields":[{"name":"invalid_field_name","type":"string"}]}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.options.AppendSchema(nil, c.typ)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, string(got)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestAppendSchemaRefusesNames(t *testing.T) {
	row := func(name string) *schema.Type { return structure("p.db.t.Value", column{name, colInt}) }
	in := func(typ *schema.Type) *schema.Type {
		return structure("p.db.t.Envelope", column{"after", nullable(typ)})
	}
	for _, c := range []struct {
		typ     *schema.Type
		options Options
		want    NameError
	}{
		{in(row("order-id")), Options{}, NameError{"order-id", true, []string{"after", "order-id"}, `'-' is not a letter, a digit or _`}},
		{in(row("1st")), Options{}, NameError{"1st", true, []string{"after", "1st"}, `"1st" begins with a digit`}},
		{row(""), Options{}, NameError{"", true, []string{""}, "a part of the name is empty"}},
		{row("🐬"), Options{}, NameError{"🐬", true, []string{"🐬"}, `'🐬' is not a letter, a digit or _`}},
		{structure("my-app.db.t.Key"), Options{}, NameError{"my-app.db.t.Key", false, nil, `'-' is not a letter, a digit or _`}},
		{in(structure("p.db.1t.Value")), Options{}, NameError{"p.db.1t.Value", false, []string{"after"}, `"1t" begins with a digit`}},
		{structure("p..Key"), Options{}, NameError{"p..Key", false, nil, "a part of the name is empty"}},
		{structure("..."), Options{}, NameError{"...", false, nil, "a part of the name is empty"}},
		{structure("int"), Options{}, NameError{"int", false, nil, "that is the name of a type"}},
		{
			structure("p.Key", column{"a-b", colInt}, column{"a_b", colInt}),
			Options{Scrub: true},
			NameError{"a_b", true, []string{"a_b"}, `the field "a-b" has that name in Avro, too`},
		},
	} {
		_, err := c.options.AppendSchema(nil, c.typ)
		var got *NameError
		if !errors.As(err, &got) {
			t.Errorf("%q: %v", c.want.Name, err)
			continue
		}
		if d := cmp.Diff(c.want, *got, cmp.AllowUnexported(NameError{})); d != "" {
			t.Errorf("%q: %s", c.want.Name, d)
		}
	}
}

func TestNameErrorSaysWhichAndWhy(t *testing.T) {
	for _, c := range []struct {
		typ  *schema.Type
		want string
	}{
		{
			structure("p.db.t.Value", column{"order-id", colInt}),
			`Avro cannot have a field named "order-id" (at order-id): '-' is not a letter, a digit or _`,
		},
		{structure("my-app.db.t.Key"), `Avro cannot have a record named "my-app.db.t.Key": '-' is not a letter, a digit or _`},
		{structure("p.Envelope", column{"after", structure("p.1.Value")}), `Avro cannot have a record named "p.1.Value" (at after): "1" begins with a digit`},
	} {
		if _, err := (Options{}).AppendSchema(nil, c.typ); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

// Avro Java takes the letters of all scripts; the names are the same with Debezium then.
func TestLettersOfOtherScripts(t *testing.T) {
	text := printed(t, structure("p.db.täble.Value", column{"größe", colInt}))
	if err := Check(text); err != nil {
		t.Error(err)
	}
	c, err := NewCodec(text)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.AppendJSON(nil, []byte{6})
	if err != nil || string(got) != `{"größe":3}` {
		t.Errorf("%s, %v", got, err)
	}
}

func TestAppendSchemaRefusesWhatConnectDoesNotHave(t *testing.T) {
	for _, c := range []struct {
		typ  *schema.Type
		want string
	}{
		{&schema.Type{Type: "uuid"}, `the schema has the type "uuid"`},
		{&schema.Type{Type: "array"}, "the schema has no type"},
		{&schema.Type{Type: "map", Values: colInt}, "the schema is a map without a type of keys"},
		{structure("a.B", column{"d", &schema.Type{Type: "bytes", Name: schema.DecimalName}}), `field d is a decimal whose scale is ""`},
		{
			structure("a.B", column{"d", &schema.Type{
				Type: "bytes", Name: schema.DecimalName,
				Parameters: []schema.Parameter{{Name: "scale", Value: "1"}, {Name: "connect.decimal.precision", Value: "x"}},
			}}),
			`field d is a decimal whose precision is "x"`,
		},
		{structure("a.B", column{"i", defaulted(&schema.Type{Type: "int8"}, schema.Value{Kind: schema.Int, Int: 128})}), "field i: the default does not fit the type int8"},
		{structure("a.B", column{"s", defaulted(colVarchar, one)}), "field s: the default does not fit the type string"},
		{structure("a.B", column{"s", defaulted(inPlace, schema.Value{Kind: schema.Point})}), "field s: the default does not fit the type struct"},
	} {
		for _, o := range [...]Options{{}, {NoMeta: true}} {
			got, err := o.AppendSchema([]byte("x"), c.typ)
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if string(got) != "x" {
				t.Errorf("dst is %q behind an error", got)
			}
		}
	}
}

var inPlace = structure("io.debezium.data.geometry.Point", column{"x", colDouble})

// A default of NULL is none.
func TestDefaultOfNull(t *testing.T) {
	got := printed(t, structure("K", column{"a", nullable(defaulted(colInt, schema.Value{Kind: schema.Null}))}))
	want := `{"type":"record","name":"K","fields":[{"name":"a","type":["null","int"],"default":null}],"connect.name":"K"}`
	if got != want {
		t.Error(got)
	}
}

func TestRecordName(t *testing.T) {
	for _, c := range []struct {
		name    string
		options Options
		want    string
	}{
		{"p.db.t.Value", Options{}, "p.db.t.Value"},
		{"", Options{}, "io.confluent.connect.avro.ConnectDefault"},
		{"my-app.1db.t.Key", Options{Scrub: true}, "my_app.x1db.t.Key"},
		{"my-app.1db.t.Key", Options{}, "my-app.1db.t.Key"},
		{".Key", Options{}, "Key"},
		{"a.Key..", Options{}, "a.Key"},
	} {
		if got := c.options.RecordName(structure(c.name)); got != c.want {
			t.Errorf("%q: %q, not %q", c.name, got, c.want)
		}
	}
}

// The first ones are those of AvroData's own test.
func TestScrub(t *testing.T) {
	for name, want := range map[string]string{
		"":            "",
		"abc_DEF_123": "abc_DEF_123",
		"abc+-.*_":    "abc_2B____",
		"abc-def":     "abc_def",
		"abc+def":     "abc_2Bdef",
		"abc  def":    "abc__def",
		"abc.def":     "abc_def",
		"0abc.def":    "x0abc_def",
		"0abc":        "x0abc",
		"ä~🐬":         "_C3_A4_7E_F0_9F_90_AC",
	} {
		if got := scrub(name); got != want {
			t.Errorf("%q: %q, not %q", name, got, want)
		}
	}
}
