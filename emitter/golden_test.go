package emitter

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// goldenRecord is a record as a Debezium connector wrote it.
type goldenRecord struct {
	Topic   string
	Key     *string
	Value   *string
	Headers [][2]string
	Offset  struct {
		File            string
		Pos, Event, Row int64
	}
}

type goldenField struct {
	Type     string
	Optional bool
	Default  json.RawMessage
	Field    string
	Name     string
	Fields   []goldenField
}

type goldenEnvelope struct {
	Schema  goldenField
	Payload struct {
		Before, After map[string]any
		Source        struct {
			Name     string
			DB       string
			Table    string
			TsUs     int64 `json:"ts_us"`
			ServerID int64 `json:"server_id"`
			GTID     string
			File     string
			Pos      int64
			Row      int
			Thread   int64
		}
		Op   string
		TsNs int64 `json:"ts_ns"`
	}
}

func readGolden(t *testing.T, name string) []goldenRecord {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var records []goldenRecord
	for s := bufio.NewScanner(z); s.Scan(); {
		var r goldenRecord
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	return records
}

func parseGolden(t *testing.T, text string) goldenEnvelope {
	t.Helper()
	var e goldenEnvelope
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&e); err != nil {
		t.Fatal(err)
	}
	return e
}

// goldenTable makes the table that the schema of a record describes. It knows integers and strings.
func goldenTable(t *testing.T, r goldenRecord, e goldenEnvelope) *schema.Table {
	t.Helper()
	table := &schema.Table{Database: e.Payload.Source.DB, Name: e.Payload.Source.Table}
	row := e.Schema.Fields[0]
	index := map[string]int{}
	for i, f := range row.Fields {
		c := schema.Column{Name: f.Field, Nullable: f.Optional}
		switch f.Type {
		case "int32":
			c.Type = 3
		case "int64":
			c.Type = 8
		case "string":
			c.Type, c.Meta, c.Collation = 15, 2400, 255
		default:
			t.Fatalf("no column of type %s", f.Type)
		}
		if f.Default != nil {
			def := string(f.Default)
			c.Def = &schema.ColumnDef{
				Name: f.Field, Type: "INT", Length: -1, Scale: -1, Nullable: f.Optional, HasDefault: true, Default: &def,
			}
		}
		index[f.Field] = i
		table.Columns = append(table.Columns, c)
	}
	if r.Key != nil {
		for _, f := range parseGolden(t, *r.Key).Schema.Fields {
			table.Key = append(table.Key, index[f.Field])
		}
	}
	return table
}

// goldenCells turns a row back into the cells of its image.
func goldenCells(t *testing.T, table *schema.Table, row map[string]any) [][]byte {
	t.Helper()
	if row == nil {
		return nil
	}
	cells := make([][]byte, len(table.Columns))
	for i, c := range table.Columns {
		switch v := row[c.Name].(type) {
		case nil:
		case json.Number:
			n, err := v.Int64()
			if err != nil {
				t.Fatal(err)
			}
			cells[i] = binary.LittleEndian.AppendUint64(nil, uint64(n))
			if c.Type == 3 {
				cells[i] = cells[i][:4]
			}
		case string:
			cells[i] = append([]byte{}, v...)
		default:
			t.Fatalf("no cell for %T", v)
		}
	}
	return cells
}

func goldenInfo(e goldenEnvelope) binlog.Info {
	s := &e.Payload.Source
	return binlog.Info{
		TsMicros: s.TsUs, ServerID: s.ServerID, GTID: gtid(s.GTID), File: s.File, Pos: s.Pos, Thread: s.Thread,
	}
}

// TestI3_GoldenBasics feeds every change of a Debezium run (inserts, updates, deletes, key changes, tables without a key)
// and compares keys, values and headers byte for byte, and the offsets but for what I3 changes on purpose.
func TestI3_GoldenBasics(t *testing.T) {
	records := readGolden(t, "basics-streamed.jsonl.gz")
	var now time.Time
	em, err := New(Config{
		Prefix:          "basics",
		RunID:           records[0].Headers[len(records[0].Headers)-1][1],
		Key:             Converter{Schemas: true, ReplaceNullWithDefault: true},
		Value:           Converter{Schemas: true, ReplaceNullWithDefault: true},
		Tombstones:      true,
		ExtendedHeaders: true,
		Clock:           func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	var batch Batch
	changes, keyChanges := 0, 0
	for i := 0; i < len(records); {
		first := parseGolden(t, *records[i].Value)
		table := goldenTable(t, records[i], first)
		ev := &binlog.Rows{
			Info: goldenInfo(first), Table: table, Row: first.Payload.Source.Row,
			Before: goldenCells(t, table, first.Payload.Before), After: goldenCells(t, table, first.Payload.After),
			Base: offset.Offset{File: records[i].Offset.File, Pos: records[i].Offset.Pos, Event: records[i].Offset.Event},
		}
		n := 1
		switch first.Payload.Op {
		case "c":
			ev.Op = binlog.Create
		case "u":
			ev.Op = binlog.Update
		case "d":
			ev.Op = binlog.Delete
			n = 2
			if records[i].Headers[0][0] == newKeyHeader {
				ev.Op = binlog.Update
				ev.After = goldenCells(t, table, parseGolden(t, *records[i+2].Value).Payload.After)
				n = 3
				keyChanges++
			}
		}
		now = time.Unix(0, first.Payload.TsNs)
		if err := em.Begin(ev); err != nil {
			t.Fatal(err)
		}
		if err := em.Row(&batch, ev); err != nil {
			t.Fatal(err)
		}
		if len(batch.Records) != n {
			t.Fatalf("record %d: got %d records, want %d", i, len(batch.Records), n)
		}
		for j := range n {
			want, got := records[i+j], batch.Records[j]
			compareGolden(t, want, got)
			// Debezium's row is that of the next row in all of them.
			if row := want.Offset.Row - 1; j < n-1 && got.Offset.Row != row || j == n-1 && got.Offset.Row != row+1 {
				t.Errorf("record %d of %d has row %d", j, n, got.Offset.Row)
			}
			if got.Offset.Pos != want.Offset.Pos || got.Offset.Event != want.Offset.Event {
				t.Errorf("got offset %d/%d, want %d/%d", got.Offset.Pos, got.Offset.Event, want.Offset.Pos, want.Offset.Event)
			}
		}
		batch.Reset()
		i += n
		changes++
	}
	if changes < 70 || keyChanges < 5 {
		t.Errorf("only %d changes, %d key changes", changes, keyChanges)
	}
}

func compareGolden(t *testing.T, want goldenRecord, got Record) {
	t.Helper()
	if got.Topic != want.Topic {
		t.Errorf("topic %s, want %s", got.Topic, want.Topic)
	}
	compareText(t, "key", want.Key, got.Key, false)
	compareText(t, "value", want.Value, got.Value, true)
	headers := make([][2]string, len(got.Headers))
	for i, h := range got.Headers {
		headers[i] = [2]string{h.Name, string(h.Value)}
	}
	if diff := cmp.Diff(want.Headers, headers); diff != "" {
		t.Errorf("headers of %s: %s", *want.Key, diff)
	}
}

// compareText compares a key or value. The second half of a key change has a time of its own in a real run, so that
// the digits of the envelope's times are left out of values.
func compareText(t *testing.T, what string, want *string, got []byte, times bool) {
	t.Helper()
	if want == nil || got == nil {
		if want != nil || got != nil {
			t.Errorf("%s: got %q, want %v", what, got, want)
		}
		return
	}
	w, g := *want, string(got)
	if times {
		w, g = withoutTimes(t, w), withoutTimes(t, g)
	}
	if w != g {
		t.Errorf("%s:\ngot  %s\nwant %s", what, g, w)
	}
}

func withoutTimes(t *testing.T, s string) string {
	t.Helper()
	at := strings.LastIndex(s, `,"ts_ms":`)
	var ts struct {
		Ms int64 `json:"ts_ms"`
		Us int64 `json:"ts_us"`
		Ns int64 `json:"ts_ns"`
	}
	if err := json.Unmarshal([]byte("{"+strings.TrimSuffix(s[at+1:], "}")), &ts); err != nil {
		t.Fatal(err)
	}
	if ts.Ms != ts.Ns/1e6 || ts.Us != ts.Ns/1e3 {
		t.Errorf("times differ: %+v", ts)
	}
	s = strings.Replace(s, strconv.FormatInt(ts.Ms, 10)+`,"ts_us"`, `MS,"ts_us"`, 1)
	s = strings.Replace(s, strconv.FormatInt(ts.Us, 10)+`,"ts_ns"`, `US,"ts_ns"`, 1)
	return strings.Replace(s, strconv.FormatInt(ts.Ns, 10)+"}", "NS}", 1)
}

// TestGoldenTimes compares one whole value, times included.
func TestGoldenTimes(t *testing.T) {
	r := readGolden(t, "basics-streamed.jsonl.gz")[0]
	e := parseGolden(t, *r.Value)
	table := goldenTable(t, r, e)
	em, err := New(Config{
		Prefix: "basics",
		Value:  Converter{Schemas: true, ReplaceNullWithDefault: true},
		Clock:  func() time.Time { return time.Unix(0, e.Payload.TsNs) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ev := &binlog.Rows{Info: goldenInfo(e), Op: binlog.Create, Table: table, After: goldenCells(t, table, e.Payload.After)}
	var batch Batch
	if err := em.Begin(ev); err != nil {
		t.Fatal(err)
	}
	if err := em.Row(&batch, ev); err != nil {
		t.Fatal(err)
	}
	if got := batch.Records[0]; !bytes.Equal(got.Value, []byte(*r.Value)) {
		t.Errorf("got  %s\nwant %s", got.Value, *r.Value)
	} else if got.Headers != nil || string(got.Key) != `{"id":1001}` {
		t.Errorf("key %s, headers %v", got.Key, got.Headers)
	}
}
