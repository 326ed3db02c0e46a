package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The ways to name the subject (Confluent) or artifact (Apicurio) of a schema.
const (
	TopicStrategy       = "topic"        // topic-key, topic-value
	RecordStrategy      = "record"       // the record's full name
	TopicRecordStrategy = "topic-record" // topic-full name
)

// Avro is what a Connect AvroConverter is told: how schemas are made and named, and how their registry is reached. The
// fields that only one of the two converters has are false or empty for the other.
type Avro struct {
	Apicurio bool // io.apicurio.registry.utils.converter.AvroConverter; else io.confluent.connect.avro.AvroConverter

	NoMeta bool // connect.meta.data=false: schemas have no connect.* properties
	Scrub  bool // scrub.invalid.names: the converter makes names fit for Avro
	// IgnoreDefaults leaves a NULL in a column with a default null (ignore.default.for.nullables); else it is written as
	// that default.
	IgnoreDefaults bool

	Strategy     string // TopicStrategy, RecordStrategy or TopicRecordStrategy
	AutoRegister bool   // unknown schemas are registered; else only looked up
	UseLatest    bool   // records have the id of the subject's latest schema; never beside AutoRegister
	Normalize    bool   // normalize.schemas

	Wide      bool   // of Apicurio: ids have 8 bytes instead of 4
	ContentID bool   // of Apicurio: ids are content ids instead of global ones
	Group     string // of Apicurio: group of the artifacts; "": default

	// LikeConfluent says that Apicurio's URL is that of its interface that is like Confluent's registry, which has content ids.
	LikeConfluent bool

	// URLs of the registry in the order to try them, http or https, without user and without a slash at the end; of
	// Apicurio's converter one, that of the core interface (…/apis/registry/v2) unless LikeConfluent.
	URLs           []string
	URLsFrom       string // what gave them if it was no property: --registry
	ApicurioKeys   bool   // the properties are those of Apicurio's converter, also where Apicurio is false
	User           string // of basic authentication; "": none
	Password       Secret
	LoginOfURL     bool              // user and password stood in the URLs
	Token          Secret            // of bearer authentication; "": none
	SSL            map[string]Secret // for TLSConfig, by the names of Kafka's clients (ssl.truststore.location …); nil: none
	Proxy          string            // host:port of an HTTP proxy; "": none
	ConnectTimeout time.Duration     // for connecting to the registry; 0: no limit
	ReadTimeout    time.Duration     // for its answer; 0: no limit
}

// UseAvro makes key and value Avro as Confluent's converter writes it, with the registry at some URLs of --registry, as if both
// converters of the connector were set to its class. What an Avro converter was told about schemas, subjects and registering
// stays, and how to reach a registry and to log in there, but for a login in URLs, which these replace. A converter that was
// told nothing of that reaches the registry as the other one does.
func (c *Connector) UseAvro(urls ...string) {
	key, value := c.Key.Avro, c.Value.Avro
	c.Key = Converter{Avro: key.at(urls, value)}
	c.Value = Converter{Avro: value.at(urls, key)}
	if c.FieldNames == "none" {
		c.FieldNames = "avro"
	}
}

// replaced makes warnings of the faults of what UseAvro puts something else in the place of.
func (c *checked) replaced() {
	if !c.opts.Registry {
		return
	}
	c.errs = slices.DeleteFunc(c.errs, func(err error) bool {
		var fault *KeyError
		if !errors.As(err, &fault) {
			return false
		}
		side, setting, _ := strings.Cut(fault.Key, ".")
		if side != "key" && side != "value" {
			return false
		}
		switch setting {
		case "converter", "converter.schema.registry.url", "converter.apicurio.registry.url",
			"converter.apicurio.registry.headers.enabled", "converter.apicurio.registry.id-handler", "converter.apicurio.registry.use-id":
			c.warn(fault.Key, "not used, since --registry is in its place: %s", fault.Text)
			return true
		}
		return false
	})
}

// at is what UseAvro makes of an Avro converter and the other side's; either may be nil.
func (a *Avro) at(urls []string, other *Avro) *Avro {
	b := &Avro{Strategy: TopicStrategy, AutoRegister: true, ConnectTimeout: time.Minute, ReadTimeout: time.Minute, URLs: urls, URLsFrom: "--registry"}
	if a != nil {
		b.NoMeta, b.Scrub, b.IgnoreDefaults, b.Strategy, b.Normalize = a.NoMeta, a.Scrub, a.IgnoreDefaults, a.Strategy, a.Normalize
		b.AutoRegister, b.UseLatest = a.AutoRegister, a.UseLatest
		other = a
	}
	if other == nil {
		return b
	}
	b.ApicurioKeys, b.SSL, b.Proxy = other.ApicurioKeys, other.SSL, other.Proxy
	b.ConnectTimeout, b.ReadTimeout = other.ConnectTimeout, other.ReadTimeout
	if !other.LoginOfURL && !slices.ContainsFunc(urls, hasLogin) {
		b.User, b.Password, b.Token = other.User, other.Password, other.Token
	}
	return b
}

func hasLogin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.User != nil
}

// fieldNames is field.name.adjustment.mode. As Debezium does it, none is avro when the connector itself, not only the
// worker, names an Avro converter, and by its full name.
func (c *checked) fieldNames() string {
	mode := c.enum("field.name.adjustment.mode")
	for _, name := range []string{"key.converter", "value.converter"} {
		if class := c.text(name); mode == "none" && (class == confluentConverter || class == apicurioConverter) {
			return "avro"
		}
	}
	return mode
}

// avro reads the settings of an Avro converter; name is key.converter or value.converter.
func (c *checked) avro(name string) *Avro {
	if a := c.avros[name]; a != nil {
		return a
	}
	a := &Avro{NoMeta: !c.yes(name + ".connect.meta.data")}
	if c.converterOf(name) == OfApicurio {
		c.apicurio(a, name)
	} else {
		c.confluent(a, name)
	}
	if c.avros == nil {
		c.avros = map[string]*Avro{}
	}
	c.avros[name] = a
	return a
}

func (c *checked) confluent(a *Avro, name string) {
	a.Scrub = c.yes(name + ".scrub.invalid.names")
	a.IgnoreDefaults = c.yes(name + ".ignore.default.for.nullables")
	a.Strategy = c.confluentStrategy(name)
	a.AutoRegister = c.yes(name + ".auto.register.schemas")
	a.UseLatest = c.yes(name+".use.latest.version") && !a.AutoRegister
	a.Normalize = c.yes(name + ".normalize.schemas")
	if a.AutoRegister && c.yes(name+".use.latest.version") {
		c.warn(name+".use.latest.version", "has no effect beside auto.register.schemas=true, as in Confluent's converter; set %s.auto.register.schemas=false for it", name)
	}
	a.ConnectTimeout = c.millis(c.clientKey(name, "http.connect.timeout.ms"))
	a.ReadTimeout = c.millis(c.clientKey(name, "http.read.timeout.ms"))
	a.Proxy = c.proxy(name)

	key := name + ".schema.registry.url"
	var logins []login
	a.URLs, logins = c.registryURLs(key, items(c.value[key]))
	c.credentials(a, name, logins)

	ssl := map[string]string{}
	for k, v := range c.under(name + ".schema.registry.ssl.") {
		ssl["ssl."+k] = v
	}
	c.ssl(a, ssl, func(setting string) string { return name + ".schema.registry." + setting })
}

// clientKey is the key of a setting of the registry's client: with the prefix schema.registry. if it is set so, else without.
func (c *checked) clientKey(name, setting string) string {
	if long := name + ".schema.registry." + setting; c.has(long) {
		return long
	}
	return name + "." + setting
}

// confluentStrategy reads the strategy of the converter's own side.
func (c *checked) confluentStrategy(name string) string {
	side := strings.TrimSuffix(name, ".converter")
	key := name + "." + side + ".subject.name.strategy"
	class := c.text(key)
	switch strings.TrimPrefix(class, confluentSubjects) {
	case "":
		return map[string]string{"topic": TopicStrategy, "record": RecordStrategy, "topic_record": TopicRecordStrategy}[c.enum(name+".subject.name.strategy.fallback.type")]
	case "TopicNameStrategy":
		return TopicStrategy
	case "RecordNameStrategy":
		return RecordStrategy
	case "TopicRecordNameStrategy":
		return TopicRecordStrategy
	}
	c.refuse(key, false, fmt.Sprintf("%q is not built yet; there are %sTopicNameStrategy, RecordNameStrategy and TopicRecordNameStrategy in the same package. Without associations of topics with subjects, AssociatedNameStrategy is TopicNameStrategy.", class, confluentSubjects))
	return TopicStrategy
}

func (c *checked) proxy(name string) string {
	hostKey, portKey := c.clientKey(name, "proxy.host"), c.clientKey(name, "proxy.port")
	host, port := c.text(hostKey), c.number(portKey)
	switch {
	case host == "" && port > 0:
		c.warn(portKey, "has no effect without proxy.host beside it")
	case host == "":
	case strings.ContainsAny(host, "/@ \t") || strings.Contains(host, ":") && net.ParseIP(host) == nil:
		c.fail(hostKey, "it must be the name or address of the proxy alone; its port stands in proxy.port")
	case port <= 0:
		c.warn(hostKey, "has no effect without proxy.port beside it, as in Confluent's converter")
	default:
		return net.JoinHostPort(host, strconv.FormatInt(port, 10))
	}
	return ""
}

// login is the part of a URL before the @, as it is written: Java's clients do not decode it.
type login struct {
	user     string
	password Secret
}

// registryURLs checks URLs of a registry and takes the logins out of them. It always gives as many of the one as of the other.
func (c *checked) registryURLs(key string, raw []string) (urls []string, logins []login) {
	if len(raw) == 0 && !c.failed(key) {
		c.fail(key, "missing; it is the URL of the schema registry, as http://registry:8081")
	}
	secret := slices.ContainsFunc(raw, func(s string) bool { return strings.Contains(s, "@") })
	for i, text := range raw {
		fault := func(format string, args ...any) {
			shown := strconv.Quote(text)
			if secret { // a comma in a password makes several of one, so that none may be shown
				shown = fmt.Sprintf("number %d of its URLs", i+1)
			}
			c.fail(key, "%s %s", shown, fmt.Sprintf(format, args...))
		}
		scheme, rest, _ := strings.Cut(text, "://")
		authority := rest
		if end := strings.IndexAny(rest, "/?#"); end >= 0 {
			authority = rest[:end]
		}
		var l login
		if at := strings.LastIndexByte(authority, '@'); at >= 0 {
			user, password, _ := strings.Cut(authority[:at], ":")
			l = login{user, Secret(password)}
			rest = rest[at+1:]
		}
		u, err := url.Parse(scheme + "://" + rest)
		switch {
		case strings.EqualFold(scheme, "mock"):
			fault("is for tests within Java; to try Avro out without a registry, give --registry embedded")
		case err != nil || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https"):
			fault("is not a URL that begins with http:// or https://; in a user or password, the letters @ , / ? # cannot stand: give them by another setting")
		case u.Hostname() == "" || u.User != nil:
			fault("names no host")
		case u.Port() != "" && !validPort(u.Port()):
			fault("has a port that is none")
		case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
			fault("has a ? or # part, which means nothing here")
		default:
			urls, logins = append(urls, strings.TrimRight(u.String(), "/")), append(logins, l)
		}
	}
	return urls, logins
}

func validPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// credentials reads how Confluent's client logs in.
func (c *checked) credentials(a *Avro, name string, inURL []login) {
	basic, bearer := c.clientKey(name, "basic.auth.credentials.source"), c.clientKey(name, "bearer.auth.credentials.source")
	info, token := c.clientKey(name, "basic.auth.user.info"), c.clientKey(name, "bearer.auth.token")
	byInfo := c.has(basic) && c.enum(basic) == "user_info"
	if c.has(basic) && c.has(bearer) {
		c.fail(bearer, "set beside %s; only one of the two is allowed", basic)
		return
	}
	if c.text(token) != "" && !c.has(bearer) && !c.failed(bearer) {
		c.warn(token, "has no effect without %s.bearer.auth.credentials.source=STATIC_TOKEN beside it, as in Confluent's converter", name)
	}
	if c.text(info) != "" && !byInfo && !c.failed(basic) {
		c.warn(info, "has no effect without %s.basic.auth.credentials.source=USER_INFO beside it, as in Confluent's converter", name)
	}
	named := slices.ContainsFunc(inURL, func(l login) bool { return l != login{} })
	if urls := name + ".schema.registry.url"; named && (byInfo || c.has(bearer)) {
		c.warn(urls, "the user in the URL has no effect beside %s", map[bool]string{true: basic, false: bearer}[byInfo])
	}
	switch {
	case c.has(bearer):
		if a.Token = Secret(strings.TrimSpace(c.text(token))); a.Token == "" {
			c.fail(token, "missing beside %s", bearer)
		}
	case byInfo:
		user, password, ok := strings.Cut(c.text(info), ":")
		switch {
		case c.text(info) == "":
			c.fail(info, "missing beside %s", basic)
		case !ok || user == "":
			c.fail(info, "it is not of the form user:password")
		default:
			a.User, a.Password = user, Secret(password)
		}
	case named:
		if len(slices.Compact(slices.Clone(inURL))) > 1 {
			c.fail(name+".schema.registry.url", "its URLs differ in user or password, which is not built yet; give all the same, or none and set %s.basic.auth.credentials.source=USER_INFO with basic.auth.user.info", name)
			return
		}
		a.User, a.Password, a.LoginOfURL = inURL[0].user, inURL[0].password, true
	}
}

func (c *checked) apicurio(a *Avro, name string) {
	const coreAPI = "/apis/registry/v2"
	p := name + ".apicurio.registry."
	a.Apicurio, a.ApicurioKeys = true, true
	a.ConnectTimeout, a.ReadTimeout = time.Minute, time.Minute

	switch key := p + "headers.enabled"; {
	case !c.has(key):
		c.warn(key, "is not set, and its default in Apicurio's converter is true: ids in headers. Tidemark writes them before the record, "+
			"where Apicurio's consumers look for them when a record has no such headers. Set it to false, so that Debezium does the same")
	case c.yes(key):
		c.refuse(key, false, "true makes the converter write ids into headers, which is not built yet. "+
			"Set it to false: ids are then written before the record, where Apicurio's consumers look for them when a record has no such headers.")
	}
	a.Wide = !c.yes(p + "as-confluent")
	switch class := c.text(p + "id-handler"); class {
	case apicurioWideID:
	case apicurioNarrowID:
		a.Wide = false
	default:
		c.refuse(p+"id-handler", false, fmt.Sprintf("%q is not built; there are %s (8 bytes) and %s (4 bytes).", class, apicurioWideID, apicurioNarrowID))
	}
	a.ContentID = c.enum(p+"use-id") == "contentid"

	switch class := c.text(p + "artifact-resolver-strategy"); class {
	case apicurioTopicID:
		a.Strategy = TopicStrategy
	case apicurioRecordID:
		a.Strategy = RecordStrategy
	default:
		a.Strategy = TopicStrategy
		c.refuse(p+"artifact-resolver-strategy", false, fmt.Sprintf("%q is not built yet; there are %s and %s.", class, apicurioTopicID, apicurioRecordID))
	}
	a.Group = c.text(p + "artifact.group-id")
	a.AutoRegister = c.yes(p + "auto-register")
	a.UseLatest = c.yes(p+"find-latest") && !a.AutoRegister

	key := p + "url"
	raw := items(c.value[key])
	if len(raw) > 1 {
		raw = nil
		c.fail(key, "it must be one URL; Apicurio's converter takes no list")
	}
	urls, logins := c.registryURLs(key, raw)
	for i, u := range urls {
		if a.LikeConfluent = strings.HasSuffix(u, "/apis/ccompat/v6") || strings.HasSuffix(u, "/apis/ccompat/v7"); a.LikeConfluent {
			a.URLs = append(a.URLs, u)
		} else {
			a.URLs = append(a.URLs, strings.TrimSuffix(u, coreAPI)+coreAPI)
		}
		if a.LikeConfluent && a.Wide {
			c.fail(key, "is that of the interface that is like Confluent's registry, whose ids have four bytes; set %sas-confluent=true, or the URL without %s", p, u[strings.Index(u, "/apis/"):])
		}
		if logins[i] != (login{}) {
			c.fail(key, "has a user in it, which Apicurio's converter does not use; set %s.apicurio.auth.username and %s.apicurio.auth.password", name, name)
		}
	}

	user, password := name+".apicurio.auth.username", name+".apicurio.auth.password"
	if a.User, a.Password = c.text(user), Secret(c.text(password)); a.User != "" && a.Password == "" {
		c.fail(password, "missing beside %s", user)
	}

	ssl, keys := map[string]string{}, map[string]string{}
	take := func(key, setting string) {
		if v, ok := c.value[key]; ok && ssl[setting] == "" {
			ssl[setting], keys[setting] = v, key
		}
	}
	for _, setting := range []string{"truststore.location", "truststore.type", "truststore.password", "keystore.location", "keystore.type", "keystore.password", "key.password"} {
		take(p+"request.ssl."+setting, "ssl."+setting)
		take(name+".apicurio.rest.request.ssl."+setting, "ssl."+setting)
	}
	take(name+".apicurio.rest.request.ssl.ca-bundle.location", "ssl.truststore.location")
	c.ssl(a, ssl, func(setting string) string {
		if key, ok := keys[setting]; ok {
			return key
		}
		return p + "request." + setting
	})
}

// sslNames is the setting that says whether names in certificates are checked; in Avro.SSL it stands only if they are not.
const sslNames = "ssl.endpoint.identification.algorithm"

// sslName finds the names of Kafka's settings in a message.
var sslName = regexp.MustCompile(`\bssl\.(truststore|keystore|key|enabled|endpoint)\.[a-z.]*[a-z]`)

// ssl checks settings of TLS by their Kafka names; key gives the name in the file.
func (c *checked) ssl(a *Avro, settings map[string]string, key func(setting string) string) {
	if len(settings) == 0 {
		return
	}
	a.SSL = map[string]Secret{}
	if text, ok := settings[sslNames]; ok {
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "https":
		case "", "none":
			c.warn(key(sslNames), "it is %q: the names in the registry's certificates are not checked", text)
			a.SSL[sslNames] = ""
		default:
			c.fail(key(sslNames), "%q is not allowed; it must be https, or empty or none to leave the names in the registry's certificates unchecked", text)
		}
		delete(settings, sslNames)
	}
	for k, v := range settings {
		a.SSL[k] = Secret(v)
	}
	client := maps.Clone(settings)
	client["bootstrap.servers"], client["security.protocol"] = "unused:1", "SSL" // a client needs them
	checkClientAs(client, func(setting string) (*checked, string) { return c, key(setting) },
		func(text string) string { return sslName.ReplaceAllStringFunc(text, key) })
}
