package it

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Registry is a real schema registry (Apicurio, with its core API and the Confluent-compatible one) in a process of its own. Its store
// is a file, so that a restart, also after SIGKILL, keeps schemas, ids and levels. Processes under test reach it through Proxy.
type Registry struct {
	Port    int
	Proxy   *Proxy
	command []string
	process *Process
}

// StartRegistry starts an empty registry with a global level of compatibility (Confluent's default is "BACKWARD") and waits until it
// answers.
func StartRegistry(t testing.TB, level string) *Registry {
	t.Helper()
	r := launchRegistry(t)
	r.wait(t)
	r.SetLevel(t, "", level)
	return r
}

// launchRegistry starts an empty registry without waiting for it.
func launchRegistry(t testing.TB) *Registry {
	t.Helper()
	r := &Registry{Port: freePort(t)}
	r.Proxy = NewProxy(t, fmt.Sprintf("127.0.0.1:%d", r.Port))
	// What was committed is on the disk before it is answered (H2's default is half a second later), so that a kill takes nothing back.
	store := "jdbc:h2:file:" + filepath.Join(t.TempDir(), "registry") + ";WRITE_DELAY=0"
	r.command = []string{
		"java", "-Xmx384m", "-XX:TieredStopAtLevel=1", "-Dquarkus.http.host=127.0.0.1", fmt.Sprintf("-Dquarkus.http.port=%d", r.Port),
		"-Dquarkus.datasource.jdbc.url=" + store, "-Dquarkus.log.level=WARN", "-jar", Image(t, "apicurio"),
	}
	r.process = Start(t, "registry", r.command...)
	return r
}

// URL is the Confluent-compatible API as processes under test reach it.
func (r *Registry) URL() string { return fmt.Sprintf("http://%s/apis/ccompat/v7", r.Proxy.Addr()) }

// ApicurioURL is the core API's registry as processes under test reach it.
func (r *Registry) ApicurioURL() string {
	return fmt.Sprintf("http://%s/apis/registry/v2", r.Proxy.Addr())
}

// Kill ends the registry with SIGKILL.
func (r *Registry) Kill() { r.process.Kill() }

// Stop ends the registry with SIGTERM and waits for it.
func (r *Registry) Stop(t testing.TB) {
	t.Helper()
	r.process.Signal(t, syscall.SIGTERM)
	r.process.Wait(t, 30*time.Second)
}

// Start starts a registry that was stopped or killed again, on the same port and store, and waits until it answers.
func (r *Registry) Start(t testing.TB) {
	t.Helper()
	r.process = Start(t, "registry", r.command...)
	r.wait(t)
}

func (r *Registry) wait(t testing.TB) {
	t.Helper()
	eventually(t, 90*time.Second, "the registry", func() error {
		if r.process.Ended() {
			t.Fatalf("the registry ended; it said last:\n%s", tail(r.process.Output(), 20))
		}
		_, _, err := r.request(http.MethodGet, "/apis/ccompat/v7/config", nil)
		return err
	})
}

// request makes a request directly, past the proxy, and returns status and body.
func (r *Registry) request(method, path string, body any) (int, []byte, error) {
	var sent io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		sent = bytes.NewReader(b)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, method, fmt.Sprintf("http://127.0.0.1:%d%s", r.Port, path), sent)
	if err != nil {
		return 0, nil, err
	}
	if body != nil {
		q.Header.Set("Content-Type", "application/vnd.schemaregistry.v1+json")
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, nil, err
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	return a.StatusCode, b, err
}

// get reads the answer of a GET, which has to be 200, into into.
func (r *Registry) get(t testing.TB, path string, into any) {
	t.Helper()
	status, body, err := r.request(http.MethodGet, path, nil)
	if err != nil || status != http.StatusOK {
		t.Fatalf("registry: GET %s: %d %s (%v)", path, status, body, err)
	}
	if err := json.Unmarshal(body, into); err != nil {
		t.Fatalf("registry: GET %s: %v in %s", path, err, body)
	}
}

// SetLevel sets the level of compatibility of a subject, or the global one (""). "NONE" of a subject takes its level away, and then
// the global one holds: that is how Apicurio does it.
func (r *Registry) SetLevel(t testing.TB, subject, level string) {
	t.Helper()
	path := "/apis/ccompat/v7/config"
	if subject != "" {
		path += "/" + url.PathEscape(subject)
	}
	status, body, err := r.request(http.MethodPut, path, map[string]string{"compatibility": level})
	if err == nil && level == "NONE" && status == http.StatusNotFound && bytes.Contains(body, []byte("No rule named")) {
		return // it takes the level away, and there was none
	}
	if err != nil || status != http.StatusOK {
		t.Fatalf("registry: PUT %s: %d %s (%v)", path, status, body, err)
	}
}

// Registered is a version of a subject.
type Registered struct {
	Subject string
	Version int
	ID      int64 // of the Confluent-compatible API
	Schema  string
}

// Versions is every version of every subject, by subject and version.
func (r *Registry) Versions(t testing.TB) []Registered {
	t.Helper()
	var subjects []string
	r.get(t, "/apis/ccompat/v7/subjects", &subjects)
	slices.Sort(subjects)
	var all []Registered
	for _, s := range subjects {
		path := "/apis/ccompat/v7/subjects/" + url.PathEscape(s) + "/versions"
		var versions []int
		r.get(t, path, &versions)
		slices.Sort(versions)
		for _, v := range versions {
			var one Registered
			r.get(t, fmt.Sprintf("%s/%d", path, v), &one)
			all = append(all, one)
		}
	}
	return all
}

// Of are the versions of one subject.
func Of(all []Registered, subject string) []Registered {
	var of []Registered
	for _, v := range all {
		if v.Subject == subject {
			of = append(of, v)
		}
	}
	return of
}

// Schema is the text of the schema with an id of the Confluent-compatible API.
func (r *Registry) Schema(t testing.TB, id int64) string {
	t.Helper()
	var v struct{ Schema string }
	r.get(t, fmt.Sprintf("/apis/ccompat/v7/schemas/ids/%d", id), &v)
	return v.Schema
}

// GlobalSchema is the text of the schema with a global id of Apicurio's core API.
func (r *Registry) GlobalSchema(t testing.TB, id int64) string {
	t.Helper()
	status, body, err := r.request(http.MethodGet, fmt.Sprintf("/apis/registry/v2/ids/globalIds/%d", id), nil)
	if err != nil || status != http.StatusOK {
		t.Fatalf("registry: global id %d: %d %s (%v)", id, status, body, err)
	}
	return strings.TrimSpace(string(body))
}

// AvroConverter are the settings of a connector whose keys and values go through a converter with this registry: "confluent" is
// Confluent's, "apicurio" Apicurio's with its global ids in 8 bytes, "apicurio4" the same with as-confluent, in 4, and "content4" with
// content ids in 4, which are those of the Confluent-compatible API.
func (r *Registry) AvroConverter(t testing.TB, kind string) Properties {
	t.Helper()
	converter, settings := "io.confluent.connect.avro.AvroConverter", Properties{"schema.registry.url": r.URL()}
	switch kind {
	case "confluent":
	case "apicurio", "apicurio4", "content4":
		converter = "io.apicurio.registry.utils.converter.AvroConverter"
		settings = Properties{
			"apicurio.registry.url":             r.ApicurioURL(),
			"apicurio.registry.auto-register":   "true",
			"apicurio.registry.headers.enabled": "false", // the default, true, puts the ids into headers
		}
		if kind != "apicurio" {
			settings["apicurio.registry.as-confluent"] = "true"
		}
		if kind == "content4" {
			settings["apicurio.registry.use-id"] = "contentId"
		}
	default:
		t.Fatalf("no converter %q", kind)
	}
	p := Properties{}
	for _, part := range []string{"key.converter", "value.converter"} {
		p[part] = converter
		for key, v := range settings {
			p[part+"."+key] = v
		}
	}
	return p
}
