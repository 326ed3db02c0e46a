package producer

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
)

// TestSplit has a topic that takes less than the producer's batches.
func TestSplit(t *testing.T) {
	for _, compression := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		t.Run(compression, func(t *testing.T) {
			t.Parallel()
			c := cluster(t, 1)
			must(t, c.CreateTopic("small", 1, map[string]string{"max.message.bytes": "2000"}))
			r := newRig(t, c, plenty, "compression.type", compression, "linger.ms", "60000")
			topic := r.topic(t, "small")
			r.send(t, topic, 0, 100, 500)
			r.arrived(t, c, topic)

			r.send(t, topic, 0, 37, 20)
			r.send(t, topic, 0, 1, 9000)
			r.send(t, topic, 0, 20, 20)
			_ = r.Flush(limited(t))
			refused, _ := errors.AsType[*Refused](r.fails(t))
			if refused == nil || string(refused.Key) != "k137" || refused.Pos != 137 || !errors.Is(refused, kerr.MessageTooLarge) ||
				refused.Size < 9000 || refused.Size > 9100 {
				t.Errorf("%+v", refused)
			}
			r.Close()
			holds(t, c, "small", 0, 137)
		})
	}
}

// TestSplitForSegments is what else may be too small for a batch.
func TestSplitForSegments(t *testing.T) {
	c, r, topic := begin(t, 1, "linger.ms", "60000")
	faults := c.Fault(kfake.Fault{Keys: produce, Err: kerr.RecordListTooLarge, Count: 3})
	r.send(t, topic, 0, 50, 10)
	r.arrived(t, c, topic)
	if faults.Hits() != 3 {
		t.Errorf("%d refusals", faults.Hits())
	}
}

// TestSplitMeetsFaults cuts the connection at each batch of which a half is sent.
func TestSplitMeetsFaults(t *testing.T) {
	c := cluster(t, 1)
	must(t, c.CreateTopic("small", 1, map[string]string{"max.message.bytes": "2000"}))
	r := newRigWith(t, c, plenty, hurried, "linger.ms", "60000")
	topic := r.topic(t, "small")
	i := 0
	r.wire.set(func() cut {
		i++
		return [...]cut{whole, unheard, whole, amid}[i%4]
	})
	r.send(t, topic, 0, 20, 500)
	r.arrived(t, c, topic)
}
