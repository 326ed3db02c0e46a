package config

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestTLSConfig connects to a server whose certificate is for example.com and 127.0.0.1.
func TestTLSConfig(t *testing.T) {
	cert, both, _ := pemFiles(t)
	certText, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	bothText, err := os.ReadFile(both)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(strconv.Itoa(len(r.TLS.PeerCertificates)) + tls.VersionName(r.TLS.Version)))
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	defer server.Close()
	inline := strings.NewReplacer("\n", `\n`)
	trusted := "schema.registry.ssl.truststore.location=" + cert
	for _, test := range []struct {
		name     string
		host     string
		settings []string
		want     string // certificates of the client and version, or a part of the error
	}{
		{"trusted", "", []string{trusted}, "0TLS 1.3"},
		{"inline", "", []string{"schema.registry.ssl.truststore.certificates=" + inline.Replace(string(certText))}, "0TLS 1.3"},
		{"not trusted", "", []string{"schema.registry.ssl.enabled.protocols=TLSv1.3"}, "unknown authority"},
		{"version", "", []string{trusted, "schema.registry.ssl.enabled.protocols=TLSv1.2"}, "0TLS 1.2"},
		{"client", "", []string{trusted, "schema.registry.ssl.keystore.location=" + both}, "1TLS 1.3"},
		{"client inline", "", []string{trusted, "schema.registry.ssl.keystore.certificate.chain=" + inline.Replace(string(certText)), "schema.registry.ssl.keystore.key=" + inline.Replace(string(bothText))}, "1TLS 1.3"},
		{"other name", "localhost", []string{trusted}, "not localhost"},
		{"other name unchecked", "localhost", []string{trusted, "schema.registry.ssl.endpoint.identification.algorithm="}, "0TLS 1.3"},
		{"unchecked, not trusted", "localhost", []string{"schema.registry.ssl.endpoint.identification.algorithm=none"}, "unknown authority"},
	} {
		t.Run(test.name, func(t *testing.T) {
			changes := avroChanges(confluentConverter)
			for _, s := range test.settings {
				changes = append(changes, "value.converter."+s)
			}
			cfg, err := loadConnector(t, changes...).Value.Avro.TLSConfig()
			if err != nil {
				t.Fatal(err)
			}
			address := server.URL
			if test.host != "" {
				address = strings.Replace(address, "127.0.0.1", test.host, 1)
			}
			client := http.Client{Transport: &http.Transport{TLSClientConfig: cfg, DisableKeepAlives: true}}
			answer, err := client.Get(address)
			if err != nil {
				if !strings.Contains(err.Error(), test.want) {
					t.Errorf("%v, want %s", err, test.want)
				}
				return
			}
			defer answer.Body.Close()
			body := make([]byte, 100)
			n, _ := answer.Body.Read(body)
			if got := string(body[:n]); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}

	if cfg, err := new(Avro).TLSConfig(); cfg != nil || err != nil {
		t.Errorf("without settings: %v %v", cfg, err)
	}
	// Files may change between Load and their use.
	garbage := write(t, map[string]string{"x.pem": "x"})[0]
	for _, a := range []Avro{
		{SSL: map[string]Secret{"ssl.truststore.location": "/nonexistent.pem"}},
		{SSL: map[string]Secret{"ssl.truststore.location": Secret(garbage)}},
		{SSL: map[string]Secret{"ssl.keystore.location": "/nonexistent.pem"}},
		{SSL: map[string]Secret{"ssl.keystore.location": Secret(garbage)}},
		{SSL: map[string]Secret{"ssl.keystore.certificate.chain": Secret(certText), "ssl.keystore.location": "/nonexistent.pem"}},
	} {
		if _, err := a.TLSConfig(); err == nil || !strings.HasPrefix(err.Error(), "ssl.") {
			t.Errorf("%d settings: %v", len(a.SSL), err)
		}
	}
}
