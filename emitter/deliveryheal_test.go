package emitter

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tidemark-cdc/tidemark/emitter/kafka"
)

// network makes connections until it is cut.
type network struct {
	mu    sync.Mutex
	cut   error // why there are none; nil: there are
	dials int
	conns []net.Conn
}

func (n *network) dial(ctx context.Context, network, address string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dials++
	if n.cut != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: n.cut}
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err == nil {
		n.conns = append(n.conns, conn)
	}
	return conn, err
}

// set cuts all connections, for nil it lets there be new ones. It says how many were tried since the last call.
func (n *network) set(cut error) (dials int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut, dials, n.dials = cut, n.dials, 0
	for _, conn := range n.conns {
		_ = conn.Close()
	}
	n.conns = nil
	return dials
}

// TestI1_AllBrokersAreAway: the delivery waits with bounded memory, tries again at a pace, says once for each broker that it is away
// and how often it was tried when it is there again, and the offset stays; then everything is there, once and in order. So it is
// when names do not resolve for a while, and when there are no file descriptors left.
func TestI1_AllBrokersAreAway(t *testing.T) {
	for name, cut := range map[string]error{
		"refused": syscall.ECONNREFUSED, "no descriptors": syscall.EMFILE, "no name": &net.DNSError{Err: "no such host", Name: "kafka", IsNotFound: true},
		"name server away": &net.DNSError{Err: "server misbehaving", Name: "kafka", IsTemporary: true}, "no route": syscall.EHOSTUNREACH,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cluster(t)
			core, logs := observer.New(zap.InfoLevel)
			wire := &network{}
			client, err := kafka.NewClient(kafka.ClientConfig{
				Properties: map[string]string{"bootstrap.servers": strings.Join(c.ListenAddrs(), ",")}, Dial: wire.dial, Log: zap.New(core),
			})
			must(t, err)
			defer client.Close()
			d := NewAtLeastOnce(client, DeliveryConfig{Window: 64})
			defer d.Close()
			add(t, d, keyFor(0, 0), "0", 1)
			add(t, d, keyFor(1, 0), "0", 2)
			flush(t, d)
			wire.set(cut)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			sent := 2
			for err == nil {
				sent++
				add(t, d, keyFor(sent%2, 0), fmt.Sprint(sent), int64(sent))
				err = d.Deliver(ctx)
			}
			if ctx.Err() == nil {
				t.Fatal(err)
			}
			if sent > 70 {
				t.Errorf("%d records are taken", sent)
			}
			if o, _ := d.Safe(); o.Pos != 2 {
				t.Errorf("safe is %d", o.Pos)
			}
			if dials := wire.set(nil); dials < 2 || dials > 120 { // of two producers' connections and the client's own
				t.Errorf("%d connections are tried in 2 s", dials)
			}
			flush(t, d)
			wantSafe(t, d, int64(sent))
			got := consume(t, c, sent)
			for partition, records := range got {
				last := -1
				for _, r := range records {
					var n int
					if _, err := fmt.Sscan(string(r.Value), &n); err != nil || n <= last {
						t.Errorf("partition %d: %d behind %d", partition, n, last)
					}
					last = n
				}
			}
			if n := len(got[0]) + len(got[1]); n != sent {
				t.Errorf("%d records of %d", n, sent)
			}
			said := logs.FilterMessageSnippet("cannot be reached").Len()
			if again := logs.FilterMessageSnippet("can be reached again"); said < 1 || said > 3 || again.Len() > said {
				t.Errorf("said %d times, and %d times the end", said, again.Len())
			}
		})
	}
}

// TestI7_DeletedTopicIsMadeAgain while it is written to: the delivery ends, and the next one begins with the new topic where the
// offset is.
func TestI7_DeletedTopicIsMadeAgain(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	client, err := kafka.NewClient(kafka.ClientConfig{Properties: map[string]string{"bootstrap.servers": strings.Join(c.ListenAddrs(), ",")}})
	must(t, err)
	defer client.Close()
	topics := kafka.NewTopics(client, kafka.TopicSpec{Create: true, Partitions: 2, ReplicationFactor: 1})
	d := NewAtLeastOnce(client, DeliveryConfig{Topics: topics})
	defer d.Close()
	add(t, d, keyFor(0, 0), "of the old topic", 1)
	flush(t, d)
	must(t, c.DeleteTopic(testTopic))
	add(t, d, keyFor(0, 0), "behind it", 2)
	must(t, d.Deliver(t.Context()))
	select {
	case <-d.Done():
	case <-time.After(30 * time.Second):
		t.Fatal("it waits for ever")
	}
	if err := d.Err(); !kafka.Transient(err) || !strings.Contains(err.Error(), "made anew") {
		t.Error(err)
	}
	if o, _ := d.Safe(); o.Pos != 1 {
		t.Errorf("safe is %d", o.Pos)
	}
	next := NewAtLeastOnce(client, DeliveryConfig{Topics: topics})
	defer next.Close()
	add(t, next, keyFor(0, 0), "behind it", 2)
	flush(t, next)
	if got := consume(t, c, 1); len(got[0]) != 1 || string(got[0][0].Value) != "behind it" {
		t.Errorf("%v", got)
	}
}
