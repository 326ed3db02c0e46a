package sim

import (
	"errors"
	"slices"
	"time"

	"github.com/tidemark-cdc/tidemark/binlog/server"
)

// ending is what some runs end with: nobody can go on from the stored offset any more, and the process has to stop and say why
// rather than leave something out. prepare is called while MySQL is away.
type ending struct {
	name     string
	possible func(s *simulation) bool
	prepare  func(s *simulation)
	want     error
}

var endings = []ending{
	{"end: purge of what is not done", nil, func(s *simulation) {
		for range 40 {
			s.mysql.execute()
		}
		s.mysql.flushLogs()
		s.mysql.execute()
		s.mysql.purge("")
	}, server.ErrPurged},
	{"end: the server has lost its last transactions", nil, func(s *simulation) { s.mysql.lose(1 + s.intn(10)) }, server.ErrOtherServer},
	{"end: another server, without GTIDs", func(s *simulation) bool { return !s.mysql.gtids }, func(s *simulation) { s.mysql.impostor() }, server.ErrOtherServer},
}

// ends names them.
var ends = func() (names []string) {
	for _, e := range endings {
		names = append(names, e.name)
	}
	return names
}()

// end brings an ending, in some runs.
func (s *simulation) end() {
	e := endings[s.plan.IntN(len(endings))]
	if s.plan.IntN(2) > 0 || e.possible != nil && !e.possible(s) {
		return
	}
	for from := time.Now(); len(s.mysql.streamsNow()) == 0 && time.Since(from) < time.Minute; { // not while one looks where it can go on
		s.sleep(time.Second)
	}
	s.say("%s", e.name)
	s.mu.Lock()
	s.ending = &e
	s.mu.Unlock()
	s.mysql.stop()
	e.prepare(s)
	s.mysql.start()
	for from := time.Now(); time.Since(from) < 5*time.Minute && s.exit() == nil; {
		s.sleep(time.Second)
	}
	switch err := s.exit(); {
	case err == nil:
		s.violated("no gap", "%s, and the process goes on", e.name)
	case !errors.Is(err, e.want):
		s.violated("no gap", "%s, and the process ends with: %v", e.name, err)
	default:
		s.hits[e.name]++
	}
}

// exit is what the last process ended with, when no other one was begun.
func (s *simulation) exit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.exits
}

// lose has the primary be as it was n transactions ago: its binlog ends there.
func (s *servers) lose(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, left := s.primary, len(s.done)-n
	short := *was
	short.files, short.executed = nil, gtidSet{}
	for _, tx := range s.done[:left] {
		if uuid, number := splitGTID(tx.gtid); uuid != "" {
			short.executed[uuid] = number
		}
	}
	for _, f := range was.files {
		at := slices.IndexFunc(f.events, func(e placed) bool { return e.head && was.edges[place{f.name, e.pos}] >= left })
		if at < 0 {
			short.files = append(short.files, f)
			continue
		}
		short.files = append(short.files, &binlogFile{name: f.name, previous: f.previous, events: f.events[:at], size: f.events[at].pos})
		break
	}
	s.primary = &short
}

// impostor has another server be the primary that looks like it: the same files with the same positions.
func (s *servers) impostor() {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.primary
	other := *was
	other.uuid = "0000000f-1111-2222-3333-00000000000f"
	s.primary = &other
}

// counts are what a check has looked at.
type counts struct{ changes, records, repeats, transactions int }
