package emitter

import (
	"time"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/schema"
)

// segment is text that is the same for several rows.
type segment struct {
	scope  scope
	parts  []part
	fields []fieldText // those among the parts, where they stand in text; nil before it is rendered
	text   []byte
}

// part is a piece of a segment: literal text, or an event's or the clock's field.
type part struct {
	literal  []byte
	field    field // when literal is nil
	binary   bool  // the field is written in Avro's binary encoding …
	optional bool  // … and its type is a union with null
}

// refresh brings the segments up to date that have become stale.
func (p *program) refresh(n *now) {
	if p.seen == n.count {
		return
	}
	for _, s := range p.segments {
		if s.scope != scopePlan {
			s.update(n, p.seen)
		}
	}
	p.seen = n.count
}

// update writes the fields anew that have changed since seen; if one has another length than before, all of the text.
func (s *segment) update(n *now, seen uint64) {
	if s.fields == nil || !replace(s.text, s.fields, n, seen) {
		s.render(n)
	}
}

// render makes the text.
func (s *segment) render(n *now) {
	s.text, s.fields = s.text[:0], s.fields[:0]
	for i := range s.parts {
		p := &s.parts[i]
		if p.literal != nil {
			s.text = append(s.text, p.literal...)
			continue
		}
		start := len(s.text)
		if p.binary {
			s.text = appendBinaryField(s.text, p.field, p.optional, n.info, n.time)
		} else {
			s.text = appendField(s.text, p.field, n.info, n.time)
		}
		s.fields = append(s.fields, newFieldText(p, start, len(s.text), n))
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
