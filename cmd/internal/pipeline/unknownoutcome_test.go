package pipeline

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/emitter/kafka"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// ends cuts connections at requests for the end of a transaction: now and then behind one, whose answer is lost, or instead.
type ends struct {
	mu             sync.Mutex
	seen           int
	behind, before int // so many times
}

func (e *ends) next() (cut, arrives bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen++
	switch e.seen % 6 {
	case 2:
		e.behind++
		return true, true
	case 5:
		e.before++
		return true, false
	}
	return false, true
}

type cutConn struct {
	net.Conn
	ends *ends
	mu   sync.Mutex
	deaf bool
}

func (c *cutConn) Write(b []byte) (int, error) {
	if len(b) < 6 || int16(binary.BigEndian.Uint16(b[4:])) != int16(kmsg.EndTxn) {
		return c.Conn.Write(b)
	}
	cut, arrives := c.ends.next()
	if !cut {
		return c.Conn.Write(b)
	}
	c.mu.Lock()
	c.deaf = true
	c.mu.Unlock()
	if arrives {
		if _, err := c.Conn.Write(b); err != nil {
			return 0, err
		}
		time.Sleep(20 * time.Millisecond) // the broker has it
	}
	_ = c.Conn.Close()
	return len(b), nil
}

func (c *cutConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deaf {
		return 0, io.EOF
	}
	return n, err
}

// oneByOne is a source of transactions of one row each, which begin at the multiples of 100, up to the last one. It waits before each.
type oneByOne struct {
	script
	at, last int64
	before   func(context.Context) error
	rows     *binlog.Rows
}

func (s *oneByOne) BeforeWaiting(f func(context.Context) error) { s.before = f }

func (s *oneByOne) Read(ctx context.Context) (binlog.Event, error) {
	if s.rows != nil {
		s.rows = nil
		s.at += 100
		o := at(s.at)
		o.Side = &offset.Side{Server: "s"}
		return &binlog.Boundary{Offset: o, Commit: true}, nil
	}
	if s.at > s.last {
		return nil, io.EOF
	}
	if err := s.before(ctx); err != nil {
		return nil, err
	}
	time.Sleep(5 * time.Millisecond)
	base := at(s.at)
	base.Event = 2
	base.Side = &offset.Side{Server: "s", Open: &offset.Open{Thread: -1, Rows: -1}}
	table := &schema.Table{Database: "d", Name: "t", Key: []int{0}, Columns: []schema.Column{{Name: "id", Type: 3}}}
	var err error
	s.rows, err = binlog.NewRows(binlog.Info{File: "mysql-bin.000001", Pos: s.at, Thread: -1}, binlog.Create, table, base,
		binary.LittleEndian.AppendUint32([]byte{0}, uint32(s.at/100)))
	return s.rows, err
}

// TestI2_I5_UnknownOutcomes of many commits, in both ways, leave every row there once: the next attempt goes on where the stored
// offset says, and that says what has become of the transaction.
func TestI2_I5_UnknownOutcomes(t *testing.T) {
	const last = 60
	cluster, err := kfake.NewCluster(kfake.NumBrokers(2), kfake.SeedTopics(2, "p.d.t"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	properties := map[string]string{"bootstrap.servers": strings.Join(cluster.ListenAddrs(), ",")}
	store, err := kafka.OpenTopicStore(t.Context(), kafka.TopicStoreConfig{
		ClientConfig: kafka.ClientConfig{Properties: properties}, Topic: "offsets", Partitions: 1, ReplicationFactor: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	cuts := &ends{}
	client, err := kafka.NewClient(kafka.ClientConfig{Properties: properties, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &cutConn{Conn: conn, ends: cuts}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	em, err := emitter.New(emitter.Config{Prefix: "p"})
	if err != nil {
		t.Fatal(err)
	}
	key := offset.Key{Connector: "c", Server: "p"}
	var opened []int64
	p := Pipeline{
		Open: func(_ context.Context, stored offset.Offset) (binlog.Source, error) {
			opened = append(opened, stored.Pos)
			if n := len(opened); n > 1 && opened[n-1] < opened[n-2] {
				t.Errorf("opened at %v", opened)
			}
			return &oneByOne{script: script{start: at(max(stored.Pos, 100))}, at: max(stored.Pos, 100), last: 100 * last}, nil
		},
		Deliver: func(ctx context.Context) (emitter.Delivery, error) {
			return emitter.NewExactlyOnce(ctx, client, emitter.ExactlyOnceConfig{ID: "g-c-0", Store: store, Key: key, FlushInterval: 50 * time.Millisecond})
		},
		DeliverFirst: true, Transient: kafka.Transient, Emitter: em, Store: savingStore{store, func(offset.Offset) {}}, Key: key,
		MaxRetries: -1, FlushInterval: 10 * time.Millisecond, FlushTimeout: 5 * time.Second, Log: zap.NewNop(),
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	// Without the pauses between attempts: each is what Run does.
	for {
		_, err := p.attempt(ctx)
		if err == nil {
			break
		}
		if !p.heals(err) || ctx.Err() != nil {
			t.Fatal(err)
		}
		if !errors.Is(err, emitter.ErrUnknownOutcome) {
			t.Errorf("an attempt ended with %v", err)
		}
	}
	if cuts.behind < 2 || cuts.before < 2 {
		t.Fatalf("cut %d times behind and %d before, of %d", cuts.behind, cuts.before, cuts.seen)
	}
	if o, err := store.Load(t.Context(), key); err != nil || o.Pos != 100*last+100 {
		t.Errorf("stored is %s, %v", o, err)
	}
	seen := map[int]int{}
	for _, r := range committedRecords(t, cluster, "p.d.t") {
		var value struct{ After struct{ ID int } }
		if err := json.Unmarshal(r.Value, &value); err != nil {
			t.Fatal(err)
		}
		seen[value.After.ID]++
	}
	for id := 1; id <= last; id++ {
		if n := seen[id]; n != 1 {
			t.Errorf("row %d is there %d times", id, n)
		}
	}
}

// committedRecords reads a topic up to what is committed.
func committedRecords(t *testing.T, c *kfake.Cluster, topic string) (all []*kgo.Record) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListCommittedOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	left := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for len(left) > 0 {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
			if !r.Attrs.IsControl() {
				all = append(all, r)
			}
		})
	}
	return all
}
