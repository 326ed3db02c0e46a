package kafka

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tidemark-cdc/tidemark/emitter/internal/producer"
	"github.com/tidemark-cdc/tidemark/schema"
)

// fencedSchemas is a store with the transactional id of the connector's tables taken.
func fencedSchemas(t testing.TB, cluster *kfake.Cluster) *SchemaTopic {
	t.Helper()
	s := openSchemas(t, cluster)
	fenceSchemas(t, s)
	return s
}

func fenceSchemas(t testing.TB, s *SchemaTopic) {
	t.Helper()
	if err := s.Fence(t.Context(), "inventory", "shop", transactionID+"-schemas"); err != nil {
		t.Fatal(err)
	}
}

func saveSchemas(t testing.TB, s *SchemaTopic, tables ...schema.StoredTable) {
	t.Helper()
	if err := s.Save(t.Context(), "inventory", "shop", tables); err != nil {
		t.Fatal(err)
	}
}

// One that goes on after another has begun replaces nothing of what that one knows of a table.
func TestI11_FencedSchemasAreNotReplaced(t *testing.T) {
	cluster := newCluster(t)
	first := fencedSchemas(t, cluster)
	saveSchemas(t, first, storedTable("d", "orders", 1, 3), storedTable("d", "customers", 1, 1))
	second := fencedSchemas(t, cluster)
	wantSchemas(t, second, "inventory", "shop", storedTable("d", "orders", 1, 3), storedTable("d", "customers", 1, 1))
	saveSchemas(t, second, storedTable("d", "orders", 3, 5))
	for range 2 {
		err := first.Save(t.Context(), "inventory", "shop", []schema.StoredTable{storedTable("d", "orders", 2, 4)})
		if !errors.Is(err, producer.ErrFenced) || Transient(err) {
			t.Errorf("stored: %v", err)
		}
	}
	wantSchemas(t, second, "inventory", "shop", storedTable("d", "orders", 3, 5), storedTable("d", "customers", 1, 1))
	if err := first.Save(t.Context(), "another", "shop", []schema.StoredTable{storedTable("d", "x", 1, 1)}); err != nil { // is not concerned
		t.Error(err)
	}
	saveSchemas(t, second, schema.StoredTable{Database: "d", Table: "customers"})
	wantSchemas(t, openSchemas(t, cluster), "inventory", "shop", storedTable("d", "orders", 3, 5))
}

// What is on its way when another begins is either there when that one loads or never.
func TestFenceEndsSchemasOnTheirWay(t *testing.T) {
	cluster := newCluster(t)
	first := fencedSchemas(t, cluster)
	saveSchemas(t, first, storedTable("d", "orders", 1, 3))
	cluster.ControlKey(int16(kmsg.EndTxn), func(kmsg.Request) (kmsg.Response, error, bool) { // does not arrive
		return nil, errors.New("cut"), true
	})
	err := first.Save(t.Context(), "inventory", "shop", []schema.StoredTable{storedTable("d", "orders", 2, 4)})
	if !errors.Is(err, producer.ErrUnknownOutcome) || !Transient(err) {
		t.Errorf("stored: %v", err)
	}
	fenceSchemas(t, first) // as the next attempt does
	wantSchemas(t, first, "inventory", "shop", storedTable("d", "orders", 1, 3))
	saveSchemas(t, first, storedTable("d", "orders", 2, 4))
	wantSchemas(t, first, "inventory", "shop", storedTable("d", "orders", 2, 4))
}

// After a Save that was not waited for to its end nothing is written until the id is taken anew.
func TestFencedSchemasAfterAnError(t *testing.T) {
	cluster := newCluster(t)
	s := fencedSchemas(t, cluster)
	release := make(chan struct{})
	cluster.ControlKey(int16(kmsg.EndTxn), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.SleepControl(func() { <-release })
		return nil, nil, false
	})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	err := s.Save(ctx, "inventory", "shop", []schema.StoredTable{storedTable("d", "orders", 1, 3)})
	close(release)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("not waited for: %v", err)
	}
	if err := s.Save(t.Context(), "inventory", "shop", []schema.StoredTable{storedTable("d", "orders", 2, 3)}); !errors.Is(err, producer.ErrAgain) {
		t.Errorf("stored: %v", err)
	}
	fenceSchemas(t, s)
	saveSchemas(t, s, storedTable("d", "orders", 3, 3))
	wantSchemas(t, s, "inventory", "shop", storedTable("d", "orders", 3, 3))
}

// A definition that is larger than a request may be is packed.
func TestFencedSchemasAreCompressed(t *testing.T) {
	cluster := newCluster(t)
	s := fencedSchemas(t, cluster)
	large := storedTable("d", "orders", 60, 1000)
	if n := len(large.Append(nil)); n < 1<<20 {
		t.Fatalf("it has only %d bytes", n)
	}
	saveSchemas(t, s, large)
	wantSchemas(t, s, "inventory", "shop", large)
}

// Where there are no transactions, that is said once, and tables are stored without.
func TestSchemasWithoutTransactions(t *testing.T) {
	cluster := newCluster(t)
	cluster.ControlKey(int16(kmsg.InitProducerID), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if req.(*kmsg.InitProducerIDRequest).TransactionalID == nil {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
		resp.ErrorCode = kerr.TransactionalIDAuthorizationFailed.Code
		return resp, nil, true
	})
	core, logs := observer.New(zap.WarnLevel)
	cfg := storeConfig(cluster)
	cfg.Log = zap.New(core)
	s, err := OpenSchemaTopic(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for n := range 2 {
		fenceSchemas(t, s)
		saveSchemas(t, s, storedTable("d", "orders", n+1, 3))
		wantSchemas(t, s, "inventory", "shop", storedTable("d", "orders", n+1, 3))
	}
	said := logs.FilterMessageSnippet("without a transaction").All()
	if len(said) != 1 || !strings.Contains(said[0].Message, "--transactional-id '"+transactionID+"-schemas'") {
		t.Errorf("said %v", said)
	}
}

// A store that is closed takes no id.
func TestFenceOfClosedSchemas(t *testing.T) {
	cluster := newCluster(t)
	s := openSchemas(t, cluster)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := s.Fence(ctx, "inventory", "shop", "x"); !errors.Is(err, errClosed) {
		t.Errorf("a closed store: %v", err)
	}
}
