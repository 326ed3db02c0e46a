package emitter

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/schema"
)

// Config says how events look. Only Prefix is required.
type Config struct {
	Prefix          string           // topic.prefix: begins topics and schema names, and is source.name
	Connector       string           // the connector's type in source.connector and the headers; "": "mysql"
	RunID           string           // of the header runId; "": a new version 7 UUID
	Key, Value      Converter        // the formats of keys and values
	Tombstones      bool             // tombstones.on.delete: a delete is followed by a record with a null value
	ExtendedHeaders bool             // extended.headers.enabled: the headers __debezium.context.*
	Modes           schema.Modes     // how columns map to Connect types
	Clock           func() time.Time // the connector's clock, for ts_ms, ts_us and ts_ns; nil: time.Now
}

// Converter is the configuration of a Kafka Connect JsonConverter.
type Converter struct {
	Schemas                bool // schemas.enable: the schema goes before the payload
	ReplaceNullWithDefault bool // replace.null.with.default (Connect's default is true): a NULL in a column with a default becomes that
	NumericDecimals        bool // decimal.format=NUMERIC: decimals are JSON numbers, not base64 text
}

// prefix is what goes before the payload.
func (c *Converter) prefix(t *schema.Type) ([]byte, error) {
	if !c.Schemas {
		return nil, nil
	}
	prefix, err := appendSchema([]byte(`{"schema":`), t, nil, c.NumericDecimals)
	return append(prefix, `,"payload":`...), err
}

// compile makes the program of a shape whose schema's prefix is given.
func (c *Converter) compile(s *shape, layouts []schema.Layout, prefix []byte) (*program, error) {
	d := dialect{defaults: c.ReplaceNullWithDefault, numbers: c.NumericDecimals}
	if prefix == nil {
		return compile(s, layouts, d, nil, "")
	}
	return compile(s, layouts, d, prefix, "}")
}

const (
	// planLimit bounds the plans kept; dropped ones are compiled again when they are needed.
	planLimit = 10_000
	// clockRows is how many rows share one reading of the clock.
	clockRows = 16
)

// Emitter turns rows events into the records that Debezium would write for them. It is not safe for concurrent use.
type Emitter struct {
	cfg     Config
	headers []Header // of every record
	plans   map[*schema.Table]*plan
	plan    *plan // of the event begun
	now     now
	fresh   int // rows for which the clock need not be read
	scratch schema.Scratch
	run     run
}

// New checks cfg and returns an emitter.
func New(cfg Config) (*Emitter, error) {
	if cfg.Prefix == "" {
		return nil, errors.New("topic.prefix is empty")
	}
	if cfg.Connector == "" {
		cfg.Connector = "mysql"
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.RunID == "" {
		cfg.RunID = newRunID(cfg.Clock())
	}
	e := &Emitter{cfg: cfg, plans: make(map[*schema.Table]*plan)}
	if cfg.ExtendedHeaders {
		e.headers = contextHeaders(&cfg)
	}
	e.run.scratch = &e.scratch
	return e, nil
}

// Forget drops what was compiled for tables. It is to be called when the source is opened anew: its tables are other
// values then, and those of before would be kept for nothing.
func (e *Emitter) Forget() {
	clear(e.plans)
	e.plan = nil
}

// Begin prepares for the rows of ev: it compiles ev's table if it has not met this version of it, and renders what is
// the same for all rows. It has to be called once for each event, before [Emitter.Row].
func (e *Emitter) Begin(ev *binlog.Rows) error {
	if e.plan == nil || e.plan.table != ev.Table {
		p := e.plans[ev.Table]
		if p == nil {
			var err error
			if p, err = newPlan(&e.cfg, ev.Table); err != nil {
				return fmt.Errorf("%s:%d: table %s.%s: %w", ev.Info.File, ev.Info.Pos, ev.Table.Database, ev.Table.Name, err)
			}
			if len(e.plans) >= planLimit {
				clear(e.plans)
			}
			e.plans[ev.Table] = p
		}
		e.plan = p
	}
	e.now.info = &ev.Info
	e.now.event++
	e.readClock()
	return nil
}

func (e *Emitter) readClock() {
	e.now.time = e.cfg.Clock()
	e.now.clock++
	e.fresh = clockRows
}

// Row appends the records of ev's current row to b: one for an insert or update; for a delete the change and a
// tombstone; for an update that changes the record key a delete, a tombstone and a create. Only the last carries the
// offset after the row (I3). On an error, which names position, table, row and column, b is as it was before.
func (e *Emitter) Row(b *Batch, ev *binlog.Rows) error {
	if e.fresh == 0 || len(b.Records) == 0 {
		e.readClock() // the wait for an empty batch may have been long
	}
	e.fresh--
	e.scratch.Reset()
	records, size, headers := len(b.Records), len(b.mem), len(b.headers)
	e.run.before, e.run.after, e.run.row = ev.Before, ev.After, ev.Row
	if err := e.row(b, ev); err != nil {
		clear(b.Records[records:])
		b.Records, b.mem, b.headers = b.Records[:records], b.mem[:size], b.headers[:headers]
		return fmt.Errorf("%s:%d: table %s.%s, row %d: %w", ev.Info.File, ev.Info.Pos, ev.Table.Database, ev.Table.Name,
			ev.Row, err)
	}
	return nil
}

func (e *Emitter) row(b *Batch, ev *binlog.Rows) error {
	p := e.plan
	if p == nil || p.table != ev.Table {
		return errors.New("the event was not begun")
	}
	switch ev.Op {
	case binlog.Create:
		key, err := e.bytes(b, p.newKey)
		if err != nil {
			return err
		}
		return e.last(b, ev, key, created)
	case binlog.Update:
		key, err := e.bytes(b, p.newKey)
		if err != nil {
			return err
		}
		if len(p.key) > 0 && !p.sameKeyCells(ev.Before, ev.After) {
			old, err := e.bytes(b, p.oldKey)
			if err != nil {
				return err
			}
			if !bytes.Equal(old, key) {
				return e.keyChange(b, ev, old, key)
			}
		}
		return e.last(b, ev, key, updated)
	case binlog.Delete:
		key, err := e.bytes(b, p.oldKey)
		if err != nil {
			return err
		}
		if !e.cfg.Tombstones {
			return e.last(b, ev, key, deleted)
		}
		r, err := e.record(b, key, deleted)
		if err != nil {
			return err
		}
		r.Offset = ev.OffsetBefore()
		e.tombstone(b, key).Offset = ev.OffsetAfter()
		return nil
	}
	return fmt.Errorf("an operation of unknown number %d", ev.Op)
}

// keyChange appends a delete under the old key, a tombstone and a create under the new key.
func (e *Emitter) keyChange(b *Batch, ev *binlog.Rows, old, key []byte) error {
	moved, err := e.keyHeaders(b, newKeyHeader, e.plan.newHeader)
	if err != nil {
		return err
	}
	came, err := e.keyHeaders(b, oldKeyHeader, e.plan.oldHeader)
	if err != nil {
		return err
	}
	r, err := e.record(b, old, deleted)
	if err != nil {
		return err
	}
	r.Offset, r.Headers, r.moved = ev.OffsetBefore(), moved, true
	if e.cfg.Tombstones {
		r = e.tombstone(b, old)
		r.Offset, r.Headers, r.moved = ev.OffsetBefore(), moved, true
	}
	if err := e.last(b, ev, key, created); err != nil {
		return err
	}
	r = &b.Records[len(b.Records)-1]
	r.Headers, r.moved = came, true
	return nil
}

// last appends the record that ends the row.
func (e *Emitter) last(b *Batch, ev *binlog.Rows, key []byte, c change) error {
	r, err := e.record(b, key, c)
	if err == nil {
		r.Offset = ev.OffsetAfter()
	}
	return err
}

// record appends a record with the envelope of the current images; its offset is still to be set.
func (e *Emitter) record(b *Batch, key []byte, c change) (*Record, error) {
	p := e.plan.value[c]
	p.refresh(&e.now)
	value, err := e.bytes(b, p)
	if err != nil {
		return nil, err
	}
	r := e.tombstone(b, key)
	r.Value = value
	return r, nil
}

// tombstone appends a record without a value; its offset is still to be set.
func (e *Emitter) tombstone(b *Batch, key []byte) *Record {
	n := len(b.Records)
	if n == cap(b.Records) {
		b.Records = slices.Grow(b.Records, 1)
	}
	b.Records = b.Records[:n+1]
	r := &b.Records[n]
	// Not as one literal: the offset is the caller's, and large.
	r.Topic, r.Key, r.Value, r.Headers, r.moved = e.plan.topic, key, nil, e.headers, false
	return r
}

// bytes appends what p makes of the current row to the batch's memory; nil without a program.
func (e *Emitter) bytes(b *Batch, p *program) ([]byte, error) {
	if p == nil {
		return nil, nil
	}
	start := len(b.mem)
	var err error
	b.mem, err = p.append(b.mem, &e.run)
	return b.mem[start:len(b.mem):len(b.mem)], err
}

// keyHeaders makes the headers of one half of a key change: the other key, then those of every record.
func (e *Emitter) keyHeaders(b *Batch, name string, p *program) ([]Header, error) {
	value, err := e.bytes(b, p)
	if err != nil {
		return nil, err
	}
	start := len(b.headers)
	b.headers = append(b.headers, Header{name, value})
	b.headers = append(b.headers, e.headers...)
	return b.headers[start:len(b.headers):len(b.headers)], nil
}
