package pipeline

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/offset"
)

// flushed counts the calls of Flush, and does something before each.
type flushed struct {
	*instant
	before func() // nil: nothing
	calls  atomic.Int32
}

func (f *flushed) Flush(ctx context.Context) error {
	f.calls.Add(1)
	if f.before != nil {
		f.before()
	}
	return f.instant.Flush(ctx)
}

// fed is a source whose events a test gives; it fails with err when there are no more.
type fed struct {
	steps <-chan binlog.Event
	err   error
}

func (f *fed) Start() offset.Offset { return at(100) }
func (f *fed) Close() error         { return nil }
func (f *fed) Read(ctx context.Context) (binlog.Event, error) {
	select {
	case ev, more := <-f.steps:
		if !more {
			return nil, f.err
		}
		return ev, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A process that is not the one to run the connector any more stores nothing, neither now and then nor at the end, and sends
// nothing more. When it is again, it stores again.
func TestI2_NothingIsStoredWithoutTheLock(t *testing.T) {
	for name, cause := range map[string]error{"stopped": nil, "interrupted for good": errors.New("the source is broken")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &memoryStore{saved: []offset.Offset{at(100)}}
				var may atomic.Bool
				may.Store(true)
				delivery := &flushed{instant: newInstant()}
				steps := make(chan binlog.Event)
				p, _, logs := newPipeline(store, nil)
				p.Open = func(context.Context, offset.Offset) (binlog.Source, error) {
					return &fed{steps: steps, err: cause}, nil
				}
				p.Deliver = func(context.Context) (emitter.Delivery, error) { return delivery, nil }
				p.May = may.Load
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				done := make(chan error, 1)
				go func() { done <- p.Run(ctx) }()
				step := func(pos int64) {
					steps <- &binlog.Boundary{Offset: at(pos)}
					time.Sleep(2700 * time.Millisecond) // not when an offset is stored
				}
				step(200)
				may.Store(false)
				step(300)
				may.Store(true)
				step(400)
				may.Store(false)
				step(500)
				if cause == nil {
					cancel()
				} else {
					close(steps)
				}
				if err := <-done; !errors.Is(err, cause) {
					t.Errorf("ended with %v, want %v", err, cause)
				}
				if got := store.positions(); !slices.Equal(got, []int64{100, 200, 400}) {
					t.Errorf("stored %v", got)
				}
				if n := delivery.calls.Load(); n != 0 {
					t.Errorf("flushed %d times", n)
				}
				if n := logs.FilterMessageSnippet("could not be stored").Len(); n != 0 {
					t.Error("whoever has the lock to hold says why nothing is stored, and this did, too")
				}
			})
		})
	}
}

// A stop is one in order though it turns out in its last moments that another process may run the connector: at the stop's own flush, or at
// the one behind the stream's first offset.
func TestI2_AStopThatIsNotSureOfTheLock(t *testing.T) {
	for name, stored := range map[string][]offset.Offset{"streaming": {at(100)}, "at its beginning": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &memoryStore{saved: stored}
				var lost atomic.Bool
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				delivery := &flushed{instant: newInstant(), before: func() {
					lost.Store(true)
					cancel()
				}}
				steps := make(chan binlog.Event)
				p, _, _ := newPipeline(store, nil)
				p.Open = func(context.Context, offset.Offset) (binlog.Source, error) { return &fed{steps: steps}, nil }
				p.Deliver = func(context.Context) (emitter.Delivery, error) { return delivery, nil }
				p.May = func() bool { return !lost.Load() }
				done := make(chan error, 1)
				go func() { done <- p.Run(ctx) }()
				if stored != nil {
					steps <- &binlog.Boundary{Offset: at(200)}
					synctest.Wait()
					cancel()
				}
				if err := <-done; err != nil {
					t.Errorf("ended with %v", err)
				}
				if n := delivery.calls.Load(); n != 1 {
					t.Errorf("flushed %d times", n)
				}
				if got := store.positions(); len(got) != len(stored) {
					t.Errorf("stored %v", got)
				}
			})
		})
	}
}

// A schema change is not made durable without the lock: it would overwrite what the one that has it knows.
func TestI11_NoDefinitionIsStoredWithoutTheLock(t *testing.T) {
	for _, may := range []bool{true, false} {
		steps := make(chan binlog.Event, 1)
		steps <- &binlog.SchemaChange{Info: binlog.Info{File: "mysql-bin.000001", Pos: 200}}
		close(steps)
		store := &memoryStore{saved: []offset.Offset{at(100)}}
		p, _, _ := newPipeline(store, newInstant)
		p.Open = func(context.Context, offset.Offset) (binlog.Source, error) {
			return &fed{steps: steps, err: io.EOF}, nil
		}
		stored := false
		p.SchemaChange = func(context.Context, *binlog.SchemaChange) error {
			stored = true
			return nil
		}
		p.May = func() bool { return may }
		if err := p.Run(t.Context()); stored != may || (err == nil) != may {
			t.Errorf("may %v: stored %v, %v", may, stored, err)
		}
	}
}

// A process that may not run the connector makes no attempt: it would take the transactional id from the one that may.
func TestNoAttemptWithoutTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var may atomic.Bool
		may.Store(true)
		store := &memoryStore{saved: []offset.Offset{at(1)}}
		p, opened, _ := newPipeline(store, newInstant)
		p.May = may.Load
		open := p.Open
		p.Open = func(ctx context.Context, stored offset.Offset) (binlog.Source, error) {
			source, err := open(ctx, stored)
			may.Store(false)
			return source, errors.Join(err, io.ErrUnexpectedEOF)
		}
		p.Transient = func(error) bool { return true }
		if err := p.Run(t.Context()); !errors.Is(err, emitter.ErrStale) || len(*opened) != 1 {
			t.Errorf("%d attempts: %v", len(*opened), err)
		}
	})
}
