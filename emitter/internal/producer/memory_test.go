package producer

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/twmb/franz-go/pkg/kfake"
)

// TestLinger gathers records, but not once their batch is full or somebody waits for them.
func TestLinger(t *testing.T) {
	c, r, topic := begin(t, 2, "linger.ms", "60000", "max.request.size", "20000")
	requests := c.Fault(kfake.Fault{Keys: produce, Observe: true, Count: -1})
	for range 20 {
		r.send(t, topic, 0, 1, 10)
	}
	r.arrived(t, c, topic)
	if requests.Hits() != 1 {
		t.Errorf("%d requests", requests.Hits())
	}
	r.send(t, topic, 0, 1, 10)
	eventually(t, "is waiting", r.locked(func() bool { return len(topic.partitions[0].broker.bell) == 0 }))
	for range 3 {
		r.send(t, topic, 0, 2, 9000)
	}
	eventually(t, "a full batch is sent", func() bool { return r.total() > 20 })
	r.settled(t)
}

// TestNothingLingersWhileMemoryIsFull and the caller waits for it, which is until there is room for more than a few records.
func TestNothingLingersWhileMemoryIsFull(t *testing.T) {
	c := cluster(t, 1)
	const limit = 100_000
	r := newRig(t, c, limit, "linger.ms", "60000")
	topic := r.topic(t, topicName)
	for range 60 {
		r.send(t, topic, 0, 1, 3000) // send waits for room
	}
	r.flush(t)

	release := hold(c, 0)
	r.send(t, topic, 0, 1, 2*limit)
	done := make(chan error)
	go func() { done <- r.Room(limited(t)) }()
	eventually(t, "under way", r.locked(func() bool { return topic.partitions[0].busy }))
	r.Begin(time.Now())
	left, underWay := 0, r.memory.used
	for left < limit-limit/4 {
		r.append(topic, 0, 1000)
		left = r.memory.used - underWay
	}
	r.End()
	if left >= limit {
		t.Fatalf("%d bytes are left", left)
	}
	release()
	must(t, <-done)
	r.arrived(t, c, topic)
}

// TestRoom is there again when a quarter of the memory is.
func TestRoom(t *testing.T) {
	_, r, _ := begin(t, 1)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for i, step := range []struct {
		used int
		room bool
	}{{plenty - 1, true}, {plenty, false}, {plenty - 1, false}, {plenty * 3 / 4, false}, {plenty*3/4 - 1, true}, {plenty - 1, true}} {
		r.locked(func() bool { r.memory.used = step.used; return true })()
		if err := r.Room(ended); (err == nil) != step.room {
			t.Errorf("step %d: %v", i, err)
		}
	}
	r.locked(func() bool { r.memory.used = 0; return true })()
}

// TestLingerEnds by itself, also when the clock is set back meanwhile.
func TestLingerEnds(t *testing.T) {
	c, r, topic := begin(t, 1, "linger.ms", "20")
	r.send(t, topic, 0, 3, 10)
	eventually(t, "it is sent", r.locked(func() bool { return r.pending == 0 }))
	holds(t, c, topicName, 0, 3)
	b := &batch{since: time.Now()}
	part := &partition{queue: []*batch{b}}
	r.Begin(time.Now())
	placed := r.place(topic.partitions[0], &Record{Headers: NoHeaders})
	placed.head.count, placed.closed = 1, true
	monotonic := strings.Contains(placed.since.String(), "m=")
	r.End()
	if _, due := part.due(time.Minute, time.Now()); due || !monotonic {
		t.Errorf("due %v, monotonic %v", due, monotonic)
	}
}

// TestMemoryIsBounded while no broker answers.
func TestMemoryIsBounded(t *testing.T) {
	c := cluster(t, 2)
	releases := []func(){hold(c, 0), hold(c, 1)}
	const limit = 1 << 20
	r := newRig(t, c, limit)
	topic := r.topic(t, topicName)
	r.Begin(time.Now())
	for i := range topic.partitions {
		r.append(topic, i, 10)
	}
	if r.memory.used > limit+16<<10 {
		t.Errorf("two records use %d bytes", r.memory.used)
	}
	r.End()
	full := func() bool { return r.memory.used >= limit }
	for i := 0; !r.locked(full)(); i++ {
		r.send(t, topic, i%2, 1, 5000)
	}
	if used := r.memory.used; used > limit+2*limit {
		t.Errorf("%d bytes are used", used)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Room(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := r.Flush(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	for _, release := range releases {
		release()
	}
	must(t, r.Room(limited(t)))
	r.arrived(t, c, topic)
	if r.memory.kept > limit+limit/4 {
		t.Errorf("%d bytes are kept", r.memory.kept)
	}
}

// TestWorkspaces keep neither what large records took nor pieces of batches, and are those of no broker: they go when they are not used.
func TestWorkspaces(t *testing.T) {
	for _, compression := range []string{"none", "snappy"} {
		c := cluster(t, 2)
		r := newRig(t, c, 1<<20, "max.request.size", "5000000", "compression.type", compression)
		var mu sync.Mutex
		var all []*workspace
		r.workspaces.New = func() any {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, new(workspace))
			return all[len(all)-1]
		}
		topic := r.topic(t, topicName)
		for _, size := range []int{1, 1000, 1100, 300_000, 1 << 20, 3 << 20, 10, 2 << 20, 4 << 20} { // than a piece, a batch, all memory
			r.send(t, topic, 0, 1, size)
			r.send(t, topic, 1, 1, size)
		}
		r.arrived(t, c, topic)
		r.Close() // who has written has left
		var kept []weak.Pointer[workspace]
		for _, w := range all {
			pieces := 0
			for _, p := range w.buffers[:cap(w.buffers)] {
				pieces += cap(p)
			}
			if pieces > 0 || cap(w.plain) > mostRoom || w.packing.Cap() > mostRoom || cap(w.whole) > mostRoom {
				t.Errorf("%s: %d bytes of pieces are kept, and %d, %d and %d bytes", compression, pieces, cap(w.plain), w.packing.Cap(), cap(w.whole))
			}
			kept = append(kept, weak.Make(w))
		}
		all = nil
		eventually(t, "they are gone", func() bool {
			runtime.GC()
			return !slices.ContainsFunc(kept, func(p weak.Pointer[workspace]) bool { return p.Value() != nil })
		})
	}
}

// TestSpareBatches keep little room, whatever batches there were.
func TestSpareBatches(t *testing.T) {
	m := &memory{limit: plenty}
	for range 3 {
		var all []*batch
		for range 2 * mostSpare {
			b := m.batch()
			for i := range 1000 {
				b.add(m, &Record{Headers: NoHeaders, Pos: int64(i)}, 0)
			}
			all = append(all, b)
		}
		for _, b := range all {
			m.release(b)
		}
		parts := 0
		for _, b := range m.spare {
			parts += cap(b.parts)
		}
		if parts != m.parts || parts > mostParts || len(m.spare) > mostSpare || len(m.spare) < 10 {
			t.Errorf("%d spare batches for %d parts, said are %d", len(m.spare), parts, m.parts)
		}
	}
}

// TestBatchesAreFull and no larger than they may be.
func TestBatchesAreFull(t *testing.T) {
	c, r, topic := begin(t, 1, "linger.ms", "60000", "max.request.size", "5000")
	got := capture(c)
	for range 5000 {
		r.send(t, topic, 0, 1, 1)
	}
	r.arrived(t, c, topic)
	for i := 1; len(got) > 0; i++ {
		size := len(<-got)
		if size > 5000 || len(got) > 0 && size < 4950-5*50 { // a record is reckoned as large as it can be
			t.Errorf("batch %d has %d bytes", i, size)
		}
	}
}

// TestPiecesGoRound between times in which much and little is used, and sizes that are not asked for any more make room for others.
func TestPiecesGoRound(t *testing.T) {
	const limit = 1 << 20
	m := &memory{limit: limit}
	fill := func(size int) (n int) {
		var all []*batch
		for m.used < limit {
			b := m.batch()
			b.write(m, make([]byte, size))
			all = append(all, b)
			if total := m.used + m.kept; total > limit*5/4+64<<10 {
				t.Fatalf("%d bytes are used, %d kept", m.used, m.kept)
			}
		}
		for _, b := range all {
			m.release(b)
		}
		return len(all)
	}
	fill(100_000)
	kept := m.kept
	if n := testing.AllocsPerRun(3, func() { fill(100_000) }); n > float64(limit/100_000)+20 { // what is written, and the list of batches
		t.Errorf("%v allocations", n)
	}
	if m.kept != kept || kept < limit {
		t.Errorf("%d bytes are kept, before %d", m.kept, kept)
	}
	for range 3 { // from one size to another
		for _, size := range []int{100, 20_000} {
			fill(size)
			before := len(m.free[0])
			fill(size)
			if m.used != 0 || m.kept > limit*5/4 || len(m.free[0]) != before {
				t.Errorf("batches of %d bytes: %d bytes are used, %d kept, %d and %d small pieces", size, m.used, m.kept, before, len(m.free[0]))
			}
		}
	}
}
