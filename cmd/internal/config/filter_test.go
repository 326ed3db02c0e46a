package config

import (
	"slices"
	"strings"
	"testing"
)

func TestFilter(t *testing.T) {
	type lists struct{ dbIn, dbOut, in, out string }
	for name, c := range map[string]struct {
		lists
		builtin bool
		yes, no string // db.table, separated by blanks
	}{
		"no lists":           {yes: "inventory.orders Sales.x", no: "mysql.user sys.sys_config INFORMATION_SCHEMA.TABLES performance_schema.threads"},
		"builtin":            {builtin: true, yes: "mysql.user inventory.orders"},
		"database":           {lists: lists{dbIn: "inventory"}, yes: "inventory.orders INVENTORY.orders", no: "inventory2.orders my_inventory.orders"},
		"databases":          {lists: lists{dbIn: `inventory , shop_\d+`}, yes: "inventory.a shop_12.b", no: "shop_.b shop_x.b"},
		"not database":       {lists: lists{dbOut: "mysql,elsewhere"}, yes: "inventory.orders", no: "elsewhere.t mysql.user"},
		"table":              {lists: lists{in: "inventory.orders,inventory.customers"}, yes: "inventory.orders inventory.Customers", no: "inventory.orders2 other.orders"},
		"anchored":           {lists: lists{in: "orders"}, no: "inventory.orders"},
		"captured by regexp": {lists: lists{in: `inventory\.orders.*,inventory\.(customers|sentinel)`}, yes: "inventory.orders_2026 inventory.sentinel", no: "inventoryXorders.t inventory.sentinels"},
		"not table":          {lists: lists{out: `inventory\.hidden,.*\.tmp_.*`}, yes: "inventory.orders", no: "inventory.hidden x.tmp_1"},
		"both levels":        {lists: lists{dbIn: "inventory", in: ".*[.]orders"}, yes: "inventory.orders", no: "shop.orders inventory.t"},
		"mixed levels":       {lists: lists{dbOut: "shop", in: ".*[.]orders"}, yes: "inventory.orders", no: "shop.orders inventory.t"},
		"comma in a pattern": {lists: lists{in: `inventory\.t[0-9]{1\,2}`}, yes: "inventory.t1 inventory.t12", no: "inventory.t123"},
		"other scripts":      {lists: lists{in: `магазин\.заказы,商店\.订单`}, yes: "магазин.заказы 商店.订单", no: "МАГАЗИН.заказы"},
		"only commas":        {lists: lists{in: ","}, no: "inventory.orders"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &file{value: map[string]string{}}
			if c.builtin {
				f.set("table.ignore.builtin", "false")
			}
			for k, v := range map[string]string{"database.include.list": c.dbIn, "database.exclude.list": c.dbOut, "table.include.list": c.in, "table.exclude.list": c.out} {
				if v != "" {
					f.set(k, v)
				}
			}
			checked := &checked{file: f, table: newTable(InConnector)}
			filter := checked.filter()
			for _, want := range []bool{true, false} {
				for _, id := range strings.Fields(map[bool]string{true: c.yes, false: c.no}[want]) {
					db, table, _ := strings.Cut(id, ".")
					if got := filter.Captured(db, table); got != want {
						t.Errorf("%s: captured %v", id, got)
					}
				}
			}
		})
	}
}

func TestSplitPatterns(t *testing.T) {
	for in, want := range map[string][]string{
		"a,b":          {"a", "b"},
		" a , b ":      {"a", "b"},
		"a,,b,":        {"a", "b"},
		`a\,b,c`:       {"a,b", "c"},
		`a\\,b`:        {`a\\`, "b"},
		`a\.b,c\.d`:    {`a\.b`, `c\.d`},
		`x{1\,3},[,]y`: {"x{1,3}", "[", "]y"}, // a class does not protect a comma, as in Debezium
	} {
		got, err := splitPatterns(in)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v; want %q", in, got, err, want)
		}
	}
	if _, err := splitPatterns(`a\`); err == nil {
		t.Error("a backslash at the end is taken")
	}
}
