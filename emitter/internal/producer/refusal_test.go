package producer

import (
	"errors"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/emitter/internal/kclient"
)

// TestRefused ends the producer at the first record that Kafka does not take, and sends nothing newer.
func TestRefused(t *testing.T) {
	for _, test := range []struct {
		cause *kerr.Error
		text  string
	}{
		{kerr.TopicAuthorizationFailed, ""},
		{kerr.ClusterAuthorizationFailed, ""},
		{kerr.OutOfOrderSequenceNumber, "partition 0 has lost what it had acknowledged"},
		{kerr.UnknownProducerID, "partition 0 has lost what it had acknowledged"},
		{kerr.InvalidRecord, ""},
		{kerr.InvalidTimestamp, ""},
		{kerr.UnsupportedCompressionType, ""},
		{kerr.UnknownServerError, "(code -1)"},
		{&kerr.Error{Code: 999, Message: "OF_A_LATER_KAFKA"}, "(code 999)"},
		{kerr.CorruptMessage, ""},
	} {
		t.Run(test.cause.Message, func(t *testing.T) {
			t.Parallel()
			c := cluster(t, 1)
			r := newRigWith(t, c, plenty, hurried)
			topic := r.topic(t, topicName)
			r.send(t, topic, 0, 2, 10)
			r.flush(t)
			release := hold(c, 0)
			defer release()
			c.Fault(kfake.Fault{Keys: produce, Err: test.cause, Count: -1})
			r.send(t, topic, 0, 3, 10)
			eventually(t, "under way", r.locked(func() bool { return topic.partitions[0].busy }))
			r.send(t, topic, 0, 1, 10)
			release()
			err := r.fails(t)
			refused, ok := errors.AsType[*Refused](err)
			if !ok || refused.Topic != topicName || string(refused.Key) != "k2" || refused.Pos != 2 || refused.File != "mysql-bin.000001" {
				t.Fatalf("%+v", err)
			}
			if want := kerr.ErrorForCode(test.cause.Code); !errors.Is(err, want) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("%v", err)
			}
			if lost := strings.Contains(test.text, "lost"); lost != errors.Is(err, ErrAgain) || lost && !r.cfg.Client.Transient(err) {
				t.Errorf("a new producer can go on: %v; waiting heals it: %v", errors.Is(err, ErrAgain), r.cfg.Client.Transient(err))
			}
			must(t, r.Flush(t.Context())) // does not hang
			must(t, r.Room(t.Context()))
			r.Close()
			holds(t, c, topicName, 0, 2)
		})
	}
}

// TestRefusedIsNotFollowed if a partition knows something else of the producer's id.
func TestRefusedIsNotFollowed(t *testing.T) {
	for cause, follows := range map[*kerr.Error]bool{
		kerr.OutOfOrderSequenceNumber: false, kerr.UnknownProducerID: false, kerr.InvalidProducerEpoch: false, kerr.InvalidRecord: true,
	} {
		c := cluster(t, 1)
		line := new(kclient.Line)
		r := newRigWith(t, c, plenty, func(cfg *Config) { cfg.Client.Line = line })
		topic := r.topic(t, topicName)
		c.Fault(kfake.Fault{Keys: produce, Err: cause})
		r.send(t, topic, 0, 1, 10)
		_ = r.fails(t)
		r.Close()
		if _, _, ok := line.Follow(r.cluster); ok != follows {
			t.Errorf("%s: is followed: %v", cause.Message, ok)
		}
	}
}

// TestRefusedRecordIsTheNamedOne of those in the batch.
func TestRefusedRecordIsTheNamedOne(t *testing.T) {
	for _, compression := range []string{"none", "lz4"} {
		c, r, topic := begin(t, 1, "compression.type", compression)
		c.ControlKey(int16(kmsg.Produce), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
			resp := acknowledgement(kreq)
			partition := &resp.Topics[0].Partitions[0]
			partition.ErrorCode = kerr.InvalidRecord.Code
			record := kmsg.NewProduceResponseTopicPartitionErrorRecord()
			record.RelativeOffset, record.ErrorMessage = 3, kmsg.StringPtr("a compacted topic wants keys")
			partition.ErrorRecords = append(partition.ErrorRecords, record)
			return resp, nil, true
		})
		r.send(t, topic, 0, 9, 100)
		err := r.fails(t)
		refused, _ := errors.AsType[*Refused](err)
		if refused == nil || string(refused.Key) != "k3" || refused.Pos != 3 || !strings.Contains(err.Error(), "a compacted topic wants keys") {
			t.Errorf("%s: %+v", compression, err)
		}
	}
}

// TestNothingIsTakenBehindARefusal when the caller hears of it, be it of another partition.
func TestNothingIsTakenBehindARefusal(t *testing.T) {
	c, r, topic := begin(t, 2)
	taken := make(chan int, 1)
	r.Producer.mu.Lock()
	r.cfg.Failed = func(err error) {
		r.failed <- err
		r.Producer.mu.Lock()
		b := &broker{p: r.Producer, ready: []*partition{{topic: topic, queue: []*batch{{}}}}}
		got, _ := b.take(requestBytes, false)
		r.Producer.mu.Unlock()
		taken <- len(got)
	}
	r.Producer.mu.Unlock()
	c.Fault(kfake.Fault{Keys: produce, Err: kerr.TopicAuthorizationFailed})
	r.send(t, topic, 0, 1, 10)
	_ = r.fails(t)
	if n := <-taken; n != 0 {
		t.Errorf("%d batches are taken", n)
	}
}
