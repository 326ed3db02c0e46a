package emitter

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// limits sets the times that end a transaction.
func (d *exactly) limits(longest, pause time.Duration) {
	d.making.Lock()
	defer d.making.Unlock()
	d.longest, d.pause = longest, pause
}

// TestBacklog has transactions that are as large as they may be, though the source waits for a moment behind each of MySQL's.
func TestBacklog(t *testing.T) {
	c := cluster(t)
	d := exactlyOnce(t, c, nil)
	d.limits(time.Hour, time.Hour)
	release := holdEnds(c)
	defer release()
	begin := int64(100)
	for ; begin <= 800; begin += 100 {
		d.transaction(t, begin, 100)
		d.deliver(t)
	}
	release()
	wantSafe(t, d, 200)
	for ; begin <= 12_000; begin += 100 {
		d.transaction(t, begin, 100)
		d.deliver(t)
		if begin == 10_200 { // has no room in the second, behind which there is still a backlog
			wantSafe(t, d, 10_200)
			time.Sleep(50 * time.Millisecond)
		}
	}
	flush(t, d)
	var got []int
	for _, k := range committed(t, c) {
		got = append(got, k.records)
	}
	if want := []int{100, 10_000, 1900}; !slices.Equal(got, want) {
		t.Errorf("transactions of %v records, want %v", got, want)
	}
}

// TestBacklogEnds when the source has nothing for longer.
func TestBacklogEnds(t *testing.T) {
	c := cluster(t)
	d := exactlyOnce(t, c, nil)
	const pause = 300 * time.Millisecond
	d.limits(time.Hour, pause)
	d.transaction(t, 100, fewRecords+1)
	d.deliver(t)
	d.transaction(t, 200, batchRecords/2)
	d.transaction(t, 300, batchRecords) // the one before is handed over
	time.Sleep(2 * pause)
	if o, ok := d.Safe(); ok {
		t.Errorf("%s is stored though the source does not wait", o)
	}
	d.deliver(t)
	wantSafe(t, d, 400)
}

// TestBacklogWhileATransactionEnds is read, encoded and handed to the producer, and the first request of the next transaction has
// something for each partition, that of the offset included: who leads them then asks the coordinator once. So it does for one
// request to add them.
func TestBacklogWhileATransactionEnds(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, testTopic))
	must(t, err)
	t.Cleanup(c.Close)
	d := exactlyOnce(t, c, nil)
	d.limits(time.Hour, time.Hour)
	topics := map[[16]byte]string{}
	for _, name := range []string{testTopic, offsetsTopic} {
		topics[c.TopicInfo(name).TopicID] = name
	}
	var mu sync.Mutex
	var requests []string
	saw := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		requests = append(requests, what)
	}
	wait := make(chan struct{})
	c.ControlKey(int16(kmsg.Produce), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		var parts []string
		for _, topic := range kreq.(*kmsg.ProduceRequest).Topics {
			parts = append(parts, topics[topic.TopicID])
		}
		slices.Sort(parts)
		saw(strings.Join(parts, "+"))
		return nil, nil, false
	})
	c.ControlKey(int16(kmsg.AddPartitionsToTxn), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		saw("add")
		return nil, nil, false
	})
	c.ControlKey(int16(kmsg.EndTxn), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		saw("end")
		c.SleepControl(func() { <-wait })
		return nil, nil, false
	})
	release := sync.OnceFunc(func() { close(wait) })
	defer release()
	d.transaction(t, 100, 9000)
	d.transaction(t, 200, 9000) // has no room in the first
	before := 0
	for deadline := time.Now().Add(10 * time.Second); before == 0; time.Sleep(5 * time.Millisecond) {
		mu.Lock()
		if slices.Contains(requests, "end") {
			before = len(requests)
		}
		mu.Unlock()
		if time.Now().After(deadline) {
			t.Fatal("the first transaction is not ended")
		}
	}
	for begin := int64(300); begin <= 2000; begin += 100 {
		d.transaction(t, begin, 500)
	}
	if n := d.tracker.Unacked(); n < 17_000 {
		t.Errorf("%d records wait behind the transaction that ends", n)
	}
	mu.Lock()
	if len(requests) != before {
		t.Errorf("while it ends there are %v", requests[before:])
	}
	mu.Unlock()
	release()
	flush(t, d)
	mu.Lock()
	defer mu.Unlock()
	adds := 0
	for i, what := range requests {
		if what == "add" {
			adds++
			if i > 0 && requests[i+1] != offsetsTopic+"+"+testTopic {
				t.Errorf("the first request of a transaction has %s", requests[i+1])
			}
		}
	}
	if want := len(committed(t, c)); adds != want {
		t.Errorf("%d requests to add partitions of %d transactions", adds, want)
	}
}
