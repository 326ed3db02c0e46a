package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// memoryStore keeps one offset, and every one that was ever saved.
type memoryStore struct {
	mu    sync.Mutex
	saved []offset.Offset
	fail  error
}

func (s *memoryStore) Load(context.Context, offset.Key) (offset.Offset, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.saved) == 0 {
		return offset.Offset{}, nil
	}
	return s.saved[len(s.saved)-1], nil
}

func (s *memoryStore) Save(_ context.Context, _ offset.Key, o offset.Offset) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	s.saved = append(s.saved, o)
	return nil
}

func (s *memoryStore) Close() error { return nil }

func (s *memoryStore) positions() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var p []int64
	for _, o := range s.saved {
		p = append(p, o.Pos)
	}
	return p
}

// script is a source that gives boundaries at the positions listed, then fails with err or, without one, waits.
type script struct {
	start offset.Offset
	steps []int64
	err   error
}

func (s *script) Start() offset.Offset { return s.start }
func (s *script) Close() error         { return nil }
func (s *script) Read(ctx context.Context) (binlog.Event, error) {
	if len(s.steps) == 0 {
		if s.err != nil {
			return nil, s.err
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	o := at(s.steps[0])
	s.steps = s.steps[1:]
	return &binlog.Boundary{Offset: o}, nil
}

// instant is a delivery that has everything acknowledged at once, until it fails.
type instant struct {
	mu     sync.Mutex
	safe   offset.Offset
	has    bool
	done   chan struct{}
	err    error
	failAt int64 // fails when it sees this position
	stuck  bool  // Flush does not come to an end

	failWith error // what it fails with then; nil: a record that is refused

	unacked int // records that are never acknowledged
}

func (d *instant) Batch(context.Context) (*emitter.Batch, error) { return &emitter.Batch{}, d.Err() }
func (d *instant) Deliver(context.Context) error                 { return d.Err() }
func (d *instant) Done() <-chan struct{}                         { return d.done }
func (d *instant) Close()                                        {}
func (d *instant) Unacked() int                                  { return d.unacked }
func (d *instant) Boundary(_ context.Context, o offset.Offset) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failAt != 0 && o.Pos == d.failAt {
		if d.err = d.failWith; d.err == nil {
			d.err = errors.New("the record was refused")
		}
		close(d.done)
		return nil // it fails later, while the source waits
	}
	d.safe, d.has = o, true
	return nil
}

func (d *instant) Flush(ctx context.Context) error {
	if d.stuck {
		<-ctx.Done()
		return ctx.Err()
	}
	return d.Err()
}

func (d *instant) Safe() (offset.Offset, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.safe, d.has
}

func (d *instant) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

func at(pos int64) offset.Offset { return offset.Offset{File: "mysql-bin.000001", Pos: pos} }

var errCut = errors.New("the connection was cut")

// newPipeline makes a pipeline whose sources are given out one an attempt.
func newPipeline(store offset.Store, delivery func() *instant, sources ...*script) (*Pipeline, *[]offset.Offset, *observer.ObservedLogs) {
	core, logs := observer.New(zap.InfoLevel)
	opened := new([]offset.Offset)
	em, err := emitter.New(emitter.Config{Prefix: "p"})
	if err != nil {
		panic(err) // the configuration above is right
	}
	return &Pipeline{
		Open: func(_ context.Context, stored offset.Offset) (binlog.Source, error) {
			*opened = append(*opened, stored)
			if len(sources) == 0 {
				return nil, errCut
			}
			s := sources[0]
			sources = sources[1:]
			return s, nil
		},
		Deliver:       func(context.Context) (emitter.Delivery, error) { return delivery(), nil },
		Transient:     func(err error) bool { return errors.Is(err, errCut) },
		Emitter:       em,
		Store:         store,
		MaxRetries:    -1,
		FlushInterval: time.Second,
		FlushTimeout:  5 * time.Second,
		Log:           zap.New(core),
	}, opened, logs
}

func newInstant() *instant { return &instant{done: make(chan struct{})} }

// The start is stored before anything is read: a crash before the first commit must not begin at a later "now".
func TestStartIsStoredFirst(t *testing.T) {
	store := &memoryStore{}
	p, _, _ := newPipeline(store, newInstant, &script{start: at(157), err: io.EOF})
	if err := p.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := store.positions(); !slices.Equal(got, []int64{157}) {
		t.Errorf("stored %v, want the start, 157", got)
	}
}

// A cut connection, a restart and a crash take one path: back to the stored offset.
func TestI5_ReconnectGoesThroughTheStoredOffset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{saved: []offset.Offset{at(100)}}
		p, opened, logs := newPipeline(store, newInstant,
			&script{steps: []int64{200, 300}, err: errCut},
			&script{steps: []int64{400}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		time.Sleep(time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if len(*opened) != 2 || (*opened)[0].Pos != 100 || (*opened)[1].Pos != 300 {
			t.Errorf("opened at %v, want 100, then what was stored of it: 300", *opened)
		}
		if got := store.positions(); got[len(got)-1] != 400 {
			t.Errorf("stored %v, want 400 last", got)
		}
		if n := logs.FilterMessageSnippet("interrupted").Len(); n != 1 {
			t.Errorf("the interruption was said %d times, want once", n)
		}
	})
}

// A server that shuts down closes the stream in order. That is an interruption, not the end of the source.
func TestClosedStreamIsNotTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, opened, logs := newPipeline(&memoryStore{saved: []offset.Offset{at(100)}}, newInstant,
			&script{steps: []int64{200}, err: fmt.Errorf("MySQL ended the binlog stream: %w", io.EOF)},
			&script{steps: []int64{300}})
		p.Transient = func(err error) bool { return errors.Is(err, io.EOF) }
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := p.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if len(*opened) != 2 || (*opened)[1].Pos != 200 {
			t.Errorf("opened at %v, want again at 200", *opened)
		}
		if n := logs.FilterMessageSnippet("interrupted").Len(); n != 1 {
			t.Errorf("the interruption was said %d times, want once", n)
		}
	})
}

// While waiting goes on it is said once, and the waits grow.
func TestWaitingIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, opened, logs := newPipeline(&memoryStore{}, newInstant)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := p.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if n := logs.FilterMessageSnippet("is interrupted").Len(); n != 1 {
			t.Errorf("the interruption was said %d times, want once", n)
		}
		if n := logs.FilterMessageSnippet("still interrupted").FilterFieldKey("attempts").Len(); n < 3 || n > 4 {
			t.Errorf("%d reminders in an hour, want one after 5, 10, 20 and 40 minutes", n)
		}
		if n := len(*opened); n < 300 || n > 900 {
			t.Errorf("%d attempts in an hour, want one about every 8 s", n)
		}
	})
}

func TestFatalErrorStops(t *testing.T) {
	store := &memoryStore{}
	p, opened, _ := newPipeline(store, newInstant, &script{start: at(4), steps: []int64{50}, err: errors.New("the binlog is gone")})
	err := p.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "the binlog is gone") {
		t.Fatalf("got %v", err)
	}
	if len(*opened) != 1 {
		t.Errorf("opened %d times, want once", len(*opened))
	}
	if got := store.positions(); got[len(got)-1] != 50 {
		t.Errorf("stored %v, want what was acknowledged, 50, last", got)
	}
}

// A record that Kafka refuses ends the run also while the source waits for the server, and the offset stays before it.
func TestI7_RefusedRecordStopsAWaitingSource(t *testing.T) {
	store := &memoryStore{saved: []offset.Offset{at(100)}}
	delivery := func() *instant { d := newInstant(); d.failAt = 300; return d }
	p, _, _ := newPipeline(store, delivery, &script{steps: []int64{200, 300}})
	err := p.Run(t.Context())
	if err == nil || strings.Count(err.Error(), "refused") != 1 {
		t.Fatalf("got %v, want that the record was refused, once", err)
	}
	if got := store.positions(); got[len(got)-1] != 200 {
		t.Errorf("stored %v, want 200 last", got)
	}
}

// A stop that cannot store the offset says so: as an error, or as a warning when waiting could have healed it.
func TestStopThatCannotStore(t *testing.T) {
	for name, test := range map[string]struct {
		fail error
		want error
		warn int
	}{
		"for good":  {fail: errDisk, want: errDisk},
		"transient": {fail: errCut, warn: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &memoryStore{saved: []offset.Offset{at(100)}, fail: test.fail}
				p, _, logs := newPipeline(store, newInstant, &script{steps: []int64{200}})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- p.Run(ctx) }()
				synctest.Wait()
				cancel()
				if err := <-done; !errors.Is(err, test.want) {
					t.Errorf("got %v, want %v", err, test.want)
				}
				if n := logs.FilterMessageSnippet("could not be stored; what").Len(); n != test.warn {
					t.Errorf("said %d times, want %d", n, test.warn)
				}
			})
		})
	}
}

var errDisk = errors.New("the disk is full")

// TestStopSaysWhatIsPrepared: whoever hands over to Debezium has to know which rows it would never write.
func TestStopSaysWhatIsPrepared(t *testing.T) {
	for _, side := range []*offset.Side{nil, {}, {XA: []offset.Prepared{{XID: "X'61',X'',1", File: "mysql-bin.000001", Pos: 70}}}} {
		start := at(100)
		start.Side = side
		store := &memoryStore{}
		p, _, logs := newPipeline(store, func() *instant { return &instant{done: make(chan struct{})} }, &script{start: start})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		p.Open = func(context.Context, offset.Offset) (binlog.Source, error) { return &script{start: start}, nil }
		if err := p.Run(ctx); err != nil {
			t.Fatal(err)
		}
		said := logs.FilterMessageSnippet("XA transactions are prepared").All()
		if prepared := side != nil && len(side.XA) > 0; prepared != (len(said) == 1) {
			t.Errorf("with %v it says %v", side, said)
		} else if prepared && !strings.Contains(fmt.Sprint(said[0].ContextMap()["xa"]), "X'61',X'',1 (prepared at mysql-bin.000001:70)") {
			t.Errorf("it does not name the transaction: %v", said[0].ContextMap())
		}
	}
}

// A stop while Kafka is away is bounded by the flush timeout and stores what was acknowledged.
func TestStopIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{saved: []offset.Offset{at(100)}}
		delivery := func() *instant { d := newInstant(); d.stuck = true; return d }
		p, _, _ := newPipeline(store, delivery, &script{steps: []int64{200}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		synctest.Wait()
		cancel()
		began := time.Now()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d != p.FlushTimeout {
			t.Errorf("the stop took %v, want the flush timeout %v", d, p.FlushTimeout)
		}
		if got := store.positions(); got[len(got)-1] != 200 {
			t.Errorf("stored %v, want 200 last", got)
		}
	})
}

// The offset moves while nothing but boundaries come, and a store that fails is tried again at the next interval.
func TestI8_BoundariesAreStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{saved: []offset.Offset{at(100)}, fail: errors.New("disk full")}
		p, _, logs := newPipeline(store, newInstant, &script{steps: []int64{200}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		time.Sleep(5*time.Second + time.Millisecond)
		if n := logs.FilterMessageSnippet("could not be stored").Len(); n != 1 {
			t.Errorf("the failing store was mentioned %d times, want once", n)
		}
		store.mu.Lock()
		store.fail = nil
		store.mu.Unlock()
		time.Sleep(2 * time.Second)
		if got := store.positions(); got[len(got)-1] != 200 {
			t.Errorf("stored %v, want 200 last", got)
		}
		if n := logs.FilterMessageSnippet("stored again").Len(); n != 1 {
			t.Errorf("the recovery was mentioned %d times, want once", n)
		}
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}

// An offset that goes back within one attempt is refused; a new attempt may be on another server and begins anew.
func TestI2_OffsetsGoForward(t *testing.T) {
	store := &memoryStore{saved: []offset.Offset{at(1000)}}
	p, _, _ := newPipeline(store, newInstant)
	s := newSaver(p, at(1000))
	for _, step := range []struct {
		pos     int64
		refused bool
	}{{500, false}, {600, false}, {600, false}, {599, true}, {601, false}} {
		err := s.save(t.Context(), at(step.pos))
		if (err != nil) != step.refused {
			t.Errorf("%d: %v", step.pos, err)
		}
	}
	if got := store.positions(); !slices.Equal(got, []int64{1000, 500, 600, 601}) {
		t.Errorf("stored %v", got)
	}
}

// A place that somebody else wrote to ends the run: going on would send ever more again after a crash.
func TestUnusableStoreStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{saved: []offset.Offset{at(100)}, fail: fmt.Errorf("%w: changed by another program", offset.ErrUnusable)}
		p, _, _ := newPipeline(store, newInstant, &script{steps: []int64{200}})
		err := p.Run(t.Context())
		if !errors.Is(err, offset.ErrUnusable) || strings.Count(err.Error(), "another program") != 1 {
			t.Errorf("got %v, want that the place is unusable, once", err)
		}
	})
}

// When Kafka acknowledges nothing for long, that is said once, and its end, too.
func TestStallIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newInstant()
		d.unacked = 7
		p, _, logs := newPipeline(&memoryStore{saved: []offset.Offset{at(100)}}, func() *instant { return d }, &script{steps: []int64{200}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		time.Sleep(stallAfter - 5*time.Second)
		if n := logs.FilterMessageSnippet("acknowledges nothing").Len(); n != 0 {
			t.Errorf("said %d times before its time", n)
		}
		time.Sleep(time.Hour)
		if n := logs.FilterMessageSnippet("acknowledges nothing").Len(); n != 1 {
			t.Errorf("said %d times in an hour, want once", n)
		}
		if err := d.Boundary(ctx, at(300)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if n := logs.FilterMessageSnippet("acknowledges records again").Len(); n != 1 {
			t.Errorf("the end was said %d times, want once", n)
		}
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}

// Rows of an XA transaction are given out while the offset stands still: that they are acknowledged shows in how many are.
func TestStallIsNotSaidInsideXA(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.InfoLevel)
		watch := stall{log: zap.New(core), moved: time.Now()}
		o := at(100)
		o.Side = &offset.Side{Open: &offset.Open{XID: "x"}}
		for range 100 {
			o.Done++
			watch.look(o, 5)
			time.Sleep(time.Second)
		}
		if logs.Len() != 0 {
			t.Errorf("said %v", logs.All())
		}
		for range 2 * int(stallAfter/time.Second) {
			watch.look(o, 5)
			time.Sleep(time.Second)
		}
		if logs.Len() != 1 {
			t.Errorf("said %v", logs.All())
		}
	})
}

// altering is a source that gives one ALTER after the other, with the versions of the table since the offset stored last.
type altering struct {
	script
	n, since int
	stored   chan offset.Offset
}

func (s *altering) Stored(o offset.Offset) { s.stored <- o }
func (s *altering) Read(ctx context.Context) (binlog.Event, error) {
	select {
	case <-s.stored:
		s.since = 1
	default:
	}
	if s.n++; s.n > 200 {
		return s.script.Read(ctx)
	}
	s.since++
	return &binlog.SchemaChange{Offset: at(int64(100 * s.n)), Tables: []schema.StoredTable{{Database: "d", Table: "t", Versions: make([]schema.StoredVersion, s.since)}}}, nil
}

// A table that is altered again and again between two flush intervals: the offset is stored in time, so that the schema store
// need not keep, and write with each statement, ever more versions.
func TestI11_VersionsOfATableAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{}
		source := &altering{stored: make(chan offset.Offset, 100)}
		p, _, _ := newPipeline(store, newInstant)
		p.Open = func(context.Context, offset.Offset) (binlog.Source, error) { return source, nil }
		most, statements := 0, 0
		p.SchemaChange = func(_ context.Context, ev *binlog.SchemaChange) error {
			most = max(most, len(ev.Tables[0].Versions))
			if statements++; statements > mostVersions && len(store.positions()) < 2 {
				t.Errorf("statement %d: nothing is stored before it", statements)
			}
			return nil
		}
		source.start, source.err = at(4), io.EOF
		if err := p.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if statements != 200 || most != mostVersions+1 {
			t.Errorf("%d versions at most, of %d statements", most, statements)
		}
	})
}

// closingSource and closingDelivery note that they are closed.
type closingSource struct {
	script
	closed *bool
}

func (s *closingSource) Close() error { *s.closed = true; return nil }

type closingDelivery struct {
	instant
	closed *bool
}

func (d *closingDelivery) Close() { *d.closed = true }

// Kafka and the source are reached at the same time, and what is open is closed when the other cannot be reached.
func TestConnectReachesBothAtOnce(t *testing.T) {
	refused := errors.New("refused")
	for name, c := range map[string]struct{ deliver, open error }{
		"both": {}, "no Kafka": {deliver: refused}, "no source": {open: refused}, "neither": {refused, refused},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sourceClosed, deliveryClosed bool
				var given []context.Context
				delivering, opening := make(chan struct{}), make(chan struct{})
				p := Pipeline{
					Store: new(memoryStore),
					Deliver: func(ctx context.Context) (emitter.Delivery, error) {
						close(delivering)
						<-opening
						given = append(given, ctx)
						return &closingDelivery{closed: &deliveryClosed}, c.deliver
					},
					Open: func(ctx context.Context, _ offset.Offset) (binlog.Source, error) {
						given = append(given, ctx)
						close(opening)
						<-delivering // one after the other would wait here for ever
						return &closingSource{closed: &sourceClosed}, c.open
					},
				}
				life, end := context.WithCancelCause(t.Context())
				defer end(nil)
				_, source, delivery, err := p.connect(life, end)
				if want := c.deliver != nil || c.open != nil; (err != nil) != want || err != nil && !errors.Is(err, refused) {
					t.Fatal(err)
				}
				if err == nil {
					source.Close()
					delivery.Close()
					for _, ctx := range given { // what was opened may have begun something that goes on
						if ctx.Err() != nil {
							t.Error("the context of what is open has ended")
						}
					}
				}
				if c.open == nil && !sourceClosed {
					t.Error("the source is left open")
				}
				if c.deliver == nil && !deliveryClosed {
					t.Error("the delivery is left open")
				}
				if err != nil && (source != nil || delivery != nil) {
					t.Error("something is returned with the error")
				}
			})
		})
	}
}

// What cannot be had for good ends the waiting for the other.
func TestConnectGivesUpTogether(t *testing.T) {
	refused := errors.New("refused")
	synctest.Test(t, func(t *testing.T) {
		p := Pipeline{
			Store: new(memoryStore),
			Deliver: func(ctx context.Context) (emitter.Delivery, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
			Open: func(context.Context, offset.Offset) (binlog.Source, error) { return nil, refused },
		}
		life, end := context.WithCancelCause(t.Context())
		if _, _, _, err := p.connect(life, end); !errors.Is(err, refused) {
			t.Error(err)
		}
	})
}
