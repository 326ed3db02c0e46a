package emitter

import (
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/schema"
)

// TestHeaderText has values of key columns as the three converters of headers write them.
func TestHeaderText(t *testing.T) {
	const connect = "org.apache.kafka.connect.data."
	bytesType := schema.Type{Type: "bytes"}
	bits := schema.Type{Type: "bytes", Name: "io.debezium.data.Bits"}
	decimal := schema.Type{Type: "bytes", Name: connect + "Decimal", Parameters: []schema.Parameter{{Name: "scale", Value: "2"}}}
	date, clock, stamp := schema.Type{Name: connect + "Date"}, schema.Type{Name: connect + "Time"}, schema.Type{Name: connect + "Timestamp"}
	whole := func(n int64) schema.Value { return schema.Value{Kind: schema.Int, Int: n} }
	point := []byte{1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f, 0, 0, 0, 0, 0, 0, 4, 0xc0}
	for _, c := range []struct {
		name         string
		typ          schema.Type
		v            schema.Value
		simple, java string
	}{
		{"text", stringType, text("a \"q\" \\ \n é"), "\"a \\\"q\\\" \\\\ \n é\"", "a \"q\" \\ \n é"},
		{"number", int64Type, whole(-5), "-5", "-5"},
		{"bool", schema.Type{Type: "boolean"}, schema.Value{Kind: schema.Bool, Int: 1}, "true", "true"},
		{"double", schema.Type{Type: "double"}, schema.Value{Kind: schema.Double, Float: 1e10}, "1.0E10", "1.0E10"},
		{"float", schema.Type{Type: "float"}, schema.Value{Kind: schema.Float, Float: float64(float32(0.1))}, "0.1", "0.1"},
		{"decimal", decimal, schema.Value{Kind: schema.Bytes, Bytes: []byte{0x64}}, "1.00", "1.00"},
		{"bytes", bytesType, schema.Value{Kind: schema.Bytes, Bytes: []byte("abc")}, `"YWJj"`, "java.nio.HeapByteBuffer[pos=0 lim=3 cap=3]"},
		{"bits", bits, schema.Value{Kind: schema.Bytes, Bytes: []byte{1, 2}}, `"AQI="`, "AQI="},
		// Values.dateFormatFor takes whatever lies before the second day for a time of day.
		{"day 1", date, whole(1), "1970-01-02", "Fri Jan 02 00:00:00 UTC 1970"},
		{"day 0", date, whole(0), "00:00:00.000Z", "Thu Jan 01 00:00:00 UTC 1970"},
		{"day -1", date, whole(-1), "00:00:00.000Z", "Wed Dec 31 00:00:00 UTC 1969"},
		{"day of the reform", date, whole(-141427), "00:00:00.000Z", "Fri Oct 15 00:00:00 UTC 1582"},
		{"day before the reform", date, whole(-141428), "00:00:00.000Z", "Thu Oct 04 00:00:00 UTC 1582"},
		{"leap day of Caesar", date, whole(-171596), "00:00:00.000Z", "Sat Feb 29 00:00:00 UTC 1500"},
		{"0001-01-01", date, whole(-719162), "00:00:00.000Z", "Mon Jan 03 00:00:00 UTC 1"},
		{"9999-12-31", date, whole(2932896), "9999-12-31", "Fri Dec 31 00:00:00 UTC 9999"},
		{"time", clock, whole(45296789), "12:34:56.789Z", "Thu Jan 01 12:34:56 UTC 1970"},
		{"timestamp", stamp, whole(1795979007728), "2026-11-29T19:03:27.728Z", "Sun Nov 29 19:03:27 UTC 2026"},
		{"midnight", stamp, whole(1795910400000), "2026-11-29", "Sun Nov 29 00:00:00 UTC 2026"},
		{
			"point",
			schema.Type{Type: "struct"},
			schema.Value{Kind: schema.Point, Bytes: point, Int: 4326},
			`{"x":1.5,"y":-2.5,"wkb":"AQEAAAAAAAAAAAD4PwAAAAAAAATA","srid":4326}`,
			"Struct{x=1.5,y=-2.5,wkb=AQEAAAAAAAAAAAD4PwAAAAAAAATA,srid=4326}",
		},
		{
			"geometry",
			schema.Type{Type: "struct"},
			schema.Value{Kind: schema.Geometry, Bytes: []byte{1}, Int: schema.NoSRID},
			`{"wkb":"AQ==","srid":null}`, "Struct{wkb=AQ==}",
		},
		{
			"vector",
			schema.Type{Type: "array"},
			schema.Value{Kind: schema.Vector, Bytes: []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0}},
			"[1.0,0.0]", "[1.0, 0.0]",
		},
	} {
		scale, ok, err := decimalScale(&c.typ)
		must(t, err)
		if !ok {
			scale = -1
		}
		if got, err := appendSimple(nil, &c.typ, &c.v, scale); err != nil || string(got) != c.simple {
			t.Errorf("%s: got %s and error %v, want %s", c.name, got, err, c.simple)
		}
		if got, err := appendJava(nil, &c.typ, &c.v, scale); err != nil || string(got) != c.java {
			t.Errorf("%s: got %s and error %v, want %s", c.name, got, err, c.java)
		}
	}
	for _, v := range []schema.Value{{Kind: schema.Point, Bytes: point[:5]}, {Kind: 99}} {
		if got, err := appendJava(nil, &bytesType, &v, -1); err == nil {
			t.Errorf("got %s and no error", got)
		}
	}
}

// TestJulianDates walks the days before the reform one by one.
func TestJulianDates(t *testing.T) {
	day := time.Date(1582, 10, 14, 0, 0, 0, 0, time.UTC)
	year, month, date := 1582, time.October, 4
	for ; year > 0; day = day.AddDate(0, 0, -1) {
		if y, m, d := julianDate(day); y != year || m != month || d != date {
			t.Fatalf("%s: got %d-%d-%d, want %d-%d-%d", day.Format(time.DateOnly), y, m, d, year, month, date)
		}
		if date--; date > 0 {
			continue
		}
		if month--; month == 0 {
			year, month = year-1, time.December
		}
		date = []int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}[month-1]
		if month == time.February && year%4 == 0 {
			date = 29
		}
	}
}

// TestContextHeaders in the formats of headers.
func TestContextHeaders(t *testing.T) {
	ev := &binlog.Rows{Op: binlog.Create, Table: testTable(0), After: cells(1, 1, "x")}
	for _, c := range []struct {
		header HeaderConverter
		want   string
	}{
		{HeaderConverter{}, `my"id`},
		{HeaderConverter{Class: stringConverter}, `my"id`},
		{HeaderConverter{Class: jsonConverter}, `"my\"id"`},
		{HeaderConverter{Class: jsonConverter, JSON: Converter{Schemas: true}}, `{"schema":{"type":"string","optional":false},"payload":"my\"id"}`},
	} {
		got := emit(t, Config{ExtendedHeaders: true, RunID: `my"id`, Header: c.header}, ev)[0].Headers
		if len(got) != 4 || got[3].Name != "__debezium.context.runId" || string(got[3].Value) != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	_, err := New(Config{Prefix: "p", Header: HeaderConverter{Class: "ByteArrayConverter"}})
	if err == nil || !strings.Contains(err.Error(), "ByteArrayConverter") {
		t.Errorf("got %v", err)
	}
}
