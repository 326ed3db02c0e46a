package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/offset"
)

// TopicStoreConfig says where the offsets topic is and how to make it.
type TopicStoreConfig struct {
	ClientConfig

	Topic             string            // offset.storage.topic; required
	Partitions        int32             // offset.storage.partitions; 0: 25; -1: the brokers' default
	ReplicationFactor int16             // offset.storage.replication.factor; 0: 3; -1: the brokers' default
	Settings          map[string]string // offset.storage.<setting> by the topic's own names; cleanup.policy is always compact
}

// TopicStore keeps offsets in the compacted topic in which a distributed Kafka Connect worker keeps them
// (offset.storage.topic): the same keys, values, partitions and topic settings, so that either can go on from what the
// other stored. It is safe for concurrent use.
//
// A record is written under Connect's spelling of its key. One of the same connector and prefix in another spelling,
// which Connect would not find, is loaded; the next Save writes Connect's and deletes the other.
type TopicStore struct {
	topic  string
	client *Client
	log    *zap.Logger

	reading chan struct{}   // holds one token: who has it reads
	next    map[int32]int64 // by partition: where reading goes on; belongs to who reads

	mu     sync.Mutex
	values map[string][]byte // by key: the newest value; nil after a deletion
	places map[string]place  // by key: where the newest record was read, for error texts
	closed bool
}

// place is where a record lies in the topic.
type place struct {
	partition int32
	offset    int64
}

var _ offset.Store = (*TopicStore)(nil)

// OpenTopicStore makes the topic if it does not exist, as Connect does, checks that it is compacted and reads all of it.
// While the cluster cannot be reached it waits, until ctx ends.
func OpenTopicStore(ctx context.Context, cfg TopicStoreConfig) (*TopicStore, error) {
	if cfg.Topic == "" {
		return nil, errors.New("offset.storage.topic is empty")
	}
	if policy := cfg.Settings["cleanup.policy"]; policy != "" && policy != "compact" {
		return nil, fmt.Errorf("offset.storage.cleanup.policy=%s: the offsets topic must be compacted, or offsets would be deleted", policy)
	}
	log := cfg.Log
	if log == nil {
		log = zap.NewNop()
	}
	client, err := newClient(cfg.ClientConfig,
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerLinger(0),
		// A transaction that was rolled back stored nothing. Its control records are kept, because the last record of a
		// partition may be one and reading ends there.
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(),
		kgo.FetchMaxWait(250*time.Millisecond),
	)
	if err != nil {
		return nil, err
	}
	s := &TopicStore{
		topic:   cfg.Topic,
		client:  client,
		log:     log,
		reading: make(chan struct{}, 1),
		next:    make(map[int32]int64),
		values:  make(map[string][]byte),
		places:  make(map[string]place),
	}
	if err := s.open(ctx, cfg); err != nil {
		client.Close()
		return nil, err
	}
	return s, nil
}

func (s *TopicStore) open(ctx context.Context, cfg TopicStoreConfig) error {
	spec := TopicSpec{Create: true, Partitions: cfg.Partitions, ReplicationFactor: cfg.ReplicationFactor, Settings: maps.Clone(cfg.Settings)}
	if spec.Settings == nil {
		spec.Settings = make(map[string]string, 1)
	}
	spec.Settings["cleanup.policy"] = "compact"
	if spec.Partitions == 0 {
		spec.Partitions = 25
	}
	if spec.ReplicationFactor == 0 {
		spec.ReplicationFactor = 3
	}
	if err := s.client.EnsureTopic(ctx, s.topic, spec); err != nil {
		return fmt.Errorf("offsets topic: %w", err)
	}
	if err := s.checkPolicy(ctx); err != nil {
		return err
	}
	return s.readToEnd(ctx)
}

// checkPolicy refuses a topic from which offsets would vanish, as Connect does.
func (s *TopicStore) checkPolicy(ctx context.Context) error {
	resources, err := retry(ctx, func() (string, error) {
		configs, err := s.client.admin.DescribeTopicConfigs(ctx, s.topic)
		if err != nil {
			return "", err
		}
		config, err := configs.On(s.topic, nil)
		if err == nil {
			err = config.Err
		}
		if err != nil {
			return "", err
		}
		for _, c := range config.Configs {
			if c.Key == "cleanup.policy" && c.Value != nil {
				return *c.Value, nil
			}
		}
		return "", nil
	})
	switch {
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed), err == nil && resources == "":
		s.log.Warn("it cannot be checked whether the offsets topic is compacted, which it must be", zap.String("topic", s.topic), zap.Error(err))
		return nil
	case err != nil:
		return fmt.Errorf("offsets topic %s: reading its settings: %w", s.topic, err)
	case strings.TrimSpace(resources) != "compact":
		return fmt.Errorf("offsets topic %s has cleanup.policy=%s, so offsets would be deleted; it must be compact: "+
			"kafka-configs.sh --bootstrap-server %s --alter --entity-type topics --entity-name %s --add-config cleanup.policy=compact",
			s.topic, resources, s.client.seeds[0], s.topic)
	}
	return nil
}

// retry calls f until it works, fails for good or ctx ends.
func retry[T any](ctx context.Context, f func() (T, error)) (T, error) {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		v, err := f()
		if err == nil || ctx.Err() != nil || !Transient(err) {
			return v, err
		}
		if err := pause(ctx, wait, err); err != nil {
			return v, err
		}
	}
}

// readToEnd reads what was written to the topic up to now, by whomever. Records of transactions that are not decided
// are waited for; other pipelines can store meanwhile.
func (s *TopicStore) readToEnd(ctx context.Context) error {
	select {
	case s.reading <- struct{}{}:
		defer func() { <-s.reading }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	ends, err := retry(ctx, func() (map[int32]int64, error) { return s.ends(ctx) })
	if err != nil {
		return fmt.Errorf("offsets topic %s: %w", s.topic, err)
	}
	behind := func() bool {
		for partition, end := range ends {
			if s.next[partition] < end {
				return true
			}
		}
		return false
	}
	if !behind() {
		return nil
	}
	s.client.inner.Kgo.ResumeFetchTopics(s.topic)
	defer s.client.inner.Kgo.PauseFetchTopics(s.topic)
	for behind() {
		fetches := s.client.inner.Kgo.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("offsets topic %s: reading it to its end: %w", s.topic, context.Cause(ctx))
		}
		for _, e := range fetches.Errors() {
			if !Transient(e.Err) {
				return fmt.Errorf("offsets topic %s, partition %d: %w", s.topic, e.Partition, e.Err)
			}
		}
		fetches.EachRecord(func(r *kgo.Record) {
			s.next[r.Partition] = r.Offset + 1
			if !r.Attrs.IsControl() && r.Key != nil {
				s.mu.Lock()
				s.values[string(r.Key)] = r.Value
				s.places[string(r.Key)] = place{r.Partition, r.Offset}
				s.mu.Unlock()
			}
		})
	}
	return nil
}

// ends gives the end of each partition, and begins reading partitions that are new at their start.
func (s *TopicStore) ends(ctx context.Context) (map[int32]int64, error) {
	starts, err := s.client.admin.ListStartOffsets(ctx, s.topic)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return nil, err
	}
	listed, err := s.client.admin.ListEndOffsets(ctx, s.topic)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return nil, err
	}
	ends := make(map[int32]int64)
	added := make(map[int32]kgo.Offset)
	for partition, end := range listed[s.topic] {
		start, ok := starts.Lookup(s.topic, partition)
		if !ok {
			continue // made just now: it is found the next time
		}
		if next, known := s.next[partition]; !known {
			s.next[partition] = start.Offset
			added[partition] = kgo.NewOffset().At(start.Offset)
		} else if next < start.Offset {
			s.next[partition] = start.Offset // deleted by an administrator: there is nothing to read up to here
		}
		if end.Offset < s.next[partition] {
			return nil, fmt.Errorf("partition %d ends at %d, but was read up to %d already: was the topic deleted or did it lose records? "+
				"Start again to read what it holds now", partition, end.Offset, s.next[partition])
		}
		ends[partition] = end.Offset
	}
	if len(ends) == 0 {
		return nil, kerr.UnknownTopicOrPartition
	}
	if len(added) > 0 {
		s.client.inner.Kgo.AddConsumePartitions(map[string]map[int32]kgo.Offset{s.topic: added})
	}
	return ends, nil
}

// Load reads the topic to its end, so that what a Connect worker or an administrator wrote counts, and returns the
// offset under key. It waits while the cluster cannot be reached and until transactions that are under way are decided.
func (s *TopicStore) Load(ctx context.Context, key offset.Key) (offset.Offset, error) {
	if err := s.readToEnd(ctx); err != nil {
		return offset.Offset{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	exact := key.Append(nil)
	value, found := s.values[string(exact)]
	if !found {
		spellings := s.spellings(key)
		if len(spellings) == 0 {
			return offset.Offset{}, nil
		}
		exact = spellings[0]
		value = s.values[string(exact)]
	}
	o, err := offset.Parse(value)
	if err != nil {
		at := s.places[string(exact)]
		return offset.Offset{}, fmt.Errorf("offsets topic %s, partition %d, offset %d, key %s: %w; nothing is started, because starting without the offset would lose or repeat changes. "+
			"Write the right value under this key again, or %s", s.topic, at.partition, at.offset, exact, err, offset.HowToDelete)
	}
	return o, nil
}

// spellings gives the keys of other spellings that have a value, always in the same order. The lock is held.
func (s *TopicStore) spellings(key offset.Key) [][]byte {
	exact := key.Append(nil)
	var out [][]byte
	for text, value := range s.values {
		if value == nil || text == string(exact) {
			continue
		}
		if k, ok := offset.ParseKey([]byte(text)); ok && k == key {
			out = append(out, []byte(text))
		}
	}
	slices.SortFunc(out, bytes.Compare)
	return out
}

// Save writes o under key and returns when all in-sync replicas have it. When ctx ends before, it is not known whether
// it will be written; it will in any case not be written after a later Save of the same key.
func (s *TopicStore) Save(ctx context.Context, key offset.Key, o offset.Offset) error {
	if o.IsZero() {
		return fmt.Errorf("offsets topic %s: refusing to store an empty offset for %s", s.topic, key)
	}
	s.mu.Lock()
	others := s.spellings(key)
	s.mu.Unlock()
	exact, value := key.Append(nil), o.Append(nil)
	if err := s.write(ctx, exact, value); err != nil {
		return err
	}
	for _, other := range others {
		if err := s.write(ctx, other, nil); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range others {
		s.values[string(other)] = nil
	}
	s.values[string(exact)] = value
	return nil
}

// write produces one record and waits for it. The record itself is not bound to ctx: a record given up in the middle of
// being written could not be told from one that is written.
func (s *TopicStore) write(ctx context.Context, key, value []byte) error {
	done := make(chan error, 1)
	record := &kgo.Record{Topic: s.topic, Key: key, Value: value}
	s.client.inner.Kgo.Produce(context.WithoutCancel(ctx), record, func(_ *kgo.Record, err error) { done <- err })
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("storing the offset: %w", s.client.topicError("writing to", s.topic, err))
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("storing the offset in topic %s: no acknowledgement: %w", s.topic, context.Cause(ctx))
	}
}

// Close ends the connections. It does not write; a Save under way fails.
func (s *TopicStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.client.Close()
	}
	return nil
}
