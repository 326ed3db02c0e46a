package schema

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// What Debezium's ColumnDefinitionParserListener makes of a column.

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
		if r.e.mariaDB {
			break // it counts directly behind a type of text
		}
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

// fieldType reads the type of a column.
func (r *columnReader) fieldType(t *typeText) {
	c := r.c
	var name string
	name, c.JDBCType = debeziumType(t, r.e.mariaDB)
	r.lengths(t)
	if t.words[0] == "SET" || t.words[0] == "ENUM" {
		c.Length = 1
		if t.words[0] == "SET" && !(r.e.mariaDB && t.binary) {
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
	if r.e.mariaDB && c.Charset == "" && t.collate != "" && usesCharset(c.JDBCType) && len(t.labels) == 0 {
		c.Charset = charsetOfCollation(t.collate)
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
func debeziumType(t *typeText, mariaDB bool) (name string, jdbc int) {
	name, jdbc = strings.Join(t.words, " "), jdbcType(t.words)
	binary := t.binary && !t.ascii && !t.unicode
	switch {
	case mariaDB: // whose grammar has no BINARY behind these
		if t.words[len(t.words)-1] == "VARYING" || t.words[0] == "LONG" || t.words[0] == "CHARACTER" {
			binary = false
		}
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
		switch {
		case option == "ZEROFILL":
			sign = " UNSIGNED ZEROFILL"
		case strings.HasSuffix(sign, "ZEROFILL"), mariaDB && sign == " UNSIGNED":
		default:
			sign = " " + option
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
		c.Length = fieldLength(t.numbers[0], r.e.mariaDB)
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
	case "VECTOR":
		if c.Length == -1 && r.e.mariaDB {
			c.Length = 2048
		}
	}
}

// fieldLength is a length as Debezium takes it: 10 for 0 but for MariaDB, and not beyond Java's int.
func fieldLength(text string, zero bool) int {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 10
		}
		n = int64(min(f, math.MaxInt32))
	}
	if n <= 0 && !zero {
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
