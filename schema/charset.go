package schema

import (
	"fmt"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/transform"
)

// binaryCollation is the collation of BINARY, VARBINARY, BLOB and of everything with CHARACTER SET binary.
const binaryCollation = 63

// charsetName is the character set of a collation id; "" if the id is not known. Ids never change their meaning; new
// server versions add some. Those from 576 on are MariaDB's.
func charsetName(collation uint32) string {
	switch id := collation; {
	case id >= 1024 && id < 2048: // without padding
		return charsetName(id - 1024)
	case id >= 576 && id < 608, id >= 2048 && id < 2304:
		return "utf8mb3"
	case id >= 608 && id < 640, id >= 2304 && id < 2560:
		return "utf8mb4"
	case id >= 640 && id < 672, id >= 2560 && id < 2816:
		return "ucs2"
	case id >= 672 && id < 704, id >= 2816 && id < 3072:
		return "utf16"
	case id >= 736 && id < 768, id >= 3072 && id < 3328:
		return "utf32"
	case id == 45, id == 46, id >= 224 && id <= 247, id >= 255 && id <= 323:
		return "utf8mb4"
	case id == 33, id == 76, id == 83, id >= 192 && id <= 215, id == 223:
		return "utf8mb3"
	case id == 5, id == 8, id == 15, id == 31, id >= 47 && id <= 49, id == 94:
		return "latin1"
	case id == 11, id == 65:
		return "ascii"
	case id == binaryCollation:
		return "binary"
	case id == 35, id == 90, id >= 128 && id <= 151, id == 159:
		return "ucs2"
	case id == 54, id == 55, id >= 101 && id <= 124:
		return "utf16"
	case id == 56, id == 62:
		return "utf16le"
	case id == 60, id == 61, id >= 160 && id <= 183:
		return "utf32"
	case id >= 248 && id <= 250:
		return "gb18030"
	}
	switch collation {
	case 1, 84:
		return "big5"
	case 2, 9, 21, 27, 77:
		return "latin2"
	case 3, 69:
		return "dec8"
	case 4, 80:
		return "cp850"
	case 6, 72:
		return "hp8"
	case 7, 74:
		return "koi8r"
	case 10, 82:
		return "swe7"
	case 12, 91:
		return "ujis"
	case 13, 88:
		return "sjis"
	case 14, 23, 50, 51, 52:
		return "cp1251"
	case 16, 71:
		return "hebrew"
	case 18, 89:
		return "tis620"
	case 19, 85:
		return "euckr"
	case 20, 41, 42, 79:
		return "latin7"
	case 22, 75:
		return "koi8u"
	case 24, 86:
		return "gb2312"
	case 25, 70:
		return "greek"
	case 26, 34, 44, 66, 99:
		return "cp1250"
	case 28, 87:
		return "gbk"
	case 29, 58, 59:
		return "cp1257"
	case 30, 78:
		return "latin5"
	case 32, 64:
		return "armscii8"
	case 36, 68:
		return "cp866"
	case 37, 73:
		return "keybcs2"
	case 38, 43:
		return "macce"
	case 39, 53:
		return "macroman"
	case 40, 81:
		return "cp852"
	case 57, 67:
		return "cp1256"
	case 92, 93:
		return "geostd8"
	case 95, 96:
		return "cp932"
	case 97, 98:
		return "eucjpms"
	}
	return ""
}

// A textDecoder gives text as UTF-8: the text itself when it is that already, else a copy in scratch.
type textDecoder func(text []byte, scratch *Scratch) []byte

// textDecoderFor finds the decoder of a collation, or of a character set's name when the collation is not known (0).
func textDecoderFor(collation uint32, charset string) (textDecoder, error) {
	if collation != 0 {
		if charset = charsetName(collation); charset == "" {
			return nil, fmt.Errorf("collation id %d is not known", collation)
		}
	}
	switch charset {
	case "utf8mb4", "utf8mb3", "utf8":
		return decodeUTF8, nil
	case "latin1":
		return singleByte(charmap.Windows1252, nil, false), nil
	case "ascii":
		return decodeASCII, nil
	case "cp1250":
		return singleByte(charmap.Windows1250, nil, false), nil
	case "cp1251":
		return singleByte(charmap.Windows1251, nil, false), nil
	case "cp1256":
		return singleByte(charmap.Windows1256, nil, false), nil
	case "cp1257":
		return singleByte(charmap.Windows1257, nil, false), nil
	case "cp850":
		return singleByte(charmap.CodePage850, nil, false), nil
	case "cp852":
		return singleByte(charmap.CodePage852, nil, false), nil
	case "cp866":
		return singleByte(charmap.CodePage866, nil, false), nil
	case "koi8r":
		return singleByte(charmap.KOI8R, nil, false), nil
	case "koi8u":
		return singleByte(charmap.KOI8U, map[byte]rune{0x95: '•', 0xae: '╝', 0xbe: '╬'}, false), nil
	case "latin2":
		return singleByte(charmap.ISO8859_2, nil, true), nil
	case "latin5":
		return singleByte(charmap.ISO8859_9, nil, true), nil
	case "latin7":
		return singleByte(charmap.ISO8859_13, nil, true), nil
	case "greek":
		return singleByte(charmap.ISO8859_7, nil, true), nil
	case "hebrew":
		return singleByte(charmap.ISO8859_8, nil, true), nil
	case "macroman":
		return singleByte(charmap.Macintosh, nil, false), nil
	case "tis620":
		return singleByte(charmap.Windows874, map[byte]rune{0xa0: utf8.RuneError}, true), nil
	case "armscii8":
		return tableDecoder(armscii8), nil
	case "dec8":
		return tableDecoder(dec8), nil
	case "geostd8":
		return tableDecoder(geostd8), nil
	case "hp8":
		return tableDecoder(hp8), nil
	case "keybcs2":
		return tableDecoder(keybcs2), nil
	case "macce":
		return tableDecoder(macce), nil
	case "swe7":
		return decodeSwe7, nil
	case "big5":
		return multiByte(traditionalchinese.Big5), nil
	case "cp932", "sjis":
		return multiByte(japanese.ShiftJIS), nil
	case "ujis", "eucjpms":
		return multiByte(japanese.EUCJP), nil
	case "euckr":
		return multiByte(korean.EUCKR), nil
	case "gb2312", "gbk":
		return multiByte(simplifiedchinese.GBK), nil
	case "gb18030":
		return multiByte(simplifiedchinese.GB18030), nil
	case "utf16", "ucs2":
		return decodeUTF16BE, nil
	case "utf16le":
		return decodeUTF16LE, nil
	case "utf32":
		return decodeUTF32, nil
	case "":
		return nil, fmt.Errorf("the character set is not known")
	}
	return nil, fmt.Errorf("character set %s is not supported", charset)
}

// DecodeText turns text in the character set of a MySQL collation into UTF-8, as ENUM and SET labels in TABLE_MAP need
// it. Malformed input becomes U+FFFD; a collation that is not known is an error. Text of the collation binary is taken
// as UTF-8.
func DecodeText(collation uint32, text []byte) (string, error) {
	if collation == binaryCollation {
		var s Scratch
		return string(decodeUTF8(text, &s)), nil
	}
	decode, err := textDecoderFor(collation, "")
	if err != nil {
		return "", err
	}
	var s Scratch
	return string(decode(text, &s)), nil
}

func isASCII(text []byte) bool {
	for _, b := range text {
		if b >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func decodeASCII(text []byte, scratch *Scratch) []byte {
	if isASCII(text) {
		return text
	}
	start := len(scratch.buf)
	for _, b := range text {
		if b < utf8.RuneSelf {
			scratch.buf = append(scratch.buf, b)
		} else {
			scratch.buf = utf8.AppendRune(scratch.buf, utf8.RuneError)
		}
	}
	return scratch.since(start)
}

// singleByte makes a decoder of a character set of single bytes whose lower half is ASCII. fixes are where MySQL's set
// differs; c1 gives 0x80 to 0x9F to the control characters, which the tables of ISO 8859 leave out.
func singleByte(set *charmap.Charmap, fixes map[byte]rune, c1 bool) textDecoder {
	var upper [128]rune
	for i := range upper {
		b := byte(0x80 + i)
		upper[i] = set.DecodeByte(b)
		if c1 && b < 0xa0 {
			upper[i] = rune(b)
		}
		if r, ok := fixes[b]; ok {
			upper[i] = r
		}
	}
	return upperHalf(&upper)
}

// tableDecoder makes a decoder from the upper half of a character set, one character a byte from 0x80.
func tableDecoder(table string) textDecoder {
	var upper [128]rune
	i := 0
	for _, r := range table {
		upper[i] = r
		i++
	}
	for ; i < len(upper); i++ {
		upper[i] = utf8.RuneError
	}
	return upperHalf(&upper)
}

func upperHalf(upper *[128]rune) textDecoder {
	return func(text []byte, scratch *Scratch) []byte {
		if isASCII(text) {
			return text
		}
		start := len(scratch.buf)
		for _, b := range text {
			if b < utf8.RuneSelf {
				scratch.buf = append(scratch.buf, b)
			} else {
				scratch.buf = utf8.AppendRune(scratch.buf, upper[b-0x80])
			}
		}
		return scratch.since(start)
	}
}

// multiByte makes a decoder of one of x/text's encodings without state, whose transformers can be shared.
func multiByte(e encoding.Encoding) textDecoder {
	t := e.NewDecoder().Transformer
	return func(text []byte, scratch *Scratch) []byte {
		if isASCII(text) {
			return text
		}
		start := len(scratch.buf)
		for len(text) > 0 {
			// No character of these sets grows by more than one byte in two.
			room := scratch.take(len(text)*2 + utf8.UTFMax)
			written, read, err := t.Transform(room, text, true)
			scratch.buf = scratch.buf[:len(scratch.buf)-len(room)+written]
			text = text[read:]
			if err == nil {
				break
			}
			if err != transform.ErrShortDst && len(text) > 0 {
				scratch.buf = utf8.AppendRune(scratch.buf, utf8.RuneError)
				text = text[1:]
			}
		}
		return scratch.since(start)
	}
}

func decodeUTF16BE(text []byte, scratch *Scratch) []byte { return decodeUTF16(text, scratch, 0) }
func decodeUTF16LE(text []byte, scratch *Scratch) []byte { return decodeUTF16(text, scratch, 1) }

// decodeUTF16 reads units whose high byte is at index high.
func decodeUTF16(text []byte, scratch *Scratch, high int) []byte {
	start := len(scratch.buf)
	for len(text) >= 2 {
		r := rune(text[high])<<8 | rune(text[1-high])
		text = text[2:]
		if utf16.IsSurrogate(r) {
			low := rune(0)
			if len(text) >= 2 {
				low = rune(text[high])<<8 | rune(text[1-high])
			}
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				text = text[2:]
			}
		}
		scratch.buf = utf8.AppendRune(scratch.buf, r)
	}
	if len(text) > 0 {
		scratch.buf = utf8.AppendRune(scratch.buf, utf8.RuneError)
	}
	return scratch.since(start)
}

func decodeUTF32(text []byte, scratch *Scratch) []byte {
	start := len(scratch.buf)
	for len(text) >= 4 {
		r := rune(text[0])<<24 | rune(text[1])<<16 | rune(text[2])<<8 | rune(text[3])
		scratch.buf = utf8.AppendRune(scratch.buf, r)
		text = text[4:]
	}
	if len(text) > 0 {
		scratch.buf = utf8.AppendRune(scratch.buf, utf8.RuneError)
	}
	return scratch.since(start)
}
