package binlog

import (
	"context"
	"errors"
	"fmt"
)

// info is the source block of the event being handled.
func (a *assembler) info(h header) Info {
	i := Info{TsMicros: a.time(h), ServerID: int64(h.server), File: a.file, Pos: a.start, Thread: -1, Query: a.query}
	if a.pending {
		i.GTID = a.gtidString()
	}
	if a.in {
		i.Thread = a.thread
	}
	return i
}

func (a *assembler) tableMap(ctx context.Context, body []byte) error {
	id := tableIDSize(a.format.postLength(evTableMap))
	if len(body) < id+2 {
		return a.errorf(errTableMap, "")
	}
	if a.silent() {
		return nil
	}
	if err := a.tables.add(ctx, fixedInt(body[:id]), body[id+2:], a.file, a.start); err != nil {
		return a.errorf(err, "")
	}
	return nil
}

// noTable is the table id of a rows event that only ends a statement.
const noTable = 0xffffff

// rowsEvent handles a rows event.
func (a *assembler) rowsEvent(h header, body []byte) (Event, error) {
	rowSkip := a.rowSkip
	a.rowSkip = 0
	if a.silent() {
		return nil, nil
	}
	e, err := parseRows(&a.format, h.typ, body)
	if err != nil {
		return nil, a.errorf(err, "")
	}
	if e.end {
		defer a.endStatement()
	}
	v := a.tables.lookup(e.table)
	if v == nil {
		if e.table == noTable && e.end {
			return nil, nil
		}
		return nil, a.errorf(fmt.Errorf("rows of table id %d, which no TABLE_MAP event of this statement names: the position is inside a statement; "+
			"start at the BEGIN of its transaction or between transactions", e.table), "")
	}
	if !v.captured || a.skipping {
		return nil, nil
	}
	name := v.database + "." + v.name
	switch {
	case a.xa != "":
		return nil, a.errorf(fmt.Errorf("XA transaction %s changes the table: XA transactions on captured tables are not supported yet; "+
			"exclude the table, or start behind its end "+howToStart, a.xa), name)
	case v.err != nil:
		return nil, a.errorf(v.err, name)
	case h.typ == evPartialUpdate:
		return nil, a.errorf(errors.New("an update with partial JSON values (binlog_row_value_options=PARTIAL_JSON): the new value is not in the binlog; "+
			"SET PERSIST binlog_row_value_options='', end the sessions that still have it, take a new snapshot of the table, and start behind this position "+howToStart), name)
	case e.columns != len(v.cells):
		return nil, a.errorf(fmt.Errorf("the rows have %d columns, their TABLE_MAP event has %d: the event is damaged", e.columns, len(v.cells)), name)
	}
	for _, bitmap := range [2][]byte{e.before, e.after} {
		if missing, ok := full(bitmap, e.columns); bitmap != nil && !ok {
			return nil, a.errorf(fmt.Errorf("column %s is not in the row image (binlog_row_image is not FULL in the session that wrote it): "+
				"SET PERSIST binlog_row_image=FULL, end the sessions that still have another image, take a new snapshot of the table, and start behind this position "+howToStart,
				v.table.Columns[missing].Name), name)
		}
	}
	r := &a.rows
	r.Info = a.info(h)
	r.Table = v.table
	r.noRow = !a.in
	if a.in {
		r.Base = a.offsetAt(h, a.begin)
		r.Base.Event = a.events
	} else {
		r.Base = a.group
	}
	r.start(e.op, v.cells, e.images)
	r.skip = rowSkip
	a.sent = true
	return r, nil
}

// endStatement forgets what belongs to one statement.
func (a *assembler) endStatement() {
	a.tables.forget()
	a.query = ""
}
