package server

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-cdc/tidemark/offset"
)

// DumpFrom is where a binlog stream begins.
type DumpFrom struct {
	File   string // binlog file in which the stream begins; with ByGTID only what error texts call its start
	Pos    int64  // position in File of the stream's first event
	GTIDs  string // the set that the offset holds; "" for none
	ByGTID bool   // ask by GTIDs: all that is not in the set, from the first such transaction on
}

// executedWait is how long a GTID of an offset may be missing in the server's executed set. The server sends a
// transaction as soon as it is in the binlog, which is before its commit is done: with semi-synchronous replicas the
// difference can be seen.
const executedWait = 3 * time.Second

// Locate decides where the stream from a stored offset begins, after proving what can be proven without reading: that
// the server knows everything the offset says was done ([ErrOtherServer]), and still has everything after it
// ([ErrPurged]).
//
// With GTIDs in the offset and gtid_mode=ON the stream is asked for by GTIDs, wherever the server has them. Otherwise
// by file and position, where an event must begin; that it is the right one (a BEGIN, when the offset is inside a
// transaction) is for the reader of the stream to see.
func (c *Conn) Locate(ctx context.Context, start offset.Offset) (DumpFrom, error) {
	info, err := c.Info(ctx)
	if err != nil {
		return DumpFrom{}, err
	}
	from := DumpFrom{File: start.File, Pos: start.Pos}
	if !start.GTIDs.IsAbsent() {
		from.GTIDs = start.GTIDs.String()
		if err := c.locateGTIDs(ctx, info, from.GTIDs); err != nil {
			return DumpFrom{}, err
		}
		if info.UsesGTIDs() {
			from.ByGTID = true
			return from, nil
		}
	}
	if err := c.locateFile(ctx, from.File, from.Pos); err != nil {
		return DumpFrom{}, err
	}
	return from, nil
}

// locateGTIDs compares an offset's GTIDs with those of the server.
func (c *Conn) locateGTIDs(ctx context.Context, info *Info, stored string) error {
	sql := fmt.Sprintf("SELECT GTID_SUBTRACT(%[1]s, @@GLOBAL.gtid_executed) AS unknown, GTID_SUBTRACT(@@GLOBAL.gtid_purged, %[1]s) AS gone", quote(stored))
	var unknown, gone string
	for begin := time.Now(); ; {
		res, err := c.query(ctx, sql)
		if err != nil {
			return err
		}
		unknown, gone = oneLine(res.text(0, "unknown")), oneLine(res.text(0, "gone"))
		if unknown == "" || time.Since(begin) > executedWait {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(executedWait / 15):
		}
	}
	if unknown != "" {
		why := "the offset is from another server, or this one was reset (RESET BINARY LOGS AND GTIDS) or restored"
		if strings.Contains(strings.ToLower(unknown), strings.ToLower(info.UUID)) {
			why = "it is its own uuid: the server has lost transactions (a crash without sync_binlog=1, an older backup), or was reset (RESET BINARY LOGS AND GTIDS)"
		}
		return faultf(ErrOtherServer, "the stored offset names transactions that MySQL at %s (server_uuid %s) has never executed: %s. %s%s. "+
			"Check database.hostname; if this is the right server, what follows cannot be continued: delete the connector's stored offset and start anew (start.position=oldest or now)",
			c.Address(), info.UUID, unknown, strings.ToUpper(why[:1]), why[1:])
	}
	if gone != "" && info.UsesGTIDs() {
		return faultf(ErrPurged, "MySQL at %s has purged binlogs with transactions that the stored offset still needs: %s. %s", c.Address(), gone, purgedChoices)
	}
	return nil
}

// purgedChoices is what somebody can do whose binlog is gone.
const purgedChoices = "Choices: point database.hostname at a server that still has them (a replica with longer retention, a restored backup); " +
	"or accept the gap: delete the connector's stored offset and start anew with start.position=oldest or now, and bring the tables' present rows to the topics by a new snapshot " +
	"(delete the offset and let Debezium take one). To keep binlogs longer: SET PERSIST binlog_expire_logs_seconds=604800"

// locateFile proves that an event begins at file:pos, or that it is the present end of the file.
func (c *Conn) locateFile(ctx context.Context, file string, pos int64) error {
	logs, err := c.BinaryLogs(ctx)
	if err != nil {
		return err
	}
	if len(logs) == 0 {
		return faultf(ErrSetup, "MySQL at %s has no binlog; start it with --log-bin", c.Address())
	}
	for _, l := range logs {
		if l.Name != file {
			continue
		}
		switch {
		case pos < 4:
			return faultf(ErrOtherServer, "no event can begin at %s:%d: the first one of a file is at 4; correct the stored offset", file, pos)
		case pos > l.Size:
			return faultf(ErrOtherServer, "the stored offset %s:%d lies beyond the end of that file on MySQL at %s, which has %d bytes: "+
				"the offset is from another server, or this one has lost the end of its binlog (a crash without sync_binlog=1) or was reset. "+
				"Check database.hostname; to start anew, delete the connector's stored offset", file, pos, c.Address(), l.Size)
		case pos == l.Size || pos == 4:
			return nil
		}
		return c.eventBegins(ctx, file, pos)
	}
	oldest, newest := logs[0].Name, logs[len(logs)-1].Name
	base, number := splitLog(file)
	oldBase, oldNumber := splitLog(oldest)
	if base == oldBase && number < oldNumber {
		return faultf(ErrPurged, "MySQL at %s has purged the binlog file %s of the stored offset; the oldest that it has is %s. %s", c.Address(), file, oldest, purgedChoices)
	}
	return faultf(ErrOtherServer, "MySQL at %s has no binlog file %s, which the stored offset names; it has %s to %s: the offset is from another server, or this one was reset. "+
		"Check database.hostname; to start anew, delete the connector's stored offset", c.Address(), file, oldest, newest)
}

// eventBegins proves that an event begins at file:pos.
func (c *Conn) eventBegins(ctx context.Context, file string, pos int64) error {
	res, err := c.query(ctx, fmt.Sprintf("SHOW BINLOG EVENTS IN %s FROM %d LIMIT 1", quote(file), pos))
	switch {
	case code(err) == 1220, err == nil && (res.rows() == 0 || int64(res.number(0, "Pos")) != pos):
		return &fault{
			text: fmt.Sprintf("no event begins at %s:%d on MySQL at %s, where the stored offset says one does: the offset is from another server, or it was changed by hand. "+
				"Check database.hostname; the positions that exist: SHOW BINLOG EVENTS IN %s LIMIT 20", file, pos, c.Address(), quote(file)),
			kind: ErrOtherServer, cause: err,
		}
	case err != nil:
		return c.needs(err, "REPLICATION SLAVE")
	}
	return nil
}

// splitLog splits mysql-bin.000123 into its base and number; a name without a number gets -1.
func splitLog(name string) (base string, number int64) {
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 {
		return name, -1
	}
	n, err := strconv.ParseInt(name[dot+1:], 10, 64)
	if err != nil || n < 0 {
		return name, -1
	}
	return name[:dot], n
}
