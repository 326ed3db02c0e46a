package server

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidemark-cdc/tidemark/offset"
)

// catchingUp returns an [ErrBehind] if the server is a replica that still has to apply what it has received, or lies behind its source: then
// what it lacks may be on its way. Its own transactions do not come that way.
func (c *Conn) catchingUp(ctx context.Context, info *Info, unknown string, origin Origin) error {
	if !info.MariaDB() && strings.Contains(strings.ToLower(unknown), strings.ToLower(info.UUID)) {
		return nil
	}
	state, err := c.replication(ctx, info)
	if err != nil || state.doing == "" {
		return err
	}
	return faultf(ErrBehind, "%s (server_uuid %s) has not executed yet what %s names: %s. It %s, so the stream waits until it has them. SHOW REPLICA STATUS there shows how far it is",
		c.name(), info.UUID, origin, shortSet(unknown), state.doing)
}

// replication is what a server does as a replica.
type replication struct {
	doing  string // what it is doing to catch up; "": nothing
	halted string // why it does not replicate; "": it does, or is no replica
}

// replication asks what the server does as a replica. Without the privilege to ask it does nothing.
func (c *Conn) replication(ctx context.Context, info *Info) (replication, error) {
	res, err := c.queryEither(ctx, "SHOW REPLICA STATUS", "SHOW SLAVE STATUS")
	if isServerError(err) {
		return replication{}, nil
	}
	if err != nil {
		return replication{}, err
	}
	now, err := c.Info(ctx)
	if err != nil {
		return replication{}, err
	}
	var state replication
	for i := range res.rows() {
		source := res.text(i, "Source_Host", "Master_Host")
		if running := res.text(i, "Replica_SQL_Running", "Slave_SQL_Running"); running != "Yes" {
			state.halted = fmt.Sprintf("its replication from %s is stopped (Replica_SQL_Running: %s %s)", source, running, res.text(i, "Last_SQL_Error"))
			continue
		}
		pending := pendingGTIDs(res.text(i, "Retrieved_Gtid_Set", "Gtid_IO_Pos"), now.Executed)
		switch late := res.number(i, "Seconds_Behind_Source", "Seconds_Behind_Master"); {
		case pending != "":
			state.doing = fmt.Sprintf("is a replica of %s that still has to apply %s", source, shortSet(pending))
		case late > 0:
			state.doing = fmt.Sprintf("is a replica of %s and %d s behind it", source, late)
		}
	}
	if state.doing == "" { // as a member of a group that replicates from elsewhere: only its primary does, the others have the channel stopped
		group, err := c.groupReplication(ctx, info)
		if err != nil || group.doing != "" {
			return group, err
		}
	}
	return state, nil
}

// groupReplication is replication of a member of a group, whose applier SHOW REPLICA STATUS does not show. It takes SELECT on
// performance_schema; without it nothing is known.
func (c *Conn) groupReplication(ctx context.Context, info *Info) (replication, error) {
	if info.MariaDB() {
		return replication{}, nil
	}
	res, err := c.query(ctx, "SELECT RECEIVED_TRANSACTION_SET AS received, @@GLOBAL.gtid_executed AS executed FROM performance_schema.replication_connection_status "+
		"WHERE CHANNEL_NAME='group_replication_applier' AND SERVICE_STATE='ON'")
	if err != nil {
		if isServerError(err) {
			err = nil
		}
		return replication{}, err
	}
	for i := range res.rows() {
		if pending := pendingGTIDs(res.text(i, "received"), res.text(i, "executed")); pending != "" {
			return replication{doing: "is a member of a replication group that still has to apply " + shortSet(pending)}, nil
		}
	}
	return replication{}, nil
}

// pendingGTIDs is what has been received and not executed; "" also when a set cannot be read.
func pendingGTIDs(received, executed string) string {
	got, err := offset.ParseGTIDSet(oneLine(received))
	if err != nil || got.IsAbsent() {
		return ""
	}
	if executed = oneLine(executed); executed == "" {
		return got.String()
	}
	done, err := offset.ParseGTIDSet(executed)
	if err != nil {
		return ""
	}
	return got.Subtract(done).String()
}

// phantoms is the error for a server that lacks transactions whose events were sent.
func (c *Conn) phantoms(ctx context.Context, info *Info, unknown string, origin Origin) error {
	why := origin.String() + " is from another server, or this one was reset (RESET BINARY LOGS AND GTIDS, RESET MASTER) or restored"
	if !info.MariaDB() && strings.Contains(strings.ToLower(unknown), strings.ToLower(info.UUID)) {
		why = "it is its own uuid: the server has lost transactions (a crash without sync_binlog=1, an older backup), or was reset (RESET BINARY LOGS AND GTIDS)"
	} else if state, err := c.replication(ctx, info); err == nil && state.halted != "" {
		why = state.halted + ": START REPLICA, and start the connector again when it has caught up"
	}
	text := fmt.Sprintf("%s names transactions that %s (server_uuid %s) has never executed: %s. %s%s. ",
		origin, c.name(), info.UUID, unknown, strings.ToUpper(why[:1]), why[1:])
	if origin == Given {
		return faultf(ErrOtherServer, "%sCheck database.hostname; if this is the right server, what comes after them cannot be told: %s", text, origin.anew())
	}
	return faultf(ErrOtherServer, "%sThe topics have their events, and this server does not have their changes; what it has done since cannot be told from them. "+
		"Choices: check database.hostname; point it at a server that has them (ask with SELECT GTID_SUBSET(%s, @@GLOBAL.gtid_executed), which must be 1), or let this one replicate them; "+
		"or take this server as it is: %s, and bring its tables' present rows to the topics by a new snapshot", text, quote(shortSet(unknown)), origin.anew())
}

// shortSet cuts a GTID set for a text.
func shortSet(set string) string {
	const most = 400
	if len(set) <= most {
		return set
	}
	return set[:most] + "…"
}
