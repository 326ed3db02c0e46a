package avro

import (
	"fmt"
	"slices"
	"strings"
)

// SameBytes says in words why records written by the one schema cannot be read by the other as if they were written by
// it, "" if they can. What counts is what decides the bytes: fields and their order, names, types, the branches of
// unions; and what the same bytes mean: logical types, the scale of decimals, and the Connect types of values where both
// schemas give one (milliseconds are not microseconds). Other properties, docs, aliases and defaults do not count. The
// words call a the first schema and b the second. An error means that one of them is not a schema.
func SameBytes(a, b string) (string, error) {
	first, err := parse(a)
	if err != nil {
		return "", fmt.Errorf("first schema: %w", err)
	}
	second, err := parse(b)
	if err != nil {
		return "", fmt.Errorf("second schema: %w", err)
	}
	s := sameness{seen: map[[2]*node]bool{}}
	return s.difference(first, second), nil
}

type sameness struct {
	path []string
	seen map[[2]*node]bool
}

// say is a difference between the schemas at the place where the walk is.
func (s *sameness) say(what, first, second string) string {
	place := "the schema"
	if len(s.path) > 0 {
		place = strings.Join(s.path, ".")
	}
	return fmt.Sprintf("%s%s is %s in the first schema and %s in the second", place, what, first, second)
}

// difference returns the first difference of two types; "" for none.
func (s *sameness) difference(a, b *node) string {
	if s.seen[[2]*node{a, b}] {
		return ""
	}
	s.seen[[2]*node{a, b}] = true
	if a.kind != b.kind || a.name != b.name || len(a.branches) != len(b.branches) {
		return s.say("", a.words(), b.words())
	}
	if m, n := meaning(a), meaning(b); m != n {
		return s.say("", m, n)
	}
	if a.connect != b.connect && a.connect != "" && b.connect != "" && a.kind != kindRecord {
		return s.say("", a.connect, b.connect)
	}
	switch a.kind {
	case kindRecord:
		return s.fields(a, b)
	case kindEnum:
		if !slices.Equal(a.symbols, b.symbols) {
			return s.say("", fmt.Sprintf("an enum of %s", strings.Join(a.symbols, ", ")), "one of "+strings.Join(b.symbols, ", "))
		}
	case kindFixed:
		if a.size != b.size {
			return s.say("", fmt.Sprintf("of %d bytes", a.size), fmt.Sprintf("of %d", b.size))
		}
	case kindArray, kindMap:
		return s.difference(a.items, b.items)
	case kindUnion:
		for i := range a.branches {
			if a.branches[i].label() != b.branches[i].label() {
				return s.say("", a.words(), b.words())
			}
			if d := s.difference(a.branches[i], b.branches[i]); d != "" {
				return d
			}
		}
	}
	return ""
}

// meaning is the type with its logical type.
func meaning(n *node) string {
	switch n.logical {
	case "":
		return n.words()
	case "decimal":
		scale := n.scale
		if scale == "" {
			scale = "0"
		}
		return n.words() + " (decimal of scale " + scale + ")"
	}
	return n.words() + " (" + n.logical + ")"
}

func (s *sameness) fields(a, b *node) string {
	for _, only := range [...]struct {
		in, out *node
		words   string
	}{{a, b, "first"}, {b, a, "second"}} {
		for i := range only.in.fields {
			if name := only.in.fields[i].name; only.out.find(name) == nil {
				return fmt.Sprintf("only the %s schema has %s", only.words, strings.Join(append(s.path, name), "."))
			}
		}
	}
	for i := range a.fields {
		f, g := &a.fields[i], &b.fields[i]
		if f.name != g.name {
			return s.say(fmt.Sprintf(": field %d of %s", i+1, a.name), f.name, g.name)
		}
		s.path = append(s.path, f.name)
		d := s.difference(f.typ, g.typ)
		s.path = s.path[:len(s.path)-1]
		if d != "" {
			return d
		}
	}
	return ""
}
