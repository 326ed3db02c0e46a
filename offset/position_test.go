package offset

import "testing"

func TestI11_Covers(t *testing.T) {
	set := func(text string) GTIDSet { return mustSet(t, text) }
	o := func(file string, pos int64, gtids GTIDSet) Offset { return Offset{File: file, Pos: pos, GTIDs: gtids} }
	p := func(file string, pos int64, gtids GTIDSet, before bool) Position {
		return Position{File: file, Pos: pos, GTIDs: gtids, Before: before}
	}
	none := GTIDSet{}
	tests := []struct {
		name          string
		o             Offset
		p             Position
		covers, known bool
	}{
		{"the same file and position", o("b.000002", 500, none), p("b.000002", 500, none, false), true, true},
		{"later in the file", o("b.000002", 501, none), p("b.000002", 500, none, false), true, true},
		{"earlier in the file", o("b.000002", 499, none), p("b.000002", 500, none, false), false, true},
		{"a later file", o("b.1000000", 4, none), p("b.999999", 500, none, false), true, true},
		{"events to skip decide", Offset{File: "b.000002", Pos: 500, Event: 2}, Position{File: "b.000002", Pos: 500, Event: 3}, false, true},
		{"events are done", Offset{File: "b.000002", Pos: 500, Event: 3, Row: 1}, Position{File: "b.000002", Pos: 500, Event: 3}, true, true},
		{"another name of the log", o("b.000009", 4, none), p("c.000002", 500, none, false), false, false},

		{"the statement's own GTID is in the set", o("b.000009", 4, set(uuidA+":1-8")), p("b.000002", 500, set(uuidA+":1-8"), false), true, true},
		{"a failover to a server with lower positions", o("x.000001", 4, set(uuidA+":1-8")), p("b.000009", 500, set(uuidA+":1-8"), false), true, true},
		{"it is not", o("b.000009", 4, set(uuidA+":1-7")), p("b.000002", 500, set(uuidA+":1-8"), false), false, true},
		{"another source's is missing", o("b.000009", 4, set(uuidA+":1-9")), p("b.000002", 500, set(uuidA+":1-8,"+uuidB+":1"), false), false, true},
		{"MariaDB, the domain is behind", o("b.000009", 4, set("0-1-7,1-1-9")), p("b.000002", 500, set("0-1-8"), false), false, true},
		{"MariaDB, the domain is there", o("b.000009", 4, set("0-2-8,1-1-9")), p("b.000002", 500, set("0-1-8"), false), true, true},

		// Debezium's history: the statement is uuidA:8.
		{"history, the set has more", o("x.000001", 4, set(uuidA+":1-8")), p("b.000002", 500, set(uuidA+":1-7"), true), true, true},
		{"history, right before the statement", o("b.000002", 300, set(uuidA+":1-7")), p("b.000002", 500, set(uuidA+":1-7"), true), false, true},
		{"history, where Debezium stands after it", o("b.000002", 500, set(uuidA+":1-7")), p("b.000002", 500, set(uuidA+":1-7"), true), true, true},
		{"history, equal sets on another server", o("x.000001", 4, set(uuidA+":1-7")), p("b.000002", 500, set(uuidA+":1-7"), true), true, true},
		{"history, the set has less", o("b.000009", 4, set(uuidA+":1-6")), p("b.000002", 500, set(uuidA+":1-7"), true), false, true},

		{"GTIDs were turned on since", o("b.000001", 4, set(uuidA+":1-7")), p("b.000002", 500, none, false), true, true},
		{"an offset by hand, without GTIDs", o("b.000002", 600, none), p("b.000002", 500, set(uuidA+":1-7"), true), true, true},
		{"the same before", o("b.000002", 400, none), p("b.000002", 500, set(uuidA+":1-7"), true), false, true},
		{"the empty set", o("b.000002", 4, EmptyGTIDSet()), p("b.000002", 500, set(uuidA+":1"), false), false, true},
		{"history before the first GTID", o("b.000002", 400, EmptyGTIDSet()), p("b.000002", 500, EmptyGTIDSet(), true), false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if covers, known := tt.o.Covers(tt.p); covers != tt.covers || known != tt.known {
				t.Errorf("%v, %v", covers, known)
			}
		})
	}
}
