package kafka

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// claims has a member that runs claim the lock, which takes no longer than some requests.
func (m *lockMember) claims() *lockMember {
	m.t.Helper()
	began := time.Now()
	if others, err := m.Claim(m.t.Context()); err != nil || len(others) > 0 {
		m.t.Fatal(others, err)
	}
	if took := time.Since(began); took > 20*time.Millisecond {
		m.t.Errorf("it took %v", took)
	}
	if state, _ := m.State(); state == LockWaiting || !m.Held() {
		m.t.Fatal(state, m.Held())
	}
	return m
}

func (m *lockMember) is(want LockState) bool {
	state, _ := m.State()
	return state == want
}

// A claim holds until the group decides, however long that takes, and becomes the lock itself.
func TestLockClaim(t *testing.T) {
	for name, delay := range map[string]time.Duration{"at once": 0, "usual": 3 * time.Second, "long": 20 * time.Second} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1, func(t *testing.T, r *lockRig) {
				r.initialDelay(delay)
				a := r.member("a").run().claims()
				if delay > 0 && !a.is(LockClaimed) {
					t.Fatal("the group has decided already")
				}
				first := a.Tenancy()
				r.passes(delay+lockSession, a, a)
				if !a.is(LockHeld) {
					t.Error("the group has not given it to the only member")
				}
				if a.Tenancy() != first {
					t.Error("the claim was lost in between")
				}
				a.leave()
			})
		})
	}
}

// Of several that begin at the same moment never two have the lock, and a claim is not taken away.
func TestLockClaimsOfSeveral(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	claimed := 0
	for round := range 300 {
		delay := []time.Duration{0, 100 * time.Millisecond, 3 * time.Second}[round%3]
		inBubble(t, 1, func(t *testing.T, r *lockRig) {
			r.initialDelay(delay)
			var all []*lockMember
			for i := range 2 + round/3%2 {
				m := r.member(fmt.Sprint("abc"[i : i+1]))
				m.link.slow(rand.New(rand.NewPCG(rng.Uint64(), 0)), 3*time.Millisecond)
				all = append(all, m)
				if others, err := m.Members(t.Context()); err != nil || len(others) > 0 { // which connects, too
					t.Fatal(others, err)
				}
			}
			rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			for _, m := range all {
				m.run()
				go m.Claim(t.Context())
				time.Sleep(time.Duration(rng.IntN(2)) * time.Duration(rng.Int64N(int64(20*time.Millisecond))))
			}
			var claimant *lockMember
			began := time.Now()
			r.closely(time.Second, all, func() bool {
				if i := slices.IndexFunc(all, func(m *lockMember) bool { return m.is(LockClaimed) }); i >= 0 {
					claimant = all[i]
				}
				return time.Since(began) > 50*time.Millisecond
			})
			r.watch(20*time.Second, all, func() bool {
				return slices.ContainsFunc(all, func(m *lockMember) bool { return m.is(LockHeld) }) && time.Since(began) > delay+time.Second
			})
			if claimant != nil {
				claimed++
				if !claimant.is(LockHeld) {
					t.Fatal("the group has decided against the one that claimed")
				}
			}
			for _, m := range all {
				m.leave()
			}
		})
	}
	t.Logf("%d claims", claimed)
	if claimed < 50 {
		t.Error("hardly anybody claimed anything")
	}
}

// Nothing is claimed as long as the coordinator does not show who claims, since the next one would not be shown it either.
func TestLockClaimOfOneThatIsNotSeen(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, r *lockRig) {
		r.cluster.ControlKey(int16(kmsg.JoinGroup), func(req kmsg.Request) (kmsg.Response, error, bool) {
			r.cluster.KeepControl()
			if strings.HasPrefix(req.(*kmsg.JoinGroupRequest).MemberID, "a-") {
				r.cluster.SleepControl(func() { time.Sleep(time.Second) }) // it is on its way for so long
			}
			return nil, nil, false
		})
		a := r.member("a").run()
		told := make(chan error, 1)
		go func() {
			_, err := a.Claim(t.Context())
			told <- err
		}()
		time.Sleep(time.Second / 2)
		if a.Held() {
			t.Fatal("claimed unseen")
		}
		b := r.member("b").run().claims()
		r.passes(time.Second, b, a, b)
		if err := <-told; err != nil || !a.is(LockWaiting) {
			t.Error(err, a.Held())
		}
		a.leave()
		b.leave()
	})
}

// Who is not alone claims nothing and is told of the others.
func TestLockClaimBesideAnother(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, r *lockRig) {
		a := r.member("a").run()
		r.watch(time.Second, []*lockMember{a}, a.Held)
		b := r.member("b").run()
		others, err := b.Claim(t.Context())
		if err != nil || len(others) != 1 || others[0].Client != "a" || b.Held() {
			t.Error(others, err, b.Held())
		}
		r.passes(2*time.Second, a, a, b)
		if others, err := b.Claim(t.Context()); err != nil || len(others) > 0 || !b.is(LockWaiting) { // the group has decided
			t.Error(others, err)
		}
		b.leave()
		a.leave()
	})
}

// When others have come, the claim is held on to for a session only, since the answer to the join may be lost; the lock comes to the claimant.
func TestLockClaimBesideAnotherThatComes(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, r *lockRig) {
		r.initialDelay(30 * time.Second)
		b := r.member("b").run().claims()
		time.Sleep(time.Second)
		a := r.member("a").run()
		both := []*lockMember{a, b}
		if others, err := a.Claim(t.Context()); err != nil || len(others) != 1 || others[0].Client != "b" {
			t.Fatal(others, err)
		}
		if took := r.watch(lockSession, both, func() bool { return !b.Held() }); took < lockSession*8/10 {
			t.Errorf("not certain any more after %v", took)
		}
		r.watch(30*time.Second, both, func() bool { return b.is(LockHeld) })
		r.passes(time.Second, b, both...)
		a.leave()
		b.leave()
	})
}

// A coordinator that has moved before the group was formed knows nothing of a claim: it is over before the next process can have claimed.
func TestLockClaimThatIsForgotten(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, r *lockRig) {
		delay := r.initialDelay(3 * time.Second)
		a := r.member("a").run().claims()
		time.Sleep(time.Second)
		delay.move()
		synctest.Wait()
		b := r.member("b").run().claims()
		both := []*lockMember{a, b}
		if a.Held() {
			t.Error("two have a claim")
		}
		r.closely(time.Second, both, func() bool { return a.is(LockWaiting) })
		r.watch(5*time.Second, both, func() bool { return b.is(LockHeld) })
		first := a.Tenancy()
		b.leave()
		r.watch(lockSession, both, a.Held)
		if a.Tenancy() == first {
			t.Error("the tenancy is the same though another had the lock")
		}
		a.leave()
	})
}

// A claimant whose join is cut off is a member all the same: it is sure of its claim when it has seen that.
func TestLockClaimWhoseJoinIsCut(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, r *lockRig) {
		delay := r.initialDelay(3 * time.Second)
		a := r.member("a").run().claims()
		time.Sleep(time.Second)
		_, changed := a.State()
		delay.cut()
		synctest.Wait()
		if a.Held() {
			t.Error("it is sure of its claim, though the coordinator may have moved")
		}
		r.watch(heartbeatEvery, []*lockMember{a}, a.Held)
		<-changed
		if !a.is(LockHeld) {
			t.Error("the claim was lost")
		}
		a.leave()
	})
}

// A claim is not held longer than a lock while nothing is heard of the coordinator, nor when it may have answered to the join unheard:
// then the session of the member goes by.
func TestLockClaimOfASilentProcess(t *testing.T) {
	for name, lose := range map[string]func(a *lockMember, d *initialDelay){
		"the network is down":            func(a *lockMember, _ *initialDelay) { a.link.hold(true) },
		"the answer to the join is lost": func(_ *lockMember, d *initialDelay) { d.becomes("CompletingRebalance") },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1, func(t *testing.T, r *lockRig) {
				delay := r.initialDelay(35 * time.Second)
				a := r.member("a").run().claims()
				r.passes(20*time.Second, a, a)
				lose(a, delay)
				if took := r.watch(lockSession, []*lockMember{a}, func() bool { return !a.Held() }); took < lockSession*8/10 {
					t.Errorf("given up after %v already", took)
				}
				a.end()
			})
		})
	}
}

// A claim that nothing was heard of ends when the process leaves.
func TestLockClaimEndsWithLeave(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, r *lockRig) {
		r.initialDelay(20 * time.Second)
		a := r.member("a").run().claims()
		time.Sleep(time.Second)
		a.leave()
		if a.Held() {
			t.Error("held by a process that has left")
		}
		if others, err := a.Claim(t.Context()); len(others) > 0 || a.Held() {
			t.Error("claimed by a process that has left", others, err)
		}
		time.Sleep(20 * time.Second) // the broker is still busy with the join
	})
}

// The leader of a group that has claimed the lock since it joined keeps it, whoever else has come.
func TestLockClaimOfALeader(t *testing.T) {
	for claimed, want := range map[bool]string{true: "b", false: "a"} {
		lock, err := NewLock(LockConfig{ClientConfig: ClientConfig{Properties: map[string]string{"bootstrap.servers": "localhost:9092"}, ClientID: "b"}, Group: "tidemark-g-c", Topic: "offsets-locks"})
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Close()
		joined := kmsg.NewPtrJoinGroupResponse()
		joined.MemberID, joined.LeaderID = "b", "b"
		for _, id := range []string{"a", "b", "c"} {
			m := kmsg.NewJoinGroupResponseMember()
			m.MemberID, m.ProtocolMetadata = id, lockMetadata("offsets-locks", "", LockWaiting, -1)
			joined.Members = append(joined.Members, m)
		}
		if claimed {
			lock.become(LockClaimed)
		}
		for _, a := range lock.assign(joined) {
			if hasLock("offsets-locks", a.MemberAssignment) != (a.MemberID == want) {
				t.Errorf("claimed %v: the lock does not go to %s", claimed, want)
			}
		}
	}
}

// A claim that is given back is only the group's to give.
func TestLockYield(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, r *lockRig) {
		r.initialDelay(3 * time.Second)
		a := r.member("a").run().claims()
		time.Sleep(time.Second)
		a.Yield()
		if a.Held() {
			t.Error("held after Yield")
		}
		if took := r.watch(2*lockSession, []*lockMember{a}, a.Held); took < time.Second {
			t.Errorf("held again after %v, before the group has decided", took)
		}
		a.Yield()
		if !a.Held() {
			t.Error("Yield gave the lock itself away")
		}
		a.leave()
	})
}
