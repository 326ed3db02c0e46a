package binlog

import (
	"context"
	"errors"
	"fmt"
)

func (a *assembler) tableMap(ctx context.Context, body []byte) error {
	id := tableIDSize(a.format.postLength(evTableMap))
	if len(body) < id+2 {
		return a.errorf(errTableMap, "")
	}
	if a.silent() && !a.spools() {
		return nil
	}
	a.tables.maria = a.format.mariaDB
	if err := a.tables.add(ctx, tableID(body, id), body[id+2:], a.file, a.start); err != nil {
		return a.errorf(err, "")
	}
	return nil
}

// noTable is the table id of a rows event that only ends a statement.
const noTable = 0xffffff

// rowsEvent handles a rows event.
func (a *assembler) rowsEvent(h *header, body []byte) (Event, error) {
	if a.silent() && !a.spools() {
		return nil, nil
	}
	var e rowsEvent
	if err := e.parse(&a.format, h.typ, body); err != nil {
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
	skip, wanted := a.account(h, v, &e)
	if a.uncounted {
		a.uncounted = false
		if err := a.restSentAgain(v); err != nil {
			return nil, err
		}
	}
	if !wanted {
		return nil, nil
	}
	switch {
	case v.err != nil && errors.Is(v.err, errMetadata) && a.unknownTable != nil:
		a.unknownTable(v.database, v.name, a.errorf(v.err, v.fullName()))
		return nil, nil
	case v.err != nil:
		return nil, a.errorf(v.err, v.fullName())
	case e.columns != len(v.cells):
		return nil, a.errorf(fmt.Errorf("the rows have %d columns, their TABLE_MAP event has %d: the event is damaged", e.columns, len(v.cells)), v.fullName())
	}
	r := &a.rows
	r.Table = v.table
	a.locate(r, h)
	r.start(e.op, v.cells, e.images)
	r.skip = skip
	if diffs := h.typ == evPartialUpdate; diffs || !full(e.before, e.columns) || !full(e.after, e.columns) {
		if err := r.setImages(v, &e, diffs); err != nil {
			return nil, a.errorf(err, v.fullName())
		}
	}
	a.given(r)
	return r, nil
}

// endStatement forgets what belongs to one statement.
func (a *assembler) endStatement() {
	a.tables.forget()
	a.query = ""
	a.opened = false
}
