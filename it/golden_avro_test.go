package it

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/linkedin/goavro/v2"
)

// The folders avro-* hold what Debezium wrote through Confluent's AvroConverter into an empty registry. tail reads their binlogs
// again, with a registry of its own, and every streamed record has to have the same subjects, the same schema texts and, after the
// id, the same bytes once the golden's clock is put in.

// avroDifferences are the values of goldenDifferences in Avro's JSON encoding, by folder, table and number of the record.
var avroDifferences = []goldenDifference{
	{"YEAR 0", "avro-types", "t_int", 2, `"y":{"int":1900},"y4":{"int":1900}`, `"y":{"int":0},"y4":{"int":0}`},
	{"YEAR 0", "avro-types", "t_int", 5, `"y":{"int":1900}`, `"y":{"int":0}`},
	{"YEAR 0", "avro-types", "t_time", 2, `"y":{"int":1900}`, `"y":{"int":0}`},
	{"YEAR 0", "avro-types", "t_time_nn", 0, `"y":1900`, `"y":0`},
	{"ENUM values with a comma or backslash", "avro-types", "t_enum", 0, `"e2":{"string":"x\\,y"}`, `"e2":{"string":"x,y"}`},
	{"ENUM values with a comma or backslash", "avro-types", "t_enum", 4, `"e2":{"string":"back\\\\slash"}`, `"e2":{"string":"back\\slash"}`},
	{"ENUM labels beyond the basic plane", "avro-types", "t_enum", 5, `"e2":{"string":"é?"}`, "\"e2\":{\"string\":\"é\U0001F600\"}"},
	{"negative TIME inside JSON", "avro-types", "t_json", 7, `\"negtime\":\"101:0-1:0-1\"`, `\"negtime\":\"-100:00:01\"`},
}

// avroFolders are the folders and how many streamed records each has at least; more says that ours goes on where Debezium stopped,
// since the embedded registry takes every schema.
var avroFolders = []struct {
	name  string
	least int
	more  bool
}{
	{name: "avro-basics", least: 24},
	{name: "avro-evolution", least: 20},
	{name: "avro-evolution-incompatible", least: 2, more: true},
	{name: "avro-names", least: 9},
	{name: "avro-names-unicode", least: 9},
	{name: "avro-tx", least: 18},
	{name: "avro-types", least: 80},
	{name: "avro-types-modes", least: 3},
}

func TestGoldenAvro(t *testing.T) {
	for _, f := range avroFolders {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			want := readAvroCapture(t, filepath.Join("testdata", "golden", f.name))
			got := tailAvro(t, want)
			compared := 0
			for _, topic := range want.topics {
				if strings.HasPrefix(topic, "__debezium-heartbeat.") {
					compared += compareAvroHeartbeats(t, want, topic, got)
					continue
				}
				a, b := got.of(topic), want.of(topic)
				if len(a) < len(b) || len(a) > len(b) && !f.more {
					t.Errorf("topic %s: %d records, the golden has %d", topic, len(a), len(b))
				}
				table := topic[strings.LastIndexByte(topic, '.')+1:]
				for i := range min(len(a), len(b)) {
					compareAvro(t, f.name, table, i, a[i], b[i], want.clock(topic))
					compared++
				}
			}
			for _, topic := range got.topics {
				if !slices.Contains(want.topics, topic) && !f.more {
					t.Errorf("topic %s: the golden has no records", topic)
				}
			}
			if compared < f.least {
				t.Errorf("only %d records were compared, %d are expected", compared, f.least)
			}
			t.Logf("%d records compared", compared)
		})
	}
}

// avroRecord is a record with the schemas that its ids stand for.
type avroRecord struct {
	topic       string
	key, value  []byte // after the id; nil: null
	keySchema   string // "": null
	valueSchema string
	headers     [][2]string
}

type avroCapture struct {
	dir, from string
	files     []string
	prefix    string
	topics    []string // in the order of their first records
	records   []avroRecord
}

func (c *avroCapture) add(r avroRecord) {
	if !slices.Contains(c.topics, r.topic) {
		c.topics = append(c.topics, r.topic)
	}
	c.records = append(c.records, r)
}

func (c *avroCapture) of(topic string) []avroRecord {
	var all []avroRecord
	for _, r := range c.records {
		if r.topic == topic {
			all = append(all, r)
		}
	}
	return all
}

// clock names the members of a topic's values that say when they were made.
func (c *avroCapture) clock(topic string) []string {
	switch topic {
	case c.prefix + ".transaction":
		return nil
	case c.prefix:
		return []string{"ts_ms"}
	}
	return []string{"ts_ms", "ts_us", "ts_ns"}
}

// avroLine is a record as records.jsonl and tail --records have it.
type avroLine struct {
	Topic   string
	Key     string      `json:"key_b64"`
	Value   string      `json:"value_b64"`
	Headers [][2]string `json:"headers"`
	ID      int         `json:"schema_id"` // tail's lines of schemas
	Schema  string
}

// record cuts off the ids and looks up their schemas.
func (l *avroLine) record(t *testing.T, schemas map[int]string) avroRecord {
	t.Helper()
	r := avroRecord{topic: l.Topic, headers: l.Headers}
	cut := func(text string) ([]byte, string) {
		if text == "" {
			return nil, ""
		}
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(b) < 5 || b[0] != 0 {
			t.Fatalf("topic %s: %q is no record in Avro (%v)", l.Topic, text, err)
		}
		schema, ok := schemas[int(binary.BigEndian.Uint32(b[1:]))]
		if !ok {
			t.Fatalf("topic %s: the schema of %q is not known", l.Topic, text)
		}
		return b[5:], schema
	}
	r.key, r.keySchema = cut(l.Key)
	r.value, r.valueSchema = cut(l.Value)
	return r
}

// readAvroCapture reads the streamed records of a folder, and from those of the snapshot where the stream began.
func readAvroCapture(t *testing.T, dir string) *avroCapture {
	t.Helper()
	c := &avroCapture{dir: dir, prefix: connectorConfig(t, filepath.Join(dir, "config.json"))["topic.prefix"]}
	var subjects []struct {
		Subject, Schema string
		ID              int
	}
	mustJSON(t, gunzip(t, filepath.Join(dir, "subjects.json.gz")), &subjects)
	schemas := map[int]string{}
	for _, s := range subjects {
		schemas[s.ID] = s.Schema
		if kind := s.Subject[strings.LastIndexByte(s.Subject, '-'):]; kind != "-key" && kind != "-value" {
			t.Fatalf("subject %s", s.Subject)
		}
	}
	c.files = []string{filepath.Join(dir, "mysql-bin.000001.gz")}
	for line := range bytes.Lines(gunzip(t, filepath.Join(dir, "records.jsonl.gz"))) {
		var l avroLine
		mustJSON(t, line, &l)
		r := l.record(t, schemas)
		if !c.snapshot(t, r) {
			c.add(r)
		}
	}
	if c.from == "" {
		t.Fatalf("%s has no record of a snapshot", dir)
	}
	return c
}

// snapshot says whether a record is the snapshot's.
func (c *avroCapture) snapshot(t *testing.T, r avroRecord) bool {
	t.Helper()
	if r.value == nil {
		return false
	}
	value := decodeAvro(t, r.valueSchema, r.value)
	source, ok := value["source"].(map[string]any)
	if !ok {
		return false
	}
	snapshot, _ := source["snapshot"].(map[string]any)
	if snapshot["string"] == "false" {
		return false
	}
	c.from = fmt.Sprintf("%s:%d", source["file"], source["pos"])
	return true
}

// tailAvro reads a folder's binlog with tail.
func tailAvro(t *testing.T, want *avroCapture) *avroCapture {
	t.Helper()
	args := []string{
		"tail", "--config", filepath.Join(want.dir, "config.json"), "--lenient", "--from", want.from, "--records", "--schemas",
		"--registry", "embedded",
	}
	for _, file := range (&capture{files: want.files}).unpacked(t) {
		args = append(args, "--binlog", file)
	}
	cmd := exec.Command(Binary(t), args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tail: %v\n%s", err, stderr.String())
	}
	got, schemas := &avroCapture{prefix: want.prefix}, map[int]string{}
	lines := bufio.NewReader(bytes.NewReader(out))
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return got
		}
		var l avroLine
		mustJSON(t, line, &l)
		switch {
		case l.ID > 0:
			schemas[l.ID] = l.Schema
		case !strings.HasPrefix(l.Topic, "_schemahistory."):
			got.add(l.record(t, schemas))
		}
	}
}

// decodeAvro decodes with goavro, in whose native form a union is a map with the name of its branch.
func decodeAvro(t *testing.T, schema string, data []byte) map[string]any {
	t.Helper()
	native, rest, err := avroCodec(t, schema).NativeFromBinary(data)
	if err != nil || len(rest) > 0 {
		t.Fatalf("%v, %d bytes left, schema %s", err, len(rest), schema)
	}
	record, ok := native.(map[string]any)
	if !ok {
		t.Fatalf("a %T, no record", native)
	}
	return record
}

// avroCodec makes goavro's codec of a schema without defaults and logical types: it cannot read all defaults, and would make
// numbers of decimals, of which it does not keep the scale. Neither shows in the bytes.
func avroCodec(t *testing.T, schema string) *goavro.Codec {
	t.Helper()
	var tree any
	mustJSON(t, []byte(schema), &tree)
	text, err := json.Marshal(withoutAvroExtras(tree))
	if err != nil {
		t.Fatal(err)
	}
	codec, err := goavro.NewCodec(string(text))
	if err != nil {
		t.Fatalf("%v: %s", err, schema)
	}
	return codec
}

func withoutAvroExtras(tree any) any {
	switch tree := tree.(type) {
	case []any:
		for i := range tree {
			tree[i] = withoutAvroExtras(tree[i])
		}
	case map[string]any:
		delete(tree, "default")
		delete(tree, "logicalType")
		for _, member := range []string{"type", "fields", "items"} {
			if inner, ok := tree[member]; ok {
				tree[member] = withoutAvroExtras(inner)
			}
		}
	}
	return tree
}

// compareAvro compares a record with the golden's.
func compareAvro(t *testing.T, folder, table string, i int, got, want avroRecord, clock []string) {
	t.Helper()
	where := fmt.Sprintf("%s record %d", got.topic, i)
	if got.keySchema != want.keySchema {
		t.Errorf("%s, schema of the key:\n got %s\nwant %s", where, got.keySchema, want.keySchema)
	}
	if !bytes.Equal(got.key, want.key) || (got.key == nil) != (want.key == nil) {
		t.Errorf("%s, key:\n got %x\nwant %x", where, got.key, want.key)
	}
	withoutRun := func(headers [][2]string) [][2]string {
		return slices.DeleteFunc(slices.Clone(headers), func(h [2]string) bool { return h[0] == "__debezium.context.runId" })
	}
	if a, b := withoutRun(got.headers), withoutRun(want.headers); !slices.Equal(a, b) {
		t.Errorf("%s, headers:\n got %v\nwant %v", where, a, b)
	}
	if got.valueSchema != want.valueSchema {
		t.Errorf("%s, schema of the value:\n got %s\nwant %s", where, got.valueSchema, want.valueSchema)
		return
	}
	if got.value == nil || want.value == nil {
		if (got.value == nil) != (want.value == nil) {
			t.Errorf("%s: one value is null: got %x, want %x", where, got.value, want.value)
		}
		return
	}
	codec := avroCodec(t, want.valueSchema)
	ours, theirs := decodeAvro(t, got.valueSchema, got.value), decodeAvro(t, want.valueSchema, want.value)
	if again, err := codec.BinaryFromNative(nil, ours); err != nil || !bytes.Equal(again, got.value) {
		t.Errorf("%s: goavro writes the value in other bytes (%v):\n got %x\nwant %x", where, err, got.value, again)
	}
	for _, member := range clock {
		ours[member] = theirs[member]
	}
	withClock, err := codec.BinaryFromNative(nil, ours)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(withClock, want.value) {
		return
	}
	a, b := avroText(t, codec, withClock), avroText(t, codec, want.value)
	for _, d := range avroDifferences {
		if d.folders == folder && d.table == table && d.record == i {
			if !strings.Contains(b, d.wrong) {
				t.Errorf("%s: the golden has no %s", where, d.wrong)
			}
			b = strings.ReplaceAll(b, d.wrong, d.right)
		}
	}
	if a != b {
		t.Errorf("%s:\n got %s\nwant %s", where, a, b)
	}
}

func avroText(t *testing.T, codec *goavro.Codec, data []byte) string {
	t.Helper()
	native, _, err := codec.NativeFromBinary(data)
	if err != nil {
		t.Fatal(err)
	}
	text, err := codec.TextualFromNative(nil, native)
	if err != nil {
		t.Fatal(err)
	}
	var members any // goavro's come in any order
	mustJSON(t, text, &members)
	var sorted bytes.Buffer
	encoder := json.NewEncoder(&sorted)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(members); err != nil {
		t.Fatal(err)
	}
	return sorted.String()
}

// compareAvroHeartbeats compares the schemas and keys of heartbeats, of which each run has others.
func compareAvroHeartbeats(t *testing.T, want *avroCapture, topic string, got *avroCapture) int {
	t.Helper()
	theirs := want.of(topic)
	for _, r := range got.of(topic) {
		if r.keySchema != theirs[0].keySchema || r.valueSchema != theirs[0].valueSchema || !bytes.Equal(r.key, theirs[0].key) {
			t.Errorf("heartbeat:\n got %s %s %x\nwant %s %s %x", r.keySchema, r.valueSchema, r.key, theirs[0].keySchema, theirs[0].valueSchema, theirs[0].key)
		}
	}
	return 0
}
