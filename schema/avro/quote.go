package avro

import "unicode/utf8"

const upperHex = "0123456789ABCDEF"

// appendQuoted appends s as a JSON string as Jackson prints it into text: only quotes, backslashes and control
// characters are escaped. What is not UTF-8 is replaced.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	plain := 0
	for plain < len(s) && s[plain] >= ' ' && s[plain] < utf8.RuneSelf && s[plain] != '"' && s[plain] != '\\' {
		plain++
	}
	dst = append(dst, s[:plain]...)
	for _, r := range s[plain:] {
		dst = appendCharacter(dst, r)
	}
	return append(dst, '"')
}

// appendLatin appends bytes as a JSON string with a character from U+0000 to U+00FF for each: Avro's way with bytes.
func appendLatin(dst, b []byte) []byte {
	dst = append(dst, '"')
	for _, c := range b {
		dst = appendCharacter(dst, rune(c))
	}
	return append(dst, '"')
}

func appendCharacter(dst []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(dst, '\\', byte(r))
	case '\b':
		return append(dst, '\\', 'b')
	case '\t':
		return append(dst, '\\', 't')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	}
	if r < ' ' {
		return append(dst, '\\', 'u', '0', '0', upperHex[r>>4], upperHex[r&15])
	}
	return utf8.AppendRune(dst, r)
}
