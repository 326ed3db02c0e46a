package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/offset"
)

// Output turns events into records and boundaries of a delivery. Its fields are set before the first event; Emitter and
// Delivery must be.
type Output struct {
	Emitter  *emitter.Emitter
	Delivery emitter.Delivery

	// SchemaChange makes what a DDL statement did durable; it blocks until it is. Nothing behind the statement is
	// delivered before (I11). Nil: nobody keeps it.
	SchemaChange func(ctx context.Context, ev *binlog.SchemaChange) error

	// Schema gets the id of a schema that a record needs; it blocks until there is one, and the record and all behind it
	// wait. Nil: the emitter never asks.
	Schema func(ctx context.Context, needed *emitter.SchemaNeeded) error

	Heartbeat time.Duration             // between two heartbeat records; 0: none
	Beat      func(ctx context.Context) // runs heartbeat.action.query; it does not block. Nil: none

	// SkipRows leaves rows out that cannot be turned into records, instead of stopping, and is told why. Nil: an error
	// ends the stream.
	SkipRows func(err error)

	// Poison leaves such rows out, too, each with a note, before SkipRows is asked; nil: there are none.
	Poison *emitter.Poison

	// Later leaves it to others to hand over what is appended ([emitter.Delivery.Deliver]), before they wait for the next event.
	Later bool

	beat time.Time // of the last heartbeat
	// due says that the next heartbeat is. A timer sets it, so that no event has to read the clock; it holds nothing else, for it
	// may outlive the delivery by hours. Nil before the first event.
	due *atomic.Bool
}

// Event encodes and delivers the records of an event and announces its boundary.
func (o *Output) Event(ctx context.Context, event binlog.Event) error {
	switch event := event.(type) {
	case *binlog.Rows:
		return o.rows(ctx, event)
	case *binlog.Begin:
		return o.records(ctx, event)
	case *binlog.Boundary:
		if event.ID != "" { // its Begin was given out, so its end is wanted, too
			if err := o.records(ctx, event); err != nil {
				return err
			}
		}
		return o.boundary(ctx, &event.Offset)
	case *binlog.SchemaChange:
		if o.SchemaChange != nil {
			if err := o.Delivery.Deliver(ctx); err != nil { // what comes before does not wait for it
				return err
			}
			if err := o.SchemaChange(ctx, event); err != nil {
				return err
			}
		}
		if err := o.records(ctx, event); err != nil {
			return err
		}
		return o.boundary(ctx, &event.Offset)
	case *binlog.Truncate:
		if err := o.records(ctx, event); err != nil {
			return err
		}
		return o.boundary(ctx, &event.Offset)
	}
	return fmt.Errorf("the source returned a %T, which the pipeline does not know: this is a fault in tidemark", event)
}

// rows delivers the records of a rows event.
func (o *Output) rows(ctx context.Context, event *binlog.Rows) error {
	if err := o.Emitter.Begin(event); err != nil {
		return err
	}
	silent := false // the last row gave no record
	for event.Next() {
		added, err := o.encode(ctx, event)
		if err != nil {
			if added, err = o.skip(ctx, event, err); err != nil {
				return err
			}
		}
		silent = added == 0 && !event.Covered()
	}
	covered := event.Covered() // what lies before the stored offset is not to be announced
	if err := event.Err(); err != nil {
		return err
	}
	if silent {
		if after := event.OffsetAfter(); countsRows(after) {
			return o.boundary(ctx, &after)
		}
	}
	if err := o.deliver(ctx); err != nil || covered || !o.heartbeatDue() {
		return err
	}
	return o.heartbeat(ctx, o.Emitter.Mark(event.OffsetAfter()))
}

// countsRows says that an offset behind a row covers it. Those of rows outside BEGIN … COMMIT stay before their statement, of
// which there may be records, so such an offset is not to be announced behind them.
func countsRows(after offset.Offset) bool { return after.Row != 0 || after.Done != 0 }

// skip leaves the current row out if its error allows that; nil then. It says how many records there are instead.
func (o *Output) skip(ctx context.Context, event *binlog.Rows, err error) (added int, _ error) {
	bad, ok := errors.AsType[*unwritable](err)
	switch {
	case !ok || o.SkipRows == nil && o.Poison == nil:
		return 0, err
	case o.Poison == nil:
		o.SkipRows(bad.error)
		return 0, nil
	case event.Covered():
		return 0, nil // it is said already
	}
	batch, err := o.Delivery.Batch(ctx)
	if err != nil {
		return 0, err
	}
	return o.Poison.Row(batch, event, o.Emitter.Mark(event.OffsetAfter()), bad.error), nil
}

// records delivers the records of an event that has no rows, or of the heartbeat at an offset.
func (o *Output) records(ctx context.Context, of any) error {
	if _, err := o.encode(ctx, of); err != nil {
		return err
	}
	return o.deliver(ctx)
}

// deliver hands over what is appended, unless others do.
func (o *Output) deliver(ctx context.Context) error {
	if o.Later {
		return nil
	}
	return o.Delivery.Deliver(ctx)
}

// encode has the records of an event appended, of a rows event those of its current row, and says how many. A schema that
// has no id yet is asked for before they are.
func (o *Output) encode(ctx context.Context, of any) (int, error) {
	for {
		batch, err := o.Delivery.Batch(ctx)
		if err != nil {
			return 0, err
		}
		before := len(batch.Records)
		if err = o.append(batch, of); err == nil {
			return len(batch.Records) - before, nil
		}
		if err = o.resolve(ctx, err); err != nil {
			return 0, err
		}
	}
}

// append has the records appended to a batch. What they are of is told by its type and not by a function, which would be
// made anew, in memory of its own, for each event.
func (o *Output) append(b *emitter.Batch, of any) error {
	switch of := of.(type) {
	case *binlog.Rows:
		return o.Emitter.Row(b, of)
	case *binlog.Begin:
		return o.Emitter.Transaction(b, of)
	case *binlog.Boundary:
		return o.Emitter.Commit(b, of)
	case *binlog.SchemaChange:
		return o.Emitter.SchemaChange(b, of)
	case *binlog.Truncate:
		return o.Emitter.Truncate(b, of)
	case offset.Offset:
		return o.Emitter.Heartbeat(b, of)
	}
	return fmt.Errorf("no record is made of a %T: this is a fault in tidemark", of)
}

// resolve sees to it that what the emitter refused with err can be tried again; if nothing helps, it is the error.
func (o *Output) resolve(ctx context.Context, err error) error {
	if _, unusable := errors.AsType[*emitter.UnusableSchema](err); unusable {
		return err // as when the registry refuses it
	}
	needed, ok := errors.AsType[*emitter.SchemaNeeded](err)
	if !ok || o.Schema == nil {
		return &unwritable{err}
	}
	if err := o.Delivery.Deliver(ctx); err != nil { // what comes before does not wait for the registry
		return err
	}
	if failed := o.Schema(ctx, needed); failed != nil {
		return fmt.Errorf("%s: %w", strings.TrimSuffix(err.Error(), ": "+needed.Error()), failed) // the record's place
	}
	return nil
}

// unwritable is the emitter's error about what cannot become a record, as opposed to one of delivery or registry.
type unwritable struct{ error }

func (u *unwritable) Unwrap() error { return u.error }

// boundary announces that an offset holds once everything before it is acknowledged.
func (o *Output) boundary(ctx context.Context, at *offset.Offset) error {
	after := o.Emitter.Mark(*at)
	if err := o.Delivery.Boundary(ctx, after); err != nil {
		return err
	}
	if o.heartbeatDue() {
		if err := o.heartbeat(ctx, after); err != nil {
			return err
		}
		if err := o.Delivery.Boundary(ctx, after); err != nil { // it is no part of what comes next
			return err
		}
	}
	return o.deliver(ctx)
}

// heartbeatDue says whether a heartbeat record is to be delivered. The server shows at least that often that it is there,
// so idle time has its heartbeats, too.
func (o *Output) heartbeatDue() bool {
	if o.Heartbeat <= 0 {
		return false
	}
	if o.due == nil {
		o.due = new(atomic.Bool)
		o.wait(o.Heartbeat - time.Since(o.beat))
	}
	return o.due.Load()
}

// wait has the next heartbeat be due after d. A timer that is left at the end tells nobody, once.
func (o *Output) wait(d time.Duration) {
	due := o.due
	due.Store(d <= 0)
	if d > 0 {
		time.AfterFunc(d, func() { due.Store(true) })
	}
}

// heartbeat delivers a heartbeat record.
func (o *Output) heartbeat(ctx context.Context, after offset.Offset) error {
	o.wait(o.Heartbeat)
	if o.Beat != nil {
		o.Beat(ctx)
	}
	return o.records(ctx, after)
}
