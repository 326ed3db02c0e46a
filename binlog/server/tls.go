package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"
)

// tls is how a connection is encrypted in the configured mode.
func (c *Config) tls() (*tls.Config, error) {
	cfg := &tls.Config{}
	if c.TLS != nil {
		given, err := c.TLS()
		if err != nil {
			return nil, &fault{text: "TLS", kind: ErrCertificate, cause: err}
		}
		cfg = given.Clone()
	}
	cfg.MinVersion = max(cfg.MinVersion, tls.VersionTLS12)
	cfg.ServerName = c.Host
	if c.SSLMode == SSLVerifyIdentity {
		return cfg, nil
	}
	cfg.InsecureSkipVerify = true
	if c.SSLMode.verifies() || cfg.RootCAs != nil {
		roots := cfg.RootCAs
		cfg.VerifyConnection = func(state tls.ConnectionState) error { return verifyChain(state.PeerCertificates, roots) }
	}
	return cfg, nil
}

// verifyChain checks that a certificate is from a trusted authority, but not whose it is.
func verifyChain(certs []*x509.Certificate, roots *x509.CertPool) error {
	opts := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
	for _, cert := range certs[1:] {
		opts.Intermediates.AddCert(cert)
	}
	if _, err := certs[0].Verify(opts); err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: certs, Err: err}
	}
	return nil
}

// tlsFault says what a failed TLS handshake means and what to look at.
func tlsFault(err error, hasOwn bool) error {
	var subject string
	if v, ok := errors.AsType[*tls.CertificateVerificationError](err); ok && len(v.UnverifiedCertificates) > 0 {
		cert := v.UnverifiedCertificates[0]
		subject = fmt.Sprintf(" (%s, from %s, valid from %s to %s)", cert.Subject, cert.Issuer, day(cert.NotBefore), day(cert.NotAfter))
	}
	say := func(text string) error { return &fault{text: text, kind: ErrCertificate, cause: err, plain: true} }
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return say("the server's certificate" + subject + " is not for the name in database.hostname; give the server one with that name among its subject alternative names, or use database.ssl.mode=verify_ca, which does not look at names")
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return say("the server's certificate" + subject + " is from no trusted authority; name the authority's in database.ssl.truststore (JKS, PKCS12 or PEM; mysqld's own is ca.pem in its data directory)")
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Cert != nil {
		return say("the server's certificate" + subject + " is refused; renew it on the server (ALTER INSTANCE RELOAD TLS)")
	}
	if subject != "" {
		return say("the server's certificate" + subject + " is refused")
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" {
		text := "the server ended the TLS handshake"
		if hasOwn {
			text += "; it may not trust the client's certificate in database.ssl.keystore, which may have expired"
		} else {
			text += "; it may ask for a client's certificate (database.ssl.keystore)"
		}
		return say(text)
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return say("the server does not answer in TLS, though it offers it; something in between may be in the way")
	}
	return err
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }
