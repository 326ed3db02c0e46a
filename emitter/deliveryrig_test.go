package emitter

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/tidemark-cdc/tidemark/emitter/internal/kclient"
	"github.com/tidemark-cdc/tidemark/emitter/kafka"
	"github.com/tidemark-cdc/tidemark/offset"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testTopic = "p.db.t"

// cluster is a broker in this process with one topic of two partitions, each on a broker of its own.
func cluster(t *testing.T) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(2), kfake.SeedTopics(2, testTopic),
		kfake.BrokerConfigs(map[string]string{"message.max.bytes": "10000000"}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for p := range int32(2) {
		if err := c.MoveTopicPartition(testTopic, p, p); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func delivery(t *testing.T, c *kfake.Cluster, cfg DeliveryConfig, properties ...string) *AtLeastOnce {
	t.Helper()
	p := map[string]string{"bootstrap.servers": strings.Join(c.ListenAddrs(), ",")}
	for i := 0; i < len(properties); i += 2 {
		p[properties[i]] = properties[i+1]
	}
	client, err := kafka.NewClient(kafka.ClientConfig{Properties: p})
	if err != nil {
		t.Fatal(err)
	}
	d := NewAtLeastOnce(client, cfg)
	t.Cleanup(func() {
		d.Close()
		client.Close()
	})
	return d
}

// keyFor gives the i-th key that goes to a partition of the topic.
func keyFor(partition, i int) []byte {
	for n := 0; ; n++ {
		key := fmt.Appendf(nil, "k%d", n)
		if kclient.Partition(key, 2) == partition {
			if i == 0 {
				return key
			}
			i--
		}
	}
}

func at(pos int64) offset.Offset { return offset.Offset{File: "mysql-bin.000001", Pos: pos} }

// add appends a record; it is at the offset after it.
func add(t *testing.T, d Delivery, key []byte, value string, after int64) {
	t.Helper()
	b, err := d.Batch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	start := len(b.mem)
	b.mem = append(b.mem, value...)
	b.Records = append(b.Records, Record{
		Topic: testTopic, Partition: -1, Key: key, Value: b.mem[start:len(b.mem):len(b.mem)], Offset: at(after),
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func flush(t *testing.T, d Delivery) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	must(t, d.Flush(ctx))
}

// wantSafe waits until the safe position is pos.
func wantSafe(t *testing.T, d Delivery, pos int64) {
	t.Helper()
	var got offset.Offset
	for range 500 {
		if got, _ = d.Safe(); got.Pos == pos {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("safe is %d, want %d", got.Pos, pos)
}

// consume reads what the topic's partitions hold, by partition.
func consume(t *testing.T, c *kfake.Cluster, records int) [2][]*kgo.Record {
	t.Helper()
	got := consumed(t, c, records, testTopic)[testTopic]
	return [2][]*kgo.Record{got[0], got[1]}
}

// consumed reads so many records of topics, by topic and partition.
func consumed(t *testing.T, c *kfake.Cluster, records int, topics ...string) map[string]map[int32][]*kgo.Record {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics(topics...))
	must(t, err)
	defer cl.Close()
	got := make(map[string]map[int32][]*kgo.Record)
	for _, topic := range topics {
		got[topic] = make(map[int32][]*kgo.Record)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for n := 0; n < records; {
		fetches := cl.PollFetches(ctx)
		must(t, fetches.Err0())
		fetches.EachRecord(func(r *kgo.Record) {
			got[r.Topic][r.Partition] = append(got[r.Topic][r.Partition], r)
			n++
		})
	}
	return got
}

// hold makes the broker of a partition keep produce requests until the function returned is called.
func hold(c *kfake.Cluster, node int32) (release func()) {
	var once sync.Once
	wait := make(chan struct{})
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		select {
		case <-wait:
			return nil, nil, false
		default:
		}
		if c.CurrentNode() == node {
			c.SleepControl(func() { <-wait })
		}
		return nil, nil, false
	})
	return func() { once.Do(func() { close(wait) }) }
}

// headerTexts are the headers of a record in one text.
func headerTexts(r *kgo.Record) string {
	var texts []string
	for _, h := range r.Headers {
		texts = append(texts, fmt.Sprintf("{%s %s}", h.Key, h.Value))
	}
	return "[" + strings.Join(texts, " ") + "]"
}
