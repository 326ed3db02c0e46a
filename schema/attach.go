package schema

import (
	"fmt"
	"slices"
	"strings"
)

// Attach fills in what TABLE_MAP does not say (defaults, BOOL, display widths, the record key of a table without a
// primary key) from a definition of the table that has exactly its columns; else from prev, the version before, and from
// def for the columns of the same name and kind. It returns a sentence for each thing that it could not fill in. t must
// not have been handed out yet; def and prev may be nil and are not changed, but t keeps pointers into them.
func Attach(t *Table, def *Definition, prev *Table) (warnings []string) {
	exact := def != nil && matches(t, def)
	var missing []string
	for i := range t.Columns {
		c := &t.Columns[i]
		old := prev.columnDef(c)
		switch {
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
	if t.Key != nil {
		return warnings
	}
	switch {
	case exact:
		t.Key = t.indexes(def.Key)
	case prev != nil:
		names := make([]string, 0, len(prev.Key))
		for _, i := range prev.Key {
			names = append(names, prev.Columns[i].Name)
		}
		t.Key = t.indexes(names)
		if len(names) > 0 && t.Key == nil {
			warnings = append(warnings, fmt.Sprintf(
				"table %s.%s has no primary key and no longer the columns (%s) that were its key: its records have none",
				t.Database, t.Name, strings.Join(names, ", ")))
		}
	case def != nil:
		t.Key = t.indexes(def.Key)
	default:
		warnings = append(warnings, fmt.Sprintf(
			"table %s.%s has no primary key, and its unique keys are not known: its records have no key", t.Database, t.Name))
	}
	return warnings
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

// indexes finds columns by name; nil unless all are there and must have a value.
func (t *Table) indexes(names []string) []int {
	var key []int
	for _, name := range names {
		i := slices.IndexFunc(t.Columns, func(c Column) bool { return strings.EqualFold(c.Name, name) })
		if i < 0 || t.Columns[i].Nullable {
			return nil
		}
		key = append(key, i)
	}
	return key
}

// fits says whether a column of the binlog can be what a definition says: the kind of type, and of it what TABLE_MAP has.
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
		return is(typeBit) && int(c.Meta>>8)*8+int(c.Meta&0xff) == max(1, d.Length)
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
		return isText(c) && c.Collation == binaryCollation
	case "CHAR", "CHARACTER", "NCHAR", "NATIONAL", "VARCHAR", "NVARCHAR", "VARCHARACTER", "LONG",
		"TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT":
		return isText(c)
	case "ENUM":
		return is(typeEnum) && len(c.Labels) == len(d.Labels)
	case "SET":
		return is(typeSet) && len(c.Labels) == len(d.Labels)
	case "JSON":
		return is(typeJSON)
	case "GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON",
		"GEOMETRYCOLLECTION", "GEOMCOLLECTION":
		return is(typeGeometry)
	case "VECTOR":
		return is(typeVector)
	}
	return false
}

func isText(c *Column) bool {
	switch c.Type {
	case typeVarchar, typeVarString, typeString, typeBlob, typeTinyBlob, typeMediumBlob, typeLongBlob:
		return true
	}
	return false
}
