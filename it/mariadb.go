package it

import (
	"fmt"
	"strings"
	"testing"
)

// mariaDBScript starts a MariaDB as mysqlScript starts a MySQL.
const mariaDBScript = `set -e
mkdir -p /run/mysqld
chown mysql:mysql /run/mysqld
cat >/init.sql <<'X'
CREATE USER IF NOT EXISTS root@'%%' IDENTIFIED BY 'secret';
GRANT ALL ON *.* TO root@'%%' WITH GRANT OPTION;
CREATE USER IF NOT EXISTS tide@'%%' IDENTIFIED BY 'tide';
GRANT SELECT, RELOAD, SHOW DATABASES, LOCK TABLES, REPLICATION SLAVE, REPLICATION CLIENT, REPLICA MONITOR ON *.* TO tide@'%%';
X
exec mariadbd --no-defaults --user=mysql --datadir=/data --socket=/run/mysqld/mysqld.sock --init-file=/init.sql \
  --server-id=223344 --skip-name-resolve --log-bin=mysql-bin --binlog-format=ROW --binlog-row-image=FULL --binlog-row-metadata=FULL \
  --character-set-server=utf8mb4 --collation-server=utf8mb4_general_ci %s`

// StartMariaDB starts a MariaDB of a version ("10.11", "11.8") with these flags and waits until it answers. Its users and ports are
// those of [StartMySQL].
func StartMariaDB(t testing.TB, version string, flags ...string) *MySQL {
	t.Helper()
	Image(t, "engine")
	name := Image(t, "mariadb", version)
	m := &MySQL{Port: freePort(t), mariaDB: true}
	m.container = run(t, name, fmt.Sprintf(mariaDBScript, strings.Join(flags, " ")), map[int]int{3306: m.Port})
	m.wait(t)
	return m
}
