package emitter

import "github.com/tidemark-cdc/tidemark/schema"

// plan is everything about one version of a table: its topic, the schemas of its records and what is compiled for its rows.
type plan struct {
	*rowPlan
	table *schema.Table
	ready *schema.Table // the same, when the schemas of its records have their ids and texts; nil before
	topic string

	keyPrefix, prefix, headerPrefix []byte // what keys, values and keys in headers begin with; nil: nothing, or not needed yet

	keySchema, valueSchema *registered // nil for formats that need no ids; that of values until it is needed, too
}

// rowPlan is what is compiled for the rows of one table, or of all tables of equal columns.
type rowPlan struct {
	rowKey rowKey // if they are more
	shared bool

	key   []column // of the record key; empty: no key, or none of the table's columns
	value []column // of the rows

	keyless bool              // rows have no record key
	changes [changes]*program // of values; nil: not compiled yet
	keys    [keyUses]*program // the same of keys
	quiet   *rowPlan          // the columns without [schema.Modes.Invalid]; nil until they are needed
	bad     []unusableDefault // that the columns have
}

// unusableDefault is what [schema.Modes.Invalid] was told when columns were mapped.
type unusableDefault struct{ column, what string }

// keyUse is what the key of a row is written for.
type keyUse uint8

const (
	newKey    keyUse = iota // the record key from the after image
	oldKey                  // … and from the before image
	newHeader               // the same two for headers
	oldHeader
	keyUses // how many there are
)

// newPlan compiles a table.
func newPlan(cfg *Config, t *schema.Table) (*plan, error) {
	rows, err := cfg.rowPlan(t)
	if err != nil {
		return nil, err
	}
	topic, err := cfg.naming.table(t.Database, t.Name)
	if err != nil {
		return nil, err
	}
	p := &plan{rowPlan: rows, table: t, topic: topic}
	if cfg.Key.Avro == nil && cfg.Value.Avro == nil && !cfg.Value.Schemas {
		p.ready = t
	}
	return p, p.compileKey(cfg)
}

// rowPlan is the plan of a table's rows: that of another table if it is the same.
func (cfg *Config) rowPlan(t *schema.Table) (*rowPlan, error) {
	key, ok := cfg.rowKey(t)
	if ok {
		if p := cfg.shared.rows[key]; p != nil {
			for _, bad := range p.bad {
				if cfg.Modes.Invalid != nil {
					cfg.Modes.Invalid(t.Database, t.Name, bad.column, bad.what)
				}
			}
			return p, nil
		}
	}
	p := &rowPlan{rowKey: key, shared: ok}
	mapping, compiling := *cfg, true
	if tell := cfg.Modes.Invalid; tell != nil {
		mapping.Modes.Invalid = func(database, table, column, what string) {
			if compiling {
				p.bad = append(p.bad, unusableDefault{column, what})
			}
			tell(database, table, column, what)
		}
	}
	var err error
	if p.value, err = valueColumns(&mapping, t); err != nil {
		return nil, err
	}
	if p.key, err = keyColumns(&mapping, t); err != nil {
		return nil, err
	}
	compiling = false
	if ok {
		cfg.shared.rows[key] = p
	}
	return p, nil
}

// compileKey makes what the record key's schema needs, and the program that most rows use.
func (p *plan) compileKey(cfg *Config) error {
	added, err := p.addedToKey(cfg)
	if p.keyless = len(p.key)+len(added) == 0; err != nil || p.keyless {
		return err
	}
	if cfg.Key.Schemas || cfg.Key.Avro != nil {
		key := p.keyShape(cfg, after, added)
		if p.keySchema = cfg.Key.register(cfg, p.topic, key.typ, true); p.keySchema != nil {
			p.keySchema.need.Table, p.keySchema.columns = p.name(), p.key
		}
		if p.keyPrefix, err = cfg.Key.prefix(key.typ, p.keySchema); err != nil {
			return err
		}
	}
	_, err = p.keyProgram(cfg, newKey)
	return err
}

func (p *plan) keyShape(cfg *Config, img image, added []member) shape {
	return keyShape(cfg.SchemaNames.schemaName(p.topic+".Key"), p.key, img, added)
}

// keyProgram is the program of a key; nil if the table has none. It is compiled when it is needed first.
func (p *plan) keyProgram(cfg *Config, use keyUse) (*program, error) {
	if p.keyless || p.keys[use] != nil {
		return p.keys[use], nil
	}
	added, err := p.addedToKey(cfg)
	if err != nil {
		return nil, err
	}
	img := after
	if use == oldKey || use == oldHeader {
		img = before
	}
	key := p.keyShape(cfg, img, added)
	if use == newHeader || use == oldHeader {
		p.keys[use], err = cfg.Header.rows(&key)
	} else {
		p.keys[use], err = cfg.Key.rows(&key, nil, nil)
	}
	return p.keys[use], err
}

// keyHeaderPrefix is what a key in a header begins with.
func (p *plan) keyHeaderPrefix(cfg *Config) ([]byte, error) {
	if p.headerPrefix != nil || p.keyless || cfg.Header.Class != jsonConverter || !cfg.Header.JSON.Schemas {
		return p.headerPrefix, nil
	}
	added, err := p.addedToKey(cfg)
	if err == nil {
		p.headerPrefix, err = cfg.Header.prefix(p.keyShape(cfg, after, added).typ)
	}
	return p.headerPrefix, err
}

// name is the table's.
func (p *plan) name() schema.TableName {
	return schema.TableName{Database: p.table.Database, Table: p.table.Name}
}

// envelope is the shape of the value of a change.
func (p *plan) envelope(cfg *Config, c change) shape {
	row, envelope := cfg.SchemaNames.schemaName(p.topic+".Value"), cfg.SchemaNames.schemaName(p.topic+".Envelope")
	s := envelopeShape(row, envelope, p.value, sourceShape(cfg), c)
	if cfg.Transactions {
		s.fill("transaction", slotTransaction)
	}
	return s
}

// registerValue makes what the schema of values needs.
func (p *plan) registerValue(cfg *Config) {
	if p.valueSchema != nil || cfg.Value.Avro == nil {
		return
	}
	s := p.envelope(cfg, created) // the schema is that of all changes
	p.valueSchema = cfg.Value.register(cfg, p.topic, s.typ, false)
	p.valueSchema.need.Table, p.valueSchema.columns = p.name(), p.value
}

// finish sees to it that values can be written: that their schema has its id, or its text.
func (p *plan) finish(cfg *Config) error {
	p.registerValue(cfg)
	if err := p.valueSchema.resolve(); err != nil || p.prefix != nil || p.valueSchema == nil && !cfg.Value.Schemas {
		return err
	}
	var typ *schema.Type
	if p.valueSchema == nil {
		typ = p.envelope(cfg, created).typ
	}
	var err error
	p.prefix, err = cfg.Value.prefix(typ, p.valueSchema)
	return err
}

// compile makes the program of the value of a change, when it is needed first.
func (p *plan) compile(cfg *Config, c change) (*program, error) {
	s := p.envelope(cfg, c)
	var made []op
	for _, other := range p.changes {
		if other != nil {
			made = append(made, other.ops...)
		}
	}
	program, err := cfg.Value.rows(&s, cfg.shared, made)
	p.changes[c] = program
	return program, err
}
