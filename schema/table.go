package schema

// Table is one version of a table: what its columns are at some stretch of the binlog. It is immutable once it has
// been handed to a reader, so its address identifies the version.
type Table struct {
	Database string
	Name     string
	Columns  []Column // in the order of the row image
	Key      []int    // indexes of the record key's columns, in the key's own order; nil: no key

	// BinlogKey is the key that TABLE_MAP has: the primary key or the UNIQUE key that the server takes for one. [Attach]
	// moves it here and puts the record's key into Key.
	BinlogKey []int
}

// Column is one column of a [Table]. Type to Labels come from TABLE_MAP, which alone decides how a cell is read; Def
// comes from a definition (SHOW CREATE TABLE or a schema history) and only adds to the schema.
type Column struct {
	Name string
	Type uint8 // MySQL's binlog type code; for ENUM and SET the real one (247, 248), not STRING
	// Meta is the type's metadata in TABLE_MAP. DECIMAL: precision in the high byte, scale in the low one. BIT: whole
	// bytes in the high byte, bits beyond in the low one. VARCHAR: the length in bytes. CHAR, BINARY, ENUM and SET: the
	// two bytes as they come, the type's first. TIME, DATETIME and TIMESTAMP: digits after the second. BLOB, JSON,
	// GEOMETRY and VECTOR: the size of a value's length prefix.
	Meta      uint16
	Unsigned  bool
	Nullable  bool
	Invisible bool
	Collation uint32     // of character, ENUM and SET columns; 63 is binary; 0 for the rest
	Labels    []string   // of ENUM and SET, decoded to UTF-8
	Geometry  uint8      // MySQL's geometry_type of a GEOMETRY column: 0 geometry, 1 point …
	Def       *ColumnDef // nil: nothing is known beyond TABLE_MAP
}

// Definition is a table as SHOW CREATE TABLE, a schema history or a DDL statement describes it. It is immutable once it
// has been handed out.
type Definition struct {
	Database string
	Name     string
	Columns  []ColumnDef
	Key      []string // the columns of the record key; nil for none
	KeyKind  KeyKind  // what Key is

	// Unique are the UNIQUE keys that the server can take for a primary key: those over NOT NULL columns without prefixes
	// and virtual columns. When there is no primary key, TABLE_MAP's key is one of them, and none only if there are none.
	// Known only of SHOW CREATE TABLE.
	Unique [][]string

	DefaultCharset string // the table's default character set as Debezium knows it; "" for none
	ServerCharset  string // the one that the server uses, where it is known and another; else ""
	Comment        string // as the text has it, without its quotes; "" for none
	BlankComment   bool   // Comment is "" since the text says COMMENT '', which Debezium tells from none
}

// KeyKind says what the key of a [Definition] is.
type KeyKind uint8

// The kinds of keys.
const (
	KeyChosen  KeyKind = iota // the choice that Debezium has made, as its schema history has it
	KeyPrimary                // the PRIMARY KEY
	KeyUnique                 // there is no PRIMARY KEY: the first UNIQUE key over NOT NULL columns in the text, if there is one
)

// ColumnDef is one column of a [Definition]. The values are those of Debezium's relational model, faults included, for
// they go into schemas; what the server makes of the same text stands in Server.
type ColumnDef struct {
	Name       string
	Type       string // upper case without length, as Debezium's typeName: "INT UNSIGNED", "VARCHAR", "BOOL"
	Length     int    // -1: not given
	Scale      int    // -1: not given
	Charset    string // "" for none
	Nullable   bool
	AutoInc    bool
	Generated  bool
	HasDefault bool     // true also for a nullable column without DEFAULT, whose Default is nil
	Default    *string  // the default's text as Debezium keeps it (defaultValueExpression); nil: NULL or an expression
	Labels     []string // of ENUM and SET, with the escapes of the DDL text (Debezium writes them into the schema)
	Comment    string

	JDBCType   int           // java.sql.Types; 0: not known
	Expression string        // typeExpression, where it is not Type; else ""
	Quoted     []string      // enumValues: the labels with their quotes, where they are not Labels between apostrophes
	Server     *ServerColumn // nil: nothing else is known

	BlankComment bool // Comment is "" since the text says COMMENT '', which Debezium tells from none
}

// ServerColumn is what the server makes of a column's text, as far as rows cannot be read without it when TABLE_MAP has
// no names.
type ServerColumn struct {
	Charset string   // its character set, "binary" for bytes; "" if the definition's is right
	Labels  []string // the labels without quotes and escapes; nil if those of the definition have none
	Default string   // the default as it is written, where the definition's text has not all of it: 0x1f, b'101', NULL; else ""
}

// ServerCharset is the character set that the server uses for a column of text or labels; "" for others and if it is not
// known.
func (c *ColumnDef) ServerCharset() string {
	if c.Server != nil && c.Server.Charset != "" {
		return c.Server.Charset
	}
	return c.Charset
}

// ServerLabels are the labels of ENUM and SET without escapes. Of a definition from SHOW CREATE TABLE or a history the
// escapes are the server's own: doubled apostrophes and backslashes.
func (c *ColumnDef) ServerLabels() []string {
	if c.Server != nil && c.Server.Labels != nil {
		return c.Server.Labels
	}
	labels := make([]string, len(c.Labels))
	for i, label := range c.Labels {
		labels[i] = unescaped(label, '\'', true)
	}
	return labels
}
