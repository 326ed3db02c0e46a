package config

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Place is the kind of file that a property belongs in.
type Place uint8

// The places; a property may belong in both.
const (
	InConnector Place = 1 << iota
	InWorker
)

// Converters is a set of the converters of keys and values that know a property; none of a property that is not a
// converter's.
type Converters uint8

// The converters that are built.
const (
	OfJSON Converters = 1 << iota
	OfConfluent
	OfApicurio
)

// String names the converter, of a set with one.
func (c Converters) String() string {
	switch c {
	case OfJSON:
		return "JsonConverter"
	case OfConfluent:
		return "Confluent's AvroConverter"
	case OfApicurio:
		return "Apicurio's AvroConverter"
	}
	return "converter " + strconv.Itoa(int(c))
}

// Type is what a property's value must look like.
type Type uint8

// The types. Kafka Connect hands values on as text; blanks around them do not count, but in a password.
const (
	Text     Type = iota // any text
	Bool                 // true or false
	Number               // a whole number between Min and Max
	Millis               // the same, in milliseconds
	Seconds              // the same, in seconds
	Enum                 // one of Allowed, in any case
	List                 // items separated by commas; each one of Allowed if that is not empty
	Patterns             // Java regular expressions separated by commas
	Class                // the name of a Java class
	Password             // text that is never printed
)

// String is the type's name in the documentation.
func (t Type) String() string {
	return [...]string{"text", "true or false", "number", "milliseconds", "seconds", "choice", "list", "patterns", "class", "password"}[t]
}

// Status says what this build does with a property.
type Status uint8

// The states.
const (
	Honoured Status = iota // it does what it says
	Accepted               // it has no meaning here; Note says why
	NotYet                 // not built: the default and the Harmless values are fine, any other stops the start
)

// String is the status in the documentation.
func (s Status) String() string { return [...]string{"honoured", "accepted", "not yet"}[s] }

// Property is one row of the table of properties.
type Property struct {
	// Name: a part in <angle brackets> stands for any text, or for one of several when they are given: <key or value>; a
	// part in [square brackets] may be left out.
	Name     string
	Place    Place
	Group    string
	Type     Type
	Default  string // "" for none
	Required bool
	Min, Max int64    // of numbers; both 0: any
	Allowed  []string // of Enum and List
	Doc      string   // what it does, in one sentence
	Status   Status
	// Note says for Accepted why it has no meaning here, for NotYet what to do instead (may be empty), for Honoured
	// what else there is to know.
	Note     string
	Harmless []string // of NotYet: values besides the default that change nothing; "*" for all
	Later    []string // of Honoured: allowed values that are not built yet
	Security bool     // security hangs on it: --lenient does not turn its refusal into a warning
	Warn     bool     // of Accepted: say so in a warning of its own when it is set
	Of       Converters
	secret   bool // a config provider gave the value
}

// shown is a value as it may appear in a message.
func (p *Property) shown(value string) string {
	choice := p.Type == Enum && containsFold(p.Allowed, strings.TrimSpace(value)) // no secret, whatever the key is called
	if p.Type == Password || p.secret || !choice && secretName.MatchString(p.Name) {
		return hidden
	}
	value = redacted(value)
	const most = 80
	if len(value) > most {
		value = strings.ToValidUTF8(value[:most], "") + "…"
	}
	return strconv.Quote(value)
}

// expand lists the names that a name with choices stands for.
func expand(name string) []string {
	if before, rest, found := strings.Cut(name, "["); found {
		optional, after, _ := strings.Cut(rest, "]")
		return append(expand(before+after), expand(before+optional+after)...)
	}
	const or = " or "
	for at := 0; at < len(name); {
		from := strings.IndexByte(name[at:], '<')
		if from < 0 {
			break
		}
		from += at
		to := from + strings.IndexByte(name[from:], '>')
		if choices := strings.Split(name[from+1:to], or); len(choices) > 1 {
			var all []string
			for _, choice := range choices {
				all = append(all, expand(name[:from]+choice+name[to+1:])...)
			}
			return all
		}
		at = to
	}
	return []string{name}
}

// pattern compiles a name with <angle brackets>; nil for a plain name.
func (p *Property) pattern() *regexp.Regexp {
	if !strings.Contains(p.Name, "<") {
		return nil
	}
	var b strings.Builder
	rest := p.Name
	for {
		before, after, found := strings.Cut(rest, "<")
		b.WriteString(regexp.QuoteMeta(before))
		if !found {
			return regexp.MustCompile(`^` + b.String() + `$`)
		}
		name, after, _ := strings.Cut(after, ">")
		if name == "N" {
			b.WriteString(`[0-9]+`)
		} else {
			b.WriteString(`.+`)
		}
		rest = after
	}
}

// check says what is wrong with the form of a value.
func (p *Property) check(value string) error {
	v := strings.TrimSpace(value)
	switch p.Type {
	case Bool:
		if !strings.EqualFold(v, "true") && !strings.EqualFold(v, "false") {
			return fmt.Errorf("%s is not allowed; it must be true or false", p.shown(value))
		}
	case Number, Millis, Seconds:
		lo, hi := p.Min, p.Max
		if lo == 0 && hi == 0 {
			lo, hi = math.MinInt64, math.MaxInt64
		}
		if n, err := strconv.ParseInt(v, 10, 64); err != nil || n < lo || n > hi {
			text := fmt.Sprintf("%s is not allowed; it must be a whole number", p.shown(value))
			switch {
			case hi == math.MaxInt64 && lo > math.MinInt64:
				text += fmt.Sprintf(" of %d or more", lo)
			case hi != math.MaxInt64:
				text += fmt.Sprintf(" from %d to %d", lo, hi)
			}
			return errors.New(text)
		}
	case Enum:
		if !containsFold(p.Allowed, v) {
			return fmt.Errorf("%s is not allowed; it must be one of %s", p.shown(value), strings.Join(p.Allowed, ", "))
		}
	case List:
		for _, item := range items(v) {
			if len(p.Allowed) > 0 && !containsFold(p.Allowed, item) {
				return fmt.Errorf("%s is not allowed; its items must be of %s", p.shown(value), strings.Join(p.Allowed, ", "))
			}
		}
	case Patterns:
		if _, err := parseList(value, false); err != nil {
			return err
		}
	}
	return nil
}

// harmless says whether a value of a property that is not built changes nothing.
func (p *Property) harmless(value string) bool {
	v := strings.TrimSpace(value)
	if v == "" && p.Default == "" {
		return true
	}
	fine := append([]string{p.Default}, p.Harmless...)
	if slices.Contains(p.Harmless, "*") {
		return true
	}
	if p.Type == Number || p.Type == Millis || p.Type == Seconds {
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			v = strconv.FormatInt(n, 10)
		}
	}
	if p.Type == List {
		for _, item := range items(v) {
			if !containsFold(fine, item) {
				return false
			}
		}
		// An empty list is not the default when the default has items.
		return v != "" || p.Default == ""
	}
	if p.Type == Text || p.Type == Class || p.Type == Password {
		return slices.Contains(fine, v)
	}
	return containsFold(fine, v)
}

// items splits a list at commas.
func items(text string) []string {
	var out []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}

func containsFold(list []string, s string) bool {
	return slices.ContainsFunc(list, func(e string) bool { return strings.EqualFold(e, s) })
}
