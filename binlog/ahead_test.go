package binlog

import (
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// laterCatalog is a catalog of the definitions that the server has at the end of b, and the place of that.
func laterCatalog(t *testing.T, b *binlogBuilder, gtids string, tables ...string) Config {
	t.Helper()
	catalog := schema.NewCatalog(schema.CatalogOptions{})
	for _, sql := range tables {
		def, err := schema.ParseCreateTable("db", sql)
		if err != nil {
			t.Fatal(err)
		}
		catalog.Set("db", def.Name, def)
	}
	set, err := offset.ParseGTIDSet(testUUID + ":" + gtids)
	if err != nil {
		t.Fatal(err)
	}
	return Config{Catalog: catalog, CatalogAt: offset.Offset{File: "mysql-bin.000001", Pos: b.end, GTIDs: set}}
}

func rowLines(lines []string) (rows []string) {
	for _, l := range lines {
		if !strings.Contains(l, "TABLE") {
			rows = append(rows, l)
		}
	}
	return rows
}

// TestI10_LaterDefinitionDoesNotNameColumns: a definition that was read when the stream had not come so far must not give
// its names to a TABLE_MAP that has none, even where the types fit: the columns may have been renamed on the way.
func TestI10_LaterDefinitionDoesNotNameColumns(t *testing.T) {
	for name, before := range map[string]func(b *binlogBuilder){
		"columns renamed": func(b *binlogBuilder) {
			b.transaction(func() { b.mapped(9, "t", false, "id", "a", "b"); b.write(9, 1, 2, 3) })
			b.ddl("ALTER TABLE t RENAME COLUMN a TO x, RENAME COLUMN b TO a, RENAME COLUMN x TO b")
		},
		"tables swapped": func(b *binlogBuilder) {
			b.ddl("RENAME TABLE t TO x, u TO t, x TO u")
			b.transaction(func() { b.mapped(9, "t", false, "id", "a", "b"); b.write(9, 1, 2, 3) })
		},
		"made like another": func(b *binlogBuilder) {
			b.ddl("CREATE TABLE v LIKE u")
			b.transaction(func() { b.mapped(9, "v", false, "id", "a", "b"); b.write(9, 1, 2, 3) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := numberedBinlog()
			before(b)
			cfg := laterCatalog(t, b, "1-2", "CREATE TABLE `t` (`id` int NOT NULL, `b` int NOT NULL, `a` int NOT NULL)", "CREATE TABLE `u` (`id` int NOT NULL, `c` int NOT NULL, `d` int NOT NULL)")
			lines, _, err := readTables(t, b, cfg, Start{})
			wantError(t, err, "binlog_row_metadata was MINIMAL when this was written", "the table's definition at this position is not known")
			wantLines(t, rowLines(lines), nil)
		})
	}
}

// TestI10_ConfirmedBeforeTheCatalog: what a CREATE TABLE of the stream says holds from there on, with what other statements
// make of it, although the definitions that the server gave are those of a later position; and from that on those hold.
func TestI10_ConfirmedBeforeTheCatalog(t *testing.T) {
	b := numberedBinlog()
	b.ddl("CREATE TABLE t (id INT NOT NULL, a INT NOT NULL DEFAULT 5)")
	b.transaction(func() { b.mapped(9, "t", false, "id", "a"); b.write(9, 1, 2) })
	b.ddl("ALTER TABLE t ADD COLUMN b INT NOT NULL DEFAULT 6")
	b.transaction(func() { b.mapped(9, "t", false, "id", "a", "b"); b.write(9, 1, 2, 3) })
	b.ddl("RENAME TABLE t TO u")
	b.transaction(func() { b.mapped(9, "u", false, "id", "a", "b"); b.write(9, 1, 2, 3) })
	b.ddl("DROP TABLE u")
	cfg := laterCatalog(t, b, "1-7", "CREATE TABLE `other2` (`id` int NOT NULL, `c` int NOT NULL DEFAULT '7')")
	b.transaction(func() { b.mapped(9, "other2", false, "id", "c"); b.write(9, 1, 2) })
	lines, warnings, err := readTables(t, b, cfg, Start{})
	if err != nil || len(warnings) != 0 {
		t.Fatal(err, warnings)
	}
	wantLines(t, rowLines(lines), []string{"t id a=5", "t id a=5 b=6", "u id a=5 b=6", "other2 id c=7"})
}
