package schema

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// outline prints the columns of a table: name, type, and what the test is about.
func outline(def *Definition) string {
	if def == nil {
		return "unknown"
	}
	var all []string
	for i := range def.Columns {
		c := &def.Columns[i]
		text := c.Name + " " + c.Type
		if c.Length >= 0 {
			text += fmt.Sprintf("(%d", c.Length)
			if c.Scale >= 0 {
				text += fmt.Sprintf(",%d", c.Scale)
			}
			text += ")"
		}
		if charset := c.ServerCharset(); charset != "" {
			text += " " + charset
		}
		if !c.Nullable {
			text += " not null"
		}
		if c.Default != nil {
			text += " = " + *c.Default
		}
		all = append(all, text)
	}
	if def.Key != nil {
		all = append(all, "key "+strings.Join(def.Key, ","))
	}
	return strings.Join(all, "; ")
}

// ddlCase is a list of statements and what the tables are like afterwards, by "database.table".
type ddlCase struct {
	name       string
	options    CatalogOptions
	statement  Statement // what all statements have in common
	statements []string
	want       map[string]string
}

func (tt *ddlCase) run(t *testing.T) *Catalog {
	t.Helper()
	c := NewCatalog(tt.options)
	for _, sql := range tt.statements {
		s := tt.statement
		s.SQL = sql
		if s.Database == "" {
			s.Database = "d"
		}
		if s.Collation == 0 {
			s.Collation = 255 // utf8mb4_0900_ai_ci
		}
		if database, rest, ok := strings.Cut(sql, "> "); ok && !strings.Contains(database, " ") { // "db> statement"
			s.Database, s.SQL = database, rest
		}
		if _, _, err := c.Apply(s); err != nil {
			t.Errorf("%s: %s: %v", tt.name, sql, err)
		}
	}
	for name, want := range tt.want {
		database, table, _ := strings.Cut(name, ".")
		if got := outline(c.Definition(database, table)); got != want {
			t.Errorf("%s: %s is\n %s, want\n %s", tt.name, name, got, want)
		}
	}
	return c
}

func TestDDLCases(t *testing.T) {
	for _, tt := range []ddlCase{
		{
			name: "B01: columns follow at once",
			statements: []string{
				"create table t (id int, a int)", "alter table t add column b int after id", "alter table t drop column a",
			},
			want: map[string]string{"d.t": "id INT; b INT"},
		},
		{
			name:       "B01: recreated with other columns",
			statements: []string{"create table t (id int)", "drop table t", "create table t (x varchar(5) primary key)"},
			want:       map[string]string{"d.t": "x VARCHAR(5) utf8mb4 not null; key x"},
		},
		{
			name: "B01: a DROP that was hidden from the binlog",
			statements: []string{
				"create table t (id int)", "create table if not exists t (nope int)", "create table u (a int)", "create table u (b int)",
			},
			want: map[string]string{"d.t": "id INT", "d.u": "b INT"},
		},
		{
			name: "B03: AFTER a column renamed in the same ALTER",
			statements: []string{
				"create table t (a int, b varchar(255))",
				"alter table t change column a a int after b2, change column b b2 varchar(255)",
				"create table tt (a int, b smallint)", "alter table tt add column c int after a2, change column a a2 int",
			},
			want: map[string]string{"d.t": "b2 VARCHAR(255) utf8mb4; a INT", "d.tt": "a2 INT; c INT; b SMALLINT"},
		},
		{
			name: "B03: names that change places",
			statements: []string{
				"create table t (a int, b bigint, primary key (a))", "alter table t rename column a to b, rename column b to a",
			},
			want: map[string]string{"d.t": "b INT not null; a BIGINT; key b"},
		},
		{
			name:       "B03: several columns to the front, each before the one before it",
			statements: []string{"create table t (z int)", "alter table t add a int first, add b int first, modify z bigint first"},
			want:       map[string]string{"d.t": "z BIGINT; b INT; a INT"},
		},
		{
			name: "B05: rename that changes only letter case",
			statements: []string{
				"create table t (order_Id varchar(255))", "alter table t change order_Id order_id varchar(255)",
				"alter table t rename column order_id to order_Id", "alter table t add column addedColumn bigint",
				"alter table t modify ADDEDCOLUMN int after ORDER_ID",
			},
			want: map[string]string{"d.t": "order_Id VARCHAR(255) utf8mb4; ADDEDCOLUMN INT"},
		},
		{
			name: "B07: tables that change places",
			statements: []string{
				"create table a (x int)", "create table b (y bigint)", "rename table a to tmp, b to a, tmp to b",
			},
			want: map[string]string{"d.a": "y BIGINT", "d.b": "x INT", "d.tmp": "unknown"},
		},
		{
			name: "B07: to another database, and with a change",
			statements: []string{
				"create table db1.t (x int, y int)", "db2> alter table db1.t rename to t", "rename table db2.t to db1.u",
				"alter table db1.u drop column x, rename to db1.v",
			},
			want: map[string]string{"db1.t": "unknown", "db2.t": "unknown", "db1.u": "unknown", "db1.v": "y INT"},
		},
		{
			name: "B11: CREATE TABLE LIKE, from a database of another character set that is not captured",
			options: CatalogOptions{
				Captured: func(database, _ string) bool { return database == "cap" },
			},
			statements: []string{
				"create database other character set latin1", "create database cap character set utf8mb4",
				"create table other.source (id int unsigned not null, s varchar(9), primary key (id))",
				"create table cap.dest like other.source",
			},
			want: map[string]string{"cap.dest": "id INT UNSIGNED not null; s VARCHAR(9) latin1; key id"},
		},
		{
			name:      "B13: ANSI_QUOTES",
			statement: Statement{AnsiQuotes: true},
			statements: []string{
				`create table "q t" ("id" int primary key, "we""ird" varchar(5) default 'x')`, `alter table "q t" add "n" int first`,
			},
			want: map[string]string{"d.q t": `n INT; id INT not null; we"ird VARCHAR(5) utf8mb4 = x; key id`},
		},
		{
			name:       "B13: without ANSI_QUOTES they are strings",
			statements: []string{`create table t (c ENUM("a","it's") default "a")`},
			want:       map[string]string{"d.t": "c ENUM(1) utf8mb4 = a"},
		},
		{
			name:       "B13: backticks in names",
			statements: []string{"create table t (```a``` int)", "alter table t add ```b``` int first, change ```a``` `c``d` int"},
			want:       map[string]string{"d.t": "`b` INT; c`d INT"},
		},
		{
			name: "B13: NO_BACKSLASH_ESCAPES", statement: Statement{NoBackslashEscapes: true},
			statements: []string{`create table t (a varchar(9) default '\', b enum('x\', 'y'))`},
			want:       map[string]string{"d.t": `a VARCHAR(9) utf8mb4 = \; b ENUM(1) utf8mb4`},
		},
		{
			name: "B15: words that are keywords only for some parser",
			statements: []string{
				"create table url (auto int, manual int, offline int, online int, parallel int, vector int, tablesample int, sequence int, " +
					"yes int, national int, returning int, internal int, instant int, medium int, fast int, usa int, jis int, locked int, " +
					"`before` int, encrypted int, buckets int, `order` int, `key` int, period int, first int, comment int, `row` int)",
				"create table vector (a int)", "alter table vector add column online tinyint, add vector vector(3), add period date",
				"alter table url rename column auto to manual_, drop `order`", "create table auto (a int)", "alter table auto rename to manual",
				"alter table manual add `primary` int, add (`index` int)", "alter table manual drop `primary`",
			},
			want: map[string]string{
				"d.vector": "a INT; online TINYINT; vector VECTOR(3); period DATE", "d.auto": "unknown", "d.manual": "a INT; index INT",
				"d.url": "manual_ INT; manual INT; offline INT; online INT; parallel INT; vector INT; tablesample INT; sequence INT; " +
					"yes INT; national INT; returning INT; internal INT; instant INT; medium INT; fast INT; usa INT; jis INT; locked INT; " +
					"before INT; encrypted INT; buckets INT; key INT; period INT; first INT; comment INT; row INT",
			},
		},
		{
			name: "B17: versioned comments carry real syntax", options: CatalogOptions{Version: 90704},
			statements: []string{
				"create table t (id int, v int /*!80023 INVISIBLE */) /*!50100 PARTITION BY HASH(id) PARTITIONS 4 */",
				"/*!50003 alter table t add column z int */", "/*!99999 alter table t add column never int */",
				"/*!90000 alter table t add column nine int */", "/*!090704 alter table t modify nine bigint */", "/*M! alter table t add column maria int */", "alter table t add /*M!100000 nope */ /*!50003 w */ int /* not /*!50003 x */ */",
			},
			want: map[string]string{"d.t": "id INT; v INT; z INT; nine BIGINT; w INT"},
		},
		{
			name: "B17: MariaDB", options: CatalogOptions{MariaDB: true, Version: 101100},
			statements: []string{
				"create table t (id int /*!80023 INVISIBLE */)", "/*M!100000 alter table t add column maria int */",
				"/*!50003 alter table t add column z int */", "/*M!999999 alter table t add column never int */",
			},
			want: map[string]string{"d.t": "id INT; maria INT; z INT"},
		},
		{
			name: "B22: a key that the server has put in, and invisible columns",
			statements: []string{
				"CREATE TABLE `gi` (\n  `my_row_id` bigint unsigned NOT NULL AUTO_INCREMENT /*!80023 INVISIBLE */,\n  `name` varchar(10) DEFAULT NULL,\n  PRIMARY KEY (`my_row_id`)\n)",
				"create table inv (id int primary key, hid int invisible default 7, c int)", "alter table inv alter column hid set visible",
			},
			want: map[string]string{
				"d.gi":  "my_row_id BIGINT UNSIGNED not null; name VARCHAR(10) utf8mb4; key my_row_id",
				"d.inv": "id INT not null; hid INT = 7; c INT; key id",
			},
		},
		{
			name: "B24: character sets",
			statements: []string{
				"create database d character set latin1", "create table t (v varchar(20))",
				"create table t1 (v varchar(20))", "alter table t1 convert to character set utf8mb4",
				"alter database character set gbk", "create table t2 (v varchar(20))",
				"create table t3 (v varchar(9)) default charset=LATIN1", "create table t4 (v varchar(9)) character set = default",
				"create table t5 (v varchar(9)) collate utf8mb4_unicode_ci", "alter table t5 default character set latin1, add w text",
				"create table t6 (v varchar(9) collate latin1_bin, w char(3) ascii, x char(3) byte, y national char(2), z char(2) unicode)",
			},
			want: map[string]string{
				"d.t": "v VARCHAR(20) latin1", "d.t1": "v VARCHAR(20) utf8mb4", "d.t2": "v VARCHAR(20) gbk", "d.t3": "v VARCHAR(9) LATIN1",
				"d.t4": "v VARCHAR(9) gbk", "d.t5": "v VARCHAR(9) utf8mb4; w TEXT latin1",
				"d.t6": "v VARCHAR(9) latin1; w CHAR(3) latin1; x CHAR(3) binary; y NATIONAL CHAR(2) utf8; z CHAR(2) ucs2",
			},
		},
		{
			name: "B26: several dropped at once, one recreated",
			statements: []string{
				"create table t1 (a int)", "create table t2 (a int)", "create table t3 (a int)",
				"DROP TABLE `t1`,`t2`,`nope` /* generated by server */", "create table t2 (id varchar(5) primary key, z json)",
			},
			want: map[string]string{"d.t1": "unknown", "d.t2": "id VARCHAR(5) utf8mb4 not null; z JSON; key id", "d.t3": "a INT"},
		},
		{
			name: "B29: ALGORITHM and LOCK, repeated or without =",
			statements: []string{
				"create table t (z int)", "alter table t add column a int, algorithm=instant, add column b bigint, algorithm=instant",
				"alter table t add column c int, algorithm copy, lock shared", "alter table t algorithm=inplace, lock=none, drop column a",
				"alter table t order by z, b desc, add d int", "alter table t force, enable keys, order by `b`, drop c",
			},
			want: map[string]string{"d.t": "z INT; b BIGINT; d INT"},
		},
		{
			name: "B32: other names of types, and words for signs",
			statements: []string{
				"create table t (a INTEGER UNSIGNED, b INT ZEROFILL, c BIGINT ZEROFILL SIGNED UNSIGNED, d MIDDLEINT, e INT1, f INT8, g FLOAT4, " +
					"h FLOAT8, i DEC, j FIXED(5,1), k NUMERIC(3), l BOOL, m SERIAL, n LONG, o LONG VARBINARY, p CHAR(3) BYTE, " +
					"q NATIONAL VARCHAR(4), r CHARACTER VARYING(5), s DOUBLE PRECISION(18,4), u INT SIGNED, v REAL UNSIGNED)",
			},
			want: map[string]string{
				"d.t": "a INTEGER UNSIGNED; b INT UNSIGNED ZEROFILL; c BIGINT UNSIGNED ZEROFILL; d MIDDLEINT; e INT1; f INT8; g FLOAT4; " +
					"h FLOAT8; i DEC(10,0); j FIXED(5,1); k NUMERIC(3,0); l BOOL; m BIGINT UNSIGNED not null; n LONG utf8mb4; " +
					"o LONG VARBINARY; p CHAR(3) binary; q NATIONAL VARCHAR(4) utf8; r CHARACTER VARYING(5) utf8mb4; " +
					"s DOUBLE PRECISION(18,4); u INT SIGNED; v REAL UNSIGNED; key m",
			},
		},
		{
			name: "B32: the same before the start has the server's names", statement: Statement{Form: ShowCreateForm},
			statements: []string{
				"create table t (a INTEGER UNSIGNED, b INT ZEROFILL, l BOOL NOT NULL DEFAULT TRUE, m SERIAL, n LONG, p CHAR(3) BYTE, " +
					"q NATIONAL VARCHAR(4), s DOUBLE PRECISION(18,4), e ENUM(\"it's\", 'b  '), y YEAR(4) DEFAULT 70, d DECIMAL(5,2) DEFAULT 1)",
			},
			want: map[string]string{
				"d.t": "a INT UNSIGNED; b INT UNSIGNED ZEROFILL(10); l TINYINT(1) not null = 1; m BIGINT UNSIGNED not null; n MEDIUMTEXT utf8mb4; " +
					"p BINARY(3); q VARCHAR(4) utf8mb3; s DOUBLE(18,4); e ENUM(1) utf8mb4; y YEAR = 1970; d DECIMAL(5,2) = 1.00; key m",
			},
		},
		{
			name: "keys before the start", statement: Statement{Form: ShowCreateForm},
			statements: []string{
				"create table t (a int not null, b int not null unique, c int, unique (c), unique u (a))",
				"alter table t drop index b", "create table v (a int not null, b int not null)", "create unique index i on v (b)",
				"alter table v add primary key (a, b)", "alter table v drop primary key, drop column b",
				"create table w (a int)", "alter table w add b int not null unique, change a c int not null, add unique (c)",
				"drop index b on w",
			},
			want: map[string]string{
				"d.t": "a INT not null; b INT not null; c INT; key a", "d.v": "a INT not null", "d.w": "c INT not null; b INT not null; key c",
			},
		},
		{
			name: "MariaDB's clauses", options: CatalogOptions{MariaDB: true, Version: 101108},
			statements: []string{
				"create or replace table t (id int, u uuid default uuid(), j json check (json_valid(j)), v varchar(9) compressed, " +
					"rs timestamp(6) generated always as row start invisible, re timestamp(6) generated always as row end invisible, " +
					"period for system_time (rs, re)) with system versioning",
				"alter table t add column if not exists id int, add column if not exists x int, drop column if exists nope, " +
					"add index if not exists i (x), modify column if exists nope2 int, drop system versioning",
				"set statement max_statement_time=5 for alter table t nowait add y int default (1 + 2), add constraint if not exists c check (x > 1)",
				"alter table if exists none add a int", "rename table if exists none to other",
			},
			want: map[string]string{
				"d.t": "id INT; u UUID; j JSON; v VARCHAR(9) utf8mb4; rs TIMESTAMP(6); re TIMESTAMP(6); x INT; y INT", "d.other": "unknown",
			},
		},
		{
			name: "temporary tables are others", statements: []string{
				"create table t (a int)", "create temporary table t (b int)", "drop temporary table t",
			},
			want: map[string]string{"d.t": "a INT"},
		},
		{
			name: "a database goes with its tables", statements: []string{
				"create table e.t (a int)", "create table t (a int)", "drop database e",
			},
			want: map[string]string{"e.t": "unknown", "d.t": "a INT"},
		},
		{
			name: "names without case", options: CatalogOptions{IgnoreCase: true},
			statements: []string{"create table T1 (a int)", "alter table t1 add b int", "rename table T1 to T2", "D> create table t3 like t2"},
			want:       map[string]string{"d.t2": "a INT; b INT", "d.T3": "a INT; b INT", "d.t1": "unknown"},
		},
		{
			name: "several statements in one text", statements: []string{
				"create table a (x int); create table b (y int); alter table a add z int;", "rename table a to c; drop table b",
			},
			want: map[string]string{"d.c": "x INT; z INT", "d.a": "unknown", "d.b": "unknown"},
		},
	} {
		tt.run(t)
	}
}

func TestCatalogNamesWhatIsUnknown(t *testing.T) {
	for _, tt := range []struct {
		sql     string
		unknown []TableName
		records int
	}{
		{"alter table nope add a int", []TableName{{"d", "nope"}}, 1},
		{"alter table e.nope rename to f.x", []TableName{{"f", "x"}}, 1},
		{"rename table nope to x, y to nope", []TableName{{"d", "x"}, {"d", "nope"}}, 2},
		{"rename table nope to x, x to y", []TableName{{"d", "y"}}, 2},
		{"create table l like nope", []TableName{{"d", "l"}}, 1},
		{"create table s select 1 as a", []TableName{{"d", "s"}}, 1},
		{"create table s (a int) as select 1 as b", []TableName{{"d", "s"}}, 1},
		{"create unique index i on nope (a)", []TableName{{"d", "nope"}}, 1},
		{"drop table nope", nil, 1},
	} {
		changes, unknown, err := NewCatalog(CatalogOptions{}).Apply(Statement{Database: "d", SQL: tt.sql})
		if err != nil {
			t.Errorf("%s: %v", tt.sql, err)
		}
		if diff := cmp.Diff(tt.unknown, unknown); diff != "" {
			t.Errorf("%s: unknown (-want +got)\n%s", tt.sql, diff)
		}
		if len(changes) != tt.records {
			t.Errorf("%s: %d records, want %d", tt.sql, len(changes), tt.records)
		}
	}
}

// A statement that is not understood leaves everything as it is, and says where it stands.
func TestCatalogRefuses(t *testing.T) {
	for _, tt := range []struct{ sql, want string }{
		{"alter table t add", "a name is missing at its end"},
		{"create table x (a int", "does not end"},
		{"create table x (a)", "has no type"},
		{"create table x (a varchar(5) default 'x)", "a quote is not closed"},
		{"create table x (a int /* b int)", "a comment is not closed"},
		{"alter table t drop column nope", "table d.t is not known to have a column nope"},
		{"alter table t add A bigint", "two columns A"},
		{"create table x (a int); alter table t modify nope int", "column nope"},
		{"rename table t", "TO is missing"},
	} {
		c := NewCatalog(CatalogOptions{})
		apply := func(sql string) ([]SchemaChange, []TableName, error) {
			return c.Apply(Statement{Database: "d", SQL: sql})
		}
		if _, _, err := apply("create table t (a int)"); err != nil {
			t.Fatal(err)
		}
		changes, unknown, err := apply(tt.sql)
		if !errors.Is(err, ErrDDL) || !strings.Contains(fmt.Sprint(err), tt.want) || changes != nil {
			t.Errorf("%s: %v, %v; want an error with %q", tt.sql, changes, err, tt.want)
		}
		if len(unknown) == 0 {
			t.Errorf("%s: no table is named", tt.sql)
		}
		if got := outline(c.Definition("d", "t")); got != "a INT" || len(c.Tables("d")) != 1 {
			t.Errorf("%s: t is %s, and there are %v", tt.sql, got, c.Tables("d"))
		}
		if skipped := c.Skipped(Statement{Database: "d", SQL: tt.sql}); len(skipped) != 1 || skipped[0].DDL != tt.sql || skipped[0].Changes != nil {
			t.Errorf("%s: skipped it is %+v", tt.sql, skipped)
		}
	}
}

// Statements that are no DDL of tables leave nothing at all.
func TestCatalogLeavesOthersAlone(t *testing.T) {
	c := NewCatalog(CatalogOptions{})
	for _, sql := range []string{
		"", " ", "BEGIN", "commit", "ROLLBACK", "FLUSH PRIVILEGES", "INSERT INTO t VALUES (1)", "update t set a=1", "XA START 'x'",
		"TRUNCATE TABLE t", "truncate t", "GRANT SELECT ON *.* TO u", "CREATE USER u", "ALTER USER u", "drop role r", "ANALYZE TABLE t",
		"CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`%` SQL SECURITY DEFINER VIEW `v` AS select 1", "DROP VIEW v", "SAVEPOINT s",
		"CREATE DEFINER=`r`@`%` PROCEDURE `p`() BEGIN CREATE TABLE x (a INT); END", "CREATE FUNCTION f() RETURNS INT RETURN 1",
		"DROP TEMPORARY TABLE IF EXISTS `t` /* generated by server */", "CREATE TEMPORARY TABLE t (a INT)", "DROP TEMPORARY TABLE t",
		"CREATE DEFINER=x TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 1", "REPLACE INTO t VALUES (1)",
	} {
		changes, unknown, err := c.Apply(Statement{Database: "d", SQL: sql})
		if len(changes) > 0 || len(unknown) > 0 || err != nil || len(c.Touched()) > 0 {
			t.Errorf("%q: %+v, %v, %v", sql, changes, unknown, err)
		}
	}
}

// What store.only.captured.* keep out of the history and out of the topic.
func TestCatalogKeepsWhatIsNotCapturedOut(t *testing.T) {
	captured := func(database, table string) bool { return database == "d" && table != "x" }
	for _, tt := range []struct {
		sql                string
		tables, databases  bool // only captured ones
		topics, history    int
		database, fromElse string
	}{
		{sql: "create table x (a int)", topics: 1, history: 1},
		{sql: "create table x (a int)", tables: true},
		{sql: "create table t (a int)", tables: true, topics: 1, history: 1},
		{sql: "create database d", tables: true, topics: 1},
		{sql: "create database e", tables: true},
		{sql: "create database e", databases: true},
		{sql: "create database d", databases: true, topics: 1, history: 1},
		{sql: "drop table t, x, e.t", tables: true, topics: 1, history: 1},
		{sql: "drop table t, x, e.t", databases: true, topics: 2, history: 2},
		{sql: "drop table t, x, e.t", topics: 3, history: 3},
		{sql: "flush tables", tables: true},
		{sql: "flush tables", topics: 1, history: 1},
	} {
		c := NewCatalog(CatalogOptions{
			Captured: captured, CapturedDatabase: func(database string) bool { return database == "d" },
			OnlyCapturedTables: tt.tables, OnlyCapturedDatabases: tt.databases,
		})
		changes, _, err := c.Apply(Statement{Database: "d", SQL: tt.sql})
		if err != nil {
			t.Fatal(err)
		}
		topics, history := 0, 0
		for _, change := range changes {
			if change.Topic {
				topics++
			}
			if change.History {
				history++
			}
		}
		if topics != tt.topics || history != tt.history {
			t.Errorf("%s (tables %v, databases %v): %d in the topic and %d in the history, want %d and %d",
				tt.sql, tt.tables, tt.databases, topics, history, tt.topics, tt.history)
		}
	}
}

// source.table lists tables in the order of a Java HashSet of their ids. The wanted orders were printed by Java.
func TestTablesComeInJavasOrder(t *testing.T) {
	many := make([]string, 30)
	for i := range many {
		many[i] = fmt.Sprintf("t%d", i+1)
	}
	for _, tt := range []struct{ database, tables, want string }{
		{"inventory", "swap_tmp,swap_a,swap_b", "swap_a,swap_tmp,swap_b"},
		{
			"inventory", "orders,customers,order_lines,products,items,stock,notes,users,logs,x,y,z,a,b",
			"a,stock,z,y,x,users,orders,products,logs,customers,order_lines,notes,items,b",
		},
		{
			"inventory", strings.Join(many, ","),
			"t11,t12,t10,t15,t16,t13,t14,t19,t17,t18,t9,t22,t8,t23,t7,t20,t6,t21,t5,t26,t4,t27,t3,t24,t2,t25,t28,t29,t1,t30",
		},
		{"inventory", "😀,ü,表,a", "a,ü,😀,表"},
		{
			"größe", "orders,customers,order_lines,products,items,stock,notes,users,logs,x,y,z,a,b",
			"x,logs,z,y,items,users,products,notes,customers,orders,stock,order_lines,b,a",
		},
		{"größe", "😀,ü,表,a", "ü,😀,表,a"},
	} {
		changes, _, err := NewCatalog(CatalogOptions{}).Apply(Statement{
			Database: tt.database, SQL: "drop table `" + strings.ReplaceAll(tt.tables, ",", "`,`") + "`",
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(changes[0].Tables, ","); got != tt.want {
			t.Errorf("%s: %s is\n %s, want\n %s", tt.database, tt.tables, got, tt.want)
		}
	}
}
