package emitter

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"time"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/schema"
)

// appendSimple appends a value inside a struct as Connect's SimpleHeaderConverter does (data.Values.append): like JSON,
// but of a string's characters only the quote and the backslash are escaped, and Connect's dates are dates.
func appendSimple(dst []byte, t *schema.Type, v *schema.Value, scale int) ([]byte, error) {
	switch v.Kind {
	case schema.String:
		return appendSimpleString(dst, v.Bytes), nil
	case schema.Float:
		return schema.AppendFloat(dst, float32(v.Float)), nil
	case schema.Double:
		return schema.AppendDouble(dst, v.Float), nil
	case schema.Int:
		if ms, ok := connectMillis(t, v); ok {
			return appendSimpleDate(dst, ms), nil
		}
	}
	return appendJSON(dst, v, scale)
}

func appendSimpleString(dst, s []byte) []byte {
	dst = append(dst, '"')
	for _, c := range s {
		if c == '"' || c == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, c)
	}
	return append(dst, '"')
}

// dateKind is a logical type of Connect whose values are Java dates.
type dateKind uint8

const (
	noDate dateKind = iota
	dateOfDays
	dateOfMillis
)

func dateKindOf(t *schema.Type) dateKind {
	switch t.Name {
	case "org.apache.kafka.connect.data.Date":
		return dateOfDays
	case "org.apache.kafka.connect.data.Time", "org.apache.kafka.connect.data.Timestamp":
		return dateOfMillis
	}
	return noDate
}

const dayMillis = 24 * 60 * 60 * 1000

// connectMillis is the time of a Java date in ms since the epoch; false for any other value.
func connectMillis(t *schema.Type, v *schema.Value) (int64, bool) {
	switch dateKindOf(t) {
	case dateOfDays:
		return v.Int * dayMillis, true
	case dateOfMillis:
		return v.Int, true
	case noDate:
	}
	return 0, false
}

// appendSimpleDate is data.Values.dateFormatFor, on a machine whose time zone is UTC: a time before the second day is a
// time of day, even if it is a date long ago.
func appendSimpleDate(dst []byte, ms int64) []byte {
	when := time.UnixMilli(ms).UTC()
	switch {
	case ms < dayMillis:
		return when.AppendFormat(dst, "15:04:05.000Z")
	case ms%dayMillis == 0:
		return when.AppendFormat(dst, "2006-01-02")
	}
	return when.AppendFormat(dst, "2006-01-02T15:04:05.000Z")
}

// appendJavaStruct appends a struct of cells and constants as Struct.toString does, of which Connect's StringConverter
// makes its bytes: without the fields that are null, and nothing is escaped.
func appendJavaStruct(dst []byte, s *shape, r *run) ([]byte, error) {
	dst = append(dst, "Struct{"...)
	first := true
	for i := range s.fields {
		f := &s.fields[i]
		v := &f.leaf.constant
		if f.leaf.kind == leafCell {
			var err error
			if v, err = r.cell(f.leaf.column, f.leaf.image); err != nil {
				return dst, err
			}
		}
		if v.Kind == schema.Null {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(dst, s.typ.Fields[i].Name...)
		dst = append(dst, '=')
		scale, decimal, err := decimalScale(f.typ)
		if err != nil {
			return dst, err
		}
		if !decimal {
			scale = -1
		}
		if dst, err = appendJava(dst, f.typ, v, scale); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// cell decodes a column of an image into r.value.
func (r *run) cell(c *column, img image) (*schema.Value, error) {
	row := r.after
	if img == before {
		row = r.before
	}
	if int(c.index) >= len(row) {
		return nil, fmt.Errorf("column %q: the row image has only %d columns", c.name, len(row))
	}
	if r.incomplete && binlog.IsUnavailable(row[c.index]) {
		return nil, fmt.Errorf("column %q: the row image does not have it", c.name)
	}
	if err := c.decode(row[c.index], r.scratch, &r.value); err != nil {
		return nil, fmt.Errorf("column %q: %w", c.name, err)
	}
	return &r.value, nil
}

// appendJava appends what Java's toString makes of a value. Where it has an address, that of BIT and of a geometry's WKB
// (byte[]), the bytes are written in base64.
func appendJava(dst []byte, t *schema.Type, v *schema.Value, scale int) ([]byte, error) {
	switch v.Kind {
	case schema.String:
		return append(dst, v.Bytes...), nil
	case schema.Float:
		return schema.AppendFloat(dst, float32(v.Float)), nil
	case schema.Double:
		return schema.AppendDouble(dst, v.Float), nil
	case schema.Int:
		if ms, ok := connectMillis(t, v); ok {
			return appendJavaDate(dst, ms), nil
		}
	case schema.Bytes:
		switch {
		case scale >= 0:
			return appendDecimal(dst, v.Bytes, scale), nil
		case t.Name == "": // a ByteBuffer
			n := strconv.Itoa(len(v.Bytes))
			return append(dst, "java.nio.HeapByteBuffer[pos=0 lim="+n+" cap="+n+"]"...), nil
		}
		return base64.StdEncoding.AppendEncode(dst, v.Bytes), nil
	case schema.Point, schema.Geometry:
		dst = append(dst, "Struct{"...)
		if v.Kind == schema.Point {
			x, y, err := pointXY(v.Bytes)
			if err != nil {
				return dst, err
			}
			dst = schema.AppendDouble(append(dst, "x="...), x)
			dst = schema.AppendDouble(append(dst, ",y="...), y)
			dst = append(dst, ',')
		}
		dst = base64.StdEncoding.AppendEncode(append(dst, "wkb="...), v.Bytes)
		if v.Int != schema.NoSRID {
			dst = strconv.AppendInt(append(dst, ",srid="...), javaSRID(v.Int), 10)
		}
		return append(dst, '}'), nil
	case schema.Vector:
		return appendVector(dst, ", ", v.Bytes)
	}
	return appendJSON(dst, v, scale)
}

// appendJavaDate is java.util.Date.toString on a machine whose time zone is UTC. Before 15 October 1582 its calendar is
// the Julian one.
func appendJavaDate(dst []byte, ms int64) []byte {
	when := time.UnixMilli(ms).UTC()
	year, month, day := when.Date()
	if when.Before(time.Date(1582, 10, 15, 0, 0, 0, 0, time.UTC)) {
		year, month, day = julianDate(when)
	}
	dst = when.AppendFormat(dst, "Mon ")
	dst = append(dst, month.String()[:3]...)
	return fmt.Appendf(dst, " %02d %s UTC %d", day, when.Format("15:04:05"), year)
}

// julianDate is the date of a time in the Julian calendar.
func julianDate(when time.Time) (year int, month time.Month, day int) {
	// Days since 1 March of the year 0 of that calendar, two days before that of the Gregorian one, so that the leap day
	// is a year's last.
	const cycle = 4*365 + 1
	n := int(floorDiv(when.Unix(), dayMillis/1000)) + 719470
	year = int(floorDiv(int64(n), cycle)) * 4
	n -= int(floorDiv(int64(n), cycle)) * cycle
	years := min(n/365, 3)
	year, n = year+years, n-years*365
	m := (5*n + 2) / 153 // months since March
	day = n - (153*m+2)/5 + 1
	if m < 10 {
		return year, time.Month(m + 3), day
	}
	return year + 1, time.Month(m - 9), day
}
