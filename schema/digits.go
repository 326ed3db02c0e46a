package schema

import "encoding/binary"

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

// PutNineDigits writes n, which is below 1,000,000,000, with zeros before it.
func PutNineDigits(b *[9]byte, n uint32) {
	binary.LittleEndian.PutUint64(b[:8], eightDigits(n/10))
	b[8] = byte('0' + n%10)
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
	switch u := uint64(v); {
	case u < 10:
		return append(dst, byte('0'+u))
	case u < 100:
		return binary.LittleEndian.AppendUint16(dst, pairs[u])
	case u < 10_000:
		w := uint32(pairs[u/100]) | uint32(pairs[u%100])<<16
		if u < 1_000 {
			dst = binary.LittleEndian.AppendUint32(dst, w>>8)
			return dst[:len(dst)-1]
		}
		return binary.LittleEndian.AppendUint32(dst, w)
	case u < 100_000_000:
		return appendShort(dst, uint32(u))
	}
	return appendLong(dst, v)
}

// appendShort appends a number below 100,000,000.
func appendShort(dst []byte, n uint32) []byte {
	digits := 8
	switch {
	case n < 10:
		digits = 1
	case n < 100:
		digits = 2
	case n < 1_000:
		digits = 3
	case n < 10_000:
		digits = 4
	case n < 100_000:
		digits = 5
	case n < 1_000_000:
		digits = 6
	case n < 10_000_000:
		digits = 7
	}
	dst = binary.LittleEndian.AppendUint64(dst, eightDigits(n)>>(64-8*digits))
	return dst[:len(dst)-8+digits]
}

// appendLong appends a number that is negative or has more than eight digits.
func appendLong(dst []byte, v int64) []byte {
	u := uint64(v)
	if v < 0 {
		dst, u = append(dst, '-'), -u
		if u < 1e8 {
			return appendShort(dst, uint32(u))
		}
	}
	high := u / 1e8
	if top := high / 1e8; top > 0 {
		dst = appendShort(dst, uint32(top))
		dst = binary.LittleEndian.AppendUint64(dst, eightDigits(uint32(high-top*1e8)))
	} else {
		dst = appendShort(dst, uint32(high))
	}
	return binary.LittleEndian.AppendUint64(dst, eightDigits(uint32(u-high*1e8)))
}
