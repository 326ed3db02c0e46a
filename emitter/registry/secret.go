package registry

import (
	"encoding/base64"
	"net/url"
	"strings"
)

// withoutCredentials cuts user:password@ out of what should be a URL, also when it cannot be parsed.
func withoutCredentials(raw string) string {
	start := 0
	if i := strings.Index(raw, "//"); i >= 0 {
		start = i + 2
	}
	// A password that was not escaped may hold / and @, so all up to the last @ goes.
	if at := strings.LastIndexByte(raw, '@'); at >= start {
		return raw[:start] + raw[at+1:]
	}
	return raw
}

// scrubber takes credentials out of texts that come from outside: an error page may well repeat the request's headers.
type scrubber struct{ replacer *strings.Replacer }

// shortestSecret is how long a secret must be for its appearance in a text to be no accident.
const shortestSecret = 4

func newScrubber(cfg *Config, instances []instance) scrubber {
	var pairs []string
	add := func(secret string) {
		if len(secret) >= shortestSecret {
			pairs = append(pairs, secret, "***")
		}
	}
	for _, i := range instances {
		if i.user == "" {
			continue
		}
		add(base64.StdEncoding.EncodeToString([]byte(i.user + ":" + i.password)))
		add(i.password)
		add(url.QueryEscape(i.password))
		add(url.PathEscape(i.password))
	}
	add(cfg.Token)
	return scrubber{strings.NewReplacer(pairs...)}
}

func (s scrubber) text(t string) string { return s.replacer.Replace(t) }
