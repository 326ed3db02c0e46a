package registry

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/sr/srfake"
)

// flood answers with so many bytes, far more than a client may keep.
func flood(status int, bytes int64, sent *atomic.Int64) func(w http.ResponseWriter, r *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"message":"`)
		chunk := []byte(strings.Repeat("x", 64<<10))
		for n := int64(0); n < bytes; n += int64(len(chunk)) {
			if _, err := w.Write(chunk); err != nil {
				break
			}
			sent.Add(int64(len(chunk)))
		}
		return true
	}
}

func TestHugeAnswers(t *testing.T) {
	for _, what := range []struct {
		status int
		want   string
	}{
		{200, "larger than 16 MiB"},
		{422, "HTTP 422"},
	} {
		for _, api := range []API{Confluent, Apicurio} {
			t.Run(fmt.Sprint(what.status, api), func(t *testing.T) {
				s, _ := fake(t)
				var sent atomic.Int64
				s.answering(flood(what.status, 4<<30, &sent))
				cfg := auto(s.url)
				cfg.API = api
				c, _ := client(t, cfg)
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				err := c.Resolve(t.Context(), valueSchema())
				runtime.ReadMemStats(&after)
				refusal(t, err)
				wantText(t, err.Error(), what.want)
				if len(err.Error()) > 2*maxReason {
					t.Errorf("an error of %d bytes", len(err.Error()))
				}
				// io.ReadAll grows by a quarter at a time, so that all its buffers together are several times the last.
				if got := after.TotalAlloc - before.TotalAlloc; got > 16*maxAnswer {
					t.Errorf("%d MiB were allocated", got>>20)
				}
			})
		}
	}
}

func TestLargestAnswer(t *testing.T) {
	for _, more := range []int{0, 1} {
		s, _ := fake(t)
		const head, tail = `{"id":7,"x":"`, `"}`
		text := head + strings.Repeat("y", maxAnswer-len(head)-len(tail)+more) + tail
		s.always(200, text)
		c, _ := client(t, auto(s.url))
		err := c.Resolve(t.Context(), valueSchema())
		if (err == nil) != (more == 0) {
			t.Errorf("%d bytes: %v", len(text), err)
		}
	}
}

func TestHugeHeader(t *testing.T) {
	s, _ := fake(t)
	s.answering(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("X-Long", strings.Repeat("x", 2*maxHeaderBytes))
		return true
	})
	c, _ := client(t, auto(s.url))
	_, _, err := c.Latest(t.Context(), "s")
	if err == nil {
		t.Fatal("no error")
	}
	wantText(t, err.Error(), "header")
}

// TestWebPages holds that a page with status 200, of a login or another server, is called one.
func TestWebPages(t *testing.T) {
	for page, title := range map[string]string{
		"<!DOCTYPE html><html><head><title>Sign in\n please</title></head>": "Sign in please",
		"<html></html>": "without a title",
		"<html>" + strings.Repeat("x", 2*maxTitle) + "<title>Late</title>": "without a title",
	} {
		for _, api := range []API{Confluent, Apicurio} {
			s, _ := fake(t)
			s.answering(func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Content-Type", "text/html; charset=utf-8")
				_, _ = io.WriteString(w, page) // the client may be gone
				return true
			})
			cfg := auto(s.url)
			cfg.API = api
			c, _ := client(t, cfg)
			err := c.Resolve(t.Context(), valueSchema())
			refusal(t, err)
			wantText(t, err.Error(), "not a schema registry but a web page, "+title+" (HTTP 200)", c.urls[0], c.names.url, "path")
		}
	}
}

// answersWith starts a server that answers each connection with some bytes, whatever it is asked.
func answersWith(t *testing.T, text string) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1024))
			_, _ = io.WriteString(conn, text)
			_ = conn.Close()
		}
	}()
	return "http://" + l.Addr().String()
}

// TestOtherPorts holds that a port where something else listens is called so, and that only silence is waited for.
func TestOtherPorts(t *testing.T) {
	for text, want := range map[string]string{
		"\x15\x03\x03\x00\x02\x02\x50": "it answers in TLS; write https:// instead of http:// in schema.registry.url",
		"J\x00\x00\x00\x0a9.7.0\x00":   "what answers there does not speak HTTP",
		"":                             "if that is a port for TLS, write https:// in schema.registry.url",
	} {
		url := answersWith(t, text)
		c, _ := client(t, auto(url))
		_, _, err := c.Latest(t.Context(), "s")
		if _, definite := errors.AsType[*Refused](err); err == nil || definite != (text != "") {
			t.Errorf("%q: %v", text, err)
			continue
		}
		wantText(t, err.Error(), want, url)
	}
}

func TestNotRegistry(t *testing.T) {
	for body, want := range map[string]string{
		`<html>hello</html>`: "not a schema registry",
		`[1,2]`:              "not a schema registry",
		`{}`:                 "its answer has no id",
		`{"id":0}`:           "its answer has no id",
		`{"id":-3}`:          "its answer has no id",
		``:                   "not a schema registry",
		`{"id":7}`:           "",
	} {
		s, _ := fake(t)
		s.always(200, body)
		c, logs := client(t, auto(s.url))
		err := c.Resolve(t.Context(), valueSchema())
		if want == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		if r := refusal(t, err); r.Status != 0 {
			t.Errorf("%+v", r)
		}
		wantText(t, err.Error(), want, "schema.registry.url", s.url)
		if logs.Len() != 0 || len(s.seen()) != 1 {
			t.Error(len(s.seen()), logs.lines())
		}
		// Another instance may be right.
		good, _ := fake(t)
		c, _ = client(t, auto(s.url, good.url))
		if err := c.Resolve(t.Context(), valueSchema()); err != nil {
			t.Error(err)
		}
	}
}

func TestRedirection(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308, 304} {
		target, _ := fake(t)
		s, _ := fake(t)
		s.answering(func(w http.ResponseWriter, r *http.Request) bool {
			if status != 304 {
				w.Header().Set("Location", withUser(t, target.url, "u", "hidden")+r.URL.Path+"?token=hidden")
			}
			w.WriteHeader(status)
			return true
		})
		cfg := auto(s.url)
		cfg.Token = "secret-token"
		c, _ := client(t, cfg)
		err := c.Resolve(t.Context(), valueSchema())
		refusal(t, err)
		noText(t, err.Error(), "hidden")
		wantText(t, err.Error(), "redirects to", fmt.Sprintf("HTTP %d", status), "schema.registry.url")
		if status != 304 {
			wantText(t, err.Error(), target.url)
		}
		if n := len(target.seen()); n != 0 {
			t.Errorf("%d: the target got %d requests", status, n)
		}
	}
}

func TestTimeouts(t *testing.T) {
	for name, hang := range map[string]func(w http.ResponseWriter){
		"no answer": func(http.ResponseWriter) {},
		"half an answer": func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `{"id":`)
			w.(http.Flusher).Flush()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := fake(t)
			s.answering(func(w http.ResponseWriter, r *http.Request) bool {
				hang(w)
				<-r.Context().Done()
				return true
			})
			cfg := auto(s.url)
			cfg.ConnectTimeout, cfg.ReadTimeout = 50*time.Millisecond, 50*time.Millisecond
			c, _ := client(t, cfg)
			start := time.Now()
			_, _, err := c.Latest(t.Context(), "s")
			if err == nil || time.Since(start) > 5*time.Second {
				t.Fatal(err, time.Since(start))
			}
			wantText(t, err.Error(), "does not answer in time")
		})
	}
}

func TestExplained(t *testing.T) {
	plain, _ := fake(t)
	for url, want := range map[string]string{
		"http://127.0.0.1:1":                                 "refuses the connection",
		"http://no-such-host.invalid:8081/x":                 "the name no-such-host.invalid is not known; check schema.registry.url",
		strings.Replace(plain.url, "http://", "https://", 1): "does not answer in TLS; write http://",
	} {
		c, _ := client(t, auto(url))
		_, _, err := c.Latest(t.Context(), "s")
		if err == nil {
			t.Fatal(url, "no error")
		}
		wantText(t, err.Error(), url+": ", want)
	}
}

func TestCredentials(t *testing.T) {
	basic := func(user, password string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	}
	for _, what := range []struct {
		name string
		cfg  func(cfg *Config)
		want string
	}{
		{"none", func(*Config) {}, ""},
		{"user", func(c *Config) { c.User, c.Password = "ann", "pä:ss/wörd" }, basic("ann", "pä:ss/wörd")},
		{"no password", func(c *Config) { c.User = "ann" }, basic("ann", "")},
		{"token", func(c *Config) { c.Token = "t0k3n" }, "Bearer t0k3n"},
		{"URL", func(c *Config) { c.URLs[0] = withUser(t, c.URLs[0], "bob", "p@ss:w/ord%") }, basic("bob", "p@ss:w/ord%")},
		{"URL and user", func(c *Config) {
			c.URLs[0] = withUser(t, c.URLs[0], "bob", "b")
			c.User, c.Password = "ann", "a"
		}, basic("ann", "a")},
		{"URL and token", func(c *Config) { c.URLs[0], c.Token = withUser(t, c.URLs[0], "bob", "b"), "tok" }, "Bearer tok"},
	} {
		for _, api := range []API{Confluent, Apicurio} {
			t.Run(fmt.Sprint(what.name, api), func(t *testing.T) {
				s, _ := fake(t)
				s.always(409, `{}`)
				cfg := auto(s.url)
				cfg.API = api
				what.cfg(&cfg)
				c, _ := client(t, cfg)
				c.Lookup(t.Context(), slices.Values([]Schema{valueSchema()}))
				refusal(t, c.Resolve(t.Context(), valueSchema()))
				if _, _, err := c.Latest(t.Context(), "s"); err == nil {
					t.Error("no error")
				}
				requests := s.seen()
				if len(requests) < 3 {
					t.Fatalf("%d requests", len(requests))
				}
				for _, r := range requests {
					if got := r.header.Get("Authorization"); got != what.want {
						t.Errorf("%s %s: %q, want %q", r.method, r.path, got, what.want)
					}
				}
			})
		}
	}
}

// TestCredentialsStayHidden holds that no error and no line of the log has a secret in it, whatever a server answers.
func TestCredentialsStayHidden(t *testing.T) {
	const password, token = "h1dd w/ö:rd%", "tok3n-tok3n"
	echo := func(status int) func(w http.ResponseWriter, r *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, "bad request: %v %s %s", r.Header, password, token)
			return true
		}
	}
	for _, status := range []int{400, 401, 403, 404, 409, 422, 500, 503} {
		for _, api := range []API{Confluent, Apicurio} {
			for _, how := range []string{"user", "token", "url"} {
				s, _ := fake(t)
				s.answering(echo(status))
				cfg := auto(s.url, "http://127.0.0.1:1")
				cfg.API = api
				secrets := []string{password, "h1dd", base64.StdEncoding.EncodeToString([]byte("ann:" + password))}
				switch how {
				case "user":
					cfg.User, cfg.Password = "ann", password
				case "token":
					cfg.Token, secrets = token, []string{token}
				case "url":
					cfg.URLs[0] = withUser(t, s.url, "ann", password)
					cfg.URLs[1] = "http://ann:" + "h1dd%20w%2F%C3%B6:rd%25" + "@127.0.0.1:1"
				}
				c, logs := client(t, cfg)
				ctx, cancel := context.WithCancel(t.Context())
				go func() { // an outage is waited for: until it has been said
					for ctx.Err() == nil && !strings.Contains(fmt.Sprint(logs.lines()), s.url) {
						time.Sleep(time.Millisecond)
					}
					cancel()
				}()
				err := c.Resolve(ctx, valueSchema())
				if err == nil {
					t.Fatal("no error")
				}
				short, done := context.WithTimeout(t.Context(), 30*time.Millisecond)
				_, _, second := c.Latest(short, "s")
				c.Lookup(t.Context(), slices.Values([]Schema{{Subject: "x", Text: keyText}}))
				done()
				cancel()
				text := fmt.Sprintf("%v %+v %v %s", err, err, second, logs.lines())
				noText(t, text, secrets...)
				wantText(t, text, s.url)
			}
		}
	}
}

// authority makes certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, pool: x509.NewCertPool()}
	a.cert, a.key = a.sign(&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	a.pool.AddCert(a.cert)
	return a
}

func (a *authority) sign(template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber, template.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: "registry test"}
	template.NotBefore = time.Now().Add(-time.Hour)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

func (a *authority) pair(template *x509.Certificate) tls.Certificate {
	a.t.Helper()
	cert, key := a.sign(template)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

func TestTLS(t *testing.T) {
	ca := newAuthority(t)
	localhost := &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	start := func(t *testing.T, cfg *tls.Config) string {
		web := httptest.NewUnstartedServer(srfake.NewRegistry().Handler())
		web.TLS = cfg
		web.Config.ErrorLog = log.New(io.Discard, "", 0)
		web.StartTLS()
		t.Cleanup(web.Close)
		return web.URL
	}
	good := start(t, &tls.Config{Certificates: []tls.Certificate{ca.pair(localhost)}})
	elsewhere := start(t, &tls.Config{Certificates: []tls.Certificate{ca.pair(&x509.Certificate{DNSNames: []string{"registry.example"}})}})
	old := start(t, &tls.Config{Certificates: []tls.Certificate{ca.pair(&x509.Certificate{IPAddresses: localhost.IPAddresses, NotAfter: time.Now().Add(-time.Minute)})}})
	mutual := start(t, &tls.Config{Certificates: []tls.Certificate{ca.pair(localhost)}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.pool})
	for _, what := range []struct {
		name, url string
		tls       *tls.Config
		want      string // in the error; empty: none
	}{
		{"trusted", good, &tls.Config{RootCAs: ca.pool}, ""},
		{"not trusted", good, nil, "authority that is not trusted; name it in schema.registry.ssl.truststore.location"},
		{"other name", elsewhere, &tls.Config{RootCAs: ca.pool}, "not for this name"},
		{"expired", old, &tls.Config{RootCAs: ca.pool}, "expired"},
		{"certificate wanted", mutual, &tls.Config{RootCAs: ca.pool}, "schema.registry.ssl.keystore.location"},
		{"certificate given", mutual, &tls.Config{RootCAs: ca.pool, Certificates: []tls.Certificate{ca.pair(&x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})}}, ""},
		{"http to https", strings.Replace(good, "https://", "http://", 1), nil, "asked without TLS and wants it"},
		{"http to https, what helps", strings.Replace(good, "https://", "http://", 1), nil, "write https:// instead of http:// in schema.registry.url"},
	} {
		t.Run(what.name, func(t *testing.T) {
			cfg := auto(what.url)
			cfg.TLS = what.tls
			c, logs := client(t, cfg)
			err := c.Resolve(t.Context(), valueSchema())
			if what.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			refusal(t, err)
			wantText(t, err.Error(), what.want, what.url)
			if logs.Len() != 0 {
				t.Error(logs.lines())
			}
		})
	}
}

// proxy passes requests on as an HTTP proxy does, and counts them.
func proxy(t *testing.T) (address string, passed *atomic.Int32) {
	passed = new(atomic.Int32)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		passed.Add(1)
		if r.Method != http.MethodConnect {
			r.RequestURI = ""
			resp, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = resp.Body.Close() }() // read to its end
			w.WriteHeader(resp.StatusCode)
			_, _ = io.Copy(w, resp.Body) // the client may be gone
			return
		}
		to, err := net.Dial("tcp", r.Host)
		if err != nil {
			t.Error(err)
			return
		}
		from, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n")
		go func() {
			_, _ = io.Copy(to, from) // ends with either side
			_ = to.Close()
		}()
		_, _ = io.Copy(from, to)
		_ = from.Close()
	}))
	t.Cleanup(web.Close)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	return strings.TrimPrefix(web.URL, "http://"), passed
}

func TestProxy(t *testing.T) {
	address, passed := proxy(t)
	s, _ := fake(t)
	cfg := auto(s.url)
	cfg.Proxy = address
	c, _ := client(t, cfg)
	if err := c.Resolve(t.Context(), valueSchema()); err != nil {
		t.Fatal(err)
	}
	if passed.Load() != 1 || len(s.seen()) != 1 {
		t.Errorf("%d requests through the proxy, %d at the registry", passed.Load(), len(s.seen()))
	}

	secure := httptest.NewTLSServer(srfake.NewRegistry().Handler())
	t.Cleanup(secure.Close)
	pool := x509.NewCertPool()
	pool.AddCert(secure.Certificate())
	cfg = auto(secure.URL)
	cfg.Proxy, cfg.TLS = address, &tls.Config{RootCAs: pool}
	c, _ = client(t, cfg)
	if err := c.Resolve(t.Context(), valueSchema()); err != nil {
		t.Fatal(err)
	}
	if passed.Load() != 2 {
		t.Errorf("%d requests through the proxy", passed.Load())
	}

	cfg = auto(secure.URL)
	cfg.Proxy = "127.0.0.1:1"
	c, _ = client(t, cfg)
	_, _, err := c.Latest(t.Context(), "s")
	if err == nil {
		t.Fatal("no error")
	}
	wantText(t, err.Error(), "the proxy 127.0.0.1:1 cannot be reached", "proxy.host")
}

// TestNoProxyOfTheEnvironment holds that HTTP_PROXY has no effect, as with Java.
func TestNoProxyOfTheEnvironment(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	if tr := newTransport(&Config{}); tr.Proxy != nil {
		t.Error("there is a proxy")
	}
}
