package producer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Note is what is written in place of a record that Kafka does not take. Without a topic nothing is.
type Note struct {
	Topic   string
	Key     []byte
	Value   []byte
	Headers []byte // as [AppendHeaderCount] and [AppendHeader] make them
}

// spares says of the first batch of a partition, which the broker has refused, whether the rest of it can go on: it has taken nothing
// of the batch, surely, and has something against single records. The caller holds the lock, here and below, but for spare.
func (p *Producer) spares(s sending, cause error) bool {
	return p.cfg.Poison != nil && !s.batch.note && isPoison(cause) && s.batch.attempts == 0 && p.ctx.Err() == nil && !p.closed
}

// unsure says of a refused batch that it was sent before, and that nobody knows whether the broker has it: the sequence numbers
// of what follows would hang on that. A new producer finds out.
func (p *Producer) unsure(s sending, cause error) error {
	if p.cfg.Poison == nil || s.batch.note || !isPoison(cause) {
		return nil
	}
	p.spoilt = true
	return fmt.Errorf("topic %s: a record is refused, of a batch that was sent before: %w: %w", s.part.topic.name, ErrAgain, cause)
}

// isPoison tells what Kafka has against one record and not against the next one.
func isPoison(cause error) bool {
	return tooLarge(cause) || errors.Is(cause, kerr.InvalidRecord) || errors.Is(cause, kerr.InvalidTimestamp)
}

// spare takes out of the first batch of a partition what the broker refused, and puts a note where there is one. Notes and the rest
// of the batch count for the same acknowledgements as before, and are in the same transaction.
func (p *Producer) spare(b *broker, part *partition, cause error, result *kmsg.ProduceResponseTopicPartition) {
	p.mu.Lock()
	first := part.queue[0]
	bad := refusedRecords(first, result)
	if bad == nil { // one of several, and the broker does not say which: each is tried alone
		err := p.split(part)
		p.unlock()
		if err != nil {
			p.fail(err)
		}
		return
	}
	refusals := make([]*Refused, len(bad))
	for i, n := range bad {
		refusals[i] = n.refusal(part, cause)
	}
	p.mu.Unlock()

	notes := make([]noted, len(refusals))
	var left []Part // without a note: done with
	for i, r := range refusals {
		var err error
		if notes[i].note, err = p.cfg.Poison(p.ctx, r); err == nil && notes[i].note.Topic != "" {
			notes[i].topic, err = p.Topic(p.ctx, notes[i].note.Topic)
		}
		if err != nil {
			if p.ctx.Err() == nil {
				p.fail(err)
			}
			return
		}
		notes[i].at = Part{r.Group, 1, r.File, r.Pos}
		if notes[i].topic == nil {
			left = append(left, notes[i].at)
		}
	}
	if len(left) > 0 {
		p.cfg.Acked(left) // before it can seem that all is done
	}

	p.mu.Lock()
	now := time.Now()
	for i := range notes {
		if notes[i].topic != nil {
			p.substitute(&notes[i], first.in, now)
		}
	}
	if err := p.without(part, bad); err != nil {
		p.mu.Unlock()
		p.fail(err)
		return
	}
	var done []*batch
	if first.head.count == 0 {
		done = append(done, first)
		part.queue[0] = nil
		part.queue = part.queue[1:]
	}
	part.again(p.transactions)
	p.unlock()
	p.settle(b, done)
}

// noted is a note on its way.
type noted struct {
	note  Note
	topic *Topic // nil: there is no note
	at    Part
}

// substitute queues a note as a batch of its own, in the transaction of the record that it stands for.
func (p *Producer) substitute(n *noted, in *transaction, now time.Time) {
	one := n.note
	part := n.topic.partitions[n.topic.Partition(-1, one.Key, one.Value)]
	note := p.memory.batch()
	note.since, note.in, note.closed, note.note = now, in, true, true
	note.add(&p.memory, &Record{Key: one.Key, Value: one.Value, Headers: one.Headers, Group: n.at.Group, File: n.at.File, Pos: n.at.Pos}, now.UnixMilli())
	p.pending++
	at := len(part.queue)
	if in != nil {
		in.batches++
		// Behind those of the same transaction, which is the first one. What waits for a later one waits behind the note.
		at = 0
		for at < len(part.queue) && part.queue[at].in == in {
			at++
		}
	}
	if at > 0 {
		part.queue[at-1].closed = true
	}
	part.queue = slices.Insert(part.queue, at, note)
	if at == 0 && part.held {
		t := p.transactions
		t.waiting = slices.DeleteFunc(t.waiting, func(w *partition) bool { return w == part })
		part.held = false
	}
	if !part.busy && !part.listed {
		part.list(p.transactions)
	}
}

// mostSpared is how many records are taken out of a batch at once: each is looked for in the whole of it. The next answer names
// the others.
const mostSpared = 64

// refusedRecord is the place of one in its batch, and what the broker says of it.
type refusedRecord struct {
	at   int
	text *string
}

// refusal is what there is to be said of the record.
func (r refusedRecord) refusal(part *partition, cause error) *Refused {
	one := kmsg.NewProduceResponseTopicPartition()
	record := kmsg.NewProduceResponseTopicPartitionErrorRecord()
	record.RelativeOffset, record.ErrorMessage = int32(r.at), r.text
	one.ErrorRecords = append(one.ErrorRecords, record)
	return refusal(part, cause, &one)
}

// refusedRecords are those that the broker names, in order, or the only one; nil if it has not said.
func refusedRecords(b *batch, result *kmsg.ProduceResponseTopicPartition) (bad []refusedRecord) {
	for _, r := range result.ErrorRecords {
		if at := int(r.RelativeOffset); at >= 0 && at < b.head.count {
			bad = append(bad, refusedRecord{at, cmp.Or(r.ErrorMessage, result.ErrorMessage)})
		}
	}
	if bad == nil && b.head.count == 1 {
		bad = append(bad, refusedRecord{0, result.ErrorMessage})
	}
	slices.SortFunc(bad, func(x, y refusedRecord) int { return cmp.Compare(x.at, y.at) })
	bad = slices.CompactFunc(bad, func(x, y refusedRecord) bool { return x.at == y.at })
	return bad[:min(len(bad), mostSpared)]
}

// without takes records out of the first batch of a partition, none of which a broker has. Its numbers are given anew.
func (p *Producer) without(part *partition, bad []refusedRecord) error {
	b := part.queue[0]
	whole, err := b.unpack()
	if err != nil {
		return err
	}
	whole = bytes.Clone(whole) // its pieces go round
	part.sequence = b.head.sequence
	for _, later := range part.queue { // the other half of one has its numbers already
		later.numbered = false
	}
	out := func(n int) bool {
		return slices.ContainsFunc(bad, func(r refusedRecord) bool { return r.at == n })
	}
	n := 0
	for i := range b.parts {
		for range b.parts[i].Count {
			if out(n) {
				b.parts[i].Count--
			}
			n++
		}
	}
	b.parts = slices.DeleteFunc(b.parts, func(p Part) bool { return p.Count == 0 })
	p.memory.clear(b)
	b.size, b.sealed = 0, false
	b.head.codec, b.head.count, b.head.last = 0, 0, b.head.first
	n = 0
	records(whole, func(r record) {
		n++
		if out(n - 1) {
			return
		}
		body, _ := recordSize(r.time, b.head.count, r.key, r.value, r.headers)
		b.write(&p.memory, appendRecord(nil, body, r.time, b.head.count, r.key, r.value, r.headers))
		b.head.count++
		b.head.last = max(b.head.last, b.head.first+r.time)
	})
	return nil
}
