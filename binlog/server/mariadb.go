package server

import (
	"context"
	"crypto/sha1"
	"encoding/binary"
	"fmt"

	"github.com/tidemark-cdc/tidemark/offset"
)

// mariaGTIDs returns the newest GTIDs at a position of a MariaDB's binlog.
func (c *Conn) mariaGTIDs(ctx context.Context, file string, pos int64) (string, error) {
	res, err := c.query(ctx, fmt.Sprintf("SELECT BINLOG_GTID_POS(%s, %d) AS g", quote(file), pos))
	if err != nil {
		return "", err
	}
	set, err := offset.ParseGTIDSet(oneLine(res.text(0, "g")))
	if err != nil {
		return "", fmt.Errorf("%s: the GTIDs at %s:%d: %w", c.name(), file, pos, err)
	}
	return set.String(), nil // the server has them in no order
}

// compareMariaGTIDs says in which domains a position is beyond what the server has, and in which its oldest binlog file
// begins beyond it.
func (c *Conn) compareMariaGTIDs(ctx context.Context, done string) (unknown, gone string, err error) {
	set, err := offset.ParseGTIDSet(done)
	if err != nil {
		return "", "", err
	}
	info, err := c.Info(ctx)
	if err != nil {
		return "", "", err
	}
	has, err := offset.ParseGTIDSet(info.Executed)
	if err != nil {
		return "", "", fmt.Errorf("%s: gtid_binlog_pos: %w", c.name(), err)
	}
	logs, err := c.BinaryLogs(ctx)
	if err != nil {
		return "", "", err
	}
	begin := offset.EmptyGTIDSet()
	if len(logs) > 0 {
		text, err := c.mariaGTIDs(ctx, logs[0].Name, 4)
		if err != nil {
			return "", "", err
		}
		if begin, err = offset.ParseGTIDSet(text); err != nil {
			return "", "", fmt.Errorf("%s: the GTIDs before %s: %w", c.name(), logs[0].Name, err)
		}
	}
	return set.Subtract(has).String(), begin.Subtract(set).String(), nil
}

// mariaReplica says to a MariaDB what we can read (its GTIDs, checksums and events of all versions) and, by GTID, where we
// are. Whether a GTID must be in its binlog to begin behind it is as strict as it is with itself.
func (c *Conn) mariaReplica(ctx context.Context, sess *session, from DumpFrom) error {
	sql := "SET @mariadb_slave_capability=4"
	if from.ByGTID {
		set, err := offset.ParseGTIDSet(oneLine(from.GTIDs))
		if err != nil {
			return &fault{text: fmt.Sprintf("GTID position %q", shorten(from.GTIDs)), cause: err}
		}
		sql += ", @slave_connect_state=" + quote(set.String()) + ", @slave_gtid_strict_mode=@@GLOBAL.gtid_strict_mode, @slave_gtid_ignore_duplicates=0"
	}
	_, err := sess.query(ctx, sql)
	return err
}

// besideID is a server id for a second stream: one that nobody is likely to have.
func besideID(uuid string, serverID uint32) uint32 {
	sum := sha1.Sum([]byte(uuid))
	id := binary.LittleEndian.Uint32(sum[:]) | 1<<31
	if id == serverID {
		id--
	}
	return id
}
