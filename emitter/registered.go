package emitter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

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
		return fmt.Errorf("the %s schema of topic %s: %w; %s", part, r.need.Topic, err, r.recordRemedy(name.Name, part))
	}
	for i := range r.columns {
		if c := &r.columns[i]; c.field == name.Name {
			return fmt.Errorf("column %s: %w; %s", quoteName(c.name), err, r.fieldRemedy(c.name))
		}
	}
	if r.need.Key && len(name.Path) == 1 { // the only field of a key that is no column
		return fmt.Errorf("the key schema of topic %s: %w; set topic.key.field.name to another name", r.need.Topic, err)
	}
	return fmt.Errorf("the %s schema of topic %s: %w", part, r.need.Topic, err)
}

// remedy is what to set so that names become legal which the modes of a setting help.
func remedy(key string) string {
	return fmt.Sprintf("set %s=%s, which writes _ for each such character, or %s, which writes its code and keeps names apart",
		key, AvroNames, AvroUnicodeNames)
}

// options are how the schema is written.
func (r *registered) options() (o avro.Options, wide bool) {
	a := r.cfg.Value.Avro
	if r.need.Key {
		a = r.cfg.Key.Avro
	}
	return a.Text, a.Wide
}

// recordRemedy is what makes the name of a record legal. The modes look at the first character of the whole name only, so
// that a later part that begins with a digit needs another converter's setting, or another topic: schemas are named after it.
func (r *registered) recordRemedy(name, part string) string {
	const key = "schema.name.adjustment.mode"
	options, wide := r.options()
	legal := func(name string, mode NameMode) bool {
		_, err := options.AppendSchema(nil, &schema.Type{Type: "struct", Name: mode.schemaName(name)})
		return err == nil
	}
	if legal(name, AvroNames) {
		return remedy(key)
	}
	var ways []string
	if !wide && !options.Scrub { // Apicurio's converter, whose ids are wide, has no such setting
		scrubbed := options
		scrubbed.Scrub = true
		if _, err := scrubbed.AppendSchema(nil, &schema.Type{Type: "struct", Name: name}); err == nil {
			ways = append(ways, fmt.Sprintf("set %s.converter.scrub.invalid.names=true, if that is Confluent's converter", part))
		}
	}
	if way := r.topicRemedy(name, legal); way != "" {
		ways = append(ways, way)
	}
	ways = append(ways, "rename what the name is made of")
	return fmt.Sprintf("%s=%s looks at the first character of the whole name only, as Debezium's does, and does not help here: %s",
		key, AvroNames, strings.Join(ways, ", or "))
}

// topicRemedy gives the topic a name whose parts do not begin with digits; "" if that does not help.
func (r *registered) topicRemedy(name string, legal func(string, NameMode) bool) string {
	parts := strings.Split(r.need.Topic, ".")
	pattern, replacement := make([]string, len(parts)), make([]string, len(parts))
	for i, p := range parts {
		pattern[i], replacement[i] = "([^.]*)", fmt.Sprintf("$%d", i+1)
		if p != "" && p[0] >= '0' && p[0] <= '9' {
			pattern[i], replacement[i], parts[i] = "([0-9][^.]*)", "_"+replacement[i], "_"+p
		}
	}
	topic := strings.Join(parts, ".")
	const groups = 9 // more of them are ambiguous in a replacement
	class := r.cfg.naming.Class
	rest := "." + name[strings.LastIndexByte(name, '.')+1:]
	also := ""
	switch {
	case topic == r.need.Topic, len(parts) > groups, strings.Contains(class, "Unicode"): // whose way with characters no other has
		return ""
	case legal(topic+rest, r.cfg.SchemaNames):
	case legal(topic+rest, AvroNames):
		also = fmt.Sprintf(" and schema.name.adjustment.mode=%s", AvroNames)
	default:
		return ""
	}
	if strings.Contains(class, "Regex") {
		return fmt.Sprintf("write another topic.replacement, so that the topic is %s%s", topic, also)
	}
	return fmt.Sprintf("set topic.naming.strategy=io.debezium.schema.%s with topic.regex=%s and topic.replacement=%s%s, "+
		"which makes the topic %s", strings.Replace(class, "TopicNaming", "RegexTopicNaming", 1), strings.Join(pattern, "[.]"), strings.Join(replacement, "."), also, topic)
}

// fieldRemedy is what makes the name of a column legal.
func (r *registered) fieldRemedy(column string) string {
	const key = "field.name.adjustment.mode"
	if options, _ := r.options(); !options.Scrub {
		return remedy(key)
	}
	// What is illegal is scrubbed, so that it is one name made of two.
	return fmt.Sprintf("set %s=%s, which keeps names apart, or leave column %s out (column.exclude.list)", key, AvroUnicodeNames, quoteName(column))
}
