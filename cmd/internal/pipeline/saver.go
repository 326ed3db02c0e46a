package pipeline

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/offset"
)

// saver stores the safe offset now and then. save is called by one goroutine at a time.
type saver struct {
	p       *Pipeline
	last    offset.Offset
	ours    bool // last is of this attempt, so of the same server
	failing bool // the last save failed; said once
}

// start saves the delivery's safe offset every flush interval in a goroutine of its own, until the returned function is
// called, which waits for it.
func (s *saver) start(ctx context.Context, delivery emitter.Delivery) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(s.p.FlushInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			safe, ok := delivery.Safe()
			if !ok {
				continue
			}
			err := s.save(ctx, safe)
			switch {
			case err == nil && s.failing:
				s.p.Log.Info("the offset is stored again", zap.Stringer("offset", safe))
			case err != nil && ctx.Err() == nil && !s.failing:
				s.p.Log.Warn("the offset could not be stored; trying again at each flush interval, the stream goes on meanwhile", zap.Error(err))
			}
			if ctx.Err() == nil {
				s.failing = err != nil
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// save stores the offset unless it is the one stored already. Within one attempt offsets only go forward (I2): one that
// does not is a fault of ours, and storing it would repeat changes.
func (s *saver) save(ctx context.Context, o offset.Offset) error {
	if o.Equal(s.last) {
		return nil
	}
	if before, comparable := o.Before(s.last); s.ours && comparable && before {
		return fmt.Errorf("offset %s lies before %s, which is stored: it is not stored. This is a fault in tidemark", o, s.last)
	}
	if err := s.p.Store.Save(ctx, s.p.Key, o); err != nil {
		return err
	}
	s.last, s.ours = o, true
	s.p.Log.Debug("offset stored", zap.Stringer("offset", o))
	return nil
}
