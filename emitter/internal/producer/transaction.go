package producer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/tidemark-cdc/tidemark/emitter/internal/kclient"
)

// Transaction has a producer write in transactions.
type Transaction struct {
	ID      string        // Java's transactional.id: the last producer that is made with it is the only one that can write
	Timeout time.Duration // Java's transaction.timeout.ms, after which the cluster ends a transaction by itself; 0: a minute
	Ends    Ends          // finds ends of transactions that the cluster has lost; nil: they are not looked for
}

const (
	defaultTimeout = time.Minute

	// firstBytes is what the first batches of a broker's partitions in a transaction may become together. A leader asks the coordinator
	// about them before it takes the request, and reads no other one of the connection meanwhile: so they are to be in one request, of the
	// size of the others, for which it asks once.
	firstBytes = requestBytes - requestBytes/16
	// leastFirst is what each of them may become, however many there are.
	leastFirst = 64 << 10
)

// Why a producer with transactions has ended, beside what ends any. After each of them the stored offset says what was committed,
// once the next producer of the id is ready.
var (
	// ErrFenced is that another producer has begun with the same transactional id.
	ErrFenced = errors.New("fenced by another producer with the same transactional id")

	// ErrTimedOut is that a transaction was open for so long that the cluster may have ended it. It is an [ErrAgain].
	ErrTimedOut error = again("the cluster may have ended the transaction by itself")

	// ErrUnknownOutcome is that a commit was sent, and nobody has said what has become of it. It is an [ErrAgain].
	ErrUnknownOutcome error = again("it is not known whether the transaction was committed")

	// ErrStale is that [Config.May] has said no.
	ErrStale = errors.New("this instance may not write any more")

	// ErrAgain is a fault that a new producer does not have, which begins where the stored offset says.
	ErrAgain = kclient.ErrAgain
)

// again is an [ErrAgain] of its own.
type again string

func (a again) Error() string        { return string(a) }
func (a again) Is(target error) bool { return target == ErrAgain }

// fenced is an [ErrFenced] that says until when the id was certainly this producer's.
type fenced struct{ used time.Time }

func (f *fenced) Error() string        { return ErrFenced.Error() }
func (f *fenced) Is(target error) bool { return target == ErrFenced }

// LastUse is when the cluster took the id of a producer that has ended with an [ErrFenced] for its own last; zero of another error.
func LastUse(err error) time.Time {
	if f, ok := errors.AsType[*fenced](err); ok {
		return f.used
	}
	return time.Time{}
}

// transaction is the records between two cuts. The producer's lock guards it.
type transaction struct {
	batches int         // that are not acknowledged
	cut     bool        // nothing more is appended …
	ended   func(error) // … and who is told when it has ended
	told    bool        // the cluster may know of it …
	begun   time.Time   // … since then
}

// transactions is what a producer has under its transactional id. Its first transaction is being sent, records are appended to the
// last one; they may be the same. The producer's lock guards all but peer and unanswered.
type transactions struct {
	p    *Producer
	id   string
	most time.Duration // that one may be open
	ends Ends

	queue   []*transaction
	waiting []*partition // their first batch belongs to a later transaction
	wanted  []*partition // are to be added to the first one
	every   []*partition // are added to each one
	adding  bool         // some are, right now …
	proving int          // … and batches under way that are the first of their partition; never both, see [transactions.take]

	mostFirst int // bytes of the first batch of a partition in the transaction that records are appended to

	series  uint64 // of sequence numbers, which begin anew with an epoch
	version int16  // Kafka's transaction.version
	begins  int16  // the first epoch
	used    time.Time

	committed  bool          // something was
	suspected  bool          // ends may have been lost …
	everywhere bool          // … also of earlier producers, in any partition …
	askAgain   time.Time     // … and the partitions are not asked before
	between    time.Duration // since the question before; 0: it was answered
	doubts     uint64        // so often was that suspected …
	cleared    uint64        // … and up to this all partitions have been asked
	ending     time.Time     // when the transaction began that gives a lost end again; zero: there is none

	aborting bool
	why      error // if that is a refused record
	aborted  error
	stopped  chan struct{} // closed when nothing is done any more
	bell     chan struct{}

	peer       *broker // the coordinator; of run
	unanswered bool    // the end of a transaction; of run
}

func newTransactions(p *Producer, cfg Transaction) *transactions {
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	t := &transactions{
		p: p, id: cfg.ID, most: cfg.Timeout, ends: cfg.Ends, queue: []*transaction{{}}, peer: &broker{p: p, node: -1},
		mostFirst: leastFirst, stopped: make(chan struct{}), bell: make(chan struct{}, 1),
	}
	p.appended = t.queue[0]
	return t
}

// Cut ends the open transaction: all records appended so far that are in no transaction yet are one, and those appended later the
// next one, which is sent when this one has ended. When Kafka has committed it, ended is called with nil, without a lock of the
// producer's and in the order of the calls of Cut; so it is when there was no record. It must not block. It is never called with
// nil for what was not committed, and not at all if the producer ends before; Failed hears of that. Cut may be called from any
// goroutine, but not between Begin and End, and only of a producer with a transaction. It does not block.
func (p *Producer) Cut(ended func(error)) {
	p.mu.Lock()
	defer p.unlock()
	p.appended.cut, p.appended.ended = true, ended
	t := p.transactions
	t.share()
	p.appended = &transaction{}
	t.queue = append(t.queue, p.appended)
	if len(t.queue) == 2 {
		t.settled()
	}
	if p.cfg.Client.Linger > 0 {
		p.wakeAll()
	}
}

// share divides what the first batches of a broker may become together among as many partitions as have filled theirs in the transaction
// before: its like come again. The caller holds the lock.
func (t *transactions) share() {
	most := 0
	for _, b := range t.p.brokers {
		most = max(most, b.filled)
		b.filled = 0
	}
	if most > 0 {
		t.mostFirst = max(firstBytes/most, leastFirst)
	}
}

// Every has a partition added to each transaction of the producer from its beginning: that of a record that each has at its end,
// say. It saves the time to add it then. Safe for concurrent use, but not between Begin and End.
func (p *Producer) Every(t *Topic, partition int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.transactions.every = append(p.transactions.every, t.partitions[partition])
}

// Abort gives up what is not committed and ends the producer. It tells the cluster, if that knows of an open transaction, so that
// nobody who reads waits for its end, and returns an error if that has not worked until ctx ends: then the next producer of the id
// does it. Failed hears nothing of it.
func (p *Producer) Abort(ctx context.Context) error {
	t := p.transactions
	select {
	case <-p.ready:
	default:
		p.Stop()
	}
	if t == nil {
		p.Stop()
		return nil
	}
	p.mu.Lock()
	t.aborting = true
	t.wake()
	p.mu.Unlock()
	select {
	case <-t.stopped:
		p.Stop()
		p.mu.Lock()
		defer p.mu.Unlock()
		return t.aborted
	case <-ctx.Done():
		p.Stop()
		return context.Cause(ctx)
	}
}

// rollBackWait is how long a producer that a record has ended waits for the end of its transaction.
const rollBackWait = 2 * time.Second

// rollsBack says of an error that the producer ends when its open transaction is given up: after a refused record there may be no
// next producer for long, and who reads would wait until the transaction has timed out.
func (t *transactions) rollsBack(err error) bool {
	if _, ok := errors.AsType[*Refused](err); !ok {
		return false
	}
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	if !t.aborting {
		t.aborting, t.why = true, err
		t.wake()
		time.AfterFunc(rollBackWait, func() { t.p.cancel(err) })
	}
	return true
}

// Transactions is Kafka's transaction.version once the producer is ready: below 2, a request of an ended transaction that arrives
// late may get into the next one (KIP-890).
func (p *Producer) Transactions() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int(p.transactions.version)
}

// wake has run look again.
func (t *transactions) wake() {
	select {
	case t.bell <- struct{}{}:
	default:
	}
}

// settled wakes run if the first transaction can be ended.
func (t *transactions) settled() {
	if first := t.queue[0]; first.cut && first.batches == 0 {
		t.wake()
	}
}

// acknowledged counts a batch.
func (t *transactions) acknowledged(in *transaction) {
	in.batches--
	t.settled()
}

// hold keeps a partition that has something to be sent until it may be.
func (t *transactions) hold(part *partition) bool {
	first := t.queue[0]
	switch {
	case part.held:
		return true
	case part.queue[0].in != first:
		t.waiting = append(t.waiting, part)
	case part.in != first:
		t.wanted = append(t.wanted, part)
		t.wake()
	default:
		return false
	}
	part.held = true
	return true
}

// release has held partitions looked at again.
func (t *transactions) release(parts []*partition) {
	for _, part := range parts {
		part.held = false
		if !part.busy && !part.listed && len(part.queue) > 0 {
			part.list(t)
		}
	}
}

// take takes the first batch of a partition, unless it has to wait. The leader of a partition asks the coordinator about its first
// batch in a transaction; if the coordinator is adding partitions at that moment, the leader asks again after 20 ms
// (add.partitions.to.txn.retry.backoff.ms). So the two are never at the same time.
func (t *transactions) take(part *partition) bool {
	first := t.queue[0]
	if part.proven != first {
		if t.adding {
			return false
		}
		part.proves = true
		t.proving++
	}
	if !part.queue[0].numbered && part.series != t.series {
		part.sequence, part.series = 0, t.series
	}
	return true
}

// returned is told of a partition whose batch is under way no more.
func (t *transactions) returned(part *partition) {
	if part.proves {
		part.proves = false
		t.proving--
	}
	if t.aborting || t.proving == 0 && len(t.wanted) > 0 {
		t.wake()
	}
}

// ends says of an answer that the transaction cannot go on.
func ends(cause error) bool {
	for _, e := range []*kerr.Error{
		kerr.InvalidProducerEpoch, kerr.ProducerFenced, kerr.InvalidTxnState, kerr.InvalidProducerIDMapping, kerr.TransactionAbortable,
		kerr.OutOfOrderSequenceNumber, kerr.UnknownProducerID, kerr.TransactionalIDAuthorizationFailed,
	} {
		if errors.Is(cause, e) {
			return true
		}
	}
	return false
}

// forgotten is how long after its last use an id may be unknown to the cluster (transactional.id.expiration.ms is a week).
const forgotten = time.Hour

// failure says what it means that the transaction cannot go on. The caller holds the lock.
func (t *transactions) failure(cause error, doing string) error {
	doing = fmt.Sprintf("transactional id %s: %s", t.id, doing)
	var open time.Duration
	if first := t.queue[0]; first.told {
		open = time.Since(first.begun)
	}
	switch {
	case errors.Is(cause, kerr.TransactionalIDAuthorizationFailed):
		return fmt.Errorf("%s: %w; allow it: %s --operation Write --operation Describe --transactional-id %s", doing, cause, t.p.cfg.Client.Allow, t.id)
	case errors.Is(cause, kerr.TransactionAbortable):
		return fmt.Errorf("%s: %w: %w", doing, ErrAgain, cause)
	case errors.Is(cause, kerr.OutOfOrderSequenceNumber), errors.Is(cause, kerr.UnknownProducerID):
		return fmt.Errorf("%s: a partition has lost records of the open transaction, as by an unclean leader election; none of it was committed: %w: %w",
			doing, ErrAgain, cause)
	case errors.Is(cause, kerr.InvalidProducerIDMapping) && time.Since(t.used) > forgotten:
		return fmt.Errorf("%s: the cluster has forgotten the id after %s without use (transactional.id.expiration.ms): %w: %w",
			doing, time.Since(t.used).Round(time.Second), ErrAgain, cause)
	case open < t.most/2:
		return fmt.Errorf("%s: %w: %w", doing, &fenced{t.used}, cause)
	}
	return fmt.Errorf("%s: %w: it was open for %s of transaction.timeout.ms=%d; raise that (the broker's transaction.max.timeout.ms bounds it), "+
		"or make transactions smaller by transaction.boundary: %w", doing, ErrTimedOut, open.Round(time.Millisecond), t.most.Milliseconds(), cause)
}

// prepare says in a produce request that it is of a transaction, and which version it can have at most.
func (t *transactions) prepare(req *request, version int16) int16 {
	req.TransactionID = &t.id
	if t.version < secondProtocol {
		return min(version, mostProduce)
	}
	return version
}
