package kafka

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// mark writes the marker of a transaction into partitions of the offsets topic.
func mark(t testing.TB, c *kfake.Cluster, id int64, epoch int16, commit bool, partition int32) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	topics := make(kadm.TopicsSet)
	topics.Add(offsetsTopic, partition)
	if _, err := kadm.NewClient(cl).WriteTxnMarkers(t.Context(), kadm.TxnMarkers{ProducerID: id, ProducerEpoch: epoch, Commit: commit, Topics: topics}); err != nil {
		t.Fatal(err)
	}
}

// TestWhatHasBecomeOfATransaction is in the topic that each committed one has written to: its marker has the next epoch.
func TestWhatHasBecomeOfATransaction(t *testing.T) {
	c := newCluster(t)
	s := openStore(t, storeConfig(c))
	ends := s.Ends(transactionID, nil)
	is := func(id int64, epoch, version int16, want bool) {
		t.Helper()
		got, err := ends.Committed(t.Context(), id, epoch, version)
		if err != nil || got != want {
			t.Errorf("producer %d, epoch %d, transaction.version %d: committed %v, want %v (%v)", id, epoch, version, got, want, err)
		}
	}
	is(7, 3, 2, false) // nothing is there
	mark(t, c, 7, 4, true, 1)
	mark(t, c, 7, 6, false, 0)
	mark(t, c, 8, 9, true, 0)
	is(7, 3, 2, true)
	is(7, 4, 2, false) // before an epoch each, it would be its own
	is(7, 5, 2, false)
	is(7, 8, 2, false) // another producer's
	is(8, 8, 2, true)
	is(7, 5, 1, false)
	if _, err := ends.Committed(t.Context(), 7, 4, 1); !errors.Is(err, errLostEnd) || !strings.Contains(err.Error(), "abort") {
		t.Errorf("transactions of one epoch: %v", err)
	}
	// What writes definitions of tables may commit whatever there is.
	all := Ends{}
	if got, err := all.Committed(t.Context(), 7, 5, 2); !got || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestOpenTransactionsOfAProducer(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(3, "p.db.t"), kfake.SeedTopics(1, "other"))
	s := openStore(t, storeConfig(c))
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.TransactionalID("a"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*kgo.Record{{Topic: offsetsTopic, Partition: 0}, {Topic: "p.db.t", Partition: 2}, {Topic: "p.db.t", Partition: 0}, {Topic: "other"}} {
		r.Value = []byte("v")
		if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	id, epoch, err := cl.ProducerID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	open := func(e *Ends, id int64, in map[string][]int32) (found []string, away bool) {
		t.Helper()
		all, away, err := e.Open(t.Context(), id, in)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range all {
			if o.Epoch != epoch {
				t.Errorf("epoch %d of %d", o.Epoch, epoch)
			}
			found = append(found, fmt.Sprintf("%s-%d", o.Topic, o.Partition))
		}
		slices.Sort(found)
		return found, away
	}
	core, logs := observer.New(zap.WarnLevel)
	s.client.log = zap.New(core)
	both := s.Ends("a", func(topic string) bool { return strings.HasPrefix(topic, "p.") })
	for _, test := range []struct {
		ends *Ends
		id   int64
		in   map[string][]int32
		want []string
	}{
		{both, id, nil, []string{offsetsTopic + "-0", "p.db.t-0", "p.db.t-2"}},
		{s.Ends("a", nil), id, nil, []string{offsetsTopic + "-0"}},
		{both, id + 1, nil, nil},
		{both, id, map[string][]int32{"p.db.t": {1, 2}, "gone": {0}}, []string{"p.db.t-2"}},
		{both, id, map[string][]int32{}, nil},
	} {
		if got, away := open(test.ends, test.id, test.in); away || !slices.Equal(got, test.want) {
			t.Errorf("in %v: %v, want %v; away %v", test.in, got, test.want, away)
		}
	}

	// A partition without a leader is away, and one that may not be read is said once.
	answer := func(err *kerr.Error) (end func()) {
		return c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.DescribeProducers}, Err: err, Count: -1, Topic: "p.db.t"}).Remove
	}
	end := answer(kerr.LeaderNotAvailable)
	if got, away := open(both, id, nil); !away || len(got) > 1 {
		t.Errorf("%v, away %v", got, away)
	}
	end()
	end = answer(kerr.TopicAuthorizationFailed)
	defer end()
	for range 2 {
		if got, away := open(both, id, nil); away || !slices.Equal(got, []string{offsetsTopic + "-0"}) {
			t.Errorf("%v, away %v", got, away)
		}
	}
	if said := logs.FilterMessageSnippet("--operation Read").All(); len(said) != 1 {
		t.Errorf("said %v", logs.All())
	}
}
