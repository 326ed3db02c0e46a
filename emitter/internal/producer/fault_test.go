package producer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/tidemark-cdc/tidemark/emitter/kafka"
)

const plenty = 16 << 20

var produce = []kmsg.Key{kmsg.Produce}

// TestWhatWaitingHeals answers with errors for a while, some of which a broker gives though it has appended the batch.
func TestWhatWaitingHeals(t *testing.T) {
	for _, cause := range []*kerr.Error{
		kerr.NotLeaderForPartition, kerr.LeaderNotAvailable, kerr.UnknownTopicOrPartition, kerr.UnknownTopicID,
		kerr.RequestTimedOut, kerr.NotEnoughReplicas, kerr.NotEnoughReplicasAfterAppend, kerr.KafkaStorageError,
		kerr.CorruptMessage, kerr.NetworkException,
	} {
		t.Run(cause.Message, func(t *testing.T) {
			t.Parallel()
			c := cluster(t, 2)
			r := newRig(t, c, plenty)
			topic := r.topic(t, topicName)
			faults := c.Fault(kfake.Fault{Keys: produce, Partitions: []int32{0}, Err: cause, Count: 2})
			for range 5 {
				r.send(t, topic, 0, 3, 10)
				r.send(t, topic, 1, 3, 10)
			}
			r.settled(t)
			holds(t, c, topicName, 0, 15)
			holds(t, c, topicName, 1, 15)
			if faults.Hits() != 2 {
				t.Errorf("%d answers were faulty", faults.Hits())
			}
		})
	}
}

// TestCutConnections end before, while and after a batch is written, and after its broker has appended it.
func TestCutConnections(t *testing.T) {
	for name, how := range map[string]cut{"before": before, "amid": amid, "unheard": unheard, "untouched": untouched} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cluster(t, 1)
			r := newRig(t, c, plenty)
			topic := r.topic(t, topicName)
			r.send(t, topic, 0, 1, 10)
			r.flush(t)
			r.wire.cutNext(3, how)
			for range 3 {
				r.send(t, topic, 0, 3, 10)
				r.flush(t)
			}
			r.settled(t)
			holds(t, c, topicName, 0, 10)
			if r.wire.cuts < 3 {
				t.Errorf("%d requests were cut", r.wire.cuts)
			}
		})
	}
}

// TestNoAnswer has brokers whose answers do not tell of the batch, or in two ways.
func TestNoAnswer(t *testing.T) {
	answers := map[string]func(*kmsg.ProduceResponseTopic){
		"without the topic":     nil,
		"without the partition": func(t *kmsg.ProduceResponseTopic) { t.Partitions = nil },
		"of another partition":  func(t *kmsg.ProduceResponseTopic) { t.Partitions[0].Partition = 7 },
		"of another topic":      func(t *kmsg.ProduceResponseTopic) { t.Topic, t.TopicID = "other", [16]byte{1} },
		"that is repeated": func(t *kmsg.ProduceResponseTopic) {
			fine := kmsg.NewProduceResponseTopicPartition()
			t.Partitions[0].ErrorCode = kerr.NotLeaderForPartition.Code
			t.Partitions = append(t.Partitions, fine)
		},
	}
	for name, spoil := range answers {
		for _, versions := range []*kversion.Versions{nil, kversion.V3_0_0()} {
			t.Run(fmt.Sprintf("%s/by name %v", name, versions != nil), func(t *testing.T) {
				t.Parallel()
				var opts []kfake.Opt
				if versions != nil {
					opts = append(opts, kfake.MaxVersions(versions))
				}
				c := cluster(t, 1, opts...)
				r := newRig(t, c, plenty)
				topic := r.topic(t, topicName)
				c.ControlKey(int16(kmsg.Produce), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
					req := kreq.(*kmsg.ProduceRequest)
					resp := req.ResponseKind().(*kmsg.ProduceResponse)
					if spoil != nil {
						answer := kmsg.NewProduceResponseTopic()
						answer.Topic, answer.TopicID = req.Topics[0].Topic, req.Topics[0].TopicID
						answer.Partitions = []kmsg.ProduceResponseTopicPartition{kmsg.NewProduceResponseTopicPartition()}
						spoil(&answer)
						resp.Topics = append(resp.Topics, answer)
					}
					return resp, nil, true
				})
				r.send(t, topic, 0, 5, 10)
				r.settled(t)
				holds(t, c, topicName, 0, 5)
			})
		}
	}
}

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
			r := newRig(t, c, plenty)
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
			must(t, r.Flush(t.Context())) // does not hang
			must(t, r.Room(t.Context()))
			r.Close()
			holds(t, c, topicName, 0, 2)
		})
	}
}

// TestRefusedRecordIsTheNamedOne of those in the batch.
func TestRefusedRecordIsTheNamedOne(t *testing.T) {
	for _, compression := range []string{"none", "lz4"} {
		c := cluster(t, 1)
		r := newRig(t, c, plenty, "compression.type", compression)
		topic := r.topic(t, topicName)
		c.ControlKey(int16(kmsg.Produce), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
			req := kreq.(*kmsg.ProduceRequest)
			resp := req.ResponseKind().(*kmsg.ProduceResponse)
			answer := kmsg.NewProduceResponseTopic()
			answer.Topic, answer.TopicID = req.Topics[0].Topic, req.Topics[0].TopicID
			partition := kmsg.NewProduceResponseTopicPartition()
			partition.ErrorCode = kerr.InvalidRecord.Code
			record := kmsg.NewProduceResponseTopicPartitionErrorRecord()
			record.RelativeOffset, record.ErrorMessage = 3, kmsg.StringPtr("a compacted topic wants keys")
			partition.ErrorRecords = append(partition.ErrorRecords, record)
			answer.Partitions = append(answer.Partitions, partition)
			resp.Topics = append(resp.Topics, answer)
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

// TestSplit has a topic that takes less than the producer's batches.
func TestSplit(t *testing.T) {
	for _, compression := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		t.Run(compression, func(t *testing.T) {
			t.Parallel()
			c := cluster(t, 1)
			must(t, c.CreateTopic("small", 1, map[string]string{"max.message.bytes": "2000"}))
			r := newRig(t, c, plenty, "compression.type", compression, "linger.ms", "60000")
			topic := r.topic(t, "small")
			r.send(t, topic, 0, 100, 500)
			r.settled(t)
			holds(t, c, "small", 0, 100)

			r.send(t, topic, 0, 37, 20)
			r.send(t, topic, 0, 1, 9000)
			r.send(t, topic, 0, 20, 20)
			_ = r.Flush(limited(t))
			refused, _ := errors.AsType[*Refused](r.fails(t))
			if refused == nil || string(refused.Key) != "k137" || refused.Pos != 137 || !errors.Is(refused, kerr.MessageTooLarge) ||
				refused.Size < 9000 || refused.Size > 9100 {
				t.Errorf("%+v", refused)
			}
			r.Close()
			holds(t, c, "small", 0, 137)
		})
	}
}

// TestSplitForSegments is what else may be too small for a batch.
func TestSplitForSegments(t *testing.T) {
	c := cluster(t, 1)
	r := newRig(t, c, plenty, "linger.ms", "60000")
	topic := r.topic(t, topicName)
	faults := c.Fault(kfake.Fault{Keys: produce, Err: kerr.RecordListTooLarge, Count: 3})
	r.send(t, topic, 0, 50, 10)
	r.settled(t)
	holds(t, c, topicName, 0, 50)
	if faults.Hits() != 3 {
		t.Errorf("%d refusals", faults.Hits())
	}
}

// TestSplitMeetsFaults cuts the connection at each batch of which a half is sent.
func TestSplitMeetsFaults(t *testing.T) {
	c := cluster(t, 1)
	must(t, c.CreateTopic("small", 1, map[string]string{"max.message.bytes": "2000"}))
	r := newRig(t, c, plenty, "linger.ms", "60000")
	topic := r.topic(t, "small")
	i := 0
	r.wire.set(func() cut {
		i++
		return [...]cut{whole, unheard, whole, amid}[i%4]
	})
	r.send(t, topic, 0, 20, 500)
	r.settled(t)
	holds(t, c, "small", 0, 20)
}

// TestLeaderMoves while batches are under way and in the queue.
func TestLeaderMoves(t *testing.T) {
	c := cluster(t, 2)
	r := newRig(t, c, plenty)
	topic := r.topic(t, topicName)
	for i := range 4 {
		release := hold(c, int32(i%2))
		r.send(t, topic, 0, 2, 10)
		eventually(t, "under way", r.locked(func() bool { return topic.partitions[0].busy }))
		r.send(t, topic, 0, 2, 10)
		must(t, c.MoveTopicPartition(topicName, 0, int32(1-i%2)))
		release()
		r.flush(t)
	}
	r.settled(t)
	holds(t, c, topicName, 0, 16)
}

func (r *rig) metadata(topic *Topic, leader int32) *kmsg.MetadataResponse {
	resp := kmsg.NewPtrMetadataResponse()
	t := kmsg.NewMetadataResponseTopic()
	t.Topic, t.TopicID = &topic.name, topic.id
	for i := range topic.partitions {
		p := kmsg.NewMetadataResponseTopicPartition()
		p.Partition, p.Leader = int32(i), leader
		t.Partitions = append(t.Partitions, p)
	}
	resp.Topics = append(resp.Topics, t)
	return resp
}

// TestMovedWhileUnderWay is told of another leader before the old one acknowledges: what is in the queue goes to the new one at once.
func TestMovedWhileUnderWay(t *testing.T) {
	c := cluster(t, 2)
	r := newRig(t, c, plenty)
	topic := r.topic(t, topicName)
	release := hold(c, 0)
	defer release()
	r.send(t, topic, 0, 1, 10)
	eventually(t, "under way", r.locked(func() bool { return topic.partitions[0].busy }))
	r.send(t, topic, 0, 1, 10)
	must(t, r.learnAll(r.metadata(topic, 1)))
	done := make(chan error)
	go func() { done <- r.Flush(limited(t)) }()
	eventually(t, "Flush waits", r.locked(func() bool { return r.idle != nil }))
	release()
	must(t, <-done)
	r.settled(t)
	holds(t, c, topicName, 0, 2)
}

// TestNoLeader for a while: the producer asks until there is one.
func TestNoLeader(t *testing.T) {
	c := cluster(t, 2)
	r := newRig(t, c, plenty)
	topic := r.topic(t, topicName)
	if err := r.learnAll(r.metadata(topic, -1)); !errors.Is(err, kerr.LeaderNotAvailable) {
		t.Fatalf("%v", err)
	}
	r.send(t, topic, 0, 3, 10)
	r.send(t, topic, 1, 3, 10)
	r.settled(t)
	holds(t, c, topicName, 0, 3)
	holds(t, c, topicName, 1, 3)
}

// TestBrokerThatIsGone leads a partition, as a stale answer has it.
func TestBrokerThatIsGone(t *testing.T) {
	c := cluster(t, 2)
	r := newRig(t, c, plenty)
	topic := r.topic(t, topicName)
	must(t, r.learnAll(r.metadata(topic, 17)))
	r.send(t, topic, 0, 3, 10)
	r.settled(t)
	holds(t, c, topicName, 0, 3)
}

// TestRemovedBroker takes a leader out of the cluster.
func TestRemovedBroker(t *testing.T) {
	c := cluster(t, 3)
	r := newRig(t, c, plenty)
	topic := r.topic(t, topicName)
	r.send(t, topic, 2, 3, 10)
	r.flush(t)
	must(t, c.MoveTopicPartition(topicName, 2, 1))
	must(t, c.RemoveNode(2))
	r.send(t, topic, 2, 3, 10)
	r.settled(t)
	holds(t, c, topicName, 2, 6)
}

// TestTopicAppears some time after it is asked for.
func TestTopicAppears(t *testing.T) {
	c := cluster(t, 1)
	r := newRig(t, c, plenty)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Topic(ctx, "later"); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	asked := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: "later", Observe: true, Count: -1})
	go func() {
		_ = asked.Wait(limited(t), 2)
		_ = c.CreateTopic("later", 1, nil)
	}()
	topic := r.topic(t, "later")
	r.send(t, topic, 0, 1, 10)
	r.settled(t)
	holds(t, c, "later", 0, 1)
}

// TestTopicMayNotBeSeen is an error at once.
func TestTopicMayNotBeSeen(t *testing.T) {
	c := cluster(t, 1)
	r := newRig(t, c, plenty)
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: topicName, Err: kerr.TopicAuthorizationFailed, Count: -1})
	if _, err := r.Topic(limited(t), topicName); !errors.Is(err, kerr.TopicAuthorizationFailed) || !strings.Contains(err.Error(), topicName) {
		t.Errorf("%v", err)
	}
}

// TestTopicWaitsForNoOtherRefresh when its caller gives up.
func TestTopicWaitsForNoOtherRefresh(t *testing.T) {
	r := newRig(t, cluster(t, 1), plenty)
	r.refreshing <- struct{}{} // one that takes long
	defer func() { <-r.refreshing }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Topic(ctx, topicName); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	r.Stop()
	if _, err := r.Topic(t.Context(), topicName); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestTopicMadeAnew ends the producer so that another one begins: numbers and partitions are those of the old topic.
func TestTopicMadeAnew(t *testing.T) {
	for _, partitions := range []int32{1, 2, 3} {
		c := cluster(t, 2)
		r := newRig(t, c, plenty)
		topic := r.topic(t, topicName)
		r.send(t, topic, 0, 3, 10)
		r.send(t, topic, 1, 3, 10)
		r.flush(t)
		must(t, c.DeleteTopic(topicName))
		must(t, c.CreateTopic(topicName, partitions, nil))
		r.send(t, topic, 1, 3, 10)
		if err := r.fails(t); !kafka.Transient(err) || !strings.Contains(err.Error(), "made anew") || !strings.Contains(err.Error(), topicName) {
			t.Errorf("%d partitions: %v", partitions, err)
		}
		for p := range int(partitions) {
			holds(t, c, topicName, p, 0)
		}
	}
}

// TestTopicIsGone for good: the rest goes on, and Close does not wait for it.
func TestTopicIsGone(t *testing.T) {
	c := cluster(t, 1)
	must(t, c.CreateTopic("gone", 1, nil))
	r := newRig(t, c, plenty)
	gone, topic := r.topic(t, "gone"), r.topic(t, topicName)
	must(t, c.DeleteTopic("gone"))
	r.send(t, gone, 0, 1, 10)
	r.send(t, topic, 0, 5, 10)
	eventually(t, "the rest goes on", r.locked(func() bool { return r.pending == 1 }))
	holds(t, c, topicName, 0, 5)
	r.Close()
}

// TestPartitionsAdded are learned of.
func TestPartitionsAdded(t *testing.T) {
	c := cluster(t, 2)
	r := newRig(t, c, plenty)
	topic := r.topic(t, topicName)
	r.send(t, topic, 1, 3, 10)
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	must(t, err)
	defer cl.Close()
	_, err = kadm.NewClient(cl).CreatePartitions(limited(t), 2, topicName)
	must(t, err)
	r.ask()
	eventually(t, "four partitions", r.locked(func() bool { return len(topic.partitions) == 4 }))
	r.send(t, topic, 3, 3, 10)
	r.settled(t)
	holds(t, c, topicName, 1, 3)
	holds(t, c, topicName, 3, 3)
}

// TestOddMetadata does not confuse the producer.
func TestOddMetadata(t *testing.T) {
	c := cluster(t, 2)
	r := newRig(t, c, plenty)
	topic := r.topic(t, topicName)
	hole := r.metadata(topic, 0)
	hole.Topics[0].Partitions[1].Partition = 5
	if err := r.learnAll(hole); err == nil || !strings.Contains(err.Error(), "5") {
		t.Errorf("%v", err)
	}
	without := r.metadata(topic, 0)
	without.Topics[0].TopicID = [16]byte{}
	must(t, r.learnAll(without))
	nameless := r.metadata(topic, 0)
	nameless.Topics[0].Topic = nil
	must(t, r.learnAll(nameless))
	fewer := r.metadata(topic, 1)
	fewer.Topics[0].Partitions = fewer.Topics[0].Partitions[:1]
	must(t, r.learnAll(fewer))
	r.send(t, topic, 0, 3, 10)
	r.send(t, topic, 1, 3, 10)
	r.settled(t)
}

// TestOldBrokers have no ids of topics, or do not take them.
func TestOldBrokers(t *testing.T) {
	for _, versions := range []*kversion.Versions{kversion.V2_1_0(), kversion.V2_8_0(), kversion.V4_0_0()} {
		c := cluster(t, 2, kfake.MaxVersions(versions))
		r := newRig(t, c, plenty)
		topic := r.topic(t, topicName)
		r.wire.cutNext(2, unheard)
		for range 5 {
			r.send(t, topic, 0, 3, 10)
			r.send(t, topic, 1, 3, 10)
		}
		r.settled(t)
		holds(t, c, topicName, 0, 15)
		holds(t, c, topicName, 1, 15)
	}
}

// TestOldMetadata has a topic's id from no broker, as while brokers are upgraded one after the other.
func TestOldMetadata(t *testing.T) {
	c := cluster(t, 1)
	r := newRig(t, c, plenty)
	topic := r.topic(t, topicName)
	r.Producer.mu.Lock()
	topic.id = [16]byte{}
	r.Producer.mu.Unlock()
	faults := c.Fault(kfake.Fault{Keys: produce, Observe: true, Count: -1, When: func(req kmsg.Request) bool {
		return req.GetVersion() == firstByID-1
	}})
	r.send(t, topic, 0, 3, 10)
	r.settled(t)
	holds(t, c, topicName, 0, 3)
	if faults.Hits() != 1 {
		t.Errorf("%d requests with names", faults.Hits())
	}
}

// TestProducerID is asked for until there is one, unless it is refused.
func TestProducerID(t *testing.T) {
	c := cluster(t, 1)
	ids := []kmsg.Key{kmsg.InitProducerID}
	faults := c.Fault(kfake.Fault{Keys: ids, TopLevel: true, Err: kerr.CoordinatorLoadInProgress, Count: 2})
	r := newRig(t, c, plenty)
	r.send(t, r.topic(t, topicName), 0, 3, 10)
	r.settled(t)
	holds(t, c, topicName, 0, 3)
	if faults.Hits() != 2 {
		t.Errorf("refused %d times", faults.Hits())
	}
	c.Fault(kfake.Fault{Keys: ids, TopLevel: true, Err: kerr.ClusterAuthorizationFailed, Count: -1})
	r = newRig(t, c, plenty)
	if err := r.fails(t); !errors.Is(err, kerr.ClusterAuthorizationFailed) {
		t.Errorf("%v", err)
	}
}

// TestClosedClient is what no waiting heals.
func TestClosedClient(t *testing.T) {
	c := cluster(t, 1)
	r := newRig(t, c, plenty)
	topic := r.topic(t, topicName)
	r.send(t, topic, 0, 1, 10)
	r.flush(t)
	r.client.Close()
	r.send(t, topic, 0, 1, 10)
	if err := r.fails(t); !errors.Is(err, kgo.ErrClientClosed) {
		t.Errorf("%v", err)
	}
}

// TestThrottled answers are waited for.
func TestThrottled(t *testing.T) {
	c := cluster(t, 1)
	r := newRig(t, c, plenty)
	topic := r.topic(t, topicName)
	c.ControlKey(int16(kmsg.Produce), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		resp := kreq.ResponseKind().(*kmsg.ProduceResponse)
		resp.ThrottleMillis = 100
		return resp, nil, true
	})
	r.send(t, topic, 0, 3, 10)
	r.settled(t)
	holds(t, c, topicName, 0, 3)
}

// TestLinger gathers records, but not once their batch is full, memory is, or somebody waits for them.
func TestLinger(t *testing.T) {
	c := cluster(t, 2)
	requests := c.Fault(kfake.Fault{Keys: produce, Observe: true, Count: -1})
	linger := []string{"linger.ms", "60000", "max.request.size", "20000"}
	r := newRig(t, c, plenty, linger...)
	topic := r.topic(t, topicName)
	for range 20 {
		r.send(t, topic, 0, 1, 10)
	}
	r.settled(t)
	holds(t, c, topicName, 0, 20)
	if requests.Hits() != 1 {
		t.Errorf("%d requests", requests.Hits())
	}
	r.send(t, topic, 0, 1, 10)
	eventually(t, "is waiting", r.locked(func() bool { return len(topic.partitions[0].broker.bell) == 0 }))
	for range 3 {
		r.send(t, topic, 0, 2, 9000)
	}
	eventually(t, "a full batch is sent", func() bool { return r.total() > 20 })
	r.settled(t)

	r = newRig(t, c, 100_000, linger...)
	topic = r.topic(t, topicName)
	began := time.Now()
	for i := range 200 {
		r.send(t, topic, i%2, 1, 3000) // send waits for room
	}
	r.settled(t)
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("lingers for %s", took)
	}
}

// TestLingerEnds by itself, also when the clock is set back meanwhile.
func TestLingerEnds(t *testing.T) {
	c := cluster(t, 1)
	r := newRig(t, c, plenty, "linger.ms", "20")
	topic := r.topic(t, topicName)
	r.send(t, topic, 0, 3, 10)
	eventually(t, "it is sent", r.locked(func() bool { return r.pending == 0 }))
	holds(t, c, topicName, 0, 3)
	b := &batch{since: time.Now()}
	part := &partition{queue: []*batch{b}}
	r.Begin(time.Now())
	placed := r.place(topic.partitions[0], &Record{Headers: NoHeaders})
	placed.head.count, placed.closed = 1, true
	monotonic := strings.Contains(placed.since.String(), "m=")
	r.End()
	if _, due := part.due(time.Minute, time.Now()); due || !monotonic {
		t.Errorf("due %v, monotonic %v", due, monotonic)
	}
}

// TestMemoryIsBounded while no broker answers.
func TestMemoryIsBounded(t *testing.T) {
	c := cluster(t, 2)
	releases := []func(){hold(c, 0), hold(c, 1)}
	const limit = 1 << 20
	r := newRig(t, c, limit)
	topic := r.topic(t, topicName)
	r.Begin(time.Now())
	for i := range topic.partitions {
		r.append(topic, i, 10)
	}
	if r.memory.used > limit+16<<10 {
		t.Errorf("two records use %d bytes", r.memory.used)
	}
	r.End()
	full := func() bool { return r.memory.used >= limit }
	for i := 0; !r.locked(full)(); i++ {
		r.send(t, topic, i%2, 1, 5000)
	}
	if used := r.memory.used; used > limit+2*limit {
		t.Errorf("%d bytes are used", used)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Room(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := r.Flush(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	for _, release := range releases {
		release()
	}
	must(t, r.Room(limited(t)))
	r.settled(t)
	if r.memory.kept > limit/2 {
		t.Errorf("%d bytes are kept", r.memory.kept)
	}
	holds(t, c, topicName, 0, r.next[topic.partitions[0]])
	holds(t, c, topicName, 1, r.next[topic.partitions[1]])
}

// TestLargeRecords are larger than any piece of memory, than a batch and than the memory of all.
func TestLargeRecords(t *testing.T) {
	c := cluster(t, 1)
	r := newRig(t, c, 1<<20, "max.request.size", "5000000")
	topic := r.topic(t, topicName)
	for _, size := range []int{1, 1000, 1100, 300_000, 1 << 20, 3 << 20, 10, 2 << 20, 4 << 20} {
		r.send(t, topic, 0, 1, size)
	}
	r.settled(t)
	holds(t, c, topicName, 0, 9)
}

// TestClose at any moment ends everything, which TestMain looks at.
func TestClose(t *testing.T) {
	c := cluster(t, 2)
	for i := range 30 {
		r := newRig(t, c, 50_000)
		if i%3 == 1 { // no answer is heard at all
			r.wire.cutNext(1000, unheard)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			topic, err := r.Topic(r.Context(), topicName)
			if err != nil {
				return
			}
			for n := range 10 * i {
				if r.Room(r.Context()) != nil {
					return
				}
				r.Begin(time.Now())
				r.append(topic, n%2, 1000)
				r.End()
				if n == 5*i {
					go r.Stop()
				}
			}
		}()
		if i%3 == 0 {
			<-done
		}
		r.Close()
		<-done
		must(t, r.Flush(t.Context()))
		select {
		case err := <-r.failed:
			t.Errorf("%v", err)
		default:
		}
	}
}

// TestNothingIsTakenBehindARefusal when the caller hears of it, be it of another partition.
func TestNothingIsTakenBehindARefusal(t *testing.T) {
	c := cluster(t, 2)
	r := newRig(t, c, plenty)
	topic := r.topic(t, topicName)
	taken := make(chan int, 1)
	r.Producer.mu.Lock()
	r.cfg.Failed = func(err error) {
		r.failed <- err
		r.Producer.mu.Lock()
		b := &broker{p: r.Producer, ready: []*partition{{topic: topic, queue: []*batch{{}}}}}
		r.Producer.mu.Unlock()
		got, _ := b.take()
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

// TestTopicsThatAreGone do not keep others from being looked up.
func TestTopicsThatAreGone(t *testing.T) {
	c := cluster(t, 2)
	r := newRig(t, c, plenty)
	topic := r.topic(t, topicName)
	r.Producer.mu.Lock()
	for i := range 5 * refreshMany {
		name := fmt.Sprint("gone", i)
		r.topics[name] = &Topic{name: name}
	}
	r.Producer.mu.Unlock()
	must(t, r.learnAll(r.metadata(topic, 17)))
	if err := r.refreshAll(); !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Errorf("%v", err)
	}
	if r.locked(func() bool { return topic.partitions[0].broker.node == 17 })() {
		t.Error("the leader is not known")
	}
	r.send(t, topic, 0, 1, 10)
	r.settled(t)
}
