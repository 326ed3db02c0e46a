package avro

import (
	"fmt"
	"strings"
)

// Change is a difference of two schemas of one record that Avro's rules of compatibility look at.
type Change struct {
	Field  string // the path of fields, as after.total or id; "" for the schema itself
	Column string // the column that the field is, or is a part of: the member of the record Key or Value; "" for none
	What   string // "added without a default", "removed", "changed from int to string" and the like

	Backward bool // it breaks BACKWARD: the later schema cannot read what the earlier one wrote
	Forward  bool // it breaks FORWARD: the earlier schema cannot read what the later one writes
}

func (c Change) String() string {
	if c.Field == "" {
		return "the schema was " + c.What
	}
	return c.Field + " was " + c.What
}

// Compare says how the later schema of a record differs from the earlier one, each field once, in the order of the
// later fields with the removed ones behind. Before and after of an envelope are one record, and its changes are those
// of after. The one can read the other exactly if no change breaks that direction. Order, docs, properties, and
// defaults of fields that both have are no changes. An error means that one of them is not a schema.
func Compare(earlier, later string) ([]Change, error) {
	a, err := parse(earlier)
	if err != nil {
		return nil, fmt.Errorf("earlier schema: %w", err)
	}
	b, err := parse(later)
	if err != nil {
		return nil, fmt.Errorf("later schema: %w", err)
	}
	c := comparison{seen: map[[2]*node]bool{}}
	c.types(a, b)
	return c.changes, nil
}

type comparison struct {
	reading
	changes []Change
	path    []string
	column  string
	seen    map[[2]*node]bool // records that were compared
}

func (c *comparison) add(what string, backward, forward bool) {
	c.changes = append(c.changes, Change{strings.Join(c.path, "."), c.column, what, backward, forward})
}

// types compares the types of a field, the earlier one first.
func (c *comparison) types(a, b *node) {
	base, nullable := a.unwrap()
	laterBase, laterNullable := b.unwrap()
	var words []string
	var backward, forward bool
	switch {
	case nullable == laterNullable:
	case base.kind == kindNull, laterBase.kind == kindNull, base.kind == kindUnion, laterBase.kind == kindUnion:
		base, laterBase = a, b
	case nullable:
		words, backward = append(words, "changed to NOT NULL"), true
	default:
		words, forward = append(words, "changed to NULL"), true
	}
	what := c.bases(base, laterBase)
	if what != "" {
		words = append(words, what)
		backward = backward || !c.can(laterBase, base)
		forward = forward || !c.can(base, laterBase)
	}
	if len(words) > 0 {
		c.add(strings.Join(words, " and "), backward, forward)
	}
	if what == "" {
		c.parts(base, laterBase)
	}
}

// bases says how a type differs from an earlier one in itself; "" if only its parts may differ.
func (c *comparison) bases(a, b *node) string {
	if a.kind != b.kind {
		return fmt.Sprintf("changed from %s to %s", a.words(), b.words())
	}
	switch a.kind {
	case kindUnion:
		if len(a.branches) != len(b.branches) || !c.can(a, b) || !c.can(b, a) {
			return fmt.Sprintf("changed from %s to %s", a.words(), b.words())
		}
	case kindArray, kindMap:
		// Items have no name of their own, unless they are records.
		x, _ := a.items.unwrap()
		y, _ := b.items.unwrap()
		if x.kind != kindRecord || y.kind != kindRecord {
			if !c.can(a.items, b.items) || !c.can(b.items, a.items) || a.words() != b.words() {
				return fmt.Sprintf("changed from %s to %s", a.words(), b.words())
			}
		}
	case kindRecord:
		if !sameName(b, a) || !sameName(a, b) {
			return fmt.Sprintf("changed from %s to %s", a.words(), b.words())
		}
	case kindFixed:
		if a.size != b.size || !sameName(b, a) || !sameName(a, b) {
			return fmt.Sprintf("changed from %s of %d bytes to %s of %d bytes", a.words(), a.size, b.words(), b.size)
		}
	case kindEnum:
		lost, more := missingSymbols(b, a), missingSymbols(a, b)
		switch {
		case !sameName(b, a) || !sameName(a, b):
			return fmt.Sprintf("changed from %s to %s", a.words(), b.words())
		case len(lost)+len(more) > 0:
			return fmt.Sprintf("changed from an enum of %s to one of %s", strings.Join(a.symbols, ", "), strings.Join(b.symbols, ", "))
		}
	}
	return ""
}

// parts compares what is inside two types that are otherwise the same.
func (c *comparison) parts(a, b *node) {
	switch a.kind {
	case kindArray, kindMap:
		c.types(a.items, b.items)
	case kindRecord:
		if !c.seen[[2]*node{a, b}] {
			c.seen[[2]*node{a, b}] = true
			c.fields(a, b)
		}
	}
}

func (c *comparison) fields(a, b *node) {
	column := c.column
	_, short := splitFull(b.name)
	isRow := column == "" && (short == "Key" || short == "Value")
	enter := func(name string) {
		c.path = append(c.path, name)
		if isRow {
			c.column = name
		}
	}
	leave := func() {
		c.path = c.path[:len(c.path)-1]
		c.column = column
	}
	for i := range b.fields {
		g := &b.fields[i]
		f := a.find(g.name)
		if f != nil && isTwin(a, b, g) {
			continue
		}
		enter(g.name)
		switch {
		case f != nil:
			c.types(f.typ, g.typ)
		case g.hasDefault:
			c.add("added with a default", false, false)
		default:
			c.add("added without a default", !c.reads(g, a), false)
		}
		leave()
	}
	for i := range a.fields {
		f := &a.fields[i]
		if b.find(f.name) != nil {
			continue
		}
		enter(f.name)
		if f.hasDefault {
			c.add("removed", false, false)
		} else {
			c.add("removed (it had no default)", false, !c.reads(f, b))
		}
		leave()
	}
}

// reads says whether a field is read from another one by an alias.
func (c *comparison) reads(f *field, writer *node) bool {
	g := writerField(f, writer)
	return g != nil && c.can(f.typ, g.typ)
}

// isTwin says that a field is before, whose record is compared as after's.
func isTwin(a, b *node, g *field) bool {
	if g.name != "before" {
		return false
	}
	for _, n := range [...]*node{a, b} {
		before, after := n.find("before"), n.find("after")
		if before == nil || after == nil {
			return false
		}
		x, xNull := before.typ.unwrap()
		y, yNull := after.typ.unwrap()
		if x != y || xNull != yNull {
			return false
		}
	}
	return true
}
