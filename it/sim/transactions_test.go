package sim

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/cmd/loop"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/emitter/kafka"
	"github.com/tidemark-cdc/tidemark/offset"
)

// exactlyOnce is delivery in Kafka transactions, each with the offset behind it.
const exactlyOnce mode = "exactly once"

const transactionalID = "sim-group-" + connector + "-0"

// Points of a process that delivers in transactions.
const (
	pointEndSent  = "after EndTxn was delivered"
	pointEndKnown = "after EndTxn was answered"
)

const (
	keyInitProducerID = int16(kmsg.InitProducerID)
	keyEndTxn         = int16(kmsg.EndTxn)
)

// use has a pipeline deliver as the run's mode says, as cmd/tidemark does it.
func (m mode) use(p *process, pipe *loop.Pipeline, store offset.Store, cfg kafka.ClientConfig) {
	topic, _ := store.(*kafka.TopicStore)
	switch {
	case m == exactlyOnce:
		pipe.DeliverFirst = true
		pipe.Store = &watchedStore{committed{store}, p}
		pipe.Deliver = func(ctx context.Context) (emitter.Delivery, error) {
			return p.begin(ctx, cfg, pipe.May, func(client *kafka.Client, cfg emitter.DeliveryConfig) (emitter.Delivery, error) {
				return emitter.NewExactlyOnce(ctx, client, emitter.ExactlyOnceConfig{
					DeliveryConfig: cfg, ID: transactionalID, Timeout: p.s.timeout, Store: topic, Key: connectorKey,
					Boundaries: p.s.boundaries, FlushInterval: p.s.flushInterval,
				})
			})
		}
	case p.s.grouped():
		pipe.Store = &watchedStore{fenced{store, topic, pipe.May}, p}
	}
}

// committed is the place of offsets that the delivery stores in its transactions.
type committed struct{ offset.Store }

func (committed) Save(context.Context, offset.Key, offset.Offset) error { return nil }

// fenced is a place of offsets whose transactional id is taken before each Load.
type fenced struct {
	offset.Store
	topic *kafka.TopicStore
	may   func() bool
}

func (f fenced) Load(ctx context.Context, key offset.Key) (offset.Offset, error) {
	if !f.may() {
		return offset.Offset{}, emitter.ErrStale
	}
	if err := f.topic.Fence(ctx, key, transactionalID); err != nil {
		return offset.Offset{}, err
	}
	return f.Store.Load(ctx, key)
}

// transactionFaults are those that delivery in transactions can meet.
var transactionFaults = func() []fault {
	purpose := func(s *simulation) string {
		if s.mode == exactlyOnce {
			return forData
		}
		return forOffsets
	}
	all := []fault{
		{name: "Kafka: connection cut before EndTxn", possible: (*simulation).grouped, do: func(s *simulation) bool { return s.cutRequest(purpose(s), keyEndTxn, cutBefore, 2) }},
		{name: "Kafka: connection cut after EndTxn was delivered", possible: (*simulation).grouped, do: func(s *simulation) bool { return s.cutRequest(purpose(s), keyEndTxn, cutAfter, 2) }},
		{name: "Kafka: connection cut after the id was asked for", possible: (*simulation).grouped, do: func(s *simulation) bool {
			s.now().crash()
			defer s.kafka.cutNone()
			return s.happens(s.kafka.cutNext(purpose(s), keyInitProducerID, cutAfter, 0), 25*time.Second)
		}},
	}
	for _, err := range []*kerr.Error{kerr.CoordinatorLoadInProgress, kerr.NotCoordinator, kerr.CoordinatorNotAvailable, kerr.ConcurrentTransactions} {
		all = append(all, fault{name: "Kafka: " + err.Message + " for EndTxn", possible: (*simulation).grouped, do: func(s *simulation) bool {
			return s.brokerError(err, kmsg.EndTxn, "", 1+s.intn(3))
		}})
	}
	return all
}()

// takeOver has a second process begin while the first is frozen. When that goes on, one of them has to end: the first when it
// tries to write, or, if it has to begin anew before it does, the second.
func takeOver(s *simulation) bool {
	p := s.now()
	thaw := p.freeze()
	s.sleep(s.upTo(5 * time.Second))
	next := s.replace(p)
	if next == nil {
		thaw()
		return false
	}
	s.sleep(s.upTo(30 * time.Second))
	thaw()
	both := make(chan struct{})
	go func() {
		select {
		case <-p.done:
		case <-next.done:
		}
		close(both)
	}()
	if !s.happens(both, 2*time.Minute) {
		s.violated("fence", "processes %d and %d go on beside each other", p.number, next.number)
	}
	for _, p := range []*process{p, next} {
		select {
		case <-p.done:
		default:
			continue
		}
		if err := p.err; err != nil && !p.isDead() && !replacedBy(err) && !harmless(err) {
			s.violated("fence", "process %d, beside which another one ran, ends with: %v", p.number, err)
		}
	}
	select {
	case <-p.done:
		s.mu.Lock()
		s.rival = nil
		s.mu.Unlock()
	default: // it goes on as the process of the moment
	}
	return !p.isDead()
}

// replacedBy says that a process has ended because another one has taken its place.
func replacedBy(err error) bool {
	return isFenced(err) || isReplaced(err)
}

// replace begins another process beside p; nil: p is not there any more.
func (s *simulation) replace(p *process) *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != p || p.isDead() {
		return nil
	}
	next := s.start()
	s.rival = p
	s.replaced <- struct{}{}
	return next
}

// yield makes the rival of p, which has ended, the process of the moment; nil: there is none.
func (s *simulation) yield(p *process) *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	rival := s.rival
	s.rival = nil
	if rival != nil && rival != p && s.process == p {
		s.process = rival
		return rival
	}
	return nil
}

// committedSaves are the offsets that transactions have stored, in their order.
func (s *simulation) committedSaves() ([]*save, []*kgo.Record, error) {
	log, err := s.kafka.log([]string{offsetsTopic}, kgo.ReadCommitted())
	if err != nil {
		return nil, nil, err
	}
	var saves []*save
	var records []*kgo.Record
	key := connectorKey.String()
	for _, list := range log {
		for _, r := range list {
			if string(r.Key) != key {
				continue
			}
			o, err := offset.Parse(r.Value)
			if err != nil {
				return nil, nil, err
			}
			done, err := s.mysql.progress(o)
			if err != nil {
				s.violated("I4", "stored is %v: %v", o, err)
			}
			saves = append(saves, &save{at: r.Timestamp, finished: r.Timestamp, offset: o, done: done})
			records = append(records, r)
		}
	}
	return saves, records, nil
}

// transactionOf tells transactions apart where each has an epoch of its own.
type transactionOf struct {
	id    int64
	epoch int16
}

// checkTransactions holds that each Kafka transaction has the records between the offset before and its own, and no others.
func (h *history) checkTransactions(found map[partition][]element, report reporter) {
	type span struct{ from, to int }
	spans := make(map[transactionOf]span)
	before, last := h.first, transactionOf{}
	for i, r := range h.offsets {
		s := h.saves[i]
		if h.whole && (s.offset.Event != 0 || s.offset.Row != 0) {
			report("C8", "a Kafka transaction ends inside a MySQL transaction, at %v", s.offset)
		}
		t := transactionOf{r.ProducerID, r.ProducerEpoch}
		from := before
		if first, again := spans[t]; again {
			if t != last || first.to > first.from {
				return // the brokers do not give each its own
			}
			from = first.from // a backlog's begins with the offset that is there already
		}
		spans[t] = span{from, s.done.changes}
		before, last = s.done.changes, t
	}
	h.transactions = len(spans)
	for at, list := range found {
		for i, e := range list {
			r := h.log[at][i]
			if s, ok := spans[transactionOf{r.ProducerID, r.ProducerEpoch}]; !ok || e.change.seq < s.from || e.change.seq >= s.to {
				report("C8", "%s-%d: change %d is in a Kafka transaction whose offsets go from change %d to %d", at.topic, at.n, e.change.seq, s.from, s.to)
				return
			}
		}
	}
}

// idle holds that nothing is open when there is nothing to do.
func (s *simulation) idle() {
	s.sleep(2 * time.Second)
	for _, topic := range append(dataTopics(), offsetsTopic) {
		for _, i := range s.kafka.PartitionInfos(topic) {
			if i.LastStableOffset != i.HighWatermark {
				s.violated("C8", "a transaction is open in %s-%d though there is nothing to do", topic, i.Partition)
			}
		}
	}
}
