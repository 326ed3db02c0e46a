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

// Config says what a reader captures and where it learns about tables. Captured must be set.
type Config struct {
	// Captured says whether the rows of a table are wanted. It is asked once for each version of a table and must
	// give the same answer every time.
	Captured func(database, table string) bool

	// Definitions adds what TABLE_MAP does not tell about a table. Nil: nothing is known beyond TABLE_MAP.
	Definitions Definitions

	// IncludeQuery fills Info.Query with the statements' texts, when the server writes them into the binlog
	// (binlog_rows_query_log_events).
	IncludeQuery bool

	// Log receives warnings (a definition that does not fit, a restart that could not be proven). Nil: none.
	Log *zap.Logger
}

// Definitions knows tables by SHOW CREATE TABLE or a schema history. It is used by the reader's goroutine only.
//
// It should also have the method Tables(database string) []string, which names the tables of a database that it has a
// definition of, wanted or not. Without it every call of a stored function that was logged as text stops the stream:
// nobody can tell then that nothing of the function's database is captured.
type Definitions interface {
	// Definition is the table as known for the present position of the stream, nil when it is not known. It does not
	// block.
	Definition(database, table string) *schema.Definition

	// Refresh is asked when the columns in the binlog no longer fit Definition: the table as it is now, nil when it is
	// gone. It may ask a server, so it may block. An error ends the stream.
	Refresh(ctx context.Context, database, table string) (*schema.Definition, error)
}

// lister is a Definitions that can say what it knows.
type lister interface {
	Tables(database string) []string
}

// noDefinitions knows no table.
type noDefinitions struct{}

func (noDefinitions) Definition(string, string) *schema.Definition { return nil }

func (noDefinitions) Refresh(context.Context, string, string) (*schema.Definition, error) {
	return nil, nil
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
