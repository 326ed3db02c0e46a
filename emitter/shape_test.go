package emitter

import (
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/schema"
)

// TestGoldenShapes reads the binlogs of Debezium runs and compares every data record of every topic, in its order, byte
// for byte: keys, values, headers. The envelope's own clock and runId are Debezium's.
func TestGoldenShapes(t *testing.T) {
	inventory := func(database, _ string) bool { return database == "inventory" }
	every := func(database, _ string) bool {
		return database != "mysql" && database != "sys"
	}
	for _, c := range []struct {
		folder   string
		from     int64 // the position of the snapshot
		captured func(database, table string) bool
		cfg      Config
		records  int
	}{
		{"topics-keys", 4175, every, Config{
			Keys:            columnPatterns(`inventory.orders.customer_id`, `inventory.orders.nullable_key`, `(.*).order_log.msg`),
			ExtendedHeaders: true,
		}, 23},
		{"topics-masks", 4175, every, Config{
			Columns: func(database, table, column string) bool {
				return !columnPattern(`inventory.customers.age`)(database, table, column)
			},
			Modes: schema.Modes{Masks: []schema.Mask{
				{Match: columnPattern(`inventory.customers.notes|inventory.order_log.msg`), Kind: schema.MaskTruncate, Length: 5},
				{Match: columnPattern(`inventory.customers.secret`), Kind: schema.MaskFixed},
				{Match: columnPattern(`inventory.customers.name`), Kind: schema.MaskFixed, Length: 12},
				{Match: columnPattern(`inventory.customers.email`), Kind: schema.MaskHash, Algorithm: "SHA-256", Salt: "CzQMA0cB5K"},
				{Match: columnPattern(`inventory.customers.phone`), Kind: schema.MaskHash, Algorithm: "SHA-256", Salt: "CzQMA0cB5K", V2: true},
			}},
			Skip: map[string]bool{"t": true}, Tombstones: true, ExtendedHeaders: true,
		}, 23},
		{"topics-filters", 4173, func(database, table string) bool {
			return database == "inventory" && (strings.HasPrefix(table, "orders") || table == "customers" || table == "sentinel")
		}, Config{
			Columns: columnPattern(`inventory.customers.(id|name)|inventory.orders.*|inventory.sentinel.id`),
			Naming:  Naming{Delimiter: "_"},
			Skip:    map[string]bool{"u": true, "d": true}, SkipUnchanged: true, Tombstones: true, ExtendedHeaders: true,
		}, 9},
		{"topics-exclude", 4174, func(database, table string) bool {
			return database == "inventory" && table != "hidden" && table != "order_log"
		}, Config{
			Columns: func(database, table, column string) bool {
				return !columnPattern(`inventory.customers.(age|secret)`)(database, table, column)
			},
			Skip: map[string]bool{"t": true}, SkipUnchanged: true, Tombstones: true, Transactions: true,
		}, 19},
		{"names", 5151, every, Config{Skip: map[string]bool{"t": true}, Tombstones: true, ExtendedHeaders: true}, 17},
		{"names-avro", 5139, every, Config{
			SchemaNames: AvroNames, FieldNames: AvroNames, Skip: map[string]bool{"t": true}, Tombstones: true, ExtendedHeaders: true,
		}, 17},
		{"basics-query", 6000, inventory, Config{Skip: map[string]bool{"t": true}, Tombstones: true, ExtendedHeaders: true}, 106},
	} {
		t.Run(c.folder, func(t *testing.T) {
			golden := readGolden(t, "shape/"+c.folder+".jsonl.gz")
			if len(golden) != c.records {
				t.Fatalf("%d records, want %d", len(golden), c.records)
			}
			want := map[string][]goldenRecord{}
			for _, r := range golden {
				want[r.Topic] = append(want[r.Topic], r)
			}
			src, err := binlog.OpenFiles(context.Background(), binlog.Config{
				Captured: c.captured, IncludeQuery: c.folder == "basics-query", Transactions: c.cfg.Transactions,
			}, []string{unzip(t, "shape/"+c.folder+".binlog.gz", "mysql-bin.000001")}, binlog.Start{File: "mysql-bin.000001", Pos: c.from})
			must(t, err)
			defer src.Close()
			c.cfg.Prefix = c.folder
			c.cfg.Key = Converter{Schemas: true, ReplaceNullWithDefault: true}
			c.cfg.Value = c.cfg.Key
			if c.cfg.ExtendedHeaders {
				h := golden[0].Headers
				c.cfg.RunID = h[len(h)-1][1]
			}
			for _, r := range recordsOf(t, src, c.cfg) {
				left := want[r.Topic]
				if len(left) == 0 {
					t.Fatalf("a record too many on %s: %s", r.Topic, r.Value)
				}
				compareGolden(t, left[0], r)
				want[r.Topic] = left[1:]
			}
			for topic, left := range want {
				if len(left) > 0 {
					t.Errorf("%d records are missing on %s", len(left), topic)
				}
			}
		})
	}
}

// recordsOf are the data records of a source, deep copies.
func recordsOf(t *testing.T, src binlog.Source, cfg Config) (all []Record) {
	t.Helper()
	cfg.Clock = func() time.Time { return time.Unix(1795979007, 735048990) }
	em, err := New(cfg)
	must(t, err)
	for {
		ev, err := src.Read(context.Background())
		if err == io.EOF {
			return all
		}
		must(t, err)
		var batch, side Batch
		switch ev := ev.(type) {
		case *binlog.Rows:
			must(t, em.Begin(ev))
			for ev.Next() {
				must(t, em.Row(&batch, ev))
			}
			must(t, ev.Err())
		case *binlog.Truncate:
			must(t, em.Truncate(&batch, ev))
		case *binlog.Begin:
			must(t, em.Transaction(&side, ev))
		case *binlog.Boundary:
			must(t, em.Commit(&side, ev))
		}
		all = append(all, batch.Records...)
	}
}

// unzip puts a compressed file of testdata into a directory of its own and returns its path.
func unzip(t *testing.T, file, name string) string {
	t.Helper()
	f, err := os.Open("testdata/" + file)
	must(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	must(t, err)
	path := filepath.Join(t.TempDir(), name)
	out, err := os.Create(path)
	must(t, err)
	_, err = io.Copy(out, z)
	must(t, err)
	must(t, out.Close())
	return path
}
