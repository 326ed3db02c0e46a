package server

import (
	"context"
	"fmt"
	"slices"
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
	Origin Origin // who said so
	Direct bool   // with ByGTID: the stream may begin at File and Pos, before which everything is in the set
}

// Origin says who named a position. Error texts speak of it, and of what can be done about it.
type Origin uint8

const (
	Stored Origin = iota // the offset that was stored for the connector
	Given                // somebody who starts the stream: start.position, --from
)

// String names the position in a sentence.
func (o Origin) String() string {
	if o == Given {
		return "the start position"
	}
	return "the stored offset"
}

// anew says how to begin elsewhere.
func (o Origin) anew() string {
	if o == Given {
		return "choose another start position (start.position, --from): oldest, now, or one that is in SHOW BINARY LOGS"
	}
	return offset.HowToDelete + " and start anew with start.position=oldest or now"
}

// executedWait is how long a GTID of an offset may be missing in the server's executed set. The server sends a
// transaction as soon as it is in the binlog, which is before its commit is done: with semi-synchronous replicas the
// difference can be seen.
const executedWait = 3 * time.Second

// Locate decides where the stream from an offset begins, after proving what can be proven without reading: that the
// server knows everything the offset says was done ([ErrOtherServer]), and still has everything after it ([ErrPurged]).
// An offset of this very server must also be in its binlog. The errors speak of it by its origin.
//
// A replica that has not yet executed what the offset names is waited for as long as it is catching up ([ErrBehind]): what is missing
// comes, and until then nothing is read. One that has caught up without it, or does not replicate, is an ErrOtherServer.
//
// With GTIDs in the offset and gtid_mode=ON the stream is asked for by GTIDs, wherever the server has them, from the offset's
// position on if that is proven to be right. Otherwise
// by file and position, where an event must begin; that it is the right one (a BEGIN, when the offset is inside a
// transaction) is for the reader of the stream to see.
func (c *Conn) Locate(ctx context.Context, start offset.Offset, origin Origin) (DumpFrom, error) {
	info, err := c.Info(ctx)
	if err != nil {
		return DumpFrom{}, err
	}
	from := DumpFrom{File: start.File, Pos: start.Pos, Origin: origin}
	if !start.GTIDs.IsAbsent() {
		from.GTIDs = start.GTIDs.String()
		if err := c.locateGTIDs(ctx, info, from.GTIDs, origin); err != nil {
			return DumpFrom{}, err
		}
		if info.UsesGTIDs() {
			from.ByGTID = true
			there, err := c.sameBinlog(ctx, info, start)
			if err == nil && there {
				from.Direct, err = c.direct(ctx, info, start)
			}
			return from, err
		}
	}
	if err := c.locateFile(ctx, from.File, from.Pos, start.Event == 0 && start.Row == 0, origin); err != nil {
		return DumpFrom{}, err
	}
	return from, nil
}

// locateGTIDs compares an offset's GTIDs with those of the server.
func (c *Conn) locateGTIDs(ctx context.Context, info *Info, done string, origin Origin) error {
	ask := c.compareGTIDs
	if info.MariaDB() {
		ask = c.compareMariaGTIDs
	}
	var unknown, gone string
	for begin, last := time.Now(), false; ; {
		var err error
		if unknown, gone, err = ask(ctx, done); err != nil {
			return err
		}
		if unknown == "" || last {
			break
		}
		if time.Since(begin) > executedWait {
			if err := c.catchingUp(ctx, info, unknown, origin); err != nil {
				return err
			}
			last = true // which looks at what it has applied meanwhile
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(executedWait / 15):
		}
	}
	if unknown != "" {
		return c.phantoms(ctx, info, unknown, origin)
	}
	if gone != "" && info.UsesGTIDs() {
		return faultf(ErrPurged, "%s has purged binlogs with transactions that come after %s: %s. %s", c.name(), origin, gone, purgedChoices(origin))
	}
	return nil
}

// compareGTIDs says what of a set the server has never executed, and what it has purged that is not in the set.
func (c *Conn) compareGTIDs(ctx context.Context, done string) (unknown, gone string, err error) {
	res, err := c.query(ctx, fmt.Sprintf("SELECT GTID_SUBTRACT(%[1]s, @@GLOBAL.gtid_executed) AS unknown, GTID_SUBTRACT(@@GLOBAL.gtid_purged, %[1]s) AS gone", quote(done)))
	if err != nil {
		return "", "", err
	}
	return oneLine(res.text(0, "unknown")), oneLine(res.text(0, "gone")), nil
}

// purgedChoices is what somebody can do whose binlog is gone.
func purgedChoices(origin Origin) string {
	if origin == Given {
		return "Choices: " + origin.anew() + "; or point database.hostname at a server that still has them (a replica with longer retention, a restored backup). " +
			"To keep binlogs longer: SET PERSIST binlog_expire_logs_seconds=604800"
	}
	return "Choices: point database.hostname at a server that still has them (a replica with longer retention, a restored backup); " +
		"or accept the gap: " + origin.anew() + ", and bring the tables' present rows to the topics by a new snapshot " +
		"(delete the offset and let Debezium take one). To keep binlogs longer: SET PERSIST binlog_expire_logs_seconds=604800"
}

// locateFile proves that an event begins at file:pos, or that it is the present end of the file. Between transactions it must be one
// that begins a transaction or stands alone.
func (c *Conn) locateFile(ctx context.Context, file string, pos int64, between bool, origin Origin) error {
	logs, err := c.BinaryLogs(ctx)
	if err != nil {
		return err
	}
	if len(logs) == 0 {
		return faultf(ErrSetup, "%s has no binlog; start it with --log-bin", c.name())
	}
	for _, l := range logs {
		if l.Name != file {
			continue
		}
		switch {
		case pos < 4:
			return faultf(ErrOtherServer, "%s is %s:%d, where no event can begin: the first one of a file is at 4; %s", origin, file, pos, origin.anew())
		case pos > l.Size:
			return faultf(ErrOtherServer, "%s %s:%d lies beyond the end of that file on %s, which has %d bytes: "+
				"it is from another server, or this one has lost the end of its binlog (a crash without sync_binlog=1) or was reset. "+
				"Check database.hostname; if it is right, %s", origin, file, pos, c.name(), l.Size, origin.anew())
		case pos == l.Size || pos == 4:
			return nil
		}
		return c.eventBegins(ctx, file, pos, between, origin)
	}
	oldest, newest := logs[0].Name, logs[len(logs)-1].Name
	base, number := splitLog(file)
	oldBase, oldNumber := splitLog(oldest)
	if base == oldBase && number < oldNumber {
		return faultf(ErrPurged, "%s %s:%d lies in a binlog file that %s has purged; the oldest that it has is %s. %s", origin, file, pos, c.name(), oldest, purgedChoices(origin))
	}
	return faultf(ErrOtherServer, "%s %s:%d names a binlog file that %s does not have; it has %s to %s: the position is from another server, or this one was reset. "+
		"Check database.hostname; if it is right, %s", origin, file, pos, c.name(), oldest, newest, origin.anew())
}

// eventBegins proves that an event begins at file:pos.
func (c *Conn) eventBegins(ctx context.Context, file string, pos int64, between bool, origin Origin) error {
	res, err := c.query(ctx, fmt.Sprintf("SHOW BINLOG EVENTS IN %s FROM %d LIMIT 1", quote(file), pos))
	switch {
	case noEvent(res, err, pos):
		return c.elsewhere(file, pos, "no event begins there", err, origin)
	case err != nil:
		return c.needs(err, "REPLICATION SLAVE")
	case between && within(res):
		return c.elsewhere(file, pos, "the event there ("+res.text(0, "Event_type")+") is in the middle of a transaction", nil, origin)
	}
	return nil
}

// noEvent says whether the answer to SHOW BINLOG EVENTS is that none begins at pos.
func noEvent(res *result, err error, pos int64) bool {
	return code(err) == 1220 || err == nil && (res.rows() == 0 || int64(res.number(0, "Pos")) != pos)
}

// elsewhere is the error for a position that is none of this server's.
func (c *Conn) elsewhere(file string, pos int64, why string, cause error, origin Origin) error {
	return &fault{
		text: fmt.Sprintf("%s is %s:%d, but %s on %s: the position is from another server, or from a binlog that was written anew since, or was written by hand. "+
			"Check database.hostname; the positions that exist: SHOW BINLOG EVENTS IN %s LIMIT 20; if none of them will do, %s",
			origin, file, pos, why, c.name(), quote(file), origin.anew()),
		kind: ErrOtherServer, cause: cause,
	}
}

// insideTransactions are the beginnings of the names of events that only stand in a transaction that has begun before them.
var insideTransactions = []string{
	"Table_map", "Write_rows", "Update_rows", "Delete_rows", "Xid", "XA_prepare", "Rows_query", "Annotate_rows", "Transaction_payload",
	"Intvar", "RAND", "User var", "Begin_load_query", "Append_block", "Execute_load_query",
}

// within says whether the event that SHOW BINLOG EVENTS shows can only stand inside a transaction.
func within(res *result) bool {
	kind, info := res.text(0, "Event_type"), res.text(0, "Info")
	if kind == "Query" {
		return info == "COMMIT" || info == "ROLLBACK" || strings.HasPrefix(info, "XA END")
	}
	return slices.ContainsFunc(insideTransactions, func(name string) bool { return strings.HasPrefix(kind, name) })
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
