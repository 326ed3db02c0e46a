package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
)

// parseProperties reads text as java.util.Properties.load does and calls set for each entry in order. It is written
// out here because what is read are existing files of Kafka Connect: every continuation, escape and blank must come
// out as it does there. An error names the line and never the text, which may hold a password.
func parseProperties(text string, set func(key, value string)) error {
	l := lines{rest: text, number: 1}
	for {
		line, ok := l.next()
		if !ok {
			return nil
		}
		// The key ends at the first =, : or blank without a backslash before it; of the separators that follow, one
		// = or : and the blanks around it go.
		end := len(line)
		for i := 0; i < len(line); i++ {
			if line[i] == '\\' {
				i++
			} else if strings.IndexByte("=: \t\f", line[i]) >= 0 {
				end = i
				break
			}
		}
		value := strings.TrimLeft(line[end:], " \t\f")
		if value != "" && (value[0] == '=' || value[0] == ':') {
			value = strings.TrimLeft(value[1:], " \t\f")
		}
		k, err := unescape(line[:end])
		if err == nil {
			value, err = unescape(value)
		}
		if err != nil {
			return fmt.Errorf("is not a properties file: line %d: %w", l.start, err)
		}
		set(k, value)
	}
}

// lines cuts text into logical lines: comments and blank lines go, lines that end in a backslash are joined.
type lines struct {
	rest   string
	number int // of the line that rest begins with
	start  int // of the first line of the last logical line
}

func (l *lines) next() (string, bool) {
	var joined strings.Builder
	for l.rest != "" {
		at := l.number
		line := l.physical()
		line = strings.TrimLeft(line, " \t\f")
		if joined.Len() == 0 {
			if line != "" && (line[0] == '#' || line[0] == '!') || line == "" {
				continue
			}
			l.start = at
		}
		slashes := len(line) - len(strings.TrimRight(line, `\`))
		continued := slashes%2 == 1 // a blank line that follows ends it
		if continued {
			line = line[:len(line)-1]
		}
		joined.WriteString(line)
		if !continued && joined.Len() > 0 {
			return joined.String(), true
		}
	}
	return joined.String(), joined.Len() > 0 // the text ends in a backslash
}

// physical takes one line off, without what ends it: \n, \r or \r\n.
func (l *lines) physical() string {
	l.number++
	i := strings.IndexAny(l.rest, "\r\n")
	if i < 0 {
		line := l.rest
		l.rest = ""
		return line
	}
	line, rest := l.rest[:i], l.rest[i+1:]
	if l.rest[i] == '\r' {
		rest = strings.TrimPrefix(rest, "\n")
	}
	l.rest = rest
	return line
}

// unescape resolves backslashes.
func unescape(s string) (string, error) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, nil
	}
	var b strings.Builder
	var units []uint16 // \uXXXX are UTF-16 units: two of them can be one character
	flush := func() {
		for _, r := range utf16.Decode(units) {
			b.WriteRune(r)
		}
		units = units[:0]
	}
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			flush()
			b.WriteByte(s[i])
			continue
		}
		if i++; i == len(s) {
			break
		}
		if s[i] == 'u' {
			if i+5 > len(s) {
				return "", errors.New(`\u must be followed by four hexadecimal digits`)
			}
			n, err := strconv.ParseUint(s[i+1:i+5], 16, 16)
			if err != nil {
				return "", errors.New(`\u must be followed by four hexadecimal digits`)
			}
			units = append(units, uint16(n))
			i += 4
			continue
		}
		flush()
		switch s[i] {
		case 't':
			b.WriteByte('\t')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 'f':
			b.WriteByte('\f')
		default:
			b.WriteByte(s[i])
		}
	}
	flush()
	return b.String(), nil
}
