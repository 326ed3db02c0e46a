package registry

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// artifactStore is as much of Apicurio Registry's core API as its converter uses, with the rules of its
// GroupsResourceImpl: a global id for each version, a content id for each text.
type artifactStore struct {
	mu       sync.Mutex
	versions []storedVersion
	texts    []string // content id - 1
}

type storedVersion struct {
	group, artifact string
	number          int
	global, content int64
	kind            string
}

func (a *artifactStore) add(group, artifact, text, kind string) storedVersion {
	content := slices.Index(a.texts, text)
	if content < 0 {
		a.texts = append(a.texts, text)
		content = len(a.texts) - 1
	}
	v := storedVersion{group, artifact, 1, int64(len(a.versions) + 101), int64(content + 1), kind}
	for _, other := range a.versions {
		if other.group == group && other.artifact == artifact {
			v.number++
		}
	}
	a.versions = append(a.versions, v)
	return v
}

func (a *artifactStore) find(group, artifact string, fits func(text string) bool) (storedVersion, bool) {
	for _, v := range slices.Backward(a.versions) {
		if v.group == group && v.artifact == artifact && fits(a.texts[v.content-1]) {
			return v, true
		}
	}
	return storedVersion{}, false
}

// canonical is AvroContentCanonicalizer: members of objects sorted, and the fields of the outermost record.
func canonical(t *testing.T, text string) string {
	var root map[string]any
	if err := json.Unmarshal([]byte(text), &root); err != nil {
		t.Error(err)
	}
	fields, _ := root["fields"].([]any)
	slices.SortFunc(fields, func(x, y any) int {
		return strings.Compare(x.(map[string]any)["name"].(string), y.(map[string]any)["name"].(string))
	})
	sorted, err := json.Marshal(root)
	if err != nil {
		t.Error(err)
	}
	return string(sorted)
}

func (a *artifactStore) handler(t *testing.T) http.Handler {
	tell := func(w http.ResponseWriter, v storedVersion) {
		_, _ = fmt.Fprintf(w, `{"name":null,"createdBy":"","groupId":%q,"id":%q,"version":"%d","type":%q,"globalId":%d,"contentId":%d,"state":"ENABLED","references":[]}`,
			v.group, v.artifact, v.number, v.kind, v.global, v.content)
	}
	missing := func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprintf(w, `{"error_code":404,"message":"No artifact with ID '%s' in group '%s' was found.","detail":"ArtifactNotFoundException: …","name":"ArtifactNotFoundException"}`, r.PathValue("artifact"), r.PathValue("group"))
	}
	any := func(string) bool { return true }
	mux := http.NewServeMux()
	mux.HandleFunc("POST /apis/registry/v2/groups/{group}/artifacts", func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.RawQuery; q != "ifExists=RETURN_OR_UPDATE&canonical=false" || r.Header.Get("X-Registry-ArtifactType") != "AVRO" {
			t.Errorf("query %s, headers %v", q, r.Header)
		}
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		group, artifact := r.PathValue("group"), r.Header.Get("X-Registry-ArtifactId")
		v, ok := a.find(group, artifact, func(t string) bool { return t == string(text) })
		if !ok {
			v = a.add(group, artifact, string(text), "AVRO")
		}
		tell(w, v)
	})
	mux.HandleFunc("POST /apis/registry/v2/groups/{group}/artifacts/{artifact}/meta", func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		fits := func(there string) bool { return there == string(text) }
		if r.URL.Query().Get("canonical") == "true" {
			fits = func(there string) bool { return canonical(t, there) == canonical(t, string(text)) }
		}
		v, ok := a.find(r.PathValue("group"), r.PathValue("artifact"), fits)
		if !ok {
			missing(w, r)
			return
		}
		tell(w, v)
	})
	mux.HandleFunc("GET /apis/registry/v2/groups/{group}/artifacts/{artifact}/meta", func(w http.ResponseWriter, r *http.Request) {
		v, ok := a.find(r.PathValue("group"), r.PathValue("artifact"), any)
		if !ok {
			missing(w, r)
			return
		}
		tell(w, v)
	})
	mux.HandleFunc("GET /apis/registry/v2/ids/globalIds/{id}", func(w http.ResponseWriter, r *http.Request) {
		for _, v := range a.versions {
			if fmt.Sprint(v.global) == r.PathValue("id") {
				_, _ = io.WriteString(w, a.texts[v.content-1])
				return
			}
		}
		missing(w, r)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		mux.ServeHTTP(w, r)
	})
}

func apicurioServer(t *testing.T) (*server, *artifactStore) {
	store := &artifactStore{}
	return serve(t, store.handler(t)), store
}

func TestApicurioRegisters(t *testing.T) {
	for _, what := range []struct {
		kind       IDKind
		group      string
		key, value int64
		again      int64 // the text of the key in another artifact
	}{
		{GlobalID, "", 101, 102, 103},
		{ContentID, "", 1, 2, 1},
		{GlobalID, "a/b", 101, 102, 103},
	} {
		t.Run(fmt.Sprint(what.kind, what.group), func(t *testing.T) {
			s, store := apicurioServer(t)
			c, logs := client(t, Config{URLs: []string{s.url}, API: Apicurio, AutoRegister: true, IDs: what.kind, Group: what.group})
			for _, schema := range []struct {
				subject, text string
				id            int64
			}{{"p.d.t-key", keyText, what.key}, {"p.d.t-value", valueText, what.value}, {"x/y-key", keyText, what.again}, {"p.d.t-key", keyText, what.key}} {
				if err := c.Resolve(t.Context(), Schema{Subject: schema.subject, Text: schema.text}); err != nil {
					t.Fatal(err)
				}
				if id, ok := c.ID(schema.subject, schema.text); !ok || id != schema.id {
					t.Errorf("%s: id %d, %t, want %d", schema.subject, id, ok, schema.id)
				}
			}
			if n := len(s.seen()); n != 3 {
				t.Errorf("%d requests, want 3", n)
			}
			if group := store.versions[0].group; group != what.group && (what.group != "" || group != "default") {
				t.Errorf("group %q", group)
			}
			// Another process gets the same ids and makes no version.
			second, _ := client(t, Config{URLs: []string{s.url + "/apis/registry/v2/"}, API: Apicurio, AutoRegister: true, IDs: what.kind, Group: what.group})
			second.Lookup(t.Context(), slices.Values([]Schema{{Subject: "p.d.t-value", Text: valueText}, {Subject: "unknown", Text: valueText}}))
			if id, ok := second.ID("p.d.t-value", valueText); !ok || id != what.value {
				t.Errorf("id %d, %t, want %d", id, ok, what.value)
			}
			if err := second.Resolve(t.Context(), Schema{Subject: "p.d.t-key", Text: keyText}); err != nil {
				t.Fatal(err)
			}
			if len(store.versions) != 3 || logs.Len() != 0 {
				t.Error(store.versions, logs.lines())
			}
		})
	}
}

func TestApicurioLooksUp(t *testing.T) {
	s, store := apicurioServer(t)
	c, _ := client(t, Config{URLs: []string{s.url}, API: Apicurio})
	err := c.Resolve(t.Context(), valueSchema())
	if refusal(t, err).Status != 404 {
		t.Error(err)
	}
	wantText(t, err.Error(), "does not have the schema", "apicurio.registry.auto-register=true", "No artifact with ID 'p.d.t-value'")

	// Of the same canonical form, but with the fields the other way round.
	store.add("default", "p.d.t-value", strings.Replace(valueText, `{"name":"id","type":"int"},{"name":"b","type":"string"}`, `{"name":"b","type":"string"},{"name":"id","type":"int"}`, 1), "AVRO")
	err = c.Resolve(t.Context(), valueSchema())
	if refusal(t, err).Status != 404 {
		t.Error(err)
	}
	wantText(t, err.Error(), "the nearest is version 1, but")

	// Of the same canonical form, with blanks.
	store.add("default", "p.d.t-value", strings.ReplaceAll(valueText, ",", ", "), "AVRO")
	if err := c.Resolve(t.Context(), valueSchema()); err != nil {
		t.Fatal(err)
	}
	if id, _ := c.ID("p.d.t-value", valueText); id != 102 {
		t.Errorf("id %d, want 102", id)
	}

	// Where schemas are registered the id is the one that registering gives, whether the lookup at the start comes first or not.
	c, _ = client(t, Config{URLs: []string{s.url}, API: Apicurio, AutoRegister: true})
	c.Lookup(t.Context(), slices.Values([]Schema{valueSchema()}))
	if id, ok := c.ID("p.d.t-value", valueText); ok {
		t.Errorf("id %d of a text that is only like it", id)
	}

	// The very text comes before what is only like it.
	store.add("default", "p.d.t-value", valueText, "AVRO")
	store.add("default", "p.d.t-value", strings.ReplaceAll(valueText, ",", ",  "), "AVRO")
	c, _ = client(t, Config{URLs: []string{s.url}, API: Apicurio})
	if err := c.Resolve(t.Context(), valueSchema()); err != nil {
		t.Fatal(err)
	}
	if id, _ := c.ID("p.d.t-value", valueText); id != 103 {
		t.Errorf("id %d, want 103", id)
	}
}

func TestApicurioFindsLatest(t *testing.T) {
	s, store := apicurioServer(t)
	c, _ := client(t, Config{URLs: []string{s.url}, API: Apicurio, UseLatest: true, IDs: ContentID})
	err := c.Resolve(t.Context(), valueSchema())
	if refusal(t, err).Status != 404 {
		t.Error(err)
	}
	wantText(t, err.Error(), "has no schema of subject", "apicurio.registry.auto-register=true")
	store.add("default", "p.d.t-value", otherText, "AVRO")
	err = c.Resolve(t.Context(), valueSchema())
	refusal(t, err)
	wantText(t, err.Error(), "version 1", "apicurio.registry.find-latest=false")
	store.add("default", "p.d.t-value", plainText, "AVRO")
	if err := c.Resolve(t.Context(), valueSchema()); err != nil {
		t.Fatal(err)
	}
	if id, _ := c.ID("p.d.t-value", valueText); id != 2 {
		t.Errorf("id %d, want 2", id)
	}
	if text, version, err := c.Latest(t.Context(), "p.d.t-value"); err != nil || text != plainText || version != 2 {
		t.Errorf("%q, %d, %v", text, version, err)
	}
	store.add("default", "j-value", "{}", "JSON")
	err = c.Resolve(t.Context(), Schema{Subject: "j-value", Text: valueText})
	refusal(t, err)
	wantText(t, err.Error(), "JSON, not AVRO")
}

func TestApicurioRefuses(t *testing.T) {
	for _, what := range []struct {
		name         string
		status       int
		body         string
		incompatible bool
		want         []string
	}{
		{
			"incompatible", 409, `{"causes":[{"description":"READER_FIELD_MISSING_DEFAULT_VALUE: n","context":"/fields/1"}],"message":"Incompatible artifact: p.d.t-value [AVRO], num of incompatible diffs: {1}","error_code":409,"name":"RuleViolationException"}`, true,
			[]string{"Incompatible artifact: p.d.t-value", "READER_FIELD_MISSING_DEFAULT_VALUE: n at /fields/1", "HTTP 409", `POST `, "/groups/g/artifacts/p.d.t-value/rules with"},
		},
		{"syntax", 409, `{"message":"Syntax violation for Avro artifact.","error_code":409,"name":"RuleViolationException"}`, false, []string{"Syntax violation", "rules"}},
		{"too large", 409, `{"message":"Maximum size of artifact version exceeded","error_code":409,"name":"LimitExceededException"}`, false, []string{"Maximum size", fmt.Sprintf("the schema has %d bytes", len(valueText)), "registry.limits.config.max-schema-size-bytes"}},
		{"too many", 409, `{"message":"Maximum number of artifacts exceeded","error_code":409,"name":"LimitExceededException"}`, false, []string{"Maximum number", "registry.limits.config"}},
		{"login", 401, ``, false, []string{"apicurio.auth.username"}},
		{"right", 403, `{"message":"User is not authorized","error_code":403,"name":"ForbiddenException"}`, false, []string{"not authorized", "apicurio.registry.auto-register=false"}},
		{"path", 404, "RESTEASY003210: Could not find resource", false, []string{"RESTEASY003210", "apicurio.registry.url"}},
	} {
		t.Run(what.name, func(t *testing.T) {
			s, _ := apicurioServer(t)
			s.always(what.status, what.body)
			c, logs := client(t, Config{URLs: []string{s.url}, API: Apicurio, AutoRegister: true, Group: "g"})
			err := c.Resolve(t.Context(), valueSchema())
			if r := refusal(t, err); r.Status != what.status || r.Incompatible() != what.incompatible {
				t.Errorf("%+v", r)
			}
			wantText(t, err.Error(), what.want...)
			if logs.Len() != 0 || len(s.seen()) != 1 {
				t.Error(len(s.seen()), logs.lines())
			}
		})
	}
}

// TestApicurioRace holds that a version that another client made at the same moment is no failure.
func TestApicurioRace(t *testing.T) {
	s, _ := apicurioServer(t)
	first := true
	s.answering(func(w http.ResponseWriter, _ *http.Request) bool {
		if !first {
			return false
		}
		first = false
		body(409, `{"message":"Version '2' already exists","error_code":409,"name":"VersionAlreadyExistsException"}`)(w)
		return true
	})
	c, _ := client(t, Config{URLs: []string{s.url}, API: Apicurio, AutoRegister: true})
	if err := c.Resolve(t.Context(), valueSchema()); err != nil {
		t.Error(err)
	}
}

func TestApicurioNames(t *testing.T) {
	s, _ := apicurioServer(t)
	for _, register := range []bool{true, false} {
		for _, name := range []string{"tä", "a%b", "a\nb"} {
			c, _ := client(t, Config{URLs: []string{s.url}, API: Apicurio, AutoRegister: register, UseLatest: len(name) == 2})
			err := c.Resolve(t.Context(), Schema{Subject: name, Text: valueText})
			if r := refusal(t, err); r.Status != 0 {
				t.Errorf("%+v", r)
			}
			wantText(t, err.Error(), "only ASCII")
		}
	}
	if n := len(s.seen()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

func TestApicurioOutage(t *testing.T) {
	s, _ := apicurioServer(t)
	faults := 0
	s.answering(func(w http.ResponseWriter, _ *http.Request) bool {
		if faults++; faults > 3 {
			return false
		}
		status([]int{500, 503, 429}[faults-1])(w)
		return true
	})
	c, logs := client(t, Config{URLs: []string{s.url}, API: Apicurio, AutoRegister: true})
	if err := c.Resolve(t.Context(), valueSchema()); err != nil {
		t.Fatal(err)
	}
	if logs.Len() != 2 {
		t.Error(logs.lines())
	}
	s.always(200, "<html>")
	err := c.Resolve(t.Context(), Schema{Subject: "x-key", Text: keyText})
	refusal(t, err)
	wantText(t, err.Error(), "not a schema registry", "apicurio.registry.url")
}
