package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/emitter/internal/producer"
	"github.com/tidemark-cdc/tidemark/offset"
)

// owned is what a [SchemaTopic] knows of a connector. It belongs to who has the token.
type owned struct {
	token  chan struct{}  // holds one
	writer *transactional // nil: what is written is in no transaction
	open   bool           // it was said that there are no transactions
}

// Fence takes a transactional id for a connector's tables: from now on [SchemaTopic.Save] writes them in one transaction, which fails
// when somebody else has taken the id since. So one that was suspended, or cut off, and goes on later can no more replace what is
// known of a table by the less that it knew. It is to be called anew before each Load and after an error of Save, and blocks until
// whatever transaction of the id was open has ended.
//
// Where the cluster or its permissions do not allow transactions, that is said once, and Save writes without them.
func (s *SchemaTopic) Fence(ctx context.Context, connector, prefix, id string) error {
	o, giveBack, err := s.take(ctx, offset.Key{Connector: connector, Server: prefix})
	if err != nil {
		return fmt.Errorf("schema topic %s: %w", s.topic, err)
	}
	defer giveBack()
	if o.writer != nil {
		s.end(o.writer)
		o.writer = nil
	}
	wait := s.fenceWait
	if o.open {
		wait = min(wait, fenceWaitAgain)
	}
	w, err := s.openWriter(ctx, id, wait)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		if err := s.client.Ping(ctx); err != nil {
			return fmt.Errorf("schema topic %s: %w", s.topic, err)
		}
	}
	switch why := notFenced(s.client, err, id); {
	case err == nil:
		o.writer = w
	case ctx.Err() != nil || why == "":
		return fmt.Errorf("schema topic %s: %w", s.topic, err)
	case !o.open:
		o.open = true
		s.log.Warn("the definitions of tables are stored without a transaction, so that another process with this connector's name, which was suspended or cut off, could still replace them by older ones when it goes on: "+why,
			zap.String("transactional.id", id), zap.Error(err))
	}
	return nil
}

// openWriter takes a transactional id, for which it waits only so long.
func (s *SchemaTopic) openWriter(ctx context.Context, id string, most time.Duration) (*transactional, error) {
	client := *s.client.Internal()
	client.MaxRecordBytes, client.Linger = schemaBatch, 0
	var err error
	if client.Compressor, err = kgo.DefaultCompressor(kgo.GzipCompression()); err != nil { // which all brokers with transactions know
		return nil, err
	}
	ends := &Ends{cfg: s.access, client: s.client, id: id, topic: s.topic} // each definition is whole by itself
	w := newTransactional(&client, 2*schemaBatch, ends, s.again)
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.writers[w] = struct{}{}
	}
	s.mu.Unlock()
	if closed {
		w.close()
		return nil, errClosed
	}
	if err := w.begin(ctx, s.topic, most); err != nil {
		s.end(w)
		return nil, err
	}
	return w, nil
}

// take returns what is known of a connector when nobody else is at it. It is to be given back.
func (s *SchemaTopic) take(ctx context.Context, owner offset.Key) (o *owned, giveBack func(), err error) {
	s.mu.Lock()
	o = s.owners[owner]
	if o == nil {
		o = &owned{token: make(chan struct{}, 1)}
		s.owners[owner] = o
	}
	s.mu.Unlock()
	select {
	case o.token <- struct{}{}:
		return o, func() { <-o.token }, nil
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
}

// end ends a writer.
func (s *SchemaTopic) end(w *transactional) {
	s.mu.Lock()
	delete(s.writers, w)
	s.mu.Unlock()
	w.close()
}

// saveFenced is Save in a transaction. After an error, which leaves it open what is written, nothing more is.
func (s *SchemaTopic) saveFenced(ctx context.Context, w *transactional, entries []Entry) error {
	if err := w.ended(); err != nil {
		return err
	}
	err := w.write(entries, offset.Offset{}).wait(ctx)
	if err != nil {
		w.failed(fmt.Errorf("%w: it is not known whether the definitions before were stored", producer.ErrAgain)) // unless it has failed
		s.end(w)
	}
	return err
}
