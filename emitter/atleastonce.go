package emitter

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/tidemark-cdc/tidemark/emitter/internal/kclient"
	"github.com/tidemark-cdc/tidemark/emitter/internal/producer"
	"github.com/tidemark-cdc/tidemark/emitter/kafka"
	"github.com/tidemark-cdc/tidemark/offset"
)

// DeliveryConfig bounds a delivery. The zero value is the documented default.
type DeliveryConfig struct {
	// MaxBytes bounds the memory of records that are not acknowledged; 0: 16 MiB, and never more than half of the
	// producer's buffer (buffer.memory). A single row may be larger: it goes alone.
	MaxBytes int

	// Window is how many records may be ahead of the oldest that is not acknowledged; 0: 32768.
	Window int

	// Topics is asked before the first record of a topic; nil: topics exist.
	Topics Topics
}

// Topics makes sure that a topic exists and can be written to; [kafka.Topics] is one.
type Topics interface {
	Ensure(ctx context.Context, topic string) error
}

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

// AtLeastOnce is the [Delivery] that stores offsets after the acknowledgement: a crash repeats what was acknowledged
// since the last save, and loses nothing.
//
// Records are copied from the one batch to those of their partitions, so that its memory is used again at once.
type AtLeastOnce struct {
	cfg      DeliveryConfig
	largest  int // bytes of a record
	tracker  *offset.Tracker
	producer *producer.Producer

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

	mu       sync.Mutex
	err      error
	failed   atomic.Bool   // err is there: asked for each record
	failedAt chan struct{} // closed then
}

// edge is an offset that holds after a record of the batch and all before it.
type edge struct {
	record int
	after  offset.Offset
}

var _ Delivery = (*AtLeastOnce)(nil)

// NewAtLeastOnce returns a delivery over client, which stays the caller's and is to be closed after the delivery.
func NewAtLeastOnce(client *kafka.Client, cfg DeliveryConfig) *AtLeastOnce {
	return newAtLeastOnce(client.Internal(), cfg)
}

func newAtLeastOnce(client *kclient.Client, cfg DeliveryConfig) *AtLeastOnce {
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = defaultMaxBytes
	}
	if client.BufferBytes > 0 {
		cfg.MaxBytes = min(cfg.MaxBytes, client.BufferBytes/2)
	}
	if cfg.Window <= 0 {
		cfg.Window = defaultWindow
	}
	d := &AtLeastOnce{
		cfg:      cfg,
		largest:  int(client.MaxRecordBytes),
		tracker:  offset.NewTracker(cfg.Window),
		known:    make(map[string]*producer.Topic),
		failedAt: make(chan struct{}),
	}
	if client.BufferBytes > 0 && (d.largest <= 0 || d.largest > client.BufferBytes) {
		d.largest = client.BufferBytes
	}
	d.mu.Lock() // against a producer that fails before it is known here
	d.producer = producer.New(producer.Config{
		Client: client, MaxBytes: max(cfg.MaxBytes-batchBytes, batchBytes), Acked: d.acknowledge, Failed: d.refused,
	})
	d.mu.Unlock()
	return d
}

// Batch implements [Delivery].
func (d *AtLeastOnce) Batch(ctx context.Context) (*Batch, error) {
	if d.failed.Load() {
		return nil, d.Err()
	}
	if len(d.batch.Records) >= batchRecords || d.batch.Size() >= batchBytes {
		if err := d.Deliver(ctx); err != nil {
			return nil, err
		}
	}
	return &d.batch, nil
}

// Deliver implements [Delivery].
func (d *AtLeastOnce) Deliver(ctx context.Context) error {
	if d.failed.Load() {
		return d.Err()
	}
	records := d.batch.Records
	if len(records) == 0 {
		return nil
	}
	merged := d.merge(ctx)
	now := time.Now()
	for d.next < len(records) {
		n, err := d.tracker.Room(merged)
		if err == nil {
			err = d.producer.Room(merged)
		}
		if failed := d.Err(); failed != nil {
			return failed
		}
		if err != nil {
			return err
		}
		if n, err = d.deliverable(ctx, records[d.next:], n); err != nil {
			return err
		}
		d.append(records[d.next:d.next+n], d.after(d.next+n-1), now)
		d.next += n
	}
	d.next, d.edge, d.edges = 0, 0, d.edges[:0]
	if cap(d.batch.mem) > 2*batchBytes { // of a large row
		d.batch.mem = nil
	}
	d.batch.Reset()
	return nil
}

// deliverable says how many of the first records can be handed over together, of n at most: those of one topic, up to about as
// much memory as a batch has.
func (d *AtLeastOnce) deliverable(ctx context.Context, records []Record, n int) (int, error) {
	if topic := records[0].Topic; topic != d.topic || d.of == nil {
		of, err := d.ensure(ctx, topic)
		if err != nil {
			return 0, err
		}
		d.topic, d.of = topic, of
	}
	bytes := 0
	for i := range records[:min(n, len(records))] {
		r := &records[i]
		size := recordSize(r)
		if r.Topic != d.topic || bytes > batchBytes {
			return i, nil
		}
		// What cannot be written is refused before anything newer is handed over (I7).
		if size > d.largest {
			return 0, d.fail(refusal(r.Topic, r.Key, size, r.Offset.File, r.Offset.Pos, kerr.MessageTooLarge))
		}
		bytes += size
	}
	return min(n, len(records)), nil
}

// after is the offset that holds after a record of the batch, to be kept when the batch is used again.
func (d *AtLeastOnce) after(record int) offset.Offset {
	after := &d.batch.Records[record].Offset
	for ; d.edge < len(d.edges) && d.edges[d.edge].record <= record; d.edge++ {
		if d.edges[d.edge].record == record {
			after = &d.edges[d.edge].after
		}
	}
	return after.Kept()
}

// append hands records of the present topic over, after which an offset holds.
func (d *AtLeastOnce) append(records []Record, after offset.Offset, now time.Time) {
	one := producer.Record{Group: d.tracker.Sent(len(records), after)}
	d.producer.Begin(now)
	for i := range records {
		r := &records[i]
		one.Key, one.Value, one.Headers = r.Key, r.Value, d.encodedHeaders(r)
		one.File, one.Pos = r.Offset.File, r.Offset.Pos
		d.producer.Append(d.of, d.of.Partition(r.Partition, r.Key, r.Value), &one)
	}
	d.producer.End()
}

// ensure makes sure that a topic is there before its first record.
func (d *AtLeastOnce) ensure(ctx context.Context, topic string) (*producer.Topic, error) {
	if of := d.known[topic]; of != nil {
		return of, nil
	}
	if d.cfg.Topics != nil {
		if err := d.cfg.Topics.Ensure(ctx, topic); err != nil {
			return nil, err
		}
	}
	of, err := d.producer.Topic(ctx, topic)
	if failed := d.Err(); failed != nil {
		return nil, failed
	}
	if err == nil {
		d.known[topic] = of
	}
	return of, err
}

// merge returns a context that ends with ctx and with the delivery. The loop calls with one context all the time.
func (d *AtLeastOnce) merge(ctx context.Context) context.Context {
	if ctx != d.ctx {
		if d.unmerge != nil {
			d.unmerge()
		}
		merged, cancel := context.WithCancelCause(ctx)
		stop := context.AfterFunc(d.producer.Context(), func() { cancel(d.Err()) })
		d.ctx, d.merged = ctx, merged
		d.unmerge = func() { stop(); cancel(nil) }
	}
	return d.merged
}

// encodedHeaders encodes a record's headers; those that many records share only once.
func (d *AtLeastOnce) encodedHeaders(r *Record) []byte {
	if len(r.Headers) == 0 {
		return producer.NoHeaders
	}
	if r.moved {
		d.moved = appendHeaders(d.moved[:0], r.Headers)
		return d.moved
	}
	if d.shared != &r.Headers[0] {
		d.shared = &r.Headers[0]
		d.headers = appendHeaders(nil, r.Headers)
	}
	return d.headers
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
func (d *AtLeastOnce) acknowledge(parts []producer.Part) {
	for len(parts) > 0 {
		group, n := parts[0].Group, 0
		for len(parts) > 0 && parts[0].Group == group {
			n += parts[0].Count
			parts = parts[1:]
		}
		if err := d.tracker.Acked(group, n); err != nil {
			_ = d.fail(err)
		}
	}
}

// refused hears why the producer has ended.
func (d *AtLeastOnce) refused(err error) {
	if r, ok := errors.AsType[*producer.Refused](err); ok {
		err = refusal(r.Topic, r.Key, r.Size, r.File, r.Pos, r.Err)
	} else if errors.Is(err, kerr.ClusterAuthorizationFailed) {
		err = fmt.Errorf("%w; allow it: kafka-acls.sh --add --allow-principal User:… --operation IdempotentWrite --cluster", err)
	}
	_ = d.fail(err)
}

// fail ends the delivery with its first error and returns that.
func (d *AtLeastOnce) fail(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil {
		d.err = err
		d.failed.Store(true)
		close(d.failedAt)
		d.producer.Stop()
	}
	return d.err
}

// refusal says which record Kafka did not take, why, and what can be done.
func refusal(topic string, key []byte, size int, file string, pos int64, cause error) error {
	const shown = 200
	k := "null"
	if key != nil {
		k = string(key[:min(len(key), shown)])
		if len(key) > shown {
			k += "… (" + strconv.Itoa(len(key)) + " bytes)"
		}
	}
	hint := ""
	switch {
	case errors.Is(cause, kerr.MessageTooLarge), errors.Is(cause, kerr.RecordListTooLarge):
		hint = "; raise producer.override.max.request.size of the connector (and, if it is smaller, buffer.memory) and " +
			"max.message.bytes of the topic, then start again: nothing after this record was written"
	case errors.Is(cause, kerr.TopicAuthorizationFailed):
		hint = "; allow it: kafka-acls.sh --add --allow-principal User:… --operation Write --operation Describe --topic " + topic
	case errors.Is(cause, kerr.ClusterAuthorizationFailed):
		hint = "; allow it: kafka-acls.sh --add --allow-principal User:… --operation IdempotentWrite --cluster"
	}
	return fmt.Errorf("topic %s, key %s, %d bytes, offset %s:%d: Kafka does not take the record: %w%s",
		topic, k, size, file, pos, cause, hint)
}

// Boundary implements [Delivery].
func (d *AtLeastOnce) Boundary(_ context.Context, after offset.Offset) error {
	if d.failed.Load() {
		return d.Err()
	}
	if n := len(d.batch.Records); n > 0 {
		if last := len(d.edges) - 1; last >= 0 && d.edges[last].record == n-1 {
			d.edges[last].after = after
		} else {
			d.edges = append(d.edges, edge{n - 1, after})
		}
		return nil
	}
	d.tracker.Boundary(after)
	return nil
}

// Flush implements [Delivery].
func (d *AtLeastOnce) Flush(ctx context.Context) error {
	if err := d.Deliver(ctx); err != nil {
		return err
	}
	if err := d.producer.Flush(ctx); err != nil {
		return fmt.Errorf("waiting for Kafka to acknowledge: %w", err)
	}
	return d.Err()
}

// Safe implements [Delivery].
func (d *AtLeastOnce) Safe() (offset.Offset, bool) { return d.tracker.Safe() }

// Unacked implements [Delivery].
func (d *AtLeastOnce) Unacked() int { return d.tracker.Unacked() }

// Err implements [Delivery].
func (d *AtLeastOnce) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// Done implements [Delivery].
func (d *AtLeastOnce) Done() <-chan struct{} { return d.failedAt }

// Close implements [Delivery].
func (d *AtLeastOnce) Close() {
	_ = d.fail(ErrClosed)
	d.producer.Close()
}
