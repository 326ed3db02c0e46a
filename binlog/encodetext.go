package binlog

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tidemark-cdc/tidemark/schema"
)

// binaryCollation is the collation of BINARY, VARBINARY, BLOB and of everything with CHARACTER SET binary.
const binaryCollation = 63

// encodeText is the inverse of [schema.DecodeText]: text in the character set of a collation. It finds the bytes by
// decoding all that could be a character, which is slow: it is for defaults, of which a table has few.
func encodeText(collation uint32, text string) ([]byte, error) {
	if collation == binaryCollation {
		return []byte(text), nil
	}
	is := func(probe, want string) bool {
		got, err := schema.DecodeText(collation, []byte(probe))
		return err == nil && got == want
	}
	if _, err := schema.DecodeText(collation, nil); err != nil {
		return nil, err
	}
	switch {
	case is("é漢", "é漢"):
		return []byte(text), nil
	case is("\x00A\x00B", "AB"):
		return appendUTF16(nil, text, binary.BigEndian), nil
	case is("A\x00B\x00", "AB"):
		return appendUTF16(nil, text, binary.LittleEndian), nil
	case is("\x00\x00\x00A", "A"):
		var b []byte
		for _, r := range text {
			b = binary.BigEndian.AppendUint32(b, uint32(r))
		}
		return b, nil
	}
	var b []byte
	for _, r := range text {
		char := encodeRune(is, r)
		if char == "" {
			return nil, fmt.Errorf("%q is not in the column's character set (collation id %d)", r, collation)
		}
		b = append(b, char...)
	}
	return b, nil
}

func appendUTF16(dst []byte, text string, order binary.AppendByteOrder) []byte {
	for _, unit := range utf16.Encode([]rune(text)) {
		dst = order.AppendUint16(dst, unit)
	}
	return dst
}

// encodeRune tries all characters of one to three bytes; those of gb18030 that have four are not found.
func encodeRune(is func(probe, want string) bool, r rune) string {
	want := string(r)
	if r < utf8.RuneSelf && is(want, want) {
		return want
	}
	for first := range 256 {
		if probe := string([]byte{byte(first)}); is(probe, want) {
			return probe
		}
	}
	for first := 0x81; first <= 0xfe; first++ {
		for second := 0x40; second <= 0xfe; second++ {
			if probe := string([]byte{byte(first), byte(second)}); is(probe, want) {
				return probe
			}
		}
	}
	for second := 0xa1; second <= 0xfe; second++ { // the third set of EUC
		for third := 0xa1; third <= 0xfe; third++ {
			if probe := string([]byte{0x8f, byte(second), byte(third)}); is(probe, want) {
				return probe
			}
		}
	}
	return ""
}

// mayBeHex says whether the text of a default may come from 0x…: SHOW CREATE TABLE prints what is no text of the basic plane
// so, and definitions keep it without its last digit.
func mayBeHex(c *schema.Column, text string) bool {
	if len(text)%2 == 0 || strings.Trim(text, "0123456789ABCDEFabcdef") != "" {
		return false
	}
	if width := int(c.Meta & 0xff); c.Type == typeString && c.Collation == binaryCollation && width < 0x80 && len(text) != 2*width-1 {
		return false // of a BINARY all bytes are printed
	}
	for last := range 16 {
		b, err := hex.DecodeString(text + fmt.Sprintf("%x", last))
		if err != nil {
			return false
		}
		if c.Collation == binaryCollation {
			if !utf8.Valid(b) || beyondBMP(string(b)) {
				return true
			}
		} else if decoded, err := schema.DecodeText(c.Collation, b); err == nil && !strings.ContainsRune(decoded, utf8.RuneError) && beyondBMP(decoded) {
			return true
		}
	}
	return false
}

func beyondBMP(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r > 0xffff })
}
