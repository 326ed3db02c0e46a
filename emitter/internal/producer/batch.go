package producer

import (
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// batch is a record batch of one partition: open while records are appended, then closed, then sent until it is
// acknowledged. Its bytes are the same whenever it is sent again, so that a broker that has it already knows it.
type batch struct {
	buf      []byte // batchHead bytes of room, then the records
	head     head
	closed   bool // has its sequence number
	sealed   bool // buf is what is sent: its head is filled in, and its records may be compressed
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

// add appends a record; the caller has seen that there is room.
func (b *batch) add(r *Record, now int64) {
	if b.head.count == 0 {
		b.head.first, b.head.last = now, now
	}
	b.head.last = max(b.head.last, now)
	delta := now - b.head.first
	body, _ := recordSize(delta, b.head.count, r.Key, r.Value, r.Headers)
	b.buf = appendRecord(b.buf, body, delta, b.head.count, r.Key, r.Value, r.Headers)
	b.head.count++
	if n := len(b.parts); n > 0 {
		if p := &b.parts[n-1]; p.Group == r.Group && p.Pos == r.Pos && p.File == r.File {
			p.Count++
			return
		}
	}
	b.parts = append(b.parts, Part{r.Group, 1, r.File, r.Pos})
}

// unpack returns the batch as it is without compression. What a broker may have refused is packed right, so that there is no
// error but a fault in the codec.
func (b *batch) unpack() ([]byte, error) {
	if b.head.codec == 0 {
		return b.buf, nil
	}
	plain, err := kgo.DefaultDecompressor().Decompress(b.buf[batchHead:], kgo.CompressionCodecType(b.head.codec))
	return append(make([]byte, batchHead, batchHead+len(plain)), plain...), err
}

// split divides a batch that a broker finds too large, keeping the records' sequence numbers. Both halves have at least one record.
// The second one has memory of its own.
func (b *batch) split() (*batch, error) {
	whole, err := b.unpack()
	if err != nil {
		return nil, err
	}
	keep := b.head.count / 2
	rest := &batch{buf: make([]byte, batchHead, batchHead+len(whole)/2), head: b.head, closed: true}
	rest.head.sequence, rest.head.codec, rest.head.count = after(b.head.sequence, keep), 0, 0
	b.head.last, rest.head.last = math.MinInt64, math.MinInt64
	first := append(make([]byte, 0, len(whole)), whole[:batchHead]...)
	n := 0
	records(whole, func(r record) {
		if n < keep {
			first = append(first, whole[r.from:r.to]...)
			b.head.last = max(b.head.last, b.head.first+r.time)
		} else {
			body, _ := recordSize(r.time, n-keep, r.key, r.value, r.headers)
			rest.buf = appendRecord(rest.buf, body, r.time, n-keep, r.key, r.value, r.headers)
			rest.head.count++
			rest.head.last = max(rest.head.last, b.head.first+r.time)
		}
		n++
	})
	b.buf, b.sealed, b.head.codec, b.head.count = first, false, 0, keep
	for i := range b.parts {
		p := &b.parts[i]
		if keep >= p.Count {
			keep -= p.Count
			continue
		}
		rest.parts = slices.Clone(b.parts[i:])
		rest.parts[0].Count -= keep
		if p.Count = keep; keep > 0 {
			i++
		}
		b.parts = b.parts[:i]
		break
	}
	return rest, nil
}
