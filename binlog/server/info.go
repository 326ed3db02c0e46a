package server

import (
	"context"
	"strconv"
	"strings"
)

// Flavor is what kind of server it is.
type Flavor uint8

// The flavors.
const (
	MySQL   Flavor = iota // MySQL, Percona Server and others that speak as it does
	MariaDB               // whose GTIDs, events and some variables differ
)

// String is the product's name.
func (f Flavor) String() string {
	if f == MariaDB {
		return "MariaDB"
	}
	return "MySQL"
}

// Info is what a server says about itself.
type Info struct {
	Version  string // as the server writes it: "9.7.0", "10.11.6-MariaDB-log"
	Flavor   Flavor
	UUID     string // server_uuid; of a MariaDB its server_uid, or what tells it from others as well as can be
	ServerID uint32 // server_id

	GTIDMode string // OFF, OFF_PERMISSIVE, ON_PERMISSIVE, ON; a MariaDB always has GTIDs: ON
	Executed string // gtid_executed, canonical, without line breaks; of a MariaDB gtid_binlog_pos
	Purged   string // gtid_purged, likewise; "" of a MariaDB

	BinlogOn       bool   // log_bin
	Format         string // binlog_format
	RowImage       string // binlog_row_image
	RowMetadata    string // binlog_row_metadata; "" on a server too old to have it, which writes none
	RowValueOption string // binlog_row_value_options
	Checksum       string // binlog_checksum: CRC32 or NONE
	Compression    bool   // binlog_transaction_compression

	// SyncBinlog and FlushLog are sync_binlog and innodb_flush_log_at_trx_commit; "": not known. Unless both are 1, a crash of the server's
	// computer may take back transactions that replicas have read.
	SyncBinlog, FlushLog string

	LogsReplicaUpdates bool // log_replica_updates: what a replica applies is in its own binlog
	LowerCaseNames     int  // lower_case_table_names
}

// UsesGTIDs reports whether every transaction of the server has a GTID, so that a set of them is a position. The
// permissive modes are in between: transactions without one would be missing in the set.
func (i *Info) UsesGTIDs() bool { return i.GTIDMode == "ON" }

// MariaDB reports whether the server is a MariaDB, whose GTIDs and events differ.
func (i *Info) MariaDB() bool { return i.Flavor == MariaDB }

// Forgets reports whether the server may have forgotten after a crash what it has sent to replicas.
func (i *Info) Forgets() bool {
	unsafe := func(v string) bool { return v != "" && v != "1" }
	return unsafe(i.SyncBinlog) || unsafe(i.FlushLog)
}

// persist is the SQL that sets a variable for good, as far as SQL can.
func (i *Info) persist(assignment string) string {
	if i.MariaDB() || strings.HasPrefix(i.Version, "5.") {
		return "SET GLOBAL " + assignment + ", and " + assignment + " in its configuration file"
	}
	return "SET PERSIST " + assignment
}

func isMariaDB(version string) bool { return strings.Contains(strings.ToLower(version), "mariadb") }

// Info reads the server's settings. It needs no privilege.
func (c *Conn) Info(ctx context.Context) (*Info, error) {
	res, err := c.query(ctx, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version','server_uuid','server_id','gtid_mode',"+
		"'gtid_executed','gtid_purged','log_bin','binlog_format','binlog_row_image','binlog_row_metadata',"+
		"'binlog_row_value_options','binlog_checksum','binlog_transaction_compression','log_replica_updates',"+
		"'log_slave_updates','lower_case_table_names','server_uid','gtid_binlog_pos','sync_binlog','innodb_flush_log_at_trx_commit')")
	if err != nil {
		return nil, err
	}
	v := variables(res)
	id, _ := strconv.ParseUint(v["server_id"], 10, 32)
	lower, _ := strconv.Atoi(v["lower_case_table_names"])
	format := v["binlog_format"]
	if format == "" {
		format = "ROW" // the variable is deprecated; a server without it writes rows
	}
	updates, ok := v["log_replica_updates"]
	if !ok {
		updates = v["log_slave_updates"]
	}
	mode := v["gtid_mode"]
	if mode == "" {
		mode = "OFF"
	}
	info := &Info{
		Version: v["version"], UUID: serverUUID(v), ServerID: uint32(id),
		GTIDMode: mode, Executed: oneLine(v["gtid_executed"]), Purged: oneLine(v["gtid_purged"]),
		BinlogOn: isOn(v["log_bin"]), Format: format, RowImage: v["binlog_row_image"], RowMetadata: v["binlog_row_metadata"],
		RowValueOption: v["binlog_row_value_options"], Checksum: v["binlog_checksum"], Compression: isOn(v["binlog_transaction_compression"]),
		SyncBinlog: v["sync_binlog"], FlushLog: v["innodb_flush_log_at_trx_commit"],
		LogsReplicaUpdates: isOn(updates), LowerCaseNames: lower,
	}
	if isMariaDB(info.Version) {
		info.Flavor, info.GTIDMode = MariaDB, "ON"
		info.Executed, info.Purged = oneLine(v["gtid_binlog_pos"]), ""
	}
	if !c.who.is(info.UUID) {
		return nil, c.another(info.UUID)
	}
	return info, nil
}

// variables are the rows of SHOW VARIABLES by name.
func variables(res *result) map[string]string {
	v := make(map[string]string, res.rows())
	for i := range res.rows() {
		v[strings.ToLower(res.text(i, "Variable_name"))] = res.text(i, "Value")
	}
	return v
}

func isOn(s string) bool { return s == "1" || strings.EqualFold(s, "ON") }

// oneLine takes out the line breaks that the server puts into long GTID sets.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == ' ' {
			return -1
		}
		return r
	}, s)
}
