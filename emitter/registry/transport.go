package registry

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// Bounds of what is read from the wire. The largest answer is the latest schema of a wide table; Confluent's registry
// keeps schemas in Kafka records of one megabyte at most.
const (
	maxAnswer      = 16 << 20
	maxErrorAnswer = 1 << 20 // the rest of an error is left out
	maxHeaderBytes = 1 << 20
	maxTitle       = 64 << 10 // of a web page, which is read for its title
)

// errTooLarge is the error of reading an answer beyond maxAnswer.
var errTooLarge = errors.New("its answer is larger than 16 MiB")

func newTransport(cfg *Config) *http.Transport {
	secure := cfg.TLS
	if secure == nil {
		secure = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	t := &http.Transport{
		DialContext:            (&net.Dialer{Timeout: cfg.ConnectTimeout}).DialContext,
		TLSClientConfig:        secure.Clone(),
		TLSHandshakeTimeout:    cfg.ConnectTimeout,
		ResponseHeaderTimeout:  cfg.ReadTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		MaxIdleConnsPerHost:    lookups,
		IdleConnTimeout:        idleTimeout,
		DisableCompression:     true,
	}
	if cfg.Proxy != "" {
		t.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: cfg.Proxy})
	}
	return t
}

// bounded limits answers and refuses web pages and redirections: a POST that is redirected becomes a GET on the way, and
// the answer to that is no answer to the question.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	switch {
	case resp.StatusCode >= 400:
		resp.Body = answerBody{io.LimitReader(resp.Body, maxErrorAnswer), resp.Body}
	case resp.StatusCode >= 300:
		to := "somewhere else"
		if u, err := resp.Location(); err == nil {
			to = (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
		}
		return nil, errors.Join(&redirectError{resp.StatusCode, to}, resp.Body.Close())
	case strings.Contains(resp.Header.Get("Content-Type"), "html"):
		page, err := io.ReadAll(io.LimitReader(resp.Body, maxTitle))
		if err != nil && len(page) == 0 {
			return nil, errors.Join(err, resp.Body.Close())
		}
		return nil, errors.Join(&pageError{resp.StatusCode, title(string(page))}, resp.Body.Close())
	default:
		resp.Body = answerBody{&limited{resp.Body, maxAnswer}, resp.Body}
	}
	return resp, nil
}

// pageError is a web page in the place of an answer.
type pageError struct {
	status int
	title  string
}

func (e *pageError) Error() string { return fmt.Sprintf("a web page, %s (HTTP %d)", e.title, e.status) }

type answerBody struct {
	io.Reader
	io.Closer
}

// limited reads like its reader, but more than left bytes are an error.
type limited struct {
	from io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left < 0 {
		return 0, errTooLarge
	}
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.from.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return n, errTooLarge
	}
	return n, err
}

// redirectError is an answer that points elsewhere.
type redirectError struct {
	status int
	to     string
}

func (e *redirectError) Error() string {
	return fmt.Sprintf("it redirects to %s (HTTP %d)", e.to, e.status)
}
