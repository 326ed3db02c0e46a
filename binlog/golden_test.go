package binlog

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-cdc/tidemark/offset"
)

// goldenRow is a row as Debezium 3.6.1 wrote it: its source block, and the source offset of its record. The folders
// under testdata/golden hold a server's binlog and these rows, one JSON object a line, after a line about the start.
type goldenRow struct {
	Op       string `json:"op"` // u also for the d and c of a key change
	Table    string `json:"table"`
	TsMicros int64  `json:"ts_us"`
	ServerID int64  `json:"server_id"`
	GTID     string `json:"gtid"`
	File     string `json:"file"`
	Pos      int64  `json:"pos"`
	Row      int    `json:"row"`
	Thread   int64  `json:"thread"`
	Offset   string `json:"offset"`
}

type goldenHead struct {
	Start   string `json:"start"`
	Include string `json:"include"` // the connector's table.include.list
}

// unzip returns a file of testdata/golden, and its lines.
func unzip(t testing.TB, path ...string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join(append([]string{"testdata", "golden"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func jsonLines[T any](t testing.TB, data []byte) []T {
	t.Helper()
	var all []T
	for line := range bytes.Lines(data) {
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

// golden returns the path of a folder's binlog, the first line about it and its rows.
func golden(t testing.TB, folder string) (path string, head goldenHead, rows []goldenRow) {
	t.Helper()
	data := unzip(t, folder, "rows.jsonl.gz")
	first, rest, _ := bytes.Cut(data, []byte("\n"))
	if err := json.Unmarshal(first, &head); err != nil {
		t.Fatal(err)
	}
	return goldenBinlog(t, folder), head, jsonLines[goldenRow](t, rest)
}

func goldenBinlog(t testing.TB, folder string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mysql-bin.000001")
	if err := os.WriteFile(path, unzip(t, folder, "mysql-bin.000001.gz"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func including(list string) func(database, table string) bool {
	return func(database, table string) bool {
		if list == "" {
			return database != "mysql" && database != "sys"
		}
		for name := range strings.SplitSeq(list, ",") {
			if name == database+"."+table {
				return true
			}
		}
		return false
	}
}

func mustOffset(t testing.TB, text string) offset.Offset {
	t.Helper()
	o, err := offset.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// readRows reads a source to its end, and checks on the way what holds for every event.
func readRows(t testing.TB, r *Reader) []goldenRow {
	t.Helper()
	var rows []goldenRow
	last := r.Start()
	forward := func(what string, o offset.Offset) {
		t.Helper()
		if before, ok := o.Before(last); ok && before {
			t.Errorf("I2: %s %s after %s", what, o, last)
		}
		if !o.GTIDs.ContainsSet(last.GTIDs) {
			t.Errorf("I4: %s: GTIDs %s after %s", what, o.GTIDs, last.GTIDs)
		}
		last = o
	}
	for {
		ev, err := r.Read(context.Background())
		if errors.Is(err, io.EOF) {
			return rows
		}
		if err != nil {
			t.Fatal(err)
		}
		switch ev := ev.(type) {
		case *Rows:
			for ev.Next() {
				forward("before", ev.OffsetBefore())
				forward("after", ev.OffsetAfter())
				i := ev.Info
				rows = append(rows, goldenRow{
					Op: map[Op]string{Create: "c", Update: "u", Delete: "d"}[ev.Op], Table: ev.Table.Database + "." + ev.Table.Name,
					TsMicros: i.TsMicros, ServerID: i.ServerID, GTID: i.GTID.String(), File: i.File, Pos: i.Pos, Row: ev.Row, Thread: i.Thread,
					Offset: ev.OffsetAfter().String(),
				})
			}
			if err := ev.Err(); err != nil {
				t.Fatal(err)
			}
		case *Boundary:
			forward("boundary", ev.Offset)
			if ev.Offset.Event != 0 || ev.Offset.Row != 0 {
				t.Errorf("boundary inside a transaction: %s", ev.Offset)
			}
		case *Truncate:
			forward("truncate", ev.Offset)
		case *SchemaChange:
			forward("before a statement", ev.Before)
			forward("statement", ev.Offset)
		default:
			t.Fatalf("event %T", ev)
		}
	}
}

func openGolden(t testing.TB, path string, head goldenHead, start Start) *Reader {
	t.Helper()
	r, err := OpenFiles(context.Background(), Config{Captured: including(head.Include)}, []string{path}, start)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

var goldenFolders = []struct {
	name    string
	partial bool // the rows end before the binlog does: the connector was killed
}{
	{"basics", false},
	{"basics-file-mode", false},
	{"types-default", false},
	{"offsets-distributed", false},
	{"offsets-file-mode", false},
	{"offsets-compressed", false},
	{"offsets-rows-query", false},
	{"restart-mid-transaction-small", true},
	{"restart-mid-transaction-file-mode", true},
}

// TestI5_GoldenRows reads the goldens' binlogs from the snapshot's position and compares every row's source block and
// offset with Debezium's. Then it starts from each of these offsets: exactly the rows behind it must come.
func TestI5_GoldenRows(t *testing.T) {
	for _, folder := range goldenFolders {
		t.Run(folder.name, func(t *testing.T) {
			path, head, want := golden(t, folder.name)
			start := mustOffset(t, head.Start)
			got := readRows(t, openGolden(t, path, head, Start{Offset: &start}))
			all := got
			if folder.partial {
				got = got[:min(len(got), len(want))]
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("rows (-Debezium +ours):\n%s", diff)
			}
			step := 1 + len(all)/60 // each start reads the statements before it
			for i, row := range all {
				if i%step != 0 {
					continue
				}
				o := mustOffset(t, row.Offset)
				after := readRows(t, openGolden(t, path, head, Start{Offset: &o}))
				if diff := cmp.Diff(all[i+1:], after); diff != "" && len(all[i+1:])+len(after) > 0 {
					t.Fatalf("from %s (-want +got):\n%s", row.Offset, diff)
				}
			}
		})
	}
}

// TestI5_GoldenReplays starts from every offset that Debezium stored and compares the rows that follow with those that it
// sent after that offset in its first pass: what it sends itself after a restart lacks rows in the XA folders, and it stops
// in replay-ddl-file-mode. The rows of the XA transaction that is rolled back are left out. Of a key change all records
// but the last have its offset, too; they count as covered with it.
func TestI5_GoldenReplays(t *testing.T) {
	for _, folder := range []string{
		"replay-from-offset", "replay-from-offset-file-mode", "replay-compressed-file-mode", "replay-ddl", "replay-ddl-file-mode",
		"replay-transaction-metadata", "replay-xa", "replay-xa-file-mode",
	} {
		t.Run(folder, func(t *testing.T) {
			data := unzip(t, folder, "replays.jsonl.gz")
			first, rest, _ := bytes.Cut(data, []byte("\n"))
			var head goldenHead
			if err := json.Unmarshal(first, &head); err != nil {
				t.Fatal(err)
			}
			path := goldenBinlog(t, folder)
			for _, replay := range jsonLines[struct {
				Offset  string  `json:"offset"`
				Emitted [][]any `json:"emitted"` // table, op, pos, row
			}](t, rest) {
				var want, got []string
				for _, e := range replay.Emitted {
					want = append(want, fmt.Sprint(e...))
				}
				o := mustOffset(t, replay.Offset)
				for _, row := range readRows(t, openGolden(t, path, head, Start{Offset: &o})) {
					_, table, _ := strings.Cut(row.Table, ".")
					got = append(got, fmt.Sprint(table, row.Op, float64(row.Pos), float64(row.Row)))
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("from %s (-Debezium +ours):\n%s", replay.Offset, diff)
				}
			}
		})
	}
}
