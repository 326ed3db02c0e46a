package kafka

import (
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// rule says what becomes of a property of Java's producer.
type rule struct {
	normal string // Java's default, and what else means nothing special, by "|"
	use    use
	reason string // of noEffect and refused: the end of a sentence
}

type use uint8

const (
	honoured use = iota // read elsewhere
	noEffect            // another value than normal gives a warning
	refused             // another value than normal is an error
)

// rules is the table of all properties of Java's producer 4.3, and what Connect's users write beside them.
func rules() map[string]rule {
	const (
		threads  = "this client has its own way of connecting"
		kerberos = "it belongs to a mechanism that is not in use"
		metrics  = "it belongs to Java's metrics"
		javaCode = "it names Java code, which cannot run here"
		oldTLS   = "versions of TLS before 1.2 are not safe; ssl.enabled.protocols chooses between TLSv1.2 and TLSv1.3"

		oauthHandler = "org.apache.kafka.common.security.oauthbearer."
	)
	table := map[string]rule{
		"acks":                                     {"all|-1", refused, "an offset may only be stored when all in-sync replicas have the records (acks=all)"},
		"batch.size":                               {"16384", noEffect, "batches take what is waiting, up to max.request.size"},
		"bootstrap.servers":                        {"", honoured, ""},
		"buffer.memory":                            {"", honoured, ""},
		"client.dns.lookup":                        {"use_all_dns_ips|resolve_canonical_bootstrap_servers_only", noEffect, threads},
		"client.id":                                {"", honoured, ""},
		"compression.gzip.level":                   {"", honoured, ""},
		"compression.lz4.level":                    {"", honoured, ""},
		"compression.type":                         {"", honoured, ""},
		"compression.zstd.level":                   {"", honoured, ""},
		"config.providers":                         {"", refused, javaCode},
		"connections.max.idle.ms":                  {"", honoured, ""},
		"delivery.timeout.ms":                      {"120000|2147483647", noEffect, "records are tried until they are written: giving one up would lose it"},
		"enable.idempotence":                       {"true", noEffect, "the producer is always idempotent, which costs nothing and keeps the order"},
		"enable.metrics.push":                      {"true|false", noEffect, metrics},
		"interceptor.classes":                      {"", refused, javaCode},
		"key.serializer":                           {"org.apache.kafka.common.serialization.ByteArraySerializer", refused, "the converters make the bytes"},
		"linger.ms":                                {"", honoured, ""},
		"max.block.ms":                             {"60000|9223372036854775807", noEffect, "reading simply waits while the buffer is full"},
		"max.in.flight.requests.per.connection":    {"1|2|3|4|5", noEffect, "the idempotent producer keeps the order with several requests under way"},
		"max.request.size":                         {"", honoured, ""},
		"metadata.max.age.ms":                      {"", honoured, ""},
		"metadata.max.idle.ms":                     {"300000", noEffect, threads},
		"metadata.recovery.rebootstrap.trigger.ms": {"300000", noEffect, threads},
		"metadata.recovery.strategy":               {"rebootstrap|none", noEffect, threads},
		"metric.reporters":                         {"org.apache.kafka.common.metrics.JmxReporter", noEffect, metrics},
		"metrics.num.samples":                      {"2", noEffect, metrics},
		"metrics.recording.level":                  {"INFO", noEffect, metrics},
		"metrics.sample.window.ms":                 {"30000", noEffect, metrics},
		"partitioner.adaptive.partitioning.enable": {"true|false", noEffect, "it changes only where records without a key go"},
		"partitioner.availability.timeout.ms":      {"0", noEffect, "it changes only where records without a key go"},
		"partitioner.class":                        {"null|org.apache.kafka.clients.producer.internals.DefaultPartitioner", refused, javaCode},
		"partitioner.ignore.keys":                  {"false", refused, "records of one key would lose their order"},
		"receive.buffer.bytes":                     {"32768|-1", noEffect, threads},
		"reconnect.backoff.max.ms":                 {"1000", noEffect, threads},
		"reconnect.backoff.ms":                     {"50", noEffect, threads},
		"request.timeout.ms":                       {"", honoured, ""},
		"retries":                                  {"2147483647", noEffect, "records are tried until they are written"},
		"retry.backoff.max.ms":                     {"1000", noEffect, threads},
		"retry.backoff.ms":                         {"100", noEffect, threads},
		"sasl.client.callback.handler.class":       {"null|software.amazon.msk.auth.iam.IAMClientCallbackHandler", refused, javaCode},
		"sasl.jaas.config":                         {"", honoured, ""},
		"sasl.login.callback.handler.class":        {"null|" + oauthHandler + "OAuthBearerLoginCallbackHandler|" + oauthHandler + "secured.OAuthBearerLoginCallbackHandler|" + oauthHandler + unsecured, refused, javaCode},
		"sasl.login.class":                         {"null", refused, javaCode},
		"sasl.mechanism":                           {"", honoured, ""},
		"security.protocol":                        {"", honoured, ""},
		"security.providers":                       {"null", refused, javaCode},
		"send.buffer.bytes":                        {"131072|-1", noEffect, threads},
		"socket.connection.setup.timeout.max.ms":   {"30000", noEffect, threads},
		"socket.connection.setup.timeout.ms":       {"", honoured, ""},
		"ssl.cipher.suites":                        {"", honoured, ""},
		"ssl.enabled.protocols":                    {"", honoured, ""},
		"ssl.endpoint.identification.algorithm":    {"", honoured, ""},
		"ssl.engine.factory.class":                 {"null", refused, javaCode},
		"ssl.key.password":                         {"", honoured, ""},
		"ssl.keymanager.algorithm":                 {"SunX509|PKIX", noEffect, javaCode},
		"ssl.keystore.certificate.chain":           {"", honoured, ""},
		"ssl.keystore.key":                         {"", honoured, ""},
		"ssl.keystore.location":                    {"", honoured, ""},
		"ssl.keystore.password":                    {"", honoured, ""},
		"ssl.keystore.type":                        {"", honoured, ""},
		"ssl.protocol":                             {"TLSv1.3|TLSv1.2|TLS", refused, oldTLS},
		"ssl.provider":                             {"null", refused, javaCode},
		"ssl.secure.random.implementation":         {"null", noEffect, javaCode},
		"ssl.trustmanager.algorithm":               {"PKIX|SunX509", noEffect, javaCode},
		"ssl.truststore.certificates":              {"", honoured, ""},
		"ssl.truststore.location":                  {"", honoured, ""},
		"ssl.truststore.password":                  {"", honoured, ""},
		"ssl.truststore.type":                      {"", honoured, ""},
		"transaction.timeout.ms":                   {"", honoured, ""},
		"transaction.two.phase.commit.enable":      {"false", refused, "a transaction that nobody ends would hold up all who read"},
		"transactional.id":                         {"null", refused, "it is <group.id>-<name>-0, as in Kafka Connect, so that each fences the other"},
		"value.serializer":                         {"org.apache.kafka.common.serialization.ByteArraySerializer", refused, "the converters make the bytes"},
	}
	for _, name := range []string{"kinit.cmd", "min.time.before.relogin", "service.name", "ticket.renew.jitter", "ticket.renew.window.factor"} {
		table["sasl.kerberos."+name] = rule{"", noEffect, kerberos}
	}
	return table
}

// ruleOf finds the rule of a property, also of families with many names.
func ruleOf(table map[string]rule, name string) (rule, bool) {
	if r, ok := table[name]; ok {
		return r, true
	}
	if strings.HasPrefix(name, "sasl.oauthbearer.") || strings.HasPrefix(name, "sasl.login.") {
		return rule{"", noEffect, "it belongs to a mechanism that is not in use"}, true
	}
	return rule{}, false
}

// settings are the properties of one client, checked and typed.
type settings struct {
	servers     []string
	clientID    string
	user        string // that authenticates; "" for none
	linger      time.Duration
	maxRequest  int32
	bufferBytes int
	metadataAge time.Duration
	idle        time.Duration
	connect     time.Duration
	produce     time.Duration
	compression kgo.CompressionCodec
	security    security
}

// CheckProperties says what is wrong with properties of a Java producer, without connecting: an error for each value
// that is malformed or that would change delivery or security and cannot be honoured, and warnings for values that have
// no effect. Passwords are in neither.
func CheckProperties(properties map[string]string) (warnings []string, err error) {
	_, warnings, err = readProperties(properties)
	return warnings, err
}

func readProperties(properties map[string]string) (settings, []string, error) {
	r := &propertyReader{properties: properties}
	r.check(rules())
	s := settings{
		servers:     r.servers(),
		clientID:    r.text("client.id", ""),
		linger:      r.millis("linger.ms", 0, 0, time.Minute),
		maxRequest:  int32(r.number("max.request.size", 1<<20, 512, 1<<30)),
		bufferBytes: int(r.number("buffer.memory", 32<<20, 1<<20, math.MaxInt64>>1)),
		metadataAge: r.millis("metadata.max.age.ms", 5*time.Minute, time.Second, time.Hour),
		idle:        r.idle(),
		connect:     r.millis("socket.connection.setup.timeout.ms", 10*time.Second, 100*time.Millisecond, 10*time.Minute),
		produce:     r.millis("request.timeout.ms", 30*time.Second, 100*time.Millisecond, time.Hour),
		compression: r.compression(),
	}
	r.millis("transaction.timeout.ms", time.Minute, time.Second, math.MaxInt32*time.Millisecond) // read by who has transactions
	s.security, s.user = r.security()
	return s, r.warnings, errors.Join(r.errs...)
}

type propertyReader struct {
	properties map[string]string
	tokens     *tokenCache // what logins have fetched before; nil: nothing
	aws        *awsChain
	warnings   []string
	errs       []error
}

// propertyIntro begins every fault and warning.
const propertyIntro = "Kafka client property "

func (r *propertyReader) fail(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf(propertyIntro+format, args...))
}

func (r *propertyReader) warn(format string, args ...any) {
	r.warnings = append(r.warnings, fmt.Sprintf(propertyIntro+format, args...))
}

// check looks at all properties that are not honoured, by name so that the result is always the same.
func (r *propertyReader) check(table map[string]rule) {
	names := make([]string, 0, len(r.properties))
	for name := range r.properties {
		names = append(names, name)
	}
	slices.Sort(names)
	tokens := strings.EqualFold(r.text("sasl.mechanism", ""), "OAUTHBEARER")
	for _, name := range names {
		rule, known := ruleOf(table, name)
		if _, own := table[name]; tokens && known && !own {
			rule = oauthRule(name)
		}
		value := strings.TrimSpace(r.properties[name])
		switch {
		case !known && (strings.HasPrefix(name, "sasl.") || strings.HasPrefix(name, "ssl.") || strings.HasPrefix(name, "security.")):
			r.fail("%s is unknown, and it seems to be about security", name)
		case !known:
			r.warn("%s is unknown and has no effect", name)
		case rule.use == honoured || value == "" || slices.ContainsFunc(strings.Split(rule.normal, "|"), func(n string) bool { return strings.EqualFold(n, value) }):
		case rule.use == noEffect:
			r.warn("%s has no effect: %s", name, rule.reason)
		default:
			r.fail("%s=%s is refused: %s", name, shown(name, value), rule.reason)
		}
	}
}

// text gives a value without blanks around it; an empty one counts as not set.
func (r *propertyReader) text(name, otherwise string) string {
	if v := strings.TrimSpace(r.properties[name]); v != "" {
		return v
	}
	return otherwise
}

func (r *propertyReader) number(name string, otherwise, low, high int64) int64 {
	text := r.text(name, "")
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < low || n > high {
		r.fail("%s=%s: want a whole number from %d to %d", name, text, low, high)
		return otherwise
	}
	return n
}

func (r *propertyReader) millis(name string, otherwise, low, high time.Duration) time.Duration {
	return time.Duration(r.number(name, otherwise.Milliseconds(), low.Milliseconds(), high.Milliseconds())) * time.Millisecond
}

// idle: a negative value means never in Java; the client closes after 15 minutes at the latest and connects again.
func (r *propertyReader) idle() time.Duration {
	const most = 15 * time.Minute
	n := r.number("connections.max.idle.ms", 540_000, math.MinInt64, math.MaxInt64)
	if n < 0 || n > most.Milliseconds() {
		return most
	}
	return max(time.Duration(n)*time.Millisecond, time.Second)
}

func (r *propertyReader) servers() []string {
	var out []string
	before := len(r.errs)
	for server := range strings.SplitSeq(r.text("bootstrap.servers", ""), ",") {
		server = strings.TrimSpace(server)
		if server == "" {
			continue
		}
		address := server
		if _, rest, ok := strings.Cut(address, "://"); ok { // PLAINTEXT://host:port, as in listeners
			address = rest
		}
		host, port, err := net.SplitHostPort(address)
		n, portErr := strconv.ParseUint(port, 10, 16)
		if err != nil || host == "" || portErr != nil || n == 0 {
			r.fail("bootstrap.servers: %q is not host:port", server)
			continue
		}
		out = append(out, address)
	}
	if len(out) == 0 && len(r.errs) == before {
		r.fail("bootstrap.servers is missing: name at least one broker as host:port")
	}
	return out
}

func (r *propertyReader) compression() kgo.CompressionCodec {
	switch name := strings.ToLower(r.text("compression.type", "none")); name {
	case "gzip":
		if level := r.number("compression.gzip.level", -1, -1, 9); level >= 1 {
			return kgo.GzipCompression().WithLevel(int(level))
		}
		return kgo.GzipCompression()
	case "snappy":
		return kgo.SnappyCompression()
	case "lz4":
		if level := r.number("compression.lz4.level", 0, 1, 17); level > 9 {
			return kgo.Lz4Compression().WithLevel(9) // the highest that there is here
		} else if r.text("compression.lz4.level", "") != "" {
			return kgo.Lz4Compression().WithLevel(int(level))
		}
		return kgo.Lz4Compression()
	case "zstd":
		if level := r.number("compression.zstd.level", 0, -131072, 22); level != 0 {
			return kgo.ZstdCompression().WithLevel(int(max(level, 1)))
		}
		return kgo.ZstdCompression()
	default:
		if name != "none" {
			r.fail("compression.type=%s: want none, gzip, snappy, lz4 or zstd", name)
		}
		return kgo.NoCompression()
	}
}
