package schema

import "encoding/binary"

import "fmt"

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

func mapDate(optional bool) mapping {
	return mapping{
		typ:      Type{Type: "int32", Name: dateName, Version: 1},
		fallback: Value{Kind: Int},
		parse: func(text string) (Value, bool) {
			c, ok := parseDateTime(text)
			if !ok {
				return Value{Kind: Int}, !optional
			}
			return Value{Kind: Int, Int: c.days()}, true
		},
		decode: func(null Value) Decoder {
			return func(cell []byte, _ *Scratch, out *Value) error {
				if cell == nil {
					*out = null
					return nil
				}
				c, err := readDate(cell)
				if err != nil || !c.ok() {
					*out = null
					return err
				}
				*out = Value{Kind: Int, Int: c.days()}
				return nil
			}
		},
	}
}

func mapTime(c *Column) (mapping, error) {
	digits, err := fractionDigits(c)
	if err != nil {
		return mapping{}, err
	}
	old := c.Type == typeTime
	return mapping{
		typ:      Type{Type: "int64", Name: timeName, Version: 1},
		fallback: Value{Kind: Int},
		parse:    parseTime,
		decode: func(null Value) Decoder {
			return func(cell []byte, _ *Scratch, out *Value) error {
				if cell == nil {
					*out = null
					return nil
				}
				if old {
					micros, err := readOldTime(cell)
					*out = Value{Kind: Int, Int: micros}
					return err
				}
				micros, err := readTime(cell, digits)
				*out = Value{Kind: Int, Int: micros}
				return err
			}
		},
	}, nil
}

func mapDatetime(c *Column, optional bool) (mapping, error) {
	digits, err := fractionDigits(c)
	if err != nil {
		return mapping{}, err
	}
	old := c.Type == typeDatetime
	typ, micros := Type{Type: "int64", Name: timestampName, Version: 1}, digits > 3
	if micros {
		typ.Name = microsName
	}
	var layout Layout
	if !micros && !old {
		layout = Layout{Kind: LayoutDatetime, Size: digits}
	}
	return mapping{
		layout:   layout,
		typ:      typ,
		fallback: Value{Kind: Int},
		parse: func(text string) (Value, bool) {
			c, ok := parseDateTime(text)
			if !ok {
				return Value{Kind: Int}, !optional
			}
			return datetimeValue(c, micros), true
		},
		decode: func(null Value) Decoder {
			return func(cell []byte, _ *Scratch, out *Value) error {
				var err error
				if cell == nil {
					*out = null
					return nil
				}
				if millis, ok := plainDatetime(cell, digits); ok && !micros && !old {
					out.Kind, out.Int = Int, millis
					return nil
				}
				var c civil
				if old {
					c, err = readOldDatetime(cell)
				} else {
					c, err = readDatetime(cell, digits)
				}
				if err != nil || !c.ok() {
					*out = null
					return err
				}
				*out = datetimeValue(c, micros)
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

// datetimeValue is c in µs or ms; ms are cut towards the past, which matters for defaults only.
func datetimeValue(c civil, micros bool) Value {
	if micros {
		return Value{Kind: Int, Int: c.unixMicros()}
	}
	return Value{Kind: Int, Int: c.days()*(microsPerDay/1000) + c.microsOfDay()/1000}
}

func mapTimestamp(c *Column, optional bool) (mapping, error) {
	digits, err := fractionDigits(c)
	if err != nil {
		return mapping{}, err
	}
	old := c.Type == typeTimestamp
	layout := Layout{Kind: LayoutPlain}
	if digits == 0 && !old {
		layout.Kind = LayoutTimestamp
	}
	return mapping{
		typ:      Type{Type: "string", Name: zonedName, Version: 1},
		fallback: Value{Kind: String, Bytes: []byte(epochText)},
		layout:   layout,
		parse:    func(text string) (Value, bool) { return parseTimestamp(text, digits, optional) },
		decode: func(null Value) Decoder {
			return func(cell []byte, scratch *Scratch, out *Value) error {
				if cell == nil {
					*out = null
					return nil
				}
				var bigEndian [4]byte
				if old && len(cell) == 4 { // the same, little-endian
					bigEndian = [4]byte{cell[3], cell[2], cell[1], cell[0]}
					cell = bigEndian[:]
				}
				seconds, micros, err := readTimestamp(cell, digits)
				if err != nil || seconds == 0 && micros == 0 {
					*out = null
					return err
				}
				start := len(scratch.buf)
				if digits == 0 {
					scratch.buf = appendSeconds(scratch.buf, uint32(seconds))
					out.Kind, out.Bytes = String, scratch.since(start)
					return nil
				}
				scratch.buf = appendTimestamp(scratch.buf, civilOfUnix(seconds, micros), digits)
				*out = Value{Kind: String, Bytes: scratch.since(start)}
				return nil
			}
		},
	}, nil
}
