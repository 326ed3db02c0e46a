package emitter

import (
	"fmt"

	"github.com/tidemark-cdc/tidemark/schema"
)

// TableSchemas are the Connect schemas of a table's records.
type TableSchemas struct {
	Topic string
	Key   *schema.Type // nil: the records have no key
	Value *schema.Type // the envelope, the same for all changes
}

// TableSchemas gives the schemas of the records of a table that has this definition: those in which [Emitter.Row] writes its
// rows. It needs no row, asks for no ids and changes nothing in e; the result is not to be changed. A default that is left out
// is told of by [schema.Modes.Invalid]. An error says which table and column have no schema, and why: rows of the table would
// fail in the same way.
func (e *Emitter) TableSchemas(def *schema.Definition) (TableSchemas, error) {
	p, err := definedPlan(&e.cfg, def)
	if err != nil {
		return TableSchemas{}, ofTable(def, err)
	}
	s := TableSchemas{Topic: p.topic, Value: p.envelope(&e.cfg, created).typ}
	s.Key, err = p.keyType(&e.cfg)
	return s, ofTable(def, err)
}

// Needed gives the schemas of a table of this definition that a registry has to know before its rows can be written, that of
// the key first: none for a converter to JSON. It asks for no ids, and does not check that Avro takes the schemas, but for
// their names. It changes nothing in e; the result is the caller's. An error is one that rows of the table would give, too.
func (e *Emitter) Needed(def *schema.Definition) ([]SchemaNeeded, error) {
	if e.cfg.Key.Avro == nil && e.cfg.Value.Avro == nil {
		return nil, nil
	}
	quiet := e.cfg
	quiet.Modes.Invalid, quiet.Modes.InvalidValues = nil, nil // rows will tell
	needed, err := needed(&quiet, def)
	return needed, ofTable(def, err)
}

func needed(cfg *Config, def *schema.Definition) ([]SchemaNeeded, error) {
	p, err := definedPlan(cfg, def)
	if err != nil {
		return nil, err
	}
	var all []SchemaNeeded
	add := func(a *Avro, t *schema.Type, key bool, columns []column) error {
		s, err := a.schema(p.topic, t, key, p.name())
		if err != nil {
			return (&registered{cfg: cfg, need: SchemaNeeded{Topic: p.topic, Key: key}, columns: columns}).illegal(err)
		}
		all = append(all, s)
		return nil
	}
	key, err := p.keyType(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.Key.Avro != nil && key != nil {
		if err := add(cfg.Key.Avro, key, true, p.key); err != nil {
			return nil, err
		}
	}
	if cfg.Value.Avro != nil {
		if err := add(cfg.Value.Avro, p.envelope(cfg, created).typ, false, p.value); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func ofTable(def *schema.Definition, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("table %s.%s: %w", def.Database, def.Name, err)
}

// definedPlan is the plan of a table by its definition, as far as schemas go: no record can be written with it.
func definedPlan(cfg *Config, def *schema.Definition) (*plan, error) {
	alone := *cfg
	alone.shared = nil // it belongs to whoever writes rows meanwhile
	cfg = &alone
	t, err := cfg.definedTable(def)
	if err != nil {
		return nil, err
	}
	p := &plan{table: t, rowPlan: &rowPlan{}}
	if p.value, err = valueColumns(cfg, t); err != nil {
		return nil, err
	}
	if p.key, err = keyColumns(cfg, t); err != nil {
		return nil, err
	}
	p.topic, err = cfg.naming.table(t.Database, t.Name)
	return p, err
}

// keyType is the schema of the record key; nil if there is none.
func (p *plan) keyType(cfg *Config) (*schema.Type, error) {
	added, err := p.addedToKey(cfg)
	if err != nil || len(p.key)+len(added) == 0 {
		return nil, err
	}
	return keyShape(cfg.SchemaNames.schemaName(p.topic+".Key"), p.key, after, added).typ, nil
}

// addedToKey are the members that the naming of topics adds to the record key.
func (p *plan) addedToKey(cfg *Config) ([]member, error) {
	name, value, ok := cfg.naming.keyField(p.table.Database, p.table.Name)
	if !ok {
		return nil, nil
	}
	for i := range p.key {
		if p.key[i].field == name {
			return nil, fmt.Errorf("the record key has a column %s, which is also the name of the field that says which table "+
				"a key is from; give that another name with topic.key.field.name", quoteName(p.key[i].name))
		}
	}
	return []member{constant(name, stringType, text(value))}, nil
}

// AppendConnectSchema appends a schema as Kafka Connect's JsonConverter prints it before a payload when it is configured as c
// is: decimal.format says how the defaults of decimals are written. An error means that t is none of [TableSchemas].
func (c *Converter) AppendConnectSchema(dst []byte, t *schema.Type) ([]byte, error) {
	return appendSchema(dst, t, nil, c.NumericDecimals)
}
