package offset

// Side is what Debezium's offset cannot say: which server it is from, which transaction is open and which XA
// transactions are undecided. It travels with an [Offset] and is stored beside it, in a record of its own. It is
// immutable: many offsets share one.
type Side struct {
	Server string     // server_uuid; "" when it is not known
	Open   *Open      // the open transaction; nil between two
	XA     []Prepared // prepared, undecided XA transactions; not to be changed

	// FileTime is when the offset's binlog file was begun, as its FORMAT_DESCRIPTION says, in seconds since the epoch: another
	// file of the same name has another one. 0: not known.
	FileTime int64
}

// Open is the transaction that an offset lies in, as it was before the rows event at hand. The rows of that event that
// are done are [Offset.Row], or [Offset.Done] when XID is set.
type Open struct {
	GTID         GTID   // zero without GTIDs
	CommitMicros int64  // original_commit_timestamp, µs since the epoch; 0: not known
	Thread       int64  // -1: not known
	Rows         int64  // rows since BEGIN, over all tables; -1: they could not be counted
	Captured     int64  // the same over the captured ones; -1 likewise
	Filters      string // fingerprint of the table filters that Captured goes by

	// The first event of the open statement: its ROWS_QUERY, else its first TABLE_MAP; in a compressed transaction the
	// payload event.
	StatementPos   int64
	StatementEvent int64 // its number since BEGIN, as in Offset.Event

	EventPos int64 // of the rows event that the offset lies in; 0: it lies in none, or in a compressed transaction

	XID string // the rows of this XA transaction are being given out, at its XA COMMIT; "" in an ordinary one
}

// Prepared is an XA transaction that was prepared and neither committed nor rolled back.
type Prepared struct {
	XID    string // as the binlog prints it: X'…',X'…',1
	Server string // server_uuid of the binlog that it stands in
	File   string
	Pos    int64 // where its group begins: its GTID event
	GTID   string
	Skip   int64 // its first rows of captured tables that are not to be given out: a taken-over offset covers them
}
