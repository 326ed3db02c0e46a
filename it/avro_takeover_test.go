package it

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestAvroTakeOver hands one connector from a real Debezium with Apicurio's converter to Tidemark and back, over tables with every
// column type, by the same configuration and the same registry. What the one has registered the other has to find: a version may
// appear only with a new table or an ALTER, never with the program. Keys carry ids in 4 bytes, values in 8. In the end a connector
// with Confluent's converter writes the same topics once more, and registers nothing either.
func TestAvroTakeOver(t *testing.T) {
	t.Parallel()
	rig := NewRig(t, gtidFlags...)
	registry := StartRegistry(t, "BACKWARD")
	m := rig.MySQL
	m.Exec(t, "CREATE DATABASE inventory CHARACTER SET utf8mb4")
	m.script(t, filepath.Join("testdata", "golden", "avro-types", "setup.sql"))

	c := rig.Connector(t, "handed", "file", "inventory\\..*")
	c.Config = c.Config.With(registry.AvroConverter(t, "apicurio"))
	for key, v := range registry.AvroConverter(t, "apicurio4") {
		if strings.HasPrefix(key, "key.") {
			c.Config[key] = v
		}
	}
	c.Config = c.Config.With(Properties{
		"topic.creation.default.partitions":               "1",
		"schema.history.internal.kafka.bootstrap.servers": rig.Kafka.Addr(),
		"schema.history.internal.kafka.topic":             "history-" + c.Name,
		"poll.interval.ms":                                "50",
	})
	c.Worker = c.Worker.With(Properties{
		"offset.flush.interval.ms": "500", "plugin.discovery": "only_scan",
		"listeners": fmt.Sprintf("http://127.0.0.1:%d", freePort(t)),
	})
	keys, values := registry.AvroDecoder("apicurio4"), registry.AvroDecoder("apicurio")

	sentinels := 0
	// await inserts a last row and waits until the topics hold it: all before it is there, too.
	await := func() {
		t.Helper()
		sentinels++
		m.Exec(t, fmt.Sprintf("INSERT INTO inventory.sentinel VALUES (%d)", sentinels))
		eventually(t, 90*time.Second, "the last row", func() error {
			for _, r := range rig.Kafka.Read(t, c.Prefix+".inventory.sentinel") {
				key, err := keys.decode(t, r.Key, tagged)
				if err != nil {
					return err
				}
				if canonical(key) == fmt.Sprintf(`{"id":%d}`, sentinels) {
					return nil
				}
			}
			return fmt.Errorf("row %d is not there", sentinels)
		})
	}
	tables := m.Query(t, "SELECT table_name FROM information_schema.tables WHERE table_schema='inventory' AND table_name<>'sentinel' ORDER BY 1")
	// changeAll empties the tables and fills them again.
	changeAll := func() {
		t.Helper()
		for _, row := range tables {
			m.Exec(t, "DELETE FROM inventory."+row[0])
		}
		m.script(t, filepath.Join("testdata", "golden", "avro-types", "stream.sql"))
	}
	debezium := func() *Process {
		t.Helper()
		p := c.StandaloneConnect(t)
		p.Await(t, 120*time.Second, `Keepalive thread is running|Connected to binlog|Streaming started|Starting streaming`)
		return p
	}
	stop := func(p *Process) {
		t.Helper()
		p.Signal(t, syscall.SIGTERM)
		p.Wait(t, 60*time.Second)
	}

	p := debezium()
	changeAll()
	await()
	stop(p)
	byDebezium := registry.Versions(t)
	records := len(c.Records(t))
	if len(byDebezium) < 30 || records < 60 {
		t.Fatalf("Debezium registered %d schemas for %d records: too few to prove anything", len(byDebezium), records)
	}
	checkIDs(t, registry, c.Records(t), keys, values)

	p = c.RunStreaming(t)
	changeAll()
	await()
	if got := registry.Versions(t); !slices.Equal(got, byDebezium) {
		t.Errorf("Tidemark registered what Debezium had not: %v", moreVersions(byDebezium, got))
	}
	m.Exec(t, "CREATE TABLE inventory.later (id INT PRIMARY KEY, d DECIMAL(10,2) DEFAULT 1.5, e ENUM('a','b') NOT NULL, p POINT, c VARCHAR(10) COMMENT 'with a comment')",
		"INSERT INTO inventory.later VALUES (1,1,'a',POINT(1,2),'x')",
		"ALTER TABLE inventory.t_comment ADD added DATETIME(6) DEFAULT '2026-01-02 03:04:05.5' INVISIBLE", "INSERT INTO inventory.t_comment (id) VALUES (1000)")
	await()
	p.Terminate(t)
	byTidemark := registry.Versions(t)
	var names []string
	for _, v := range moreVersions(byDebezium, byTidemark) {
		names = append(names, fmt.Sprintf("%s %d", v.Subject, v.Version))
	}
	if want := []string{"handed.inventory.later-key 1", "handed.inventory.later-value 1", "handed.inventory.t_comment-value 2"}; !slices.Equal(names, want) {
		t.Errorf("after a new table and an ALTER there are the versions %v more, want %v", names, want)
	}
	checkIDs(t, registry, c.Records(t), keys, values)

	p = debezium()
	m.Exec(t, "INSERT INTO inventory.later VALUES (2,2,'b',NULL,NULL)", "INSERT INTO inventory.t_comment (id) VALUES (1001)")
	changeAll()
	await()
	stop(p)
	if got := registry.Versions(t); !slices.Equal(got, byTidemark) {
		t.Errorf("Debezium registered what Tidemark had not: %v", moreVersions(byTidemark, got))
	}
	checkIDs(t, registry, c.Records(t), keys, values)

	twin := rig.Connector(t, "twin", "file", "inventory\\..*")
	twin.Config = twin.Config.With(registry.AvroConverter(t, "confluent")).With(Properties{
		"topic.creation.default.partitions": "1", "topic.prefix": c.Prefix,
	})
	twin.Prefix = c.Prefix
	before := len(c.Records(t))
	p = twin.RunStreaming(t)
	m.Exec(t, "INSERT INTO inventory.later VALUES (3,3,'b',NULL,NULL)", "INSERT INTO inventory.t_comment (id) VALUES (1002)")
	changeAll()
	twin.AwaitDrained(t, 60*time.Second)
	p.Terminate(t)
	if got := registry.Versions(t); !slices.Equal(got, byTidemark) {
		t.Errorf("with Confluent's converter Tidemark registered more: %v", moreVersions(byTidemark, got))
	}
	all := c.Records(t)
	if len(all)-before < records {
		t.Errorf("the connector with Confluent's converter wrote %d records, Debezium at first %d", len(all)-before, records)
	}
	t.Logf("%d schemas, %d records", len(byTidemark), len(all))
}

// moreVersions are the versions that are in b but not in a.
func moreVersions(a, b []Registered) []Registered {
	var more []Registered
	for _, v := range b {
		if !slices.Contains(a, v) {
			more = append(more, v)
		}
	}
	return more
}

// checkIDs decodes all records, and requires that the schema behind each id is a version of the subject of its topic.
func checkIDs(t *testing.T, registry *Registry, records []Message, keys, values *AvroDecoder) {
	t.Helper()
	texts := map[string]bool{}
	for _, v := range registry.Versions(t) {
		texts[v.Subject+" "+v.Schema] = true
	}
	for _, r := range records {
		for _, part := range []struct {
			data    []byte
			decoder *AvroDecoder
			subject string
		}{{r.Key, keys, r.Topic + "-key"}, {r.Value, values, r.Topic + "-value"}} {
			if part.data == nil {
				continue
			}
			id, _, err := part.decoder.ID(part.data)
			if err != nil {
				t.Fatalf("%s@%d: %v", r.Topic, r.Offset, err)
			}
			if text := registry.GlobalSchema(t, id); !texts[part.subject+" "+text] {
				t.Errorf("%s@%d: id %d is no version of %s: %s", r.Topic, r.Offset, id, part.subject, text)
			}
			if _, err := part.decoder.decode(t, part.data, tagged); err != nil {
				t.Errorf("%s@%d: %v", r.Topic, r.Offset, err)
			}
		}
	}
}
