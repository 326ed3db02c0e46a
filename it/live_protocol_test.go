package it

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestLiveProtocol makes the server write every kind of event group that users have seen misread.
func TestLiveProtocol(t *testing.T) {
	t.Parallel()
	m := StartMySQL(t, append([]string{"--max-allowed-packet=128M"}, gtidFlags...)...)
	liveGroup{config: Properties{"include.query": "true"}, cases: liveProtocolCases()}.run(t, m)
	t.Run("a_row_over_16_MiB", func(t *testing.T) { rowOver16MiB(t, m) })
	t.Run("a_session_that_logs_statements", func(t *testing.T) { statementSession(t, m) })
	t.Run("a_session_with_MINIMAL_images", func(t *testing.T) { minimalSession(t, m) })
	t.Run("two_columns_with_one_adjusted_name", func(t *testing.T) { oneAdjustedName(t, m) })
	t.Run("TestRowImageOfTheServer", func(t *testing.T) { rowImageOfTheServer(t, m) })
}

func liveProtocolCases() []liveCase {
	return []liveCase{
		{
			name: "checksums switched while streaming",
			sql: []string{
				"CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)", "SET GLOBAL binlog_checksum='NONE'", "INSERT INTO t VALUES (2)",
				"SET GLOBAL binlog_checksum='CRC32'", "INSERT INTO t VALUES (3)",
			},
			want: []string{`t c {"id":1} {"id":1}`, `t c {"id":2} {"id":2}`, `t c {"id":3} {"id":3}`},
		},
		{
			name: "a compressed transaction between others",
			sql: []string{
				"CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1,1)", "SET SESSION binlog_transaction_compression=ON",
				"BEGIN", "INSERT INTO t VALUES (2,2)", "INSERT INTO t VALUES (3,3)", "UPDATE t SET v=9 WHERE id=2", "COMMIT",
				"SET SESSION binlog_transaction_compression=OFF", "INSERT INTO t VALUES (4,4)",
			},
			want: []string{
				`t c {"id":1} {"id":1,"v":1}`, `t c {"id":2} {"id":2,"v":2}`, `t c {"id":3} {"id":3,"v":3}`,
				`t u {"id":2} {"id":2,"v":2} => {"id":2,"v":9}`, `t c {"id":4} {"id":4,"v":4}`,
			},
			check: func(t *testing.T, records []TailRecord) {
				ids := map[string]bool{}
				for _, r := range records[1:4] {
					ids[sourceOf(t, r).GTID] = true
				}
				if len(ids) != 1 || ids[""] {
					t.Errorf("the rows of one compressed transaction are of %v", ids)
				}
			},
		},
		{
			name: "query texts belong to their own statement only",
			sql: []string{
				"CREATE TABLE t (id INT PRIMARY KEY, v TEXT)", "SET SESSION binlog_rows_query_log_events=ON", "INSERT INTO t VALUES (1,REPEAT('x',3)) /* " + strings.Repeat("long ", 100) + "*/",
				"SET SESSION binlog_rows_query_log_events=OFF", "INSERT INTO t VALUES (2,'y')",
			},
			want: []string{`t c {"id":1} {"id":1,"v":"xxx"}`, `t c {"id":2} {"id":2,"v":"y"}`},
			check: func(t *testing.T, records []TailRecord) {
				want := "INSERT INTO t VALUES (1,REPEAT('x',3)) /* " + strings.Repeat("long ", 100) + "*/"
				if got := sourceOf(t, records[len(records)-2]).Query; got != want {
					t.Errorf("query %q, want %q", got, want)
				}
				if got := sourceOf(t, records[len(records)-1]).Query; got != "" {
					t.Errorf("query %q of a statement that has none", got)
				}
			},
		},
		{
			name: "XA transactions appear when they are committed, and not when they are rolled back",
			sql: []string{
				"CREATE TABLE t (id INT PRIMARY KEY)",
				"XA START 'x1'", "INSERT INTO t VALUES (10)", "XA END 'x1'", "XA PREPARE 'x1'", "XA ROLLBACK 'x1'",
				"XA START 'x2'", "INSERT INTO t VALUES (11)", "XA END 'x2'", "XA PREPARE 'x2'", "INSERT INTO t VALUES (12)", "XA COMMIT 'x2'",
				"XA START 'x3'", "INSERT INTO t VALUES (13)", "XA END 'x3'", "XA COMMIT 'x3' ONE PHASE",
			},
			want: []string{`t c {"id":12} {"id":12}`, `t c {"id":11} {"id":11}`, `t c {"id":13} {"id":13}`},
		},
		{
			name: "a GTID with a tag",
			sql: []string{
				"CREATE TABLE t (id INT PRIMARY KEY)", "SET SESSION gtid_next='AUTOMATIC:mytag'", "INSERT INTO t VALUES (1)", "SET SESSION gtid_next='AUTOMATIC'",
				"INSERT INTO t VALUES (2)",
			},
			want: []string{`t c {"id":1} {"id":1}`, `t c {"id":2} {"id":2}`},
			check: func(t *testing.T, records []TailRecord) {
				if got := sourceOf(t, records[len(records)-2]).GTID; !strings.HasSuffix(got, ":mytag:1") {
					t.Errorf("gtid %q, want a tag", got)
				}
				if got := records[len(records)-1].source; !strings.Contains(got, ":mytag:1") {
					t.Errorf("offset %s, want gtids with the tag", got)
				}
			},
		},
		{
			name: "cascades of foreign keys",
			sql: []string{
				"CREATE TABLE p1 (id INT PRIMARY KEY)", "CREATE TABLE c1 (id INT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES p1(id) ON DELETE CASCADE ON UPDATE CASCADE)",
				"INSERT INTO p1 VALUES (1),(2)", "INSERT INTO c1 VALUES (100,1),(101,1),(200,2)", "DELETE FROM p1 WHERE id=1", "UPDATE p1 SET id=22",
			},
			want: []string{
				`p1 c {"id":1} {"id":1}`, `p1 c {"id":2} {"id":2}`, `c1 c {"id":100} {"id":100,"pid":1}`, `c1 c {"id":101} {"id":101,"pid":1}`, `c1 c {"id":200} {"id":200,"pid":2}`,
				`c1 d {"id":100} {"id":100,"pid":1}`, `c1 tombstone {"id":100}`, `c1 d {"id":101} {"id":101,"pid":1}`, `c1 tombstone {"id":101}`,
				`p1 d {"id":1} {"id":1}`, `p1 tombstone {"id":1}`,
				`c1 u {"id":200} {"id":200,"pid":2} => {"id":200,"pid":22}`, `p1 d {"id":2} {"id":2}`, `p1 tombstone {"id":2}`, `p1 c {"id":22} {"id":22}`,
			},
		},
		{
			name: "REPLACE and ON DUPLICATE KEY",
			sql: []string{
				"CREATE TABLE p (id INT PRIMARY KEY, v INT UNIQUE)", "CREATE TABLE c (pid INT, FOREIGN KEY (pid) REFERENCES p(id))",
				"INSERT INTO p VALUES (22,20),(30,30),(31,31)", "REPLACE INTO p VALUES (22,21)", "REPLACE INTO p VALUES (30,31)",
				"INSERT INTO p VALUES (30,99) ON DUPLICATE KEY UPDATE v=98", "INSERT IGNORE INTO p VALUES (30,5)",
			},
			want: []string{
				`p c {"id":22} {"id":22,"v":20}`, `p c {"id":30} {"id":30,"v":30}`, `p c {"id":31} {"id":31,"v":31}`,
				`p d {"id":22} {"id":22,"v":20}`, `p tombstone {"id":22}`, `p c {"id":22} {"id":22,"v":21}`,
				`p d {"id":30} {"id":30,"v":30}`, `p tombstone {"id":30}`, `p d {"id":31} {"id":31,"v":31}`, `p tombstone {"id":31}`, `p c {"id":30} {"id":30,"v":31}`,
				`p u {"id":30} {"id":30,"v":31} => {"id":30,"v":98}`,
			},
		},
		{
			name: "savepoints", ddl: true,
			sql: []string{
				"CREATE TABLE t (id INT PRIMARY KEY)", "BEGIN", "INSERT INTO t VALUES (3)", "SAVEPOINT s1", "INSERT INTO t VALUES (4)", "ROLLBACK TO s1",
				"INSERT INTO t VALUES (5)", "COMMIT",
			},
			want: []string{"ddl CREATE TABLE t (id INT PRIMARY KEY)", `t c {"id":3} {"id":3}`, `t c {"id":5} {"id":5}`},
		},
		{
			name: "temporary tables, also with the name of a captured one", ddl: true,
			sql: []string{
				"CREATE TABLE t (id INT PRIMARY KEY, v INT)", "CREATE TEMPORARY TABLE tmp (a INT)", "BEGIN", "INSERT INTO t VALUES (1,1)", "INSERT INTO tmp VALUES (1)",
				"DROP TEMPORARY TABLE tmp", "ROLLBACK",
				"CREATE TEMPORARY TABLE t (z VARCHAR(9))", "INSERT INTO t VALUES ('z')", "ALTER TABLE t ADD COLUMN y INT", "DROP TEMPORARY TABLE t", "INSERT INTO t VALUES (2,2)",
			},
			want: []string{"ddl CREATE TABLE t (id INT PRIMARY KEY, v INT)", `t c {"id":2} {"id":2,"v":2}`},
		},
		{
			name: "binlog_row_metadata switched to MINIMAL and back",
			sql: []string{
				"CREATE TABLE t (id INT UNSIGNED PRIMARY KEY, e ENUM('whatsapp','mail'), s SET('a','b'), l VARCHAR(9) CHARACTER SET latin1)",
				"INSERT INTO t VALUES (4294967295,'mail','a,b','é')", "SET GLOBAL binlog_row_metadata='MINIMAL'", "INSERT INTO t VALUES (4294967294,'whatsapp','b','ü')",
				"ALTER TABLE t ADD COLUMN n INT UNSIGNED", "INSERT INTO t VALUES (4294967293,'mail','a','ä',4294967295)",
				"SET GLOBAL binlog_row_metadata='FULL'", "INSERT INTO t VALUES (1,'mail','a','ß',1)",
			},
			want: []string{
				`t c {"id":4294967295} {"id":4294967295,"e":"mail","s":"a,b","l":"é"}`, `t c {"id":4294967294} {"id":4294967294,"e":"whatsapp","s":"b","l":"ü"}`,
				`t c {"id":4294967293} {"id":4294967293,"e":"mail","s":"a","l":"ä","n":4294967295}`, `t c {"id":1} {"id":1,"e":"mail","s":"a","l":"ß","n":1}`,
			},
		},
		{
			name: "the time of an event is that of its commit",
			sql:  []string{"CREATE TABLE t (id INT PRIMARY KEY)", "SET SESSION timestamp=1700000000", "INSERT INTO t VALUES (1)"},
			want: []string{`t c {"id":1} {"id":1}`},
			check: func(t *testing.T, records []TailRecord) {
				s := sourceOf(t, records[len(records)-1])
				if age := time.Since(time.UnixMicro(s.TsUs)); age < -5*time.Second || age > time.Minute {
					t.Errorf("ts_us is %v ago", age)
				}
				if s.TsMs != s.TsUs/1000 || s.TsNs != s.TsUs*1000 || s.ServerID != 223344 || s.File == "" || s.Pos == 0 || s.Thread == 0 || s.GTID == "" {
					t.Errorf("source %+v", s)
				}
			},
		},
	}
}

// sourceBlock is the source block of a row.
type sourceBlock struct {
	TsMs     int64 `json:"ts_ms"`
	TsUs     int64 `json:"ts_us"`
	TsNs     int64 `json:"ts_ns"`
	ServerID int64 `json:"server_id"`
	GTID     string
	File     string
	Pos      int64
	Thread   int64
	Query    string
}

func sourceOf(t *testing.T, r TailRecord) sourceBlock {
	t.Helper()
	var v struct{ Source sourceBlock }
	if r.Value == nil {
		t.Fatalf("%s is a tombstone", r.what(t))
	}
	mustJSON(t, payload([]byte(*r.Value)), &v)
	return v.Source
}

// rowOver16MiB reads a row that is several packets on the wire, plain and compressed.
func rowOver16MiB(t *testing.T, m *MySQL) {
	m.Exec(t, "DROP DATABASE IF EXISTS big", "CREATE DATABASE big", "CREATE TABLE big.t (id INT PRIMARY KEY, b LONGBLOB)", "CREATE TABLE big.sentinel (id INT PRIMARY KEY)")
	l := StartTail(t, TailConfig(m, "big", Properties{"database.include.list": "big"}), "now")
	// The second one is a multiple of the largest packet on the wire with what stands around it, or just not.
	for i, size := range []int{16_777_216, 2*16_777_215 - 60, 40_000_000} {
		compression := "OFF"
		if i == 2 {
			compression = "ON"
		}
		m.Exec(t, "SET SESSION binlog_transaction_compression="+compression,
			fmt.Sprintf("INSERT INTO big.t VALUES (%d,REPEAT('0123456789abcdef',%d))", i, size/16), fmt.Sprintf("INSERT INTO big.sentinel VALUES (%d)", i))
		records := l.until(t, i)
		if len(records) != 1 {
			t.Fatalf("%d records", len(records))
		}
		var after struct{ B string }
		mustJSON(t, records[0].payload(t).After, &after)
		b, err := base64.StdEncoding.DecodeString(after.B)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(b)
		want := m.Query(t, fmt.Sprintf("SELECT SHA2(b,256) FROM big.t WHERE id=%d", i))[0][0]
		if got := hex.EncodeToString(sum[:]); got != want {
			t.Errorf("%d bytes: SHA-256 %s, the server has %s", len(b), got, want)
		}
	}
}

// statementSession stops at DML that is in the binlog as text, but only where a captured table is meant.
func statementSession(t *testing.T, m *MySQL) {
	m.Exec(t, "DROP DATABASE IF EXISTS stmt", "CREATE DATABASE stmt", "CREATE TABLE stmt.t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(40))",
		"CREATE TABLE stmt.other (id INT PRIMARY KEY)", "CREATE TABLE stmt.sentinel (id INT PRIMARY KEY)")
	for _, format := range []string{"STATEMENT", "MIXED"} {
		l := StartTail(t, TailConfig(m, "stmt", Properties{"table.include.list": `stmt\.(t|sentinel)`}), "now")
		m.Exec(t, "USE stmt", "SET SESSION binlog_format='"+format+"'", "DELETE FROM other", "INSERT INTO other VALUES (7)",
			"SET SESSION binlog_format='ROW'", "DELETE FROM stmt.sentinel", "INSERT INTO stmt.sentinel VALUES (1)")
		l.until(t, 1)
		m.Exec(t, "USE stmt", "SET @x='v'", "SET SESSION binlog_format='"+format+"'", "INSERT INTO t (v) VALUES (@x)")
		said := l.awaitEnd(t)
		for _, x := range []string{`binlog_format`, format + `|statement`, `stmt\.t`, `mysql-bin\.\d+`} {
			if !regexp.MustCompile(x).MatchString(said) {
				t.Errorf("%s: it does not say %q:\n%s", format, x, said)
			}
		}
	}
}

// minimalSession goes on over an insert that leaves columns out, and stops at an update.
func minimalSession(t *testing.T, m *MySQL) {
	m.Exec(t, "DROP DATABASE IF EXISTS mini", "CREATE DATABASE mini",
		"CREATE TABLE mini.mi (id INT PRIMARY KEY, a INT DEFAULT 5, b INT, c TEXT, d TIMESTAMP(3) NULL DEFAULT NULL)", "CREATE TABLE mini.sentinel (id INT PRIMARY KEY)")
	l := StartTail(t, TailConfig(m, "mini", Properties{"database.include.list": "mini"}), "now")
	m.Exec(t, "USE mini", "SET SESSION binlog_row_image='MINIMAL'", "INSERT INTO mi (id,b) VALUES (1,2)", "INSERT INTO sentinel VALUES (1)")
	want := `mi c {"id":1} {"id":1,"a":5,"b":2,"c":null,"d":null}`
	if got := liveRows(t, l.until(t, 1), false); len(got) != 1 || got[0] != want {
		t.Errorf("\n got %v\nwant %s", got, want)
	}
	m.Exec(t, "USE mini", "SET SESSION binlog_row_image='MINIMAL'", "UPDATE mi SET b=3")
	said := l.awaitEnd(t)
	for _, x := range []string{`mini\.mi`, `binlog_row_image`, `(?i)thread`, `SET (GLOBAL|PERSIST|SESSION) binlog_row_image`} {
		if !regexp.MustCompile(x).MatchString(said) {
			t.Errorf("it does not say %q:\n%s", x, said)
		}
	}
}

// oneAdjustedName refuses a table of which two columns would be one field, at the start or before its first row, with what helps.
func oneAdjustedName(t *testing.T, m *MySQL) {
	m.Exec(t, "DROP DATABASE IF EXISTS adjusted", "CREATE DATABASE adjusted", "CREATE TABLE adjusted.t (id INT PRIMARY KEY, `a.b` INT, `a b` INT)")
	l := LaunchTail(t, TailConfig(m, "adjusted", Properties{
		"schema.name.adjustment.mode": "avro", "field.name.adjustment.mode": "avro", "table.include.list": `adjusted\.t`,
	}), "now")
	eventually(t, time.Minute, "tail", func() error {
		if l.ended() {
			return nil
		}
		m.Exec(t, "INSERT INTO adjusted.t VALUES (1,2,3) ON DUPLICATE KEY UPDATE `a.b`=`a.b`+1")
		return errors.New("it goes on")
	})
	said := l.awaitEnd(t)
	for _, x := range []string{`adjusted\.t\b`, `a\.b`, `a b`, `a_b`, `field\.name\.adjustment\.mode|column\.exclude\.list`, `ALTER TABLE`} {
		if !regexp.MustCompile(x).MatchString(said) {
			t.Errorf("it does not say %q:\n%s", x, said)
		}
	}
	if records, _ := l.Take(); len(records) > 0 {
		t.Errorf("%d records were written", len(records))
	}
}

// rowImageOfTheServer refuses a server that leaves columns out, with the statement that mends it.
func rowImageOfTheServer(t *testing.T, m *MySQL) {
	defer m.Exec(t, "SET GLOBAL binlog_row_image='FULL'")
	for _, image := range []string{"MINIMAL", "NOBLOB"} {
		m.Exec(t, "SET GLOBAL binlog_row_image='"+image+"'")
		said := LaunchTail(t, TailConfig(m, "image", nil), "now").awaitEnd(t)
		for _, x := range []string{`binlog_row_image`, image, `SET (GLOBAL|PERSIST) binlog_row_image`} {
			if !regexp.MustCompile(x).MatchString(said) {
				t.Errorf("%s: it does not say %q:\n%s", image, x, said)
			}
		}
	}
}

// TestLiveServerRestarts restarts and kills the server between statements: table ids begin anew with each start, an open
// transaction never appears, and a MEMORY table is emptied by a statement that nobody sent.
func TestLiveServerRestarts(t *testing.T) {
	t.Parallel()
	rig := NewRig(t, append([]string{"--table-open-cache=1"}, gtidFlags...)...)
	m := rig.MySQL
	m.Exec(t, "CREATE DATABASE ids", "CREATE TABLE ids.t1 (id INT PRIMARY KEY)", "CREATE TABLE ids.t2 (id VARCHAR(9) PRIMARY KEY, v INT)",
		"CREATE TABLE ids.mem1 (id INT PRIMARY KEY) ENGINE=MEMORY")
	c := rig.Connector(t, "ids", "file", `ids\..*`)
	c.Config["topic.creation.default.partitions"] = "1"
	p := c.RunStreaming(t)
	want := map[string][]string{}
	columns := `"id":%d`
	for round := range 3 {
		id := round * 10
		m.Exec(t, "FLUSH TABLES", fmt.Sprintf("INSERT INTO ids.t1 (id) VALUES (%d)", id), fmt.Sprintf("INSERT INTO ids.t2 VALUES ('k%d',%d)", id, id),
			fmt.Sprintf("ALTER TABLE ids.t1 ADD COLUMN c%d INT DEFAULT %d FIRST", round, round), fmt.Sprintf("INSERT INTO ids.t1 (id) VALUES (%d)", id+1),
			fmt.Sprintf("INSERT INTO ids.mem1 VALUES (%d)", id))
		want["t1"] = append(want["t1"], fmt.Sprintf("{"+columns+"}", id))
		columns = fmt.Sprintf(`"c%d":%d,`, round, round) + columns
		want["t1"] = append(want["t1"], fmt.Sprintf("{"+columns+"}", id+1))
		want["t2"] = append(want["t2"], fmt.Sprintf(`{"id":"k%d","v":%d}`, id, id))
		want["mem1"] = append(want["mem1"], fmt.Sprintf(`{"id":%d}`, id))
		if round == 2 {
			break
		}
		open, err := m.connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{"BEGIN", fmt.Sprintf("INSERT INTO ids.t2 VALUES ('open%d',1)", round)} {
			if _, err := open.Execute(s); err != nil {
				t.Fatal(err)
			}
		}
		m.Stop(t, round == 1)
		_ = open.Close()
		m.Start(t)
	}
	c.AwaitDrained(t, 60*time.Second)
	p.Terminate(t)
	got := map[string][]string{}
	for _, r := range c.Records(t) {
		table := r.Topic[strings.LastIndexByte(r.Topic, '.')+1:]
		var v struct {
			Op    string
			After json.RawMessage
		}
		mustJSON(t, r.Value, &v)
		if v.Op != "c" {
			t.Errorf("op %s in %s", v.Op, r.Topic)
		}
		got[table] = append(got[table], string(v.After))
	}
	for table := range want {
		if g, w := strings.Join(got[table], "\n"), strings.Join(want[table], "\n"); g != w {
			t.Errorf("%s:\n%s\nwant\n%s", table, g, w)
		}
	}
}
