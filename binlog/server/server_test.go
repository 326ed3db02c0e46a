package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	fakemysql "github.com/go-mysql-org/go-mysql/server"

	"github.com/tidemark-cdc/tidemark/offset"
)

func TestInfo(t *testing.T) {
	c := newFake().connect(t)
	info, err := c.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := Info{
		Version: "9.7.0", UUID: "00000000-0000-0000-0000-00000000000a", ServerID: 1, GTIDMode: "ON",
		Executed: "00000000-0000-0000-0000-00000000000a:1-9,00000000-0000-0000-0000-00000000000b:1-5",
		BinlogOn: true, Format: "ROW", RowImage: "FULL", RowMetadata: "FULL", Checksum: "CRC32", LogsReplicaUpdates: true,
	}
	if *info != want {
		t.Errorf("got  %+v\nwant %+v", *info, want)
	}
	if !info.UsesGTIDs() || info.MariaDB() {
		t.Error("GTIDs or kind of server")
	}
}

func TestPosition(t *testing.T) {
	f := newFake()
	c := f.connect(t)
	pos, err := c.Position(t.Context())
	if err != nil || pos != (Position{"mysql-bin.000003", 900, "00000000-0000-0000-0000-00000000000a:1-9"}) {
		t.Errorf("%v %v", pos, err)
	}
	f.fail["SHOW BINARY LOG STATUS"] = mysql.NewError(1064, "syntax") // a server before 8.2
	if again, err := c.Position(t.Context()); err != nil || again != pos {
		t.Errorf("%v %v", again, err)
	}
	logs, err := c.BinaryLogs(t.Context())
	if err != nil || !slices.Equal(logs, f.logs) {
		t.Errorf("%v %v", logs, err)
	}
	f.positions = []Position{{}}
	if _, err := c.Position(t.Context()); !errors.Is(err, ErrSetup) {
		t.Errorf("without a binlog: %v", err)
	}
	f.fail["SHOW MASTER STATUS"] = mysql.NewError(1227, "Access denied")
	if _, err := c.Position(t.Context()); !errors.Is(err, ErrAccess) || !strings.Contains(err.Error(), "GRANT REPLICATION CLIENT ON *.* TO 'u'@'%'") {
		t.Errorf("without the privilege: %v", err)
	}
}

// TestChecksAtTheStart: what stands in the way is said before anything is read, each fault with the SQL that mends it.
func TestChecksAtTheStart(t *testing.T) {
	tests := []struct {
		name   string
		change func(f *fake)
		want   []string // each in a line of its own
		kind   error
	}{
		{"all is well", func(f *fake) {}, nil, nil},
		{"binlog off", func(f *fake) { f.vars["log_bin"] = "OFF"; f.vars["binlog_format"] = "STATEMENT" }, []string{"log_bin=OFF"}, ErrSetup},
		{"statements", func(f *fake) { f.vars["binlog_format"] = "MIXED" }, []string{"SET PERSIST binlog_format=ROW"}, ErrSetup},
		{"row image", func(f *fake) { f.vars["binlog_row_image"] = "NOBLOB" }, []string{"SET PERSIST binlog_row_image=FULL"}, ErrSetup},
		{"row image for the whole server", func(f *fake) { f.vars["binlog_row_image"] = "MINIMAL" }, []string{"SET PERSIST binlog_row_image=FULL"}, ErrSetup},
		{"metadata", func(f *fake) { f.vars["binlog_row_metadata"] = "MINIMAL" }, nil, nil},
		{"MySQL 5.7", func(f *fake) { delete(f.vars, "binlog_row_metadata"); f.vars["version"] = "5.7.44-log" }, nil, nil},
		{"MySQL 5.7, statements", func(f *fake) { f.vars["binlog_format"], f.vars["version"] = "STATEMENT", "5.7.44-log" }, []string{"SET GLOBAL binlog_format=ROW, and binlog_format=ROW in its configuration file"}, ErrSetup},
		{"no variable for the format", func(f *fake) { delete(f.vars, "binlog_format") }, nil, nil},
		{"partial JSON", func(f *fake) { f.vars["binlog_row_value_options"] = "PARTIAL_JSON" }, nil, nil},
		{"all settings at once", func(f *fake) {
			f.vars["binlog_format"], f.vars["binlog_row_image"], f.vars["binlog_row_metadata"] = "STATEMENT", "MINIMAL", "MINIMAL"
			f.replicas = [][]any{{7, "other", 0, 1, "x"}}
		}, []string{"binlog_format=ROW", "binlog_row_image=FULL", "database.server.id 7 is in use"}, ErrServerIDInUse},
		{"replica without its own log", func(f *fake) { f.vars["log_replica_updates"] = "OFF"; f.source = "primary.example" }, []string{"is a replica of primary.example"}, ErrSetup},
		{"log_replica_updates off, but no replica", func(f *fake) { f.vars["log_replica_updates"] = "OFF" }, nil, nil},
		{"replica of before 8.0.26", func(f *fake) {
			delete(f.vars, "log_replica_updates")
			f.vars["log_slave_updates"] = "OFF"
			f.fail["SHOW REPLICA STATUS"] = mysql.NewError(1064, "syntax")
			f.source = "primary.example"
		}, []string{"is a replica of primary.example"}, ErrSetup},
		{"MariaDB", func(f *fake) {}, nil, nil},
		{
			"MariaDB, its default format", func(f *fake) { f.vars["binlog_format"] = "MIXED" },
			[]string{"binlog_format is MIXED on MariaDB at db.example:3306, so changes come as SQL text instead of rows: SET GLOBAL binlog_format=ROW"},
			ErrSetup,
		},
		{"MariaDB, row image", func(f *fake) { f.vars["binlog_row_image"] = "MINIMAL" }, []string{"SET GLOBAL binlog_row_image=FULL"}, ErrSetup},
		{"MariaDB, after images without what did not change", func(f *fake) { f.vars["binlog_row_image"] = "FULL_NODUP" }, nil, nil},
		{"MariaDB, its default metadata", func(f *fake) { f.vars["binlog_row_metadata"] = "NO_LOG" }, nil, nil},
		{"MariaDB, no privileges", func(f *fake) {
			f.grants = []string{"GRANT USAGE ON *.* TO `u`@`10.%`"}
			f.fail["SHOW BINARY LOGS"] = mysql.NewError(1227, "Access denied; you need (at least one of) the BINLOG MONITOR privilege(s) for this operation")
		}, []string{"GRANT REPLICATION SLAVE ON *.* TO 'u'@'10.%'", "GRANT REPLICATION CLIENT ON *.* TO 'u'@'10.%'", "GRANT SELECT ON *.* TO 'u'@'10.%'"}, ErrAccess},
		{"MariaDB, another replica, seen by an administrator", func(f *fake) {
			delete(f.fail, "SHOW REPLICAS")
			f.replicas = [][]any{{7, "host9", 3306, 1, ""}}
		}, []string{`report host "host9"`}, ErrServerIDInUse},
		{"MariaDB, our own connection of before", func(f *fake) {
			delete(f.fail, "SHOW REPLICAS")
			f.replicas = [][]any{{7, "c1", 3306, 1, ""}}
		}, nil, nil},
		{"no privileges", func(f *fake) {
			f.grants = []string{"GRANT USAGE ON *.* TO `u`@`10.%`"}
			f.fail["SHOW REPLICAS"], f.fail["SHOW BINARY LOGS"] = mysql.NewError(1227, "Access denied"), mysql.NewError(1227, "Access denied")
		}, []string{"GRANT REPLICATION SLAVE ON *.* TO 'u'@'10.%'", "GRANT REPLICATION CLIENT ON *.* TO 'u'@'10.%'", "GRANT SELECT ON *.* TO 'u'@'10.%'"}, ErrAccess},
		{"a role that is not active", func(f *fake) {
			f.grants = []string{"GRANT USAGE ON *.* TO `u`@`10.%`", "GRANT `reader`@`%` TO `u`@`10.%`"}
			f.fail["SHOW REPLICAS"], f.fail["SHOW BINARY LOGS"] = mysql.NewError(1227, "Access denied"), mysql.NewError(1227, "Access denied")
		}, []string{"REPLICATION SLAVE", "REPLICATION CLIENT", "SELECT", "SET DEFAULT ROLE ALL TO 'u'@'10.%'"}, ErrAccess},
		{"SELECT on a database", func(f *fake) {
			f.grants = []string{"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO `u`@`%`", "GRANT INSERT, SELECT ON `inventory`.* TO `u`@`%`"}
		}, nil, nil},
		{"SELECT on the server's own tables only", func(f *fake) {
			f.grants = []string{"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO `u`@`%`", "GRANT SELECT ON `performance_schema`.* TO `u`@`%`", "REVOKE SELECT ON `x`.* FROM `u`@`%`"}
		}, []string{"GRANT SELECT ON *.*"}, ErrAccess},
		{"ALL", func(f *fake) { f.grants = []string{"GRANT ALL PRIVILEGES ON `inventory`.* TO `u`@`%`"} }, nil, nil},
		{"the server's own id", func(f *fake) { f.vars["server_id"] = "7" }, []string{"is the server_id of MySQL at db.example:3306 itself"}, ErrServerIDInUse},
		{"another replica", func(f *fake) { f.replicas = [][]any{{7, "host9", 0, 1, "11111111-1111-1111-1111-111111111111"}} }, []string{`report host "host9"`}, ErrServerIDInUse},
		{"another replica without a uuid", func(f *fake) { f.replicas = [][]any{{7, "", 0, 1, ""}} }, []string{"database.server.id 7 is in use"}, ErrServerIDInUse},
		{"our own connection of before", func(f *fake) { f.replicas = [][]any{{7, "c1", 0, 1, strings.ToUpper(replicaUUID("c1", 7))}} }, nil, nil},
		{"another id", func(f *fake) { f.replicas = [][]any{{8, "host9", 0, 1, "x"}} }, nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake()
			if strings.HasPrefix(tt.name, "MariaDB") {
				f = mariaDB()
			}
			tt.change(f)
			err := f.connect(t).Check(t.Context(), Requirements{ServerID: 7, Identity: "c1"})
			if len(tt.want) == 0 {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || Transient(err) || !errors.Is(err, tt.kind) {
				t.Fatalf("got %v", err)
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(tt.want) {
				t.Fatalf("%d faults: %v", len(lines), err)
			}
			for i, want := range tt.want {
				if !strings.Contains(lines[i], want) {
					t.Errorf("%q is missing in %q", want, lines[i])
				}
			}
		})
	}
}

// What the network does is no fault of the server's settings.
func TestCheckNetwork(t *testing.T) {
	f := newFake()
	f.fail["SHOW GRANTS"] = mysql.NewError(1053, "Server shutdown in progress")
	f.vars["binlog_format"] = "MIXED"
	if err := f.connect(t).Check(t.Context(), Requirements{ServerID: 7}); !Transient(err) {
		t.Fatal(err)
	}
}

func TestLocate(t *testing.T) {
	const a = "00000000-0000-0000-0000-00000000000a:1-7"
	set, err := offset.ParseGTIDSet(a)
	if err != nil {
		t.Fatal(err)
	}
	gtid := offset.Offset{File: "mysql-bin.000003", Pos: 400, GTIDs: set}
	file := func(name string, pos int64) offset.Offset { return offset.Offset{File: name, Pos: pos} }
	tests := []struct {
		name   string
		start  offset.Offset
		change func(f *fake)
		want   DumpFrom
		kind   error
		text   string
	}{
		{"GTIDs", gtid, nil, DumpFrom{"mysql-bin.000003", 400, a, true, Stored, false}, nil, ""},
		{"GTIDs of another server's file", offset.Offset{File: "other.000077", Pos: 9, GTIDs: set}, nil, DumpFrom{"other.000077", 9, a, true, Stored, false}, nil, ""},
		{"no GTIDs yet", offset.Offset{File: "mysql-bin.000003", Pos: 400, GTIDs: offset.EmptyGTIDSet()}, nil, DumpFrom{"mysql-bin.000003", 400, "", true, Stored, false}, nil, ""},
		{"GTIDs that are executed a moment later", gtid, func(f *fake) { f.unknown = []string{a, a, ""} }, DumpFrom{"mysql-bin.000003", 400, a, true, Stored, false}, nil, ""},
		{
			"GTIDs unknown", gtid, func(f *fake) { f.unknown = []string{"00000000-0000-0000-0000-0000000000cc:4"} },
			DumpFrom{},
			ErrOtherServer,
			"has never executed: 00000000-0000-0000-0000-0000000000cc:4. The stored offset is from another server",
		},
		{
			"GTIDs lost", gtid, func(f *fake) { f.unknown = []string{"00000000-0000-0000-0000-00000000000a:6-7"} },
			DumpFrom{},
			ErrOtherServer,
			"00000000-0000-0000-0000-00000000000a:6-7. It is its own uuid: the server has lost transactions",
		},
		{
			"GTIDs purged", gtid, func(f *fake) { f.gone = "00000000-0000-0000-0000-00000000000a:8" },
			DumpFrom{},
			ErrPurged,
			"come after the stored offset: 00000000-0000-0000-0000-00000000000a:8. Choices:",
		},
		{"GTIDs on a server that is leaving them", gtid, func(f *fake) { f.vars["gtid_mode"] = "ON_PERMISSIVE" }, DumpFrom{"mysql-bin.000003", 400, a, false, Stored, false}, nil, ""},
		{"no GTIDs on a server with them", file("mysql-bin.000003", 400), nil, DumpFrom{"mysql-bin.000003", 400, "", false, Stored, false}, nil, ""},
		{"start of a file", file("mysql-bin.000002", 4), nil, DumpFrom{"mysql-bin.000002", 4, "", false, Stored, false}, nil, ""},
		{"end of a file", file("mysql-bin.000003", 900), nil, DumpFrom{"mysql-bin.000003", 900, "", false, Stored, false}, nil, ""},
		{"beyond the end", file("mysql-bin.000003", 901), nil, DumpFrom{}, ErrOtherServer, "which has 900 bytes"},
		{"inside an event", file("mysql-bin.000003", 401), nil, DumpFrom{}, ErrOtherServer, "the stored offset is mysql-bin.000003:401, but no event begins there"},
		{"before any event", file("mysql-bin.000003", 0), nil, DumpFrom{}, ErrOtherServer, "the first one of a file is at 4"},
		{"purged file", file("mysql-bin.000001", 400), nil, DumpFrom{}, ErrPurged, "the oldest that it has is mysql-bin.000002. Choices:"},
		{"later file", file("mysql-bin.000004", 400), nil, DumpFrom{}, ErrOtherServer, "it has mysql-bin.000002 to mysql-bin.000003"},
		{"another base", file("binlog.000001", 400), nil, DumpFrom{}, ErrOtherServer, "the stored offset binlog.000001:400 names a binlog file that MySQL at db.example:3306 does not have"},
		{"number of seven digits", file("mysql-bin.999999", 400), func(f *fake) { f.logs = []Log{{"mysql-bin.1000000", 100}} }, DumpFrom{}, ErrPurged, "the oldest that it has is mysql-bin.1000000"},
		{"binlog off", file("mysql-bin.000003", 400), func(f *fake) { f.logs = nil }, DumpFrom{}, ErrSetup, "--log-bin"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				if tt.change != nil {
					tt.change(f)
				}
				got, err := f.connect(t).Locate(t.Context(), tt.start, Stored)
				if tt.kind == nil {
					if err != nil || got != tt.want {
						t.Fatalf("%+v %v", got, err)
					}
					return
				}
				if !errors.Is(err, tt.kind) || Transient(err) || !strings.Contains(err.Error(), tt.text) {
					t.Fatalf("got %v", err)
				}
			})
		})
	}
}

func TestShowCreate(t *testing.T) {
	f := newFake()
	f.tables = map[string]string{"shop.orders": "CREATE TABLE `orders` (…)"}
	c := f.connect(t)
	if sql, err := c.ShowCreate(t.Context(), "shop", "orders"); err != nil || sql != "CREATE TABLE `orders` (…)" {
		t.Errorf("%q %v", sql, err)
	}
	if _, err := c.ShowCreate(t.Context(), "shop", "gone"); !errors.Is(err, ErrNoTable) || Transient(err) {
		t.Errorf("gone: %v", err)
	}
	f.fail["SHOW CREATE TABLE `secret`"] = mysql.NewError(1142, "SHOW command denied")
	if _, err := c.ShowCreate(t.Context(), "secret", "t"); !errors.Is(err, ErrAccess) || !strings.Contains(err.Error(), "GRANT SELECT ON `secret`.* TO 'u'@'%'") {
		t.Errorf("denied: %v", err)
	}
	if quoteName("a`b") != "`a``b`" || quote(`a'b\`) != `'a\'b\\'` {
		t.Error("quoting")
	}
}

func TestDefinitions(t *testing.T) {
	pos := func(n int64) Position { return Position{"mysql-bin.000003", n, ""} }
	all := func(string, string) bool { return true }
	const t1, t2 = "CREATE TABLE `t` (\n  `a` int\n) ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4", "CREATE TABLE `t` (\n  `a` int,\n  `b` int\n) ENGINE=InnoDB AUTO_INCREMENT=9 DEFAULT CHARSET=utf8mb4"
	tests := []struct {
		name      string
		positions []Position
		texts     []string // of s.t at each reading; "" when it is gone; the last one stays
		want      string
		at        int64
		fails     bool
	}{
		{"at rest", []Position{pos(1)}, []string{t1}, t1, 1, false},
		{"rows meanwhile", []Position{pos(1), pos(2), pos(3), pos(4)}, []string{t1, strings.ReplaceAll(t1, "=7", "=8")}, strings.ReplaceAll(t1, "=7", "=8"), 2, false},
		{"DDL meanwhile, then at rest", []Position{pos(1), pos(2), pos(2)}, []string{t1, t2}, t2, 2, false},
		{"DDL meanwhile, then rows", []Position{pos(1), pos(2), pos(3), pos(4), pos(5)}, []string{t1, t2, t2}, t2, 3, false},
		{"dropped meanwhile", []Position{pos(1), pos(2), pos(3), pos(4), pos(5)}, []string{t1, ""}, "", 3, false},
		{"DDL without end", []Position{pos(1), pos(2), pos(3), pos(4), pos(5), pos(6), pos(7), pos(8), pos(9)}, []string{t1, t2, t1, t2, t1, t2, t1, t2}, "", 0, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake()
			f.positions = tt.positions
			f.tables = map[string]string{"s.t": tt.texts[0]}
			reading := 0
			f.afterList = func(f *fake) {
				if text := tt.texts[min(reading, len(tt.texts)-1)]; text != "" {
					f.tables["s.t"] = text
				} else {
					delete(f.tables, "s.t")
				}
				reading++
			}
			got, at, err := f.connect(t).Definitions(t.Context(), all, all)
			if tt.fails {
				if err == nil || !strings.Contains(err.Error(), "s.t") {
					t.Fatalf("got %v", err)
				}
				return
			}
			if err != nil || at != pos(tt.at) {
				t.Fatalf("at %v: %v", at, err)
			}
			if tt.want == "" && len(got) != 0 || tt.want != "" && (len(got) != 1 || got[0].SQL != tt.want || got[0].String() != "s.t") {
				t.Fatalf("got %q", got)
			}
		})
	}
	t.Run("filter", func(t *testing.T) {
		f := newFake()
		f.tables = map[string]string{"s.t": t1, "s.u": t1}
		got, _, err := f.connect(t).Definitions(t.Context(), func(_, name string) bool { return name == "u" }, all)
		if err != nil || len(got) != 1 || got[0].Name != "u" {
			t.Fatal(got, err)
		}
	})
	t.Run("not needed", func(t *testing.T) {
		need := func(database, _ string) bool { return database == "s" }
		f := newFake()
		f.positions = tests[len(tests)-1].positions
		f.tables = map[string]string{"s.t": t1, "x.busy": t1, "secret.t": t1}
		f.fail["SHOW CREATE TABLE `secret`"] = mysql.NewError(1142, "SHOW command denied")
		f.afterList = func(f *fake) { f.tables["x.busy"] += " " }
		got, at, err := f.connect(t).Definitions(t.Context(), all, need)
		if err != nil || len(got) != 1 || got[0].String() != "s.t" || at != pos(6) {
			t.Fatal(got, at, err)
		}
		f.positions, f.tables["s.u"] = tests[len(tests)-1].positions, t1
		f.afterList = func(f *fake) { f.tables["s.u"] += " " }
		if _, _, err := f.connect(t).Definitions(t.Context(), all, need); err == nil || !strings.Contains(err.Error(), "(s.u)") {
			t.Errorf("a table that is needed: %v", err)
		}
	})
}

// A connection that the server has ended while nobody asked is opened again, unseen.
func TestConnIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		c := f.connect(t)
		f.cut()
		time.Sleep(8 * time.Hour)
		if _, err := c.Info(t.Context()); err != nil {
			t.Fatal(err)
		}
		if f.logins != 2 {
			t.Errorf("%d logins", f.logins)
		}
		f.cut() // while in use: the error is seen, the next question works
		if _, err := c.Info(t.Context()); !Transient(err) {
			t.Errorf("cut: %v", err)
		}
		if _, err := c.Info(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Info(t.Context()); err == nil {
			t.Error("a closed connection answers")
		}
	})
}

// sessions set up what the texts of definitions depend on.
func TestSessionSetup(t *testing.T) {
	f := newFake()
	f.connect(t)
	if all := strings.Join(f.asked, "\n"); !strings.Contains(all, "SET NAMES utf8mb4") || !strings.Contains(all, "sql_mode=''") || !strings.Contains(all, "net_write_timeout=600") {
		t.Error(all)
	}
}

// TestInitialStatements: database.initial.statements are run at the beginning of each connection that asks, before our
// own settings, and not on those that read the binlog. One that is refused stops the login by its name.
func TestInitialStatements(t *testing.T) {
	f := newFake()
	f.stream = func(c *fakemysql.Conn) { io.Copy(io.Discard, c.Conn.Conn) }
	cfg := f.config()
	cfg.InitialStatements = []string{"SET SESSION wait_timeout=2000", "SET @a=1"}
	c, err := Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	count := func(what string) (n int) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, sql := range f.asked {
			if sql == what {
				n++
			}
		}
		return n
	}
	if f.asked[0] != "SET SESSION wait_timeout=2000" || f.asked[1] != "SET @a=1" || f.asked[2] != "SET NAMES utf8mb4" {
		t.Errorf("asked %q", f.asked)
	}
	s, err := c.Dump(t.Context(), DumpRequest{ServerID: 7, Identity: "c1", From: DumpFrom{File: "mysql-bin.000003", Pos: 4}})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if n := count("SET @a=1"); n != 1 {
		t.Errorf("%d times with a stream", n)
	}
	f.cut()
	if _, err := c.Info(t.Context()); err == nil {
		t.Error("the connection is still there")
	}
	if _, err := c.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := count("SET @a=1"); n != 2 {
		t.Errorf("%d times after another connection", n)
	}
	f.fail["SET @a=1"] = mysql.NewError(1193, "Unknown system variable")
	if _, err := Connect(t.Context(), cfg); !errors.Is(err, ErrSetup) || Transient(err) || !strings.Contains(err.Error(), "database.initial.statements: SET @a=1") {
		t.Errorf("a statement that fails: %v", err)
	}
}

// TestStatementsByVersion: servers of all ages are asked for positions and replicas in their own words; a network
// that fails at that statement is not taken for an old server, and no row is a binlog that is off.
func TestStatementsByVersion(t *testing.T) {
	syntax := mysql.NewError(1064, "You have an error in your SQL syntax")
	for _, tt := range []struct {
		version string
		old     []string // what it does not understand
	}{
		{"5.7.44-log", []string{"SHOW BINARY LOG STATUS", "SHOW REPLICAS", "SHOW REPLICA STATUS"}},
		{"8.0.20", []string{"SHOW BINARY LOG STATUS", "SHOW REPLICAS", "SHOW REPLICA STATUS"}},
		{"8.0.36", []string{"SHOW BINARY LOG STATUS"}},
		{"8.4.0", []string{"SHOW MASTER STATUS", "SHOW SLAVE HOSTS", "SHOW SLAVE STATUS"}},
		{"9.7.0", []string{"SHOW MASTER STATUS", "SHOW SLAVE HOSTS", "SHOW SLAVE STATUS"}},
		{"10.11.19-MariaDB", []string{"SHOW BINARY LOG STATUS", "SHOW REPLICAS"}},
	} {
		f := newFake()
		if strings.Contains(tt.version, "MariaDB") {
			f = mariaDB()
			f.fail = make(map[string]*mysql.MyError)
		}
		f.vars["version"] = tt.version
		f.vars["log_replica_updates"], f.vars["log_slave_updates"] = "OFF", "OFF"
		for _, sql := range tt.old {
			f.fail[sql] = syntax
		}
		c := f.connect(t)
		if pos, err := c.Position(t.Context()); err != nil || pos.File != "mysql-bin.000003" || pos.Pos != 900 || pos.GTIDs == "" {
			t.Errorf("%s: %v, %v", tt.version, pos, err)
		}
		if err := c.Check(t.Context(), Requirements{ServerID: 7, Identity: "c1"}); err != nil {
			t.Errorf("%s: %v", tt.version, err)
		}
		f.positions = []Position{{}}
		if _, err := c.Position(t.Context()); !errors.Is(err, ErrSetup) || !strings.Contains(err.Error(), "writes no binlog") {
			t.Errorf("%s: no binlog: %v", tt.version, err)
		}
	}

	f := newFake()
	c := f.connect(t)
	f.onQuery = func(f *fake, query string) {
		if strings.HasPrefix(query, "SHOW BINARY LOG STATUS") {
			for _, conn := range f.conns {
				conn.Close()
			}
		}
	}
	if _, err := c.Position(t.Context()); err == nil || !Transient(err) || strings.Contains(err.Error(), "MASTER") {
		t.Errorf("a network that fails: %v", err)
	}
	for _, sql := range f.asked {
		if strings.HasPrefix(sql, "SHOW MASTER STATUS") {
			t.Error("the server was taken for an old one")
		}
	}
}

func TestDump(t *testing.T) {
	f := newFake()
	events := [][]byte{rotate("mysql-bin.000003", 400, true), formatDescription(true), rawEvent(2, 0, 900, []byte("BEGIN"), true)}
	f.stream = func(c *fakemysql.Conn) {
		for _, ev := range events {
			if c.WritePacket(append(make([]byte, 4), ok(ev)...)) != nil {
				return
			}
		}
		io.Copy(io.Discard, c.Conn.Conn)
	}
	f.onRegister = func(f *fake) { f.replicas = [][]any{{7, "c1", 0, 1, replicaUUID("c1", 7)}} }
	c := f.connect(t)
	s, err := c.Dump(t.Context(), DumpRequest{ServerID: 7, Identity: "c1", From: DumpFrom{File: "mysql-bin.000003", Pos: 400}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i, want := range events {
		got, err := s.Next(t.Context())
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("event %d: %v", i, err)
		}
	}
	// The stream is a connection of its own: questions go on beside it.
	if _, err := c.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := s.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if want := append(append([]byte{mysql.COM_BINLOG_DUMP}, 0x90, 1, 0, 0, 0, 0, 7, 0, 0, 0), "mysql-bin.000003"...); !bytes.Equal(f.dumps[0], want) {
		t.Errorf("dump command % x", f.dumps[0])
	}
	if want := append(append([]byte{7, 0, 0, 0, 2}, "c1"...), make([]byte, 12)...); !bytes.Equal(f.registered[0], want) {
		t.Errorf("registration % x", f.registered[0])
	}
	all := strings.Join(f.asked, "\n")
	for _, want := range []string{"@source_binlog_checksum=@@GLOBAL.binlog_checksum", "@source_heartbeat_period=1000000000", "@replica_uuid='" + replicaUUID("c1", 7) + "'"} {
		if !strings.Contains(all, want) {
			t.Errorf("%s is missing in\n%s", want, all)
		}
	}
}

func TestDumpRefused(t *testing.T) {
	request := DumpRequest{ServerID: 7, Identity: "c1", From: DumpFrom{File: "mysql-bin.000003", Pos: 4}}
	tests := []struct {
		name    string
		change  func(f *fake)
		request DumpRequest
		kind    error
		want    string
	}{
		{"server id 0", nil, DumpRequest{}, ErrSetup, "database.server.id is 0"},
		{"server id in use", func(f *fake) { f.replicas = [][]any{{7, "other", 0, 1, "x"}} }, request, ErrServerIDInUse, `report host "other"`},
		{"server id taken at the same time", func(f *fake) {
			f.onRegister = func(f *fake) { f.replicas = [][]any{{7, "other", 0, 1, "x"}} }
		}, request, ErrServerIDInUse, `report host "other"`},
		{"privilege", func(f *fake) { f.fail["REGISTER"] = mysql.NewError(1227, "Access denied") }, request, ErrAccess, "GRANT REPLICATION SLAVE"},
		{"GTIDs", nil, DumpRequest{ServerID: 7, From: DumpFrom{GTIDs: "x:y", ByGTID: true}}, nil, `GTID set "x:y"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake()
			if tt.change != nil {
				tt.change(f)
			}
			_, err := f.connect(t).Dump(t.Context(), tt.request)
			if err == nil || Transient(err) || tt.kind != nil && !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v", err)
			}
			if len(f.dumps) != 0 {
				t.Error("the binlog was asked for")
			}
		})
	}
}

func TestDumpCommand(t *testing.T) {
	const uuid = "00112233-4455-6677-8899-aabbccddeeff"
	raw, _ := hex.DecodeString(strings.ReplaceAll(uuid, "-", ""))
	le := binary.LittleEndian
	plain := le.AppendUint64(nil, 1)
	plain = append(plain, raw...)
	for _, n := range []uint64{2, 1, 4, 5, 6} { // two intervals, their ends exclusive
		plain = le.AppendUint64(plain, n)
	}
	// With tags the count of sources has a format mark around it, and each source a tag: its length doubled, its text.
	tagged := le.AppendUint64(nil, 1<<56|2<<8|1)
	tagged = append(append(tagged, raw...), 0)
	for _, n := range []uint64{1, 1, 4} {
		tagged = le.AppendUint64(tagged, n)
	}
	tagged = append(append(tagged, raw...), 6)
	tagged = append(tagged, "tag"...)
	for _, n := range []uint64{1, 7, 8} {
		tagged = le.AppendUint64(tagged, n)
	}
	command := func(file string, pos uint64, set []byte) []byte {
		b := append(make([]byte, 4), mysql.COM_BINLOG_DUMP_GTID, 0, 0, 7, 0, 0, 0)
		b = append(le.AppendUint32(b, uint32(len(file))), file...)
		b = le.AppendUint32(le.AppendUint64(b, pos), uint32(len(set)))
		return append(b, set...)
	}
	none := make([]byte, 8)
	tests := []struct {
		name string
		from DumpFrom
		want []byte
	}{
		{"file", DumpFrom{File: "f.1", Pos: math.MaxUint32}, append(append(make([]byte, 4), mysql.COM_BINLOG_DUMP, 255, 255, 255, 255, 0, 0, 7, 0, 0, 0), "f.1"...)},
		{"beyond 4 GiB", DumpFrom{File: "f.1", Pos: math.MaxUint32 + 1, GTIDs: uuid + ":1"}, command("f.1", 1<<32, none)},
		{"no GTIDs", DumpFrom{File: "f.1", Pos: 1 << 40, ByGTID: true}, command("", 4, none)},
		{"GTIDs", DumpFrom{GTIDs: uuid + ":1-3:5", ByGTID: true}, command("", 4, plain)},
		{"tags", DumpFrom{GTIDs: uuid + ":1-3:tag:7", ByGTID: true}, command("", 4, tagged)},
		{"GTIDs from a position on", DumpFrom{File: "f.1", Pos: 900, GTIDs: uuid + ":1-3:5", ByGTID: true, Direct: true}, command("f.1", 900, plain)},
	}
	for _, tt := range tests {
		got, err := dumpCommand(DumpRequest{ServerID: 7, From: tt.from}, false)
		if err != nil || !bytes.Equal(got, tt.want) {
			t.Errorf("%s: %v\n got % x\nwant % x", tt.name, err, got, tt.want)
		}
	}
	for _, tt := range []struct {
		name string
		req  DumpRequest
		want []byte
	}{
		{"file", DumpRequest{ServerID: 7, From: DumpFrom{File: "f.1", Pos: 300}}, append(append(make([]byte, 4), mysql.COM_BINLOG_DUMP, 44, 1, 0, 0, 0, 0, 7, 0, 0, 0), "f.1"...)},
		{"statements", DumpRequest{ServerID: 7, Queries: true, From: DumpFrom{File: "f.1", Pos: 4}}, append(append(make([]byte, 4), mysql.COM_BINLOG_DUMP, 4, 0, 0, 0, 2, 0, 7, 0, 0, 0), "f.1"...)},
		{"GTIDs", DumpRequest{ServerID: 7, From: DumpFrom{File: "f.1", Pos: 300, GTIDs: "0-1-5", ByGTID: true}}, append(make([]byte, 4), mysql.COM_BINLOG_DUMP, 4, 0, 0, 0, 0, 0, 7, 0, 0, 0)},
	} {
		got, err := dumpCommand(tt.req, true)
		if err != nil || !bytes.Equal(got, tt.want) {
			t.Errorf("MariaDB, %s: %v\n got % x\nwant % x", tt.name, err, got, tt.want)
		}
	}
	for _, maria := range []bool{false, true} { // BINLOG_DUMP_NON_BLOCK
		got, err := dumpCommand(DumpRequest{ServerID: 7, ToEnd: true, From: DumpFrom{File: "f.1", Pos: 300}}, maria)
		if err != nil || got[9] != 1 {
			t.Errorf("to the end, MariaDB %v: % x, %v", maria, got, err)
		}
	}
	if got, err := dumpCommand(DumpRequest{ServerID: 7, ToEnd: true, From: DumpFrom{GTIDs: uuid + ":1", ByGTID: true}}, false); err != nil || got[5] != 1 {
		t.Errorf("to the end by GTID: % x, %v", got, err)
	}
	if _, err := dumpCommand(DumpRequest{ServerID: 7, From: DumpFrom{File: "f.1", Pos: 1 << 32}}, true); !errors.Is(err, ErrSetup) {
		t.Errorf("MariaDB, beyond 4 GiB: %v", err)
	}
}

func TestReplicaUUID(t *testing.T) {
	id := replicaUUID("inventory", 184054)
	if id != replicaUUID("inventory", 184054) || id == replicaUUID("inventory", 184055) || id == replicaUUID("inventory2", 184054) {
		t.Error("the uuid must follow from connector and server id alone")
	}
	if len(id) != 36 || id[14] != '5' || !strings.ContainsRune("89ab", rune(id[19])) {
		t.Error(id)
	}
}

// TestLocateSaysWhose checks that an error speaks of the position as what it is, and gives the way out that fits.
func TestLocateSaysWhose(t *testing.T) {
	const a = "00000000-0000-0000-0000-00000000000a:1-7"
	set, err := offset.ParseGTIDSet(a)
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string, pos int64) offset.Offset { return offset.Offset{File: name, Pos: pos} }
	for _, tt := range []struct {
		name   string
		start  offset.Offset
		change func(f *fake)
		want   string // with WHOSE in place of whose position it is
	}{
		{"GTIDs unknown", offset.Offset{GTIDs: set}, func(f *fake) { f.unknown = []string{"00000000-0000-0000-0000-0000000000cc:4"} }, "WHOSE names transactions that MySQL"},
		{"GTIDs purged", offset.Offset{GTIDs: set}, func(f *fake) { f.gone = "00000000-0000-0000-0000-00000000000a:8" }, "with transactions that come after WHOSE: "},
		{"later file", file("mysql-bin.000999", 4), nil, "WHOSE mysql-bin.000999:4 names a binlog file that MySQL at db.example:3306 does not have; it has mysql-bin.000002 to mysql-bin.000003"},
		{"purged file", file("mysql-bin.000001", 4), nil, "WHOSE mysql-bin.000001:4 lies in a binlog file that MySQL at db.example:3306 has purged; the oldest that it has is mysql-bin.000002"},
		{"beyond the end", file("mysql-bin.000003", 901), nil, "WHOSE mysql-bin.000003:901 lies beyond the end"},
		{"inside an event", file("mysql-bin.000003", 401), nil, "WHOSE is mysql-bin.000003:401, but no event begins there"},
		{"before any event", file("mysql-bin.000003", 3), nil, "WHOSE is mysql-bin.000003:3, where no event can begin"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				if tt.change != nil {
					tt.change(f)
				}
				for origin, words := range map[Origin][3]string{
					Stored: {"the stored offset", "delete the connector's stored offset (how: README, Starting anew)", "choose another start position"},
					Given:  {"the start position", "choose another start position (start.position, --from)", "stored offset"},
				} {
					_, err := f.connect(t).Locate(t.Context(), tt.start, origin)
					text := fmt.Sprint(err)
					if !strings.Contains(text, strings.ReplaceAll(tt.want, "WHOSE", words[0])) || !strings.Contains(text, words[1]) || strings.Contains(text, words[2]) {
						t.Errorf("%s: %v", words[0], err)
					}
				}
			})
		})
	}
}

func TestTransient(t *testing.T) {
	wrap := func(err error) error { return fmt.Errorf("x: %w", &fault{text: "y", cause: err}) }
	for _, err := range []error{
		io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, context.DeadlineExceeded, mysql.ErrBadConn, ErrSilent,
		&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, &net.OpError{Op: "read", Err: syscall.ECONNRESET},
		&net.DNSError{Err: "no such host"}, &net.OpError{Op: "dial", Err: errors.New("refused")},
		&mysql.MyError{Code: 1040}, &mysql.MyError{Code: 1053}, &mysql.MyError{Code: 2013}, &mysql.MyError{Code: 4031}, &mysql.MyError{Code: 1317},
	} {
		if !Transient(wrap(err)) {
			t.Errorf("%v must be transient", err)
		}
	}
	for _, err := range []error{
		nil, errors.New("x"), context.Canceled, ErrPurged, ErrOtherServer, ErrServerIDInUse, ErrReplaced, ErrNoTable, ErrAccess, ErrInsecure, ErrSetup, ErrCorrupt,
		&mysql.MyError{Code: 1045}, &mysql.MyError{Code: 1227}, &mysql.MyError{Code: 1236}, &mysql.MyError{Code: 1064},
		errors.Join(ErrAccess, io.EOF), &fs.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}, &os.LinkError{Op: "rename", Err: syscall.EAGAIN}, syscall.EAGAIN, &net.OpError{Op: "remote error", Err: errors.New("tls: handshake failure")},
	} {
		if Transient(err) || err != nil && Transient(wrap(err)) {
			t.Errorf("%v must not be transient", err)
		}
	}
}
