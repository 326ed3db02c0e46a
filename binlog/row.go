package binlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// MySQL's type codes as TABLE_MAP has them.
const (
	typeTiny       = 1
	typeShort      = 2
	typeLong       = 3
	typeFloat      = 4
	typeDouble     = 5
	typeNull       = 6
	typeTimestamp  = 7
	typeLongLong   = 8
	typeInt24      = 9
	typeDate       = 10
	typeTime       = 11
	typeDatetime   = 12
	typeYear       = 13
	typeNewDate    = 14
	typeVarchar    = 15
	typeBit        = 16
	typeTimestamp2 = 17
	typeDatetime2  = 18
	typeTime2      = 19
	typeBlobPacked = 140 // MariaDB's BLOB and TEXT … COMPRESSED
	typeCharPacked = 141 // and its VARCHAR and VARBINARY … COMPRESSED
	typeVector     = 242
	typeJSON       = 245
	typeNewDecimal = 246
	typeEnum       = 247
	typeSet        = 248
	typeTinyBlob   = 249
	typeMediumBlob = 250
	typeLongBlob   = 251
	typeBlob       = 252
	typeVarString  = 253
	typeString     = 254
	typeGeometry   = 255
)

// cell says how long a cell is in a row image: size bytes, or, if prefix is not 0, a little-endian length of prefix
// bytes and then as many as it says.
type cell struct {
	mask   uint32 // what is left of four bytes that begin with the length; 0 without
	prefix uint8
	size   uint16
}

// behind is a cell behind a length of so many bytes, 1 to 4.
func behind(prefix uint8) cell { return cell{mask: 1<<(8*prefix) - 1, prefix: prefix} }

// cellOf compiles the column's type and metadata.
func cellOf(c *schema.Column) (cell, error) {
	switch c.Type {
	case typeNull:
		return cell{}, nil
	case typeTiny, typeYear:
		return cell{size: 1}, nil
	case typeShort:
		return cell{size: 2}, nil
	case typeInt24, typeDate, typeNewDate, typeTime:
		return cell{size: 3}, nil
	case typeLong, typeFloat, typeTimestamp:
		return cell{size: 4}, nil
	case typeLongLong, typeDouble, typeDatetime:
		return cell{size: 8}, nil
	case typeTime2, typeTimestamp2, typeDatetime2:
		if c.Meta > 6 {
			return cell{}, fmt.Errorf("%d fraction digits", c.Meta)
		}
		base := map[uint8]uint16{typeTime2: 3, typeTimestamp2: 4, typeDatetime2: 5}[c.Type]
		return cell{size: base + (c.Meta+1)/2}, nil
	case typeNewDecimal:
		precision, scale := int(c.Meta>>8), int(c.Meta&0xff)
		if precision == 0 || precision > 65 || scale > precision {
			return cell{}, fmt.Errorf("decimal(%d,%d)", precision, scale)
		}
		return cell{size: uint16(digitBytes(precision-scale) + digitBytes(scale))}, nil
	case typeBit:
		n := c.Meta >> 8 // whole bytes; the low byte counts the bits beyond them
		if c.Meta&0xff != 0 {
			n++
		}
		return cell{size: n}, nil
	case typeEnum, typeSet:
		n := c.Meta & 0xff
		if n == 0 || n > 8 {
			return cell{}, fmt.Errorf("enum or set of %d bytes", n)
		}
		return cell{size: n}, nil
	case typeVarchar, typeVarString, typeCharPacked:
		if c.Meta > 255 {
			return behind(2), nil
		}
		return behind(1), nil
	case typeString:
		// The two high bits of a length above 255 hide, inverted, in the type byte.
		if length := c.Meta&0xff | (c.Meta>>4&0x300 ^ 0x300); length > 255 {
			return behind(2), nil
		}
		return behind(1), nil
	case typeBlob, typeBlobPacked, typeGeometry, typeJSON, typeVector:
		if c.Meta == 0 || c.Meta > 4 {
			return cell{}, fmt.Errorf("length of %d bytes", c.Meta)
		}
		return behind(uint8(c.Meta)), nil
	}
	return cell{}, errors.New("no such type in row images")
}

// digitBytes is the size of n decimal digits in a DECIMAL.
func digitBytes(n int) int {
	rest := [10]int{0, 1, 1, 2, 2, 3, 3, 4, 4, 4}
	return n/9*4 + rest[n%9]
}

// compileCells compiles the columns of a table.
func compileCells(t *schema.Table) ([]cell, error) {
	if len(t.Columns) == 0 {
		return nil, fmt.Errorf("table %s.%s has no columns", t.Database, t.Name)
	}
	cells := make([]cell, len(t.Columns))
	for i := range t.Columns {
		c, err := cellOf(&t.Columns[i])
		if err != nil {
			return nil, fmt.Errorf("table %s.%s, column %s: type %d with metadata %d: %w", t.Database, t.Name,
				t.Columns[i].Name, t.Columns[i].Type, t.Columns[i].Meta, err)
		}
		cells[i] = c
	}
	return cells, nil
}

// walker cuts row images into cells.
type walker struct {
	cells []cell
	body  []byte // what is left of the images
}

// image cuts one image off the body into dst, which has room for all columns. It returns the index of the column that
// does not fit, or -1. Between two NULLs it calls nothing and looks for no further one, so that all it goes by stays in
// registers.
func (w *walker) image(dst [][]byte) int {
	cells, body := w.cells, w.body
	at := uint64(len(cells)+7) / 8 // where the next cell begins
	size := uint64(len(body))
	if size < at {
		return 0
	}
	bitmap := body[:at]
	dst = dst[:len(cells)]
	for i := 0; i < len(cells); i++ {
		for stop := min(nextNull(bitmap, i), len(cells)); i < stop; i++ {
			c := &cells[i]
			// The usual way reads four bytes of any length and forgets those that are none of it.
			n := uint64(c.size)
			if at+4 <= size {
				n += uint64(binary.LittleEndian.Uint32(body[at:at+4]) & c.mask)
			} else if c.prefix > 0 {
				if size-at < uint64(c.prefix) {
					return i
				}
				n = fixedInt(body[at : at+uint64(c.prefix)])
			}
			at += uint64(c.prefix)
			end := at + n
			if end > size {
				return i
			}
			dst[i] = body[at:end:end]
			at = end
		}
		if i < len(cells) {
			dst[i] = nil
		}
	}
	w.body = body[at:]
	return -1
}

// nextNull is the first column from i on whose bit is set, or one behind the last.
func nextNull(bitmap []byte, i int) int {
	null := bitmap[i>>3] >> (i & 7)
	for null == 0 {
		if i = i&^7 + 8; i>>3 >= len(bitmap) {
			return i
		}
		null = bitmap[i>>3]
	}
	return i + bits.TrailingZeros8(null)
}

// NewRows makes a rows event from bytes: body holds the row images alone, one after the other (for [Update] before and
// after in turn), as they follow the columns-present bitmaps in a rows event. It is what tests and benchmarks of an
// encoder use; Reset lets one value walk the same or another body again without allocating. The cells alias body. An
// error says that a column's type and metadata do not occur in row images.
func NewRows(info Info, op Op, t *schema.Table, base offset.Offset, body []byte) (*Rows, error) {
	cells, err := compileCells(t)
	if err != nil {
		return nil, err
	}
	r := &Rows{Info: info, Table: t, Base: base}
	r.start(op, cells, body)
	return r, nil
}

// Reset goes back before the first row, of body, which is laid out as for [NewRows].
func (r *Rows) Reset(body []byte) { r.start(r.Op, r.walk.cells, body) }

// start prepares the walk; the caller has filled in the rest.
func (r *Rows) start(op Op, cells []cell, body []byte) {
	r.Op = op
	r.Incomplete, r.partial = false, false
	r.Row = -1
	r.skip = 0
	r.err = nil
	r.walk.cells = cells
	r.walk.body = body
	r.Before, r.After = nil, nil
}

// Next steps to the next row and says whether there is one. It allocates nothing once the slices of cells have grown to
// the table's width. When it returns false, ask Err.
func (r *Rows) Next() bool {
	for {
		if r.err != nil {
			return false
		}
		if len(r.walk.body) == 0 && !(r.Row < 0 && r.partial && r.images.empty()) {
			if stored := max(r.skip, r.covered); stored > int64(r.Row)+1 {
				r.err = fmt.Errorf("%s: the stored offset has %d rows of this event, it has only %d: the offset is not from this binlog", r.where(), stored, r.Row+1)
			}
			return false
		}
		r.Row++
		n := len(r.walk.cells)
		// Not in a function of its own, which would cost more than a tenth of a small row.
		if r.Op != Create {
			r.before = room(r.before, n)
			r.Before = r.before
			if !r.partial {
				if i := r.walk.image(r.Before); i >= 0 {
					return r.fail(i)
				}
			}
		}
		if r.Op != Delete {
			r.after = room(r.after, n)
			r.After = r.after
			if !r.partial {
				if i := r.walk.image(r.After); i >= 0 {
					return r.fail(i)
				}
			}
		}
		if r.partial && !r.nextPartial() {
			return false
		}
		if int64(r.Row) >= r.skip {
			r.skip = 0
			return true
		}
	}
}

// Err is the error that ended the walk, nil at the end of the event. It is to be asked when Next has returned false.
func (r *Rows) Err() error { return r.err }

func (r *Rows) fail(column int) bool {
	name := "null bitmap"
	if column < len(r.Table.Columns) {
		name = "column " + r.Table.Columns[column].Name
	}
	r.err = fmt.Errorf("%s, row %d, %s: the row image ends too early: the event is damaged or its TABLE_MAP is not the one it was written with", r.where(), r.Row, name)
	return false
}

func (r *Rows) where() string {
	return at(r.Info.File, r.Info.Pos) + ": table " + r.Table.Database + "." + r.Table.Name
}

func room(s [][]byte, n int) [][]byte {
	if cap(s) < n {
		return make([][]byte, n)
	}
	return s[:n]
}

// at is a position in messages.
func at(file string, pos int64) string { return fmt.Sprintf("%s:%d", file, pos) }

// full says whether the first n bits of a columns-present bitmap are all set; it is true of an image that the event does not
// have.
func full(bitmap []byte, n int) bool {
	for i, b := range bitmap {
		if left := n - i*8; left < 8 {
			b |= 0xff << left
		}
		if b != 0xff {
			return false
		}
	}
	return true
}
