package producer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// TestRandomTransactions has one producer after the other that begin where the last committed record says, among faults of all
// requests: each record is committed once and in order, and what is said to have been committed was.
func TestRandomTransactions(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			randomTransactions(t, seed)
		})
	}
}

func randomTransactions(t *testing.T, seed uint64) {
	var opts []kfake.Opt
	if seed%3 == 0 {
		opts = append(opts, kfake.MaxVersions(kversion.V3_9_0()))
	}
	c := cluster(t, 3, opts...)
	const offsets = "offsets"
	must(t, c.CreateTopic(offsets, 1, nil))
	dice := func(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }

	answers := dice(1)
	anything := []*kerr.Error{
		kerr.NotLeaderForPartition, kerr.NotEnoughReplicas, kerr.ConcurrentTransactions, kerr.RequestTimedOut,
		kerr.NotEnoughReplicasAfterAppend, kerr.UnknownTopicOrPartition, kerr.TransactionAbortable,
	}
	of := []*kerr.Error{kerr.ConcurrentTransactions, kerr.NotCoordinator, kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable}
	faulty := func(key kmsg.Key, causes []*kerr.Error, rarely int) {
		for _, cause := range causes {
			c.Fault(kfake.Fault{Keys: []kmsg.Key{key}, Err: cause, Count: -1, When: func(kmsg.Request) bool { return answers.IntN(rarely) == 0 }})
		}
	}
	faulty(kmsg.Produce, anything, 150)
	faulty(kmsg.AddPartitionsToTxn, append(of, kerr.UnknownTopicOrPartition), 40)
	faulty(kmsg.EndTxn, of, 40)
	faulty(kmsg.InitProducerID, of, 20)

	cuts, others := dice(2), dice(3)
	producers, told, choice := 0, 0, dice(4)
	var why []string
	for told < 60 {
		producers++
		if producers > 200 {
			t.Fatalf("%d transactions by %d producers: %s", told, producers, strings.Join(why[max(0, len(why)-5):], "\n"))
		}
		r := newTxnRig(t, c, hurried, "linger.ms", [...]string{"0", "3"}[seed%2], "metadata.max.age.ms", "1000", "max.request.size", "60000")
		r.wire.set(func() cut {
			if cuts.IntN(15) > 0 {
				return whole
			}
			return cut(1 + cuts.IntN(4))
		})
		r.wire.setOther(func(key kmsg.Key) cut {
			if key != kmsg.EndTxn && key != kmsg.AddPartitionsToTxn || others.IntN(12) > 0 {
				return whole
			}
			return cut(1 + others.IntN(4))
		})
		must(t, r.Ready(limited(t)))
		topic, stored := r.topic(t, topicName), r.topic(t, offsets)
		r.Every(stored, 0)
		at := stored0(t, c, offsets)
		if at.transactions < told {
			t.Fatalf("%d transactions are committed, and %d were said to be", at.transactions, told)
		}
		told = at.transactions
		for p, n := range at.next {
			r.next[topic.partitions[p]] = n
		}
		ended, fenced := make(chan int, 1000), false
		for n := at.transactions + 1; r.Context().Err() == nil && n <= 60; n++ {
			for range choice.IntN(4) {
				r.Begin(time.Now())
				for range 1 + choice.IntN(20) {
					r.append(topic, choice.IntN(3), 1+choice.IntN(300))
				}
				r.End()
			}
			r.Begin(time.Now())
			r.Append(stored, 0, &Record{Value: fmt.Appendf(nil, "%d %d %d %d", n,
				r.next[topic.partitions[0]], r.next[topic.partitions[1]], r.next[topic.partitions[2]]), Headers: NoHeaders})
			r.End()
			r.Cut(func(error) { ended <- n })
			switch choice.IntN(12) {
			case 0, 1:
				_ = r.Flush(limited(t))
			case 2:
				c.RehashCoordinators()
			case 3:
				must(t, c.MoveTopicPartition(topicName, int32(choice.IntN(3)), int32(choice.IntN(3))))
			case 4:
				if producers%5 == 0 {
					fence(t, c)
					fenced = true
				}
			}
			for len(ended) > 0 {
				told = <-ended
			}
		}
		last := make(chan struct{})
		r.Cut(func(error) { close(last) })
		select {
		case <-last:
		case err := <-r.failed:
			why = append(why, err.Error())
			if !errors.Is(err, ErrAgain) && !(fenced && errors.Is(err, ErrFenced)) {
				t.Fatal(err)
			}
		case <-limited(t).Done():
			t.Fatal("hangs")
		}
		r.Close()
		for len(ended) > 0 {
			told = <-ended
		}
	}
	must(t, newTxnRig(t, c, nil).Ready(limited(t)))
	at := stored0(t, c, offsets)
	if at.transactions != 60 {
		t.Errorf("%d transactions", at.transactions)
	}
	for p, n := range at.next {
		sees(t, c, topicName, p, n)
	}
	t.Logf("%d producers", producers)
}

type stored struct {
	transactions int
	next         [3]int
}

// stored0 is what the last committed record says; each one is of the transaction after the one before it.
func stored0(t *testing.T, c seeds, topic string) (at stored) {
	t.Helper()
	for i, text := range committed(t, c, topic, 0) {
		if _, err := fmt.Sscan(text, &at.transactions, &at.next[0], &at.next[1], &at.next[2]); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if at.transactions != i+1 {
			t.Fatalf("transaction %d is committed behind %d others", at.transactions, i)
		}
	}
	return at
}
