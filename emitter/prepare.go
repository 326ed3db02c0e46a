package emitter

import (
	"errors"

	"github.com/tidemark-cdc/tidemark/binlog"
)

// prepare looks whether a row can be written whose plan is not ready: whether its schemas have their ids, of the key first,
// if it is to give a record at all. Nothing of it is decoded, counted or told before.
func (e *Emitter) prepare(ev *binlog.Rows) error {
	p := e.plan
	if p == nil || p.table != ev.Table {
		return errors.New("the event was not begun")
	}
	writes, err := e.writes(p, ev)
	if err != nil || !writes {
		return err
	}
	if err := p.keySchema.resolve(); err != nil {
		return err
	}
	if err := p.finish(&e.cfg); err != nil {
		return err
	}
	p.ready = p.table
	return nil
}

// writes says whether a row gives a record.
func (e *Emitter) writes(p *plan, ev *binlog.Rows) (bool, error) {
	if int(ev.Op) < len(e.skip) && e.skip[ev.Op] {
		return false, nil
	}
	if ev.Covered() {
		// The last event of a key change is written if the stored offset does not count it.
		t := &e.side.transaction
		if ev.Op != binlog.Update || !e.cfg.Transactions || t.id == "" || t.total+2 <= t.stored {
			return false, nil
		}
		quiet, err := p.quietly(&e.cfg)
		if err != nil {
			return false, err
		}
		same, err := e.run.sameCells(quiet.key, ev.Before, ev.After)
		return !same, err
	}
	if ev.Op != binlog.Update || !e.cfg.SkipUnchanged {
		return true, nil
	}
	quiet, err := p.quietly(&e.cfg)
	if err != nil {
		return false, err
	}
	for _, columns := range [][]column{quiet.key, quiet.value} {
		if same, err := e.run.sameCells(columns, ev.Before, ev.After); !same || err != nil {
			return true, err
		}
	}
	return false, nil
}

// quietly is the plan's columns, whose values may be decoded once more without being told of or counted.
func (p *plan) quietly(cfg *Config) (*rowPlan, error) {
	if p.quiet != nil {
		return p.quiet, nil
	}
	quiet := *cfg
	quiet.Modes.Invalid, quiet.Modes.InvalidValues = nil, nil
	value, err := valueColumns(&quiet, p.table)
	if err != nil {
		return nil, err
	}
	key, err := keyColumns(&quiet, p.table)
	p.quiet = &rowPlan{key: key, value: value}
	return p.quiet, err
}
