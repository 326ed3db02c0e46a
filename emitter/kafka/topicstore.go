package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/emitter/internal/kclient"
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

// spec says how Connect makes the topic.
func (cfg *TopicStoreConfig) spec() TopicSpec {
	spec := TopicSpec{Create: true, Partitions: cfg.Partitions, ReplicationFactor: cfg.ReplicationFactor, Settings: cfg.Settings}
	if spec.Partitions == 0 {
		spec.Partitions = 25
	}
	if spec.ReplicationFactor == 0 {
		spec.ReplicationFactor = 3
	}
	return spec
}

// check returns what is wrong with the settings.
func (cfg *TopicStoreConfig) check() error {
	if cfg.Topic == "" {
		return errors.New("offset.storage.topic is empty")
	}
	if policy := cfg.Settings["cleanup.policy"]; policy != "" && policy != "compact" {
		return fmt.Errorf("offset.storage.cleanup.policy=%s: the offsets topic must be compacted, or offsets would be deleted", policy)
	}
	return nil
}

// TopicStore keeps offsets in the compacted topic in which a distributed Kafka Connect worker keeps them
// (offset.storage.topic): the same keys, values, partitions and topic settings, so that either can go on from what the
// other stored. Beside an offset stands its side record, under [offset.Key.Side]. It is safe for concurrent use.
//
// A record is written under Connect's spelling of its key. One of the same connector and prefix in another spelling,
// which Connect would not find, is loaded; the next Save writes Connect's and deletes the other.
type TopicStore struct {
	*compacted

	reading chan struct{}   // holds one token: who has it reads
	next    map[int32]int64 // by partition: where reading goes on; belongs to who reads
	made    kadm.TopicID    // what was read; of who reads, too

	mu     sync.Mutex
	values map[string][]byte // by key: the newest value that all in-sync replicas have; nil after a deletion
	places map[string]place  // by key: where the newest record is
	keys   map[offset.Key]*savedKey
	fences map[*fence]struct{} // to be ended with the store
	closed bool

	fenceWait time.Duration // fenceWait, but in tests
}

// place is where a record lies in the topic.
type place struct {
	partition int32
	offset    int64
}

// savedKey is what a store knows of a key beside its values. It belongs to who has the token.
type savedKey struct {
	token chan struct{} // holds one: who has it loads or saves
	last  *sent         // the last write, unless it is known to have been done
	fence *fence        // writes in transactions; nil: not
	open  bool          // it was said that there are no transactions
	said  string        // the side record and offset of which it was said that they do not belong together
}

var _ offset.Store = (*TopicStore)(nil)

// OpenTopicStore makes the topic if it does not exist, as Connect does, checks that it is compacted and reads what is decided.
// While the cluster cannot be reached it waits, until ctx ends.
func OpenTopicStore(ctx context.Context, cfg TopicStoreConfig) (*TopicStore, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	c, err := openCompacted(ctx, compactedConfig{cfg.ClientConfig, "offsets topic", cfg.spec()}, cfg.Topic,
		append(reading(), kgo.ProducerBatchCompression(kgo.NoCompression()))...)
	if err != nil {
		return nil, err
	}
	s := &TopicStore{
		compacted: c,
		reading:   make(chan struct{}, 1),
		next:      make(map[int32]int64),
		values:    make(map[string][]byte),
		places:    make(map[string]place),
		keys:      make(map[offset.Key]*savedKey),
		fences:    make(map[*fence]struct{}),
		fenceWait: fenceWait,
	}
	// What is not decided may have to be ended first, by [TopicStore.Fence] or a delivery; Load waits for it.
	if err := s.readUpTo(ctx, c.client.decided); err != nil {
		c.close()
		return nil, err
	}
	return s, nil
}

// readToEnd reads what was written to the topic up to now, by whomever. Records of transactions that are not decided
// are waited for; other pipelines can store meanwhile.
func (s *TopicStore) readToEnd(ctx context.Context) error { return s.readUpTo(ctx, s.client.spans) }

// readUpTo reads what spans says.
func (s *TopicStore) readUpTo(ctx context.Context, spans func(context.Context, string) (map[int32]span, error)) error {
	select {
	case s.reading <- struct{}{}:
		defer func() { <-s.reading }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	ends, err := retry(ctx, func() (map[int32]int64, error) { return s.ends(ctx, spans) })
	if err != nil {
		return fmt.Errorf("offsets topic %s: %w", s.topic, err)
	}
	left := func() (partitions []int32) {
		for partition, end := range ends {
			if s.next[partition] < end {
				partitions = append(partitions, partition)
			}
		}
		slices.Sort(partitions)
		return partitions
	}
	if len(left()) == 0 {
		return nil
	}
	s.client.inner.Kgo.ResumeFetchTopics(s.topic)
	defer s.client.inner.Kgo.PauseFetchTopics(s.topic)
	for len(left()) > 0 {
		fetches := s.client.pollAll(ctx, s.topic, left)
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
				s.keep(r)
			}
		})
	}
	return nil
}

// keep notes a record that was read or written, unless a newer one is known: what is written comes back when it is read.
func (s *TopicStore) keep(r *kgo.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := string(r.Key)
	if known, ok := s.places[key]; ok && known.partition == r.Partition && known.offset > r.Offset {
		return
	}
	s.values[key] = r.Value
	s.places[key] = place{r.Partition, r.Offset}
}

// forgetDeleted forgets what was in a topic of this name that was deleted since.
func (s *TopicStore) forgetDeleted(ctx context.Context) error {
	topics, err := s.client.admin.ListTopics(ctx, s.topic)
	if err != nil {
		return err
	}
	id := topics[s.topic].ID
	if id == (kadm.TopicID{}) { // the brokers give none, or the topic is not there
		return nil
	}
	if s.made != id && s.made != (kadm.TopicID{}) {
		s.client.inner.Kgo.PurgeTopicsFromConsuming(s.topic)
		clear(s.next)
		s.mu.Lock()
		clear(s.values)
		clear(s.places)
		s.mu.Unlock()
	}
	s.made = id
	return nil
}

// ends gives the end of each partition, and begins reading partitions that are new at their start.
func (s *TopicStore) ends(ctx context.Context, spans func(context.Context, string) (map[int32]span, error)) (map[int32]int64, error) {
	now, err := spans(ctx, s.topic)
	if err != nil {
		return nil, err
	}
	if err := s.forgetDeleted(ctx); err != nil {
		return nil, err
	}
	ends := make(map[int32]int64)
	added := make(map[int32]kgo.Offset)
	for partition, span := range now {
		if next, known := s.next[partition]; !known {
			s.next[partition] = span.start
			added[partition] = kgo.NewOffset().At(span.start)
		} else if next < span.start {
			s.next[partition] = span.start // deleted by an administrator: there is nothing to read up to here
		}
		if span.end < s.next[partition] {
			return nil, fmt.Errorf("partition %d ends at %d, but was read up to %d already: was the topic deleted or did it lose records? "+
				"Start again to read what it holds now", partition, span.end, s.next[partition])
		}
		ends[partition] = span.end
	}
	if len(added) > 0 {
		s.client.inner.Kgo.AddConsumePartitions(map[string]map[int32]kgo.Offset{s.topic: added})
	}
	return ends, nil
}

// take returns what is known of a key when nobody else loads or saves it. It is to be given back.
func (s *TopicStore) take(ctx context.Context, key offset.Key) (k *savedKey, giveBack func(), err error) {
	s.mu.Lock()
	k = s.keys[key]
	if k == nil {
		k = &savedKey{token: make(chan struct{}, 1)}
		s.keys[key] = k
	}
	s.mu.Unlock()
	select {
	case k.token <- struct{}{}:
		return k, func() { <-k.token }, nil
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
}

// settle returns when it is known what the topic has under a key: when the write before this is decided and, if it
// failed, what is there now is read. So the side record never names another offset before it than the one that is there.
func (s *TopicStore) settle(ctx context.Context, k *savedKey) error {
	if k.last == nil {
		return nil
	}
	select {
	case <-k.last.done:
	case <-ctx.Done():
		return fmt.Errorf("an earlier write is not acknowledged: %w", context.Cause(ctx))
	}
	if k.last.err != nil {
		if err := s.readToEnd(ctx); err != nil {
			return err
		}
	}
	k.last = nil
	return nil
}

// Load reads the topic to its end, so that what a Connect worker or an administrator wrote counts, and returns the
// offset under key, with what counts of its side record. It waits while the cluster cannot be reached and until
// transactions that are under way are decided.
func (s *TopicStore) Load(ctx context.Context, key offset.Key) (offset.Offset, error) {
	k, giveBack, err := s.take(ctx, key)
	if err != nil {
		return offset.Offset{}, fmt.Errorf("offsets topic %s: %w", s.topic, err)
	}
	defer giveBack()
	if err := s.readToEnd(ctx); err != nil {
		return offset.Offset{}, err
	}
	if k.fence != nil {
		k.fence.loaded(s.present(key))
	}
	v := s.stored(key)
	o, err := offset.Parse(v.offset)
	if err != nil {
		return offset.Offset{}, fmt.Errorf("offsets topic %s, partition %d, offset %d, key %s: %w; nothing is started, because starting without the offset would lose or repeat changes. "+
			"Write the right value under this key again, or %s", s.topic, v.at.partition, v.at.offset, v.key, err, offset.HowToDelete)
	}
	if o.IsZero() {
		return o, nil // deleted: nothing is to be gone on with
	}
	with, ours, err := o.ReadSide(v.side)
	if err != nil {
		return offset.Offset{}, fmt.Errorf("offsets topic %s, partition %d, offset %d, key %s: %w; nothing is started, because undecided XA transactions may be noted there. "+
			"Write the right value under this key again", s.topic, v.sideAt.partition, v.sideAt.offset, key.Side(), err)
	}
	if told := string(v.side) + with.String(); !ours && k.said != told {
		k.said = told
		s.log.Warn(offset.ForeignSide(key, with, v.side), zap.String("topic", s.topic))
	}
	return with, nil
}

// storedValues are what the topic has under a connector's keys.
type storedValues struct {
	key          []byte  // under which the offset stands
	others       []other // the same key in other spellings
	offset, side []byte
	at, sideAt   place
}

// other is a key in a spelling that is not Connect's.
type other struct {
	key []byte
	at  place
}

func (s *TopicStore) stored(key offset.Key) storedValues {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := storedValues{key: key.Append(nil)}
	for _, text := range s.spellings(key) {
		v.others = append(v.others, other{text, s.places[string(text)]})
	}
	if _, found := s.values[string(v.key)]; !found && len(v.others) > 0 {
		v.key = v.others[0].key
	}
	v.offset, v.at = s.values[string(v.key)], s.places[string(v.key)]
	side := key.Side().String()
	v.side, v.sideAt = s.values[side], s.places[side]
	return v
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

// Save writes the side record of o, if it has a Side, waits until all in-sync replicas have it, writes o under key and
// returns when they have that. After [TopicStore.Fence] both are one transaction, and Save returns when it is committed.
// When ctx ends before, it is not known what will be written; it will in any case not be written after a later Save of the
// same key, which waits until it is known.
func (s *TopicStore) Save(ctx context.Context, key offset.Key, o offset.Offset) error {
	if err := s.storable(key, o); err != nil {
		return err
	}
	if err := s.save(ctx, key, o); err != nil {
		return fmt.Errorf("storing the offset in topic %s: %w", s.topic, err)
	}
	s.watchPolicy(ctx)
	return nil
}

func (s *TopicStore) save(ctx context.Context, key offset.Key, o offset.Offset) error {
	k, giveBack, err := s.take(ctx, key)
	if err != nil {
		return err
	}
	defer giveBack()
	if k.fence != nil {
		return s.saveFenced(ctx, key, k, o)
	}
	if err := s.settle(ctx, k); err != nil {
		return err
	}
	for _, e := range s.prepare(key, o, nil).Entries {
		record := &kgo.Record{Key: e.Key, Value: e.Value}
		if e.Partition >= 0 {
			record.Partition = kclient.Fixed(e.Partition)
		}
		if err := s.write(ctx, k, record); err != nil {
			return err
		}
	}
	return nil
}

func (s *TopicStore) write(ctx context.Context, k *savedKey, record *kgo.Record) error {
	k.last = s.produce(ctx, record, s.keep)
	err := k.last.wait(ctx)
	if err == nil {
		k.last = nil
	}
	return withSize(err, []Entry{{Key: record.Key, Value: record.Value}})
}

// Close ends the connections. It does not write; a Save under way fails.
func (s *TopicStore) Close() error {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.mu.Unlock()
	if !again {
		s.unfence()
		s.close()
	}
	return nil
}
