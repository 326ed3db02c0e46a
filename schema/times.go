package schema

import "fmt"

func (m *mapper) timeType() Type {
	switch m.Time {
	case TimeConnect:
		return Type{Type: "int32", Name: connectTimeName, Version: 1}
	case TimeISOString:
		return Type{Type: "string", Name: isoTimeName, Version: 1}
	case TimeNanoseconds:
		return Type{Type: "int64", Name: nanoTimeName, Version: 1}
	}
	return Type{Type: "int64", Name: microTimeName, Version: 1}
}

func (m *mapper) mapTime() (mapping, error) {
	digits, err := fractionDigits(m.c)
	if err != nil {
		return mapping{}, err
	}
	old := m.c.Type == typeTime
	midnight, layout := Value{Kind: Int}, Layout{}
	if m.Time == TimeISOString {
		midnight, layout.Kind = Value{Kind: String, Bytes: []byte("00:00:00Z")}, LayoutPlain
	}
	mode, invalid := m.Time, m.invalid
	return mapping{
		typ:      m.timeType(),
		fallback: midnight,
		layout:   layout,
		parse: func(text string) (*Value, error) {
			micros, ok := parseTime(text)
			if !ok {
				return nil, errNoValue
			}
			v, ok := timeValue(micros, mode, new(Scratch))
			if !ok {
				return nil, fmt.Errorf("%s is not a time of day", timeText(micros))
			}
			return &v, nil
		},
		decode: func(null Value) Decoder {
			return func(cell []byte, scratch *Scratch, out *Value) error {
				if cell == nil {
					*out = null
					return nil
				}
				var micros int64
				var err error
				if old {
					micros, err = readOldTime(cell)
				} else {
					micros, err = readTime(cell, digits)
				}
				if err != nil {
					return err
				}
				v, ok := timeValue(micros, mode, scratch)
				if !ok {
					*out = null
					return invalid.time(micros, scratch)
				}
				*out = v
				return nil
			}
		},
	}, nil
}

// timeValue is a TIME in µs as the mode has it. ok is false for what is not a time of day in the modes that know only
// those: midnight at the end of the day is one.
func timeValue(micros int64, mode TimeMode, scratch *Scratch) (v Value, ok bool) {
	switch mode {
	case TimeNanoseconds:
		return Value{Kind: Int, Int: micros * 1000}, true
	case TimeConnect:
		return Value{Kind: Int, Int: micros / 1000}, micros >= 0 && micros <= microsPerDay
	case TimeISOString:
		if micros < 0 || micros > microsPerDay {
			return Value{}, false
		}
		micros %= microsPerDay
		start := len(scratch.buf)
		scratch.buf = appendClock(scratch.buf, clockOf(micros))
		scratch.buf = append(appendShortFraction(scratch.buf, int(micros%1e6)), 'Z')
		return Value{Kind: String, Bytes: scratch.since(start)}, true
	}
	return Value{Kind: Int, Int: micros}, true
}

// clockOf is the hours, minutes and seconds of a TIME that is not negative.
func clockOf(micros int64) civil {
	seconds := int(micros / 1e6)
	return civil{hour: seconds / 3600, minute: seconds / 60 % 60, second: seconds % 60, micros: int(micros % 1e6)}
}
