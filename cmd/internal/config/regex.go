package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// compileJava compiles a Java regular expression as Pattern.compile(p, CASE_INSENSITIVE).matcher(s).matches() would
// use it. Java's syntax and RE2's overlap; what RE2 cannot do, or reads in another sense, is refused by name, so that
// no table is captured or left out by a misunderstanding. One difference stays: RE2 takes the long s (U+017F) and the
// Kelvin sign (U+212A) for an s and a k in another case, Java does not.
func compileJava(pattern string) (*regexp.Regexp, error) { return compileJavaFlags(pattern, "i") }

// compileJavaCase is compileJava for a pattern that tells the case of letters apart.
func compileJavaCase(pattern string) (*regexp.Regexp, error) { return compileJavaFlags(pattern, "") }

// compileJavaFlags is compileJava with flags: i for letters of any case, s for a dot that matches line breaks.
func compileJavaFlags(pattern, flags string) (*regexp.Regexp, error) {
	t, err := translate(pattern)
	if err != nil {
		return nil, err
	}
	r, err := regexp.Compile(`\A(?` + flags + `:` + t + `)\z`)
	if err != nil {
		return nil, fmt.Errorf("cannot be used: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return r, nil
}

// translate rewrites what differs and refuses what RE2 lacks.
func translate(p string) (string, error) {
	if !utf8.ValidString(p) {
		return "", errors.New("not UTF-8")
	}
	var b strings.Builder
	class := false
	classStart := 0
	for i := 0; i < len(p); {
		c, n := utf8.DecodeRuneInString(p[i:])
		rest := p[i:]
		switch {
		case c == '\\':
			step, err := escape(rest, class)
			if err != nil {
				return "", err
			}
			if strings.HasPrefix(rest, `\Q`) {
				// Quoted text stands for itself; QuoteMeta keeps non-ASCII letters as they are, so fold them below.
				quoted := rest[2:]
				end := strings.Index(quoted, `\E`)
				step = len(rest)
				if end >= 0 {
					quoted, step = quoted[:end], 2+end+2
				}
				for _, r := range quoted {
					writeLiteral(&b, r, regexp.QuoteMeta(string(r)))
				}
				i += step
				continue
			}
			b.WriteString(rest[:step])
			i += step
		case class:
			switch {
			case c == '[':
				return "", errors.New("a class inside a class ([a[b]]) is not supported; write one class")
			case strings.HasPrefix(rest, "&&"):
				return "", errors.New("an intersection of classes (&&) is not supported; write the class that is meant")
			case c == ']' && i > classStart:
				class = false
			case c > unicode.MaxASCII && cased(c):
				return "", fmt.Errorf("the letter %q in a class is not supported, since Java tells its case apart here; write an alternative, as in (%c|…)", c, c)
			}
			b.WriteString(rest[:n])
			i += n
		case c == '[':
			class = true
			b.WriteByte('[')
			i++
			if strings.HasPrefix(p[i:], "^") {
				b.WriteByte('^')
				i++
			}
			classStart = i
		case c == '(' && strings.HasPrefix(rest, "(?"):
			if err := group(rest); err != nil {
				return "", err
			}
			b.WriteString("(?")
			i += 2
		case c == '{':
			if len(rest) < 2 || rest[1] < '0' || rest[1] > '9' {
				return "", errors.New(`a { that begins no repetition must be written \{`)
			}
			b.WriteByte('{')
			i++
		case strings.ContainsRune("*+?}", c) && strings.HasPrefix(rest[1:], "+"):
			return "", fmt.Errorf("the possessive quantifier %q is not supported; leave the + out", rest[:2])
		default:
			writeLiteral(&b, c, rest[:n])
			i += n
		}
	}
	if class {
		return "", errors.New("a [ is not closed")
	}
	return b.String(), nil
}

// writeLiteral appends a literal; Java's CASE_INSENSITIVE folds ASCII letters only.
func writeLiteral(b *strings.Builder, c rune, text string) {
	if c > unicode.MaxASCII && cased(c) {
		b.WriteString("(?-i:" + text + ")")
		return
	}
	b.WriteString(text)
}

func cased(c rune) bool { return unicode.SimpleFold(c) != c }

// escape checks the escape that s begins with and returns its length.
func escape(s string, class bool) (int, error) {
	if len(s) < 2 {
		return 0, errors.New("a backslash at the end escapes nothing")
	}
	c, n := utf8.DecodeRuneInString(s[1:])
	refuse := func(what string) (int, error) {
		return 0, fmt.Errorf("%s (%s) is not supported", what, s[:1+n])
	}
	switch {
	case c >= '1' && c <= '9', c == 'k':
		return refuse("a back reference")
	case c == 'b', c == 'B':
		return refuse("a word boundary, on whose meaning for letters beyond ASCII Java's versions differ,")
	case c == '0', c == 'x', c == 'u', c == 'N', c == 'c', c == 'e':
		return refuse("this way to name a character")
	case strings.ContainsRune("hHRXGZvV", c), c == 'Q' && class:
		return refuse("this escape")
	case c > unicode.MaxASCII:
		return 0, fmt.Errorf("the escape %s means nothing; leave the backslash out", s[:1+n])
	}
	if (c == 'p' || c == 'P') && strings.HasPrefix(s[2:], "{") {
		end := strings.IndexByte(s, '}')
		if end < 0 {
			return 0, fmt.Errorf("the escape %s is not closed", s[:3])
		}
		return end + 1, nil
	}
	return 1 + n, nil
}

// group checks what follows "(?" at the beginning of s.
func group(s string) error {
	t := s[2:]
	switch {
	case strings.HasPrefix(t, "="), strings.HasPrefix(t, "!"), strings.HasPrefix(t, "<="), strings.HasPrefix(t, "<!"):
		return errors.New("looking ahead or behind, as in (?!…), is not supported; name the tables, or use the exclude list")
	case strings.HasPrefix(t, ">"):
		return errors.New("an independent group (?>…) is not supported; write (?:…)")
	case strings.HasPrefix(t, "<"), strings.HasPrefix(t, ":"):
		return nil
	}
	end := strings.IndexAny(t, ":)")
	if end < 0 || strings.Trim(t[:end], "ims-") != "" {
		return errors.New("of the flags in (?…) only i, m and s are supported")
	}
	return nil
}
