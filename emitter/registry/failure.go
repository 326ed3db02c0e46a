package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"
)

const userAgent = "tidemark"

// maxReason bounds, in bytes, what is shown of a registry's own words.
const maxReason = 2000

// errNoID is an answer that is no error but has no id.
var errNoID = errors.New("its answer has no id")

// answer is a definite answer of a registry that is not the wanted one; without a status it is our own conclusion.
type answer struct {
	status       int
	code         int
	message      string
	incompatible bool
	race         bool // lost against another client that did the same
}

func (a *answer) Error() string { return fmt.Sprintf("HTTP %d: %s", a.status, a.message) }

// heals reports whether the same request may be answered otherwise a while later.
func (a *answer) heals() bool {
	switch a.status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return a.race
}

// Refused is the error for a schema, or a request, that the registry does not take, so that waiting does not help. Its
// text holds no credentials.
type Refused struct {
	Subject string
	Status  int    // of HTTP; 0: not the registry's decision
	Code    int    // error_code of Confluent's API; registries differ in it
	Reason  string // in the registry's words where it gave some, shortened
	URL     string // of the registry, without credentials
	Advice  string // what to do about it; may be empty

	what         string // happened, with the subject in it
	incompatible bool
	general      bool // any other schema would fare the same
}

// Error says what happened, why, and what to do.
func (r *Refused) Error() string {
	var text strings.Builder
	text.WriteString(r.what + ": " + strings.TrimRight(r.Reason, ". "))
	if r.Status != 0 {
		fmt.Fprintf(&text, " (HTTP %d", r.Status)
		if r.Code != 0 && r.Code != r.Status {
			fmt.Fprintf(&text, ", error %d", r.Code)
		}
		text.WriteString(")")
	}
	if r.Advice != "" {
		text.WriteString("; " + r.Advice)
	}
	return text.String()
}

// Incompatible reports whether the registry refused the schema since it does not go with earlier ones of its subject.
func (r *Refused) Incompatible() bool { return r.incompatible }

// unavailable is the error when no instance of the registry gave a definite answer, which waiting may heal.
type unavailable struct{ text string }

func (u *unavailable) Error() string { return u.text }

// settingNames are those by which an operator knows the settings.
type settingNames struct{ url, login, trust, identity, auto, latest string }

func namesOf(api API) settingNames {
	if api == Apicurio {
		return settingNames{
			url:      "apicurio.registry.url",
			login:    "apicurio.auth.username and apicurio.auth.password",
			trust:    "apicurio.registry.request.ssl.truststore.location",
			identity: "apicurio.registry.request.ssl.keystore.location",
			auto:     "apicurio.registry.auto-register",
			latest:   "apicurio.registry.find-latest",
		}
	}
	return settingNames{
		url: "schema.registry.url",
		login: "basic.auth.credentials.source and basic.auth.user.info, user:password@ in schema.registry.url, " +
			"or bearer.auth.credentials.source and bearer.auth.token",
		trust:    "schema.registry.ssl.truststore.location",
		identity: "schema.registry.ssl.keystore.location",
		auto:     "auto.register.schemas",
		latest:   "use.latest.version",
	}
}

// refused makes the error for an answer that waiting does not change.
func (c *Client) refused(asked request, subject, base string, a *answer) *Refused {
	r := &Refused{
		Subject: subject, Status: a.status, Code: a.code, Reason: c.reason(a.message), URL: base,
		what:         fmt.Sprintf("the schema registry at %s refuses the schema of subject %q", base, subject),
		incompatible: a.incompatible,
		general:      a.status == http.StatusUnauthorized || a.status == http.StatusForbidden,
	}
	if asked != registering {
		r.what = fmt.Sprintf("the schema registry at %s refuses to look for the schema of subject %q", base, subject)
	}
	switch {
	case a.status == 0:
		r.what = fmt.Sprintf("the schema of subject %q cannot be used with the schema registry at %s", subject, base)
	case a.status == http.StatusUnauthorized:
		r.what = fmt.Sprintf("the schema registry at %s refuses the credentials", base)
		if !c.authenticates() {
			r.what = fmt.Sprintf("the schema registry at %s wants credentials", base)
		}
		r.Advice = "check " + c.names.login
	case a.status == http.StatusForbidden:
		r.Advice = "give the user the right to it, or use another: " + c.names.login
		if asked == registering {
			r.Advice += fmt.Sprintf("; with %s=false schemas are only looked up", c.names.auto)
		}
	case a.incompatible && c.cfg.API == Apicurio:
		r.Advice = fmt.Sprintf(`give the artifact a rule that allows it (POST %s/groups/%s/artifacts/%s/rules with {"type":"COMPATIBILITY","config":"FORWARD"} or another level; if it has such a rule, PUT to …/rules/COMPATIBILITY) and start again`,
			base, url.PathEscape(c.cfg.Group), url.PathEscape(subject))
	case a.incompatible: // Apicurio takes NONE for a subject as "the global level holds"
		r.Advice = fmt.Sprintf(`allow it with PUT %s/config/%s {"compatibility":"NONE"} (in Apicurio with a level that the change keeps, as NONE there leaves it to the global level) and start again`,
			base, url.PathEscape(subject))
	case a.status == http.StatusNotFound && asked == lookingUp:
		r.what = fmt.Sprintf("the schema registry at %s does not have the schema of subject %q", base, subject)
		r.Advice = fmt.Sprintf("register it before (tidemark schema prints it), or set %s=true", c.names.auto)
	case a.status == http.StatusNotFound && asked == askingLatest:
		r.what = fmt.Sprintf("the schema registry at %s has no schema of subject %q", base, subject)
		r.Advice = fmt.Sprintf("register one before (tidemark schema prints it), or set %s=true", c.names.auto)
	case a.status == http.StatusNotFound && c.cfg.API == Confluent:
		r.Advice = "check the path in schema.registry.url (Apicurio has this API at /apis/ccompat/v7)"
	case a.status == http.StatusNotFound, a.status == http.StatusMethodNotAllowed:
		r.Advice = "check the path in " + c.names.url
	}
	return r
}

func (c *Client) authenticates() bool {
	for _, u := range c.cfg.URLs {
		if u != withoutCredentials(u) {
			return true
		}
	}
	return c.cfg.User != "" || c.cfg.Token != ""
}

// reason makes a registry's words fit for one line of a log.
func (c *Client) reason(words string) string {
	if page := strings.TrimSpace(words); strings.HasPrefix(page, "<") {
		words = "a web page, " + title(page)
	}
	words = c.scrub.text(strings.ToValidUTF8(withoutOldSchema(words), "\uFFFD"))
	words = strings.Join(strings.FieldsFunc(words, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if words == "" {
		return "it gives no reason"
	}
	if len(words) <= maxReason {
		return words
	}
	end := maxReason
	for !utf8.RuneStart(words[end]) {
		end--
	}
	return words[:end] + "…"
}

// title is what a page of a proxy or of another server says of itself.
func title(page string) string {
	_, rest, found := strings.Cut(page, "<title>")
	name, _, closed := strings.Cut(rest, "</title>")
	if !found || !closed || strings.TrimSpace(name) == "" {
		return "without a title"
	}
	return strings.TrimSpace(name)
}

// withoutOldSchema takes the earlier schema out of Confluent's words for an incompatible one: it may be megabytes, and
// what follows it is the level.
func withoutOldSchema(words string) string {
	start := strings.Index(words, "{oldSchema: '")
	if start < 0 {
		return words
	}
	end := strings.LastIndex(words, "'}, {")
	if end < start {
		return words[:start]
	}
	return words[:start] + words[end+len("'}, "):]
}

// judge explains an error of a request that got no definite answer, and says whether waiting can help.
func (c *Client) judge(err error) (why string, heals bool) {
	why, heals = c.explain(err)
	return c.reason(why), heals
}

func (c *Client) explain(err error) (why string, heals bool) {
	if a, ok := errors.AsType[*answer](err); ok {
		return fmt.Sprintf("HTTP %d: %s", a.status, c.reason(a.message)), a.heals()
	}
	if moved, ok := errors.AsType[*redirectError](err); ok {
		return fmt.Sprintf("%v, which is not followed; check %s", moved, c.names.url), false
	}
	if errors.Is(err, errTooLarge) || errors.Is(err, errNoID) || isJSON(err) {
		return fmt.Sprintf("what answers there is not a schema registry (%v); check %s", innermost(err), c.names.url), false
	}
	if why := c.explainTLS(err); why != "" {
		return why, false
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "proxyconnect" {
		return fmt.Sprintf("the proxy %s cannot be reached (%v); check proxy.host and proxy.port", c.cfg.Proxy, op.Err), true
	}
	if lookup, ok := errors.AsType[*net.DNSError](err); ok && lookup.IsNotFound {
		return fmt.Sprintf("the name %s is not known; check %s", lookup.Name, c.names.url), true
	}
	timeout, ok := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("it refuses the connection; does the registry run there? (%v)", innermost(err)), true
	case ok && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Sprintf("it does not answer in time; is a firewall in between? (%v)", innermost(err)), true
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return fmt.Sprintf("it closed the connection before its answer was complete (%v)", innermost(err)), true
	}
	return innermost(err).Error(), true
}

func (c *Client) explainTLS(err error) string {
	if errors.Is(err, http.ErrSchemeMismatch) {
		return fmt.Sprintf("it does not answer in TLS; write http:// in %s, or another port", c.names.url)
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return fmt.Sprintf("it does not answer in TLS; write http:// in %s, or another port", c.names.url)
	}
	if host, ok := errors.AsType[x509.HostnameError](err); ok {
		return fmt.Sprintf("its certificate is not for this name (%v)", host)
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return fmt.Sprintf("its certificate is signed by an authority that is not trusted; name it in %s (PEM)", c.names.trust)
	}
	// The error of an alert has no exported type.
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" {
		return fmt.Sprintf("it ended the TLS handshake (%v); does it ask for a client certificate (%s)?", op.Err, c.names.identity)
	}
	if bad, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Sprintf("its certificate is not good (%v)", bad.Err)
	}
	return ""
}

func isJSON(err error) bool {
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return true
	}
	_, ok := errors.AsType[*json.UnmarshalTypeError](err)
	return ok
}

// innermost is the error below the layers that only repeat the URL.
func innermost(err error) error {
	if web, ok := errors.AsType[*url.Error](err); ok {
		return web.Err
	}
	for _, end := range []error{errTooLarge, errNoID} {
		if errors.Is(err, end) {
			return end
		}
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return syntax
	}
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return kind
	}
	return err
}
