package emitter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/tidemark-cdc/tidemark/schema"
	"github.com/tidemark-cdc/tidemark/schema/avro"
)

// registered is a schema that needs an id of a registry before it is used. Nil is that of a format that needs none.
type registered struct {
	cfg     *Config
	avro    *Avro
	prefix  []byte // of keys or values; the programs have it, too
	known   bool   // the id is in prefix
	need    SchemaNeeded
	typ     *schema.Type // nil when it is not needed any more
	columns []column     // that are in the schema
}

// register makes what a converter needs for the schema of the keys or values of a topic; nil if it needs nothing.
func (c *Converter) register(cfg *Config, topic string, t *schema.Type, key bool) *registered {
	if c.Avro == nil {
		return nil
	}
	return &registered{
		cfg: cfg, avro: c.Avro, prefix: c.Avro.prefix(), typ: t, need: SchemaNeeded{Topic: topic, Key: key},
	}
}

// resolve sees to it that the id is in the prefix. It has no effect but that: a [SchemaNeeded] says that the id is not
// known yet, an [UnusableSchema] that it never helps.
func (r *registered) resolve() error {
	if r == nil || r.known {
		return nil
	}
	err := r.find()
	if _, needed := err.(*SchemaNeeded); err == nil || needed {
		return err
	}
	return &UnusableSchema{err}
}

func (r *registered) find() error {
	if r.need.Text == "" {
		need, err := r.avro.schema(r.need.Topic, r.typ, r.need.Key, r.need.Table)
		if err != nil {
			return r.illegal(err)
		}
		if err := avro.Check(need.Text); err != nil {
			return fmt.Errorf("the schema %s of topic %s is none that Avro takes: %w", need.Record, need.Topic, err)
		}
		r.need, r.typ = need, nil
	}
	id, ok := r.avro.IDs.ID(r.need.Subject, r.need.Text)
	if !ok {
		need := r.need
		return &need
	}
	switch {
	case id < 0:
		return fmt.Errorf("the registry's id of the schema of subject %s is %d, which is none", r.need.Subject, id)
	case r.avro.Wide:
		binary.BigEndian.PutUint64(r.prefix[1:], uint64(id))
	case id > math.MaxInt32: // consumers have it in a Java int
		return fmt.Errorf("the registry's id of the schema of subject %s is %d, which does not fit into the four bytes, a Java int, that "+
			"Confluent's format has for it", r.need.Subject, id)
	default:
		binary.BigEndian.PutUint32(r.prefix[1:], uint32(id))
	}
	r.known, r.need = true, SchemaNeeded{} // the text may be large
	return nil
}

// illegal says of a name that Avro does not take where it is from and what to set.
func (r *registered) illegal(err error) error {
	var name *avro.NameError
	if !errors.As(err, &name) {
		return err
	}
	part := "value"
	if r.need.Key {
		part = "key"
	}
	if !name.Field {
		return fmt.Errorf("the %s schema of topic %s: %w; %s", part, r.need.Topic, err,
			remedy("schema.name.adjustment.mode", r.cfg.SchemaNames, part))
	}
	for i := range r.columns {
		if c := &r.columns[i]; c.field == name.Name {
			return fmt.Errorf("column %s: %w; %s", quoteName(c.name), err,
				remedy("field.name.adjustment.mode", r.cfg.FieldNames, part))
		}
	}
	if r.need.Key && len(name.Path) == 1 { // the only field of a key that is no column
		return fmt.Errorf("the key schema of topic %s: %w; set topic.key.field.name to another name", r.need.Topic, err)
	}
	return fmt.Errorf("the %s schema of topic %s: %w", part, r.need.Topic, err)
}

// remedy is what to set so that a name becomes legal.
func remedy(key string, mode NameMode, part string) string {
	if mode == AvroNames || mode == AvroUnicodeNames {
		return fmt.Sprintf("%s=%s looks at the first character of the whole name only, as Debezium's does: set "+
			"%s.converter.scrub.invalid.names=true, or rename what the name is made of", key, mode, part)
	}
	return fmt.Sprintf("set %s=%s, which writes _ for each such character, or %s, which writes its code and keeps names apart",
		key, AvroNames, AvroUnicodeNames)
}
