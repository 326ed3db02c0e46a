package it

import (
	"errors"
	"testing"
	"time"
)

// TestUnknownCommit cuts the connection to the broker right when the end of a Kafka transaction has been delivered, so that it is
// committed and nobody knows, and right before, so that it is not: with exactly-once, read_committed consumers get every change once
// all the same. It is so on Kafka 3.9, too, whose protocol of transactions is another one, and of which the start says what it cannot
// protect from.
func TestUnknownCommit(t *testing.T) {
	for version, limits := range map[string]bool{"new": false, "old": true} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			unknownCommit(t, newRigWith(t, broker{version: version}, gtidFlags...), limits)
		})
	}
}

func unknownCommit(t *testing.T, rig *Rig, limits bool) {
	c := rig.Connector(t, "unknown", "topic", "unknown\\..*")
	c.Worker["offset.flush.interval.ms"] = "300"
	c.Config["start.position"] = "oldest"
	c.Config["exactly.once.support"] = "required"
	work := StartWorkload(t, rig.MySQL, "unknown", 1, 3_000)
	p := c.RunStreaming(t)
	if said := p.Times("the cluster's transaction.version is below 2") > 0; said != limits {
		t.Errorf("it is said that transaction.version is below 2: %v, want %v", said, limits)
	}
	const cuts, endTxn = 8, 26
	const goesOn = streaming + `|"msg":"the stream goes on"` // soon after another time
	for i := range cuts {
		before := p.Times(goesOn)
		met := rig.Kafka.Proxy.CutAtRequest(endTxn, i%2 == 0)
		select {
		case <-met:
		case <-time.After(30 * time.Second):
			t.Fatalf("no transaction was ended in 30 s (cut %d)", i)
		}
		eventually(t, time.Minute, "streaming again", func() error {
			if p.Ended() {
				t.Fatalf("it ended with code %d", p.code)
			}
			if p.Times(goesOn) == before {
				return errors.New("not yet")
			}
			return nil
		})
		time.Sleep(time.Second) // until offsets are stored again
	}
	changes := work.Stop(t)
	c.AwaitDrained(t, time.Minute)
	p.Terminate(t)
	evidence := Evidence{
		Prefix: c.Prefix, Tables: WorkloadTables("unknown"), Changes: changes, Final: work.Final(t),
		Messages: c.Records(t), Binlog: rig.MySQL.Binlog(t), Together: true,
	}
	for _, m := range c.StoredOnTopic(t) {
		s, err := ParseStored(m.Value, m.Time)
		if err != nil {
			t.Fatal(err)
		}
		evidence.Offsets = append(evidence.Offsets, s)
	}
	report := Check(evidence)
	t.Logf("%d ends of transactions cut, half of them delivered: %v", cuts, report)
	for _, problem := range append(report.Problems, CheckWorkload(evidence)...) {
		t.Error(problem)
	}
	if report.Repeated > 0 {
		t.Errorf("%d records are there twice", report.Repeated)
	}
}
