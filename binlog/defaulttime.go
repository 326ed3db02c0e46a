package binlog

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-cdc/tidemark/schema"
)

// moment is a date and a time of day as a literal has them, not necessarily in the calendar.
type moment struct{ year, month, day, hour, minute, second, micros int }

// parseMoment reads YYYY-MM-DD[ hh:mm:ss[.ffffff]], with any punctuation between the parts, YYYYMMDD, YYYYMMDDhhmmss and 0.
func parseMoment(text string) (moment, error) {
	var m moment
	if text == "0" {
		return m, nil
	}
	parts := [6]*int{&m.year, &m.month, &m.day, &m.hour, &m.minute, &m.second}
	whole, fraction, _ := strings.Cut(text, ".")
	if strings.Trim(whole, "0123456789") == "" {
		if len(whole) != 8 && len(whole) != 14 {
			return m, errDefault
		}
		whole = whole[:4] + "-" + whole[4:6] + "-" + whole[6:8] + " " + whole[8:]
		if len(whole) > len("YYYY-MM-DD ") {
			whole = whole[:13] + ":" + whole[13:15] + ":" + whole[15:]
		}
	}
	fields := strings.FieldsFunc(whole, func(r rune) bool { return r < '0' || r > '9' })
	if len(fields) < 3 || len(fields) > 6 {
		return m, errDefault
	}
	for i, f := range fields {
		n, err := strconv.Atoi(f)
		if err != nil || len(f) > 4 || i > 0 && len(f) > 2 {
			return m, errDefault
		}
		*parts[i] = n
	}
	if len(fields[0]) <= 2 {
		if m.year += 1900; m.year < 1970 {
			m.year += 100
		}
	}
	if m.month > 12 || m.day > 31 || m.hour > 23 || m.minute > 59 || m.second > 59 {
		return m, errDefault
	}
	var err error
	m.micros, err = parseFraction(fraction)
	return m, err
}

// parseFraction reads up to six digits after the point.
func parseFraction(text string) (micros int, err error) {
	if text == "" {
		return 0, nil
	}
	if len(text) > 6 || strings.Trim(text, "0123456789") != "" {
		return 0, errDefault
	}
	return strconv.Atoi(text + "000000"[len(text):])
}

// cell makes the cell of a column of dates or moments.
func (m moment) cell(c *schema.Column) ([]byte, error) {
	switch c.Type {
	case typeDate, typeNewDate:
		n := m.day | m.month<<5 | m.year<<9
		return []byte{byte(n), byte(n >> 8), byte(n >> 16)}, nil
	case typeDatetime:
		n := (((((m.year*100+m.month)*100+m.day)*100+m.hour)*100 + m.minute) * 100) + m.second
		return binary.LittleEndian.AppendUint64(nil, uint64(n)), nil
	case typeDatetime2:
		return appendDatetime2(nil, m, int(c.Meta)), nil
	}
	// A TIMESTAMP's literal is in the time zone of who reads the definition, which Debezium takes for UTC; so do we, that
	// the row has what its schema says.
	seconds := int64(0)
	if m != (moment{}) {
		seconds = time.Date(m.year, time.Month(m.month), m.day, m.hour, m.minute, m.second, 0, time.UTC).Unix()
		if m.month == 0 || m.day == 0 || seconds <= 0 || seconds > math.MaxUint32 {
			return nil, errDefault
		}
	}
	if c.Type == typeTimestamp {
		return binary.LittleEndian.AppendUint32(nil, uint32(seconds)), nil
	}
	return appendFraction(binary.BigEndian.AppendUint32(nil, uint32(seconds)), m.micros, int(c.Meta)), nil
}

// appendDatetime2 writes a DATETIME: a sign bit, year and month as one number of 17 bits, day, hour, minute, second.
func appendDatetime2(dst []byte, m moment, digits int) []byte {
	n := uint64(m.year*13+m.month)<<22 | uint64(m.day)<<17 | uint64(m.hour)<<12 | uint64(m.minute)<<6 | uint64(m.second)
	n |= 1 << 39
	return appendFraction(append(dst, byte(n>>32), byte(n>>24), byte(n>>16), byte(n>>8), byte(n)), m.micros, digits)
}

// appendFraction writes the digits behind the second in as many bytes as they need, two a byte.
func appendFraction(dst []byte, micros, digits int) []byte {
	switch (digits + 1) / 2 {
	case 1:
		return append(dst, byte(micros/10000))
	case 2:
		return binary.BigEndian.AppendUint16(dst, uint16(micros/100))
	case 3:
		return append(dst, byte(micros>>16), byte(micros>>8), byte(micros))
	}
	return dst
}

// timeCell makes the cell of a TIME: [-]h:mm[:ss[.ffffff]] or hhmmss.
func timeCell(c *schema.Column, text string) ([]byte, error) {
	text, negative := strings.CutPrefix(text, "-")
	whole, fraction, _ := strings.Cut(text, ".")
	micros, err := parseFraction(fraction)
	if err != nil {
		return nil, err
	}
	fields := strings.Split(whole, ":")
	if len(fields) == 1 {
		if len(whole) == 0 || len(whole) > 7 {
			return nil, errDefault
		}
		whole = strings.Repeat("0", 7-len(whole)) + whole
		fields = []string{whole[:3], whole[3:5], whole[5:]}
	}
	if len(fields) > 3 {
		return nil, errDefault
	}
	var parts [3]int
	for i, f := range fields {
		n, err := strconv.ParseUint(f, 10, 10)
		if err != nil || i == 0 && n > 838 || i > 0 && n > 59 {
			return nil, errDefault
		}
		parts[i] = int(n)
	}
	if c.Type == typeTime {
		n := parts[0]*10000 + parts[1]*100 + parts[2]
		if negative {
			n = -n
		}
		return []byte{byte(n), byte(n >> 8), byte(n >> 16)}, nil
	}
	packed := int64(parts[0]<<12|parts[1]<<6|parts[2])<<24 | int64(micros)
	if negative {
		packed = -packed
	}
	return appendTime2(nil, packed, int(c.Meta)), nil
}

// appendTime2 writes a TIME from its packed form: hour, minute and second above 24 bits of µs, negative for negative times.
// In the cell, seconds and fraction are one number, to which a constant is added that makes it positive.
func appendTime2(dst []byte, packed int64, digits int) []byte {
	switch (digits + 1) / 2 {
	case 1:
		n := 0x80_0000_00 + packed/(1<<24)<<8 + packed%(1<<24)/10000
		return append(dst, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	case 2:
		n := 0x80_0000_0000 + packed/(1<<24)<<16 + packed%(1<<24)/100
		return append(dst, byte(n>>32), byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	case 3:
		n := 0x80_0000_000000 + packed
		return append(dst, byte(n>>40), byte(n>>32), byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	}
	n := 0x80_0000 + packed>>24
	return append(dst, byte(n>>16), byte(n>>8), byte(n))
}
