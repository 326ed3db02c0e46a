package config

import (
	"crypto/tls"
	"errors"
	"strings"

	"github.com/tidemark-cdc/tidemark/emitter/kafka"
)

// TLSConfig is how https to the registry is made safe; nil when nothing is set: then the system's authorities count. It
// reads the PEM files anew: Load has found their faults, so that an error means that they have changed since.
func (a *Avro) TLSConfig() (*tls.Config, error) {
	if a.SSL == nil {
		return nil, nil
	}
	properties := make(map[string]string, len(a.SSL))
	for name, value := range a.SSL {
		properties[name] = value.Reveal()
	}
	cfg, err := kafka.TLSConfig(properties)
	if err != nil { // which takes the settings for those of its own client
		return nil, errors.New(strings.ReplaceAll(err.Error(), "Kafka client property ", ""))
	}
	return cfg, nil
}
