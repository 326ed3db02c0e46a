package schema

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// alter does what Debezium's column mappers do: one of a mask, a truncation and the source types. Of those that match
// a column the first counts: truncation, asterisks, source types, hash.
func (m *mapper) alter(mapped *mapping) error {
	truncate, fixed, hash := m.mask(MaskTruncate), m.mask(MaskFixed), m.mask(MaskHash)
	length := m.length()
	p := &mapped.typ.Parameters
	switch {
	case truncate != nil:
		if length >= 0 && length <= truncate.Length {
			return nil
		}
		*p = append(*p, Parameter{"truncateLength", strconv.Itoa(truncate.Length)})
		mapped.wrap = truncating(truncate.Length, mapped.binary)
	case fixed != nil:
		*p = append(*p, Parameter{"masked", "true"})
		if m.isCharacter() {
			mapped.wrap = asterisks(fixed.Length, mapped.fallback.Kind)
		}
	default:
		source := m.showsSource()
		if source {
			*p = m.sourceParameters(*p)
		}
		if hash == nil {
			return nil
		}
		if !source {
			*p = append(*p, Parameter{"masked", "true"})
		}
		if !m.isCharacter() {
			break
		}
		digest := hashFor(hash.Algorithm)
		if digest == nil {
			return fmt.Errorf("its mask has the hash algorithm %q: %w", hash.Algorithm, CheckHash(hash.Algorithm))
		}
		mapped.wrap = hashing(hash, digest, length)
	}
	if mapped.wrap != nil {
		mapped.layout = Layout{Kind: LayoutMasked}
	}
	return nil
}

// mask is the first mask of a kind that is for the column; nil for none.
func (m *mapper) mask(kind MaskKind) *Mask {
	for i := range m.Masks {
		if k := &m.Masks[i]; k.Kind == kind && k.matches(m.database, m.table, m.c.Name) {
			return k
		}
	}
	return nil
}

// length is the column's length as its definition has it; -1 for none.
func (m *mapper) length() int {
	_, length, _ := m.c.source()
	return length
}

// isCharacter says whether Debezium takes the column for text, and so masks it: CHAR to LONGTEXT, ENUM and SET. All
// others stay in the clear, though their schema says that they are masked.
func (m *mapper) isCharacter() bool {
	c := m.c
	switch c.Type {
	case typeEnum, typeSet:
		return true
	}
	if !isText(c) {
		return false
	}
	if c.Def == nil {
		return c.Collation != binaryCollation
	}
	switch kind, _, _ := bytes.Cut([]byte(c.Def.Type), []byte(" ")); string(bytes.ToUpper(kind)) {
	case "BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB", "JSON", "UUID", "INET4", "INET6", "VECTOR":
		return false
	case "LONG":
		return c.Collation != binaryCollation // LONG VARBINARY
	}
	return true
}

// asterisks replaces every value, NULL included.
func asterisks(n int, kind Kind) func(Decoder) Decoder {
	if kind != Bytes {
		kind = String
	}
	mask := Value{Kind: kind, Bytes: bytes.Repeat([]byte{'*'}, n)}
	return func(Decoder) Decoder {
		return func(_ []byte, _ *Scratch, out *Value) error {
			*out = mask
			return nil
		}
	}
}

// truncating cuts text after n characters, and the bytes of binary columns after n bytes.
func truncating(n int, binary bool) func(Decoder) Decoder {
	return func(decode Decoder) Decoder {
		return func(cell []byte, scratch *Scratch, out *Value) error {
			err := decode(cell, scratch, out)
			switch {
			case out.Kind == String:
				out.Bytes = firstUnits(out.Bytes, n)
			case out.Kind == Bytes && binary && len(out.Bytes) > n:
				out.Bytes = out.Bytes[:n]
			}
			return err
		}
	}
}

// firstUnits is the beginning of text up to n UTF-16 units, which is what Java counts. A character of two units is not
// cut in half but left out.
func firstUnits(text []byte, n int) []byte {
	if len(text) <= n { // a unit takes at least one byte
		return text
	}
	for i := 0; i < len(text); {
		size := 1
		if b := text[i]; b >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRune(text[i:]); r > 0xffff {
				n--
			}
		}
		if n--; n < 0 {
			return text[:i]
		}
		i += size
	}
	return text
}

// hashing replaces every value but NULL by the hexadecimal text of its hash, cut at the column's length.
func hashing(mask *Mask, digest digest, length int) func(Decoder) Decoder {
	salt, v2 := []byte(mask.Salt), mask.V2
	return func(decode Decoder) Decoder {
		return func(cell []byte, scratch *Scratch, out *Value) error {
			if err := decode(cell, scratch, out); err != nil {
				return err
			}
			if out.Kind != String && out.Kind != Bytes {
				return nil
			}
			start := len(scratch.buf)
			scratch.buf = append(scratch.buf, salt...)
			if v2 {
				scratch.buf = append(scratch.buf, out.Bytes...)
			} else {
				scratch.buf = appendJavaString(scratch.buf, out.Bytes)
			}
			end := len(scratch.buf)
			scratch.buf = digest(scratch.buf, scratch.buf[start:])
			out.Bytes = scratch.since(end)
			if length > 0 && len(out.Bytes) > length {
				out.Bytes = out.Bytes[:length]
			}
			return nil
		}
	}
}
