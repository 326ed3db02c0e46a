package producer

import (
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// missingFor is how long a topic is unknown before that is not just news of it on its way through the cluster.
const missingFor = 5 * time.Second

// look takes note of whether the cluster knows a topic. The caller holds the lock; so it does of grows.
func (p *Producer) look(name string, failed error) {
	t := p.topics[name]
	if t == nil {
		return
	}
	if !errors.Is(failed, kerr.UnknownTopicOrPartition) {
		t.gone = time.Time{}
		return
	}
	waited := false
	for _, part := range t.partitions {
		waited = waited || len(part.queue) > 0
	}
	switch now := time.Now(); {
	case t.gone.IsZero():
		t.gone = now
	case waited && !t.asked && now.Sub(t.gone) >= p.missingFor && p.cfg.Missing != nil && !p.closed:
		t.asked = true
		p.running.Go(func() {
			p.cfg.Missing(p.ctx, name)
			p.mu.Lock()
			t.asked, t.gone = false, time.Time{}
			p.mu.Unlock()
		})
	}
}

// grows says that the keys of a topic move, from now on, to other partitions than before.
func (p *Producer) grows(t *Topic, now int) {
	if before := len(t.partitions); before > 0 && now > before && p.cfg.Client.Grew != nil {
		p.cfg.Client.Grew(t.name, before, now)
	}
}

// shutOut ends the producer when a broker does not let its client in. Others have, or there would be no topics: the password or the
// certificate has changed, and only a new client has the new one.
func (p *Producer) shutOut(address string, err error) {
	if err != nil && p.cfg.Client.RefusesLogin != nil && p.cfg.Client.RefusesLogin(err) {
		p.fail(fmt.Errorf("connecting to Kafka broker %s: %w", address, err))
	}
}

// triesAgain says whether a batch is sent again that was refused so many times before.
func triesAgain(cause error, attempts int) bool {
	if errors.Is(cause, kerr.CorruptMessage) || errors.Is(cause, kerr.UnknownServerError) {
		return attempts < mostCorrupt
	}
	return kerr.IsRetriable(cause)
}
