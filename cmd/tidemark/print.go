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
type printer func(out *bufio.Writer, r *emitter.Record) error

// printValues writes the value of each record as a line: the exact text that Kafka would get, "null" for a tombstone.
func printValues(out *bufio.Writer, r *emitter.Record) error {
	if r.Value == nil {
		out.WriteString("null")
	} else {
		out.Write(r.Value)
	}
	return out.WriteByte('\n')
}

// printRecords writes each record as one JSON object a line: topic, key, value, headers and source offset.
func printRecords(out *bufio.Writer, r *emitter.Record) error {
	var line bytes.Buffer
	line.WriteString(`{"topic":`)
	quote(&line, r.Topic)
	member(&line, "key", r.Key)
	member(&line, "value", r.Value)
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
func member(line *bytes.Buffer, name string, b []byte) {
	switch {
	case b == nil:
		fmt.Fprintf(line, `,"%s":null`, name)
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

// printPretty writes each record for a person: topic and key on one line, the value indented below.
func printPretty(out *bufio.Writer, r *emitter.Record) error {
	fmt.Fprintf(out, "%s %s\n", r.Topic, orNull(r.Key))
	if r.Value == nil {
		_, err := out.WriteString("null (tombstone)\n\n")
		return err
	}
	var text bytes.Buffer
	if err := json.Indent(&text, r.Value, "", "  "); err != nil {
		return fmt.Errorf("the value of %s is not JSON: %w", r.Topic, err)
	}
	text.WriteString("\n\n")
	_, err := out.Write(text.Bytes())
	return err
}

func orNull(b []byte) string {
	if b == nil {
		return "null"
	}
	return string(b)
}
