package emitter

import (
	"time"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// now is what the segments of programs are rendered for: the event at hand and the clock. It knows which fields change, so
// that the others need not be looked at for each program.
type now struct {
	info *binlog.Info
	time time.Time

	count   uint64         // of events and readings of the clock
	changed [fields]uint64 // what count was when a field changed
	room    [32]byte       // for a number

	// What the fields had last. An event's own memory may have another event by now.
	last            binlog.Info
	database, table string
	named           uint64 // what count was when one of these changed
	texts           [fields][]byte
	gtid            offset.GTIDText
	source, wall    moment
}

// of goes on to a table.
func (n *now) of(t *schema.Table) {
	n.count++
	if t.Database != n.database {
		n.database, n.named = t.Database, n.count
		n.setText(sourceDatabase, t.Database)
	}
	if t.Name != n.table {
		n.table, n.named = t.Name, n.count
		n.setText(sourceTable, t.Name)
	}
}

// begin goes on to an event.
func (n *now) begin(info *binlog.Info) {
	n.info = info
	n.count++
	c, last := n.count, &n.last
	if info.TsMicros != last.TsMicros {
		last.TsMicros = info.TsMicros
		n.source.known = false
		n.changed[sourceTsMs], n.changed[sourceTsUs], n.changed[sourceTsNs] = c, c, c
	}
	if info.ServerID != last.ServerID {
		last.ServerID, n.changed[sourceServerID] = info.ServerID, c
	}
	if info.GTID != last.GTID {
		last.GTID, n.changed[sourceGTID] = info.GTID, c
		n.texts[sourceGTID] = n.gtid.Of(info.GTID)
	}
	if info.File != last.File {
		last.File = info.File
		n.setText(sourceFile, info.File)
	}
	if info.Pos != last.Pos {
		last.Pos, n.changed[sourcePos] = info.Pos, c
	}
	if info.Thread != last.Thread {
		last.Thread, n.changed[sourceThread] = info.Thread, c
	}
	if info.Query != last.Query {
		last.Query = info.Query
		n.setText(sourceQuery, info.Query)
	}
}

// textKept is how much memory the text of a field keeps: a statement may be long.
const textKept = 64 << 10

// setText gives a field another text.
func (n *now) setText(f field, text string) {
	to := n.texts[f][:0]
	if cap(to) > textKept {
		to = nil
	}
	n.texts[f], n.changed[f] = append(to, text...), n.count
}

// read goes on to a reading of the clock.
func (n *now) read(t time.Time) {
	n.count++
	n.time = t
	n.wall.known = false
	c := n.count
	n.changed[envelopeTsMs], n.changed[envelopeTsUs], n.changed[envelopeTsNs] = c, c, c
}

// number is a field that is a number.
func (n *now) number(f field) int64 {
	switch f {
	case sourceTsMs:
		return floorDiv(n.info.TsMicros, 1000)
	case sourceTsUs:
		return n.info.TsMicros
	case sourceTsNs:
		return n.info.TsMicros * 1000
	case sourceServerID:
		return n.info.ServerID
	case sourcePos:
		return n.info.Pos
	case sourceThread:
		return n.info.Thread
	case envelopeTsMs:
		return n.time.UnixMilli()
	case envelopeTsUs:
		return n.time.UnixMicro()
	case envelopeTsNs:
		return n.time.UnixNano()
	}
	return 0
}

// setSource makes the digits of the event's time.
func (n *now) setSource() {
	us := n.info.TsMicros
	n.source.set(us/1e6, us%1e6*1000)
}

// setWall makes those of the clock's.
func (n *now) setWall() { n.wall.set(n.time.Unix(), int64(n.time.Nanosecond())) }

// moment has the digits of a time in nanoseconds since the epoch. Those in micro- and milliseconds are the first of them.
type moment struct {
	known   bool // the digits are made
	usual   bool // there are as many as from 2001 to 2255
	seconds int64
	digits  [24]byte
}

// Digits of a usual time.
const (
	secondDigits = 10
	milliDigits  = secondDigits + 3
	microDigits  = secondDigits + 6
	nanoDigits   = secondDigits + 9
)

func (m *moment) set(seconds, nanos int64) {
	m.known, m.usual = true, seconds >= 1e9 && seconds < 9e9
	if !m.usual {
		return
	}
	if seconds != m.seconds {
		m.seconds = seconds
		schema.AppendInt(m.digits[:0], seconds)
	}
	schema.PutNineDigits((*[9]byte)(m.digits[secondDigits:nanoDigits]), uint32(nanos))
}

// put writes the time over a text of as many digits.
func (m *moment) put(text []byte) bool {
	switch {
	case !m.usual:
		return false
	case len(text) == milliDigits:
		*(*[milliDigits]byte)(text) = [milliDigits]byte(m.digits[:])
	case len(text) == microDigits:
		*(*[microDigits]byte)(text) = [microDigits]byte(m.digits[:])
	default:
		*(*[nanoDigits]byte)(text) = [nanoDigits]byte(m.digits[:])
	}
	return true
}

func floorDiv(a, b int64) int64 {
	if a < 0 {
		return (a - b + 1) / b
	}
	return a / b
}
