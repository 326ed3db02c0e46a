package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/emitter/internal/kclient"
)

// Transient reports whether an error of this package may go away by itself: no connection, a broker that restarts or
// has no leader. Refused credentials, certificates, permissions and settings do not; nor does what a record or topic
// itself causes.
func Transient(err error) bool {
	if err == nil || errors.Is(err, kgo.ErrClientClosed) || isFile(err) {
		return false
	}
	if errors.Is(err, kclient.ErrAgain) {
		return true
	}
	if protocol, ok := errors.AsType[*kerr.Error](err); ok {
		return protocol.Retriable
	}
	if aboutTLS(err) {
		return false
	}
	if token, ok := errors.AsType[*tokenError](err); ok {
		return token.transient
	}
	if lookup, ok := errors.AsType[*net.DNSError](err); ok {
		return lookup.Temporary() || lookup.IsNotFound // a name of a container that is not up yet
	}
	if _, ok := errors.AsType[*kgo.ErrFirstReadEOF](err); ok {
		return true // a broker that is starting does so as well
	}
	if network, ok := errors.AsType[net.Error](err); ok {
		_, bare := network.(syscall.Errno) // not of a connection, whose errors package net wraps
		return !bare
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || kgo.IsRetryableBrokerErr(err)
}

// isFile tells the errors of files, whose innermost one looks like the network's: a missing folder or right does not come
// back by itself.
func isFile(err error) bool {
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return true
	}
	_, ok := errors.AsType[*os.LinkError](err)
	return ok
}

func aboutTLS(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return true
	}
	return isTLSAlert(err)
}

// isTLSAlert tells the alert that the other side ended a handshake with. Package tls has a type for it with QUIC only; over
// TCP the operation of the net.OpError is its mark.
func isTLSAlert(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error"
}

// explain says why a connection failed and what to look at.
func explain(err error, user string) string {
	if lookup, ok := errors.AsType[*net.DNSError](err); ok && lookup.IsNotFound {
		return fmt.Sprintf("the name %s is not known; check bootstrap.servers and the brokers' advertised.listeners", lookup.Name)
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "it does not answer in TLS; check security.protocol and the port"
	}
	if host, ok := errors.AsType[x509.HostnameError](err); ok {
		return fmt.Sprintf("its certificate is not for this name (%v)", host)
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "its certificate is signed by an authority that is not trusted; name it in ssl.truststore.location (JKS, PKCS12 or PEM)"
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Cert != nil {
		return fmt.Sprintf("its certificate (%s, valid from %s to %s) is refused: %v", invalid.Cert.Subject, day(invalid.Cert.NotBefore), day(invalid.Cert.NotAfter), invalid)
	}
	if token, ok := errors.AsType[*tokenError](err); ok {
		return token.text
	}
	if isTLSAlert(err) {
		return fmt.Sprintf("it ended the TLS handshake (%v); does it ask for a client certificate (ssl.keystore.location)?", err)
	}
	if _, ok := errors.AsType[*kgo.ErrFirstReadEOF](err); ok || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return "it closed the connection without an answer; check security.protocol: the listener may want TLS or a login"
	}
	switch text := err.Error(); { // the client has no other mark of these three
	case strings.Contains(text, "response size") && strings.Contains(text, "'HTTP' in ascii"):
		return "a web server answers there, not Kafka; check bootstrap.servers, its port above all"
	case strings.Contains(text, "response size") && strings.Contains(text, "tls alert"):
		return "it answers in TLS; check security.protocol (SSL or SASL_SSL) and the port"
	case strings.Contains(text, "invalid large response size"), strings.Contains(text, "invalid negative response size"):
		return "what answers there is not Kafka; check bootstrap.servers, its port above all (" + text + ")"
	}
	switch {
	case errors.Is(err, kerr.IllegalSaslState):
		return "its listener takes no login; check security.protocol and the port"
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return fmt.Sprintf("it refuses the login of user %q (%s); check sasl.jaas.config", user, words(err))
	case errors.Is(err, kerr.UnsupportedSaslMechanism):
		return fmt.Sprintf("it does not take this sasl.mechanism (%s)", words(err))
	case errors.Is(err, syscall.ECONNREFUSED):
		return "it refuses the connection; does Kafka run there? (" + err.Error() + ")"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), isTimeout(err):
		return "it does not answer in time; is a firewall in between? (" + err.Error() + ")"
	}
	return err.Error()
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// words is the text of an error without the full stop at its end.
func words(err error) string { return strings.TrimRight(err.Error(), ". ") }

func isTimeout(err error) bool {
	n, ok := errors.AsType[net.Error](err)
	return ok && n.Timeout()
}

// reachability says once for each broker that it cannot be reached, and once that it can again.
type reachability struct {
	log  *zap.Logger
	user string      // that authenticates
	saw  func(error) // is told of each try
	*outages
}

// outages are of the brokers that cannot be reached.
type outages struct {
	mu   sync.Mutex
	down map[string]*outage // by address
}

type outage struct {
	since time.Time
	tries int
}

var _ kgo.HookBrokerConnect = (*reachability)(nil)

// OnBrokerConnect is called by the client after every try.
func (r *reachability) OnBrokerConnect(broker kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	address := net.JoinHostPort(broker.Host, strconv.Itoa(int(broker.Port)))
	r.saw(err)
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.down[address]
	switch {
	case err == nil && o != nil:
		delete(r.down, address)
		r.log.Info("Kafka broker can be reached again", zap.String("broker", address),
			zap.Duration("after", time.Since(o.since).Round(time.Millisecond)), zap.Int("tries", o.tries))
	case err == nil || errors.Is(err, context.Canceled) || errors.Is(err, kgo.ErrClientClosed):
	case o != nil:
		o.tries++
	default:
		if r.down == nil {
			r.down = make(map[string]*outage)
		}
		r.down[address] = &outage{since: time.Now(), tries: 1}
		r.log.Warn("Kafka broker cannot be reached; trying again until it can", zap.String("broker", address), zap.String("reason", explain(err, r.user)))
	}
}
