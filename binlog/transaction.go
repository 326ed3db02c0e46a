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
	case first && !a.missing(prev).IsEmpty():
		return a.errorf(fmt.Errorf("the binlog begins behind transactions that the start position does not have: %s; add the files before it", a.missing(prev)), "")
	case !a.set.ContainsSet(prev):
		if a.gtids && !a.scan {
			a.warn(fmt.Sprintf("%s: the server counts transactions as executed that are not in its binlog (set by gtid_purged?): %s; "+
				"they are taken as read", at(a.file, a.start), prev.Subtract(a.set)))
		}
		a.set = a.set.Union(prev)
	}
	return nil
}

// missing is what of prev has not been read, as far as its sources count.
func (a *assembler) missing(prev offset.GTIDSet) offset.GTIDSet {
	missing := prev.Subtract(a.set)
	if a.sources != nil {
		missing = missing.Filter(a.sources)
	}
	return missing
}

// newGroup ends what went before and begins a group at the event at hand.
func (a *assembler) newGroup() error {
	if a.xa != nil {
		return a.unfinished()
	}
	a.headed = true
	a.finishGroup()
	a.tables.forget()
	a.gtid, a.gtidText, a.micros = offset.GTID{}, "", 0
	a.groupStart, a.grouped = a.start, true
	a.maria.announced = false
	return nil
}

// beginGroup handles a GTID event.
func (a *assembler) beginGroup(h *header, body []byte) (Event, error) {
	if err := a.newGroup(); err != nil {
		return nil, err
	}
	if h.typ == evAnonymous {
		a.gtids, a.foreign = false, false
		// Binlogs of a server that had GTIDs only later: what lies before the stored position has been read.
		before, comparable := offset.Offset{File: a.file, Pos: a.start}.Before(a.read)
		a.ignored = before && comparable
		if g, err := parseGTID(body); err == nil {
			a.micros = g.micros // for the side record
		}
		a.reach(h)
		return nil, nil
	}
	if h.typ == evMariaGTID {
		return a.beginMaria(h, body)
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
	a.transactionID(g.id, g.micros)
	a.reach(h)
	return nil, nil
}

// reach takes what the schema history says for the position before the group that begins.
func (a *assembler) reach(h *header) {
	if a.history.applied < len(a.history.entries) && !a.silent() {
		a.history.advance(a.offsetAt(h, a.groupStart), a.defs)
	}
}

// transactionID notes the GTID of the group that begins.
func (a *assembler) transactionID(id offset.GTID, micros int64) {
	a.gtids = true
	a.gtid, a.micros, a.pending, a.empty = id, micros, true, true
	a.ignored = a.set.Contains(id)
	a.foreign = a.sources != nil && !a.sourceRows && !a.sourceCounts(id)
}

// sourceCounts says whether the source of a GTID counts (Config.GTIDSources).
func (a *assembler) sourceCounts(id offset.GTID) bool {
	id.Number = 0
	ok, known := a.known[id]
	if !known {
		if a.known == nil {
			a.known = make(map[offset.GTID]bool)
		}
		ok = a.sources(id.Origin())
		a.known[id] = ok
	}
	return ok
}

// openGroup notes where a group without GTID event begins.
func (a *assembler) openGroup(h *header) {
	if !a.grouped {
		a.groupStart, a.grouped = a.start, true
		a.gtid, a.gtidText = offset.GTID{}, ""
		a.reach(h)
	}
}

// finishGroup counts the transaction as read whose GTID is pending, unless the log was cut off behind its GTID or inside
// it: then it was not committed, and its GTID may come again (I4).
func (a *assembler) finishGroup() {
	if a.pending && !a.empty && !a.in && !a.set.IsAbsent() {
		a.set = a.set.Add(a.gtid)
	}
	a.pending, a.ignored, a.statement, a.grouped = false, false, false, false
	a.micros = 0
	a.query = ""
}

// offsetAt is the offset at a position between transactions.
func (a *assembler) offsetAt(h *header, pos int64) offset.Offset {
	var o offset.Offset
	a.putOffset(&o, h, pos)
	return o
}

// putOffset writes what offsetAt returns to an offset that is zero, without copies on the way.
func (a *assembler) putOffset(o *offset.Offset, h *header, pos int64) {
	o.File, o.Pos, o.ServerID, o.TsSec, o.Side = a.file, pos, int64(a.lastServer), a.time(h)/1e6, a.between()
	if a.gtids {
		o.GTIDs = a.set
	}
}

// time is the source time: the original commit time, without GTIDs the header's.
func (a *assembler) time(h *header) int64 {
	if a.gtids && a.micros != 0 {
		return a.micros
	}
	if h.time == 0 { // made up by the server for this connection
		return int64(a.lastTime) * 1e6
	}
	return int64(h.time) * 1e6
}

// boundaryAt is the boundary behind the event being handled. It is one value, used again and again.
func (a *assembler) boundaryAt(h *header, commit bool) *Boundary {
	b := &a.boundary
	*b = Boundary{Commit: commit}
	a.putOffset(&b.Offset, h, a.next)
	return b
}

// endGroup ends a transaction or statement: its GTID is counted, and the boundary behind it returned unless it is one
// that the start already has.
func (a *assembler) endGroup(h *header, commit bool) *Boundary {
	silent := a.silent()
	micros := a.micros
	a.finishGroup()
	a.passed = true
	a.micros = micros // the boundary has the transaction's time
	b := a.boundaryAt(h, commit)
	a.micros = 0
	if silent {
		return nil
	}
	a.uncovered()
	if a.waits() {
		return nil
	}
	return b
}

// beginTransaction handles BEGIN.
func (a *assembler) beginTransaction(h *header, thread int64) (Event, error) {
	if a.in || a.xa != nil {
		return nil, a.unfinished()
	}
	a.in, a.begin, a.events, a.thread, a.sent = true, a.start, 1, thread, false
	a.statement, a.opened = false, false
	a.openPos, a.openEvent = 0, 0
	a.counts, a.pass = counts{}, pass{}
	a.tables.forget()
	inside, err := a.resumeTransaction()
	if err != nil || !a.transactions || a.silent() {
		return nil, err
	}
	a.began = Begin{Info: a.info(h), ID: a.transaction(), Resume: inside}
	if inside {
		a.began.Offset = a.stored
	} else {
		a.events = 0
		a.began.Offset = a.around(h)
		a.events = 1
	}
	return &a.began, nil
}

// transaction is the id of the open transaction.
func (a *assembler) transaction() string {
	if a.pending {
		return a.gtidString()
	}
	return fmt.Sprintf("file=%s,pos=%d", a.file, a.begin)
}

// commit handles the end of a transaction.
func (a *assembler) commit(h *header) (Event, error) {
	if !a.silent() {
		switch left := a.pass.left(); {
		case a.skipping:
			return nil, a.errorf(fmt.Errorf("the stored offset has %d events of the transaction that begins at %s, which has only %d: "+
				"the offset is from another server or another binlog; "+startElsewhere,
				a.resume.event, at(a.file, a.begin), a.events), "")
		case left > 0:
			return nil, a.errorf(fmt.Errorf("the stored offset has %d rows more of the transaction that begins at %s than it has here: this server leaves rows out of its binlog "+
				"(replication or binlog filters), or it is another transaction; "+startElsewhere, left, at(a.file, a.begin)), "")
		}
	}
	var end *Boundary
	if a.transactions && !a.silent() {
		end = &Boundary{Info: a.info(h), ID: a.transaction(), Before: a.around(h)}
	}
	a.in, a.events, a.thread, a.rowSkip = false, 0, -1, 0
	a.tables.forget()
	b := a.endGroup(h, true)
	if b == nil {
		return nil, nil
	}
	if end != nil {
		b.Info, b.ID, b.Before = end.Info, end.ID, end.Before
	}
	return b, nil
}
