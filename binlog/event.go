// Package binlog turns a replication stream or binlog files into events with positions: row changes of the captured
// tables, and the boundaries between them, each with the Debezium offset that holds there.
//
//	src, err := binlog.Open(ctx, live, cfg, start) // or binlog.OpenFiles
//	defer src.Close()
//	for {
//		ev, err := src.Read(ctx)
//		if err != nil { return err } // io.EOF: the end of the files
//		switch ev := ev.(type) {
//		case *binlog.Rows:
//			for ev.Next() { encode(ev.Table, ev.Before, ev.After); deliver(ev.OffsetBefore(), ev.OffsetAfter()) }
//			if err := ev.Err(); err != nil { return err }
//		case *binlog.Boundary:
//			mark(ev.Offset)
//		case *binlog.Truncate:
//			mark(ev.Offset)
//		}
//	}
//
// A reader is used by one goroutine and starts none. It never reconnects by itself: after an error the caller opens a
// new one at the offset it has stored.
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

// Rows is a rows event of a captured table. Next steps through its rows; those that a restart has to skip are left out.
//
//	for ev.Next() { use ev.Row, ev.Before, ev.After, ev.OffsetBefore(), ev.OffsetAfter() }
//	if err := ev.Err(); err != nil { … }
type Rows struct {
	Info  Info
	Op    Op
	Table *schema.Table // the version in force at this position (I10)

	Row    int      // index of the current row in its event, from 0
	Before [][]byte // cells of the current row's before image, nil for NULL; nil for Create. Valid until the next Next.
	After  [][]byte // the same of the after image; nil for Delete

	Base offset.Offset // the offset inside this event, with Row 0: Event counts the events before it

	noRow bool  // the offset cannot name a row (rows outside BEGIN … COMMIT): Base holds before and after
	skip  int64 // rows to pass over first
	walk  walker
	err   error

	before, after [][]byte // the memory of Before and After
}

// OffsetBefore is the offset before the current row: what a record carries that is not the last of its row (I3).
func (r *Rows) OffsetBefore() offset.Offset {
	o := r.Base
	if !r.noRow {
		o.Row = int64(r.Row)
	}
	return o
}

// OffsetAfter is the offset after the current row: what the last record of the row carries.
func (r *Rows) OffsetAfter() offset.Offset {
	o := r.Base
	if !r.noRow {
		o.Row = int64(r.Row) + 1
	}
	return o
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
