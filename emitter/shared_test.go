package emitter

import (
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// tablesAlike are tables that have the columns of benchTable together, as versions of the binlog have them.
func tablesAlike(names ...string) []*schema.Table {
	tables := make([]*schema.Table, len(names))
	first := benchTable()
	for i, name := range names {
		database, table, _ := strings.Cut(name, ".")
		tables[i] = &schema.Table{Database: database, Name: table, Columns: first.Columns, Key: first.Key}
	}
	return tables
}

// allRecords is the text of everything in a batch.
func allRecords(b *Batch) string {
	var text strings.Builder
	for i := range b.Records {
		r := &b.Records[i]
		fmt.Fprintf(&text, "%s %q %q %q\n", r.Topic, r.Key, r.Value, r.Headers)
	}
	return text.String()
}

// TestTablesAlike has events of tables that share all but their names follow each other: their records are what an emitter
// makes of each alone.
func TestTablesAlike(t *testing.T) {
	tables := tablesAlike("shop.orders", "shop.orderz", "other.orders", `sh"p.ord\ers`, "née.été", "s.a_much_longer_name_than_the_others", "shop.orders")
	images := benchImage(benchImage(nil, 1), 2)
	for name, cfg := range map[string]Config{
		"json":         {},
		"schemas":      {Key: Converter{Schemas: true}, Value: Converter{Schemas: true}, Header: HeaderConverter{Class: jsonConverter, JSON: Converter{Schemas: true}}},
		"avro":         {Key: Converter{Avro: avroConverter(new(testIDs))}, Value: Converter{Avro: avroConverter(new(testIDs))}},
		"wide ids":     {Value: Converter{Avro: &Avro{IDs: new(testIDs), Wide: true, Subject: func(topic, record string) string { return topic }}}},
		"headers":      {Header: HeaderConverter{Class: stringConverter}},
		"transactions": {Transactions: true, Key: Converter{Schemas: true}},
	} {
		cfg.Prefix, cfg.RunID, cfg.Tombstones, cfg.ExtendedHeaders = "p", "r", true, true
		cfg.SchemaNames = AvroUnicodeNames
		cfg.Clock = func() time.Time { return time.Unix(1795979007, 5) }
		encode := func(em *Emitter, table *schema.Table, op binlog.Op, n int) string {
			ev, err := binlog.NewRows(binlog.Info{File: "f", Pos: int64(4 + n), TsMicros: 1795979007728187, Thread: 3}, op, table, offset.Offset{File: "f", Pos: 4}, images)
			must(t, err)
			var b Batch
			encodeEvent(t, em, &b, ev)
			return allRecords(&b)
		}
		em, err := New(cfg)
		must(t, err)
		for n := range 3 * len(tables) {
			table := tables[n*2%len(tables)]
			for _, op := range []binlog.Op{binlog.Create, binlog.Update, binlog.Delete} {
				alone, err := New(cfg)
				must(t, err)
				if got, want := encode(em, table, op, n), encode(alone, table, op, n); got != want {
					t.Fatalf("%s, %s.%s, %v:\ngot  %s\nwant %s", name, table.Database, table.Name, op, got, want)
				}
			}
		}
		if len(em.cfg.shared.rows) != 1 {
			t.Errorf("%s: %d plans of rows, want one", name, len(em.cfg.shared.rows))
		}
	}
}

// TestSettingsOfTables has equal columns of which something is set for one table only.
func TestSettingsOfTables(t *testing.T) {
	special := func(_, table, _ string) bool { return table == "special" }
	column := func(name string) func(_, table, column string) bool {
		return func(_, table, column string) bool { return table == "special" && column == name }
	}
	for name, cfg := range map[string]Config{
		"columns":     {Columns: func(d, t, c string) bool { return !column("note")(d, t, c) }},
		"keys":        {Keys: []func(database, table, column string) bool{column("customer")}},
		"mask":        {Modes: schema.Modes{Masks: []schema.Mask{{Match: column("name"), Kind: schema.MaskFixed, Length: 3}}}},
		"source":      {Value: Converter{Schemas: true}, Modes: schema.Modes{SourceColumn: special}},
		"source type": {Value: Converter{Schemas: true}, Modes: schema.Modes{SourceType: func(d, t, c, _ string) bool { return special(d, t, c) }}},
		"converter":   {Modes: schema.Modes{Converters: []schema.Converter{{Kind: schema.TinyIntOneToBoolean, Match: special}}}},
		"sink":        {Value: Converter{Schemas: true}, Modes: schema.Modes{Converters: []schema.Converter{{Kind: schema.JDBCSinkDataTypes, Boolean: column("customer")}}}},
		"real":        {Modes: schema.Modes{Converters: []schema.Converter{{Kind: schema.JDBCSinkDataTypes, Real: column("price")}}}},
		"string":      {Value: Converter{Schemas: true}, Modes: schema.Modes{Converters: []schema.Converter{{Kind: schema.JDBCSinkDataTypes, String: column("name")}}}},
	} {
		cfg.Prefix, cfg.RunID, cfg.Clock = "p", "r", func() time.Time { return time.Unix(0, 0) }
		encode := func(em *Emitter, table *schema.Table) string {
			ev, err := binlog.NewRows(binlog.Info{File: "f", Pos: 4}, binlog.Create, table, offset.Offset{File: "f", Pos: 4}, benchImage(nil, 1))
			must(t, err)
			var b Batch
			encodeEvent(t, em, &b, ev)
			return allRecords(&b)
		}
		em, err := New(cfg)
		must(t, err)
		var texts []string
		tables := tablesAlike("d.usual", "d.special", "d.another")
		for _, table := range tables {
			alone, err := New(cfg)
			must(t, err)
			got, want := encode(em, table), encode(alone, table)
			if got != want {
				t.Errorf("%s, %s:\ngot  %s\nwant %s", name, table.Name, got, want)
			}
			texts = append(texts, strings.ReplaceAll(got, table.Name, "t"))
		}
		if texts[0] == texts[1] || texts[0] != texts[2] {
			t.Errorf("%s: it shows nothing: %q", name, texts)
		}
		if em.plans[tables[0]].rowPlan != em.plans[tables[2]].rowPlan {
			t.Errorf("%s: the others share nothing", name)
		}
	}
}

// TestKeyFieldOfTables has a field in keys that says which table they are of.
func TestKeyFieldOfTables(t *testing.T) {
	cfg := Config{Prefix: "p", Naming: Naming{Class: "DefaultRegexTopicNamingStrategy", Regex: regexp.MustCompile(`.*`), Replacement: "all", UniqueKey: true, KeyField: "of"}}
	em, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	for _, table := range tablesAlike("d.one", "d.two") {
		ev, err := binlog.NewRows(binlog.Info{}, binlog.Create, table, offset.Offset{}, benchImage(nil, 1))
		must(t, err)
		encodeEvent(t, em, &b, ev)
		key := string(b.Records[len(b.Records)-1].Key)
		if want := `{"id":1,"of":"p.d.` + table.Name + `"}`; key != want {
			t.Errorf("got %s, want %s", key, want)
		}
	}
}

// TestInvalidValuesOfTablesAlike are told of for each table, once.
func TestInvalidValuesOfTablesAlike(t *testing.T) {
	text := "2021-02-31"
	columns := []schema.Column{
		{Name: "id", Type: 3},
		{Name: "day", Type: 10, Def: &schema.ColumnDef{Name: "day", Type: "DATE", HasDefault: true}},
		{Name: "n", Type: 3, Def: &schema.ColumnDef{Name: "n", Type: "INT", HasDefault: true, Default: &text}},
	}
	var told []string
	em, err := New(Config{Prefix: "p", Modes: schema.Modes{Invalid: func(database, table, column, what string) {
		what, _, _ = strings.Cut(what, " cannot be")
		told = append(told, fmt.Sprintf("%s.%s.%s %s", database, table, column, strings.Fields(what)[0]))
	}}})
	must(t, err)
	day := 2021<<9 | 2<<5 | 31
	row := []byte{0, 1, 0, 0, 0, byte(day), byte(day >> 8), byte(day >> 16), 7, 0, 0, 0}
	for _, name := range []string{"a", "b", "a"} {
		table := &schema.Table{Database: "d", Name: name, Columns: columns}
		for range 2 {
			ev, err := binlog.NewRows(binlog.Info{}, binlog.Create, table, offset.Offset{}, slices.Concat(row, row))
			must(t, err)
			var b Batch
			encodeEvent(t, em, &b, ev)
		}
	}
	want := "d.a.n its, d.a.day 2021-02-31, d.b.n its, d.b.day 2021-02-31, d.a.n its"
	if got := strings.Join(told, ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestPlansOfRowsEnd with the versions of the tables that had them.
func TestPlansOfRowsEnd(t *testing.T) {
	em, err := New(Config{Prefix: "p"})
	must(t, err)
	for range 1000 {
		must(t, em.use(tablesAlike("shop.orders")[0]))
	}
	if n := len(em.cfg.shared.rows); n > 100 {
		t.Errorf("%d plans of rows for one table", n)
	}
	if em.Forget(); len(em.cfg.shared.rows) != 0 {
		t.Errorf("%d plans of rows are not forgotten", len(em.cfg.shared.rows))
	}
}

// TestMemoryOfTables bounds what a table with rows takes here: a process may have thousands of tables.
func TestMemoryOfTables(t *testing.T) {
	const many = 1000
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for _, c := range benchFormats {
		for _, alike := range []bool{true, false} {
			bound := map[string]map[bool]int64{
				"json":        {true: 550, false: 5500},
				"json-schema": {true: 5500, false: 10_500}, // of which the text of the schema is most
				"avro":        {true: 1050, false: 5500},
			}[c.name][alike]
			var names []string
			for i := range many {
				names = append(names, fmt.Sprintf("shop.t%04d", i))
			}
			tables := tablesAlike(names...)
			if !alike {
				for _, table := range tables {
					table.Columns = benchTable().Columns
				}
			}
			converter := c.Converter
			if converter.Avro != nil {
				converter.Avro = &Avro{IDs: oneID{}, Subject: func(topic, _ string) string { return topic }}
			}
			em := benchEmitter(t, converter)
			var b Batch
			ev, err := binlog.NewRows(binlog.Info{}, binlog.Create, tables[0], offset.Offset{}, benchImage(nil, 1))
			must(t, err)
			body := benchImage(nil, 1)
			write := func(table *schema.Table) {
				b.Reset()
				ev.Table = table
				ev.Reset(body)
				encodeEvent(t, em, &b, ev)
			}
			write(tables[0])
			before := heap()
			for _, table := range tables[1:] {
				write(table)
			}
			// What an earlier test leaves may be freed meanwhile.
			if got := (int64(heap()) - int64(before)) / (many - 1); got > bound {
				t.Errorf("%s, tables alike: %v: %d bytes a table, at most %d are wanted", c.name, alike, got, bound)
			} else {
				t.Logf("%s, tables alike: %v: %d bytes a table", c.name, alike, got)
			}
			runtime.KeepAlive(em)
			runtime.KeepAlive(tables)
		}
	}
}

// oneID has one id for all schemas.
type oneID struct{}

func (oneID) ID(string, string) (int64, bool) { return 7, true }
