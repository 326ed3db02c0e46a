package emitter

import (
	"bytes"
	"fmt"

	"github.com/tidemark-cdc/tidemark/schema"
)

// plan is everything about one version of a table: its topic and the programs of its records.
type plan struct {
	table *schema.Table
	topic string
	key   []int // columns of the record key; empty: no key

	value     [changes]*program
	newKey    *program // the record key from the after image
	oldKey    *program // … and from the before image; both nil without a key
	newHeader *program // the new key as text for a header
	oldHeader *program
}

// newPlan compiles a table.
func newPlan(cfg *Config, t *schema.Table) (*plan, error) {
	columns, layouts := make([]column, len(t.Columns)), make([]schema.Layout, len(t.Columns))
	for i := range t.Columns {
		typ, decode, err := cfg.Modes.Column(t, i)
		if err != nil {
			return nil, err
		}
		columns[i] = column{name: t.Columns[i].Name, typ: typ, decode: decode}
		layouts[i] = cfg.Modes.Layout(t, i)
	}
	return compilePlan(cfg, t, columns, layouts)
}

// compilePlan compiles a table of the columns given.
func compilePlan(cfg *Config, t *schema.Table, columns []column, layouts []schema.Layout) (*plan, error) {
	p := &plan{table: t, topic: TopicName(cfg.Prefix, t.Database, t.Name), key: t.Key}
	for _, i := range t.Key {
		if i < 0 || i >= len(columns) {
			return nil, fmt.Errorf("the record key names column %d of %d", i, len(columns))
		}
	}
	source := sourceShape(cfg.Connector, cfg.Prefix, t.Database, t.Name)
	var prefix []byte // the same memory for all
	for c := range changes {
		envelope := envelopeShape(p.topic, columns, source, c)
		var err error
		if prefix == nil {
			if prefix, err = cfg.Value.prefix(envelope.typ); err != nil {
				return nil, err
			}
		}
		if p.value[c], err = cfg.Value.compile(&envelope, layouts, prefix); err != nil {
			return nil, err
		}
	}
	if len(t.Key) == 0 {
		return p, nil
	}
	newKey := keyShape(p.topic, columns, t.Key, after)
	oldKey := keyShape(p.topic, columns, t.Key, before)
	prefix, err := cfg.Key.prefix(newKey.typ)
	if err != nil {
		return nil, err
	}
	if p.newKey, err = cfg.Key.compile(&newKey, layouts, prefix); err != nil {
		return nil, err
	}
	if p.oldKey, err = cfg.Key.compile(&oldKey, layouts, prefix); err != nil {
		return nil, err
	}
	header := dialect{header: true, defaults: true, numbers: true}
	if p.newHeader, err = compile(&newKey, layouts, header, nil, ""); err != nil {
		return nil, err
	}
	if p.oldHeader, err = compile(&oldKey, layouts, header, nil, ""); err != nil {
		return nil, err
	}
	return p, nil
}

// sameKeyCells says whether the cells of the key are the same bytes in both images. Different bytes may still be the
// same key, so that the rendered keys decide then.
func (p *plan) sameKeyCells(a, b [][]byte) bool {
	for _, i := range p.key {
		if i >= len(a) || i >= len(b) || (a[i] == nil) != (b[i] == nil) || !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}
