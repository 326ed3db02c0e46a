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
//		case *binlog.SchemaChange: // keep ev.Tables durably, then
//			mark(ev.Offset)
//		case *binlog.Truncate:
//			mark(ev.Offset)
//		case *binlog.Boundary:
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

// Event is one step of a stream of changes: [*Rows], [*Boundary], [*Begin], [*SchemaChange] or [*Truncate]. It belongs to the
// source that returned it and holds until the next Read.
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
	TsMicros int64       // source time in µs since the epoch: original_commit_timestamp with GTIDs, else the header's seconds
	ServerID int64       // of the event's header
	GTID     offset.GTID // zero without GTIDs
	File     string      // binlog file of the event
	Pos      int64       // start of the event; of the payload event inside a compressed transaction
	Thread   int64       // thread id from BEGIN; -1 outside BEGIN … COMMIT
	Query    string      // statement text from ROWS_QUERY; "" for none
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

	Base offset.Offset // the offset inside this event, with Row 0: Event counts the events before it. Its Side is the event's

	// Incomplete says that some cells of the event's rows are [Unavailable]: a session with another binlog_row_image than
	// FULL has written them.
	Incomplete bool

	partial bool // the images are not simply all columns: images says what they have
	images  images
	noRow   bool  // the offset cannot name a row (rows outside BEGIN … COMMIT): Base holds before and after
	xa      bool  // rows of an XA transaction: the offset's Done counts them
	covered int64 // so many of the first rows are covered by the stored offset; -1: all
	skip    int64 // rows to pass over first
	side    openSide
	number  uint64       // tells apart what side holds in turn
	kept    *offset.Side // a copy of side that may be kept; nil: not made yet
	walk    walker
	err     error

	before, after [][]byte // the memory of Before and After
}

// Covered says that the stored offset covers the current row, which is given out only to be counted: see Config.Recount.
func (r *Rows) Covered() bool { return r.covered < 0 || int64(r.Row) < r.covered }

// OffsetBefore is the offset before the current row: what a record carries that is not the last of its row (I3).
func (r *Rows) OffsetBefore() offset.Offset { return r.offsetAt(int64(r.Row)) }

// OffsetAfter is the offset after the current row: what the last record of the row carries.
func (r *Rows) OffsetAfter() offset.Offset { return r.offsetAt(int64(r.Row) + 1) }

// PutOffsetBefore writes what OffsetBefore returns to o, without copies on the way; its side is in sides, and holds as long.
func (r *Rows) PutOffsetBefore(o *offset.Offset, sides *offset.Sides) {
	r.putOffset(o, int64(r.Row))
	r.lend(o, sides)
}

// PutOffsetAfter does the same with OffsetAfter.
func (r *Rows) PutOffsetAfter(o *offset.Offset, sides *offset.Sides) {
	r.putOffset(o, int64(r.Row)+1)
	r.lend(o, sides)
}

// offsetAt is the offset when so many rows of the event are done.
func (r *Rows) offsetAt(done int64) offset.Offset {
	var o offset.Offset
	r.putOffset(&o, done)
	if r.sideHere() {
		if r.kept == nil {
			r.kept = o.Side.Kept()
		}
		o.Side = r.kept
	}
	return o
}

// putOffset is offsetAt with the event's own side.
func (r *Rows) putOffset(o *offset.Offset, done int64) {
	*o = r.Base
	switch {
	case r.xa:
		o.Done = done
	case !r.noRow:
		o.Row = done
	}
}

// sideHere says whether Base's side is in memory that the next event overwrites.
func (r *Rows) sideHere() bool { return r.Base.Side == &r.side.side }

func (r *Rows) lend(o *offset.Offset, sides *offset.Sides) {
	if r.sideHere() {
		o.Side = sides.Copy(o.Side, r.number)
	}
}

// Boundary is a point between changes at which a restart may begin: a commit, a DDL statement, a rotation, a
// heartbeat, a transaction or rows event of which nothing is captured. It carries the offset that holds there.
type Boundary struct {
	Offset offset.Offset
	Commit bool // a transaction ended here
	Idle   bool // a heartbeat: nothing more is waiting on the server

	// Of Commit, when a [Begin] was given out: what the record of the transaction's end needs.
	Info   Info
	ID     string        // the transaction's id, as in Begin
	Before offset.Offset // the offset inside the transaction, before its end
}

// Begin is the beginning of a transaction, captured rows or not. It is given out only with Config.Transactions.
type Begin struct {
	Info   Info
	ID     string        // its GTID; without GTIDs file=<file>,pos=<position of BEGIN>
	Offset offset.Offset // at its BEGIN
	Resume bool          // the start lies inside the transaction: what comes next is its rest
}

// SchemaChange is a DDL statement. The tables' new definitions are in force from here on. Changes has a value for each
// record that Debezium would write.
type SchemaChange struct {
	Info    Info
	Row     int // row of the last rows event before it, which Debezium's source block has
	Changes []schema.SchemaChange
	Record  offset.Offset // what Debezium's record carries: the end of the statement, without its own GTID
	Before  offset.Offset // the offset before the statement
	Offset  offset.Offset // the boundary after it, with its GTID
	// Tables are the definitions that the statement changed, for the schema store.
	Tables []schema.StoredTable
	// AnsiQuotes says that the statement's sql_mode has ANSI_QUOTES, which Debezium's parser does not know.
	AnsiQuotes bool
}

// Truncate is a TRUNCATE TABLE of a captured table; Offset is the boundary after it.
type Truncate struct {
	Info            Info
	Database, Table string
	Definition      *schema.Definition // the table as it is known here; nil when it is not
	Record          offset.Offset      // what Debezium's record carries: the end of the statement, without its own GTID
	Offset          offset.Offset
}

func (*Rows) event()         {}
func (*Boundary) event()     {}
func (*Begin) event()        {}
func (*SchemaChange) event() {}
func (*Truncate) event()     {}
