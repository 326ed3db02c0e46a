package schema

import (
	"encoding/binary"
	"strconv"
)

// Digits are made eight at once, in the bytes of a word, the first in the lowest, so that one little-endian store writes
// them.

// pairDigits has the two digits of each of the four numbers below 100 that are in the 16-bit lanes of x.
func pairDigits(x uint64) uint64 {
	tens := x * 103 >> 10 & 0x000f_000f_000f_000f // 103/1024 is 1/10 as exactly as numbers below 100 need it
	return (tens | (x-10*tens)<<8) + 0x3030_3030_3030_3030
}

// eightDigits has the digits of n, which is below 100,000,000.
func eightDigits(n uint32) uint64 {
	high := n / 10_000
	x := uint64(high) | uint64(n-high*10_000)<<32
	hundreds := x * 10486 >> 20 & 0x0000_007f_0000_007f // 10486/2^20 is 1/100 in the same way
	return pairDigits(hundreds | (x-100*hundreds)<<16)
}

// pairs has the two digits of each number below 100, the first in the low byte.
var pairs = func() (t [100]uint16) {
	for i := range t {
		t[i] = uint16('0'+i/10) | uint16('0'+i%10)<<8
	}
	return t
}()

// AppendInt is strconv.AppendInt to base 10, faster. The number of digits comes from comparisons and not from the
// digits, so that the processor, which guesses it right more often than not, need not wait for these to go on.
func AppendInt(dst []byte, v int64) []byte {
	var digits int
	switch u := uint64(v); {
	case u < 10:
		return append(dst, byte('0'+u))
	case u < 100:
		digits = 2
	case u < 1_000:
		digits = 3
	case u < 10_000:
		digits = 4
	case u < 100_000:
		digits = 5
	case u < 1_000_000:
		digits = 6
	case u < 10_000_000:
		digits = 7
	case u < 100_000_000:
		digits = 8
	default:
		return appendLong(dst, v)
	}
	dst = binary.LittleEndian.AppendUint64(dst, eightDigits(uint32(v))>>(64-8*digits))
	return dst[:len(dst)-8+digits]
}

// appendLong appends a number that is negative or has more than eight digits.
func appendLong(dst []byte, v int64) []byte {
	if v < 0 {
		return strconv.AppendInt(dst, v, 10)
	}
	high := uint64(v) / 1e8
	dst = AppendInt(dst, int64(high))
	return binary.LittleEndian.AppendUint64(dst, eightDigits(uint32(uint64(v)-high*1e8)))
}
