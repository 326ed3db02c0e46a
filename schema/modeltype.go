package schema

import (
	"slices"
	"strconv"
	"strings"
)

// The server's normal form of a column's type, as SHOW CREATE TABLE prints it.

// modelContext is what the normal form depends on beyond the text.
type modelContext struct {
	mariaDB     bool
	version     int // the server's; 0: a new one
	realAsFloat bool
}

// oldWidths says whether the server prints the display widths of all integers, as MySQL did before 8.0.19.
func (m modelContext) oldWidths() bool { return m.mariaDB || m.version != 0 && m.version < 80019 }

// charset is the name that the server prints for a character set.
func (m modelContext) charset(name string) string {
	name = strings.ToLower(name)
	if name != "utf8" && name != "utf8mb3" {
		return name
	}
	if m.version == 0 || !m.mariaDB && m.version >= 80030 || m.mariaDB && m.version >= 100600 {
		return "utf8mb3"
	}
	return "utf8"
}

// bytesPerRune is the most bytes that a character of a character set takes.
func bytesPerRune(charset string) int {
	switch strings.ToLower(charset) {
	case "utf8mb4", "utf16", "utf16le", "utf32", "gb18030":
		return 4
	case "utf8", "utf8mb3", "ujis", "eucjpms":
		return 3
	case "ucs2", "big5", "sjis", "cp932", "euckr", "gb2312", "gbk":
		return 2
	}
	return 1
}

// integerWidths are the display widths that integers have when the text gives none: signed, unsigned.
var integerWidths = map[string][2]string{
	"TINYINT": {"4", "3"}, "SMALLINT": {"6", "5"}, "MEDIUMINT": {"9", "8"}, "INT": {"11", "10"}, "BIGINT": {"20", "20"},
}

// normalType gives the normal form of a type. The character set of text is given in any case; charset is the one that
// such a column has when its text names none.
func (m modelContext) normalType(t *typeText, charset string) typeText {
	n := typeText{}
	charset = t.serverCharset(charset)
	first, number := t.words[0], func(i int) string {
		if i < len(t.numbers) {
			return t.numbers[i]
		}
		return ""
	}
	set := func(word string, numbers ...string) typeText {
		n.words, n.numbers = []string{word}, numbers
		return n
	}
	numeric := func(word string, numbers ...string) typeText {
		if slices.Contains(t.options, "ZEROFILL") {
			n.options = []string{"UNSIGNED", "ZEROFILL"}
		} else if slices.Contains(t.options, "UNSIGNED") {
			n.options = []string{"UNSIGNED"}
		}
		return set(word, numbers...)
	}
	switch first {
	case "BOOL", "BOOLEAN":
		return set("TINYINT", "1")
	case "TINYINT", "INT1":
		return m.normalInteger(numeric("TINYINT"), number(0))
	case "SMALLINT", "INT2":
		return m.normalInteger(numeric("SMALLINT"), number(0))
	case "MEDIUMINT", "INT3", "MIDDLEINT":
		return m.normalInteger(numeric("MEDIUMINT"), number(0))
	case "INT", "INTEGER", "INT4":
		return m.normalInteger(numeric("INT"), number(0))
	case "BIGINT", "INT8":
		return m.normalInteger(numeric("BIGINT"), number(0))
	case "SERIAL":
		n.options = []string{"UNSIGNED"}
		return m.normalInteger(set("BIGINT"), "")
	case "DECIMAL", "NUMERIC", "DEC", "FIXED":
		precision, scale := number(0), number(1)
		if p, _ := strconv.Atoi(precision); p == 0 {
			precision = "10"
		}
		if scale == "" {
			scale = "0"
		}
		return numeric("DECIMAL", precision, scale)
	case "REAL":
		if m.realAsFloat {
			return numeric("FLOAT", t.numbers...)
		}
		return numeric("DOUBLE", t.numbers...)
	case "DOUBLE", "FLOAT8":
		return numeric("DOUBLE", t.numbers...)
	case "FLOAT", "FLOAT4":
		if len(t.numbers) == 1 { // the precision in bits
			if bits, _ := strconv.Atoi(t.numbers[0]); bits > 24 {
				return numeric("DOUBLE")
			}
			return numeric("FLOAT")
		}
		return numeric("FLOAT", t.numbers...)
	case "BIT":
		if bits, _ := strconv.Atoi(number(0)); bits == 0 {
			return set("BIT", "1")
		}
		return set("BIT", number(0))
	case "YEAR":
		if m.oldWidths() {
			return set("YEAR", "4")
		}
		return set("YEAR")
	case "TIME", "DATETIME", "TIMESTAMP":
		if digits, _ := strconv.Atoi(number(0)); digits > 0 {
			return set(first, strconv.Itoa(digits))
		}
		return set(first)
	case "JSON":
		if m.mariaDB {
			n.charset = "utf8mb4"
			return set("LONGTEXT")
		}
		return set("JSON")
	case "VECTOR":
		if number(0) == "" {
			return set(first, "2048")
		}
		return set(first, number(0))
	case "GEOMETRYCOLLECTION", "GEOMCOLLECTION":
		if m.mariaDB || m.version != 0 && m.version < 80011 {
			return set("GEOMETRYCOLLECTION")
		}
		return set("GEOMCOLLECTION")
	case "BINARY":
		return set("BINARY", orOne(number(0)))
	case "VARBINARY":
		return set("VARBINARY", number(0))
	case "ENUM", "SET":
		n.charset = m.charset(charset)
		for _, label := range t.labels {
			value := printable(label.trimmed(charset))
			n.labels = append(n.labels, labelText{quoteText(value), value})
		}
		return set(first)
	}
	if text, ok := m.normalText(t, charset); ok {
		return text
	}
	return set(first, t.numbers...)
}

// serverCharset is the character set that a type names in any way, else other.
func (t *typeText) serverCharset(other string) string {
	switch {
	case t.isNational():
		return "utf8mb3"
	case t.byte:
		return "binary"
	case t.ascii:
		return "latin1"
	case t.unicode:
		return "ucs2"
	case t.charset != "" && !strings.EqualFold(t.charset, "default"):
		return t.charset
	}
	return other
}

// trimmed is what the server keeps of a label: no blanks at its end, unless it is of bytes.
func (l labelText) trimmed(charset string) string {
	if strings.EqualFold(charset, "binary") {
		return l.value
	}
	return strings.TrimRight(l.value, " ")
}

func orOne(length string) string {
	if length == "" {
		return "1"
	}
	return length
}

// normalInteger gives an integer its display width, where the server prints one.
func (m modelContext) normalInteger(n typeText, width string) typeText {
	zerofill := slices.Contains(n.options, "ZEROFILL")
	unsigned := len(n.options) > 0
	if m.oldWidths() || zerofill {
		if width == "" || width == "0" {
			width = integerWidths[n.words[0]][0]
			if unsigned {
				width = integerWidths[n.words[0]][1]
			}
		}
		n.numbers = []string{width}
	} else if n.words[0] == "TINYINT" && width == "1" && !unsigned {
		n.numbers = []string{"1"}
	}
	return n
}

// normalText is the normal form of the types for text and bytes.
func (m modelContext) normalText(t *typeText, charset string) (n typeText, ok bool) {
	words := strings.Join(t.words, " ")
	binary := strings.EqualFold(charset, "binary")
	set := func(text, bytes string, numbers ...string) (typeText, bool) {
		n = typeText{words: []string{text}, numbers: numbers, charset: m.charset(charset)}
		if binary {
			n = typeText{words: []string{bytes}, numbers: numbers}
		}
		return n, true
	}
	length := ""
	if len(t.numbers) > 0 {
		length = t.numbers[0]
	}
	blob := func(text, bytes string) (typeText, bool) {
		if characters, err := strconv.ParseUint(length, 10, 64); err == nil && characters > 0 {
			perRune := bytesPerRune(charset)
			if text == "" {
				perRune = 1
			}
			text, bytes = blobOf(characters * uint64(perRune))
		}
		return set(text, bytes)
	}
	switch words {
	case "TINYTEXT":
		return set("TINYTEXT", "TINYBLOB")
	case "TEXT":
		return blob("TEXT", "BLOB")
	case "MEDIUMTEXT", "LONG", "LONG VARCHAR", "LONG VARCHARACTER", "LONG CHAR VARYING", "LONG CHARACTER VARYING":
		return set("MEDIUMTEXT", "MEDIUMBLOB")
	case "LONGTEXT":
		return set("LONGTEXT", "LONGBLOB")
	case "BLOB":
		charset, binary = "binary", true
		return blob("", "BLOB")
	case "LONG VARBINARY":
		return typeText{words: []string{"MEDIUMBLOB"}}, true
	case "CHAR", "CHARACTER", "NCHAR", "NATIONAL CHAR", "NATIONAL CHARACTER":
		return set("CHAR", "BINARY", orOne(length))
	}
	if strings.Contains(words, "VARCHAR") || strings.HasSuffix(words, "VARYING") {
		if characters, err := strconv.ParseUint(length, 10, 64); err == nil && characters*uint64(bytesPerRune(charset)) > 65535 {
			return blob("TEXT", "BLOB") // without a strict sql_mode
		}
		return set("VARCHAR", "VARBINARY", length)
	}
	return n, false
}

// blobOf names the types that hold so many bytes.
func blobOf(size uint64) (text, bytes string) {
	switch {
	case size < 1<<8:
		return "TINYTEXT", "TINYBLOB"
	case size < 1<<16:
		return "TEXT", "BLOB"
	case size < 1<<24:
		return "MEDIUMTEXT", "MEDIUMBLOB"
	}
	return "LONGTEXT", "LONGBLOB"
}

// printable is a text as the server keeps it in its dictionary: characters beyond the basic plane become ?.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r > 0xffff {
			return '?'
		}
		return r
	}, text)
}

// quoteText puts a text between apostrophes as SHOW CREATE TABLE does.
func quoteText(text string) string {
	return "'" + showEscapes.Replace(text) + "'"
}

var showEscapes = strings.NewReplacer("\\", `\\`, "\x00", `\0`, "\n", `\n`, "\r", `\r`, "'", "''")
