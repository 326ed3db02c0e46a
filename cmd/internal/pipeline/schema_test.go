package pipeline

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/schema"
)

// ids is a registry that knows what it has been told.
type ids map[string]int64

func (m ids) ID(subject, _ string) (int64, bool) { id, ok := m[subject]; return id, ok }

// keeping is a delivery that keeps what it was handed, and writes it to log.
type keeping struct {
	*instant
	batch emitter.Batch
	log   *[]string
}

func (k *keeping) Batch(context.Context) (*emitter.Batch, error) { return &k.batch, nil }
func (k *keeping) Deliver(context.Context) error {
	for i := range k.batch.Records {
		*k.log = append(*k.log, fmt.Sprintf("%s row %d", k.batch.Records[i].Topic, k.batch.Records[i].Offset.Row))
	}
	k.batch.Reset()
	return nil
}

func rowsOf(t *testing.T, table string, n int) *binlog.Rows {
	t.Helper()
	def := &schema.Table{Database: "shop", Name: table, Columns: []schema.Column{{Name: "id", Type: 3}}}
	var body []byte
	for i := range n {
		body = binary.LittleEndian.AppendUint32(append(body, 0), uint32(i))
	}
	rows, err := binlog.NewRows(binlog.Info{File: "mysql-bin.000001", Pos: 400}, binlog.Create, def, at(154), body)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func avroOutput(t *testing.T, known ids, log *[]string) *Output {
	t.Helper()
	em, err := emitter.New(emitter.Config{Prefix: "p", Value: emitter.Converter{Avro: &emitter.Avro{
		Subject: func(topic, _ string) string { return topic + "-value" }, IDs: known,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return &Output{Emitter: em, Delivery: &keeping{instant: newInstant(), log: log}}
}

// The first record that needs a schema waits for it, with all behind it; what lies before it has been delivered by then, and no
// row is lost or repeated.
func TestSchemaIsWaitedFor(t *testing.T) {
	known, log := ids{"p.shop.a-value": 1}, []string{}
	out := avroOutput(t, known, &log)
	out.Schema = func(_ context.Context, needed *emitter.SchemaNeeded) error {
		log = append(log, "asked for "+needed.Subject+" of "+needed.Table.Database+"."+needed.Table.Table)
		known[needed.Subject] = 2
		return nil
	}
	for _, ev := range []binlog.Event{rowsOf(t, "a", 2), rowsOf(t, "b", 2), rowsOf(t, "a", 1)} {
		if err := out.Event(t.Context(), ev); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"p.shop.a row 1", "p.shop.a row 2",
		"asked for p.shop.b-value of shop.b", "p.shop.b row 1", "p.shop.b row 2",
		"p.shop.a row 1",
	}
	if !slices.Equal(log, want) {
		t.Errorf("\n got %q\nwant %q", log, want)
	}
}

// A refused schema ends the stream before its first record, also where rows that cannot be written are to be skipped.
func TestRefusedSchemaStops(t *testing.T) {
	log := []string{}
	out := avroOutput(t, ids{"p.shop.a-value": 1}, &log)
	refused := errors.New("refused")
	out.Schema = func(context.Context, *emitter.SchemaNeeded) error { return refused }
	out.SkipRows = func(err error) { t.Errorf("skipped: %v", err) }
	if err := out.Event(t.Context(), rowsOf(t, "a", 1)); err != nil {
		t.Fatal(err)
	}
	if err := out.Event(t.Context(), rowsOf(t, "b", 1)); !errors.Is(err, refused) || err.Error() != "mysql-bin.000001:400: table shop.b, row 0: refused" {
		t.Errorf("it ends with %v", err)
	}
	if want := []string{"p.shop.a row 1"}; !slices.Equal(log, want) {
		t.Errorf("got %q, want %q", log, want)
	}
}

// A schema that cannot be used ends the stream as a refused one does: every row of the table would be left out.
func TestUnusableSchemaStops(t *testing.T) {
	for table, known := range map[string]ids{
		"a-b":  {},                             // no name for Avro
		"wide": {"p.shop.wide-value": 1 << 40}, // no id of four bytes
	} {
		log := []string{}
		out := avroOutput(t, known, &log)
		out.Schema = func(context.Context, *emitter.SchemaNeeded) error {
			t.Errorf("%s: asked for", table)
			return errors.New("asked for")
		}
		out.SkipRows = func(err error) { t.Errorf("%s: skipped: %v", table, err) }
		if err := out.Event(t.Context(), rowsOf(t, table, 2)); err == nil || len(log) > 0 {
			t.Errorf("%s: %v, delivered %q", table, err, log)
		}
	}
}

// A stop ends the wait for a schema; nothing of the row is delivered.
func TestWaitEndsWithTheStream(t *testing.T) {
	log := []string{}
	out := avroOutput(t, ids{}, &log)
	ctx, cancel := context.WithCancel(t.Context())
	out.Schema = func(ctx context.Context, _ *emitter.SchemaNeeded) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}
	if err := out.Event(ctx, rowsOf(t, "a", 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
	if len(log) > 0 {
		t.Errorf("delivered: %q", log)
	}
}
