package producer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
)

// askedEnds has tests look into the questions.
type askedEnds struct {
	*lostEnds
	open    func()                // is called while partitions are asked
	decided func(context.Context) // is called for each question what has become of a transaction
}

func (e *askedEnds) Open(ctx context.Context, id int64, in map[string][]int32) ([]Open, bool, error) {
	open, away, err := e.lostEnds.Open(ctx, id, in)
	if e.open != nil {
		e.open()
	}
	return open, away, err
}

func (e *askedEnds) Committed(ctx context.Context, id int64, of Open, version int16) (bool, error) {
	if e.decided != nil {
		e.decided(ctx)
	}
	return e.lostEnds.Committed(ctx, id, of, version)
}

// TestWhatHasBecomeIsReadOnce for all partitions of a transaction, and for as long as that takes: all of the offsets topic is read for it.
func TestWhatHasBecomeIsReadOnce(t *testing.T) {
	c := cluster(t, 2)
	fence(t, c)
	fence(t, c)
	read := 0
	e := &askedEnds{lostEnds: &lostEnds{
		committed: map[int16]bool{0: true},
		open:      []Open{{Topic: topicName, Partition: 0, Epoch: 0}, {Topic: topicName, Partition: 1, Epoch: 0}},
	}}
	e.decided = func(ctx context.Context) {
		read++
		if _, limited := ctx.Deadline(); limited {
			t.Error("the reading is given up after a while")
		}
	}
	ends := watchEnds(c)
	r := newTxnRig(t, c, func(cfg *Config) { hurried(cfg); cfg.Transaction.Ends = e })
	must(t, r.Ready(limited(t)))
	if read != 1 {
		t.Errorf("read %d times", read)
	}
	if got := fmt.Sprint(ends()); got != fmt.Sprintf("[{[%s-0 %s-1] true}]", topicName, topicName) {
		t.Errorf("ended %s", got)
	}
}

// TestConnectionIsLostWhilePartitionsAreAsked, which the answer may not know of yet: they are asked again.
func TestConnectionIsLostWhilePartitionsAreAsked(t *testing.T) {
	c := cluster(t, 2)
	e := &askedEnds{lostEnds: &lostEnds{}}
	r := newTxnRig(t, c, func(cfg *Config) { hurried(cfg); cfg.Transaction.Ends = e })
	topic := r.topic(t, topicName)
	r.commit(t, topic)
	asking, lost := make(chan struct{}), make(chan struct{})
	first := true
	e.open = func() { // of the producer's goroutine for the coordinator alone
		if first {
			first = false
			close(asking)
			<-lost
		}
	}
	r.loseCoordinator(t)
	<-asking
	before := e.looked()
	r.Producer.mu.Lock()
	var broker *broker
	for _, b := range r.brokers {
		if b.conn != nil {
			broker = b
		}
	}
	conn := broker.conn
	r.Producer.mu.Unlock()
	conn.end(errNotConnected)
	close(lost)
	eventually(t, "the question after it", func() bool { return e.looked() > before })
}

// TestPartitionIsAskedBeforeItIsWrittenTo: while its leader is away nobody knows whether it holds an earlier transaction for open, and what
// came behind that would be decided with it.
func TestPartitionIsAskedBeforeItIsWrittenTo(t *testing.T) {
	bothProtocols(t, func(t *testing.T, opts ...kfake.Opt) {
		c := cluster(t, 2, opts...)
		e := &lostEnds{}
		r := newTxnRig(t, c, withEnds(e))
		topic := r.topic(t, topicName)
		r.commit(t, topic)
		e.set(func() { e.away = 1 << 30 })
		r.loseCoordinator(t)
		eventually(t, "the first question", func() bool { return e.looked() > 1 })
		ends, seen := watchEnds(c), watch(c)
		r.sendBoth(t, topic)
		ended := r.cut()
		before := e.looked()
		eventually(t, "more questions", func() bool { return e.looked() > before+3 })
		seen.mu.Lock()
		if len(seen.adds) > 0 {
			t.Errorf("added %v without having been asked", seen.adds)
		}
		seen.mu.Unlock()
		e.set(func() { e.away, e.open = 0, []Open{{Topic: topicName, Partition: 1, Epoch: r.begun(), Start: 7}} })
		r.waitFor(t, ended)
		if got, want := fmt.Sprint(ends()), fmt.Sprintf("[{[%[1]s-1] true} {[%[1]s-0 %[1]s-1] true}]", topicName); got != want {
			t.Errorf("ended %s, want %s", got, want)
		}
		sees(t, c, topicName, 0, 6)
		sees(t, c, topicName, 1, 6)
	})
}

// TestLostEndIsFoundInATransaction, which cannot give it: the next producer does.
func TestLostEndIsFoundInATransaction(t *testing.T) {
	c := cluster(t, 2)
	e := &lostEnds{}
	r := newTxnRig(t, c, withEnds(e))
	topic := r.topic(t, topicName)
	r.commit(t, topic)
	r.send(t, topic, 0, 3, 10)
	r.flush(t)
	r.loseCoordinator(t)
	e.set(func() { e.open = []Open{{Topic: topicName, Partition: 1, Epoch: r.begun(), Start: 7}} })
	r.send(t, topic, 1, 3, 10)
	select {
	case err := <-r.failed:
		if !errors.Is(err, ErrAgain) || !strings.Contains(err.Error(), topicName) {
			t.Error(err)
		}
	case <-limited(t).Done():
		t.Fatal("it goes on")
	}
}
