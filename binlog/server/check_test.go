package server

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
)

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
