// Package pipeline is the product's one loop: it pulls events from a source, encodes rows, delivers them with the offset
// that holds after each, and now and then saves what is safe.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// Pipeline moves the changes of one connector. Its fields are set before Run and not changed after.
type Pipeline struct {
	// Open starts the source: at a stored offset, or, when stored is zero, where the configuration says. It may block
	// until ctx is done.
	Open func(ctx context.Context, stored offset.Offset) (binlog.Source, error)
	// Deliver starts a delivery. One is made for each attempt and closed with it: it must share nothing with the one
	// before, which may have given up records that were on their way. One that stores offsets itself gives only those out as
	// safe that are stored.
	Deliver func(ctx context.Context) (emitter.Delivery, error)
	// DeliverFirst says that the offset is to be loaded when Deliver has returned: until then it may still change.
	DeliverFirst bool
	// Transient says whether waiting can heal an error of Open or of the source.
	Transient func(error) bool
	// Withdrawn says that an error is about rights, a password or a certificate. Once the stream has run for a minute, they are
	// waited for, since they were there before. Nil: such an error stops it.
	Withdrawn func(error) bool
	// May says whether this process is still the one to run the connector; nil: it is. It is asked before each attempt, which a false
	// ends Run in place of, with an error that wraps [emitter.ErrStale], and before anything is stored. After a false nothing is
	// flushed or stored at the end of an attempt: another process may have gone on from what is stored.
	May func() bool

	SchemaChange func(ctx context.Context, ev *binlog.SchemaChange) error      // [Output.SchemaChange]
	Schema       func(ctx context.Context, needed *emitter.SchemaNeeded) error // [Output.Schema]

	Emitter *emitter.Emitter
	Store   offset.Store // shared with other pipelines; Save is called for what is safe
	Key     offset.Key

	Heartbeat time.Duration             // [Output.Heartbeat]
	Beat      func(ctx context.Context) // [Output.Beat]
	SkipRows  func(err error)           // [Output.SkipRows]
	Poison    *emitter.Poison           // [Output.Poison]

	MaxRetries int // attempts after an interruption without progress; below 0: without end

	FlushInterval time.Duration // between two saves of the offset
	FlushTimeout  time.Duration // how long a stop waits for Kafka's acknowledgements

	Log *zap.Logger

	hold     hold
	trouble  trouble // the interruption that the stream has not gone on from yet
	ran      bool    // the stream has stored an offset that it has come to
	timedOut bool    // a Kafka transaction took too long behind the stored offset

	stored   offset.Offset // what this process has loaded or stored last
	ended    error         // of the last attempt that streamed
	recalled bool          // the attempt goes on from stored, which is no longer in the store
}

// Run streams until ctx is done, then flushes, stores the offset and returns nil. What waiting can heal is waited for;
// any other error stops the pipeline, after what Kafka has acknowledged is stored, and is returned.
//
// There is one path for the first start, a reconnect and a crash: the stored offset is loaded and the source is opened
// there.
func (p *Pipeline) Run(ctx context.Context) error {
	wait := backoff{first: 500 * time.Millisecond, most: 10 * time.Second}
	retries := 0
	for {
		if !p.may() { // or an attempt would take the transactional id from who is to run now
			return fmt.Errorf("no new attempt is made: %w", emitter.ErrStale)
		}
		began, before := time.Now(), p.stored
		progress, err := p.attempt(ctx)
		switch {
		case err == nil || ctx.Err() != nil && errors.Is(err, ctx.Err()):
			return nil // stopped, or a source that ends
		case !p.heals(err), ctx.Err() != nil && errors.Is(err, offset.ErrUnusable):
			return err
		case ctx.Err() != nil: // the stop found an interruption, which it would have waited for
			p.Log.Info("stopped while the stream was interrupted", zap.Error(err))
			return nil
		}
		if p.stored.Done != before.Done || !p.stored.Equal(before) { // each that is loaded has a Side of its own
			p.timedOut = false
		}
		if errors.Is(err, emitter.ErrTimedOut) {
			if p.timedOut { // so it would go on
				return err
			}
			p.timedOut = true
		}
		if progress || time.Since(began) > wait.most {
			wait.reset()
			retries = 0
		}
		if retries++; p.MaxRetries >= 0 && retries > p.MaxRetries {
			return fmt.Errorf("errors.max.retries=%d is reached: %w", p.MaxRetries, err)
		}
		d := wait.next()
		p.trouble.tell(p.Log, err, d)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(d):
		}
	}
}

// ranFor is how long the stream has to run, and to store offsets, until what it needs counts as set up.
const ranFor = time.Minute

// heals says whether a new attempt can go on after an error.
func (p *Pipeline) heals(err error) bool {
	if errors.Is(err, emitter.ErrFenced) {
		return false // by whoever is to write now
	}
	for _, e := range []error{emitter.ErrUnknownOutcome, emitter.ErrAgain, emitter.ErrTimedOut, emitter.ErrStale} {
		if errors.Is(err, e) {
			return true
		}
	}
	return p.Transient(err) || p.ran && p.Withdrawn != nil && p.Withdrawn(err)
}

// attempt is one life of source and delivery: from the stored offset until something ends it. It made progress if an
// offset was stored.
func (p *Pipeline) attempt(ctx context.Context) (progress bool, err error) {
	life, end := context.WithCancelCause(ctx)
	defer end(nil)
	stored, source, delivery, err := p.connect(life, end)
	if err != nil {
		return false, err
	}
	defer delivery.Close()
	defer source.Close()
	p.trouble.streaming(p.Log, source.Start())
	p.Emitter.Forget()
	p.Emitter.Resume(stored)
	saver := newSaver(p, stored)
	if reader, ok := source.(interface{ Stored(offset.Offset) }); ok {
		saver.told = reader.Stored
		saver.told(stored)
	}
	start := source.Start()
	if p.recalled {
		start, saver.last = stored, offset.Offset{}
	}
	if stored.IsZero() || p.recalled {
		// Without this a crash before the first commit would start over at another place and lose what came between.
		if err := p.storeStart(ctx, start, delivery, saver); err != nil {
			return false, err
		}
	}
	p.hold.again()
	from, began := saver.last, time.Now()
	stop := saver.start(ctx, delivery)
	err = p.stream(ctx, source, delivery, saver)
	stop()
	err = p.finish(ctx, err, delivery, saver)
	p.stored, p.ended = saver.last, err
	p.ran = p.ran || !saver.last.Same(from) && time.Since(began) >= ranFor
	return saver.ours, err
}

// storeStart stores the offset at which the stream begins, by way of the delivery, which may be who stores.
func (p *Pipeline) storeStart(ctx context.Context, start offset.Offset, delivery emitter.Delivery, saver *saver) error {
	err := delivery.Boundary(ctx, start)
	if err == nil {
		err = delivery.Flush(ctx)
	}
	if err == nil {
		err = saver.save(ctx, start)
	}
	return err
}

// connect reaches Kafka and the source at the same time: each takes several answers. The first that fails ends the other by
// way of end, which ends ctx; ctx is not ended otherwise, since what was opened may go on using it. Nothing is open after an error.
func (p *Pipeline) connect(ctx context.Context, end context.CancelCauseFunc) (stored offset.Offset, source binlog.Source, delivery emitter.Delivery, err error) {
	var both sync.WaitGroup
	var first sync.Once
	fail := func(cause error) {
		first.Do(func() {
			err = cause
			end(cause)
		})
	}
	delivered := make(chan struct{})
	both.Go(func() {
		defer close(delivered)
		begun, err := p.Deliver(ctx)
		if err != nil {
			fail(err)
			return
		}
		delivery = begun
	})
	both.Go(func() {
		if p.DeliverFirst {
			if <-delivered; delivery == nil {
				return
			}
		}
		loaded, err := p.Store.Load(ctx, p.Key)
		if p.recalled = err == nil && loaded.IsZero() && !p.stored.IsZero(); p.recalled {
			loaded, err = p.recall()
		}
		if err != nil {
			fail(err)
			return
		}
		opened, err := p.Open(ctx, loaded)
		if err != nil {
			fail(err)
			return
		}
		stored, source = loaded, opened
	})
	both.Wait()
	if err == nil {
		return stored, source, delivery, nil
	}
	if source != nil {
		source.Close()
	}
	if delivery != nil {
		delivery.Close()
	}
	return stored, nil, nil, err
}

// stream is the loop. It returns nil at the source's end, else the error that ended it.
func (p *Pipeline) stream(ctx context.Context, source binlog.Source, delivery emitter.Delivery, saver *saver) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { // what fails beside the loop ends a Read that waits for the server
		select {
		case <-ctx.Done():
		case <-delivery.Done():
			cancel(delivery.Err())
		case err := <-saver.broken:
			cancel(err)
		}
	}()
	out := Output{
		Emitter: p.Emitter, Delivery: delivery, Schema: p.Schema, Heartbeat: p.Heartbeat, Beat: p.Beat, SkipRows: p.SkipRows, Poison: p.Poison,
		beat: time.Now(),
	}
	if p.SchemaChange != nil {
		out.SchemaChange = func(ctx context.Context, ev *binlog.SchemaChange) error {
			if err := p.saveBefore(ctx, ev, delivery, saver); err != nil {
				return err
			}
			if !p.may() {
				return errNotOurs
			}
			return p.SchemaChange(ctx, ev)
		}
	}
	if reader, ok := source.(interface {
		BeforeWaiting(func(context.Context) error)
	}); ok {
		reader.BeforeWaiting(delivery.Deliver)
		out.Later = true
	}
	for {
		var event binlog.Event
		err := p.hold.wait(ctx, delivery)
		if err == nil {
			event, err = source.Read(ctx)
		}
		if err == io.EOF { // bare: within another error it is a connection that the server closed
			return delivery.Err()
		}
		if err == nil {
			err = out.Event(ctx, event)
		}
		if err == nil {
			continue
		}
		switch failed := delivery.Err(); {
		case failed != nil:
			return failed
		case ctx.Err() != nil:
			return context.Cause(ctx)
		default:
			return err
		}
	}
}

// mostVersions is how many versions of a table the schema store may have to keep for a restart.
const mostVersions = 16

// saveBefore saves what lies before a statement when a table of it has been altered often since the last save: the store keeps
// all versions that a restart may need, and writes them with each statement.
func (p *Pipeline) saveBefore(ctx context.Context, ev *binlog.SchemaChange, delivery emitter.Delivery, saver *saver) error {
	if !slices.ContainsFunc(ev.Tables, func(t schema.StoredTable) bool { return len(t.Versions) > mostVersions }) {
		return nil
	}
	if err := delivery.Flush(ctx); err != nil {
		return err
	}
	saver.now(ctx)
	return nil
}

// finish ends an attempt that cause ended: it waits for the acknowledgements that are still due and stores what is safe,
// each for the flush timeout at most, and says what the attempt comes to. A stop is no fault, but must not hide one.
func (p *Pipeline) finish(ctx context.Context, cause error, delivery emitter.Delivery, saver *saver) error {
	if !p.may() {
		return cause
	}
	stopped := ctx.Err() != nil && errors.Is(cause, ctx.Err())
	flushed := p.flush(ctx, delivery)
	saved := p.save(ctx, delivery, saver)
	if stopped {
		cause = nil
		if errors.Is(flushed, ctx.Err()) {
			flushed = nil // what was being delivered was stopped, too
		}
	}
	if errors.Is(saved, errNotOurs) && (stopped || cause != nil) {
		saved = nil // as at the beginning; it has turned out meanwhile
	}
	if saved != nil && !errors.Is(saved, offset.ErrUnusable) && (stopped && p.heals(saved) || cause != nil && p.heals(cause)) {
		p.Log.Warn("the offset could not be stored; what Kafka has acknowledged since the last one is sent again",
			zap.Stringer("stored", saver.last), zap.Error(saved))
		saved = nil
	}
	// The same fault may end the loop and meet the flush and the save: it is said once.
	if cause != nil && flushed != nil && cause.Error() == flushed.Error() {
		flushed = nil
	}
	if cause != nil && saved != nil && cause.Error() == saved.Error() {
		saved = nil
	}
	err := errors.Join(cause, flushed, saved)
	if stopped && err == nil {
		p.Log.Info("stopped", zap.Stringer("offset", saver.last))
		p.sayPrepared(saver.last)
	}
	return err
}

// errNotOurs is why something is not stored. It is an emitter.ErrStale.
var errNotOurs error = notOurs{}

type notOurs struct{}

func (notOurs) Error() string {
	return "another process may run this connector by now, so nothing is stored"
}
func (notOurs) Unwrap() error { return emitter.ErrStale }

func (p *Pipeline) may() bool { return p.May == nil || p.May() }

// sayPrepared says what a Debezium that takes over would lose: it writes the rows of an XA transaction when it is prepared,
// and Tidemark when it is committed.
func (p *Pipeline) sayPrepared(o offset.Offset) {
	if o.Side == nil || len(o.Side.XA) == 0 {
		return
	}
	list := make([]string, len(o.Side.XA))
	for i, x := range o.Side.XA {
		list[i] = fmt.Sprintf("%s (prepared at %s:%d)", x.XID, x.File, x.Pos)
	}
	p.Log.Warn("XA transactions are prepared and neither committed nor rolled back; Tidemark writes their rows at XA COMMIT, after a restart, too, but a Debezium that takes over here would not: "+
		"before that, commit them or roll them back (XA RECOVER lists them) while Tidemark runs", zap.Strings("xa", list))
}

func (p *Pipeline) flush(ctx context.Context, delivery emitter.Delivery) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.FlushTimeout)
	defer cancel()
	err := delivery.Flush(ctx)
	if errors.Is(err, context.DeadlineExceeded) && delivery.Err() == nil {
		p.Log.Warn("Kafka has not acknowledged all records in time; they are sent again after the next start",
			zap.Int64("offset.flush.timeout.ms", p.FlushTimeout.Milliseconds()), zap.Error(err))
		return nil
	}
	return err
}

func (p *Pipeline) save(ctx context.Context, delivery emitter.Delivery, saver *saver) error {
	safe, ok := delivery.Safe()
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.FlushTimeout)
	defer cancel()
	return saver.save(ctx, safe)
}
