// Package offset knows which position is safe to restart from, its exact bytes, and where it is kept.
package offset

// Offset is Debezium's MySQL source offset: the position at which a restart begins, and how much to skip there. It is
// a small value; copies are cheap and share the immutable GTID set.
type Offset struct {
	TsSec    int64   // seconds since the epoch of the event's source time; 0: not written
	File     string  // binlog file to restart in
	Pos      int64   // position in File: of the open transaction's BEGIN, or the end of the last whole event outside one
	GTIDs    GTIDSet // executed set without the open transaction; the zero value: not written
	Row      int64   // rows of the next rows event already emitted; 0: not written
	ServerID int64   // server_id of the last event's header; 0: not written
	Event    int64   // events after and including BEGIN already done; 0: not written
	Extra    []Member // further members of a stored offset (snapshot, transaction_id …), in the order read
}

// Member is a member of a stored offset that Offset has no field for, as JSON text.
type Member struct {
	Name  string
	Value string // JSON
}
