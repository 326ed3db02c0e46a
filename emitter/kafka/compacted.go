package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
)

// compactedConfig says which compacted topic to keep things in.
type compactedConfig struct {
	ClientConfig
	what string // the topic's role, for messages: offsets topic
	spec TopicSpec
}

// compacted is a compacted topic: the newest value of each key counts. It is made if need be. It is safe for concurrent
// use.
type compacted struct {
	topic, what string
	spec        TopicSpec
	access      ClientConfig // for clients of its own
	client      *Client
	log         *zap.Logger
	policy      policyWatch
}

// openCompacted makes the topic by spec if it does not exist and checks that it is compacted. While the cluster cannot be
// reached it waits, until ctx ends.
func openCompacted(ctx context.Context, cfg compactedConfig, topic string, more ...kgo.Opt) (*compacted, error) {
	log := cfg.Log
	if log == nil {
		log = zap.NewNop()
	}
	client, err := newClient(cfg.ClientConfig, append([]kgo.Opt{kgo.ProducerLinger(0)}, more...)...)
	if err != nil {
		return nil, err
	}
	spec := cfg.spec
	spec.Settings = maps.Clone(spec.Settings)
	if spec.Settings == nil {
		spec.Settings = make(map[string]string, 1)
	}
	spec.Settings["cleanup.policy"] = "compact"
	c := &compacted{topic: topic, what: cfg.what, spec: spec, access: cfg.ClientConfig, client: client, log: log}
	err = client.EnsureTopic(ctx, topic, spec)
	if err == nil {
		err = c.checkPolicy(ctx)
	}
	if err != nil {
		client.Close()
		return nil, fmt.Errorf("%s: %w", cfg.what, err)
	}
	return c, nil
}

// again makes the topic anew that was deleted while this process used it. While the cluster cannot be reached it waits, until ctx ends.
func (c *compacted) again(ctx context.Context) error {
	exists, err := retry(ctx, func() (bool, error) { return c.client.topicExists(ctx, c.topic) })
	if err != nil || exists {
		return err
	}
	if err := c.client.EnsureTopic(ctx, c.topic, c.spec); err != nil {
		return fmt.Errorf("the %s was deleted, and cannot be made again: %w", c.what, err)
	}
	c.log.Warn("the "+c.what+" was deleted; it is made again, without what was in it", zap.String("topic", c.topic))
	return nil
}

// reading are the options for reading a topic to its end. A transaction that was rolled back stored nothing. Its control
// records are kept, because the last record of a partition may be one and reading ends there.
func reading() []kgo.Opt {
	return []kgo.Opt{
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(),
		kgo.FetchMaxWait(250 * time.Millisecond),
	}
}

// checkPolicy refuses a topic from which records would vanish, as Connect does.
func (c *compacted) checkPolicy(ctx context.Context) error {
	settings, err := c.client.topicSettings(ctx, c.topic)
	policy := settings["cleanup.policy"]
	switch {
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed), err == nil && policy == "":
		c.log.Warn("it cannot be checked whether the "+c.what+" is compacted, which it must be", zap.String("topic", c.topic), zap.Error(err))
		return nil
	case err != nil:
		return fmt.Errorf("topic %s: reading its settings: %w", c.topic, err)
	case strings.TrimSpace(policy) != "compact":
		return fmt.Errorf("topic %s has cleanup.policy=%s, %w; it must be compact: "+
			"kafka-configs.sh --bootstrap-server %s --alter --entity-type topics --entity-name %s --add-config cleanup.policy=compact",
			c.topic, policy, errNotCompacted, c.client.seeds[0], c.topic)
	}
	return nil
}

var errNotCompacted = errors.New("so what is kept there would be deleted")

// topicSettings reads the settings of a topic. While the cluster cannot be reached it waits, until ctx ends.
func (c *Client) topicSettings(ctx context.Context, topic string) (map[string]string, error) {
	return retry(ctx, func() (map[string]string, error) {
		configs, err := c.admin.DescribeTopicConfigs(ctx, topic)
		if err != nil {
			return nil, err
		}
		config, err := configs.On(topic, nil)
		if err == nil {
			err = config.Err
		}
		if err != nil {
			return nil, err
		}
		settings := make(map[string]string, len(config.Configs))
		for _, s := range config.Configs {
			if s.Value != nil {
				settings[s.Key] = *s.Value
			}
		}
		return settings, nil
	})
}

// retry calls f until it works, fails for good or ctx ends.
func retry[T any](ctx context.Context, f func() (T, error)) (T, error) {
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		v, err := f()
		if err == nil || ctx.Err() != nil || !Transient(err) {
			return v, err
		}
		if err := pause(ctx, wait, err); err != nil {
			return v, err
		}
	}
}

// sent is one record on its way. The record is not bound to the context of whoever waits for it: a record given up in the
// middle of being written could not be told from one that is written.
type sent struct {
	done chan struct{} // closed when it is written or has failed
	err  error         // after done
}

// produce sends one record. When it is written, written is called with it before the write is done.
func (c *compacted) produce(ctx context.Context, record *kgo.Record, written func(*kgo.Record)) *sent {
	w := &sent{done: make(chan struct{})}
	record.Topic = c.topic
	c.client.inner.Kgo.Produce(context.WithoutCancel(ctx), record, func(r *kgo.Record, err error) {
		if err != nil {
			w.err = c.client.topicError("writing to", c.topic, err)
		} else if written != nil {
			written(r)
		}
		close(w.done)
	})
	return w
}

// wait returns when all in-sync replicas have the record, or with an error.
func (w *sent) wait(ctx context.Context) error {
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
		return fmt.Errorf("no acknowledgement: %w", context.Cause(ctx))
	}
}

// close ends the connections. It does not write; what is on its way fails.
func (c *compacted) close() { c.client.Close() }
