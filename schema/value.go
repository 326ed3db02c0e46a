// Package schema knows what a table looks like at one moment, how its columns map to Kafka Connect types, and how the
// bytes of one cell become one [Value].
package schema

import "slices"

// Kind says which field of a [Value] counts and how a format writes it.
type Kind uint8

// The kinds are those of Kafka Connect's data model, and the three composites that MySQL columns need.
const (
	Null     Kind = iota // no value; the other fields are unspecified
	Bool                 // Int is 0 or 1
	Int                  // int8, int16, int32 or int64 in Int
	Float                // a 32-bit float, widened in Float; text has the digits of the 32-bit one
	Double               // Float
	String               // Bytes, valid UTF-8
	Bytes                // Bytes
	Point                // a WKB point in Bytes, its SRID in Int (NoSRID for none): {x,y,wkb,srid}
	Geometry             // WKB in Bytes, its SRID in Int (NoSRID for none): {wkb,srid}
	Vector               // little-endian 32-bit floats in Bytes
)

// NoSRID stands in Value.Int for a geometry without a spatial reference system.
const NoSRID = -1

// Value is one cell as Kafka Connect sees it: what a format writes, without interface or heap. The fields that do not
// count are unspecified: decoders save the time to clear them. Bytes may alias the
// row image, the [Scratch] it was decoded with or memory of the decoder, so it must not be written to, and holds until
// the next row.
type Value struct {
	Kind  Kind
	Int   int64
	Float float64
	Bytes []byte
}

// Scratch is the memory for decoded cells that cannot alias the row image (decimals, charsets, JSON text). The owner
// resets it between rows. Not safe for concurrent use. The zero value is ready.
type Scratch struct {
	buf   []byte
	table *Table
}

// Of says whose rows are decoded: tables of equal columns may share decoders, and what they tell of a value
// ([Modes.Invalid]) names the table. Without it that is the table that the column was mapped of.
func (s *Scratch) Of(t *Table) { s.table = t }

// maxKeptScratch is how much memory a Scratch keeps for the next row. One JSON document of many megabytes must not
// hold its size for the rest of the run.
const maxKeptScratch = 1 << 20

// Reset forgets everything decoded so far; Values that alias it are no longer valid.
func (s *Scratch) Reset() {
	if cap(s.buf) > maxKeptScratch {
		s.buf = nil
	}
	s.buf = s.buf[:0]
}

// take returns n bytes with unspecified content. Slices taken before stay valid.
func (s *Scratch) take(n int) []byte {
	start := len(s.buf)
	if cap(s.buf)-start < n {
		s.buf = slices.Grow(s.buf, n)
	}
	s.buf = s.buf[:start+n]
	return s.buf[start : start+n : start+n]
}

// since returns everything appended to buf after it was start bytes long.
func (s *Scratch) since(start int) []byte {
	return s.buf[start:len(s.buf):len(s.buf)]
}
