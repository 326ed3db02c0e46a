package emitter

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/emitter/internal/kclient"
	"github.com/tidemark-cdc/tidemark/emitter/internal/producer"
	"github.com/tidemark-cdc/tidemark/offset"
)

// TestI1_I8_RecordsBesideTheData go through an emitter to a broker: a transaction without captured rows, a schema change
// and a heartbeat move the safe offset like rows do, and a boundary goes beyond them.
func TestI1_I8_RecordsBesideTheData(t *testing.T) {
	topics := []string{"p", "p.transaction", "__debezium-heartbeat.p"}
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, topics...))
	must(t, err)
	t.Cleanup(c.Close)
	d := delivery(t, c, DeliveryConfig{})
	em := transactional(t, Config{SchemaChanges: true, ExtendedHeaders: true})
	step := func(pos int64, feed func(b *Batch) error) {
		t.Helper()
		b, err := d.Batch(t.Context())
		must(t, err)
		must(t, feed(b))
		flush(t, d)
		wantSafe(t, d, pos)
	}
	step(100, func(b *Batch) error { return em.Transaction(b, &binlog.Begin{ID: "u:7", Offset: at(100)}) })
	step(110, func(b *Batch) error {
		return em.Commit(b, &binlog.Boundary{Commit: true, ID: "u:7", Before: at(110)})
	})
	if o, _ := d.Safe(); len(o.Extra) != 1 {
		t.Errorf("the offset before the commit is %s", o)
	}
	must(t, d.Boundary(t.Context(), em.Mark(at(120))))
	wantSafe(t, d, 120)
	step(200, func(b *Batch) error { return em.SchemaChange(b, swap()) })
	step(300, func(b *Batch) error { return em.Heartbeat(b, at(300)) })

	count, headers := map[string]int{}, map[string]int{}
	for topic, partitions := range consumed(t, c, 6, topics...) {
		for partition, records := range partitions {
			for _, r := range records {
				count[topic]++
				headers[topic] += len(r.Headers)
				want := int32(0)
				if topic == "p.transaction" {
					want = int32(kclient.Partition(r.Key, 3))
				}
				if partition != want {
					t.Errorf("%s: partition %d, want %d", topic, partition, want)
				}
			}
		}
	}
	if want := map[string]int{"p": 3, "p.transaction": 2, "__debezium-heartbeat.p": 1}; !maps.Equal(count, want) {
		t.Errorf("records %v", count)
	}
	if headers["p"] != 12 || headers["p.transaction"]+headers["__debezium-heartbeat.p"] != 0 {
		t.Errorf("headers %v", headers)
	}
}

// TestI1_SafeWaitsForTheOldest acknowledges newer records on one partition while an older one on another is not.
func TestI1_SafeWaitsForTheOldest(t *testing.T) {
	c := cluster(t)
	release := hold(c, 0)
	defer release()
	d := delivery(t, c, DeliveryConfig{})
	add(t, d, keyFor(1, 0), "first", 1)
	must(t, d.Boundary(t.Context(), at(2)))
	must(t, d.Deliver(t.Context()))
	wantSafe(t, d, 2)
	add(t, d, keyFor(0, 0), "held", 3)
	for i := range 10 {
		add(t, d, keyFor(1, i), "newer", int64(4+i))
	}
	must(t, d.Boundary(t.Context(), at(14)))
	must(t, d.Deliver(t.Context()))
	consume(t, c, 11) // all but the held one are written
	time.Sleep(50 * time.Millisecond)
	if o, _ := d.Safe(); o.Pos != 2 {
		t.Fatalf("safe is %d while the record before 3 is not acknowledged", o.Pos)
	}
	release()
	flush(t, d)
	wantSafe(t, d, 14)
}

// TestI1_I2_OffsetsOfABatch hands a batch over in pieces: behind each holds the offset of its last record, or of the newest
// boundary behind that, and those of an older batch are forgotten.
func TestI1_I2_OffsetsOfABatch(t *testing.T) {
	c := cluster(t)
	d := delivery(t, c, DeliveryConfig{Window: 1})
	for _, batch := range []struct {
		records    []int64
		boundaries map[int64][]int64 // behind a record
		want       []int64
	}{
		{[]int64{10, 20, 30, 40, 50, 60}, map[int64][]int64{20: {21, 25}, 40: {45}, 60: {61, 69}}, []int64{10, 25, 30, 45, 50, 69}},
		{[]int64{110, 120, 130}, nil, []int64{110, 120, 130}},
	} {
		for _, pos := range batch.records {
			add(t, d, keyFor(0, 0), "x", pos)
			for _, boundary := range batch.boundaries[pos] {
				must(t, d.Boundary(t.Context(), at(boundary)))
			}
		}
		if len(d.edges) != len(batch.boundaries) {
			t.Errorf("%d edges are kept", len(d.edges))
		}
		for i, want := range batch.want {
			release := hold(c, 0)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			if err := d.Deliver(ctx); i < len(batch.records)-1 && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
			cancel()
			release()
			wantSafe(t, d, want)
		}
	}
}

// TestI1_SafeOutlivesTheBatch: the safe offset inside a transaction has its own side, also when the batch that its record was in is used
// again.
func TestI1_SafeOutlivesTheBatch(t *testing.T) {
	c := cluster(t)
	d := delivery(t, c, DeliveryConfig{})
	inside := func(rows int64) offset.Offset {
		return offset.Offset{File: "mysql-bin.000001", Pos: 4, Row: rows, Side: &offset.Side{Server: "s", Open: &offset.Open{Rows: rows}}}
	}
	row := func(rows int64) {
		add(t, d, keyFor(0, 0), "x", 4)
		b, err := d.Batch(t.Context())
		must(t, err)
		o := &b.Records[len(b.Records)-1].Offset
		*o = inside(rows)
		o.Side = b.sides.Copy(o.Side, uint64(rows))
	}
	row(1)
	row(2)
	flush(t, d)
	safe, ok := d.Safe()
	if !ok {
		t.Fatal("nothing is safe")
	}
	b, err := d.Batch(t.Context())
	must(t, err)
	for n := range int64(10) { // of rows that are not acknowledged
		b.sides.Copy(inside(100+n).Side, uint64(n))
	}
	newest, _ := d.Safe()
	for _, o := range []offset.Offset{safe, newest} {
		if o.Row != 2 || !reflect.DeepEqual(*o.Side.Open, offset.Open{Rows: 2}) {
			t.Errorf("safe is row %d with %+v", o.Row, o.Side.Open)
		}
	}
}

// TestI1_WrongAcknowledgementsEndTheDelivery since nothing that the tracker says can be trusted then.
func TestI1_WrongAcknowledgementsEndTheDelivery(t *testing.T) {
	d := delivery(t, cluster(t), DeliveryConfig{})
	d.acknowledge([]producer.Part{{Group: 0, Count: 1}})
	if err := d.Err(); err == nil || !strings.Contains(err.Error(), "acknowledgement") {
		t.Errorf("%v", err)
	}
}

// TestI8_BoundariesWithoutRecords move the safe offset at once.
func TestI8_BoundariesWithoutRecords(t *testing.T) {
	d := delivery(t, cluster(t), DeliveryConfig{})
	if _, ok := d.Safe(); ok {
		t.Error("safe before anything is")
	}
	for i := range int64(3) {
		must(t, d.Boundary(t.Context(), at(i+1)))
		if o, ok := d.Safe(); !ok || o.Pos != i+1 {
			t.Errorf("safe is %d, %v", o.Pos, ok)
		}
	}
}
