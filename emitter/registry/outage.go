package registry

import (
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
)

// outage says once that the registry gives no answer, or lets requests wait for it, and once that it answers again, whatever
// number of schemas wait for it.
type outage struct {
	log *zap.Logger

	mu struct {
		sync.Mutex
		since  time.Time // zero: there is none
		tries  int
		slow   time.Time // when the request began that it was said of that it waits; zero: it was not
		answer time.Time // the last
	}
}

// failed takes note of a try that began at start. One that was overtaken by an answer does not count.
func (o *outage) failed(s Schema, urls []string, start time.Time, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.answer.After(start) {
		return
	}
	o.mu.tries++
	if !o.mu.since.IsZero() {
		return
	}
	o.mu.since = time.Now()
	o.log.Warn("schema registry cannot be used; trying again until it can", zap.String("subject", s.Subject), zap.String("topic", s.Topic),
		zap.String("urls", strings.Join(urls, ", ")), zap.String("reason", err.Error()))
}

// slow says of a request that began at start that there is no answer yet, unless it is known that there is none.
func (o *outage) slow(s Schema, base string, start time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.answer.After(start) || !o.mu.since.IsZero() || !o.mu.slow.IsZero() {
		return
	}
	o.mu.slow = start
	o.log.Warn("schema registry has not answered yet; waiting for it", zap.String("subject", s.Subject), zap.String("topic", s.Topic),
		zap.String("url", base), zap.Duration("for", time.Since(start).Round(time.Millisecond)))
}

// gaveUp makes slow speak again: nobody waits any more for what it was said of.
func (o *outage) gaveUp() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.slow = time.Time{}
}

func (o *outage) answered(base string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.answer = time.Now()
	switch {
	case !o.mu.since.IsZero():
		o.log.Info("schema registry can be used again", zap.String("url", base),
			zap.Duration("after", time.Since(o.mu.since).Round(time.Millisecond)), zap.Int("tries", o.mu.tries))
	case !o.mu.slow.IsZero():
		o.log.Info("schema registry has answered", zap.String("url", base), zap.Duration("after", time.Since(o.mu.slow).Round(time.Millisecond)))
	}
	o.mu.since, o.mu.slow, o.mu.tries = time.Time{}, time.Time{}, 0
}
