package schema

import (
	"testing"
	"time"
)

func TestOldTemporalTypes(t *testing.T) {
	// Cells of tables made before MySQL 5.6, which keep their format through upgrades.
	for _, tt := range []struct {
		name string
		typ  uint8
		cell []byte
		want Value
	}{
		{"TIME 12:34:56", typeTime, le(123456, 3), Value{Kind: Int, Int: 45296e6}},
		{"TIME -838:59:59", typeTime, le(-8385959, 3), Value{Kind: Int, Int: -3020399e6}},
		{"DATETIME", typeDatetime, le(20260102030405, 8), Value{Kind: Int, Int: 1767323045000}},
		{"DATETIME zero", typeDatetime, le(0, 8), Value{}},
		{"TIMESTAMP", typeTimestamp, le(1767323045, 4), Value{Kind: String, Bytes: []byte("2026-01-02T03:04:05Z")}},
		{"TIMESTAMP zero", typeTimestamp, le(0, 4), Value{}},
		{"DATE", typeNewDate, le(2026<<9|1<<5|2, 3), Value{Kind: Int, Int: 20455}},
	} {
		got, err := decodeCell(t, Column{Type: tt.typ, Nullable: true}, tt.cell)
		if err != nil || !equalValues(got, tt.want) {
			t.Errorf("%s: %+v, %v, want %+v", tt.name, got, err, tt.want)
		}
	}
}

func le(n int64, size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(n >> (8 * i))
	}
	return b
}

func equalValues(a, b Value) bool {
	return a.Kind == b.Kind && a.Int == b.Int && a.Float == b.Float && string(a.Bytes) == string(b.Bytes)
}

func decodeCell(t testing.TB, c Column, cell []byte) (Value, error) {
	t.Helper()
	c.Name = "c"
	_, decode, err := Modes{}.Column(&Table{Database: "d", Name: "t", Columns: []Column{c}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	var scratch Scratch
	return call(decode, cell, &scratch)
}

// datetimeCell packs a DATETIME(0).
func datetimeCell(year, month, day, hour, minute, second int) []byte {
	v := uint64(1)<<39 | uint64(year*13+month)<<22 | uint64(day)<<17 | uint64(hour)<<12 | uint64(minute)<<6 | uint64(second)
	return []byte{byte(v >> 32), byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}
}

// A date that is not in the calendar is null, and the epoch where there must be a value.
func TestDatesThatAreNone(t *testing.T) {
	for _, cell := range [][]byte{
		datetimeCell(0, 0, 0, 0, 0, 0), datetimeCell(2020, 0, 10, 1, 2, 3), datetimeCell(2020, 1, 0, 0, 0, 0),
		datetimeCell(2021, 2, 31, 0, 0, 0), datetimeCell(1900, 2, 29, 0, 0, 0), datetimeCell(0, 1, 1, 0, 0, 0),
		datetimeCell(2021, 4, 31, 0, 0, 0),
	} {
		got, err := decodeCell(t, Column{Type: typeDatetime2, Nullable: true}, cell)
		if err != nil || got.Kind != Null {
			t.Errorf("%x: %+v, %v, want null", cell, got, err)
		}
		got, err = decodeCell(t, Column{Type: typeDatetime2}, cell)
		if err != nil || got.Kind != Int || got.Int != 0 {
			t.Errorf("%x in a NOT NULL column: %+v, %v, want 0", cell, got, err)
		}
	}
}

func TestTemporalRejectsCorruptCells(t *testing.T) {
	for _, tt := range []struct {
		name string
		c    Column
		cell []byte
	}{
		{"DATETIME hour 24", Column{Type: typeDatetime2}, datetimeCell(2026, 1, 1, 24, 0, 0)},
		{"DATETIME second 60", Column{Type: typeDatetime2}, datetimeCell(2026, 1, 1, 0, 0, 60)},
		{"DATETIME negative", Column{Type: typeDatetime2}, []byte{0, 0, 0, 0, 1}},
		{"DATETIME short", Column{Type: typeDatetime2, Meta: 6}, []byte{0x80, 0, 0, 0, 1}},
		{"DATE month 15", Column{Type: typeDate}, le(2026<<9|15<<5|2, 3)},
		{"TIME minute 63", Column{Type: typeTime2}, []byte{0x80, 0x0f, 0xc0}},
		{"TIME hour 900", Column{Type: typeTime2}, []byte{0xb8, 0x40, 0x00}},
		{"TIMESTAMP fraction", Column{Type: typeTimestamp2, Meta: 6}, []byte{0, 0, 0, 1, 0xff, 0xff, 0xff}},
		{"YEAR", Column{Type: typeYear}, []byte{1, 2}},
	} {
		if got, err := decodeCell(t, tt.c, tt.cell); err == nil {
			t.Errorf("%s: %+v, want an error", tt.name, got)
		}
	}
}

// Days and instants agree with the standard library over all dates that MySQL has.
func TestCivil(t *testing.T) {
	for day := time.Date(100, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() <= 9999; day = day.AddDate(0, 0, 13) {
		c := civil{year: day.Year(), month: int(day.Month()), day: day.Day()}
		if got, want := c.days(), day.Unix()/86400; !c.ok() || got != want {
			t.Fatalf("%v is day %d, want %d", day, got, want)
		}
	}
	for seconds := int64(1); seconds < 1<<32; seconds += 7654321 {
		want := time.Unix(seconds, 0).UTC().Format("2006-01-02T15:04:05.000Z")
		if got := string(appendTimestamp(nil, civilOfUnix(seconds, 0), 3)); got != want {
			t.Fatalf("second %d is %s, want %s", seconds, got, want)
		}
	}
}

func FuzzTemporal(f *testing.F) {
	f.Add([]byte{0x80, 0, 0, 0, 1}, uint8(0), uint8(typeDatetime2), uint8(0))
	f.Add([]byte{0x7f, 0xff, 0xff, 0xff}, uint8(2), uint8(typeTime2), uint8(2))
	f.Add(datetimeCell(2262, 4, 11, 23, 47, 17), uint8(0), uint8(typeDatetime2), uint8(4))
	f.Fuzz(func(t *testing.T, cell []byte, meta, typ, mode uint8) {
		switch typ {
		case typeDate, typeNewDate, typeTime, typeTime2, typeDatetime, typeDatetime2, typeTimestamp, typeTimestamp2, typeYear:
		default:
			return
		}
		table := &Table{Columns: []Column{{Type: typ, Meta: uint16(meta)}}}
		m := Modes{Time: TimeMode(mode % 5), NoTimeAdjuster: mode > 127, Invalid: func(_, _, _, _ string) {}}
		schema, decode, err := m.Column(table, 0)
		if err != nil {
			return
		}
		var scratch Scratch
		v, err := call(decode, cell, &scratch)
		if err == nil && (v.Kind == String) != (schema.Type == "string") || err == nil && v.Kind != String && v.Kind != Int {
			t.Errorf("%x of type %d is %+v in a NOT NULL column of %s", cell, typ, v, schema.Type)
		}
		if v.Kind == String && !plainJSON(v.Bytes) {
			t.Errorf("%x of type %d is %q", cell, typ, v.Bytes)
		}
		if err == nil && m.Time == TimeConnect && schema.Type == "int32" && schema.Name == connectTimeName && (v.Int < 0 || v.Int > 86400_000) {
			t.Errorf("%x is %d ms of a day", cell, v.Int)
		}
	})
}
