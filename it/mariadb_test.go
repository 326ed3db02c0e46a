package it

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The events of a MariaDB server have to be those of MySQL for the same SQL. What MariaDB's own types, events and GTIDs make
// different is listed in mariaDBDifferences, each with the place in the source of Debezium's MariaDB connector (3.6.1.Final) that says so.

// mariaDBDifference is one of them.
type mariaDBDifference struct {
	what  string
	place string // class and method in io.debezium.connector.mariadb, unless another package is named
	// How it changes a MySQL event: a regular expression and what comes in its place.
	in, out string
}

var mariaDBDifferences = []mariaDBDifference{
	{
		"the names of the schemas", "io.debezium.connector.binlog.BinlogSourceInfoStructMaker.init with getConnectorName of MariaDbSourceInfoStructMaker; BinlogDatabaseSchema",
		`io\.debezium\.connector\.mysql\.`, `io.debezium.connector.mariadb.`,
	},
	{"source.connector", "Module.name", `"connector":"mysql"`, `"connector":"mariadb"`},
	{"the header __debezium.context.connectorName", "Module.name", `__debezium\.context\.connectorName mysql`, `__debezium.context.connectorName mariadb`},
	{"no thread: a transaction begins with its GTID event, which has none", "MariaDbStreamingChangeEventSource.handleGtidEvent", `"thread":\d+`, `"thread":null`},
	{"a GTID is domain-server-sequence", "MariaDbStreamingChangeEventSource.handleGtidEvent", `"gtid":null`, `"gtid":"0-223344-N"`},
}

// mariaDBCases are the cases of TestLiveDDL, TestLiveTypes and TestLiveProtocol that MariaDB cannot run, or whose rows differ.
var mariaDBCases = map[string]struct {
	why  string // and the place in the connector's source when it is about events
	sql  []string
	want []string
}{
	"a table that is used as soon as it is made, and dropped": {why: "the same as on MySQL; it is left out to save time"},
	"words that are keywords only for a parser":               {why: "MariaDB's reserved words are others: SEQUENCE, RETURNING and more"},
	"versioned comments carry syntax": {
		why: "/*M! … */ is executed and /*!80023 INVISIBLE */ is not: MariaDB takes version comments of MySQL 5.7.0 and later, up to 9.99.99, for comments",
		sql: []string{
			"CREATE TABLE t (id INT, v INT /*!80023 INVISIBLE */) /*!50100 PARTITION BY HASH(id) PARTITIONS 4 */",
			"/*!50003 ALTER TABLE t ADD COLUMN z INT */", "/*!99999 ALTER TABLE t ADD COLUMN never INT */",
			"INSERT INTO t (id,v,z) VALUES (1,2,3)", "CREATE TABLE m (id INT PRIMARY KEY /*M! , maria INT */)", "INSERT INTO m VALUES (1,2)",
		},
		want: []string{`t c - {"id":1,"v":2,"z":3}`, `m c {"id":1} {"id":1,"maria":2}`},
	},
	"invisible columns and the generated invisible primary key": {
		why:  "MariaDB has invisible columns, but no generated key",
		sql:  []string{"CREATE TABLE inv (id INT PRIMARY KEY, hid INT INVISIBLE DEFAULT 7, c INT)", "INSERT INTO inv (id,c) VALUES (1,2)"},
		want: []string{`inv c {"id":1} {"id":1,"hid":7,"c":2}`},
	},
	"ALGORITHM and LOCK clauses, repeated and without an equals sign": {
		why: "MariaDB wants no clause between columns",
		sql: []string{
			"CREATE TABLE t (id INT PRIMARY KEY)", "ALTER TABLE t ADD COLUMN a INT, ADD COLUMN b BIGINT, ALGORITHM=INSTANT",
			"ALTER TABLE t ADD COLUMN c INT, ALGORITHM=COPY, LOCK=SHARED", "ALTER TABLE t DROP COLUMN a, ALGORITHM=INPLACE, LOCK=NONE",
			"INSERT INTO t VALUES (1,2,3)",
		},
		want: []string{`t c {"id":1} {"id":1,"b":2,"c":3}`},
	},
	"text in all character sets": {
		why: "MariaDB has no gb18030",
		sql: []string{
			`CREATE TABLE t (gbk VARCHAR(9) CHARACTER SET gbk, sjis VARCHAR(9) CHARACTER SET sjis, big5 VARCHAR(9) CHARACTER SET big5,
			 ujis VARCHAR(9) CHARACTER SET ujis, utf16 VARCHAR(9) CHARACTER SET utf16, cp1250 VARCHAR(9) CHARACTER SET cp1250,
			 koi8r VARCHAR(9) CHARACTER SET koi8r, utf8mb3 VARCHAR(9) CHARACTER SET utf8mb3, latin1 VARCHAR(9) CHARACTER SET latin1)`,
			"INSERT INTO t VALUES ('乪你好','ソ表','圖形碼','河','𠮷a','Žluťoučký','Привет','漢','€é')",
		},
		want: []string{`t c - {"gbk":"乪你好","sjis":"ソ表","big5":"圖形碼","ujis":"河","utf16":"\uD842\uDFB7a","cp1250":"Žluťoučký","koi8r":"Привет","utf8mb3":"漢","latin1":"€é"}`},
	},
	"DECIMAL with every digit": {
		why: "a DECIMAL has at most 38 digits of fraction in both, but MariaDB's limit of 65 digits is checked otherwise in literals",
		sql: []string{
			"CREATE TABLE t (b DECIMAL(40,16), e DECIMAL, h DECIMAL(10,2))", "INSERT INTO t VALUES (-123456234234234757655.1234567890123456,123,1.1)",
		},
		want: []string{`t c - {"b":"-123456234234234757655.1234567890123456","e":"123","h":"1.10"}`},
	},
	"numbers and order of keys in JSON": {
		why: "JSON is LONGTEXT with a check, so it is the text that was written (MariaDbAntlrDdlParser.initializeDataTypeResolver has JSON for DDL only)",
		sql: []string{"CREATE TABLE t (j JSON)", `INSERT INTO t VALUES ('{"b": 1.0, "a":[1, 2]}')`}, want: []string{`t c - {"j":"{\"b\": 1.0, \"a\":[1, 2]}"}`},
	},
	"values in JSON that JSON does not have": {why: "JSON is text"},
	"VECTOR":                                 {why: "only from 11.7 on, with other functions: TestMariaDB/types_of_its_own has it"},
	"text with NUL, blanks, four-byte characters and great length": {why: "the same as on MySQL; it is left out to save time"},
	"a compressed transaction between others":                      {why: "MariaDB compresses events, not transactions: TestMariaDB/compressed_events"},
	"query texts belong to their own statement only":               {why: "ANNOTATE_ROWS in place of ROWS_QUERY: TestMariaDB/ANNOTATE_ROWS"},
	"synonyms of types and words of sign": {
		why: "MariaDB takes one word of sign",
		sql: []string{
			"SET SESSION sql_mode=''",
			"CREATE TABLE t (a INTEGER UNSIGNED, b INT ZEROFILL, c BIGINT ZEROFILL, d MIDDLEINT, e INT1, f INT2, g INT3, h INT4, i INT8, j FLOAT4, k FLOAT8, l DEC(5,1), m FIXED(5,1), n NUMERIC(5,1), o BOOL, p SERIAL, q LONG, t NATIONAL VARCHAR(5), u CHARACTER VARYING(5), v DOUBLE PRECISION(18,4))",
			"INSERT INTO t VALUES (4294967295,5,9223372036854775807,-1,-2,-3,-4,-5,-6,1.5,2.5,1.5,2.5,3.5,1,7,'lo','nv','cv',1.25)",
		},
		want: []string{`t c {"p":7} {"a":4294967295,"b":5,"c":9223372036854775807,"d":-1,"e":-2,"f":-3,"g":-4,"h":-5,"i":-6,"j":1.5,"k":2.5,"l":"1.5","m":"2.5","n":"3.5","o":true,"p":7,"q":"lo","t":"nv","u":"cv","v":1.25}`},
	},
	"XA transactions appear when they are committed, and not when they are rolled back": {
		why: "a session with a prepared transaction may do nothing else",
		sql: []string{
			"CREATE TABLE t (id INT PRIMARY KEY)",
			"XA START 'x1'", "INSERT INTO t VALUES (10)", "XA END 'x1'", "XA PREPARE 'x1'", "XA ROLLBACK 'x1'",
			"XA START 'x2'", "INSERT INTO t VALUES (11)", "XA END 'x2'", "XA PREPARE 'x2'", "XA COMMIT 'x2'", "INSERT INTO t VALUES (12)",
			"XA START 'x3'", "INSERT INTO t VALUES (13)", "XA END 'x3'", "XA COMMIT 'x3' ONE PHASE",
		},
		want: []string{`t c {"id":11} {"id":11}`, `t c {"id":12} {"id":12}`, `t c {"id":13} {"id":13}`},
	},
	"TIME beyond a day, negative, with fractions": {
		why: "MariaDB cuts a fraction that the column has no digits for, MySQL rounds it",
		sql: []string{
			"SET SESSION sql_mode=''", "CREATE TABLE t (a TIME(2), b TIME, c TIME(3), e TIME(6), h TIME(6), j TIME(2), k TIME)",
			"INSERT INTO t VALUES ('517:51:04.777','-13:14:50','-733:00:00.0011','-838:59:58.999999','-00:00:00.000001','-00:00:00.01','900:00:00')",
		},
		want: []string{`t c - {"a":1864264770000,"b":-47690000000,"c":-2638800001000,"e":-3020398999999,"h":-1,"j":-10000,"k":3020399000000}`},
	},
	"cascades of foreign keys": {
		why: "InnoDB does them in MariaDB, and the binlog has only the row of the parent",
		sql: []string{
			"CREATE TABLE p1 (id INT PRIMARY KEY)", "CREATE TABLE c1 (id INT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES p1(id) ON DELETE CASCADE ON UPDATE CASCADE)",
			"INSERT INTO p1 VALUES (1)", "INSERT INTO c1 VALUES (100,1)", "DELETE FROM p1 WHERE id=1",
		},
		want: []string{`p1 c {"id":1} {"id":1}`, `c1 c {"id":100} {"id":100,"pid":1}`, `p1 d {"id":1} {"id":1}`, `p1 tombstone {"id":1}`},
	},
	"temporary tables, also with the name of a captured one": {
		why: "MariaDB logs DROP TEMPORARY TABLE in a transaction, and then the whole of it with a ROLLBACK: TestMariaDB/a_transaction_that_ends_in_ROLLBACK",
		sql: []string{
			"CREATE TABLE t (id INT PRIMARY KEY, v INT)", "CREATE TEMPORARY TABLE tmp (a INT)", "INSERT INTO tmp VALUES (1)", "DROP TEMPORARY TABLE tmp",
			"CREATE TEMPORARY TABLE t (z VARCHAR(9))", "INSERT INTO t VALUES ('z')", "ALTER TABLE t ADD COLUMN y INT", "DROP TEMPORARY TABLE t", "INSERT INTO t VALUES (2,2)",
		},
		want: []string{"ddl CREATE TABLE t (id INT PRIMARY KEY, v INT)", `t c {"id":2} {"id":2,"v":2}`},
	},
	"a GTID with a tag":                          {why: "MariaDB's GTIDs have no tags"},
	"the time of an event is that of its commit": {why: "it is that of the event's header: MariaDbStreamingChangeEventSource.setEventTimestamp; TestMariaDB/basics compares it"},
}

func TestMariaDB(t *testing.T) {
	for _, version := range []string{"10.11", "11.8"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			m := StartMariaDB(t, version)
			config := Properties{"connector.class": "io.debezium.connector.mariadb.MariaDbConnector"}
			t.Run("basics", func(t *testing.T) { mariaDBBasics(t, m) })
			t.Run("cases", func(t *testing.T) {
				m.Exec(t, "SET GLOBAL time_zone='+05:30'", "DROP DATABASE IF EXISTS uncaptured", "CREATE DATABASE uncaptured CHARACTER SET latin1",
					"CREATE TABLE uncaptured.source (id INT UNSIGNED PRIMARY KEY, v VARCHAR(10))")
				liveGroup{
					config: config.With(Properties{"database.exclude.list": "uncaptured", "decimal.handling.mode": "string"}),
					cases:  mariaDBLiveCases(t),
				}.run(t, m)
			})
			t.Run("a_transaction_that_ends_in_ROLLBACK", func(t *testing.T) { mariaDBRollback(t, m, config) })
			t.Run("ANNOTATE_ROWS", func(t *testing.T) { mariaDBAnnotateRows(t, m, config) })
			t.Run("compressed_events", func(t *testing.T) { mariaDBCompressed(t, m, config) })
			t.Run("types_of_its_own", func(t *testing.T) { mariaDBTypes(t, m, config, version) })
			t.Run("resumed_by_its_GTIDs", func(t *testing.T) { mariaDBResume(t, m, config) })
		})
	}
}

// mariaDBLiveCases are MySQL's cases as MariaDB runs them.
func mariaDBLiveCases(t *testing.T) []liveCase {
	t.Helper()
	var cases []liveCase
	known := map[string]bool{}
	for _, c := range slices.Concat(liveDDLCases(), liveTypesCases(), liveProtocolCases()) {
		known[c.name] = true
		if other, ok := mariaDBCases[c.name]; ok {
			if other.sql == nil {
				continue
			}
			c.sql, c.want = other.sql, other.want
		}
		if c.name == "DROP of several tables and one of them made anew" {
			c.ddl = false
			c.want = c.want[len(c.want)-1:]
		}
		c.check = nil
		cases = append(cases, c)
	}
	for name := range mariaDBCases {
		if !known[name] {
			t.Errorf("there is no case %q", name)
		}
	}
	return cases
}

// mariaDBBasics runs the SQL of basics-file-mode and compares every record, schemas and headers included, with Debezium's on MySQL.
func mariaDBBasics(t *testing.T, m *MySQL) {
	want := readCapture(t, filepath.Join("testdata", "golden", "basics-file-mode"))
	m.clear(t)
	m.script(t, filepath.Join(want.dir, "setup.sql"))
	config := Properties(connectorConfig(t, filepath.Join(want.dir, "config.json"))).With(Properties{
		"connector.class":   "io.debezium.connector.mariadb.MariaDbConnector",
		"database.hostname": "127.0.0.1", "database.port": fmt.Sprint(m.Port), "database.user": "tide", "database.password": "tide",
		"snapshot.mode": "no_data",
	})
	l := StartTail(t, config, "now")
	m.script(t, filepath.Join(want.dir, "stream.sql"))
	got := sortRecords(want, l.until(t, 999999))
	l.Stop()
	var a, b []string
	for i := range got.records {
		a = append(a, liveWhat(t, &got.records[i]))
	}
	// until has left the sentinel out; cascades of foreign keys are not in MariaDB's binlog.
	want.records = slices.DeleteFunc(want.records[:len(want.records)-1], func(r TailRecord) bool {
		return strings.HasSuffix(r.Topic, ".child") && r.payload(t).Op != "c"
	})
	for i := range want.records {
		b = append(b, liveWhat(t, &want.records[i]))
	}
	gtid := regexp.MustCompile(`"gtid":"0-223344-\d+"`)
	times := regexp.MustCompile(`"ts_ms":(\d+),"snapshot"`)
	for _, pair := range matchSequence(t, a, b) {
		ours, theirs := got.records[pair[0]], want.records[pair[1]]
		w := theirs.String()
		for _, d := range mariaDBDifferences {
			w = regexp.MustCompile(d.in).ReplaceAllString(w, d.out)
		}
		g := gtid.ReplaceAllString(ours.String(), `"gtid":"0-223344-N"`)
		if ours.Value != nil {
			// The time of an event is that of its header, which SET TIMESTAMP has fixed.
			if x, y := times.FindString(*ours.Value), times.FindString(*theirs.Value); x != y {
				t.Errorf("%s: %s, want %s", b[pair[1]], x, y)
			}
		}
		strip := func(s string, r TailRecord) string {
			for _, h := range r.Headers {
				if h[0] == "__debezium.context.runId" {
					s = strings.ReplaceAll(s, h[1], "")
				}
			}
			s = regexp.MustCompile(`"file":"[^"]*","pos":\d+,"row":\d+`).ReplaceAllString(s, "")
			s = liveTimes.ReplaceAllString(s, `"$1":0`)
			return s
		}
		if g, w := strip(g, ours), strip(w, theirs); g != w {
			t.Errorf("%s\n%s", b[pair[1]], difference(g, w))
		}
	}
}

// mariaDBRollback: rows of such a transaction are given out before its end is read, so it stops there and says what to check.
func mariaDBRollback(t *testing.T, m *MySQL, config Properties) {
	m.Exec(t, "DROP DATABASE IF EXISTS roll", "CREATE DATABASE roll", "CREATE TABLE roll.t (id INT PRIMARY KEY)")
	l := StartTail(t, TailConfig(m, "roll", config), "now")
	m.Exec(t, "USE roll", "CREATE TEMPORARY TABLE tmp (a INT)", "BEGIN", "INSERT INTO t VALUES (1)", "DROP TEMPORARY TABLE tmp", "ROLLBACK")
	said := l.awaitEnd(t)
	for _, x := range []string{`rolled back`, `start\.position=mysql-bin\.\d+:\d+`} {
		if !regexp.MustCompile(x).MatchString(said) {
			t.Errorf("it does not say %q:\n%s", x, said)
		}
	}
}

// mariaDBAnnotateRows: with include.query the dump asks for ANNOTATE_ROWS, and the event counts (MariaDbStreamingChangeEventSource, constructor
// and handleRecordingQuery).
func mariaDBAnnotateRows(t *testing.T, m *MySQL, config Properties) {
	m.Exec(t, "DROP DATABASE IF EXISTS anno", "CREATE DATABASE anno", "CREATE TABLE anno.t (id INT PRIMARY KEY)", "CREATE TABLE anno.sentinel (id INT PRIMARY KEY)")
	for i, include := range []string{"true", "false"} {
		l := StartTail(t, TailConfig(m, "anno", config.With(Properties{"include.query": include})), "now")
		query := fmt.Sprintf("INSERT INTO anno.t VALUES (%d) /* a comment */", i)
		m.Exec(t, query, fmt.Sprintf("INSERT INTO anno.sentinel VALUES (%d)", i))
		records := l.until(t, i)
		l.Stop()
		if len(records) != 1 {
			t.Fatalf("%d records", len(records))
		}
		want, event := query, int64(3) // GTID, ANNOTATE_ROWS and TABLE_MAP are done
		if include == "false" {
			want, event = "", 2
		}
		if got := sourceOf(t, records[0]).Query; got != want {
			t.Errorf("query %q, want %q", got, want)
		}
		s, err := ParseStored([]byte(records[0].source), zeroTime)
		if err != nil || s.Event != event || s.Row != 1 {
			t.Errorf("offset %s (%v), want event %d, row 1", records[0].source, err, event)
		}
	}
}

// mariaDBCompressed reads QUERY_COMPRESSED and *_ROWS_COMPRESSED events.
func mariaDBCompressed(t *testing.T, m *MySQL, config Properties) {
	m.Exec(t, "DROP DATABASE IF EXISTS comp", "CREATE DATABASE comp", "CREATE TABLE comp.sentinel (id INT PRIMARY KEY)",
		"SET GLOBAL log_bin_compress=ON", "SET GLOBAL log_bin_compress_min_len=10")
	defer m.Exec(t, "SET GLOBAL log_bin_compress=OFF")
	l := StartTail(t, TailConfig(m, "comp", config), "now")
	m.Exec(t, "USE comp", "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(2000)) COMMENT='"+strings.Repeat("long ", 60)+"'",
		"INSERT INTO t VALUES (1,REPEAT('a',1000)),(2,REPEAT('b',1000))", "UPDATE t SET v='short' WHERE id=1", "DELETE FROM t WHERE id=2",
		"INSERT INTO sentinel VALUES (1)")
	want := []string{
		`t c {"id":1} {"id":1,"v":"` + strings.Repeat("a", 1000) + `"}`, `t c {"id":2} {"id":2,"v":"` + strings.Repeat("b", 1000) + `"}`,
		`t u {"id":1} {"id":1,"v":"` + strings.Repeat("a", 1000) + `"} => {"id":1,"v":"short"}`,
		`t d {"id":2} {"id":2,"v":"` + strings.Repeat("b", 1000) + `"}`, `t tombstone {"id":2}`,
	}
	if got := liveRows(t, l.until(t, 1), false); !slices.Equal(got, want) {
		t.Errorf("\ngot\n  %s\nwant\n  %s", shorten(got), shorten(want))
	}
	l.Stop()
	if events := fmt.Sprint(m.Binlog(t)); !strings.Contains(strings.ToLower(events), "compressed") {
		t.Errorf("the server has compressed nothing")
	}
}

// mariaDBTypes reads UUID (MariaDbValueConverters.convertUuid), INET6 and, where there is one, VECTOR.
func mariaDBTypes(t *testing.T, m *MySQL, config Properties, version string) {
	m.Exec(t, "DROP DATABASE IF EXISTS own", "CREATE DATABASE own", "CREATE TABLE own.sentinel (id INT PRIMARY KEY)", "CREATE TABLE own.before (id INT PRIMARY KEY, u UUID)")
	l := StartTail(t, TailConfig(m, "own", config), "now")
	sql := []string{
		"USE own", "INSERT INTO `before` VALUES (1,'01234567-89ab-cdef-8123-456789abcdef')", "CREATE TABLE t (id INT PRIMARY KEY, u UUID)",
		"INSERT INTO t VALUES (1,'123e4567-e89b-12d3-a456-426655440000'),(2,NULL)",
	}
	want := []string{
		`before c {"id":1} {"id":1,"u":"01234567-89ab-cdef-8123-456789abcdef"}`,
		`t c {"id":1} {"id":1,"u":"123e4567-e89b-12d3-a456-426655440000"}`, `t c {"id":2} {"id":2,"u":null}`,
	}
	if version != "10.11" {
		sql = append(sql, "CREATE TABLE v (id INT PRIMARY KEY, v VECTOR(2))", "INSERT INTO v VALUES (1,VEC_FromText('[1.5,-2]'))")
		want = append(want, `v c {"id":1} {"id":1,"v":[1.5,-2.0]}`)
	}
	m.Exec(t, append(sql, "INSERT INTO sentinel VALUES (1)")...)
	if got := liveRows(t, l.until(t, 1), false); !slices.Equal(got, want) {
		t.Errorf("\ngot\n  %s\nwant\n  %s", shorten(got), shorten(want))
	}
	l.Stop()
}

// mariaDBResume starts again from the offset of every record: by its GTIDs, at the row after it.
func mariaDBResume(t *testing.T, m *MySQL, config Properties) {
	m.Exec(t, "DROP DATABASE IF EXISTS again", "CREATE DATABASE again", "CREATE TABLE again.t (id INT PRIMARY KEY)", "CREATE TABLE again.sentinel (id INT PRIMARY KEY)")
	l := StartTail(t, TailConfig(m, "again", config.With(Properties{"database.include.list": "again"})), "now")
	m.Exec(t, "USE again", "INSERT INTO t VALUES (1)", "BEGIN", "INSERT INTO t VALUES (2),(3)", "INSERT INTO t VALUES (4)", "DELETE FROM t WHERE id=2", "COMMIT",
		"INSERT INTO t VALUES (5)", "INSERT INTO sentinel VALUES (1)")
	records := l.until(t, 1)
	l.Stop()
	all := liveRows(t, records, false)
	if len(all) != 7 {
		t.Fatalf("%d records: %v", len(all), all)
	}
	for i, r := range records {
		if !strings.Contains(r.source, `"gtids":"0-223344-`) {
			t.Errorf("offset %s has no gtids", r.source)
		}
		if i+1 < len(records) && records[i+1].Value == nil {
			continue // the tombstone after it carries the offset of the row
		}
		from := StartTail(t, TailConfig(m, "again", config.With(Properties{"database.include.list": "again"})), r.source)
		if got := liveRows(t, from.until(t, 1), false); !slices.Equal(got, all[i+1:]) {
			t.Errorf("from %s: %v, want %v", r.source, got, all[i+1:])
		}
		from.Stop()
	}
}
