package binlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tidemark-cdc/tidemark/binlog/server"
	"github.com/tidemark-cdc/tidemark/offset"
)

// An XA transaction stands in the binlog twice: its rows, from XA START to XA_PREPARE, and later its XA COMMIT or XA
// ROLLBACK, each with a GTID of its own. Its rows are given out at XA COMMIT, with the source of their own events; until
// then they wait in the spool, and the transaction is listed in the side of every offset (I4). After a restart the rows
// are read again, from where the list says they begin. One that is committed in one phase ends with its XA_PREPARE.
//
// While the rows are given out the offset stays before the XA COMMIT, and Done and Side count rows.
type xaGroup struct {
	offset.Prepared
	where spot // of its GTID event; events of it have their own start

	counts
	events  int64    // since and including XA START
	covered bool     // the start lies inside it
	quiet   bool     // it lies before the start: nobody wants its rows
	wanted  bool     // the rows event at hand has rows of a captured table
	unasked int64    // rows of the event at hand that are not wanted
	body    *spooled // nil: it has to be read again
}

// take notes what to keep of the rows event at hand.
func (g *xaGroup) take(n int64, captured bool) {
	g.wanted, g.unasked = captured, 0
	if !captured {
		g.unasked = n
	}
}

// replay is an XA transaction whose rows are being given out.
type replay struct {
	group *xaGroup
	h     header // of the XA COMMIT
	base  offset.Offset
	open  offset.Open // what the sides of its offsets have
	in    *spoolReader
}

// seeks says that this is the transaction whose rows are being read again.
func (a *assembler) seeks(g *xaGroup) bool {
	s := a.seeking
	return s != nil && s.XID == g.XID && (s.GTID == "" || s.GTID == g.GTID)
}

// spools says that events are wanted although nothing is given out: of an XA transaction that is being kept.
func (a *assembler) spools() bool { return a.xa != nil && !a.xa.quiet }

// xaStart begins an XA transaction.
func (a *assembler) xaStart(xid string) error {
	if a.xa != nil {
		return a.unfinished()
	}
	g := &xaGroup{events: 1}
	g.Prepared = offset.Prepared{XID: xid, Server: a.server, File: a.file, Pos: a.groupStart, GTID: a.gtidString()}
	g.where = a.spot
	g.quiet = a.silent() && a.cover == nil && !a.seeks(g)
	if !a.silent() {
		if r := a.resume; r != nil && r.open == nil && a.payload.open && a.file == r.file && a.next == r.pos {
			// Debezium's offset inside a compressed XA transaction: the end of the payload, and events inside it.
			a.cover, a.resume = &cover{file: r.file, pos: r.pos, event: r.event, row: r.row}, nil
		}
		if err := a.resumeElsewhere(); err != nil {
			return err
		}
	}
	if !g.quiet {
		g.body = &spooled{}
	}
	a.xa = g
	a.tables.forget()
	return nil
}

// xaContent keeps an event between XA START and XA_PREPARE.
func (a *assembler) xaContent(ctx context.Context, h *header, body []byte) error {
	g := a.xa
	before := g.captured
	g.wanted, g.unasked = !isRows(h.typ), 0
	if _, err := a.content(ctx, h, body); err != nil {
		return err
	}
	if g.quiet {
		return nil
	}
	if isRows(h.typ) {
		a.covered(g, before)
	}
	g.events++
	switch {
	case g.body == nil: // lost
	case g.wanted:
		if h.typ == evRowsQuery && !a.queries {
			return nil
		}
		a.keep(g, a.start, h, body)
	case g.unasked != 0:
		a.keep(g, g.unasked, &header{}, nil)
	}
	return nil
}

func (a *assembler) keep(g *xaGroup, pos int64, h *header, body []byte) {
	if err := a.spool.append(g.body, pos, *h, body); err != nil {
		a.warn(fmt.Sprintf("%s: the rows of XA transaction %s cannot be kept until its commit; they are read from the binlog again then: %v", at(a.file, a.start), g.XID, err))
		a.spool.release(g.body)
		g.body = nil
	}
}

// xaEnd handles the end of an XA transaction's rows: it is prepared, or committed in one phase.
func (a *assembler) xaEnd(ctx context.Context, h *header, body []byte) (Event, error) {
	g := a.xa
	xid := parseXAPrepare(body)
	if xid == "?" {
		return nil, a.errorf(errShort, "")
	}
	onePhase := body[0] != 0
	if g == nil {
		if a.silent() {
			a.endGroup(h, false)
			return nil, nil
		}
		return nil, a.errorf(fmt.Errorf("XA PREPARE of %s without XA START", xid), "")
	}
	if xid != g.XID {
		return nil, a.errorf(fmt.Errorf("XA PREPARE of %s in the XA transaction %s", xid, g.XID), "")
	}
	a.xa = nil
	a.tables.forget()
	switch {
	case a.seeks(g):
		a.found = g
		return nil, nil
	case g.quiet:
		a.endGroup(h, false)
		return nil, nil
	case a.silent() && !g.covered: // only looked at for a position inside it, which it has not
		a.spool.release(g.body)
		a.endGroup(h, false)
		return nil, nil
	case onePhase:
		return nil, a.emit(ctx, h, g)
	}
	a.decided(xid)
	a.prepared = append(a.prepared, g)
	a.listPrepared()
	if b := a.endGroup(h, false); b != nil {
		return b, nil
	}
	return nil, nil
}

// xaDecide handles XA COMMIT and XA ROLLBACK of a prepared transaction.
func (a *assembler) xaDecide(ctx context.Context, h *header, s statement) (Event, error) {
	i := slices.IndexFunc(a.prepared, func(g *xaGroup) bool { return g.XID == s.xid })
	if !a.silent() {
		if err := a.resumeElsewhere(); err != nil {
			return nil, err
		}
		switch {
		case i >= 0 && s.kind != kindXARollback:
			return nil, a.emit(ctx, h, a.prepared[i])
		case i >= 0:
			a.decided(s.xid)
		case s.kind != kindXARollback:
			a.warn(fmt.Sprintf("%s: XA COMMIT of %s is left out: it was prepared before the position at which this connector began; a Debezium before it has sent its rows at that time",
				at(a.file, a.start), s.xid))
		}
	}
	if b := a.endGroup(h, false); b != nil {
		return b, nil
	}
	return nil, nil
}

// decided takes a transaction off the list.
func (a *assembler) decided(xid string) {
	a.prepared = slices.DeleteFunc(a.prepared, func(g *xaGroup) bool {
		if g.XID == xid {
			a.spool.release(g.body)
		}
		return g.XID == xid
	})
	a.listPrepared()
}

// listPrepared makes the list for the sides of offsets anew.
func (a *assembler) listPrepared() {
	if len(a.prepared) == 0 && len(a.listed) == 0 {
		return
	}
	var xa []offset.Prepared
	for _, g := range a.prepared {
		xa = append(xa, g.Prepared)
	}
	a.list(xa)
}

// emit begins to give out the rows of an XA transaction at the event at hand, which commits it.
func (a *assembler) emit(ctx context.Context, h *header, g *xaGroup) error {
	if g.body == nil {
		if err := a.reread(ctx, g); err != nil {
			return a.errorf(fmt.Errorf("XA COMMIT of %s: its rows, which were prepared at %s, have to be read again: %w", g.XID, at(g.File, g.Pos), err), "")
		}
	}
	a.replay = &replay{
		group: g, h: *h,
		base: a.offsetAt(h, a.groupStart),
		open: offset.Open{GTID: a.gtid, CommitMicros: a.micros, Thread: -1, XID: g.XID},
		in:   a.spool.read(g.body),
	}
	a.counts, a.pass = counts{}, pass{captured: g.Skip}
	if err := a.resumeXA(g); err != nil {
		return err
	}
	a.tables.forget()
	return nil
}

// replayNext gives out the next rows event of the XA transaction that is being given out, or the boundary behind it.
func (a *assembler) replayNext(ctx context.Context) (Event, error) {
	r := a.replay
	for {
		f, err := r.in.next()
		if err == io.EOF {
			return a.replayEnd()
		}
		if err != nil {
			return nil, a.errorf(err, "")
		}
		if f.h.typ == 0 { // a count of rows
			a.pass.done(f.pos, false)
			a.add(f.pos, false)
			continue
		}
		here := a.spot
		a.spot = r.group.where
		a.start = f.pos
		ev, err := a.content(ctx, &f.h, f.body)
		a.spot = here
		if ev != nil || err != nil {
			return ev, err
		}
	}
}

func (a *assembler) replayEnd() (Event, error) {
	r := a.replay
	if left := a.pass.left(); left > 0 {
		return nil, a.errorf(fmt.Errorf("the stored offset has %d rows more of XA transaction %s than it has here: the offset is from another server or another binlog; "+startElsewhere,
			left, r.group.XID), "")
	}
	a.replay = nil
	a.tables.forget()
	a.spool.release(r.group.body)
	r.group.body = nil
	a.decided(r.group.XID)
	if b := a.endGroup(&r.h, false); b != nil {
		return b, nil
	}
	return nil, nil
}

// cover is where Debezium's offset lies inside an XA transaction: it counts rows that were given out, at the end of a
// rows event, or by events inside a compressed one.
type cover struct {
	file  string
	pos   int64 // the end of the rows event, or of the payload event
	event int64 // inside a payload: events done since and including XA START
	row   int64
}

// coverOf is where a stored offset may lie in an XA transaction; nil: it does not, or the side record says so better.
func coverOf(o offset.Offset) *cover {
	if o.Row == 0 || o.Side != nil {
		return nil
	}
	return &cover{file: o.File, pos: o.Pos, event: o.Event, row: o.Row}
}

// covered sees whether the stored offset lies in the rows event at hand. before is how many captured rows come before it.
func (a *assembler) covered(g *xaGroup, before int64) {
	c := a.cover
	if c == nil || a.file != c.file || a.next != c.pos || a.payload.open != (c.event > 0) || c.event > 0 && g.events != c.event {
		return
	}
	g.Skip, g.covered = before+c.row, true
	a.cover, a.coverMet = nil, true
}

// uncovered gives the stored row number up: what was read is not where it belongs.
func (a *assembler) uncovered() {
	c := a.cover
	if c == nil {
		return
	}
	a.cover = nil
	a.warn(fmt.Sprintf("the stored offset %s has rows but no events to skip (Debezium writes that for XA transactions), and no rows event of an XA transaction ends there: "+
		"which rows they are cannot be told, so none is skipped", at(c.file, c.pos)))
}

// errNoReopen is why rows of an XA transaction cannot be read again.
var errNoReopen = errors.New("the binlog cannot be read a second time")

// reread reads the events of a prepared XA transaction again.
func (a *assembler) reread(ctx context.Context, g *xaGroup) error {
	if a.reopen == nil {
		return errNoReopen
	}
	stream, exact, err := a.reopen(ctx, g.Prepared)
	if err != nil {
		return err
	}
	defer stream.close()
	sub := assembler{
		captured: a.captured, queries: a.queries, sources: a.sources, sourceRows: a.sourceRows, warn: a.warn, scan: true, seeking: &g.Prepared, spool: a.spool,
		jumps: true,
	}
	sub.tables = a.tables
	sub.tables.open, sub.tables.ahead = nil, nil
	defer clear(a.tables.recent[:]) // newest is shared
	sub.server = a.server
	defer sub.payload.close()
	for sub.found == nil {
		raw, start, err := stream.next(ctx)
		if errors.Is(err, server.ErrPurged) {
			return fmt.Errorf("%w; %s", err, xaWaysOut(g.XID))
		}
		if err == io.EOF {
			return fmt.Errorf("it is not there any more: the binlog has another transaction in its place, or none; %s", xaWaysOut(g.XID))
		}
		if err != nil {
			return err
		}
		if _, err = sub.feed(ctx, raw, start); err == nil {
			_, err = sub.more(ctx)
		}
		if err != nil {
			return err
		}
		if sub.found == nil && sub.passed && exact {
			return fmt.Errorf("at %s stands another transaction: the binlog was written anew, or the offset is from another server; %s", at(sub.file, sub.groupStart), xaWaysOut(g.XID))
		}
	}
	found := sub.found
	if found.body == nil {
		return errors.New("they could not be kept; see the warning before")
	}
	g.where, g.body, g.counts = found.where, found.body, found.counts
	return nil
}

// xaWaysOut says what to do about an XA transaction whose rows are gone.
func xaWaysOut(xid string) string {
	return "choices: point database.hostname at a server that still has that binlog (a replica with longer retention, a restored backup); " +
		"or accept that the rows of " + xid + " are missing: " + offset.HowToDelete + ", start behind its XA COMMIT (start.position), " +
		"and bring its tables' present rows to the topics by a new snapshot"
}
