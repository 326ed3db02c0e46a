package emitter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/emitter/internal/producer"
	"github.com/tidemark-cdc/tidemark/offset"
)

// Poison says what becomes of a record that Kafka does not take for what it is, and of a row that cannot be turned into a record:
// it is left out, and a [LeftOut] says so in its place, in the topic of dead letters if there is one. The offset behind it is safe
// when all before it is acknowledged, and the note is.
//
// It belongs to one connector and serves all its deliveries. Its fields are set before and not changed after; its methods are safe
// for concurrent use.
type Poison struct {
	// Topic is that of dead letters (errors.deadletterqueue.topic.name); empty: none. [DeliveryConfig.Topics] is asked before
	// something is written to it.
	Topic string
	// Connector is the connector's name, for notes.
	Connector string
	// ContextHeaders gives notes Kafka Connect's __connect.errors.* headers.
	ContextHeaders bool
	// Text makes JSON of a record's value that is not JSON; nil: all are. It may say nothing.
	Text func(value []byte) []byte
	// Told hears of each record that is left out. It may be called from several goroutines and must not block. Nil: nobody.
	Told func(*LeftOut)

	count atomic.Uint64
}

// LeftOut is a record that is left out. As JSON it is the value of its note in the topic of dead letters.
type LeftOut struct {
	Connector string `json:"connector"`
	Topic     string `json:"topic,omitempty"`    // that the record was meant for; of a row that gave no record none
	Database  string `json:"database,omitempty"` // of the table, as far as it is known
	Table     string `json:"table,omitempty"`
	Size      int    `json:"size,omitempty"` // bytes of the record
	File      string `json:"file"`           // of the event if it is known, else where a restart would begin
	Pos       int64  `json:"pos"`
	Row       int64  `json:"row"` // in its event
	GTID      string `json:"gtid,omitempty"`
	Error     string `json:"error"`

	Key []byte `json:"-"` // nil: null; of a row that gave no record there is none
	Err error  `json:"-"`

	stage string
}

// Count is how many records were left out so far.
func (p *Poison) Count() uint64 { return p.count.Load() }

// Row appends to b what stands for the current row of rows, which cannot be turned into a record for err: a note if there is a
// topic for it, which carries the offset after the row, marked ([Emitter.Mark]), else nothing. It says how many records that are.
func (p *Poison) Row(b *Batch, rows *binlog.Rows, after offset.Offset, err error) (added int) {
	o := &LeftOut{Connector: p.Connector, Error: err.Error(), Err: err, Row: int64(rows.Row), stage: "VALUE_CONVERTER"}
	o.File, o.Pos, o.GTID = rows.Info.File, rows.Info.Pos, rows.Info.GTID.String()
	o.Database, o.Table = rows.Table.Database, rows.Table.Name
	p.tell(o)
	if p.Topic == "" {
		return 0
	}
	note := Record{Topic: p.Topic, Partition: -1, Value: o.value(), Offset: after, note: true}
	if p.ContextHeaders {
		note.Headers = o.headers()
	}
	b.Records = append(b.Records, note)
	return 1
}

// tooLarge makes a note of a record that is too large for the client, in place, and says whether the record still goes somewhere.
func (p *Poison) tooLarge(r *Record, size, most int) {
	o := p.leftOut(tooLarge(r, size, most))
	p.tell(o)
	r.Key, r.Value, r.Headers, r.moved = o.key(), nil, nil, false
	if r.left = p.Topic == ""; r.left {
		return
	}
	r.Topic, r.Partition, r.Value, r.note = p.Topic, -1, o.value(), true
	if p.ContextHeaders {
		r.Headers = o.headers()
	}
}

// refused makes a note of a record that a broker has refused.
func (p *Poison) refused(ctx context.Context, topics Topics, r *producer.Refused) (producer.Note, error) {
	if r.Topic == p.Topic {
		return producer.Note{}, r // of the topic of dead letters itself: there is no other place
	}
	if p.Topic != "" && topics != nil {
		if err := topics.Ensure(ctx, p.Topic); err != nil {
			return producer.Note{}, err
		}
	}
	o := p.leftOut(r)
	p.tell(o)
	if p.Topic == "" {
		return producer.Note{}, nil
	}
	note := producer.Note{Topic: p.Topic, Key: o.key(), Value: o.value(), Headers: producer.NoHeaders}
	if p.ContextHeaders {
		note.Headers = appendHeaders(nil, o.headers())
	}
	return note, nil
}

func (p *Poison) tell(o *LeftOut) {
	p.count.Add(1)
	if p.Told != nil {
		p.Told(o)
	}
}

func (p *Poison) leftOut(r *producer.Refused) *LeftOut {
	o := &LeftOut{Connector: p.Connector, Topic: r.Topic, Size: r.Size, File: r.File, Pos: r.Pos, Error: r.Err.Error(), Key: r.Key, Err: r.Err, stage: "KAFKA_PRODUCE"}
	value := r.Value
	if p.Text != nil && value != nil {
		value = p.Text(value)
	}
	o.locate(value)
	return o
}

// sourceBlock is what an event says of where it is from.
type sourceBlock struct {
	Source *struct {
		Database looseText `json:"db"`
		Table    looseText `json:"table"`
		File     looseText `json:"file"`
		Pos      int64     `json:"pos"`
		Row      int64     `json:"row"`
		GTID     looseText `json:"gtid"`
	} `json:"source"`
}

// looseText is a text, or null, or what Avro's JSON makes of one that is optional: {"string":"…"}.
type looseText string

// UnmarshalJSON takes each of them.
func (t *looseText) UnmarshalJSON(text []byte) error {
	var plain *string
	if json.Unmarshal(text, &plain) == nil {
		if plain != nil {
			*t = looseText(*plain)
		}
		return nil
	}
	var branch map[string]string
	err := json.Unmarshal(text, &branch)
	*t = looseText(branch["string"])
	return err
}

// locate takes over what the value of an event says, which a tombstone, say, does not.
func (o *LeftOut) locate(value []byte) {
	var event struct {
		sourceBlock
		Payload *sourceBlock `json:"payload"`
	}
	if json.Unmarshal(value, &event) != nil {
		return
	}
	source := event.Source
	if source == nil && event.Payload != nil {
		source = event.Payload.Source
	}
	if source == nil {
		return
	}
	o.Database, o.Table, o.Row, o.GTID = string(source.Database), string(source.Table), source.Row, string(source.GTID)
	if source.File != "" {
		o.File, o.Pos = string(source.File), source.Pos
	}
}

// mostOfKey is how long the key of a note may be, and mostOfError the error in it: notes are to be small.
const (
	mostOfKey   = 1 << 10
	mostOfError = 8 << 10
)

// key is that of the note: the record's if it is small.
func (o *LeftOut) key() []byte {
	if len(o.Key) > mostOfKey {
		return nil
	}
	return o.Key
}

func (o *LeftOut) value() []byte {
	short := *o
	short.Error = cut(o.Error, mostOfError)
	text, err := json.Marshal(&short)
	if err != nil { // strings and numbers
		panic(err)
	}
	return text
}

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// headers are those of Kafka Connect's dead letters, without what only consumed records have, and Java: partition, offset and
// stack trace.
func (o *LeftOut) headers() []Header {
	class := "org.apache.kafka.connect.errors.DataException"
	switch {
	case errors.Is(o.Err, kerr.MessageTooLarge), errors.Is(o.Err, kerr.RecordListTooLarge):
		class = "org.apache.kafka.common.errors.RecordTooLargeException"
	case errors.Is(o.Err, kerr.InvalidTimestamp):
		class = "org.apache.kafka.common.errors.InvalidTimestampException"
	case errors.Is(o.Err, kerr.InvalidRecord):
		class = "org.apache.kafka.common.InvalidRecordException"
	}
	const prefix = "__connect.errors."
	var headers []Header
	for _, h := range [...]struct{ name, value string }{
		{"topic", o.Topic},
		{"connector.name", o.Connector},
		{"task.id", "0"},
		{"stage", o.stage},
		{"exception.class.name", class},
		{"exception.message", cut(o.Error, mostOfError)},
	} {
		if h.value != "" {
			headers = append(headers, Header{prefix + h.name, []byte(h.value)})
		}
	}
	return headers
}

// where is a table for an error text, as far as a record's value names one.
func where(value []byte) string {
	var o LeftOut
	if o.locate(value); o.Table == "" {
		return ""
	}
	return fmt.Sprintf(", table %s.%s", o.Database, o.Table)
}
