package offset

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseMariaDBGTIDSet(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"0-1-5", "0-1-5"},
		{"1-2-7,0-1-5", "0-1-5,1-2-7"},
		{" 0 - 1 - 5 ,\n1-2-7,", "0-1-5,1-2-7"},
		{"0-1-24,0-555555-9709", "0-555555-9709"},    // several servers of a domain: the last counts
		{"0-1-100,0-2-50", "0-2-50"},                 // also when its number is lower
		{"5-1-1,21-1-1,4-1-1", "4-1-1,5-1-1,21-1-1"}, // 21 shares a bucket with 5
		{"21-1-1,5-1-1,4-1-1", "4-1-1,21-1-1,5-1-1"}, // and comes where it was put
		{"4294967295-4294967295-9223372036854775807", "4294967295-4294967295-9223372036854775807"},
	} {
		g, err := ParseGTIDSet(tt.text)
		if err != nil {
			t.Errorf("%q: %v", tt.text, err)
			continue
		}
		if got := g.String(); got != tt.want || g.IsAbsent() || g.IsEmpty() {
			t.Errorf("%q: got %q, want %q", tt.text, got, tt.want)
		}
	}
	for text, want := range map[string]string{
		"0-1-5," + uuidA + ":1":   "mixed",
		uuidA + ":1,0-1-5":        "mixed",
		"4294967296-1-1":          "the domain is not a whole number from 0 to 2^32-1",
		"0-4294967296-1":          "the server id is not",
		"0-1-9223372036854775808": "the sequence number is not a whole number from 0 to 2^63-1",
		"0-1-":                    "the sequence number is not",
		"0-1":                     "no UUID",
		"0-1-5-7":                 "no UUID",
	} {
		if g, err := ParseGTIDSet(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %q, error %v, want …%s…", text, g, err, want)
		}
	}
}

func TestParseMariaDBGTID(t *testing.T) {
	g, err := ParseGTID("3-4294967295-77")
	if want := (GTID{MariaDB: true, Domain: 3, Server: 4294967295, Number: 77}); err != nil || g != want {
		t.Fatalf("got %+v, %v", g, err)
	}
	if g.String() != "3-4294967295-77" || g.Origin() != "3-4294967295" {
		t.Errorf("text %s, origin %s", g, g.Origin())
	}
	if got := mustGTID(t, uuidB+":tag:5").Origin(); got != uuidB {
		t.Errorf("origin %s", got)
	}
	if g, err := ParseGTID("0-1-5,1-1-5"); err == nil {
		t.Errorf("got %s", g)
	}
}

// The file holds sets and, for each, the order in which Java iterates over a HashMap<Long, …> filled with them.
func TestMariaDBDomainsAreWrittenAsDebeziumDoes(t *testing.T) {
	for _, line := range lines(t, "mariadb.txt.gz") {
		put, want, ok := strings.Cut(line, "\t")
		if !ok {
			t.Fatalf("no tab in %q", line)
		}
		if got := mustSet(t, put).String(); got != want {
			t.Errorf("put  %s\ngot  %s\nwant %s", put, got, want)
		}
	}
}

func TestMariaDBGTIDSetOperations(t *testing.T) {
	a := mustSet(t, "0-1-100,1-2-7")
	b := mustSet(t, "0-3-90,2-1-1")
	for _, tt := range []struct {
		name string
		got  GTIDSet
		want string
	}{
		{"union", a.Union(b), "0-1-100,1-2-7,2-1-1"},
		{"union, other way", b.Union(a), "0-1-100,1-2-7,2-1-1"},
		{"a-b", a.Subtract(b), "0-1-100,1-2-7"},
		{"b-a", b.Subtract(a), "2-1-1"},
		{"next", a.Add(mustGTID(t, "0-1-101")), "0-1-101,1-2-7"},
		{"another server", a.Add(mustGTID(t, "0-9-101")), "0-9-101,1-2-7"},
		{"number falls", a.Add(mustGTID(t, "0-9-5")), "0-9-5,1-2-7"},
		{"number falls on the same server", a.Add(mustGTID(t, "0-1-5")), "0-1-5,1-2-7"},
		{"both domains", a.Add(mustGTID(t, "0-1-101")).Add(mustGTID(t, "1-2-8")), "0-1-101,1-2-8"},
		{"back", a.Add(mustGTID(t, "0-1-101")).Add(mustGTID(t, "1-2-8")).Add(mustGTID(t, "0-1-102")), "0-1-102,1-2-8"},
		{"to nothing", GTIDSet{}.Add(mustGTID(t, "7-1-1")), "7-1-1"},
		{"to the empty set", EmptyGTIDSet().Add(mustGTID(t, "7-1-1")).Add(mustGTID(t, "7-1-2")), "7-1-2"},
		{"filter", a.Filter(func(source string) bool { return source == "1-2" }), "1-2-7"},
		{"filter after Add", a.Add(mustGTID(t, "1-2-8")).Filter(func(source string) bool { return source == "1-2" }), "1-2-8"},
	} {
		if got := tt.got.String(); got != tt.want || tt.got.IsAbsent() {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	if a.String() != "0-1-100,1-2-7" || b.String() != "0-3-90,2-1-1" {
		t.Errorf("changed: %s, %s", a, b)
	}
	for text, want := range map[string]bool{"0-1-100": true, "0-5-99": true, "0-1-101": false, "1-2-7": true, "1-2-8": false, "2-1-1": false, uuidA + ":1": false} {
		if got := a.Contains(mustGTID(t, text)); got != want {
			t.Errorf("%s contains %s: %v", a, text, got)
		}
	}
	if !a.ContainsSet(mustSet(t, "0-7-100")) || a.ContainsSet(b) || !a.Equal(mustSet(t, "1-2-7,0-1-100")) || a.Equal(mustSet(t, "1-2-7,0-2-100")) || a.Equal(EmptyGTIDSet()) {
		t.Error("comparisons")
	}
	if mustSet(t, uuidA+":1-5").Contains(mustGTID(t, "0-1-1")) {
		t.Error("a set of MySQL has a GTID of MariaDB")
	}
	// No server makes such a set, but nothing may be lost in it.
	if got := mustSet(t, uuidA+":1-5").Add(mustGTID(t, "0-1-9")).Add(mustGTID(t, uuidA+":6")).Add(mustGTID(t, "0-1-10")).String(); got != "0-1-10,"+uuidA+":1-6" {
		t.Errorf("both kinds: %s", got)
	}
}

func TestFilterOfMySQL(t *testing.T) {
	set := mustSet(t, uuidA+":1-10,"+uuidB+":1-5:tag:1-2").Add(mustGTID(t, uuidB+":6"))
	if got := set.Filter(func(source string) bool { return source == uuidB }).String(); got != uuidB+":1-6:tag:1-2" {
		t.Error(got)
	}
	if got := set.Filter(func(string) bool { return false }); got.IsAbsent() || !got.IsEmpty() {
		t.Errorf("nothing kept: %s", got)
	}
	if !(GTIDSet{}).Filter(func(string) bool { return true }).IsAbsent() {
		t.Error("the absent set became present")
	}
}

func TestAddAllocatesNothingInADomain(t *testing.T) {
	set := mustSet(t, "0-1-100,1-2-7").Add(mustGTID(t, "0-1-101"))
	next := mustGTID(t, "0-1-102")
	allocs := testing.AllocsPerRun(50, func() {
		set = set.Add(next)
		next.Number++
	})
	if got := set.String(); allocs != 0 || got != "0-1-152,1-2-7" {
		t.Errorf("%v allocations, %s", allocs, got)
	}
}

// Sets are values: what was made from one later does not show in it.
func TestMariaDBGTIDSetAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type state struct {
			set   GTIDSet
			model map[uint32]GTID
		}
		states := []state{{EmptyGTIDSet(), map[uint32]GTID{}}}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			from := rapid.SampledFrom(states).Draw(t, "from")
			other := rapid.SampledFrom(states).Draw(t, "other")
			id := GTID{
				MariaDB: true, Domain: rapid.Uint32Range(0, 3).Draw(t, "domain"), Server: rapid.Uint32Range(1, 2).Draw(t, "server"),
				Number: rapid.Int64Range(1, 6).Draw(t, "number"),
			}
			set, model := from.set, make(map[uint32]GTID)
			for d, id := range from.model {
				model[d] = id
			}
			switch rapid.IntRange(0, 5).Draw(t, "op") {
			case 0:
				set = set.Union(other.set)
				for d, id := range other.model {
					if had, ok := model[d]; !ok || had.Number < id.Number {
						model[d] = id
					}
				}
			case 1:
				set = set.Subtract(other.set)
				for d, id := range other.model {
					if model[d].Number <= id.Number {
						delete(model, d)
					}
				}
			default:
				set = set.Add(id)
				model[id.Domain] = id
			}
			states = append(states, state{set, model})
		}
		for _, s := range states {
			var all []string
			for d := range uint32(4) {
				newest, ok := s.model[d]
				if ok {
					all = append(all, newest.String())
				}
				for n := range int64(8) {
					if got, want := s.set.Contains(GTID{MariaDB: true, Domain: d, Server: 9, Number: n}), ok && n <= newest.Number; got != want {
						t.Fatalf("%s contains %d-9-%d: %v", s.set, d, n, got)
					}
				}
			}
			want := strings.Join(all, ",")
			if got := s.set.String(); got != want || s.set.IsEmpty() != (want == "") {
				t.Fatalf("got %s, want %s", got, want)
			}
			again, err := ParseGTIDSet(want)
			if err != nil || !again.Equal(s.set) || !s.set.Equal(again) {
				t.Fatalf("%s read again is %s, %v", s.set, again, err)
			}
		}
	})
}
