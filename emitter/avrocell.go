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
	skip     uint8                // length of the branch: 1 if optional, else 0
	null     []byte               // what a nil cell is written as, if optional
	last     *schema.LastSecond   // of binaryTimestamp
	day      schema.LastDay       // of binaryDatetime
	decimal  schema.SmallDecimals // of binaryDecimal
	head     uint32               // of binaryJSON …
	keys     *schema.LastKeys     // … and this, too
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

// binaryRoom is the room that a cell of the short ways may need, besides as much as the cell has.
const binaryRoom = 48

// appendBinaryCells appends the cells of an operation.
func (p *program) appendBinaryCells(dst []byte, o *op, r *run) ([]byte, error) {
	row := r.after
	if o.image == before {
		row = r.before
	}
	if uint(len(row)) < uint(o.first+len(o.binary)) || r.incomplete {
		return p.appendBinaryKnown(dst, o, row, r)
	}
	if o.first > 0 {
		row = row[o.first:]
	}
	for done := 0; ; done++ {
		n := 0
		n, done = putBinaryCells(dst, o, row, done)
		dst = dst[:n]
		if done >= len(o.binary) {
			return dst, nil
		}
		// It may be that nothing but the room was short.
		c, b := &o.binary[done], row[done]
		if c.way == binaryJSON && b != nil {
			if text, ok := appendBinaryJSON(dst, b, c); ok {
				dst = text
				continue
			}
		}
		var err error
		if dst, err = p.appendBinaryCell(dst, c, b, r); err != nil {
			return dst, err
		}
		if room := (len(o.binary) + 1) * binaryRoom; cap(dst)-len(dst) < room {
			dst = slices.Grow(dst, room)
		}
	}
}

// putBinaryCells writes the cells of an operation from first on behind dst, within its capacity, and returns where they end
// and the first cell that is not written: one that needs more than the usual way of its kind, or more room. It calls
// nothing, so that all it goes by stays in registers, which is half of what a small cell costs.
func putBinaryCells(dst []byte, o *op, row [][]byte, first int) (end, done int) {
	n := uint64(len(dst))
	dst = dst[:cap(dst)]
	cells := o.binary
	row = row[:len(cells)]
	// Room is asked for once: no cell takes more than its part, and text sees to its own.
	if n+uint64(len(cells)*binaryRoom) > uint64(len(dst)) {
		return int(n), first
	}
	for i := first; uint(i) < uint(len(cells)); i++ {
		c, b := &cells[i], row[i]
		if b == nil {
			if !c.optional || len(c.null) != 1 {
				return int(n), i
			}
			dst[n] = c.null[0]
			n++
			continue
		}
		dst[n] = c.branch // the value takes its place if there is none
		at := n + uint64(c.skip)
		to := (*[binaryRoom - 8]byte)(dst[at : at+binaryRoom-8])
		var number int64
		switch c.way {
		case binaryInt64:
			if len(b) != 8 {
				return int(n), i
			}
			number = int64(binary.LittleEndian.Uint64(b))
		case binaryInt32:
			if len(b) != 4 {
				return int(n), i
			}
			number = int64(int32(binary.LittleEndian.Uint32(b)))
		case binaryInt16:
			if len(b) != 2 {
				return int(n), i
			}
			number = int64(int16(binary.LittleEndian.Uint16(b)))
		case binaryInt8:
			if len(b) != 1 {
				return int(n), i
			}
			number = int64(int8(b[0]))
		case binaryDatetime:
			millis, ok := schema.FractionMillis(b, int(c.layout.Size))
			if !ok || len(b) < 5 {
				return int(n), i
			}
			clock, ok := c.day.Clock((*[5]byte)(b[:5]))
			if !ok {
				return int(n), i
			}
			number = clock + millis
		case binaryTimestamp:
			text, ok := c.last.Timestamp(b)
			if !ok {
				return int(n), i
			}
			to[0] = byte(2 * timestampBytes)
			binary.LittleEndian.PutUint64(to[1:], text[0])
			binary.LittleEndian.PutUint64(to[9:], text[1])
			binary.LittleEndian.PutUint64(to[17:], text[2])
			n = at + 1 + uint64(timestampBytes)
			continue
		case binaryDecimal:
			v, ok := c.decimal.Word(b)
			unscaled, fits := c.decimal.Unscaled(v)
			if !ok || !fits {
				return int(n), i
			}
			n = at + putBinaryInt((*[9]byte)(to[:9]), unscaled)
			continue
		case binaryText:
			size := uint64(len(b))
			if n+size+uint64(len(cells)*binaryRoom) > uint64(len(dst)) {
				return int(n), i
			}
			if size < 1<<6 {
				to[0] = byte(2 * size)
				at++
			} else if size < 1<<13 {
				to[0], to[1] = byte(2*size)|0x80, byte(size>>6)
				at += 2
			} else {
				return int(n), i
			}
			// Words are copied while they are looked at; what is too much is overwritten.
			text := dst[at:][:len(b)+8]
			var marks uint64
			switch {
			case len(b) >= 16:
				for k := 0; k < len(b)-16; k += 16 {
					v, w := binary.LittleEndian.Uint64(b[k:k+8]), binary.LittleEndian.Uint64(b[k+8:k+16])
					binary.LittleEndian.PutUint64(text[k:k+8], v)
					binary.LittleEndian.PutUint64(text[k+8:k+16], w)
					marks |= printable(v) | printable(w)
				}
				k := len(b) - 16
				v, w := binary.LittleEndian.Uint64(b[k:k+8]), binary.LittleEndian.Uint64(b[k+8:k+16])
				binary.LittleEndian.PutUint64(text[k:k+8], v)
				binary.LittleEndian.PutUint64(text[k+8:k+16], w)
				marks |= printable(v) | printable(w)
			case len(b) >= 8:
				k := len(b) - 8
				v, w := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[k:k+8])
				binary.LittleEndian.PutUint64(text, v)
				binary.LittleEndian.PutUint64(text[k:k+8], w)
				marks = printable(v) | printable(w)
			case len(b) >= 4:
				w := halfWord(b)
				binary.LittleEndian.PutUint64(text, w)
				marks = printable(w)
			default:
				w := tinyWord(b)
				binary.LittleEndian.PutUint64(text, w)
				marks = printable(w)
			}
			at += size
			if marks&highs != 0 {
				return int(n), i
			}
			n = at
			continue
		default:
			return int(n), i
		}
		switch u := zigzag(number); {
		case u < 1<<7:
			to[0] = byte(u)
			n = at + 1
		case u < 1<<14:
			binary.LittleEndian.PutUint16(to[:], uint16(u&0x7f|0x80|u>>7<<8))
			n = at + 2
		case u < 1<<56:
			size := manyGroups(u)
			binary.LittleEndian.PutUint64(to[:], spread(u)|highs&(1<<(8*(size-1)&63)-1))
			n = at + size
		default:
			return int(n), i
		}
	}
	return int(n), len(cells)
}

// appendBinaryCell appends one cell, which is not of the most usual kinds.
func (p *program) appendBinaryCell(dst []byte, c *binaryCell, b []byte, r *run) ([]byte, error) {
	if b == nil && c.optional {
		return append(dst, c.null...), nil
	}
	start := len(dst)
	dst = append(dst, c.branch)[:start+int(c.skip)]
	switch c.way {
	case binaryInt64:
		if len(b) == 8 {
			return appendLong(dst, int64(binary.LittleEndian.Uint64(b))), nil
		}
	case binaryText:
		if len(b) >= 1<<13 { // shorter ones have been tried
			if text, ok := appendBinaryASCII(dst, b); ok {
				return text, nil
			}
		}
	case binaryDecimal:
		if n, ok := schema.SmallDecimal(b, int(c.layout.Whole), int(c.layout.Size)); ok {
			return appendBinaryInt(dst, n), nil
		}
	case binaryDatetime:
		if n, ok := c.day.Datetime(b, int(c.layout.Size)); ok {
			return appendLong(dst, n), nil
		}
	case binaryTimestamp:
		if text, ok := c.last.AppendTimestamp(dst, b); ok { // in quotes: the length takes the place of the first
			text[len(dst)] = byte(2 * timestampBytes)
			return text[:len(text)-1], nil
		}
	}
	return p.appendBinaryDecoded(dst[:start], c, b, r)
}

// appendBinaryDecoded appends a cell by way of its value.
func (p *program) appendBinaryDecoded(dst []byte, c *binaryCell, b []byte, r *run) ([]byte, error) {
	v := &r.value
	err := c.from.decode(b, r.scratch, v)
	switch {
	case err != nil:
	case v.Kind == schema.Null:
		dst, err = p.dialect.appendBinaryNull(dst, c.from.typ)
	default:
		if c.optional {
			dst = append(dst, c.branch)
		}
		dst, err = appendBinaryValue(dst, v)
	}
	if err != nil {
		return dst, fmt.Errorf("column %q: %w", c.from.name, err)
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
			dst, err = p.appendBinaryCell(dst, c, row[o.first+i], r)
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
	n := len(dst)
	dst = slices.Grow(dst, binaryRoom)
	return dst[:n+int(putBinaryInt((*[9]byte)(dst[n:n+9]), v))]
}

// putBinaryInt writes what appendBinaryInt appends, and returns how many bytes that are.
func putBinaryInt(to *[9]byte, v int64) uint64 {
	size := bits.Len64(uint64(v^v>>63))/8 + 1 // one bit for the sign
	to[0] = byte(2 * size)
	binary.BigEndian.PutUint64(to[1:], uint64(v)<<((64-8*size)&63))
	return uint64(1 + size)
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

// appendBinaryJSON appends the text of a JSON document behind the branch, if it can without the decoder. The text is printed
// behind as many bytes as the length of the one before had, which c.head has; if its own has more or less, it is moved.
func appendBinaryJSON(dst, cell []byte, c *binaryCell) ([]byte, bool) {
	before := max(int(c.head), 1)
	if cap(dst)-len(dst) < 1+longestVarint {
		dst = slices.Grow(dst, 1+longestVarint)
	}
	n := len(dst) + int(c.skip)
	text, ok := schema.AppendJSON(dst[:n+before], cell, c.keys)
	if !ok {
		return dst, false
	}
	text[len(dst)] = c.branch
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
	c.head = uint32(len(length))
	return text[:end], true
}
