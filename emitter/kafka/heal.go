package kafka

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"go.uber.org/zap"
)

// errNoTopic is that a topic is not there, and nobody makes it.
var errNoTopic = errors.New("does not exist")

// Withdrawn reports whether an error of this package is about what an operator gives and takes: rights, a login, a certificate, a
// topic. When it was there before, it is worth waiting for, with a client that is made anew, since that has the new password.
func Withdrawn(err error) bool {
	for _, e := range []*kerr.Error{
		kerr.TopicAuthorizationFailed, kerr.GroupAuthorizationFailed, kerr.ClusterAuthorizationFailed, kerr.TransactionalIDAuthorizationFailed,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return refusesLogin(err) || errors.Is(err, errNoTopic)
}

// refusesLogin tells the errors of a connection that a client has which is not let in.
func refusesLogin(err error) bool {
	return err != nil && (errors.Is(err, kerr.SaslAuthenticationFailed) || aboutTLS(err))
}

// grew warns of a topic whose number of partitions was raised.
func grew(log *zap.Logger) func(topic string, before, now int) {
	return func(topic string, before, now int) {
		log.Warn("the topic has more partitions than before: from now on records go to other partitions than earlier ones with the same key, so their order is not kept across this moment",
			zap.String("topic", topic), zap.Int("before", before), zap.Int("now", now))
	}
}

// Again has a topic made that was there and is gone, if it can be: then it is another one, which whoever writes to it has to begin
// with anew. If it cannot be made, that is said once, with what to do; it is called again later.
func (t *Topics) Again(ctx context.Context, topic string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, topic)
	switch err := t.client.EnsureTopic(ctx, topic, t.specOf(topic)); {
	case ctx.Err() != nil:
	case err != nil && !t.lost[topic]:
		t.lost[topic] = true
		t.client.log.Warn("a topic was deleted, and cannot be made again; its records wait for it, and the offset with them", zap.String("topic", topic), zap.Error(err))
	case err == nil:
		delete(t.lost, topic)
		t.known[topic] = true
		t.client.log.Warn("a topic was deleted, and is there again: it goes on from the stored offset; what was in it before is gone", zap.String("topic", topic))
	}
}
