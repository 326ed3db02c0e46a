package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// table is an index of the properties of one place.
type table struct {
	exact     map[string]*Property
	patterns  []patternProperty
	names     []string // without patterns, for suggestions
	elsewhere map[string]bool
}

type patternProperty struct {
	re *regexp.Regexp
	p  *Property
}

// The indexes of the two places, made once, since their patterns take a while to compile.
var (
	ofConnector = sync.OnceValue(func() *table { return newTable(InConnector) })
	ofWorker    = sync.OnceValue(func() *table { return newTable(InWorker) })
)

// tableOf is the index of a place. It is shared and not changed.
func tableOf(where Place) *table {
	if where == InWorker {
		return ofWorker()
	}
	return ofConnector()
}

func newTable(where Place) *table {
	t := &table{exact: map[string]*Property{}, elsewhere: map[string]bool{}}
	for _, row := range Properties() {
		for _, name := range expand(row.Name) {
			p := row
			p.Name = name
			if p.Place&where == 0 {
				t.elsewhere[name] = true
				continue
			}
			if re := p.pattern(); re != nil {
				t.patterns = append(t.patterns, patternProperty{re, &p})
				continue
			}
			t.exact[name] = &p
			t.names = append(t.names, name)
		}
	}
	return t
}

// find is the row of a key: its own one, else the first pattern that fits.
func (t *table) find(key string) *Property {
	if p := t.exact[key]; p != nil {
		return p
	}
	for _, pp := range t.patterns {
		if pp.re.MatchString(key) {
			return pp.p
		}
	}
	return nil
}

// checked is a file whose keys and values have been held against the table.
type checked struct {
	*file
	table     *table
	opts      Options
	errs      []error
	warnings  []Warning
	providers *providers
	raw       map[string]string // values that ask providers, as they are written
	resolved  []string          // what providers gave
	avros     map[string]*Avro  // what avro has read, so that several connectors do not repeat a worker's faults
}

func (c *checked) fail(key, format string, args ...any) {
	c.errs = append(c.errs, &KeyError{File: c.path, Key: key, Text: c.masked(fmt.Sprintf(format, args...))})
}

func (c *checked) warn(key, format string, args ...any) {
	c.warnings = append(c.warnings, Warning{File: c.path, Key: key, Text: c.masked(fmt.Sprintf(format, args...))})
}

// quietly is said of several keys at once, which are all that stands in the warning's key.
const quietly = "accepted, without meaning here (the reasons are in docs/properties.md)"

// unwarn takes back what was said of a key, since there is something better to say.
func (c *checked) unwarn(key string) {
	var kept []Warning
	for _, w := range c.warnings {
		if w.Text == quietly {
			keys := slices.DeleteFunc(strings.Split(w.Key, ", "), func(k string) bool { return k == key })
			w.Key = strings.Join(keys, ", ")
		} else if w.Key == key {
			w.Key = ""
		}
		if w.Key != "" {
			kept = append(kept, w)
		}
	}
	c.warnings = kept
}

// refuse is for what is not built yet: an error, or with --lenient a warning.
func (c *checked) refuse(key string, security bool, text string) {
	switch {
	case !c.opts.Lenient:
		if !security {
			text += " With --lenient the key is ignored instead."
		}
		c.fail(key, "%s", text)
	case security:
		c.fail(key, "%s Security hangs on it, so --lenient does not ignore it.", text)
	default:
		c.warn(key, "ignored because of --lenient: %s", text)
	}
}

// checkFile holds all keys of a file against the table of its place. Where a value is malformed or not built, it is
// taken out, so that what reads the values gets the default.
func checkFile(f *file, where Place, opts Options, providers *providers) *checked {
	c := &checked{file: f, table: tableOf(where), opts: opts, providers: providers, raw: map[string]string{}}
	if where == InConnector && !c.class() {
		return c // another connector's keys mean nothing here
	}
	for _, key := range f.twice {
		c.warn(key, "given more than once; the last value counts")
	}
	var quiet []string
	for _, key := range f.keys {
		value := f.value[key]
		p := c.table.find(key)
		if p == nil {
			c.unknown(key)
			continue
		}
		here := *p // the row, with the pattern's own name filled in
		here.Name = key
		if here.Of != 0 {
			known, quietly := c.converterKnows(p, key)
			if quietly {
				quiet = append(quiet, key)
			}
			if !known {
				continue
			}
		}
		if providers.refers(value) && !strings.HasPrefix(key, "config.providers") {
			given, err := providers.resolve(value)
			if err != nil {
				delete(f.value, key)
				c.fail(key, "%v", err)
				continue
			}
			c.raw[key], f.value[key], here.secret = value, given, true
			c.resolved = append(c.resolved, strings.TrimSpace(given))
			value = given
		} else if providerReference.MatchString(value) && !strings.HasPrefix(key, "config.providers") {
			c.warn(key, "taken as it is, though it looks like a reference to a config provider: config.providers of the worker's file has none of that name (env, file and dir are there without it)")
		}
		if strings.TrimSpace(value) == "" && here.Type != Text && here.Type != Password && here.Type != Patterns && here.Type != List && here.Type != Class {
			c.fail(key, "it is empty%s", here.expects())
			delete(f.value, key)
			continue
		}
		if err := here.check(value); err != nil {
			c.fail(key, "%v", err)
			delete(f.value, key)
			continue
		}
		switch here.Status {
		case NotYet:
			if here.harmless(value) {
				continue
			}
			c.refuse(key, here.Security, here.refusal(value))
			delete(f.value, key)
		case Honoured:
			if containsFold(here.Later, strings.TrimSpace(value)) {
				c.refuse(key, here.Security, here.refusal(value))
				delete(f.value, key)
			}
		case Accepted:
			switch {
			case here.Warn:
				c.warn(key, "accepted, without effect: %s", here.Note)
			case !here.harmless(value):
				quiet = append(quiet, key)
			}
		}
	}
	if len(quiet) > 0 {
		slices.Sort(quiet)
		c.warn(strings.Join(quiet, ", "), quietly)
	}
	for name, p := range c.table.exact {
		if p.Required && strings.TrimSpace(f.value[name]) == "" && !c.failed(name) && !(opts.Offline && p.Group == groupConnection) {
			c.fail(name, "missing: %s", p.Doc)
		}
	}
	slices.SortStableFunc(c.errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return c
}

// failed says whether a key has a fault already.
func (c *checked) failed(key string) bool {
	return slices.ContainsFunc(c.errs, func(err error) bool {
		var ke *KeyError
		return errors.As(err, &ke) && ke.Key == key
	})
}

// expects says what may stand in a value that must not be empty.
func (p *Property) expects() string {
	switch p.Type {
	case Bool:
		return "; it must be true or false"
	case Enum:
		return "; it must be one of " + strings.Join(p.Allowed, ", ")
	}
	return "; it must be a whole number"
}

// refusal is the message for a value that is not built.
func (p *Property) refusal(value string) string {
	text := fmt.Sprintf("%s is not built yet. What the key does: %s", p.shown(value), p.Doc)
	switch {
	case p.Note != "" && p.Status == NotYet:
		text += " " + p.Note
	case p.Status == Honoured && len(p.Later) > 0:
		var fine []string
		for _, a := range p.Allowed {
			if !containsFold(p.Later, a) {
				fine = append(fine, a)
			}
		}
		text += " Use one of " + strings.Join(fine, ", ") + "."
	case p.Default != "":
		text += " Remove the key or set it to " + p.Default + "."
	default:
		text += " Remove the key."
	}
	return text
}

// renamed holds names that Debezium gave up in version 2; they do nothing in it either.
func renamed(key string) string {
	switch key {
	case "database.server.name":
		return "topic.prefix"
	case "database.whitelist":
		return "database.include.list"
	case "database.blacklist":
		return "database.exclude.list"
	case "table.whitelist":
		return "table.include.list"
	case "table.blacklist":
		return "table.exclude.list"
	case "column.whitelist":
		return "column.include.list"
	case "column.blacklist":
		return "column.exclude.list"
	case "snapshot.new.tables", "gtid.new.channel.position", "sanitize.field.names":
		return ""
	}
	if rest, ok := strings.CutPrefix(key, "database.history."); ok {
		return "schema.history.internal." + rest
	}
	return ""
}

// namesake is the key that does in one kind of file what another one does in the other.
var namesake = map[string]string{
	"exactly.once.support":        "exactly.once.source.support=enabled",
	"exactly.once.source.support": "exactly.once.support=required",
}

// unknown warns about a key that is in no row.
func (c *checked) unknown(key string) {
	// A named converter or post processor has keys of its own; they stand and fall with the list that names it.
	for _, list := range []string{"converters", "post.processors"} {
		for _, name := range items(c.value[list]) {
			if strings.HasPrefix(key, name+".") {
				return
			}
		}
	}
	if c.table.elsewhere[key] {
		what := "a key of a connector; it has no effect in the worker's file"
		if _, connector := c.value["connector.class"]; connector {
			what = "a key of the worker; it has no effect in a connector's file"
		}
		if here := namesake[key]; here != "" {
			what += ", where " + here + " does it"
		}
		c.warn(key, "%s", what)
		return
	}
	if now := renamed(key); now != "" {
		c.warn(key, "unknown since Debezium 2, where its name is %s; it has no effect", now)
		return
	}
	if near := c.table.nearest(key); near != "" {
		c.warn(key, "unknown, it has no effect; the nearest known key is %s", near)
		return
	}
	c.warn(key, "unknown, it has no effect")
}

// nearest is the known name with the fewest changed letters, when they are few.
func (t *table) nearest(key string) string {
	best, most := "", max(2, len(key)/4)
	for _, name := range t.names {
		if len(name)-len(key) > most || len(key)-len(name) > most {
			continue // it takes that many letters to insert or delete at least
		}
		if d := distance(key, name); d <= most {
			best, most = name, d-1
		}
	}
	return best
}

// distance counts the letters to insert, delete or replace to make b of a (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], d
		}
	}
	return row[len(b)]
}

// The getters below read checked values, so they cannot fail: a malformed value was reported and taken out.

// text is a value, or the table's default.
func (c *checked) text(key string) string {
	v, ok := c.value[key]
	p := c.table.find(key)
	if p != nil && p.Type != Password {
		v = strings.TrimSpace(v)
	}
	if !ok || v == "" {
		if p != nil {
			return p.Default
		}
	}
	return v
}

func (c *checked) enum(key string) string { return strings.ToLower(c.text(key)) }

func (c *checked) yes(key string) bool { return strings.EqualFold(c.text(key), "true") }

func (c *checked) number(key string) int64 {
	n, _ := strconv.ParseInt(c.text(key), 10, 64)
	return n
}

func (c *checked) millis(key string) time.Duration {
	n := c.number(key)
	if n > int64(1<<63-1)/int64(time.Millisecond) {
		return 1<<63 - 1
	}
	return time.Duration(n) * time.Millisecond
}

func (c *checked) has(key string) bool { _, ok := c.value[key]; return ok }

// under is all keys below a prefix, without it.
func (c *checked) under(prefix string) map[string]string {
	out := map[string]string{}
	for k, v := range c.value {
		if name, ok := strings.CutPrefix(k, prefix); ok {
			out[name] = v
		}
	}
	return out
}
