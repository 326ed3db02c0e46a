package schema

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var _ Store = (*FileStore)(nil)

// storedSample is a table with everything that a definition can have.
func storedSample(t *testing.T, database, table string) StoredTable {
	t.Helper()
	c := NewCatalog(CatalogOptions{})
	quoted := "`" + strings.ReplaceAll(table, "`", "``") + "`"
	for _, s := range []Statement{
		{SQL: "create table " + quoted + " (id serial, e enum(\"it's\", 'b,\\\\') byte comment '', v varchar(9) collate latin1_bin default 'x\n', " +
			"d decimal(5,2) null, b binary(3) not null default (1), unique (v)) comment = 'c\"'"},
		{SQL: "alter table " + quoted + " change e n int, add m set('é', '😀') after id"},
	} {
		s.Database = database
		if _, _, err := c.Apply(s); err != nil {
			t.Fatal(err)
		}
	}
	shown, err := ParseCreateTable(database, "CREATE TABLE "+quoted+" (\n  `a` int NOT NULL,\n  UNIQUE KEY `a` (`a`)\n) ENGINE=InnoDB DEFAULT CHARSET=latin1")
	if err != nil {
		t.Fatal(err)
	}
	return StoredTable{Database: database, Table: table, Versions: []StoredVersion{
		{Definition: shown},
		{File: "bin.000002", Pos: 5 << 32, GTIDs: "8469a685-ec27-11f1-a4cd-0242ac110007:1-20", Definition: c.Definition(database, table)},
		{File: "bin.000003", Pos: 4},
	}}
}

func TestStoredTableComesBack(t *testing.T) {
	for _, want := range []StoredTable{
		storedSample(t, "d", "t"), storedSample(t, "", "ta`\"ble\n"),
		{Database: "d"},
		{},
		{Database: "d", Versions: []StoredVersion{{Charset: "latin1", ServerCharset: "utf8mb4"}}},
	} {
		text := want.Append([]byte("x"))
		if slices.Contains(text, '\n') {
			t.Errorf("%s has a line break", text)
		}
		got, err := ParseStoredTable(text[1:])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", text, diff)
		}
	}
	for _, text := range []string{
		"", "5", `{"versions":[{"table":{"keyKind":"other"}}]}`, `{"versions":[{"table":{"keyKind":"chosen","columns":[{"name":"a"}]}}]}`,
	} {
		if got, err := ParseStoredTable([]byte(text)); err == nil {
			t.Errorf("%s: %+v, want an error", text, got)
		}
	}
}

func FuzzParseStoredTable(f *testing.F) {
	f.Add([]byte(`{"database":"d","table":"t","versions":[{"file":"b","pos":1,"table":{"keyKind":"chosen","columns":[{"name":"a","type":"INT"}]}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := ParseStoredTable(data)
		if err != nil {
			return
		}
		again, err := ParseStoredTable(table.Append(nil))
		if err != nil {
			t.Fatal(err)
		}
		if string(table.Append(nil)) != string(again.Append(nil)) {
			t.Errorf("%s becomes %s", table.Append(nil), again.Append(nil))
		}
	})
}

func openStore(t *testing.T, path string) *FileStore {
	t.Helper()
	s, err := OpenFileStore(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func loadStore(t *testing.T, s *FileStore, connector string) []StoredTable {
	t.Helper()
	tables, err := s.Load(context.Background(), connector, "p")
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(tables, func(a, b StoredTable) int { return strings.Compare(a.Database+"."+a.Table, b.Database+"."+b.Table) })
	return tables
}

func saveStore(t *testing.T, s *FileStore, connector string, tables ...StoredTable) {
	t.Helper()
	if err := s.Save(context.Background(), connector, "p", tables); err != nil {
		t.Fatal(err)
	}
}

func TestI11_FileStoreKeepsWhatWasSaved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "schema")
	a, b, database := storedSample(t, "d", "a"), storedSample(t, "d", "b"), StoredTable{Database: "d", Versions: []StoredVersion{{Charset: "latin1"}}}
	s := openStore(t, path)
	if got := loadStore(t, s, "one"); len(got) != 0 {
		t.Errorf("a new store has %v", got)
	}
	saveStore(t, s, "one", a, database)
	saveStore(t, s, "two", b)
	saveStore(t, s, "one", b)
	b2 := StoredTable{Database: "d", Table: "b", Versions: b.Versions[:1]}
	saveStore(t, s, "one", b2)
	saveStore(t, s, "two", StoredTable{Database: "d", Table: "b"}) // forgotten
	check := func(s *FileStore) {
		t.Helper()
		if diff := cmp.Diff([]StoredTable{database, a, b2}, loadStore(t, s, "one")); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if got := loadStore(t, s, "two"); len(got) != 0 {
			t.Errorf("the other connector has %v", got)
		}
	}
	check(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(context.Background(), "one", "p", []StoredTable{a}); err == nil {
		t.Error("a closed store takes tables")
	}
	check(openStore(t, path))
}

// Whatever moment the power goes: what was saved before is there, and what was being saved is there whole or not at all.
func TestI11_FileStoreAfterACrash(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "schema")
	a, b := storedSample(t, "d", "a"), storedSample(t, "d", "b")
	s := openStore(t, path)
	saveStore(t, s, "one", a)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	saveStore(t, s, "one", b)
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for size := range len(after) + 1 {
		near := func(border int) bool { return size >= border-2 && size <= border+2 }
		if size%41 != 0 && !near(0) && !near(len(storeHeader)) && !near(len(before)) && !near(len(after)) {
			continue
		}
		torn := filepath.Join(dir, fmt.Sprintf("torn%d", size))
		if err := os.WriteFile(torn, after[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := OpenFileStore(torn)
		if err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		want := []StoredTable{a, b}
		switch {
		case size < len(before):
			want = nil
		case size < len(after):
			want = want[:1]
		}
		if diff := cmp.Diff(want, loadStore(t, s, "one")); diff != "" {
			t.Fatalf("%d bytes (-want +got)\n%s", size, diff)
		}
		saveStore(t, s, "one", b)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		again, err := OpenFileStore(torn)
		if err != nil {
			t.Fatalf("%d bytes, and one table more: %v", size, err)
		}
		if got := loadStore(t, again, "one"); got[len(got)-1].Table != "b" {
			t.Fatalf("%d bytes: %v", size, got)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(torn); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFileStoreRefusesWhatIsNotItsOwn(t *testing.T) {
	for _, content := range []string{
		"hello", "{}\n", storeHeader + "\nhello\n", storeHeader + "\n{\"table\":5}\n" + storeHeader, `{"tidemark":"schema store","version":2}` + "\n",
	} {
		path := filepath.Join(t.TempDir(), "schema")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := OpenFileStore(path); err == nil {
			t.Errorf("%q was opened: %v", content, s.Close())
		} else if !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v does not name the file", content, err)
		}
		if left, err := os.ReadFile(path); err != nil || string(left) != content {
			t.Errorf("%q became %q, %v", content, left, err)
		}
	}
	if _, err := OpenFileStore(filepath.Join(t.TempDir(), "nope", "schema")); err == nil {
		t.Error("a store in no folder was opened")
	}
}

// A store that is written again and again does not grow without bound.
func TestFileStoreIsCompacted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "schema")
	s := openStore(t, path)
	a, b := storedSample(t, "d", "a"), storedSample(t, "d", "b")
	saveStore(t, s, "two", b)
	large := storedSample(t, "d", "large")
	comment := strings.Repeat("x", 20_000)
	large.Versions[0].Definition.Comment = comment
	for range 200 {
		saveStore(t, s, "one", a, large)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 2*storeSlack {
		t.Errorf("the file has %d bytes", info.Size())
	}
	for _, s := range []*FileStore{s, openStore(t, path)} {
		if diff := cmp.Diff([]StoredTable{a, large}, loadStore(t, s, "one")); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if diff := cmp.Diff([]StoredTable{b}, loadStore(t, s, "two")); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}
