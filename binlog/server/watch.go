package server

import (
	"context"
	"sync"
	"time"
)

// watch ends a stream's reads when a context ends. It is set on a context once, not for each read. One goroutine reads;
// end may be called from any.
type watch struct {
	mu    sync.Mutex
	done  <-chan struct{} // of the context that is watched; nil: none, or one that never ends
	stop  func() bool
	fired chan struct{} // closed when the end of the context has been passed on
	ended bool
}

// leave gives a context up when another one counts from now on, and says so: what the first did to the deadline is done
// by then, and has to be undone.
func (w *watch) leave(ctx context.Context) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop == nil || w.done == ctx.Done() {
		return false
	}
	if !w.stop() {
		<-w.fired // or its deadline would fall upon a later read
	}
	w.stop, w.done = nil, nil
	return true
}

// enter begins to watch a context, unless it is watched already: its end becomes the deadline of the read at that time.
func (w *watch) enter(ctx context.Context, s *Stream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop != nil || w.ended || ctx.Done() == nil {
		return
	}
	fired := make(chan struct{})
	w.done, w.fired = ctx.Done(), fired
	w.stop = context.AfterFunc(ctx, func() {
		s.wire.SetReadDeadline(time.Unix(1, 0))
		close(fired)
	})
}

// end watches nothing any more: a context that lives on does not keep the stream.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	if w.stop != nil {
		w.stop()
	}
}
