package schema

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"sync"
)

// plainColumn is c as it is without MariaDB's COMPRESSED, and whether it is with it.
func plainColumn(c *Column) (plain *Column, compressed bool) {
	typ := c.Type
	switch typ {
	case typeBlobCompressed:
		typ = typeBlob
	case typeVarcharCompressed:
		typ = typeVarchar
	default:
		return c, false
	}
	copied := *c
	copied.Type = typ
	return &copied, true
}

// decompressed makes m read the cells of a COMPRESSED column. In one that is compressed, the first byte has the method in
// its upper half, a bit that says that zlib's header is left out, and how many bytes the original length has, which
// follows, the highest first.
func decompressed(m *mapping) {
	if m.layout.Kind != LayoutMasked {
		m.layout = Layout{}
	}
	decode := m.decode
	inflaters := &sync.Pool{New: func() any { return &inflater{out: flate.NewReader(nil)} }}
	m.decode = func(null Value) Decoder {
		d := decode(null)
		return func(cell []byte, scratch *Scratch, out *Value) error {
			if len(cell) > 0 {
				r := inflaters.Get().(*inflater)
				var err error
				cell, err = r.read(cell, scratch)
				inflaters.Put(r)
				if err != nil {
					return fmt.Errorf("COMPRESSED value: %w", err)
				}
			}
			return d(cell, scratch, out)
		}
	}
}

// inflater has the memory to decompress with.
type inflater struct {
	in  bytes.Reader
	out io.ReadCloser
}

func (r *inflater) read(cell []byte, scratch *Scratch) ([]byte, error) {
	const (
		methodNone = 0
		methodZlib = 8
		bareFlag   = 8
		zlibHeader = 2
		mostRatio  = 1032 // DEFLATE can do no more
	)
	head, data := cell[0], cell[1:]
	switch head >> 4 {
	case methodNone:
		return data, nil
	case methodZlib:
	default:
		return nil, fmt.Errorf("method %d is not known", head>>4)
	}
	size, length := int(head&7), 0
	if len(data) < size {
		return nil, io.ErrUnexpectedEOF
	}
	for _, b := range data[:size] {
		length = length<<8 | int(b)
	}
	data = data[size:]
	if head&bareFlag == 0 {
		if len(data) < zlibHeader {
			return nil, io.ErrUnexpectedEOF
		}
		data = data[zlibHeader:]
	}
	if length/mostRatio > len(data) {
		return nil, fmt.Errorf("%d bytes cannot become %d", len(data), length)
	}
	r.in.Reset(data)
	resetter, ok := r.out.(flate.Resetter)
	if !ok {
		return nil, errors.New("it cannot be decompressed twice")
	}
	if err := resetter.Reset(&r.in, nil); err != nil {
		return nil, err
	}
	text := scratch.take(length)
	_, err := io.ReadFull(r.out, text)
	return text, err
}
