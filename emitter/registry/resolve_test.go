package registry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"
)

func TestResolveAsksOnce(t *testing.T) {
	s, fake := fake(t)
	cfg := auto(s.url)
	cfg.KeepTexts = true
	c, logs := client(t, cfg)
	if _, ok := c.ID("p.d.t-value", valueText); ok {
		t.Fatal("an id before any request")
	}
	for range 3 {
		if err := c.Resolve(t.Context(), valueSchema()); err != nil {
			t.Fatal(err)
		}
	}
	id, ok := c.ID("p.d.t-value", valueText)
	if !ok || id != 1 {
		t.Fatalf("id %d, %t; want 1", id, ok)
	}
	if text, ok := c.Text(1); !ok || text != valueText {
		t.Errorf("text of id 1: %q, %t", text, ok)
	}
	if _, ok := c.Text(2); ok {
		t.Error("a text of an id that nobody asked for")
	}
	if stored, ok := fake.GetSchema("p.d.t-value", 1); !ok || stored.Schema.Schema != valueText {
		t.Errorf("the registry has %q", stored.Schema.Schema)
	}
	requests := s.seen()
	if len(requests) != 1 {
		t.Fatalf("%d requests, want 1: %v", len(requests), requests)
	}
	r := requests[0]
	if r.method != http.MethodPost || r.path != "/subjects/p.d.t-value/versions" || r.query != "" {
		t.Errorf("request %s %s?%s", r.method, r.path, r.query)
	}
	if logs.Len() != 0 {
		t.Errorf("log: %s", logs.lines())
	}
	// The same schema of another subject has the same id, but is registered there as well.
	if err := c.Resolve(t.Context(), Schema{Subject: "a/b ü-value", Text: valueText}); err != nil {
		t.Fatal(err)
	}
	if id, ok := c.ID("a/b ü-value", valueText); !ok || id != 1 {
		t.Errorf("id %d, %t", id, ok)
	}
	if !fake.SubjectExists("a/b ü-value") {
		t.Error("the subject with special characters is not there")
	}
}

func TestNormalize(t *testing.T) {
	s, _ := fake(t)
	cfg := auto(s.url)
	cfg.Normalize = true
	c, _ := client(t, cfg)
	if err := c.Resolve(t.Context(), valueSchema()); err != nil {
		t.Fatal(err)
	}
	if q := s.seen()[0].query; q != "normalize=true" {
		t.Errorf("query %q", q)
	}
}

// TestWaitingHeals holds that each failure that may pass is waited for, and said once.
func TestWaitingHeals(t *testing.T) {
	hang := func(w http.ResponseWriter) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = conn.Close() // the point is that it ends
		}
	}
	for _, what := range []struct {
		name, reason string
		fault        func(w http.ResponseWriter)
	}{
		{"408", "HTTP 408", status(408)},
		{"429", "HTTP 429", status(429)},
		{"500", "HTTP 500: Error in the backend data store", body(500, `{"error_code":50001,"message":"Error in the backend data store"}`)},
		{"502", "HTTP 502: a web page, Bad Gateway", body(502, "<html><head><title>Bad Gateway</title></head></html>")},
		{"503", "HTTP 503: it gives no reason", status(503)},
		{"504", "HTTP 504: a web page, without a title", body(504, "<html></html>")},
		{"closed", "it closed the connection", hang},
		{"half an answer", "it closed the connection", func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte(`{"id":`)) // cut off
		}},
	} {
		t.Run(what.name, func(t *testing.T) {
			s, _ := fake(t)
			var faults atomic.Int32
			s.answering(func(w http.ResponseWriter, _ *http.Request) bool {
				if faults.Add(1) > 5 {
					return false
				}
				what.fault(w)
				return true
			})
			c, logs := client(t, auto(s.url))
			if err := c.Resolve(t.Context(), valueSchema()); err != nil {
				t.Fatal(err)
			}
			if _, ok := c.ID("p.d.t-value", valueText); !ok {
				t.Error("no id")
			}
			entries := logs.All()
			if len(entries) != 2 {
				t.Fatalf("want two lines, got: %s", logs.lines())
			}
			if entries[0].Message != "schema registry cannot be used; trying again until it can" {
				t.Error(entries[0].Message)
			}
			said := entries[0].ContextMap()
			if said["subject"] != "p.d.t-value" || said["urls"] != s.url || said["topic"] != "p.d.t" {
				t.Error(said)
			}
			wantText(t, said["reason"].(string), s.url+": "+what.reason)
			if entries[1].Message != "schema registry can be used again" || entries[1].ContextMap()["tries"] != int64(5) {
				t.Error(logs.lines())
			}
		})
	}
}

func status(code int) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { w.WriteHeader(code) }
}

func body(code int, text string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.WriteHeader(code)
		_, _ = w.Write([]byte(text)) // the client may be gone
	}
}

// TestOutageIsSaidOnceForAll holds that many schemas that wait at a time make one line, and that a second outage makes
// another.
func TestOutageIsSaidOnceForAll(t *testing.T) {
	s, _ := fake(t)
	c, logs := client(t, auto(s.url))
	for round := range 2 {
		s.always(503, "")
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				schema := Schema{Subject: fmt.Sprintf("s%d-%d", round, i), Text: valueText}
				if err := c.Resolve(t.Context(), schema); err != nil {
					t.Error(err)
				}
				if _, ok := c.ID(schema.Subject, schema.Text); !ok {
					t.Error("no id of", schema.Subject)
				}
			})
		}
		before := len(s.seen())
		for len(s.seen()) < before+30 {
			time.Sleep(time.Millisecond)
		}
		s.answering(nil)
		all.Wait()
		if n := logs.FilterMessageSnippet("cannot be used").Len(); n != round+1 {
			t.Errorf("%d lines about %d outages", n, round+1)
		}
		if n := logs.FilterMessageSnippet("can be used again").Len(); n != round+1 {
			t.Errorf("%d lines about %d ends", n, round+1)
		}
	}
}

func TestBackoffGrows(t *testing.T) {
	s, _ := fake(t)
	var times []time.Time
	s.answering(func(w http.ResponseWriter, _ *http.Request) bool {
		times = append(times, time.Now())
		if len(times) == 6 {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	c, _ := client(t, auto(s.url))
	if c2, err := New(auto(s.url)); err != nil || c2.wait != shortestWait || c2.maxWait != longestWait {
		t.Fatal(err, "or other waits than documented")
	}
	c.wait, c.maxWait = 20*time.Millisecond, 80*time.Millisecond
	if err := c.Resolve(t.Context(), valueSchema()); err != nil {
		t.Fatal(err)
	}
	for i, least := range []time.Duration{10, 20, 40, 40, 40} { // half of 20, 40, 80, 80, 80 ms
		if pause := times[i+1].Sub(times[i]); pause < least*time.Millisecond {
			t.Errorf("try %d came after %s, want at least %d ms", i+2, pause, least)
		}
	}
}

func TestNextInstance(t *testing.T) {
	for _, fault := range []int{500, 502, 503, 504, 429, 408} {
		t.Run(fmt.Sprint(fault), func(t *testing.T) {
			bad, registry := fake(t)
			bad.always(fault, "no")
			good := serve(t, registry.Handler())
			c, logs := client(t, auto(bad.url, good.url))
			if err := c.Resolve(t.Context(), valueSchema()); err != nil {
				t.Fatal(err)
			}
			if len(bad.seen()) != 1 || len(good.seen()) != 1 {
				t.Errorf("requests: %d to the first, %d to the second", len(bad.seen()), len(good.seen()))
			}
			// It goes on with the one that answers.
			if err := c.Resolve(t.Context(), Schema{Subject: "p.d.t-key", Text: keyText}); err != nil {
				t.Fatal(err)
			}
			if len(bad.seen()) != 1 || len(good.seen()) != 2 {
				t.Errorf("requests: %d to the first, %d to the second", len(bad.seen()), len(good.seen()))
			}
			// And back when that fails.
			bad.answering(nil)
			good.always(fault, "no")
			if err := c.Resolve(t.Context(), Schema{Subject: "x-key", Text: keyText}); err != nil {
				t.Fatal(err)
			}
			if len(bad.seen()) != 2 || len(good.seen()) != 3 {
				t.Errorf("requests: %d to the first, %d to the second", len(bad.seen()), len(good.seen()))
			}
			if logs.Len() != 0 {
				t.Errorf("log: %s", logs.lines())
			}
		})
	}
}

func TestFirstInstanceIsDown(t *testing.T) {
	good, _ := fake(t)
	c, _ := client(t, auto("http://127.0.0.1:1", good.url))
	if err := c.Resolve(t.Context(), valueSchema()); err != nil {
		t.Fatal(err)
	}
}

func TestAnswerOfFirstInstanceIsFinal(t *testing.T) {
	first, _ := fake(t)
	first.always(409, `{"error_code":409,"message":"no"}`)
	second, _ := fake(t)
	c, _ := client(t, auto(first.url, second.url))
	if err := c.Resolve(t.Context(), valueSchema()); !refusal(t, err).Incompatible() {
		t.Error(err)
	}
	if len(second.seen()) != 0 {
		t.Error("the second instance was asked as well")
	}
}

func TestLookupOnly(t *testing.T) {
	s, fake := fake(t)
	c, _ := client(t, Config{URLs: []string{s.url}})
	err := c.Resolve(t.Context(), valueSchema())
	r := refusal(t, err)
	if r.Status != 404 || r.Subject != "p.d.t-value" || r.Incompatible() || r.URL != s.url {
		t.Errorf("%+v", r)
	}
	wantText(t, err.Error(), "does not have the schema of subject \"p.d.t-value\"", "tidemark schema", "auto.register.schemas=true", "HTTP 404")
	if fake.SubjectExists("p.d.t-value") {
		t.Error("it was registered")
	}
	if requests := s.seen(); len(requests) != 1 || requests[0].path != "/subjects/p.d.t-value" || requests[0].method != http.MethodPost {
		t.Errorf("requests: %v", requests)
	}
	fake.SeedSchema("p.d.t-value", 1, 77, avroSchema(valueText))
	if err := c.Resolve(t.Context(), valueSchema()); err != nil {
		t.Fatal(err)
	}
	if id, _ := c.ID("p.d.t-value", valueText); id != 77 {
		t.Errorf("id %d, want 77", id)
	}
}

func TestUseLatest(t *testing.T) {
	s, fake := fake(t)
	c, _ := client(t, Config{URLs: []string{s.url}, UseLatest: true})
	err := c.Resolve(t.Context(), valueSchema())
	if refusal(t, err).Status != 404 {
		t.Error(err)
	}
	wantText(t, err.Error(), "has no schema of subject \"p.d.t-value\"", "auto.register.schemas=true")

	fake.SeedSchema("p.d.t-value", 1, 41, avroSchema(valueText))
	fake.SeedSchema("p.d.t-value", 2, 42, avroSchema(otherText))
	err = c.Resolve(t.Context(), valueSchema())
	if r := refusal(t, err); r.Status != 0 || r.Incompatible() || r.Reason == "" {
		t.Errorf("%+v", r)
	}
	wantText(t, err.Error(), "the latest schema of subject \"p.d.t-value\", version 2", "use.latest.version=false", "p.d.t.Value")

	fake.SeedSchema("p.d.t-value", 3, 43, avroSchema(plainText))
	if err := c.Resolve(t.Context(), valueSchema()); err != nil {
		t.Fatal(err)
	}
	if id, _ := c.ID("p.d.t-value", valueText); id != 43 {
		t.Errorf("id %d, want 43", id)
	}

	fake.SeedSchema("j-value", 1, 50, sr.Schema{Schema: `{"type":"object"}`, Type: sr.TypeJSON})
	err = c.Resolve(t.Context(), Schema{Subject: "j-value", Text: valueText})
	refusal(t, err)
	wantText(t, err.Error(), "JSON, not AVRO")

	// auto.register.schemas=true comes first, as in Confluent's serializer.
	c, _ = client(t, Config{URLs: []string{s.url}, UseLatest: true, AutoRegister: true})
	if err := c.Resolve(t.Context(), valueSchema()); err != nil {
		t.Fatal(err)
	}
	if id, _ := c.ID("p.d.t-value", valueText); id != 41 {
		t.Errorf("id %d, want 41", id)
	}
}

func TestLatest(t *testing.T) {
	s, fake := fake(t)
	c, _ := client(t, auto(s.url))
	if _, _, err := c.Latest(t.Context(), "p.d.t-value"); refusal(t, err).Status != 404 {
		t.Error(err)
	}
	fake.SeedSchema("p.d.t-value", 1, 41, avroSchema(valueText))
	fake.SeedSchema("p.d.t-value", 2, 42, avroSchema(otherText))
	text, version, err := c.Latest(t.Context(), "p.d.t-value")
	if err != nil || text != otherText || version != 2 {
		t.Errorf("%q, %d, %v", text, version, err)
	}
	s.always(503, "")
	before := len(s.seen())
	if _, _, err = c.Latest(t.Context(), "p.d.t-value"); err == nil {
		t.Fatal("no error")
	}
	wantText(t, err.Error(), s.url, "HTTP 503")
	if n := len(s.seen()) - before; n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

func TestResolveEndsWithItsContext(t *testing.T) {
	s, _ := fake(t)
	s.always(503, `{"message":"the store is down"}`)
	c, _ := client(t, auto(s.url))
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the run ends")
	time.AfterFunc(20*time.Millisecond, func() { cancel(why) })
	err := c.Resolve(ctx, valueSchema())
	if !errors.Is(err, why) {
		t.Fatal(err)
	}
	wantText(t, err.Error(), "p.d.t-value", "the run ends", "the store is down")
}

func TestResolveEndsInsideRequest(t *testing.T) {
	s, _ := fake(t)
	inside := make(chan struct{})
	s.answering(func(_ http.ResponseWriter, r *http.Request) bool {
		close(inside)
		<-r.Context().Done()
		return true
	})
	c, logs := client(t, auto(s.url))
	done := make(chan error)
	go func() { done <- c.Resolve(t.Context(), valueSchema()) }()
	<-inside
	c.Close()
	if err := <-done; !errors.Is(err, errClosed) {
		t.Error(err)
	}
	if logs.Len() != 0 {
		t.Errorf("log: %s", logs.lines())
	}
}

func TestClose(t *testing.T) {
	s, _ := fake(t)
	c, _ := client(t, auto(s.url))
	if err := c.Resolve(t.Context(), valueSchema()); err != nil {
		t.Fatal(err)
	}
	s.always(503, "")
	time.AfterFunc(20*time.Millisecond, c.Close)
	key := Schema{Subject: "p.d.t-key", Text: keyText}
	if err := c.Resolve(t.Context(), key); !errors.Is(err, errClosed) {
		t.Error(err)
	}
	c.Close()
	if _, ok := c.ID("p.d.t-value", valueText); !ok {
		t.Error("the cache is gone")
	}
	key.Subject = "after" // one of before the end may be seen only now
	for range 200 {       // a race with a goroutine that cancels would show
		if err := c.Resolve(t.Context(), key); !errors.Is(err, errClosed) {
			t.Fatal(err)
		}
		if _, _, err := c.Latest(t.Context(), "after"); !errors.Is(err, errClosed) {
			t.Fatal(err)
		}
		c.Lookup(t.Context(), slices.Values([]Schema{key}))
	}
	for _, r := range s.seen() {
		if strings.Contains(r.path, "after") {
			t.Fatalf("asked after the end: %s", r.path)
		}
	}
}

// TestCloseEndsConnections holds that none stays open for the minute that it may be idle.
func TestCloseEndsConnections(t *testing.T) {
	closed := make(chan struct{}, 10)
	web := httptest.NewUnstartedServer(srfake.NewRegistry().Handler())
	web.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	web.Start()
	t.Cleanup(web.Close)
	c, _ := client(t, auto(web.URL))
	if err := c.Resolve(t.Context(), valueSchema()); err != nil {
		t.Fatal(err)
	}
	c.Close()
	select {
	case <-closed:
	case <-time.After(20 * time.Second):
		t.Error("the connection is still open")
	}
}

func TestLookup(t *testing.T) {
	s, fake := fake(t)
	var now, most atomic.Int32
	s.answering(func(http.ResponseWriter, *http.Request) bool {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		time.Sleep(2 * time.Millisecond)
		return false
	})
	c, logs := client(t, auto(s.url))
	schemas := make([]Schema, 0, 40)
	for i := range 40 {
		schemas = append(schemas, Schema{Subject: fmt.Sprintf("s%d", i), Text: valueText})
		if i%2 == 0 {
			if _, _, err := fake.RegisterSchema(schemas[i].Subject, avroSchema(valueText)); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.Lookup(t.Context(), slices.Values(schemas))
	for i, schema := range schemas {
		if _, ok := c.ID(schema.Subject, schema.Text); ok != (i%2 == 0) {
			t.Errorf("%s: known %t", schema.Subject, ok)
		}
		if fake.SubjectExists(schema.Subject) != (i%2 == 0) {
			t.Errorf("%s was registered", schema.Subject)
		}
	}
	if most.Load() < 2 || most.Load() > lookups {
		t.Errorf("%d requests at a time", most.Load())
	}
	if logs.Len() != 0 {
		t.Errorf("log: %s", logs.lines())
	}
	before := len(s.seen())
	c.Lookup(t.Context(), slices.Values(schemas))
	if n := len(s.seen()) - before; n != 20 {
		t.Errorf("the second time %d requests, want the 20 unknown", n)
	}
}

// TestLookupFails holds that a registry that cannot be asked costs a few requests and one line.
func TestLookupFails(t *testing.T) {
	for _, fault := range []int{503, 401, 403} {
		t.Run(fmt.Sprint(fault), func(t *testing.T) {
			s, _ := fake(t)
			s.always(fault, "")
			c, logs := client(t, auto(s.url))
			var schemas []Schema
			for i := range 500 {
				schemas = append(schemas, Schema{Subject: fmt.Sprintf("s%d", i), Text: valueText})
			}
			c.Lookup(t.Context(), slices.Values(schemas))
			if n := len(s.seen()); n > 100 {
				t.Errorf("%d requests", n)
			}
			if logs.Len() != 1 {
				t.Fatalf("want one line: %s", logs.lines())
			}
			wantText(t, logs.lines(), "schemas could not be looked up", s.url, fmt.Sprintf("HTTP %d", fault))
		})
	}
}

// TestLookupGoesOn holds that what concerns one schema does not keep the others from being looked up.
func TestLookupGoesOn(t *testing.T) {
	s, fake := fake(t)
	s.answering(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "bad") {
			w.WriteHeader(http.StatusUnprocessableEntity)
			return true
		}
		return false
	})
	c, logs := client(t, auto(s.url))
	if _, _, err := fake.RegisterSchema("good", avroSchema(valueText)); err != nil {
		t.Fatal(err)
	}
	c.Lookup(t.Context(), slices.Values([]Schema{{Subject: "bad", Text: valueText}, {Subject: "good", Text: valueText}}))
	if _, ok := c.ID("good", valueText); !ok || logs.Len() != 0 {
		t.Error(ok, logs.lines())
	}
}

func TestLookupEndsWithItsContext(t *testing.T) {
	s, _ := fake(t)
	s.answering(func(_ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	})
	c, logs := client(t, auto(s.url))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	c.Lookup(ctx, slices.Values([]Schema{valueSchema()}))
	if logs.Len() != 1 {
		t.Errorf("want one line: %s", logs.lines())
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	c.Lookup(stopped, slices.Values([]Schema{valueSchema()}))
	if logs.Len() != 1 {
		t.Errorf("a line about one's own end: %s", logs.lines())
	}
}

// TestConcurrentUse is for the race detector.
func TestConcurrentUse(t *testing.T) {
	s, _ := fake(t)
	cfg := auto(s.url)
	cfg.KeepTexts = true
	c, _ := client(t, cfg)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 20 {
				schema := Schema{Subject: fmt.Sprintf("s%d", (i+j)%10), Text: valueText}
				if err := c.Resolve(t.Context(), schema); err != nil {
					t.Error(err)
				}
				if id, ok := c.ID(schema.Subject, schema.Text); !ok || id != 1 {
					t.Errorf("id %d, %t", id, ok)
				}
				if text, ok := c.Text(1); !ok || text != valueText {
					t.Errorf("text %q, %t", text, ok)
				}
				if j == 10 {
					c.Lookup(t.Context(), slices.Values([]Schema{{Subject: "other", Text: keyText}, schema}))
				}
			}
		})
	}
	all.Wait()
}
