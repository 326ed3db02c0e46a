package binlog

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// kept is what a reader has told a schema store, and where it was last.
type kept struct {
	tables map[schema.TableName]schema.StoredTable
	last   offset.Offset
	cols   []string // of the rows, by event
	err    error
}

// keepTables reads a binlog to its end and keeps what a store would. saved is told each offset.
func keepTables(t testing.TB, b *binlogBuilder, cfg Config, saved bool) (k kept, r *Reader) {
	t.Helper()
	k.tables = map[schema.TableName]schema.StoredTable{}
	if cfg.Captured == nil {
		cfg.Captured = func(string, string) bool { return true }
	}
	r, err := newReader(cfg, b.clone())
	if err != nil {
		t.Fatal(err)
	}
	r.asm.defs.unchanged = func(ctx context.Context, _, table string) (bool, error) {
		return mentionedNowhere(ctx, b.at("mysql-bin.000001", r.asm.next), table)
	}
	if err := r.startFiles(t.Context(), Start{}); err != nil {
		t.Fatal(err)
	}
	for {
		ev, err := r.Read(t.Context())
		if err != nil {
			if err != io.EOF {
				k.err = err
			}
			return k, r
		}
		switch ev := ev.(type) {
		case *SchemaChange:
			for _, s := range ev.Tables {
				name := schema.TableName{Database: s.Database, Table: s.Table}
				if k.tables[name] = s; len(s.Versions) == 0 {
					delete(k.tables, name)
				}
			}
			k.last = ev.Offset
		case *Rows:
			var names []string
			for _, c := range ev.Table.Columns {
				names = append(names, c.Name)
			}
			k.cols = append(k.cols, strings.Join(names, " "))
			for ev.Next() {
			}
		case *Boundary:
			k.last = ev.Offset
		}
		if saved {
			r.Stored(k.last)
		}
	}
}

func (k *kept) catalog(opts schema.CatalogOptions) *schema.Catalog {
	var all []schema.StoredTable
	for _, s := range k.tables {
		all = append(all, s)
	}
	c := schema.NewCatalog(opts)
	c.Load(all, Reached(k.last))
	return c
}

// TestI11_OneEntryForATableInAnyCase: where names are compared without case, a statement's way of writing one makes no second
// entry in the store, of which a restart would take either.
func TestI11_OneEntryForATableInAnyCase(t *testing.T) {
	b := numberedBinlog()
	for _, name := range []string{"CREATE TABLE Foo (a INT)", "ALTER TABLE foo ADD COLUMN b INT", "ALTER TABLE FOO ADD COLUMN c INT"} {
		b.ddl(name)
	}
	opts := schema.CatalogOptions{IgnoreCase: true}
	k, _ := keepTables(t, b, Config{Catalog: schema.NewCatalog(opts), IgnoreCase: true}, false)
	if k.err != nil || len(k.tables) != 1 {
		t.Fatalf("%v, %+v", k.err, k.tables)
	}
	if got := columnNamesOf(k.catalog(opts).Definition("db", "foo")); got != "(a b c)" {
		t.Errorf("columns %s", got)
	}
}

const oddAlter = "MODIFY COLUMN a FROBNICATED(((GLUE"

// TestI10_NamesThatAStatementMayHaveChanged: without names in the binlog those from before a statement that was not understood
// are not taken for the columns behind it, however the statement writes the table's name.
func TestI10_NamesThatAStatementMayHaveChanged(t *testing.T) {
	b := numberedBinlog()
	b.ddl("CREATE TABLE t (id INT NOT NULL PRIMARY KEY, a INT NOT NULL)")
	b.transaction(func() { b.mapped(9, "t", false, "id", "a"); b.write(9, 1, 2) })
	b.ddl("ALTER TABLE T " + oddAlter)
	b.transaction(func() { b.mapped(9, "t", false, "id", "a"); b.write(9, 1, 2) })
	k, _ := keepTables(t, b, Config{Catalog: schema.NewCatalog(schema.CatalogOptions{IgnoreCase: true}), IgnoreCase: true}, false)
	wantError(t, k.err, "table db.t", oddAlter)
}

// TestI10_LostDefinitionIsNotTakenUpAgain: nor are they after a restart behind the statement; what the server could be asked
// for is still known then.
func TestI10_LostDefinitionIsNotTakenUpAgain(t *testing.T) {
	for _, asked := range []bool{false, true} {
		b := numberedBinlog()
		b.ddl("CREATE TABLE t (id INT NOT NULL PRIMARY KEY, a INT NOT NULL)")
		b.transaction(func() { b.mapped(9, "t", false, "id", "a"); b.write(9, 1, 2) })
		b.ddl("ALTER TABLE t " + oddAlter)
		cfg := Config{}
		if asked {
			cfg.Refresh = shows(t, "CREATE TABLE `t` (`id` int NOT NULL, `now` int NOT NULL, PRIMARY KEY (`id`))")
		}
		before, _ := keepTables(t, b, cfg, false)
		if before.err != nil {
			t.Fatal(before.err)
		}
		next := numberedBinlog()
		next.transaction(func() { next.mapped(9, "t", false, "id", "a"); next.write(9, 1, 2) })
		after, _ := keepTables(t, next, Config{Catalog: before.catalog(schema.CatalogOptions{})}, false)
		if asked {
			if after.err != nil {
				t.Fatal(after.err)
			}
			wantLines(t, after.cols, []string{"id now"})
		} else {
			wantError(t, after.err, "table db.t", "the table's definition at this position is not known")
		}
	}
}

// shows is a server that has one table.
func shows(t testing.TB, sql string) func(context.Context, string, string) (*schema.Definition, error) {
	t.Helper()
	def, err := schema.ParseCreateTable("db", sql)
	if err != nil {
		t.Fatal(err)
	}
	return func(context.Context, string, string) (*schema.Definition, error) { return def, nil }
}

// TestI10_VersionsGoByTheSourcesThatCount: of the sources that gtid.source.includes leaves out a server need not have what the
// one before had. A statement that was done there is done here, too.
func TestI10_VersionsGoByTheSourcesThatCount(t *testing.T) {
	start, err := offset.ParseGTIDSet(otherUUID + ":1-100")
	if err != nil {
		t.Fatal(err)
	}
	b := numberedBinlog()
	b.ddl("CREATE TABLE t (a INT)")
	r, err := newReader(Config{Captured: func(string, string) bool { return true }, GTIDSources: func(source string) bool { return source == testUUID }}, b)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.startFiles(t.Context(), Start{GTIDs: start}); err != nil {
		t.Fatal(err)
	}
	ev, err := r.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	version := &ev.(*SchemaChange).Tables[0].Versions[0]
	for text, want := range map[string]bool{testUUID + ":1," + otherUUID + ":1-50": true, testUUID + ":1": true, otherUUID + ":1-100": false} {
		set, err := offset.ParseGTIDSet(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := Reached(offset.Offset{File: "mysql-bin.000001", Pos: 5000, GTIDs: set})(version); got != want {
			t.Errorf("at %s the version of %s holds: %v", text, version.GTIDs, got)
		}
	}
}

// TestDroppedTablesAreForgotten: what is kept of tables does not grow with those that come and go, neither here nor in the
// store.
func TestDroppedTablesAreForgotten(t *testing.T) {
	b := numberedBinlog()
	b.ddl("CREATE TABLE stays (a INT)")
	const tables = 50
	for i := range tables {
		b.ddl(fmt.Sprintf("CREATE TABLE t%d (a INT)", i))
		b.transaction(func() { b.mapped(9, fmt.Sprintf("t%d", i), true, "a"); b.write(9, 1) })
		b.ddl(fmt.Sprintf("DROP TABLE t%d", i))
	}
	b.ddl("CREATE TABLE t1 (again INT)")
	k, r := keepTables(t, b, Config{}, true)
	if k.err != nil {
		t.Fatal(k.err)
	}
	if n, m := len(r.asm.tables.newest), len(r.asm.versions.tables); n != 0 || m > 4 || len(r.asm.versions.dropped) != 0 {
		t.Errorf("%d versions and %d stored tables are kept, %v may be forgotten", n, m, r.asm.versions.dropped)
	}
	if len(k.tables) != 2 {
		t.Errorf("stored: %v", k.tables)
	}
	// As long as a restart may lie before the DROP, the table is not forgotten.
	if k, _ := keepTables(t, b, Config{}, false); len(k.tables) != tables+1 || len(k.tables[schema.TableName{Database: "db", Table: "t3"}].Versions) != 2 {
		t.Errorf("stored without an offset: %v", k.tables)
	}
}
