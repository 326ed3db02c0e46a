package server

import (
	"context"
	"fmt"
)

// Position is a point in a server's binlog.
type Position struct {
	File  string
	Pos   int64
	GTIDs string // executed there; "" with none and without GTIDs; of a MariaDB the newest of each domain
}

// Log is one binlog file of the server.
type Log struct {
	Name string
	Size int64 // bytes, so far; the position at its end
}

// encryptionHeader is what a file has in front with binlog_encryption=ON. File_size has it in it, and positions have not.
const encryptionHeader = 512

// Position returns where the server's binlog stands now. Transactions that are written but not committed yet lie before the
// position, and are not among the GTIDs.
func (c *Conn) Position(ctx context.Context) (Position, error) {
	res, err := c.queryEither(ctx, "SHOW BINARY LOG STATUS", "SHOW MASTER STATUS")
	if err != nil {
		return Position{}, c.needs(err, "REPLICATION CLIENT")
	}
	if res.rows() == 0 {
		return Position{}, faultf(ErrSetup, "%s writes no binlog; start it with --log-bin", c.name())
	}
	p := Position{
		File: res.text(0, "File"), Pos: int64(res.number(0, "Position")), GTIDs: oneLine(res.text(0, "Executed_Gtid_Set")),
	}
	if c.maria.Load() {
		p.GTIDs, err = c.mariaGTIDs(ctx, p.File, p.Pos)
	}
	return p, err
}

// Tip returns file and position at which the server's binlog stands now. It asks on a connection of its own, also when c is closed, and of
// the server that c has asked before ([ErrMoved]).
func (c *Conn) Tip(ctx context.Context) (file string, pos int64, err error) {
	sess, err := c.login(ctx, false)
	if err != nil {
		return "", 0, err
	}
	defer sess.wire.Close()
	if err := c.recognise(ctx, sess); err != nil {
		return "", 0, err
	}
	res, err := sess.query(ctx, "SHOW BINARY LOG STATUS")
	if code(err) == 1064 {
		res, err = sess.query(ctx, "SHOW MASTER STATUS")
	}
	if err != nil || res.rows() == 0 {
		return "", 0, err
	}
	return res.text(0, "File"), int64(res.number(0, "Position")), nil
}

// BinaryLogs returns the binlog files that the server still has, oldest first.
func (c *Conn) BinaryLogs(ctx context.Context) ([]Log, error) {
	res, err := c.query(ctx, "SHOW BINARY LOGS")
	if err != nil {
		return nil, c.needs(err, "REPLICATION CLIENT")
	}
	logs := make([]Log, res.rows())
	for i := range logs {
		logs[i] = Log{Name: res.text(i, "Log_name"), Size: int64(res.number(i, "File_size"))}
		if res.text(i, "Encrypted") == "Yes" {
			logs[i].Size -= encryptionHeader
		}
	}
	return logs, nil
}

// queryEither runs the statement by its new name, or by the old one on a server that does not know the new one.
func (c *Conn) queryEither(ctx context.Context, now, before string) (*result, error) {
	res, err := c.query(ctx, now)
	if code(err) == 1064 {
		return c.query(ctx, before)
	}
	return res, err
}

// needs explains a refused statement by the privilege it takes.
func (c *Conn) needs(err error, privilege string) error {
	switch code(err) {
	case 1044, 1142, 1143, 1227, 1370:
		return &fault{
			text:  fmt.Sprintf("user '%s' lacks the privilege %s (GRANT %s ON *.* TO '%s'@'%%')", c.cfg.User, privilege, privilege, c.cfg.User),
			kind:  ErrAccess,
			cause: err,
		}
	}
	return err
}
