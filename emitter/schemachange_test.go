package emitter

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// swap is RENAME TABLE a TO tmp, b TO a, tmp TO b.
func swap() *binlog.SchemaChange {
	def := func(name string) *schema.Definition { return &schema.Definition{Database: "db", Name: name} }
	tables := []string{"a", "tmp", "b"}
	record := func(ddl string, topic bool, changes ...schema.Change) schema.SchemaChange {
		return schema.SchemaChange{Database: "db", DDL: ddl, Tables: tables, Changes: changes, Topic: topic, History: true}
	}
	return &binlog.SchemaChange{
		Info: binlog.Info{File: "f", Pos: 100, Thread: -1},
		Changes: []schema.SchemaChange{
			record("RENAME TABLE a TO tmp", true),
			record("RENAME TABLE b TO a", true, schema.Change{Kind: schema.AlterTable, Database: "db", Table: "a", PreviousDatabase: "db", PreviousTable: "b", Definition: def("a")}),
			record("RENAME TABLE tmp TO b", true, schema.Change{Kind: schema.AlterTable, Database: "db", Table: "b", PreviousDatabase: "db", PreviousTable: "tmp", Definition: def("b")}),
		},
		Before: offset.Offset{File: "f", Pos: 90},
		Record: offset.Offset{File: "f", Pos: 200},
		Offset: offset.Offset{File: "f", Pos: 200, ServerID: 1},
	}
}

// TestI3_RenameOfThreeTables gives three records; a restart from the first or second repeats the statement.
func TestI3_RenameOfThreeTables(t *testing.T) {
	for _, c := range []struct {
		name    string
		cfg     Config
		topic   [3]bool
		offsets []int64
	}{
		{"all", Config{SchemaChanges: true}, [3]bool{true, true, true}, []int64{90, 90, 200}},
		{"the topic has only two", Config{SchemaChanges: true}, [3]bool{true, true, false}, []int64{90, 200}},
		{"the topic has only the first", Config{SchemaChanges: true}, [3]bool{true, false, false}, []int64{200}},
		{"the topic has none", Config{SchemaChanges: true}, [3]bool{}, nil},
		{"no schema changes", Config{}, [3]bool{true, true, true}, nil},
	} {
		cfg := c.cfg
		cfg.Prefix = "p"
		em, err := New(cfg)
		must(t, err)
		ev := swap()
		for i := range ev.Changes {
			ev.Changes[i].Topic = c.topic[i]
		}
		var b Batch
		must(t, em.SchemaChange(&b, ev))
		var got []int64
		for _, r := range b.Records {
			got = append(got, r.Offset.Pos)
			if r.Topic != "p" || r.Partition != 0 || string(r.Key) != `{"databaseName":"db"}` || !strings.Contains(string(r.Value), `"table":"a,tmp,b"`) {
				t.Errorf("%s: %s/%d %s %s", c.name, r.Topic, r.Partition, r.Key, r.Value)
			}
		}
		if !slices.Equal(got, c.offsets) {
			t.Errorf("%s: positions %v, want %v", c.name, got, c.offsets)
		}
	}
}

// TestI3_SchemaChangeInATransaction is CREATE TABLE … SELECT: its records are in the transaction.
func TestI3_SchemaChangeInATransaction(t *testing.T) {
	em := transactional(t, Config{SchemaChanges: true})
	var b Batch
	must(t, em.Transaction(&b, &binlog.Begin{ID: "u:7", Offset: at(100)}))
	must(t, em.SchemaChange(&b, swap()))
	for _, r := range b.Records[1:] {
		if _, ok := r.Offset.Member("transaction_id"); !ok {
			t.Errorf("the offset %s is not in the transaction", r.Offset)
		}
		if strings.Contains(string(r.Value), "u:7") {
			t.Errorf("a schema change has a transaction block: %s", r.Value)
		}
	}
	insert(t, em, &b, "b")
	if got := string(b.Records[len(b.Records)-1].Value); !strings.Contains(got, `"transaction":{"id":"u:7","total_order":1,"data_collection_order":1}`) {
		t.Errorf("got %s", got)
	}
}

// TestSchemaChangeText has what no capture has: odd names, labels in other quotes, columns without anything known, the
// formats without schemas and defaults, another connector.
func TestSchemaChangeText(t *testing.T) {
	text := "x'y"
	ev := &binlog.SchemaChange{
		Info: binlog.Info{TsMicros: 1795979007728187, ServerID: 7, GTID: gtid("0-1-9"), File: "f", Pos: 100, Thread: 5},
		Row:  3,
		Changes: []schema.SchemaChange{
			{Database: "", DDL: "SET x=\"1\"", Tables: nil, Topic: true},
			{Database: "d", DDL: "FLUSH TABLES", Tables: []string{}, Topic: true},
			{Database: "d", DDL: "CREATE TABLE …", Tables: []string{`a"b`}, Topic: true, Changes: []schema.Change{
				{Kind: schema.CreateTable, Database: "d", Table: `a"b`, Definition: &schema.Definition{
					DefaultCharset: "latin1", Comment: "c", Key: []string{"é"},
					Columns: []schema.ColumnDef{
						{
							Name: "é", Type: "ENUM", JDBCType: 1, Length: 1, Scale: 2, Charset: "gbk", Nullable: true, AutoInc: true, Generated: true,
							HasDefault: true, Default: &text, Comment: "d", Labels: []string{"a", "b''c"}, Expression: "enum expr",
						},
						{Name: "s", Type: "SET", JDBCType: 1, Length: -1, Scale: -1, Labels: []string{"a"}, Quoted: []string{`"a"`}},
						{Name: "j", Type: "JSON", JDBCType: 1111, Length: -1, Scale: -1},
					},
				}},
				{Kind: schema.DropTable, Database: "d", Table: "x"},
				{Kind: schema.AlterTable, Database: "d", Table: "y"},
			}},
		},
	}
	em, err := New(Config{
		Prefix: "p", Connector: "mariadb", SchemaChanges: true, Key: Converter{Schemas: true},
		Clock: func() time.Time { return time.UnixMilli(42) },
	})
	must(t, err)
	var b Batch
	must(t, em.SchemaChange(&b, ev))
	const source = `{"source":{"version":"3.6.1.Final","connector":"mariadb","name":"p","ts_ms":1795979007728,"snapshot":null,"db":"%[1]s",` +
		`"sequence":null,"ts_us":1795979007728000,"ts_ns":1795979007728000000,"table":%[2]s,"server_id":7,"gtid":"0-1-9","file":"f","pos":100,` +
		`"row":3,"thread":5,"query":null},"ts_ms":42,"databaseName":"%[1]s","schemaName":null,"ddl":"%[3]s","tableChanges":[%[4]s]}`
	const columns = `{"name":"é","jdbcType":1,"nativeType":null,"typeName":"ENUM","typeExpression":"enum expr","charsetName":"gbk","length":1,` +
		`"scale":2,"position":1,"optional":true,"autoIncremented":true,"generated":true,"comment":"d","defaultValueExpression":"x'y",` +
		`"enumValues":["'a'","'b''c'"]},` +
		`{"name":"s","jdbcType":1,"nativeType":null,"typeName":"SET","typeExpression":"SET","charsetName":null,"length":null,"scale":null,` +
		`"position":2,"optional":false,"autoIncremented":false,"generated":false,"comment":null,"defaultValueExpression":null,` +
		`"enumValues":["\"a\""]},` +
		`{"name":"j","jdbcType":1111,"nativeType":null,"typeName":"JSON","typeExpression":"JSON","charsetName":null,"length":null,` +
		`"scale":null,"position":3,"optional":false,"autoIncremented":false,"generated":false,"comment":null,` +
		`"defaultValueExpression":null,"enumValues":null}`
	want := []string{
		fmt.Sprintf(source, "", "null", `SET x=\"1\"`, ""),
		fmt.Sprintf(source, "d", `""`, "FLUSH TABLES", ""),
		fmt.Sprintf(source, "d", `"a\"b"`, "CREATE TABLE …",
			`{"type":"CREATE","id":"\"d\".\"a\"\"b\"","table":{"defaultCharsetName":"latin1","primaryKeyColumnNames":["é"],"columns":[`+columns+`],"comment":"c"}},`+
				`{"type":"DROP","id":"\"d\".\"x\"","table":null},{"type":"ALTER","id":"\"d\".\"y\"","table":null}`),
	}
	if len(b.Records) != len(want) {
		t.Fatalf("%d records", len(b.Records))
	}
	for i, r := range b.Records {
		if string(r.Value) != want[i] {
			t.Errorf("record %d:\ngot  %s\nwant %s", i, r.Value, want[i])
		}
		if !strings.Contains(string(r.Key), `"name":"io.debezium.connector.mariadb.SchemaChangeKey","version":1},"payload":{"databaseName":`) {
			t.Errorf("key %s", r.Key)
		}
		if r.Headers != nil {
			t.Errorf("headers %v", r.Headers)
		}
	}
}

// TestRowsAfterOtherEvents: a row after another event still has its own source, not that of the other.
func TestRowsAfterOtherEvents(t *testing.T) {
	em := transactional(t, Config{SchemaChanges: true})
	rows := &binlog.Rows{Op: binlog.Create, Table: keyTable("orders"), After: keyCells(1), Info: binlog.Info{File: "rows", Pos: 77}}
	var b Batch
	feed(t, em, &b, rows)
	must(t, em.SchemaChange(&b, swap()))
	must(t, em.Transaction(&b, &binlog.Begin{ID: "u:7", Info: binlog.Info{File: "begin"}}))
	feed(t, em, &b, rows)
	must(t, em.Heartbeat(&b, at(1))) // in the middle of an event
	must(t, em.Row(&b, rows))
	for i, n := range map[int]int{0: 0, 5: 1, 7: 2} {
		r := b.Records[i]
		if !strings.Contains(string(r.Value), `"file":"rows","pos":77,`) || (n > 0) != strings.Contains(string(r.Value), fmt.Sprintf(`"total_order":%d`, n)) {
			t.Errorf("record %d: %s", i, r.Value)
		}
	}
}
