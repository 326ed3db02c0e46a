package offset

import (
	"strconv"
	"strings"
)

// Position is a place in the binlog that something beside an offset names: a record of a schema history, a definition in
// a schema store.
type Position struct {
	File  string
	Pos   int64   // the end of the statement
	Event int64   // events to skip after Pos; 0 but for transactions
	GTIDs GTIDSet // executed at the position; absent without GTIDs
	// Before says that GTIDs lacks the very transaction that ends at the position, as in Debezium's schema history.
	Before bool
}

// Before reports whether o lies before p in the binlog of one server: by number of the file, position, event and row.
// The second result is false if that cannot be said, because the files are not numbered alike ("mysql-bin.000009" and
// "binlog.000010"). Whether both offsets are from the same server, the caller has to know; across servers only the
// GTID sets can be compared.
func (o Offset) Before(p Offset) (before, comparable bool) {
	base, number, ok := fileNumber(o.File)
	base2, number2, ok2 := fileNumber(p.File)
	if !ok || !ok2 || base != base2 {
		return false, false
	}
	switch {
	case number != number2:
		return number < number2, true
	case o.Pos != p.Pos:
		return o.Pos < p.Pos, true
	case o.Event != p.Event:
		return o.Event < p.Event, true
	}
	return o.Row < p.Row, true
}

// fileNumber splits a binlog file name: the number grows by more digits after .999999.
func fileNumber(file string) (base string, number uint64, ok bool) {
	dot := strings.LastIndexByte(file, '.')
	if dot < 0 {
		return "", 0, false
	}
	number, err := strconv.ParseUint(file[dot+1:], 10, 64)
	return file[:dot], number, err == nil
}

// Covers reports whether what happened at p has happened at o: whether o is at or after p (I10, I11). The second result
// is false if that cannot be said.
//
// With GTIDs on both sides the sets decide, whatever the servers: o must have all of p's. When p lacks its own
// transaction and the sets are equal, that one is the next, or was just done by a Debezium, which does not count it
// before another follows: then file, position and event decide if they can be compared, and else it is done; nothing but
// the statement itself lies between the two. An o with GTIDs is after a p without, since servers are not taken back from
// GTIDs. Otherwise file, position and event decide; the caller has to know that both are from one server.
func (o Offset) Covers(p Position) (covers, known bool) {
	at := Offset{File: p.File, Pos: p.Pos, Event: p.Event}
	earlier, comparable := Offset{File: o.File, Pos: o.Pos, Event: o.Event}.Before(at)
	switch {
	case o.GTIDs.IsAbsent():
		return comparable && !earlier, comparable
	case p.GTIDs.IsAbsent():
		return true, true
	case !o.GTIDs.ContainsSet(p.GTIDs):
		return false, true
	case p.Before && p.GTIDs.ContainsSet(o.GTIDs):
		return !comparable || !earlier, true
	}
	return true, true
}
