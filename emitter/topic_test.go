package emitter

import (
	"strings"
	"testing"
)

func TestTopicName(t *testing.T) {
	for _, c := range []struct{ prefix, database, table, want string }{
		{"dbserver1", "inventory", "orders", "dbserver1.inventory.orders"},
		{"names", "my-db.v1", "tab.with.dots", "names.my-db.v1.tab.with.dots"},
		{"names", "1db", "2 tables", "names.1db.2_tables"},
		{"names", "inventory", "ta$ble#é", "names.inventory.ta_ble__"},
		{"names", "库名", "表", "names.__._"},
		{"p", "d", "😀", "p.d.__"},
		{"p", "d", strings.Repeat("x", 300), "p.d." + strings.Repeat("x", 245)},
	} {
		if got := TopicName(c.prefix, c.database, c.table); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}
