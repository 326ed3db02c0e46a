package producer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const deadTopic = "dead"

// spared are the records that a test's Poison has heard of.
type spared struct {
	mu   sync.Mutex
	keys []string
	note bool
}

func (s *spared) poison(_ context.Context, r *Refused) (Note, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = append(s.keys, string(r.Key))
	if !s.note {
		return Note{}, nil
	}
	return Note{Topic: deadTopic, Key: r.Key, Value: fmt.Appendf(nil, "%s %d %v", r.Topic, r.Pos, r.Err), Headers: NoHeaders}, nil
}

// refuses answers produce requests for the topic with an error that names records of the batch by their keys, as a broker does
// that validates them; other batches are written. Notes are refused only if that is asked for.
func refuses(c *kfake.Cluster, cause *kerr.Error, names, notes bool, bad func(key string) bool) {
	c.ControlKey(int16(kmsg.Produce), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		req := kreq.(*kmsg.ProduceRequest)
		resp := acknowledgement(kreq)
		refused := false
		for i := range req.Topics {
			for j := range req.Topics[i].Partitions {
				var batch kmsg.RecordBatch
				sent := req.Topics[i].Partitions[j].Records
				if err := batch.ReadFrom(sent); err != nil {
					panic(err)
				}
				resp.Topics[i].Partitions[j].ErrorCode = kerr.NotLeaderForPartition.Code // unless it is refused it comes again
				n := int32(0)
				records(sent[batchHead:], func(r record) {
					if bad(string(r.key)) && (notes || !strings.HasPrefix(string(r.value), topicName)) {
						answer := &resp.Topics[i].Partitions[j]
						answer.ErrorCode, refused = cause.Code, true
						if names {
							named := kmsg.NewProduceResponseTopicPartitionErrorRecord()
							named.RelativeOffset, named.ErrorMessage = n, kmsg.StringPtr("not this one")
							answer.ErrorRecords = append(answer.ErrorRecords, named)
						}
					}
					n++
				})
			}
		}
		return resp, nil, refused
	})
}

func keysOf(t *testing.T, c *kfake.Cluster, topic string, partition int32) (keys []string) {
	t.Helper()
	for _, r := range log(t, c, topic, partition) {
		keys = append(keys, string(r.Key))
	}
	return keys
}

// TestI7_RefusedRecordsAreSpared leaves those out that the broker refuses, and only those: the others are there once and in their
// order, every record is acknowledged once, and the notes are there.
func TestI7_RefusedRecordsAreSpared(t *testing.T) {
	for _, test := range []struct {
		cause *kerr.Error
		names bool // the broker names the records
		note  bool
	}{
		{kerr.InvalidRecord, true, true},
		{kerr.InvalidRecord, true, false},
		{kerr.InvalidRecord, false, true},
		{kerr.InvalidTimestamp, true, true},
		{kerr.MessageTooLarge, false, true},
		{kerr.RecordListTooLarge, false, false},
	} {
		t.Run(fmt.Sprint(test.cause.Message, test.names, test.note), func(t *testing.T) {
			t.Parallel()
			c := cluster(t, 1, kfake.SeedTopics(1, deadTopic))
			s := &spared{note: test.note}
			r := newRigWith(t, c, plenty, func(cfg *Config) { cfg.Poison = s.poison })
			topic := r.topic(t, topicName)
			refuses(c, test.cause, test.names, false, func(key string) bool { return key == "k0" || key == "k5" || key == "k6" || key == "k9" })
			r.send(t, topic, 0, 8, 20)
			r.send(t, topic, 0, 4, 20)
			r.settled(t)
			if got, want := strings.Join(keysOf(t, c, topicName, 0), " "), "k1 k2 k3 k4 k7 k8 k10 k11"; got != want {
				t.Errorf("written: %s, want %s", got, want)
			}
			if got := strings.Join(s.keys, " "); got != "k0 k5 k6 k9" {
				t.Errorf("spared: %s", got)
			}
			notes := log(t, c, deadTopic, 0)
			if !test.note {
				if len(notes) != 0 {
					t.Errorf("%d notes", len(notes))
				}
				return
			}
			if len(notes) != 4 || string(notes[1].Key) != "k5" || !strings.HasPrefix(string(notes[1].Value), topicName+" 5 "+test.cause.Message) ||
				test.names != strings.Contains(string(notes[1].Value), "(not this one)") {
				t.Errorf("notes: %v", notes)
			}
		})
	}
}

// TestSparedOfACompressedBatch does not break the rest of it.
func TestSparedOfACompressedBatch(t *testing.T) {
	c := cluster(t, 1)
	s := &spared{}
	r := newRigWith(t, c, plenty, func(cfg *Config) { cfg.Poison = s.poison }, "compression.type", "gzip")
	topic := r.topic(t, topicName)
	c.ControlKey(int16(kmsg.Produce), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		resp := acknowledgement(kreq)
		answer := &resp.Topics[0].Partitions[0]
		answer.ErrorCode = kerr.InvalidRecord.Code
		for _, at := range []int32{7, 2, 2, -1, 99} { // a broker may say anything
			named := kmsg.NewProduceResponseTopicPartitionErrorRecord()
			named.RelativeOffset = at
			answer.ErrorRecords = append(answer.ErrorRecords, named)
		}
		return resp, nil, true
	})
	r.send(t, topic, 0, 9, 300)
	r.settled(t)
	if got := strings.Join(keysOf(t, c, topicName, 0), " "); got != "k0 k1 k3 k4 k5 k6 k8" {
		t.Errorf("written: %s", got)
	}
}

// TestNothingIsSparedThatMayBeThere: a batch was sent before, and its answer was lost. Whether the broker has it is not known, and so
// are the sequence numbers of what follows: a new producer has to find out.
func TestNothingIsSparedThatMayBeThere(t *testing.T) {
	c := cluster(t, 1)
	s := &spared{}
	r := newRigWith(t, c, plenty, func(cfg *Config) { cfg.Poison = s.poison })
	topic := r.topic(t, topicName)
	r.send(t, topic, 0, 1, 10)
	r.flush(t)
	c.Fault(kfake.Fault{Keys: produce, Err: kerr.NotEnoughReplicasAfterAppend, Count: 1})
	c.Fault(kfake.Fault{Keys: produce, Err: kerr.MessageTooLarge, Count: -1})
	r.send(t, topic, 0, 1, 10)
	err := r.fails(t)
	if !errors.Is(err, ErrAgain) || !errors.Is(err, kerr.MessageTooLarge) || !r.cfg.Client.Transient(err) || len(s.keys) != 0 {
		t.Errorf("%v, spared %v", err, s.keys)
	}
}

// TestARefusedNoteEndsTheProducer rather than be replaced by a note of its own.
func TestARefusedNoteEndsTheProducer(t *testing.T) {
	c := cluster(t, 1, kfake.SeedTopics(1, deadTopic))
	s := &spared{note: true}
	r := newRigWith(t, c, plenty, func(cfg *Config) { cfg.Poison = s.poison })
	refuses(c, kerr.InvalidRecord, true, true, func(key string) bool { return key == "k1" })
	r.send(t, r.topic(t, topicName), 0, 3, 10)
	refused, _ := errors.AsType[*Refused](r.fails(t))
	if refused == nil || refused.Topic != deadTopic || string(refused.Key) != "k1" {
		t.Errorf("%+v", refused)
	}
	if len(s.keys) != 1 {
		t.Errorf("asked %d times", len(s.keys))
	}
}

// TestPoisonThatFailsEndsTheProducer with its error.
func TestPoisonThatFailsEndsTheProducer(t *testing.T) {
	c := cluster(t, 1)
	broken := errors.New("no topic for dead letters")
	r := newRigWith(t, c, plenty, func(cfg *Config) {
		cfg.Poison = func(context.Context, *Refused) (Note, error) { return Note{}, broken }
	})
	refuses(c, kerr.InvalidRecord, true, false, func(key string) bool { return key == "k1" })
	r.send(t, r.topic(t, topicName), 0, 3, 10)
	if err := r.fails(t); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// TestOtherRefusalsAreNotSpared: what Kafka has against one record it has against all.
func TestOtherRefusalsAreNotSpared(t *testing.T) {
	for _, cause := range []*kerr.Error{kerr.TopicAuthorizationFailed, kerr.UnsupportedCompressionType, kerr.OutOfOrderSequenceNumber} {
		c := cluster(t, 1)
		s := &spared{}
		r := newRigWith(t, c, plenty, func(cfg *Config) { cfg.Poison = s.poison })
		c.Fault(kfake.Fault{Keys: produce, Err: cause, Count: -1})
		r.send(t, r.topic(t, topicName), 0, 3, 10)
		if err := r.fails(t); !errors.Is(err, cause) || len(s.keys) != 0 {
			t.Errorf("%v, spared %v", err, s.keys)
		}
	}
}

// TestNoteIsInTheTransactionOfItsRecord, not in the open one behind it, also when the note's partition waits for that.
func TestNoteIsInTheTransactionOfItsRecord(t *testing.T) {
	bothProtocols(t, func(t *testing.T, opts ...kfake.Opt) {
		c := cluster(t, 1, append(opts, kfake.SeedTopics(1, deadTopic))...)
		s := &spared{note: true}
		r := newTxnRig(t, c, func(cfg *Config) { cfg.Poison = s.poison })
		topic, dead := r.topic(t, topicName), r.topic(t, deadTopic)
		refuses(c, kerr.InvalidRecord, true, false, func(key string) bool { return key == "k1" })
		release := hold(c, 0)
		defer release()
		r.send(t, topic, 0, 3, 10)
		first := r.cut()
		r.send(t, dead, 0, 1, 10) // of the second one: its partition waits
		second := r.cut()
		neverEnds(t, first)
		release()
		r.waitFor(t, first)
		r.waitFor(t, second)
		r.settled(t)
		if got := strings.Join(committed(t, c, topicName, 0), " "); got != "0 2" {
			t.Errorf("written: %s", got)
		}
		if got := committed(t, c, deadTopic, 0); len(got) != 2 || !strings.HasPrefix(got[0], topicName+" 1 ") || got[1] != "0" {
			t.Errorf("notes: %q", got)
		}
	})
}
