package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tidemark-cdc/tidemark/emitter/internal/producer"
	"github.com/tidemark-cdc/tidemark/offset"
)

const transactionID = "group-inventory-connector-0"

// fencedStore is a store with the transactional id taken, and the offset loaded.
func fencedStore(t testing.TB, cfg TopicStoreConfig) *TopicStore {
	t.Helper()
	s := openStore(t, cfg)
	fenceAndLoad(t, s)
	return s
}

func fenceAndLoad(t testing.TB, s *TopicStore) {
	t.Helper()
	if err := s.Fence(t.Context(), inventory, transactionID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context(), inventory); err != nil {
		t.Fatal(err)
	}
}

// epochs gives the records of the topic by the epoch that they were written with: with transaction.version 2 each transaction has
// its own, and what is written without one has -1.
func epochs(t testing.TB, c *kfake.Cluster) map[int16][]string {
	t.Helper()
	got := map[int16][]string{}
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics(offsetsTopic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, offsetsTopic)
	if err != nil {
		t.Fatal(err)
	}
	left := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	for len(left) > 0 {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("%v, missing the ends %v", ctx.Err(), left)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset == left[r.Partition]-1 {
				delete(left, r.Partition)
			}
			if r.Attrs.IsControl() {
				return
			}
			epoch := r.ProducerEpoch
			if !r.Attrs.IsTransactional() {
				epoch = -1
			}
			key, _, _ := strings.Cut(string(r.Key), ",")
			got[epoch] = append(got[epoch], key)
			slices.Sort(got[epoch])
		})
	}
	return got
}

// Side record and offset are one transaction, which a plain store reads, and goes on from.
func TestFencedSave(t *testing.T) {
	cluster := newCluster(t)
	plain := openStore(t, storeConfig(cluster))
	save(t, plain, inventory, sided(1))
	s := fencedStore(t, storeConfig(cluster))
	wantSide(t, s, inventory, sided(1))
	for pos := 2; pos < 5; pos++ {
		save(t, s, inventory, sided(pos))
	}
	save(t, s, inventory, sided(4)) // nothing changes
	wantSide(t, s, inventory, sided(4))
	wantSide(t, openStore(t, storeConfig(cluster)), inventory, sided(4))
	got := epochs(t, cluster)
	if one := got[-1]; !slices.Equal(one, []string{`["inventory-connector"`, `["tidemark:inventory-connector"`}) || len(got) != 4 {
		t.Errorf("written %v", got)
	}
	for epoch, keys := range got {
		if !slices.Equal(keys, []string{`["inventory-connector"`, `["tidemark:inventory-connector"`}) {
			t.Errorf("epoch %d: %v", epoch, keys)
		}
	}
	// The second copy of a side record is the offset before, also where nothing was read in between.
	if side := string(s.stored(inventory).side); !strings.Contains(side, `\"pos\":3`) {
		t.Errorf("side record %s", side)
	}
	wantLoad(t, plain, inventory, at(4))
	save(t, plain, inventory, sided(5))
	fenceAndLoad(t, s)
	save(t, s, inventory, sided(6))
	wantSide(t, plain, inventory, sided(6))
}

// One that goes on after another has begun stores nothing any more.
func TestI2_FencedStoreSetsNothingBack(t *testing.T) {
	cluster := newCluster(t)
	first := fencedStore(t, storeConfig(cluster))
	save(t, first, inventory, at(1))
	second := fencedStore(t, storeConfig(cluster))
	wantLoad(t, second, inventory, at(1))
	save(t, second, inventory, at(10))
	for range 2 {
		err := first.Save(t.Context(), inventory, at(2))
		if !errors.Is(err, offset.ErrUnusable) || !errors.Is(err, producer.ErrFenced) {
			t.Errorf("stored: %v", err)
		}
	}
	save(t, second, inventory, at(11))
	wantLoad(t, first, inventory, at(11))
	save(t, first, prefix, at(7)) // others are not concerned
	wantLoad(t, openStore(t, storeConfig(cluster)), prefix, at(7))
}

// What an earlier one has begun is rolled back before the offset is loaded.
func TestFenceEndsWhatIsOpen(t *testing.T) {
	cluster := newCluster(t)
	s := openStore(t, storeConfig(cluster))
	save(t, s, inventory, at(1))
	worker, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.TransactionalID(transactionID))
	if err != nil {
		t.Fatal(err)
	}
	defer worker.Close()
	if err := worker.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	o := at(4)
	if err := worker.ProduceSync(t.Context(), &kgo.Record{Topic: offsetsTopic, Key: inventory.Append(nil), Value: o.Append(nil)}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	fenceAndLoad(t, s)
	wantLoad(t, s, inventory, at(1))
	if err := worker.EndTransaction(t.Context(), kgo.TryCommit); err == nil {
		t.Error("the one before could commit")
	}
	wantLoad(t, s, inventory, at(1))
}

// cutEnds has a client lose the answer to the end of a transaction, or the request.
func cutEnds(cfg *TopicStoreConfig, cut *atomic.Bool, arrives bool) {
	cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &cutting{Conn: conn, cut: cut, arrives: arrives}, nil
	}
}

type cutting struct {
	net.Conn
	cut     *atomic.Bool
	arrives bool
	deaf    atomic.Bool
}

func (c *cutting) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.deaf.Load() {
		return 0, io.EOF
	}
	return n, err
}

func (c *cutting) Write(b []byte) (int, error) {
	if len(b) < 6 || int16(b[4])<<8|int16(b[5]) != int16(kmsg.EndTxn) || !c.cut.CompareAndSwap(true, false) {
		return c.Conn.Write(b)
	}
	n := len(b)
	c.deaf.Store(true)
	if c.arrives {
		n, _ = c.Conn.Write(b)
		time.Sleep(20 * time.Millisecond)
	}
	_ = c.Conn.Close()
	return n, nil
}

// A commit of which nobody has said what has become of it: the next Save finds out, and goes on from there.
func TestFencedSaveWithUnknownOutcome(t *testing.T) {
	for name, arrives := range map[string]bool{"committed": true, "lost": false} {
		t.Run(name, func(t *testing.T) {
			cluster := newCluster(t)
			cfg := storeConfig(cluster)
			var cut atomic.Bool
			cutEnds(&cfg, &cut, arrives)
			s := fencedStore(t, cfg)
			save(t, s, inventory, sided(1))
			cut.Store(true)
			err := s.Save(t.Context(), inventory, sided(2))
			if !errors.Is(err, producer.ErrUnknownOutcome) || errors.Is(err, offset.ErrUnusable) || cut.Load() {
				t.Fatalf("stored: %v", err)
			}
			save(t, s, inventory, sided(3))
			before := map[bool]string{true: `\"pos\":2`, false: `\"pos\":1`}[arrives]
			wantSide(t, openStore(t, storeConfig(cluster)), inventory, sided(3))
			if _, err := s.Load(t.Context(), inventory); err != nil {
				t.Fatal(err)
			}
			if side := string(s.stored(inventory).side); !strings.Contains(side, before) {
				t.Errorf("side record %s", side)
			}
		})
	}
}

// If after a fault there is what neither this one has stored nor wanted to store, somebody else has taken over.
func TestFencedSaveFindsAnother(t *testing.T) {
	cluster := newCluster(t)
	cfg := storeConfig(cluster)
	var cut atomic.Bool
	cutEnds(&cfg, &cut, false)
	s := fencedStore(t, cfg)
	save(t, s, inventory, at(1))
	cut.Store(true)
	if err := s.Save(t.Context(), inventory, at(2)); err == nil {
		t.Fatal("stored")
	}
	other := fencedStore(t, storeConfig(cluster))
	save(t, other, inventory, at(50))
	err := s.Save(t.Context(), inventory, at(3))
	if !errors.Is(err, offset.ErrUnusable) || !strings.Contains(err.Error(), `"pos":50`) {
		t.Errorf("stored: %v", err)
	}
	wantLoad(t, other, inventory, at(50))
}

// Where there can be no transactions that is said once, with what helps, and the offset is stored all the same.
func TestFenceIsNotAllowed(t *testing.T) {
	for name, tt := range map[string]struct {
		key  kmsg.Key
		code *kerr.Error
		want string
	}{
		"acl":            {kmsg.InitProducerID, kerr.TransactionalIDAuthorizationFailed, "--allow-principal User:ANONYMOUS --operation Write --operation Describe --transactional-id 'group-inventory-connector-0'"},
		"no coordinator": {kmsg.FindCoordinator, kerr.CoordinatorNotAvailable, "transaction.state.log.replication.factor"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newCluster(t)
			cluster.ControlKey(int16(tt.key), func(req kmsg.Request) (kmsg.Response, error, bool) {
				cluster.KeepControl()
				switch req := req.(type) {
				case *kmsg.InitProducerIDRequest:
					if req.TransactionalID == nil {
						return nil, nil, false
					}
					resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
					resp.ErrorCode = tt.code.Code
					return resp, nil, true
				case *kmsg.FindCoordinatorRequest:
					resp := req.ResponseKind().(*kmsg.FindCoordinatorResponse)
					resp.ErrorCode = tt.code.Code
					for _, key := range req.CoordinatorKeys {
						c := kmsg.NewFindCoordinatorResponseCoordinator()
						c.Key, c.ErrorCode = key, tt.code.Code
						resp.Coordinators = append(resp.Coordinators, c)
					}
					return resp, nil, true
				}
				return nil, nil, false
			})
			core, logs := observer.New(zap.WarnLevel)
			cfg := storeConfig(cluster)
			cfg.Log = zap.New(core)
			s := openStore(t, cfg)
			s.fenceWait = 200 * time.Millisecond
			for pos := range 2 {
				fenceAndLoad(t, s)
				save(t, s, inventory, sided(pos+1))
				wantSide(t, openStore(t, storeConfig(cluster)), inventory, sided(pos+1))
			}
			said := logs.FilterMessageSnippet("without a transaction").All()
			if len(said) != 1 || !strings.Contains(said[0].Message, tt.want) {
				t.Errorf("said %v", said)
			}
		})
	}
}

// A cluster that cannot be reached is no reason to go without.
func TestFenceWaitsForTheCluster(t *testing.T) {
	cluster := newCluster(t)
	s := openStore(t, storeConfig(cluster))
	s.fenceWait = 100 * time.Millisecond
	cluster.Close()
	if err := s.Fence(t.Context(), inventory, transactionID); err == nil || !Transient(err) {
		t.Errorf("got %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys[inventory].open || len(s.fences) != 0 {
		t.Error("it goes without")
	}
}

// Several prepared offsets may be under way: each builds on the one before, whatever has been read meanwhile.
func TestPrepare(t *testing.T) {
	cluster := newCluster(t)
	s := openStore(t, storeConfig(cluster))
	raw(t, cluster, 3, `["inventory-connector", {"server": "dbserver1"}]`, `{"file":"mysql-bin.000001","pos":7}`)
	wantLoad(t, s, inventory, at(7))
	short := func(p *Prepared, err error) (texts []string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range p.Entries {
			value := "deleted"
			if e.Value != nil {
				value = string(e.Value)
			}
			texts = append(texts, fmt.Sprintf("%d %s %s", e.Partition, e.Key, value))
		}
		return texts
	}
	const (
		key  = `-1 ["inventory-connector",{"server":"dbserver1"}] `
		side = `-1 ["tidemark:inventory-connector",{"server":"dbserver1"}] `
	)
	uuid := `,"server_uuid":"` + serverUUID + `"`
	first, err := s.Prepare(inventory, sided(8), nil)
	want := []string{
		side + `{"offset":"{\"file\":\"mysql-bin.000001\",\"pos\":8}","offset_before":"{\"file\":\"mysql-bin.000001\",\"pos\":7}"` + uuid + `}`,
		key + `{"file":"mysql-bin.000001","pos":8}`,
		`3 ["inventory-connector", {"server": "dbserver1"}] deleted`,
	}
	if got := short(first, err); !slices.Equal(got, want) {
		t.Errorf("first: %q", got)
	}
	second, err := s.Prepare(inventory, sided(9), first)
	want = []string{
		side + `{"offset":"{\"file\":\"mysql-bin.000001\",\"pos\":9}","offset_before":"{\"file\":\"mysql-bin.000001\",\"pos\":8}"` + uuid + `,"server_uuid_before":"` + serverUUID + `"}`,
		key + `{"file":"mysql-bin.000001","pos":9}`,
	}
	if got := short(second, err); !slices.Equal(got, want) || !second.Offset().Equal(at(9)) {
		t.Errorf("second: %q", got)
	}
	same := second.Offset()
	third, err := s.Prepare(inventory, same, second)
	if got := short(third, err); len(got) != 0 {
		t.Errorf("the same again: %q", got)
	}
	if _, err := s.Prepare(inventory, offset.Offset{}, second); err == nil || !strings.Contains(err.Error(), "empty offset") {
		t.Errorf("empty: %v", err)
	}
	if _, err := s.Prepare(offset.Key{Connector: "tidemark:x"}, at(1), nil); err == nil {
		t.Error("a name that is taken")
	}
	wantLoad(t, s, inventory, at(7)) // nothing is written
}

// A Save that was not waited for is known of when the next one comes.
func TestFencedSaveGivenUp(t *testing.T) {
	cluster := newCluster(t)
	s := fencedStore(t, storeConfig(cluster))
	save(t, s, inventory, sided(1))
	wait := make(chan struct{})
	cluster.ControlKey(int16(kmsg.EndTxn), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.SleepControl(func() { <-wait })
		return nil, nil, false
	})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := s.Save(ctx, inventory, sided(2)); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	again, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := s.Save(again, inventory, sided(3)); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	close(wait)
	save(t, s, inventory, sided(4))
	wantSide(t, openStore(t, storeConfig(cluster)), inventory, sided(4))
	if got := s.keys[inventory].fence.last.side; !strings.Contains(string(got), `\"pos\":2`) {
		t.Errorf("side record %s", got)
	}
}

// The transaction that is open of a process that was killed is for the one that takes its id to end: nobody waits for it before.
func TestFenceAfterAKill(t *testing.T) {
	cluster := newCluster(t)
	cfg := storeConfig(cluster)
	var cut atomic.Bool
	cutEnds(&cfg, &cut, false)
	killed := fencedStore(t, cfg)
	save(t, killed, inventory, at(1))
	cut.Store(true)
	if err := killed.Save(t.Context(), inventory, at(2)); err == nil {
		t.Fatal("stored")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // a third of the transaction's time
	defer cancel()
	s, err := OpenTopicStore(ctx, storeConfig(cluster))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Fence(ctx, inventory, transactionID); err != nil {
		t.Fatal(err)
	}
	if o, err := s.Load(ctx, inventory); err != nil || o.Pos != 1 {
		t.Errorf("loaded %s, %v", o, err)
	}
}
