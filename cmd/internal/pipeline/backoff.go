package pipeline

import (
	"context"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"
)

// Await calls do until it succeeds. While its error is transient it waits and tries again, saying so once; any other
// error, and the end of ctx, are returned.
func Await(ctx context.Context, log *zap.Logger, transient func(error) bool, do func() error) error {
	wait := backoff{first: 500 * time.Millisecond, most: 30 * time.Second}
	for waiting := false; ; waiting = true {
		err := do()
		switch {
		case err == nil:
			if waiting {
				log.Info("it goes on")
			}
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !transient(err):
			return err
		case !waiting:
			log.Warn("waiting; it goes on by itself as soon as it can", zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait.next()):
		}
	}
}

// backoff gives the waits between attempts: doubling from first to most, with jitter so that many processes do not come
// back at one moment.
type backoff struct {
	first, most time.Duration
	now         time.Duration
}

func (b *backoff) next() time.Duration {
	if b.now = b.now * 2; b.now < b.first {
		b.now = b.first
	}
	b.now = min(b.now, b.most)
	return b.now/2 + rand.N(b.now/2+1)
}

func (b *backoff) reset() { b.now = 0 }
