package config

import "slices"

// The groups of the table, in the order of the documentation.
const (
	groupOurs       = "Tidemark's own"
	groupConnector  = "Connector"
	groupConnection = "Connection to MySQL"
	groupCapture    = "What is captured"
	groupEvents     = "Events"
	groupTypes      = "Types"
	groupTopics     = "Topics"
	groupSnapshot   = "Snapshots"
	groupSignals    = "Signals and notifications"
	groupHeartbeat  = "Heartbeats"
	groupHistory    = "Schema history"
	groupFailures   = "Failures"
	groupTuning     = "Tuning and metrics"
	groupConvert    = "Converters and transforms"
	groupConfluent  = "Confluent's AvroConverter"
	groupApicurio   = "Apicurio's AvroConverter"
	groupKafka      = "Kafka clients and delivery"
	groupWorker     = "Worker"
)

// Reasons that several rows share.
const (
	noSnapshot   = "No snapshot is taken in this build (see snapshot.mode)."
	noSignal     = "No signal is read in this build (see signal.data.collection and signal.enabled.channels)."
	noQueue      = "Nothing is polled and no queue stands between reader and producer; memory is bounded in bytes (tidemark run --memory)."
	noJDBC       = "There is no JDBC driver."
	ownWay       = "The client here has its own way of connecting."
	noMetrics    = "There are no JMX metrics."
	noREST       = "This build has no REST interface."
	noCluster    = "A process runs the connectors it is given; there is no cluster of workers."
	keepAlive    = "The server is asked for heartbeats, and their absence ends the connection."
	noJVM        = "There is no JVM."
	onlySinks    = "It matters to sink connectors only."
	onlyWith     = "It matters only with a key that is refused in this build: "
	doneForAdmin = "Topics are made over the producer's connection, so the value must be that of the producer."
)

// milliMax is the longest time that Java keeps in an int.
const milliMax = 1<<31 - 1

// Properties is the table of properties: a new copy at each call. Where a pattern and a plain name fit a key, the plain
// name counts; of two patterns, the first.
func Properties() []Property {
	return slices.Concat(oursTable(), standbyTable(), mysqlTable(), eventTable(), snapshotTable(), historyTable(), tuningTable(), connectTable(), workerTable())
}

// oursTable holds the keys that Debezium and Kafka Connect do not know.
func oursTable() []Property {
	return []Property{
		{
			Name: "start.position", Place: InConnector, Group: groupOurs, Type: Text, Default: "now", Status: Honoured,
			Doc:  "Where to begin when no offset is stored: oldest, now, FILE:POS, a GTID set or the JSON of an offset.",
			Note: "An offset that is stored always wins.",
		},
		{
			Name: "database.cleartext.password", Place: InConnector, Group: groupOurs, Type: Bool, Default: "false", Security: true, Status: Honoured,
			Doc:  "Whether the password itself may be sent when the server asks for it (login method mysql_clear_password), as logins by LDAP, PAM and AWS IAM need.",
			Note: "It needs database.ssl.mode=verify_identity, or verify_ca with database.ssl.truststore.",
		},
	}
}

// mysqlTable holds the connection and the choice of tables.
func mysqlTable() []Property {
	in := func(group string, rows ...Property) []Property {
		for i := range rows {
			rows[i].Place, rows[i].Group = InConnector, group
		}
		return rows
	}
	return slices.Concat(
		in(groupConnection,
			Property{Name: "database.hostname", Type: Text, Required: true, Doc: "Name or address of the MySQL server."},
			Property{Name: "database.port", Type: Number, Default: "3306", Min: 1, Max: 65535, Doc: "Port of the MySQL server."},
			Property{Name: "database.user", Type: Text, Required: true, Doc: "MySQL user; it needs REPLICATION SLAVE, REPLICATION CLIENT and SELECT."},
			Property{Name: "database.password", Type: Password, Doc: "The user's password."},
			Property{Name: "database.server.id", Type: Number, Min: 1, Max: 1<<32 - 1, Required: true, Doc: "Server id under which the binlog is read; no other replica of the server may have it."},
			Property{
				Name: "database.ssl.mode", Type: Enum, Default: "preferred", Allowed: []string{"disabled", "preferred", "required", "verify_ca", "verify_identity"}, Security: true,
				Doc:  "Whether the connection to MySQL is encrypted, and how much of the server's certificate is checked.",
				Note: "verify_ca checks that it is from a trusted authority, verify_identity also that it is for database.hostname: only these two stop somebody who can change what is on the wire. The others check nothing, unless database.ssl.truststore is set: then preferred and required check what verify_ca does, as Debezium's binlog connection does.",
			},
			Property{Name: "database.ssl.keystore", Type: Text, Security: true, Doc: "Key store with the client's certificate for MySQL: a file of JKS, PKCS12 or PEM.", Note: "It is read anew for each connection."},
			Property{Name: "database.ssl.keystore.password", Type: Password, Security: true, Doc: "Password of database.ssl.keystore, and of the key in it."},
			Property{Name: "database.ssl.truststore", Type: Text, Security: true, Doc: "Trust store that MySQL's certificate is checked against: a file of JKS, PKCS12 or PEM.", Note: "Without it the system's authorities count. It is read anew for each connection."},
			Property{Name: "database.ssl.truststore.password", Type: Password, Security: true, Doc: "Password of database.ssl.truststore."},
			Property{Name: "database.initial.statements", Type: Text, Doc: "SQL that is run on every new connection to MySQL (not the binlog's)."},
			Property{Name: "database.query.timeout.ms", Type: Millis, Default: "600000", Max: milliMax, Status: Accepted, Note: "The few queries that are asked end with the connection's own time limits.", Doc: "How long a query may take."},
			Property{Name: "database.server.id.offset", Type: Number, Default: "10000", Max: 1<<32 - 1, Status: Accepted, Note: "One connection per connector reads the binlog, under database.server.id itself.", Doc: "Distance between the server ids of several connections."},
			Property{Name: "database.jdbc.driver", Type: Class, Default: "com.mysql.cj.jdbc.Driver", Status: Accepted, Note: noJDBC, Doc: "JDBC driver."},
			Property{Name: "database.protocol", Type: Text, Default: "jdbc:mysql", Status: Accepted, Note: noJDBC, Doc: "JDBC protocol."},
			Property{Name: "connect.timeout.ms", Type: Millis, Default: "30000", Max: milliMax, Doc: "How long connecting to MySQL and logging in may take; 0 stands for the default."},
			Property{Name: "connect.keep.alive", Type: Bool, Default: "true", Status: Accepted, Note: keepAlive, Doc: "Whether a thread checks the binlog connection."},
			Property{Name: "connect.keep.alive.interval.ms", Type: Millis, Default: "60000", Max: milliMax, Doc: "How often the connection has to show that it lives: the server is asked for heartbeats every 0.8 of it (every 10 s when it is not set or longer), and after three that do not come the connection is given up."},
			Property{Name: "connection.validation.timeout.ms", Type: Millis, Default: "60000", Max: milliMax, Status: Accepted, Note: "connect.timeout.ms bounds the attempt to connect.", Doc: "How long the check of the connection in a validation may take."},
			Property{Name: "use.nongraceful.disconnect", Type: Bool, Default: "false", Status: Accepted, Note: "A stale connection is closed at once.", Doc: "Whether a stale binlog connection is reset instead of closed."},
			Property{Name: "binlog.net.read.timeout", Type: Seconds, Default: "0", Max: milliMax, Status: Accepted, Note: "The session's net_read_timeout and net_write_timeout are set so that a slow Kafka does not end the connection.", Doc: "net_read_timeout of the binlog connection."},
			Property{Name: "binlog.net.write.timeout", Type: Seconds, Default: "0", Max: milliMax, Status: Accepted, Note: "The session's net_read_timeout and net_write_timeout are set so that a slow Kafka does not end the connection.", Doc: "net_write_timeout of the binlog connection."},
			Property{Name: "driver.allowPublicKeyRetrieval", Type: Bool, Default: "false", Doc: "Whether the password may be sent over a plain connection, encrypted with a key that the server gives.", Note: "Nobody vouches for that key: better use database.ssl.mode=required."},
			Property{Name: "driver.sslMode", Type: Text, Status: NotYet, Security: true, Doc: "The JDBC driver's own SSL mode.", Note: "Use database.ssl.mode instead."},
			Property{Name: "driver.useSSL", Type: Bool, Status: NotYet, Security: true, Doc: "The JDBC driver's old switch for SSL.", Note: "Use database.ssl.mode instead."},
			Property{Name: "driver.requireSSL", Type: Bool, Status: NotYet, Security: true, Doc: "The JDBC driver's old switch for SSL.", Note: "Use database.ssl.mode=required instead."},
			Property{Name: "driver.verifyServerCertificate", Type: Bool, Status: NotYet, Security: true, Doc: "The JDBC driver's old switch for checking certificates.", Harmless: []string{"false"}},
			Property{Name: "driver.tlsVersions", Type: Text, Status: NotYet, Security: true, Doc: "TLS versions that the JDBC driver takes.", Harmless: []string{"TLSv1.2", "TLSv1.2,TLSv1.3", "TLSv1.3,TLSv1.2"}},
			Property{Name: "driver.enabledTLSProtocols", Type: Text, Status: NotYet, Security: true, Doc: "TLS versions that the JDBC driver takes.", Harmless: []string{"TLSv1.2", "TLSv1.2,TLSv1.3", "TLSv1.3,TLSv1.2"}},
			Property{Name: "driver.tlsCiphersuites", Type: List, Status: NotYet, Security: true, Doc: "Cipher suites that the JDBC driver takes."},
			Property{Name: "driver.enabledSSLCipherSuites", Type: List, Status: NotYet, Security: true, Doc: "Cipher suites that the JDBC driver takes."},
			Property{Name: "driver.trustCertificateKeyStore<setting>", Type: Text, Status: NotYet, Security: true, Doc: "The JDBC driver's trust store."},
			Property{Name: "driver.clientCertificateKeyStore<setting>", Type: Text, Status: NotYet, Security: true, Doc: "The JDBC driver's key store."},
			Property{Name: "driver.serverRSAPublicKeyFile", Type: Text, Security: true, Doc: "File with the server's public key in PEM (its public_key.pem), under which the password may be sent over a plain connection."},
			Property{Name: "driver.authenticationPlugins", Type: Text, Status: NotYet, Security: true, Doc: "Authentication plugins of the JDBC driver."},
			Property{Name: "driver.defaultAuthenticationPlugin", Type: Text, Status: NotYet, Security: true, Doc: "The JDBC driver's default authentication plugin.", Harmless: []string{"caching_sha2_password", "mysql_native_password"}},
			Property{Name: "driver.disabledAuthenticationPlugins", Type: Text, Status: NotYet, Security: true, Doc: "Authentication plugins that the JDBC driver refuses."},
			Property{Name: "driver.<setting>", Type: Text, Status: Accepted, Note: noJDBC, Warn: true, Doc: "A setting of the JDBC driver."},
		),
		in(groupCapture,
			Property{Name: "database.include.list", Type: Patterns, Doc: "Databases that are captured; all when empty.", Note: patternsNote},
			Property{Name: "database.exclude.list", Type: Patterns, Doc: "Databases that are not captured; not together with database.include.list.", Note: patternsNote},
			Property{Name: "table.include.list", Type: Patterns, Doc: "Tables (db.table) that are captured; all when empty.", Note: patternsNote},
			Property{Name: "table.exclude.list", Type: Patterns, Doc: "Tables (db.table) that are not captured; not together with table.include.list.", Note: patternsNote},
			Property{Name: "table.ignore.builtin", Type: Bool, Default: "true", Doc: "Whether mysql, sys, information_schema and performance_schema are left out."},
			Property{Name: "column.include.list", Type: Patterns, Doc: "Columns (db.table.column) that are in the events."},
			Property{Name: "column.exclude.list", Type: Patterns, Doc: "Columns (db.table.column) that are not in the events."},
			Property{Name: "skipped.operations", Type: List, Default: "t", Allowed: []string{"c", "u", "d", "t", "none"}, Doc: "Operations without events: c, u, d, t (truncate) or none."},
			Property{Name: "skip.messages.without.change", Type: Bool, Default: "false", Doc: "Leaves updates out that change no captured column."},
			Property{Name: "gtid.source.includes", Type: Text, Doc: "Server UUIDs whose transactions count."},
			Property{Name: "gtid.source.excludes", Type: Text, Doc: "Server UUIDs whose transactions do not count."},
			Property{Name: "gtid.source.filter.dml.events", Type: Bool, Default: "true", Doc: "Whether the UUID lists leave events out, or only find the starting position."},
			Property{Name: "gtid.ignore.on.recovery", Type: Bool, Default: "false", Doc: "Restarts by file and position on a server with GTIDs."},
			Property{Name: "guardrail.collections.max", Type: Number, Default: "0", Max: milliMax, Doc: "The most tables that may be captured."},
			Property{Name: "guardrail.collections.limit.action", Type: Enum, Default: "warn", Allowed: []string{"warn", "fail"}, Doc: "What happens beyond guardrail.collections.max."},
		),
	)
}

const patternsNote = "Java regular expressions, separated by commas, that must match the whole name in any case of ASCII letters. Looking ahead and behind, word boundaries, back references, possessive quantifiers and intersections are refused."

// eventTable holds what shapes the events, their types, topics and heartbeats.
func eventTable() []Property {
	in := func(group string, rows ...Property) []Property {
		for i := range rows {
			rows[i].Place, rows[i].Group = InConnector, group
		}
		return rows
	}
	return slices.Concat(
		in(groupEvents,
			Property{Name: "tombstones.on.delete", Type: Bool, Default: "true", Doc: "Whether a record with a null value follows each delete."},
			Property{Name: "extended.headers.enabled", Type: Bool, Default: "true", Doc: "Whether records carry the __debezium.context.* headers."},
			Property{Name: "include.schema.changes", Type: Bool, Default: "true", Doc: "Whether DDL becomes events on the topic named by topic.prefix."},
			Property{Name: "include.query", Type: Bool, Default: "false", Doc: "Puts the SQL statement into the event's source."},
			Property{Name: "provide.transaction.metadata", Type: Bool, Default: "false", Doc: "Writes BEGIN and END records to a transaction topic and a transaction block into the events."},
			Property{Name: "transaction.metadata.factory", Type: Class, Default: "io.debezium.pipeline.txmetadata.DefaultTransactionMetadataFactory", Status: NotYet, Doc: "Class that makes the transaction block."},
			Property{Name: "message.key.columns", Type: Text, Doc: "Columns that make up the record key instead of the primary key."},
			Property{Name: "column.mask.with.<N>.chars", Type: Patterns, Doc: "Replaces the values of columns with N asterisks."},
			Property{Name: "column.mask.hash.v2.<algorithm>.with.salt.<salt>", Type: Patterns, Doc: "The same with the text in UTF-8, whatever the machine's own charset is."},
			Property{Name: "column.mask.hash.<algorithm>.with.salt.<salt>", Type: Patterns, Doc: "Replaces the values of columns with their hash."},
			Property{Name: "column.truncate.to.<N>.chars", Type: Patterns, Doc: "Cuts the values of columns after N characters."},
			Property{Name: "unavailable.value.placeholder", Type: Text, Default: "__debezium_unavailable_value", Doc: "Text that stands for a value that the binlog does not hold."},
			Property{Name: "sourceinfo.struct.maker", Type: Class, Default: "io.debezium.connector.mysql.MySqlSourceInfoStructMaker", Status: NotYet, Doc: "Class that makes the source block."},
			Property{Name: "source.struct.version", Type: Enum, Default: "v2", Allowed: []string{"v1", "v2"}, Status: NotYet, Doc: "Version of the source block."},
			Property{Name: "post.processors", Type: List, Status: NotYet, Doc: "Named post processors that change events."},
			Property{Name: "reselect.error.handling.mode", Type: Text, Status: Accepted, Note: onlyWith + "post.processors.", Doc: "What a reselecting post processor does when a row cannot be read."},
		),
		in(groupTypes,
			Property{Name: "decimal.handling.mode", Type: Enum, Default: "precise", Allowed: []string{"precise", "double", "string"}, Doc: "How DECIMAL and NUMERIC are written."},
			Property{Name: "time.precision.mode", Type: Enum, Default: "adaptive_time_microseconds", Allowed: []string{"adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds"}, Doc: "How dates and times are written."},
			Property{Name: "bigint.unsigned.handling.mode", Type: Enum, Default: "long", Allowed: []string{"long", "precise"}, Doc: "How BIGINT UNSIGNED is written."},
			Property{Name: "binary.handling.mode", Type: Enum, Default: "bytes", Allowed: []string{"bytes", "base64", "base64-url-safe", "hex"}, Doc: "How BINARY, VARBINARY and BLOB are written."},
			Property{Name: "enable.time.adjuster", Type: Bool, Default: "true", Doc: "Whether years of two digits are taken as 1970 to 2069."},
			Property{Name: "include.schema.comments", Type: Bool, Default: "false", Doc: "Puts column comments into the schemas."},
			Property{Name: "column.propagate.source.type", Type: Patterns, Doc: "Adds the MySQL type of columns to their schemas."},
			Property{Name: "datatype.propagate.source.type", Type: Patterns, Doc: "Adds the MySQL type to the schemas of columns of some types."},
			Property{Name: "converters", Type: List, Doc: "Named custom converters for columns."},
			Property{Name: "schema.name.adjustment.mode", Type: Enum, Default: "none", Allowed: []string{"none", "avro", "avro_unicode"}, Doc: "How schema names are made fit for Avro."},
			Property{Name: "field.name.adjustment.mode", Type: Enum, Default: "none", Allowed: []string{"none", "avro", "avro_unicode"}, Doc: "How field names are made fit for Avro."},
		),
		in(groupTopics,
			Property{Name: "topic.prefix", Type: Text, Required: true, Doc: "Name of the server in topics, schemas and offsets; letters, digits, dot, hyphen and underscore."},
			Property{Name: "topic.delimiter", Type: Text, Default: ".", Doc: "What stands between the parts of topic and schema names."},
			Property{Name: "topic.naming.strategy", Type: Class, Default: "io.debezium.schema.DefaultTopicNamingStrategy", Doc: "Class that names the topics."},
			Property{Name: "topic.transaction", Type: Text, Default: "transaction", Doc: "Name of the transaction topic after the prefix."},
			Property{Name: "topic.cache.size", Type: Number, Default: "10000", Min: 1, Max: milliMax, Status: Accepted, Note: "A topic name is made once a table version.", Doc: "Size of a cache of topic names."},
			Property{Name: "topic.regex", Type: Text, Doc: "Pattern of a naming strategy."},
			Property{Name: "topic.replacement", Type: Text, Doc: "Replacement of a naming strategy."},
			Property{Name: "topic.key.enforce.uniqueness", Type: Bool, Default: "true", Doc: "Whether a naming strategy that merges topics adds to the key."},
			Property{Name: "topic.key.field.name", Type: Text, Default: "__dbz__physicalTableIdentifier", Doc: "Name of the field added to the key."},
			Property{Name: "topic.key.field.regex", Type: Text, Doc: "Pattern for the field added to the key."},
			Property{Name: "topic.key.field.replacement", Type: Text, Doc: "Replacement for the field added to the key."},
			Property{Name: "topic.creation.default.partitions", Type: Number, Min: -1, Max: milliMax, Doc: "Partitions of a topic that is created; -1 is the broker's default."},
			Property{Name: "topic.creation.default.replication.factor", Type: Number, Min: -1, Max: 1<<15 - 1, Doc: "Replicas of a topic that is created; -1 is the broker's default.", Note: "Topics are created by us only when both this and .partitions are set, as in Kafka Connect; otherwise the broker must do it."},
			Property{Name: "topic.creation.default.include", Type: Patterns, Status: NotYet, Doc: "Not allowed for the group default, which takes every topic."},
			Property{Name: "topic.creation.default.exclude", Type: Patterns, Status: NotYet, Doc: "Not allowed for the group default, which takes every topic."},
			Property{Name: "topic.creation.default.<setting>", Type: Text, Doc: "A topic setting (cleanup.policy, retention.ms …) of a topic that is created."},
			Property{Name: "topic.creation.groups", Type: List, Doc: "Groups of topics with settings of their own at creation."},
			Property{Name: "topic.creation.<group>.<setting>", Type: Text, Doc: "A setting of one group of topics."},
		),
		in(groupHeartbeat,
			Property{Name: "heartbeat.interval.ms", Type: Millis, Default: "0", Max: milliMax, Doc: "Writes a heartbeat record that often.", Note: "Here heartbeats come while the server is idle, too. The stored offset moves without them."},
			Property{Name: "heartbeat.action.query", Type: Text, Doc: "SQL that is run with each heartbeat."},
			Property{Name: "topic.heartbeat.prefix", Type: Text, Default: "__debezium-heartbeat", Doc: "Beginning of the heartbeat topic's name."},
			Property{Name: "topic.heartbeat.name", Type: Text, Doc: "Full name of the heartbeat topic."},
			Property{Name: "heartbeat.topics.prefix", Type: Text, Default: "__debezium-heartbeat", Doc: "Older name of topic.heartbeat.prefix."},
		),
	)
}

// snapshotTable holds snapshots, signals and notifications.
func snapshotTable() []Property {
	in := func(group, reason string, rows ...Property) []Property {
		for i := range rows {
			rows[i].Place, rows[i].Group = InConnector, group
			if rows[i].Status == Honoured && rows[i].Name != "snapshot.mode" {
				rows[i].Status = Accepted
			}
			if rows[i].Status == Accepted && rows[i].Note == "" {
				rows[i].Note = reason
			}
		}
		return rows
	}
	return slices.Concat(
		in(groupSnapshot, noSnapshot,
			Property{
				Name: "snapshot.mode", Type: Enum, Default: "initial", Allowed: []string{"always", "initial", "initial_only", "no_data", "when_needed", "recovery", "configuration_based", "custom"},
				Doc:  "What happens before streaming when no offset is stored.",
				Note: "Snapshots are not built yet: without a stored offset only no_data starts; with one, initial, when_needed and recovery go on from it too.",
			},
			Property{Name: "snapshot.locking.mode", Type: Enum, Default: "minimal", Allowed: []string{"minimal", "minimal_percona", "minimal_percona_no_table_locks", "minimal_at_least_once", "extended", "none", "custom"}, Doc: "How long the snapshot holds locks."},
			Property{Name: "snapshot.locking.mode.custom.name", Type: Text, Doc: "Name of a custom locking mode."},
			Property{Name: "snapshot.query.mode", Type: Enum, Default: "select_all", Allowed: []string{"select_all", "custom"}, Doc: "How the snapshot's queries are made."},
			Property{Name: "snapshot.query.mode.custom.name", Type: Text, Doc: "Name of a custom query mode."},
			Property{Name: "snapshot.mode.custom.name", Type: Text, Doc: "Name of a custom snapshot mode."},
			Property{Name: "snapshot.mode.configuration.based.snapshot.data", Type: Bool, Default: "false", Doc: "configuration_based: whether rows are read."},
			Property{Name: "snapshot.mode.configuration.based.snapshot.schema", Type: Bool, Default: "false", Doc: "configuration_based: whether table definitions are read."},
			Property{Name: "snapshot.mode.configuration.based.start.stream", Type: Bool, Default: "false", Doc: "configuration_based: whether streaming follows."},
			Property{Name: "snapshot.mode.configuration.based.snapshot.on.schema.error", Type: Bool, Default: "false", Doc: "configuration_based: whether definitions are read again when the history is lost."},
			Property{Name: "snapshot.mode.configuration.based.snapshot.on.data.error", Type: Bool, Default: "false", Doc: "configuration_based: whether rows are read again when the binlog is gone."},
			Property{Name: "snapshot.include.collection.list", Type: Text, Doc: "Tables that the snapshot reads."},
			Property{Name: "snapshot.select.statement.overrides", Type: Text, Doc: "Tables whose snapshot has a SELECT of its own."},
			Property{Name: "snapshot.select.statement.overrides.<table>", Type: Text, Doc: "The SELECT for one table."},
			Property{Name: "snapshot.fetch.size", Type: Number, Min: 0, Max: milliMax, Doc: "Rows fetched at once."},
			Property{Name: "min.row.count.to.stream.results", Type: Number, Default: "1000", Max: milliMax, Doc: "Rows from which on results are streamed."},
			Property{Name: "snapshot.lock.timeout.ms", Type: Millis, Default: "10000", Max: 1<<63 - 1, Doc: "How long to wait for locks."},
			Property{Name: "snapshot.max.threads", Type: Number, Default: "1", Min: 1, Max: milliMax, Doc: "Connections that read at once."},
			Property{Name: "snapshot.max.threads.multiplier", Type: Number, Default: "1", Min: 1, Max: milliMax, Doc: "Chunks a table and thread."},
			Property{Name: "legacy.snapshot.max.threads", Type: Bool, Default: "false", Doc: "One thread a table, as in older versions."},
			Property{Name: "internal.legacy.snapshot.max.threads", Type: Bool, Default: "false", Doc: "One thread a table, as in older versions."},
			Property{Name: "internal.snapshot.scan.all.columns.force", Type: Bool, Default: "false", Doc: "Reads the columns of all tables."},
			Property{Name: "snapshot.tables.order.by.row.count", Type: Enum, Default: "disabled", Allowed: []string{"disabled", "ascending", "descending"}, Doc: "Order of the tables."},
			Property{Name: "snapshot.delay.ms", Type: Millis, Default: "0", Max: 1<<63 - 1, Doc: "Wait before the snapshot."},
			Property{Name: "streaming.delay.ms", Type: Millis, Default: "0", Max: 1<<63 - 1, Doc: "Wait between snapshot and streaming."},
			Property{Name: "read.only", Type: Bool, Default: "false", Note: "It matters to incremental snapshots only, and no signal can ask for one in this build.", Doc: "Incremental snapshots without writing to the signal table."},
			Property{Name: "incremental.snapshot.chunk.size", Type: Number, Default: "1024", Min: 1, Max: milliMax, Doc: "Rows in a chunk of an incremental snapshot."},
			Property{Name: "incremental.snapshot.watermarking.strategy", Type: Enum, Default: "insert_insert", Allowed: []string{"insert_insert", "insert_delete"}, Doc: "How a chunk's window is closed."},
			Property{Name: "incremental.snapshot.allow.schema.changes", Type: Bool, Default: "false", Doc: "Whether DDL may come in the middle of an incremental snapshot."},
		),
		in(groupSignals, noSignal,
			Property{Name: "signal.data.collection", Type: Text, Status: NotYet, Doc: "Table that signals are inserted into."},
			Property{Name: "signal.enabled.channels", Type: List, Default: "source", Status: NotYet, Harmless: []string{"jmx"}, Doc: "Where signals come from."},
			Property{Name: "signal.poll.interval.ms", Type: Millis, Default: "5000", Max: 1<<63 - 1, Doc: "How often signals are looked for."},
			Property{Name: "signal.file", Type: Text, Default: "file-signals.txt", Doc: "File of the channel file."},
			Property{Name: "signal.kafka.topic", Type: Text, Doc: "Topic of the channel kafka."},
			Property{Name: "signal.kafka.bootstrap.servers", Type: Text, Doc: "Brokers of the channel kafka."},
			Property{Name: "signal.kafka.groupId", Type: Text, Default: "kafka-signal", Doc: "Consumer group of the channel kafka."},
			Property{Name: "signal.kafka.poll.timeout.ms", Type: Millis, Default: "100", Max: milliMax, Doc: "Poll time of the channel kafka."},
			Property{Name: "signal.consumer.<setting>", Type: Text, Doc: "Client setting of the channel kafka."},
			Property{Name: "signal.emit.failure.max.retries", Type: Number, Default: "0", Max: milliMax, Doc: "Retries of a watermark that could not be written."},
			Property{Name: "signal.emit.failure.backoff.ms", Type: Millis, Default: "0", Max: 1<<63 - 1, Doc: "Wait between those retries."},
			Property{Name: "notification.enabled.channels", Type: List, Status: NotYet, Harmless: []string{"log", "jmx"}, Doc: "Where notifications go."},
			Property{Name: "notification.sink.topic.name", Type: Text, Note: onlyWith + "notification.enabled.channels=sink.", Doc: "Topic of the channel sink."},
		),
	)
}

// historyTable holds Debezium's schema history.
func historyTable() []Property {
	const base = "schema.history.internal"
	honoured := []Property{
		{Name: base, Type: Class, Default: "io.debezium.storage.kafka.history.KafkaSchemaHistory", Doc: "Class that keeps the schema history: KafkaSchemaHistory, FileSchemaHistory or MemorySchemaHistory.", Note: "Tidemark needs none, as it keeps definitions of its own beside the offset. One that is configured is read at the start, wins over them, and is written on as Debezium writes it, so that Debezium can take over again."},
		{Name: base + ".kafka.topic", Type: Text, Doc: "Topic of the schema history."},
		{Name: base + ".file.filename", Type: Text, Doc: "File of the schema history (FileSchemaHistory)."},
		{Name: base + ".kafka.bootstrap.servers", Type: Text, Doc: "Brokers of the schema history's topic."},
		{Name: base + ".store.only.captured.tables.ddl", Type: Bool, Default: "false", Doc: "Keeps DDL of captured tables only."},
		{Name: base + ".store.only.captured.databases.ddl", Type: Bool, Default: "false", Doc: "Keeps DDL of captured databases only."},
		{Name: base + ".skip.unparseable.ddl", Type: Bool, Default: "false", Doc: "Goes on after DDL that cannot be parsed.", Note: "With binlog_row_metadata=FULL such DDL never stops the stream, as the binlog names the columns of every row."},
		{Name: base + ".prefer.ddl", Type: Bool, Default: "false", Doc: "Parses the history's DDL instead of taking its table changes."},
		{Name: base + ".ddl.filter", Type: Text, Doc: "Patterns of statements that leave no trace in the history and the schema change topic; unset: the housekeeping of managed servers."},
		{Name: "internal." + base + ".ddl.filter", Type: Text, Doc: "Another name of " + base + ".ddl.filter."},
		{Name: base + ".producer.<setting>", Type: Text, Doc: "Client setting for writing the history's topic."},
		{Name: base + ".consumer.<setting>", Type: Text, Doc: "Client setting for reading the history's topic."},
	}
	const waits = "The topic is read to its end, however long that takes; what waiting can heal is waited for."
	accepted := []Property{
		{Name: base + ".kafka.recovery.poll.interval.ms", Type: Millis, Default: "100", Max: milliMax, Note: waits, Doc: "Poll time when the history is read."},
		{Name: base + ".kafka.recovery.attempts", Type: Number, Default: "100", Max: milliMax, Note: waits, Doc: "Polls without an answer before reading the history fails."},
		{Name: base + ".kafka.query.timeout.ms", Type: Millis, Default: "3000", Max: 1<<63 - 1, Note: waits, Doc: "Time limit of requests to the cluster."},
		{Name: base + ".kafka.create.timeout.ms", Type: Millis, Default: "30000", Max: 1<<63 - 1, Note: waits, Doc: "Time limit of the topic's creation."},
		{Name: base + ".kafka.buffer.batch.size", Type: Number, Default: "1024", Max: milliMax, Note: "Each record is acknowledged before the stream goes on.", Doc: "Records written at once."},
		{Name: base + ".memory.optimization", Type: Bool, Default: "false", Note: noJVM, Doc: "Saves memory while the history is read."},
		{Name: base + ".name", Type: Text, Note: "Only logs have it.", Doc: "Name of the history in logs."},
		{Name: base + ".<setting>", Type: Text, Note: "Neither the topic nor the file knows it.", Doc: "A setting of another kind of history."},
		{Name: "ddl.parser.type", Type: Enum, Default: "default", Allowed: []string{"default", "legacy"}, Note: "There is one parser; it takes what MySQL takes.", Doc: "Which grammar parses DDL."},
		{Name: "resolve.create.table.like.schema", Type: Bool, Default: "false", Note: "CREATE TABLE … LIKE always takes over the definition of its source.", Doc: "How CREATE TABLE … LIKE is kept."},
		{Name: "memory.management.schemas.class", Type: Class, Default: "io.debezium.relational.ConcurrentMapTableMappingStorage", Note: noJVM, Doc: "Class that holds schemas in memory."},
		{Name: "memory.management.tables.class", Type: Class, Default: "io.debezium.relational.ConcurrentMapTableMappingStorage", Note: noJVM, Doc: "Class that holds tables in memory."},
		{Name: "storage.schemas.class", Type: Class, Note: noJVM, Doc: "Class that holds schemas in memory."},
		{Name: "storage.tables.class", Type: Class, Note: noJVM, Doc: "Class that holds tables in memory."},
	}
	for i := range accepted {
		accepted[i].Status = Accepted
	}
	rows := slices.Concat(honoured, accepted)
	for i := range rows {
		rows[i].Place, rows[i].Group = InConnector, groupHistory
	}
	return rows
}

// tuningTable holds failures, metrics and what tunes Debezium's threads and queues.
func tuningTable() []Property {
	failures := []Property{
		{Name: "errors.max.retries", Type: Number, Default: "-1", Min: -1, Max: milliMax, Doc: "How often a failed connection is tried again; -1 is without end."},
		{Name: "retriable.restart.connector.wait.ms", Type: Millis, Default: "10000", Max: 1<<63 - 1, Status: Accepted, Note: "The wait before another attempt grows from half a second to 30 seconds.", Doc: "Wait before a restart after a failure."},
		{Name: "event.processing.failure.handling.mode", Type: Enum, Default: "fail", Allowed: []string{"fail", "warn", "skip", "ignore"}, Doc: "What happens to a row that cannot be made an event.", Note: "It is about rows that cannot be written as events; a binlog that cannot be read stops the stream in any mode."},
		{Name: "event.deserialization.failure.handling.mode", Type: Enum, Default: "fail", Allowed: []string{"fail", "warn", "skip", "ignore"}, Doc: "What happens to a row that cannot be made an event.", Note: "It is about rows that cannot be written as events; a binlog that cannot be read stops the stream in any mode."},
		{Name: "event.converting.failure.handling.mode", Type: Enum, Default: "warn", Allowed: []string{"fail", "warn", "skip"}, Doc: "What happens to a value that cannot be converted."},
		{Name: "inconsistent.schema.handling.mode", Type: Enum, Default: "fail", Allowed: []string{"fail", "warn", "skip"}, Doc: "What happens to rows of a table that is not in the schema history."},
		{Name: "log.position.check.enable", Type: Bool, Default: "true", Status: Accepted, Note: "That the stored position is still on the server is always checked.", Doc: "Checks at the start that the binlog still holds the stored position."},
		{Name: "internal.log.position.check.enable", Type: Bool, Default: "true", Status: Accepted, Note: "That the stored position is still on the server is always checked.", Doc: "Checks at the start that the binlog still holds the stored position."},
		{Name: "custom.retriable.exception", Type: Text, Status: Accepted, Note: noJVM, Doc: "Java exceptions that are tried again."},
		{Name: "internal.custom.retriable.exception", Type: Text, Status: Accepted, Note: noJVM, Doc: "Java exceptions that are tried again."},
	}
	tuning := []Property{
		{Name: "max.batch.size", Type: Number, Default: "2048", Min: 1, Max: milliMax, Note: noQueue, Doc: "Records in a batch."},
		{Name: "max.queue.size", Type: Number, Default: "8192", Min: 1, Max: milliMax, Note: noQueue, Doc: "Records in the queue."},
		{Name: "max.queue.size.in.bytes", Type: Number, Default: "0", Max: 1<<63 - 1, Note: noQueue, Doc: "Bytes in the queue."},
		{Name: "poll.interval.ms", Type: Millis, Default: "500", Max: 1<<63 - 1, Note: noQueue, Doc: "Wait between polls of the queue."},
		{Name: "poll.dispatch.interval.ms", Type: Millis, Default: "0", Max: 1<<63 - 1, Note: noQueue, Doc: "Wait between dispatches of the queue."},
		{Name: "queue.provider.type", Type: Text, Default: "memory", Note: noQueue, Doc: "Kind of queue."},
		{Name: "query.fetch.size", Type: Number, Default: "0", Max: milliMax, Note: noJDBC, Doc: "Rows that the JDBC driver fetches at once."},
		{Name: "binlog.buffer.size", Type: Number, Default: "0", Max: milliMax, Note: "A transaction that is rolled back is not in the binlog, but for tables without transactions, whose changes stand.", Doc: "Look-ahead for a rollback."},
		{Name: "executor.shutdown.timeout.ms", Type: Millis, Default: "4000", Max: 1<<63 - 1, Note: noJVM, Doc: "How long threads may take to stop."},
		{Name: "offset.activity.monitor.interval.ms", Type: Millis, Default: "600000", Max: 1<<63 - 1, Note: noMetrics, Doc: "How often an unmoving offset is reported."},
		{Name: "internal.offset.activity.monitor.interval.ms", Type: Millis, Default: "600000", Max: 1<<63 - 1, Note: noMetrics, Doc: "How often an unmoving offset is reported."},
		{Name: "custom.metric.tags", Type: Text, Note: noMetrics, Doc: "Tags in the names of JMX beans."},
		{Name: "advanced.metrics.enable", Type: Bool, Default: "false", Note: noMetrics, Doc: "More JMX metrics."},
		{Name: "internal.advanced.metrics.enable", Type: Bool, Default: "false", Note: noMetrics, Doc: "More JMX metrics."},
		{Name: "statistics.metrics.enabled", Type: Bool, Default: "true", Note: noMetrics, Doc: "Statistics in JMX metrics."},
		{Name: "custom.sanitize.pattern", Type: Text, Note: "Values of keys are not logged; where a message shows one, secrets are hidden by the names of their keys.", Doc: "Keys whose values are hidden in logs."},
		{Name: "openlineage.integration.enabled", Type: Bool, Default: "false", Warn: true, Note: "Nothing is sent to OpenLineage.", Doc: "Sends data lineage to OpenLineage."},
		{Name: "openlineage.integration.<setting>", Type: Text, Note: "Nothing is sent to OpenLineage.", Doc: "A setting of the OpenLineage integration."},
	}
	for i := range failures {
		failures[i].Place, failures[i].Group = InConnector, groupFailures
	}
	for i := range tuning {
		tuning[i].Place, tuning[i].Group, tuning[i].Status = InConnector, groupTuning, Accepted
	}
	return slices.Concat(failures, tuning)
}
