package emitter

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/schema"
)

// A program appends one record's key, value or header in one format: a shape compiled into a flat list of operations.
// Everything between two parts that change with the row is one segment, whose text is rendered when the plan is
// compiled, an event begins or the clock is read, and only copied for a row.
type program struct {
	ops      []op
	segments []segment
	dialect  dialect
	event    uint64 // the number of the event …
	clock    uint64 // … and of the reading of the clock that the segments are rendered for
}

type op struct {
	kind    opKind
	segment int    // of opSegment
	image   image  // of opCells
	cells   []cell // of opCells
}

type opKind uint8

const (
	opSegment opKind = iota
	opCells          // the cells of a row image
	opRow
)

// segment is text that is the same for several rows.
type segment struct {
	scope scope
	parts []part
	text  []byte
}

// part is a piece of a segment: literal text, or an event's or the clock's field.
type part struct {
	literal []byte
	field   field // when literal is nil
}

// cell appends one column of a row image.
type cell struct {
	literal  []byte   // what comes before the value
	short    [24]byte // … again, when it fits, since a copy of fixed length is faster
	column   int      // index into the row image
	scale    int      // of a decimal that is written as a number, else -1
	optional bool
	null     []byte // what NULL is written as
	decode   schema.Decoder
	way      way // a shorter one than through decode
	layout   schema.Layout
	last     schema.LastSecond // of wayDatetime and wayTimestamp
	name     string
}

// way says how a cell is appended.
type way uint8

const (
	wayDecoder way = iota // what the decoder gives: always right
	wayInt64              // a little-endian number
	wayInt32
	wayInt8
	wayText    // text that is copied if it is plain ASCII
	wayJSON    // a JSON document, if its strings have nothing to escape
	wayPlain   // text from the decoder that has nothing to escape
	wayDecimal // in base64
	wayDatetime
	wayTimestamp
)

// wayOf is the way for the usual columns: fewer calls, and fewer looks at the bytes.
func wayOf(l schema.Layout) way {
	switch l.Kind {
	case schema.LayoutInteger:
		switch {
		case l.Size == 8: // unsigned ones, too: the value has the same bits
			return wayInt64
		case l.Size == 4 && !l.Unsigned:
			return wayInt32
		case l.Size == 1 && !l.Unsigned:
			return wayInt8
		}
	case schema.LayoutText:
		return wayText
	case schema.LayoutJSON:
		return wayJSON
	case schema.LayoutPlain:
		return wayPlain
	case schema.LayoutDecimal:
		return wayDecimal
	case schema.LayoutDatetime:
		return wayDatetime
	case schema.LayoutTimestamp:
		return wayTimestamp
	}
	return wayDecoder
}

// dialect is what differs between the textual formats.
type dialect struct {
	header   bool // the text that Connect's SimpleHeaderConverter gives, instead of JSON
	defaults bool // a NULL is written as the schema's default
	numbers  bool // decimals are numbers
}

func (d *dialect) append(dst []byte, v *schema.Value, scale int) ([]byte, error) {
	if d.header {
		return appendHeaderText(dst, v, scale)
	}
	return appendJSON(dst, v, scale)
}

// run is what a program's row operations read.
type run struct {
	before, after [][]byte
	row           int
	value         schema.Value // the cell at hand; decoders write it
	scratch       *schema.Scratch
}

// builder collects a program.
type builder struct {
	program
	layouts []schema.Layout
	literal []byte
}

// compile makes the program that appends s in dialect d between prefix, whose memory it keeps, and suffix. layouts are
// those of the table's columns.
func compile(s *shape, layouts []schema.Layout, d dialect, prefix []byte, suffix string) (*program, error) {
	b := builder{program: program{dialect: d}, layouts: layouts}
	if prefix != nil {
		b.ops = append(b.ops, op{kind: opSegment})
		b.segments = append(b.segments, segment{text: prefix})
	}
	if err := b.shape(s); err != nil {
		return nil, err
	}
	b.literal = append(b.literal, suffix...)
	b.flush()
	p := &b.program
	for i := range p.segments {
		if seg := &p.segments[i]; seg.scope == scopePlan && seg.parts != nil {
			seg.render(nil, time.Time{})
			seg.parts = nil
		}
	}
	return p, nil
}

// flush turns the pending literal into a part of the current segment.
func (b *builder) flush() {
	if len(b.literal) > 0 {
		b.part(part{literal: b.literal}, scopePlan)
		b.literal = nil
	}
}

// part adds to the segment at the end of the program, which lives as long as the shortest-lived of its parts.
func (b *builder) part(p part, sc scope) {
	if n := len(b.ops); n == 0 || b.ops[n-1].kind != opSegment || b.segments[len(b.segments)-1].parts == nil {
		b.ops = append(b.ops, op{kind: opSegment, segment: len(b.segments)})
		b.segments = append(b.segments, segment{})
	}
	s := &b.segments[len(b.segments)-1]
	s.parts = append(s.parts, p)
	s.scope = max(s.scope, sc)
}

func (b *builder) shape(s *shape) error {
	if s.fields != nil {
		return b.structure(s)
	}
	switch s.leaf.kind {
	case leafConst:
		var err error
		b.literal, err = b.dialect.appendConstant(b.literal, s.typ, &s.leaf.constant)
		return err
	case leafField:
		b.flush()
		if sc := s.leaf.field.scope(); sc != scopeRow {
			b.part(part{field: s.leaf.field}, sc)
		} else {
			b.ops = append(b.ops, op{kind: opRow})
		}
		return nil
	}
	return fmt.Errorf("a cell outside a row")
}

// structure compiles a struct: of cells into one operation, of anything else member by member.
func (b *builder) structure(s *shape) error {
	if len(s.fields) > 0 && s.fields[0].leaf.kind == leafCell {
		return b.cells(s)
	}
	for i := range s.fields {
		if i == 0 {
			b.literal = append(b.literal, '{')
		} else {
			b.literal = append(b.literal, ',')
		}
		b.literal = appendQuoted(b.literal, []byte(s.typ.Fields[i].Name))
		b.literal = append(b.literal, ':')
		if err := b.shape(&s.fields[i]); err != nil {
			return err
		}
	}
	b.literal = append(b.literal, '}')
	return nil
}

func (b *builder) cells(s *shape) error {
	o := op{kind: opCells, image: s.fields[0].leaf.image}
	for i := range s.fields {
		f := &s.fields[i]
		c := cell{
			column: f.leaf.column, decode: f.leaf.decode, optional: f.typ.Optional, scale: -1,
			name: s.typ.Fields[i].Name, layout: b.layouts[f.leaf.column],
		}
		c.way = wayOf(c.layout)
		scale, decimal, err := decimalScale(f.typ)
		if err != nil {
			return fmt.Errorf("column %q: %w", c.name, err)
		}
		if decimal && b.dialect.numbers {
			c.scale = scale
			c.way = wayDecoder
		}
		if i == 0 {
			c.literal = append(c.literal, '{')
		} else {
			c.literal = append(c.literal, ',')
		}
		c.literal = appendQuoted(c.literal, []byte(c.name))
		c.literal = append(c.literal, ':')
		if c.null, err = b.dialect.appendNull(nil, f.typ, c.scale); err != nil {
			return fmt.Errorf("column %q: %w", c.name, err)
		}
		copy(c.short[:], c.literal)
		o.cells = append(o.cells, c)
	}
	b.flush()
	b.ops = append(b.ops, o)
	return nil
}

// appendNull appends what a NULL in a column or member of type t is written as.
func (d *dialect) appendNull(dst []byte, t *schema.Type, scale int) ([]byte, error) {
	if d.defaults && t.Default != nil && t.Default.Kind != schema.Null {
		return d.append(dst, t.Default, scale)
	}
	return append(dst, "null"...), nil
}

func (d *dialect) appendConstant(dst []byte, t *schema.Type, v *schema.Value) ([]byte, error) {
	if v.Kind == schema.Null {
		return d.appendNull(dst, t, -1)
	}
	return d.append(dst, v, -1)
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
		if p.segments[i].scope >= from {
			p.segments[i].render(n.info, n.time)
		}
	}
}

func (s *segment) render(info *binlog.Info, now time.Time) {
	s.text = s.text[:0]
	for i := range s.parts {
		if p := &s.parts[i]; p.literal != nil {
			s.text = append(s.text, p.literal...)
		} else {
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

// append runs the program for one row.
func (p *program) append(dst []byte, r *run) ([]byte, error) {
	var err error
	for i := range p.ops {
		o := &p.ops[i]
		switch o.kind {
		case opSegment:
			dst = append(dst, p.segments[o.segment].text...)
		case opCells:
			cells := r.after
			if o.image == before {
				cells = r.before
			}
			if dst, err = p.appendCells(dst, o.cells, cells, r); err != nil {
				return dst, err
			}
		case opRow:
			dst = schema.AppendInt(dst, int64(r.row))
		}
	}
	return dst, nil
}

func (p *program) appendCells(dst []byte, cells []cell, row [][]byte, r *run) ([]byte, error) {
	for i := range cells {
		c := &cells[i]
		if n := len(dst); len(c.literal) <= len(c.short) && cap(dst)-n >= len(c.short) {
			*(*[len(c.short)]byte)(dst[n : n+len(c.short)]) = c.short
			dst = dst[:n+len(c.literal)]
		} else {
			dst = append(dst, c.literal...)
		}
		if c.column >= len(row) {
			return dst, fmt.Errorf("column %q: the row image has only %d columns", c.name, len(row))
		}
		b := row[c.column]
		if b == nil && c.optional {
			dst = append(dst, c.null...)
			continue
		}
		switch c.way {
		case wayInt64:
			if len(b) == 8 {
				dst = schema.AppendInt(dst, int64(binary.LittleEndian.Uint64(b)))
				continue
			}
		case wayInt32:
			if len(b) == 4 {
				dst = schema.AppendInt(dst, int64(int32(binary.LittleEndian.Uint32(b))))
				continue
			}
		case wayInt8:
			if len(b) == 1 {
				dst = schema.AppendInt(dst, int64(int8(b[0])))
				continue
			}
		case wayText:
			if text, ok := appendPlain(dst, b); ok && b != nil {
				dst = text
				continue
			}
		case wayJSON:
			if text, ok := schema.AppendQuotedJSON(dst, b); ok {
				dst = text
				continue
			}
		case wayDecimal:
			if n, ok := schema.SmallDecimal(b, c.layout.Whole, c.layout.Size); ok {
				dst = appendBase64Int(dst, n)
				continue
			}
		case wayDatetime:
			if text, ok := c.last.AppendDatetime(dst, b, c.layout.Size); ok {
				dst = text
				continue
			}
		case wayTimestamp:
			if text, ok := c.last.AppendTimestamp(dst, b); ok {
				dst = text
				continue
			}
		}
		var err error
		if dst, err = p.appendDecoded(dst, c, b, r); err != nil {
			return dst, fmt.Errorf("column %q: %w", c.name, err)
		}
	}
	return append(dst, '}'), nil
}

// appendDecoded appends a cell by way of its value.
func (p *program) appendDecoded(dst []byte, c *cell, b []byte, r *run) ([]byte, error) {
	v := &r.value
	if err := c.decode(b, r.scratch, v); err != nil {
		return dst, err
	}
	switch v.Kind {
	case schema.Null:
		return append(dst, c.null...), nil
	case schema.Int:
		return schema.AppendInt(dst, v.Int), nil
	case schema.String:
		if c.way == wayPlain || c.way == wayTimestamp {
			dst = append(dst, '"')
			dst = append(dst, v.Bytes...)
			return append(dst, '"'), nil
		}
	case schema.Bytes:
		if c.scale < 0 {
			return appendBase64(dst, v.Bytes), nil
		}
	}
	return p.dialect.append(dst, v, c.scale)
}
