package schema

import (
	"errors"
	"fmt"
)

// ParseCreateTable reads what SHOW CREATE TABLE prints into a Definition, in the words that Debezium uses for it.
// database is the one the table is in; the statement names only the table. A text that is not such a statement (a
// view's, for example) is an error.
func ParseCreateTable(database, sql string) (*Definition, error) {
	def, err := parseCreateTable(database, sql, syntax{ansiQuotes: isAnsi(sql)})
	if err != nil {
		return nil, fmt.Errorf("cannot read the definition of a table of database %s: %w: %s", database, err, excerpt(sql, 120))
	}
	return def, nil
}

// ReadCreateTable is [ParseCreateTable] for the server that the catalog is of: MariaDB's texts are read as Debezium's
// connector for MariaDB reads them, and versioned comments by the server's version.
func (c *Catalog) ReadCreateTable(database, sql string) (*Definition, error) {
	s := c.syntax(Statement{AnsiQuotes: isAnsi(sql)})
	def, err := parseCreateTable(database, sql, s)
	if err != nil {
		return nil, fmt.Errorf("cannot read the definition of a table of database %s: %w: %s", database, err, excerpt(sql, 120))
	}
	return def, nil
}

func parseCreateTable(database, sql string, s syntax) (*Definition, error) {
	script, err := parseScript(sql, s)
	if err != nil {
		return nil, err
	}
	if len(script.statements) != 1 || script.statements[0].kind != stmtCreateTable {
		return nil, errors.New("it is not one CREATE TABLE")
	}
	c := script.statements[0].create
	if c.like != nil || c.query {
		return nil, errors.New("it does not list the table's columns")
	}
	def := createDefinition(database, c.table.table, c, "", "")
	def.chooseKey(c)
	return def, nil
}

// isAnsi says whether a statement of SHOW CREATE TABLE was printed under ANSI_QUOTES: its first quote tells, since it
// is that of the table's name.
func isAnsi(sql string) bool {
	for _, c := range []byte(sql) {
		switch c {
		case '"':
			return true
		case '`', '\'', '(':
			return false
		}
	}
	return false
}
