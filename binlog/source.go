package binlog

import (
	"context"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// Source is a stream of events that carry their own offsets. One goroutine reads it; a Source starts none itself.
type Source interface {
	// Read returns the next event. It blocks until there is one, ctx ends or the stream fails; io.EOF is the end of
	// binlog files. The event belongs to the Source and holds until the next Read. After an error the Source is of no
	// more use but for Close.
	Read(ctx context.Context) (Event, error)

	// Start is the offset at which the stream begins: what may be stored when nothing has been read yet. With GTIDs
	// it has the set of its position.
	Start() offset.Offset

	// Close frees the connection or files. A Read that runs in another goroutine is not ended by it: cancel its ctx.
	Close() error
}

// Config says what a reader captures and what it knows of tables. Captured must be set.
type Config struct {
	// Captured says whether the rows of a table are wanted. It is asked once for each version of a table and must
	// give the same answer every time.
	Captured func(database, table string) bool

	// Filters is a fingerprint of what Captured goes by. Two runs with equal ones may count captured rows only when a
	// transaction has to be found again on another server.
	Filters string

	// Catalog is what is known of tables: for a server at the start position, for files at their beginning. The reader
	// moves it by the DDL that it reads; from the first Read on nobody else may use it as long as the reader lives. Nil: a
	// new, empty one.
	//
	// CatalogAt is the position at which Catalog holds, if that lies behind the start (its definitions were read from the
	// server when the stream had not come so far). Until then DDL does not change the definitions that it has.
	Catalog   *schema.Catalog
	CatalogAt offset.Offset

	// IgnoreCase says that names of tables and databases are compared without case (lower_case_table_names is not 0), as
	// Catalog does then: statements write them in any way.
	IgnoreCase bool

	// History is an adopted Debezium schema history in its order. Entries up to the start position are put into the
	// catalog before anything is read; what one of the others says holds from its position on, whatever the statement
	// there says (I10, I11).
	History []schema.HistoryEntry

	// Refresh asks for a table as it is now: what SHOW CREATE TABLE says, nil when it is gone. It is asked when the binlog
	// does not fit what the catalog has, may block, and its error ends the stream. Nil: nobody can be asked.
	Refresh func(ctx context.Context, database, table string) (*schema.Definition, error)

	// SkipUnparseableDDL passes over DDL that cannot be understood where stopping is the only other choice
	// (schema.history.internal.skip.unparseable.ddl): without column names in the binlog.
	SkipUnparseableDDL bool

	// UnknownTable is told of each rows event of a captured table whose columns nobody can name, and why; its rows are left
	// out then (inconsistent.schema.handling.mode). Nil: they end the stream. It is called by the reader's goroutine.
	UnknownTable func(database, table string, err error)

	// IncludeQuery fills Info.Query with the statements' texts, when the server writes them into the binlog
	// (binlog_rows_query_log_events).
	IncludeQuery bool

	// Transactions asks for a [Begin] at the beginning of each transaction, and for what a [Boundary] says of its end.
	Transactions bool

	// Recount gives out also the rows of the open transaction that the stored offset covers, for counting alone:
	// [Rows.Covered] tells them. All records of a key change have one offset in Debezium, so only its counts of events say
	// whether an offset of Debezium's (one without a side record) covers the last of them.
	Recount bool

	// ServerUUID is the server_uuid of the server that the binlog is from. [Open] fills it in; "": not known.
	ServerUUID string

	// Filtered says that the server leaves rows out of its binlog that its source has (replication or binlog filters). A
	// transaction that was begun on another server cannot be found by counting rows then. [Open] asks the server.
	Filtered bool

	// Once has the stream stop where rows would be sent again that the stored offset covers, because it cannot be told which they
	// are on this server: for exactly-once delivery. Otherwise that is said, and the transaction is sent again.
	Once bool

	// GTIDSources says which sources of GTIDs count (gtid.source.includes and gtid.source.excludes): of the others a
	// stored offset may have transactions that the server has never heard of. It is told a UUID, on MariaDB
	// "domain-server". Nil: all.
	GTIDSources func(source string) bool

	// SourceRows gives out the rows of all sources. Otherwise those of sources that do not count are left out
	// (gtid.source.filter.dml.events).
	SourceRows bool

	// SpoolDir is where large XA transactions wait for their commit, in a file without a name that is only a cache. "":
	// the system's directory for temporary files.
	SpoolDir string

	// Log receives warnings (a definition that does not fit, a restart that could not be proven). Nil: none.
	Log *zap.Logger
}

// Start says where a stream begins. At most one of its members is set; the zero value is the end (Now) for a server
// and the beginning (Oldest) for files.
type Start struct {
	Offset *offset.Offset // a stored offset, in the middle of a transaction or between two
	Oldest bool           // the oldest position that is still there
	Now    bool           // the end
	File   string         // a position between transactions, or of a BEGIN: the base name of a binlog file
	Pos    int64          // and where in it
	GTIDs  offset.GTIDSet // the transactions that are not wanted
}

// firstPos is the position of the first event in a binlog file, behind its four magic bytes.
const firstPos = 4
