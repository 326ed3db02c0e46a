package avro

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidemark-cdc/tidemark/schema"
)

// Columns as Debezium's schemas have them.
var (
	colInt       = &schema.Type{Type: "int32"}
	colBigint    = &schema.Type{Type: "int64"}
	colTinyint   = &schema.Type{Type: "int16"}
	colFloat     = &schema.Type{Type: "float"}
	colDouble    = &schema.Type{Type: "double"}
	colVarchar   = &schema.Type{Type: "string"}
	colBinary    = &schema.Type{Type: "bytes"}
	colBit1      = &schema.Type{Type: "boolean"}
	colDate      = &schema.Type{Type: "int32", Name: "io.debezium.time.Date", Version: 1}
	colDatetime3 = &schema.Type{Type: "int64", Name: "io.debezium.time.Timestamp", Version: 1}
	colDatetime6 = &schema.Type{Type: "int64", Name: "io.debezium.time.MicroTimestamp", Version: 1}
	colTimestamp = &schema.Type{Type: "string", Name: "io.debezium.time.ZonedTimestamp", Version: 1}
	colJSON      = &schema.Type{Type: "string", Name: "io.debezium.data.Json", Version: 1}
	colEnum      = &schema.Type{
		Type: "string", Name: "io.debezium.data.Enum", Version: 1,
		Parameters: []schema.Parameter{{Name: "allowed", Value: "a,b"}},
	}
	colBit8 = &schema.Type{
		Type: "bytes", Name: "io.debezium.data.Bits", Version: 1,
		Parameters: []schema.Parameter{{Name: "length", Value: "8"}},
	}
)

func colDecimal(precision, scale string) *schema.Type {
	return &schema.Type{
		Type: "bytes", Name: schema.DecimalName, Version: 1,
		Parameters: []schema.Parameter{{Name: "scale", Value: scale}, {Name: "connect.decimal.precision", Value: precision}},
	}
}

// nullable is a column that may be NULL.
func nullable(t *schema.Type) *schema.Type {
	c := *t
	c.Optional = true
	return &c
}

// defaulted is a column with a default that is an integer or a text.
func defaulted(t *schema.Type, v schema.Value) *schema.Type {
	c := *t
	c.Default = &v
	return &c
}

var (
	zero = schema.Value{Kind: schema.Int}
	one  = schema.Value{Kind: schema.Int, Int: 1}
)

type column struct {
	name string
	typ  *schema.Type
}

func fieldsOf(columns []column) []schema.Field {
	fields := make([]schema.Field, len(columns))
	for i, c := range columns {
		fields[i] = schema.Field{Name: c.name, Type: c.typ}
	}
	return fields
}

// envelope is the text of a value schema of a table with these columns.
func envelope(t testing.TB, columns ...column) string {
	t.Helper()
	row := &schema.Type{Type: "struct", Name: "p.db.t.Value", Optional: true, Fields: fieldsOf(columns)}
	source := &schema.Type{Type: "struct", Name: "io.debezium.connector.mysql.Source", Version: 1, Fields: []schema.Field{
		{Name: "table", Type: nullable(colVarchar)}, {Name: "pos", Type: colBigint},
	}}
	return printed(t, &schema.Type{Type: "struct", Name: "p.db.t.Envelope", Version: 2, Fields: []schema.Field{
		{Name: "before", Type: row}, {Name: "after", Type: row}, {Name: "source", Type: source}, {Name: "op", Type: colVarchar},
	}})
}

// key is the text of a key schema.
func key(t testing.TB, columns ...column) string {
	t.Helper()
	return printed(t, &schema.Type{Type: "struct", Name: "p.db.t.Key", Fields: fieldsOf(columns)})
}

func printed(t testing.TB, typ *schema.Type) string {
	t.Helper()
	text, err := Options{}.AppendSchema(nil, typ)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The changes of one column that ALTER TABLE makes, and what a registry says of them with BACKWARD and FORWARD, as it
// was measured with Avro Java's SchemaCompatibility.
func TestCompareNamesTheColumn(t *testing.T) {
	id := column{"id", colInt}
	for _, c := range []struct {
		name              string
		earlier, later    []column
		backward, forward bool // the registry takes it
		words, reverse    string
	}{
		{"ADD nullable", nil, []column{{"a", nullable(colInt)}}, true, true, "added with a default", "removed"},
		{"ADD NOT NULL DEFAULT", nil, []column{{"a", defaulted(colInt, zero)}}, true, true, "added with a default", "removed"},
		{"ADD NOT NULL", nil, []column{{"a", colInt}}, false, true, "added without a default", "removed (it had no default)"},
		{
			"RENAME nullable",
			[]column{{"a", nullable(colInt)}},
			[]column{{"b", nullable(colInt)}},
			true, true,
			"b: added with a default; a: removed", "a: added with a default; b: removed",
		},
		{
			"RENAME NOT NULL",
			[]column{{"a", colInt}},
			[]column{{"b", colInt}},
			false, false,
			"b: added without a default; a: removed (it had no default)", "a: added without a default; b: removed (it had no default)",
		},
		{"order", []column{{"a", colInt}, {"b", colBigint}}, []column{{"b", colBigint}, {"a", colInt}}, true, true, "", ""},
		{"NOT NULL to NULL", []column{{"a", colInt}}, []column{{"a", nullable(colInt)}}, true, false, "changed to NULL", "changed to NOT NULL"},
		{
			"NOT NULL to NULL with a default",
			[]column{{"a", defaulted(colInt, zero)}},
			[]column{{"a", nullable(defaulted(colInt, zero))}},
			true, false,
			"changed to NULL", "changed to NOT NULL",
		},
		{"default set", []column{{"a", colInt}}, []column{{"a", defaulted(colInt, zero)}}, true, true, "", ""},
		{"default changed", []column{{"a", defaulted(colInt, zero)}}, []column{{"a", defaulted(colInt, one)}}, true, true, "", ""},
		{"default set, nullable", []column{{"a", nullable(colInt)}}, []column{{"a", nullable(defaulted(colInt, one))}}, true, true, "", ""},
		{"INT to BIGINT", []column{{"a", colInt}}, []column{{"a", colBigint}}, true, false, "changed from int to long", "changed from long to int"},
		{
			"INT to BIGINT, nullable",
			[]column{{"a", nullable(colInt)}},
			[]column{{"a", nullable(colBigint)}},
			true, false,
			"changed from int to long", "changed from long to int",
		},
		{
			"INT NOT NULL to BIGINT NULL",
			[]column{{"a", colInt}},
			[]column{{"a", nullable(colBigint)}},
			true, false,
			"changed to NULL and changed from int to long", "changed to NOT NULL and changed from long to int",
		},
		{"INT to DOUBLE", []column{{"a", colInt}}, []column{{"a", colDouble}}, true, false, "changed from int to double", "changed from double to int"},
		{"FLOAT to DOUBLE", []column{{"a", colFloat}}, []column{{"a", colDouble}}, true, false, "changed from float to double", "changed from double to float"},
		{"DATE to DATETIME", []column{{"a", colDate}}, []column{{"a", colDatetime3}}, true, false, "changed from int to long", "changed from long to int"},
		{"TINYINT to INT", []column{{"a", colTinyint}}, []column{{"a", colInt}}, true, true, "", ""},
		{"VARCHAR to ENUM", []column{{"a", colVarchar}}, []column{{"a", colEnum}}, true, true, "", ""},
		{"VARCHAR to JSON", []column{{"a", colVarchar}}, []column{{"a", colJSON}}, true, true, "", ""},
		{"VARCHAR to TIMESTAMP", []column{{"a", colVarchar}}, []column{{"a", colTimestamp}}, true, true, "", ""},
		{
			"VARCHAR to VARBINARY",
			[]column{{"a", colVarchar}},
			[]column{{"a", colBinary}},
			true, true,
			"changed from string to bytes", "changed from bytes to string",
		},
		{"DECIMAL precision", []column{{"a", colDecimal("10", "2")}}, []column{{"a", colDecimal("12", "4")}}, true, true, "", ""},
		{"DATETIME(3) to DATETIME(6)", []column{{"a", colDatetime3}}, []column{{"a", colDatetime6}}, true, true, "", ""},
		{"INT to VARCHAR", []column{{"a", colInt}}, []column{{"a", colVarchar}}, false, false, "changed from int to string", "changed from string to int"},
		{
			"BIGINT to DECIMAL",
			[]column{{"a", colBigint}},
			[]column{{"a", colDecimal("20", "0")}},
			false, false,
			"changed from long to bytes", "changed from bytes to long",
		},
		{
			"DATETIME to TIMESTAMP",
			[]column{{"a", colDatetime3}},
			[]column{{"a", colTimestamp}},
			false, false,
			"changed from long to string", "changed from string to long",
		},
		{"BIT(1) to BIT(8)", []column{{"a", colBit1}}, []column{{"a", colBit8}}, false, false, "changed from boolean to bytes", "changed from bytes to boolean"},
	} {
		earlier, later := append([]column{id}, c.earlier...), append([]column{id}, c.later...)
		for _, form := range [...]struct {
			name, prefix string
			text         func(testing.TB, ...column) string
		}{{"envelope", "after.", envelope}, {"key", "", key}} {
			t.Run(c.name+"/"+form.name, func(t *testing.T) {
				a, b := form.text(t, earlier...), form.text(t, later...)
				compareBoth(t, a, b, form.prefix, c.words, c.backward, c.forward)
				compareBoth(t, b, a, form.prefix, c.reverse, c.forward, c.backward)
			})
		}
	}
}

// compareBoth looks at the changes: want is what of column a, or of several with their names.
func compareBoth(t *testing.T, earlier, later, prefix, want string, backward, forward bool) {
	t.Helper()
	changes, err := Compare(earlier, later)
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, c := range changes {
		if c.Field != prefix+c.Column {
			t.Errorf("column %q is the field %q", c.Column, c.Field)
		}
		words = append(words, c.Column+": "+c.What)
	}
	if want != "" && !strings.Contains(want, ": ") {
		want = "a: " + want
	}
	if got := strings.Join(words, "; "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if b, f := breaks(changes); b == backward || f == forward {
		t.Errorf("breaks backward %v, forward %v: %v", b, f, changes)
	}
}

func TestCompareInsideColumns(t *testing.T) {
	point := func(fields ...column) *schema.Type {
		return &schema.Type{Type: "struct", Name: "io.debezium.data.geometry.Point", Version: 1, Fields: fieldsOf(fields)}
	}
	vector := func(items *schema.Type) *schema.Type { return &schema.Type{Type: "array", Items: items} }
	a := envelope(t, column{"g", point(column{"x", colDouble})}, column{"v", vector(colFloat)})
	b := envelope(t, column{"g", point(column{"x", colDouble}, column{"srid", colInt})}, column{"v", vector(colInt)})
	got, err := Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	want := []Change{
		{"after.g.srid", "g", "added without a default", true, false},
		{"after.v", "v", "changed from array of float to array of int", true, false},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestCompareOutsideColumns(t *testing.T) {
	for _, c := range []struct {
		name, earlier, later string
		want                 []Change
	}{
		{
			"a field of the envelope",
			`{"type":"record","name":"Envelope","namespace":"p.db.t","fields":[{"name":"op","type":"string"}]}`,
			`{"type":"record","name":"Envelope","namespace":"p.db.t","fields":[{"name":"op","type":"int"},{"name":"ts","type":"long"}]}`,
			[]Change{{"op", "", "changed from string to int", true, true}, {"ts", "", "added without a default", true, false}},
		},
		{
			"another record",
			`{"type":"record","name":"a.Old","fields":[]}`,
			`{"type":"record","name":"a.New","fields":[]}`,
			[]Change{{"", "", "changed from record a.Old to record a.New", true, true}},
		},
		{
			"another namespace",
			`{"type":"record","name":"a.Value","fields":[]}`,
			`{"type":"record","name":"b.Value","fields":[]}`,
			nil,
		},
		{
			"an alias",
			`{"type":"record","name":"Key","fields":[{"name":"a","type":"int"}]}`,
			`{"type":"record","name":"Key","fields":[{"name":"b","type":"int","aliases":["a"]}]}`,
			[]Change{{"b", "b", "added without a default", false, false}, {"a", "a", "removed (it had no default)", false, true}},
		},
		{
			"an enum",
			`{"type":"record","name":"Key","fields":[{"name":"e","type":{"type":"enum","name":"E","symbols":["A","B"]}}]}`,
			`{"type":"record","name":"Key","fields":[{"name":"e","type":{"type":"enum","name":"E","symbols":["A","C"]}}]}`,
			[]Change{{"e", "e", "changed from an enum of A, B to one of A, C", true, true}},
		},
		{
			"a fixed",
			`{"type":"fixed","name":"F","size":2}`,
			`{"type":"fixed","name":"F","size":3}`,
			[]Change{{"", "", "changed from fixed F of 2 bytes to fixed F of 3 bytes", true, true}},
		},
		{
			"a union of three",
			`["null","int","string"]`,
			`["null","int"]`,
			[]Change{{"", "", "changed from [null, int, string] to [null, int]", true, false}},
		},
		{"null to nullable", `"null"`, `["null","int"]`, []Change{{"", "", "changed from null to [null, int]", false, true}}},
		{
			"a record in itself",
			`{"type":"record","name":"Key","fields":[{"name":"next","type":["null","Key"]},{"name":"v","type":"int"}]}`,
			`{"type":"record","name":"Key","fields":[{"name":"next","type":["null","Key"]},{"name":"v","type":"long"}]}`,
			[]Change{{"v", "v", "changed from int to long", false, true}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Compare(c.earlier, c.later)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestCompareOfCapturedVersions goes through the versions of a subject that passed BACKWARD one after the other.
func TestCompareOfCapturedVersions(t *testing.T) {
	var versions []subject
	for _, s := range subjects(t, "avro-evolution") {
		if strings.HasSuffix(s.Subject, ".evo-value") {
			versions = append(versions, s)
		}
	}
	var got []string
	for i := 1; i < len(versions); i++ {
		changes, err := Compare(versions[i-1].Schema, versions[i].Schema)
		if err != nil {
			t.Fatal(err)
		}
		if backward, _ := breaks(changes); backward {
			t.Errorf("version %d breaks BACKWARD: %v", i+1, changes)
		}
		var words []string
		for _, c := range changes {
			words = append(words, c.String())
		}
		got = append(got, strings.Join(words, ", "))
	}
	want := []string{
		"after.c was added with a default",
		"after.d was added with a default",
		"after.b was removed",
		"after.a was changed from int to long",
		"after.c2 was added with a default, after.c was removed",
		"", // another default
		"after.first_col was added with a default",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestCompareOfNoSchema(t *testing.T) {
	for _, c := range [][2]string{{`{`, `"int"`}, {`"int"`, `{"type":"strange"}`}} {
		if _, err := Compare(c[0], c[1]); err == nil {
			t.Errorf("%q: no error", c)
		}
	}
}
