package avro

import "slices"

// reading says what can be read by which type, by the rules of Avro Java's SchemaCompatibility, which registries go by.
// The zero value is ready.
type reading struct {
	known map[[2]*node]bool
}

// can says whether what was written by the one type can be read by the other, whatever the value.
func (r *reading) can(reader, writer *node) bool {
	pair := [2]*node{reader, writer}
	ok, known := r.known[pair]
	if known {
		return ok
	}
	if r.known == nil {
		r.known = map[[2]*node]bool{}
	}
	r.known[pair] = true // a type inside itself can be read if nothing else is against it
	ok = r.judge(reader, writer)
	r.known[pair] = ok
	return ok
}

func (r *reading) judge(reader, writer *node) bool {
	if writer.kind == kindUnion {
		return !slices.ContainsFunc(writer.branches, func(b *node) bool { return !r.can(reader, b) })
	}
	if reader.kind == kindUnion {
		return slices.ContainsFunc(reader.branches, func(b *node) bool { return r.can(b, writer) })
	}
	if reader.kind != writer.kind {
		return promotes(writer.kind, reader.kind)
	}
	switch reader.kind {
	case kindArray, kindMap:
		return r.can(reader.items, writer.items)
	case kindFixed:
		return sameName(reader, writer) && reader.size == writer.size
	case kindEnum:
		return sameName(reader, writer) && len(missingSymbols(reader, writer)) == 0
	case kindRecord:
		return sameName(reader, writer) && !slices.ContainsFunc(reader.fields, func(f field) bool {
			g := writerField(&f, writer)
			return g == nil && !f.hasDefault || g != nil && !r.can(f.typ, g.typ)
		})
	}
	return true
}

// promotes says whether values of a type can be read as another one.
func promotes(from, to kind) bool {
	switch to {
	case kindLong:
		return from == kindInt
	case kindFloat:
		return from == kindInt || from == kindLong
	case kindDouble:
		return from == kindInt || from == kindLong || from == kindFloat
	case kindBytes:
		return from == kindString
	case kindString:
		return from == kindBytes
	}
	return false
}

// sameName says whether a reader takes a type for its own: namespaces do not count.
func sameName(reader, writer *node) bool {
	_, a := splitFull(reader.name)
	_, b := splitFull(writer.name)
	return a == b || slices.Contains(reader.aliases, writer.name)
}

// writerField is the field that a reader's field is read from; nil if there is none.
func writerField(f *field, writer *node) *field {
	if g := writer.find(f.name); g != nil {
		return g
	}
	for _, a := range f.aliases {
		if g := writer.find(a); g != nil {
			return g
		}
	}
	return nil
}

// missingSymbols are the symbols of an enum that a reader cannot read.
func missingSymbols(reader, writer *node) []string {
	if slices.Contains(reader.symbols, reader.fallback) {
		return nil
	}
	var missing []string
	for _, s := range writer.symbols {
		if !slices.Contains(reader.symbols, s) {
			missing = append(missing, s)
		}
	}
	return missing
}
