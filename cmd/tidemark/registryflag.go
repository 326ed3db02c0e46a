package main

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
	"github.com/tidemark-cdc/tidemark/emitter/registry"
)

// registryFlag is --registry: where schemas are registered, whatever the files say.
type registryFlag struct{ value string }

func (f *registryFlag) add(cmd *cobra.Command, without string) {
	cmd.Flags().StringVar(&f.value, "registry", "", "write Avro with this schema registry: a URL, or embedded (or embedded:PORT) for one that lives and dies with this process"+without)
}

// use makes a connector's converters write Avro with the registry at a URL that open has returned.
func (f *registryFlag) use(c *config.Connector, url string) {
	if url == "" {
		return
	}
	c.UseAvro(url)
	if f.embedded() { // which is empty: nothing could be found there
		c.Key.Avro.AutoRegister, c.Value.Avro.AutoRegister = true, true
	}
}

// registeredAt is an Avro converter, nil if a is, that writes what a does but has its schemas in the embedded registry at url.
func registeredAt(a *config.Avro, url string) *config.Avro {
	if a == nil {
		return nil
	}
	b := *a
	b.URLs, b.User, b.Password, b.Token, b.SSL, b.Proxy = []string{url}, "", "", "", nil, ""
	b.AutoRegister, b.UseLatest, b.FindLatest = true, false, false
	b.LikeConfluent = b.Apicurio // the interface; the form of the records stays
	return &b
}

func (f *registryFlag) embedded() bool {
	return f.value == "embedded" || strings.HasPrefix(f.value, "embedded:")
}

// open returns the registry's URL, "" without the flag, and what ends an embedded one.
func (f *registryFlag) open(log *zap.Logger) (string, func(), error) {
	none := func() {}
	if f.value == "" {
		return "", none, nil
	}
	if !f.embedded() {
		u, err := url.Parse(f.value)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return "", none, errors.New("--registry is neither embedded nor a URL like http://registry:8081")
		}
		return f.value, none, nil
	}
	port := "0"
	if p, ok := strings.CutPrefix(f.value, "embedded:"); ok {
		port = p
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", none, fmt.Errorf("--registry embedded:%s: the port is not a number up to 65535", port)
	}
	embedded, err := registry.StartEmbedded("127.0.0.1:" + port)
	if err != nil {
		return "", none, fmt.Errorf("--registry %s: %w", f.value, err)
	}
	log.Info("an embedded schema registry is listening; its schemas and their ids are gone when this process ends, so that it is for trying out only",
		zap.String("url", embedded.URL()))
	return embedded.URL(), embedded.Close, nil
}
