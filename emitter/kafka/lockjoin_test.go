package kafka

import (
	"testing"
	"time"
)

// A member that hears late of the lock that it was given has it only if the coordinator still knows it: its session began when the join was
// answered, and to ask what has been decided meanwhile does not prolong it. That depends on who leads the group, which is by chance here.
func TestLockGivenLate(t *testing.T) {
	for range 32 {
		inBubble(t, 1, func(t *testing.T, r *lockRig) {
			a := r.member("a").run()
			r.watch(time.Second, []*lockMember{a}, a.Held)
			a.end()
			gone := time.Now()
			c := r.member("c").run()
			time.Sleep(heartbeatEvery / 2) // the coordinator hears of c first
			b := r.member("b").run()
			both := []*lockMember{b, c}
			time.Sleep(time.Second) // they have asked to join
			b.link.late(gone.Add(2*lockSession - heartbeatEvery/5))
			until := gone.Add(4 * lockSession)
			r.watch(5*lockSession, both, func() bool { return time.Now().After(until) })
			if len(holders(both)) != 1 {
				t.Error("nobody has the lock")
			}
			b.leave()
			c.leave()
		})
	}
}
