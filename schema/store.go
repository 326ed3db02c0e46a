package schema

import "context"

// Store keeps the definitions of a connector's tables durably, so that a restart knows them as they were at the stored
// offset (I10, I11).
type Store interface {
	// Load returns everything that is stored for a connector, in no order.
	Load(ctx context.Context, connector, prefix string) ([]StoredTable, error)
	// Save replaces what is stored of these tables and returns when it is durable.
	Save(ctx context.Context, connector, prefix string, tables []StoredTable) error
	// Close frees the place.
	Close() error
}

// StoredTable is one table in a [Store]; with an empty Table it is a database, and with an empty Database, too, the server.
type StoredTable struct {
	Database, Table string
	Versions        []StoredVersion // oldest first
}

// StoredVersion is a table from one position of the binlog on.
type StoredVersion struct {
	File       string // the position from which it holds: the end of the DDL statement
	Pos        int64
	GTIDs      string      // the set with the statement's own GTID; "" without GTIDs
	Definition *Definition // of a table; nil: it was dropped
	Statement  string      // the beginning of the DDL statement, for messages; "": not known

	// Charset is the default character set of a database as Debezium knows it, and ServerCharset the one that it has. Of
	// the server they are Debezium's character_set_database and character_set_server.
	Charset, ServerCharset string
}
