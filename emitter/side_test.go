package emitter

import (
	"bufio"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// sideGolden is a record of a Debezium run, with what the connector gave to Kafka Connect.
type sideGolden struct {
	Topic      string
	Partition  *int32
	Headers    [][2]string
	Key, Value *string
	Offset     string // the exact text
}

// sidePayload has the members of all kinds of values.
type sidePayload struct {
	Status      string
	ID          string
	TsMs        int64 `json:"ts_ms"`
	TsNs        int64 `json:"ts_ns"`
	Op          string
	Database    string `json:"databaseName"`
	DDL         *string
	Changes     json.RawMessage `json:"tableChanges"`
	Transaction *struct {
		Total int64 `json:"total_order"`
	}
	Source struct {
		TsUs     int64 `json:"ts_us"`
		DB       string
		Table    *string
		ServerID int64 `json:"server_id"`
		GTID     string
		File     string
		Pos      int64
		Row      int
		Thread   *int64
	}
}

// lines reads a file of JSON, one value a line.
func lines[T any](t *testing.T, name string) []T {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	must(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	must(t, err)
	var all []T
	s := bufio.NewScanner(z)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var v T
		must(t, json.Unmarshal(s.Bytes(), &v))
		all = append(all, v)
	}
	must(t, s.Err())
	return all
}

func (g *sideGolden) payload(t *testing.T) sidePayload {
	t.Helper()
	var v struct{ Payload sidePayload }
	if g.Value != nil {
		must(t, json.Unmarshal([]byte(*g.Value), &v))
	}
	return v.Payload
}

// info is that of a record whose value has a source block.
func (p *sidePayload) info() binlog.Info {
	s := &p.Source
	info := binlog.Info{TsMicros: s.TsUs, ServerID: s.ServerID, GTID: gtid(s.GTID), File: s.File, Pos: s.Pos, Thread: -1}
	if s.Thread != nil {
		info.Thread = *s.Thread
	}
	return info
}

// change is the statement of a schema change record.
func (p *sidePayload) change(t *testing.T) schema.SchemaChange {
	t.Helper()
	text := fmt.Sprintf(`{"position":{"file":"f","pos":4},"databaseName":"","ddl":"","tableChanges":%s}`, p.Changes)
	entries, err := schema.ReadHistory(strings.NewReader(text))
	must(t, err)
	c := schema.SchemaChange{Database: p.Database, DDL: *p.DDL, Changes: entries[0].Changes, Topic: true, History: true}
	if p.Source.Table != nil {
		c.Tables = strings.Split(*p.Source.Table, ",")
	}
	return c
}

// plain is an offset as the reader has it: without members of a transaction.
func plain(t *testing.T, text string) offset.Offset {
	t.Helper()
	o, err := offset.Parse([]byte(text))
	must(t, err)
	o.Extra = nil
	return o
}

// compareSide compares a record with the golden one but for the offset.
func compareSide(t *testing.T, want sideGolden, got Record) {
	t.Helper()
	if g := (goldenRecord{Topic: want.Topic, Key: want.Key, Value: want.Value, Headers: want.Headers}); want.Partition == nil && want.Value != nil && len(want.Headers) > 0 {
		compareGolden(t, g, got)
	} else {
		if got.Topic != want.Topic {
			t.Errorf("topic %s, want %s", got.Topic, want.Topic)
		}
		sameText(t, "key", want.Key, got.Key)
		sameText(t, "value", want.Value, got.Value)
		if len(got.Headers) != len(want.Headers) {
			t.Errorf("%d headers, want %d", len(got.Headers), len(want.Headers))
		}
		for i, h := range got.Headers {
			if w := want.Headers[i]; h.Name != w[0] || string(h.Value) != w[1] {
				t.Errorf("header %s=%s, want %s=%s", h.Name, h.Value, w[0], w[1])
			}
		}
	}
	partition := int32(-1)
	if want.Partition != nil {
		partition = *want.Partition
	}
	if got.Partition != partition {
		t.Errorf("partition %d, want %d", got.Partition, partition)
	}
}

// sideTable makes the table that the schema of a record describes.
func sideTable(t *testing.T, r goldenRecord, e goldenEnvelope) *schema.Table {
	t.Helper()
	table := &schema.Table{Database: e.Payload.Source.DB, Name: e.Payload.Source.Table}
	index := map[string]int{}
	for i, f := range e.Schema.Fields[0].Fields {
		c := schema.Column{Name: f.Field, Nullable: f.Optional}
		def := schema.ColumnDef{Name: f.Field, Type: "INT", Length: -1, Scale: -1, Nullable: f.Optional}
		switch f.Type + " " + f.Name {
		case "int32 ":
			c.Type = 3
		case "string ":
			c.Type, c.Meta, c.Collation = 15, 2400, 255
			def.Type = "VARCHAR"
		case "string io.debezium.data.Enum":
			c.Type, c.Meta, c.Collation, c.Labels = 247, 247<<8|1, 255, []string{"new", "paid"}
			def.Type, def.Labels = "ENUM", c.Labels
		case "bytes org.apache.kafka.connect.data.Decimal":
			c.Type, c.Meta = 246, 8<<8|2
			def.Type, def.Length, def.Scale = "DECIMAL", 8, 2
		default:
			t.Fatalf("no column of type %s %s", f.Type, f.Name)
		}
		if f.Default != nil {
			text := strings.Trim(string(f.Default), `"`)
			def.HasDefault, def.Default = true, &text
		}
		c.Def = &def
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

// sideCells turns a row back into the cells of its image.
func sideCells(t *testing.T, table *schema.Table, row map[string]any) [][]byte {
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
			must(t, err)
			cells[i] = binary.LittleEndian.AppendUint32(nil, uint32(n))
		case string:
			switch c.Type {
			case 247:
				cells[i] = []byte{byte(1 + slices.Index(c.Labels, v))}
			case 246:
				b, err := base64.StdEncoding.DecodeString(v)
				must(t, err)
				n := new(big.Int).SetBytes(b).Int64()
				cells[i] = []byte{0x80, byte(n / 100 >> 8), byte(n / 100), byte(n % 100)}
			default:
				cells[i] = []byte(v)
			}
		}
	}
	return cells
}

// sameText says where two long texts differ.
func sameText(t *testing.T, what string, want *string, got []byte) {
	t.Helper()
	if want == nil || got == nil {
		if want != nil || got != nil {
			t.Errorf("%s: got %q, want %v", what, got, want)
		}
		return
	}
	const around = 80
	w, g := *want, string(got)
	i := 0
	for i < len(w) && i < len(g) && w[i] == g[i] {
		i++
	}
	if i < max(len(w), len(g)) {
		from := max(0, i-around)
		t.Errorf("%s differs at byte %d:\ngot  …%s\nwant …%s", what, i, g[from:min(len(g), i+around)], w[from:min(len(w), i+around)])
	}
}

// player feeds the events that the records of a Debezium run came from.
type player struct {
	t       *testing.T
	em      *Emitter
	now     time.Time
	batch   Batch
	records []sideGolden
}

func newPlayer(t *testing.T, cfg Config, records []sideGolden) *player {
	t.Helper()
	p := &player{t: t, records: records}
	cfg.Clock = func() time.Time { return p.now }
	cfg.Key = Converter{Schemas: true, ReplaceNullWithDefault: true}
	cfg.Value = cfg.Key
	cfg.Tombstones = true
	cfg.SchemaChanges = true
	for _, r := range records {
		if n := len(r.Headers); n > 0 && strings.HasSuffix(r.Headers[n-1][0], "runId") {
			cfg.RunID, cfg.ExtendedHeaders = r.Headers[n-1][1], true
		}
	}
	var err error
	p.em, err = New(cfg)
	must(t, err)
	return p
}

// step feeds the event of the i-th record and returns how many records it gave in the run.
func (p *player) step(i int) int {
	t := p.t
	t.Helper()
	r := p.records[i]
	pay := r.payload(t)
	at := plain(t, r.Offset)
	p.now = time.UnixMilli(pay.TsMs)
	switch {
	case pay.Status == "BEGIN":
		must(t, p.em.Transaction(&p.batch, &binlog.Begin{Info: binlog.Info{TsMicros: pay.TsMs*1000 + 999}, ID: pay.ID, Offset: at}))
		return 1
	case pay.Status == "END":
		must(t, p.em.Commit(&p.batch, &binlog.Boundary{
			Commit: true, Info: binlog.Info{TsMicros: pay.TsMs*1000 + 1}, ID: pay.ID, Before: at,
		}))
		return 1
	case pay.DDL != nil:
		info := pay.info()
		info.TsMicros += 123
		must(t, p.em.SchemaChange(&p.batch, &binlog.SchemaChange{
			Info: info, Row: pay.Source.Row, Changes: []schema.SchemaChange{pay.change(t)}, Record: at,
			Before: offset.Offset{File: "before", Pos: 4},
		}))
		return 1
	}
	golden := goldenRecord{Topic: r.Topic, Key: r.Key, Value: r.Value, Headers: r.Headers}
	first := parseGolden(t, *r.Value)
	table := sideTable(t, golden, first)
	ev := &binlog.Rows{
		Info: pay.info(), Op: binlog.Create, Table: table, Row: pay.Source.Row, Base: at,
		Before: sideCells(t, table, first.Payload.Before), After: sideCells(t, table, first.Payload.After),
	}
	ev.Base.Row = 0
	n := 1
	switch pay.Op {
	case "u":
		ev.Op = binlog.Update
	case "d":
		ev.Op = binlog.Delete
		n = 2
		if len(r.Headers) > 0 && r.Headers[0][0] == newKeyHeader {
			ev.Op = binlog.Update
			ev.After = sideCells(t, table, parseGolden(t, *p.records[i+2].Value).Payload.After)
			n = 3
		}
	}
	p.now = time.Unix(0, pay.TsNs)
	must(t, p.em.Begin(ev))
	must(t, p.em.Row(&p.batch, ev))
	return n
}

// beforeRow is the offset before the row of a golden one of its first event: what I3 gives to all but the last of the
// row's records, where Debezium has moved on already.
func beforeRow(t *testing.T, text, table string) string {
	t.Helper()
	o, err := offset.Parse([]byte(text))
	must(t, err)
	o.Row--
	var extra []offset.Member
	for _, m := range o.Extra {
		if m.Name == tableCountPrefix+table {
			var n int64
			must(t, json.Unmarshal([]byte(m.Value), &n))
			if n == 1 {
				continue
			}
			m = offset.NumberMember(m.Name, n-1)
		}
		extra = append(extra, m)
	}
	o.Extra = extra
	return o.String()
}

// TestI3_GoldenTransactions plays whole runs with transaction metadata (several tables, a key change, CREATE TABLE …
// SELECT, XA, with and without GTIDs, compressed, with filters) and compares every record byte for byte, offsets included.
func TestI3_GoldenTransactions(t *testing.T) {
	for _, c := range []struct {
		folder string
		naming Naming
		marks  string // one letter for each kind that has to be among the records
	}{
		{"transactions", Naming{}, "BEdtkx"},
		{"transactions-file-mode", Naming{}, "BEdtkx"},
		{"compressed", Naming{}, "BEdtx"},
		{"topics-exclude", Naming{Transaction: "tx", HeartbeatPrefix: "hb"}, "BEdtk0"},
	} {
		t.Run(c.folder, func(t *testing.T) {
			records := lines[sideGolden](t, c.folder+".jsonl.gz")
			p := newPlayer(t, Config{Prefix: c.folder, Transactions: true, Naming: c.naming}, records)
			seen := map[rune]bool{}
			for i := 0; i < len(records); {
				n := p.step(i)
				if len(p.batch.Records) != n {
					t.Fatalf("record %d: %d records, want %d", i, len(p.batch.Records), n)
				}
				pay := records[i].payload(t)
				for j := range n {
					want, got := records[i+j], p.batch.Records[j]
					compareSide(t, want, got)
					text := want.Offset
					if j < n-1 {
						text = beforeRow(t, records[i].Offset, pay.Source.DB+"."+*pay.Source.Table)
					}
					if got.Offset.String() != text {
						t.Errorf("record %d: offset\ngot  %s\nwant %s", i+j, got.Offset, text)
					}
				}
				switch {
				case pay.Status == "BEGIN":
					seen['B'] = true
				case pay.Status == "END":
					seen['E'] = true
					seen['0'] = seen['0'] || strings.Contains(*records[i].Value, `"event_count":0,"data_collections":[]`)
				case pay.DDL != nil:
					seen['d'] = true
				case n > 1:
					seen['t'] = true
					seen['k'] = seen['k'] || n == 3
				case pay.Transaction == nil:
					seen['x'] = true
				}
				p.batch.Reset()
				i += n
			}
			for _, kind := range c.marks {
				if !seen[kind] {
					t.Errorf("no record of kind %c", kind)
				}
			}
		})
	}
}

// TestI3_GoldenSchemaChanges makes the records of Debezium's runs from its schema history.
func TestI3_GoldenSchemaChanges(t *testing.T) {
	type historyLine struct{ Value json.RawMessage }
	for folder, several := range map[string]int{"ddl": 2, "types-ddl": 0, "names": 0, "ddl-skip-unparseable": 0} {
		t.Run(folder, func(t *testing.T) {
			records := lines[sideGolden](t, folder+"-changes.jsonl.gz")
			var text strings.Builder
			for _, h := range lines[historyLine](t, folder+"-history.jsonl.gz") {
				fmt.Fprintf(&text, `{"value":%s}`+"\n", h.Value)
			}
			history, err := schema.ReadHistory(strings.NewReader(text.String()))
			must(t, err)
			if len(history) != len(records) {
				t.Fatalf("%d records, %d of the history", len(records), len(history))
			}
			p := newPlayer(t, Config{Prefix: folder}, records)
			groups := 0
			for i := 0; i < len(records); {
				first := records[i].payload(t)
				ev := &binlog.SchemaChange{
					Info: first.info(), Row: first.Source.Row, Record: plain(t, records[i].Offset),
					Before: offset.Offset{File: first.Source.File, Pos: first.Source.Pos},
				}
				ev.Info.TsMicros += 999
				n := 0
				for ; i+n < len(records); n++ {
					pay := records[i+n].payload(t)
					if pay.Source.Pos != first.Source.Pos {
						break
					}
					c := pay.change(t)
					c.Changes = history[i+n].Changes
					if c.DDL != history[i+n].DDL || c.Database != history[i+n].Database {
						t.Fatalf("the history has %q where the topic has %q", history[i+n].DDL, c.DDL)
					}
					// What only the history has makes no record and moves no offset.
					ev.Changes = append(ev.Changes, schema.SchemaChange{DDL: "hidden", History: true}, c)
				}
				ev.Changes = append(ev.Changes, schema.SchemaChange{DDL: "hidden", History: true})
				if n > 1 {
					groups++
				}
				for j := range n { // the record's time is the only thing that differs within a statement
					p.now = time.UnixMilli(records[i+j].payload(t).TsMs)
					must(t, p.em.SchemaChange(&p.batch, ev))
					if len(p.batch.Records) != n {
						t.Fatalf("%d records, want %d", len(p.batch.Records), n)
					}
					compareSide(t, records[i+j], p.batch.Records[j])
					want := ev.Before.String()
					if j == n-1 {
						want = records[i+j].Offset
					}
					if got := p.batch.Records[j].Offset.String(); got != want {
						t.Errorf("offset %s, want %s", got, want)
					}
					p.batch.Reset()
				}
				i += n
			}
			if groups < several {
				t.Errorf("only %d statements gave several records", groups)
			}
		})
	}
}
