package config

import "slices"

// The classes that write Avro. Both converters have the short names AvroConverter and Avro.
const (
	confluentConverter = "io.confluent.connect.avro.AvroConverter"
	apicurioConverter  = "io.apicurio.registry.utils.converter.AvroConverter"
)

// The defaults of classes in both converters, and what else is built.
const (
	confluentSubjects = "io.confluent.kafka.serializers.subject."
	apicurioTopicID   = "io.apicurio.registry.serde.strategy.TopicIdStrategy"
	apicurioRecordID  = "io.apicurio.registry.serde.avro.strategy.QualifiedRecordIdStrategy"
	apicurioWideID    = "io.apicurio.registry.serde.DefaultIdHandler"
	apicurioNarrowID  = "io.apicurio.registry.serde.Legacy4ByteIdHandler"
)

// Reasons that several rows share.
const (
	keepsTrying  = "What waiting can heal is waited for, however long, with growing pauses."
	nothingRead  = "Nothing is read from topics."
	allSchemas   = "All schemas in use are kept."
	noRules      = "No rules are run (see rule.executors)."
	noOAuth      = "It matters only with a value of bearer.auth.credentials.source that is refused in this build."
	noIDHeaders  = "It matters only with ids in headers (see apicurio.registry.headers.enabled)."
	noAuthServer = "It matters only with a key that is refused in this build: apicurio.auth.service.token.endpoint or apicurio.auth.service.url."
	sameText     = "The schemas of these events are the same with it."
)

// avroTable holds the settings of the converters that write Avro, which a worker and a connector may both have: those of
// AvroConverterConfig, AvroDataConfig, KafkaAvroSerializerConfig and SchemaRegistryClientConfig in Confluent's 8.3.1, and
// those of SerdeConfig, SchemaResolverConfig, AvroKafkaSerdeConfig and ClientConfig in Apicurio's 2.6.13.
func avroTable() []Property {
	in := func(group string, of Converters, rows ...Property) []Property {
		for i := range rows {
			rows[i].Name = "<key or value>.converter." + rows[i].Name
			rows[i].Place, rows[i].Group = InConnector|InWorker, group
			if rows[i].Of == 0 {
				rows[i].Of = of
			}
		}
		return rows
	}
	return slices.Concat(
		in(groupConfluent, OfConfluent, avroDataRows()...),
		in(groupConfluent, OfConfluent, confluentSchemaRows()...),
		in(groupConfluent, OfConfluent, confluentClientRows()...),
		in(groupApicurio, OfApicurio, apicurioSchemaRows()...),
		in(groupApicurio, OfApicurio, apicurioClientRows()...),
	)
}

// avroDataRows are about how Connect's schemas and values become Avro's.
func avroDataRows() []Property {
	const both = OfConfluent | OfApicurio
	return []Property{
		{Name: "connect.meta.data", Of: both, Type: Bool, Default: "true", Doc: "Whether schemas have connect.* properties.", Note: "Apicurio's converter knows it, too."},
		{Name: "enhanced.avro.schema.support", Of: both, Type: Bool, Default: "false", Status: Accepted, Note: sameText + " Apicurio's converter knows it, too.", Doc: "Enums and packages of Avro schemas that were made from other ones."},
		{Name: "schemas.cache.config", Of: both, Type: Number, Default: "1000", Max: milliMax, Status: Accepted, Note: allSchemas + " Apicurio's converter knows it, too.", Doc: "Size of a cache of schemas."},
		{Name: "scrub.invalid.names", Type: Bool, Default: "false", Doc: "Makes names fit for Avro in the converter's own way.", Note: "Better use schema.name.adjustment.mode and field.name.adjustment.mode."},
		{Name: "ignore.default.for.nullables", Type: Bool, Default: "false", Doc: "Whether a NULL in a column with a default stays null; it is written as that default otherwise.", Note: "Apicurio's converter always writes the default."},
		{Name: "generalized.sum.type.support", Type: Bool, Default: "false", Status: Accepted, Note: sameText, Doc: "Enums and unions in the way of other schema formats."},
		{Name: "allow.optional.map.keys", Type: Bool, Default: "false", Status: Accepted, Note: sameText, Doc: "How maps with optional keys are written."},
		{Name: "flatten.singleton.unions", Type: Bool, Default: "true", Status: Accepted, Note: nothingRead, Doc: "How unions of one type are read."},
		{Name: "discard.type.doc.default", Type: Bool, Default: "false", Status: NotYet, Doc: "Puts the texts of columns into doc instead of connect.doc."},
		{Name: "avro.reflection.allow.null", Type: Bool, Default: "false", Status: Accepted, Note: noJVM, Doc: "Nulls in Java objects."},
		{Name: "avro.use.logical.type.converters", Type: Bool, Default: "false", Status: Accepted, Note: "The bytes are the same with it.", Doc: "Java types of logical types."},
		{Name: "avro.remove.java.properties", Type: Bool, Default: "false", Status: Accepted, Note: "There are none in the schemas.", Doc: "Removes avro.java.* properties from schemas."},
		{Name: "schema.reflection", Type: Bool, Default: "false", Status: Accepted, Note: noJVM, Doc: "Schemas of Java objects."},
		{Name: "specific.avro.<setting>", Type: Text, Status: Accepted, Note: nothingRead, Doc: "Java classes that records are read into."},
		{Name: "avro.fail.on.trailing.data", Type: Bool, Default: "false", Status: Accepted, Note: nothingRead, Doc: "Whether bytes behind a record that is read are an error."},
	}
}

// confluentSchemaRows are about subjects, ids and registering.
func confluentSchemaRows() []Property {
	const prefixID = "io.confluent.kafka.serializers.schema.id.PrefixSchemaIdSerializer"
	return []Property{
		{Name: "auto.register.schemas", Type: Bool, Default: "true", Doc: "Whether schemas that the registry does not have are registered; otherwise they are only looked up.", Note: "At the start, known tables' schemas are looked up and none is registered."},
		{Name: "use.latest.version", Type: Bool, Default: "false", Doc: "Gives records the id of the subject's latest schema.", Note: "It needs auto.register.schemas=false. The latest schema is taken only if it reads the same bytes as the one that the records are written with."},
		{Name: "latest.compatibility.strict", Type: Bool, Default: "true", Status: Accepted, Note: "The latest schema is taken only if it reads the same bytes, which is stricter.", Doc: "Whether the latest schema must be compatible with the record's."},
		{Name: "normalize.schemas", Type: Bool, Default: "false", Doc: "Whether the registry compares schemas without regard to what does not count in them."},
		{Name: "use.latest.with.metadata", Type: Text, Status: NotYet, Doc: "Takes the latest schema that has some metadata.", Note: "Remove the key, or set use.latest.version=true."},
		{Name: "use.schema.id", Type: Number, Default: "-1", Status: NotYet, Doc: "Takes the schema with one id for all records."},
		{Name: "use.schema.guid", Type: Text, Status: NotYet, Doc: "Takes the schema with one GUID for all records."},
		{Name: "id.compatibility.strict", Type: Bool, Default: "true", Status: Accepted, Note: onlyWith + "use.schema.id.", Doc: "Whether that schema must be compatible with the record's."},
		{Name: "propagate.schema.tags", Type: Bool, Default: "false", Status: NotYet, Doc: "Takes tags over from the version before when a schema is registered."},
		{Name: "schema.format", Type: Text, Status: NotYet, Doc: "Format of schemas in the registry."},
		{Name: "max.schemas.per.subject", Type: Number, Default: "1000", Max: milliMax, Status: Accepted, Note: allSchemas, Doc: "Size of a cache of schemas."},
		{Name: "latest.cache.size", Type: Number, Default: "1000", Max: milliMax, Status: Accepted, Note: allSchemas, Doc: "Size of a cache of latest schemas."},

		{
			Name: "<key or value>.subject.name.strategy", Type: Class,
			Doc:  "Class that names the subjects: TopicNameStrategy (topic-key, topic-value), RecordNameStrategy (name of the record) or TopicRecordNameStrategy (both), each with " + confluentSubjects + " before it.",
			Note: "Unset is as TopicNameStrategy: the associations of topics with subjects that AssociatedNameStrategy asks for, the default since 8.3, are not built yet. Of the two keys the one of the converter's own side counts.",
		},
		{Name: "subject.name.strategy.fallback.type", Type: Enum, Default: "TOPIC", Allowed: []string{"TOPIC", "RECORD", "TOPIC_RECORD", "NONE"}, Later: []string{"NONE"}, Doc: "Which of the three is used for a topic without an association, when no class is set."},
		{Name: "subject.name.strategy.kafka.cluster.id", Type: Text, Status: Accepted, Warn: true, Note: "Associations of topics with subjects are not asked for.", Doc: "Cluster whose associations count."},
		{Name: "subject.name.strategy.cache.expiry.secs", Type: Seconds, Default: "-1", Min: -1, Max: milliMax, Status: Accepted, Note: "Associations of topics with subjects are not asked for.", Doc: "How long an association is kept."},
		{Name: "subject.name.strategy.cache.size", Type: Number, Default: "1000", Max: milliMax, Status: Accepted, Note: "Associations of topics with subjects are not asked for.", Doc: "Size of a cache of associations."},
		{Name: "context.name.strategy", Type: Class, Default: "io.confluent.kafka.serializers.context.NullContextNameStrategy", Status: NotYet, Doc: "Class that names the context that subjects are in.", Note: "Remove the key; a context for all subjects may stand in schema.registry.url: https://host/contexts/NAME."},
		{Name: "<key or value>.schema.id.serializer", Type: Class, Default: prefixID, Status: NotYet, Doc: "Class that writes ids: before the record, or into a header.", Note: "Ids are written before the record; consumers read both. Remove the key or set it to " + prefixID + "."},
		{Name: "<key or value>.schema.id.deserializer", Type: Class, Default: "io.confluent.kafka.serializers.schema.id.DualSchemaIdDeserializer", Status: Accepted, Note: nothingRead, Doc: "Class that reads ids."},

		{Name: "rule.executors", Type: List, Status: NotYet, Security: true, Doc: "Executors of a schema's rules, which encrypt, check or change records.", Note: "Rules are not run. Remove the key, and the rules from the subject."},
		{Name: "rule.executors.<setting>", Type: Password, Status: NotYet, Security: true, Doc: "A setting of an executor of rules.", Note: "Rules are not run. Remove the key, and the rules from the subject."},
		{Name: "rule.actions", Type: List, Status: NotYet, Security: true, Doc: "What follows a schema's rules.", Note: "Rules are not run. Remove the key, and the rules from the subject."},
		{Name: "rule.actions.<setting>", Type: Password, Status: NotYet, Security: true, Doc: "A setting of what follows rules.", Note: "Rules are not run. Remove the key, and the rules from the subject."},
		{Name: "rule.service.loader.enable", Type: Bool, Default: "true", Status: Accepted, Note: noRules, Doc: "Whether Java finds executors by itself."},
		{Name: "rule.metrics.enable", Type: Bool, Default: "true", Status: Accepted, Note: noRules, Doc: "Metrics of rules."},
		{Name: "execution.environment", Type: Text, Status: Accepted, Note: noRules, Doc: "Which rules are run here."},
		{Name: "validation.rules.execution", Type: Enum, Default: "DISABLED", Allowed: []string{"DISABLED", "BEFORE_DOMAIN_RULES", "AFTER_DOMAIN_RULES"}, Status: NotYet, Doc: "Whether records are held against the checks in a schema."},
		{Name: "validation.rules.executor.class", Type: Class, Status: Accepted, Note: onlyWith + "validation.rules.execution.", Doc: "Class that does that."},
		{Name: "validation.rules.fail.fast", Type: Bool, Default: "false", Status: Accepted, Note: onlyWith + "validation.rules.execution.", Doc: "Whether the first check that fails ends it."},
	}
}

// confluentClientRows are about reaching the registry. The client takes its settings with and without the prefix
// schema.registry., those of TLS only with it.
func confluentClientRows() []Property {
	const client = "[schema.registry.]"
	return []Property{
		{Name: "schema.registry.url", Type: List, Doc: "URLs of the registry, separated by commas; a request that fails at one goes to the next.", Note: "It must be set. A user and a password in the URL (https://user:password@host) are used as they stand, without decoding."},
		{Name: client + "url.randomize", Type: Bool, Default: "false", Status: Accepted, Note: "They are tried in their order.", Doc: "Whether the first of the URLs is chosen by chance."},
		{Name: client + "http.connect.timeout.ms", Type: Millis, Default: "60000", Max: milliMax, Doc: "How long connecting to the registry may take; 0 is without end."},
		{Name: client + "http.read.timeout.ms", Type: Millis, Default: "60000", Max: milliMax, Doc: "How long an answer of the registry may take; 0 is without end."},
		{Name: client + "max.retries", Type: Number, Default: "3", Max: milliMax, Status: Accepted, Note: keepsTrying, Doc: "How often a request is tried again."},
		{Name: client + "retries.wait.ms", Type: Millis, Default: "1000", Max: milliMax, Status: Accepted, Note: keepsTrying, Doc: "Wait before a request is tried again."},
		{Name: client + "retries.max.wait.ms", Type: Millis, Default: "20000", Max: milliMax, Status: Accepted, Note: keepsTrying, Doc: "The longest such wait."},
		{Name: client + "latest.cache.ttl.sec", Type: Seconds, Default: "-1", Min: -1, Max: milliMax, Status: Accepted, Note: "The latest schema is asked for once for each schema of records.", Doc: "How long the latest schema of a subject is kept."},
		{Name: client + "missing.<setting>", Type: Text, Status: Accepted, Note: "What the registry does not have is not remembered.", Doc: "A cache of what the registry does not have."},
		{Name: client + "use.apache.http.client", Type: Bool, Default: "false", Status: Accepted, Note: noJVM, Doc: "Which Java client speaks HTTP."},
		{Name: client + "proxy.host", Type: Text, Doc: "HTTP proxy to the registry: name or address."},
		{Name: client + "proxy.port", Type: Number, Default: "-1", Min: -1, Max: 65535, Doc: "Port of the HTTP proxy."},
		{Name: "request.header.<name>", Type: Password, Status: NotYet, Security: true, Doc: "A header for all requests to the registry.", Note: "Remove the key; for Authorization set basic.auth.credentials.source=USER_INFO with basic.auth.user.info, or bearer.auth.credentials.source=STATIC_TOKEN with bearer.auth.token."},

		{
			Name: client + "basic.auth.credentials.source", Type: Enum, Default: "URL", Allowed: []string{"URL", "USER_INFO", "SASL_INHERIT"}, Later: []string{"SASL_INHERIT"}, Security: true,
			Doc: "Where user and password of the registry stand.", Note: "With USER_INFO they stand in basic.auth.user.info.",
		},
		{Name: client + "basic.auth.user.info", Type: Password, Doc: "user:password for basic.auth.credentials.source=USER_INFO."},
		{Name: client + "sasl.jaas.config", Type: Password, Status: Accepted, Note: "It matters only with basic.auth.credentials.source=SASL_INHERIT, which is refused in this build.", Doc: "User and password of Kafka for the registry."},
		{
			Name: client + "bearer.auth.credentials.source", Type: Enum, Allowed: []string{"STATIC_TOKEN", "OAUTHBEARER", "SASL_OAUTHBEARER_INHERIT", "UAMI", "CUSTOM"}, Later: []string{"OAUTHBEARER", "SASL_OAUTHBEARER_INHERIT", "UAMI", "CUSTOM"}, Security: true,
			Doc: "Where the registry's token comes from.", Note: "Not together with basic.auth.credentials.source.",
		},
		{Name: client + "bearer.auth.token", Type: Password, Doc: "The token for bearer.auth.credentials.source=STATIC_TOKEN."},
		{Name: client + "bearer.auth.logical.cluster", Type: Text, Status: NotYet, Security: true, Doc: "The registry's cluster, sent in the header target-sr-cluster."},
		{Name: client + "bearer.auth.identity.pool.id", Type: Text, Status: NotYet, Security: true, Doc: "An identity pool, sent in the header Confluent-Identity-Pool-Id."},
		{Name: client + "bearer.auth.issuer.endpoint.url", Type: Text, Status: Accepted, Note: noOAuth, Doc: "Where OAuth gives tokens."},
		{Name: client + "bearer.auth.client.id", Type: Text, Status: Accepted, Note: noOAuth, Doc: "User of OAuth."},
		{Name: client + "bearer.auth.client.secret", Type: Password, Status: Accepted, Note: noOAuth, Doc: "Password of OAuth."},
		{Name: client + "bearer.auth.scope", Type: Text, Status: Accepted, Note: noOAuth, Doc: "Scope of OAuth's tokens."},
		{Name: client + "bearer.auth.scope.claim.name", Type: Text, Default: "scope", Status: Accepted, Note: noOAuth, Doc: "Name of the scope in a token."},
		{Name: client + "bearer.auth.sub.claim.name", Type: Text, Default: "sub", Status: Accepted, Note: noOAuth, Doc: "Name of the subject in a token."},
		{Name: client + "bearer.auth.cache.expiry.buffer.seconds", Type: Seconds, Default: "300", Max: 3600, Status: Accepted, Note: noOAuth, Doc: "How early a new token is fetched."},
		{Name: client + "bearer.auth.custom.provider.class", Type: Class, Status: Accepted, Note: noOAuth, Doc: "Java class that gives tokens."},
		{Name: client + "bearer.auth.uami.endpoint.<setting>", Type: Text, Status: Accepted, Note: noOAuth, Doc: "Where Azure gives tokens."},

		{Name: "schema.registry.ssl.<setting>", Type: Text, Doc: "TLS to the registry, by the names of Kafka's clients.", Note: "Key and trust stores are JKS, PKCS12 or PEM. The names in the registry's certificates are checked, unless ssl.endpoint.identification.algorithm is set and empty or none; Confluent's converter checks them only when it is https."},
		{Name: "ssl.<setting>", Type: Text, Status: Accepted, Warn: true, Note: "The converter takes the settings of TLS with schema.registry. before ssl.", Doc: "A setting of TLS in the wrong place."},
	}
}

// apicurioSchemaRows are about artifacts, ids and registering.
func apicurioSchemaRows() []Property {
	const p = "apicurio.registry."
	return []Property{
		{Name: p + "headers.enabled", Type: Bool, Default: "true", Doc: "Whether ids are written into headers instead of before the record.", Note: "Set it to false: ids in headers, the converter's default, are not built yet, and unset counts as false here, with a warning. Apicurio's consumers read ids before the record in either case."},
		{Name: p + "as-confluent", Type: Bool, Default: "false", Doc: "Whether ids have 4 bytes, as Confluent's, instead of 8."},
		{Name: p + "id-handler", Type: Class, Default: apicurioWideID, Doc: "Class that writes ids: " + apicurioWideID + " (8 bytes) or " + apicurioNarrowID + " (as apicurio.registry.as-confluent=true)."},
		{Name: p + "use-id", Type: Enum, Default: "globalId", Allowed: []string{"globalId", "contentId"}, Doc: "Which of the two ids of a schema is written.", Note: "contentId is what the Confluent-compatible interface of the registry calls id."},
		{Name: p + "headers.<setting>", Type: Text, Status: Accepted, Note: noIDHeaders, Doc: "Names of headers and the class that writes them."},
		{Name: p + "auto-register", Type: Bool, Default: "false", Doc: "Whether schemas that the registry does not have are registered; otherwise they are only looked up."},
		{Name: p + "auto-register.if-exists", Type: Enum, Default: "RETURN_OR_UPDATE", Allowed: []string{"FAIL", "UPDATE", "RETURN", "RETURN_OR_UPDATE"}, Status: NotYet, Doc: "What happens when the artifact exists."},
		{Name: p + "find-latest", Type: Bool, Default: "false", Doc: "Gives records the id of the artifact's latest schema.", Note: "It has no effect beside apicurio.registry.auto-register=true. The latest schema is taken only if it reads the same bytes as the one that the records are written with."},
		{Name: p + "artifact-resolver-strategy", Type: Class, Default: apicurioTopicID, Doc: "Class that names the artifacts: " + apicurioTopicID + " (topic-key, topic-value) or " + apicurioRecordID + " (name of the record)."},
		{Name: p + "artifact.group-id", Type: Text, Doc: "Group of the artifacts; default when it is not set."},
		{Name: p + "artifact.artifact-id", Type: Text, Status: NotYet, Doc: "One artifact for all topics."},
		{Name: p + "artifact.version", Type: Text, Status: NotYet, Doc: "One version of all artifacts."},
		{Name: p + "artifact.schema.location", Type: Text, Status: Accepted, Note: "The schemas are those of the tables.", Doc: "Where a schema lies among Java's classes."},
		{Name: p + "dereference-schema", Type: Bool, Default: "true", Status: NotYet, Doc: "Whether a schema is registered as a whole; false takes it apart."},
		{Name: p + "serializer.dereference-schema", Type: Bool, Default: "false", Status: Accepted, Note: "Schemas that are found are only compared.", Doc: "Whether the registry puts schemas together that are in parts."},
		{Name: p + "deserializer.<setting>", Type: Text, Status: Accepted, Note: nothingRead, Doc: "How schemas and records are read."},
		{Name: p + "fallback.<setting>", Type: Text, Status: Accepted, Note: nothingRead, Doc: "Schemas for records that have no id."},
		{Name: p + "serde.validation-enabled", Type: Bool, Default: "true", Status: Accepted, Note: "Avro records always fit their schemas.", Doc: "Holds records against their schemas."},
		{Name: p + "avro.encoding", Type: Enum, Default: "BINARY", Allowed: []string{"BINARY", "JSON"}, Status: NotYet, Doc: "Whether records are Avro's binary or its JSON encoding."},
		{Name: p + "avro-datum-provider", Type: Class, Default: "io.apicurio.registry.serde.avro.DefaultAvroDatumProvider", Status: NotYet, Doc: "Class that makes schemas of Java objects."},
		{Name: p + "use-specific-avro-reader", Type: Bool, Default: "false", Status: Accepted, Note: nothingRead, Doc: "Java classes that records are read into."},
		{Name: p + "schema-resolver", Type: Class, Default: "io.apicurio.registry.resolver.DefaultSchemaResolver", Status: NotYet, Doc: "Class that asks the registry."},
		{Name: p + "converter.serializer", Type: Class, Default: "io.apicurio.registry.serde.avro.AvroKafkaSerializer", Status: NotYet, Doc: "Class that writes records."},
		{Name: p + "converter.deserializer", Type: Class, Status: Accepted, Note: nothingRead, Doc: "Class that reads records."},
		{Name: p + "is-key", Type: Bool, Status: Accepted, Note: "The converter's side says it.", Doc: "Whether the converter writes keys."},
		{Name: p + "cache-latest", Type: Bool, Default: "true", Status: Accepted, Note: allSchemas, Doc: "Whether latest schemas are kept."},
		{Name: p + "fault-tolerant-refresh", Type: Bool, Default: "false", Status: Accepted, Note: "An id that is known is not asked for again.", Doc: "Goes on with a known schema when the registry does not answer."},
		{Name: p + "check-period-ms", Type: Millis, Default: "30000", Max: 1<<63 - 1, Status: Accepted, Note: "An id that is known is not asked for again.", Doc: "How long a schema is kept."},
	}
}

// apicurioClientRows are about reaching the registry.
func apicurioClientRows() []Property {
	const (
		ssl  = "apicurio.<registry or rest>.request.ssl."
		auth = "apicurio.auth."
	)
	return []Property{
		{Name: "apicurio.registry.url", Type: Text, Doc: "URL of the registry, with or without /apis/registry/v2 at its end.", Note: "It must be set."},
		{Name: "apicurio.[registry.]rest.client.auto-base-path", Type: Text, Default: "apis/registry/v2/", Status: NotYet, Doc: "What is put behind the URL."},
		{Name: "apicurio.<registry or rest>.client.disable-auto-basepath-append", Type: Bool, Default: "false", Status: NotYet, Doc: "Whether nothing is put behind the URL."},
		{Name: "apicurio.registry.retry-count", Type: Number, Default: "3", Max: 1<<63 - 1, Status: Accepted, Note: keepsTrying, Doc: "How often a request is tried again."},
		{Name: "apicurio.registry.retry-backoff-ms", Type: Millis, Default: "300", Max: 1<<63 - 1, Status: Accepted, Note: keepsTrying, Doc: "Wait before a request is tried again."},
		{Name: "apicurio.<registry or rest>.request.headers.<name>", Type: Password, Status: NotYet, Security: true, Doc: "A header for all requests to the registry.", Note: "Remove the key; for Authorization set apicurio.auth.username and apicurio.auth.password."},
		{Name: ssl + "truststore.location", Type: Text, Doc: "Trust store that the registry's certificate is checked against: JKS, PKCS12 or PEM."},
		{Name: ssl + "truststore.type", Type: Text, Default: "JKS", Doc: "Its type.", Note: "Whatever it says, the file is read as what it is."},
		{Name: ssl + "truststore.password", Type: Password, Doc: "Its password.", Note: "A trust store in PEM or JKS needs none."},
		{Name: ssl + "keystore.location", Type: Text, Doc: "Key store with the client's certificate and its key: JKS, PKCS12 or PEM."},
		{Name: ssl + "keystore.type", Type: Text, Default: "JKS", Doc: "Its type.", Note: "Whatever it says, the file is read as what it is."},
		{Name: ssl + "keystore.password", Type: Password, Doc: "Its password.", Note: "A PEM file needs none, unless its key is encrypted."},
		{Name: ssl + "key.password", Type: Password, Doc: "Password of the client's key.", Note: "The key must not be encrypted."},
		{Name: "apicurio.rest.request.ssl.ca-bundle.location", Type: Text, Doc: "File with the authorities that the registry's certificate is checked against, when no trust store is set."},
		{Name: auth + "username", Type: Text, Doc: "User of the registry."},
		{Name: auth + "password", Type: Password, Doc: "The user's password."},
		{Name: auth + "service.token.endpoint", Type: Text, Status: NotYet, Security: true, Doc: "Where OAuth gives tokens.", Note: "Remove the key and use apicurio.auth.username and apicurio.auth.password."},
		{Name: auth + "service.url", Type: Text, Status: NotYet, Security: true, Doc: "Where Keycloak gives tokens.", Note: "Remove the key and use apicurio.auth.username and apicurio.auth.password."},
		{Name: auth + "realm", Type: Text, Status: Accepted, Note: noAuthServer, Doc: "Realm of Keycloak."},
		{Name: auth + "client.id", Type: Text, Status: Accepted, Note: noAuthServer, Doc: "User of OAuth."},
		{Name: auth + "client.secret", Type: Password, Status: Accepted, Note: noAuthServer, Doc: "Password of OAuth."},
		{Name: auth + "client.scope", Type: Text, Status: Accepted, Note: noAuthServer, Doc: "Scope of OAuth's tokens."},
	}
}
