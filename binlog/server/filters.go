package server

import (
	"context"
	"strings"
)

// Filters says what the server leaves out of its binlog that its source has, or that its sessions change: its replication
// and binlog filters, "" for none.
func (c *Conn) Filters(ctx context.Context) (string, error) {
	var found []string
	collect := func(res *result, columns ...string) {
		for i := range res.rows() {
			for _, column := range columns {
				if v := res.text(i, column); v != "" {
					found = append(found, column+"="+v)
				}
			}
		}
	}
	res, err := c.queryEither(ctx, "SHOW BINARY LOG STATUS", "SHOW MASTER STATUS")
	if err != nil {
		return "", c.needs(err, "REPLICATION CLIENT")
	}
	collect(res, "Binlog_Do_DB", "Binlog_Ignore_DB")
	if res, err = c.queryEither(ctx, "SHOW REPLICA STATUS", "SHOW SLAVE STATUS"); err != nil {
		if err = c.needs(err, "REPLICATION CLIENT"); isKind(err, ErrAccess) && c.maria.Load() { // it takes SLAVE MONITOR there
			return strings.Join(append(found, "those of replication cannot be seen without SLAVE MONITOR"), ", "), nil
		}
		return "", err
	}
	collect(res, "Replicate_Do_DB", "Replicate_Ignore_DB", "Replicate_Do_Table", "Replicate_Ignore_Table",
		"Replicate_Wild_Do_Table", "Replicate_Wild_Ignore_Table", "Replicate_Rewrite_DB")
	return strings.Join(found, ", "), nil
}
