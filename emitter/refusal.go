package emitter

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/tidemark-cdc/tidemark/emitter/internal/kclient"
	"github.com/tidemark-cdc/tidemark/emitter/internal/producer"
)

// spare is what the producer asks about a record that a broker refuses; nil: nothing.
func (cfg *DeliveryConfig) spare() func(context.Context, *producer.Refused) (producer.Note, error) {
	poison, topics := cfg.Poison, cfg.Topics
	if poison == nil {
		return nil
	}
	return func(ctx context.Context, r *producer.Refused) (producer.Note, error) {
		return poison.refused(ctx, topics, r)
	}
}

// missing is what the producer tells of a topic that is gone; nil: nobody can make it again.
func (cfg *DeliveryConfig) missing() func(context.Context, string) {
	if topics, ok := cfg.Topics.(interface {
		Again(ctx context.Context, topic string)
	}); ok {
		return topics.Again
	}
	return nil
}

// tooLarge refuses a record that is larger than the client may send.
func tooLarge(r *Record, size, most int) *producer.Refused {
	return &producer.Refused{
		Topic: r.Topic, Key: r.Key, Value: r.Value, Size: size, File: r.Offset.File, Pos: r.Offset.Pos,
		Err: largerThan(most),
	}
}

// largerThan is a [kerr.MessageTooLarge] that no broker was asked about.
type largerThan int

func (most largerThan) Error() string {
	return fmt.Sprintf("MESSAGE_TOO_LARGE: it is larger than max.request.size, or buffer.memory, of %d bytes", int(most))
}

func (largerThan) Is(target error) bool { return target == kerr.MessageTooLarge }

// orLeaveOut says how to go on without the record.
const orLeaveOut = "; or set errors.tolerance=all, and errors.deadletterqueue.topic.name, to leave such records out, with a note in that topic"

// refusal says which record Kafka did not take, why, and what can be done.
func refusal(client *kclient.Client, r *producer.Refused) error {
	const shown = 200
	k := "null"
	if r.Key != nil {
		k = string(r.Key[:min(len(r.Key), shown)])
		if len(r.Key) > shown {
			k += "… (" + strconv.Itoa(len(r.Key)) + " bytes)"
		}
	}
	hint := ""
	switch cause := r.Err; {
	case errors.Is(cause, kerr.MessageTooLarge), errors.Is(cause, kerr.RecordListTooLarge):
		hint = "; raise producer.override.max.request.size of the connector (and, if it is smaller, buffer.memory) and " +
			"max.message.bytes of the topic (kafka-configs.sh --bootstrap-server " + client.Seed + " --alter --topic " + r.Topic + " --add-config max.message.bytes=" + strconv.Itoa(roundSize(r.Size)) +
			"), then start again: nothing after this record was written" + orLeaveOut
	case errors.Is(cause, kerr.InvalidRecord), errors.Is(cause, kerr.InvalidTimestamp):
		hint = "; change what the topic asks for (kafka-configs.sh --bootstrap-server " + client.Seed + " --describe --topic " + r.Topic + ": a compacted topic takes no record without a key; " +
			"message.timestamp.* bounds the time, so look at the clocks, too), then start again: nothing after this record was written" + orLeaveOut
	case errors.Is(cause, kerr.TopicAuthorizationFailed):
		hint = "; allow it: " + client.Allow + " --operation Write --operation Describe --topic " + r.Topic
	case errors.Is(cause, kerr.ClusterAuthorizationFailed):
		hint = "; allow it: " + client.Allow + " --operation IdempotentWrite --cluster"
	}
	return fmt.Errorf("topic %s%s, key %s, %d bytes, offset %s:%d: Kafka does not take the record: %w%s",
		r.Topic, where(r.Value), k, r.Size, r.File, r.Pos, r.Err, hint)
}

// roundSize is a limit for records of a size: the next MiB above a tenth more.
func roundSize(size int) int {
	const mib = 1 << 20
	return (size + size/10 + mib) / mib * mib
}
