package it

import (
	"fmt"
	"strconv"
	"testing"
	"time"
)

// TestTwoConnectorsOneStore runs two connectors in one process on one offset file, and on one offsets topic, beside the entry of a
// connector that is not there. Each keeps its own offset, and what belongs to the third one stays as it is, byte for byte.
func TestTwoConnectorsOneStore(t *testing.T) {
	t.Parallel()
	rig := NewRig(t, gtidFlags...)
	m := rig.MySQL
	m.Exec(t, "CREATE DATABASE two", "CREATE TABLE two.a (id INT PRIMARY KEY)", "CREATE TABLE two.b (id INT PRIMARY KEY)")
	rows := 0
	for _, store := range []string{"file", "topic"} {
		t.Run(store, func(t *testing.T) {
			a := rig.Connector(t, store+"-a", store, "two\\.a")
			b := rig.Connector(t, store+"-b", store, "two\\.b")
			for _, c := range []*Connector{a, b} {
				c.Config["topic.creation.default.partitions"] = "1"
				c.Folder, c.Worker = a.Folder, a.Worker
			}
			foreignKey, foreignValue := OffsetKey("somebody-else", "other"), `{"ts_sec":1,"file":"mysql-bin.000001","pos":157,"x":"é"}`
			stored := func(c *Connector) string {
				if store == "file" {
					return c.Stored(t)
				}
				text := ""
				for _, r := range rig.Kafka.Read(t, a.OffsetTopic()) {
					if string(r.Key) == OffsetKey(c.Name, c.Prefix) {
						text = string(r.Value)
					}
				}
				return text
			}
			if store == "file" {
				WriteOffsetFile(t, a.OffsetFile(), foreignKey, foreignValue)
			}
			insert := func() {
				rows++
				m.Exec(t, fmt.Sprintf("INSERT INTO two.a VALUES (%d)", rows), fmt.Sprintf("INSERT INTO two.b VALUES (%d)", rows))
			}
			run := func(cs ...*Connector) *Process {
				var arguments []string
				for i, c := range cs {
					worker, connector := c.Files(t)
					if i == 0 {
						arguments = append(arguments, "run", worker)
					}
					arguments = append(arguments, connector)
				}
				p := Run(t, arguments...)
				eventually(t, 60*time.Second, "streaming", func() error {
					if n := p.Times(streaming); n < len(cs) {
						if p.Ended() {
							t.Fatalf("ended with code %d", p.code)
						}
						return fmt.Errorf("%d of %d stream", n, len(cs))
					}
					return nil
				})
				return p
			}
			p := run(a, b)
			insert()
			a.AwaitCount(t, time.Minute, 1)
			b.AwaitCount(t, time.Minute, 1)
			p.Terminate(t)
			atA, atB := stored(a), stored(b)
			if atA == "" || atB == "" {
				t.Fatalf("stored: a %q, b %q", atA, atB)
			}

			// Only a runs: b's offset stays where it is, to the byte.
			p = run(a)
			insert()
			a.AwaitCount(t, time.Minute, 2)
			p.Terminate(t)
			if got := stored(b); got != atB {
				t.Errorf("b's offset became %s while only a ran; it was %s", got, atB)
			}
			if got := stored(a); got == atA {
				t.Errorf("a's offset stayed %s", got)
			}

			// b goes on from its own: the row that came meanwhile is there once.
			p = run(b)
			b.AwaitCount(t, time.Minute, 2)
			p.Terminate(t)
			for _, c := range []*Connector{a, b} {
				if got := c.Records(t); len(got) != 2 {
					t.Errorf("%s has %d records, want 2", c.Name, len(got))
				}
			}
			if store == "file" {
				entries, err := ReadOffsetFile(a.OffsetFile())
				if err != nil {
					t.Fatal(err)
				}
				// Beside each offset stands the side record.
				if len(entries) != 5 || entries[foreignKey] != foreignValue || entries[SideKey(a.Name, a.Prefix)] == "" || entries[SideKey(b.Name, b.Prefix)] == "" {
					t.Errorf("the file's entries: %v", entries)
				}
			}
		})
	}
}

// TestOneProcessAFile shows that a second process on the same offset file is refused, with the first one named.
func TestOneProcessAFile(t *testing.T) {
	t.Parallel()
	rig := NewRig(t, gtidFlags...)
	rig.MySQL.Exec(t, "CREATE DATABASE lock1", "CREATE TABLE lock1.t (id INT PRIMARY KEY)")
	c := rig.Connector(t, "lock1", "file", "lock1\\..*")
	p := c.RunStreaming(t)
	second := c.Run(t)
	if code := second.Wait(t, time.Minute); code != 1 {
		t.Errorf("the second process ended with code %d, want 1", code)
	}
	second.Await(t, time.Second, strconv.Itoa(p.cmd.Process.Pid))
	t.Logf("said: %s", tail(second.Output(), 1))
	p.Terminate(t)
	// A killed process leaves no lock behind.
	p = c.RunStreaming(t)
	p.Kill()
	p = c.RunStreaming(t)
	p.Terminate(t)
}
