package config

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-cdc/tidemark/emitter/kafka"
)

const (
	mysqlClass   = "io.debezium.connector.mysql.MySqlConnector"
	mariadbClass = "io.debezium.connector.mariadb.MariaDbConnector"
)

// Load reads a worker's properties and the connectors' files (JSON or properties). A file with connector.class is a
// connector's; at most one other may be given, the worker's. The error joins every fault of all files; nothing is
// connected to.
func Load(paths []string, opts Options) (*Config, error) {
	var (
		errs       []error
		worker     *file
		connectors []*file
	)
	for _, path := range paths {
		f, err := readFile(path)
		switch {
		case err != nil:
			errs = append(errs, err)
		case isConnector(f):
			connectors = append(connectors, f)
		case worker != nil:
			errs = append(errs, &KeyError{File: path, Key: "connector.class", Text: fmt.Sprintf("missing; the worker's properties are those of %s already, so this must be a connector", worker.path)})
		default:
			worker = f
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if len(connectors) == 0 {
		errs = append(errs, &KeyError{Key: "connector.class", Text: "no connector is given; give its JSON or properties file: tidemark run worker.properties connector.json"})
	}
	if worker == nil {
		errs = append(errs, &KeyError{Key: "bootstrap.servers", Text: "missing, since no worker's properties file is given; it names Kafka's brokers (bootstrap.servers=host:9092) and where offsets are kept (offset.storage.file.filename or offset.storage.topic): tidemark run worker.properties connector.json"})
		worker = &file{value: map[string]string{}}
	}

	cfg := &Config{}
	var declared []error
	providers := newProviders(worker, func(key, format string, args ...any) {
		declared = append(declared, &KeyError{File: worker.path, Key: key, Text: fmt.Sprintf(format, args...)})
	})
	w := checkFile(worker, InWorker, opts, providers)
	w.errs = append(w.errs, declared...)
	if worker.path != "" {
		cfg.Worker = w.worker()
	}
	var checks []*checked
	for _, f := range connectors {
		c := checkFile(f, InConnector, opts, providers)
		checks = append(checks, c)
		if c.failed("connector.class") {
			continue
		}
		connector := c.connector()
		if c.text("name") == "" && !c.failed("name") {
			c.fail("name", `missing; it is the first part of the offset's key (give {"name":"…","config":{…}} or the key name)`)
		}
		c.kafka(connector, w)
		cfg.Connectors = append(cfg.Connectors, connector)
	}
	if worker.path != "" {
		checks = append([]*checked{w}, checks...) // taken only now: its producer.* keys are checked together with the connectors' own
	}
	for _, c := range checks {
		c.replaced()
		errs = append(errs, c.errs...)
		cfg.Warnings = append(cfg.Warnings, c.warnings...)
	}
	errs = append(errs, clashes(cfg.Connectors)...)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return cfg, nil
}

// isConnector tells a connector's file from a worker's. JSON is always a connector's, so that one without
// connector.class is told so.
func isConnector(f *file) bool {
	_, has := f.value["connector.class"]
	return has || f.json
}

// LoadTail reads one connector's file for printing its events: the name is not required (topic.prefix stands in), no
// Kafka is configured, and the server id is a random one, so that a running connector keeps its own.
func LoadTail(path string, opts Options) (*Connector, []Warning, error) {
	f, err := readFile(path)
	if err != nil {
		return nil, nil, err
	}
	return tail(f, opts)
}

func tail(f *file, opts Options) (*Connector, []Warning, error) {
	c := checkFile(f, InConnector, opts, newProviders(&file{}, nil))
	if c.failed("connector.class") {
		return nil, nil, errors.Join(c.errs...)
	}
	connector := c.connector()
	c.converters(connector, nil)
	if connector.Name == "" {
		connector.Name = connector.Prefix
	}
	if f.path != "" {
		connector.ServerID = randomServerID()
	}
	c.replaced()
	if len(c.errs) > 0 {
		return nil, c.warnings, errors.Join(c.errs...)
	}
	return connector, c.warnings, nil
}

// randomServerID is one of the upper half of all ids, where hand-numbered servers seldom are.
func randomServerID() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return min(binary.BigEndian.Uint32(b[:])|1<<31, 1<<32-2)
}

// clashes finds connectors that would get in each other's way.
func clashes(all []*Connector) []error {
	var errs []error
	names := map[string]*Connector{}
	ids := map[string]*Connector{}
	for _, c := range all {
		if c.Name == "" || c.ServerID == 0 {
			continue // has a fault of its own
		}
		if other := names[c.Name]; other != nil {
			errs = append(errs, &KeyError{File: c.File, Key: "name", Text: fmt.Sprintf("%q is the name of the connector in %s too; names must differ, since offsets are kept by name", c.Name, other.File)})
		}
		names[c.Name] = c
		id := fmt.Sprintf("%s:%d/%d", strings.ToLower(c.Host), c.Port, c.ServerID)
		if other := ids[id]; other != nil {
			errs = append(errs, &KeyError{File: c.File, Key: "database.server.id", Text: fmt.Sprintf("%d is the id of the connector in %s on the same server too; MySQL ends one connection when another with the same id comes", c.ServerID, other.File)})
		}
		ids[id] = c
	}
	return errs
}

// worker makes the worker's settings of checked values.
func (c *checked) worker() *Worker {
	w := &Worker{
		Bootstrap:      c.text("bootstrap.servers"),
		GroupID:        c.text("group.id"),
		OffsetFile:     c.text("offset.storage.file.filename"),
		FlushInterval:  c.millis("offset.flush.interval.ms"),
		FlushTimeout:   c.millis("offset.flush.timeout.ms"),
		StandbySession: c.millis("standby.session.timeout.ms"),
	}
	topic := c.text("offset.storage.topic")
	switch {
	case topic != "" && w.OffsetFile != "":
		c.fail("offset.storage.topic", "set beside offset.storage.file.filename; offsets are kept in one place: remove one of the two")
	case topic == "" && w.OffsetFile == "" && !c.failed("offset.storage.topic") && !c.failed("offset.storage.file.filename"):
		c.fail("offset.storage.file.filename", "missing, and offset.storage.topic too; one of them says where offsets are kept")
	case topic != "":
		w.OffsetTopic = &OffsetTopic{
			Name:              topic,
			Partitions:        int32(c.replicas("offset.storage.partitions")),
			ReplicationFactor: int16(c.replicas("offset.storage.replication.factor")),
			Config:            map[string]string{},
		}
		for k, v := range c.under("offset.storage.") {
			switch k {
			case "topic", "partitions", "replication.factor", "file.filename":
			case "cleanup.policy":
				if !strings.EqualFold(strings.TrimSpace(v), "compact") {
					c.warn("offset.storage.cleanup.policy", "%q has no effect: the offsets topic is compacted", v)
				}
			default:
				w.OffsetTopic.Config[k] = v
			}
		}
		if err := topicName(topic); err != nil {
			c.fail("offset.storage.topic", "%v", err)
		}
	}
	c.converterClass("key.converter")
	c.converterClass("value.converter")
	w.Client = c.clientKeys()
	w.Client["client.id"] = c.clientBase() + "offsets"
	w.ClientReread = rereads(w.Client, func(setting string) (*checked, string) { return c, setting })
	if w.Bootstrap != "" {
		checkClient(w.Client, func(setting string) (*checked, string) { return c, setting })
	}
	if protocol := c.text("security.protocol"); c.has("security.protocol") && !c.has("producer.security.protocol") {
		c.warn("security.protocol", "%s is for the worker's own clients; the producers connect with PLAINTEXT, unless producer.security.protocol or a connector's producer.override.security.protocol says otherwise, as in Kafka Connect", protocol)
	}
	return w
}

// replicas reads a number of partitions or replicas, where 0 is not allowed.
func (c *checked) replicas(key string) int64 {
	n := c.number(key)
	if n == 0 {
		c.fail(key, "0 is not allowed; it must be 1 or more, or -1 for the broker's default")
	}
	return n
}

// clientKeys is what of a worker's file belongs to its own Kafka clients. What they take no notice of has been said.
func (c *checked) clientKeys() map[string]string {
	m := map[string]string{}
	for k, v := range c.value {
		p := c.table.find(k)
		if k == "bootstrap.servers" || p != nil && p.Group == groupKafka && p.Status != Accepted && !strings.HasPrefix(k, "producer.") && !strings.HasPrefix(k, "admin.") && !strings.HasPrefix(k, "consumer.") {
			m[k] = v
		}
	}
	return m
}

// clientBase is the beginning of the client ids of a worker's own clients, as Kafka Connect makes it.
func (c *checked) clientBase() string {
	base := c.text("group.id")
	if base == "" {
		base = "connect"
	}
	if id := c.text("client.id"); id != "" {
		base += "-" + id
	}
	return base + "-"
}

// topicName says what is wrong with the name of a Kafka topic.
func topicName(name string) error {
	if len(name) > 249 || name == "." || name == ".." || !regexp.MustCompile(`^[a-zA-Z0-9._-]+$`).MatchString(name) {
		return fmt.Errorf("%q is no name of a topic; letters, digits, dot, hyphen and underscore may stand in it, at most 249", name)
	}
	return nil
}

// connector makes a connector's settings of checked values, but for what concerns Kafka.
func (c *checked) connector() *Connector {
	conn := &Connector{
		Name:                    c.text("name"),
		File:                    c.path,
		Host:                    c.text("database.hostname"),
		Port:                    uint16(c.number("database.port")),
		User:                    c.text("database.user"),
		Password:                Secret(c.text("database.password")),
		ServerID:                uint32(c.number("database.server.id")),
		SSL:                     SSLMode(c.enum("database.ssl.mode")),
		ConnectTimeout:          c.millis("connect.timeout.ms"),
		Heartbeat:               c.heartbeat(),
		AllowPublicKeyRetrieval: c.yes("driver.allowPublicKeyRetrieval"),
		MariaDB:                 strings.HasPrefix(shortClass(c.text("connector.class")), "MariaDb"),
		Prefix:                  c.text("topic.prefix"),
		SnapshotMode:            c.enum("snapshot.mode"),
		Tombstones:              c.yes("tombstones.on.delete"),
		ExtendedHeaders:         c.yes("extended.headers.enabled"),
	}
	if strings.ContainsAny(conn.Name, "\r\n\x00") {
		c.fail("name", "holds a control character")
	}
	if conn.Prefix != "" && !regexp.MustCompile(`^[a-zA-Z0-9_.-]+$`).MatchString(conn.Prefix) {
		c.fail("topic.prefix", "%q is not allowed; only letters, digits, dot, hyphen and underscore may stand in it", conn.Prefix)
	}
	start, err := ParseStart(c.text("start.position"))
	if err != nil {
		c.fail("start.position", "%v", err)
	}
	conn.Start = start
	conn.Filter = c.filter()
	if state := c.state; state != "" && !strings.EqualFold(state, "RUNNING") {
		c.fail("initial_state", "%q is not built yet; a connector that is given is run. Remove it", state)
	}
	c.mysqlTLS(conn)
	c.events(conn)
	conn.Fingerprint = c.fingerprint()
	return conn
}

// heartbeat is 0.8 of connect.keep.alive.interval.ms, as Debezium asks for it, but never less often than every 10 s: its
// default would let a dead connection pass for alive for minutes.
func (c *checked) heartbeat() time.Duration {
	const most = 10 * time.Second
	d := c.millis("connect.keep.alive.interval.ms") * 8 / 10
	if d <= 0 || d > most {
		return most
	}
	return max(d, 100*time.Millisecond)
}

// class checks connector.class and says whether it is ours. A missing one is found by the table.
func (c *checked) class() bool {
	switch class := c.text("connector.class"); class {
	case "", mysqlClass, "MySqlConnector", "MySql", // Kafka Connect takes the short names too
		mariadbClass, "MariaDbConnector", "MariaDb":
		return true
	default:
		c.fail("connector.class", "%q is no connector of this program; it must be %s or %s", class, mysqlClass, mariadbClass)
	}
	return false
}

// ClassOf is the connector.class for a kind of server.
func ClassOf(mariaDB bool) string {
	if mariaDB {
		return mariadbClass
	}
	return mysqlClass
}

// shortClass is the name of a class without its package.
func shortClass(class string) string { return class[strings.LastIndexByte(class, '.')+1:] }

// filter compiles the lists of databases and tables.
func (c *checked) filter() *Filter {
	f := &Filter{builtin: !c.yes("table.ignore.builtin")}
	for _, l := range []struct {
		name string
		to   *list
	}{{"database", &f.database}, {"table", &f.table}} {
		include, exclude := l.name+".include.list", l.name+".exclude.list"
		if c.text(include) != "" && c.text(exclude) != "" {
			c.fail(exclude, "set beside %s; only one of the two is allowed", include)
		}
		f.text += c.text(include) + "\n" + c.text(exclude) + "\n"
		if text := c.text(include); text != "" {
			*l.to, _ = parseList(text, false) // checked before
		} else if text := c.text(exclude); text != "" {
			*l.to, _ = parseList(text, true)
		}
	}
	return f
}

// kafka adds to a connector what the worker and its own overrides say about converters, producer and topics.
func (c *checked) kafka(conn *Connector, worker *checked) {
	c.converters(conn, worker)
	conn.Producer = map[string]string{
		"bootstrap.servers": worker.text("bootstrap.servers"),
		"client.id":         "connector-producer-" + conn.Name + "-0",
	}
	maps.Copy(conn.Producer, worker.under("producer."))
	maps.Copy(conn.Producer, c.under("producer.override."))
	if conn.Producer["bootstrap.servers"] != "" {
		from := func(setting string) (*checked, string) {
			switch {
			case c.has("producer.override." + setting):
				return c, "producer.override." + setting
			case worker.has("producer." + setting):
				return worker, "producer." + setting
			}
			return worker, setting
		}
		checkClient(conn.Producer, from)
		conn.ProducerReread = rereads(conn.Producer, from)
	}

	admin := worker.under("admin.")
	maps.Copy(admin, c.under("admin.override."))
	for _, k := range slices.Sorted(maps.Keys(admin)) {
		if strings.HasPrefix(k, "listeners") {
			continue
		}
		if k != "client.id" && admin[k] != conn.Producer[k] {
			c.fail("admin.override."+k, "differs from the producer's %s, and topics are made over the producer's connection. Give both the same value, or remove it (also as admin.%s of the worker)", k, k)
		}
	}

	if conn.OffsetsTopic = c.text("offsets.storage.topic"); conn.OffsetsTopic != "" {
		if err := topicName(conn.OffsetsTopic); err != nil {
			c.fail("offsets.storage.topic", "%v", err)
		}
	}

	c.transactions(conn, worker)
	c.deadLetters(conn, worker)

	partitions, replicas := "topic.creation.default.partitions", "topic.creation.default.replication.factor"
	if !worker.yes("topic.creation.enable") || !c.has(partitions) && !c.has(replicas) {
		return
	}
	for _, pair := range [][2]string{{partitions, replicas}, {replicas, partitions}} {
		if !c.has(pair[0]) && !c.failed(pair[0]) {
			c.fail(pair[0], "missing beside %s; Kafka Connect needs both to create topics", pair[1])
		}
	}
	if !c.has(partitions) || !c.has(replicas) {
		return
	}
	conn.TopicCreation = &TopicCreation{
		Partitions:        int32(c.replicas(partitions)),
		ReplicationFactor: int16(c.replicas(replicas)),
		Config:            c.under("topic.creation.default."),
	}
	delete(conn.TopicCreation.Config, "partitions")
	delete(conn.TopicCreation.Config, "replication.factor")
	conn.TopicGroups = c.topicGroups()
}

// converters sets the converters: the connector's own if it names one, else the worker's, else JSON with schemas.
func (c *checked) converters(conn *Connector, worker *checked) {
	conn.Key = c.converter("key.converter", worker)
	conn.Value = c.converter("value.converter", worker)
	conn.HeaderConverter = c.headerConverter(worker)
}

func (c *checked) converter(name string, worker *checked) Converter {
	from := c
	if c.text(name) == "" && worker != nil {
		from = worker
		for _, k := range slices.Sorted(maps.Keys(c.under(name + "."))) {
			c.unwarn(name + "." + k)
			c.warn(name+"."+k, "has no effect without %s beside it, as in Kafka Connect: the worker's converter is used", name)
		}
	} else {
		c.converterClass(name)
	}
	if from.converterOf(name)&(OfConfluent|OfApicurio) != 0 {
		return Converter{Avro: from.avro(name)}
	}
	return Converter{
		Schemas:                from.yes(name + ".schemas.enable"),
		ReplaceNullWithDefault: from.yes(name + ".replace.null.with.default"),
		NumericDecimals:        from.enum(name+".decimal.format") == "numeric",
	}
}

// converterOf is the converter that the file names for keys or values (name is key.converter or value.converter), JSON if
// it names none; 0 for one that is not built.
func (f *file) converterOf(name string) Converters {
	switch strings.TrimSpace(f.value[name]) {
	case "", jsonConverter, "JsonConverter", "Json": // Kafka Connect takes the short names too
		return OfJSON
	case confluentConverter:
		return OfConfluent
	case apicurioConverter:
		return OfApicurio
	case "AvroConverter", "Avro": // both have these: the settings tell which is meant
		if _, ok := f.value[name+".apicurio.registry.url"]; ok {
			return OfApicurio
		}
		return OfConfluent
	}
	return 0
}

// converterKnows says whether the converter that the file names knows a key of converters, else warns of it; quietly, the
// key belongs in the list of those without meaning.
func (c *checked) converterKnows(p *Property, key string) (known, quietly bool) {
	side, _, _ := strings.Cut(key, ".")
	converter := c.converterOf(side + ".converter")
	switch {
	case p.Of&converter != 0:
		return true, false
	case converter&(OfConfluent|OfApicurio) == 0:
		return false, true
	case strings.HasSuffix(p.Name, ".converter.<setting>"): // a row for all that no other takes
		c.unknown(key)
	default:
		c.warn(key, "has no effect: %s does not know it", converter)
	}
	return false, false
}

// headerConverter reads header.converter, the connector's or else the worker's.
func (c *checked) headerConverter(worker *checked) HeaderConverter {
	const name = "header.converter"
	from := c
	if !c.has(name) && worker != nil {
		from = worker
	}
	h := HeaderConverter{Class: shortClass(from.text(name)), JSON: Converter{Schemas: true, ReplaceNullWithDefault: true}}
	switch h.Class {
	case "SimpleHeaderConverter", "StringConverter":
	case "Simple", "String":
		h.Class += map[string]string{"Simple": "Header", "String": ""}[h.Class] + "Converter"
	case "JsonConverter", "Json":
		h.Class = "JsonConverter"
		for setting, to := range map[string]*bool{"schemas.enable": &h.JSON.Schemas, "replace.null.with.default": &h.JSON.ReplaceNullWithDefault} {
			if text, ok := from.value[name+"."+setting]; ok {
				*to = strings.EqualFold(strings.TrimSpace(text), "true")
			}
		}
		h.JSON.NumericDecimals = strings.EqualFold(strings.TrimSpace(from.value[name+".decimal.format"]), "numeric")
	default:
		from.fail(name, "%q is not built; there are org.apache.kafka.connect.storage.SimpleHeaderConverter, org.apache.kafka.connect.storage.StringConverter and %s", from.text(name), jsonConverter)
	}
	return h
}

// converterClass checks that a file's own converter is built.
func (c *checked) converterClass(name string) {
	if c.converterOf(name) == 0 {
		c.fail(name, "%q is not built yet; there are %s, %s and %s", c.text(name), jsonConverter, confluentConverter, apicurioConverter)
	}
}

// origin says which file and key a setting of a Kafka client comes from.
type origin func(setting string) (file *checked, key string)

// checkClient holds a Kafka client's settings against what the client can do.
func checkClient(settings map[string]string, from origin) {
	checkClientAs(settings, from, func(text string) string { return text })
}

// checkClientAs does so for settings that have other names in the files: reword puts them into messages.
func checkClientAs(settings map[string]string, from origin, reword func(text string) string) {
	reportClient(kafka.CheckProperties, settings, from, reword)
}

// historyClient checks the settings of the schema history's client and says how to read them anew.
func (c *checked) historyClient(settings map[string]string, prefix string, check func(map[string]string) ([]string, error)) func() (map[string]string, error) {
	from := func(setting string) (*checked, string) {
		if setting == "bootstrap.servers" {
			return c, "schema.history.internal.kafka.bootstrap.servers"
		}
		return c, prefix + setting
	}
	if settings["bootstrap.servers"] != "" {
		reportClient(check, settings, from, func(text string) string { return text })
	}
	return rereads(settings, from)
}

// reportClient puts what check says of settings where they come from.
func reportClient(check func(map[string]string) ([]string, error), settings map[string]string, from origin, reword func(text string) string) {
	const intro = "Kafka client property "
	place := func(text string) (*checked, string, string) {
		text = strings.TrimPrefix(text, intro)
		end := strings.IndexAny(text, "=: ")
		if end < 0 {
			end = len(text)
		}
		c, key := from(text[:end])
		return c, key, reword(strings.TrimLeft(text[end:], "=: "))
	}
	warnings, err := check(settings)
	for _, w := range warnings {
		c, key, text := place(w)
		warning := Warning{File: c.path, Key: key, Text: c.masked(text)}
		if !slices.Contains(c.warnings, warning) {
			c.warnings = append(c.warnings, warning)
		}
	}
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	for _, err := range all {
		if err == nil {
			continue
		}
		c, key, text := place(err.Error())
		if !c.failed(key) {
			c.fail(key, "%s", text)
		}
	}
}
