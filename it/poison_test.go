package it

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestOversizedRowsLeaveNotes: with errors.tolerance=all, rows that the client or the topic finds too large are left out, each with
// a note in the topic of dead letters, which is made; the rows around them are there and the offset is behind all of them. Without,
// the first one stops the stream, and the error says where it is, how large, and what to change.
func TestOversizedRowsLeaveNotes(t *testing.T) {
	t.Parallel()
	rig := NewRig(t, gtidFlags...)
	m := rig.MySQL
	m.Exec(t, "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY, pad LONGTEXT)")
	stops := rig.Connector(t, "stops", "file", `shop\.orders`)
	goes := rig.Connector(t, "goes", "file", `shop\.orders`)
	goes.Config = goes.Config.With(Properties{
		"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dead", "errors.deadletterqueue.topic.replication.factor": "1",
		"errors.deadletterqueue.context.headers.enable": "true", "producer.override.max.request.size": "200000",
	})
	for _, c := range []*Connector{stops, goes} {
		c.Config = c.Config.With(Properties{
			"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1", "topic.creation.default.max.message.bytes": "20000",
		})
	}
	p := goes.RunStreaming(t)
	stopping := stops.RunStreaming(t)
	m.Exec(t, "INSERT INTO shop.orders VALUES (1,'small')", "INSERT INTO shop.orders VALUES (2,REPEAT('x',50000)),(3,'small')",
		"INSERT INTO shop.orders VALUES (4,REPEAT('x',500000))", "INSERT INTO shop.orders VALUES (5,'small')")
	goes.AwaitDrained(t, time.Minute)
	p.Terminate(t)
	if n := rig.Kafka.Count(t, "goes.shop.orders"); n != 3 {
		t.Errorf("%d rows are written, want 3", n)
	}
	notes := rig.Kafka.Read(t, "dead")
	if len(notes) != 2 {
		t.Fatalf("%d notes, want 2", len(notes))
	}
	for _, n := range notes {
		least := map[string]int{`{"id":2}`: 50_000, `{"id":4}`: 500_000}[string(n.Key)]
		var note struct {
			Connector, Topic, Database, Table, File, GTID, Error string
			Size                                                 int
			Pos, Row                                             int64
		}
		if err := json.Unmarshal(n.Value, &note); err != nil {
			t.Fatalf("%s: %v", n.Value, err)
		}
		if note.Connector != "goes" || note.Topic != "goes.shop.orders" || note.Database != "shop" || note.Table != "orders" || least == 0 || note.Size < least ||
			note.GTID == "" || note.Pos == 0 || !strings.HasPrefix(note.File, "mysql-bin.") || !strings.Contains(note.Error, "MESSAGE_TOO_LARGE") ||
			len(n.Headers) != 6 {
			t.Errorf("%s, key %s, headers %v", n.Value, n.Key, n.Headers)
		}
	}
	if code := stopping.Wait(t, time.Minute); code != 1 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"topic stops.shop.orders, table shop.orders", "max.message.bytes", "max.request.size", "errors.tolerance=all"} {
		if !strings.Contains(stopping.Output(), want) {
			t.Errorf("no %q in the log", want)
		}
	}
	if n := rig.Kafka.Count(t, "stops.shop.orders"); n != 1 {
		t.Errorf("%d rows are written before the one that stops it, want 1", n)
	}
}
