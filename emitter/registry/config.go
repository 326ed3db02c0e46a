package registry

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"go.uber.org/zap"
)

// API is the protocol of a registry.
type API int

// The protocols.
const (
	Confluent API = iota // subjects and ids of Confluent's Schema Registry
	Apicurio             // groups and artifacts of Apicurio Registry, core API version 2
)

// IDKind says which of Apicurio's two ids of a schema is used.
type IDKind int

// Apicurio's ids.
const (
	GlobalID  IDKind = iota // of a version of an artifact
	ContentID               // of a text, which several artifacts may share; the Confluent-compatible API of Apicurio has these
)

// idleTimeout is how long a connection that is not in use is kept.
const idleTimeout = time.Minute

// Config says where the registry is and how it is asked. It holds secrets, so it is not to be logged.
type Config struct {
	// URLs are those of one registry's instances: http or https, with a path if the API is not at the root. A request goes
	// to the one that answered last, at first to the first; if that gives no answer or 408, 429, 500, 502, 503 or 504, to
	// the next. user:password@ in a URL is used for requests to it unless User is set. To Apicurio's URLs
	// apis/registry/v2 is added if it is not there, as Apicurio's client does.
	URLs []string

	User, Password string // basic authentication; empty User: none
	Token          string // bearer token; not together with User

	TLS   *tls.Config // for https; nil: TLS 1.2 or newer and the system's certificates
	Proxy string      // host:port of an HTTP proxy; empty: none, whatever the environment says

	// AutoRegister registers schemas that the registry does not have. Otherwise UseLatest takes the id of the latest schema
	// of the subject, if that describes the very bytes that are written, and without it the schema must be there.
	AutoRegister, UseLatest bool

	Normalize bool // Confluent: the registry brings schemas into a normal form before it compares them

	KeepTexts bool // for [Client.Text]

	ConnectTimeout time.Duration // of a connection, TLS included; 0: no limit
	ReadTimeout    time.Duration // of an answer once there is a connection; 0: no limit

	API API

	// ApicurioKeys makes messages name settings as Apicurio's converter does, whatever the API; URLsFrom is what they say
	// that URLs are from, empty for the property.
	ApicurioKeys bool
	URLsFrom     string

	// The rest is Apicurio's.

	IDs   IDKind
	Group string // of the artifacts; empty: default

	// Log is told once when the registry stops answering, or lets a request wait, and once when it answers again; nil: nobody.
	Log *zap.Logger
}

// instance is one checked URL.
type instance struct {
	base           string // without credentials, without / at its end
	user, password string
}

// check returns all faults at once. No error shows a credential.
func (cfg *Config) check() ([]instance, error) {
	var faults []error
	if len(cfg.URLs) == 0 {
		faults = append(faults, errors.New("there is no URL of a schema registry"))
	}
	var instances []instance
	for _, raw := range cfg.URLs {
		i, err := cfg.instance(raw)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		instances = append(instances, i)
	}
	if cfg.User != "" && cfg.Token != "" {
		faults = append(faults, errors.New("a user with a password and a bearer token are both given: want one of them"))
	}
	if strings.ContainsAny(cfg.Token, "\r\n") {
		faults = append(faults, errors.New("the bearer token has a line break in it"))
	}
	if cfg.Proxy != "" {
		if host, port, err := net.SplitHostPort(cfg.Proxy); err != nil || host == "" || port == "" || strings.ContainsAny(host, "/@") {
			faults = append(faults, errors.New("the proxy is not host:port"))
		}
	}
	if cfg.API != Confluent && cfg.API != Apicurio {
		faults = append(faults, fmt.Errorf("API %d is neither Confluent nor Apicurio", cfg.API))
	}
	if cfg.ConnectTimeout < 0 || cfg.ReadTimeout < 0 {
		faults = append(faults, fmt.Errorf("timeouts of %s and %s: want none below 0", cfg.ConnectTimeout, cfg.ReadTimeout))
	}
	return instances, errors.Join(faults...)
}

func (cfg *Config) instance(raw string) (instance, error) {
	bad := func(why string) (instance, error) {
		return instance{}, fmt.Errorf("URL %q of the schema registry: %s", withoutCredentials(raw), why)
	}
	u, err := url.Parse(raw)
	if err != nil { // its text shows the URL
		return bad("it cannot be read; want http://host:port or https://host:port, with special characters of a password as %xx")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return bad("want http:// or https:// at its start")
	case u.Hostname() == "":
		return bad("it names no host")
	case u.RawQuery != "" || u.Fragment != "":
		return bad("want nothing behind the path")
	}
	i := instance{user: cfg.User, password: cfg.Password}
	if i.user == "" && cfg.Token == "" && u.User != nil {
		i.user = u.User.Username()
		i.password, _ = u.User.Password()
	}
	u.User = nil
	i.base = strings.TrimRight(u.String(), "/")
	if cfg.API == Apicurio && !strings.HasSuffix(i.base, "/apis/registry/v2") {
		i.base += "/apis/registry/v2"
	}
	return i, nil
}
