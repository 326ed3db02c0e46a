package producer

import (
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Versions of produce requests: the first one that is flexible, and the first one that has ids in place of the names of topics,
// as its answers do.
const (
	firstFlexible = 9
	firstByID     = 13
)

// request is a produce request that is written from the pieces of its batches where they are. The rest of it, versions and
// answers, is kmsg's.
type request struct {
	*kmsg.ProduceRequest
	taken  []sending // sorted by topic
	topics int
	most   int16 // the highest version that it can have
	pieces []piece
}

// piece is a piece of a batch.
type piece struct {
	at    int // how many bytes of what [request.AppendTo] has appended come before it
	bytes []byte
}

func newRequest(taken []sending, timeout int32) *request {
	r := &request{ProduceRequest: kmsg.NewPtrProduceRequest(), taken: taken}
	r.Acks, r.TimeoutMillis = -1, timeout
	r.most = r.ProduceRequest.MaxVersion()
	for i, s := range taken {
		if i == 0 || s.part.topic != taken[i-1].part.topic {
			r.topics++
		}
		if s.id == [16]byte{} { // who told of the topic is older than this broker
			r.most = min(r.most, firstByID-1)
		}
	}
	return r
}

// MaxVersion implements [kmsg.Request].
func (r *request) MaxVersion() int16 { return r.most }

// gather appends the request to buffers, with its length and all before its body, for which there is room.
func (r *request) gather(buffers [][]byte, f *kmsg.RequestFormatter, room []byte, number int32) ([][]byte, []byte) {
	room = f.AppendRequest(room, r, number)
	size, from := len(room), 0
	for _, p := range r.pieces {
		size += len(p.bytes)
		if p.at > from {
			buffers = append(buffers, room[from:p.at])
		}
		buffers = append(buffers, p.bytes)
		from = p.at
	}
	binary.BigEndian.PutUint32(room, uint32(size-4))
	return append(buffers, room[from:]), room
}

// AppendTo implements [kmsg.Request], but for the pieces of the batches: it says where they belong.
func (r *request) AppendTo(dst []byte) []byte {
	version := r.GetVersion()
	flexible := version >= firstFlexible
	array := func(dst []byte, n int) []byte {
		if flexible {
			return kbin.AppendCompactArrayLen(dst, n)
		}
		return kbin.AppendArrayLen(dst, n)
	}
	end := func(dst []byte) []byte {
		if flexible {
			return append(dst, 0) // no tagged fields
		}
		return dst
	}
	r.pieces = r.pieces[:0]
	if flexible {
		dst = kbin.AppendCompactNullableString(dst, r.TransactionID)
	} else {
		dst = kbin.AppendNullableString(dst, r.TransactionID)
	}
	dst = kbin.AppendInt16(dst, r.Acks)
	dst = kbin.AppendInt32(dst, r.TimeoutMillis)
	dst = array(dst, r.topics)
	for i := 0; i < len(r.taken); {
		topic, n := r.taken[i].part.topic, 1
		for i+n < len(r.taken) && r.taken[i+n].part.topic == topic {
			n++
		}
		switch {
		case version >= firstByID:
			dst = append(dst, r.taken[i].id[:]...)
		case flexible:
			dst = kbin.AppendCompactString(dst, topic.name)
		default:
			dst = kbin.AppendString(dst, topic.name)
		}
		dst = array(dst, n)
		for _, s := range r.taken[i : i+n] {
			dst = kbin.AppendInt32(dst, s.part.number)
			if flexible {
				dst = kbin.AppendUvarint(dst, uint32(s.batch.bytes())+1)
			} else {
				dst = kbin.AppendInt32(dst, int32(s.batch.bytes()))
			}
			dst = s.batch.appendHead(dst)
			for _, p := range s.batch.pieces {
				r.pieces = append(r.pieces, piece{len(dst), p})
			}
			dst = end(dst)
		}
		dst = end(dst)
		i += n
	}
	return end(dst)
}
