package main

import (
	"errors"
	"net"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/emitter/kafka"
	"github.com/tidemark-cdc/tidemark/schema"
)

// A process that was suspended and goes on when another one has opened the stream does not replace what that one knows of a table: with a
// restart in between its rows would be read by the columns of before a statement.
func TestI11_ReplacedProcessStoresNoDefinition(t *testing.T) {
	cluster := newKafka(t)
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody.Close()
	may := true
	process := func(id string) *schemas {
		store, err := kafka.OpenSchemaTopic(t.Context(), kafka.TopicStoreConfig{
			ClientConfig: kafka.ClientConfig{Properties: map[string]string{"bootstrap.servers": cluster.ListenAddrs()[0]}, ClientID: "x", Log: zap.NewNop()},
			Topic:        "offsets", Partitions: 1, ReplicationFactor: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		c := &config.Connector{
			Name: "c", Prefix: "p", TransactionalID: id, Host: "127.0.0.1", Port: uint16(nobody.Addr().(*net.TCPAddr).Port), ConnectTimeout: time.Second,
		}
		s := &schemas{c: c, store: store, may: func() bool { return may }, registries: &registries{}, log: zap.NewNop()}
		// The server cannot be reached, and the place of the definitions is taken all the same.
		if _, err := s.open(t.Context(), binlog.Start{}); err == nil {
			t.Fatal("opened")
		}
		return s
	}
	altered := func(columns string) *binlog.SchemaChange {
		def, err := schema.ParseCreateTable("d", "CREATE TABLE t ("+columns+")")
		if err != nil {
			t.Fatal(err)
		}
		return &binlog.SchemaChange{Tables: []schema.StoredTable{{Database: "d", Table: "t", Versions: []schema.StoredVersion{{File: "b.1", Pos: 4, Definition: def}}}}}
	}
	first := process("group-c-0")
	if err := first.changed(t.Context(), altered("a INT")); err != nil {
		t.Fatal(err)
	}
	second := process("group-c-0")
	if err := second.changed(t.Context(), altered("a INT, b INT, c INT")); err != nil {
		t.Fatal(err)
	}
	if err := first.changed(t.Context(), altered("a INT, b INT")); !isFenced(err) {
		t.Errorf("stored: %v", err)
	}
	known, err := second.store.Load(t.Context(), "c", "p")
	if err != nil || len(known) != 1 || len(known[0].Versions[0].Definition.Columns) != 3 {
		t.Errorf("known is %v, %v", known, err)
	}
	may = false // and one that may not run takes nothing
	if _, err := first.open(t.Context(), binlog.Start{}); !errors.Is(err, emitter.ErrStale) {
		t.Errorf("opened: %v", err)
	}
	if err := second.changed(t.Context(), altered("a INT")); err != nil {
		t.Error(err)
	}
	may = true
	without := process("") // without group.id there is no id
	for _, s := range []*schemas{without, second, without} {
		if err := s.changed(t.Context(), altered("a INT, b INT")); err != nil {
			t.Error(err)
		}
	}
}
