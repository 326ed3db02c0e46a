package schema

import (
	"encoding/binary"
	"fmt"
)

// civil is a date and time of day as MySQL stores them: any part may be zero.
type civil struct {
	year, month, day     int
	hour, minute, second int
	micros               int
}

// ok says whether the date is one of the (proleptic Gregorian) calendar. MySQL's zero dates, zero months and days, and
// dates such as February 31 (with ALLOW_INVALID_DATES) are not.
func (c civil) ok() bool {
	return c.year > 0 && c.month >= 1 && c.month <= 12 && c.day >= 1 && (c.day <= 28 || c.day <= daysIn(c.year, c.month))
}

func daysIn(year, month int) int {
	switch month {
	case 2:
		if isLeap(year) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// adjustYear moves years of two digits into the years 1970 to 2069, as Debezium does (enable.time.adjuster).
func adjustYear(year int) int {
	switch {
	case year >= 0 && year <= 69:
		return year + 2000
	case year >= 70 && year <= 99:
		return year + 1900
	}
	return year
}

// days is the number of days from 1970-01-01; c must be ok.
func (c civil) days() int64 { return daysFrom(uint32(c.year), uint32(c.month), uint32(c.day)) }

// daysFrom is the number of days of a date that exists from 1970-01-01.
func daysFrom(y, m, d uint32) int64 {
	// Years that begin in March put the leap day at the end. All is positive, so that 32 bits do.
	if m <= 2 {
		y--
		m += 12
	}
	century := y / 100
	return int64(365*y+y/4-century+century/4+(153*m-457)/5+d) - 719469
}

func isLeap(year int) bool { return year%4 == 0 && (year%100 != 0 || year%400 == 0) }

func (c civil) microsOfDay() int64 {
	return (int64(c.hour)*3600+int64(c.minute)*60+int64(c.second))*1e6 + int64(c.micros)
}

const microsPerDay = 86400 * 1e6

// unixMicros is c read as UTC; c must be ok.
func (c civil) unixMicros() int64 { return c.days()*microsPerDay + c.microsOfDay() }

// civilOfUnix is the UTC date and time of a TIMESTAMP, which is an unsigned number of 32 bits.
func civilOfUnix(seconds int64, micros int) civil {
	y, m, d := dateOfUnix(uint32(seconds))
	rest := int(uint32(seconds) % 86400)
	return civil{
		year: int(y), month: int(m), day: int(d), hour: rest / 3600, minute: rest / 60 % 60, second: rest % 60, micros: micros,
	}
}

// dateOfUnix is the UTC date of a TIMESTAMP.
func dateOfUnix(seconds uint32) (year, month, day uint32) {
	// Years begin in March, cycles have four years and begin in March 1968. Until 2106, where 32 bits end, 2100 is the
	// only one of them without a leap day.
	const march1968, march2100 = 671, 47541 // days before 1970, days after it
	n := seconds/86400 + march1968
	if n >= march2100+march1968 {
		n++
	}
	cycle, dayOfCycle := n/1461, n%1461
	y := min(dayOfCycle/365, 3)
	dayOfYear := dayOfCycle - 365*y
	m := (5*dayOfYear + 2) / 153
	year, month, day = 1968+4*cycle+y, m+3, dayOfYear-(153*m+2)/5+1
	if month > 12 {
		month -= 12
		year++
	}
	return year, month, day
}

// appendSeconds writes a TIMESTAMP without fraction digits: the same as appendTimestamp, faster.
func appendSeconds(dst []byte, seconds uint32) []byte {
	a, b, c := secondsText(seconds)
	dst = binary.LittleEndian.AppendUint64(dst, a)
	dst = binary.LittleEndian.AppendUint64(dst, b)
	return binary.LittleEndian.AppendUint32(dst, uint32(c))
}

// secondsText is the text of a TIMESTAMP without fraction digits: YYYY-MM-, DDThh:mm and the four bytes :ssZ.
func secondsText(seconds uint32) (a, b, c uint64) {
	year, month, day := dateOfUnix(seconds)
	date := pairDigits(uint64(year/100) | uint64(year%100)<<16 | uint64(month)<<32 | uint64(day)<<48)
	a = date&0xffff_ffff | '-'<<32 | date>>32&0xffff<<40 | '-'<<56
	b, c = clockText(seconds % 86400)
	return a, date>>48 | b, c
}

// dayOfText is where the second word of secondsText has the day; the rest is the time of day.
const dayOfText = 0xffff

// clockText is what the second of a day contributes to the second and third word of secondsText.
func clockText(second uint32) (b, c uint64) {
	clock := pairDigits(uint64(second/3600) | uint64(second/60%60)<<16 | uint64(second%60)<<32)
	return 'T'<<16 | clock&0xffff<<24 | ':'<<40 | clock>>16&0xffff<<48, ':' | clock>>32&0xffff<<8 | 'Z'<<24
}

// fractionSize is the number of bytes of a fraction with so many digits.
func fractionSize(digits int) int { return (digits + 1) / 2 }

// readFraction reads a fraction of a second, big-endian in units of the even number of digits that is stored, as µs.
func readFraction(b []byte) int {
	switch len(b) {
	case 1:
		return int(b[0]) * 10000
	case 2:
		return int(binary.BigEndian.Uint16(b)) * 100
	case 3:
		return int(b[0])<<16 | int(b[1])<<8 | int(b[2])
	}
	return 0
}

// readDate reads a DATE: three bytes, little-endian: 15 bits year, 4 month, 5 day.
func readDate(cell []byte) (civil, error) {
	if len(cell) != 3 {
		return civil{}, fmt.Errorf("DATE of %d bytes, want 3", len(cell))
	}
	v := int(cell[0]) | int(cell[1])<<8 | int(cell[2])<<16
	c := civil{year: v >> 9, month: v >> 5 & 15, day: v & 31}
	if c.month > 12 || c.year > 9999 {
		return c, fmt.Errorf("DATE %04d-%02d-%02d does not exist", c.year, c.month, c.day)
	}
	return c, nil
}

// unpackDatetime takes apart the packed form that DATETIME and JSON share: 17 bits year*13+month, 5 day, 5 hour,
// 6 minute, 6 second.
func unpackDatetime(v uint64, micros int) (civil, error) {
	date, time := v>>17, int(v&(1<<17-1))
	months := uint32(date >> 5)
	c := civil{
		year: int(months / 13), month: int(months % 13), day: int(date & 31),
		hour: time >> 12, minute: time >> 6 & 63, second: time & 63, micros: micros,
	}
	if c.hour > 23 || c.minute > 59 || c.second > 59 || micros > 999999 || c.year > 9999 {
		return c, fmt.Errorf("DATETIME %04d-%02d-%02d %02d:%02d:%02d.%06d does not exist",
			c.year, c.month, c.day, c.hour, c.minute, c.second, micros)
	}
	return c, nil
}

// readDatetime reads a DATETIME of so many fraction digits: five bytes, big-endian, with the sign bit set, and the
// fraction.
func readDatetime(cell []byte, digits int) (civil, error) {
	if want := 5 + fractionSize(digits); len(cell) != want {
		return civil{}, fmt.Errorf("DATETIME(%d) of %d bytes, want %d", digits, len(cell), want)
	}
	v := uint64(cell[0])<<32 | uint64(binary.BigEndian.Uint32(cell[1:]))
	if v>>39 == 0 {
		return civil{}, fmt.Errorf("DATETIME is negative")
	}
	return unpackDatetime(v&(1<<39-1), readFraction(cell[5:]))
}

// readOldDatetime reads a DATETIME of a table made before MySQL 5.6: the decimal number YYYYMMDDhhmmss.
func readOldDatetime(cell []byte) (civil, error) {
	if len(cell) != 8 {
		return civil{}, fmt.Errorf("DATETIME of %d bytes, want 8", len(cell))
	}
	v := binary.LittleEndian.Uint64(cell)
	if v > 9999_99_99_99_99_99 {
		return civil{}, fmt.Errorf("DATETIME %d does not exist", v)
	}
	date, time := int(v/1e6), int(v%1e6)
	c := civil{
		year: date / 1e4, month: date / 100 % 100, day: date % 100,
		hour: time / 1e4, minute: time / 100 % 100, second: time % 100,
	}
	if c.month > 12 || c.day > 31 || c.hour > 23 || c.minute > 59 || c.second > 59 {
		return c, fmt.Errorf("DATETIME %014d does not exist", v)
	}
	return c, nil
}

// readTime reads a TIME of so many fraction digits as µs: three bytes, big-endian, offset by 2^23: 1 bit sign, 10 hour,
// 6 minute, 6 second, and the fraction. A negative value is the two's complement over all bytes.
func readTime(cell []byte, digits int) (int64, error) {
	size := fractionSize(digits)
	if len(cell) != 3+size {
		return 0, fmt.Errorf("TIME(%d) of %d bytes, want %d", digits, len(cell), 3+size)
	}
	v := int64(0)
	for _, b := range cell {
		v = v<<8 | int64(b)
	}
	v -= 1 << (23 + 8*size)
	negative := v < 0
	if negative {
		v = -v
	}
	fraction := v & (1<<(8*size) - 1)
	for range 3 - size {
		fraction *= 100
	}
	if size == 0 {
		fraction = 0
	}
	return joinTime(int(v>>(8*size)), int(fraction), negative)
}

// joinTime makes µs of the packed form of a TIME without its sign.
func joinTime(hms, micros int, negative bool) (int64, error) {
	c := civil{hour: hms >> 12 & 1023, minute: hms >> 6 & 63, second: hms & 63, micros: micros}
	if c.hour > 838 || c.minute > 59 || c.second > 59 || micros > 999999 || hms>>22 != 0 {
		return 0, fmt.Errorf("TIME %d:%02d:%02d.%06d does not exist", c.hour, c.minute, c.second, micros)
	}
	if negative {
		return -c.microsOfDay(), nil
	}
	return c.microsOfDay(), nil
}

// readOldTime reads a TIME of a table made before MySQL 5.6: the decimal number hhmmss with a sign, as µs.
func readOldTime(cell []byte) (int64, error) {
	if len(cell) != 3 {
		return 0, fmt.Errorf("TIME of %d bytes, want 3", len(cell))
	}
	v := int(int32(uint32(cell[0])<<8|uint32(cell[1])<<16|uint32(cell[2])<<24) >> 8)
	negative := v < 0
	if negative {
		v = -v
	}
	hour, minute, second := v/1e4, v/100%100, v%100
	if hour > 838 || minute > 59 || second > 59 {
		return 0, fmt.Errorf("TIME %d does not exist", v)
	}
	return joinTime(hour<<12|minute<<6|second, 0, negative)
}

// readTimestamp reads a TIMESTAMP of so many fraction digits: four bytes, big-endian, and the fraction.
func readTimestamp(cell []byte, digits int) (seconds int64, micros int, err error) {
	if want := 4 + fractionSize(digits); len(cell) != want {
		return 0, 0, fmt.Errorf("TIMESTAMP(%d) of %d bytes, want %d", digits, len(cell), want)
	}
	if micros = readFraction(cell[4:]); micros > 999999 {
		return 0, 0, fmt.Errorf("TIMESTAMP with %d microseconds", micros)
	}
	return int64(binary.BigEndian.Uint32(cell)), micros, nil
}

// epochText is what stands for a zero TIMESTAMP in a column that must have a value, whatever its fraction digits.
const epochText = "1970-01-01T00:00:00Z"

// appendTimestamp writes 2026-01-02T03:04:05.120Z with so many fraction digits.
func appendTimestamp(dst []byte, c civil, digits int) []byte {
	dst = appendDate(dst, c)
	dst = append(dst, 'T')
	dst = appendClock(dst, c)
	dst = appendFraction(dst, c.micros, digits)
	return append(dst, 'Z')
}

func appendDate(dst []byte, c civil) []byte {
	dst = append2(dst, c.year/100)
	dst = append2(dst, c.year%100)
	dst = append(dst, '-')
	dst = append2(dst, c.month)
	dst = append(dst, '-')
	return append2(dst, c.day)
}

// appendClock writes hh:mm:ss; the hour may have three digits.
func appendClock(dst []byte, c civil) []byte {
	if c.hour >= 100 {
		dst = append(dst, byte('0'+c.hour/100))
	}
	dst = append2(dst, c.hour%100)
	dst = append(dst, ':')
	dst = append2(dst, c.minute)
	dst = append(dst, ':')
	return append2(dst, c.second)
}

// appendFraction writes the first digits of a fraction of µs with its point, or nothing.
func appendFraction(dst []byte, micros, digits int) []byte {
	if digits == 0 {
		return dst
	}
	var text [7]byte
	text[0] = '.'
	for i := 6; i > 0; i-- {
		text[i] = byte('0' + micros%10)
		micros /= 10
	}
	return append(dst, text[:1+digits]...)
}

// appendShortFraction writes a fraction of µs with its point, without the zeros at its end, or nothing.
func appendShortFraction(dst []byte, micros int) []byte {
	if micros == 0 {
		return dst
	}
	digits := 6
	for n := micros; n%10 == 0; n /= 10 {
		digits--
	}
	return appendFraction(dst, micros, digits)
}

func append2(dst []byte, n int) []byte {
	return append(dst, byte('0'+n/10), byte('0'+n%10))
}
