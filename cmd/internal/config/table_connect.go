package config

import "slices"

// jsonConverter is the class that writes JSON.
const jsonConverter = "org.apache.kafka.connect.json.JsonConverter"

// connectTable holds Kafka Connect's keys of a connector.
func connectTable() []Property {
	in := func(group string, rows ...Property) []Property {
		for i := range rows {
			rows[i].Place, rows[i].Group = InConnector, group
		}
		return rows
	}
	return slices.Concat(
		in(groupConnector,
			Property{Name: "name", Type: Text, Doc: "Name of the connector; with topic.prefix it is the key of the stored offset.", Note: `In JSON it may stand beside "config" instead.`},
			Property{Name: "connector.class", Type: Class, Required: true, Doc: "Class of the connector: " + mysqlClass + " or " + mariadbClass + ".", Note: "Short names such as MySqlConnector and MySql are taken too."},
			Property{Name: "connector.plugin.version", Type: Text, Status: Accepted, Note: "There is one version in this program.", Doc: "Version of the connector's class."},
			Property{Name: "tasks.max", Type: Number, Default: "1", Min: 1, Max: milliMax, Status: Accepted, Note: "A MySQL connector always has one task.", Doc: "The most tasks that the connector may have."},
			Property{Name: "tasks.max.enforce", Type: Bool, Default: "true", Status: Accepted, Note: "A MySQL connector always has one task.", Doc: "Whether more tasks than tasks.max are an error."},
			Property{Name: "config.action.reload", Type: Enum, Default: "restart", Allowed: []string{"none", "restart"}, Status: Accepted, Note: "What secures a connection is read again for each one, all else at the next start.", Doc: "What happens when the value behind a config provider changes."},
		),
		avroTable(), // before the patterns that take any setting of a converter
		convertTable(InConnector),
		in(groupConvert,
			Property{Name: "transforms", Type: List, Status: NotYet, Doc: "Names of the transforms that change records."},
			Property{Name: "transforms.<name>.<setting>", Type: Text, Status: Accepted, Note: "It matters only to a transform that transforms names.", Doc: "A setting of one transform."},
			Property{Name: "predicates", Type: List, Status: Accepted, Note: "They matter only to transforms.", Doc: "Names of the predicates that transforms use."},
			Property{Name: "predicates.<name>.<setting>", Type: Text, Status: Accepted, Note: "It matters only to transforms.", Doc: "A setting of one predicate."},
		),
		in(groupFailures, toleranceTable()...),
		in(groupFailures,
			Property{Name: "errors.retry.timeout", Type: Millis, Default: "0", Min: -1, Max: 1<<63 - 1, Status: Accepted, Note: "What waiting can heal is waited for; what it cannot is not tried again.", Doc: "How long a failed transform or conversion is tried again."},
			Property{Name: "errors.retry.delay.max.ms", Type: Millis, Default: "60000", Max: 1<<63 - 1, Status: Accepted, Note: "What waiting can heal is waited for; what it cannot is not tried again.", Doc: "The longest wait between those attempts."},
			Property{Name: "errors.log.enable", Type: Bool, Default: "false", Status: Accepted, Note: "Every failure is logged.", Doc: "Logs failed operations."},
			Property{Name: "errors.log.include.messages", Type: Bool, Default: "false", Status: Accepted, Note: "Rows are not logged.", Doc: "Puts the records into that log."},
		),
		in(groupKafka,
			Property{Name: "producer.override.<setting>", Type: Text, Doc: "Setting of the Kafka producer, by its Java name; it wins over the worker's producer.<setting>."},
			Property{Name: "admin.override.<setting>", Type: Text, Note: doneForAdmin, Doc: "Setting of the Kafka client that creates topics."},
			Property{Name: "consumer.override.<setting>", Type: Text, Status: Accepted, Note: onlySinks, Doc: "Setting of a sink's consumer."},
			Property{
				Name: "exactly.once.support", Type: Enum, Default: "requested", Allowed: []string{"requested", "required"}, Doc: "Whether delivery must be exactly once: required makes it so.",
				Note: "It needs offset.storage.topic and group.id. With requested it is what the worker's exactly.once.source.support says. Kafka Connect refuses required unless the worker has that enabled.",
			},
			Property{
				Name: "transaction.boundary", Type: Enum, Default: "poll", Allowed: []string{"poll", "interval", "connector", "source"}, Doc: "Where Kafka transactions end, of exactly-once delivery.",
				Note: "All end at commits of MySQL. poll: when the source waits (for 5 ms, in a backlog of more than 512 records), after 100 ms or 10,000 records; a MySQL transaction that has more is split behind a row. interval: after transaction.boundary.interval.ms, however many records there are, inside a MySQL transaction of more than 512 records or 256 KiB, behind a row, if no commit comes for another 100 ms or, if that is less, the interval. " +
					"source, which Kafka Connect does not know: like poll, but a MySQL transaction is never split. connector: like poll, since Debezium defines no boundaries; that is warned of.",
			},
			Property{
				Name: "transaction.boundary.interval.ms", Type: Millis, Min: 1, Max: 1<<63 - 1, Doc: "How long a Kafka transaction lasts with transaction.boundary=interval; offset.flush.interval.ms when it is not set.",
				Note: "It must be less than producer.override.transaction.timeout.ms.",
			},
			Property{Name: "offsets.storage.topic", Type: Text, Doc: "An offsets topic for this connector alone, written over the producer's connection.", Note: "What it does not have yet is read from the worker's place, which is kept current too, as Kafka Connect does it."},
		),
	)
}

// convertTable holds the converters, which both a worker and a connector may name.
func convertTable(place Place) []Property {
	var rows []Property
	for _, side := range []struct{ name, what string }{{"key", "key"}, {"value", "value"}} {
		c := side.name + ".converter"
		rows = append(rows,
			Property{
				Name: c, Type: Class, Doc: "Converter of the record's " + side.what + "; unset is " + jsonConverter + ".",
				Note: "For Avro: " + confluentConverter + " or " + apicurioConverter + ". Other converters are not built yet. A connector's own converter takes none of its settings from the worker, as in Kafka Connect.",
			},
			Property{Name: c + ".schemas.enable", Of: OfJSON, Type: Bool, Default: "true", Doc: "Whether the JSON holds the schema beside the payload."},
			Property{Name: c + ".replace.null.with.default", Of: OfJSON, Type: Bool, Default: "true", Doc: "Whether a NULL in a column with a default is written as that default."},
			Property{Name: c + ".decimal.format", Of: OfJSON, Type: Enum, Default: "BASE64", Allowed: []string{"BASE64", "NUMERIC"}, Doc: "How decimals stand in JSON."},
			Property{Name: c + ".schemas.cache.size", Of: OfJSON, Type: Number, Default: "1000", Max: milliMax, Status: Accepted, Note: "A schema is rendered once a table version.", Doc: "Size of a cache of schemas."},
			Property{Name: c + ".plugin.version", Type: Text, Status: Accepted, Note: "There is one version in this program.", Doc: "Version of the converter."},
			Property{Name: c + ".schema.content", Of: OfJSON, Type: Text, Status: NotYet, Doc: "A schema that stands outside of the records."},
			Property{Name: c + ".<setting>", Of: OfJSON, Type: Text, Status: Accepted, Note: "JsonConverter does not know it.", Doc: "A setting of another converter."},
		)
	}
	rows = append(rows,
		Property{Name: "header.converter", Type: Class, Default: "org.apache.kafka.connect.storage.SimpleHeaderConverter", Doc: "Converter of the record's headers: SimpleHeaderConverter, StringConverter or JsonConverter."},
		Property{Name: "header.converter.plugin.version", Type: Text, Status: Accepted, Note: "There is one version in this program.", Doc: "Version of the converter."},
		Property{Name: "header.converter.schemas.enable", Type: Bool, Default: "true", Doc: "Whether JsonConverter puts the schema into headers."},
		Property{Name: "header.converter.replace.null.with.default", Type: Bool, Default: "true", Doc: "Whether JsonConverter writes defaults for nulls into headers."},
		Property{Name: "header.converter.decimal.format", Type: Enum, Default: "BASE64", Allowed: []string{"BASE64", "NUMERIC"}, Doc: "How JsonConverter writes decimals into headers."},
		Property{Name: "header.converter.<setting>", Type: Text, Status: Accepted, Note: "The converters that are built do not know it.", Doc: "A setting of the headers' converter."},
	)
	for i := range rows {
		rows[i].Place, rows[i].Group = place, groupConvert
	}
	return rows
}

// workerTable holds the keys of a Kafka Connect worker.
func workerTable() []Property {
	rows := []Property{
		{Name: "bootstrap.servers", Type: Text, Required: true, Doc: "Kafka brokers: host:port, separated by commas."},
		{Name: "group.id", Type: Text, Doc: "Name of the Connect cluster; here it is the beginning of client ids and of transactional ids.", Note: "With offset.storage.topic it is in the name of the consumer group that says which of several processes runs a connector, and the offset is stored under the transactional id <group.id>-<name>-0, which is Kafka Connect's, and what is known of the tables under that id with -schemas behind it."},
		{Name: "client.id", Type: Text, Doc: "A part of the client ids of the worker's own Kafka clients."},
		{Name: "offset.storage.file.filename", Type: Text, Doc: "File that offsets are kept in, as a standalone worker writes it.", Note: "Exactly one of this and offset.storage.topic must be set."},
		{Name: "offset.storage.topic", Type: Text, Doc: "Compacted topic that offsets are kept in, as a distributed worker writes it.", Note: "Exactly one of this and offset.storage.file.filename must be set. With group.id set, several processes with the same files may be started: one runs a connector, the others stand by."},
		{Name: "offset.storage.partitions", Type: Number, Default: "25", Min: -1, Max: milliMax, Doc: "Partitions of the offsets topic when it is created; -1 is the broker's default."},
		{Name: "offset.storage.replication.factor", Type: Number, Default: "3", Min: -1, Max: 1<<15 - 1, Doc: "Replicas of the offsets topic when it is created; -1 is the broker's default."},
		{Name: "offset.storage.<setting>", Type: Text, Doc: "A topic setting of the offsets topic when it is created.", Note: "cleanup.policy is always compact."},
		{Name: "offset.flush.interval.ms", Type: Millis, Default: "1000", Min: 1, Max: 1<<63 - 1, Doc: "Time between two saves of an offset.", Note: "Kafka Connect's default is 60000; a second bounds what is sent again after a crash."},
		{Name: "offset.flush.timeout.ms", Type: Millis, Default: "5000", Min: 1, Max: 1<<63 - 1, Doc: "How long a stop waits for Kafka's acknowledgements."},
		{Name: "topic.creation.enable", Type: Bool, Default: "true", Doc: "Whether the topic.creation.* keys of connectors are in force."},
		{
			Name: "exactly.once.source.support", Type: Enum, Default: "disabled", Allowed: []string{"disabled", "preparing", "enabled"}, Doc: "Whether the delivery of all connectors is exactly once: enabled makes it so.",
			Note: "It needs offset.storage.topic and group.id. preparing is like disabled, since there are no other workers to wait for.",
		},
		{Name: "connector.client.config.override.policy", Type: Text, Default: "All", Status: NotYet, Security: true, Doc: "Which producer.override.* keys connectors may set.", Note: "In this build all: remove the key or set it to All."},

		{Name: "config.providers", Type: List, Doc: "Names of config providers for ${name:path:key} in values.", Note: "env, file and dir are there without it."},
		{Name: "config.providers.<name>.class", Type: Text, Doc: "Which provider a name stands for: EnvVarConfigProvider, FileConfigProvider or DirectoryConfigProvider of " + providerPackage + "*."},
		{Name: "config.providers.<name>.param.allowed.paths", Type: Text, Doc: "Files and folders that the provider may read.", Note: "Symbolic links must not lead out of them."},
		{Name: "config.providers.<name>.param.allowlist.pattern", Type: Text, Doc: "Names that the provider of the environment may read."},
		{Name: "config.providers.<setting>", Type: Text, Status: Accepted, Warn: true, Note: "None of the providers here knows it.", Doc: "Another setting of a config provider."},
		{Name: "config.storage.<setting>", Type: Text, Status: Accepted, Note: noCluster, Doc: "Where a distributed worker keeps connector configurations."},
		{Name: "status.storage.<setting>", Type: Text, Status: Accepted, Note: noCluster, Doc: "Where a distributed worker keeps states."},
		{Name: "plugin.path", Type: Text, Status: Accepted, Note: noJVM, Doc: "Where plugins lie."},
		{Name: "plugin.discovery", Type: Text, Default: "hybrid_warn", Status: Accepted, Note: noJVM, Doc: "How plugins are found."},
		{Name: "connector.plugin.version", Type: Text, Status: Accepted, Note: noJVM, Doc: "Version of a plugin."},
		{Name: "heartbeat.interval.ms", Type: Millis, Status: Accepted, Max: milliMax, Note: noCluster, Doc: "Heartbeats within the cluster of workers."},
		{Name: "session.timeout.ms", Type: Millis, Status: Accepted, Max: milliMax, Note: noCluster, Doc: "When a worker counts as dead."},
		{Name: "rebalance.timeout.ms", Type: Millis, Status: Accepted, Max: milliMax, Note: noCluster, Doc: "How long a rebalance may take."},
		{Name: "scheduled.rebalance.max.delay.ms", Type: Millis, Status: Accepted, Max: milliMax, Note: noCluster, Doc: "How long a lost worker is waited for."},
		{Name: "connect.protocol", Type: Text, Status: Accepted, Note: noCluster, Doc: "Protocol of the cluster of workers."},
		{Name: "worker.sync.timeout.ms", Type: Millis, Status: Accepted, Max: milliMax, Note: noCluster, Doc: "How long a worker may take to catch up."},
		{Name: "worker.unsync.backoff.ms", Type: Millis, Status: Accepted, Max: milliMax, Note: noCluster, Doc: "Wait after a worker could not catch up."},
		{Name: "inter.worker.<setting>", Type: Text, Status: Accepted, Note: noCluster, Doc: "Requests between workers."},
		{Name: "task.shutdown.graceful.timeout.ms", Type: Millis, Default: "5000", Max: 1<<63 - 1, Status: Accepted, Note: "offset.flush.timeout.ms bounds a stop.", Doc: "How long tasks may take to stop."},
		{Name: "topic.tracking.enable", Type: Bool, Default: "true", Status: Accepted, Note: noREST, Doc: "Whether topics in use are remembered for the REST interface."},
		{Name: "topic.tracking.allow.reset", Type: Bool, Default: "true", Status: Accepted, Note: noREST, Doc: "Whether those topics may be forgotten."},
		{Name: "listeners", Type: Text, Status: Accepted, Note: noREST, Doc: "Addresses of the REST interface."},
		{Name: "listeners.<setting>", Type: Text, Status: Accepted, Note: noREST, Doc: "Setting of the REST interface."},
		{Name: "rest.<setting>", Type: Text, Status: Accepted, Note: noREST, Doc: "Setting of the REST interface."},
		{Name: "admin.listeners", Type: Text, Status: Accepted, Note: noREST, Doc: "Addresses of the REST interface for administration."},
		{Name: "admin.listeners.<setting>", Type: Text, Status: Accepted, Note: noREST, Doc: "Setting of the REST interface for administration."},
		{Name: "access.control.<setting>", Type: Text, Status: Accepted, Note: noREST, Doc: "CORS headers of the REST interface."},
		{Name: "response.http.headers.config", Type: Text, Status: Accepted, Note: noREST, Doc: "Headers of the REST interface."},
		{Name: "metric.reporters", Type: Text, Status: Accepted, Note: noMetrics, Doc: "Classes that report metrics."},
		{Name: "metrics.<setting>", Type: Text, Status: Accepted, Note: noMetrics, Doc: "Setting of metrics."},
		{Name: "auto.include.jmx.reporter", Type: Bool, Status: Accepted, Note: noMetrics, Doc: "Whether JMX metrics are on."},
		{Name: "internal.<setting>", Type: Text, Status: Accepted, Note: "Internal converters are fixed.", Doc: "Converters of Kafka Connect's own topics."},
	}
	for i := range rows {
		rows[i].Place, rows[i].Group = InWorker, groupWorker
	}
	kafka := []Property{
		{Name: "producer.<setting>", Type: Text, Doc: "Setting of every connector's Kafka producer, by its Java name."},
		{Name: "admin.<setting>", Type: Text, Note: doneForAdmin, Doc: "Setting of the Kafka client that creates topics."},
		{Name: "consumer.<setting>", Type: Text, Status: Accepted, Note: onlySinks, Doc: "Setting of a sink's consumer."},
		{Name: "security.protocol", Type: Text, Default: "PLAINTEXT", Doc: "How the worker's own Kafka clients connect.", Note: "As in Kafka Connect, producers take theirs from producer.security.protocol."},
		{Name: "sasl.<setting>", Type: Text, Doc: "Authentication of the worker's own Kafka clients."},
		{Name: "ssl.<setting>", Type: Text, Doc: "TLS of the worker's own Kafka clients."},
		{Name: "client.dns.lookup", Type: Text, Default: "use_all_dns_ips", Harmless: []string{"resolve_canonical_bootstrap_servers_only"}, Status: Accepted, Note: ownWay, Doc: "How the worker's own Kafka clients use several addresses of a broker."},
		{Name: "request.timeout.ms", Type: Millis, Max: milliMax, Doc: "Time limit of requests of the worker's own Kafka clients."},
		{Name: "retry.backoff.ms", Type: Millis, Max: 1<<63 - 1, Default: "100", Status: Accepted, Note: ownWay, Doc: "Wait before a request of the worker's own Kafka clients is repeated."},
		{Name: "retry.backoff.max.ms", Type: Millis, Max: 1<<63 - 1, Default: "1000", Status: Accepted, Note: ownWay, Doc: "The longest such wait."},
		{Name: "reconnect.backoff.ms", Type: Millis, Max: 1<<63 - 1, Default: "50", Status: Accepted, Note: ownWay, Doc: "Wait before the worker's own Kafka clients connect again."},
		{Name: "reconnect.backoff.max.ms", Type: Millis, Max: 1<<63 - 1, Default: "1000", Status: Accepted, Note: ownWay, Doc: "The longest such wait."},
		{Name: "connections.max.idle.ms", Type: Millis, Min: -1, Max: 1<<63 - 1, Doc: "When idle connections of the worker's own Kafka clients are closed.", Note: "After 15 minutes at the latest, with -1 too."},
		{Name: "metadata.max.age.ms", Type: Millis, Max: 1<<63 - 1, Doc: "How old the worker's own Kafka clients let their knowledge of the cluster get."},
		{Name: "socket.connection.setup.timeout.ms", Type: Millis, Max: 1<<63 - 1, Doc: "How long the worker's own Kafka clients may take to connect."},
		{Name: "socket.connection.setup.timeout.max.ms", Type: Millis, Max: 1<<63 - 1, Default: "30000", Status: Accepted, Note: ownWay, Doc: "The longest such time."},
		{Name: "send.buffer.bytes", Type: Number, Min: -1, Max: milliMax, Default: "131072", Harmless: []string{"-1"}, Status: Accepted, Note: ownWay, Doc: "Socket buffer of the worker's own Kafka clients."},
		{Name: "receive.buffer.bytes", Type: Number, Min: -1, Max: milliMax, Default: "32768", Harmless: []string{"-1"}, Status: Accepted, Note: ownWay, Doc: "Socket buffer of the worker's own Kafka clients."},
	}
	for i := range kafka {
		kafka[i].Place, kafka[i].Group = InWorker, groupKafka
	}
	return slices.Concat(rows, convertTable(InWorker), kafka)
}
