package emitter

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf16"
)

// Naming says how topics are named. The names of a table's schemas begin with that of its topic.
type Naming struct {
	// Class is topic.naming.strategy without its package io.debezium.schema: Default… names the database, Schema… does
	// not, since MySQL has no schemas; …Regex… merges tables into one topic, …Unicode… writes illegal characters as
	// their codes. "": DefaultTopicNamingStrategy.
	Class       string
	Delimiter   string // topic.delimiter; "": a dot
	Transaction string // topic.transaction; "": transaction

	// Of the strategies with a Regex. The patterns match a whole name and need no anchors.
	Regex          *regexp.Regexp // topic.regex
	Replacement    string         // topic.replacement, in Java's form: $1
	UniqueKey      bool           // topic.key.enforce.uniqueness: the key says which table it is from
	KeyField       string         // topic.key.field.name; "": __dbz__physicalTableIdentifier
	KeyRegex       *regexp.Regexp // topic.key.field.regex; nil: the topic's name before Regex
	KeyReplacement string         // topic.key.field.replacement

	HeartbeatPrefix string // topic.heartbeat.prefix; "": __debezium-heartbeat
	HeartbeatTopic  string // topic.heartbeat.name, the whole name; "": the prefix and topic.prefix
}

// Writes says of a topic that a connector with this prefix may write to it: of each one that it writes to and, where a pattern makes
// the names, of all but Kafka's own.
func (n Naming) Writes(prefix, topic string) bool {
	r, err := newNaming(n, prefix)
	if err != nil {
		return false // and there is no connector
	}
	return topic == r.schemaChangeTopic() || topic == r.heartbeatTopic() || topic == r.transactionTopic() ||
		strings.HasPrefix(topic, r.sanitize(prefix+r.Delimiter)) || r.route != nil && !strings.HasPrefix(topic, "__")
}

// longestTopic is the longest name that Kafka allows.
const longestTopic = 249

// naming is a [Naming] made ready.
type naming struct {
	Naming
	prefix   string
	database bool // the database is in the name
	unicode  bool
	route    *rewrite // of Regex
	origin   *rewrite // of KeyRegex
}

func newNaming(n Naming, prefix string) (*naming, error) {
	for _, d := range []struct {
		setting *string
		value   string
	}{
		{&n.Class, "DefaultTopicNamingStrategy"},
		{&n.Delimiter, "."},
		{&n.Transaction, "transaction"},
		{&n.KeyField, "__dbz__physicalTableIdentifier"},
		{&n.HeartbeatPrefix, "__debezium-heartbeat"},
	} {
		if *d.setting == "" {
			*d.setting = d.value
		}
	}
	r := &naming{Naming: n, prefix: prefix}
	var kind string
	if rest, ok := strings.CutPrefix(n.Class, "Default"); ok {
		r.database, kind = true, rest
	} else {
		kind, _ = strings.CutPrefix(n.Class, "Schema")
	}
	var err error
	switch kind {
	case "TopicNamingStrategy":
	case "UnicodeTopicNamingStrategy":
		r.unicode = true
	case "RegexTopicNamingStrategy":
		if n.Regex == nil {
			return nil, fmt.Errorf("topic.naming.strategy is %s, which needs topic.regex", n.Class)
		}
		if r.route, err = newRewrite(n.Regex, n.Replacement); err != nil {
			return nil, fmt.Errorf("topic.replacement: %w", err)
		}
		if n.UniqueKey && n.KeyRegex != nil {
			if r.origin, err = newRewrite(n.KeyRegex, n.KeyReplacement); err != nil {
				return nil, fmt.Errorf("topic.key.field.replacement: %w", err)
			}
		}
	default:
		return nil, fmt.Errorf("topic.naming.strategy io.debezium.schema.%s is not one of the connector's", n.Class)
	}
	return r, nil
}

// raw is the name of a table's topic before illegal characters are replaced.
func (n *naming) raw(database, table string) string {
	name := n.prefix
	if n.database && !blank(database) {
		name += n.Delimiter + database
	}
	if !blank(table) {
		name += n.Delimiter + table
	}
	return name
}

// blank says whether Java's String.trim leaves nothing of s. Debezium leaves such parts of a name out.
func blank(s string) bool { return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' }) == "" }

// table is the topic of a table's events.
func (n *naming) table(database, table string) (string, error) {
	name := n.sanitize(n.raw(database, table))
	if n.route == nil {
		return name, nil
	}
	routed, ok := n.route.apply(name)
	if !ok || routed == "" {
		return name, nil
	}
	if n.sanitize(routed) != routed {
		return "", fmt.Errorf("topic.replacement %q makes %q of the topic %s, which is no name that Kafka allows: letters, "+
			"digits, dot, hyphen and underscore, at most %d", n.Replacement, routed, name, longestTopic)
	}
	return routed, nil
}

// keyField is the field that a strategy with a Regex adds to record keys, so that rows of different tables have
// different ones; ok is false for the others.
func (n *naming) keyField(database, table string) (name, value string, ok bool) {
	if n.route == nil || !n.UniqueKey {
		return "", "", false
	}
	value = n.raw(database, table)
	if n.origin != nil {
		if v, ok := n.origin.apply(value); ok {
			value = v
		}
	}
	return n.KeyField, value, true
}

func (n *naming) schemaChangeTopic() string { return n.prefix }

func (n *naming) transactionTopic() string { return n.prefix + n.Delimiter + n.Transaction }

func (n *naming) heartbeatTopic() string {
	if n.HeartbeatTopic != "" {
		return n.HeartbeatTopic
	}
	return n.HeartbeatPrefix + n.Delimiter + n.prefix
}

// sanitize replaces every UTF-16 unit outside [A-Za-z0-9._-] and cuts the name to Kafka's limit, as
// io.debezium.schema.AbstractTopicNamingStrategy.sanitizedTopicName does. The Unicode strategies escape _, too.
func (n *naming) sanitize(name string) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(name)) {
		switch {
		case u >= 'a' && u <= 'z', u >= 'A' && u <= 'Z', u >= '0' && u <= '9', u == '.', u == '-', u == '_' && !n.unicode:
			b.WriteByte(byte(u))
		case n.unicode:
			b.WriteString(escapeUnit(u))
		default:
			b.WriteByte('_')
		}
	}
	name = b.String()
	return name[:min(len(name), longestTopic)]
}

// rewrite is what Java's Matcher.matches and then replaceFirst make of a text: the pattern has to match all of it, and
// what is replaced is the first thing that it finds in it.
type rewrite struct {
	whole, part *regexp.Regexp
	parts       []replacementPart
}

// replacementPart is literal text, or a group if literal is empty.
type replacementPart struct {
	literal string
	group   int
}

func newRewrite(r *regexp.Regexp, replacement string) (*rewrite, error) {
	whole, err := regexp.Compile(`\A(?:` + r.String() + `)\z`)
	if err != nil {
		return nil, err
	}
	parts, err := parseReplacement(r, replacement)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", replacement, err)
	}
	return &rewrite{whole: whole, part: r, parts: parts}, nil
}

// parseReplacement reads a replacement as Java's Matcher does: \ takes away the meaning of what follows, $1 and ${name}
// are groups. Of several digits as many count as name a group.
func parseReplacement(r *regexp.Regexp, s string) ([]replacementPart, error) {
	var parts []replacementPart
	var literal strings.Builder
	group := func(n int) {
		if literal.Len() > 0 {
			parts = append(parts, replacementPart{literal: literal.String()})
			literal.Reset()
		}
		parts = append(parts, replacementPart{group: n})
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			if i++; i == len(s) {
				return nil, errors.New("the backslash at the end escapes nothing")
			}
			literal.WriteByte(s[i])
		case c != '$':
			literal.WriteByte(c)
		case i+1 < len(s) && s[i+1] == '{':
			name, _, closed := strings.Cut(s[i+2:], "}")
			n := -1
			if closed && name != "" {
				n = r.SubexpIndex(name)
			}
			if n < 0 {
				return nil, fmt.Errorf("${%s} names no group of the pattern %s", name, r)
			}
			group(n)
			i += 2 + len(name)
		default:
			n, digits := 0, 0
			for j := i + 1; j < len(s) && s[j] >= '0' && s[j] <= '9'; j++ {
				next := n*10 + int(s[j]-'0')
				if next > r.NumSubexp() && digits > 0 {
					break
				}
				n, digits = next, digits+1
			}
			if digits == 0 {
				return nil, errors.New(`the $ names no group; write \$ for the character`)
			}
			if n > r.NumSubexp() {
				return nil, fmt.Errorf("there is no group %d in the pattern %s", n, r)
			}
			group(n)
			i += digits
		}
	}
	if literal.Len() > 0 {
		parts = append(parts, replacementPart{literal: literal.String()})
	}
	return parts, nil
}

// apply gives the new text; false if the pattern does not match.
func (r *rewrite) apply(s string) (string, bool) {
	if !r.whole.MatchString(s) {
		return s, false
	}
	at := r.part.FindStringSubmatchIndex(s)
	if at == nil {
		return s, false
	}
	var b strings.Builder
	b.WriteString(s[:at[0]])
	for _, p := range r.parts {
		if p.literal != "" {
			b.WriteString(p.literal)
		} else if from := at[2*p.group]; from >= 0 {
			b.WriteString(s[from:at[2*p.group+1]])
		}
	}
	b.WriteString(s[at[1]:])
	return b.String(), true
}
