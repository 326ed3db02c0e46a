package kafka

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
)

// span is a partition's first and next offset.
type span struct{ start, end int64 }

// spans lists the partitions of a topic. One that was made a moment ago may be missing.
func (c *Client) spans(ctx context.Context, topic string) (map[int32]span, error) {
	return c.spansUpTo(ctx, topic, c.admin.ListEndOffsets)
}

// decided is spans up to the first transaction of each partition that is not decided.
func (c *Client) decided(ctx context.Context, topic string) (map[int32]span, error) {
	return c.spansUpTo(ctx, topic, c.admin.ListCommittedOffsets)
}

// listing asks for offsets of all partitions of topics.
type listing func(context.Context, ...string) (kadm.ListedOffsets, error)

func (c *Client) spansUpTo(ctx context.Context, topic string, end listing) (map[int32]span, error) {
	// Both at once. An end that is read a little before the start is no fault: what is deleted meanwhile was not kept.
	var starts, ends kadm.ListedOffsets
	var both errgroup.Group
	list := func(into *kadm.ListedOffsets, ask listing) {
		both.Go(func() error {
			listed, err := ask(ctx, topic)
			if err == nil {
				err = listed.Error()
			}
			*into = listed
			return err
		})
	}
	list(&starts, c.admin.ListStartOffsets)
	list(&ends, end)
	if err := both.Wait(); err != nil {
		return nil, err
	}
	all := make(map[int32]span)
	for partition, end := range ends[topic] {
		if start, ok := starts.Lookup(topic, partition); ok {
			all[partition] = span{start.Offset, end.Offset}
		}
	}
	if len(all) == 0 {
		return nil, kerr.UnknownTopicOrPartition
	}
	return all, nil
}

// readAll reads what the partitions of a topic hold now, each in order, and calls visit for every record. It waits while
// the cluster cannot be reached and for transactions that are not decided. It makes a client of its own, so that nothing
// is left of it; what visit keeps of a record is its own.
func readAll(ctx context.Context, cfg ClientConfig, topic string, spans map[int32]span, visit func(*kgo.Record) error) error {
	return readLog(ctx, cfg, topic, spans, kgo.ReadCommitted(), func(r *kgo.Record) error {
		if r.Attrs.IsControl() {
			return nil
		}
		return visit(r)
	})
}

// readLog is readAll of what level lets be read, with the markers of transactions.
func readLog(ctx context.Context, cfg ClientConfig, topic string, spans map[int32]span, level kgo.IsolationLevel, visit func(*kgo.Record) error) error {
	from := make(map[int32]kgo.Offset)
	left := make(map[int32]int64)
	for partition, s := range spans {
		if s.start < s.end {
			from[partition] = kgo.NewOffset().At(s.start)
			left[partition] = s.end
		}
	}
	if len(left) == 0 {
		return nil
	}
	client, err := newClient(cfg, append(reading(), kgo.FetchIsolationLevel(level), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}))...)
	if err != nil {
		return err
	}
	defer client.Close()
	for len(left) > 0 {
		fetches := client.pollAll(ctx, topic, func() []int32 { return slices.Sorted(maps.Keys(left)) })
		if ctx.Err() != nil {
			return fmt.Errorf("reading it to its end: %w", context.Cause(ctx))
		}
		for _, e := range fetches.Errors() {
			if !Transient(e.Err) {
				return fmt.Errorf("partition %d: %w", e.Partition, e.Err)
			}
		}
		for iter := fetches.RecordIter(); !iter.Done(); {
			r := iter.Next()
			end, ok := left[r.Partition]
			if r.Offset >= end-1 {
				delete(left, r.Partition)
			}
			if !ok || r.Offset >= end { // written after the reading began
				continue
			}
			if err := visit(r); err != nil {
				return err
			}
		}
	}
	return nil
}
