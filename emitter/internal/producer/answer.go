package producer

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Pauses before a batch is sent again.
const (
	firstPause = 100 * time.Millisecond
	mostPause  = time.Second
)

var errNoAnswer = errors.New("the broker does not say what became of the batch")

// answered deals with the answer to a request, or with its lack: err says why there is none.
func (p *Producer) answered(b *broker, taken []*partition, answer *kmsg.ProduceResponse, err error) {
	codes := make(map[partitionKey]int16, len(taken))
	if err == nil && answer != nil {
		for i := range answer.Topics {
			t := &answer.Topics[i]
			for j := range t.Partitions {
				codes[partitionKey{t.Topic, t.TopicID, t.Partitions[j].Partition}] = t.Partitions[j].ErrorCode
			}
		}
	}
	named := answer != nil && answer.Version < 13 // later ones have the ids of topics

	p.mu.Lock()
	b.requests--
	var done []*batch
	var refused error
	stale := false
	for _, part := range taken {
		key := partitionKey{topic: part.topic.name, partition: part.number}
		if !named {
			key = partitionKey{id: part.sent, partition: part.number}
		}
		code, known := codes[key]
		cause := err
		switch {
		case cause != nil:
		case !known:
			cause = errNoAnswer
		default:
			cause = kerr.ErrorForCode(code)
		}
		first := part.queue[0]
		switch {
		case cause == nil || errors.Is(cause, kerr.DuplicateSequenceNumber):
			done = append(done, first)
			part.next()
		case errors.Is(cause, kerr.MessageTooLarge) && first.head.count > 1:
			if failed := p.split(part); failed != nil {
				refused = refusal(part, failed)
			}
		case err != nil || !known || kerr.IsRetriable(cause):
			stale = true
			p.later(part)
		default:
			refused = refusal(part, cause) // the last one if there are several
		}
	}
	p.mu.Unlock()

	for _, batch := range done {
		p.cfg.Acked(batch.parts)
	}
	if refused != nil {
		p.fail(refused)
	} else if stale {
		p.ask()
	}
	p.settle(b, done)
}

type partitionKey struct {
	topic     string
	id        [16]byte
	partition int32
}

// settle gives back the memory of batches that are done, and has what waits for that go on.
func (p *Producer) settle(b *broker, done []*batch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, batch := range done {
		p.memory.release(batch)
	}
	p.pending -= len(done)
	if p.pending == 0 && p.idle != nil {
		close(p.idle)
		p.idle = nil
	}
	b.wake()
	select {
	case p.room <- struct{}{}:
	default:
	}
}

// next goes on to the batch behind the first one, which is done.
func (p *partition) next() {
	p.usual = len(p.queue[0].buf)
	p.queue[0] = nil
	p.queue = p.queue[1:]
	p.again()
}

// again lists the partition if it has something to be sent.
func (p *partition) again() {
	p.busy = false
	if len(p.queue) > 0 {
		p.list()
	}
}

// split halves the first batch of a partition, and sends the halves one after the other.
func (p *Producer) split(part *partition) error {
	first := part.queue[0]
	before := cap(first.buf)
	rest, err := first.split()
	if err != nil {
		return err
	}
	p.memory.used += cap(first.buf) - before + cap(rest.buf)
	p.pending++
	part.queue = slices.Insert(part.queue, 1, rest)
	part.again()
	return nil
}

// later sends the first batch of a partition again after a pause, to whoever leads the partition then.
func (p *Producer) later(part *partition) {
	first := part.queue[0]
	pause := min(firstPause<<min(first.attempts, 10), mostPause)
	first.attempts++
	time.AfterFunc(pause, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.ctx.Err() != nil {
			return
		}
		part.again()
		p.stirAll()
	})
}

// refusal says which record is not taken. Of a batch with several records that is the first: what Kafka has against one it has
// against all, but for their size, for which batches are split.
func refusal(part *partition, cause error) *Refused {
	b := part.queue[0]
	r := &Refused{Topic: part.topic.name, Size: len(b.buf), File: b.parts[0].File, Pos: b.parts[0].Pos, Err: cause}
	if errors.Is(cause, kerr.OutOfOrderSequenceNumber) || errors.Is(cause, kerr.UnknownProducerID) {
		r.Err = fmt.Errorf("partition %d has lost what it had acknowledged before this record: %w", part.number, cause)
	}
	whole, err := b.unpack()
	if err != nil {
		r.Err = errors.Join(r.Err, err)
		return r
	}
	found := false
	records(whole, func(one record) {
		if !found {
			found, r.Key, r.Size = true, bytes.Clone(one.key), one.to-one.from
		}
	})
	return r
}
