package binlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// maxWindow bounds the memory of decompression: the largest window that a server's zstd level can ask for.
const maxWindow = 128 << 20

// payload reads the events in a TRANSACTION_PAYLOAD (a compressed transaction) one by one: memory is one inner event
// and the decompression window, whatever the size of the transaction.
type payload struct {
	open bool
	in   io.Reader
	left uint64 // bytes of uncompressed events still to come, as the header says
	src  bytes.Reader
	zstd *zstd.Decoder
	buf  []byte
}

// start begins with the body of a TRANSACTION_PAYLOAD event, which must stay valid until the payload is at its end.
func (p *payload) start(b []byte) error {
	const (
		fieldEnd          = 0
		fieldCompression  = 2
		fieldUncompressed = 3

		compressionZstd = 0
		compressionNone = 255
	)
	compression, size, sized := uint64(compressionNone), uint64(0), false
	for {
		field, rest, ok := lenenc(b)
		if !ok {
			return errShort
		}
		b = rest
		if field == fieldEnd {
			break
		}
		v, rest, ok := lenencBytes(b)
		if !ok {
			return errShort
		}
		b = rest
		switch field {
		case fieldCompression:
			if compression, _, ok = lenenc(v); !ok {
				if len(v) != 1 {
					return errShort
				}
				compression = uint64(v[0])
			}
		case fieldUncompressed:
			if size, _, sized = lenenc(v); !sized {
				return errShort
			}
		}
	}
	p.src.Reset(b)
	switch compression {
	case compressionNone:
		p.in = &p.src
		if !sized {
			size = uint64(len(b))
		}
	case compressionZstd:
		if !sized {
			return errors.New("the compressed transaction does not say its size")
		}
		if p.zstd == nil {
			d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
				zstd.WithDecoderMaxWindow(maxWindow))
			if err != nil {
				return err
			}
			p.zstd = d
		}
		if err := p.zstd.Reset(&p.src); err != nil {
			return err
		}
		p.in = p.zstd
	default:
		return fmt.Errorf("compression type %d of a transaction is unknown", compression)
	}
	p.left = size
	p.open = true
	return nil
}

// next returns the next inner event, valid until the call after it; io.EOF at the end.
func (p *payload) next() ([]byte, error) {
	if p.left == 0 {
		p.open = false
		return nil, io.EOF
	}
	if p.left < headerSize {
		return nil, errShort
	}
	p.buf = grow(p.buf, headerSize)
	if err := p.read(p.buf); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint32(p.buf[9:])
	if size < headerSize || uint64(size) > p.left || size > maxEvent {
		return nil, fmt.Errorf("an event of %d bytes in a compressed transaction of which %d bytes are left", size, p.left)
	}
	p.left -= uint64(size)
	// In steps, so that a wrong size does not cost memory that the payload cannot fill.
	const step = 1 << 20
	for have := headerSize; have < int(size); {
		n := min(int(size), max(have+step, cap(p.buf)))
		p.buf = grow(p.buf, n)
		if err := p.read(p.buf[have:n]); err != nil {
			return nil, err
		}
		have = n
	}
	return p.buf, nil
}

func (p *payload) read(b []byte) error {
	if _, err := io.ReadFull(p.in, b); err != nil {
		// An early end is damage, not the end of the stream.
		return fmt.Errorf("decompressing the transaction: %v", err)
	}
	return nil
}

func (p *payload) close() {
	if p.zstd != nil {
		p.zstd.Close()
		p.zstd = nil
	}
}

// keep is how much memory a buffer may hold on to when it is not needed.
const keep = 8 << 20

// grow returns b with length n and its content, in new memory when it is too small or far too large.
func grow(b []byte, n int) []byte {
	switch {
	case n <= cap(b) && (cap(b) <= keep || n > cap(b)/16 || n > keep):
		return b[:n]
	case n <= cap(b):
		return append(make([]byte, 0, n), b[:min(len(b), n)]...)[:n]
	}
	c := make([]byte, n, max(n, min(2*cap(b), n+keep)))
	copy(c, b)
	return c
}
