package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/tidemark-cdc/tidemark/emitter"
)

// printer writes records to standard output in one of tail's forms.
type printer struct {
	form       printForm
	key, value *avroText      // nil: text already
	schemas    bool           // of printRecords: schemas in Avro get lines of their own, before their first records
	told       map[int64]bool // schemas that have theirs
}

type printForm uint8

const (
	printValues  printForm = iota // the value of each record as a line
	printRecords                  // one JSON object a line: topic, key, value, headers and source offset
	printPretty                   // for a person: topic and key on one line, the value indented below
)

// print writes a record of the emitter's.
func (p *printer) print(out *bufio.Writer, r *emitter.Record) error {
	var key, value readable
	var err error
	if key, err = p.key.readable(r.Key); err != nil {
		return err
	}
	if value, err = p.value.readable(r.Value); err != nil {
		return err
	}
	switch p.form {
	case printValues:
		return printValue(out, value.text)
	case printPretty:
		return printForPerson(out, r.Topic, key.text, value.text)
	case printRecords:
	}
	if err := p.tell(out, p.key, key); err != nil {
		return err
	}
	if err := p.tell(out, p.value, value); err != nil {
		return err
	}
	return printRecord(out, r, key, value)
}

// tell writes the line of a schema that is met for the first time.
func (p *printer) tell(out *bufio.Writer, from *avroText, r readable) error {
	if !p.schemas || !r.avro || r.text == nil || p.told[r.id] {
		return nil
	}
	if p.told == nil {
		p.told = make(map[int64]bool)
	}
	p.told[r.id] = true
	text, _ := from.client.Text(r.id)
	var line bytes.Buffer
	fmt.Fprintf(&line, `{"schema_id":%d,"schema":`, r.id)
	quote(&line, text)
	line.WriteString("}\n")
	_, err := out.Write(line.Bytes())
	return err
}

// readable is a key or value that is text, or was made text.
type readable struct {
	text []byte // nil: null
	avro bool   // it was Avro, of the schema
	id   int64
}

// readable makes text of data; a nil a stands for text already.
func (a *avroText) readable(data []byte) (readable, error) {
	if a == nil || data == nil {
		return readable{text: data}, nil
	}
	id, text, err := a.read(data)
	return readable{text, true, id}, err
}

// printValue writes the exact text that Kafka would get, "null" for a tombstone.
func printValue(out *bufio.Writer, value []byte) error {
	out.Write(orNull(value))
	return out.WriteByte('\n')
}

// printRecord writes a record as one JSON object. Of Avro it has the text, the exact bytes and the id of the schema.
func printRecord(out *bufio.Writer, r *emitter.Record, key, value readable) error {
	var line bytes.Buffer
	line.WriteString(`{"topic":`)
	quote(&line, r.Topic)
	member(&line, "key", r.Key, key)
	member(&line, "value", r.Value, value)
	line.WriteString(`,"headers":[`)
	for i, h := range r.Headers {
		if i > 0 {
			line.WriteByte(',')
		}
		line.WriteByte('[')
		quote(&line, h.Name)
		line.WriteByte(',')
		quote(&line, string(h.Value))
		line.WriteByte(']')
	}
	line.WriteString(`],"offset":`)
	quote(&line, r.Offset.String())
	line.WriteString("}\n")
	_, err := out.Write(line.Bytes())
	return err
}

// member writes bytes as a string, as base64 under another name when they are not UTF-8, as null when there are none.
func member(line *bytes.Buffer, name string, b []byte, r readable) {
	switch {
	case b == nil:
		fmt.Fprintf(line, `,"%s":null`, name)
	case r.avro:
		fmt.Fprintf(line, `,"%s":`, name)
		quote(line, string(r.text))
		fmt.Fprintf(line, `,"%s_schema_id":%d,"%s_b64":"%s"`, name, r.id, name, base64.StdEncoding.EncodeToString(b))
	case utf8.Valid(b):
		fmt.Fprintf(line, `,"%s":`, name)
		quote(line, string(b))
	default:
		fmt.Fprintf(line, `,"%s_b64":"%s"`, name, base64.StdEncoding.EncodeToString(b))
	}
}

func quote(line *bytes.Buffer, s string) {
	e := json.NewEncoder(line)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string into a buffer cannot fail
	line.Truncate(line.Len() - 1)
}

func printForPerson(out *bufio.Writer, topic string, key, value []byte) error {
	fmt.Fprintf(out, "%s %s\n", topic, orNull(key))
	if value == nil {
		_, err := out.WriteString("null (tombstone)\n\n")
		return err
	}
	var text bytes.Buffer
	if err := json.Indent(&text, value, "", "  "); err != nil {
		return fmt.Errorf("the value of %s is not JSON: %w", topic, err)
	}
	text.WriteString("\n\n")
	_, err := out.Write(text.Bytes())
	return err
}

func orNull(b []byte) []byte {
	if b == nil {
		return []byte("null")
	}
	return b
}
