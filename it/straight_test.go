package it

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestI5_StraightIntoAStatement stops a connector again and again inside the large statement of a transaction, which has
// others before and behind it. Each start has to go straight to the row where the one before it stopped, and every row is
// written once, with and without GTIDs.
func TestI5_StraightIntoAStatement(t *testing.T) {
	for name, flags := range map[string][]string{"GTID": gtidFlags, "FilePosition": fileFlags} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			straight(t, append(flags, "--binlog-rows-query-log-events=ON"))
		})
	}
}

func straight(t *testing.T, flags []string) {
	const rows = 60_000 // of about 100 bytes
	rig := NewRig(t, flags...)
	m := rig.MySQL
	m.Exec(t, "CREATE DATABASE far", "CREATE TABLE far.t (id BIGINT PRIMARY KEY, note TEXT)", "CREATE TABLE far.other (id BIGINT PRIMARY KEY, note TEXT)",
		"CREATE TABLE far.digits (d INT PRIMARY KEY)", "INSERT INTO far.digits VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)")
	c := rig.Connector(t, "far", "file", "far\\.t")
	c.Config["topic.creation.default.partitions"] = "1"
	c.Config["include.query"] = "true"
	c.Worker["producer.buffer.memory"] = strconv.Itoa(1 << 20) // so that a stop finds most rows unwritten
	rig.Kafka.Proxy.Throttle(2 << 20)
	p := c.RunStreaming(t)
	insert := func(table string, from, n int) string {
		return fmt.Sprintf(`INSERT INTO far.%s SELECT %[2]d+v.n, REPEAT('x', 80) FROM (SELECT a.d+10*b.d+100*c.d+1000*d.d+10000*e.d AS n
			FROM far.digits a, far.digits b, far.digits c, far.digits d, far.digits e) v WHERE v.n < %[3]d ORDER BY v.n`, table, from, n)
	}
	m.Exec(t, "BEGIN", insert("t", 0, 10), insert("other", 0, 1000), insert("t", 10, rows-1010), insert("t", rows-1000, 1000), "COMMIT", "INSERT INTO far.t VALUES ("+strconv.Itoa(rows)+",'after')")

	const went = `"msg":"gone straight to the stored rows event"`
	for _, part := range []int64{30, 50, 70} { // per cent, beyond the way that is rather read
		c.AwaitCount(t, 2*time.Minute, part*rows/100)
		p.Signal(t, syscall.SIGTERM)
		if code := p.Wait(t, time.Minute); code != 0 {
			t.Fatalf("exit code %d after SIGTERM, want 0", code)
		}
		var stored struct{ Event, Row int64 }
		if err := json.Unmarshal([]byte(c.Stored(t)), &stored); err != nil || stored.Event == 0 {
			t.Fatalf("the stop was not inside the transaction: %q (%v)", c.Stored(t), err)
		}
		p = c.RunStreaming(t)
		p.Await(t, time.Minute, went)
	}
	rig.Kafka.Proxy.Throttle(0)
	c.AwaitDrained(t, 2*time.Minute)
	p.Terminate(t)
	if strings.Contains(p.Output(), `"level":"warn"`) {
		t.Errorf("warnings:\n%s", p.Output())
	}
	records := c.Records(t)
	if len(records) != rows+1 {
		t.Errorf("%d records for %d rows", len(records), rows+1)
	}
	for i, r := range records {
		if id := column(t, r, "id"); id != strconv.Itoa(i) {
			t.Fatalf("record %d is row %s: lost, repeated or reordered", i, id)
		}
		value, err := fields(r.Value)
		if err != nil {
			t.Fatal(err)
		}
		source, err := fields(value["source"])
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(source["query"]), "INSERT INTO far.t") {
			t.Fatalf("row %d has query %s", i, source["query"])
		}
	}
}
