// Package producer writes records to Kafka in record batches of its own. It does what franz-go's producer does for one
// goroutine that never lets a record be lost or overtaken, without that one's cost of a record and of a request: a record is
// copied once into its batch, what is acknowledged is counted by batches, and a few records are sent by the goroutine that
// brings them. franz-go connects, logs in and asks for all but the writing of records.
//
// It is an idempotent producer: a batch has a sequence number in its partition, and a partition has one batch under way at a
// time, so that whatever is sent again after a fault is in order and there once. What waiting can heal is tried until it
// works; the first record that Kafka refuses ends the producer, and nothing newer is sent.
//
// With a [Transaction] all that is written is in transactions, one after the other. What ends one in a way that is not certain
// ends the producer, and the next one of the transactional id finds it ended.
package producer

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/emitter/internal/kclient"
)

// Config says how records are sent. Client, Acked and Failed must be there.
type Config struct {
	Client *kclient.Client

	// MaxBytes bounds the memory of batches that are not acknowledged. [Producer.Room] waits for it; a single record may be
	// larger.
	MaxBytes int

	// Acked hears of records that all in-sync replicas have. It may be called from any goroutine and must not block nor
	// call the producer.
	Acked func(parts []Part)

	// Failed hears once why the producer has ended: a [Refused], or an error of the cluster as a whole. The same goes for it.
	Failed func(error)

	// Poison says what is written in place of a record that Kafka does not take for what it is: it is too large, invalid, has no
	// key in a compacted topic. What is not such a record ends the producer as ever. It may block until ctx ends, which is when
	// the producer does, and be called from several goroutines; the records behind the refused one wait. Its error ends the
	// producer. nil: the first record refused does.
	Poison func(ctx context.Context, r *Refused) (Note, error)

	// Missing is told of a topic that records wait for and that the cluster has not known for some seconds, again and again, one
	// call at a time. It may make the topic anew, and block until ctx ends, which is when the producer does. nil: it is waited for.
	Missing func(ctx context.Context, topic string)

	// Transaction has all records written in transactions, which end where [Producer.Cut] says; nil: without.
	Transaction *Transaction

	// May is asked before each request that writes; false ends the producer with [ErrStale]. It may be called from any
	// goroutine and must not block. nil: always.
	May func() bool

	firstPause, mostPause time.Duration // those constants, but in tests
}

// Record is one record. Its bytes are copied.
type Record struct {
	Key, Value []byte // nil for null
	Headers    []byte // as [AppendHeaderCount] and [AppendHeader] make them
	Group      uint64
	File       string
	Pos        int64
}

// NoHeaders is what [Record.Headers] is of a record that has none.
var NoHeaders = []byte{0}

// Refused is a record that Kafka does not take.
type Refused struct {
	Topic string
	Key   []byte
	Value []byte
	Size  int // bytes of the record, in a batch of its own without compression
	File  string
	Pos   int64
	Group uint64
	Err   error
}

func (r *Refused) Error() string { return "topic " + r.Topic + ": " + r.Err.Error() }
func (r *Refused) Unwrap() error { return r.Err }

// Producer sends records. One goroutine calls Topic, Room, Begin, Append and End; the other methods may be called from any.
type Producer struct {
	cfg        Config
	client     *kgo.Client
	formatter  *kmsg.RequestFormatter
	compressor kgo.Compressor
	largest    int // bytes of a batch
	ctx        context.Context
	cancel     context.CancelCauseFunc
	running    sync.WaitGroup
	ended      sync.Once
	ready      chan struct{} // closed when id and epoch are known
	id         int64
	epoch      int16
	cluster    string    // its id, if the producer follows another or may be followed …
	left       sync.Once // … by another one

	refreshing chan struct{} // is full during a refresh of the topics: one at a time
	stale      chan struct{} // asks for one
	missingFor time.Duration // missingFor, but in tests
	workspaces sync.Pool     // of *workspace

	transactions *transactions // nil: without

	mu        sync.Mutex
	topics    map[string]*Topic
	brokers   map[int32]*broker
	addresses map[int32]string // of the brokers
	woken     []*broker        // have got something to do under the lock
	began     time.Time        // of Begin …
	now       int64            // … in ms since the epoch
	appended  *transaction     // that records are appended to; nil: without transactions
	memory    memory
	full      bool          // Room waits
	pending   int           // batches that are not acknowledged
	flushing  int           // callers of Flush: nothing lingers
	room      chan struct{} // told when memory is given back
	closed    bool          // no goroutine is started any more
	refused   bool          // a record is: nothing more is sent
	spoilt    bool          // a partition knows something else of the id
	idle      chan struct{} // closed when pending falls to 0; nil while nobody waits
}

// New starts a producer. Close ends it; the client stays the caller's.
func New(cfg Config) *Producer {
	cfg.firstPause, cfg.mostPause = cmp.Or(cfg.firstPause, firstPause), cmp.Or(cfg.mostPause, mostPause)
	p := &Producer{
		cfg: cfg, client: cfg.Client.Kgo, formatter: kmsg.NewRequestFormatter(kmsg.FormatterClientID(cfg.Client.ID)), compressor: cfg.Client.Compressor, largest: int(cfg.Client.MaxRecordBytes),
		missingFor: missingFor, ready: make(chan struct{}), refreshing: make(chan struct{}, 1), stale: make(chan struct{}, 1), room: make(chan struct{}, 1),
		topics: make(map[string]*Topic), brokers: make(map[int32]*broker), addresses: make(map[int32]string),
		memory: memory{limit: cfg.MaxBytes}, workspaces: sync.Pool{New: func() any { return new(workspace) }},
	}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	if cfg.Transaction != nil {
		p.transactions = newTransactions(p, *cfg.Transaction)
	}
	p.running.Go(p.initialize)
	p.running.Go(p.refreshTopics)
	return p
}

// Context ends with the producer.
func (p *Producer) Context() context.Context { return p.ctx }

// Stop ends the producer without waiting. Nothing more is sent, and Failed hears nothing of it.
func (p *Producer) Stop() {
	p.cancel(nil) // without the lock, which the goroutine that appends may hold
}

// Close ends the producer, gives up what is not acknowledged, and waits until nothing is sent any more. What was on its way may
// have arrived.
func (p *Producer) Close() {
	p.cancel(nil)
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.running.Wait()
	p.left.Do(p.leave)
}

// fail ends the producer.
func (p *Producer) fail(err error) {
	if p.ctx.Err() != nil {
		return
	}
	p.ended.Do(func() { p.cfg.Failed(err) })
	if t := p.transactions; t == nil || !t.rollsBack(err) {
		p.cancel(err)
	}
}

// may asks whether something may still be written, and ends the producer if not.
func (p *Producer) may() bool {
	if p.cfg.May == nil || p.cfg.May() {
		return true
	}
	p.fail(ErrStale)
	return false
}

// Ready waits until the producer has its id, or has ended, or ctx has; then the error says why. With a transaction, whatever
// transaction of its id was open has ended then, and no earlier producer of that id can write any more.
func (p *Producer) Ready(ctx context.Context) error {
	select {
	case <-p.ready:
	case <-p.ctx.Done():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return context.Cause(p.ctx)
}

// Room waits until the batches take less than their bound, or the producer or ctx has ended.
func (p *Producer) Room(ctx context.Context) error {
	for {
		p.mu.Lock()
		least := p.memory.limit
		if p.full { // until there is room for more than a few records, or batches would be as small
			least -= least / 4
		}
		p.full = p.memory.used > 0 && p.memory.used >= least && p.ctx.Err() == nil
		full := p.full
		if full {
			p.wakeAll() // nothing lingers now
		}
		p.mu.Unlock()
		if !full {
			return nil
		}
		select {
		case <-p.room:
		case <-p.ctx.Done():
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Begin prepares for some records, which have now as their time; End sends them. Between the two the producer does nothing else,
// so there are to be few, and no other method may be called.
func (p *Producer) Begin(now time.Time) {
	p.mu.Lock()
	p.began, p.now = now, now.UnixMilli()
}

// Append adds a record to a partition of a topic. It does not block.
func (p *Producer) Append(t *Topic, partition int, r *Record) {
	part := t.partitions[partition]
	p.place(part, r).add(&p.memory, r, p.now)
	if !part.busy && !part.listed {
		part.list(p.transactions)
	}
}

// End ends what Begin has begun. It sends the records itself when they are few and nothing is under way to their broker.
func (p *Producer) End() { p.unlock() }

// place finds the batch for a record.
func (p *Producer) place(part *partition, r *Record) *batch {
	size := mostSize(r.Key, r.Value, r.Headers)
	first := part.proven != p.appended
	if n := len(part.queue); n > 0 {
		b := part.queue[n-1]
		most := p.largest
		if b.first {
			most = min(most, p.transactions.mostFirst)
		}
		if !b.closed && b.in == p.appended && b.bytes()+size <= most {
			return b
		}
		if b.first && !b.closed && b.in == p.appended && part.broker != nil {
			part.broker.filled++
		}
		first = first && b.in != p.appended
		if !b.closed {
			b.closed = true
			if part.listed {
				part.broker.stir() // it lingers no more
			}
		}
	}
	b := p.memory.batch()
	b.since = p.began
	if b.in = p.appended; b.in != nil {
		b.in.batches++
		b.first = first
	}
	part.queue = append(part.queue, b)
	p.pending++
	return b
}

// Flush waits until all records are acknowledged, or the producer or ctx has ended.
func (p *Producer) Flush(ctx context.Context) error {
	p.mu.Lock()
	p.flushing++
	p.wakeAll()
	defer func() {
		p.mu.Lock()
		p.flushing--
		p.mu.Unlock()
	}()
	for p.pending > 0 && p.ctx.Err() == nil {
		if p.idle == nil {
			p.idle = make(chan struct{})
		}
		idle := p.idle
		p.mu.Unlock()
		select {
		case <-idle:
		case <-p.ctx.Done():
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		p.mu.Lock()
	}
	p.mu.Unlock()
	return nil
}
