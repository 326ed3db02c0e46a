package schema

import (
	"encoding/hex"
	"strings"
	"testing"
)

// Cases that users of change data capture have reported, with the cells that a MySQL 9.7 wrote for them. Where the case
// wants another text than Debezium's stream gives, Debezium's wins, and the comment says so.

type caseCell struct {
	name string
	m    Modes
	c    Column
	cell string // in hexadecimal; "NULL" is one
	want string // as JSON
}

func testCases(t *testing.T, cases []caseCell) {
	t.Helper()
	for _, tt := range cases {
		var cell []byte
		if tt.cell != "NULL" {
			var err error
			if cell, err = hex.DecodeString(tt.cell); err != nil {
				t.Fatal(err)
			}
			if cell == nil {
				cell = []byte{}
			}
		}
		if _, v, err := decodeMode(t, tt.m, tt.c, cell); err != nil || string(valueJSON(v)) != tt.want {
			t.Errorf("%s: %s is %s, %v, want %s", tt.name, tt.cell, valueJSON(v), err, tt.want)
		}
	}
}

func TestUnsignedIntegersKeepTheTopBit(t *testing.T) {
	precise := Modes{UnsignedBigint: UnsignedPrecise}
	unsigned := func(typ uint8) Column { return Column{Type: typ, Unsigned: true} }
	testCases(t, []caseCell{
		{"TINYINT UNSIGNED", Modes{}, unsigned(typeTiny), "ff", "255"},
		{"SMALLINT UNSIGNED", Modes{}, unsigned(typeShort), "ffff", "65535"},
		{"MEDIUMINT UNSIGNED", Modes{}, unsigned(typeInt24), "ffffff", "16777215"},
		{"INT UNSIGNED", Modes{}, unsigned(typeLong), "ffffffff", "4294967295"},
		// Debezium's mode "long" wraps, and that is a choice of who configures it.
		{"BIGINT UNSIGNED", Modes{}, unsigned(typeLonglong), "ffffffffffffffff", "-1"},
		{"BIGINT UNSIGNED 2^63", Modes{}, unsigned(typeLonglong), "0000000000000080", "-9223372036854775808"},
		{"precise", precise, unsigned(typeLonglong), "ffffffffffffffff", `"AP//////////"`},
		{"precise 2^63", precise, unsigned(typeLonglong), "0000000000000080", `"AIAAAAAAAAAA"`},
		{"TINYINT", Modes{}, Column{Type: typeTiny}, "80", "-128"},
		{"SMALLINT", Modes{}, Column{Type: typeShort}, "0080", "-32768"},
		{"MEDIUMINT", Modes{}, Column{Type: typeInt24}, "000080", "-8388608"},
		{"INT", Modes{}, Column{Type: typeLong}, "00000080", "-2147483648"},
		{"BIGINT", Modes{}, Column{Type: typeLonglong}, "0000000000000080", "-9223372036854775808"},
	})
	// The same in the record key.
	table := &Table{Columns: []Column{unsigned(typeLonglong)}, Key: []int{0}}
	_, decode, err := precise.Key().Column(table, 0)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := call(decode, le(-1, 8), new(Scratch)); err != nil || string(valueJSON(v)) != `"AP//////////"` {
		t.Errorf("in the key: %s, %v", valueJSON(v), err)
	}
}

func TestSetOf64Members(t *testing.T) {
	labels := make([]string, 64)
	for i := range labels {
		labels[i] = "a" + string(AppendInt(nil, int64(i+1)))
	}
	labels[63] = "last"
	set := Column{Type: typeSet, Meta: typeSet<<8 | 8, Collation: 255, Labels: labels}
	testCases(t, []caseCell{
		{"the first and the last, in the order of the definition", Modes{}, set, "0100000000000080", `"a1,last"`},
		{"the last", Modes{}, set, "0000000000000080", `"last"`},
		{"none", Modes{}, set, "0000000000000000", `""`},
	})
}

func TestLabelsWithSpecialCharacters(t *testing.T) {
	enum := Column{
		Type: typeEnum, Meta: typeEnum<<8 | 1, Collation: 255, Labels: []string{"plain", "a,b", "it's", `back\slash`, "trail", "", "ünï"},
		Def: &ColumnDef{Type: "ENUM", Length: 1, Labels: []string{"plain", "a,b", "it''s", `back\\slash`, "trail", "", "ünï"}},
	}
	set := Column{Type: typeSet, Meta: typeSet<<8 | 1, Collation: 255, Labels: []string{"x y", "it's"}}
	testCases(t, []caseCell{
		{"comma", Modes{}, enum, "02", `"a,b"`},
		{"quote", Modes{}, enum, "03", `"it's"`},
		{"backslash", Modes{}, enum, "04", `"back\\slash"`},
		{"blank at the end", Modes{}, enum, "05", `"trail"`},
		{"ünï", Modes{}, enum, "07", `"ünï"`},
		{"NULL of a NOT NULL column", Modes{}, enum, "NULL", `""`},
		{"SET", Modes{}, set, "03", `"x y,it's"`},
	})
	// The schema has Debezium's escapes.
	typ, _, err := Modes{}.Column(&Table{Columns: []Column{enum}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := typ.Parameter("allowed"), `plain,a\,b,it's,back\\slash,trail,,ünï`; got != want {
		t.Errorf("allowed is %s, want %s", got, want)
	}
}

func TestBinaryKeepsItsZeros(t *testing.T) {
	binary := func(n uint16) Column { return Column{Type: typeString, Meta: typeString<<8 | n, Collation: 63} }
	cases := []caseCell{
		{"BINARY(16)", Modes{Binary: BinaryHex}, binary(16), "651aed08390f4893b2f136923e7b74", `"651aed08390f4893b2f136923e7b7400"`},
		{"BINARY(3) 0", Modes{Binary: BinaryHex}, binary(3), "", `"000000"`},
		{"BINARY(16) empty", Modes{Binary: BinaryHex}, binary(16), "", `"` + strings.Repeat("00", 16) + `"`},
		{"VARBINARY(16)", Modes{Binary: BinaryHex}, Column{Type: typeVarchar, Meta: 16, Collation: 63}, "6100", `"6100"`},
	}
	testCases(t, cases)
	for i := range cases { // the same in a record key
		cases[i].m = cases[i].m.Key()
	}
	testCases(t, cases)
}

func TestCharacterSets(t *testing.T) {
	var cases []caseCell
	for _, tt := range []struct {
		collation  uint32
		cell, want string
	}{
		{28, "8165c4e3bac3", "乪你好"},
		{13, "835c955c", "ソ表"}, // 5C is half of a character
		{1, "b9cfa7cebd58", "圖形碼"},
		{12, "b2cf", "河"},
		{249, "9534b235a2e3", "𠮷€"},
		{54, "d842dfb70061", "𠮷a"},
		{35, "00e9", "é"},
		{60, "0001f37b", "🍻"},
		{26, "8e6c759d6f75e86bfd", "Žluťoučký"},
		{7, "f0d2c9d7c5d4", "Привет"},
		{16, "f9ece5ed", "שלום"},
		{18, "e4b7c2", "ไทย"},
		{33, "e6bca2", "漢"},
	} {
		c := Column{Type: typeVarchar, Meta: 80, Collation: tt.collation}
		cases = append(cases, caseCell{charsetName(tt.collation), Modes{}, c, tt.cell, `"` + tt.want + `"`})
	}
	testCases(t, cases)
	if _, _, err := (Modes{}).Column(&Table{Columns: []Column{{Type: typeVarchar, Collation: 9999}}}, 0); err == nil {
		t.Error("a character set that is not known is no error")
	}
}

func TestZeroDates(t *testing.T) {
	column := func(typ uint8, meta uint16, nullable bool) Column {
		return Column{Type: typ, Meta: meta, Nullable: nullable}
	}
	testCases(t, []caseCell{
		{"DATE", Modes{}, column(typeDate, 0, true), "000000", "null"},
		{"TIME(2)", Modes{}, column(typeTime2, 2, true), "80000000", "0"},
		{"DATETIME(2)", Modes{}, column(typeDatetime2, 2, true), "800000000000", "null"},
		{"TIMESTAMP(2)", Modes{}, column(typeTimestamp2, 2, true), "0000000000", "null"},
		{"DATE NOT NULL", Modes{}, column(typeDate, 0, false), "000000", "0"},
		{"TIME(2) NOT NULL", Modes{}, column(typeTime2, 2, false), "80000000", "0"},
		{"DATETIME(2) NOT NULL", Modes{}, column(typeDatetime2, 2, false), "800000000000", "0"},
		{"TIMESTAMP(2) NOT NULL", Modes{}, column(typeTimestamp2, 2, false), "0000000000", `"1970-01-01T00:00:00Z"`},
		{"TIME 00:01:00", Modes{}, column(typeTime2, 2, true), "80004000", "60000000"},
		{"0000-00-00 14:02:10", Modes{}, column(typeDatetime2, 2, true), "800000e08a00", "null"},
		{"0000-00-00 14:02:10 NOT NULL", Modes{}, column(typeDatetime2, 2, false), "800000e08a00", "0"},
	})
}

func TestTimesBeyondADay(t *testing.T) {
	column := func(digits uint16) Column { return Column{Type: typeTime2, Meta: digits} }
	testCases(t, []caseCell{
		{"517:51:04.777", Modes{}, column(2), "a05cc44e", "1864264780000"},
		{"-13:14:50", Modes{}, column(0), "7f2c4e", "-47690000000"},
		{"-733:00:00.0011", Modes{}, column(3), "522ffffff6", "-2638800001000"},
		{"-1:59:59.0011", Modes{}, column(3), "7fe104fff6", "-7199001000"},
		{"-838:59:58.999999", Modes{}, column(6), "4b9105f0bdc1", "-3020398999999"},
		{"-00:20:38", Modes{}, column(6), "7ffada000000", "-1238000000"},
		{"-01:01:01.000001", Modes{}, column(6), "7fefbeffffff", "-3661000001"},
		{"-00:00:00.000001", Modes{}, column(6), "7fffffffffff", "-1"},
		{"-00:00:00", Modes{}, column(6), "800000000000", "0"},
		{"-00:00:00.01", Modes{}, column(2), "7fffffff", "-10000"},
		{"900:00:00, which MySQL cuts", Modes{}, column(0), "b46efb", "3020399000000"},
	})
}

// With enable.time.adjuster, which is on unless it is switched off, Debezium moves years of two digits, and so it is
// here.
func TestYears1To9999(t *testing.T) {
	date, datetime, datetime6 := Column{Type: typeDate}, Column{Type: typeDatetime2}, Column{Type: typeDatetime2, Meta: 6}
	plain := Modes{NoTimeAdjuster: true}
	testCases(t, []caseCell{
		{"0018-04-01", plain, date, "812400", "-712863"},
		{"0018-04-01 adjusted", Modes{}, date, "812400", "17622"},
		{"0078-04-01", plain, date, "819c00", "-690948"},
		{"18-04-01, which MySQL takes for 2018", plain, date, "81c40f", "17622"},
		{"0001-01-01", plain, date, "210200", "-719162"},
		{"9999-12-31", plain, date, "9f1f4e", "2932896"},
		{"1969-12-31 23:59:59.999999", plain, datetime6, "99027f7efb0f423f", "-1"},
		{"1000-01-01", plain, datetime6, "8cb2420000000000", "-30610224000000000"},
		{"9999-12-31 23:59:59.999999", plain, datetime6, "fef3ff7efb0f423f", "253402300799999999"},
		{"1950-01-01 01:00:00", plain, datetime, "98c1c21000", "-631148400000"},
	})
}

// Both rows were '2024-03-10 10:30:00.123456', in a session of +08:00 and one of -05:00.
func TestTimestampIsAnInstantAndDatetimeIsNot(t *testing.T) {
	timestamp, datetime := Column{Type: typeTimestamp2, Meta: 6}, Column{Type: typeDatetime2, Meta: 6}
	testCases(t, []caseCell{
		{"TIMESTAMP in +08:00", Modes{}, timestamp, "65ed1b2801e240", `"2024-03-10T02:30:00.123456Z"`},
		{"TIMESTAMP in -05:00", Modes{}, timestamp, "65edd1f801e240", `"2024-03-10T15:30:00.123456Z"`},
		{"DATETIME", Modes{}, datetime, "99b2d4a78001e240", "1710066600123456"},
	})
}

func TestDecimalExtremes(t *testing.T) {
	decimal := func(precision, scale uint16) Column { return Column{Type: typeNewDecimal, Meta: precision<<8 | scale} }
	text := Modes{Decimal: DecimalString}
	nines := strings.Repeat("9", 35) + "." + strings.Repeat("9", 30)
	testCases(t, []caseCell{
		{"the largest", text, decimal(65, 30), "85f5e0ff3b9ac9ff3b9ac9ff3b9ac9ff3b9ac9ff3b9ac9ff3b9ac9ff03e7", `"` + nines + `"`},
		{"the least below zero", text, decimal(65, 30), "7ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe", `"-0.000000000000000000000000000001"`},
		{"DECIMAL(40,16)", text, decimal(40, 16), "7fff84e4ce6b05f201e1e8f8a432eafffe1dbf", `"-123456234234234757655.1234567890123456"`},
		{"10^30", text, decimal(60, 0), "8000000000000000000000000003e8000000000000000000000000", `"1000000000000000000000000000000"`},
		{"DECIMAL(30,30)", text, decimal(30, 30), "80000000000003e8000000000000", `"0.000000000000001000000000000000"`},
		{"DECIMAL", text, decimal(10, 0), "800000007b", `"123"`},
		{"DECIMAL(7), rounded by MySQL", text, decimal(7, 0), "800000eb", `"235"`},
		{"DECIMAL(6,0), rounded by MySQL", text, decimal(6, 0), "80015a", `"346"`},
		{"DECIMAL(10,2)", text, decimal(10, 2), "800000010a", `"1.10"`},
		{"precise", Modes{}, decimal(10, 2), "800000010a", `"bg=="`},
		{"precise, the least below zero", Modes{}, decimal(65, 30), "7ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe", `"/w=="`},
	})
}

// Debezium's stream writes doubles without an exponent, with all the digits that they have.
func TestJSONNumbersAndKeyOrder(t *testing.T) {
	testCases(t, []caseCell{{
		"one document",
		Modes{},
		Column{Type: typeJSON, Meta: 4},
		"000b00a900510000005100010052000100530002005500020057000200590003005c0003005f00030062000300650004000c69000b6f000a77000501000b7f000a" +
			"87000b8f000502000b97000b9f000ca70065756964706973666269676475706e656776616c6e616d6505656d70747948afbc9af2d77a3effffffffffffffff1f" +
			"85eb51b81e09401581e97df4102211000000000000f0430000000000000080000000000000f03f0161",
		`"{\"\":\"empty\",\"e\":0.0000000999999999999999954748111825886258685613938723690807819366455078125,\"u\":18446744073709551615,` +
			`\"id\":1,\"pi\":3.14,\"sf\":1234567890123456789,\"big\":18446744073709551616,\"dup\":2,\"neg\":-0.0,\"val\":1.0,\"name\":\"a\"}"`,
	}})
}

// Debezium's stream writes dates and times with the digits that they need, and bytes in bare base64. A negative
// TIME, which it garbles, is right.
func TestOpaqueJSONValues(t *testing.T) {
	json := Column{Type: typeJSON, Meta: 4}
	testCases(t, []caseCell{
		{"DATETIME(3)", Modes{}, json, "0f0c08c0d40119761f9519", `"\"2015-01-15 23:24:25.12\""`},
		{"negative TIME", Modes{}, json, "0f0b080000000591cbffff", `"\"-838:59:59\""`},
		{
			"zeros",
			Modes{},
			json, "0203002b000f0d000f17000f21000a0800000000000000000b0800000000000000000c080000000000000000",
			`"[\"0000-00-00\",\"00:00:00\",\"0000-00-00 00:00:00\"]"`,
		},
		{"DECIMAL(50,20)", Modes{}, json, "0ff6172f148000000c149aa4350dfb38d2075bcd150000000000", `"12345678901234567890.12345678900000000000"`},
		{"bytes", Modes{}, json, "0f0f02cafe", `"\"yv4=\""`},
		{
			"POINT",
			Modes{},
			json,
			"0003009800190003001c00040020000b00002b000c7800027e0063727374797065636f6f7264696e6174657302004d001200040016000a000c20000025007479" +
				"706570726f70657274696573046e616d65010028000b0004000c0f006e616d651875726e3a6f67633a6465663a6372733a4d7953514c3a3a3005506f696e" +
				"7402001a000b0a000b1200000000000000f03f000000000000f03f",
			`"{\"crs\":{\"type\":\"name\",\"properties\":{\"name\":\"urn:ogc:def:crs:MySQL::0\"}},\"type\":\"Point\",\"coordinates\":[1.0,1.0]}"`,
		},
	})
}

func TestVectors(t *testing.T) {
	vector := Column{Type: typeVector, Meta: 4, Collation: 63, Nullable: true}
	testCases(t, []caseCell{
		{"two floats of VECTOR(128)", Modes{}, vector, "cdcc8c3fcdcc0c40", "[1.1e+00,2.2e+00]"},
		{"whole numbers", Modes{}, vector, "0000f84100000042", "[3.1e+01,3.2e+01]"},
		{"NULL", Modes{}, vector, "NULL", "null"},
		{"2,048 floats", Modes{}, vector, strings.Repeat("0000803f", 2048), "[" + strings.Repeat("1e+00,", 2047) + "1e+00]"},
	})
}

func TestTextWithNULAndBlanks(t *testing.T) {
	varchar := Column{Type: typeVarchar, Meta: 40, Collation: 255, Nullable: true}
	long := strings.Repeat("x", 65535)
	testCases(t, []caseCell{
		{"NUL in VARCHAR", Modes{}, varchar, "610062", `"a\u0000b"`},
		{"NUL in TEXT", Modes{}, Column{Type: typeBlob, Meta: 2, Collation: 255}, "7100", `"q\u0000"`},
		{"CHAR without its blanks", Modes{}, Column{Type: typeString, Meta: typeString<<8 | 16, Collation: 255}, "78", `"x"`},
		{"VARCHAR with its own", Modes{}, varchar, "7820", `"x "`},
		{"empty", Modes{}, varchar, "", `""`},
		{"NULL", Modes{}, varchar, "NULL", "null"},
		{"four bytes", Modes{}, varchar, "f09f8dbb", `"🍻"`},
		{"65,535 bytes", Modes{}, Column{Type: typeVarchar, Meta: 65535, Collation: 255}, hex.EncodeToString([]byte(long)), `"` + long + `"`},
		{
			"3 MB",
			Modes{},
			Column{Type: typeBlob, Meta: 3, Collation: 255},
			strings.Repeat("c3a9", 3<<19), `"` + strings.Repeat("é", 3<<19) + `"`,
		},
	})
}

func TestKeyOrderIsThatOfThePrimaryKey(t *testing.T) {
	for sql, want := range map[string]string{
		"CREATE TABLE `_prim` (`id2` int NOT NULL, `col` varchar(30), `id1` bigint NOT NULL, PRIMARY KEY (`id1`,`id2`))":                     "id1 id2",
		"CREATE TABLE `_prim2` (`col1` int, `id1` char(10) NOT NULL, `col2` int, `id2` varchar(20) NOT NULL, PRIMARY KEY (`id1`,`id2`(10)))": "id1 id2",
	} {
		def, err := ParseCreateTable("d", sql)
		if err != nil || strings.Join(def.Key, " ") != want {
			t.Errorf("%s has the key %v, %v, want %s", sql, def, err, want)
		}
	}
}
