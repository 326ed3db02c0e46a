package producer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/emitter/internal/kclient"
)

// Open is a transaction that a partition holds for open.
type Open struct {
	Topic     string
	Partition int32
	Epoch     int16         // of the producer whose records it has
	Start     int64         // offset of its first record
	Age       time.Duration // since it was written to last
}

// Ends knows of ends of transactions that the cluster has lost: the coordinator has decided them and takes them for done, and a
// partition has not got its marker. Consumers of committed records wait there for ever, and the next transaction of the producer would
// decide of the records of both. Kafka's coordinator does so since 4.3.0 whenever a partition has no leader at the moment at which it
// is to get its marker, as at the restart of the only broker that has it: it takes the partition for deleted.
//
// The producer calls it when it begins, and when it has lost a connection. Methods may block until ctx ends.
type Ends interface {
	// Open gives the partitions in which a producer id has a transaction open: of those of in, or where that is nil of all that the
	// transactional id may have written to. Those that cannot be asked because their leader is away are missing, which is said by away.
	Open(ctx context.Context, id int64, in map[string][]int32) (open []Open, away bool, err error)
	// Committed says of a transaction of an earlier producer that it was committed; false: it was rolled back, or nobody can have heard
	// otherwise. version is the cluster's transaction.version.
	Committed(ctx context.Context, id int64, of Open, version int16) (bool, error)
	// Ended hears of ends that the producer has given again.
	Ended(open []Open, commit bool)
}

const (
	// lostWait is how long partitions are waited for that cannot be asked for lost ends when the producer begins. They are without a leader,
	// as for a moment when a broker starts.
	lostWait = 5 * time.Second
	// lostAgain is how long after that they are asked again, at first, and how long they are waited for then.
	lostAgain = time.Second
	// mostLostAgain is that pause at most. Meanwhile nothing is written to them.
	mostLostAgain = 10 * time.Second
)

// recover gives transactions of earlier producers of the id their ends, whose coordinator has none open now.
func (t *transactions) recover() error {
	if t.ends == nil {
		return nil
	}
	for begun, pause := time.Now(), markersPause; ; pause = min(2*pause, mostMarkersPause) {
		away, err := t.lookBack(nil, lostWait)
		if err != nil {
			return err
		}
		if away && time.Since(begun) >= lostWait {
			t.p.mu.Lock()
			t.everywhere = true
			t.doubts++
			t.later()
			t.p.mu.Unlock()
			away = false
		}
		if !away {
			return nil
		}
		if !t.p.pause(pause) {
			return context.Cause(t.p.ctx)
		}
	}
}

// suspect notes that ends may have been lost. The caller holds the lock.
func (t *transactions) suspect() {
	if t.ends != nil && t.committed {
		t.suspected = true
		t.doubts++
		t.wake()
	}
}

// later has partitions asked again for lost ends. The caller holds the lock.
func (t *transactions) later() {
	t.between = min(max(2*t.between, lostAgain), mostLostAgain)
	t.suspected, t.askAgain = true, time.Now().Add(t.between)
	time.AfterFunc(t.between, t.wake)
}

// looksBack says that partitions are to be asked now for lost ends. The caller holds the lock.
func (t *transactions) looksBack(first *transaction) bool {
	return t.suspected && !first.told && t.proving == 0 && !time.Now().Before(t.askAgain)
}

// written is the partitions that may miss an end, which are to be asked now: what is lost from here on is another suspicion. The caller
// holds the lock.
func (t *transactions) written() map[string][]int32 {
	t.suspected = false
	if t.everywhere {
		return nil
	}
	in := make(map[string][]int32)
	for name, topic := range t.p.topics {
		for _, part := range topic.partitions {
			if part.in != nil {
				in[name] = append(in[name], part.number)
			}
		}
	}
	return in
}

// doubt asks partitions for lost ends after a connection was lost, which was known of then. It returns an error that ends the producer.
func (t *transactions) doubt(in map[string][]int32, known uint64) error {
	wait := lostAgain
	if in == nil { // of all topics
		wait = lostWait
	}
	away, err := t.lookBack(in, wait)
	switch {
	case err == nil:
	case t.passes(err):
		away = true
	default:
		return err
	}
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	if away {
		t.later()
	} else {
		t.everywhere, t.cleared, t.between = false, known, 0
	}
	return nil
}

// passes says of an error of a question that asking again can help.
func (t *transactions) passes(err error) bool {
	return t.p.ctx.Err() == nil && t.p.cfg.Client.Transient(err) && !errors.Is(err, ErrAgain)
}

// unasked is the partitions that are to be asked for lost ends before the open transaction gets them: what it has in them would else be
// decided with what is open there. The caller holds the lock.
func (t *transactions) unasked() []*partition {
	if t.cleared == t.doubts || len(t.wanted) == 0 {
		return nil
	}
	parts := slices.Clone(t.wanted)
	if !t.queue[0].told {
		parts = append(parts, t.every...)
	}
	return slices.DeleteFunc(parts, func(part *partition) bool { return part.asked == t.doubts })
}

// ask asks partitions for lost ends that a transaction is to get, and tells whether all of them have answered. known is the doubts that there
// were, and told whether the transaction has begun, which cannot give ends then. It returns an error that ends the producer.
func (t *transactions) ask(parts []*partition, known uint64, told bool) (bool, error) {
	in := make(map[string][]int32)
	for _, part := range parts {
		if numbers := in[part.topic.name]; !slices.Contains(numbers, part.number) {
			in[part.topic.name] = append(numbers, part.number)
		}
	}
	var away bool
	var err error
	if told {
		var open []Open
		ctx, cancel := context.WithTimeout(t.p.ctx, lostAgain)
		open, away, err = t.ends.Open(ctx, t.p.id, in)
		cancel()
		if err == nil && len(open) > 0 {
			return false, fmt.Errorf("transactional id %s: topic %s, partition %d: Kafka has lost the end of an earlier transaction there, which gets it before this one: %w",
				t.id, open[0].Topic, open[0].Partition, ErrAgain)
		}
	} else {
		away, err = t.lookBack(in, lostAgain)
	}
	switch {
	case err != nil && !t.passes(err):
		return false, err
	case err != nil || away:
		return false, nil
	}
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	for _, part := range parts {
		part.asked = known
	}
	return true, nil
}

// lookBack gives transactions the ends that the cluster has lost, in some partitions or in all, which are waited for so long.
func (t *transactions) lookBack(in map[string][]int32, wait time.Duration) (away bool, err error) {
	ctx, cancel := context.WithTimeout(t.p.ctx, wait)
	open, away, err := t.ends.Open(ctx, t.p.id, in)
	cancel()
	if err != nil {
		return away, err
	}
	earlier := make(map[int16]bool) // whether those of an epoch were committed, which may take long to find out
	of := make(map[bool][]Open)     // by whether they were committed
	for _, o := range open {
		commit, known := earlier[o.Epoch]
		switch {
		case known:
		case o.Epoch >= t.begins: // what this producer ends is committed, or it has ended itself
			commit = true
		default:
			if commit, err = t.ends.Committed(t.p.ctx, t.p.id, o, t.version); err != nil {
				return away, err
			}
			earlier[o.Epoch] = commit
		}
		of[commit] = append(of[commit], o)
	}
	for _, commit := range []bool{true, false} {
		if err := t.endAgain(of[commit], commit); err != nil {
			return away, err
		}
	}
	return away, nil
}

// endAgain ends a transaction that has nothing but partitions in it that miss an earlier end: the marker ends what is open there. One
// whose end was only on its way gets it twice, which is nothing, and not said.
func (t *transactions) endAgain(open []Open, commit bool) error {
	if len(open) == 0 {
		return nil
	}
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = t.id, t.p.id, t.p.epoch
	for _, o := range open {
		i := slices.IndexFunc(req.Topics, func(topic kmsg.AddPartitionsToTxnRequestTopic) bool { return topic.Topic == o.Topic })
		if i < 0 {
			topic := kmsg.NewAddPartitionsToTxnRequestTopic()
			topic.Topic = o.Topic
			i = len(req.Topics)
			req.Topics = append(req.Topics, topic)
		}
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, o.Partition)
	}
	t.since(time.Now())
	for pause := markersPause; ; pause = min(2*pause, mostMarkersPause) {
		err := t.addLost(req)
		switch {
		case err == nil: // so the coordinator has done with what was before
			lost := t.still(open)
			if err := t.finish(commit); err != nil {
				return err
			}
			t.since(time.Time{})
			if len(lost) > 0 {
				t.ends.Ended(lost, commit)
			}
			return nil
		case errors.Is(err, kerr.UnknownTopicOrPartition): // deleted since, which the next question shows
			t.since(time.Time{})
			return err
		case ends(err):
			t.p.mu.Lock()
			defer t.p.mu.Unlock()
			return t.failure(err, "ending a transaction again whose end the cluster has lost")
		case !kerr.IsRetriable(err) && !errors.Is(err, kerr.ConcurrentTransactions) && !t.p.cfg.Client.Transient(err):
			return err
		}
		t.look(err)
		if !t.p.pause(pause) {
			return context.Cause(t.p.ctx)
		}
	}
}

// still is what of open transactions is open now, as far as that is known.
func (t *transactions) still(open []Open) []Open {
	in := make(map[string][]int32)
	for _, o := range open {
		in[o.Topic] = append(in[o.Topic], o.Partition)
	}
	ctx, cancel := context.WithTimeout(t.p.ctx, lostAgain)
	defer cancel()
	now, away, err := t.ends.Open(ctx, t.p.id, in)
	if err != nil || away {
		return open
	}
	return now
}

// since notes when the transaction began that gives ends again.
func (t *transactions) since(begun time.Time) {
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	t.ending = begun
}

func (t *transactions) addLost(req *kmsg.AddPartitionsToTxnRequest) error {
	resp, _, err := t.call(req, func(c *kclient.Connection) int16 { return min(c.AddPartitionsToTxn, mostExplicit) })
	if err != nil {
		return err
	}
	asked, added := 0, 0
	for _, topic := range req.Topics {
		asked += len(topic.Partitions)
	}
	for _, topic := range resp.(*kmsg.AddPartitionsToTxnResponse).Topics {
		for _, part := range topic.Partitions {
			switch code := kerr.ErrorForCode(part.ErrorCode); {
			case code == nil:
				added++
			case !errors.Is(code, kerr.OperationNotAttempted):
				return code
			case err == nil:
				err = code
			}
		}
	}
	if err == nil && added < asked {
		err = errNoAnswer
	}
	return err
}
