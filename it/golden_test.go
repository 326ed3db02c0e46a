package it

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The folders of testdata/golden hold what a Debezium 3.6.1 connector wrote for given SQL, with the server's binlog. tail --binlog
// reads that binlog again from where the snapshot ended. Every record of the stream has to come out the same, byte for byte, in the
// same order over all topics and with the same source offset: rows, tombstones, schema changes, transaction metadata, and the
// records of the schema history. What is ours on purpose is listed in goldenDifferences, goldenFolders and, for people, in
// docs/debezium-differences.md.

func TestGolden(t *testing.T) {
	for _, f := range goldenFolders {
		if f.belongs != "" || f.replayed {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			want := readCapture(t, filepath.Join("testdata", "golden", f.name))
			got := tailCapture(t, want, f)
			if len(f.stops) > 0 {
				return // tailCapture has looked at what it says, and at the rows before
			}
			compared := compareRecords(t, f, want, got)
			compared += compareHistory(t, f, want, got)
			compareHeartbeats(t, f, want, got)
			if least := max(f.least, 1); compared < least {
				t.Errorf("only %d records were compared, %d are expected: the files of the folder are damaged", compared, least)
			}
			t.Logf("%d records compared, %d of them of the schema history", compared, len(got.history))
		})
	}
}

// TestGoldenFoldersAreKnown fails on a folder that no test compares, and says which ones are left to other tests.
func TestGoldenFoldersAreKnown(t *testing.T) {
	known := map[string]bool{}
	for _, f := range goldenFolders {
		if known[f.name] {
			t.Errorf("%s is listed twice", f.name)
		}
		known[f.name] = true
		dir := filepath.Join("testdata", "golden", f.name)
		switch {
		case f.belongs != "":
			t.Logf("%s is not compared here: %s", f.name, f.belongs)
		case !exists(dir):
			t.Errorf("%s is not there", dir)
		}
	}
	folders, err := os.ReadDir(filepath.Join("testdata", "golden"))
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		if !known[folder.Name()] {
			t.Errorf("testdata/golden/%s is compared by no test: list it in goldenFolders", folder.Name())
		}
	}
}

// tailed is what tail --records printed.
type tailed struct {
	records, heartbeats, history []TailRecord
}

// tailCapture runs tail over a folder's binlog from where its stream began.
func tailCapture(t *testing.T, c *capture, f goldenFolder) tailed {
	t.Helper()
	out, said, err := tailBinlog(t, c, c.from)
	got := sortTailed(t, c, out)
	if len(f.stops) > 0 {
		if err == nil {
			t.Errorf("it went on; it has to stop")
		}
		for _, x := range f.stops {
			if !regexp.MustCompile(x).MatchString(said) {
				t.Errorf("it does not say %q:\n%s", x, said)
			}
		}
		compareRows(t, f.rows, got.records)
		compareWithRows(t, f, c, got.records)
		return got
	}
	if err != nil {
		t.Fatalf("tail: %v\n%s", err, said)
	}
	return got
}

// tailBinlog runs tail over the binlog of a folder and returns what it printed and said.
func tailBinlog(t *testing.T, c *capture, from string) (out []byte, said string, err error) {
	t.Helper()
	args := []string{"tail", "--config", filepath.Join(c.dir, "config.json"), "--lenient", "--from", from, "--records"}
	for _, file := range c.unpacked(t) {
		args = append(args, "--binlog", file)
	}
	cmd := exec.Command(Binary(t), args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err = cmd.Output()
	return out, stderr.String(), err
}

// unpacked are the binlog files, uncompressed in a folder that goes with the test.
func (c *capture) unpacked(t *testing.T) []string {
	t.Helper()
	var files []string
	tmp := t.TempDir()
	for _, file := range c.files {
		files = append(files, write(t, filepath.Join(tmp, strings.TrimSuffix(filepath.Base(file), ".gz")), gunzip(t, file)))
	}
	return files
}

// sortTailed tells the kinds of records apart by their topics.
func sortTailed(t *testing.T, c *capture, out []byte) tailed {
	t.Helper()
	var got tailed
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var r TailRecord
		mustJSON(t, lines.Bytes(), &r)
		if len(r.Offset) > 0 && r.Offset[0] == '"' {
			mustJSON(t, r.Offset, &r.source)
		} else {
			r.source = string(r.Offset)
		}
		switch {
		case c.historyTopic != "" && r.Topic == c.historyTopic:
			got.history = append(got.history, r)
		case strings.HasSuffix(r.Topic, c.prefix) && r.Topic != c.prefix:
			got.heartbeats = append(got.heartbeats, r)
		default:
			got.records = append(got.records, r)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return got
}

// compareRecords compares the records of a folder and returns how many it compared.
func compareRecords(t *testing.T, f goldenFolder, want *capture, got tailed) int {
	t.Helper()
	checkOffsets(t, got.records)
	if f.rows != nil {
		compareRows(t, f.rows, got.records)
		return len(got.records) + compareWithRows(t, f, want, got.records)
	}
	expected := applyDifferences(t, f, want.records)
	offsets := make([]expectedOffset, len(expected))
	if want.ordered {
		offsets = expectedOffsets(t, expected)
	}
	order := moveXA(t, f, expected, offsets)
	if !want.ordered {
		byTopic := func(a, b TailRecord) int { return strings.Compare(a.Topic, b.Topic) }
		slices.SortStableFunc(order, func(a, b expectedRecord) int { return byTopic(a.TailRecord, b.TailRecord) })
		got.records = slices.Clone(got.records)
		slices.SortStableFunc(got.records, byTopic)
	}
	var a, b []string
	for i := range got.records {
		a = append(a, got.records[i].what(t))
	}
	for i := range order {
		b = append(b, order[i].what(t))
	}
	pairs := matchSequence(t, a, b)
	var xa []TailRecord
	for _, pair := range pairs {
		g, w := got.records[pair[0]], order[pair[1]]
		if w.offset.xa {
			xa = append(xa, g)
		}
		compareRecord(t, g, w.TailRecord)
		if want.ordered {
			if pair[1] == 0 && g.payload(t).Status == "BEGIN" {
				// Debezium's has the time of the last row of the snapshot.
				w.offset.text = withoutTime.ReplaceAllString(w.offset.text, "")
			}
			w.offset.compare(t, b[pair[1]], g.source)
		}
	}
	compareXA(t, xa)
	if !want.ordered {
		compareStored(t, want, got.records)
	}
	return len(pairs)
}

// compareRecord compares key, value and headers.
func compareRecord(t *testing.T, got, want TailRecord) {
	t.Helper()
	g, w := normalised(t, got), normalised(t, want)
	if g.String() != w.String() {
		t.Errorf("%s\n%s", want.what(t), difference(g.String(), w.String()))
	}
}

// difference shows two texts from a little before where they begin to differ.
func difference(got, want string) string {
	if len(got)+len(want) < 1200 {
		return fmt.Sprintf("got  %s\nwant %s", got, want)
	}
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	part := func(s string) string { return s[max(0, min(i-120, len(s))):min(len(s), i+280)] }
	return fmt.Sprintf("from byte %d of %d and %d:\ngot  …%s…\nwant …%s…", i, len(got), len(want), part(got), part(want))
}

// matchSequence pairs equal elements of two sequences in their order, and reports those without a partner.
func matchSequence(t *testing.T, got, want []string) [][2]int {
	t.Helper()
	// The longest common subsequence, from the end.
	long := make([][]int32, len(got)+1)
	for i := range long {
		long[i] = make([]int32, len(want)+1)
	}
	for i := len(got) - 1; i >= 0; i-- {
		for j := len(want) - 1; j >= 0; j-- {
			if got[i] == want[j] {
				long[i][j] = long[i+1][j+1] + 1
			} else {
				long[i][j] = max(long[i+1][j], long[i][j+1])
			}
		}
	}
	var pairs [][2]int
	for i, j := 0, 0; i < len(got) || j < len(want); {
		switch {
		case i < len(got) && j < len(want) && got[i] == want[j]:
			pairs = append(pairs, [2]int{i, j})
			i, j = i+1, j+1
		case j == len(want) || i < len(got) && long[i+1][j] >= long[i][j+1]:
			t.Errorf("too much, or in the wrong place, as number %d: %s", i, got[i])
			i++
		default:
			t.Errorf("missing as number %d: %s", j, want[j])
			j++
		}
	}
	return pairs
}

// compareHistory compares the records of the schema history.
func compareHistory(t *testing.T, f goldenFolder, want *capture, got tailed) int {
	t.Helper()
	if f.rows != nil {
		return compareDDL(t, f.rows, got.history)
	}
	if len(got.history) != len(want.history) {
		t.Errorf("%d records of the schema history, want %d", len(got.history), len(want.history))
	}
	for i := range min(len(got.history), len(want.history)) {
		g, w := withoutClock(t, got.history[i]), withoutClock(t, want.history[i])
		if g != w {
			t.Errorf("schema history record %d\n%s", i, difference(g, w))
		}
		if got.history[i].Key != nil || len(got.history[i].Headers) > 0 {
			t.Errorf("schema history record %d has a key or headers: %v", i, got.history[i])
		}
	}
	return min(len(got.history), len(want.history))
}

// compareDDL compares the statements in the schema history with those among rows that were written down.
func compareDDL(t *testing.T, rows []rightRow, got []TailRecord) int {
	t.Helper()
	var want []string
	for _, r := range rows {
		if r.op == "ddl" {
			want = append(want, r.after)
		}
	}
	var have []string
	for _, r := range got {
		var v struct {
			DDL          string
			TableChanges []struct{ Table json.RawMessage }
		}
		mustJSON(t, []byte(*r.Value), &v)
		have = append(have, v.DDL)
		if len(v.TableChanges) != 1 || len(v.TableChanges[0].Table) < 100 {
			t.Errorf("the schema history does not say what %q changes: %s", v.DDL, *r.Value)
		}
	}
	if !slices.Equal(have, want) {
		t.Errorf("the schema history has\n%q\nwant\n%q", have, want)
	}
	return len(got)
}

var withoutTime = regexp.MustCompile(`"ts_sec":\d+,`)

var historyClock = regexp.MustCompile(`(?m)^  "ts_ms" : \d+,$`)

func withoutClock(t *testing.T, r TailRecord) string {
	t.Helper()
	if r.Value == nil {
		return "null"
	}
	if !historyClock.MatchString(*r.Value) {
		t.Errorf("no ts_ms in %s", *r.Value)
	}
	return historyClock.ReplaceAllString(*r.Value, "")
}

// compareHeartbeats compares topic, key and shape of the heartbeats; their number and place are a matter of time.
func compareHeartbeats(t *testing.T, f goldenFolder, want *capture, got tailed) {
	t.Helper()
	if len(got.heartbeats) < f.heartbeats {
		t.Errorf("%d heartbeats, at least %d are expected", len(got.heartbeats), f.heartbeats)
	}
	if len(want.heartbeats) == 0 {
		if len(got.heartbeats) > 0 {
			t.Errorf("%d heartbeats on %s, none is expected", len(got.heartbeats), got.heartbeats[0].Topic)
		}
		return
	}
	shape := func(r TailRecord) string {
		value := clockOfHeartbeat.ReplaceAllString(*r.Value, `"ts_ms":0`)
		return fmt.Sprintf("%s %s %s %v", r.Topic, *r.Key, value, r.Headers)
	}
	for _, r := range got.heartbeats {
		if r.Key == nil || r.Value == nil {
			t.Fatalf("a heartbeat without key or value: %v", r)
		}
		if g, w := shape(r), shape(want.heartbeats[0]); g != w {
			t.Errorf("heartbeat\ngot  %s\nwant %s", g, w)
		}
		if _, err := ParseStored([]byte(r.source), zeroTime); err != nil {
			t.Errorf("heartbeat: %v", err)
		}
	}
}

var (
	clockOfHeartbeat = regexp.MustCompile(`"ts_ms":\d+`)
	envelopeClock    = regexp.MustCompile(`("op":"[a-z]"),"ts_ms":\d+,"ts_us":\d+,"ts_ns":\d+\}`)
	schemaClock      = regexp.MustCompile(`("query":(?:null|"(?:[^"\\]|\\.)*")\}),"ts_ms":\d+,("databaseName":)`)
)

// normalised takes out what depends on when and by whom a record was written: the envelope's clock and the run's id.
func normalised(t *testing.T, r TailRecord) TailRecord {
	t.Helper()
	if p := r.payload(t); r.Value != nil && (p.Op != "" || p.DDL != nil) {
		v := envelopeClock.ReplaceAllString(*r.Value, `$1}`)
		if p.DDL != nil {
			v = schemaClock.ReplaceAllString(*r.Value, `$1,$2`)
		}
		if v == *r.Value {
			t.Errorf("no clock in %s", *r.Value)
		}
		r.Value = &v
	}
	r.Headers = slices.Clone(r.Headers)
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
