package it

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
)

// TailRecord is a record as tail --records prints it and as the captures hold it.
type TailRecord struct {
	Topic   string      `json:"topic"`
	Key     *string     `json:"key"`
	Value   *string     `json:"value"`
	Headers [][2]string `json:"headers"`
	// Of records in Avro: the bytes, in base64; Key and Value are text then.
	KeyBytes   []byte `json:"key_b64"`
	ValueBytes []byte `json:"value_b64"`
	// Ours: the text of the source offset. records.jsonl: the number in its partition.
	Offset json.RawMessage `json:"offset"`

	source string // the text of the source offset, ours or Debezium's
	parsed *payloadOf
}

// payloadOf is what the tests look at in the payload of any kind of value.
type payloadOf struct {
	Op     string
	Before json.RawMessage
	After  json.RawMessage
	Source struct {
		Snapshot *string
		Table    *string
		File     string
		Pos      int64
		Row      int
	}
	DDL    *string
	Status string
	ID     string
}

// payload is the payload of the value; the zero one of a tombstone.
func (r *TailRecord) payload(t testing.TB) *payloadOf {
	if r.parsed == nil {
		r.parsed = &payloadOf{}
		if r.Value != nil {
			mustJSON(t, payload([]byte(*r.Value)), r.parsed)
		}
	}
	return r.parsed
}

// keyText is the payload of the key, "-" for null.
func (r *TailRecord) keyText() string {
	if r.Key == nil {
		return "-"
	}
	return string(payload([]byte(*r.Key)))
}

// what names the record by what it is about: topic, kind, key and the place of its event.
func (r *TailRecord) what(t testing.TB) string {
	p := r.payload(t)
	switch {
	case r.Value == nil:
		return fmt.Sprintf("%s tombstone %s", r.Topic, r.keyText())
	case p.Op != "":
		return fmt.Sprintf("%s %s %s %s:%d/%d", r.Topic, p.Op, r.keyText(), p.Source.File, p.Source.Pos, p.Source.Row)
	case p.DDL != nil:
		return fmt.Sprintf("%s ddl %s:%d %.60q", r.Topic, p.Source.File, p.Source.Pos, *p.DDL)
	case p.Status != "":
		return fmt.Sprintf("%s %s %s", r.Topic, p.Status, p.ID)
	default:
		return r.Topic + " " + r.keyText()
	}
}

func (r TailRecord) String() string {
	text := func(s *string) string {
		if s == nil {
			return "null"
		}
		return *s
	}
	return fmt.Sprintf("key %s\nvalue %s\nheaders %v", text(r.Key), text(r.Value), r.Headers)
}

func (r *TailRecord) hasHeader(name string) bool {
	return slices.ContainsFunc(r.Headers, func(h [2]string) bool { return h[0] == name })
}

func unmarshal(text []byte, v any) error { return json.Unmarshal(text, v) }

func mustJSON(t testing.TB, text []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(text, v); err != nil {
		t.Fatalf("%v in %.300s", err, text)
	}
}
