package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
)

// undecidedAfter is how long a reader of committed records waits for more until it says for what.
const undecidedAfter = 10 * time.Second

// pollAll polls for records of a topic that are there, until there are some or ctx ends. What keeps them back is a transaction that is
// still open, which may be for a minute; where its producer or Kafka has forgotten it, for ever. That is said, and again after longer
// and longer, with the partitions that are left.
func (c *Client) pollAll(ctx context.Context, topic string, left func() []int32) kgo.Fetches {
	for wait := c.undecidedAfter; ; wait *= 2 {
		short, cancel := context.WithTimeout(ctx, wait)
		fetches := c.inner.Kgo.PollFetches(short)
		cancel()
		if ctx.Err() != nil || !errors.Is(fetches.Err0(), context.DeadlineExceeded) {
			return fetches
		}
		c.sayUndecided(ctx, topic, left())
	}
}

// sayUndecided says which transactions keep the ends of partitions back.
func (c *Client) sayUndecided(ctx context.Context, topic string, partitions []int32) {
	asking, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	all := make(kadm.TopicsSet)
	all.Add(topic, partitions...)
	described, err := c.admin.DescribeProducers(asking, all)
	if ctx.Err() != nil {
		return
	}
	var open []string
	described.EachProducer(func(p kadm.DescribedProducer) {
		if p.CurrentTxnStartOffset >= 0 {
			open = append(open, fmt.Sprintf("kafka-transactions.sh --bootstrap-server %s abort --topic %s --partition %d --start-offset %d # of producer id %d, epoch %d, which wrote last at %s",
				c.seeds[0], topic, p.Partition, p.CurrentTxnStartOffset, p.ProducerID, p.ProducerEpoch, time.UnixMilli(p.LastTimestamp).UTC().Format(time.RFC3339)))
		}
	})
	fields := []zap.Field{zap.String("topic", topic), zap.Int32s("partitions", partitions)}
	switch {
	case len(open) > 0:
		c.log.Warn("committed records are waited for behind a transaction that is still open. It ends when its producer ends it, or after its transaction.timeout.ms. "+
			"If it does not, Kafka has lost its end: one of this connector's gets it again at its next start; another one has to be rolled back by hand, whatever it had been", append(fields, zap.String("end_it_with", strings.Join(open, "\n")))...)
	case err != nil:
		c.log.Warn("committed records do not come, and the leaders of their partitions do not say whether a transaction is open", append(fields, zap.Error(err))...)
	default:
		c.log.Warn("committed records do not come though no transaction is open; the reader goes on trying", fields...)
	}
}
