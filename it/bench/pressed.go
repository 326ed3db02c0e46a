package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/it"
)

// idle is how much CPU a tool takes while nothing is written.
func (s *stage) idle(t testing.TB, tool string, c cell) Result {
	t.Helper()
	base := nextID(t, s, c.workload)
	a := s.prepare(t, tool, c, now(t, s.mysql), true)
	p := a.launch(t)
	c.workload.more(t, s.mysql, base, 100)
	a.topics.watch(t, p, 100)
	time.Sleep(5 * time.Second) // what has to be stored is
	from, begun := p.cpu(t), time.Now()
	time.Sleep(time.Duration(s.options.Idle) * time.Second)
	used, took := p.cpu(t)-from, time.Since(begun)
	return Result{RSS: p.PeakRSS(t), Idle: new(used.Seconds() / took.Seconds())}
}

// writers is how many connections write as fast as the server takes it. The number of each is in its rows' ids.
const writers = 4

// fill is a procedure that commits one-row transactions without a word to the client between them, which would cost more than they do.
// A row's id is the time at which it was made, in microseconds and before it was committed, and the number of its writer.
var fill = fmt.Sprintf(`CREATE PROCEDURE w5max.fill(IN from_ BIGINT, IN rows_ INT, IN writer INT) BEGIN
  DECLARE k BIGINT DEFAULT 0;
  WHILE k < rows_ DO
    INSERT INTO w5max.orders SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED) * %d + writer, %s;
    SET k = k + 1;
  END WHILE;
END`, writers, orderOf("(from_ + k)"))

// stampOf is the time in an id of fill.
func stampOf(id int64) time.Time { return time.UnixMicro(id / writers) }

// pressed lets a tool follow one-row transactions at 80 % of what it can read: of its rate in W2, or, where the server cannot write as
// many beside it, of what the server can. The time of a record counts from before its statement was executed.
func (s *stage) pressed(t testing.TB, tool string, c cell) Result {
	t.Helper()
	a := s.prepare(t, tool, c, now(t, s.mysql), false)
	p := a.launch(t)
	consumer := s.consumer(t, a)
	defer consumer.Close()
	var l load
	stop := beside(func(ctx context.Context) { l.receive(ctx, consumer) })
	defer stop()
	connections := connectAll(t, s.mysql, writers)
	for deadline := time.Now().Add(patience); l.seen.Load() == 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) || p.Ended() {
			t.Fatal("nothing comes through")
		}
		if err := l.write(connections[:1], 0, time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	half := time.Duration(s.options.Seconds) * time.Second / 2
	before, begun := l.written.Load(), time.Now()
	if err := l.write(connections, 0, half/2); err != nil {
		t.Fatal(err)
	}
	most := float64(l.written.Load()-before) / time.Since(begun).Seconds()
	drained(t, &l.seen, &l.written)

	limit, by := most, fmt.Sprintf("what the server can write beside it, %.0f a second", most)
	if all := s.report.results[line{"W2", c.format, c.compression, tool}]; len(all) > 0 {
		own := medians(all).Rate
		if own < most {
			limit, by = own, fmt.Sprintf("its rate in W2, %.0f a second", own)
		} else {
			by += fmt.Sprintf(" (it reads %.0f in W2)", own)
		}
	}
	rate := 0.8 * limit
	if err := l.write(connections, rate, half); err != nil {
		t.Fatal(err)
	}
	from := sample{at: time.Now(), count: l.written.Load(), cpu: p.cpu(t)}
	if err := l.write(connections, rate, half); err != nil {
		t.Fatal(err)
	}
	to := sample{at: time.Now(), count: l.written.Load(), cpu: p.cpu(t)}
	drained(t, &l.seen, &l.written)
	result := Result{RSS: p.PeakRSS(t), Also: "80 % of " + by}
	result.rate(&workload{rows: 1, records: 1}, from, to)
	p.Kill()
	stop()
	var took []time.Duration
	for _, r := range l.received {
		if r.stamp.After(from.at) && r.stamp.Before(to.at) {
			took = append(took, r.took)
		}
	}
	result.P50, result.P99 = percentile(took, 0.50), percentile(took, 0.99)
	return result
}

// connectAll opens connections that are closed at the end of the test.
func connectAll(t testing.TB, m *it.MySQL, count int) []*client.Conn {
	t.Helper()
	all := make([]*client.Conn, count)
	for i := range all {
		all[i] = connect(t, m)
		t.Cleanup(func() { all[i].Close() })
	}
	return all
}

// load is rows whose ids are the times at which they were made.
type load struct {
	written  atomic.Int64
	seen     atomic.Int64
	received []arrival // by the receiver alone
}

// arrival is a row that has come.
type arrival struct {
	stamp time.Time
	took  time.Duration
}

// write calls fill on all connections for so long, each for the rows that are due by then; with a rate of 0 as fast as it goes.
func (l *load) write(connections []*client.Conn, rate float64, long time.Duration) error {
	const pause = 2 * time.Millisecond
	failed := make([]error, len(connections))
	begun := time.Now()
	var all sync.WaitGroup
	for i, c := range connections {
		all.Go(func() {
			for done := 0; failed[i] == nil; {
				gone := time.Since(begun)
				if gone >= long {
					return
				}
				rows := 100
				if rate > 0 {
					rows = int(rate*gone.Seconds())/len(connections) - done
				}
				if rows <= 0 {
					time.Sleep(pause)
					continue
				}
				// A long call would go on after the end.
				rows = min(rows, 200)
				failed[i] = execute(c, fmt.Sprintf("CALL w5max.fill(%d, %d, %d)", l.written.Add(int64(rows)), rows, i))
				done += rows
			}
		})
	}
	all.Wait()
	if i := slices.IndexFunc(failed, func(err error) bool { return err != nil }); i >= 0 {
		return failed[i]
	}
	return nil
}

// receive notes when each row has come, until ctx ends.
func (l *load) receive(ctx context.Context, c *kgo.Client) {
	for ctx.Err() == nil {
		fetches := c.PollFetches(ctx)
		at := time.Now()
		fetches.EachRecord(func(r *kgo.Record) {
			id, ok := idOf(r.Key)
			if !ok {
				return
			}
			stamp := stampOf(id)
			l.received = append(l.received, arrival{stamp, at.Sub(stamp)})
			l.seen.Add(1)
		})
	}
}
