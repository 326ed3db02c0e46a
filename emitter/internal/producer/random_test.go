package producer

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestRandomFaults has leaders that move, brokers that refuse, that append and say otherwise, and connections that are cut, all the
// time. Each record is there once, in order, and acknowledged once.
func TestRandomFaults(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			randomFaults(t, seed)
		})
	}
}

func randomFaults(t *testing.T, seed uint64) {
	c := cluster(t, 3)
	topics := map[string]int{topicName: 3, "small": 4, "single": 1}
	for name, partitions := range topics {
		if name != topicName {
			must(t, c.CreateTopic(name, int32(partitions), map[string]string{"max.message.bytes": "30000"}))
		}
	}
	linger, compression := [...]string{"0", "3"}[seed%2], [...]string{"none", "snappy"}[seed/2%2]
	r := newRigWith(t, c, 300_000, hurried, "compression.type", compression, "linger.ms", linger, "metadata.max.age.ms", "1000",
		"max.request.size", "60000")

	dice := func(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }
	cuts := dice(1)
	r.wire.set(func() cut {
		if cuts.IntN(10) > 0 {
			return whole
		}
		return cut(1 + cuts.IntN(4))
	})
	faults := dice(2)
	type first struct {
		topic     [16]byte
		partition int32
		sequence  int32
	}
	seen := map[first]bool{}
	c.Fault(kfake.Fault{Keys: produce, Err: kerr.MessageTooLarge, Count: -1, When: func(kreq kmsg.Request) bool {
		fresh := true // not of batches that may have been taken already, nor of a single record
		for _, topic := range kreq.(*kmsg.ProduceRequest).Topics {
			for _, p := range topic.Partitions {
				var b kmsg.RecordBatch
				key := first{topic.TopicID, p.Partition, 0}
				if err := b.ReadFrom(p.Records); err == nil {
					key.sequence = b.FirstSequence
				}
				fresh = fresh && b.NumRecords > 1 && !seen[key]
				seen[key] = true
			}
		}
		return fresh && faults.IntN(20) == 0
	}})
	for _, cause := range []*kerr.Error{
		kerr.NotLeaderForPartition, kerr.RequestTimedOut, kerr.NotEnoughReplicas, kerr.NotEnoughReplicasAfterAppend,
		kerr.UnknownTopicOrPartition,
	} {
		c.Fault(kfake.Fault{Keys: produce, Err: cause, Count: -1, When: func(kmsg.Request) bool { return faults.IntN(40) == 0 }})
	}

	var all []*Topic
	for name := range topics {
		all = append(all, r.topic(t, name))
	}
	choice := dice(3)
	for range 200 {
		must(t, r.Room(limited(t)))
		r.Begin(time.Now())
		topic := all[choice.IntN(len(all))]
		for range 1 + choice.IntN(20) {
			size := 1 + choice.IntN(300)
			if choice.IntN(50) == 0 {
				size = choice.IntN(25_000)
			}
			r.append(topic, choice.IntN(len(topic.partitions)), size)
		}
		r.End()
		switch choice.IntN(30) {
		case 0:
			r.flush(t)
		case 1, 2, 3:
			must(t, c.MoveTopicPartition(topic.name, int32(choice.IntN(len(topic.partitions))), int32(choice.IntN(3))))
		}
	}
	r.arrived(t, c, all...)
}
