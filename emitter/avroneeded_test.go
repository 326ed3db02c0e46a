package emitter

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-cdc/tidemark/binlog"
)

// slowIDs is a registry that gives the id of a schema only when it is asked the third time.
type slowIDs struct {
	testIDs
	asked map[string]int
}

func (r *slowIDs) ID(subject, text string) (int64, bool) {
	if r.asked == nil {
		r.asked = map[string]int{}
	}
	if r.asked[subject+text]++; r.asked[subject+text] < 3 {
		return 0, false
	}
	return r.testIDs.ID(subject, text)
}

// insist calls a method of an emitter until its schemas are known, and looks that nothing has changed before.
func insist(t *testing.T, em *Emitter, b *Batch, call func(*Batch) error) {
	t.Helper()
	for {
		tx := &em.side.transaction
		before := []any{len(b.Records), b.Size(), len(b.headers), tx.id, tx.total, tx.counts.capacity, em.side.lastRow}
		counts := map[string]int64{}
		for _, c := range tx.counts.order {
			counts[c.table] = c.events
		}
		err := call(b)
		var needed *SchemaNeeded
		if !errors.As(err, &needed) {
			must(t, err)
			return
		}
		if needed.Text == "" || needed.Record == "" || !strings.HasPrefix(needed.Subject, needed.Topic+"-") {
			t.Fatalf("got %+v", needed)
		}
		after := []any{len(b.Records), b.Size(), len(b.headers), tx.id, tx.total, tx.counts.capacity, em.side.lastRow}
		if !tx.recounting {
			for _, c := range tx.counts.order {
				counts[c.table] -= c.events
			}
			for table, n := range counts {
				if n != 0 {
					t.Errorf("the count of %s has moved by %d", table, -n)
				}
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("something has changed: %s", diff)
			}
		}
	}
}

// playAvro gives all records of a golden's binlog from start on.
func playAvro(t *testing.T, folder string, em *Emitter, start binlog.Start) (all []Record) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mysql-bin.000001")
	must(t, os.WriteFile(path, gunzip(t, filepath.Join("testdata", "avro", folder+".binlog.gz")), 0o600))
	src, err := binlog.OpenFiles(context.Background(), binlog.Config{
		Captured: func(_, _ string) bool { return true }, Transactions: em.cfg.Transactions, Recount: true,
	}, []string{path}, start)
	must(t, err)
	defer src.Close()
	if start.Offset != nil {
		em.Resume(*start.Offset)
	}
	for {
		ev, err := src.Read(context.Background())
		if errors.Is(err, io.EOF) {
			return all
		}
		must(t, err)
		var b Batch
		switch ev := ev.(type) {
		case *binlog.Begin:
			insist(t, em, &b, func(b *Batch) error { return em.Transaction(b, ev) })
		case *binlog.Rows:
			must(t, em.Begin(ev))
			for ev.Next() {
				insist(t, em, &b, func(b *Batch) error { return em.Row(b, ev) })
			}
			must(t, ev.Err())
		case *binlog.SchemaChange:
			insist(t, em, &b, func(b *Batch) error { return em.SchemaChange(b, ev) })
		case *binlog.Truncate:
			insist(t, em, &b, func(b *Batch) error { return em.Truncate(b, ev) })
		case *binlog.Boundary:
			insist(t, em, &b, func(b *Batch) error { return em.Commit(b, ev) })
			insist(t, em, &b, func(b *Batch) error { return em.Heartbeat(b, ev.Offset) })
		}
		all = append(all, b.Records...)
	}
}

func recordTexts(records []Record) []string {
	texts := make([]string, len(records))
	for i := range records {
		r := &records[i]
		texts[i] = fmt.Sprintf("%s %d %x %x %s %s", r.Topic, r.Partition, r.Key, r.Value, r.Headers, r.Offset)
	}
	return texts
}

func avroEmitter(t *testing.T, ids SchemaIDs, change func(*Config)) *Emitter {
	t.Helper()
	c := Converter{ReplaceNullWithDefault: true, Avro: avroConverter(ids)}
	cfg := Config{
		Prefix: "p", Key: c, Value: c, Tombstones: true, SchemaChanges: true, ExtendedHeaders: true, RunID: "run",
		Clock: func() time.Time { return time.Unix(1795979007, 735048990) },
	}
	if change != nil {
		change(&cfg)
	}
	em, err := New(cfg)
	must(t, err)
	return em
}

// TestSchemasThatCome has every kind of record while none of the schemas has its id yet, from the beginning and from each
// offset on the way: nothing happens before, and then the records are those that they would have been at once.
func TestSchemasThatCome(t *testing.T) {
	for _, folder := range []string{"avro-basics", "avro-tx"} {
		for _, transactions := range []bool{false, true} {
			change := func(cfg *Config) { cfg.Transactions = transactions }
			play := func(start binlog.Start) []Record {
				t.Helper()
				want := playAvro(t, folder, avroEmitter(t, new(testIDs), change), start)
				got := playAvro(t, folder, avroEmitter(t, new(slowIDs), change), start)
				if diff := cmp.Diff(recordTexts(want), recordTexts(got)); diff != "" {
					t.Errorf("%s from %v: %s", folder, start, diff)
				}
				for i := range got {
					for _, b := range [][]byte{got[i].Key, got[i].Value} {
						if b != nil && binary.BigEndian.Uint32(b[1:]) == 0 {
							t.Errorf("%s: a record without the id of its schema", got[i].Topic)
						}
					}
				}
				return want
			}
			all := play(binlog.Start{})
			if len(all) < 20 {
				t.Fatalf("only %d records", len(all))
			}
			for i := 0; i < len(all); i += 3 {
				play(binlog.Start{Offset: &all[i].Offset})
			}
			if !transactions {
				continue
			}
			// Debezium stores one position for all records of a key change: only its count says that the last is missing.
			changes := 0
			for i := 1; i < len(all); i++ {
				r := &all[i]
				if len(r.Headers) == 0 || r.Headers[0].Name != oldKeyHeader {
					continue
				}
				changes++
				o := r.Offset
				o.Extra = slices.Clone(o.Extra)
				for j := range o.Extra {
					if m := &o.Extra[j]; strings.HasPrefix(m.Name, tableCountPrefix) {
						n, err := strconv.Atoi(m.Value)
						must(t, err)
						m.Value = strconv.Itoa(n - 1)
					}
				}
				rest := play(binlog.Start{Offset: &o})
				if len(rest) == 0 || string(rest[0].Key[5:]) != string(r.Key[5:]) || rest[0].Topic != r.Topic {
					t.Errorf("the record that was missing did not come")
				}
			}
			if folder == "avro-basics" && changes == 0 {
				t.Error("no key change")
			}
		}
	}
}
