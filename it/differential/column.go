package differential

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
)

// kind is a type of columns and how its values are made. Columns are named after their kind, so that a record alone tells what its
// columns are.
type kind struct {
	name  string
	sql   func(r *rand.Rand) string             // the type, without NULL, DEFAULT and the like
	value func(r *rand.Rand, sql string) string // a literal; never NULL
	key   bool                                  // may be in a key
	text  bool                                  // may have a character set
	plain bool                                  // may not have a literal as its default
}

// fixed is a type without parameters.
func fixed(sql string) func(*rand.Rand) string { return func(*rand.Rand) string { return sql } }

// oneOf makes values from a list.
func oneOf(values ...string) func(*rand.Rand, string) string {
	return func(r *rand.Rand, _ string) string { return values[r.IntN(len(values))] }
}

// integers makes values of a range, its ends often.
func integers(low int64, high uint64) func(*rand.Rand, string) string {
	return func(r *rand.Rand, _ string) string {
		switch r.IntN(6) {
		case 0:
			return strconv.FormatInt(low, 10)
		case 1:
			return strconv.FormatUint(high, 10)
		case 2:
			return "0"
		case 3:
			return strconv.FormatInt(max(low, -1), 10)
		default:
			span := high - uint64(low) + 1 // wraps to 0 for the whole of 64 bit
			n := r.Uint64()
			if span != 0 {
				n %= span
			}
			if low < 0 {
				return strconv.FormatInt(low+int64(n), 10)
			}
			return strconv.FormatUint(n, 10)
		}
	}
}

// floats makes doubles of all sizes below a power of ten.
func floats(exponent int) func(*rand.Rand, string) string {
	return func(r *rand.Rand, _ string) string {
		switch r.IntN(5) {
		case 0:
			return []string{"0", "-0e0", "1", "-1", "0.1", "100", "12345.678", "1e7", "0.001", "-0.0001"}[r.IntN(10)]
		case 1:
			return strconv.FormatFloat(math.Round(r.NormFloat64()*1e4)/100, 'g', -1, 64)
		default:
			return strconv.FormatFloat(r.NormFloat64()*math.Pow(10, float64(r.IntN(2*exponent)-exponent)), 'g', -1, 64)
		}
	}
}

// digits makes decimals that fit "…(precision,scale)".
func digits(r *rand.Rand, sql string) string {
	var precision, scale int
	if _, err := fmt.Sscanf(sql[strings.IndexByte(sql, '(')+1:], "%d,%d", &precision, &scale); err != nil {
		precision, scale = 10, 0
	}
	whole := precision - scale
	var b strings.Builder
	if !strings.Contains(sql, "UNSIGNED") && r.IntN(3) == 0 {
		b.WriteByte('-')
	}
	some := func(n int) {
		if r.IntN(4) == 0 {
			b.WriteString(strings.Repeat("9", n))
			return
		}
		for range n {
			b.WriteByte(byte('0' + r.IntN(10)))
		}
	}
	if whole == 0 {
		b.WriteByte('0')
	} else {
		some(1 + r.IntN(whole))
	}
	if scale > 0 {
		b.WriteByte('.')
		some(scale)
	}
	return b.String()
}

// lengthOf is the number in a type's parentheses.
func lengthOf(sql string, without int) int {
	var n int
	if _, err := fmt.Sscanf(sql[strings.IndexByte(sql, '(')+1:], "%d", &n); err != nil {
		return without
	}
	return n
}

// hexBytes makes binary strings of up to the type's length.
func hexBytes(r *rand.Rand, sql string) string {
	n := r.IntN(min(lengthOf(sql, 40), 300) + 1)
	if n == 0 {
		return "''"
	}
	b := make([]byte, n)
	for i := range b {
		if r.IntN(4) > 0 {
			b[i] = byte(r.IntN(256))
		}
	}
	return fmt.Sprintf("0x%x", b)
}

// letters are characters that a character set has.
var letters = map[string][]rune{
	"utf8mb4": []rune(`aZ09 _%\'"/<>&é漢字ñßΩжש` + "\n\t\x01" + `😀𠮷€`),
	"utf8mb3": []rune(`aZ09 _\'"é漢字ñßΩж€`),
	"latin1":  []rune(`aZ09 _\'"éñßüÄ€`),
	"gbk":     []rune(`aZ 09漢字你好`),
	"sjis":    []rune(`aZ 09ソ表漢字`),
	"utf16":   []rune(`aZ 09é漢😀`),
	"ucs2":    []rune(`aZ 09é漢`),
	"koi8r":   []rune(`aZ 09жЯ`),
	"cp1250":  []rune(`aZ 09žŤ`),
	"ascii":   []rune(`aZ09 _\'"`),
}

var charsets = []string{"utf8mb4", "utf8mb3", "latin1", "gbk", "sjis", "utf16", "ucs2", "koi8r", "cp1250", "ascii"}

// word makes text that the character set in the type has, as a quoted literal.
func word(r *rand.Rand, sql string) string {
	set := letters["utf8mb4"]
	for _, name := range charsets {
		if strings.Contains(sql, "CHARACTER SET "+name) {
			set = letters[name]
		}
	}
	n := r.IntN(min(lengthOf(sql, 30), 40) + 1)
	var b strings.Builder
	for range n {
		b.WriteRune(set[r.IntN(len(set))])
	}
	return quote(b.String())
}

// quote is a string literal of MySQL.
func quote(s string) string {
	return "'" + strings.NewReplacer("\\", "\\\\", "'", "''", "\n", "\\n", "\t", "\\t").Replace(s) + "'"
}

// fraction is a fraction of a second with the digits of the type.
func fraction(r *rand.Rand, sql string) string {
	n := 0
	if strings.ContainsRune(sql, '(') {
		n = lengthOf(sql, 0)
	}
	if n == 0 || r.IntN(4) == 0 {
		return ""
	}
	return "." + fmt.Sprintf("%06d", r.IntN(1_000_000))[:n]
}

// fsp is a type with 0 to 6 digits of fraction.
func fsp(name string) func(*rand.Rand) string {
	return func(r *rand.Rand) string {
		if n := r.IntN(7); n > 0 {
			return fmt.Sprintf("%s(%d)", name, n)
		}
		return name
	}
}

func day(r *rand.Rand, from, to int) string {
	return fmt.Sprintf("%04d-%02d-%02d", from+r.IntN(to-from+1), 1+r.IntN(12), 1+r.IntN(28))
}

func clock(r *rand.Rand) string {
	return fmt.Sprintf("%02d:%02d:%02d", r.IntN(24), r.IntN(60), r.IntN(60))
}

// document makes JSON of a limited depth.
func document(r *rand.Rand, depth int) string {
	switch n := r.IntN(9); {
	case n == 0 && depth > 0:
		var parts []string
		for range r.IntN(4) {
			parts = append(parts, strconv.Quote(string(letters["ascii"][r.IntN(4)])+strconv.Itoa(r.IntN(20)))+":"+document(r, depth-1))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case n == 1 && depth > 0:
		var parts []string
		for range r.IntN(4) {
			parts = append(parts, document(r, depth-1))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case n == 2:
		return []string{"true", "false", "null"}[r.IntN(3)]
	case n == 3:
		return integers(math.MinInt64, math.MaxInt64)(r, "")
	case n == 4:
		return integers(0, math.MaxUint64)(r, "")
	case n == 5:
		return strings.TrimPrefix(floats(20)(r, ""), "+")
	case n == 6:
		return strconv.Itoa(r.IntN(70_000) - 35_000)
	default:
		text := []rune{}
		for range r.IntN(20) {
			text = append(text, letters["utf8mb4"][r.IntN(len(letters["utf8mb4"]))])
		}
		return jsonString(string(text))
	}
}

// jsonString is a string of JSON.
func jsonString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c < ' ':
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

var labels = []string{"a", "b", "c d", "it''s", "é", "x-y", "Z", "9"}

// kinds are the types of columns.
func kinds(limits Limits) []kind {
	sized := func(name string, to int) func(*rand.Rand) string {
		return func(r *rand.Rand) string { return fmt.Sprintf("%s(%d)", name, 1+r.IntN(to)) }
	}
	times := func(r *rand.Rand, sql string) string {
		if limits.Day || r.IntN(2) == 0 {
			return "'" + clock(r) + fraction(r, sql) + "'"
		}
		return fmt.Sprintf("'%s%d:%02d:%02d%s'", []string{"", "-"}[r.IntN(2)], r.IntN(839), r.IntN(60), r.IntN(60), fraction(r, sql))
	}
	decimal := func(name string) func(*rand.Rand) string {
		return func(r *rand.Rand) string {
			precision := 1 + r.IntN(65)
			return fmt.Sprintf("%s(%d,%d)", name, precision, r.IntN(min(precision, 30)+1)) + []string{"", "", " UNSIGNED"}[r.IntN(3)]
		}
	}
	return []kind{
		{name: "tinyint", sql: fixed("TINYINT"), value: integers(-128, 127), key: true},
		{name: "tinyintu", sql: fixed("TINYINT UNSIGNED"), value: integers(0, 255), key: true},
		{name: "tinyint1", sql: fixed("TINYINT(1)"), value: integers(-128, 127)},
		{name: "bool", sql: fixed("BOOL"), value: oneOf("TRUE", "FALSE")},
		{name: "smallint", sql: fixed("SMALLINT"), value: integers(-32768, 32767), key: true},
		{name: "smallintu", sql: fixed("SMALLINT UNSIGNED"), value: integers(0, 65535)},
		{name: "mediumint", sql: fixed("MEDIUMINT"), value: integers(-8388608, 8388607)},
		{name: "mediumintu", sql: fixed("MEDIUMINT UNSIGNED"), value: integers(0, 16777215)},
		{name: "int", sql: fixed("INT"), value: integers(math.MinInt32, math.MaxInt32), key: true},
		{name: "intu", sql: fixed("INT UNSIGNED"), value: integers(0, math.MaxUint32), key: true},
		{name: "intz", sql: fixed("INT(6) ZEROFILL"), value: integers(0, math.MaxUint32)},
		{name: "bigint", sql: fixed("BIGINT"), value: integers(math.MinInt64, math.MaxInt64), key: true},
		{name: "bigintu", sql: fixed("BIGINT UNSIGNED"), value: integers(0, math.MaxUint64), key: true},
		{name: "float", sql: fixed("FLOAT"), value: floats(30), plain: true},
		{name: "float53", sql: fixed("FLOAT(40)"), value: floats(200), plain: true},
		{name: "floatmd", sql: fixed("FLOAT(9,3)"), value: floats(4), plain: true},
		{name: "double", sql: fixed("DOUBLE"), value: floats(300), plain: true},
		{name: "doublemd", sql: fixed("DOUBLE(12,4)"), value: floats(6), plain: true},
		{name: "decimal", sql: decimal("DECIMAL"), value: digits, key: true},
		{name: "numeric", sql: decimal("NUMERIC"), value: digits},
		{name: "bit1", sql: fixed("BIT(1)"), value: oneOf("b'0'", "b'1'")},
		{name: "bit", sql: func(r *rand.Rand) string { return fmt.Sprintf("BIT(%d)", 2+r.IntN(63)) }, value: func(r *rand.Rand, sql string) string {
			return fmt.Sprintf("b'%b'", r.Uint64()>>(64-lengthOf(sql, 1)))
		}},
		{name: "char", sql: sized("CHAR", 40), value: word, key: true, text: true},
		{name: "varchar", sql: sized("VARCHAR", 100), value: word, key: true, text: true},
		{name: "tinytext", sql: fixed("TINYTEXT"), value: word, text: true, plain: true},
		{name: "text", sql: fixed("TEXT"), value: word, text: true, plain: true},
		{name: "longtext", sql: fixed("LONGTEXT"), value: word, text: true, plain: true},
		{name: "binary", sql: sized("BINARY", 30), value: hexBytes, key: true, plain: true},
		{name: "varbinary", sql: sized("VARBINARY", 60), value: hexBytes, key: true, plain: true},
		{name: "blob", sql: fixed("BLOB"), value: hexBytes, plain: true},
		{name: "mediumblob", sql: fixed("MEDIUMBLOB"), value: hexBytes, plain: true},
		{name: "enum", sql: func(r *rand.Rand) string {
			return "ENUM('" + strings.Join(labels[:1+r.IntN(len(labels))], "','") + "')"
		}, value: oneOf("1", "'a'")},
		{name: "set", sql: func(r *rand.Rand) string {
			return "SET('" + strings.Join(labels[:2+r.IntN(len(labels)-1)], "','") + "')"
		}, value: oneOf("0", "1", "2", "3", "'a,b'", "''")},
		{name: "date", sql: fixed("DATE"), value: func(r *rand.Rand, _ string) string {
			if r.IntN(8) == 0 {
				return []string{"'0000-00-00'", "'1000-01-01'", "'9999-12-31'", "'2020-02-29'", "'2020-00-10'"}[r.IntN(5)]
			}
			return "'" + day(r, 1600, 2200) + "'"
		}, key: true},
		{name: "time", sql: fsp("TIME"), value: times},
		{name: "datetime", sql: fsp("DATETIME"), value: func(r *rand.Rand, sql string) string {
			if r.IntN(8) == 0 {
				all := []string{"'0000-00-00 00:00:00'", "'1970-01-01 00:00:00'", "'1000-01-01 00:00:00'", "'9999-12-31 23:59:59'"}
				if limits.Centuries {
					all = all[:2]
				}
				return all[r.IntN(len(all))]
			}
			return "'" + day(r, 1680, 2200) + " " + clock(r) + fraction(r, sql) + "'"
		}},
		{name: "timestamp", sql: fsp("TIMESTAMP"), value: func(r *rand.Rand, sql string) string {
			if r.IntN(8) == 0 {
				return []string{"'0000-00-00 00:00:00'", "'1970-01-02 00:00:01'", "'2038-01-19 03:14:07'"}[r.IntN(3)]
			}
			return "'" + day(r, 1971, 2037) + " " + clock(r) + fraction(r, sql) + "'"
		}},
		{name: "year", sql: fixed("YEAR"), value: oneOf("1901", "2155", "2026", "1999", "0")},
		{name: "json", sql: fixed("JSON"), value: func(r *rand.Rand, _ string) string { return quote(document(r, 4)) }, plain: true},
		{name: "point", sql: fixed("POINT"), value: func(r *rand.Rand, _ string) string {
			return fmt.Sprintf("ST_GeomFromText('POINT(%d %d.5)')", r.IntN(90), r.IntN(180))
		}, plain: true},
		{name: "geometry", sql: fixed("GEOMETRY"), value: oneOf("ST_GeomFromText('LINESTRING(0 0,1 1,2 2)')", "ST_GeomFromText('POINT(1 2)',4326)",
			"ST_GeomFromText('POLYGON((0 0,0 1,1 1,0 0))')", "ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,1 1))')"), plain: true},
		{name: "vector", sql: fixed("VECTOR(3)"), value: oneOf("STRING_TO_VECTOR('[1.5,-2,3]')", "STRING_TO_VECTOR('[0.1]')"), plain: true},
	}
}
