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

// resume is what a stored offset says about its open transaction.
type resume struct {
	file       string
	pos        int64 // of BEGIN
	event, row int64
	byGTID     bool // the stored set names the transaction: the first one that is not in it
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

// resumeElsewhere gives the stored event and row numbers up, because what comes first is not the stored transaction (I5).
func (a *assembler) resumeElsewhere() error {
	r := a.resume
	if r == nil || a.silent() {
		return nil
	}
	if !r.byGTID {
		return a.errorf(fmt.Errorf("the stored offset says that a transaction begins at %s, which does not: the offset is from another server or another binlog; "+
			startElsewhere, at(r.file, r.pos)), "")
	}
	a.warn(fmt.Sprintf("the first transaction that is not in the stored GTID set begins at %s, not at %s as the stored offset says: "+
		"this is another server or another binlog, so the transaction is sent again from its BEGIN", at(a.file, a.start), at(r.file, r.pos)))
	a.resume = nil
	return nil
}
