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
	"math/big"
	"os"
	"slices"
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

// goldenColumn is a line of columns.jsonl: a column as TABLE_MAP describes it, in the captures named by folder; its
// schema in Debezium's records, of the row or of the record key; and the cells of the binlog with the values in the
// records. It was made of the captures' binlogs and records.
type goldenColumn struct {
	Folders            []string
	Table, Name        string
	Key                bool // the schema and values are those of the record key
	Type               uint8
	Meta               uint16
	Unsigned, Nullable bool
	Collation          uint32
	Labels             []string
	Geometry           uint8
	InKey              bool // the column is in the record key
	Schema             string
	Cells              [][]byte
	Want               []json.RawMessage
}

// goldenModes are the connectors of the captures.
var goldenModes = map[string]struct {
	history string
	numbers bool // decimal.format=NUMERIC
	nulls   bool // replace.null.with.default=false
	modes   Modes
}{
	"types-default": {history: "types"},
	"types-ddl":     {history: "types-ddl"},
	"types-alt1": {history: "types-alt1", modes: Modes{
		Decimal: DecimalString, Time: TimeConnect, UnsignedBigint: UnsignedPrecise, Binary: BinaryBase64, Comments: true,
		NoTimeAdjuster: true, SourceColumn: func(_, _, _ string) bool { return true },
	}},
	"types-alt2": {history: "types", modes: Modes{
		Decimal: DecimalDouble, Time: TimeISOString, Binary: BinaryHex, Failure: FailureSkip,
		SourceType: func(_, _, _, typ string) bool {
			return typ == "VARCHAR" || typ == "DECIMAL" || typ == "ENUM" || typ == "DATETIME"
		},
	}},
	"types-alt3": {history: "types", modes: Modes{Time: TimeMicroseconds, Binary: BinaryBase64URL}},
	"types-alt4": {history: "types", numbers: true, nulls: true, modes: Modes{
		Time: TimeNanoseconds, UnsignedBigint: UnsignedPrecise,
	}},
	"topics-masks": {history: "topics-masks", modes: Modes{Masks: []Mask{
		{Match: isColumn("customers.name"), Kind: MaskFixed, Length: 12},
		{Match: isColumn("customers.email"), Kind: MaskHash, Algorithm: "SHA-256", Salt: "CzQMA0cB5K"},
		{Match: isColumn("customers.phone"), Kind: MaskHash, Algorithm: "SHA-256", Salt: "CzQMA0cB5K", V2: true},
		{Match: isColumn("customers.notes", "order_log.msg"), Kind: MaskTruncate, Length: 5},
		{Match: isColumn("customers.secret"), Kind: MaskFixed, Length: 0},
	}}},
}

func isColumn(names ...string) func(database, table, column string) bool {
	return func(_, table, column string) bool { return slices.Contains(names, table+"."+column) }
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
	`t_enum.e2="  sp  "`:          `"  sp"`, // types-ddl: the server has cut the label
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

// oursSchema are the schemas in which the right type wins over what Debezium takes from the text of a statement.
var oursSchema = map[string]string{
	`t_dec.r`:            `{"type":"double","optional":true,"field":"r"}`,
	`t_dec.r10_2`:        `{"type":"double","optional":true,"field":"r10_2"}`,
	`t_def_nn.r`:         `{"type":"double","optional":false,"default":3.0,"field":"r"}`,
	`t_str.cb`:           `{"type":"bytes","optional":true,"field":"cb"}`,
	`t_str.vcb`:          `{"type":"bytes","optional":true,"field":"vcb"}`,
	`t_str.txb`:          `{"type":"bytes","optional":true,"field":"txb"}`,
	`t_charset.c_binary`: `{"type":"bytes","optional":true,"field":"c_binary"}`,
}

// oursDDL are the values that are right in the stream's form of a table and wrong in Debezium's: the cells themselves
// in base64, and doubles with all their digits.
var oursDDL = map[string]string{
	`t_str.cb`:           "bytes",
	`t_str.vcb`:          "bytes",
	`t_str.txb`:          "bytes",
	`t_charset.c_binary`: "bytes",
	`t_bin.b`:            "bytes",
	`t_dec.r`:            "double",
	`t_dec.r10_2`:        "double",
}

// Every type of MySQL with the bytes of its cells, in every mode of the captures, and the schemas and values that
// Debezium's stream gave them. The definitions come from Debezium's schema histories.
func TestGoldenColumns(t *testing.T) {
	defs := map[string]map[string]*Definition{}
	for _, m := range goldenModes {
		if defs[m.history] == nil {
			defs[m.history] = goldenDefinitions(t, m.history)
		}
	}
	unused := map[string]bool{}
	for k := range ours {
		unused[k] = true
	}
	for k := range oursSchema {
		unused[k] = true
	}
	lines, cells := bufio.NewScanner(openGzip(t, "columns.jsonl.gz")), map[string]int{}
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line goldenColumn
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		for _, folder := range line.Folders {
			cells[folder] += len(line.Cells)
			m := goldenModes[folder]
			def := defs[m.history][line.Table]
			i := def.index(line.Name)
			if i < 0 {
				t.Fatalf("%s: %s.%s is not in the history", folder, line.Table, line.Name)
			}
			database, name, _ := strings.Cut(line.Table, ".")
			table := &Table{Database: database, Name: name, Columns: []Column{{
				Name: line.Name, Type: line.Type, Meta: line.Meta, Unsigned: line.Unsigned, Nullable: line.Nullable,
				Collation: line.Collation, Labels: line.Labels, Geometry: line.Geometry, Def: &def.Columns[i],
			}}}
			if line.InKey {
				table.Key = []int{0}
			}
			modes, numbers := m.modes, m.numbers
			if line.Key {
				modes, numbers = modes.Key(), false
			}
			typ, decode, err := modes.Column(table, 0)
			if err != nil {
				t.Fatalf("%s: %v", folder, err)
			}
			column := name + "." + line.Name
			want := line.Schema
			if fixed, ok := oursSchema[column]; ok && folder == "types-ddl" {
				delete(unused, column)
				want = fixed
			}
			if diff := cmp.Diff(tokens(t, want), tokens(t, schemaJSON(typ, line.Name, numbers))); diff != "" {
				t.Errorf("%s: schema of %s, key %v (-want +got)\n%s", folder, column, line.Key, diff)
			}
			for i, cell := range line.Cells {
				var scratch Scratch
				v, err := call(decode, cell, &scratch)
				if err != nil {
					t.Errorf("%s: %s of %x: %v", folder, column, cell, err)
					continue
				}
				if v.Kind == Null && typ.Default != nil && !m.nulls {
					v = *typ.Default
				}
				want := string(line.Want[i])
				if fixed, ok := ours[column+"="+want]; ok {
					delete(unused, column+"="+want)
					want = fixed
				}
				if kind := oursDDL[column]; kind != "" && folder == "types-ddl" && cell != nil {
					want = oursOfDDL(kind, table.Columns[0], cell)
				}
				goldenValue(t, folder+": "+column, cell, typ, v, want, numbers)
			}
		}
	}
	for folder := range goldenModes {
		if n := cells[folder]; n < 900 && folder != "topics-masks" || n < 40 {
			t.Errorf("%s: only %d cells", folder, n)
		}
	}
	for k := range unused {
		t.Errorf("no cell has %s", k)
	}
}

// goldenDefinitions are the last definitions of the tables of a history.
func goldenDefinitions(t *testing.T, name string) map[string]*Definition {
	history, err := ReadHistory(openGzip(t, "history-"+name+".jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defs := map[string]*Definition{}
	for _, entry := range history {
		for _, change := range entry.Changes {
			if change.Definition != nil {
				defs[change.Database+"."+change.Table] = change.Definition
			}
		}
	}
	return defs
}

// oursOfDDL is a value of [oursDDL] from the bytes of its cell.
func oursOfDDL(kind string, c Column, cell []byte) string {
	if kind == "double" {
		return floatJSON(math.Float64frombits(binary.LittleEndian.Uint64(cell)), 64)
	}
	if c.Type == typeString {
		cell = append(bytes.Clone(cell), make([]byte, int(c.Meta&0xff)-len(cell))...)
	}
	return `"` + base64.StdEncoding.EncodeToString(cell) + `"`
}

func goldenValue(t *testing.T, column string, cell []byte, typ *Type, v Value, text string, numbers bool) {
	t.Helper()
	if v.Kind == Bytes && typ.Name == DecimalName && numbers {
		scale, _ := strconv.Atoi(typ.Parameter("scale"))
		want, _ := new(big.Rat).SetString(text)
		if got, _ := new(big.Rat).SetString(unscaledText(v.Bytes, scale)); want == nil || got.Cmp(want) != 0 {
			t.Errorf("%s of %x is %s, want %s", column, cell, unscaledText(v.Bytes, scale), text)
		}
		return
	}
	want, got := normal(t, json.RawMessage(text)), normal(t, valueJSON(v))
	if text, ok := want.(string); ok && typ.Name == jsonName {
		want = strings.Replace(text, "101:0-1:0-1", "-100:00:01", 1)
	}
	if v.Kind == Float || v.Kind == Vector {
		want, got = single(want), single(got)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s of %x (-want +got)\n%s", column, cell, diff)
	}
}

// tokens are those of a JSON text in their order, with numbers as [normal] has them.
func tokens(t *testing.T, text string) []any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var all []any
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if d, ok := token.(json.Delim); ok {
			token = d.String()
		}
		all = append(all, normalNumbers(token))
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

// schemaJSON writes a schema as JsonConverter does, its members in that order; numbers is for decimals in defaults.
func schemaJSON(typ *Type, field string, numbers bool) string {
	quoted := func(s string) string {
		text, _ := json.Marshal(s)
		return string(text)
	}
	var b strings.Builder
	b.WriteString(`{"type":` + quoted(typ.Type))
	if typ.Fields != nil {
		b.WriteString(`,"fields":[`)
		for i, f := range typ.Fields {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(schemaJSON(f.Type, f.Name, numbers))
		}
		b.WriteByte(']')
	}
	if typ.Items != nil {
		b.WriteString(`,"items":` + schemaJSON(typ.Items, "", numbers))
	}
	b.WriteString(`,"optional":` + strconv.FormatBool(typ.Optional))
	if typ.Name != "" {
		b.WriteString(`,"name":` + quoted(typ.Name) + `,"version":` + strconv.Itoa(typ.Version))
	}
	if typ.Doc != "" {
		b.WriteString(`,"doc":` + quoted(typ.Doc))
	}
	for i, p := range typ.Parameters {
		if i == 0 {
			b.WriteString(`,"parameters":{`)
		} else {
			b.WriteByte(',')
		}
		b.WriteString(quoted(p.Name) + ":" + quoted(p.Value))
	}
	if len(typ.Parameters) > 0 {
		b.WriteByte('}')
	}
	if typ.Default != nil {
		text := string(valueJSON(*typ.Default))
		if scale, err := strconv.Atoi(typ.Parameter("scale")); numbers && err == nil {
			text = unscaledText(typ.Default.Bytes, scale)
		}
		b.WriteString(`,"default":` + text)
	}
	if field != "" {
		b.WriteString(`,"field":` + quoted(field))
	}
	b.WriteByte('}')
	return b.String()
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
				got.Columns[i].Comment, got.Columns[i].Server = "", nil // not in these histories
			}
			got.KeyKind, got.Unique, got.Comment = KeyChosen, nil, "" // a history does not tell
			if diff := cmp.Diff(entry.Changes[0].Definition, got); diff != "" {
				t.Errorf("%s (-want +got)\n%s", entry.DDL, diff)
			}
		}
	}
	if tables < 20 {
		t.Errorf("only %d tables", tables)
	}
}
