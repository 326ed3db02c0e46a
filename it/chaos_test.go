package it

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestI1_I2_I5_I7_Chaos lets writers work on a real MySQL while Tidemark is killed with SIGKILL at random moments, connections are
// cut or fall silent, and both servers are restarted, cleanly and not. Then the checker has to find that nothing was lost, invented
// or reordered, that every repeated record belongs to a replay from the offset that was stored, and that no offset was ever stored
// ahead of what Kafka had acknowledged.
func TestI1_I2_I5_I7_Chaos(t *testing.T) {
	t.Parallel()
	kills := number(t, "TIDEMARK_IT_KILLS", 5)
	seed := uint64(number(t, "TIDEMARK_IT_SEED", int(time.Now().UnixNano()%1_000_000)))
	store := os.Getenv("TIDEMARK_IT_STORE")
	if store == "" {
		store = "file" // of the topic there is TestVortex
	}
	t.Logf("TIDEMARK_IT_SEED=%d TIDEMARK_IT_KILLS=%d TIDEMARK_IT_STORE=%s", seed, kills, store)
	rng := rand.New(rand.NewPCG(seed, 99))
	rig := NewRig(t, gtidFlags...)
	c := rig.Connector(t, "chaos", store, "chaos\\..*")
	c.Worker["offset.flush.interval.ms"] = "300"
	c.Config["start.position"] = "oldest"
	chaos := &chaos{rig: rig, connector: c, rng: rng}

	begun := time.Now()
	work := StartWorkload(t, rig.MySQL, "chaos", seed, number(t, "TIDEMARK_IT_BULK", 10_000))
	chaos.start(t)
	for i := range kills {
		chaos.trouble(t, i)
		chaos.kill(t)
		chaos.start(t)
		t.Logf("%.0f s: kill %d, %d rows written, stored %s", time.Since(begun).Seconds(), i+1, work.Rows(), c.Stored(t))
		// The servers are restarted while Tidemark runs; it has to go on by itself.
		switch i {
		case kills / 3:
			clean := rng.IntN(2) == 0
			t.Logf("restarting MySQL, clean %v", clean)
			rig.MySQL.Stop(t, clean)
			time.Sleep(time.Duration(rng.IntN(2000)) * time.Millisecond)
			rig.MySQL.Start(t)
		case 2 * kills / 3:
			clean := rng.IntN(2) == 0
			t.Logf("restarting Kafka, clean %v", clean)
			rig.Kafka.Stop(t, clean)
			time.Sleep(time.Duration(rng.IntN(2000)) * time.Millisecond)
			rig.Kafka.Start(t)
		}
		if chaos.process.Ended() {
			t.Fatalf("tidemark ended by itself with code %d", chaos.process.code)
		}
	}
	changes := work.Stop(t)
	c.AwaitDrained(t, 2*time.Minute)
	chaos.process.Terminate(t)
	chaos.pauseSampling()
	t.Logf("%.0f s: drained", time.Since(begun).Seconds())

	evidence := Evidence{
		Prefix: c.Prefix, Tables: WorkloadTables("chaos"), Changes: changes, Final: work.Final(t),
		Messages: c.Records(t), Offsets: chaos.offsets(t), Binlog: rig.MySQL.Binlog(t),
	}
	report := Check(evidence)
	t.Logf("%.0f s: checked: %d kills, %d row changes: %v", time.Since(begun).Seconds(), kills, len(changes), report)
	problems := append(report.Problems, CheckWorkload(evidence)...)
	for _, p := range problems {
		t.Error(p)
	}
	if len(problems) > 0 {
		return
	}
	if report.Replays == 0 || kills >= 20 && report.Inside == 0 {
		t.Errorf("%d kills never met a replay or an offset inside a transaction, so this run has proven little", kills)
	}
	negativeControl(t, evidence, rng)
}

// chaos is one run of the test above.
type chaos struct {
	rig       *Rig
	connector *Connector
	rng       *rand.Rand
	process   *Process

	mu       sync.Mutex
	sampled  []Stored // offsets seen in the file, oldest first
	last     string
	sampling chan struct{} // closed to end the sampling
	ended    sync.WaitGroup
}

func (c *chaos) start(t *testing.T) {
	t.Helper()
	c.rig.Link.Hold(false, false)
	c.rig.Kafka.Proxy.Hold(false, false)
	c.process = c.connector.Run(t)
	c.resumeSampling(t)
	// Now and then the next kill comes while it is still starting.
	if c.rng.IntN(4) > 0 {
		c.process.Await(t, 60*time.Second, streaming)
	}
}

// trouble lets it work for a random time and then disturbs it, so that a kill meets it in more states than steady streaming.
func (c *chaos) trouble(t *testing.T, i int) {
	t.Helper()
	pause := func(most int) { time.Sleep(time.Duration(c.rng.IntN(most)) * time.Millisecond) }
	pause(3000)
	// The first ones always come, in this order, so that a short run has them too.
	kind := i
	if i >= 5 {
		kind = c.rng.IntN(5)
	}
	switch kind {
	case 0:
		t.Logf("trouble: the broker's answers are held, so records are appended that Tidemark does not know of")
		c.rig.Kafka.Proxy.Hold(false, true)
		pause(800)
	case 1:
		t.Logf("trouble: %d connections to MySQL cut", c.rig.Link.Cut())
		pause(3000)
	case 2:
		t.Logf("trouble: %d connections to Kafka cut", c.rig.Kafka.Proxy.Cut())
		pause(1500)
	case 3:
		t.Logf("trouble: the server's stream is held")
		c.rig.Link.Hold(false, true)
		pause(500)
		c.rig.Link.Hold(false, false)
		pause(300)
	case 4:
		t.Logf("trouble: none")
	}
}

func (c *chaos) kill(t *testing.T) {
	t.Helper()
	if c.process.Ended() {
		t.Fatalf("tidemark ended by itself with code %d", c.process.code)
	}
	c.process.Kill()
	// What the dead process had handed to the network dies with it; only what the broker has got may still be appended.
	c.rig.Kafka.Proxy.Cut()
	c.pauseSampling()
	c.sample(t)
}

// sample notes the offset in the file when it is another one than before.
func (c *chaos) sample(t *testing.T) {
	if c.connector.Store != "file" {
		return
	}
	entries, err := ReadOffsetFile(c.connector.OffsetFile())
	if err != nil {
		t.Errorf("the offset file is not whole: %v", err) // I9
		return
	}
	text := entries[OffsetKey(c.connector.Name, c.connector.Prefix)]
	c.mu.Lock()
	defer c.mu.Unlock()
	if text == "" || text == c.last {
		return
	}
	s, err := ParseStored([]byte(text), time.Now())
	if err != nil {
		t.Error(err)
		return
	}
	c.last = text
	c.sampled = append(c.sampled, s)
}

// resumeSampling looks at the offset file every few milliseconds: also a proof that it is whole at every moment.
func (c *chaos) resumeSampling(t *testing.T) {
	if c.connector.Store != "file" || c.sampling != nil {
		return
	}
	stop := make(chan struct{})
	c.sampling = stop
	c.ended.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				c.sample(t)
			}
		}
	})
}

func (c *chaos) pauseSampling() {
	if c.sampling != nil {
		close(c.sampling)
		c.sampling = nil
		c.ended.Wait()
	}
}

func (c *chaos) offsets(t *testing.T) []Stored {
	t.Helper()
	if c.connector.Store == "file" {
		c.sample(t)
		return c.sampled
	}
	var all []Stored
	for _, m := range c.connector.StoredOnTopic(t) {
		s, err := ParseStored(m.Value, m.Time)
		if err != nil {
			t.Error(err)
			continue
		}
		all = append(all, s)
	}
	return all
}

// negativeControl shows on this very run that the checker would have noticed: each fault is put into a copy of the evidence.
func negativeControl(t *testing.T, e Evidence, rng *rand.Rand) {
	t.Helper()
	// A record that is there once, with its neighbour in the same partition.
	times := map[string]int{}
	id := func(m *Message) string { return fmt.Sprint(m.Topic, m.Partition, string(m.Value)) }
	for i := range e.Messages {
		times[id(&e.Messages[i])]++
	}
	at := -1
	for range 100_000 {
		i := rng.IntN(len(e.Messages) - 1)
		a, b := &e.Messages[i], &e.Messages[i+1]
		if strings.HasSuffix(a.Topic, ".bulk") && b.Topic == a.Topic && b.Partition == a.Partition && a.Value != nil && b.Value != nil &&
			times[id(a)] == 1 && times[id(b)] == 1 {
			at = i
			break
		}
	}
	if at < 0 {
		t.Fatal("negative control: no record to try it on")
	}
	for name, change := range map[string]func([]Message) []Message{
		"dropped": func(ms []Message) []Message { return slices.Delete(ms, at, at+1) },
		"swapped": func(ms []Message) []Message { ms[at], ms[at+1] = ms[at+1], ms[at]; return ms },
		"doubled": func(ms []Message) []Message { return slices.Insert(ms, at+2, ms[at]) },
		"changed": func(ms []Message) []Message {
			m := ms[at]
			m.Value = []byte(strings.Replace(string(m.Value), `"version":`, `"version":1`, 1))
			m.understood = nil
			ms[at] = m
			return ms
		},
	} {
		broken := e
		broken.Messages = change(slices.Clone(e.Messages))
		if r := Check(broken); len(r.Problems) == 0 {
			t.Errorf("negative control: the checker did not notice a %s event (record %d)", name, at)
		} else {
			t.Logf("negative control, one event %s: caught: %.160s", name, r.Problems[0])
		}
	}
}
