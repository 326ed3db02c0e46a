package sim

import (
	"fmt"
	"sync"
	"time"

	"github.com/tidemark-cdc/tidemark/offset"
)

// progress is what an offset says is done: whole transactions, and changes of captured tables.
type progress struct{ transactions, changes int }

func (p progress) String() string {
	return fmt.Sprintf("%d transactions, %d changes", p.transactions, p.changes)
}

// load is one look at the stored offset, with which an attempt of a process begins.
type load struct {
	at      time.Time
	process int
	done    progress
	none    bool // nothing was stored: the stream begins anew
}

// save is one write of an offset.
type save struct {
	at       time.Time
	process  int
	offset   offset.Offset
	done     progress
	ends     map[partition]int64 // of the topics when it was begun
	finished time.Time           // zero: it failed, or the process died in it
	refused  bool                // since another process has taken over
}

// notes are what was seen of offsets.
type notes struct {
	s *simulation

	mu    sync.Mutex
	loads []load
	saves []*save
}

func (n *notes) loaded(p *process, o offset.Offset) {
	l := load{at: time.Now(), process: p.number, none: o.IsZero()}
	if !l.none {
		l.done = n.measure("loaded", p, o)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.loads = append(n.loads, l)
	n.s.say("process %d goes on from %v (%v)", p.number, l.done, o)
}

// measure says what an offset stands for; that it stands for nothing is a violation.
func (n *notes) measure(what string, p *process, o offset.Offset) progress {
	done, err := n.s.mysql.progress(o)
	if err != nil {
		n.s.violated("I4", "process %d %s %v: %v", p.number, what, o, err)
	}
	return done
}

func (n *notes) saving(p *process, o offset.Offset) *save {
	s := &save{at: time.Now(), process: p.number, offset: o, done: n.measure("stores", p, o), ends: n.s.kafka.ends()}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.saves = append(n.saves, s)
	return s
}

func (n *notes) saved(s *save) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s.finished = time.Now()
}

// refused hears that nothing was stored.
func (n *notes) refused(s *save) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s.refused = true
}

// newest is what the newest offset that is stored for certain says, and where it is. A process that was replaced may say later what it
// had stored before.
func (n *notes) newest() (done progress, o offset.Offset) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.saves {
		if !s.finished.IsZero() && (s.done.transactions > done.transactions || s.done.changes >= done.changes) {
			done, o = s.done, s.offset
		}
	}
	return done, o
}

// progress says what an offset says is done, by what the servers know. It is an error if no reader can have come there.
func (s *servers) progress(o offset.Offset) (progress, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := place{o.File, o.Pos}
	done, found := 0, false
	for _, srv := range s.all {
		if o.Side != nil && o.Side.Server != "" && o.Side.Server != srv.uuid {
			continue
		}
		if n, ok := srv.edges[at]; ok && (!found || s.gtids) {
			done, found = n, true
			if s.gtids && n == s.count(o) {
				break
			}
		}
	}
	switch {
	case !found:
		return progress{}, fmt.Errorf("no transaction begins or ends at %s:%d", o.File, o.Pos)
	case s.gtids != !o.GTIDs.IsAbsent():
		return progress{}, fmt.Errorf("its GTIDs are %v", o.GTIDs)
	case s.gtids && s.count(o) != done:
		return progress{}, fmt.Errorf("%d transactions are done at its position, and %d by its GTIDs", done, s.count(o))
	}
	p := progress{transactions: done, changes: len(s.changes)}
	if done == len(s.done) {
		if o.Event != 0 || o.Row != 0 {
			return p, fmt.Errorf("it lies inside a transaction that nobody has executed")
		}
		return p, nil
	}
	tx := s.done[done]
	p.changes = tx.first
	if o.Event == 0 && o.Row == 0 {
		return p, nil
	}
	if o.Event > int64(len(tx.events)) {
		return p, fmt.Errorf("event %d of a transaction that has %d", o.Event, len(tx.events))
	}
	for _, ev := range tx.events[:o.Event] {
		if ev.captured {
			p.changes += ev.rows
		}
	}
	for _, ev := range tx.events[o.Event:] {
		if ev.rows == 0 {
			continue
		}
		if o.Row > int64(ev.rows) {
			return p, fmt.Errorf("row %d of an event that has %d", o.Row, ev.rows)
		}
		if ev.captured {
			p.changes += int(o.Row)
		}
		break
	}
	return p, nil
}

// count is how many of the transactions, from the first on, are in an offset's GTIDs; below 0 if others are, too. The lock is held.
func (s *servers) count(o offset.Offset) int {
	set, err := parseGTIDs(o.GTIDs.String())
	if err != nil {
		return -1
	}
	n, total := 0, 0
	for _, number := range set {
		total += int(number)
	}
	for n < len(s.done) && set.has(s.done[n].gtid) {
		n++
	}
	if n != total {
		return -1
	}
	return n
}
