package schema

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// What Debezium's listeners on the tree of a statement make of it (AlterTableParserListener, CreateTableParserListener,
// ColumnDefinitionParserListener, DefaultValueParserListener of 3.6.1), step by step in their order, since what they get
// wrong is in the schemas that consumers know. Only the order of columns is the server's own.

// tableEditor is a table under construction.
type tableEditor struct {
	def     Definition
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

func editDefinition(def *Definition) *tableEditor {
	e := &tableEditor{def: *def}
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

// columnReader reads the text of a column into a slot, as one listener of Debezium's does.
type columnReader struct {
	e        *tableEditor
	c        *columnSlot
	optional *bool // as the text says it
	unique   bool
	listed   bool // in ALTER TABLE ADD (…): most attributes are not read there
}

func (r *columnReader) read(text *columnText) {
	r.fieldType(&text.typ)
	for i := range text.attributes {
		r.attribute(&text.attributes[i])
	}
	r.server(text)
	optional := r.optional == nil || *r.optional
	r.c.Nullable = optional
	if optional && !r.c.HasDefault {
		r.c.HasDefault, r.c.Default = true, nil
	}
}

func (r *columnReader) setOptional(optional bool) { r.optional = &optional }

func (r *columnReader) attribute(a *attribute) {
	c := r.c
	switch a.kind {
	case attrNull:
		r.setOptional(true)
	case attrNotNull:
		r.setOptional(false)
	case attrDefault:
		r.defaultValue(&a.deflt)
	}
	if r.listed {
		return
	}
	switch a.kind {
	case attrOnUpdate, attrAutoIncrement:
		c.AutoInc, c.Generated = true, true
	case attrSerial:
		r.serial()
	case attrUnique:
		r.unique = true
	case attrPrimary:
		r.setOptional(false)
		r.e.key = []keyColumn{{c.Name, c}}
	case attrComment:
		c.Comment = withoutQuotes(a.text)
		c.BlankComment = c.Comment == ""
	case attrCollate:
		if charset, _, ok := strings.Cut(a.text, "_"); ok && charset != "" && c.Charset == "" {
			c.Charset = charset
		}
	}
}

func (r *columnReader) serial() {
	if r.optional == nil {
		r.setOptional(false)
	}
	r.unique = true
	r.c.AutoInc, r.c.Generated = true, true
}

func (r *columnReader) defaultValue(d *defaultText) {
	if d.kind != defaultNull {
		r.c.HasDefault, r.c.Default = true, d.expression()
	}
}

// expression is the text that Debezium keeps of a default: strings without their quotes but with their escapes, 0x00FF
// without its first two and its last character, the epoch for CURRENT_TIMESTAMP, none for an expression.
func (d *defaultText) expression() *string {
	text := d.text
	switch d.kind {
	case defaultNull, defaultExpression:
		return nil
	case defaultNow:
		text = "1970-01-01 00:00:00"
	case defaultString:
		text = d.sign + withoutQuotes(text)
	case defaultNumber, defaultTemporal:
		text = d.sign + text
	case defaultHex, defaultBits:
		if len(text) > 2 {
			text = text[2 : len(text)-1]
		}
	}
	return &text
}

// setExpression is that of ALTER COLUMN … SET DEFAULT, where Debezium knows fewer kinds: NULL and hexadecimal literals become the
// text "null".
func (d *defaultText) setExpression() *string {
	text := d.sign + d.text
	switch d.kind {
	case defaultExpression, defaultNow:
		return nil
	case defaultString:
		text = d.sign + d.intro + d.text
		if d.intro == "" {
			text = d.sign + withoutQuotes(d.text)
		}
	case defaultNull, defaultHex, defaultBits:
		text = d.sign + "null"
	}
	return &text
}

// setServerDefault notes what setExpression has not: NULL, hexadecimal and bit literals. Nil: there is no default any more.
func (c *ColumnDef) setServerDefault(d *defaultText) {
	text := ""
	if d != nil {
		switch d.kind {
		case defaultNull:
			text = "NULL"
		case defaultHex, defaultBits:
			text = d.text
		}
	}
	var server ServerColumn
	if c.Server != nil {
		server = *c.Server
	}
	if server.Default != text {
		server.Default = text
		c.Server = &server
	}
}

// fieldType reads the type of a column.
func (r *columnReader) fieldType(t *typeText) {
	c := r.c
	var name string
	name, c.JDBCType = debeziumType(t)
	r.lengths(t)
	if t.words[0] == "SET" || t.words[0] == "ENUM" {
		c.Length = 1
		if t.words[0] == "SET" {
			c.Length = max(0, 2*len(t.labels)-1) // the labels and the commas between
		}
	}
	stale := c.EnumValues()
	c.Labels, c.Quoted = nil, nil
	for _, label := range t.labels {
		c.Labels = append(c.Labels, withoutQuotes(label.text))
	}
	switch name {
	case "ENUM", "SET":
		if slices.ContainsFunc(t.labels, func(l labelText) bool { return l.text[0] != '\'' }) {
			for _, label := range t.labels {
				c.Quoted = append(c.Quoted, label.text)
			}
		}
	case "SERIAL":
		name = "BIGINT UNSIGNED"
		r.serial()
		fallthrough
	default: // what CHANGE leaves of a column that was one
		if len(stale) > 0 {
			c.Quoted = stale
		}
	}
	c.Type, c.Expression = name, ""
	c.Charset = t.charset
	if t.charsetText != "" && len(t.labels) > 0 {
		c.Charset = t.charsetText // Debezium leaves the quotes
	}
	if c.JDBCType == jdbcNChar || c.JDBCType == jdbcNVarchar {
		c.Charset = "utf8"
		if c.JDBCType == jdbcNChar && c.Length == -1 {
			c.Length = 1
		}
	}
}

// debeziumType is the name that Debezium gives a type, and its JDBC type. It knows types by their tokens, of which those
// of national text with BINARY are taken for others.
func debeziumType(t *typeText) (name string, jdbc int) {
	name, jdbc = strings.Join(t.words, " "), jdbcType(t.words)
	binary := t.binary && !t.ascii && !t.unicode
	switch {
	case name == "NCHAR VARCHARACTER" && !binary:
		name = "NCHAR VARCHAR"
	case !binary:
	case name == "NATIONAL CHAR", name == "NATIONAL CHARACTER":
		return "BINARY BINARY", jdbcBinary
	case len(t.words) == 2 && (t.words[0] == "NATIONAL" || t.words[0] == "NCHAR") && strings.HasPrefix(t.words[1], "VARCHAR"):
		return t.words[1] + " BINARY", jdbcVarchar
	}
	sign := ""
	for _, option := range t.options {
		switch option {
		case "ZEROFILL":
			sign = " UNSIGNED ZEROFILL"
		default:
			if !strings.HasSuffix(sign, "ZEROFILL") {
				sign = " " + option
			}
		}
	}
	if name += sign; binary {
		name += " BINARY"
	}
	return name, jdbc
}

// isNational says whether a type is of national text, whose character set is utf8mb3.
func (t *typeText) isNational() bool {
	return t.words[0] == "NATIONAL" || t.words[0] == "NCHAR" || t.words[0] == "NVARCHAR"
}

// lengths reads the numbers after a type's name, and puts in those that Debezium takes for granted.
func (r *columnReader) lengths(t *typeText) {
	c := r.c
	switch t.words[0] {
	case "TIME", "TIMESTAMP", "DATETIME":
		if len(t.numbers) > 0 {
			c.Length, _ = strconv.Atoi(t.numbers[0])
		}
		return
	case "ENUM", "SET":
		return
	}
	if len(t.numbers) > 0 {
		c.Length = fieldLength(t.numbers[0])
	}
	if len(t.numbers) > 1 {
		c.Scale, _ = strconv.Atoi(t.numbers[1])
	}
	switch t.words[0] {
	case "DECIMAL", "DEC", "FIXED", "NUMERIC":
		if c.Length == -1 {
			c.Length = 10
		}
		if c.Scale == -1 {
			c.Scale = 0
		}
	case "BIT":
		if c.Length == -1 {
			c.Length = 1
		}
	}
}

// fieldLength is a length as Debezium takes it: 10 for 0, and not beyond Java's int.
func fieldLength(text string) int {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 10
		}
		n = int64(min(f, math.MaxInt32))
	}
	if n <= 0 {
		return 10
	}
	return int(min(n, math.MaxInt32))
}

// server notes what the server makes of the column.
func (r *columnReader) server(text *columnText) {
	t := &text.typ
	server := &ServerColumn{}
	charset := t.serverCharset("")
	for _, a := range text.attributes {
		switch {
		case a.kind == attrCharset:
			charset = a.value
		case a.kind == attrCollate && charset == "":
			charset = charsetOfCollation(a.value)
		case a.kind == attrDefault && (a.deflt.kind == defaultHex || a.deflt.kind == defaultBits && a.deflt.text[0] == '0'):
			server.Default = a.deflt.text // expression loses its last digit
		}
	}
	if charset == "" {
		charset = r.e.def.ServerCharset
		if charset == "" {
			charset = r.e.def.DefaultCharset
		}
	}
	if usesCharset(r.c.JDBCType) || t.isNational() {
		server.Charset = strings.ToLower(charset)
	}
	for _, label := range t.labels {
		server.Labels = append(server.Labels, label.trimmed(charset))
	}
	r.c.Server = server
}

// charsetOfCollation is the character set that a collation is of: its name begins with it.
func charsetOfCollation(collation string) string {
	charset, _, _ := strings.Cut(collation, "_")
	return strings.ToLower(charset)
}

// sameCharset compares names of character sets. utf8 is another name of utf8mb3.
func sameCharset(a, b string) bool {
	plain := func(name string) string {
		if name = strings.ToLower(name); name == "utf8" {
			return "utf8mb3"
		}
		return name
	}
	return plain(a) == plain(b)
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
	e := &tableEditor{def: Definition{Database: database, Name: table, DefaultCharset: charset}}
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
