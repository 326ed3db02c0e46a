package standby

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A process that is fenced while the group has not decided waits for its decision. One that has the lock ends: who fences it does
// not ask the group.
func TestFenced(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.slowFirstJoin(5 * time.Second)
		a := r.start()
		a.runs(t, time.Second)
		a.fail <- errFenced
		time.Sleep(3 * time.Second)
		if a.running.Load() || a.turns.Load() != 1 {
			t.Error("it runs before the group has decided")
		}
		a.runs(t, 3*time.Second)
		time.Sleep(settling)
		began := time.Now()
		a.fail <- errFenced
		err := <-a.ended
		fenced, ok := errors.AsType[*FencedError](err)
		if !ok || fenced.ExitCode() != 75 || !errors.Is(err, errFenced) || !strings.Contains(err.Error(), "fenced by another instance") {
			t.Error(err)
		}
		if took := time.Since(began); took > 5*time.Second || a.turns.Load() != 2 {
			t.Errorf("it took %v and %d turns", took, a.turns.Load())
		}
	})
}

// One that began without the group's decision may have been fenced by another one that did so, too, though the group has decided for the first
// by then. So may one that has just begun. That one begins anew, but not again and again.
func TestFencedAtTheBeginning(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.slowFirstJoin(5 * time.Second)
		a := r.start()
		a.runs(t, time.Second)
		time.Sleep(time.Minute) // the group has decided meanwhile
		b := r.startOn(process{host: "other", pid: 7})
		time.Sleep(5 * time.Second)
		for turn := range int32(2) {
			a.fail <- errFenced
			await(t, 3*time.Second, "it begins anew", func() bool { return a.turns.Load() == turn+2 })
			if turn == 0 {
				time.Sleep(retake + settling)
				a.frozen.Store(true)
				time.Sleep(session + 5*time.Second)
				a.frozen.Store(false)
				await(t, session, "it stands by", func() bool { return a.said("standing by") == 1 })
				if err := b.end(); err != nil {
					t.Error(err)
				}
				await(t, 3*session, "it has the lock again", func() bool { return a.turns.Load() == 3 })
				a.turns.Store(2)
			}
		}
		a.fail <- errFenced
		if err := <-a.ended; !errors.Is(err, errFenced) {
			t.Error(err)
		}
	})
}

// One that loses the lock while nobody else of its group is there, and gets it back, has not begun anew: who has fenced it meanwhile does not
// ask the group. When another one has run the connector in between, it begins anew, and takes what that one had.
func TestFencedWhileItStoodStill(t *testing.T) {
	for name, alone := range map[string]bool{"alone": true, "with another that takes over": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				var anew atomic.Int32
				a := r.start(func(cfg *Config) { cfg.Anew = func() { anew.Add(1) } })
				a.runs(t, time.Second)
				time.Sleep(2 * settling)
				var b *instance
				if !alone {
					b = r.startOn(process{host: "other", pid: 7})
					time.Sleep(5 * time.Second)
				}
				a.frozen.Store(true)
				time.Sleep(time.Minute)
				a.frozen.Store(false)
				if !alone {
					await(t, session, "it stands by", func() bool { return a.said("standing by") == 1 })
					if err := b.end(); err != nil {
						t.Error(err)
					}
				}
				await(t, 3*session, "it has the lock again", func() bool { return a.turns.Load() == 2 })
				a.fail <- errFenced
				if alone {
					await(t, 5*time.Second, "it ends", func() bool { return len(a.ended) > 0 })
					if _, ok := errors.AsType[*FencedError](<-a.ended); !ok || anew.Load() != 1 {
						t.Errorf("it began anew %d times", anew.Load())
					}
					return
				}
				await(t, 5*time.Second, "it begins anew", func() bool { return a.turns.Load() == 3 })
				if anew.Load() != 3 {
					t.Errorf("it began anew %d times", anew.Load())
				}
				if err := a.end(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// One that is told to stop and finds that another one has begun since has done what it was told.
func TestFencedAtTheEnd(t *testing.T) {
	for _, err := range []error{errFenced, errReplaced} {
		inBubble(t, func(t *testing.T, r *rig) {
			a := r.start()
			a.runs(t, time.Second)
			a.last = fmt.Errorf("storing the offset: %w", err)
			if err := a.end(); err != nil || a.said("stored nothing more") != 1 {
				t.Errorf("%v", err)
			}
		})
	}
	inBubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		a.runs(t, time.Second)
		a.last = errBroken
		if err := a.end(); !errors.Is(err, errBroken) {
			t.Errorf("%v", err)
		}
	})
}

// One that began before the group had decided ends like any other when it is fenced later, by one that does not ask the group: nobody else is
// there, or its id was still its own when all had heard of the decision.
func TestFencedByAStranger(t *testing.T) {
	for name, alone := range map[string]bool{"alone": true, "with another that stands by": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.slowFirstJoin(3 * time.Second)
				a := r.start(func(cfg *Config) {
					cfg.LastUse = func(error) time.Time {
						if alone {
							return time.Time{}
						}
						return time.Now().Add(-time.Second)
					}
				})
				a.runs(t, time.Second)
				time.Sleep(3*time.Second + 2*settling)
				if !alone {
					b := r.startOn(process{host: "other", pid: 7})
					time.Sleep(5 * time.Second)
					defer func() {
						b.runs(t, time.Second)
						if err := b.end(); err != nil {
							t.Error(err)
						}
					}()
				}
				a.fail <- errFenced
				await(t, 5*time.Second, "it ends", func() bool { return len(a.ended) > 0 })
				if _, ok := errors.AsType[*FencedError](<-a.ended); !ok || a.turns.Load() != 1 {
					t.Errorf("it began %d times", a.turns.Load())
				}
			})
		})
	}
}

// Of two that began at once the server may have ended the stream of either: who is to stand by does, and who has the lock begins anew. Later that
// is another one, which the group knows nothing of, and the error is the server's.
func TestReplacedAtTheBeginning(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.slowFirstJoin(5 * time.Second)
		a := r.start()
		a.runs(t, time.Second)
		a.fail <- errReplaced
		time.Sleep(3 * time.Second)
		if a.running.Load() || a.turns.Load() != 1 {
			t.Error("it runs before the group has decided")
		}
		a.runs(t, 3*time.Second)
		b := r.start()
		time.Sleep(5 * time.Second)
		a.fail <- errReplaced
		await(t, 3*time.Second, "it begins anew", func() bool { return a.turns.Load() == 3 })
		if b.turns.Load() != 0 {
			t.Error("two run")
		}
		time.Sleep(settling)
		a.fail <- errReplaced
		err := <-a.ended
		if _, ok := errors.AsType[*FencedError](err); ok || !errors.Is(err, errReplaced) {
			t.Error(err)
		}
		b.runs(t, time.Second)
		if err := b.end(); err != nil {
			t.Error(err)
		}
	})
}

// One that is fenced since it has lost the lock, and has not heard of that yet, is no error: it stands by, and may get the lock again.
func TestFencedByTheOneThatHasTheLock(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := r.start()
		a.runs(t, time.Second)
		b := r.start()
		time.Sleep(5 * time.Second)
		admin := r.lock()
		members, err := admin.Members(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range members {
			if m.Holds {
				if err := admin.Remove(t.Context(), "test", m); err != nil {
					t.Fatal(err)
				}
			}
		}
		a.fail <- errFenced
		await(t, 2*time.Second, "one runs", func() bool { return a.turns.Load()+b.turns.Load() == 2 })
		time.Sleep(time.Minute)
		if a.running.Load() == b.running.Load() || a.said("standing by") != 1 {
			t.Error(a.running.Load(), b.running.Load(), a.log.All())
		}
		if err := a.end(); err != nil {
			t.Error(err)
		}
		if err := b.end(); err != nil {
			t.Error(err)
		}
	})
}
