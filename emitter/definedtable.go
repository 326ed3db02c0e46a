package emitter

import (
	"fmt"
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

// definedTypes are the codes of the types as definitions name them, without UNSIGNED and the like.
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
	"UUID": typeString, "INET4": typeString, "INET6": typeString, // of MariaDB
	"ENUM": typeEnum, "SET": typeSet, "JSON": typeJSON, "VECTOR": typeVector,
	"GEOMETRY": typeGeometry, "POINT": typeGeometry, "LINESTRING": typeGeometry, "POLYGON": typeGeometry,
	"MULTIPOINT": typeGeometry, "MULTILINESTRING": typeGeometry, "MULTIPOLYGON": typeGeometry,
	"GEOMETRYCOLLECTION": typeGeometry, "GEOMCOLLECTION": typeGeometry,
}

// definedTable is the table that a definition describes, as far as the schemas of its events go: rows cannot be read with
// it, as TABLE_MAP alone says how.
func definedTable(def *schema.Definition) (*schema.Table, error) {
	t := &schema.Table{Database: def.Database, Name: def.Name, Columns: make([]schema.Column, len(def.Columns))}
	for i := range def.Columns {
		c, err := definedColumn(&def.Columns[i])
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", def.Columns[i].Name, err)
		}
		t.Columns[i] = c
	}
	return t, nil
}

func definedColumn(def *schema.ColumnDef) (schema.Column, error) {
	name := def.Type
	first, _, _ := strings.Cut(name, " ")
	code, ok := definedTypes[first]
	if !ok {
		return schema.Column{}, fmt.Errorf("its type %s is not known", name)
	}
	c := schema.Column{
		Name: def.Name, Type: code, Nullable: def.Nullable, Def: def,
		Unsigned: strings.Contains(name, "UNSIGNED") || first == "SERIAL",
	}
	length := func(unset int) uint16 {
		if def.Length < 0 {
			return uint16(unset)
		}
		return uint16(def.Length)
	}
	switch code {
	case typeDecimal:
		c.Meta = length(10)<<8 | uint16(max(def.Scale, 0))
	case typeBit:
		c.Meta = length(1)/8<<8 | length(1)%8
	case typeTime, typeDatetime, typeTimestamp:
		c.Meta = length(0)
	case typeString, typeVarchar, typeBlob:
		c.Meta = 4 // a length that every such type can have
		c.Collation = collationText
		switch {
		case strings.HasSuffix(first, "BLOB"), first == "BINARY", first == "VARBINARY", name == "LONG VARBINARY",
			first == "UUID", first == "INET4", first == "INET6", def.ServerCharset() == "binary":
			c.Collation = collationBinary
		}
	case typeEnum, typeSet:
		c.Collation, c.Labels = collationText, def.ServerLabels()
	case typeJSON, typeGeometry, typeVector:
		c.Meta = 4
		if first == "POINT" {
			c.Geometry = 1
		}
	}
	return c, nil
}
