package it

import (
	"slices"
	"testing"
	"time"
)

// TestStandbyTogether has several processes begin at the same moment, when those before them were killed or have left: one streams, and
// none of the others before the group has decided, though the broker makes a group's first member wait, as it does by itself. Nothing
// is lost or reordered, and all that is repeated is a replay from a stored offset, at least once, too.
func TestStandbyTogether(t *testing.T) {
	t.Parallel()
	rig := newRigWith(t, broker{properties: []string{"group.initial.rebalance.delay.ms=3000"}}, gtidFlags...)
	c := rig.Connector(t, "together", "topic", "together\\..*")
	c.Worker["offset.flush.interval.ms"] = "300"
	c.Config["start.position"] = "oldest"
	work := StartWorkload(t, rig.MySQL, "together", 5, 1000)
	running := []*Process{c.RunStreaming(t)}
	rig.awaitMembers(t, c, 1)
	for round := range 8 {
		killed := round%2 == 0
		c.AwaitCount(t, time.Minute, rig.Kafka.Count(t, c.Prefix+".")+100)
		slices.SortFunc(running, func(a, b *Process) int { return a.Times(streaming) - b.Times(streaming) }) // so that none takes over
		for _, p := range running {
			if killed {
				p.Kill()
			} else {
				p.Terminate(t)
			}
		}
		running = nil
		began := time.Now()
		for range 2 + round/4 {
			running = append(running, c.Run(t))
		}
		streams := func() (n int) {
			for _, p := range running {
				n += p.Times(streaming)
			}
			return n
		}
		eventually(t, time.Minute, "one that streams", func() error {
			if streams() == 0 {
				return errNobody
			}
			return nil
		})
		t.Logf("%d processes, those before killed %v: one streams after %.2f s", len(running), killed, time.Since(began).Seconds())
		rig.awaitMembers(t, c, len(running))
		if n := streams(); n != 1 {
			t.Errorf("%d began to stream", n)
		}
	}
	changes := work.Stop(t)
	c.AwaitDrained(t, time.Minute)
	for _, p := range running {
		p.Terminate(t)
	}
	c.check(t, work, changes)
}
