package config

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-cdc/tidemark/emitter/kafka"
	"github.com/tidemark-cdc/tidemark/schema"
)

// Naming says how topics are named (topic.naming.strategy).
type Naming struct {
	Class       string // the strategy's class without its package: DefaultTopicNamingStrategy …
	Delimiter   string
	Transaction string // topic.transaction

	// Of the strategies whose names hold Regex: how tables are merged into one topic.
	Regex           *regexp.Regexp
	Replacement     string // in Java's form: $1
	UniqueKey       bool   // the key says which table it is from
	KeyField        string
	KeyRegex        *regexp.Regexp // nil: the topic's name as it was
	KeyReplacement  string
	HeartbeatPrefix string
	HeartbeatTopic  string // the whole name; "": prefix and topic.prefix
}

// Heartbeats says when heartbeat records are written.
type Heartbeats struct {
	Interval time.Duration // 0: none
	Query    string        // SQL run before each; "" for none
}

// History is Debezium's schema history.
type History struct {
	Topic    string            // its topic; "" when it is none
	File     string            // its file; "" when it is none
	Producer map[string]string // client settings for writing the topic, by their Java names
	Consumer map[string]string // client settings for reading it
	// ProducerReread and ConsumerReread are those with what config providers give now; nil when no value asks one.
	ProducerReread, ConsumerReread func() (map[string]string, error)

	OnlyTables      bool // store.only.captured.tables.ddl
	OnlyDatabases   bool // store.only.captured.databases.ddl
	SkipUnparseable bool // skip.unparseable.ddl
	PreferDDL       bool // prefer.ddl
	// Filtered says which statements leave no trace in history and schema change topic (ddl.filter); nil: Debezium's default.
	Filtered func(sql string) bool
}

// TopicGroup is a group of topic.creation.groups.
type TopicGroup struct {
	Name             string
	Include, Exclude []*regexp.Regexp // a topic belongs to the group if it matches one of Include and none of Exclude
	TopicCreation
}

// Failure is what happens when something cannot be processed.
type Failure string

// The ways to treat failures.
const (
	Fail Failure = "fail" // the stream stops
	Warn Failure = "warn" // it is left out, with a warning
	Skip Failure = "skip" // it is left out, which is said once
)

// events fills in what shapes the events.
func (c *checked) events(conn *Connector) {
	conn.Modes = c.modes()
	conn.Columns = c.columns()
	conn.OnlyColumns = c.text("column.include.list") != ""
	conn.Keys = c.keys()
	conn.SkipOperations = map[string]bool{}
	for _, op := range items(c.text("skipped.operations")) {
		op = strings.ToLower(op)
		if op == "none" {
			if len(items(c.text("skipped.operations"))) > 1 {
				c.fail("skipped.operations", "none stands beside other operations; give none alone, or the operations")
			}
			continue
		}
		conn.SkipOperations[op] = true
	}
	conn.SkipUnchanged = c.yes("skip.messages.without.change")
	conn.SchemaChanges = c.yes("include.schema.changes")
	conn.IncludeQuery = c.yes("include.query")
	conn.Transactions = c.yes("provide.transaction.metadata")
	conn.Placeholder = c.text("unavailable.value.placeholder")
	conn.SchemaNames = c.enum("schema.name.adjustment.mode")
	conn.FieldNames = c.fieldNames()
	conn.Naming = c.naming()
	conn.Heartbeats = Heartbeats{Interval: c.millis("heartbeat.interval.ms"), Query: c.text("heartbeat.action.query")}
	conn.History = c.history()
	conn.Unprocessable = c.failure("event.processing.failure.handling.mode", "event.deserialization.failure.handling.mode")
	conn.UnknownTables = c.failure("inconsistent.schema.handling.mode")
	conn.Tolerance = c.tolerance()
	conn.MaxRetries = int(c.number("errors.max.retries"))
	conn.InitialStatements = statements(c.text("database.initial.statements"))
	conn.GTIDSources = c.gtidSources()
	conn.GTIDDML = c.yes("gtid.source.filter.dml.events")
	conn.IgnoreGTIDs = c.yes("gtid.ignore.on.recovery")
	conn.MostTables = int(c.number("guardrail.collections.max"))
	conn.MostTablesFail = c.enum("guardrail.collections.limit.action") == "fail"
}

func (c *checked) failure(keys ...string) Failure {
	for _, key := range keys {
		if c.has(key) {
			if mode := c.enum(key); mode != "ignore" { // the older name of skip
				return Failure(mode)
			}
			return Skip
		}
	}
	return Fail
}

// modes reads the handling modes of types.
func (c *checked) modes() schema.Modes {
	choose := func(key string, names ...string) int { return max(0, slices.Index(names, c.enum(key))) }
	m := schema.Modes{
		Decimal:        schema.DecimalMode(choose("decimal.handling.mode", "precise", "double", "string")),
		Time:           schema.TimeMode(choose("time.precision.mode", "adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds")),
		UnsignedBigint: schema.UnsignedMode(choose("bigint.unsigned.handling.mode", "long", "precise")),
		Binary:         schema.BinaryMode(choose("binary.handling.mode", "bytes", "base64", "base64-url-safe", "hex")),
		Failure:        schema.FailureMode(choose("event.converting.failure.handling.mode", "warn", "skip", "fail")),
		NoTimeAdjuster: !c.yes("enable.time.adjuster"),
		Comments:       c.yes("include.schema.comments"),
		Masks:          c.masks(),
		Converters:     c.customConverters(),
	}
	m.SourceColumn = c.matcher("column.propagate.source.type")
	if byType := c.matcher("datatype.propagate.source.type"); byType != nil {
		m.SourceType = func(database, table, _, typeName string) bool { return byType(database, table, typeName) }
	}
	return m
}

// matcher compiles a list of patterns for database.table.column; nil for an empty one.
func (c *checked) matcher(key string) func(database, table, column string) bool {
	l, err := parseList(c.text(key), false)
	if err != nil || !l.set { // a fault was reported when the value was checked
		return nil
	}
	return l.column
}

func (l list) column(database, table, column string) bool {
	return l.allows(database + "." + table + "." + column)
}

// columns compiles column.include.list and column.exclude.list; nil lets all columns through.
func (c *checked) columns() func(database, table, column string) bool {
	const include, exclude = "column.include.list", "column.exclude.list"
	if c.text(include) != "" && c.text(exclude) != "" {
		c.fail(exclude, "set beside %s; only one of the two is allowed", include)
	}
	if m := c.matcher(include); m != nil {
		return m
	}
	if l, err := parseList(c.text(exclude), true); err == nil && l.set {
		return l.column
	}
	return nil
}

var (
	maskKey     = regexp.MustCompile(`^column\.mask\.with\.([0-9]+)\.chars$`)
	truncateKey = regexp.MustCompile(`^column\.truncate\.to\.([0-9]+)\.chars$`)
	hashKey     = regexp.MustCompile(`^column\.mask\.hash\.(v2\.)?([^.]+)\.with\.salt\.(.+)$`)
)

// masks reads the keys that hide or cut values, in the order in which Debezium looks at them.
func (c *checked) masks() []schema.Mask {
	type ranked struct {
		rank int
		key  string
		mask schema.Mask
	}
	var all []ranked
	for _, key := range slices.Sorted(maps.Keys(c.value)) {
		var r ranked
		if m := truncateKey.FindStringSubmatch(key); m != nil {
			r.rank, r.mask.Kind, r.mask.Length = 0, schema.MaskTruncate, c.length(key, m[1])
			if r.mask.Length == 0 && !c.failed(key) {
				c.fail(key, "0 is not allowed; a value is cut after 1 character or more (column.mask.with.0.chars empties it)")
			}
		} else if m := maskKey.FindStringSubmatch(key); m != nil {
			r.rank, r.mask.Kind, r.mask.Length = 1, schema.MaskFixed, c.length(key, m[1])
		} else if m := hashKey.FindStringSubmatch(key); m != nil {
			r.rank, r.mask.Kind, r.mask.V2, r.mask.Algorithm, r.mask.Salt = 2, schema.MaskHash, m[1] != "", m[2], m[3]
			if r.mask.V2 {
				r.rank = 3
			}
			if err := schema.CheckHash(r.mask.Algorithm); err != nil {
				c.fail(key, "%v", err)
			}
		} else {
			continue
		}
		if r.mask.Match = c.matcher(key); r.mask.Match == nil {
			continue
		}
		r.key = key
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
	var masks []schema.Mask
	for _, r := range all {
		masks = append(masks, r.mask)
	}
	return masks
}

func (c *checked) length(key, digits string) int {
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil {
		c.fail(key, "%s is no length that a value can have", digits)
	}
	return int(n)
}

// keys reads message.key.columns: table:column,column;table:column … Each item is one matcher; the key's columns are
// those of the first item in the table's order, then those of the next.
func (c *checked) keys() []func(database, table, column string) bool {
	const key = "message.key.columns"
	text := c.text(key)
	if text == "" {
		return nil
	}
	var all []func(database, table, column string) bool
	for _, item := range strings.Split(text, ";") {
		if strings.TrimSpace(item) == "" {
			continue
		}
		table, columns, ok := strings.Cut(item, ":")
		table = strings.TrimSpace(table)
		if !ok || table == "" || strings.Contains(columns, ":") {
			c.fail(key, "%q is not of the form database.table:column,column", strings.TrimSpace(item))
			continue
		}
		for _, column := range strings.Split(columns, ",") {
			column = strings.TrimSpace(column)
			if column == "" {
				c.fail(key, "%q names no column between two commas", strings.TrimSpace(item))
				continue
			}
			// As Debezium has it, table and column are one list of patterns.
			l, err := parseList(table+"."+column, false)
			if err != nil {
				c.fail(key, "%v", err)
				continue
			}
			all = append(all, l.column)
		}
	}
	return all
}

// namingClasses are the strategies in the connector's jars.
var namingClasses = []string{
	"DefaultTopicNamingStrategy", "SchemaTopicNamingStrategy",
	"DefaultRegexTopicNamingStrategy", "SchemaRegexTopicNamingStrategy",
	"DefaultUnicodeTopicNamingStrategy", "SchemaUnicodeTopicNamingStrategy",
}

const namingPackage = "io.debezium.schema."

func (c *checked) naming() Naming {
	n := Naming{
		Class:           strings.TrimPrefix(c.text("topic.naming.strategy"), namingPackage),
		Delimiter:       c.text("topic.delimiter"),
		Transaction:     c.text("topic.transaction"),
		HeartbeatPrefix: c.text("topic.heartbeat.prefix"),
		HeartbeatTopic:  c.text("topic.heartbeat.name"),
	}
	if old := "heartbeat.topics.prefix"; c.has(old) && !c.has("topic.heartbeat.prefix") {
		n.HeartbeatPrefix = c.text(old)
	}
	if class := c.text("topic.naming.strategy"); !strings.HasPrefix(class, namingPackage) || !slices.Contains(namingClasses, n.Class) {
		c.fail("topic.naming.strategy", "%q is none of the classes that come with the connector: %s%s", class, namingPackage, strings.Join(namingClasses, ", "+namingPackage))
	}
	for _, key := range []string{"topic.delimiter", "topic.transaction", "topic.heartbeat.prefix", "topic.heartbeat.name"} {
		if text := c.text(key); text != "" && !topicLetters.MatchString(text) {
			c.fail(key, "%q is not allowed; only letters, digits, dot, hyphen and underscore may stand in it", text)
		}
	}
	if !strings.Contains(n.Class, "Regex") {
		return n
	}
	pattern := func(key, replacement string, required bool) *regexp.Regexp {
		text := c.text(key)
		if text == "" {
			if required {
				c.fail(key, "missing; %s needs it", n.Class)
			}
			return nil
		}
		if c.text(replacement) == "" {
			c.fail(replacement, "missing beside %s", key)
		}
		r, err := compileJavaCase(text)
		if err != nil {
			c.fail(key, "pattern %q: %v", text, err)
		}
		return r
	}
	n.Regex, n.Replacement = pattern("topic.regex", "topic.replacement", true), c.text("topic.replacement")
	n.UniqueKey, n.KeyField = c.yes("topic.key.enforce.uniqueness"), c.text("topic.key.field.name")
	n.KeyRegex, n.KeyReplacement = pattern("topic.key.field.regex", "topic.key.field.replacement", false), c.text("topic.key.field.replacement")
	return n
}

var topicLetters = regexp.MustCompile(`^[a-zA-Z0-9._-]+$`)

// customConverters reads the list converters.
func (c *checked) customConverters() []schema.Converter {
	var all []schema.Converter
	for _, name := range items(c.text("converters")) {
		key := name + ".type"
		class := strings.TrimSpace(c.value[key])
		short := class
		for _, pkg := range []string{"io.debezium.connector.mysql.converters.", "io.debezium.connector.binlog.converters.", "io.debezium.connector.mariadb.converters."} {
			short = strings.TrimPrefix(short, pkg)
		}
		selector := func(setting string) func(database, table, column string) bool {
			text := strings.TrimSpace(c.value[name+"."+setting])
			if text == "" {
				return nil
			}
			l, err := parseList(text, false)
			if err != nil {
				c.fail(name+"."+setting, "%v", err)
			}
			return l.column
		}
		flag := func(setting string, otherwise bool) bool {
			switch text := strings.ToLower(strings.TrimSpace(c.value[name+"."+setting])); text {
			case "":
				return otherwise
			case "true", "false":
				return text == "true"
			default:
				c.fail(name+"."+setting, "%q is not allowed; it must be true or false", text)
				return otherwise
			}
		}
		switch {
		case class == "":
			c.fail(key, "missing; it names the class of the converter %s in converters", name)
		case short == class:
			c.fail(key, "%q is not one of the converters that come with the connector (TinyIntOneToBooleanConverter, JdbcSinkDataTypesConverter); classes of your own cannot be loaded here. Remove %s from converters", class, name)
		case short == "TinyIntOneToBooleanConverter":
			all = append(all, schema.Converter{Kind: schema.TinyIntOneToBoolean, Match: selector("selector"), Length: flag("length.checker", true)})
		case short == "JdbcSinkDataTypesConverter":
			all = append(all, schema.Converter{
				Kind: schema.JDBCSinkDataTypes,
			})
		default:
			c.fail(key, "%q is not built; of the connector's converters there are TinyIntOneToBooleanConverter and JdbcSinkDataTypesConverter. Zero dates are null, or the epoch in required columns, without a converter. Remove %s from converters", class, name)
		}
	}
	return all
}

// history reads the schema history's settings.
func (c *checked) history() History {
	const base = "schema.history.internal"
	h := History{
		OnlyTables:      c.yes(base + ".store.only.captured.tables.ddl"),
		OnlyDatabases:   c.yes(base + ".store.only.captured.databases.ddl"),
		SkipUnparseable: c.yes(base + ".skip.unparseable.ddl"),
		PreferDDL:       c.yes(base + ".prefer.ddl"),
	}
	switch class := c.text(base); {
	case strings.HasSuffix(class, ".KafkaSchemaHistory"):
		if h.Topic = c.text(base + ".kafka.topic"); h.Topic != "" {
			if err := topicName(h.Topic); err != nil {
				c.fail(base+".kafka.topic", "%v", err)
			}
			if c.text(base+".kafka.bootstrap.servers") == "" {
				c.fail(base+".kafka.bootstrap.servers", "missing beside %s.kafka.topic", base)
			}
		}
		if h.Topic == "" {
			break
		}
		h.Producer, h.Consumer = c.under(base+".producer."), c.under(base+".consumer.")
		for _, m := range []map[string]string{h.Producer, h.Consumer} {
			m["bootstrap.servers"] = c.text(base + ".kafka.bootstrap.servers")
		}
		h.ProducerReread = c.historyClient(h.Producer, base+".producer.", kafka.CheckProperties)
		h.ConsumerReread = c.historyClient(h.Consumer, base+".consumer.", kafka.CheckConsumerProperties)
	case strings.HasSuffix(class, ".FileSchemaHistory"):
		if h.File = c.text(base + ".file.filename"); h.File == "" {
			c.fail(base+".file.filename", "missing; FileSchemaHistory needs it")
		}
	case strings.HasSuffix(class, ".MemorySchemaHistory"):
	default:
		c.fail(base, "%q is not built; a schema history is kept in a topic (io.debezium.storage.kafka.history.KafkaSchemaHistory) or a file (io.debezium.storage.file.history.FileSchemaHistory). Remove the key to do without one", class)
	}
	filter := c.text(base + ".ddl.filter")
	if filter == "" {
		filter = c.text("internal." + base + ".ddl.filter")
	}
	if filter == "" {
		return h
	}
	if l, err := parseDDLFilter(filter); err != nil {
		c.fail(base+".ddl.filter", "%v", err)
	} else {
		h.Filtered = func(sql string) bool {
			return slices.ContainsFunc(l, func(r *regexp.Regexp) bool { return r.MatchString(sql) })
		}
	}
	return h
}

func parseDDLFilter(text string) ([]*regexp.Regexp, error) {
	parts, err := splitPatterns(text)
	if err != nil {
		return nil, err
	}
	var all []*regexp.Regexp
	for _, p := range parts {
		r, err := compileJavaFlags(p, "is")
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", p, err)
		}
		all = append(all, r)
	}
	return all, nil
}

// statements splits SQL at semicolons; a doubled one is a semicolon of the text.
func statements(text string) []string {
	const doubled = "\x00"
	var all []string
	for _, s := range strings.Split(strings.ReplaceAll(text, ";;", doubled), ";") {
		if s = strings.TrimSpace(strings.ReplaceAll(s, doubled, ";")); s != "" {
			all = append(all, s)
		}
	}
	return all
}

// gtidSources reads gtid.source.includes and .excludes: patterns of server UUIDs. Nil: all count.
func (c *checked) gtidSources() func(uuid string) bool {
	const include, exclude = "gtid.source.includes", "gtid.source.excludes"
	if c.text(include) != "" && c.text(exclude) != "" {
		c.fail(exclude, "set beside %s; only one of the two is allowed", include)
	}
	for _, key := range []string{include, exclude} {
		if l, err := parseList(c.text(key), key == exclude); err == nil && l.set {
			return l.allows
		}
	}
	return nil
}

// topicGroups reads topic.creation.groups.
func (c *checked) topicGroups() []TopicGroup {
	var groups []TopicGroup
	for _, name := range items(c.text("topic.creation.groups")) {
		if strings.EqualFold(name, "default") {
			c.fail("topic.creation.groups", "default is the group of all topics that no other takes; it must not be listed")
			continue
		}
		base := "topic.creation." + name + "."
		g := TopicGroup{Name: name, TopicCreation: TopicCreation{Partitions: -1, ReplicationFactor: -1, Config: c.under(base)}}
		patterns := func(setting string) []*regexp.Regexp {
			text := g.Config[setting]
			delete(g.Config, setting)
			var all []*regexp.Regexp
			for _, p := range items(text) {
				r, err := compileJavaCase(p)
				if err != nil {
					c.fail(base+setting, "pattern %q: %v", p, err)
					continue
				}
				all = append(all, r)
			}
			return all
		}
		number := func(setting string, to int64) int64 {
			text := strings.TrimSpace(g.Config[setting])
			delete(g.Config, setting)
			if text == "" {
				return to
			}
			n, err := strconv.ParseInt(text, 10, 16)
			if err != nil || n == 0 || n < -1 {
				c.fail(base+setting, "%q is not allowed; it must be 1 or more, or -1 for the broker's default", text)
				return to
			}
			return n
		}
		g.Include, g.Exclude = patterns("include"), patterns("exclude")
		if len(g.Include) == 0 && !c.failed(base+"include") {
			c.fail(base+"include", "missing; the group %s takes no topic without it", name)
		}
		g.Partitions = int32(number("partitions", c.number("topic.creation.default.partitions")))
		g.ReplicationFactor = int16(number("replication.factor", c.number("topic.creation.default.replication.factor")))
		groups = append(groups, g)
	}
	return groups
}
