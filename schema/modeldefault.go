package schema

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The server's normal form of a default: the value that it has in a row, printed as SHOW CREATE TABLE prints it.

// normalDefault gives the normal form of a default for a column whose type is in its normal form. What the server would
// not have taken is left as it is.
func (m modelContext) normalDefault(t *typeText, d defaultText) defaultText {
	if m.mariaDB && d.kind == defaultExpression {
		d = d.withoutParens()
	}
	switch d.kind {
	case defaultNull, defaultNow, defaultExpression:
		return d
	}
	zerofill := slices.Contains(t.options, "ZEROFILL")
	text, ok := "", false
	switch t.words[0] {
	case "TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT":
		if text, ok = d.decimal(0); ok && zerofill {
			text = padZeros(text, t.numbers)
		}
	case "DECIMAL":
		scale, _ := strconv.Atoi(t.numbers[1])
		scale = min(max(scale, 0), 30) // the server has no more
		if text, ok = d.decimal(scale); ok && zerofill {
			text = padDecimal(text, t.numbers)
		}
	case "FLOAT", "DOUBLE":
		if text, ok = d.float(t); ok && zerofill {
			text = padFloat(text, t)
		}
	case "BIT":
		if bits, whole := d.bits(); whole {
			return defaultText{kind: defaultBits, text: "b'" + bits + "'"}
		}
	case "YEAR":
		text, ok = d.year()
	case "DATE":
		text, ok = d.moment("2006-01-02", 0)
	case "TIME":
		text, ok = d.timeOfDay(digitsOf(t))
	case "DATETIME", "TIMESTAMP":
		text, ok = d.moment("2006-01-02 15:04:05", digitsOf(t))
	case "BINARY", "VARBINARY":
		return d.bytes(t, m.mariaDB && m.version >= 110000)
	case "ENUM", "SET":
		text, ok = d.literal(), true
		if d.kind == defaultNumber {
			ok = false
		}
	default:
		return d.characters(t)
	}
	if !ok {
		text = d.literal()
	}
	return stringDefault(text)
}

func stringDefault(text string) defaultText {
	return defaultText{kind: defaultString, text: quoteText(text), value: text}
}

func digitsOf(t *typeText) int {
	if len(t.numbers) == 0 {
		return 0
	}
	digits, _ := strconv.Atoi(t.numbers[0])
	return min(digits, 6)
}

// literal is what a default says as text.
func (d *defaultText) literal() string {
	switch d.kind {
	case defaultString, defaultTemporal:
		return d.sign + d.value
	case defaultBool:
		if strings.EqualFold(d.text, "TRUE") {
			return "1"
		}
		return "0"
	case defaultHex:
		return literalBytes(token{kind: tokenHex, text: d.text})
	case defaultBits:
		return literalBytes(token{kind: tokenBits, text: d.text})
	}
	return strings.TrimPrefix(d.sign, "+") + d.text
}

// number is the default as a number; bytes count as one with their first byte on top.
func (d *defaultText) number() (*big.Rat, bool) {
	switch d.kind {
	case defaultHex, defaultBits:
		return new(big.Rat).SetInt(new(big.Int).SetBytes([]byte(d.literal()))), true
	}
	text := strings.TrimSpace(d.literal())
	if strings.Trim(text, "0123456789+-.eE") != "" || len(text) > 200 {
		return nil, false
	}
	switch f, err := strconv.ParseFloat(text, 64); { // an exponent may ask for any amount of memory
	case err != nil, math.Abs(f) > 1e70:
		return nil, false
	case math.Abs(f) < 1e-70:
		return new(big.Rat), true
	}
	return new(big.Rat).SetString(text)
}

// decimal prints the default with so many digits after the point, rounded half away from zero.
func (d *defaultText) decimal(scale int) (string, bool) {
	r, ok := d.number()
	if !ok {
		return "", false
	}
	text := r.FloatString(scale)
	if strings.Trim(text, "-0.") == "" {
		text = strings.TrimPrefix(text, "-")
	}
	return text, true
}

// padZeros fills a number up to the display width of its type.
func padZeros(text string, numbers []string) string {
	width := 0
	if len(numbers) > 0 {
		width, _ = strconv.Atoi(numbers[0])
	}
	return strings.Repeat("0", max(0, min(width, 255)-len(text))) + text
}

// padDecimal fills a DECIMAL up to its precision, and its point.
func padDecimal(text string, numbers []string) string {
	width, _ := strconv.Atoi(numbers[0])
	if numbers[1] != "0" {
		width++
	}
	return strings.Repeat("0", max(0, min(width, 255)-len(text))) + text
}

// padFloat fills a number up to the display width of FLOAT and DOUBLE.
func padFloat(text string, t *typeText) string {
	numbers := t.numbers
	switch {
	case len(numbers) > 0:
	case t.words[0] == "FLOAT":
		numbers = []string{"12"}
	default:
		numbers = []string{"22"}
	}
	return padZeros(text, numbers)
}

// float prints a FLOAT or DOUBLE: with the digits of its type, or as short as it can be.
func (d *defaultText) float(t *typeText) (string, bool) {
	r, ok := d.number()
	if !ok {
		return "", false
	}
	f, _ := r.Float64()
	bits := 64
	if t.words[0] == "FLOAT" {
		bits = 32
		f = float64(float32(f))
	}
	if len(t.numbers) == 2 {
		digits, _ := strconv.Atoi(t.numbers[1])
		return strconv.FormatFloat(f, 'f', min(digits, 30), bits), true
	}
	text := strconv.FormatFloat(f, 'e', -1, bits)
	mantissa, exponent, _ := strings.Cut(text, "e")
	if n, _ := strconv.Atoi(exponent); n >= -15 && n < 15 {
		return strconv.FormatFloat(f, 'f', -1, bits), true
	}
	return mantissa + "e" + strings.TrimLeft(strings.Replace(exponent, "+", "", 1), "0"), true
}

// bits are the binary digits of the default without leading zeros.
func (d *defaultText) bits() (string, bool) {
	if d.kind == defaultString {
		return new(big.Int).SetBytes([]byte(d.value)).Text(2), true
	}
	r, ok := d.number()
	if !ok || !r.IsInt() || r.Sign() < 0 {
		return "", false
	}
	return r.Num().Text(2), true
}

func (d *defaultText) year() (string, bool) {
	text := strings.TrimSpace(d.literal())
	n, err := strconv.Atoi(text)
	if err != nil {
		return "", false
	}
	switch {
	case n == 0 && d.kind == defaultNumber || len(text) == 4 && n == 0:
		return "0000", true
	case n < 70:
		n += 2000
	case n < 100:
		n += 1900
	}
	return strconv.Itoa(n), true
}

// dateFields takes a date and a time of day apart, which may have any punctuation between their numbers, or none.
func dateFields(text string) (numbers []int, fraction string) {
	text = strings.TrimSpace(text)
	whole, fraction, _ := strings.Cut(text, ".")
	if strings.Count(text, ".") > 1 { // points between the numbers
		whole, fraction = text, ""
	}
	fields := strings.FieldsFunc(whole, func(r rune) bool { return r < '0' || r > '9' })
	if len(fields) == 1 && len(fields[0]) > 4 { // digits only
		digits := fields[0]
		year := 4
		if len(digits) == 6 || len(digits) == 12 {
			year = 2
		}
		fields = []string{digits[:year]}
		for digits = digits[year:]; len(digits) >= 2; digits = digits[2:] {
			fields = append(fields, digits[:2])
		}
	}
	for i, f := range fields {
		n, err := strconv.Atoi(f)
		if err != nil {
			return nil, ""
		}
		if i == 0 && len(f) == 2 {
			if n += 2000; n >= 2070 {
				n -= 100
			}
		}
		numbers = append(numbers, n)
	}
	return numbers, fraction
}

// moment prints a date, or a date and time with so many digits after the second.
func (d *defaultText) moment(layout string, digits int) (string, bool) {
	n, fraction := dateFields(d.literal())
	if d.kind == defaultNumber && len(n) == 1 && n[0] == 0 || len(n) == 1 && n[0] == 2000 && strings.Trim(d.literal(), "0") == "" {
		n = []int{0, 0, 0}
	}
	if len(n) < 3 || len(n) > 6 {
		return "", false
	}
	n = append(n, 0, 0, 0)
	micros := microseconds(fraction, digits)
	if micros == 1e6 { // rounded up to the next second
		at := time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5]+1, 0, time.UTC)
		n = []int{at.Year(), int(at.Month()), at.Day(), at.Hour(), at.Minute(), at.Second()}
		micros = 0
	}
	date := fmt.Sprintf("%04d-%02d-%02d", n[0], n[1], n[2])
	if layout == "2006-01-02" {
		return date, true
	}
	return date + fmt.Sprintf(" %02d:%02d:%02d", n[3], n[4], n[5]) + fractionText(micros, digits), true
}

// microseconds rounds a fraction to so many digits; 1e6 if that makes a whole second.
func microseconds(fraction string, digits int) int {
	padded := (fraction + "0000000")[:7]
	n, err := strconv.Atoi(padded)
	if err != nil {
		return 0
	}
	unit := 1
	for range 7 - digits {
		unit *= 10
	}
	return (n + unit/2) / unit * unit / 10
}

func fractionText(micros, digits int) string {
	if digits == 0 {
		return ""
	}
	return "." + fmt.Sprintf("%06d", micros)[:digits]
}

// timeOfDay prints a TIME: h:m:s, h:m, d h:m:s, or digits.
func (d *defaultText) timeOfDay(digits int) (string, bool) {
	text := strings.TrimSpace(d.literal())
	text, negative := strings.CutPrefix(text, "-")
	days := 0
	if day, rest, ok := strings.Cut(text, " "); ok && !strings.Contains(day, "-") {
		days, _ = strconv.Atoi(day)
		text = rest
	} else if ok { // a date before it
		text = rest
	}
	whole, fraction, _ := strings.Cut(text, ".")
	parts := strings.Split(whole, ":")
	if len(parts) == 1 { // digits: hhmmss
		padded := strings.Repeat("0", max(0, 6-len(whole))) + whole
		parts = []string{padded[:len(padded)-4], padded[len(padded)-4 : len(padded)-2], padded[len(padded)-2:]}
	}
	var n [3]int
	for i, part := range parts {
		value, err := strconv.Atoi(part)
		if err != nil || i > 2 {
			return "", false
		}
		n[i] = value
	}
	micros := microseconds(fraction, digits)
	seconds := ((days*24+n[0])*60+n[1])*60 + n[2] + micros/1e6
	text = fmt.Sprintf("%02d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60) + fractionText(micros%1e6, digits)
	if negative {
		text = "-" + text
	}
	return text, true
}

// withoutParens is a literal in parentheses, which MariaDB takes for the literal.
func (d defaultText) withoutParens() defaultText {
	text, ok := strings.CutPrefix(d.text, "(")
	if text, ok2 := strings.CutSuffix(text, ")"); ok && ok2 {
		l, err := cut(text, syntax{})
		if err != nil || len(l.tokens) != 2 {
			return d
		}
		p := &ddlParser{text: text, tokens: l.tokens}
		if literal, err := p.defaultValue(); err == nil && literal.kind != defaultExpression {
			return literal
		}
	}
	return d
}

// bytes is the default of BINARY and VARBINARY: a string if its bytes are text, else hexadecimal, as MariaDB has it by
// now in any case.
func (d *defaultText) bytes(t *typeText, hex bool) defaultText {
	value := d.literal()
	if t.words[0] == "BINARY" && len(t.numbers) > 0 {
		size, _ := strconv.Atoi(t.numbers[0])
		value += strings.Repeat("\x00", max(0, min(size, 255)-len(value)))
	}
	switch {
	case hex:
		return defaultText{kind: defaultHex, text: fmt.Sprintf("x'%x'", value)}
	case utf8.ValidString(value) && printable(value) == value:
		return stringDefault(value)
	}
	return defaultText{kind: defaultHex, text: fmt.Sprintf("0x%X", value)}
}

// characters is the default of text: hexadecimal if the server's dictionary cannot hold it.
func (d *defaultText) characters(t *typeText) defaultText {
	value := d.literal()
	if !utf8.ValidString(value) {
		return *d
	}
	if t.words[0] == "CHAR" {
		value = strings.TrimRight(value, " ")
	}
	if printable(value) == value {
		return stringDefault(value)
	}
	return defaultText{kind: defaultHex, text: fmt.Sprintf("0x%X", value)}
}
