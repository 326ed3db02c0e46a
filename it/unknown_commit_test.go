package it

import (
	"errors"
	"testing"
	"time"
)

// TestUnknownCommit cuts the connection to the broker right when the end of a Kafka transaction has been delivered, so that it is
// committed and nobody knows, and right before, so that it is not: with exactly-once, read_committed consumers get every change once
// all the same.
func TestUnknownCommit(t *testing.T) {
	t.Parallel()
	rig := NewRig(t, gtidFlags...)
	c := rig.Connector(t, "unknown", "topic", "unknown\\..*")
	c.Worker["offset.flush.interval.ms"] = "300"
	c.Config["start.position"] = "oldest"
	c.Config["exactly.once.support"] = "required"
	work := StartWorkload(t, rig.MySQL, "unknown", 1, 3_000)
	p := c.RunStreaming(t)
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
