package producer

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// Layout of a record batch, format 2 (Kafka's message format documentation). The checksum covers what follows it.
const (
	batchLengthAt   = 8 // counts what follows it
	leaderEpochAt   = 12
	magicAt         = 16
	checksumAt      = 17
	attributesAt    = 21
	lastDeltaAt     = 23
	firstTimeAt     = 27
	maxTimeAt       = 35
	producerIDAt    = 43
	producerEpochAt = 51
	sequenceAt      = 53
	countAt         = 57
	batchHead       = 61

	magic = 2

	transactional = 0x10 // of the attributes
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// recordSize is the size of a record behind its length, and with it. headers are encoded, with their count.
func recordSize(timeDelta int64, offsetDelta int, key, value, headers []byte) (body, whole int) {
	body = 1 + varintSize(timeDelta) + varintSize(int64(offsetDelta)) + bytesSize(key) + bytesSize(value) + len(headers)
	return body, varintSize(int64(body)) + body
}

// mostSize is what a record takes at most, whatever its place and its time, which may be far off when the clock is set.
func mostSize(key, value, headers []byte) int {
	const framing = 1 + 4*5 + 10 // attributes, four 32-bit numbers (lengths of record, key and value, and its place), and the time
	return framing + len(key) + len(value) + len(headers)
}

// appendRecord appends a record whose size behind its length is body.
func appendRecord(b []byte, body int, timeDelta int64, offsetDelta int, key, value, headers []byte) []byte {
	b = appendFraming(b, body, timeDelta, offsetDelta)
	b = appendBytes(b, key)
	b = appendBytes(b, value)
	return append(b, headers...)
}

// appendFraming appends what stands in front of a record's key.
func appendFraming(b []byte, body int, timeDelta int64, offsetDelta int) []byte {
	b = appendVarint(b, int64(body))
	b = append(b, 0) // attributes, of which there are none
	b = appendVarint(b, timeDelta)
	return appendVarint(b, int64(offsetDelta))
}

// AppendHeader appends one header of a record in the form that [Record.Headers] has.
func AppendHeader(b []byte, name string, value []byte) []byte {
	b = append(appendVarint(b, int64(len(name))), name...)
	return appendBytes(b, value)
}

// AppendHeaderCount appends the number of headers, which stands before them.
func AppendHeaderCount(b []byte, n int) []byte { return appendVarint(b, int64(n)) }

// appendBytes appends nullable bytes.
func appendBytes(b, v []byte) []byte {
	return append(appendLength(b, v), v...)
}

// appendLength appends what stands in front of nullable bytes.
func appendLength(b, v []byte) []byte {
	if v == nil {
		return append(b, 1) // -1
	}
	return appendVarint(b, int64(len(v)))
}

func bytesSize(v []byte) int {
	if v == nil {
		return 1
	}
	return varintSize(int64(len(v))) + len(v)
}

// appendVarint appends a zigzag number.
func appendVarint(b []byte, n int64) []byte {
	z := uint64(n<<1) ^ uint64(n>>63)
	switch {
	case z < 1<<7:
		return append(b, byte(z))
	case z < 1<<14:
		return append(b, byte(z)|0x80, byte(z>>7))
	}
	return binary.AppendUvarint(b, z)
}

func varintSize(n int64) int {
	z := uint64(n<<1) ^ uint64(n>>63)
	return (bits.Len64(z|1) + 6) / 7
}

// finish fills in the head of a batch whose records have so many bytes, and returns the checksum so far, which the records
// go on.
func finish(b []byte, h *head, records int) uint32 {
	binary.BigEndian.PutUint64(b, 0) // the broker's to say
	binary.BigEndian.PutUint32(b[batchLengthAt:], uint32(batchHead-leaderEpochAt+records))
	binary.BigEndian.PutUint32(b[leaderEpochAt:], 0xffff_ffff)
	b[magicAt] = magic
	attributes := uint16(h.codec)
	if h.transactional {
		attributes |= transactional
	}
	binary.BigEndian.PutUint16(b[attributesAt:], attributes)
	binary.BigEndian.PutUint32(b[lastDeltaAt:], uint32(h.count-1))
	binary.BigEndian.PutUint64(b[firstTimeAt:], uint64(h.first))
	binary.BigEndian.PutUint64(b[maxTimeAt:], uint64(h.last))
	binary.BigEndian.PutUint64(b[producerIDAt:], uint64(h.producer))
	binary.BigEndian.PutUint16(b[producerEpochAt:], uint16(h.epoch))
	binary.BigEndian.PutUint32(b[sequenceAt:], uint32(h.sequence))
	binary.BigEndian.PutUint32(b[countAt:], uint32(h.count))
	return crc32.Checksum(b[attributesAt:batchHead], castagnoli)
}

// head is what a batch says of its records.
type head struct {
	codec       int8
	count       int
	first, last int64 // times of the first record and the latest one, in ms since the epoch
	producer    int64
	epoch       int16
	sequence    int32

	transactional bool
}

// after is the sequence number n records behind another; they count up to 2^31-1 and begin again.
func after(sequence int32, n int) int32 { return int32((int64(sequence) + int64(n)) & 0x7fff_ffff) }

// record is one record of a batch without compression: from and to are its bounds, the rest aliases the batch.
type record struct {
	from, to            int
	time                int64 // after the first record, in ms
	key, value, headers []byte
}

// records calls f with each of the records of a batch.
func records(b []byte, f func(r record)) {
	number := func(at *int) int64 {
		v, n := binary.Varint(b[*at:])
		*at += n
		return v
	}
	text := func(at *int) []byte {
		n := int(number(at))
		if n < 0 {
			return nil
		}
		*at += n
		return b[*at-n : *at : *at]
	}
	for at := 0; at < len(b); {
		r := record{from: at}
		body := number(&at)
		r.to = at + int(body)
		at++ // attributes
		r.time = number(&at)
		number(&at) // its place in the batch
		r.key = text(&at)
		r.value = text(&at)
		r.headers = b[at:r.to:r.to]
		at = r.to
		f(r)
	}
}
