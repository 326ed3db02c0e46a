package producer

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/emitter/internal/kclient"
)

// TestLateRequest of a producer that has ended gets in before the first record of the next one, and not behind it.
func TestLateRequest(t *testing.T) {
	c := cluster(t, 1)
	line := new(kclient.Line)
	follow := func() *rig {
		return newRigWith(t, c, plenty, func(cfg *Config) { cfg.Client.Line = line })
	}
	first := follow()
	first.send(t, first.topic(t, topicName), 0, 2, 10)
	first.flush(t)
	late := oneBatch(first.id, first.epoch, 2, 0)
	first.Close()

	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	must(t, err)
	defer cl.Close()
	arrives := func(batch []byte) error {
		req := kmsg.NewPtrProduceRequest()
		req.Acks, req.TimeoutMillis = -1, 1000
		topic := kmsg.NewProduceRequestTopic()
		topic.Topic, topic.TopicID = topicName, c.TopicInfo(topicName).TopicID
		part := kmsg.NewProduceRequestTopicPartition()
		part.Records = batch
		topic.Partitions = append(topic.Partitions, part)
		req.Topics = append(req.Topics, topic)
		kresp, err := cl.Broker(0).Request(limited(t), req)
		must(t, err)
		return kerr.ErrorForCode(kresp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode)
	}
	second := follow()
	topic := second.topic(t, topicName)
	must(t, second.Ready(limited(t)))
	if second.id != first.id || second.epoch != first.epoch+1 {
		t.Fatalf("id %d epoch %d, and then %d epoch %d", first.id, first.epoch, second.id, second.epoch)
	}
	must(t, arrives(late))
	second.send(t, topic, 0, 3, 10)
	second.flush(t)
	if err := arrives(oneBatch(first.id, first.epoch, 3, 0)); !errors.Is(err, kerr.InvalidProducerEpoch) {
		t.Errorf("%v", err)
	}
	third := follow() // while the second goes on
	must(t, third.Ready(limited(t)))
	if third.id == second.id {
		t.Error("two producers have one id")
	}
	if got := len(log(t, c, topicName, 0)); got != 6 {
		t.Errorf("%d records", got)
	}
}

// TestFollowWaits for the cluster like any producer.
func TestFollowWaits(t *testing.T) {
	c := cluster(t, 1)
	faults := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, Err: kerr.CoordinatorLoadInProgress, Count: 2})
	r := newRigWith(t, c, plenty, func(cfg *Config) { cfg.Client.Line = new(kclient.Line) })
	must(t, r.Ready(limited(t)))
	if faults.Hits() != 2 {
		t.Errorf("%d faults", faults.Hits())
	}
}
