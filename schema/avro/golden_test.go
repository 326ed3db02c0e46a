package avro

import (
	"bufio"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/linkedin/goavro/v2"
)

// The goldens are what Debezium 3.6.1.Final wrote through Confluent's AvroConverter 8.3.1: the schemas as the registry
// returned them, the bytes of all records, and what Avro Java 1.12.1 made of them.

// golden reads a file of testdata.
func golden(t testing.TB, name string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// goldens are the names of all captures.
func goldens(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*-subjects.json.gz")
	if err != nil || len(files) != 8 {
		t.Fatalf("%d captures, %v", len(files), err)
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), "-subjects.json.gz")
	}
	return files
}

// subject is a registered schema.
type subject struct {
	Subject string
	Version int
	ID      uint32
	Schema  string
}

func subjects(t testing.TB, name string) []subject {
	t.Helper()
	var all []subject
	if err := json.Unmarshal(golden(t, name+"-subjects.json"), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAppendSchemaPrintsWhatDebeziumRegistered(t *testing.T) {
	n := 0
	for _, name := range goldens(t) {
		for _, s := range subjects(t, name) {
			typ := connectType(t, s.Schema)
			got, err := Options{}.AppendSchema([]byte("before "), typ)
			if err != nil {
				t.Fatalf("%s %s: %v", name, s.Subject, err)
			}
			if d := cmp.Diff("before "+s.Schema, string(got)); d != "" {
				t.Errorf("%s %s version %d:\n%s", name, s.Subject, s.Version, d)
			}
			n++
		}
	}
	if n != 102 {
		t.Errorf("%d schemas", n)
	}
}

func TestRecordNameIsTheNameInTheSchema(t *testing.T) {
	for _, name := range goldens(t) {
		for _, s := range subjects(t, name) {
			n, err := parse(s.Schema)
			if err != nil {
				t.Fatal(err)
			}
			if got := (Options{}).RecordName(connectType(t, s.Schema)); got != n.name {
				t.Errorf("%s: %s, the schema has %s", s.Subject, got, n.name)
			}
		}
	}
}

func TestCheckTakesWhatDebeziumRegistered(t *testing.T) {
	for _, name := range goldens(t) {
		for _, s := range subjects(t, name) {
			if err := Check(s.Schema); err != nil {
				t.Errorf("%s %s: %v", name, s.Subject, err)
			}
		}
	}
}

// lines reads the lines of a golden of JSON lines one by one.
func lines[T any](t testing.TB, name string) []T {
	t.Helper()
	scanner := bufio.NewScanner(strings.NewReader(string(golden(t, name))))
	scanner.Buffer(nil, 1<<24)
	var all []T
	for scanner.Scan() {
		var v T
		if err := json.Unmarshal(scanner.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

type capturedRecord struct {
	Topic  string
	Offset int64
	Key    *string `json:"key_b64"`
	Value  *string `json:"value_b64"`
}

type decodedRecord struct {
	Topic      string
	Offset     int64
	KeyID      uint32 `json:"key_id"`
	ValueID    uint32 `json:"value_id"`
	Key, Value json.RawMessage
}

// payload is the schema id and the Avro binary of a captured key or value.
func payload(t testing.TB, text *string) (id uint32, data []byte) {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(*text)
	if err != nil || len(b) < 5 || b[0] != 0 {
		t.Fatalf("%q is no record", *text)
	}
	return uint32(b[1])<<24 | uint32(b[2])<<16 | uint32(b[3])<<8 | uint32(b[4]), b[5:]
}

func TestCodecDecodesAsAvroJava(t *testing.T) {
	n := 0
	for _, name := range goldens(t) {
		codecs := map[uint32]*Codec{}
		for _, s := range subjects(t, name) {
			c, err := NewCodec(s.Schema)
			if err != nil {
				t.Fatalf("%s %s: %v", name, s.Subject, err)
			}
			codecs[s.ID] = c
		}
		records := lines[capturedRecord](t, name+"-records.jsonl")
		decoded := lines[decodedRecord](t, name+"-decoded.jsonl")
		if len(records) != len(decoded) {
			t.Fatalf("%s: %d records, %d decoded", name, len(records), len(decoded))
		}
		for i, r := range records {
			d := decoded[i]
			if r.Topic != d.Topic || r.Offset != d.Offset {
				t.Fatalf("%s: record %d is not the decoded one", name, i)
			}
			for _, side := range [...]struct {
				text *string
				id   uint32
				want json.RawMessage
			}{{r.Key, d.KeyID, d.Key}, {r.Value, d.ValueID, d.Value}} {
				if side.text == nil {
					continue
				}
				id, data := payload(t, side.text)
				if id != side.id {
					t.Fatalf("%s %s %d: id %d, decoded with %d", name, r.Topic, r.Offset, id, side.id)
				}
				got, err := codecs[id].AppendJSON(nil, data)
				if err != nil {
					t.Fatalf("%s %s %d: %v", name, r.Topic, r.Offset, err)
				}
				if d := cmp.Diff(string(side.want), string(got)); d != "" {
					t.Errorf("%s %s %d:\n%s", name, r.Topic, r.Offset, d)
				}
				n++
			}
		}
	}
	if n != 597 {
		t.Errorf("%d keys and values", n)
	}
}

// TestNativeIsGoavrosOwn compares with goavro on the registered text itself, where it has no logical types, for Codec
// gives goavro another text of the same schema.
func TestNativeIsGoavrosOwn(t *testing.T) {
	n := 0
	for _, name := range goldens(t) {
		theirs, ours := map[uint32]*goavro.Codec{}, map[uint32]*Codec{}
		for _, s := range subjects(t, name) {
			if strings.Contains(s.Schema, "logicalType") {
				continue
			}
			var err error
			if theirs[s.ID], err = goavro.NewCodec(s.Schema); err != nil && !strings.Contains(err.Error(), "lose precision") {
				t.Fatal(err)
			}
			if ours[s.ID], err = NewCodec(s.Schema); err != nil {
				t.Fatal(err)
			}
		}
		for _, r := range lines[capturedRecord](t, name+"-records.jsonl") {
			for _, text := range [...]*string{r.Key, r.Value} {
				if text == nil {
					continue
				}
				id, data := payload(t, text)
				if theirs[id] == nil {
					continue
				}
				want, _, err := theirs[id].NativeFromBinary(data)
				if err != nil {
					t.Fatal(err)
				}
				got, err := ours[id].Native(data)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("%s %s %d:\n%s", name, r.Topic, r.Offset, d)
				}
				n++
			}
		}
	}
	if n < 400 {
		t.Errorf("%d keys and values", n)
	}
}
