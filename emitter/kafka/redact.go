package kafka

import (
	"regexp"
	"strings"
)

// secretNames tells the properties whose values are not to be printed.
var secretNames = regexp.MustCompile(`(?i)password|secret|jaas|token|credential|\.key$|keystore\.key|user\.?info`)

// shown is a property's value as a message may have it.
func shown(name, value string) string {
	if secretNames.MatchString(name) || strings.Contains(value, "-----BEGIN") || strings.Contains(value, "@") && strings.Contains(value, "://") {
		return "********"
	}
	const most = 120
	if len(value) > most {
		value = strings.ToValidUTF8(value[:most], "") + "…"
	}
	return value
}
