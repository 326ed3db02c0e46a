package server

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
)

func TestShowCreate(t *testing.T) {
	f := newFake()
	f.tables = map[string]string{"shop.orders": "CREATE TABLE `orders` (…)"}
	c := f.connect(t)
	if sql, err := c.ShowCreate(t.Context(), "shop", "orders"); err != nil || sql != "CREATE TABLE `orders` (…)" {
		t.Errorf("%q %v", sql, err)
	}
	if _, err := c.ShowCreate(t.Context(), "shop", "gone"); !errors.Is(err, ErrNoTable) || Transient(err) {
		t.Errorf("gone: %v", err)
	}
	f.fail["SHOW CREATE TABLE `secret`"] = mysql.NewError(1142, "SHOW command denied")
	if _, err := c.ShowCreate(t.Context(), "secret", "t"); !errors.Is(err, ErrAccess) || !strings.Contains(err.Error(), "GRANT SELECT ON `secret`.* TO 'u'@'%'") {
		t.Errorf("denied: %v", err)
	}
	if quoteName("a`b") != "`a``b`" || quote(`a'b\`) != `'a\'b\\'` {
		t.Error("quoting")
	}
}

func TestDefinitions(t *testing.T) {
	pos := func(n int64) Position { return Position{"mysql-bin.000003", n, ""} }
	all := func(string, string) bool { return true }
	const t1, t2 = "CREATE TABLE `t` (\n  `a` int\n) ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4", "CREATE TABLE `t` (\n  `a` int,\n  `b` int\n) ENGINE=InnoDB AUTO_INCREMENT=9 DEFAULT CHARSET=utf8mb4"
	tests := []struct {
		name      string
		positions []Position
		texts     []string // of s.t at each reading; "" when it is gone; the last one stays
		want      string
		at        int64
		fails     bool
	}{
		{"at rest", []Position{pos(1)}, []string{t1}, t1, 1, false},
		{"rows meanwhile", []Position{pos(1), pos(2), pos(3), pos(4)}, []string{t1, strings.ReplaceAll(t1, "=7", "=8")}, strings.ReplaceAll(t1, "=7", "=8"), 2, false},
		{"DDL meanwhile, then at rest", []Position{pos(1), pos(2), pos(2)}, []string{t1, t2}, t2, 2, false},
		{"DDL meanwhile, then rows", []Position{pos(1), pos(2), pos(3), pos(4), pos(5)}, []string{t1, t2, t2}, t2, 3, false},
		{"dropped meanwhile", []Position{pos(1), pos(2), pos(3), pos(4), pos(5)}, []string{t1, ""}, "", 3, false},
		{"DDL without end", []Position{pos(1), pos(2), pos(3), pos(4), pos(5), pos(6), pos(7), pos(8), pos(9)}, []string{t1, t2, t1, t2, t1, t2, t1, t2}, "", 0, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake()
			f.positions = tt.positions
			f.tables = map[string]string{"s.t": tt.texts[0]}
			reading := 0
			f.afterList = func(f *fake) {
				if text := tt.texts[min(reading, len(tt.texts)-1)]; text != "" {
					f.tables["s.t"] = text
				} else {
					delete(f.tables, "s.t")
				}
				reading++
			}
			got, at, err := f.connect(t).Definitions(t.Context(), all, all)
			if tt.fails {
				if err == nil || !strings.Contains(err.Error(), "s.t") {
					t.Fatalf("got %v", err)
				}
				return
			}
			if err != nil || at != pos(tt.at) {
				t.Fatalf("at %v: %v", at, err)
			}
			if tt.want == "" && len(got) != 0 || tt.want != "" && (len(got) != 1 || got[0].SQL != tt.want || got[0].String() != "s.t") {
				t.Fatalf("got %q", got)
			}
		})
	}
	t.Run("filter", func(t *testing.T) {
		f := newFake()
		f.tables = map[string]string{"s.t": t1, "s.u": t1}
		got, _, err := f.connect(t).Definitions(t.Context(), func(_, name string) bool { return name == "u" }, all)
		if err != nil || len(got) != 1 || got[0].Name != "u" {
			t.Fatal(got, err)
		}
	})
	t.Run("not needed", func(t *testing.T) {
		need := func(database, _ string) bool { return database == "s" }
		f := newFake()
		f.positions = tests[len(tests)-1].positions
		f.tables = map[string]string{"s.t": t1, "x.busy": t1, "secret.t": t1}
		f.fail["SHOW CREATE TABLE `secret`"] = mysql.NewError(1142, "SHOW command denied")
		f.afterList = func(f *fake) { f.tables["x.busy"] += " " }
		got, at, err := f.connect(t).Definitions(t.Context(), all, need)
		if err != nil || len(got) != 1 || got[0].String() != "s.t" || at != pos(6) {
			t.Fatal(got, at, err)
		}
		f.positions, f.tables["s.u"] = tests[len(tests)-1].positions, t1
		f.afterList = func(f *fake) { f.tables["s.u"] += " " }
		if _, _, err := f.connect(t).Definitions(t.Context(), all, need); err == nil || !strings.Contains(err.Error(), "(s.u)") {
			t.Errorf("a table that is needed: %v", err)
		}
	})
}
