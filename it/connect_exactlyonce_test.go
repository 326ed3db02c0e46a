package it

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// fencedSession is the session timeout of Tidemark's lock, which outlasts the short stops of this test.
	fencedSession = 6 * time.Second
	// settled is for how long a process has run that does not take the transactional id back from whoever has taken it: one that has
	// just begun may have been fenced by another one that began at the same time.
	settled = 10 * time.Second
)

// halfOfARow is a problem that Connect may leave: Debezium gives all records of a row the offset behind the row, and Connect may end its
// transaction between them. When it is fenced before the next one ends, the tombstone, or the new key's record, is in no topic, and
// the committed offset says that the row is done; a restart of Connect loses them, too.
var halfOfARow = regexp.MustCompile(`^(lost: .*, the first missing one is (t |c .*__debezium\.oldkey=)|differs: .*, want (t |c .*__debezium\.oldkey=))`)

// fencedTask is what a Connect task dies of whose transactional id another producer has taken.
var fencedTask = regexp.MustCompile(`ProducerFencedException|InvalidProducerEpochException`)

// TestConnectAndTidemarkFenceEachOther has a real Kafka Connect worker with exactly-once and Tidemark take one connector from each
// other under load, by nothing but that they begin: name, group.id and topics are the same, and so is the transactional id. The one that
// runs is fenced, in its work or when it stands still inside a transaction and goes on later, and writes nothing more: Connect's
// task fails, Tidemark ends with exit code 75. Readers of committed records get every change once.
func TestConnectAndTidemarkFenceEachOther(t *testing.T) {
	t.Parallel()
	rig := NewRig(t, gtidFlags...)
	c := rig.Connector(t, "fenced", "topic", "fenced\\..*")
	c.Config = c.Config.With(Properties{
		"exactly.once.support":                            "required",
		"schema.history.internal.kafka.bootstrap.servers": rig.Kafka.Addr(),
		"schema.history.internal.kafka.topic":             "history-" + c.Name,
		"max.batch.size":                                  "256", // less than a transaction
		"poll.interval.ms":                                "50",
	})
	c.Worker = c.Worker.With(Properties{
		"exactly.once.source.support": "enabled",
		"plugin.discovery":            "only_scan",
		"standby.session.timeout.ms":  fmt.Sprint(fencedSession.Milliseconds()),
	})
	f := &fencing{t: t, rig: rig, c: c, worker: c.DistributedConnect(t), began: time.Now()}
	f.worker.Create(t, c.Config)
	f.worker.Await(t, 90*time.Second, `Keepalive thread is running|Connected to binlog|Streaming started|Starting streaming`)
	work := StartWorkload(t, rig.MySQL, "fenced", 4, 800)
	f.progress("Connect")

	f.run()
	f.taskFails()
	f.progress("Tidemark, which fenced a task")

	f.settle()
	f.worker.RestartTask(t)
	f.ends()
	f.progress("Connect, which fenced Tidemark")

	left := f.freezeConnect()
	f.run()
	f.beginsBefore(left)
	f.progress("Tidemark, which fenced a task that stands still")
	f.worker.Signal(t, syscall.SIGCONT)
	f.taskFails()

	f.settle()
	f.freezeTidemark()
	f.worker.RestartTask(t)
	f.progress("Connect, which fenced a Tidemark that stands still")
	f.p.Signal(t, syscall.SIGCONT)
	f.ends()
	f.worker.AwaitTask(t, 10*time.Second, "RUNNING")

	f.run()
	f.taskFails()
	f.settle()
	f.freezeAndCut(f.p)
	stopped := time.Now()
	f.worker.RestartTask(t)
	f.progress("Connect, which fenced a Tidemark that stands still and has lost its connections and its lock")
	time.Sleep(time.Until(stopped.Add(fencedSession + 2*time.Second)))
	f.p.Signal(t, syscall.SIGCONT)
	f.ends()
	f.worker.AwaitTask(t, 10*time.Second, "RUNNING")

	f.run()
	f.progress("Tidemark")
	changes := work.Stop(t)
	c.AwaitDrained(t, time.Minute)
	f.p.Terminate(t)
	f.check(work, changes)
}

// fencing is a connector that a worker of Kafka Connect and Tidemark run in turn.
type fencing struct {
	t      *testing.T
	rig    *Rig
	c      *Connector
	worker *ConnectWorker
	p      *Process  // the last Tidemark …
	since  time.Time // … streams
	began  time.Time
	taken  int // so many times from Connect
}

// run starts Tidemark.
func (f *fencing) run() {
	f.t.Helper()
	f.p = f.c.RunStreaming(f.t)
	f.since = time.Now()
	f.taken++
}

// settle waits until Tidemark does not count as one that has just begun.
func (f *fencing) settle() { time.Sleep(time.Until(f.since.Add(settled + time.Second))) }

// progress waits until whoever runs the connector has written some more.
func (f *fencing) progress(who string) {
	f.t.Helper()
	f.c.AwaitCount(f.t, 60*time.Second, f.rig.Kafka.Count(f.t, f.c.Prefix+".")+300)
	f.t.Logf("%3.0f s: %s writes", time.Since(f.began).Seconds(), who)
}

// taskFails waits until Connect's task has failed, which has to be because it was fenced.
func (f *fencing) taskFails() {
	f.t.Helper()
	trace := f.worker.AwaitTask(f.t, 30*time.Second, "FAILED")
	if !fencedTask.MatchString(trace) {
		f.t.Errorf("Connect's task has failed of something else than being fenced:\n%s", trace)
	}
}

// ends waits until Tidemark has ended, which has to say what has fenced it.
func (f *fencing) ends() {
	f.t.Helper()
	if code := f.p.Wait(f.t, 30*time.Second); code != 75 {
		f.t.Errorf("Tidemark ended with code %d, want 75", code)
	}
	last := tail(f.p.Output(), 1)
	for _, text := range []string{"fenced by another instance", "Kafka Connect task with exactly-once", "transactional id " + f.id()} {
		if !strings.Contains(last, text) {
			f.t.Errorf("it does not say %q: %s", text, last)
		}
	}
	f.t.Logf("%s", last)
}

// id is the transactional id.
func (f *fencing) id() string { return f.c.Worker["group.id"] + "-" + f.c.Name + "-0" }

// ongoing says whether a transaction of the id is open.
func (f *fencing) ongoing() bool {
	f.t.Helper()
	admin := f.rig.Kafka.admin(f.t)
	defer admin.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	described, err := admin.DescribeTransactions(ctx, f.id())
	if err != nil {
		f.t.Fatal(err)
	}
	one := described[f.id()]
	if one.Err != nil {
		f.t.Fatal(one.Err)
	}
	return one.State == "Ongoing"
}

const endTxnKey = 26

// freezeAndCut stops a process that is about to end a transaction, whose records and offset are all there, and cuts its connections to
// Kafka.
func (f *fencing) freezeAndCut(p *Process) {
	f.t.Helper()
	proxy := f.rig.Kafka.Proxy
	select {
	case <-proxy.HoldAtRequest(endTxnKey):
	case <-time.After(30 * time.Second):
		f.t.Fatal("no transaction was ended in 30 s")
	}
	p.Signal(f.t, syscall.SIGSTOP)
	proxy.Cut()
	proxy.Hold(false, false)
	if !f.ongoing() {
		f.t.Fatal("it stands still, but no transaction is open")
	}
}

// freezeConnect stops the worker so and returns the offset that it has written but not committed.
func (f *fencing) freezeConnect() Message {
	f.t.Helper()
	f.freezeAndCut(f.worker.Process)
	var last Message
	for _, m := range f.rig.Kafka.read(f.t, f.c.OffsetTopic(), kgo.ReadUncommitted()) {
		if string(m.Key) == OffsetKey(f.c.Name, f.c.Prefix) {
			last = m
		}
	}
	return last
}

// beginsBefore checks that Tidemark has begun at the last offset that was committed before this one, which was not.
func (f *fencing) beginsBefore(left Message) {
	f.t.Helper()
	want := ""
	for _, m := range f.c.StoredOnTopic(f.t) {
		switch {
		case m.Offset < left.Offset:
			want = string(m.Value)
		case m.Offset == left.Offset:
			f.t.Errorf("the offset that Connect had written before it was stopped is committed: %s", m.Value)
		}
	}
	var line struct{ Offset string }
	said := regexp.MustCompile(`(?m)^.*` + streaming + `.*$`).FindString(f.p.Output())
	if err := json.Unmarshal([]byte(said), &line); err != nil {
		f.t.Fatalf("%v: %s", err, said)
	}
	if line.Offset != want || want == string(left.Value) {
		f.t.Errorf("Tidemark began at %s, committed was %s and written after it %s", line.Offset, want, left.Value)
	}
}

// freezeTidemark stops Tidemark while a transaction of its is open.
func (f *fencing) freezeTidemark() {
	f.t.Helper()
	eventually(f.t, 30*time.Second, "stopping Tidemark inside a transaction", func() error {
		f.p.Signal(f.t, syscall.SIGSTOP)
		if f.ongoing() {
			return nil
		}
		f.p.Signal(f.t, syscall.SIGCONT)
		return errors.New("no transaction was open")
	})
}

// check holds all that was written and stored against what the writers did.
func (f *fencing) check(work *Workload, changes []Change) {
	f.t.Helper()
	evidence := Evidence{
		Prefix: f.c.Prefix, Tables: WorkloadTables("fenced"), Changes: changes, Final: work.Final(f.t),
		Messages: f.c.Records(f.t), Binlog: f.rig.MySQL.Binlog(f.t), Together: true,
	}
	for _, m := range f.c.StoredOnTopic(f.t) {
		s, err := ParseStored(m.Value, m.Time)
		if err != nil {
			f.t.Fatal(err)
		}
		evidence.Offsets = append(evidence.Offsets, s)
	}
	report := Check(evidence)
	f.t.Logf("%3.0f s: %d row changes: %v", time.Since(f.began).Seconds(), len(changes), report)
	halves := 0
	for _, problem := range append(report.Problems, CheckWorkload(evidence)...) {
		if halfOfARow.MatchString(problem) && halves < 2*f.taken {
			halves++
			f.t.Logf("left out by Connect: %s", problem)
			continue
		}
		f.t.Error(problem)
	}
	if report.Repeated > 0 {
		f.t.Errorf("%d records are there twice", report.Repeated)
	}
}
