package emitter

import (
	"errors"
	"fmt"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/schema"
)

// Truncate appends the record of a TRUNCATE TABLE, if the operation t is not left out ([Config.Skip]); the boundary is to
// be announced after it. On an error b is as it was before.
func (e *Emitter) Truncate(b *Batch, ev *binlog.Truncate) error {
	if e.cfg.Skip["t"] {
		return nil
	}
	size := len(b.mem)
	if err := e.truncate(b, ev); err != nil {
		b.mem = b.mem[:size]
		return fmt.Errorf("%s:%d: TRUNCATE TABLE %s.%s: %w", ev.Info.File, ev.Info.Pos, ev.Database, ev.Table, err)
	}
	return nil
}

func (e *Emitter) truncate(b *Batch, ev *binlog.Truncate) error {
	t, err := e.truncated(ev)
	if err != nil {
		return err
	}
	if err := e.use(t); err != nil {
		return err
	}
	if err := e.plan.finish(&e.cfg); err != nil {
		return err
	}
	e.startStatement(ev.Info)
	e.scratch.Reset()
	e.run.before, e.run.after, e.run.row = nil, nil, 0
	if e.cfg.Transactions {
		e.side.transaction.current = e.side.transaction.counts.version(t)
	}
	r, err := e.record(b, nil, truncated)
	if err != nil {
		return err
	}
	r.Offset = e.Mark(ev.Record)
	return nil
}

// truncated is the table: the version that rows had last, else what its definition says.
func (e *Emitter) truncated(ev *binlog.Truncate) (*schema.Table, error) {
	name := schema.TableName{Database: ev.Database, Table: ev.Table}
	if t := e.side.tables[name]; t != nil {
		return t, nil
	}
	if ev.Definition == nil {
		return nil, errors.New("the columns of the table, which its record's schema has, are not known; leave such records " +
			"out with skipped.operations=t, or insert a row before the statement")
	}
	t, err := e.cfg.definedTable(ev.Definition)
	if err == nil {
		e.side.tables[name] = t
	}
	return t, err
}
