package producer

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// requestBytes is how many bytes of batches are enough for one request.
	requestBytes = 1 << 20
	// mostRequests may be under way to one broker.
	mostRequests = 5
	// mostRoom is how many bytes are kept for batches to come.
	mostRoom = 2 * requestBytes
)

// broker is a leader of partitions, and the goroutine that sends their batches. The producer's lock guards it.
type broker struct {
	p        *Producer
	node     int32
	ready    []*partition // have a batch to be sent, and none under way
	requests int          // under way
	stirred  bool         // is among the producer's woken ones
	bell     chan struct{}
	plain    []byte       // of the goroutine: room for the records of a batch …
	packing  bytes.Buffer // … and for them compressed; not of those with a large record
}

// broker finds the broker with a number, or begins with it.
func (p *Producer) broker(node int32) *broker {
	b := p.brokers[node]
	if b == nil {
		b = &broker{p: p, node: node, bell: make(chan struct{}, 1)}
		p.brokers[node] = b
		if !p.closed {
			p.running.Go(b.run)
		}
	}
	return b
}

// wake has the goroutine look again.
func (b *broker) wake() {
	select {
	case b.bell <- struct{}{}:
	default:
	}
}

// stir does so when the records at hand are all appended.
func (b *broker) stir() {
	if !b.stirred {
		b.stirred = true
		b.p.woken = append(b.p.woken, b)
	}
}

// run sends what is ready until the producer ends.
func (b *broker) run() {
	select {
	case <-b.p.ready:
	case <-b.p.ctx.Done():
		return
	}
	for {
		taken, wait := b.take()
		if len(taken) > 0 {
			b.send(taken)
			continue
		}
		var later <-chan time.Time
		if wait > 0 {
			later = time.After(wait)
		}
		select {
		case <-b.bell:
		case <-later:
		case <-b.p.ctx.Done():
			return
		}
	}
}

// sending is the first batch of a partition, under way. The partition's queue is not to be read without the lock.
type sending struct {
	part  *partition
	batch *batch
	id    [16]byte // of the topic, in the request
}

// take gives the batches that make the next request. Without any it says after which time there will be some; 0:
// when it is woken.
func (b *broker) take() (taken []sending, wait time.Duration) {
	p := b.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if b.requests >= mostRequests || p.ctx.Err() != nil || p.refused || len(b.ready) == 0 {
		return nil, 0
	}
	linger := p.cfg.Client.Linger
	if p.flushing > 0 || p.full {
		linger = 0
	}
	var now time.Time
	if linger > 0 {
		now = time.Now()
	}
	size, left := 0, b.ready[:0]
	for i, part := range b.ready {
		at, due := part.due(linger, now)
		if due && size > 0 && size+part.queue[0].bytes() > requestBytes {
			left = append(left, b.ready[i:]...)
			break
		}
		if !due {
			if d := at.Sub(now); wait == 0 || d < wait {
				wait = d
			}
			left = append(left, part)
			continue
		}
		first := part.queue[0]
		if !first.closed {
			part.close(first)
		}
		part.busy, part.listed = true, false
		taken = append(taken, sending{part, first, part.topic.id})
		size += first.bytes()
	}
	clear(b.ready[len(left):])
	b.ready = left
	if len(taken) > 0 {
		b.requests++
	}
	return taken, wait
}

// send sends batches; the answer is dealt with beside it.
func (b *broker) send(taken []sending) {
	p := b.p
	for _, s := range taken {
		b.seal(s.batch)
	}
	slices.SortFunc(taken, func(x, y sending) int { // those of a topic stand together
		return cmp.Or(strings.Compare(x.part.topic.name, y.part.topic.name), cmp.Compare(x.part.number, y.part.number))
	})
	req := newRequest(taken, int32(p.cfg.Client.Timeout.Milliseconds()))
	p.running.Go(func() {
		resp, err := p.client.Broker(int(b.node)).Request(p.ctx, req)
		answer, _ := resp.(*kmsg.ProduceResponse)
		p.answered(b, taken, answer, err)
	})
}

// seal makes what is sent of a closed batch, in its own memory. No lock is needed: nobody else touches a batch that is under way.
func (b *broker) seal(batch *batch) {
	if batch.sealed {
		return
	}
	if b.p.compressor != nil {
		b.packing.Reset()
		plain := batch.plain(b.plain[:0])
		packed, codec := b.p.compressor.Compress(&b.packing, plain)
		if packed != nil && len(packed) < batch.size {
			batch.head.codec = int8(codec)
			batch.replace(packed)
		}
		if len(batch.pieces) != 1 && cap(plain) <= mostRoom {
			b.plain = plain
		}
		if b.packing.Cap() > mostRoom {
			b.packing = bytes.Buffer{}
		}
	}
	batch.head.producer, batch.head.epoch = b.p.id, b.p.epoch
	batch.sealed = true
}

// unlist takes a partition away that another broker leads now.
func (b *broker) unlist(part *partition) {
	part.listed = false
	b.ready = slices.DeleteFunc(b.ready, func(p *partition) bool { return p == part })
}

// stirAll wakes the brokers that have got something to do, when no records are being appended.
func (p *Producer) stirAll() {
	for _, b := range p.woken {
		b.stirred = false
		b.wake()
	}
	p.woken = p.woken[:0]
}

func (p *Producer) wakeAll() {
	for _, b := range p.brokers {
		b.wake()
	}
}
