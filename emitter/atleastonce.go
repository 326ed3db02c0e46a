package emitter

import (
	"context"
	"fmt"
	"time"

	"github.com/tidemark-cdc/tidemark/emitter/internal/kclient"
	"github.com/tidemark-cdc/tidemark/emitter/kafka"
	"github.com/tidemark-cdc/tidemark/offset"
)

// AtLeastOnce is the [Delivery] that stores offsets after the acknowledgement: a crash repeats what was acknowledged
// since the last save, and loses nothing.
type AtLeastOnce struct{ handover }

var _ Delivery = (*AtLeastOnce)(nil)

// NewAtLeastOnce returns a delivery over client, which stays the caller's and is to be closed after the delivery.
func NewAtLeastOnce(client *kafka.Client, cfg DeliveryConfig) *AtLeastOnce {
	return newAtLeastOnce(client.Internal(), cfg)
}

func newAtLeastOnce(client *kclient.Client, cfg DeliveryConfig) *AtLeastOnce {
	d := new(AtLeastOnce)
	d.start(client, cfg, nil, d)
	return d
}

// Batch implements [Delivery].
func (d *AtLeastOnce) Batch(ctx context.Context) (*Batch, error) {
	if err := d.failed(); err != nil {
		return nil, err
	}
	if d.full() {
		if err := d.Deliver(ctx); err != nil {
			return nil, err
		}
	}
	return &d.batch, nil
}

// Deliver implements [Delivery].
func (d *AtLeastOnce) Deliver(ctx context.Context) error {
	if err := d.failed(); err != nil {
		return err
	}
	if len(d.batch.Records) == 0 {
		return nil
	}
	if err := d.hand(ctx, len(d.batch.Records)); err != nil {
		return err
	}
	d.reset()
	return nil
}

// take implements taker.
func (d *AtLeastOnce) take(records []Record, after offset.Offset, now time.Time) {
	group := d.tracker.Sent(len(records), after)
	d.producer.Begin(now)
	d.put(records, group)
	d.producer.End()
}

// Boundary implements [Delivery].
func (d *AtLeastOnce) Boundary(_ context.Context, after offset.Offset) error {
	if err := d.failed(); err != nil {
		return err
	}
	if len(d.batch.Records) > 0 {
		d.bound(after)
	} else {
		d.tracker.Boundary(after)
	}
	return nil
}

// Flush implements [Delivery].
func (d *AtLeastOnce) Flush(ctx context.Context) error {
	if err := d.Deliver(ctx); err != nil {
		return err
	}
	if err := d.producer.Flush(ctx); err != nil {
		return fmt.Errorf("waiting for Kafka to acknowledge: %w", err)
	}
	return d.Err()
}

// Safe implements [Delivery].
func (d *AtLeastOnce) Safe() (offset.Offset, bool) { return d.tracker.Safe() }

// Unacked implements [Delivery].
func (d *AtLeastOnce) Unacked() int { return d.tracker.Unacked() }

// Close implements [Delivery].
func (d *AtLeastOnce) Close() {
	_ = d.fail(ErrClosed)
	d.producer.Close()
}
