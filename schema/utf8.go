package schema

import (
	"encoding/binary"
	"unicode/utf8"
)

// decodeUTF8 makes valid UTF-8 of bytes from a column that says it is UTF-8 (which MySQL checks on the way in, but not
// in files of old versions). Malformed sequences are replaced as Java's new String(bytes, UTF_8) replaces them, which is
// what Debezium writes: one U+FFFD for the longest prefix of a valid sequence, and one for an encoded surrogate.
func decodeUTF8(text []byte, scratch *Scratch) []byte {
	if validUTF8(text) {
		return text
	}
	start := len(scratch.buf)
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if r == utf8.RuneError && n == 1 {
			n = malformedLength(text)
		}
		scratch.buf = utf8.AppendRune(scratch.buf, r)
		text = text[n:]
	}
	return scratch.since(start)
}

// validUTF8 is utf8.Valid, but fast also after the first character that is not ASCII.
func validUTF8(s []byte) bool {
	for {
		for len(s) >= 8 && binary.LittleEndian.Uint64(s)&0x8080808080808080 == 0 {
			s = s[8:]
		}
		for len(s) > 0 && s[0] < utf8.RuneSelf {
			s = s[1:]
		}
		switch {
		case len(s) == 0:
			return true
		case len(s) >= 2 && s[0] >= 0xc2 && s[0] < 0xe0:
			if s[1]&0xc0 != 0x80 {
				return false
			}
			s = s[2:]
		default:
			r, n := utf8.DecodeRune(s)
			if r == utf8.RuneError && n == 1 {
				return false
			}
			s = s[n:]
		}
	}
}

// malformedLength is how many bytes of text, which begins with a malformed sequence, one replacement stands for.
func malformedLength(text []byte) int {
	continues := func(i int) bool { return i < len(text) && text[i]&0xc0 == 0x80 }
	switch b := text[0]; {
	case b&0xf0 == 0xe0: // of three bytes
		if !continues(1) || b == 0xe0 && text[1] < 0xa0 {
			return 1
		}
		if !continues(2) {
			return 2
		}
		return 3 // a surrogate
	case b >= 0xf0 && b <= 0xf4: // of four bytes
		if !continues(1) || b == 0xf0 && text[1] < 0x90 || b == 0xf4 && text[1] > 0x8f {
			return 1
		}
		if !continues(2) {
			return 2
		}
		return 3
	}
	return 1
}
