package schema

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A catalog that is loaded at a stored offset knows the tables as they were there, and an older restart those of then.
func TestI10_CatalogLoadsTheVersionOfAPosition(t *testing.T) {
	c := NewCatalog(CatalogOptions{})
	stored := map[TableName]*StoredTable{}
	apply := func(pos int64, sql string, safe int64) {
		t.Helper()
		if _, _, err := c.Apply(Statement{Database: "d", SQL: sql, Collation: 255}); err != nil {
			t.Fatal(err)
		}
		for _, name := range c.Touched() {
			table := stored[name]
			if table == nil {
				table = &StoredTable{Database: name.Database, Table: name.Table}
				stored[name] = table
			}
			v := c.Version(name)
			v.File, v.Pos = "bin.000001", pos
			table.Add(v, func(v *StoredVersion) bool { return v.Pos <= safe })
		}
	}
	apply(100, "create database d charset latin1", 0)
	apply(200, "create table t (a int)", 0)
	apply(300, "alter table t add b varchar(5)", 250)
	apply(400, "alter database d charset gbk", 250)
	apply(500, "rename table t to u", 250)
	apply(600, "create table t (c text)", 250)
	at := func(pos int64) *Catalog {
		var all []StoredTable
		for _, table := range stored {
			again, err := ParseStoredTable(table.Append(nil))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, again)
		}
		loaded := NewCatalog(CatalogOptions{})
		loaded.Load(all, func(v *StoredVersion) bool { return v.Pos <= pos })
		return loaded
	}
	for _, tt := range []struct {
		pos     int64
		t, u, x string // x is made by a statement from there on
	}{
		{250, "a INT", "unknown", "v VARCHAR(1) latin1"},
		{300, "a INT; b VARCHAR(5) latin1", "unknown", "v VARCHAR(1) latin1"},
		{450, "a INT; b VARCHAR(5) latin1", "unknown", "v VARCHAR(1) gbk"},
		{500, "unknown", "a INT; b VARCHAR(5) latin1", "v VARCHAR(1) gbk"},
		{900, "c TEXT gbk", "a INT; b VARCHAR(5) latin1", "v VARCHAR(1) gbk"},
	} {
		loaded := at(tt.pos)
		if got := outline(loaded.Definition("d", "t")); got != tt.t {
			t.Errorf("at %d: t is %s, want %s", tt.pos, got, tt.t)
		}
		if got := outline(loaded.Definition("d", "u")); got != tt.u {
			t.Errorf("at %d: u is %s, want %s", tt.pos, got, tt.u)
		}
		if _, _, err := loaded.Apply(Statement{Database: "d", SQL: "create table x (v varchar(1))"}); err != nil {
			t.Fatal(err)
		}
		if got := outline(loaded.Definition("d", "x")); got != tt.x {
			t.Errorf("at %d: x is %s, want %s", tt.pos, got, tt.x)
		}
	}
	// At 250, when the ALTER was read, the version of 200 was still needed.
	if n := len(stored[TableName{"d", "t"}].Versions); n != 4 {
		t.Errorf("%d versions of t are kept", n)
	}
	apply(700, "alter table t add d int", 600)
	if n := len(stored[TableName{"d", "t"}].Versions); n != 2 {
		t.Errorf("%d versions of t are kept, want that of 600 and the new one", n)
	}
}

func TestCatalogAllIsEnough(t *testing.T) {
	c := NewCatalog(CatalogOptions{})
	c.SetServer("latin1")
	c.SetDatabase("e", "gbk")
	for _, sql := range []string{"create table t (a int, v char(3))", "create database d charset utf8mb4", "use d"} {
		if _, _, err := c.Apply(Statement{Database: "d", SQL: sql}); err != nil {
			t.Fatal(err)
		}
	}
	again := NewCatalog(CatalogOptions{})
	again.Load(c.All(), func(*StoredVersion) bool { t.Error("a version without a position was asked about"); return false })
	if diff := cmp.Diff(c.All(), again.All()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"d", "e"}, again.Databases()); diff != "" {
		t.Errorf("databases (-want +got)\n%s", diff)
	}
}
