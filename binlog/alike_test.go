package binlog

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/schema"
)

// alikeTables are the tables of a reader that knows a definition of each, whose columns are equal.
func alikeTables(t testing.TB, names ...string) *tables {
	t.Helper()
	catalog := schema.NewCatalog(schema.CatalogOptions{})
	for _, name := range names {
		def, err := schema.ParseCreateTable("db", "CREATE TABLE `"+name+"` (\n  `a` int NOT NULL DEFAULT '5',\n  `b` varchar(20),\n  `c` int NOT NULL,\n  PRIMARY KEY (`a`)\n) DEFAULT CHARSET=utf8mb4")
		if err != nil {
			t.Fatal(err)
		}
		catalog.Set("db", name, def)
	}
	return &tables{captured: func(_, _ string) bool { return true }, defs: &definitions{catalog: catalog, history: true}, log: zap.NewNop()}
}

// mapTable has a table's TABLE_MAP come by.
func mapTable(t testing.TB, ts *tables, table string, columns ...string) *version {
	t.Helper()
	b := &binlogBuilder{}
	b.mapped(7, table, true, columns...)
	if err := ts.add(t.Context(), 7, b.events[0][headerSize+8:], "f", 4); err != nil {
		t.Fatal(err)
	}
	return ts.lookup(7)
}

// Versions that differ in nothing but their tables' names hold their columns together; others do not.
func TestVersionsAlike(t *testing.T) {
	ts := alikeTables(t, "one", "two", "other")
	def, err := schema.ParseCreateTable("db", "CREATE TABLE `other` (\n  `a` int NOT NULL DEFAULT '6',\n  `b` varchar(20),\n  `c` int NOT NULL,\n  PRIMARY KEY (`a`)\n) DEFAULT CHARSET=utf8mb4")
	if err != nil {
		t.Fatal(err)
	}
	ts.defs.catalog.Set("db", "other", def)
	one, two, other := mapTable(t, ts, "one", "a", "b varchar", "c"), mapTable(t, ts, "two", "a", "b varchar", "c"), mapTable(t, ts, "other", "a", "b varchar", "c")
	unknown := mapTable(t, ts, "unknown", "a", "b varchar", "c")
	longer := mapTable(t, ts, "longer", "a", "b varchar", "c", "d")
	for _, v := range []*version{one, two, other, unknown, longer} {
		if v.err != nil || v.table.Name != v.name || v.table.Columns[0].Name != "a" || len(v.cells) != len(v.table.Columns) || len(v.table.Key) != 1 {
			t.Errorf("%+v", v)
		}
	}
	first := func(v *version) *schema.Column { return &v.table.Columns[0] }
	if one.table == two.table || one.table.Name != "one" || two.table.Name != "two" || first(one) != first(two) || &one.cells[0] != &two.cells[0] {
		t.Error("two tables alike do not hold their columns together")
	}
	if first(other) == first(one) || *first(other).Def.Default != "6" || *first(one).Def.Default != "5" {
		t.Error("tables of other defaults hold them together")
	}
	if first(unknown) == first(one) || first(unknown).Def != nil {
		t.Error("a table without a definition has that of another")
	}
	again := mapTable(t, ts, "one", "a", "c")
	if again.table == one.table || len(one.table.Columns) != 3 || len(again.table.Columns) != 2 || len(two.table.Columns) != 3 {
		t.Error("the columns of other versions change with a table")
	}
}

// Tables of several kinds whose TABLE_MAPs are equal, which those without names mostly are, hold their columns together kind by
// kind, in whatever order they come.
func TestVersionsAlikeOfSeveralKinds(t *testing.T) {
	names, ts := make([]string, 20), alikeTables(t)
	for i := range names {
		names[i] = fmt.Sprint("t", i)
		def, err := schema.ParseCreateTable("db", fmt.Sprintf("CREATE TABLE `%s` (\n  `a%d` int NOT NULL,\n  `b` int NOT NULL,\n  PRIMARY KEY (`b`)\n) DEFAULT CHARSET=utf8mb4", names[i], i%2))
		if err != nil {
			t.Fatal(err)
		}
		ts.defs.catalog.Set("db", names[i], def)
	}
	kinds := make(map[*schema.Column]int)
	for i, name := range names {
		b := &binlogBuilder{}
		b.mapped(7, name, false, "a", "b")
		if err := ts.add(t.Context(), 7, b.events[0][headerSize+8:], "f", 4); err != nil {
			t.Fatal(err)
		}
		v := ts.lookup(7)
		if v.err != nil || v.table.Columns[0].Name != fmt.Sprint("a", i%2) || v.table.Name != name {
			t.Fatalf("%s: %v, %+v", name, v.err, v.table)
		}
		kinds[&v.table.Columns[0]]++
		ts.forget()
	}
	if len(kinds) != 2 {
		t.Errorf("%d kinds of columns are kept, want 2", len(kinds))
	}
}

// Everything that is held together tells two versions apart.
func TestVersionsThatDiffer(t *testing.T) {
	ts := alikeTables(t, "one", "two")
	for what, change := range map[string]func(*version){
		"nothing":                  func(*version) {},
		"the bytes":                func(v *version) { v.raw = append(slices.Clone(v.raw), 0) },
		"the key":                  func(v *version) { v.table.Key = []int{1} },
		"having a key":             func(v *version) { v.table.Key = nil },
		"the key of the TABLE_MAP": func(v *version) { v.table.BinlogKey = []int{1} },
		"the columns":              func(v *version) { v.table.Columns = v.table.Columns[:2] },
		"the cells":                func(v *version) { v.cells = v.cells[:2] },
	} {
		one, two := *mapTable(t, ts, "one", "a", "b varchar", "c"), *mapTable(t, ts, "two", "a", "b varchar", "c")
		table := *two.table
		two.table = &table
		change(&two)
		if one.alike(&two) != (what == "nothing") || two.alike(&one) != (what == "nothing") {
			t.Errorf("versions that differ in %s: alike is %v", what, one.alike(&two))
		}
	}
}

// Every field of a column tells two columns apart.
func TestColumnsAlike(t *testing.T) {
	full := func() schema.Column {
		return schema.Column{Name: "n", Type: 1, Meta: 2, Collation: 3, Labels: []string{"l"}, Geometry: 4}
	}
	fields := reflect.TypeFor[schema.Column]()
	for i := range fields.NumField() {
		a, b := full(), full()
		if !sameColumn(a, b) {
			t.Fatal("two equal columns differ")
		}
		switch field := reflect.ValueOf(&b).Elem().Field(i); field.Kind() {
		case reflect.String:
			field.SetString("changed")
		case reflect.Uint8, reflect.Uint16, reflect.Uint32:
			field.SetUint(99)
		case reflect.Bool:
			field.SetBool(true)
		case reflect.Slice:
			field.Set(reflect.ValueOf([]string{"changed"}))
		case reflect.Pointer:
			field.Set(reflect.ValueOf(new(schema.ColumnDef)))
		default:
			t.Fatalf("a field of kind %v", field.Kind())
		}
		if sameColumn(a, b) || sameColumn(b, a) {
			t.Errorf("columns that differ in %s are the same", fields.Field(i).Name)
		}
	}
}

// A table that is changed again and again leaves nothing behind.
func TestVersionsAlikeEnd(t *testing.T) {
	ts := alikeTables(t)
	for i := range 1000 {
		mapTable(t, ts, "one", "a", fmt.Sprintf("b%d", i))
		ts.forget()
	}
	if n := len(ts.alike.first); n > 2*fewVersions {
		t.Errorf("%d versions of one table are kept", n)
	}
}

// The memory of a table that comes by is bounded: a process may have thousands.
func TestMemoryOfVersions(t *testing.T) {
	const many = 1000
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for _, alike := range []bool{true, false} {
		bound := map[bool]uint64{true: 550, false: 900}[alike]
		names := make([]string, many)
		for i := range names {
			names[i] = fmt.Sprintf("t%04d", i)
		}
		ts := alikeTables(t, names...)
		before := heap()
		for i, name := range names {
			column := "b varchar"
			if !alike {
				column = fmt.Sprintf("b%d varchar", i)
			}
			mapTable(t, ts, name, "a", column, "c")
			ts.forget()
		}
		got := (heap() - before) / many
		t.Logf("tables alike: %v: %d bytes a table", alike, got)
		if got > bound {
			t.Errorf("tables alike: %v: %d bytes a table, at most %d are wanted", alike, got, bound)
		}
		runtime.KeepAlive(ts)
	}
}
