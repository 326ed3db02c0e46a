package registry

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// TestSlowAnswers holds that what takes long is said once with its URL, however many wait, and that it is over, too.
func TestSlowAnswers(t *testing.T) {
	s, _ := fake(t)
	for round := range 2 {
		c, logs := client(t, auto(s.url))
		c.patience = 5 * time.Millisecond
		held := make(chan struct{})
		s.answering(func(http.ResponseWriter, *http.Request) bool {
			<-held
			return false
		})
		var all sync.WaitGroup
		for _, subject := range []string{"p.d.t-value", "p.d.u-value"} {
			all.Go(func() {
				if err := c.Resolve(t.Context(), Schema{Subject: subject, Text: valueText, Topic: "p.d.t"}); err != nil {
					t.Error(err)
				}
			})
		}
		before := 2 * round
		eventually(t, func() bool { return logs.Len() > 0 && len(s.seen()) == before+2 })
		time.Sleep(4 * c.patience) // both have waited that long
		close(held)
		all.Wait()
		entries := logs.All()
		if len(entries) != 2 {
			t.Fatalf("round %d: want two lines: %s", round, logs.lines())
		}
		said := entries[0].ContextMap()
		if entries[0].Message != "schema registry has not answered yet; waiting for it" || said["url"] != s.url || said["topic"] != "p.d.t" ||
			!slices.Contains([]any{"p.d.t-value", "p.d.u-value"}, said["subject"]) {
			t.Errorf("%s %v", entries[0].Message, said)
		}
		if entries[1].Message != "schema registry has answered" || entries[1].ContextMap()["url"] != s.url {
			t.Error(logs.lines())
		}
	}
	if patience < time.Second || patience > 10*time.Second {
		t.Errorf("patience for %s", patience)
	}
	if c, err := New(auto(s.url)); err != nil || c.patience != patience {
		t.Error(err, "or other patience than documented")
	}
}

// TestSlowAndFailed holds that the two ways to say that there is no answer do not say it twice, and that lookups that were
// given up do not keep it from being said again.
func TestSlowAndFailed(t *testing.T) {
	begin := time.Now()
	o, logs := observed()
	o.slow(valueSchema(), "http://a", begin)
	o.slow(valueSchema(), "http://a", begin)
	o.failed(valueSchema(), []string{"http://a"}, begin, errors.New("no"))
	o.slow(valueSchema(), "http://a", begin)
	o.answered("http://a")
	if got := messages(logs); !slices.Equal(got, []string{
		"schema registry has not answered yet; waiting for it", "schema registry cannot be used; trying again until it can", "schema registry can be used again",
	}) {
		t.Errorf("%q", got)
	}
	o, logs = observed()
	o.slow(valueSchema(), "http://a", begin)
	o.gaveUp()
	o.slow(valueSchema(), "http://a", begin)
	if n := logs.Len(); n != 2 {
		t.Errorf("%d lines, want 2", n)
	}
}

// TestFailureIsNotSlow holds that nothing is waited for once a request has failed.
func TestFailureIsNotSlow(t *testing.T) {
	s, _ := fake(t)
	s.always(http.StatusServiceUnavailable, "")
	c, logs := client(t, auto(s.url))
	c.patience = 200 * time.Millisecond
	for took := c.patience; took >= c.patience; { // on a busy machine it may be slow indeed
		logs.TakeAll()
		start := time.Now()
		if _, _, err := c.Latest(t.Context(), "s"); err == nil {
			t.Fatal("no error")
		}
		took = time.Since(start)
	}
	time.Sleep(2 * c.patience)
	if logs.Len() != 0 {
		t.Errorf("log: %s", logs.lines())
	}
}

// TestSlowAfterLookups holds that a record that waits is told of, though lookups were before it.
func TestSlowAfterLookups(t *testing.T) {
	s, _ := fake(t)
	s.answering(func(_ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	})
	c, logs := client(t, auto(s.url))
	c.patience = 5 * time.Millisecond
	for i, ask := range []func(ctx context.Context){
		func(ctx context.Context) {
			c.Lookup(ctx, slices.Values([]Schema{{Subject: "looked", Text: valueText}}))
		},
		func(ctx context.Context) { _ = c.Resolve(ctx, valueSchema()) }, // ends with ctx
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(0, func() {
			eventually(t, func() bool { return logs.FilterMessageSnippet("has not answered yet").Len() > i || ctx.Err() != nil })
			cancel(errors.New("enough"))
		})
		ask(ctx)
	}
	var of []any
	for _, e := range logs.FilterMessageSnippet("has not answered yet").All() {
		of = append(of, e.ContextMap()["subject"])
	}
	if !slices.Equal(of, []any{"looked", "p.d.t-value"}) {
		t.Errorf("it waits for %v: %s", of, logs.lines())
	}
}

// TestOvertaken holds that a request that began before the last answer says nothing about the time after it.
func TestOvertaken(t *testing.T) {
	o, logs := observed()
	begin := time.Now()
	time.Sleep(time.Millisecond)
	o.answered("http://a")
	o.slow(valueSchema(), "http://a", begin)
	o.failed(valueSchema(), []string{"http://a"}, begin, errors.New("no"))
	if n := logs.Len(); n != 0 {
		t.Errorf("it said: %q", messages(logs))
	}
	later := time.Now().Add(time.Millisecond)
	o.failed(valueSchema(), []string{"http://a"}, later, errors.New("no"))
	if n := logs.Len(); n != 1 {
		t.Errorf("%d lines, want 1", n)
	}
}

// eventually waits until something is so.
func eventually(t *testing.T, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Error("it did not happen")
			return
		}
	}
}

func observed() (*outage, *observer.ObservedLogs) {
	core, logs := observer.New(zap.DebugLevel)
	return &outage{log: zap.New(core)}, logs
}

func messages(logs *observer.ObservedLogs) (all []string) {
	for _, e := range logs.All() {
		all = append(all, e.Message)
	}
	return all
}
