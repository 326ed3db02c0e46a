package pipeline

import (
	"context"
	"testing"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/emitter"
)

// counting counts the batches that it is asked for.
type counting struct {
	*instant
	batches int
}

func (c *counting) Batch(ctx context.Context) (*emitter.Batch, error) {
	c.batches++
	return c.instant.Batch(ctx)
}

// A commit whose end nobody wants a record of costs no batch: for one, Batch waits while too much is on its way.
func TestCommitWithoutMetadataAsksForNoBatch(t *testing.T) {
	em, err := emitter.New(emitter.Config{Prefix: "p"})
	if err != nil {
		t.Fatal(err)
	}
	d := &counting{instant: newInstant()}
	out := Output{Emitter: em, Delivery: d}
	if err := out.Event(t.Context(), &binlog.Boundary{Offset: at(100), Commit: true}); err != nil {
		t.Fatal(err)
	}
	if safe, _ := d.Safe(); d.batches != 0 || safe.Pos != 100 {
		t.Errorf("%d batches, announced %v", d.batches, safe)
	}
}
