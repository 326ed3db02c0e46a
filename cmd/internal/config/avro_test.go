package config

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// confluentDefaults is what Confluent's converter with no other setting than the URL is.
func confluentDefaults(urls ...string) *Avro {
	return &Avro{URLs: urls, Strategy: TopicStrategy, AutoRegister: true, ConnectTimeout: time.Minute, ReadTimeout: time.Minute}
}

// apicurioDefaults is what Apicurio's converter is with no other settings than the URL and ids before the record.
func apicurioDefaults() *Avro {
	return &Avro{
		Apicurio: true, ApicurioKeys: true, URLs: []string{"http://r:8080/apis/registry/v2"}, Strategy: TopicStrategy, Wide: true,
		ConnectTimeout: time.Minute, ReadTimeout: time.Minute,
	}
}

// avroChanges are keys for connectorJSON that make the value's converter Confluent's or Apicurio's; settings are without
// the prefix value.converter.
func avroChanges(class string, settings ...string) []string {
	changes := []string{"value.converter=" + class}
	switch class {
	case confluentConverter:
		changes = append(changes, "value.converter.schema.registry.url=http://r:8081")
	case apicurioConverter:
		changes = append(changes, "value.converter.apicurio.registry.url=http://r:8080", "value.converter.apicurio.registry.headers.enabled=false")
	}
	for _, s := range settings {
		if rest, removed := strings.CutPrefix(s, "-"); removed {
			changes = append(changes, "-value.converter."+rest)
		} else {
			changes = append(changes, "value.converter."+s)
		}
	}
	return changes
}

// title names a test by its keys: values are kept out of file names, which are in messages.
func title(class string, settings []string) string {
	words := []string{strings.TrimSuffix(class, ".AvroConverter")}
	for _, s := range settings {
		key, _, _ := strings.Cut(s, "=")
		words = append(words, key)
	}
	return strings.Join(words, " ")
}

// pemFiles writes a certificate with its key, as a server of the standard library has it, and a Java key store's beginning.
func pemFiles(t *testing.T) (cert, both, jks string) {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	pair := server.TLS.Certificates[0]
	certText := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	dir := t.TempDir()
	cert, both, jks = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "both.pem"), filepath.Join(dir, "trust.jks")
	for path, text := range map[string][]byte{cert: certText, both: slices.Concat(key, certText), jks: []byte("\xfe\xed\xfe\xed\x00\x00")} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, both, jks
}

// TestAvroSettings: what each setting makes of the defaults.
func TestAvroSettings(t *testing.T) {
	cert, both, _ := pemFiles(t)
	confluent := func(change func(a *Avro)) Converter {
		a := confluentDefaults("http://r:8081")
		change(a)
		return Converter{Avro: a}
	}
	apicurio := func(change func(a *Avro)) Converter {
		a := apicurioDefaults()
		change(a)
		return Converter{Avro: a}
	}
	same := func(*Avro) {}
	for _, test := range []struct {
		class    string
		settings []string
		want     Converter
		warnings []string // parts of the warnings, in their order
	}{
		{confluentConverter, nil, confluent(same), nil},
		{confluentConverter, []string{"connect.meta.data=false"}, confluent(func(a *Avro) { a.NoMeta = true }), nil},
		{confluentConverter, []string{"scrub.invalid.names=true"}, confluent(func(a *Avro) { a.Scrub = true }), nil},
		{confluentConverter, []string{"ignore.default.for.nullables=TRUE"}, confluent(func(a *Avro) { a.IgnoreDefaults = true }), nil},
		{confluentConverter, []string{"auto.register.schemas=false"}, confluent(func(a *Avro) { a.AutoRegister = false }), nil},
		{confluentConverter, []string{"auto.register.schemas=false", "use.latest.version=true", "latest.compatibility.strict=false"}, confluent(func(a *Avro) { a.AutoRegister, a.UseLatest = false, true }), []string{"value.converter.latest.compatibility.strict: accepted, without meaning here"}},
		{confluentConverter, []string{"use.latest.version=true"}, confluent(same), []string{"value.converter.use.latest.version: has no effect beside auto.register.schemas=true"}},
		{confluentConverter, []string{"normalize.schemas=true"}, confluent(func(a *Avro) { a.Normalize = true }), nil},

		{confluentConverter, []string{"value.subject.name.strategy=" + confluentSubjects + "TopicNameStrategy"}, confluent(same), nil},
		{confluentConverter, []string{"value.subject.name.strategy=" + confluentSubjects + "RecordNameStrategy"}, confluent(func(a *Avro) { a.Strategy = RecordStrategy }), nil},
		{confluentConverter, []string{"value.subject.name.strategy=" + confluentSubjects + "TopicRecordNameStrategy"}, confluent(func(a *Avro) { a.Strategy = TopicRecordStrategy }), nil},
		{confluentConverter, []string{"key.subject.name.strategy=" + confluentSubjects + "RecordNameStrategy"}, confluent(same), nil}, // not this side
		{confluentConverter, []string{"subject.name.strategy.fallback.type=record"}, confluent(func(a *Avro) { a.Strategy = RecordStrategy }), nil},
		{confluentConverter, []string{"subject.name.strategy.fallback.type=TOPIC_RECORD"}, confluent(func(a *Avro) { a.Strategy = TopicRecordStrategy }), nil},
		{confluentConverter, []string{"subject.name.strategy.fallback.type=RECORD", "value.subject.name.strategy=" + confluentSubjects + "TopicNameStrategy"}, confluent(same), nil},
		{confluentConverter, []string{"subject.name.strategy.kafka.cluster.id=c"}, confluent(same), []string{"accepted, without effect: Associations"}},

		{confluentConverter, []string{"schema.registry.url= http://a:1/ ,https://b/registry//,HTTP://[::1]:2"}, confluent(func(a *Avro) { a.URLs = []string{"http://a:1", "https://b/registry", "http://[::1]:2"} }), nil},
		{confluentConverter, []string{"http.connect.timeout.ms=1500", "schema.registry.http.read.timeout.ms=0"}, confluent(func(a *Avro) { a.ConnectTimeout, a.ReadTimeout = 1500*time.Millisecond, 0 }), nil},
		{confluentConverter, []string{"schema.registry.http.connect.timeout.ms=1", "http.connect.timeout.ms=2"}, confluent(func(a *Avro) { a.ConnectTimeout = time.Millisecond }), nil},
		{confluentConverter, []string{"proxy.host=p", "proxy.port=3128"}, confluent(func(a *Avro) { a.Proxy = "p:3128" }), nil},
		{confluentConverter, []string{"schema.registry.proxy.host=::1", "schema.registry.proxy.port=3128"}, confluent(func(a *Avro) { a.Proxy = "[::1]:3128" }), nil},
		{confluentConverter, []string{"proxy.host=p"}, confluent(same), []string{"proxy.host: has no effect without proxy.port"}},
		{confluentConverter, []string{"proxy.port=1"}, confluent(same), []string{"proxy.port: has no effect without proxy.host"}},

		{confluentConverter, []string{"schema.registry.url=http://u:p%40:x@a:1,http://u:p%40:x@b"}, confluent(func(a *Avro) {
			a.URLs, a.User, a.Password, a.LoginOfURL = []string{"http://a:1", "http://b"}, "u", "p%40:x", true
		}), nil},
		{confluentConverter, []string{"schema.registry.url=http://u:p@a:1", "basic.auth.credentials.source=url"}, confluent(func(a *Avro) { a.URLs, a.User, a.Password, a.LoginOfURL = []string{"http://a:1"}, "u", "p", true }), nil},
		{confluentConverter, []string{"basic.auth.credentials.source=USER_INFO", "basic.auth.user.info=u:p:x "}, confluent(func(a *Avro) { a.User, a.Password = "u", "p:x " }), nil},
		{confluentConverter, []string{"schema.registry.basic.auth.credentials.source=USER_INFO", "schema.registry.basic.auth.user.info=u:1", "basic.auth.user.info=u:2"}, confluent(func(a *Avro) { a.User, a.Password = "u", "1" }), nil},
		{confluentConverter, []string{"basic.auth.user.info=u:s3cret-canary"}, confluent(same), []string{"basic.auth.user.info: has no effect without value.converter.basic.auth.credentials.source=USER_INFO"}},
		{confluentConverter, []string{"bearer.auth.credentials.source=static_token", "bearer.auth.token= t "}, confluent(func(a *Avro) { a.Token = "t" }), nil},
		{confluentConverter, []string{"bearer.auth.token=s3cret-canary"}, confluent(same), []string{"bearer.auth.token: has no effect without value.converter.bearer.auth.credentials.source=STATIC_TOKEN"}},
		{confluentConverter, []string{"schema.registry.url=http://u:s3cret-canary@a:1", "bearer.auth.credentials.source=STATIC_TOKEN", "bearer.auth.token=t"}, confluent(func(a *Avro) { a.URLs, a.Token = []string{"http://a:1"}, "t" }), []string{"the user in the URL has no effect beside value.converter.bearer.auth.credentials.source"}},

		{confluentConverter, []string{"schema.registry.ssl.truststore.location=" + cert, "schema.registry.ssl.truststore.type=PEM", "schema.registry.ssl.keystore.location=" + both, "schema.registry.ssl.endpoint.identification.algorithm=https"}, confluent(func(a *Avro) {
			a.SSL = map[string]Secret{"ssl.truststore.location": Secret(cert), "ssl.truststore.type": "PEM", "ssl.keystore.location": Secret(both)}
		}), nil},
		{confluentConverter, []string{"schema.registry.ssl.endpoint.identification.algorithm="}, confluent(func(a *Avro) { a.SSL = map[string]Secret{"ssl.endpoint.identification.algorithm": ""} }), []string{`it is "": the names in the registry's certificates are not checked`}},
		{confluentConverter, []string{"schema.registry.ssl.endpoint.identification.algorithm=none"}, confluent(func(a *Avro) { a.SSL = map[string]Secret{"ssl.endpoint.identification.algorithm": ""} }), []string{`it is "none"`}},
		{confluentConverter, []string{"schema.registry.ssl.keymanager.algorithm=X"}, confluent(func(a *Avro) { a.SSL = map[string]Secret{"ssl.keymanager.algorithm": "X"} }), []string{"value.converter.schema.registry.ssl.keymanager.algorithm: has no effect"}},
		{confluentConverter, []string{"ssl.truststore.location=/x"}, confluent(same), []string{"value.converter.ssl.truststore.location: accepted, without effect: The converter takes the settings of TLS with schema.registry."}},

		{confluentConverter, []string{"enhanced.avro.schema.support=true", "max.retries=9", "rule.metrics.enable=true"}, confluent(same), []string{"value.converter.enhanced.avro.schema.support, value.converter.max.retries: accepted, without meaning here"}},
		{confluentConverter, []string{"schemas.enable=false"}, confluent(same), []string{"value.converter.schemas.enable: has no effect: Confluent's AvroConverter does not know it"}},
		{confluentConverter, []string{"decimal.format=NUMERIC"}, confluent(same), []string{"value.converter.decimal.format: has no effect: Confluent's AvroConverter does not know it"}},
		{confluentConverter, []string{"apicurio.registry.headers.enabled=true"}, confluent(same), []string{"value.converter.apicurio.registry.headers.enabled: has no effect: Confluent's AvroConverter does not know it"}},
		{confluentConverter, []string{"auto.register.schema=false"}, confluent(same), []string{"value.converter.auto.register.schema: unknown, it has no effect; the nearest known key is value.converter.auto.register.schemas"}},
		{"AvroConverter", []string{"schema.registry.url=http://r:8081"}, confluent(same), nil},
		{"Avro", []string{"schema.registry.url=http://r:8081"}, confluent(same), nil},
		{"AvroConverter", []string{"apicurio.registry.url=http://r:8080/apis/registry/v2/", "apicurio.registry.headers.enabled=false"}, apicurio(same), nil},

		{apicurioConverter, nil, apicurio(same), nil},
		{apicurioConverter, []string{"connect.meta.data=false"}, apicurio(func(a *Avro) { a.NoMeta = true }), nil},
		{apicurioConverter, []string{"ignore.default.for.nullables=true"}, apicurio(same), []string{"ignore.default.for.nullables: has no effect: Apicurio's AvroConverter does not know it"}},
		{apicurioConverter, []string{"apicurio.registry.as-confluent=true"}, apicurio(func(a *Avro) { a.Wide = false }), nil},
		{apicurioConverter, []string{"apicurio.registry.id-handler=" + apicurioNarrowID}, apicurio(func(a *Avro) { a.Wide = false }), nil},
		{apicurioConverter, []string{"apicurio.registry.id-handler=" + apicurioWideID, "apicurio.registry.as-confluent=true"}, apicurio(func(a *Avro) { a.Wide = false }), nil},
		{apicurioConverter, []string{"apicurio.registry.use-id=contentId"}, apicurio(func(a *Avro) { a.ContentID = true }), nil},
		{apicurioConverter, []string{"apicurio.registry.auto-register=true", "apicurio.registry.find-latest=true"}, apicurio(func(a *Avro) { a.AutoRegister = true }), nil},
		{apicurioConverter, []string{"apicurio.registry.find-latest=true"}, apicurio(func(a *Avro) { a.UseLatest = true }), nil},
		{apicurioConverter, []string{"apicurio.registry.artifact-resolver-strategy=" + apicurioRecordID, "apicurio.registry.artifact.group-id=g"}, apicurio(func(a *Avro) { a.Strategy, a.Group = RecordStrategy, "g" }), nil},
		{apicurioConverter, []string{"apicurio.auth.username=u", "apicurio.auth.password=p"}, apicurio(func(a *Avro) { a.User, a.Password = "u", "p" }), nil},
		{apicurioConverter, []string{"apicurio.registry.request.ssl.truststore.location=" + cert, "apicurio.rest.request.ssl.keystore.location=" + both}, apicurio(func(a *Avro) {
			a.SSL = map[string]Secret{"ssl.truststore.location": Secret(cert), "ssl.keystore.location": Secret(both)}
		}), nil},
		{apicurioConverter, []string{"apicurio.rest.request.ssl.ca-bundle.location=" + cert}, apicurio(func(a *Avro) { a.SSL = map[string]Secret{"ssl.truststore.location": Secret(cert)} }), nil},
		{apicurioConverter, []string{"schema.registry.url=http://x"}, apicurio(same), []string{"schema.registry.url: has no effect: Apicurio's AvroConverter does not know it"}},
	} {
		t.Run(title(test.class, test.settings), func(t *testing.T) {
			cfg, err := load(t, workerText, connectorJSON(avroChanges(test.class, test.settings...)...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, cfg.Connectors[0].Value); diff != "" {
				t.Errorf("converter (-want +got):\n%s", diff)
			}
			var got []string
			for _, w := range cfg.Warnings {
				got = append(got, w.String())
			}
			if text := strings.Join(got, "\n"); len(got) != len(test.warnings) || strings.Contains(text, "s3cret") {
				t.Fatalf("warnings %q, want %q", got, test.warnings)
			}
			for i, part := range test.warnings {
				if !strings.Contains(got[i], part) {
					t.Errorf("warning %q, want %q", got[i], part)
				}
			}
		})
	}
}

// TestAvroRefused: what is refused, by which name.
func TestAvroRefused(t *testing.T) {
	cert, _, jks := pemFiles(t)
	const a = "apicurio.registry."
	for _, test := range []struct {
		class    string
		settings string // separated by blanks
		want     string // key without value.converter., and the beginning of the text
	}{
		{confluentConverter, "-schema.registry.url", "schema.registry.url: missing; it is the URL of the schema registry"},
		{confluentConverter, "schema.registry.url=registry:8081", `schema.registry.url: "registry:8081" is not a URL that begins with http://`},
		{confluentConverter, "schema.registry.url=ftp://r", `schema.registry.url: "ftp://r" is not a URL`},
		{confluentConverter, "schema.registry.url=http://", `schema.registry.url: "http://" names no host`},
		{confluentConverter, "schema.registry.url=http://r:0", `schema.registry.url: "http://r:0" has a port that is none`},
		{confluentConverter, "schema.registry.url=http://r:8081?x=y", `schema.registry.url: "http://r:8081?x=y" has a ? or # part`},
		{confluentConverter, "schema.registry.url=mock://x", `schema.registry.url: "mock://x" is for tests within Java; to try Avro out`},
		{confluentConverter, "schema.registry.url=http://u:s3cret/canary@h", "schema.registry.url: number 1 of its URLs is not a URL"},
		{confluentConverter, "schema.registry.url=http://u:s3cret@a,http://u:s3cret2@b", "schema.registry.url: its URLs differ in user or password"},
		{confluentConverter, "value.subject.name.strategy=" + confluentSubjects + "AssociatedNameStrategy", `value.subject.name.strategy: "io.confluent.kafka.serializers.subject.AssociatedNameStrategy" is not built yet; there are`},
		{confluentConverter, "value.subject.name.strategy=com.example.Mine", `value.subject.name.strategy: "com.example.Mine" is not built yet; there are`},
		{confluentConverter, "subject.name.strategy.fallback.type=NONE", `subject.name.strategy.fallback.type: "NONE" is not built yet`},
		{confluentConverter, "value.schema.id.serializer=io.confluent.kafka.serializers.schema.id.HeaderSchemaIdSerializer", `value.schema.id.serializer: "io.confluent.kafka.serializers.schema.id.HeaderSchemaIdSerializer" is not built yet`},
		{confluentConverter, "context.name.strategy=a.B", `context.name.strategy: "a.B" is not built yet`},
		{confluentConverter, "use.schema.id=7", `use.schema.id: "7" is not built yet`},
		{confluentConverter, "use.schema.guid=7", `use.schema.guid: "7" is not built yet`},
		{confluentConverter, "use.latest.with.metadata=a=b", `use.latest.with.metadata: "a=b" is not built yet`},
		{confluentConverter, "propagate.schema.tags=true", `propagate.schema.tags: "true" is not built yet`},
		{confluentConverter, "schema.format=resolved", `schema.format: "resolved" is not built yet`},
		{confluentConverter, "discard.type.doc.default=true", `discard.type.doc.default: "true" is not built yet`},
		{confluentConverter, "rule.executors=encrypt", `rule.executors: "encrypt" is not built yet`},
		{confluentConverter, "rule.executors._default_.param.secret.access.key=s3cret", "rule.executors._default_.param.secret.access.key: ******** is not built yet"},
		{confluentConverter, "rule.actions=dlq", `rule.actions: "dlq" is not built yet`},
		{confluentConverter, "rule.actions.dlq.class=x", "rule.actions.dlq.class: ******** is not built yet"},
		{confluentConverter, "validation.rules.execution=AFTER_DOMAIN_RULES", `validation.rules.execution: "AFTER_DOMAIN_RULES" is not built yet`},
		{confluentConverter, "request.header.Authorization=s3cret", "request.header.Authorization: ******** is not built yet"},
		{confluentConverter, "basic.auth.credentials.source=SASL_INHERIT", `basic.auth.credentials.source: "SASL_INHERIT" is not built yet`},
		{confluentConverter, "basic.auth.credentials.source=NONE", "basic.auth.credentials.source: ******** is not allowed; it must be one of URL, USER_INFO, SASL_INHERIT"},
		{confluentConverter, "basic.auth.credentials.source=USER_INFO", "basic.auth.user.info: missing beside value.converter.basic.auth.credentials.source"},
		{confluentConverter, "basic.auth.credentials.source=USER_INFO basic.auth.user.info=s3cret", "basic.auth.user.info: it is not of the form user:password"},
		{confluentConverter, "basic.auth.credentials.source=URL bearer.auth.credentials.source=STATIC_TOKEN", "bearer.auth.credentials.source: set beside value.converter.basic.auth.credentials.source"},
		{confluentConverter, "bearer.auth.credentials.source=STATIC_TOKEN", "bearer.auth.token: missing beside value.converter.bearer.auth.credentials.source"},
		{confluentConverter, "bearer.auth.credentials.source=OAUTHBEARER bearer.auth.client.secret=s3cret", `bearer.auth.credentials.source: "OAUTHBEARER" is not built yet`},
		{confluentConverter, "bearer.auth.credentials.source=SASL_OAUTHBEARER_INHERIT", `bearer.auth.credentials.source: "SASL_OAUTHBEARER_INHERIT" is not built yet`},
		{confluentConverter, "bearer.auth.credentials.source=UAMI", `bearer.auth.credentials.source: "UAMI" is not built yet`},
		{confluentConverter, "schema.registry.bearer.auth.credentials.source=CUSTOM", `schema.registry.bearer.auth.credentials.source: "CUSTOM" is not built yet`},
		{confluentConverter, "bearer.auth.logical.cluster=lsrc-1", `bearer.auth.logical.cluster: "lsrc-1" is not built yet`},
		{confluentConverter, "bearer.auth.identity.pool.id=pool-1", `bearer.auth.identity.pool.id: "pool-1" is not built yet`},
		{confluentConverter, "proxy.host=http://p proxy.port=1", "proxy.host: it must be the name or address of the proxy alone"},
		{confluentConverter, "http.read.timeout.ms=-1", `http.read.timeout.ms: "-1" is not allowed`},
		{confluentConverter, "schema.registry.ssl.truststore.location=" + jks + " schema.registry.ssl.truststore.password=s3cret", "schema.registry.ssl.truststore.location: " + jks + ": the JKS store is damaged"},
		{confluentConverter, "schema.registry.ssl.keystore.location=/nonexistent.pem", "schema.registry.ssl.keystore.location: open /nonexistent.pem: "},
		{confluentConverter, "schema.registry.ssl.keystore.location=" + cert, "schema.registry.ssl.keystore.location: " + cert + ": it holds no private key in PEM"},
		{confluentConverter, "schema.registry.ssl.foo=x", "schema.registry.ssl.foo: is unknown, and it seems to be about security"},
		{confluentConverter, "schema.registry.ssl.endpoint.identification.algorithm=ldap", `schema.registry.ssl.endpoint.identification.algorithm: "ldap" is not allowed; it must be https`},

		{apicurioConverter, "-" + a + "url", a + "url: missing; it is the URL of the schema registry"},
		{apicurioConverter, a + "url=http://a,http://b", a + "url: it must be one URL"},
		{apicurioConverter, a + "url=http://u:s3cret@a", a + "url: has a user in it, which Apicurio's converter does not use; set value.converter.apicurio.auth.username"},
		{apicurioConverter, a + "headers.enabled=true", a + "headers.enabled: true makes the converter write ids into headers, which is not built yet. Set it to false"},
		{apicurioConverter, a + "url=http://r/apis/ccompat/v7", a + "url: is that of the interface that is like Confluent's registry, whose ids have four bytes; set value.converter.apicurio.registry.as-confluent=true"},
		{apicurioConverter, a + "id-handler=com.example.Ids", a + `id-handler: "com.example.Ids" is not built; there are`},
		{apicurioConverter, a + "use-id=artifactId", a + `use-id: "artifactId" is not allowed; it must be one of globalId, contentId`},
		{apicurioConverter, a + "auto-register.if-exists=RETURN", a + `auto-register.if-exists: "RETURN" is not built yet`},
		{apicurioConverter, a + "artifact-resolver-strategy=io.apicurio.registry.serde.strategy.SimpleTopicIdStrategy", a + `artifact-resolver-strategy: "io.apicurio.registry.serde.strategy.SimpleTopicIdStrategy" is not built yet; there are`},
		{apicurioConverter, a + "artifact-resolver-strategy=io.apicurio.registry.serde.avro.strategy.RecordIdStrategy", a + `artifact-resolver-strategy: "io.apicurio.registry.serde.avro.strategy.RecordIdStrategy" is not built yet; there are`},
		{apicurioConverter, a + "artifact.artifact-id=x", a + `artifact.artifact-id: "x" is not built yet`},
		{apicurioConverter, a + "artifact.version=1", a + `artifact.version: "1" is not built yet`},
		{apicurioConverter, a + "dereference-schema=false", a + `dereference-schema: "false" is not built yet`},
		{apicurioConverter, a + "avro.encoding=JSON", a + `avro.encoding: "JSON" is not built yet`},
		{apicurioConverter, a + "avro-datum-provider=a.B", a + `avro-datum-provider: "a.B" is not built yet`},
		{apicurioConverter, a + "schema-resolver=a.B", a + `schema-resolver: "a.B" is not built yet`},
		{apicurioConverter, a + "converter.serializer=a.B", a + `converter.serializer: "a.B" is not built yet`},
		{apicurioConverter, a + "client.disable-auto-basepath-append=true", a + `client.disable-auto-basepath-append: "true" is not built yet`},
		{apicurioConverter, a + "rest.client.auto-base-path=/api", a + `rest.client.auto-base-path: "/api" is not built yet`},
		{apicurioConverter, a + "request.headers.Authorization=s3cret", a + "request.headers.Authorization: ******** is not built yet"},
		{apicurioConverter, "apicurio.rest.request.headers.X=s3cret", "apicurio.rest.request.headers.X: ******** is not built yet"},
		{apicurioConverter, "apicurio.auth.username=u", "apicurio.auth.password: missing beside value.converter.apicurio.auth.username"},
		{apicurioConverter, "apicurio.auth.service.token.endpoint=http://k apicurio.auth.client.secret=s3cret", `apicurio.auth.service.token.endpoint: ******** is not built yet`},
		{apicurioConverter, "apicurio.auth.service.url=http://k", `apicurio.auth.service.url: "http://k" is not built yet`},
		{apicurioConverter, a + "request.ssl.truststore.location=" + jks, a + "request.ssl.truststore.location: " + jks + ": the JKS store is damaged"},
		{apicurioConverter, "apicurio.rest.request.ssl.ca-bundle.location=/nonexistent.pem", "apicurio.rest.request.ssl.ca-bundle.location: open /nonexistent.pem: "},
	} {
		t.Run(title(test.class, strings.Fields(test.settings)), func(t *testing.T) {
			_, err := load(t, workerText, connectorJSON(avroChanges(test.class, strings.Fields(test.settings)...)...))
			if err == nil {
				t.Fatal("no error")
			}
			if strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "canary") {
				t.Errorf("a secret is in %v", err)
			}
			_, text, _ := strings.Cut(err.Error(), ": ") // the file
			if !strings.HasPrefix(text, "value.converter."+test.want) || len(keysOf(err)) != 1 {
				t.Errorf("%d faults:\n %s\nwant\n value.converter.%s…", len(keysOf(err)), text, test.want)
			}
		})
	}
}

// TestURLSecrets: a comma in a password makes several URLs of one, none of which may be shown.
func TestURLSecrets(t *testing.T) {
	_, err := load(t, workerText, connectorJSON(avroChanges(confluentConverter, "schema.registry.url=http://a,http://u:s3cret,canary@h")...))
	if len(keysOf(err)) != 2 || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "canary") ||
		!strings.Contains(err.Error(), "number 2 of its URLs") || !strings.Contains(err.Error(), "number 3 of its URLs") {
		t.Error(err)
	}
}

// TestAvroLenient: --lenient goes on without what is not built, but not where security hangs on it.
func TestAvroLenient(t *testing.T) {
	open := func(changes ...string) (*Connector, []Warning, error) {
		return LoadTail(write(t, map[string]string{"c.json": connectorJSON(changes...)})[0], Options{Lenient: true})
	}
	c, warnings, err := open(avroChanges(apicurioConverter, "-apicurio.registry.headers.enabled", "apicurio.registry.avro.encoding=JSON")...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(apicurioDefaults(), c.Value.Avro); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(warnings) != 2 || !strings.Contains(fmt.Sprint(warnings), "headers.enabled: is not set, and its default in Apicurio's converter is true") {
		t.Errorf("warnings %v", warnings)
	}
	for _, setting := range []string{"rule.executors=x", "request.header.X=y", "basic.auth.credentials.source=SASL_INHERIT", "bearer.auth.credentials.source=CUSTOM", "bearer.auth.logical.cluster=x"} {
		if _, _, err := open(avroChanges(confluentConverter, setting)...); err == nil || !strings.Contains(err.Error(), "--lenient does not ignore it") {
			t.Errorf("%s: %v", setting, err)
		}
	}
}

// TestApicurioAsConfluent: with four bytes the interface that is like Confluent's registry may be named, too.
func TestApicurioAsConfluent(t *testing.T) {
	changes := avroChanges(apicurioConverter, "apicurio.registry.as-confluent=true", "apicurio.registry.url=http://r:8080/apis/ccompat/v7/")
	cfg, err := load(t, workerText, connectorJSON(changes...))
	if err != nil {
		t.Fatal(err)
	}
	if a := cfg.Connectors[0].Value.Avro; !a.LikeConfluent || a.Wide || len(a.URLs) != 1 || a.URLs[0] != "http://r:8080/apis/ccompat/v7" {
		t.Errorf("%+v", a)
	}
}

// TestAvroWithoutMeaning: settings of Avro do nothing beside other converters, not even malformed ones.
func TestAvroWithoutMeaning(t *testing.T) {
	cfg, err := load(t, workerText, connectorJSON("value.converter="+jsonConverter, "value.converter.rule.executors=x", "value.converter.max.retries=many", "value.converter.schema.registry.url=x"))
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Connectors[0].Value.Avro != nil || len(cfg.Warnings) != 1 || !strings.Contains(cfg.Warnings[0].String(), "value.converter.max.retries, value.converter.rule.executors, value.converter.schema.registry.url: accepted, without meaning") {
		t.Errorf("%+v %v", cfg.Connectors[0].Value, cfg.Warnings)
	}
}

// TestFieldNames: Debezium takes none for avro when it sees an Avro converter by its full name in the connector's own
// configuration.
func TestFieldNames(t *testing.T) {
	worker := workerText + "key.converter=" + confluentConverter + "\nkey.converter.schema.registry.url=http://r\n"
	key := []string{"key.converter=" + apicurioConverter, "key.converter.apicurio.registry.url=http://r:8080", "key.converter.apicurio.registry.headers.enabled=false"}
	for _, test := range []struct {
		name    string
		worker  string
		changes []string
		want    string
	}{
		{"JSON", workerText, nil, "none"},
		{"value", workerText, avroChanges(confluentConverter), "avro"},
		{"key of Apicurio", workerText, key, "avro"},
		{"short name", workerText, avroChanges("AvroConverter", "schema.registry.url=http://r"), "none"},
		{"worker", worker, nil, "none"},
		{"worker and value", worker, avroChanges(confluentConverter), "avro"},
		{"avro_unicode", workerText, append(avroChanges(confluentConverter), "field.name.adjustment.mode=AVRO_UNICODE"), "avro_unicode"},
		{"explicit none", workerText, append(avroChanges(confluentConverter), "field.name.adjustment.mode=none"), "avro"},
	} {
		cfg, err := load(t, test.worker, connectorJSON(test.changes...))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if c := cfg.Connectors[0]; c.FieldNames != test.want || c.SchemaNames != "none" {
			t.Errorf("%s: field names %s, want %s; schema names %s", test.name, c.FieldNames, test.want, c.SchemaNames)
		}
	}
}

// TestAvroOfWorker: a connector without a converter of its own has the worker's with its settings; faults in them are told once.
func TestAvroOfWorker(t *testing.T) {
	worker := workerText + "key.converter=" + confluentConverter + "\nkey.converter.schema.registry.url=http://a,http://b\nkey.converter.key.subject.name.strategy=" + confluentSubjects + "RecordNameStrategy\nkey.converter.schemas.enable=false\n"
	other := strings.NewReplacer(`"orders"`, `"orders2"`, "5400", "5401").Replace(connectorJSON())
	cfg, err := load(t, worker, connectorJSON(), other)
	if err != nil {
		t.Fatal(err)
	}
	want := confluentDefaults("http://a", "http://b")
	want.Strategy = RecordStrategy
	for _, c := range cfg.Connectors {
		if diff := cmp.Diff(Converter{Avro: want}, c.Key); diff != "" {
			t.Errorf("%s: -want +got:\n%s", c.Name, diff)
		}
		if c.Value.Avro != nil || !c.Value.Schemas {
			t.Errorf("%s: value %+v", c.Name, c.Value)
		}
	}
	if len(cfg.Warnings) != 1 || !strings.HasSuffix(cfg.Warnings[0].File, "a-worker.properties") || cfg.Warnings[0].Key != "key.converter.schemas.enable" {
		t.Errorf("warnings %v", cfg.Warnings)
	}
	if _, err = load(t, strings.Replace(worker, "http://b", "b", 1), connectorJSON(), other); !slices.Equal(keysOf(err), []string{"key.converter.schema.registry.url"}) {
		t.Errorf("faults: %v", err)
	}
	// The worker's settings are not those of a connector's own converter.
	if _, err = load(t, worker, connectorJSON("key.converter="+confluentConverter)); !slices.Equal(keysOf(err), []string{"key.converter.schema.registry.url"}) || !strings.Contains(err.Error(), "c0.json") {
		t.Errorf("own converter: %v", err)
	}
}

func TestUseAvro(t *testing.T) {
	const embedded = "http://127.0.0.1:1"
	made := func(change func(a *Avro)) *Avro {
		a := confluentDefaults(embedded)
		a.URLsFrom = "--registry"
		if change != nil {
			change(a)
		}
		return a
	}
	cfg, err := load(t, workerText, connectorJSON("key.converter="+jsonConverter, "key.converter.replace.null.with.default=false", "value.converter.schemas.enable=false"))
	if err != nil {
		t.Fatal(err)
	}
	c := cfg.Connectors[0]
	c.UseAvro(embedded)
	want := Converter{Avro: made(nil)}
	if diff := cmp.Diff([]Converter{want, want}, []Converter{c.Key, c.Value}); diff != "" || c.FieldNames != "avro" || c.SchemaNames != "none" {
		t.Errorf("from JSON: names %s, -want +got:\n%s", c.FieldNames, diff)
	}
	if c.Key.Avro == c.Value.Avro {
		t.Error("key and value share settings")
	}

	// The key, which is JSON, reaches the registry as the value does, and has nothing else of it.
	c = loadConnector(t, avroChanges(confluentConverter, "schema.registry.url=https://r", "basic.auth.credentials.source=USER_INFO", "basic.auth.user.info=u:p", "auto.register.schemas=false", "use.latest.version=true", "normalize.schemas=true", "connect.meta.data=false",
		"value.subject.name.strategy="+confluentSubjects+"TopicRecordNameStrategy", "ignore.default.for.nullables=true", "http.read.timeout.ms=5", "proxy.host=p", "proxy.port=1", "schema.registry.ssl.endpoint.identification.algorithm=")...)
	before := *c.Value.Avro
	loaded := c.Value.Avro
	c.FieldNames = "avro_unicode"
	c.UseAvro(embedded, "http://second")
	reached := func(a *Avro) {
		a.URLs = []string{embedded, "http://second"}
		a.User, a.Password, a.ReadTimeout, a.Proxy = "u", "p", 5*time.Millisecond, "p:1"
		a.SSL = map[string]Secret{"ssl.endpoint.identification.algorithm": ""}
	}
	kept := made(func(a *Avro) {
		reached(a)
		a.AutoRegister, a.UseLatest = false, true
		a.Normalize, a.NoMeta, a.IgnoreDefaults, a.Strategy = true, true, true, TopicRecordStrategy
	})
	if diff := cmp.Diff([]Converter{{Avro: made(reached)}, {Avro: kept}}, []Converter{c.Key, c.Value}); diff != "" || c.FieldNames != "avro_unicode" {
		t.Errorf("from Confluent's: names %s, -want +got:\n%s", c.FieldNames, diff)
	}
	if diff := cmp.Diff(before, *loaded); diff != "" {
		t.Errorf("what others may share has changed: %s", diff)
	}

	c = loadConnector(t, avroChanges(apicurioConverter, "apicurio.registry.find-latest=true", "apicurio.registry.use-id=contentId", "apicurio.registry.artifact.group-id=g", "apicurio.auth.username=u", "apicurio.auth.password=p")...)
	c.UseAvro(embedded)
	latest := made(func(a *Avro) {
		a.AutoRegister, a.UseLatest, a.ApicurioKeys, a.User, a.Password = false, true, true, "u", "p"
	})
	if diff := cmp.Diff(Converter{Avro: latest}, c.Value); diff != "" {
		t.Errorf("from Apicurio's: -want +got:\n%s", diff)
	}
}

// TestReplacedConverters has --registry in the place of converters that are none here, or lack what it gives.
func TestReplacedConverters(t *testing.T) {
	strange := []string{"key.converter=com.example.ProtobufConverter", "key.converter.x=y"}
	apicurio := avroChanges(apicurioConverter, "-apicurio.registry.url", "apicurio.registry.headers.enabled=true", "apicurio.registry.id-handler=com.example.Ids", "apicurio.registry.use-id=both")
	for _, test := range []struct {
		name    string
		changes []string
		keys    []string // that faults are of without the option; warnings with it
	}{
		{"another class", strange, []string{"key.converter"}},
		{"no URL", avroChanges(confluentConverter, "-schema.registry.url"), []string{"value.converter.schema.registry.url"}},
		{"a bad URL", avroChanges(confluentConverter, "schema.registry.url=mock://x"), []string{"value.converter.schema.registry.url"}},
		{"Apicurio", apicurio, []string{
			"value.converter.apicurio.registry.headers.enabled", "value.converter.apicurio.registry.id-handler", "value.converter.apicurio.registry.url", "value.converter.apicurio.registry.use-id",
		}},
	} {
		paths := write(t, map[string]string{"c.json": connectorJSON(test.changes...), "w.properties": workerText})
		slices.Sort(paths)
		for _, lenient := range []bool{false, true} {
			if _, err := Load(paths, Options{Lenient: lenient}); err == nil {
				t.Errorf("%s: no fault without the option", test.name)
			}
			var texts []string
			warned := func(warnings []Warning) {
				for _, w := range warnings {
					if strings.Contains(w.Text, "not used, since --registry is in its place") || strings.Contains(w.Text, "--lenient") {
						texts = append(texts, w.Key)
					}
				}
			}
			cfg, err := Load(paths, Options{Lenient: lenient, Registry: true})
			if err != nil {
				t.Errorf("%s: %v", test.name, err)
				continue
			}
			warned(cfg.Warnings)
			slices.Sort(texts)
			if !slices.Equal(texts, test.keys) {
				t.Errorf("%s: warnings of %q, want %q", test.name, texts, test.keys)
			}
			cfg.Connectors[0].UseAvro("http://r")
			texts = nil
			_, warnings, err := LoadTail(paths[0], Options{Lenient: lenient, Registry: true})
			warned(warnings)
			slices.Sort(texts)
			if err != nil || !slices.Equal(texts, test.keys) {
				t.Errorf("%s, tail: warnings of %q, want %q; %v", test.name, texts, test.keys, err)
			}
		}
	}
	// What stays in use stays checked.
	for _, setting := range []string{"rule.executors=x", "proxy.host=http://p", "value.subject.name.strategy=com.example.Mine"} {
		_, _, err := LoadTail(write(t, map[string]string{"c.json": connectorJSON(avroChanges(confluentConverter, setting)...)})[0], Options{Registry: true})
		if err == nil {
			t.Errorf("%s: no error", setting)
		}
	}
}

// TestOneWarningForAKey has a setting of a converter that the connector does not name, known, of another converter or unknown.
func TestOneWarningForAKey(t *testing.T) {
	cfg, err := load(t, workerText, connectorJSON("value.converter.max.retries=9", "value.converter.decimal.format=NUMERIC", "value.converter.no.such=x", "value.converter.schemas.enable=true", "gtid.new.channel.position=latest", "database.connectionTimeZone=UTC", "max.queue.size=5"))
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]int{}
	for _, w := range cfg.Warnings {
		for key := range strings.SplitSeq(w.Key, ", ") {
			said[key]++
		}
	}
	for _, key := range []string{"value.converter.max.retries", "value.converter.decimal.format", "value.converter.no.such", "value.converter.schemas.enable", "max.queue.size"} {
		if said[key] != 1 {
			t.Errorf("%s: %d warnings, want 1: %v", key, said[key], cfg.Warnings)
		}
	}
}

// TestUseAvroLogins has who logs in at the registry of --registry.
func TestUseAvroLogins(t *testing.T) {
	info := []string{"basic.auth.credentials.source=USER_INFO", "basic.auth.user.info=u:p"}
	token := []string{"bearer.auth.credentials.source=STATIC_TOKEN", "bearer.auth.token=t"}
	for _, test := range []struct {
		name     string
		settings []string
		url      string
		want     string // user, password, token
	}{
		{"properties", info, "http://r", "u p "},
		{"token", token, "http://r", "  t"},
		{"of the URL", info, "http://v:q@r", "  "}, // it stands in the URL
		{"of the URL instead of a token", token, "http://v@r", "  "},
		{"of another URL", []string{"schema.registry.url=http://u:p@s"}, "http://r", "  "},
		{"nobody", nil, "http://r", "  "},
	} {
		c := loadConnector(t, avroChanges(confluentConverter, test.settings...)...)
		c.UseAvro(test.url)
		for _, a := range []*Avro{c.Key.Avro, c.Value.Avro} {
			if got := a.User + " " + a.Password.Reveal() + " " + a.Token.Reveal(); got != test.want || a.URLs[0] != test.url {
				t.Errorf("%s: %q at %v, want %q", test.name, got, a.URLs, test.want)
			}
		}
	}
}

// TestAvroSecrets: no way of printing the settings shows a password.
func TestAvroSecrets(t *testing.T) {
	a := Avro{Password: "s3cret", Token: "s3cret", SSL: map[string]Secret{"ssl.key.password": "s3cret"}}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if out := fmt.Sprintf(format, a); strings.Contains(out, "s3cret") {
			t.Errorf("%s: %s", format, out)
		}
	}
}

// TestAvroKeys holds the table against the settings that the two converters' own classes of settings have, with their
// defaults.
func TestAvroKeys(t *testing.T) {
	const (
		pattern = "in a row with a pattern"
		unset   = "unset is not the same as the default here"
		code    = "names Java code that is not run"
	)
	differs := map[string]string{
		"key.subject.name.strategy": unset, "value.subject.name.strategy": unset, "bearer.auth.credentials.source": unset,
		"bearer.auth.uami.endpoint.url": pattern, "specific.avro.reader": pattern, "missing.cache.size": pattern, "missing.id.cache.ttl.sec": pattern,
		"missing.version.cache.ttl.sec": pattern, "missing.schema.cache.ttl.sec": pattern, "apicurio.registry.headers.handler": pattern,
		"apicurio.registry.headers.key.groupId.name": pattern, "apicurio.registry.headers.value.globalId.name": pattern, "apicurio.registry.fallback.provider": pattern,
		"apicurio.registry.deserializer.dereference-schema": pattern, "validation.rules.executor.class": code, "apicurio.registry.converter.deserializer": code,
	}
	for _, file := range []string{"confluent-avro-8.3.1.tsv", "apicurio-avro-2.6.13.tsv"} {
		text, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for line := range strings.Lines(string(text)) {
			name, def, _ := strings.Cut(strings.TrimSpace(line), "\t")
			n++
			for _, where := range []Place{InConnector, InWorker} {
				for _, side := range []string{"key", "value"} {
					p := tableOf(where).find(side + ".converter." + name)
					if p == nil || strings.HasSuffix(p.Name, ".converter.<setting>") {
						t.Errorf("%s: %s is in no row", file, name)
						continue
					}
					if p.Default != def && (differs[name] == "" || p.Default != "") {
						t.Errorf("%s: %s has default %q, the converter %q", file, name, p.Default, def)
					}
				}
			}
		}
		if n < 50 {
			t.Errorf("%s: only %d settings", file, n)
		}
	}
}

// FuzzAvroSettings: no value of any setting makes more than an error, and none shows a password.
func FuzzAvroSettings(f *testing.F) {
	for _, seed := range [][2]string{
		{"schema.registry.url", "http://u:p@h:1/x,https://[::1]"},
		{"schema.registry.url", "http://@,://,http://a@b@c"},
		{"basic.auth.user.info", ":"},
		{"schema.registry.ssl.truststore.certificates", "-----BEGIN"},
		{"proxy.host", "[::1]"},
		{"apicurio.registry.url", "http://h/apis/registry/v2//"},
		{"value.subject.name.strategy", "."},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, setting, value string) {
		settings := &file{value: map[string]string{}}
		for k, v := range map[string]string{
			"connector.class": mysqlClass, "database.hostname": "h", "database.user": "u", "database.server.id": "1", "topic.prefix": "p", "snapshot.mode": "no_data",
			"key.converter": confluentConverter, "key.converter.schema.registry.url": "http://r", "key.converter.basic.auth.credentials.source": "USER_INFO", "key.converter.proxy.port": "1",
			"value.converter": apicurioConverter, "value.converter.apicurio.registry.url": "http://r", "value.converter.apicurio.registry.headers.enabled": "false",
		} {
			settings.set(k, v)
		}
		for _, side := range []string{"key", "value"} {
			settings.value[side+".converter."+setting] = value
			settings.keys = slices.Sorted(maps.Keys(settings.value))
		}
		c, _, err := tail(settings, Options{})
		if err == nil && (c == nil || c.Key.Avro == nil || c.Value.Avro == nil) {
			t.Error("neither settings nor an error")
		}
		if err != nil {
			return
		}
		for _, text := range slices.Concat(c.Key.Avro.URLs, c.Value.Avro.URLs) {
			if u, err := url.Parse(text); err != nil || u.User != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
				t.Errorf("URL %q: %v", text, err)
			}
		}
	})
}
