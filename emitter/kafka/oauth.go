package kafka

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	tokenURL      = "sasl.oauthbearer.token.endpoint.url"
	mostToken     = 1 << 20 // bytes of an answer with a token
	unsecured     = "OAuthBearerUnsecuredLoginCallbackHandler"
	loginHandler  = "sasl.login.callback.handler.class"
	clientIDName  = "sasl.oauthbearer.client.credentials.client.id"
	clientKeyName = "sasl.oauthbearer.client.credentials.client.secret"
)

// oauthRule says what becomes of a property that belongs to OAUTHBEARER alone, when that is in use.
func oauthRule(name string) rule {
	switch name {
	case tokenURL, clientIDName, clientKeyName, "sasl.oauthbearer.scope", "sasl.oauthbearer.header.urlencode",
		"sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms":
		return rule{"", honoured, ""}
	case "sasl.oauthbearer.jwt.retriever.class":
		const in = "org.apache.kafka.common.security.oauthbearer."
		return rule{in + "DefaultJwtRetriever|" + in + "ClientCredentialsJwtRetriever|" + in + "FileJwtRetriever", refused, "tokens come from a token endpoint by client credentials or from a file (" + tokenURL + ")"}
	}
	switch {
	case strings.HasPrefix(name, "sasl.oauthbearer.assertion."):
		return rule{"", refused, "logging in with an assertion is not supported: use client credentials or a token file"}
	case strings.HasPrefix(name, "sasl.login.re"):
		return rule{"", noEffect, "a token is fetched when a connection needs one, and kept for four fifths of its life"}
	}
	return rule{"", noEffect, "the broker checks tokens"}
}

// oauth says where tokens come from, and the client's name. Nil after a fault.
func (r *propertyReader) oauth(options map[string]string) (func(context.Context) (string, error), string) {
	text := r.text(tokenURL, "")
	for name := range options {
		if strings.HasPrefix(name, "unsecuredLogin") {
			r.fail("sasl.jaas.config asks for an unsecured token, which anybody can make: %s", insteadOfUnsecured)
			return nil, ""
		}
	}
	if strings.HasSuffix(r.text(loginHandler, ""), unsecured) || text == "" {
		r.fail("%s is missing, and without it Java makes unsecured tokens, which anybody can make: %s", tokenURL, insteadOfUnsecured)
		return nil, ""
	}
	u, err := url.Parse(text)
	if err != nil || u.User != nil || u.Scheme != "file" && (u.Scheme != "https" && u.Scheme != "http" || u.Host == "") || u.Scheme == "file" && (u.Path == "" || u.Host != "") {
		r.fail("%s must be https://… or file:///path, without a user in it", tokenURL)
		return nil, ""
	}
	if u.Scheme == "file" {
		if _, err := readToken(u.Path); err != nil {
			r.fail("%s: %w", tokenURL, err)
			return nil, ""
		}
		return func(context.Context) (string, error) { return readToken(u.Path) }, "(token in " + u.Path + ")"
	}
	if host := net.ParseIP(u.Hostname()); u.Scheme == "http" && u.Hostname() != "localhost" && (host == nil || !host.IsLoopback()) {
		r.warn("%s is http: whoever listens on the network reads the client's secret and the token; use https", tokenURL)
	}
	first := func(names ...string) string {
		for _, name := range names {
			if v := strings.TrimSpace(options[name]); v != "" {
				return v
			}
			if v := r.text(name, ""); v != "" {
				return v
			}
		}
		return ""
	}
	c := clientCredentials{url: text, id: first(clientIDName, "clientId"), secret: first(clientKeyName, "clientSecret"), scope: first("sasl.oauthbearer.scope", "scope")}
	if c.id == "" || c.secret == "" {
		r.fail("sasl.jaas.config needs clientId and clientSecret for %s (or %s and %s beside it)", tokenURL, clientIDName, clientKeyName)
		return nil, ""
	}
	c.encode = strings.EqualFold(r.text("sasl.oauthbearer.header.urlencode", ""), "true")
	c.connect = r.millis("sasl.login.connect.timeout.ms", 10*time.Second, 100*time.Millisecond, 10*time.Minute)
	c.read = r.millis("sasl.login.read.timeout.ms", 10*time.Second, 100*time.Millisecond, 10*time.Minute)
	ssl := &propertyReader{properties: map[string]string{}}
	for name, value := range options {
		if strings.HasPrefix(name, "ssl.") {
			ssl.properties[name] = value
		}
	}
	config := ssl.tls()
	for _, err := range ssl.errs {
		r.fail("sasl.jaas.config: %s", strings.TrimPrefix(err.Error(), propertyIntro))
	}
	for _, text := range ssl.warnings {
		r.warn("sasl.jaas.config: %s", strings.TrimPrefix(text, propertyIntro))
	}
	if len(ssl.errs) > 0 {
		return nil, ""
	}
	tokens := r.tokens
	if tokens == nil {
		tokens = new(tokenCache)
	}
	return func(ctx context.Context) (string, error) { return tokens.get(ctx, c, config) }, c.id
}

const insteadOfUnsecured = "name a token endpoint (" + tokenURL + "=https://…, with clientId and clientSecret in sasl.jaas.config) or a file with a token (" + tokenURL + "=file:///path)"

// readToken reads a token from a file, which somebody else keeps fresh.
func readToken(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostToken+1))
	if err != nil {
		return "", err
	}
	token := string(bytes.TrimSpace(text))
	if !isToken(token) {
		return "", fmt.Errorf("%s holds no token", path)
	}
	return token, nil
}

// isToken says whether a text can stand in a login: what RFC 6750 lets a token have.
func isToken(s string) bool {
	return s != "" && len(s) <= mostToken && strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// clientCredentials is a client of a token endpoint.
type clientCredentials struct {
	url, id, secret, scope string
	encode                 bool // id and secret are written as in a URL
	connect, read          time.Duration
}

// tokenCache keeps the last token for four fifths of its life.
type tokenCache struct {
	mu    sync.Mutex
	of    clientCredentials
	token string
	until time.Time
}

// tokenError says why there is no token for the login at Kafka.
type tokenError struct {
	text      string
	transient bool
	cause     error
}

func (e *tokenError) Error() string { return e.text }
func (e *tokenError) Unwrap() error { return e.cause }

func (t *tokenCache) get(ctx context.Context, c clientCredentials, config *tls.Config) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == c && time.Now().Before(t.until) {
		return t.token, nil
	}
	token, life, err := c.fetch(ctx, config)
	if err != nil {
		return "", err
	}
	t.of, t.token, t.until = c, token, time.Now().Add(life*4/5)
	return token, nil
}

// forget makes the next login fetch a token: the broker has refused the last one.
func (t *tokenCache) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.until = time.Time{}
}

// fetch asks the token endpoint.
func (c *clientCredentials) fetch(ctx context.Context, config *tls.Config) (token string, life time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.connect+c.read)
	defer cancel()
	form := url.Values{"grant_type": {"client_credentials"}}
	if c.scope != "" {
		form.Set("scope", c.scope)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(form.Encode()))
	if err != nil {
		return "", 0, &tokenError{text: tokenURL + " cannot be used"}
	}
	id, secret := c.id, c.secret
	if c.encode {
		id, secret = url.QueryEscape(id), url.QueryEscape(secret)
	}
	req.SetBasicAuth(id, secret)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, DisableKeepAlives: true, ResponseHeaderTimeout: c.read,
		DialContext: (&net.Dialer{Timeout: c.connect}).DialContext, ForceAttemptHTTP2: true,
	}
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return "", 0, &tokenError{text: fmt.Sprintf("the token endpoint %s cannot be reached: %v", c.url, errors.Unwrap(err)), cause: err, transient: !aboutTLS(err)}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, mostToken+1))
	if err != nil {
		return "", 0, &tokenError{text: fmt.Sprintf("the token endpoint %s: %v", c.url, err), cause: err, transient: true}
	}
	var answer struct {
		Token   string      `json:"access_token"`
		Expires json.Number `json:"expires_in"`
		Error   string      `json:"error"`
	}
	parsed := json.Unmarshal(body, &answer)
	if resp.StatusCode != http.StatusOK {
		why := ""
		if parsed == nil && isToken(answer.Error) && len(answer.Error) < 100 && !strings.Contains(answer.Error, c.secret) {
			why = " (" + answer.Error + ")"
		}
		return "", 0, &tokenError{
			text:      fmt.Sprintf("the token endpoint %s answers with HTTP status %d%s; check clientId, clientSecret and scope", c.url, resp.StatusCode, why),
			transient: resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests,
		}
	}
	if len(body) > mostToken || parsed != nil || !isToken(answer.Token) {
		return "", 0, &tokenError{text: fmt.Sprintf("the token endpoint %s answers without an access_token", c.url)}
	}
	if n, err := strconv.ParseFloat(string(answer.Expires), 64); err == nil && n > 0 {
		life = time.Duration(min(n, 24*3600) * float64(time.Second))
	} else {
		life = time.Until(expiry(answer.Token))
	}
	return answer.Token, life, nil
}

// expiry is when a JWT says that it expires; long ago of what says nothing.
func expiry(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	text, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	var claims struct {
		Expires float64 `json:"exp"`
	}
	if err != nil || json.Unmarshal(text, &claims) != nil || claims.Expires <= 0 || claims.Expires > 1<<40 {
		return time.Time{}
	}
	return time.Unix(int64(claims.Expires), 0)
}
