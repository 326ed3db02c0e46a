package server

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	fakemysql "github.com/go-mysql-org/go-mysql/server"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// authority makes certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{}
	c := a.issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: "Test CA"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	a.cert, a.key = c.Leaf, c.PrivateKey.(*ecdsa.PrivateKey)
	return a
}

// issue makes a certificate that is valid now unless the template says when.
func (a *authority) issue(t testing.TB, template *x509.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	parent, signer := template, key
	if a.cert != nil {
		parent, signer = a.cert, a.key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key, Leaf: leaf}
}

func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// scriptTLS is script with a server that begins TLS when it is asked to; what it gets is what was encrypted.
func scriptTLS(got *record, cert tls.Certificate, payloads ...[]byte) func(context.Context, string, string) (net.Conn, error) {
	got.done = make(chan struct{})
	return func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer close(got.done)
			defer theirs.Close()
			var conn net.Conn = theirs
			seq := byte(0)
			receive := func() []byte {
				var h [4]byte
				if _, err := io.ReadFull(conn, h[:]); err != nil {
					return nil
				}
				b := make([]byte, int(h[0])|int(h[1])<<8)
				if _, err := io.ReadFull(conn, b); err != nil {
					return nil
				}
				got.Write(b)
				seq = h[3] + 1
				return b
			}
			for i, p := range payloads {
				if i > 0 && !bytes.Equal(payloads[i-1], []byte{1, 3}) { // which nobody answers
					b := receive()
					if b == nil {
						return
					}
					if i == 1 && len(b) == 32 { // it asks for TLS
						secure := tls.Server(theirs, &tls.Config{Certificates: []tls.Certificate{cert}})
						if secure.Handshake() != nil {
							return
						}
						conn = secure
						if receive() == nil {
							return
						}
					}
				}
				conn.Write(append([]byte{byte(len(p)), byte(len(p) >> 8), byte(len(p) >> 16), seq}, p...))
				seq++
			}
			for receive() != nil {
			}
		}()
		return ours, nil
	}
}

func switchTo(method string) []byte {
	return append(append([]byte{0xfe}, method...), "\x00abcdefghijklmnopqrst\x00"...)
}

const canary = "s3cr3t-canary"

// TestClearPasswordIsNotGivenToAnyServer asks for it in each way that the protocol has, over plain and encrypted connections.
func TestClearPasswordIsNotGivenToAnyServer(t *testing.T) {
	ca := newAuthority(t)
	cert := ca.issue(t, &x509.Certificate{DNSNames: []string{"db.example"}})
	trust := func() (*tls.Config, error) { return &tls.Config{RootCAs: ca.pool()}, nil }
	const native, sha2, clear = "mysql_native_password", "caching_sha2_password", "mysql_clear_password"
	fast, full := []byte{1, 3}, []byte{1, 4}
	ways := map[string]struct {
		greeting string
		then     [][]byte
	}{
		"as the server's own method":           {clear, [][]byte{switchTo(clear)}},
		"by a switch":                          {sha2, [][]byte{switchTo(clear)}},
		"by a switch from native":              {native, [][]byte{switchTo(clear)}},
		"by a switch from sha256":              {"client_ed25519", [][]byte{switchTo(clear)}},
		"by a second switch":                   {native, [][]byte{switchTo(sha2), switchTo(clear)}},
		"by a second switch to the same":       {clear, [][]byte{switchTo(native), switchTo(clear)}},
		"after a success that was none":        {sha2, [][]byte{fast, switchTo(clear)}},
		"by a switch to PAM's dialog":          {native, [][]byte{switchTo("dialog")}},
		"by the method of MySQL before 4.1":    {native, [][]byte{{0xfe}}},
		"by its name":                          {native, [][]byte{switchTo("mysql_old_password")}},
		"by a method that does not exist":      {native, [][]byte{switchTo("my_own_password")}},
		"by a name in other letters":           {native, [][]byte{switchTo("MySQL_Clear_Password")}},
		"by a switch that does not end":        {native, [][]byte{append([]byte{0xfe}, clear...)}},
		"by an unknown packet":                 {native, [][]byte{append([]byte{0x02}, clear...), switchTo(clear)}},
		"by the server's key after a switch":   {native, [][]byte{switchTo(sha2), full}},
		"by a method that is not there at all": {"dialog", [][]byte{switchTo("dialog")}},
	}
	modes := map[string]Config{
		"plain":           {SSLMode: SSLDisabled},
		"preferred":       {SSLMode: SSLPreferred},
		"required":        {SSLMode: SSLRequired},
		"verify_ca":       {SSLMode: SSLVerifyCA, TLS: trust},
		"verify_identity": {SSLMode: SSLVerifyIdentity, TLS: trust},
		"key allowed":     {SSLMode: SSLDisabled, AllowPublicKeyRetrieval: true},
	}
	for mode, cfg := range modes {
		for way, w := range ways {
			if strings.Contains(way, "key") && mode != "plain" {
				continue // where the password may go that way
			}
			t.Run(mode+", "+way, func(t *testing.T) {
				var got record
				payloads := append([][]byte{greetingPacket(w.greeting, true)}, w.then...)
				cfg := cfg
				cfg.Host, cfg.User, cfg.Password, cfg.Dial = "db.example", "u", canary, scriptTLS(&got, cert, append(payloads, switchTo(clear), []byte{0, 0, 0, 2, 0, 0, 0})...)
				_, err := Connect(t.Context(), cfg)
				if err == nil || Transient(err) || strings.Contains(err.Error(), canary) {
					t.Errorf("%v", err)
				}
				if named := strings.Contains(way, "switch") || strings.Contains(way, "4.1"); named && !errors.Is(err, ErrInsecure) && !strings.Contains(way, "end") && !strings.Contains(way, "sha256") {
					t.Errorf("not refused for what it asks: %v", err)
				}
				<-got.done
				if bytes.Contains(got.Bytes(), []byte(canary)) {
					t.Error("the server got the password")
				}
			})
		}
	}
	// The same server gets it where that is allowed, so it would have seen it.
	t.Run("allowed", func(t *testing.T) {
		var got record
		cfg := Config{Host: "db.example", User: "u", Password: canary, SSLMode: SSLVerifyIdentity, TLS: trust, CleartextPassword: true}
		cfg.Dial = scriptTLS(&got, cert, greetingPacket(clear, true), switchTo(clear), append([]byte{0xff, 0x15, 0x04}, "#28000Access denied"...))
		if _, err := Connect(t.Context(), cfg); !errors.Is(err, ErrAccess) {
			t.Error(err)
		}
		<-got.done
		if !bytes.Contains(got.Bytes(), append([]byte(canary), 0)) {
			t.Error("the server did not get the password")
		}
	})
}

// TestPublicKeyIsAskedForOnlyWhenAllowed: over a plain connection the password goes under a key of the server only where that is
// allowed or the key is known, however the server brings it.
func TestPublicKeyIsAskedForOnlyWhenAllowed(t *testing.T) {
	keys := map[string][]byte{}
	for _, name := range []string{"server", "attacker"} {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		keys[name] = pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	}
	pinned := filepath.Join(t.TempDir(), "public_key.pem")
	if err := os.WriteFile(pinned, keys["server"], 0o600); err != nil {
		t.Fatal(err)
	}
	shows := func(first byte, name string) []byte { return append([]byte{first}, keys[name]...) }
	const sha2, sha256 = "caching_sha2_password", "sha256_password"
	denied := append([]byte{0xff, 0x15, 0x04}, "#28000Access denied"...)
	full := []byte{1, 4}
	for name, tt := range map[string]struct {
		allow    bool
		pinned   string
		payloads [][]byte
		given    bool // the password, encrypted
		want     string
	}{
		"caching_sha2":                    {false, "", [][]byte{greetingPacket(sha2, false), full, shows(1, "attacker"), denied}, false, "driver.allowPublicKeyRetrieval"},
		"sha256":                          {false, "", [][]byte{greetingPacket(sha256, false), shows(1, "attacker"), denied}, false, "driver.allowPublicKeyRetrieval"},
		"switch to caching_sha2":          {false, "", [][]byte{greetingPacket("mysql_native_password", false), switchTo(sha2), full, shows(1, "attacker"), denied}, false, "driver.allowPublicKeyRetrieval"},
		"switch to sha256":                {false, "", [][]byte{greetingPacket(sha2, false), switchTo(sha256), shows(1, "attacker"), denied}, false, "driver.serverRSAPublicKeyFile"},
		"allowed":                         {true, "", [][]byte{greetingPacket(sha2, false), full, shows(1, "server"), denied}, true, "refuses the login"},
		"known":                           {false, pinned, [][]byte{greetingPacket(sha2, false), full, shows(1, "server"), denied}, true, "refuses the login"},
		"known, sha256":                   {false, pinned, [][]byte{greetingPacket(sha256, false), shows(1, "server"), denied}, true, "refuses the login"},
		"known, switch to sha256":         {false, pinned, [][]byte{greetingPacket(sha2, false), switchTo(sha256), shows(1, "server"), denied}, true, "refuses the login"},
		"another key":                     {false, pinned, [][]byte{greetingPacket(sha2, false), full, shows(1, "attacker"), denied}, false, "another public key"},
		"another key, sha256":             {false, pinned, [][]byte{greetingPacket(sha256, false), shows(1, "attacker"), denied}, false, "another public key"},
		"another key as a success":        {false, pinned, [][]byte{greetingPacket(sha2, false), full, shows(0, "attacker"), denied}, false, "another public key"},
		"another key as something else":   {false, pinned, [][]byte{greetingPacket(sha2, false), full, shows(2, "attacker"), denied}, false, "another public key"},
		"another key as a switch":         {false, pinned, [][]byte{greetingPacket(sha2, false), full, shows(0xfe, "attacker"), denied}, false, "another public key"},
		"no file":                         {false, pinned + "x", [][]byte{greetingPacket(sha2, false)}, false, "driver.serverRSAPublicKeyFile: open"},
		"a file with something else":      {false, "guard_test.go", [][]byte{greetingPacket(sha2, false)}, false, "holds no public key in PEM"},
		"the login goes on without a key": {false, pinned, [][]byte{greetingPacket(sha2, false), full, denied}, false, "refuses the login"},
	} {
		t.Run(name, func(t *testing.T) {
			var got record
			_, err := Connect(t.Context(), Config{Host: "db.example", User: "u", Password: canary, AllowPublicKeyRetrieval: tt.allow, PublicKeyFile: tt.pinned, Dial: script(&got, tt.payloads...)})
			if err == nil || Transient(err) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), canary) {
				t.Fatalf("got %v", err)
			}
			<-got.done
			if bytes.Contains(got.Bytes(), []byte(canary)) {
				t.Error("the server got the password")
			}
			if given := got.Len() > 300; given != tt.given { // 256 bytes under the key
				t.Errorf("the server got %d bytes", got.Len())
			}
		})
	}
}

// tcp is a connection with room in it: a handshake that one side ends may have both write at once.
func tcp(t testing.TB) (ours, theirs net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if ours, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if theirs, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return ours, theirs
}

// overTLS is the fake of this package over TLS.
func (f *fake) overTLS(t testing.TB, method string, config *tls.Config) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := tcp(t)
		go func() {
			defer theirs.Close()
			h := &handler{f: f}
			conf := fakemysql.NewServer("9.7.0", mysql.DEFAULT_COLLATION_ID, method, nil, config)
			users := fakemysql.NewInMemoryAuthenticationHandler(method)
			if users.AddUser("u", "pw") != nil {
				return
			}
			c, err := conf.NewCustomizedConn(theirs, users, h)
			if err != nil {
				return
			}
			h.conn = c
			for c.HandleCommand() == nil && !c.Closed() {
			}
		}()
		return ours, nil
	}
}

// TestSSLModes has each mode meet good and bad certificates.
func TestSSLModes(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	good := ca.issue(t, &x509.Certificate{DNSNames: []string{"db.example"}})
	elsewhere := ca.issue(t, &x509.Certificate{DNSNames: []string{"other.example"}})
	expired := ca.issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: "old"}, DNSNames: []string{"db.example"}, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(-24 * time.Hour)})
	foreign := other.issue(t, &x509.Certificate{DNSNames: []string{"db.example"}})
	trust := func() (*tls.Config, error) { return &tls.Config{RootCAs: ca.pool()}, nil }
	for _, tt := range []struct {
		mode  SSLMode
		cert  *tls.Certificate // nil: no TLS
		trust bool
		want  string // of the error; "": none
	}{
		{SSLDisabled, &foreign, false, ""},
		{SSLPreferred, nil, false, ""},
		{SSLPreferred, &foreign, false, ""},
		{SSLPreferred, &good, true, ""},
		{SSLPreferred, &foreign, true, "is from no trusted authority"},
		{SSLRequired, nil, false, "offers no TLS, which database.ssl.mode=required"},
		{SSLRequired, &foreign, false, ""},
		{SSLRequired, &elsewhere, true, ""},
		{SSLRequired, &foreign, true, "is from no trusted authority; name the authority's in database.ssl.truststore"},
		{SSLVerifyCA, nil, true, "offers no TLS, which database.ssl.mode=verify_ca"},
		{SSLVerifyCA, &good, true, ""},
		{SSLVerifyCA, &elsewhere, true, ""},
		{SSLVerifyCA, &foreign, true, "is from no trusted authority"},
		{SSLVerifyCA, &good, false, "is from no trusted authority"}, // the system's do not know it
		{SSLVerifyCA, &expired, true, "CN=old, from CN=Test CA, valid from " + day(time.Now().Add(-48*time.Hour)) + " to " + day(time.Now().Add(-24*time.Hour)) + ") is refused; renew it on the server"},
		{SSLVerifyIdentity, nil, true, "offers no TLS, which database.ssl.mode=verify_identity"},
		{SSLVerifyIdentity, &good, true, ""},
		{SSLVerifyIdentity, &elsewhere, true, "is not for the name in database.hostname"},
		{SSLVerifyIdentity, &foreign, true, "is from no trusted authority"},
		{SSLVerifyIdentity, &good, false, "is from no trusted authority"},
		{SSLVerifyIdentity, &expired, true, "is refused; renew it"},
	} {
		name := fmt.Sprintf("%s, trust %v, ", tt.mode, tt.trust)
		f := newFake()
		cfg := Config{Host: "db.example", User: "u", Password: "pw", SSLMode: tt.mode, Dial: f.dial}
		switch tt.cert {
		case nil:
			name += "no TLS"
		default:
			name += fmt.Sprint(tt.cert.Leaf.DNSNames, " from ", tt.cert.Leaf.NotAfter.Before(time.Now()))
			cfg.Dial = f.overTLS(t, mysql.AUTH_NATIVE_PASSWORD, &tls.Config{Certificates: []tls.Certificate{*tt.cert}})
		}
		if tt.trust {
			cfg.TLS = trust
		}
		c, err := Connect(t.Context(), cfg)
		if err == nil {
			if _, err = c.Info(t.Context()); err != nil { // the packets of the connection are in order
				t.Errorf("%s: %v", name, err)
			}
			if _, encrypted := c.mu.sess.guard.Conn.(*tls.Conn); encrypted != (tt.mode != SSLDisabled && tt.cert != nil) {
				t.Errorf("%s: encrypted %v", name, encrypted)
			}
			c.Close()
		}
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || Transient(err)) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
		if strings.Contains(tt.want, "offers") == errors.Is(err, ErrCertificate) && tt.want != "" {
			t.Errorf("%s: kind of %v", name, err)
		}
	}
}

// TestClientCertificateAndRenewedFiles: the client's certificate is shown, and read anew for each connection, as the authorities are.
func TestClientCertificateAndRenewedFiles(t *testing.T) {
	ca, later := newAuthority(t), newAuthority(t)
	client := ca.issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: "tidemark"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	shown := make(chan string, 10)
	server := func(a *authority) *tls.Config {
		cert := a.issue(t, &x509.Certificate{DNSNames: []string{"db.example"}})
		return &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.pool(), VerifyConnection: func(s tls.ConnectionState) error {
			shown <- s.PeerCertificates[0].Subject.CommonName
			return nil
		}}
	}
	f := newFake()
	read := &tls.Config{RootCAs: ca.pool(), Certificates: []tls.Certificate{client}}
	cfg := Config{Host: "db.example", User: "u", Password: "pw", SSLMode: SSLVerifyIdentity, TLS: func() (*tls.Config, error) { return read, nil }}
	cfg.Dial = f.overTLS(t, mysql.AUTH_NATIVE_PASSWORD, server(ca))
	connect := func() error {
		c, err := Connect(t.Context(), cfg)
		if err != nil {
			return err
		}
		return c.Close()
	}
	if err := connect(); err != nil || <-shown != "tidemark" {
		t.Fatal(err)
	}
	cfg.Dial = f.overTLS(t, mysql.AUTH_NATIVE_PASSWORD, server(later))
	if err := connect(); !errors.Is(err, ErrCertificate) {
		t.Fatal(err)
	}
	read = &tls.Config{RootCAs: later.pool(), Certificates: []tls.Certificate{client}}
	if err := connect(); err != nil || <-shown != "tidemark" {
		t.Fatal(err)
	}
	cfg.TLS = func() (*tls.Config, error) { return nil, errors.New("the file is away") }
	if err := connect(); !errors.Is(err, ErrCertificate) || !strings.Contains(err.Error(), "the file is away") {
		t.Fatal(err)
	}
	// An account that asks for a certificate is refused like one with a wrong password.
	cfg.TLS, cfg.SSLMode, cfg.Password = nil, SSLRequired, "wrong"
	cfg.Dial = f.overTLS(t, mysql.AUTH_NATIVE_PASSWORD, &tls.Config{Certificates: server(ca).Certificates})
	if err := connect(); err == nil || !strings.Contains(err.Error(), "REQUIREs X509 needs the client's certificate in database.ssl.keystore") {
		t.Fatal(err)
	}
}

// TestFullLoginOverTLS: caching_sha2_password and sha256_password send the password itself inside TLS, and without asking for a key.
func TestFullLoginOverTLS(t *testing.T) {
	ca := newAuthority(t)
	cert := ca.issue(t, &x509.Certificate{DNSNames: []string{"db.example"}})
	denied := append([]byte{0xff, 0x15, 0x04}, "#28000Access denied"...)
	for name, payloads := range map[string][][]byte{
		"caching_sha2":           {greetingPacket("caching_sha2_password", true), {1, 4}, denied},
		"switch to caching_sha2": {greetingPacket("mysql_native_password", true), switchTo("caching_sha2_password"), {1, 4}, denied},
		"sha256":                 {greetingPacket("sha256_password", true), denied},
		"switch to sha256":       {greetingPacket("caching_sha2_password", true), switchTo("sha256_password"), denied},
	} {
		var got record
		_, err := Connect(t.Context(), Config{Host: "db.example", User: "u", Password: canary, SSLMode: SSLRequired, Dial: scriptTLS(&got, cert, payloads...)})
		if !errors.Is(err, ErrAccess) {
			t.Errorf("%s: %v", name, err)
		}
		<-got.done
		if !bytes.Contains(got.Bytes(), append([]byte(canary), 0)) {
			t.Errorf("%s: the login was another one", name)
		}
	}
}

// TestPasswordIsReadAtEachLogin: a password that was replaced counts; what cannot be read is said, and the one before tried.
func TestPasswordIsReadAtEachLogin(t *testing.T) {
	f := newFake()
	core, seen := observer.New(zapcore.WarnLevel)
	cfg := f.config()
	cfg.Password, cfg.Log = "stale", zap.New(core)
	now, fails := "pw", error(nil)
	cfg.ReadPassword = func() (string, error) { return now, fails }
	c, err := Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	now = "other"
	if _, err := Connect(t.Context(), cfg); !errors.Is(err, ErrAccess) {
		t.Error(err)
	}
	fails, cfg.Password = errors.New("the file is away"), "pw"
	if c, err := Connect(t.Context(), cfg); err != nil || seen.FilterMessageSnippet("cannot be read again").Len() != 1 {
		t.Error(err, seen.All())
	} else {
		c.Close()
	}
}

// TestAnswersAreBounded: what a server says of an answer's size does not make the client take memory for it.
func TestAnswersAreBounded(t *testing.T) {
	columns := func(b ...byte) []byte { return packets(b) }
	second := func(p []byte) []byte { p = bytes.Clone(p); p[3] = 1; return p }
	for name, tt := range map[string]struct {
		comes []byte
		want  string
	}{
		"OK":                      {second(columns(0, 0, 0, 2, 0, 0, 0)), ""},
		"error":                   {second(columns(0xff, 0x15, 0x04)), ""},
		"a very long error":       {append([]byte{255, 255, 255, 1}, bytes.Repeat([]byte{255}, 100)...), "an error of 16777215 bytes"},
		"columns":                 {second(columns(0xfc, 0, 0x10)), ""},
		"too many columns":        {second(columns(0xfc, 1, 0x10)), "4097 columns"},
		"columns for 16 MB":       {second(columns(0xfd, 0xff, 0xff, 0xff)), "16777215 columns"},
		"columns for all memory":  {second(columns(0xfe, 0, 0, 0, 0, 1, 0, 0, 0)), "4294967296 columns"},
		"columns beyond counting": {second(columns(0xfe, 255, 255, 255, 255, 255, 255, 255, 255)), "columns"},
	} {
		for _, step := range []int{1, 3, 100} {
			var a answer
			var err error
			for rest := tt.comes; len(rest) > 0 && err == nil; {
				n := min(step, len(rest))
				err = a.see(rest[:n])
				rest = rest[n:]
			}
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%s in pieces of %d: %v", name, step, err)
			}
		}
	}
	var a answer
	piece := make([]byte, 1<<20)
	var err error
	n := 0
	for ; err == nil && n < 1000; n++ {
		err = a.see(piece)
	}
	if n != mostAnswer>>20+1 || !errors.Is(err, ErrCorrupt) {
		t.Errorf("after %d MiB: %v", n, err)
	}
	// And through a connection: the client library would have taken 32 GB.
	f := newFake()
	c := f.connect(t)
	ours, theirs := net.Pipe()
	c.mu.sess.guard.Conn = ours
	go func() {
		_, _ = theirs.Read(make([]byte, 1000))
		_, _ = theirs.Write(second(columns(0xfe, 0, 0, 0, 0, 1, 0, 0, 0)))
	}()
	if _, err := c.query(t.Context(), "SELECT 1"); err == nil || !strings.Contains(err.Error(), "there cannot be more than 4096") || Transient(err) {
		t.Errorf("got %v", err)
	}
}

// FuzzLogin has a server say anything: no panic, no hang, and never the password.
func FuzzLogin(f *testing.F) {
	frame := func(payloads ...[]byte) (all []byte) {
		for i, p := range payloads {
			all = append(append(all, byte(len(p)), byte(len(p)>>8), byte(len(p)>>16), byte(2*i)), p...)
		}
		return all
	}
	for _, payloads := range [][][]byte{
		{greetingPacket("caching_sha2_password", false), switchTo("mysql_clear_password")},
		{greetingPacket("mysql_clear_password", false), switchTo("dialog")},
		{greetingPacket("caching_sha2_password", false), {1, 4}, {1, 'x'}},
		{greetingPacket("sha256_password", false), {1, '-'}},
		{greetingPacket("mysql_native_password", true), {0xfe}},
		{{10, 'x', 0, 1}},
		{{0xff, 0x15}},
		{greetingPacket("mysql_native_password", false), {0xff}},
		{greetingPacket("mysql_native_password", false), {0, 0xfe, 255, 255, 255, 255, 255, 255, 255, 255}},
	} {
		f.Add(frame(payloads...))
	}
	f.Add([]byte{255, 255, 255, 0, 1})
	f.Fuzz(func(t *testing.T, says []byte) {
		got := make(chan []byte, 1)
		dial := func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				var all bytes.Buffer
				done := make(chan struct{})
				go func() { _, _ = io.Copy(&all, theirs); close(done) }()
				_, _ = theirs.Write(says)
				theirs.Close()
				<-done
				got <- all.Bytes()
			}()
			return ours, nil
		}
		c, err := Connect(t.Context(), Config{Host: "db.example", User: "u", Password: canary, Dial: dial, ConnectTimeout: time.Second})
		if err == nil {
			c.Close()
		} else if strings.Contains(err.Error(), canary) {
			t.Errorf("the error shows the password: %v", err)
		}
		if bytes.Contains(<-got, []byte(canary)) {
			t.Error("the server got the password")
		}
	})
}
