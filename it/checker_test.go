package it

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// simulated is a run that never took place: what writers, server, broker and a connector that dies now and then would leave
// behind, so that the checker can be tried on cases whose answer is known.
type simulated struct {
	rng      *rand.Rand
	evidence Evidence
	gtid     int
	pos      int64
	now      time.Time
	steps    []simulatedStep
}

// simulatedStep is a row's records and the offset that holds after them.
type simulatedStep struct {
	messages []Message
	after    Stored
}

const simulatedFile = "mysql-bin.000007"

func simulate(seed uint64) *simulated {
	s := &simulated{rng: rand.New(rand.NewPCG(seed, 1)), pos: 4, now: time.UnixMilli(1_800_000_000_000)}
	s.evidence = Evidence{Prefix: "p", Tables: WorkloadTables("d"), Binlog: NewBinlog(), Final: map[string][]Row{}}
	s.event("Format_desc", "", 122)
	tables := map[string]map[Row]Row{"d.account": {}, "d.ledger": {}, "d.moved": {}, "d.bulk": {}}
	s.transaction(tables, "d.account", insertRows(NewRow(1, 1000, 0), NewRow(2, 1000, 0), NewRow(3, 1000, 0))...)
	versions := int64(0)
	for n := range 60 {
		versions++
		a := Row(fmt.Sprint(1 + s.rng.IntN(3)))
		was := tables["d.account"][a]
		v := was.Values()
		s.transaction(tables, "d.account", Change{Before: was, After: NewRow(v[0], v[1], versions), Version: versions})
		s.transaction(tables, "d.ledger", insertRows(NewRow(n+1, 0, n+1, "-12.07", nil))...)
		id := NewRow(n + 1)
		s.transaction(tables, "d.moved", insertRows(NewRow(id, 3, 1, "né"))...)
		switch n % 3 {
		case 0:
			s.transaction(tables, "d.moved", Change{Before: NewRow(id, 3, 1, "né"), After: NewRow(n+1001, 3, 2, "né")})
		case 1:
			s.transaction(tables, "d.moved", Change{Before: NewRow(id, 3, 1, "né")})
		}
		var bulk []Row
		for i := range 1 + s.rng.IntN(12) {
			bulk = append(bulk, NewRow(4, n, i, 1, "pad"))
		}
		s.transaction(tables, "d.bulk", insertRows(bulk...)...)
	}
	for name, rows := range tables {
		for _, r := range rows {
			s.evidence.Final[name] = append(s.evidence.Final[name], r)
		}
	}
	s.deliver()
	return s
}

func insertRows(rows ...Row) []Change {
	var changes []Change
	for _, r := range rows {
		changes = append(changes, Change{After: r})
	}
	return changes
}

func (s *simulated) event(kind, info string, length int64) int64 {
	at := s.pos
	s.evidence.Binlog.Add(simulatedFile, at, kind, info)
	s.pos += length
	return at
}

// transaction adds one transaction with one statement a change of kind; several rows of an insert share an event in threes.
func (s *simulated) transaction(tables map[string]map[Row]Row, table string, changes ...Change) {
	t := s.table(table)
	s.event("Gtid", fmt.Sprintf("SET @@SESSION.GTID_NEXT= 'aaaa-bbbb:%d'", s.gtid+1), 79)
	begin := s.event("Query", "BEGIN", 80)
	set := fmt.Sprintf("aaaa-bbbb:1-%d", s.gtid)
	if s.gtid == 1 {
		set = "aaaa-bbbb:1"
	} else if s.gtid == 0 {
		set = ""
	}
	count := int64(1)
	for part := range slices.Chunk(changes, 3) {
		s.event("Table_map", "table_id: 1", 60)
		at := s.event("Write_rows", "table_id: 1 flags: STMT_END_F", 100)
		count++
		for i := range part {
			ch := part[i]
			ch.Table = table
			s.evidence.Changes = append(s.evidence.Changes, ch)
			if ch.Before != "" {
				delete(tables[table], t.keyOf(ch.Before))
			}
			if ch.After != "" {
				tables[table][t.keyOf(ch.After)] = ch.After
			}
			source := map[string]any{"file": simulatedFile, "pos": at, "row": i, "db": "d", "table": table[2:], "gtid": fmt.Sprintf("aaaa-bbbb:%d", s.gtid+1)}
			s.steps = append(s.steps, simulatedStep{
				messages: s.records(t, ch, source),
				after:    Stored{File: simulatedFile, Pos: begin, Event: count, Row: i + 1, GTIDs: set},
			})
		}
		count++
	}
	s.event("Xid", "COMMIT /* xid=1 */", 31)
	s.gtid++
	set = fmt.Sprintf("aaaa-bbbb:1-%d", s.gtid)
	if s.gtid == 1 {
		set = "aaaa-bbbb:1"
	}
	s.steps = append(s.steps, simulatedStep{after: Stored{File: simulatedFile, Pos: s.pos, GTIDs: set}})
}

func (s *simulated) table(name string) *Table {
	i := slices.IndexFunc(s.evidence.Tables, func(t Table) bool { return t.Name == name })
	return &s.evidence.Tables[i]
}

// records are the messages that Debezium would write for a change, without schemas.
func (s *simulated) records(t *Table, ch Change, source map[string]any) []Message {
	object := func(columns []string, r Row) map[string]any {
		if r == "" {
			return nil
		}
		m := map[string]any{}
		for i, v := range r.Values() {
			switch {
			case v == absent:
				m[columns[i]] = nil
			case t.Scale[columns[i]] > 0:
				n, _ := new(big.Int).SetString(strings.Replace(v, ".", "", 1), 10)
				m[columns[i]] = base64.StdEncoding.EncodeToString([]byte{byte(new(big.Int).Rsh(n, 8).Int64()), byte(n.Int64())})
			case columns[i] == "note" || columns[i] == "pad":
				m[columns[i]] = v
			default:
				m[columns[i]] = json.Number(v)
			}
		}
		return m
	}
	message := func(op string, key, before, after Row, headers map[string]string) Message {
		k, _ := json.Marshal(object(t.Key, key))
		h := fnv.New32a()
		h.Write(k)
		m := Message{Topic: "p." + t.Name, Partition: int32(h.Sum32() % 3), Key: k, Headers: headers}
		if op != "t" {
			m.Value, _ = json.Marshal(map[string]any{"op": op, "source": source, "before": object(t.Columns, before), "after": object(t.Columns, after)})
		}
		return m
	}
	was, is := t.keyOf(ch.Before), t.keyOf(ch.After)
	switch {
	case ch.Before == "":
		return []Message{message("c", is, "", ch.After, nil)}
	case ch.After == "":
		return []Message{message("d", was, ch.Before, "", nil), message("t", was, "", "", nil)}
	case was == is:
		return []Message{message("u", was, ch.Before, ch.After, nil)}
	}
	text := func(k Row) string { b, _ := json.Marshal(object(t.Key, k)); return string(b) }
	return []Message{
		message("d", was, ch.Before, "", map[string]string{"__debezium.newkey": text(is)}),
		message("t", was, "", "", map[string]string{"__debezium.newkey": text(is)}),
		message("c", is, "", ch.After, map[string]string{"__debezium.oldkey": text(was)}),
	}
}

// deliver plays the connector: it appends the records, stores offsets, and three times dies and begins again at the stored one.
func (s *simulated) deliver() {
	stored, deaths := -1, 3
	e := &s.evidence
	for i := 0; i < len(s.steps); i++ {
		for _, m := range s.steps[i].messages {
			s.now = s.now.Add(3 * time.Millisecond)
			m.Time = s.now
			e.Messages = append(e.Messages, m)
		}
		if s.rng.IntN(9) == 0 {
			s.now = s.now.Add(3 * time.Millisecond)
			at := s.steps[i].after
			at.Time = s.now
			e.Offsets = append(e.Offsets, at)
			stored = i
		}
		if deaths > 0 && i > (4-deaths)*len(s.steps)/5 && i-stored > 4 {
			deaths--
			i = stored
		}
	}
	s.arrange()
}

// arrange sorts the messages by partition and gives them their offsets.
func (s *simulated) arrange() {
	e := &s.evidence
	slices.SortStableFunc(e.Messages, func(a, b Message) int {
		if c := strings.Compare(a.Topic, b.Topic); c != 0 {
			return c
		}
		return int(a.Partition - b.Partition)
	})
	for i := range e.Messages {
		m := &e.Messages[i]
		m.Offset = 0
		if i > 0 && e.Messages[i-1].Topic == m.Topic && e.Messages[i-1].Partition == m.Partition {
			m.Offset = e.Messages[i-1].Offset + 1
		}
	}
}

func TestCheckerAcceptsWhatIsRight(t *testing.T) {
	for seed := range uint64(20) {
		s := simulate(seed)
		r := Check(s.evidence)
		if len(r.Problems) > 0 {
			t.Fatalf("seed %d: %v\n%s", seed, r, strings.Join(r.Problems, "\n"))
		}
		if r.Replays == 0 || r.Repeated == 0 || r.Inside == 0 {
			t.Errorf("seed %d: the simulated run has nothing to find: %v", seed, r)
		}
	}
}

// TestCheckerCatches is the negative control: each fault that Tidemark could have is put into a good run and has to be found.
func TestCheckerCatches(t *testing.T) {
	// pick is a record in the middle of a partition's log whose next two are in the same partition and which is the only one of its
	// event.
	pick := func(s *simulated) int {
		ms := s.evidence.Messages
		for {
			i := s.rng.IntN(len(ms) - 3)
			alone := func(k int) bool {
				n := 0
				for j := range ms {
					if ms[j].Topic == ms[k].Topic && string(ms[j].Value) == string(ms[k].Value) {
						n++
					}
				}
				return n == 1
			}
			if ms[i].Topic == "p.d.bulk" && ms[i+2].Topic == ms[i].Topic && ms[i].Partition == ms[i+2].Partition && alone(i) && alone(i+1) {
				return i
			}
		}
	}
	faults := []struct {
		name string
		kind string // of the problem that has to be among those found; one of several
		make func(s *simulated)
	}{
		{"a dropped event", "lost", func(s *simulated) {
			i := pick(s)
			s.evidence.Messages = slices.Delete(s.evidence.Messages, i, i+1)
		}},
		{"two swapped events of one partition", "order", func(s *simulated) {
			i := pick(s)
			ms := s.evidence.Messages
			ms[i], ms[i+1] = ms[i+1], ms[i]
			ms[i].Time, ms[i+1].Time = ms[i+1].Time, ms[i].Time
		}},
		{"a doubled event", "doubled order", func(s *simulated) {
			i := pick(s)
			s.evidence.Messages = slices.Insert(s.evidence.Messages, i+2, s.evidence.Messages[i])
			s.evidence.Messages[i+2].Time = s.evidence.Messages[i+1].Time
		}},
		{"a changed value", "differs", func(s *simulated) {
			m := &s.evidence.Messages[pick(s)]
			m.Value = []byte(strings.Replace(string(m.Value), `"pad":"pad"`, `"pad":"paD"`, 1))
		}},
		{"a changed key", "invented", func(s *simulated) {
			m := &s.evidence.Messages[pick(s)]
			m.Key = []byte(strings.Replace(string(m.Key), `"worker":4`, `"worker":44`, 1))
		}},
		{"a position at which no rows event is", "invented", func(s *simulated) {
			m := &s.evidence.Messages[pick(s)]
			m.Value = []byte(strings.Replace(string(m.Value), `"pos":`, `"pos":1`, 1))
		}},
		{"a lost tombstone", "lost", func(s *simulated) {
			ms := s.evidence.Messages
			i := slices.IndexFunc(ms, func(m Message) bool { return m.Value == nil })
			s.evidence.Messages = slices.Delete(ms, i, i+1)
		}},
		{"a key change without its header", "differs", func(s *simulated) {
			ms := s.evidence.Messages
			i := slices.IndexFunc(ms, func(m Message) bool { return m.Headers["__debezium.oldkey"] != "" })
			ms[i].Headers = nil
		}},
		{"the last events lost", "lost", func(s *simulated) {
			s.evidence.Messages = s.evidence.Messages[:len(s.evidence.Messages)-2]
		}},
		{"an offset stored before its records were appended", "ahead", func(s *simulated) {
			for i := range s.evidence.Offsets {
				s.evidence.Offsets[i].Time = s.evidence.Offsets[i].Time.Add(-10 * time.Millisecond)
			}
		}},
		{"a stored offset that goes back", "backwards", func(s *simulated) {
			o := s.evidence.Offsets
			k := len(o) / 2
			o[k].File, o[k].Pos, o[k].Event, o[k].Row, o[k].GTIDs = o[0].File, o[0].Pos, o[0].Event, o[0].Row, o[0].GTIDs
		}},
		{"a stored set with the open transaction in it", "gtids", func(s *simulated) {
			o := s.evidence.Offsets
			i := slices.IndexFunc(o, func(s Stored) bool { return s.Event > 0 && strings.Contains(s.GTIDs, "1-") })
			var n int
			fmt.Sscanf(o[i].GTIDs, "aaaa-bbbb:1-%d", &n)
			o[i].GTIDs = fmt.Sprintf("aaaa-bbbb:1-%d", n+1)
		}},
		{"an offset that is not at a BEGIN", "offset", func(s *simulated) {
			o := s.evidence.Offsets
			i := slices.IndexFunc(o, func(s Stored) bool { return s.Event > 0 })
			o[i].Pos -= 79
		}},
		{"a row in the table that no event made", "table", func(s *simulated) {
			s.evidence.Final["d.bulk"] = append(s.evidence.Final["d.bulk"], NewRow(9, 9, 9, 1, "x"))
		}},
		{"a change that the log does not know", "invented", func(s *simulated) {
			s.evidence.Changes = slices.Delete(s.evidence.Changes, 5, 6)
		}},
	}
	for _, f := range faults {
		t.Run(strings.ReplaceAll(f.name, " ", "_"), func(t *testing.T) {
			for seed := range uint64(5) {
				s := simulate(seed)
				f.make(s)
				s.arrange()
				r := Check(s.evidence)
				if !slices.ContainsFunc(r.Problems, func(p string) bool {
					kind, _, _ := strings.Cut(p, ":")
					return slices.Contains(strings.Fields(f.kind), kind)
				}) {
					t.Errorf("seed %d: %s was not found: %v\n%s", seed, f.name, r, strings.Join(r.Problems, "\n"))
				}
			}
		})
	}
}

func TestCheckWorkload(t *testing.T) {
	s := simulate(1)
	if p := CheckWorkload(s.evidence); len(p) > 0 {
		t.Errorf("a good run: %v", p)
	}
	e := s.evidence
	e.Messages = slices.DeleteFunc(slices.Clone(e.Messages), func(m Message) bool {
		return m.Topic == "p.d.ledger" && strings.Contains(string(m.Value), `"seq":30,`)
	})
	if p := CheckWorkload(e); len(p) != 1 || !strings.HasPrefix(p[0], "gap: ") {
		t.Errorf("without number 30: %v", p)
	}
	e.Messages = slices.Clone(s.evidence.Messages)
	i := slices.IndexFunc(e.Messages, func(m Message) bool {
		return strings.Contains(string(m.Value), `"after":{"balance":1000`) && strings.Contains(string(m.Value), `"op":"u"`)
	})
	e.Messages[i].understood = nil
	e.Messages[i].Value = []byte(strings.Replace(string(e.Messages[i].Value), `"after":{"balance":1000`, `"after":{"balance":1001`, 1))
	if p := CheckWorkload(e); len(p) != 1 || !strings.HasPrefix(p[0], "sum: ") {
		t.Errorf("with a changed balance: %v", p)
	}
}

func TestOffsetFileIsReadAsJavaWritesIt(t *testing.T) {
	path := t.TempDir() + "/offsets.dat"
	want := "aced0005737200116a6176612e7574696c2e486173684d61700507dac1c31660d103000246000a6c6f6164466163746f724900097468726573686f6c6478703f4000000000000c77080000001000000001757200025b42acf317f8060854e002000078700000002e5b22696e76656e746f72792d636f6e6e6563746f72222c7b22736572766572223a22646273657276657231227d5d7571007e0002000000257b2266696c65223a226d7973716c2d62696e2e303030303033222c22706f73223a3437397d78"
	write(t, path, unhex(want))
	got, err := ReadOffsetFile(path)
	if err != nil {
		t.Fatal(err)
	}
	key, value := OffsetKey("inventory-connector", "dbserver1"), `{"file":"mysql-bin.000003","pos":479}`
	if len(got) != 1 || got[key] != value {
		t.Errorf("read %v", got)
	}
	WriteOffsetFile(t, path, key, value)
	if again, err := ReadOffsetFile(path); err != nil || again[key] != value {
		t.Errorf("written and read: %v, %v", again, err)
	}
	write(t, path, unhex(want)[:100])
	if got, err := ReadOffsetFile(path); err == nil {
		t.Errorf("a torn file was read as %v", got)
	}
}
