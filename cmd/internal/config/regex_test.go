package config

import (
	"strings"
	"testing"
)

// TestJavaPatterns compares with recorded answers of Java 17: Pattern.compile(p, CASE_INSENSITIVE).matcher(s).matches()
// for random patterns. What is not refused must agree.
func TestJavaPatterns(t *testing.T) {
	used := 0
	for line := range strings.Lines(string(unzip(t, "java-patterns.gz"))) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\x01")
		pattern, name, want := f[0], f[1], f[2]
		p, err := compileJava(pattern)
		if err != nil {
			continue
		}
		if want == "E" {
			// Java refuses two groups of one name and a { that begins no repetition after |; both are harmless.
			if strings.Count(pattern, "(?<n>") < 2 && !strings.Contains(pattern, "{") {
				t.Errorf("%q is accepted, Java refuses it", pattern)
			}
			continue
		}
		used++
		if got := p.MatchString(name); got != (want == "T") {
			t.Errorf("%q on %q: %v, Java says %s", pattern, name, got, want)
		}
	}
	if used < 500 {
		t.Errorf("only %d patterns compared", used)
	}
}

func TestPatternsRefused(t *testing.T) {
	for pattern, part := range map[string]string{
		`db\.(?!tmp_).*`:  "looking ahead or behind",
		`(?<=a)b`:         "looking ahead or behind",
		`(?>a|ab)c`:       "independent group",
		`(a)\1`:           "back reference",
		`a++`:             "possessive",
		`a{1,2}+`:         "possessive",
		`[a-z&&[^b]]`:     "intersection",
		`[a[bc]]`:         "class inside a class",
		`[äö]x`:           "alternative",
		`\u00e9`:          "not supported",
		`\bword`:          "word boundary",
		`(?x)a b`:         "only i, m and s",
		`(?U)a`:           "only i, m and s",
		`a{,3}`:           "begins no repetition",
		`[ab`:             "not closed",
		`(ab`:             "cannot be used",
		`*ab`:             "cannot be used",
		`\p{Alpha}`:       "cannot be used",
		"\xff":            "UTF-8",
		`tail\`:           "escapes nothing",
		`inventory\.\ä.*`: "means nothing",
		`a{1001}`:         "cannot be used",
		`[a-\Qx\E]`:       "not supported",
	} {
		_, err := compileJava(pattern)
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: %v, want it to contain %q", pattern, err, part)
		}
	}
}

func FuzzCompileJava(f *testing.F) {
	for _, s := range []string{`inventory\.orders.*`, `[^a-z\]]{2,}`, `\Qa.b\E+`, `(?i:ä)|(?<n>x)`, `(?-`, `[`, `\`} {
		f.Add(s, "inventory.orders")
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		p, err := compileJava(pattern)
		if err == nil {
			p.MatchString(name)
		}
	})
}
