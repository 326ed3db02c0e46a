package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
)

// fingerprint tells two configurations of a connector apart by the properties that are given, as they are written: what config providers
// give may be another value on each host. Secrets are left out, since it is shown to others.
func (c *checked) fingerprint() string {
	sum := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(c.value)) {
		value, asks := c.raw[key]
		if !asks {
			value = c.value[key]
		}
		if secretName.MatchString(key) {
			value = ""
		}
		fmt.Fprintf(sum, "%q=%q\n", key, value)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}
