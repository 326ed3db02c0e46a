package emitter

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tidemark-cdc/tidemark/emitter/internal/producer"
	"github.com/tidemark-cdc/tidemark/emitter/kafka"
	"github.com/tidemark-cdc/tidemark/offset"
)

// What ends a delivery, in transactions but for the last, beside a refused record; each is wrapped by [Delivery.Err].
var (
	// ErrFenced says that somebody else has taken the transactional id: a Kafka Connect task, or another instance. It is not
	// to be taken back.
	ErrFenced = producer.ErrFenced
	// ErrTimedOut says that a transaction was open for longer than the coordinator allows. A new delivery can go on.
	ErrTimedOut = producer.ErrTimedOut
	// ErrUnknownOutcome says that it is not known whether the last transaction was committed. A new delivery settles it; the
	// stored offset says how.
	ErrUnknownOutcome = producer.ErrUnknownOutcome
	// ErrAgain is a fault that a new delivery does not have.
	ErrAgain = producer.ErrAgain
	// ErrStale says that [DeliveryConfig.May] has said no.
	ErrStale = producer.ErrStale
)

// LastUse is until when at least the transactional id was one's own that is fenced; zero: the error does not say that.
func LastUse(err error) time.Time { return producer.LastUse(err) }

// Boundaries says where Kafka transactions end (transaction.boundary).
type Boundaries uint8

// The places, all at commits of MySQL.
const (
	// AtCommits ends a transaction at a commit, when the source waits or after 100 ms or 10,000 records. A MySQL transaction
	// that is larger is split behind a row.
	AtCommits Boundaries = iota
	// AtIntervals ends one at the first commit after another time, whether the source waits or not and whatever it has. If that does
	// not come for 100 ms or so, it is ended inside a MySQL transaction that is larger than a batch, behind a row.
	AtIntervals
	// AtWholeTransactions is like AtCommits, but a MySQL transaction is never split.
	AtWholeTransactions
)

// ExactlyOnceConfig says how a delivery makes its transactions.
type ExactlyOnceConfig struct {
	DeliveryConfig

	ID      string        // transactional.id; required
	Timeout time.Duration // transaction.timeout.ms; 0: a minute

	Store *kafka.TopicStore // whose topic the offsets are written to, over the delivery's own client; required
	Key   offset.Key        // under which they are stored

	// Wrote says which topics earlier deliveries may have written to; nil: it is not known. There ends of transactions are looked for
	// that the cluster has lost (see ARCHITECTURE.md). It may be called from any goroutine.
	Wrote func(topic string) bool

	Boundaries Boundaries
	Interval   time.Duration // of AtIntervals; 0: the flush interval

	// FlushInterval is how often an offset is stored that moves without records; 0: 1 s.
	FlushInterval time.Duration

	longest time.Duration // longestTransaction, but in tests
}

const (
	// mostInTransaction is how many records a Kafka transaction has at most, besides those of the offset, where not only time counts.
	mostInTransaction = 10_000
	// longestTransaction is how long one stays open.
	longestTransaction = 100 * time.Millisecond
	// With more than fewRecords there is a backlog. That the source waits for a moment does not end it, and the transaction goes on
	// until nothing has come for backlogPause: to end one takes Kafka as long as a thousand records.
	fewRecords   = 512
	backlogPause = 5 * time.Millisecond
	// abortWait is how long Close waits for the end of a transaction that is given up.
	abortWait = 2 * time.Second
)

// ExactlyOnce is the [Delivery] that writes records and the offset behind them in one Kafka transaction, so that for who reads
// committed records nothing is there twice. Nobody else is to store its offsets: Safe is what is stored.
//
// Kafka transactions end at the commits of MySQL. What has been handed over since the last one ended is the open transaction.
// It is whole when it ends at a commit, and can be ended then. A MySQL transaction that is larger than a batch begins a Kafka
// transaction of its own, but with AtIntervals, which is partial until its commit; if it takes too long or too much, it is ended
// behind a row, with the offset there. The rest of a smaller one stays in the batch, so that it is never part of a transaction that
// ends before it.
//
// While one is being ended, the records of the next one are appended behind it, and wait in the producer's memory.
type ExactlyOnce struct {
	handover
	made    ExactlyOnceConfig
	offsets *producer.Topic
	longest time.Duration // that a transaction stays open
	pause   time.Duration // after which a backlog has ended

	// patience is for how long the end of a MySQL transaction is waited for, if the open one is due inside it.
	patience time.Duration

	// Of the goroutine that calls the methods.
	mark  int   // so many records of the batch are whole rows
	whole int   // so many end at a commit
	spare Batch // memory for the rest of a batch
	goal  int   // the present hand-over goes up to here …
	rest  bool  // … and ends inside a MySQL transaction
	seals bool  // the transaction will be ended behind the batch

	making    sync.Mutex // held from Begin to End of the producer, and for what follows
	count     int        // records of the open transaction
	since     time.Time  // it was begun, or what is moved was announced
	partial   bool       // it ends inside a MySQL transaction …
	entered   time.Time  // … whose first rows were handed over then, or those behind the last end
	moved     bool       // without records there is an offset to be stored
	handing   bool       // it ends anywhere
	sealed    bool       // it has the offset behind it already
	wanted    bool       // it is to be ended when the one before has
	waits     time.Time  // the source did, and nothing was handed over since; zero: something was
	backlog   bool       // the one before ended with many records
	last      offset.Offset
	prepared  *kafka.Prepared // the last one that was ended
	finished  bool            // there are no transactions any more
	timer     *time.Timer
	poke      chan struct{}
	stop      chan struct{}
	stopOnce  sync.Once
	goroutine sync.WaitGroup

	end      sync.Mutex // taken last
	ending   int        // transactions
	inEnding int        // their records
	opened   time.Time  // when the last one had ended, so that the open one could be sent
	awaited  bool       // who looks after the open one wants to hear of the end
	settled  chan struct{}
	safe     offset.Offset
	hasSafe  bool
}

var _ Delivery = (*ExactlyOnce)(nil)

// NewExactlyOnce takes the transactional id for itself and returns a delivery over client, which stays the caller's and is to
// be closed after the delivery. It blocks until whatever transaction of the id was open has ended, so that the offset that is
// loaded afterwards is the last one. While the cluster cannot be reached it waits, until ctx ends.
func NewExactlyOnce(ctx context.Context, client *kafka.Client, cfg ExactlyOnceConfig) (*ExactlyOnce, error) {
	if cfg.Timeout <= 0 {
		cfg.Timeout = time.Minute
	}
	if cfg.FlushInterval <= 0 {
		cfg.FlushInterval = time.Second
	}
	if cfg.Interval <= 0 {
		cfg.Interval = cfg.FlushInterval
	}
	if err := cfg.Store.SameCluster(ctx, client); err != nil {
		return nil, err
	}
	d := &ExactlyOnce{made: cfg, poke: make(chan struct{}, 1), stop: make(chan struct{}), timer: time.NewTimer(time.Hour), longest: cmp.Or(cfg.longest, longestTransaction), pause: backlogPause}
	d.patience = d.longest
	if cfg.Boundaries == AtIntervals {
		d.longest = cfg.Interval
		d.patience = min(d.patience, d.longest)
	}
	d.timer.Stop()
	d.start(client.Internal(), cfg.DeliveryConfig, &producer.Transaction{ID: cfg.ID, Timeout: cfg.Timeout, Ends: cfg.Store.Ends(cfg.ID, client, cfg.Wrote)}, d)
	err := d.producer.Ready(ctx)
	if err == nil {
		d.offsets, err = d.producer.Topic(ctx, cfg.Store.Topic())
	}
	if err != nil {
		err = fmt.Errorf("waiting for the cluster to give transactional id %s to this instance: %w", cfg.ID, err)
	}
	if failed := d.Err(); failed != nil { // names the id, too
		err = failed
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	for _, key := range []offset.Key{cfg.Key, cfg.Key.Side()} { // in each transaction
		d.producer.Every(d.offsets, d.offsets.Partition(-1, key.Append(nil), nil))
	}
	d.goroutine.Go(d.run)
	return d, nil
}

// TransactionVersion is the cluster's transaction.version. Below 2, as before Kafka 4.0, a delayed end of an earlier
// transaction can end a later one (KIP-890).
func (d *ExactlyOnce) TransactionVersion() int { return d.producer.Transactions() }

// Batch implements [Delivery].
func (d *ExactlyOnce) Batch(ctx context.Context) (*Batch, error) {
	if err := d.failed(); err != nil {
		return nil, err
	}
	d.mark = len(d.batch.Records)
	if d.full() {
		if err := d.deliver(ctx, false); err != nil {
			return nil, err
		}
	}
	return &d.batch, nil
}

// Deliver implements [Delivery]. What it hands over is committed at once, unless a MySQL transaction is open; what of that
// fits into a batch is kept.
func (d *ExactlyOnce) Deliver(ctx context.Context) error {
	if err := d.failed(); err != nil {
		return err
	}
	return d.deliver(ctx, true)
}

// Boundary implements [Delivery].
func (d *ExactlyOnce) Boundary(_ context.Context, after offset.Offset) error {
	if err := d.failed(); err != nil {
		return err
	}
	if n := len(d.batch.Records); n > 0 {
		d.bound(after)
		if !inside(after) {
			d.mark, d.whole = n, n
		}
		return nil
	}
	d.making.Lock()
	defer d.making.Unlock()
	d.last, d.sealed = after, false
	switch {
	case d.count > 0:
		if d.partial && !inside(after) {
			d.partial = false
			d.look(false)
		}
	case !d.moved:
		d.moved, d.since = true, time.Now()
		d.timer.Reset(d.made.FlushInterval)
	}
	return nil
}

// inside says whether an offset lies in a MySQL transaction.
func inside(o offset.Offset) bool {
	return o.Event != 0 || o.Row != 0 || o.Done != 0 || o.Side != nil && o.Side.Open != nil
}

// Flush implements [Delivery]. It commits up to the last commit of MySQL, or the last offset that was announced; the records
// of an unfinished MySQL transaction behind that are left to the next call, or to Close, which gives them up. With AtIntervals, where
// the open transaction may have others before them, those that are handed over are committed, too.
func (d *ExactlyOnce) Flush(ctx context.Context) error {
	if err := d.failed(); err != nil {
		return err
	}
	if err := d.deliver(ctx, false); err != nil {
		return err
	}
	d.making.Lock()
	if !d.handing && (!d.partial && (d.count > 0 || d.moved) || d.partial && d.made.Boundaries == AtIntervals && d.endable()) {
		d.cut()
	}
	d.making.Unlock()
	for {
		d.end.Lock()
		if d.ending == 0 || d.Err() != nil {
			d.end.Unlock()
			return d.Err()
		}
		if d.settled == nil {
			d.settled = make(chan struct{})
		}
		settled := d.settled
		d.end.Unlock()
		select {
		case <-settled:
		case <-d.failedAt:
		case <-ctx.Done():
			return fmt.Errorf("waiting for Kafka to commit: %w", context.Cause(ctx))
		}
	}
}

// Safe implements [Delivery]: it is the offset of the last transaction that is committed.
func (d *ExactlyOnce) Safe() (offset.Offset, bool) {
	d.end.Lock()
	defer d.end.Unlock()
	return d.safe, d.hasSafe
}

// Unacked implements [Delivery]. A record counts until it is acknowledged, and again while its transaction is being ended.
func (d *ExactlyOnce) Unacked() int {
	d.end.Lock()
	defer d.end.Unlock()
	return max(d.tracker.Unacked(), d.inEnding)
}

// Close implements [Delivery]. It also rolls back the open transaction, for which it waits a little.
func (d *ExactlyOnce) Close() {
	d.making.Lock()
	first := !d.finished
	d.finished = true
	d.making.Unlock()
	d.stopOnce.Do(func() { close(d.stop) })
	d.goroutine.Wait()
	if first {
		ctx, cancel := context.WithTimeout(context.Background(), abortWait)
		_ = d.producer.Abort(ctx) // if that cannot be told to the cluster, the next one of the id tells it
		cancel()
	}
	_ = d.fail(ErrClosed)
	d.timer.Stop()
	d.producer.Close()
}
