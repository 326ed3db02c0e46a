package it

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// testCA is an authority of a test, whose certificates and keys are PEM texts.
type testCA struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	PEM  string
}

func newTestCA(t testing.TB, name string) *testCA {
	t.Helper()
	ca := &testCA{}
	template := &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	ca.PEM, _ = ca.issue(t, template)
	return ca
}

// issue makes a certificate and its key; the first is the authority's own.
func (ca *testCA) issue(t testing.TB, template *x509.Certificate) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	parent, signer := ca.cert, ca.key
	if parent == nil {
		parent, signer = template, private
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &private.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	if ca.cert == nil {
		if ca.cert, err = x509.ParseCertificate(der); err != nil {
			t.Fatal(err)
		}
		ca.key = private
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}

// files is the part of a container's script that writes files.
func files(contents map[string]string) string {
	var b strings.Builder
	b.WriteString("mkdir -p /secure && chmod 755 /secure\n")
	for name, text := range contents {
		fmt.Fprintf(&b, "cat >/secure/%s <<'XFILE'\n%sXFILE\n", name, text)
	}
	return b.String()
}

// secureKafkaScript is a broker with a listener for tests and one with SASL_SSL, whose users are of SCRAM and of PLAIN.
const secureKafkaScript = `set -e
%[3]scd /tmp
cat >server.properties <<X
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:9095
listeners=DIRECT://0.0.0.0:9092,SECURE://0.0.0.0:9094,ITSELF://localhost:9093,CONTROLLER://localhost:9095
advertised.listeners=DIRECT://127.0.0.1:%[1]d,SECURE://localhost:%[2]d,ITSELF://localhost:9093
listener.security.protocol.map=DIRECT:PLAINTEXT,ITSELF:PLAINTEXT,SECURE:SASL_SSL,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=ITSELF
listener.name.secure.sasl.enabled.mechanisms=SCRAM-SHA-512,PLAIN
listener.name.secure.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.secure.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_tide="plain-secret";
listener.name.secure.ssl.keystore.type=PEM
listener.name.secure.ssl.keystore.location=/secure/broker.pem
log.dirs=/tmp/kafka-data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
auto.create.topics.enable=false
X
java -XX:TieredStopAtLevel=1 -cp '/opt/kafka/libs/*' kafka.tools.StorageTool format -t TidemarkTestTestTestTes -c server.properties --add-scram 'SCRAM-SHA-512=[name=tide,password=scram-secret]'
exec java -Xmx512m -XX:TieredStopAtLevel=1 -cp '/opt/kafka/libs/*' kafka.Kafka server.properties`

// secureServers are a MySQL and a Kafka with certificates of a test's authority.
type secureServers struct {
	*Rig
	ca, other    *testCA
	securePort   int    // of Kafka's listener with SASL_SSL
	folder       string // of what clients have
	trust, wrong string // trust stores that keytool made (JKS, password changeit): the authority's, and another's
	client       string // PEM with a certificate and key of the authority
	publicKey    string // MySQL's own, for passwords
}

func startSecureServers(t *testing.T) *secureServers {
	t.Helper()
	Binary(t)
	Image(t, "engine")
	s := &secureServers{ca: newTestCA(t, "Test CA"), other: newTestCA(t, "Another CA"), folder: t.TempDir(), securePort: freePort(t)}
	cert, key := s.ca.issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: "server"}, DNSNames: []string{"localhost"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	clientCert, clientKey := s.ca.issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: "tidemark"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	s.client = write(t, filepath.Join(s.folder, "client.pem"), []byte(clientKey+clientCert))

	m := &MySQL{Port: freePort(t)}
	flags := append([]string{"--ssl-ca=/secure/ca.pem", "--ssl-cert=/secure/cert.pem", "--ssl-key=/secure/key.pem"}, gtidFlags...)
	m.container = run(t, Image(t, "mysql"), files(map[string]string{"ca.pem": s.ca.PEM, "cert.pem": cert, "key.pem": key})+"chown -R mysql /secure\n"+
		fmt.Sprintf(mysqlScript, strings.Join(flags, " ")), map[int]int{3306: m.Port})
	k := &Kafka{Port: freePort(t)}
	k.container = run(t, Image(t, "kafka"), fmt.Sprintf(secureKafkaScript, k.Port, s.securePort,
		files(map[string]string{"broker.pem": key + cert, "ca.pem": s.ca.PEM, "other.pem": s.other.PEM})), map[int]int{9092: k.Port, 9094: s.securePort})
	s.Rig = &Rig{MySQL: m, Kafka: k}
	m.wait(t)
	k.wait(t)
	store := func(name string) string {
		text := k.container.output(t, "sh", "-c", "cd /secure && keytool -importcert -noprompt -alias ca -file "+name+".pem -keystore "+name+".jks -storetype JKS -storepass changeit >/dev/null 2>&1 && base64 "+name+".jks")
		data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
		if err != nil {
			t.Fatal(err)
		}
		return write(t, filepath.Join(s.folder, name+".jks"), data)
	}
	s.trust, s.wrong = store("ca"), store("other")
	s.publicKey = write(t, filepath.Join(s.folder, "public_key.pem"), []byte(m.container.output(t, "cat", "/data/public_key.pem")))
	return s
}

// schema runs the verb that only logs in to MySQL and asks, and returns what it says and its exit code.
func (s *secureServers) schema(t *testing.T, more Properties, flags ...string) (string, int) {
	t.Helper()
	config := TailConfig(s.MySQL, "secure", Properties{"database.hostname": "localhost"}).With(more).WriteConnector(t, filepath.Join(t.TempDir(), "c.json"), "c")
	p := Run(t, append([]string{"schema", "--log-level", "debug", "--config", config, "d.t"}, flags...)...)
	code := p.Wait(t, time.Minute)
	return p.Output(), code
}

// TestSecurityOnRealServers: TLS with an authority of one's own, client certificates, logins over plain and encrypted connections,
// stores of keytool's, secrets that are replaced while a connector runs, and that none of them is ever printed.
func TestSecurityOnRealServers(t *testing.T) {
	t.Parallel()
	s := startSecureServers(t)
	s.MySQL.Exec(t, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)",
		"CREATE USER cold1@'%' IDENTIFIED WITH caching_sha2_password BY 'cold-secret'", "CREATE USER cold2@'%' IDENTIFIED WITH caching_sha2_password BY 'cold-secret'",
		"CREATE USER cold3@'%' IDENTIFIED WITH caching_sha2_password BY 'cold-secret'", "CREATE USER cold4@'%' IDENTIFIED WITH caching_sha2_password BY 'cold-secret'",
		"CREATE USER certified@'%' IDENTIFIED BY 'certified-secret' REQUIRE X509",
		"CREATE USER rotated@'%' IDENTIFIED BY 'first-secret'",
		"GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO cold1@'%', cold2@'%', cold3@'%', cold4@'%', certified@'%', rotated@'%'")
	t.Run("MySQL", func(t *testing.T) { mysqlSecurity(t, s) })
	t.Run("Kafka", func(t *testing.T) { kafkaSecurity(t, s) })
	t.Run("password replaced while it runs", func(t *testing.T) { passwordReplaced(t, s) })
	t.Run("no secret is printed", func(t *testing.T) { noSecretIsPrinted(t, s) })
}

func mysqlSecurity(t *testing.T, s *secureServers) {
	trust := func(mode, store string) Properties {
		return Properties{"database.ssl.mode": mode, "database.ssl.truststore": store, "database.ssl.truststore.password": "changeit"}
	}
	as := func(user string) Properties {
		return Properties{"database.user": user, "database.password": strings.TrimRight(user, "1234") + "-secret"}
	}
	pemTrust := write(t, filepath.Join(s.folder, "ca.pem"), []byte(s.ca.PEM))
	for _, c := range []struct {
		name   string
		config Properties
		want   string // of the message; "": it works
	}{
		{"verify_identity", trust("verify_identity", s.trust), ""},
		{"verify_identity, another name", trust("verify_identity", s.trust).With(Properties{"database.hostname": "127.0.0.1"}), "is not for the name in database.hostname"},
		{"verify_identity, another authority", trust("verify_identity", s.wrong), "CN=server, from CN=Test CA"},
		{"verify_ca", trust("verify_ca", s.trust).With(Properties{"database.hostname": "127.0.0.1"}), ""},
		{"verify_ca in PEM", Properties{"database.ssl.mode": "verify_ca", "database.ssl.truststore": pemTrust}, ""},
		{"verify_ca, another authority", trust("verify_ca", s.wrong), "is from no trusted authority; name the authority's in database.ssl.truststore"},
		{"verify_ca, the system's authorities", Properties{"database.ssl.mode": "verify_ca"}, "is from no trusted authority"},
		{"required, another authority", trust("required", s.wrong), "is from no trusted authority"},
		{"required", Properties{"database.ssl.mode": "required"}, ""},
		{"preferred", Properties{"database.ssl.mode": "preferred"}, ""},
		{"a client's certificate", as("certified").With(trust("verify_identity", s.trust)).With(Properties{"database.ssl.keystore": s.client}), ""},
		{"no client's certificate", as("certified").With(trust("verify_identity", s.trust)), "an account that REQUIREs X509 needs the client's certificate in database.ssl.keystore"},
		{"plain, first login", as("cold1").With(Properties{"database.ssl.mode": "disabled"}), "driver.allowPublicKeyRetrieval=true"},
		{"plain, key allowed", as("cold2").With(Properties{"database.ssl.mode": "disabled", "driver.allowPublicKeyRetrieval": "true"}), ""},
		{"plain, after a first login", as("cold2").With(Properties{"database.ssl.mode": "disabled"}), ""},
		{"plain, key known", as("cold3").With(Properties{"database.ssl.mode": "disabled", "driver.serverRSAPublicKeyFile": s.publicKey}), ""},
		{"encrypted, first login", as("cold4"), ""},
	} {
		said, code := s.schema(t, c.config)
		if c.want == "" && (code != 0 || !strings.Contains(said, `"topic":"secure.d.t"`)) || c.want != "" && (code != 1 || !strings.Contains(said, c.want)) {
			t.Errorf("%s: code %d: %s", c.name, code, tail(said, 3))
		}
		if strings.Contains(said, "-secret") || strings.Contains(said, "changeit") {
			t.Errorf("%s: a secret is printed: %s", c.name, said)
		}
	}
}

// secure are a Kafka client's properties.
func (s *secureServers) secure(prefix, mechanism, password, store string) Properties {
	module := map[bool]string{true: "plain.PlainLoginModule", false: "scram.ScramLoginModule"}[mechanism == "PLAIN"]
	return Properties{
		prefix + "security.protocol": "SASL_SSL", prefix + "sasl.mechanism": mechanism,
		prefix + "sasl.jaas.config":        `org.apache.kafka.common.security.` + module + ` required username="tide" password="` + password + `";`,
		prefix + "ssl.truststore.location": store, prefix + "ssl.truststore.password": "changeit", prefix + "ssl.truststore.type": "JKS",
	}
}

func kafkaSecurity(t *testing.T, s *secureServers) {
	start := func(name, mechanism, password, store string) (*Connector, *Process) {
		c := s.Connector(t, name, "topic", `d\.t`)
		c.Worker["bootstrap.servers"] = net.JoinHostPort("localhost", strconv.Itoa(s.securePort))
		c.Worker = c.Worker.With(s.secure("", mechanism, password, store)).With(s.secure("producer.", mechanism, password, store))
		const history = "schema.history.internal."
		c.Config = c.Config.With(s.secure(history+"producer.", mechanism, password, store)).With(s.secure(history+"consumer.", mechanism, password, store)).
			With(Properties{history + "kafka.topic": "history-" + name, history + "kafka.bootstrap.servers": c.Worker["bootstrap.servers"], "database.ssl.mode": "required"})
		worker, connector := c.Files(t)
		return c, Run(t, "run", "--log-level", "debug", worker, connector)
	}
	for i, mechanism := range []string{"SCRAM-SHA-512", "PLAIN"} {
		password := map[string]string{"SCRAM-SHA-512": "scram-secret", "PLAIN": "plain-secret"}[mechanism]
		c, p := start("secure"+strings.ToLower(mechanism), mechanism, password, s.trust)
		p.Await(t, time.Minute, streaming)
		s.MySQL.Exec(t, fmt.Sprintf("INSERT INTO d.t VALUES (%d)", 100+i))
		eventually(t, time.Minute, "the row", func() error {
			if n := s.Kafka.Count(t, c.Prefix+".d.t"); n != 1 {
				return fmt.Errorf("%d records", n)
			}
			return nil
		})
		p.Terminate(t)
		if s.Kafka.Count(t, c.OffsetTopic()) == 0 {
			t.Errorf("%s: no offset", mechanism)
		}
		if said := p.Output(); strings.Contains(said, "-secret") || strings.Contains(said, "changeit") {
			t.Errorf("%s: a secret is printed: %s", mechanism, said)
		}
	}
	for name, bad := range map[string]struct{ password, store, want string }{
		"password":  {"wrong-secret", s.trust, `refuses the login of user \\?"tide`},
		"authority": {"scram-secret", s.wrong, `signed by an authority that is not trusted; name it in ssl.truststore.location`},
	} {
		_, p := start("bad"+name, "SCRAM-SHA-512", bad.password, bad.store)
		p.Await(t, time.Minute, bad.want)
		if code := p.Wait(t, time.Minute); code != 1 || strings.Contains(p.Output(), "-secret") {
			t.Errorf("%s: code %d: %s", name, code, tail(p.Output(), 5))
		}
	}
}

// passwordReplaced: the password stands in a file. When both it and MySQL's have changed and the connections are cut, the connector goes
// on; when MySQL's changes first, it waits for the file.
func passwordReplaced(t *testing.T, s *secureServers) {
	c := s.Connector(t, "rotated", "file", `d\.t`)
	secrets := filepath.Join(s.folder, "secrets.properties")
	put := func(password string) { write(t, secrets, []byte("mysql="+password+"\n")) }
	put("first-secret")
	c.Config = c.Config.With(Properties{"database.user": "rotated", "database.password": "${file:" + secrets + ":mysql}"})
	worker, connector := c.Files(t)
	p := Run(t, "run", "--log-level", "debug", worker, connector)
	p.Await(t, time.Minute, streaming)
	change := func(password string) {
		s.MySQL.Exec(t, "ALTER USER rotated@'%' IDENTIFIED BY '"+password+"'")
		for _, row := range s.MySQL.Query(t, "SELECT ID FROM information_schema.PROCESSLIST WHERE USER='rotated'") {
			s.MySQL.Exec(t, "KILL "+row[0])
		}
	}
	arrives := func(id int) {
		s.MySQL.Exec(t, fmt.Sprintf("INSERT INTO d.t VALUES (%d)", id))
		eventually(t, time.Minute, "the row after the change", func() error {
			if n := s.Kafka.Count(t, c.Prefix+".d.t"); n != int64(id-199) {
				return fmt.Errorf("%d records", n)
			}
			return nil
		})
	}
	put("other-secret")
	change("other-secret")
	arrives(200)
	change("second-secret")
	p.Await(t, time.Minute, "refuses the login of user 'rotated'")
	put("second-secret")
	arrives(201)
	p.Terminate(t)
	if said := p.Output(); strings.Contains(said, "-secret") || !strings.Contains(said, "interrupted") {
		t.Errorf("said: %s", said)
	}
}

// noSecretIsPrinted runs every verb, with configurations that work and many that fail, at debug level, and looks for canaries in all
// that they print.
func noSecretIsPrinted(t *testing.T, s *secureServers) {
	const canary = "s3cr3t-canary"
	gone := freePort(t)
	noise, err := net.Listen("tcp", "127.0.0.1:0") // neither MySQL nor Kafka
	if err != nil {
		t.Fatal(err)
	}
	defer noise.Close()
	go func() {
		for {
			conn, err := noise.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			conn.Close()
		}
	}()
	noisePort := noise.Addr().(*net.TCPAddr).Port
	secrets := write(t, filepath.Join(s.folder, "canary.properties"), []byte("x="+canary+"\n"))
	reference := "${file:" + secrets + ":x}"
	base := func(more Properties) (worker, connector Properties) {
		c := s.Connector(t, "canary", "file", `d\.t`)
		return c.Worker, c.Config.With(Properties{"database.password": canary}).With(more)
	}
	jaas := `org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="` + canary + `";`
	avro := Properties{"value.converter": "io.confluent.connect.avro.AvroConverter", "value.converter.schema.registry.url": fmt.Sprintf("http://u:%s@127.0.0.1:%d", canary, gone)}
	cases := map[string]struct{ worker, connector Properties }{
		"wrong password":         {},
		"from a provider":        {connector: Properties{"database.password": reference}},
		"in a wrong place":       {connector: Properties{"topic.prefix": reference + "/", "database.port": reference, "snapshot.mode": reference}},
		"no server":              {connector: Properties{"database.port": strconv.Itoa(gone)}},
		"not MySQL":              {connector: Properties{"database.port": strconv.Itoa(noisePort)}},
		"no Kafka":               {worker: Properties{"bootstrap.servers": fmt.Sprintf("127.0.0.1:%d", gone)}},
		"not Kafka":              {worker: Properties{"bootstrap.servers": fmt.Sprintf("127.0.0.1:%d", noisePort)}},
		"JAAS broken":            {connector: Properties{"producer.override.security.protocol": "SASL_SSL", "producer.override.sasl.mechanism": "PLAIN", "producer.override.sasl.jaas.config": jaas[:len(jaas)-2]}},
		"JAAS of another module": {worker: Properties{"producer.security.protocol": "SASL_SSL", "producer.sasl.mechanism": "PLAIN", "producer.sasl.jaas.config": jaas}},
		"JAAS refused":           {worker: Properties{"bootstrap.servers": fmt.Sprintf("localhost:%d", s.securePort)}.With(s.secure("producer.", "SCRAM-SHA-512", canary, s.trust))},
		"Kerberos":               {worker: Properties{"producer.security.protocol": "SASL_SSL", "producer.sasl.jaas.config": `com.sun.security.auth.module.Krb5LoginModule required password="` + canary + `";`}},
		"OAUTHBEARER down": {connector: Properties{
			"producer.override.security.protocol": "SASL_PLAINTEXT", "producer.override.sasl.mechanism": "OAUTHBEARER", "producer.override.sasl.oauthbearer.token.endpoint.url": fmt.Sprintf("http://127.0.0.1:%d/token", noisePort),
			"producer.override.sasl.jaas.config": `org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required clientId="me" clientSecret="` + canary + `";`,
		}},
		"store's password":     {connector: Properties{"database.ssl.truststore": s.trust, "database.ssl.truststore.password": canary}},
		"key store's password": {worker: Properties{"producer.security.protocol": "SSL", "producer.ssl.keystore.location": s.trust, "producer.ssl.keystore.password": canary, "producer.ssl.key.password": canary}},
		"PEM key":              {worker: Properties{"producer.security.protocol": "SSL", "producer.ssl.keystore.certificate.chain": "x", "producer.ssl.keystore.key": "-----BEGIN PRIVATE KEY-----" + canary}},
		"registry's login":     {connector: avro},
		"registry's user info": {connector: avro.With(Properties{"value.converter.basic.auth.credentials.source": "USER_INFO", "value.converter.basic.auth.user.info": canary})},
		"unknown keys":         {connector: Properties{"database.pasword": canary, "my.secret": canary, "producer.override.sasl.unknown": canary}},
		"driver":               {connector: Properties{"driver.trustCertificateKeyStorePassword": canary, "driver.password": canary}},
		"works, with a login":  {connector: Properties{"database.user": "rotated", "database.password": "second-secret", "value.converter.basic.auth.user.info": canary}},
	}
	look := func(name string, p *Process) {
		t.Helper()
		if said := p.Output(); strings.Contains(said, canary) || strings.Contains(said, "second-secret") {
			t.Errorf("%s: a secret is printed:\n%s", name, said)
		} else if said == "" {
			t.Errorf("%s: nothing is printed, so nothing is shown", name)
		}
	}
	var running []*Process
	var names []string
	count := 0
	flush := func() {
		finish(running)
		for i, p := range running {
			look(names[i], p)
		}
		count += len(running)
		running, names = nil, nil
	}
	start := func(name string, arguments ...string) {
		command := append([]string{"env", "TIDEMARK_PASSWORD=" + canary, Binary(t)}, append(arguments, "--log-level", "debug")...)
		running, names = append(running, Start(t, "tidemark", command...)), append(names, name)
		if len(running) == 8 {
			flush()
		}
	}
	for name, c := range cases {
		worker, connector := base(c.connector)
		folder := t.TempDir()
		w, j := worker.With(c.worker).WriteProperties(t, filepath.Join(folder, "w.properties")), connector.WriteConnector(t, filepath.Join(folder, "c.json"), "canary")
		start("run, "+name, "run", w, j)
		if c.connector != nil {
			start("tail, "+name, "tail", "--config", j)
			start("schema, "+name, "schema", "--config", j, "d.t")
		}
	}
	for name, text := range map[string]string{
		"json": `{"name":"x","config":{"database.password":"` + canary + `"`, "more json": `{"name":"x","config":{"database.password":["` + canary + `"]}}`, "properties": "database.password=" + canary + `\u00`,
	} {
		path := write(t, filepath.Join(t.TempDir(), "c.json"), []byte(text))
		start("run, broken "+name, "run", path)
		start("tail, broken "+name, "tail", "--config", path)
	}
	for _, url := range []string{
		fmt.Sprintf("mysql://tide:%s@127.0.0.1:%d/d", canary, s.MySQL.Port), fmt.Sprintf("mysql://tide@127.0.0.1:%d/d", s.MySQL.Port), "mysql://tide:" + canary + "@/d",
		"mysql://tide:" + canary + "@127.0.0.1:x/d", "postgres://tide:" + canary + "@h/d", "mysql://tide:" + canary + "%zz@h/d", "mysql://tide:" + canary + "#@h/d",
	} {
		start("tail of "+strings.ReplaceAll(url, canary, "…"), "tail", url)
		start("schema of "+strings.ReplaceAll(url, canary, "…"), "schema", url, "t")
	}
	registry := fmt.Sprintf("http://u:%s@127.0.0.1:%d", canary, gone)
	w, j := base(nil)
	folder := t.TempDir()
	worker, connector := w.WriteProperties(t, filepath.Join(folder, "w.properties")), j.WriteConnector(t, filepath.Join(folder, "c.json"), "canary")
	start("run with a registry", "run", worker, connector, "--registry", registry)
	start("tail with a registry", "tail", "--config", connector, "--registry", registry)
	start("demo with a registry", "demo", "--registry", registry)
	start("version", "version")
	flush()
	t.Logf("%d processes with %d configurations", count, len(cases))
}

// finish lets processes say what they have to say, and ends those that go on.
func finish(all []*Process) {
	enough := time.After(1500 * time.Millisecond)
	for _, p := range all {
		select {
		case <-p.done:
			continue
		case <-enough:
			enough = nil
		}
		break
	}
	for _, p := range all {
		_ = p.cmd.Process.Signal(os.Interrupt)
	}
	for _, p := range all {
		select {
		case <-p.done:
		case <-time.After(10 * time.Second):
			p.Kill()
		}
	}
}
