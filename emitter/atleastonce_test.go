package emitter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/emitter/internal/kclient"
	"github.com/tidemark-cdc/tidemark/emitter/internal/producer"
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

// TestRecordsGoToTheirPartition has keys that hash to one partition and records that name the other.
func TestRecordsGoToTheirPartition(t *testing.T) {
	c := cluster(t)
	d := delivery(t, c, DeliveryConfig{})
	b, err := d.Batch(t.Context())
	must(t, err)
	for i := range int64(30) {
		r := Record{Topic: testTopic, Key: keyFor(1, 0), Value: fmt.Appendf(nil, "%d", i), Offset: at(i + 1)}
		switch i % 3 {
		case 0:
			r.Partition = -1
		case 1:
			r.Partition = 0
		case 2:
			r.Partition, r.Key = 1, keyFor(0, 0)
		}
		b.Records = append(b.Records, r)
	}
	flush(t, d)
	wantSafe(t, d, 30)
	got := consume(t, c, 30)
	for partition, records := range got {
		last := -1
		for _, r := range records {
			i, err := strconv.Atoi(string(r.Value))
			must(t, err)
			if want := [...]int{1, 0, 1}[i%3]; partition != want || i <= last {
				t.Errorf("record %d, after %d, is in partition %d, want %d", i, last, partition, want)
			}
			last = i
		}
	}
	if len(got[0]) != 10 || len(got[1]) != 20 {
		t.Errorf("%d and %d records", len(got[0]), len(got[1]))
	}
}

// TestI1_I8_RecordsBesideTheData go through an emitter to a broker: a transaction without captured rows, a schema change
// and a heartbeat move the safe offset like rows do, and a boundary goes beyond them.
func TestI1_I8_RecordsBesideTheData(t *testing.T) {
	topics := []string{"p", "p.transaction", "__debezium-heartbeat.p"}
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, topics...))
	must(t, err)
	t.Cleanup(c.Close)
	d := delivery(t, c, DeliveryConfig{})
	em := transactional(t, Config{SchemaChanges: true, ExtendedHeaders: true})
	step := func(pos int64, feed func(b *Batch) error) {
		t.Helper()
		b, err := d.Batch(t.Context())
		must(t, err)
		must(t, feed(b))
		flush(t, d)
		wantSafe(t, d, pos)
	}
	step(100, func(b *Batch) error { return em.Transaction(b, &binlog.Begin{ID: "u:7", Offset: at(100)}) })
	step(110, func(b *Batch) error {
		return em.Commit(b, &binlog.Boundary{Commit: true, ID: "u:7", Before: at(110)})
	})
	if o, _ := d.Safe(); len(o.Extra) != 1 {
		t.Errorf("the offset before the commit is %s", o)
	}
	must(t, d.Boundary(t.Context(), em.Mark(at(120))))
	wantSafe(t, d, 120)
	step(200, func(b *Batch) error { return em.SchemaChange(b, swap()) })
	step(300, func(b *Batch) error { return em.Heartbeat(b, at(300)) })

	count, headers := map[string]int{}, map[string]int{}
	for topic, partitions := range consumed(t, c, 6, topics...) {
		for partition, records := range partitions {
			for _, r := range records {
				count[topic]++
				headers[topic] += len(r.Headers)
				want := int32(0)
				if topic == "p.transaction" {
					want = int32(kclient.Partition(r.Key, 3))
				}
				if partition != want {
					t.Errorf("%s: partition %d, want %d", topic, partition, want)
				}
			}
		}
	}
	if want := map[string]int{"p": 3, "p.transaction": 2, "__debezium-heartbeat.p": 1}; !maps.Equal(count, want) {
		t.Errorf("records %v", count)
	}
	if headers["p"] != 12 || headers["p.transaction"]+headers["__debezium-heartbeat.p"] != 0 {
		t.Errorf("headers %v", headers)
	}
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

func TestDeliveryWritesWhatItIsGiven(t *testing.T) {
	c := cluster(t)
	d := delivery(t, c, DeliveryConfig{})
	const n = 2000 // several batches
	shared := []Header{{"a", []byte("1")}, {"b", []byte("2")}}
	for i := range n {
		b, err := d.Batch(t.Context())
		must(t, err)
		start := len(b.mem)
		b.mem = fmt.Appendf(b.mem, "%d%s", i, strings.Repeat("x", 500))
		r := Record{
			Topic: testTopic, Partition: -1, Key: keyFor(i%2, i%3), Value: b.mem[start:len(b.mem):len(b.mem)],
			Headers: shared, Offset: at(int64(i)),
		}
		switch i % 5 {
		case 3:
			r.Value = nil
		case 4:
			start := len(b.headers)
			b.headers = append(b.headers, Header{newKeyHeader, r.Value[:1]}, shared[0])
			r.Headers, r.moved = b.headers[start:len(b.headers):len(b.headers)], true
		}
		b.Records = append(b.Records, r)
		if i%7 == 0 {
			must(t, d.Deliver(t.Context()))
		}
	}
	must(t, d.Boundary(t.Context(), at(n)))
	flush(t, d)
	wantSafe(t, d, n)
	got := consume(t, c, n)
	next := [2]int{}
	for i := range n {
		p := i % 2
		r := got[p][next[p]]
		next[p]++
		value := fmt.Sprintf("%d%s", i, strings.Repeat("x", 500))
		if i%5 == 3 {
			if r.Value != nil {
				t.Fatalf("record %d: a value where null belongs", i)
			}
		} else if string(r.Value) != value {
			t.Fatalf("record %d of partition %d is %.20s…, want %.20s…", i, p, r.Value, value)
		}
		headers := "[{a 1} {b 2}]"
		if i%5 == 4 {
			headers = fmt.Sprintf("[{%s %s} {a 1}]", newKeyHeader, value[:1])
		}
		if s := headerTexts(r); s != headers || string(r.Key) != string(keyFor(p, i%3)) {
			t.Fatalf("record %d has key %s and headers %s, want %s and %s", i, r.Key, s, keyFor(p, i%3), headers)
		}
	}
}

// TestI1_SafeWaitsForTheOldest acknowledges newer records on one partition while an older one on another is not.
func TestI1_SafeWaitsForTheOldest(t *testing.T) {
	c := cluster(t)
	release := hold(c, 0)
	defer release()
	d := delivery(t, c, DeliveryConfig{})
	add(t, d, keyFor(1, 0), "first", 1)
	must(t, d.Boundary(t.Context(), at(2)))
	must(t, d.Deliver(t.Context()))
	wantSafe(t, d, 2)
	add(t, d, keyFor(0, 0), "held", 3)
	for i := range 10 {
		add(t, d, keyFor(1, i), "newer", int64(4+i))
	}
	must(t, d.Boundary(t.Context(), at(14)))
	must(t, d.Deliver(t.Context()))
	consume(t, c, 11) // all but the held one are written
	time.Sleep(50 * time.Millisecond)
	if o, _ := d.Safe(); o.Pos != 2 {
		t.Fatalf("safe is %d while the record before 3 is not acknowledged", o.Pos)
	}
	release()
	flush(t, d)
	wantSafe(t, d, 14)
}

// refuse answers produce requests with records on a partition with an error code.
func refuse(c *kfake.Cluster, partition int32, code int16) {
	c.ControlKey(int16(kmsg.Produce), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		req := kreq.(*kmsg.ProduceRequest)
		resp := req.ResponseKind().(*kmsg.ProduceResponse)
		for _, topic := range req.Topics {
			rt := kmsg.NewProduceResponseTopic()
			rt.Topic, rt.TopicID = topic.Topic, topic.TopicID
			for _, p := range topic.Partitions {
				if p.Partition != partition {
					return nil, nil, false
				}
				rp := kmsg.NewProduceResponseTopicPartition()
				rp.Partition, rp.ErrorCode = p.Partition, code
				rt.Partitions = append(rt.Partitions, rp)
			}
			resp.Topics = append(resp.Topics, rt)
		}
		return resp, nil, true
	})
}

// TestI7_FirstFailureEndsAll refuses a record of one partition: nothing newer is handed over, the safe offset stays
// before it, and the error says which record, why, and what to do.
func TestI7_FirstFailureEndsAll(t *testing.T) {
	c := cluster(t)
	refuse(c, 0, kerr.TopicAuthorizationFailed.Code)
	d := delivery(t, c, DeliveryConfig{})
	add(t, d, keyFor(1, 0), "fine", 1)
	must(t, d.Boundary(t.Context(), at(2)))
	must(t, d.Deliver(t.Context()))
	wantSafe(t, d, 2)
	add(t, d, keyFor(0, 0), "refused", 3)
	must(t, d.Deliver(t.Context()))
	<-d.Done()
	err := d.Err()
	for _, want := range []string{testTopic, "key " + string(keyFor(0, 0)), "mysql-bin.000001:3", "kafka-acls.sh"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %q", want, err)
		}
	}
	if !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Errorf("%v", err)
	}
	if _, got := d.Batch(t.Context()); got != err {
		t.Errorf("Batch: %v", got)
	}
	if got := d.Deliver(t.Context()); got != err {
		t.Errorf("Deliver: %v", got)
	}
	if got := d.Boundary(t.Context(), at(9)); got != err {
		t.Errorf("Boundary: %v", got)
	}
	if got := d.Flush(t.Context()); got != err {
		t.Errorf("Flush: %v", got)
	}
	if o, _ := d.Safe(); o.Pos != 2 {
		t.Errorf("safe is %d", o.Pos)
	}
	if got := consume(t, c, 1); len(got[0]) != 0 || len(got[1]) != 1 {
		t.Errorf("written: %d and %d records", len(got[0]), len(got[1]))
	}
}

// TestI7_OversizedRecord is refused before the producer has it, so that nothing newer, also of the same Deliver, is written.
func TestI7_OversizedRecord(t *testing.T) {
	c := cluster(t)
	d := delivery(t, c, DeliveryConfig{}, "max.request.size", "20000")
	add(t, d, keyFor(0, 0), strings.Repeat("x", 19000), 1)
	flush(t, d)
	add(t, d, keyFor(0, 0), strings.Repeat("x", 20000), 2)
	add(t, d, keyFor(0, 0), "newer", 3)
	err := d.Deliver(t.Context())
	if d.producer.Context().Err() == nil {
		t.Error("the producer goes on")
	}
	if !errors.Is(err, kerr.MessageTooLarge) || !strings.Contains(err.Error(), "max.request.size") ||
		!strings.Contains(err.Error(), "max.message.bytes") || !strings.Contains(err.Error(), testTopic) {
		t.Fatalf("%v", err)
	}
	if got := consume(t, c, 1); len(got[0]) != 1 {
		t.Errorf("%d records are written", len(got[0]))
	}
}

// TestBatchWaitsForMemory fills the memory while nothing is acknowledged.
func TestBatchWaitsForMemory(t *testing.T) {
	c := cluster(t)
	release := hold(c, 0)
	defer release()
	d := delivery(t, c, DeliveryConfig{MaxBytes: 1 << 20})
	value := strings.Repeat("x", 10_000)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	n := 0
	for {
		b, err := d.Batch(ctx)
		if err != nil {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			break
		}
		start := len(b.mem)
		b.mem = append(b.mem, value...)
		b.Records = append(b.Records, Record{
			Topic: testTopic, Partition: -1, Key: keyFor(0, 0), Value: b.mem[start:], Offset: at(int64(n)),
		})
		if n++; n > 1000 {
			t.Fatal("no end")
		}
	}
	if n < 50 || n*len(value) > 5<<18 {
		t.Errorf("waits with %d records of %d bytes", n, len(value))
	}
	release()
	add(t, d, keyFor(0, 0), "last", int64(n))
	flush(t, d)
	wantSafe(t, d, int64(n))
	if got := consume(t, c, n+1); len(got[0]) != n+1 {
		t.Errorf("%d records", len(got[0]))
	}
}

// TestBatchLargerThanMemory lets one row through that is larger than the bound.
func TestBatchLargerThanMemory(t *testing.T) {
	d := delivery(t, cluster(t), DeliveryConfig{MaxBytes: 1 << 20}, "max.request.size", "8000000")
	for i := range 3 {
		add(t, d, keyFor(0, 0), strings.Repeat("x", 3<<20), int64(i+1))
	}
	flush(t, d)
	wantSafe(t, d, 3)
	if n := cap(d.batch.mem); n > 2*batchBytes {
		t.Errorf("%d bytes are kept", n)
	}
}

// TestLargeRecordsGoOneByOne when they are of one batch, or all of them would be in memory at once.
func TestLargeRecordsGoOneByOne(t *testing.T) {
	c := cluster(t)
	release := hold(c, 0)
	defer release()
	d := delivery(t, c, DeliveryConfig{MaxBytes: 1 << 20}, "max.request.size", "8000000")
	b, err := d.Batch(t.Context())
	must(t, err)
	for i := range int64(3) {
		b.Records = append(b.Records, Record{Topic: testTopic, Key: keyFor(0, 0), Value: make([]byte, 3<<20), Offset: at(i + 1)})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := d.Deliver(ctx); !errors.Is(err, context.DeadlineExceeded) || d.Unacked() != 1 {
		t.Errorf("%v, %d records are handed over", err, d.Unacked())
	}
	release()
	flush(t, d)
	wantSafe(t, d, 3)
}

// TestBounds that the properties of the producer set.
func TestBounds(t *testing.T) {
	c := cluster(t)
	for _, tt := range []struct {
		bytes           int
		buffer, request string
		memory, record  int
	}{
		{0, "1073741824", "5000", defaultMaxBytes, 5000},
		{8 << 20, "1048576", "5000", 1 << 19, 5000},
		{1 << 20, "33554432", "5000", 1 << 20, 5000},
		{1 << 20, "1048576", "5000000", 1 << 19, 1 << 20},
	} {
		d := delivery(t, c, DeliveryConfig{MaxBytes: tt.bytes}, "buffer.memory", tt.buffer, "max.request.size", tt.request)
		if d.cfg.MaxBytes != tt.memory || d.largest != tt.record {
			t.Errorf("%+v: %d bytes in memory, %d of a record", tt, d.cfg.MaxBytes, d.largest)
		}
	}
}

// TestI1_I2_OffsetsOfABatch hands a batch over in pieces: behind each holds the offset of its last record, or of the newest
// boundary behind that, and those of an older batch are forgotten.
func TestI1_I2_OffsetsOfABatch(t *testing.T) {
	c := cluster(t)
	d := delivery(t, c, DeliveryConfig{Window: 1})
	for _, batch := range []struct {
		records    []int64
		boundaries map[int64][]int64 // behind a record
		want       []int64
	}{
		{[]int64{10, 20, 30, 40, 50, 60}, map[int64][]int64{20: {21, 25}, 40: {45}, 60: {61, 69}}, []int64{10, 25, 30, 45, 50, 69}},
		{[]int64{110, 120, 130}, nil, []int64{110, 120, 130}},
	} {
		for _, pos := range batch.records {
			add(t, d, keyFor(0, 0), "x", pos)
			for _, boundary := range batch.boundaries[pos] {
				must(t, d.Boundary(t.Context(), at(boundary)))
			}
		}
		if len(d.edges) != len(batch.boundaries) {
			t.Errorf("%d edges are kept", len(d.edges))
		}
		for i, want := range batch.want {
			release := hold(c, 0)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			if err := d.Deliver(ctx); i < len(batch.records)-1 && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
			cancel()
			release()
			wantSafe(t, d, want)
		}
	}
}

// TestRecordsGoToTheirTopic with their own headers, though both are looked up only when they change. A topic is ensured once.
func TestRecordsGoToTheirTopic(t *testing.T) {
	topics := []string{"a", "b"}
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, topics...))
	must(t, err)
	t.Cleanup(c.Close)
	asked := map[string]int{}
	d := delivery(t, c, DeliveryConfig{Topics: topicsFunc(func(topic string) error { asked[topic]++; return nil })})
	shared := [][]Header{{{"h", []byte("0")}}, {{"h", []byte("1")}}, nil}
	const n = 200
	for i := range n {
		b, err := d.Batch(t.Context())
		must(t, err)
		r := Record{Topic: topics[i/3%2], Value: fmt.Append(nil, i), Headers: shared[i/5%3], Offset: at(int64(i))}
		if i > n/2 { // at the same place in memory in each batch
			b.headers = append(b.headers, Header{"h", r.Value})
			r.Headers, r.moved = b.headers[len(b.headers)-1:], true
		}
		b.Records = append(b.Records, r)
		if i > n/2 || i%20 == 0 {
			must(t, d.Deliver(t.Context()))
		}
	}
	flush(t, d)
	got := consumed(t, c, n, topics...)
	for i := range n {
		topic, header := topics[i/3%2], "[]"
		if k := i / 5 % 3; i > n/2 {
			header = fmt.Sprintf("[{h %d}]", i)
		} else if k < 2 {
			header = fmt.Sprintf("[{h %d}]", k)
		}
		r := got[topic][0][0]
		got[topic][0] = got[topic][0][1:]
		if string(r.Value) != fmt.Sprint(i) || headerTexts(r) != header {
			t.Fatalf("record %d of %s is %s with %s, want %s", i, topic, r.Value, headerTexts(r), header)
		}
	}
	if asked["a"] != 1 || asked["b"] != 1 {
		t.Errorf("ensured %v", asked)
	}
}

// headerTexts are the headers of a record in one text.
func headerTexts(r *kgo.Record) string {
	var texts []string
	for _, h := range r.Headers {
		texts = append(texts, fmt.Sprintf("{%s %s}", h.Key, h.Value))
	}
	return "[" + strings.Join(texts, " ") + "]"
}

// TestMerge makes one context for all calls with one, and leaves nothing behind in the others.
func TestMerge(t *testing.T) {
	d := delivery(t, cluster(t), DeliveryConfig{})
	first := d.merge(t.Context())
	if d.merge(t.Context()) != first {
		t.Error("made anew")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	second := d.merge(ctx)
	if first.Err() == nil || second.Err() != nil {
		t.Errorf("%v, %v", first.Err(), second.Err())
	}
	d.Close()
	<-second.Done()
	if err := context.Cause(second); err != ErrClosed {
		t.Errorf("%v", err)
	}
}

// TestI1_WrongAcknowledgementsEndTheDelivery since nothing that the tracker says can be trusted then.
func TestI1_WrongAcknowledgementsEndTheDelivery(t *testing.T) {
	d := delivery(t, cluster(t), DeliveryConfig{})
	d.acknowledge([]producer.Part{{Group: 0, Count: 1}})
	if err := d.Err(); err == nil || !strings.Contains(err.Error(), "acknowledgement") {
		t.Errorf("%v", err)
	}
}

// TestDeliverGoesOn where it was when its context ended while the window was full.
func TestDeliverGoesOn(t *testing.T) {
	c := cluster(t)
	release := hold(c, 0)
	defer release()
	d := delivery(t, c, DeliveryConfig{Window: 4})
	for i := range 20 {
		add(t, d, keyFor(0, 0), fmt.Sprint(i), int64(i+1))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := d.Deliver(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v", err)
	}
	release()
	flush(t, d)
	wantSafe(t, d, 20)
	for i, r := range consume(t, c, 20)[0] {
		if string(r.Value) != fmt.Sprint(i) {
			t.Fatalf("record %d is %s", i, r.Value)
		}
	}
}

// TestDeliverEndsWithTheDelivery does not hang in a full window when the record at its head has failed.
func TestDeliverEndsWithTheDelivery(t *testing.T) {
	c := cluster(t)
	wait := make(chan struct{})
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.SleepControl(func() { <-wait })
		return nil, nil, false
	})
	d := delivery(t, c, DeliveryConfig{Window: 4})
	for i := range 20 {
		add(t, d, keyFor(0, 0), fmt.Sprint(i), int64(i+1))
	}
	time.AfterFunc(50*time.Millisecond, d.Close)
	if err := d.Deliver(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
	close(wait)
}

// TestI8_BoundariesWithoutRecords move the safe offset at once.
func TestI8_BoundariesWithoutRecords(t *testing.T) {
	d := delivery(t, cluster(t), DeliveryConfig{})
	if _, ok := d.Safe(); ok {
		t.Error("safe before anything is")
	}
	for i := range int64(3) {
		must(t, d.Boundary(t.Context(), at(i+1)))
		if o, ok := d.Safe(); !ok || o.Pos != i+1 {
			t.Errorf("safe is %d, %v", o.Pos, ok)
		}
	}
}

type topicsFunc func(string) error

func (f topicsFunc) Ensure(_ context.Context, topic string) error { return f(topic) }

// TestTopicIsEnsured before the first record, and asked again after an error.
func TestTopicIsEnsured(t *testing.T) {
	asked := 0
	denied := errors.New("denied")
	d := delivery(t, cluster(t), DeliveryConfig{Topics: topicsFunc(func(topic string) error {
		if asked++; asked == 1 {
			return denied
		}
		if topic != testTopic {
			t.Errorf("asked for %s", topic)
		}
		return nil
	})})
	add(t, d, keyFor(0, 0), "a", 1)
	if err := d.Deliver(t.Context()); !errors.Is(err, denied) {
		t.Errorf("%v", err)
	}
	flush(t, d)
	add(t, d, keyFor(0, 0), "b", 2)
	flush(t, d)
	wantSafe(t, d, 2)
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}

// TestNoProducerID ends the delivery with the right that is missing.
func TestNoProducerID(t *testing.T) {
	c := cluster(t)
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, TopLevel: true, Err: kerr.ClusterAuthorizationFailed, Count: -1})
	d := delivery(t, c, DeliveryConfig{})
	<-d.Done()
	if err := d.Err(); !errors.Is(err, kerr.ClusterAuthorizationFailed) || !strings.Contains(err.Error(), "IdempotentWrite") {
		t.Errorf("%v", err)
	}
}

// TestI7_TopicMadeAnew ends the delivery so that another one begins at the stored offset.
func TestI7_TopicMadeAnew(t *testing.T) {
	c := cluster(t)
	d := delivery(t, c, DeliveryConfig{})
	add(t, d, keyFor(1, 0), "of the old topic", 1)
	flush(t, d)
	must(t, c.DeleteTopic(testTopic))
	must(t, c.CreateTopic(testTopic, 1, nil))
	add(t, d, keyFor(1, 0), "not acknowledged", 2)
	must(t, d.Deliver(t.Context()))
	<-d.Done()
	if err := d.Err(); !kafka.Transient(err) || !strings.Contains(err.Error(), testTopic) {
		t.Errorf("%v", err)
	}
	if o, _ := d.Safe(); o.Pos != 1 {
		t.Errorf("safe is %d", o.Pos)
	}
	d = delivery(t, c, DeliveryConfig{})
	add(t, d, keyFor(1, 0), "again", 2)
	flush(t, d)
	wantSafe(t, d, 2)
	if got := consume(t, c, 1); len(got[0]) != 1 || string(got[0][0].Value) != "again" {
		t.Errorf("%v", got)
	}
}
