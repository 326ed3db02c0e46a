package bench

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/it"
)

// Run measures what the options say and returns the results in the order of the table. Each run of a tool is a test of its own, so
// that one that fails does not end the others. After each workload, seen may have what is known so far.
func Run(t *testing.T, o Options, seen func(*Report)) *Report {
	t.Helper()
	rig := it.NewRigOnHost(t, serverFlags...)
	r := &Report{Options: o}
	s := &stage{options: o, rig: rig, mysql: rig.MySQL, kafka: rig.Kafka, programs: build(t), report: r}
	used := slices.Clone(o.Others)
	if slices.Contains(o.Workloads, "W1") {
		used = append(used, o.W1...)
	}
	if slices.ContainsFunc(used, func(f form) bool { return f.format == "avro" }) {
		s.registry = it.StartRegistry(t, "NONE")
	}
	r.Versions = s.versions(t)
	seed(t, s.mysql)

	var w3 *workload
	for _, name := range o.inOrder() {
		switch name {
		case "W1":
			s.w1(t)
		case "W3", "W4":
			if w3 == nil {
				w3 = o.write(t, s.mysql, "W3", o.Rows["W3"])
			}
			for _, f := range o.Others {
				if name == "W3" {
					s.drains(t, cell{w3, "W3", f.format, f.compression})
					continue
				}
				for _, how := range []struct {
					what      string
					signal    syscall.Signal
					elsewhere bool
				}{{"W4 SIGTERM", syscall.SIGTERM, false}, {"W4 SIGKILL", syscall.SIGKILL, false}, {"W4 other server", syscall.SIGTERM, true}} {
					c := cell{w3, how.what, f.format, f.compression}
					tools := s.tools()
					if how.elsewhere { // to the others all servers are alike
						tools = slices.DeleteFunc(tools, func(tool string) bool { return tool != "tidemark" })
					}
					s.turns(t, c, tools, func(t testing.TB, tool string) Result { return s.restart(t, tool, c, how.signal, how.elsewhere) })
				}
			}
			if name == "W3" && slices.Contains(o.Workloads, "W4") {
				continue
			}
			s.drop(t, w3)
		case "W5":
			s.w5(t)
		case "growth":
			s.growth(t)
		default:
			w := o.write(t, s.mysql, name, o.Rows[name])
			for _, f := range o.Others {
				c := cell{w, title(name), f.format, f.compression}
				switch name {
				case "start":
					s.turns(t, c, s.tools(), func(t testing.TB, tool string) Result { return s.begin(t, tool, c) })
				case "idle":
					s.turns(t, c, s.tools(), func(t testing.TB, tool string) Result { return s.idle(t, tool, c) })
				default:
					s.drains(t, c)
				}
			}
			s.drop(t, w)
		}
		if seen != nil {
			seen(r)
		}
	}
	return r
}

// title is what a workload is called in the report.
func title(name string) string {
	if name == "W3by10" {
		return "W3 by 10"
	}
	return name
}

// w1 reads W1 in each of its forms. The one with schemas in each record writes ten times as many bytes, and reads a smaller stretch.
func (s *stage) w1(t *testing.T) {
	t.Helper()
	for _, name := range []string{"W1", "W1schema"} {
		var w *workload
		for _, f := range s.options.W1 {
			if (name == "W1schema") != (f.format == "json-schema") {
				continue
			}
			if w == nil {
				w = s.options.write(t, s.mysql, name, s.options.Rows[name])
			}
			s.drains(t, cell{w, "W1", f.format, f.compression})
		}
		if w != nil {
			s.drop(t, w)
		}
	}
}

// w5 follows transactions while they are written.
func (s *stage) w5(t *testing.T) {
	t.Helper()
	w, most := s.options.write(t, s.mysql, "W5", 0), s.options.write(t, s.mysql, "W5max", 0)
	for _, f := range s.options.Others {
		for _, rate := range s.options.Rates {
			c := cell{w, fmt.Sprintf("W5 %d a second", rate), f.format, f.compression}
			if rate != 0 {
				s.turns(t, c, s.tools(), func(t testing.TB, tool string) Result { return s.latency(t, tool, c, rate) })
				continue
			}
			c.workload, c.what = most, atMost
			s.turns(t, c, s.tools(), func(t testing.TB, tool string) Result { return s.pressed(t, tool, c) })
		}
	}
	s.drop(t, w)
	s.drop(t, most)
}

// drop removes a workload from the server, its binlog included.
func (s *stage) drop(t testing.TB, w *workload) {
	t.Helper()
	s.mysql.Exec(t, "DROP DATABASE "+w.database, "FLUSH BINARY LOGS")
	s.mysql.Exec(t, "PURGE BINARY LOGS TO '"+now(t, s.mysql).file+"'")
}

// drains lets the tools, the floor among them, read a workload to its end in turns.
func (s *stage) drains(t *testing.T, c cell) {
	t.Helper()
	records := filepath.Join(t.TempDir(), "records")
	if !s.warm && slices.Contains(s.options.Tools, exactly) && measures(exactly, c) {
		s.warm = true
		for range s.options.Warm {
			t.Run("warming", func(t *testing.T) {
				t.Logf("%s %s %s, not counted: %s", c.what, c.format, c.compression, s.drain(t, exactly, c, "").text(exactly))
			})
		}
	}
	s.turns(t, c, s.options.Tools, func(t testing.TB, tool string) Result {
		if tool == "floor" {
			return s.floor(t, c, records)
		}
		return s.drain(t, tool, c, records)
	})
}

// tools are those that can do more than read to an end, as the floor cannot.
func (s *stage) tools() []string {
	return slices.DeleteFunc(slices.Clone(s.options.Tools), func(tool string) bool { return tool == "floor" })
}

// turns runs tools in turn, as many rounds as asked for.
func (s *stage) turns(t *testing.T, c cell, tools []string, run func(testing.TB, string) Result) {
	t.Helper()
	for round := range s.options.Rounds {
		for _, tool := range tools {
			if !measures(tool, c) {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s/%s/%s/%d", c.what, c.format, c.compression, tool, round+1), func(t *testing.T) {
				one := run(t, tool)
				t.Logf("%s %s %s: %s", c.what, c.format, c.compression, one.text(tool))
				s.report.add(c.line(tool), one)
			})
		}
	}
}

// drain lets a tool read a workload to its end.
func (s *stage) drain(t testing.TB, tool string, c cell, records string) Result {
	t.Helper()
	a := s.prepare(t, tool, c, c.workload.start, false)
	p := a.launch(t)
	total := int64(c.workload.records)
	reached := a.topics.watch(t, p, 1, total/2, total)
	if tool == exactly {
		reached[2] = a.topics.rest(t, p, reached[2])
	}
	one := Result{RSS: p.PeakRSS(t), First: reached[0].at.Sub(p.begun)}
	one.rate(c.workload, reached[1], reached[2])
	p.Kill()
	n := a.topics.count(t)
	if tool == exactly {
		n = 0
		a.topics.each(t, func(*kgo.Record) bool { n++; return true })
	}
	if n != total {
		t.Errorf("%s wrote %d records, not %d", tool, n, total)
	}
	if records != "" && slices.Contains(s.options.Tools, "floor") {
		s.keep(t, a, records)
	}
	return one
}

// rate is what happened between two samples.
func (r *Result) rate(w *workload, from, to sample) {
	rows := float64(to.count-from.count) * float64(w.rows) / float64(w.records)
	if rows <= 0 { // so small that one look found all
		return
	}
	r.Rate = rows / to.at.Sub(from.at).Seconds()
	r.Used = (to.cpu - from.cpu).Seconds()
	r.CPU = r.Used / rows * 1e6
}

// keep writes some records of a run into a file, for the floor to produce.
func (s *stage) keep(t testing.TB, a *attempt, path string) {
	t.Helper()
	if _, err := os.Stat(path); err == nil {
		return
	}
	const most, mostBytes = 20_000, 64 << 20
	var b []byte
	n := 0
	a.topics.each(t, func(r *kgo.Record) bool {
		b = binary.BigEndian.AppendUint32(b, uint32(len(r.Key)))
		b = binary.BigEndian.AppendUint32(b, uint32(len(r.Value)))
		b = append(append(b, r.Key...), r.Value...)
		n++
		return n < most && len(b) < mostBytes
	})
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// floor reads the bytes of a workload, and then produces as many records as it makes, which another tool has made before. A tool that
// did both at once on a core each would be as fast as the slower half, and costs at least what both cost.
func (s *stage) floor(t testing.TB, c cell, records string) Result {
	t.Helper()
	if _, err := os.Stat(records); err != nil {
		t.Fatal("the floor produces what another tool has made: no other has run before it")
	}
	s.runs++
	names := []string{fmt.Sprintf("floor%d.%s", s.runs, c.workload.database)}
	ready := newTopics(t, s.kafka, s.options.Partitions, names, false)
	read := s.readRaw(t, c.workload)
	written := s.floorProgram(t, "produce", "-kafka", s.kafka.Addr(), "-topic", names[0], "-partitions", strconv.Itoa(s.options.Partitions),
		"-compression", c.compression, "-records", records, "-count", strconv.Itoa(c.workload.records))
	if n := ready.count(t); n != int64(c.workload.records) {
		t.Errorf("the floor wrote %d records, not %d", n, c.workload.records)
	}
	rows := float64(c.workload.rows)
	return Result{
		Rate: rows / max(read.Seconds, written.Seconds), CPU: (read.CPU + written.CPU) / rows * 1e6, Used: read.CPU + written.CPU, RSS: read.RSS + written.RSS,
		Also: fmt.Sprintf("reading %.2f, producing %.2f", read.CPU/rows*1e6, written.CPU/rows*1e6),
	}
}

// cost is what the program floor prints.
type cost struct {
	Seconds float64
	CPU     float64
	RSS     int64
}

func (s *stage) floorProgram(t testing.TB, arguments ...string) cost {
	t.Helper()
	p := it.Start(t, "floor", append([]string{filepath.Join(s.programs, "floor")}, arguments...)...)
	if code := p.Wait(t, 20*time.Minute); code != 0 {
		t.Fatalf("floor ended with code %d: %s", code, p.Output())
	}
	var c cost
	if err := json.Unmarshal([]byte(p.Output()), &c); err != nil {
		t.Fatalf("floor said %q: %v", p.Output(), err)
	}
	return c
}

// readRaw reads the binlog from the workload's start to its end.
func (s *stage) readRaw(t testing.TB, w *workload) cost {
	t.Helper()
	return s.floorProgram(t, "read", "-mysql", s.mysql.Addr(), "-user", "tide", "-password", "tide", "-server-id", "6001",
		"-file", w.start.file, "-pos", strconv.FormatInt(w.start.pos, 10))
}

// consumer consumes the topics of a run from their start.
func (s *stage) consumer(t testing.TB, a *attempt) *kgo.Client {
	t.Helper()
	start := map[string]map[int32]kgo.Offset{}
	for topic, partitions := range a.topics.ends(t) {
		start[topic] = map[int32]kgo.Offset{}
		for partition := range partitions {
			start[topic][partition] = kgo.NewOffset().AtStart()
		}
	}
	c, err := kgo.NewClient(kgo.SeedBrokers(s.kafka.Addr()), kgo.ConsumePartitions(start), kgo.FetchMaxWait(500*time.Millisecond),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var keyID = regexp.MustCompile(`"id":(\d+)`)

// idOf is the id in a record's key, in any format.
func idOf(key []byte) (int64, bool) {
	if len(key) > 5 && key[0] == 0 { // a schema's id, then one zigzag number
		n, size := binary.Varint(key[5:])
		return n, size == len(key)-5
	}
	m := keyID.FindSubmatch(key)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	return n, err == nil
}
