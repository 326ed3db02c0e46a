package emitter

import (
	"errors"
	"math/bits"
	"strconv"

	"github.com/tidemark-cdc/tidemark/schema"
)

const decimalName = "org.apache.kafka.connect.data.Decimal"

// decimalScale gives the scale of a Decimal schema; ok is false for any other.
func decimalScale(t *schema.Type) (scale int, ok bool, err error) {
	if t.Name != decimalName {
		return 0, false, nil
	}
	for _, p := range t.Parameters {
		if p.Name == "scale" {
			scale, err := strconv.Atoi(p.Value)
			return scale, true, err
		}
	}
	return 0, true, errors.New("a decimal schema without the parameter scale")
}

// appendDecimal appends the number whose unscaled value is unscaled, in big-endian two's complement, as Java's
// BigDecimal.toString does: plain, or with an exponent when it is smaller than 10^-6.
func appendDecimal(dst, unscaled []byte, scale int) []byte {
	var buf [96]byte
	digits := decimalText(buf[:0], unscaled)
	if len(unscaled) > 0 && unscaled[0]&0x80 != 0 {
		dst = append(dst, '-')
	}
	exp := len(digits) - 1 - scale // of the first digit
	switch {
	case scale == 0:
		return append(dst, digits...)
	case exp < -6:
		dst = append(dst, digits[0])
		if len(digits) > 1 {
			dst = append(dst, '.')
			dst = append(dst, digits[1:]...)
		}
		return strconv.AppendInt(append(dst, 'E'), int64(exp), 10)
	case exp < 0:
		dst = append(dst, '0', '.')
		for range -exp - 1 {
			dst = append(dst, '0')
		}
		return append(dst, digits...)
	}
	dst = append(dst, digits[:exp+1]...)
	dst = append(dst, '.')
	return append(dst, digits[exp+1:]...)
}

// decimalText appends the decimal digits of the absolute value of a big-endian two's complement number.
func decimalText(dst, b []byte) []byte {
	if len(b) <= 8 {
		var v uint64
		if len(b) > 0 && b[0]&0x80 != 0 {
			v = ^v
		}
		for _, c := range b {
			v = v<<8 | uint64(c)
		}
		if int64(v) < 0 {
			v = -v
		}
		return strconv.AppendUint(dst, v, 10)
	}
	// Longer ones are words of 64 bits, the lowest first, divided by 10^19 again and again. A DECIMAL(65) has four.
	var fixed [5]uint64
	words := fixed[:]
	if n := (len(b) + 7) / 8; n > len(words) {
		words = make([]uint64, n)
	}
	negative := b[0]&0x80 != 0
	carry := uint64(1)
	for i := range words {
		var w uint64
		for j := range 8 {
			var c byte
			if at := len(b) - 1 - 8*i - j; at >= 0 {
				c = b[at]
			} else if negative {
				c = 0xff
			}
			w |= uint64(c) << (8 * j)
		}
		if negative {
			w, carry = bits.Add64(^w, 0, carry)
		}
		words[i] = w
	}
	const group, groupDigits = 10_000_000_000_000_000_000, 19
	start := len(dst)
	for n := len(words); ; {
		for n > 0 && words[n-1] == 0 {
			n--
		}
		var rest uint64
		for i := n - 1; i >= 0; i-- {
			words[i], rest = bits.Div64(rest, words[i], group)
		}
		last := n <= 1 && (n == 0 || words[0] == 0)
		for i := 0; i < groupDigits && (!last || rest > 0 || len(dst) == start); i++ {
			dst = append(dst, byte('0'+rest%10))
			rest /= 10
		}
		if last {
			break
		}
	}
	for i, j := start, len(dst)-1; i < j; i, j = i+1, j-1 {
		dst[i], dst[j] = dst[j], dst[i]
	}
	return dst
}
