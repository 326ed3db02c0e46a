package offset

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

func at(pos int) Offset { return Offset{File: "mysql-bin.000001", Pos: int64(pos)} }

func sent(t testing.TB, tr *Tracker, pos int) uint64 {
	t.Helper()
	if _, err := tr.Room(t.Context()); err != nil {
		t.Fatal(err)
	}
	return tr.Sent(1, at(pos))
}

func acked(t testing.TB, tr *Tracker, group uint64) {
	t.Helper()
	if err := tr.Acked(group, 1); err != nil {
		t.Fatal(err)
	}
}

func wantSafe(t testing.TB, tr *Tracker, pos int) {
	t.Helper()
	o, ok := tr.Safe()
	if pos < 0 && !ok {
		return
	}
	if !ok || o.Pos != int64(pos) {
		t.Fatalf("safe is %v, %v; want position %d", o, ok, pos)
	}
}

// Acknowledgements come in order within a partition only: one partition that is ahead must not carry the offset over
// what another has not got.
func TestI1_SafeWaitsForTheOldestRecord(t *testing.T) {
	tr := NewTracker(10)
	a, b, c := sent(t, tr, 1), sent(t, tr, 2), sent(t, tr, 3)
	wantSafe(t, tr, -1)
	acked(t, tr, c)
	acked(t, tr, b)
	wantSafe(t, tr, -1)
	acked(t, tr, a)
	wantSafe(t, tr, 3)
	if n := tr.Unacked(); n != 0 {
		t.Fatalf("%d unacknowledged", n)
	}
}

func TestI1_DoubleAndUnknownAcknowledgementsAreErrors(t *testing.T) {
	for _, window := range []int{1, 10, 100, 100_000} {
		tr := NewTracker(window)
		if err := tr.Acked(0, 1); err == nil {
			t.Error("nothing sent: no error")
		}
		a := sent(t, tr, 1)
		for _, n := range []int{0, -1, 2} {
			if err := tr.Acked(a, n); err == nil {
				t.Errorf("window %d: %d of one record acknowledged", window, n)
			}
		}
		acked(t, tr, a)
		if err := tr.Acked(a, 1); err == nil || !strings.Contains(err.Error(), "only 0 were on their way") {
			t.Errorf("window %d: double acknowledgement: %v", window, err)
		}
		if window == 1 {
			continue
		}
		b, c := sent(t, tr, 2), sent(t, tr, 3)
		acked(t, tr, c)
		if b != c {
			if err := tr.Acked(c, 1); err == nil {
				t.Errorf("window %d: double acknowledgement", window)
			}
		} else if err := tr.Acked(c, 2); err == nil || !strings.Contains(err.Error(), "only 1 were on their way") {
			t.Errorf("window %d: double acknowledgement: %v", window, err)
		}
		if err := tr.Acked(c+1, 1); err == nil || !strings.Contains(err.Error(), "only 3 records were sent") {
			t.Errorf("window %d: unknown: %v", window, err)
		}
		wantSafe(t, tr, 1)
	}
}

// Room is never more than what a group takes, so that an acknowledgement has one number.
func TestSentNeedsRoom(t *testing.T) {
	tr := NewTracker(1 << 15)
	for want := 256; want > 0; want -= 100 {
		if n, err := tr.Room(t.Context()); err != nil || n != want {
			t.Fatalf("room for %d, %v, want %d", n, err, want)
		}
		if want > 100 {
			tr.Sent(100, at(1))
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("more than there is room for is tracked")
		}
	}()
	tr.Sent(57, at(2))
}

// The ring has a place for each group of a full window, wherever the oldest record lies in its group.
func TestI1_FullWindow(t *testing.T) {
	for _, window := range []int{1, 2, 31, 32, 33, 63, 64, 1024, 5000, 1 << 15} {
		tr := NewTracker(window)
		acked(t, tr, sent(t, tr, 1))
		var groups []uint64
		for i := range window {
			groups = append(groups, sent(t, tr, 2+i))
		}
		first := 0 // records of the oldest group
		for first < len(groups) && groups[first] == groups[0] {
			acked(t, tr, groups[first])
			first++
		}
		wantSafe(t, tr, 1+first)
		for _, group := range groups[first:] {
			acked(t, tr, group)
		}
		wantSafe(t, tr, 1+window)
	}
}

func TestI8_BoundariesMoveTheOffset(t *testing.T) {
	tr := NewTracker(10)
	tr.Boundary(at(1))
	wantSafe(t, tr, 1)
	tr.Boundary(at(2))
	wantSafe(t, tr, 2)
	a := sent(t, tr, 3)
	tr.Boundary(at(4))
	tr.Boundary(at(5))
	wantSafe(t, tr, 2)
	acked(t, tr, a)
	wantSafe(t, tr, 5)
	tr.Boundary(at(6))
	wantSafe(t, tr, 6)
}

func TestI8_BoundaryBehindOutstandingRecordsWaits(t *testing.T) {
	tr := NewTracker(100_000)
	var seqs []uint64
	for i := range 1000 {
		seqs = append(seqs, sent(t, tr, i))
	}
	tr.Boundary(at(5000))
	for _, seq := range seqs[1:] {
		acked(t, tr, seq)
	}
	wantSafe(t, tr, -1)
	acked(t, tr, seqs[0])
	wantSafe(t, tr, 5000)
}

func TestSentBlocksWhileTheWindowIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := NewTracker(4)
		var seqs []uint64
		for i := range 4 {
			seqs = append(seqs, sent(t, tr, i))
		}
		done := false
		go func() {
			sent(t, tr, 4)
			done = true
		}()
		synctest.Wait()
		for _, seq := range seqs[1:] {
			acked(t, tr, seq)
		}
		synctest.Wait()
		if done {
			t.Fatal("went on although the oldest record is outstanding")
		}
		acked(t, tr, seqs[0])
		synctest.Wait()
		if !done {
			t.Fatal("still blocked")
		}
	})
}

func TestSentGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := NewTracker(1)
		a := sent(t, tr, 1)
		stop := errors.New("stopping")
		ctx, cancel := context.WithCancelCause(t.Context())
		var got error
		go func() { _, got = tr.Room(ctx) }()
		synctest.Wait()
		cancel(stop)
		synctest.Wait()
		if !errors.Is(got, stop) {
			t.Fatalf("got %v", got)
		}
		// What was not sent is not tracked, and a wake-up that nobody took harms nobody.
		acked(t, tr, a)
		wantSafe(t, tr, 1)
		b := sent(t, tr, 2)
		finished := false
		go func() { sent(t, tr, 3); finished = true }()
		synctest.Wait()
		acked(t, tr, b)
		synctest.Wait()
		if !finished {
			t.Fatal("blocked for ever")
		}
	})
}

// trackerModel remembers everything.
type trackerModel struct {
	lead  int // leading records that are acknowledged
	acked []bool
	left  map[uint64]int // outstanding records by group
	after []Offset       // per record, with later boundaries folded in
	first Offset         // boundary before all records
	has   bool
}

func (m *trackerModel) boundary(o Offset) {
	if n := len(m.after); n > 0 {
		m.after[n-1] = o
	} else {
		m.first, m.has = o, true
	}
}

// newest gives the number of leading records that are acknowledged and the newest safe offset.
func (m *trackerModel) newest() (int, Offset, bool) {
	for m.lead < len(m.acked) && m.acked[m.lead] {
		m.lead++
	}
	if m.lead == 0 {
		return 0, m.first, m.has
	}
	return m.lead, m.after[m.lead-1], true
}

func TestI1_TrackerAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window := rapid.SampledFrom([]int{1, 2, 3, 15, 31, 32, 100, 1000, 5000}).Draw(t, "window")
		tr := NewTracker(window)
		m := &trackerModel{left: map[uint64]int{}}
		type record struct {
			i     int
			group uint64
		}
		var open []record
		pos := 0
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // Room returns at once when it would block
		last := -1
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			pos++
			switch op := rapid.IntRange(0, 9).Draw(t, "op"); {
			case op < 4:
				for burst := rapid.IntRange(1, 1+min(window/8, 300)).Draw(t, "burst"); burst > 0; {
					room, err := tr.Room(ctx)
					lead, _, _ := m.newest()
					if err != nil {
						// Up to a group more than the records in the window may be missing, never less room than that.
						if len(m.acked)-lead+window/16 < window {
							t.Fatalf("window %d: refused with %d outstanding from the oldest", window, len(m.acked)-lead)
						}
						break
					}
					n := min(room, rapid.IntRange(1, burst).Draw(t, "together"))
					burst -= n
					if len(m.acked)-lead+n > window {
						t.Fatalf("window %d exceeded", window)
					}
					pos += n
					group := tr.Sent(n, at(pos))
					m.left[group] += n
					for i := range n {
						open = append(open, record{len(m.acked), group})
						m.acked = append(m.acked, false)
						m.after = append(m.after, at(pos-n+1+i))
					}
				}
			case op < 5:
				tr.Boundary(at(pos))
				m.boundary(at(pos))
			default:
				choose := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "which"), 0))
				for range rapid.IntRange(1, 1+min(window/4, 300)).Draw(t, "acks") {
					if len(open) == 0 {
						break
					}
					i := choose.IntN(len(open))
					if choose.IntN(4) > 0 {
						i = 0 // mostly in order, or nothing would ever become safe
					}
					one := open[i]
					open = append(open[:i], open[i+1:]...)
					if err := tr.Acked(one.group, 1); err != nil {
						t.Fatal(err)
					}
					m.acked[one.i] = true
					if m.left[one.group]--; m.left[one.group] == 0 && tr.Acked(one.group, 1) == nil {
						t.Fatal("more acknowledgements than records accepted")
					}
				}
			}
			lead, newest, has := m.newest()
			got, ok := tr.Safe()
			if ok && !has {
				t.Fatalf("safe is %s, nothing can be", got)
			}
			if ok && got.Pos > newest.Pos {
				t.Fatalf("I1: safe is %d, beyond %d", got.Pos, newest.Pos)
			}
			if ok && int(got.Pos) < last {
				t.Fatalf("I2: safe went back from %d to %d", last, got.Pos)
			}
			if ok {
				last = int(got.Pos)
			}
			if exact := window < 32 || lead == len(m.acked); exact && (ok != has || ok && got.Pos != newest.Pos) {
				t.Fatalf("safe is %v, %v; want %v, %v", got, ok, newest, has)
			}
			// Never more than one group behind.
			if behind := lead - max(window/16, 1); behind > 0 && (!ok || got.Pos < m.after[behind-1].Pos) {
				t.Fatalf("safe is %v, %v, more than a group behind", got, ok)
			}
			if tr.Unacked() != len(open) {
				t.Fatalf("%d unacknowledged, want %d", tr.Unacked(), len(open))
			}
		}
	})
}

func TestI1_AcknowledgementsFromManyGoroutines(t *testing.T) {
	tr := NewTracker(512)
	const n, partitions = 20_000, 4
	queues := make([]chan uint64, partitions)
	var wg sync.WaitGroup
	for i := range queues {
		queues[i] = make(chan uint64, 64)
		wg.Go(func() {
			for seq := range queues[i] {
				if err := tr.Acked(seq, 1); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range n {
		queues[rand.IntN(partitions)] <- sent(t, tr, i+1)
	}
	for _, q := range queues {
		close(q)
	}
	wg.Wait()
	wantSafe(t, tr, n)
}

func BenchmarkTracker(b *testing.B) {
	tr := NewTracker(65536)
	gtids := mustSet(b, uuidB+":1-5")
	o := Offset{TsSec: 5, File: "mysql-bin.000003", Pos: 479, GTIDs: gtids, Row: 1, ServerID: 223344, Event: 2}
	b.ReportAllocs()
	const many = 64 // together
	var groups [8]uint64
	for b.Loop() {
		for i := range groups {
			if _, err := tr.Room(b.Context()); err != nil {
				b.Fatal(err)
			}
			o.Row++
			groups[i] = tr.Sent(many, o)
		}
		for _, group := range groups {
			if err := tr.Acked(group, many); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(groups)*many), "ns/record")
}

// What an offset has beside its text goes through, and costs nothing more.
func TestTrackerPassesSidesThrough(t *testing.T) {
	tracker := NewTracker(64)
	o := inside(4)
	allocs := testing.AllocsPerRun(500, func() {
		o.Done++
		if _, err := tracker.Room(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := tracker.Acked(tracker.Sent(1, o), 1); err != nil {
			t.Fatal(err)
		}
	})
	safe, ok := tracker.Safe()
	if allocs != 0 || !ok || safe.Side != o.Side || safe.Done != o.Done {
		t.Errorf("%v allocations, %v, %+v", allocs, ok, safe)
	}
	// A boundary that is equal in its text is still the newest.
	o.Done = 9999
	tracker.Boundary(o)
	if safe, _ := tracker.Safe(); !safe.Same(o) {
		t.Errorf("%+v", safe)
	}
}
