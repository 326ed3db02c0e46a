package schema

import (
	"fmt"
	"strings"
)

func mapEnum(c *Column) mapping {
	labels := labelBytes(c.Labels)
	return mapping{
		typ:      Type{Type: "string", Name: enumName, Version: 1, Parameters: []Parameter{{"allowed", allowed(c)}}},
		fallback: Value{Kind: String, Bytes: []byte{}},
		parse:    textDefault,
		decode: func(null Value) Decoder {
			return func(cell []byte, _ *Scratch, out *Value) error {
				index := 0
				switch len(cell) {
				case 0:
					if cell == nil {
						*out = null
						return nil
					}
					return wrongSize("ENUM", 0, 1)
				case 1:
					index = int(cell[0])
				case 2:
					index = int(cell[0]) | int(cell[1])<<8
				default:
					return wrongSize("ENUM", len(cell), 2)
				}
				switch {
				case index == 0: // a value that was not one of the labels
					*out = Value{Kind: String, Bytes: []byte{}}
					return nil
				case index > len(labels):
					*out = null
					return nil
				}
				*out = Value{Kind: String, Bytes: labels[index-1]}
				return nil
			}
		},
	}
}

func mapSet(c *Column) mapping {
	labels := labelBytes(c.Labels)
	return mapping{
		typ:      Type{Type: "string", Name: enumSetName, Version: 1, Parameters: []Parameter{{"allowed", allowed(c)}}},
		fallback: Value{Kind: String, Bytes: []byte{}},
		parse:    textDefault,
		decode: func(null Value) Decoder {
			return func(cell []byte, scratch *Scratch, out *Value) error {
				if cell == nil {
					*out = null
					return nil
				}
				if len(cell) < 1 || len(cell) > 8 {
					return fmt.Errorf("SET of %d bytes, want 1 to 8", len(cell))
				}
				set := uint64(0)
				for i, b := range cell {
					set |= uint64(b) << (8 * i)
				}
				if set>>len(labels) != 0 {
					return fmt.Errorf("SET has member %b, but there are only %d", set, len(labels))
				}
				if set&(set-1) == 0 { // one member or none
					for i, label := range labels {
						if set == 1<<i {
							*out = Value{Kind: String, Bytes: label}
							return nil
						}
					}
					*out = Value{Kind: String, Bytes: []byte{}}
					return nil
				}
				start := len(scratch.buf)
				for i, label := range labels {
					if set&(1<<i) == 0 {
						continue
					}
					if len(scratch.buf) > start {
						scratch.buf = append(scratch.buf, ',')
					}
					scratch.buf = append(scratch.buf, label...)
				}
				*out = Value{Kind: String, Bytes: scratch.since(start)}
				return nil
			}
		},
	}
}

func labelBytes(labels []string) [][]byte {
	all := make([][]byte, len(labels))
	for i, label := range labels {
		all[i] = []byte(label)
	}
	return all
}

// allowed is the parameter that lists an ENUM's or SET's labels. Debezium takes them from the text of the definition,
// of which it undoes the escapes of quotes but no others, and puts a backslash before commas. Without a definition the
// labels are written as SHOW CREATE TABLE would.
func allowed(c *Column) string {
	var b strings.Builder
	write := func(i int, label string) {
		if i > 0 {
			b.WriteByte(',')
		}
		label = strings.ReplaceAll(label, ",", `\,`)
		label = strings.ReplaceAll(label, `\'`, "'")
		b.WriteString(strings.ReplaceAll(label, "''", "'"))
	}
	if c.Def != nil && len(c.Def.Labels) > 0 {
		for i, label := range c.Def.Labels {
			write(i, label)
		}
	} else {
		for i, label := range c.Labels {
			write(i, escapeLabel.Replace(label))
		}
	}
	return b.String()
}

// escapeLabel has the escapes that the server uses when it prints a string.
var escapeLabel = strings.NewReplacer("'", "''", "\\", `\\`, "\x00", `\0`, "\n", `\n`, "\r", `\r`)
