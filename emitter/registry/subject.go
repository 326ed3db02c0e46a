package registry

// TopicName is TopicNameStrategy, Confluent's default, and Apicurio's TopicIdStrategy: the topic and which side of the
// record it is.
func TopicName(key bool) func(topic, record string) string {
	end := "-value"
	if key {
		end = "-key"
	}
	return func(topic, _ string) string { return topic + end }
}

// RecordName is RecordNameStrategy, and Apicurio's QualifiedRecordIdStrategy: the full name of the record.
func RecordName(_, record string) string { return record }

// TopicRecordName is TopicRecordNameStrategy: the topic and the full name of the record.
func TopicRecordName(topic, record string) string { return topic + "-" + record }
