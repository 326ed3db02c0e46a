package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

	// Later leaves it to others to hand over what is appended ([emitter.Delivery.Deliver]), before they wait for the next event.
	Later bool

	beat time.Time // of the last heartbeat
}

// Event encodes and delivers the records of an event and announces its boundary.
func (o *Output) Event(ctx context.Context, event binlog.Event) error {
	switch event := event.(type) {
	case *binlog.Rows:
		return o.rows(ctx, event)
	case *binlog.Begin:
		return o.records(ctx, func(b *emitter.Batch) error { return o.Emitter.Transaction(b, event) })
	case *binlog.Boundary:
		if event.ID != "" { // its Begin was given out, so its end is wanted, too
			if err := o.records(ctx, func(b *emitter.Batch) error { return o.Emitter.Commit(b, event) }); err != nil {
				return err
			}
		}
		return o.boundary(ctx, event.Offset)
	case *binlog.SchemaChange:
		if o.SchemaChange != nil {
			if err := o.Delivery.Deliver(ctx); err != nil { // what comes before does not wait for it
				return err
			}
			if err := o.SchemaChange(ctx, event); err != nil {
				return err
			}
		}
		if err := o.records(ctx, func(b *emitter.Batch) error { return o.Emitter.SchemaChange(b, event) }); err != nil {
			return err
		}
		return o.boundary(ctx, event.Offset)
	case *binlog.Truncate:
		if err := o.records(ctx, func(b *emitter.Batch) error { return o.Emitter.Truncate(b, event) }); err != nil {
			return err
		}
		return o.boundary(ctx, event.Offset)
	}
	return fmt.Errorf("the source returned a %T, which the pipeline does not know: this is a fault in tidemark", event)
}

// rows delivers the records of a rows event.
func (o *Output) rows(ctx context.Context, event *binlog.Rows) error {
	if err := o.Emitter.Begin(event); err != nil {
		return err
	}
	silent := false // the last row gave no record
	row := func(b *emitter.Batch) error { return o.Emitter.Row(b, event) }
	for event.Next() {
		added, err := o.encode(ctx, row)
		var bad *unwritable
		if errors.As(err, &bad) && o.SkipRows != nil {
			o.SkipRows(bad.error)
		} else if err != nil {
			return err
		}
		silent = added == 0 && !event.Covered()
	}
	covered := event.Covered() // what lies before the stored offset is not to be announced
	if err := event.Err(); err != nil {
		return err
	}
	after := event.OffsetAfter()
	if silent {
		return o.boundary(ctx, after)
	}
	if err := o.deliver(ctx); err != nil || covered {
		return err
	}
	return o.heartbeat(ctx, o.Emitter.Mark(after))
}

// records delivers what encode appends.
func (o *Output) records(ctx context.Context, encode func(*emitter.Batch) error) error {
	if _, err := o.encode(ctx, encode); err != nil {
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

// encode has records appended, and says how many. A schema that has no id yet is asked for before they are.
func (o *Output) encode(ctx context.Context, encode func(*emitter.Batch) error) (int, error) {
	for {
		batch, err := o.Delivery.Batch(ctx)
		if err != nil {
			return 0, err
		}
		before := len(batch.Records)
		err = encode(batch)
		if err == nil {
			return len(batch.Records) - before, nil
		}
		if _, unusable := errors.AsType[*emitter.UnusableSchema](err); unusable {
			return 0, err // as when the registry refuses it
		}
		var needed *emitter.SchemaNeeded
		if !errors.As(err, &needed) || o.Schema == nil {
			return 0, &unwritable{err}
		}
		if err := o.Delivery.Deliver(ctx); err != nil { // what comes before does not wait for the registry
			return 0, err
		}
		if failed := o.Schema(ctx, needed); failed != nil {
			return 0, fmt.Errorf("%s: %w", strings.TrimSuffix(err.Error(), ": "+needed.Error()), failed) // the record's place
		}
	}
}

// unwritable is the emitter's error about what cannot become a record, as opposed to one of delivery or registry.
type unwritable struct{ error }

func (u *unwritable) Unwrap() error { return u.error }

// boundary announces that an offset holds once everything before it is acknowledged.
func (o *Output) boundary(ctx context.Context, after offset.Offset) error {
	after = o.Emitter.Mark(after)
	if err := o.Delivery.Boundary(ctx, after); err != nil {
		return err
	}
	return o.heartbeat(ctx, after)
}

// heartbeat delivers a heartbeat record when one is due. The server shows at least that often that it is there, so idle
// time has its heartbeats, too.
func (o *Output) heartbeat(ctx context.Context, after offset.Offset) error {
	if o.Heartbeat <= 0 || time.Since(o.beat) < o.Heartbeat {
		return nil
	}
	o.beat = time.Now()
	if o.Beat != nil {
		o.Beat(ctx)
	}
	return o.records(ctx, func(b *emitter.Batch) error { return o.Emitter.Heartbeat(b, after) })
}
