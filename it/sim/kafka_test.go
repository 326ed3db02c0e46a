package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

const (
	brokers      = 3
	partitions   = 3
	prefix       = "p"
	offsetsTopic = "offsets"
	locksTopic   = "offsets-locks"
)

var (
	errRefused = os.NewSyscallError("connect", syscall.ECONNREFUSED)
	errReset   = os.NewSyscallError("write", syscall.ECONNRESET)
)

// dataTopics are where change events go.
func dataTopics() []string {
	var topics []string
	for _, t := range []string{"kv", "ledger", "wide"} {
		topics = append(topics, prefix+"."+database+"."+t)
	}
	return topics
}

// How a connection is cut at a request.
const (
	cutNot    = iota
	cutBefore // the request is not written
	cutAmid   // half of it is
	cutAfter  // all of it is, and the answer does not come
)

// cluster is a Kafka cluster, with what can be done to the connections of processes to it.
type cluster struct {
	*kfake.Cluster
	net       *network
	addresses []string

	mu   sync.Mutex
	down map[string]bool
	cut  *cutting
}

type cutting struct {
	purpose string
	key     int16
	how     int
	after   int // requests that still go through
	done    chan struct{}
}

func newCluster(n *network, old bool) (*cluster, error) {
	opts := []kfake.Opt{kfake.NumBrokers(brokers), kfake.ListenFn(n.Listen)}
	if old {
		opts = append(opts, kfake.MaxVersions(kversion.V3_9_0()))
	}
	c, err := kfake.NewCluster(opts...)
	if err != nil {
		return nil, err
	}
	// Of a leader that moved and has written nothing yet kfake says that it knows no epoch before, which readers take for a loss
	// of records. Nothing is ever lost here.
	c.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return nothingLost(req.(*kmsg.OffsetForLeaderEpochRequest)), nil, true
	})
	return &cluster{Cluster: c, net: n, addresses: c.ListenAddrs(), down: make(map[string]bool)}, nil
}

func nothingLost(req *kmsg.OffsetForLeaderEpochRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
	for _, topic := range req.Topics {
		t := kmsg.NewOffsetForLeaderEpochResponseTopic()
		t.Topic = topic.Topic
		for _, p := range topic.Partitions {
			one := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			one.Partition, one.LeaderEpoch, one.EndOffset = p.Partition, p.LeaderEpoch, math.MaxInt64
			t.Partitions = append(t.Partitions, one)
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}

// hasTopics says that all topics of change events are there.
func (c *cluster) hasTopics() bool {
	return !slices.ContainsFunc(dataTopics(), func(t string) bool { return c.TopicInfo(t) == nil })
}

func (c *cluster) isDown(at string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.down[at]
}

// setDown says of brokers whether they can be reached.
func (c *cluster) setDown(down bool, addresses ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, at := range addresses {
		c.down[at] = down
	}
}

// cutNext cuts a connection at one of the next requests of a kind; what is returned is closed when it has happened.
func (c *cluster) cutNext(purpose string, key int16, how, after int) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = &cutting{purpose, key, how, after, make(chan struct{})}
	return c.cut.done
}

func (c *cluster) cutNone() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = nil
}

func (c *cluster) cutAt(purpose string, key int16) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut == nil || c.cut.purpose != purpose || c.cut.key != key {
		return cutNot
	}
	if c.cut.after--; c.cut.after >= 0 {
		return cutNot
	}
	how := c.cut.how
	close(c.cut.done)
	c.cut = nil
	return how
}

// ends are the ends of the partitions of the topics with change events.
func (c *cluster) ends() map[partition]int64 {
	ends := make(map[partition]int64)
	for _, topic := range dataTopics() {
		for _, info := range c.PartitionInfos(topic) {
			ends[partition{topic, info.Partition}] = info.HighWatermark
		}
	}
	return ends
}

type partition struct {
	topic string
	n     int32
}

// client is a client of those who only look: no fault reaches it.
func (c *cluster) client(opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(c.addresses...),
		kgo.Dialer(func(ctx context.Context, _, at string) (net.Conn, error) {
			e, err := c.net.dial(ctx, at, true)
			if err != nil {
				return nil, err
			}
			return e, nil
		}),
	}, opts...)...)
}

// log reads what topics hold, by partition.
func (c *cluster) log(topics []string, level kgo.IsolationLevel) (map[partition][]*kgo.Record, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	topics = slices.DeleteFunc(slices.Clone(topics), func(t string) bool { return c.TopicInfo(t) == nil })
	got := make(map[partition][]*kgo.Record)
	if len(topics) == 0 {
		return got, nil
	}
	cl, err := c.client(kgo.ConsumeTopics(topics...), kgo.FetchIsolationLevel(level), kgo.KeepControlRecords(), kgo.FetchMaxWait(100*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, topics...)
	if err != nil {
		return nil, err
	}
	left := make(map[partition]int64)
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[partition{o.Topic, o.Partition}] = o.Offset
		}
	})
	for len(left) > 0 {
		fetches := cl.PollFetches(ctx)
		if err := errors.Join(fetches.Err(), ctx.Err()); err != nil {
			return nil, fmt.Errorf("reading the topics: %w", err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			at := partition{r.Topic, r.Partition}
			if !r.Attrs.IsControl() {
				got[at] = append(got[at], r)
			}
			if r.Offset+1 >= left[at] {
				delete(left, at)
			}
		})
	}
	return got, nil
}
