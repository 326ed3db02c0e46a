package pipeline

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-cdc/tidemark/emitter"
)

// holdAfter is for how long the stream goes on while its offset cannot be stored. What it sends in that time is sent again after
// a crash, so there is to be an end of it.
const holdAfter = time.Minute

// hold keeps the stream back while the offset cannot be stored: the disk is full, read-only or broken. It lives as long as its
// pipeline. Its methods are safe for concurrent use.
type hold struct {
	mu    sync.Mutex
	since time.Time // of the first failure; zero: it can be stored
	tries int
	on    atomic.Pointer[chan struct{}] // closed when the stream may go on; nil: it may
}

// failed counts a failure. It says whether it is the first, and whether the stream is kept back from now on.
func (h *hold) failed() (first, begins bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if first = h.since.IsZero(); first {
		h.since = time.Now()
	}
	h.tries++
	if begins = time.Since(h.since) >= holdAfter && h.on.Load() == nil; begins {
		on := make(chan struct{})
		h.on.Store(&on)
	}
	return first, begins
}

// works lets the stream go on, and says what there was: how many failures, since when.
func (h *hold) works() (tries int, after time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.since.IsZero() {
		return 0, 0
	}
	tries, after = h.tries, time.Since(h.since)
	h.since, h.tries = time.Time{}, 0
	if on := h.on.Swap(nil); on != nil {
		close(*on)
	}
	return tries, after
}

// again lets the stream of a new attempt go on until an offset of its own cannot be stored, for without one nobody would try.
func (h *hold) again() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if on := h.on.Swap(nil); on != nil {
		close(*on)
	}
}

// wait returns when the stream may go on, or ctx ends. What is appended is handed over before.
func (h *hold) wait(ctx context.Context, delivery emitter.Delivery) error {
	on := h.on.Load()
	if on == nil {
		return nil
	}
	if err := delivery.Deliver(ctx); err != nil {
		return err
	}
	select {
	case <-*on:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
