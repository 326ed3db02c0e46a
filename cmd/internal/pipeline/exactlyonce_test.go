package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/offset"
)

// ending is a delivery that ends with an error at a position.
func ending(err error, at int64) func() *instant {
	return func() *instant {
		d := newInstant()
		d.failAt, d.failWith = at, err
		return d
	}
}

// Another one that has taken the place ends the run at once, whatever else is wrong: to try again would take it back.
func TestFencedIsNotTriedAgain(t *testing.T) {
	for name, err := range map[string]error{
		"fenced":                       emitter.ErrFenced,
		"with what waiting would heal": errors.Join(errCut, emitter.ErrFenced),
		"by the store":                 fmt.Errorf("%w: %w", offset.ErrUnusable, emitter.ErrFenced),
	} {
		t.Run(name, func(t *testing.T) {
			p, opened, _ := newPipeline(&memoryStore{saved: []offset.Offset{at(100)}}, ending(err, 200), &script{steps: []int64{200}}, &script{})
			if got := p.Run(t.Context()); !errors.Is(got, emitter.ErrFenced) || len(*opened) != 1 {
				t.Errorf("got %v after %d attempts", got, len(*opened))
			}
		})
	}
}

// A store that another one has fenced ends the run also while the stream goes on.
func TestFencedStoreEndsTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{saved: []offset.Offset{at(100)}, fail: fmt.Errorf("%w: %w", offset.ErrUnusable, emitter.ErrFenced)}
		p, opened, _ := newPipeline(store, newInstant, &script{steps: []int64{200}})
		if err := p.Run(t.Context()); !errors.Is(err, emitter.ErrFenced) || len(*opened) != 1 {
			t.Errorf("got %v after %d attempts", err, len(*opened))
		}
	})
}

// What a new delivery settles is tried again, from the stored offset.
func TestUnknownOutcomeIsSettledByTheNextAttempt(t *testing.T) {
	for _, err := range []error{emitter.ErrUnknownOutcome, emitter.ErrAgain, emitter.ErrStale} {
		synctest.Test(t, func(t *testing.T) {
			store := &memoryStore{saved: []offset.Offset{at(100)}}
			first := true
			p, opened, _ := newPipeline(store, func() *instant {
				d := newInstant()
				if first {
					d = ending(fmt.Errorf("EndTxn: %w", err), 300)()
				}
				first = false
				return d
			}, &script{steps: []int64{200, 300}}, &script{steps: []int64{300}, err: errDisk})
			if got := p.Run(t.Context()); !errors.Is(got, errDisk) {
				t.Errorf("got %v", got)
			}
			if len(*opened) != 2 || (*opened)[1].Pos != 200 {
				t.Errorf("opened at %v", *opened)
			}
		})
	}
}

// readAnew is a store whose side records are read from what is written, so that no two of them are the same value.
type readAnew struct{ offset.Store }

func (s readAnew) Load(ctx context.Context, key offset.Key) (offset.Offset, error) {
	o, err := s.Store.Load(ctx, key)
	o.Side = &offset.Side{}
	return o, err
}

// A transaction that takes too long may be an accident, as when the process stood still; a second one at the same place is a setting.
func TestTransactionsThatTakeTooLong(t *testing.T) {
	for name, tt := range map[string]struct {
		moves bool
		stops bool
	}{"at one place": {false, true}, "here and there": {true, false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, opened, _ := newPipeline(&memoryStore{saved: []offset.Offset{at(100)}}, newInstant)
				p.Store, p.DeliverFirst = readAnew{p.Store}, true
				attempts, reached := 0, int64(200)
				p.Deliver = func(context.Context) (emitter.Delivery, error) {
					if attempts++; attempts > 4 {
						return nil, errDisk
					}
					if attempts > 1 && tt.moves {
						reached += 100
					}
					return ending(fmt.Errorf("%w: raise transaction.timeout.ms", emitter.ErrTimedOut), reached)(), nil
				}
				p.Open = func(_ context.Context, stored offset.Offset) (binlog.Source, error) {
					*opened = append(*opened, stored)
					time.Sleep(2 * time.Minute) // as long as they last
					steps := []int64{reached}
					if tt.moves {
						steps = []int64{reached - 50, reached}
					}
					return &script{steps: steps}, nil
				}
				err := p.Run(t.Context())
				if tt.stops && (!errors.Is(err, emitter.ErrTimedOut) || !strings.Contains(err.Error(), "raise transaction.timeout.ms") || attempts != 2) {
					t.Errorf("got %v after %d attempts", err, attempts)
				}
				if !tt.stops && (!errors.Is(err, errDisk) || attempts != 5) {
					t.Errorf("got %v after %d attempts", err, attempts)
				}
			})
		})
	}
}

// Where the delivery takes the transactional id, the offset is loaded only then.
func TestDeliverFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		p, _, _ := newPipeline(&memoryStore{saved: []offset.Offset{at(100)}}, newInstant)
		p.DeliverFirst = true
		p.Store = loading{p.Store, func() { log = append(log, "load") }}
		p.Deliver = func(context.Context) (emitter.Delivery, error) {
			time.Sleep(time.Minute)
			log = append(log, "deliver")
			if len(log) > 4 {
				return nil, errDisk
			}
			return newInstant(), nil
		}
		p.Open = func(context.Context, offset.Offset) (binlog.Source, error) {
			log = append(log, "open")
			return nil, errCut
		}
		if err := p.Run(t.Context()); !errors.Is(err, errDisk) {
			t.Error(err)
		}
		if want := []string{"deliver", "load", "open", "deliver", "load", "open", "deliver"}; !slices.Equal(log, want) {
			t.Errorf("got %v", log)
		}
	})
}

type loading struct {
	offset.Store
	told func()
}

func (l loading) Load(ctx context.Context, key offset.Key) (offset.Offset, error) {
	l.told()
	return l.Store.Load(ctx, key)
}

// The offset of the start goes through the delivery, which may be who stores; nothing is read before it is stored.
func TestStartGoesThroughTheDelivery(t *testing.T) {
	var log []string
	p, _, _ := newPipeline(&memoryStore{}, newInstant)
	p.Deliver = func(context.Context) (emitter.Delivery, error) { return &noting{newInstant(), &log}, nil }
	p.Open = func(context.Context, offset.Offset) (binlog.Source, error) {
		return &patient{script: script{start: at(1), steps: []int64{3}}, log: &log}, nil
	}
	p.Store = savingStore{p.Store, func(o offset.Offset) { log = append(log, fmt.Sprint("stored ", o.Pos)) }}
	if err := p.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"boundary", "flush", "stored 1", "deliver", "waits", "boundary", "flush", "stored 3"}; !slices.Equal(log, want) {
		t.Errorf("got %v", log)
	}
}

type savingStore struct {
	offset.Store
	told func(offset.Offset)
}

func (s savingStore) Save(_ context.Context, _ offset.Key, o offset.Offset) error {
	s.told(o)
	return nil
}

// A heartbeat between two transactions is no part of the next one: the offset after it is announced again.
func TestHeartbeatEndsAtABoundary(t *testing.T) {
	em, err := emitter.New(emitter.Config{Prefix: "p"})
	if err != nil {
		t.Fatal(err)
	}
	var log []string
	out := Output{Emitter: em, Delivery: &noting{newInstant(), &log}, Heartbeat: time.Hour, Later: true}
	if err := out.Event(t.Context(), &binlog.Boundary{Offset: at(100)}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"boundary", "batch", "boundary"}; !slices.Equal(log, want) {
		t.Errorf("got %v", log)
	}
}

// Rows outside of BEGIN … COMMIT that give no record announce nothing: their offset is that before all rows of their statement.
func TestSilentRowsWithoutBegin(t *testing.T) {
	em, err := emitter.New(emitter.Config{Prefix: "p", Skip: map[string]bool{"c": true}})
	if err != nil {
		t.Fatal(err)
	}
	var log []string
	out := Output{Emitter: em, Delivery: &noting{newInstant(), &log}, Later: true}
	row, _ := oneRow(t)
	if err := out.Event(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(log, "boundary") || !countsRows(row.OffsetAfter()) {
		t.Errorf("in a transaction: %v", log)
	}
	if xa := (offset.Offset{File: "f", Pos: 4, Done: 1}); !countsRows(xa) || countsRows(at(4)) {
		t.Error("in an XA transaction, or without one")
	}
}

// While a large transaction is written that is committed as a whole, the offset stands still; that Kafka acknowledges its records shows
// in how many are on their way.
func TestStallIsNotSaidInsideALongTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.InfoLevel)
		watch := stall{log: zap.New(core), moved: time.Now()}
		for i := range 100 {
			watch.look(at(100), 500+i%3)
			time.Sleep(time.Second)
		}
		if logs.Len() != 0 {
			t.Errorf("said %v", logs.All())
		}
		for i := range 100 { // more and more, and none is acknowledged
			watch.look(at(100), 600+i)
			time.Sleep(time.Second)
		}
		if logs.Len() != 1 {
			t.Errorf("said %v", logs.All())
		}
	})
}
