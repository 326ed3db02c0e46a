package kafka

import (
	"context"
	"strings"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/aws"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// mechanisms are those that are built, with the login modules that Java needs for them and their options.
var mechanisms = map[string]struct{ in, module, options string }{
	"PLAIN":         {"org.apache.kafka.common.security.plain.", "PlainLoginModule", ` username="…" password="…"`},
	"SCRAM-SHA-256": {"org.apache.kafka.common.security.scram.", "ScramLoginModule", ` username="…" password="…"`},
	"SCRAM-SHA-512": {"org.apache.kafka.common.security.scram.", "ScramLoginModule", ` username="…" password="…"`},
	"OAUTHBEARER":   {"org.apache.kafka.common.security.oauthbearer.", "OAuthBearerLoginModule", ` clientId="…" clientSecret="…"`},
	"AWS_MSK_IAM":   {"software.amazon.msk.auth.iam.", "IAMLoginModule", ""},
}

// insteadOfKerberos says what to do without GSSAPI.
const insteadOfKerberos = "Kerberos is not supported. Use SCRAM-SHA-512: add it to sasl.enabled.mechanisms of the brokers' listener beside GSSAPI, make a user " +
	"(kafka-configs.sh --bootstrap-server HOST:9092 --alter --add-config 'SCRAM-SHA-512=[password=…]' --entity-type users --entity-name tidemark), and set " +
	`sasl.mechanism=SCRAM-SHA-512 and sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="tidemark" password="…";. ` +
	"PLAIN, OAUTHBEARER and AWS_MSK_IAM are supported, too"

// sasl reads sasl.mechanism and what belongs to it. encrypted says that TLS hides what it sends.
func (r *propertyReader) sasl(encrypted bool) (sasl.Mechanism, string) {
	mechanism := strings.ToUpper(r.text("sasl.mechanism", ""))
	switch _, ok := mechanisms[mechanism]; {
	case mechanism == "":
		r.fail("sasl.mechanism is not set, and Java's default is GSSAPI: %s", insteadOfKerberos)
		return nil, ""
	case mechanism == "GSSAPI":
		r.fail("sasl.mechanism=GSSAPI: %s", insteadOfKerberos)
		return nil, ""
	case !ok:
		r.fail("sasl.mechanism=%s is not supported: use SCRAM-SHA-512, SCRAM-SHA-256, PLAIN, OAUTHBEARER or AWS_MSK_IAM", mechanism)
		return nil, ""
	case !encrypted && (mechanism == "PLAIN" || mechanism == "OAUTHBEARER"):
		r.warn("security.protocol=SASL_PLAINTEXT: with %s whoever listens on the network reads the login; use SASL_SSL, or SCRAM-SHA-512", mechanism)
		return r.mechanism(mechanism)
	default:
		return r.mechanism(mechanism)
	}
}

func (r *propertyReader) mechanism(mechanism string) (sasl.Mechanism, string) {
	want := mechanisms[mechanism]
	login, err := parseJAAS(r.properties["sasl.jaas.config"])
	if err != nil {
		r.fail("sasl.jaas.config: %w; sasl.mechanism=%s wants %s required%s;", err, mechanism, want.in+want.module, want.options)
		return nil, ""
	}
	if module := login.module[strings.LastIndexByte(login.module, '.')+1:]; module != want.module {
		if !isWord(module) {
			module = "another module"
		}
		r.fail("sasl.jaas.config names %s, but sasl.mechanism=%s needs %s", module, mechanism, want.module)
		return nil, ""
	}
	switch mechanism {
	case "OAUTHBEARER":
		source, user := r.oauth(login.options)
		if source == nil {
			return nil, ""
		}
		extensions := map[string]string{}
		for name, value := range login.options {
			if name, ok := strings.CutPrefix(name, "extension_"); ok {
				extensions[name] = value
			}
		}
		return oauth.Oauth(func(ctx context.Context) (oauth.Auth, error) {
			token, err := source(ctx)
			return oauth.Auth{Token: token, Extensions: extensions}, err
		}), user
	case "AWS_MSK_IAM":
		source := r.awsCredentials(login.options)
		if source == nil {
			return nil, ""
		}
		return aws.ManagedStreamingIAM(func(ctx context.Context) (aws.Auth, error) {
			c, err := source(ctx)
			return aws.Auth{AccessKey: c.key, SecretKey: c.secret, SessionToken: c.session, UserAgent: softwareName}, err
		}), "(AWS IAM)"
	}
	user, password := login.options["username"], login.options["password"]
	if user == "" {
		r.fail("sasl.jaas.config has no username")
		return nil, ""
	}
	auth := scram.Auth{User: user, Pass: password, IsToken: strings.EqualFold(login.options["tokenauth"], "true")}
	switch mechanism {
	case "PLAIN":
		return plain.Auth{User: user, Pass: password}.AsMechanism(), user
	case "SCRAM-SHA-256":
		return auth.AsSha256Mechanism(), user
	}
	return auth.AsSha512Mechanism(), user
}

// isWord tells the name of a class from what may be a password in a wrong place.
func isWord(s string) bool {
	return strings.HasSuffix(s, "LoginModule") && strings.IndexFunc(s, func(r rune) bool { return (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (r < '0' || r > '9') }) < 0
}
