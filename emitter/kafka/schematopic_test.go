package kafka

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/schema"
)

const schemasTopic = offsetsTopic + "-schemas"

func openSchemas(t testing.TB, cluster *kfake.Cluster) *SchemaTopic {
	t.Helper()
	s, err := OpenSchemaTopic(t.Context(), storeConfig(cluster))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// storedTable is a table with so many versions, the last of n columns.
func storedTable(database, table string, versions, n int) schema.StoredTable {
	t := schema.StoredTable{Database: database, Table: table}
	for v := range versions {
		def := &schema.Definition{Database: database, Name: table, Key: []string{"c0"}, KeyKind: schema.KeyPrimary}
		for c := range n {
			def.Columns = append(def.Columns, schema.ColumnDef{Name: fmt.Sprintf("c%d", c), Type: "INT", Length: -1, Scale: -1, Nullable: c > 0})
		}
		t.Versions = append(t.Versions, schema.StoredVersion{File: "mysql-bin.000001", Pos: int64(100 * (v + 1)), Definition: def})
	}
	return t
}

func texts(tables []schema.StoredTable) []string {
	var out []string
	for _, t := range tables {
		out = append(out, string(t.Append(nil)))
	}
	slices.Sort(out)
	return out
}

func wantSchemas(t testing.TB, s *SchemaTopic, connector, prefix string, want ...schema.StoredTable) {
	t.Helper()
	got, err := s.Load(t.Context(), connector, prefix)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(texts(want), texts(got)); diff != "" {
		t.Fatal(diff)
	}
}

func TestI11_SchemaTopicKeepsTables(t *testing.T) {
	cluster := newCluster(t)
	s := openSchemas(t, cluster)
	wantSchemas(t, s, "inventory", "shop")
	server := schema.StoredTable{Versions: []schema.StoredVersion{{File: "b.1", Pos: 4, Charset: "utf8mb4"}}}
	database := schema.StoredTable{Database: "d\"é表", Versions: []schema.StoredVersion{{File: "b.1", Pos: 4, Charset: "latin1"}}}
	orders, customers := storedTable("d\"é表", "ord,ers]", 1, 3), storedTable("d\"é表", "customers", 2, 2)
	if err := s.Save(t.Context(), "inventory", "shop", []schema.StoredTable{server, database, orders, customers}); err != nil {
		t.Fatal(err)
	}
	other := storedTable("d", "x", 1, 1)
	for _, owner := range [][2]string{{"inventory", "shop2"}, {"inventory2", "shop"}, {"tidemark:inventory", "shop"}} {
		if err := s.Save(t.Context(), owner[0], owner[1], []schema.StoredTable{other}); err != nil {
			t.Fatal(err)
		}
	}
	wantSchemas(t, s, "inventory", "shop", server, database, orders, customers)
	orders = storedTable("d\"é表", "ord,ers]", 3, 4)
	if err := s.Save(t.Context(), "inventory", "shop", []schema.StoredTable{orders}); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*SchemaTopic{s, openSchemas(t, cluster)} {
		wantSchemas(t, s, "inventory", "shop", server, database, orders, customers)
		wantSchemas(t, s, "inventory", "shop2", other)
	}
	if err := s.Save(t.Context(), "inventory", "shop", []schema.StoredTable{{Database: customers.Database, Table: customers.Table}}); err != nil {
		t.Fatal(err)
	}
	wantSchemas(t, openSchemas(t, cluster), "inventory", "shop", server, database, orders) // the table without versions is forgotten
	details, err := s.client.admin.ListTopics(t.Context(), schemasTopic)
	if err != nil || len(details[schemasTopic].Partitions) != 25 {
		t.Errorf("%d partitions, %v", len(details[schemasTopic].Partitions), err)
	}
	if settings, err := s.client.topicSettings(t.Context(), schemasTopic); err != nil || settings["cleanup.policy"] != "compact" {
		t.Errorf("cleanup.policy=%s, %v", settings["cleanup.policy"], err)
	}
	if got, want := string(tableKey(nil, inventory, "d\"é", "o")), `["inventory-connector",{"server":"dbserver1"},"d\"é","o"]`; got != want {
		t.Errorf("key %s, want %s", got, want)
	}
	if got, want := string(tableKey(nil, inventory, "", "")), `["inventory-connector",{"server":"dbserver1"},""]`; got != want {
		t.Errorf("key %s, want %s", got, want)
	}
}

// A table of 4,096 columns in several versions is larger than max.request.size.
func TestSchemaTopicKeepsLargeTables(t *testing.T) {
	s := openSchemas(t, newCluster(t))
	large := storedTable("d", "wide", 8, 4096)
	if n := len(large.Append(nil)); n < 1<<20 {
		t.Fatalf("only %d bytes", n)
	}
	if err := s.Save(t.Context(), "inventory", "shop", []schema.StoredTable{large}); err != nil {
		t.Fatal(err)
	}
	wantSchemas(t, s, "inventory", "shop", large)
}

func TestSchemaTopicRefuses(t *testing.T) {
	cluster := newCluster(t)
	s := openSchemas(t, cluster)
	if err := s.Save(t.Context(), "c", "p", []schema.StoredTable{storedTable("d", "t", 1, 1)}); err != nil {
		t.Fatal(err)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.DefaultProduceTopic(schemasTopic))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	key := `["c",{"server":"p"},"d","t2"]`
	put := func(value []byte) {
		t.Helper()
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Key: []byte(key), Value: value}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]string{
		"schema!": "key " + key,
		string(storedTable("d", "t3", 1, 1).Append(nil)): `it describes "d"."t3"`,
	} {
		put([]byte(text))
		if tables, err := s.Load(t.Context(), "c", "p"); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "schema topic "+schemasTopic) {
			t.Errorf("%v, error %v, want …%s…", tables, err, want)
		}
	}
	put(nil)
	wantSchemas(t, s, "c", "p", storedTable("d", "t", 1, 1))

	cfg := storeConfig(newCluster(t, kfake.SeedTopics(1, schemasTopic)))
	if _, err := OpenSchemaTopic(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "schema topic: topic "+schemasTopic+" has cleanup.policy=delete") {
		t.Errorf("not compacted: %v", err)
	}
	cfg.Topic = ""
	if _, err := OpenSchemaTopic(t.Context(), cfg); err == nil {
		t.Error("no topic: no error")
	}
}
