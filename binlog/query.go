package binlog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
)

// readQuery takes a QUERY event or a LOAD DATA statement in text form apart.
func (a *assembler) readQuery(h *header, body []byte) (queryEvent, statement, error) {
	extra := 0
	if h.typ == evExecuteLoad {
		extra = 13
	}
	q, err := parseQuery(body, extra)
	if err != nil {
		return q, statement{}, a.errorf(err, "")
	}
	return q, classify(q.database, q.text), nil
}

// plainBegin recognises the statement that nearly every transaction begins with, as the server itself writes it, without a
// look at anything else of its event, and gives its thread. Of others readQuery says what they are.
func plainBegin(h *header, body []byte) (thread int64, ok bool) {
	const (
		fixed = 4 + 4 + 1 + 2 + 2
		text  = "\x00BEGIN" // the end of the database's name, and the statement
	)
	at := len(body) - len(text)
	if h.typ != evQuery || at < fixed || string(body[at:]) != text {
		return 0, false
	}
	database, status := int(body[8]), int(binary.LittleEndian.Uint16(body[11:]))
	return int64(binary.LittleEndian.Uint32(body)), at == fixed+status+database
}

func (a *assembler) queryInside(ctx context.Context, h *header, body []byte) (Event, error) {
	q, s, err := a.readQuery(h, body)
	if err != nil {
		return nil, err
	}
	switch s.kind {
	case kindCommit:
		return a.commit(h)
	case kindRollback, kindRollbackTo:
		if a.sent && !a.silent() {
			return nil, a.errorf(fmt.Errorf("the transaction that begins at %s is rolled back in the binlog, after rows of it have been given out: "+
				"they are wrong downstream if their tables are transactional; check them, and start behind this position, start.position=%s "+howToStart,
				at(a.file, a.begin), at(a.file, a.next)), "")
		}
		if s.kind == kindRollback {
			return a.commit(h)
		}
	case kindBegin, kindXAStart:
		return nil, a.unfinished()
	case kindDML, kindFunction:
		return nil, a.textChange(string(q.database), s)
	case kindDDL:
		return a.ddlInside(ctx, h, q)
	}
	return nil, nil
}

func (a *assembler) queryOutside(ctx context.Context, h *header, body []byte) (Event, error) {
	if thread, ok := plainBegin(h, body); ok {
		return a.beginTransaction(h, thread)
	}
	q, s, err := a.readQuery(h, body)
	if err != nil {
		return nil, err
	}
	switch s.kind {
	case kindBegin:
		return a.beginTransaction(h, q.thread)
	case kindXAStart:
		return nil, a.xaStart(s.xid)
	case kindDML, kindFunction:
		if err := a.textChange(string(q.database), s); err != nil {
			return nil, err
		}
	}
	if a.xa != nil { // XA END, SAVEPOINT and the like
		if a.xa.events++; s.kind == kindXAOnePhase && s.xid == a.xa.XID && !a.xa.quiet {
			g := a.xa
			a.xa = nil
			return nil, a.emit(ctx, h, g)
		}
		return nil, nil
	}
	switch s.kind {
	case kindXACommit, kindXAOnePhase, kindXARollback:
		return a.xaDecide(ctx, h, s)
	case kindDDL, kindOther:
		return a.ddl(ctx, h, q, s)
	}
	silent := a.silent()
	if err := a.resumeElsewhere(); err != nil {
		return nil, err
	}
	info, record := a.statementInfo(h), a.offsetAt(h, a.next)
	b := a.endGroup(h, s.kind == kindCommit)
	if silent || b == nil {
		return nil, nil
	}
	if s.kind == kindTruncate {
		if t := s.tables[0]; a.captured(t.database, t.table) {
			a.lastSec = info.TsMicros / 1e6
			a.truncate = Truncate{Info: info, Database: t.database, Table: t.table, Record: record, Offset: b.Offset}
			if a.defs != nil {
				a.truncate.Definition = a.defs.at(t.database, t.table)
			}
			return &a.truncate, nil
		}
	}
	return b, nil
}

// statementInfo is the source block of a statement: Debezium's have whole milliseconds.
func (a *assembler) statementInfo(h *header) Info {
	info := a.info(h)
	info.Query = ""
	info.TsMicros -= info.TsMicros % 1000
	return info
}

const textFormat = "(binlog_format STATEMENT or MIXED in that session), so its rows are not in the binlog: " +
	"SET PERSIST binlog_format=ROW, end the sessions that still have another format, take a new snapshot of the table, and start behind this position " + howToStart

// textChange refuses a change of rows that was logged as text, unless it is of tables that are not wanted. What a stored
// function changes the text does not say: most likely tables of its own database, or of the session's.
func (a *assembler) textChange(database string, s statement) error {
	if a.silent() || a.skipping {
		return nil
	}
	for _, t := range s.tables {
		if s.kind == kindFunction {
			for _, database := range []string{t.database, database} {
				if a.tables.anyOf(database) {
					return a.errorf(fmt.Errorf("a call of the stored function %s.%s, which changes rows, is logged as SQL text, which does not say of which tables: "+
						"perhaps captured ones of database %s "+textFormat, t.database, t.table, database), "")
				}
			}
		} else if a.captured(t.database, t.table) {
			return a.errorf(errors.New("a change of rows is logged as SQL text "+textFormat), t.database+"."+t.table)
		}
	}
	if !a.warnedText {
		a.warnedText = true
		a.warn(at(a.file, a.start) + ": a change of rows of tables that are not captured is logged as SQL text (binlog_format STATEMENT or MIXED in that session); " +
			"what it does to captured tables through stored functions, views, triggers and foreign keys is not in the binlog: SET PERSIST binlog_format=ROW, and end the sessions that still have another format")
	}
	return nil
}
