package binlog

import (
	"github.com/tidemark-cdc/tidemark/offset"
)

// counts are the rows of a transaction since its BEGIN or XA START; -1: they could not be counted.
type counts struct{ all, captured int64 }

// add counts the rows of one event; n is -1 when they could not be counted.
func (c *counts) add(n int64, captured bool) {
	plus := func(sum *int64) {
		if n < 0 || *sum < 0 {
			*sum = -1
		} else {
			*sum += n
		}
	}
	plus(&c.all)
	if captured {
		plus(&c.captured)
	}
}

// ledger keeps what side records are made of.
type ledger struct {
	server  string            // server_uuid; "": not known
	filters string            // Config.Filters
	listed  []offset.Prepared // undecided XA transactions; a new list when it changes
	born    int64             // when the file was begun, in seconds; 0: not known
	before  fileTime          // what the stored offset says of its file
	idle    *offset.Side      // between transactions, as long as listed and born are the same; nil: not made yet

	counts          // of the open transaction, before the event at hand
	counting   bool // the rows of the event given out last are still to be counted
	opened     bool // a statement of the open transaction has begun
	openPos    int64
	openEvent  int64
	lastRow    int   // index of the last row of the last rows event of a captured table
	lastSec    int64 // source time in seconds of the row or statement that was given out last
	uncaptured map[*version]rowShape
}

// between is the side of offsets between transactions.
func (l *ledger) between() *offset.Side {
	if l.idle == nil {
		l.idle = &offset.Side{Server: l.server, XA: l.listed, FileTime: l.born}
	}
	return l.idle
}

// list replaces the list of undecided XA transactions.
func (l *ledger) list(xa []offset.Prepared) {
	l.listed, l.idle = xa, nil
}

// fileTime is when a binlog file was begun: another one of the same name was at another time.
type fileTime struct {
	file    string
	seconds int64 // 0: not known
}

// begun notes when the file that is being read was begun.
func (l *ledger) begun(seconds int64) {
	if l.born != seconds {
		l.born, l.idle = seconds, nil
	}
}

// openSide is the side of an offset inside a transaction.
type openSide struct {
	side offset.Side
	open offset.Open
}

// put writes the side of offsets inside the transaction that s.open names, before the rows event at hand.
func (l *ledger) put(s *openSide) {
	s.open.Rows, s.open.Captured, s.open.Filters = l.all, l.captured, l.filters
	s.side.Server, s.side.Open, s.side.XA, s.side.FileTime = l.server, &s.open, l.listed, l.born
}

// within is the offset inside the open transaction, before the event at hand.
func (a *assembler) within(h *header) offset.Offset {
	var o offset.Offset
	a.putWithin(&o, new(openSide), h)
	return o
}

// putWithin writes what within returns to an offset, without copies on the way, and its side to s.
func (a *assembler) putWithin(o *offset.Offset, s *openSide, h *header) {
	*o = offset.Offset{}
	a.putOffset(o, h, a.begin)
	o.Event = a.events
	open := &s.open
	open.GTID, open.CommitMicros, open.Thread = a.gtid, a.micros, a.thread
	open.StatementPos, open.StatementEvent = a.openPos, a.openEvent
	open.EventPos, open.XID = 0, ""
	if !a.payload.open && isRows(h.typ) {
		open.EventPos = a.start
	}
	a.ledger.put(s)
	o.Side = &s.side
}

// around is the offset of the record of a transaction's beginning or end: Debezium's have the time of what came before it.
func (a *assembler) around(h *header) offset.Offset {
	o := a.within(h)
	o.TsSec = a.lastSec
	return o
}

// statementBegins notes where the open statement of a transaction began: at its ROWS_QUERY, else its first TABLE_MAP.
func (a *assembler) statementBegins(typ byte) {
	if !a.opened && (typ == evRowsQuery || typ == evTableMap) {
		a.opened, a.openPos, a.openEvent = true, a.start, a.events
	}
}

// info is the source block of the event being handled.
func (a *assembler) info(h *header) Info {
	var i Info
	a.putInfo(&i, h)
	return i
}

// putInfo writes what info returns, without copies on the way.
func (a *assembler) putInfo(i *Info, h *header) {
	i.TsMicros, i.ServerID, i.File, i.Pos, i.Query = a.time(h), int64(h.server), a.file, a.start, a.query
	i.GTID, i.Thread = a.gtid, -1
	if a.in {
		i.Thread = a.thread
	}
}

// locate fills in where a rows event stands and what its offsets are.
func (a *assembler) locate(r *Rows, h *header) {
	a.putInfo(&r.Info, h)
	r.noRow, r.xa = false, false
	r.number++
	r.kept = nil
	switch {
	case a.replay != nil:
		r.xa = true
		r.Base = a.replay.base
		r.Base.TsSec = r.Info.TsMicros / 1e6
		r.side.open = a.replay.open
		a.ledger.put(&r.side)
		r.Base.Side = &r.side.side
	case a.in:
		a.putWithin(&r.Base, &r.side, h)
	default:
		r.noRow = true
		r.Base = a.group
	}
	a.lastSec = r.Info.TsMicros / 1e6
}

// given notes that a rows event is about to be given out: how many rows it has is known when the reader has walked
// through them.
func (a *assembler) given(r *Rows) {
	a.sent, a.counting = true, true
	r.covered, a.covers = a.covers, 0
}

// settle counts the rows of the event that was given out last. Its bytes must still be valid.
func (a *assembler) settle() {
	if a.counting {
		a.count()
	}
}

func (a *assembler) count() {
	a.counting = false
	r := &a.rows
	for r.Next() {
	}
	a.add(int64(r.Row+1), true)
	a.lastRow = r.Row
}

// account says whether a rows event is to be given out, and how many of its rows a restart passes over. One that is not
// given out is counted here.
func (a *assembler) account(h *header, v *version, e *rowsEvent) (skip int64, wanted bool) {
	captured := v.captured && !a.foreign
	skip = a.rowSkip
	a.rowSkip = 0
	n := int64(-1)
	waits := a.xa != nil && a.replay == nil
	if captured && a.recount {
		switch {
		case a.skipping:
			a.covers = -1
			return 0, true
		case skip > 0:
			a.covers = skip
			return 0, true
		}
	}
	if !captured || a.skipping || waits || a.pass.left() > 0 {
		n = a.countRows(h, v, e)
	}
	switch {
	case waits:
		a.xa.counts.add(n, captured)
		a.xa.take(n, captured)
		if captured && n > 0 {
			a.lastRow = int(n) - 1
		}
		return 0, false
	case !captured:
		a.passUncaptured(n)
		a.add(n, false)
		return 0, false
	case a.skipping:
		a.add(n, true)
		return 0, false
	case a.pass.left() > 0:
		skip = a.pass.left()
		whole := n >= 0 && skip >= n
		a.pass.done(n, true)
		if whole {
			a.add(n, true)
			return 0, false
		}
	}
	return skip, true
}

// pass is what is left to be passed over of a transaction that is found again by its rows: by those of captured tables,
// by those of all, or until both are done.
type pass counts

// left is how many rows of a captured table are to be passed over next.
func (p *pass) left() int64 { return max(p.captured, p.all) }

// done takes the rows of an event off.
func (p *pass) done(n int64, captured bool) {
	if n < 0 {
		*p = pass{} // what follows is sent again rather than lost
		return
	}
	p.all = max(0, p.all-n)
	if captured {
		p.captured = max(0, p.captured-n)
	}
}

// passUncaptured takes the rows of a table that is not captured off, n of them, or -1 where they could not be counted.
func (a *assembler) passUncaptured(n int64) {
	switch {
	case n >= 0:
		a.pass.done(n, false)
	case a.pass.all > 0:
		a.pass.all, a.uncounted = 0, true
	}
}
