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

// registryFlag is --registry: where schemas are registered, whatever the files say. Empty is as if it were not given.
type registryFlag struct {
	value string
	one   bool // the command reads what it has written from one URL
}

func (f *registryFlag) add(cmd *cobra.Command, without string) {
	f.one = cmd.Name() == "demo"
	cmd.Flags().Var(f, "registry", "write Avro with this schema registry: its URL, or several of its instances separated by commas, "+
		"or embedded (or embedded:PORT) for one that lives and dies with this process"+without)
}

// String is the flag as it was given.
func (f *registryFlag) String() string { return f.value }

// Set takes the flag's text.
func (f *registryFlag) Set(text string) error {
	f.value = strings.TrimSpace(text)
	return nil
}

// Type is what the help calls the flag's text.
func (f *registryFlag) Type() string { return "string" }

// given says that there is a registry to use.
func (f *registryFlag) given() bool { return f.value != "" }

// use makes a connector's converters write Avro with the registry at the URLs that open has returned.
func (f *registryFlag) use(c *config.Connector, urls string) {
	if urls == "" {
		return
	}
	c.UseAvro(strings.Split(urls, ",")...)
	if f.embedded() { // which is empty: nothing could be found there
		for _, a := range []*config.Avro{c.Key.Avro, c.Value.Avro} {
			a.AutoRegister, a.UseLatest = true, false
			reachPlainly(a)
		}
	}
}

// reachPlainly takes away what the embedded registry does not ask for, and is to be told to nobody else.
func reachPlainly(a *config.Avro) { a.User, a.Password, a.Token, a.SSL, a.Proxy = "", "", "", nil, "" }

// registeredAt is an Avro converter, nil if a is, that writes what a does but has its schemas in the embedded registry at url.
func registeredAt(a *config.Avro, url string) *config.Avro {
	if a == nil {
		return nil
	}
	b := *a
	b.URLs = []string{url}
	reachPlainly(&b)
	b.AutoRegister, b.UseLatest = true, false
	b.LikeConfluent = b.Apicurio // the interface; the form of the records stays
	return &b
}

func (f *registryFlag) embedded() bool {
	return f.value == "embedded" || strings.HasPrefix(f.value, "embedded:")
}

// open returns the registry's URLs, separated by commas, "" without the flag, and what ends an embedded one.
func (f *registryFlag) open(log *zap.Logger) (string, func(), error) {
	none := func() {}
	if !f.given() {
		return "", none, nil
	}
	if !f.embedded() {
		urls, err := f.urls()
		return strings.Join(urls, ","), none, err
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
		return "", none, fmt.Errorf("--registry embedded:%s: %w", port, err)
	}
	log.Info("an embedded schema registry is listening; its schemas and their ids are gone when this process ends, so that it is for trying out only",
		zap.String("url", embedded.URL()))
	return embedded.URL(), embedded.Close, nil
}

// urls reads the flag's list. No error shows a login.
func (f *registryFlag) urls() ([]string, error) {
	var urls []string
	for i, text := range strings.Split(f.value, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		shown := strconv.Quote(text)
		if strings.Contains(f.value, "@") { // a comma in a password makes several of one, so that none may be shown
			shown = fmt.Sprintf("number %d of its URLs", i+1)
		}
		u, err := url.Parse(text)
		switch {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
			return nil, fmt.Errorf("--registry: %s is neither embedded nor a URL like http://registry:8081; in a user or password, letters such as @ : / , ? # %% must be written as %%40 %%3A %%2F %%2C %%3F %%23 %%25", shown)
		case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
			return nil, fmt.Errorf("--registry: %s has a ? or # part, which means nothing here", shown)
		case u.Port() != "" && !isPort(u.Port()):
			return nil, fmt.Errorf("--registry: %s has a port that is none", shown)
		}
		urls = append(urls, text)
	}
	switch {
	case len(urls) == 0:
		return nil, errors.New("--registry is a list without a URL; give http://registry:8081, or embedded")
	case f.one && len(urls) > 1:
		return nil, errors.New("--registry: this command takes one URL")
	}
	return urls, nil
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}
