package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/offset"
)

// saver has the safe offset stored now and then, and watches that it moves. save is called by one goroutine at a time.
type saver struct {
	p      *Pipeline
	last   offset.Offset
	told   func(offset.Offset) // hears of what is stored; nil: nobody
	ours   bool                // last is of this attempt, so of the same server
	broken chan error          // has the error after which saving again is of no use
	asked  chan chan struct{}  // to save at once; closed when that is done
}

func newSaver(p *Pipeline, stored offset.Offset) *saver {
	return &saver{p: p, last: stored, broken: make(chan error, 1), asked: make(chan chan struct{})}
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
		watch := stall{log: s.p.Log, moved: time.Now()}
		for {
			var asked chan struct{}
			select {
			case <-ctx.Done():
				return
			case asked = <-s.asked:
			case <-tick.C:
			}
			safe, ok := delivery.Safe()
			watch.look(safe, delivery.Unacked())
			if ok {
				if err := s.save(ctx, safe); ctx.Err() == nil {
					s.report(safe, err)
					if errors.Is(err, offset.ErrUnusable) {
						s.broken <- err
						return
					}
				}
			}
			if asked != nil {
				close(asked)
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// now saves the delivery's safe offset without waiting for the flush interval, as well as can be.
func (s *saver) now(ctx context.Context) {
	done := make(chan struct{})
	select {
	case s.asked <- done:
	case <-ctx.Done():
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// report says when saving begins to fail, and when it works again. What fails for long keeps the stream back.
func (s *saver) report(safe offset.Offset, err error) {
	switch {
	case err == nil:
		if tries, after := s.p.hold.works(); tries > 0 {
			s.p.Log.Info("the offset is stored again", zap.Stringer("offset", safe), zap.Int("failures", tries), zap.Duration("after", after.Round(time.Millisecond)))
		}
	case errors.Is(err, errNotOurs): // whoever knows why says so
	case !errors.Is(err, offset.ErrUnusable):
		first, begins := s.p.hold.failed()
		if first {
			s.p.Log.Warn("the offset could not be stored; trying again at each flush interval. The stream goes on for a minute: what it sends until then is sent again after a crash",
				zap.Error(err))
		}
		if begins {
			s.p.Log.Warn("the offset still cannot be stored; the stream waits until it can", zap.Stringer("stored", s.last), zap.Error(err))
		}
	}
}

// stallAfter is how long records may wait for an acknowledgement before that is said.
const stallAfter = 30 * time.Second

// stall says when Kafka acknowledges nothing for a while though records are on their way.
type stall struct {
	log   *zap.Logger
	safe  offset.Offset
	moved time.Time // when safe last changed, or fewer were on their way
	left  int       // were on their way last
	said  bool
}

func (s *stall) look(safe offset.Offset, unacked int) {
	acknowledged := unacked < s.left // also of a transaction that is not committed for long
	s.left = unacked
	if unacked == 0 || acknowledged || !safe.Same(s.safe) {
		if s.said {
			s.log.Info("Kafka acknowledges records again")
		}
		s.safe, s.moved, s.said = safe, time.Now(), false
		return
	}
	if d := time.Since(s.moved); d >= stallAfter && !s.said {
		s.said = true
		s.log.Warn("Kafka acknowledges nothing, and the stream waits for it. Are all brokers up, has a topic fewer in-sync replicas than min.insync.replicas, "+
			"was a topic deleted (then make it again, or restart)?", zap.Int("records", unacked), zap.Duration("for", d), zap.Stringer("acknowledged", safe))
	}
}

// save stores the offset unless it is the one stored already. Within one attempt offsets only go forward (I2): one that
// does not is a fault of ours, and storing it would repeat changes.
func (s *saver) save(ctx context.Context, o offset.Offset) error {
	if o.Same(s.last) {
		return nil
	}
	if before, comparable := o.Before(s.last); s.ours && comparable && before {
		return fmt.Errorf("offset %s lies before %s, which is stored: it is not stored. This is a fault in tidemark", o, s.last)
	}
	if !s.p.may() {
		return errNotOurs
	}
	if err := s.p.Store.Save(ctx, s.p.Key, o); err != nil {
		return err
	}
	s.last, s.ours = o, true
	s.p.trouble.goesOn(s.p.Log)
	if s.told != nil {
		s.told(o)
	}
	s.p.Log.Debug("offset stored", zap.Stringer("offset", o))
	return nil
}
