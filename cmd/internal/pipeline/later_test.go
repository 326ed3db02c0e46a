package pipeline

import (
	"context"
	"io"
	"slices"
	"testing"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/offset"
)

// patient is a source that says when it waits, which is before each event of an odd number.
type patient struct {
	script
	before func(context.Context) error
	log    *[]string
}

func (p *patient) BeforeWaiting(f func(context.Context) error) { p.before = f }

func (p *patient) Read(ctx context.Context) (binlog.Event, error) {
	if len(p.steps) == 0 {
		return nil, io.EOF
	}
	if p.steps[0]%2 == 1 {
		if err := p.before(ctx); err != nil {
			return nil, err
		}
		*p.log = append(*p.log, "waits")
	}
	if p.steps[0] == 5 {
		p.steps = p.steps[1:]
		return &binlog.SchemaChange{Offset: at(5)}, nil
	}
	return p.script.Read(ctx)
}

// noting is a delivery that notes what is asked of it.
type noting struct {
	*instant
	log *[]string
}

func (d *noting) Deliver(ctx context.Context) error {
	*d.log = append(*d.log, "deliver")
	return d.instant.Deliver(ctx)
}

func (d *noting) Batch(ctx context.Context) (*emitter.Batch, error) {
	*d.log = append(*d.log, "batch")
	return d.instant.Batch(ctx)
}

func (d *noting) Flush(ctx context.Context) error {
	*d.log = append(*d.log, "flush")
	return d.instant.Flush(ctx)
}

func (d *noting) Boundary(ctx context.Context, o offset.Offset) error {
	*d.log = append(*d.log, "boundary")
	return d.instant.Boundary(ctx, o)
}

// What is appended is handed over when the source is about to wait, and before a schema change is made durable, which may take long.
func TestHandedOverBeforeWaiting(t *testing.T) {
	var log []string
	p, _, _ := newPipeline(&memoryStore{}, newInstant)
	p.Open = func(context.Context, offset.Offset) (binlog.Source, error) {
		return &patient{script: script{start: at(1), steps: []int64{2, 3, 4, 5, 6}}, log: &log}, nil
	}
	p.Deliver = func(context.Context) (emitter.Delivery, error) { return &noting{newInstant(), &log}, nil }
	p.SchemaChange = func(context.Context, *binlog.SchemaChange) error {
		log = append(log, "schema change")
		return nil
	}
	if err := p.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"boundary", "flush", // of the start
		"boundary", "deliver", "waits", "boundary", "boundary", "deliver", "waits", "deliver", "schema change", "batch", "boundary", "boundary", "flush",
	}
	if !slices.Equal(log, want) {
		t.Errorf("got %v\nwant %v", log, want)
	}
}
