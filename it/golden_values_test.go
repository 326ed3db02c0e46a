package it

// typesFolders have the tables and rows of types-default.
const typesFolders = "types-default minimal-metadata types-alt1 types-alt2 types-alt3 types-alt4 types-ddl"

// everyRecord stands for all records of a table.
const everyRecord = -1

// goldenDifferences are the values that are not Debezium's on purpose. What is right is what the server itself says: the captures of
// the snapshot have most of these values right.
var goldenDifferences = []goldenDifference{
	{"YEAR 0", typesFolders, "t_int", 2, `"y":1900,"y4":1900`, `"y":0,"y4":0`},
	{"YEAR 0", typesFolders, "t_int", 5, `"y":1900`, `"y":0`},
	{"YEAR 0", typesFolders, "t_time", 2, `"y":1900`, `"y":0`},
	{"YEAR 0", typesFolders, "t_time_nn", 0, `"y":1900`, `"y":0`},
	{"ENUM values with a comma or backslash", typesFolders, "t_enum", 0, `"e2":"x\\,y"`, `"e2":"x,y"`},
	{"ENUM values with a comma or backslash", typesFolders, "t_enum", 4, `"e2":"back\\\\slash"`, `"e2":"back\\slash"`},
	{"ENUM values with a comma or backslash", "ddl", "t1", 9, `"en":"c\\,d"}`, `"en":"c,d"}`},
	{"ENUM labels beyond the basic plane", "types-default types-alt1 types-alt2 types-alt3 types-alt4", "t_enum", 5, `"e2":"é?"`, `"e2":"é\uD83D\uDE00"`},
	{"ENUM labels with blanks at the end", "types-ddl", "t_enum", 6, `"e2":"  sp  "`, `"e2":"  sp"`},
	{"negative TIME inside JSON", typesFolders, "t_json", 7, `\"negtime\":\"101:0-1:0-1\"`, `\"negtime\":\"-100:00:01\"`},
	{"character sets hp8, keybcs2, koi8u, dec8, swe7, armscii8, geostd8", typesFolders, "t_charset", 0, `"c_hp8":"Å"`, `"c_hp8":"é"`},
	{"character sets hp8, keybcs2, koi8u, dec8, swe7, armscii8, geostd8", typesFolders, "t_charset", 0, `"c_keybcs2":"ĺlutś"`, `"c_keybcs2":"Žlutý"`},
	{"character sets hp8, keybcs2, koi8u, dec8, swe7, armscii8, geostd8", typesFolders, "t_charset", 0, `"c_koi8u":"╥жак"`, `"c_koi8u":"Їжак"`},
	{"character sets hp8, keybcs2, koi8u, dec8, swe7, armscii8, geostd8", typesFolders, "t_charset", 2, `"c_armscii8":"²³"`, `"c_armscii8":"Աա"`},
	{"character sets hp8, keybcs2, koi8u, dec8, swe7, armscii8, geostd8", typesFolders, "t_charset", 2, `"c_dec8":"¨×Ý÷"`, `"c_dec8":"¤ŒŸœ"`},
	{"character sets hp8, keybcs2, koi8u, dec8, swe7, armscii8, geostd8", typesFolders, "t_charset", 2, `"c_geostd8":"ÀÁ"`, `"c_geostd8":"აბ"`},
	{"character sets hp8, keybcs2, koi8u, dec8, swe7, armscii8, geostd8", typesFolders, "t_charset", 2, `"c_hp8":"¡Þð"`, `"c_hp8":"ÀßÞ"`},
	{"character sets hp8, keybcs2, koi8u, dec8, swe7, armscii8, geostd8", typesFolders, "t_charset", 2, `"c_keybcs2":"Çüé"`, `"c_keybcs2":"Čüé"`},
	{"character sets hp8, keybcs2, koi8u, dec8, swe7, armscii8, geostd8", typesFolders, "t_charset", 2, `"c_swe7":"[]{}"`, `"c_swe7":"ÄÅäå"`},
	{"REAL, REAL(M,D)", "types-ddl", "t_dec", everyRecord, `{"type":"float","optional":true,"field":"r"}`, `{"type":"double","optional":true,"field":"r"}`},
	{"REAL, REAL(M,D)", "types-ddl", "t_dec", everyRecord, `{"type":"float","optional":true,"field":"r10_2"}`, `{"type":"double","optional":true,"field":"r10_2"}`},
	{"REAL, REAL(M,D)", "types-ddl", "t_dec", 0, `"r10_2":-1.0E8`, `"r10_2":-9.999999999E7`},
	{"REAL, REAL(M,D)", "types-ddl", "t_dec", 1, `"r":0.0,`, `"r":4.9E-324,`},
	{"REAL, REAL(M,D)", "types-ddl", "t_dec", 1, `"r10_2":1.0E8`, `"r10_2":9.999999999E7`},
	{"REAL, REAL(M,D)", "types-ddl", "t_dec", 4, `"r":1.2345679E7`, `"r":1.23456789E7`},
	{"REAL, REAL(M,D)", "types-ddl", "t_def_nn", 0, `{"type":"float","optional":false,"default":3.0,"field":"r"}`, `{"type":"double","optional":false,"default":3.0,"field":"r"}`},
	{"CHAR, VARCHAR, TEXT with CHARACTER SET binary", "types-ddl", "t_str", everyRecord, `{"type":"string","optional":true,"field":"cb"}`, `{"type":"bytes","optional":true,"field":"cb"}`},
	{"CHAR, VARCHAR, TEXT with CHARACTER SET binary", "types-ddl", "t_str", everyRecord, `{"type":"string","optional":true,"field":"vcb"}`, `{"type":"bytes","optional":true,"field":"vcb"}`},
	{"CHAR, VARCHAR, TEXT with CHARACTER SET binary", "types-ddl", "t_str", everyRecord, `{"type":"string","optional":true,"field":"txb"}`, `{"type":"bytes","optional":true,"field":"txb"}`},
	{"CHAR, VARCHAR, TEXT with CHARACTER SET binary", "types-ddl", "t_str", 0, `"cb":"cb"`, `"cb":"Y2IAAAA="`},
	{"CHAR, VARCHAR, TEXT with CHARACTER SET binary", "types-ddl", "t_str", 0, `"vcb":"vcb"`, `"vcb":"dmNi"`},
	{"CHAR, VARCHAR, TEXT with CHARACTER SET binary", "types-ddl", "t_str", 0, `"txb":"txb"`, `"txb":"dHhi"`},
	{"CHAR, VARCHAR, TEXT with CHARACTER SET binary", "types-ddl", "t_str", 1, `"cb":""`, `"cb":"AAAAAAA="`},
	{"CHAR, VARCHAR, TEXT with CHARACTER SET binary", "types-ddl", "t_str", 2, `"cb":"a"`, `"cb":"YQAAAAA="`},
	{"CHAR, VARCHAR, TEXT with CHARACTER SET binary", "types-ddl", "t_str", 2, `"vcb":"\u0000"`, `"vcb":"AA=="`},
	{"CHAR, VARCHAR, TEXT with CHARACTER SET binary", "types-ddl", "t_str", 2, `"txb":"\u0000\u0000"`, `"txb":"AAA="`},
	{"CHAR, VARCHAR, TEXT with CHARACTER SET binary", "types-ddl", "t_str", 3, `"cb":"ÿ\u0000þ"`, `"cb":"/wD+AAA="`},
	{"CHAR, VARCHAR, TEXT with CHARACTER SET binary", "types-ddl", "t_str", 3, `"vcb":"ÿ\u0000"`, `"vcb":"/wA="`},
	{"CHAR, VARCHAR, TEXT with CHARACTER SET binary", "types-ddl", "t_str", 3, "\"txb\":\"\u0080ÿ\"", `"txb":"gP8="`},
	{"CHAR, VARCHAR, TEXT with CHARACTER SET binary", "types-ddl", "t_charset", everyRecord, `{"type":"string","optional":true,"field":"c_binary"}`, `{"type":"bytes","optional":true,"field":"c_binary"}`},
	{"CHAR, VARCHAR, TEXT with CHARACTER SET binary", "types-ddl", "t_charset", 0, `"c_binary":"abc"`, `"c_binary":"YWJj"`},
	{"BINARY without a length", "types-ddl", "t_bin", 1, `"b":""`, `"b":"AA=="`},
	{"BINARY without a length", "types-ddl", "t_bin", 2, `"b":""`, `"b":"AA=="`},
}
