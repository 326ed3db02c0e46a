package binlog

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tidemark-cdc/tidemark/offset"
)

// assembler turns raw events into Events. It knows no socket, file, clock or logger; what it has to say but cannot
// return goes to warn. It enforces the grammar of a binlog; whatever else comes is an error with its position:
//
//	stream      = { file }
//	file        = FORMAT_DESCRIPTION [PREVIOUS_GTIDS] { group | HEARTBEAT } [ROTATE | STOP]
//	group       = [GTID] ( transaction | payload | xa | statement | rows )
//	transaction = BEGIN { map | ROWS | ROWS_QUERY | SAVEPOINT | … } ( XID | COMMIT | ROLLBACK )
//	payload     = TRANSACTION_PAYLOAD, which holds a transaction or xa
//	xa          = "XA START" { map | ROWS | … } "XA END" XA_PREPARE
//	statement   = QUERY (DDL, TRUNCATE, XA COMMIT, XA ROLLBACK, …)
//	rows        = { map } { ROWS } up to the end of a statement, without BEGIN
//
// Offsets are counted as Debezium counts them: inside a transaction the position of its BEGIN and the number of events
// from there on, outside the end of the last event. `gtids` has whole transactions only (I4).
type assembler struct {
	captured func(database, table string) bool
	queries  bool // keep the texts of ROWS_QUERY
	tables   tables
	warn     func(string)

	warnedText bool // of changes logged as text that may reach captured tables

	format format
	file   string
	start  int64 // of the event being handled, in file; of the payload event inside one
	next   int64 // its end: where the next one is due
	left   int64 // the end of the file before this one
	jumps  bool  // the stream leaves transactions out, so positions may jump by any length

	set      offset.GTIDSet // all transactions so far; absent: not known
	gtids    bool           // the log has GTIDs here: offsets carry the set
	gtid     offset.GTID    // of the transaction being read
	pending  bool           // gtid is not in the set yet
	empty    bool           // nothing of its transaction has come yet
	gtidText string         // gtid as text, made when it is first needed
	micros   int64          // original commit time of gtid; 0: not known

	in         bool // between BEGIN and its end
	begin      int64
	events     int64 // handled since and including BEGIN
	thread     int64
	sent       bool   // rows of it have been given out
	lastTime   uint32 // of the last header that had one
	lastServer uint32

	xa    string // xid of an XA transaction being read; "" for none
	query string // text of ROWS_QUERY, for the rows up to the end of the statement

	group     offset.Offset // where a statement without BEGIN began
	statement bool          // such a statement is being read

	scan    bool          // nothing is given out up to the start position
	first   bool          // no file has begun yet, and what is before the first one must be in set
	headed  bool          // the head of the file (PREVIOUS_GTIDS) has been read
	read    offset.Offset // transactions without GTID before this position have been read; no file: none
	ignored bool          // the transaction being read is one that the start already has

	resume   *resume // not nil until the stored transaction has been found and its first rows skipped
	skipping bool    // inside that transaction, before the stored row
	rowSkip  int64

	payload     payload
	payloadTime uint32 // of the payload event's header

	queued   Event // to be given out after the event just returned
	rows     Rows
	boundary Boundary
	truncate Truncate
}

// feed handles one raw event, without checksum. start is its position, or negative to tell it from the header. The event
// must stay valid until more has returned nil. A nil Event asks for more.
func (a *assembler) feed(ctx context.Context, raw []byte, start int64) (Event, error) {
	h, err := parseHeader(raw)
	if err != nil {
		return nil, a.errorf(err, "")
	}
	if !a.place(h, start) {
		return nil, a.errorf(fmt.Errorf("the event says that it ends at %d (modulo 4 GiB), before it can begin", h.end), "")
	}
	return a.handle(ctx, h, raw[headerSize:])
}

// more gives out what the last event still holds; nil when it holds nothing more.
func (a *assembler) more(ctx context.Context) (Event, error) {
	if ev := a.queued; ev != nil {
		a.queued = nil
		return ev, nil
	}
	for a.payload.open {
		raw, err := a.payload.next()
		if err == io.EOF {
			if a.in || a.xa != "" {
				return nil, a.errorf(errors.New("the compressed transaction ends before its commit"), "")
			}
			return nil, nil
		}
		if err != nil {
			return nil, a.errorf(err, "")
		}
		h, err := parseHeader(raw)
		if err != nil {
			return nil, a.errorf(err, "")
		}
		switch h.typ {
		case evPayload, evFormat, evRotate, evGTID, evTaggedGTID, evAnonymous, evPreviousGTIDs, evHeartbeat, evHeartbeatV2, evStop:
			return nil, a.errorf(fmt.Errorf("event type %d inside a compressed transaction", h.typ), "")
		}
		h.time = a.payloadTime // as Debezium has it: the commit's, not the statement's
		ev, err := a.handle(ctx, h, raw[headerSize:])
		if ev != nil || err != nil {
			return ev, err
		}
	}
	return nil, nil
}

// place finds the event's position in 64 bits. Headers have its end in 32 bits only, so it is counted on from the last
// one; by GTID the server leaves transactions out, so it may also jump.
func (a *assembler) place(h header, start int64) bool {
	size := int64(h.size)
	switch {
	case start >= 0:
		a.start, a.next = start, start+size
	case h.typ == evHeartbeat || h.typ == evHeartbeatV2 || h.end == 0 || h.flags&flagArtificial != 0:
		a.start = a.next
	default:
		due := a.next + size
		gap := int64(h.end - uint32(due)) // modulo 2^32
		if gap >= 1<<31 && !a.jumps {
			return false
		}
		a.start, a.next = a.next+gap, due+gap
		if gap == checksumSize { // the checksum was taken off
			a.start -= checksumSize
		}
	}
	return true
}

// errorf adds where the stream is to an error.
func (a *assembler) errorf(err error, table string) error {
	where := at(a.file, a.start)
	if a.pending {
		where += " (GTID " + a.gtidString() + ")"
	}
	if table != "" {
		where += ": table " + table
	}
	return fmt.Errorf("%s: %w", where, err)
}

func (a *assembler) gtidString() string {
	if a.gtidText == "" && a.pending {
		var text [96]byte
		a.gtidText = string(a.gtid.Append(text[:0]))
	}
	return a.gtidText
}

// silent says that the event being handled is not to be given out, whatever it is.
func (a *assembler) silent() bool { return a.scan || a.ignored }

// handle handles one event of the stream or of a payload.
func (a *assembler) handle(ctx context.Context, h header, body []byte) (Event, error) {
	switch h.typ {
	case evHeartbeat, evHeartbeatV2, evFormat, evPreviousGTIDs: // the head of a file is sent again at each start
	default:
		switch h.typ {
		case evRotate, evStop, evGTID, evTaggedGTID, evAnonymous:
		default:
			a.empty = false
		}
		if h.time != 0 {
			a.lastTime = h.time
		}
	}
	if h.server != 0 {
		a.lastServer = h.server
	}
	if !a.in {
		return a.outside(ctx, h, body)
	}
	if h.typ == evHeartbeat || h.typ == evHeartbeatV2 {
		return nil, nil // not in the log, so it does not count
	}
	if err := a.skipDone(h.typ); err != nil {
		return nil, err
	}
	ev, err := a.inside(ctx, h, body)
	a.events++ // after the end of the transaction it counts for nothing
	return ev, err
}

func isRows(typ byte) bool {
	switch typ {
	case evWrite, evUpdate, evDelete, evWriteV1, evUpdateV1, evDeleteV1, evPartialUpdate:
		return true
	}
	return false
}

// inside handles an event between BEGIN and the end of its transaction.
func (a *assembler) inside(ctx context.Context, h header, body []byte) (Event, error) {
	switch h.typ {
	case evXID:
		return a.commit(h)
	case evQuery, evExecuteLoad:
		return a.queryInside(h, body)
	case evFormat, evRotate, evStop, evPreviousGTIDs, evGTID, evAnonymous, evTaggedGTID:
		return nil, a.unfinished()
	case evPayload, evXAPrepare:
		return nil, a.errorf(fmt.Errorf("event type %d inside the transaction that begins at %s", h.typ, at(a.file, a.begin)), "")
	}
	return a.content(ctx, h, body)
}

func (a *assembler) unfinished() error {
	return a.errorf(fmt.Errorf("the transaction that begins at %s has no end: the server crashed while it wrote it, or the file is cut off; "+
		"rows of it that were given out have not been committed", at(a.file, a.begin)), "")
}

// content handles what occurs in any group of row changes.
func (a *assembler) content(ctx context.Context, h header, body []byte) (Event, error) {
	switch h.typ {
	case evTableMap:
		return nil, a.tableMap(ctx, body)
	case evRowsQuery:
		a.query = ""
		if a.queries && len(body) > 1 && !a.silent() { // the length byte is cut at 255 and says nothing
			a.query = string(body[1:])
		}
		return nil, nil
	case evIntVar, evRand, evUserVar, evBeginLoad, evAppendBlock, evDeleteFile:
		return nil, nil // parts of a statement in text form, which is judged by itself
	case evIgnorable, evTransaction, evViewChange:
		return nil, nil
	case evIncident:
		if a.silent() {
			return nil, nil
		}
		return nil, a.errorf(errors.New("INCIDENT: the server says that changes are missing in its binlog here; "+
			"take a new snapshot, and start behind this position "+howToStart), "")
	}
	if isRows(h.typ) {
		return a.rowsEvent(h, body)
	}
	if h.flags&flagIgnorable != 0 || a.silent() {
		return nil, nil
	}
	return nil, a.errorf(fmt.Errorf("binlog event type %d is not known: it may hold row changes", h.typ), "")
}

// outside handles an event that is not between BEGIN and the end of its transaction.
func (a *assembler) outside(ctx context.Context, h header, body []byte) (Event, error) {
	switch h.typ {
	case evFormat:
		return nil, a.newFormat(h, body)
	case evPreviousGTIDs:
		return nil, a.previousGTIDs(body)
	case evRotate:
		return a.rotate(h, body)
	case evStop:
		return nil, nil
	case evHeartbeat, evHeartbeatV2:
		return a.heartbeat(h, body)
	case evGTID, evAnonymous, evTaggedGTID:
		return a.beginGroup(h, body)
	case evPayload:
		a.headed = true
		if a.silent() { // it is one whole transaction
			a.endGroup(h, true)
			return nil, nil
		}
		if err := a.payload.start(body); err != nil {
			return nil, a.errorf(err, "")
		}
		a.payloadTime = h.time
		return a.more(ctx)
	case evQuery, evExecuteLoad:
		a.headed = true
		return a.queryOutside(h, body)
	case evXAPrepare:
		return a.xaPrepare(h, body)
	case evXID:
		return nil, a.errorf(errors.New("a commit (XID) without BEGIN: the position is inside a transaction; start at its BEGIN or at the end of a transaction"), "")
	}
	a.headed = true
	if isRows(h.typ) || h.typ == evTableMap || h.typ == evRowsQuery {
		return a.bare(ctx, h, body)
	}
	return a.content(ctx, h, body)
}

// bare handles row changes without BEGIN: inside an XA transaction, or of an engine without transactions on an old
// server. An offset cannot count events without a BEGIN, so one in the middle of such a statement is where it begins.
func (a *assembler) bare(ctx context.Context, h header, body []byte) (Event, error) {
	if a.xa == "" && !a.statement {
		a.statement = true
		a.group = a.offsetAt(h, a.start)
		if err := a.resumeElsewhere(); err != nil {
			return nil, err
		}
	}
	ev, err := a.content(ctx, h, body)
	if a.xa != "" || err != nil || !isRows(h.typ) || len(a.tables.open) > 0 {
		return ev, err
	}
	// The end of a statement. With a GTID further statements may follow under it.
	a.statement = false
	if a.pending || a.silent() {
		return ev, nil
	}
	b := a.boundaryAt(h, false)
	if ev == nil {
		return b, nil
	}
	a.queued = b
	return ev, nil
}

func (a *assembler) newFormat(h header, body []byte) error {
	f, err := parseFormat(body)
	if err != nil {
		return a.errorf(err, "")
	}
	a.format = f
	a.tables.forget()
	return nil
}

// rotate follows the stream to another file.
func (a *assembler) rotate(h header, body []byte) (Event, error) {
	if len(body) < 8 {
		return nil, a.errorf(errShort, "")
	}
	file, pos := string(body[8:]), int64(fixedInt(body[:8]))
	artificial := h.end == 0 || h.flags&flagArtificial != 0
	if a.file == file && artificial {
		if pos > a.next {
			a.next = pos
		}
		return nil, nil
	}
	if a.xa != "" {
		return nil, a.unfinished()
	}
	a.finishGroup()
	first := a.file == ""
	a.left = a.next
	a.file, a.next, a.headed = file, pos, false
	a.start = pos
	if first || a.silent() {
		return nil, nil
	}
	return a.quiet(a.boundaryAt(h, false))
}

// quiet holds back boundaries as long as the stored transaction has not been found: they would be steps back.
func (a *assembler) quiet(b *Boundary) (Event, error) {
	if a.resume != nil {
		return nil, nil
	}
	return b, nil
}

func (a *assembler) heartbeat(h header, body []byte) (Event, error) {
	file, pos, low, err := parseHeartbeat(h, body)
	if err != nil {
		return nil, a.errorf(err, "")
	}
	if a.pending || a.statement || a.xa != "" || a.silent() || a.resume != nil || a.file == "" || file != a.file {
		return nil, nil
	}
	if low {
		pos = a.next + int64(uint32(pos)-uint32(a.next))
		if pos-a.next >= 1<<31 { // behind us: nothing was left out
			pos = a.next
		}
	}
	// With GTIDs what was left out on the way here is in the set already.
	a.next = max(a.next, pos)
	b := a.boundaryAt(h, false)
	b.Idle = true
	return b, nil
}
