package server

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"
)

// Requirements is what Check looks for beside the server's settings.
type Requirements struct {
	ServerID uint32 // database.server.id
	Identity string // name of the connector
}

// Check reports everything about the server that stands in the way of reading its binlog, each fault with the SQL that
// mends it, all joined in one error. It is nil when nothing does. An error of asking (the network) is returned as it is.
func (c *Conn) Check(ctx context.Context, req Requirements) error {
	info, err := c.Info(ctx)
	if err != nil {
		return err
	}
	faults := c.checkSettings(info)
	for _, check := range []func(context.Context) error{
		c.checkGrants,
		func(ctx context.Context) error { return c.checkReplica(ctx, info) },
		func(ctx context.Context) error { return c.checkServerID(ctx, info, req) },
	} {
		if err := check(ctx); err != nil {
			if !errors.Is(err, ErrSetup) && !errors.Is(err, ErrAccess) && !errors.Is(err, ErrServerIDInUse) {
				return err
			}
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// checkSettings looks at the binlog's global variables.
func (c *Conn) checkSettings(info *Info) []error {
	var faults []error
	bad := func(format string, args ...any) { faults = append(faults, faultf(ErrSetup, format, args...)) }
	if !info.BinlogOn {
		bad("%s writes no binlog (log_bin=OFF); start the server with --log-bin and without --skip-log-bin", c.name())
		return faults
	}
	const reconnect = "; then let the applications connect again, since open sessions keep the old value"
	if !strings.EqualFold(info.Format, "ROW") {
		bad("binlog_format is %s on %s, so changes come as SQL text instead of rows: %s%s", info.Format, c.name(), info.persist("binlog_format=ROW"), reconnect)
	}
	// A MariaDB's FULL_NODUP leaves out of after images what before images have.
	if !strings.EqualFold(info.RowImage, "FULL") && info.RowImage != "" && !(info.MariaDB() && strings.EqualFold(info.RowImage, "FULL_NODUP")) {
		bad("binlog_row_image is %s on %s, so rows come with columns missing: %s%s", info.RowImage, c.name(), info.persist("binlog_row_image=FULL"), reconnect)
	}
	if info.RowMetadata != "" && !strings.EqualFold(info.RowMetadata, "FULL") {
		c.cfg.Log.Warn("the binlog does not name the columns of its rows, so their definitions must be known at each position: keep the schema store, or write the names",
			zap.String("server", c.Address()), zap.String("binlog_row_metadata", info.RowMetadata), zap.String("write_them_with", info.persist("binlog_row_metadata=FULL")))
	}
	return faults
}

// checkGrants tries what the privileges are needed for, so that roles, partial revokes and managed servers' own rules
// count as they are.
func (c *Conn) checkGrants(ctx context.Context) error {
	lacking, err := c.lackingGrants(ctx)
	if err != nil || len(lacking) == 0 {
		return err
	}
	account := "'" + c.cfg.User + "'@'%'"
	if res, err := c.query(ctx, "SELECT CURRENT_USER() AS u"); err == nil {
		if at := strings.LastIndexByte(res.text(0, "u"), '@'); at >= 0 {
			account = quote(res.text(0, "u")[:at]) + "@" + quote(res.text(0, "u")[at+1:])
		}
	}
	var faults []error
	for _, l := range lacking {
		faults = append(faults, faultf(ErrAccess, "user %s lacks the privilege %s on %s, which is for %s: GRANT %s ON *.* TO %s%s",
			account, l.privilege, c.name(), l.use, l.privilege, account, l.more))
	}
	if res, err := c.query(ctx, "SHOW GRANTS"); err == nil && hasIdleRole(res) {
		faults = append(faults, faultf(ErrAccess, "user %s has been granted roles, but none is active at login: SET DEFAULT ROLE ALL TO %s", account, account))
	}
	return errors.Join(faults...)
}

type lack struct{ privilege, use, more string }

func (c *Conn) lackingGrants(ctx context.Context) ([]lack, error) {
	var lacking []lack
	grants, err := c.query(ctx, "SHOW GRANTS")
	if err != nil {
		return nil, err
	}
	if c.maria.Load() { // where the list of replicas takes more than being one
		if !granted(grants, "REPLICATION SLAVE") {
			lacking = append(lacking, lack{"REPLICATION SLAVE", "reading the binlog", ""})
		}
	} else if _, err := c.replicas(ctx); isKind(err, ErrAccess) {
		lacking = append(lacking, lack{"REPLICATION SLAVE", "reading the binlog", ""})
	} else if err != nil {
		return nil, err
	}
	if _, err := c.BinaryLogs(ctx); isKind(err, ErrAccess) {
		lacking = append(lacking, lack{"REPLICATION CLIENT", "asking where the binlog stands", ""})
	} else if err != nil && code(err) != 1381 { // 1381: binlog off, which is a fault of its own
		return nil, err
	}
	if !grantsSelect(grants) {
		lacking = append(lacking, lack{"SELECT", "reading the definitions of the captured tables", " (or on their databases alone)"})
	}
	return lacking, nil
}

// granted reports whether a privilege is granted on everything.
func granted(res *result, privilege string) bool {
	for i := range res.rows() {
		privileges, ok := strings.CutPrefix(firstColumn(res, i), "GRANT ")
		privileges, _, on := strings.Cut(privileges, " ON *.* ")
		if !ok || !on {
			continue
		}
		for _, p := range strings.Split(privileges, ",") {
			if p = strings.TrimSpace(p); p == privilege || p == "ALL PRIVILEGES" || p == "ALL" {
				return true
			}
		}
	}
	return false
}

// grantsSelect reports whether SELECT is granted on anything but tables of the server itself.
func grantsSelect(res *result) bool {
	for i := range res.rows() {
		privileges, on, ok := strings.Cut(firstColumn(res, i), " ON ")
		if !ok || strings.HasPrefix(on, "`performance_schema`.") || strings.HasPrefix(on, "`mysql`.") || strings.HasPrefix(on, "`sys`.") {
			continue
		}
		privileges, ok = strings.CutPrefix(privileges, "GRANT ")
		if !ok { // REVOKE … of partial revokes
			continue
		}
		for _, p := range strings.Split(privileges, ",") {
			p = strings.TrimSpace(p)
			if p == "SELECT" || strings.HasPrefix(p, "SELECT (") || p == "ALL PRIVILEGES" || p == "ALL" {
				return true
			}
		}
	}
	return false
}

// hasIdleRole reports whether roles are granted of which nothing else in the grants can come: SHOW GRANTS merges the
// privileges of active roles into the user's own.
func hasIdleRole(res *result) bool {
	role, own := false, false
	for i := range res.rows() {
		line := firstColumn(res, i)
		switch {
		case strings.HasPrefix(line, "GRANT USAGE ON *.*"):
		case strings.Contains(line, " ON "):
			own = true
		case strings.HasPrefix(line, "GRANT `"):
			role = true
		}
	}
	return role && !own
}

func firstColumn(res *result, row int) string {
	s, err := res.GetString(row, 0)
	if err != nil {
		return ""
	}
	return s
}

// checkReplica asks of a replica that it writes into its own binlog what it replicates.
func (c *Conn) checkReplica(ctx context.Context, info *Info) error {
	if info.LogsReplicaUpdates || !info.BinlogOn {
		return nil
	}
	res, err := c.queryEither(ctx, "SHOW REPLICA STATUS", "SHOW SLAVE STATUS")
	if err != nil {
		if isKind(c.needs(err, "REPLICATION CLIENT"), ErrAccess) {
			return nil // lackingGrants says so, or it is a MariaDB, where it takes SLAVE MONITOR
		}
		return err
	}
	if res.rows() == 0 {
		return nil
	}
	return faultf(ErrSetup, "%s is a replica of %s and does not write what it replicates to its own binlog (log_replica_updates=OFF), "+
		"so those changes would be missed: start it with --log-replica-updates, or point database.hostname at its source",
		c.name(), res.text(0, "Source_Host", "Master_Host"))
}

// checkServerID asks whether our server id is a possible one and free.
func (c *Conn) checkServerID(ctx context.Context, info *Info, req Requirements) error {
	if req.ServerID == 0 {
		return faultf(ErrSetup, "database.server.id is 0, which no replica may have: use a number of 1 to 4294967295 that no other replica of %s has", c.name())
	}
	if req.ServerID == info.ServerID {
		return faultf(ErrServerIDInUse, "database.server.id %d is the server_id of %s itself: give this connector another database.server.id", req.ServerID, c.name())
	}
	list, err := c.replicas(ctx)
	if isKind(err, ErrAccess) {
		return nil // lackingGrants says so, or it is a MariaDB, where it takes REPLICATION MASTER ADMIN
	}
	if err != nil {
		return err
	}
	if err := c.foreign(list, req.ServerID, replicaUUID(req.Identity, req.ServerID), reportHost(req.Identity)); err != nil {
		return err
	}
	if !info.MariaDB() { // which ends the stream of whoever has our server id
		c.warnUnnamed(ctx)
	}
	return nil
}

// warnUnnamed looks for replication clients of our user that neither register nor have a uuid, as Debezium's does:
// the server lists them nowhere by server id, so all there is to say is that there is one. It takes SELECT on
// performance_schema; without it there is no warning.
func (c *Conn) warnUnnamed(ctx context.Context) {
	res, err := c.query(ctx, "SELECT t.PROCESSLIST_ID AS id, t.PROCESSLIST_HOST AS host FROM performance_schema.threads t "+
		"WHERE t.PROCESSLIST_COMMAND LIKE 'Binlog Dump%' AND t.PROCESSLIST_USER="+quote(c.cfg.User)+" AND NOT EXISTS ("+
		"SELECT 1 FROM performance_schema.user_variables_by_thread v WHERE v.THREAD_ID=t.THREAD_ID AND v.VARIABLE_NAME IN ('replica_uuid','slave_uuid'))")
	if err != nil {
		return
	}
	for i := range res.rows() {
		c.cfg.Log.Warn("another client of this user reads the binlog and does not say who it is, as Debezium does not: if it is this connector still running there, stop it, "+
			"or both will write the same events. One that was stopped just now looks like this until the server has something to send to it",
			zap.String("server", c.Address()), zap.String("user", c.cfg.User), zap.String("host", res.text(i, "host")),
			zap.String("end_it_with", fmt.Sprintf("KILL %s", res.text(i, "id"))))
	}
}

// replica is a line of SHOW REPLICAS: a replica that has registered. A later one with the same server id takes the
// line of an earlier one.
type replica struct {
	id         uint64
	host, uuid string
}

func (c *Conn) replicas(ctx context.Context) ([]replica, error) {
	res, err := c.queryEither(ctx, "SHOW REPLICAS", "SHOW SLAVE HOSTS")
	if err != nil {
		return nil, c.needs(err, "REPLICATION SLAVE")
	}
	list := make([]replica, res.rows())
	for i := range list {
		list[i] = replica{res.number(i, "Server_Id"), res.text(i, "Host"), res.text(i, "Replica_UUID", "Slave_UUID")}
	}
	return list, nil
}

// foreign reports a replica that has our server id and is not us. A MariaDB's replicas have no uuid.
func (c *Conn) foreign(list []replica, id uint32, uuid, host string) error {
	for _, r := range list {
		if r.id != uint64(id) || strings.EqualFold(r.uuid, uuid) || r.uuid == "" && c.maria.Load() && r.host == host {
			continue
		}
		return faultf(ErrServerIDInUse, "database.server.id %d is in use on %s by another replica (report host %q, uuid %q in SHOW REPLICAS): "+
			"give this connector another database.server.id, or stop the other one; if it has just been stopped, the server forgets it within its heartbeat period", id, c.name(), r.host, r.uuid)
	}
	return nil
}
