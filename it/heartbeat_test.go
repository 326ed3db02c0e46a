package it

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"
)

var heartbeatServer = regexp.MustCompile(`"serverName":"[^"]*"\}`)

// TestHeartbeats shows heartbeats on a server where nothing happens, which Debezium writes only when the server's own heartbeat wakes
// it, and the action query, whose row comes through the binlog like any other. Topic, key and shape are those of the captures.
func TestHeartbeats(t *testing.T) {
	t.Parallel()
	rig := NewRig(t, gtidFlags...)
	m := rig.MySQL
	m.Exec(t, "CREATE DATABASE beat", "CREATE TABLE beat.hb (id INT PRIMARY KEY, n INT)", "INSERT INTO beat.hb VALUES (1,0)", "GRANT UPDATE ON beat.hb TO tide@'%'")
	idle := rig.Connector(t, "beat-idle", "file", `beat\.nothing`)
	idle.Config["heartbeat.interval.ms"] = "500"
	action := rig.Connector(t, "beat-action", "file", `beat\.hb`)
	action.Config = action.Config.With(Properties{
		"heartbeat.interval.ms": "1000", "heartbeat.action.query": "UPDATE beat.hb SET n=n+1", "topic.heartbeat.prefix": "hbprefix",
		"topic.creation.default.partitions": "1",
	})
	for _, c := range []*Connector{idle, action} {
		c.Worker["key.converter.schemas.enable"], c.Worker["value.converter.schemas.enable"] = "true", "true"
	}
	p := idle.RunStreaming(t)
	time.Sleep(3 * time.Second)
	beats := rig.Kafka.Read(t, "__debezium-heartbeat.beat-idle")
	if len(beats) < 3 {
		t.Errorf("%d heartbeats in 3 s on an idle server, at 500 ms", len(beats))
	}
	// A filtered row and an empty transaction move the offset.
	m.Exec(t, "INSERT INTO beat.hb VALUES (2,0)", "BEGIN", "COMMIT")
	idle.AwaitDrained(t, time.Minute)
	p.Terminate(t)
	if got := rig.Kafka.Read(t, "beat-idle."); len(got) != 0 {
		t.Errorf("%d records", len(got))
	}

	p = action.RunStreaming(t)
	eventually(t, time.Minute, "rows of the action query", func() error {
		if n := rig.Kafka.Count(t, "beat-action.beat.hb"); n < 4 {
			return fmt.Errorf("%d rows", n)
		}
		return nil
	})
	p.Terminate(t)
	prefixed := rig.Kafka.Read(t, "hbprefix.beat-action")
	if len(prefixed) < 2 {
		t.Errorf("%d heartbeats on hbprefix.beat-action", len(prefixed))
	}

	captured := readCapture(t, filepath.Join("testdata", "golden", "heartbeat")).heartbeats[0]
	want := clockOfHeartbeat.ReplaceAllString(*captured.Value, `"ts_ms":0`)
	for _, b := range slices.Concat(beats, prefixed) {
		name := b.Topic[len(b.Topic)-len("beat-idle"):]
		if b.Topic == "hbprefix.beat-action" {
			name = "beat-action"
		}
		key := heartbeatServer.ReplaceAllString(*captured.Key, fmt.Sprintf(`"serverName":"%s"}`, name))
		if string(b.Key) != key || clockOfHeartbeat.ReplaceAllString(string(b.Value), `"ts_ms":0`) != want || b.Partition != 0 || len(b.Headers) > 0 {
			t.Errorf("%s/%d: key %s value %s headers %v\nwant key %s value %s", b.Topic, b.Partition, b.Key, b.Value, b.Headers, key, want)
		}
	}
}
