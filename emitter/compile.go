package emitter

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemark-cdc/tidemark/schema"
)

// dialect is what differs between the formats.
type dialect struct {
	text     textForm
	defaults bool // a NULL is written as the schema's default
	numbers  bool // decimals are numbers
}

// textForm is how values become text, or bytes.
type textForm uint8

const (
	jsonText   textForm = iota // Connect's JsonConverter
	simpleText                 // its SimpleHeaderConverter
	javaText                   // its StringConverter: what Java's toString gives
	avroBinary                 // an AvroConverter
)

// append appends a value of type t that is not Null.
func (d *dialect) append(dst []byte, t *schema.Type, v *schema.Value, scale int) ([]byte, error) {
	switch d.text {
	case simpleText:
		return appendSimple(dst, t, v, scale)
	case javaText:
		return appendJava(dst, t, v, scale)
	}
	return appendJSON(dst, v, scale)
}

// builder collects a program.
type builder struct {
	program
	literal []byte
	shared  *shared // what programs have in common; nil: nothing
	made    []op    // of other programs of the same columns in the same dialect: their cells may be taken
}

// compile makes the program that appends s in dialect d between prefix, whose memory it keeps, and suffix.
func compile(s *shape, d dialect, prefix []byte, suffix string) (*program, error) {
	b := builder{program: program{dialect: d}}
	if prefix != nil {
		b.segment(&segment{text: prefix})
	}
	return b.compile(s, suffix)
}

// compile makes the program that appends s, and suffix, behind what the builder has.
func (b *builder) compile(s *shape, suffix string) (*program, error) {
	if err := b.shape(s); err != nil {
		return nil, err
	}
	b.literal = append(b.literal, suffix...)
	b.flush()
	for i := range b.ops {
		o := &b.ops[i]
		switch seg := o.segment; {
		case seg == nil:
		case seg.scope != scopePlan:
			o.segment = b.shared.segment(seg)
			b.changing = append(b.changing, o.segment)
		case seg.parts != nil:
			seg.render(nil)
			seg.text, seg.parts, seg.fields = bytes.Clone(seg.text), nil, nil
		}
	}
	p := b.program
	p.ops = slices.Clone(joined(p.ops))
	if len(p.ops) == 1 && p.ops[0].kind == opBinaryCells && p.ops[0].segment == nil {
		p.single = &p.ops[0]
	}
	return &p, nil
}

// joined puts each segment into the operation that comes behind it.
func joined(ops []op) []op {
	joined := ops[:0]
	for _, o := range ops {
		if n := len(joined); o.kind != opSegment && n > 0 && joined[n-1].kind == opSegment {
			o.segment = joined[n-1].segment
			joined = joined[:n-1]
		}
		joined = append(joined, o)
	}
	return joined
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
	n := len(b.ops)
	if n == 0 || b.ops[n-1].kind != opSegment || b.ops[n-1].segment.parts == nil {
		b.segment(new(segment))
		n = len(b.ops)
	}
	s := b.ops[n-1].segment
	s.parts = append(s.parts, p)
	s.scope = max(s.scope, sc)
}

func (b *builder) segment(s *segment) {
	b.ops = append(b.ops, op{kind: opSegment, segment: s})
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
		binary := b.dialect.text == avroBinary
		switch sc := s.leaf.field.scope(); {
		case sc != scopeRow:
			b.part(part{field: s.leaf.field, binary: binary, optional: s.typ.Optional}, sc)
		case binary:
			b.ops = append(b.ops, op{kind: opBinaryRow})
		default:
			b.ops = append(b.ops, op{kind: opRow})
		}
		return nil
	case leafSlot:
		b.flush()
		b.ops = append(b.ops, op{kind: opSlot, slot: s.leaf.slot, typ: s.typ})
		return nil
	}
	return errors.New("a cell outside a row")
}

// structure compiles a struct: neighbouring cells into one operation, anything else member by member.
func (b *builder) structure(s *shape) error {
	switch b.dialect.text {
	case javaText:
		b.flush()
		b.ops = append(b.ops, op{kind: opJava, shape: s})
		return nil
	case avroBinary:
		return b.record(s)
	}
	if len(s.fields) == 0 {
		b.literal = append(b.literal, '{')
	}
	for i := 0; i < len(s.fields); {
		if n := cellsFrom(s.fields[i:]); n > 0 {
			if err := b.cells(s, i, i+n); err != nil {
				return err
			}
			i += n
			continue
		}
		b.literal = b.dialect.appendName(b.literal, s, i)
		if err := b.shape(&s.fields[i]); err != nil {
			return err
		}
		i++
	}
	b.literal = append(b.literal, '}')
	return nil
}

// cellsFrom is how many of the fields, from the first on, are cells of columns of one image that follow each other.
func cellsFrom(fields []shape) int {
	for i := range fields {
		l, first := &fields[i].leaf, &fields[0].leaf
		if l.kind != leafCell || l.image != first.image || int(l.column.index) != int(first.column.index)+i {
			return i
		}
	}
	return len(fields)
}

// appendName appends what comes before the value of a struct's i-th member.
func (d *dialect) appendName(dst []byte, s *shape, i int) []byte {
	if i == 0 {
		dst = append(dst, '{')
	} else {
		dst = append(dst, ',')
	}
	name := []byte(s.typ.Fields[i].Name)
	if d.text == simpleText {
		dst = appendSimpleString(dst, name)
	} else {
		dst = appendQuoted(dst, name)
	}
	return append(dst, ':')
}

// cells compiles the members of a struct from first on up to last.
func (b *builder) cells(s *shape, first, last int) error {
	l := &s.fields[first].leaf
	o := op{kind: opCells, image: l.image, first: int(l.column.index)}
	for i := range b.made {
		if made := &b.made[i]; made.image == l.image && len(made.cells) == last-first && made.cells[0].from == l.column {
			o.cells = made.cells
		}
	}
	if o.cells == nil {
		var err error
		if o.cells, err = b.newCells(s, first, last); err != nil {
			return err
		}
	}
	b.flush()
	b.ops = append(b.ops, o)
	return nil
}

func (b *builder) newCells(s *shape, first, last int) ([]cell, error) {
	cells := make([]cell, 0, last-first)
	var literal []byte
	for i := first; i < last; i++ {
		f := s.fields[i].leaf.column
		c := cell{optional: f.typ.Optional, scale: -1, layout: f.layout, from: f}
		c.way = wayOf(c.layout)
		scale, decimal, err := decimalScale(f.typ)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", f.name, err)
		}
		if decimal && b.dialect.numbers {
			c.scale = int16(scale)
		}
		if c.scale >= 0 || b.dialect.text == simpleText && dateKindOf(f.typ) != noDate {
			c.way = wayDecoder
		}
		switch c.way {
		case wayDatetime, wayTimestamp:
			c.last = new(schema.LastSecond)
		case wayJSON:
			c.keys = new(schema.LastKeys)
		}
		if c.null, err = b.null(f, int(c.scale)); err != nil {
			return nil, fmt.Errorf("column %q: %w", f.name, err)
		}
		if literal = b.dialect.appendName(literal[:0], s, i); len(literal) <= len(c.short) {
			c.size = uint8(copy(c.short[:], literal))
		} else {
			c.literal = bytes.Clone(literal)
		}
		cells = append(cells, c)
	}
	return cells, nil
}

// null is what a nil cell of an optional column is written as: a mask may make a value even of NULL.
func (b *builder) null(c *column, scale int) ([]byte, error) {
	var v schema.Value
	if c.typ.Optional {
		if err := c.decode(nil, new(schema.Scratch), &v); err != nil {
			return nil, err
		}
	}
	if v.Kind == schema.Null {
		return b.dialect.appendNull(nil, c.typ, scale)
	}
	return b.dialect.append(nil, c.typ, &v, scale)
}

// appendNull appends what a NULL in a column or member of type t is written as.
func (d *dialect) appendNull(dst []byte, t *schema.Type, scale int) ([]byte, error) {
	if d.defaults && t.Default != nil && t.Default.Kind != schema.Null {
		return d.append(dst, t, t.Default, scale)
	}
	if dst == nil {
		return jsonNull, nil
	}
	return append(dst, jsonNull...), nil
}

// jsonNull is shared by all who write it. It has no room for more.
var jsonNull = []byte("null")[:4:4]

func (d *dialect) appendConstant(dst []byte, t *schema.Type, v *schema.Value) ([]byte, error) {
	if d.text == avroBinary {
		return d.appendBinaryConstant(dst, t, v)
	}
	if v.Kind == schema.Null {
		return d.appendNull(dst, t, -1)
	}
	return d.append(dst, t, v, -1)
}
