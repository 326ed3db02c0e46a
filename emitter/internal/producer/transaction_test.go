package producer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestTransactions commits what is between two cuts, in order, and tells of it in order.
func TestTransactions(t *testing.T) {
	bothProtocols(t, func(t *testing.T, opts ...kfake.Opt) {
		c, r, topic := beginTxn(t, 3, opts...)
		s := watch(c)
		must(t, r.Ready(limited(t)))
		order := make(chan int, 100)
		const n = 30
		for i := range n {
			r.sendBoth(t, topic)
			if i%3 == 0 {
				r.send(t, topic, 2, 200, 1000)
			}
			r.Cut(func(err error) {
				must(t, err)
				order <- i
			})
			if i%10 == 9 {
				r.waitFor(t, r.cut())
			}
		}
		r.waitFor(t, r.cut())
		for i := range n {
			if got := <-order; got != i {
				t.Errorf("transaction %d has ended, and %d was next", got, i)
			}
		}
		for p := range topic.partitions {
			sees(t, c, topicName, p, r.next[topic.partitions[p]])
		}
		r.settled(t)
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(opts) > 0 {
			if len(s.epochs) != 1 || r.Transactions() >= 2 || !s.versions[kmsg.Produce][11] || !s.versions[kmsg.EndTxn][4] {
				t.Errorf("epochs %v, transaction.version %d, versions %v", s.epochs, r.Transactions(), s.versions)
			}
			return
		}
		if len(s.epochs) != n || r.Transactions() != 2 || !s.versions[kmsg.EndTxn][5] {
			t.Errorf("epochs %v, transaction.version %d, versions %v", s.epochs, r.Transactions(), s.versions)
		}
	})
}

// TestOldTransactionsOfANewBroker are those of a cluster whose brokers could have an epoch for each, and which was not told to.
func TestOldTransactionsOfANewBroker(t *testing.T) {
	c := cluster(t, 2)
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	must(t, err)
	defer cl.Close()
	req := kmsg.NewPtrUpdateFeaturesRequest()
	one := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
	one.Feature, one.MaxVersionLevel, one.UpgradeType = "transaction.version", 1, 3
	req.FeatureUpdates = append(req.FeatureUpdates, one)
	resp, err := req.RequestWith(limited(t), cl)
	must(t, err)
	must(t, kerr.ErrorForCode(resp.ErrorCode))

	s := watch(c)
	r := newTxnRig(t, c, nil)
	topic := r.topic(t, topicName)
	r.commit(t, topic)
	r.commit(t, topic)
	sees(t, c, topicName, 0, 6)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Transactions() != 1 || len(s.versions[kmsg.Produce]) != 1 || !s.versions[kmsg.Produce][11] || !s.versions[kmsg.EndTxn][4] ||
		!s.versions[kmsg.AddPartitionsToTxn][3] || len(s.epochs) != 1 {
		t.Errorf("transaction.version %d, epochs %v, versions %v", r.Transactions(), s.epochs, s.versions)
	}
}

// TestNothingOfTheNextTransaction is sent before the one before it has ended.
func TestNothingOfTheNextTransaction(t *testing.T) {
	bothProtocols(t, func(t *testing.T, opts ...kfake.Opt) {
		c, r, topic := beginTxn(t, 2, opts...)
		asked, release := holdKey(c, kmsg.EndTxn)
		defer release()
		r.sendBoth(t, topic)
		first := r.cut()
		<-asked
		produces, adds := counter(c, kmsg.Produce), counter(c, kmsg.AddPartitionsToTxn)
		r.sendBoth(t, topic)
		second := r.cut()
		r.sendBoth(t, topic)
		time.Sleep(50 * time.Millisecond)
		neverEnds(t, first)
		if produces.Hits() != 0 || adds.Hits() != 0 {
			t.Errorf("%d produce requests, %d to add partitions", produces.Hits(), adds.Hits())
		}
		release()
		r.waitFor(t, first)
		r.waitFor(t, second)
		r.waitFor(t, r.cut())
		sees(t, c, topicName, 0, 9)
		sees(t, c, topicName, 1, 9)
	})
}

// TestNothingOfTheNextTransactionIsSentWithTheFirst while that is under way, to another partition.
func TestNothingOfTheNextTransactionIsSentWithTheFirst(t *testing.T) {
	bothProtocols(t, func(t *testing.T, opts ...kfake.Opt) {
		c, r, topic := beginTxn(t, 2, opts...)
		r.send(t, topic, 0, 3, 10)
		r.flush(t)
		release := hold(c, 0)
		defer release()
		r.send(t, topic, 0, 3, 10)
		eventually(t, "the first is under way", r.locked(func() bool { return topic.partitions[0].busy }))
		first := r.cut()
		adds := counter(c, kmsg.AddPartitionsToTxn)
		r.send(t, topic, 1, 3, 10)
		second := r.cut()
		time.Sleep(50 * time.Millisecond)
		if adds.Hits() != 0 || r.total() != 3 {
			t.Errorf("%d requests to add partitions, %d records are acknowledged", adds.Hits(), r.total())
		}
		release()
		r.waitFor(t, first)
		r.waitFor(t, second)
		sees(t, c, topicName, 1, 3)
	})
}

// TestEmptyCuts end at once, but not before what was before them, and ask nobody.
func TestEmptyCuts(t *testing.T) {
	c, r, topic := beginTxn(t, 2)
	ends := counter(c, kmsg.EndTxn)
	r.waitFor(t, r.cut())
	var order []int
	var mu sync.Mutex
	done := make(chan struct{})
	for i := range 10 {
		if i%4 == 0 {
			r.sendBoth(t, topic)
		}
		r.Cut(func(error) {
			mu.Lock()
			defer mu.Unlock()
			if order = append(order, i); len(order) == 10 {
				close(done)
			}
		})
	}
	r.waitFor(t, done)
	if !slices.IsSorted(order) || ends.Hits() != 3 {
		t.Errorf("order %v, %d ends", order, ends.Hits())
	}
}

// TestCutMayBeCalledAgainByTheEnd of a transaction.
func TestCutMayBeCalledAgainByTheEnd(t *testing.T) {
	_, r, _ := beginTxn(t, 1)
	done := make(chan struct{})
	r.Cut(func(error) { r.Cut(func(error) { close(done) }) })
	r.waitFor(t, done)
}

// TestCutEndsLingering of what is in the transaction.
func TestCutEndsLingering(t *testing.T) {
	c := cluster(t, 2)
	r := newTxnRig(t, c, nil, "linger.ms", "60000")
	topic := r.topic(t, topicName)
	for range 3 {
		r.commit(t, topic)
	}
	r.sendBoth(t, topic)
	r.flush(t)
	r.sendBoth(t, topic) // to partitions that are in the transaction
	time.Sleep(20 * time.Millisecond)
	r.waitFor(t, r.cut())
	sees(t, c, topicName, 1, 15)
}

// TestAbort leaves nothing open and nothing that is seen.
func TestAbort(t *testing.T) {
	bothProtocols(t, func(t *testing.T, opts ...kfake.Opt) {
		c, r, topic := beginTxn(t, 2, opts...)
		r.commit(t, topic)
		r.sendBoth(t, topic)
		r.flush(t)
		r.sendBoth(t, topic) // on its way, perhaps
		must(t, r.Abort(limited(t)))
		sees(t, c, topicName, 0, 3)
		sees(t, c, topicName, 1, 3)
		if r.Context().Err() == nil {
			t.Error("the producer goes on")
		}
		select {
		case err := <-r.failed:
			t.Error(err)
		default:
		}
	})
}

// TestAbortWithoutATransaction asks nobody.
func TestAbortWithoutATransaction(t *testing.T) {
	c, r, topic := beginTxn(t, 2)
	r.commit(t, topic)
	ends := counter(c, kmsg.EndTxn)
	must(t, r.Abort(limited(t)))
	if ends.Hits() != 0 {
		t.Error("an end was sent")
	}
	must(t, r.Abort(limited(t))) // once more
	plain := newRig(t, c, plenty)
	must(t, plain.Abort(limited(t)))
	if plain.Context().Err() == nil {
		t.Error("goes on")
	}
}

// TestAbortOfWhatMayHaveBegun ends it.
func TestAbortOfWhatMayHaveBegun(t *testing.T) {
	c, r, topic := beginTxn(t, 2)
	r.commit(t, topic)
	r.wire.cutOther(kmsg.AddPartitionsToTxn, unheard)
	again := make(chan struct{})
	first := sync.OnceFunc(func() { close(again) })
	requests := 0
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.AddPartitionsToTxn}, Err: kerr.ConcurrentTransactions, Count: -1, When: func(kmsg.Request) bool {
		if requests++; requests == 1 { // its answer is not heard
			return false
		}
		first()
		return true
	}})
	ends := counter(c, kmsg.EndTxn)
	r.sendBoth(t, topic)
	<-again
	must(t, r.Abort(limited(t)))
	if ends.Hits() != 1 {
		t.Errorf("%d ends were sent", ends.Hits())
	}
}

// TestRefusedRecordLeavesNothingOpen, for who reads would wait for the end of its transaction.
func TestRefusedRecordLeavesNothingOpen(t *testing.T) {
	bothProtocols(t, func(t *testing.T, opts ...kfake.Opt) {
		c, r, topic := beginTxn(t, 2, opts...)
		r.commit(t, topic)
		r.sendBoth(t, topic)
		r.flush(t)
		c.Fault(kfake.Fault{Keys: produce, Err: kerr.InvalidRecord, Count: -1})
		r.send(t, topic, 0, 1, 10)
		r.send(t, topic, 1, 1, 10)
		neverEnds(t, r.cut())
		if _, refused := errors.AsType[*Refused](r.fails(t)); !refused || !errors.Is(context.Cause(r.Context()), kerr.InvalidRecord) {
			t.Errorf("ended by %v", context.Cause(r.Context()))
		}
		sees(t, c, topicName, 0, 3)
		sees(t, c, topicName, 1, 3)
		must(t, r.Abort(limited(t)))
	})
}

// TestRefusedRecordWaitsNotForLong for the end of its transaction.
func TestRefusedRecordWaitsNotForLong(t *testing.T) {
	c, r, topic := beginTxn(t, 1)
	r.send(t, topic, 0, 1, 10)
	r.flush(t)
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.EndTxn}, Err: kerr.CoordinatorLoadInProgress, Count: -1})
	c.Fault(kfake.Fault{Keys: produce, Err: kerr.InvalidRecord, Count: -1})
	r.send(t, topic, 0, 1, 10)
	if _, refused := errors.AsType[*Refused](r.fails(t)); !refused {
		t.Error("ended by another error")
	}
}

// TestAbortGivesUp when it takes too long.
func TestAbortGivesUp(t *testing.T) {
	c, r, topic := beginTxn(t, 2)
	r.sendBoth(t, topic)
	r.flush(t)
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.EndTxn}, Err: kerr.CoordinatorLoadInProgress, Count: -1})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := r.Abort(ctx); !errors.Is(err, context.DeadlineExceeded) || r.Context().Err() == nil {
		t.Errorf("%v", err)
	}
}

// TestTransactionAnswers is what each answer means to each request.
func TestTransactionAnswers(t *testing.T) {
	type want struct {
		err  error // nil: waiting heals it
		text string
	}
	heals := want{}
	type answers map[*kerr.Error]want
	all := map[kmsg.Key]answers{
		kmsg.AddPartitionsToTxn: {
			kerr.ConcurrentTransactions: heals, kerr.NotCoordinator: heals, kerr.CoordinatorNotAvailable: heals,
			kerr.CoordinatorLoadInProgress: heals, kerr.UnknownTopicOrPartition: heals, kerr.RequestTimedOut: heals,
			kerr.ProducerFenced: {err: ErrFenced}, kerr.InvalidProducerEpoch: {err: ErrFenced}, kerr.InvalidTxnState: {err: ErrFenced},
			kerr.InvalidProducerIDMapping: {err: ErrFenced}, kerr.TransactionAbortable: {err: ErrAgain},
			kerr.TransactionalIDAuthorizationFailed: {err: kerr.TransactionalIDAuthorizationFailed, text: "--transactional-id " + transactionID},
			kerr.TopicAuthorizationFailed:           {err: kerr.TopicAuthorizationFailed, text: "topic " + topicName},
		},
		kmsg.Produce: {
			kerr.ConcurrentTransactions: heals, kerr.NotEnoughReplicas: heals, kerr.NotLeaderForPartition: heals,
			kerr.InvalidProducerEpoch: {err: ErrFenced}, kerr.ProducerFenced: {err: ErrFenced}, kerr.InvalidTxnState: {err: ErrFenced},
			kerr.InvalidProducerIDMapping: {err: ErrFenced}, kerr.TransactionAbortable: {err: ErrAgain},
			kerr.OutOfOrderSequenceNumber: {err: ErrAgain, text: "unclean"}, kerr.UnknownProducerID: {err: ErrAgain, text: "unclean"},
			kerr.TransactionalIDAuthorizationFailed: {err: kerr.TransactionalIDAuthorizationFailed, text: "kafka-acls.sh"},
			kerr.TopicAuthorizationFailed:           {err: kerr.TopicAuthorizationFailed, text: "topic " + topicName},
		},
		kmsg.EndTxn: {
			kerr.ConcurrentTransactions: heals, kerr.NotCoordinator: heals, kerr.CoordinatorNotAvailable: heals,
			kerr.CoordinatorLoadInProgress: heals,
			kerr.ProducerFenced:            {err: ErrFenced}, kerr.InvalidProducerEpoch: {err: ErrFenced}, kerr.InvalidTxnState: {err: ErrFenced},
			kerr.InvalidProducerIDMapping: {err: ErrFenced}, kerr.TransactionAbortable: {err: ErrAgain},
			kerr.UnknownServerError:                 {err: ErrUnknownOutcome},
			kerr.TransactionalIDAuthorizationFailed: {err: kerr.TransactionalIDAuthorizationFailed, text: "kafka-acls.sh"},
			kerr.InvalidRequest:                     {err: kerr.InvalidRequest, text: "committing"},
		},
	}
	for key, answers := range all {
		for cause, want := range answers {
			t.Run(key.Name()+"/"+cause.Message, func(t *testing.T) {
				t.Parallel()
				c, r, topic := beginTxn(t, 2)
				r.commit(t, topic)
				faults := c.Fault(kfake.Fault{Keys: []kmsg.Key{key}, Err: cause, Count: 1})
				r.sendBoth(t, topic)
				ended := r.cut()
				if want.err == nil {
					r.waitFor(t, ended)
					sees(t, c, topicName, 0, 6)
					sees(t, c, topicName, 1, 6)
				} else {
					err := r.fails(t)
					if !errors.Is(err, want.err) || !strings.Contains(err.Error(), want.text) || !errors.Is(err, cause) {
						t.Errorf("%v", err)
					}
					if r.cfg.Client.Transient(err) != errors.Is(err, ErrAgain) {
						t.Errorf("transient: %v", r.cfg.Client.Transient(err))
					}
					neverEnds(t, ended)
					newTxnRig(t, c, nil).Ready(limited(t))
					sees(t, c, topicName, 0, 3)
				}
				if faults.Hits() != 1 {
					t.Errorf("%d faults", faults.Hits())
				}
			})
		}
	}
}
