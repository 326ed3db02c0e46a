package schema

import "math/big"

// unscaledText is the plain text of a decimal from its unscaled value in two's complement, big-endian, as Java's
// BigDecimal.toPlainString gives it. It is for defaults, not for rows.
func unscaledText(unscaled []byte, scale int) string {
	n := new(big.Int).SetBytes(unscaled)
	if len(unscaled) > 0 && unscaled[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(unscaled))))
	}
	digits := new(big.Int).Abs(n).String()
	for len(digits) <= scale {
		digits = "0" + digits
	}
	if scale > 0 {
		digits = digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	}
	if n.Sign() < 0 {
		digits = "-" + digits
	}
	return digits
}
