package kafka

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"
)

// policyAge is how often it is looked whether a topic is still compacted.
const policyAge = 10 * time.Minute

// policyWatch warns, once, of a compacted topic that somebody has set to be deleted from. The zero value has not looked yet.
type policyWatch struct {
	mu   sync.Mutex
	next time.Time
	said string
}

// watchPolicy looks at the settings of the topic if it has not done so for a while. It does not wait for a cluster that is away.
func (c *compacted) watchPolicy(ctx context.Context) {
	w := &c.policy
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if w.next.IsZero() {
		w.next = now.Add(policyAge) // it was looked at when it was opened
	}
	if now.Before(w.next) {
		return
	}
	w.next = now.Add(policyAge)
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	err := c.checkPolicy(ctx)
	switch {
	case ctx.Err() != nil, err != nil && !errors.Is(err, errNotCompacted):
	case err != nil && w.said != err.Error():
		w.said = err.Error()
		c.log.Warn("the "+c.what+" is not compacted any more", zap.String("topic", c.topic), zap.Error(err))
	case err == nil && w.said != "":
		w.said = ""
		c.log.Info("the "+c.what+" is compacted again", zap.String("topic", c.topic))
	}
}
