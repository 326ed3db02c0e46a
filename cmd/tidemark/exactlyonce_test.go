package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kversion"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/emitter/kafka"
	"github.com/tidemark-cdc/tidemark/offset"
)

var shopKey = offset.Key{Connector: "shop", Server: "p"}

// exactlyOnceConnector is one with exactly-once delivery to a cluster.
func exactlyOnceConnector(c *kfake.Cluster) *config.Connector {
	return &config.Connector{
		Name: "shop", Prefix: "p", Producer: map[string]string{"bootstrap.servers": strings.Join(c.ListenAddrs(), ",")}, TransactionalID: "g-shop-0",
		ExactlyOnce: &config.ExactlyOnce{Boundary: "poll", Interval: time.Second, Timeout: time.Minute},
	}
}

func openTopic(t *testing.T, c *kfake.Cluster, topic string) *kafka.TopicStore {
	t.Helper()
	s, err := kafka.OpenTopicStore(t.Context(), kafka.TopicStoreConfig{
		ClientConfig: kafka.ClientConfig{Properties: map[string]string{"bootstrap.servers": c.ListenAddrs()[0]}}, Topic: topic, ReplicationFactor: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func newKafka(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append(opts, kfake.NumBrokers(1))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// What protects and what does not is said once, at the first start.
func TestExactlyOnceIsSaid(t *testing.T) {
	for name, tt := range map[string]struct {
		versions *kversion.Versions
		warned   int
	}{"Kafka 4": {kversion.V4_0_0(), 0}, "Kafka 3.9": {kversion.V3_9_0(), 1}} {
		t.Run(name, func(t *testing.T) {
			c := newKafka(t, kfake.MaxVersions(tt.versions))
			core, logs := observer.New(zap.InfoLevel)
			d := &deliveries{c: exactlyOnceConnector(c), log: zap.New(core), topic: openTopic(t, c, "offsets"), key: shopKey, flush: time.Second}
			for range 2 {
				delivery, err := d.open(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				delivery.Close()
			}
			if n := logs.FilterMessageSnippet("exactly once").Len(); n != 1 {
				t.Errorf("said %d times", n)
			}
			if n := logs.FilterMessageSnippet("Kafka 4.0: there a delayed EndTxn of an earlier transaction can end a later one (KIP-890)").Len(); n != tt.warned {
				t.Errorf("warned %d times: %v", n, logs.All())
			}
		})
	}
}

// A second instance of a connector ends the first, whose exit code says so, in both kinds of delivery.
func TestSecondInstanceEndsTheFirst(t *testing.T) {
	for name, exactly := range map[string]bool{"exactly once": true, "at least once": false} {
		t.Run(name, func(t *testing.T) {
			c := newKafka(t)
			at := func(pos int64) offset.Offset { return offset.Offset{File: "mysql-bin.000001", Pos: pos} }
			start := func() (emitter.Delivery, offset.Store) {
				t.Helper()
				connector := exactlyOnceConnector(c)
				if !exactly {
					connector.ExactlyOnce = nil
				}
				topic := openTopic(t, c, "offsets")
				d := &deliveries{c: connector, log: zap.NewNop(), topic: topic, key: shopKey, flush: time.Hour}
				delivery, err := d.open(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(delivery.Close)
				store := d.loopStore(topic)
				if _, err := store.Load(t.Context(), shopKey); err != nil {
					t.Fatal(err)
				}
				return delivery, store
			}
			put := func(d emitter.Delivery, s offset.Store, pos int64) error {
				if err := d.Boundary(t.Context(), at(pos)); err != nil {
					return err
				}
				if err := d.Flush(t.Context()); err != nil {
					return err
				}
				safe, _ := d.Safe()
				return s.Save(t.Context(), shopKey, safe)
			}
			first, firstStore := start()
			if err := put(first, firstStore, 100); err != nil {
				t.Fatal(err)
			}
			second, secondStore := start()
			if err := put(second, secondStore, 200); err != nil {
				t.Fatal(err)
			}
			err := explainFenced(put(first, firstStore, 101))
			if exitCode(err) != 75 || !strings.Contains(err.Error(), "fenced by another instance") || !strings.Contains(err.Error(), "g-shop-0") {
				t.Errorf("exit code %d: %v", exitCode(err), err)
			}
			if o, err := secondStore.Load(t.Context(), shopKey); err != nil || o.Pos != 200 {
				t.Errorf("stored is %s, %v", o, err)
			}
		})
	}
	if other := errors.New("another"); exitCode(other) != 1 || explainFenced(other) != other {
		t.Error("another error is no fencing")
	}
}

// Without group.id the offset is stored as it is, which is said; a file knows no transactions.
func TestWhoIsFenced(t *testing.T) {
	c := newKafka(t)
	topic := openTopic(t, c, "offsets")
	for name, tt := range map[string]struct {
		change func(d *deliveries)
		want   string
		said   int
	}{
		"group.id":     {func(*deliveries) {}, "main.fenced", 0},
		"no group.id":  {func(d *deliveries) { d.c.TransactionalID = "" }, "*kafka.TopicStore", 1},
		"a file":       {func(d *deliveries) { d.topic = nil }, "*kafka.TopicStore", 0},
		"exactly once": {func(d *deliveries) { d.c.ExactlyOnce = &config.ExactlyOnce{} }, "main.committed", 0},
	} {
		core, logs := observer.New(zap.InfoLevel)
		d := &deliveries{c: exactlyOnceConnector(c), log: zap.New(core), topic: topic}
		d.c.ExactlyOnce = nil
		tt.change(d)
		if got := fmt.Sprintf("%T", d.loopStore(topic)); got != tt.want || logs.FilterMessageSnippet("group.id is not set").Len() != tt.said {
			t.Errorf("%s: %s, said %v", name, got, logs.All())
		}
	}
}

// savedStore notes what is saved.
type savedStore struct {
	offset.Store
	saved []int64
}

func (s *savedStore) Save(_ context.Context, _ offset.Key, o offset.Offset) error {
	s.saved = append(s.saved, o.Pos)
	return nil
}

// With exactly-once delivery only the copy in the worker's place is written beside the transactions, when they are committed.
func TestCommittedIsOnlyCopied(t *testing.T) {
	c := newKafka(t)
	own, worker := openTopic(t, c, "own"), &savedStore{}
	o := offset.Offset{File: "mysql-bin.000001", Pos: 5}
	if err := (committed{&ownStore{TopicStore: own, worker: worker, log: zap.NewNop()}}).Save(t.Context(), shopKey, o); err != nil {
		t.Fatal(err)
	}
	if err := (committed{own}).Save(t.Context(), shopKey, o); err != nil {
		t.Fatal(err)
	}
	if stored, err := own.Load(t.Context(), shopKey); err != nil || !stored.IsZero() || !slices.Equal(worker.saved, []int64{5}) {
		t.Errorf("in the own topic is %s (%v), in the worker's place %v", stored, err, worker.saved)
	}
}
