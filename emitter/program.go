package emitter

import "github.com/tidemark-cdc/tidemark/schema"

// A program appends one record's key, value or header in one format: a shape compiled into a flat list of operations.
// Everything between two parts that change with the row is one segment, whose text is rendered when the plan is
// compiled, an event begins or the clock is read, and only copied for a row.
type program struct {
	ops      []op
	single   *op        // if cells in Avro are all of it, as in most keys
	changing []*segment // those whose text does not stay the same
	dialect  dialect
	seen     uint64 // [now.count] when the segments were rendered
}

// op is one operation. Most of a small record are these, so that each brings what comes before its own part, too.
type op struct {
	kind    opKind
	image   image    // of opCells and opBinaryCells
	slot    slot     // of opSlot
	segment *segment // what comes before; nil: nothing
	first   int      // of opCells and opBinaryCells: the column of the first cell; those of the others follow it
	cells   []cell   // of opCells
	shape   *shape   // of opJava
	typ     *schema.Type
	binary  []binaryCell // of opBinaryCells
}

type opKind uint8

const (
	opSegment opKind = iota // nothing but the segment
	opCells                 // the cells of a row image
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
	ops := p.ops
	for i := range ops {
		o := &ops[i]
		if o.segment != nil {
			dst = append(dst, o.segment.text...)
		}
		var err error
		switch o.kind {
		case opSegment:
			continue
		case opCells:
			dst, err = p.appendCells(dst, o, r)
		case opBinaryCells:
			dst, err = p.appendBinaryCells(dst, o, r)
		case opRow:
			dst = schema.AppendInt(dst, int64(r.row))
			continue
		case opBinaryRow:
			if u := zigzag(int64(r.row)); u < 1<<7 {
				dst = append(dst, byte(u)) // without a call
			} else {
				dst = appendLong(dst, int64(r.row))
			}
			continue
		case opSlot:
			dst, err = p.dialect.appendTree(dst, o.typ, &r.slots[o.slot])
		case opJava:
			dst, err = appendJavaStruct(dst, o.shape, r)
		}
		if err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// image is one of the row's images.
func (r *run) image(i image) [][]byte {
	if i == before {
		return r.before
	}
	return r.after
}
