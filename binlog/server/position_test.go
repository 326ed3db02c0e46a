package server

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
)

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
