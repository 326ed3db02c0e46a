package emitter

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// Config says how events look. Only Prefix is required. Functions in it are called by the goroutine that uses the
// [Emitter], and once for each column of a table version.
type Config struct {
	Prefix          string           // topic.prefix: begins topics and schema names, and is source.name
	Connector       string           // the connector's type in source.connector, schema names and headers: mysql or mariadb; "": mysql
	RunID           string           // of the header runId; "": a new version 7 UUID
	Key, Value      Converter        // the formats of keys and values
	Header          HeaderConverter  // the format of headers
	Tombstones      bool             // tombstones.on.delete: a delete is followed by a record with a null value
	ExtendedHeaders bool             // extended.headers.enabled: the headers __debezium.context.*
	SchemaChanges   bool             // include.schema.changes: DDL gives records on the topic named by Prefix
	Transactions    bool             // provide.transaction.metadata: BEGIN and END records, and a block in each event
	Modes           schema.Modes     // how columns map to Connect types
	Clock           func() time.Time // the connector's clock, for ts_ms, ts_us and ts_ns; nil: time.Now

	Naming      Naming   // topic.naming.strategy and what belongs to it
	SchemaNames NameMode // schema.name.adjustment.mode
	FieldNames  NameMode // field.name.adjustment.mode

	// Columns says which columns are in the row images of values (column.include.list, column.exclude.list). The record
	// key has its columns in any case. Nil: all.
	Columns func(database, table, column string) bool
	// Keys is message.key.columns, one function for each column pattern: the record key is the columns that the first
	// one takes, in the order of the table, then those of the next. A table of which none takes a column keeps its own
	// key.
	Keys []func(database, table, column string) bool
	// Skip is skipped.operations: c, u, d and t are left out if they are true. It is not to be changed after New.
	Skip map[string]bool
	// SkipUnchanged leaves out updates that change no column that the events have (skip.messages.without.change).
	SkipUnchanged bool
	// Placeholder stands for a string, binary or JSON value that the binlog does not have (unavailable.value.placeholder);
	// "": __debezium_unavailable_value.
	Placeholder string

	naming *naming
	shared *shared // nil: nothing is
}

// defaultPlaceholder is Debezium's default for unavailable.value.placeholder.
const defaultPlaceholder = "__debezium_unavailable_value"

// Converter is the configuration of a Kafka Connect converter: a JsonConverter, or with Avro an AvroConverter.
type Converter struct {
	Schemas bool // schemas.enable: the schema goes before the payload
	// ReplaceNullWithDefault is replace.null.with.default (Connect's default is true): a NULL in a column with a default
	// becomes that. To an AvroConverter it is ignore.default.for.nullables=false.
	ReplaceNullWithDefault bool
	NumericDecimals        bool // decimal.format=NUMERIC: decimals are JSON numbers, not base64 text
	// Avro makes it an AvroConverter, which has neither of Schemas and NumericDecimals. Headers are never in Avro.
	Avro *Avro
}

// prefix is what goes before the payload. registered is what register has made for the schema.
func (c *Converter) prefix(t *schema.Type, registered *registered) ([]byte, error) {
	if registered != nil {
		return registered.prefix, nil
	}
	if !c.Schemas {
		return nil, nil
	}
	prefix, err := appendSchema([]byte(`{"schema":`), t, nil, c.NumericDecimals)
	return append(prefix, `,"payload":`...), err
}

// compile makes the program of a shape whose schema's prefix is given.
func (c *Converter) compile(s *shape, prefix []byte) (*program, error) {
	if c.Avro != nil {
		return c.compileAvro(s, prefix)
	}
	d := dialect{defaults: c.ReplaceNullWithDefault, numbers: c.NumericDecimals}
	if prefix == nil {
		return compile(s, d, nil, "")
	}
	return compile(s, d, prefix, "}")
}

// rows makes the program of what stands behind the prefix, which is the table's, in the keys or values of rows. sh is what
// programs share, and made has operations of others of this converter for the same columns.
func (c *Converter) rows(s *shape, sh *shared, made []op) (*program, error) {
	b := builder{program: program{dialect: dialect{defaults: c.ReplaceNullWithDefault, numbers: c.NumericDecimals}}, shared: sh, made: made}
	suffix := ""
	switch {
	case c.Avro != nil:
		b.dialect = dialect{text: avroBinary, defaults: c.ReplaceNullWithDefault}
	case c.Schemas:
		suffix = "}"
	}
	return b.compile(s, suffix)
}

const (
	// planLimit bounds the plans kept, one for each table; dropped ones are compiled again when they are needed.
	planLimit = 10_000
	// clockRows is how many rows share one reading of the clock.
	clockRows = 16
)

// Emitter turns rows events into the records that Debezium would write for them. It is not safe for concurrent use.
type Emitter struct {
	cfg     Config
	headers []Header // of every record
	plans   map[*schema.Table]*plan
	newest  map[schema.TableName]*schema.Table // the versions that have plans
	plan    *plan                              // of the event begun
	skip    [4]bool                            // by binlog.Op
	now     now
	fresh   int // rows for which the clock need not be read
	scratch schema.Scratch
	run     run
	side    side // the records beside the data
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
	if cfg.Placeholder == "" {
		cfg.Placeholder = defaultPlaceholder
	}
	for op := range cfg.Skip {
		if !strings.Contains("cudt", op) || len(op) != 1 {
			return nil, fmt.Errorf("skipped.operations: %q is not one of c, u, d and t", op)
		}
	}
	for key, mode := range map[string]NameMode{
		"schema.name.adjustment.mode": cfg.SchemaNames, "field.name.adjustment.mode": cfg.FieldNames,
	} {
		if !mode.known() {
			return nil, fmt.Errorf("%s: %q is not one of none, avro and avro_unicode", key, mode)
		}
	}
	if err := errors.Join(cfg.Header.check(), cfg.Key.Avro.check(), cfg.Value.Avro.check()); err != nil {
		return nil, err
	}
	var err error
	if cfg.naming, err = newNaming(cfg.Naming, cfg.Prefix); err != nil {
		return nil, err
	}
	cfg.shared = newShared()
	e := &Emitter{cfg: cfg, plans: make(map[*schema.Table]*plan), newest: make(map[schema.TableName]*schema.Table)}
	for op, letter := range map[binlog.Op]string{binlog.Create: "c", binlog.Update: "u", binlog.Delete: "d"} {
		e.skip[op] = cfg.Skip[letter]
	}
	if cfg.ExtendedHeaders {
		if e.headers, err = contextHeaders(&cfg); err != nil {
			return nil, err
		}
	}
	e.run.scratch = &e.scratch
	e.side, err = newSide(&e.cfg)
	e.side.lastRow = -1
	return e, err
}

// Forget drops what was compiled for tables. It is to be called when the source is opened anew: its tables are other
// values then, and those of before would be kept for nothing.
func (e *Emitter) Forget() {
	clear(e.plans)
	clear(e.newest)
	clear(e.cfg.shared.rows)
	e.plan = nil
	e.side.forget()
}

// Begin prepares for the rows of ev: it compiles ev's table if it has not met this version of it, and renders what is
// the same for all rows. It has to be called once for each event, before [Emitter.Row].
func (e *Emitter) Begin(ev *binlog.Rows) error {
	if err := e.use(ev.Table); err != nil {
		return fmt.Errorf("%s:%d: table %s.%s: %w", ev.Info.File, ev.Info.Pos, ev.Table.Database, ev.Table.Name, err)
	}
	e.side.event(ev, e.cfg.Transactions)
	e.now.begin(&ev.Info)
	e.fresh = 0 // the clock is read when the first row is written: once memory for it has been waited for
	return nil
}

// use makes the plan of a table the current one.
func (e *Emitter) use(t *schema.Table) error {
	if e.plan != nil && e.plan.table == t {
		return nil
	}
	p := e.plans[t]
	if p == nil {
		var err error
		if p, err = newPlan(&e.cfg, t); err != nil {
			return err
		}
		e.replace(t)
		e.plans[t] = p
		e.cfg.shared.sweep(e.plans)
	}
	e.plan = p
	e.now.of(t)
	e.scratch.Of(t)
	return nil
}

// replace makes room for the plan of a version of a table: that of the version before, which may be large, is dropped.
func (e *Emitter) replace(t *schema.Table) {
	name := schema.TableName{Database: t.Database, Table: t.Name}
	if before := e.newest[name]; before != nil {
		delete(e.plans, before)
		delete(e.side.transaction.counts.versions, before)
	} else if len(e.plans) >= planLimit {
		clear(e.plans)
		clear(e.newest)
	}
	e.newest[name] = t
}

// start begins the records of an event that are written at once.
func (e *Emitter) start(info *binlog.Info) {
	e.now.begin(info)
	e.readClock()
}

func (e *Emitter) readClock() {
	e.now.read(e.cfg.Clock())
	e.fresh = clockRows
}

// Row appends the records of ev's current row to b: one for an insert or update; for a delete the change and a
// tombstone; for an update that changes the record key a delete, a tombstone and a create. Only the last carries the
// offset after the row (I3). A row that is left out ([Config.Skip], [Config.SkipUnchanged]) appends nothing: its offset
// after the row is then to be announced as a boundary (I8). Of a row that is only counted ([binlog.Rows.Covered]) it
// appends what the stored offset lacks, mostly nothing, and there is nothing to announce. On an error, which names position,
// table, row and column, b is as it was before. A [SchemaNeeded] is no end: the row is to be tried again.
func (e *Emitter) Row(b *Batch, ev *binlog.Rows) error {
	if e.fresh == 0 || len(b.Records) == 0 {
		e.readClock() // the wait for an empty batch may have been long
	}
	e.fresh--
	e.scratch.Reset()
	records, size, headers := len(b.Records), len(b.mem), len(b.headers)
	e.run.before, e.run.after, e.run.row, e.run.incomplete = ev.Before, ev.After, ev.Row, ev.Incomplete
	covered := ev.Covered()
	if covered && !e.side.transaction.recounting {
		e.side.transaction.recount(ev)
	}
	counted := e.side.transaction.total
	var err error
	if covered {
		err = e.covered(b, ev)
	} else {
		err = e.row(b, ev)
	}
	if err != nil {
		clear(b.Records[records:])
		b.Records, b.mem, b.headers = b.Records[:records], b.mem[:size], b.headers[:headers]
		e.side.transaction.uncount(e.side.transaction.total - counted)
		e.fresh = 0 // it may be long until it is tried again
		return fmt.Errorf("%s:%d: table %s.%s, row %d: %w", ev.Info.File, ev.Info.Pos, ev.Table.Database, ev.Table.Name,
			ev.Row, err)
	}
	if e.cfg.Transactions {
		b.members += e.side.transaction.made
		e.side.transaction.made = 0
	}
	return nil
}

// covered counts a row that the stored offset covers. Of its records it keeps none but the last one of a key change if
// the offset has not counted it: Debezium stores one position for all of them, also before the last is sent.
func (e *Emitter) covered(b *Batch, ev *binlog.Rows) error {
	records := len(b.Records)
	if err := e.row(b, ev); err != nil {
		return err
	}
	kept := records
	if t := &e.side.transaction; t.total > t.stored && len(b.Records) > records {
		b.Records[records] = b.Records[len(b.Records)-1]
		kept++
	}
	clear(b.Records[kept:])
	b.Records = b.Records[:kept]
	return nil
}

func (e *Emitter) row(b *Batch, ev *binlog.Rows) error {
	p := e.plan
	if p == nil || p.ready != ev.Table {
		if err := e.prepare(ev); err != nil {
			return err
		}
	}
	if int(ev.Op) < len(e.skip) && e.skip[ev.Op] {
		return nil
	}
	e.side.lastRow = ev.Row
	switch ev.Op {
	case binlog.Create:
		key, err := e.key(b, newKey)
		if err != nil {
			return err
		}
		return e.last(b, ev, key, created)
	case binlog.Update:
		same, err := e.run.sameCells(p.key, ev.Before, ev.After)
		if err != nil {
			return err
		}
		if same && e.cfg.SkipUnchanged {
			if unchanged, err := e.run.sameCells(p.value, ev.Before, ev.After); unchanged || err != nil {
				return err
			}
		}
		key, err := e.key(b, newKey)
		if err != nil {
			return err
		}
		if !same {
			return e.keyChange(b, ev, key)
		}
		return e.last(b, ev, key, updated)
	case binlog.Delete:
		key, err := e.key(b, oldKey)
		if err != nil {
			return err
		}
		if !e.cfg.Tombstones {
			return e.last(b, ev, key, deleted)
		}
		before := e.before(b, ev)
		r, err := e.record(b, key, deleted)
		if err != nil {
			return err
		}
		r.Offset = before
		r = e.add(b, key, nil)
		ev.PutOffsetAfter(&r.Offset, &b.sides)
		e.mark(&r.Offset)
		return nil
	}
	return fmt.Errorf("an operation of unknown number %d", ev.Op)
}

// keyChange appends a delete under the old key, a tombstone and a create under the new key.
func (e *Emitter) keyChange(b *Batch, ev *binlog.Rows, key []byte) error {
	old, err := e.key(b, oldKey)
	if err != nil {
		return err
	}
	moved, err := e.keyHeaders(b, newKeyHeader, newHeader)
	if err != nil {
		return err
	}
	came, err := e.keyHeaders(b, oldKeyHeader, oldHeader)
	if err != nil {
		return err
	}
	before := e.before(b, ev)
	r, err := e.record(b, old, deleted)
	if err != nil {
		return err
	}
	r.Offset, r.Headers, r.moved = before, moved, true
	if e.cfg.Tombstones {
		r = e.add(b, old, nil)
		r.Offset, r.Headers, r.moved = before, moved, true
	}
	if err := e.last(b, ev, key, created); err != nil {
		return err
	}
	r = &b.Records[len(b.Records)-1]
	r.Headers, r.moved = came, true
	return nil
}

// before is the offset before the current row, for records of b.
func (e *Emitter) before(b *Batch, ev *binlog.Rows) offset.Offset {
	var o offset.Offset
	ev.PutOffsetBefore(&o, &b.sides)
	e.mark(&o)
	return o
}

// last appends the record that ends the row.
func (e *Emitter) last(b *Batch, ev *binlog.Rows, key []byte, c change) error {
	r, err := e.record(b, key, c)
	if err == nil {
		ev.PutOffsetAfter(&r.Offset, &b.sides)
		e.mark(&r.Offset)
	}
	return err
}

// record appends a record with the envelope of the current images; its offset is still to be set.
func (e *Emitter) record(b *Batch, key []byte, c change) (*Record, error) {
	if e.cfg.Transactions {
		e.count()
	}
	plan := e.plan
	p := plan.changes[c]
	if p == nil {
		var err error
		if p, err = plan.compile(&e.cfg, c); err != nil {
			return nil, err
		}
	}
	p.refresh(&e.now)
	value, err := e.bytes(b, plan.prefix, p)
	if err != nil {
		return nil, err
	}
	return e.add(b, key, value), nil
}

// add appends a record, a tombstone if its value is nil; its offset is still to be set.
func (e *Emitter) add(b *Batch, key, value []byte) *Record {
	// Not as one literal: the offset is the caller's, and large.
	r := b.next()
	r.Topic, r.Key, r.Value, r.Headers, r.moved, r.Partition = e.plan.topic, key, value, e.headers, false, -1
	return r
}

// shortPrefix is the room that short prefixes have, since a copy of fixed length is faster.
const shortPrefix = 16

// bytes appends prefix, and what p makes of the current row, to the batch's memory; nil without a program.
func (e *Emitter) bytes(b *Batch, prefix []byte, p *program) ([]byte, error) {
	if p == nil {
		return nil, nil
	}
	start, mem := len(b.mem), b.mem
	if prefix != nil {
		if cap(prefix) == shortPrefix && cap(mem)-start >= shortPrefix {
			*(*[shortPrefix]byte)(mem[start : start+shortPrefix]) = [shortPrefix]byte(prefix[:shortPrefix])
			mem = mem[:start+len(prefix)]
		} else {
			mem = append(mem, prefix...)
		}
	}
	var err error
	if o := p.single; o != nil {
		mem, err = p.appendBinaryCells(mem, o, &e.run)
	} else {
		mem, err = p.append(mem, &e.run)
	}
	b.mem = mem
	return mem[start:len(mem):len(mem)], err
}

// key appends the key of the current row; nil if its table has none.
func (e *Emitter) key(b *Batch, use keyUse) ([]byte, error) {
	plan := e.plan
	p := plan.keys[use]
	if p == nil {
		var err error
		if p, err = plan.keyProgram(&e.cfg, use); err != nil {
			return nil, err
		}
	}
	return e.bytes(b, plan.keyPrefix, p)
}

// keyHeaders makes the headers of one half of a key change: the other key, then those of every record.
func (e *Emitter) keyHeaders(b *Batch, name string, use keyUse) ([]Header, error) {
	p, err := e.plan.keyProgram(&e.cfg, use)
	if err != nil {
		return nil, err
	}
	prefix, err := e.plan.keyHeaderPrefix(&e.cfg)
	if err != nil {
		return nil, err
	}
	value, err := e.bytes(b, prefix, p)
	if err != nil {
		return nil, err
	}
	start := len(b.headers)
	b.headers = append(b.headers, Header{name, value})
	b.headers = append(b.headers, e.headers...)
	return b.headers[start:len(b.headers):len(b.headers)], nil
}
