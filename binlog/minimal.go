package binlog

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-cdc/tidemark/schema"
)

// metadata is the set of fields of optional metadata that a TABLE_MAP has. binlog_row_metadata=FULL has all; MINIMAL has
// signs, character sets and geometry types on MySQL 8.0 and later; MySQL 5.7 and MariaDB's default have none.
type metadata uint16

func (m metadata) has(field byte) bool { return m&(1<<field) != 0 }

// errMetadata is a TABLE_MAP without column names for which no definition is known.
var errMetadata = errors.New("the binlog has no column names here, since binlog_row_metadata was MINIMAL when this was written, and the table's definition at this " +
	"position is not known. Choices: SET PERSIST binlog_row_metadata=FULL and start behind what was written without it " + howToStart +
	"; or start before the table's CREATE TABLE, if the binlogs still have it; or name the schema history of the connector that read this before (schema.history.internal.*)")

// complete fills in what a TABLE_MAP without column names does not say: names, signs, character sets, labels, geometry
// types and the key, as the definition at this position has them. What the TABLE_MAP does have (the number of columns,
// their types with lengths, whether they may be NULL, and signs where they are there) must be the definition's, or the
// table was altered unseen.
func complete(t *schema.Table, has metadata, def *schema.Definition) error {
	if def == nil {
		return errMetadata
	}
	misfit := func(what string, args ...any) error {
		return fmt.Errorf("the columns in the binlog are not those of the definition known at this position: %s. The table was altered without the binlog (sql_log_bin=0?), "+
			"and the binlog has no column names, since binlog_row_metadata was MINIMAL when this was written. "+
			"Choices: SET PERSIST binlog_row_metadata=FULL, take a new snapshot of the table and start behind this position %s; "+
			"or name a schema history that has the change (schema.history.internal.*)", fmt.Sprintf(what, args...), howToStart)
	}
	if len(def.Columns) != len(t.Columns) {
		return misfit("there are %d in the binlog and %d in the definition", len(t.Columns), len(def.Columns))
	}
	for i := range t.Columns {
		c, d := &t.Columns[i], &def.Columns[i]
		words := strings.Fields(d.Type)
		if len(words) == 0 {
			words = []string{""}
		}
		unsigned := slices.Contains(words, "UNSIGNED") || slices.Contains(words, "ZEROFILL") || words[0] == "SERIAL"
		if what := misfits(c, d, words[0]); what != "" {
			return misfit("column %s (number %d) is %s in the definition, and %s", d.Name, i+1, typeText(d), what)
		}
		if has.has(metaSignedness) && isNumeric(c) && isInteger(c) && c.Unsigned != unsigned {
			return misfit("column %s (number %d) is %s in the definition, and unsigned is %v in the binlog", d.Name, i+1, typeText(d), c.Unsigned)
		}
		key := slices.ContainsFunc(def.Key, func(name string) bool { return strings.EqualFold(name, d.Name) })
		if nullable := d.Nullable && words[0] != "SERIAL"; c.Nullable != nullable && !key && words[0] != "TIMESTAMP" && !d.Generated {
			return misfit("column %s (number %d) may be NULL: %v in the definition, %v in the binlog", d.Name, i+1, nullable, c.Nullable)
		}
		c.Name = d.Name
		if isNumeric(c) && !has.has(metaSignedness) {
			c.Unsigned = unsigned
		}
		if isCharacter(c) && !has.has(metaColumnCharset) && !has.has(metaDefaultCharset) {
			c.Collation = collationOf(d, words[0])
		}
		if isEnumOrSet(c) {
			if !has.has(metaEnumSetCharset) && !has.has(metaEnumSetDefault) {
				c.Collation = collationOf(d, words[0])
			}
			c.Labels = d.ServerLabels()
		}
		if isGeometry(c) && !has.has(metaGeometryType) {
			c.Geometry = geometryType(words[0])
		}
	}
	t.Key = keyOf(t, def)
	return nil
}

// keyOf is the record's key by a definition of exactly the table's columns.
func keyOf(t *schema.Table, def *schema.Definition) []int {
	var key []int
	for _, name := range def.Key {
		i := slices.IndexFunc(t.Columns, func(c schema.Column) bool { return strings.EqualFold(c.Name, name) })
		if i < 0 {
			return nil
		}
		key = append(key, i)
	}
	return key
}

// typeText is a column's type in messages.
func typeText(d *schema.ColumnDef) string {
	switch {
	case len(d.Labels) > 0:
		return fmt.Sprintf("%s of %d labels", d.Type, len(d.Labels))
	case d.Scale >= 0:
		return fmt.Sprintf("%s(%d,%d)", d.Type, d.Length, d.Scale)
	case d.Length >= 0:
		return fmt.Sprintf("%s(%d)", d.Type, d.Length)
	}
	return d.Type
}

func isInteger(c *schema.Column) bool {
	switch c.Type {
	case typeTiny, typeShort, typeInt24, typeLong, typeLongLong:
		return true
	}
	return false
}

// misfits says what the binlog has if it cannot be of a column of this definition; "" if it can. A type that is not known
// fits: the cells are read by the binlog's type in any case.
func misfits(c *schema.Column, d *schema.ColumnDef, kind string) string {
	is := func(codes ...uint8) string {
		packed := c.Type == typeBlobPacked && slices.Contains(codes, typeBlob) || c.Type == typeCharPacked && slices.Contains(codes, typeVarchar)
		if !packed && !slices.Contains(codes, c.Type) {
			return fmt.Sprintf("%s in the binlog", typeName(c.Type))
		}
		return ""
	}
	number := func(what string, in, due int, code string) string {
		if code == "" && in != due {
			return fmt.Sprintf("has %d %s in the binlog instead of %d", in, what, due)
		}
		return code
	}
	fraction := func(old, now uint8) string {
		if c.Type == old {
			return ""
		}
		return number("digits after the second", int(c.Meta), max(0, d.Length), is(now))
	}
	switch kind {
	case "TINYINT", "INT1", "BOOL", "BOOLEAN":
		return is(typeTiny)
	case "SMALLINT", "INT2":
		return is(typeShort)
	case "MEDIUMINT", "MIDDLEINT", "INT3":
		return is(typeInt24)
	case "INT", "INTEGER", "INT4":
		return is(typeLong)
	case "BIGINT", "INT8", "SERIAL":
		return is(typeLongLong)
	case "DECIMAL", "NUMERIC", "DEC", "FIXED":
		precision, scale := d.Length, max(0, d.Scale)
		if precision < 0 {
			precision = 10
		}
		if code := is(typeNewDecimal); code != "" || int(c.Meta>>8) == precision && int(c.Meta&0xff) == scale {
			return code
		}
		return fmt.Sprintf("DECIMAL(%d,%d) in the binlog", c.Meta>>8, c.Meta&0xff)
	case "FLOAT", "FLOAT4", "REAL", "DOUBLE", "FLOAT8": // a length and sql_mode decide which of the two
		return is(typeFloat, typeDouble)
	case "BIT":
		return number("bits", int(c.Meta>>8)*8+int(c.Meta&0xff), max(1, d.Length), is(typeBit))
	case "YEAR":
		return is(typeYear)
	case "DATE":
		return is(typeDate, typeNewDate)
	case "TIME":
		return fraction(typeTime, typeTime2)
	case "DATETIME":
		return fraction(typeDatetime, typeDatetime2)
	case "TIMESTAMP":
		return fraction(typeTimestamp, typeTimestamp2)
	case "CHAR", "CHARACTER", "NCHAR", "BINARY":
		if code := is(typeString); code != "" {
			return code
		}
		return number("bytes", int(c.Meta&0xff|(c.Meta>>4&0x300^0x300)), max(1, d.Length)*bytesPerCharacter(d, kind), "")
	case "VARCHAR", "NVARCHAR", "VARCHARACTER", "VARBINARY":
		if code := is(typeVarchar, typeVarString); code != "" || d.Length == 10 && c.Meta == 0 { // Debezium's history has 10 for VARCHAR(0)
			return code
		}
		if c.Type == typeCharPacked { // whose length counts the byte with the method
			return ""
		}
		return number("bytes", int(c.Meta), max(0, d.Length)*bytesPerCharacter(d, kind), "")
	case "NATIONAL":
		return is(typeString, typeVarchar, typeVarString)
	case "TINYTEXT", "TINYBLOB":
		return number("bytes of length", int(c.Meta), 1, is(typeBlob))
	case "TEXT", "BLOB":
		if d.Length >= 0 { // the server chose the size
			return is(typeBlob)
		}
		return number("bytes of length", int(c.Meta), 2, is(typeBlob))
	case "MEDIUMTEXT", "MEDIUMBLOB", "LONG":
		return number("bytes of length", int(c.Meta), 3, is(typeBlob))
	case "LONGTEXT", "LONGBLOB":
		return number("bytes of length", int(c.Meta), 4, is(typeBlob))
	case "ENUM":
		size := 1
		if len(d.Labels) > 255 {
			size = 2
		}
		return number("bytes", int(c.Meta&0xff), size, is(typeEnum))
	case "SET":
		size := (len(d.Labels) + 7) / 8
		if size > 4 {
			size = 8
		}
		return number("bytes", int(c.Meta&0xff), size, is(typeSet))
	case "JSON": // MariaDB's is a LONGTEXT
		return is(typeJSON, typeBlob)
	case "GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION", "GEOMCOLLECTION":
		return is(typeGeometry)
	case "VECTOR": // MariaDB's is a VARBINARY
		return is(typeVector, typeVarchar)
	}
	return ""
}

// typeName names a type of the binlog in messages.
func typeName(code uint8) string {
	names := map[uint8]string{
		typeTiny: "TINYINT", typeShort: "SMALLINT", typeInt24: "MEDIUMINT", typeLong: "INT", typeLongLong: "BIGINT", typeFloat: "FLOAT", typeDouble: "DOUBLE",
		typeNewDecimal: "DECIMAL", typeBit: "BIT", typeYear: "YEAR", typeDate: "DATE", typeNewDate: "DATE", typeTime: "TIME", typeTime2: "TIME",
		typeDatetime: "DATETIME", typeDatetime2: "DATETIME", typeTimestamp: "TIMESTAMP", typeTimestamp2: "TIMESTAMP", typeString: "CHAR or BINARY",
		typeVarchar: "VARCHAR or VARBINARY", typeVarString: "VARCHAR or VARBINARY", typeBlob: "TEXT or BLOB", typeEnum: "ENUM", typeSet: "SET",
		typeJSON: "JSON", typeGeometry: "GEOMETRY", typeVector: "VECTOR",
	}
	if name := names[code]; name != "" {
		return name
	}
	return "type " + strconv.Itoa(int(code))
}

// characterSet is the name of a column's character set.
func characterSet(d *schema.ColumnDef, kind string) string {
	switch kind {
	case "BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB", "VECTOR":
		return "binary"
	case "NCHAR", "NVARCHAR", "NATIONAL":
		if d.Server == nil {
			return "utf8mb3"
		}
	case "LONG": // LONG VARBINARY is a MEDIUMBLOB, LONG and LONG VARCHAR are MEDIUMTEXT
		if strings.Contains(d.Type, "BINARY") {
			return "binary"
		}
	}
	return strings.ToLower(d.ServerCharset())
}

// bytesPerCharacter is what the server counts for a character of the column's length.
func bytesPerCharacter(d *schema.ColumnDef, kind string) int {
	switch characterSet(d, kind) {
	case "utf8mb4", "utf16", "utf16le", "utf32", "gb18030", "":
		return 4
	case "utf8mb3", "utf8", "ujis", "eucjpms":
		return 3
	case "ucs2", "gbk", "gb2312", "big5", "sjis", "cp932", "euckr":
		return 2
	}
	return 1
}

// collationOf is a collation of the column's character set: how its text is ordered does not matter here. Without a known
// one text is taken for UTF-8, as Debezium does.
func collationOf(d *schema.ColumnDef, kind string) uint32 {
	ids := map[string]uint32{
		"big5": 1, "dec8": 3, "cp850": 4, "hp8": 6, "koi8r": 7, "latin1": 8, "latin2": 9, "swe7": 10, "ascii": 11, "ujis": 12, "sjis": 13, "hebrew": 16,
		"tis620": 18, "euckr": 19, "koi8u": 22, "gb2312": 24, "greek": 25, "cp1250": 26, "gbk": 28, "latin5": 30, "armscii8": 32, "utf8": 33, "utf8mb3": 33,
		"ucs2": 35, "cp866": 36, "keybcs2": 37, "macce": 38, "macroman": 39, "cp852": 40, "latin7": 41, "utf8mb4": 45, "cp1251": 51, "utf16": 54, "utf16le": 56,
		"cp1256": 57, "cp1257": 59, "utf32": 60, "binary": binaryCollation, "geostd8": 92, "cp932": 95, "eucjpms": 97, "gb18030": 248,
	}
	if id := ids[characterSet(d, kind)]; id != 0 {
		return id
	}
	return ids["utf8mb4"]
}

// geometryType is MySQL's number of a type of geometries.
func geometryType(kind string) uint8 {
	all := []string{"GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION"}
	if kind == "GEOMCOLLECTION" {
		return 7
	}
	return uint8(max(0, slices.Index(all, kind)))
}
