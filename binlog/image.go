package binlog

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tidemark-cdc/tidemark/schema"
)

// Unavailable is the cell of a column that was not in the row image and whose value nobody knows: a string, bytes or JSON
// column of a row that a session with another binlog_row_image than FULL has written. Debezium's name for what is sent
// instead is unavailable.value.placeholder. It is told from real cells by [IsUnavailable], never by its content, and occurs
// only when [Rows.Incomplete] is set. It is not to be changed.
var Unavailable = []byte("unavailable")

// IsUnavailable says whether a cell is [Unavailable].
func IsUnavailable(cell []byte) bool {
	return len(cell) == len(Unavailable) && &cell[0] == &Unavailable[0]
}

// images says what the row images of an event have, when it is not simply all columns as they are.
type images struct {
	before, after []int    // the columns of the before and after images, in order
	defaults      [][]byte // of an insert: the cells of the columns that are not in after
	diffs         bool     // after images begin with value options and may have JSON diffs (PARTIAL_UPDATE_ROWS)
	json          []int    // with diffs: the JSON columns of the table
	buf           []byte   // memory of documents that diffs were applied to
}

// listColumns appends the columns whose bits are set to list.
func listColumns(list []int, bitmap []byte, columns int) []int {
	for i := range columns {
		if bitmap[i>>3]&(1<<(i&7)) != 0 {
			list = append(list, i)
		}
	}
	return list
}

// has says whether a column's bit is set. Without a bitmap there is no such image.
func has(bitmap []byte, column int) bool {
	return bitmap != nil && bitmap[column>>3]&(1<<(column&7)) != 0
}

// empty says that the images have no column at all. The server writes one row of this kind into an event: an insert of
// nothing but defaults.
func (m *images) empty() bool { return len(m.before) == 0 && len(m.after) == 0 }

// setImages readies the walk over images that are not simply all columns, and errs when a column is missing whose value
// cannot be had:
//
//   - in an insert a column that is not there has its default;
//   - an update's after image has what was changed, so a column that is not there has its value of the before image;
//   - strings, bytes and JSON that are nowhere are [Unavailable], unless they are the key's.
func (r *Rows) setImages(v *version, e *rowsEvent, diffs bool) error {
	m := &r.images
	m.before, m.after, m.json, m.diffs, m.defaults = m.before[:0], m.after[:0], m.json[:0], diffs, nil
	if e.op != Create {
		m.before = listColumns(m.before, e.before, e.columns)
	}
	if e.op != Delete {
		m.after = listColumns(m.after, e.after, e.columns)
	}
	if diffs {
		for i := range v.table.Columns {
			if v.table.Columns[i].Type == typeJSON {
				m.json = append(m.json, i)
			}
		}
	}
	r.partial = true
	var err error
	if e.op == Create {
		m.defaults, err = v.defaultCells(e.after)
	} else if r.Incomplete = len(m.before) < e.columns; r.Incomplete {
		err = v.missing(e.before)
	}
	if err != nil {
		return r.imageAdvice(err)
	}
	return nil
}

// missing finds a column that is not in a before image and that the placeholder cannot stand for.
func (v *version) missing(before []byte) error {
	for i := range v.table.Columns {
		if has(before, i) {
			continue
		}
		switch c := &v.table.Columns[i]; {
		case slices.Contains(v.table.Key, i):
			return fmt.Errorf("column %s, which is part of the record's key, is not in the row image", c.Name)
		case !isReplaceable(c):
			return fmt.Errorf("column %s is not in the row image", c.Name)
		}
	}
	return nil
}

// isReplaceable says whether the placeholder may stand for a column's value: strings, bytes and JSON.
func isReplaceable(c *schema.Column) bool {
	switch c.Type {
	case typeVarchar, typeVarString, typeString, typeBlob, typeTinyBlob, typeMediumBlob, typeLongBlob, typeBlobPacked, typeCharPacked, typeJSON:
		return true
	}
	return false
}

// imageAdvice says of an error about a missing column who wrote the row and what to do.
func (r *Rows) imageAdvice(err error) error {
	who, find := "the session that wrote it", ""
	if r.Info.Thread >= 0 {
		who = fmt.Sprintf("thread %d, which wrote it,", r.Info.Thread)
		find = fmt.Sprintf("find out who it is (SELECT * FROM performance_schema.threads WHERE PROCESSLIST_ID=%d) and end it (KILL %[1]d), ", r.Info.Thread)
	}
	return fmt.Errorf("%w: %s has set binlog_row_image to MINIMAL or NOBLOB: SET SESSION binlog_row_image=FULL there, or "+
		"SET PERSIST binlog_row_image=FULL and end the sessions that still have another image; %stake a new snapshot of the table, and start behind this position "+
		howToStart, err, who, find)
}

// nextPartial cuts one row off images that lack columns or have JSON diffs.
func (r *Rows) nextPartial() bool {
	m := &r.images
	m.buf = m.buf[:0]
	if m.empty() && len(r.walk.body) > 0 {
		return r.fail(len(r.Table.Columns))
	}
	if r.Op != Create {
		for i := range r.Before {
			r.Before[i] = Unavailable
		}
		if i := r.walk.columns(r.Before, m.before); i >= 0 {
			return r.fail(i)
		}
	}
	switch {
	case r.Op == Create:
		copy(r.After, m.defaults)
	case r.Op == Update:
		copy(r.After, r.Before)
	default:
		return true
	}
	if !m.diffs {
		if i := r.walk.columns(r.After, m.after); i >= 0 {
			return r.fail(i)
		}
		return true
	}
	partial, ok := r.walk.partialBits(len(m.json))
	if !ok {
		return r.fail(len(r.Table.Columns))
	}
	if i := r.walk.columns(r.After, m.after); i >= 0 {
		return r.fail(i)
	}
	next := 0
	for k, column := range m.json {
		for next < len(m.after) && m.after[next] < column {
			next++
		}
		present := next < len(m.after) && m.after[next] == column
		if !present || !has(partial, k) || r.After[column] == nil {
			continue
		}
		if err := r.patch(column); err != nil {
			r.err = fmt.Errorf("%s, row %d, column %s: %w", r.where(), r.Row, r.Table.Columns[column].Name, err)
			return false
		}
	}
	return true
}

// patch puts the document in place of the diffs that stand in the after image.
func (r *Rows) patch(column int) error {
	before, diffs := r.Before[column], r.After[column]
	switch {
	case IsUnavailable(before):
		return r.imageAdvice(errors.New("the update has only what changed in the document (binlog_row_value_options=PARTIAL_JSON), and the document before it is not in the row image"))
	case before == nil:
		return errJSONRejected
	case len(diffs) == 0: // nothing changed in it
		r.After[column] = before
		return nil
	}
	start := len(r.images.buf)
	buf, err := applyJSONDiff(r.images.buf, before, diffs)
	if err != nil {
		return err
	}
	r.images.buf = buf
	r.After[column] = buf[start:len(buf):len(buf)]
	return nil
}

// partialBits reads what stands before an after image of PARTIAL_UPDATE_ROWS: value options, and, if they say that JSON
// may be partial, a bit for each JSON column of the table, in the image or not.
func (w *walker) partialBits(columns int) (bits []byte, ok bool) {
	const partialJSON = 1
	options, rest, ok := lenenc(w.body)
	if !ok || options&^partialJSON != 0 {
		return nil, false
	}
	n := 0
	if options&partialJSON != 0 {
		n = (columns + 7) / 8
	}
	if len(rest) < n {
		return nil, false
	}
	w.body = rest[n:]
	if n == 0 {
		return nil, true
	}
	return rest[:n], true
}

// columns cuts one image of some columns off the body into dst, as image does for all.
func (w *walker) columns(dst [][]byte, columns []int) int {
	nulls := (len(columns) + 7) / 8
	if len(w.body) < nulls {
		return len(w.cells)
	}
	bitmap, b := w.body[:nulls], w.body[nulls:]
	for k, i := range columns {
		if bitmap[k>>3]&(1<<(k&7)) != 0 {
			dst[i] = nil
			continue
		}
		c := w.cells[i]
		n := uint64(c.size)
		if c.prefix > 0 {
			if len(b) < int(c.prefix) {
				return i
			}
			n, b = fixedInt(b[:c.prefix]), b[c.prefix:]
		}
		if uint64(len(b)) < n {
			return i
		}
		dst[i], b = b[:n:n], b[n:]
	}
	w.body = b
	return -1
}
