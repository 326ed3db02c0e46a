package emitter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/emitter/kafka"
)

// refuse answers produce requests with records on a partition with an error code.
func refuse(c *kfake.Cluster, partition int32, code int16) {
	c.ControlKey(int16(kmsg.Produce), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		req := kreq.(*kmsg.ProduceRequest)
		resp := req.ResponseKind().(*kmsg.ProduceResponse)
		for _, topic := range req.Topics {
			rt := kmsg.NewProduceResponseTopic()
			rt.Topic, rt.TopicID = topic.Topic, topic.TopicID
			for _, p := range topic.Partitions {
				if p.Partition != partition {
					return nil, nil, false
				}
				rp := kmsg.NewProduceResponseTopicPartition()
				rp.Partition, rp.ErrorCode = p.Partition, code
				rt.Partitions = append(rt.Partitions, rp)
			}
			resp.Topics = append(resp.Topics, rt)
		}
		return resp, nil, true
	})
}

// TestI7_FirstFailureEndsAll refuses a record of one partition: nothing newer is handed over, the safe offset stays
// before it, and the error says which record, why, and what to do.
func TestI7_FirstFailureEndsAll(t *testing.T) {
	c := cluster(t)
	refuse(c, 0, kerr.TopicAuthorizationFailed.Code)
	d := delivery(t, c, DeliveryConfig{})
	add(t, d, keyFor(1, 0), "fine", 1)
	must(t, d.Boundary(t.Context(), at(2)))
	must(t, d.Deliver(t.Context()))
	wantSafe(t, d, 2)
	add(t, d, keyFor(0, 0), "refused", 3)
	must(t, d.Deliver(t.Context()))
	<-d.Done()
	err := d.Err()
	for _, want := range []string{testTopic, "key " + string(keyFor(0, 0)), "mysql-bin.000001:3", "kafka-acls.sh"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %q", want, err)
		}
	}
	if !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Errorf("%v", err)
	}
	if _, got := d.Batch(t.Context()); got != err {
		t.Errorf("Batch: %v", got)
	}
	if got := d.Deliver(t.Context()); got != err {
		t.Errorf("Deliver: %v", got)
	}
	if got := d.Boundary(t.Context(), at(9)); got != err {
		t.Errorf("Boundary: %v", got)
	}
	if got := d.Flush(t.Context()); got != err {
		t.Errorf("Flush: %v", got)
	}
	if o, _ := d.Safe(); o.Pos != 2 {
		t.Errorf("safe is %d", o.Pos)
	}
	if got := consume(t, c, 1); len(got[0]) != 0 || len(got[1]) != 1 {
		t.Errorf("written: %d and %d records", len(got[0]), len(got[1]))
	}
}

// TestI7_OversizedRecord is refused before the producer has it, so that nothing newer, also of the same Deliver, is written.
func TestI7_OversizedRecord(t *testing.T) {
	c := cluster(t)
	d := delivery(t, c, DeliveryConfig{}, "max.request.size", "20000")
	add(t, d, keyFor(0, 0), strings.Repeat("x", 19000), 1)
	flush(t, d)
	add(t, d, keyFor(0, 0), strings.Repeat("x", 20000), 2)
	add(t, d, keyFor(0, 0), "newer", 3)
	err := d.Deliver(t.Context())
	if d.producer.Context().Err() == nil {
		t.Error("the producer goes on")
	}
	if !errors.Is(err, kerr.MessageTooLarge) || !strings.Contains(err.Error(), "max.request.size") ||
		!strings.Contains(err.Error(), "max.message.bytes") || !strings.Contains(err.Error(), testTopic) {
		t.Fatalf("%v", err)
	}
	if got := consume(t, c, 1); len(got[0]) != 1 {
		t.Errorf("%d records are written", len(got[0]))
	}
}

// TestMerge makes one context for all calls with one, and leaves nothing behind in the others.
func TestMerge(t *testing.T) {
	d := delivery(t, cluster(t), DeliveryConfig{})
	first := d.merge(t.Context())
	if d.merge(t.Context()) != first {
		t.Error("made anew")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	second := d.merge(ctx)
	if first.Err() == nil || second.Err() != nil {
		t.Errorf("%v, %v", first.Err(), second.Err())
	}
	d.Close()
	<-second.Done()
	if err := context.Cause(second); err != ErrClosed {
		t.Errorf("%v", err)
	}
}

// TestDeliverEndsWithTheDelivery does not hang in a full window when the record at its head has failed.
func TestDeliverEndsWithTheDelivery(t *testing.T) {
	c := cluster(t)
	wait := make(chan struct{})
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.SleepControl(func() { <-wait })
		return nil, nil, false
	})
	d := delivery(t, c, DeliveryConfig{Window: 4})
	for i := range 20 {
		add(t, d, keyFor(0, 0), fmt.Sprint(i), int64(i+1))
	}
	time.AfterFunc(50*time.Millisecond, d.Close)
	if err := d.Deliver(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
	close(wait)
}

// TestNoProducerID ends the delivery with the right that is missing.
func TestNoProducerID(t *testing.T) {
	c := cluster(t)
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, TopLevel: true, Err: kerr.ClusterAuthorizationFailed, Count: -1})
	d := delivery(t, c, DeliveryConfig{})
	<-d.Done()
	if err := d.Err(); !errors.Is(err, kerr.ClusterAuthorizationFailed) || !strings.Contains(err.Error(), "IdempotentWrite") {
		t.Errorf("%v", err)
	}
}

// TestI7_TopicMadeAnew ends the delivery so that another one begins at the stored offset.
func TestI7_TopicMadeAnew(t *testing.T) {
	c := cluster(t)
	d := delivery(t, c, DeliveryConfig{})
	add(t, d, keyFor(1, 0), "of the old topic", 1)
	flush(t, d)
	must(t, c.DeleteTopic(testTopic))
	must(t, c.CreateTopic(testTopic, 1, nil))
	add(t, d, keyFor(1, 0), "not acknowledged", 2)
	must(t, d.Deliver(t.Context()))
	<-d.Done()
	if err := d.Err(); !kafka.Transient(err) || !strings.Contains(err.Error(), testTopic) {
		t.Errorf("%v", err)
	}
	if o, _ := d.Safe(); o.Pos != 1 {
		t.Errorf("safe is %d", o.Pos)
	}
	d = delivery(t, c, DeliveryConfig{})
	add(t, d, keyFor(1, 0), "again", 2)
	flush(t, d)
	wantSafe(t, d, 2)
	if got := consume(t, c, 1); len(got[0]) != 1 || string(got[0][0].Value) != "again" {
		t.Errorf("%v", got)
	}
}
