package kafka

import (
	"bytes"
	"context"
	"fmt"

	"github.com/tidemark-cdc/tidemark/offset"
)

// Entry is a record of a [TopicStore].
type Entry struct {
	Key, Value []byte // a nil Value deletes what is under the key
	Partition  int32  // -1: that of the key
}

// Prepared is an offset and what is to be written for it to be stored. It is immutable, and holds after the store is closed.
type Prepared struct {
	// Entries are in the order in which they are to be written; none if the store has them already. They are to be in one
	// transaction, or each is to be acknowledged before the next.
	Entries []Entry

	key          offset.Key
	offset       offset.Offset
	value, side  []byte // under both keys
	otherPlaces  []other
	underOurName bool // the offset stands under Connect's spelling of the key
}

// Offset is the offset that is stored with it.
func (p *Prepared) Offset() offset.Offset { return p.offset }

// Topic is the name of the topic.
func (s *TopicStore) Topic() string { return s.topic }

// Prepare says what is to be written to store o under key, and writes nothing: that is for whoever puts it into a transaction
// with the records that o covers. before is what was prepared before it for this key since the offset was loaded, whether it
// is written already or not; nil: nothing was.
func (s *TopicStore) Prepare(key offset.Key, o offset.Offset, before *Prepared) (*Prepared, error) {
	if err := s.storable(key, o); err != nil {
		return nil, err
	}
	return s.prepare(key, o, before), nil
}

// storable refuses what is not to be stored.
func (s *TopicStore) storable(key offset.Key, o offset.Offset) error {
	if o.IsZero() {
		return fmt.Errorf("offsets topic %s: refusing to store an empty offset for %s", s.topic, key)
	}
	return key.Check()
}

// prepare is Prepare of what is storable.
func (s *TopicStore) prepare(key offset.Key, o offset.Offset, before *Prepared) *Prepared {
	if before == nil {
		before = s.present(key)
	}
	next := &Prepared{key: key, offset: o, value: o.Append(nil), side: before.side, underOurName: true}
	if side := o.AppendSide(nil, before.offset, before.side); side != nil && !bytes.Equal(side, before.side) {
		next.side = side
		next.Entries = append(next.Entries, Entry{key.Side().Append(nil), side, -1})
	}
	if !before.underOurName || !bytes.Equal(before.value, next.value) {
		next.Entries = append(next.Entries, Entry{key.Append(nil), next.value, -1})
	}
	for _, other := range before.otherPlaces {
		// Where it stands: in another partition it could be read before what it deletes.
		next.Entries = append(next.Entries, Entry{other.key, nil, other.at.partition})
	}
	return next
}

// present is what the topic has.
func (s *TopicStore) present(key offset.Key) *Prepared {
	v := s.stored(key)
	o, err := offset.Parse(v.offset)
	if err != nil {
		o = offset.Offset{} // refused by Load; whoever saves all the same has no offset before
	}
	return &Prepared{
		key: key, offset: o, value: v.offset, side: v.side, otherPlaces: v.others, underOurName: bytes.Equal(v.key, key.Append(nil)),
	}
}

// SameCluster returns an error if a client is connected to another cluster than the one that the topic is in: a transaction is in
// one cluster. While one of them cannot be reached it waits, until ctx ends.
func (s *TopicStore) SameCluster(ctx context.Context, c *Client) error {
	ours, err := s.client.clusterID(ctx)
	if err != nil {
		return fmt.Errorf("offsets topic %s: asking for the cluster's id: %w", s.topic, err)
	}
	theirs, err := c.clusterID(ctx)
	if err != nil {
		return fmt.Errorf("asking for the cluster's id: %w", err)
	}
	if ours == theirs { // both empty of brokers that have none, which then cannot be told apart
		return nil
	}
	return fmt.Errorf("exactly-once delivery writes records and offset in one transaction, which is in one cluster, but the offsets topic %s is in cluster %s (%s) and the records go to cluster %s (%s): "+
		"set offsets.storage.topic in the connector's file, a topic for its offsets in the cluster of its records",
		s.topic, ours, s.client.seeds[0], theirs, c.seeds[0])
}

// clusterID asks for the id of the cluster.
func (c *Client) clusterID(ctx context.Context) (string, error) {
	return retry(ctx, func() (string, error) {
		m, err := c.admin.BrokerMetadata(ctx)
		return m.Cluster, err
	})
}
