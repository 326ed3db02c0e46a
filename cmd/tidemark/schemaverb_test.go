package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/binlog/server"
	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
	"github.com/tidemark-cdc/tidemark/schema"
)

func TestSchemaRefuses(t *testing.T) {
	const url = "mysql://u:s3cret@h/db"
	for name, test := range map[string]struct {
		args  []string
		flags schemaFlags
		want  string
	}{
		"nothing":        {want: "no server to ask"},
		"tables only":    {args: []string{"a.b", "c.d"}, want: "no server to ask"},
		"no table":       {args: []string{url}, want: "no table: give at least one"},
		"two URLs":       {args: []string{url, url, "t"}, want: "more than one URL"},
		"URL and config": {args: []string{url, "t"}, flags: schemaFlags{config: "c.json"}, want: "a URL and --config"},
		"format":         {args: []string{url, "t"}, flags: schemaFlags{format: "xml"}, want: "--format xml is neither connect nor avro"},
		"another scheme": {args: []string{"postgres://u@h/db", "t"}, want: "must begin with mysql:// or mariadb://"},
		"no such file":   {args: []string{"t"}, flags: schemaFlags{config: "missing.json"}, want: "missing.json"},
	} {
		_, _, err := schemaConfig(test.args, &test.flags, zap.NewNop())
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v; want %q", name, err, test.want)
		} else if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the password is in %v", name, err)
		}
	}
}

func TestFindTable(t *testing.T) {
	tables := []server.TableID{
		{Database: "shop", Name: "orders"},
		{Database: "shop", Name: "order_items"},
		{Database: "old", Name: "orders"},
		{Database: "shop", Name: "t"},
		{Database: "a.b", Name: "c.d"},
		{Database: "shop", Name: "Mixed"},
		{Database: "old", Name: "u"},
		{Database: "new", Name: "u"},
		{Database: "old", Name: "hidden"},
	}
	filter := schemaConnector(t, map[string]string{"table.exclude.list": `.*\.hidden,old\.orders`}).Filter
	const unseen = " (tables on which the user has no privilege are not seen)"
	for _, c := range []struct {
		name       string
		ignoreCase bool
		want       string // database/table, or the error
	}{
		{"shop.orders", false, "shop/orders"},
		{"old.orders", false, "old/orders"}, // though it is not captured
		{"orders", false, "shop/orders"},    // the captured one
		{"a.b.c.d", false, "a.b/c.d"},
		{"c.d", false, "a.b/c.d"},
		{"shop.mixed", true, "shop/Mixed"},
		{"MIXED", true, "shop/Mixed"},
		{"shop.mixed", false, "there is no table shop.mixed; names near it: shop.Mixed" + unseen},
		{"shop.odrers", false, "there is no table shop.odrers; names near it: shop.orders, old.orders" + unseen},
		{"new.orders", false, "there is no table new.orders; names near it: shop.orders, old.orders" + unseen},
		{"shop.orders_item", false, "there is no table shop.orders_item" + unseen},
		{"order_item", false, "there is no table order_item; names near it: shop.order_items" + unseen},
		{"hidden", false, "there is no table hidden that the connector captures: the connector does not capture old.hidden (table.include.list, table.exclude.list); to see its schemas all the same give old.hidden"},
		{"x", false, "there is no table x" + unseen},
		{"u", false, "there is more than one table u: give new.u or old.u"},
	} {
		f := tableFinder{tables: tables, filter: filter, ignoreCase: c.ignoreCase}
		id, err := f.find(c.name)
		got := id.Database + "/" + id.Name
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// TestFindDefinition has what is not among the tables: views, the server's own tables, and what the server does not show.
func TestFindDefinition(t *testing.T) {
	denied := errors.New("denied")
	asked := 0
	f := tableFinder{
		tables: []server.TableID{
			{Database: "shop", Name: "orders"}, {Database: "shop", Name: "items"}, {Database: "shop2", Name: "y"}, {Database: "other", Name: "x"},
		},
		filter: schemaConnector(t, map[string]string{"database.include.list": "shop,shop2"}).Filter,
		show: func(database, table string) (string, error) {
			asked++
			switch database + "." + table {
			case "shop.v", "a.b.v", "sys.version":
				return "", fmt.Errorf("%s.%s is a view, not a table%w", database, table, errEmpty{server.ErrNoTable})
			case "shop.orders", "mysql.user", "other.x":
				return "CREATE TABLE of " + table, nil
			case "shop.secret", "shop.v2":
				return "", fmt.Errorf("%w%w", denied, errEmpty{server.ErrAccess})
			case "shop2.v2":
				return "", fmt.Errorf("GRANT SELECT: ERROR 1142 (42000): SHOW VIEW command denied to user%w", errEmpty{server.ErrAccess})
			}
			return "", errEmpty{server.ErrNoTable}
		},
	}
	const builtin = "is no table with rows of its own, so that the binlog has no changes of it"
	for name, want := range map[string]string{
		"shop.orders":               "CREATE TABLE of orders",
		"orders":                    "CREATE TABLE of orders",
		"other.x":                   "CREATE TABLE of x", // with a warning
		"x":                         "the connector does not capture the database other (database.include.list, database.exclude.list); to see its schemas all the same give other.x",
		"shop.v":                    "shop.v is a view: the binlog has no changes of it",
		"v":                         "shop.v is a view",
		"a.b.v":                     "a.b.v is a view",
		"shop2.v2":                  "shop2.v2 is a view", // which the user may not see
		"v2":                        "shop2.v2 is a view", // nor whether shop has one
		"secret":                    "denied",
		"mysql.user":                "CREATE TABLE of user", // with a warning
		"sys.version":               "sys.version is a view",
		"Information_Schema.TABLES": builtin,
		"performance_schema.x":      builtin,
		"shop.secret":               "denied",
		"shop.none":                 "there is no table shop.none",
		"none":                      "there is no table none",
		".":                         "there is no table .",
		"shop.":                     "there is no table shop.",
	} {
		_, sql, err := f.definition(name)
		got := sql
		if err != nil {
			got = err.Error()
			if !errors.Is(err, server.ErrNoTable) && !errors.Is(err, server.ErrAccess) {
				t.Errorf("%s: %v is not about the table", name, err)
			}
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	for id, want := range map[server.TableID]string{
		{Database: "shop", Name: "orders"}: "",
		{Database: "other", Name: "x"}:     "database.include.list",
		{Database: "mysql", Name: "user"}:  "table.ignore.builtin",
		{Database: "sys", Name: "config"}:  "table.ignore.builtin",
	} {
		if got := f.notCaptured(id); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	f.tables = nil
	for i := range 100 {
		f.tables = append(f.tables, server.TableID{Database: fmt.Sprintf("shop%d", i), Name: "t"})
	}
	f.filter, asked = new(config.Filter), 0
	if _, _, err := f.definition("none"); err == nil || asked > 20 {
		t.Errorf("%d questions, %v", asked, err)
	}
}

// errEmpty is a kind of error without a text of its own.
type errEmpty struct{ kind error }

func (errEmpty) Error() string   { return "" }
func (e errEmpty) Unwrap() error { return e.kind }

// TestOtherKindOfServer has how to name the other kind, for a URL and a file.
func TestOtherKindOfServer(t *testing.T) {
	maria, mysql := &server.Info{Flavor: server.MariaDB, Version: "11.8"}, &server.Info{Version: "8.4"}
	for _, test := range []struct {
		c    config.Connector
		info *server.Info
		want string
	}{
		{config.Connector{}, maria, "begin the URL with mariadb:// instead of mysql://"},
		{config.Connector{MariaDB: true}, mysql, "begin the URL with mysql:// instead of mariadb://"},
		{config.Connector{File: "c.json"}, maria, "set connector.class to io.debezium.connector.mariadb.MariaDbConnector"},
	} {
		if err := otherKind(&test.c, "h:1", test.info); !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "h:1") {
			t.Errorf("%v, want %q", err, test.want)
		}
	}
}

// TestGoodTablesArePrinted holds that one that has no schemas does not keep the others from being printed.
func TestGoodTablesArePrinted(t *testing.T) {
	connector := schemaConnector(t, nil)
	em, err := newEmitter(connector, nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	var definitions []*schema.Definition
	for _, sql := range []string{"CREATE TABLE `a` (`x` int)", "CREATE TABLE `b` (`c` circle)", "CREATE TABLE `d` (`x` int)"} {
		def, err := schema.NewCatalog(catalogOptions(connector)).ReadCreateTable("db", sql)
		if err != nil {
			t.Fatal(err)
		}
		definitions = append(definitions, def)
	}
	var out bytes.Buffer
	err = writeDefinitions(em, connector, definitions, &schemaFlags{}, &out)
	if err == nil || !strings.Contains(err.Error(), "table db.b: ") {
		t.Error(err)
	}
	if got := out.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, `{"table":"db.a"`) || !strings.Contains(got, `{"table":"db.d"`) {
		t.Error(got)
	}
}

// schemaConnector loads a connector with settings beyond the usual ones.
func schemaConnector(t *testing.T, settings map[string]string) *config.Connector {
	t.Helper()
	all := map[string]string{
		"connector.class": "io.debezium.connector.mysql.MySqlConnector", "topic.prefix": "p", "database.hostname": "h", "database.user": "u",
		"database.server.id": "1", "snapshot.mode": "no_data",
	}
	for key, value := range settings {
		all[key] = value
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "c.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	connector, names, err := schemaConfig([]string{"t"}, &schemaFlags{config: path, lenient: true}, zap.NewNop())
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	return connector
}

// TestSchemaTexts has what is printed of a table: by converter, in the other format, of one side.
func TestSchemaTexts(t *testing.T) {
	const avroConverter, url = "io.confluent.connect.avro.AvroConverter", "http://registry:8081"
	both := map[string]string{
		"key.converter": avroConverter, "key.converter.schema.registry.url": url, "value.converter": avroConverter, "value.converter.schema.registry.url": url,
	}
	with := func(more map[string]string) map[string]string {
		for key, value := range both {
			if _, ok := more[key]; !ok {
				more[key] = value
			}
		}
		return more
	}
	const (
		keyed   = "CREATE TABLE `t` (`a-b` int NOT NULL, `d` decimal(5,2) DEFAULT '1.50' COMMENT '<&>', PRIMARY KEY (`a-b`)) ENGINE=InnoDB"
		keyless = "CREATE TABLE `t` (`a` int NOT NULL) ENGINE=InnoDB"

		connectKey = `"key":{"schema":{"type":"struct","fields":[{"type":"int32","optional":false,"field":"a-b"}],"optional":false,"name":"p.db.t.Key"}}`
		avroKey    = `"key":{"subject":"p.db.t-key","schema":{"type":"record","name":"Key","namespace":"p.db.t","fields":[{"name":"a_b","type":"int"}],"connect.name":"p.db.t.Key"}}`
	)
	for name, c := range map[string]struct {
		settings map[string]string
		flags    schemaFlags
		sql      string
		want     []string // pieces of the text, or of the error
		without  string
	}{
		"JSON": {nil, schemaFlags{}, keyed, []string{`{"table":"db.t","topic":"p.db.t",` + connectKey + `,"value":{"schema":{"type":"struct"`, `"default":"AJY="`}, "subject"},
		"JSON with numbers": {
			map[string]string{"value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.decimal.format": "NUMERIC"},
			schemaFlags{value: true},
			keyed,
			[]string{`"topic":"p.db.t","value":{"schema":`, `"default":1.50`},
			`"key"`,
		},
		"comments as they are": {map[string]string{"include.schema.comments": "true"}, schemaFlags{}, keyed, []string{`"doc":"<&>"`}, "subject"},
		"Avro": {both, schemaFlags{}, keyed, []string{
			avroKey + `,"value":{"subject":"p.db.t-value","schema":{"type":"record","name":"Envelope","namespace":"p.db.t","fields":[`, `"connect.default":"\u0000` + "\u0096" + `"`,
		}, ""},
		"Avro, the key only":           {both, schemaFlags{key: true}, keyed, []string{`{"table":"db.t","topic":"p.db.t",` + avroKey + `}` + "\n"}, `"value"`},
		"both sides by name":           {both, schemaFlags{key: true, value: true}, keyed, []string{avroKey, `"value":{"subject"`}, ""},
		"Avro of a JSON connector":     {nil, schemaFlags{format: avroSchema}, keyed, []string{avroKey, `"subject":"p.db.t-value"`}, ""},
		"Connect of an Avro connector": {both, schemaFlags{format: connectSchema}, keyed, []string{strings.ReplaceAll(connectKey, "a-b", "a_b")}, "subject"},
		"the value alone in Avro": {
			map[string]string{"value.converter": avroConverter, "value.converter.schema.registry.url": url},
			schemaFlags{},
			keyed,
			[]string{strings.ReplaceAll(connectKey, "a-b", "a_b"), `"value":{"subject":"p.db.t-value"`},
			"",
		},
		"other subjects": {
			with(map[string]string{"value.converter.value.subject.name.strategy": "io.confluent.kafka.serializers.subject.TopicRecordNameStrategy"}),
			schemaFlags{value: true},
			keyed,
			[]string{`"value":{"subject":"p.db.t-p.db.t.Envelope"`},
			"",
		},
		"without connect properties": {
			with(map[string]string{"key.converter.connect.meta.data": "false"}), schemaFlags{key: true}, keyed, []string{`"fields":[{"name":"a_b","type":"int"}]}}`}, "connect.",
		},
		"no key":         {both, schemaFlags{}, keyless, []string{`"key":null,"value":{`}, ""},
		"no key in JSON": {nil, schemaFlags{key: true}, keyless, []string{`{"table":"db.t","topic":"p.db.t","key":null}`}, "value"},
		"a name that Avro does not take": {
			with(map[string]string{"topic.prefix": "a-b"}), schemaFlags{}, keyless, []string{"table db.t: ", "schema.name.adjustment.mode"}, "{",
		},
		"a type of a later server": {nil, schemaFlags{}, "CREATE TABLE `t` (`c` circle)", []string{`table db.t: column "c": its type CIRCLE is not known`}, "{"},
		"two columns of one name":  {both, schemaFlags{}, "CREATE TABLE `t` (`a-b` int, `a_b` int)", []string{"table db.t: ", "avro_unicode"}, "{"},
	} {
		connector := schemaConnector(t, c.settings)
		if c.flags.format == avroSchema {
			connector.UseAvro(url)
		}
		em, err := newEmitter(connector, nil, zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		def, err := schema.NewCatalog(catalogOptions(connector)).ReadCreateTable("db", c.sql)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		text, err := newTableText(em, connector, def, &c.flags)
		if err != nil {
			got.WriteString(err.Error())
		} else if err := writeTables(&got, []tableText{text}, false); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(got.String(), want) {
				t.Errorf("%s: got %s, want %s", name, got.String(), want)
			}
		}
		if c.without != "" && strings.Contains(got.String(), c.without) {
			t.Errorf("%s: got %s, which has %s", name, got.String(), c.without)
		}
	}
}

func TestSchemaPretty(t *testing.T) {
	var got bytes.Buffer
	text := tableText{Table: "a.b", Topic: "t", Key: noSchema, Value: schemaText{Schema: json.RawMessage(`{"doc":"<"}`)}}
	if err := writeTables(&got, []tableText{text, text}, true); err != nil {
		t.Fatal(err)
	}
	one := `{
  "table": "a.b",
  "topic": "t",
  "key": null,
  "value": {
    "schema": {
      "doc": "<"
    }
  }
}
`
	if diff := cmp.Diff(one+one, got.String()); diff != "" {
		t.Error(diff)
	}
}
