package binlog

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tidemark-cdc/tidemark/offset"
)

// goldenEvent is a record of the stream as Debezium 3.6.1 wrote it, without what the emitter makes of it: a row, the
// beginning or end of a transaction, a statement. Folders under testdata/golden that have events.jsonl.gz hold them in the
// order of their records, behind a line about the start. The d and c of a key change are one u.
type goldenEvent struct {
	Kind     string  `json:"kind"` // row, begin, end, ddl
	Op       string  `json:"op"`
	Table    string  `json:"table"`
	ID       string  `json:"id"` // of a transaction
	TsMillis int64   `json:"ts_ms"`
	DDL      string  `json:"ddl"`
	Database string  `json:"database"`
	Tables   *string `json:"tables"` // source.table of a statement
	TsMicros int64   `json:"ts_us"`
	ServerID int64   `json:"server_id"`
	GTID     string  `json:"gtid"`
	File     string  `json:"file"`
	Pos      int64   `json:"pos"`
	Row      int     `json:"row"`
	Thread   int64   `json:"thread"`
	Offset   string  `json:"offset"` // without what the emitter adds
}

func (e *goldenEvent) at(i Info) {
	e.TsMicros, e.ServerID, e.GTID, e.File, e.Pos, e.Thread = i.TsMicros, i.ServerID, i.GTID.String(), i.File, i.Pos, i.Thread
}

// goldenEvents returns the path of a folder's binlog, the line about the start and the events.
func goldenEvents(t testing.TB, folder string) (path string, head goldenHead, events []goldenEvent) {
	t.Helper()
	first, rest, _ := bytes.Cut(unzip(t, folder, "events.jsonl.gz"), []byte("\n"))
	if err := json.Unmarshal(first, &head); err != nil {
		t.Fatal(err)
	}
	return goldenBinlog(t, folder), head, jsonLines[goldenEvent](t, rest)
}

// readEvents reads a source to its end, and returns what a delivery would see, with the offsets of its last record.
func readEvents(t testing.TB, r *Reader) (events []goldenEvent, offsets []offset.Offset) {
	t.Helper()
	add := func(e goldenEvent, o offset.Offset) {
		e.Offset = o.String()
		events, offsets = append(events, e), append(offsets, o)
	}
	for {
		ev, err := r.Read(context.Background())
		if err == io.EOF {
			return events, offsets
		}
		if err != nil {
			t.Fatal(err)
		}
		switch ev := ev.(type) {
		case *Rows:
			for ev.Next() {
				e := goldenEvent{
					Kind: "row", Op: map[Op]string{Create: "c", Update: "u", Delete: "d"}[ev.Op], Table: ev.Table.Database + "." + ev.Table.Name, Row: ev.Row,
				}
				e.at(ev.Info)
				add(e, ev.OffsetAfter())
			}
			if err := ev.Err(); err != nil {
				t.Fatal(err)
			}
		case *Begin:
			add(goldenEvent{Kind: "begin", ID: ev.ID, TsMillis: ev.Info.TsMicros / 1000}, ev.Offset)
		case *Boundary:
			if ev.ID != "" {
				add(goldenEvent{Kind: "end", ID: ev.ID, TsMillis: ev.Info.TsMicros / 1000}, ev.Before)
			}
		case *SchemaChange:
			for _, c := range ev.Changes {
				if !c.Topic {
					continue
				}
				e := goldenEvent{Kind: "ddl", DDL: c.DDL, Database: c.Database, Row: ev.Row}
				if c.Tables != nil {
					names := strings.Join(c.Tables, ",")
					e.Tables = &names
				}
				e.at(ev.Info)
				add(e, ev.Record)
			}
		}
	}
}

func isXARow(e goldenEvent) bool { return e.Kind == "row" && e.Thread < 0 }

// withoutXA takes the rows of XA transactions out.
func withoutXA(events []goldenEvent) (rest, xa []goldenEvent) {
	for _, e := range events {
		if isXARow(e) {
			xa = append(xa, e)
		} else {
			rest = append(rest, e)
		}
	}
	return rest, xa
}

// TestGoldenEvents compares every record of the stream with Debezium's, statements and transactions included: its source
// block, and its offset. The rows of XA transactions have offsets of their own; they come when their transaction is
// committed, and never when it is rolled back.
func TestGoldenEvents(t *testing.T) {
	for _, folder := range []struct {
		name         string
		transactions bool
		rolledBack   []int64 // positions of rows events of XA transactions that are rolled back
	}{
		{"transactions", true, []int64{6386}},
		{"transactions-file-mode", true, []int64{6385}},
		{"compressed", true, nil},
		{"offsets-transaction-metadata", true, nil},
		{"ddl", false, nil},
		{"offsets-xa", false, []int64{4542}},
		{"offsets-xa-file-mode", false, []int64{4543}},
		{"heartbeat-each-event", false, nil},
	} {
		t.Run(folder.name, func(t *testing.T) {
			path, head, want := goldenEvents(t, folder.name)
			start := mustOffset(t, head.Start)
			core, logs := observer.New(zap.WarnLevel)
			cfg := Config{Captured: including(head.Include), Transactions: folder.transactions, Log: zap.New(core)}
			r, err := OpenFiles(context.Background(), cfg, []string{path}, Start{Offset: &start})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			got, _ := readEvents(t, r)
			want, wantXA := withoutXA(want)
			got, gotXA := withoutXA(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-Debezium +ours)\n%s", diff)
			}
			var committed []goldenEvent
		rows:
			for _, e := range wantXA {
				for _, pos := range folder.rolledBack {
					if e.Pos == pos {
						continue rows
					}
				}
				committed = append(committed, e)
			}
			for i := range gotXA {
				gotXA[i].Offset = ""
			}
			for i := range committed {
				committed[i].Offset = ""
			}
			if diff := cmp.Diff(committed, gotXA); diff != "" {
				t.Errorf("rows of XA transactions (-Debezium's of those that were committed +ours)\n%s", diff)
			}
			for _, entry := range logs.All() {
				t.Errorf("%s %v", entry.Message, entry.ContextMap())
			}
		})
	}
}

// TestI4_I5_EveryOffset starts from each offset that is given out, with the side record as it is stored beside it: exactly
// what follows it comes, and the same offsets again.
func TestI4_I5_EveryOffset(t *testing.T) {
	for _, folder := range []string{
		"transactions", "transactions-file-mode", "compressed", "offsets-transaction-metadata", "ddl", "offsets-xa", "offsets-xa-file-mode", "heartbeat-each-event",
	} {
		t.Run(folder, func(t *testing.T) {
			path, head, _ := goldenEvents(t, folder)
			start := mustOffset(t, head.Start)
			open := func(from offset.Offset) *Reader {
				r, err := OpenFiles(context.Background(), Config{Captured: including(head.Include)}, []string{path}, Start{Offset: &from})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { r.Close() })
				return r
			}
			all, offsets := readEvents(t, open(start))
			for i, from := range offsets {
				want, wantOffsets := all[i+1:], offsets[i+1:]
				if all[i].Kind == "ddl" {
					continue // its record's offset is before its boundary, so the statement comes again
				}
				got, gotOffsets := readEvents(t, open(from))
				if diff := cmp.Diff(want, got); diff != "" && len(want)+len(got) > 0 {
					t.Fatalf("from %s %+v done %d (-want +got)\n%s", from, from.Side, from.Done, diff)
				}
				for k := range gotOffsets {
					if diff := cmp.Diff(wantOffsets[k].Side, gotOffsets[k].Side); diff != "" {
						t.Fatalf("from %s: side of %s (-want +got)\n%s", from, gotOffsets[k], diff)
					}
				}
			}
		})
	}
}
