package pipeline

import (
	"math/rand/v2"
	"time"
)

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
