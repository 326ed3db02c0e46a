package emitter

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// NameMode says how names of schemas or fields are made legal for Avro: Debezium's schema.name.adjustment.mode and
// field.name.adjustment.mode.
type NameMode string

// The modes. The empty one is the same as NamesAsTheyAre.
const (
	NamesAsTheyAre   NameMode = "none"
	AvroNames        NameMode = "avro"         // what is illegal becomes _
	AvroUnicodeNames NameMode = "avro_unicode" // what is illegal, _ too, becomes _u and its code in hexadecimal
)

// known says whether the mode is one of Debezium's.
func (m NameMode) known() bool {
	switch m {
	case "", NamesAsTheyAre, AvroNames, AvroUnicodeNames:
		return true
	}
	return false
}

// schemaName adjusts the full name of a schema, whose dots stay. Only the first character of the whole name is looked at
// as a first one: a later part that begins with a digit stays, as in Debezium, though Avro does not allow it.
func (m NameMode) schemaName(name string) string { return m.adjust(name, true) }

// fieldName adjusts the name of a column.
func (m NameMode) fieldName(name string) string { return m.adjust(name, false) }

// adjust follows io.debezium.schema.SchemaNameAdjuster.validFullname, which goes by UTF-16 units.
func (m NameMode) adjust(name string, dots bool) string {
	if m != AvroNames && m != AvroUnicodeNames {
		return name
	}
	legal := func(u uint16, first bool) bool {
		switch {
		case u >= 'a' && u <= 'z', u >= 'A' && u <= 'Z':
			return true
		case u == '_':
			return m == AvroNames
		case first:
			return false
		}
		return u >= '0' && u <= '9' || dots && u == '.'
	}
	var b strings.Builder
	for i, u := range utf16.Encode([]rune(name)) {
		switch {
		case legal(u, i == 0):
			b.WriteByte(byte(u))
		case m == AvroUnicodeNames:
			b.WriteString(escapeUnit(u))
		default:
			b.WriteByte('_')
			// A digit at the beginning stays behind the underscore: 1st and 2st are two names. Java's digits are those of
			// all scripts.
			if i == 0 && unicode.Is(unicode.Nd, rune(u)) {
				b.WriteRune(rune(u))
			}
		}
	}
	return b.String()
}

// escapeUnit is a UTF-16 unit as io.debezium.schema.UnicodeReplacementFunction writes it: padded by two zeros if it has
// one or two digits.
func escapeUnit(u uint16) string {
	hex := strconv.FormatUint(uint64(u), 16)
	if len(hex) <= 2 {
		hex = "00" + hex
	}
	return "_u" + hex
}
