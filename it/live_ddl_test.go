package it

import (
	"fmt"
	"testing"
)

// TestLiveDDL changes tables in every way that users have reported trouble with, with rows before and after.
func TestLiveDDL(t *testing.T) {
	t.Parallel()
	m := StartMySQL(t, gtidFlags...)
	liveGroup{
		config: Properties{"database.exclude.list": "uncaptured"},
		before: []string{
			"DROP DATABASE IF EXISTS uncaptured", "CREATE DATABASE uncaptured CHARACTER SET latin1",
			"CREATE TABLE uncaptured.source (id INT UNSIGNED PRIMARY KEY, v VARCHAR(10))",
		},
		cases: liveDDLCases(),
	}.run(t, m)
}

func liveDDLCases() []liveCase {
	return []liveCase{
		{
			name: "old rows keep the columns of their time",
			sql: []string{
				"CREATE TABLE t (id INT PRIMARY KEY, a INT)", "INSERT INTO t VALUES (1,10)",
				"ALTER TABLE t ADD COLUMN b INT AFTER id", "INSERT INTO t VALUES (2,20,200)",
				"ALTER TABLE t DROP COLUMN a", "INSERT INTO t VALUES (3,30)",
				"DROP TABLE t", "CREATE TABLE t (x VARCHAR(5) PRIMARY KEY, y JSON)", "INSERT INTO t VALUES ('k','[1]')",
			},
			want: []string{
				`t c {"id":1} {"id":1,"a":10}`, `t c {"id":2} {"id":2,"b":20,"a":200}`, `t c {"id":3} {"id":3,"b":30}`,
				`t c {"x":"k"} {"x":"k","y":"[1]"}`,
			},
		},
		{
			name: "AFTER names a column that the same ALTER renames",
			sql: []string{
				"CREATE TABLE t (a INT, b VARCHAR(255))", "ALTER TABLE t CHANGE COLUMN a a INT AFTER b2, CHANGE COLUMN b b2 VARCHAR(255)",
				"INSERT INTO t VALUES ('x',1)",
				"CREATE TABLE tt (a INT, b SMALLINT)", "ALTER TABLE tt ADD COLUMN c INT AFTER a2, CHANGE COLUMN a a2 INT", "INSERT INTO tt VALUES (1,2,3)",
			},
			want: []string{`t c - {"b2":"x","a":1}`, `tt c - {"a2":1,"c":2,"b":3}`},
		},
		{
			name: "a rename that changes only letter case",
			sql: []string{
				"CREATE TABLE t (id INT PRIMARY KEY, order_Id INT)", "ALTER TABLE t CHANGE order_Id order_id VARCHAR(255)", "INSERT INTO t VALUES (1,'a')",
				"ALTER TABLE t RENAME COLUMN order_id TO order_Id", "INSERT INTO t VALUES (2,'b')",
				"ALTER TABLE t ADD COLUMN addedColumn BIGINT", "INSERT INTO t VALUES (3,'c',4)",
			},
			want: []string{
				`t c {"id":1} {"id":1,"order_id":"a"}`, `t c {"id":2} {"id":2,"order_Id":"b"}`,
				`t c {"id":3} {"id":3,"order_Id":"c","addedColumn":4}`,
			},
		},
		{
			name: "rename chains and a rename to another database",
			sql: []string{
				"CREATE TABLE a (x INT PRIMARY KEY)", "CREATE TABLE b (y VARCHAR(5) PRIMARY KEY, z INT)",
				"RENAME TABLE a TO tmp, b TO a, tmp TO b", "INSERT INTO a VALUES ('q',1)", "INSERT INTO b VALUES (2)",
				"DROP DATABASE IF EXISTS live_moved", "CREATE DATABASE live_moved", "USE live_moved",
				"CREATE TABLE live.t (id INT PRIMARY KEY, x INT, v INT)", "ALTER TABLE live.t RENAME TO t", "INSERT INTO t VALUES (1,2,3)",
				"RENAME TABLE live_moved.t TO live.t", "INSERT INTO live.t VALUES (2,3,4)",
				"ALTER TABLE live.t DROP COLUMN x, RENAME TO live.t2", "INSERT INTO live.t2 VALUES (3,4)", "DROP TABLE live.t2",
			},
			want: []string{
				`a c {"y":"q"} {"y":"q","z":1}`, `b c {"x":2} {"x":2}`, `t c {"id":1} {"id":1,"x":2,"v":3}`, `t c {"id":2} {"id":2,"x":3,"v":4}`,
				`t2 c {"id":3} {"id":3,"v":4}`,
			},
		},
		createAndUseAtOnce(),
		{
			name: "CREATE TABLE LIKE a table that is not captured",
			sql:  []string{"CREATE TABLE dest LIKE uncaptured.source", "INSERT INTO dest VALUES (4294967295,'é')"},
			want: []string{`dest c {"id":4294967295} {"id":4294967295,"v":"é"}`},
		},
		{
			name: "a session with ANSI_QUOTES, and double quotes as strings without it",
			sql: []string{
				"SET SESSION sql_mode='ANSI_QUOTES'", `CREATE TABLE "q t" ("id" INT PRIMARY KEY, "we""ird" VARCHAR(5) DEFAULT 'x')`,
				`INSERT INTO "q t" ("id") VALUES (1)`, `DROP TABLE "q t"`, "SET SESSION sql_mode=DEFAULT",
				`CREATE TABLE t (c ENUM("a","b") DEFAULT "a")`, "INSERT INTO t VALUES ('b'),(DEFAULT)",
			},
			want: []string{`q_t c {"id":1} {"id":1,"we\"ird":"x"}`, `t c - {"c":"b"}`, `t c - {"c":"a"}`},
		},
		{
			name: "words that are keywords only for a parser",
			sql: []string{
				"CREATE TABLE vector (url INT PRIMARY KEY, auto INT, offline INT, parallel INT, yes INT, national INT, returning INT, internal INT, instant INT, medium INT)",
				"ALTER TABLE vector ADD COLUMN online TINYINT, ADD COLUMN fast INT, ADD COLUMN usa INT, ADD COLUMN jis INT, ADD COLUMN locked INT, ADD COLUMN encrypted INT, ADD COLUMN buckets INT, ADD COLUMN `rank` INT, ADD COLUMN `lag` INT, ADD COLUMN `order` INT, ADD COLUMN `before` INT",
				"INSERT INTO vector (url,online,`order`) VALUES (1,2,3)",
				"CREATE TABLE auto (auto INT PRIMARY KEY)", "ALTER TABLE auto RENAME COLUMN auto TO `manual`", "INSERT INTO auto VALUES (1)",
				"CREATE TABLE sequence (`tablesample` INT PRIMARY KEY)", "INSERT INTO sequence VALUES (1)",
			},
			want: []string{
				`vector c {"url":1} {"url":1,"auto":null,"offline":null,"parallel":null,"yes":null,"national":null,"returning":null,"internal":null,"instant":null,"medium":null,"online":2,"fast":null,"usa":null,"jis":null,"locked":null,"encrypted":null,"buckets":null,"rank":null,"lag":null,"order":3,"before":null}`,
				`auto c {"manual":1} {"manual":1}`, `sequence c {"tablesample":1} {"tablesample":1}`,
			},
		},
		{
			name: "versioned comments carry syntax",
			sql: []string{
				"CREATE TABLE t (id INT, v INT /*!80023 INVISIBLE */) /*!50100 PARTITION BY HASH(id) PARTITIONS 4 */",
				"/*!50003 ALTER TABLE t ADD COLUMN z INT */", "/*!99999 ALTER TABLE t ADD COLUMN never INT */",
				"INSERT INTO t (id,v,z) VALUES (1,2,3)", "CREATE TABLE m (id INT PRIMARY KEY /*M! , maria INT */)", "INSERT INTO m VALUES (1)",
			},
			want: []string{`t c - {"id":1,"v":2,"z":3}`, `m c {"id":1} {"id":1}`},
		},
		{
			name: "an ALTER with sql_log_bin off",
			sql: []string{
				"CREATE TABLE t (id INT PRIMARY KEY, age INT, name VARCHAR(20))", "INSERT INTO t VALUES (1,2,'n')",
				"SET SESSION sql_log_bin=0", "ALTER TABLE t MODIFY age VARCHAR(200)", "SET SESSION sql_log_bin=1", "INSERT INTO t VALUES (201,'age1','name1')",
				"SET SESSION sql_log_bin=0", "ALTER TABLE t ADD COLUMN hidden INT FIRST", "SET SESSION sql_log_bin=1", "INSERT INTO t VALUES (7,202,'age2','name2')",
			},
			want: []string{
				`t c {"id":1} {"id":1,"age":2,"name":"n"}`, `t c {"id":201} {"id":201,"age":"age1","name":"name1"}`,
				`t c {"id":202} {"hidden":7,"id":202,"age":"age2","name":"name2"}`,
			},
		},
		{
			name: "invisible columns and the generated invisible primary key",
			sql: []string{
				"SET SESSION sql_generate_invisible_primary_key=ON", "CREATE TABLE gi (name VARCHAR(10))", "INSERT INTO gi VALUES ('x')",
				"CREATE TABLE inv (id INT PRIMARY KEY, hid INT INVISIBLE DEFAULT 7, c INT)", "INSERT INTO inv (id,c) VALUES (1,2)",
			},
			want: []string{`gi c {"my_row_id":1} {"my_row_id":1,"name":"x"}`, `inv c {"id":1} {"id":1,"hid":7,"c":2}`},
		},
		{
			name: "character sets changed by DDL",
			sql: []string{
				"ALTER DATABASE CHARACTER SET latin1", "CREATE TABLE t (v VARCHAR(20))", "INSERT INTO t VALUES ('é')",
				"ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4", "INSERT INTO t VALUES ('漢')",
				"ALTER DATABASE CHARACTER SET gbk", "CREATE TABLE t2 (v VARCHAR(20))", "INSERT INTO t2 VALUES ('你')",
				"CREATE TABLE t3 (v VARCHAR(9)) DEFAULT CHARSET=LATIN1", "INSERT INTO t3 VALUES ('é')",
				"ALTER TABLE t3 DEFAULT CHARACTER SET utf8mb4", "ALTER TABLE t3 ADD COLUMN w VARCHAR(9)", "INSERT INTO t3 VALUES ('ü','漢')",
				"CREATE TABLE t4 (v VARCHAR(9)) COLLATE utf8mb4_unicode_ci", "INSERT INTO t4 VALUES ('字')",
			},
			want: []string{
				`t c - {"v":"é"}`, `t c - {"v":"漢"}`, `t2 c - {"v":"你"}`, `t3 c - {"v":"é"}`, `t3 c - {"v":"ü","w":"漢"}`,
				`t4 c - {"v":"字"}`,
			},
		},
		{
			name: "DROP of several tables and one of them made anew", ddl: true,
			sql: []string{
				"CREATE TABLE t1 (id INT PRIMARY KEY)", "CREATE TABLE t2 (id INT PRIMARY KEY)", "CREATE TABLE t3 (id INT PRIMARY KEY)",
				"DROP TABLE t1,t2,t3", "CREATE TABLE t2 (id VARCHAR(5) PRIMARY KEY, z JSON)", `INSERT INTO t2 VALUES ('k','{"a":1}')`,
			},
			want: dropSeveral,
		},
		{
			name: "ALGORITHM and LOCK clauses, repeated and without an equals sign",
			sql: []string{
				"CREATE TABLE t (id INT PRIMARY KEY)", "ALTER TABLE t ADD COLUMN a INT, ALGORITHM=INSTANT, ADD COLUMN b BIGINT, ALGORITHM=INSTANT",
				"ALTER TABLE t ADD COLUMN c INT, ALGORITHM COPY, LOCK SHARED", "ALTER TABLE t ALGORITHM=INPLACE, LOCK=NONE, DROP COLUMN a",
				"INSERT INTO t VALUES (1,2,3)",
			},
			want: []string{`t c {"id":1} {"id":1,"b":2,"c":3}`},
		},
		{
			name: "synonyms of types and words of sign",
			sql: []string{
				"SET SESSION sql_mode=''",
				`CREATE TABLE t (a INTEGER UNSIGNED, b INT ZEROFILL, c BIGINT ZEROFILL SIGNED UNSIGNED, d MIDDLEINT, e INT1, f INT2, g INT3, h INT4, i INT8,
				 j FLOAT4, k FLOAT8, l DEC(5,1), m FIXED(5,1), n NUMERIC(5,1), o BOOL, p SERIAL, q LONG, r LONG VARBINARY, s CHAR(2) BYTE, t NATIONAL VARCHAR(5),
				 u CHARACTER VARYING(5), v DOUBLE PRECISION(18,4))`,
				`INSERT INTO t VALUES (4294967295,5,9223372036854775807,-1,-2,-3,-4,-5,-6,1.5,2.5,1.5,2.5,3.5,1,7,'lo','lb','cb','nv','cv',1.25)`,
			},
			want: []string{`t c {"p":7} {"a":4294967295,"b":5,"c":9223372036854775807,"d":-1,"e":-2,"f":-3,"g":-4,"h":-5,"i":-6,"j":1.5,"k":2.5,"l":"Dw==","m":"GQ==","n":"Iw==","o":true,"p":7,"q":"lo","r":"bGI=","s":"Y2I=","t":"nv","u":"cv","v":1.25}`},
		},
		{
			name: "adding a column writes no rows",
			sql: []string{
				"CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1,1),(2,2),(3,3)",
				"ALTER TABLE t ADD COLUMN w INT NOT NULL DEFAULT 7 FIRST", "UPDATE t SET v=20 WHERE id=2",
			},
			want: []string{
				`t c {"id":1} {"id":1,"v":1}`, `t c {"id":2} {"id":2,"v":2}`, `t c {"id":3} {"id":3,"v":3}`,
				`t u {"id":2} {"w":7,"id":2,"v":2} => {"w":7,"id":2,"v":20}`,
			},
		},
	}
}

// dropSeveral are the records of one DROP TABLE of three tables: one for each of them.
var dropSeveral = []string{
	"ddl CREATE TABLE t1 (id INT PRIMARY KEY)", "ddl CREATE TABLE t2 (id INT PRIMARY KEY)", "ddl CREATE TABLE t3 (id INT PRIMARY KEY)",
	"ddl DROP TABLE `live12`.`t1`", "ddl DROP TABLE `live12`.`t2`", "ddl DROP TABLE `live12`.`t3`",
	"ddl CREATE TABLE t2 (id VARCHAR(5) PRIMARY KEY, z JSON)", `t2 c {"id":"k"} {"id":"k","z":"{\"a\":1}"}`,
}

// createAndUseAtOnce makes tables and uses them without a pause.
func createAndUseAtOnce() liveCase {
	c := liveCase{name: "a table that is used as soon as it is made, and dropped"}
	for i := range 50 {
		table := fmt.Sprintf("t%d", i)
		c.sql = append(c.sql, "CREATE TABLE "+table+" (id INT PRIMARY KEY, v INT)", "INSERT INTO "+table+" VALUES (1,1)",
			"UPDATE "+table+" SET v=2", "DELETE FROM "+table, "DROP TABLE "+table)
		c.want = append(c.want, table+` c {"id":1} {"id":1,"v":1}`, table+` u {"id":1} {"id":1,"v":1} => {"id":1,"v":2}`,
			table+` d {"id":1} {"id":1,"v":2}`, table+` tombstone {"id":1}`)
	}
	return c
}
