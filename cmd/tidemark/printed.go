package main

import (
	"bufio"
	"context"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// printed is a delivery to standard output. Boundaries flush it, so that a person sees a transaction when it is done.
type printed struct {
	printer
	out   *bufio.Writer
	batch emitter.Batch
	safe  offset.Offset
}

func (p *printed) Batch(context.Context) (*emitter.Batch, error) { return &p.batch, nil }

func (p *printed) Deliver(context.Context) error {
	for i := range p.batch.Records {
		if err := p.print(p.out, &p.batch.Records[i]); err != nil {
			return err
		}
	}
	p.batch.Reset()
	return nil
}

func (p *printed) Boundary(ctx context.Context, after offset.Offset) error {
	if err := p.Flush(ctx); err != nil {
		return err
	}
	p.safe = after
	return nil
}

func (p *printed) Flush(ctx context.Context) error {
	if err := p.Deliver(ctx); err != nil {
		return err
	}
	return p.out.Flush()
}

func (p *printed) Safe() (offset.Offset, bool) { return p.safe, !p.safe.IsZero() }
func (p *printed) Unacked() int                { return 0 }
func (p *printed) Err() error                  { return nil }
func (p *printed) Done() <-chan struct{}       { return nil }
func (p *printed) Close()                      {}

// printHistory prints what run would write to the schema history, under the history's topic, when records are printed and
// there is such a topic.
func printHistory(c *config.Connector, records bool, em *emitter.Emitter, p *printed) func(context.Context, *binlog.SchemaChange) error {
	return func(_ context.Context, ev *binlog.SchemaChange) error {
		if err := checkChange(c, em, ev); err != nil || !records || c.History.Topic == "" {
			return err
		}
		for _, r := range historyRecords(c.Prefix, ev, em.Mark) {
			record := emitter.Record{Topic: c.History.Topic, Partition: -1, Value: schema.AppendHistory(nil, &r), Offset: ev.Record}
			if err := printRecord(p.out, &record, readable{}, readable{}); err != nil {
				return err
			}
		}
		return nil
	}
}
