package schema

import (
	"slices"
	"strings"
)

// What Debezium's listeners on the tree of a statement make of it (AlterTableParserListener, CreateTableParserListener,
// ColumnDefinitionParserListener, DefaultValueParserListener of 3.6.1), step by step in their order, since what they get
// wrong is in the schemas that consumers know. Only the order of columns is the server's own.

// tableEditor is a table under construction.
type tableEditor struct {
	def     Definition
	mariaDB bool // as the connector for MariaDB, which has another parser, older than MySQL's
	columns []*columnSlot
	placed  []*columnSlot // those that are new or moved, in the order of the text
	key     []keyColumn
}

// keyColumn is a column of the record's key, by the name that Debezium has for it.
type keyColumn struct {
	name string
	slot *columnSlot // nil: there is no such column yet
}

// columnSlot is a column of a table that is changed. The server takes the names in ALTER TABLE for those of the table
// before, so each slot knows its own.
type columnSlot struct {
	ColumnDef
	old     string // its name before the statement; "" if it is new
	dropped bool
	place   columnPlace
}

func editDefinition(def *Definition, mariaDB bool) *tableEditor {
	e := &tableEditor{def: *def, mariaDB: mariaDB}
	e.def.Unique = nil
	e.def.KeyKind = KeyChosen
	for _, c := range def.Columns {
		e.columns = append(e.columns, &columnSlot{ColumnDef: c, old: c.Name})
	}
	for _, name := range def.Key {
		e.key = append(e.key, keyColumn{name, e.current(name)})
	}
	return e
}

// add adds a new column.
func (e *tableEditor) add(c *columnSlot) {
	e.columns = append(e.columns, c)
	e.placed = append(e.placed, c)
}

// current finds a column by the name that it has by now.
func (e *tableEditor) current(name string) *columnSlot {
	for _, c := range e.columns {
		if !c.dropped && strings.EqualFold(c.Name, name) {
			return c
		}
	}
	return nil
}

// before finds a column by the name that it had before the statement.
func (e *tableEditor) before(name string) *columnSlot {
	for _, c := range e.columns {
		if !c.dropped && c.old != "" && strings.EqualFold(c.old, name) {
			return c
		}
	}
	return nil
}

// definition gives the table that has come out.
func (e *tableEditor) definition() *Definition {
	def := e.def
	def.Columns, def.Key = nil, nil
	for _, column := range e.key {
		def.Key = append(def.Key, column.name)
	}
	for _, c := range e.ordered() {
		if c.Charset == "" || strings.EqualFold(c.Charset, "DEFAULT") {
			c.Charset = ""
			if usesCharset(c.JDBCType) {
				c.Charset = def.DefaultCharset
			}
		}
		if c.Nullable && !c.HasDefault { // a column that may be NULL has that for its default
			c.HasDefault, c.Default = true, nil
		}
		c.settle()
		def.Columns = append(def.Columns, c.ColumnDef)
	}
	return &def
}

// settle drops what the server makes of a column if it is nothing but what the definition says.
func (c *ColumnDef) settle() {
	if c.Server == nil {
		return
	}
	server := *c.Server
	if sameCharset(server.Charset, c.Charset) {
		server.Charset = ""
	}
	if slices.Equal(server.Labels, c.Labels) {
		server.Labels = nil
	}
	if c.Server = &server; server.Charset == "" && server.Labels == nil && server.Default == "" {
		c.Server = nil
	}
}

// ordered puts the columns into the server's order: those that are there first, then one after the other those that are
// new or moved.
func (e *tableEditor) ordered() []*columnSlot {
	var list []*columnSlot
	for _, c := range e.columns {
		if !c.dropped && c.old != "" {
			list = append(list, c)
		}
	}
	for _, c := range e.placed {
		list = slices.DeleteFunc(list, func(x *columnSlot) bool { return x == c })
		list = slices.Insert(list, placeOf(len(list), c.place, func(i int) string { return list[i].Name }), c)
	}
	return list
}

// placeOf is the index that a column gets in a list of n others: the last if it is to stand behind one that is not there.
func placeOf(n int, place columnPlace, name func(i int) string) int {
	if place.first {
		return 0
	}
	for i := range n {
		if place.after != "" && strings.EqualFold(name(i), place.after) {
			return i + 1
		}
	}
	return n
}

// newColumn is a column of which nothing is read yet.
func newColumn(c *columnText) *columnSlot {
	return &columnSlot{ColumnDef: ColumnDef{Name: c.name, Length: -1, Scale: -1, Nullable: true}}
}

// primary makes a PRIMARY KEY.
func (e *tableEditor) primary(key *keyText) {
	e.key = nil
	for _, name := range key.columns() {
		c := e.current(name)
		if c != nil {
			if c.Nullable {
				c.Nullable = false
				if c.HasDefault && c.Default == nil {
					c.HasDefault = false
				}
			}
			name = c.Name
		}
		e.key = append(e.key, keyColumn{name, c})
	}
}

// uniqueKey takes a UNIQUE key for the record's if there is none yet and its columns must have values. considered is
// false if it is none that Debezium looks at.
func (e *tableEditor) uniqueKey(key *keyText) (considered bool) {
	if len(e.key) > 0 || key.hasExpression() {
		return false
	}
	var columns []keyColumn
	optional := false
	for _, name := range key.columns() {
		c := e.current(name)
		if c == nil {
			return false
		}
		optional = optional || c.Nullable
		columns = append(columns, keyColumn{c.Name, c})
	}
	if !optional {
		e.key = columns
	}
	return true
}

func (e *tableEditor) addKey(key *keyText) {
	switch key.kind {
	case keyPrimary:
		e.primary(key)
	case keyUnique:
		e.uniqueKey(key)
	}
}

// createDefinition reads CREATE TABLE with columns. charset is what Debezium takes for the default character set of the
// table's database, server what it really is.
func createDefinition(database, table string, c *createTable, charset, server string) *Definition {
	e := &tableEditor{def: Definition{Database: database, Name: table, DefaultCharset: charset}, mariaDB: c.mariaDB}
	if o := c.options.charset; o != "" && !strings.EqualFold(o, "default") {
		e.def.DefaultCharset, server = o, o
	} else if c.options.collate != "" {
		server = charsetOfCollation(c.options.collate)
	}
	e.def.ServerCharset = strings.ToLower(server)
	if c.options.comment != nil {
		e.def.setComment(*c.options.comment)
	}
	for _, element := range c.elements {
		if element.key != nil {
			e.addKey(element.key)
			continue
		}
		slot := newColumn(element.column)
		r := columnReader{e: e, c: slot}
		r.read(element.column)
		e.add(slot)
		if r.unique && len(e.key) == 0 {
			e.key = []keyColumn{{slot.Name, slot}}
		}
	}
	def := e.definition()
	def.settleCharset()
	return def
}

// settleCharset drops the server's default character set if it is the known one.
func (d *Definition) settleCharset() {
	if sameCharset(d.ServerCharset, d.DefaultCharset) {
		d.ServerCharset = ""
	}
}

func (d *Definition) setComment(comment string) {
	d.Comment, d.BlankComment = comment, comment == ""
}
