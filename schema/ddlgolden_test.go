package schema

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ddlCapture is what a Debezium connector wrote for the statements of a server.
type ddlCapture struct {
	Name       string            `json:"name"`
	Config     map[string]string `json:"config"`
	Statements []ddlStatement    `json:"statements"`
	History    []string          `json:"history"` // the texts of the history records
	Topic      []ddlTopicRecord  `json:"topic"`   // of the schema change topic
}

type ddlStatement struct {
	File   string `json:"file"`
	Pos    int64  `json:"pos"` // its end
	Start  int64  `json:"start"`
	DB     string `json:"db"`
	SQL    string `json:"sql"`
	Mode   uint64 `json:"mode"`
	Server uint32 `json:"coll"` // collation_server
}

func (s ddlStatement) statement(form Form) Statement {
	return Statement{
		Database: s.DB, SQL: s.SQL, Form: form, Collation: s.Server,
		AnsiQuotes: s.Mode&4 != 0, NoBackslashEscapes: s.Mode&(1<<20) != 0, RealAsFloat: s.Mode&1 != 0,
	}
}

type ddlTopicRecord struct {
	File         string          `json:"file"`
	Pos          int64           `json:"pos"`
	Snapshot     string          `json:"snapshot"`
	Table        *string         `json:"table"`
	Database     string          `json:"databaseName"`
	DDL          string          `json:"ddl"`
	TableChanges json.RawMessage `json:"tableChanges"`
}

func readCaptures(t *testing.T) []ddlCapture {
	t.Helper()
	file, err := os.Open("testdata/ddl-captures.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []ddlCapture
	if err := json.NewDecoder(unpacked).Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

// list makes a filter of an include list: expressions that match a whole name.
func (c *ddlCapture) list(include, exclude string) func(name string) bool {
	compile := func(key string) []*regexp.Regexp {
		var all []*regexp.Regexp
		for _, expression := range strings.Split(c.Config[key], ",") {
			if expression != "" {
				all = append(all, regexp.MustCompile("(?i)^("+expression+")$"))
			}
		}
		return all
	}
	in, out := compile(include), compile(exclude)
	return func(name string) bool {
		for _, expression := range out {
			if expression.MatchString(name) {
				return false
			}
		}
		for _, expression := range in {
			if expression.MatchString(name) {
				return true
			}
		}
		return len(in) == 0
	}
}

func (c *ddlCapture) options() CatalogOptions {
	databases := c.list("database.include.list", "database.exclude.list")
	tables := c.list("table.include.list", "table.exclude.list")
	return CatalogOptions{
		Captured:           func(database, table string) bool { return databases(database) && tables(database+"."+table) },
		CapturedDatabase:   databases,
		OnlyCapturedTables: c.Config["schema.history.internal.store.only.captured.tables.ddl"] == "true",
		Comments:           c.Config["include.schema.comments"] == "true",
		Version:            90704,
	}
}

// stated are the differences that are meant: Debezium cannot parse these statements.
var stated = map[string]string{
	"ddl-skip-unparseable":   "a CREATE TABLE under ANSI_QUOTES is read",
	"fail-ddl-ansi-quotes":   "an ALTER TABLE under ANSI_QUOTES is read",
	"fail-ddl-skip-row-size": "an ALTER TABLE under ANSI_QUOTES is read",
}

func TestCatalogWritesDebeziumsHistory(t *testing.T) {
	records := 0
	for _, capture := range readCaptures(t) {
		t.Run(capture.Name, func(t *testing.T) {
			records += testCapture(t, &capture)
		})
	}
	if records < 80 {
		t.Errorf("%d records were compared", records)
	}
}

func testCapture(t *testing.T, capture *ddlCapture) (records int) {
	entries, err := ReadHistory(strings.NewReader(strings.Join(capture.History, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	catalog := NewCatalog(capture.options())
	var start HistoryEntry
	for len(entries) > 0 && entries[0].Snapshot {
		start = entries[0]
		if err := catalog.Replay(&entries[0]); err != nil {
			t.Fatal(err)
		}
		entries = entries[1:]
		capture.History = capture.History[1:]
	}
	topic := capture.Topic
	for len(topic) > 0 && topic[0].Snapshot != "false" {
		topic = topic[1:]
	}
	for _, s := range capture.Statements {
		if s.File < start.File || s.File == start.File && s.Pos <= start.Pos || capture.Config == nil {
			continue
		}
		changes, unknown, err := catalog.Apply(s.statement(StreamForm))
		if err != nil {
			t.Fatalf("%s:%d: %v", s.File, s.Pos, err)
		}
		if len(unknown) > 0 {
			t.Errorf("%s:%d: unknown %v", s.File, s.Pos, unknown)
		}
		for _, change := range changes {
			if change.History && len(entries) > 0 {
				e := entries[0]
				record := HistoryRecord{
					Server: e.Server, Position: e.Position, Time: e.Time,
					Database: change.Database, DDL: change.DDL, Changes: change.Changes,
				}
				if e.Pos != s.Pos && e.Event == 0 { // CREATE TABLE … START TRANSACTION has the position of its BEGIN
					t.Errorf("%s:%d: a record too many or too few: %s, want %s", s.File, s.Pos, change.DDL, e.DDL)
				}
				if diff := cmp.Diff(capture.History[0], string(AppendHistory(nil, &record))); diff != "" && stated[capture.Name] == "" {
					t.Errorf("%s:%d: history (-want +got)\n%s", s.File, s.Pos, diff)
				}
				entries, capture.History = entries[1:], capture.History[1:]
				records++
			}
			if change.Topic && len(topic) > 0 {
				if diff := cmp.Diff(topic[0].normal(t), topicRecord(&change, s)); diff != "" && stated[capture.Name] == "" {
					t.Errorf("%s:%d: topic (-want +got)\n%s", s.File, s.Pos, diff)
				}
				topic = topic[1:]
			}
		}
	}
	for len(entries) > 0 && (entries[0].Snapshot || entries[0].Pos <= start.Pos) { // a blocking snapshot
		entries = entries[1:]
	}
	if len(entries) > 0 || len(topic) > 0 {
		t.Errorf("%d history records and %d records of the topic were not written", len(entries), len(topic))
	}
	return records
}

// normal is the record as topicRecord prints it.
func (r *ddlTopicRecord) normal(t *testing.T) string {
	var changes any
	decoder := json.NewDecoder(bytes.NewReader(r.TableChanges))
	decoder.UseNumber()
	if err := decoder.Decode(&changes); err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(changes, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	table := "null"
	if r.Table != nil {
		table = fmt.Sprintf("%q", *r.Table)
	}
	return fmt.Sprintf("%s:%d %s %s %q\n%s", r.File, r.Pos, table, r.Database, r.DDL, text)
}

// topicRecord prints a change as Debezium's ConnectTableChangeSerializer fills its structs.
func topicRecord(c *SchemaChange, s ddlStatement) string {
	orNull := func(text string) any {
		if text == "" {
			return nil
		}
		return text
	}
	number := func(n int) any {
		if n < 0 {
			return nil
		}
		return n
	}
	changes := []any{}
	for i := range c.Changes {
		change := &c.Changes[i]
		m := map[string]any{"type": change.Kind.String(), "id": change.ID(), "table": nil}
		if def := change.Definition; def != nil {
			columns := []any{}
			for i := range def.Columns {
				c := &def.Columns[i]
				column := map[string]any{
					"name": c.Name, "jdbcType": c.JDBCType, "nativeType": nil, "typeName": c.Type,
					"typeExpression": c.TypeExpression(), "charsetName": orNull(c.Charset), "length": number(c.Length),
					"scale": number(c.Scale), "position": i + 1, "optional": c.Nullable, "autoIncremented": c.AutoInc,
					"generated": c.Generated, "comment": orNull(c.Comment), "defaultValueExpression": c.Default, "enumValues": nil,
				}
				if labels := c.EnumValues(); len(labels) > 0 {
					column["enumValues"] = labels
				}
				columns = append(columns, column)
			}
			key := def.Key
			if key == nil {
				key = []string{}
			}
			m["table"] = map[string]any{
				"defaultCharsetName": orNull(def.DefaultCharset), "primaryKeyColumnNames": key, "columns": columns,
				"comment": orNull(def.Comment),
			}
		}
		changes = append(changes, m)
	}
	text, err := json.MarshalIndent(changes, "", " ")
	if err != nil {
		return err.Error()
	}
	table := "null"
	if c.Tables != nil {
		table = fmt.Sprintf("%q", strings.Join(c.Tables, ","))
	}
	return fmt.Sprintf("%s:%d %s %s %q\n%s", s.File, s.Start, table, c.Database, c.DDL, text)
}

// DDL before the start stands for a snapshot: what it makes is what the snapshot has read from SHOW CREATE TABLE.
func TestShowCreateFormIsTheSnapshots(t *testing.T) {
	tables := 0
	for _, capture := range readCaptures(t) {
		entries, err := ReadHistory(strings.NewReader(strings.Join(capture.History, "\n")))
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) == 0 {
			continue
		}
		start := entries[0]
		options := capture.options()
		options.Comments = true
		catalog := NewCatalog(options)
		for _, s := range capture.Statements {
			if s.File > start.File || s.File == start.File && s.Pos > start.Pos {
				break
			}
			if _, _, err := catalog.Apply(s.statement(ShowCreateForm)); err != nil {
				t.Fatalf("%s %s:%d: %v", capture.Name, s.File, s.Pos, err)
			}
		}
		for _, e := range entries {
			if !e.Snapshot || e.Pos != start.Pos || len(e.Changes) != 1 || e.Changes[0].Kind != CreateTable {
				continue
			}
			want := e.Changes[0].Definition
			got := catalog.Definition(want.Database, want.Name)
			if got == nil {
				t.Errorf("%s: table %s is not known", capture.Name, want.Name)
				continue
			}
			tables++
			if capture.Config["include.schema.comments"] != "true" {
				got = got.withoutComments()
			}
			plain := *got
			plain.KeyKind, plain.Unique, plain.ServerCharset = KeyChosen, nil, ""
			plain.Columns = append([]ColumnDef(nil), got.Columns...)
			for i := range plain.Columns {
				plain.Columns[i].Server = nil
			}
			if diff := cmp.Diff(want, &plain); diff != "" {
				t.Errorf("%s.%s (-want +got)\n%s", capture.Name, want.Name, diff)
			}
			printed, err := ParseCreateTable(e.Database, e.DDL)
			if err != nil {
				t.Errorf("%s.%s: %v", capture.Name, want.Name, err)
				continue
			}
			if diff := cmp.Diff(printed, got); diff != "" && plain.Comment == printed.Comment {
				t.Errorf("%s.%s, by SHOW CREATE TABLE (-want +got)\n%s", capture.Name, want.Name, diff)
			}
		}
	}
	if tables < 100 {
		t.Errorf("%d tables were compared", tables)
	}
}
