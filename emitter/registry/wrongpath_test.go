package registry

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
)

// TestWrongPath holds that an answer of what is no registry at that path is not taken for one that a schema is not there.
func TestWrongPath(t *testing.T) {
	for _, body := range []string{"<html><title>Not Found</title></html>", `"Not Found"`, "", `{"error_code":404,"message":"HTTP 404 Not Found"}`} {
		for _, api := range []API{Confluent, Apicurio} {
			if api == Apicurio && body != "" && body[0] == '{' {
				continue // its own artifacts that are not there have such a code
			}
			for _, latest := range []bool{false, true} {
				t.Run(fmt.Sprint(body, api, latest), func(t *testing.T) {
					s, _ := fake(t)
					s.always(http.StatusNotFound, body)
					c, logs := client(t, Config{URLs: []string{s.url}, API: api, UseLatest: latest})
					err := c.Resolve(t.Context(), valueSchema())
					if r := refusal(t, err); r.Status != http.StatusNotFound {
						t.Errorf("%+v", r)
					}
					wantText(t, err.Error(), "does not have the paths of a schema registry", "check the path in "+c.names.url, c.urls[0])
					noText(t, err.Error(), "auto")
					// Every other schema fares the same.
					c.Lookup(t.Context(), slices.Values(slices.Repeat([]Schema{valueSchema()}, 500)))
					if n := len(s.seen()); n > 100 || logs.Len() != 1 {
						t.Errorf("%d requests, log: %s", n, logs.lines())
					}
				})
			}
		}
	}
}

// TestNamesOfSettings holds that messages name what the operator wrote: the option, or the properties of the converter.
func TestNamesOfSettings(t *testing.T) {
	for _, what := range []struct {
		cfg        Config
		url, login string
		not        string
	}{
		{Config{}, "schema.registry.url", "basic.auth.user.info", "apicurio"},
		{Config{ApicurioKeys: true}, "apicurio.registry.url", "apicurio.auth.username", "schema.registry.url"},
		{Config{API: Apicurio}, "apicurio.registry.url", "apicurio.auth.username", "schema.registry.url"},
		{Config{URLsFrom: "--registry"}, "--registry", "user:password@ in --registry", "schema.registry.url"},
		{Config{URLsFrom: "--registry", ApicurioKeys: true}, "--registry", "apicurio.auth.username", "registry.url"},
	} {
		s, _ := fake(t)
		cfg := what.cfg
		cfg.URLs, cfg.AutoRegister = []string{s.url}, true
		c, _ := client(t, cfg)
		for status, want := range map[int]string{http.StatusMethodNotAllowed: what.url, http.StatusUnauthorized: what.login, http.StatusBadRequest: what.url} {
			s.always(status, "")
			err := c.Resolve(t.Context(), valueSchema())
			refusal(t, err)
			wantText(t, err.Error(), want)
			noText(t, err.Error(), what.not)
		}
	}
}
