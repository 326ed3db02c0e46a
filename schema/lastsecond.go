package schema

import (
	"encoding/binary"
	"slices"
)

// LastSecond writes the cells of one column of dates and times. It remembers the text of the last second and its day:
// rows written by one statement, or one after the other, often share them. Not safe for concurrent use. The zero value
// is ready.
type LastSecond struct {
	second   uint64    // as the cell has it; 0: nothing is remembered
	text     [3]uint64 // of the second, in words; without the milliseconds of a DATETIME
	size     int       // of a DATETIME's text
	midnight int64     // before the second, in seconds since the epoch
}

// AppendDatetime appends the milliseconds since the epoch of a [LayoutDatetime] cell with so many digits after the
// second. For NULL, damaged cells, dates that do not exist and those before 1973, ok is false and dst as it was, and the
// column's [Decoder] has to be asked.
func (l *LastSecond) AppendDatetime(dst, cell []byte, digits int) (text []byte, ok bool) {
	if len(cell) < 5 || len(cell) != 5+fractionSize(digits) || cell[0]&0x80 == 0 {
		return dst, false
	}
	millis := uint32('0' | '0'<<8 | '0'<<16) // three digits
	switch len(cell) {
	case 6:
		n := cell[5]
		if n >= 100 {
			return dst, false
		}
		millis = uint32(pairs[n]) | '0'<<16
	case 7:
		n := binary.BigEndian.Uint16(cell[5:])
		if n >= 10_000 {
			return dst, false
		}
		millis = uint32(pairs[n/100]) | uint32(pairs[n%100])<<16 // the fourth digit is cut off below
	}
	second := uint64(binary.BigEndian.Uint32(cell))<<8 | uint64(cell[4])
	if second != l.second && !l.datetime(second, cell[:5]) {
		return dst, false
	}
	n := len(dst)
	if cap(dst)-n < 16 {
		dst = slices.Grow(dst, 16)
	}
	// Stores of fixed length: what is too much is overwritten.
	b := dst[n : n+16]
	binary.LittleEndian.PutUint64(b, l.text[0])
	binary.LittleEndian.PutUint64(b[8:], l.text[1])
	binary.LittleEndian.PutUint32(b[l.size:l.size+4], millis)
	return dst[:n+l.size+3], true
}

// datetime remembers a second of nine to twelve digits.
func (l *LastSecond) datetime(second uint64, cell []byte) bool {
	const dateShift = 17
	hour, minute, rest := second>>12&31, second>>6&63, second&63
	midnight := l.midnight
	if second>>dateShift != l.second>>dateShift || hour > 23 || minute > 59 || rest > 59 {
		millis, ok := plainDatetime(cell, 0)
		if !ok || millis < 0 {
			return false
		}
		midnight = millis / (86400 * 1000) * 86400
	}
	seconds := uint64(midnight) + hour*3600 + minute*60 + rest
	if seconds < 1e8 {
		return false
	}
	high := seconds / 1e8
	low := eightDigits(uint32(seconds - high*1e8))
	digits := 4
	switch {
	case high < 10:
		digits = 1
	case high < 100:
		digits = 2
	case high < 1000:
		digits = 3
	}
	head := uint64(pairs[high/100%100]) | uint64(pairs[high%100])<<16
	l.second, l.midnight = second, midnight
	l.text[0] = head>>(32-8*digits) | low<<(8*digits)
	l.text[1] = low >> (64 - 8*digits)
	l.size = 8 + digits
	return true
}

// AppendTimestamp appends the text of a [LayoutTimestamp] cell in quotes. For NULL, zero and damaged cells, ok is false
// and dst as it was, and the column's [Decoder] has to be asked.
func (l *LastSecond) AppendTimestamp(dst, cell []byte) (text []byte, ok bool) {
	if len(cell) != 4 {
		return dst, false
	}
	second := binary.BigEndian.Uint32(cell)
	if second == 0 {
		return dst, false
	}
	if uint64(second) != l.second {
		l.timestamp(second)
	}
	n := len(dst)
	if cap(dst)-n < 25 {
		dst = slices.Grow(dst, 25)
	}
	b := dst[n : n+25]
	b[0] = '"'
	binary.LittleEndian.PutUint64(b[1:], l.text[0])
	binary.LittleEndian.PutUint64(b[9:], l.text[1])
	binary.LittleEndian.PutUint64(b[17:], l.text[2]|'"'<<32)
	return dst[:n+22], true
}

// timestamp remembers a second.
func (l *LastSecond) timestamp(second uint32) {
	if rest := int64(second) - l.midnight; l.second != 0 && 0 <= rest && rest < 86400 {
		var clock uint64
		clock, l.text[2] = clockText(uint32(rest))
		l.text[1] = l.text[1]&dayOfText | clock
	} else {
		l.text[0], l.text[1], l.text[2] = secondsText(second)
		l.midnight = int64(second - second%86400)
	}
	l.second = uint64(second)
}

// Timestamp is the text of a [LayoutTimestamp] cell of the last second, 20 bytes in little-endian words. For all other cells
// ok is false.
func (l *LastSecond) Timestamp(cell []byte) (text *[3]uint64, ok bool) {
	return &l.text, len(cell) == 4 && uint64(binary.BigEndian.Uint32(cell)) == l.second && l.second != 0
}
