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
	tooLarge     bool // the schema is
	race         bool // lost against another client that did the same
	foreign      bool // it is not said in the form of the API, so that a schema registry may not have said it
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

func namesOf(cfg *Config) settingNames {
	names := namesBy(cfg.API == Apicurio || cfg.ApicurioKeys)
	if cfg.URLsFrom != "" {
		names.login = strings.ReplaceAll(names.login, names.url, cfg.URLsFrom)
		names.url = cfg.URLsFrom
	}
	return names
}

func namesBy(apicurio bool) settingNames {
	if apicurio {
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
func (c *Client) refused(asked request, s Schema, base string, a *answer) *Refused {
	subject := s.Subject
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
	case wantsTLS(a):
		r.what = fmt.Sprintf("the schema registry at %s is asked without TLS and wants it", base)
		r.Advice, r.general = fmt.Sprintf("write https:// instead of http:// in %s", c.names.url), true
	case a.tooLarge, a.status == http.StatusRequestEntityTooLarge:
		r.Advice = c.smaller(s)
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
	case a.status == http.StatusNotFound && asked != registering && (a.foreign || c.cfg.API == Confluent && a.code == http.StatusNotFound):
		r.what = fmt.Sprintf("what answers at %s does not have the paths of a schema registry", base)
		r.Advice, r.general = c.path(), true
	case a.status == http.StatusNotFound && asked == lookingUp:
		r.what = fmt.Sprintf("the schema registry at %s does not have the schema of subject %q", base, subject)
		r.Advice = fmt.Sprintf("register it before (tidemark schema prints it), or set %s=true", c.names.auto)
	case a.status == http.StatusNotFound && asked == askingLatest:
		r.what = fmt.Sprintf("the schema registry at %s has no schema of subject %q", base, subject)
		r.Advice = fmt.Sprintf("register one before (tidemark schema prints it), or set %s=true", c.names.auto)
	case a.status == http.StatusNotFound, a.status == http.StatusMethodNotAllowed, a.status == http.StatusNotImplemented:
		r.Advice = c.path()
	case a.status == http.StatusUnprocessableEntity:
		r.Advice = c.unprocessable(a, base, subject)
	case a.status == http.StatusProxyAuthRequired:
		r.Advice, r.general = "the proxy wants a login, which the converter has no settings for: name one without, or none (proxy.host)", true
	case a.status == http.StatusConflict && a.limit():
		r.Advice = "raise the limit (registry.limits.config.… of Apicurio Registry), or delete what is not needed there"
	case a.status == http.StatusConflict: // of Apicurio's rules, that for validity
		r.Advice = "the registry's own rules do not let it pass: change them, or what in the table they object to"
	default:
		r.Advice = fmt.Sprintf("the request is one that schema registries take: check that %s is the URL of one and not of another server, and that a proxy before it lets requests pass as they are", c.names.url)
	}
	return r
}

// path is the advice for what does not know the paths of the API.
func (c *Client) path() string {
	if c.cfg.API == Confluent {
		return fmt.Sprintf("check the path in %s (Apicurio has this API at /apis/ccompat/v7)", c.names.url)
	}
	return "check the path in " + c.names.url
}

// unprocessable is the advice for 422, whose reasons only the code of Confluent's API tells apart.
func (c *Client) unprocessable(a *answer, base, subject string) string {
	const readOnly = 42205
	if a.code == readOnly && c.cfg.API == Confluent {
		return fmt.Sprintf(`let it be written to with PUT %s/mode/%s {"mode":"READWRITE"} (or /mode, if that is where it is set)`, base, url.PathEscape(subject))
	}
	return "see the schema with tidemark schema; if the registry does not take a name (letters that are not ASCII, for instance), set schema.name.adjustment.mode, for a column field.name.adjustment.mode, to avro"
}

// smaller is the advice for a schema that is too large.
func (c *Client) smaller(s Schema) string {
	return fmt.Sprintf("the schema has %d bytes; raise the limit (a proxy's: client_max_body_size of nginx; Confluent's: max.message.bytes of the topic _schemas; "+
		"Apicurio's: registry.limits.config.max-schema-size-bytes), or make the schema smaller: without include.schema.comments, or with fewer columns (column.exclude.list)", len(s.Text))
}

// wantsTLS recognizes what servers answer at a port for TLS to a request that comes without.
func wantsTLS(a *answer) bool {
	if a.status != http.StatusBadRequest {
		return false
	}
	for _, words := range []string{
		"HTTP request to an HTTPS server",            // Go
		"HTTP request was sent to HTTPS port",        // nginx
		"speaking plain HTTP to an SSL-enabled",      // Apache
		"combination of host and port requires TLS.", // Tomcat
	} {
		if strings.Contains(a.message, words) {
			return true
		}
	}
	return false
}

// limit recognizes a LimitExceededException of Apicurio, which shares the status of what is incompatible.
func (a *answer) limit() bool {
	return a.status == http.StatusConflict && strings.HasPrefix(a.message, "Maximum ") && strings.Contains(a.message, " exceeded")
}

// isTooLarge recognizes a schema that is beyond what the registry takes.
func (a *answer) isTooLarge() bool {
	const tooLarge = 42209 // of Confluent's API
	return a.status == http.StatusUnprocessableEntity && a.code == tooLarge || a.limit() && strings.HasPrefix(a.message, "Maximum size ")
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

// judge explains an error of a request to base that got no definite answer, and says whether waiting can help.
func (c *Client) judge(err error, base string) (why string, heals bool) {
	why, heals = c.explain(err, base)
	return c.reason(why), heals
}

func (c *Client) explain(err error, base string) (why string, heals bool) {
	if a, ok := errors.AsType[*answer](err); ok {
		return fmt.Sprintf("HTTP %d: %s", a.status, c.reason(a.message)), a.heals()
	}
	if moved, ok := errors.AsType[*redirectError](err); ok {
		return fmt.Sprintf("%v, which is not followed; check %s", moved, c.names.url), false
	}
	if page, ok := errors.AsType[*pageError](err); ok {
		return fmt.Sprintf("what answers there is not a schema registry but a web page, %s (HTTP %d); check %s, its port and its path", page.title, page.status, c.names.url), false
	}
	if malformed := strings.Contains(err.Error(), "malformed HTTP response"); malformed {
		if strings.Contains(err.Error(), `malformed HTTP response "\x15\x03`) { // an alert of TLS
			return fmt.Sprintf("it answers in TLS; write https:// instead of http:// in %s", c.names.url), false
		}
		return fmt.Sprintf("what answers there does not speak HTTP (%v); check %s, its port above all", innermost(err), c.names.url), false
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
	case (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)) && strings.HasPrefix(base, "http://"):
		return fmt.Sprintf("it closed the connection before its answer was complete (%v); if that is a port for TLS, write https:// in %s", innermost(err), c.names.url), true
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
