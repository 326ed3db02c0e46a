package emitter

import (
	"time"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/schema"
)

// segment is text that is the same for several rows.
type segment struct {
	scope scope
	parts []part
	text  []byte
}

// part is a piece of a segment: literal text, or an event's or the clock's field.
type part struct {
	literal  []byte
	field    field // when literal is nil
	binary   bool  // the field is written in Avro's binary encoding …
	optional bool  // … and its type is a union with null
}

// now is what the segments of programs are rendered for.
type now struct {
	info  *binlog.Info
	time  time.Time
	event uint64 // counts events
	clock uint64 // counts readings of the clock
}

// refresh renders the segments that have become stale.
func (p *program) refresh(n *now) {
	from := scopeClock
	switch {
	case p.event != n.event:
		from = scopeEvent
	case p.clock == n.clock:
		return
	}
	p.event, p.clock = n.event, n.clock
	for i := range p.segments {
		if s := p.segments[i]; s.scope >= from {
			s.render(n.info, n.time)
		}
	}
}

func (s *segment) render(info *binlog.Info, now time.Time) {
	s.text = s.text[:0]
	for i := range s.parts {
		switch p := &s.parts[i]; {
		case p.literal != nil:
			s.text = append(s.text, p.literal...)
		case p.binary:
			s.text = appendBinaryField(s.text, p.field, p.optional, info, now)
		default:
			s.text = appendField(s.text, p.field, info, now)
		}
	}
}

// appendField appends a field of the event or the clock in JSON.
func appendField(dst []byte, f field, info *binlog.Info, now time.Time) []byte {
	number := func(v int64) []byte { return schema.AppendInt(dst, v) }
	str := func(s string) []byte {
		if s == "" {
			return append(dst, "null"...)
		}
		return appendQuoted(dst, []byte(s))
	}
	switch f {
	case sourceTsMs:
		return number(floorDiv(info.TsMicros, 1000))
	case sourceTsUs:
		return number(info.TsMicros)
	case sourceTsNs:
		return number(info.TsMicros * 1000)
	case sourceServerID:
		return number(info.ServerID)
	case sourceGTID:
		return str(info.GTID)
	case sourceFile:
		return appendQuoted(dst, []byte(info.File))
	case sourcePos:
		return number(info.Pos)
	case sourceThread:
		if info.Thread < 0 {
			return append(dst, "null"...)
		}
		return number(info.Thread)
	case sourceQuery:
		return str(info.Query)
	case envelopeTsMs:
		return number(now.UnixMilli())
	case envelopeTsUs:
		return number(now.UnixMicro())
	case envelopeTsNs:
		return number(now.UnixNano())
	}
	return dst
}

func floorDiv(a, b int64) int64 {
	if a < 0 {
		return (a - b + 1) / b
	}
	return a / b
}
