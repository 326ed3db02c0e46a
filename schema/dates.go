package schema

import (
	"encoding/binary"
	"fmt"
	"math"
)

// fractionDigits is the number of a temporal column's digits after the second; types before MySQL 5.6 have none.
func fractionDigits(c *Column) (int, error) {
	switch c.Type {
	case typeTime, typeDatetime, typeTimestamp:
		return 0, nil
	}
	if c.Meta > 6 {
		return 0, fmt.Errorf("%d digits after the second are not possible in MySQL", c.Meta)
	}
	return int(c.Meta), nil
}

// calendar says whether c is a date of the calendar, and tells of one that is neither that nor a zero date.
func (v *invalid) calendar(c civil, scratch *Scratch) bool {
	if c.ok() {
		return true
	}
	if c.month != 0 && c.day != 0 && c.year != 0 {
		v.date(c, scratch)
	}
	return false
}

// adjusted moves years of two digits, if that is wanted.
func (c civil) adjusted(wanted bool) civil {
	if wanted {
		c.year = adjustYear(c.year)
	}
	return c
}

// orEpoch is the default for the text of a date that is none: the epoch where there must be a value.
func (m *mapper) orEpoch(epoch Value) (*Value, error) {
	if m.optional {
		return nil, nil
	}
	return &epoch, nil
}

func (m *mapper) mapDate() mapping {
	typ, epoch, layout := Type{Type: "int32", Name: dateName, Version: 1}, Value{Kind: Int}, Layout{}
	text := m.Time == TimeISOString
	adjust, invalid := !m.NoTimeAdjuster, m.invalid // the decoder is kept for long, and the mapper is not
	switch m.Time {
	case TimeConnect:
		typ.Name = connectDateName
	case TimeISOString:
		typ = Type{Type: "string", Name: isoDateName, Version: 1}
		epoch = Value{Kind: String, Bytes: []byte("1970-01-01Z")}
		layout.Kind = LayoutPlain
	}
	value := func(c civil, scratch *Scratch) Value {
		if !text {
			return Value{Kind: Int, Int: c.days()}
		}
		start := len(scratch.buf)
		scratch.buf = append(appendDate(scratch.buf, c), 'Z')
		return Value{Kind: String, Bytes: scratch.since(start)}
	}
	return mapping{
		typ:      typ,
		fallback: epoch,
		layout:   layout,
		parse: func(text string) (*Value, error) {
			c, ok := parseDateTime(text)
			if !ok {
				return m.orEpoch(epoch)
			}
			v := value(c.adjusted(adjust), new(Scratch))
			return &v, nil
		},
		decode: func(null Value) Decoder {
			return func(cell []byte, scratch *Scratch, out *Value) error {
				if cell == nil {
					*out = null
					return nil
				}
				c, err := readDate(cell)
				if err != nil || !invalid.calendar(c, scratch) {
					*out = null
					return err
				}
				*out = value(c.adjusted(adjust), scratch)
				return nil
			}
		},
	}
}

// datetimeForm is what a DATETIME is written as.
type datetimeForm uint8

const (
	datetimeMillis datetimeForm = iota
	datetimeMicros
	datetimeNanos
	datetimeText8601
)

func (m *mapper) datetimeType(digits int) (Type, datetimeForm) {
	switch m.Time {
	case TimeConnect:
		return Type{Type: "int64", Name: connectTimestampName, Version: 1}, datetimeMillis
	case TimeISOString:
		return Type{Type: "string", Name: isoTimestampName, Version: 1}, datetimeText8601
	case TimeNanoseconds:
		return Type{Type: "int64", Name: nanoTimestampName, Version: 1}, datetimeNanos
	case TimeAdaptive:
		if digits <= 3 {
			return Type{Type: "int64", Name: timestampName, Version: 1}, datetimeMillis
		}
	}
	return Type{Type: "int64", Name: microTimestampName, Version: 1}, datetimeMicros
}

func (m *mapper) mapDatetime() (mapping, error) {
	digits, err := fractionDigits(m.c)
	if err != nil {
		return mapping{}, err
	}
	old := m.c.Type == typeDatetime
	typ, form := m.datetimeType(digits)
	short := form == datetimeMillis && digits <= 3 && !old
	adjust, invalid := !m.NoTimeAdjuster, m.invalid
	var layout Layout
	epoch := Value{Kind: Int}
	switch {
	case short:
		layout = Layout{Kind: LayoutDatetime, Size: uint8(digits)}
	case form == datetimeText8601:
		layout.Kind = LayoutPlain
		epoch = Value{Kind: String, Bytes: []byte(epochText)}
	}
	return mapping{
		layout:   layout,
		typ:      typ,
		fallback: epoch,
		parse: func(text string) (*Value, error) {
			c, ok := parseDateTime(text)
			if !ok {
				return m.orEpoch(epoch)
			}
			c = c.adjusted(adjust)
			v, ok := datetimeValue(c, form, new(Scratch))
			if !ok {
				return nil, fmt.Errorf("%s does not fit into 64 bits of nanoseconds", datetimeText(c))
			}
			return &v, nil
		},
		decode: func(null Value) Decoder {
			return func(cell []byte, scratch *Scratch, out *Value) error {
				var err error
				if cell == nil {
					*out = null
					return nil
				}
				if short {
					if millis, ok := plainDatetime(cell, digits); ok {
						out.Kind, out.Int = Int, millis
						return nil
					}
				}
				var c civil
				if old {
					c, err = readOldDatetime(cell)
				} else {
					c, err = readDatetime(cell, digits)
				}
				if err != nil || !invalid.calendar(c, scratch) {
					*out = null
					return err
				}
				c = c.adjusted(adjust)
				v, ok := datetimeValue(c, form, scratch)
				if !ok {
					*out = null
					return invalid.nanos(c, scratch)
				}
				*out = v
				return nil
			}
		},
	}, nil
}

// plainDatetime is the short way for the usual DATETIME of up to three fraction digits: ms since the epoch. ok is false
// for what needs a closer look: damaged cells, years of two digits, dates that do not exist.
func plainDatetime(cell []byte, digits int) (millis int64, ok bool) {
	if len(cell) != 5+fractionSize(digits) || digits > 3 {
		return 0, false
	}
	hms := binary.BigEndian.Uint32(cell[1:])
	months := uint32(cell[0]&0x7f)<<10 | hms>>22
	year, month, day := months/13, months%13, hms>>17&31
	hour, minute, second := hms>>12&31, hms>>6&63, hms&63
	if cell[0]&0x80 == 0 || year < 100 || year > 9999 || month-1 >= 12 || day-1 >= 31 || hour > 23 || minute > 59 || second > 59 {
		return 0, false
	}
	if day > 28 && int(day) > daysIn(int(year), int(month)) {
		return 0, false
	}
	millis = (daysFrom(year, month, day)*86400 + int64(hour*3600+minute*60+second)) * 1000
	switch len(cell) {
	case 6:
		millis += int64(cell[5]) * 10
		ok = cell[5] < 100
	case 7:
		fraction := binary.BigEndian.Uint16(cell[5:])
		millis += int64(fraction / 10)
		ok = fraction < 10000
	default:
		ok = true
	}
	return millis, ok
}

// datetimeValue is c in a form; ms are cut towards the past. ok is false when ns do not fit.
func datetimeValue(c civil, form datetimeForm, scratch *Scratch) (v Value, ok bool) {
	switch form {
	case datetimeMicros:
		return Value{Kind: Int, Int: c.unixMicros()}, true
	case datetimeNanos:
		nanos, ok := unixNanos(c)
		return Value{Kind: Int, Int: nanos}, ok
	case datetimeText8601:
		start := len(scratch.buf)
		scratch.buf = appendClock(append(appendDate(scratch.buf, c), 'T'), c)
		scratch.buf = append(appendShortFraction(scratch.buf, c.micros), 'Z')
		return Value{Kind: String, Bytes: scratch.since(start)}, true
	}
	return Value{Kind: Int, Int: c.days()*(microsPerDay/1000) + c.microsOfDay()/1000}, true
}

// unixNanos is c in ns. Debezium adds the time to the day, so that of the first day that 64 bits reach, 1677-09-21,
// nothing is possible.
func unixNanos(c civil) (nanos int64, ok bool) {
	const nanosPerDay, lastDay = int64(microsPerDay) * 1000, math.MaxInt64 / (int64(microsPerDay) * 1000)
	days, time := c.days(), c.microsOfDay()*1000
	if days < -lastDay || days > lastDay || days*nanosPerDay > math.MaxInt64-time {
		return 0, false
	}
	return days*nanosPerDay + time, true
}
