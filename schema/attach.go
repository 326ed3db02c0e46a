package schema

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Attach fills in what TABLE_MAP does not say (defaults, BOOL, display widths, the record key of a table without a
// primary key) from a definition of the table that has exactly its columns; else from prev, the version before, and from
// def for the columns of the same name and kind. It returns a sentence for each thing that it could not fill in. t must
// not have been handed out or attached yet; def and prev may be nil and are not changed, but t keeps pointers into them.
func Attach(t *Table, def *Definition, prev *Table) (warnings []string) {
	exact := def != nil && matches(t, def)
	var missing []string
	for i := range t.Columns {
		c := &t.Columns[i]
		old := prev.columnDef(c)
		switch {
		case exact && def.KeyKind == KeyChosen: // DDL has said what it is
			c.Def = &def.Columns[i]
		case exact:
			c.Def = keepBool(&def.Columns[i], old)
		case old != nil:
			c.Def = old
		case def != nil:
			if j := def.index(c.Name); j >= 0 && fits(c, &def.Columns[j]) {
				c.Def = &def.Columns[j]
			}
		}
		if c.Def == nil {
			missing = append(missing, c.Name)
		}
	}
	if len(missing) > 0 {
		warnings = append(warnings, fmt.Sprintf(
			"no definition of table %s.%s fits its columns in the binlog: the schema has no defaults for %s",
			t.Database, t.Name, enumerate(missing)))
	}
	return append(warnings, t.attachKey(def, prev, exact)...)
}

// attachKey sets the record's key. What TABLE_MAP has holds at the row's moment; a definition may be of another one, but
// only it has the keys that Debezium takes and the server does not.
func (t *Table) attachKey(def *Definition, prev *Table, exact bool) (warnings []string) {
	t.BinlogKey = t.Key
	var old []string
	chosen := false // prev's key is the choice of a definition
	if prev != nil {
		old = prev.names(prev.Key)
		chosen = len(old) > 0 && !slices.Equal(prev.Key, prev.BinlogKey)
	}
	switch {
	case exact:
		t.Key = t.definedKey(def)
	case t.Key != nil:
		if chosen && sameNames(t.names(t.Key), prev.names(prev.BinlogKey)) && (def == nil || def.KeyKind != KeyPrimary) {
			if key := t.indexes(old); key != nil {
				t.Key = key
			}
		}
	case chosen:
		if t.Key = t.indexes(old); t.Key == nil {
			warnings = append(warnings, fmt.Sprintf(
				"table %s.%s has no primary key and no longer the columns (%s) that were its key: its records have none",
				t.Database, t.Name, strings.Join(old, ", ")))
		}
	case len(old) > 0:
		// A history's key may be the one that is gone; of the others it is known.
		if def != nil && (def.KeyKind != KeyChosen || !sameNames(def.Key, old)) {
			t.Key = t.uniqueKey(def)
		}
		if t.Key == nil {
			warnings = append(warnings, fmt.Sprintf(
				"table %s.%s no longer has the key (%s), and no definition fits that has another: its records have none",
				t.Database, t.Name, strings.Join(old, ", ")))
		}
	case prev != nil:
	case def != nil:
		t.Key = t.uniqueKey(def)
	default:
		warnings = append(warnings, fmt.Sprintf(
			"table %s.%s has no primary key, and its unique keys are not known: its records have no key", t.Database, t.Name))
	}
	return warnings
}

// definedKey is the record's key when def has exactly t's columns.
func (t *Table) definedKey(def *Definition) []int {
	switch def.KeyKind {
	case KeyPrimary: // TABLE_MAP has it, or def is of another moment
		return t.BinlogKey
	case KeyUnique:
		if t.BinlogKey == nil {
			return t.uniqueKey(def)
		}
		if !def.isUnique(t.names(t.BinlogKey)) { // a key that def does not have yet, or no longer
			return t.BinlogKey
		}
	case KeyChosen: // which may be of columns that can be NULL: Debezium takes an inline UNIQUE whatever it is of
		if len(def.Key) == 0 {
			return nil
		}
		if key := t.find(def.Key); key != nil {
			return key
		}
		return t.BinlogKey
	}
	if key := t.indexes(def.Key); key != nil {
		return key
	}
	return t.BinlogKey
}

// uniqueKey is the key that def gives t when TABLE_MAP has none: one that the server does not take for a primary key.
func (t *Table) uniqueKey(def *Definition) []int {
	if def.KeyKind == KeyPrimary || def.isUnique(def.Key) {
		return nil
	}
	return t.indexes(def.Key)
}

// isUnique says whether the server can take a key of these columns for a primary key.
func (d *Definition) isUnique(key []string) bool {
	return slices.ContainsFunc(d.Unique, func(unique []string) bool { return sameNames(unique, key) })
}

func sameNames(a, b []string) bool { return slices.EqualFunc(a, b, strings.EqualFold) }

// names are the names of columns.
func (t *Table) names(columns []int) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = t.Columns[c].Name
	}
	return names
}

// enumerate names the first few of a list.
func enumerate(names []string) string {
	const most = 8
	if len(names) > most+1 {
		return fmt.Sprintf("%s and %d more columns", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// matches says whether def has exactly t's columns, in order.
func matches(t *Table, def *Definition) bool {
	return slices.EqualFunc(t.Columns, def.Columns, func(c Column, d ColumnDef) bool {
		return strings.EqualFold(c.Name, d.Name) && fits(&c, &d)
	})
}

// columnDef finds the definition of the column of the same name, if it fits c. It returns nil for a nil table.
func (t *Table) columnDef(c *Column) *ColumnDef {
	if t == nil {
		return nil
	}
	for i := range t.Columns {
		if d := t.Columns[i].Def; d != nil && strings.EqualFold(t.Columns[i].Name, c.Name) && fits(c, d) {
			return d
		}
	}
	return nil
}

// keepBool returns def, but with the type BOOL if the column was one: the server prints TINYINT(1) for it.
func keepBool(def, old *ColumnDef) *ColumnDef {
	if !isBool(old) || def.Type != "TINYINT" || def.Length != 1 {
		return def
	}
	kept := *def
	kept.Type, kept.Length = old.Type, old.Length
	return &kept
}

// find finds columns by name; nil unless all are there.
func (t *Table) find(names []string) []int {
	var key []int
	for _, name := range names {
		i := slices.IndexFunc(t.Columns, func(c Column) bool { return strings.EqualFold(c.Name, name) })
		if i < 0 {
			return nil
		}
		key = append(key, i)
	}
	return key
}

// indexes finds columns by name; nil unless all are there and must have a value.
func (t *Table) indexes(names []string) []int {
	key := t.find(names)
	if slices.ContainsFunc(key, func(i int) bool { return t.Columns[i].Nullable }) {
		return nil
	}
	return key
}

// fits says whether a column of the binlog can be what a definition says: the kind of type, and of it what TABLE_MAP has.
// The words are those of SHOW CREATE TABLE and of DDL texts.
func fits(c *Column, d *ColumnDef) bool {
	words := strings.Fields(d.Type)
	if len(words) == 0 {
		return false
	}
	unsigned := slices.Contains(words, "UNSIGNED") || slices.Contains(words, "ZEROFILL")
	is := func(codes ...uint8) bool { return slices.Contains(codes, c.Type) }
	integer := func(code uint8) bool { return c.Type == code && c.Unsigned == unsigned }
	fraction := func() bool { return int(c.Meta) == max(0, d.Length) }
	switch words[0] {
	case "TINYINT", "INT1", "BOOL", "BOOLEAN":
		return integer(typeTiny)
	case "SMALLINT", "INT2":
		return integer(typeShort)
	case "MEDIUMINT", "MIDDLEINT", "INT3":
		return integer(typeInt24)
	case "INT", "INTEGER", "INT4":
		return integer(typeLong)
	case "BIGINT", "INT8":
		return integer(typeLonglong)
	case "SERIAL":
		return is(typeLonglong) && c.Unsigned
	case "DECIMAL", "NUMERIC", "DEC", "FIXED":
		precision, scale := d.Length, max(0, d.Scale)
		if precision < 0 {
			precision = 10
		}
		return is(typeNewDecimal) && int(c.Meta>>8) == precision && int(c.Meta&0xff) == scale
	case "FLOAT", "FLOAT4", "REAL", "DOUBLE", "FLOAT8":
		return is(typeFloat, typeDouble)
	case "BIT":
		bits := int(c.Meta>>8)*8 + int(c.Meta&0xff)
		return is(typeBit) && (bits == max(1, d.Length) || bits == 1 && d.Length == 10) // 10 is what BIT(0) becomes
	case "YEAR":
		return is(typeYear)
	case "DATE":
		return is(typeDate, typeNewDate)
	case "TIME":
		return is(typeTime) || is(typeTime2) && fraction()
	case "DATETIME":
		return is(typeDatetime) || is(typeDatetime2) && fraction()
	case "TIMESTAMP":
		return is(typeTimestamp) || is(typeTimestamp2) && fraction()
	case "BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB":
		if d.Server != nil && d.Server.Charset != "" { // NATIONAL CHAR BINARY, which Debezium takes for BINARY
			return isText(c) && fitsCharset(c, d)
		}
		return isText(c) && c.Collation == binaryCollation
	case "CHAR", "CHARACTER", "NCHAR", "NATIONAL", "VARCHAR", "NVARCHAR", "VARCHARACTER",
		"TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT":
		return isText(c) && fitsCharset(c, d)
	case "LONG":
		if len(words) > 1 && words[1] == "VARBINARY" {
			return isText(c) && c.Collation == binaryCollation
		}
		return isText(c) && fitsCharset(c, d)
	case "ENUM":
		return is(typeEnum) && fitsLabels(c, d)
	case "SET":
		return is(typeSet) && fitsLabels(c, d)
	case "JSON":
		return is(typeJSON) || isText(c) // MariaDB's is text
	case "GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON",
		"GEOMETRYCOLLECTION", "GEOMCOLLECTION":
		return is(typeGeometry)
	case "VECTOR":
		return is(typeVector) || isText(c) // MariaDB's is bytes
	case "UUID", "INET4", "INET6": // MariaDB's
		return is(typeString)
	case "XMLTYPE", "VARCHAR2", "CLOB":
		return isText(c)
	}
	return false
}

func isText(c *Column) bool {
	switch c.Type {
	case typeVarchar, typeVarString, typeString, typeBlob, typeTinyBlob, typeMediumBlob, typeLongBlob,
		typeBlobCompressed, typeVarcharCompressed:
		return true
	}
	return false
}

// fitsCharset compares the character sets, where both are known. Of NCHAR and its kin a history has utf8, whatever the
// server's name for it.
func fitsCharset(c *Column, d *ColumnDef) bool {
	charset, defined := charsetName(c.Collation), d.ServerCharset()
	return charset == "" || defined == "" || sameCharset(charset, defined) || strings.EqualFold(d.Charset, "utf8") && charset == "utf8mb3"
}

// fitsLabels compares labels. Those that the server makes of a DDL text are known; of others it is not known what quotes
// they had.
func fitsLabels(c *Column, d *ColumnDef) bool {
	if d.Server != nil && d.Server.Labels != nil {
		return slices.EqualFunc(c.Labels, d.Server.Labels, sameLabel) || slices.EqualFunc(c.Labels, d.Labels, fitsLabel)
	}
	return slices.EqualFunc(c.Labels, d.Labels, fitsLabel)
}

// fitsLabel says whether the text of a label in a definition can stand for a label of the binlog. What quotes it had and
// whether backslashes were escapes there is not known.
func fitsLabel(label, text string) bool {
	return sameLabel(label, unescaped(text, '\'', true)) || sameLabel(label, unescaped(text, '\'', false)) ||
		sameLabel(label, unescaped(text, '"', true)) || sameLabel(label, unescaped(text, '"', false))
}

// sameLabel compares a label of the binlog with that of a definition. SHOW CREATE TABLE has ? for characters beyond the
// basic plane, a character that could not be decoded may be any, and the server cuts the blanks at the end.
func sameLabel(label, defined string) bool {
	label, defined = strings.TrimRight(label, " "), strings.TrimRight(defined, " ")
	for _, r := range label {
		d, size := utf8.DecodeRuneInString(defined)
		if size == 0 || d != r && r != utf8.RuneError && (d != '?' || r <= 0xffff) {
			return false
		}
		defined = defined[size:]
	}
	return defined == ""
}

// unescaped undoes the doubled quotes of a string's text, and its escapes if backslashes make any.
func unescaped(text string, quote byte, backslashes bool) string {
	if strings.IndexByte(text, quote) < 0 && strings.IndexByte(text, '\\') < 0 {
		return text
	}
	plain := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case i+1 == len(text):
		case c == quote && text[i+1] == quote:
			i++
		case c == '\\' && backslashes:
			i++
			switch c = text[i]; c {
			case 'n':
				c = '\n'
			case 't':
				c = '\t'
			case 'r':
				c = '\r'
			case 'b':
				c = '\b'
			case '0':
				c = 0
			case 'Z':
				c = 26
			case '%', '_': // the backslash stays before these
				plain = append(plain, '\\')
			}
		}
		plain = append(plain, c)
	}
	return string(plain)
}
