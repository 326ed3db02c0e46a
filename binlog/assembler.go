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
	captured     func(database, table string) bool
	queries      bool                                    // keep the texts of ROWS_QUERY
	transactions bool                                    // give out Begin
	skipDDL      bool                                    // Config.SkipUnparseableDDL
	unknownTable func(database, table string, err error) // Config.UnknownTable
	filtered     bool                                    // Config.Filtered
	sources      func(source string) bool
	sourceRows   bool
	tables       tables
	defs         *definitions
	warn         func(string)
	once         bool // Config.Once

	warnedText bool // of changes logged as text that may reach captured tables
	warnedDDL  bool // of DDL that could not be understood

	spot
	left  int64         // the end of the file before this one
	jumps bool          // the stream leaves transactions out, so positions may jump by any length
	floor offset.Offset // in its file nothing comes before it, as far as bytes beyond 4 GiB go

	set     offset.GTIDSet // all transactions so far; absent: not known
	gtids   bool           // the log has GTIDs here: offsets carry the set
	empty   bool           // nothing of the transaction of gtid has come yet
	known   map[offset.GTID]bool
	foreign bool // its source does not count, and its rows are not wanted

	groupStart int64 // where the group being read began: its GTID event, if it has one
	grouped    bool  // one is being read

	in         bool // between BEGIN and its end
	begin      int64
	events     int64 // handled since and including BEGIN
	thread     int64
	sent       bool   // rows of it have been given out
	lastTime   uint32 // of the last header that had one
	lastServer uint32

	query string // text of ROWS_QUERY, for the rows up to the end of the statement

	group     offset.Offset // where a statement without BEGIN began
	statement bool          // such a statement is being read

	texts  gtidTexts
	ledger // what side records are made of

	xa       *xaGroup   // being read; nil for none
	prepared []*xaGroup // undecided, in the order in which they were prepared
	replay   *replay    // being given out; nil for none
	spool    *spool
	reopen   func(context.Context, offset.Prepared) (stream rawStream, exact bool, err error)
	seeking  *offset.Prepared // only this one is wanted, to be read again
	found    *xaGroup         // seeking
	passed   bool             // a group has ended

	early     bool // DDL before the start moves the catalog
	catalogAt offset.Offset
	history   history
	versions  versions

	scan    bool          // nothing is given out up to the start position
	first   bool          // no file has begun yet, and what is before the first one must be in set
	headed  bool          // the head of the file (PREVIOUS_GTIDS) has been read
	read    offset.Offset // transactions without GTID before this position have been read; no file: none
	ignored bool          // the transaction being read is one that the start already has

	stored    offset.Offset // where the stream was resumed
	resume    *resume       // not nil until the stored transaction has been found and its first rows skipped
	resumeIn  *resume       // the same of an XA transaction that was being given out
	cover     *cover        // not nil until Debezium's place in an XA transaction has been found
	coverMet  bool          // it has been
	skipping  bool          // inside that transaction, before the stored row
	rowSkip   int64
	recount   bool  // Config.Recount
	covers    int64 // rows of the event at hand that are given out only to be counted
	pass      pass  // rows of the open transaction that are left out, when it was found by GTID alone
	uncounted bool  // of them, and that is still to be told

	payload     payload
	payloadTime uint32 // of the payload event's header

	maria    maria
	fromFile bool // the event being handled is from a file, as it stands there

	queued   Event // to be given out after the event just returned
	rows     Rows
	boundary Boundary
	truncate Truncate
	began    Begin
	schema   SchemaChange
}

// spot is where the stream is, and in which transaction.
type spot struct {
	file  string
	start int64 // of the event being handled, in file; of the payload event inside one
	next  int64 // its end: where the next one is due

	gtid     offset.GTID // of the transaction being read; zero: it has none
	pending  bool        // gtid is not in the set yet
	gtidText string      // gtid as text, made when it is first needed
	micros   int64       // original commit time of the transaction; 0: not known

	format format
}

// feed handles one raw event, without checksum. start is its position, or negative to tell it from the header. The event
// must stay valid until more has returned nil. A nil Event asks for more.
func (a *assembler) feed(ctx context.Context, raw []byte, start int64) (Event, error) {
	a.settle()
	a.fromFile = start >= 0
	var h header
	if len(raw) >= headerSize { // not by parse, for what a call costs
		h.read((*[headerSize]byte)(raw))
	} else if err := h.parse(raw); err != nil {
		return nil, a.errorf(err, "")
	}
	if !a.place(&h, start) {
		return nil, a.errorf(fmt.Errorf("the event says that it ends at %d (modulo 4 GiB), before it can begin", h.end), "")
	}
	return a.handle(ctx, &h, raw[headerSize:])
}

// take handles one raw event, as feed does, and returns the first event of it, if it has any.
func (a *assembler) take(ctx context.Context, raw []byte, start int64) (Event, error) {
	ev, err := a.feed(ctx, raw, start)
	if ev == nil && err == nil && a.holds() {
		ev, err = a.more(ctx)
	}
	return ev, err
}

// holds says that more is to be called.
func (a *assembler) holds() bool {
	return a.counting || a.queued != nil || a.replay != nil || a.payload.open
}

// more gives out what the last event still holds; nil when it holds nothing more.
func (a *assembler) more(ctx context.Context) (Event, error) {
	a.settle()
	if ev := a.queued; ev != nil {
		a.queued = nil
		return ev, nil
	}
	for {
		if a.replay != nil && !a.scan {
			if ev, err := a.replayNext(ctx); ev != nil || err != nil {
				return ev, err
			}
			continue
		}
		if !a.payload.open {
			return nil, nil
		}
		ev, err := a.inner(ctx)
		if ev != nil || err != nil {
			return ev, err
		}
	}
}

// inner handles the next event of a payload.
func (a *assembler) inner(ctx context.Context) (Event, error) {
	raw, err := a.payload.next()
	if err == io.EOF {
		if a.in || a.xa != nil {
			return nil, a.errorf(errors.New("the compressed transaction ends before its commit"), "")
		}
		return nil, nil
	}
	if err != nil {
		return nil, a.errorf(err, "")
	}
	var h header
	if err := h.parse(raw); err != nil {
		return nil, a.errorf(err, "")
	}
	switch h.typ {
	case evPayload, evFormat, evRotate, evGTID, evTaggedGTID, evAnonymous, evPreviousGTIDs, evHeartbeat, evHeartbeatV2, evStop:
		return nil, a.errorf(fmt.Errorf("event type %d inside a compressed transaction", h.typ), "")
	}
	h.time = a.payloadTime // as Debezium has it: the commit's, not the statement's
	return a.handle(ctx, &h, raw[headerSize:])
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
		a.gtidText = a.texts.of(a.gtid)
	}
	return a.gtidText
}

// silent says that the event being handled is not to be given out, whatever it is.
func (a *assembler) silent() bool { return a.scan || a.ignored }

// handle handles one event of the stream or of a payload.
func (a *assembler) handle(ctx context.Context, h *header, body []byte) (Event, error) {
	if h.typ >= evMariaDB {
		var done bool
		var err error
		if body, done, err = a.plain(h, body); err != nil {
			return nil, a.errorf(err, "")
		}
		if done {
			return nil, nil
		}
	}
	home := homes[h.typ]
	if home == inGroup {
		a.empty = false
	}
	if home < atHead && h.time != 0 {
		a.lastTime = h.time
	}
	if h.server != 0 {
		a.lastServer = h.server
	}
	if !a.in {
		return a.outside(ctx, h, body)
	}
	if home == nowhere {
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
func (a *assembler) inside(ctx context.Context, h *header, body []byte) (Event, error) {
	switch h.typ {
	case evXID:
		return a.commit(h)
	case evQuery, evExecuteLoad:
		return a.queryInside(ctx, h, body)
	case evFormat, evRotate, evStop, evPreviousGTIDs, evGTID, evAnonymous, evTaggedGTID, evMariaGTID, evMariaGTIDList:
		return nil, a.unfinished()
	case evPayload, evXAPrepare:
		return nil, a.errorf(fmt.Errorf("event type %d inside the transaction that begins at %s", h.typ, at(a.file, a.begin)), "")
	}
	return a.content(ctx, h, body)
}

// xaUnfinished drops an XA transaction that has no end: the server crashed while it wrote it, so it was never prepared.
func (a *assembler) xaUnfinished() {
	g := a.xa
	if g == nil {
		return
	}
	a.xa = nil
	a.tables.forget()
	a.spool.release(g.body)
	a.empty = true // its GTID may come again
	if !g.quiet {
		a.warn(fmt.Sprintf("%s: XA transaction %s, which begins at %s, has no end: the server crashed while it wrote it; it is left out", at(a.file, a.start), g.XID, at(g.File, g.Pos)))
	}
}

func (a *assembler) unfinished() error {
	begin := at(a.file, a.begin)
	if a.xa != nil {
		begin = at(a.xa.File, a.xa.Pos)
	}
	return a.errorf(fmt.Errorf("the transaction that begins at %s has no end: the server crashed while it wrote it, or the file is cut off; "+
		"rows of it that were given out have not been committed", begin), "")
}

// content handles what occurs in any group of row changes.
func (a *assembler) content(ctx context.Context, h *header, body []byte) (Event, error) {
	a.statementBegins(h.typ)
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
func (a *assembler) outside(ctx context.Context, h *header, body []byte) (Event, error) {
	switch h.typ {
	case evFormat:
		return nil, a.newFormat(h, body)
	case evPreviousGTIDs:
		return nil, a.previousGTIDs(body)
	case evMariaGTIDList:
		return nil, a.mariaList(body)
	case evRotate:
		return a.rotate(h, body)
	case evStop:
		return nil, nil
	case evHeartbeat, evHeartbeatV2:
		return a.heartbeat(h, body)
	case evGTID, evAnonymous, evTaggedGTID, evMariaGTID:
		return a.beginGroup(h, body)
	case evPayload:
		a.headed = true
		a.openGroup(h)
		if a.silent() && a.seeking == nil && (a.cover == nil || a.cover.pos != a.next) { // it is one whole transaction
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
		a.openGroup(h)
		return a.queryOutside(ctx, h, body)
	case evXAPrepare:
		return a.xaEnd(ctx, h, body)
	case evXID:
		return nil, a.errorf(errors.New("a commit (XID) without BEGIN: the position is inside a transaction; start at its BEGIN or at the end of a transaction"), "")
	}
	a.headed = true
	if a.xa != nil && h.typ != evFormat {
		return nil, a.xaContent(ctx, h, body)
	}
	if isRows(h.typ) || h.typ == evTableMap || h.typ == evRowsQuery {
		return a.bare(ctx, h, body)
	}
	return a.content(ctx, h, body)
}

// bare handles row changes without BEGIN: of an engine without transactions on an old server. An offset cannot count
// events without a BEGIN, so one in the middle of such a statement is where it begins.
func (a *assembler) bare(ctx context.Context, h *header, body []byte) (Event, error) {
	if !a.statement {
		a.statement = true
		a.openGroup(h)
		a.group = a.offsetAt(h, a.start)
		if err := a.resumeElsewhere(); err != nil {
			return nil, err
		}
	}
	ev, err := a.content(ctx, h, body)
	if err != nil || !isRows(h.typ) || len(a.tables.open) > 0 {
		return ev, err
	}
	// The end of a statement. With a GTID further statements may follow under it.
	a.statement = false
	if a.pending || a.silent() {
		return ev, nil
	}
	a.grouped = false
	b := a.boundaryAt(h, false)
	if ev == nil {
		return b, nil
	}
	a.queued = b
	return ev, nil
}
