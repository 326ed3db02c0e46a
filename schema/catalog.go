package schema

import (
	"errors"
	"fmt"
	"strings"
)

// Catalog is what is known of the tables of a server at one position of its binlog. Definitions put in by hand have the
// form that they are given; DDL moves them. It is used by one goroutine.
type Catalog struct {
	opts    CatalogOptions
	state   catalogState
	shares  shares
	touched []TableName // by the last statement
}

// CatalogOptions say how a [Catalog] reads DDL.
type CatalogOptions struct {
	// Captured says which tables are wanted. Nil: all.
	Captured func(database, table string) bool
	// CapturedDatabase says which databases are wanted (database.include.list, database.exclude.list). Nil: all.
	CapturedDatabase func(database string) bool
	// OnlyCapturedTables and OnlyCapturedDatabases keep the DDL of other tables and databases out of the history
	// (schema.history.internal.store.only.captured.*).
	OnlyCapturedTables    bool
	OnlyCapturedDatabases bool
	MariaDB               bool

	// Filter says which statements are left alone, seen by their whole text (schema.history.internal.ddl.filter).
	// Nil: those of Debezium's default.
	Filter func(sql string) bool
	// Version is the server's, as 80036 or 110402, which decides about comments like /*!80023 INVISIBLE */. 0: not known.
	Version int
	// IgnoreCase says that names of tables and databases are compared without case (lower_case_table_names is not 0).
	IgnoreCase bool
	// Comments keeps comments of tables and columns in the changes (include.schema.comments).
	Comments bool
}

// NewCatalog makes an empty catalog.
func NewCatalog(opts CatalogOptions) *Catalog {
	return &Catalog{opts: opts, state: catalogState{tables: map[TableName]*catalogTable{}, databases: map[string]*databaseState{}}}
}

// Form says how a column that a DDL text describes is kept.
type Form uint8

// The forms.
const (
	StreamForm     Form = iota // as Debezium takes it from the text in the stream
	ShowCreateForm             // as SHOW CREATE TABLE would print it: the text stands for what a snapshot has read
)

// Statement is a statement of a QUERY event, with what it depends on.
type Statement struct {
	Database string // default database of the session
	SQL      string // decoded to UTF-8
	Form     Form

	AnsiQuotes         bool   // sql_mode: " quotes names
	NoBackslashEscapes bool   // sql_mode: \ is no escape
	RealAsFloat        bool   // sql_mode: REAL is FLOAT
	Collation          uint32 // collation_server of the session; 0: not known
	DatabaseCollation  uint32 // collation of the default database; 0: not known
	InvisibleKey       bool   // sql_generate_invisible_primary_key was on; the server has put the key into the text then
}

// SchemaChange is a record of a schema history or of a schema change topic: what one statement, or one table of it, did.
type SchemaChange struct {
	Database string // databaseName
	DDL      string
	// Tables is source.table: the names of the tables that the statement touches. Nil is null, an empty list "".
	Tables  []string
	Changes []Change // tableChanges
	Topic   bool     // the schema change topic has it
	History bool     // the schema history has it
}

// ErrDDL is wrapped by the error of a statement that could not be understood. The catalog is as before then.
var ErrDDL = errors.New("the statement could not be parsed")

// TableName names a table.
type TableName struct{ Database, Table string }

// catalogState is the content of a catalog.
type catalogState struct {
	tables    map[TableName]*catalogTable
	databases map[string]*databaseState
	// Debezium's system variables: those that its snapshot and its history set.
	serverCharset   string // character_set_server
	databaseCharset string // character_set_database, set by USE
}

type catalogTable struct {
	name  TableName
	def   *Definition
	model *tableModel // of ShowCreateForm; nil for others
}

// databaseState is what is known of a database. It is not changed once it is in a catalog.
type databaseState struct {
	charset string // its default character set as Debezium knows it; "" if no statement has named one
	server  string // the one that the server uses; "" if it is not known
}

func (c *Catalog) key(name TableName) TableName {
	if c.opts.IgnoreCase {
		return TableName{strings.ToLower(name.Database), strings.ToLower(name.Table)}
	}
	return name
}

func (c *Catalog) databaseKey(name string) string {
	if c.opts.IgnoreCase {
		return strings.ToLower(name)
	}
	return name
}

// Definition is the table as it is known; nil when it is not. It is not to be changed.
func (c *Catalog) Definition(database, table string) *Definition {
	if t := c.state.tables[c.key(TableName{database, table})]; t != nil {
		return t.def
	}
	return nil
}

// Tables names the known tables of a database, in no order.
func (c *Catalog) Tables(database string) []string {
	var names []string
	for key, t := range c.state.tables {
		if key.Database == c.databaseKey(database) {
			names = append(names, t.name.Table)
		}
	}
	return names
}

// Set puts a definition in, or takes the table out for a nil one. The catalog takes it over: it may come to hold its columns
// together with those of other tables.
func (c *Catalog) Set(database, table string, def *Definition) {
	name := TableName{database, table}
	if def == nil {
		delete(c.state.tables, c.key(name))
		return
	}
	c.put(c.key(name), &catalogTable{name: name, def: def})
}

// put puts a table in.
func (c *Catalog) put(key TableName, t *catalogTable) {
	c.shares.add(t.def)
	if t.name.Table == t.def.Name && t.name.Database == t.def.Database {
		t.name = TableName{t.def.Database, t.def.Name} // which may be pieces of a text
	}
	if key == t.name {
		key = t.name // the text, too
	}
	c.state.tables[key] = t
	c.shares.sweep(len(c.state.tables), func(yield func(*Definition) bool) {
		for _, t := range c.state.tables {
			if !yield(t.def) {
				return
			}
		}
	})
}

// SetDatabase puts in the default character set of a database.
func (c *Catalog) SetDatabase(database, charset string) {
	c.state.databases[c.databaseKey(database)] = &databaseState{charset: charset, server: strings.ToLower(charset)}
}

// SetServer puts in the server's default character set (character_set_server), which databases have that name none.
func (c *Catalog) SetServer(charset string) { c.state.serverCharset = charset }

func (c *Catalog) syntax(s Statement) syntax {
	return syntax{ansiQuotes: s.AnsiQuotes, noEscapes: s.NoBackslashEscapes, mariaDB: c.opts.MariaDB, version: c.opts.Version}
}

func (c *Catalog) captured(name TableName) bool {
	return c.opts.Captured == nil || c.opts.Captured(name.Database, name.Table)
}

func (c *Catalog) capturedDatabase(name string) bool {
	return c.opts.CapturedDatabase == nil || c.opts.CapturedDatabase(name)
}

// Apply moves the catalog by a statement and says what it did, one value for each record. A statement that is no DDL of
// tables or databases gives none. unknown names tables that the statement changes and that are not known: their
// definitions have to be had elsewhere, and their changes are not complete.
//
// An error wraps [ErrDDL] and says where the text is not understood, or which column is not known. The catalog is as
// before then, unknown names the tables that the statement is about as far as its text shows, and [Catalog.Skipped] has
// the record of a statement that is left alone.
func (c *Catalog) Apply(s Statement) (changes []SchemaChange, unknown []TableName, err error) {
	c.touched = nil
	sql := trimStatement(s.SQL)
	if c.ignores(sql) {
		return nil, nil, nil
	}
	script, err := parseScript(sql, c.syntax(s))
	if err != nil {
		return nil, guessTables(sql, s.Database, c.syntax(s)), fmt.Errorf("%w: %w: %s", ErrDDL, err, excerpt(sql, 500))
	}
	r := ddlRun{c: c, s: s, script: script, state: c.state.overlay()}
	for i := range script.statements {
		if err := r.statement(&script.statements[i]); err != nil {
			return nil, r.named, fmt.Errorf("%w: %w: %s", ErrDDL, err, excerpt(sql, 500))
		}
	}
	c.touch(r.state)
	c.take(r.state)
	return r.records(sql), r.unknown, nil
}

// Skipped is the record of a statement that could not be parsed and is skipped
// (schema.history.internal.skip.unparseable.ddl): its text without changes, if Debezium writes one.
func (c *Catalog) Skipped(s Statement) []SchemaChange {
	sql := trimStatement(s.SQL)
	if c.ignores(sql) {
		return nil
	}
	r := ddlRun{c: c, s: s}
	return r.records(sql)
}

// overlay is a state whose changes do not touch this one. A nil value is one that is gone.
func (s *catalogState) overlay() catalogState {
	return catalogState{
		tables: map[TableName]*catalogTable{}, databases: map[string]*databaseState{},
		serverCharset: s.serverCharset, databaseCharset: s.databaseCharset,
	}
}

// take puts the changes of an overlay in.
func (c *Catalog) take(changes catalogState) {
	s := &c.state
	for key, t := range changes.tables {
		if t == nil {
			delete(s.tables, key)
		} else {
			c.put(key, t)
		}
	}
	for key, d := range changes.databases {
		if d == nil {
			delete(s.databases, key)
		} else {
			s.databases[key] = d
		}
	}
	s.serverCharset, s.databaseCharset = changes.serverCharset, changes.databaseCharset
}

// Replay moves the catalog by an entry of a schema history, as Debezium does when it starts: by its changes, or by its
// text if it has none. A text that cannot be parsed is an error that wraps [ErrDDL].
func (c *Catalog) Replay(e *HistoryEntry) error {
	if len(e.Changes) == 0 {
		_, _, err := c.Apply(Statement{Database: e.Database, SQL: e.DDL})
		return err
	}
	changes := c.state.overlay()
	for i := range e.Changes {
		change := &e.Changes[i]
		if change.PreviousTable != "" {
			changes.tables[c.key(TableName{change.PreviousDatabase, change.PreviousTable})] = nil
		}
		name := TableName{change.Database, change.Table}
		changes.tables[c.key(name)] = nil
		if change.Definition != nil {
			changes.tables[c.key(name)] = &catalogTable{name: name, def: change.Definition}
		}
	}
	c.touch(changes)
	c.take(changes)
	return nil
}
