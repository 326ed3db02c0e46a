package binlog

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-cdc/tidemark/schema"
)

// unzipFile reads a compressed file.
func unzipFile(t testing.TB, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
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

// recorded returns the path of a binlog under testdata/images, as a MySQL 9.7 wrote it.
func recorded(t testing.TB, name string) string {
	t.Helper()
	data := unzipFile(t, filepath.Join("testdata", "images", name+".gz"))
	path := filepath.Join(t.TempDir(), "mysql-bin.000001")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// cellText is a cell's value in words.
func cellText(t testing.TB, table *schema.Table, column int, cell []byte) string {
	t.Helper()
	switch {
	case IsUnavailable(cell):
		return "unavailable"
	case cell == nil:
		return "NULL"
	}
	_, decode, err := schema.Modes{}.Column(table, column)
	if err != nil {
		t.Fatal(err)
	}
	var v schema.Value
	var scratch schema.Scratch
	if err := decode(cell, &scratch, &v); err != nil {
		t.Fatalf("column %s: %x: %v", table.Columns[column].Name, cell, err)
	}
	switch v.Kind {
	case schema.String:
		return string(v.Bytes)
	case schema.Bytes:
		return fmt.Sprintf("%x", v.Bytes)
	case schema.Float, schema.Double:
		return fmt.Sprint(v.Float)
	}
	return fmt.Sprint(v.Int)
}

// imageText is a row image, one value after the other.
func imageText(t testing.TB, table *schema.Table, cells [][]byte) string {
	t.Helper()
	if cells == nil {
		return "-"
	}
	texts := make([]string, len(cells))
	for i := range cells {
		texts[i] = cellText(t, table, i, cells[i])
	}
	return strings.Join(texts, "|")
}

// eachRow reads a binlog file to its end, or to an error, which it returns.
func eachRow(t testing.TB, cfg Config, path string, do func(r *Rows)) error {
	t.Helper()
	r, err := OpenFiles(context.Background(), cfg, []string{path}, Start{Oldest: true})
	if err != nil {
		return err
	}
	return rowsOf(r, do)
}

// withoutDDL is a stream without the CREATE statements in it, so that the catalog stays as it is given.
type withoutDDL struct{ rawStream }

func (s withoutDDL) next(ctx context.Context) ([]byte, int64, error) {
	for {
		raw, start, err := s.rawStream.next(ctx)
		if err != nil || raw[4] != evQuery || !bytes.Contains(bytes.ToLower(raw), []byte("create table")) {
			return raw, start, err
		}
	}
}

// eachRowOf is eachRow with the definitions of cfg alone.
func eachRowOf(t testing.TB, cfg Config, path string, do func(r *Rows)) error {
	t.Helper()
	r, err := newReader(cfg, withoutDDL{&fileStream{files: []string{path}}})
	if err != nil {
		return err
	}
	if err := r.startFiles(context.Background(), Start{Oldest: true}); err != nil {
		return err
	}
	return rowsOf(r, do)
}

func rowsOf(r *Reader, do func(r *Rows)) error {
	defer r.Close()
	for {
		ev, err := r.Read(context.Background())
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if rows, ok := ev.(*Rows); ok {
			for rows.Next() {
				do(rows)
			}
			if err := rows.Err(); err != nil {
				return err
			}
		}
	}
}

// TestPartialJSONEqualsTheServersDocuments applies the diffs of PARTIAL_UPDATE_ROWS to the before images. The binlog has, for
// each of some 400 updates made by chance (JSON_SET, JSON_REPLACE, JSON_REMOVE; objects, arrays, [last], odd keys,
// documents that grow beyond 64 KiB and shrink again), behind it an insert of the whole document as the server then had it.
func TestPartialJSONEqualsTheServersDocuments(t *testing.T) {
	current := make(map[string]string) // by id and column
	updates, compared := 0, 0
	cfg := Config{Captured: func(database, _ string) bool { return database == "pj" }}
	err := eachRow(t, cfg, recorded(t, "partial-json"), func(r *Rows) {
		switch r.Table.Name {
		case "t": // id, j, k, n, big
			if r.Op == Update {
				updates++
				id := cellText(t, r.Table, 0, r.Before[0])
				for _, i := range []int{1, 2, 4} {
					if before := cellText(t, r.Table, i, r.Before[i]); before != current[id+r.Table.Columns[i].Name] {
						t.Fatalf("%s:%d: before image of %s:\n%s\nis not the after image before it:\n%s", r.Info.File, r.Info.Pos, r.Table.Columns[i].Name, before, current[id+r.Table.Columns[i].Name])
					}
				}
			}
			id := cellText(t, r.Table, 0, r.After[0])
			for _, i := range []int{1, 2, 4} {
				current[id+r.Table.Columns[i].Name] = cellText(t, r.Table, i, r.After[i])
			}
		case "snap": // n, id, j, k, big
			id := cellText(t, r.Table, 1, r.After[1])
			for i := 2; i < 5; i++ {
				name := r.Table.Columns[i].Name
				want := cellText(t, r.Table, i, r.After[i])
				if name == "big" && want == "8" { // it was not changed, and is not there again
					continue
				}
				compared++
				if got := current[id+name]; got != want {
					t.Fatalf("%s:%d: id %s, column %s:\n%.2000s\nthe server has\n%.2000s", r.Info.File, r.Info.Pos, id, name, got, want)
				}
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if updates < 250 || compared < 800 {
		t.Errorf("%d updates, %d documents compared", updates, compared)
	}
}

// created are the definitions of the tables of a recorded binlog, as SHOW CREATE TABLE printed them then.
func created(t testing.TB, database, name string) *schema.Catalog {
	t.Helper()
	catalog := schema.NewCatalog(schema.CatalogOptions{})
	for text := range strings.SplitSeq(string(unzipFile(t, filepath.Join("testdata", "images", name+".sql.gz"))), ";\n") {
		if text == "" {
			continue
		}
		def, err := schema.ParseCreateTable(database, text)
		if err != nil {
			t.Fatal(err)
		}
		catalog.Set(database, def.Name, def)
	}
	return catalog
}

// imageConfig reads some tables of the recorded row images.
func imageConfig(t testing.TB, tables ...string) Config {
	return Config{
		Captured: func(database, table string) bool { return database == "im" && slices.Contains(tables, table) },
		Catalog:  created(t, "im", "row-images"),
	}
}

// TestMissingColumnsOfAnInsertHaveTheirDefaults: each table has a row that was written with all columns, by itself
// all defaults, and then the same written with binlog_row_image=MINIMAL. The cells must be the same, whether the
// definition is that of SHOW CREATE TABLE or of the CREATE TABLE in the binlog.
func TestMissingColumnsOfAnInsertHaveTheirDefaults(t *testing.T) {
	t.Run("SHOW CREATE TABLE", func(t *testing.T) { compareDefaults(t, imageConfig(t, "e", "d"), eachRowOf) })
	t.Run("CREATE TABLE", func(t *testing.T) {
		cfg := imageConfig(t, "e", "d")
		cfg.Catalog = nil
		compareDefaults(t, cfg, eachRow)
	})
}

func compareDefaults(t *testing.T, cfg Config, each func(testing.TB, Config, string, func(*Rows)) error) {
	full := make(map[string][][]byte)
	compared := 0
	err := each(t, cfg, recorded(t, "row-images"), func(r *Rows) {
		name := r.Table.Name
		if full[name] == nil {
			for _, cell := range r.After {
				full[name] = append(full[name], slices.Clone(cell))
			}
			return
		}
		for i, want := range full[name] {
			switch c := &r.Table.Columns[i]; c.Name {
			case "id", "gx", "fn", "now": // these are of the row itself
				if r.After[i] == nil {
					t.Errorf("%s.%s is NULL", name, c.Name)
				}
			default:
				compared++
				if got := r.After[i]; (got == nil) != (want == nil) || !bytes.Equal(got, want) {
					t.Errorf("%s.%s: %x (%s), the server has %x (%s)", name, c.Name, got, cellText(t, r.Table, i, got), want, cellText(t, r.Table, i, want))
				}
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if compared < 110 {
		t.Errorf("%d defaults compared", compared)
	}
}

// TestMissingColumnsOfUpdatesAndDeletes: what is nowhere is unavailable, what the before image has is in the after
// image, too. The row images are the server's: MINIMAL has the key before and the changed columns after, NOBLOB all but
// TEXT and BLOB columns that were not changed. A JSON document that was not changed, or only in part, is whole.
func TestMissingColumnsOfUpdatesAndDeletes(t *testing.T) {
	var got []string
	err := eachRowOf(t, imageConfig(t, "s", "z", "nk", "p", "np", "h"), recorded(t, "row-images"), func(r *Rows) {
		line := r.Table.Name + " " + imageText(t, r.Table, r.Before) + " > " + imageText(t, r.Table, r.After)
		if r.Incomplete != strings.Contains(line, "unavailable") {
			t.Errorf("Incomplete is %v: %s", r.Incomplete, line)
		}
		got = append(got, strings.ReplaceAll(line, "unavailable", "…"))
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`s - > 1|a1|b1|6331|[1]|{"k":1}|e1|6631`,
		`s - > 2|a2|b2|6332|[2]|{"k":2}|e2|6632`,
		`s - > 3|a3|b3|6333|[3]|{"k":3}|e3|6633`,
		`nk - > 1|2|3`,
		`p - > 1|{"a":1}|{"b":2}|n`,
		`p - > 2|{"a":1}|NULL|n`,
		`np - > [1]|{"a":1}|n`,
		// MINIMAL
		`h - > 2|ff00fe`, // DEFAULT 0xff00fe
		`s 1|…|…|…|…|…|…|… > 1|new|…|…|…|…|…|…`,
		`s 1|…|…|…|…|…|…|… > 1|…|NULL|…|[11]|…|…|…`,
		`s 2|…|…|…|…|…|…|… > 22|…|…|…|…|…|…|…`,
		`s 3|…|…|…|…|…|…|… > -`,
		`s - > 4|NULL|NULL|NULL|NULL|NULL|e4|NULL`,
		`z - > 5|six`,
		`nk - > |9|NULL`,
		`nk …|2|… > x|2|…`,
		`nk …|2|… > -`,
		// NOBLOB
		`s 1|new|…|…|[11]|{"k":1}|e1|6631 > 1|newer|…|…|[11]|{"k":1}|e1|6631`,
		`s 1|newer|…|…|[11]|{"k":1}|e1|6631 > 1|newer|…|6e657763|[11]|{"k":1}|e1|6666`,
		`s - > 5|NULL|NULL|NULL|NULL|NULL|NULL|NULL`,
		`s - > 6|NULL|b6|NULL|NULL|NULL|NULL|NULL`,
		`s 6|NULL|…|…|NULL|NULL|NULL|NULL > 6|NULL|six|…|NULL|NULL|NULL|NULL`,
		`s 6|NULL|…|…|NULL|NULL|NULL|NULL > -`,
		// NOBLOB with PARTIAL_JSON
		`p 1|{"a":1}|{"b":2}|n > 1|{"a":1}|{"b":2}|m`,
		`s 1|newer|…|…|[11]|{"k":1}|e1|6666 > 1|newer|…|…|[11]|{"k":1}|eee|6666`,
		// FULL with PARTIAL_JSON
		`p 1|{"a":1}|{"b":2}|m > 1|{"a":1}|{"b":3}|m`,
		`p 1|{"a":1}|{"b":3}|m > 1|{"a":1,"b":3}|{"b":3}|x`,
		`p 2|{"a":1}|NULL|n > 2|{"a":1,"b":3}|NULL|x`,
		// MINIMAL with PARTIAL_JSON of a table without key, whose before images are whole: the bits count every JSON column
		`np [1]|{"a":1}|n > [1]|{"a":1,"x":[1]}|nn`,
		`np [1]|{"a":1,"x":[1]}|nn > [1,2]|{"a":1,"x":[1]}|nn`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestRowImagesThatCannotBeCompleted: the error names position, thread, table, column and SQL.
func TestRowImagesThatCannotBeCompleted(t *testing.T) {
	for table, want := range map[string][]string{
		"i": {"im.i", "column n is not in the row image", "thread ", "KILL ", "SET PERSIST binlog_row_image=FULL", "mysql-bin.000001:"},
		"q": {"im.q", "row 0", "column j", "PARTIAL_JSON", "SET PERSIST binlog_row_image=FULL"},
	} {
		err := eachRowOf(t, imageConfig(t, table), recorded(t, "row-images"), func(*Rows) {})
		for _, word := range want {
			if err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %v: does not say %q", table, err, word)
			}
		}
	}
	// A schema history has not all of a hexadecimal default.
	cfg := imageConfig(t, "h")
	lossy := *cfg.Catalog.Definition("im", "h")
	lossy.Columns = slices.Clone(lossy.Columns)
	lossy.Columns[1].Server = nil
	cfg.Catalog.Set("im", "h", &lossy)
	if err := eachRowOf(t, cfg, recorded(t, "row-images"), func(*Rows) {}); err == nil || !strings.Contains(err.Error(), "im.h: column v is not in the row image") ||
		!strings.Contains(err.Error(), "0xFF00F…") || !strings.Contains(err.Error(), "SET PERSIST binlog_row_image=FULL") {
		t.Errorf("a default of a history: %v", err)
	}
	cfg = imageConfig(t, "d")
	cfg.Catalog = nil
	if err := eachRowOf(t, cfg, recorded(t, "row-images"), func(*Rows) {}); err == nil || !strings.Contains(err.Error(), "column i is not in the row image, and its default is not known") {
		t.Errorf("without a definition: %v", err)
	}
	// The key's value cannot be unavailable, even where it is a string.
	cfg = imageConfig(t, "nk")
	def := *cfg.Catalog.Definition("im", "nk")
	def.Key, def.KeyKind = []string{"a"}, schema.KeyChosen
	cfg.Catalog.Set("im", "nk", &def)
	if err := eachRowOf(t, cfg, recorded(t, "row-images"), func(*Rows) {}); err == nil || !strings.Contains(err.Error(), "column a, which is part of the record's key") {
		t.Errorf("key not in the image: %v", err)
	}
}

// TestDefaultsAsWritten: defaults that Debezium's text of them has not whole, as statements and SHOW CREATE TABLE write them.
func TestDefaultsAsWritten(t *testing.T) {
	for _, c := range []struct {
		column schema.Column
		text   string
		want   string // of the cell; NULL, or ! for an error
	}{
		{schema.Column{Type: typeLong}, "0x1f", "1f000000"},
		{schema.Column{Type: typeTiny, Unsigned: true}, "x'ff'", "ff"},
		{schema.Column{Type: typeLongLong}, "0b101", "0500000000000000"},
		{schema.Column{Type: typeNewDecimal, Meta: 10<<8 | 2}, "0x10", "8000001000"},
		{schema.Column{Type: typeDouble}, "0x2", "0000000000000040"},
		{schema.Column{Type: typeBit, Meta: 1<<8 | 1}, "b'100000001'", "0101"},
		{schema.Column{Type: typeVarchar, Meta: 5, Collation: binaryCollation}, "0xFF00FE", "ff00fe"},
		{schema.Column{Type: typeString, Meta: 0xfe05, Collation: binaryCollation}, "0x00FF000000", "00ff"},
		{schema.Column{Type: typeString, Meta: 0xfe05, Collation: 8}, "x'41e92020'", "41e9"},
		{schema.Column{Type: typeVarchar, Meta: 5, Collation: 8}, "b'0100000101000010'", "4142"},
		{schema.Column{Type: typeVarchar, Meta: 5, Collation: 8, Nullable: true}, "NULL", "NULL"},
		{schema.Column{Type: typeVarchar, Meta: 5, Collation: 8}, "NULL", "!"},
		{schema.Column{Type: typeBit, Meta: 3}, "b'111111111'", "!"},
		{schema.Column{Type: typeLong}, "0x", "!"},
		{schema.Column{Type: typeLong}, "0xzz", "!"},
		{schema.Column{Type: typeLong}, "", "!"},
		{schema.Column{Type: typeDate}, "0x1f", "!"},
	} {
		layout, err := cellOf(&c.column)
		if err != nil {
			t.Fatal(err)
		}
		cell, err := rawCell(&c.column, layout, c.text)
		got := fmt.Sprintf("%x", cell)
		switch {
		case err != nil:
			got = "!"
		case cell == nil:
			got = "NULL"
		}
		if got != c.want {
			t.Errorf("type %d DEFAULT %s: %s, %v, want %s", c.column.Type, c.text, got, err, c.want)
		}
	}
}
