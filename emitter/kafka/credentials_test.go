package kafka

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// TestTokensAreOfTheirClient: a token serves its own client alone, for four fifths of its life and until a broker refuses it. The
// client's name and secret are written as in a URL when that is asked for.
func TestTokensAreOfTheirClient(t *testing.T) {
	var said []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, secret, _ := r.BasicAuth()
		said = append(said, id+" "+secret)
		fmt.Fprintf(w, `{"access_token":"T%d","expires_in":3600}`, len(said))
	}))
	defer server.Close()
	one := clientCredentials{url: server.URL, id: "a+b", secret: "x/y", connect: time.Minute, read: time.Minute}
	other, encoded := one, one
	other.secret, encoded.encode = "z", true
	cache := new(tokenCache)
	get := func(c clientCredentials, want string) {
		t.Helper()
		if token, err := cache.get(t.Context(), c, nil); err != nil || token != want {
			t.Errorf("%s, %v, want %s", token, err, want)
		}
	}
	get(one, "T1")
	get(one, "T1")
	if left := time.Until(cache.until); left > 48*time.Minute || left < 47*time.Minute {
		t.Errorf("of an hour's token %v are used", left)
	}
	get(other, "T2")
	get(encoded, "T3")
	r := &renewal{tokens: cache}
	r.saw(nil)
	get(encoded, "T3")
	r.saw(kerr.SaslAuthenticationFailed)
	get(encoded, "T4")
	if got := strings.Join(said, ", "); got != "a+b x/y, a+b z, a%2Bb x%2Fy, a%2Bb x%2Fy" {
		t.Error(got)
	}
}

// TestAWSCredentialsAreNotKeptTooLong, nor for another profile, and what asks for them does not follow to another place.
func TestAWSCredentialsAreNotKeptTooLong(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	life, asked := time.Hour, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
			return
		}
		asked++
		fmt.Fprintf(w, `{"AccessKeyId":"K%d","SecretAccessKey":"s","Token":"t","Expiration":%q}`, asked, time.Now().Add(life).UTC().Format(time.RFC3339))
	}))
	defer server.Close()
	env := map[string]string{
		"AWS_CONTAINER_CREDENTIALS_FULL_URI": server.URL, "AWS_CONTAINER_AUTHORIZATION_TOKEN": secretCanary,
		"AWS_SHARED_CREDENTIALS_FILE": write(t, "credentials", []byte("[prod]\naws_access_key_id=PROD\naws_secret_access_key=s\n")),
	}
	c := &awsChain{env: func(name string) string { return env[name] }}
	get := func(profile, want string) {
		t.Helper()
		if got, err := c.get(t.Context(), profile); err != nil || got.key != want {
			t.Errorf("%s, %v, want %s", got.key, err, want)
		}
	}
	get("", "K1")
	get("", "K1")
	get("prod", "PROD")
	life = 4 * time.Minute // they expire before a login is over, perhaps
	get("", "K2")
	get("", "K3")
	env["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = server.URL + "/moved"
	if _, err := c.get(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "HTTP status 307") || elsewhere.Load() != 0 {
		t.Errorf("%v; %d requests elsewhere", err, elsewhere.Load())
	}
}

// endless is an answer without an end.
type endless struct{ read atomic.Int64 }

func (e *endless) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	for part := strings.Repeat("x", 1<<16); e.read.Load() < 64<<20; e.read.Add(int64(len(part))) {
		if _, err := io.WriteString(w, part); err != nil {
			return
		}
	}
}

// TestEndlessAnswersAreNotRead to the end.
func TestEndlessAnswersAreNotRead(t *testing.T) {
	for name, ask := range map[string]func(context.Context, string) error{
		"a token": func(ctx context.Context, url string) error {
			c := &clientCredentials{url: url, id: "a", secret: "b", connect: time.Minute, read: time.Minute}
			_, _, err := c.fetch(ctx, nil)
			return err
		},
		"credentials": func(ctx context.Context, url string) error {
			c := &awsChain{env: func(name string) string { return map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": url}[name] }}
			_, err := c.get(ctx, "")
			return err
		},
	} {
		answer := new(endless)
		server := httptest.NewServer(answer)
		if err := ask(t.Context(), server.URL); err == nil || !strings.Contains(err.Error(), "without") {
			t.Errorf("%s: %v", name, err)
		}
		server.Close()
		if n := answer.read.Load(); n > 32<<20 {
			t.Errorf("%s: %d bytes were taken", name, n)
		}
	}
}

// TestSecurityIsNotTakenAway by what is read again: a connection is never less safe than the first one was.
func TestSecurityIsNotTakenAway(t *testing.T) {
	const jaas = `x.PlainLoginModule required username="u" password="p";`
	begun := saslProperties("PLAIN", jaas)
	for name, now := range map[string]map[string]string{
		"without TLS":     saslProperties("PLAIN", jaas, "security.protocol", "SASL_PLAINTEXT"),
		"without a login": saslProperties("PLAIN", jaas, "security.protocol", "SSL"),
		"without both":    saslProperties("PLAIN", jaas, "security.protocol", "PLAINTEXT"),
		"another login":   saslProperties("SCRAM-SHA-512", strings.Replace(jaas, "Plain", "Scram", 1)),
	} {
		s, _, err := readProperties(begun)
		if err != nil {
			t.Fatal(err)
		}
		core, seen := observer.New(zapcore.WarnLevel)
		r := newRenewal(ClientConfig{Properties: begun, Reread: func() (map[string]string, error) { return now, nil }}, &s, zap.New(core))
		_ = r.now()
		if got := r.now(); got.tls == nil || got.sasl == nil || got.sasl.Name() != "PLAIN" {
			t.Errorf("%s: %+v", name, got)
		}
		if n := seen.FilterMessageSnippet("cannot be read again").Len(); n != 1 {
			t.Errorf("%s: said %d times", name, n)
		}
	}
}
