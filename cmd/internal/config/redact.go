package config

import (
	"regexp"
	"strings"
)

// secretName tells keys whose values are not to be printed, also unknown ones: Debezium's pattern
// (.*secret$|.*password$|.*sasl\.jaas\.config$|.*basic\.auth\.user\.info|.*registry\.auth\.client-secret|.*credentials\.json$|.*connectionstring$|.*connection\.string$)
// and what else may hold one.
var secretName = regexp.MustCompile(`(?i)password|passwd|secret|jaas\.config|credential|user\.?info|token|private\.key|ssl\.key(store\.key|\.)|connection\.?string|api\.?key|access\.?key`)

// userInfo is a user and a password in a URL.
var userInfo = regexp.MustCompile(`(://)[^/?#\s]*@`)

// redacted hides what no key's name tells: PEM texts, and logins in URLs.
func redacted(value string) string {
	if strings.Contains(value, "-----BEGIN") {
		return hidden
	}
	return userInfo.ReplaceAllString(value, "${1}"+hidden+"@")
}

// leastSecret is how long a secret must be to be looked for in messages: shorter ones are parts of words.
const leastSecret = 6

// masked hides the values of secret keys, and all that providers gave, wherever they stand in a message.
func (c *checked) masked(text string) string {
	for key, value := range c.value {
		_, given := c.raw[key]
		secret := given || secretName.MatchString(key)
		if p := c.table.find(key); p != nil && (p.Type == Bool || p.Type == Number || p.Type == Millis || p.Type == Seconds || p.Type == Enum || p.Type == Class) {
			secret = given && p.Type == Class
		}
		if value = strings.TrimSpace(value); secret && len(value) >= leastSecret {
			text = strings.ReplaceAll(text, value, hidden)
		}
	}
	for _, value := range c.resolved {
		if len(value) >= leastSecret {
			text = strings.ReplaceAll(text, value, hidden)
		}
	}
	return text
}
