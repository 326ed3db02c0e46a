package it

import (
	"cmp"
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// Place is a point in the binlog: the beginning of an event, and a row in it.
type Place struct {
	File int // the number in the file's name
	Pos  int64
	Row  int
}

// Compare orders places as the binlog does.
func (p Place) Compare(q Place) int {
	return cmp.Or(cmp.Compare(p.File, q.File), cmp.Compare(p.Pos, q.Pos), cmp.Compare(p.Row, q.Row))
}

func (p Place) String() string { return fmt.Sprintf("%06d:%d:%d", p.File, p.Pos, p.Row) }

// fileNumber is the number at the end of a binlog file's name.
func fileNumber(name string) (int, error) {
	i := strings.LastIndexByte(name, '.')
	n, err := strconv.Atoi(name[i+1:])
	if i < 0 || err != nil {
		return 0, fmt.Errorf("binlog file %q has no number", name)
	}
	return n, nil
}

// Binlog is the server's own list of its binlog events. It says which event a stored offset's "event" count means, and which
// GTIDs were complete at a position, without any decoding of ours.
type Binlog struct {
	files  []int
	events map[int][]listed
}

type listed struct {
	pos  int64
	kind string
	info string
	last int64 // number of the GTID of the last transaction begun at or before this event; 0: none
}

// NewBinlog returns an empty list.
func NewBinlog() *Binlog { return &Binlog{events: map[int][]listed{}} }

// Add appends an event, in the order of the server's list: its type and its information text as SHOW BINLOG EVENTS prints them.
func (b *Binlog) Add(file string, pos int64, kind, info string) {
	n, err := fileNumber(file)
	if err != nil {
		return // never true for a file that SHOW BINARY LOGS names
	}
	var last int64
	if k := len(b.files); k > 0 {
		before := b.events[b.files[k-1]]
		last = before[len(before)-1].last
	}
	if len(b.events[n]) == 0 {
		b.files = append(b.files, n)
	}
	if kind == "Gtid" {
		text := strings.Trim(strings.TrimPrefix(info, "SET @@SESSION.GTID_NEXT="), " '")
		if number, err := strconv.ParseInt(text[strings.LastIndexByte(text, ':')+1:], 10, 64); err == nil {
			last = number
		}
	}
	if kind != "Query" {
		info = ""
	}
	b.events[n] = append(b.events[n], listed{pos: pos, kind: kind, info: info, last: last})
}

// at is the index of the event that begins at pos, or -1.
func (b *Binlog) at(file int, pos int64) int {
	events := b.events[file]
	i := sort.Search(len(events), func(i int) bool { return events[i].pos >= pos })
	if i < len(events) && events[i].pos == pos {
		return i
	}
	return -1
}

// IsRows says whether a rows event begins at this place.
func (b *Binlog) IsRows(p Place) bool {
	i := b.at(p.File, p.Pos)
	return i >= 0 && strings.Contains(strings.ToLower(b.events[p.File][i].kind), "_rows")
}

// Resolve turns a stored offset into the place of the first row that it does not cover. An offset inside a transaction has to
// stand at a BEGIN, and its event count may not lead out of the transaction.
func (b *Binlog) Resolve(s Stored) (Place, error) {
	file, err := fileNumber(s.File)
	if err != nil {
		return Place{}, err
	}
	if s.Event == 0 && s.Row == 0 {
		return Place{File: file, Pos: s.Pos}, nil
	}
	i := b.at(file, s.Pos)
	if i < 0 {
		return Place{}, fmt.Errorf("no event begins at %s:%d", s.File, s.Pos)
	}
	events := b.events[file]
	if events[i].kind != "Query" || !strings.HasPrefix(events[i].info, "BEGIN") {
		return Place{}, fmt.Errorf("the event at %s:%d is %s %q, not a BEGIN", s.File, s.Pos, events[i].kind, events[i].info)
	}
	for n := range s.Event {
		if i++; i >= len(events) || events[i].kind == "Gtid" {
			return Place{}, fmt.Errorf("event %d of the offset at %s:%d lies behind the transaction's end (event %d)", s.Event, s.File, s.Pos, n)
		}
	}
	return Place{File: file, Pos: events[i].pos, Row: s.Row}, nil
}

// LastGTID is the number of the last transaction that ended before the position of a stored offset; 0 when there is none.
func (b *Binlog) LastGTID(s Stored) int64 {
	file, err := fileNumber(s.File)
	if err != nil {
		return 0
	}
	events := b.events[file]
	i := sort.Search(len(events), func(i int) bool { return events[i].pos >= s.Pos })
	if i > 0 && events[i-1].kind == "Gtid" {
		i-- // of a transaction that begins here and so is not complete
	}
	if i > 0 {
		return events[i-1].last
	}
	for k := len(b.files) - 1; k >= 0; k-- {
		if b.files[k] < file {
			before := b.events[b.files[k]]
			return before[len(before)-1].last
		}
	}
	return 0
}
