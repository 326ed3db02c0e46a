package registry

import (
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
)

// outage says once that the registry gives no answer, and once that it does again, whatever number of schemas wait for it.
type outage struct {
	log *zap.Logger

	mu struct {
		sync.Mutex
		since  time.Time // zero: there is none
		tries  int
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

func (o *outage) answered(base string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.answer = time.Now()
	if o.mu.since.IsZero() {
		return
	}
	o.log.Info("schema registry can be used again", zap.String("url", base),
		zap.Duration("after", time.Since(o.mu.since).Round(time.Millisecond)), zap.Int("tries", o.mu.tries))
	o.mu.since, o.mu.tries = time.Time{}, 0
}
