package registry

import (
	"net/http"
	"strings"
	"testing"
)

// TestIDGivenTwice holds that an id that comes again for other bytes is refused, and for the same bytes it is not.
func TestIDGivenTwice(t *testing.T) {
	for _, register := range []bool{true, false} {
		s, _ := fake(t)
		s.always(http.StatusOK, `{"id":7,"schema":"x"}`)
		c, _ := client(t, Config{URLs: []string{s.url}, AutoRegister: register})
		if err := c.Resolve(t.Context(), valueSchema()); err != nil {
			t.Fatal(err)
		}
		like := strings.Replace(valueText, `"type":"string"`, `"type":{"type":"string","connect.doc":"x"}`, 1)
		for _, text := range []string{valueText, like, strings.Replace(valueText, `,"connect.name"`, `,"connect.version":2,"connect.name"`, 1)} {
			if err := c.Resolve(t.Context(), Schema{Subject: "other", Text: text}); err != nil {
				t.Error(err)
			}
		}
		for _, text := range []string{otherText, keyText} {
			err := c.Resolve(t.Context(), Schema{Subject: "third", Text: text})
			r := refusal(t, err)
			if r.Incompatible() || r.Status != 0 {
				t.Errorf("%+v", r)
			}
			wantText(t, err.Error(), `of subject "third" the id 7`, `for another schema, of subject "p.d.t-value"`, s.url)
			if _, known := c.ID("third", text); known {
				t.Error("the id is used")
			}
		}
		if _, known := c.ID("p.d.t-value", valueText); !known {
			t.Error("the first one is gone")
		}
	}
}

// The latest schema is compared with the record's itself: two texts of ours may have it.
func TestLatestForSeveral(t *testing.T) {
	s, fake := fake(t)
	fake.SeedSchema("p.d.t-value", 1, 41, avroSchema(plainText))
	c, _ := client(t, Config{URLs: []string{s.url}, UseLatest: true})
	for _, text := range []string{valueText, strings.Replace(valueText, `"type":"string"`, `"type":{"type":"string","connect.doc":"x"}`, 1)} {
		if err := c.Resolve(t.Context(), Schema{Subject: "p.d.t-value", Text: text}); err != nil {
			t.Error(err)
		}
	}
}

func TestLayoutOf(t *testing.T) {
	same := []string{
		`{"type":"record","name":"V","fields":[{"name":"doc","type":["null","int"],"default":null},{"name":"b","type":{"type":"bytes","scale":2,"logicalType":"decimal"}}]}`,
		`{"type":"record","name":"V","doc":"a \"b\\","fields":[{"name":"doc","type":["null","int"],"default":{"x":[1,{"y":"}"}]}},{"name":"b","type":{"type":"bytes","scale":2,"connect.parameters":{"a":"b"},"logicalType":"decimal","connect.default":"u0001"}}]}`,
		`{"type":"record","name":"V","fields":[{"name":"doc","type":["null",{"type":"int","connect.doc":"x"}]},{"name":"b","type":{"type":"bytes","scale":2,"logicalType":"decimal"}}],"connect.version":1}`,
	}
	for _, text := range same[1:] {
		if layoutOf(text) != layoutOf(same[0]) {
			t.Errorf("another layout: %s", text)
		}
	}
	for _, change := range [][2]string{
		{`"name":"V"`, `"name":"W"`},
		{`"null","int"`, `"int","null"`},
		{`"int"`, `"long"`},
		{`"scale":2`, `"scale":3`},
		{`"name":"b"`, `"name":"c"`},
		{`,"logicalType":"decimal"`, ``},
		{`"name":"V"`, `"name":"V","connect.name":"x"`},
		{`]}`, `,{"name":"c","type":"int"}]}`},
	} {
		text := strings.Replace(same[0], change[0], change[1], 1)
		if text == same[0] || layoutOf(text) == layoutOf(same[0]) {
			t.Errorf("the same layout: %s", text)
		}
	}
}

// FuzzLayoutOf holds that any text has an end, and that what is behind a whole schema is no part of it.
func FuzzLayoutOf(f *testing.F) {
	for _, seed := range []string{valueText, "", "{", `{"a`, `{"a":`, "[,]", `"\`, `{"a":1}}`, "]", `{"doc":{`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		first := layoutOf(text)
		if layoutOf(strings.Clone(text)) != first {
			t.Error("two hashes of one text")
		}
		if layoutOf(valueText+text) != layoutOf(valueText) {
			t.Error("it reads beyond the end")
		}
	})
}
