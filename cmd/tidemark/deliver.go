package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/emitter/kafka"
	"github.com/tidemark-cdc/tidemark/offset"
)

// ownClient is a delivery with a Kafka client of its own, whose connections end with it. A broker deals with the requests of a
// connection one after the other, so one that an attempt has given up would hold up those of the next attempt.
type ownClient struct {
	emitter.Delivery
	client *kafka.Client
}

// Close gives up what is not acknowledged and closes the connection.
func (d *ownClient) Close() {
	d.Delivery.Close()
	d.client.Close()
}

// deliveries makes the deliveries of a connector, one an attempt.
type deliveries struct {
	c       *config.Connector
	records int         // bounds the bytes of the records on their way; 0: the default
	may     func() bool // whether this process may still write; nil: it may
	log     *zap.Logger
	poison  *poison     // nil: what Kafka does not take ends a delivery
	line    *kafka.Line // what the deliveries have in common; nil: nothing

	// Of exactly-once delivery.
	topic *kafka.TopicStore // where the offsets are; nil: in a file
	key   offset.Key
	flush time.Duration // offset.flush.interval.ms
	say   sync.Once
}

// open connects to Kafka and starts a delivery over that connection. One in transactions takes the transactional id before.
func (d *deliveries) open(ctx context.Context) (emitter.Delivery, error) {
	client, err := kafka.NewClient(kafka.ClientConfig{Properties: d.c.Producer, Reread: d.c.ProducerReread, Line: d.line, Log: d.log})
	if err != nil {
		return nil, err
	}
	if err := client.Ping(ctx); err != nil {
		client.Close()
		return nil, err
	}
	topics := kafka.NewTopics(client, topicSpec(d.c), topicGroups(d.c)...)
	if d.c.ExactlyOnce != nil {
		topics.Keep(d.topic)
	}
	cfg := emitter.DeliveryConfig{MaxBytes: d.records, May: d.may, Topics: topics}
	if err := d.poison.add(ctx, client, &cfg); err != nil {
		client.Close()
		return nil, err
	}
	if d.c.ExactlyOnce == nil {
		return &ownClient{emitter.NewAtLeastOnce(client, cfg), client}, nil
	}
	delivery, err := d.exactlyOnce(ctx, client, cfg)
	if err != nil {
		client.Close()
		return nil, err
	}
	return &ownClient{delivery, client}, nil
}

func (d *deliveries) exactlyOnce(ctx context.Context, client *kafka.Client, cfg emitter.DeliveryConfig) (emitter.Delivery, error) {
	e := d.c.ExactlyOnce
	boundaries := map[string]emitter.Boundaries{"interval": emitter.AtIntervals, "source": emitter.AtWholeTransactions}[e.Boundary]
	delivery, err := emitter.NewExactlyOnce(ctx, client, emitter.ExactlyOnceConfig{
		DeliveryConfig: cfg, ID: d.c.TransactionalID, Timeout: e.Timeout, Store: d.topic, Key: d.key, Wrote: d.wrote,
		Boundaries: boundaries, Interval: e.Interval, FlushInterval: d.flush,
	})
	if err != nil {
		return nil, err
	}
	d.say.Do(func() {
		version := delivery.TransactionVersion()
		fields := []zap.Field{
			zap.String("transactional.id", d.c.TransactionalID), zap.String("transaction.boundary", e.Boundary), zap.String("offsets", d.topic.Topic()),
			zap.Int("transaction.version", version),
		}
		d.log.Info("delivery is exactly once for who reads with isolation.level=read_committed", fields...)
		if version < 2 {
			d.log.Warn("the cluster's transaction.version is below 2, as before Kafka 4.0: there a delayed EndTxn of an earlier transaction can end a later one (KIP-890), "+
				"which this cannot be protected from. On Kafka 4: kafka-features.sh --bootstrap-server … upgrade --feature transaction.version=2", fields...)
		}
	})
	return delivery, nil
}

// wrote says which topics an earlier delivery may have written to.
func (d *deliveries) wrote(topic string) bool {
	return emitter.Naming(d.c.Naming).Writes(d.c.Prefix, topic) || d.poison != nil && topic == d.poison.Topic
}

// loopStore is what the loop has of the connector's place of offsets.
func (d *deliveries) loopStore(store offset.Store) offset.Store {
	switch {
	case d.c.ExactlyOnce != nil:
		return committed{store}
	case d.topic == nil:
		return store
	case d.c.TransactionalID == "":
		d.log.Info("group.id is not set, so the offset is stored without a transaction: a second process with this connector would not be kept from storing its own")
		return store
	}
	return fenced{store, d.topic, d.c.TransactionalID, d.may}
}

// committed is the place of offsets that the delivery stores in its transactions.
type committed struct{ offset.Store }

// Save hears of an offset that is stored. A copy is kept current where there is one, as Kafka Connect does after a commit.
func (s committed) Save(ctx context.Context, key offset.Key, o offset.Offset) error {
	if own, ok := s.Store.(*ownStore); ok {
		own.copy(ctx, key, o)
	}
	return nil
}

// fenced is a place of offsets whose transactional id is taken before each Load.
type fenced struct {
	offset.Store
	topic *kafka.TopicStore
	id    string
	may   func() bool // nil: it may
}

func (s fenced) Load(ctx context.Context, key offset.Key) (offset.Offset, error) {
	if s.may != nil && !s.may() { // it would be taken from who runs now
		return offset.Offset{}, emitter.ErrStale
	}
	if err := s.topic.Fence(ctx, key, s.id); err != nil {
		return offset.Offset{}, err
	}
	return s.Store.Load(ctx, key)
}

// exitFenced is the exit code for a process whose place another one has taken: starting it again would take it back.
const exitFenced = 75

// explainFenced says what it means when an error is that somebody else has taken the transactional id.
func explainFenced(err error) error {
	if !isFenced(err) {
		return err
	}
	return fmt.Errorf("fenced by another instance: a Kafka Connect task with exactly-once support, or another tidemark with this group.id and name, has begun. "+
		"This one ends, with exit code %d, and does not take it back; nothing is lost. Start it again only when the other one is stopped: %w", exitFenced, err)
}
