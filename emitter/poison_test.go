package emitter

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/schema"
)

const deadTopic = "dead"

// told collects what a Poison leaves out.
type told struct {
	mu   sync.Mutex
	list []*LeftOut
}

func (l *told) add(o *LeftOut) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, o)
}

// event is the value of an event with so many bytes of padding.
func event(pos string, padding int) string {
	return `{"payload":{"before":null,"after":{"pad":"` + strings.Repeat("x", padding) +
		`"},"source":{"db":"shop","table":"orders","file":"mysql-bin.000007","pos":` + pos + `,"row":3,"gtid":"u:9"},"op":"c"}}`
}

// limit bounds the records of the topic.
func limit(t *testing.T, c *kfake.Cluster, bytes string) {
	t.Helper()
	must(t, c.DeleteTopic(testTopic))
	must(t, c.CreateTopic(testTopic, 2, map[string]string{"max.message.bytes": bytes}))
}

// TestI1_OversizedRecordIsLeftOut: with a topic of dead letters a record that is too large, for the client or for the broker, leaves
// a note there, without one nothing; the stream goes on, and the offset behind it is safe when the note is there.
func TestI1_OversizedRecordIsLeftOut(t *testing.T) {
	for _, dead := range []string{deadTopic, ""} {
		for _, by := range []string{"client", "broker"} {
			t.Run(by+" "+dead, func(t *testing.T) {
				c := cluster(t)
				must(t, c.CreateTopic(deadTopic, 1, nil))
				var left told
				poison := &Poison{Topic: dead, Connector: "orders", ContextHeaders: true, Told: left.add}
				settings := []string{"max.request.size", "20000"}
				if by == "broker" {
					limit(t, c, "20000")
					settings = []string{"max.request.size", "1000000"}
				}
				d := delivery(t, c, DeliveryConfig{Poison: poison}, settings...)
				add(t, d, keyFor(0, 0), event("100", 10), 1)
				add(t, d, keyFor(0, 1), event("200", 30_000), 2)
				add(t, d, keyFor(0, 2), event("300", 40_000), 3)
				add(t, d, keyFor(0, 0), event("400", 10), 4)
				add(t, d, keyFor(1, 0), event("500", 10), 5)
				flush(t, d)
				wantSafe(t, d, 5)
				if len(left.list) != 2 || poison.Count() != 2 {
					t.Fatalf("%d are left out, %d counted", len(left.list), poison.Count())
				}
				want := LeftOut{Connector: "orders", Topic: testTopic, Database: "shop", Table: "orders", File: "mysql-bin.000007", Pos: 200, Row: 3, GTID: "u:9"}
				got := *left.list[0]
				if got.Size < 30_000 || !errors.Is(got.Err, kerr.MessageTooLarge) || string(got.Key) != string(keyFor(0, 1)) {
					t.Errorf("%+v", got)
				}
				want.Size, want.Error = got.Size, got.Error
				notes := 0
				if dead != "" {
					notes = 2
				}
				written := consumed(t, c, 3+notes, testTopic, deadTopic)
				if a, b := len(written[testTopic][0]), len(written[testTopic][1]); a != 2 || b != 1 {
					t.Errorf("written: %d and %d", a, b)
				}
				if len(written[deadTopic][0]) != notes {
					t.Fatalf("%d notes", len(written[deadTopic][0]))
				}
				if notes == 0 {
					return
				}
				note := written[deadTopic][0][0]
				var value LeftOut
				must(t, json.Unmarshal(note.Value, &value))
				if value.Key, value.Err = nil, nil; value.Error != want.Error || value.Size != want.Size || value.Pos != 200 || value.Table != "orders" ||
					value.Row != 3 || value.GTID != "u:9" || value.Connector != "orders" || value.Topic != testTopic || value.File != "mysql-bin.000007" {
					t.Errorf("%s", note.Value)
				}
				if string(note.Key) != string(keyFor(0, 1)) {
					t.Errorf("key %s", note.Key)
				}
				if got := headerTexts(note); !strings.HasPrefix(got, "[{__connect.errors.topic "+testTopic+"} {__connect.errors.connector.name orders} {__connect.errors.task.id 0} "+
					"{__connect.errors.stage KAFKA_PRODUCE} {__connect.errors.exception.class.name org.apache.kafka.common.errors.RecordTooLargeException} {__connect.errors.exception.message MESSAGE_TOO_LARGE") {
					t.Errorf("headers %s", got)
				}
			})
		}
	}
}

// TestEventsAreNotWrittenAmongNotes: the topic of dead letters has to be one of its own.
func TestEventsAreNotWrittenAmongNotes(t *testing.T) {
	c := cluster(t)
	d := delivery(t, c, DeliveryConfig{Poison: &Poison{Topic: testTopic}})
	add(t, d, keyFor(0, 0), event("100", 10), 1)
	err := d.Deliver(t.Context())
	if err == nil || !strings.Contains(err.Error(), "table shop.orders") || !strings.Contains(err.Error(), "errors.deadletterqueue.topic.name") {
		t.Errorf("%v", err)
	}
	if o, ok := d.Safe(); ok && o.Pos != 0 {
		t.Errorf("safe is %d", o.Pos)
	}
}

// TestI1_OffsetWaitsForTheNote: as long as the topic of dead letters does not take the note, the offset behind the record is not safe.
func TestI1_OffsetWaitsForTheNote(t *testing.T) {
	c := cluster(t)
	must(t, c.CreateTopic(deadTopic, 1, nil))
	must(t, c.MoveTopicPartition(deadTopic, 0, 1))
	d := delivery(t, c, DeliveryConfig{Poison: &Poison{Topic: deadTopic}}, "max.request.size", "20000")
	add(t, d, keyFor(0, 0), "fine", 1)
	flush(t, d)
	release := hold(c, 1)
	defer release()
	add(t, d, keyFor(0, 1), strings.Repeat("x", 30_000), 2)
	add(t, d, keyFor(0, 2), "behind it", 3)
	must(t, d.Deliver(t.Context()))
	if got := consume(t, c, 2); len(got[0]) != 2 { // what comes behind does not wait
		t.Errorf("%d records", len(got[0]))
	}
	if o, _ := d.Safe(); o.Pos != 1 {
		t.Errorf("safe is %d", o.Pos)
	}
	release()
	wantSafe(t, d, 3)
}

// TestLargeKeyIsNotInTheNote, so that the note itself is small.
func TestLargeKeyIsNotInTheNote(t *testing.T) {
	c := cluster(t)
	must(t, c.CreateTopic(deadTopic, 1, nil))
	d := delivery(t, c, DeliveryConfig{Poison: &Poison{Topic: deadTopic}}, "max.request.size", "20000")
	add(t, d, []byte(strings.Repeat("k", 30_000)), "v", 7)
	flush(t, d)
	note := consumed(t, c, 1, deadTopic)[deadTopic][0][0]
	if note.Key != nil || len(note.Value) > 500 || !strings.Contains(string(note.Value), `"pos":7`) {
		t.Errorf("%d bytes of key, %s", len(note.Key), note.Value)
	}
}

// TestRefusalNamesTheTableAndTheSetting of a record that is too large, and how to go on without it.
func TestRefusalNamesTheTableAndTheSetting(t *testing.T) {
	c := cluster(t)
	d := delivery(t, c, DeliveryConfig{}, "max.request.size", "20000")
	add(t, d, keyFor(0, 0), event("200", 30_000), 2)
	err := d.Deliver(t.Context())
	for _, want := range []string{
		"topic " + testTopic + ", table shop.orders, key " + string(keyFor(0, 0)), "offset mysql-bin.000001:2", "max.request.size", "of 20000 bytes",
		"--alter --topic " + testTopic + " --add-config max.message.bytes=1048576", "errors.tolerance=all", "errors.deadletterqueue.topic.name",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}

// missing says that a topic cannot be made.
type missing struct{ topic string }

func (m missing) Ensure(_ context.Context, topic string) error {
	if topic == m.topic {
		return errors.New("it cannot be made")
	}
	return nil
}

// TestNoTopicOfDeadLettersStopsTheStream rather than lose the note.
func TestNoTopicOfDeadLettersStopsTheStream(t *testing.T) {
	for _, by := range []string{"20000", "1000000"} {
		c := cluster(t)
		limit(t, c, "20000")
		d := delivery(t, c, DeliveryConfig{Poison: &Poison{Topic: deadTopic}, Topics: missing{deadTopic}}, "max.request.size", by)
		add(t, d, keyFor(0, 0), "fine", 1)
		add(t, d, keyFor(0, 1), strings.Repeat("x", 30_000), 2)
		ctx, cancel := context.WithCancel(t.Context())
		err := d.Flush(ctx)
		cancel()
		if err == nil || !strings.Contains(err.Error(), "it cannot be made") {
			t.Errorf("%s: %v", by, err)
		}
		if o, _ := d.Safe(); o.Pos > 1 {
			t.Errorf("%s: safe is %d", by, o.Pos)
		}
	}
}

// TestRowThatGivesNoRecordLeavesANote with its place, which carries the offset behind the row.
func TestRowThatGivesNoRecordLeavesANote(t *testing.T) {
	rows := &binlog.Rows{Info: binlog.Info{File: "mysql-bin.000002", Pos: 77, GTID: gtid("0-1-5")}, Table: &schema.Table{Database: "shop", Name: "orders"}, Row: 2, Base: at(70)}
	var left told
	poison := &Poison{Topic: deadTopic, Connector: "c", ContextHeaders: true, Told: left.add}
	var b Batch
	if n := poison.Row(&b, rows, rows.OffsetAfter(), errors.New("no value")); n != 1 || len(b.Records) != 1 {
		t.Fatalf("%d records", n)
	}
	r := b.Records[0]
	if r.Topic != deadTopic || r.Key != nil || r.Offset.Row != 3 || r.Offset.Pos != 70 ||
		string(r.Value) != `{"connector":"c","database":"shop","table":"orders","file":"mysql-bin.000002","pos":77,"row":2,"gtid":"0-1-5","error":"no value"}` {
		t.Errorf("%s at %s", r.Value, r.Offset)
	}
	if len(r.Headers) != 5 || string(r.Headers[2].Value) != "VALUE_CONVERTER" {
		t.Errorf("%s", r.Headers)
	}
	if len(left.list) != 1 {
		t.Errorf("told of %d", len(left.list))
	}
	if n := (&Poison{}).Row(&b, rows, rows.OffsetAfter(), errors.New("no value")); n != 0 || len(b.Records) != 1 {
		t.Errorf("without a topic: %d records", n)
	}
}

// TestLocate finds the place in JSON with and without a schema, and in what Avro's JSON makes of it.
func TestLocate(t *testing.T) {
	for value, want := range map[string]string{
		`{"schema":{},"payload":{"source":{"db":"d","table":"t","file":"f","pos":5,"row":1,"gtid":"g"}}}`:        "d t f 5 1 g",
		`{"source":{"db":"d","table":null,"file":"f","pos":5,"row":1,"gtid":null}}`:                              "d  f 5 1 ",
		`{"source":{"db":"d","table":{"string":"t"},"file":"f","pos":5,"row":1,"gtid":{"string":"g"}},"op":"c"}`: "d t f 5 1 g",
		`{"payload":{"after":{}}}`: "  o 9 0 ", `[1]`: "  o 9 0 ", ``: "  o 9 0 ", `{"source":{"pos":"x"}}`: "  o 9 0 ",
	} {
		o := LeftOut{File: "o", Pos: 9}
		o.locate([]byte(value))
		if got := strings.Join([]string{o.Database, o.Table, o.File, asJSON(o.Pos), asJSON(o.Row), o.GTID}, " "); got != want {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
}

func asJSON(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}
