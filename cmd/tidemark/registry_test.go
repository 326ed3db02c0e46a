package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/emitter/registry"
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
			"/config/p.shop.orders-value", "column.exclude.list", "HTTP 409", "reader union lacking writer type",
		} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: it does not say %q: %v", name, want, err)
			}
		}
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

// The schemas of known tables are looked up once, by a process that may have to try several times to reach MySQL and Kafka.
func TestLookupAtTheStart(t *testing.T) {
	asked := make(chan string, 10)
	open := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-open
		asked <- r.URL.Path
		fmt.Fprint(w, `{"subject":"s","version":1,"id":7,"schema":"\"int\""}`)
	}))
	defer server.Close()
	c := &config.Connector{Prefix: "p", FieldNames: "none", SchemaNames: "none"}
	c.UseAvro(server.URL)
	regs, err := openRegistries(c, false, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer regs.close()
	em, err := newEmitter(c, regs, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	catalog := schema.NewCatalog(schema.CatalogOptions{})
	if _, _, err := catalog.Apply(schema.Statement{Database: "shop", SQL: "CREATE TABLE orders (id INT PRIMARY KEY)"}); err != nil {
		t.Fatal(err)
	}
	every := func(string, string) bool { return true }
	regs.lookup(em, every, catalog)
	regs.lookup(em, every, catalog) // a second attempt
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
	default:
	}
}
