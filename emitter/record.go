package emitter

import (
	"slices"
	"unsafe"

	"github.com/tidemark-cdc/tidemark/offset"
)

// Record is one Kafka record. Key and Value are nil for null; they alias the [Batch] that the record is in, as the Side of Offset
// does: an offset that outlives the batch's next Reset is kept as [offset.Offset.Kept].
type Record struct {
	Topic     string
	Partition int32 // -1: the key's hash says (data, tombstones, transactions); schema changes and heartbeats: 0
	Key       []byte
	Value     []byte
	Headers   []Header      // shared by many records: not to be changed, ever
	Offset    offset.Offset // the source offset that Connect would attach (I3)

	moved bool // Headers are this row's own and live in the batch
	left  bool // it is not written: see Poison
	note  bool // it stands for one that is left out
}

// Header is one header of a record.
type Header struct {
	Name  string
	Value []byte
}

// Batch is reusable memory for records: an [Emitter] appends records and their bytes, a [Delivery] hands them on and
// reuses the memory when all are acknowledged. Not safe for concurrent use.
type Batch struct {
	Records []Record
	mem     []byte   // keys, values and headers of Records; older arrays live on in the records after growth
	headers []Header // those that only some records have, in the same way
	sides   offset.Sides
	members int // bytes of the members that offsets have inside transactions
}

// next is the place for one more record, whose members are those of an older one.
func (b *Batch) next() *Record {
	n := len(b.Records)
	if n == cap(b.Records) {
		b.Records = slices.Grow(b.Records, 1)
	}
	b.Records = b.Records[:n+1]
	return &b.Records[n]
}

// Size is the number of bytes of keys, values, headers and the members of offsets held.
func (b *Batch) Size() int { return len(b.mem) + b.members }

// Reset forgets all records and keeps the memory.
func (b *Batch) Reset() {
	clear(b.Records)
	clear(b.headers)
	b.Records = b.Records[:0]
	b.mem = b.mem[:0]
	b.headers = b.headers[:0]
	b.sides.Reset()
	b.members = 0
}

// copy makes copies of records, with memory of their own.
func (b *Batch) copy(records []Record) {
	var of, kept *offset.Side
	for i := range records {
		r := records[i]
		r.Key, r.Value = b.keep(r.Key), b.keep(r.Value)
		if r.moved {
			start := len(b.headers)
			for _, h := range r.Headers {
				b.headers = append(b.headers, Header{h.Name, b.keep(h.Value)})
			}
			r.Headers = b.headers[start:len(b.headers):len(b.headers)]
		}
		if side := r.Offset.Side; side != nil && side.Open != nil {
			if side != of { // those of an event share one
				of, kept = side, side.Kept()
			}
			r.Offset.Side = kept
		}
		b.members += len(r.Offset.Extra) * int(unsafe.Sizeof(offset.Member{}))
		*b.next() = r
	}
}

// keep copies bytes to the memory of the batch.
func (b *Batch) keep(p []byte) []byte {
	if p == nil {
		return nil
	}
	start := len(b.mem)
	b.mem = append(b.mem, p...)
	return b.mem[start:len(b.mem):len(b.mem)]
}

// empty is Reset that does not keep the memory of a large row.
func (b *Batch) empty() {
	if cap(b.mem) > 2*batchBytes {
		b.mem = nil
	}
	b.Reset()
}
