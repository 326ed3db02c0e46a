package emitter

import (
	"context"
	"slices"
	"time"

	"github.com/tidemark-cdc/tidemark/emitter/kafka"
	"github.com/tidemark-cdc/tidemark/offset"
)

// deliver hands over what can be: what is behind the last commit of MySQL only if it is more than a batch. waits says that
// nothing more comes soon.
func (d *ExactlyOnce) deliver(ctx context.Context, waits bool) error {
	if len(d.batch.Records) > 0 {
		d.seals = waits && d.whole == len(d.batch.Records) && d.endsNow(d.whole-d.next)
		if err := d.handWhole(ctx); err != nil {
			return err
		}
		if err := d.handRest(ctx); err != nil {
			return err
		}
		d.keepRest()
	}
	d.making.Lock()
	defer d.making.Unlock()
	d.look(waits)
	return nil
}

// endsNow says that the open transaction ends as soon as the source waits, with so many records more.
func (d *ExactlyOnce) endsNow(more int) bool {
	d.making.Lock()
	defer d.making.Unlock()
	return d.made.Boundaries != AtIntervals && !d.many(d.count+more) && !d.waitsForEnd()
}

// handWhole hands over up to the last commit in the batch, and before that what was begun.
func (d *ExactlyOnce) handWhole(ctx context.Context) error {
	for d.goal > d.next || d.next < d.whole {
		if d.goal <= d.next {
			to := d.fitting()
			if to == 0 {
				continue
			}
			d.goal, d.rest = to, false
		}
		if err := d.handGoal(ctx); err != nil {
			return err
		}
	}
	return nil
}

// fitting gives the last commit in the batch up to which the open transaction has room. Where it has none it is ended, if it
// can be, and the result is 0.
func (d *ExactlyOnce) fitting() int {
	d.making.Lock()
	defer d.making.Unlock()
	full := func(n int) bool { return d.tooMany(n - d.next) }
	to := 0
	for _, e := range d.edges {
		n := e.record + 1
		switch {
		case n <= d.next || inside(e.after) && n != d.whole: // at the last commit, too, when rows behind it gave no record
			continue
		case to > 0 && full(n):
			return to
		case to == 0 && full(n) && d.count > 0 && d.endable():
			d.cut()
			return 0
		}
		to = n
	}
	return to
}

// handRest hands over the rows of an unfinished MySQL transaction, if they are more than a batch.
func (d *ExactlyOnce) handRest(ctx context.Context) error {
	rest := d.batch.Records[d.next:]
	if len(rest) < batchRecords {
		size := 0
		for i := range rest {
			size += recordSize(&rest[i])
		}
		if size < batchBytes {
			return nil
		}
	}
	if d.mark <= d.next {
		return nil
	}
	d.making.Lock()
	if d.count > 0 && d.endsBeforeRest() {
		d.cut()
	}
	if !d.partial {
		d.entered = time.Now()
	}
	d.making.Unlock()
	d.goal, d.rest = d.mark, true
	return d.handGoal(ctx)
}

// endsBeforeRest says that the open transaction, which has records, is to be ended before the rows of an unfinished MySQL transaction.
// Between two intervals it is not, if it can be ended behind such a row. making is held.
func (d *ExactlyOnce) endsBeforeRest() bool {
	switch {
	case d.partial:
		return d.tooMany(d.mark-d.next) && d.endable()
	case d.made.Boundaries == AtIntervals && inside(d.batch.Records[d.mark-1].Offset):
		return time.Since(d.since) >= d.longest
	default:
		return true
	}
}

// handGoal hands over up to the goal.
func (d *ExactlyOnce) handGoal(ctx context.Context) error {
	d.making.Lock()
	d.handing = true
	d.making.Unlock()
	if err := d.hand(ctx, d.goal); err != nil {
		return err
	}
	d.making.Lock()
	defer d.making.Unlock()
	d.handing, d.partial = false, d.rest
	return nil
}

// take implements taker.
func (d *ExactlyOnce) take(records []Record, after offset.Offset, now time.Time) {
	group := d.tracker.Sent(len(records), after)
	d.making.Lock()
	defer d.making.Unlock()
	if d.finished {
		return
	}
	var entries []kafka.Entry
	stored := after
	if d.count == 0 {
		d.since, d.moved = now, false
		d.timer.Reset(d.longest)
		if d.backlog { // they are there already; Kafka's leader of the offset asks the coordinator now and not at the end
			entries, stored = d.prepared.Entries, d.prepared.Offset()
		}
	}
	d.count += len(records)
	d.last, d.waits = after, time.Time{}
	if d.sealed = d.seals && d.next+len(records) == len(d.batch.Records); d.sealed { // in one request with the records
		var err error
		stored = after
		if entries, err = d.prepare(after); err != nil {
			_ = d.fail(err)
			return
		}
	}
	d.producer.Begin(now)
	d.put(records, group)
	d.putOffset(entries, stored)
	d.producer.End()
}

// keepRest takes what is handed over out of the batch.
func (d *ExactlyOnce) keepRest() {
	from := d.next
	rest := d.batch.Records[from:]
	if from > 0 && len(rest) > 0 {
		d.spare.copy(rest)
		d.batch, d.spare = d.spare, d.batch
		d.edges = slices.DeleteFunc(d.edges, func(e edge) bool { return e.record < from })
		for i := range d.edges {
			d.edges[i].record -= from
		}
		d.next, d.edge = 0, 0
		d.spare.empty()
	} else if from > 0 {
		d.reset()
	} else {
		return
	}
	d.mark, d.whole, d.goal = d.mark-from, 0, 0
}
