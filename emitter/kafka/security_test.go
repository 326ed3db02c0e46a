package kafka

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

const secretCanary = "s3cr3t-canary"

// stores are those of the package that reads them.
const stores = "../internal/keystore/testdata/"

// TestKafkaStoresByJavasNames: JKS, PKCS12 and PEM stores, with the passwords of store and key, and what their faults say.
func TestKafkaStoresByJavasNames(t *testing.T) {
	chain, key := text(t, stores+"chain.pem"), text(t, stores+"key-aes256.pem")
	for name, tt := range map[string]struct {
		properties       []string
		roots, chain     bool
		err, warning     string
		version, ciphers int
	}{
		"JKS trust store":             {[]string{"ssl.truststore.location", stores + "trust.jks", "ssl.truststore.password", "changeit", "ssl.truststore.type", "JKS"}, true, false, "", "", 0, 0},
		"PKCS12 trust store":          {[]string{"ssl.truststore.location", stores + "trust.p12", "ssl.truststore.password", "changeit", "ssl.truststore.type", "PKCS12"}, true, false, "", "", 0, 0},
		"PEM trust store":             {[]string{"ssl.truststore.location", stores + "ca.pem", "ssl.truststore.type", "PEM"}, true, false, "", "", 0, 0},
		"wrong password":              {[]string{"ssl.truststore.location", stores + "trust.jks", "ssl.truststore.password", secretCanary}, false, false, "ssl.truststore.location=" + stores + "trust.jks: the password is wrong, or the store is damaged (ssl.truststore.password)", "", 0, 0},
		"JKS key store":               {[]string{"ssl.keystore.location", stores + "key.jks", "ssl.keystore.password", "changeit", "ssl.key.password", "other-password"}, false, true, "", "", 0, 0},
		"wrong password of the key":   {[]string{"ssl.keystore.location", stores + "key.jks", "ssl.keystore.password", "changeit", "ssl.key.password", secretCanary}, false, false, "(ssl.keystore.password or ssl.key.password)", "", 0, 0},
		"PKCS12 key store":            {[]string{"ssl.keystore.location", stores + "key.p12", "ssl.keystore.password", "changeit", "ssl.keystore.type", "PKCS12"}, false, true, "", "", 0, 0},
		"PEM texts":                   {[]string{"ssl.keystore.type", "PEM", "ssl.keystore.certificate.chain", chain, "ssl.keystore.key", key, "ssl.key.password", "changeit", "ssl.truststore.certificates", chain, "ssl.truststore.type", "PEM"}, true, true, "", "", 0, 0},
		"PEM text with a wrong word":  {[]string{"ssl.keystore.certificate.chain", chain, "ssl.keystore.key", key, "ssl.key.password", secretCanary}, false, false, "(ssl.key.password)", "", 0, 0},
		"names not checked":           {[]string{"ssl.endpoint.identification.algorithm", ""}, false, false, "", "names in the brokers' certificates are not checked", 0, 0},
		"only TLS 1.2":                {[]string{"ssl.enabled.protocols", "TLSv1.2", "ssl.protocol", "TLSv1.2"}, false, false, "", "", tls.VersionTLS12, 0},
		"an old version":              {[]string{"ssl.protocol", "SSLv3"}, false, false, "ssl.protocol=SSLv3 is refused: versions of TLS before 1.2", "", 0, 0},
		"cipher suites":               {[]string{"ssl.cipher.suites", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"}, false, false, "", "", tls.VersionTLS12, 2},
		"a suite that is not safe":    {[]string{"ssl.cipher.suites", "TLS_RSA_WITH_RC4_128_SHA,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}, false, false, "", "TLS_RSA_WITH_RC4_128_SHA is not among the suites", tls.VersionTLS12, 1},
		"suites of no version chosen": {[]string{"ssl.cipher.suites", "TLS_AES_128_GCM_SHA256", "ssl.enabled.protocols", "TLSv1.2"}, false, false, "no suite for the versions", "three suites are all offered", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := map[string]string{"bootstrap.servers": "x:1", "security.protocol": "SSL"}
			for i := 0; i < len(tt.properties); i += 2 {
				p[tt.properties[i]] = tt.properties[i+1]
			}
			s, warnings, err := readProperties(p)
			said := fmt.Sprint(err, warnings)
			if tt.err == "" && err != nil || !strings.Contains(said, tt.err) || !strings.Contains(strings.Join(warnings, "\n"), tt.warning) || tt.warning == "" && len(warnings) > 0 {
				t.Fatalf("error %v, warnings %v", err, warnings)
			}
			if strings.Contains(said, secretCanary) || strings.Contains(said, "BEGIN") {
				t.Errorf("a secret is shown: %s", said)
			}
			if err != nil {
				return
			}
			cfg := s.security.tls
			if (cfg.RootCAs != nil) != tt.roots || (len(cfg.Certificates) == 1 && len(cfg.Certificates[0].Certificate) == 2) != tt.chain || len(cfg.CipherSuites) != tt.ciphers || int(cfg.MaxVersion) != tt.version {
				t.Errorf("roots %v, certificates %d, suites %v, version %x", cfg.RootCAs != nil, len(cfg.Certificates), cfg.CipherSuites, cfg.MaxVersion)
			}
		})
	}
}

func text(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func saslProperties(mechanism, jaas string, more ...string) map[string]string {
	p := map[string]string{"bootstrap.servers": "x:1", "security.protocol": "SASL_SSL", "sasl.mechanism": mechanism, "sasl.jaas.config": jaas}
	for i := 0; i < len(more); i += 2 {
		p[more[i]] = more[i+1]
	}
	return p
}

// TestSASLMechanisms: which there are, by the login modules of Java; what is refused says what to do instead.
func TestSASLMechanisms(t *testing.T) {
	const (
		plainModule = `org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="` + secretCanary + `";`
		scramModule = `org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="` + secretCanary + `";`
		oauthModule = `org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required clientId="me" clientSecret="` + secretCanary + `" scope="a b" extension_logicalCluster="lkc-1";`
		handlers    = "org.apache.kafka.common.security.oauthbearer."
	)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("a.b.c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		properties         map[string]string
		user, err, warning string
	}{
		"PLAIN":                         {saslProperties("PLAIN", plainModule), "u", "", ""},
		"PLAIN that anybody can read":   {saslProperties("PLAIN", plainModule, "security.protocol", "SASL_PLAINTEXT"), "u", "", "whoever listens on the network reads the login"},
		"SCRAM-SHA-256":                 {saslProperties("SCRAM-SHA-256", scramModule), "u", "", ""},
		"SCRAM-SHA-512":                 {saslProperties("SCRAM-SHA-512", scramModule, "security.protocol", "SASL_PLAINTEXT"), "u", "", ""},
		"comments":                      {saslProperties("PLAIN", "/* a ; */ "+strings.Replace(plainModule, "required", "required // x = ;\n", 1)), "u", "", ""},
		"a password in a wrong place":   {saslProperties("PLAIN", secretCanary+" required;"), "", "names another module, but sasl.mechanism=PLAIN needs PlainLoginModule", ""},
		"too long":                      {saslProperties("PLAIN", plainModule+strings.Repeat(" ", mostJAAS)), "", "it has more than", ""},
		"two modules":                   {saslProperties("PLAIN", plainModule+scramModule), "", "something follows after the ;", ""},
		"GSSAPI":                        {saslProperties("GSSAPI", `com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true;`), "", "sasl.mechanism=GSSAPI: Kerberos is not supported. Use SCRAM-SHA-512: add it to sasl.enabled.mechanisms", ""},
		"GSSAPI by default":             {saslProperties("", ""), "", "Java's default is GSSAPI: Kerberos is not supported. Use SCRAM-SHA-512", ""},
		"OAUTHBEARER":                   {saslProperties("OAUTHBEARER", oauthModule, tokenURL, "https://idp.example/token", loginHandler, handlers+"OAuthBearerLoginCallbackHandler"), "me", "", ""},
		"OAUTHBEARER, older handler":    {saslProperties("OAUTHBEARER", oauthModule, tokenURL, "https://idp.example/token", loginHandler, handlers+"secured.OAuthBearerLoginCallbackHandler"), "me", "", ""},
		"OAUTHBEARER by properties":     {saslProperties("OAUTHBEARER", handlers+"OAuthBearerLoginModule required;", tokenURL, "https://idp.example/token", clientIDName, "me", clientKeyName, secretCanary, "sasl.oauthbearer.scope", "a"), "me", "", ""},
		"OAUTHBEARER over http":         {saslProperties("OAUTHBEARER", oauthModule, tokenURL, "http://idp.example/token"), "me", "", "reads the client's secret"},
		"OAUTHBEARER, any endpoint":     {saslProperties("OAUTHBEARER", strings.Replace(oauthModule, ";", ` ssl.endpoint.identification.algorithm="";`, 1), tokenURL, "https://idp.example/token"), "me", "", "sasl.jaas.config: ssl.endpoint.identification.algorithm is empty"},
		"OAUTHBEARER, file of a host":   {saslProperties("OAUTHBEARER", handlers+"OAuthBearerLoginModule required;", tokenURL, "file://x"+token), "", "file:///path", ""},
		"OAUTHBEARER without a secret":  {saslProperties("OAUTHBEARER", handlers+`OAuthBearerLoginModule required clientId="me";`, tokenURL, "https://idp.example/token"), "", "needs clientId and clientSecret", ""},
		"OAUTHBEARER with a token file": {saslProperties("OAUTHBEARER", handlers+"OAuthBearerLoginModule required;", tokenURL, "file://"+token), "(token in " + token + ")", "", ""},
		"OAUTHBEARER without the file":  {saslProperties("OAUTHBEARER", handlers+"OAuthBearerLoginModule required;", tokenURL, "file:///does/not/exist"), "", "no such file", ""},
		"OAUTHBEARER, a user in it":     {saslProperties("OAUTHBEARER", oauthModule, tokenURL, "https://u:"+secretCanary+"@idp.example/token"), "", "without a user in it", ""},
		"unsecured by default":          {saslProperties("OAUTHBEARER", oauthModule), "", "without it Java makes unsecured tokens, which anybody can make: name a token endpoint", ""},
		"unsecured by its handler":      {saslProperties("OAUTHBEARER", oauthModule, tokenURL, "https://idp.example/token", loginHandler, handlers+unsecured), "", "unsecured tokens", ""},
		"unsecured by a claim":          {saslProperties("OAUTHBEARER", handlers+`OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="admin";`), "", "unsecured token, which anybody can make", ""},
		"an assertion":                  {saslProperties("OAUTHBEARER", oauthModule, tokenURL, "https://idp.example/token", "sasl.oauthbearer.assertion.private.key.file", "/x"), "", "logging in with an assertion is not supported", ""},
		"a handler of one's own":        {saslProperties("OAUTHBEARER", oauthModule, tokenURL, "https://idp.example/token", loginHandler, "com.example.Mine"), "", "it names Java code", ""},
		"AWS_MSK_IAM":                   {saslProperties("AWS_MSK_IAM", "software.amazon.msk.auth.iam.IAMLoginModule required;", "sasl.client.callback.handler.class", "software.amazon.msk.auth.iam.IAMClientCallbackHandler"), "(AWS IAM)", "", ""},
		"AWS_MSK_IAM with a profile":    {saslProperties("AWS_MSK_IAM", `software.amazon.msk.auth.iam.IAMLoginModule required awsProfileName="prod";`), "(AWS IAM)", "", ""},
		"AWS_MSK_IAM with a role":       {saslProperties("AWS_MSK_IAM", `software.amazon.msk.auth.iam.IAMLoginModule required awsRoleArn="arn:aws:iam::1:role/x";`), "", "awsRoleArn is not supported: let the role come from", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, warnings, err := readProperties(tt.properties)
			said := fmt.Sprint(err, warnings)
			if tt.err == "" && err != nil || !strings.Contains(said, tt.err) || !strings.Contains(strings.Join(warnings, "\n"), tt.warning) || tt.warning == "" && len(warnings) > 0 {
				t.Fatalf("error %v, warnings %v", err, warnings)
			}
			if err == nil && (s.user != tt.user || s.security.sasl.Name() != strings.ToUpper(tt.properties["sasl.mechanism"])) {
				t.Errorf("user %q, %v", s.user, s.security.sasl.Name())
			}
			if strings.Contains(said, secretCanary) {
				t.Errorf("a secret is shown: %s", said)
			}
			if _, err := CheckConsumerProperties(tt.properties); (err != nil) != (tt.err != "") {
				t.Errorf("as a consumer's: %v", err)
			}
		})
	}
}

// first is what a mechanism says first to a broker.
func first(ctx context.Context, t *testing.T, s settings) (string, error) {
	t.Helper()
	_, text, err := s.security.sasl.Authenticate(ctx, "b-1.cluster.kafka.eu-west-1.amazonaws.com:9098")
	return string(text), err
}

// TestOAuthBearerFetchesAndKeepsTokens is about client credentials: what is asked for, how long a token serves, and what a refusal says.
func TestOAuthBearerFetchesAndKeepsTokens(t *testing.T) {
	var asked atomic.Int32
	var answer atomic.Value
	answer.Store("200 " + `{"access_token":"T1","expires_in":3600}`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		id, secret, _ := r.BasicAuth()
		if id != "me" || secret != secretCanary || r.FormValue("grant_type") != "client_credentials" || r.FormValue("scope") != "a b" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		status, body, _ := strings.Cut(answer.Load().(string), " ")
		if status == "302" {
			w.Header().Set("Location", "http://127.0.0.1:1/")
		}
		var code int
		fmt.Sscan(status, &code)
		w.WriteHeader(code)
		io.WriteString(w, body)
	}))
	defer server.Close()
	s, _, err := readProperties(saslProperties("OAUTHBEARER", `x.OAuthBearerLoginModule required clientId="me" clientSecret="`+secretCanary+`" scope="a b" extension_logicalCluster="lkc-1";`, tokenURL, server.URL))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if text, err := first(t.Context(), t, s); err != nil || text != "n,,\x01auth=Bearer T1\x01logicalCluster=lkc-1\x01\x01" {
			t.Fatalf("%q, %v", text, err)
		}
	}
	if asked.Load() != 1 {
		t.Errorf("%d requests for two logins", asked.Load())
	}
	s.security.tokens.forget()
	for _, tt := range []struct {
		answer    string
		transient bool
		want      string
	}{
		{`401 {"error":"invalid_client"}`, false, "HTTP status 401 (invalid_client)"},
		{`400 {"error":"` + secretCanary + `"}`, false, "HTTP status 400; check clientId"},
		{`503 down`, true, "HTTP status 503"},
		{`302 moved`, false, "HTTP status 302"},
		{`200 <html>`, false, "without an access_token"},
		{`200 {"access_token":"a\u0001b"}`, false, "without an access_token"},
		{`200 {"access_token":"` + strings.Repeat("x", mostToken) + `"}`, false, "without an access_token"},
	} {
		answer.Store(tt.answer)
		_, err := first(t.Context(), t, s)
		if err == nil || Transient(err) != tt.transient || !strings.Contains(explain(err, "me"), tt.want) || strings.Contains(explain(err, "me")+err.Error(), secretCanary) {
			t.Errorf("%.60s: transient %v, %v", tt.answer, Transient(err), err)
		}
	}
	// A token that says itself when it expires, and one that does not say: that serves one login.
	claims := base64.RawURLEncoding.EncodeToString([]byte(fmt.Sprintf(`{"exp":%d}`, time.Now().Add(time.Hour).Unix())))
	for token, want := range map[string]int32{"h." + claims + ".s": 1, "opaque": 2} {
		answer.Store(`200 {"access_token":"` + token + `"}`)
		s.security.tokens.forget()
		asked.Store(0)
		for range 2 {
			if _, err := first(t.Context(), t, s); err != nil {
				t.Fatal(err)
			}
		}
		if asked.Load() != want {
			t.Errorf("%s: %d requests for two logins, want %d", token, asked.Load(), want)
		}
	}
	server.Close()
	s.security.tokens.forget()
	if _, err := first(t.Context(), t, s); !Transient(err) || strings.Contains(err.Error(), secretCanary) {
		t.Errorf("endpoint down: %v", err)
	}
}

// TestOAuthBearerTokenFile: the file is read at each login.
func TestOAuthBearerTokenFile(t *testing.T) {
	path := write(t, "token", []byte("T1"))
	s, _, err := readProperties(saslProperties("OAUTHBEARER", "x.OAuthBearerLoginModule required;", tokenURL, "file://"+path))
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{"T1", "T2"} {
		if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if text, err := first(t.Context(), t, s); err != nil || !strings.Contains(text, "Bearer "+token+"\x01") {
			t.Errorf("%q, %v", text, err)
		}
	}
}

// TestAWSCredentialsFromTheUsualPlaces goes through them in their order.
func TestAWSCredentialsFromTheUsualPlaces(t *testing.T) {
	until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		credentials := func(key string) {
			fmt.Fprintf(w, `{"AccessKeyId":%q,"SecretAccessKey":"s","Token":"t","Expiration":%q}`, key, until)
		}
		switch {
		case r.URL.Path == "/sts" && r.FormValue("WebIdentityToken") == "web-token" && r.FormValue("RoleArn") == "arn":
			fmt.Fprintf(w, `<R><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>WEB</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>%s</Expiration></Credentials></AssumeRoleWithWebIdentityResult></R>`, until)
		case r.URL.Path == "/container" && r.Header.Get("Authorization") == "pod-token":
			credentials("POD")
		case r.URL.Path == "/latest/api/token" && r.Method == http.MethodPut:
			io.WriteString(w, "imds-token")
		case r.Header.Get("X-aws-ec2-metadata-token") != "imds-token":
			w.WriteHeader(http.StatusUnauthorized)
		case strings.HasSuffix(r.URL.Path, "/security-credentials/"):
			io.WriteString(w, "the-role\n")
		case strings.HasSuffix(r.URL.Path, "/security-credentials/the-role"):
			credentials("INSTANCE")
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	web, pod := write(t, "web", []byte("web-token\n")), write(t, "pod", []byte("pod-token\n"))
	file := write(t, "credentials", []byte("[default]\naws_access_key_id = FILE\naws_secret_access_key = "+secretCanary+"\n# x\n[prod]\naws_access_key_id=PROD\naws_secret_access_key=s\naws_session_token=t\n[role]\nrole_arn=x\n"))
	for name, tt := range map[string]struct {
		env     map[string]string
		profile string
		key     string
		err     string
	}{
		"environment":      {map[string]string{"AWS_ACCESS_KEY_ID": "ENV", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SHARED_CREDENTIALS_FILE": file}, "", "ENV", ""},
		"profile":          {map[string]string{"AWS_ACCESS_KEY_ID": "ENV", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SHARED_CREDENTIALS_FILE": file}, "prod", "PROD", ""},
		"AWS_PROFILE":      {map[string]string{"AWS_PROFILE": "prod", "AWS_SHARED_CREDENTIALS_FILE": file}, "", "PROD", ""},
		"file":             {map[string]string{"AWS_SHARED_CREDENTIALS_FILE": file}, "", "FILE", ""},
		"no profile":       {map[string]string{"AWS_SHARED_CREDENTIALS_FILE": file}, "none", "", "has no profile none"},
		"a role's":         {map[string]string{"AWS_SHARED_CREDENTIALS_FILE": file}, "role", "", "roles and single sign-on in profiles are not supported"},
		"web identity":     {map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": web, "AWS_ROLE_ARN": "arn", "AWS_ENDPOINT_URL_STS": server.URL + "/sts"}, "", "WEB", ""},
		"container":        {map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": server.URL + "/container", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": pod}, "", "POD", ""},
		"container far":    {map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://evil.example/"}, "", "", "neither https nor an address of this container"},
		"container bad":    {map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": server.URL + "/none"}, "", "", "HTTP status 401"},
		"instance":         {nil, "", "INSTANCE", ""},
		"nothing, by rule": {map[string]string{"AWS_EC2_METADATA_DISABLED": "true"}, "", "", "there are none in AWS_ACCESS_KEY_ID"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &awsChain{env: func(name string) string { return tt.env[name] }, metadata: server.URL}
			got, err := c.get(t.Context(), tt.profile)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), secretCanary) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil || got.key != tt.key {
				t.Fatalf("%q, %v", got.key, err)
			}
			before := asked
			if again, err := c.get(t.Context(), tt.profile); err != nil || again != got || asked != before {
				t.Errorf("again: %v, %d requests", err, asked-before)
			}
		})
	}
	s, _, err := readProperties(saslProperties("AWS_MSK_IAM", "software.amazon.msk.auth.iam.IAMLoginModule required;"))
	if err != nil {
		t.Fatal(err)
	}
	s.security.aws.env = func(name string) string {
		return map[string]string{"AWS_ACCESS_KEY_ID": "ENV", "AWS_SECRET_ACCESS_KEY": secretCanary}[name]
	}
	said, err := first(t.Context(), t, s)
	if err != nil || !strings.Contains(said, `"x-amz-credential":"ENV/`) || !strings.Contains(said, "/eu-west-1/kafka-cluster/") || strings.Contains(said, secretCanary) {
		t.Errorf("%s, %v", said, err)
	}
}

// TestSASLSecretsAreReadAtEachLogin: a password that was replaced in its place serves the next connection, and while the broker has
// the new one and the place the old, the client waits.
func TestSASLSecretsAreReadAtEachLogin(t *testing.T) {
	cluster := newCluster(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "u", "old"))
	var password atomic.Value
	password.Store("old")
	secured := func() map[string]string {
		return properties(cluster, "security.protocol", "SASL_PLAINTEXT", "sasl.mechanism", "PLAIN", "connections.max.idle.ms", "1000",
			"sasl.jaas.config", `x.PlainLoginModule required username="u" password="`+password.Load().(string)+`";`)
	}
	cluster.ControlKey(int16(kmsg.SASLAuthenticate), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if strings.HasSuffix(string(req.(*kmsg.SASLAuthenticateRequest).SASLAuthBytes), "old") {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		resp.ErrorCode = kerr.SaslAuthenticationFailed.Code
		return resp, nil, true
	})
	core, seen := observer.New(zapcore.DebugLevel)
	var broken atomic.Bool
	var connections []net.Conn
	var mu sync.Mutex
	client := open(t, ClientConfig{
		Properties: secured(), Log: zap.New(core),
		Reread: func() (map[string]string, error) {
			if broken.Load() {
				return nil, errors.New("the file is away")
			}
			return secured(), nil
		},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			mu.Lock()
			defer mu.Unlock()
			connections = append(connections, conn)
			return conn, err
		},
	})
	anew := func() error { // asks after all connections have ended, as with a broker that restarts
		mu.Lock()
		for _, c := range connections {
			c.Close()
		}
		connections = nil
		mu.Unlock()
		var err error
		for range 20 {
			if err = client.Ping(t.Context()); err == nil || errors.Is(err, kerr.SaslAuthenticationFailed) {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		return err
	}
	password.Store("wrong")
	if err := anew(); err == nil || client.inner.Transient(err) {
		t.Fatalf("a wrong password at the start: %v", err)
	}
	password.Store("old")
	if err := anew(); err != nil {
		t.Fatal(err)
	}
	password.Store("wrong")
	if err := anew(); err == nil || !client.inner.Transient(err) || Transient(err) {
		t.Fatalf("a wrong password: %v", err)
	}
	password.Store("old")
	if err := anew(); err != nil {
		t.Fatal(err)
	}
	broken.Store(true) // what was read last stays in use
	if err := anew(); err != nil {
		t.Fatal(err)
	}
	if n := seen.FilterMessageSnippet("cannot be read again").Len(); n != 1 {
		t.Errorf("said %d times", n)
	}
}

// TestCertificatesAreReadAtEachConnection: a trust store and a client's certificate that were replaced count for the next connection;
// while the two sides do not agree, a client that was connected waits.
func TestCertificatesAreReadAtEachConnection(t *testing.T) {
	cert, key := certificate(t, "127.0.0.1")
	other, _ := certificate(t, "127.0.0.1")
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	var shown atomic.Int32
	cluster := newCluster(t, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequestClientCert, VerifyConnection: func(s tls.ConnectionState) error {
		shown.Store(int32(len(s.PeerCertificates)))
		return nil
	}}))
	trust, own := write(t, "trust.pem", cert), write(t, "own.pem", append(append([]byte{}, key...), cert...))
	var connections []net.Conn
	var mu sync.Mutex
	client := open(t, ClientConfig{
		Properties: properties(cluster, "security.protocol", "SSL", "ssl.truststore.location", trust, "ssl.keystore.location", own, "ssl.endpoint.identification.algorithm", ""),
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			mu.Lock()
			defer mu.Unlock()
			connections = append(connections, conn)
			return conn, err
		},
	})
	anew := func() error {
		mu.Lock()
		for _, c := range connections {
			c.Close()
		}
		connections = nil
		mu.Unlock()
		var err error
		for range 20 {
			if err = client.Ping(t.Context()); err == nil || aboutTLS(err) {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		return err
	}
	put := func(path string, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(trust, other)
	if err := anew(); !aboutTLS(err) || client.inner.Transient(err) {
		t.Fatalf("at the start: %v", err)
	}
	put(trust, cert)
	if err := anew(); err != nil || shown.Load() != 1 {
		t.Fatal(err, shown.Load())
	}
	put(trust, other)
	if err := anew(); !aboutTLS(err) || !client.inner.Transient(err) {
		t.Fatalf("another authority: %v", err)
	}
	put(trust, []byte("half a file")) // the last that could be read stays
	if err := anew(); !aboutTLS(err) {
		t.Fatalf("half a file: %v", err)
	}
	put(trust, append(append([]byte{}, other...), cert...))
	if err := anew(); err != nil {
		t.Fatal(err)
	}
}

// FuzzJAAS holds that no text makes a panic, that no error shows it, and that what is read is read in the same way again.
func FuzzJAAS(f *testing.F) {
	for _, text := range []string{
		`org.x.PlainLoginModule required username="u" password="a\"b";`, "x required a=b /* c */ ; // d", `x required a="`, "x required a=/*", "x //", `x optional a='\`,
		"x required " + strings.Repeat("a=b ", 1000) + ";",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		login, err := parseJAAS(text)
		if err != nil {
			if len(text) > 20 && strings.Contains(err.Error(), text) {
				t.Errorf("the error shows the text: %v", err)
			}
			return
		}
		var again strings.Builder
		again.WriteString(login.module + " required")
		for name, value := range login.options {
			again.WriteString(" " + name + `="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`)
		}
		if login.module == "" || strings.ContainsAny(login.module+strings.Join(keys(login.options), ""), "\"'/ \\\t\r\n=;*") {
			return // was quoted
		}
		second, err := parseJAAS(again.String() + ";")
		if err != nil || len(second.options) != len(login.options) {
			t.Fatalf("%q: %v", again.String(), err)
		}
		for name, value := range login.options {
			if second.options[name] != value {
				t.Errorf("%s: %q and %q", name, value, second.options[name])
			}
		}
	})
}

func keys(m map[string]string) []string {
	var all []string
	for k := range m {
		all = append(all, k)
	}
	return all
}
