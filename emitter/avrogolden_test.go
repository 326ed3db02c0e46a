package emitter

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/schema"
	"github.com/tidemark-cdc/tidemark/schema/avro"
)

// avroGolden is a run of Debezium with Confluent's AvroConverter: what it registered, and the records of each topic from
// the stream. testdata/avro has its binlog.
type avroGolden struct {
	subjects map[[2]string]int64 // by subject and text
	codecs   map[int64]*avro.Codec
	topics   map[string][]avroRecord
	file     string // where the stream begins
	pos      int64
	asked    map[[2]string]bool
}

type avroRecord struct {
	Topic string
	Key   *string `json:"key_b64"`
	Value *string `json:"value_b64"`
}

func gunzip(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	must(t, err)
	b, err := io.ReadAll(z)
	must(t, err)
	return b
}

func readAvroGolden(t *testing.T, folder string) *avroGolden {
	t.Helper()
	g := &avroGolden{
		subjects: map[[2]string]int64{}, codecs: map[int64]*avro.Codec{}, topics: map[string][]avroRecord{}, asked: map[[2]string]bool{},
	}
	captured := filepath.Join("..", "schema", "avro", "testdata", folder)
	var subjects []struct {
		Subject, Schema string
		ID              int64
	}
	must(t, json.Unmarshal(gunzip(t, captured+"-subjects.json.gz"), &subjects))
	for _, s := range subjects {
		g.subjects[[2]string{s.Subject, s.Schema}] = s.ID
		codec, err := avro.NewCodec(s.Schema)
		must(t, err)
		g.codecs[s.ID] = codec
	}
	lines := bufio.NewScanner(bytes.NewReader(gunzip(t, captured+"-records.jsonl.gz")))
	lines.Buffer(nil, 1<<20)
	tombstone := false // belongs to a record of the stream
	for lines.Scan() {
		var r avroRecord
		must(t, json.Unmarshal(lines.Bytes(), &r))
		if r.Value == nil {
			if tombstone {
				g.topics[r.Topic] = append(g.topics[r.Topic], r)
			}
			continue
		}
		tombstone = true
		if source, ok := g.native(t, unbase64(t, r.Value))["source"].(map[string]any); ok {
			if snapshot, _ := source["snapshot"].(map[string]any)["string"].(string); snapshot != "false" {
				tombstone, g.file, g.pos = false, source["file"].(string), source["pos"].(int64)
			}
		}
		if tombstone {
			g.topics[r.Topic] = append(g.topics[r.Topic], r)
		}
	}
	must(t, lines.Err())
	return g
}

func unbase64(t *testing.T, s *string) []byte {
	t.Helper()
	if s == nil {
		return nil
	}
	b, err := base64.StdEncoding.DecodeString(*s)
	must(t, err)
	return b
}

func (g *avroGolden) codec(b []byte) *avro.Codec {
	return g.codecs[int64(binary.BigEndian.Uint32(b[1:]))]
}

func (g *avroGolden) native(t *testing.T, b []byte) map[string]any {
	t.Helper()
	v, err := g.codec(b).Native(b[5:])
	must(t, err)
	return v.(map[string]any)
}

// ID is that of the golden's registry: only what it has is known.
func (g *avroGolden) ID(subject, text string) (int64, bool) {
	g.asked[[2]string{subject, text}] = true
	id, ok := g.subjects[[2]string{subject, text}]
	return id, ok
}

// next takes the next record of a topic.
func (g *avroGolden) next(t *testing.T, topic string) avroRecord {
	t.Helper()
	if len(g.topics[topic]) == 0 {
		t.Fatalf("topic %s has no more records", topic)
	}
	r := g.topics[topic][0]
	g.topics[topic] = g.topics[topic][1:]
	return r
}

// clockBytes are the members at the end of an envelope.
func clockBytes(t time.Time) (b []byte) {
	n := now{time: t}
	for _, f := range []field{envelopeTsMs, envelopeTsUs, envelopeTsNs} {
		b = appendBinaryField(b, f, true, &n)
	}
	return b
}

// replayAvro reads the golden's binlog again and gives each record that is written, in order. It ends at the end, or with
// the error of the emitter.
func replayAvro(t *testing.T, g *avroGolden, folder string, em *Emitter, each func(*Record)) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), g.file)
	must(t, os.WriteFile(path, gunzip(t, filepath.Join("testdata", "avro", folder+".binlog.gz")), 0o600))
	src, err := binlog.OpenFiles(context.Background(), binlog.Config{
		Captured: func(_, _ string) bool { return true }, Transactions: em.cfg.Transactions, IncludeQuery: true,
	}, []string{path}, binlog.Start{File: g.file, Pos: g.pos})
	must(t, err)
	defer src.Close()
	for {
		ev, err := src.Read(context.Background())
		if errors.Is(err, io.EOF) {
			return nil
		}
		must(t, err)
		var b Batch
		switch ev := ev.(type) {
		case *binlog.Begin:
			err = em.Transaction(&b, ev)
		case *binlog.Rows:
			must(t, em.Begin(ev))
			for err == nil && ev.Next() {
				err = em.Row(&b, ev)
			}
			must(t, ev.Err())
		case *binlog.SchemaChange:
			err = em.SchemaChange(&b, ev)
		case *binlog.Truncate:
			err = em.Truncate(&b, ev)
		case *binlog.Boundary:
			err = em.Commit(&b, ev)
		}
		if err != nil {
			return err
		}
		for i := range b.Records {
			each(&b.Records[i])
		}
	}
}

// avroDifferences are values in which Debezium is wrong, in Avro's JSON encoding: by topic and number of the record.
var avroDifferences = map[string]map[int][2]string{
	"avrotypes.inventory.t_int": {
		2: {`"y":{"int":1900},"y4":{"int":1900}`, `"y":{"int":0},"y4":{"int":0}`}, // YEAR 0
		5: {`"y":{"int":1900}`, `"y":{"int":0}`},
	},
	"avrotypes.inventory.t_time":    {2: {`"y":{"int":1900}`, `"y":{"int":0}`}},
	"avrotypes.inventory.t_time_nn": {0: {`"y":1900`, `"y":0`}},
	"avrotypes.inventory.t_enum": {
		0: {`"e2":{"string":"x\\,y"}`, `"e2":{"string":"x,y"}`}, // labels with escapes
		4: {`"e2":{"string":"back\\\\slash"}`, `"e2":{"string":"back\\slash"}`},
		5: {`"e2":{"string":"é?"}`, "\"e2\":{\"string\":\"é\U0001F600\"}"},
	},
	"avrotypes.inventory.t_json": {7: {`\"negtime\":\"101:0-1:0-1\"`, `\"negtime\":\"-100:00:01\"`}},
}

// TestGoldenAvro replays whole runs: every schema has the text, and by that the id, that Debezium's had, and every record
// its bytes, but for the connector's clock, which is put in.
func TestGoldenAvro(t *testing.T) {
	for _, c := range []struct {
		folder  string
		cfg     Config
		records int
		refused string // the subject whose schema the registry did not take
	}{
		{folder: "avro-basics", cfg: Config{Prefix: "avrobasics"}, records: 24},
		{folder: "avro-types", cfg: Config{Prefix: "avrotypes"}, records: 89},
		{folder: "avro-types-modes", cfg: Config{Prefix: "avrotypesmodes", Modes: schema.Modes{
			Time: schema.TimeConnect, UnsignedBigint: schema.UnsignedPrecise, Comments: true, Binary: schema.BinaryHex,
			SourceColumn: func(_, _, _ string) bool { return true },
		}}, records: 6},
		{folder: "avro-names", cfg: Config{Prefix: "avro-names", SchemaNames: AvroNames, FieldNames: AvroNames}, records: 9},
		{folder: "avro-names-unicode", cfg: Config{Prefix: "avro-uni", SchemaNames: AvroUnicodeNames, FieldNames: AvroUnicodeNames}, records: 9},
		{folder: "avro-evolution", cfg: Config{Prefix: "avroevo"}, records: 23},
		{folder: "avro-evolution-incompatible", cfg: Config{Prefix: "avroinc"}, records: 2, refused: "avroinc.inventory.evo-value"},
		{folder: "avro-tx", cfg: Config{Prefix: "avrotx", Transactions: true}, records: 18},
	} {
		t.Run(c.folder, func(t *testing.T) {
			g := readAvroGolden(t, c.folder)
			subject := func(part string) func(topic, record string) string {
				return func(topic, _ string) string { return topic + part }
			}
			c.cfg.Key = Converter{ReplaceNullWithDefault: true, Avro: &Avro{IDs: g, Subject: subject("-key")}}
			c.cfg.Value = Converter{ReplaceNullWithDefault: true, Avro: &Avro{IDs: g, Subject: subject("-value")}}
			c.cfg.Skip = map[string]bool{"t": true}
			c.cfg.SchemaChanges, c.cfg.Tombstones = true, c.folder != "avro-tx"
			var now time.Time
			c.cfg.Clock = func() time.Time {
				// Schema changes have their clock in the middle: it is that of the record to come. All others have it at the end.
				if rest := g.topics[c.cfg.Prefix]; len(rest) > 0 {
					now = time.UnixMilli(g.native(t, unbase64(t, rest[0].Value))["ts_ms"].(int64))
				}
				return now
			}
			em, err := New(c.cfg)
			must(t, err)
			records, number := 0, map[string]int{}
			err = replayAvro(t, g, c.folder, em, func(r *Record) {
				want := g.next(t, r.Topic)
				g.compare(t, want, r, now, avroDifferences[r.Topic][number[r.Topic]])
				number[r.Topic]++
				records++
			})
			var needed *SchemaNeeded
			switch {
			case c.refused == "":
				must(t, err)
			case !errors.As(err, &needed) || needed.Subject != c.refused || !strings.Contains(needed.Text, `{"name":"e","type":"int"}`):
				t.Fatalf("got %v, want that the schema of %s is needed", err, c.refused)
			}
			for topic, rest := range g.topics {
				if len(rest) > 0 && !strings.HasPrefix(topic, "__debezium-heartbeat") {
					t.Errorf("topic %s has %d records more", topic, len(rest))
				}
			}
			if records != c.records {
				t.Errorf("%d records, want %d", records, c.records)
			}
			t.Logf("%d records, %d schemas", records, len(g.asked))
		})
	}
}

func (g *avroGolden) compare(t *testing.T, want avroRecord, got *Record, now time.Time, difference [2]string) {
	t.Helper()
	key, value := unbase64(t, want.Key), unbase64(t, want.Value)
	if !bytes.Equal(got.Key, key) || (got.Key == nil) != (key == nil) {
		t.Errorf("topic %s: key %x, want %x", got.Topic, got.Key, key)
	}
	if value == nil || got.Value == nil {
		if value != nil || got.Value != nil {
			t.Errorf("topic %s: value %x, want %x", got.Topic, got.Value, value)
		}
		return
	}
	if clock, ok := g.native(t, value)["ts_ns"].(map[string]any); ok {
		ns := clock["long"].(int64)
		rest, found := bytes.CutSuffix(got.Value, clockBytes(now))
		if !found {
			t.Errorf("topic %s: value %x does not end with the clock", got.Topic, got.Value)
		}
		got.Value = append(bytes.Clone(rest), clockBytes(time.Unix(0, ns))...)
	}
	if bytes.Equal(got.Value, value) {
		if difference[0] != "" {
			t.Errorf("topic %s: no difference", got.Topic)
		}
		return
	}
	text := func(b []byte) string {
		s, err := g.codec(b).AppendJSON(nil, b[5:])
		if err != nil {
			t.Errorf("topic %s: %v", got.Topic, err)
		}
		return string(s)
	}
	wantText := text(value)
	if difference[0] != "" && !strings.Contains(wantText, difference[0]) {
		t.Errorf("topic %s: the difference is not there", got.Topic)
	}
	if difference[0] == "" || text(got.Value) != strings.Replace(wantText, difference[0], difference[1], 1) {
		t.Errorf("topic %s:\ngot  %s\nwant %s", got.Topic, text(got.Value), wantText)
	}
}
