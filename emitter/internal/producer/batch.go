package producer

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// batch is a record batch of one partition: open while records are appended, then closed, then numbered and sent until it is
// acknowledged. Its bytes are the same whenever it is sent again, so that a broker that has it already knows it.
type batch struct {
	pieces   [][]byte // the records one after the other, cut anywhere; only the last piece has room
	size     int      // bytes of the records
	head     head
	closed   bool // takes no more records
	numbered bool // has its sequence number
	sealed   bool // head and pieces are what is sent; the records may be compressed
	note     bool // stands for a record that was refused
	in       *transaction
	first    bool // of its partition in the transaction
	parts    []Part
	since    time.Time // of its first record
	attempts int
}

// Part is some records of a batch that have a group and a position in the binlog in common.
type Part struct {
	Group uint64 // the caller's, for acknowledgements
	Count int
	File  string // of the offset of the records, for error texts
	Pos   int64
}

// bytes is how many it has, without compression until it is sealed.
func (b *batch) bytes() int { return batchHead + b.size }

// add appends a record.
func (b *batch) add(m *memory, r *Record, now int64) {
	if b.head.count == 0 {
		b.head.first, b.head.last = now, now
	}
	b.head.last = max(b.head.last, now)
	delta := now - b.head.first
	body, whole := recordSize(delta, b.head.count, r.Key, r.Value, r.Headers)
	if n := len(b.pieces) - 1; n >= 0 && cap(b.pieces[n])-len(b.pieces[n]) >= whole {
		b.pieces[n] = appendRecord(b.pieces[n], body, delta, b.head.count, r.Key, r.Value, r.Headers)
		b.size += whole
	} else {
		b.addPieces(m, r, body, delta)
	}
	b.head.count++
	if n := len(b.parts); n > 0 {
		if p := &b.parts[n-1]; p.Group == r.Group && p.Pos == r.Pos && p.File == r.File {
			p.Count++
			return
		}
	}
	b.parts = append(b.parts, Part{r.Group, 1, r.File, r.Pos})
}

// addPieces appends a record that does not fit into the last piece.
func (b *batch) addPieces(m *memory, r *Record, body int, delta int64) {
	var room [48]byte
	b.write(m, appendLength(appendFraming(room[:0], body, delta, b.head.count), r.Key))
	b.write(m, r.Key)
	b.write(m, appendLength(room[:0], r.Value))
	b.write(m, r.Value)
	b.write(m, r.Headers)
}

// write appends bytes, with as many new pieces as it takes; each is larger than the one before it, up to the largest.
func (b *batch) write(m *memory, p []byte) {
	b.size += len(p)
	for {
		if n := len(b.pieces) - 1; n >= 0 {
			last := b.pieces[n]
			k := copy(last[len(last):cap(last)], p)
			b.pieces[n], p = last[:len(last)+k], p[k:]
		}
		if len(p) == 0 {
			return
		}
		b.pieces = append(b.pieces, m.piece(min(len(b.pieces), classes-1)))
	}
}

// plain gives the records in one piece, which may be in room or, where that is empty, the only one.
func (b *batch) plain(room []byte) []byte {
	if len(b.pieces) == 1 && len(room) == 0 {
		return b.pieces[0]
	}
	room = slices.Grow(room, b.size)
	for _, p := range b.pieces {
		room = append(room, p...)
	}
	return room
}

// replace puts a shorter text in place of the records.
func (b *batch) replace(text []byte) {
	b.size = len(text)
	for i, p := range b.pieces {
		n := copy(p[:cap(p)], text)
		b.pieces[i], text = p[:n], text[n:]
	}
}

// appendHead appends what comes before the pieces of the sealed batch.
func (b *batch) appendHead(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, make([]byte, batchHead)...)
	sum := finish(dst[start:], &b.head, b.size)
	for _, p := range b.pieces {
		sum = crc32.Update(sum, castagnoli, p)
	}
	binary.BigEndian.PutUint32(dst[start+checksumAt:], sum)
	return dst
}

// unpack returns the records without compression. What a broker may have refused is packed right, so that there is no error but a
// fault in the codec.
func (b *batch) unpack() ([]byte, error) {
	records := b.plain(nil)
	if b.head.codec == 0 {
		return records, nil
	}
	return kgo.DefaultDecompressor().Decompress(records, kgo.CompressionCodecType(b.head.codec))
}

// split divides a batch that a broker finds too large, keeping the records' sequence numbers. Both halves have at least one record.
func (b *batch) split(m *memory) (*batch, error) {
	whole, err := b.unpack()
	if err != nil {
		return nil, err
	}
	whole = bytes.Clone(whole) // its pieces go round
	parts, count := b.parts, b.head.count
	m.clear(b)
	first, rest := &batch{head: b.head, closed: true, numbered: true, in: b.in}, &batch{head: b.head, closed: true, numbered: true, in: b.in}
	keep := count / 2
	rest.head.sequence = after(b.head.sequence, keep)
	for _, half := range []*batch{first, rest} {
		half.head.codec, half.head.count, half.head.last = 0, 0, math.MinInt64
	}
	n := 0
	records(whole, func(r record) {
		half := first
		if n >= keep {
			half = rest
		}
		n++
		body, _ := recordSize(r.time, half.head.count, r.key, r.value, r.headers)
		half.write(m, appendRecord(nil, body, r.time, half.head.count, r.key, r.value, r.headers))
		half.head.count++
		half.head.last = max(half.head.last, b.head.first+r.time)
	})
	first.parts = parts
	for i := range first.parts {
		p := &first.parts[i]
		if keep >= p.Count {
			keep -= p.Count
			continue
		}
		rest.parts = slices.Clone(first.parts[i:])
		rest.parts[0].Count -= keep
		if p.Count = keep; keep > 0 {
			i++
		}
		first.parts = first.parts[:i]
		break
	}
	first.since, first.attempts = b.since, b.attempts
	*b = *first
	return rest, nil
}
