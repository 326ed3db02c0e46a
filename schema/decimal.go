package schema

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// MySQL's binary DECIMAL: the digits before and after the point in groups of nine, four bytes each, big-endian; the
// group farthest from the point has the rest of the digits and fewer bytes. The first bit is inverted, so that bytes
// order like values; the bytes of a negative value are inverted, too.
const (
	groupDigits = 9
	groupBytes  = 4

	maxPrecision = 65
	maxScale     = 30
)

// groupSize is the number of bytes of a group with so many digits.
var groupSize = [groupDigits + 1]int{0, 1, 1, 2, 2, 3, 3, 4, 4, 4}

var pow10 = [groupDigits + 1]uint32{1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9}

// decimalSize is the number of bytes of a DECIMAL(precision, scale).
func decimalSize(precision, scale int) int {
	whole := precision - scale
	return whole/groupDigits*groupBytes + groupSize[whole%groupDigits] +
		scale/groupDigits*groupBytes + groupSize[scale%groupDigits]
}

func checkDecimalType(precision, scale int) error {
	if precision < 1 || precision > maxPrecision || scale < 0 || scale > maxScale || scale > precision {
		return fmt.Errorf("DECIMAL(%d,%d) is not a type of MySQL", precision, scale)
	}
	return nil
}

// decimalGroups steps through the groups of a DECIMAL from the left. The type has been checked.
type decimalGroups struct {
	cell     []byte
	mask     byte // 0xff for a negative value
	flip     byte // of the first byte only
	whole    int  // digits before the point that are left
	fraction int  // the same after it
}

func newDecimalGroups(cell []byte, precision, scale int) (g decimalGroups, negative bool, err error) {
	if size := decimalSize(precision, scale); len(cell) != size {
		return g, false, fmt.Errorf("DECIMAL(%d,%d) of %d bytes, want %d", precision, scale, len(cell), size)
	}
	g = decimalGroups{cell: cell, flip: 0x80, whole: precision - scale, fraction: scale}
	if cell[0]&0x80 == 0 {
		g.mask, negative = 0xff, true
	}
	return g, negative, nil
}

// next returns the next group and how many digits it has; 0 digits at the end.
func (g *decimalGroups) next() (value uint32, digits int, err error) {
	switch {
	case g.whole > 0:
		if digits = g.whole % groupDigits; digits == 0 {
			digits = groupDigits
		}
		g.whole -= digits
	case g.fraction > 0:
		digits = min(g.fraction, groupDigits)
		g.fraction -= digits
	default:
		return 0, 0, nil
	}
	size := groupSize[digits]
	flip := g.flip ^ g.mask
	for _, b := range g.cell[:size] {
		value = value<<8 | uint32(b^flip)
		flip = g.mask
	}
	g.cell, g.flip = g.cell[size:], 0
	if value >= pow10[digits] {
		return 0, 0, fmt.Errorf("DECIMAL has %d where %d digits belong", value, digits)
	}
	return value, digits, nil
}

// small reads all groups of a DECIMAL whose digits fit into 64 bits.
func (g *decimalGroups) small() (int64, error) {
	n := int64(0)
	for {
		group, digits, err := g.next()
		if err != nil || digits == 0 {
			return n, err
		}
		n = n*int64(pow10[digits]) + int64(group)
	}
}

// appendInt64 writes n in two's complement as short as can be, big-endian.
func appendInt64(n int64, scratch *Scratch) []byte {
	size := bits.Len64(uint64(n^n>>63))/8 + 1 // one bit for the sign
	start := len(scratch.buf)
	scratch.buf = binary.BigEndian.AppendUint64(scratch.buf, uint64(n)<<(64-8*size))
	scratch.buf = scratch.buf[:start+size]
	return scratch.since(start)
}

// SmallDecimal is the unscaled value of a DECIMAL of at most nine digits on each side of the point, the usual ones. ok is
// false for NULL and damaged cells.
func SmallDecimal(cell []byte, whole, fraction int) (n int64, ok bool) {
	d := NewSmallDecimals(whole, fraction)
	v, ok := d.Word(cell)
	if !ok {
		if len(cell) != int(d.size) || len(cell) == 0 {
			return 0, false
		}
		for i, c := range cell {
			v |= uint64(c) << (56 - 8*i)
		}
	}
	return d.Unscaled(v)
}

// SmallDecimals is [SmallDecimal] in two steps for the cells of one column.
type SmallDecimals struct {
	shift, split uint8  // bits of a word: those that a cell does not have, and those behind the point
	size         uint8  // of a cell
	limit, unit  uint32 // what the numbers before and after the point are below
}

// NewSmallDecimals are decimals of so many digits on each side of the point, at most nine.
func NewSmallDecimals(whole, fraction int) SmallDecimals {
	size := groupSize[whole] + groupSize[fraction]
	return SmallDecimals{
		size: uint8(size), shift: uint8(64 - 8*size), split: uint8(8 * groupSize[fraction]), limit: pow10[whole], unit: pow10[fraction],
	}
}

// Word is a cell's bytes from the highest of a word on. ok is false for NULL, cells of less than four bytes and damaged ones.
func (d *SmallDecimals) Word(cell []byte) (v uint64, ok bool) {
	if n := len(cell); n >= 4 && n == int(d.size) { // the first four bytes and the last four, which may be the same in part
		return uint64(binary.BigEndian.Uint32(cell))<<32 | uint64(binary.BigEndian.Uint32(cell[n-4:]))<<(d.shift&63), true
	}
	return 0, false
}

// Unscaled is the unscaled value of a cell whose [SmallDecimals.Word] is v. ok is false for damaged ones.
func (d *SmallDecimals) Unscaled(v uint64) (n int64, ok bool) {
	negative := ^(int64(v) >> 63) // all ones for a negative value
	v = (v ^ uint64(negative) ^ 1<<63) >> (d.shift & 63)
	a := v >> (d.split & 63)
	b := v - a<<(d.split&63)
	n = int64(a*uint64(d.unit) + b)
	return (n ^ negative) - negative, a < uint64(d.limit) && b < uint64(d.unit)
}

// unscaledDecimal decodes a DECIMAL to its unscaled value in two's complement, big-endian, as short as can be: what
// Java's BigInteger.toByteArray gives.
func unscaledDecimal(cell []byte, precision, scale int, scratch *Scratch) ([]byte, error) {
	if whole := precision - scale; whole <= groupDigits && scale <= groupDigits {
		if n, ok := SmallDecimal(cell, whole, scale); ok {
			return appendInt64(n, scratch), nil
		}
	}
	g, negative, err := newDecimalGroups(cell, precision, scale)
	if err != nil {
		return nil, err
	}
	if precision <= 18 {
		n, err := g.small()
		if err != nil {
			return nil, err
		}
		if negative {
			n = -n
		}
		return appendInt64(n, scratch), nil
	}
	// 65 digits are less than 2^216.
	var n [4]uint64 // least significant first
	for {
		group, digits, err := g.next()
		if err != nil {
			return nil, err
		}
		if digits == 0 {
			break
		}
		multiplyAdd(&n, uint64(pow10[digits]), uint64(group))
	}
	return appendTwosComplement(&n, negative, scratch), nil
}

// multiplyAdd makes n = n*factor + add.
func multiplyAdd(n *[4]uint64, factor, add uint64) {
	carry := add
	for i := range n {
		high, low := bits.Mul64(n[i], factor)
		low, c := bits.Add64(low, carry, 0)
		n[i], carry = low, high+c
	}
}

// appendTwosComplement writes ±n, |n| < 2^255, as short as can be, big-endian.
func appendTwosComplement(n *[4]uint64, negative bool, scratch *Scratch) []byte {
	if negative {
		carry := uint64(1)
		for i := range n {
			n[i], carry = bits.Add64(^n[i], 0, carry)
		}
		negative = n[3]>>63 != 0 // minus zero is zero
	}
	var all [32]byte
	for i, word := range n {
		binary.BigEndian.PutUint64(all[24-8*i:], word)
	}
	sign := byte(0)
	if negative {
		sign = 0xff
	}
	first := 0
	for first < len(all)-1 && all[first] == sign && (all[first+1]^sign)&0x80 == 0 {
		first++
	}
	out := scratch.take(len(all) - first)
	copy(out, all[first:])
	return out
}

// appendDecimalText writes a DECIMAL as Java's BigDecimal.toPlainString does: all digits of the scale, no sign of zero.
func appendDecimalText(dst, cell []byte, precision, scale int) ([]byte, error) {
	g, negative, err := newDecimalGroups(cell, precision, scale)
	if err != nil {
		return dst, err
	}
	var text [maxPrecision]byte
	n, nonzero := 0, false
	for {
		group, digits, err := g.next()
		if err != nil {
			return dst, err
		}
		if digits == 0 {
			break
		}
		nonzero = nonzero || group != 0
		for i := digits - 1; i >= 0; i-- {
			text[n+i] = byte('0' + group%10)
			group /= 10
		}
		n += digits
	}
	if negative && nonzero {
		dst = append(dst, '-')
	}
	whole := text[:precision-scale]
	for len(whole) > 1 && whole[0] == '0' {
		whole = whole[1:]
	}
	if len(whole) == 0 {
		dst = append(dst, '0')
	}
	dst = append(dst, whole...)
	if scale > 0 {
		dst = append(dst, '.')
		dst = append(dst, text[precision-scale:n]...)
	}
	return dst, nil
}
