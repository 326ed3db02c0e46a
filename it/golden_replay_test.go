package it

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// replay.json of a replay-* folder lists the records of a whole pass, and every offset that a restart could find stored, with the
// number of the last record that carries it. Debezium was restarted from each of them; it loses rows of XA transactions and of key
// changes, and stops at a DDL. From each of them tail has to print exactly the records that the offset does not cover.

type replay struct {
	FirstPass []struct {
		Record []any
	} `json:"first_pass"`
	Replays []struct {
		Stored json.RawMessage `json:"stored_offset"`
		After  int             `json:"stored_after_record_index"`
	}
}

// replayRolledBack are rows of an XA transaction that was rolled back; Debezium has written them.
var replayRolledBack = map[string]string{
	"replay-xa":           "orders c 13 4541 0",
	"replay-xa-file-mode": "orders c 13 4541 0",
}

func TestI5_ReplayFromEveryStoredOffset(t *testing.T) {
	for _, f := range goldenFolders {
		dir := filepath.Join("testdata", "golden", f.name)
		if !exists(filepath.Join(dir, "replay.json.gz")) {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			c := readCapture(t, dir)
			files := c.unpacked(t)
			var r replay
			mustJSON(t, gunzip(t, filepath.Join(dir, "replay.json.gz")), &r)
			var all []string
			for _, x := range r.FirstPass {
				all = append(all, replayText(x.Record))
			}
			rolledBack := replayRolledBack[f.name]
			if rolledBack != "" && !slices.Contains(all, rolledBack) {
				t.Errorf("Debezium did not write %s", rolledBack)
			}
			for _, x := range r.Replays {
				var offset bytes.Buffer
				if err := json.Compact(&offset, x.Stored); err != nil {
					t.Fatal(err)
				}
				want := slices.DeleteFunc(slices.Clone(all[x.After+1:]), func(s string) bool { return s == rolledBack })
				covered := all[:x.After+1]
				got := replayFrom(t, c, files, offset.String())
				got = withoutAgain(got, covered, want)
				if !slices.Equal(got, want) {
					t.Errorf("from %s, which is after %s:\n got %s\nwant %s", offset.String(), covered[len(covered)-1],
						strings.Join(got, "\n     "), strings.Join(want, "\n     "))
				}
			}
			t.Logf("%d offsets", len(r.Replays))
		})
	}
}

// replayText is a record of replay.json as "table op id pos row", "-" for null.
func replayText(record []any) string {
	var words []string
	for _, x := range record {
		switch x := x.(type) {
		case nil:
			words = append(words, "-")
		case float64:
			words = append(words, fmt.Sprint(int64(x)))
		default:
			words = append(words, fmt.Sprint(x))
		}
	}
	return strings.Join(words, " ")
}

// replayFrom runs tail from a stored offset and returns its records in the form of replayText.
func replayFrom(t *testing.T, c *capture, files []string, offset string) []string {
	t.Helper()
	args := []string{"tail", "--config", filepath.Join(c.dir, "config.json"), "--lenient", "--from", offset, "--records", "--schemas=false"}
	for _, file := range files {
		args = append(args, "--binlog", file)
	}
	cmd := exec.Command(Binary(t), args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("from %s: %v\n%s", offset, err, stderr.String())
	}
	var texts []string
	for _, r := range sortTailed(t, c, out).records {
		texts = append(texts, replayed(t, r))
	}
	return texts
}

func replayed(t *testing.T, r TailRecord) string {
	t.Helper()
	p := r.payload(t)
	id := "-"
	if r.Key != nil {
		var key map[string]any
		mustJSON(t, []byte(r.keyText()), &key)
		for _, v := range key { // each of these tables has one key column
			id = replayText([]any{v})
		}
	}
	topic := r.Topic[strings.LastIndexByte(r.Topic, '.')+1:]
	switch {
	case p.DDL != nil:
		return fmt.Sprintf("%s SchemaChangeValue %s - -", r.Topic, id)
	case p.Status != "":
		return fmt.Sprintf("%s TransactionMetadataValue %s - -", topic, id)
	case r.Value == nil:
		return fmt.Sprintf("%s - %s - -", topic, id)
	default:
		return fmt.Sprintf("%s %s %s %d %d", topic, p.Op, id, p.Source.Pos, p.Source.Row)
	}
}

// withoutAgain leaves out what may be sent again at the beginning, because the offset does not cover it as a whole: the END of a
// transaction, whose offset is that of the last moment before the commit, and the first records of a row of which the last one,
// with the offset after the row, is still to come.
func withoutAgain(got, covered, want []string) []string {
	if len(got) <= len(want) || len(want) == 0 {
		if len(want) == 0 && len(got) == 1 && got[0] == covered[len(covered)-1] && strings.Contains(got[0], "TransactionMetadataValue") {
			return nil
		}
		return got
	}
	again := got[:len(got)-len(want)]
	end := len(again) == 1 && again[0] == covered[len(covered)-1] && strings.Contains(again[0], "TransactionMetadataValue")
	// The row's place is the end of its first record's text, and that of want[0].
	row := len(again) == 2 && strings.Contains(again[1], " - ") && slices.Equal(again, covered[len(covered)-2:]) &&
		placeText(again[0]) == placeText(want[0])
	if end || row {
		return got[len(again):]
	}
	return got
}

// placeText is the position and row of a record in the form of replayText.
func placeText(text string) string {
	words := strings.Fields(text)
	return strings.Join(words[max(0, len(words)-2):], " ")
}

// TestI5_RestartFromEveryStoredOffset reads the binlogs of the restart-* folders from each offset that the killed connectors stored.
func TestI5_RestartFromEveryStoredOffset(t *testing.T) {
	for _, name := range []string{"restart-mid-transaction", "restart-mid-transaction-small", "restart-mid-transaction-file-mode"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := readCapture(t, filepath.Join("testdata", "golden", name))
			files := c.unpacked(t)
			first := c.from
			if first == "" {
				first = startOfRun(t, filepath.Join(c.dir, "record-offsets-run1-first-last.jsonl.gz"))
			}
			all, offsets := restartRun(t, c, files, first)
			compareFirstLast(t, c, all, offsets)
			stored := storedOffsets(t, c.dir)
			if len(stored) < 5 {
				t.Fatalf("only %d offsets of the stream are stored", len(stored))
			}
			for _, offset := range stored {
				// The first record of the next row, if it is not its last, carries it too (I3).
				last := slices.Index(offsets, offset)
				if last < 0 {
					t.Errorf("no record of ours carries the offset %s, which was stored", offset)
					continue
				}
				got, _ := restartRun(t, c, files, offset)
				if !slices.Equal(got, all[last+1:]) {
					t.Errorf("from %s: %d records, want the last %d of %d; they begin with %v, want %v", offset, len(got), len(all)-last-1, len(all),
						got[:min(2, len(got))], all[last+1:min(last+3, len(all))])
				}
			}
			t.Logf("%d records, %d offsets", len(all), len(stored))
		})
	}
}

// restartRun returns what tail prints from an offset or position: what each record is about, and its offset.
func restartRun(t *testing.T, c *capture, files []string, from string) (what, offsets []string) {
	t.Helper()
	args := []string{"tail", "--config", filepath.Join(c.dir, "config.json"), "--lenient", "--from", from, "--records", "--schemas=false"}
	for _, file := range files {
		args = append(args, "--binlog", file)
	}
	cmd := exec.Command(Binary(t), args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		for _, r := range sortTailed(t, c, lines.Bytes()).records {
			what = append(what, r.what(t))
			offsets = append(offsets, r.source)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("from %s: %v\n%s", from, err, stderr.String())
	}
	return what, offsets
}

// startOfRun is where the snapshot of a run ended.
func startOfRun(t *testing.T, name string) string {
	t.Helper()
	from := ""
	for line := range bytes.Lines(gunzip(t, name)) {
		_, source := sequenceLine(t, line)
		if m := members(t, source); m["server_id"] == nil {
			from = fmt.Sprintf("%v:%.0f", m["file"], m["pos"])
		}
	}
	return from
}

// compareFirstLast compares the first and last records of runs of which no more was kept: their places and offsets.
func compareFirstLast(t *testing.T, c *capture, what, offsets []string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(c.dir, "record-offsets-run*-first-last.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	ours := map[string]string{}
	for i, w := range what {
		ours[w] = offsets[i]
	}
	compared := 0
	for _, name := range names {
		for line := range bytes.Lines(gunzip(t, name)) {
			var e struct {
				Key    json.RawMessage
				Op     *string
				Source json.RawMessage
			}
			mustJSON(t, line, &e)
			topic, source := sequenceLine(t, line)
			if e.Op == nil || e.Source == nil || members(t, source)["server_id"] == nil {
				continue // a tombstone, or of the snapshot
			}
			key, value := string(e.Key), fmt.Sprintf(`{"op":%q,"source":%s}`, *e.Op, e.Source)
			r := TailRecord{Topic: topic, Key: &key, Value: &value}
			w := r.what(t)
			switch offset, ok := ours[w]; {
			case !ok:
				t.Errorf("missing: %s", w)
			case *e.Op != "d" && offset != source: // of a delete the tombstone carries it
				t.Errorf("%s: offset\n got %s\nwant %s", w, offset, source)
			}
			compared++
		}
	}
	if len(names) > 0 && compared < 50 {
		t.Errorf("only %d records were compared", compared)
	}
}
