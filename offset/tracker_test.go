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
	seq, err := tr.Sent(t.Context(), at(pos))
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

func acked(t testing.TB, tr *Tracker, seq uint64) {
	t.Helper()
	if err := tr.Acked(seq); err != nil {
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
		if err := tr.Acked(0); err == nil {
			t.Error("nothing sent: no error")
		}
		a := sent(t, tr, 1)
		acked(t, tr, a)
		if err := tr.Acked(a); err == nil || !strings.Contains(err.Error(), "second time") {
			t.Errorf("window %d: double acknowledgement: %v", window, err)
		}
		if window == 1 {
			continue
		}
		_, c := sent(t, tr, 2), sent(t, tr, 3)
		acked(t, tr, c)
		if err := tr.Acked(c); err == nil || !strings.Contains(err.Error(), "second time") {
			t.Errorf("window %d: double acknowledgement: %v", window, err)
		}
		if err := tr.Acked(c + 1); err == nil || !strings.Contains(err.Error(), "only 3 were sent") {
			t.Errorf("window %d: unknown: %v", window, err)
		}
		wantSafe(t, tr, 1)
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
		go func() { _, got = tr.Sent(ctx, at(2)) }()
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
	after []Offset // per record, with later boundaries folded in
	first Offset   // boundary before all records
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
		m := &trackerModel{}
		var open []uint64
		pos := 0
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // Sent returns at once when it would block
		last := -1
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			pos++
			switch op := rapid.IntRange(0, 9).Draw(t, "op"); {
			case op < 4:
				for range rapid.IntRange(1, 1+min(window/8, 300)).Draw(t, "burst") {
					pos++
					seq, err := tr.Sent(ctx, at(pos))
					lead, _, _ := m.newest()
					if err != nil {
						// Up to a group more than the records in the window may be missing, never less room than that.
						if len(m.acked)-lead+window/16 < window {
							t.Fatalf("window %d: refused with %d outstanding from the oldest", window, len(m.acked)-lead)
						}
						break
					}
					if len(m.acked)-lead >= window {
						t.Fatalf("window %d exceeded", window)
					}
					if seq != uint64(len(m.acked)) {
						t.Fatalf("sequence number %d, want %d", seq, len(m.acked))
					}
					m.acked = append(m.acked, false)
					m.after = append(m.after, at(pos))
					open = append(open, seq)
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
					seq := open[i]
					open = append(open[:i], open[i+1:]...)
					if err := tr.Acked(seq); err != nil {
						t.Fatal(err)
					}
					m.acked[seq] = true
					if err := tr.Acked(seq); err == nil {
						t.Fatal("second acknowledgement accepted")
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
				if err := tr.Acked(seq); err != nil {
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
	ctx := b.Context()
	b.ReportAllocs()
	var seqs [512]uint64
	for b.Loop() {
		for i := range seqs {
			o.Row++
			seqs[i], _ = tr.Sent(ctx, o)
		}
		for _, seq := range seqs {
			if err := tr.Acked(seq); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(seqs)), "ns/record")
}

// What an offset has beside its text goes through, and costs nothing more.
func TestTrackerPassesSidesThrough(t *testing.T) {
	tracker := NewTracker(64)
	o := inside(4)
	allocs := testing.AllocsPerRun(500, func() {
		o.Done++
		seq, err := tracker.Sent(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if err := tracker.Acked(seq); err != nil {
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
