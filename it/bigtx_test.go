package it

import (
	"encoding/json"
	"fmt"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// maxRSS is the promise about memory, whatever the size of a transaction: 80 MB.
const maxRSS = 80_000_000

// TestBigTransaction reads one transaction of many rows (about 200 bytes each) twice over a SIGTERM in its middle: bounded memory,
// and not one row lost or repeated.
func TestBigTransaction(t *testing.T) {
	t.Parallel()
	rig := NewRig(t, gtidFlags...)
	stopInside(t, rig, "big", number(t, "TIDEMARK_IT_BIGTX", 100_000), "file")
}

// TestStopInsideATransactionWithoutGTIDs is the same on a server without GTIDs, where only file and position say which
// transaction it is, and with the offset in a topic.
func TestStopInsideATransactionWithoutGTIDs(t *testing.T) {
	t.Parallel()
	rig := NewRig(t, fileFlags...)
	stopInside(t, rig, "plain", 20_000, "topic")
}

func stopInside(t *testing.T, rig *Rig, name string, rows int, store string) {
	rig.MySQL.Exec(t, "CREATE DATABASE "+name, `CREATE TABLE `+name+`.t (id BIGINT PRIMARY KEY, n INT, name VARCHAR(60), amount DECIMAL(10,2),
		at DATETIME(3), ts TIMESTAMP, note TEXT, doc JSON, flag TINYINT(1))`,
		"CREATE TABLE "+name+".digits (d INT PRIMARY KEY)", "INSERT INTO "+name+".digits VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)")
	c := rig.Connector(t, name, store, name+"\\.t")
	c.Config["topic.creation.default.partitions"] = "1"
	if rows < 500_000 {
		// All of a small transaction would be in the producer's buffer before the signal comes, and be written by the stop.
		rig.Kafka.Proxy.Throttle(4 << 20)
		c.Worker["producer.buffer.memory"] = strconv.Itoa(max(rows*80, 1<<20))
	}
	p := c.RunStreaming(t)

	// Statements of 10,000 rows, so that the transaction has many statements and each many rows events.
	begun := time.Now()
	statements := []string{"BEGIN"}
	step := min(rows, 10_000)
	for from := 0; from < rows; from += step {
		statements = append(statements, fmt.Sprintf(`INSERT INTO %[1]s.t SELECT %[2]d+v.n, v.n, CONCAT('name number ', v.n), v.n/100,
			'2026-11-29 12:00:00.123', '2026-11-29 12:00:00', REPEAT('x', 80), JSON_OBJECT('a', v.n), v.n %% 2
			FROM (SELECT a.d+10*b.d+100*c.d+1000*d.d AS n FROM %[1]s.digits a, %[1]s.digits b, %[1]s.digits c, %[1]s.digits d) v
			WHERE v.n < %[3]d ORDER BY v.n`, name, from, min(step, rows-from)))
	}
	rig.MySQL.Exec(t, append(statements, "COMMIT")...)
	t.Logf("%d rows committed in one transaction after %.1f s", rows, time.Since(begun).Seconds())
	c.AwaitCount(t, 2*time.Minute, int64(rows/4))
	peak := p.PeakRSS(t)
	p.Signal(t, syscall.SIGTERM)
	rig.Kafka.Proxy.Throttle(0)
	if code := p.Wait(t, time.Minute); code != 0 {
		t.Fatalf("exit code %d after SIGTERM, want 0", code)
	}
	half := rig.Kafka.Count(t, c.Prefix+".")
	stored := c.Stored(t)
	t.Logf("stopped after %d records at %s, peak RSS %.1f MB", half, stored, float64(peak)/1e6)
	var offset struct{ Event, Row int64 }
	if err := json.Unmarshal([]byte(stored), &offset); err != nil || offset.Event == 0 || half >= int64(rows) {
		t.Fatalf("the stop was not inside the transaction: %d of %d records, stored %q (%v)", half, rows, stored, err)
	}

	begun = time.Now()
	p = c.RunStreaming(t)
	c.AwaitDrained(t, 3*time.Minute)
	t.Logf("the rest after %.1f s, peak RSS %.1f MB", time.Since(begun).Seconds(), float64(p.PeakRSS(t))/1e6)
	peak = max(peak, p.PeakRSS(t))
	p.Terminate(t)
	if peak > maxRSS {
		t.Errorf("peak RSS %.1f MB, promised are at most %.1f MB", float64(peak)/1e6, maxRSS/1e6)
	}
	records := c.Records(t)
	if len(records) != rows {
		t.Errorf("%d records for %d rows", len(records), rows)
	}
	for i, m := range records {
		if id := column(t, m, "id"); id != strconv.Itoa(i) {
			t.Fatalf("record %d is row %s, so rows were lost, repeated or reordered; the stop was after %d records at %s", i, id, half, stored)
		}
	}
}
