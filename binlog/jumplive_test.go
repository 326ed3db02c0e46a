package binlog

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	fakemysql "github.com/go-mysql-org/go-mysql/server"

	"github.com/tidemark-cdc/tidemark/binlog/server"
	"github.com/tidemark-cdc/tidemark/offset"
)

// dumpServer is a MySQL server that has one binlog file, and notes what it is asked for.
type dumpServer struct {
	fakemysql.EmptyHandler
	t     testing.TB
	log   *binlogBuilder
	gtids bool

	mu         sync.Mutex
	dumps      []string         // "GTID", or file and position
	registered int              // replicas so far
	looked     int              // for other replicas
	fail       map[string]error // by dump
}

// dumpConn is one connection to it.
type dumpConn struct {
	*dumpServer
	conn *fakemysql.Conn
}

func (s *dumpServer) dial(context.Context, string, string) (net.Conn, error) {
	h := &dumpConn{dumpServer: s}
	return dialFake(h, func(c *fakemysql.Conn) { h.conn = c }), nil
}

func (s *dumpServer) HandleQuery(query string) (*mysql.Result, error) {
	switch {
	case strings.HasPrefix(query, "SHOW GLOBAL VARIABLES"):
		mode := map[bool]string{true: "ON", false: "OFF"}[s.gtids]
		return textResult([]string{"Variable_name", "Value"}, []any{"version", "9.7.0"}, []any{"server_uuid", testUUID}, []any{"gtid_mode", mode}, []any{"log_bin", "ON"})
	case strings.HasPrefix(query, "SELECT GTID_SUBTRACT"):
		return textResult([]string{"unknown", "gone"}, []any{"", ""})
	case strings.HasPrefix(query, "SHOW BINARY LOGS"):
		return textResult([]string{"Log_name", "File_size"}, []any{"mysql-bin.000001", s.log.end})
	case strings.HasPrefix(query, "SHOW BINLOG EVENTS"):
		var file string
		var pos int64
		fmt.Sscanf(query, "SHOW BINLOG EVENTS IN %s FROM %d LIMIT 1", &file, &pos)
		return textResult([]string{"Log_name", "Pos"}, []any{"mysql-bin.000001", pos})
	case strings.HasPrefix(query, "SELECT @source_binlog_checksum"):
		return textResult([]string{"c"}, []any{"NONE"})
	case strings.HasPrefix(query, "SHOW REPLICAS"):
		s.mu.Lock()
		s.looked++
		s.mu.Unlock()
		return textResult([]string{"Server_Id", "Host", "Port", "Source_Id", "Replica_UUID"}, []any{99, "", 3306, 1, "x"})
	}
	return nil, nil
}

func (c *dumpConn) HandleOtherCommand(cmd byte, data []byte) error {
	what, pos := "GTID", int64(firstPos)
	switch cmd {
	case mysql.COM_REGISTER_SLAVE:
		c.mu.Lock()
		c.registered++
		c.mu.Unlock()
		return nil
	case mysql.COM_BINLOG_DUMP:
		pos = int64(binary.LittleEndian.Uint32(data))
		what = fmt.Sprintf("%s:%d", data[10:], pos)
	}
	c.mu.Lock()
	c.dumps = append(c.dumps, what)
	err := c.fail[what]
	c.mu.Unlock()
	if err != nil {
		return err
	}
	for i, raw := range c.log.at("mysql-bin.000001", pos).events {
		if raw[4] == evFormat { // which has room for a checksum in any case
			raw = append(slices.Clone(raw), 0, 0, 0, 0)
			raw[len(raw)-5] = 0
			binary.LittleEndian.PutUint32(raw[9:], uint32(len(raw)))
			binary.LittleEndian.PutUint32(raw[13:], 0)
		}
		if i == 0 {
			raw = slices.Clone(raw)
			binary.LittleEndian.PutUint64(raw[headerSize:], uint64(pos))
		}
		if c.conn.WritePacket(append(append(make([]byte, 4), mysql.OK_HEADER), raw...)) != nil {
			break
		}
	}
	c.conn.WritePacket([]byte{0, 0, 0, 0, mysql.EOF_HEADER, 0, 0, 0, 0})
	io.Copy(io.Discard, c.conn.Conn.Conn)
	c.conn.Close()
	return nil
}

// read reads from the server to the end of its binlog.
func (s *dumpServer) read(from Start) (rows []string, offsets []offset.Offset) {
	s.t.Helper()
	s.mu.Lock()
	s.dumps, s.registered, s.looked = nil, 0, 0
	s.mu.Unlock()
	conn, err := server.Connect(s.t.Context(), server.Config{Host: "db.example", Port: 3306, User: "u", Password: "pw", Dial: s.dial, Heartbeat: time.Minute})
	if err != nil {
		s.t.Fatal(err)
	}
	cfg := Config{Captured: func(_, table string) bool { return table != "other" }, Filters: "f"}
	r, err := Open(s.t.Context(), conn, Replica{ServerID: 7, Name: "me"}, cfg, from)
	conn.Close() // as the callers do: what is opened later must not need it
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Close()
	r.jump.least, r.jump.near = 0, 50
	for {
		ev, err := r.Read(s.t.Context())
		if err != nil {
			if !strings.Contains(err.Error(), "ended the binlog stream") {
				s.t.Fatal(err)
			}
			if len(s.dumps) > 1 && r.asm.jumps {
				s.t.Error("the stream is by position, and positions may jump as if it were by GTID")
			}
			return rows, offsets
		}
		if ev, ok := ev.(*Rows); ok {
			for ev.Next() {
				rows, offsets = append(rows, fmt.Sprintf("%s %d", ev.Table.Name, fixedInt(ev.After[0]))), append(offsets, ev.OffsetAfter())
			}
		}
	}
}

// open opens a stream at a stored offset and reads it up to its first event, or the end of the binlog.
func (s *dumpServer) open(from Start) error {
	s.t.Helper()
	s.mu.Lock()
	s.dumps, s.registered, s.looked = nil, 0, 0
	s.mu.Unlock()
	conn, err := server.Connect(s.t.Context(), server.Config{Host: "db.example", Port: 3306, User: "u", Password: "pw", Dial: s.dial, Heartbeat: time.Minute})
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	r, err := Open(s.t.Context(), conn, Replica{ServerID: 7, Name: "me"}, Config{Captured: func(_, table string) bool { return table != "other" }, Filters: "f"}, from)
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err = r.Read(s.t.Context()); err != nil && strings.Contains(err.Error(), "ended the binlog stream") {
		return nil
	}
	return err
}

// TestI5_StraightFromAServer: the streams that a server is asked for. Those that take the place of the connector's own are of
// a replica that it shows; it is not looked for others of its id again.
func TestI5_StraightFromAServer(t *testing.T) {
	for _, gtids := range []bool{true, false} {
		begin := numberedBinlog
		if !gtids {
			begin = anonymousBinlog
		}
		b := threeStatements(begin())
		s := &dumpServer{t: t, log: b.binlogBuilder, gtids: gtids}
		all, offsets := s.read(Start{File: "mysql-bin.000001", Pos: firstPos})
		wantLines(t, all, b.rows)
		at := func(pos ...int64) []string {
			var text []string
			for _, p := range pos {
				text = append(text, fmt.Sprintf("mysql-bin.000001:%d", p))
			}
			return text
		}
		for i, o := range offsets[:8] {
			open := o.Side.Open
			want := at(open.StatementPos, open.EventPos)
			if open.EventPos-open.StatementPos < 50 {
				want = want[:1]
			}
			if gtids {
				want = append([]string{"GTID"}, want...)
			} else {
				want = append(at(b.begin), want...)
			}
			got, again := s.read(Start{Offset: &o})
			wantLines(t, got, b.rows[i+1:])
			if !slices.EqualFunc(again, offsets[i+1:], sameOffset) {
				t.Errorf("behind %s: offsets %v, want %v", all[i], again, offsets[i+1:])
			}
			if !slices.Equal(s.dumps, want) || s.registered != 2 || s.looked != 2 {
				t.Errorf("GTIDs %v, behind %s: asked for %q, want %q; registered %d times, looked %d times", gtids, all[i], s.dumps, want, s.registered, s.looked)
			}
			// What the server refuses is read from BEGIN.
			s.fail = map[string]error{want[len(want)-1]: mysql.NewError(1236, "Could not find first log file name in binary log index file")}
			got, _ = s.read(Start{Offset: &o})
			wantLines(t, got, b.rows[i+1:])
			if last := s.dumps[len(s.dumps)-1]; last != at(b.first)[0] || len(s.dumps) != len(want)+1 {
				t.Errorf("GTIDs %v, behind %s: asked for %q", gtids, all[i], s.dumps)
			}
			s.fail = nil
		}
	}
}
