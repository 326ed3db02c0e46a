package config

import (
	"slices"
	"strings"
	"testing"
)

func TestParseURL(t *testing.T) {
	env := func(string) string { return "" }
	c, warnings, err := ParseURL("mysql://repl:p%40ss@db.example.com:3307/shop?tables=orders,cust.*&ssl=required&prefix=p1&server_id=77&tombstones.on.delete=false&value.converter.schemas.enable=false&start.position=oldest", env)
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) != 0 {
		t.Errorf("warnings %v", warnings)
	}
	if c.Host != "db.example.com" || c.Port != 3307 || c.User != "repl" || c.Password.Reveal() != "p@ss" || c.SSL != SSLRequired ||
		c.Prefix != "p1" || c.Name != "p1" || c.ServerID != 77 || c.Tombstones || c.Value.Schemas || !c.Key.Schemas || c.Start.Mode != Oldest || c.SnapshotMode != "no_data" {
		t.Errorf("%+v", c)
	}
	for table, want := range map[string]bool{"shop.orders": true, "shop.customers": true, "shop.orders2": false, "other.orders": false, "shop.x": false} {
		db, name, _ := strings.Cut(table, ".")
		if c.Filter.Captured(db, name) != want {
			t.Errorf("%s: not %v", table, want)
		}
	}

	c, _, err = ParseURL("mysql://root@[::1]", func(k string) string { return map[string]string{"MYSQL_PWD": "m", "TIDEMARK_PASSWORD": "t"}[k] })
	if err != nil {
		t.Fatal(err)
	}
	if c.Host != "::1" || c.Port != 3306 || c.Password.Reveal() != "t" || c.Prefix != "mysql" || c.ServerID < 1<<31 || !c.Filter.Captured("any", "thing") {
		t.Errorf("%+v", c)
	}
	if c.MariaDB {
		t.Error("mysql:// is MariaDB's")
	}
	c, _, err = ParseURL("mariadb://root@h/db?prefix=p", env)
	if err != nil || !c.MariaDB || c.Prefix != "p" || c.Host != "h" {
		t.Errorf("%+v %v", c, err)
	}
	c, _, err = ParseURL("mysql://root:@h/a.b+c", func(string) string { return "from the environment" })
	if err != nil || c.Password.Reveal() != "" || !c.Filter.Captured("a.b+c", "t") || c.Filter.Captured("aXbbc", "t") {
		t.Errorf("%+v %v", c, err)
	}
	c, _, err = ParseURL(`mysql://root@h/?tables=a[.]t1,b[.]x{1\,2}`, env)
	if err != nil || !c.Filter.Captured("a", "t1") || !c.Filter.Captured("b", "xx") || c.Filter.Captured("b", "xxx") {
		t.Errorf("%+v %v", c, err)
	}
}

func TestParseURLRefused(t *testing.T) {
	for raw, part := range map[string]string{
		"postgres://u:s3cret@h/db":                          "must begin with mysql:// or mariadb://",
		"mysql:u@h":                                         "names no host",
		"mysql://u:s3cret@/db":                              "names no host",
		"mysql://h/db":                                      "names no user",
		"mysql://u:s3cret%zz@h/db":                          "must be written as %40",
		"mysql://u:s3cret/x@h/db":                           "must be written as %40",
		"mysql://u:s3#cret@h":                               "",
		"mysql://u:s3cret@h/db#x":                           "has a # part",
		"mysql://u:s3cret@h/db/t":                           "more than a database",
		"mysql://u:s3cret@h:99999/db":                       "database.port",
		"mysql://u:s3cret@h/?tables=orders":                 "names no database",
		"mysql://u:s3cret@h/db?tables=(":                    "table.include.list",
		"mysql://u:s3cret@h/db?table=orders":                "table is unknown",
		"mysql://u:s3cret@h/db?ssl=verified":                "database.ssl.mode",
		"mysql://u:s3cret@h/db?server_id=0":                 "database.server.id",
		"mysql://u:s3cret@h/db?prefix=a/b":                  "topic.prefix",
		"mysql://u:s3cret@h/db?decimal.handling.mod=string": "as decimal.handling.mode",
		"mysql://u:s3cret@h/db?signal.data.collection=db.s": "is not built yet",
		"mysql://u:s3cret@h/db?a=%zz":                       "cannot be read",
		`mysql://u:s3cret@h/db?tables=a\`:                   "tables: a backslash",
	} {
		_, _, err := ParseURL(raw, func(string) string { return "" })
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v; want %q", raw, err, part)
			continue
		}
		if strings.Contains(err.Error(), "s3") {
			t.Errorf("the password is in %v", err)
		}
	}
}

func TestRandomServerID(t *testing.T) {
	var ids []uint32
	for range 100 {
		id := randomServerID()
		if id < 1<<31 || id == 1<<32-1 {
			t.Fatalf("%d", id)
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	if len(slices.Compact(ids)) < 90 {
		t.Error("not random")
	}
}

func FuzzParseURL(f *testing.F) {
	f.Add("mysql://u:p@h:1/db?tables=a,b&ssl=disabled")
	f.Fuzz(func(t *testing.T, raw string) {
		_, _, _ = ParseURL(raw, func(string) string { return "" })
	})
}
