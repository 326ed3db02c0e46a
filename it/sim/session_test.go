package sim

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	fakemysql "github.com/go-mysql-org/go-mysql/server"
)

// session is a connection to a server.
type session struct {
	fakemysql.EmptyHandler
	srv    *mysqld
	conn   *fakemysql.Conn
	end    *end
	number int

	heartbeat  time.Duration
	uuid       string // @replica_uuid
	registered uint32 // server id as a replica; 0: it is none
	host       string
	dumping    bool // the lock of servers is held for it, and for all that others look at
}

var sessions atomic.Int64

// serve deals with a connection until it ends.
func (srv *mysqld) serve(e *end) {
	s := srv.of
	c := &session{srv: srv, end: e, heartbeat: 10 * time.Second, number: int(sessions.Add(1))}
	s.mu.Lock()
	refuse := s.refuse
	s.live[c] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.live, c)
		s.mu.Unlock()
		e.Close()
	}()
	if refuse {
		text := "Too many connections"
		packet := append([]byte{byte(3 + len(text)), 0, 0, 0, 0xff, 0x10, 0x04}, text...)
		e.Write(packet)
		return
	}
	users := fakemysql.NewInMemoryAuthenticationHandler(mysql.AUTH_NATIVE_PASSWORD)
	if users.AddUser("u", "pw") != nil {
		return
	}
	conf := fakemysql.NewServer("9.7.0", mysql.DEFAULT_COLLATION_ID, mysql.AUTH_NATIVE_PASSWORD, nil, nil)
	conn, err := conf.NewCustomizedConn(e, users, c)
	if err != nil {
		return
	}
	c.conn = conn
	for conn.HandleCommand() == nil && !conn.Closed() {
	}
}

// HandleOtherCommand deals with what makes a replica.
func (c *session) HandleOtherCommand(cmd byte, data []byte) error {
	switch cmd {
	case mysql.COM_REGISTER_SLAVE:
		c.srv.of.mu.Lock()
		defer c.srv.of.mu.Unlock()
		c.registered = binary.LittleEndian.Uint32(data)
		c.host = string(data[5 : 5+data[4]])
		return nil
	case mysql.COM_BINLOG_DUMP, mysql.COM_BINLOG_DUMP_GTID:
		request, err := parseDump(cmd, data)
		if err != nil {
			return err
		}
		if err := c.dump(request); err != nil {
			return err
		}
		c.conn.Close()
		return nil
	}
	return mysql.NewError(1047, "Unknown command")
}

// HandleQuery answers what Tidemark asks.
func (c *session) HandleQuery(query string) (*mysql.Result, error) {
	srv, s := c.srv, c.srv.of
	s.mu.Lock()
	defer s.mu.Unlock()
	is := func(prefix string) bool { return strings.HasPrefix(query, prefix) }
	executed, purged := "", ""
	if s.gtids {
		executed, purged = srv.executed.String(), srv.purged.String()
	}
	newest := srv.files[len(srv.files)-1]
	switch {
	case is("SET "):
		for _, part := range strings.Split(strings.TrimPrefix(query, "SET "), ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
			switch name {
			case "@source_heartbeat_period":
				n, _ := strconv.ParseInt(value, 10, 64)
				c.heartbeat = time.Duration(n)
			case "@replica_uuid":
				c.uuid = strings.Trim(value, "'")
			}
		}
		return nil, nil
	case is("SHOW GLOBAL VARIABLES"):
		mode := map[bool]string{true: "ON", false: "OFF"}[s.gtids]
		metadata := map[bool]string{true: "FULL", false: "MINIMAL"}[s.work.full]
		return answer([]string{"Variable_name", "Value"}, [][]any{
			{"version", "9.7.0"},
			{"server_uuid", srv.uuid},
			{"server_id", fmt.Sprint(srv.id)},
			{"gtid_mode", mode},
			{"gtid_executed", executed},
			{"gtid_purged", purged},
			{"log_bin", "ON"},
			{"binlog_format", "ROW"},
			{"binlog_row_image", "FULL"},
			{"binlog_row_metadata", metadata},
			{"binlog_row_value_options", ""},
			{"binlog_checksum", "CRC32"},
			{"log_replica_updates", "ON"},
			{"lower_case_table_names", "0"},
			{"binlog_transaction_compression", "OFF"},
		})
	case is("SHOW BINARY LOG STATUS"):
		return answer([]string{"File", "Position", "Executed_Gtid_Set"}, [][]any{{newest.name, newest.size, executed}})
	case is("SHOW BINARY LOGS"):
		var rows [][]any
		for _, f := range srv.files {
			rows = append(rows, []any{f.name, f.size, "No"})
		}
		return answer([]string{"Log_name", "File_size", "Encrypted"}, rows)
	case is("SHOW BINLOG EVENTS IN"):
		return srv.showEvents(query)
	case is("SELECT GTID_SUBTRACT"):
		_, text, _ := strings.Cut(query, "'")
		text, _, _ = strings.Cut(text, "'")
		set, err := parseGTIDs(text)
		if err != nil {
			return nil, err
		}
		return answer([]string{"unknown", "gone"}, [][]any{{set.minus(srv.executed), srv.purged.minus(set)}})
	case is("SELECT TABLE_SCHEMA"):
		var rows [][]any
		for _, t := range s.work.tables {
			rows = append(rows, []any{database, t.name})
		}
		return answer([]string{"s", "t"}, rows)
	case is("SELECT @@GLOBAL.character_set"):
		return answer([]string{"charset", "collation"}, [][]any{{"utf8mb4", "utf8mb4_0900_ai_ci"}})
	case is("SELECT SCHEMA_NAME"):
		return answer([]string{"name", "charset", "collation"}, [][]any{{database, "utf8mb4", "utf8mb4_0900_ai_ci"}})
	case is("SHOW CREATE TABLE"):
		name := strings.ReplaceAll(strings.TrimPrefix(query, "SHOW CREATE TABLE "), "`", "")
		for _, t := range s.work.tables {
			if database+"."+t.name == name {
				return answer([]string{"Table", "Create Table"}, [][]any{{t.name, t.define()}})
			}
		}
		return nil, mysql.NewError(1146, "Table '"+name+"' doesn't exist")
	case is("SHOW REPLICAS"):
		var rows [][]any
		for r := range s.live {
			if r.registered != 0 && r.srv == srv {
				rows = append(rows, []any{fmt.Sprint(r.registered), r.host, 3306, 1, r.uuid})
			}
		}
		return answer([]string{"Server_Id", "Host", "Port", "Source_Id", "Replica_UUID"}, rows)
	case is("SHOW REPLICA STATUS"):
		return answer([]string{"Source_Host", "Replicate_Ignore_Table"}, nil)
	case is("SHOW GRANTS"):
		return answer([]string{"Grants"}, [][]any{{"GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO `u`@`%`"}})
	case is("SELECT CURRENT_USER"):
		return answer([]string{"u"}, [][]any{{"u@%"}})
	case is("SELECT @source_binlog_checksum"):
		return answer([]string{"c"}, [][]any{{"CRC32"}})
	case is("SELECT t.PROCESSLIST_ID"):
		return nil, mysql.NewError(1142, "SELECT command denied")
	}
	return nil, mysql.NewError(1064, "You have an error in your SQL syntax: "+query)
}

// showEvents answers SHOW BINLOG EVENTS for one event.
func (srv *mysqld) showEvents(query string) (*mysql.Result, error) {
	names := []string{"Log_name", "Pos", "Event_type", "Server_id", "End_log_pos", "Info"}
	var name string
	var pos int64
	if _, err := fmt.Sscanf(query, "SHOW BINLOG EVENTS IN %s FROM %d LIMIT 1", &name, &pos); err != nil {
		return nil, mysql.NewError(1064, query)
	}
	for _, f := range srv.files {
		if f.name != strings.Trim(name, "'") {
			continue
		}
		if pos == f.size {
			return answer(names, nil)
		}
		at := slices.IndexFunc(f.events, func(e placed) bool { return e.pos == pos })
		if at < 0 {
			break
		}
		info := ""
		if e := f.events[at]; e.head {
			info = "SET @@SESSION.GTID_NEXT= 'ANONYMOUS'"
			if e.gtid != "" {
				info = "SET @@SESSION.GTID_NEXT= '" + e.gtid + "'"
			}
		}
		return answer(names, [][]any{{f.name, pos, "Event", 1, pos, info}})
	}
	return nil, mysql.NewError(1220, "Error when executing command SHOW BINLOG EVENTS")
}

func answer(names []string, rows [][]any) (*mysql.Result, error) {
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

// dump sends the binlog until the connection or the server ends.
func (c *session) dump(r dumpRequest) error {
	srv, s := c.srv, c.srv.of
	s.mu.Lock()
	for other := range s.live { // the server ends the stream that a replica has had before
		if other != c && other.dumping && other.uuid == c.uuid {
			other.end.abort()
			other.end.Close()
		}
	}
	c.dumping = true
	f, at, err := srv.locate(r)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if !c.beginFile(f, r.pos, at > 0) {
		return nil
	}
	for {
		s.mu.Lock()
		changed := s.changed
		if at < len(f.events) {
			e := f.events[at]
			at++
			s.mu.Unlock()
			if r.byGTID && e.gtid != "" && r.set.has(e.gtid) {
				continue
			}
			if !c.send(e.raw) {
				return nil
			}
			continue
		}
		if next := srv.after(f); next != nil {
			s.mu.Unlock()
			f, at = next, 0
			if !c.beginFile(f, firstPos, false) {
				return nil
			}
			continue
		}
		size := f.size
		s.mu.Unlock()
		if r.noWait {
			_ = c.conn.WritePacket([]byte{0, 0, 0, 0, mysql.EOF_HEADER, 0, 0, 0, 0})
			return nil
		}
		timer := time.NewTimer(c.heartbeat)
		select {
		case <-changed:
		case <-timer.C:
			if !c.send(rawEvent(evHeartbeat, flagArtificial, 0, srv.id, size, []byte(f.name))) {
				return nil
			}
		case <-c.end.gone():
			timer.Stop()
			return nil
		}
		timer.Stop()
	}
}

// locate finds where a stream begins. The lock is held.
func (srv *mysqld) locate(r dumpRequest) (*binlogFile, int, error) {
	if r.byGTID && r.file == "" {
		if left := r.set.minus(srv.executed); left != "" {
			return nil, 0, mysql.NewError(1236, "The replica has more GTIDs than the source: "+left)
		}
		f, err := srv.fileFor(r.set)
		return f, 0, err
	}
	for _, f := range srv.files {
		if f.name != r.file {
			continue
		}
		if r.pos == firstPos {
			return f, 0, nil
		}
		if r.pos == f.size {
			return f, len(f.events), nil
		}
		if at := slices.IndexFunc(f.events, func(e placed) bool { return e.pos == r.pos }); at >= 0 {
			return f, at, nil
		}
		return nil, 0, mysql.NewError(1236, "bogus data in log event; the first event is not where it was asked for")
	}
	return nil, 0, mysql.NewError(1236, "Could not find first log file name in binary log index file")
}

// beginFile sends what comes before the events of a file.
func (c *session) beginFile(f *binlogFile, pos int64, inside bool) bool {
	pos = max(pos, firstPos)
	if !c.send(rawEvent(evRotate, flagArtificial, 0, c.srv.id, 0, rotateBody(f.name, pos))) {
		return false
	}
	return !inside || c.send(rawEvent(evFormat, 0, int64(binary.LittleEndian.Uint32(f.events[0].raw)), c.srv.id, 0, formatBody())) // the file's own time
}

func (c *session) send(raw []byte) bool {
	return c.conn.WritePacket(append(append(make([]byte, 4), mysql.OK_HEADER), raw...)) == nil
}
