package producer

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestReadyEndsWhatIsOpen of an earlier producer, which cannot write any more then.
func TestReadyEndsWhatIsOpen(t *testing.T) {
	bothProtocols(t, func(t *testing.T, opts ...kfake.Opt) {
		c, r, topic := beginTxn(t, 2, opts...)
		r.commit(t, topic)
		r.sendBoth(t, topic)
		r.flush(t)
		next := newTxnRig(t, c, nil)
		must(t, next.Ready(limited(t)))
		sees(t, c, topicName, 0, 3)
		r.sendBoth(t, topic)
		if err := r.fails(t); !errors.Is(err, ErrFenced) {
			t.Errorf("%v", err)
		}
		next.commit(t, next.topic(t, topicName))
		if got := committed(t, c, topicName, 0); len(got) != 6 {
			t.Errorf("%v", got)
		}
	})
}

// TestFenced at each request.
func TestFenced(t *testing.T) {
	stages := map[string]func(t *testing.T, r *rig, topic *Topic, other func()){
		"at the first record": func(t *testing.T, r *rig, topic *Topic, other func()) {
			other()
			r.sendBoth(t, topic)
		},
		"at a later record": func(t *testing.T, r *rig, topic *Topic, other func()) {
			r.sendBoth(t, topic)
			r.flush(t)
			other()
			r.sendBoth(t, topic)
		},
		"at the end": func(t *testing.T, r *rig, topic *Topic, other func()) {
			r.sendBoth(t, topic)
			r.flush(t)
			other()
		},
	}
	for name, stage := range stages {
		t.Run(name, func(t *testing.T) {
			bothProtocols(t, func(t *testing.T, opts ...kfake.Opt) {
				c, r, topic := beginTxn(t, 2, opts...)
				began := time.Now()
				r.commit(t, topic)
				var other time.Time
				stage(t, r, topic, func() { fence(t, c); other = time.Now() })
				ended := r.cut()
				err := r.fails(t)
				if !errors.Is(err, ErrFenced) || errors.Is(err, ErrAgain) || !strings.Contains(err.Error(), transactionID) {
					t.Errorf("%v", err)
				}
				if used := LastUse(err); used.Before(began) || used.After(other) {
					t.Errorf("the id was used last at %v, between %v and %v", used, began, other)
				}
				if got := r.Ready(t.Context()); got == nil || got.Error() != err.Error() {
					t.Errorf("%v, and Failed has heard %v", got, err)
				}
				r.Close()
				neverEnds(t, ended)
				sees(t, c, topicName, 0, 3)
				sees(t, c, topicName, 1, 3)
			})
		})
	}
}

// TestTimedOut is what it is called when the same answer comes late in a transaction: the cluster may have ended it.
func TestTimedOut(t *testing.T) {
	bothProtocols(t, func(t *testing.T, opts ...kfake.Opt) {
		c := cluster(t, 2, opts...)
		r := newTxnRig(t, c, func(cfg *Config) { cfg.Transaction.Timeout = time.Second })
		topic := r.topic(t, topicName)
		r.commit(t, topic)
		r.sendBoth(t, topic)
		r.flush(t)
		time.Sleep(1200 * time.Millisecond)
		ended := r.cut()
		err := r.fails(t)
		if !errors.Is(err, ErrTimedOut) || !errors.Is(err, ErrAgain) || errors.Is(err, ErrFenced) || !strings.Contains(err.Error(), "transaction.timeout.ms=1000") {
			t.Errorf("%v", err)
		}
		if !r.cfg.Client.Transient(err) {
			t.Error("is not transient")
		}
		neverEnds(t, ended)
		sees(t, c, topicName, 0, 3)
	})
}

// TestFencedBeforeItBegan is not a timeout, however long the end of the transaction before has taken.
func TestFencedBeforeItBegan(t *testing.T) {
	c := cluster(t, 2)
	r := newTxnRig(t, c, func(cfg *Config) { cfg.Transaction.Timeout = time.Second })
	topic := r.topic(t, topicName)
	r.commit(t, topic)
	markers := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.AddPartitionsToTxn}, Err: kerr.ConcurrentTransactions, Count: -1})
	r.sendBoth(t, topic)
	ended := r.cut()
	time.Sleep(600 * time.Millisecond)
	fence(t, c)
	markers.Remove()
	if err := r.fails(t); !errors.Is(err, ErrFenced) {
		t.Errorf("%v", err)
	}
	neverEnds(t, ended)
}

// TestForgottenID is not taken for a second producer when the id was not used for long.
func TestForgottenID(t *testing.T) {
	c, r, topic := beginTxn(t, 2)
	r.commit(t, topic)
	r.Producer.mu.Lock()
	r.transactions.used = time.Now().Add(-2 * forgotten)
	r.Producer.mu.Unlock()
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.AddPartitionsToTxn}, Err: kerr.InvalidProducerIDMapping, Count: 1})
	r.sendBoth(t, topic)
	if err := r.fails(t); !errors.Is(err, ErrAgain) || errors.Is(err, ErrFenced) || !strings.Contains(err.Error(), "transactional.id.expiration.ms") {
		t.Errorf("%v", err)
	}
}

// TestReadyWaits for what waiting heals.
func TestReadyWaits(t *testing.T) {
	for _, cause := range []*kerr.Error{kerr.ConcurrentTransactions, kerr.CoordinatorNotAvailable, kerr.NotCoordinator} {
		t.Run(cause.Message, func(t *testing.T) {
			t.Parallel()
			c := cluster(t, 2)
			faults := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, Err: cause, Count: 3})
			r := newTxnRig(t, c, nil)
			must(t, r.Ready(limited(t)))
			if faults.Hits() != 3 {
				t.Errorf("%d faults", faults.Hits())
			}
		})
	}
}

// TestNotReady says why.
func TestNotReady(t *testing.T) {
	for cause, text := range map[*kerr.Error]string{
		kerr.TransactionalIDAuthorizationFailed: " --add --allow-principal User:ANONYMOUS --operation Write --operation Describe --transactional-id " + transactionID,
		kerr.InvalidTransactionTimeout:          "transaction.max.timeout.ms",
		kerr.InvalidRequest:                     transactionID,
	} {
		c := cluster(t, 1)
		c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, Err: cause, Count: -1})
		r := newTxnRig(t, c, nil)
		err := r.Ready(limited(t))
		if !errors.Is(err, cause) || !strings.Contains(err.Error(), text) {
			t.Errorf("%v", err)
		}
		if got := r.fails(t); got.Error() != err.Error() {
			t.Errorf("%v, and Failed has heard %v", err, got)
		}
	}
	c := cluster(t, 1)
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, Err: kerr.ConcurrentTransactions, Count: -1})
	r := newTxnRig(t, c, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := r.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	r.Stop()
	if err := r.Ready(t.Context()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestLastEpoch goes on with the id that the end of the transaction brings.
func TestLastEpoch(t *testing.T) {
	c := cluster(t, 2)
	id, epoch := fence(t, c)
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	must(t, err)
	defer cl.Close()
	// The fake takes a later epoch from a batch.
	const late = 1<<15 - 5
	req := kmsg.NewPtrProduceRequest()
	name := transactionID
	req.TransactionID, req.Acks, req.TimeoutMillis = &name, -1, 1000
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic, topic.TopicID = topicName, c.TopicInfo(topicName).TopicID
	part := kmsg.NewProduceRequestTopicPartition()
	for _, e := range []int16{epoch, late} {
		part.Records = oneBatch(id, e, 0, transactional)
		topic.Partitions = []kmsg.ProduceRequestTopicPartition{part}
		req.Topics = []kmsg.ProduceRequestTopic{topic}
		kresp, err := cl.Broker(0).Request(limited(t), req)
		must(t, err)
		must(t, kerr.ErrorForCode(kresp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode))
	}
	s := watch(c)
	r := newTxnRig(t, c, nil)
	must(t, r.Ready(limited(t)))
	if r.id != id || r.epoch <= late {
		t.Fatalf("id %d, epoch %d", r.id, r.epoch)
	}
	of := r.topic(t, topicName)
	for range 6 {
		r.commit(t, of)
	}
	sees(t, c, topicName, 0, 18)
	sees(t, c, topicName, 1, 18)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.id == id || len(s.epochs) != 6 || !slices.Contains(s.epochs, 0) {
		t.Errorf("epochs %v, id %d", s.epochs, r.id)
	}
}

// oneBatch is a batch of one record.
func oneBatch(id int64, epoch int16, sequence int32, attributes int16) []byte {
	b := kmsg.NewRecordBatch()
	b.PartitionLeaderEpoch, b.Magic, b.Attributes, b.FirstSequence = -1, magic, attributes, sequence
	b.ProducerID, b.ProducerEpoch, b.NumRecords = id, epoch, 1
	body, _ := recordSize(0, 0, nil, nil, NoHeaders)
	b.Records = appendRecord(nil, body, 0, 0, nil, nil, NoHeaders)
	out := b.AppendTo(nil)
	binary.BigEndian.PutUint32(out[batchLengthAt:], uint32(len(out)-leaderEpochAt))
	binary.BigEndian.PutUint32(out[checksumAt:], crc32.Checksum(out[attributesAt:], castagnoli))
	return out
}

// TestStale writes nothing any more when it may not.
func TestStale(t *testing.T) {
	for name, test := range map[string]func(t *testing.T, r *rig, topic *Topic, not func()) <-chan struct{}{
		"add": func(t *testing.T, r *rig, topic *Topic, not func()) <-chan struct{} {
			not()
			r.sendBoth(t, topic)
			return r.cut()
		},
		"produce": func(t *testing.T, r *rig, topic *Topic, not func()) <-chan struct{} {
			r.sendBoth(t, topic)
			r.flush(t)
			not()
			r.sendBoth(t, topic)
			return r.cut()
		},
		"end": func(t *testing.T, r *rig, topic *Topic, not func()) <-chan struct{} {
			r.sendBoth(t, topic)
			r.flush(t)
			not()
			return r.cut()
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, 2)
			var may atomic.Bool
			may.Store(true)
			r := newTxnRig(t, c, func(cfg *Config) { cfg.May = may.Load })
			topic := r.topic(t, topicName)
			r.commit(t, topic)
			var after [3]*kfake.FaultHandle
			ended := test(t, r, topic, func() {
				for i, key := range []kmsg.Key{kmsg.AddPartitionsToTxn, kmsg.Produce, kmsg.EndTxn} {
					after[i] = counter(c, key)
				}
				may.Store(false)
			})
			if err := r.fails(t); !errors.Is(err, ErrStale) || errors.Is(err, ErrAgain) {
				t.Errorf("%v", err)
			}
			r.Close()
			neverEnds(t, ended)
			for i, f := range after {
				if f.Hits() != 0 {
					t.Errorf("%d requests of kind %d", f.Hits(), i)
				}
			}
		})
	}
	c := cluster(t, 1)
	inits := counter(c, kmsg.InitProducerID)
	r := newTxnRig(t, c, func(cfg *Config) { cfg.May = func() bool { return false } })
	if err := r.Ready(limited(t)); !errors.Is(err, ErrStale) || inits.Hits() != 0 {
		t.Errorf("%v, %d requests for an id", err, inits.Hits())
	}
	plain := newRigWith(t, c, plenty, func(cfg *Config) { cfg.May = func() bool { return false } })
	plain.send(t, plain.topic(t, topicName), 0, 1, 10)
	if err := plain.fails(t); !errors.Is(err, ErrStale) {
		t.Errorf("%v", err)
	}
	plain.Close()
	holds(t, c, topicName, 0, 0)
}
