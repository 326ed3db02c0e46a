package registry

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNewReportsAllFaults(t *testing.T) {
	_, err := New(Config{
		URLs:  []string{"ftp://h", "http://", "http://u:s3cret%zz@h", "https://u:s3cret@h/p?q=1", "http://u:s3c/r@et@h:port", "h:8081"},
		User:  "u",
		Token: "s3cret-token\n", Proxy: "u:s3cret@h:1", API: 7, ConnectTimeout: -1,
	})
	if err == nil {
		t.Fatal("no error")
	}
	if got := strings.Count(err.Error(), "\n") + 1; got != 11 {
		t.Errorf("%d faults, want 11: %v", got, err)
	}
	noText(t, err.Error(), "s3c")
	wantText(t, err.Error(), `"ftp://h"`, `"http://h"`, `"https://h/p?q=1"`, "names no host", "want one of them", "line break", "host:port", "API 7", "timeouts")
	if _, err := New(Config{}); err == nil {
		t.Error("no URL, no error")
	}
	for _, proxy := range []string{"http://h:1", "h", ":1", "h:"} {
		if _, err := New(Config{URLs: []string{"http://h"}, Proxy: proxy}); err == nil {
			t.Errorf("proxy %q is taken", proxy)
		}
	}
}

func TestBase(t *testing.T) {
	for raw, want := range map[string][2]string{
		"http://h:8081":                    {"http://h:8081", "http://h:8081/apis/registry/v2"},
		"http://h:8081/":                   {"http://h:8081", "http://h:8081/apis/registry/v2"},
		"https://h/a//":                    {"https://h/a", "https://h/a/apis/registry/v2"},
		"http://u:p@h/apis/registry/v2":    {"http://h/apis/registry/v2", "http://h/apis/registry/v2"},
		"http://[::1]:8/apis/registry/v2/": {"http://[::1]:8/apis/registry/v2", "http://[::1]:8/apis/registry/v2"},
	} {
		for api, base := range want {
			c, err := New(Config{URLs: []string{raw}, API: API(api)})
			if err != nil {
				t.Fatal(err)
			}
			if c.urls[0] != base {
				t.Errorf("%s: %s, want %s", raw, c.urls[0], base)
			}
		}
	}
}

// TestWithoutCredentials holds that whatever the URL looks like, nothing of its credentials is left.
func TestWithoutCredentials(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scheme := rapid.SampledFrom([]string{"http://", "https://", "x://", ""}).Draw(t, "scheme")
		secret := rapid.StringMatching(`[a-z%:/@?# ]{0,9}SECRET[a-z%:/@?# ]{0,9}`).Draw(t, "secret")
		host := rapid.SampledFrom([]string{"h", "h:1", "[::1]:2/path", "h/a?b#c"}).Draw(t, "host")
		got := withoutCredentials(scheme + "u:" + secret + "@" + host)
		if scheme == "" && strings.Contains(secret, "//") {
			// What is before // is taken for a scheme then; all that a password can be is behind it.
			got = got[strings.Index(got, "//"):]
			if !strings.HasSuffix(got, host) {
				t.Fatalf("%q", got)
			}
			return
		}
		if got != scheme+host {
			t.Fatalf("%q, want %q", got, scheme+host)
		}
	})
	for _, raw := range []string{"http://h:1/p", "", "h", "//"} {
		if got := withoutCredentials(raw); got != raw {
			t.Errorf("%q became %q", raw, got)
		}
	}
}

func TestSubjects(t *testing.T) {
	for name, got := range map[string]string{
		"p.d.t-key":        TopicName(true)("p.d.t", "p.d.t.Key"),
		"p.d.t-value":      TopicName(false)("p.d.t", "p.d.t.Envelope"),
		"p.d.t.Envelope":   RecordName("t", "p.d.t.Envelope"),
		"t-p.d.t.Envelope": TopicRecordName("t", "p.d.t.Envelope"),
	} {
		if got != name {
			t.Errorf("%q, want %q", got, name)
		}
	}
}
