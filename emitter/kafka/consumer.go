package kafka

import (
	"errors"
	"strings"
)

// consumerRules is the table of all properties of Java's consumer 4.3 (schema.history.internal.consumer.*): how to connect
// is honoured, the rest tunes a consumer group, which there is not.
func consumerRules() map[string]rule {
	const (
		whole   = "a topic is read from its beginning to its end, without a consumer group"
		fetches = "this client fetches in its own way"
	)
	table := rules()
	for _, name := range []string{
		"acks", "batch.size", "buffer.memory", "compression.gzip.level", "compression.lz4.level", "compression.type", "compression.zstd.level",
		"delivery.timeout.ms", "enable.idempotence", "key.serializer", "linger.ms", "max.block.ms", "max.in.flight.requests.per.connection",
		"max.request.size", "metadata.max.idle.ms", "partitioner.adaptive.partitioning.enable", "partitioner.availability.timeout.ms",
		"partitioner.class", "partitioner.ignore.keys", "retries", "transaction.timeout.ms", "transaction.two.phase.commit.enable",
		"transactional.id", "value.serializer",
	} {
		delete(table, name)
	}
	for _, name := range []string{
		"auto.commit.interval.ms", "auto.offset.reset", "default.api.timeout.ms", "enable.auto.commit", "exclude.internal.topics",
		"group.id", "group.instance.id", "group.protocol", "group.remote.assignor", "heartbeat.interval.ms", "isolation.level",
		"max.poll.interval.ms", "partition.assignment.strategy", "session.timeout.ms", "share.acknowledgement.mode", "share.acquire.mode",
	} {
		table[name] = rule{"", noEffect, whole}
	}
	for _, name := range []string{
		"check.crcs", "client.rack", "fetch.max.bytes", "fetch.max.wait.ms", "fetch.min.bytes", "max.partition.fetch.bytes", "max.poll.records",
	} {
		table[name] = rule{"", noEffect, fetches}
	}
	table["allow.auto.create.topics"] = rule{"true|false", noEffect, "reading makes no topic"}
	for _, name := range []string{"key.deserializer", "value.deserializer"} {
		table[name] = rule{"org.apache.kafka.common.serialization.StringDeserializer", noEffect, "records are read as text"}
	}
	return table
}

// CheckConsumerProperties is [CheckProperties] for the properties of a Java consumer.
func CheckConsumerProperties(properties map[string]string) (warnings []string, err error) {
	r := &propertyReader{properties: properties}
	r.check(consumerRules())
	_, _, err = readProperties(connecting(properties))
	return r.warnings, errors.Join(errors.Join(r.errs...), err)
}

// connecting are those of a consumer's properties that say how to connect, which a producer has as well.
func connecting(properties map[string]string) map[string]string {
	consumer, producer := consumerRules(), rules()
	out := make(map[string]string)
	for name, value := range properties {
		of, known := ruleOf(consumer, name)
		_, both := ruleOf(producer, name)
		if known && both && of.use == honoured || strings.HasPrefix(name, "sasl.") {
			out[name] = value
		}
	}
	return out
}
