package sim

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mutants are lines of the tracker, broken, with the check that finds them. What counts too many acknowledgements the tracker
// itself notices, and then nothing goes on any more.
var mutants = []struct{ name, finds, from, to string }{
	{"the prefix moves past a group that lacks something", "C6", "if g.unacked > 0 {\n\t\t\tbreak\n\t\t}", "if g.unacked > 1<<30 {\n\t\t\tbreak\n\t\t}"},
	{"an acknowledgement counts twice", "C12", "t.group(group).unacked -= n\n", "t.group(group).unacked = max(0, unacked-2*n)\n\tn = unacked - t.group(group).unacked\n"},
	{"a boundary holds at once", "C6", "if t.unacked == 0 {\n\t\tt.safe, t.hasSafe = after, true", "if t.unacked >= 0 {\n\t\tt.safe, t.hasSafe = after, true"},
	{"the offset counts before its records", "C6", "g.after = after\n", "g.after = after\n\tt.safe, t.hasSafe = after, true\n"},
}

// TestBrokenTrackerIsFound runs the simulation of builds in which a line of the tracker is broken: one of them, and all when
// many seeds are asked for.
func TestBrokenTrackerIsFound(t *testing.T) {
	source, err := filepath.Abs("../../offset/tracker.go")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	some := mutants[:1]
	if os.Getenv("SIM_SEEDS") != "" {
		some = mutants
	}
	for _, m := range some {
		t.Run(m.name, func(t *testing.T) {
			if strings.Count(string(text), m.from) != 1 {
				t.Fatalf("offset/tracker.go does not have this once:\n%s", m.from)
			}
			folder := t.TempDir()
			broken := filepath.Join(folder, "tracker.go")
			overlay, _ := json.Marshal(map[string]map[string]string{"Replace": {source: broken}})
			if err := os.WriteFile(broken, []byte(strings.Replace(string(text), m.from, m.to, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, "overlay.json"), overlay, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("go", "test", "-count=1", "-timeout=5m", "-overlay", filepath.Join(folder, "overlay.json"), "-run", "^TestSim$", ".")
			cmd.Env = append(os.Environ(), "SIM_SEEDS=10")
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "FAILED "+m.finds) {
				t.Errorf("it is not found (%v):\n%.3000s", err, out)
			}
		})
	}
}
