package emitter

import (
	"regexp"
	"strings"
	"testing"
)

func TestTopicNames(t *testing.T) {
	const (
		named   = "DefaultTopicNamingStrategy"
		short   = "SchemaTopicNamingStrategy"
		unicode = "DefaultUnicodeTopicNamingStrategy"
	)
	for _, c := range []struct{ class, delimiter, prefix, database, table, want string }{
		{"", "", "dbserver1", "inventory", "orders", "dbserver1.inventory.orders"},
		{named, "", "names", "my-db.v1", "tab.with.dots", "names.my-db.v1.tab.with.dots"},
		{named, "", "names", "1db", "2 tables", "names.1db.2_tables"},
		{named, "", "names", "inventory", "ta$ble#é", "names.inventory.ta_ble__"},
		{named, "", "names", "库名", "表", "names.__._"},
		{named, "", "p", "d", "😀", "p.d.__"},
		{named, "", "p", "d", strings.Repeat("x", 300), "p.d." + strings.Repeat("x", 245)},
		{named, "_", "topics-filters", "inventory", "orders", "topics-filters_inventory_orders"},
		{named, "-", "p", "p", "p", "p-p-p"},
		{named, ".", "p", "d", "\t", "p.d"}, // Java's blank parts are left out
		{short, "", "p", "inventory", "orders", "p.orders"},
		{short, "_", "p", "inventory", "o ö", "p_o__"},
		{unicode, "", "p", "my-db.v1", "o_ö r", "p.my-db.v1.o_u005f_u00f6_u0020r"},
		{unicode, "", "p", "d", "表\t😀", "p.d._u8868_u009_ud83d_ude00"},
		{unicode, "", "p", "d", strings.Repeat("_", 100), "p.d." + strings.Repeat("_u005f", 40) + "_u005"},
		{"SchemaUnicodeTopicNamingStrategy", "", "p", "d", "a_b", "p.a_u005fb"},
	} {
		n, err := newNaming(Naming{Class: c.class, Delimiter: c.delimiter}, c.prefix)
		must(t, err)
		if got, err := n.table(c.database, c.table); got != c.want || err != nil {
			t.Errorf("%s %s.%s: got %s and error %v, want %s", c.class, c.database, c.table, got, err, c.want)
		}
		if name, _, ok := n.keyField(c.database, c.table); ok {
			t.Errorf("%s adds the field %s to keys", c.class, name)
		}
	}
}

// TestTopicRouting has tables merged into one topic, as DefaultRegexTopicNamingStrategy and Java's Matcher do.
func TestTopicRouting(t *testing.T) {
	for _, c := range []struct{ class, regex, replacement, database, table, want string }{
		{"Default", `(.*)\.shard_\d+`, `$1.all`, "db", "shard_12", "p.db.all"},
		{"Default", `(.*)\.shard_\d+`, `$1.all`, "db", "orders", "p.db.orders"},
		{"Default", `db\.orders`, `x`, "db", "orders", "p.db.orders"}, // the pattern has to match the whole name
		{"Default", `p\.(?<db>[^.]+)\.(.*)`, `${db}-$2`, "db", "orders", "db-orders"},
		{"Default", `(.*)`, `\$1`, "db", "orders", ""},       // $1 is no name for Kafka
		{"Default", `(.*)`, `$10`, "db", "o", "p.db.o0"},     // there is no group 10: group 1, and a 0
		{"Default", `(x)?(.*)`, `$1$2`, "db", "o", "p.db.o"}, // a group that matched nothing
		{"Default", `.*`, ``, "db", "o", "p.db.o"},           // an empty name is none
		{"Default", `p.db|p.db.o`, `x`, "db", "o", "x.o"},    // the first that is found is replaced, not the whole
		{"Default", `(.*)_b`, `$1`, "db", "a b", "p.db.a"},   // illegal characters are replaced before
		{"Schema", `p\.(.*)`, `$1`, "db", "orders", "orders"},
	} {
		n, err := newNaming(Naming{
			Class: c.class + "RegexTopicNamingStrategy", Regex: regexp.MustCompile(c.regex), Replacement: c.replacement,
		}, "p")
		must(t, err)
		got, err := n.table(c.database, c.table)
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s to %s: got %q and error %v, want %q", c.regex, c.replacement, got, err, c.want)
		}
		if _, _, ok := n.keyField("db", "o"); ok {
			t.Error("a field is added to keys that need not be unique")
		}
	}
	for _, c := range []struct{ regex, replacement, want string }{
		{"", "", "p.db.a ö"}, // not made legal
		{`p\.(.*)\.a.*`, "$1", "db"},
		{`p\.(.*)\.b.*`, "$1", "p.db.a ö"},
	} {
		naming := Naming{
			Class: "DefaultRegexTopicNamingStrategy", Regex: regexp.MustCompile(".*"), Replacement: "all",
			UniqueKey: true, KeyReplacement: c.replacement,
		}
		if c.regex != "" {
			naming.KeyRegex = regexp.MustCompile(c.regex)
		}
		n, err := newNaming(naming, "p")
		must(t, err)
		if name, got, ok := n.keyField("db", "a ö"); name != "__dbz__physicalTableIdentifier" || got != c.want || !ok {
			t.Errorf("%s: got %s=%s, want %s", c.regex, name, got, c.want)
		}
	}
}

func TestNamingThatCannotBe(t *testing.T) {
	regex := regexp.MustCompile("(a)(?<b>b)")
	for _, c := range []struct {
		naming Naming
		want   string
	}{
		{Naming{Class: "com.acme.Mine"}, "io.debezium.schema.com.acme.Mine is not one of the connector's"},
		{Naming{Class: "DefaultRegexTopicNamingStrategy"}, "needs topic.regex"},
		{Naming{Class: "DefaultRegexTopicNamingStrategy", Regex: regex, Replacement: "$3"}, "no group 3"},
		{Naming{Class: "DefaultRegexTopicNamingStrategy", Regex: regex, Replacement: "${c}"}, "names no group"},
		{Naming{Class: "DefaultRegexTopicNamingStrategy", Regex: regex, Replacement: "${b"}, "names no group"},
		{Naming{Class: "DefaultRegexTopicNamingStrategy", Regex: regex, Replacement: "a$"}, "the $ names no group"},
		{Naming{Class: "DefaultRegexTopicNamingStrategy", Regex: regex, Replacement: `a\`}, "escapes nothing"},
		{
			Naming{Class: "DefaultRegexTopicNamingStrategy", Regex: regex, Replacement: "x", UniqueKey: true, KeyRegex: regex, KeyReplacement: "$9"},
			"topic.key.field.replacement",
		},
	} {
		if _, err := New(Config{Prefix: "p", Naming: c.naming}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

func TestSideTopics(t *testing.T) {
	for _, c := range []struct {
		naming                             Naming
		schemaChanges, transactions, beats string
	}{
		{Naming{}, "p", "p.transaction", "__debezium-heartbeat.p"},
		{Naming{Delimiter: "_", Transaction: "tx", HeartbeatPrefix: "hb"}, "p", "p_tx", "hb_p"},
		{Naming{HeartbeatTopic: "beats", HeartbeatPrefix: "hb"}, "p", "p.transaction", "beats"},
	} {
		n, err := newNaming(c.naming, "p")
		must(t, err)
		if a, b, c := n.schemaChangeTopic() == c.schemaChanges, n.transactionTopic() == c.transactions, n.heartbeatTopic() == c.beats; !a || !b || !c {
			t.Errorf("got %s, %s, %s", n.schemaChangeTopic(), n.transactionTopic(), n.heartbeatTopic())
		}
	}
}

// A connector's topics are told from those of others, also of one whose prefix begins in the same way.
func TestTopicsOfAConnector(t *testing.T) {
	for topic, want := range map[string]bool{
		"prod.shop.orders": true, "prod": true, "prod.transaction": true, "__debezium-heartbeat.prod": true,
		"prod2.shop.orders": false, "prod2": false, "other": false, "__debezium-heartbeat.prod2": false, "aprod": false, "connect-offsets": false,
	} {
		if got := (Naming{}).Writes("prod", topic); got != want {
			t.Errorf("%s: %v", topic, got)
		}
	}
	for _, tt := range []struct {
		naming Naming
		topic  string
		want   bool
	}{
		{Naming{HeartbeatTopic: "beats"}, "beats", true},
		{Naming{Delimiter: "_"}, "prod_shop_orders", true},
		{Naming{Delimiter: "_"}, "prod.shop.orders", false},
		{Naming{Class: "DefaultUnicodeTopicNamingStrategy"}, "prod.shop.orders", true},
		{Naming{Class: "DefaultRegexTopicNamingStrategy", Regex: regexp.MustCompile("(.*)orders"), Replacement: "$1all"}, "wherever", true},
		{Naming{Class: "DefaultRegexTopicNamingStrategy", Regex: regexp.MustCompile("(.*)orders"), Replacement: "$1all"}, "__transaction_state", false},
		{Naming{Class: "DefaultRegexTopicNamingStrategy", Regex: regexp.MustCompile("(.*)orders"), Replacement: "$1all"}, "__debezium-heartbeat.prod", true},
	} {
		if got := tt.naming.Writes("prod", tt.topic); got != tt.want {
			t.Errorf("%s with %+v: %v", tt.topic, tt.naming, got)
		}
	}
}
