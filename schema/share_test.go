package schema

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// orders is a table as SHOW CREATE TABLE prints it.
func orders(name string) string {
	return fmt.Sprintf("CREATE TABLE `%s` (\n  `id` bigint NOT NULL AUTO_INCREMENT,\n  `customer` int NOT NULL,\n  `name` varchar(60) DEFAULT 'n''n',\n"+
		"  `price` decimal(10,2) NOT NULL DEFAULT '1.50',\n  `placed` datetime(3) DEFAULT NULL,\n  `changed` timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,\n"+
		"  `note` text COMMENT 'a note',\n  `state` enum('new','it''s paid') DEFAULT 'new',\n  `paid` tinyint(1) NOT NULL,\n"+
		"  PRIMARY KEY (`id`),\n  UNIQUE KEY `u` (`customer`,`paid`)\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COMMENT='of %s'", name, name)
}

func readTable(t testing.TB, sql string) *Definition {
	t.Helper()
	def, err := NewCatalog(CatalogOptions{}).ReadCreateTable("shop", sql)
	if err != nil {
		t.Fatal(err)
	}
	return def
}

// Tables of equal columns hold them together, and what is known of each stays the same, also when one is changed.
func TestTablesAlikeHoldTheirColumnsTogether(t *testing.T) {
	c := NewCatalog(CatalogOptions{})
	names := []string{"a", "b", "c"}
	for _, name := range names {
		c.Set("shop", name, readTable(t, orders(name)))
	}
	keyless := readTable(t, strings.ReplaceAll(orders("keyless"), "PRIMARY KEY (`id`),\n  ", ""))
	c.Set("shop", "keyless", keyless)
	want := func(name string, def *Definition) {
		t.Helper()
		if diff := cmp.Diff(def, c.Definition("shop", name)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for _, name := range names {
		want(name, readTable(t, orders(name)))
	}
	want("keyless", readTable(t, strings.ReplaceAll(orders("keyless"), "PRIMARY KEY (`id`),\n  ", "")))
	a, b := c.Definition("shop", "a"), c.Definition("shop", "b")
	if &a.Columns[0] != &b.Columns[0] || &a.Key[0] != &b.Key[0] || &keyless.Columns[0] == &a.Columns[0] {
		t.Error("it is not what is equal that is held together")
	}
	for _, ddl := range []string{"ALTER TABLE b ADD COLUMN more INT, MODIFY note TEXT NOT NULL", "ALTER TABLE c DROP PRIMARY KEY, MODIFY id INT"} {
		if _, _, err := c.Apply(Statement{Database: "shop", SQL: ddl}); err != nil {
			t.Fatal(err)
		}
	}
	want("a", readTable(t, orders("a")))
	if got := c.Definition("shop", "b"); len(got.Columns) != 10 || c.Definition("shop", "c").Columns[0].Type != "INT" {
		t.Errorf("got %+v", got)
	}
}

// Tables of several kinds hold their columns together kind by kind, in whatever order they come and however little the kinds differ.
func TestTablesAlikeOfSeveralKinds(t *testing.T) {
	for _, change := range [][2]string{
		{"`paid` tinyint(1) NOT NULL", "`paid` tinyint(1)"},
		{"PRIMARY KEY (`id`),\n  UNIQUE KEY `u` (`customer`,`paid`)", "PRIMARY KEY (`id`,`paid`)"},
		{"enum('new','it''s paid')", "enum('new','it\\'s paid')"},
		{" AUTO_INCREMENT", ""},
		{" COMMENT 'a note'", " COMMENT ''"},
	} {
		c := NewCatalog(CatalogOptions{})
		kinds := make(map[*ColumnDef]int)
		for i := range 20 {
			sql := orders(fmt.Sprint("t", i))
			if i%2 == 1 {
				sql = strings.Replace(sql, change[0], change[1], 1)
			}
			def := readTable(t, sql)
			c.Set("shop", def.Name, def)
			kinds[&def.Columns[0]]++
		}
		if len(kinds) != 2 {
			t.Errorf("%s: %d kinds of columns are kept, want 2", change[1], len(kinds))
		}
	}
}

// Every field of a column tells two columns apart.
func TestColumnsThatDiffer(t *testing.T) {
	text, other := "x", "y"
	full := func() ColumnDef {
		return ColumnDef{
			Name: "n", Type: "T", Length: 1, Scale: 2, Charset: "c", Default: &text, Labels: []string{"l"}, Comment: "k", JDBCType: 3, Expression: "e",
			Quoted: []string{"q"}, Server: &ServerColumn{Charset: "s", Labels: []string{"m"}, Default: "d"},
		}
	}
	a, b := full(), full()
	again := "x"
	if b.Default = &again; !a.same(&b) {
		t.Fatal("two equal columns differ")
	}
	change := func(field reflect.Value) {
		switch field.Kind() {
		case reflect.String:
			field.SetString("changed")
		case reflect.Int:
			field.SetInt(99)
		case reflect.Bool:
			field.SetBool(true)
		case reflect.Slice:
			field.Set(reflect.ValueOf([]string{"l", "changed"}))
		case reflect.Pointer:
			field.SetZero()
		default:
			t.Fatalf("a field of kind %v", field.Kind())
		}
	}
	differs := func(what string, b ColumnDef) {
		t.Helper()
		if a.same(&b) || b.same(&a) {
			t.Errorf("columns that differ in %s are the same", what)
		}
	}
	for i := range reflect.TypeFor[ColumnDef]().NumField() {
		b := full()
		change(reflect.ValueOf(&b).Elem().Field(i))
		differs(reflect.TypeFor[ColumnDef]().Field(i).Name, b)
	}
	for i := range reflect.TypeFor[ServerColumn]().NumField() {
		b := full()
		change(reflect.ValueOf(b.Server).Elem().Field(i))
		differs("Server."+reflect.TypeFor[ServerColumn]().Field(i).Name, b)
	}
	b = full()
	b.Default = &other
	differs("the text of the default", b)
	for _, empty := range []*[]string{&b.Labels, &b.Quoted} {
		a, b = full(), full()
		*empty = []string{}
	}
	a, b = full(), full()
	a.Labels, b.Labels = nil, []string{}
	differs("having labels", b)
}

// A table that is changed again and again leaves nothing behind.
func TestSharesOfChangedTablesEnd(t *testing.T) {
	c := NewCatalog(CatalogOptions{})
	c.Set("shop", "a", readTable(t, orders("a")))
	for i := range 500 {
		old := "note"
		if i > 0 {
			old = fmt.Sprintf("note%d", i)
		}
		if _, _, err := c.Apply(Statement{Database: "shop", SQL: fmt.Sprintf("ALTER TABLE a RENAME COLUMN %s TO note%d", old, i+1)}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(c.shares.columns); n > 2*fewShares {
		t.Errorf("%d definitions are kept for one table", n)
	}
}

// The memory of what is known of a table is bounded: a process may have thousands.
func TestMemoryOfDefinitions(t *testing.T) {
	const many = 1000
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for _, alike := range []bool{true, false} {
		bound := map[bool]uint64{true: 550, false: 3000}[alike]
		name := func(i int) string { return fmt.Sprintf("t%04d", i) }
		text := func(i int) string {
			sql := strings.Replace(orders(name(i)), "of "+name(i), "an order", 1)
			if !alike {
				sql = strings.ReplaceAll(sql, "note", "note"+name(i))
			}
			return sql
		}
		check := func(what string, before uint64) {
			t.Helper()
			got := (heap() - before) / many
			t.Logf("%s, tables alike: %v: %d bytes a table", what, alike, got)
			if got > bound {
				t.Errorf("%s, tables alike: %v: %d bytes a table, at most %d are wanted", what, alike, got, bound)
			}
		}
		c := NewCatalog(CatalogOptions{})
		before := heap()
		for i := range many {
			c.Set("shop", name(i), readTable(t, text(i)))
		}
		check("read from the server", before)

		path := t.TempDir() + "/schemas"
		store, err := OpenFileStore(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Save(t.Context(), "c", "p", c.All()); err != nil {
			t.Fatal(err)
		}
		want := c.All()
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		before = heap()
		if store, err = OpenFileStore(path); err != nil {
			t.Fatal(err)
		}
		loaded := NewCatalog(CatalogOptions{})
		tables, err := store.Load(t.Context(), "c", "p")
		if err != nil {
			t.Fatal(err)
		}
		loaded.Load(tables, func(*StoredVersion) bool { return true })
		tables = nil
		bound += 300 // where its line is
		check("loaded", before)
		if !reflect.DeepEqual(want, loaded.All()) {
			t.Error("other definitions are loaded than were saved")
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// What is read of a store or a history is held together while it is read, before it is in a catalog.
func TestTablesAlikeAreReadTogether(t *testing.T) {
	c := NewCatalog(CatalogOptions{})
	var history []byte
	for i, name := range []string{"a", "b"} {
		def := readTable(t, orders(name))
		c.Set("shop", name, def)
		history = AppendHistoryLine(history, &HistoryRecord{
			Position: []Member{{Name: "pos", Value: fmt.Sprint(i)}}, Database: "shop", DDL: orders(name),
			Changes: []Change{{Kind: CreateTable, Database: "shop", Table: name, Definition: def}},
		})
	}
	together := func(what string, a, b *Definition) {
		t.Helper()
		if a.Name == b.Name || &a.Columns[0] != &b.Columns[0] {
			t.Errorf("%s: %s and %s do not hold their columns together", what, a.Name, b.Name)
		}
	}
	entries, err := ReadHistory(strings.NewReader(string(history)))
	if err != nil || len(entries) != 2 {
		t.Fatal(entries, err)
	}
	together("history", entries[0].Changes[0].Definition, entries[1].Changes[0].Definition)
	store := openStore(t, t.TempDir()+"/schemas")
	saveStore(t, store, "c", c.All()...)
	var defs []*Definition
	for _, table := range loadStore(t, store, "c") {
		if table.Table != "" {
			defs = append(defs, table.Versions[0].Definition)
		}
	}
	together("store", defs[0], defs[1])
}
