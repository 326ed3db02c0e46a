package schema

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseCreateTable(t *testing.T) {
	s := func(s string) *string { return &s }
	for _, tt := range []struct {
		name string
		sql  string
		want *Definition
	}{
		{
			"odd names, expressions and comments",
			"CREATE TABLE `o``dd, (t)` (\n" +
				"  `PRIMARY` int unsigned NOT NULL AUTO_INCREMENT COMMENT 'a, ) DEFAULT ''x'' \\' `',\n" +
				"  `key` varchar(10) CHARACTER SET latin1 COLLATE latin1_bin NOT NULL DEFAULT (concat(_utf8mb4'a)',`b`)),\n" +
				"  `g` int GENERATED ALWAYS AS ((`PRIMARY` + 1)) VIRTUAL NOT NULL /*!80023 INVISIBLE */,\n" +
				"  `e` set('a','it''s','b\\\\,') DEFAULT 'a,it''s',\n" +
				"  PRIMARY KEY (`key`(5) DESC,`PRIMARY`) USING BTREE,\n" +
				"  UNIQUE KEY `u` ((lower(`key`))),\n" +
				"  KEY `DEFAULT CHARSET=x` (`g`),\n" +
				"  CONSTRAINT `c` FOREIGN KEY (`g`) REFERENCES `p` (`id`) ON DELETE SET NULL,\n" +
				"  CONSTRAINT `chk` CHECK ((`g` > 0)) /*!80016 NOT ENFORCED */\n" +
				") ENGINE=InnoDB AUTO_INCREMENT=5 DEFAULT CHARSET=utf8mb4 COMMENT='CHARSET=latin2'\n" +
				"/*!50100 PARTITION BY HASH (`PRIMARY`) */",
			&Definition{Name: "o`dd, (t)", Key: []string{"key", "PRIMARY"}, KeyKind: KeyPrimary, Columns: []ColumnDef{
				{Name: "PRIMARY", Type: "INT UNSIGNED", Length: -1, Scale: -1, AutoInc: true, Generated: true, Comment: "a, ) DEFAULT ''x'' \\' `", JDBCType: 4},
				{Name: "key", Type: "VARCHAR", Length: 10, Scale: -1, Charset: "latin1", HasDefault: true, JDBCType: 12},
				{Name: "g", Type: "INT", Length: -1, Scale: -1, JDBCType: 4},
				{
					Name: "e", Type: "SET", Length: 5, Scale: -1, Charset: "utf8mb4", Nullable: true, HasDefault: true, Default: s("a,it''s"), Labels: []string{"a", "it''s", `b\\,`}, JDBCType: 1,
					Server: &ServerColumn{Labels: []string{"a", "it's", `b\,`}},
				},
			}, DefaultCharset: "utf8mb4", Comment: "CHARSET=latin2"},
		},
		{
			"first unique key over NOT NULL columns",
			"CREATE TABLE `t` (\n  `a` int DEFAULT NULL,\n  `b` int NOT NULL,\n  `c` int NOT NULL,\n" +
				"  UNIQUE KEY `ab` (`a`,`b`),\n  UNIQUE KEY `cb` (`c`,`b`),\n  UNIQUE KEY `b` (`b`)\n) ENGINE=InnoDB",
			&Definition{Name: "t", Key: []string{"c", "b"}, KeyKind: KeyUnique, Unique: [][]string{{"c", "b"}, {"b"}}, Columns: []ColumnDef{
				{Name: "a", Type: "INT", Length: -1, Scale: -1, Nullable: true, HasDefault: true, JDBCType: 4},
				{Name: "b", Type: "INT", Length: -1, Scale: -1, JDBCType: 4},
				{Name: "c", Type: "INT", Length: -1, Scale: -1, JDBCType: 4},
			}},
		},
		{
			"quotes of ANSI_QUOTES, numbers without quotes",
			`CREATE TABLE "t" ("d" decimal(5,2) DEFAULT -1.50, "ts" timestamp(3) NULL DEFAULT current_timestamp(3) ON UPDATE current_timestamp(3), "h" varbinary(2) NOT NULL DEFAULT 0x00FF, "b" bit(3) DEFAULT b'101')`,
			&Definition{Name: "t", KeyKind: KeyUnique, Columns: []ColumnDef{
				{Name: "d", Type: "DECIMAL", Length: 5, Scale: 2, Nullable: true, HasDefault: true, Default: s("-1.50"), JDBCType: 3},
				{Name: "ts", Type: "TIMESTAMP", Length: 3, Scale: -1, Nullable: true, HasDefault: true, Default: s("1970-01-01 00:00:00"), AutoInc: true, Generated: true, JDBCType: 2014},
				{Name: "h", Type: "VARBINARY", Length: 2, Scale: -1, HasDefault: true, Default: s("00F"), JDBCType: -3, Server: &ServerColumn{Default: "0x00FF"}},
				{Name: "b", Type: "BIT", Length: 3, Scale: -1, Nullable: true, HasDefault: true, Default: s("101"), JDBCType: -7},
			}},
		},
	} {
		got, err := ParseCreateTable("db", tt.sql)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		tt.want.Database = "db"
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, diff)
		}
	}
}

// The first UNIQUE key over NOT NULL columns, whatever else it is of, and those that the server takes for a primary key.
func TestDefinitionKeys(t *testing.T) {
	for _, tt := range []struct {
		sql    string
		kind   KeyKind
		key    []string
		unique [][]string
	}{
		{"a int not null, b int not null, unique (b), primary key (a)", KeyPrimary, []string{"a"}, nil},
		{"a varchar(20) not null, b int not null, unique ua(a(5)), unique ub(b)", KeyUnique, []string{"a"}, [][]string{{"b"}}},
		{"a int not null, b int as (a+1) virtual not null, unique(b), unique(a)", KeyUnique, []string{"b"}, [][]string{{"a"}}},
		{"a int not null, b int as (a+1) not null, unique(B)", KeyUnique, []string{"b"}, nil},
		{"a int not null, b int generated always as (a+1) stored not null, unique(b), unique(a)", KeyUnique, []string{"b"}, [][]string{{"b"}, {"a"}}},
		{"a int, b int not null, unique(a), unique((a+1)), unique(a, b)", KeyUnique, nil, nil},
		{"a int", KeyUnique, nil, nil},
	} {
		def, err := ParseCreateTable("d", "create table t ("+tt.sql+")")
		if err != nil {
			t.Fatal(err)
		}
		if def.KeyKind != tt.kind {
			t.Errorf("%s: kind %d, want %d", tt.sql, def.KeyKind, tt.kind)
		}
		if diff := cmp.Diff(tt.key, def.Key); diff != "" {
			t.Errorf("%s: key (-want +got)\n%s", tt.sql, diff)
		}
		if diff := cmp.Diff(tt.unique, def.Unique); diff != "" {
			t.Errorf("%s: unique (-want +got)\n%s", tt.sql, diff)
		}
	}
}

func TestParseCreateTableRefuses(t *testing.T) {
	for _, sql := range []string{
		"", "CREATE", "CREATE TABLE", "CREATE TABLE `t`", "CREATE TABLE `t` (", "CREATE TABLE `t` (`a` int",
		"CREATE TABLE `t` (`a` enum('x'", "CREATE TABLE `t` (`a` varchar(5) DEFAULT 'x", "CREATE TABLE `t` (`a`)",
		"CREATE ALGORITHM=UNDEFINED VIEW `v` AS select 1", "DROP TABLE t", "CREATE TABLE `t` (`a` int) 'x",
	} {
		if got, err := ParseCreateTable("db", sql); err == nil {
			t.Errorf("%s: %+v, want an error", sql, got)
		}
	}
}

func FuzzParseCreateTable(f *testing.F) {
	f.Add("CREATE TABLE `t` (`a` int DEFAULT b'1', `e` enum('x','y'), UNIQUE KEY `u` ((`a`),`e`(2))) /*!50100 CHARSET=x */")
	f.Add("CREATE TABLE t (a x(1) DEFAULT 0x00, PRIMARY KEY (a")
	f.Fuzz(func(t *testing.T, sql string) {
		def, err := ParseCreateTable("db", sql)
		if err != nil {
			return
		}
		if slices.ContainsFunc(def.Columns, func(c ColumnDef) bool { return c.Type == "" }) {
			t.Errorf("%s gave a column without type", sql)
		}
	})
}
