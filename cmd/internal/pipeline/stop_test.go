package pipeline

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-cdc/tidemark/offset"
)

// A stop that comes while an interrupted attempt waits for Kafka is one in order if the interruption would have been waited for.
func TestStopOfAnInterruptedStream(t *testing.T) {
	for name, fault := range map[string]error{"heals": errCut, "does not": errDisk} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &memoryStore{saved: []offset.Offset{at(100)}}
				delivery := func() *instant { d := newInstant(); d.stuck = true; return d }
				p, _, logs := newPipeline(store, delivery, &script{steps: []int64{200}, err: fault})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- p.Run(ctx) }()
				time.Sleep(time.Second) // it flushes
				cancel()
				err := <-done
				if heals := errors.Is(fault, errCut); heals && err != nil || !heals && !errors.Is(err, fault) {
					t.Errorf("got %v", err)
				}
				if got := store.positions(); got[len(got)-1] != 200 {
					t.Errorf("stored %v, want 200 last", got)
				}
				if n := logs.FilterMessageSnippet("stopped while").Len(); n != map[bool]int{true: 1}[err == nil] {
					t.Errorf("said %d times", n)
				}
			})
		})
	}
}
