package emitter

import (
	"strings"
	"unicode/utf16"
)

// longestTopic is the longest name that Kafka allows.
const longestTopic = 249

// TopicName is the topic of a table's events: prefix.database.table, with every UTF-16 unit outside [A-Za-z0-9._-]
// replaced by an underscore and cut to Kafka's limit. The names of the table's schemas begin with it.
func TopicName(prefix, database, table string) string {
	var b strings.Builder
	for _, r := range prefix + "." + database + "." + table {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			b.WriteRune(r)
		default:
			for range max(1, utf16.RuneLen(r)) {
				b.WriteByte('_')
			}
		}
	}
	name := b.String()
	return name[:min(len(name), longestTopic)]
}
