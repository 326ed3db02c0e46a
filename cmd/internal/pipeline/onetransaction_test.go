package pipeline

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/emitter/kafka"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// TestI11_WhatBelongsTogetherIsOneTransaction: the records of a schema change, and the boundary behind it, with its GTID; the records of
// a transaction's beginning and end, and its rows; a heartbeat. The definitions are durable before.
func TestI11_WhatBelongsTogetherIsOneTransaction(t *testing.T) {
	topics := []string{"p", "p.d.t", "p.transaction", "__debezium-heartbeat.p"}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, topics...))
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
	client, err := kafka.NewClient(kafka.ClientConfig{Properties: properties})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	key := offset.Key{Connector: "c", Server: "p"}
	d, err := emitter.NewExactlyOnce(t.Context(), client, emitter.ExactlyOnceConfig{ID: "g-c-0", Store: store, Key: key, FlushInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	em, err := emitter.New(emitter.Config{Prefix: "p", SchemaChanges: true, Transactions: true})
	if err != nil {
		t.Fatal(err)
	}
	const uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	second, err := offset.ParseGTID(uuid + ":2")
	if err != nil {
		t.Fatal(err)
	}
	offsetAt := func(pos int64, gtids string, open bool) offset.Offset {
		o := at(pos)
		if o.GTIDs, err = offset.ParseGTIDSet(uuid + ":" + gtids); err != nil {
			t.Fatal(err)
		}
		o.Side = &offset.Side{Server: uuid}
		if open {
			o.Side = &offset.Side{Server: uuid, Open: &offset.Open{GTID: second, Thread: -1, Rows: -1}}
		}
		return o
	}
	durable := int64(0) // the position that was stored when the definitions were kept
	out := Output{
		Emitter: em, Delivery: d, Later: true,
		SchemaChange: func(ctx context.Context, ev *binlog.SchemaChange) error {
			time.Sleep(300 * time.Millisecond) // longer than a transaction stays open
			o, err := store.Load(ctx, key)
			durable = o.Pos
			return err
		},
	}
	event := func(ev binlog.Event) {
		t.Helper()
		if err := out.Event(t.Context(), ev); err != nil {
			t.Fatal(err)
		}
	}
	commit := func(pos int64, gtids, id string) {
		before := offsetAt(pos-50, "1", true)
		before.Event = 4
		event(&binlog.Boundary{Commit: true, ID: id, Offset: offsetAt(pos, gtids, false), Before: before})
	}
	table := &schema.Table{Database: "d", Name: "t", Key: []int{0}, Columns: []schema.Column{{Name: "id", Type: 3}}}
	row := func(begin int64) {
		base := offsetAt(begin, "1", true)
		base.Event = 2
		rows, err := binlog.NewRows(binlog.Info{File: "mysql-bin.000001", Pos: begin, Thread: -1}, binlog.Create, table, base, binary.LittleEndian.AppendUint32([]byte{0}, 7))
		if err != nil {
			t.Fatal(err)
		}
		event(rows)
	}
	change := func(ddl string) schema.SchemaChange {
		return schema.SchemaChange{Database: "d", DDL: ddl, Tables: []string{"t"}, Topic: true}
	}

	event(&binlog.Begin{ID: uuid + ":2", Offset: offsetAt(100, "1", true)})
	row(100)
	commit(200, "1-2", uuid+":2")
	event(&binlog.SchemaChange{
		Changes: []schema.SchemaChange{change("RENAME TABLE a TO b"), change("RENAME TABLE b TO c")},
		Before:  offsetAt(200, "1-2", false), Record: offsetAt(300, "1-2", false), Offset: offsetAt(300, "1-3", false),
	})
	if err := d.Deliver(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 500 {
		if o, _ := d.Safe(); o.Pos == 300 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	out.Heartbeat, out.beat = time.Hour, time.Time{}
	event(&binlog.Boundary{Offset: offsetAt(400, "1-4", false)}) // with a heartbeat
	if err := d.Deliver(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := d.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}

	if durable != 200 {
		t.Errorf("when the definitions were kept, %d was stored", durable)
	}
	byEpoch := map[int16][]string{}
	for _, topic := range append(topics, "offsets") {
		for _, r := range committedRecords(t, cluster, topic) {
			text := topic
			if topic == "offsets" {
				if string(r.Key) != key.String() {
					continue
				}
				o, err := offset.Parse(r.Value)
				if err != nil {
					t.Fatal(err)
				}
				text = fmt.Sprintf("%d %s", o.Pos, strings.TrimPrefix(o.GTIDs.String(), uuid+":"))
			}
			byEpoch[r.ProducerEpoch] = append(byEpoch[r.ProducerEpoch], text)
		}
	}
	var got []string
	for epoch := range int16(100) {
		if texts := byEpoch[epoch]; texts != nil {
			got = append(got, strings.Join(texts, ", "))
		}
	}
	want := []string{"p.d.t, p.transaction, p.transaction, 200 1-2", "p, p, 300 1-3", "__debezium-heartbeat.p, 400 1-4"}
	if !slices.Equal(got, want) {
		t.Errorf("transactions\n%q, want\n%q", got, want)
	}
}
