package emitter

import (
	"fmt"

	"github.com/tidemark-cdc/tidemark/schema"
)

// plan is everything about one version of a table: its topic and the programs of its records.
type plan struct {
	table *schema.Table
	topic string
	key   []column // of the record key; empty: no key, or none of the table's columns
	value []column // of the rows

	changes [changes]*program // of values; nil: not compiled yet
	prefix  []byte            // what values begin with

	newKey    *program // the record key from the after image
	oldKey    *program // … and from the before image; both nil without a key
	newHeader *program // the new key for a header
	oldHeader *program
}

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
	return p, p.compileKey(cfg)
}

func (p *plan) compileKey(cfg *Config) error {
	var added []member
	if name, value, ok := cfg.naming.keyField(p.table.Database, p.table.Name); ok {
		for i := range p.key {
			if p.key[i].field == name {
				return fmt.Errorf("the record key has a column %s, which is also the name of the field that says which table "+
					"a key is from; give that another name with topic.key.field.name", quoteName(p.key[i].name))
			}
		}
		added = []member{constant(name, stringType, text(value))}
	}
	if len(p.key)+len(added) == 0 {
		return nil
	}
	name := cfg.SchemaNames.schemaName(p.topic + ".Key")
	newKey, oldKey := keyShape(name, p.key, after, added), keyShape(name, p.key, before, added)
	prefix, err := cfg.Key.prefix(newKey.typ)
	if err != nil {
		return err
	}
	if p.newKey, err = cfg.Key.compile(&newKey, prefix); err != nil {
		return err
	}
	if p.oldKey, err = cfg.Key.compile(&oldKey, prefix); err != nil {
		return err
	}
	if prefix, err = cfg.Header.prefix(newKey.typ); err != nil {
		return err
	}
	if p.newHeader, err = cfg.Header.compile(&newKey, prefix); err != nil {
		return err
	}
	p.oldHeader, err = cfg.Header.compile(&oldKey, prefix)
	return err
}

// compile makes the program of the value of a change, when it is needed first.
func (p *plan) compile(cfg *Config, c change) (*program, error) {
	row, envelope := cfg.SchemaNames.schemaName(p.topic+".Value"), cfg.SchemaNames.schemaName(p.topic+".Envelope")
	s := envelopeShape(row, envelope, p.value, sourceShape(cfg, p.table.Database, p.table.Name), c)
	if cfg.Transactions {
		s.fill("transaction", slotTransaction)
	}
	if p.prefix == nil {
		var err error
		if p.prefix, err = cfg.Value.prefix(s.typ); err != nil {
			return nil, err
		}
	}
	program, err := cfg.Value.compile(&s, p.prefix)
	p.changes[c] = program
	return program, err
}
