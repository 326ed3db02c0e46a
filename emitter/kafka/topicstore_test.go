package kafka

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tidemark-cdc/tidemark/offset"
)

const offsetsTopic = "connect-offsets"

func storeConfig(c *kfake.Cluster) TopicStoreConfig {
	return TopicStoreConfig{ClientConfig: ClientConfig{Properties: properties(c)}, Topic: offsetsTopic, ReplicationFactor: 1}
}

func openStore(t testing.TB, cfg TopicStoreConfig) *TopicStore {
	t.Helper()
	s, err := OpenTopicStore(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func at(pos int) offset.Offset { return offset.Offset{File: "mysql-bin.000001", Pos: int64(pos)} }

func save(t testing.TB, s offset.Store, key offset.Key, o offset.Offset) {
	t.Helper()
	if err := s.Save(t.Context(), key, o); err != nil {
		t.Fatal(err)
	}
}

func wantLoad(t testing.TB, s offset.Store, key offset.Key, want offset.Offset) {
	t.Helper()
	got, err := s.Load(t.Context(), key)
	if err != nil || !got.Equal(want) {
		t.Fatalf("%s: got %s, %v; want %s", key, got, err, want)
	}
}

// raw writes a record as somebody else would.
func raw(t testing.TB, c *kfake.Cluster, partition int32, key, value string) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	r := &kgo.Record{Topic: offsetsTopic, Partition: partition, Key: []byte(key)}
	if value != "" {
		r.Value = []byte(value)
	}
	if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// records reads all of the topic, by partition.
func records(t testing.TB, c *kfake.Cluster) []string {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics(offsetsTopic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(t.Context(), offsetsTopic)
	if err != nil {
		t.Fatal(err)
	}
	left := int64(0)
	ends.Each(func(o kadm.ListedOffset) { left += o.Offset })
	byPartition := make(map[int32][]string)
	for left > 0 {
		cl.PollFetches(t.Context()).EachRecord(func(r *kgo.Record) {
			left--
			byPartition[r.Partition] = append(byPartition[r.Partition], fmt.Sprintf("%d %s %s", r.Partition, r.Key, r.Value))
		})
	}
	var out []string
	for p := range int32(100) {
		out = append(out, byPartition[p]...)
	}
	return out
}

var ( // never changed
	inventory = offset.Key{Connector: "inventory-connector", Server: "dbserver1"} // partition 11 of 25
	prefix    = offset.Key{Connector: "my-connector", Server: "prefix"}           // partition 17 of 25
)

func TestTopicStoreKeepsOffsets(t *testing.T) {
	cluster := newCluster(t)
	s := openStore(t, storeConfig(cluster))
	wantLoad(t, s, inventory, offset.Offset{})
	save(t, s, inventory, at(1))
	save(t, s, prefix, at(2))
	save(t, s, inventory, at(3))
	wantLoad(t, s, inventory, at(3))
	wantLoad(t, openStore(t, storeConfig(cluster)), prefix, at(2))

	want := []string{
		`11 ["inventory-connector",{"server":"dbserver1"}] {"file":"mysql-bin.000001","pos":1}`,
		`11 ["inventory-connector",{"server":"dbserver1"}] {"file":"mysql-bin.000001","pos":3}`,
		`17 ["my-connector",{"server":"prefix"}] {"file":"mysql-bin.000001","pos":2}`,
	}
	if diff := cmp.Diff(want, records(t, cluster)); diff != "" {
		t.Error(diff)
	}
	configs, err := s.client.admin.DescribeTopicConfigs(t.Context(), offsetsTopic)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range configs[0].Configs {
		if c.Key == "cleanup.policy" && *c.Value != "compact" {
			t.Errorf("cleanup.policy=%s", *c.Value)
		}
	}
	if err := s.Save(t.Context(), inventory, offset.Offset{}); err == nil || !strings.Contains(err.Error(), "empty offset") {
		t.Errorf("empty offset: %v", err)
	}
}

func TestTopicStoreReadsWhatOthersWrite(t *testing.T) {
	cluster := newCluster(t)
	s := openStore(t, storeConfig(cluster))
	save(t, s, inventory, at(1))
	key := inventory.String()
	raw(t, cluster, 11, `["other",{"filename":"x"}]`, `{"position":5}`)
	raw(t, cluster, 11, key, `{"file":"mysql-bin.000001","pos":9}`)
	wantLoad(t, s, inventory, at(9))
	raw(t, cluster, 11, key, `{}`)
	wantLoad(t, s, inventory, offset.Offset{})
	raw(t, cluster, 11, key, `{"file":"mysql-bin.000001","pos":10}`)
	raw(t, cluster, 11, key, "")
	wantLoad(t, s, inventory, offset.Offset{})
	wantLoad(t, openStore(t, storeConfig(cluster)), inventory, offset.Offset{})
	raw(t, cluster, 11, key, `offsets!`)
	o, err := s.Load(t.Context(), inventory)
	for _, want := range []string{"topic connect-offsets, partition 11, offset 6, key " + key, "offsets!", "nothing is started", offset.HowToDelete} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("garbage: %v, %v, want %s", o, err, want)
		}
	}
	// What README tells to do then: a tombstone, in the partition where Java's tools put it.
	raw(t, cluster, 11, key, "")
	wantLoad(t, s, inventory, offset.Offset{})
	save(t, s, offset.Key{Connector: "shop", Server: "shop1"}, at(1))
	if all := records(t, cluster); !slices.Contains(all, `13 ["shop",{"server":"shop1"}] {"file":"mysql-bin.000001","pos":1}`) {
		t.Error(all)
	}
	wantLoad(t, s, prefix, offset.Offset{})
}

// Connect looks a key up by its bytes, so a record in another spelling is found by us alone until it is replaced.
func TestTopicStoreWritesConnectsSpelling(t *testing.T) {
	cluster := newCluster(t)
	s := openStore(t, storeConfig(cluster))
	spaced := `["inventory-connector", {"server": "dbserver1"}]`
	raw(t, cluster, 3, spaced, `{"file":"mysql-bin.000001","pos":7}`)
	wantLoad(t, s, inventory, at(7))
	save(t, s, inventory, at(8))
	save(t, s, inventory, at(9))
	for _, s := range []*TopicStore{s, openStore(t, storeConfig(cluster))} {
		wantLoad(t, s, inventory, at(9))
		s.mu.Lock()
		if left := s.spellings(inventory); len(left) != 0 {
			t.Errorf("left: %q", left)
		}
		s.mu.Unlock()
	}
	// Deleted by its own key: none, whatever was once stored under another.
	raw(t, cluster, 3, spaced, `{"file":"mysql-bin.000001","pos":7}`)
	raw(t, cluster, 11, inventory.String(), "")
	wantLoad(t, s, inventory, offset.Offset{})
}

func TestTopicStoreOfTransactions(t *testing.T) {
	cluster := newCluster(t)
	core, logs := observer.New(zap.WarnLevel)
	cfg := storeConfig(cluster)
	cfg.Log = zap.New(core)
	s := openStore(t, cfg)
	s.client.undecidedAfter = 150 * time.Millisecond
	save(t, s, inventory, at(1))
	worker, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.TransactionalID("group-inventory-connector-0"))
	if err != nil {
		t.Fatal(err)
	}
	defer worker.Close()
	transaction := func(pos int, end kgo.TransactionEndTry) {
		t.Helper()
		if err := worker.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		o := at(pos)
		if err := worker.ProduceSync(t.Context(), &kgo.Record{Topic: offsetsTopic, Key: inventory.Append(nil), Value: o.Append(nil)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := worker.EndTransaction(t.Context(), end); err != nil {
			t.Fatal(err)
		}
	}
	transaction(2, kgo.TryCommit)
	wantLoad(t, s, inventory, at(2))
	transaction(3, kgo.TryAbort)
	wantLoad(t, s, inventory, at(2))
	wantLoad(t, openStore(t, storeConfig(cluster)), inventory, at(2))

	// One that is not decided is waited for, and does not keep others from storing.
	if err := worker.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	o := at(4)
	if err := worker.ProduceSync(t.Context(), &kgo.Record{Topic: offsetsTopic, Key: inventory.Append(nil), Value: o.Append(nil)}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	loaded := make(chan offset.Offset, 1)
	go func() {
		o, err := s.Load(t.Context(), inventory)
		if err != nil {
			t.Error(err)
		}
		loaded <- o
	}()
	time.Sleep(100 * time.Millisecond)
	save(t, s, prefix, at(50))
	select {
	case o := <-loaded:
		t.Fatalf("did not wait: %s", o)
	default:
	}
	for said := 0; said == 0; time.Sleep(10 * time.Millisecond) { // what it waits for, and what ends that
		for _, e := range logs.FilterMessageSnippet("behind a transaction that is still open").All() {
			said++
			if does := fmt.Sprint(e.ContextMap()["end_it_with"]); !strings.Contains(does, "abort --topic "+offsetsTopic+" --partition ") || !strings.Contains(does, " --start-offset ") {
				t.Errorf("said %s", does)
			}
		}
	}
	if err := worker.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	if o := <-loaded; o.Pos != 4 {
		t.Errorf("loaded %s", o)
	}
}

func TestTopicStoreSharedByPipelines(t *testing.T) {
	cluster := newCluster(t)
	s := openStore(t, storeConfig(cluster))
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			key := offset.Key{Connector: fmt.Sprint("c", i), Server: "p"}
			for n := range 10 {
				if err := s.Save(t.Context(), key, at(10*i+n+1)); err != nil {
					t.Error(err)
				}
				if o, err := s.Load(t.Context(), key); err != nil || o.Pos != int64(10*i+n+1) {
					t.Errorf("%s: %s, %v", key, o, err)
				}
			}
		})
	}
	wg.Wait()
}

// An offset that was not acknowledged is not stored, and Save says so.
func TestI1_TopicStoreSaveWaitsForTheAcknowledgement(t *testing.T) {
	cluster := newCluster(t)
	s := openStore(t, storeConfig(cluster))
	save(t, s, inventory, at(1))
	var mu sync.Mutex
	refuse := true
	cluster.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		mu.Lock()
		defer mu.Unlock()
		if !refuse {
			return nil, nil, false
		}
		produce := req.(*kmsg.ProduceRequest)
		resp := req.ResponseKind().(*kmsg.ProduceResponse)
		for _, topic := range produce.Topics {
			out := kmsg.NewProduceResponseTopic()
			out.Topic, out.TopicID = topic.Topic, topic.TopicID
			for _, p := range topic.Partitions {
				partition := kmsg.NewProduceResponseTopicPartition()
				partition.Partition, partition.ErrorCode = p.Partition, kerr.NotEnoughReplicas.Code
				out.Partitions = append(out.Partitions, partition)
			}
			resp.Topics = append(resp.Topics, out)
		}
		return resp, nil, true
	})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := s.Save(ctx, inventory, at(2)); err == nil || !strings.Contains(err.Error(), "no acknowledgement") {
		t.Fatalf("stored: %v", err)
	}
	wantLoad(t, s, inventory, at(1))
	mu.Lock()
	refuse = false
	mu.Unlock()
	// The earlier one may be written now, but not after the later one.
	save(t, s, inventory, at(3))
	wantLoad(t, s, inventory, at(3))
}

func TestTopicStoreRefuses(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(1, "data"))
	cfg := storeConfig(cluster)
	cfg.Topic = "data"
	if _, err := OpenTopicStore(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "cleanup.policy=delete") || !strings.Contains(err.Error(), "kafka-configs.sh") {
		t.Errorf("not compacted: %v", err)
	}
	cfg.Topic = ""
	if _, err := OpenTopicStore(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "offset.storage.topic is empty") {
		t.Errorf("no name: %v", err)
	}
	cfg = storeConfig(cluster)
	cfg.Settings = map[string]string{"cleanup.policy": "delete"}
	if _, err := OpenTopicStore(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "must be compacted") {
		t.Errorf("delete wanted: %v", err)
	}
	cfg = storeConfig(cluster)
	cfg.ReplicationFactor = 0 // 3, but there is one broker
	if _, err := OpenTopicStore(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "offset.storage.replication.factor") {
		t.Errorf("three replicas on one broker: %v", err)
	}
	s := openStore(t, storeConfig(cluster))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context(), inventory); err == nil {
		t.Error("Load after Close")
	}
	if err := s.Save(t.Context(), inventory, at(1)); err == nil {
		t.Error("Save after Close")
	}
}
