package producer

import (
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// sizes gathers how many bytes the batches of each produce request have.
type sizes struct {
	mu       sync.Mutex
	requests [][]int
}

func measure(c *kfake.Cluster) *sizes {
	s := &sizes{}
	c.ControlKey(int16(kmsg.Produce), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		s.mu.Lock()
		defer s.mu.Unlock()
		var request []int
		for _, one := range kreq.(*kmsg.ProduceRequest).Topics {
			for _, part := range one.Partitions {
				request = append(request, len(part.Records))
			}
		}
		s.requests = append(s.requests, request)
		return nil, nil, false
	})
	return s
}

// take returns the requests since the call before.
func (s *sizes) take() [][]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.requests
	s.requests = nil
	return taken
}

// oneLeader is a cluster whose first broker leads all partitions of its topic.
func oneLeader(t *testing.T, partitions int, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c := cluster(t, partitions, opts...)
	for partition := range partitions {
		must(t, c.MoveTopicPartition(topicName, int32(partition), 0))
	}
	return c
}

// TestFirstBatchesAreOneRequest, which is all that the leader asks the coordinator about; the others are as large as ever. They are made
// while the transaction before ends, sent with one addition, and as large as the number of partitions in the transactions before allows.
func TestFirstBatchesAreOneRequest(t *testing.T) {
	bothProtocols(t, func(t *testing.T, opts ...kfake.Opt) {
		const many, size = 400, 2000
		records := []int{1, many, many} // of each partition
		c := oneLeader(t, len(records), opts...)
		r := newTxnRig(t, c, nil)
		topic := r.topic(t, topicName)
		r.commit(t, topic)
		s := measure(c)
		adds := counter(c, kmsg.AddPartitionsToTxn)
		for round, most := range []int{leastFirst, firstBytes / 2, firstBytes / 2} {
			before := adds.Hits()
			asked, release := holdKey(c, kmsg.EndTxn)
			defer release()
			r.sendBoth(t, topic)
			ended := r.cut()
			<-asked
			s.take()
			for partition, n := range records {
				r.send(t, topic, partition, n, size)
			}
			next := r.cut()
			if all := r.locked(func() bool { return r.Producer.memory.used > 2*many*size }); !all() {
				t.Error("of the next transaction not all is in the producer")
			}
			if early := s.take(); len(early) > 0 {
				t.Errorf("of the next transaction something is sent: %v", early)
			}
			release()
			r.waitFor(t, ended)
			r.waitFor(t, next)
			requests := s.take()
			if n := adds.Hits() - before; n != 2 || len(requests) < 2 || len(requests[0]) != len(records) {
				t.Fatalf("round %d: %d additions of two transactions, requests with batches of %v bytes", round, n, requests)
			}
			for i, request := range requests {
				for partition, n := range request {
					if i == 0 && n > most || i == 0 && partition > 0 && n < most-size-100 || i > 0 && n < many*size-most {
						t.Errorf("round %d: requests with batches of %v bytes", round, requests)
					}
				}
			}
		}
		sees(t, c, topicName, 1, 3+3*(3+many))
	})
}

// TestFirstBatchesOfBrokers have a request each: what goes to one takes nothing from the other. A transaction that is small changes nothing.
func TestFirstBatchesOfBrokers(t *testing.T) {
	_, r, topic := beginTxn(t, 2)
	for _, n := range []int{100, 1, 600} { // records to each
		r.send(t, topic, 0, n, 2000)
		r.send(t, topic, 1, n, 2000)
		r.waitFor(t, r.cut())
		if !r.locked(func() bool { return r.transactions.mostFirst == firstBytes })() {
			t.Errorf("after %d records to each of two brokers: first batches have at most %d bytes, want %d", n, r.transactions.mostFirst, firstBytes)
		}
	}
}
