package emitter

import "github.com/tidemark-cdc/tidemark/schema"

// tree is a value of any Connect type. It is how values that are neither cells nor fields of the event come into a
// record: what a statement changed, how many events a transaction had.
type tree struct {
	value   schema.Value // of a leaf; Null of anything that is null
	members []tree       // of a struct, one for each field; of an array. Not nil: value does not count
}

// slot is a place of [run] where a tree is put before a program runs.
type slot uint8

const (
	slotTransaction slot = iota // the transaction block of an event
	slotID                      // a transaction's id
	slotCount                   // how many events it had …
	slotCollections             // … and how many of each table
	slotDatabase                // of a schema change
	slotTables
	slotDDL
	slotChanges
	slots // how many there are
)

func textTree(s string) tree { return tree{value: text(s)} }

// optionalText is a tree of s, or of null for an empty one.
func optionalText(s string) tree {
	if s == "" {
		return tree{}
	}
	return textTree(s)
}

func intTree(n int64) tree { return tree{value: schema.Value{Kind: schema.Int, Int: n}} }

func boolTree(b bool) tree {
	v := schema.Value{Kind: schema.Bool}
	if b {
		v.Int = 1
	}
	return tree{value: v}
}

// fromSlot is a member whose value stands in a slot.
func fromSlot(name string, typ schema.Type, s slot) member {
	return member{name, shape{typ: &typ, leaf: leaf{kind: leafSlot, slot: s}}}
}

// fill has the value of a struct's member come from a slot.
func (s *shape) fill(name string, from slot) { s.set(name, leaf{kind: leafSlot, slot: from}) }

// set gives a struct's member another value; the schema stays.
func (s *shape) set(name string, l leaf) {
	for i := range s.typ.Fields {
		if s.typ.Fields[i].Name == name {
			s.fields[i] = shape{typ: s.fields[i].typ, leaf: l}
		}
	}
}

// appendTree appends a tree of type t.
func (d *dialect) appendTree(dst []byte, t *schema.Type, v *tree) ([]byte, error) {
	if v.members == nil {
		return d.appendConstant(dst, t, &v.value)
	}
	if d.text == avroBinary {
		return d.appendBinaryTree(dst, t, v)
	}
	var err error
	if t.Type == "array" {
		dst = append(dst, '[')
		for i := range v.members {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = d.appendTree(dst, t.Items, &v.members[i]); err != nil {
				return dst, err
			}
		}
		return append(dst, ']'), nil
	}
	dst = append(dst, '{')
	for i := range v.members {
		if i > 0 {
			dst = append(dst, ',')
		}
		f := &t.Fields[i]
		dst = appendQuoted(dst, []byte(f.Name))
		dst = append(dst, ':')
		if dst, err = d.appendTree(dst, f.Type, &v.members[i]); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}
