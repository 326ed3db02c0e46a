package main

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/offset"
)

// A delivery that gives up records which Kafka has not taken must not touch those of the next one: they are for the same
// partition, and an attempt follows within half a second.
func TestI7_NextDeliveryIsNotTouched(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	// The broker is never ready, which is tried again without end.
	cluster.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		produce := req.(*kmsg.ProduceRequest)
		resp := produce.ResponseKind().(*kmsg.ProduceResponse)
		for _, topic := range produce.Topics {
			rt := kmsg.NewProduceResponseTopic()
			rt.Topic, rt.TopicID = topic.Topic, topic.TopicID
			for _, p := range topic.Partitions {
				rp := kmsg.NewProduceResponseTopicPartition()
				rp.Partition, rp.ErrorCode = p.Partition, kerr.NotEnoughReplicas.Code
				rt.Partitions = append(rt.Partitions, rp)
			}
			resp.Topics = append(resp.Topics, rt)
		}
		return resp, nil, true
	})
	c := &config.Connector{Name: "c", Prefix: "p", Producer: map[string]string{"bootstrap.servers": cluster.ListenAddrs()[0]}}
	send := func(d emitter.Delivery, pos int64) {
		t.Helper()
		b, err := d.Batch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b.Records = append(b.Records, emitter.Record{Topic: "t", Value: []byte("v"), Offset: offset.Offset{File: "mysql-bin.000001", Pos: pos}})
		if err := d.Deliver(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	first, err := (&deliveries{c: c, log: zap.NewNop()}).open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	send(first, 100)
	time.Sleep(300 * time.Millisecond) // so that it is on its way
	second, err := (&deliveries{c: c, log: zap.NewNop()}).open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	send(second, 100)
	first.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_ = second.Flush(ctx) // it cannot yet
	if err := second.Err(); err != nil {
		t.Fatalf("the next delivery failed with the one before: %v", err)
	}
}
