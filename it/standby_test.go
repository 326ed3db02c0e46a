package it

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// What a process says that waits, and the one whose lock is gone.
const (
	standingBy = `"msg":"standing by: [^"]* runs the connector"`
	lockLost   = `"msg":"the lock is lost: `
)

var errNobody = errors.New("nobody streams")

// TestStandby runs several processes with one configuration under load. One writes and the others wait; when it is killed, stopped in
// order, or stands still, one of the others takes over in time. One that goes on after that is no error, writes nothing more and waits.
// Nothing is lost or reordered, and all that is repeated is a replay from a stored offset.
func TestStandby(t *testing.T) {
	t.Parallel()
	const (
		session = 10 * time.Second // the default
		slack   = 8 * time.Second  // for a machine that does other things as well
		inTime  = session + slack  // half a second is promised beyond the session timeout
	)
	rig := NewRig(t, gtidFlags...)
	c := rig.Connector(t, "standby", "topic", "standby\\..*")
	c.Worker["offset.flush.interval.ms"] = "300"
	c.Config["start.position"] = "oldest"
	work := StartWorkload(t, rig.MySQL, "standby", 7, 2000)
	waiting := func() *Process {
		p := c.Run(t)
		p.Await(t, time.Minute, standingBy)
		return p
	}
	a := c.RunStreaming(t)
	others := []*Process{waiting(), waiting()}
	rig.awaitMembers(t, c, 3)
	// next waits until one of the others streams, which then are the others without it.
	next := func(what string, most time.Duration) *Process {
		t.Helper()
		began := time.Now()
		var one *Process
		eventually(t, most, "taking over after "+what, func() error {
			i := slices.IndexFunc(others, func(p *Process) bool { return p.Times(streaming) > 0 })
			if i < 0 {
				return errNobody
			}
			one = others[i]
			others = slices.Delete(others, i, i+1)
			return nil
		})
		t.Logf("taken over %.2f s after %s; %d rows written", time.Since(began).Seconds(), what, work.Rows())
		return one
	}
	time.Sleep(time.Second)
	a.Kill()
	b := next("SIGKILL", inTime)
	time.Sleep(2 * time.Second)
	b.Terminate(t)
	d := next("SIGTERM", slack)
	if a.Times(streaming)+b.Times(streaming)+d.Times(streaming) != 3 {
		t.Error("one of them streamed more than once")
	}

	others = append(others, waiting())
	rig.awaitMembers(t, c, 2)
	time.Sleep(time.Second)
	d.Signal(t, syscall.SIGSTOP)
	e := next("SIGSTOP", inTime)
	time.Sleep(5 * time.Second) // it stands still for at least 15 s
	d.Signal(t, syscall.SIGCONT)
	d.Await(t, time.Minute, lockLost+`|`+`"msg":"it is not certain any more`)
	d.Await(t, time.Minute, standingBy)
	rig.awaitMembers(t, c, 2)
	time.Sleep(time.Second)
	if d.Ended() || d.Times(streaming) != 1 {
		t.Errorf("the one that stood still ended (%v) or streams again (%d)", d.Ended(), d.Times(streaming))
	}

	// Started again with nobody else there, a process does not wait for itself.
	d.Terminate(t)
	rig.awaitMembers(t, c, 1)
	e.Kill()
	began := time.Now()
	f := c.RunStreaming(t)
	took := time.Since(began)
	t.Logf("streaming again %.2f s after SIGKILL", took.Seconds())
	if took > slack {
		t.Errorf("it took %v to go on after SIGKILL", took)
	}

	changes := work.Stop(t)
	c.AwaitDrained(t, time.Minute)
	f.Terminate(t)
	c.check(t, work, changes)
	if got := rig.Kafka.Topics(t, c.OffsetTopic()+"-locks"); len(got) != 1 {
		t.Errorf("topics of locks: %v", got)
	}
}

// TestStandbyWhileKafkaIsAway takes Kafka away for longer than the session timeout: then one of both goes on, the other waits, and nothing
// is lost.
func TestStandbyWhileKafkaIsAway(t *testing.T) {
	t.Parallel()
	rig := NewRig(t, gtidFlags...)
	c := rig.Connector(t, "away", "topic", "away\\..*")
	c.Worker["offset.flush.interval.ms"] = "300"
	c.Config["start.position"] = "oldest"
	work := StartWorkload(t, rig.MySQL, "away", 11, 500)
	both := []*Process{c.RunStreaming(t)}
	both = append(both, c.Run(t))
	both[1].Await(t, time.Minute, standingBy)
	rig.awaitMembers(t, c, 2)
	rig.Kafka.Stop(t, false)
	time.Sleep(12 * time.Second)
	rig.Kafka.Start(t)
	rig.awaitMembers(t, c, 2)
	c.AwaitCount(t, time.Minute, rig.Kafka.Count(t, c.Prefix+".")+100)
	changes := work.Stop(t)
	c.AwaitDrained(t, time.Minute)
	for _, p := range both {
		if p.Ended() {
			t.Errorf("one ended with code %d", p.code)
		}
	}
	for _, p := range both {
		p.Terminate(t)
	}
	c.check(t, work, changes)
}

// TestStandbyNotAllowed takes the right to the group away: the connector runs all the same, and says once what to allow.
func TestStandbyNotAllowed(t *testing.T) {
	t.Parallel()
	rig := NewRig(t, gtidFlags...)
	rig.MySQL.Exec(t, "CREATE DATABASE alone", "CREATE TABLE alone.t (id INT PRIMARY KEY)")
	c := rig.Connector(t, "alone", "topic", "alone\\..*")
	admin := rig.Kafka.admin(t)
	defer admin.Close()
	results, err := admin.CreateACLs(context.Background(), kadm.NewACLs().Groups("tidemark-").ResourcePatternType(kadm.ACLPatternPrefixed).
		Deny("User:ANONYMOUS").DenyHosts("*").Operations(kadm.OpRead, kadm.OpDescribe))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	p := c.RunStreaming(t)
	rig.MySQL.Exec(t, "INSERT INTO alone.t VALUES (1)")
	c.AwaitCount(t, time.Minute, 1)
	const said = `"level":"warn".*"msg":"the connector runs without a standby.*--operation Read --group 'tidemark-' --resource-pattern-type prefixed`
	if n := p.Times(said); n != 1 {
		t.Errorf("said %d times: %s", n, said)
	}
	p.Terminate(t)
}

// check holds all that the connector wrote and stored against what the writers did.
func (c *Connector) check(t *testing.T, work *Workload, changes []Change) {
	t.Helper()
	var offsets []Stored
	for _, m := range c.StoredOnTopic(t) {
		s, err := ParseStored(m.Value, m.Time)
		if err != nil {
			t.Fatal(err)
		}
		offsets = append(offsets, s)
	}
	evidence := Evidence{
		Prefix: c.Prefix, Tables: WorkloadTables(work.database), Changes: changes, Final: work.Final(t),
		Messages: c.Records(t), Offsets: offsets, Binlog: c.rig.MySQL.Binlog(t),
	}
	report := Check(evidence)
	t.Logf("%d row changes: %v", len(changes), report)
	for _, p := range append(report.Problems, CheckWorkload(evidence)...) {
		t.Error(p)
	}
}

// awaitMembers waits until the group of the connector's lock has so many members, one of which has the lock.
func (r *Rig) awaitMembers(t testing.TB, c *Connector, n int) {
	t.Helper()
	admin := r.Kafka.admin(t)
	defer admin.Close()
	group := "tidemark-" + c.Worker["group.id"] + "-" + c.Name
	eventually(t, time.Minute, "the lock's group", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		described, err := admin.DescribeGroups(ctx, group)
		if err != nil {
			return err
		}
		g := described[group]
		holders := 0
		for _, m := range g.Members {
			if a, ok := m.Assigned.AsConsumer(); ok && len(a.Topics) > 0 {
				holders++
			}
		}
		if g.State != "Stable" || len(g.Members) != n || holders != 1 {
			return fmt.Errorf("it is %s with %d members and %d holders", g.State, len(g.Members), holders)
		}
		return nil
	})
}
