package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
	"github.com/tidemark-cdc/tidemark/cmd/internal/pipeline"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/emitter/registry"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

const (
	envelopeHead = `{"type":"record","name":"Envelope","namespace":"p.shop.orders","fields":[{"name":"before","type":["null",{"type":"record","name":"Value","fields":[{"name":"id","type":"int"}`
	envelopeTail = `]}],"default":null},{"name":"after","type":["null","Value"],"default":null}]}`
)

// A registry's 409 becomes a message that names table, column, statement, subject, the registry's reason and the ways out; after
// a new start, too, when only the schema store knows the statement.
func TestIncompatibleSchema(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, `{"error_code":40901,"message":"Schema being registered is incompatible with an earlier schema: reader union lacking writer type"}`)
			return
		}
		fmt.Fprintf(w, `{"subject":"p.shop.orders-value","version":3,"id":7,"schema":%q}`, envelopeHead+envelopeTail)
	}))
	defer server.Close()
	c := &config.Connector{FieldNames: "none"}
	c.UseAvro(server.URL)
	regs, err := openRegistries(c, false, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer regs.close()
	if regs.key != regs.value {
		t.Error("two clients for one registry")
	}
	def := &schema.Definition{}
	table := schema.StoredTable{Database: "shop", Table: "orders", Versions: []schema.StoredVersion{
		{File: "mysql-bin.000007", Pos: 100, Definition: def, Statement: "CREATE TABLE orders (id INT)"},
		{File: "mysql-bin.000007", Pos: 400, Definition: def, Statement: "ALTER TABLE orders ADD COLUMN total INT NOT NULL"},
		{File: "mysql-bin.000007", Pos: 900, Definition: def, Statement: "ALTER TABLE orders ADD COLUMN later INT"},
	}}
	needed := &emitter.SchemaNeeded{
		Subject: "p.shop.orders-value", Text: envelopeHead + `,{"name":"total","type":"int"}` + envelopeTail,
		Topic: "p.shop.orders", Record: "p.shop.orders.Envelope", Table: schema.TableName{Database: "shop", Table: "orders"},
	}
	for name, note := range map[string]func(){
		"in the stream": func() {
			before := table
			before.Versions = table.Versions[:2]
			regs.changed(&binlog.SchemaChange{Tables: []schema.StoredTable{before}})
		},
		"after a start": func() {
			regs.altered = nil
			regs.note(&table, func(v *schema.StoredVersion) bool { return v.Pos <= 400 })
		},
	} {
		note()
		err = regs.resolve(t.Context(), needed)
		var refused *registry.Refused
		if !errors.As(err, &refused) || !refused.Incompatible() {
			t.Fatalf("%s: %v", name, err)
		}
		for _, want := range []string{
			"table shop.orders", "subject p.shop.orders-value", "column total added without a default",
			"at mysql-bin.000007:400, by: ALTER TABLE orders ADD COLUMN total INT NOT NULL", "nothing is lost",
			"/config/p.shop.orders-value", "leave the column out (column.exclude.list=shop.orders.total, beside what is there) and start again", "HTTP 409", "reader union lacking writer type",
		} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: it does not say %q: %v", name, want, err)
			}
		}
	}
}

// TestWaysOutOfIncompatible has the setting that helps, by what has changed and what the connector has set.
func TestWaysOutOfIncompatible(t *testing.T) {
	const (
		keyHead  = `{"type":"record","name":"Key","namespace":"p.shop.orders","fields":[{"name":"id","type":"int"},{"name":"no_x","type":"int"}`
		keyTail  = `]}`
		total    = `,{"name":"total","type":"int"}`
		orderID  = `,{"name":"order_id","type":"int"}`
		nullable = `,{"name":"note","type":["null","string"],"default":null}`
	)
	value := func(fields string) string { return envelopeHead + fields + envelopeTail }
	def := &schema.Definition{Columns: []schema.ColumnDef{{Name: "id"}, {Name: "no-x"}, {Name: "order-id"}, {Name: "total"}}}
	names := schema.TableName{Database: "shop", Table: "orders"}
	for _, c := range []struct {
		name          string
		earlier, text string
		key           bool
		table         schema.TableName
		change        func(r *registries)
		want          []string
		without       []string
	}{
		{"added", value(""), value(total), false, names, nil, []string{"column.exclude.list=shop.orders.total,", "the column out"}, []string{"renamed", "message.key.columns"}},
		{"two added", value(""), value(total + orderID), false, names, nil, []string{"the columns out", "column.exclude.list=shop.orders.total,shop.orders.order-id,", "column order-id added"}, nil},
		{"definition not known", value(""), value(orderID), false, names, func(r *registries) { r.altered = nil }, []string{"column.exclude.list=shop.orders.order_id,"}, nil},
		{"names that are patterns", value(""), value(total), false, schema.TableName{Database: "a.b", Table: "c,$"}, nil, []string{`column.exclude.list=a\.b.c\,\$.total,`}, nil},
		{"renamed", value(`,{"name":"sum","type":"int"}`), value(total), false, names, nil, []string{"column total added without a default (a column that was renamed is to Avro", "column.exclude.list=shop.orders.total"}, nil},
		{"changed", value(`,{"name":"total","type":"string"}`), value(total), false, names, nil, []string{"column total changed from string to int", "column.exclude.list=shop.orders.total"}, []string{"renamed"}},
		{"removed", value(total), value(""), false, names, nil, []string{"column total removed"}, []string{"column.exclude.list", "renamed"}},
		{"only some columns", value(""), value(total), false, names, func(r *registries) { r.onlyColumns = true }, []string{"take shop.orders.total out of what column.include.list matches"}, []string{"column.exclude.list"}},
		{"key", keyHead + keyTail, keyHead + total + keyTail, true, names, nil, []string{"message.key.columns=shop.orders:id,no-x;", "have one key"}, []string{"column.exclude.list"}},
		{"key that has been set", keyHead + keyTail, keyHead + total + keyTail, true, names, func(r *registries) { r.ownKeys = true }, []string{"shop.orders:id,no-x for this table in message.key.columns"}, []string{"column.exclude.list"}},
		{"key without a column", keyHead + total + keyTail, keyHead + keyTail, true, names, nil, []string{"column total removed"}, []string{"message.key.columns", "column.exclude.list"}},
		{"no table", value(""), value(total), false, schema.TableName{}, nil, []string{"topic p.shop.orders: "}, []string{"column.exclude.list"}},
		{"nothing to compare", "no schema", value(total + nullable), false, names, nil, []string{"Ways out: allow it with PUT"}, []string{"column.exclude.list"}},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				w.WriteHeader(http.StatusConflict)
				fmt.Fprint(w, `{"error_code":409,"message":"incompatible"}`)
				return
			}
			fmt.Fprintf(w, `{"subject":"s","version":3,"id":7,"schema":%q}`, c.earlier)
		}))
		connector := &config.Connector{FieldNames: "none"}
		connector.UseAvro(server.URL)
		regs, err := openRegistries(connector, false, zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		regs.altered = map[schema.TableName]alteration{names: {"f:4", "ALTER", def}}
		if c.change != nil {
			c.change(regs)
		}
		err = regs.resolve(t.Context(), &emitter.SchemaNeeded{Subject: "p.shop.orders-value", Text: c.text, Topic: "p.shop.orders", Key: c.key, Table: c.table})
		for _, want := range c.want {
			if !strings.Contains(strings.ReplaceAll(err.Error(), ", beside", ","), want) && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: it does not say %q: %v", c.name, want, err)
			}
		}
		for _, without := range c.without {
			if strings.Contains(err.Error(), without) {
				t.Errorf("%s: it says %q: %v", c.name, without, err)
			}
		}
		regs.close()
		server.Close()
	}
}

// What is remembered for messages goes with its table, and connectors without a registry remember nothing.
func TestStatementsAreForgotten(t *testing.T) {
	c := &config.Connector{FieldNames: "none"}
	plain, err := openRegistries(c, false, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	c.UseAvro("http://127.0.0.1:1")
	regs, err := openRegistries(c, false, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer regs.close()
	created := schema.StoredTable{Database: "d", Table: "t", Versions: []schema.StoredVersion{{Definition: &schema.Definition{}, Statement: "CREATE TABLE t (a INT)"}}}
	dropped := created
	dropped.Versions = append(dropped.Versions[:1:1], schema.StoredVersion{Statement: "DROP TABLE t"})
	for i, tables := range [][]schema.StoredTable{{created}, {dropped}} {
		for _, r := range []*registries{plain, regs} {
			r.changed(&binlog.SchemaChange{Tables: tables})
		}
		if len(plain.altered) != 0 || len(regs.altered) != 1-i {
			t.Errorf("step %d: %v and %v", i, plain.altered, regs.altered)
		}
	}
}

// openStart is a registry that answers so, and a connector that registers there.
func openStart(t *testing.T, log *zap.Logger, answer http.HandlerFunc, change func(*config.Connector)) (*registries, *emitter.Emitter) {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	c := &config.Connector{Prefix: "p", FieldNames: "none", SchemaNames: "none"}
	c.UseAvro(server.URL)
	if change != nil {
		change(c)
	}
	regs, err := openRegistries(c, false, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(regs.close)
	em, err := newEmitter(c, regs, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	return regs, em
}

func catalogOf(t *testing.T, tables ...string) *schema.Catalog {
	t.Helper()
	catalog := schema.NewCatalog(schema.CatalogOptions{})
	for _, table := range tables {
		if _, _, err := catalog.Apply(schema.Statement{Database: "shop", SQL: "CREATE TABLE " + table + " (id INT PRIMARY KEY)"}); err != nil {
			t.Fatal(err)
		}
	}
	return catalog
}

// The schemas of known tables that are captured are looked up once, by a process that may have to try several times to reach
// MySQL and Kafka: by one client, or by two.
func TestLookupAtTheStart(t *testing.T) {
	for _, clients := range []int{1, 2} {
		asked := make(chan string, 10)
		open := make(chan struct{})
		regs, em := openStart(t, zap.NewNop(), func(w http.ResponseWriter, r *http.Request) {
			<-open
			asked <- r.URL.Path
			fmt.Fprint(w, `{"subject":"s","version":1,"id":7,"schema":"\"int\""}`)
		}, func(c *config.Connector) {
			if clients == 2 {
				c.Key.Avro.Normalize = true
			}
		})
		if (regs.key == regs.value) != (clients == 1) {
			t.Fatal("another number of clients")
		}
		catalog := catalogOf(t, "orders", "hidden")
		captured := func(_, table string) bool { return table == "orders" }
		regs.lookup(em, captured, catalog)
		regs.lookup(em, captured, catalog) // a second attempt
		close(open)
		got := map[string]int{}
		for range 2 {
			got[<-asked]++
		}
		if got["/subjects/p.shop.orders-key"] != 1 || got["/subjects/p.shop.orders-value"] != 1 {
			t.Errorf("asked for %v", got)
		}
		select {
		case path := <-asked:
			t.Errorf("asked again for %s", path)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// TestLookupIsLazy holds that schemas are made when they can be asked for, and not all at once.
func TestLookupIsLazy(t *testing.T) {
	arrived, open := make(chan struct{}, 1000), make(chan struct{})
	regs, em := openStart(t, zap.NewNop(), func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-open
		w.WriteHeader(http.StatusServiceUnavailable)
	}, nil)
	var tables []string
	for i := range 300 {
		tables = append(tables, fmt.Sprintf("t%d", i))
	}
	var made atomic.Int32
	regs.lookup(em, func(string, string) bool { made.Add(1); return true }, catalogOf(t, tables...))
	for range 4 {
		<-arrived
	}
	time.Sleep(20 * time.Millisecond)
	if n := made.Load(); n > 20 {
		t.Errorf("%d tables were looked at while few can be asked for", n)
	}
	close(open)
}

// TestLookupEnds holds that a registry that hangs is left alone after a while, which is said.
func TestLookupEnds(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	regs, em := openStart(t, zap.New(core), func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the end of the connection is seen
		<-r.Context().Done()
	}, nil)
	if regs.lookupTime < 5*time.Second || regs.lookupTime > time.Minute {
		t.Errorf("lookups take %s at most", regs.lookupTime)
	}
	regs.lookupTime = 50 * time.Millisecond
	regs.lookup(em, func(string, string) bool { return true }, catalogOf(t, "orders"))
	for deadline := time.Now().Add(20 * time.Second); logs.FilterMessageSnippet("could not be looked up").Len() == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it goes on")
		}
	}
}

// TestLookupBesideTheStream is for the race detector: the emitter writes rows while schemas are made with it.
func TestLookupBesideTheStream(t *testing.T) {
	done := make(chan struct{})
	var once sync.Once
	regs, em := openStart(t, zap.NewNop(), func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "t99") {
			once.Do(func() { close(done) })
		}
		fmt.Fprint(w, `{"subject":"s","version":1,"id":7,"schema":"\"int\""}`)
	}, nil)
	var tables []string
	for i := range 100 {
		tables = append(tables, fmt.Sprintf("t%d", i))
	}
	regs.lookup(em, func(string, string) bool { return true }, catalogOf(t, tables...))
	for i := 0; ; i++ {
		select {
		case <-done:
			return
		case <-time.After(time.Millisecond):
		}
		table := &schema.Table{Database: "shop", Name: fmt.Sprintf("r%d", i), Columns: []schema.Column{{Name: "id", Type: 3}}}
		ev := &binlog.Rows{Info: binlog.Info{File: "f", Pos: 4}, Op: binlog.Create, Table: table, After: [][]byte{{1, 0, 0, 0}}}
		if err := em.Begin(ev); err != nil {
			t.Fatal(err)
		}
		var needed *emitter.SchemaNeeded
		if err := em.Row(new(emitter.Batch), ev); !errors.As(err, &needed) {
			t.Fatal(err)
		}
		em.Forget()
	}
}

// TestSharedClients has what two converters may differ in and still share a client, and what not.
func TestSharedClients(t *testing.T) {
	for name, c := range map[string]struct {
		change func(a *config.Avro)
		shared bool
	}{
		"nothing":    {func(*config.Avro) {}, true},
		"strategy":   {func(a *config.Avro) { a.Strategy = config.RecordStrategy }, true},
		"schemas":    {func(a *config.Avro) { a.NoMeta, a.Scrub, a.IgnoreDefaults, a.Wide = true, true, true, true }, true},
		"registers":  {func(a *config.Avro) { a.AutoRegister = false }, false},
		"latest":     {func(a *config.Avro) { a.UseLatest = true }, false},
		"normalizes": {func(a *config.Avro) { a.Normalize = true }, false},
		"user":       {func(a *config.Avro) { a.User = "u" }, false},
		"URL":        {func(a *config.Avro) { a.URLs = []string{"http://other"} }, false},
		"TLS":        {func(a *config.Avro) { a.SSL = map[string]config.Secret{"ssl.endpoint.identification.algorithm": ""} }, false},
	} {
		connector := &config.Connector{}
		connector.UseAvro("http://registry")
		c.change(connector.Key.Avro)
		regs, err := openRegistries(connector, false, zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		if (regs.key == regs.value) != c.shared {
			t.Errorf("%s: shared %t", name, !c.shared)
		}
		regs.close()
	}
}

// TestSkipsRowsNotSchemas holds that only what a row itself is to blame for is left to SkipRows.
func TestSkipsRowsNotSchemas(t *testing.T) {
	em, err := emitter.New(emitter.Config{Prefix: "p"})
	if err != nil {
		t.Fatal(err)
	}
	def := &schema.Table{Database: "shop", Name: "t", Columns: []schema.Column{{Name: "j", Type: 245, Meta: 4}}}
	rows, err := binlog.NewRows(binlog.Info{File: "mysql-bin.000001", Pos: 400}, binlog.Create, def, offset.Offset{File: "mysql-bin.000001", Pos: 4}, []byte{0, 2, 0, 0, 0, 0xee, 0xee})
	if err != nil {
		t.Fatal(err)
	}
	var skipped []error
	output := &pipeline.Output{Emitter: em, Delivery: &printed{out: bufio.NewWriter(io.Discard)}, SkipRows: func(err error) { skipped = append(skipped, err) }}
	if err := output.Event(t.Context(), rows); err != nil || len(skipped) != 1 || !strings.Contains(skipped[0].Error(), "table shop.t, row 0") {
		t.Errorf("%v, skipped %v", err, skipped)
	}
}
