package config

// Tolerance says how the stream goes on without what cannot be written.
type Tolerance struct {
	Topic             string // of dead letters; "": none
	ReplicationFactor int16  // of Topic when it is made; -1: the brokers' default
	ContextHeaders    bool   // dead letters have Kafka Connect's __connect.errors.* headers
}

// toleranceTable holds Kafka Connect's keys of what becomes of records that cannot be written.
func toleranceTable() []Property {
	return []Property{
		{
			Name: "errors.tolerance", Type: Enum, Default: "none", Allowed: []string{"none", "all"},
			Doc: "Whether records that Kafka does not take, each for itself, and rows that cannot be converted are left out; none: they stop the stream.",
			Note: "all: it goes on without what is too large for max.request.size or the topic's max.message.bytes, what a broker refuses as INVALID_RECORD (without a key in a compacted topic, say) or INVALID_TIMESTAMP, " +
				"and rows for which event.processing.failure.handling.mode counts else. Each is said in the log, and has a note in the topic of dead letters if there is one. Kafka Connect leaves out whatever its producer refuses, with at-least-once delivery only.",
		},
		{
			Name: "errors.deadletterqueue.topic.name", Type: Text,
			Doc:  "Topic of dead letters: it gets a note for each record that errors.tolerance=all leaves out.",
			Note: "In Kafka Connect it is for sink connectors. A note has the record's key if that is small, and as JSON the connector, the topic, the table, the size, file, pos, row and gtid, and the error; not the row.",
		},
		{
			Name: "errors.deadletterqueue.topic.replication.factor", Type: Number, Default: "3", Min: -1, Max: 1<<15 - 1,
			Doc: "Replicas of that topic when it is made, with one partition; -1 is the brokers' default.",
		},
		{
			Name: "errors.deadletterqueue.context.headers.enable", Type: Bool, Default: "false",
			Doc:  "Whether dead letters have the headers __connect.errors.*.",
			Note: "Those that make sense: topic, connector.name, task.id, stage, exception.class.name, exception.message.",
		},
		{Name: "errors.deadletterqueue.<setting>", Type: Text, Status: Accepted, Note: onlySinks, Doc: "Another setting of the topic of dead letters."},
	}
}

// tolerance reads them.
func (c *checked) tolerance() *Tolerance {
	const name, replicas = "errors.deadletterqueue.topic.name", "errors.deadletterqueue.topic.replication.factor"
	t := &Tolerance{Topic: c.text(name), ReplicationFactor: int16(c.replicas(replicas)), ContextHeaders: c.yes("errors.deadletterqueue.context.headers.enable")}
	if t.Topic != "" {
		if err := topicName(t.Topic); err != nil {
			c.fail(name, "%v", err)
		}
	}
	if c.enum("errors.tolerance") == "all" {
		return t
	}
	if t.Topic != "" {
		c.warn(name, "nothing goes there: errors.tolerance is none, so a record that cannot be written stops the stream. Set errors.tolerance=all, or remove the key")
	}
	return nil
}

// deadLetters refuses a topic of dead letters that has another purpose.
func (c *checked) deadLetters(conn *Connector, worker *checked) {
	if conn.Tolerance == nil || conn.Tolerance.Topic == "" {
		return
	}
	offsets := worker.text("offset.storage.topic")
	for _, other := range []struct{ topic, is string }{
		{offsets, "the worker's offset.storage.topic"},
		{offsets + "-schemas", "that of the tables' definitions"},
		{offsets + "-locks", "that of who runs which connector"},
		{conn.OffsetsTopic, "offsets.storage.topic"},
		{conn.History.Topic, "schema.history.internal.kafka.topic"},
	} {
		if conn.Tolerance.Topic == other.topic {
			c.fail("errors.deadletterqueue.topic.name", "%q is %s, too; give the dead letters a topic of their own", other.topic, other.is)
		}
	}
}
