package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// write makes files in a new directory and returns their paths in the order of the names.
func write(t *testing.T, files map[string]string) []string {
	t.Helper()
	dir := t.TempDir()
	var paths []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(files[name]), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

// connectorJSON is a working connector with changes: "key=value" sets, "-key" removes.
func connectorJSON(changes ...string) string {
	m := map[string]string{
		"connector.class":    mysqlClass,
		"database.hostname":  "db.example.com",
		"database.user":      "repl",
		"database.password":  "s3cret-canary",
		"database.server.id": "5400",
		"topic.prefix":       "shop",
		"snapshot.mode":      "no_data",

		"include.schema.changes": "false",
	}
	for _, c := range changes {
		if key, value, ok := strings.Cut(c, "="); ok {
			m[key] = value
		} else {
			delete(m, strings.TrimPrefix(c, "-"))
		}
	}
	var b strings.Builder
	for i, k := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(&b, "%q: %q", k, m[k])
	}
	return `{"name":"orders","config":{` + b.String() + `}}`
}

const workerText = "bootstrap.servers=k1:9092,k2:9092\noffset.storage.file.filename=/var/lib/offsets.dat\n"

func load(t *testing.T, worker string, connectors ...string) (*Config, error) {
	t.Helper()
	files := map[string]string{"a-worker.properties": worker}
	for i, c := range connectors {
		files[fmt.Sprintf("c%d.json", i)] = c
	}
	return Load(write(t, files), Options{})
}

// Two configurations have one fingerprint if the same properties are given, whatever the secrets are and providers give.
func TestFingerprint(t *testing.T) {
	t.Setenv("TABLES", "shop.a")
	of := func(more ...string) string {
		t.Helper()
		cfg, err := load(t, workerText+"config.providers=env\nconfig.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider\n", connectorJSON(more...))
		if err != nil {
			t.Fatal(err)
		}
		return cfg.Connectors[0].Fingerprint
	}
	one := of("table.include.list=${env:TABLES}")
	if len(one) != 16 || of("table.include.list=${env:TABLES}") != one || of("table.include.list=${env:TABLES}", "database.password=another") != one {
		t.Errorf("%q is not the same again", one)
	}
	t.Setenv("TABLES", "shop.b")
	if of("table.include.list=${env:TABLES}") != one {
		t.Error("it depends on what a provider gives")
	}
	for _, more := range []string{"table.include.list=shop.b", "topic.prefix=another", "max.batch.size=4096"} {
		if of("table.include.list=${env:TABLES}", more) == one {
			t.Errorf("%s makes no difference", more)
		}
	}
}

func TestLoadDefaults(t *testing.T) {
	cfg, err := load(t, workerText, connectorJSON())
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Warnings) != 0 {
		t.Errorf("warnings %v", cfg.Warnings)
	}
	wantWorker := &Worker{
		Bootstrap:     "k1:9092,k2:9092",
		OffsetFile:    "/var/lib/offsets.dat",
		FlushInterval: time.Second,
		FlushTimeout:  5 * time.Second,

		StandbySession: 10 * time.Second,

		Client: map[string]string{"bootstrap.servers": "k1:9092,k2:9092", "client.id": "connect-offsets"},
	}
	if diff := cmp.Diff(wantWorker, cfg.Worker); diff != "" {
		t.Errorf("worker (-want +got):\n%s", diff)
	}
	c := cfg.Connectors[0]
	if c.Password.Reveal() != "s3cret-canary" {
		t.Error("password lost")
	}
	want := &Connector{
		Name: "orders", File: c.File, Fingerprint: c.Fingerprint,
		Host: "db.example.com", Port: 3306, User: "repl", Password: c.Password, ServerID: 5400,
		SSL: SSLPreferred, ConnectTimeout: 30 * time.Second, Heartbeat: 10 * time.Second,
		Prefix: "shop", Filter: c.Filter, SnapshotMode: "no_data",
		Key:        Converter{Schemas: true, ReplaceNullWithDefault: true},
		Value:      Converter{Schemas: true, ReplaceNullWithDefault: true},
		Tombstones: true, ExtendedHeaders: true,
		GTIDDML: true, SkipOperations: map[string]bool{"t": true}, Placeholder: "__debezium_unavailable_value", SchemaNames: "none", FieldNames: "none",
		HeaderConverter: HeaderConverter{Class: "SimpleHeaderConverter", JSON: Converter{Schemas: true, ReplaceNullWithDefault: true}},
		Naming:          Naming{Class: "DefaultTopicNamingStrategy", Delimiter: ".", Transaction: "transaction", HeartbeatPrefix: "__debezium-heartbeat"},
		Unprocessable:   Fail, UnknownTables: Fail, MaxRetries: -1,
		Producer: map[string]string{"bootstrap.servers": "k1:9092,k2:9092", "client.id": "connector-producer-orders-0"},
	}
	if diff := cmp.Diff(want, c, cmp.Comparer(func(a, b *Filter) bool { return a == b }), cmp.Comparer(func(a, b Secret) bool { return a == b })); diff != "" {
		t.Errorf("connector (-want +got):\n%s", diff)
	}
	if !c.Filter.Captured("shop", "t") || c.Filter.Captured("mysql", "user") {
		t.Error("default filter")
	}
}

func TestLoadEverything(t *testing.T) {
	worker := `
# comment
bootstrap.servers=k1:9093
group.id = etl
client.id=w1
offset.storage.topic=connect-offsets
offset.storage.partitions=5
offset.storage.replication.factor=-1
offset.storage.min.insync.replicas=2
offset.flush.interval.ms=60000
offset.flush.timeout.ms=7000
key.converter=org.apache.kafka.connect.json.JsonConverter
key.converter.schemas.enable=false
value.converter=JsonConverter
value.converter.decimal.format=numeric
producer.compression.type=lz4
producer.linger.ms=5
producer.security.protocol=PLAINTEXT
`
	cfg, err := load(t, worker, connectorJSON(
		"database.port=3307", "database.ssl.mode=REQUIRED", "connect.timeout.ms=1500", "driver.allowPublicKeyRetrieval=true",
		"tombstones.on.delete=false", "extended.headers.enabled= False ", "start.position=mysql-bin.000003:157",
		"value.converter="+jsonConverter, "value.converter.schemas.enable=false", "value.converter.replace.null.with.default=false",
		"producer.override.linger.ms=20", "producer.override.max.request.size=2097152",
		"topic.creation.default.partitions=6", "topic.creation.default.replication.factor=3", "topic.creation.default.cleanup.policy=compact",
		"database.include.list=shop", "table.exclude.list=shop[.]tmp_.*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Warnings) != 0 {
		t.Errorf("warnings %v", cfg.Warnings)
	}
	wantTopic := &OffsetTopic{Name: "connect-offsets", Partitions: 5, ReplicationFactor: -1, Config: map[string]string{"min.insync.replicas": "2"}}
	if diff := cmp.Diff(wantTopic, cfg.Worker.OffsetTopic); diff != "" {
		t.Error(diff)
	}
	if cfg.Worker.FlushInterval != time.Minute || cfg.Worker.FlushTimeout != 7*time.Second || cfg.Worker.Client["client.id"] != "etl-w1-offsets" {
		t.Errorf("worker %+v", cfg.Worker)
	}
	c := cfg.Connectors[0]
	if c.Port != 3307 || c.SSL != SSLRequired || c.ConnectTimeout != 1500*time.Millisecond || !c.AllowPublicKeyRetrieval || c.Tombstones || c.ExtendedHeaders {
		t.Errorf("connector %+v", c)
	}
	if c.Start != (Start{Mode: AtFile, File: "mysql-bin.000003", Pos: 157}) {
		t.Errorf("start %+v", c.Start)
	}
	if c.Key != (Converter{Schemas: false, ReplaceNullWithDefault: true}) {
		t.Errorf("key converter %+v: the worker's", c.Key)
	}
	if c.Value != (Converter{}) {
		t.Errorf("value converter %+v: the connector's own, without the worker's decimal.format", c.Value)
	}
	wantProducer := map[string]string{
		"bootstrap.servers": "k1:9093", "client.id": "connector-producer-orders-0", "compression.type": "lz4",
		"linger.ms": "20", "max.request.size": "2097152", "security.protocol": "PLAINTEXT",
	}
	if diff := cmp.Diff(wantProducer, c.Producer); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(&TopicCreation{Partitions: 6, ReplicationFactor: 3, Config: map[string]string{"cleanup.policy": "compact"}}, c.TopicCreation); diff != "" {
		t.Error(diff)
	}
	if !c.Filter.Captured("shop", "orders") || c.Filter.Captured("shop", "tmp_1") || c.Filter.Captured("x", "orders") {
		t.Error("filter")
	}
}

// TestRefused holds the faults of a configuration: which key each names and what it says.
func TestRefused(t *testing.T) {
	type c = []string
	for name, test := range map[string]struct {
		worker    string // added to the working one
		connector []string
		want      []string // "key: part of the text", one for each fault
	}{
		"malformed": {
			connector: c{"database.port=abc", "database.server.id=0", "tombstones.on.delete=yes", "decimal.handling.mode=foo", "max.batch.size=1.5", "snapshot.mode=never", "connect.timeout.ms=", "topic.prefix=bad prefix!", "start.position=later"},
			want: c{
				`connect.timeout.ms: it is empty; it must be a whole number`,
				`database.port: "abc" is not allowed; it must be a whole number from 1 to 65535`,
				`database.server.id: "0" is not allowed; it must be a whole number from 1 to 4294967295`,
				`decimal.handling.mode: "foo" is not allowed; it must be one of precise, double, string`,
				`max.batch.size: "1.5" is not allowed; it must be a whole number from 1 to 2147483647`,
				`snapshot.mode: "never" is not allowed; it must be one of always, initial, initial_only, no_data, when_needed, recovery, configuration_based, custom`,
				`start.position: "later" is none of oldest, now, FILE:POS`,
				`tombstones.on.delete: "yes" is not allowed; it must be true or false`,
				`topic.prefix: "bad prefix!" is not allowed`,
			},
		},
		"missing": {
			connector: c{"-topic.prefix", "-database.hostname", "-database.user", "-database.server.id"},
			want:      c{"database.hostname: missing", "database.server.id: missing", "database.user: missing", "topic.prefix: missing"},
		},
		"class":       {connector: c{"connector.class=io.debezium.connector.postgresql.PostgresConnector", "plugin.name=pgoutput"}, want: c{"connector.class: " + `"io.debezium.connector.postgresql.PostgresConnector" is no connector of this program`}},
		"no class":    {connector: c{"-connector.class"}, want: c{"connector.class: missing"}},
		"both lists":  {connector: c{"table.include.list=a", "table.exclude.list=b", "database.include.list=a", "database.exclude.list=b"}, want: c{"database.exclude.list: set beside database.include.list", "table.exclude.list: set beside table.include.list"}},
		"bad pattern": {connector: c{"database.include.list=[", `table.include.list=db\.(?!x).*`}, want: c{`database.include.list: pattern "[": a [ is not closed`, `table.include.list: pattern "db\\.(?!x).*": looking ahead or behind`}},
		"security": {
			connector: c{"database.ssl.mode=verify_ca", "database.ssl.truststore=/t.jks", "database.ssl.truststore.password=s3cret-canary", "database.ssl.keystore=/k.jks", "database.ssl.keystore.password=s3cret-canary", "driver.useSSL=true", "driver.trustCertificateKeyStoreUrl=file:x"},
			want: c{
				`database.ssl.keystore: open /k.jks: no such file`, `database.ssl.truststore: open /t.jks: no such file`, `driver.trustCertificateKeyStoreUrl: "file:x" is not built yet`, `driver.useSSL: "true" is not built yet`,
			},
		},
		"events": {
			connector: c{
				"transforms=x", "transforms.x.type=y", "errors.tolerance=some", "header.converter=a.B", "exactly.once.support=always", "post.processors=r", "r.type=z",
				"skipped.operations=c,none", "column.mask.hash.ROT13.with.salt.x=a.b.c", "column.truncate.to.0.chars=a.b.c", "message.key.columns=a.b;a.c:d,,e", "topic.naming.strategy=a.B",
				"topic.delimiter=/", "column.include.list=a", "column.exclude.list=b", "gtid.source.includes=a", "gtid.source.excludes=b", "time.precision.mode=adaptive",
				"offsets.storage.topic=a/b", "schema.history.internal=io.debezium.storage.redis.history.RedisSchemaHistory",
			},
			want: c{
				"column.exclude.list: set beside", "column.mask.hash.ROT13.with.salt.x: hash algorithm \"ROT13\" is not known; there are MD5, ", "column.truncate.to.0.chars: 0 is not allowed",
				"errors.tolerance: ", "exactly.once.support: ", "gtid.source.excludes: set beside", `header.converter: "a.B" is not built`,
				`message.key.columns: "a.b" is not of the form database.table:column,column`, `message.key.columns: "a.c:d,,e" names no column`,
				"offsets.storage.topic: ", "post.processors: ", `schema.history.internal: "io.debezium.storage.redis.history.RedisSchemaHistory" is not built`,
				"skipped.operations: none stands beside", `time.precision.mode: "adaptive" is not allowed`,
				"topic.delimiter: ", `topic.naming.strategy: "a.B" is none of the classes`, "transforms: ",
			},
		},
		"converters": {
			connector: c{
				"converters=a,b,c,d", "a.type=io.debezium.connector.mysql.converters.TinyIntOneToBooleanConverter", "a.selector=(?!x)", "a.length.checker=maybe",
				"b.type=com.example.Mine", "d.type=io.debezium.connector.binlog.converters.ZeroDateFallbackConverter",
			},
			want: c{"a.length.checker: ", "a.selector: ", `b.type: "com.example.Mine" is not one of the converters that come with the connector`, "c.type: missing", "d.type: "},
		},
		"regex naming": {
			connector: c{"topic.naming.strategy=io.debezium.schema.DefaultRegexTopicNamingStrategy", "topic.key.field.regex=(.*)"},
			want:      c{"topic.key.field.replacement: missing beside", "topic.regex: missing; DefaultRegexTopicNamingStrategy needs it"},
		},
		"topic groups": {
			connector: c{
				"topic.creation.default.partitions=1", "topic.creation.default.replication.factor=1", "topic.creation.groups=a,b,default",
				"topic.creation.a.partitions=0", "topic.creation.a.include=(",
			},
			want: c{"topic.creation.a.include: ", "topic.creation.a.partitions: ", "topic.creation.b.include: missing", "topic.creation.groups: default is"},
		},
		"history": {
			connector: c{"schema.history.internal.kafka.topic=h", "schema.history.internal.ddl.filter=(?!x)"},
			want:      c{"schema.history.internal.ddl.filter: ", "schema.history.internal.kafka.bootstrap.servers: missing"},
		},
		"history file": {connector: c{"schema.history.internal=io.debezium.storage.file.history.FileSchemaHistory"}, want: c{"schema.history.internal.file.filename: missing"}},
		"config providers": {
			worker:    "producer.linger.ms=${custom:linger}\nconfig.providers=custom\n",
			connector: c{"database.password=${file:/etc/secrets:pw}", "database.user=${env:NOT_SET_ANYWHERE}", "topic.creation.default.retention.ms=${unknown:x}"},
			want: c{
				"config.providers.custom.class: missing beside config.providers=custom",
				"database.password: ${file:/etc/secrets:pw}: no such file", "database.user: ${env:NOT_SET_ANYWHERE}: the environment has no NOT_SET_ANYWHERE",
				"producer.linger.ms: ${custom:linger}: its class is missing",
			},
		},
		"topic creation": {connector: c{"topic.creation.default.partitions=0", "topic.creation.default.replication.factor=3"}, want: c{"topic.creation.default.partitions: 0 is not allowed; it must be 1 or more"}},
		"half creation":  {connector: c{"topic.creation.default.partitions=3"}, want: c{"topic.creation.default.replication.factor: missing beside"}},
		"converter":      {connector: c{"value.converter=io.confluent.connect.protobuf.ProtobufConverter", "value.converter.schema.registry.url=ftp://r"}, want: c{"value.converter: \"io.confluent.connect.protobuf.ProtobufConverter\" is not built yet; there are "}},
		"worker converter": {
			worker: "value.converter=org.apache.kafka.connect.storage.StringConverter\n",
			want:   c{"value.converter: \"org.apache.kafka.connect.storage.StringConverter\" is not built yet"},
		},
		"two stores":     {worker: "offset.storage.topic=t\n", want: c{"offset.storage.topic: set beside offset.storage.file.filename"}},
		"worker numbers": {worker: "offset.flush.interval.ms=0\noffset.flush.timeout.ms=x\n", want: c{"offset.flush.interval.ms: ", "offset.flush.timeout.ms: "}},
		"exactly once": {
			worker: "exactly.once.source.support=enabled\n",
			want:   c{"exactly.once.source.support: enabled needs group.id in the worker's file", "exactly.once.source.support: enabled needs the offsets in a topic"},
		},
		"exactly once of a connector": {
			worker: "group.id=g\n", connector: c{"exactly.once.support=required"}, want: c{"exactly.once.support: required needs the offsets in a topic"},
		},
		"exactly once without a group": {connector: c{"exactly.once.support=required", "offsets.storage.topic=own"}, want: c{"exactly.once.support: required needs group.id"}},
		"transactional id":             {connector: c{"producer.override.transactional.id=x"}, want: c{"producer.override.transactional.id: x is refused: it is <group.id>-<name>-0"}},
		"long interval": {
			worker: "group.id=g\n", connector: c{"exactly.once.support=required", "offsets.storage.topic=own", "transaction.boundary=interval", "transaction.boundary.interval.ms=60000"},
			want: c{"transaction.boundary: interval: each Kafka transaction would last 60000 ms, and after transaction.timeout.ms=60000 the brokers roll it back"},
		},
		"transaction keys": {
			connector: c{"transaction.boundary=row", "transaction.boundary.interval.ms=0", "producer.override.transaction.timeout.ms=soon"},
			want:      c{"producer.override.transaction.timeout.ms: soon", `transaction.boundary: "row" is not allowed; it must be one of poll, interval, connector, source`, "transaction.boundary.interval.ms: "},
		},
		"policy":        {worker: "connector.client.config.override.policy=None\n", want: c{"connector.client.config.override.policy: "}},
		"bad broker":    {worker: "bootstrap.servers=localhost\n", want: c{`bootstrap.servers: "localhost" is not host:port`}},
		"acks":          {connector: c{"producer.override.acks=1"}, want: c{"producer.override.acks: 1 is refused"}},
		"worker's acks": {worker: "producer.acks=0\n", want: c{"producer.acks: 0 is refused"}},
		"sasl":          {worker: "security.protocol=SASL_SSL\nsasl.mechanism=GSSAPI\nproducer.security.protocol=NONE\n", want: c{"producer.security.protocol: ", "sasl.mechanism: "}},
		"admin":         {worker: "admin.security.protocol=SASL_PLAINTEXT\n", want: c{"admin.override.security.protocol: differs from the producer's"}},
		"start":         {connector: c{"start.position=3e11fa47-71ca-11e1-9e33-c80aa9429562:9-7"}, want: c{"start.position: GTID set"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, workerText+test.worker, connectorJSON(test.connector...))
			if err == nil {
				t.Fatal("no error")
			}
			lines := strings.Split(err.Error(), "\n")
			for i, l := range lines {
				_, lines[i], _ = strings.Cut(l, ": ") // the file
			}
			slices.SortFunc(test.want, func(a, b string) int {
				return strings.Compare(strings.Replace(a, ":", ".", 1), strings.Replace(b, ":", ".", 1))
			})
			slices.SortFunc(lines, func(a, b string) int {
				return strings.Compare(strings.Replace(a, ":", ".", 1), strings.Replace(b, ":", ".", 1))
			})
			if strings.Contains(err.Error(), "s3cret-canary") {
				t.Errorf("a password is in the error: %v", err)
			}
			if len(lines) != len(test.want) {
				t.Fatalf("%d faults, want %d:\n%s", len(lines), len(test.want), strings.Join(lines, "\n"))
			}
			for i := range lines {
				if !strings.HasPrefix(lines[i], test.want[i]) {
					t.Errorf("fault\n %s\nwant\n %s…", lines[i], test.want[i])
				}
			}
		})
	}
}

func TestLoadFiles(t *testing.T) {
	other := strings.NewReplacer(`"orders"`, `"orders2"`, "5400", "5401").Replace(connectorJSON())
	for name, test := range map[string]struct {
		files map[string]string
		want  string // part of the error; "" for none
	}{
		"two connectors":  {map[string]string{"c1.json": connectorJSON(), "c2.json": other, "w.properties": workerText}, ""},
		"properties":      {map[string]string{"c.properties": "name=a\nconnector.class=MySql\ndatabase.hostname=h\ndatabase.user=u\ndatabase.server.id=1\ntopic.prefix=p\n", "w.properties": workerText}, ""},
		"bare map":        {map[string]string{"c.json": `{"name":"a","connector.class":"MySqlConnector","database.hostname":"h","database.port":3306,"database.user":"u","database.server.id":1,"topic.prefix":"p","tombstones.on.delete":true,"transforms":null}`, "w.properties": workerText}, ""},
		"same name":       {map[string]string{"c1.json": connectorJSON(), "c2.json": connectorJSON("database.server.id=7"), "w.properties": workerText}, `c2.json: name: "orders" is the name of the connector in`},
		"same server id":  {map[string]string{"c1.json": connectorJSON(), "c2.json": strings.Replace(connectorJSON(), `"orders"`, `"b"`, 1), "w.properties": workerText}, "c2.json: database.server.id: 5400 is the id of the connector in"},
		"no worker":       {map[string]string{"c.json": connectorJSON()}, "bootstrap.servers: missing, since no worker's properties file is given"},
		"no connector":    {map[string]string{"w.properties": workerText}, "no connector is given"},
		"no store":        {map[string]string{"c.json": connectorJSON(), "w.properties": "bootstrap.servers=k:9092\n"}, "offset.storage.file.filename: missing, and offset.storage.topic too"},
		"no brokers":      {map[string]string{"c.json": connectorJSON(), "w.properties": "offset.storage.topic=t\n"}, "bootstrap.servers: missing: Kafka brokers"},
		"two workers":     {map[string]string{"c.json": connectorJSON(), "v.properties": workerText, "w.properties": workerText}, "w.properties: connector.class: missing; the worker's properties are those of"},
		"no name":         {map[string]string{"c.json": strings.Replace(connectorJSON(), `"name":"orders",`, "", 1), "w.properties": workerText}, "c.json: name: missing"},
		"names differ":    {map[string]string{"c.json": connectorJSON("name=other"), "w.properties": workerText}, `has two names, "orders" beside "config" and "other" inside it`},
		"stopped":         {map[string]string{"c.json": strings.Replace(connectorJSON(), `"name"`, `"initial_state":"STOPPED","name"`, 1), "w.properties": workerText}, `initial_state: "STOPPED" is not built yet`},
		"stray member":    {map[string]string{"c.json": strings.Replace(connectorJSON(), `"name"`, `"tasks":"1","name"`, 1), "w.properties": workerText}, `has "tasks" beside "config"`},
		"answer of GET":   {map[string]string{"c.json": strings.Replace(connectorJSON(), `"name"`, `"tasks":[{"connector":"orders","task":0}],"type":"source","name"`, 1), "w.properties": workerText}, ""},
		"type alone":      {map[string]string{"c.json": strings.Replace(connectorJSON(), `"name"`, `"type":"source","name"`, 1), "w.properties": workerText}, `has "type" beside "config"`},
		"tasks in a map":  {map[string]string{"c.json": `{"name":"a","connector.class":"MySql","tasks":[1]}`, "w.properties": workerText}, `has an object or array as the value of "tasks"`},
		"tasks cut off":   {map[string]string{"c.json": `{"name":"a","tasks":[{`, "w.properties": workerText}, "it ends too early"},
		"too big":         {map[string]string{"c.json": `{"a":"` + strings.Repeat("x", mostBytes) + `"}`, "w.properties": workerText}, "c.json: cannot be read: it has more than"},
		"nested":          {map[string]string{"c.json": `{"name":"a","connector.class":"MySql","x":["s3cret-canary"]}`, "w.properties": workerText}, `has an object or array as the value of "x"`},
		"not JSON":        {map[string]string{"c.json": "{\"name\":\n'a'}", "w.properties": workerText}, "c.json: is not valid JSON: line 2"},
		"cut off":         {map[string]string{"c.json": `{"name":"a","config":{"connector.class"`, "w.properties": workerText}, "c.json: is not valid JSON: line 1: it ends too early"},
		"two values":      {map[string]string{"c.json": connectorJSON() + "{}", "w.properties": workerText}, "something follows the closing brace"},
		"a list":          {map[string]string{"c.json": "[]", "w.properties": workerText}, "is not a connector configuration"},
		"empty":           {map[string]string{"c.json": "", "w.properties": workerText}, "c.json: is not valid JSON"},
		"bad escape":      {map[string]string{"c.json": connectorJSON(), "w.properties": "a=b\npassword=s3cret-canary\\u12"}, "w.properties: is not a properties file: line 2"},
		"byte order mark": {map[string]string{"c.json": "\ufeff" + connectorJSON(), "w.properties": workerText}, ""},
		"JSON by content": {map[string]string{"c.conf": connectorJSON(), "w.properties": workerText}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := Load(write(t, test.files), Options{})
			if test.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range cfg.Connectors {
					if c.Producer["client.id"] != "connector-producer-"+c.Name+"-0" {
						t.Errorf("%s: %v", c.Name, c.Producer)
					}
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("%v\nwant %s", err, test.want)
			}
			if strings.Contains(err.Error(), "s3cret-canary") {
				t.Error("a secret is in the error")
			}
		})
	}
	if _, err := Load([]string{"/nonexistent/c.json"}, Options{}); err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Error(err)
	}
}

func TestWarnings(t *testing.T) {
	cfg, err := load(t, workerText+"listeners=http://:8083\nmax.batch.size=9\nproducr.acks=all\nsecurity.protocol=PLAINTEXT\nexactly.once.support=required\n", connectorJSON(
		"table.includelist=x", "database.server.name=old", "database.history.kafka.topic=h", "group.id=g", "zzz=1",
		"include.schema.changes=true", "max.batch.size=10", "poll.interval.ms=500",
		"driver.connectTimeout=1", "value.converter.schemas.enable=false", "notification.enabled.channels=log,jmx",
		"producer.override.batch.size=1", "exactly.once.source.support=enabled"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"listeners":                      "accepted, without meaning here",
		"max.batch.size":                 "", // twice: in the worker's file it is a connector's key
		"producr.acks":                   "unknown, it has no effect",
		"security.protocol":              "is for the worker's own clients",
		"table.includelist":              "the nearest known key is table.include.list",
		"database.server.name":           "its name is topic.prefix",
		"database.history.kafka.topic":   "its name is schema.history.internal.kafka.topic",
		"group.id":                       "a key of the worker",
		"zzz":                            "unknown, it has no effect",
		"driver.connectTimeout":          "accepted, without effect: There is no JDBC driver",
		"value.converter.schemas.enable": "has no effect without value.converter beside it",
		"producer.override.batch.size":   "has no effect: batches take",
		"exactly.once.support":           "in the worker's file, where exactly.once.source.support=enabled does it",
		"exactly.once.source.support":    "in a connector's file, where exactly.once.support=required does it",
	}
	got := map[string]string{}
	for _, w := range cfg.Warnings {
		got[w.Key] += w.Text
	}
	for key, part := range want {
		if text, ok := got[key]; !ok || !strings.Contains(text, part) {
			t.Errorf("%s: %q, want %q", key, text, part)
		}
		delete(got, key)
	}
	if len(got) != 0 {
		t.Errorf("more warnings: %v", got)
	}
}

func TestOffsetTopicIsCompacted(t *testing.T) {
	cfg, err := load(t, "bootstrap.servers=k:9092\noffset.storage.topic=t\noffset.storage.cleanup.policy=delete\n", connectorJSON())
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Worker.OffsetTopic.Config) != 0 || len(cfg.Warnings) != 1 || !strings.Contains(cfg.Warnings[0].String(), "the offsets topic is compacted") {
		t.Errorf("%v %v", cfg.Worker.OffsetTopic, cfg.Warnings)
	}
	if _, err := load(t, "bootstrap.servers=k:9092\noffset.storage.topic=a b\noffset.storage.partitions=0\n", connectorJSON()); !slices.Equal(keysOf(err), []string{"offset.storage.partitions", "offset.storage.topic"}) {
		t.Error(err)
	}
}

func TestCapturedWorkers(t *testing.T) {
	for file, want := range map[string][]string{
		"distributed.properties":  nil,
		"exactly-once.properties": nil,
		"standalone.properties":   {"key.converter", "value.converter"}, // StringConverter
	} {
		c := write(t, map[string]string{"c.json": connectorJSON()})
		cfg, err := Load([]string{filepath.Join("testdata", file), c[0]}, Options{})
		if diff := cmp.Diff(want, keysOf(err)); diff != "" {
			t.Errorf("%s: %s", file, diff)
		}
		if err == nil && (cfg.Worker.FlushInterval != time.Millisecond || cfg.Worker.OffsetTopic.Name != "connect-offsets" || cfg.Worker.OffsetTopic.Partitions != 25 || cfg.Worker.OffsetTopic.ReplicationFactor != 1) {
			t.Errorf("%s: %+v %+v", file, cfg.Worker, cfg.Worker.OffsetTopic)
		}
	}
}

func TestLatin1(t *testing.T) {
	f, err := parseFile("x.properties", []byte("a=caf\xe9\n"))
	if err != nil || f.value["a"] != "café" {
		t.Errorf("%q %v", f.value["a"], err)
	}
	f, err = parseFile("x.properties", []byte("a=café \nb=${a}\n"))
	if err != nil || f.value["a"] != "café " || f.value["b"] != "${a}" {
		t.Errorf("%q %v", f.value, err)
	}
}

func TestLoadTail(t *testing.T) {
	paths := write(t, map[string]string{"c.json": `{"connector.class":"MySql","topic.prefix":"p","database.server.id":"1"}`})
	if _, _, err := LoadTail(paths[0], Options{}); !slices.Equal(keysOf(err), []string{"database.hostname", "database.user"}) {
		t.Errorf("online: %v", err)
	}
	c, _, err := LoadTail(paths[0], Options{Offline: true})
	if err != nil {
		t.Fatal(err)
	}
	if c.Name != "p" || c.ServerID < 1<<31 || c.Producer != nil {
		t.Errorf("%+v", c)
	}
}

func TestSecret(t *testing.T) {
	s := Secret("s3cret-canary")
	c := Connector{Password: s}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, v := range []any{s, &s, c, &c, []Secret{s}} {
			out := fmt.Sprintf(format, v)
			if strings.Contains(out, "s3cret") || strings.Contains(out, fmt.Sprintf("%x", "s3cret")) {
				t.Errorf("%s of %T: %s", format, v, out)
			}
		}
	}
	if text, _ := s.MarshalText(); string(text) != hidden || Secret("").String() != "" || s.Reveal() != "s3cret-canary" {
		t.Error("text")
	}
}

func FuzzParseFile(f *testing.F) {
	f.Add("c.json", connectorJSON())
	f.Add("c.json", `{"name":"a","config":{"b":1.50,"c":true,"d":null}}`)
	f.Add("c.properties", "a = b\\\n c")
	f.Fuzz(func(t *testing.T, name, text string) {
		file, err := parseFile(name, []byte(text))
		if err != nil {
			return
		}
		c := checkFile(file, InConnector, Options{}, nil)
		c.connector()
		c.converters(&Connector{}, nil)
	})
}

func TestHeartbeat(t *testing.T) {
	for set, want := range map[string]time.Duration{
		"":      10 * time.Second,
		"60000": 10 * time.Second,
		"5000":  4 * time.Second,
		"1000":  800 * time.Millisecond,
		"1":     100 * time.Millisecond,
	} {
		f := &file{value: map[string]string{}}
		if set != "" {
			f.set("connect.keep.alive.interval.ms", set)
		}
		if got := checkFile(f, InConnector, Options{}, nil).heartbeat(); got != want {
			t.Errorf("%q: %v, want %v", set, got, want)
		}
	}
}
