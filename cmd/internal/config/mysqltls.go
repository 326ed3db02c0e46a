package config

import (
	"crypto/tls"
	"errors"
	"regexp"
	"strings"

	"github.com/tidemark-cdc/tidemark/emitter/kafka"
)

// mysqlStores are the keys of MySQL's stores, and the settings of a Kafka client that mean the same.
var mysqlStores = map[string]string{
	"database.ssl.keystore":            "ssl.keystore.location",
	"database.ssl.keystore.password":   "ssl.keystore.password",
	"database.ssl.truststore":          "ssl.truststore.location",
	"database.ssl.truststore.password": "ssl.truststore.password",
}

// mysqlTLS sets how the connection to MySQL is made safe.
func (c *checked) mysqlTLS(conn *Connector) {
	conn.CleartextPassword = c.yes("database.cleartext.password")
	conn.PublicKeyFile = c.text("driver.serverRSAPublicKeyFile")
	conn.ReadPassword = c.reread("database.password")
	switch {
	case !conn.CleartextPassword:
	case conn.SSL != SSLVerifyCA && conn.SSL != SSLVerifyIdentity:
		c.fail("database.cleartext.password", "true needs database.ssl.mode=verify_identity or verify_ca beside it: with %s the password could go to anybody", conn.SSL)
	case conn.SSL == SSLVerifyCA && c.value["database.ssl.truststore"] == "": // whoever has any name has a certificate of those
		c.fail("database.cleartext.password", "true with database.ssl.mode=verify_ca needs database.ssl.truststore beside it, with the server's own authority: the password could go to whoever has a certificate of one that the system trusts. Or use verify_identity")
	}
	settings, keys := map[string]string{}, map[string]string{}
	for key, setting := range mysqlStores {
		if v := c.value[key]; v != "" {
			settings[setting], keys[setting] = v, key
		}
	}
	if len(settings) == 0 {
		return
	}
	if conn.SSL == SSLDisabled {
		for _, key := range keys {
			c.warn(key, "has no effect with database.ssl.mode=disabled")
		}
		return
	}
	reread := rereads(settings, func(setting string) (*checked, string) { return c, keys[setting] })
	conn.TLS = func() (*tls.Config, error) {
		now := settings
		if reread != nil {
			var err error
			if now, err = reread(); err != nil {
				return nil, err
			}
		}
		cfg, err := kafka.TLSConfig(now)
		if err != nil {
			return nil, errors.New(mysqlNames(err.Error()))
		}
		return cfg, nil
	}
	if _, err := conn.TLS(); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			key := "database.ssl.truststore"
			if strings.HasPrefix(line, "database.ssl.keystore") {
				key = "database.ssl.keystore"
			}
			c.fail(key, "%s", strings.TrimLeft(strings.TrimPrefix(line, key), ":= "))
		}
	}
}

var sslSetting = regexp.MustCompile(`\bssl\.(keystore|truststore)\.(location|password)\b|\bssl\.key\.password\b`)

// mysqlNames puts MySQL's keys in place of a Kafka client's settings.
func mysqlNames(text string) string {
	text = strings.ReplaceAll(text, "Kafka client property ", "")
	return sslSetting.ReplaceAllStringFunc(text, func(setting string) string {
		for key, same := range mysqlStores {
			if setting == same {
				return key
			}
		}
		return "database.ssl.keystore.password"
	})
}
