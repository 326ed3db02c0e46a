package producer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestLeaderMoves while batches are under way and in the queue.
func TestLeaderMoves(t *testing.T) {
	c, r, topic := begin(t, 2)
	for i := range 4 {
		release := hold(c, int32(i%2))
		r.send(t, topic, 0, 2, 10)
		eventually(t, "under way", r.locked(func() bool { return topic.partitions[0].busy }))
		r.send(t, topic, 0, 2, 10)
		must(t, c.MoveTopicPartition(topicName, 0, int32(1-i%2)))
		release()
		r.flush(t)
	}
	r.arrived(t, c, topic)
}

func (r *rig) metadata(topic *Topic, leader int32) *kmsg.MetadataResponse {
	resp := kmsg.NewPtrMetadataResponse()
	t := kmsg.NewMetadataResponseTopic()
	t.Topic, t.TopicID = &topic.name, topic.id
	for i := range topic.partitions {
		p := kmsg.NewMetadataResponseTopicPartition()
		p.Partition, p.Leader = int32(i), leader
		t.Partitions = append(t.Partitions, p)
	}
	resp.Topics = append(resp.Topics, t)
	return resp
}

// TestMovedWhileUnderWay is told of another leader before the old one acknowledges: what is in the queue goes to the new one at once.
func TestMovedWhileUnderWay(t *testing.T) {
	c, r, topic := begin(t, 2)
	release := hold(c, 0)
	defer release()
	r.send(t, topic, 0, 1, 10)
	eventually(t, "under way", r.locked(func() bool { return topic.partitions[0].busy }))
	r.send(t, topic, 0, 1, 10)
	must(t, r.learnAll(r.metadata(topic, 1)))
	done := make(chan error)
	go func() { done <- r.Flush(limited(t)) }()
	eventually(t, "Flush waits", r.locked(func() bool { return r.idle != nil }))
	release()
	must(t, <-done)
	r.arrived(t, c, topic)
}

// TestNoLeader for a while: the producer asks until there is one.
func TestNoLeader(t *testing.T) {
	c, r, topic := begin(t, 2)
	if err := r.learnAll(r.metadata(topic, -1)); !errors.Is(err, kerr.LeaderNotAvailable) {
		t.Fatalf("%v", err)
	}
	r.sendBoth(t, topic)
	r.arrived(t, c, topic)
}

// TestBrokerThatIsGone leads a partition, as a stale answer has it.
func TestBrokerThatIsGone(t *testing.T) {
	c, r, topic := begin(t, 2)
	must(t, r.learnAll(r.metadata(topic, 17)))
	r.send(t, topic, 0, 3, 10)
	r.arrived(t, c, topic)
}

// TestRemovedBroker takes a leader out of the cluster.
func TestRemovedBroker(t *testing.T) {
	c, r, topic := begin(t, 3)
	r.send(t, topic, 2, 3, 10)
	r.flush(t)
	must(t, c.MoveTopicPartition(topicName, 2, 1))
	must(t, c.RemoveNode(2))
	r.send(t, topic, 2, 3, 10)
	r.arrived(t, c, topic)
}

// TestTopicAppears some time after it is asked for.
func TestTopicAppears(t *testing.T) {
	c := cluster(t, 1)
	r := newRig(t, c, plenty)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Topic(ctx, "later"); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	asked := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: "later", Observe: true, Count: -1})
	go func() {
		_ = asked.Wait(limited(t), 2)
		_ = c.CreateTopic("later", 1, nil)
	}()
	topic := r.topic(t, "later")
	r.send(t, topic, 0, 1, 10)
	r.arrived(t, c, topic)
}

// TestTopicMayNotBeSeen is an error at once.
func TestTopicMayNotBeSeen(t *testing.T) {
	c := cluster(t, 1)
	r := newRig(t, c, plenty)
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: topicName, Err: kerr.TopicAuthorizationFailed, Count: -1})
	if _, err := r.Topic(limited(t), topicName); !errors.Is(err, kerr.TopicAuthorizationFailed) || !strings.Contains(err.Error(), topicName) {
		t.Errorf("%v", err)
	}
}

// TestTopicWaitsForNoOtherRefresh when its caller gives up.
func TestTopicWaitsForNoOtherRefresh(t *testing.T) {
	r := newRig(t, cluster(t, 1), plenty)
	r.refreshing <- struct{}{} // one that takes long
	defer func() { <-r.refreshing }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Topic(ctx, topicName); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	r.Stop()
	if _, err := r.Topic(t.Context(), topicName); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestTopicMadeAnew ends the producer so that another one begins: numbers and partitions are those of the old topic.
func TestTopicMadeAnew(t *testing.T) {
	for _, partitions := range []int32{1, 2, 3} {
		c, r, topic := begin(t, 2)
		r.sendBoth(t, topic)
		r.flush(t)
		must(t, c.DeleteTopic(topicName))
		must(t, c.CreateTopic(topicName, partitions, nil))
		r.send(t, topic, 1, 3, 10)
		if err := r.fails(t); !r.cfg.Client.Transient(err) || !strings.Contains(err.Error(), "made anew") || !strings.Contains(err.Error(), topicName) {
			t.Errorf("%d partitions: %v", partitions, err)
		}
		for p := range int(partitions) {
			holds(t, c, topicName, p, 0)
		}
	}
}

// TestTopicIsGone for good: the rest goes on, and Close does not wait for it.
func TestTopicIsGone(t *testing.T) {
	c := cluster(t, 1)
	must(t, c.CreateTopic("gone", 1, nil))
	r := newRig(t, c, plenty)
	gone, topic := r.topic(t, "gone"), r.topic(t, topicName)
	must(t, c.DeleteTopic("gone"))
	r.send(t, gone, 0, 1, 10)
	r.send(t, topic, 0, 5, 10)
	eventually(t, "the rest goes on", r.locked(func() bool { return r.pending == 1 }))
	holds(t, c, topicName, 0, 5)
	r.Close()
}

// TestTopicsThatAreGone do not keep others from being looked up.
func TestTopicsThatAreGone(t *testing.T) {
	_, r, topic := begin(t, 2)
	r.Producer.mu.Lock()
	for i := range 5 * refreshMany {
		name := fmt.Sprint("gone", i)
		r.topics[name] = &Topic{name: name}
	}
	r.Producer.mu.Unlock()
	must(t, r.learnAll(r.metadata(topic, 17)))
	if err := r.refreshAll(); !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Errorf("%v", err)
	}
	if r.locked(func() bool { return topic.partitions[0].broker.node == 17 })() {
		t.Error("the leader is not known")
	}
	r.send(t, topic, 0, 1, 10)
	r.settled(t)
}

// TestPartitionsAdded are learned of.
func TestPartitionsAdded(t *testing.T) {
	c, r, topic := begin(t, 2)
	r.send(t, topic, 1, 3, 10)
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	must(t, err)
	defer cl.Close()
	_, err = kadm.NewClient(cl).CreatePartitions(limited(t), 2, topicName)
	must(t, err)
	r.ask()
	eventually(t, "four partitions", r.locked(func() bool { return len(topic.partitions) == 4 }))
	r.send(t, topic, 3, 3, 10)
	r.arrived(t, c, topic)
}

// TestOddMetadata does not confuse the producer.
func TestOddMetadata(t *testing.T) {
	_, r, topic := begin(t, 2)
	hole := r.metadata(topic, 0)
	hole.Topics[0].Partitions[1].Partition = 5
	if err := r.learnAll(hole); err == nil || !strings.Contains(err.Error(), "5") {
		t.Errorf("%v", err)
	}
	without := r.metadata(topic, 0)
	without.Topics[0].TopicID = [16]byte{}
	must(t, r.learnAll(without))
	nameless := r.metadata(topic, 0)
	nameless.Topics[0].Topic = nil
	must(t, r.learnAll(nameless))
	fewer := r.metadata(topic, 1)
	fewer.Topics[0].Partitions = fewer.Topics[0].Partitions[:1]
	must(t, r.learnAll(fewer))
	r.sendBoth(t, topic)
	r.settled(t)
}
