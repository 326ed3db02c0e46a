package offset

import (
	"context"
	"fmt"
	"sync"
)

// Tracker says up to which offset every record is acknowledged (I1). One goroutine announces, in binlog order, the records
// that it hands to Kafka and each boundary without a record; any goroutine reports acknowledgements, in any order. The
// offsets are only kept, never compared: what counts is the order of the calls.
//
// Records are tracked in groups of consecutive ones, so that memory and cost do not grow with the window: one number and
// one offset a group, the newest. A group counts when all its records are acknowledged, so the safe offset can lag by less
// than one group (1/16 of the window or less, at most 256 records); it is exact whenever nothing is outstanding.
type Tracker struct {
	mu      sync.Mutex
	window  uint64
	shift   uint           // records a group: 1 << shift
	groups  []trackerGroup // ring by number; the length is a power of two
	next    uint64         // records sent
	low     uint64         // all before are acknowledged: next, or the first of the oldest group that lacks something
	unacked int

	safe    Offset
	hasSafe bool

	waiting bool          // Room waits for low to move …
	room    chan struct{} // … and is told here
}

type trackerGroup struct {
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

// Room says how many records may be sent at once, at least one: as many as the window and the present group have room for. It
// blocks while the window is full and returns an error only when ctx ends first. Room, [Tracker.Sent] and [Tracker.Boundary]
// must not be called at the same time.
func (t *Tracker) Room(ctx context.Context) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.next-t.low >= t.window {
		if err := t.wait(ctx); err != nil {
			return 0, err
		}
	}
	size := uint64(1) << t.shift
	return int(min(t.window-(t.next-t.low), size-t.next&(size-1))), nil
}

// Sent announces the next n records, before they are handed to Kafka, and the offset that holds after the last of them. It
// returns the group for [Tracker.Acked]. More than [Tracker.Room] has allowed would be tracked wrongly, and are a panic.
func (t *Tracker) Sent(n int, after Offset) (group uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	group = t.next >> t.shift
	if n < 1 || (t.next+uint64(n)-1)>>t.shift != group || t.next+uint64(n)-t.low > t.window {
		panic(fmt.Sprintf("offset: %d records announced where there is no room for them", n))
	}
	g := t.group(group)
	g.unacked += n
	g.after = after
	t.next += uint64(n)
	t.unacked += n
	return group
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

func (t *Tracker) group(number uint64) *trackerGroup {
	return &t.groups[number&uint64(len(t.groups)-1)]
}

// Boundary announces an offset that holds as soon as all records sent before are acknowledged: after a commit, a DDL
// statement, rows that were filtered out, idle time (I8). It never blocks.
func (t *Tracker) Boundary(after Offset) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.unacked == 0 {
		t.safe, t.hasSafe = after, true
		return
	}
	t.group((t.next - 1) >> t.shift).after = after
}

// Acked reports that all in-sync replicas have n more records of a group. It is an error to report more than were sent: then
// nothing that the tracker says can be trusted any more and the caller has to stop. Records that failed are never reported;
// the safe offset then stays before them. Acked never blocks and may be called from any goroutine.
func (t *Tracker) Acked(group uint64, n int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next == 0 || group > (t.next-1)>>t.shift {
		return fmt.Errorf("acknowledgement of records of group %d, but only %d records were sent, %d in a group", group, t.next, 1<<t.shift)
	}
	unacked := 0
	if group >= t.low>>t.shift {
		unacked = t.group(group).unacked
	}
	if n < 1 || n > unacked {
		return fmt.Errorf("%d records of group %d were acknowledged, of which only %d were on their way", n, group, unacked)
	}
	t.group(group).unacked -= n
	t.unacked -= n
	if unacked == n && group == t.low>>t.shift {
		t.advance()
	}
	return nil
}

// advance moves low over the groups that lack nothing.
func (t *Tracker) advance() {
	for t.low < t.next {
		g := t.group(t.low >> t.shift)
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
