package bench

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/it"
)

// TestSideBySide measures, with the sizes of the environment, and writes the report. A file has what is known so far all the time.
func TestSideBySide(t *testing.T) {
	o, err := FromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	if o.Report == "" {
		fmt.Print("\n", Run(t, o, nil).Markdown(), "\n")
		return
	}
	Run(t, o, func(r *Report) {
		if err := os.WriteFile(o.Report, []byte(r.Markdown()), 0o644); err != nil {
			t.Fatal(err)
		}
	})
}

// TestSmoke proves that every workload and every tool runs, in every format, so small that the numbers say nothing.
func TestSmoke(t *testing.T) {
	forms := func(text string) []form { return (&environment{}).forms("", text) }
	o := Options{
		Workloads: workloadNames, Tools: toolNames, W1: forms("json/snappy,json-schema/none,avro/lz4"), Others: forms("json/none"), Rounds: 1, Warm: 1,
		Rows: map[string]int{
			"W1": 2000, "W1schema": 500, "W2": 1000, "W3": 200_000, "W3by10": 1000, "W6": 200, "W7": 20, "W8": 80, "start": 100, "growth": 2000,
		},
		Statement: 100, Tables: 20, Partitions: 3, Rates: []int{100, 0}, Seconds: 4, Idle: 1, Debezium: it.Properties{}, Tidemark: it.Properties{},
	}
	r := Run(t, o, nil)
	// What warms the broker makes no line. Neither other format is written by the program by hand. Of what is written while it is read there is no floor. Exactly-once is
	// measured in W1 and W2, and in W5 at one rate.
	if got, want := len(r.lines), 4+2*3+2*4+2*3+1+4+2*3+3*4+2*3+3; got != want {
		t.Errorf("%d lines, want %d", got, want)
	}
	for _, s := range r.Growth {
		if len(s.points) < 3 {
			t.Errorf("%d points of %s", len(s.points), s.what)
		}
	}
	if got, want := len(r.Growth), 7; got != want {
		t.Errorf("%d series of growth, want %d", got, want)
	}
	t.Logf("\n%s", r.Markdown())
}

func TestCPUOf(t *testing.T) {
	before, err := cpuOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); time.Since(begun) < 50*time.Millisecond; {
		runtime.KeepAlive(before)
	}
	after, err := cpuOf(os.Getpid())
	if err != nil || after <= before || after > before+time.Duration(runtime.NumCPU())*time.Minute {
		t.Errorf("%v before, %v after, %v", before, after, err)
	}
	if _, err := cpuOf(1 << 23); err == nil {
		t.Error("a process that cannot be has a time")
	}
}

func TestFit(t *testing.T) {
	straight := &series{what: "columns"}
	for _, x := range []float64{10, 20, 100} {
		straight.points = append(straight.points, &point{x: x, costs: []float64{3 + 2*x, 1, 1000}})
	}
	at0, slope, largest := straight.fit()
	if math.Abs(at0-3) > 1e-9 || math.Abs(slope-2) > 1e-9 || largest > 1e-9 {
		t.Errorf("got %v + %v x, furthest %v; want 3 + 2 x", at0, slope, largest)
	}
	square := &series{}
	for _, x := range []float64{10, 20, 50, 100, 200} {
		square.points = append(square.points, &point{x: x, costs: []float64{x * x}})
	}
	if _, _, largest := square.fit(); largest < mostResidual {
		t.Errorf("a square is %v from a straight line", largest)
	}
	level := &series{flat: true, points: []*point{{x: 1, costs: []float64{90}}, {x: 10, costs: []float64{100}}, {x: 1000, costs: []float64{110}}}}
	if got := level.spread(); math.Abs(got-0.1) > 1e-9 {
		t.Errorf("got %v from the mean, want 0.1", got)
	}
}

func TestIDOf(t *testing.T) {
	for _, c := range []struct {
		key  string
		want int64
	}{
		{`{"id":17}`, 17},
		{`{"schema":{"type":"struct","fields":[{"type":"int64","optional":false,"field":"id"}],"optional":false},"payload":{"id":18}}`, 18},
		{"\x00\x00\x00\x00\x05\xd8\x04", 300},
	} {
		if got, ok := idOf([]byte(c.key)); !ok || got != c.want {
			t.Errorf("%q: got %d, %v; want %d", c.key, got, ok, c.want)
		}
	}
	for _, key := range []string{"", "\x00\x00\x00\x00\x05", `{"key":1}`} {
		if got, ok := idOf([]byte(key)); ok {
			t.Errorf("%q: got %d", key, got)
		}
	}
}

func TestReport(t *testing.T) {
	r := &Report{
		Options:  Options{Rounds: 3, Statement: 100, Partitions: 3, Workloads: []string{"W4", "W1"}, Rows: map[string]int{"W1": 100}, W1: []form{{"json", "none"}}},
		Versions: "MySQL 9.", Growth: []*series{
			{what: "tables", flat: true, points: []*point{{1, []float64{1}, 3}, {10, []float64{1}, 2}, {100, []float64{2}, 1}}},
			{what: "columns", points: []*point{{1, []float64{1}, 3}, {10, nil, 0}}},
		},
	}
	for i, rate := range []float64{30, 10, 20} {
		r.add(line{"W1", "json", "none", "tidemark"}, Result{Rate: rate * 10, CPU: rate / 20, Used: 2, RSS: 50e6})
		r.add(line{"W1", "json", "none", exactly}, Result{Rate: rate * 9.5, CPU: rate / 20 * 1.1, Used: 2, RSS: 50e6})
		r.add(line{"W5 200 a second", "json", "none", exactly}, Result{P50: time.Millisecond, P99: 49 * time.Millisecond})
		r.add(line{"W1", "json", "none", "debezium"}, Result{Rate: rate, CPU: rate, Used: 2, RSS: 1000e6})
		r.add(line{"W1", "json", "none", "floor"}, Result{Rate: rate, CPU: rate, Used: 0.5, RSS: 1000e6})
		r.add(line{"W4 SIGKILL", "json", "none", "tidemark"}, Result{
			New: time.Duration(i+1) * 101 * time.Millisecond, Repeated: new(int64(i)), Lost: new(int64(0)), Unstored: new(int64(1)),
		})
	}
	var rows []string
	for l := range strings.Lines(r.Markdown()) {
		if strings.HasPrefix(l, "| ") && !strings.Contains(l, "not measured") {
			rows = append(rows, strings.TrimSpace(l))
		}
	}
	want := []string{
		"| | what | measured | bound | |",
		"| 1 | W1 json, none: CPU a row : Debezium's | 0.050 | ≤ 0.100 | held |",
		"| 1 | W1 json, none: rows/s : Debezium's | 10.0 | ≥ 6.0 | held |",
		"| 2 | W1 json, none: CPU a row : the floor's | – | ≤ 2.000 | too short: 2 and 0.5 CPU-s |",
		"| 3 | W1 json, none: peak RSS, MB (Debezium's: 1000) | 50 | ≤ 80 | held |",
		"| 3 | W4 SIGKILL json, none: peak RSS, MB | 0 | ≤ 80 | held |",
		"| 4 | W4 SIGKILL json, none: start to the first record, to the first new row | 0 ms, 202 ms | reported |  |",
		"| 4 | W4 SIGKILL json, none: rows repeated | 1 | reported |  |",
		"| 4 | W4 SIGKILL json, none: rows repeated that were before the stored offset | 1 | ≤ 0 | **not held** |",
		"| 4 | W4 SIGKILL json, none: rows lost | 0 | ≤ 0 | held |",
		"| 6 | flat in tables: furthest from the mean, % | 50.0 | ≤ 15.0 | **not held** |",
		"| 7 | W1 json, none: exactly-once : at-least-once, rows/s | 0.950 | ≥ 0.900 | held |",
		"| 7 | W1 json, none: exactly-once : at-least-once, CPU a row | 1.100 | ≤ 1.050 | **not held** |",
		"| 7 | W5 json, none: 200 a second with exactly-once, until it is committed, p99, ms | 49.0 | ≤ 50.0 | held |",
		"| workload | format | compression | tool | rows/s | CPU-s/M rows | its rounds | CPU-s measured | peak RSS, MB | rows/s : Debezium | CPU : Debezium | CPU : canal | CPU : floor | also |",
		"| W1 | json | none | tidemark | 200 | 1.00 | 0.50–1.50 | 2.0 | 50 | 10 | 0.05 | – | 0.05 |  |",
		"| W1 | json | none | exactly-once | 190 | 1.10 | 0.55–1.65 | 2.0 | 50 | 9.5 | 0.055 | – | 0.055 |  |",
		"| W5 200 a second | json | none | exactly-once | – | – | – | – | 0 | – | – | – | – | p50 1 ms, p99 49 ms |",
		"| W1 | json | none | debezium | 20 | 20.00 | 10.00–30.00 | 2.0 | 1000 | 1 | 1 | – | 1 |  |",
		"| W1 | json | none | floor | 20 | 20.00 | 10.00–30.00 | 0.5 | 1000 | 1 | 1 | – | 1 |  |",
		"| W4 SIGKILL | json | none | tidemark | – | – | – | – | 0 | – | – | – | – | first new record 202 ms, 1 repeated, 0 lost, 1 were there behind the stored offset |",
		"| of | unit | cost at size | fit | largest residual | furthest from the mean | shortest, CPU-s |",
		"| tables |  | 1: 1, 10: 1, 100: 2 | 0.889 +0.333 × log10(tables) | 22.2 % | 50.0 % | 1.0 |",
		"| columns |  | 1: 1 | – | – | – | – |",
	}
	if !slices.Equal(rows, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(rows, "\n"), strings.Join(want, "\n"))
	}
}

func TestPercentile(t *testing.T) {
	var all []time.Duration
	for i := range 1000 {
		all = append(all, time.Duration(999-i))
	}
	if p50, p99 := percentile(all, 0.5), percentile(all, 0.99); p50 != 500 || p99 != 990 {
		t.Errorf("got %d and %d, want 500 and 990", p50, p99)
	}
	if percentile(nil, 0.5) != 0 {
		t.Error("a percentile of nothing")
	}
}

func TestFromEnvironment(t *testing.T) {
	t.Setenv("TIDEMARK_BENCH_ROWS", "2000")
	t.Setenv("TIDEMARK_BENCH_W2_ROWS", "7")
	t.Setenv("TIDEMARK_BENCH_WARM", "3")
	t.Setenv("TIDEMARK_BENCH_TOOLS", "debezium,tidemark")
	t.Setenv("TIDEMARK_BENCH_DEBEZIUM", "poll.interval.ms=20,max.batch.size=4096")
	o, err := FromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	if o.Warm != 3 || o.Rows["W1"] != 8000 || o.Rows["W2"] != 7 || o.Rows["W6"] != 600 || o.Rows["W1schema"] != 2000 || !slices.Equal(o.Tools, []string{"debezium", "tidemark"}) ||
		!slices.Equal(o.Rates, []int{200, 5000, 0}) || !slices.Contains(o.W1, form{"json-schema", "snappy"}) ||
		o.Debezium["poll.interval.ms"] != "20" || o.Debezium["max.batch.size"] != "4096" {
		t.Errorf("got %+v", o)
	}
	t.Setenv("TIDEMARK_BENCH_ROUNDS", "none")
	t.Setenv("TIDEMARK_BENCH_WORKLOADS", "W1,W10")
	t.Setenv("TIDEMARK_BENCH_FORMS", "json/none,json")
	if _, err := FromEnvironment(); err == nil || !strings.Contains(err.Error(), "ROUNDS") || !strings.Contains(err.Error(), "W10") || !strings.Contains(err.Error(), `FORMS has "json"`) {
		t.Errorf("got %v, want all faults", err)
	}
}
