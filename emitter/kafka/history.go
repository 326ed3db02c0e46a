package kafka

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/emitter/internal/kclient"
	"github.com/tidemark-cdc/tidemark/schema"
)

// HistoryConfig says where a connector's Debezium schema history is in Kafka.
type HistoryConfig struct {
	// ClientConfig is for writing: Properties are schema.history.internal.producer.* with bootstrap.servers from
	// schema.history.internal.kafka.bootstrap.servers.
	ClientConfig

	// Consumer is for reading: schema.history.internal.consumer.*, with bootstrap.servers as well. [CheckConsumerProperties]
	// tells what has no effect. Nil: Properties, as far as they say how to connect.
	Consumer map[string]string
	// ConsumerReread gives Consumer anew, as Reread gives Properties.
	ConsumerReread func() (map[string]string, error)

	Topic  string // schema.history.internal.kafka.topic; required
	Server string // topic.prefix: the records of other servers in the topic are not this connector's
}

// History is a Debezium schema history in a Kafka topic: of one partition, the records in order, nothing ever deleted. It
// reads what Debezium wrote and writes what Debezium reads. It is safe for concurrent use.
type History struct {
	cfg    HistoryConfig
	client *Client
	log    *zap.Logger

	mu    sync.Mutex // who has it writes
	ready bool       // the topic exists and is as it must be
}

// OpenHistory makes a History without connecting. It returns all faults of the properties at once.
func OpenHistory(cfg HistoryConfig) (*History, error) {
	if cfg.Topic == "" {
		return nil, errors.New("schema.history.internal.kafka.topic is empty")
	}
	if cfg.Consumer == nil {
		cfg.Consumer = cfg.Properties
	}
	cfg.Consumer = connecting(cfg.Consumer)
	_, _, err := readProperties(cfg.Consumer)
	if err != nil {
		return nil, fmt.Errorf("schema.history.internal.consumer.*: %w", err)
	}
	client, err := newClient(cfg.ClientConfig, kgo.ProducerLinger(0))
	if err != nil {
		return nil, fmt.Errorf("schema.history.internal.producer.*: %w", err)
	}
	log := cfg.Log
	if log == nil {
		log = zap.NewNop()
	}
	return &History{cfg: cfg, client: client, log: log}, nil
}

// historySpec is how Debezium makes the topic.
func historySpec() TopicSpec {
	return TopicSpec{
		Create: true, Partitions: 1, ReplicationFactor: -1,
		Settings: map[string]string{
			"cleanup.policy":  "delete",
			"retention.ms":    strconv.FormatInt(math.MaxInt64, 10),
			"retention.bytes": "-1",
		},
	}
}

// Read reads the whole topic. found is false if it does not exist or has nothing of this connector: there is no history
// to adopt. It waits while the cluster cannot be reached. A topic that cannot hold a history, and a record that is none, is an error.
func (h *History) Read(ctx context.Context) (entries []schema.HistoryEntry, found bool, err error) {
	exists, err := retry(ctx, func() (bool, error) { return h.client.topicExists(ctx, h.cfg.Topic) })
	if err != nil {
		return nil, false, h.fail(err)
	}
	if !exists {
		return nil, false, nil
	}
	if err := h.check(ctx); err != nil {
		return nil, false, h.fail(err)
	}
	spans, err := h.spans(ctx)
	if err != nil {
		return nil, false, h.fail(err)
	}
	cfg := h.cfg.ClientConfig
	cfg.Properties, cfg.Reread = h.cfg.Consumer, nil
	if again := h.cfg.ConsumerReread; again != nil {
		cfg.Reread = func() (map[string]string, error) {
			properties, err := again()
			return connecting(properties), err
		}
	}
	others := 0
	err = readAll(ctx, cfg, h.cfg.Topic, spans, func(r *kgo.Record) error {
		if len(bytes.TrimSpace(r.Value)) == 0 {
			return nil // Debezium passes over records without a value, too
		}
		if server := serverOf(r.Value); server != "" && h.cfg.Server != "" && server != h.cfg.Server {
			others++
			return nil
		}
		one, err := schema.ReadHistory(bytes.NewReader(r.Value))
		if err != nil {
			return fmt.Errorf("the record at offset %d of partition %d is not Debezium's: %w. Is schema.history.internal.kafka.topic the right one? "+
				"Otherwise name a topic that does not exist: the definitions are then read from the server, and this history is not adopted", r.Offset, r.Partition, err)
		}
		entries, found = append(entries, one...), true
		return nil
	})
	if err != nil {
		return nil, false, h.fail(err)
	}
	if others > 0 {
		h.log.Warn("the schema history topic has records of other connectors, which are left out; each connector should have its own",
			zap.String("topic", h.cfg.Topic), zap.Int("records", others), zap.String("topic.prefix", h.cfg.Server))
	}
	return entries, found, nil
}

// serverOf is source.server of a history record; "" if there is none.
func serverOf(record []byte) string {
	var r struct {
		Source struct {
			Server string `json:"server"`
		} `json:"source"`
	}
	if json.Unmarshal(record, &r) != nil {
		return "" // told when the record is read
	}
	return r.Source.Server
}

// check refuses a topic in which a history does not last, and warns of one in which it may not.
func (h *History) check(ctx context.Context) error {
	settings, err := h.client.topicSettings(ctx, h.cfg.Topic)
	switch {
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed):
		h.log.Warn("it cannot be checked whether the schema history topic keeps all records, which it must", zap.String("topic", h.cfg.Topic), zap.Error(err))
		return nil
	case err != nil:
		return fmt.Errorf("reading its settings: %w", err)
	}
	if policy := settings["cleanup.policy"]; slices.Contains(strings.Split(policy, ","), "compact") {
		return fmt.Errorf("it has cleanup.policy=%s, but the records of a schema history have no keys, so that a compacted topic takes none and may have lost some. "+
			"Make it: kafka-configs.sh --bootstrap-server %s --alter --entity-type topics --entity-name %s --add-config cleanup.policy=delete; "+
			"or name a topic that does not exist in schema.history.internal.kafka.topic", policy, h.client.seeds[0], h.cfg.Topic)
	}
	const fiveYears = 5 * 365 * 24 * 3600 * 1000 // as Debezium
	for name, least := range map[string]int64{"retention.ms": fiveYears, "retention.bytes": math.MaxInt64} {
		if n, err := strconv.ParseInt(settings[name], 10, 64); err == nil && n >= 0 && n < least {
			h.log.Warn("the schema history topic deletes records, and with them definitions of tables: set "+name+"=-1",
				zap.String("topic", h.cfg.Topic), zap.Int64(name, n))
		}
	}
	return nil
}

// spans gives the one partition, and refuses records beside it, whose order is not known.
func (h *History) spans(ctx context.Context) (map[int32]span, error) {
	spans, err := retry(ctx, func() (map[int32]span, error) { return h.client.spans(ctx, h.cfg.Topic) })
	if err != nil {
		return nil, err
	}
	for partition, s := range spans {
		if partition != 0 && s.start < s.end {
			return nil, fmt.Errorf("partition %d has records, but a schema history has one partition, or the order of its statements is lost; Debezium reads partition 0 alone. "+
				"Is schema.history.internal.kafka.topic the right one?", partition)
		}
	}
	if len(spans) > 1 {
		h.log.Warn("the schema history topic should have one partition; only the first is used", zap.String("topic", h.cfg.Topic), zap.Int("partitions", len(spans)))
	}
	if start := spans[0].start; start > 0 {
		h.log.Warn("the first records of the schema history topic are gone: definitions of tables may be missing in it", zap.String("topic", h.cfg.Topic), zap.Int64("gone", start))
	}
	return map[int32]span{0: spans[0]}, nil
}

// Append writes records, the exact text of each, behind those that are there, one after the other, and returns when all
// in-sync replicas have them: only then may an offset after their position be stored (I11). It makes the topic if it does
// not exist. It waits while the cluster cannot be reached. After an error the first of the records are there, and it is not
// known how many; what the stored offset does not cover is written again when it is read again, as Debezium does.
func (h *History) Append(ctx context.Context, records ...[]byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(records) == 0 {
		return nil
	}
	if !h.ready {
		err := h.client.EnsureTopic(ctx, h.cfg.Topic, historySpec())
		if err == nil {
			err = h.check(ctx)
		}
		if err != nil {
			return h.fail(err)
		}
		h.ready = true
	}
	for _, text := range records {
		// Not bound to ctx: the next record must not overtake one that was given up.
		record := &kgo.Record{Topic: h.cfg.Topic, Partition: kclient.Fixed(0), Value: text}
		done := make(chan error, 1)
		h.client.inner.Kgo.Produce(context.WithoutCancel(ctx), record, func(_ *kgo.Record, err error) { done <- err })
		select {
		case err := <-done:
			if err != nil {
				return h.fail(fmt.Errorf("a record of %d bytes: %w%s", len(text), h.client.topicError("writing to", h.cfg.Topic, err), tooLarge(err)))
			}
		case <-ctx.Done():
			return h.fail(fmt.Errorf("no acknowledgement: %w", context.Cause(ctx)))
		}
	}
	return nil
}

func tooLarge(err error) string {
	if errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.RecordListTooLarge) {
		return "; raise schema.history.internal.producer.max.request.size of the connector and max.message.bytes of the topic"
	}
	return ""
}

func (h *History) fail(err error) error {
	return fmt.Errorf("schema history topic %s: %w", h.cfg.Topic, err)
}

// Close ends the connections. It does not write; an Append under way fails.
func (h *History) Close() { h.client.Close() }
