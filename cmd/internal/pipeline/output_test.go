package pipeline

import (
	"context"
	"encoding/binary"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// counting counts the batches that it is asked for.
type counting struct {
	*instant
	batches int
}

func (c *counting) Batch(ctx context.Context) (*emitter.Batch, error) {
	c.batches++
	return c.instant.Batch(ctx)
}

// A commit whose end nobody wants a record of costs no batch: for one, Batch waits while too much is on its way.
func TestCommitWithoutMetadataAsksForNoBatch(t *testing.T) {
	em, err := emitter.New(emitter.Config{Prefix: "p"})
	if err != nil {
		t.Fatal(err)
	}
	d := &counting{instant: newInstant()}
	out := Output{Emitter: em, Delivery: d}
	if err := out.Event(t.Context(), &binlog.Boundary{Offset: at(100), Commit: true}); err != nil {
		t.Fatal(err)
	}
	if safe, _ := d.Safe(); d.batches != 0 || safe.Pos != 100 {
		t.Errorf("%d batches, announced %v", d.batches, safe)
	}
}

// reusing is a delivery of one batch, which tells the topics of its records.
type reusing struct {
	*instant
	batch emitter.Batch
	tell  func(topic string)
}

func (r *reusing) Batch(context.Context) (*emitter.Batch, error) { return &r.batch, nil }

func (r *reusing) Deliver(context.Context) error {
	for i := range r.batch.Records {
		if r.tell != nil {
			r.tell(r.batch.Records[i].Topic)
		}
	}
	r.batch.Reset()
	return nil
}

func oneRow(t *testing.T) (event *binlog.Rows, body []byte) {
	t.Helper()
	body = binary.LittleEndian.AppendUint32([]byte{0}, 4711)
	table := &schema.Table{Database: "d", Name: "t", Key: []int{0}, Columns: []schema.Column{{Name: "id", Type: 3}}}
	event, err := binlog.NewRows(binlog.Info{File: "mysql-bin.000001", Pos: 4, Thread: -1}, binlog.Create, table, at(4), body)
	if err != nil {
		t.Fatal(err)
	}
	return event, body
}

// A transaction of one row allocates nothing on its way through the loop: what is done for each event is most of its cost.
func TestTransactionAllocatesNothing(t *testing.T) {
	em, err := emitter.New(emitter.Config{Prefix: "p"})
	if err != nil {
		t.Fatal(err)
	}
	out := Output{Emitter: em, Delivery: &reusing{instant: newInstant()}}
	row, body := oneRow(t)
	commit := &binlog.Boundary{Commit: true, Offset: at(300)}
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		row.Reset(body)
		row.Info.Pos += 300
		if err := out.Event(ctx, row); err != nil {
			t.Fatal(err)
		}
		if err := out.Event(ctx, commit); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a transaction", n)
	}
}

// Heartbeats come with whatever event is the first one after the interval: rows, a boundary, or the server's own heartbeat
// when nothing happens. The first is due an interval after the stream began, or at once for a stream that does not say.
func TestHeartbeats(t *testing.T) {
	for name, tt := range map[string]struct {
		begun bool
		want  []time.Duration
	}{
		"run":  {true, []time.Duration{1200, 2400, 3600, 4800}},
		"tail": {false, []time.Duration{300, 1500, 2700, 3900}},
	} {
		for _, rows := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				em, err := emitter.New(emitter.Config{Prefix: "p"})
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				var got []time.Duration
				beats := 0
				out := Output{
					Emitter: em, Heartbeat: time.Second, Beat: func(context.Context) { beats++ },
					Delivery: &reusing{instant: newInstant(), tell: func(topic string) {
						if topic == "__debezium-heartbeat.p" {
							got = append(got, time.Since(start)/time.Millisecond)
						}
					}},
				}
				if tt.begun {
					out.beat = start
				}
				row, body := oneRow(t)
				for time.Since(start) < 4800*time.Millisecond {
					time.Sleep(300 * time.Millisecond)
					if rows {
						row.Reset(body)
						err = out.Event(t.Context(), row)
					} else {
						err = out.Event(t.Context(), &binlog.Boundary{Offset: offset.Offset{File: "f", Pos: 4}})
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				if !slices.Equal(got, tt.want) || beats != len(got) {
					t.Errorf("%s, rows %v: heartbeats after %d ms, the query %d times; want %d", name, rows, got, beats, tt.want)
				}
			})
		}
	}
}

// The timer of the next heartbeat, which may be hours away, does not keep a delivery and its memory when the stream has ended.
func TestHeartbeatKeepsNoDelivery(t *testing.T) {
	delivery := func() weak.Pointer[instant] {
		em, err := emitter.New(emitter.Config{Prefix: "p"})
		if err != nil {
			t.Fatal(err)
		}
		d := newInstant()
		out := &Output{Emitter: em, Delivery: d, Heartbeat: time.Hour, beat: time.Now()}
		if err := out.Event(t.Context(), &binlog.Boundary{Offset: at(4)}); err != nil {
			t.Fatal(err)
		}
		return weak.Make(d)
	}()
	runtime.GC()
	if delivery.Value() != nil {
		t.Error("it is kept")
	}
}
