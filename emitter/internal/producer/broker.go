package producer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// requestBytes is how many bytes of batches are enough for one request.
	requestBytes = 1 << 20
	// mostRequests may be under way to one broker.
	mostRequests = 5
	// atOnce is how many bytes a connection surely takes without waiting when nothing is under way.
	atOnce = 16 << 10
)

// broker is a leader of partitions, and the goroutine that sends their batches. The producer's lock guards it.
type broker struct {
	p        *Producer
	node     int32
	ready    []*partition // have a batch to be sent, and none under way
	requests int          // under way
	until    time.Time    // there are no requests before: it asks for that, or cannot be reached
	conn     *connection  // nil: none yet, or it has ended
	told     time.Time    // when it was said that it misbehaves
	stirred  bool         // is among the producer's woken ones
	filled   int          // partitions whose first batch is as large as it may be, in the transaction that records are appended to
	bell     chan struct{}

	// sending is held by who takes batches and sends them, and taken before the producer's lock or tried under it.
	sending sync.Mutex
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
		b.sending.Lock()
		b.p.mu.Lock()
		taken, wait := b.take(requestBytes, false)
		b.p.mu.Unlock()
		if len(taken) > 0 {
			b.send(taken, nil)
		}
		b.sending.Unlock()
		if len(taken) > 0 {
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

// take gives the batches that make the next request, of about most bytes: at least one of them, or none that is strictly too
// large. Without any it says after which time there will be some; 0: when it is woken. The caller holds both locks.
func (b *broker) take(most int, strictly bool) (taken []sending, wait time.Duration) {
	p := b.p
	t := p.transactions
	if b.requests >= mostRequests || p.ctx.Err() != nil || p.refused || len(b.ready) == 0 || t != nil && t.aborting {
		return nil, 0
	}
	if strictly && t != nil && !fit(b.ready, most) {
		return nil, 0 // the first batches in a transaction are for one request
	}
	linger := p.cfg.Client.Linger
	if p.flushing > 0 || p.full {
		linger = 0
	}
	var now time.Time
	if linger > 0 || !b.until.IsZero() {
		now = time.Now()
		if wait = b.until.Sub(now); wait > 0 {
			return nil, wait
		}
		b.until, wait = time.Time{}, 0
	}
	size, left := 0, b.ready[:0]
	for i, part := range b.ready {
		at, due := part.due(linger, now)
		if due && (size > 0 || strictly) && size+part.queue[0].bytes() > most {
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
		if t != nil && !t.take(part) {
			left = append(left, part)
			continue
		}
		first := part.queue[0]
		part.assign(first)
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

// fit says that the next batches of partitions have no more bytes.
func fit(parts []*partition, most int) bool {
	for _, part := range parts {
		if most -= part.queue[0].bytes(); most < 0 {
			return false
		}
	}
	return true
}

// send sends batches over a connection, nil: over the one there is, or a new one. The answer is dealt with elsewhere. The
// caller holds the broker's lock.
func (b *broker) send(taken []sending, c *connection) {
	p := b.p
	slices.SortFunc(taken, func(x, y sending) int { // those of a topic stand together
		return cmp.Or(strings.Compare(x.part.topic.name, y.part.topic.name), cmp.Compare(x.part.number, y.part.number))
	})
	var err error
	if c == nil {
		c, err = b.connection()
	}
	if err == nil && !p.may() {
		return
	}
	if err == nil {
		w := p.workspaces.Get().(*workspace)
		for _, s := range taken {
			p.seal(s.batch, w)
		}
		err = c.send(taken, w)
		w.leave()
		p.workspaces.Put(w)
	}
	if err != nil {
		p.answered(b, taken, nil, err)
	}
}

// connection returns the connection to the broker, and makes one if there is none.
func (b *broker) connection() (*connection, error) {
	p := b.p
	p.mu.Lock()
	c, address := b.conn, p.addresses[b.node]
	p.mu.Unlock()
	if c != nil {
		return c, nil
	}
	if address == "" {
		return nil, fmt.Errorf("broker %d is not in the cluster", b.node)
	}
	made, err := p.cfg.Client.Connect(p.ctx, address)
	p.shutOut(address, err)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		b.until = time.Now().Add(p.cfg.firstPause) // also for partitions that have not been tried
		return nil, err
	}
	c = b.connected(made, address)
	p.running.Go(c.read)
	return c, nil
}

// seal makes what is sent of a closed batch, in its own memory. No lock is needed: nobody else touches a batch that is under way.
func (p *Producer) seal(batch *batch, w *workspace) {
	if batch.sealed {
		return
	}
	if p.compressor != nil {
		w.packing.Reset()
		plain := batch.plain(w.plain[:0])
		packed, codec := p.compressor.Compress(&w.packing, plain)
		if packed != nil && len(packed) < batch.size {
			batch.head.codec = int8(codec)
			batch.replace(packed)
		}
		if len(batch.pieces) != 1 {
			w.plain = plain
		}
	}
	batch.head.producer, batch.head.epoch, batch.head.transactional = p.id, p.epoch, p.transactions != nil
	batch.sealed = true
}

// unlist takes a partition away that another broker leads now.
func (b *broker) unlist(part *partition) {
	part.listed = false
	b.ready = slices.DeleteFunc(b.ready, func(p *partition) bool { return p == part })
}

// unlock gives the producer's lock back, and has the brokers that have got something to do under it go on. A broker that has had
// nothing to do gets a little at once, from this goroutine: to wake another one takes longer.
func (p *Producer) unlock() {
	type work struct {
		b     *broker
		taken []sending
		over  *connection
	}
	var one [1]work
	now := one[:0]
	for _, b := range p.woken {
		b.stirred = false
		if b.conn == nil || b.requests > 0 || !b.sending.TryLock() {
			b.wake()
			continue
		}
		taken, wait := b.take(atOnce, true)
		if wait > 0 || len(b.ready) > 0 {
			b.wake()
		}
		if len(taken) == 0 {
			b.sending.Unlock()
			continue
		}
		now = append(now, work{b, taken, b.conn})
	}
	p.woken = p.woken[:0]
	p.mu.Unlock()
	for _, w := range now {
		w.b.send(w.taken, w.over)
		w.b.sending.Unlock()
	}
}

func (p *Producer) wakeAll() {
	for _, b := range p.brokers {
		b.wake()
	}
}
