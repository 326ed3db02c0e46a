package pipeline

import (
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/schema"
)

// A restart behind a note goes on counting the events of its transaction.
func TestNoteIsInTheTransaction(t *testing.T) {
	em, err := emitter.New(emitter.Config{Prefix: "p", Transactions: true})
	if err != nil {
		t.Fatal(err)
	}
	d := &reusing{instant: newInstant()}
	d.tell = func(topic string) {
		if o := d.batch.Records[len(d.batch.Records)-1].Offset; topic == "dead" {
			if id, ok := o.Member("transaction_id"); !ok || id != "u:7" || o.Row != 1 {
				t.Errorf("the note is at %s", o)
			}
			d.tell = nil
		}
	}
	out := Output{Emitter: em, Delivery: d, Poison: &emitter.Poison{Topic: "dead"}}
	if err := out.Event(t.Context(), &binlog.Begin{ID: "u:7", Offset: at(4)}); err != nil {
		t.Fatal(err)
	}
	table := &schema.Table{Database: "d", Name: "t", Columns: []schema.Column{{Name: "j", Type: 245, Meta: 4}}} // a document that is none
	rows, err := binlog.NewRows(binlog.Info{File: "mysql-bin.000001", Pos: 400}, binlog.Create, table, at(4), []byte{0, 2, 0, 0, 0, 0xee, 0xee})
	if err != nil {
		t.Fatal(err)
	}
	if err := out.Event(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	if d.tell != nil {
		t.Error("there is no note")
	}
}

// TestRowLeftOutGoesOn with a note in its place, which carries the offset behind the row.
func TestRowLeftOutGoesOn(t *testing.T) {
	em, err := emitter.New(emitter.Config{Prefix: "p"})
	if err != nil {
		t.Fatal(err)
	}
	table := &schema.Table{Database: "d", Name: "t", Columns: []schema.Column{{Name: "j", Type: 245, Meta: 4}}} // a document that is none
	for _, dead := range []string{"dead", ""} {
		var left []*emitter.LeftOut
		d := &reusing{instant: newInstant()}
		var topics []string
		d.tell = func(topic string) { topics = append(topics, topic) }
		out := Output{Emitter: em, Delivery: d, Poison: &emitter.Poison{Topic: dead, Told: func(o *emitter.LeftOut) { left = append(left, o) }}}
		rows, err := binlog.NewRows(binlog.Info{File: "mysql-bin.000001", Pos: 400}, binlog.Create, table, at(4), []byte{0, 2, 0, 0, 0, 0xee, 0xee})
		if err != nil {
			t.Fatal(err)
		}
		if err := out.Event(t.Context(), rows); err != nil {
			t.Fatalf("%q: %v", dead, err)
		}
		if len(left) != 1 || left[0].Table != "t" || left[0].Pos != 400 {
			t.Errorf("%q: %+v", dead, left)
		}
		if got := strings.Join(topics, " "); got != dead {
			t.Errorf("%q: records for %q", dead, got)
		}
	}
}
