package config

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestJavaProperties compares with recorded answers of Java 17's java.util.Properties for random texts.
func TestJavaProperties(t *testing.T) {
	n := 0
	for line := range strings.Lines(string(unzip(t, "java-properties.gz"))) {
		in, out, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		text, err := base64.StdEncoding.DecodeString(in)
		if err != nil {
			t.Fatal(err)
		}
		want, err := base64.StdEncoding.DecodeString(out)
		if err != nil {
			t.Fatal(err)
		}
		entries := map[string]string{}
		err = parseProperties(string(text), func(k, v string) { entries[k] = v })
		got := "E"
		if err == nil {
			var b strings.Builder
			for _, k := range slices.Sorted(maps.Keys(entries)) {
				b.WriteString(k + "\x01" + entries[k] + "\x02")
			}
			got = b.String()
		}
		n++
		// A text that ends in a lone backslash gives an empty key in Java; it is left out here.
		if got != string(want) && strings.Replace(string(want), "\x01\x02", "", 1) != got {
			if _, lone := entries[""]; !lone {
				t.Errorf("%q:\n got %q\nwant %q (%v)", text, got, want, err)
			}
		}
	}
	if n != 1500 {
		t.Errorf("%d texts", n)
	}
}

func TestPropertiesErrors(t *testing.T) {
	for text, want := range map[string]string{
		"a=1\nb=sec\\u12":           "line 2",
		"# c\n\n\na=\\\n  se\\u12x": "line 4",
	} {
		err := parseProperties(text, func(string, string) {})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "se") && strings.Contains(err.Error(), "sec") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzProperties(f *testing.F) {
	for _, s := range []string{"a=b", "a\\\n b : c", "\\u00e9=\\ud83d\\ude00", "#x\\\ny", "a\\", "a=\\u1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_ = parseProperties(text, func(string, string) {})
	})
}
