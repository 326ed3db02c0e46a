package emitter

import (
	"encoding/binary"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// column matches columns by pattern, as the lists of the configuration do.
func columnPattern(pattern string) func(database, table, column string) bool {
	r := regexp.MustCompile(`\A(?i:` + pattern + `)\z`)
	return func(database, table, column string) bool { return r.MatchString(database + "." + table + "." + column) }
}

func columnPatterns(patterns ...string) (all []func(database, table, column string) bool) {
	for _, p := range patterns {
		all = append(all, columnPattern(p))
	}
	return all
}

// TestColumnsAndKeys has column filters and message.key.columns, one after the other and together.
func TestColumnsAndKeys(t *testing.T) {
	row := cells(7, -1, "x")
	for _, c := range []struct {
		name string
		cfg  Config
		key  []int
		want string
	}{
		{"all", Config{}, []int{0}, `1 {"id":7} {"before":null,"after":{"id":7,"d":null,"s":"x"},…,"op":"c"`},
		{"some", Config{Columns: columnPattern(`db\.t\.(id|s)`)}, []int{0}, `1 {"id":7} {"before":null,"after":{"id":7,"s":"x"},…,"op":"c"`},
		// As in Debezium, a key has its columns in the key: the value has what was asked for.
		{"without the key", Config{Columns: columnPattern(`db\.t\.s`)}, []int{0}, `1 {"id":7} {"before":null,"after":{"s":"x"},…,"op":"c"`},
		{"none", Config{Columns: columnPattern(`db\.u\.s`)}, []int{0}, `1 {"id":7} {"before":null,"after":{},…,"op":"c"`},
		{"key of others", Config{Keys: columnPatterns(`db.t.d`, `(.*).t.s`)}, []int{0}, `1 {"d":null,"s":"x"} {"before":null,"after":{"id":7,"d":null,"s":"x"},…,"op":"c"`},
		{"in the order of the list", Config{Keys: columnPatterns(`db.t.s`, `db.t.id`)}, []int{0}, `1 {"s":"x","id":7} {"before":null,"after":{"id":7,"d":null,"s":"x"},…,"op":"c"`},
		{"taken twice", Config{Keys: columnPatterns(`db.t.s`, `db.t.*`)}, []int{0}, `1 {"s":"x","id":7,"d":null} {"before":null,"after":{"id":7,"d":null,"s":"x"},…,"op":"c"`},
		{"of another table", Config{Keys: columnPatterns(`db.u.s`)}, []int{0}, `1 {"id":7} {"before":null,"after":{"id":7,"d":null,"s":"x"},…,"op":"c"`},
		{"for a table without one", Config{Keys: columnPatterns(`db.t.id`)}, nil, `1 {"id":7} {"before":null,"after":{"id":7,"d":null,"s":"x"},…,"op":"c"`},
		{
			"a key of excluded columns",
			Config{Keys: columnPatterns(`db.t.s`), Columns: columnPattern(`db\.t\.id`)},
			[]int{0},
			`1 {"s":"x"} {"before":null,"after":{"id":7},…,"op":"c"`,
		},
	} {
		ev := &binlog.Rows{Op: binlog.Create, Table: testTable(c.key...), After: row}
		if got := describe(emit(t, c.cfg, ev)); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
	// The schemas follow: nullable columns are optional in the key, too.
	got := emit(t, Config{Keys: columnPatterns(`db.t.s`), Key: Converter{Schemas: true}}, &binlog.Rows{
		Op: binlog.Create, Table: testTable(0), After: row,
	})
	want := `{"schema":{"type":"struct","fields":[{"type":"string","optional":true,"field":"s"}],"optional":false,"name":"p.db.t.Key"},"payload":{"s":"x"}}`
	if string(got[0].Key) != want {
		t.Errorf("got  %s\nwant %s", got[0].Key, want)
	}
}

// TestI3_KeyChangeOfOtherColumns has changes of columns that message.key.columns makes the key: with NULL, with and
// without tombstones, in every format of headers.
func TestI3_KeyChangeOfOtherColumns(t *testing.T) {
	a, b := cells(1, 150, "x"), cells(1, -1, "x")
	const ra, rb = `{"id":1,"d":"AJY=","s":"x"}`, `{"id":1,"d":null,"s":"x"}`
	schemas := Converter{Schemas: true}
	const keySchema = `{"schema":{"type":"struct","fields":[{"type":"bytes","optional":true,"name":"org.apache.kafka.connect.data.Decimal",` +
		`"version":1,"parameters":{"scale":"2","connect.decimal.precision":"5"},"default":"AJY=","field":"d"},` +
		`{"type":"int32","optional":false,"field":"id"}],"optional":false,"name":"p.db.t.Key"},"payload":`
	for _, c := range []struct {
		name     string
		cfg      Config
		new, old string
	}{
		// Connect's Struct.get puts the default where the NULL is, so that both keys look the same; they are not.
		{"simple", Config{Tombstones: true}, `{"d":1.50,"id":1}`, `{"d":1.50,"id":1}`},
		{"simple by name", Config{Header: HeaderConverter{Class: simpleConverter}}, `{"d":1.50,"id":1}`, `{"d":1.50,"id":1}`},
		{"string", Config{Header: HeaderConverter{Class: stringConverter}}, `Struct{id=1}`, `Struct{d=1.50,id=1}`},
		{"json", Config{Tombstones: true, Header: HeaderConverter{Class: jsonConverter}}, `{"d":null,"id":1}`, `{"d":"AJY=","id":1}`},
		{
			"json with schema",
			Config{Header: HeaderConverter{Class: jsonConverter, JSON: schemas}},
			keySchema + `{"d":null,"id":1}}`, keySchema + `{"d":"AJY=","id":1}}`,
		},
	} {
		c.cfg.Keys = columnPatterns(`db.t.d`, `db.t.id`)
		ev := &binlog.Rows{
			Op: binlog.Update, Table: testTable(0), Row: 4, Before: a, After: b, Base: offset.Offset{File: "f", Pos: 4, Event: 2},
		}
		want := `4 {"d":"AJY=","id":1} {"before":` + ra + `,"after":null,…,"op":"d" __debezium.newkey=` + c.new + "\n"
		if c.cfg.Tombstones {
			want += `4 {"d":"AJY=","id":1} null __debezium.newkey=` + c.new + "\n"
		}
		want += `5 {"d":null,"id":1} {"before":null,"after":` + rb + `,…,"op":"c" __debezium.oldkey=` + c.old
		if got := describe(emit(t, c.cfg, ev)); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, want)
		}
	}
	// A change of what was the key is none any more.
	ev := &binlog.Rows{Op: binlog.Update, Table: testTable(0), Before: cells(1, 1, "x"), After: cells(2, 1, "x")}
	if got := emit(t, Config{Keys: columnPatterns(`db.t.s`)}, ev); len(got) != 1 {
		t.Errorf("got %s", describe(got))
	}
}

// TestI8_RowsLeftOut gives no record and leaves the batch as it is, keys included.
func TestI8_RowsLeftOut(t *testing.T) {
	a, b := cells(1, 100, "x"), cells(1, 200, "x")
	mask := schema.Modes{Masks: []schema.Mask{{Match: columnPattern(`db\.t\.s`), Kind: schema.MaskFixed, Length: 3}}}
	only := columnPattern(`db\.t\.(id|s)`)
	for _, c := range []struct {
		name          string
		cfg           Config
		op            binlog.Op
		before, after [][]byte
		key           int
		records       int
	}{
		{"c is skipped", Config{Skip: map[string]bool{"c": true}}, binlog.Create, nil, a, 0, 0},
		{"c is not", Config{Skip: map[string]bool{"c": false, "u": true, "d": true, "t": true}}, binlog.Create, nil, a, 0, 1},
		{"u is skipped", Config{Skip: map[string]bool{"u": true}}, binlog.Update, a, b, 0, 0},
		{"u is skipped, with a new key", Config{Skip: map[string]bool{"u": true}}, binlog.Update, a, b, 1, 0},
		// The two halves of a key change are no operations of their own.
		{"d is skipped, not a new key", Config{Skip: map[string]bool{"d": true, "c": true}}, binlog.Update, a, b, 1, 3},
		{"d is skipped", Config{Skip: map[string]bool{"d": true}}, binlog.Delete, a, nil, 0, 0},
		{"excluded column", Config{SkipUnchanged: true, Columns: only}, binlog.Update, a, b, 0, 0},
		{"excluded column, but asked for", Config{Columns: only}, binlog.Update, a, b, 0, 1},
		{"included column", Config{SkipUnchanged: true, Columns: only}, binlog.Update, a, cells(1, 200, "y"), 0, 1},
		{"to NULL", Config{SkipUnchanged: true, Columns: only}, binlog.Update, a, cells(1, 200, "-"), 0, 1},
		{"nothing", Config{SkipUnchanged: true}, binlog.Update, a, cells(1, 100, "x"), 0, 0},
		{"nothing, NULL", Config{SkipUnchanged: true}, binlog.Update, cells(1, -1, "-"), cells(1, -1, "-"), 0, 0},
		{"NULL to the default", Config{SkipUnchanged: true}, binlog.Update, cells(1, -1, "x"), cells(1, 150, "x"), 0, 1},
		{"what a mask hides", Config{SkipUnchanged: true, Modes: mask}, binlog.Update, a, cells(1, 100, "secret"), 0, 0},
		{"what no mask hides", Config{Modes: mask}, binlog.Update, a, cells(1, 100, "secret"), 0, 1},
		{"insert", Config{SkipUnchanged: true}, binlog.Create, nil, a, 0, 1},
		// Debezium loses it: the old key would stay for ever.
		{"an excluded key", Config{SkipUnchanged: true, Columns: columnPattern(`db\.t\.s`)}, binlog.Update, a, cells(2, 100, "x"), 0, 3},
	} {
		c.cfg.Tombstones, c.cfg.Prefix = true, "p"
		em, err := New(c.cfg)
		must(t, err)
		ev := &binlog.Rows{Op: c.op, Table: testTable(c.key), Before: c.before, After: c.after}
		must(t, em.Begin(ev))
		var batch Batch
		must(t, em.Row(&batch, ev))
		if len(batch.Records) != c.records || c.records == 0 && batch.Size() > 0 {
			t.Errorf("%s: %d records, %d bytes, want %d records", c.name, len(batch.Records), batch.Size(), c.records)
		}
	}
	if _, err := New(Config{Prefix: "p", Skip: map[string]bool{"x": true}}); err == nil || !strings.Contains(err.Error(), `"x"`) {
		t.Errorf("got %v", err)
	}
}

// TestSkippingAllocatesNothing for rows that are compared, and for those that are left out.
func TestSkippingAllocatesNothing(t *testing.T) {
	for _, after := range [][][]byte{cells(1, 200, "y"), cells(1, 100, "x"), cells(1, 200, "z")} {
		em, err := New(Config{Prefix: "p", SkipUnchanged: true, Keys: columnPatterns("db.t.s")})
		must(t, err)
		ev := &binlog.Rows{Op: binlog.Update, Table: testTable(0), Before: cells(1, 100, "x"), After: after}
		var batch Batch
		if n := testing.AllocsPerRun(100, func() {
			batch.Reset()
			if em.Begin(ev) != nil || em.Row(&batch, ev) != nil {
				t.Fatal("an error")
			}
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

// TestRoutedKeys has tables merged into one topic: the key says which table it is from, also where there was none.
func TestRoutedKeys(t *testing.T) {
	naming := Naming{Class: "DefaultRegexTopicNamingStrategy", Regex: regexp.MustCompile(`(.*)\.t`), Replacement: "$1.all", UniqueKey: true}
	ev := &binlog.Rows{Op: binlog.Update, Table: testTable(0), Before: cells(1, 1, "x"), After: cells(2, 1, "x")}
	got := emit(t, Config{Naming: naming, Key: Converter{Schemas: true}, Header: HeaderConverter{Class: stringConverter}}, ev)
	want := `{"schema":{"type":"struct","fields":[{"type":"int32","optional":false,"field":"id"},{"type":"string","optional":false,` +
		`"field":"__dbz__physicalTableIdentifier"}],"optional":false,"name":"p.db.all.Key"},"payload":{"id":1,"__dbz__physicalTableIdentifier":"p.db.t"}}`
	if string(got[0].Key) != want || got[0].Topic != "p.db.all" {
		t.Errorf("topic %s\ngot  %s\nwant %s", got[0].Topic, got[0].Key, want)
	}
	if h := got[0].Headers[0]; string(h.Value) != "Struct{id=2,__dbz__physicalTableIdentifier=p.db.t}" {
		t.Errorf("got %s=%s", h.Name, h.Value)
	}
	ev.Table = testTable()
	naming.KeyField = "of"
	if got := emit(t, Config{Naming: naming}, ev); string(got[0].Key) != `{"of":"p.db.t"}` || len(got) != 1 {
		t.Errorf("got %s", describe(got))
	}
	naming.KeyField = "id"
	em, err := New(Config{Prefix: "p", Naming: naming})
	must(t, err)
	ev.Table = testTable(0)
	if err := em.Begin(ev); err == nil || !strings.Contains(err.Error(), "topic.key.field.name") {
		t.Errorf("got %v", err)
	}
}

// TestFieldsOfOneName has two columns that become one field: found before anything is written, by either way, with both
// names and what to do.
func TestFieldsOfOneName(t *testing.T) {
	table := &schema.Table{Database: "inventory", Name: "t", Key: []int{0}, Columns: []schema.Column{
		{Name: "id", Type: 3}, {Name: "a.b", Type: 3, Nullable: true}, {Name: "a b", Type: 3, Nullable: true},
	}}
	var four []byte
	four = binary.LittleEndian.AppendUint32(four, 4)
	ev := &binlog.Rows{Info: binlog.Info{File: "mysql-bin.000001", Pos: 99}, Op: binlog.Create, Table: table, After: [][]byte{four, four, four}}
	names := []string{"id", "a.b", "a b"}
	for _, c := range []struct {
		name string
		cfg  Config
		want []string
	}{
		{"collision", Config{FieldNames: AvroNames}, []string{
			"`a.b`", "`a b`", `"a_b"`, "inventory.t", "field.name.adjustment.mode=avro_unicode", "RENAME COLUMN `a b`", "column.exclude.list",
		}},
		{"one excluded", Config{FieldNames: AvroNames, Columns: columnPattern(`inventory\.t\.(id|a b)`)}, nil},
		{"unicode", Config{FieldNames: AvroUnicodeNames}, nil},
		{"as they are", Config{}, nil},
		{"both in the key", Config{FieldNames: AvroNames, Columns: columnPattern(`.*id`), Keys: columnPatterns(".*a.b")}, []string{"`a.b`", "`a b`"}},
	} {
		c.cfg.Prefix = "p"
		em, err := New(c.cfg)
		must(t, err)
		errs := []error{em.Begin(ev)}
		if c.cfg.Keys == nil {
			errs = append(errs, em.CheckColumns("inventory", "t", names))
		}
		for _, err := range errs {
			if (err == nil) != (c.want == nil) {
				t.Errorf("%s: got %v", c.name, err)
			}
			for _, want := range c.want {
				if err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%s: no %s in %v", c.name, want, err)
				}
			}
		}
	}
}

// TestAdjustedFields in rows, keys and headers; Debezium's own fields stay.
func TestAdjustedFields(t *testing.T) {
	table := testTable(0, 2)
	table.Columns[0].Name, table.Columns[2].Name = "1st id", "s-ö"
	ev := &binlog.Rows{Op: binlog.Update, Table: table, Before: cells(1, 1, "x"), After: cells(2, 1, "x"), Info: binlog.Info{Thread: -1}}
	for _, c := range []struct {
		mode          NameMode
		fields, names string
	}{
		{AvroNames, `{"_1st_id":1,"s__":"x"}`, "p_q.db.t"},
		{AvroUnicodeNames, `{"_u0031st_u0020id":1,"s_u002d_u00f6":"x"}`, "p_u002dq.db.t"},
	} {
		cfg := Config{Prefix: "p-q", SchemaNames: c.mode, FieldNames: c.mode, Key: Converter{Schemas: true}, Value: Converter{Schemas: true}}
		em, err := New(cfg)
		must(t, err)
		must(t, em.Begin(ev))
		var b Batch
		must(t, em.Row(&b, ev))
		got := b.Records[1]
		if key := string(got.Key); !strings.HasSuffix(key, `"name":"`+c.names+`.Key"},"payload":`+strings.ReplaceAll(c.fields, "1,", "2,")+"}") {
			t.Errorf("got key %s", key)
		}
		if h := got.Headers[0]; string(h.Value) != c.fields {
			t.Errorf("got %s=%s, want %s", h.Name, h.Value, c.fields)
		}
		for _, want := range []string{
			`"name":"` + c.names + `.Value","field":"before"`, `"optional":false,"name":"` + c.names + `.Envelope","version":2},"payload"`,
			`"field":"ts_ms"`, `"source":{"version":"3.6.1.Final","connector":"mysql","name":"p-q",`, `"name":"io.debezium.connector.mysql.Source"`,
		} {
			if !strings.Contains(string(got.Value), want) {
				t.Errorf("no %s in %s", want, got.Value)
			}
		}
		if got.Topic != "p-q.db.t" {
			t.Errorf("got topic %s", got.Topic)
		}
	}
}

// TestUnavailable has cells that the binlog does not have, in every mode of binary strings.
func TestUnavailable(t *testing.T) {
	table := &schema.Table{Database: "db", Name: "t", Key: []int{0}, Columns: []schema.Column{
		{Name: "id", Type: 3},
		{Name: "text", Type: 252, Meta: 2, Collation: 54, Nullable: true}, // utf16
		{Name: "blob", Type: 252, Meta: 2, Collation: 63},
		{Name: "json", Type: 245, Meta: 4, Nullable: true},
		{Name: "n", Type: 3, Nullable: true},
	}}
	id := cells(1, 0, "")[0]
	none := binlog.Unavailable
	row := [][]byte{id, none, none, none, nil}
	ev := &binlog.Rows{Op: binlog.Delete, Table: table, Before: row, Incomplete: true}
	const standard = `"text":"__debezium_unavailable_value","blob":%,"json":"__debezium_unavailable_value","n":null`
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{}, strings.Replace(standard, "%", `"X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="`, 1)},
		{Config{Modes: schema.Modes{Binary: schema.BinaryBase64}}, strings.Replace(standard, "%", `"X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="`, 1)},
		{Config{Modes: schema.Modes{Binary: schema.BinaryBase64URL}}, strings.Replace(standard, "%", `"X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="`, 1)},
		{Config{Modes: schema.Modes{Binary: schema.BinaryHex}}, strings.Replace(standard, "%", `"5f5f646562657a69756d5f756e617661696c61626c655f76616c7565"`, 1)},
		{Config{Placeholder: "?>\n"}, `"text":"?>\n","blob":"Pz4K","json":"?>\n","n":null`},
		{Config{Placeholder: "?>\n", Modes: schema.Modes{Binary: schema.BinaryBase64URL}}, `"text":"?>\n","blob":"Pz4K","json":"?>\n","n":null`},
	} {
		got := describe(emit(t, c.cfg, ev))
		if want := `1 {"id":1} {"before":{"id":1,` + c.want + `},"after":null,…,"op":"d"`; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	// Not known before and not known after is no change; known after is one.
	update := &binlog.Rows{Op: binlog.Update, Table: table, Before: row, After: row, Incomplete: true}
	if got := emit(t, Config{SkipUnchanged: true}, update); len(got) != 0 {
		t.Errorf("got %s", describe(got))
	}
	update.After = [][]byte{id, none, []byte("unavailable"), none, nil}
	got := describe(emit(t, Config{SkipUnchanged: true}, update))
	if !strings.Contains(got, `"after":{"id":1,"text":"__debezium_unavailable_value","blob":"dW5hdmFpbGFibGU=","json"`) {
		t.Errorf("got %s", got)
	}
	for _, c := range []struct {
		cfg  Config
		row  [][]byte
		want string
	}{
		{Config{}, [][]byte{id, nil, nil, nil, none}, `column "n"`},
		{Config{Keys: columnPatterns("db.t.text")}, row, `column "text"`}, // a key must be known
		{Config{Keys: columnPatterns("db.t.text"), Header: HeaderConverter{Class: stringConverter}}, row, `column "text"`},
	} {
		c.cfg.Prefix = "p"
		em, err := New(c.cfg)
		must(t, err)
		ev := &binlog.Rows{Op: binlog.Delete, Table: table, Before: c.row, Incomplete: true}
		must(t, em.Begin(ev))
		if err := em.Row(new(Batch), ev); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

// TestMariaDB has the names of that connector.
func TestMariaDB(t *testing.T) {
	ev := &binlog.Rows{Op: binlog.Create, Table: testTable(0), After: cells(1, 1, "x"), Info: binlog.Info{GTID: gtid("0-1-42"), Thread: -1}}
	got := emit(t, Config{Connector: "mariadb", ExtendedHeaders: true, Value: Converter{Schemas: true}, RunID: "r"}, ev)[0]
	for _, want := range []string{
		`{"type":"string","optional":true,"field":"query"}],"optional":false,"name":"io.debezium.connector.mariadb.Source","version":1,"field":"source"}`,
		`"source":{"version":"3.6.1.Final","connector":"mariadb","name":"p",`, `"gtid":"0-1-42"`,
	} {
		if !strings.Contains(string(got.Value), want) {
			t.Errorf("no %s in %s", want, got.Value)
		}
	}
	if h := got.Headers[2]; h.Name != "__debezium.context.connectorName" || string(h.Value) != "mariadb" {
		t.Errorf("got %s=%s", h.Name, h.Value)
	}
}

// TestMaskedNull is not null: asterisks stand for NULL, too, but hashes and cut texts do not.
func TestMaskedNull(t *testing.T) {
	ev := &binlog.Rows{Op: binlog.Create, Table: testTable(0), After: cells(1, 1, "-")}
	for _, c := range []struct {
		mask schema.Mask
		want string
	}{
		{schema.Mask{Kind: schema.MaskFixed, Length: 4}, `"s":"****"`},
		{schema.Mask{Kind: schema.MaskFixed}, `"s":""`},
		{schema.Mask{Kind: schema.MaskTruncate, Length: 4}, `"s":null`},
		{schema.Mask{Kind: schema.MaskHash, Algorithm: "SHA-256", Salt: "x"}, `"s":null`},
	} {
		c.mask.Match = columnPattern("db.t.s")
		got := emit(t, Config{Modes: schema.Modes{Masks: []schema.Mask{c.mask}}}, ev)[0]
		if !strings.Contains(string(got.Value), c.want) {
			t.Errorf("no %s in %s", c.want, got.Value)
		}
	}
}

// TestKeysKnowNoMasks and no source types: Debezium maps the key's columns without them.
func TestKeysKnowNoMasks(t *testing.T) {
	all := func(string, string, string) bool { return true }
	cfg := Config{Key: Converter{Schemas: true}, Modes: schema.Modes{
		Masks:        []schema.Mask{{Match: all, Kind: schema.MaskFixed, Length: 3}},
		SourceColumn: all, SourceType: func(string, string, string, string) bool { return true },
	}}
	table := testTable(2)
	table.Columns[2].Nullable = false
	ev := &binlog.Rows{Op: binlog.Create, Table: table, After: cells(1, 1, "key")}
	got := emit(t, cfg, ev)[0]
	want := `{"schema":{"type":"struct","fields":[{"type":"string","optional":false,"field":"s"}],"optional":false,"name":"p.db.t.Key"},"payload":{"s":"key"}}`
	if string(got.Key) != want {
		t.Errorf("got  %s\nwant %s", got.Key, want)
	}
	if !strings.Contains(string(got.Value), `"s":"***"`) {
		t.Errorf("got %s", got.Value)
	}
}

// TestI10_PlansOfVersions has a table that changes between two events, and the old version once more.
func TestI10_PlansOfVersions(t *testing.T) {
	em, err := New(Config{Prefix: "p", FieldNames: AvroNames, Clock: func() time.Time { return time.Unix(0, 0) }})
	must(t, err)
	old := testTable(0)
	renamed := testTable(0)
	renamed.Columns[2].Name = "s-2"
	var b Batch
	for _, table := range []*schema.Table{old, renamed, old} {
		ev := &binlog.Rows{Op: binlog.Create, Table: table, After: cells(1, -1, "x")}
		must(t, em.Begin(ev))
		must(t, em.Row(&b, ev))
	}
	want := `1 {"id":1} {"before":null,"after":{"id":1,"d":null,"s":"x"},…,"op":"c"
1 {"id":1} {"before":null,"after":{"id":1,"d":null,"s_2":"x"},…,"op":"c"
1 {"id":1} {"before":null,"after":{"id":1,"d":null,"s":"x"},…,"op":"c"`
	if got := describe(b.Records); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
