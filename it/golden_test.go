package it

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The folders of testdata/golden hold what a Debezium 3.6.1 connector wrote for given SQL, with the server's binlog.
// tail --binlog reads that binlog again from where the snapshot ended; every streamed data record and tombstone must
// come out the same, topic by topic, with the same source offset.

// goldenFolders are the folders compared.
var goldenFolders = []struct {
	name         string
	payloadsOnly bool              // the schema part of keys and values is left out
	skipTables   map[string]string // table: why it is left out
	right        []rightValue
}{
	{name: "basics"},
	{name: "basics-file-mode"},
	{name: "offsets-distributed"},
	{name: "offsets-file-mode"},
	{name: "offsets-compressed"},
	{name: "offsets-rows-query"},
	{
		name:         "types-default",
		payloadsOnly: true,
		skipTables:   map[string]string{"t_charset": "Debezium decodes several charsets with another one than their own"},
		right: []rightValue{
			{"t_int", 2, `"y":1900,"y4":1900`, `"y":0,"y4":0`, "YEAR 0"},
			{"t_int", 5, `"y":1900`, `"y":0`, "YEAR 0"},
			{"t_time", 2, `"y":1900`, `"y":0`, "YEAR 0"},
			{"t_time_nn", 0, `"y":1900`, `"y":0`, "YEAR 0"},
			{"t_enum", 0, `"e2":"x\\,y"`, `"e2":"x,y"`, "an ENUM label with the escapes of the DDL text"},
			{"t_enum", 4, `"e2":"back\\\\slash"`, `"e2":"back\\slash"`, "an ENUM label with the escapes of the DDL text"},
			{"t_enum", 5, `"e2":"é?"`, `"e2":"é\uD83D\uDE00"`, "an ENUM label outside the BMP, lost in SHOW CREATE TABLE"},
			{"t_json", 7, `\"negtime\":\"101:0-1:0-1\"`, `\"negtime\":\"-100:00:01\"`, "a negative TIME in JSON"},
		},
	},
}

// rightValue is a value that Debezium writes wrong: in the index-th record of a table, wrong stands where right is right.
type rightValue struct {
	table        string
	index        int
	wrong, right string
	why          string
}

// goldenRecord is a record as tail --records prints it and as records.jsonl holds it.
type goldenRecord struct {
	Topic   string          `json:"topic"`
	Key     *string         `json:"key"`
	Value   *string         `json:"value"`
	Headers [][2]string     `json:"headers"`
	Offset  json.RawMessage `json:"offset"` // ours: the source offset's text; records.jsonl: the number in its partition
}

func (r goldenRecord) String() string {
	text := func(s *string) string {
		if s == nil {
			return "null"
		}
		return *s
	}
	return fmt.Sprintf("key %s\nvalue %s\nheaders %v", text(r.Key), text(r.Value), r.Headers)
}

func TestGolden(t *testing.T) {
	for _, f := range goldenFolders {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join("testdata", "golden", f.name)
			want := readGolden(t, dir)
			got := tailGolden(t, dir, want.from)
			topics := map[string]bool{}
			for topic := range want.records {
				topics[topic] = true
			}
			for topic := range got {
				topics[topic] = true
			}
			compared := 0
			for topic := range topics {
				table := topic[strings.LastIndexByte(topic, '.')+1:]
				if f.skipTables[table] != "" {
					continue
				}
				if len(got[topic]) != len(want.records[topic]) {
					t.Errorf("%s: %d records, want %d", topic, len(got[topic]), len(want.records[topic]))
				}
				for i := range min(len(got[topic]), len(want.records[topic])) {
					g, w := normalised(t, got[topic][i]), normalised(t, want.records[topic][i])
					if f.payloadsOnly {
						g, w = payloads(t, g), payloads(t, w)
					}
					for _, x := range f.right {
						if x.table == table && x.index == i {
							if !strings.Contains(*w.Value, x.wrong) {
								t.Errorf("%s record %d does not have the wrong value %s (%s)", topic, i, x.wrong, x.why)
							}
							*w.Value = strings.ReplaceAll(*w.Value, x.wrong, x.right)
						}
					}
					if g.String() != w.String() {
						t.Errorf("%s record %d\ngot  %s\nwant %s", topic, i, g, w)
					}
					if off := string(unquoted(t, got[topic][i].Offset)); off != want.offsets[topic][i] {
						t.Errorf("%s record %d: offset\n got %s\nwant %s", topic, i, off, want.offsets[topic][i])
					}
					compared++
				}
			}
			if compared < 15 {
				t.Errorf("only %d records were compared: the golden files are damaged", compared)
			}
			t.Logf("%d records compared", compared)
		})
	}
}

// golden is what a folder expects: records and source offsets by topic, and where streaming began.
type golden struct {
	from    string
	records map[string][]goldenRecord
	offsets map[string][]string
}

func readGolden(t *testing.T, dir string) golden {
	t.Helper()
	// Offsets of all records: emitted.jsonl numbers them within their topic, record-offsets.jsonl lists them in order.
	perTopic := map[string][]string{}
	var from string
	name := "emitted.jsonl.gz"
	if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
		name = "record-offsets.jsonl.gz"
	}
	for line := range bytes.Lines(gunzip(t, filepath.Join(dir, name))) {
		var e struct {
			Topic  string          `json:"topic"`
			Source json.RawMessage `json:"source_offset"`
			Offset json.RawMessage `json:"offset"`
		}
		mustJSON(t, line, &e)
		if e.Source == nil {
			e.Source = e.Offset
		}
		perTopic[e.Topic] = append(perTopic[e.Topic], string(e.Source))
		var pos struct {
			File     string
			Pos      int64
			Snapshot string
			ServerID int64 `json:"server_id"`
		}
		mustJSON(t, e.Source, &pos)
		if pos.ServerID == 0 { // written by the snapshot; the last one is where streaming begins
			from = fmt.Sprintf("%s:%d", pos.File, pos.Pos)
		}
	}
	g := golden{from: from, records: map[string][]goldenRecord{}, offsets: map[string][]string{}}
	seen := map[string]int{}
	for line := range bytes.Lines(gunzip(t, filepath.Join(dir, "records.jsonl.gz"))) {
		var r goldenRecord
		mustJSON(t, line, &r)
		i := seen[r.Topic]
		seen[r.Topic]++
		var v struct {
			Payload struct {
				Op     string
				Source struct{ Snapshot string }
			}
		}
		if r.Value != nil {
			mustJSON(t, []byte(*r.Value), &v)
			if v.Payload.Op == "" || v.Payload.Source.Snapshot != "false" {
				continue // a snapshot record, or not a data record
			}
		}
		g.records[r.Topic] = append(g.records[r.Topic], r)
		g.offsets[r.Topic] = append(g.offsets[r.Topic], perTopic[r.Topic][i])
	}
	for topic, rs := range g.records {
		for i, r := range rs {
			// A delete or key change is several records, which Debezium gives one offset already past them. Only the last
			// of them may say that the row is done.
			last := r.Value == nil && !hasHeader(r, "__debezium.newkey") || r.Value != nil && !strings.Contains(*r.Value, `"op":"d"`)
			if !last {
				g.offsets[topic][i] = rowBefore(t, g.offsets[topic][i])
			}
		}
	}
	return g
}

func hasHeader(r goldenRecord, name string) bool {
	for _, h := range r.Headers {
		if h[0] == name {
			return true
		}
	}
	return false
}

var rowMember = regexp.MustCompile(`"row":(\d+),`)

// rowBefore takes one from the offset's row and leaves the member out at 0.
func rowBefore(t *testing.T, offset string) string {
	t.Helper()
	m := rowMember.FindStringSubmatch(offset)
	if m == nil {
		t.Fatalf("no row in offset %s", offset)
	}
	var n int
	fmt.Sscan(m[1], &n)
	if n == 1 {
		return strings.Replace(offset, m[0], "", 1)
	}
	return strings.Replace(offset, m[0], fmt.Sprintf(`"row":%d,`, n-1), 1)
}

// tailGolden runs tail over the folder's binlog.
func tailGolden(t *testing.T, dir, from string) map[string][]goldenRecord {
	t.Helper()
	tmp := t.TempDir()
	binlog := filepath.Join(tmp, "mysql-bin.000001")
	history := filepath.Join(tmp, "schema-history.jsonl")
	for name, to := range map[string]string{"mysql-bin.000001.gz": binlog, "schema-history.jsonl.gz": history} {
		if err := os.WriteFile(to, gunzip(t, filepath.Join(dir, name)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(Binary(t), "tail", "--config", filepath.Join(dir, "config.json"), "--binlog", binlog,
		"--schema-history", history, "--from", from, "--records")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, stderr.String())
	}
	records := map[string][]goldenRecord{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var r goldenRecord
		mustJSON(t, lines.Bytes(), &r)
		records[r.Topic] = append(records[r.Topic], r)
	}
	return records
}

var (
	envelopeClock = regexp.MustCompile(`("op":"[a-z]"),"ts_ms":\d+,"ts_us":\d+,"ts_ns":\d+\}`)
	sourceVersion = regexp.MustCompile(`"source":\{"version":"[^"]*"`)
)

// normalised takes out what depends on when and by whom a record was written: the envelope's clock, source.version,
// the run's id.
func normalised(t *testing.T, r goldenRecord) goldenRecord {
	t.Helper()
	if r.Value != nil {
		v := envelopeClock.ReplaceAllString(*r.Value, `$1}`)
		if v == *r.Value {
			t.Errorf("no envelope clock in %s", *r.Value)
		}
		v = sourceVersion.ReplaceAllString(v, `"source":{"version":""`)
		r.Value = &v
	}
	r.Headers = append([][2]string(nil), r.Headers...)
	for i, h := range r.Headers {
		if h[0] == "__debezium.context.runId" {
			if len(h[1]) != 36 {
				t.Errorf("run id %q is not a UUID", h[1])
			}
			r.Headers[i][1] = ""
		}
	}
	return r
}

// payloads reduces key and value to their payload.
func payloads(t *testing.T, r goldenRecord) goldenRecord {
	t.Helper()
	for _, s := range []**string{&r.Key, &r.Value} {
		if *s == nil {
			continue
		}
		var v struct{ Payload json.RawMessage }
		mustJSON(t, []byte(**s), &v)
		text := string(v.Payload)
		*s = &text
	}
	return r
}

func gunzip(t *testing.T, name string) []byte {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return b
}

func unquoted(t *testing.T, text json.RawMessage) []byte {
	t.Helper()
	if len(text) > 0 && text[0] == '"' {
		var s string
		mustJSON(t, text, &s)
		return []byte(s)
	}
	return text
}

func mustJSON(t *testing.T, text []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(text, v); err != nil {
		t.Fatalf("%v in %.300s", err, text)
	}
}
