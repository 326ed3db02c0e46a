package binlog

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidemark-cdc/tidemark/schema"
)

// historyCatalog is what a golden's schema history knows at its end.
func historyCatalog(t testing.TB, folder string) *schema.Catalog {
	t.Helper()
	entries, err := schema.ReadHistory(bytes.NewReader(unzip(t, folder, "schema-history.jsonl.gz")))
	if err != nil {
		t.Fatal(err)
	}
	catalog := schema.NewCatalog(schema.CatalogOptions{})
	for _, e := range entries {
		for _, c := range e.Changes {
			catalog.Set(c.Database, c.Table, c.Definition)
		}
	}
	return catalog
}

// TestMinimalMetadataGivesTheSameTables reads the same SQL from a server with binlog_row_metadata=FULL and from one with
// MINIMAL. Tables and rows are the same but for what only FULL knows: which of the collations of a character set it is,
// and whether a column is invisible. With the definitions of SHOW CREATE TABLE labels have ? for characters that it does
// not print.
func TestMinimalMetadataGivesTheSameTables(t *testing.T) {
	for _, c := range []struct {
		name   string
		each   func(testing.TB, Config, string, func(*Rows)) error
		labels *strings.Replacer
	}{
		{"CREATE TABLE", eachRow, strings.NewReplacer()},
		{"SHOW CREATE TABLE", eachRowOf, strings.NewReplacer("😀", "?")},
	} {
		t.Run(c.name, func(t *testing.T) {
			read := func(folder string) (tables map[string]*schema.Table, rows []string) {
				tables = make(map[string]*schema.Table)
				cfg := Config{Captured: func(database, _ string) bool { return database == "inventory" }, Catalog: historyCatalog(t, "types-default")}
				if err := c.each(t, cfg, goldenBinlog(t, folder), func(r *Rows) {
					tables[r.Table.Name] = r.Table
					if r.Table.Name != "t_gen" { // it has a UUID
						rows = append(rows, c.labels.Replace(r.Table.Name+" "+imageText(t, r.Table, r.Before)+" > "+imageText(t, r.Table, r.After)))
					}
				}); err != nil {
					t.Fatal(err)
				}
				return tables, rows
			}
			full, wantRows := read("types-default")
			minimal, gotRows := read("minimal-metadata")
			if len(full) < 15 {
				t.Errorf("only %d tables", len(full))
			}
			sameLabels := cmp.FilterPath(func(p cmp.Path) bool { return strings.HasSuffix(p.String(), "Columns.Labels") }, cmp.Comparer(func(a, b []string) bool {
				return slices.EqualFunc(a, b, func(x, y string) bool { return c.labels.Replace(x) == c.labels.Replace(y) })
			}))
			if diff := cmp.Diff(full, minimal, cmpopts.IgnoreFields(schema.Column{}, "Collation", "Invisible"), sameLabels); diff != "" {
				t.Errorf("tables (-FULL +MINIMAL):\n%s", diff)
			}
			if diff := cmp.Diff(wantRows, gotRows); diff != "" {
				t.Errorf("rows (-FULL +MINIMAL):\n%s", diff)
			}
		})
	}
}

// mapped makes the body of a TABLE_MAP of table db.t behind table id and flags: types, their metadata, nullable columns,
// and whatever optional metadata there is.
func mapped(types, meta, nullable, optional []byte) []byte {
	body := append([]byte("\x02db\x00\x01t\x00"), byte(len(types)))
	body = append(append(body, types...), byte(len(meta)))
	body = append(append(append(body, meta...), nullable...), optional...)
	return body
}

// defined is the catalog of one table db.t.
func defined(t testing.TB, sql string) *definitions {
	t.Helper()
	catalog := schema.NewCatalog(schema.CatalogOptions{})
	if sql != "" {
		def, err := schema.ParseCreateTable("db", sql)
		if err != nil {
			t.Fatal(err)
		}
		catalog.Set("db", "t", def)
	}
	return &definitions{catalog: catalog}
}

// versionOf is what a TABLE_MAP becomes.
func versionOf(t testing.TB, ts *tables, body []byte) *version {
	t.Helper()
	if err := ts.add(t.Context(), 1, body, "mysql-bin.000001", 4); err != nil {
		t.Fatal(err)
	}
	v := ts.lookup(1)
	ts.forget()
	return v
}

func capturing(defs *definitions) *tables {
	return &tables{captured: func(_, _ string) bool { return true }, defs: defs}
}

// TestHiddenAlterWithMinimalMetadataIsFound: an ALTER with sql_log_bin=0 changes what TABLE_MAP says about types, and
// nobody may take the old names for the new columns.
func TestHiddenAlterWithMinimalMetadataIsFound(t *testing.T) {
	const people = "CREATE TABLE `t` (`id` int NOT NULL, `age` int DEFAULT NULL, `name` varchar(20) DEFAULT NULL, PRIMARY KEY (`id`)) DEFAULT CHARSET=utf8mb4"
	for _, c := range []struct {
		name, sql string
		types     []byte
		meta      []byte
		nullable  byte
		want      string // part of the error; "" for none
	}{
		{"as defined", people, []byte{typeLong, typeLong, typeVarchar}, []byte{80, 0}, 0b110, ""},
		{"modified type", people, []byte{typeLong, typeVarchar, typeVarchar}, []byte{0x20, 3, 80, 0}, 0b110, "column age (number 2) is INT in the definition, and VARCHAR or VARBINARY in the binlog"},
		{"added column", people, []byte{typeLong, typeLong, typeVarchar, typeLong}, []byte{80, 0}, 0b1110, "there are 4 in the binlog and 3 in the definition"},
		{"dropped column", people, []byte{typeLong, typeLong}, nil, 0b10, "there are 2 in the binlog and 3 in the definition"},
		{"longer", people, []byte{typeLong, typeLong, typeVarchar}, []byte{0x90, 1}, 0b110, "has 400 bytes in the binlog instead of 80"},
		{"another character set", people, []byte{typeLong, typeLong, typeVarchar}, []byte{20, 0}, 0b110, "has 20 bytes in the binlog instead of 80"},
		{"NOT NULL", people, []byte{typeLong, typeLong, typeVarchar}, []byte{80, 0}, 0b100, "column age (number 2) may be NULL: true in the definition, false in the binlog"},
		{"decimal", "CREATE TABLE `t` (`d` decimal(10,2) NOT NULL)", []byte{typeNewDecimal}, []byte{10, 3}, 0, "is DECIMAL(10,2) in the definition, and DECIMAL(10,3) in the binlog"},
		{"fraction", "CREATE TABLE `t` (`d` datetime(3) NOT NULL)", []byte{typeDatetime2}, []byte{6}, 0, "has 6 digits after the second in the binlog instead of 3"},
		{"enum", "CREATE TABLE `t` (`e` enum('a','b') NOT NULL)", []byte{typeString}, []byte{typeSet, 1}, 0, "is ENUM of 2 labels in the definition, and SET in the binlog"},
		{"blob", "CREATE TABLE `t` (`b` blob NOT NULL)", []byte{typeBlob}, []byte{4}, 0, "has 4 bytes of length in the binlog instead of 2"},
		{"unknown table", "", []byte{typeLong}, nil, 0, "the binlog has no column names here"},
	} {
		v := versionOf(t, capturing(defined(t, c.sql)), mapped(c.types, c.meta, []byte{c.nullable}, nil))
		switch {
		case c.want == "" && v.err != nil:
			t.Errorf("%s: %v", c.name, v.err)
		case c.want != "" && (v.err == nil || !strings.Contains(v.err.Error(), c.want) || !strings.Contains(v.err.Error(), "SET PERSIST binlog_row_metadata=FULL")):
			t.Errorf("%s: %v\ndoes not say %q and what to do", c.name, v.err, c.want)
		}
	}
}

// TestMetadataSwitchedToMinimal: a server that stops to name columns in mid-stream changes nothing, whether the
// definition is known by a statement or only by the TABLE_MAP before. What cannot be known is an error, and labels never
// become numbers.
func TestMetadataSwitchedToMinimal(t *testing.T) {
	types, meta := []byte{typeLongLong, typeString, typeString, typeVarchar}, []byte{typeEnum, 1, typeSet, 1, 10, 0}
	// Signs and character sets, as MySQL 8.0 has them in MINIMAL, too; then names, labels and the key.
	some := []byte{metaSignedness, 1, 0x80, metaDefaultCharset, 1, 8}
	all := slices.Concat(some, []byte("\x04\x09\x02id\x01e\x01s\x01v"), []byte("\x06\x0a\x01\x08whatsapp"), []byte("\x05\x05\x02\x01p\x01q"),
		[]byte{metaEnumSetDefault, 1, 45}, []byte{metaSimpleKey, 1, 0})
	full, minimal := mapped(types, meta, []byte{0}, all), mapped(types, meta, []byte{0}, some)
	const sql = "CREATE TABLE `t` (`id` bigint unsigned NOT NULL, `e` enum('whatsapp') NOT NULL, `s` set('p','q') NOT NULL, `v` varchar(10) CHARACTER SET latin1 NOT NULL, PRIMARY KEY (`id`))"
	same := func(a, b *schema.Table) string {
		return cmp.Diff(a, b, cmpopts.IgnoreFields(schema.Column{}, "Def"), cmpopts.IgnoreFields(schema.Table{}, "BinlogKey"))
	}

	ts := capturing(defined(t, sql))
	a, b := versionOf(t, ts, full), versionOf(t, ts, minimal)
	if a.err != nil || b.err != nil {
		t.Fatal(a.err, b.err)
	}
	if diff := same(a.table, b.table); diff != "" {
		t.Errorf("with a definition (-FULL +MINIMAL):\n%s", diff)
	}

	ts = capturing(defined(t, ""))
	a, b = versionOf(t, ts, full), versionOf(t, ts, minimal)
	if b.err != nil || b.table != a.table {
		t.Errorf("by the TABLE_MAP before: %v, %p instead of %p", b.err, b.table, a.table)
	}
	if again := versionOf(t, ts, minimal); again != b {
		t.Error("the same TABLE_MAP gives another version")
	}
	ts.changed("db", "t")
	if v := versionOf(t, ts, minimal); !errors.Is(v.err, errMetadata) {
		t.Errorf("after a statement: %v", v.err)
	}
	if v := versionOf(t, ts, full); v.err != nil {
		t.Error(v.err)
	}
	other := mapped(types, meta, []byte{2}, some)
	if v := versionOf(t, ts, other); !errors.Is(v.err, errMetadata) {
		t.Errorf("a TABLE_MAP of another shape: %v", v.err)
	}
}

// TestInvisibleColumnsAreInTheRow: a generated invisible key and invisible columns are columns like others, and the key.
func TestInvisibleColumnsAreInTheRow(t *testing.T) {
	cfg := Config{Captured: func(_, table string) bool { return table == "t_gipk" || table == "t_gen" }}
	var got []string
	if err := eachRow(t, cfg, goldenBinlog(t, "types-default"), func(r *Rows) {
		if r.Table.Name == "t_gipk" {
			got = append(got, r.Table.Columns[r.Table.Key[0]].Name+" "+imageText(t, r.Table, r.Before)+" > "+imageText(t, r.Table, r.After))
		} else if i := slices.IndexFunc(r.Table.Columns, func(c schema.Column) bool { return c.Name == "inv" }); !r.Table.Columns[i].Invisible {
			t.Errorf("column inv is not invisible: %v", r.Table.Columns[i])
		}
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{"my_row_id - > 1|1|one", "my_row_id - > 2|2|two", "my_row_id 1|1|one > 1|1|uno", "my_row_id 2|2|two > -"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
