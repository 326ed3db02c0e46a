package it

import (
	"fmt"
	"strings"
	"testing"
)

// TestLiveTypes writes values that users have seen damaged, with binlog_row_metadata=FULL and then, in new tables of the same
// connector, with MINIMAL: every value has to be the same.
func TestLiveTypes(t *testing.T) {
	t.Parallel()
	m := StartMySQL(t, gtidFlags...)
	group := liveGroup{
		config: Properties{"decimal.handling.mode": "string"},
		// Neither the reader's zone nor the server's may matter.
		environment: []string{"TZ=America/New_York"},
		before:      []string{"SET GLOBAL time_zone='+05:30'"},
		cases:       liveTypesCases(),
	}
	for _, metadata := range []string{"FULL", "MINIMAL"} {
		t.Run(metadata, func(t *testing.T) {
			m.Exec(t, "SET GLOBAL binlog_row_metadata="+metadata)
			group.run(t, m)
		})
	}
	// The captures hold years below 100 as Debezium moves them; here is what is in the table.
	t.Run("years_below_100_without_the_adjuster", func(t *testing.T) {
		liveGroup{
			config: Properties{"enable.time.adjuster": "false"},
			cases: []liveCase{{
				name: "years 0001 to 0078",
				sql:  []string{"CREATE TABLE t (d DATE)", "INSERT INTO t VALUES ('0018-04-01'),('0078-04-01'),('18-04-01'),('0001-01-01')"},
				want: []string{`t c - {"d":-712863}`, `t c - {"d":-690948}`, `t c - {"d":17622}`, `t c - {"d":-719162}`},
			}},
		}.run(t, m)
	})
}

func liveTypesCases() []liveCase {
	var members, columns, image17, image65 []string
	for i := 1; i < 64; i++ {
		members = append(members, fmt.Sprintf("'a%d'", i))
	}
	for i := range 1017 {
		columns = append(columns, fmt.Sprintf("c%d INT", i))
	}
	for i := range 65 {
		image65 = append(image65, fmt.Sprintf(`"c%d":null`, i))
	}
	image17 = append(image17, image65[:17]...)
	image17[16] = `"c16":7`
	image65[64] = `"c64":8`
	wide := make([]string, 1017)
	for i := range wide {
		wide[i] = fmt.Sprintf(`"c%d":null`, i)
	}
	wide[1016] = `"c1016":9`
	vector := strings.TrimSuffix(strings.Repeat("0.5,", 2048), ",")
	longText := strings.Repeat("x", 65_000)

	return []liveCase{
		{
			name: "unsigned integers with the top bit set",
			sql: []string{
				`CREATE TABLE t (ti TINYINT UNSIGNED, si SMALLINT UNSIGNED, mi MEDIUMINT UNSIGNED, i INT UNSIGNED, b BIGINT UNSIGNED,
				 sti TINYINT, ssi SMALLINT, smi MEDIUMINT, sint INT, sb BIGINT, PRIMARY KEY (ti,si,mi,i,b))`,
				"INSERT INTO t VALUES (255,65535,16777215,4294967295,18446744073709551615,-128,-32768,-8388608,-2147483648,-9223372036854775808)",
				"UPDATE t SET sti=0", "INSERT INTO t VALUES (128,32768,8388608,2147483648,9223372036854775808,0,0,0,0,0)",
			},
			want: []string{
				// bigint.unsigned.handling.mode=long wraps, as documented.
				`t c {"ti":255,"si":65535,"mi":16777215,"i":4294967295,"b":-1} {"ti":255,"si":65535,"mi":16777215,"i":4294967295,"b":-1,"sti":-128,"ssi":-32768,"smi":-8388608,"sint":-2147483648,"sb":-9223372036854775808}`,
				`t u {"ti":255,"si":65535,"mi":16777215,"i":4294967295,"b":-1} {"ti":255,"si":65535,"mi":16777215,"i":4294967295,"b":-1,"sti":-128,"ssi":-32768,"smi":-8388608,"sint":-2147483648,"sb":-9223372036854775808} => {"ti":255,"si":65535,"mi":16777215,"i":4294967295,"b":-1,"sti":0,"ssi":-32768,"smi":-8388608,"sint":-2147483648,"sb":-9223372036854775808}`,
				`t c {"ti":128,"si":32768,"mi":8388608,"i":2147483648,"b":-9223372036854775808} {"ti":128,"si":32768,"mi":8388608,"i":2147483648,"b":-9223372036854775808,"sti":0,"ssi":0,"smi":0,"sint":0,"sb":0}`,
			},
		},
		{
			name: "a SET with 64 members",
			sql:  []string{"CREATE TABLE t (s SET(" + strings.Join(members, ",") + ",'last'))", "INSERT INTO t VALUES ('last,a1'),('last')"},
			want: []string{`t c - {"s":"a1,last"}`, `t c - {"s":"last"}`},
		},
		{
			name: "labels of ENUM and SET with commas, quotes and backslashes",
			sql: []string{
				`CREATE TABLE t (e ENUM('plain','a,b','it''s','back\\slash','trail ','','ünï'), s SET('x y','it''s'))`,
				`INSERT INTO t VALUES ('a,b','x y,it''s'),(3,''),(4,NULL),('trail',1),('ünï',2)`,
			},
			want: []string{
				`t c - {"e":"a,b","s":"x y,it's"}`, `t c - {"e":"it's","s":""}`, `t c - {"e":"back\\slash","s":null}`,
				`t c - {"e":"trail","s":"x y"}`, `t c - {"e":"ünï","s":"it's"}`,
			},
		},
		{
			name: "BINARY keeps its zero tail, in keys too",
			sql: []string{
				"CREATE TABLE t (k BINARY(16) PRIMARY KEY, b BINARY(3), e BINARY(16), v VARBINARY(16))",
				"INSERT INTO t VALUES (0x651AED08390F4893B2F136923E7B7400, 0x00, '', 0x6100)",
				"UPDATE t SET b=0x01 WHERE k=0x651AED08390F4893B2F136923E7B7400", "DELETE FROM t",
			},
			want: []string{
				`t c {"k":"ZRrtCDkPSJOy8TaSPnt0AA=="} {"k":"ZRrtCDkPSJOy8TaSPnt0AA==","b":"AAAA","e":"AAAAAAAAAAAAAAAAAAAAAA==","v":"YQA="}`,
				`t u {"k":"ZRrtCDkPSJOy8TaSPnt0AA=="} {"k":"ZRrtCDkPSJOy8TaSPnt0AA==","b":"AAAA","e":"AAAAAAAAAAAAAAAAAAAAAA==","v":"YQA="} => {"k":"ZRrtCDkPSJOy8TaSPnt0AA==","b":"AQAA","e":"AAAAAAAAAAAAAAAAAAAAAA==","v":"YQA="}`,
				`t d {"k":"ZRrtCDkPSJOy8TaSPnt0AA=="} {"k":"ZRrtCDkPSJOy8TaSPnt0AA==","b":"AQAA","e":"AAAAAAAAAAAAAAAAAAAAAA==","v":"YQA="}`,
				`t tombstone {"k":"ZRrtCDkPSJOy8TaSPnt0AA=="}`,
			},
		},
		{
			name: "text in all character sets",
			sql: []string{
				`CREATE TABLE t (gbk VARCHAR(9) CHARACTER SET gbk, sjis VARCHAR(9) CHARACTER SET sjis, big5 VARCHAR(9) CHARACTER SET big5,
				 ujis VARCHAR(9) CHARACTER SET ujis, gb18030 VARCHAR(9) CHARACTER SET gb18030, utf16 VARCHAR(9) CHARACTER SET utf16,
				 ucs2 VARCHAR(9) CHARACTER SET ucs2, utf32 VARCHAR(9) CHARACTER SET utf32, cp1250 VARCHAR(9) CHARACTER SET cp1250,
				 koi8r VARCHAR(9) CHARACTER SET koi8r, hebrew VARCHAR(9) CHARACTER SET hebrew, tis620 VARCHAR(9) CHARACTER SET tis620,
				 utf8mb3 VARCHAR(9) CHARACTER SET utf8mb3, latin1 VARCHAR(9) CHARACTER SET latin1)`,
				"INSERT INTO t VALUES ('乪你好','ソ表','圖形碼','河','𠮷€','𠮷a','é','🍻','Žluťoučký','Привет','שלום','ไทย','漢','€é')",
			},
			want: []string{`t c - {"gbk":"乪你好","sjis":"ソ表","big5":"圖形碼","ujis":"河","gb18030":"\uD842\uDFB7€","utf16":"\uD842\uDFB7a","ucs2":"é","utf32":"\uD83C\uDF7B","cp1250":"Žluťoučký","koi8r":"Привет","hebrew":"שלום","tis620":"ไทย","utf8mb3":"漢","latin1":"€é"}`},
		},
		{
			name: "zero dates, nullable and not",
			sql: []string{
				"SET SESSION sql_mode=''",
				`CREATE TABLE t (d DATE, tm TIME(2), dt DATETIME(2), ts TIMESTAMP(2) NULL, dn DATE NOT NULL, tn TIME(2) NOT NULL, dtn DATETIME(2) NOT NULL,
				 tsn TIMESTAMP(2) NOT NULL)`,
				"INSERT INTO t VALUES ('0000-00-00','00:00:00','0000-00-00 00:00:00','0000-00-00 00:00:00','0000-00-00','00:00:00','0000-00-00 00:00:00','0000-00-00 00:00:00')",
				"INSERT INTO t VALUES (NULL,'00:01:00','0000-00-00 14:02:10',NULL,'2020-00-10','00:01:00','2020-01-00 00:00:00','2026-01-01')",
			},
			want: []string{
				`t c - {"d":null,"tm":0,"dt":null,"ts":null,"dn":0,"tn":0,"dtn":0,"tsn":"1970-01-01T00:00:00Z"}`,
				`t c - {"d":null,"tm":60000000,"dt":null,"ts":null,"dn":0,"tn":60000000,"dtn":0,"tsn":"2025-12-31T18:30:00.00Z"}`,
			},
		},
		{
			name: "TIME beyond a day, negative, with fractions",
			sql: []string{
				"SET SESSION sql_mode=''",
				"CREATE TABLE t (a TIME(2), b TIME, c TIME(3), d TIME(3), e TIME(6), f TIME(6), g TIME(6), h TIME(6), i TIME(6), j TIME(2), k TIME)",
				"INSERT INTO t VALUES ('517:51:04.777','-13:14:50','-733:00:00.0011','-1:59:59.0011','-838:59:58.999999','-00:20:38','-01:01:01.000001','-00:00:00.000001','-00:00:00','-00:00:00.01','900:00:00')",
			},
			want: []string{`t c - {"a":1864264780000,"b":-47690000000,"c":-2638800001000,"d":-7199001000,"e":-3020398999999,"f":-1238000000,"g":-3661000001,"h":-1,"i":0,"j":-10000,"k":3020399000000}`},
		},
		{
			name: "years 0001 to 9999",
			sql: []string{
				"CREATE TABLE t (d DATE, dt DATETIME(6), ds DATETIME)",
				"INSERT INTO t VALUES ('0018-04-01','1969-12-31 23:59:59.999999','1950-01-01 01:00:00'),('0078-04-01','1000-01-01 00:00:00',NULL),('0001-01-01','9999-12-31 23:59:59.999999',NULL),('9999-12-31',NULL,NULL)",
			},
			// As in the captures, enable.time.adjuster moves years below 100.
			want: []string{
				`t c - {"d":17622,"dt":-1,"ds":-631148400000}`, `t c - {"d":3012,"dt":-30610224000000000,"ds":null}`,
				`t c - {"d":11323,"dt":253402300799999999,"ds":null}`, `t c - {"d":2932896,"dt":null,"ds":null}`,
			},
		},
		{
			name: "a TIMESTAMP is an instant, a DATETIME what the clock showed",
			sql: []string{
				"CREATE TABLE t (ts TIMESTAMP(6) NULL, dt DATETIME(6))", "SET SESSION time_zone='+08:00'",
				"INSERT INTO t VALUES ('2024-03-10 10:30:00.123456','2024-03-10 10:30:00.123456')", "SET SESSION time_zone='-05:00'",
				"INSERT INTO t VALUES ('2024-03-10 10:30:00.123456','2024-03-10 10:30:00.123456'),('2024-03-10 01:59:59','2024-03-10 02:30:00')",
			},
			want: []string{
				`t c - {"ts":"2024-03-10T02:30:00.123456Z","dt":1710066600123456}`, `t c - {"ts":"2024-03-10T15:30:00.123456Z","dt":1710066600123456}`,
				`t c - {"ts":"2024-03-10T06:59:59.000000Z","dt":1710037800000000}`,
			},
		},
		{
			name: "DECIMAL with every digit",
			sql: []string{
				"CREATE TABLE t (a DECIMAL(65,30), b DECIMAL(40,16), c DECIMAL(60,0), d DECIMAL(30,30), e DECIMAL, f DECIMAL(7), g DECIMAL(6,0), h DECIMAL(10,2))",
				"INSERT INTO t VALUES (" + strings.Repeat("9", 35) + "." + strings.Repeat("9", 30) + ",-123456234234234757655.1234567890123456,1" + strings.Repeat("0", 30) + ",0.000000000000001,123,234.5,345.6,1.1)",
				"INSERT INTO t (a) VALUES (-0.000000000000000000000000000001)",
			},
			want: []string{
				`t c - {"a":"` + strings.Repeat("9", 35) + `.` + strings.Repeat("9", 30) + `","b":"-123456234234234757655.1234567890123456","c":"1` + strings.Repeat("0", 30) + `","d":"0.000000000000001000000000000000","e":"123","f":"235","g":"346","h":"1.10"}`,
				`t c - {"a":"-0.000000000000000000000000000001","b":null,"c":null,"d":null,"e":null,"f":null,"g":null,"h":null}`,
			},
		},
		{
			// The captures print doubles in JSON exactly, without an exponent, when Java would use one.
			name: "numbers and order of keys in JSON",
			sql: []string{
				"CREATE TABLE t (j JSON)",
				`INSERT INTO t VALUES ('{"id":1,"name":"a","val":1.0,"pi":3.14,"sf":1234567890123456789,"u":18446744073709551615,"big":18446744073709551616,"e":1e-7,"neg":-0.0,"":"empty","dup":1,"dup":2}')`,
			},
			want: []string{`t c - {"j":"{\"\":\"empty\",\"e\":0.0000000999999999999999954748111825886258685613938723690807819366455078125,\"u\":18446744073709551615,\"id\":1,\"pi\":3.14,\"sf\":1234567890123456789,\"big\":18446744073709551616,\"dup\":2,\"neg\":-0.0,\"val\":1.0,\"name\":\"a\"}"}`},
		},
		{
			// Times as the captures print them: only the fraction that is there.
			name: "values in JSON that JSON does not have",
			sql: []string{
				"SET SESSION sql_mode=''", "CREATE TABLE t (j JSON)",
				`INSERT INTO t VALUES (JSON_ARRAY(CAST('2015-01-15 23:24:25.12' AS DATETIME(3)),CAST('-838:59:59' AS TIME),CAST('0000-00-00' AS DATE),CAST('00:00:00' AS TIME),
				 CAST('0000-00-00 00:00:00' AS DATETIME),CAST('12345678901234567890.123456789' AS DECIMAL(50,20)),x'cafe',ST_GeomFromText('POINT(1 1)')))`,
			},
			want: []string{`t c - {"j":"[\"2015-01-15 23:24:25.12\",\"-838:59:59\",\"0000-00-00\",\"00:00:00\",\"0000-00-00 00:00:00\",12345678901234567890.12345678900000000000,\"yv4=\",{\"crs\":{\"type\":\"name\",\"properties\":{\"name\":\"urn:ogc:def:crs:MySQL::0\"}},\"type\":\"Point\",\"coordinates\":[1.0,1.0]}]"}`},
		},
		{
			name: "VECTOR",
			sql: []string{
				"CREATE TABLE t (v VECTOR(2), w VECTOR(128), x VECTOR(2048))",
				"INSERT INTO t VALUES (STRING_TO_VECTOR('[1.1,2.2]'),STRING_TO_VECTOR('[31,32]'),NULL)", "INSERT INTO t VALUES (NULL,NULL,STRING_TO_VECTOR('[" + vector + "]'))",
			},
			want: []string{`t c - {"v":[1.1,2.2],"w":[31.0,32.0],"x":null}`, `t c - {"v":null,"w":null,"x":[` + vector + `]}`},
		},
		{
			name: "composite keys in the order of the key, with prefixes",
			sql: []string{
				"CREATE TABLE p (id2 INT, col VARCHAR(30), id1 BIGINT, PRIMARY KEY (id1,id2))", "INSERT INTO p VALUES (2,'c',1)",
				"CREATE TABLE p2 (col1 INT, id1 CHAR(10), col2 INT, id2 VARCHAR(20), PRIMARY KEY (id1,id2(10)))", "INSERT INTO p2 VALUES (1,'a',2,'0123456789abc')",
			},
			want: []string{
				`p c {"id1":1,"id2":2} {"id2":2,"col":"c","id1":1}`,
				`p2 c {"id1":"a","id2":"0123456789abc"} {"col1":1,"id1":"a","col2":2,"id2":"0123456789abc"}`,
			},
		},
		{
			name: "NULL in the first, ninth and thousandth column",
			sql: []string{
				"CREATE TABLE t10 (" + strings.Join(columns[:10], ",") + ")", "INSERT INTO t10 (c0,c1) VALUES (555,777)", "UPDATE t10 SET c2=444",
				"CREATE TABLE t17 (" + strings.Join(columns[:17], ",") + ")", "INSERT INTO t17 (c16) VALUES (7)",
				"CREATE TABLE t65 (" + strings.Join(columns[:65], ",") + ")", "INSERT INTO t65 (c64) VALUES (8)",
				"CREATE TABLE t1017 (" + strings.Join(columns, ",") + ")", "INSERT INTO t1017 (c1016) VALUES (9)",
				"CREATE TABLE one (c INT)", "INSERT INTO one VALUES (1),(NULL),(2)",
			},
			want: []string{
				`t10 c - {"c0":555,"c1":777,"c2":null,"c3":null,"c4":null,"c5":null,"c6":null,"c7":null,"c8":null,"c9":null}`,
				`t10 u - {"c0":555,"c1":777,"c2":null,"c3":null,"c4":null,"c5":null,"c6":null,"c7":null,"c8":null,"c9":null} => {"c0":555,"c1":777,"c2":444,"c3":null,"c4":null,"c5":null,"c6":null,"c7":null,"c8":null,"c9":null}`,
				`t17 c - {` + strings.Join(image17, ",") + `}`, `t65 c - {` + strings.Join(image65, ",") + `}`, `t1017 c - {` + strings.Join(wide, ",") + `}`,
				`one c - {"c":1}`, `one c - {"c":null}`, `one c - {"c":2}`,
			},
		},
		{
			name: "text with NUL, blanks, four-byte characters and great length",
			sql: []string{
				"CREATE TABLE t (v VARCHAR(9), x TEXT, c CHAR(4), w VARCHAR(9), e VARCHAR(9), b VARCHAR(9), m MEDIUMTEXT)",
				`INSERT INTO t VALUES ('a\0b','q\0','x ','x ','','🍻',NULL)`, "CREATE TABLE l (v VARCHAR(65000) CHARACTER SET latin1)", "INSERT INTO l VALUES (REPEAT('x',65000))",
				"INSERT INTO t (m) VALUES (REPEAT('m',3000000))",
			},
			want: []string{
				`t c - {"v":"a\u0000b","x":"q\u0000","c":"x","w":"x ","e":"","b":"\uD83C\uDF7B","m":null}`, `l c - {"v":"` + longText + `"}`,
				`t c - {"v":null,"x":null,"c":null,"w":null,"e":null,"b":null,"m":"` + strings.Repeat("m", 3_000_000) + `"}`,
			},
		},
		{
			name: "an update to NULL and back, and one that changes nothing",
			sql: []string{
				"CREATE TABLE t (id INT PRIMARY KEY, address2 VARCHAR(9))", "INSERT INTO t VALUES (1,'aaaa')", "UPDATE t SET address2=NULL",
				"UPDATE t SET address2='aaaa'", "UPDATE t SET address2='aaaa'",
			},
			want: []string{
				`t c {"id":1} {"id":1,"address2":"aaaa"}`, `t u {"id":1} {"id":1,"address2":"aaaa"} => {"id":1,"address2":null}`,
				`t u {"id":1} {"id":1,"address2":null} => {"id":1,"address2":"aaaa"}`,
			},
		},
	}
}
