package emitter

import (
	"errors"
	"fmt"

	"github.com/tidemark-cdc/tidemark/schema"
	"github.com/tidemark-cdc/tidemark/schema/avro"
)

// Avro is the configuration of a Connect AvroConverter, Confluent's or Apicurio's. Keys and values are then a byte 0, the
// id of their schema in a registry, big-endian, and Avro's binary encoding. It is not to be changed after [New].
type Avro struct {
	Text avro.Options // how schemas look
	// Subject names the subject of a schema in the registry; record is the full name of the schema's record. It is called
	// once for each schema.
	Subject func(topic, record string) string
	IDs     SchemaIDs
	Wide    bool // the id has eight bytes, as Apicurio's converter has it by itself, instead of four
}

// SchemaIDs knows the ids of registered schemas.
type SchemaIDs interface {
	// ID returns the id that a schema has in a subject; false if it is not known yet. It must not block. It is called for
	// each schema until it is known, by the goroutine that uses the [Emitter].
	ID(subject, text string) (id int64, ok bool)
}

// SchemaNeeded is the error of a method of [Emitter] whose record needs a schema that has no id yet. Nothing is appended
// and nothing has changed: the caller gets the id, which may take long, and calls the method again with the same
// arguments. It may come wrapped: use [errors.As].
type SchemaNeeded struct {
	Subject string
	Text    string // the schema, as it is to be registered
	Topic   string
	Record  string           // full name of the schema's record
	Key     bool             // of the record key; else of the value
	Table   schema.TableName // whose rows need it; zero for records that belong to no table
}

func (e *SchemaNeeded) Error() string {
	part := "value"
	if e.Key {
		part = "key"
	}
	return fmt.Sprintf("the schema %s of the %s of topic %s has no id yet: it is to be registered in the subject %s",
		e.Record, part, e.Topic, e.Subject)
}

// UnusableSchema is the error for a schema that no record can be written with: Avro does not take a name in it, or its id
// does not fit. It is about all rows of the table, so that leaving one out does not help.
type UnusableSchema struct{ error }

// Unwrap returns the cause.
func (u *UnusableSchema) Unwrap() error { return u.error }

// schema makes what a registry has to know of a schema. It does not check that Avro takes it, but for its names: those give
// an [avro.NameError].
func (a *Avro) schema(topic string, t *schema.Type, key bool, table schema.TableName) (SchemaNeeded, error) {
	text, err := a.Text.AppendSchema(nil, t)
	if err != nil {
		return SchemaNeeded{}, err
	}
	s := SchemaNeeded{Text: string(text), Topic: topic, Record: a.Text.RecordName(t), Key: key, Table: table}
	s.Subject = a.Subject(topic, s.Record)
	return s, nil
}

// check refuses what lacks a part; a may be nil.
func (a *Avro) check() error {
	if a != nil && (a.Subject == nil || a.IDs == nil) {
		return errors.New("an Avro converter needs names of subjects and the ids of schemas")
	}
	return nil
}

// prefix is what keys and values begin with. Its id is 0 until it is known.
func (a *Avro) prefix() []byte {
	if a.Wide {
		return make([]byte, 1+8, shortPrefix)
	}
	return make([]byte, 1+4, shortPrefix)
}
