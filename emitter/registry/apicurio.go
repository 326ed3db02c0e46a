package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/tidemark-cdc/tidemark/schema/avro"
)

// apicurio speaks to one instance of Apicurio's core API, version 2, with the requests of its converter
// (io.apicurio.registry.resolver.DefaultSchemaResolver): a subject is an artifact of one group.
type apicurio struct {
	base                  string
	user, password, token string
	group                 string
	ids                   IDKind
	exact                 bool // what is only like a text is not taken for it
	web                   *http.Client
}

// metadata is what of ArtifactMetaData and VersionMetaData is needed.
type metadata struct {
	GlobalID  int64  `json:"globalId"`
	ContentID int64  `json:"contentId"`
	Version   string `json:"version"`
	Type      string `json:"type"`
}

func (m metadata) id(kind IDKind) (int64, error) {
	if kind == ContentID {
		return goodID(m.ContentID, nil)
	}
	return goodID(m.GlobalID, nil)
}

// register returns the version with this very text, or makes it.
func (a *apicurio) register(ctx context.Context, subject, text string) (int64, error) {
	if err := artifactName(subject); err != nil {
		return 0, err
	}
	var m metadata
	err := a.post(ctx, a.path("groups", a.group, "artifacts"), "ifExists=RETURN_OR_UPDATE&canonical=false", text, http.Header{
		"X-Registry-ArtifactId":   {subject},
		"X-Registry-ArtifactType": {"AVRO"},
	}, &m)
	if err != nil {
		return 0, err
	}
	return m.id(a.ids)
}

// lookup looks for the text, then, unless schemas are registered, as the converter does for its canonical form: where they
// are, the id must be the one that registering gives. In the canonical form the fields of the outermost
// record are sorted by name, so it may find a schema whose bytes are others than ours.
func (a *apicurio) lookup(ctx context.Context, subject, text string) (int64, error) {
	if err := artifactName(subject); err != nil {
		return 0, err
	}
	var m metadata
	path := a.path("groups", a.group, "artifacts", subject, "meta")
	err := a.post(ctx, path, "canonical=false", text, nil, &m)
	if err == nil {
		return m.id(a.ids)
	}
	if got, ok := errors.AsType[*answer](err); !ok || got.status != http.StatusNotFound || a.exact {
		return 0, err
	}
	if again := a.post(ctx, path, "canonical=true", text, nil, &m); again != nil {
		return 0, again
	}
	theirs, err := a.text(ctx, m.GlobalID)
	if err != nil {
		return 0, err
	}
	if why := differs(theirs, text); why != "" {
		return 0, &answer{status: http.StatusNotFound, message: fmt.Sprintf("the nearest is version %s, but %s", m.Version, why)}
	}
	return m.id(a.ids)
}

func (a *apicurio) latest(ctx context.Context, subject string) (latest, error) {
	if err := artifactName(subject); err != nil {
		return latest{}, err
	}
	var m metadata
	if err := a.get(ctx, a.path("groups", a.group, "artifacts", subject, "meta"), &m); err != nil {
		return latest{}, err
	}
	if m.Type != "" && m.Type != "AVRO" {
		return latest{}, &answer{message: fmt.Sprintf("the artifact is of type %s, not AVRO", m.Type)}
	}
	id, err := m.id(a.ids)
	if err != nil {
		return latest{}, err
	}
	text, err := a.text(ctx, m.GlobalID)
	if err != nil {
		return latest{}, err
	}
	version, err := strconv.Atoi(m.Version)
	if err != nil {
		version = 0 // versions may have names
	}
	return latest{id, version, text}, nil
}

func (a *apicurio) text(ctx context.Context, globalID int64) (string, error) {
	var raw []byte
	err := a.get(ctx, a.path("ids", "globalIds", strconv.FormatInt(globalID, 10)), &raw)
	return string(raw), err
}

// artifactName is Apicurio's rule for names, asked before such a name stands in a header.
func artifactName(name string) error {
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' || r == '%' }) {
		return &answer{message: "Apicurio takes no % and only ASCII in the name of an artifact"}
	}
	return nil
}

func (a *apicurio) path(parts ...string) string {
	var path strings.Builder
	path.WriteString(a.base)
	for _, p := range parts {
		path.WriteString("/" + url.PathEscape(p))
	}
	return path.String()
}

func (a *apicurio) get(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody)
	if err != nil {
		return err
	}
	return a.do(req, into)
}

func (a *apicurio) post(ctx context.Context, path, query, text string, header http.Header, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, path+"?"+query, strings.NewReader(text))
	if err != nil {
		return err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	return a.do(req, into)
}

func (a *apicurio) do(req *http.Request, into any) error {
	req.Header.Set("User-Agent", userAgent)
	switch {
	case a.token != "":
		req.Header.Set("Authorization", "Bearer "+a.token)
	case a.user != "":
		req.SetBasicAuth(a.user, a.password)
	}
	resp, err := a.web.Do(req)
	if err != nil {
		return err
	}
	raw, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if resp.StatusCode >= 300 {
		return ofApicurio(resp.StatusCode, raw)
	}
	if text, ok := into.(*[]byte); ok {
		*text = raw
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	return nil
}

// ofApicurio reads the Error of Apicurio's API. Several exceptions share the status 409, and one of them the rules for
// compatibility, syntax and references.
func ofApicurio(status int, raw []byte) *answer {
	var said struct {
		Message string `json:"message"`
		Name    string `json:"name"`
		Causes  []struct {
			Description string `json:"description"`
			Context     string `json:"context"`
		} `json:"causes"`
	}
	a := &answer{status: status, message: string(bytes.TrimSpace(raw))}
	if json.Unmarshal(raw, &said) != nil || said.Message == "" {
		a.foreign = true
		return a
	}
	a.message = said.Message
	for _, c := range said.Causes {
		if c.Description != "" && !strings.Contains(a.message, c.Description) {
			a.message += fmt.Sprintf("; %s at %s", c.Description, c.Context)
		}
	}
	a.incompatible = status == http.StatusConflict && said.Name == "RuleViolationException" &&
		strings.HasPrefix(said.Message, "Incompatible artifact")
	a.tooLarge = a.isTooLarge()
	a.race = said.Name == "VersionAlreadyExistsException" // the registry numbers versions itself
	return a
}

// differs says why bytes of our schema are none of theirs; empty if they are.
func differs(theirs, ours string) string {
	why, err := avro.SameBytes(theirs, ours)
	if err != nil {
		return "it cannot be compared with the record's schema: " + err.Error()
	}
	if why == "" {
		return ""
	}
	return why + " (the first is the registry's, the second the record's)"
}
