package emitter

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-cdc/tidemark/schema"
)

// MySQL's binlog type codes, as far as the placeholder does not have them.
const (
	typeTiny      = 1
	typeShort     = 2
	typeLong      = 3
	typeFloat     = 4
	typeDouble    = 5
	typeLonglong  = 8
	typeInt24     = 9
	typeDate      = 10
	typeYear      = 13
	typeBit       = 16
	typeTimestamp = 17
	typeDatetime  = 18
	typeTime      = 19
	typeVector    = 242
	typeDecimal   = 246
	typeEnum      = 247
	typeSet       = 248
	typeGeometry  = 255

	collationBinary = 63
	collationText   = 255 // any other one gives the same Connect type
)

// definedTypes are the codes of the types by the first word of their names in definitions.
var definedTypes = map[string]uint8{
	"BOOL": typeTiny, "BOOLEAN": typeTiny, "TINYINT": typeTiny, "INT1": typeTiny,
	"SMALLINT": typeShort, "INT2": typeShort,
	"MEDIUMINT": typeInt24, "INT3": typeInt24, "MIDDLEINT": typeInt24,
	"INT": typeLong, "INTEGER": typeLong, "INT4": typeLong,
	"BIGINT": typeLonglong, "INT8": typeLonglong, "SERIAL": typeLonglong,
	"FLOAT": typeFloat, "FLOAT4": typeFloat,
	"DOUBLE": typeDouble, "REAL": typeDouble, "FLOAT8": typeDouble,
	"DECIMAL": typeDecimal, "DEC": typeDecimal, "NUMERIC": typeDecimal, "FIXED": typeDecimal,
	"BIT":  typeBit,
	"DATE": typeDate, "TIME": typeTime, "DATETIME": typeDatetime, "TIMESTAMP": typeTimestamp, "YEAR": typeYear,
	"CHAR": typeString, "CHARACTER": typeString, "NCHAR": typeString, "BINARY": typeString,
	"VARCHAR": typeVarchar, "VARCHARACTER": typeVarchar, "NVARCHAR": typeVarchar, "NATIONAL": typeVarchar,
	"VARBINARY": typeVarchar,
	"TINYTEXT":  typeBlob, "TEXT": typeBlob, "MEDIUMTEXT": typeBlob, "LONGTEXT": typeBlob, "LONG": typeBlob,
	"TINYBLOB": typeBlob, "BLOB": typeBlob, "MEDIUMBLOB": typeBlob, "LONGBLOB": typeBlob,
	"UUID": typeString, "INET4": typeString, "INET6": typeString, "XMLTYPE": typeBlob, // of MariaDB
	"VARCHAR2": typeVarchar, "CLOB": typeBlob, // of MariaDB with sql_mode=ORACLE
	"ENUM": typeEnum, "SET": typeSet, "JSON": typeJSON, "VECTOR": typeVector,
	"GEOMETRY": typeGeometry, "POINT": typeGeometry, "LINESTRING": typeGeometry, "POLYGON": typeGeometry,
	"MULTIPOINT": typeGeometry, "MULTILINESTRING": typeGeometry, "MULTIPOLYGON": typeGeometry,
	"GEOMETRYCOLLECTION": typeGeometry, "GEOMCOLLECTION": typeGeometry,
}

// definedTable is the table for the connector's kind of server: MariaDB's JSON is text.
func (cfg *Config) definedTable(def *schema.Definition) (*schema.Table, error) {
	t, err := definedTable(def)
	if err != nil || cfg.Connector != "mariadb" {
		return t, err
	}
	for i := range t.Columns {
		if c := &t.Columns[i]; c.Type == typeJSON {
			c.Type, c.Collation = typeBlob, collationText
		}
	}
	return t, nil
}

// definedTable is the table that a definition describes, as far as the schemas of its events go: rows cannot be read with
// it, as TABLE_MAP alone says how. The schemas are those that rows have when the definition is that of their table.
func definedTable(def *schema.Definition) (*schema.Table, error) {
	t := &schema.Table{Database: def.Database, Name: def.Name, Columns: make([]schema.Column, len(def.Columns))}
	for i := range def.Columns {
		c, err := definedColumn(&def.Columns[i])
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", def.Columns[i].Name, err)
		}
		t.Columns[i] = c
	}
	t.Key = definedKey(def)
	return t, nil
}

// definedKey is the record's key. That of TABLE_MAP, which rows have when the definition has none, is in the definition, too,
// as long as it is up to date.
func definedKey(def *schema.Definition) []int {
	var key []int
	for _, name := range def.Key {
		i := slices.IndexFunc(def.Columns, func(c schema.ColumnDef) bool { return strings.EqualFold(c.Name, name) })
		if i < 0 {
			return nil
		}
		key = append(key, i)
	}
	return key
}

func definedColumn(def *schema.ColumnDef) (schema.Column, error) {
	words := strings.Fields(def.Type)
	if len(words) == 0 {
		words = []string{""}
	}
	first := words[0]
	code, ok := definedTypes[first]
	if !ok {
		if def.Type == "" {
			return schema.Column{}, errors.New("it has no type")
		}
		return schema.Column{}, fmt.Errorf("its type %s is not known", def.Type)
	}
	c := schema.Column{
		Name: serverName(def.Name), Type: code, Nullable: def.Nullable, Def: def,
		Unsigned: first == "SERIAL" || slices.Contains(words, "UNSIGNED") || slices.Contains(words, "ZEROFILL"),
	}
	// Lengths beyond a byte are beyond what any of these types can have, and stay so.
	length := func(unset int) uint16 {
		if def.Length < 0 {
			return uint16(unset)
		}
		return uint16(min(def.Length, 0xff))
	}
	switch code {
	case typeDecimal:
		c.Meta = length(10)<<8 | uint16(min(max(def.Scale, 0), 0xff))
		if def.Length == 0 { // as a text of MariaDB's can have it, and no row is said to be of that
			c.Meta, c.Def = c.Meta|10<<8, nil
		}
	case typeBit:
		bits := max(length(1), 1)
		c.Meta = bits/8<<8 | bits%8
	case typeTime, typeDatetime, typeTimestamp:
		c.Meta = length(0)
	case typeString, typeVarchar, typeBlob:
		c.Meta = 4 // a length that every such type can have
		c.Collation = collationText
		if isBinary(def, words) {
			c.Collation = collationBinary
		}
		c.Def = withCharset(def)
	case typeEnum, typeSet:
		c.Collation, c.Labels = collationText, def.ServerLabels()
		c.Def = withCharset(def)
	case typeJSON, typeGeometry, typeVector:
		c.Meta = 4
		if first == "POINT" {
			c.Geometry = 1
		}
	}
	return c, nil
}

// serverName is a column's name as the server has it: it keeps names in the basic plane only.
func serverName(name string) string {
	return strings.Map(func(r rune) rune {
		if r > 0xffff {
			return '?'
		}
		return r
	}, name)
}

// isBinary says whether a column of a type for text or bytes is of bytes.
func isBinary(def *schema.ColumnDef, words []string) bool {
	if def.Server != nil && def.Server.Charset != "" { // NATIONAL CHAR … BINARY is BINARY to Debezium, and text
		return strings.EqualFold(def.Server.Charset, "binary")
	}
	switch first := words[0]; first {
	case "BINARY", "VARBINARY", "UUID", "INET4", "INET6":
		return true
	case "LONG":
		return len(words) > 1 && words[1] == "VARBINARY"
	default:
		return strings.HasSuffix(first, "BLOB") || strings.EqualFold(def.Charset, "binary")
	}
}

// withCharset is def with the character set that the server has for it if def names none: that of TABLE_MAP counts then.
func withCharset(def *schema.ColumnDef) *schema.ColumnDef {
	charset := strings.ToLower(def.ServerCharset())
	if def.Charset != "" || charset == "" {
		return def
	}
	if charset == "utf8" {
		charset = "utf8mb3"
	}
	copied := *def
	copied.Charset = charset
	return &copied
}
