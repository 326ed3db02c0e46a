package schema

import "encoding/binary"

// LastDay reads the cells of one column of dates with times for formats that write numbers. It remembers the last day:
// rows written one after the other often share it. Not safe for concurrent use. The zero value is ready.
type LastDay struct {
	day      uint64 // as the cell has it, and 1; 0: nothing is remembered
	midnight int64  // when it begins, in milliseconds since the epoch
}

const dayShift = 17 // of the bits of a day in a cell's first five bytes

// Datetime is the milliseconds since the epoch of a [LayoutDatetime] cell with so many digits after the second, the same
// for all cells of the column. For NULL, damaged cells, years of two digits and dates that do not exist, ok is false, and
// the column's [Decoder] has to be asked.
func (l *LastDay) Datetime(cell []byte, digits int) (millis int64, ok bool) {
	if len(cell) < 5 || cell[0]&0x80 == 0 {
		return 0, false
	}
	second := uint64(binary.BigEndian.Uint32(cell))<<8 | uint64(cell[4])
	hour, minute, rest := second>>12&31, second>>6&63, second&63
	if second>>dayShift+1 != l.day || hour > 23 || minute > 59 || rest > 59 || len(cell) != 5+fractionSize(digits) {
		if millis, ok = plainDatetime(cell, digits); ok {
			const dayMillis = 86400 * 1000
			l.day = second>>dayShift + 1
			l.midnight = millis - (millis%dayMillis+dayMillis)%dayMillis
		}
		return millis, ok
	}
	fraction, ok := FractionMillis(cell, digits)
	return l.midnight + int64(hour*3600+minute*60+rest)*1000 + fraction, ok
}

// Clock is [LastDay.Datetime] without the fraction of a cell, whose first bytes are given, cheaper: ok is false if it is not of
// the last day.
func (l *LastDay) Clock(cell *[5]byte) (millis int64, ok bool) {
	second := uint64(binary.BigEndian.Uint32(cell[:4]))<<8 | uint64(cell[4])
	hour, minute, rest := second>>12&31, second>>6&63, second&63
	return l.midnight + int64(hour*3600+minute*60+rest)*1000, second>>dayShift+1 == l.day && hour < 24 && minute < 60 && rest < 60
}

// FractionMillis is the milliseconds of a [LayoutDatetime] cell with so many digits after the second, none to three. For NULL
// and damaged cells ok is false.
func FractionMillis(cell []byte, digits int) (millis int64, ok bool) {
	switch n := len(cell); {
	case n != 5+fractionSize(digits):
	case n == 5:
		return 0, true
	case n == 6:
		return int64(cell[5]) * 10, cell[5] < 100
	case n == 7:
		fraction := binary.BigEndian.Uint16(cell[5:7])
		return int64(fraction / 10), fraction < 10_000
	}
	return 0, false
}
