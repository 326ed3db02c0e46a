package avro

import (
	"slices"
	"strings"
)

// node is a type of a parsed schema. Nodes of records can be reached from themselves.
type node struct {
	kind     kind
	name     string // full name of a record, enum or fixed
	aliases  []string
	fields   []field
	symbols  []string
	fallback string // the symbol that an enum reads unknown ones as; "" for none
	size     int64  // of a fixed
	items    *node  // of an array; the values of a map
	branches []*node

	logical string // logicalType
	scale   string // of a decimal
	connect string // connect.name
}

// field is a member of a record.
type field struct {
	name         string
	aliases      []string
	typ          *node
	hasDefault   bool
	defaultValue any // as encoding/json has it, numbers as json.Number
}

// find returns the field of a record; nil if there is none.
func (n *node) find(name string) *field {
	for i := range n.fields {
		if n.fields[i].name == name {
			return &n.fields[i]
		}
	}
	return nil
}

// label is what a union names the type by, in Avro's JSON encoding, too.
func (n *node) label() string {
	if n.kind.named() {
		return n.name
	}
	return string(n.kind)
}

// words is the type as a message shows it.
func (n *node) words() string {
	switch n.kind {
	case kindRecord, kindEnum, kindFixed:
		return string(n.kind) + " " + n.name
	case kindArray:
		return "array of " + n.items.words()
	case kindMap:
		return "map of " + n.items.words()
	case kindUnion:
		parts := make([]string, len(n.branches))
		for i, b := range n.branches {
			parts[i] = b.words()
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return string(n.kind)
}

// unwrap takes the union of a nullable type away.
func (n *node) unwrap() (base *node, nullable bool) {
	if n.kind != kindUnion || len(n.branches) != 2 {
		return n, false
	}
	i := slices.IndexFunc(n.branches, func(b *node) bool { return b.kind == kindNull })
	if i < 0 {
		return n, false
	}
	return n.branches[1-i], true
}
