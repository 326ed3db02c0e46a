package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/sasl"
)

// security is how connections are made safe; nil parts are not in use.
type security struct {
	tls  *tls.Config
	sasl sasl.Mechanism

	tokens *tokenCache // of OAUTHBEARER
	aws    *awsChain   // of AWS_MSK_IAM
}

// mechanism is the name of the login; "": there is none.
func (s *security) mechanism() string {
	if s.sasl == nil {
		return ""
	}
	return s.sasl.Name()
}

// security reads security.protocol and what belongs to it, and the user's name for messages.
func (r *propertyReader) security() (s security, user string) {
	protocol := strings.ToUpper(r.text("security.protocol", "PLAINTEXT"))
	withTLS, withSASL := false, false
	switch protocol {
	case "PLAINTEXT":
	case "SSL":
		withTLS = true
	case "SASL_PLAINTEXT":
		withSASL = true
	case "SASL_SSL":
		withTLS, withSASL = true, true
	default:
		r.fail("security.protocol=%s: want PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL", protocol)
		return s, ""
	}
	if withTLS {
		s.tls = r.tls()
	}
	if withSASL {
		if r.tokens == nil {
			r.tokens, r.aws = new(tokenCache), new(awsChain)
		}
		s.tokens, s.aws = r.tokens, r.aws
		s.sasl, user = r.sasl(withTLS)
	}
	return s, user
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// dialer dials with a time limit and, if need be, TLS, whose settings secured gives for each connection.
func (s *settings) dialer(dial dialFunc, secured func() *tls.Config) dialFunc {
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, s.connect, fmt.Errorf("no connection within %s: %w", s.connect, os.ErrDeadlineExceeded))
		defer cancel()
		conn, err := dial(ctx, network, address)
		if err != nil || s.security.tls == nil {
			return conn, err
		}
		cfg := secured().Clone()
		if cfg.ServerName, _, err = net.SplitHostPort(address); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		secure := tls.Client(conn, cfg)
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("TLS: %w", err), conn.Close())
		}
		return secure, nil
	}
}
