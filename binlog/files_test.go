package binlog

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

var update = flag.Bool("update", false, "write testdata/odd/events.txt anew")

func gunzip(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// oddFiles are the eight binlogs of one server: without GTIDs, compressed, MyISAM, savepoints, rollbacks, statements as
// text, XA, temporary tables, ROWS_QUERY, TRUNCATE, checksums off and on, GTIDs switched on step by step, a tagged GTID.
func oddFiles(t testing.TB) []string {
	t.Helper()
	dir := t.TempDir()
	var files []string
	for i := range 8 {
		name := fmt.Sprintf("mysql-bin.%06d", i+1)
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, gunzip(t, filepath.Join("testdata", "odd", name+".gz")), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, path)
	}
	return files
}

func oddConfig() Config {
	return Config{IncludeQuery: true, Captured: func(database, table string) bool { return database == "inventory" && table != "other" }}
}

type readEvent struct {
	text   string
	row    bool
	offset offset.Offset // the one after it
}

// readAll reads a source to its end or its first error.
func readAll(r *Reader) (events []readEvent, err error) {
	for {
		ev, err := r.Read(context.Background())
		if err != nil {
			return events, err
		}
		switch ev := ev.(type) {
		case *Rows:
			for ev.Next() {
				image := ev.After
				if ev.Op == Delete {
					image = ev.Before
				}
				text := fmt.Sprintf("%s %s %q thread %d row %d", []string{"", "create", "update", "delete"}[ev.Op], ev.Table.Name, image[len(image)-1], ev.Info.Thread, ev.Row)
				if !ev.Info.GTID.IsZero() {
					text += " gtid " + ev.Info.GTID.String()
				}
				if ev.Info.Query != "" {
					text += fmt.Sprintf(" query %q", ev.Info.Query)
				}
				events = append(events, readEvent{text, true, ev.OffsetAfter()})
			}
			if err := ev.Err(); err != nil {
				return events, err
			}
		case *Boundary:
			text := "boundary"
			if ev.Commit {
				text = "commit"
			}
			if ev.Idle {
				text = "idle"
			}
			events = append(events, readEvent{text, false, ev.Offset})
		case *Truncate:
			events = append(events, readEvent{"truncate " + ev.Table, false, ev.Offset})
		case *SchemaChange:
			events = append(events, readEvent{"ddl " + strings.Join(strings.Fields(ev.Changes[0].DDL), " "), false, ev.Offset})
		}
	}
}

func TestOddFiles(t *testing.T) {
	files := oddFiles(t)
	r, err := OpenFiles(context.Background(), oddConfig(), files, Start{Oldest: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all, err := readAll(r)
	var got strings.Builder
	for _, ev := range all {
		fmt.Fprintf(&got, "%-60s %s\n", ev.text, ev.offset)
	}
	fmt.Fprintln(&got, err)
	path := filepath.Join("testdata", "odd", "events.txt")
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Fatal(diff)
	}
	// Every offset leads to exactly what follows it.
	for i, from := range all {
		r, err := OpenFiles(context.Background(), oddConfig(), files, Start{Offset: &from.offset})
		if err != nil {
			t.Fatalf("from %s: %v", from.offset, err)
		}
		after, err := readAll(r)
		r.Close()
		if err == nil || errors.Is(err, io.EOF) {
			t.Fatalf("from %s: %v", from.offset, err)
		}
		if diff := cmp.Diff(rowTexts(all[i+1:]), rowTexts(after)); diff != "" {
			t.Fatalf("from %s:\n%s", from.offset, diff)
		}
		// Positions between transactions can be given as such.
		if !from.row && from.offset.Event == 0 {
			r, err := OpenFiles(context.Background(), oddConfig(), files, Start{File: from.offset.File, Pos: from.offset.Pos})
			if err != nil {
				t.Fatalf("from %s: %v", from.offset, err)
			}
			after, _ := readAll(r)
			r.Close()
			if diff := cmp.Diff(rowTexts(all[i+1:]), rowTexts(after)); diff != "" {
				t.Fatalf("from %s:\n%s", from.offset, diff)
			}
		}
	}
}

func rowTexts(events []readEvent) []string {
	texts := []string{}
	for _, ev := range events {
		if ev.row {
			texts = append(texts, ev.text+" "+ev.offset.String())
		}
	}
	return texts
}

func TestStartOfFiles(t *testing.T) {
	files := oddFiles(t)
	set := func(text string) offset.GTIDSet {
		s, err := offset.ParseGTIDSet(text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	const uuid = "8f790138-ec3f-11f1-8658-0242ac110003"
	for _, c := range []struct {
		name  string
		files []string
		start Start
		want  string // Start(), or part of the error
		err   bool
	}{
		{"oldest", files, Start{Oldest: true}, `{"file":"mysql-bin.000001","pos":158}`, false},
		{"nothing said", files, Start{}, `{"file":"mysql-bin.000001","pos":158}`, false},
		{"now", files[:7], Start{Now: true}, `{"file":"mysql-bin.000008","pos":4,"gtids":"` + uuid + `:1:tagged:1"}`, false},
		{"beginning of a file", files, Start{File: "mysql-bin.000008", Pos: 4}, `{"file":"mysql-bin.000008","pos":246,"gtids":"` + uuid + `:1:tagged:1"}`, false},
		{"a BEGIN", files, Start{File: "mysql-bin.000008", Pos: 325}, `{"file":"mysql-bin.000008","pos":325,"gtids":"` + uuid + `:1:tagged:1"}`, false},
		{"behind a transaction", files, Start{File: "mysql-bin.000008", Pos: 559}, `{"file":"mysql-bin.000008","pos":559,"gtids":"` + uuid + `:1-2:tagged:1"}`, false},
		{"by GTIDs", files[7:], Start{GTIDs: set(uuid + ":1-2:tagged:1")}, `{"file":"mysql-bin.000008","pos":246,"gtids":"` + uuid + `:1-2:tagged:1"}`, false},
		{"GTIDs before the files", files[7:], Start{GTIDs: set(uuid + ":1-2")}, "begins behind transactions that the start position does not have: " + uuid + ":tagged:1", true},
		{"inside a transaction", files, Start{File: "mysql-bin.000008", Pos: 405}, "inside the transaction that begins at mysql-bin.000008:325", true},
		{"no event", files, Start{File: "mysql-bin.000008", Pos: 326}, "no event begins there; one begins at 325 and ends at", true},
		{"inside the first event", files, Start{File: "mysql-bin.000008", Pos: 5}, "mysql-bin.000008:5: no event begins there; one begins at 4 and ends at 127", true},
		{"inside the first event, stored", files, Start{Offset: &offset.Offset{File: "mysql-bin.000008", Pos: 5}}, "mysql-bin.000008:5: no event begins there; one begins at 4 and ends at 127", true},
		{"the second event", files, Start{File: "mysql-bin.000008", Pos: 127}, `{"file":"mysql-bin.000008","pos":246,"gtids":"` + uuid + `:1:tagged:1"}`, false},
		{"inside the second event", files, Start{File: "mysql-bin.000008", Pos: 128}, "mysql-bin.000008:128: no event begins there; one begins at 127 and ends at 246", true},
		{"end of a file", files, Start{File: "mysql-bin.000007", Pos: sizeOf(t, files[6])}, `{"file":"mysql-bin.000008","pos":246,"gtids":"` + uuid + `:1:tagged:1"}`, false},
		{"beyond the end of a file", files, Start{File: "mysql-bin.000007", Pos: sizeOf(t, files[6]) + 1}, "there is no such position in the binlog: the file ends at", true},
		{"end of the last file", files[:7], Start{File: "mysql-bin.000007", Pos: sizeOf(t, files[6])}, `{"file":"mysql-bin.000008","pos":4,"gtids":"` + uuid + `:1:tagged:1"}`, false},
		{"behind the last file", files[:7], Start{File: "mysql-bin.000008", Pos: 4}, `{"file":"mysql-bin.000008","pos":4,"gtids":"` + uuid + `:1:tagged:1"}`, false},
		{"behind the last file, stored", files[:2], Start{Offset: &offset.Offset{File: "mysql-bin.000003", Pos: 4}}, `{"file":"mysql-bin.000003","pos":4}`, false},
		{"later behind the last file", files[:7], Start{File: "mysql-bin.000008", Pos: 246}, "there is no such position in the binlog, which ends at mysql-bin.000008:4", true},
		{"no such file", files, Start{File: "mysql-bin.000010", Pos: 4}, "there is no such position in the binlog", true},
		{"a file missing", []string{files[0], files[2]}, Start{File: "mysql-bin.000003", Pos: 4}, "is followed by mysql-bin.000002, but the next file given is mysql-bin.000003", true},
		{"files in the wrong order", []string{files[1], files[0]}, Start{}, "binlog mysql-bin.000002 is followed by mysql-bin.000003, but the next file given is mysql-bin.000001", true},
		{"a file twice", []string{files[0], files[0]}, Start{}, "is followed by mysql-bin.000002, but the next file given is mysql-bin.000001: give all files in their order, each once", true},
		{"another file last", []string{files[0], "files_test.go"}, Start{}, "files_test.go is not a binlog file", true},
		{"a missing file last", []string{files[0], "none"}, Start{}, "open none: no such file or directory", true},
		{"a folder", []string{t.TempDir()}, Start{}, "is a directory", true},
		{"gzip", []string{filepath.Join("testdata", "odd", "mysql-bin.000001.gz")}, Start{}, "mysql-bin.000001.gz is compressed by gzip: unpack it first (gunzip -k ", true},
		{"nothing in it", []string{emptyFile(t)}, Start{}, "is empty, not a binlog file", true},
		{"no binlog", []string{"files_test.go"}, Start{}, "is not a binlog file", true},
		{"no files", nil, Start{}, "no binlog files", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := OpenFiles(context.Background(), oddConfig(), c.files, c.start)
			if c.err {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("error %v, want %s", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if got := r.Start().String(); got != c.want {
				t.Fatalf("start %s, want %s", got, c.want)
			}
		})
	}
}

func sizeOf(t testing.TB, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func emptyFile(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mysql-bin.000001")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Behind the last file there is nothing, and that is no error.
func TestNothingBehindTheLastFile(t *testing.T) {
	files := oddFiles(t)[:2]
	r, err := OpenFiles(context.Background(), oddConfig(), files, Start{File: "mysql-bin.000003", Pos: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if events, err := readAll(r); err != io.EOF || len(events) != 0 {
		t.Fatalf("%d events, %v", len(events), err)
	}
}

func TestNextFile(t *testing.T) {
	for name, want := range map[string]string{
		"mysql-bin.000001": "mysql-bin.000002", "a.b.000009": "a.b.000010", "mysql-bin.999999": "mysql-bin.1000000",
		"mysql-bin": "", "63": "", "mysql-bin.": "", "mysql-bin.00001x": "", "mysql-bin.-1": "", "": "", ".000001": ".000002",
	} {
		if got := nextFile(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// TestI6_Refused reads binlogs with what cannot be decoded: each stops with a message that says where, which table, why
// and what to do.
func TestI6_Refused(t *testing.T) {
	for name, want := range map[string][]string{
		"row-image-minimal-update": {"mysql-bin.000001:", "table inventory.t", "column a", "binlog_row_image=FULL"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "mysql-bin.000001")
			if err := os.WriteFile(path, gunzip(t, filepath.Join("testdata", "refused", name+".gz")), 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := OpenFiles(context.Background(), Config{Captured: including("")}, []string{path}, Start{})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			_, err = readAll(r)
			for _, part := range want {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("error %v, want %q in it", err, part)
				}
			}
			if _, again := r.Read(context.Background()); again == nil {
				t.Error("a read after the error succeeds")
			}
		})
	}
}

func TestDamagedFile(t *testing.T) {
	good, err := os.ReadFile(oddFiles(t)[1])
	if err != nil {
		t.Fatal(err)
	}
	read := func(data []byte) error {
		path := filepath.Join(t.TempDir(), "mysql-bin.000002")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := OpenFiles(context.Background(), oddConfig(), []string{path}, Start{})
		if err != nil {
			return err
		}
		defer r.Close()
		_, err = readAll(r)
		return err
	}
	flipped := bytes.Clone(good)
	flipped[600] ^= 1
	if err := read(flipped); err == nil || !strings.Contains(err.Error(), "mysql-bin.000002:550: the checksum (CRC32) does not match") {
		t.Errorf("a flipped bit: %v", err)
	}
	if err := read(good[:700]); err == nil || !strings.Contains(err.Error(), "mysql-bin.000002:550: the file ends inside an event") {
		t.Errorf("a cut file: %v", err)
	}
	short := bytes.Clone(good)
	short[550+9] = 5
	short[550+10] = 0
	if err := read(short); err == nil || !strings.Contains(err.Error(), "an event says that it has 5 bytes") {
		t.Errorf("a wrong length: %v", err)
	}
	if err := read(good[:550]); !errors.Is(err, io.EOF) {
		t.Errorf("cut between transactions: %v", err)
	}
}

// TestI10_HistoryFits attaches a schema history to the tables of the golden with all column types: every
// definition fits, so there is nothing to warn of.
func TestI10_HistoryFits(t *testing.T) {
	path, head, want := golden(t, "types-default")
	history, err := schema.ReadHistory(bytes.NewReader(unzip(t, "types-default", "schema-history.jsonl.gz")))
	if err != nil {
		t.Fatal(err)
	}
	core, logs := observer.New(zap.WarnLevel)
	start := mustOffset(t, head.Start)
	cfg := Config{Captured: including(head.Include), History: history, Log: zap.New(core)}
	r, err := OpenFiles(context.Background(), cfg, []string{path}, Start{Offset: &start})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got := readRows(t, r); len(got) != len(want) {
		t.Errorf("%d rows, want %d", len(got), len(want))
	}
	for _, entry := range logs.All() {
		t.Errorf("%s %v", entry.Message, entry.ContextMap())
	}
	if v := r.asm.tables.newest["\x09inventory\x00\x05t_int\x00"]; v == nil || v.table.Columns[0].Def == nil {
		t.Error("t_int has no definition")
	}
}

func TestHistoryFollowsTheStream(t *testing.T) {
	def := func(comment string) *schema.Definition {
		return &schema.Definition{Database: "d", Name: "t", Columns: []schema.ColumnDef{{Name: "id", Comment: comment}}}
	}
	h := newHistory([]schema.HistoryEntry{
		{File: "mysql-bin.000009", Pos: 500, Snapshot: true, Changes: []schema.Change{{Kind: schema.CreateTable, Database: "d", Table: "t", Definition: def("snapshot")}}},
		{File: "mysql-bin.999999", Pos: 200, Changes: []schema.Change{{Kind: schema.AlterTable, Database: "d", Table: "t", Definition: def("second")}}},
		{File: "mysql-bin.1000000", Pos: 100, Changes: []schema.Change{{Kind: schema.AlterTable, Database: "d", Table: "u", PreviousDatabase: "d", PreviousTable: "t", Definition: def("renamed")}}},
		{File: "mysql-bin.1000000", Pos: 300, Changes: []schema.Change{{Kind: schema.DropTable, Database: "d", Table: "u"}}},
	})
	catalog := schema.NewCatalog(schema.CatalogOptions{})
	comment := func(table string) string {
		if d := catalog.Definition("d", table); d != nil {
			return d.Columns[0].Comment
		}
		return "-"
	}
	for _, c := range []struct {
		file string
		pos  int64
		t, u string
	}{
		{"mysql-bin.999999", 100, "snapshot", "-"},
		{"mysql-bin.999999", 199, "snapshot", "-"},
		{"mysql-bin.999999", 200, "second", "-"},
		{"mysql-bin.1000000", 4, "second", "-"},
		{"mysql-bin.1000000", 150, "-", "renamed"},
		{"mysql-bin.1000000", 300, "-", "-"},
	} {
		h.advance(offset.Offset{File: c.file, Pos: c.pos}, &definitions{catalog: catalog})
		if got, want := comment("t")+" "+comment("u"), c.t+" "+c.u; got != want {
			t.Errorf("at %s:%d: %s, want %s", c.file, c.pos, got, want)
		}
	}
}
