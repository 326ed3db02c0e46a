package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/emitter/internal/producer"
)

// Ends finds ends of a transactional id's transactions that the cluster has lost; see [producer.Ends]. Safe for concurrent use.
type Ends struct {
	cfg    ClientConfig
	client *Client
	id     string
	topics func(topic string) bool // which the id may have written to

	// tells is a topic that each transaction which is committed has written to. "": whatever transaction it was, what it has written is
	// right without the rest, so all are committed.
	tells string

	blind sync.Once // it was said that partitions may not be asked
}

// Ends are those of the transactional id that writes offsets to the store's topic and, if topics is not nil, records to topics for
// which that says yes.
func (s *TopicStore) Ends(id string, topics func(topic string) bool) *Ends {
	return &Ends{cfg: s.access, client: s.client, id: id, tells: s.topic, topics: func(topic string) bool {
		return topic == s.topic || topics != nil && topics(topic)
	}}
}

var _ producer.Ends = (*Ends)(nil)

// Open implements [producer.Ends].
func (e *Ends) Open(ctx context.Context, id int64, in map[string][]int32) (open []producer.Open, away bool, err error) {
	if in == nil {
		if in, err = e.all(ctx); err != nil {
			return nil, false, err
		}
	}
	req := kmsg.NewPtrDescribeProducersRequest()
	for topic, partitions := range in {
		asked := kmsg.NewDescribeProducersRequestTopic()
		asked.Topic, asked.Partitions = topic, partitions
		req.Topics = append(req.Topics, asked)
	}
	if len(req.Topics) == 0 {
		return nil, false, nil
	}
	for _, shard := range e.client.inner.Kgo.RequestSharded(ctx, req) {
		switch {
		case shard.Err == nil:
		case errors.Is(shard.Err, kerr.UnknownTopicOrPartition): // deleted since
			continue
		case ctx.Err() != nil || Transient(shard.Err):
			away = true
			continue
		default:
			e.say(shard.Err)
			continue
		}
		for _, topic := range shard.Resp.(*kmsg.DescribeProducersResponse).Topics {
			for _, p := range topic.Partitions {
				switch err := kerr.ErrorForCode(p.ErrorCode); {
				case err == nil, errors.Is(err, kerr.UnknownTopicOrPartition):
				case kerr.IsRetriable(err):
					away = true
				default:
					e.say(fmt.Errorf("topic %s: %w", topic.Topic, err))
				}
				for _, active := range p.ActiveProducers {
					if active.ProducerID == id && active.CurrentTxnStartOffset >= 0 {
						open = append(open, producer.Open{Topic: topic.Topic, Partition: p.Partition, Epoch: int16(active.ProducerEpoch), Start: active.CurrentTxnStartOffset})
					}
				}
			}
		}
	}
	return open, away, nil
}

// all is the partitions of all topics that the id may have written to.
func (e *Ends) all(ctx context.Context) (map[string][]int32, error) {
	meta, err := e.client.admin.Metadata(ctx)
	if err != nil {
		return nil, err
	}
	in := make(map[string][]int32)
	for name, topic := range meta.Topics {
		if e.topics(name) {
			for number := range topic.Partitions {
				in[name] = append(in[name], number)
			}
		}
	}
	return in, nil
}

// say says once that partitions cannot be asked.
func (e *Ends) say(err error) {
	e.blind.Do(func() {
		help := ""
		if errors.Is(err, kerr.TopicAuthorizationFailed) {
			help = "; allow it: " + e.client.allow() + " --operation Read --topic '…'"
		}
		e.client.log.Warn("it cannot be asked whether Kafka has lost the end of a transaction, as Kafka since 4.3.0 does when all replicas of a partition are away at the wrong moment. "+
			"Should it, consumers of committed records wait there until the next transaction"+help, zap.String("transactional.id", e.id), zap.Error(err))
	})
}

// Committed implements [producer.Ends].
func (e *Ends) Committed(ctx context.Context, id int64, epoch, version int16) (bool, error) {
	if e.tells == "" {
		return true, nil
	}
	spans, err := e.client.spans(ctx, e.tells)
	if err != nil {
		return false, fmt.Errorf("topic %s: %w", e.tells, err)
	}
	own := version < separateEpochs // the marker's epoch is that of the records, and of other transactions
	committed := false
	err = readLog(ctx, e.cfg, e.tells, spans, kgo.ReadUncommitted(), func(r *kgo.Record) error {
		committed = committed || r.ProducerID == id && isCommit(r) && (r.ProducerEpoch == epoch+1 || own && r.ProducerEpoch == epoch)
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("topic %s: %w", e.tells, err)
	}
	if committed && own {
		return false, fmt.Errorf("%w: transactional id %s, producer id %d, epoch %d. With transaction.version %d it is not certain whether it was committed; compare what partitions have behind it with the others, "+
			"and end it by hand: %s", errLostEnd, e.id, id, epoch, version, "kafka-transactions.sh --bootstrap-server "+e.client.seeds[0]+" find-hanging, and abort")
	}
	return committed, nil
}

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
