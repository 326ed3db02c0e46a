package server

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
	fakemysql "github.com/go-mysql-org/go-mysql/server"

	"github.com/tidemark-cdc/tidemark/offset"
)

// mariaDB is a fake MariaDB, to whose user its administrators have granted what the documentation asks for.
func mariaDB() *fake {
	f := newFake()
	f.vars = map[string]string{
		"version": "10.11.19-MariaDB-log", "server_uid": "2U2D5SK7J6Qy8pKmNKFNYDw5UXk=", "server_id": "1", "gtid_binlog_pos": "0-1-43,5-1-1",
		"log_bin": "ON", "binlog_format": "ROW", "binlog_row_image": "FULL", "binlog_row_metadata": "FULL", "binlog_checksum": "CRC32",
		"log_slave_updates": "OFF", "lower_case_table_names": "0",
	}
	f.positions = []Position{{"mysql-bin.000003", 900, "0-1-43,5-1-1"}}
	f.begin = "0-1-20"
	f.grants = []string{"GRANT SELECT, REPLICATION SLAVE, BINLOG MONITOR ON *.* TO `u`@`%` IDENTIFIED BY PASSWORD '*AB'"}
	denied := mysql.NewError(1227, "Access denied; you need (at least one of) the REPLICATION MASTER ADMIN privilege(s) for this operation")
	f.fail["SHOW REPLICAS"], f.fail["SHOW SLAVE HOSTS"], f.fail["SHOW REPLICA STATUS"] = denied, denied, denied
	f.fail["SHOW BINARY LOG STATUS"] = mysql.NewError(1064, "syntax")
	return f
}

func TestInfoOfMariaDB(t *testing.T) {
	c := mariaDB().connect(t)
	info, err := c.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := Info{
		Version: "10.11.19-MariaDB-log", Flavor: MariaDB, UUID: "2U2D5SK7J6Qy8pKmNKFNYDw5UXk=", ServerID: 1, GTIDMode: "ON", Executed: "0-1-43,5-1-1",
		BinlogOn: true, Format: "ROW", RowImage: "FULL", RowMetadata: "FULL", Checksum: "CRC32",
	}
	if *info != want {
		t.Errorf("got  %+v\nwant %+v", *info, want)
	}
	if !info.UsesGTIDs() || !info.MariaDB() || info.Flavor.String() != "MariaDB" {
		t.Error("GTIDs or kind of server")
	}
	pos, err := c.Position(t.Context())
	if err != nil || pos != (Position{"mysql-bin.000003", 900, "0-1-43,5-1-1"}) {
		t.Errorf("%v %v", pos, err)
	}
}

func TestLocateOnMariaDB(t *testing.T) {
	for _, tt := range []struct {
		name, gtids string
		want        string // part of the error; "" for none
		kind        error
	}{
		{"where it is", "0-1-43,5-1-1", "", nil},
		{"behind", "0-1-40,5-1-1", "", nil},
		{"another server's transaction of the domain", "0-2-40,5-1-1", "", nil}, // the server itself knows whether it has it
		{"the oldest", "0-1-20", "", nil},
		{"purged", "0-1-19,5-1-1", "come after the stored offset: 0-1-20", ErrPurged},
		{"a domain that had begun before the oldest file", "5-1-1", "come after the stored offset: 0-1-20", ErrPurged},
		{"ahead", "0-1-44,5-1-1", "has never executed: 0-1-44", ErrOtherServer},
		{"an unknown domain", "0-1-43,7-1-1", "has never executed: 7-1-1", ErrOtherServer},
	} {
		set, err := offset.ParseGTIDSet(tt.gtids)
		if err != nil {
			t.Fatal(err)
		}
		f := mariaDB()
		from, err := f.connect(t).Locate(t.Context(), offset.Offset{File: "mysql-bin.000003", Pos: 400, GTIDs: set}, Stored)
		if tt.kind == nil {
			if err != nil || !from.ByGTID || from.GTIDs != tt.gtids {
				t.Errorf("%s: %+v, %v", tt.name, from, err)
			}
			continue
		}
		if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "MariaDB at db.example:3306") {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestDumpOnMariaDB: the session says what it understands and where it is, and asks for statements if they are wanted. A
// second stream beside it has another server id, since the server ends one of the same.
func TestDumpOnMariaDB(t *testing.T) {
	for _, tt := range []struct {
		name string
		req  DumpRequest
		set  string
		dump []byte // without the server id behind flags
	}{
		{
			"by GTID",
			DumpRequest{ServerID: 7, Identity: "c1", From: DumpFrom{GTIDs: "0-1-40,5-1-1", ByGTID: true}},
			"@mariadb_slave_capability=4, @slave_connect_state='0-1-40,5-1-1', @slave_gtid_strict_mode=@@GLOBAL.gtid_strict_mode",
			[]byte{mysql.COM_BINLOG_DUMP, 4, 0, 0, 0, 0, 0},
		},
		{
			"by position",
			DumpRequest{ServerID: 7, Identity: "c1", Queries: true, From: DumpFrom{File: "mysql-bin.000003", Pos: 400}},
			"SET @mariadb_slave_capability=4",
			[]byte{mysql.COM_BINLOG_DUMP, 0x90, 1, 0, 0, 2, 0},
		},
		{
			"beside",
			DumpRequest{ServerID: 7, Identity: "c1", Beside: true, From: DumpFrom{File: "mysql-bin.000003", Pos: 4}},
			"SET @mariadb_slave_capability=4",
			[]byte{mysql.COM_BINLOG_DUMP, 4, 0, 0, 0, 0, 0},
		},
	} {
		f := mariaDB()
		event := rotate("mysql-bin.000003", 400, true)
		f.stream = func(c *fakemysql.Conn) {
			if c.WritePacket(append(make([]byte, 4), ok(event)...)) == nil {
				io.Copy(io.Discard, c.Conn.Conn)
			}
		}
		s, err := f.connect(t).Dump(t.Context(), tt.req)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if got, err := s.Next(t.Context()); err != nil || !bytes.Equal(got, event) {
			t.Errorf("%s: %v", tt.name, err)
		}
		s.Close()
		f.mu.Lock()
		if all := strings.Join(f.asked, "\n"); !strings.Contains(all, tt.set) || !strings.Contains(all, "@master_binlog_checksum=@@GLOBAL.binlog_checksum") {
			t.Errorf("%s: %q is missing in\n%s", tt.name, tt.set, all)
		}
		dump := f.dumps[0]
		if !bytes.HasPrefix(dump, tt.dump) || bytes.HasPrefix(dump[7:], []byte{7, 0, 0, 0}) == tt.req.Beside {
			t.Errorf("%s: dump command % x", tt.name, dump)
		}
		if len(f.registered) > 0 == tt.req.Beside {
			t.Errorf("%s: %d registrations", tt.name, len(f.registered))
		}
		f.mu.Unlock()
	}
	if _, err := mariaDB().connect(t).Dump(t.Context(), DumpRequest{ServerID: 7, From: DumpFrom{GTIDs: "x", ByGTID: true}}); err == nil || !strings.Contains(err.Error(), `"x"`) {
		t.Errorf("a set that is none: %v", err)
	}
}
