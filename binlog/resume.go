package binlog

import (
	"fmt"

	"github.com/tidemark-cdc/tidemark/offset"
)

// What to do about a position behind which or at which the stream cannot go on.
const (
	howToStart     = "(how: README, Starting anew)"
	startElsewhere = offset.HowToDelete + ", and start at a position that is known to be right (start.position), or take a new snapshot"
)

// resume is what a stored offset says about its open transaction. It is found again by the GTID that the side record
// names; without one by the stored position, and then, with GTIDs, by being the first transaction that is not in the
// stored set.
type resume struct {
	file       string
	pos        int64 // of BEGIN
	event, row int64
	byGTID     bool         // the stream has all transactions that are not in the stored set, and no others
	open       *offset.Open // from the side record; nil: there is none, or it says nothing
	same       bool         // the offset is known to be from this server …
	other      bool         // … or from another one
	waiting    bool         // other transactions came first: this one is still to come
}

// skipDone ends the skipping when the stored number of events is reached; rows are then skipped in this event.
func (a *assembler) skipDone(typ byte) error {
	if !a.skipping || a.events < a.resume.event {
		return nil
	}
	r := a.resume
	if r.row > 0 && !isRows(typ) {
		return a.errorf(fmt.Errorf("the stored offset has %d rows in event %d of the transaction that begins at %s, but that is no rows event: "+
			"the offset is from another server or another binlog; "+startElsewhere,
			r.row, r.event, at(r.file, r.pos)), "")
	}
	a.skipping, a.resume, a.rowSkip = false, nil, r.row
	return nil
}

// resumeTransaction is called at a BEGIN: it finds out whether the transaction is the stored one, and says whether its
// first part is left out (I5).
func (a *assembler) resumeTransaction() (inside bool, err error) {
	r := a.resume
	if r == nil || a.silent() {
		return false, nil
	}
	here := a.file == r.file && a.start == r.pos
	if r.open == nil {
		if !here {
			return false, a.resumeElsewhere()
		}
		if !r.byGTID {
			a.warn(fmt.Sprintf("going on inside the transaction that begins at %s: without GTIDs only the position says that it is the same one", at(a.file, a.begin)))
		}
		a.skipping = true
		return true, nil
	}
	switch {
	case !r.open.GTID.IsZero() && a.gtids:
		if a.gtid != r.open.GTID {
			return false, a.resumeElsewhere()
		}
		if r.committedElse(a.micros) {
			if r.same {
				return false, a.notTheSame(r)
			}
			a.resume = nil
			return false, a.sentAgain("transaction "+r.open.GTID.String()+", which begins at "+at(a.file, a.start)+" here,", a.committedElseText(r))
		}
	case r.other || !here:
		return false, a.resumeElsewhere()
	case r.committedElse(a.micros) || r.open.Thread >= 0 && r.open.Thread != a.thread:
		return false, a.notTheSame(r)
	}
	// A MariaDB sends the texts of statements only to those who ask for them: what was an event may be none now, or the other
	// way round.
	counted := r.open.Captured >= 0 && r.open.Filters == a.filters || r.open.Rows >= 0
	if here && !r.other && !(a.pending && a.gtid.MariaDB && counted) {
		a.skipping = true
		return true, nil
	}
	// Another server has cut the rows into events of its own.
	a.resume = nil
	a.pass, err = a.passOf(r, fmt.Sprintf("transaction %s, which begins at %s here,", r.open.GTID, at(a.file, a.start)))
	return a.pass.left() > 0, err
}

// committedElse says that a transaction of a commit time is not the stored one, whatever its GTID: a server that has lost
// the end of its binlog gives numbers a second time.
func (r *resume) committedElse(micros int64) bool {
	return r.open.CommitMicros != 0 && micros != 0 && r.open.CommitMicros != micros
}

func (a *assembler) notTheSame(r *resume) error {
	return a.errorf(fmt.Errorf("the transaction that begins here (thread %d, committed at %d µs) is not the one of the stored offset (thread %d, %d µs): "+
		"the offset is from another server, or the binlog was written anew; "+startElsewhere, a.thread, a.micros, r.open.Thread, r.open.CommitMicros), "")
}

func (a *assembler) committedElseText(r *resume) string {
	return fmt.Sprintf("it was committed at %d µs here, and the one of the stored offset at %d µs, so they need not be the same", a.micros, r.open.CommitMicros)
}

// sentAgain says that a transaction of which rows were sent is sent from its beginning, and why; where nothing may be sent twice, that is
// the error.
func (a *assembler) sentAgain(what, why string) error {
	if !a.once {
		a.warn(what + " is sent again from its beginning: " + why)
		return nil
	}
	return a.errorf(fmt.Errorf("%s would have to be sent again from its beginning: %s. With exactly-once delivery nothing is sent twice, so the stream stops. Choices: connect to the server "+
		"of the stored offset, if it is there; or have the transaction sent again, with its first rows twice: start once without exactly.once.support (and exactly.once.source.support) until it is through; "+
		"or leave its rest out: "+startElsewhere, what, why), "")
}

// restSentAgain is sentAgain where the rows of a transaction are counted and one event's cannot be.
func (a *assembler) restSentAgain(v *version) error {
	why := "rows of " + v.fullName() + ", which is not captured, cannot be counted, and since the table filters were changed they have to be"
	if !a.once {
		a.warn("what follows in the transaction is sent again: " + why)
		return nil
	}
	return a.sentAgain("this transaction", why)
}

// passOf is how many rows are to be left out of a transaction that is found again by its rows.
func (a *assembler) passOf(r *resume, what string) (pass, error) {
	open, done := r.open, r.row
	switch {
	case a.filtered && !r.same:
		return pass{}, a.sentAgain(what, "this server leaves rows out of its binlog that the one before had (replication or binlog filters), so rows cannot be counted")
	case open.Filters == a.filters && open.Captured >= 0:
		return pass{captured: open.Captured + done}, nil
	case open.Rows >= 0:
		return pass{all: open.Rows + done}, nil
	}
	return pass{}, a.sentAgain(what, "the table filters were changed, and the rows of tables that are not captured could not be counted")
}

// resumeElsewhere is called when what comes first is not the stored transaction (I5): that may still come, if its GTID is
// known; otherwise the stored event and row numbers are given up.
func (a *assembler) resumeElsewhere() error {
	r := a.resume
	if r == nil || a.silent() || r.waiting {
		return nil
	}
	if !r.byGTID && (r.open == nil || r.open.GTID.IsZero() || !a.gtids) {
		return a.errorf(fmt.Errorf("the stored offset says that a transaction begins at %s, which does not: the offset is from another server or another binlog; "+
			startElsewhere, at(r.file, r.pos)), "")
	}
	if r.open != nil && !r.open.GTID.IsZero() {
		r.waiting = true
		a.warn(fmt.Sprintf("the stored offset lies in transaction %s, and other transactions come before it in this binlog; it is still waited for", r.open.GTID))
		return nil
	}
	a.resume = nil
	return a.sentAgain("the transaction that begins at "+at(a.file, a.start), fmt.Sprintf("it is the first one that is not in the stored GTID set, and the stored offset says that that one begins at %s: "+
		"this is another server or another binlog", at(r.file, r.pos)))
}

// resumeXA leaves out the rows that the stored offset covers, when it lies inside the XA transaction that is about to be
// given out.
func (a *assembler) resumeXA(g *xaGroup) error {
	r := a.resumeIn
	if r == nil || r.open.XID != g.XID {
		return nil
	}
	switch here := a.file == r.file && a.groupStart == r.pos; {
	case !r.open.GTID.IsZero() && a.gtids:
		if r.open.GTID != a.gtid {
			return nil
		}
	case r.other || !here:
		return nil
	}
	a.resumeIn = nil
	what := "XA transaction " + g.XID + ", which is committed at " + at(a.file, a.start) + " here,"
	if r.committedElse(a.micros) {
		return a.sentAgain(what, a.committedElseText(r))
	}
	p, err := a.passOf(r, what)
	a.pass.captured, a.pass.all = max(a.pass.captured, p.captured), max(a.pass.all, p.all)
	return err
}

// resumeAt prepares going on at a stored offset, perhaps inside its transaction. byGTID says that the stream has all
// transactions that are not in its set.
func (r *Reader) resumeAt(o offset.Offset, byGTID bool) {
	a := &r.asm
	a.cover = nil
	if o.TsSec != 0 {
		a.lastTime = uint32(o.TsSec) // idle time does not set it back
	}
	stored := &resume{file: o.File, pos: o.Pos, event: o.Event, row: o.Row, byGTID: byGTID}
	if s := o.Side; s != nil {
		stored.open = s.Open
		if s.Server != "" && a.server != "" {
			stored.same, stored.other = s.Server == a.server, s.Server != a.server
		}
		for _, p := range s.XA {
			a.prepared = append(a.prepared, &xaGroup{Prepared: p})
		}
		a.listPrepared()
	}
	a.stored = o
	switch {
	case a.coverMet: // while the position was searched for
	case stored.open != nil && stored.open.XID != "":
		stored.row = o.Done
		a.resumeIn = stored
	case o.Event > 0:
		a.resume = stored
	case o.Row > 0: // Debezium's offset in an XA transaction that is still to come
		a.cover = &cover{file: o.File, pos: o.Pos, row: o.Row}
	}
}
