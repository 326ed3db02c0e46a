package standby

import (
	"context"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/emitter/kafka"
)

// A member that died on this host neither holds up its successor nor those that stand by.
func TestADeadMemberOfThisHost(t *testing.T) {
	known(t)
	inBubble(t, func(t *testing.T, r *rig) {
		corpse := func() { r.corpse(t) }
		corpse()
		a := r.start()
		if took := a.runs(t, time.Second); took > 100*time.Millisecond {
			t.Errorf("its successor began after %v", took)
		}
		await(t, time.Second, "it is taken out", func() bool {
			members, err := r.lock().Members(t.Context())
			return err == nil && len(members) == 1 && members[0].Holds
		})
		if err := a.end(); err != nil {
			t.Error(err)
		}

		// With another that stands by, that one takes over as soon as the successor is there.
		corpse()
		elsewhere := self()
		elsewhere.world = "0123456789abcdef"
		b := r.startOn(elsewhere)
		time.Sleep(time.Minute)
		if b.running.Load() {
			t.Fatal("it took over from one that may be alive")
		}
		a = r.start()
		b.runs(t, 2*time.Second)
		if a.running.Load() {
			t.Error("two run")
		}
		if err := a.end(); err != nil {
			t.Error(err)
		}
		if err := b.end(); err != nil {
			t.Error(err)
		}
	})
}

// Two that begin at the same moment, on the host on which the one before them has died, do not both take its place; one does at once.
func TestADeadMemberWithTwoHeirs(t *testing.T) {
	known(t)
	other := self()
	other.pid = os.Getppid()
	other.start, _ = stat(other.pid)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		inBubble(t, func(t *testing.T, r *rig) {
			r.corpse(t)
			all := []*instance{r.startOn(other, r.slow(rng)), r.start(r.slow(rng))}
			r.oneRuns(all, 200*time.Millisecond)
			for _, i := range all {
				if err := i.end(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// corpse leaves a member in the group that has the lock and whose process has died on this host.
func (r *rig) corpse(t *testing.T) {
	t.Helper()
	dead := self()
	dead.start = "1"
	lock, err := kafka.NewLock(kafka.LockConfig{
		ClientConfig: kafka.ClientConfig{Properties: map[string]string{"bootstrap.servers": "localhost:9092"}, ClientID: dead.clientID("g-c-lock"), Dial: r.network.DialContext},
		Group:        "tidemark-g-c", Topic: "offsets-locks", ReplicationFactor: 1, SessionTimeout: 4 * time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- lock.Run(ctx) }()
	await(t, time.Second, "it has the lock", lock.Held)
	cancel()
	<-done
	lock.Close()
}
