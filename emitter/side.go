package emitter

import (
	"fmt"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// side is what the records beside the data need: schema changes, transactions, heartbeats. Their schemas are the same
// for all, so that each is compiled once.
type side struct {
	schemaChange, begin, end, heartbeat sideRecord

	transaction transaction

	lastRow int // number of the last row in its event, of operations that are not skipped; -1: none has come yet

	// tables are the newest versions by name, for records of TRUNCATE; nil when those are left out.
	tables map[schema.TableName]*schema.Table
	newest *schema.Table // the one put there last; nil when it may be gone
}

// sideRecord is a kind of record whose topic and schemas are known.
type sideRecord struct {
	topic      string
	partition  int32
	key, value *program

	keySchema, valueSchema *registered // nil for formats that need no ids
}

// resolve sees to it that the schemas have their ids.
func (r *sideRecord) resolve() error {
	err := r.keySchema.resolve()
	if err == nil {
		err = r.valueSchema.resolve()
	}
	if err != nil {
		return fmt.Errorf("topic %s: %w", r.topic, err)
	}
	return nil
}

func newSide(cfg *Config) (side, error) {
	s, names := side{}, cfg.naming
	if !cfg.Skip["t"] {
		s.tables = make(map[schema.TableName]*schema.Table)
	}
	compile := func(r *sideRecord, topic string, partition int32, key, value shape) error {
		r.topic, r.partition = topic, partition
		r.keySchema = cfg.Key.register(cfg, topic, key.typ, true)
		r.valueSchema = cfg.Value.register(cfg, topic, value.typ, false)
		var err error
		if r.key, err = cfg.Key.program(&key, r.keySchema); err == nil {
			r.value, err = cfg.Value.program(&value, r.valueSchema)
		}
		if err != nil {
			return fmt.Errorf("the records of topic %s: %w", topic, err)
		}
		return nil
	}
	key, value := schemaChangeShapes(cfg)
	if err := compile(&s.schemaChange, names.schemaChangeTopic(), 0, key, value); err != nil {
		return s, err
	}
	key, value = heartbeatShapes(cfg)
	if err := compile(&s.heartbeat, names.heartbeatTopic(), 0, key, value); err != nil {
		return s, err
	}
	key, value = transactionShapes(beginning)
	if err := compile(&s.begin, names.transactionTopic(), -1, key, value); err != nil {
		return s, err
	}
	key, value = transactionShapes(ending)
	return s, compile(&s.end, names.transactionTopic(), -1, key, value)
}

// program compiles a shape without cells, with its schema or what says which it is before it if that is wanted.
func (c *Converter) program(s *shape, registered *registered) (*program, error) {
	prefix, err := c.prefix(s.typ, registered)
	if err != nil {
		return nil, err
	}
	return c.compile(s, prefix)
}

// startStatement begins the records of a DDL statement, of which Debezium has the time in milliseconds.
func (e *Emitter) startStatement(info binlog.Info) {
	info.TsMicros = floorDiv(info.TsMicros, 1000) * 1000
	e.start(&info)
}

// beside appends a record of a kind whose values stand in their slots. On an error b is as it was before.
func (e *Emitter) beside(b *Batch, kind *sideRecord, o offset.Offset) error {
	e.scratch.Reset()
	size := len(b.mem)
	kind.key.refresh(&e.now)
	kind.value.refresh(&e.now)
	key, err := e.bytes(b, nil, kind.key)
	if err != nil {
		b.mem = b.mem[:size]
		return fmt.Errorf("topic %s: %w", kind.topic, err)
	}
	value, err := e.bytes(b, nil, kind.value)
	if err != nil {
		b.mem = b.mem[:size]
		return fmt.Errorf("topic %s: %w", kind.topic, err)
	}
	r := b.next()
	*r = Record{Topic: kind.topic, Partition: kind.partition, Key: key, Value: value, Offset: o}
	return nil
}

// event begins the rows of an event.
func (s *side) event(ev *binlog.Rows, transactions bool) {
	if s.tables != nil && s.newest != ev.Table {
		if len(s.tables) > planLimit {
			clear(s.tables)
		}
		s.tables[schema.TableName{Database: ev.Table.Database, Table: ev.Table.Name}] = ev.Table
		s.newest = ev.Table
	}
	if transactions {
		s.transaction.current = s.transaction.counts.version(ev.Table)
	}
}

// forget drops what is kept for versions of tables.
func (s *side) forget() {
	clear(s.transaction.counts.versions)
	clear(s.tables)
	s.newest = nil
}

// changed drops the tables that a statement has changed.
func (s *side) changed(changes []schema.Change) {
	s.newest = nil
	for i := range changes {
		c := &changes[i]
		delete(s.tables, schema.TableName{Database: c.Database, Table: c.Table})
		delete(s.tables, schema.TableName{Database: c.PreviousDatabase, Table: c.PreviousTable})
	}
}
