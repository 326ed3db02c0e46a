package producer

import (
	"time"

	"github.com/tidemark-cdc/tidemark/emitter/internal/kclient"
)

// Topic is a topic that is known. Its methods are for the goroutine that appends.
type Topic struct {
	name       string
	id         [16]byte
	partitions []*partition
	keyless    kclient.Keyless
	gone       time.Time // since when the cluster does not know it; zero: it does
	asked      bool      // for it to be made again
}

// partition is one partition of a topic, with its batches in the order in which they are sent. All but the last are closed.
type partition struct {
	topic    *Topic
	number   int32
	broker   *broker // its leader; nil: not known
	sequence int32   // of the next batch that is taken
	queue    []*batch
	busy     bool // its first batch is under way, or waits to be sent again
	listed   bool // it is among the broker's ready ones

	// With transactions:
	held   bool         // the transaction has it until it may be sent to
	in     *transaction // the last one that it was added to
	proven *transaction // the last one of which it has a batch
	proves bool         // the batch under way is the first one of its transaction
	series uint64       // of sequences, that sequence belongs to
	asked  uint64       // it has been asked for ends lost by then, see [transactions.doubts]
}

// Partition says where a record goes: to fixed if that is not negative, else where Java's producer has it.
func (t *Topic) Partition(fixed int32, key, value []byte) int {
	switch {
	case fixed >= 0:
		return int(fixed)
	case key != nil:
		return kclient.Partition(key, len(t.partitions))
	}
	return t.keyless.Partition(len(value), len(t.partitions))
}

// assign closes the first batch and numbers its records, when it is first taken.
func (p *partition) assign(b *batch) {
	if b.numbered {
		return
	}
	b.closed, b.numbered = true, true
	b.head.sequence = p.sequence
	p.sequence = after(p.sequence, b.head.count)
}

// list puts the partition among those that its leader has something to be sent for.
func (p *partition) list(t *transactions) {
	if p.broker == nil {
		return // until its leader is known
	}
	if t != nil && t.hold(p) {
		return
	}
	p.listed = true
	p.broker.ready = append(p.broker.ready, p)
	p.broker.stir()
}

// due says when the first batch is to be sent, and whether that is now: it is full, or has waited for others long enough.
func (p *partition) due(linger time.Duration, now time.Time) (time.Time, bool) {
	if first := p.queue[0]; linger <= 0 || first.closed || first.in != nil && first.in.cut {
		return now, true
	}
	at := p.queue[0].since.Add(linger)
	return at, !at.After(now)
}
