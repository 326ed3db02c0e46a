package bench

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/twmb/franz-go/pkg/kgo"
)

// latency lets a tool follow one-row transactions that are committed at a fixed rate, and measures from the moment just before COMMIT
// is sent to the moment when a consumer has the record. The rate is kept whatever happens: a transaction is not put off because the one
// before it was late. Only the second half of the time counts.
func (s *stage) latency(t testing.TB, tool string, c cell, rate int) Result {
	t.Helper()
	a := s.prepare(t, tool, c, now(t, s.mysql), false)
	p := a.launch(t)
	consumer := s.consumer(t, a)
	defer consumer.Close()

	run := &paced{base: nextID(t, s, c.workload)}
	run.stamps = make([]atomic.Int64, rate*s.options.Seconds+10_000)
	stop := beside(func(ctx context.Context) { run.receive(ctx, consumer) })
	defer stop()

	// It streams when the first row has come through.
	one := connect(t, s.mysql)
	defer one.Close()
	for deadline := time.Now().Add(patience); run.seen.Load() == 0; {
		if time.Now().After(deadline) {
			t.Fatalf("nothing comes through")
		}
		if p.Ended() {
			t.Fatal("it ended")
		}
		if err := run.commit(one); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}

	writers := min(max(rate/300, 1), 32)
	connections := make([]*client.Conn, writers)
	for i := range connections {
		connections[i] = connect(t, s.mysql)
		defer connections[i].Close()
	}
	half := time.Duration(s.options.Seconds) * time.Second / 2
	if err := run.write(connections, rate, half); err != nil {
		t.Fatal(err)
	}
	from := sample{at: time.Now(), cpu: p.cpu(t)}
	first := run.next.Load()
	if err := run.write(connections, rate, half); err != nil {
		t.Fatal(err)
	}
	to := sample{at: time.Now(), count: run.next.Load() - first, cpu: p.cpu(t)}
	drained(t, &run.seen, &run.next)
	result := Result{RSS: p.PeakRSS(t)}
	result.rate(&workload{rows: 1, records: 1}, from, to)
	p.Kill()
	stop()
	took := make([]time.Duration, 0, to.count)
	for i := first; i < first+to.count; i++ {
		took = append(took, time.Duration(run.took[i]))
	}
	result.P50, result.P99 = percentile(took, 0.50), percentile(took, 0.99)
	return result
}

// beside runs f in a goroutine until what it returns is called, which waits for f's end and may be called again.
func beside(f func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// drained waits until all records that are written have come.
func drained(t testing.TB, seen, written *atomic.Int64) {
	t.Helper()
	for deadline := time.Now().Add(patience); seen.Load() < written.Load(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d records have come", seen.Load(), written.Load())
		}
	}
}

// percentile is the smallest value that at least this part of all does not exceed.
func percentile(all []time.Duration, part float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[min(int(part*float64(len(all))), len(all)-1)]
}

// paced is rows that are written at a rate and seen again.
type paced struct {
	base   int64          // id of the first row
	next   atomic.Int64   // rows begun
	seen   atomic.Int64   // rows that have come, once each
	stamps []atomic.Int64 // when the COMMIT of each was sent, in nanoseconds since begun
	took   []int64        // of each row, by the receiver alone
}

var begun = time.Now()

// commit writes one row.
func (p *paced) commit(c *client.Conn) error {
	i := p.next.Add(1) - 1
	if int(i) >= len(p.stamps) {
		return fmt.Errorf("more than %d rows", len(p.stamps))
	}
	if err := execute(c, "START TRANSACTION; INSERT INTO w5.orders SELECT "+order(strconv.FormatInt(p.base+i, 10))); err != nil {
		return err
	}
	p.stamps[i].Store(int64(time.Since(begun)))
	return execute(c, "COMMIT")
}

// write commits rows at a rate for so long.
func (p *paced) write(connections []*client.Conn, rate int, long time.Duration) error {
	failed := make(chan error, len(connections))
	start := time.Now()
	var all sync.WaitGroup
	var turn atomic.Int64
	for _, c := range connections {
		all.Go(func() {
			for {
				at := start.Add(time.Duration(turn.Add(1)-1) * time.Second / time.Duration(rate))
				if at.Sub(start) >= long {
					return
				}
				time.Sleep(time.Until(at))
				if err := p.commit(c); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(failed)
	return <-failed
}

// receive notes when each row has come, until ctx ends.
func (p *paced) receive(ctx context.Context, c *kgo.Client) {
	p.took = make([]int64, len(p.stamps))
	for ctx.Err() == nil {
		fetches := c.PollFetches(ctx)
		at := int64(time.Since(begun))
		fetches.EachRecord(func(r *kgo.Record) {
			id, ok := idOf(r.Key)
			i := id - p.base
			if !ok || i < 0 || int(i) >= len(p.took) || p.took[i] != 0 {
				return
			}
			p.took[i] = max(at-p.stamps[i].Load(), 1)
			p.seen.Add(1)
		})
	}
}
