package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// SchemaTopic is the schema store beside an offsets topic: a compacted topic of its own, named like it with "-schemas"
// behind. Each table of a connector is one record,
//
//	["<connector>",{"server":"<topic.prefix>"},"<database>","<table>"]   the text of a [schema.StoredTable]
//	["<connector>",{"server":"<topic.prefix>"},"<database>"]             the same of a database, and with "" of the server
//
// so that a DDL statement writes only the tables that it changes. It keeps nothing in memory. It is safe for concurrent
// use.
type SchemaTopic struct {
	*compacted

	mu      sync.Mutex
	owners  map[offset.Key]*owned
	writers map[*transactional]struct{} // to be ended with the store
	closed  bool

	fenceWait time.Duration // fenceWait, but in tests
}

var _ schema.Store = (*SchemaTopic)(nil)

// schemaBatch is the largest batch in bytes before it is compressed. What brokers bound (message.max.bytes) is what is
// left of it: of such texts a twentieth.
const schemaBatch = 8 << 20

// OpenSchemaTopic makes the topic if it does not exist, with the partitions, replicas and settings of the offsets topic,
// and checks that it is compacted. While the cluster cannot be reached it waits, until ctx ends.
func OpenSchemaTopic(ctx context.Context, cfg TopicStoreConfig) (*SchemaTopic, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	c, err := openCompacted(ctx, compactedConfig{cfg.ClientConfig, "schema topic", cfg.spec()}, cfg.Topic+"-schemas",
		kgo.ProducerBatchCompression(kgo.ZstdCompression(), kgo.GzipCompression()),
		kgo.ProducerBatchMaxBytes(schemaBatch),
		kgo.MaxBufferedBytes(2*schemaBatch))
	if err != nil {
		return nil, err
	}
	return &SchemaTopic{
		compacted: c, owners: make(map[offset.Key]*owned), writers: make(map[*transactional]struct{}), fenceWait: fenceWait,
	}, nil
}

// Load implements [schema.Store]: it reads the topic to its end. It waits while the cluster cannot be reached.
func (s *SchemaTopic) Load(ctx context.Context, connector, prefix string) ([]schema.StoredTable, error) {
	spans, err := retry(ctx, func() (map[int32]span, error) { return s.client.spans(ctx, s.topic) })
	if err != nil {
		return nil, fmt.Errorf("schema topic %s: %w", s.topic, err)
	}
	newest := make(map[string]*kgo.Record)
	owner := offset.Key{Connector: connector, Server: prefix}
	begin := ownerPrefix(nil, owner)
	err = readAll(ctx, s.access, s.topic, spans, func(r *kgo.Record) error {
		if bytes.HasPrefix(r.Key, begin) {
			newest[string(r.Key)] = &kgo.Record{Key: slices.Clone(r.Key), Value: slices.Clone(r.Value), Partition: r.Partition, Offset: r.Offset}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("schema topic %s: %w", s.topic, err)
	}
	var tables []schema.StoredTable
	for _, r := range newest {
		if r.Value == nil {
			continue // deleted
		}
		t, err := schema.ParseStoredTable(r.Value)
		if err == nil {
			if !bytes.Equal(r.Key, tableKey(nil, owner, t.Database, t.Table)) {
				err = fmt.Errorf("it describes %q.%q", t.Database, t.Table)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("schema topic %s, partition %d, offset %d, key %s: %w. Write the right value under this key again, or a null to go on with what the server says of the table now",
				s.topic, r.Partition, r.Offset, r.Key, err)
		}
		tables = append(tables, t)
	}
	return tables, nil
}

// Save implements [schema.Store]: it returns when all in-sync replicas have all the tables. A table without versions is
// forgotten: its record is deleted. After an error some of them may be written; after [SchemaTopic.Fence] all or none are.
func (s *SchemaTopic) Save(ctx context.Context, connector, prefix string, tables []schema.StoredTable) error {
	owner := offset.Key{Connector: connector, Server: prefix}
	o, giveBack, err := s.take(ctx, owner)
	if err != nil {
		return fmt.Errorf("schema topic %s: %w", s.topic, err)
	}
	defer giveBack()
	entries := make([]Entry, len(tables))
	for i, t := range tables {
		entries[i] = Entry{Key: tableKey(nil, owner, t.Database, t.Table), Partition: -1}
		if len(t.Versions) > 0 {
			entries[i].Value = t.Append(nil)
		}
	}
	if o.writer != nil && len(entries) > 0 {
		if err := s.saveFenced(ctx, o.writer, entries); err != nil {
			return fmt.Errorf("storing the definition of %q.%q and perhaps others in topic %s: %w%s", tables[0].Database, tables[0].Table, s.topic, err, sizeHint(err))
		}
		return nil
	}
	writes := make([]*sent, len(tables))
	for i, e := range entries {
		writes[i] = s.produce(ctx, &kgo.Record{Key: e.Key, Value: e.Value}, nil)
	}
	for i, w := range writes {
		if err := w.wait(ctx); err != nil {
			return fmt.Errorf("storing the definition of %q.%q: %w%s", tables[i].Database, tables[i].Table, err, sizeHint(err))
		}
	}
	return nil
}

// sizeHint is what helps against an error that is about a record's size.
func sizeHint(err error) string {
	if errors.Is(err, kerr.MessageTooLarge) {
		return "; raise max.message.bytes of the topic"
	}
	return ""
}

// Close implements [schema.Store]: it ends the connections. A Save under way fails.
func (s *SchemaTopic) Close() error {
	s.mu.Lock()
	s.closed = true
	writers := slices.Collect(maps.Keys(s.writers))
	s.mu.Unlock()
	for _, w := range writers {
		s.end(w)
	}
	s.close()
	return nil
}

// tableKey appends the key of a table's record or, without a table, a database's.
func tableKey(dst []byte, owner offset.Key, database, table string) []byte {
	dst = append(ownerPrefix(dst, owner), offset.TextMember("", database).Value...)
	if table != "" {
		dst = append(append(dst, ','), offset.TextMember("", table).Value...)
	}
	return append(dst, ']')
}

// ownerPrefix appends what the keys of all tables of a connector begin with.
func ownerPrefix(dst []byte, owner offset.Key) []byte {
	dst = owner.Append(dst)
	dst[len(dst)-1] = ','
	return dst
}
