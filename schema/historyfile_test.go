package schema

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every record of Debezium's histories comes out again as it was, byte for byte.
func TestHistoryIsWrittenAsItWasRead(t *testing.T) {
	records := 0
	for _, capture := range readCaptures(t) {
		for _, text := range capture.History {
			entries, err := ReadHistory(strings.NewReader(text))
			if err != nil || len(entries) != 1 {
				t.Fatalf("%s: %d entries, %v", capture.Name, len(entries), err)
			}
			record := entries[0].Record()
			if diff := cmp.Diff(text, string(AppendHistory(nil, &record))); diff != "" {
				t.Errorf("%s (-want +got)\n%s", capture.Name, diff)
			}
			line := AppendHistoryLine(nil, &record)
			if strings.Count(string(line), "\n") != 1 {
				t.Errorf("%q is not one line", line)
			}
			again, err := ReadHistory(strings.NewReader(string(line)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(entries, again); diff != "" {
				t.Errorf("%s, as a line (-want +got)\n%s", capture.Name, diff)
			}
			records++
		}
	}
	if records < 200 {
		t.Errorf("%d records were compared", records)
	}
}

func TestAppendHistoryLine(t *testing.T) {
	r := HistoryRecord{
		Server: "s", Position: []Member{{"file", `"bin.000001"`}, {"pos", "4"}}, Time: 7, Database: "d", DDL: "DROP TABLE `t`\n\x01é\"\\",
		Changes: []Change{{Kind: DropTable, Database: "d", Table: "t"}},
	}
	const want = `{"source":{"server":"s"},"position":{"file":"bin.000001","pos":4},"ts_ms":7,"databaseName":"d",` +
		`"ddl":"DROP TABLE ` + "`t`" + `\n\u0001é\"\\","tableChanges":[{"type":"DROP","id":"\"d\".\"t\""}]}` + "\n"
	if got := string(AppendHistoryLine(nil, &r)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestI11_HistoryFileAfterACrash(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "new", "history.dat")
	record := func(ddl string) HistoryRecord {
		return HistoryRecord{Server: "s", Position: []Member{{"pos", "4"}}, DDL: ddl}
	}
	h, err := OpenHistoryFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Append([]HistoryRecord{record("one"), record("two")}); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if err := h.Append([]HistoryRecord{record("three")}); err == nil {
		t.Error("a closed history takes records")
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first := strings.Index(string(whole), "\n") + 1
	for size := range len(whole) + 1 {
		if err := os.WriteFile(path, whole[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		h, err := OpenHistoryFile(path)
		if err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		if err := h.Append([]HistoryRecord{record("new")}); err != nil {
			t.Fatal(err)
		}
		entries, err := h.Read()
		if err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		var got []string
		for _, e := range entries {
			got = append(got, e.DDL)
		}
		want := []string{"one", "two", "new"}
		switch {
		case size < first-1:
			want = want[2:]
		case size < len(whole)-1: // a whole record without its line break counts
			want = []string{"one", "new"}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%d bytes (-want +got)\n%s", size, diff)
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
