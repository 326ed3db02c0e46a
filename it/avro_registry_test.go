package it

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestAvroRegistryKilled kills the registry again and again under load, Tidemark too, and stops it cleanly. While it is down rows whose
// schemas are known go on; the first one that needs another waits, with all behind it, and Tidemark says so with the subject. It never
// ends by itself, and the checker has to find nothing lost, invented or reordered, and no repeated record but in a replay from the
// stored offset.
func TestAvroRegistryKilled(t *testing.T) {
	t.Parallel()
	seed := uint64(number(t, "TIDEMARK_IT_SEED", int(time.Now().UnixNano()%1_000_000)))
	t.Logf("TIDEMARK_IT_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 7))
	rig := NewRig(t, gtidFlags...)
	registry := StartRegistry(t, "BACKWARD")
	m := rig.MySQL
	c := rig.Connector(t, "outage", "topic", "outage\\..*")
	c.Worker["offset.flush.interval.ms"] = "300"
	c.Config = c.Config.With(registry.AvroConverter(t, "confluent")).With(Properties{"start.position": "oldest"})
	chaos := &chaos{rig: rig, connector: c, rng: rng}

	// The table that always needs one more schema: a row in the shape of each of its times.
	grown := Table{Name: "outage.grown", Columns: []string{"id", "c0"}, Key: []string{"id"}}
	tables := append(WorkloadTables("outage"), grown)
	var grownRows []Change
	work := StartWorkload(t, m, "outage", seed, 2000)
	m.Exec(t, "CREATE TABLE outage.grown (id INT PRIMARY KEY, c0 INT)")
	grow := func() {
		t.Helper()
		n := len(grownRows) + 1
		m.Exec(t, fmt.Sprintf("ALTER TABLE outage.grown ADD c%d INT", n), fmt.Sprintf("INSERT INTO outage.grown VALUES (%d%s)", n, strings.Repeat(",5", n+1)))
		grownRows = append(grownRows, Change{Table: grown.Name, After: NewRow(n, 5)})
	}
	// registered waits until the last shape of that table is: Tidemark has then come that far.
	registered := func() {
		t.Helper()
		eventually(t, 60*time.Second, "the last schema", func() error {
			if n := len(Of(registry.Versions(t), "outage.outage.grown-value")); n != len(grownRows) {
				return fmt.Errorf("%d versions, %d rows", n, len(grownRows))
			}
			return nil
		})
	}
	pause := func(most int) { time.Sleep(time.Duration(rng.IntN(most)) * time.Millisecond) }

	grow()

	// The registry is down when Tidemark starts: the first record waits.
	registry.Kill()
	chaos.process = c.Run(t)
	p := chaos.process
	p.Await(t, 60*time.Second, `trying again.*"subject":"outage\.outage\.\w+-(key|value)"`)
	if n := len(c.Records(t)); n != 0 {
		t.Errorf("%d records were written without a schema", n)
	}
	registry.Start(t)
	eventually(t, 60*time.Second, "a schema of every table", func() error {
		all := registry.Versions(t)
		for _, table := range tables {
			if len(Of(all, c.Prefix+"."+table.Name+"-value")) == 0 {
				return fmt.Errorf("none of %s", table.Name)
			}
		}
		return nil
	})
	registered()

	for i := range 3 {
		// Known schemas go on.
		if i%2 == 0 {
			registry.Kill()
		} else {
			registry.Stop(t)
		}
		have := rig.Kafka.Count(t, c.Prefix+".")
		c.AwaitCount(t, time.Minute, have+300)

		from := len(p.Output())
		grow()
		eventually(t, 60*time.Second, "Tidemark saying what it waits for", func() error {
			if said := p.Output()[from:]; !strings.Contains(said, `"subject":"outage.outage.grown-value"`) {
				return fmt.Errorf("it said %q", tail(said, 3))
			}
			return nil
		})
		// What is behind the row waits, whatever schema it has.
		var stands int64
		eventually(t, time.Minute, "the stream standing still", func() error {
			now := rig.Kafka.Count(t, c.Prefix+".")
			time.Sleep(500 * time.Millisecond)
			if stands = rig.Kafka.Count(t, c.Prefix+"."); stands != now {
				return fmt.Errorf("%d records, then %d", now, stands)
			}
			return nil
		})
		grow() // more of them wait
		pause(3000)
		if now := rig.Kafka.Count(t, c.Prefix+"."); now != stands {
			t.Errorf("%d records were written past the one that waits for a schema", now-stands)
		}
		if i == 2 {
			// Killed while it waits. It knows no schema when it starts again, so it waits for the first one.
			chaos.kill(t)
			chaos.process = c.Run(t)
			p = chaos.process
			pause(2000)
		}
		if p.Ended() {
			t.Fatalf("tidemark ended by itself with code %d", p.code)
		}
		registry.Start(t)
		registered()
	}
	// Both are killed at once in full stream.
	for range 2 {
		grow()
		registered()
		pause(500)
		registry.Kill()
		chaos.kill(t)
		grow()
		chaos.process = c.Run(t)
		p = chaos.process
		registry.Start(t)
		registered()
	}
	changes := append(work.Stop(t), grownRows...)
	c.AwaitDrained(t, 2*time.Minute)
	p.Terminate(t)

	registered()
	final := work.Final(t)
	for _, ch := range grownRows {
		final[grown.Name] = append(final[grown.Name], ch.After)
	}
	messages := registry.AvroDecoder("confluent").JSON(t, c.Records(t))
	for i := range messages {
		if messages[i].Topic == c.Prefix+"."+grown.Name {
			messages[i].Value = firstColumns(t, messages[i].Value)
		}
	}
	evidence := Evidence{
		Prefix: c.Prefix, Tables: tables, Changes: changes, Final: final,
		Messages: messages, Offsets: chaos.offsets(t), Binlog: m.Binlog(t),
	}
	report := Check(evidence)
	t.Logf("%v", report)
	for _, problem := range append(report.Problems, CheckWorkload(evidence)...) {
		t.Error(problem)
	}
	if report.Replays == 0 {
		t.Error("no replay was seen, so the kills have shown nothing")
	}
}

// firstColumns leaves of the image of a row of the table that grew the columns that it had from the start.
func firstColumns(t *testing.T, value []byte) []byte {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(value, &v); err != nil {
		t.Fatal(err)
	}
	after, ok := v["after"].(map[string]any)
	if !ok {
		t.Fatalf("no row: %s", value)
	}
	for name, cell := range after {
		if name != "id" && name != "c0" {
			if cell != 5.0 {
				t.Errorf("column %s is %v: %s", name, cell, value)
			}
			delete(after, name)
		}
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
