package schema

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// openGzip opens a file of testdata.
func openGzip(t *testing.T, name string) io.Reader {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// goldenLine is a line of cells.jsonl: a column as TABLE_MAP describes it and its schema in Debezium's record, or a
// cell of the binlog and the value in the record.
type goldenLine struct {
	Table, Name        string
	Type               uint8
	Meta               uint16
	Unsigned, Nullable bool
	Collation          uint32
	Labels             []string
	Geometry           uint8
	Key                bool
	Schema             json.RawMessage
	Column             string
	Cell               []byte
	Want               json.RawMessage
}

// ours are the values that Debezium's stream has wrong, by column and Debezium's value.
var ours = map[string]string{
	`t_int.y=1900`:                `0`,
	`t_int.y4=1900`:               `0`,
	`t_time.y=1900`:               `0`,
	`t_time_nn.y=1900`:            `0`,
	`t_enum.e2="x\\,y"`:           `"x,y"`,
	`t_enum.e2="back\\\\slash"`:   `"back\\slash"`,
	`t_enum.e2="é?"`:              `"é😀"`,
	`t_charset.c_hp8="Å"`:         `"é"`,
	`t_charset.c_hp8="¡Þð"`:       `"ÀßÞ"`,
	`t_charset.c_keybcs2="ĺlutś"`: `"Žlutý"`,
	`t_charset.c_keybcs2="Çüé"`:   `"Čüé"`,
	`t_charset.c_koi8u="╥жак"`:    `"Їжак"`,
	`t_charset.c_armscii8="²³"`:   `"Աա"`,
	`t_charset.c_dec8="¨×Ý÷"`:     `"¤ŒŸœ"`,
	`t_charset.c_geostd8="ÀÁ"`:    `"აბ"`,
	`t_charset.c_swe7="[]{}"`:     `"ÄÅäå"`,
}

// Every type of MySQL with the bytes of its cells, and the schemas and values that Debezium's stream gave them. The
// definitions come from Debezium's schema history.
func TestGoldenColumns(t *testing.T) {
	defs := map[string]*Definition{}
	history, err := ReadHistory(openGzip(t, "history-types.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range history {
		for _, change := range entry.Changes {
			if change.Definition != nil {
				defs[change.Table] = change.Definition
			}
		}
	}
	type column struct {
		typ    *Type
		decode Decoder
	}
	columns := map[string]column{}
	unused := map[string]bool{}
	for k := range ours {
		unused[k] = true
	}
	lines, cells := bufio.NewScanner(openGzip(t, "cells.jsonl.gz")), 0
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line goldenLine
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if line.Column == "" {
			table := &Table{Database: "inventory", Name: line.Table, Columns: []Column{{
				Name: line.Name, Type: line.Type, Meta: line.Meta, Unsigned: line.Unsigned, Nullable: line.Nullable,
				Collation: line.Collation, Labels: line.Labels, Geometry: line.Geometry,
			}}}
			def := defs[line.Table]
			i := def.index(line.Name)
			if i < 0 {
				t.Fatalf("%s.%s is not in the history", line.Table, line.Name)
			}
			one := &Definition{Columns: def.Columns[i : i+1]}
			if line.Key {
				table.Key = []int{0}
			}
			for _, warning := range Attach(table, one, nil) {
				t.Errorf("%s.%s: %s", line.Table, line.Name, warning)
			}
			typ, decode, err := Modes{}.Column(table, 0)
			if err != nil {
				t.Fatal(err)
			}
			columns[line.Table+"."+line.Name] = column{typ, decode}
			if diff := cmp.Diff(normal(t, line.Schema), normal(t, schemaJSON(typ, line.Name))); diff != "" {
				t.Errorf("schema of %s.%s (-want +got)\n%s", line.Table, line.Name, diff)
			}
			continue
		}
		cells++
		c := columns[line.Column]
		var scratch Scratch
		v, err := call(c.decode, line.Cell, &scratch)
		if err != nil {
			t.Errorf("%s of %x: %v", line.Column, line.Cell, err)
			continue
		}
		if v.Kind == Null && c.typ.Default != nil {
			v = *c.typ.Default
		}
		want := normal(t, line.Want)
		got := normal(t, valueJSON(v))
		if fixed, ok := ours[line.Column+"="+string(line.Want)]; ok {
			delete(unused, line.Column+"="+string(line.Want))
			want = normal(t, json.RawMessage(fixed))
		}
		if text, ok := want.(string); ok && line.Column == "t_json.j" {
			want = strings.Replace(text, "101:0-1:0-1", "-100:00:01", 1)
		}
		if v.Kind == Float || v.Kind == Vector {
			want, got = single(want), single(got)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s of %x (-want +got)\n%s", line.Column, line.Cell, diff)
		}
	}
	if cells < 900 {
		t.Errorf("only %d cells", cells)
	}
	for k := range unused {
		t.Errorf("no cell has %s", k)
	}
}

// single rounds the numbers of a FLOAT column, whose shortest digits Java does not always find.
func single(v any) any {
	switch v := v.(type) {
	case float64:
		return float32(v)
	case []any:
		for i := range v {
			v[i] = single(v[i])
		}
	}
	return v
}

// normal parses JSON; numbers with a point or exponent become float64, others stay texts.
func normal(t *testing.T, text json.RawMessage) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return normalNumbers(v)
}

func normalNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			f, _ := strconv.ParseFloat(v.String(), 64)
			return f
		}
		return v.String()
	case map[string]any:
		for k := range v {
			v[k] = normalNumbers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = normalNumbers(v[i])
		}
	}
	return v
}

func floatJSON(f float64, bits int) string {
	return strconv.FormatFloat(f, 'e', -1, bits)
}

// valueJSON writes a value as JsonConverter does, but for the form of floats.
func valueJSON(v Value) json.RawMessage {
	base64Text := func() string { return `"` + base64.StdEncoding.EncodeToString(v.Bytes) + `"` }
	srid := "null"
	if v.Int != NoSRID {
		srid = strconv.FormatInt(v.Int, 10)
	}
	at := func(i int) string {
		return floatJSON(math.Float64frombits(binary.LittleEndian.Uint64(v.Bytes[i:])), 64)
	}
	text := "null"
	switch v.Kind {
	case Bool:
		text = strconv.FormatBool(v.Int == 1)
	case Int:
		text = strconv.FormatInt(v.Int, 10)
	case Float:
		text = floatJSON(v.Float, 32)
	case Double:
		text = floatJSON(v.Float, 64)
	case String:
		quoted, _ := json.Marshal(string(v.Bytes))
		text = string(quoted)
	case Bytes:
		text = base64Text()
	case Geometry:
		text = `{"wkb":` + base64Text() + `,"srid":` + srid + `}`
	case Point:
		text = `{"x":` + at(5) + `,"y":` + at(13) + `,"wkb":` + base64Text() + `,"srid":` + srid + `}`
	case Vector:
		var all []string
		for i := 0; i < len(v.Bytes); i += 4 {
			all = append(all, floatJSON(float64(math.Float32frombits(binary.LittleEndian.Uint32(v.Bytes[i:]))), 32))
		}
		text = "[" + strings.Join(all, ",") + "]"
	}
	return json.RawMessage(text)
}

// schemaJSON writes a schema as JsonConverter does, but for the order of members.
func schemaJSON(typ *Type, field string) json.RawMessage {
	m := map[string]any{"type": typ.Type, "optional": typ.Optional}
	if typ.Fields != nil {
		var fields []json.RawMessage
		for _, f := range typ.Fields {
			fields = append(fields, schemaJSON(f.Type, f.Name))
		}
		m["fields"] = fields
	}
	if typ.Items != nil {
		m["items"] = schemaJSON(typ.Items, "")
	}
	if typ.Name != "" {
		m["name"], m["version"] = typ.Name, typ.Version
	}
	if typ.Doc != "" {
		m["doc"] = typ.Doc
	}
	if typ.Parameters != nil {
		parameters := map[string]string{}
		for _, p := range typ.Parameters {
			parameters[p.Name] = p.Value
		}
		m["parameters"] = parameters
	}
	if typ.Default != nil {
		m["default"] = valueJSON(*typ.Default)
	}
	if field != "" {
		m["field"] = field
	}
	text, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return text
}

// The definitions that Debezium made of SHOW CREATE TABLE while it took its snapshot are ours, too.
func TestGoldenDefinitions(t *testing.T) {
	tables := 0
	for _, file := range []string{"history-types.jsonl.gz", "history-ddl.jsonl.gz"} {
		history, err := ReadHistory(openGzip(t, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range history {
			if !entry.Snapshot || !strings.HasPrefix(entry.DDL, "CREATE TABLE") {
				continue
			}
			tables++
			got, err := ParseCreateTable(entry.Database, entry.DDL)
			if err != nil {
				t.Error(err)
				continue
			}
			for i := range got.Columns {
				got.Columns[i].Comment = "" // not in these histories
			}
			got.KeyKind, got.Unique = KeyChosen, nil // a history does not tell
			if diff := cmp.Diff(entry.Changes[0].Definition, got); diff != "" {
				t.Errorf("%s (-want +got)\n%s", entry.DDL, diff)
			}
		}
	}
	if tables < 20 {
		t.Errorf("only %d tables", tables)
	}
}
