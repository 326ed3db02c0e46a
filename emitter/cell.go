package emitter

import (
	"encoding/binary"
	"fmt"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/schema"
)

// cell appends one column of a row image.
type cell struct {
	short    [32]byte // what comes before the value, when it fits, since a copy of fixed length is faster …
	size     uint8    // … and how much of it that is; 0: it is in literal
	way      way      // a shorter one than through the column's decoder
	scale    int16    // of a decimal that is written as a number, else -1
	layout   schema.Layout
	optional bool
	null     []byte             // what a nil cell is written as, if optional
	literal  []byte             // what comes before the value, when it is long
	last     *schema.LastSecond // of wayDatetime and wayTimestamp
	keys     *schema.LastKeys   // of wayJSON
	from     *column
}

// before is what comes before the value.
func (c *cell) before() []byte {
	if c.size > 0 {
		return c.short[:c.size]
	}
	return c.literal
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

// appendKnown appends cells of which some are not known, or not there.
func (p *program) appendKnown(dst []byte, o *op, row [][]byte, r *run) ([]byte, error) {
	for i := range o.cells {
		c := &o.cells[i]
		var err error
		switch {
		case o.first+i >= len(row):
			return dst, errColumns(c.from, row)
		case !binlog.IsUnavailable(row[o.first+i]):
			dst, err = p.appendRow(dst, o.cells[i:i+1], row[o.first+i:], r)
		case c.from.unavailable == nil:
			return dst, errUnknown(c.from)
		default:
			dst = append(dst, c.before()...)
			if dst, err = p.dialect.append(dst, c.from.typ, c.from.unavailable, int(c.scale)); err != nil {
				err = fmt.Errorf("column %q: %w", c.from.name, err)
			}
		}
		if err != nil {
			return dst, err
		}
	}
	return dst, nil
}

func errColumns(c *column, row [][]byte) error {
	return fmt.Errorf("column %q: the row image has only %d columns", c.name, len(row))
}

func errUnknown(c *column) error {
	return fmt.Errorf("column %q: the row image does not have it, and nothing can stand for it", c.name)
}

// appendCells appends the cells of an operation.
func (p *program) appendCells(dst []byte, o *op, r *run) ([]byte, error) {
	row := r.image(o.image)
	if len(row) < o.first+len(o.cells) || r.incomplete {
		return p.appendKnown(dst, o, row, r)
	}
	return p.appendRow(dst, o.cells, row[o.first:], r)
}

// appendRow appends cells of a row, of which row begins with the first one's column.
func (p *program) appendRow(dst []byte, cells []cell, row [][]byte, r *run) ([]byte, error) {
	row = row[:len(cells)]
	for i := range cells {
		c := &cells[i]
		if n := len(dst); c.size > 0 && cap(dst)-n >= len(c.short) {
			*(*[len(c.short)]byte)(dst[n : n+len(c.short)]) = c.short
			dst = dst[:n+int(c.size)]
		} else {
			dst = append(dst, c.before()...)
		}
		b := row[i]
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
			if text, ok := schema.AppendQuotedJSON(dst, b, c.keys); ok {
				dst = text
				continue
			}
		case wayDecimal:
			if n, ok := schema.SmallDecimal(b, int(c.layout.Whole), int(c.layout.Size)); ok {
				dst = appendBase64Int(dst, n)
				continue
			}
		case wayDatetime:
			if text, ok := c.last.AppendDatetime(dst, b, int(c.layout.Size)); ok {
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
			return dst, fmt.Errorf("column %q: %w", c.from.name, err)
		}
	}
	return dst, nil
}

// appendDecoded appends a cell by way of its value.
func (p *program) appendDecoded(dst []byte, c *cell, b []byte, r *run) ([]byte, error) {
	v := &r.value
	if err := c.from.decode(b, r.scratch, v); err != nil {
		return dst, err
	}
	switch v.Kind {
	case schema.Null:
		return p.dialect.appendNull(dst, c.from.typ, int(c.scale))
	case schema.Int:
		if p.dialect.text == jsonText {
			return schema.AppendInt(dst, v.Int), nil
		}
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
	return p.dialect.append(dst, c.from.typ, v, int(c.scale))
}
