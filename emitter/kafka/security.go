package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// security is how connections are made safe; nil parts are not in use.
type security struct {
	tls  *tls.Config
	sasl sasl.Mechanism
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
		s.sasl, user = r.sasl()
	}
	return s, user
}

// TLSConfig is what the ssl.* properties of a Java client ask for, for connections to other servers than Kafka's. It reads
// the files that they name.
func TLSConfig(properties map[string]string) (*tls.Config, error) {
	r := &propertyReader{properties: properties}
	cfg := r.tls()
	return cfg, errors.Join(r.errs...)
}

func (r *propertyReader) tls() *tls.Config {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	r.tlsVersions(cfg)
	if roots, name := r.pem("ssl.truststore.certificates", "ssl.truststore.location", "ssl.truststore.type"); roots != nil {
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(roots) {
			r.fail("%s holds no certificate in PEM", name)
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

// verifyWithoutName checks the chain of the broker's certificate but not whose it is.
func verifyWithoutName(cfg *tls.Config) {
	cfg.InsecureSkipVerify = true // done in VerifyConnection instead
	cfg.VerifyConnection = func(state tls.ConnectionState) error {
		opts := x509.VerifyOptions{Roots: cfg.RootCAs, Intermediates: x509.NewCertPool()}
		for _, cert := range state.PeerCertificates[1:] {
			opts.Intermediates.AddCert(cert)
		}
		_, err := state.PeerCertificates[0].Verify(opts)
		return err
	}
}

// pem reads PEM text from a property or from the file that another names; name says where it was found.
func (r *propertyReader) pem(inline, location, kind string) (text []byte, name string) {
	if v := r.text(inline, ""); v != "" {
		return []byte(strings.ReplaceAll(v, `\n`, "\n")), inline
	}
	path := r.text(location, "")
	if path == "" {
		return nil, ""
	}
	text, err := os.ReadFile(path)
	if err != nil {
		r.fail("%s: %w", location, err)
		return nil, ""
	}
	if block, _ := pem.Decode(text); block == nil {
		r.fail("%s=%s (%s=%s) is not PEM, and Java key stores cannot be read. Convert it: "+
			"`keytool -importkeystore -srckeystore %s -destkeystore store.p12 -deststoretype PKCS12`, then `openssl pkcs12 -in store.p12 -nodes -out store.pem`, "+
			"and set %s=store.pem and %s=PEM", location, path, kind, r.text(kind, "JKS"), path, location, kind)
		return nil, ""
	}
	return text, location
}

func (r *propertyReader) clientCertificate(cfg *tls.Config) {
	chain, name := r.pem("ssl.keystore.certificate.chain", "ssl.keystore.location", "ssl.keystore.type")
	if chain == nil {
		return
	}
	key := chain // a PEM key store holds both
	if v := r.text("ssl.keystore.key", ""); v != "" {
		key = []byte(strings.ReplaceAll(v, `\n`, "\n"))
	}
	for rest := key; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["Proc-Type"] != "" {
			r.fail("%s: the private key is encrypted, which cannot be read. Decrypt it: `openssl pkey -in key.pem -out plain.pem`, and let only this user read the file", name)
			return
		}
	}
	cert, err := tls.X509KeyPair(chain, key)
	if err != nil {
		r.fail("%s: %w", name, err)
		return
	}
	cfg.Certificates = []tls.Certificate{cert}
}

func (r *propertyReader) sasl() (sasl.Mechanism, string) {
	mechanism := strings.ToUpper(r.text("sasl.mechanism", "GSSAPI"))
	switch mechanism {
	case "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512":
	default:
		r.fail("sasl.mechanism=%s is not supported: use PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512 (Java's default is GSSAPI)", mechanism)
		return nil, ""
	}
	login, err := parseJAAS(r.properties["sasl.jaas.config"])
	if err != nil {
		r.fail("sasl.jaas.config: %w", err)
		return nil, ""
	}
	module := login.module[strings.LastIndexByte(login.module, '.')+1:]
	if want := map[bool]string{true: "PlainLoginModule", false: "ScramLoginModule"}[mechanism == "PLAIN"]; module != want {
		r.fail("sasl.jaas.config names %s, but sasl.mechanism=%s needs %s", module, mechanism, want)
		return nil, ""
	}
	user, password := login.options["username"], login.options["password"]
	if user == "" {
		r.fail("sasl.jaas.config has no username")
		return nil, ""
	}
	if mechanism == "PLAIN" {
		return plain.Auth{User: user, Pass: password}.AsMechanism(), user
	}
	auth := scram.Auth{User: user, Pass: password, IsToken: strings.EqualFold(login.options["tokenauth"], "true")}
	if mechanism == "SCRAM-SHA-256" {
		return auth.AsSha256Mechanism(), user
	}
	return auth.AsSha512Mechanism(), user
}

type jaasLogin struct {
	module  string
	options map[string]string
}

// parseJAAS reads one login module: class, control flag, key=value pairs with quoted or bare values, semicolon. No error
// shows any of the text, which holds the password.
func parseJAAS(text string) (jaasLogin, error) {
	login := jaasLogin{options: map[string]string{}}
	p := jaasParser{text: text}
	var err error
	if login.module, err = p.word(); err != nil {
		return login, err
	}
	if login.module == "" {
		return login, errors.New(`it is missing: want org.apache.kafka.common.security.scram.ScramLoginModule required username="…" password="…";`)
	}
	flag, err := p.word()
	if err != nil {
		return login, err
	}
	switch strings.ToLower(flag) {
	case "required", "requisite", "sufficient", "optional":
	default:
		return login, errors.New("the word after the class must be required")
	}
	for {
		name, err := p.word()
		if err != nil {
			return login, err
		}
		if name == "" {
			break
		}
		if !p.skip('=') {
			return login, errors.New("an option has no = after its name")
		}
		if login.options[name], err = p.word(); err != nil {
			return login, err
		}
	}
	if !p.skip(';') {
		return login, errors.New("the ; at its end is missing")
	}
	if p.blanks(); p.text != "" {
		return login, errors.New("something follows after the ;")
	}
	return login, nil
}

type jaasParser struct{ text string }

func (p *jaasParser) blanks() { p.text = strings.TrimLeft(p.text, " \t\r\n") }

func (p *jaasParser) skip(c byte) bool {
	p.blanks()
	if p.text == "" || p.text[0] != c {
		return false
	}
	p.text = p.text[1:]
	return true
}

// word reads up to a blank, = or ;, or a quoted text with Java's backslash escapes. It is empty at the end.
func (p *jaasParser) word() (string, error) {
	p.blanks()
	if p.text == "" {
		return "", nil
	}
	quote := p.text[0]
	if quote != '"' && quote != '\'' {
		end := strings.IndexAny(p.text, " \t\r\n=;\"'")
		if end < 0 {
			end = len(p.text)
		}
		word := p.text[:end]
		p.text = p.text[end:]
		return word, nil
	}
	var word strings.Builder
	for i := 1; i < len(p.text); i++ {
		switch c := p.text[i]; {
		case c == quote:
			p.text = p.text[i+1:]
			return word.String(), nil
		case c == '\\' && i+1 < len(p.text):
			i++
			escaped := map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f'}[p.text[i]]
			if escaped == 0 {
				escaped = p.text[i]
			}
			word.WriteByte(escaped)
		default:
			word.WriteByte(c)
		}
	}
	return "", errors.New("a quoted text does not end")
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// dialer dials with a time limit and, if need be, TLS.
func (s *settings) dialer(dial dialFunc) dialFunc {
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
		cfg := s.security.tls.Clone()
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
