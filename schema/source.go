package schema

import (
	"strconv"
	"strings"
)

// The parameters of column.propagate.source.type and datatype.propagate.source.type, in their order.
const (
	sourceTypeParameter    = "__debezium.source.column.type"
	sourceLengthParameter  = "__debezium.source.column.length"
	sourceScaleParameter   = "__debezium.source.column.scale"
	sourceCommentParameter = "__debezium.source.column.comment"
	sourceNameParameter    = "__debezium.source.column.name"
)

// showsSource says whether the column's schema carries its source type.
func (m *mapper) showsSource() bool {
	if m.SourceColumn != nil && m.SourceColumn(m.database, m.table, m.c.Name) {
		return true
	}
	if m.SourceType == nil {
		return false
	}
	name, _, _ := m.c.source()
	return m.SourceType(m.database, m.table, m.c.Name, name)
}

// sourceParameters appends the column's source type.
func (m *mapper) sourceParameters(p []Parameter) []Parameter {
	c := m.c
	name, length, scale := c.source()
	p = append(p, Parameter{sourceTypeParameter, strings.ToUpper(name)})
	if length >= 0 {
		p = append(p, Parameter{sourceLengthParameter, strconv.Itoa(length)})
	}
	if scale >= 0 {
		p = append(p, Parameter{sourceScaleParameter, strconv.Itoa(scale)})
	}
	if c.Def != nil && m.Comments && (c.Def.Comment != "" || c.Def.BlankComment) {
		p = append(p, Parameter{sourceCommentParameter, c.Def.Comment})
	}
	return append(p, Parameter{sourceNameParameter, c.Name})
}

// source is the column's type, length and scale (-1 for none) as its definition has them, or, without one, as SHOW
// CREATE TABLE would give them as far as TABLE_MAP tells.
func (c *Column) source() (name string, length, scale int) {
	if c.Def != nil {
		return c.Def.Type, c.Def.Length, c.Def.Scale
	}
	name, length, scale = c.guessSource()
	if c.Unsigned && c.Type != typeYear { // of which TABLE_MAP says that it is
		name += " UNSIGNED"
	}
	return name, length, scale
}

func (c *Column) guessSource() (name string, length, scale int) {
	meta := int(c.Meta)
	fraction := meta
	if fraction == 0 {
		fraction = -1
	}
	binary := c.Collation == binaryCollation
	either := func(text, bytes string) string {
		if binary {
			return bytes
		}
		return text
	}
	chars := func(bytes int) int { return bytes / charBytesOf(charsetName(c.Collation)) }
	switch c.Type {
	case typeTiny:
		return "TINYINT", -1, -1
	case typeShort:
		return "SMALLINT", -1, -1
	case typeInt24:
		return "MEDIUMINT", -1, -1
	case typeLong:
		return "INT", -1, -1
	case typeLonglong:
		return "BIGINT", -1, -1
	case typeFloat:
		return "FLOAT", -1, -1
	case typeDouble:
		return "DOUBLE", -1, -1
	case typeNewDecimal:
		return "DECIMAL", meta >> 8, meta & 0xff
	case typeBit:
		return "BIT", meta>>8*8 + meta&0xff, -1
	case typeYear:
		return "YEAR", -1, -1
	case typeDate, typeNewDate:
		return "DATE", -1, -1
	case typeTime2:
		return "TIME", fraction, -1
	case typeTime:
		return "TIME", -1, -1
	case typeDatetime2:
		return "DATETIME", fraction, -1
	case typeDatetime:
		return "DATETIME", -1, -1
	case typeTimestamp2:
		return "TIMESTAMP", fraction, -1
	case typeTimestamp:
		return "TIMESTAMP", -1, -1
	case typeVarchar, typeVarString:
		if meta == 0 {
			return either("VARCHAR", "VARBINARY"), 10, -1 // what Debezium's parser makes of 0
		}
		return either("VARCHAR", "VARBINARY"), chars(meta), -1
	case typeString:
		return either("CHAR", "BINARY"), chars(c.charBytes()), -1
	case typeTinyBlob, typeBlob, typeMediumBlob, typeLongBlob:
		switch meta { // the bytes of a value's length
		case 1:
			return either("TINYTEXT", "TINYBLOB"), -1, -1
		case 3:
			return either("MEDIUMTEXT", "MEDIUMBLOB"), -1, -1
		case 4:
			return either("LONGTEXT", "LONGBLOB"), -1, -1
		}
		return either("TEXT", "BLOB"), -1, -1
	case typeEnum:
		return "ENUM", 1, -1
	case typeSet:
		return "SET", max(0, 2*len(c.Labels)-1), -1
	case typeJSON:
		return "JSON", -1, -1
	case typeGeometry:
		return geometryTypeName(c.Geometry), -1, -1
	case typeVector:
		return "VECTOR", -1, -1
	}
	return "", -1, -1
}

// geometryTypeName is the name of one of MySQL's geometry types.
func geometryTypeName(code uint8) string {
	names := [...]string{
		"GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMCOLLECTION",
	}
	if int(code) >= len(names) {
		code = 0
	}
	return names[code]
}

// charBytesOf is the number of bytes that MySQL allows for a character of a set.
func charBytesOf(charset string) int {
	switch charset {
	case "utf8mb4", "utf16", "utf16le", "utf32", "gb18030":
		return 4
	case "utf8mb3", "ujis", "eucjpms":
		return 3
	case "ucs2", "big5", "gbk", "gb2312", "sjis", "cp932", "euckr":
		return 2
	}
	return 1
}
