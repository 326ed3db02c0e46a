package standby

import (
	"context"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/emitter/kafka"
)

// A member that died on this host neither holds up its successor nor those that stand by.
func TestADeadMemberOfThisHost(t *testing.T) {
	known(t)
	inBubble(t, func(t *testing.T, r *rig) {
		dead := self()
		dead.start = "1"
		corpse := func() {
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
