package emitter

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// TestGoldenTruncate has the records of a Debezium run with skipped.operations=none, once by a version of the table that
// had rows and once by its definition.
func TestGoldenTruncate(t *testing.T) {
	records := lines[sideGolden](t, "topics-keys-truncate.jsonl.gz")
	for _, known := range []bool{true, false} {
		p := newPlayer(t, Config{Prefix: "topics-keys", Transactions: !known}, records)
		for _, r := range records {
			pay := r.payload(t)
			golden := goldenRecord{Topic: r.Topic, Key: r.Key, Value: r.Value, Headers: r.Headers}
			table := sideTable(t, golden, parseGolden(t, *r.Value))
			ev := &binlog.Truncate{
				Info: pay.info(), Database: table.Database, Table: table.Name, Record: plain(t, r.Offset), Offset: offset.Offset{File: "after", Pos: 4},
			}
			ev.Info.TsMicros += 999
			if known {
				must(t, p.em.Begin(&binlog.Rows{Table: table, Row: 5}))
			} else {
				ev.Definition = &schema.Definition{Database: table.Database, Name: table.Name}
				for _, c := range table.Columns {
					ev.Definition.Columns = append(ev.Definition.Columns, *c.Def)
				}
			}
			p.now = time.Unix(0, pay.TsNs)
			for range 2 {
				p.batch.Reset()
				must(t, p.em.Truncate(&p.batch, ev))
			}
			if len(p.batch.Records) != 1 {
				t.Fatalf("%d records", len(p.batch.Records))
			}
			got := p.batch.Records[0]
			compareSide(t, r, got)
			if got.Offset.String() != r.Offset {
				t.Errorf("offset %s, want %s", got.Offset, r.Offset)
			}
		}
	}
}

func TestTruncateIsLeftOut(t *testing.T) {
	em, err := New(Config{Prefix: "p", Skip: map[string]bool{"t": true}})
	must(t, err)
	var b Batch
	must(t, em.Begin(&binlog.Rows{Table: keyTable("orders")}))
	must(t, em.Truncate(&b, &binlog.Truncate{Database: "inventory", Table: "orders"}))
	if len(b.Records) != 0 {
		t.Errorf("%d records", len(b.Records))
	}
}

// TestI6_TruncateOfAnUnknownTable says what it lacks; a table that DDL has changed is no longer known by its rows.
func TestI6_TruncateOfAnUnknownTable(t *testing.T) {
	em, err := New(Config{Prefix: "p"})
	must(t, err)
	var b Batch
	ev := &binlog.Truncate{Info: binlog.Info{File: "f", Pos: 9}, Database: "db", Table: "a"}
	unknown := func() {
		t.Helper()
		err := em.Truncate(&b, ev)
		if err == nil || !strings.Contains(err.Error(), "f:9: TRUNCATE TABLE db.a:") || !strings.Contains(err.Error(), "skipped.operations=t") {
			t.Errorf("error %v", err)
		}
	}
	unknown()
	table := keyTable("a")
	table.Database = "db"
	must(t, em.Begin(&binlog.Rows{Table: table}))
	must(t, em.Truncate(&b, ev))
	must(t, em.SchemaChange(&b, swap()))
	unknown()
	if len(b.Records) != 1 {
		t.Errorf("%d records", len(b.Records))
	}
	ev.Definition = &schema.Definition{Columns: []schema.ColumnDef{{Name: "c", Type: "CIRCLE"}}}
	if err := em.Truncate(&b, ev); err == nil || !strings.Contains(err.Error(), `column "c": its type CIRCLE is not known`) {
		t.Errorf("error %v", err)
	}
	must(t, em.Begin(&binlog.Rows{Table: table}))
	must(t, em.Truncate(&b, ev))
	em.Forget()
	unknown2 := *ev
	unknown2.Definition = nil
	ev = &unknown2
	unknown()
}

// TestDefinedColumns has the types that no capture has.
func TestDefinedColumns(t *testing.T) {
	for _, c := range []struct {
		def  schema.ColumnDef
		want string
	}{
		{schema.ColumnDef{Type: "CHAR BINARY"}, `{"type":"string","optional":false,"field":"c"}`},
		{schema.ColumnDef{Type: "LONG VARBINARY"}, `{"type":"bytes","optional":false,"field":"c"}`},
		{schema.ColumnDef{Type: "INT8 UNSIGNED"}, `{"type":"int64","optional":false,"field":"c"}`},
		{schema.ColumnDef{Type: "NATIONAL VARCHAR", Nullable: true}, `{"type":"string","optional":true,"field":"c"}`},
		{schema.ColumnDef{Type: "UUID"}, `{"type":"string","optional":false,"name":"io.debezium.data.Uuid","version":1,"field":"c"}`},
		{schema.ColumnDef{Type: "INET6"}, `{"type":"string","optional":false,"field":"c"}`},
		{schema.ColumnDef{Type: "BIT", Length: 12}, `{"type":"bytes","optional":false,"name":"io.debezium.data.Bits","version":1,"parameters":{"length":"12"},"field":"c"}`},
	} {
		c.def.Name, c.def.Scale = "c", -1
		if c.def.Length == 0 {
			c.def.Length = -1
		}
		table, err := definedTable(&schema.Definition{Database: "d", Name: "t", Columns: []schema.ColumnDef{c.def}})
		must(t, err)
		typ, _, err := schema.Modes{}.Column(table, 0)
		must(t, err)
		field := "c"
		got, err := appendSchema(nil, typ, &field, false)
		must(t, err)
		if string(got) != c.want {
			t.Errorf("%s: got %s, want %s", c.def.Type, got, c.want)
		}
	}
}

// TestDefinedTables compares the envelopes' schemas of tables known by their definition with those of the rows of a
// Debezium run: every column type, NULL and NOT NULL, with and without defaults.
func TestDefinedTables(t *testing.T) {
	type historyLine struct{ Value json.RawMessage }
	var text strings.Builder
	for _, h := range lines[historyLine](t, "types-ddl-history.jsonl.gz") {
		fmt.Fprintf(&text, `{"value":%s}`+"\n", h.Value)
	}
	history, err := schema.ReadHistory(strings.NewReader(text.String()))
	must(t, err)
	definitions := map[string]*schema.Definition{}
	for _, entry := range history {
		for _, c := range entry.Changes {
			definitions[c.Table] = c.Definition
		}
	}
	// Where Debezium has a wrong type: REAL is no FLOAT, CHARACTER SET binary no text.
	right := map[string]string{
		"t_dec.r":            `{"type":"double","optional":true,"field":"r"}`,
		"t_dec.r10_2":        `{"type":"double","optional":true,"field":"r10_2"}`,
		"t_def_nn.r":         `{"type":"double","optional":false,"default":3.0,"field":"r"}`,
		"t_str.cb":           `{"type":"bytes","optional":true,"field":"cb"}`,
		"t_str.vcb":          `{"type":"bytes","optional":true,"field":"vcb"}`,
		"t_str.txb":          `{"type":"bytes","optional":true,"field":"txb"}`,
		"t_charset.c_binary": `{"type":"bytes","optional":true,"field":"c_binary"}`,
	}
	type envelope struct{ Database, Table, Schema string }
	compared := 0
	for _, want := range lines[envelope](t, "types-ddl-envelopes.jsonl.gz") {
		def := definitions[want.Table]
		if def == nil {
			continue
		}
		em, err := New(Config{Prefix: "types-ddl", Value: Converter{Schemas: true}})
		must(t, err)
		var b Batch
		must(t, em.Truncate(&b, &binlog.Truncate{Database: want.Database, Table: want.Table, Definition: def}))
		text, _, _ := strings.Cut(strings.TrimPrefix(string(b.Records[0].Value), `{"schema":`), `,"payload":{"before":null,"after":null,`)
		type fields struct{ Fields []json.RawMessage }
		var got, golden struct{ Fields []fields }
		must(t, json.Unmarshal([]byte(text), &got))
		must(t, json.Unmarshal([]byte(want.Schema), &golden))
		for i, c := range golden.Fields[0].Fields {
			name := want.Table + "." + def.Columns[i].Name
			text = strings.ReplaceAll(text, string(got.Fields[0].Fields[i]), string(c)) // so that the rest can be compared
			if g := string(got.Fields[0].Fields[i]); g != string(c) && right[name] != g {
				t.Errorf("%s:\ngot  %s\nwant %s", name, g, c)
			}
			delete(right, name)
		}
		sameText(t, "table "+want.Table, &want.Schema, []byte(text))
		compared++
	}
	if compared < 18 || len(right) > 0 {
		t.Errorf("only %d tables; without %v", compared, right)
	}
}
