package binlog

import (
	"encoding/binary"

	"github.com/tidemark-cdc/tidemark/schema"
)

// rowShape is what it takes to count the rows of a table without giving them out.
type rowShape struct {
	cells []cell
	json  int // number of JSON columns
}

// maxShapes bounds how many tables that are not captured are remembered.
const maxShapes = 4096

// shapeOf finds out how the rows of a version of a table are laid out; no cells: it cannot be told.
func (a *assembler) shapeOf(v *version) rowShape {
	s, ok := a.uncaptured[v]
	if ok {
		return s
	}
	if a.uncaptured == nil || len(a.uncaptured) >= maxShapes {
		a.uncaptured = make(map[*version]rowShape)
	}
	s = parseShape(v.raw)
	a.uncaptured[v] = s
	return s
}

// parseShape reads the column types of a TABLE_MAP's body behind id and flags.
func parseShape(raw []byte) rowShape {
	_, _, b, err := splitNames(raw)
	if err != nil {
		return rowShape{}
	}
	n, b, ok := lenenc(b)
	if !ok || n > uint64(len(b)) {
		return rowShape{}
	}
	types, b := b[:n], b[n:]
	size, b, ok := lenenc(b)
	if !ok || size > uint64(len(b)) {
		return rowShape{}
	}
	meta := b[:size]
	s := rowShape{cells: make([]cell, 0, n)}
	for _, typ := range types {
		c := schema.Column{Type: typ}
		width := metaSize(typ)
		if len(meta) < width {
			return rowShape{}
		}
		switch {
		case width == 1:
			c.Meta = uint16(meta[0])
		case width == 2 && (typ == typeString || typ == typeNewDecimal || typ == typeEnum || typ == typeSet):
			c.Meta = binary.BigEndian.Uint16(meta)
			if real := meta[0]; typ == typeString && (real == typeEnum || real == typeSet) {
				c.Type = real
			}
		case width == 2:
			c.Meta = binary.LittleEndian.Uint16(meta)
		}
		meta = meta[width:]
		compiled, err := cellOf(&c)
		if err != nil {
			return rowShape{}
		}
		if c.Type == typeJSON {
			s.json++
		}
		s.cells = append(s.cells, compiled)
	}
	return s
}

// countRows counts the rows of an event without looking at their values; -1: it cannot be told.
func (a *assembler) countRows(h *header, v *version, e *rowsEvent) int64 {
	s := a.shapeOf(v)
	return s.count(h, e)
}

// count is countRows for a known shape.
func (s rowShape) count(h *header, e *rowsEvent) int64 {
	if len(s.cells) == 0 || len(s.cells) != e.columns {
		return -1
	}
	before, after := s.present(e.before), s.present(e.after)
	b, n := e.images, int64(0)
	if len(b) > 0 && len(before) == 0 && len(after) == 0 {
		return -1 // damaged
	}
	for len(b) > 0 {
		ok := true
		if e.op != Create {
			b, ok = skipImage(b, before)
		}
		if ok && e.op != Delete {
			if h.typ == evPartialUpdate {
				b, ok = s.skipOptions(b)
			}
			if ok {
				b, ok = skipImage(b, after)
			}
		}
		if !ok {
			return -1
		}
		n++
	}
	if n == 0 && len(before) == 0 && len(after) == 0 {
		n = 1 // the server writes one such row into an event
	}
	return n
}

// present are the cells that an image with a bitmap has.
func (s *rowShape) present(bitmap []byte) []cell {
	if bitmap == nil {
		return nil
	}
	if full(bitmap, len(s.cells)) {
		return s.cells
	}
	var cells []cell
	for i, c := range s.cells {
		if has(bitmap, i) {
			cells = append(cells, c)
		}
	}
	return cells
}

// skipOptions passes over the value options in front of an after image that may have JSON diffs, and the bits that say
// which JSON columns do.
func (s *rowShape) skipOptions(b []byte) ([]byte, bool) {
	options, b, ok := lenenc(b)
	if !ok {
		return nil, false
	}
	if options&1 != 0 {
		n := (s.json + 7) / 8
		if len(b) < n {
			return nil, false
		}
		b = b[n:]
	}
	return b, true
}

// skipImage passes over one row image of these cells.
func skipImage(b []byte, cells []cell) ([]byte, bool) {
	size := (len(cells) + 7) / 8
	if len(b) < size {
		return nil, false
	}
	nulls, b := b[:size], b[size:]
	for i, c := range cells {
		if nulls[i>>3]&(1<<(i&7)) != 0 {
			continue
		}
		n := uint64(c.size)
		if c.prefix > 0 {
			if len(b) < int(c.prefix) {
				return nil, false
			}
			n, b = fixedInt(b[:c.prefix]), b[c.prefix:]
		}
		if uint64(len(b)) < n {
			return nil, false
		}
		b = b[n:]
	}
	return b, true
}
