package producer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/tidemark-cdc/tidemark/emitter/internal/kclient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	topicName = "p.db.t"
	patience  = 60 * time.Second // so long that only a hang takes longer
	plenty    = 16 << 20         // of memory
)

var produce = []kmsg.Key{kmsg.Produce}

// newClient makes a client as package kafka does, which imports this one. Its caller closes it.
var newClient func(properties map[string]string, dial func(ctx context.Context, network, address string) (net.Conn, error)) (*kclient.Client, func(), error)

// SetNewClient is for the external tests of the package, which may import package kafka.
func SetNewClient(f func(map[string]string, func(context.Context, string, string) (net.Conn, error)) (*kclient.Client, func(), error)) {
	newClient = f
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// cluster is brokers in this process, and a topic with a partition on each.
func cluster(t testing.TB, brokers int, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{
		kfake.NumBrokers(brokers), kfake.SeedTopics(int32(brokers), topicName),
		kfake.BrokerConfigs(map[string]string{"message.max.bytes": "10000000"}),
	}, opts...)...)
	must(t, err)
	t.Cleanup(c.Close)
	spread(t, c, topicName, brokers)
	return c
}

// spread gives each broker a partition.
func spread(t testing.TB, c *kfake.Cluster, topic string, partitions int) {
	t.Helper()
	for p := range int32(partitions) {
		must(t, c.MoveTopicPartition(topic, p, p%int32(len(c.ListenAddrs()))))
	}
}

// seeds is where a cluster is.
type seeds interface{ ListenAddrs() []string }

// rig is a producer with all that it has told.
type rig struct {
	*Producer
	closeClient func()
	wire        *wire
	failed      chan error

	mu    sync.Mutex
	acked map[uint64]int // by group
	told  []string       // of brokers that misbehave

	sent int
	next map[*partition]int
}

func newRig(t testing.TB, c seeds, maxBytes int, properties ...string) *rig {
	t.Helper()
	return newRigWith(t, c, maxBytes, func(*Config) {}, properties...)
}

// newRigWith is one whose producer has more set.
func newRigWith(t testing.TB, c seeds, maxBytes int, set func(*Config), properties ...string) *rig {
	t.Helper()
	p := map[string]string{"bootstrap.servers": strings.Join(c.ListenAddrs(), ",")}
	for i := 0; i < len(properties); i += 2 {
		p[properties[i]] = properties[i+1]
	}
	r := &rig{wire: &wire{}, failed: make(chan error, 1), acked: make(map[uint64]int), next: make(map[*partition]int)}
	client, closeClient, err := newClient(p, r.wire.dial)
	must(t, err)
	r.closeClient = closeClient
	client.Misbehaves = func(_ string, err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.told = append(r.told, err.Error())
	}
	cfg := Config{
		Client: client, MaxBytes: maxBytes, Failed: func(err error) { r.failed <- err },
		Acked: func(parts []Part) {
			r.mu.Lock()
			defer r.mu.Unlock()
			for _, part := range parts {
				r.acked[part.Group] += part.Count
			}
		},
	}
	set(&cfg)
	r.Producer = New(cfg)
	t.Cleanup(func() {
		r.Close()
		r.closeClient()
	})
	return r
}

// hurried has a producer pause between attempts for so short a time that a test in which most requests fail is not one of pauses.
func hurried(cfg *Config) { cfg.firstPause, cfg.mostPause = 5*time.Millisecond, 50*time.Millisecond }

// begin is a cluster, a producer with plenty of memory and the cluster's topic.
func begin(t testing.TB, brokers int, properties ...string) (*kfake.Cluster, *rig, *Topic) {
	t.Helper()
	c := cluster(t, brokers)
	r := newRig(t, c, plenty, properties...)
	return c, r, r.topic(t, topicName)
}

func limited(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func (r *rig) topic(t testing.TB, name string) *Topic {
	t.Helper()
	topic, err := r.Topic(limited(t), name)
	must(t, err)
	return topic
}

// send appends n records, whose values count up in their partition.
func (r *rig) send(t testing.TB, topic *Topic, partition, n int, size int) {
	t.Helper()
	must(t, r.Room(limited(t)))
	r.Begin(time.Now())
	for range n {
		r.append(topic, partition, size)
	}
	r.End()
}

// sendBoth sends three records to each of the first two partitions.
func (r *rig) sendBoth(t testing.TB, topic *Topic) {
	t.Helper()
	r.send(t, topic, 0, 3, 10)
	r.send(t, topic, 1, 3, 10)
}

// append is to be called between Begin and End.
func (r *rig) append(topic *Topic, partition, size int) {
	r.sent++
	part := topic.partitions[partition]
	i := r.next[part]
	r.next[part] = i + 1
	value := append(strconv.AppendInt(nil, int64(i), 10), '/')
	for len(value) < size {
		value = strconv.AppendInt(value, int64(i+len(value))*7919, 10) // of little use to compress
	}
	r.Append(topic, partition, &Record{
		Key: fmt.Appendf(nil, "k%d", i), Value: value, Headers: NoHeaders,
		Group: uint64(r.sent / 10), File: "mysql-bin.000001", Pos: int64(i),
	})
}

func (r *rig) flush(t testing.TB) {
	t.Helper()
	must(t, r.Flush(limited(t)))
	select {
	case err := <-r.failed:
		t.Fatal(err)
	default:
	}
}

// settled checks that nothing is left of n records but their acknowledgements.
func (r *rig) settled(t testing.TB) {
	t.Helper()
	r.flush(t)
	total := 0
	r.mu.Lock()
	for group, n := range r.acked {
		total += n
		if want := min(r.sent, int(group)*10+9) - max(1, int(group)*10) + 1; n != want {
			t.Errorf("group %d: %d acknowledgements, want %d", group, n, want)
		}
	}
	r.mu.Unlock()
	if total != r.sent {
		t.Errorf("%d of %d records are acknowledged", total, r.sent)
	}
	r.Producer.mu.Lock()
	defer r.Producer.mu.Unlock()
	if r.memory.used != 0 || r.pending != 0 || r.flushing != 0 {
		t.Errorf("%d bytes of %d batches are left, and %d callers of Flush", r.memory.used, r.pending, r.flushing)
	}
	kept := 0
	for class, pieces := range r.memory.free {
		for _, p := range pieces {
			if cap(p) != sizeOf(class) || len(p) != 0 {
				t.Errorf("a piece of %d bytes among those of %d, %d are used", cap(p), sizeOf(class), len(p))
			}
			kept += cap(p)
		}
	}
	for _, b := range r.memory.spare {
		if len(b.pieces) != 0 || len(b.parts) != 0 || b.head != (head{}) || b.size != 0 || b.sealed || b.closed {
			t.Errorf("a spare batch is %+v", b)
		}
	}
	if kept != r.memory.kept {
		t.Errorf("%d bytes are kept, said are %d", kept, r.memory.kept)
	}
}

// arrived checks that topics hold all that was sent to them, and that nothing else is left of it.
func (r *rig) arrived(t testing.TB, c *kfake.Cluster, topics ...*Topic) {
	t.Helper()
	r.settled(t)
	for _, topic := range topics {
		for i, part := range topic.partitions {
			holds(t, c, topic.name, i, r.next[part])
		}
	}
}

// total is how many records are acknowledged.
func (r *rig) total() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, acked := range r.acked {
		n += acked
	}
	return n
}

// fails waits for the error that ends the producer.
func (r *rig) fails(t testing.TB) error {
	t.Helper()
	select {
	case err := <-r.failed:
		<-r.Context().Done()
		return err
	case <-limited(t).Done():
		t.Fatal("does not fail")
		return nil
	}
}

// log reads what a partition holds.
func log(t testing.TB, c *kfake.Cluster, topic string, partition int32) []*kgo.Record {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
		topic: {partition: kgo.NewOffset().AtStart()},
	}))
	must(t, err)
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(limited(t), topic)
	must(t, err)
	end, _ := ends.Lookup(topic, partition)
	must(t, end.Err)
	var got []*kgo.Record
	for int64(len(got)) < end.Offset {
		fetches := cl.PollFetches(limited(t))
		must(t, fetches.Err0())
		got = append(got, fetches.Records()...)
	}
	return got
}

// holds checks that a partition has the first n records that were sent to it, each once and in order.
func holds(t testing.TB, c *kfake.Cluster, topic string, partition, n int) {
	t.Helper()
	got := log(t, c, topic, int32(partition))
	for i, r := range got {
		value, _, _ := strings.Cut(string(r.Value), "/")
		if value != strconv.Itoa(i) || string(r.Key) != "k"+value {
			t.Errorf("%s-%d: record %d is %s", topic, partition, i, value)
			break
		}
	}
	if len(got) != n {
		t.Errorf("%s-%d: %d records, want %d", topic, partition, len(got), n)
	}
}

// wire makes connections that can be cut at a produce request.
type wire struct {
	mu    sync.Mutex
	plan  func() cut         // of the next produce request; nil: none is cut
	other func(kmsg.Key) cut // of the next request of another kind; nil: none is cut
	cuts  int
	spoil func([]byte) []byte // makes something else of an answer to a produce request; nil: nothing
	left  int                 // answers to be spoilt
	byEnd []bool              // of each produce request: it was written by [Producer.End]
}

// answers spoils the next n answers to produce requests.
func (w *wire) answers(n int, spoil func([]byte) []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spoil, w.left = spoil, n
}

// spoilt is an answer as it is to be read.
func (w *wire) spoilt(answer []byte) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.spoil == nil {
		return answer
	}
	answer = w.spoil(answer)
	if w.left--; w.left == 0 {
		w.spoil = nil
	}
	return answer
}

type cut int

const (
	whole     cut = iota
	before        // nothing is written
	amid          // half is written
	unheard       // the broker has answered, which nobody reads
	untouched     // the broker has it, and the connection is gone at once
)

var errCut = &net.OpError{Op: "write", Net: "tcp", Err: errors.New("cut by the test")}

func (w *wire) set(plan func() cut) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plan = plan
}

func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &cutConn{Conn: c, wire: w}, nil
}

type cutConn struct {
	net.Conn
	wire *wire

	mu       sync.Mutex
	deaf     bool
	produces bool
	unread   []byte
}

// Write is called once for each request.
func (c *cutConn) Write(b []byte) (int, error) {
	how := whole
	if len(b) > 6 && binary.BigEndian.Uint16(b[4:]) == uint16(kmsg.Produce) {
		c.mu.Lock()
		c.produces = true
		c.mu.Unlock()
		c.wire.mu.Lock()
		c.wire.byEnd = append(c.wire.byEnd, bytes.Contains(debug.Stack(), []byte("(*Producer).End(")))
		if c.wire.plan != nil {
			how = c.wire.plan()
		}
		if how != whole {
			c.wire.cuts++
		}
		c.wire.mu.Unlock()
	} else if len(b) > 6 {
		c.wire.mu.Lock()
		if c.wire.other != nil {
			how = c.wire.other(kmsg.Key(binary.BigEndian.Uint16(b[4:])))
		}
		c.wire.mu.Unlock()
	}
	switch how {
	case before:
		c.Close()
		return 0, errCut
	case amid:
		n, _ := c.Conn.Write(b[:len(b)/2])
		c.Close()
		return n, errCut
	case unheard:
		c.mu.Lock()
		c.deaf = true
		c.mu.Unlock()
	case untouched:
		n, err := c.Conn.Write(b)
		c.Close()
		return n, err
	}
	return c.Conn.Write(b)
}

func (c *cutConn) Read(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.unread) > 0 {
		n := copy(b, c.unread)
		c.unread = c.unread[n:]
		return n, nil
	}
	c.mu.Unlock()
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	if c.deaf {
		c.Close()
		return 0, io.EOF
	}
	if c.produces && n > 8 { // an answer comes at once here
		c.unread = c.wire.spoilt(bytes.Clone(b[:n]))
		n = copy(b, c.unread)
		c.unread = c.unread[n:]
	}
	return n, err
}

// cutNext cuts the next n produce requests.
func (w *wire) cutNext(n int, how cut) {
	w.set(func() cut {
		if n--; n >= 0 {
			return how
		}
		return whole
	})
}

// hold keeps the produce requests to a broker until the function returned is called.
func hold(c *kfake.Cluster, node int32) (release func()) {
	wait := make(chan struct{})
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		select {
		case <-wait:
			return nil, nil, false
		default:
		}
		if c.CurrentNode() == node {
			c.SleepControl(func() { <-wait })
		}
		return nil, nil, false
	})
	return sync.OnceFunc(func() { close(wait) })
}

// acknowledgement is the answer to a produce request of which everything is taken.
func acknowledgement(kreq kmsg.Request) *kmsg.ProduceResponse {
	req := kreq.(*kmsg.ProduceRequest)
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	for _, t := range req.Topics {
		answer := kmsg.NewProduceResponseTopic()
		answer.Topic, answer.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			partition := kmsg.NewProduceResponseTopicPartition()
			partition.Partition = p.Partition
			answer.Partitions = append(answer.Partitions, partition)
		}
		resp.Topics = append(resp.Topics, answer)
	}
	return resp
}

// eventually waits for what goroutines bring about.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

// locked looks at the producer.
func (r *rig) locked(is func() bool) func() bool {
	return func() bool {
		r.Producer.mu.Lock()
		defer r.Producer.mu.Unlock()
		return is()
	}
}

func (w *wire) setOther(plan func(kmsg.Key) cut) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.other = plan
}

// cutOther cuts the next request of a kind that is not produce.
func (w *wire) cutOther(key kmsg.Key, how cut) {
	w.setOther(func(k kmsg.Key) cut {
		if k != key {
			return whole
		}
		w.other = nil // its lock is held
		return how
	})
}
