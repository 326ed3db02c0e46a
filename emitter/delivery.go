package emitter

import (
	"context"

	"github.com/tidemark-cdc/tidemark/offset"
)

// Delivery brings records to Kafka in the order in which they were appended, each to its partition ([Record.Partition]),
// and knows up to which offset all of them are there. One goroutine calls its methods; Safe, Unacked, Err, Done and Close
// may be called from any.
//
//	for ev.Next() {
//		b, err := d.Batch(ctx)  // bounded memory: this is where the loop waits for Kafka
//		err = em.Row(b, ev)
//	}
//	err = d.Boundary(ctx, ev.Offset)
//	…
//	err = d.Deliver(ctx)        // hand over what is appended, before waiting for more
//	…
//	if o, ok := d.Safe(); ok { store o }
type Delivery interface {
	// Batch returns the batch to append to, with what is in it already. One that is full it delivers before, for which it
	// may wait as Deliver does. The batch belongs to the Delivery again with the next call of any other method. An error is
	// that of ctx or [Delivery.Err].
	Batch(ctx context.Context) (*Batch, error)

	// Deliver hands the records appended so far to the producer. It does not wait for their acknowledgement, but waits
	// while too many records or bytes are not acknowledged. When ctx ends first, the rest is kept for the next call.
	Deliver(ctx context.Context) error

	// Boundary announces an offset that holds once all that is appended so far is acknowledged: a commit, rows that were
	// filtered out, idle time (I8). It delivers nothing.
	Boundary(ctx context.Context, after offset.Offset) error

	// Flush delivers what is appended and waits until everything is acknowledged.
	Flush(ctx context.Context) error

	// Safe returns the newest offset up to which every record is acknowledged by all in-sync replicas (I1); false when
	// there is none yet.
	Safe() (offset.Offset, bool)

	// Unacked is the number of records that are on their way: handed over and not acknowledged.
	Unacked() int

	// Err returns what ended the delivery: the first record that could not be written, or a closed Delivery. After it
	// nothing more is produced (I7); the safe offset stays before the failed record.
	Err() error

	// Done is closed when Err has become non-nil.
	Done() <-chan struct{}

	// Close gives up what is not acknowledged, without waiting for it. Flush first to lose nothing but time.
	Close()
}
