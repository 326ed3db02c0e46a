package binlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/binlog/server"
)

// A restart inside a transaction begins at its BEGIN, which proves that it is the stored one. From there on the events up to
// the stored rows event would only be passed over, so the reader goes straight to it when the side record says where it
// stands, on the same server. Of what lies in between the assembler needs the TABLE_MAPs of the open statement, which
// stand at its beginning, and the counts, which the side record has. What is found is compared with what is recorded before
// the assembler sees any of it; if anything differs, the transaction is read from its BEGIN as if nothing had happened.
type jump struct {
	// open opens the binlog at an event. Beside the reader's stream it is only looked at, else it takes its place. Nil: it
	// cannot be opened.
	open  func(ctx context.Context, file string, pos int64, beside bool) (rawStream, error)
	least int64 // a shorter way from BEGIN to the rows event is read: another connection costs more
	near  int64 // likewise from the beginning of its statement

	tried   bool
	moved   bool // the reader's stream is not any more where it was before
	arrived bool // the statement that the stream has gone into is still open

	// What goes back behind BEGIN.
	to     resume
	first  int64            // where the first statement begins
	events int64            // and its number
	head   [headerSize]byte // and the header of its first event
}

// shortWay is what is read rather than left out by another connection, in bytes.
const shortWay = 1 << 20

// straight is given each raw event while the stored place is being looked for, and in the statement where it was found. It
// returns the event that is to be handled instead.
func (r *Reader) straight(ctx context.Context, raw []byte, start int64) ([]byte, int64, error) {
	a, j := &r.asm, &r.jump
	switch {
	case len(raw) < headerSize:
		return raw, start, nil
	case j.arrived:
		return r.known(ctx, raw, start)
	case j.tried || raw[4] != evTableMap && raw[4] != evRowsQuery: // what comes before may make the table
		return raw, start, nil
	}
	j.tried = true
	if !j.wanted(a) {
		return raw, start, nil
	}
	j.to, j.first, j.events, j.head = *a.resume, a.next, a.events, [headerSize]byte(raw)
	j.moved = false
	e, err := r.land(ctx, rawEvent{raw: raw, start: start})
	switch {
	case err == nil:
		return e.raw, e.start, nil
	case ctx.Err() != nil: // a later Read begins anew
		r.raw.close()
		r.raw, j.tried = anew{r}, false
		return nil, 0, err
	}
	r.giveUp(err)
	if !j.moved {
		return raw, start, nil
	}
	r.raw.close()
	return r.back(ctx)
}

// wanted says whether the stored transaction, whose BEGIN has been read, can be left out up to the stored rows event, and
// whether that is worth it: no row of it must have to be counted, and positions must fit the command that asks for them.
func (j *jump) wanted(a *assembler) bool {
	to := a.resume
	if j.open == nil || to == nil || to.open == nil || !to.same || a.recount || a.foreign || a.format.mariaDB {
		return false
	}
	o := to.open
	return o.EventPos > 0 && o.EventPos < 1<<32 && o.EventPos-a.begin >= j.least && o.Filters == a.filters && o.Rows >= 0 && o.Captured >= 0
}

// land finds the stored rows event and returns it when all is as recorded; then the assembler is where it would be had it
// passed over everything in front of it. raw is the event at hand, the first behind BEGIN that belongs to a statement.
func (r *Reader) land(ctx context.Context, raw rawEvent) (rawEvent, error) {
	a, j := &r.asm, &r.jump
	to, open := a.resume, a.resume.open
	if open.StatementPos < a.next || open.EventPos <= open.StatementPos || open.StatementEvent < a.events || to.event <= open.StatementEvent {
		return rawEvent{}, fmt.Errorf("the side record says that it is event %d at %d, of a statement that begins with event %d at %d, "+
			"behind a BEGIN at %d", to.event, open.EventPos, open.StatementEvent, open.StatementPos, a.begin)
	}
	near := open.EventPos-open.StatementPos < j.near
	c := &cursor{in: r.raw, file: a.file, pos: a.next, format: &a.format, begun: true, held: &raw}
	if open.StatementPos != a.next {
		var err error
		if c, err = r.openAt(ctx, open.StatementPos, !near); err != nil {
			return rawEvent{}, err
		}
		if !near {
			defer c.in.close()
		}
	} else {
		j.moved = true
	}
	maps, e, err := c.statement(ctx, a.queries)
	passed := int64(len(maps))
	for ; near && err == nil && c.start < open.EventPos; passed++ {
		e, err = c.next(ctx)
	}
	if !near && err == nil {
		if c, err = r.openAt(ctx, open.EventPos, false); err == nil {
			e, err = c.next(ctx)
		}
	}
	if err != nil {
		return rawEvent{}, err
	}
	if number := open.StatementEvent + passed; c.start != open.EventPos || number > to.event || near && number != to.event {
		return rawEvent{}, fmt.Errorf("event %d begins at %d there", number, c.start)
	}
	id, err := a.fits(e, maps, to.row)
	if err != nil {
		return rawEvent{}, err
	}
	a.events, a.next = open.StatementEvent, open.StatementPos
	for _, m := range maps {
		if _, err := a.feed(ctx, m.raw, m.start); err != nil {
			return rawEvent{}, err
		}
	}
	if v := a.tables.lookup(id); v == nil || v.err != nil {
		return rawEvent{}, errors.New("its table is not known there")
	}
	a.events, a.next = to.event, open.EventPos
	a.counts = counts{all: open.Rows, captured: open.Captured}
	j.arrived = true
	a.tables.log.Info("gone straight to the stored rows event",
		zap.String("transaction", at(a.file, a.begin)), zap.Int64("pos", open.EventPos), zap.Int64("event", to.event))
	return e, nil
}

// openAt opens the stream at an event of the present file; if not beside the reader's, in its place.
func (r *Reader) openAt(ctx context.Context, pos int64, beside bool) (*cursor, error) {
	a, j := &r.asm, &r.jump
	if !beside {
		j.moved = true
		r.raw.close()
	}
	in, err := j.open(ctx, a.file, pos, beside)
	if err != nil {
		return nil, err
	}
	if !beside {
		r.raw, a.jumps = in, false // it leaves nothing out
	}
	return &cursor{in: in, file: a.file, pos: pos, format: &a.format}, nil
}

// fits compares the event that was found with the stored place: it must be one of rows of a table of the statement, and have
// as many as are done of it. It returns the id of the table.
func (a *assembler) fits(e rawEvent, maps []rawEvent, rows int64) (id uint64, err error) {
	var h header
	if err := h.parse(e.raw); err != nil {
		return 0, err
	}
	if !isRows(h.typ) {
		return 0, fmt.Errorf("it is an event of type %d there, not of rows", h.typ)
	}
	var body rowsEvent
	if err := body.parse(&a.format, h.typ, e.raw[headerSize:]); err != nil {
		return 0, err
	}
	size := tableIDSize(a.format.postLength(evTableMap))
	for i := len(maps) - 1; i >= 0; i-- {
		m := maps[i].raw
		if m[4] != evTableMap || len(m) < headerSize+size+2 || tableID(m[headerSize:], size) != body.table {
			continue
		}
		if n := parseShape(m[headerSize+size+2:]).count(&h, &body); n < rows || n == 0 {
			return 0, fmt.Errorf("the offset has %d rows of it, and there it has %d (-1: they cannot be counted)", rows, n)
		}
		return body.table, nil
	}
	return 0, fmt.Errorf("its rows are of table id %d there, which its statement does not name", body.table)
}

// known sees to the rest of the statement: all its tables must have been named at its beginning. If one was named later, only
// the way from BEGIN leads to it.
func (r *Reader) known(ctx context.Context, raw []byte, start int64) ([]byte, int64, error) {
	a, j := &r.asm, &r.jump
	if !a.in || !a.opened {
		j.arrived = false
		return raw, start, nil
	}
	size := tableIDSize(a.format.postLength(raw[4]))
	if !isRows(raw[4]) || len(raw) < headerSize+size {
		return raw, start, nil
	}
	id := tableID(raw[headerSize:], size)
	if id == noTable || a.tables.lookup(id) != nil {
		return raw, start, nil
	}
	j.arrived = false
	j.to.event, j.to.row = a.events, 0
	r.giveUp(fmt.Errorf("table id %d, of the rows at %s, was named behind the first rows of its statement", id, at(a.file, a.next)))
	r.raw.close()
	return r.back(ctx)
}

// giveUp says why the long way is gone.
func (r *Reader) giveUp(why error) {
	a := &r.asm
	a.warn(fmt.Sprintf("the rows event of the stored offset cannot be gone to straight: %v; the transaction that begins at %s is read from there, "+
		"which takes longer and gives the same", why, at(a.file, a.begin)))
}

// back opens the stream behind BEGIN, and sets the assembler to where it was there.
func (r *Reader) back(ctx context.Context) ([]byte, int64, error) {
	a, j := &r.asm, &r.jump
	c, err := r.openAt(ctx, j.first, false)
	var e rawEvent
	if err == nil {
		e, err = c.next(ctx)
	}
	if err == nil && [headerSize]byte(e.raw) != j.head {
		err = fmt.Errorf("another event stands at %s than before: the binlog was written anew", at(a.file, j.first))
	}
	if err != nil {
		r.raw.close()
		r.raw = anew{r}
		return nil, 0, err
	}
	to := j.to
	a.resume, a.skipping, a.rowSkip = &to, true, 0
	a.next, a.events, a.counts = j.first, j.events, counts{}
	a.opened, a.openPos, a.openEvent = false, 0, 0
	a.sent, a.query = false, ""
	a.tables.forget()
	return e.raw, e.start, nil
}

// anew stands for the stream that could not be opened behind BEGIN: the next attempt to read tries that again.
type anew struct{ r *Reader }

func (s anew) next(ctx context.Context) ([]byte, int64, error) { return s.r.back(ctx) }
func (anew) close() error                                      { return nil }

// rawEvent is what a rawStream gives.
type rawEvent struct {
	raw   []byte
	start int64
}

// cursor looks at a stream that begins at an event, and compares the position of each event with that at which it is due.
type cursor struct {
	in     rawStream
	file   string
	pos    int64 // where the next event is due
	start  int64 // of the last one
	format *format
	begun  bool      // the head of the stream has gone by
	held   *rawEvent // comes first
}

// next returns the next event, valid until the call after it.
func (c *cursor) next(ctx context.Context) (rawEvent, error) {
	for {
		e, err := c.read(ctx)
		if err == io.EOF {
			err = fmt.Errorf("the binlog ends at %s", at(c.file, c.pos))
		}
		var h header
		if err == nil {
			err = h.parse(e.raw)
		}
		if err != nil {
			return e, err
		}
		if !c.begun && (h.typ == evRotate || h.typ == evFormat) {
			if err := c.sameFile(h, e.raw[headerSize:]); err != nil {
				return e, err
			}
			continue
		}
		c.begun = true
		if h.typ == evHeartbeat || h.typ == evHeartbeatV2 {
			return e, fmt.Errorf("the binlog ends at %s, or somewhere before it", at(c.file, c.pos))
		}
		c.start = c.pos
		c.pos += int64(h.size)
		gap := h.end - uint32(c.pos) // modulo 4 GiB
		if gap == checksumSize && e.start < 0 {
			c.pos, gap = c.pos+checksumSize, 0 // it was taken off
		}
		if e.start >= 0 && e.start != c.start || e.start < 0 && gap != 0 {
			return e, fmt.Errorf("no event begins at %s", at(c.file, c.start))
		}
		return e, nil
	}
}

func (c *cursor) read(ctx context.Context) (rawEvent, error) {
	if e := c.held; e != nil {
		c.held = nil
		return *e, nil
	}
	raw, start, err := c.in.next(ctx)
	return rawEvent{raw, start}, err
}

// sameFile says whether the head of a stream is that of the file in which the reader is.
func (c *cursor) sameFile(h header, body []byte) error {
	if h.typ == evRotate {
		if len(body) < 8 || string(body[8:]) != c.file {
			return fmt.Errorf("the stream does not begin in %s", c.file)
		}
		return nil
	}
	f, err := parseFormat(body)
	if err == nil && !bytes.Equal(f.post, c.format.post) {
		err = fmt.Errorf("%s has another format", c.file)
	}
	return err
}

// statement reads the beginning of a statement, up to the first event that has rows. Without queries the text is left out.
func (c *cursor) statement(ctx context.Context, queries bool) (maps []rawEvent, rows rawEvent, err error) {
	for {
		e, err := c.next(ctx)
		switch {
		case err != nil:
			return nil, e, err
		case isRows(e.raw[4]):
			return maps, e, nil
		case e.raw[4] == evRowsQuery && !queries:
			e.raw = e.raw[:headerSize]
		case e.raw[4] != evTableMap && e.raw[4] != evRowsQuery:
			return nil, e, fmt.Errorf("an event of type %d stands at %s, and no beginning of a statement", e.raw[4], at(c.file, c.start))
		}
		e.raw = bytes.Clone(e.raw)
		maps = append(maps, e)
	}
}

// at opens a server's stream at an event.
func (l *liveAgain) at(ctx context.Context, file string, pos int64, beside bool) (rawStream, error) {
	stream, err := l.conn.Dump(ctx, server.DumpRequest{
		ServerID: l.replica.ServerID, Identity: l.replica.Name, From: server.DumpFrom{File: file, Pos: pos, Origin: server.Stored},
		Beside: beside, Again: !beside, Queries: l.asm.queries,
	})
	if err != nil {
		return nil, err
	}
	return liveStream{stream}, nil
}

// at opens a file at an event, and the files behind it.
func (f *filesAgain) at(_ context.Context, file string, pos int64, _ bool) (rawStream, error) {
	for i, path := range f.files {
		if filepath.Base(path) == file {
			return &fileStream{files: f.files[i:], jump: pos}, nil
		}
	}
	return nil, fmt.Errorf("binlog file %s is not among those given", file)
}

// regular says whether all files can be read more than once.
func (f *filesAgain) regular() bool {
	for _, path := range f.files {
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			return false
		}
	}
	return true
}
