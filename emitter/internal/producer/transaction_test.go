package producer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

const transactionID = "group-name-0"

// oldTransactions is a cluster whose transactions share an epoch.
var oldTransactions = kfake.MaxVersions(kversion.V3_9_0())

// bothProtocols runs a test with each kind of transactions.
func bothProtocols(t *testing.T, f func(t *testing.T, opts ...kfake.Opt)) {
	t.Run("an epoch each", func(t *testing.T) {
		t.Parallel()
		f(t)
	})
	t.Run("one epoch", func(t *testing.T) {
		t.Parallel()
		f(t, oldTransactions)
	})
}

// newTxnRig has transactions, and tells of their ends.
func newTxnRig(t testing.TB, c seeds, set func(*Config), properties ...string) *rig {
	t.Helper()
	return newRigWith(t, c, plenty, func(cfg *Config) {
		cfg.Transaction = &Transaction{ID: transactionID}
		if set != nil {
			set(cfg)
		}
	}, properties...)
}

func beginTxn(t testing.TB, brokers int, opts ...kfake.Opt) (*kfake.Cluster, *rig, *Topic) {
	t.Helper()
	c := cluster(t, brokers, opts...)
	r := newTxnRig(t, c, nil)
	return c, r, r.topic(t, topicName)
}

// cut ends a transaction, and returns what is closed when that is done.
func (r *rig) cut() <-chan struct{} {
	ended := make(chan struct{})
	r.Cut(func(err error) {
		if err == nil {
			close(ended)
		}
	})
	return ended
}

func (r *rig) waitFor(t testing.TB, ended <-chan struct{}) {
	t.Helper()
	select {
	case <-ended:
	case err := <-r.failed:
		t.Fatal(err)
	case <-limited(t).Done():
		t.Fatal("the transaction does not end")
	}
}

// commit sends records to both partitions and ends a transaction with them.
func (r *rig) commit(t testing.TB, topic *Topic) {
	t.Helper()
	r.sendBoth(t, topic)
	r.waitFor(t, r.cut())
}

// neverEnds checks that a transaction was not said to have been committed.
func neverEnds(t testing.TB, ended <-chan struct{}) {
	t.Helper()
	select {
	case <-ended:
		t.Error("the transaction is said to have been committed")
	default:
	}
}

// committed reads what those see who read only what is committed, of a partition in which nothing is open.
func committed(t testing.TB, c seeds, topic string, partition int32) []string {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().AtStart()}}))
	must(t, err)
	defer cl.Close()
	adm := kadm.NewClient(cl)
	ends, err := adm.ListEndOffsets(limited(t), topic)
	must(t, err)
	stable, err := adm.ListCommittedOffsets(limited(t), topic)
	must(t, err)
	end, _ := ends.Lookup(topic, partition)
	if lso, _ := stable.Lookup(topic, partition); lso.Offset != end.Offset {
		t.Errorf("%s-%d: a transaction is open at %d of %d", topic, partition, lso.Offset, end.Offset)
	}
	var got []string
	for at := int64(0); at < end.Offset; {
		fetches := cl.PollFetches(limited(t))
		must(t, fetches.Err0())
		for _, r := range fetches.Records() {
			if at = r.Offset + 1; !r.Attrs.IsControl() {
				value, _, _ := strings.Cut(string(r.Value), "/")
				got = append(got, value)
			}
		}
	}
	return got
}

// sees checks that of a partition the first n records that were sent are committed, each once and in order, and nothing else is.
func sees(t testing.TB, c seeds, topic string, partition, n int) {
	t.Helper()
	want := make([]string, n)
	for i := range want {
		want[i] = strconv.Itoa(i)
	}
	if got := committed(t, c, topic, int32(partition)); !slices.Equal(got, want) {
		t.Errorf("%s-%d: %d records are committed, want %d: %.300v", topic, partition, len(got), n, got)
	}
}

// fence begins another producer with the id, as a second instance does.
func fence(t testing.TB, c seeds) (id int64, epoch int16) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.TransactionalID(transactionID))
	must(t, err)
	defer cl.Close()
	id, epoch, err = cl.ProducerID(limited(t))
	must(t, err)
	return id, epoch
}

// counter counts requests of a kind.
func counter(c *kfake.Cluster, key kmsg.Key) *kfake.FaultHandle {
	return c.Fault(kfake.Fault{Keys: []kmsg.Key{key}, Count: -1, Observe: true, TopLevel: true})
}

// seen gathers what of the requests is of interest.
type seen struct {
	mu       sync.Mutex
	versions map[kmsg.Key]map[int16]bool
	epochs   []int16 // of batches, in order, each once
	adds     [][]string
}

func watch(c *kfake.Cluster) *seen {
	s := &seen{versions: make(map[kmsg.Key]map[int16]bool)}
	c.Control(func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		s.mu.Lock()
		defer s.mu.Unlock()
		key := kmsg.Key(kreq.Key())
		if s.versions[key] == nil {
			s.versions[key] = make(map[int16]bool)
		}
		s.versions[key][kreq.GetVersion()] = true
		switch req := kreq.(type) {
		case *kmsg.ProduceRequest:
			for _, topic := range req.Topics {
				for _, p := range topic.Partitions {
					var b kmsg.RecordBatch
					if b.ReadFrom(p.Records) == nil && (len(s.epochs) == 0 || s.epochs[len(s.epochs)-1] != b.ProducerEpoch) {
						s.epochs = append(s.epochs, b.ProducerEpoch)
					}
				}
			}
		case *kmsg.AddPartitionsToTxnRequest:
			var parts []string
			for _, topic := range req.Topics {
				for _, p := range topic.Partitions {
					parts = append(parts, fmt.Sprintf("%s-%d", topic.Topic, p))
				}
			}
			s.adds = append(s.adds, parts)
		}
		return nil, nil, false
	})
	return s
}

// holdKey keeps requests of a kind until the function returned is called, and tells of the first one.
func holdKey(c *kfake.Cluster, key kmsg.Key) (asked <-chan struct{}, release func()) {
	wait, first := make(chan struct{}), make(chan struct{})
	once := sync.OnceFunc(func() { close(first) })
	c.ControlKey(int16(key), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		once()
		select {
		case <-wait:
		default:
			c.SleepControl(func() { <-wait })
		}
		return nil, nil, false
	})
	return first, sync.OnceFunc(func() { close(wait) })
}

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
				r.commit(t, topic)
				stage(t, r, topic, func() { fence(t, c) })
				ended := r.cut()
				err := r.fails(t)
				if !errors.Is(err, ErrFenced) || errors.Is(err, ErrAgain) || !strings.Contains(err.Error(), transactionID) {
					t.Errorf("%v", err)
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
		c := cluster(t, 2)
		faults := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, Err: cause, Count: 3})
		r := newTxnRig(t, c, nil)
		must(t, r.Ready(limited(t)))
		if faults.Hits() != 3 {
			t.Errorf("%s: %d faults", cause.Message, faults.Hits())
		}
	}
}

// TestNotReady says why.
func TestNotReady(t *testing.T) {
	for cause, text := range map[*kerr.Error]string{
		kerr.TransactionalIDAuthorizationFailed: "kafka-acls.sh --add --allow-principal User:… --operation Write --operation Describe --transactional-id " + transactionID,
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

// TestCoordinatorMoves to other brokers all the time.
func TestCoordinatorMoves(t *testing.T) {
	bothProtocols(t, func(t *testing.T, opts ...kfake.Opt) {
		c, r, topic := beginTxn(t, 3, opts...)
		for i := range 10 {
			if i%2 == 1 {
				c.RehashCoordinators()
			}
			r.sendBoth(t, topic)
			if i%3 == 1 {
				r.flush(t)
				c.RehashCoordinators()
			}
			r.waitFor(t, r.cut())
		}
		sees(t, c, topicName, 0, 30)
		sees(t, c, topicName, 1, 30)
	})
}

// TestCutProducesInTransactions neither lose nor double a record.
func TestCutProducesInTransactions(t *testing.T) {
	for name, how := range map[string]cut{"before": before, "amid": amid, "unheard": unheard, "untouched": untouched} {
		t.Run(name, func(t *testing.T) {
			bothProtocols(t, func(t *testing.T, opts ...kfake.Opt) {
				c, r, topic := beginTxn(t, 2, opts...)
				r.commit(t, topic)
				for range 4 {
					r.wire.cutNext(2, how)
					r.commit(t, topic)
				}
				sees(t, c, topicName, 0, 15)
				sees(t, c, topicName, 1, 15)
			})
		})
	}
}

// TestUnknownOutcome is what it is when the connection ends after the end of a transaction was sent; the next producer's Ready
// settles it.
func TestUnknownOutcome(t *testing.T) {
	for name, test := range map[string]struct {
		how       cut
		committed int
	}{"not delivered": {amid, 3}, "delivered": {unheard, 6}} {
		t.Run(name, func(t *testing.T) {
			bothProtocols(t, func(t *testing.T, opts ...kfake.Opt) {
				c, r, topic := beginTxn(t, 2, opts...)
				r.commit(t, topic)
				r.wire.cutOther(kmsg.EndTxn, test.how)
				ends := counter(c, kmsg.EndTxn)
				r.sendBoth(t, topic)
				ended := r.cut()
				r.sendBoth(t, topic)
				next := r.cut()
				err := r.fails(t)
				if !errors.Is(err, ErrUnknownOutcome) || !errors.Is(err, ErrAgain) || !r.cfg.Client.Transient(err) {
					t.Errorf("%v", err)
				}
				r.Close()
				neverEnds(t, ended)
				neverEnds(t, next)
				if n := int(ends.Hits()); n != (test.committed-3)/3 {
					t.Errorf("%d ends have arrived", n)
				}
				must(t, newTxnRig(t, c, nil).Ready(limited(t)))
				sees(t, c, topicName, 0, test.committed)
				sees(t, c, topicName, 1, test.committed)
			})
		})
	}
}

// TestUnansweredAddition is tried again where it cannot get into a later transaction, and else ends the producer.
func TestUnansweredAddition(t *testing.T) {
	for _, how := range []cut{amid, unheard} {
		bothProtocols(t, func(t *testing.T, opts ...kfake.Opt) {
			c, r, topic := beginTxn(t, 2, opts...)
			r.commit(t, topic)
			r.wire.cutOther(kmsg.AddPartitionsToTxn, how)
			r.sendBoth(t, topic)
			ended := r.cut()
			if len(opts) == 0 {
				r.waitFor(t, ended)
				sees(t, c, topicName, 0, 6)
				return
			}
			if err := r.fails(t); !errors.Is(err, ErrAgain) || errors.Is(err, ErrFenced) {
				t.Errorf("%v", err)
			}
			neverEnds(t, ended)
		})
	}
}

// TestClosedCoordinatorConnection is made anew when it was idle.
func TestClosedCoordinatorConnection(t *testing.T) {
	c, r, topic := beginTxn(t, 2, oldTransactions)
	r.commit(t, topic)
	r.Producer.mu.Lock()
	conn := r.transactions.peer.conn
	r.Producer.mu.Unlock()
	conn.conn.Close()
	eventually(t, "it is known", r.locked(func() bool { return r.transactions.peer.conn == nil }))
	r.commit(t, topic)
	sees(t, c, topicName, 0, 6)
}

// TestSplitInATransaction halves batches until the topic takes them.
func TestSplitInATransaction(t *testing.T) {
	bothProtocols(t, func(t *testing.T, opts ...kfake.Opt) {
		c := cluster(t, 1, opts...)
		must(t, c.CreateTopic("small", 1, map[string]string{"max.message.bytes": "2000"}))
		r := newTxnRig(t, c, nil, "linger.ms", "60000")
		topic := r.topic(t, "small")
		for range 3 {
			r.send(t, topic, 0, 50, 500)
			ended := r.cut()
			r.send(t, topic, 0, 2, 10)
			r.waitFor(t, ended)
		}
		r.waitFor(t, r.cut())
		sees(t, c, "small", 0, 156)
		r.settled(t)
	})
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

// TestEvery has a partition in each transaction from its beginning.
func TestEvery(t *testing.T) {
	c, r, topic := beginTxn(t, 3)
	s := watch(c)
	r.Every(topic, 2)
	for range 3 {
		r.send(t, topic, 0, 5, 10)
		r.flush(t)
		r.send(t, topic, 2, 1, 10)
		r.waitFor(t, r.cut())
	}
	r.waitFor(t, r.cut())
	sees(t, c, topicName, 0, 15)
	sees(t, c, topicName, 2, 3)
	s.mu.Lock()
	defer s.mu.Unlock()
	if want := []string{topicName + "-0", topicName + "-2"}; len(s.adds) != 3 || !slices.Equal(s.adds[0], want) || !slices.Equal(s.adds[2], want) {
		t.Errorf("%v", s.adds)
	}
}

// TestAddedMeanwhile: a partition that is being added and gets a record meanwhile is not added to the next transaction, which would be left
// open without records.
func TestAddedMeanwhile(t *testing.T) {
	c, r, topic := beginTxn(t, 2)
	r.Every(topic, 1)
	adds := counter(c, kmsg.AddPartitionsToTxn)
	asked, release := holdKey(c, kmsg.AddPartitionsToTxn)
	defer release()
	r.send(t, topic, 0, 1, 10)
	select {
	case <-asked:
	case <-limited(t).Done():
		t.Fatal("no partition is added")
	}
	r.send(t, topic, 1, 1, 10)
	release()
	r.waitFor(t, r.cut())
	time.Sleep(50 * time.Millisecond)
	if n := adds.Hits(); n != 1 {
		t.Errorf("partitions are added %d times", n)
	}
}

// TestNothingIsAddedWhileALeaderAsks the coordinator about its first batch, nor the other way round: one of them would wait long.
func TestNothingIsAddedWhileALeaderAsks(t *testing.T) {
	c, r, topic := beginTxn(t, 2)
	r.commit(t, topic)
	release := hold(c, 0)
	defer release()
	r.send(t, topic, 0, 1, 10)
	eventually(t, "the first batch is under way", r.locked(func() bool { return r.transactions.proving == 1 }))
	adds := counter(c, kmsg.AddPartitionsToTxn)
	r.send(t, topic, 1, 1, 10)
	time.Sleep(30 * time.Millisecond)
	if adds.Hits() != 0 {
		t.Error("a partition is added")
	}
	release()
	r.waitFor(t, r.cut())

	r.Producer.mu.Lock()
	part := topic.partitions[0]
	part.queue = []*batch{{in: r.transactions.queue[0]}}
	r.transactions.adding = true
	if r.transactions.take(part) {
		t.Error("a first batch is taken")
	}
	part.proven = r.transactions.queue[0]
	if !r.transactions.take(part) {
		t.Error("a later one is not")
	}
	part.queue, r.transactions.adding = nil, false
	r.Producer.mu.Unlock()
}

// TestFirstBatchIsSentAfterAnAddition for which it had to wait.
func TestFirstBatchIsSentAfterAnAddition(t *testing.T) {
	c, r, topic := beginTxn(t, 2)
	r.commit(t, topic)
	r.Producer.mu.Lock()
	b := r.brokers[0]
	r.Producer.mu.Unlock()
	b.sending.Lock() // it cannot take anything
	r.send(t, topic, 0, 1, 10)
	eventually(t, "it could be sent", r.locked(func() bool { return topic.partitions[0].listed }))
	asked, release := holdKey(c, kmsg.AddPartitionsToTxn)
	defer release()
	r.send(t, topic, 1, 1, 10)
	<-asked
	b.sending.Unlock()
	time.Sleep(20 * time.Millisecond)
	release()
	r.waitFor(t, r.cut())
	sees(t, c, topicName, 0, 4)
}

// TestLostLeadersInTransactions has partitions whose leaders move between transactions and within them.
func TestLostLeadersInTransactions(t *testing.T) {
	bothProtocols(t, func(t *testing.T, opts ...kfake.Opt) {
		c := cluster(t, 3, opts...)
		r := newTxnRig(t, c, nil, "metadata.max.age.ms", "1000")
		topic := r.topic(t, topicName)
		for range 10 {
			r.sendBoth(t, topic)
			c.ShufflePartitionLeaders()
			r.sendBoth(t, topic)
			r.waitFor(t, r.cut())
		}
		sees(t, c, topicName, 0, 60)
		sees(t, c, topicName, 1, 60)
	})
}
