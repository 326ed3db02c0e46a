package emitter

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
)

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
