package config

import (
	"slices"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/schema"
)

// loadConnector loads one connector with changes.
func loadConnector(t *testing.T, changes ...string) *Connector {
	t.Helper()
	cfg, err := load(t, workerText, connectorJSON(changes...))
	if err != nil {
		t.Fatal(err)
	}
	return cfg.Connectors[0]
}

func TestModes(t *testing.T) {
	m := loadConnector(t, "decimal.handling.mode=STRING", "time.precision.mode=nanoseconds", "bigint.unsigned.handling.mode=precise", "binary.handling.mode=base64-url-safe",
		"event.converting.failure.handling.mode=fail", "enable.time.adjuster=false", "include.schema.comments=true",
		`column.propagate.source.type=shop\.orders\..*`, `datatype.propagate.source.type=.+\.VARCHAR`).Modes
	if m.Decimal != schema.DecimalString || m.Time != schema.TimeNanoseconds || m.UnsignedBigint != schema.UnsignedPrecise || m.Binary != schema.BinaryBase64URL ||
		m.Failure != schema.FailureFail || !m.NoTimeAdjuster || !m.Comments {
		t.Errorf("modes %+v", m)
	}
	if !m.SourceColumn("shop", "orders", "id") || m.SourceColumn("shop", "order", "id") {
		t.Error("column.propagate.source.type")
	}
	if !m.SourceType("a", "b", "c", "varchar") || m.SourceType("a", "b", "c", "CHAR") {
		t.Error("datatype.propagate.source.type")
	}
}

// Debezium tries truncation first, then asterisks, then hashes, and takes the first key that matches a column.
func TestMaskOrder(t *testing.T) {
	masks := loadConnector(t, "column.mask.hash.v2.SHA-256.with.salt.a.b=x.y.z", "column.mask.hash.MD5.with.salt.S=x.y.z", "column.mask.with.0.chars=x.y.z", "column.truncate.to.20.chars=x.y.z,x.y.w").Modes.Masks
	var kinds []schema.MaskKind
	for _, m := range masks {
		if !m.Match("x", "y", "z") || m.Match("x", "y", "zz") {
			t.Errorf("mask %+v matches wrong", m)
		}
		kinds = append(kinds, m.Kind)
	}
	if !slices.Equal(kinds, []schema.MaskKind{schema.MaskTruncate, schema.MaskFixed, schema.MaskHash, schema.MaskHash}) {
		t.Fatalf("kinds %v", kinds)
	}
	if masks[0].Length != 20 || masks[1].Length != 0 || masks[2].Algorithm != "MD5" || masks[2].V2 || masks[2].Salt != "S" || masks[3].Algorithm != "SHA-256" || !masks[3].V2 || masks[3].Salt != "a.b" {
		t.Errorf("masks %+v", masks)
	}
}

func TestKeyColumns(t *testing.T) {
	c := loadConnector(t, "message.key.columns= inventory.orders:customer_id, nullable_key;(.*).order_log:msg")
	var got [][3]string
	for _, m := range c.Keys {
		for _, name := range [][3]string{{"inventory", "orders", "customer_id"}, {"inventory", "orders", "nullable_key"}, {"other", "order_log", "msg"}, {"inventory", "orders", "id"}} {
			if m(name[0], name[1], name[2]) {
				got = append(got, name)
			}
		}
	}
	if !slices.Equal(got, [][3]string{{"inventory", "orders", "customer_id"}, {"inventory", "orders", "nullable_key"}, {"other", "order_log", "msg"}}) {
		t.Errorf("matched %v", got)
	}
}

func TestShaping(t *testing.T) {
	c := loadConnector(t, "skipped.operations=u, D", "column.exclude.list=shop.c.(age|secret)", "heartbeat.interval.ms=1500", "heartbeat.action.query=DO 1",
		"database.initial.statements=SET a=1; SET b='x;;y';;;", "gtid.source.excludes=3e11fa47-.*", "schema.history.internal.kafka.topic=h",
		"schema.history.internal.kafka.bootstrap.servers=k:9092", "schema.history.internal.producer.security.protocol=SSL", "offsets.storage.topic=mine",
		"topic.naming.strategy=io.debezium.schema.SchemaRegexTopicNamingStrategy", "topic.regex=(.*)shard_[0-9]+", "topic.replacement=$1all",
		"topic.creation.default.partitions=1", "topic.creation.default.replication.factor=1", "topic.creation.groups=big",
		"topic.creation.big.include=shop\\.(orders|lines)", "topic.creation.big.exclude=.*lines", "topic.creation.big.partitions=9", "topic.creation.big.retention.ms=5",
		"header.converter=org.apache.kafka.connect.json.JsonConverter", "header.converter.schemas.enable=false")
	if !c.SkipOperations["u"] || !c.SkipOperations["d"] || len(c.SkipOperations) != 2 {
		t.Errorf("skipped.operations %v", c.SkipOperations)
	}
	if c.Columns("shop", "c", "AGE") || !c.Columns("shop", "c", "name") {
		t.Error("column.exclude.list")
	}
	if c.Heartbeats != (Heartbeats{Interval: 1500 * time.Millisecond, Query: "DO 1"}) {
		t.Errorf("heartbeats %+v", c.Heartbeats)
	}
	if !slices.Equal(c.InitialStatements, []string{"SET a=1", "SET b='x;y';"}) {
		t.Errorf("initial statements %q", c.InitialStatements)
	}
	if c.GTIDSources("3E11FA47-71CA-11E1-9E33-C80AA9429562") || !c.GTIDSources("4e11fa47-71ca-11e1-9e33-c80aa9429562") {
		t.Error("gtid.source.excludes")
	}
	if c.History.Topic != "h" || c.History.Producer["security.protocol"] != "SSL" || c.History.Consumer["bootstrap.servers"] != "k:9092" {
		t.Errorf("history %+v", c.History)
	}
	if c.OffsetsTopic != "mine" || c.Naming.Class != "SchemaRegexTopicNamingStrategy" || c.Naming.Regex == nil || c.Naming.Replacement != "$1all" || !c.Naming.UniqueKey || c.Naming.KeyField != "__dbz__physicalTableIdentifier" {
		t.Errorf("naming %+v", c.Naming)
	}
	g := c.TopicGroups[0]
	if len(c.TopicGroups) != 1 || g.Name != "big" || g.Partitions != 9 || g.ReplicationFactor != 1 || len(g.Config) != 1 || g.Config["retention.ms"] != "5" ||
		!g.Include[0].MatchString("shop.orders") || g.Include[0].MatchString("SHOP.orders") || !g.Exclude[0].MatchString("shop.lines") {
		t.Errorf("group %+v", g)
	}
	if c.HeaderConverter.Class != "JsonConverter" || c.HeaderConverter.JSON.Schemas {
		t.Errorf("header converter %+v", c.HeaderConverter)
	}
}

// FuzzSettings: no value of any key makes more than an error.
func FuzzSettings(f *testing.F) {
	for _, seed := range [][2]string{
		{"message.key.columns", "inventory.orders:customer_id,nullable_key;(.*).order_log:msg"},
		{"message.key.columns", ";:,;"},
		{"column.mask.with.99999999999999999999.chars", "a.b.c"},
		{"column.mask.hash.v2.SHA-256.with.salt.x", "a.b.c"},
		{"converters", "a,,b"},
		{"database.initial.statements", ";;;a;;"},
		{"skipped.operations", "none,t"},
		{"topic.creation.groups", "default, a"},
		{"schema.history.internal.ddl.filter", "(a|b"},
		{"topic.naming.strategy", "io.debezium.schema.DefaultRegexTopicNamingStrategy"},
		{"gtid.source.includes", `\`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		settings := &file{value: map[string]string{
			"connector.class": mysqlClass, "database.hostname": "h", "database.user": "u", "database.server.id": "1", "topic.prefix": "p", "snapshot.mode": "no_data",
			"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1",
		}}
		for k := range settings.value {
			settings.keys = append(settings.keys, k)
		}
		settings.set(key, value)
		c, _, err := tail(settings, Options{})
		if err == nil && c == nil {
			t.Error("neither settings nor an error")
		}
	})
}
