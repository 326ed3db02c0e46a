package bench

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/it"
)

// Result is what one run of a tool has shown. What was not measured is zero or nil.
type Result struct {
	Rate     float64       // row changes a second
	CPU      float64       // CPU seconds a million row changes
	Used     float64       // CPU seconds that were measured
	RSS      int64         // the most, in bytes
	First    time.Duration // from the start to the first record, and from a restart to the first after it
	New      time.Duration // from a restart to the first record of a row that was not there before
	Repeated *int64        // records that came again after a restart
	Lost     *int64        // rows that never came
	Behind   int64         // bytes of a transaction that a start has to read again
	Unstored *int64        // records that were there at the stop, behind the stored offset
	Idle     *float64      // part of a core
	P50, P99 time.Duration
	Also     string
}

// line is what a line of the table is about.
type line struct {
	what, format, compression, tool string
}

// Report is all results of a run.
type Report struct {
	Options  Options
	Versions string // of what is beside the machine
	Growth   []*series

	lines   []line // in order
	results map[line][]Result
}

func (r *Report) add(l line, one Result) {
	if r.results == nil {
		r.results = map[line][]Result{}
	}
	if r.results[l] == nil {
		r.lines = append(r.lines, l)
	}
	r.results[l] = append(r.results[l], one)
}

// medians are the medians of each number by itself, over the rounds that have it.
func medians(all []Result) Result {
	return Result{
		Rate:     median(all, func(r Result) float64 { return r.Rate }),
		CPU:      median(all, func(r Result) float64 { return r.CPU }),
		Used:     median(all, func(r Result) float64 { return r.Used }),
		RSS:      median(all, func(r Result) int64 { return r.RSS }),
		First:    median(all, func(r Result) time.Duration { return r.First }),
		New:      median(all, func(r Result) time.Duration { return r.New }),
		Behind:   median(all, func(r Result) int64 { return r.Behind }),
		P50:      median(all, func(r Result) time.Duration { return r.P50 }),
		P99:      median(all, func(r Result) time.Duration { return r.P99 }),
		Repeated: medianOf(all, func(r Result) *int64 { return r.Repeated }),
		Lost:     medianOf(all, func(r Result) *int64 { return r.Lost }),
		Unstored: medianOf(all, func(r Result) *int64 { return r.Unstored }),
		Idle:     medianOf(all, func(r Result) *float64 { return r.Idle }),
		Also:     all[len(all)-1].Also,
	}
}

func medianOf[N int64 | float64](all []Result, of func(Result) *N) *N {
	var values []N
	for _, r := range all {
		if v := of(r); v != nil {
			values = append(values, *v)
		}
	}
	if len(values) == 0 {
		return nil
	}
	return new(middle(values))
}

func median[N int64 | float64 | time.Duration](all []Result, of func(Result) N) N {
	var values []N
	for _, r := range all {
		if v := of(r); v != 0 {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return 0
	}
	return middle(values)
}

// middle is the middle one, and of an even number the smaller of the two in the middle.
func middle[N int64 | float64 | time.Duration](values []N) N {
	slices.Sort(values)
	return values[(len(values)-1)/2]
}

// of are the medians of a line, if it was measured.
func (r *Report) of(l line) (Result, bool) {
	all := r.results[l]
	if len(all) == 0 {
		return Result{}, false
	}
	return medians(all), true
}

// Markdown is the report as it stands in docs/benchmarks.md: the machine, the sizes, the criteria, all results, and how costs grow.
func (r *Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s. %s\n\n", machine(), r.Versions)
	fmt.Fprintf(&b, "Medians of %d interleaved rounds; %s; statements of at most %d rows in W1; %d tables in W8; %d partitions.%s%s\n\n",
		r.Options.Rounds, r.sizes(), r.Options.Statement, r.Options.Tables, r.Options.Partitions,
		more("Debezium", r.Options.Debezium), more("Tidemark", r.Options.Tidemark))
	b.WriteString("### Criteria\n\n| | what | measured | bound | |\n|---|---|--:|--:|---|\n")
	for _, c := range r.criteria() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", c.number, c.what, c.measured, c.bound, c.verdict)
	}
	b.WriteString("\n### All results\n\n| workload | format | compression | tool | rows/s | CPU-s/M rows | its rounds | CPU-s measured | peak RSS, MB " +
		"| rows/s : Debezium | CPU : Debezium | CPU : canal | CPU : floor | also |\n")
	b.WriteString("|---|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|\n")
	for _, l := range r.lines {
		one := medians(r.results[l])
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s | %.0f", l.what, l.format, l.compression, l.tool,
			orNone("%.0f", one.Rate), orNone("%.2f", one.CPU), rounds(r.results[l]), orNone("%.1f", one.Used), float64(one.RSS)/1e6)
		fmt.Fprintf(&b, " | %s", ratio(one.Rate, r.beside(l, "debezium").Rate))
		for _, tool := range []string{"debezium", "canal", "floor"} {
			fmt.Fprintf(&b, " | %s", ratio(one.CPU, r.beside(l, tool).CPU))
		}
		fmt.Fprintf(&b, " | %s |\n", one.also())
	}
	if len(r.Growth) > 0 {
		b.WriteString("\n### Growth\n\n| of | unit | cost at size | fit | largest residual | furthest from the mean | shortest, CPU-s |\n" +
			"|---|---|---|---|--:|--:|--:|\n")
	}
	for _, s := range r.Growth {
		var points []string
		for _, p := range s.points {
			if len(p.costs) > 0 {
				points = append(points, fmt.Sprintf("%.0f: %.3g", p.x, p.y()))
			}
		}
		fit, largest, spread := "–", "–", "–"
		if s.complete() {
			_, _, most := s.fit()
			fit, largest, spread = s.line(), fmt.Sprintf("%.1f %%", 100*most), "–"
			if s.flat {
				spread = fmt.Sprintf("%.1f %%", 100*s.spread())
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", s.what, s.unit, strings.Join(points, ", "), fit, largest, spread, orNone("%.1f", s.shortest()))
	}
	return b.String()
}

// beside is the result of another tool of the same line, all zero without one.
func (r *Report) beside(l line, tool string) Result {
	l.tool = tool
	one, _ := r.of(l)
	return one
}

// rounds is what each round gave of CPU a row, from the least to the most.
func rounds(all []Result) string {
	var values []float64
	for _, r := range all {
		if r.CPU > 0 {
			values = append(values, r.CPU)
		}
	}
	if len(values) == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f–%.2f", slices.Min(values), slices.Max(values))
}

func more(tool string, settings it.Properties) string {
	if len(settings) == 0 {
		return ""
	}
	var all []string
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		all = append(all, key+"="+settings[key])
	}
	return fmt.Sprintf(" %s also has %s.", tool, strings.Join(all, ", "))
}

func (r *Report) sizes() string {
	var all []string
	for _, name := range r.Options.inOrder() {
		if n, ok := r.Options.Rows[name]; ok {
			all = append(all, fmt.Sprintf("%s %d", title(name), n))
		}
		if n := r.Options.Rows["W1schema"]; name == "W1" && n != 0 {
			all = append(all, fmt.Sprintf("W1 with schemas %d", n))
		}
	}
	return "row changes: " + strings.Join(all, ", ")
}

func orNone(format string, v float64) string {
	if v == 0 {
		return "–"
	}
	return fmt.Sprintf(format, v)
}

func ratio(v, to float64) string {
	if v == 0 || to == 0 {
		return "–"
	}
	return fmt.Sprintf("%.3g", v/to)
}

// also is what has no column.
func (r Result) also() string {
	var all []string
	say := func(what string, d time.Duration) {
		if d > 0 {
			all = append(all, what+" "+milliseconds(d))
		}
	}
	say("p50", r.P50)
	say("p99", r.P99)
	say("first record", r.First)
	say("first new record", r.New)
	if r.Repeated != nil {
		all = append(all, fmt.Sprintf("%d repeated", *r.Repeated))
	}
	if r.Lost != nil {
		all = append(all, fmt.Sprintf("%d lost", *r.Lost))
	}
	if r.Unstored != nil {
		all = append(all, fmt.Sprintf("%d were there behind the stored offset", *r.Unstored))
	}
	if r.Idle != nil {
		all = append(all, fmt.Sprintf("%.3f %% of a core", 100**r.Idle))
	}
	if r.Also != "" {
		all = append(all, r.Also)
	}
	return strings.Join(all, ", ")
}

// milliseconds is a time with three digits, or with all before the point.
func milliseconds(d time.Duration) string {
	if ms := float64(d) / 1e6; ms < 100 {
		return fmt.Sprintf("%.3g ms", ms)
	}
	return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
}

// text is one run's result in a line.
func (r Result) text(tool string) string {
	return fmt.Sprintf("%s %s rows/s, %s CPU-s/M, %.0f MB, %s", tool, orNone("%.0f", r.Rate), orNone("%.2f", r.CPU), float64(r.RSS)/1e6, r.also())
}

// machine says what this machine is.
func machine() string {
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	kib, _ := strconv.ParseFloat(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB"), 64)
	model := field("/proc/cpuinfo", "model name")
	if model == "" {
		model = runtime.GOARCH
	}
	return fmt.Sprintf("%d cores of %s, %.0f GB, Linux %s", runtime.NumCPU(), model, kib*1024/1e9, strings.TrimSpace(string(kernel)))
}

// field is the first value with a name in one of the lists of /proc, "" without one.
func field(path, name string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for l := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// versions says what all is measured with.
func (s *stage) versions(t testing.TB) string {
	t.Helper()
	broker, brokerJava := s.kafka.Versions(t)
	text := fmt.Sprintf("MySQL %s; Kafka %s on Java %s", s.mysql.Query(t, "SELECT VERSION()")[0][0], broker, brokerJava)
	if slices.Contains(s.options.Tools, "debezium") {
		java := "?"
		if said, err := exec.Command("java", "-version").CombinedOutput(); err == nil {
			if m := regexp.MustCompile(`"([^"]+)"`).FindSubmatch(said); m != nil {
				java = string(m[1])
			}
		}
		folder := it.Image(t, "connect")
		jar := func(prefix string) string {
			found, _ := filepath.Glob(filepath.Join(folder, prefix+"-[0-9]*.jar"))
			if len(found) == 0 {
				return "?"
			}
			return strings.TrimSuffix(strings.TrimPrefix(filepath.Base(found[0]), prefix+"-"), ".jar")
		}
		text += fmt.Sprintf("; Debezium %s on Kafka Connect %s and Java %s", jar("debezium-connector-mysql"), jar("connect-runtime"), java)
	}
	tidemark := "?"
	if said, err := exec.Command("git", "describe", "--tags", "--always", "--dirty").Output(); err == nil {
		tidemark = strings.TrimSpace(string(said))
	}
	return fmt.Sprintf("%s; Tidemark %s with %s.", text, tidemark, runtime.Version())
}
