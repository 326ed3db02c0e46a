package standby

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tidemark-cdc/tidemark/emitter/kafka"
)

const session = 10 * time.Second

// rig is a broker in virtual time, and processes that share one lock.
type rig struct {
	t       *testing.T
	network *kfake.VirtualNetwork
	cluster *kfake.Cluster
}

func inBubble(t *testing.T, f func(t *testing.T, r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, network: &kfake.VirtualNetwork{}}
		c, err := kfake.NewCluster(kfake.Ports(9092), kfake.ListenFn(r.network.Listen))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		r.cluster = c
		f(t, r)
	})
}

// instance is one process. Its connector runs until it is stopped or told to fail.
type instance struct {
	t     *testing.T
	stop  context.CancelFunc
	ended chan error
	log   *observer.ObservedLogs

	frozen  atomic.Bool  // the network
	running atomic.Bool  // the connector
	turns   atomic.Int32 // how often it was begun
	sent    atomic.Int32 // what it was allowed to send, of a try every 10 ms
	slow    time.Duration
	idle    atomic.Bool // it has nothing to send
	last    error       // what it ends with when it is stopped
	fail    chan error
}

var (
	errFenced   = errors.New("a newer producer has come")
	errReplaced = errors.New("a newer stream has come")
	errBroken   = errors.New("the connector is broken")
)

func (r *rig) start(change ...func(*Config)) *instance { return r.startOn(self(), change...) }

// startOn starts it as this process, which may be on another host.
func (r *rig) startOn(me process, change ...func(*Config)) *instance {
	i := &instance{t: r.t, ended: make(chan error, 1), fail: make(chan error)}
	core, log := observer.New(zap.DebugLevel)
	i.log = log
	cfg := Config{
		Lock: kafka.LockConfig{
			ClientConfig: kafka.ClientConfig{
				Properties: map[string]string{"bootstrap.servers": "localhost:9092"}, ClientID: "g-c-lock",
				Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
					conn, err := r.network.DialContext(ctx, network, address)
					return &wire{conn, &i.frozen}, err
				},
			},
			Group: "tidemark-g-c", Topic: "offsets-locks", ReplicationFactor: 1, SessionTimeout: session,
		},
		Fenced:   func(err error) bool { return errors.Is(err, errFenced) },
		Replaced: func(err error) bool { return errors.Is(err, errReplaced) },
		Log:      zap.New(core),
	}
	for _, f := range change {
		f(&cfg)
	}
	ctx, cancel := context.WithCancel(context.Background())
	i.stop = cancel
	s, err := newAs(ctx, me, cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	go func() {
		err := s.Run(ctx, i.run)
		s.Close()
		i.ended <- err
	}()
	r.t.Cleanup(cancel)
	return i
}

// run is the connector: it sends all the time.
func (i *instance) run(ctx context.Context, may func() bool) error {
	i.turns.Add(1)
	i.running.Store(true)
	defer i.running.Store(false)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if i.idle.Load() {
				continue
			}
			if !may() {
				return errors.New("not sent")
			}
			i.sent.Add(1)
		case err := <-i.fail:
			return err
		case <-ctx.Done():
			if may() {
				time.Sleep(i.slow) // stores where it is
				if !may() {
					i.t.Error("the lock was gone before the connector had stopped")
				}
			}
			return i.last
		}
	}
}

// wire loses what is written to it while it is frozen.
type wire struct {
	net.Conn
	frozen *atomic.Bool
}

func (w *wire) Write(b []byte) (int, error) {
	if w.frozen.Load() {
		return len(b), nil
	}
	return w.Conn.Write(b)
}

// end stops the process and returns its error.
func (i *instance) end() error {
	i.stop()
	return <-i.ended
}

func (i *instance) said(text string) int {
	n := 0
	for _, e := range i.log.All() {
		if strings.Contains(e.Message, text) {
			n++
		}
	}
	return n
}

// await waits for something in virtual time and returns how long it took.
func await(t *testing.T, most time.Duration, what string, f func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !f() {
		if time.Since(began) > most {
			t.Fatalf("not in %v: %s", most, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return time.Since(began)
}

func (i *instance) runs(t *testing.T, most time.Duration) time.Duration {
	t.Helper()
	return await(t, most, "the connector runs", i.running.Load)
}

// slowFirstJoin has the broker answer late to the first member of a group, as brokers do: until then it shows it, and waits for others.
func (r *rig) slowFirstJoin(d time.Duration) {
	d += 3 * time.Millisecond // so that nobody looks in the moment in which kfake takes over, before it has the member
	var mu sync.Mutex
	var first string
	var until time.Time
	r.cluster.ControlKey(int16(kmsg.JoinGroup), func(req kmsg.Request) (kmsg.Response, error, bool) {
		r.cluster.KeepControl()
		mu.Lock()
		defer mu.Unlock()
		if id := req.(*kmsg.JoinGroupRequest).MemberID; id != "" && first == "" {
			first, until = id, time.Now().Add(d)
			mu.Unlock()
			r.cluster.SleepControl(func() { time.Sleep(d) })
			mu.Lock()
		}
		return nil, nil, false
	})
	r.cluster.ControlKey(int16(kmsg.DescribeGroups), func(req kmsg.Request) (kmsg.Response, error, bool) {
		r.cluster.KeepControl()
		mu.Lock()
		defer mu.Unlock()
		if time.Until(until) <= 0 {
			return nil, nil, false
		}
		group := kmsg.NewDescribeGroupsResponseGroup()
		group.Group, group.State = "tidemark-g-c", "PreparingRebalance"
		group.Members = append(group.Members, kmsg.NewDescribeGroupsResponseGroupMember())
		group.Members[0].MemberID, group.Members[0].ClientID = first, first[:strings.LastIndexByte(first, '-')]
		resp := req.ResponseKind().(*kmsg.DescribeGroupsResponse)
		resp.Groups = append(resp.Groups, group)
		return resp, nil, true
	})
}

// Who stands by for a process with another configuration says so: it would go on with its own.
func TestAnotherConfigurationIsSaid(t *testing.T) {
	says := func(what string) func(*Config) { return func(cfg *Config) { cfg.Lock.Says = what } }
	inBubble(t, func(t *testing.T, r *rig) {
		r.start(says("one")).runs(t, time.Second)
		time.Sleep(5 * time.Second)
		for what, want := range map[string]int{"one": 0, "another": 1, "": 0} {
			waits := r.start(says(what))
			time.Sleep(5 * time.Second)
			if got := waits.said("another configuration"); got != want || waits.said("standing by: ") != 1 {
				t.Errorf("%q: said %v", what, waits.log.All())
			}
			if err := waits.end(); err != nil {
				t.Error(err)
			}
			time.Sleep(5 * time.Second) // while members join, none says anything
		}
	})
}

// One process runs, at once although the group takes time; the others say who does, once, and take over one after the other.
func TestOneRunsAndTheOthersStandBy(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.slowFirstJoin(3 * time.Second)
		a := r.start()
		if took := a.runs(t, time.Second); took > 100*time.Millisecond {
			t.Errorf("a process that is alone began after %v", took)
		}
		time.Sleep(4 * time.Second)
		b := r.start()
		c := r.start()
		time.Sleep(time.Minute)
		for _, waits := range []*instance{b, c} {
			if waits.turns.Load() != 0 || waits.said("standing by: ") != 1 || waits.said(self().host) != 1 {
				t.Errorf("%d turns; said %v", waits.turns.Load(), waits.log.All())
			}
		}
		if a.turns.Load() != 1 || a.said("lock") != 0 {
			t.Errorf("%d turns; said %v", a.turns.Load(), a.log.All())
		}
		a.slow = 15 * time.Second // it has to hold the lock for as long as it takes to stop
		a.stop()
		time.Sleep(a.slow - time.Millisecond)
		if b.running.Load() || c.running.Load() {
			t.Error("taken over before the connector had stopped")
		}
		if err := <-a.ended; err != nil {
			t.Error(err)
		}
		took := await(t, session, "one takes over", func() bool { return b.running.Load() || c.running.Load() })
		if took > 600*time.Millisecond {
			t.Errorf("it took %v to take over from a process that has left", took)
		}
		if err := b.end(); err != nil {
			t.Error(err)
		}
		c.runs(t, time.Second)
		if b.turns.Load()+c.turns.Load() != 2 && b.turns.Load() != 0 {
			t.Errorf("%d and %d turns", b.turns.Load(), c.turns.Load())
		}
		if err := c.end(); err != nil {
			t.Error(err)
		}
	})
}

// Of several that begin at the same moment never two run, and one does soon.
func TestSeveralThatBeginAtTheSameMoment(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 60 {
		inBubble(t, func(t *testing.T, r *rig) {
			var all []*instance
			for i := range 2 + round%2 {
				time.Sleep(time.Duration(rng.IntN(2)) * time.Duration(rng.Int64N(int64(5*time.Millisecond))))
				all = append(all, r.startOn(process{host: "host", pid: i + 1}, r.slow(rng)))
			}
			r.oneRuns(all, time.Second)
			for _, i := range all {
				if err := i.end(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// slow has each request of a process take up to 3 ms to the broker.
func (r *rig) slow(rng *rand.Rand) func(*Config) {
	seed := rng.Uint64()
	return func(cfg *Config) {
		dial := cfg.Lock.Dial
		cfg.Lock.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			seed++
			return &slowWire{conn, rand.New(rand.NewPCG(seed, 3))}, err
		}
	}
}

// slowWire is a connection to whose other end what is written takes a while. One request is written at a time.
type slowWire struct {
	net.Conn
	rng *rand.Rand
}

func (w *slowWire) Write(b []byte) (int, error) {
	time.Sleep(time.Duration(w.rng.Int64N(int64(3 * time.Millisecond))))
	return w.Conn.Write(b)
}

// oneRuns looks until the group has decided that never two processes run, and that one did in time.
func (r *rig) oneRuns(all []*instance, inTime time.Duration) {
	r.t.Helper()
	began, first := time.Now(), time.Duration(-1)
	for time.Since(began) < inTime+5*time.Second {
		running := 0
		for _, i := range all {
			if i.running.Load() {
				running++
			}
		}
		if running > 1 {
			r.t.Fatalf("%d run after %v", running, time.Since(began))
		}
		if running == 1 && first < 0 {
			first = time.Since(began)
		}
		time.Sleep(time.Millisecond)
	}
	if first < 0 || first > inTime {
		r.t.Fatalf("the first one ran after %v", first)
	}
}

// A process that stops for a minute and goes on sends nothing more, is no error, and stands by; later it runs again.
func TestAProcessThatStoodStill(t *testing.T) {
	for name, idle := range map[string]bool{"with something to send": false, "with nothing to send": true} {
		t.Run(name, func(t *testing.T) { stoodStill(t, idle) })
	}
}

func stoodStill(t *testing.T, idle bool) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		a.idle.Store(idle)
		a.runs(t, time.Second)
		b := r.start()
		time.Sleep(5 * time.Second)
		a.frozen.Store(true)
		took := b.runs(t, session+2*time.Second)
		t.Logf("taken over after %v", took)
		sent := a.sent.Load()
		time.Sleep(time.Minute)
		a.frozen.Store(false)
		await(t, session, "it stands by", func() bool { return a.said("standing by") == 1 })
		time.Sleep(time.Minute)
		if a.sent.Load() != sent {
			t.Errorf("it sent %d more", a.sent.Load()-sent)
		}
		if a.running.Load() || !b.running.Load() {
			t.Error("the wrong one runs")
		}
		if err := b.end(); err != nil {
			t.Error(err)
		}
		a.runs(t, time.Second)
		if a.said("this process runs the connector now") != 1 {
			t.Error(a.log.All())
		}
		if err := a.end(); err != nil {
			t.Error(err)
		}
	})
}

// The coordinator may be away for everybody: the connector goes on with the lock that it then still has. What it asks for
// meanwhile is refused.
func TestTheCoordinatorIsAway(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		a.runs(t, time.Second)
		time.Sleep(2 * time.Second)
		var away atomic.Bool
		away.Store(true)
		r.cluster.ControlKey(int16(kmsg.Heartbeat), func(req kmsg.Request) (kmsg.Response, error, bool) {
			r.cluster.KeepControl()
			if !away.Load() {
				return nil, nil, false
			}
			return nil, io.EOF, true
		})
		await(t, session, "it is not certain any more", func() bool { return !a.running.Load() })
		sent := a.sent.Load()
		time.Sleep(time.Minute)
		if a.sent.Load() != sent || a.said("has not answered") != 1 {
			t.Errorf("%d more sent; said %v", a.sent.Load()-sent, a.log.All())
		}
		away.Store(false)
		a.runs(t, 3*session)
		if err := a.end(); err != nil {
			t.Error(err)
		}
	})
}

// An error of the connector ends the process, and another takes over at once.
func TestAnErrorOfTheConnector(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		a.runs(t, time.Second)
		b := r.start()
		time.Sleep(5 * time.Second)
		a.fail <- errBroken
		if err := <-a.ended; !errors.Is(err, errBroken) {
			t.Error(err)
		}
		b.runs(t, time.Second)
		if err := b.end(); err != nil {
			t.Error(err)
		}
	})
}

// lock is a client that looks at the group from outside.
func (r *rig) lock() *kafka.Lock {
	lock, err := kafka.NewLock(kafka.LockConfig{
		ClientConfig: kafka.ClientConfig{Properties: map[string]string{"bootstrap.servers": "localhost:9092"}, ClientID: "admin", Dial: r.network.DialContext},
		Group:        "tidemark-g-c", Topic: "offsets-locks",
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(lock.Close)
	return lock
}

// Without rights on the group the connector runs as one that has no lock, and that is said once with what to allow.
func TestWithoutRights(t *testing.T) {
	for name, key := range map[string]kmsg.Key{"nothing": kmsg.DescribeGroups, "only to look": kmsg.JoinGroup} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.cluster.ControlKey(int16(key), func(req kmsg.Request) (kmsg.Response, error, bool) {
					r.cluster.KeepControl()
					switch resp := req.ResponseKind().(type) {
					case *kmsg.DescribeGroupsResponse:
						group := kmsg.NewDescribeGroupsResponseGroup()
						group.Group, group.ErrorCode = "tidemark-g-c", kerr.GroupAuthorizationFailed.Code
						resp.Groups = append(resp.Groups, group)
						return resp, nil, true
					case *kmsg.JoinGroupResponse:
						resp.ErrorCode = kerr.GroupAuthorizationFailed.Code
						return resp, nil, true
					}
					return nil, nil, false
				})
				a := r.start()
				a.runs(t, time.Second)
				time.Sleep(time.Minute)
				if a.turns.Load() != 1 || !a.running.Load() || a.said("runs without a standby") != 1 {
					t.Errorf("%d turns; said %v", a.turns.Load(), a.log.All())
				}
				for _, e := range a.log.FilterMessageSnippet("runs without a standby").All() {
					if text, _ := e.ContextMap()["error"].(string); e.Level != zap.WarnLevel || !strings.Contains(text, "kafka-acls.sh") {
						t.Error(e)
					}
				}
				if err := a.end(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Settings that the brokers refuse are an error, not something to wait for.
func TestASessionTimeoutThatIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := r.start(func(c *Config) { c.Lock.SessionTimeout = 2 * time.Second })
		if err := <-a.ended; !errors.Is(err, kerr.InvalidSessionTimeout) {
			t.Error(err)
		}
	})
}

// Where Kafka cannot be reached yet, a stop ends the wait.
func TestStoppedBeforeKafkaIsThere(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
		a := r.start(func(c *Config) {
			c.Lock.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, refused }
		})
		time.Sleep(time.Minute)
		if err := a.end(); err != nil || a.turns.Load() != 0 {
			t.Error(err, a.turns.Load())
		}
	})
}

// An error of a connector whose lock is no longer certain is no reason to end: the server may have ended its stream for that of the
// process that runs now.
func TestAnErrorWithoutTheLock(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		a.idle.Store(true) // so that it does not ask by itself
		a.runs(t, time.Second)
		time.Sleep(5 * time.Second)
		a.frozen.Store(true)
		time.Sleep(session + 5*time.Second)
		a.fail <- errBroken
		time.Sleep(time.Second)
		select {
		case err := <-a.ended:
			t.Fatalf("it has ended: %v", err)
		default:
		}
		a.frozen.Store(false)
		a.runs(t, 3*session)
		if err := a.end(); err != nil {
			t.Error(err)
		}
	})
}
