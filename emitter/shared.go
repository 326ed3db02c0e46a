package emitter

import (
	"bytes"
	"encoding/binary"

	"github.com/tidemark-cdc/tidemark/schema"
)

// shared is what tables have in common. There may be thousands of them, and what is compiled for a table is some kilobytes:
// tables of equal columns, as those of the tenants of one application are, share all of it but their names, and others the
// parts that are the same. Nil shares nothing.
type shared struct {
	rows     map[rowKey]*rowPlan
	segments map[string]*segment // of events and the clock, which have nothing of a table's columns: few
	types    map[plainType]*schema.Type
	values   map[string]*schema.Value // of placeholders
}

func newShared() *shared {
	return &shared{
		rows: make(map[rowKey]*rowPlan), segments: make(map[string]*segment), types: make(map[plainType]*schema.Type),
		values: make(map[string]*schema.Value),
	}
}

// rowKey is what the plan of rows hangs on: the columns, by their address, since versions of tables share them where they are
// equal, and what is set for them.
type rowKey struct {
	columns  *schema.Column
	count    int
	settings string
}

// rowKey says which tables have their plan of rows in common with t. ok is false if t has one of its own.
func (cfg *Config) rowKey(t *schema.Table) (key rowKey, ok bool) {
	_, _, named := cfg.naming.keyField(t.Database, t.Name)
	if cfg.shared == nil || len(t.Columns) == 0 || named { // the name in a key is the table's
		return key, false
	}
	var settings []byte
	for _, i := range keyIndexes(cfg, t) {
		settings = binary.AppendVarint(settings, int64(i))
	}
	if cfg.Columns != nil {
		settings = append(settings, ' ')
		for i := range t.Columns {
			c := byte('-')
			if cfg.includes(t, i) {
				c = '+'
			}
			settings = append(settings, c)
		}
	}
	settings = cfg.Modes.AppendChoices(append(settings, ' '), t)
	return rowKey{&t.Columns[0], len(t.Columns), string(settings)}, true
}

// sweep drops the plans of rows that no table has any more, when they are many.
func (s *shared) sweep(plans map[*schema.Table]*plan) {
	const few = 64
	if len(s.rows) < 2*len(plans)+few {
		return
	}
	clear(s.rows)
	for _, p := range plans {
		if p.shared {
			s.rows[p.rowKey] = p.rowPlan
		}
	}
}

// segment is a segment like s, whose text is rendered once for all programs that have it.
func (s *shared) segment(like *segment) *segment {
	if s == nil {
		return like
	}
	var key []byte
	for _, p := range like.parts {
		if p.literal != nil {
			key = append(binary.AppendUvarint(append(key, 't'), uint64(len(p.literal))), p.literal...)
			continue
		}
		key = append(key, 'f', byte(p.field))
		for _, is := range [...]bool{p.binary, p.optional} {
			if is {
				key = append(key, '+')
			} else {
				key = append(key, '-')
			}
		}
	}
	if found := s.segments[string(key)]; found != nil {
		return found
	}
	s.segments[string(key)] = like
	return like
}

// plainType is a type without default, parameters and members.
type plainType struct {
	typ, name string
	version   int
	optional  bool
}

// typ is a type equal to t.
func (s *shared) typ(t *schema.Type) *schema.Type {
	plain := t.Doc == "" && !t.BlankDoc && t.Default == nil && t.Parameters == nil && t.Fields == nil && t.Items == nil && t.Keys == nil && t.Values == nil
	if s == nil || !plain {
		return t
	}
	key := plainType{t.Type, t.Name, t.Version, t.Optional}
	if s.types[key] == nil {
		s.types[key] = t
	}
	return s.types[key]
}

// value is a value equal to v; nil for null.
func (s *shared) value(v schema.Value) *schema.Value {
	if v.Kind == schema.Null || s == nil {
		if v.Kind == schema.Null {
			return nil
		}
		return &v
	}
	key := string(append(bytes.Clone(v.Bytes), byte(v.Kind)))
	if s.values[key] == nil {
		s.values[key] = &v
	}
	return s.values[key]
}
