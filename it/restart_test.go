package it

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestI5_EveryRow starts one connector for every offset that can lie inside a transaction (each rows event, each row of it), all of
// them in one process and one offset file. Each has to write exactly the rows that its offset does not cover.
func TestI5_EveryRow(t *testing.T) {
	for name, flags := range map[string][]string{"GTID": gtidFlags, "FilePosition": fileFlags} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			everyRow(t, flags)
		})
	}
}

func everyRow(t *testing.T, flags []string) {
	rig := NewRig(t, append(flags, "--binlog-row-event-max-size=256")...)
	m := rig.MySQL
	m.Exec(t, "CREATE DATABASE every", "CREATE TABLE every.t (id INT PRIMARY KEY, v VARCHAR(40))", "CREATE TABLE every.other (id INT PRIMARY KEY)",
		"INSERT INTO every.t VALUES (1000,'before')")
	before := m.Query(t, "SELECT @@gtid_executed")[0][0]
	file, start := m.Position(t)
	m.Exec(t, "BEGIN",
		"INSERT INTO every.t VALUES (1,'one'),(2,'two'),(3,'three'),(4,REPEAT('4',40)),(5,REPEAT('5',40)),(6,REPEAT('6',40)),(7,REPEAT('7',40)),(8,REPEAT('8',40))",
		"INSERT INTO every.other VALUES (1),(2)",
		"UPDATE every.t SET v='changed' WHERE id<4",
		"DELETE FROM every.t WHERE id=2",
		"COMMIT",
		"INSERT INTO every.t VALUES (2000,'after')")

	// What the transaction has, by the server's own list: the rows of each event are found by reading the topic of a connector that
	// begins before it.
	first := rig.Connector(t, "all", "file", "every\\.t")
	first.Config["start.position"] = fmt.Sprintf("%s:%d", file, start)
	first.Config["topic.creation.default.partitions"] = "1"
	p := first.RunStreaming(t)
	first.AwaitDrained(t, time.Minute)
	p.Terminate(t)
	all := rowsOf(t, first)
	if len(all) != 8+3+1+1 {
		t.Fatalf("the whole transaction and the one after it are %d rows: %v", len(all), all)
	}

	list := m.Binlog(t)
	number, err := fileNumber(file)
	if err != nil {
		t.Fatal(err)
	}
	begin := slices.IndexFunc(list.events[number], func(e listed) bool { return e.pos >= start && strings.HasPrefix(e.info, "BEGIN") })
	events := list.events[number][begin:]
	type offset struct {
		text string
		want []string
	}
	var offsets []offset
	add := func(event, row int, want []string) {
		text := fmt.Sprintf(`{"file":"%s","pos":%d,"row":%d,"event":%d}`, file, events[0].pos, row, event)
		if before != "" {
			text = fmt.Sprintf(`{"file":"%s","pos":%d,"gtids":"%s","row":%d,"event":%d}`, file, events[0].pos, before, row, event)
		}
		offsets = append(offsets, offset{text, want})
	}
	done := 0
	for i, e := range events {
		if e.kind == "Xid" {
			break
		}
		rows := 0
		for done+rows < len(all) && strings.HasSuffix(all[done+rows], fmt.Sprintf("@%d", e.pos)) {
			rows++
			add(i, rows, all[done+rows:])
		}
		done += rows
		if i > 0 {
			add(i, 0, all[done-rows:])
		}
	}
	if done != len(all)-1 {
		t.Fatalf("%d of %d rows found in the server's list %v", done, len(all)-1, events)
	}

	folder := t.TempDir()
	var pairs, arguments []string
	var connectors []*Connector
	for i, o := range offsets {
		c := rig.Connector(t, fmt.Sprintf("every%d", i), "file", "every\\.t")
		c.Config["topic.creation.default.partitions"] = "1"
		connectors = append(connectors, c)
		pairs = append(pairs, OffsetKey(c.Name, c.Prefix), o.text)
		c.Worker["offset.storage.file.filename"] = filepath.Join(folder, "offsets.dat")
		worker, connector := c.Files(t)
		if i == 0 {
			arguments = append(arguments, "run", worker)
		}
		arguments = append(arguments, connector)
		c.Folder = folder // where the common offset file is
	}
	WriteOffsetFile(t, filepath.Join(folder, "offsets.dat"), pairs...)
	p = Run(t, arguments...)
	for _, c := range connectors {
		c.AwaitDrained(t, 90*time.Second)
	}
	p.Terminate(t)
	for i, c := range connectors {
		if got := rowsOf(t, c); !slices.Equal(got, offsets[i].want) {
			t.Errorf("from %s:\n got %v\nwant %v", offsets[i].text, got, offsets[i].want)
		}
	}
	t.Logf("%d offsets inside one transaction, each went on at its row", len(offsets))
}

// rowsOf are the connector's data records, tombstones aside, as "op id@source.pos".
func rowsOf(t *testing.T, c *Connector) []string {
	t.Helper()
	var rows []string
	for _, m := range c.Records(t) {
		if m.Value == nil {
			continue
		}
		value, err := fields(m.Value)
		if err != nil {
			t.Fatal(err)
		}
		source, err := fields(value["source"])
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, fmt.Sprintf("%s %s@%s", value["op"], column(t, m, "id"), source["pos"]))
	}
	return rows
}

// TestI8_FilteredRowsMoveTheOffset shows that the stored offset follows a server on which nothing happens to captured tables.
func TestI8_FilteredRowsMoveTheOffset(t *testing.T) {
	t.Parallel()
	rig := NewRig(t, gtidFlags...)
	m := rig.MySQL
	m.Exec(t, "CREATE DATABASE quiet", "CREATE TABLE quiet.captured (id INT PRIMARY KEY)", "CREATE TABLE quiet.other (id INT PRIMARY KEY)")
	c := rig.Connector(t, "quiet", "file", "quiet\\.captured")
	p := c.RunStreaming(t)
	m.Exec(t, "INSERT INTO quiet.captured VALUES (1)")
	c.AwaitDrained(t, time.Minute)
	for i := range 3 {
		m.Exec(t, fmt.Sprintf("INSERT INTO quiet.other VALUES (%d)", i), "BEGIN", "COMMIT")
		c.AwaitDrained(t, time.Minute)
	}
	m.Exec(t, "FLUSH BINARY LOGS")
	c.AwaitDrained(t, time.Minute)
	// The old files may go now: a restart does not need them.
	file, _ := m.Position(t)
	p.Terminate(t)
	m.Exec(t, "PURGE BINARY LOGS TO '"+file+"'", "INSERT INTO quiet.captured VALUES (2)")
	p = c.RunStreaming(t)
	c.AwaitDrained(t, time.Minute)
	p.Terminate(t)
	if got := c.Records(t); len(got) != 2 {
		t.Errorf("%d records, want 2", len(got))
	}
}

// TestItHealsItself disturbs one running process in every way that waiting can heal. It has to go on by itself, lose nothing, and
// say once what is wrong, not once a retry.
func TestItHealsItself(t *testing.T) {
	t.Parallel()
	rig := NewRig(t, gtidFlags...)
	m := rig.MySQL
	m.Exec(t, "CREATE DATABASE heal", "CREATE TABLE heal.t (id INT PRIMARY KEY)")
	c := rig.Connector(t, "heal", "topic", "heal\\.t")
	c.Config["topic.creation.default.partitions"] = "1"
	c.Config["connect.keep.alive.interval.ms"] = "1000"
	p := c.RunStreaming(t)
	rows := 0
	insert := func(t *testing.T) {
		t.Helper()
		rows++
		m.Exec(t, fmt.Sprintf("INSERT INTO heal.t VALUES (%d)", rows))
	}
	arrives := func(t *testing.T) {
		t.Helper()
		c.AwaitCount(t, 60*time.Second, int64(rows))
		if p.Ended() {
			t.Fatalf("tidemark ended with code %d", p.code)
		}
	}
	insert(t)
	arrives(t)
	for _, trouble := range []struct {
		name string
		make func(t *testing.T)
	}{
		{"MySQL restarts", func(t *testing.T) {
			m.Stop(t, true)
			time.Sleep(4 * time.Second) // several attempts
			m.Start(t)
			insert(t)
		}},
		{"MySQL is killed", func(t *testing.T) {
			insert(t)
			m.Stop(t, false)
			m.Start(t)
			insert(t)
		}},
		{"connections to MySQL are cut", func(t *testing.T) {
			if rig.Link.Cut() == 0 {
				t.Error("there was no connection to cut")
			}
			insert(t)
		}},
		{"the server falls silent", func(t *testing.T) {
			rig.Link.Hold(true, true)
			insert(t)
			// No heartbeat comes, so it has to find out by itself.
			from := len(p.Output())
			eventually(t, 60*time.Second, "the silence being noticed", func() error {
				if !strings.Contains(p.Output()[from:], "heartbeat") {
					return errors.New("nothing said")
				}
				return nil
			})
			// What is held now is gone for good.
			rig.Link.Cut()
			rig.Link.Hold(false, false)
		}},
		{"Kafka is down", func(t *testing.T) {
			rig.Kafka.Stop(t, true)
			insert(t)
			time.Sleep(5 * time.Second)
			rig.Kafka.Start(t)
		}},
		{"Kafka is killed", func(t *testing.T) {
			insert(t)
			rig.Kafka.Stop(t, false)
			insert(t)
			rig.Kafka.Start(t)
		}},
		{"Kafka closes every connection at once", func(t *testing.T) {
			// The client takes that for a wrong security.protocol and gives its records up, so several attempts fail.
			rig.Kafka.Proxy.Refuse(true)
			rig.Kafka.Proxy.Cut()
			for range 12 {
				insert(t)
				time.Sleep(400 * time.Millisecond)
			}
			rig.Kafka.Proxy.Refuse(false)
			insert(t)
		}},
		{"connections to Kafka are cut", func(t *testing.T) {
			insert(t)
			rig.Kafka.Proxy.Cut()
			insert(t)
		}},
	} {
		t.Run(strings.ReplaceAll(trouble.name, " ", "_"), func(t *testing.T) {
			from := len(p.Output())
			trouble.make(t)
			begun := time.Now()
			arrives(t)
			t.Logf("it goes on %.1f s after all is well again", time.Since(begun).Seconds())
			said := strings.TrimSpace(p.Output()[from:])
			if said == "" {
				t.Logf("said nothing")
				return
			}
			t.Logf("said:\n%s", said)
			if n := strings.Count(said, "\n") + 1; n > 12 {
				t.Errorf("%d lines about one trouble", n)
			}
		})
	}
	c.AwaitDrained(t, time.Minute)
	p.Terminate(t)
	most := 0
	for i, r := range c.Records(t) {
		id, err := strconv.Atoi(column(t, r, "id"))
		switch {
		case err != nil || id > most+1:
			t.Fatalf("record %d is row %d (%v), and row %d is not there: lost or reordered", i, id, err, most+1)
		case id <= most: // it was on its way when the stream began anew, as when the group did not say for so long who runs
			t.Logf("row %d was sent again", id)
		}
		most = max(most, id)
	}
	if most != rows {
		t.Errorf("the last row is %d of %d", most, rows)
	}
}
