package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const stores = "../../../emitter/internal/keystore/testdata/"

// TestMySQLStores: trust and key stores of JKS, PKCS12 and PEM for MySQL, and what is said of their faults.
func TestMySQLStores(t *testing.T) {
	absolute := func(name string) string {
		path, err := filepath.Abs(stores + name)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	const canary = "s3cret-canary"
	for name, tt := range map[string]struct {
		settings     []string
		roots, chain bool
		want         string // of the faults or warnings
	}{
		"JKS":                        {[]string{"database.ssl.mode=verify_ca", "database.ssl.truststore=" + absolute("trust.jks"), "database.ssl.truststore.password=changeit"}, true, false, ""},
		"PKCS12":                     {[]string{"database.ssl.mode=verify_identity", "database.ssl.truststore=" + absolute("trust.p12"), "database.ssl.truststore.password=changeit", "database.ssl.keystore=" + absolute("key.p12"), "database.ssl.keystore.password=changeit"}, true, true, ""},
		"PEM":                        {[]string{"database.ssl.mode=required", "database.ssl.truststore=" + absolute("ca.pem")}, true, false, ""},
		"key store alone":            {[]string{"database.ssl.keystore=" + absolute("key-java.p12"), "database.ssl.keystore.password=changeit"}, false, true, ""},
		"wrong password":             {[]string{"database.ssl.truststore=" + absolute("trust.jks"), "database.ssl.truststore.password=" + canary}, false, false, "database.ssl.truststore: " + absolute("trust.jks") + ": the password is wrong, or the store is damaged (database.ssl.truststore.password)"},
		"wrong password of the key":  {[]string{"database.ssl.keystore=" + absolute("key.jks"), "database.ssl.keystore.password=changeit"}, false, false, "(database.ssl.keystore.password)"},
		"no key":                     {[]string{"database.ssl.keystore=" + absolute("trust.jks")}, false, false, "database.ssl.keystore: " + absolute("trust.jks") + ": the JKS store holds no private key"},
		"disabled":                   {[]string{"database.ssl.mode=disabled", "database.ssl.truststore=/none"}, false, false, "database.ssl.truststore: has no effect with database.ssl.mode=disabled"},
		"clear password, not secure": {[]string{"database.cleartext.password=true", "database.ssl.mode=required"}, false, false, "database.cleartext.password: true needs database.ssl.mode=verify_identity or verify_ca"},
		"clear password, any server": {[]string{"database.cleartext.password=true", "database.ssl.mode=verify_ca"}, false, false, "database.cleartext.password: true with database.ssl.mode=verify_ca needs database.ssl.truststore"},
		"clear password":             {[]string{"database.cleartext.password=true", "database.ssl.mode=verify_identity"}, false, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := load(t, workerText, connectorJSON(tt.settings...))
			said := fmt.Sprint(err)
			if err == nil {
				said = fmt.Sprint(cfg.Warnings)
			}
			if !strings.Contains(said, tt.want) || tt.want == "" && said != "[]" || strings.Contains(said, canary) {
				t.Fatal(said)
			}
			if err != nil {
				return
			}
			c := cfg.Connectors[0]
			if (c.TLS != nil) != (tt.roots || tt.chain) || c.CleartextPassword != (name == "clear password") {
				t.Fatalf("TLS %v, clear password %v", c.TLS != nil, c.CleartextPassword)
			}
			if c.TLS == nil {
				return
			}
			got, err := c.TLS()
			if err != nil || (got.RootCAs != nil) != tt.roots || (len(got.Certificates) == 1) != tt.chain {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

// TestClientSecurityAtEachLevel: a mistake in a login is found at the start wherever a Kafka client is configured, under its own key.
func TestClientSecurityAtEachLevel(t *testing.T) {
	const canary = "s3cret-canary"
	login := func(prefix string) []string {
		return []string{
			prefix + "security.protocol=SASL_SSL", prefix + "sasl.mechanism=SCRAM-SHA-512",
			prefix + "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username=\"u\" password=\"" + canary + "\";",
		}
	}
	const history = "schema.history.internal."
	topic := []string{history + "kafka.topic=h", history + "kafka.bootstrap.servers=h:1"}
	for key, tt := range map[string]struct{ worker, connector []string }{
		"sasl.jaas.config":                    {worker: login("")},
		"producer.sasl.jaas.config":           {worker: login("producer.")},
		"producer.override.sasl.jaas.config":  {connector: login("producer.override.")},
		history + "producer.sasl.jaas.config": {connector: append(login(history+"producer."), topic...)},
		history + "consumer.sasl.jaas.config": {connector: append(login(history+"consumer."), topic...)},
		"admin.override.sasl.jaas.config":     {connector: login("admin.override.")},
	} {
		_, err := load(t, workerText+strings.Join(tt.worker, "\n")+"\n", connectorJSON(tt.connector...))
		if err == nil || !slices.Contains(keysOf(err), key) || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v", key, err)
		}
		if want := "names PlainLoginModule, but sasl.mechanism=SCRAM-SHA-512 needs ScramLoginModule"; !strings.HasPrefix(key, "admin") && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", key, err)
		}
	}
	// Signals are not read: their channel is refused, and its settings have no meaning, as those of other signals.
	_, err := load(t, workerText, connectorJSON(append(login("signal.consumer."), "signal.enabled.channels=kafka", "signal.kafka.topic=s")...))
	if got := keysOf(err); !slices.Equal(got, []string{"signal.enabled.channels"}) || strings.Contains(err.Error(), canary) {
		t.Errorf("signals: %v", err)
	}
}

// TestSecretsAreHiddenInMessages: by the names of keys, Debezium's among them, by what providers gave, and by what a value looks like.
func TestSecretsAreHiddenInMessages(t *testing.T) {
	const canary = "s3cret-canary"
	t.Setenv("CANARY", canary)
	for _, name := range []string{
		"x.secret", "x.password", "x.sasl.jaas.config", "x.basic.auth.user.info", "x.registry.auth.client-secret", "x.credentials.json", "x.connectionstring",
		"x.connection.string", "my.token", "ssl.keystore.key", "ssl.key.password", "aws.access.key",
	} {
		if p := (&Property{Name: name}); p.shown(canary) != hidden {
			t.Errorf("%s: %s", name, p.shown(canary))
		}
	}
	p := &Property{Name: "some.url"}
	if got := p.shown("https://u:" + canary + "@host/x"); got != `"https://********@host/x"` {
		t.Error(got)
	}
	if got := p.shown("-----BEGIN PRIVATE KEY-----\n" + canary); got != `"`+hidden+`"` {
		t.Error(got)
	}
	for _, setting := range []string{
		"topic.prefix=${env:CANARY}/", "database.port=${env:CANARY}", "snapshot.mode=${env:CANARY}", "database.server.id=${env:CANARY}", "table.include.list=[${env:CANARY}",
		"transforms=${env:CANARY}", "offsets.storage.topic=${env:CANARY}/", "value.converter=${env:CANARY}", "message.key.columns=${env:CANARY}",
		"heartbeat.interval.ms=${env:CANARY}", "producer.override.linger.ms=${env:CANARY}", "producer.override.security.protocol=SASL_SSL\nproducer.override.sasl.mechanism=${env:CANARY}", "start.position=${env:CANARY}",
		"producer.override.partitioner.class=${env:CANARY}", "database.ssl.truststore=/${env:CANARY}",
		"value.converter=io.confluent.connect.avro.AvroConverter\nvalue.converter.schema.registry.url=ftp://u:" + canary + "@host",
		"producer.override.security.protocol=SASL_SSL\nproducer.override.sasl.mechanism=PLAIN\nproducer.override.sasl.jaas.config=" + canary,
	} {
		_, err := load(t, workerText, connectorJSON(strings.Split(setting, "\n")...))
		if err == nil {
			t.Errorf("%s: no error", setting)
		} else if strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v", setting, err)
		}
	}
}
