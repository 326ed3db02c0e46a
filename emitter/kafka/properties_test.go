package kafka

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestCheckProperties(t *testing.T) {
	tests := []struct {
		name       string
		properties map[string]string
		warning    string // "": none
		err        string // "": none
	}{
		{name: "least", properties: map[string]string{}},
		{name: "usual", properties: map[string]string{
			"acks": "all", "compression.type": "lz4", "linger.ms": "5", "max.request.size": "10485760", "buffer.memory": "67108864",
			"request.timeout.ms": "20000", "client.id": "x", "max.in.flight.requests.per.connection": "1", "delivery.timeout.ms": "2147483647",
			"enable.idempotence": "TRUE", "retries": "2147483647", "metadata.max.age.ms": "60000", "ssl.truststore.type": "PEM",
			"key.serializer": "org.apache.kafka.common.serialization.ByteArraySerializer",
		}},
		{name: "no effect", properties: map[string]string{"batch.size": "65536"}, warning: "batch.size has no effect: batches take"},
		{name: "idempotence off", properties: map[string]string{"enable.idempotence": "false"}, warning: "enable.idempotence has no effect"},
		{name: "unknown", properties: map[string]string{"lingr.ms": "5"}, warning: "lingr.ms is unknown"},
		{name: "acks", properties: map[string]string{"acks": "1"}, err: "acks=1 is refused"},
		{name: "ignore keys", properties: map[string]string{"partitioner.ignore.keys": "true"}, err: "lose their order"},
		{name: "partitioner", properties: map[string]string{"partitioner.class": "org.example.Mine"}, err: "Java code"},
		{name: "interceptors", properties: map[string]string{"interceptor.classes": "org.example.Mine"}, err: "Java code"},
		{name: "transactions", properties: map[string]string{"transactional.id": "x"}, err: "it is <group.id>-<name>-0"},
		{name: "linger", properties: map[string]string{"linger.ms": "soon"}, err: "linger.ms=soon: want a whole number from 0 to 60000"},
		{name: "size", properties: map[string]string{"max.request.size": "-1"}, err: "max.request.size=-1"},
		{name: "compression", properties: map[string]string{"compression.type": "brotli"}, err: "want none, gzip, snappy, lz4 or zstd"},
		{name: "protocol", properties: map[string]string{"security.protocol": "TLS"}, err: "want PLAINTEXT, SSL"},
		{name: "ciphers", properties: map[string]string{"security.protocol": "SSL", "ssl.cipher.suites": "TLS_X"}, err: "names no suite that is safe and known here", warning: "TLS_X"},
		{name: "unknown security", properties: map[string]string{"ssl.foo": "x"}, err: "seems to be about security"},
		{name: "mechanism", properties: map[string]string{"security.protocol": "SASL_SSL"}, err: "Java's default is GSSAPI"},
		{name: "oauth", properties: map[string]string{"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}, err: "oauthbearer.OAuthBearerLoginModule required clientId="},
		{name: "no login", properties: map[string]string{"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, err: "sasl.jaas.config: it is missing; sasl.mechanism=PLAIN wants org.apache.kafka.common.security.plain.PlainLoginModule required username="},
		{
			name:       "wrong module",
			properties: map[string]string{"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": `org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="p";`},
			err:        "names ScramLoginModule, but sasl.mechanism=PLAIN needs PlainLoginModule",
		},
		{
			name:       "scram",
			properties: map[string]string{"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "scram-sha-512", "sasl.jaas.config": `org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="p" tokenauth="true";`},
		},
		{name: "hostnames", properties: map[string]string{"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": ""}, warning: "certificates are not checked"},
		{name: "hostnames odd", properties: map[string]string{"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "ldaps"}, err: "want https"},
		{name: "versions", properties: map[string]string{"security.protocol": "SSL", "ssl.enabled.protocols": "TLSv1.1"}, err: "not TLSv1.2 or TLSv1.3"},
		{name: "no store", properties: map[string]string{"security.protocol": "SSL", "ssl.truststore.location": "/does/not/exist"}, err: "no such file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.properties["bootstrap.servers"] = "a:1, SSL://b:2"
			warnings, err := CheckProperties(tt.properties)
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("error %v, want …%s…", err, tt.err)
			}
			if got := strings.Join(warnings, "\n"); tt.warning == "" && got != "" || !strings.Contains(got, tt.warning) {
				t.Errorf("warnings %q, want …%s…", got, tt.warning)
			}
		})
	}
}

func TestBootstrapServers(t *testing.T) {
	for value, want := range map[string]string{
		"":             "bootstrap.servers is missing",
		" , ":          "bootstrap.servers is missing",
		"localhost":    `"localhost" is not host:port`,
		"a:9092,b:x":   `"b:x" is not host:port`,
		":9092":        `":9092" is not host:port`,
		"a:0":          `"a:0" is not host:port`,
		"[::1]:9092":   "",
		"a:9092,b:909": "",
	} {
		_, err := CheckProperties(map[string]string{"bootstrap.servers": value})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: error %v, want …%s…", value, err, want)
		}
	}
}

func TestAllFaultsAtOnceAndNoPasswords(t *testing.T) {
	const secret = "gE7heim"
	_, err := CheckProperties(map[string]string{
		"acks": "0", "linger.ms": "x", "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN",
		"sasl.jaas.config": `org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="` + secret + `" x;`,
		"ssl.key.password": secret, "ssl.truststore.password": secret, "ssl.keystore.key": secret,
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"bootstrap.servers", "acks", "linger.ms", "an option has no ="} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not in: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), secret) {
		t.Errorf("password shown: %v", err)
	}
}

func TestParseJAAS(t *testing.T) {
	good := map[string]string{ // text: password
		`org.x.PlainLoginModule required username="u" password="p";`:                "p",
		"org.x.PlainLoginModule required\n  username=u\n  password='p q' ; ":        "p q",
		`org.x.PlainLoginModule required username="u" password="a\"b\\c=;'";`:       `a"b\c=;'`,
		`org.x.PlainLoginModule REQUIRED serviceName="k" username="u" password="";`: "",
	}
	for text, want := range good {
		login, err := parseJAAS(text)
		if err != nil || login.module != "org.x.PlainLoginModule" || login.options["username"] != "u" || login.options["password"] != want {
			t.Errorf("%s: %v, %v", text, login, err)
		}
	}
	for _, text := range []string{
		"", "x", "x required", "x required a=b", "x required a", "x required a b;", `x required a="b;`, "x required a=b; y", "x maybe;", "required;",
	} {
		if login, err := parseJAAS(text); err == nil {
			t.Errorf("%s: %v", text, login)
		}
	}
}

func TestCompression(t *testing.T) {
	for _, tt := range []struct {
		kind, level string
		want        kgo.CompressionCodec
	}{
		{"", "", kgo.NoCompression()},
		{"gzip", "", kgo.GzipCompression()},
		{"gzip", "9", kgo.GzipCompression().WithLevel(9)},
		{"snappy", "", kgo.SnappyCompression()},
		{"LZ4", "", kgo.Lz4Compression()},
		{"lz4", "17", kgo.Lz4Compression().WithLevel(9)},
		{"zstd", "3", kgo.ZstdCompression().WithLevel(3)},
	} {
		r := &propertyReader{properties: map[string]string{"compression.type": tt.kind, "compression." + strings.ToLower(tt.kind) + ".level": tt.level}}
		if got := r.compression(); got != tt.want || r.errs != nil {
			t.Errorf("%s %s: %v, %v", tt.kind, tt.level, got, r.errs)
		}
	}
}

// certificate makes a self-signed certificate for a name and gives it and its key in PEM.
func certificate(t *testing.T, name string) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTLS(t *testing.T) {
	cert, key := certificate(t, "broker.test")
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cert)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: roots})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	clients := make(chan int, 100)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if conn.(*tls.Conn).HandshakeContext(t.Context()) == nil {
				clients <- len(conn.(*tls.Conn).ConnectionState().PeerCertificates)
			}
			conn.Close()
		}
	}()
	trust, both := write(t, "trust.pem", cert), write(t, "both.pem", append(append([]byte{}, key...), cert...))
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	tests := []struct {
		name       string
		properties map[string]string
		host       string
		err        string
		client     int
	}{
		{name: "trusted", properties: map[string]string{"ssl.truststore.location": trust, "ssl.truststore.type": "PEM"}},
		{name: "inline", properties: map[string]string{"ssl.truststore.certificates": strings.ReplaceAll(string(cert), "\n", `\n`)}},
		{name: "client certificate", properties: map[string]string{"ssl.truststore.location": trust, "ssl.keystore.location": both}, client: 1},
		{name: "client certificate inline", properties: map[string]string{"ssl.truststore.location": trust, "ssl.keystore.certificate.chain": string(cert), "ssl.keystore.key": string(key)}, client: 1},
		{name: "not trusted", properties: map[string]string{}, err: "unknown authority"},
		{name: "other name", properties: map[string]string{"ssl.truststore.location": trust}, host: "127.0.0.1", err: "127.0.0.1"},
		{name: "other name unchecked", properties: map[string]string{"ssl.truststore.location": trust, "ssl.endpoint.identification.algorithm": ""}, host: "127.0.0.1"},
		{name: "unchecked name, not trusted", properties: map[string]string{"ssl.endpoint.identification.algorithm": ""}, host: "127.0.0.1", err: "unknown authority"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.properties["bootstrap.servers"] = "x:1"
			tt.properties["security.protocol"] = "SSL"
			s, _, err := readProperties(tt.properties)
			if err != nil {
				t.Fatal(err)
			}
			host := tt.host
			if host == "" {
				host = "broker.test"
			}
			local := func(network string) (net.Conn, error) { return net.Dial(network, "127.0.0.1:"+port) }
			dial := s.dialer(func(_ context.Context, network, _ string) (net.Conn, error) { return local(network) }, func() *tls.Config { return s.security.tls })
			conn, err := dial(t.Context(), "tcp", net.JoinHostPort(host, port))
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || Transient(err) {
					t.Fatalf("error %v (transient %v), want …%s…", err, Transient(err), tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := <-clients; got != tt.client {
				t.Errorf("%d client certificates, want %d", got, tt.client)
			}
			conn.Close()
		})
	}
}

func TestKeyStores(t *testing.T) {
	cert, _ := certificate(t, "x")
	for name, tt := range map[string]struct {
		properties map[string]string
		err        string
	}{
		"java key store": {map[string]string{"ssl.truststore.location": write(t, "trust.jks", []byte("\xfe\xed\xfe\xed\x00\x00"))}, "the JKS store is damaged"},
		"no certificate": {map[string]string{"ssl.truststore.location": write(t, "t.pem", pem.EncodeToMemory(&pem.Block{Type: "X", Bytes: []byte("x")}))}, "holds no certificate"},
		"encrypted key":  {map[string]string{"ssl.keystore.certificate.chain": string(cert), "ssl.keystore.key": string(pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("x")}))}, "private key is encrypted"},
		"no key":         {map[string]string{"ssl.keystore.certificate.chain": string(cert)}, "ssl.keystore.certificate.chain: it holds no private key"},
	} {
		tt.properties["bootstrap.servers"], tt.properties["security.protocol"] = "x:1", "SSL"
		if _, err := CheckProperties(tt.properties); err == nil || !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: error %v, want …%s…", name, err, tt.err)
		}
	}
}
