package schema

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
			return func(cell []byte, _ *Scratch) (Value, error) {
				if cell == nil {
					return null, nil
				}
				c, err := readDate(cell)
				if err != nil || !c.ok() {
					return null, err
				}
				return Value{Kind: Int, Int: c.days()}, nil
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
			return func(cell []byte, _ *Scratch) (Value, error) {
				if cell == nil {
					return null, nil
				}
				if old {
					micros, err := readOldTime(cell)
					return Value{Kind: Int, Int: micros}, err
				}
				micros, err := readTime(cell, digits)
				return Value{Kind: Int, Int: micros}, err
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
	return mapping{
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
			return func(cell []byte, _ *Scratch) (v Value, err error) {
				if cell == nil {
					return null, nil
				}
				var c civil
				if old {
					c, err = readOldDatetime(cell)
				} else {
					c, err = readDatetime(cell, digits)
				}
				if err != nil || !c.ok() {
					return null, err
				}
				return datetimeValue(c, micros), nil
			}
		},
	}, nil
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
	return mapping{
		typ:      Type{Type: "string", Name: zonedName, Version: 1},
		fallback: Value{Kind: String, Bytes: []byte(epochText)},
		parse:    func(text string) (Value, bool) { return parseTimestamp(text, digits, optional) },
		decode: func(null Value) Decoder {
			return func(cell []byte, scratch *Scratch) (Value, error) {
				if cell == nil {
					return null, nil
				}
				var bigEndian [4]byte
				if old && len(cell) == 4 { // the same, little-endian
					bigEndian = [4]byte{cell[3], cell[2], cell[1], cell[0]}
					cell = bigEndian[:]
				}
				seconds, micros, err := readTimestamp(cell, digits)
				if err != nil || seconds == 0 && micros == 0 {
					return null, err
				}
				start := len(scratch.buf)
				scratch.buf = appendTimestamp(scratch.buf, civilOfUnix(seconds, micros), digits)
				return Value{Kind: String, Bytes: scratch.since(start)}, nil
			}
		},
	}, nil
}
