package emitter

import "github.com/tidemark-cdc/tidemark/schema"

// A program appends one record's key, value or header in one format: a shape compiled into a flat list of operations.
// Everything between two parts that change with the row is one segment, whose text is rendered when the plan is
// compiled, an event begins or the clock is read, and only copied for a row.
type program struct {
	ops      []op
	segments []*segment
	dialect  dialect
	event    uint64 // the number of the event …
	clock    uint64 // … and of the reading of the clock that the segments are rendered for
}

type op struct {
	kind    opKind
	segment *segment // of opSegment
	image   image    // of opCells and opBinaryCells
	cells   []cell   // of opCells
	unknown [][]byte // of opCells: what a cell that is not known is written as; nil: it is an error
	shape   *shape   // of opJava
	slot    slot     // of opSlot
	typ     *schema.Type
	binary  []binaryCell // of opBinaryCells
}

type opKind uint8

const (
	opSegment opKind = iota
	opCells          // the cells of a row image
	opRow
	opSlot // a tree of values
	opJava // a struct as Java's toString has it
	opBinaryCells
	opBinaryRow
)

// run is what a program's row operations read.
type run struct {
	before, after [][]byte
	row           int
	incomplete    bool         // some cells of the images are not known
	value         schema.Value // the cell at hand; decoders write it
	other         schema.Value // another to compare with
	scratch       *schema.Scratch
	slots         [slots]tree
}

// append runs the program for one row.
func (p *program) append(dst []byte, r *run) ([]byte, error) {
	var err error
	ops := p.ops
	for i := range ops {
		o := &ops[i]
		// The operations that every row has come first, and past the switch: most of a small record are these.
		if o.kind == opSegment {
			dst = append(dst, o.segment.text...)
			continue
		}
		if o.kind == opRow {
			dst = schema.AppendInt(dst, int64(r.row))
			continue
		}
		if o.kind == opCells && !r.incomplete {
			cells := r.after
			if o.image == before {
				cells = r.before
			}
			if dst, err = p.appendCells(dst, o.cells, cells, r); err != nil {
				return dst, err
			}
			continue
		}
		if o.kind == opBinaryCells && !r.incomplete {
			cells := r.after
			if o.image == before {
				cells = r.before
			}
			if dst, err = p.appendBinaryCells(dst, o.binary, cells, r); err != nil {
				return dst, err
			}
			continue
		}
		if o.kind == opBinaryRow {
			dst = appendLong(dst, int64(r.row))
			continue
		}
		if dst, err = p.appendRare(dst, o, r); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// appendRare runs an operation that not every record has.
func (p *program) appendRare(dst []byte, o *op, r *run) ([]byte, error) {
	switch o.kind {
	case opCells:
		cells := r.after
		if o.image == before {
			cells = r.before
		}
		return p.appendKnown(dst, o, cells, r)
	case opJava:
		return appendJavaStruct(dst, o.shape, r)
	case opSlot:
		return p.dialect.appendTree(dst, o.typ, &r.slots[o.slot])
	case opBinaryCells:
		cells := r.after
		if o.image == before {
			cells = r.before
		}
		return p.appendBinaryKnown(dst, o.binary, cells, r)
	}
	return dst, nil
}
