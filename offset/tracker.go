package offset

import (
	"context"
	"fmt"
	"sync"
)

// Tracker says up to which offset every record is acknowledged (I1). One goroutine announces, in binlog order, each
// record that it hands to Kafka and each boundary without a record; any goroutine reports acknowledgements, in any
// order. The offsets are only kept, never compared: what counts is the order of the calls.
//
// Records are tracked in groups of consecutive sequence numbers, so that memory and cost do not grow with the window:
// one bit a record and one offset a group, the newest. A group counts when all its records are acknowledged, so the
// safe offset can lag by less than one group (1/16 of the window or less, at most 256 records); it is exact whenever
// nothing is outstanding.
type Tracker struct {
	mu      sync.Mutex
	window  uint64
	shift   uint           // records a group: 1 << shift
	groups  []trackerGroup // ring by sequence number >> shift; the length is a power of two
	next    uint64         // sequence number of the next record
	low     uint64         // all before are acknowledged: next, or the first of the oldest group that lacks something
	unacked int

	safe    Offset
	hasSafe bool

	waiting bool          // Sent waits for low to move …
	room    chan struct{} // … and is told here
}

const largestGroup = 256

type trackerGroup struct {
	acked   [largestGroup / 64]uint64
	unacked int
	after   Offset // holds when all records of the group so far, and all before, are acknowledged
}

// NewTracker returns a tracker in which no record is sent that is window or more records ahead of the oldest one that
// is not acknowledged. A window of less than 1 counts as 1.
func NewTracker(window int) *Tracker {
	w := uint64(max(window, 1))
	shift := uint(0)
	for shift < 8 && w>>(shift+5) > 0 {
		shift++
	}
	groups := uint64(1)
	for groups < w>>shift+2 {
		groups *= 2
	}
	return &Tracker{window: w, shift: shift, groups: make([]trackerGroup, groups), room: make(chan struct{}, 1)}
}

// Sent announces the next record, before it is handed to Kafka, and the offset that holds after it. It returns the
// record's sequence number for [Tracker.Acked]. It blocks while the window is full and returns an error only when ctx
// ends before there is room; the record is then not tracked. Sent and [Tracker.Boundary] must not be called at the same
// time.
func (t *Tracker) Sent(ctx context.Context, after Offset) (seq uint64, err error) {
	t.mu.Lock()
	for t.next-t.low >= t.window {
		if err := t.wait(ctx); err != nil {
			t.mu.Unlock()
			return 0, err
		}
	}
	seq = t.next
	t.next++
	t.unacked++
	g := t.group(seq)
	if t.inGroup(seq) == 0 {
		g.acked = [largestGroup / 64]uint64{}
	}
	g.unacked++
	g.after = after
	t.mu.Unlock()
	return seq, nil
}

// wait gives the lock up until there may be room.
func (t *Tracker) wait(ctx context.Context) error {
	t.waiting = true
	t.mu.Unlock()
	defer t.mu.Lock()
	select {
	case <-t.room:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for Kafka to acknowledge: %w", context.Cause(ctx))
	}
}

func (t *Tracker) group(seq uint64) *trackerGroup {
	return &t.groups[seq>>t.shift&uint64(len(t.groups)-1)]
}

func (t *Tracker) inGroup(seq uint64) uint64 { return seq & (1<<t.shift - 1) }

// Boundary announces an offset that holds as soon as all records sent before are acknowledged: after a commit, a DDL
// statement, rows that were filtered out, idle time (I8). It never blocks.
func (t *Tracker) Boundary(after Offset) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.unacked == 0 {
		t.safe, t.hasSafe = after, true
		return
	}
	t.group(t.next - 1).after = after
}

// Acked reports that all in-sync replicas have the record. It is an error to report a record twice or one that was not
// sent: then nothing that the tracker says can be trusted any more and the caller has to stop. Records that failed are
// never reported; the safe offset then stays before them. Acked never blocks and may be called from any goroutine.
func (t *Tracker) Acked(seq uint64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if seq >= t.next {
		return fmt.Errorf("acknowledgement of record %d, but only %d were sent", seq, t.next)
	}
	if seq < t.low {
		return fmt.Errorf("record %d was acknowledged a second time", seq)
	}
	g := t.group(seq)
	i := t.inGroup(seq)
	word, bit := i/64, uint64(1)<<(i%64)
	if g.acked[word]&bit != 0 {
		return fmt.Errorf("record %d was acknowledged a second time", seq)
	}
	g.acked[word] |= bit
	g.unacked--
	t.unacked--
	if g.unacked == 0 && seq>>t.shift == t.low>>t.shift {
		t.advance()
	}
	return nil
}

// advance moves low over the groups that lack nothing.
func (t *Tracker) advance() {
	for t.low < t.next {
		g := t.group(t.low)
		if g.unacked > 0 {
			break
		}
		t.safe, t.hasSafe = g.after, true
		t.low = min(t.next, (t.low>>t.shift+1)<<t.shift)
	}
	if t.waiting {
		t.waiting = false
		select {
		case t.room <- struct{}{}:
		default: // told already by an acknowledgement that came after the wait was given up
		}
	}
}

// Safe returns the newest offset known to be safe: all records that lead up to it are acknowledged, and so are all
// before them. The second result is false as long as nothing is known.
func (t *Tracker) Safe() (Offset, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.safe, t.hasSafe
}

// Unacked returns how many records are sent and not acknowledged.
func (t *Tracker) Unacked() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.unacked
}
