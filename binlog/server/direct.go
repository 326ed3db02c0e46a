package server

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidemark-cdc/tidemark/offset"
)

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
	if isServerError(err) {
		return false, nil
	}
	if err != nil || res.rows() == 0 || int64(res.number(0, "Pos")) != start.Pos {
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
