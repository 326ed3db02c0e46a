package emitter

import (
	"bytes"
	"fmt"

	"github.com/tidemark-cdc/tidemark/schema"
)

// compileAvro makes the program of a shape. A prefix whose id is known becomes part of the text behind it; one that is
// still to get it stays by itself, in its own memory.
func (c *Converter) compileAvro(s *shape, prefix []byte) (*program, error) {
	d := dialect{text: avroBinary, defaults: c.ReplaceNullWithDefault}
	if bytes.Count(prefix, []byte{0}) == len(prefix) {
		return compile(s, d, prefix, "")
	}
	b := builder{program: program{dialect: d}, literal: bytes.Clone(prefix)}
	return b.compile(s, "")
}

// record compiles a struct into Avro's binary encoding, in which nothing stands between its members.
func (b *builder) record(s *shape) error {
	if value, _, ok := branches(s.typ); ok {
		b.literal = append(b.literal, value)
	}
	for i := 0; i < len(s.fields); {
		var err error
		n := cellsFrom(s.fields[i:])
		if n > 0 {
			err = b.binaryCells(s.fields[i : i+n])
			i += n
		} else {
			err = b.shape(&s.fields[i])
			i++
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// binaryCells compiles cells of one image.
func (b *builder) binaryCells(fields []shape) error {
	l := &fields[0].leaf
	o := op{kind: opBinaryCells, image: l.image, first: int(l.column.index)}
	for i := range b.made {
		if made := &b.made[i]; made.image == l.image && len(made.binary) == len(fields) && made.binary[0].from == l.column {
			o.binary = made.binary
		}
	}
	if o.binary == nil {
		var err error
		if o.binary, err = b.newBinaryCells(fields); err != nil {
			return err
		}
	}
	b.flush()
	b.ops = append(b.ops, o)
	return nil
}

func (b *builder) newBinaryCells(fields []shape) ([]binaryCell, error) {
	cells := make([]binaryCell, 0, len(fields))
	for i := range fields {
		f := fields[i].leaf.column
		c := binaryCell{optional: f.typ.Optional, layout: f.layout, way: binaryWayOf(f.layout), from: f}
		switch c.way {
		case binaryJSON:
			c.keys = new(schema.LastKeys)
		case binaryTimestamp:
			c.last = new(schema.LastSecond)
		case binaryDecimal:
			c.decimal = schema.NewSmallDecimals(int(c.layout.Whole), int(c.layout.Size))
		}
		if value, _, ok := branches(f.typ); ok {
			c.branch, c.skip = value, 1
		}
		if c.optional {
			var err error
			if c.null, err = b.binaryNull(f); err != nil {
				return nil, fmt.Errorf("column %q: %w", f.name, err)
			}
		}
		cells = append(cells, c)
	}
	return cells, nil
}

// binaryNull is what a nil cell of an optional column is written as: a mask may make a value even of NULL.
func (b *builder) binaryNull(c *column) ([]byte, error) {
	var v schema.Value
	if err := c.decode(nil, new(schema.Scratch), &v); err != nil {
		return nil, err
	}
	return b.dialect.appendBinaryConstant(nil, c.typ, &v)
}
