package server

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidemark-cdc/tidemark/offset"
)

// sameBinlog says whether the file of an offset of this very server is there. If its binlog cannot be the one that the offset is from, it
// refuses it: a server that was restored from a backup, or has lost the end of its binlog, gives GTIDs a second time, and once it has come
// beyond the stored set, that alone looks as if nothing had happened.
func (c *Conn) sameBinlog(ctx context.Context, info *Info, start offset.Offset) (there bool, err error) {
	s := start.Side
	if s == nil || s.Server == "" || s.Server != info.UUID || start.File == "" || start.Pos < 4 {
		return false, nil
	}
	logs, err := c.BinaryLogs(ctx)
	if err != nil || len(logs) == 0 {
		return false, err
	}
	for _, l := range logs {
		switch {
		case l.Name != start.File:
		case start.Pos > l.Size:
			return false, c.rewritten(info, start, fmt.Sprintf("that file has only %d bytes", l.Size), nil)
		default:
			return true, nil
		}
	}
	newest := logs[len(logs)-1].Name
	base, number := splitLog(start.File)
	if newBase, newNumber := splitLog(newest); base == newBase && number > newNumber {
		return false, c.rewritten(info, start, "its newest binlog file is "+newest, nil)
	}
	return false, nil // purged, or the files have another name: the set alone counts
}

// rewritten is the error for an offset of this very server that its binlog does not have.
func (c *Conn) rewritten(info *Info, start offset.Offset, why string, cause error) error {
	return &fault{
		text: fmt.Sprintf("the stored offset %s:%d is from this very server, %s (server_uuid %s), but %s: it has lost the end of its binlog (a crash without sync_binlog=1), "+
			"was restored from a backup or a disk snapshot, or was reset (RESET BINARY LOGS AND GTIDS). All GTIDs of the offset are in its gtid_executed, but it may have given some of them a second time, "+
			"to other transactions, which would be left out unseen. If you know that it has not (gtid_purged was set by hand, say), %s and go on with start.position=%s; else %s",
			start.File, start.Pos, c.name(), info.UUID, why, offset.HowToDelete, shortSet(start.GTIDs.String()), Stored.anew()),
		kind: ErrOtherServer, cause: cause,
	}
}

// direct says whether a stream by GTIDs may begin at the very position of a stored offset. Without a position the server reads
// the file from its beginning and leaves out what is done, which takes a second for half a gigabyte.
//
// The offset must be this server's own and lie between transactions, and the transaction that begins there must follow upon
// the set: a binlog that was written anew may have another one there. If not, or if anything is unclear, the set alone counts.
//
// Something must have been read before it was stored. Where a stream is to begin now the server names a position behind
// transactions that are written but not committed yet, and a set without them: those of another source or tag than the next
// transaction would be left out unseen.
func (c *Conn) direct(ctx context.Context, info *Info, start offset.Offset) (bool, error) {
	s := start.Side
	if info.MariaDB() || s == nil || s.Server == "" || s.Server != info.UUID || s.Open != nil || start.ServerID == 0 || start.Event != 0 || start.Row != 0 || start.File == "" || start.Pos <= 4 {
		return false, nil
	}
	res, err := c.query(ctx, fmt.Sprintf("SHOW BINLOG EVENTS IN %s FROM %d LIMIT 1", quote(start.File), start.Pos))
	switch {
	case code(err) == 1220 && strings.Contains(err.Error(), "target log"):
		return false, nil // purged this moment
	case code(err) == 1220, err == nil && res.rows() > 0 && (noEvent(res, nil, start.Pos) || within(res)):
		return false, c.rewritten(info, start, "no transaction begins at that position any more", err)
	case isServerError(err):
		return false, nil
	case err != nil || res.rows() == 0:
		return false, err
	}
	_, text, ok := strings.Cut(res.text(0, "Info"), "GTID_NEXT= '")
	text, _, quoted := strings.Cut(text, "'")
	if !ok || !quoted {
		return false, nil
	}
	next, err := offset.ParseGTID(text)
	if err != nil || next.MariaDB || start.GTIDs.Contains(next) {
		return false, nil
	}
	before := next
	before.Number--
	return before.Number == 0 || start.GTIDs.Contains(before), nil
}
