package it

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// vortexSession is the session timeout of the two instances of a connector, short enough that a run meets many takeovers.
const vortexSession = 6 * time.Second

// TestVortex runs two connectors over the same tables for a while, one at least once and one exactly once, each with an active
// instance and one that stands by, while writers work and everything goes wrong: instances are killed, stopped and continued,
// connections cut or silent, MySQL and Kafka restarted, together and in turn. Then nothing may be lost in either mode, and with
// exactly-once what read_committed consumers see must have nothing twice.
func TestVortex(t *testing.T) {
	t.Parallel()
	lasts := time.Duration(number(t, "TIDEMARK_IT_VORTEX", 60)) * time.Second
	seed := uint64(number(t, "TIDEMARK_IT_SEED", int(time.Now().UnixNano()%1_000_000)))
	t.Logf("TIDEMARK_IT_SEED=%d TIDEMARK_IT_VORTEX=%d", seed, int(lasts.Seconds()))
	v := &vortex{t: t, rig: NewRig(t, gtidFlags...), rng: rand.New(rand.NewPCG(seed, 7)), faults: map[string]int{}}
	for _, name := range []string{"atleastonce", "exactlyonce"} {
		c := v.rig.Connector(t, name, "topic", "vortex\\..*")
		c.Worker["offset.flush.interval.ms"] = "1000"
		c.Config["start.position"] = "oldest"
		c.Worker["standby.session.timeout.ms"] = fmt.Sprint(vortexSession.Milliseconds())
		if name == "exactlyonce" {
			c.Config["exactly.once.support"] = "required"
		}
		v.pairs = append(v.pairs, &instances{connector: c})
	}
	work := StartWorkload(t, v.rig.MySQL, "vortex", seed, number(t, "TIDEMARK_IT_BULK", 3_000))
	for _, p := range v.pairs {
		p.run[0] = p.connector.RunStreaming(t)
		p.run[1] = p.connector.Run(t)
	}
	begun := time.Now()
	for i := 0; time.Since(begun) < lasts || i < len(vortexFaults); i++ {
		v.fault(i)
		v.look()
	}
	changes := work.Stop(t)
	v.calm()
	checked, repeated := 0, 0
	for _, p := range v.pairs {
		c := p.connector
		c.AwaitDrained(t, 2*time.Minute)
		p.terminate(t)
		exactly := c.Config["exactly.once.support"] == "required"
		evidence := Evidence{
			Prefix: c.Prefix, Tables: WorkloadTables("vortex"), Changes: changes, Final: work.Final(t),
			Messages: c.Records(t), Binlog: v.rig.MySQL.Binlog(t), Together: exactly,
		}
		for _, m := range c.StoredOnTopic(t) {
			s, err := ParseStored(m.Value, m.Time)
			if err != nil {
				t.Error(err)
			}
			evidence.Offsets = append(evidence.Offsets, s)
		}
		report := Check(evidence)
		t.Logf("%s: %v", c.Name, report)
		for _, problem := range append(report.Problems, CheckWorkload(evidence)...) {
			t.Errorf("%s: %s", c.Name, problem)
		}
		checked += report.Unique
		if exactly {
			if repeated = report.Repeated; repeated > 0 {
				t.Errorf("%s: %d records are there twice", c.Name, repeated)
			}
		} else if report.Replays == 0 {
			t.Errorf("%s: no fault ever met a replay, so this run has proven little", c.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.faults)) {
		t.Logf("%4d × %s", v.faults[name], name)
	}
	if !t.Failed() {
		t.Logf("%d row changes written, %d records checked, lost 0, doubled %d with exactly-once; instances began to stream %d times", len(changes), checked, repeated, v.streamed())
	}
}

type vortex struct {
	t      *testing.T
	rig    *Rig
	rng    *rand.Rand
	pairs  []*instances
	faults map[string]int // by name: how often it was injected
}

// instances are the two processes of a connector.
type instances struct {
	connector *Connector
	run       [2]*Process
	streamed  int // how often those that are gone began to stream
}

// vortexFaults are the kinds of faults. Each comes once at least, the first time in this order.
var vortexFaults = []struct {
	name   string
	inject func(v *vortex)
}{
	{"kill -9 of an instance of each connector", func(v *vortex) { v.end((*vortex).kill) }},
	{"connections to MySQL cut", func(v *vortex) { v.rig.Link.Cut() }},
	{"SIGSTOP for less than the session", func(v *vortex) { v.freeze(vortexSession / 3) }},
	{"connections to Kafka cut", func(v *vortex) { v.rig.Kafka.Proxy.Cut() }},
	{"SIGTERM of an instance of each connector", func(v *vortex) { v.end((*vortex).terminate) }},
	{"answers of Kafka held", func(v *vortex) { v.hold(v.rig.Kafka.Proxy) }},
	{"SIGSTOP for longer than the session", func(v *vortex) { v.freeze(vortexSession * 3 / 2) }},
	{"answers of MySQL held", func(v *vortex) { v.hold(v.rig.Link) }},
	{"MySQL and Kafka restarted together", func(v *vortex) { v.restart(true, true) }},
	{"kill -9 of all instances", func(v *vortex) { v.both() }},
	{"MySQL restarted", func(v *vortex) { v.restart(true, false) }},
	{"Kafka restarted", func(v *vortex) { v.restart(false, true) }},
}

func (v *vortex) pause(most time.Duration) { time.Sleep(time.Duration(v.rng.Int64N(int64(most)))) }

func (v *vortex) fault(i int) {
	if i >= len(vortexFaults) {
		i = v.rng.IntN(len(vortexFaults))
	}
	f := &vortexFaults[i]
	v.faults[f.name]++
	v.t.Logf("fault: %s", f.name)
	f.inject(v)
	v.pause(1500 * time.Millisecond)
}

// active is the instance that began to stream last.
func (p *instances) active() int {
	last := func(i int) string {
		for _, line := range slices.Backward(strings.Split(p.run[i].Output(), "\n")) {
			if strings.Contains(line, streaming) {
				return line // begins with its time
			}
		}
		return ""
	}
	if last(1) > last(0) {
		return 1
	}
	return 0
}

// end ends an instance of each connector, mostly the active one, and starts it again a little later.
func (v *vortex) end(how func(v *vortex, p *Process)) {
	for _, p := range v.pairs {
		at := p.active()
		if v.rng.IntN(4) == 0 {
			at = 1 - at
		}
		how(v, p.run[at])
		p.streamed += p.run[at].Times(streaming)
		v.pause(time.Second)
		p.run[at] = p.connector.Run(v.t)
	}
}

func (v *vortex) kill(p *Process)      { p.Kill() }
func (v *vortex) terminate(p *Process) { p.Terminate(v.t) }

// both kills all instances when what they have written is likely to be more than the stored offset says.
func (v *vortex) both() {
	for _, p := range v.pairs {
		prefix := p.connector.Prefix + "."
		p.connector.AwaitCount(v.t, 2*time.Minute, v.rig.Kafka.Count(v.t, prefix)+100)
	}
	for _, p := range v.pairs {
		for i := range p.run {
			p.run[i].Kill()
			p.streamed += p.run[i].Times(streaming)
		}
	}
	v.pause(time.Second)
	for _, p := range v.pairs {
		for i := range p.run {
			p.run[i] = p.connector.Run(v.t)
		}
	}
}

// freeze stops the active instance for a while, as a virtual machine that stands still does.
func (v *vortex) freeze(d time.Duration) {
	p := v.pairs[v.rng.IntN(len(v.pairs))]
	one := p.run[p.active()]
	one.Signal(v.t, syscall.SIGSTOP)
	time.Sleep(d)
	one.Signal(v.t, syscall.SIGCONT)
}

// hold keeps a server's answers back for a while.
func (v *vortex) hold(p *Proxy) {
	p.Hold(false, true)
	v.pause(3 * time.Second)
	p.Hold(false, false)
}

func (v *vortex) restart(mysql, kafka bool) {
	clean := v.rng.IntN(2) == 0
	if mysql {
		v.rig.MySQL.Stop(v.t, clean)
	}
	if kafka {
		v.rig.Kafka.Stop(v.t, clean)
	}
	v.pause(2 * time.Second)
	if kafka {
		v.rig.Kafka.Start(v.t)
	}
	if mysql {
		v.rig.MySQL.Start(v.t)
	}
}

// look fails the test at an instance that has ended by itself.
func (v *vortex) look() {
	for _, p := range v.pairs {
		for _, one := range p.run {
			if one.Ended() {
				v.t.Fatalf("%s (pid %d) ended by itself with code %d", p.connector.Name, one.PID(), one.code)
			}
		}
	}
}

// calm ends all faults.
func (v *vortex) calm() {
	v.rig.Link.Hold(false, false)
	v.rig.Kafka.Proxy.Hold(false, false)
}

// terminate ends both instances, the one that stands by first.
func (p *instances) terminate(t *testing.T) {
	active := p.active()
	p.run[1-active].Terminate(t)
	p.run[active].Terminate(t)
}

// streamed is how often an instance began to stream.
func (v *vortex) streamed() int {
	n := 0
	for _, p := range v.pairs {
		n += p.streamed
		for _, one := range p.run {
			n += one.Times(streaming)
		}
	}
	return n
}
