package emitter

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/schema"
)

// schemaEmitters are emitters with settings that show in schemas.
func schemaEmitters(t *testing.T, connector string) map[string]*Emitter {
	t.Helper()
	all := func(string, string, string) bool { return true }
	some := func(_, _, column string) bool { return len(column)%2 == 0 }
	configs := map[string]Config{
		"default": {},
		"connect, precise, comments, source types": {Modes: schema.Modes{
			Time: schema.TimeConnect, UnsignedBigint: schema.UnsignedPrecise, Binary: schema.BinaryHex, Comments: true, SourceColumn: all,
		}, FieldNames: AvroUnicodeNames, SchemaNames: AvroUnicodeNames},
		"strings": {Modes: schema.Modes{
			Decimal: schema.DecimalString, Time: schema.TimeISOString, Binary: schema.BinaryBase64, Failure: schema.FailureSkip, NoTimeAdjuster: true,
			SourceType: func(_, _, _, name string) bool { return strings.ContainsAny(name, "ES") },
		}},
		"double, nanoseconds": {Modes: schema.Modes{Decimal: schema.DecimalDouble, Time: schema.TimeNanoseconds, Binary: schema.BinaryBase64URL}},
		"microseconds, keys of other columns": {
			Modes: schema.Modes{Time: schema.TimeMicroseconds, Comments: true}, Columns: some,
			Keys: []func(string, string, string) bool{func(_, _, column string) bool { return len(column) == 3 }, some},
		},
		"masks": {Modes: schema.Modes{SourceColumn: some, Masks: []schema.Mask{
			{Match: some, Kind: schema.MaskTruncate, Length: 3},
			{Match: func(_, _, column string) bool { return len(column)%3 == 0 }, Kind: schema.MaskFixed, Length: 3},
			{Match: all, Kind: schema.MaskHash, Algorithm: "SHA-256", Salt: "s"},
		}}},
		"TINYINT(1) as boolean": {Modes: schema.Modes{Converters: []schema.Converter{{Kind: schema.TinyIntOneToBoolean, Length: true}}}},
		"one topic, conversions must not fail": {
			Naming: Naming{Class: "DefaultRegexTopicNamingStrategy", Regex: regexp.MustCompile(`(.*)\.([^.]*)\.[^.]*`), Replacement: "$1.$2", UniqueKey: true},
			Modes:  schema.Modes{Failure: schema.FailureFail},
		},
	}
	// One converter at a time, since what it does not take is an error.
	for name, kind := range map[string]func(c *schema.Converter, f func(string, string, string) bool){
		"boolean": func(c *schema.Converter, f func(string, string, string) bool) { c.Boolean = f },
		"real":    func(c *schema.Converter, f func(string, string, string) bool) { c.Real = f },
		"string":  func(c *schema.Converter, f func(string, string, string) bool) { c.String = f },
	} {
		c := schema.Converter{Kind: schema.JDBCSinkDataTypes}
		kind(&c, all)
		configs["converter for "+name] = Config{Modes: schema.Modes{Converters: []schema.Converter{c}}}
	}
	emitters := map[string]*Emitter{}
	for name, cfg := range configs {
		cfg.Prefix, cfg.Connector = "p", connector
		cfg.Key = Converter{Schemas: true}
		cfg.Value = cfg.Key
		em, err := New(cfg)
		must(t, err)
		emitters[name] = em
	}
	return emitters
}

// columnSchemas are the schemas of the columns of a table, or why one has none.
func columnSchemas(t *testing.T, cfg *Config, table *schema.Table) []string {
	t.Helper()
	all := make([]string, len(table.Columns))
	for i := range table.Columns {
		for _, modes := range []schema.Modes{cfg.Modes, cfg.Modes.Key()} {
			typ, _, err := modes.Column(table, i)
			if err != nil {
				all[i] += err.Error() + "\n"
				continue
			}
			text, err := appendSchema(nil, typ, &table.Columns[i].Name, false)
			must(t, err)
			all[i] += string(text) + "\n"
		}
	}
	return all
}

// asInsert is the current row of an event as an insert.
func asInsert(ev *binlog.Rows) *binlog.Rows {
	one := *ev
	if one.Op != binlog.Create {
		one.Op, one.After = binlog.Create, ev.Before
	}
	return &one
}

// rowSchemas are the schemas in the record of an insert, or why there is none.
func rowSchemas(t *testing.T, em *Emitter, ev *binlog.Rows) (topic, key, value string, failure error) {
	t.Helper()
	one := asInsert(ev)
	if err := em.Begin(one); err != nil {
		return "", "", "", errors.Unwrap(err)
	}
	var b Batch
	if err := em.Row(&b, one); err != nil {
		t.Fatalf("%s: %v", ev.Table.Name, err)
	}
	before := func(record []byte) string {
		if record == nil {
			return ""
		}
		text, _, ok := bytes.Cut(bytes.TrimPrefix(record, []byte(`{"schema":`)), []byte(`,"payload":`))
		if !ok {
			t.Fatalf("no schema in %s", record)
		}
		return string(text)
	}
	r := &b.Records[0]
	return r.Topic, before(r.Key), before(r.Value), nil
}

// compareSchemas compares what the rows of an event have with what a definition of their table gives. It returns what differs.
func compareSchemas(t *testing.T, em *Emitter, ev *binlog.Rows, def *schema.Definition) (differences []string) {
	t.Helper()
	differ := func(format string, args ...any) { differences = append(differences, fmt.Sprintf(format, args...)) }
	text := func(typ *schema.Type) string {
		if typ == nil {
			return ""
		}
		b, err := em.cfg.Value.AppendConnectSchema(nil, typ)
		must(t, err)
		return string(b)
	}
	topic, key, value, failure := rowSchemas(t, em, ev)
	switch s, err := em.TableSchemas(def); {
	case failure == nil && err == nil:
		if s.Topic != topic {
			differ("topic %s, want %s", s.Topic, topic)
		}
		if got := text(s.Key); got != key {
			differ("key:\ngot  %s\nwant %s", got, key)
		}
		if text(s.Value) == value {
			return differences
		}
		differ("the values differ")
	case failure == nil || err == nil || !strings.HasSuffix(err.Error(), errorTail(failure)):
		differ("rows fail with %v, the definition with %v", failure, err)
	}
	defined, err := em.cfg.definedTable(def)
	must(t, err)
	got, want := columnSchemas(t, &em.cfg, defined), columnSchemas(t, &em.cfg, ev.Table)
	if len(got) != len(want) {
		differ("%d columns, want %d", len(got), len(want))
	}
	for i := range min(len(want), len(got)) {
		if got[i] != want[i] {
			differ("column %d:\ngot  %swant %s", i, got[i], want[i])
		}
	}
	return differences
}

// errorTail is an error without the table that it begins with.
func errorTail(err error) string {
	_, tail, _ := strings.Cut(err.Error(), ": ")
	return tail
}

// schemaRecording is a recorded binlog.
type schemaRecording struct {
	name    string
	files   []string
	columns bool // it has tables with columns of all types, made in many ways: their statements come first, then rows
	mariaDB bool
}

// schemaRecordings are the binlogs of all captures and those of servers with odd types.
func schemaRecordings(t *testing.T) []schemaRecording {
	t.Helper()
	var all []schemaRecording
	paths, err := filepath.Glob("../it/testdata/golden/*/mysql-bin.000001.gz")
	must(t, err)
	for _, path := range paths {
		all = append(all, schemaRecording{name: filepath.Base(filepath.Dir(path)), files: []string{path}})
	}
	if len(all) < 50 {
		t.Fatalf("only %d captures", len(all))
	}
	return append(
		all,
		schemaRecording{name: "columns of MySQL", files: []string{"testdata/columns/mysql-bin.000001.gz"}, columns: true},
		schemaRecording{name: "columns of MariaDB 10.11", files: []string{"testdata/columns/maria-bin.000001.gz"}, columns: true, mariaDB: true},
		schemaRecording{name: "columns of MariaDB 11.8", files: []string{"testdata/columns/maria-bin.000002.gz"}, columns: true, mariaDB: true},
	)
}

func (r schemaRecording) unpacked(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	files := make([]string, len(r.files))
	for i, path := range r.files {
		files[i] = filepath.Join(dir, strings.TrimSuffix(filepath.Base(path), ".gz"))
		must(t, os.WriteFile(files[i], unzipped(t, path), 0o600))
	}
	return files
}

// replay reads a recording from a start. rows is called at the first row of each version of a table, with its definition at
// that position; it returns the positions between statements and rows.
func (r schemaRecording) replay(t *testing.T, files []string, from binlog.Start, rows func(ev *binlog.Rows, def *schema.Definition)) (starts []binlog.Start) {
	t.Helper()
	catalog := schema.NewCatalog(schema.CatalogOptions{MariaDB: r.mariaDB, Comments: true})
	src, err := binlog.OpenFiles(context.Background(), binlog.Config{
		Captured: func(database, _ string) bool { return database != "mysql" && database != "sys" },
		Catalog:  catalog, SkipUnparseableDDL: true, UnknownTable: func(string, string, error) {},
	}, files, from)
	must(t, err)
	defer src.Close()
	seen := map[*schema.Table]bool{}
	var behind *binlog.Start // the last event but boundaries was a statement
	for {
		ev, err := src.Read(context.Background())
		if err == io.EOF {
			return starts
		}
		if err != nil {
			t.Logf("it ends: %v", err)
			return starts
		}
		switch ev := ev.(type) {
		case *binlog.SchemaChange:
			behind = &binlog.Start{File: ev.Offset.File, Pos: ev.Offset.Pos}
		case *binlog.Rows:
			if behind != nil {
				starts, behind = append(starts, *behind), nil
			}
			if !ev.Next() {
				if err := ev.Err(); err != nil {
					t.Logf("no row: %v", err)
				}
				continue
			}
			if !seen[ev.Table] {
				seen[ev.Table] = true
				rows(ev, catalog.Definition(ev.Table.Database, ev.Table.Name))
			}
		}
	}
}

// outdated are tables whose definition is not up to date, as Debezium leaves out what changes it; rows have the key of TABLE_MAP.
var outdated = map[string]string{
	"ddl inventory.nokey@12962": `key:
got  {"type":"struct","fields":[{"type":"int32","optional":false,"field":"a"}],"optional":false,"name":"p.inventory.nokey.Key"}
want {"type":"struct","fields":[{"type":"int32","optional":false,"field":"b"}],"optional":false,"name":"p.inventory.nokey.Key"}`, // DROP INDEX
}

// TestTableSchemasAreThoseOfRows reads recorded binlogs and compares the schemas in the records of each version of each table
// with those that its definition gives: with definitions as DDL in the stream makes them, and in the form of SHOW CREATE TABLE,
// which those have that come before the start.
func TestTableSchemasAreThoseOfRows(t *testing.T) {
	done := map[string]bool{} // what has been compared, in one recording or another
	found := map[string]bool{}
	all := map[bool]map[string]*Emitter{false: schemaEmitters(t, "mysql"), true: schemaEmitters(t, "mariadb")}
	for _, r := range schemaRecordings(t) {
		files, emitters := r.unpacked(t), all[r.mariaDB]
		starts := []binlog.Start{{Oldest: true}}
		for pass := 0; pass < len(starts); pass++ {
			next := r.replay(t, files, starts[pass], func(ev *binlog.Rows, def *schema.Definition) {
				name := fmt.Sprintf("%s %s.%s@%d", r.name, ev.Table.Database, ev.Table.Name, ev.Info.Pos)
				if def == nil {
					t.Errorf("%s: no definition", name)
					return
				}
				id, err := json.Marshal([]any{r.mariaDB, def, ev.Table})
				must(t, err)
				if done[string(id)] {
					return
				}
				done[string(id)] = true
				for _, settings := range slices.Sorted(maps.Keys(emitters)) {
					for _, difference := range compareSchemas(t, emitters[settings], ev, def) {
						if known := outdated[name]; known == difference || known != "" && settings != "default" && strings.HasPrefix(difference, "key:") {
							found[name] = true
							continue
						}
						t.Errorf("%s from %+v with the settings %q: %s", name, starts[pass], settings, difference)
					}
				}
			})
			if pass == 0 && r.columns {
				starts = append(starts, next[len(next)-1]) // behind nearly all its statements, which take long
			} else if pass == 0 {
				starts = append(starts, next...)
			}
		}
	}
	if len(done) < 580 || len(found) != len(outdated) {
		t.Errorf("only %d versions of tables compared; outdated: %v", len(done), found)
	}
	t.Logf("%d versions of tables compared", len(done))
}

// TestNeededIsWhatRowsNeed reads the binlogs with columns of all types, and compares the schemas that an emitter asks for when
// the first row of a table comes with those that the definition says are needed.
func TestNeededIsWhatRowsNeed(t *testing.T) {
	tables := 0
	for _, r := range schemaRecordings(t) {
		if !r.columns {
			continue
		}
		ids := &testIDs{known: map[string]bool{}}
		converter := Converter{Avro: avroConverter(ids)}
		em, err := New(Config{Prefix: "p", Key: converter, Value: converter, Modes: schema.Modes{Comments: true}})
		must(t, err)
		r.replay(t, r.unpacked(t), binlog.Start{Oldest: true}, func(ev *binlog.Rows, def *schema.Definition) {
			tables++
			clear(ids.known)
			needed, err := em.Needed(def)
			must(t, err)
			if want := 1 + min(1, len(ev.Table.Key)); len(needed) != want {
				t.Fatalf("%s: %d schemas, want %d", ev.Table.Name, len(needed), want)
			}
			var b Batch
			one := asInsert(ev)
			must(t, em.Begin(one))
			for _, want := range needed {
				var got *SchemaNeeded
				if err := em.Row(&b, one); !errors.As(err, &got) || *got != want {
					t.Fatalf("%s: %v\ngot  %+v\nwant %+v", ev.Table.Name, err, got, want)
				}
				ids.known[want.Subject] = true
			}
			must(t, em.Row(&b, one))
		})
	}
	if tables < 150 {
		t.Errorf("only %d versions of tables", tables)
	}
}

// TestNeededIsWhatDebeziumRegistered compares the schemas of the tables of Debezium runs with those that its converter has
// registered, text by text: of each version of a table that had rows.
func TestNeededIsWhatDebeziumRegistered(t *testing.T) {
	all := func(string, string, string) bool { return true }
	for folder, c := range map[string]struct {
		from   int64 // the position of the snapshot
		cfg    Config
		tables int // so many versions
	}{
		"avro-basics":        {1988, Config{Prefix: "avrobasics"}, 3},
		"avro-evolution":     {958, Config{Prefix: "avroevo"}, 10},
		"avro-names":         {2135, Config{Prefix: "avro-names", SchemaNames: AvroNames, FieldNames: AvroNames}, 5},
		"avro-names-unicode": {2135, Config{Prefix: "avro-uni", SchemaNames: AvroUnicodeNames, FieldNames: AvroUnicodeNames}, 5},
		"avro-tx":            {979, Config{Prefix: "avrotx", Transactions: true}, 3},
		"avro-types":         {11235, Config{Prefix: "avrotypes"}, 18},
		"avro-types-modes": {1386, Config{Prefix: "avrotypesmodes", Modes: schema.Modes{
			Time: schema.TimeConnect, UnsignedBigint: schema.UnsignedPrecise, Binary: schema.BinaryHex, Comments: true, SourceColumn: all,
		}}, 1},
	} {
		dir := "../it/testdata/golden/" + folder
		var subjects []struct{ Subject, Schema string }
		must(t, json.Unmarshal(unzipped(t, dir+"/subjects.json.gz"), &subjects))
		registered := map[string]bool{}
		for _, s := range subjects {
			registered[s.Subject+" "+s.Schema] = true
		}
		for _, side := range []struct {
			converter *Converter
			suffix    string
		}{{&c.cfg.Key, "-key"}, {&c.cfg.Value, "-value"}} {
			side.converter.Avro = avroConverter(&testIDs{})
			side.converter.Avro.Subject = func(topic, _ string) string { return topic + side.suffix }
		}
		em, err := New(c.cfg)
		must(t, err)
		r := schemaRecording{name: folder, files: []string{dir + "/mysql-bin.000001.gz"}}
		found := map[string]bool{}
		r.replay(t, r.unpacked(t), binlog.Start{File: "mysql-bin.000001", Pos: c.from}, func(ev *binlog.Rows, def *schema.Definition) {
			needed, err := em.Needed(def)
			must(t, err)
			for _, s := range needed {
				if !registered[s.Subject+" "+s.Text] {
					t.Errorf("%s %s.%s: not registered in %s: %s", folder, ev.Table.Database, ev.Table.Name, s.Subject, s.Text)
				}
				if !s.Key {
					found[s.Text] = true
				}
			}
		})
		if len(found) != c.tables {
			t.Errorf("%s: %d versions, want %d", folder, len(found), c.tables)
		}
	}
}

func unzipped(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	must(t, err)
	data, err := io.ReadAll(z)
	must(t, err)
	return data
}
