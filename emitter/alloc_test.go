package emitter

import (
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/offset"
)

// TestRowAllocates nothing in steady state: not for inserts, nor for deletes and key changes.
func TestRowAllocatesNothing(t *testing.T) {
	ev, body := benchEvent(t)
	if got := func() string {
		var b Batch
		encodeEvent(t, benchEmitter(t, Converter{}), &b, ev)
		return string(b.Records[0].Value)
	}(); !strings.Contains(got, benchJSON) {
		t.Fatalf("got %s\nwant %s", got, benchJSON)
	}
	images := benchImage(benchImage(nil, 1), 2)
	update, err := binlog.NewRows(binlog.Info{Thread: -1}, binlog.Update, ev.Table, offset.Offset{}, images)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		ev   *binlog.Rows
		body []byte
	}{"insert": {ev, body}, "key change": {update, images}} {
		for format, converter := range map[string]Converter{
			"json": {Schemas: true}, "avro": {Avro: avroConverter(new(testIDs))},
		} {
			for _, headers := range []string{"", jsonConverter} {
				em := benchEmitter(t, converter)
				em.cfg.Header.Class = headers
				var batch Batch
				if n := testing.AllocsPerRun(100, func() {
					c.ev.Reset(c.body)
					batch.Reset()
					encodeEvent(t, em, &batch, c.ev)
				}); n != 0 {
					t.Errorf("%s in %s, headers by %q: %v allocations an event", name, format, headers, n)
				}
			}
		}
	}
}

// TestEventAllocatesNothing in transactions of one row either.
func TestEventAllocatesNothing(t *testing.T) {
	infos := benchTransactions()
	for _, c := range benchFormats {
		em := benchEmitter(t, c.Converter)
		ev, _ := benchEvent(t)
		body := benchImage(nil, 4711)
		var batch Batch
		i := 0
		if n := testing.AllocsPerRun(len(infos)-1, func() {
			ev.Info = infos[i]
			i++
			ev.Reset(body)
			batch.Reset()
			encodeEvent(t, em, &batch, ev)
		}); n != 0 {
			t.Errorf("in %s: %v allocations an event", c.name, n)
		}
	}
}
