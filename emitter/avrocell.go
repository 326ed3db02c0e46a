package emitter

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/schema"
)

// binaryCell appends one column of a row image in Avro's binary encoding.
type binaryCell struct {
	optional bool
	branch   byte      // if optional: that of the union for a value
	way      binaryWay // a shorter one than through the column's decoder
	layout   schema.Layout
	skip     int                // length of the branch: 1 if optional, else 0
	null     []byte             // what a nil cell is written as, if optional
	last     *schema.LastSecond // of binaryTimestamp
	day      schema.LastDay     // of binaryDatetime
	head     int                // of binaryJSON
	from     *column
}

// binaryWay says how a cell is appended.
type binaryWay uint8

const (
	binaryDecoder binaryWay = iota // what the decoder gives: always right
	binaryInt64                    // a little-endian number
	binaryInt32
	binaryInt16
	binaryInt8
	binaryText // text that is copied if it is plain ASCII
	binaryJSON // a JSON document
	binaryDecimal
	binaryDatetime
	binaryTimestamp
)

// binaryWayOf is the way for the usual columns: fewer calls, and fewer looks at the bytes.
func binaryWayOf(l schema.Layout) binaryWay {
	switch l.Kind {
	case schema.LayoutInteger:
		switch {
		case l.Size == 8: // unsigned ones, too: the value has the same bits
			return binaryInt64
		case l.Unsigned:
		case l.Size == 4:
			return binaryInt32
		case l.Size == 2:
			return binaryInt16
		case l.Size == 1:
			return binaryInt8
		}
	case schema.LayoutText:
		return binaryText
	case schema.LayoutJSON:
		return binaryJSON
	case schema.LayoutDecimal:
		return binaryDecimal
	case schema.LayoutDatetime:
		return binaryDatetime
	case schema.LayoutTimestamp:
		return binaryTimestamp
	}
	return binaryDecoder
}

// timestampBytes is the length of a TIMESTAMP's text without a fraction.
const timestampBytes = len("2006-01-02T15:04:05Z")

// appendBinaryCells appends the cells of an operation.
func (p *program) appendBinaryCells(dst []byte, o *op, r *run) ([]byte, error) {
	row := r.image(o.image)
	if len(row) < o.first+len(o.binary) || r.incomplete {
		return p.appendBinaryKnown(dst, o, row, r)
	}
	return p.appendBinaryRow(dst, o.binary, row[o.first:], r)
}

// appendBinaryRow appends cells of a row, of which row begins with the first one's column.
func (p *program) appendBinaryRow(dst []byte, cells []binaryCell, row [][]byte, r *run) ([]byte, error) {
	row = row[:len(cells)]
	for i := range cells {
		c := &cells[i]
		b := row[i]
		if b == nil && c.optional {
			dst = append(dst, c.null...)
			continue
		}
		start := len(dst)
		if cap(dst)-start < 1+longestVarint {
			dst = slices.Grow(dst, 1+longestVarint)
		}
		dst[:start+1][start] = c.branch // the value takes its place if there is none
		dst = dst[:start+c.skip]
		switch c.way {
		case binaryInt64:
			if len(b) == 8 {
				dst = putVarint(dst, zigzag(int64(binary.LittleEndian.Uint64(b))))
				continue
			}
		case binaryInt32:
			if len(b) == 4 {
				dst = putVarint(dst, zigzag(int64(int32(binary.LittleEndian.Uint32(b)))))
				continue
			}
		case binaryInt16:
			if len(b) == 2 {
				dst = putVarint(dst, zigzag(int64(int16(binary.LittleEndian.Uint16(b)))))
				continue
			}
		case binaryInt8:
			if len(b) == 1 {
				dst = putVarint(dst, zigzag(int64(int8(b[0]))))
				continue
			}
		case binaryText:
			if text, ok := appendBinaryASCII(dst, b); ok && b != nil {
				dst = text
				continue
			}
		case binaryJSON:
			if text, ok := appendBinaryJSON(dst, b, &c.head); ok {
				dst = text
				continue
			}
		case binaryDecimal:
			if n, ok := schema.SmallDecimal(b, int(c.layout.Whole), int(c.layout.Size)); ok {
				dst = appendBinaryInt(dst, n)
				continue
			}
		case binaryDatetime:
			if n, ok := c.day.Datetime(b, int(c.layout.Size)); ok {
				dst = putVarint(dst, zigzag(n))
				continue
			}
		case binaryTimestamp:
			if text, ok := c.last.AppendTimestamp(dst, b); ok { // in quotes: the length takes the place of the first
				text[len(dst)] = byte(2 * timestampBytes)
				dst = text[:len(text)-1]
				continue
			}
		}
		v := &r.value
		err := c.from.decode(b, r.scratch, v)
		if err == nil {
			if v.Kind == schema.Null {
				dst, err = p.dialect.appendBinaryNull(dst[:start], c.from.typ)
			} else {
				dst, err = appendBinaryValue(dst, v)
			}
		}
		if err != nil {
			return dst, fmt.Errorf("column %q: %w", c.from.name, err)
		}
	}
	return dst, nil
}

// appendBinaryKnown appends cells of which some are not known, or not there.
func (p *program) appendBinaryKnown(dst []byte, o *op, row [][]byte, r *run) ([]byte, error) {
	var err error
	for i := range o.binary {
		c := &o.binary[i]
		switch {
		case o.first+i >= len(row):
			err = errColumns(c.from, row)
		case !binlog.IsUnavailable(row[o.first+i]):
			dst, err = p.appendBinaryRow(dst, o.binary[i:i+1], row[o.first+i:], r)
		case c.from.unavailable == nil:
			err = errUnknown(c.from)
		default:
			if dst, err = appendBinaryMember(dst, c.from.typ, c.from.unavailable); err != nil {
				err = fmt.Errorf("column %q: %w", c.from.name, err)
			}
		}
		if err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// appendBinaryInt appends a number as bytes: two's complement, big-endian, as short as can be.
func appendBinaryInt(dst []byte, v int64) []byte {
	size := bits.Len64(uint64(v^v>>63))/8 + 1 // one bit for the sign
	n := len(dst)
	if cap(dst)-n < 1+8 {
		dst = slices.Grow(dst, 1+8)
	}
	b := dst[n : n+9]
	b[0] = byte(2 * size)
	binary.BigEndian.PutUint64(b[1:], uint64(v)<<(64-8*size))
	return dst[:n+1+size]
}

// appendBinaryASCII appends s as text if it is ASCII without control characters, and says whether it is. Nothing need be
// known of s: it may be the bytes of a cell.
func appendBinaryASCII(dst, s []byte) ([]byte, bool) {
	// As in appendPlain, words are copied while they are looked at.
	if cap(dst)-len(dst) < len(s)+longestVarint+8 {
		dst = slices.Grow(dst, len(s)+longestVarint+8)
	}
	n := len(dst)
	at := n + 1
	if len(s) < 1<<6 {
		dst[:at][n] = byte(2 * len(s))
	} else {
		at = len(putVarint(dst, uint64(2*len(s))))
	}
	if len(s) < 8 {
		w := shortWord(s)
		binary.LittleEndian.PutUint64(dst[at:at+8], w)
		return dst[:at+len(s)], printable(w)&highs == 0
	}
	to := dst[at:cap(dst)][:len(s)]
	var marks uint64
	for i := 0; i < len(s)-16; i += 16 {
		v, w := binary.LittleEndian.Uint64(s[i:i+8]), binary.LittleEndian.Uint64(s[i+8:i+16])
		binary.LittleEndian.PutUint64(to[i:i+8], v)
		binary.LittleEndian.PutUint64(to[i+8:i+16], w)
		marks |= printable(v) | printable(w)
	}
	first, last := max(len(s)-16, 0), len(s)-8
	v, w := binary.LittleEndian.Uint64(s[first:first+8]), binary.LittleEndian.Uint64(s[last:last+8])
	binary.LittleEndian.PutUint64(to[first:first+8], v)
	binary.LittleEndian.PutUint64(to[last:last+8], w)
	return dst[:at+len(s)], (marks|printable(v)|printable(w))&highs == 0
}

// printable sets a high bit if w has bytes that are not from 0x20 to 0x7E. Each sum carries, and each difference borrows,
// where a byte is too large or small.
func printable(w uint64) uint64 { return w | (w + ones) | (w - ones*' ') }

// appendBinaryJSON appends the text of a JSON document, if it can without the decoder. The text is printed behind as many
// bytes as the length of the one before had, which head has; if its own has more or less, it is moved.
func appendBinaryJSON(dst, cell []byte, head *int) ([]byte, bool) {
	n, before := len(dst), max(*head, 1)
	if cap(dst)-n < longestVarint {
		dst = slices.Grow(dst, longestVarint)
	}
	text, ok := schema.AppendJSON(dst[:n+before], cell)
	if !ok {
		return dst, false
	}
	size := len(text) - n - before
	u := uint64(2 * size)
	switch {
	case u < 1<<7 && before == 1:
		text[n] = byte(u)
		return text, true
	case u >= 1<<7 && u < 1<<14 && before == 2:
		text[n], text[n+1] = byte(u)|0x80, byte(u>>7)
		return text, true
	}
	length := putVarint(make([]byte, 0, longestVarint), u)
	text = slices.Grow(text, longestVarint)
	end := n + len(length) + size
	copy(text[n+len(length):end], text[n+before:])
	copy(text[n:], length)
	*head = len(length)
	return text[:end], true
}
