package sim

import (
	"context"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// What is here stands between the parts of the product, to crash there and to note what passes.

// watchedSource has the reader's other methods, which the pipeline looks for.
type watchedSource struct {
	*binlog.Reader
	p *process
}

func (w *watchedSource) Read(ctx context.Context) (binlog.Event, error) {
	ev, err := w.Reader.Read(ctx)
	if err == nil {
		err = w.p.at(pointRead)
	}
	return ev, err
}

type watchedDelivery struct {
	emitter.Delivery
	p *process
}

func (w *watchedDelivery) Boundary(ctx context.Context, after offset.Offset) error {
	if err := w.p.at(pointEncode); err != nil {
		return err
	}
	return w.Delivery.Boundary(ctx, after)
}

func (w *watchedDelivery) Deliver(ctx context.Context) error {
	if err := w.p.at(pointHandOver); err != nil {
		return err
	}
	err := w.Delivery.Deliver(ctx)
	if s := w.p.s; s.window > 0 && s.mode == atLeastOnce && w.Unacked() > s.window { // of a transaction there may be more
		s.violated("C13", "process %d has %d records on their way, and at most %d may be", w.p.number, w.Unacked(), s.window)
	}
	return err
}

type watchedStore struct {
	offset.Store
	p *process
}

func (w *watchedStore) Load(ctx context.Context, key offset.Key) (offset.Offset, error) {
	o, err := w.Store.Load(ctx, key)
	if err != nil {
		return o, err
	}
	w.p.s.notes.loaded(w.p, o)
	return o, w.p.at(pointLoaded)
}

func (w *watchedStore) Save(ctx context.Context, key offset.Key, o offset.Offset) error {
	if err := w.p.at(pointBeforeOffset); err != nil {
		return err
	}
	w.p.mu.Lock()
	w.p.answers = 0
	w.p.mu.Unlock()
	note := w.p.s.notes.saving(w.p, o)
	if err := w.Store.Save(ctx, key, o); err != nil {
		if isFenced(err) {
			w.p.s.notes.refused(note)
		}
		return err
	}
	w.p.s.notes.saved(note)
	return w.p.at(pointAfterOffset)
}

type watchedDefinitions struct {
	schema.Store
	p *process
}

func (w *watchedDefinitions) Save(ctx context.Context, connector, prefix string, tables []schema.StoredTable) error {
	if err := w.p.at(pointBeforeSchema); err != nil {
		return err
	}
	if err := w.Store.Save(ctx, connector, prefix, tables); err != nil {
		return err
	}
	return w.p.at(pointAfterSchema)
}

func (w *watchedDefinitions) Load(ctx context.Context, connector, prefix string) ([]schema.StoredTable, error) {
	if err := w.p.pass(); err != nil {
		return nil, err
	}
	return w.Store.Load(ctx, connector, prefix)
}
