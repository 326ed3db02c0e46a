package emitter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/tidemark-cdc/tidemark/emitter/internal/kclient"
	"github.com/tidemark-cdc/tidemark/emitter/internal/producer"
	"github.com/tidemark-cdc/tidemark/offset"
)

const (
	defaultMaxBytes = 16 << 20
	defaultWindow   = 1 << 15

	// A batch is full with so many bytes or records.
	batchBytes   = 256 << 10
	batchRecords = 512

	// recordFraming is what a record and its batch have around key, value and headers at most, in bytes.
	recordFraming = 120
	headerFraming = 10
)

// ErrClosed is the error of a [Delivery] after its Close.
var ErrClosed = errors.New("the delivery is closed")

// handover is what the deliveries have in common: the one batch that the emitter appends to, the way of its records to the
// producer, and what ends that. Records are copied to the batches of their partitions, so that the memory of the one batch is
// used again at once.
type handover struct {
	cfg      DeliveryConfig
	client   *kclient.Client
	largest  int // bytes of a record
	tracker  *offset.Tracker
	producer *producer.Producer
	to       taker

	// Of the goroutine that calls the methods.
	batch   Batch
	next    int    // the first record of the batch that is not handed over
	edges   []edge // behind records of the batch, in order
	edge    int    // the first one that is not announced
	known   map[string]*producer.Topic
	topic   string // the last one known …
	of      *producer.Topic
	shared  *Header         // identifies the headers last encoded …
	headers []byte          // … to these
	moved   []byte          // those of one record
	ctx     context.Context // the caller's last …
	merged  context.Context // … which also ends with the delivery
	unmerge func()

	life     context.Context // ends with the delivery
	mu       sync.Mutex
	err      error
	ended    atomic.Bool   // err is there: asked for each record
	failedAt chan struct{} // closed then
	fails    context.CancelFunc
	aborts   bool // the producer is still needed after that, to roll back
}

// taker hands records of one topic to the producer, after which an offset holds.
type taker interface {
	take(records []Record, after offset.Offset, now time.Time)
}

// edge is an offset that holds after a record of the batch and all before it.
type edge struct {
	record int
	after  offset.Offset
}

// start starts the producer. With a transaction it writes in transactions.
func (h *handover) start(client *kclient.Client, cfg DeliveryConfig, transaction *producer.Transaction, to taker) {
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = defaultMaxBytes
	}
	if client.BufferBytes > 0 {
		cfg.MaxBytes = min(cfg.MaxBytes, client.BufferBytes/2)
	}
	if cfg.Window <= 0 {
		cfg.Window = defaultWindow
	}
	h.cfg, h.client, h.to = cfg, client, to
	h.largest = int(client.MaxRecordBytes)
	h.tracker = offset.NewTracker(cfg.Window)
	h.known = make(map[string]*producer.Topic)
	h.failedAt = make(chan struct{})
	h.aborts = transaction != nil
	h.life, h.fails = context.WithCancel(context.Background())
	if client.BufferBytes > 0 && (h.largest <= 0 || h.largest > client.BufferBytes) {
		h.largest = client.BufferBytes
	}
	h.mu.Lock() // against a producer that fails before it is known here
	h.producer = producer.New(producer.Config{
		Client: client, MaxBytes: max(cfg.MaxBytes-batchBytes, batchBytes), Acked: h.acknowledge, Failed: h.refused, Transaction: transaction, May: cfg.May,
		Poison: cfg.spare(), Missing: cfg.missing(),
	})
	h.mu.Unlock()
}

// full says that the batch has enough records or bytes to be handed over.
func (h *handover) full() bool {
	return len(h.batch.Records) >= batchRecords || h.batch.Size() >= batchBytes
}

// failed is what has ended the delivery, nil while nothing has.
func (h *handover) failed() error {
	if h.ended.Load() {
		return h.Err()
	}
	return nil
}

// hand hands over the records of the batch before one of them. When ctx ends first, the rest is kept for the next call.
func (h *handover) hand(ctx context.Context, before int) error {
	records := h.batch.Records[:before]
	merged := h.merge(ctx)
	now := time.Now()
	for h.next < len(records) {
		n, err := h.tracker.Room(merged)
		if err == nil {
			err = h.producer.Room(merged)
		}
		if failed := h.Err(); failed != nil {
			return failed
		}
		if err != nil {
			return err
		}
		if n, err = h.deliverable(ctx, records[h.next:], n); err != nil {
			return err
		}
		h.to.take(records[h.next:h.next+n], h.after(h.next+n-1), now)
		h.next += n
	}
	return nil
}

// reset makes the batch empty.
func (h *handover) reset() {
	h.next, h.edge, h.edges = 0, 0, h.edges[:0]
	h.batch.empty()
}

// bound notes that an offset holds behind the last record of the batch, which is not empty.
func (h *handover) bound(after offset.Offset) {
	record := len(h.batch.Records) - 1
	if last := len(h.edges) - 1; last >= 0 && h.edges[last].record == record {
		h.edges[last].after = after
	} else {
		h.edges = append(h.edges, edge{record, after})
	}
}

// put has the producer append records of the present topic, as some of a group. The producer is between Begin and End.
func (h *handover) put(records []Record, group uint64) {
	one := producer.Record{Group: group}
	left := 0
	for i := range records {
		r := &records[i]
		if r.left {
			left++
			continue
		}
		one.Key, one.Value, one.Headers = r.Key, r.Value, h.encodedHeaders(r)
		one.File, one.Pos = r.Offset.File, r.Offset.Pos
		h.producer.Append(h.of, h.of.Partition(r.Partition, r.Key, r.Value), &one)
	}
	if left > 0 {
		h.acknowledge([]producer.Part{{Group: group, Count: left}})
	}
}

// deliverable says how many of the first records can be handed over together, of n at most: those of one topic, up to about as
// much memory as a batch has.
func (h *handover) deliverable(ctx context.Context, records []Record, n int) (int, error) {
	if topic := records[0].Topic; topic != h.topic || h.of == nil {
		of, err := h.ensure(ctx, topic)
		if err != nil {
			return 0, err
		}
		h.topic, h.of = topic, of
	}
	dead := h.cfg.Poison != nil && h.topic == h.cfg.Poison.Topic
	bytes := 0
	for i := range records[:min(n, len(records))] {
		r := &records[i]
		size := recordSize(r)
		if r.Topic != h.topic || bytes > batchBytes {
			return i, nil
		}
		if dead && !r.note {
			return 0, h.fail(fmt.Errorf("topic %s%s, offset %s:%d: this is errors.deadletterqueue.topic.name, too, so notes would stand among the events; "+
				"give the dead letters a topic of their own. Nothing from this record on was written", r.Topic, where(r.Value), r.Offset.File, r.Offset.Pos))
		}
		// What cannot be written is refused before anything newer is handed over (I7).
		if size > h.largest && !r.left {
			if h.cfg.Poison == nil || r.Topic == h.cfg.Poison.Topic {
				return 0, h.fail(refusal(h.client, tooLarge(r, size, h.largest)))
			}
			if h.cfg.Poison.tooLarge(r, size, h.largest); i > 0 {
				return i, nil
			}
			return h.deliverable(ctx, records, n) // it may be of another topic now
		}
		bytes += size
	}
	return min(n, len(records)), nil
}

// after is the offset that holds after a record of the batch, to be kept when the batch is used again.
func (h *handover) after(record int) offset.Offset {
	after := &h.batch.Records[record].Offset
	for ; h.edge < len(h.edges) && h.edges[h.edge].record <= record; h.edge++ {
		if h.edges[h.edge].record == record {
			after = &h.edges[h.edge].after
		}
	}
	return after.Kept()
}

// ensure makes sure that a topic is there before its first record.
func (h *handover) ensure(ctx context.Context, topic string) (*producer.Topic, error) {
	if of := h.known[topic]; of != nil {
		return of, nil
	}
	if h.cfg.Topics != nil {
		if err := h.cfg.Topics.Ensure(ctx, topic); err != nil {
			return nil, err
		}
	}
	of, err := h.producer.Topic(h.merge(ctx), topic) // the producer may go on for a while when the delivery has ended
	if failed := h.Err(); failed != nil {
		return nil, failed
	}
	if err == nil {
		h.known[topic] = of
	}
	return of, err
}

// merge returns a context that ends with ctx and with the delivery. The loop calls with one context all the time.
func (h *handover) merge(ctx context.Context) context.Context {
	if ctx != h.ctx {
		if h.unmerge != nil {
			h.unmerge()
		}
		merged, cancel := context.WithCancelCause(ctx)
		stop := context.AfterFunc(h.life, func() { cancel(h.Err()) })
		h.ctx, h.merged = ctx, merged
		h.unmerge = func() { stop(); cancel(nil) }
	}
	return h.merged
}

// encodedHeaders encodes a record's headers; those that many records share only once.
func (h *handover) encodedHeaders(r *Record) []byte {
	if len(r.Headers) == 0 {
		return producer.NoHeaders
	}
	if r.moved {
		h.moved = appendHeaders(h.moved[:0], r.Headers)
		return h.moved
	}
	if h.shared != &r.Headers[0] {
		h.shared = &r.Headers[0]
		h.headers = appendHeaders(nil, r.Headers)
	}
	return h.headers
}

func appendHeaders(b []byte, headers []Header) []byte {
	b = producer.AppendHeaderCount(b, len(headers))
	for _, h := range headers {
		b = producer.AppendHeader(b, h.Name, h.Value)
	}
	return b
}

// recordSize is at least what a record takes in a batch of its own.
func recordSize(r *Record) int {
	n := len(r.Key) + len(r.Value) + recordFraming
	for i := range r.Headers {
		n += len(r.Headers[i].Name) + len(r.Headers[i].Value) + headerFraming
	}
	return n
}

// acknowledge hears of the records that Kafka has.
func (h *handover) acknowledge(parts []producer.Part) {
	for len(parts) > 0 {
		group, n := parts[0].Group, 0
		for len(parts) > 0 && parts[0].Group == group {
			n += parts[0].Count
			parts = parts[1:]
		}
		if group == untracked {
			continue
		}
		if err := h.tracker.Acked(group, n); err != nil {
			_ = h.fail(err)
		}
	}
}

// untracked is the group of records that are not the emitter's.
const untracked = 1<<64 - 1

// refused hears why the producer has ended.
func (h *handover) refused(err error) {
	if r, ok := errors.AsType[*producer.Refused](err); ok {
		err = refusal(h.client, r)
	} else if errors.Is(err, kerr.ClusterAuthorizationFailed) {
		err = fmt.Errorf("%w; allow it: %s --operation IdempotentWrite --cluster", err, h.client.Allow)
	}
	_ = h.fail(err)
}

// fail ends the delivery with its first error and returns that. Nothing more is handed over.
func (h *handover) fail(err error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil {
		h.err = err
		h.ended.Store(true)
		close(h.failedAt)
		h.fails()
		if !h.aborts {
			h.producer.Stop()
		}
	}
	return h.err
}

// Err implements [Delivery].
func (h *handover) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// Done implements [Delivery].
func (h *handover) Done() <-chan struct{} { return h.failedAt }
