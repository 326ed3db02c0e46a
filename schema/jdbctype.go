package schema

import "strings"

// The codes of java.sql.Types that Debezium gives MySQL's types.
const (
	jdbcBit         = -7
	jdbcBigint      = -5
	jdbcVarbinary   = -3
	jdbcBinary      = -2
	jdbcChar        = 1
	jdbcNumeric     = 2
	jdbcDecimal     = 3
	jdbcInteger     = 4
	jdbcSmallint    = 5
	jdbcFloat       = 6
	jdbcReal        = 7
	jdbcDouble      = 8
	jdbcVarchar     = 12
	jdbcBoolean     = 16
	jdbcDate        = 91
	jdbcTime        = 92
	jdbcTimestamp   = 93
	jdbcOther       = 1111
	jdbcBlob        = 2004
	jdbcTimestampTZ = 2014
	jdbcNChar       = -15
	jdbcNVarchar    = -9
)

// jdbcType is the code for a type's name, upper case and without what follows the name (UNSIGNED and so on).
func jdbcType(words []string) int {
	switch words[0] {
	case "TINYINT", "INT1", "SMALLINT", "INT2":
		return jdbcSmallint
	case "MEDIUMINT", "MIDDLEINT", "INT3", "INT", "INTEGER", "INT4", "YEAR":
		return jdbcInteger
	case "BIGINT", "INT8", "SERIAL":
		return jdbcBigint
	case "REAL":
		return jdbcReal
	case "DOUBLE", "FLOAT8":
		return jdbcDouble
	case "FLOAT", "FLOAT4":
		return jdbcFloat
	case "DECIMAL", "DEC", "FIXED":
		return jdbcDecimal
	case "NUMERIC":
		return jdbcNumeric
	case "BIT":
		return jdbcBit
	case "BOOL", "BOOLEAN":
		return jdbcBoolean
	case "CHAR", "CHARACTER":
		if len(words) > 1 {
			return jdbcVarchar
		}
		return jdbcChar
	case "VARCHAR", "VARCHARACTER", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT":
		return jdbcVarchar
	case "LONG":
		if len(words) > 1 && words[1] == "VARBINARY" {
			return jdbcBlob
		}
		return jdbcVarchar
	case "NVARCHAR":
		return jdbcNVarchar
	case "NCHAR", "NATIONAL":
		if strings.Contains(strings.Join(words[1:], " "), "VAR") {
			return jdbcNVarchar
		}
		return jdbcNChar
	case "BINARY":
		return jdbcBinary
	case "VARBINARY":
		return jdbcVarbinary
	case "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB":
		return jdbcBlob
	case "DATE":
		return jdbcDate
	case "TIME":
		return jdbcTime
	case "DATETIME":
		return jdbcTimestamp
	case "TIMESTAMP":
		return jdbcTimestampTZ
	case "ENUM", "SET":
		return jdbcChar
	}
	return jdbcOther
}

// usesCharset says whether Debezium gives columns of a JDBC type a character set when they name none.
func usesCharset(jdbc int) bool {
	switch jdbc {
	case jdbcChar, jdbcVarchar, jdbcNChar, jdbcNVarchar:
		return true
	}
	return false
}
