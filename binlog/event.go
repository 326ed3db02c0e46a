package binlog

import (
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// Event is one step of a stream of changes: [*Rows], [*Boundary] or [*Truncate]. It belongs to the source that returned it
// and holds until the next Read.
type Event interface{ event() }

// Op is what a rows event does to its rows.
type Op uint8

// The operations of row changes.
const (
	Create Op = iota + 1
	Update
	Delete
)

// Info says where an event comes from: what Debezium's source block holds.
type Info struct {
	TsMicros int64  // source time in µs since the epoch: original_commit_timestamp with GTIDs, else the header's seconds
	ServerID int64  // of the event's header
	GTID     string // "uuid:n" or "uuid:tag:n"; "" without GTIDs
	File     string // binlog file of the event
	Pos      int64  // start of the event; of the payload event inside a compressed transaction
	Thread   int64  // thread id from BEGIN; -1 outside BEGIN … COMMIT
	Query    string // statement text from ROWS_QUERY; "" for none
}

// Rows is a rows event of a captured table. Next steps through its rows; those that a restart skips are left out.
type Rows struct {
	Info  Info
	Op    Op
	Table *schema.Table
	// unexported: image bytes, walker, state
	rows rowWalk
}

// Boundary is a point between changes at which a restart may begin: a commit, a DDL statement, a rotation, a
// heartbeat, a transaction or rows event of which nothing is captured. It carries the offset that holds there.
type Boundary struct {
	Offset offset.Offset
	Commit bool // a transaction ended here
	Idle   bool // a heartbeat: nothing more is waiting on the server
}

// Truncate is a TRUNCATE TABLE of a captured table; Offset is the boundary after it.
type Truncate struct {
	Info            Info
	Database, Table string
	Offset          offset.Offset
}

func (*Rows) event()     {}
func (*Boundary) event() {}
func (*Truncate) event() {}
