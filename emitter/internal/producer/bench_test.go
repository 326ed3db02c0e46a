package producer

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// swallow has brokers that acknowledge everything and keep nothing.
func swallow(c *kfake.Cluster) {
	c.ControlKey(int16(kmsg.Produce), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return acknowledgement(kreq), nil, true
	})
}

// load appends records of the size that a row has, some hundred at a time, as a delivery does.
func load(tb testing.TB, r *rig, topic *Topic, records int) {
	value := make([]byte, 500)
	for i := range value {
		value[i] = byte('a' + i*i%7)
	}
	one := Record{Key: []byte("key"), Value: value, Headers: NoHeaders, File: "mysql-bin.000001"}
	for i := 0; i < records; {
		must(tb, r.Room(tb.Context()))
		r.Begin(time.Now())
		for range min(256, records-i) {
			one.Group, one.Pos = uint64(i/256), int64(i/4)
			r.Append(topic, i%len(topic.partitions), &one)
			i++
		}
		r.End()
	}
	must(tb, r.Flush(tb.Context()))
}

// TestAllocations has next to none of a record, whatever a request costs.
func TestAllocations(t *testing.T) {
	c := cluster(t, 1)
	swallow(c)
	r := newRig(t, c, plenty)
	topic := r.topic(t, topicName)
	const records = 100_000
	load(t, r, topic, records)
	// Those of the broker are counted, too.
	if each := testing.AllocsPerRun(3, func() { load(t, r, topic, records) }) / records; each > 0.05 {
		t.Errorf("%.3f allocations for a record", each)
	}
}

func BenchmarkProducer(b *testing.B) {
	for _, compression := range []string{"none", "snappy", "lz4"} {
		for _, partitions := range []int{1, 12} {
			b.Run(fmt.Sprintf("%s/partitions=%d", compression, partitions), func(b *testing.B) {
				c := cluster(b, 1)
				must(b, c.CreateTopic("bench", int32(partitions), nil))
				swallow(c)
				r := newRig(b, c, plenty, "compression.type", compression)
				topic := r.topic(b, "bench")
				load(b, r, topic, 10_000)
				b.SetBytes(500)
				b.ReportAllocs()
				b.ResetTimer()
				load(b, r, topic, b.N)
			})
		}
	}
}
