package producer

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// TestWhatWaitingHeals answers with errors for a while, some of which a broker gives though it has appended the batch.
func TestWhatWaitingHeals(t *testing.T) {
	for _, cause := range []*kerr.Error{
		kerr.NotLeaderForPartition, kerr.LeaderNotAvailable, kerr.UnknownTopicOrPartition, kerr.UnknownTopicID,
		kerr.RequestTimedOut, kerr.NotEnoughReplicas, kerr.NotEnoughReplicasAfterAppend, kerr.KafkaStorageError,
		kerr.CorruptMessage, kerr.NetworkException,
	} {
		t.Run(cause.Message, func(t *testing.T) {
			t.Parallel()
			c, r, topic := begin(t, 2)
			faults := c.Fault(kfake.Fault{Keys: produce, Partitions: []int32{0}, Err: cause, Count: 2})
			for range 5 {
				r.sendBoth(t, topic)
			}
			r.arrived(t, c, topic)
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
			c, r, topic := begin(t, 1)
			r.send(t, topic, 0, 1, 10)
			r.flush(t)
			r.wire.cutNext(3, how)
			for range 3 {
				r.send(t, topic, 0, 3, 10)
				r.flush(t)
			}
			r.arrived(t, c, topic)
			if r.wire.cuts < 3 {
				t.Errorf("%d requests were cut", r.wire.cuts)
			}
		})
	}
}

// TestNoAnswer has brokers whose answers do not tell of the batch, or in two ways.
func TestNoAnswer(t *testing.T) {
	answers := map[string]func(*kmsg.ProduceResponse){
		"without the topic":     func(r *kmsg.ProduceResponse) { r.Topics = nil },
		"without the partition": func(r *kmsg.ProduceResponse) { r.Topics[0].Partitions = nil },
		"of another partition":  func(r *kmsg.ProduceResponse) { r.Topics[0].Partitions[0].Partition = 7 },
		"of another topic":      func(r *kmsg.ProduceResponse) { r.Topics[0].Topic, r.Topics[0].TopicID = "other", [16]byte{1} },
		"that is repeated": func(r *kmsg.ProduceResponse) {
			t := &r.Topics[0]
			t.Partitions = append(t.Partitions, t.Partitions[0])
			t.Partitions[0].ErrorCode = kerr.NotLeaderForPartition.Code
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
					resp := acknowledgement(kreq)
					spoil(resp)
					return resp, nil, true
				})
				r.send(t, topic, 0, 5, 10)
				r.arrived(t, c, topic)
			})
		}
	}
}

// TestOldBrokers have no ids of topics, or do not take them.
func TestOldBrokers(t *testing.T) {
	for _, versions := range []*kversion.Versions{kversion.V2_1_0(), kversion.V2_8_0(), kversion.V4_0_0()} {
		c := cluster(t, 2, kfake.MaxVersions(versions))
		r := newRig(t, c, plenty)
		topic := r.topic(t, topicName)
		r.wire.cutNext(2, unheard)
		for range 5 {
			r.sendBoth(t, topic)
		}
		r.arrived(t, c, topic)
	}
}

// TestOldMetadata has a topic's id from no broker, as while brokers are upgraded one after the other.
func TestOldMetadata(t *testing.T) {
	c, r, topic := begin(t, 1)
	r.Producer.mu.Lock()
	topic.id = [16]byte{}
	r.Producer.mu.Unlock()
	faults := c.Fault(kfake.Fault{Keys: produce, Observe: true, Count: -1, When: func(req kmsg.Request) bool {
		return req.GetVersion() == firstByID-1
	}})
	r.send(t, topic, 0, 3, 10)
	r.arrived(t, c, topic)
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
	topic := r.topic(t, topicName)
	r.send(t, topic, 0, 3, 10)
	r.arrived(t, c, topic)
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
	_, r, topic := begin(t, 1)
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
	c, r, topic := begin(t, 1)
	c.ControlKey(int16(kmsg.Produce), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		resp := kreq.ResponseKind().(*kmsg.ProduceResponse)
		resp.ThrottleMillis = 100
		return resp, nil, true
	})
	r.send(t, topic, 0, 3, 10)
	r.arrived(t, c, topic)
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
		r.fail(errCut) // is of no interest any more
		select {
		case err := <-r.failed:
			t.Errorf("%v", err)
		default:
		}
	}
}
