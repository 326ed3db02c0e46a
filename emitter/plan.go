package emitter

import "github.com/tidemark-cdc/tidemark/schema"

// plan is everything about one version of a table: its topic and the programs of its records.
type plan struct {
	table *schema.Table
	ready *schema.Table // the same, when the schemas of its records have their ids; nil before
	topic string
	key   []column // of the record key; empty: no key, or none of the table's columns
	value []column // of the rows

	changes [changes]*program // of values; nil: not compiled yet
	prefix  []byte            // what values begin with

	keySchema, valueSchema *registered // nil for formats that need no ids; that of values until it is needed, too
	quiet                  *plan       // the columns without [schema.Modes.Invalid]; nil until they are needed

	keyless bool              // rows have no record key
	keys    [keyUses]*program // nil: not compiled yet
}

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
	value, err := valueColumns(cfg, t)
	if err != nil {
		return nil, err
	}
	key, err := keyColumns(cfg, t)
	if err != nil {
		return nil, err
	}
	topic, err := cfg.naming.table(t.Database, t.Name)
	if err != nil {
		return nil, err
	}
	p := &plan{table: t, topic: topic, key: key, value: value}
	if cfg.Key.Avro == nil && cfg.Value.Avro == nil {
		p.ready = t
	}
	return p, p.compileKey(cfg)
}

// compileKey makes what the record key's schema needs, and the program that most rows use.
func (p *plan) compileKey(cfg *Config) error {
	added, err := p.addedToKey(cfg)
	if p.keyless = len(p.key)+len(added) == 0; err != nil || p.keyless {
		return err
	}
	key := keyShape(cfg.SchemaNames.schemaName(p.topic+".Key"), p.key, after, added)
	if p.keySchema = cfg.Key.register(cfg, p.topic, key.typ, true); p.keySchema != nil {
		p.keySchema.need.Table, p.keySchema.columns = p.name(), p.key
	}
	_, err = p.keyProgram(cfg, newKey)
	return err
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
	key := keyShape(cfg.SchemaNames.schemaName(p.topic+".Key"), p.key, img, added)
	if use == newHeader || use == oldHeader {
		prefix, err := cfg.Header.prefix(key.typ)
		if err != nil {
			return nil, err
		}
		p.keys[use], err = cfg.Header.compile(&key, prefix)
		return p.keys[use], err
	}
	prefix, err := cfg.Key.prefix(key.typ, p.keySchema)
	if err != nil {
		return nil, err
	}
	p.keys[use], err = cfg.Key.compile(&key, prefix)
	return p.keys[use], err
}

// name is the table's.
func (p *plan) name() schema.TableName {
	return schema.TableName{Database: p.table.Database, Table: p.table.Name}
}

// envelope is the shape of the value of a change.
func (p *plan) envelope(cfg *Config, c change) shape {
	row, envelope := cfg.SchemaNames.schemaName(p.topic+".Value"), cfg.SchemaNames.schemaName(p.topic+".Envelope")
	s := envelopeShape(row, envelope, p.value, sourceShape(cfg, p.table.Database, p.table.Name), c)
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

// compile makes the program of the value of a change, when it is needed first.
func (p *plan) compile(cfg *Config, c change) (*program, error) {
	s := p.envelope(cfg, c)
	if p.prefix == nil {
		p.registerValue(cfg)
		var err error
		if p.prefix, err = cfg.Value.prefix(s.typ, p.valueSchema); err != nil {
			return nil, err
		}
	}
	program, err := cfg.Value.compile(&s, p.prefix)
	p.changes[c] = program
	return program, err
}
