package registry

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	keyText   = `{"type":"record","name":"Key","namespace":"p.d.t","fields":[{"name":"id","type":"int"}],"connect.name":"p.d.t.Key"}`
	valueText = `{"type":"record","name":"Value","namespace":"p.d.t","fields":[{"name":"id","type":"int"},{"name":"b","type":"string"}],"connect.name":"p.d.t.Value"}`
	// plainText has the bytes of valueText, otherText not.
	plainText = `{"type": "record", "name": "Value", "namespace": "p.d.t", "fields": [{"name": "id", "type": "int"}, {"name": "b", "type": "string", "doc": "x"}]}`
	otherText = `{"type":"record","name":"Value","namespace":"p.d.t","fields":[{"name":"b","type":"string"},{"name":"id","type":"int"}]}`
)

func valueSchema() Schema {
	return Schema{Subject: "p.d.t-value", Text: valueText, Record: "p.d.t.Value", Topic: "p.d.t"}
}

// recorded is what a server saw of a request.
type recorded struct {
	method, path, query string
	header              http.Header
	body                string
}

// server is a registry that writes down its requests and may be told to answer otherwise.
type server struct {
	t   *testing.T
	url string

	mu       sync.Mutex
	requests []recorded
	answer   func(w http.ResponseWriter, r *http.Request) bool // true: it has answered
}

func (s *server) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			s.t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		s.mu.Lock()
		s.requests = append(s.requests, recorded{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Clone(), string(body)})
		answer := s.answer
		s.mu.Unlock()
		if answer == nil || !answer(w, r) {
			next.ServeHTTP(w, r)
		}
	})
}

func (s *server) seen() []recorded {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]recorded(nil), s.requests...)
}

func (s *server) answering(f func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

// always answers every request with a status and a body.
func (s *server) always(status int, body string) {
	s.answering(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // the client may be gone
		return true
	})
}

// serve starts a server around a handler.
func serve(t *testing.T, h http.Handler) *server {
	t.Helper()
	s := &server{t: t}
	web := httptest.NewServer(s.handler(h))
	t.Cleanup(web.Close)
	s.url = web.URL
	return s
}

// fake starts a registry in memory.
func fake(t *testing.T) (*server, *srfake.Registry) {
	t.Helper()
	registry := srfake.NewRegistry()
	return serve(t, registry.Handler()), registry
}

// logged is what a client has said.
type logged struct{ *observer.ObservedLogs }

// lines gives the entries as text, one a line.
func (l logged) lines() string {
	var all strings.Builder
	encoder := zapcore.NewJSONEncoder(zapcore.EncoderConfig{MessageKey: "msg", LevelKey: "level", EncodeLevel: zapcore.LowercaseLevelEncoder})
	for _, e := range l.All() {
		line, err := encoder.EncodeEntry(e.Entry, e.Context)
		if err != nil {
			all.WriteString(err.Error())
			continue
		}
		all.Write(line.Bytes())
	}
	return all.String()
}

// client makes a client that waits for milliseconds where it would for seconds.
func client(t *testing.T, cfg Config) (*Client, logged) {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	cfg.Log = zap.New(core)
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.wait, c.maxWait = time.Millisecond, 4*time.Millisecond
	t.Cleanup(c.Close)
	return c, logged{logs}
}

// registering is the configuration of the default converter.
func auto(urls ...string) Config { return Config{URLs: urls, AutoRegister: true} }

func refusal(t *testing.T, err error) *Refused {
	t.Helper()
	r, ok := err.(*Refused) //nolint:errorlint // the caller gets it unwrapped
	if !ok {
		t.Fatalf("got %T %v, want *Refused", err, err)
	}
	return r
}

func wantText(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is not in: %s", p, text)
		}
	}
}

func noText(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if strings.Contains(text, p) {
			t.Errorf("%q is in: %s", p, text)
		}
	}
}

// jsonText quotes a text as JSON.
func jsonText(t *testing.T, s string) string {
	t.Helper()
	quoted, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(quoted)
}

// withUser puts credentials into a URL.
func withUser(t *testing.T, raw, user, password string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(user, password)
	return u.String()
}

// avroSchema is a schema as the fake keeps it.
func avroSchema(text string) sr.Schema { return sr.Schema{Schema: text} }
