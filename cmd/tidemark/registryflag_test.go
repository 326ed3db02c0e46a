package main

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
	"github.com/tidemark-cdc/tidemark/emitter"
)

func TestRegistryFlag(t *testing.T) {
	for value, want := range map[string]string{
		"":                        "",
		"  ":                      "",
		"http://r:8081":           "http://r:8081",
		" https://r/path/ ":       "https://r/path/",
		"http://a:1, https://b:2": "http://a:1,https://b:2",
		"http://a,,http://b,":     "http://a,http://b",
		"http://u:p%2Cq%40@a:1":   "http://u:p%2Cq%40@a:1",
	} {
		var flag registryFlag
		cmd := &cobra.Command{Use: "run"}
		flag.add(cmd, "")
		if err := cmd.ParseFlags([]string{"--registry", value}); err != nil {
			t.Fatal(err)
		}
		got, end, err := flag.open(zap.NewNop())
		if err != nil || got != want || flag.given() != (want != "") {
			t.Errorf("%q: %q, given %t, %v", value, got, flag.given(), err)
		}
		end()
		c := &config.Connector{}
		flag.use(c, got)
		if (c.Key.Avro != nil) != (want != "") || (c.Value.Avro != nil) != (want != "") {
			t.Errorf("%q: %+v", value, c.Key)
		}
		if want != "" && !slices.Equal(c.Value.Avro.URLs, strings.Split(want, ",")) {
			t.Errorf("%q: %q", value, c.Value.Avro.URLs)
		}
	}
}

func TestRegistryFlagRefused(t *testing.T) {
	for value, want := range map[string]string{
		"registry:8081":            `"registry:8081" is neither embedded nor a URL`,
		"ftp://r":                  "neither embedded nor a URL",
		"http://":                  "neither embedded nor a URL",
		"http://a,embedded":        `"embedded" is neither`,
		"http://r?x=y":             "has a ? or # part",
		"http://r:99999":           "has a port that is none",
		"http://u:s3cret,x@a":      "number 1 of its URLs",
		"http://a,http://u:s3%zz@": "number 2 of its URLs",
		",":                        "without a URL",
		"embedded:http":            "the port is not a number",
		"embedded:70000":           "the port is not a number",
	} {
		_, _, err := (&registryFlag{value: value}).open(zap.NewNop())
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "--registry") || strings.Contains(err.Error(), "s3") {
			t.Errorf("%q: %v, want %q", value, err, want)
		}
	}
	var flag registryFlag
	flag.add(&cobra.Command{Use: "demo"}, "")
	flag.value = "http://a,http://b"
	if _, _, err := flag.open(zap.NewNop()); err == nil || !strings.Contains(err.Error(), "takes one URL") {
		t.Errorf("the demo reads from several: %v", err)
	}
}

// TestRegistryFlagReaches holds that the registry of the flag is reached as the properties say, the embedded one plainly, and
// that messages name the flag.
func TestRegistryFlagReaches(t *testing.T) {
	logins := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		logins <- user + ":" + password
		w.WriteHeader(http.StatusMethodNotAllowed)
	}))
	defer server.Close()
	connector := func() *config.Connector {
		c := &config.Connector{}
		c.Value.Avro = &config.Avro{URLs: []string{"https://elsewhere"}, User: "ann", Password: "pw", Proxy: "p:1", Strategy: config.TopicStrategy, UseLatest: true}
		return c
	}
	flag := registryFlag{value: server.URL}
	c := connector()
	flag.use(c, server.URL)
	c.Value.Avro.Proxy, c.Key.Avro.Proxy = "", ""
	regs, err := openRegistries(c, false, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer regs.close()
	for _, key := range []bool{true, false} {
		err := regs.resolve(t.Context(), &emitter.SchemaNeeded{Subject: "s", Text: `"int"`, Key: key})
		if err == nil || !strings.Contains(err.Error(), "--registry") || strings.Contains(err.Error(), "schema.registry.url") {
			t.Error(err)
		}
		if got := <-logins; got != "ann:pw" {
			t.Errorf("login %s", got)
		}
	}

	flag = registryFlag{value: "embedded"}
	url, end, err := flag.open(zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	c = connector()
	flag.use(c, url)
	for _, a := range []*config.Avro{c.Key.Avro, c.Value.Avro, registeredAt(connector().Value.Avro, url)} {
		if a.User != "" || a.Password != "" || a.Token != "" || a.SSL != nil || a.Proxy != "" || a.UseLatest || !a.AutoRegister || a.URLs[0] != url {
			t.Errorf("the embedded registry is asked as %+v says", a)
		}
	}
}
