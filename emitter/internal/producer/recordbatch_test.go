package producer

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/emitter/internal/kclient"
)

// samples are records of all shapes, with times that go back.
func samples() []*kgo.Record {
	began := time.UnixMilli(1_700_000_000_000)
	var rs []*kgo.Record
	for i, size := range []int{0, 1, 60, 63, 64, 65, 120, 8191, 8192, 20_000} {
		value := bytes.Repeat([]byte{byte('a' + i)}, size)
		rs = append(
			rs,
			&kgo.Record{Key: []byte(fmt.Sprint("key ", i)), Value: value},
			&kgo.Record{Key: value[:min(size, 300)], Headers: []kgo.RecordHeader{{Key: "", Value: nil}, {Key: "h", Value: value}}},
			&kgo.Record{Value: []byte{}, Headers: []kgo.RecordHeader{{Key: strings.Repeat("n", 70), Value: []byte{}}}},
			&kgo.Record{},
		)
	}
	for i, r := range rs {
		r.Topic = topicName
		r.Timestamp = began.Add(time.Duration([]int{0, 1, 1, -70, 5, 64, 8192}[i%7]) * time.Millisecond)
	}
	return rs
}

func appendSample(p *Producer, topic *Topic, partition int, r *kgo.Record) {
	headers := AppendHeaderCount(nil, len(r.Headers))
	for _, h := range r.Headers {
		headers = AppendHeader(headers, h.Key, h.Value)
	}
	p.Begin(r.Timestamp)
	p.Append(topic, partition, &Record{Key: r.Key, Value: r.Value, Headers: headers})
	p.End()
}

// capture keeps the batches that brokers get.
func capture(c *kfake.Cluster) chan []byte {
	got := make(chan []byte, 1000)
	c.ControlKey(int16(kmsg.Produce), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		for _, t := range kreq.(*kmsg.ProduceRequest).Topics {
			for _, p := range t.Partitions {
				got <- bytes.Clone(p.Records)
			}
		}
		return nil, nil, false
	})
	return got
}

// TestBatchesAreThoseOfFranzGo byte for byte, but for the producer's id.
func TestBatchesAreThoseOfFranzGo(t *testing.T) {
	c := cluster(t, 1)
	got := capture(c)
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ManualFlushing())
	must(t, err)
	defer cl.Close()
	records := samples()
	for _, r := range records {
		cl.Produce(t.Context(), r, nil)
	}
	eventually(t, "it knows the topic", func() bool { // else a flush may send the first of them alone
		leader, _, err := cl.PartitionLeader(topicName, 0)
		return err == nil && leader >= 0
	})
	must(t, cl.Flush(limited(t)))
	want := <-got

	r := newRig(t, c, plenty, "linger.ms", "60000")
	topic := r.topic(t, topicName)
	for _, record := range records {
		appendSample(r.Producer, topic, 0, record)
	}
	r.flush(t)
	ours := <-got
	copy(ours[producerIDAt:sequenceAt], want[producerIDAt:sequenceAt])
	binary.BigEndian.PutUint32(ours[checksumAt:], crc32.Checksum(ours[attributesAt:], castagnoli))
	if !bytes.Equal(ours, want) {
		for i := range min(len(ours), len(want)) {
			if ours[i] != want[i] {
				t.Fatalf("differ at %d of %d and %d bytes:\n%x\n%x", i, len(ours), len(want), ours[i:min(i+40, len(ours))], want[i:min(i+40, len(want))])
			}
		}
		t.Fatalf("%d bytes, want %d", len(ours), len(want))
	}
	if len(got) != 0 || r.memory.used != 0 {
		t.Errorf("%d more batches, %d bytes are left", len(got), r.memory.used)
	}
}

// TestWrittenIsRead by a consumer of another make, whatever the compression, also after batches were split.
func TestWrittenIsRead(t *testing.T) {
	for _, compression := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		for _, largest := range []string{"10000000", "21000"} {
			t.Run(compression+largest, func(t *testing.T) {
				t.Parallel()
				c := cluster(t, 1)
				must(t, c.CreateTopic("read", 1, map[string]string{"max.message.bytes": largest}))
				r := newRig(t, c, plenty, "linger.ms", "60000", "compression.type", compression)
				topic := r.topic(t, "read")
				want := samples()
				const years = 365 * 24 * time.Hour // further than franz-go's batches go
				want[20].Timestamp = want[20].Timestamp.Add(-30 * years)
				want[21].Timestamp = want[21].Timestamp.Add(30 * years)
				for _, record := range want {
					appendSample(r.Producer, topic, 0, record)
				}
				r.flush(t)
				got := log(t, c, "read", 0)
				if len(got) != len(want) {
					t.Fatalf("%d records, want %d", len(got), len(want))
				}
				for i, w := range want {
					g := got[i]
					same := bytes.Equal(g.Key, w.Key) && (g.Key == nil) == (w.Key == nil) && bytes.Equal(g.Value, w.Value) &&
						(g.Value == nil) == (w.Value == nil) && g.Timestamp.Equal(w.Timestamp) && len(g.Headers) == len(w.Headers)
					for j := range w.Headers {
						same = same && g.Headers[j].Key == w.Headers[j].Key && bytes.Equal(g.Headers[j].Value, w.Headers[j].Value) &&
							(g.Headers[j].Value == nil) == (w.Headers[j].Value == nil)
					}
					if !same {
						t.Errorf("record %d: %.200v, want %.200v", i, g, w)
					}
				}
				if r.memory.used != 0 {
					t.Errorf("%d bytes are left", r.memory.used)
				}
			})
		}
	}
}

// TestPartition is Java's.
func TestPartition(t *testing.T) {
	topic := &Topic{partitions: make([]*partition, 7)}
	java := kgo.StickyKeyPartitioner(nil).ForTopic(topicName)
	for i := range 200 {
		key := []byte(strings.Repeat("k", i%9) + fmt.Sprint(i))
		if got, want := topic.Partition(-1, key, nil), java.Partition(&kgo.Record{Key: key}, 7); got != want {
			t.Errorf("%s: partition %d, want %d", key, got, want)
		}
	}
	if got, want := topic.Partition(-1, []byte{}, nil), kclient.Partition(nil, 7); got != want {
		t.Errorf("an empty key: partition %d, want %d", got, want)
	}
	if got := topic.Partition(5, []byte("a"), nil); got != 5 {
		t.Errorf("partition %d, want 5", got)
	}
	if a, b := topic.Partition(-1, nil, make([]byte, 10_000)), topic.Partition(-1, nil, make([]byte, 10_000)); a == b {
		t.Error("records without a key stay where they are")
	}
}

// TestSequencesWrap behind 2^31-1, within a batch and between its halves.
func TestSequencesWrap(t *testing.T) {
	for _, test := range []struct {
		from int32
		n    int
		want int32
	}{{0, 0, 0}, {0, 7, 7}, {math.MaxInt32 - 1, 1, math.MaxInt32}, {math.MaxInt32, 1, 0}, {math.MaxInt32 - 2, 5, 2}} {
		if got := after(test.from, test.n); got != test.want {
			t.Errorf("%d records after %d: %d, want %d", test.n, test.from, got, test.want)
		}
	}
	c := cluster(t, 1)
	type numbers struct{ first, count int32 }
	var got []numbers
	c.ControlKey(int16(kmsg.Produce), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		req := kreq.(*kmsg.ProduceRequest)
		resp := req.ResponseKind().(*kmsg.ProduceResponse)
		answer := kmsg.NewProduceResponseTopic()
		answer.Topic, answer.TopicID = req.Topics[0].Topic, req.Topics[0].TopicID
		partition := kmsg.NewProduceResponseTopicPartition()
		var b kmsg.RecordBatch
		if err := b.ReadFrom(req.Topics[0].Partitions[0].Records); err != nil || b.NumRecords > 4 {
			partition.ErrorCode = 10 // MESSAGE_TOO_LARGE
		} else {
			got = append(got, numbers{b.FirstSequence, b.NumRecords})
		}
		answer.Partitions = append(answer.Partitions, partition)
		resp.Topics = append(resp.Topics, answer)
		return resp, nil, true
	})
	r := newRig(t, c, plenty, "linger.ms", "60000")
	topic := r.topic(t, topicName)
	topic.partitions[0].sequence = math.MaxInt32 - 4
	for range 2 {
		r.send(t, topic, 0, 8, 10)
		r.flush(t)
	}
	r.settled(t)
	if want := []numbers{{math.MaxInt32 - 4, 4}, {math.MaxInt32, 4}, {3, 4}, {7, 4}}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestPartsOfHalves are those of their records.
func TestPartsOfHalves(t *testing.T) {
	for _, groups := range [][]uint64{{1, 1, 1, 1}, {1, 2, 3, 4}, {1, 1, 2, 2}, {1, 2, 2, 2}, {1, 1, 1, 2}, {1, 2}, {1, 1, 2}} {
		m := &memory{limit: plenty}
		b := m.batch()
		for i, group := range groups {
			b.add(m, &Record{Value: []byte{byte(i)}, Headers: NoHeaders, Group: group}, int64(1000+i))
		}
		since := time.Unix(1, 0)
		b.since, b.attempts = since, 3
		rest, err := b.split(m)
		must(t, err)
		var got []uint64
		for _, half := range []*batch{b, rest} {
			n := 0
			for _, part := range half.parts {
				n += part.Count
				if part.Count < 1 {
					t.Errorf("%v: a part of no record", groups)
				}
				for range part.Count {
					got = append(got, part.Group)
				}
			}
			if n != half.head.count || n == 0 {
				t.Errorf("%v: parts of %d records, the half has %d", groups, n, half.head.count)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(groups) {
			t.Errorf("%v are now %v", groups, got)
		}
		if b.since != since || b.attempts != 3 {
			t.Errorf("since %v, tried %d times", b.since, b.attempts)
		}
		if b.head.last != int64(1000+len(groups)/2-1) || rest.head.last != int64(1000+len(groups)-1) || rest.head.first != 1000 {
			t.Errorf("times to %d and %d", b.head.last, rest.head.last)
		}
	}
}

// TestSizes are those of what is encoded.
func TestSizes(t *testing.T) {
	for _, delta := range []int64{0, 1, -1, 63, -64, 64, -65, 1 << 31, -1 << 31, 1 << 45, -1 << 45} {
		for _, n := range []int{0, 1, 50, 64, 8000, 1 << 20, 1 << 24} {
			body, whole := recordSize(delta, n, nil, make([]byte, n), NoHeaders)
			b := appendRecord(nil, body, delta, n, nil, make([]byte, n), NoHeaders)
			if most := mostSize(nil, make([]byte, n), NoHeaders); len(b) != whole || whole > most {
				t.Errorf("%d ms, %d bytes: %d, want %d and at most %d", delta, n, len(b), whole, most)
			}
		}
	}
}

// TestPieces has batches whose records are cut by the ends of pieces at every place: they are the same as in one piece.
func TestPieces(t *testing.T) {
	for shift := range 60 {
		m := &memory{limit: plenty}
		var whole []byte
		b := m.batch()
		for i := range 40 {
			r := Record{Key: []byte("key"), Value: bytes.Repeat([]byte{byte(i)}, 7+shift+i*i*3), Headers: NoHeaders}
			if i%7 == 3 {
				r.Value = nil
			}
			b.add(m, &r, int64(i))
			body, _ := recordSize(int64(i), i, r.Key, r.Value, r.Headers)
			whole = appendRecord(whole, body, int64(i), i, r.Key, r.Value, r.Headers)
		}
		used := 0
		for i, p := range b.pieces {
			used += cap(p)
			if i < len(b.pieces)-1 && len(p) != cap(p) {
				t.Errorf("piece %d has room left", i)
			}
		}
		sent := b.plain(b.appendHead(nil))
		if !bytes.Equal(b.plain(nil), whole) || !bytes.Equal(sent[batchHead:], whole) || b.bytes() != len(sent) || m.used != used {
			t.Fatalf("%d bytes in %d of %d, want %d", b.size, used, m.used, len(whole))
		}
		if sum := crc32.Checksum(sent[attributesAt:], castagnoli); binary.BigEndian.Uint32(sent[checksumAt:]) != sum {
			t.Errorf("the checksum is not %x", sum)
		}
		b.replace(whole[:100+shift])
		if !bytes.Equal(b.plain(nil), whole[:100+shift]) {
			t.Errorf("a shorter text is %x", b.plain(nil))
		}
		m.release(b)
		if m.used != 0 || m.kept != used {
			t.Errorf("%d bytes are used, %d kept of %d", m.used, m.kept, used)
		}
	}
}
