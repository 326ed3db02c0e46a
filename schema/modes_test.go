package schema

import (
	"strings"
	"sync/atomic"
	"testing"
)

// decodeMode decodes a cell of a column c in the modes given.
func decodeMode(t testing.TB, m Modes, c Column, cell []byte) (*Type, Value, error) {
	t.Helper()
	c.Name = "c"
	typ, decode, err := m.Column(&Table{Database: "d", Name: "t", Columns: []Column{c}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	var scratch Scratch
	v, err := call(decode, cell, &scratch)
	return typ, v, err
}

// timeCell packs a TIME(6).
func timeCell(micros int64) []byte {
	negative := micros < 0
	if negative {
		micros = -micros
	}
	c := clockOf(micros)
	v := int64(c.hour)<<36 | int64(c.minute)<<30 | int64(c.second)<<24 | int64(c.micros)
	if negative {
		v = -v
	}
	v += 1 << 47
	return []byte{byte(v >> 40), byte(v >> 32), byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}
}

// datetime6Cell packs a DATETIME(6).
func datetime6Cell(year, month, day, hour, minute, second, micros int) []byte {
	return append(datetimeCell(year, month, day, hour, minute, second), byte(micros>>16), byte(micros>>8), byte(micros))
}

// What each time.precision.mode makes of the same cells: the limits of each.
func TestTimeModes(t *testing.T) {
	const day = 86400 * 1e6
	date := Column{Type: typeDate, Nullable: true}
	time6 := Column{Type: typeTime2, Meta: 6, Nullable: true}
	datetime, datetime6 := Column{Type: typeDatetime2, Nullable: true}, Column{Type: typeDatetime2, Meta: 6, Nullable: true}
	timestamp := Column{Type: typeTimestamp2, Meta: 2, Nullable: true}
	// In the order of the modes: adaptive_time_microseconds, connect, isostring, microseconds, nanoseconds.
	for _, tt := range []struct {
		name string
		c    Column
		cell []byte
		want [5]string
	}{
		{"DATE", date, le(2026<<9|2<<5|28, 3), [5]string{"20512", "20512", `"2026-02-28Z"`, "20512", "20512"}},
		{"DATE of two digits", date, le(69<<9|5<<5|6, 3), [5]string{"36285", "36285", `"2069-05-06Z"`, "36285", "36285"}},
		{"DATE zero", date, le(0, 3), [5]string{"null", "null", "null", "null", "null"}},
		{"DATE impossible", date, le(2021<<9|2<<5|31, 3), [5]string{"null", "null", "null", "null", "null"}},
		{"TIME", time6, timeCell(45296789000), [5]string{"45296789000", "45296789", `"12:34:56.789Z"`, "45296789000", "45296789000000"}},
		{"TIME µs", time6, timeCell(1), [5]string{"1", "0", `"00:00:00.000001Z"`, "1", "1000"}},
		{"TIME 24:00:00", time6, timeCell(day), [5]string{"86400000000", "86400000", `"00:00:00Z"`, "86400000000", "86400000000000"}},
		{"TIME above", time6, timeCell(day + 1), [5]string{"86400000001", "null", "null", "86400000001", "86400000001000"}},
		{"TIME below", time6, timeCell(-1), [5]string{"-1", "null", "null", "-1", "-1000"}},
		{"TIME -838:59:59", time6, timeCell(-3020399e6), [5]string{"-3020399000000", "null", "null", "-3020399000000", "-3020399000000000"}},
		{"DATETIME", datetime, datetimeCell(2026, 2, 28, 12, 34, 56), [5]string{
			"1772282096000", "1772282096000", `"2026-02-28T12:34:56Z"`, "1772282096000000", "1772282096000000000",
		}},
		{"DATETIME(6)", datetime6, datetime6Cell(2026, 2, 28, 12, 34, 56, 789120), [5]string{
			"1772282096789120", "1772282096789", `"2026-02-28T12:34:56.78912Z"`, "1772282096789120", "1772282096789120000",
		}},
		{"DATETIME(6) before 1970", datetime6, datetime6Cell(1969, 12, 31, 23, 59, 59, 999999), [5]string{
			"-1", "-1", `"1969-12-31T23:59:59.999999Z"`, "-1", "-1000",
		}},
		{"DATETIME 1000", datetime, datetimeCell(1000, 1, 1, 0, 0, 0), [5]string{
			"-30610224000000", "-30610224000000", `"1000-01-01T00:00:00Z"`, "-30610224000000000", "null",
		}},
		{"DATETIME 9999", datetime6, datetime6Cell(9999, 12, 31, 23, 59, 59, 999999), [5]string{
			"253402300799999999", "253402300799999", `"9999-12-31T23:59:59.999999Z"`, "253402300799999999", "null",
		}},
		{"last ns", datetime6, datetime6Cell(2262, 4, 11, 23, 47, 16, 854775), [5]string{
			"9223372036854775", "9223372036854", `"2262-04-11T23:47:16.854775Z"`, "9223372036854775", "9223372036854775000",
		}},
		{"after it", datetime6, datetime6Cell(2262, 4, 11, 23, 47, 16, 854776), [5]string{
			"9223372036854776", "9223372036854", `"2262-04-11T23:47:16.854776Z"`, "9223372036854776", "null",
		}},
		{"first ns", datetime6, datetime6Cell(1677, 9, 22, 0, 0, 0, 0), [5]string{
			"-9223286400000000", "-9223286400000", `"1677-09-22T00:00:00Z"`, "-9223286400000000", "-9223286400000000000",
		}},
		{"before it", datetime6, datetime6Cell(1677, 9, 21, 23, 59, 59, 0), [5]string{
			"-9223286401000000", "-9223286401000", `"1677-09-21T23:59:59Z"`, "-9223286401000000", "null",
		}},
		{"DATETIME impossible", datetime, datetimeCell(2021, 2, 31, 1, 2, 3), [5]string{"null", "null", "null", "null", "null"}},
		{"TIMESTAMP(2)", timestamp, []byte{0x69, 0xa2, 0xe2, 0x30, 10}, [5]string{
			`"2026-02-28T12:40:16.10Z"`, `"2026-02-28T12:40:16.10Z"`, `"2026-02-28T12:40:16.10Z"`,
			`"2026-02-28T12:40:16.10Z"`, `"2026-02-28T12:40:16.10Z"`,
		}},
	} {
		for mode, want := range tt.want {
			_, v, err := decodeMode(t, Modes{Time: TimeMode(mode)}, tt.c, tt.cell)
			if got := string(valueJSON(v)); err != nil || got != want {
				t.Errorf("%s in mode %d is %s, %v, want %s", tt.name, mode, got, err, want)
			}
			// In a column that must have a value: 0, and the first moment as text.
			tt.c.Nullable = false
			_, v, err = decodeMode(t, Modes{Time: TimeMode(mode)}, tt.c, tt.cell)
			tt.c.Nullable = true
			if want == "null" {
				want = "0"
				if TimeMode(mode) == TimeISOString {
					want = map[uint8]string{
						typeDate: `"1970-01-01Z"`, typeTime2: `"00:00:00Z"`, typeDatetime2: `"1970-01-01T00:00:00Z"`,
					}[tt.c.Type]
				}
			}
			if got := string(valueJSON(v)); err != nil || got != want {
				t.Errorf("%s NOT NULL in mode %d is %s, %v, want %s", tt.name, mode, got, err, want)
			}
		}
	}
}

// enable.time.adjuster=false leaves years of two digits where they are, but YEAR is as before.
func TestNoTimeAdjuster(t *testing.T) {
	m := Modes{NoTimeAdjuster: true, Time: TimeISOString}
	dflt, year := "0069-05-06", "70"
	typ, v, err := decodeMode(t, m, Column{Type: typeDate, Def: &ColumnDef{Type: "DATE", Default: &dflt}}, le(70<<9|1<<5|2, 3))
	if err != nil || string(v.Bytes) != "0070-01-02Z" || typ.Default == nil || string(typ.Default.Bytes) != "0069-05-06Z" {
		t.Errorf("DATE is %s, its default %+v, %v", v.Bytes, typ.Default, err)
	}
	typ, _, err = decodeMode(t, m, Column{Type: typeYear, Def: &ColumnDef{Type: "YEAR", Default: &year}}, []byte{0})
	if err != nil || typ.Default == nil || typ.Default.Int != 1970 {
		t.Errorf("YEAR's default is %+v, %v", typ.Default, err)
	}
	_, v, err = decodeMode(t, Modes{NoTimeAdjuster: true}, Column{Type: typeDatetime2}, datetimeCell(99, 12, 31, 0, 0, 0))
	if err != nil || v.Int != -59011545600000 {
		t.Errorf("DATETIME is %d, %v", v.Int, err)
	}
}

// Defaults go into the schema in the form of the mode, and those that the mode cannot hold not at all.
func TestDefaultsByMode(t *testing.T) {
	integer := func(unsigned bool) Column { return Column{Type: typeLonglong, Unsigned: unsigned} }
	decimal := Column{Type: typeNewDecimal, Meta: 10<<8 | 2}
	binary := Column{Type: typeVarchar, Meta: 10, Collation: 63}
	for _, tt := range []struct {
		m    Modes
		c    Column
		text string
		want string // "" for none
	}{
		{Modes{Time: TimeConnect}, Column{Type: typeTime2}, "12:34:56", "45296000"},
		{Modes{Time: TimeConnect}, Column{Type: typeTime2, Meta: 3}, "-01:02:03.456", ""},
		{Modes{Time: TimeConnect}, Column{Type: typeTime2}, "838:59:59", ""},
		{Modes{Time: TimeConnect}, Column{Type: typeDatetime2, Meta: 6}, "2026-01-02 03:04:05.123456", "1767323045123"},
		{Modes{Time: TimeConnect}, Column{Type: typeDate}, "2026-01-02", "20455"},
		{Modes{Time: TimeISOString}, Column{Type: typeTime2, Meta: 3}, "12:34:56.780", `"12:34:56.78Z"`},
		{Modes{Time: TimeISOString}, Column{Type: typeDatetime2}, "2026-01-02", `"2026-01-02T00:00:00Z"`},
		{Modes{Time: TimeISOString}, Column{Type: typeDatetime2}, "0000-00-00 00:00:00", `"1970-01-01T00:00:00Z"`},
		{Modes{Time: TimeISOString}, Column{Type: typeDate, Nullable: true}, "0000-00-00", ""},
		{Modes{Time: TimeNanoseconds}, Column{Type: typeDatetime2}, "2026-01-02 03:04:05", "1767323045000000000"},
		{Modes{Time: TimeNanoseconds}, Column{Type: typeDatetime2}, "9999-12-31 23:59:59", ""},
		{Modes{Time: TimeNanoseconds}, Column{Type: typeTime2}, "838:59:59", "3020399000000000"},
		{Modes{Time: TimeMicroseconds}, Column{Type: typeDatetime2}, "2026-01-02 03:04:05", "1767323045000000"},
		{Modes{Decimal: DecimalDouble}, decimal, "1.5", "1.5e+00"},
		{Modes{Decimal: DecimalDouble}, decimal, "-0.005", "-1e-02"}, // rounded first
		{Modes{Decimal: DecimalString}, decimal, "1.5", `"1.50"`},
		{Modes{Decimal: DecimalString}, decimal, "-.005", `"-0.01"`},
		{Modes{Decimal: DecimalString}, decimal, "x", ""},
		{Modes{UnsignedBigint: UnsignedPrecise}, integer(true), "18446744073709551615", `"AP//////////"`},
		{Modes{UnsignedBigint: UnsignedPrecise}, integer(true), "TRUE", `"AQ=="`},
		{Modes{UnsignedBigint: UnsignedPrecise}, integer(true), "1.5", `"Ag=="`},
		{Modes{UnsignedBigint: UnsignedPrecise}, integer(false), "5", "5"},
		{Modes{Binary: BinaryBase64}, binary, "\xff", `"/w=="`},
		{Modes{Binary: BinaryBase64URL}, binary, "\xff", `"_w=="`},
		{Modes{Binary: BinaryHex}, binary, "_binary'xyz'", `"78797a"`},
	} {
		tt.c.Def = &ColumnDef{Length: -1, Scale: -1, Default: &tt.text}
		typ, _, err := tt.m.Column(&Table{Columns: []Column{tt.c}}, 0)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if typ.Default != nil {
			got = string(valueJSON(*typ.Default))
		}
		if got != tt.want {
			t.Errorf("%s: default %q is %s, want %s", typ.Name, tt.text, got, tt.want)
		}
	}
}

// A NULL in a NOT NULL column gives the default in the form of the mode, and its first value without one.
func TestNullByMode(t *testing.T) {
	dflt := "1.5"
	decimal := Column{Type: typeNewDecimal, Meta: 10<<8 | 2}
	for _, tt := range []struct {
		mode          DecimalMode
		with, without string
	}{
		{DecimalPrecise, `"AJY="`, `"AA=="`}, {DecimalDouble, "1.5e+00", "0e+00"}, {DecimalString, `"1.50"`, `"0.00"`},
	} {
		for _, def := range []*ColumnDef{{Type: "DECIMAL", Default: &dflt}, nil} {
			want := tt.with
			if def == nil {
				want = tt.without
			}
			decimal.Def = def
			if _, v, err := decodeMode(t, Modes{Decimal: tt.mode}, decimal, nil); err != nil || string(valueJSON(v)) != want {
				t.Errorf("mode %d: %s, %v, want %s", tt.mode, valueJSON(v), err, want)
			}
		}
	}
}

func TestDecimalModes(t *testing.T) {
	for _, tt := range []struct {
		precision, scale int
		digits           string
		negative         bool
		double, text     string
	}{
		{10, 2, "0000000150", false, "1.5e+00", `"1.50"`},
		{10, 2, "0000000001", true, "-1e-02", `"-0.01"`},
		{10, 2, "0000000000", true, "0e+00", `"0.00"`},
		{5, 0, "00012", false, "1.2e+01", `"12"`},
		{20, 0, "00009007199254740993", false, "9.007199254740992e+15", `"9007199254740993"`},
		{30, 30, "000000000000000000000000000001", false, "1e-30", `"0.000000000000000000000000000001"`},
		{65, 30, strings.Repeat("9", 65), true, "-1e+35", `"-` + strings.Repeat("9", 35) + "." + strings.Repeat("9", 30) + `"`},
		{17, 1, "00000000000000001", false, "1e-01", `"0.1"`},
	} {
		c := Column{Type: typeNewDecimal, Meta: uint16(tt.precision<<8 | tt.scale)}
		cell := decimalCell(tt.digits, tt.scale, tt.negative)
		for mode, want := range map[DecimalMode]string{DecimalDouble: tt.double, DecimalString: tt.text} {
			if _, v, err := decodeMode(t, Modes{Decimal: mode}, c, cell); err != nil || string(valueJSON(v)) != want {
				t.Errorf("DECIMAL(%d,%d) %s: %s, %v, want %s", tt.precision, tt.scale, tt.digits, valueJSON(v), err, want)
			}
		}
	}
}

func TestUnsignedBigintPrecise(t *testing.T) {
	for n, want := range map[uint64]string{
		0: `"AA=="`, 127: `"fw=="`, 128: `"AIA="`, 1<<63 - 1: `"f/////////8="`, 1 << 63: `"AIAAAAAAAAAA"`, 1<<64 - 1: `"AP//////////"`,
	} {
		typ, v, err := decodeMode(t, Modes{UnsignedBigint: UnsignedPrecise}, Column{Type: typeLonglong, Unsigned: true}, le(int64(n), 8))
		if got := string(valueJSON(v)); err != nil || got != want {
			t.Errorf("%d is %s, %v, want %s", n, got, err, want)
		}
		if want := `{"type":"bytes","optional":false,"name":"org.apache.kafka.connect.data.Decimal","version":1,` +
			`"parameters":{"scale":"0","connect.decimal.precision":"20"},"field":"c"}`; schemaJSON(typ, "c", false) != want {
			t.Errorf("schema %s", schemaJSON(typ, "c", false))
		}
	}
}

func TestBinaryModes(t *testing.T) {
	binary3 := Column{Type: typeString, Meta: typeString<<8 | 3, Collation: 63}
	blob := Column{Type: typeBlob, Meta: 2, Collation: 63}
	for _, tt := range []struct {
		c    Column
		cell string
		want [4]string // bytes, base64, base64-url-safe, hex
	}{
		{blob, "\xfb\xff", [4]string{`"+/8="`, `"+/8="`, `"-_8="`, `"fbff"`}},
		{blob, "", [4]string{`""`, `""`, `""`, `""`}},
		{binary3, "a", [4]string{`"YQAA"`, `"YQAA"`, `"YQAA"`, `"610000"`}},
	} {
		for mode, want := range tt.want {
			typ, v, err := decodeMode(t, Modes{Binary: BinaryMode(mode)}, tt.c, []byte(tt.cell))
			if got := string(valueJSON(v)); err != nil || got != want || (typ.Type == "bytes") != (v.Kind == Bytes) {
				t.Errorf("%x in mode %d is %s (%s), %v, want %s", tt.cell, mode, got, typ.Type, err, want)
			}
		}
	}
}

// Values that a type cannot hold are told of once a column, counted each time, and end the stream if conversions must
// not fail. Zero dates are nothing to tell of.
func TestInvalidValues(t *testing.T) {
	var told []string
	var count atomic.Int64
	m := Modes{
		Time: TimeConnect, InvalidValues: &count,
		Invalid: func(database, table, column, what string) {
			told = append(told, database+"."+table+"."+column+": "+what)
		},
	}
	dflt := "-00:00:01"
	table := &Table{Database: "d", Name: "t", Columns: []Column{
		{Name: "day", Type: typeDate}, {Name: "t6", Type: typeTime2, Meta: 6, Nullable: true, Def: &ColumnDef{Default: &dflt}},
	}}
	_, day, err := m.Column(table, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, t6, err := m.Column(table, 1)
	if err != nil {
		t.Fatal(err)
	}
	m.Layout(table, 1)
	var scratch Scratch
	for range 3 {
		for _, cell := range [][]byte{le(0, 3), le(2020<<9|10, 3), le(1<<5|1, 3), le(2021<<9|2<<5|31, 3)} {
			if v, err := call(day, cell, &scratch); err != nil || v.Kind != Int || v.Int != 0 {
				t.Errorf("%x: %+v, %v", cell, v, err)
			}
		}
		if v, err := call(t6, timeCell(-1500000), &scratch); err != nil || v.Kind != Null {
			t.Errorf("%+v, %v", v, err)
		}
	}
	want := []string{
		`d.t.t6: its default "-00:00:01" cannot be converted and is left out of the schema: -00:00:01 is not a time of day`,
		"d.t.day: 2021-02-31 is not a date; it is written as a zero date is",
		"d.t.t6: TIME -00:00:01.5 is not a time of day, as time.precision.mode has it; it is written as null, or 0 in a column that is NOT NULL",
	}
	if got := strings.Join(told, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("told\n%s", got)
	}
	if count.Load() != 6 {
		t.Errorf("%d values, want 6", count.Load())
	}

	m.Failure = FailureFail
	if _, _, err := m.Column(table, 1); err == nil || !strings.Contains(err.Error(), `d.t.t6: its default "-00:00:01" cannot be converted`) {
		t.Errorf("default: %v", err)
	}
	table.Columns[1].Def = nil
	if _, _, err := decodeMode(t, m, table.Columns[1], timeCell(-1)); err == nil || !strings.Contains(err.Error(), "TIME -00:00:00.000001 is not a time of day") {
		t.Errorf("TIME: %v", err)
	}
	m.Time = TimeNanoseconds
	if _, _, err := decodeMode(t, m, Column{Type: typeDatetime2}, datetimeCell(1000, 1, 1, 0, 0, 0)); err == nil ||
		!strings.Contains(err.Error(), "DATETIME 1000-01-01 00:00:00 does not fit into 64 bits of nanoseconds") {
		t.Errorf("DATETIME: %v", err)
	}
	if _, v, err := decodeMode(t, m, Column{Type: typeDate, Nullable: true}, le(2021<<9|2<<5|31, 3)); err != nil || v.Kind != Null {
		t.Errorf("an impossible date is %+v, %v, though Debezium's failures of conversions are others", v, err)
	}
}

// Comments go into the schema if they are wanted, over what a type says of itself.
func TestComments(t *testing.T) {
	for _, tt := range []struct {
		c     Column
		m     Modes
		want  string
		blank bool
	}{
		{c: Column{Type: typeLong, Def: &ColumnDef{BlankComment: true}}, m: Modes{Comments: true}, blank: true},
		{c: Column{Type: typeLong, Def: &ColumnDef{BlankComment: true}}},
		{Column{Type: typeLong, Def: &ColumnDef{Comment: "x"}}, Modes{}, "", false},
		{Column{Type: typeLong, Def: &ColumnDef{Comment: "it''s"}}, Modes{Comments: true}, "it''s", false},
		{Column{Type: typeGeometry, Def: &ColumnDef{Type: "GEOMETRY", Comment: "x"}}, Modes{}, "Geometry", false},
		{Column{Type: typeGeometry, Def: &ColumnDef{Type: "GEOMETRY"}}, Modes{Comments: true}, "Geometry", false},
		{Column{Type: typeGeometry, Def: &ColumnDef{Type: "GEOMETRY", Comment: "x"}}, Modes{Comments: true}, "x", false},
	} {
		typ, _, err := tt.m.Column(&Table{Columns: []Column{tt.c}}, 0)
		if err != nil || typ.Doc != tt.want || typ.BlankDoc != tt.blank {
			t.Errorf("doc %q, blank %t, %v, want %q", typ.Doc, typ.BlankDoc, err, tt.want)
		}
	}
}

// The short ways of the layouts are only for the modes in which they are right.
func TestLayoutByMode(t *testing.T) {
	unsigned := Column{Type: typeLonglong, Unsigned: true}
	decimal := Column{Type: typeNewDecimal, Meta: 10<<8 | 2}
	datetime, datetime6 := Column{Type: typeDatetime2}, Column{Type: typeDatetime2, Meta: 6}
	text := Column{Type: typeVarchar, Meta: 40, Collation: 255}
	tinyint := Column{Type: typeTiny, Def: &ColumnDef{Type: "TINYINT", Length: 1}}
	every := func(_, _, _ string) bool { return true }
	for _, tt := range []struct {
		m    Modes
		c    Column
		want LayoutKind
	}{
		{Modes{UnsignedBigint: UnsignedPrecise}, unsigned, LayoutOther},
		{Modes{UnsignedBigint: UnsignedPrecise}, Column{Type: typeLonglong}, LayoutInteger},
		{Modes{Decimal: DecimalDouble}, decimal, LayoutOther},
		{Modes{Decimal: DecimalString}, decimal, LayoutPlain},
		{Modes{Time: TimeConnect}, datetime, LayoutDatetime},
		{Modes{Time: TimeConnect}, datetime6, LayoutOther},
		{Modes{Time: TimeMicroseconds}, datetime, LayoutOther},
		{Modes{Time: TimeNanoseconds}, datetime, LayoutOther},
		{Modes{Time: TimeISOString}, datetime, LayoutPlain},
		{Modes{Time: TimeISOString}, Column{Type: typeDate}, LayoutPlain},
		{Modes{Time: TimeISOString}, Column{Type: typeTime2}, LayoutPlain},
		{Modes{Time: TimeISOString}, Column{Type: typeTimestamp2}, LayoutTimestamp},
		{Modes{Binary: BinaryHex}, Column{Type: typeBlob, Collation: 63}, LayoutPlain},
		{Modes{Masks: []Mask{{Match: every, Kind: MaskFixed, Length: 1}}}, text, LayoutMasked},
		{Modes{Masks: []Mask{{Match: every, Kind: MaskTruncate, Length: 10}}}, text, LayoutText}, // it has 10 characters
		{Modes{Masks: []Mask{{Match: every, Kind: MaskTruncate, Length: 9}}}, text, LayoutMasked},
		{Modes{Masks: []Mask{{Match: every, Kind: MaskFixed}}}, unsigned, LayoutInteger},
		{Modes{Converters: []Converter{{Kind: TinyIntOneToBoolean, Length: true}}}, tinyint, LayoutOther},
	} {
		if got := tt.m.Layout(&Table{Columns: []Column{tt.c}}, 0); got.Kind != tt.want {
			t.Errorf("%+v of %+v: %d, want %d", tt.m, tt.c, got.Kind, tt.want)
		}
	}
}
