package bench

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/tidemark-cdc/tidemark/it"
)

// workloadNames are in the order in which they are run: what W4 is stopped in is W3, and growth leaves a GTID set behind that all that
// came later would have.
var workloadNames = []string{"W1", "W2", "W3", "W4", "W3by10", "W5", "W6", "W7", "W8", "start", "idle", "growth"}

// workload is a stretch of binlog that every tool reads.
type workload struct {
	name     string
	database string
	tables   []string
	rows     int // row changes
	records  int // what they make: one a change, and a tombstone behind each delete
	start    position
}

// position is where a workload begins in the binlog, in each way that a tool can be told.
type position struct {
	file  string
	pos   int64
	gtids string
}

// offset is the position as Debezium stores it between two transactions.
func (p position) offset() string {
	return fmt.Sprintf(`{"ts_sec":%d,"file":%q,"pos":%d,"gtids":%q}`, time.Now().Unix(), p.file, p.pos, p.gtids)
}

// now is the end of the server's binlog.
func now(t testing.TB, m *it.MySQL) position {
	t.Helper()
	r := m.Query(t, "SHOW BINARY LOG STATUS")[0]
	pos, err := strconv.ParseInt(r[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return position{file: r[0], pos: pos, gtids: strings.NewReplacer("\n", "", " ", "").Replace(r[4])}
}

// serverFlags are those of a replication source as Debezium's manual asks for; what follows them makes writing the workloads fast.
var serverFlags = []string{
	"--log-bin=mysql-bin", "--binlog-format=ROW", "--binlog-row-image=FULL", "--binlog-row-metadata=FULL",
	"--gtid-mode=ON", "--enforce-gtid-consistency=ON",
	"--sync-binlog=0", "--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=OFF", "--innodb-buffer-pool-size=512M",
	"--innodb-redo-log-capacity=1G", "--binlog-cache-size=1M", "--table-open-cache=8000", "--table-definition-cache=8000",
	"--open-files-limit=20000", "--max-allowed-packet=64M",
}

// orders is the table of most workloads: nine columns, about 230 bytes a row in the binlog.
const orders = `(id BIGINT PRIMARY KEY, customer INT NOT NULL, name VARCHAR(60), price DECIMAL(10,2) NOT NULL, placed DATETIME(3),
  changed TIMESTAMP NOT NULL, note TEXT, extra JSON, paid TINYINT(1) NOT NULL)`

// order is the row with an id.
func order(id string) string { return id + ", " + orderOf(id) }

// orderOf is what is behind the id, of a number.
func orderOf(number string) string {
	return strings.ReplaceAll(`# % 5000, CONCAT('Margarethe Lindenbaum, Station Road ', 10 + # % 90), (# % 1000000) / 100,
  TIMESTAMP('2026-01-01 00:00:00.789') + INTERVAL # SECOND, FROM_UNIXTIME(1795955696 + # % 100000),
  'Leave the parcel with the neighbour on the second floor.', JSON_OBJECT('id', # % 30000, 'ok', TRUE, 'tag', 'north!'), # % 2`, "#", number)
}

// seed makes the numbers that statements take their rows from. They are in no captured database.
func seed(t testing.TB, m *it.MySQL) {
	t.Helper()
	m.Exec(t, "CREATE DATABASE bench", "CREATE TABLE bench.seq (n INT PRIMARY KEY)", "SET SESSION cte_max_recursion_depth = 20000",
		"INSERT INTO bench.seq WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 10000) SELECT n FROM s")
}

// write makes the tables of a workload and writes so many row changes.
func (o Options) write(t testing.TB, m *it.MySQL, name string, rows int) *workload {
	t.Helper()
	w := &workload{name: name, database: strings.ToLower(name), tables: []string{"orders"}, rows: rows, records: rows}
	m.Exec(t, "CREATE DATABASE "+w.database)
	begun := time.Now()
	switch name {
	case "W1", "W1schema":
		o.stream(t, m, w)
	case "W2":
		m.Exec(t, "CREATE TABLE w2.orders "+orders, `CREATE PROCEDURE w2.fill(IN rows_ INT) BEGIN
  DECLARE k INT DEFAULT 1;
  WHILE k <= rows_ DO
    INSERT INTO w2.orders SELECT `+order("k")+`;
    SET k = k + 1;
  END WHILE;
END`)
		w.begin(t, m)
		m.Exec(t, fmt.Sprintf("CALL w2.fill(%d)", w.rows))
	case "W3":
		w.make(t, m, "orders", orders)
		w.inserts(t, m, w.rows, order("id"))
	case "W3by10":
		w.make(t, m, "orders", orders)
		w.inserts(t, m, 10, order("id"))
	case "W5", "start", "idle": // written while it is read
		w.make(t, m, "orders", orders)
	case "W5max":
		w.make(t, m, "orders", orders)
		m.Exec(t, fill)
	case "W6":
		columns, values := wide(100)
		w.make(t, m, "wide", columns)
		w.inserts(t, m, 100, values)
	case "W7":
		w.make(t, m, "blobs", "(id BIGINT PRIMARY KEY, body MEDIUMBLOB)")
		w.inserts(t, m, 10, "id, CONCAT("+strings.TrimSuffix(strings.Repeat("RANDOM_BYTES(1000), ", 100), ", ")+")")
	case "W8":
		o.many(t, m, w)
	default:
		t.Fatalf("no workload %q", name)
	}
	w.settle(t, m)
	t.Logf("%s: %d row changes written in %v", name, w.rows, time.Since(begun).Round(time.Millisecond))
	return w
}

// settle gives the server rest before something is measured: it has no rows left to write to its disk, nor old versions to clean up.
// The tables stay as they are defined, and the binlog says nothing of it.
func (w *workload) settle(t testing.TB, m *it.MySQL) {
	t.Helper()
	if w.rows < 10_000 {
		return
	}
	statements := []string{"SET SESSION sql_log_bin = 0"}
	for _, table := range w.tables[:min(len(w.tables), 10)] {
		statements = append(statements, "TRUNCATE TABLE "+w.database+"."+table)
	}
	m.Exec(t, statements...)
	time.Sleep(2 * time.Second)
}

// make makes the one table of a workload, and begins.
func (w *workload) make(t testing.TB, m *it.MySQL, table, definition string) {
	t.Helper()
	w.tables = []string{table}
	m.Exec(t, "CREATE TABLE "+w.database+"."+table+" "+definition)
	w.begin(t, m)
}

// begin starts a new binlog file with what follows.
func (w *workload) begin(t testing.TB, m *it.MySQL) {
	t.Helper()
	m.Exec(t, "FLUSH BINARY LOGS")
	w.start = now(t, m)
}

// stream writes transactions of 100 changes: 60 rows are inserted, 30 of them updated and 10 others of them deleted, in statements of
// at most so many rows.
func (o Options) stream(t testing.TB, m *it.MySQL, w *workload) {
	t.Helper()
	m.Exec(t, "CREATE TABLE "+w.database+".orders "+orders, strings.ReplaceAll(`CREATE PROCEDURE w1.fill(IN transactions_ INT, IN most INT) BEGIN
  DECLARE base BIGINT DEFAULT 0;
  DECLARE k, i INT DEFAULT 0;
  WHILE k < transactions_ DO
    SET base = k * 60;
    START TRANSACTION;
    SET i = 0;
    WHILE i < 60 DO
      INSERT INTO w1.orders SELECT `+order("(base + n)")+` FROM bench.seq WHERE n > i AND n <= LEAST(i + most, 60);
      SET i = i + most;
    END WHILE;
    SET i = 0;
    WHILE i < 30 DO
      UPDATE w1.orders SET customer = customer + 1, changed = changed + INTERVAL 1 SECOND
        WHERE id > base + i AND id <= base + LEAST(i + most, 30);
      SET i = i + most;
    END WHILE;
    SET i = 50;
    WHILE i < 60 DO
      DELETE FROM w1.orders WHERE id > base + i AND id <= base + LEAST(i + most, 60);
      SET i = i + most;
    END WHILE;
    COMMIT;
    SET k = k + 1;
  END WHILE;
END`, "w1.", w.database+"."))
	transactions := max(w.rows/100, 1)
	w.rows, w.records = transactions*100, transactions*110
	w.begin(t, m)
	m.Exec(t, fmt.Sprintf("CALL %s.fill(%d, %d)", w.database, transactions, o.Statement))
}

// inserts writes transactions of one statement and so many rows each. The tables take turns.
func (w *workload) inserts(t testing.TB, m *it.MySQL, size int, values string) {
	t.Helper()
	c := connect(t, m)
	defer c.Close()
	for from, i := 0, 0; from < w.rows; from, i = from+size, i+1 {
		run(t, c, w.insert(w.tables[i%len(w.tables)], values, from, min(size, w.rows-from)))
	}
}

// insert is the statement that inserts so many rows with the ids behind from.
func (w *workload) insert(table, values string, from, rows int) string {
	ids := fmt.Sprintf("SELECT %d + n AS id FROM bench.seq WHERE n <= %d", from, rows)
	if rows > 10_000 { // as many as the table has
		ids = fmt.Sprintf("SELECT %d + (a.n - 1) * 10000 + b.n AS id FROM bench.seq a, bench.seq b WHERE a.n <= %d AND (a.n - 1) * 10000 + b.n <= %d",
			from, (rows+9999)/10_000, rows)
	}
	return fmt.Sprintf("INSERT INTO %s.%s SELECT %s FROM (%s) s", w.database, table, values, ids)
}

// more writes rows with the ids from base on, in transactions of 100.
func (w *workload) more(t testing.TB, m *it.MySQL, base int64, rows int) {
	t.Helper()
	var statements []string
	for from := 0; from < rows; from += 100 {
		statements = append(statements, w.insert(w.tables[0], order("id"), int(base)-1+from, min(100, rows-from)))
	}
	m.Exec(t, statements...)
}

// nextID is the first id that is not in the table.
func nextID(t testing.TB, s *stage, w *workload) int64 {
	t.Helper()
	text := s.mysql.Query(t, "SELECT COALESCE(MAX(id), 0) + 1 FROM "+w.database+"."+w.tables[0])[0][0]
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// wide is the definition of a table of so many columns, its key among them, and their values.
func wide(count int) (definition, values string) {
	kinds := []struct{ column, value string }{
		{"INT", "(id + #) % 100000"},
		{"BIGINT", "id * 1000003 + #"},
		{"VARCHAR(40)", "CONCAT('column ', #, ' of row ', id)"},
		{"DECIMAL(12,2)", "(id % 100000) / 100 + #"},
		{"DATETIME(3)", "TIMESTAMP('2026-01-01 00:00:00.123') + INTERVAL id + # SECOND"},
		{"DOUBLE", "id / 7 + #"},
		{"TINYINT", "(id + #) % 100"},
		{"DATE", "DATE('2020-01-01') + INTERVAL (id + #) % 3000 DAY"},
		{"TIMESTAMP NULL", "FROM_UNIXTIME(1795955696 + id % 100000)"},
		{"VARCHAR(20)", "NULL"},
	}
	c, v := []string{"id BIGINT PRIMARY KEY"}, []string{"id"}
	for i := range count - 1 {
		kind := kinds[i%len(kinds)]
		c = append(c, fmt.Sprintf("c%03d %s", i, kind.column))
		v = append(v, strings.ReplaceAll(kind.value, "#", strconv.Itoa(i)))
	}
	return "(" + strings.Join(c, ", ") + ")", strings.Join(v, ", ")
}

// many writes one-row statements, a hundred a transaction, that go round many tables.
func (o Options) many(t testing.TB, m *it.MySQL, w *workload) {
	t.Helper()
	c := connect(t, m)
	defer c.Close()
	w.tables = make([]string, o.Tables)
	for i := range w.tables {
		w.tables[i] = fmt.Sprintf("t%05d", i)
		run(t, c, "CREATE TABLE w8."+w.tables[i]+" "+orders)
	}
	w.begin(t, m)
	var b strings.Builder
	for from := 0; from < w.rows; from += 100 {
		b.Reset()
		b.WriteString("START TRANSACTION;")
		for i := from; i < min(from+100, w.rows); i++ {
			fmt.Fprintf(&b, "INSERT INTO w8.%s SELECT %s;", w.tables[i%len(w.tables)], order(strconv.Itoa(i)))
		}
		b.WriteString("COMMIT")
		run(t, c, b.String())
	}
}

// connect opens a connection that takes several statements at once.
func connect(t testing.TB, m *it.MySQL) *client.Conn {
	t.Helper()
	c, err := client.ConnectWithContext(context.Background(), m.Addr(), "root", "secret", "", 10*time.Second, func(c *client.Conn) error {
		return c.SetCapability(mysql.CLIENT_MULTI_STATEMENTS)
	})
	if err != nil {
		t.Fatalf("MySQL: %v", err)
	}
	return c
}

func run(t testing.TB, c *client.Conn, statements string) {
	t.Helper()
	if err := execute(c, statements); err != nil {
		t.Fatalf("MySQL: %v, in: %.200s", err, statements)
	}
}

// execute runs statements that are separated by semicolons, up to the first that fails.
func execute(c *client.Conn, statements string) error {
	var failed error
	_, err := c.ExecuteMultiple(statements, func(_ *mysql.Result, err error) {
		if failed == nil {
			failed = err
		}
	})
	if err != nil {
		return err
	}
	return failed
}
