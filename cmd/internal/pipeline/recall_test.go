package pipeline

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/offset"
)

// forgetful is a place of offsets that is empty after its first Load, as a topic that is deleted and made again.
type forgetful struct {
	memoryStore
	loads int
}

func (s *forgetful) Load(ctx context.Context, key offset.Key) (offset.Offset, error) {
	if s.loads++; s.loads == 2 {
		s.mu.Lock()
		s.saved = nil
		s.mu.Unlock()
	}
	return s.memoryStore.Load(ctx, key)
}

// An offset that is deleted under a stream is no reason to begin at another place: what lies between would be lost.
func TestI4_OffsetDeletedUnderTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &forgetful{memoryStore: memoryStore{saved: []offset.Offset{at(100)}}}
		p, opened, logs := newPipeline(store, newInstant,
			&script{steps: []int64{200, 300}, err: errCut},
			&script{start: at(900)}) // if it were to begin anew
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := p.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if len(*opened) != 2 || (*opened)[1].Pos != 300 {
			t.Errorf("opened at %v, want 300 last", *opened)
		}
		if got := store.positions(); !slices.Equal(got, []int64{300}) {
			t.Errorf("stored %v, want 300 again", got)
		}
		if n := logs.FilterMessageSnippet("is gone").Len(); n != 1 {
			t.Errorf("said %d times, want once", n)
		}
	})
}

// Where that offset may be one transaction behind, going on could write that twice.
func TestOffsetDeletedAfterAnUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &forgetful{memoryStore: memoryStore{saved: []offset.Offset{at(100)}}}
		p, opened, _ := newPipeline(store, newInstant, &script{steps: []int64{200}, err: errors.Join(errCut, emitter.ErrUnknownOutcome)}, &script{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := p.Run(ctx)
		if err == nil || !strings.Contains(err.Error(), "is not known whether the last transaction") || !strings.Contains(err.Error(), `"start.position":"{\"file\":`) || len(*opened) != 1 {
			t.Errorf("opened at %v: %v", *opened, err)
		}
	})
}
