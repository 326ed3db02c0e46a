package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-cdc/tidemark/emitter/internal/keystore"
)

// TLSConfig is what the ssl.* properties of a Java client ask for, for connections to other servers than Kafka's. It reads
// the files that they name, which may be JKS, PKCS12 and PEM. Passwords are not in its errors.
func TLSConfig(properties map[string]string) (*tls.Config, error) {
	r := &propertyReader{properties: properties}
	cfg := r.tls()
	return cfg, errors.Join(r.errs...)
}

func (r *propertyReader) tls() *tls.Config {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	r.tlsVersions(cfg)
	r.cipherSuites(cfg)
	if data, name := r.store("ssl.truststore.certificates", "ssl.truststore.location"); data != nil {
		certs, err := keystore.Trusted(data, r.properties["ssl.truststore.password"])
		if err != nil {
			r.storeFault(name, "ssl.truststore.password", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		for _, c := range certs {
			cfg.RootCAs.AddCert(c)
		}
	}
	r.clientCertificate(cfg)
	switch name := r.properties["ssl.endpoint.identification.algorithm"]; {
	case strings.EqualFold(strings.TrimSpace(name), "https"):
	case strings.TrimSpace(name) == "":
		if _, set := r.properties["ssl.endpoint.identification.algorithm"]; set {
			r.warn("ssl.endpoint.identification.algorithm is empty: the names in the brokers' certificates are not checked")
			verifyWithoutName(cfg)
		}
	default:
		r.fail("ssl.endpoint.identification.algorithm=%s: want https, or nothing to leave the brokers' names unchecked", name)
	}
	return cfg
}

func (r *propertyReader) tlsVersions(cfg *tls.Config) {
	has12, has13 := false, false
	for name := range strings.SplitSeq(r.text("ssl.enabled.protocols", "TLSv1.2,TLSv1.3"), ",") {
		switch strings.TrimSpace(name) {
		case "TLSv1.2":
			has12 = true
		case "TLSv1.3":
			has13 = true
		default:
			r.fail("ssl.enabled.protocols: %q is not TLSv1.2 or TLSv1.3", name)
		}
	}
	if !has12 {
		cfg.MinVersion = tls.VersionTLS13
	}
	if !has13 {
		cfg.MaxVersion = tls.VersionTLS12
	}
}

// cipherSuites takes Java's names, which are those of the standards. The suites of TLS 1.3 cannot be chosen from here: with
// none of them in the list that version is off.
func (r *propertyReader) cipherSuites(cfg *tls.Config) {
	text := r.text("ssl.cipher.suites", "")
	if text == "" || strings.EqualFold(text, "null") {
		return
	}
	var chosen, of13 []string
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		at := slices.IndexFunc(tls.CipherSuites(), func(s *tls.CipherSuite) bool { return s.Name == name })
		switch {
		case name == "":
		case at < 0:
			r.warn("ssl.cipher.suites: %s is not among the suites that are safe and known here, and is left out", name)
		case slices.Contains(tls.CipherSuites()[at].SupportedVersions, tls.VersionTLS13):
			of13 = append(of13, name)
		default:
			chosen = append(chosen, name)
			cfg.CipherSuites = append(cfg.CipherSuites, tls.CipherSuites()[at].ID)
		}
	}
	switch {
	case len(chosen) == 0 && len(of13) == 0:
		r.fail("ssl.cipher.suites names no suite that is safe and known here; remove it, or name some of %s", strings.Join(suiteNames(), ", "))
	case len(of13) == 0:
		cfg.MaxVersion = tls.VersionTLS12
	case len(chosen) == 0:
		cfg.MinVersion = tls.VersionTLS13
	}
	if cfg.MaxVersion != 0 && cfg.MinVersion > cfg.MaxVersion {
		r.fail("ssl.cipher.suites has no suite for the versions in ssl.enabled.protocols")
	}
	if n := len(of13); n > 0 && n < 3 {
		r.warn("ssl.cipher.suites: with TLSv1.3 its three suites are all offered, not only those named")
	}
}

func suiteNames() []string {
	var all []string
	for _, s := range tls.CipherSuites() {
		all = append(all, s.Name)
	}
	return all
}

// verifyWithoutName checks the chain of the broker's certificate but not whose it is.
func verifyWithoutName(cfg *tls.Config) {
	cfg.InsecureSkipVerify = true // done in VerifyConnection instead
	roots := cfg.RootCAs
	cfg.VerifyConnection = func(state tls.ConnectionState) error {
		opts := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
		for _, cert := range state.PeerCertificates[1:] {
			opts.Intermediates.AddCert(cert)
		}
		if _, err := state.PeerCertificates[0].Verify(opts); err != nil {
			return &tls.CertificateVerificationError{UnverifiedCertificates: state.PeerCertificates, Err: err}
		}
		return nil
	}
}

// store reads a store from a property with PEM text or from the file that another names; name says where it was found.
func (r *propertyReader) store(inline, location string) (data []byte, name string) {
	if v := r.text(inline, ""); v != "" {
		return pemText(v), inline
	}
	path := r.text(location, "")
	if path == "" {
		return nil, ""
	}
	data, err := keystore.ReadFile(path)
	if err != nil {
		r.fail("%s: %w", location, err)
		return nil, ""
	}
	return data, location
}

// pemText is PEM in a property, where a line may end in \n as two letters.
func pemText(v string) []byte { return []byte(strings.ReplaceAll(v, `\n`, "\n")) }

func (r *propertyReader) storeFault(name, password string, err error) {
	where := name
	if path := r.text(name, ""); strings.HasSuffix(name, ".location") {
		where += "=" + path
	}
	if errors.Is(err, keystore.ErrPassword) {
		err = fmt.Errorf("%w (%s)", err, password)
	}
	r.fail("%s: %w", where, err)
}

func (r *propertyReader) clientCertificate(cfg *tls.Config) {
	data, name := r.store("ssl.keystore.certificate.chain", "ssl.keystore.location")
	if data == nil {
		return
	}
	var cert tls.Certificate
	var err error
	password := "ssl.keystore.password"
	if key := r.text("ssl.keystore.key", ""); key != "" {
		cert, err = keystore.PEMKeyPair(data, pemText(key), r.properties["ssl.key.password"])
		password = "ssl.key.password"
	} else {
		if r.properties["ssl.key.password"] != "" {
			password += " or ssl.key.password"
		}
		cert, err = keystore.KeyPair(data, r.properties["ssl.keystore.password"], r.properties["ssl.key.password"])
	}
	if err != nil {
		r.storeFault(name, password, err)
		return
	}
	cfg.Certificates = []tls.Certificate{cert}
}
