package emitter

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/tidemark-cdc/tidemark/emitter/internal/producer"
	"github.com/tidemark-cdc/tidemark/emitter/kafka"
	"github.com/tidemark-cdc/tidemark/offset"
)

// endable says that the open transaction, which has records, can be ended where it is. making is held.
func (d *ExactlyOnce) endable() bool {
	return !d.partial || d.made.Boundaries != AtWholeTransactions && inside(d.last)
}

// run looks after the open transaction when time has passed, or the one before has ended.
func (d *ExactlyOnce) run() {
	for {
		select {
		case <-d.poke:
		case <-d.timer.C:
		case <-d.stop:
			return
		}
		d.making.Lock()
		d.look(false)
		d.making.Unlock()
	}
}

// look ends the open transaction if it is due, or sees to it that it will be looked at then. waits says that the source waits.
// making is held.
func (d *ExactlyOnce) look(waits bool) {
	if d.finished || d.handing || d.Err() != nil {
		return
	}
	limit := d.longest
	since := d.since
	switch {
	case d.count == 0 && !d.moved:
		return
	case d.count == 0:
		limit = d.made.FlushInterval
	case !d.partial:
		if waits && d.made.Boundaries != AtIntervals {
			d.waits = time.Now()
		}
		switch {
		case d.waits.IsZero():
		case !d.many(d.count):
			limit = 0
		case since.Add(limit).Sub(d.waits) > d.pause:
			since, limit = d.waits, d.pause
		}
	case !d.endable():
		return
	default:
		since = d.sendable(since)
		if to := d.entered.Add(d.patience); to.After(since.Add(limit)) {
			since, limit = d.entered, d.patience
		}
	}
	if left := limit - time.Since(since); left > 0 && !d.wanted {
		d.timer.Reset(left)
		return
	}
	// What comes until the one before has ended is ended with it, unless a backlog comes.
	d.wanted = limit > 0 && d.count > 0 && !d.partial
	if !d.waitsForEnd() {
		d.cut()
	}
}

// many says of so many records in the open transaction that there is a backlog, as there was when the one before ended with many.
// making is held.
func (d *ExactlyOnce) many(records int) bool { return d.backlog || records > fewRecords }

// tooMany says that with so many records more the open transaction would have more than one is to have. making is held.
func (d *ExactlyOnce) tooMany(more int) bool {
	return d.made.Boundaries != AtIntervals && d.count+more > mostInTransaction
}

// sendable is when the open transaction could be sent: after the one before had ended.
func (d *ExactlyOnce) sendable(since time.Time) time.Time {
	d.end.Lock()
	defer d.end.Unlock()
	if d.ending > 0 {
		return time.Now()
	}
	if d.opened.After(since) {
		return d.opened
	}
	return since
}

// waitsForEnd says that a transaction is being ended; what was looked at is looked at again when it has.
func (d *ExactlyOnce) waitsForEnd() bool {
	d.end.Lock()
	defer d.end.Unlock()
	d.awaited = d.ending > 0
	return d.awaited
}

// cut ends the open transaction, with the offset behind it. making is held, and nobody is handing over.
func (d *ExactlyOnce) cut() {
	after, n := d.last, d.count
	sealed := d.sealed
	d.count, d.partial, d.moved, d.wanted, d.sealed, d.waits = 0, false, false, false, false, time.Time{}
	if d.Err() != nil {
		return
	}
	if !sealed {
		entries, err := d.prepare(after)
		if err != nil {
			_ = d.fail(err)
			return
		}
		d.producer.Begin(time.Now())
		d.putOffset(entries, after)
		d.producer.End()
	}
	d.backlog = n > fewRecords
	d.end.Lock()
	d.ending++
	d.inEnding += n
	d.end.Unlock()
	d.producer.Cut(func(err error) {
		if err == nil {
			d.committed(after, n)
		}
	})
}

// prepare says what makes an offset the stored one.
func (d *ExactlyOnce) prepare(o offset.Offset) ([]kafka.Entry, error) {
	if d.prepared != nil {
		stored := d.prepared.Offset()
		if before, comparable := o.Before(stored); comparable && before {
			return nil, fmt.Errorf("offset %s lies before %s, which is stored: it is not stored. This is a fault in tidemark", o, stored)
		}
	}
	next, err := d.made.Store.Prepare(d.made.Key, o, d.prepared)
	if err != nil {
		return nil, err
	}
	for _, e := range next.Entries {
		if size := len(e.Key) + len(e.Value) + recordFraming; size > d.largest {
			return nil, fmt.Errorf("storing offset %s in topic %s: the record %s has %d bytes: %w; "+
				"raise producer.override.max.request.size of the connector and max.message.bytes of the topic, then start again: nothing is lost",
				o, d.made.Store.Topic(), e.Key, size, kerr.MessageTooLarge)
		}
	}
	d.prepared = next
	return next.Entries, nil
}

// putOffset has the producer append what was prepared. It is between Begin and End.
func (d *ExactlyOnce) putOffset(entries []kafka.Entry, o offset.Offset) {
	for _, e := range entries {
		one := producer.Record{Key: e.Key, Value: e.Value, Headers: producer.NoHeaders, Group: untracked, File: o.File, Pos: o.Pos}
		d.producer.Append(d.offsets, d.offsets.Partition(e.Partition, e.Key, e.Value), &one)
	}
}

// committed hears that a transaction of some records is committed. It is called in order, by any goroutine.
func (d *ExactlyOnce) committed(after offset.Offset, records int) {
	d.end.Lock()
	d.ending--
	d.inEnding -= records
	d.safe, d.hasSafe, d.opened = after, true, time.Now()
	awaited := d.awaited
	d.awaited = false
	if d.ending == 0 && d.settled != nil {
		close(d.settled)
		d.settled = nil
	}
	d.end.Unlock()
	if awaited {
		select {
		case d.poke <- struct{}{}:
		default:
		}
	}
}
