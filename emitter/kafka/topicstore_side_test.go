package kafka

import (
	"context"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tidemark-cdc/tidemark/offset"
)

const serverUUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"

// sided is an offset with a side record.
func sided(pos int, xa ...string) offset.Offset {
	o := at(pos)
	side := &offset.Side{Server: serverUUID}
	for _, xid := range xa {
		side.XA = append(side.XA, offset.Prepared{XID: xid, Server: serverUUID, File: "mysql-bin.000001", Pos: 4})
	}
	o.Side = side
	return o
}

func wantSide(t testing.TB, s offset.Store, key offset.Key, want offset.Offset) {
	t.Helper()
	got, err := s.Load(t.Context(), key)
	if err != nil || !got.Equal(want) || got.Done != want.Done || !reflect.DeepEqual(got.Side, want.Side) {
		t.Fatalf("got %s, %+v, %d done, %v; want %s, %+v", got, got.Side, got.Done, err, want, want.Side)
	}
}

func TestTopicStoreKeepsSideRecords(t *testing.T) {
	cluster := newCluster(t)
	s := openStore(t, storeConfig(cluster))
	o := sided(1, "X'a',X'',1")
	o.Side.Open = &offset.Open{Rows: 5, Thread: -1, XID: "X'a',X'',1"}
	o.Done = 3
	save(t, s, inventory, o)
	save(t, s, prefix, at(7)) // without one
	for _, s := range []*TopicStore{s, openStore(t, storeConfig(cluster))} {
		wantSide(t, s, inventory, o)
		wantSide(t, s, prefix, at(7))
	}
	// Only what changes is written: the offset stands still inside an XA transaction.
	o.Done = 4
	save(t, s, inventory, o)
	save(t, s, inventory, o)
	wantSide(t, openStore(t, storeConfig(cluster)), inventory, o)
	next := sided(2)
	save(t, s, inventory, next)
	wantSide(t, openStore(t, storeConfig(cluster)), inventory, next)

	const key = `["tidemark:inventory-connector",{"server":"dbserver1"}] `
	side := func(done string) string {
		return `16 ` + key + `{"offset":"{\"file\":\"mysql-bin.000001\",\"pos\":1}","server_uuid":"` + serverUUID + `","transaction_rows":5,"transaction_xid":"X'a',X'',1",` +
			`"transaction_done":` + done + `,"xa":"[{\"xid\":\"X'a',X'',1\",\"server_uuid\":\"` + serverUUID + `\",\"file\":\"mysql-bin.000001\",\"pos\":4,\"gtid\":\"\",\"new\":true}]"}`
	}
	want := []string{
		`11 ["inventory-connector",{"server":"dbserver1"}] {"file":"mysql-bin.000001","pos":1}`,
		`11 ["inventory-connector",{"server":"dbserver1"}] {"file":"mysql-bin.000001","pos":2}`,
		side("3"), side("4"),
		`16 ` + key + `{"offset":"{\"file\":\"mysql-bin.000001\",\"pos\":2}","offset_before":"{\"file\":\"mysql-bin.000001\",\"pos\":1}","server_uuid":"` + serverUUID +
			`","server_uuid_before":"` + serverUUID + `","xa":"[{\"xid\":\"X'a',X'',1\",\"server_uuid\":\"` + serverUUID + `\",\"file\":\"mysql-bin.000001\",\"pos\":4,\"gtid\":\"\",\"ended\":true}]"}`,
		`17 ["my-connector",{"server":"prefix"}] {"file":"mysql-bin.000001","pos":7}`,
	}
	if diff := cmp.Diff(want, records(t, cluster)); diff != "" {
		t.Error(diff)
	}
}

func TestTopicStoreSaysWhenSomebodyElseStored(t *testing.T) {
	cluster := newCluster(t)
	core, logs := observer.New(zap.WarnLevel)
	cfg := storeConfig(cluster)
	cfg.Log = zap.New(core)
	s := openStore(t, cfg)
	save(t, s, inventory, sided(1, "X'a',X'',1"))
	raw(t, cluster, 11, inventory.String(), `{"file":"mysql-bin.000001","pos":900}`)
	for range 3 {
		wantSide(t, s, inventory, at(900))
	}
	if all := logs.All(); len(all) != 1 || !strings.Contains(all[0].Message, "not the one that Tidemark stored last") || !strings.Contains(all[0].Message, "X'a',X'',1") {
		t.Errorf("logged %v", all)
	}
	// Going on from there.
	save(t, s, inventory, sided(1000))
	wantSide(t, openStore(t, cfg), inventory, sided(1000))
	// Deleted: nothing is left of it.
	raw(t, cluster, 11, inventory.String(), "")
	wantSide(t, s, inventory, offset.Offset{})
	if all := logs.All(); len(all) != 1 {
		t.Errorf("logged %v", all)
	}
	raw(t, cluster, 11, inventory.String(), `{"file":"mysql-bin.000001","pos":1000}`)
	raw(t, cluster, 16, inventory.Side().String(), `side!`)
	if o, err := s.Load(t.Context(), inventory); err == nil || !strings.Contains(err.Error(), "partition 16, offset 2, key "+inventory.Side().String()) || !strings.Contains(err.Error(), "nothing is started") {
		t.Errorf("garbage: %s, %v", o, err)
	}
}

// refuser makes a cluster refuse what is written to one partition of the offsets topic.
type refuser struct {
	mu        sync.Mutex
	partition int32 // -1: none
	refused   int
}

func newRefuser(cluster *kfake.Cluster) *refuser {
	r := &refuser{partition: -1}
	cluster.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		r.mu.Lock()
		defer r.mu.Unlock()
		produce := req.(*kmsg.ProduceRequest)
		resp := req.ResponseKind().(*kmsg.ProduceResponse)
		refuse := false
		for _, topic := range produce.Topics {
			out := kmsg.NewProduceResponseTopic()
			out.Topic, out.TopicID = topic.Topic, topic.TopicID
			for _, p := range topic.Partitions {
				refuse = refuse || p.Partition == r.partition
				partition := kmsg.NewProduceResponseTopicPartition()
				partition.Partition, partition.ErrorCode = p.Partition, kerr.NotEnoughReplicas.Code
				out.Partitions = append(out.Partitions, partition)
			}
			resp.Topics = append(resp.Topics, out)
		}
		if refuse {
			r.refused++
		}
		return resp, nil, refuse
	})
	return r
}

func (r *refuser) set(partition int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.partition = partition
}

// The side record is acknowledged before the offset is written, so a crash between the two leaves the offset before, and
// of the record what was written with that one.
func TestI4_TopicStoreWritesTheSideRecordFirst(t *testing.T) {
	const offsetPartition, sidePartition = 11, 16
	cluster := newCluster(t)
	refuse := newRefuser(cluster)
	s := openStore(t, storeConfig(cluster))
	save(t, s, inventory, sided(1, "X'a',X'',1"))
	short := func(o offset.Offset) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if err := s.Save(ctx, inventory, o); err == nil || !strings.Contains(err.Error(), "acknowledge") {
			t.Fatalf("stored: %v", err)
		}
	}
	refuse.set(sidePartition)
	short(sided(2, "X'b',X'',1"))
	wantSide(t, s, inventory, sided(1, "X'a',X'',1"))
	refuse.set(offsetPartition)
	// The side record of 2 is written by now, and then that of 3; the offset is not.
	short(sided(3, "X'c',X'',1"))
	for _, s := range []*TopicStore{s, openStore(t, storeConfig(cluster))} {
		wantSide(t, s, inventory, sided(1, "X'a',X'',1"))
	}
	// What is not decided is waited for: the next side record must name the offset that is there.
	short(sided(4))
	refuse.set(-1)
	save(t, s, inventory, sided(5))
	wantSide(t, openStore(t, storeConfig(cluster)), inventory, sided(5))
	all := records(t, cluster)
	last := all[len(all)-1]
	if !strings.HasPrefix(last, "16 ") || !strings.Contains(last, `"offset_before":"{\"file\":\"mysql-bin.000001\",\"pos\":3}"`) {
		t.Errorf("the last side record is %s", last)
	}
	for _, r := range all {
		if strings.Contains(r, `"pos\":4}`) {
			t.Errorf("an offset that was given up was written: %s", r)
		}
	}
}
