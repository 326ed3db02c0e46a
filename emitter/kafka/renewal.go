package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/sasl"
	"go.uber.org/zap"
)

// renewal makes a client's security anew for each connection, so that files of certificates, tokens and passwords that have been
// replaced count from then on. What cannot be read is left as it was, which is said once. It is safe for concurrent use.
type renewal struct {
	reread func() (map[string]string, error) // the properties
	log    *zap.Logger
	tokens *tokenCache
	aws    *awsChain
	mustBe bool // passwords may change: reread is the configuration's

	mu        sync.Mutex
	last      security
	said      string
	connected bool // to a broker, once at least
}

func newRenewal(cfg ClientConfig, s *settings, log *zap.Logger) *renewal {
	r := &renewal{reread: cfg.Reread, log: log, tokens: s.security.tokens, aws: s.security.aws, last: s.security, mustBe: cfg.Reread != nil}
	if r.reread == nil {
		r.reread = func() (map[string]string, error) { return cfg.Properties, nil }
	}
	return r
}

// now is the security of a new connection.
func (r *renewal) now() security {
	r.mu.Lock()
	defer r.mu.Unlock()
	properties, err := r.reread()
	var s security
	if err == nil {
		reader := &propertyReader{properties: properties, tokens: r.tokens, aws: r.aws}
		s, _ = reader.security()
		err = errors.Join(reader.errs...)
	}
	if err == nil && (s.tls != nil) == (r.last.tls != nil) && s.mechanism() == r.last.mechanism() {
		r.last, r.said = s, ""
		return s
	}
	if err == nil {
		err = errors.New("security.protocol or sasl.mechanism is another one, which takes a restart")
	}
	if r.said != err.Error() {
		r.said = err.Error()
		r.log.Warn("what secures the connection to Kafka cannot be read again; as it was last read, it stays in use", zap.Error(err))
	}
	return r.last
}

func (r *renewal) tls() *tls.Config { return r.now().tls }

// mechanism is the login, or nil.
func (r *renewal) mechanism() sasl.Mechanism {
	if r.last.sasl == nil {
		return nil
	}
	return renewed{r, r.last.mechanism()}
}

// renewed is a mechanism whose secrets are read at each login.
type renewed struct {
	r    *renewal
	name string
}

func (m renewed) Name() string { return m.name }

func (m renewed) Authenticate(ctx context.Context, host string) (sasl.Session, []byte, error) {
	return m.r.now().sasl.Authenticate(ctx, host)
}

// saw is told of each attempt to connect.
func (r *renewal) saw(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.connected = r.connected || err == nil
	if errors.Is(err, kerr.SaslAuthenticationFailed) && r.tokens != nil {
		r.tokens.forget()
	}
}

// Refused reports whether one side refused the other's certificate, or a broker the login: what is over once a certificate, password
// or token that is being replaced is there on both sides.
func Refused(err error) (certificate, login bool) {
	token, isToken := errors.AsType[*tokenError](err)
	return aboutTLS(err), errors.Is(err, kerr.SaslAuthenticationFailed) || isToken && !token.transient
}

// transient is [Transient], and takes for transient, once a broker has been reached, what is over as soon as a certificate or a
// password that is being replaced is there on both sides.
func (r *renewal) transient(err error) bool {
	if Transient(err) {
		return true
	}
	certificate, login := Refused(err)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.connected && (certificate || login && r.mustBe)
}
