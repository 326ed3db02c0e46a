package sim

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// mutant is a line of the product, broken, with the checks of which one finds it.
type mutant struct {
	name, file, finds string // finds is a regular expression
	from, to          string
}

// trackers are broken in offset/tracker.go. What counts too many acknowledgements the tracker itself notices, and then nothing goes on any
// more.
var trackers = []mutant{
	{"the prefix moves past a group that lacks something", "offset/tracker.go", "C6", "if g.unacked > 0 {\n\t\t\tbreak\n\t\t}", "if g.unacked > 1<<30 {\n\t\t\tbreak\n\t\t}"},
	{"an acknowledgement counts twice", "offset/tracker.go", "C12", "t.group(group).unacked -= n\n", "t.group(group).unacked = max(0, unacked-2*n)\n\tn = unacked - t.group(group).unacked\n"},
	{"a boundary holds at once", "offset/tracker.go", "C6", "if t.unacked == 0 {\n\t\tt.safe, t.hasSafe = after, true", "if t.unacked >= 0 {\n\t\tt.safe, t.hasSafe = after, true"},
	{"the offset counts before its records", "offset/tracker.go", "C6", "g.after = after\n", "g.after = after\n\tt.safe, t.hasSafe = after, true\n"},
}

// rules are those of exactly-once delivery.
var rules = []mutant{
	{
		"the offset is in a transaction of its own", "emitter/exactlyoncecut.go", "C[48]",
		"\t\td.producer.Begin(time.Now())\n\t\td.putOffset(entries, after)", "\t\td.producer.Cut(func(error) {})\n\t\td.producer.Begin(time.Now())\n\t\td.putOffset(entries, after)",
	},
	{
		"what is not committed counts when the offset is read", "emitter/kafka/compacted.go", "C[1247]",
		"kgo.FetchIsolationLevel(kgo.ReadCommitted())", "kgo.FetchIsolationLevel(kgo.ReadUncommitted())",
	},
	{
		"the offset is that of what was there before", "emitter/exactlyoncehand.go", "C[48]",
		"\td.last, d.waits = after, time.Time{}\n", "\tif d.waits = (time.Time{}); d.count%2 == 0 {\n\t\td.last = after\n\t}\n",
	},
}

// TestBrokenTrackerIsFound runs the simulation of builds in which a line of the tracker is broken: one of them, and all when
// many seeds are asked for.
func TestBrokenTrackerIsFound(t *testing.T) { findAll(t, trackers) }

// TestBrokenExactlyOnceIsFound does the same with the rules of exactly-once delivery.
func TestBrokenExactlyOnceIsFound(t *testing.T) { findAll(t, rules) }

func findAll(t *testing.T, all []mutant) {
	if os.Getenv("SIM_SEEDS") == "" {
		all = all[:1]
	}
	for _, m := range all {
		t.Run(m.name, func(t *testing.T) { m.find(t) })
	}
}

// find breaks the line and runs some seeds.
func (m *mutant) find(t *testing.T) {
	source, err := filepath.Abs(filepath.Join("../..", m.file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(text), m.from) != 1 {
		t.Fatalf("%s does not have this once:\n%s", m.file, m.from)
	}
	folder := t.TempDir()
	broken := filepath.Join(folder, filepath.Base(source))
	overlay, _ := json.Marshal(map[string]map[string]string{"Replace": {source: broken}})
	if err := os.WriteFile(broken, []byte(strings.Replace(string(text), m.from, m.to, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "overlay.json"), overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "test", "-count=1", "-timeout=5m", "-overlay", filepath.Join(folder, "overlay.json"), "-run", "^TestSim$", ".")
	cmd.Env = append(os.Environ(), "SIM_SEEDS=20", "SIM_FROM=1")
	out, err := cmd.CombinedOutput()
	if err == nil || !regexp.MustCompile("FAILED "+m.finds+":").Match(out) {
		t.Errorf("it is not found (%v):\n%.3000s", err, out)
	}
}
