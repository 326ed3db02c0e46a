package kafka

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const lockSession = 10 * time.Second

// lockRig is brokers in a bubble of virtual time, and the members of one lock.
type lockRig struct {
	t       *testing.T
	network *kfake.VirtualNetwork
	cluster *kfake.Cluster
	members []*lockMember
	delays  []*initialDelay
}

// inBubble runs a test with brokers in virtual time.
func inBubble(t *testing.T, brokers int, f func(t *testing.T, r *lockRig)) {
	synctest.Test(t, func(t *testing.T) {
		r := &lockRig{t: t, network: &kfake.VirtualNetwork{}}
		c, err := kfake.NewCluster(kfake.Ports([]int{9092, 9093, 9094}[:brokers]...), kfake.ListenFn(r.network.Listen))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		r.cluster = c
		defer func() { // what a test that fails leaves behind
			for _, m := range r.members {
				if m.stop != nil {
					m.stop()
				}
				m.Close()
			}
			for _, d := range r.delays {
				d.cut()
			}
			synctest.Wait()
		}()
		f(t, r)
	})
}

// lockMember is a process with the lock's membership, whose network can be stopped.
type lockMember struct {
	*Lock
	t    *testing.T
	link *link
	stop context.CancelFunc
	done chan error
}

// member makes a member that has not joined yet.
func (r *lockRig) member(name string, change ...func(*LockConfig)) *lockMember {
	r.t.Helper()
	m := &lockMember{t: r.t, link: &link{}}
	cfg := LockConfig{
		ClientConfig: ClientConfig{
			Properties: properties(r.cluster), ClientID: name,
			Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := r.network.DialContext(ctx, network, address)
				return &linked{conn, m.link}, err
			},
		},
		Group: "tidemark-g-c", Topic: "offsets-locks", ReplicationFactor: 1, SessionTimeout: lockSession,
	}
	for _, f := range change {
		f(&cfg)
	}
	lock, err := NewLock(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	m.Lock = lock
	r.members = append(r.members, m)
	return m
}

// run begins the membership.
func (m *lockMember) run() *lockMember {
	ctx, cancel := context.WithCancel(context.Background())
	m.stop, m.done = cancel, make(chan error, 1)
	go func() { m.done <- m.Run(ctx) }()
	return m
}

// end ends the membership without leaving, as a process that dies.
func (m *lockMember) end() {
	m.t.Helper()
	m.link.hold(false)
	m.stop()
	if err := <-m.done; err != nil {
		m.t.Error(err)
	}
	m.Close()
}

// leave ends it in order.
func (m *lockMember) leave() {
	m.t.Helper()
	m.stop()
	if err := <-m.done; err != nil {
		m.t.Error(err)
	}
	if err := m.Leave(m.t.Context()); err != nil {
		m.t.Error(err)
	}
	m.Close()
}

// link is a network that can be stopped: what is written while it is does not arrive, and nobody hears of it. It can take its time, too.
type link struct {
	mu    sync.Mutex
	held  bool
	until time.Time // what is answered before comes then
	rng   *rand.Rand
	most  time.Duration // a write takes up to that long
}

func (l *link) slow(rng *rand.Rand, most time.Duration) { l.rng, l.most = rng, most }

func (l *link) wait() {
	if l.rng == nil {
		return
	}
	l.mu.Lock()
	d := time.Duration(l.rng.Int64N(int64(l.most)))
	l.mu.Unlock()
	time.Sleep(d)
}

func (l *link) hold(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = on
}

func (l *link) isHeld() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held
}

type linked struct {
	net.Conn
	link *link
}

func (c *linked) Write(b []byte) (int, error) {
	c.link.wait()
	if c.link.isHeld() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// late has what is answered before a time come then.
func (l *link) late(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = until
}

func (c *linked) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.link.mu.Lock()
	until := c.link.until
	c.link.mu.Unlock()
	time.Sleep(time.Until(until))
	return n, err
}

// watch looks every 10 ms of virtual time at who holds the lock until stop says so, and fails if it is ever two, or if it takes
// longer than most. It returns the time that passed.
func (r *lockRig) watch(most time.Duration, members []*lockMember, stop func() bool) time.Duration {
	r.t.Helper()
	return r.watchEvery(10*time.Millisecond, most, members, stop)
}

// closely is watch with a look every 0.1 ms.
func (r *lockRig) closely(most time.Duration, members []*lockMember, stop func() bool) {
	r.t.Helper()
	r.watchEvery(100*time.Microsecond, most, members, stop)
}

func (r *lockRig) watchEvery(step, most time.Duration, members []*lockMember, stop func() bool) time.Duration {
	r.t.Helper()
	began := time.Now()
	for !stop() {
		if time.Since(began) > most {
			r.t.Fatalf("nothing came of it in %v", most)
		}
		if n := len(holders(members)); n > 1 {
			r.t.Fatalf("%d hold the lock", n)
		}
		time.Sleep(step)
	}
	return time.Since(began)
}

func holders(members []*lockMember) []*lockMember {
	var all []*lockMember
	for _, m := range members {
		if m.Held() {
			all = append(all, m)
		}
	}
	return all
}

// passes watches for a time in which the holder must not change.
func (r *lockRig) passes(d time.Duration, holder *lockMember, members ...*lockMember) {
	r.t.Helper()
	until := time.Now().Add(d)
	r.watch(2*d, members, func() bool {
		if !holder.Held() {
			r.t.Fatal("the holder lost the lock, or the certainty of it")
		}
		return time.Now().After(until)
	})
}

// A lock goes to one, stays there when others come and go, and goes on when its holder leaves: as soon as the next heartbeat.
func TestLockStaysAndGoesOn(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *lockRig) {
		a := r.member("a").run()
		r.watch(time.Second, []*lockMember{a}, a.Held)
		b, c := r.member("b").run(), r.member("c").run()
		all := []*lockMember{a, b, c}
		r.passes(time.Minute, a, all...)
		if got, err := b.Members(t.Context()); err != nil || len(got) != 3 || got[0].Client != "a" || !got[0].Holds || got[1].Holds || got[2].Holds {
			t.Fatal(got, err)
		}
		c.leave()
		r.passes(time.Second, a, all...)
		c = r.member("c").run()
		r.passes(time.Second, a, a, b, c)
		a.leave()
		if took := r.watch(lockSession, []*lockMember{a, b, c}, func() bool { return b.Held() || c.Held() }); took > heartbeatEvery+100*time.Millisecond {
			t.Errorf("the others took %v to take over", took)
		}
		next, waits := b, c
		if c.Held() {
			next, waits = c, b
		}
		r.passes(time.Minute, next, b, c)
		if state, _ := waits.State(); state != LockWaiting {
			t.Error(state)
		}
		for _, m := range []*lockMember{b, c} {
			m.leave()
		}
	})
}

// A holder that nothing is heard of any more, as after SIGKILL or while it is stopped, knows by itself that it has lost the lock before
// another has it, and that one has it in time. When it goes on, it waits.
func TestLockOfASilentHolder(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, r *lockRig) {
		a := r.member("a").run()
		r.watch(time.Second, []*lockMember{a}, a.Held)
		b := r.member("b").run()
		all := []*lockMember{a, b}
		r.passes(3*time.Second, a, all...)
		a.link.hold(true)
		over := r.watch(lockSession, all, func() bool { return !a.Held() })
		if over < lockSession*8/10 {
			t.Errorf("the holder lost the certainty after %v already", over)
		}
		if state, _ := a.State(); state != LockHeld {
			t.Errorf("the holder thinks that it knows more than silence: state %d", state)
		}
		took := over + r.watch(lockSession, all, b.Held)
		t.Logf("uncertain after %v, taken over after %v", over, took)
		if took > lockSession+heartbeatEvery+100*time.Millisecond {
			t.Errorf("the other took %v to take over", took)
		}
		time.Sleep(time.Minute)
		a.link.hold(false)
		_, changed := a.State()
		<-changed
		r.passes(time.Minute, b, all...)
		if state, _ := a.State(); state != LockWaiting {
			t.Error(state)
		}
		b.leave()
		r.watch(time.Second, all, a.Held)
		a.leave()
	})
}

// A process that waits and dies costs the holder nothing, though the group waits for it when the next one comes.
func TestLockWhileADeadMemberIsWaitedFor(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, r *lockRig) {
		a := r.member("a").run()
		r.watch(time.Second, []*lockMember{a}, a.Held)
		b := r.member("b").run()
		r.passes(2*time.Second, a, a, b)
		b.end()
		c := r.member("c").run()
		r.passes(2*time.Second, a, a, c)
		var once atomic.Bool
		r.cluster.ControlKey(int16(kmsg.Heartbeat), func(req kmsg.Request) (kmsg.Response, error, bool) {
			r.cluster.KeepControl()
			if !strings.HasPrefix(req.(*kmsg.HeartbeatRequest).MemberID, "a-") || once.Swap(true) {
				return nil, nil, false
			}
			resp := req.ResponseKind().(*kmsg.HeartbeatResponse) // as when the next generation begins, and its join is on its way
			resp.ErrorCode = kerr.IllegalGeneration.Code
			return resp, nil, true
		})
		r.passes(3*lockSession, a, a, c)
		if got, err := a.Members(t.Context()); err != nil || len(got) != 2 {
			t.Error(got, err)
		}
		c.leave()
		a.leave()
	})
}

// A holder whose heartbeats are answered, and that does not get to join a rebalance, knows by itself when the group goes on without it.
func TestLockOfAHolderThatCannotJoin(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, r *lockRig) {
		a := r.member("a").run()
		r.watch(time.Second, []*lockMember{a}, a.Held)
		r.cluster.ControlKey(int16(kmsg.JoinGroup), func(req kmsg.Request) (kmsg.Response, error, bool) {
			r.cluster.KeepControl()
			if !strings.HasPrefix(req.(*kmsg.JoinGroupRequest).MemberID, "a-") {
				return nil, nil, false
			}
			resp := req.ResponseKind().(*kmsg.JoinGroupResponse)
			resp.ErrorCode = kerr.UnknownServerError.Code
			return resp, nil, true
		})
		b := r.member("b").run()
		all := []*lockMember{a, b}
		r.passes(2*lockSession, a, all...)
		r.watch(lockSession+time.Second, all, func() bool { return !a.Held() })
		if b.Held() {
			t.Error("the other had it before the holder was uncertain")
		}
		r.watch(2*lockSession, all, b.Held)
		b.leave()
		a.end()
	})
}

// TestLockTenancy stays the same while nobody else can have had the lock, and changes when another has had it.
func TestLockTenancy(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, r *lockRig) {
		lose := func(m *lockMember) {
			t.Helper()
			_, lost := m.State()
			m.link.hold(true)
			time.Sleep(lockSession + 2*time.Second)
			m.link.hold(false)
			<-lost
		}
		gets := func(m *lockMember) {
			t.Helper()
			r.watch(2*lockSession, []*lockMember{m}, m.Held)
		}
		a := r.member("a").run()
		gets(a)
		first := a.Tenancy()
		for range 2 { // alone
			lose(a)
			gets(a)
			if a.Tenancy() != first {
				t.Error("it changed though nobody else was there")
			}
		}
		b := r.member("b").run() // joins, and stands by
		r.passes(3*time.Second, a, a, b)
		b.leave()
		r.passes(3*time.Second, a, a)
		if a.Tenancy() != first {
			t.Error("it changed while the lock was held")
		}
		b = r.member("b").run()
		r.passes(3*time.Second, a, a, b)
		lose(a)
		gets(b)
		r.passes(3*time.Second, b, a, b)
		b.end()
		gets(a)
		if a.Tenancy() == first {
			t.Error("it is the same though another had the lock")
		}
		for name, goes := range map[string]func(c *lockMember){
			"before a is back": func(c *lockMember) {
				c.leave()
				a.link.hold(false)
			},
			"when a is back": func(c *lockMember) { // so that both are one rebalance
				c.stop()
				if err := <-c.done; err != nil {
					t.Error(err)
				}
				a.link.hold(false)
				time.Sleep(2 * time.Second)
				if err := c.Leave(t.Context()); err != nil {
					t.Error(err)
				}
				c.Close()
			},
		} {
			now := a.Tenancy()
			c := r.member("c").run()
			r.passes(3*time.Second, a, a, c)
			a.link.hold(true)
			gets(c)
			goes(c)
			r.watch(2*lockSession, []*lockMember{a}, func() bool { return !a.Held() || a.Tenancy() != now })
			gets(a)
			if a.Tenancy() == now {
				t.Errorf("it is the same though another had the lock, and went %s", name)
			}
		}
		a.leave()
	})
}

// A member that has died can be taken out of the group, upon which another has the lock at once.
func TestLockRemove(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, r *lockRig) {
		a := r.member("a").run()
		r.watch(time.Second, []*lockMember{a}, a.Held)
		b := r.member("b").run()
		r.passes(2*time.Second, a, a, b)
		a.end()
		members, err := b.Members(t.Context())
		if err != nil || len(members) != 2 || members[0].Client != "a" || members[0].Host == "" {
			t.Fatal(members, err)
		}
		for range 2 { // again it is not there any more
			if err := b.Remove(t.Context(), "it has died", members[0]); err != nil {
				t.Fatal(err)
			}
		}
		r.watch(time.Second, []*lockMember{b}, b.Held)
		b.leave()
	})
}

// The coordinator of the group may move from broker to broker: nothing is lost by it.
func TestLockWhileTheCoordinatorMoves(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *lockRig) {
		a := r.member("a").run()
		r.watch(time.Second, []*lockMember{a}, a.Held)
		b := r.member("b").run()
		r.passes(time.Second, a, a, b)
		for range 5 {
			r.cluster.RehashCoordinators()
			r.passes(5*time.Second, a, a, b)
		}
		a.leave()
		r.watch(2*time.Second, []*lockMember{a, b}, b.Held)
		b.leave()
	})
}

// A member that is told that it is none, or of an old generation, has lost the lock and joins again.
func TestLockOfAForgottenMember(t *testing.T) {
	for _, code := range []*kerr.Error{kerr.UnknownMemberID, kerr.IllegalGeneration} {
		t.Run(code.Message, func(t *testing.T) {
			inBubble(t, 1, func(t *testing.T, r *lockRig) {
				a := r.member("a").run()
				r.watch(time.Second, []*lockMember{a}, a.Held)
				_, changed := a.State()
				r.cluster.ControlKey(int16(kmsg.Heartbeat), func(req kmsg.Request) (kmsg.Response, error, bool) {
					resp := req.ResponseKind().(*kmsg.HeartbeatResponse)
					resp.ErrorCode = code.Code
					return resp, nil, true
				})
				<-changed
				if a.Held() {
					t.Error("held by a member that the group does not know")
				}
				r.watch(2*lockSession, []*lockMember{a}, a.Held)
				a.leave()
			})
		})
	}
}

// What a lock cannot be had for is said with what to do.
func TestLockRefusals(t *testing.T) {
	refuse := func(r *lockRig, code *kerr.Error) {
		r.cluster.ControlKey(int16(kmsg.JoinGroup), func(req kmsg.Request) (kmsg.Response, error, bool) {
			r.cluster.KeepControl()
			resp := req.ResponseKind().(*kmsg.JoinGroupResponse)
			resp.ErrorCode = code.Code
			return resp, nil, true
		})
	}
	for _, tt := range []struct {
		code *kerr.Error
		want []string
	}{
		{kerr.InvalidSessionTimeout, []string{"10000 ms", "standby.session.timeout.ms", "group.min.session.timeout.ms"}},
		{kerr.InconsistentGroupProtocol, []string{"tidemark-g-c", "other consumers", "group.id"}},
		{kerr.GroupAuthorizationFailed, []string{"kafka-acls.sh --bootstrap-server ", "User:ANONYMOUS --operation Read --group 'tidemark-' --resource-pattern-type prefixed", "--operation Create --operation Read --topic 'offsets-locks'"}},
	} {
		t.Run(tt.code.Message, func(t *testing.T) {
			inBubble(t, 1, func(t *testing.T, r *lockRig) {
				refuse(r, tt.code)
				a := r.member("a").run()
				err := <-a.done
				if !errors.Is(err, tt.code) || errors.Is(err, ErrLockNotAllowed) != (tt.code == kerr.GroupAuthorizationFailed) {
					t.Fatal(err)
				}
				for _, want := range tt.want {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%v does not say %q", err, want)
					}
				}
				a.Close()
			})
		})
	}
}

// A group that does not know its members time and again is not asked without pause.
func TestLockDoesNotHurry(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, r *lockRig) {
		var asked atomic.Int32
		r.cluster.ControlKey(int16(kmsg.JoinGroup), func(req kmsg.Request) (kmsg.Response, error, bool) {
			r.cluster.KeepControl()
			asked.Add(1)
			resp := req.ResponseKind().(*kmsg.JoinGroupResponse)
			resp.ErrorCode = kerr.UnknownMemberID.Code
			return resp, nil, true
		})
		a := r.member("a").run()
		time.Sleep(time.Minute)
		if n := asked.Load(); n < 10 || n > 60 {
			t.Errorf("asked %d times in a minute", n)
		}
		a.end()
	})
}

// Rights that are taken away later are no reason to run without a lock: others may have it.
func TestLockWhoseRightsAreTakenAway(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, r *lockRig) {
		a := r.member("a").run()
		r.watch(time.Second, []*lockMember{a}, a.Held)
		var mu sync.Mutex
		denied, forgotten := true, false
		for _, key := range []kmsg.Key{kmsg.JoinGroup, kmsg.Heartbeat} {
			r.cluster.ControlKey(int16(key), func(req kmsg.Request) (kmsg.Response, error, bool) {
				r.cluster.KeepControl()
				mu.Lock()
				defer mu.Unlock()
				switch resp := req.ResponseKind().(type) {
				case *kmsg.HeartbeatResponse:
					resp.ErrorCode = kerr.GroupAuthorizationFailed.Code
					if forgotten {
						resp.ErrorCode = kerr.UnknownMemberID.Code
					}
					return resp, nil, denied
				case *kmsg.JoinGroupResponse:
					resp.ErrorCode = kerr.GroupAuthorizationFailed.Code
					return resp, nil, denied
				}
				return nil, nil, false
			})
		}
		r.watch(lockSession, []*lockMember{a}, func() bool { return !a.Held() })
		time.Sleep(time.Minute)
		if a.Held() {
			t.Error("held without an answer")
		}
		mu.Lock()
		forgotten = true
		mu.Unlock()
		time.Sleep(time.Minute)
		select {
		case err := <-a.done:
			t.Fatal("the membership ended:", err)
		default:
		}
		mu.Lock()
		denied = false
		mu.Unlock()
		r.watch(lockSession, []*lockMember{a}, a.Held)
		a.leave()
	})
}

func TestLockNotAllowed(t *testing.T) {
	cluster := newCluster(t, kfake.EnableACLs(), kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "admin", "a"), kfake.User("SCRAM-SHA-256", "tide", "t"))
	lock, err := NewLock(LockConfig{ClientConfig: ClientConfig{Properties: properties(cluster, login("tide", "t")...), ClientID: "x"}, Group: "tidemark-g-c", Topic: "offsets-locks"})
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if _, err := lock.Members(t.Context()); !errors.Is(err, ErrLockNotAllowed) || !strings.Contains(err.Error(), "--allow-principal User:tide --operation Read --group") {
		t.Error(err)
	}
}

// The topic is made with one partition; without it the lock works all the same.
func TestLockTopic(t *testing.T) {
	for _, refused := range []bool{false, true} {
		inBubble(t, 1, func(t *testing.T, r *lockRig) {
			if refused {
				r.cluster.ControlKey(int16(kmsg.CreateTopics), func(req kmsg.Request) (kmsg.Response, error, bool) {
					r.cluster.KeepControl()
					resp := req.ResponseKind().(*kmsg.CreateTopicsResponse)
					topic := kmsg.NewCreateTopicsResponseTopic()
					topic.Topic, topic.ErrorCode = "offsets-locks", kerr.TopicAuthorizationFailed.Code
					resp.Topics = append(resp.Topics, topic)
					return resp, nil, true
				})
			}
			a := r.member("a").run()
			r.watch(time.Second, []*lockMember{a}, a.Held)
			time.Sleep(time.Second)
			got, err := a.client.admin.ListTopics(t.Context(), "offsets-locks")
			if err != nil || !refused && len(got["offsets-locks"].Partitions) != 1 {
				t.Error(got, err)
			}
			a.leave()
		})
	}
}
