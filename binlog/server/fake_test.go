package server

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	fakemysql "github.com/go-mysql-org/go-mysql/server"
)

// fake is a MySQL server that answers the statements of this package. Fields may be changed between questions.
type fake struct {
	mu        sync.Mutex
	vars      map[string]string
	logs      []Log
	encrypted bool              // binlog_encryption=ON
	positions []Position        // one a look; the last one stays
	tables    map[string]string // db.table → SHOW CREATE TABLE
	afterList func(f *fake)     // called after each list of tables, with the lock held
	events    map[int64]bool    // positions at which events begin
	infos     map[int64]string  // what SHOW BINLOG EVENTS says of them
	kinds     map[int64]string  // and its Event_type; Query
	unknown   []string          // GTID_SUBTRACT(stored, executed), one a question; the last one stays
	gone      string            // GTID_SUBTRACT(purged, stored)
	begin     string            // of a MariaDB: the GTIDs at the beginning of its oldest file
	replicas  [][]any           // Server_Id, Host, Port, Source_Id, Replica_UUID
	source    string            // set on a replica: its source
	filter    string            // Replicate_Ignore_Table in SHOW REPLICA STATUS
	applier   []any             // Replica_SQL_Running, Last_SQL_Error, Retrieved_Gtid_Set and Seconds_Behind_Source there
	group     []any             // RECEIVED_TRANSACTION_SET of a member of a replication group
	grants    []string
	fail      map[string]*mysql.MyError // by the beginning of the statement

	onRegister func(f *fake)
	onQuery    func(f *fake, query string) // with the lock held
	stream     func(c *fakemysql.Conn)     // answers a dump command
	asked      []string
	dumps      [][]byte
	registered [][]byte
	logins     int
	conns      []net.Conn
}

func newFake() *fake {
	return &fake{
		vars: map[string]string{
			"version": "9.7.0", "server_uuid": "00000000-0000-0000-0000-00000000000a", "server_id": "1", "gtid_mode": "ON",
			"gtid_executed": "00000000-0000-0000-0000-00000000000a:1-9,\n00000000-0000-0000-0000-00000000000b:1-5", "gtid_purged": "",
			"log_bin": "ON", "binlog_format": "ROW", "binlog_row_image": "FULL", "binlog_row_metadata": "FULL", "binlog_row_value_options": "",
			"binlog_checksum": "CRC32", "log_replica_updates": "ON", "lower_case_table_names": "0", "binlog_transaction_compression": "OFF",
		},
		logs:      []Log{{"mysql-bin.000002", 500}, {"mysql-bin.000003", 900}},
		positions: []Position{{"mysql-bin.000003", 900, "00000000-0000-0000-0000-00000000000a:1-9"}},
		events:    map[int64]bool{400: true},
		unknown:   []string{""},
		grants:    []string{"GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO `u`@`%`"},
		fail:      map[string]*mysql.MyError{},
	}
}

// connect logs in to the fake.
func (f *fake) connect(t *testing.T) *Conn {
	t.Helper()
	c, err := Connect(t.Context(), f.config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func (f *fake) config() Config {
	return Config{Host: "db.example", Port: 3306, User: "u", Password: "pw", Dial: f.dial, Heartbeat: time.Second}
}

func (f *fake) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	f.mu.Lock()
	f.logins++
	f.conns = append(f.conns, theirs)
	f.mu.Unlock()
	go func() {
		defer theirs.Close()
		h := &handler{f: f}
		f.mu.Lock()
		version := f.vars["version"]
		f.mu.Unlock()
		conf := fakemysql.NewServer(version, mysql.DEFAULT_COLLATION_ID, mysql.AUTH_NATIVE_PASSWORD, nil, nil)
		users := fakemysql.NewInMemoryAuthenticationHandler(mysql.AUTH_NATIVE_PASSWORD)
		if err := users.AddUser("u", "pw"); err != nil {
			return
		}
		c, err := conf.NewCustomizedConn(theirs, users, h)
		if err != nil {
			return
		}
		h.conn = c
		for c.HandleCommand() == nil && !c.Closed() {
		}
	}()
	return ours, nil
}

// cut ends all connections from the server's side.
func (f *fake) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		c.Close()
	}
	f.conns = nil
}

type handler struct {
	fakemysql.EmptyHandler
	f    *fake
	conn *fakemysql.Conn
}

func (h *handler) HandleOtherCommand(cmd byte, data []byte) error {
	f := h.f
	switch cmd {
	case mysql.COM_REGISTER_SLAVE:
		f.mu.Lock()
		f.registered = append(f.registered, append([]byte(nil), data...))
		if f.onRegister != nil {
			f.onRegister(f)
		}
		err := f.fail["REGISTER"]
		f.mu.Unlock()
		if err != nil {
			return err
		}
		return nil
	case mysql.COM_BINLOG_DUMP, mysql.COM_BINLOG_DUMP_GTID:
		f.mu.Lock()
		f.dumps = append(f.dumps, append([]byte{cmd}, data...))
		f.mu.Unlock()
		if f.stream != nil {
			f.stream(h.conn)
		}
		h.conn.Close()
		return nil
	}
	return mysql.NewError(1047, "unknown command")
}

func (h *handler) HandleQuery(query string) (*mysql.Result, error) {
	f := h.f
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, query)
	if f.onQuery != nil {
		f.onQuery(f, query)
	}
	for prefix, err := range f.fail {
		if strings.HasPrefix(query, prefix) {
			return nil, err
		}
	}
	is := func(prefix string) bool { return strings.HasPrefix(query, prefix) }
	switch {
	case is("SET "):
		return nil, nil
	case is("SHOW GLOBAL VARIABLES"):
		var rows [][]any
		for k, v := range f.vars {
			rows = append(rows, []any{k, v})
		}
		return table([]string{"Variable_name", "Value"}, rows)
	case is("SELECT BINLOG_GTID_POS"):
		if strings.HasSuffix(query, ", 4) AS g") {
			return table([]string{"g"}, [][]any{{f.begin}})
		}
		return table([]string{"g"}, [][]any{{f.vars["gtid_binlog_pos"]}})
	case is("SHOW MASTER STATUS") && f.vars["gtid_binlog_pos"] != "" && f.positions[0].File != "":
		p := f.positions[0]
		return table([]string{"File", "Position", "Binlog_Do_DB", "Binlog_Ignore_DB"}, [][]any{{p.File, p.Pos, "", ""}})
	case is("SHOW BINARY LOG STATUS"), is("SHOW MASTER STATUS"):
		p := f.positions[0]
		if len(f.positions) > 1 {
			f.positions = f.positions[1:]
		}
		if p.File == "" {
			return table([]string{"File", "Position", "Executed_Gtid_Set"}, nil)
		}
		return table([]string{"File", "Position", "Executed_Gtid_Set"}, [][]any{{p.File, p.Pos, p.GTIDs}})
	case is("SHOW BINARY LOGS"):
		var rows [][]any
		for _, l := range f.logs {
			size, encrypted := l.Size, "No"
			if f.encrypted {
				size, encrypted = size+512, "Yes"
			}
			rows = append(rows, []any{l.Name, size, encrypted})
		}
		return table([]string{"Log_name", "File_size", "Encrypted"}, rows)
	case is("SHOW BINLOG EVENTS IN") && strings.Contains(query, "LIMIT 3"):
		return table([]string{"Log_name", "Pos", "Event_type", "Server_id", "End_log_pos", "Info"}, [][]any{
			{"mysql-bin.000003", 4, "Format_desc", 1, 127, ""},
			{"mysql-bin.000003", 127, "Previous_gtids", 1, 198, "00000000-0000-0000-0000-00000000000a:1-4,\n00000000-0000-0000-0000-00000000000b:1-5"},
		})
	case is("SHOW BINLOG EVENTS IN"):
		kind := "Query"
		var pos int64
		fmt.Sscanf(query[strings.Index(query, "FROM"):], "FROM %d", &pos)
		if at, ok := f.events[pos]; ok && !at { // the end of the file
			return table([]string{"Log_name", "Pos", "Event_type", "Info"}, nil)
		} else if !at {
			return nil, mysql.NewError(1220, "Error reading Log_event")
		}
		if f.kinds[pos] != "" {
			kind = f.kinds[pos]
		}
		return table([]string{"Log_name", "Pos", "Event_type", "Info"}, [][]any{{"mysql-bin.000003", pos, kind, f.infos[pos]}})
	case is("SELECT GTID_SUBTRACT"):
		u := f.unknown[0]
		if len(f.unknown) > 1 {
			f.unknown = f.unknown[1:]
		}
		return table([]string{"unknown", "gone"}, [][]any{{u, f.gone}})
	case is("SELECT TABLE_SCHEMA"):
		var rows [][]any
		for name := range f.tables {
			db, t, _ := strings.Cut(name, ".")
			rows = append(rows, []any{db, t})
		}
		if f.afterList != nil {
			f.afterList(f)
		}
		return table([]string{"s", "t"}, rows)
	case is("SHOW CREATE TABLE"):
		name := strings.ReplaceAll(strings.TrimPrefix(query, "SHOW CREATE TABLE "), "`", "")
		sql, ok := f.tables[name]
		if !ok {
			return nil, mysql.NewError(1146, "Table '"+name+"' doesn't exist")
		}
		return table([]string{"Table", "Create Table"}, [][]any{{name, sql}})
	case is("SHOW REPLICAS"), is("SHOW SLAVE HOSTS"):
		return table([]string{"Server_Id", "Host", "Port", "Source_Id", "Replica_UUID"}, f.replicas)
	case is("SHOW REPLICA STATUS"), is("SHOW SLAVE STATUS"):
		var rows [][]any
		applier := f.applier
		if applier == nil {
			applier = []any{"Yes", "", "", "0"}
		}
		if f.source != "" {
			rows = [][]any{append([]any{f.source, f.filter}, applier...)}
		}
		return table([]string{"Source_Host", "Replicate_Ignore_Table", "Replica_SQL_Running", "Last_SQL_Error", "Retrieved_Gtid_Set", "Seconds_Behind_Source"}, rows)
	case is("SELECT RECEIVED_TRANSACTION_SET") && f.group != nil:
		return table([]string{"received", "executed"}, [][]any{append(f.group, f.vars["gtid_executed"])})
	case is("SELECT RECEIVED_TRANSACTION_SET"):
		return nil, mysql.NewError(1142, "SELECT command denied")
	case is("SHOW GRANTS"):
		var rows [][]any
		for _, g := range f.grants {
			rows = append(rows, []any{g})
		}
		return table([]string{"Grants for u@%"}, rows)
	case is("SELECT CURRENT_USER"):
		return table([]string{"u"}, [][]any{{"u@10.%"}})
	case is("SELECT @source_binlog_checksum"):
		return table([]string{"c"}, [][]any{{f.vars["binlog_checksum"]}})
	case is("SELECT t.PROCESSLIST_ID"):
		return nil, mysql.NewError(1142, "SELECT command denied")
	}
	return nil, mysql.NewError(1064, "You have an error in your SQL syntax: "+query)
}

func table(names []string, rows [][]any) (*mysql.Result, error) {
	if len(rows) == 0 {
		rs := mysql.NewResultset(len(names))
		for i, name := range names {
			rs.Fields[i] = &mysql.Field{Name: []byte(name), Type: mysql.MYSQL_TYPE_VAR_STRING}
		}
		return mysql.NewResult(rs), nil
	}
	rs, err := mysql.BuildSimpleTextResultset(names, rows)
	if err != nil {
		return nil, err
	}
	return mysql.NewResult(rs), nil
}

// rawEvent makes an event with a header, and a checksum when sum is set.
func rawEvent(kind byte, flags uint16, end uint32, body []byte, sum bool) []byte {
	ev := make([]byte, eventHeader, eventHeader+len(body)+crcLen)
	ev[4] = kind
	binary.LittleEndian.PutUint32(ev[5:], 1)
	binary.LittleEndian.PutUint32(ev[13:], end)
	binary.LittleEndian.PutUint16(ev[17:], flags)
	ev = append(ev, body...)
	size := len(ev)
	if sum {
		size += crcLen
	}
	binary.LittleEndian.PutUint32(ev[9:], uint32(size))
	if sum {
		ev = binary.LittleEndian.AppendUint32(ev, crc32.ChecksumIEEE(ev))
	}
	return ev
}

// formatDescription makes a FORMAT_DESCRIPTION event that says whether events have checksums.
func formatDescription(sum bool) []byte {
	body := make([]byte, 57+43+1)
	binary.LittleEndian.PutUint16(body, 4)
	copy(body[2:], "9.7.0")
	if sum {
		body[len(body)-1] = 1
	}
	ev := rawEvent(typeFormatDescription, 0, 127, body, true)
	return ev
}

func rotate(file string, pos uint64, sum bool) []byte {
	return rawEvent(typeRotate, flagArtificial, 0, append(binary.LittleEndian.AppendUint64(nil, pos), file...), sum)
}
