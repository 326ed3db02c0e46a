package binlog

import (
	"fmt"

	"github.com/tidemark-cdc/tidemark/offset"
)

// previousGTIDs takes in what was executed before the file. Transactions that have not come by, because they were
// declared executed (gtid_purged) or purged before the start, belong to the set too: with a hole a restart would be refused.
func (a *assembler) previousGTIDs(body []byte) error {
	prev, err := parsePreviousGTIDs(body)
	if err != nil {
		return a.errorf(err, "")
	}
	a.headed = true
	if !prev.IsEmpty() && !a.gtids && a.set.IsAbsent() {
		a.gtids = true
	}
	first := a.first
	a.first = false
	switch {
	case a.set.IsAbsent():
		a.set = prev
	case first && !a.set.ContainsSet(prev):
		return a.errorf(fmt.Errorf("the binlog begins behind transactions that the start position does not have: %s; add the files before it", prev.Subtract(a.set)), "")
	case !a.set.ContainsSet(prev):
		if a.gtids && !a.scan {
			a.warn(fmt.Sprintf("%s: the server counts transactions as executed that are not in its binlog (set by gtid_purged?): %s; "+
				"they are taken as read", at(a.file, a.start), prev.Subtract(a.set)))
		}
		a.set = a.set.Union(prev)
	}
	return nil
}

// beginGroup handles a GTID event.
func (a *assembler) beginGroup(h header, body []byte) (Event, error) {
	if a.xa != "" {
		return nil, a.unfinished()
	}
	a.headed = true
	a.finishGroup()
	a.tables.forget()
	a.gtidText, a.micros = "", 0
	if h.typ == evAnonymous {
		a.gtids = false
		// Binlogs of a server that had GTIDs only later: what lies before the stored position has been read.
		before, comparable := offset.Offset{File: a.file, Pos: a.start}.Before(a.read)
		a.ignored = before && comparable
		return nil, nil
	}
	parse := parseGTID
	if h.typ == evTaggedGTID {
		parse = parseTaggedGTID
	}
	g, err := parse(body)
	if err != nil {
		return nil, a.errorf(err, "")
	}
	if g.id.Number < 1 {
		return nil, a.errorf(fmt.Errorf("GTID with number %d", g.id.Number), "")
	}
	a.gtids = true
	a.gtid, a.micros, a.pending, a.empty = g.id, g.micros, true, true
	a.ignored = a.set.Contains(g.id)
	return nil, nil
}

// finishGroup counts the transaction as read whose GTID is pending, unless the log was cut off behind its GTID or inside
// it: then it was not committed, and its GTID may come again (I4).
func (a *assembler) finishGroup() {
	if a.pending && !a.empty && !a.in && !a.set.IsAbsent() {
		a.set = a.set.Add(a.gtid)
	}
	a.pending, a.ignored, a.statement = false, false, false
	a.micros = 0
	a.query = ""
}

// offsetAt is the offset at a position between transactions.
func (a *assembler) offsetAt(h header, pos int64) offset.Offset {
	o := offset.Offset{File: a.file, Pos: pos, ServerID: int64(a.lastServer), TsSec: a.time(h) / 1e6}
	if a.gtids {
		o.GTIDs = a.set
	}
	return o
}

// time is the source time: the original commit time, without GTIDs the header's.
func (a *assembler) time(h header) int64 {
	if a.gtids && a.micros != 0 {
		return a.micros
	}
	if h.time == 0 { // made up by the server for this connection
		return int64(a.lastTime) * 1e6
	}
	return int64(h.time) * 1e6
}

// boundaryAt is the boundary behind the event being handled. It is one value, used again and again.
func (a *assembler) boundaryAt(h header, commit bool) *Boundary {
	a.boundary = Boundary{Offset: a.offsetAt(h, a.next), Commit: commit}
	return &a.boundary
}

// endGroup ends a transaction or statement: its GTID is counted, and the boundary behind it returned unless it is one
// that the start already has.
func (a *assembler) endGroup(h header, commit bool) *Boundary {
	silent := a.silent()
	micros := a.micros
	a.finishGroup()
	a.micros = micros // the boundary has the transaction's time
	b := a.boundaryAt(h, commit)
	a.micros = 0
	if silent || a.resume != nil {
		return nil
	}
	return b
}

// beginTransaction handles BEGIN.
func (a *assembler) beginTransaction(thread int64) error {
	if a.in || a.xa != "" {
		return a.unfinished()
	}
	a.in, a.begin, a.events, a.thread, a.sent = true, a.start, 1, thread, false
	a.statement = false
	a.tables.forget()
	r := a.resume
	if r == nil || a.silent() {
		return nil
	}
	if a.file != r.file || a.start != r.pos {
		return a.resumeElsewhere()
	}
	if !r.byGTID {
		a.warn(fmt.Sprintf("going on inside the transaction that begins at %s: without GTIDs only the position says that it is the same one", at(a.file, a.begin)))
	}
	a.skipping = true
	return nil
}

// commit handles the end of a transaction.
func (a *assembler) commit(h header) (Event, error) {
	if a.skipping && !a.silent() {
		return nil, a.errorf(fmt.Errorf("the stored offset has %d events of the transaction that begins at %s, which has only %d: "+
			"the offset is from another server or another binlog; "+startElsewhere,
			a.resume.event, at(a.file, a.begin), a.events), "")
	}
	a.in, a.events, a.thread, a.rowSkip = false, 0, -1, 0
	a.tables.forget()
	b := a.endGroup(h, true)
	if b == nil {
		return nil, nil
	}
	return b, nil
}
