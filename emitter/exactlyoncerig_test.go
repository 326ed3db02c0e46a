package emitter

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/emitter/kafka"
	"github.com/tidemark-cdc/tidemark/offset"
)

const (
	offsetsTopic  = "connect-offsets"
	transactionID = "group-shop-0"
)

var shop = offset.Key{Connector: "shop", Server: "p"}

// exactly is a delivery in transactions, with the store of its offsets.
type exactly struct {
	*ExactlyOnce
	store *kafka.TopicStore
	c     *kfake.Cluster
}

func offsetStore(t *testing.T, c *kfake.Cluster) *kafka.TopicStore {
	t.Helper()
	s, err := kafka.OpenTopicStore(t.Context(), kafka.TopicStoreConfig{
		ClientConfig: kafka.ClientConfig{Properties: map[string]string{"bootstrap.servers": strings.Join(c.ListenAddrs(), ",")}},
		Topic:        offsetsTopic, Partitions: 3, ReplicationFactor: 1,
	})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func exactlyOnce(t *testing.T, c *kfake.Cluster, change func(*ExactlyOnceConfig), properties ...string) *exactly {
	t.Helper()
	store := offsetStore(t, c)
	p := map[string]string{"bootstrap.servers": strings.Join(c.ListenAddrs(), ",")}
	for i := 0; i < len(properties); i += 2 {
		p[properties[i]] = properties[i+1]
	}
	client, err := kafka.NewClient(kafka.ClientConfig{Properties: p})
	must(t, err)
	cfg := ExactlyOnceConfig{ID: transactionID, Store: store, Key: shop, FlushInterval: time.Hour}
	if change != nil {
		change(&cfg)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	d, err := NewExactlyOnce(ctx, client, cfg)
	if err != nil {
		client.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.Close()
		client.Close()
	})
	return &exactly{ExactlyOnce: d, store: store, c: c}
}

// inTransaction is an offset in the transaction that begins at a position, behind so many rows of its event.
func inTransaction(begin, event, row int64) offset.Offset {
	o := at(begin)
	o.Event, o.Row = event, row
	o.Side = &offset.Side{Server: "s", Open: &offset.Open{Thread: -1, Rows: -1}}
	return o
}

func between(pos int64) offset.Offset {
	o := at(pos)
	o.Side = &offset.Side{Server: "s"}
	return o
}

// rows appends so many rows of the transaction that begins at a position, from one on; each is one record.
func (d *exactly) rows(t *testing.T, begin, from, n int64) {
	t.Helper()
	for i := from; i < from+n; i++ {
		b, err := d.Batch(t.Context())
		must(t, err)
		start := len(b.mem)
		b.mem = fmt.Appendf(b.mem, "%d/%d", begin, i)
		o := inTransaction(begin, 2, i+1)
		o.Side.Open.Rows = i
		o.Side = b.sides.Copy(o.Side, uint64(begin+i)) // as the emitter has it: it holds until the batch is used again
		b.Records = append(b.Records, Record{Topic: testTopic, Partition: -1, Key: keys[i%2], Value: b.mem[start:len(b.mem):len(b.mem)], Offset: o})
	}
}

var keys = [2][]byte{keyFor(0, 0), keyFor(1, 0)}

// transaction appends a transaction of so many rows, which begins at a position and ends at the next multiple of 100.
func (d *exactly) transaction(t *testing.T, begin, n int64) {
	t.Helper()
	d.rows(t, begin, 0, n)
	d.commit(t, begin)
}

func (d *exactly) commit(t *testing.T, begin int64) {
	t.Helper()
	must(t, d.Boundary(t.Context(), between(begin/100*100+100)))
}

// kafkaTransaction is what one Kafka transaction has committed.
type kafkaTransaction struct {
	records int
	values  map[string]int // the transactions of MySQL, with the number of rows of each
	stored  string         // the offset, short
	offset  offset.Offset
}

func (k kafkaTransaction) String() string {
	var parts []string
	begins := slices.SortedFunc(maps.Keys(k.values), func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	for _, begin := range begins {
		parts = append(parts, fmt.Sprintf("%s×%d", begin, k.values[begin]))
	}
	return strings.Join(parts, " ") + " → " + k.stored
}

func short(o offset.Offset) string {
	if o.Event == 0 && o.Row == 0 {
		return fmt.Sprint(o.Pos)
	}
	return fmt.Sprintf("%d+%d/%d", o.Pos, o.Event, o.Row)
}

// committed reads what is committed, transaction by transaction, and checks that side record and offset of each belong together.
// With transaction.version 2 each transaction has an epoch of its own.
func committed(t *testing.T, c *kfake.Cluster) []kafkaTransaction {
	t.Helper()
	type epoch struct {
		id    int64
		epoch int16
	}
	found := map[epoch]*kafkaTransaction{}
	sides := map[epoch][]byte{}
	for _, r := range readCommitted(t, c, testTopic, offsetsTopic) {
		e := epoch{r.ProducerID, r.ProducerEpoch}
		k := found[e]
		if k == nil {
			k = &kafkaTransaction{values: map[string]int{}}
			found[e] = k
		}
		switch {
		case r.Topic == testTopic:
			begin, _, _ := strings.Cut(string(r.Value), "/")
			k.values[begin]++
			k.records++
		case string(r.Key) == shop.String():
			o, err := offset.Parse(r.Value)
			must(t, err)
			k.stored, k.offset = short(o), o
		case string(r.Key) == shop.Side().String():
			sides[e] = r.Value
		}
	}
	var out []kafkaTransaction
	for _, e := range slices.SortedFunc(maps.Keys(found), func(a, b epoch) int { return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.epoch, b.epoch)) }) {
		k := found[e]
		if with, ours, err := k.offset.ReadSide(sides[e]); err != nil || !ours || with.Side == nil || with.Side.Server != "s" {
			t.Errorf("the side record beside %s is %s: %v", k.stored, sides[e], err)
		} else if open := with.Side.Open; open != nil && open.Rows != -1 && open.Rows != k.offset.Row-1 {
			t.Errorf("the side record beside %s is %s", k.stored, sides[e])
		}
		out = append(out, *k)
	}
	return out
}

// readCommitted reads topics up to what is committed.
func readCommitted(t *testing.T, c *kfake.Cluster, topics ...string) (all []*kgo.Record) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics(topics...), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxWait(100*time.Millisecond)) // a request that waits keeps the whole cluster in memory
	must(t, err)
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListCommittedOffsets(t.Context(), topics...)
	must(t, err)
	left := map[string]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[fmt.Sprintf("%s/%d", o.Topic, o.Partition)] = o.Offset
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for len(left) > 0 {
		fetches := cl.PollFetches(ctx)
		must(t, fetches.Err0())
		fetches.EachRecord(func(r *kgo.Record) {
			partition := fmt.Sprintf("%s/%d", r.Topic, r.Partition)
			if r.Offset+1 >= left[partition] {
				delete(left, partition)
			}
			if !r.Attrs.IsControl() {
				all = append(all, r)
			}
		})
	}
	return all
}

// wantCommitted waits until these transactions are committed, and no other.
func wantCommitted(t *testing.T, c *kfake.Cluster, want ...string) {
	t.Helper()
	var got []string
	for range 100 {
		got = nil
		for _, k := range committed(t, c) {
			got = append(got, k.String())
		}
		if len(got) >= len(want) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if !slices.Equal(got, want) {
		t.Errorf("committed:\n\t%s\nwant:\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// wantNoneOpen checks that the cluster has no open transaction.
func wantNoneOpen(t *testing.T, c *kfake.Cluster) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	must(t, err)
	defer cl.Close()
	state := ""
	for range 200 {
		all, err := kadm.NewClient(cl).DescribeTransactions(t.Context(), transactionID)
		must(t, err)
		if state = all[transactionID].State; state != "Ongoing" && !strings.HasPrefix(state, "Prepare") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("the transaction is %s", state)
}
