package it

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// TestDebezium hands one connector back and forth between a real Kafka Connect worker with Debezium and Tidemark, each time in the
// middle of a transaction, with the offset in Connect's standalone file and in its offsets topic. The configuration is the same
// file. No row may be lost. After a clean stop of Tidemark none may be repeated either; a Connect worker stores less at its stop
// than Kafka has, so what it left is repeated from exactly the row that its offset names.
func TestDebezium(t *testing.T) {
	for _, store := range []string{"file", "topic"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			handOver(t, NewRig(t, gtidFlags...), store)
		})
	}
}

func handOver(t *testing.T, rig *Rig, store string) {
	const rows = 30_000 // of each transaction that is cut in two
	m, k := rig.MySQL, rig.Kafka
	database := "handover_" + store
	m.Exec(t, "CREATE DATABASE "+database, "CREATE TABLE "+database+".t (id INT PRIMARY KEY, v VARCHAR(60))",
		"CREATE TABLE "+database+".digits (d INT PRIMARY KEY)", "INSERT INTO "+database+".digits VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)",
		"INSERT INTO "+database+".t VALUES (-2,'before'),(-1,'before')")
	c := rig.Connector(t, "handover-"+store, store, database+"\\.t")
	c.Config = c.Config.With(Properties{
		"topic.creation.default.partitions":                      "1",
		"schema.history.internal.kafka.bootstrap.servers":        k.Addr(),
		"schema.history.internal.kafka.topic":                    "history-" + c.Name,
		"database.server.id":                                     strconv.Itoa(700_000 + len(store)),
		"max.batch.size":                                         "512",
		"poll.interval.ms":                                       "50",
		"schema.history.internal.store.only.captured.tables.ddl": "true",
	})
	c.Worker = c.Worker.With(Properties{
		"offset.flush.interval.ms": "500",
		"offset.flush.timeout.ms":  "20000",
		"plugin.discovery":         "only_scan",
		"producer.buffer.memory":   "1048576", // what a stop still has to write
	})
	port := freePort(t)
	c.Worker["listeners"] = fmt.Sprintf("http://127.0.0.1:%d", port)
	if store == "topic" {
		for _, kind := range []string{"config", "status"} {
			c.Worker[kind+".storage.topic"] = "connect-" + kind + "-" + c.Name
			c.Worker[kind+".storage.replication.factor"] = "1"
		}
	}
	worker, _ := c.Files(t)

	connectRuns := 0
	startConnect := func() *Process {
		t.Helper()
		connectRuns++
		if store == "file" {
			return c.StandaloneConnect(t)
		}
		p := Start(t, "connect", append(connectCommand(t), "org.apache.kafka.connect.cli.ConnectDistributed", worker)...)
		if connectRuns > 1 {
			return p // it knows its connector from its configuration topic
		}
		body, err := json.Marshal(map[string]any{"name": c.Name, "config": c.Config})
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, 90*time.Second, "creating the connector", func() error {
			r, err := http.Post(fmt.Sprintf("http://127.0.0.1:%d/connectors", port), "application/json", bytes.NewReader(body))
			if err != nil {
				return err
			}
			defer r.Body.Close()
			if r.StatusCode != http.StatusCreated {
				text, _ := io.ReadAll(r.Body)
				return fmt.Errorf("%s: %s", r.Status, text)
			}
			return nil
		})
		return p
	}
	stop := func(p *Process) {
		t.Helper()
		p.Signal(t, syscall.SIGTERM)
		k.Proxy.Throttle(0)
		p.Wait(t, 60*time.Second)
	}
	transaction := func(from int) {
		t.Helper()
		statements := []string{"BEGIN"}
		for at := from; at < from+rows; at += 10_000 {
			statements = append(statements, fmt.Sprintf(`INSERT INTO %[1]s.t SELECT %[2]d+v.n, REPEAT('x', 50)
				FROM (SELECT a.d+10*b.d+100*c.d+1000*d.d AS n FROM %[1]s.digits a, %[1]s.digits b, %[1]s.digits c, %[1]s.digits d) v ORDER BY v.n`, database, at))
		}
		m.Exec(t, append(statements, "COMMIT")...)
	}
	// left is what one program leaves to the next: how many records there are, and the offset.
	type left struct {
		who     string
		records int
		stored  Stored
	}
	var handed []left
	begun := time.Now()
	inside := func(who string) {
		t.Helper()
		text := c.Stored(t)
		stored, err := ParseStored([]byte(text), time.Time{})
		if err != nil || stored.Event == 0 {
			t.Fatalf("%s did not stop inside the transaction: stored %q (%v)", who, text, err)
		}
		handed = append(handed, left{who, len(c.Records(t)), stored})
		t.Logf("%s stopped after %d records at %s (%.0f s)", who, handed[len(handed)-1].records, text, time.Since(begun).Seconds())
	}

	// Debezium first, so that its schema history exists.
	p := startConnect()
	p.Await(t, 120*time.Second, `Keepalive thread is running|Connected to binlog|Streaming started|Starting streaming`)
	m.Exec(t, "INSERT INTO "+database+".t VALUES (0,'streamed by Debezium')")
	c.AwaitCount(t, 60*time.Second, 1)
	k.Proxy.Throttle(1 << 20)
	transaction(1)
	c.AwaitCount(t, 60*time.Second, rows/5)
	stop(p)
	inside("Debezium")

	// Tidemark ends that transaction and stops in the middle of the next one.
	p = c.RunStreaming(t)
	c.AwaitCount(t, 60*time.Second, 1+rows)
	k.Proxy.Throttle(2 << 20)
	transaction(1 + rows)
	c.AwaitCount(t, 60*time.Second, 1+rows+rows/5)
	p.Signal(t, syscall.SIGTERM)
	k.Proxy.Throttle(0)
	if code := p.Wait(t, time.Minute); code != 0 {
		t.Fatalf("tidemark ended with code %d", code)
	}
	inside("Tidemark")

	// Debezium ends it.
	p = startConnect()
	c.AwaitCount(t, 120*time.Second, 1+2*rows)
	m.Exec(t, "INSERT INTO "+database+fmt.Sprintf(".t VALUES (%d,'last')", 2*rows+1))
	c.AwaitCount(t, 60*time.Second, 2+2*rows)
	stop(p)

	t.Logf("all is there (%.0f s)", time.Since(begun).Seconds())
	list := m.Binlog(t)
	records := c.Records(t)
	next := 0
	places := map[int]Place{} // of each row
	for i, r := range records {
		id, err := strconv.Atoi(column(t, r, "id"))
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range handed {
			if h.records != i {
				continue
			}
			from, err := list.Resolve(h.stored)
			if err != nil {
				t.Fatalf("the offset that %s stored: %v", h.who, err)
			}
			at := placeOf(t, r)
			if at.Compare(from) < 0 || places[id-1].Compare(from) >= 0 {
				t.Errorf("%s left %v, which is %v, and the next program began at row %d, %v", h.who, h.stored, from, id, at)
			}
			t.Logf("after %s: from row %d, %d repeated", h.who, id, next-id)
			if id > next || h.who == "Tidemark" && id != next {
				t.Errorf("%s left off before row %d, the next program began at row %d", h.who, next, id)
			}
			next = id
		}
		if id != next {
			t.Fatalf("record %d is row %d, want row %d: rows were lost, repeated or reordered", i, id, next)
		}
		next++
		places[id] = placeOf(t, r)
	}
	if next != 2*rows+2 {
		t.Errorf("the last row is %d, want %d", next-1, 2*rows+1)
	}
}

// placeOf is the place of a record's row in the binlog.
func placeOf(t *testing.T, m Message) Place {
	t.Helper()
	var v struct {
		Source struct {
			File string
			Pos  int64
			Row  int
		}
	}
	if err := json.Unmarshal(payload(m.Value), &v); err != nil {
		t.Fatal(err)
	}
	file, err := fileNumber(v.Source.File)
	if err != nil {
		t.Fatal(err)
	}
	return Place{File: file, Pos: v.Source.Pos, Row: v.Source.Row}
}
