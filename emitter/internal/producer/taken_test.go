package producer

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/tidemark-cdc/tidemark/emitter/internal/kclient"
)

// leftBy has a producer of a line end at each point, and then calls next with the line.
func leftBy(t *testing.T, next func(t *testing.T, c *kfake.Cluster, line *kclient.Line, follow func() *rig), opts ...kfake.Opt) {
	for name, leave := range map[string]func(t *testing.T, r *rig, topic *Topic){
		"between transactions": func(*testing.T, *rig, *Topic) {},
		"in a transaction": func(t *testing.T, r *rig, topic *Topic) {
			r.sendBoth(t, topic)
			r.flush(t)
		},
		"whose end was given up": func(t *testing.T, r *rig, topic *Topic) {
			r.sendBoth(t, topic)
			r.flush(t)
			must(t, r.Abort(limited(t)))
		},
		"whose end did not arrive": func(t *testing.T, r *rig, topic *Topic) { endUnheard(t, r, topic, amid) },
		"whose end arrived":        func(t *testing.T, r *rig, topic *Topic) { endUnheard(t, r, topic, unheard) },
		"that has timed out": func(t *testing.T, r *rig, topic *Topic) {
			r.sendBoth(t, topic)
			r.flush(t)
			time.Sleep(1200 * time.Millisecond)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cluster(t, 2, opts...)
			line := new(kclient.Line)
			follow := func() *rig {
				return newTxnRig(t, c, func(cfg *Config) { cfg.Client.Line, cfg.Transaction.Timeout = line, time.Second })
			}
			r := follow()
			topic := r.topic(t, topicName)
			r.commit(t, topic)
			leave(t, r, topic)
			r.Close()
			next(t, c, line, follow)
		})
	}
}

func endUnheard(t *testing.T, r *rig, topic *Topic, how cut) {
	t.Helper()
	r.wire.cutOther(kmsg.EndTxn, how)
	r.sendBoth(t, topic)
	r.cut()
	if err := r.fails(t); !errors.Is(err, ErrUnknownOutcome) {
		t.Fatal(err)
	}
}

// TestFollowsItself takes the id again that nobody else has taken, whatever the one before has left.
func TestFollowsItself(t *testing.T) {
	bothProtocols(t, func(t *testing.T, opts ...kfake.Opt) {
		leftBy(t, func(t *testing.T, c *kfake.Cluster, _ *kclient.Line, follow func() *rig) {
			for range 2 {
				r := follow()
				must(t, r.Ready(limited(t)))
				r.commit(t, r.topic(t, topicName))
				r.Close()
			}
		}, opts...)
	})
}

// TestDoesNotTakeItBack from another one that has begun since, and that goes on.
func TestDoesNotTakeItBack(t *testing.T) {
	bothProtocols(t, func(t *testing.T, opts ...kfake.Opt) {
		leftBy(t, func(t *testing.T, c *kfake.Cluster, line *kclient.Line, follow func() *rig) {
			other := newTxnRig(t, c, nil)
			topic := other.topic(t, topicName)
			must(t, other.Ready(limited(t)))
			for range 3 {
				other.commit(t, topic)
			}
			if len(opts) > 0 { // where transactions leave the epoch, one that has timed out looks like another producer; two do not
				must(t, newTxnRig(t, c, nil).Ready(limited(t)))
				other = newTxnRig(t, c, nil)
				topic = other.topic(t, topicName)
				must(t, other.Ready(limited(t)))
			}
			other.sendBoth(t, topic)
			other.flush(t)
			before := line.Held().Used
			for range 2 {
				r := follow()
				err := r.Ready(limited(t))
				if !errors.Is(err, ErrFenced) || !errors.Is(r.fails(t), ErrFenced) || !LastUse(err).Equal(before) {
					t.Errorf("%v, used until %v, want %v", err, LastUse(err), before)
				}
				r.Close()
			}
			other.waitFor(t, other.cut())

			line.Release()
			must(t, follow().Ready(limited(t)))
			other.sendBoth(t, topic)
			if err := other.fails(t); !errors.Is(err, ErrFenced) {
				t.Errorf("%v", err)
			}
		}, opts...)
	})
}

// TestWhoHasItIsAskedAgain while the coordinator is not there; one that does not know the question, or does not answer it, keeps nobody back.
func TestWhoHasItIsAskedAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		opts   []kfake.Opt
		fault  *kfake.Fault
		asked  int
		fenced bool
	}{
		"asked again":      {nil, &kfake.Fault{Keys: []kmsg.Key{kmsg.DescribeTransactions}, Err: kerr.CoordinatorLoadInProgress, Count: 2}, 2, true},
		"not allowed":      {nil, &kfake.Fault{Keys: []kmsg.Key{kmsg.DescribeTransactions}, Err: kerr.TransactionalIDAuthorizationFailed, Count: -1}, 1, false},
		"before Kafka 3.0": {[]kfake.Opt{kfake.MaxVersions(kversion.V2_8_0())}, nil, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cluster(t, 2, tt.opts...)
			line := new(kclient.Line)
			follow := func() *rig { return newTxnRig(t, c, func(cfg *Config) { cfg.Client.Line = line }) }
			r := follow()
			r.commit(t, r.topic(t, topicName))
			r.Close()
			must(t, newTxnRig(t, c, nil).Ready(limited(t)))
			var faults *kfake.FaultHandle
			if tt.fault != nil {
				faults = c.Fault(*tt.fault)
			}
			if err := follow().Ready(limited(t)); errors.Is(err, ErrFenced) != tt.fenced || (err != nil) != tt.fenced {
				t.Errorf("%v", err)
			}
			if faults != nil && int(faults.Hits()) < tt.asked {
				t.Errorf("asked %d times", faults.Hits())
			}
		})
	}
}

// TestLeft counts the epochs that the cluster goes on by itself.
func TestLeft(t *testing.T) {
	now := time.Now()
	long := now.Add(-time.Hour)
	held := func(version int16, epoch int16, unanswered bool, open time.Time) *kclient.Held {
		return &kclient.Held{ID: 7, Epoch: epoch, Version: version, Unanswered: unanswered, Open: open}
	}
	for name, tt := range map[string]struct {
		held  *kclient.Held
		id    int64
		epoch int16
		want  bool
	}{
		"as it was":                {held(2, 5, false, time.Time{}), 7, 5, true},
		"one on":                   {held(2, 5, false, time.Time{}), 7, 6, false},
		"lost by the cluster":      {held(2, 5, false, time.Time{}), 7, 4, true},
		"an end without an answer": {held(2, 5, true, now), 7, 6, true},
		"… and another producer":   {held(2, 5, true, now), 7, 7, false},
		"… in one epoch":           {held(1, 5, true, now), 7, 6, false},
		"open":                     {held(2, 5, false, now), 7, 6, false},
		"timed out":                {held(2, 5, false, long), 7, 7, true},
		"… and another producer's transactions": {held(2, 5, true, long), 7, 8, false},
		"… in one epoch, timed out":             {held(1, 5, false, long), 7, 6, true},
		"… in one epoch, and another producer":  {held(1, 5, true, long), 7, 7, false},
		"another id":                            {held(2, 5, true, long), 8, 0, false},
		"another id after the last epoch":       {held(2, math.MaxInt16-1, true, now), 8, 0, true},
		"… and another producer's epochs":       {held(2, math.MaxInt16-1, true, now), 8, 2, false},
	} {
		tr := &transactions{most: time.Minute}
		if got := tr.left(tt.held, tt.id, tt.epoch); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
