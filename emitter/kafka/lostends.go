package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/emitter/internal/producer"
)

// Ends finds ends of a transactional id's transactions that the cluster has lost; see [producer.Ends]. Safe for concurrent use.
type Ends struct {
	cfg    ClientConfig // for reading
	client *Client
	id     string
	topic  string // that the id writes to over the client
	tells  bool   // each transaction that is committed has written to the topic; false: what any has written is right without the rest, so all are committed

	records *Client                 // over which it writes to others, too; nil: it does not
	writes  func(topic string) bool // of those
}

// Ends are those of the transactional id that writes offsets to the store's topic and, unless writes is nil, over another client records
// to topics for which that says yes.
func (s *TopicStore) Ends(id string, records *Client, writes func(topic string) bool) *Ends {
	e := &Ends{cfg: s.access, client: s.client, id: id, topic: s.topic, tells: true}
	if writes != nil {
		e.records, e.writes = records, writes
	}
	return e
}

var _ producer.Ends = (*Ends)(nil)

// Open implements [producer.Ends].
func (e *Ends) Open(ctx context.Context, id int64, in map[string][]int32) (open []producer.Open, away bool, err error) {
	if in == nil {
		if in, err = e.all(ctx); err != nil {
			return nil, false, err
		}
	}
	var refused []string // topics
	var why error
	for _, shard := range e.describe(ctx, in) {
		switch {
		case shard.Err == nil:
		case errors.Is(shard.Err, kerr.UnknownTopicOrPartition): // deleted since
			continue
		case ctx.Err() != nil || Transient(shard.Err):
			away = true
			continue
		default:
			why = shard.Err
			continue
		}
		for _, topic := range shard.Resp.(*kmsg.DescribeProducersResponse).Topics {
			for _, p := range topic.Partitions {
				switch err := kerr.ErrorForCode(p.ErrorCode); {
				case err == nil, errors.Is(err, kerr.UnknownTopicOrPartition):
				case kerr.IsRetriable(err):
					away = true
				default:
					refused, why = append(refused, topic.Topic), err
				}
				for _, active := range p.ActiveProducers {
					if active.ProducerID == id && active.CurrentTxnStartOffset >= 0 {
						open = append(open, producer.Open{
							Topic: topic.Topic, Partition: p.Partition, Epoch: int16(active.ProducerEpoch), Start: active.CurrentTxnStartOffset,
							Age: time.Since(time.UnixMilli(active.LastTimestamp)),
						})
					}
				}
			}
		}
	}
	if why != nil {
		e.say(why, refused)
	}
	return open, away, nil
}

// over is the client that writes to a topic.
func (e *Ends) over(topic string) *Client {
	if topic != e.topic && e.records != nil {
		return e.records
	}
	return e.client
}

// describe asks partitions for their producers, each over the client that writes to it.
func (e *Ends) describe(ctx context.Context, in map[string][]int32) (answers []kgo.ResponseShard) {
	own, others := kmsg.NewPtrDescribeProducersRequest(), kmsg.NewPtrDescribeProducersRequest()
	for topic, partitions := range in {
		asked := kmsg.NewDescribeProducersRequestTopic()
		asked.Topic, asked.Partitions = topic, partitions
		if topic == e.topic {
			own.Topics = append(own.Topics, asked)
		} else {
			others.Topics = append(others.Topics, asked)
		}
	}
	if len(own.Topics) > 0 {
		answers = e.client.inner.Kgo.RequestSharded(ctx, own)
	}
	if len(others.Topics) > 0 && e.records != nil {
		answers = append(answers, e.records.inner.Kgo.RequestSharded(ctx, others)...)
	}
	return answers
}

// all is the partitions of all topics that the id may have written to.
func (e *Ends) all(ctx context.Context) (map[string][]int32, error) {
	in := make(map[string][]int32)
	add := func(client *Client, writes func(topic string) bool, topics ...string) error {
		meta, err := client.admin.Metadata(ctx, topics...)
		if err != nil {
			return err
		}
		for name, topic := range meta.Topics {
			if writes(name) {
				for number := range topic.Partitions {
					in[name] = append(in[name], number)
				}
			}
		}
		return nil
	}
	err := add(e.client, func(topic string) bool { return topic == e.topic }, e.topic)
	if err == nil && e.records != nil {
		err = add(e.records, func(topic string) bool { return topic != e.topic && e.writes(topic) })
	}
	return in, err
}

// most of the topics that say names.
const mostNamed = 5

// say says once that partitions of topics cannot be asked.
func (e *Ends) say(err error, topics []string) {
	if _, said := e.client.blind.LoadOrStore(e.id, true); said {
		return
	}
	help := ""
	slices.Sort(topics)
	topics = slices.Compact(topics)
	if errors.Is(err, kerr.TopicAuthorizationFailed) && len(topics) > 0 {
		named := topics[:min(len(topics), mostNamed)]
		if help = "; allow it: " + e.over(named[0]).allow() + " --operation Read --topic '" + strings.Join(named, "' --topic '") + "'"; len(named) < len(topics) {
			help += fmt.Sprintf(", and so for %d more", len(topics)-len(named))
		}
	}
	e.client.log.Warn("it cannot be asked whether Kafka has lost the end of a transaction, as Kafka since 4.3.0 does when all replicas of a partition are away at the wrong moment. "+
		"Should it, consumers of committed records wait there until the next transaction"+help, zap.String("transactional.id", e.id), zap.Error(err))
}

// Committed implements [producer.Ends].
func (e *Ends) Committed(ctx context.Context, id int64, of producer.Open, version int16) (bool, error) {
	if !e.tells {
		return true, nil
	}
	spans, err := e.client.spans(ctx, e.topic)
	if err != nil {
		return false, fmt.Errorf("topic %s: %w", e.topic, err)
	}
	own := version < separateEpochs // the marker's epoch is that of the records, and of other transactions
	var committed, aborted, later bool
	open := make(map[int32]bool) // partitions with records of it that are not decided
	err = readLog(ctx, e.cfg, e.topic, spans, kgo.ReadUncommitted(), func(r *kgo.Record) error {
		switch commit := isCommit(r); {
		case r.ProducerID != id || r.ProducerEpoch < of.Epoch:
		case !r.Attrs.IsControl():
			open[r.Partition] = open[r.Partition] || r.ProducerEpoch == of.Epoch
		case r.ProducerEpoch == of.Epoch+1, own && r.ProducerEpoch == of.Epoch, open[r.Partition] && r.ProducerEpoch > of.Epoch: // also one that was given again
			committed, aborted, open[r.Partition] = committed || commit, aborted || !commit, false
		case r.ProducerEpoch > of.Epoch:
			later = later || commit
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("topic %s: %w", e.topic, err)
	}
	// Long after it, without a marker of its own but with one of a later transaction, its own was compacted away. What is rolled back is sent again first,
	// to the same partition, whose next marker would have ended this one. So it was committed; and else a record too many is the lesser harm.
	committed = committed || later && !aborted && of.Age > compactedAfter
	if !committed && !aborted && !own {
		if committed, err = e.committedElsewhere(ctx, id, of.Epoch+1); err != nil {
			return false, err
		}
	}
	if committed && own {
		return false, fmt.Errorf("%w: topic %s, partition %d, from offset %d, of transactional id %s, producer id %d, epoch %d. With transaction.version %d it is not certain whether it was committed. "+
			"Read the partition from there with isolation.level=read_uncommitted, and keep what consumers lack, since it can only be rolled back by hand: "+
			"kafka-transactions.sh --bootstrap-server %s abort --topic %s --partition %d --start-offset %d",
			errLostEnd, of.Topic, of.Partition, of.Start, e.id, id, of.Epoch, version, e.client.seeds[0], of.Topic, of.Partition, of.Start)
	}
	return committed, nil
}

// committedElsewhere says of a transaction whose end the offsets topic has lost as well, that a partition with records has it as a commit: it
// may have been read there. The epoch is the marker's. Partitions that cannot be asked or read do not count.
func (e *Ends) committedElsewhere(ctx context.Context, id int64, epoch int16) (bool, error) {
	in, err := e.all(ctx)
	if err != nil {
		return false, err
	}
	for _, shard := range e.describe(ctx, in) {
		if shard.Err != nil {
			continue
		}
		for _, topic := range shard.Resp.(*kmsg.DescribeProducersResponse).Topics {
			for _, p := range topic.Partitions {
				for _, active := range p.ActiveProducers {
					if active.ProducerID != id || active.ProducerEpoch != int32(epoch) || active.CurrentTxnStartOffset >= 0 {
						continue
					}
					committed, err := e.marked(ctx, topic.Topic, p.Partition, active.LastTimestamp, id, epoch)
					if err == nil || Transient(err) {
						return committed, err
					}
				}
			}
		}
	}
	return false, nil
}

// marked says of a partition that it has a commit marker of a time.
func (e *Ends) marked(ctx context.Context, topic string, partition int32, at, id int64, epoch int16) (committed bool, err error) {
	starts, err := e.over(topic).admin.ListOffsetsAfterMilli(ctx, at, topic)
	if err != nil {
		return false, err
	}
	ends, err := e.over(topic).admin.ListEndOffsets(ctx, topic)
	if err != nil {
		return false, err
	}
	start, _ := starts.Lookup(topic, partition)
	end, _ := ends.Lookup(topic, partition)
	if err := errors.Join(start.Err, end.Err); err != nil {
		return false, err
	}
	err = readLog(ctx, e.cfg, topic, map[int32]span{partition: {start.Offset, end.Offset}}, kgo.ReadUncommitted(), func(r *kgo.Record) error {
		committed = committed || r.ProducerID == id && r.ProducerEpoch == epoch && isCommit(r)
		return nil
	})
	return committed, err
}

// compactedAfter is how old a transaction is at least whose marker is compacted away (delete.retention.ms is a day).
const compactedAfter = time.Hour

// separateEpochs is the transaction.version with an epoch for each transaction: its marker has the next one.
const separateEpochs = 2

var errLostEnd = errors.New("the end of a transaction was lost by Kafka")

// isCommit says of a record that it is the marker of a transaction that was committed.
func isCommit(r *kgo.Record) bool {
	return r.Attrs.IsControl() && len(r.Key) >= 4 && binary.BigEndian.Uint16(r.Key[2:]) == 1
}

// Ended implements [producer.Ends].
func (e *Ends) Ended(open []producer.Open, commit bool) {
	where := make([]string, len(open))
	for i, o := range open {
		where[i] = fmt.Sprintf("%s-%d from offset %d", o.Topic, o.Partition, o.Start)
	}
	slices.Sort(where)
	was := "rolled back"
	if commit {
		was = "committed"
	}
	e.client.log.Warn("Kafka had lost the end of a transaction in some partitions, as it does since 4.3.0 when they have no leader at that moment; it is given again",
		zap.String("transactional.id", e.id), zap.String("was", was), zap.String("partitions", strings.Join(where, ", ")))
}
