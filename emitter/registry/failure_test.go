package registry

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// confluent409 is an answer of Confluent's registry 8.3.1.
const confluent409 = `Schema being registered is incompatible with an earlier schema for subject "p.d.t-value", details: ` +
	`[{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'n' at path '/fields/1' in the new schema has no default value and is missing in the old schema', additionalInfo:'n'}, ` +
	`{oldSchemaVersion: 2}, {oldSchema: '{"type":"record","name":"Key","doc":"it's {a} '}, {b"}'}, {validateFields: 'false', compatibility: 'BACKWARD'}]`

func TestRefusedAtOnce(t *testing.T) {
	for _, what := range []struct {
		name         string
		status       int
		body         string
		code         int
		incompatible bool
		want         []string
	}{
		{
			"incompatible, Confluent", 409, `{"error_code":40901,"message":` + jsonText(t, confluent409) + `}`, 40901, true,
			[]string{"refuses the schema of subject \"p.d.t-value\"", "The field 'n' at path", "{oldSchemaVersion: 2}, {validateFields: 'false', compatibility: 'BACKWARD'}]", "(HTTP 409, error 40901)", "/config/p.d.t-value", `{"compatibility":"NONE"}`},
		},
		{"incompatible, Karapace", 409, `{"error_code":409,"message":"Incompatible schema, compatibility_mode=BACKWARD. n"}`, 409, true, []string{"compatibility_mode=BACKWARD", "(HTTP 409);"}},
		{"incompatible, Apicurio", 409, `{"error_code":0,"message":"Incompatible artifact: x [AVRO]"}`, 0, true, []string{"Incompatible artifact", "(HTTP 409);"}},
		{"invalid", 422, `{"error_code":42201,"message":"Illegal character in: a-b"}`, 42201, false, []string{"Illegal character in: a-b (HTTP 422, error 42201)", "schema.name.adjustment.mode", "field.name.adjustment.mode"}},
		{"read-only", 422, `{"error_code":42205,"message":"Subject x is in read-only mode"}`, 42205, false, []string{"read-only mode", "/mode/p.d.t-value", `{"mode":"READWRITE"}`}},
		{"too large, Confluent", 422, `{"error_code":42209,"message":"Schema too large"}`, 42209, false, []string{fmt.Sprintf("the schema has %d bytes", len(valueText)), "max.message.bytes", "include.schema.comments"}},
		{"too large, Apicurio", 409, `{"error_code":0,"message":"Maximum size of artifact version exceeded"}`, 0, false, []string{"Maximum size", fmt.Sprintf("the schema has %d bytes", len(valueText)), "registry.limits.config.max-schema-size-bytes"}},
		{"too many, Apicurio", 409, `{"error_code":0,"message":"Maximum number of artifacts exceeded"}`, 0, false, []string{"registry.limits.config"}},
		{"too large, proxy", 413, "<html><head><title>413 Request Entity Too Large</title></head>", 0, false, []string{"413 Request Entity Too Large", fmt.Sprintf("the schema has %d bytes", len(valueText)), "client_max_body_size"}},
		{"bad request", 400, `{"error_code":400,"message":"Bad Request"}`, 400, false, []string{"Bad Request (HTTP 400)", "check that schema.registry.url is the URL of one"}},
		{"wrong login", 401, `{"error_code":401,"message":"Unauthorized"}`, 401, false, []string{"wants credentials", "basic.auth.user.info", "bearer.auth.token"}},
		{"no right", 403, `{"error_code":40301,"message":"User is denied operation Write"}`, 40301, false, []string{"denied operation", "basic.auth.user.info", "auto.register.schemas=false"}},
		{"wrong path", 404, "<html><title>Not  Found</title></html>", 0, false, []string{"a web page, Not Found", "schema.registry.url", "/apis/ccompat/v7"}},
		{"a JSON string", 404, `"Not Found"`, 0, false, []string{`"Not Found" (HTTP 404)`}},
		{"other method", 405, ``, 0, false, []string{"it gives no reason (HTTP 405)", "schema.registry.url"}},
		{"http to https", 400, "Client sent an HTTP request to an HTTPS server.", 0, false, []string{"Client sent an HTTP request to an HTTPS server (HTTP 400)", "write https:// instead of http:// in schema.registry.url"}},
		{"http to nginx", 400, "<html><head><title>400 The plain HTTP request was sent to HTTPS port</title></head>", 0, false, []string{"write https:// instead of http:// in schema.registry.url"}},
		{"proxy", 407, "", 0, false, []string{"HTTP 407", "proxy.host"}},
		{"501", 501, "", 0, false, []string{"HTTP 501", "check the path in schema.registry.url"}},
	} {
		t.Run(what.name, func(t *testing.T) {
			s, _ := fake(t)
			s.always(what.status, what.body)
			c, logs := client(t, auto(s.url))
			err := c.Resolve(t.Context(), valueSchema())
			r := refusal(t, err)
			if r.Status != what.status || r.Code != what.code || r.Incompatible() != what.incompatible || r.Subject != "p.d.t-value" && what.status != 401 || r.URL != s.url {
				t.Errorf("%+v", r)
			}
			wantText(t, err.Error(), append(what.want, s.url)...)
			noText(t, err.Error(), "{oldSchema:", "\n")
			if n := len(s.seen()); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
			if _, ok := c.ID("p.d.t-value", valueText); ok || logs.Len() != 0 {
				t.Error("an id, or a line in the log", logs.lines())
			}
		})
	}
}

func TestReasonIsShort(t *testing.T) {
	c, _ := client(t, auto("http://localhost"))
	long := c.reason(strings.Repeat("ü", 10_000))
	if len(long) > maxReason+len("…") || !utf8.ValidString(long) || !strings.HasSuffix(long, "ü…") {
		t.Errorf("%d bytes, ends in %q", len(long), long[len(long)-8:])
	}
	if got := c.reason("a\r\n b\x00\x1b[31mc\xff"); got != "a b [31mc\uFFFD" {
		t.Errorf("%q", got)
	}
	// A schema that the answer does not end: all from it on is left out.
	if got := c.reason("x {oldSchema: '" + strings.Repeat("y", 100)); got != "x" {
		t.Errorf("%q", got)
	}
}

func TestRefusedText(t *testing.T) {
	r := &Refused{Reason: "why.", Status: 409, Code: 40901, Advice: "do it", what: "what"}
	if got := r.Error(); got != "what: why (HTTP 409, error 40901); do it" {
		t.Error(got)
	}
	r = &Refused{Reason: "why", what: "what"}
	if got := fmt.Sprint(r); got != "what: why" {
		t.Error(got)
	}
}
