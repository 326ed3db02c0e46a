package binlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/tidemark-cdc/tidemark/schema"
)

// filler is the default of a column as a cell, once somebody asked for it.
type filler struct {
	known bool
	cell  []byte
	err   error
}

// defaultCells gives the defaults of the columns that an insert's image lacks, nil for the others. With MINIMAL and
// NOBLOB the server leaves out a column only when the statement gives it no value and its default is a literal, NULL, or
// what its type begins with: AUTO_INCREMENT, CURRENT_TIMESTAMP, expressions and generated columns are in the image.
func (v *version) defaultCells(present []byte) ([][]byte, error) {
	if v.fillers == nil {
		v.fillers = make([]filler, len(v.cells))
		v.defaults = make([][]byte, len(v.cells))
	}
	for i := range v.fillers {
		f := &v.fillers[i]
		if has(present, i) {
			continue
		}
		if c := &v.table.Columns[i]; !f.known {
			f.known = true
			f.cell, f.err = defaultCell(c, v.cells[i])
			v.defaults[i] = f.cell
		}
		if f.err != nil {
			return nil, fmt.Errorf("column %s is not in the row image, and %w", v.table.Columns[i].Name, f.err)
		}
	}
	return v.defaults, nil
}

var errDefault = errors.New("the server's default for it cannot be told")

// defaultCell makes the cell that the server would have written for a column's default; nil is NULL.
func defaultCell(c *schema.Column, layout cell) ([]byte, error) {
	d := c.Def
	switch {
	case d == nil:
		return nil, errors.New("its default is not known, as no definition of the table fits")
	case d.Server != nil && d.Server.Default != "":
		b, err := rawCell(c, layout, d.Server.Default)
		if err != nil {
			return nil, fmt.Errorf("its default is %s: %w", d.Server.Default, err)
		}
		return b, nil
	case d.Default == nil && c.Nullable:
		return nil, nil
	case d.Default == nil && d.HasDefault:
		return nil, errors.New("its default is an expression")
	case d.Default == nil:
		return implicitCell(c, layout)
	}
	b, err := literalCell(c, layout, literalText(*d.Default))
	if err != nil {
		return nil, fmt.Errorf("its default is %q: %w", *d.Default, err)
	}
	return b, nil
}

// rawCell makes the cell of a default as it is written: NULL, or a hexadecimal or bit literal, which is a number for
// numbers and bytes for text, in the column's character set.
func rawCell(c *schema.Column, layout cell, text string) ([]byte, error) {
	if text == "NULL" {
		if !c.Nullable {
			return nil, errDefault
		}
		return nil, nil
	}
	digits, base := strings.TrimSuffix(text[min(2, len(text)):], "'"), 16
	if strings.ContainsAny(text[:min(2, len(text))], "bB") {
		base = 2
	}
	n, ok := new(big.Int).SetString("0"+digits, base)
	if !ok || len(digits) == 0 || strings.ContainsAny(digits, "+-_") {
		return nil, errDefault
	}
	switch c.Type {
	case typeTiny, typeShort, typeInt24, typeLong, typeLongLong, typeYear, typeFloat, typeDouble, typeNewDecimal:
		return numberCell(c, layout, n.String())
	case typeBit:
		return bitCell(layout, n)
	case typeString, typeVarchar, typeVarString, typeBlob:
		bits := 4
		if base == 2 {
			bits = 1
		}
		b := make([]byte, (len(digits)*bits+7)/8)
		return withoutPadding(c, n.FillBytes(b)), nil
	}
	return nil, errDefault
}

// bitCell makes the cell of a BIT.
func bitCell(layout cell, n *big.Int) ([]byte, error) {
	b := make([]byte, layout.size)
	if n.BitLen() > 8*len(b) {
		return nil, errDefault
	}
	return n.FillBytes(b), nil
}

// withoutPadding is text or bytes without what fills up a CHAR or BINARY: it is not in the binlog.
func withoutPadding(c *schema.Column, b []byte) []byte {
	switch {
	case c.Type != typeString:
		return b
	case c.Collation == binaryCollation:
		return bytes.TrimRight(b, "\x00")
	}
	return bytes.TrimRight(b, " ")
}

// implicitCell is what a column holds that is NOT NULL, has no default and is given no value, which sql_mode may permit.
func implicitCell(c *schema.Column, layout cell) ([]byte, error) {
	switch c.Type {
	case typeEnum: // the first label
		return binary.LittleEndian.AppendUint16(nil, 1)[:layout.size], nil
	case typeGeometry, typeVector:
		return nil, errDefault
	case typeNewDecimal:
		return literalCell(c, layout, "0")
	case typeTime2:
		return appendTime2(nil, 0, int(c.Meta)), nil
	case typeDatetime2:
		return appendDatetime2(nil, moment{}, int(c.Meta)), nil
	}
	return make([]byte, layout.size), nil
}

// literalText undoes what the text of a default still has of SQL: the name of its character set, doubled quotes, escapes.
func literalText(text string) string {
	if strings.HasPrefix(text, "_") && strings.HasSuffix(text, "'") {
		if _, rest, ok := strings.Cut(text, "'"); ok && rest != "" {
			text = rest[:len(rest)-1]
		}
	}
	if !strings.ContainsAny(text, `'\`) {
		return text
	}
	plain := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		b := text[i]
		if i+1 < len(text) && (b == '\'' && text[i+1] == '\'' || b == '\\') {
			i++
			if b == '\\' {
				b = unescaped(text[i])
			}
			if (text[i] == '%' || text[i] == '_') && b == text[i] { // the backslash stays before these
				plain = append(plain, '\\')
			}
		}
		plain = append(plain, b)
	}
	return string(plain)
}

// unescaped is what a backslash makes of the character behind it.
func unescaped(c byte) byte {
	switch c {
	case '0':
		return 0
	case 'b':
		return '\b'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'Z':
		return 26
	}
	return c
}

// literalCell makes the cell of a literal, by the column's type.
func literalCell(c *schema.Column, layout cell, text string) ([]byte, error) {
	switch c.Type {
	case typeTiny, typeShort, typeInt24, typeLong, typeLongLong, typeYear, typeFloat, typeDouble, typeNewDecimal:
		return numberCell(c, layout, strings.TrimSpace(text))
	case typeBit:
		n, err := strconv.ParseUint(strings.TrimSpace(text), 2, 64)
		if err != nil {
			return nil, errDefault
		}
		return bitCell(layout, new(big.Int).SetUint64(n))
	case typeEnum, typeSet:
		return labelCell(c, layout, text)
	case typeDate, typeNewDate, typeDatetime, typeDatetime2, typeTimestamp, typeTimestamp2:
		m, err := parseMoment(strings.TrimSpace(text))
		if err != nil {
			return nil, err
		}
		return m.cell(c)
	case typeTime, typeTime2:
		return timeCell(c, strings.TrimSpace(text))
	case typeString, typeVarchar, typeVarString, typeBlob:
		return textCell(c, text)
	}
	return nil, errDefault
}

// numberCell makes the cell of a number.
func numberCell(c *schema.Column, layout cell, text string) ([]byte, error) {
	switch strings.ToUpper(text) {
	case "TRUE":
		text = "1"
	case "FALSE":
		text = "0"
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) || len(text) > 400 || strings.Trim(text, "0123456789+-.eE") != "" {
		return nil, errDefault
	}
	switch c.Type {
	case typeFloat:
		return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(f))), nil
	case typeDouble:
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(f)), nil
	}
	if math.Abs(f) > 1e66 || f != 0 && math.Abs(f) < 1e-66 { // an exponent may ask for any amount of memory
		return nil, errDefault
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, errDefault
	}
	if c.Type == typeNewDecimal {
		return decimalCell(r, int(c.Meta>>8), int(c.Meta&0xff))
	}
	n := rounded(r, 0)
	if c.Type == typeYear {
		year := n.Int64()
		switch {
		case !n.IsInt64() || year < 0 || year > 2155:
			return nil, errDefault
		case year == 0 && len(text) > 2, year == 0 && text == "0":
			return []byte{0}, nil
		case year < 70:
			year += 2000
		case year < 100:
			year += 1900
		}
		if year < 1901 {
			return nil, errDefault
		}
		return []byte{byte(year - 1900)}, nil
	}
	var bits uint64
	switch {
	case n.IsInt64():
		bits = uint64(n.Int64())
	case n.IsUint64():
		bits = n.Uint64()
	default:
		return nil, errDefault
	}
	return binary.LittleEndian.AppendUint64(nil, bits)[:layout.size], nil
}

// rounded is r times ten to the power of scale, rounded half away from zero as the server does.
func rounded(r *big.Rat, scale int) *big.Int {
	num := new(big.Int).Mul(r.Num(), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil))
	negative := num.Sign() < 0
	num.Abs(num)
	num.Lsh(num, 1).Add(num, r.Denom())
	num.Quo(num, new(big.Int).Lsh(r.Denom(), 1))
	if negative {
		num.Neg(num)
	}
	return num
}

// decimalCell writes a DECIMAL: digits in groups of nine, four bytes each, counted from the point to both sides, the rest
// in as few bytes as it needs. A negative number has all bits inverted, and the first bit of all is turned round.
func decimalCell(r *big.Rat, precision, scale int) ([]byte, error) {
	unscaled := rounded(r, scale)
	digits := new(big.Int).Abs(unscaled).String()
	if len(digits) > precision {
		return nil, errDefault
	}
	digits = strings.Repeat("0", precision-len(digits)) + digits
	whole, fraction := digits[:precision-scale], digits[precision-scale:]
	var b []byte
	group := func(digits string) {
		n, _ := strconv.ParseUint(digits, 10, 32) // decimal digits, nine at most
		for i := digitBytes(len(digits)) - 1; i >= 0; i-- {
			b = append(b, byte(n>>(8*i)))
		}
	}
	group(whole[:len(whole)%9])
	for i := len(whole) % 9; i < len(whole); i += 9 {
		group(whole[i : i+9])
	}
	for len(fraction) >= 9 {
		group(fraction[:9])
		fraction = fraction[9:]
	}
	group(fraction)
	if unscaled.Sign() < 0 {
		for i := range b {
			b[i] = ^b[i]
		}
	}
	b[0] ^= 0x80
	return b, nil
}

// labelCell makes the cell of an ENUM's label or of a SET's labels.
func labelCell(c *schema.Column, layout cell, text string) ([]byte, error) {
	index := func(label string) int {
		label = strings.TrimRight(label, " ")
		for i, l := range c.Labels {
			if strings.TrimRight(l, " ") == label {
				return i
			}
		}
		for i, l := range c.Labels { // most collations know no case
			if strings.EqualFold(strings.TrimRight(l, " "), label) {
				return i
			}
		}
		return -1
	}
	var n uint64
	if c.Type == typeEnum {
		i := index(text)
		if i < 0 {
			return nil, errDefault
		}
		n = uint64(i) + 1
	} else if text != "" {
		for label := range strings.SplitSeq(text, ",") {
			i := index(label)
			if i < 0 || i > 63 {
				return nil, errDefault
			}
			n |= 1 << i
		}
	}
	return binary.LittleEndian.AppendUint64(nil, n)[:layout.size], nil
}

// textCell makes the cell of text or bytes.
func textCell(c *schema.Column, text string) ([]byte, error) {
	if mayBeHex(c, text) {
		return nil, fmt.Errorf("%w from 0x%s…", errDefault, text)
	}
	b, err := encodeText(c.Collation, text)
	if err != nil {
		return nil, err
	}
	return withoutPadding(c, b), nil
}
