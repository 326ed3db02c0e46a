package bench

import (
	"fmt"
	"math"
)

// criterion is one number that Tidemark has to have.
type criterion struct {
	number   string
	what     string
	measured string
	bound    string
	verdict  string
}

// A fit holds a straight line, or a flat one, when no size is further from it than this part of its cost.
const mostResidual = 0.15

// enough is how many CPU seconds have to be measured before what they say of a row counts.
const enough = 1.0

// verdicts collects criteria.
type verdicts struct {
	report *Report
	number string
	all    []criterion
}

// state adds a number that was measured, or why there is none, with a bound that it must not exceed.
func (v *verdicts) state(what, format string, value, bound float64, missing string) {
	c := criterion{v.number, what, "–", "≤ " + fmt.Sprintf(format, bound), missing}
	if missing == "" {
		c.measured, c.verdict = fmt.Sprintf(format, value), verdict(value <= bound)
	}
	v.all = append(v.all, c)
}

// least is state with a bound that the number must reach.
func (v *verdicts) least(what, format string, value, bound float64, missing string) {
	v.state(what, format, value, bound, missing)
	c := &v.all[len(v.all)-1]
	c.bound = "≥ " + fmt.Sprintf(format, bound)
	if missing == "" {
		c.verdict = verdict(value >= bound)
	}
}

// say adds something that has no bound.
func (v *verdicts) say(what, measured, missing string) {
	c := criterion{v.number, what, measured, "reported", ""}
	if missing != "" {
		c.measured, c.verdict = "–", missing
	}
	v.all = append(v.all, c)
}

func verdict(held bool) string {
	if held {
		return "held"
	}
	return "**not held**"
}

// pair is the medians of two lines, and why they cannot be compared.
func (v *verdicts) pair(a, b line) (Result, Result, string) {
	one, ok := v.report.of(a)
	other, too := v.report.of(b)
	switch {
	case !ok || !too:
		return one, other, "not measured"
	case one.CPU == 0 || other.CPU == 0:
		return one, other, "too few rows"
	case one.Used < enough || other.Used < enough:
		return one, other, fmt.Sprintf("too short: %.2g and %.2g CPU-s", one.Used, other.Used)
	}
	return one, other, ""
}

// single is the medians of one line, and why they say nothing.
func (v *verdicts) single(l line) (Result, string) {
	one, _, missing := v.pair(l, l)
	return one, missing
}

// cpu compares Tidemark's CPU a row with that of another tool.
func (v *verdicts) cpu(l line, tool string, bound float64) {
	other := l
	other.tool = tool
	a, b, missing := v.pair(l, other)
	name := map[string]string{"debezium": "Debezium's", "canal": "the program's by hand", "floor": "the floor's"}[tool]
	v.state(fmt.Sprintf("%s %s, %s: CPU a row : %s", l.what, l.format, l.compression, name), "%.3f", a.CPU/b.CPU, bound, missing)
}

// criteria are all of them, in order, measured or not.
func (r *Report) criteria() []criterion {
	v := &verdicts{report: r}
	others := r.Options.Others
	if len(others) == 0 {
		others = []form{{"json", "none"}}
	}
	v.w1()
	v.floor(others)
	v.memory(others)
	v.starts(others)
	v.latency(others)
	v.growth()
	v.exactly(others)
	return v.all
}

func tidemark(what, format, compression string) line {
	return line{what, format, compression, "tidemark"}
}

func (v *verdicts) w1() {
	v.number = "1"
	for _, compression := range []string{"none", "snappy"} {
		v.cpu(tidemark("W1", "json", compression), "debezium", 1.0/10)
		v.cpu(tidemark("W1", "json", compression), "canal", 1.0/5)
	}
	v.cpu(tidemark("W1", "json", "lz4"), "debezium", 1.0/7)
	v.cpu(tidemark("W1", "json", "lz4"), "floor", 1.5)
	for _, compression := range []string{"none", "snappy"} {
		a, b, missing := v.pair(tidemark("W1", "avro", compression), tidemark("W1", "json", compression))
		v.state("W1 avro, "+compression+": CPU a row : our JSON's", "%.3f", a.CPU/b.CPU, 0.85, missing)
	}
	for _, compression := range []string{"none", "snappy"} {
		v.cpu(tidemark("W1", "json-schema", compression), "debezium", 1.0/8)
	}
	for _, f := range []form{{"json", "none"}, {"json", "snappy"}, {"json", "lz4"}, {"avro", "none"}, {"avro", "snappy"}, {"json-schema", "none"}, {"json-schema", "snappy"}} {
		l := tidemark("W1", f.format, f.compression)
		a, b, missing := v.pair(l, line{"W1", f.format, f.compression, "debezium"})
		what := fmt.Sprintf("W1 %s, %s: rows/s : Debezium's", f.format, f.compression)
		if f.format == "json" {
			v.least(what, "%.1f", a.Rate/b.Rate, 6, missing)
		} else {
			v.say(what, fmt.Sprintf("%.1f", a.Rate/b.Rate), missing)
		}
	}
}

// exactly compares exactly-once delivery with at-least-once.
func (v *verdicts) exactly(others []form) {
	v.number = "7"
	for _, compression := range []string{"none", "snappy"} {
		l := tidemark("W1", "json", compression)
		other := l
		other.tool = exactly
		one, alo, missing := v.pair(other, l)
		what := fmt.Sprintf("W1 json, %s: exactly-once : at-least-once, ", compression)
		v.least(what+"rows/s", "%.3f", one.Rate/alo.Rate, 0.9, missing)
		v.state(what+"CPU a row", "%.3f", one.CPU/alo.CPU, 1.05, missing)
	}
	for _, f := range others {
		one, ok := v.report.of(line{"W5 200 a second", f.format, f.compression, exactly})
		v.state(fmt.Sprintf("W5 %s, %s: 200 a second with exactly-once, until it is committed, p99, ms", f.format, f.compression), "%.1f", float64(one.P99)/1e6, 50, unless(ok && one.P99 > 0))
	}
}

func (v *verdicts) floor(others []form) {
	v.number = "2"
	for _, compression := range []string{"none", "snappy"} {
		v.cpu(tidemark("W1", "json", compression), "floor", 2)
	}
	for _, f := range others {
		one, missing := v.single(tidemark("W2", f.format, f.compression))
		what := fmt.Sprintf("W2 %s, %s: ", f.format, f.compression)
		v.state(what+"CPU-s a million transactions", "%.2f", one.CPU, 4.3, missing)
		v.least(what+"transactions a second", "%.0f", one.Rate, 150_000, missing)
	}
}

func (v *verdicts) memory(others []form) {
	v.number = "3"
	for _, what := range []string{"W1", "W2", "W3", "W3 by 10", "W4 SIGTERM", "W4 SIGKILL", "W4 other server", "W8"} {
		forms := others
		if what == "W1" {
			forms = v.report.Options.W1
		}
		for _, f := range forms {
			l := tidemark(what, f.format, f.compression)
			one, ok := v.report.of(l)
			text := fmt.Sprintf("%s %s, %s: peak RSS, MB", what, f.format, f.compression)
			if d := v.report.beside(l, "debezium"); d.RSS > 0 {
				text += fmt.Sprintf(" (Debezium's: %.0f)", float64(d.RSS)/1e6)
			}
			v.state(text, "%.0f", float64(one.RSS)/1e6, 80, unless(ok))
		}
	}
	for _, f := range others {
		one, ok := v.report.of(tidemark("W3", f.format, f.compression))
		by10, too := v.report.of(tidemark("W3 by 10", f.format, f.compression))
		l := tidemark("W3", f.format, f.compression)
		small, large := v.report.beside(line{"W3 by 10", l.format, l.compression, ""}, "debezium"), v.report.beside(l, "debezium")
		text := fmt.Sprintf("%s, %s: peak RSS, one transaction of %d rows : transactions of 10", f.format, f.compression, v.report.Options.Rows["W3"])
		if small.RSS > 0 && large.RSS > 0 {
			text += fmt.Sprintf(" (Debezium's: %.2f)", float64(large.RSS)/float64(small.RSS))
		}
		v.state(text+", off 1", "%.3f", math.Abs(float64(one.RSS)/float64(by10.RSS)-1), 0.05, unless(ok && too))
	}
}

func unless(measured bool) string {
	if measured {
		return ""
	}
	return "not measured"
}

func (v *verdicts) starts(others []form) {
	v.number = "4"
	for _, f := range others {
		one, _ := v.report.of(tidemark("start", f.format, f.compression))
		v.state(fmt.Sprintf("%s, %s: start to the first record, with a stored offset, ms", f.format, f.compression), "%.0f",
			float64(one.New)/1e6, 100, unless(one.New > 0))
		for _, what := range []string{"W4 SIGTERM", "W4 SIGKILL"} {
			one, _ := v.report.of(tidemark(what, f.format, f.compression))
			text := fmt.Sprintf("%s %s, %s: ", what, f.format, f.compression)
			if what == "W4 SIGTERM" {
				v.state(text+"start to the first new row, ms", "%.0f", float64(one.New)/1e6, 200, unless(one.New > 0))
			} else { // what was not stored comes first
				v.say(text+"start to the first record, to the first new row", milliseconds(one.First)+", "+milliseconds(one.New), unless(one.New > 0))
			}
			if one.Repeated == nil {
				v.say(text+"rows repeated", "", "not measured")
				continue
			}
			if what == "W4 SIGTERM" {
				v.state(text+"rows repeated", "%.0f", float64(v.most(what, f, func(r Result) *int64 { return r.Repeated })), 0, "")
			} else {
				v.say(text+"rows repeated", fmt.Sprint(*one.Repeated), "")
				v.state(text+"rows repeated that were before the stored offset", "%.0f",
					float64(v.most(what, f, func(r Result) *int64 {
						if r.Repeated == nil || r.Unstored == nil {
							return nil
						}
						return new(max(*r.Repeated-*r.Unstored, 0))
					})), 0, unless(one.Unstored != nil))
			}
			v.state(text+"rows lost", "%.0f", float64(v.most(what, f, func(r Result) *int64 { return r.Lost })), 0, "")
		}
		const what = "W4 other server"
		one, ok := v.report.of(tidemark(what, f.format, f.compression))
		text := fmt.Sprintf("%s %s, %s: ", what, f.format, f.compression)
		v.state(fmt.Sprintf("%sstart to the first new row, s a GB of the transaction (%.2f GB)", text, float64(one.Behind)/1e9), "%.2f",
			one.New.Seconds()/(float64(one.Behind)/1e9), 2.5, unless(ok && one.New > 0))
		if ok && one.Repeated != nil {
			v.state(text+"rows repeated", "%.0f", float64(v.most(what, f, func(r Result) *int64 { return r.Repeated })), 0, "")
			v.state(text+"rows lost", "%.0f", float64(v.most(what, f, func(r Result) *int64 { return r.Lost })), 0, "")
		}
	}
}

// most is the most of all rounds, for what may never be.
func (v *verdicts) most(what string, f form, of func(Result) *int64) int64 {
	var n int64
	for _, r := range v.report.results[tidemark(what, f.format, f.compression)] {
		if value := of(r); value != nil {
			n = max(n, *value)
		}
	}
	return n
}

func (v *verdicts) latency(others []form) {
	v.number = "5"
	for _, f := range others {
		what := func(rate string) (Result, bool, string) {
			one, _ := v.report.of(tidemark("W5 "+rate, f.format, f.compression))
			return one, one.P99 > 0, fmt.Sprintf("W5 %s, %s, %s: commit to consumer, ", rate, f.format, f.compression)
		}
		one, ok, text := what("200 a second")
		v.state(text+"p50, ms", "%.2f", float64(one.P50)/1e6, 0.6, unless(ok))
		v.state(text+"p99, ms", "%.2f", float64(one.P99)/1e6, 3.5, unless(ok))
		one, ok, text = what("5000 a second")
		v.say(text+"p50, p99", milliseconds(one.P50)+", "+milliseconds(one.P99), unless(ok))
		one, ok, text = what("at 80 %")
		if ok {
			text += fmt.Sprintf("%.0f a second, %s, ", one.Rate, one.Also)
		}
		v.state(text+"p99, ms", "%.1f", float64(one.P99)/1e6, 20, unless(ok))
		idle, _ := v.report.of(tidemark("idle", f.format, f.compression))
		if idle.Idle == nil {
			idle.Idle = new(0.0)
			ok = false
		} else {
			ok = true
		}
		v.state(fmt.Sprintf("idle, %d s: CPU, %% of a core", v.report.Options.Idle), "%.3f", 100**idle.Idle, 0.1, unless(ok))
	}
}

func (v *verdicts) growth() {
	v.number = "6"
	for _, s := range v.report.Growth {
		missing := unless(s.complete())
		if missing == "" && s.shortest() < enough {
			missing = fmt.Sprintf("too short: %.2g CPU-s", s.shortest())
		}
		var largest float64
		if s.flat {
			if missing == "" {
				largest = s.spread()
			}
			v.state(fmt.Sprintf("flat in %s: furthest from the mean, %%", s.what), "%.1f", 100*largest, 100*mostResidual, missing)
			continue
		}
		what := "linear in " + s.what
		if missing == "" {
			_, _, largest = s.fit()
			what += " (" + s.line() + ")"
		}
		v.state(what+": largest residual, %", "%.1f", 100*largest, 100*mostResidual, missing)
	}
	if len(v.report.Growth) == 0 {
		v.say("growth", "", "not measured")
	}
}
