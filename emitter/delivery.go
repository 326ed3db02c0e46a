package emitter

import (
	"context"

	"github.com/tidemark-cdc/tidemark/offset"
)

// Delivery brings records to Kafka in the order in which they were appended, each to its partition ([Record.Partition]),
// and knows up to which offset all of them are there. [AtLeastOnce] leaves it to others to store that offset; [ExactlyOnce]
// stores it with the records. One goroutine calls its methods; Safe, Unacked, Err, Done and Close may be called from any.
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
	// may wait as Deliver does. The batch belongs to the Delivery again with the next call of any other method. All records
	// of a row, or of a statement, are appended to it before the next call of any method. An error is that of ctx or
	// [Delivery.Err].
	Batch(ctx context.Context) (*Batch, error)

	// Deliver hands the records appended so far to the producer; some may be kept that nobody could read yet. It does not
	// wait for their acknowledgement, but waits while too many records or bytes are not acknowledged. When ctx ends first,
	// the rest is kept for the next call.
	Deliver(ctx context.Context) error

	// Boundary announces an offset that holds once all that is appended so far is acknowledged: a commit, rows that were
	// filtered out, idle time (I8). It delivers nothing. After one that lies in no transaction of MySQL the next record
	// begins one.
	Boundary(ctx context.Context, after offset.Offset) error

	// Flush delivers what is appended and waits until everything is acknowledged, and committed where there are
	// transactions, up to the last boundary at least.
	Flush(ctx context.Context) error

	// Safe returns the newest offset up to which every record is acknowledged by all in-sync replicas (I1), and committed
	// where there are transactions; false when there is none yet.
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

// DeliveryConfig bounds a delivery. The zero value is the documented default.
type DeliveryConfig struct {
	// MaxBytes bounds the memory of records that are not acknowledged; 0: 16 MiB, and never more than half of the
	// producer's buffer (buffer.memory). A single row may be larger: it goes alone.
	MaxBytes int

	// Window is how many records may be ahead of the oldest that is not acknowledged; 0: 32768.
	Window int

	// Topics is asked before the first record of a topic; nil: topics exist.
	Topics Topics

	// Poison says what becomes of records that Kafka does not take one by one; nil: the first ends the delivery.
	Poison *Poison

	// May says whether anything may be written, and is asked before each request that does; it must not block. Nil: it may.
	May func() bool
}

// Topics makes sure that a topic exists and can be written to; [kafka.Topics] is one.
type Topics interface {
	Ensure(ctx context.Context, topic string) error
}
