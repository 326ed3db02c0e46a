package config

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// captured is every connector configuration that Debezium 3.6.1 was captured with, by the name of the capture.
func captured(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal(unzip(t, "captured.json.gz"), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func unzip(t *testing.T, name string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(bufio.NewReader(f))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if _, err := bufio.NewReader(z).WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return []byte(b.String())
}

// keysOf lists the keys that an error of Load names.
func keysOf(err error) []string {
	if err == nil {
		return nil
	}
	var list []string
	var walk func(error)
	walk = func(err error) {
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range joined.Unwrap() {
				walk(e)
			}
			return
		}
		var ke *KeyError
		if errors.As(err, &ke) {
			list = append(list, ke.Key)
		} else {
			list = append(list, "no KeyError: "+err.Error())
		}
	}
	walk(err)
	slices.Sort(list)
	return list
}

// TestCaptured loads every captured configuration: it works unchanged, or is refused by the names of keys that are not
// built yet, and by nothing else.
func TestCaptured(t *testing.T) {
	const signals = "notification.enabled.channels signal.data.collection"
	refused := map[string]string{
		"blocking-snapshot":           signals,
		"file-stream":                 "connector.class",
		"incremental-control":         signals,
		"incremental-insert-delete":   signals,
		"incremental-kafka-signal":    signals + " signal.enabled.channels",
		"incremental-read-only":       "notification.enabled.channels signal.enabled.channels",
		"incremental-snapshot":        signals,
		"incremental-window":          signals,
		"metrics":                     "signal.data.collection",
		"smt-outbox/string-converter": "key.converter transforms value.converter",
		"snapshot-initial":            "notification.enabled.channels",
	}
	all := captured(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "connector.json")
			if err := os.WriteFile(path, all[name], 0o600); err != nil {
				t.Fatal(err)
			}
			want := strings.Fields(refused[name])
			if strings.HasPrefix(name, "smt-") && len(want) == 0 {
				want = []string{"transforms"}
			}
			slices.Sort(want)

			c, warnings, err := LoadTail(path, Options{})
			if diff := cmp.Diff(want, append([]string{}, keysOf(err)...)); diff != "" && len(want)+len(keysOf(err)) > 0 {
				t.Fatalf("refused keys of tail (-want +got):\n%s\n%v", diff, err)
			}
			for _, w := range warnings {
				if strings.Contains(w.Text, "unknown") {
					t.Errorf("a captured key is unknown: %v", w)
				}
			}
			if err == nil && (c.Prefix == "" || c.ServerID < 1<<31) {
				t.Errorf("prefix %q, server id %d", c.Prefix, c.ServerID)
			}

			cfg, err := Load([]string{"testdata/distributed.properties", path}, Options{})
			if !strings.Contains(string(all[name]), `"name"`) && name != "file-stream" {
				want = append(want, "name")
				slices.Sort(want)
			}
			if diff := cmp.Diff(want, append([]string{}, keysOf(err)...)); diff != "" && len(want)+len(keysOf(err)) > 0 {
				t.Fatalf("refused keys of run (-want +got):\n%s\n%v", diff, err)
			}
			if err != nil {
				return
			}
			got := cfg.Connectors[0]
			if strings.HasPrefix(name, "avro-") {
				checkCapturedAvro(t, name, got, cfg.Warnings)
			} else if got.Key != (Converter{Schemas: true, ReplaceNullWithDefault: true}) {
				t.Errorf("key converter %+v", got.Key)
			}
		})
	}
}

// checkCapturedAvro checks what the captures with Avro have in common.
func checkCapturedAvro(t *testing.T, name string, c *Connector, warnings []Warning) {
	t.Helper()
	for _, converter := range []Converter{c.Key, c.Value} {
		want := Converter{Avro: confluentDefaults("http://localhost:8081")}
		if diff := cmp.Diff(want, converter); diff != "" {
			t.Errorf("converter (-want +got):\n%s", diff)
		}
	}
	want := "avro"
	if name == "avro-names-unicode" {
		want = "avro_unicode"
	}
	if c.FieldNames != want {
		t.Errorf("field names %s, want %s", c.FieldNames, want)
	}
	for _, w := range warnings {
		if strings.Contains(w.Key, "converter") && !strings.Contains(w.Key, "enhanced.avro.schema.support") {
			t.Errorf("warning %v", w)
		}
	}
}

// TestLenient: what is merely not built is ignored with a warning; what security hangs on is not.
func TestLenient(t *testing.T) {
	all := captured(t)
	for _, name := range []string{"incremental-window", "smt-route/regex"} {
		path := filepath.Join(t.TempDir(), "c.json")
		if err := os.WriteFile(path, all[name], 0o600); err != nil {
			t.Fatal(err)
		}
		c, warnings, err := LoadTail(path, Options{Lenient: true})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		n := 0
		for _, w := range warnings {
			if strings.Contains(w.Text, "ignored because of --lenient") {
				n++
			}
		}
		if n == 0 || c == nil {
			t.Errorf("%s: no warning", name)
		}
	}
	path := write(t, map[string]string{"c.json": connectorJSON("driver.trustCertificateKeyStoreUrl=/t.jks", "driver.trustCertificateKeyStorePassword=x")})[0]
	_, _, err := LoadTail(path, Options{Lenient: true})
	if got := len(keysOf(err)); got != 2 {
		t.Errorf("%d of 2 keys that security hangs on are still refused: %v", got, err)
	}
}
