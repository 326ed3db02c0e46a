package producer

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/emitter/internal/kclient"
)

// soon has topics count as missing sooner.
func (r *rig) soon() {
	r.Producer.mu.Lock()
	defer r.Producer.mu.Unlock()
	r.missingFor = 50 * time.Millisecond
}

// TestMissingTopicIsTold again and again, one call at a time, but only while records wait for it; when it is made anew, the producer
// ends, so that a new one begins with it.
func TestMissingTopicIsTold(t *testing.T) {
	c := cluster(t, 1)
	must(t, c.CreateTopic("gone", 1, nil))
	var calls, running, atOnce atomic.Int32
	r := newRigWith(t, c, plenty, func(cfg *Config) {
		hurried(cfg)
		cfg.Missing = func(_ context.Context, topic string) {
			if topic != "gone" || running.Add(1) > 1 {
				atOnce.Add(1)
			}
			calls.Add(1)
			time.Sleep(10 * time.Millisecond)
			running.Add(-1)
		}
	})
	r.soon()
	gone, topic := r.topic(t, "gone"), r.topic(t, topicName)
	r.send(t, gone, 0, 1, 10)
	r.flush(t)
	must(t, c.DeleteTopic("gone"))
	r.ask()
	time.Sleep(400 * time.Millisecond)
	if calls.Load() != 0 {
		t.Error("told of a topic that nothing waits for")
	}
	r.send(t, gone, 0, 1, 10)
	r.send(t, topic, 0, 5, 10)
	eventually(t, "told twice", func() bool { return calls.Load() >= 2 })
	holds(t, c, topicName, 0, 5)
	must(t, c.CreateTopic("gone", 1, nil))
	if err := r.fails(t); !errors.Is(err, kerr.UnknownTopicID) || !r.cfg.Client.Transient(err) {
		t.Error(err)
	}
	if atOnce.Load() != 0 {
		t.Error("told wrongly, or twice at once")
	}
}

// TestGrowthIsSaid once, of a topic that was known before.
func TestGrowthIsSaid(t *testing.T) {
	c := cluster(t, 2)
	type growth struct {
		topic       string
		before, now int
	}
	told := make(chan growth, 10)
	r := newRigWith(t, c, plenty, func(cfg *Config) {
		cfg.Client.Grew = func(topic string, before, now int) { told <- growth{topic, before, now} }
	})
	topic := r.topic(t, topicName)
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	must(t, err)
	defer cl.Close()
	_, err = kadm.NewClient(cl).CreatePartitions(limited(t), 2, topicName)
	must(t, err)
	for range 3 {
		must(t, r.refreshAll())
	}
	if len(told) != 1 || <-told != (growth{topicName, 2, 4}) {
		t.Errorf("told %d times", len(told))
	}
	r.send(t, topic, 3, 1, 10)
	r.flush(t)
}

// TestRefusedLoginEndsTheProducer, since only a new client has the new password, while one that is just not there is waited for.
func TestRefusedLoginEndsTheProducer(t *testing.T) {
	c := cluster(t, 1)
	var refuse atomic.Bool
	r := newRigWith(t, c, plenty, func(cfg *Config) {
		connect := cfg.Client.Connect
		cfg.Client.Connect = func(ctx context.Context, address string) (*kclient.Connection, error) {
			if refuse.Load() {
				return nil, kerr.SaslAuthenticationFailed
			}
			return connect(ctx, address)
		}
	})
	topic := r.topic(t, topicName)
	r.send(t, topic, 0, 3, 10)
	r.flush(t)
	refuse.Store(true)
	r.wire.cutNext(1, before)
	r.send(t, topic, 0, 1, 10)
	if err := r.fails(t); !errors.Is(err, kerr.SaslAuthenticationFailed) {
		t.Error(err)
	}
	r.Close()
	holds(t, c, topicName, 0, 3)
}

// TestFaultWithoutANameIsTriedAgain a few times: it may pass, and if not the producer ends.
func TestFaultWithoutANameIsTriedAgain(t *testing.T) {
	c, r, topic := begin(t, 1)
	fault := c.Fault(kfake.Fault{Keys: produce, Err: kerr.UnknownServerError, Count: 2})
	r.send(t, topic, 0, 5, 10)
	r.arrived(t, c, topic)
	if fault.Hits() != 2 {
		t.Errorf("%d answers were faulty", fault.Hits())
	}
}
