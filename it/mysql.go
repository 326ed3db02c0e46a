package it

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
)

// MySQL is a real server in a container. Its users are root (password "secret") and tide (password "tide", with the grants that
// the documentation asks for). The port stays over restarts.
type MySQL struct {
	container *container
	Port      int
	mariaDB   bool
}

// mysqlScript starts the server on the data folder that the image brings, and on what became of it after a restart.
const mysqlScript = `set -e
mkdir -p /run/mysqld /var/run/mysqld
chown mysql:mysql /run/mysqld /var/run/mysqld
cat >/init.sql <<'X'
CREATE USER IF NOT EXISTS root@'%%' IDENTIFIED BY 'secret';
GRANT ALL ON *.* TO root@'%%' WITH GRANT OPTION;
CREATE USER IF NOT EXISTS tide@'%%' IDENTIFIED BY 'tide';
GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO tide@'%%';
GRANT RELOAD, SHOW DATABASES, LOCK TABLES ON *.* TO tide@'%%';
X
exec mysqld --no-defaults --user=mysql --datadir=/data --socket=/run/mysqld/mysqld.sock --init-file=/init.sql \
  --server-id=223344 --mysqlx=OFF --skip-name-resolve --innodb-redo-log-capacity=256M %s`

// gtidFlags make a server as Debezium's manual asks for, with GTIDs.
var gtidFlags = []string{
	"--log-bin=mysql-bin", "--binlog-format=ROW", "--binlog-row-image=FULL", "--binlog-row-metadata=FULL",
	"--gtid-mode=ON", "--enforce-gtid-consistency=ON",
}

// fileFlags make the same server without GTIDs.
var fileFlags = []string{
	"--log-bin=mysql-bin", "--binlog-format=ROW", "--binlog-row-image=FULL", "--binlog-row-metadata=FULL", "--gtid-mode=OFF",
}

// StartMySQL starts a server with these mysqld flags and waits until it answers.
func StartMySQL(t testing.TB, flags ...string) *MySQL {
	t.Helper()
	m := launchMySQL(t, flags...)
	m.wait(t)
	return m
}

// launchMySQL starts a server without waiting for it.
func launchMySQL(t testing.TB, flags ...string) *MySQL {
	t.Helper()
	name := Image(t, "mysql")
	m := &MySQL{Port: freePort(t)}
	m.container = run(t, name, fmt.Sprintf(mysqlScript, strings.Join(flags, " ")), map[int]int{3306: m.Port})
	return m
}

// launchMySQLOnHost starts a server that listens on the host itself, without waiting for it.
func launchMySQLOnHost(t testing.TB, flags ...string) *MySQL {
	t.Helper()
	name := Image(t, "mysql")
	m := &MySQL{Port: freePort(t)}
	flags = append([]string{"--bind-address=127.0.0.1", "--port=" + strconv.Itoa(m.Port)}, flags...)
	m.container = runOnHost(t, name, fmt.Sprintf(mysqlScript, strings.Join(flags, " ")))
	return m
}

// Addr is "host:port".
func (m *MySQL) Addr() string { return "127.0.0.1:" + strconv.Itoa(m.Port) }

// Stop ends the server, with SIGTERM (clean) or SIGKILL.
func (m *MySQL) Stop(t testing.TB, clean bool) {
	t.Helper()
	grace := time.Duration(0)
	if clean {
		grace = 30 * time.Second
	}
	m.container.stop(t, grace)
}

// Start starts a stopped server again and waits until it answers.
func (m *MySQL) Start(t testing.TB) {
	t.Helper()
	m.container.start(t)
	m.wait(t)
}

func (m *MySQL) wait(t testing.TB) {
	t.Helper()
	eventually(t, 90*time.Second, "MySQL", func() error {
		c, err := m.connect(context.Background())
		if err != nil {
			return err
		}
		return c.Close()
	})
}

func (m *MySQL) connect(ctx context.Context) (*client.Conn, error) {
	c, err := client.ConnectWithContext(ctx, m.Addr(), "root", "secret", "", 10*time.Second)
	if err != nil {
		return nil, err
	}
	if _, err := c.Execute("SET NAMES utf8mb4"); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Exec runs statements on one connection of the user root and fails the test on an error.
func (m *MySQL) Exec(t testing.TB, statements ...string) {
	t.Helper()
	c := m.connection(t)
	defer c.Close()
	for _, s := range statements {
		if _, err := c.Execute(s); err != nil {
			if len(s) > 200 {
				s = s[:200] + "…"
			}
			t.Fatalf("MySQL: %v, in: %s", err, s)
		}
	}
}

// connection is a new one. A login that fails, as it may beside what a test does to the server, is tried again.
func (m *MySQL) connection(t testing.TB) *client.Conn {
	t.Helper()
	var c *client.Conn
	eventually(t, time.Minute, "a connection to MySQL", func() (err error) {
		c, err = m.connect(context.Background())
		return err
	})
	return c
}

// Query returns the rows of a query as text, NULL as the empty string.
func (m *MySQL) Query(t testing.TB, query string) [][]string {
	t.Helper()
	c := m.connection(t)
	defer c.Close()
	r, err := c.Execute(query)
	if err != nil {
		t.Fatalf("MySQL: %v, in: %s", err, query)
	}
	defer r.Close()
	return texts(r, "")
}

// texts are the rows of a result, with null in place of NULL.
func texts(r *mysql.Result, null string) [][]string {
	rows := make([][]string, 0, r.RowNumber())
	for i := range r.RowNumber() {
		row := make([]string, r.ColumnNumber())
		for j := range row {
			if absent, _ := r.IsNull(i, j); absent {
				row[j] = null
				continue
			}
			text, _ := r.GetString(i, j)
			row[j] = strings.Clone(text) // it is in memory that the next result is read into
		}
		rows = append(rows, row)
	}
	return rows
}

// Position is the end of the server's binlog.
func (m *MySQL) Position(t testing.TB) (file string, pos int64) {
	t.Helper()
	status := "SHOW BINARY LOG STATUS"
	if m.mariaDB {
		status = "SHOW MASTER STATUS"
	}
	r := m.Query(t, status)
	pos, err := strconv.ParseInt(r[0][1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return r[0][0], pos
}

// Binlog lists all events of all binlog files that the server has, by its own SHOW BINLOG EVENTS.
func (m *MySQL) Binlog(t testing.TB) *Binlog {
	t.Helper()
	b := NewBinlog()
	for _, file := range m.Query(t, "SHOW BINARY LOGS") {
		for _, e := range m.Query(t, "SHOW BINLOG EVENTS IN '"+file[0]+"'") {
			pos, err := strconv.ParseInt(e[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			b.Add(file[0], pos, e[2], e[5])
		}
	}
	return b
}
