package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/emitter/registry"
	"github.com/tidemark-cdc/tidemark/schema/avro"
)

// incompatible says why a registry's refusal stops the stream, and what can be done.
type incompatible struct {
	needed  *emitter.SchemaNeeded
	refused *registry.Refused
	change  alteration
	columns []avro.Change // what is incompatible, as far as that is known
	renamed bool          // a column has gone and another one has come
	key     []string      // the columns of the earlier key; nil if it is not known or cannot be had again

	onlyColumns, ownKeys bool // as in registries
}

// incompatible compares a schema with the newest one of its subject, since no registry says in terms of columns why it refuses
// a schema.
func (r *registries) incompatible(ctx context.Context, n *emitter.SchemaNeeded, refused *registry.Refused) error {
	e := &incompatible{needed: n, refused: refused, change: r.altered[n.Table], onlyColumns: r.onlyColumns, ownKeys: r.ownKeys}
	text, _, err := r.client(n.Key).Latest(ctx, n.Subject)
	if err != nil {
		r.log.Warn("the newest schema of the subject could not be read to compare it", zap.String("subject", n.Subject), zap.Error(err))
		return e
	}
	changes, err := avro.Compare(text, n.Text)
	if err != nil {
		r.log.Warn("the newest schema of the subject could not be compared", zap.String("subject", n.Subject), zap.Error(err))
	}
	is := func(what string) func(avro.Change) bool {
		return func(c avro.Change) bool { return c.Column != "" && strings.HasPrefix(c.What, what) }
	}
	e.renamed = slices.ContainsFunc(changes, is("added")) && slices.ContainsFunc(changes, is("removed"))
	if n.Key && len(changes) > 0 && !slices.ContainsFunc(changes, func(c avro.Change) bool { return !is("added")(c) }) {
		e.key = e.fieldsOf(text)
	}
	// Most registries ask for BACKWARD, so what breaks that is most likely the cause.
	for _, breaks := range []func(avro.Change) bool{
		func(c avro.Change) bool { return c.Backward },
		func(c avro.Change) bool { return c.Forward },
	} {
		if slices.ContainsFunc(changes, breaks) {
			changes = slices.DeleteFunc(changes, func(c avro.Change) bool { return !breaks(c) })
			break
		}
	}
	e.columns = changes
	return e
}

// fieldsOf names the columns of a key's schema.
func (e *incompatible) fieldsOf(text string) (names []string) {
	var key struct {
		Fields []struct{ Name string }
	}
	if json.Unmarshal([]byte(text), &key) != nil { // it was compared, so it can be read
		return nil
	}
	for _, f := range key.Fields {
		names = append(names, e.pattern(e.column(f.Name)))
	}
	return names
}

// column is the name in the table of a column that is a field in records: they differ if the one is none for Avro.
func (e *incompatible) column(field string) string {
	if e.change.def == nil {
		return field
	}
	found := field
	for i := range e.change.def.Columns {
		switch name := e.change.def.Columns[i].Name; {
		case name == field:
			return field
		case strings.TrimPrefix(illegal.ReplaceAllString(name, "_"), "_") == strings.TrimPrefix(field, "_"):
			found = name
		}
	}
	return found
}

// illegal is a character that cannot stand in a field of Avro's.
var illegal = regexp.MustCompile(`[^A-Za-z0-9_]`)

// pattern is a name as it stands in lists of regular expressions.
func (e *incompatible) pattern(name string) string {
	return strings.ReplaceAll(regexp.QuoteMeta(name), ",", `\,`)
}

// table is the table's name in such lists.
func (e *incompatible) table() string {
	return e.pattern(e.needed.Table.Database) + "." + e.pattern(e.needed.Table.Table)
}

func (e *incompatible) Error() string {
	var b strings.Builder
	n := e.needed
	if n.Table.Table != "" {
		fmt.Fprintf(&b, "table %s.%s: ", n.Table.Database, n.Table.Table)
	} else {
		fmt.Fprintf(&b, "topic %s: ", n.Topic)
	}
	fmt.Fprintf(&b, "the registry refuses the new schema of subject %s as incompatible with an earlier one", n.Subject)
	for i, c := range e.columns {
		b.WriteString(map[bool]string{true: ": ", false: ", "}[i == 0])
		if c.Column != "" {
			fmt.Fprintf(&b, "column %s %s", e.column(c.Column), c.What)
		} else {
			fmt.Fprintf(&b, "%s %s", c.Field, c.What)
		}
	}
	if e.renamed {
		b.WriteString(" (a column that was renamed is to Avro one that was removed and one that was added)")
	}
	if e.change.statement != "" {
		fmt.Fprintf(&b, ". The table was changed last, at %s, by: %s", e.change.where, e.change.statement)
	}
	b.WriteString(". The stream stops before the first record with it, since leaving that out would lose it; nothing is lost. Ways out: ")
	b.WriteString(e.refused.Advice)
	if way := e.otherWay(); way != "" {
		b.WriteString("; or " + way + " and start again")
	}
	fmt.Fprintf(&b, ". The stream then goes on where it stopped. The registry at %s says (HTTP %d): %s", e.refused.URL, e.refused.Status, e.refused.Reason)
	return b.String()
}

// otherWay is the setting that makes the schema as it was; "" if none does.
func (e *incompatible) otherWay() string {
	if e.needed.Table.Table == "" {
		return ""
	}
	if e.needed.Key {
		if e.key == nil {
			return ""
		}
		setting := fmt.Sprintf("message.key.columns=%s:%s", e.table(), strings.Join(e.key, ","))
		if e.ownKeys {
			setting = fmt.Sprintf("%s:%s for this table in message.key.columns", e.table(), strings.Join(e.key, ","))
		}
		return fmt.Sprintf("keep the key as it was (%s; rows that differ in the new columns only then have one key)", setting)
	}
	var names []string
	for _, c := range e.columns {
		if name := e.column(c.Column); c.Column != "" && c.Backward && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	what := "the column"
	if len(names) > 1 {
		what = "the columns"
	}
	if e.onlyColumns {
		return fmt.Sprintf("leave %s out (take %s out of what column.include.list matches)", what, e.list(names))
	}
	return fmt.Sprintf("leave %s out (column.exclude.list=%s, beside what is there)", what, e.list(names))
}

// list has the full names of columns as those lists have them.
func (e *incompatible) list(names []string) string {
	full := make([]string, len(names))
	for i, name := range names {
		full[i] = e.table() + "." + e.pattern(name)
	}
	return strings.Join(full, ",")
}

func (e *incompatible) Unwrap() error { return e.refused }
