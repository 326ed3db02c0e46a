package emitter

import "github.com/tidemark-cdc/tidemark/schema"

// segment is text that is the same for several rows.
type segment struct {
	scope  scope
	parts  []part
	fields []fieldText // those among the parts, where they stand in text
	names  []fieldText // the same of the table's names
	text   []byte      // nil before it is rendered
	seen   uint64      // [now.count] when it was rendered
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
	for _, s := range p.changing {
		if s.seen != n.count { // of another program that has it, too
			s.update(n, s.seen)
			s.seen = n.count
		}
	}
	p.seen = n.count
}

// update writes the fields anew that have changed since seen; if one has another length than before, all of the text.
func (s *segment) update(n *now, seen uint64) {
	if s.text == nil || !replace(s.fields, n, seen) || n.named > seen && !replace(s.names, n, seen) {
		s.render(n)
	}
}

// render makes the text.
func (s *segment) render(n *now) {
	s.text, s.fields, s.names = s.text[:0], s.fields[:0], s.names[:0]
	for i := range s.parts {
		p := &s.parts[i]
		if p.literal != nil {
			s.text = append(s.text, p.literal...)
			continue
		}
		start := len(s.text)
		if p.binary {
			s.text = appendBinaryField(s.text, p.field, p.optional, n)
		} else {
			s.text = appendField(s.text, p.field, n)
		}
		f := newFieldText(p, start, len(s.text), n)
		if p.field == sourceDatabase || p.field == sourceTable {
			s.names = append(s.names, f)
		} else {
			s.fields = append(s.fields, f)
		}
	}
	for _, fields := range [][]fieldText{s.fields, s.names} { // the text moves no more
		for i := range fields {
			f := &fields[i]
			f.text = s.text[f.at : f.at+f.size]
		}
	}
}

// appendField appends a field of the event or the clock in JSON.
func appendField(dst []byte, f field, n *now) []byte {
	switch f {
	case sourceGTID, sourceFile, sourceQuery, sourceDatabase, sourceTable:
		s := n.texts[f]
		if len(s) == 0 && f.nullable() {
			return append(dst, jsonNull...)
		}
		return appendQuoted(dst, s)
	case sourceThread:
		if n.info.Thread < 0 {
			return append(dst, jsonNull...)
		}
	}
	return schema.AppendInt(dst, n.number(f))
}
