package producer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Pauses before a batch is sent again.
const (
	firstPause = 100 * time.Millisecond
	mostPause  = time.Second
)

// mostCorrupt is how often a batch is sent that arrives corrupt, or that a broker has a fault with that has no name. Brokers before
// Kafka 2.4 say so of what they do not want, too.
const mostCorrupt = 5

// answered deals with the answer to a request, or with its lack: err says why there is none.
func (p *Producer) answered(b *broker, taken []sending, answer *kmsg.ProduceResponse, err error) {
	results := make(map[partitionKey]*kmsg.ProduceResponseTopicPartition, len(taken))
	if err == nil && answer != nil {
		for i := range answer.Topics {
			t := &answer.Topics[i]
			for j := range t.Partitions {
				key := partitionKey{t.Topic, t.TopicID, t.Partitions[j].Partition}
				if before := results[key]; before == nil || before.ErrorCode == 0 { // never acknowledged in spite of an error
					results[key] = &t.Partitions[j]
				}
			}
		}
	}
	named := answer != nil && answer.Version < firstByID

	p.mu.Lock()
	b.requests--
	if answer != nil && answer.ThrottleMillis > 0 {
		b.until = time.Now().Add(time.Duration(answer.ThrottleMillis) * time.Millisecond)
	}
	var done []*batch
	var refused error
	stale := false
	t := p.transactions
	for _, s := range taken {
		part := s.part
		if t != nil {
			t.returned(part)
		}
		key := partitionKey{topic: part.topic.name, partition: part.number}
		if !named {
			key = partitionKey{id: s.id, partition: part.number}
		}
		result := results[key]
		var cause error
		if result != nil { // an error without an answer says nothing of the batch, whatever its code
			cause = kerr.ErrorForCode(result.ErrorCode)
		}
		switch {
		case errors.Is(err, kgo.ErrClientClosed), errors.Is(err, kerr.UnsupportedVersion):
			refused = err
		case result != nil && (cause == nil || errors.Is(cause, kerr.DuplicateSequenceNumber)):
			done = append(done, s.batch)
			part.next(t)
		case tooLarge(cause) && s.batch.head.count > 1:
			if failed := p.split(part); failed != nil {
				refused = refusal(part, failed, nil)
			}
		case p.spares(s, cause): // the partition waits until it is done
			p.running.Go(func() { p.spare(b, part, cause, result) })
		case t != nil && ends(cause):
			refused = t.failure(cause, "writing to topic "+part.topic.name)
		case t != nil && errors.Is(cause, kerr.ConcurrentTransactions):
			p.later(part, markersPause)
		case result == nil || triesAgain(cause, s.batch.attempts):
			stale = true
			p.later(part, p.cfg.firstPause)
		default:
			p.spoilt = p.spoilt || ends(cause)
			refused = refusal(part, cause, result) // the last one if there are several
			if again := p.unsure(s, cause); again != nil {
				refused = again
			}
		}
	}
	p.refused = p.refused || refused != nil
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

// tooLarge tells what a batch is split for: it is larger than the topic's messages may be, or than its segments.
func tooLarge(err error) bool {
	return errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.RecordListTooLarge)
}

type partitionKey struct {
	topic     string
	id        [16]byte
	partition int32
}

// settle gives back the memory of batches that are done, and has what waits for that go on.
func (p *Producer) settle(b *broker, done []*batch) {
	p.mu.Lock()
	for _, batch := range done {
		if batch.in != nil {
			p.transactions.acknowledged(batch.in)
		}
		p.memory.release(batch)
	}
	p.pending -= len(done)
	if p.pending == 0 && p.idle != nil {
		close(p.idle)
		p.idle = nil
	}
	b.stir()
	select {
	case p.room <- struct{}{}:
	default:
	}
	p.unlock() // which also stirs brokers that partitions have moved to
}

// next goes on to the batch behind the first one, which is done.
func (p *partition) next(t *transactions) {
	p.proven = p.queue[0].in
	p.queue[0] = nil
	p.queue = p.queue[1:]
	p.again(t)
}

// again lists the partition if it has something to be sent.
func (p *partition) again(t *transactions) {
	p.busy = false
	if len(p.queue) > 0 {
		p.list(t)
	}
}

// split halves the first batch of a partition, and sends the halves one after the other.
func (p *Producer) split(part *partition) error {
	rest, err := part.queue[0].split(&p.memory)
	if err != nil {
		return err
	}
	p.pending++
	if rest.in != nil {
		rest.in.batches++
	}
	part.queue = slices.Insert(part.queue, 1, rest)
	part.again(p.transactions)
	return nil
}

// later sends the first batch of a partition again after a pause, to whoever leads the partition then.
func (p *Producer) later(part *partition, pause time.Duration) {
	first := part.queue[0]
	pause = min(pause<<min(first.attempts, 10), p.cfg.mostPause)
	first.attempts++
	time.AfterFunc(pause, func() {
		p.mu.Lock()
		if p.ctx.Err() == nil {
			part.again(p.transactions)
		}
		p.unlock()
	})
}

// refusal says which record is not taken. Of a batch with several records that is the one that the broker names, else the first:
// what Kafka has against one it has against all, but for their size, for which batches are split.
func refusal(part *partition, cause error, result *kmsg.ProduceResponseTopicPartition) *Refused {
	b := part.queue[0]
	nth := 0
	if result != nil {
		if kerr.TypedErrorForCode(result.ErrorCode) == kerr.UnknownServerError {
			cause = fmt.Errorf("%w (code %d)", cause, result.ErrorCode)
		}
		text := result.ErrorMessage
		if len(result.ErrorRecords) > 0 {
			nth = min(max(0, int(result.ErrorRecords[0].RelativeOffset)), b.head.count-1)
			text = cmp.Or(result.ErrorRecords[0].ErrorMessage, text)
		}
		if text != nil && *text != "" {
			cause = fmt.Errorf("%w (%s)", cause, *text)
		}
	}
	r := &Refused{Topic: part.topic.name, Size: b.bytes(), Err: cause}
	before := 0
	for _, p := range b.parts {
		r.File, r.Pos, r.Group = p.File, p.Pos, p.Group
		if before += p.Count; nth < before {
			break
		}
	}
	if errors.Is(cause, kerr.OutOfOrderSequenceNumber) || errors.Is(cause, kerr.UnknownProducerID) {
		r.Err = fmt.Errorf("partition %d has lost what it had acknowledged before this record, as by an unclean leader election; %w, which writes again what that does not cover; "+
			"to write more of the lost ones once more, delete the stored offset and set an earlier start.position: %w", part.number, ErrAgain, cause)
	}
	whole, err := b.unpack()
	if err != nil {
		r.Err = errors.Join(r.Err, err)
		return r
	}
	n := 0
	records(whole, func(one record) {
		if n == nth {
			r.Key, r.Value, r.Size = bytes.Clone(one.key), bytes.Clone(one.value), one.to-one.from
		}
		n++
	})
	return r
}
