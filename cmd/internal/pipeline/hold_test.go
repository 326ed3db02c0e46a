package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/offset"
)

// steady is a source that gives a boundary each second, and counts them.
type steady struct {
	mu  sync.Mutex
	pos int64
}

func (s *steady) Start() offset.Offset { return at(1) }
func (s *steady) Close() error         { return nil }
func (s *steady) Read(ctx context.Context) (binlog.Event, error) {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pos++
	return &binlog.Boundary{Offset: at(s.pos)}, nil
}

func (s *steady) read() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pos
}

func (s *memoryStore) fails(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

// TestI1_FullDiskKeepsTheStreamBack: while the offset cannot be stored, the stream goes on for a minute and then waits, so that what
// a crash repeats is bounded. It goes on by itself, each thing is said once, and no offset is stored that was not.
func TestI1_FullDiskKeepsTheStreamBack(t *testing.T) {
	for _, errno := range []error{syscall.ENOSPC, syscall.EROFS, syscall.EIO, syscall.EACCES} {
		synctest.Test(t, func(t *testing.T) {
			store := &memoryStore{saved: []offset.Offset{at(1)}}
			source := &steady{pos: 1}
			p, _, logs := newPipeline(store, newInstant)
			p.Open = func(context.Context, offset.Offset) (binlog.Source, error) { return source, nil }
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- p.Run(ctx) }()
			time.Sleep(10*time.Second + time.Millisecond)
			full := fmt.Errorf("offset file: %w", errno)
			store.fails(full)
			stored := len(store.positions())
			time.Sleep(2 * time.Hour)
			at := source.read()
			if at < 60 || at > 80 {
				t.Errorf("%v: the stream is at %d after 10 s with a disk and 2 h without", errno, at)
			}
			if len(store.positions()) != stored {
				t.Errorf("%v: stored %v", errno, store.positions())
			}
			store.fails(nil)
			time.Sleep(time.Minute)
			if now := source.read(); now < at+50 {
				t.Errorf("%v: the stream does not go on: it is at %d", errno, now)
			}
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			if got := store.positions(); !slices.IsSorted(got) || got[len(got)-1] != source.read() {
				t.Errorf("stored %v, read %d", got, source.read())
			}
			for text, n := range map[string]int{
				"the offset could not be stored; trying": 1, "the offset still cannot be stored": 1, "the offset is stored again": 1,
			} {
				if got := logs.FilterMessageSnippet(text); got.Len() != n {
					t.Errorf("%v: %q is said %d times", errno, text, got.Len())
				} else if failures, ok := got.All()[0].ContextMap()["failures"]; ok && failures.(int64) < 100 {
					t.Errorf("%v: %v failures", errno, failures)
				}
			}
		})
	}
}

// TestHeldStreamGoesOnAfterAnInterruption: the new attempt has no offset to be stored before it has read something.
func TestHeldStreamGoesOnAfterAnInterruption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{saved: []offset.Offset{at(1)}}
		var made []*instant
		p, _, logs := newPipeline(store, func() *instant {
			made = append(made, newInstant())
			return made[len(made)-1]
		})
		var sources []*steady
		p.Open = func(context.Context, offset.Offset) (binlog.Source, error) {
			sources = append(sources, &steady{pos: 1})
			return sources[len(sources)-1], nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		store.fails(syscall.ENOSPC)
		for range 2 {
			time.Sleep(10 * time.Minute)
			synctest.Wait() // before what others have written is read
			d := made[len(made)-1]
			d.mu.Lock()
			d.err = emitter.ErrAgain
			close(d.done)
			d.mu.Unlock()
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if len(sources) != 3 || sources[2].read() > 10 { // it is not given another minute
			t.Errorf("%d attempts, the last is at %d", len(sources), sources[len(sources)-1].read())
		}
		store.fails(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if last := sources[len(sources)-1]; last.read() < 50 || logs.FilterMessageSnippet("the offset is stored again").Len() != 1 {
			t.Errorf("the stream does not go on: it is at %d", last.read())
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestHeldStreamStops when it is told to.
func TestHeldStreamStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{saved: []offset.Offset{at(1)}}
		source := &steady{pos: 1}
		p, _, _ := newPipeline(store, newInstant)
		p.Open = func(context.Context, offset.Offset) (binlog.Source, error) { return source, nil }
		store.fails(syscall.ENOSPC)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := p.Run(ctx); !errors.Is(err, syscall.ENOSPC) { // it says that the last offset is not stored
			t.Error(err)
		}
	})
}

// later is a script that takes minutes for the second step.
type later struct{ script }

func (l *later) Read(ctx context.Context) (binlog.Event, error) {
	if len(l.steps) == 1 {
		time.Sleep(2 * time.Minute)
	}
	return l.script.Read(ctx)
}

var errNoRight = errors.New("TOPIC_AUTHORIZATION_FAILED; allow it: kafka-acls.sh --add")

// TestWithdrawnRightsAreWaitedFor once the stream has run for a while; before, they stop it: nobody has set them up yet. The reason is said once,
// though each attempt comes as far as streaming, and how often it was tried when it works again.
func TestWithdrawnRightsAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		withdrawn := func(err error) bool { return errors.Is(err, errNoRight) }
		p, opened, _ := newPipeline(&memoryStore{}, func() *instant {
			d := newInstant()
			d.failAt, d.failWith = 100, errNoRight
			return d
		}, &script{start: at(4), steps: []int64{100}})
		p.Withdrawn = withdrawn
		if err := p.Run(t.Context()); !errors.Is(err, errNoRight) || len(*opened) != 1 {
			t.Errorf("at the start: %v after %d attempts", err, len(*opened))
		}

		attempts := 0
		granted := time.Now().Add(time.Hour)
		store := &memoryStore{}
		p, _, logs := newPipeline(store, func() *instant {
			d := newInstant()
			if time.Now().Before(granted) {
				d.failAt, d.failWith = 300, errNoRight
			}
			return d
		})
		p.Open = func(context.Context, offset.Offset) (binlog.Source, error) {
			if attempts++; attempts == 1 {
				return &later{script{start: at(4), steps: []int64{200, 300}}}, nil
			}
			return &script{start: at(4), steps: []int64{200, 300}}, nil
		}
		p.Withdrawn = withdrawn
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		if err := p.Run(ctx); err != nil {
			t.Error(err)
		}
		if got := store.positions(); got[len(got)-1] != 300 {
			t.Errorf("stored %v", got)
		}
		if attempts < 100 || attempts > 1000 {
			t.Errorf("%d attempts in an hour", attempts)
		}
		for text, most := range map[string]int{"the stream is interrupted": 1, "streaming": 2, "the stream goes on": 1} {
			if n := logs.FilterMessageSnippet(text).FilterLevelExact(0).Len() + logs.FilterMessageSnippet(text).FilterLevelExact(1).Len(); n != most {
				t.Errorf("%q is said %d times", text, n)
			}
		}
		if tries := logs.FilterMessage("the stream goes on").All(); len(tries) == 1 && tries[0].ContextMap()["attempts"].(int64) < 100 {
			t.Errorf("%v", tries[0].ContextMap())
		}
	})
}
