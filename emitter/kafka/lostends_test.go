package kafka

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tidemark-cdc/tidemark/emitter/internal/producer"
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

// ofTransaction writes a record of a transaction to a partition of the offsets topic.
func ofTransaction(t testing.TB, c *kfake.Cluster, id int64, epoch int16, partition int32) {
	t.Helper()
	const noSize, record = 12, "\x0e\x00\x00\x00\x02k\x01\x00"
	b := kmsg.NewRecordBatch()
	b.PartitionLeaderEpoch, b.Magic = -1, 2
	b.ProducerID, b.ProducerEpoch, b.NumRecords, b.Records = id, epoch, 1, []byte(record)
	batch := b.AppendTo(nil)
	binary.BigEndian.PutUint32(batch[8:], uint32(len(batch)-noSize))
	binary.BigEndian.PutUint32(batch[17:], crc32.Checksum(batch[21:], crc32.MakeTable(crc32.Castagnoli)))
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, 10_000
	in, part := kmsg.NewProduceRequestTopic(), kmsg.NewProduceRequestTopicPartition()
	part.Partition, part.Records = partition, batch
	in.Topic, in.Partitions = offsetsTopic, append(in.Partitions, part)
	req.Topics = append(req.Topics, in)
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.MaxVersions(kversion.V3_9_0())) // which names topics
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	resp, err := cl.SeedBrokers()[0].Request(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if p := resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0]; p.ErrorCode != 0 {
		t.Fatal(kerr.ErrorForCode(p.ErrorCode))
	}
}

// TestWhatHasBecomeOfATransaction is in the topic that each committed one has written to: its marker has the next epoch.
func TestWhatHasBecomeOfATransaction(t *testing.T) {
	c := newCluster(t)
	s := openStore(t, storeConfig(c))
	ends := s.Ends(transactionID, nil, nil)
	age := time.Duration(0)
	is := func(id int64, epoch, version int16, want bool) {
		t.Helper()
		got, err := ends.Committed(t.Context(), id, producer.Open{Epoch: epoch, Age: age}, version)
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
	// A marker that is not there any more, since offsets of later transactions were stored: one that was rolled back had been sent again by then.
	mark(t, c, 9, 20, true, 0)
	is(9, 3, 2, false) // it would be there
	age = 2 * compactedAfter
	is(9, 3, 2, true)
	is(9, 20, 2, false)
	mark(t, c, 9, 12, false, 1)
	is(9, 11, 2, false)

	// Its end was given again, by a transaction of a later producer, which has a later epoch.
	ofTransaction(t, c, 10, 3, 0)
	mark(t, c, 10, 6, false, 0)
	mark(t, c, 10, 8, true, 0)
	is(10, 3, 2, false)
	ofTransaction(t, c, 11, 3, 0)
	mark(t, c, 11, 6, true, 0)
	age = 0
	is(11, 3, 2, true)
	age = 2 * compactedAfter

	for id, epoch := range map[int64]int16{7: 4, 9: 3} {
		if _, err := ends.Committed(t.Context(), id, producer.Open{Topic: "p.t", Partition: 2, Epoch: epoch, Start: 11, Age: age}, 1); !errors.Is(err, errLostEnd) ||
			!strings.HasSuffix(err.Error(), "kafka-transactions.sh --bootstrap-server "+c.ListenAddrs()[0]+" abort --topic p.t --partition 2 --start-offset 11") {
			t.Errorf("producer %d, transactions of one epoch: %v", id, err)
		}
	}
	// What writes definitions of tables may commit whatever there is.
	all := Ends{}
	if got, err := all.Committed(t.Context(), 7, producer.Open{Epoch: 5}, 2); !got || err != nil {
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
	both := s.Ends("a", s.client, func(topic string) bool { return strings.HasPrefix(topic, "p.") })
	for _, test := range []struct {
		ends *Ends
		id   int64
		in   map[string][]int32
		want []string
	}{
		{both, id, nil, []string{offsetsTopic + "-0", "p.db.t-0", "p.db.t-2"}},
		{s.Ends("a", nil, nil), id, nil, []string{offsetsTopic + "-0"}},
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
	for range 2 { // of the same id, as each attempt has them
		both = s.Ends("a", s.client, both.writes)
		if got, away := open(both, id, nil); away || !slices.Equal(got, []string{offsetsTopic + "-0"}) {
			t.Errorf("%v, away %v", got, away)
		}
	}
	if said := logs.FilterMessageSnippet("--add --allow-principal User:ANONYMOUS --operation Read --topic 'p.db.t'").All(); len(said) != 1 {
		t.Errorf("said %v", logs.All())
	}
}
