package schema

import "encoding/binary"

// LastDay reads the cells of one column of dates with times for formats that write numbers. It remembers the last day:
// rows written one after the other often share it. Not safe for concurrent use. The zero value is ready.
type LastDay struct {
	day      uint64 // as the cell has it; 0: nothing is remembered
	midnight int64  // when it begins, in milliseconds since the epoch
}

// Datetime is the milliseconds since the epoch of a [LayoutDatetime] cell with so many digits after the second, the same
// for all cells of the column. For NULL, damaged cells, years of two digits and dates that do not exist, ok is false, and
// the column's [Decoder] has to be asked.
func (l *LastDay) Datetime(cell []byte, digits int) (millis int64, ok bool) {
	const dayShift = 17
	if len(cell) < 5 || cell[0]&0x80 == 0 {
		return 0, false
	}
	second := uint64(binary.BigEndian.Uint32(cell))<<8 | uint64(cell[4])
	hour, minute, rest := second>>12&31, second>>6&63, second&63
	if second>>dayShift != l.day || hour > 23 || minute > 59 || rest > 59 || len(cell) != 5+fractionSize(digits) {
		if millis, ok = plainDatetime(cell, digits); ok {
			const dayMillis = 86400 * 1000
			l.day = second >> dayShift
			l.midnight = millis - (millis%dayMillis+dayMillis)%dayMillis
		}
		return millis, ok
	}
	millis = l.midnight + int64(hour*3600+minute*60+rest)*1000
	switch len(cell) {
	case 6:
		return millis + int64(cell[5])*10, cell[5] < 100
	case 7:
		fraction := binary.BigEndian.Uint16(cell[5:])
		return millis + int64(fraction/10), fraction < 10_000
	}
	return millis, true
}
