package it

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// capture is what one folder of testdata/golden says of the stream; what the snapshot wrote is left out.
type capture struct {
	dir    string
	from   string   // where streaming began, FILE:POS
	files  []string // binlog files, still compressed
	prefix string   // topic.prefix
	// Records over all topics, heartbeats aside, in the order in which the connector gave them, each with its source offset.
	// Without a file that has that order they are topic by topic, and ordered is false.
	records []TailRecord
	ordered bool
	// Heartbeats and records of the schema history.
	heartbeats, history []TailRecord
	historyTopic        string
	notifications       string // their topic
}

// readCapture reads a folder. Records that were sent again after a restart are there once, where they came first.
func readCapture(t testing.TB, dir string) *capture {
	t.Helper()
	c := &capture{dir: dir}
	config := connectorConfig(t, filepath.Join(dir, "config.json"))
	c.prefix, c.historyTopic = config["topic.prefix"], config["schema.history.internal.kafka.topic"]
	c.notifications = config["notification.sink.topic.name"]
	var err error
	if c.files, err = filepath.Glob(filepath.Join(dir, "mysql-bin.*.gz")); err != nil || len(c.files) == 0 {
		t.Fatalf("no binlog in %s (%v)", dir, err)
	}
	if name := filepath.Join(dir, "schema-history.jsonl.gz"); exists(name) {
		c.readHistory(t, name)
	}
	if name := filepath.Join(dir, "records.jsonl.gz"); exists(name) {
		c.readRecords(t, name)
	}
	return c
}

func (c *capture) readHistory(t testing.TB, name string) {
	for line := range bytes.Lines(gunzip(t, name)) {
		var r TailRecord
		mustJSON(t, line, &r)
		var v struct {
			Position struct {
				File     string
				Pos      int64
				Snapshot string
			}
		}
		mustJSON(t, []byte(*r.Value), &v)
		if v.Position.Snapshot != "" {
			c.from = fmt.Sprintf("%s:%d", v.Position.File, v.Position.Pos)
			continue
		}
		c.history = append(c.history, r)
	}
}

// readRecords reads records.jsonl, and from emitted.jsonl or record-offsets*.jsonl their order and source offsets.
func (c *capture) readRecords(t testing.TB, name string) {
	topics := map[string][]TailRecord{}
	var names []string
	for line := range bytes.Lines(gunzip(t, name)) {
		var r TailRecord
		mustJSON(t, line, &r)
		if topics[r.Topic] == nil {
			names = append(names, r.Topic)
		}
		topics[r.Topic] = append(topics[r.Topic], r)
	}
	sequence, err := filepath.Glob(filepath.Join(c.dir, "record-offsets*.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if name := filepath.Join(c.dir, "emitted.jsonl.gz"); exists(name) {
		sequence = []string{name}
	}
	if len(sequence) == 0 {
		for _, topic := range names {
			for _, r := range topics[topic] {
				c.add(t, r)
			}
		}
		c.once(t)
		return
	}
	c.ordered = true
	if len(sequence) > 1 {
		c.readRuns(t, topics, sequence)
		return
	}
	at := map[string]int{}
	for line := range bytes.Lines(gunzip(t, sequence[0])) {
		topic, source := sequenceLine(t, line)
		if at[topic] >= len(topics[topic]) {
			t.Fatalf("%s: more than the %d records of %s", sequence[0], at[topic], topic)
		}
		r := topics[topic][at[topic]]
		at[topic]++
		r.source = source
		c.add(t, r)
	}
	for topic, rs := range topics {
		if at[topic] != len(rs) {
			t.Errorf("%s: %d records of %s have an offset, %d are there", c.dir, at[topic], topic, len(rs))
		}
	}
}

// sequenceLine reads a line of emitted.jsonl or record-offsets.jsonl.
func sequenceLine(t testing.TB, line []byte) (topic, source string) {
	var e struct {
		Topic  string
		Source json.RawMessage `json:"source_offset"` // emitted.jsonl
		Offset json.RawMessage // record-offsets.jsonl; a number in emitted.jsonl
	}
	mustJSON(t, line, &e)
	if e.Source == nil {
		e.Source = e.Offset
	}
	return e.Topic, string(e.Source)
}

// readRuns reads the order and the offsets of several runs over one binlog, the later ones after a kill. The last records that a
// killed run gave away may never have been written, and the next run gives again what no offset covered, so records are found by
// what they are, not by their number.
func (c *capture) readRuns(t testing.TB, topics map[string][]TailRecord, sequence []string) {
	written := map[string]TailRecord{}
	deleted := map[string]string{}
	identity := func(r *TailRecord) string {
		what := r.what(t)
		if r.Value == nil {
			return what + deleted[r.Topic]
		}
		deleted[r.Topic] = what
		return what
	}
	for _, rs := range topics {
		for i := range rs {
			what := identity(&rs[i])
			if _, again := written[what]; !again {
				written[what] = rs[i]
			}
		}
	}
	seen := map[string]bool{}
	for _, name := range sequence {
		clear(deleted)
		for line := range bytes.Lines(gunzip(t, name)) {
			var e struct {
				Key    json.RawMessage
				Op     *string
				Source json.RawMessage
			}
			mustJSON(t, line, &e)
			topic, source := sequenceLine(t, line)
			r := TailRecord{Topic: topic, source: source}
			if e.Key != nil && string(e.Key) != "null" {
				key := string(e.Key)
				r.Key = &key
			}
			if e.Op != nil && e.Source != nil {
				value := fmt.Sprintf(`{"op":%q,"source":%s}`, *e.Op, e.Source)
				r.Value = &value
			} else if e.Op != nil {
				continue // a schema change of the snapshot
			}
			what := identity(&r)
			full, ok := written[what]
			if !seen[what] && ok {
				full.source = source
				c.add(t, full)
			}
			seen[what] = true
		}
	}
	for what, r := range written {
		if !seen[what] && r.payload(t).DDL == nil {
			t.Errorf("%s: there is no offset of %s", c.dir, what)
		}
	}
}

// add takes a record unless the snapshot wrote it; the last one that it wrote says where streaming began.
func (c *capture) add(t testing.TB, r TailRecord) {
	p := r.payload(t)
	if strings.HasSuffix(r.Topic, c.prefix) && r.Topic != c.prefix {
		c.heartbeats = append(c.heartbeats, r)
		return
	}
	if r.Topic == c.notifications {
		return
	}
	snapshot := p.Source.Snapshot != nil && *p.Source.Snapshot != "false"
	if r.source != "" {
		var o struct {
			File     string
			Pos      int64
			ServerID int64 `json:"server_id"`
		}
		mustJSON(t, []byte(r.source), &o)
		if o.ServerID == 0 {
			c.from = fmt.Sprintf("%s:%d", o.File, o.Pos)
			snapshot = true
		}
	} else if snapshot {
		c.from = fmt.Sprintf("%s:%d", p.Source.File, p.Source.Pos)
	}
	stored := p.Source.File == "" || exists(filepath.Join(c.dir, p.Source.File+".gz"))
	if !snapshot && stored {
		c.records = append(c.records, r)
	}
}

// once leaves each record in once: a tombstone belongs to the delete before it in its topic.
func (c *capture) once(t testing.TB) {
	seen, deleted := map[string]bool{}, map[string]string{}
	c.records = slices.DeleteFunc(c.records, func(r TailRecord) bool {
		what := r.what(t)
		if r.Value == nil {
			what += deleted[r.Topic]
		} else {
			deleted[r.Topic] = what
		}
		again := seen[what]
		seen[what] = true
		return again
	})
}

// connectorConfig reads a connector's file, with or without the name around it.
func connectorConfig(t testing.TB, name string) map[string]string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var wrapped struct{ Config map[string]string }
	if err := json.Unmarshal(b, &wrapped); err == nil && wrapped.Config != nil {
		return wrapped.Config
	}
	var config map[string]string
	mustJSON(t, b, &config)
	return config
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func gunzip(t testing.TB, name string) []byte {
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
