package emitter

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/emitter/internal/kclient"
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
	chunkRecords = 64

	// recordFraming is what a record and its batch have around key, value and headers at most, in bytes.
	recordFraming = 120
	headerFraming = 10
)

// ErrClosed is the error of a [Delivery] after its Close.
var ErrClosed = errors.New("the delivery is closed")

// AtLeastOnce is the [Delivery] that stores offsets after the acknowledgement: a crash repeats what was acknowledged
// since the last save, and loses nothing.
//
// Batches of memory go round: open, then full and in flight, then free again when every record is acknowledged.
type AtLeastOnce struct {
	client  *kgo.Client
	cfg     DeliveryConfig
	largest int // bytes of a record
	tracker *offset.Tracker
	acked   func(*kgo.Record, error)

	// Ends with the first failure and with Close; records carry it, so that those not yet sent are given up then.
	hard   context.Context
	cancel context.CancelFunc

	// Of the goroutine that calls the methods.
	open    *memory
	next    int // the first record of the open batch that is not handed over
	known   map[string]struct{}
	topic   string             // the last one known
	headers *Header            // identifies the headers last converted …
	shared  []kgo.RecordHeader // … to these
	ctx     context.Context    // the caller's last …
	merged  context.Context    // … which also ends with hard
	unmerge func()

	mu       sync.Mutex
	free     []*memory
	used     int           // memories open or in flight
	bytes    int           // of these
	room     chan struct{} // told when used falls
	err      error
	failedAt chan struct{}
}

var _ Delivery = (*AtLeastOnce)(nil)

// memory is a batch and what franz-go needs of its records.
type memory struct {
	Batch
	cost    int      // bytes accounted for
	chunks  []*chunk // franz-go holds pointers into them, so they never move
	count   int      // records in chunks
	headers []kgo.RecordHeader
	pending atomic.Int64 // records without acknowledgement, and 1 while the batch is open
}

// chunk is some records as franz-go wants them.
type chunk struct {
	records [chunkRecords]kgo.Record
	tokens  [chunkRecords]token
}

// token rides in a record's Context, the one field that franz-go leaves alone, and tells the acknowledgement which
// record it is for. As a context it never ends.
type token struct {
	memory *memory
	seq    uint64
	file   string // of the record's offset
	pos    int64
}

func (*token) Deadline() (time.Time, bool) { return time.Time{}, false }
func (*token) Done() <-chan struct{}       { return nil }
func (*token) Err() error                  { return nil }
func (*token) Value(any) any               { return nil }

// NewAtLeastOnce returns a delivery over client, which stays the caller's and is to be closed after the delivery. A
// client serves one delivery only: franz-go fails all records of a partition with one that is given up, those of a later
// delivery too.
func NewAtLeastOnce(client *kafka.Client, cfg DeliveryConfig) *AtLeastOnce {
	return newAtLeastOnce(client.Internal(), cfg)
}

func newAtLeastOnce(client *kclient.Client, cfg DeliveryConfig) *AtLeastOnce {
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = defaultMaxBytes
	}
	if client.BufferBytes > 0 {
		// Then the producer's own buffer, which counts headers too, is never full: waiting happens in Batch, where it can
		// be cancelled.
		cfg.MaxBytes = min(cfg.MaxBytes, client.BufferBytes/2)
	}
	if cfg.Window <= 0 {
		cfg.Window = defaultWindow
	}
	d := &AtLeastOnce{
		client:   client.Kgo,
		cfg:      cfg,
		largest:  int(client.MaxRecordBytes),
		tracker:  offset.NewTracker(cfg.Window),
		known:    make(map[string]struct{}),
		room:     make(chan struct{}, 1),
		failedAt: make(chan struct{}),
	}
	if client.BufferBytes > 0 && (d.largest <= 0 || d.largest > client.BufferBytes) {
		d.largest = client.BufferBytes
	}
	d.acked = d.acknowledge
	d.hard, d.cancel = context.WithCancel(context.Background())
	return d
}

// Batch implements [Delivery].
func (d *AtLeastOnce) Batch(ctx context.Context) (*Batch, error) {
	select {
	case <-d.failedAt:
		return nil, d.Err()
	default:
	}
	if s := d.open; s != nil && len(s.Records)-d.next+s.count < batchRecords && s.Size() < batchBytes {
		return &s.Batch, nil
	}
	if err := d.Deliver(ctx); err != nil {
		return nil, err
	}
	var records []Record
	var headers []Header
	if s := d.open; s != nil {
		// Only franz-go's view of the records has to live on.
		records, headers = s.Records, s.Batch.headers
		s.Records, s.Batch.headers = nil, nil
		d.open = nil
		d.release(s, 1)
	}
	s, err := d.memory(ctx)
	if err != nil {
		return nil, err
	}
	if records != nil {
		s.Records, s.Batch.headers = records, headers
	}
	d.open = s
	return &s.Batch, nil
}

// memory takes a free memory or makes one, waiting while too many bytes are in flight.
func (d *AtLeastOnce) memory(ctx context.Context) (*memory, error) {
	for {
		d.mu.Lock()
		if d.err != nil {
			d.mu.Unlock()
			return nil, d.err
		}
		if d.used == 0 || d.bytes+batchBytes <= d.cfg.MaxBytes {
			var s *memory
			if n := len(d.free); n > 0 {
				s = d.free[n-1]
				d.free = d.free[:n-1]
			} else {
				s = new(memory)
				s.mem = make([]byte, 0, batchBytes+batchBytes/8)
			}
			s.pending.Store(1)
			s.cost = s.size()
			d.used++
			d.bytes += s.cost
			d.mu.Unlock()
			return s, nil
		}
		d.mu.Unlock()
		select {
		case <-d.room:
		case <-d.failedAt:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// size is what the memory takes, roughly.
func (s *memory) size() int {
	return cap(s.mem) + len(s.chunks)*int(unsafe.Sizeof(chunk{})) + cap(s.headers)*int(unsafe.Sizeof(kgo.RecordHeader{}))
}

// slot is the place for the next record.
func (s *memory) slot() (*kgo.Record, *token) {
	c, i := s.count/chunkRecords, s.count%chunkRecords
	if c == len(s.chunks) {
		s.chunks = append(s.chunks, new(chunk))
	}
	s.count++
	return &s.chunks[c].records[i], &s.chunks[c].tokens[i]
}

// release drops n holds on a memory and frees it with the last.
func (d *AtLeastOnce) release(s *memory, n int64) {
	if s.pending.Add(-n) != 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.used--
	d.bytes -= s.cost
	if cap(s.mem) <= 2*batchBytes {
		s.Reset()
		clear(s.headers)
		s.count, s.headers = 0, s.headers[:0]
		d.free = append(d.free, s)
	}
	select {
	case d.room <- struct{}{}:
	default:
	}
}

// Deliver implements [Delivery].
func (d *AtLeastOnce) Deliver(ctx context.Context) error {
	if err := d.Err(); err != nil {
		return err
	}
	s := d.open
	if s == nil || len(s.Records) == 0 {
		return nil
	}
	merged := d.merge(ctx)
	now := time.Now()
	for ; d.next < len(s.Records); d.next++ {
		select {
		case <-d.failedAt:
			return d.Err()
		default:
		}
		r := &s.Records[d.next]
		if r.Topic != d.topic {
			if err := d.ensure(ctx, r.Topic); err != nil {
				return err
			}
		}
		// What franz-go would refuse is refused here, before anything newer is handed over (I7).
		if n := recordSize(r); n > d.largest {
			return d.fail(refusal(r.Topic, r.Key, n, r.Offset.File, r.Offset.Pos, kerr.MessageTooLarge))
		}
		seq, err := d.tracker.Sent(merged, r.Offset)
		if err != nil {
			if failed := d.Err(); failed != nil {
				return failed
			}
			return err
		}
		kr, t := s.slot()
		*t = token{memory: s, seq: seq, file: r.Offset.File, pos: r.Offset.Pos}
		*kr = kgo.Record{
			Topic: r.Topic, Key: r.Key, Value: r.Value, Headers: d.kgoHeaders(s, r), Timestamp: now, Context: t,
		}
		if r.Partition >= 0 {
			kr.Partition = kclient.Fixed(r.Partition)
		}
		s.pending.Add(1)
		d.client.Produce(d.hard, kr, d.acked)
	}
	d.next = 0
	clear(s.Records)
	clear(s.Batch.headers)
	s.Records, s.Batch.headers, s.Batch.members = s.Records[:0], s.Batch.headers[:0], 0
	d.mu.Lock()
	d.bytes -= s.cost
	s.cost = s.size()
	d.bytes += s.cost
	d.mu.Unlock()
	return nil
}

// ensure makes sure that a topic is there before its first record.
func (d *AtLeastOnce) ensure(ctx context.Context, topic string) error {
	if _, ok := d.known[topic]; !ok {
		if d.cfg.Topics != nil {
			if err := d.cfg.Topics.Ensure(ctx, topic); err != nil {
				return err
			}
		}
		d.known[topic] = struct{}{}
	}
	d.topic = topic
	return nil
}

// merge returns a context that ends with ctx and with the delivery. The loop calls with one context all the time.
func (d *AtLeastOnce) merge(ctx context.Context) context.Context {
	if ctx != d.ctx {
		if d.unmerge != nil {
			d.unmerge()
		}
		merged, cancel := context.WithCancelCause(ctx)
		stop := context.AfterFunc(d.hard, func() { cancel(d.Err()) })
		d.ctx, d.merged = ctx, merged
		d.unmerge = func() { stop(); cancel(nil) }
	}
	return d.merged
}

// kgoHeaders converts a record's headers; those that many records share only once.
func (d *AtLeastOnce) kgoHeaders(s *memory, r *Record) []kgo.RecordHeader {
	if len(r.Headers) == 0 {
		return nil
	}
	if r.moved {
		start := len(s.headers)
		for _, h := range r.Headers {
			s.headers = append(s.headers, kgo.RecordHeader{Key: h.Name, Value: h.Value})
		}
		return s.headers[start:len(s.headers):len(s.headers)]
	}
	if d.headers != &r.Headers[0] || len(d.shared) != len(r.Headers) {
		d.headers = &r.Headers[0]
		d.shared = make([]kgo.RecordHeader, len(r.Headers))
		for i, h := range r.Headers {
			d.shared[i] = kgo.RecordHeader{Key: h.Name, Value: h.Value}
		}
	}
	return d.shared
}

// recordSize is at least what a record takes in a batch of its own.
func recordSize(r *Record) int {
	n := len(r.Key) + len(r.Value) + recordFraming
	for i := range r.Headers {
		n += len(r.Headers[i].Name) + len(r.Headers[i].Value) + headerFraming
	}
	return n
}

// acknowledge is franz-go's promise. It must not block: all promises of a client run one after the other.
func (d *AtLeastOnce) acknowledge(r *kgo.Record, err error) {
	t := r.Context.(*token)
	if err != nil {
		select {
		case <-d.failedAt: // given up because of an earlier one, or by Close
		default:
			_ = d.fail(refusal(r.Topic, r.Key, len(r.Key)+len(r.Value), t.file, t.pos, err))
		}
	} else if err := d.tracker.Acked(t.seq); err != nil {
		_ = d.fail(err)
	}
	d.release(t.memory, 1)
}

// fail ends the delivery with its first error and returns that.
func (d *AtLeastOnce) fail(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil {
		d.err = err
		close(d.failedAt)
		d.cancel()
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
func (d *AtLeastOnce) Boundary(ctx context.Context, after offset.Offset) error {
	if err := d.Deliver(ctx); err != nil {
		return err
	}
	d.tracker.Boundary(after)
	return nil
}

// Flush implements [Delivery].
func (d *AtLeastOnce) Flush(ctx context.Context) error {
	if err := d.Deliver(ctx); err != nil {
		return err
	}
	if err := d.client.Flush(ctx); err != nil {
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
func (d *AtLeastOnce) Close() { _ = d.fail(ErrClosed) }
