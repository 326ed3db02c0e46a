package producer

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestEvery has a partition in each transaction from its beginning.
func TestEvery(t *testing.T) {
	c, r, topic := beginTxn(t, 3)
	s := watch(c)
	r.Every(topic, 2)
	for range 3 {
		r.send(t, topic, 0, 5, 10)
		r.flush(t)
		r.send(t, topic, 2, 1, 10)
		r.waitFor(t, r.cut())
	}
	r.waitFor(t, r.cut())
	sees(t, c, topicName, 0, 15)
	sees(t, c, topicName, 2, 3)
	s.mu.Lock()
	defer s.mu.Unlock()
	if want := []string{topicName + "-0", topicName + "-2"}; len(s.adds) != 3 || !slices.Equal(s.adds[0], want) || !slices.Equal(s.adds[2], want) {
		t.Errorf("%v", s.adds)
	}
}

// TestAddedMeanwhile: a partition that is being added and gets a record meanwhile is not added to the next transaction, which would be left
// open without records.
func TestAddedMeanwhile(t *testing.T) {
	c, r, topic := beginTxn(t, 2)
	r.Every(topic, 1)
	adds := counter(c, kmsg.AddPartitionsToTxn)
	asked, release := holdKey(c, kmsg.AddPartitionsToTxn)
	defer release()
	r.send(t, topic, 0, 1, 10)
	select {
	case <-asked:
	case <-limited(t).Done():
		t.Fatal("no partition is added")
	}
	r.send(t, topic, 1, 1, 10)
	release()
	r.waitFor(t, r.cut())
	time.Sleep(50 * time.Millisecond)
	if n := adds.Hits(); n != 1 {
		t.Errorf("partitions are added %d times", n)
	}
}

// TestNothingIsAddedWhileALeaderAsks the coordinator about its first batch, nor the other way round: one of them would wait long.
func TestNothingIsAddedWhileALeaderAsks(t *testing.T) {
	c, r, topic := beginTxn(t, 2)
	r.commit(t, topic)
	release := hold(c, 0)
	defer release()
	r.send(t, topic, 0, 1, 10)
	eventually(t, "the first batch is under way", r.locked(func() bool { return r.transactions.proving == 1 }))
	adds := counter(c, kmsg.AddPartitionsToTxn)
	r.send(t, topic, 1, 1, 10)
	time.Sleep(30 * time.Millisecond)
	if adds.Hits() != 0 {
		t.Error("a partition is added")
	}
	release()
	r.waitFor(t, r.cut())

	r.Producer.mu.Lock()
	part := topic.partitions[0]
	part.queue = []*batch{{in: r.transactions.queue[0]}}
	r.transactions.adding = true
	if r.transactions.take(part) {
		t.Error("a first batch is taken")
	}
	part.proven = r.transactions.queue[0]
	if !r.transactions.take(part) {
		t.Error("a later one is not")
	}
	part.queue, r.transactions.adding = nil, false
	r.Producer.mu.Unlock()
}

// TestFirstBatchIsSentAfterAnAddition for which it had to wait.
func TestFirstBatchIsSentAfterAnAddition(t *testing.T) {
	c, r, topic := beginTxn(t, 2)
	r.commit(t, topic)
	r.Producer.mu.Lock()
	b := r.brokers[0]
	r.Producer.mu.Unlock()
	b.sending.Lock() // it cannot take anything
	r.send(t, topic, 0, 1, 10)
	eventually(t, "it could be sent", r.locked(func() bool { return topic.partitions[0].listed }))
	asked, release := holdKey(c, kmsg.AddPartitionsToTxn)
	defer release()
	r.send(t, topic, 1, 1, 10)
	<-asked
	b.sending.Unlock()
	time.Sleep(20 * time.Millisecond)
	release()
	r.waitFor(t, r.cut())
	sees(t, c, topicName, 0, 4)
}
