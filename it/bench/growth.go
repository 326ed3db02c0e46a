package bench

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/it"
)

// series is how the cost of a row grows with something.
type series struct {
	what   string
	unit   string // of the cost
	flat   bool   // it has to stay the same; else it has to grow in a straight line at most
	points []*point
}

// point is one size and what it has cost.
type point struct {
	x     float64
	costs []float64 // one a round
	used  float64   // the fewest CPU seconds of a round that were measured
}

// note adds what a round has cost, and what was measured for that. A round that was too short to be measured says nothing.
func (p *point) note(cost, used float64) {
	if cost <= 0 {
		return
	}
	if p.used == 0 || used < p.used {
		p.used = used
	}
	p.costs = append(p.costs, cost)
}

func (p *point) y() float64 { return middle(append([]float64(nil), p.costs...)) }

// fit is the straight line through the points whose largest parts of it are missed least, by least squares: a residual counts as part
// of the cost, so that the small sizes say as much as the large ones. Of what has to be flat, the line is over the logarithm of the size.
func (s *series) fit() (at0, slope, largest float64) {
	var n, x, y, xx, xy float64
	for _, p := range s.points {
		w := 1 / (p.y() * p.y())
		n, x, y, xx, xy = n+w, x+w*s.on(p.x), y+w*p.y(), xx+w*s.on(p.x)*s.on(p.x), xy+w*s.on(p.x)*p.y()
	}
	slope = (n*xy - x*y) / (n*xx - x*x)
	at0 = (y - slope*x) / n
	for _, p := range s.points {
		largest = max(largest, math.Abs(p.y()-at0-slope*s.on(p.x))/p.y())
	}
	return at0, slope, largest
}

// on is where a size lies on the axis.
func (s *series) on(x float64) float64 {
	if s.flat {
		return math.Log10(x)
	}
	return x
}

// spread is how far the points lie from their mean, as part of it.
func (s *series) spread() float64 {
	var mean, largest float64
	for _, p := range s.points {
		mean += p.y() / float64(len(s.points))
	}
	for _, p := range s.points {
		largest = max(largest, math.Abs(p.y()-mean)/mean)
	}
	return largest
}

// complete says whether each size was measured.
func (s *series) complete() bool {
	for _, p := range s.points {
		if len(p.costs) == 0 {
			return false
		}
	}
	return len(s.points) > 2
}

// shortest is the fewest CPU seconds that a point was measured with.
func (s *series) shortest() float64 {
	var least float64
	for i, p := range s.points {
		if i == 0 || p.used < least {
			least = p.used
		}
	}
	return least
}

// line is the fit as text.
func (s *series) line() string {
	at0, slope, _ := s.fit()
	variable := s.what
	if s.flat {
		variable = "log10(" + s.what + ")"
	}
	return fmt.Sprintf("%.3g %+.3g × %s", at0, slope, variable)
}

// growth lets Tidemark alone read workloads of several sizes of one thing.
func (s *stage) growth(t *testing.T) {
	t.Helper()
	n := s.options.Rows["growth"]
	inserts := func(rows, size int) func(testing.TB, *workload) {
		return func(t testing.TB, w *workload) {
			t.Helper()
			w.rows = rows
			w.make(t, s.mysql, "orders", orders)
			w.inserts(t, s.mysql, size, order("id"))
		}
	}

	rows := &series{what: "rows", unit: "CPU-s in all"}
	var writes []func(testing.TB, *workload)
	for _, count := range []int{n / 4, n / 2, n, 2 * n} {
		rows.points = append(rows.points, &point{x: float64(count)})
		writes = append(writes, inserts(count, 100))
	}
	s.grow(t, rows, writes, func(_ *workload, reached []sample) (float64, float64) {
		return reached[2].cpu.Seconds(), reached[2].cpu.Seconds()
	})

	columns := &series{what: "columns", unit: "CPU-s/M rows"}
	writes = nil
	for _, count := range []int{10, 20, 50, 100, 200} {
		columns.points = append(columns.points, &point{x: float64(count)})
		writes = append(writes, func(t testing.TB, w *workload) {
			t.Helper()
			w.rows = n * 20 / count
			definition, values := wide(count)
			w.make(t, s.mysql, "wide", definition)
			w.inserts(t, s.mysql, 100, values)
		})
	}
	s.grow(t, columns, writes, perRow)

	size := &series{what: "bytes of a row", unit: "CPU-s/M rows"}
	writes = nil
	for _, count := range []int{100, 300, 1000, 3000, 10_000} {
		size.points = append(size.points, &point{x: float64(count)})
		writes = append(writes, func(t testing.TB, w *workload) {
			t.Helper()
			w.rows = n * 1000 / max(count, 500)
			w.make(t, s.mysql, "texts", "(id BIGINT PRIMARY KEY, body TEXT)")
			w.inserts(t, s.mysql, 100, fmt.Sprintf("id, LEFT(REPEAT(CONCAT('The parcel of customer ', id, ' is with the neighbour. '), %d), %d)",
				count/40+1, count))
		})
	}
	s.grow(t, size, writes, perRow)

	tables := &series{what: "tables", unit: "CPU-s/M rows", flat: true}
	writes = nil
	for _, count := range []int{1, 10, 100, 1000} {
		tables.points = append(tables.points, &point{x: float64(count)})
		writes = append(writes, func(t testing.TB, w *workload) {
			t.Helper()
			w.rows = max(n, 200*count)
			w.tables = nil
			for i := range count {
				w.tables = append(w.tables, fmt.Sprintf("t%05d", i))
				s.mysql.Exec(t, "CREATE TABLE "+w.database+"."+w.tables[i]+" "+orders)
			}
			w.begin(t, s.mysql)
			w.inserts(t, s.mysql, 100, order("id"))
		})
	}
	s.grow(t, tables, writes, perRow)

	// Below a hundred rows it is the transaction itself that costs, which W2 and W3 by 10 tell.
	transaction := &series{what: "rows of a transaction", unit: "CPU-s/M rows", flat: true}
	writes = nil
	for _, count := range []int{100, 1000, 10_000, 100_000, n} {
		if count > n || count == n && n <= 100_000 && len(writes) > 2 {
			continue
		}
		transaction.points = append(transaction.points, &point{x: float64(count)})
		writes = append(writes, inserts(n, count))
	}
	s.grow(t, transaction, writes, perRow)

	s.lag(t, n)
	s.intervals(t, n)
}

// perRow is what a row costs in the second half, and what that half has used.
func perRow(w *workload, reached []sample) (cost, used float64) {
	var r Result
	r.rate(w, reached[1], reached[2])
	return r.CPU, r.Used
}

// grow writes a workload for each point of a series and reads them in turns.
func (s *stage) grow(t *testing.T, one *series, writes []func(testing.TB, *workload), cost func(*workload, []sample) (cost, used float64)) {
	t.Helper()
	s.report.Growth = append(s.report.Growth, one)
	var all []*workload
	for i, write := range writes {
		w := s.grown(t, one, i)
		write(t, w)
		w.records = w.rows
		w.settle(t, s.mysql)
		all = append(all, w)
	}
	for round := range s.options.Rounds {
		for i, w := range all {
			s.grew(t, one, i, round, w, cost)
		}
	}
	for _, w := range all {
		s.mysql.Exec(t, "DROP DATABASE "+w.database)
	}
	s.mysql.Exec(t, "FLUSH BINARY LOGS")
	s.mysql.Exec(t, "PURGE BINARY LOGS TO '"+now(t, s.mysql).file+"'")
}

// grown is a workload without tables for a point of a series.
func (s *stage) grown(t testing.TB, one *series, i int) *workload {
	t.Helper()
	w := &workload{name: "growth", database: "g_" + strings.ReplaceAll(one.what, " ", "_") + strconv.Itoa(i)}
	s.mysql.Exec(t, "CREATE DATABASE "+w.database)
	return w
}

// grew reads a workload and notes what a point has cost.
func (s *stage) grew(t *testing.T, one *series, i, round int, w *workload, cost func(*workload, []sample) (cost, used float64)) {
	t.Helper()
	p := one.points[i]
	t.Run(fmt.Sprintf("growth/%s/%.0f/%d", one.what, p.x, round+1), func(t *testing.T) {
		reached := s.read(t, w, 1, int64(w.records)/2, int64(w.records))
		spent, used := cost(w, reached)
		p.note(spent, used)
		t.Logf("%.0f %s: %.3g %s", p.x, one.what, spent, one.unit)
	})
}

// read lets Tidemark read a workload, as JSON and uncompressed, up to the last of the marks.
func (s *stage) read(t testing.TB, w *workload, marks ...int64) []sample {
	t.Helper()
	a := s.prepare(t, "tidemark", cell{w, "growth", "json", "none"}, w.start, false)
	p := a.launch(t)
	reached := a.topics.watch(t, p, marks...)
	p.Kill()
	return reached
}

// lag lets Tidemark read one long workload, and looks what a row costs in each eighth of it: how far the end of the binlog is away
// from there is the lag. The first eighth is also that of the start, and does not count.
func (s *stage) lag(t *testing.T, n int) {
	t.Helper()
	const parts = 8
	one := &series{what: "rows behind", unit: "CPU-s/M rows", flat: true}
	s.report.Growth = append(s.report.Growth, one)
	for i := 1; i < parts; i++ {
		one.points = append(one.points, &point{x: float64(3*n) * (parts - float64(i) - 0.5) / parts})
	}
	w := s.grown(t, one, 0)
	w.rows, w.records = 3*n, 3*n
	w.make(t, s.mysql, "orders", orders)
	w.inserts(t, s.mysql, 100, order("id"))
	w.settle(t, s.mysql)
	var marks []int64
	for i := range parts {
		marks = append(marks, int64(w.records)*int64(i+1)/parts)
	}
	for round := range s.options.Rounds {
		t.Run(fmt.Sprintf("growth/%s/%d", one.what, round+1), func(t *testing.T) {
			reached := s.read(t, w, marks...)
			for i, p := range one.points {
				var r Result
				r.rate(w, reached[i], reached[i+1])
				p.note(r.CPU, r.Used)
			}
			t.Logf("rows of each eighth: %.3g %s", last(one.points), one.unit)
		})
	}
	s.drop(t, w)
}

// last is the newest cost of each point.
func last(points []*point) []float64 {
	var all []float64
	for _, p := range points {
		if len(p.costs) > 0 {
			all = append(all, p.costs[len(p.costs)-1])
		}
	}
	return all
}

// intervals gives the server a GTID set of ever more intervals, which nothing takes back, and lets Tidemark read transactions of ten
// rows, each of which moves the set. So the sizes come one after the other, each with all its rounds.
func (s *stage) intervals(t *testing.T, n int) {
	t.Helper()
	one := &series{what: "intervals of the GTID set", unit: "CPU-s/M rows", flat: true}
	s.report.Growth = append(s.report.Growth, one)
	have := 0
	for i, count := range []int{1, 10, 100, 1000, 10_000} {
		one.points = append(one.points, &point{x: float64(count)})
		addIntervals(t, s.mysql, have, count)
		have = count
		w := s.grown(t, one, i)
		w.rows, w.records = n, n
		w.make(t, s.mysql, "orders", orders)
		w.inserts(t, s.mysql, 10, order("id"))
		w.settle(t, s.mysql)
		for round := range s.options.Rounds {
			s.grew(t, one, i, round, w, perRow)
		}
		s.drop(t, w)
	}
}

// addIntervals adds to the server's set those of another server that are behind have, up to count.
func addIntervals(t testing.TB, m *it.MySQL, have, count int) {
	t.Helper()
	if count == 1 {
		return // the server's own
	}
	var b strings.Builder
	b.WriteString("SET GLOBAL gtid_purged = '+3e11fa47-71ca-11e1-9e33-c80aa9429562")
	for i := max(have, 1); i < count; i++ {
		fmt.Fprintf(&b, ":%d", 2*i)
	}
	b.WriteString("'")
	m.Exec(t, b.String())
}
