package producer

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// lostEnds says what a test has it say: the brokers of these tests lose no ends.
type lostEnds struct {
	mu        sync.Mutex
	open      []Open // until they are ended again …
	once      bool   // … or were named once
	away      int    // so many answers are without them
	err       error  // of the next answer
	committed map[int16]bool
	told      []string // what was ended again
	asked     []map[string][]int32
}

func (e *lostEnds) Open(_ context.Context, _ int64, in map[string][]int32) ([]Open, bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = append(e.asked, in)
	if err := e.err; err != nil {
		e.err = nil
		return nil, false, err
	}
	if e.away > 0 {
		e.away--
		return nil, true, nil
	}
	open := slices.DeleteFunc(slices.Clone(e.open), func(o Open) bool { return in != nil && !slices.Contains(in[o.Topic], o.Partition) })
	if e.once {
		e.open = nil
	}
	return open, false, nil
}

func (e *lostEnds) Committed(_ context.Context, _ int64, of Open, _ int16) (bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.committed[of.Epoch], nil
}

func (e *lostEnds) Ended(open []Open, commit bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.told = append(e.told, fmt.Sprint(open, commit))
	e.open = slices.DeleteFunc(e.open, func(o Open) bool { return slices.Contains(open, o) })
}

func (e *lostEnds) set(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f()
}

// looked is how often it was asked.
func (e *lostEnds) looked() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.asked)
}

// end is the end of a transaction as the coordinator is told it.
type end struct {
	parts  []string
	commit bool
}

// watchEnds gathers the ends with the partitions that were added before.
func watchEnds(c *kfake.Cluster) func() []end {
	var mu sync.Mutex
	var parts []string
	var all []end
	c.Control(func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		mu.Lock()
		defer mu.Unlock()
		switch req := kreq.(type) {
		case *kmsg.AddPartitionsToTxnRequest:
			for _, topic := range req.Topics {
				for _, p := range topic.Partitions {
					parts = append(parts, fmt.Sprintf("%s-%d", topic.Topic, p))
				}
			}
		case *kmsg.EndTxnRequest:
			slices.Sort(parts)
			all = append(all, end{slices.Compact(parts), req.Commit})
			parts = nil
		}
		return nil, nil, false
	})
	return func() []end {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

func withEnds(e *lostEnds) func(*Config) {
	return func(cfg *Config) {
		hurried(cfg)
		cfg.Transaction.Ends = e
	}
}

// TestLostEndsOfEarlierProducers are given again before the producer is ready, as the transactions had ended.
func TestLostEndsOfEarlierProducers(t *testing.T) {
	bothProtocols(t, func(t *testing.T, opts ...kfake.Opt) {
		c := cluster(t, 2, opts...)
		fence(t, c) // the next epoch is not the first
		fence(t, c)
		ends := watchEnds(c)
		e := &lostEnds{
			away: 2, err: kerr.CoordinatorLoadInProgress, committed: map[int16]bool{0: true},
			open: []Open{{Topic: topicName, Partition: 0, Epoch: 0, Start: 3}, {Topic: topicName, Partition: 1, Epoch: 1, Start: 4}, {Topic: "deleted", Epoch: 1}},
		}
		e.set(func() { e.open = e.open[:2] })
		r := newTxnRig(t, c, withEnds(e))
		must(t, r.Ready(limited(t)))
		want := []end{{[]string{topicName + "-0"}, true}, {[]string{topicName + "-1"}, false}}
		if got := ends(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("ended %v, want %v", got, want)
		}
		if got := fmt.Sprint(e.told); got != fmt.Sprintf("[[{%s 0 0 3 0s}] true [{%s 1 1 4 0s}] false]", topicName, topicName) {
			t.Errorf("told %s", got)
		}
		if e.asked[0] != nil {
			t.Errorf("asked of %v only", e.asked[0])
		}
		topic := r.topic(t, topicName)
		r.commit(t, topic)
		sees(t, c, topicName, 0, 3)
		sees(t, c, topicName, 1, 3)
	})
}

// TestLostEndOfADeletedTopic is no more.
func TestLostEndOfADeletedTopic(t *testing.T) {
	c := cluster(t, 2)
	e := &lostEnds{open: []Open{{Topic: "deleted", Epoch: -1}}, once: true}
	r := newTxnRig(t, c, withEnds(e))
	r.commit(t, r.topic(t, topicName))
	if len(e.told) > 0 || e.looked() != 2 {
		t.Errorf("told %v; asked %d times", e.told, e.looked())
	}
}

// TestEndThatWasOnItsWay is not said to have been lost.
func TestEndThatWasOnItsWay(t *testing.T) {
	c := cluster(t, 2)
	e := &lostEnds{}
	r := newTxnRig(t, c, withEnds(e))
	topic := r.topic(t, topicName)
	r.commit(t, topic)
	ends := watchEnds(c)
	e.set(func() { e.open, e.once = []Open{{Topic: topicName, Partition: 1, Epoch: r.begun(), Start: 7}}, true })
	r.loseCoordinator(t)
	eventually(t, "its end again", func() bool { return len(ends()) == 1 })
	r.commit(t, topic)
	if len(e.told) > 0 {
		t.Errorf("told %v", e.told)
	}
}

// TestLostEndsAfterALostConnection: what the producer has ended itself was committed, whoever knows of it.
func TestLostEndsAfterALostConnection(t *testing.T) {
	bothProtocols(t, func(t *testing.T, opts ...kfake.Opt) {
		c := cluster(t, 2, opts...)
		e := &lostEnds{}
		r := newTxnRig(t, c, withEnds(e))
		topic := r.topic(t, topicName)
		r.commit(t, topic)
		if n := e.looked(); n != 1 {
			t.Errorf("asked %d times without a lost connection", n)
		}
		ends := watchEnds(c)
		e.set(func() {
			e.open = []Open{{Topic: topicName, Partition: 1, Epoch: r.begun(), Start: 7}}
			e.away = 1
		})
		r.loseCoordinator(t)
		eventually(t, "the end that was lost", func() bool { return len(ends()) == 1 })
		if got := fmt.Sprint(ends()); got != fmt.Sprintf("[{[%s-1] true}]", topicName) {
			t.Errorf("ended %s", got)
		}
		e.mu.Lock()
		in := e.asked[1]
		e.mu.Unlock()
		if slices.Sort(in[topicName]); fmt.Sprint(in) != fmt.Sprintf("map[%s:[0 1]]", topicName) {
			t.Errorf("asked of %v", in)
		}
		r.commit(t, topic)
		sees(t, c, topicName, 0, 6)
		sees(t, c, topicName, 1, 6)
	})
}

// TestLostEndsAreNotAskedForInATransaction, whose open partitions they would be taken for.
func TestLostEndsAreNotAskedForInATransaction(t *testing.T) {
	c := cluster(t, 2)
	e := &lostEnds{}
	r := newTxnRig(t, c, withEnds(e))
	topic := r.topic(t, topicName)
	r.commit(t, topic)
	r.sendBoth(t, topic)
	r.flush(t)
	before := e.looked()
	r.loseCoordinator(t)
	r.sendBoth(t, topic)
	r.flush(t)
	if n := e.looked(); n != before {
		t.Error("asked in a transaction")
	}
	r.waitFor(t, r.cut())
	eventually(t, "the question after it", func() bool { return e.looked() > before })
	sees(t, c, topicName, 0, 9)
}

// TestUnansweredLostEnd: nobody knows whether it was given, so it is looked for again, with a new epoch.
func TestUnansweredLostEnd(t *testing.T) {
	c := cluster(t, 2)
	fence(t, c)
	e := &lostEnds{open: []Open{{Topic: topicName, Epoch: 0}}, committed: map[int16]bool{0: true}}
	ends := watchEnds(c)
	asked, release := holdKey(c, kmsg.AddPartitionsToTxn)
	r := newTxnRig(t, c, withEnds(e))
	<-asked
	r.wire.cutOther(kmsg.EndTxn, unheard)
	release()
	must(t, r.Ready(limited(t)))
	topic := r.topic(t, topicName)
	if got := fmt.Sprint(ends()); got != fmt.Sprintf("[{[%[1]s-0] true} {[%[1]s-0] true}]", topicName) || len(e.told) != 1 {
		t.Errorf("ended %s, told %v", got, e.told)
	}
	r.commit(t, topic)
	sees(t, c, topicName, 0, 3)
}

// begun is the producer's first epoch.
func (r *rig) begun() int16 {
	r.Producer.mu.Lock()
	defer r.Producer.mu.Unlock()
	return r.transactions.begins
}

// loseCoordinator ends the connection to the coordinator.
func (r *rig) loseCoordinator(t testing.TB) {
	t.Helper()
	r.Producer.mu.Lock()
	c := r.transactions.peer.conn
	r.Producer.mu.Unlock()
	if c == nil {
		t.Fatal("there is no connection to the coordinator")
	}
	c.end(errNotConnected)
}
