package schema

// mapTimestamp maps TIMESTAMP: text in every mode of dates and times.
func (m *mapper) mapTimestamp() (mapping, error) {
	digits, err := fractionDigits(m.c)
	if err != nil {
		return mapping{}, err
	}
	old := m.c.Type == typeTimestamp
	layout := Layout{Kind: LayoutPlain}
	if digits == 0 && !old {
		layout.Kind = LayoutTimestamp
	}
	epoch := Value{Kind: String, Bytes: []byte(epochText)}
	return mapping{
		typ:      Type{Type: "string", Name: zonedName, Version: 1},
		fallback: epoch,
		layout:   layout,
		parse: func(text string) (*Value, error) {
			if isEpoch(text) {
				return m.orEpoch(epoch)
			}
			c, ok := parseDateTime(text)
			if !ok {
				return nil, errNoValue
			}
			return &Value{Kind: String, Bytes: appendTimestamp(nil, c.adjusted(!m.NoTimeAdjuster), digits)}, nil
		},
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
