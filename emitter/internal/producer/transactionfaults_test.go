package producer

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestCoordinatorMoves to other brokers all the time.
func TestCoordinatorMoves(t *testing.T) {
	bothProtocols(t, func(t *testing.T, opts ...kfake.Opt) {
		c, r, topic := beginTxn(t, 3, opts...)
		for i := range 10 {
			if i%2 == 1 {
				c.RehashCoordinators()
			}
			r.sendBoth(t, topic)
			if i%3 == 1 {
				r.flush(t)
				c.RehashCoordinators()
			}
			r.waitFor(t, r.cut())
		}
		sees(t, c, topicName, 0, 30)
		sees(t, c, topicName, 1, 30)
	})
}

// TestCutProducesInTransactions neither lose nor double a record.
func TestCutProducesInTransactions(t *testing.T) {
	for name, how := range map[string]cut{"before": before, "amid": amid, "unheard": unheard, "untouched": untouched} {
		t.Run(name, func(t *testing.T) {
			bothProtocols(t, func(t *testing.T, opts ...kfake.Opt) {
				c := cluster(t, 2, opts...)
				r := newTxnRig(t, c, hurried)
				topic := r.topic(t, topicName)
				r.commit(t, topic)
				for range 4 {
					r.wire.cutNext(2, how)
					r.commit(t, topic)
				}
				sees(t, c, topicName, 0, 15)
				sees(t, c, topicName, 1, 15)
			})
		})
	}
}

// TestUnknownOutcome is what it is when the connection ends after the end of a transaction was sent; the next producer's Ready
// settles it.
func TestUnknownOutcome(t *testing.T) {
	for name, test := range map[string]struct {
		how       cut
		committed int
	}{"not delivered": {amid, 3}, "delivered": {unheard, 6}} {
		t.Run(name, func(t *testing.T) {
			bothProtocols(t, func(t *testing.T, opts ...kfake.Opt) {
				c, r, topic := beginTxn(t, 2, opts...)
				r.commit(t, topic)
				r.wire.cutOther(kmsg.EndTxn, test.how)
				ends := counter(c, kmsg.EndTxn)
				r.sendBoth(t, topic)
				ended := r.cut()
				r.sendBoth(t, topic)
				next := r.cut()
				err := r.fails(t)
				if !errors.Is(err, ErrUnknownOutcome) || !errors.Is(err, ErrAgain) || !r.cfg.Client.Transient(err) {
					t.Errorf("%v", err)
				}
				r.Close()
				neverEnds(t, ended)
				neverEnds(t, next)
				if n := int(ends.Hits()); n != (test.committed-3)/3 {
					t.Errorf("%d ends have arrived", n)
				}
				must(t, newTxnRig(t, c, nil).Ready(limited(t)))
				sees(t, c, topicName, 0, test.committed)
				sees(t, c, topicName, 1, test.committed)
			})
		})
	}
}

// TestUnansweredAddition is tried again where it cannot get into a later transaction, and else ends the producer.
func TestUnansweredAddition(t *testing.T) {
	for _, how := range []cut{amid, unheard} {
		bothProtocols(t, func(t *testing.T, opts ...kfake.Opt) {
			c, r, topic := beginTxn(t, 2, opts...)
			r.commit(t, topic)
			r.wire.cutOther(kmsg.AddPartitionsToTxn, how)
			r.sendBoth(t, topic)
			ended := r.cut()
			if len(opts) == 0 {
				r.waitFor(t, ended)
				sees(t, c, topicName, 0, 6)
				return
			}
			if err := r.fails(t); !errors.Is(err, ErrAgain) || errors.Is(err, ErrFenced) {
				t.Errorf("%v", err)
			}
			neverEnds(t, ended)
		})
	}
}

// TestClosedCoordinatorConnection is made anew when it was idle.
func TestClosedCoordinatorConnection(t *testing.T) {
	c, r, topic := beginTxn(t, 2, oldTransactions)
	r.commit(t, topic)
	r.Producer.mu.Lock()
	conn := r.transactions.peer.conn
	r.Producer.mu.Unlock()
	conn.conn.Close()
	eventually(t, "it is known", r.locked(func() bool { return r.transactions.peer.conn == nil }))
	r.commit(t, topic)
	sees(t, c, topicName, 0, 6)
}

// TestSplitInATransaction halves batches until the topic takes them.
func TestSplitInATransaction(t *testing.T) {
	bothProtocols(t, func(t *testing.T, opts ...kfake.Opt) {
		c := cluster(t, 1, opts...)
		must(t, c.CreateTopic("small", 1, map[string]string{"max.message.bytes": "2000"}))
		r := newTxnRig(t, c, nil, "linger.ms", "60000")
		topic := r.topic(t, "small")
		for range 3 {
			r.send(t, topic, 0, 50, 500)
			ended := r.cut()
			r.send(t, topic, 0, 2, 10)
			r.waitFor(t, ended)
		}
		r.waitFor(t, r.cut())
		sees(t, c, "small", 0, 156)
		r.settled(t)
	})
}

// TestLostLeadersInTransactions has partitions whose leaders move between transactions and within them.
func TestLostLeadersInTransactions(t *testing.T) {
	bothProtocols(t, func(t *testing.T, opts ...kfake.Opt) {
		c := cluster(t, 3, opts...)
		r := newTxnRig(t, c, nil, "metadata.max.age.ms", "1000")
		topic := r.topic(t, topicName)
		for range 10 {
			r.sendBoth(t, topic)
			c.ShufflePartitionLeaders()
			r.sendBoth(t, topic)
			r.waitFor(t, r.cut())
		}
		sees(t, c, topicName, 0, 60)
		sees(t, c, topicName, 1, 60)
	})
}
