package producer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"weak"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/tidemark-cdc/tidemark/emitter/internal/kclient"
)

// TestWhatWaitingHeals answers with errors for a while, some of which a broker gives though it has appended the batch.
func TestWhatWaitingHeals(t *testing.T) {
	for _, cause := range []*kerr.Error{
		kerr.NotLeaderForPartition, kerr.LeaderNotAvailable, kerr.UnknownTopicOrPartition, kerr.UnknownTopicID,
		kerr.RequestTimedOut, kerr.NotEnoughReplicas, kerr.NotEnoughReplicasAfterAppend, kerr.KafkaStorageError,
		kerr.CorruptMessage, kerr.NetworkException,
	} {
		t.Run(cause.Message, func(t *testing.T) {
			t.Parallel()
			c, r, topic := begin(t, 2)
			faults := c.Fault(kfake.Fault{Keys: produce, Partitions: []int32{0}, Err: cause, Count: 2})
			for range 5 {
				r.sendBoth(t, topic)
			}
			r.arrived(t, c, topic)
			if faults.Hits() != 2 {
				t.Errorf("%d answers were faulty", faults.Hits())
			}
		})
	}
}

// TestCutConnections end before, while and after a batch is written, and after its broker has appended it.
func TestCutConnections(t *testing.T) {
	for name, how := range map[string]cut{"before": before, "amid": amid, "unheard": unheard, "untouched": untouched} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, r, topic := begin(t, 1)
			r.send(t, topic, 0, 1, 10)
			r.flush(t)
			r.wire.cutNext(3, how)
			for range 3 {
				r.send(t, topic, 0, 3, 10)
				r.flush(t)
			}
			r.arrived(t, c, topic)
			if r.wire.cuts < 3 {
				t.Errorf("%d requests were cut", r.wire.cuts)
			}
		})
	}
}

// TestNoAnswer has brokers whose answers do not tell of the batch, or in two ways.
func TestNoAnswer(t *testing.T) {
	answers := map[string]func(*kmsg.ProduceResponse){
		"without the topic":     func(r *kmsg.ProduceResponse) { r.Topics = nil },
		"without the partition": func(r *kmsg.ProduceResponse) { r.Topics[0].Partitions = nil },
		"of another partition":  func(r *kmsg.ProduceResponse) { r.Topics[0].Partitions[0].Partition = 7 },
		"of another topic":      func(r *kmsg.ProduceResponse) { r.Topics[0].Topic, r.Topics[0].TopicID = "other", [16]byte{1} },
		"that is repeated": func(r *kmsg.ProduceResponse) {
			t := &r.Topics[0]
			t.Partitions = append(t.Partitions, t.Partitions[0])
			t.Partitions[0].ErrorCode = kerr.NotLeaderForPartition.Code
		},
	}
	for name, spoil := range answers {
		for _, versions := range []*kversion.Versions{nil, kversion.V3_0_0()} {
			t.Run(fmt.Sprintf("%s/by name %v", name, versions != nil), func(t *testing.T) {
				t.Parallel()
				var opts []kfake.Opt
				if versions != nil {
					opts = append(opts, kfake.MaxVersions(versions))
				}
				c := cluster(t, 1, opts...)
				r := newRig(t, c, plenty)
				topic := r.topic(t, topicName)
				c.ControlKey(int16(kmsg.Produce), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
					resp := acknowledgement(kreq)
					spoil(resp)
					return resp, nil, true
				})
				r.send(t, topic, 0, 5, 10)
				r.arrived(t, c, topic)
			})
		}
	}
}

// TestOldBrokers have no ids of topics, or do not take them.
func TestOldBrokers(t *testing.T) {
	for _, versions := range []*kversion.Versions{kversion.V2_1_0(), kversion.V2_8_0(), kversion.V4_0_0()} {
		c := cluster(t, 2, kfake.MaxVersions(versions))
		r := newRig(t, c, plenty)
		topic := r.topic(t, topicName)
		r.wire.cutNext(2, unheard)
		for range 5 {
			r.sendBoth(t, topic)
		}
		r.arrived(t, c, topic)
	}
}

// TestOldMetadata has a topic's id from no broker, as while brokers are upgraded one after the other.
func TestOldMetadata(t *testing.T) {
	c, r, topic := begin(t, 1)
	r.Producer.mu.Lock()
	topic.id = [16]byte{}
	r.Producer.mu.Unlock()
	faults := c.Fault(kfake.Fault{Keys: produce, Observe: true, Count: -1, When: func(req kmsg.Request) bool {
		return req.GetVersion() == firstByID-1
	}})
	r.send(t, topic, 0, 3, 10)
	r.arrived(t, c, topic)
	if faults.Hits() != 1 {
		t.Errorf("%d requests with names", faults.Hits())
	}
}

// TestProducerID is asked for until there is one, unless it is refused.
func TestProducerID(t *testing.T) {
	c := cluster(t, 1)
	ids := []kmsg.Key{kmsg.InitProducerID}
	faults := c.Fault(kfake.Fault{Keys: ids, TopLevel: true, Err: kerr.CoordinatorLoadInProgress, Count: 2})
	r := newRig(t, c, plenty)
	topic := r.topic(t, topicName)
	r.send(t, topic, 0, 3, 10)
	r.arrived(t, c, topic)
	if faults.Hits() != 2 {
		t.Errorf("refused %d times", faults.Hits())
	}
	c.Fault(kfake.Fault{Keys: ids, TopLevel: true, Err: kerr.ClusterAuthorizationFailed, Count: -1})
	r = newRig(t, c, plenty)
	if err := r.fails(t); !errors.Is(err, kerr.ClusterAuthorizationFailed) {
		t.Errorf("%v", err)
	}
}

// TestClosedClient is what no waiting heals.
func TestClosedClient(t *testing.T) {
	_, r, topic := begin(t, 1)
	r.send(t, topic, 0, 1, 10)
	r.flush(t)
	r.closeClient()
	r.send(t, topic, 0, 1, 10)
	if err := r.fails(t); !errors.Is(err, kgo.ErrClientClosed) {
		t.Errorf("%v", err)
	}
}

// TestThrottled has a broker that asks for a pause, which it gets.
func TestThrottled(t *testing.T) {
	const pause = 150 * time.Millisecond
	c, r, topic := begin(t, 1)
	var asked []time.Time
	c.ControlKey(int16(kmsg.Produce), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		asked = append(asked, time.Now())
		resp := acknowledgement(kreq)
		resp.ThrottleMillis = int32(pause.Milliseconds())
		return resp, nil, true
	})
	for range 3 {
		r.send(t, topic, 0, 3, 10)
		r.flush(t)
	}
	r.settled(t)
	for i := range asked {
		if i > 0 && asked[i].Sub(asked[i-1]) < pause {
			t.Errorf("request %d came after %s", i, asked[i].Sub(asked[i-1]))
		}
	}
	if len(asked) != 3 {
		t.Errorf("%d requests", len(asked))
	}
}

// TestClose at any moment ends everything, which TestMain looks at.
func TestClose(t *testing.T) {
	c := cluster(t, 2)
	for i := range 30 {
		r := newRig(t, c, 50_000)
		if i%3 == 1 { // no answer is heard at all
			r.wire.cutNext(1000, unheard)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			topic, err := r.Topic(r.Context(), topicName)
			if err != nil {
				return
			}
			for n := range 10 * i {
				if r.Room(r.Context()) != nil {
					return
				}
				r.Begin(time.Now())
				r.append(topic, n%2, 1000)
				r.End()
				if n == 5*i {
					go r.Stop()
				}
			}
		}()
		if i%3 == 0 {
			<-done
		}
		r.Close()
		<-done
		must(t, r.Flush(t.Context()))
		r.fail(errCut) // is of no interest any more
		select {
		case err := <-r.failed:
			t.Errorf("%v", err)
		default:
		}
	}
}

// TestBrokenAnswers end the connection, and what was under way goes over another one.
func TestBrokenAnswers(t *testing.T) {
	for name, spoil := range map[string]func(answer []byte) []byte{
		"to another request":    func(b []byte) []byte { b[7]++; return b },
		"twice":                 func(b []byte) []byte { return append(b, b...) },
		"too short":             func([]byte) []byte { return []byte{0, 0, 0, 3, 0, 0, 0} },
		"too long":              func([]byte) []byte { return []byte("HTTP/1.1 400 Bad Request\r\n\r\n") },
		"without an end":        func(b []byte) []byte { return append([]byte{0, 0, 0, 9}, b[4:13]...) },
		"with tags without end": func(b []byte) []byte { b[8] = 0x7f; return b },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, r, topic := begin(t, 1)
			r.send(t, topic, 0, 1, 10)
			r.flush(t)
			first := r.connected(topic)
			r.wire.answers(2, spoil)
			for range 3 {
				r.send(t, topic, 0, 3, 10)
				r.flush(t)
			}
			eventually(t, "both are spoilt", func() bool {
				r.wire.mu.Lock()
				defer r.wire.mu.Unlock()
				return r.wire.spoil == nil
			})
			r.send(t, topic, 0, 3, 10)
			r.arrived(t, c, topic)
			if r.connected(topic) == first {
				t.Error("the connection goes on")
			}
			if len(r.told) != 1 { // not of the second one, so soon
				t.Errorf("told %q", r.told)
			}
		})
	}
}

// connected is the connection to the leader of a topic's first partition.
func (r *rig) connected(topic *Topic) *connection {
	r.Producer.mu.Lock()
	defer r.Producer.mu.Unlock()
	return topic.partitions[0].broker.conn
}

// TestSilentBroker is given up, and what it may have is sent once more, whether the connection was looked after before or not.
func TestSilentBroker(t *testing.T) {
	for _, looked := range []bool{false, true} {
		c, r, topic := begin(t, 1)
		r.cfg.Client.Timeout = 200*time.Millisecond - overhead
		r.send(t, topic, 0, 1, 10)
		r.flush(t)
		first := r.connected(topic)
		if looked {
			first.look()
		}
		release := hold(c, 0)
		r.send(t, topic, 0, 3, 10)
		eventually(t, "under way", func() bool {
			first.mu.Lock()
			defer first.mu.Unlock()
			first.used = time.Now().Add(time.Hour) // what is sent later does not put it off
			return len(first.sent) > 0 || first.err != nil
		})
		eventually(t, "it ends", func() bool { return r.connected(topic) != first })
		first.mu.Lock()
		err := first.err
		first.mu.Unlock()
		if !errors.Is(err, os.ErrDeadlineExceeded) || !strings.Contains(err.Error(), "no answer within 200ms") {
			t.Errorf("%v", err)
		}
		release()
		r.arrived(t, c, topic)
		if len(r.told) != 1 || !strings.Contains(r.told[0], "no answer within 200ms") {
			t.Errorf("told %q", r.told)
		}
	}
}

// TestIdleConnection ends quietly, at its broker's or our own wish, and there is a new one for what comes then.
func TestIdleConnection(t *testing.T) {
	for name, end := range map[string]func(*kfake.Cluster, *connection){
		"the broker's": func(_ *kfake.Cluster, conn *connection) { _ = conn.conn.(*cutConn).Conn.(*net.TCPConn).CloseRead() },
		"our own": func(_ *kfake.Cluster, conn *connection) {
			conn.mu.Lock()
			conn.idle = 0
			conn.mu.Unlock()
			conn.look()
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, r, topic := begin(t, 1)
			r.send(t, topic, 0, 1, 10)
			r.flush(t)
			conn := r.connected(topic)
			end(c, conn)
			eventually(t, "it ends", func() bool { return r.connected(topic) == nil })
			r.send(t, topic, 0, 3, 10)
			r.arrived(t, c, topic)
			if now := r.connected(topic); now == nil || now == conn {
				t.Error("no new one")
			}
			if len(r.told) != 0 {
				t.Errorf("told %q", r.told)
			}
		})
	}
}

// TestUsedConnectionStays when it is looked after.
func TestUsedConnectionStays(t *testing.T) {
	c, r, topic := begin(t, 1)
	r.send(t, topic, 0, 1, 10)
	r.flush(t)
	conn := r.connected(topic)
	for range 3 {
		conn.look()
		r.send(t, topic, 0, 1, 10)
		conn.look()
		r.flush(t)
		conn.mu.Lock()
		conn.used = conn.used.Add(-conn.idle)
		conn.mu.Unlock()
		r.send(t, topic, 0, 1, 10) // in the last moment
		r.flush(t)
		conn.look()
	}
	r.arrived(t, c, topic)
	if r.connected(topic) != conn {
		t.Error("it has ended")
	}
}

// TestFewAreSentAtOnce by the goroutine that brings them, unless something is under way; many, by the broker's.
func TestFewAreSentAtOnce(t *testing.T) {
	c, r, topic := begin(t, 1)
	b := topic.partitions[0].broker
	send := func(size, requests int) (byEnd bool) {
		r.wire.mu.Lock()
		r.wire.byEnd = nil
		r.wire.mu.Unlock()
		r.Begin(time.Now())
		b.requests += requests
		r.append(topic, 0, size)
		r.End()
		eventually(t, "it is acknowledged", r.locked(func() bool { return r.pending == 0 }))
		r.Producer.mu.Lock()
		b.requests -= requests
		r.Producer.mu.Unlock()
		if len(r.wire.byEnd) != 1 {
			t.Errorf("%d requests", len(r.wire.byEnd))
		}
		return slices.Contains(r.wire.byEnd, true)
	}
	if send(10, 0) {
		t.Error("the caller of End has connected")
	}
	eventually(t, "few are sent at once", func() bool { return send(1000, 0) }) // when the broker's goroutine has come to rest
	if send(atOnce, 0) || send(10, 1) {
		t.Error("many, or few while others are under way, are sent at once")
	}
	r.arrived(t, c, topic)
}

// connects puts something between the producer and its new connections. No records may have been sent.
func (r *rig) connects(f func(connect func() (*kclient.Connection, error)) (*kclient.Connection, error)) {
	connect := r.cfg.Client.Connect
	r.cfg.Client.Connect = func(ctx context.Context, address string) (*kclient.Connection, error) {
		return f(func() (*kclient.Connection, error) { return connect(ctx, address) })
	}
}

// TestBrokersThatAreTooOld do not know today's record batches, and do not learn them.
func TestBrokersThatAreTooOld(t *testing.T) {
	_, r, topic := begin(t, 1)
	r.connects(func(connect func() (*kclient.Connection, error)) (*kclient.Connection, error) {
		made, err := connect()
		if err == nil {
			made.Produce = firstOfBatches - 1
		}
		return made, err
	})
	r.send(t, topic, 0, 1, 10)
	if err := r.fails(t); !errors.Is(err, kerr.UnsupportedVersion) || !strings.Contains(err.Error(), "0.11") {
		t.Errorf("%v", err)
	}
}

// TestPlainConnections get the pieces of a request as they lie in memory.
func TestPlainConnections(t *testing.T) {
	for _, compression := range []string{"none", "lz4"} {
		c := cluster(t, 2)
		r := newRig(t, c, plenty, "compression.type", compression)
		client, closed, err := newClient(map[string]string{
			"bootstrap.servers": strings.Join(c.ListenAddrs(), ","), "compression.type": compression,
		}, nil)
		must(t, err)
		t.Cleanup(closed)
		r.Close()
		acked := r.cfg.Acked
		r.Producer = New(Config{Client: client, MaxBytes: plenty, Acked: acked, Failed: r.cfg.Failed})
		t.Cleanup(r.Producer.Close)
		topic := r.topic(t, topicName)
		for i := range 300 {
			r.send(t, topic, i%2, 1+i%50, 1+i*i%7000)
		}
		r.arrived(t, c, topic)
		if _, ok := r.connected(topic).conn.(*net.TCPConn); !ok {
			t.Errorf("%T", r.connected(topic).conn)
		}
	}
}

// TestErrorsOfTheConnection with codes that would mean something in an answer.
func TestErrorsOfTheConnection(t *testing.T) {
	c, r, topic := begin(t, 1)
	codes := []error{kerr.DuplicateSequenceNumber, kerr.MessageTooLarge, kerr.TopicAuthorizationFailed}
	r.connects(func(connect func() (*kclient.Connection, error)) (*kclient.Connection, error) {
		if len(codes) == 0 {
			return connect()
		}
		code := codes[0]
		codes = codes[1:]
		return nil, fmt.Errorf("asking for the versions of its requests: %w", code)
	})
	r.send(t, topic, 0, 5, 10)
	r.arrived(t, c, topic)
}

// TestBrokerThatIsAway is not asked again for each of its partitions.
func TestBrokerThatIsAway(t *testing.T) {
	c := cluster(t, 1)
	must(t, c.CreateTopic("many", 100, nil))
	r := newRig(t, c, plenty)
	topic := r.topic(t, "many")
	var tries atomic.Int64
	start := time.Now()
	r.connects(func(connect func() (*kclient.Connection, error)) (*kclient.Connection, error) {
		tries.Add(1)
		if time.Since(start) > time.Second {
			return connect()
		}
		return nil, errCut
	})
	for i := range topic.partitions {
		r.send(t, topic, i, 1, 10)
		time.Sleep(time.Millisecond)
	}
	r.settled(t)
	if n, most := tries.Load(), int64(time.Since(start)/firstPause)+1; n > most {
		t.Errorf("%d tries to connect, want at most %d", n, most)
	}
}

// TestBrokersSwapAddresses while they restart: who connects before it is told is connected to the other one, which leads nothing
// that it is asked for.
func TestBrokersSwapAddresses(t *testing.T) {
	c, r, topic := begin(t, 2)
	r.Producer.mu.Lock()
	r.addresses[0], r.addresses[1] = r.addresses[1], r.addresses[0]
	r.Producer.mu.Unlock()
	for range 3 {
		r.sendBoth(t, topic)
	}
	r.arrived(t, c, topic)
}

// TestEndedConnections end by themselves when nothing is sent, and leave nothing behind.
func TestEndedConnections(t *testing.T) {
	c, r, topic := begin(t, 1)
	r.cfg.Client.Idle = 5 * time.Millisecond
	var ended []weak.Pointer[connection]
	for range 100 {
		r.send(t, topic, 0, 1, 10)
		r.flush(t)
		if conn := r.connected(topic); conn != nil {
			ended = append(ended, weak.Make(conn))
		}
		eventually(t, "it ends", func() bool { return r.connected(topic) == nil })
	}
	r.arrived(t, c, topic)
	if len(ended) < 50 {
		t.Errorf("only %d connections", len(ended))
	}
	eventually(t, "they are gone", func() bool {
		runtime.GC()
		return !slices.ContainsFunc(ended, func(p weak.Pointer[connection]) bool { return p.Value() != nil })
	})
}

// slowToClose is a connection like one with TLS whose other side reads no more.
type slowToClose struct {
	net.Conn
	release chan struct{}
}

func (c *slowToClose) Close() error {
	<-c.release
	return c.Conn.Close()
}

// TestConnectionThatIsSlowToClose is not waited for.
func TestConnectionThatIsSlowToClose(t *testing.T) {
	c, r, topic := begin(t, 1)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	r.connects(func(connect func() (*kclient.Connection, error)) (*kclient.Connection, error) {
		made, err := connect()
		if err == nil {
			made.Conn = &slowToClose{made.Conn, release}
		}
		return made, err
	})
	r.send(t, topic, 0, 1, 10)
	r.flush(t)
	answer := hold(c, 0)
	r.send(t, topic, 0, 3, 10)
	first := r.connected(topic)
	go first.end(errCut)
	eventually(t, "it is not used any more", func() bool { return r.connected(topic) != first })
	answer()
	r.flush(t)
	r.send(t, topic, 0, 3, 10)
	r.arrived(t, c, topic)
}

// TestUnsentIsDiscarded when a producer ends whose request was not answered: the system does not go on sending it.
func TestUnsentIsDiscarded(t *testing.T) {
	_, r, topic := begin(t, 1)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	r.connects(func(connect func() (*kclient.Connection, error)) (*kclient.Connection, error) {
		made, err := connect()
		must(t, err)
		made.Conn.Close()
		made.Conn, err = net.Dial("tcp", l.Addr().String())
		return made, err
	})
	r.send(t, topic, 0, 1, 10)
	conn, err := l.Accept()
	must(t, err)
	defer conn.Close()
	_, err = conn.Read(make([]byte, 1))
	must(t, err)
	r.Close()
	must(t, conn.SetReadDeadline(time.Now().Add(patience)))
	if _, err := io.Copy(io.Discard, conn); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%v", err)
	}
}
