package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Filter decides which tables are captured, as Debezium's database and table lists do: each item is a regular
// expression that must match the whole name, without regard to the case of ASCII letters. Safe for concurrent use.
type Filter struct {
	database list
	table    list
	text     string // of both lists
	builtin  bool   // capture the server's own databases too
}

// list is an include or exclude list; the zero value lets everything through.
type list struct {
	set     bool
	exclude bool
	items   []*regexp.Regexp
}

func (l list) allows(name string) bool {
	if !l.set {
		return true
	}
	in := slices.ContainsFunc(l.items, func(r *regexp.Regexp) bool { return r.MatchString(name) })
	return in != l.exclude
}

// Captured says whether changes of a table become events. It runs regular expressions: callers remember the answer.
func (f *Filter) Captured(database, table string) bool {
	if !f.builtin && builtin(database) {
		return false
	}
	return f.database.allows(database) && f.table.allows(database+"."+table)
}

// CapturedDatabase says whether tables of a database can be captured.
func (f *Filter) CapturedDatabase(database string) bool {
	return (f.builtin || !builtin(database)) && f.database.allows(database)
}

// Fingerprint is the same for filters that capture the same tables because they are written alike.
func (f *Filter) Fingerprint() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%t\n%s", f.builtin, f.text))
	return hex.EncodeToString(sum[:8])
}

// builtin says whether a database is MySQL's own.
func builtin(database string) bool {
	switch strings.ToLower(database) {
	case "mysql", "sys", "information_schema", "performance_schema":
		return true
	}
	return false
}

// parseList compiles an include or exclude list; empty text is no list.
func parseList(text string, exclude bool) (list, error) {
	if text == "" {
		return list{}, nil
	}
	parts, err := splitPatterns(text)
	if err != nil {
		return list{}, err
	}
	l := list{set: true, exclude: exclude}
	for _, p := range parts {
		r, err := compileJava(p)
		if err != nil {
			return list{}, fmt.Errorf("pattern %q: %w", p, err)
		}
		l.items = append(l.items, r)
	}
	return l, nil
}

// splitPatterns splits at commas that no backslash stands before; "\," becomes a comma. Blanks around an item go.
func splitPatterns(text string) ([]string, error) {
	var parts []string
	add := func(p string) {
		if p != "" {
			parts = append(parts, strings.ReplaceAll(strings.TrimSpace(p), `\,`, `,`))
		}
	}
	start := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			if i++; i == len(text) {
				return nil, errors.New("a backslash at the end escapes nothing")
			}
		case ',':
			add(text[start:i])
			start = i + 1
		}
	}
	add(text[start:])
	return parts, nil
}
