package producer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
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
