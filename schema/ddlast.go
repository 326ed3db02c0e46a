package schema

// The tree of a statement, as far as it says something about tables.

// statement is one statement of a text.
type statement struct {
	first, last int // its tokens: [first, last)
	kind        statementKind

	create   *createTable
	alter    *alterTable
	renames  []renamePair
	drops    []tableRef
	dropType string // RESTRICT or CASCADE
	database databaseChange
	index    *createIndex
	dropped  *dropIndex
	settings []setting

	view      tableRef
	viewEvent ddlEventKind
}

type statementKind uint8

const (
	stmtOther statementKind = iota
	stmtCreateTable
	stmtAlterTable
	stmtRenameTables
	stmtDropTables
	stmtTruncate
	stmtCreateDatabase
	stmtAlterDatabase
	stmtDropDatabase
	stmtCreateIndex
	stmtDropIndex
	stmtUse
	stmtSet
	stmtTemporary // of temporary tables
	stmtView      // CREATE and ALTER VIEW
)

// tableRef names a table; without a database it is in the default one.
type tableRef struct {
	database, table string
	first, last     int // its tokens
}

type renamePair struct {
	from, to tableRef
	ifExists bool
}

type createTable struct {
	table       tableRef
	ifNotExists bool
	replace     bool // MariaDB's OR REPLACE
	mariaDB     bool // read as Debezium's connector for MariaDB does
	like        *tableRef
	elements    []tableElement
	options     tableOptions
	query       bool // AS SELECT: it has columns beyond those of the text
}

// tableElement is a column or a key of CREATE TABLE.
type tableElement struct {
	column *columnText
	key    *keyText
}

type keyKind uint8

const (
	keyPlain keyKind = iota + 1
	keyPrimary
	keyUnique
	keyOther // FULLTEXT, SPATIAL, FOREIGN KEY, CHECK and others that no row depends on
)

// keyText is a key as the text has it.
type keyText struct {
	kind  keyKind
	name  string
	parts []keyPart
}

type keyPart struct {
	column string // "" for an expression
	prefix bool
}

// columns are the names of a key's columns without its expressions.
func (k *keyText) columns() []string {
	var names []string
	for _, part := range k.parts {
		if part.column != "" {
			names = append(names, part.column)
		}
	}
	return names
}

// hasExpression says whether a part is no column.
func (k *keyText) hasExpression() bool { return len(k.columns()) != len(k.parts) }

// columnText is a column as the text has it.
type columnText struct {
	name       string
	typ        typeText
	attributes []attribute
}

type typeText struct {
	words   []string // of its name, upper case: "DOUBLE", "PRECISION"
	numbers []string // length and scale
	labels  []labelText
	options []string // SIGNED, UNSIGNED, ZEROFILL in the order of the text

	charset                      string // CHARACTER SET, without quotes
	collate                      string // COLLATE directly behind the type
	charsetText                  string // the same, as written
	binary, ascii, unicode, byte bool
}

// labelText is a label of ENUM or SET: as written, and what it says.
type labelText struct{ text, value string }

type attribute struct {
	kind   attributeKind
	text   string // of comments and collations, as written, quotes included
	value  string // what it says
	deflt  defaultText
	stored bool // of generated columns
}

type attributeKind uint8

const (
	attrNull attributeKind = iota + 1
	attrNotNull
	attrDefault
	attrOnUpdate // NOW()
	attrAutoIncrement
	attrSerial // SERIAL DEFAULT VALUE
	attrPrimary
	attrUnique
	attrComment
	attrCollate
	attrGenerated
	attrInvisible
	attrVisible
	attrSRID
	attrCharset
)

// defaultText is what follows DEFAULT.
type defaultText struct {
	kind  defaultKind
	sign  string
	text  string // as written: of strings all pieces one after the other, without introducer
	intro string // the introducer of a string, as written
	value string // of strings: what it says
}

type defaultKind uint8

const (
	defaultNull defaultKind = iota
	defaultNow
	defaultExpression
	defaultString
	defaultNumber
	defaultHex
	defaultBits
	defaultBool
	defaultTemporal // DATE '2020-01-01'
)

// tableOptions are the options of a table that say something about its columns.
type tableOptions struct {
	charset string // as written; "" for none
	collate string
	comment *string // as written, without quotes
	engine  string
}

type alterTable struct {
	table    tableRef
	ifExists bool
	mariaDB  bool
	items    []alterItem
}

type alterItem struct {
	kind     alterKind
	column   *columnText // of ADD, CHANGE and MODIFY
	elements []tableElement
	name     string // the column that is changed or dropped
	newName  string
	place    columnPlace
	key      *keyText
	deflt    defaultText
	drop     bool // DROP DEFAULT
	charset  string
	collate  string
	table    tableRef
	options  tableOptions
	exists   bool // IF EXISTS or IF NOT EXISTS
}

type alterKind uint8

const (
	alterOther alterKind = iota
	alterAddColumn
	alterAddColumns
	alterAddKey
	alterChangeColumn
	alterModifyColumn
	alterDropColumn
	alterDropPrimary
	alterDropKey
	alterDefault
	alterRenameTable
	alterRenameColumn
	alterRenameKey
	alterConvert
	alterOptions
	alterVisibility
)

// columnPlace is FIRST or AFTER a column.
type columnPlace struct {
	first bool
	after string
}

func (p columnPlace) given() bool { return p.first || p.after != "" }

type databaseChange struct {
	name    string // "" for the default database
	charset string
	collate string
	exists  bool // IF NOT EXISTS
}

type createIndex struct {
	table tableRef
	key   keyText
}

type dropIndex struct {
	table tableRef
	name  string
}

type setting struct{ name, value string }
