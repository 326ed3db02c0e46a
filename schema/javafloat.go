package schema

import (
	"math"
	"math/bits"
)

// AppendDouble appends v as Java 17's Double.toString writes it. Java's digits are not always the shortest ones, which
// strconv gives (1.0772758326371069E214 for 1.077275832637107e+214), so its algorithm is followed step by step. NaN and
// the infinities come out as Java names them, without quotes. It is safe for concurrent use and allocates only for dst.
func AppendDouble(dst []byte, v float64) []byte {
	b := math.Float64bits(v)
	fract := b & (1<<52 - 1)
	exp := int(b>>52) & 0x7ff
	if b>>63 != 0 && exp != 0x7ff {
		dst = append(dst, '-')
	}
	significant := 53
	switch exp {
	case 0x7ff:
		return appendNotFinite(dst, fract != 0, b>>63 != 0)
	case 0:
		if fract == 0 {
			return append(dst, "0.0"...)
		}
		zeros := bits.LeadingZeros64(fract)
		shift := zeros - 11
		fract <<= shift
		exp = 1 - shift
		significant = 64 - zeros
	default:
		fract |= 1 << 52
	}
	var d decimalDigits
	d.convert(exp-1023, fract, significant)
	return d.append(dst)
}

// AppendFloat appends v as Java 17's Float.toString writes it.
func AppendFloat(dst []byte, v float32) []byte {
	b := math.Float32bits(v)
	fract := b & (1<<23 - 1)
	exp := int(b>>23) & 0xff
	if b>>31 != 0 && exp != 0xff {
		dst = append(dst, '-')
	}
	significant := 24
	switch exp {
	case 0xff:
		return appendNotFinite(dst, fract != 0, b>>31 != 0)
	case 0:
		if fract == 0 {
			return append(dst, "0.0"...)
		}
		zeros := bits.LeadingZeros32(fract)
		shift := zeros - 8
		fract <<= shift
		exp = 1 - shift
		significant = 32 - zeros
	default:
		fract |= 1 << 23
	}
	var d decimalDigits
	d.convert(exp-127, uint64(fract)<<29, significant)
	return d.append(dst)
}

func appendNotFinite(dst []byte, nan, negative bool) []byte {
	switch {
	case nan:
		return append(dst, "NaN"...)
	case negative:
		return append(dst, "-Infinity"...)
	}
	return append(dst, "Infinity"...)
}

// decimalDigits holds the digits of a positive floating-point number: 0.d1d2d3… times 10 to the power of exp.
type decimalDigits struct {
	exp    int
	n      int
	digits [20]byte
}

// pow5 has the powers of five that fit in 64 bits, pow5Bits their lengths in bits.
var (
	pow5 = [...]uint64{
		1, 5, 25, 125, 625, 3125, 15625, 78125, 390625, 1953125, 9765625, 48828125, 244140625, 1220703125, 6103515625,
		30517578125, 152587890625, 762939453125, 3814697265625, 19073486328125, 95367431640625, 476837158203125,
		2384185791015625, 11920928955078125, 59604644775390625, 298023223876953125, 1490116119384765625,
	}
	pow5Bits = [...]int{
		0, 3, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28, 31, 33, 35, 38, 40, 42, 45, 47, 49, 52, 54, 56, 59, 61,
	}
)

// fiveBits estimates the length in bits of 5 to the power of n.
func fiveBits(n int) int {
	if n < len(pow5Bits) {
		return pow5Bits[n]
	}
	return 3 * n
}

// convert finds the digits of fract × 2^(exp-52), where bit 52 of fract is set and significant is the number of bits
// that count. The steps, limits and overflows are those of jdk.internal.math.FloatingDecimal in Java 17.
func (d *decimalDigits) convert(exp int, fract uint64, significant int) {
	tail := bits.TrailingZeros64(fract)
	nbits := 53 - tail
	tiny := max(0, nbits-exp-1)
	if exp <= 62 && exp >= -21 && tiny == 0 && nbits < 64 {
		insignificant := 0
		if exp > significant {
			insignificant = insignificantDigits(exp - significant - 1)
		}
		if exp >= 52 {
			fract <<= exp - 52
		} else {
			fract >>= 52 - exp
		}
		d.integer(fract, insignificant)
		return
	}
	decExp := estimateExponent(fract, exp)
	b5 := max(0, -decExp)
	b2 := b5 + tiny + exp
	s5 := max(0, decExp)
	s2 := s5 + tiny
	m5 := b5
	m2 := b2 - significant
	fract >>= tail
	b2 -= nbits - 1
	common := min(b2, s2)
	b2 -= common
	s2 -= common
	m2 -= common
	if nbits == 1 { // a power of two: the next number below is only half as far away
		m2--
	}
	if m2 < 0 {
		b2 -= m2
		s2 -= m2
		m2 = 0
	}
	bBits := nbits + b2 + fiveBits(b5)
	tenSBits := s2 + 1 + fiveBits(s5+1)
	switch {
	case bBits < 32 && tenSBits < 32:
		d.generate32(decExp, int32(fract)*int32(pow5[b5])<<b2, int32(pow5[s5])<<s2, int32(pow5[m5])<<m2)
	case bBits < 64 && tenSBits < 64:
		d.generate64(decExp, int64(fract*pow5[b5]<<b2), int64(pow5[s5]<<s2), int64(pow5[m5]<<m2))
	default:
		d.generateBig(decExp, fract, b2, b5, s2, s5, m2, m5)
	}
}

// insignificantDigits is the number of decimal digits of an integer that its lowest p bits make meaningless.
func insignificantDigits(p int) int {
	if p <= 1 || p >= 64 {
		return 0
	}
	n := 0
	for v := uint64(1) << p; v >= 10; v /= 10 {
		n++
	}
	return n
}

// estimateExponent estimates the decimal exponent of fract × 2^(exp-52); it is right or one too high. The conversions
// keep compilers from fusing the operations.
func estimateExponent(fract uint64, exp int) int {
	d2 := math.Float64frombits(0x3ff<<52 | fract&(1<<52-1))
	v := float64(float64(d2-1.5)*0.289529654) + 0.176091259
	return int(math.Floor(float64(v) + float64(float64(exp)*0.301029995663981)))
}

// integer takes the digits of v, rounded to lose the last insignificant ones.
func (d *decimalDigits) integer(v uint64, insignificant int) {
	d.exp = 1
	if insignificant != 0 {
		pow := pow5[insignificant] << insignificant
		rest := v % pow
		v /= pow
		d.exp += insignificant
		if rest >= pow>>1 {
			v++
		}
	}
	for v%10 == 0 {
		v /= 10
		d.exp++
	}
	var buf [20]byte
	i := len(buf)
	for {
		i--
		buf[i] = byte('0' + v%10)
		if v /= 10; v == 0 {
			break
		}
		d.exp++
	}
	d.n = copy(d.digits[:], buf[i:])
}

func (d *decimalDigits) digit(q int) {
	d.digits[d.n] = byte('0' + q)
	d.n++
}

// generate32 divides b by s digit by digit until the rest is below half the distance m to the next number.
func (d *decimalDigits) generate32(decExp int, b, s, m int32) {
	tens := s * 10
	q := b / s
	b = 10 * (b % s)
	m *= 10
	low, high := b < m, b+m > tens
	if q == 0 && !high {
		decExp--
	} else {
		d.digit(int(q))
	}
	if decExp < -3 || decExp >= 8 {
		low, high = false, false
	}
	for !low && !high {
		q = b / s
		b = 10 * (b % s)
		m *= 10
		if m > 0 {
			low, high = b < m, b+m > tens
		} else { // m overflowed: it is certainly larger than b
			low, high = true, true
		}
		d.digit(int(q))
	}
	d.finish(decExp, low, high, int64(b<<1-tens))
}

// generate64 is generate32 for wider numbers.
func (d *decimalDigits) generate64(decExp int, b, s, m int64) {
	tens := s * 10
	q := b / s
	b = 10 * (b % s)
	m *= 10
	low, high := b < m, b+m > tens
	if q == 0 && !high {
		decExp--
	} else {
		d.digit(int(q))
	}
	if decExp < -3 || decExp >= 8 {
		low, high = false, false
	}
	for !low && !high {
		q = b / s
		b = 10 * (b % s)
		m *= 10
		if m > 0 {
			low, high = b < m, b+m > tens
		} else {
			low, high = true, true
		}
		d.digit(int(q))
	}
	d.finish(decExp, low, high, b<<1-tens)
}

// generateBig is generate64 for numbers of any length.
func (d *decimalDigits) generateBig(decExp int, fract uint64, b2, b5, s2, s5, m2, m5 int) {
	var b, s, m, tens wide
	b.set(fract, b5, b2)
	s.set(1, s5, s2)
	m.set(1, m5+1, m2+1)
	tens.set(1, s5+1, s2+1)
	q := b.quoRem10(&s)
	low, high := b.cmp(&m) < 0, b.sumCmp(&m, &tens) >= 0
	if q == 0 && !high {
		decExp--
	} else {
		d.digit(q)
	}
	if decExp < -3 || decExp >= 8 {
		low, high = false, false
	}
	for !low && !high {
		q = b.quoRem10(&s)
		m.mul(10)
		low, high = b.cmp(&m) < 0, b.sumCmp(&m, &tens) >= 0
		d.digit(q)
	}
	var difference int64
	if high && low {
		difference = int64(b.sumCmp(&b, &tens))
	}
	d.finish(decExp, low, high, difference)
}

// finish rounds the last digit by the condition that ended the generation.
func (d *decimalDigits) finish(decExp int, low, high bool, lowDifference int64) {
	d.exp = decExp + 1
	if !high || low && (lowDifference < 0 || lowDifference == 0 && d.digits[d.n-1]&1 == 0) {
		return
	}
	i := d.n - 1
	for ; d.digits[i] == '9'; i-- {
		if i == 0 {
			d.exp++
			d.digits[0] = '1'
			return
		}
		d.digits[i] = '0'
	}
	d.digits[i]++
}

// append writes the digits as Java does: plain from 10^-3 to below 10^7, else with an exponent.
func (d *decimalDigits) append(dst []byte) []byte {
	digits := d.digits[:d.n]
	switch {
	case d.exp > 0 && d.exp < 8:
		if d.n <= d.exp {
			dst = append(dst, digits...)
			for i := d.n; i < d.exp; i++ {
				dst = append(dst, '0')
			}
			return append(dst, '.', '0')
		}
		dst = append(dst, digits[:d.exp]...)
		dst = append(dst, '.')
		return append(dst, digits[d.exp:]...)
	case d.exp <= 0 && d.exp > -3:
		dst = append(dst, '0', '.')
		for i := d.exp; i < 0; i++ {
			dst = append(dst, '0')
		}
		return append(dst, digits...)
	}
	dst = append(dst, digits[0], '.')
	if d.n > 1 {
		dst = append(dst, digits[1:]...)
	} else {
		dst = append(dst, '0')
	}
	dst = append(dst, 'E')
	e := d.exp - 1
	if e < 0 {
		dst = append(dst, '-')
		e = -e
	}
	if e >= 100 {
		dst = append(dst, byte('0'+e/100))
	}
	if e >= 10 {
		dst = append(dst, byte('0'+e/10%10))
	}
	return append(dst, byte('0'+e%10))
}

// wide is a non-negative integer of up to 1280 bits, the most that a double's digits need.
type wide struct {
	n int // words in use
	w [20]uint64
}

// set makes b = v × 5^p5 × 2^p2.
func (b *wide) set(v uint64, p5, p2 int) {
	b.n = 1
	b.w[0] = v
	for ; p5 >= len(pow5); p5 -= len(pow5) - 1 {
		b.mul(pow5[len(pow5)-1])
	}
	b.mul(pow5[p5])
	words, rest := p2/64, uint(p2%64)
	b.mul(1 << rest)
	if words > 0 {
		copy(b.w[words:], b.w[:b.n])
		clear(b.w[:words])
		b.n += words
	}
}

func (b *wide) mul(f uint64) {
	var carry uint64
	for i := range b.n {
		hi, lo := bits.Mul64(b.w[i], f)
		var c uint64
		b.w[i], c = bits.Add64(lo, carry, 0)
		carry = hi + c
	}
	if carry != 0 {
		b.w[b.n] = carry
		b.n++
	}
}

func (b *wide) cmp(o *wide) int {
	for i := max(b.n, o.n) - 1; i >= 0; i-- {
		if b.w[i] != o.w[i] {
			if b.w[i] < o.w[i] {
				return -1
			}
			return 1
		}
	}
	return 0
}

// sumCmp compares b+o with t.
func (b *wide) sumCmp(o, t *wide) int {
	sum := wide{n: max(b.n, o.n)}
	var carry uint64
	for i := range sum.n {
		sum.w[i], carry = bits.Add64(b.w[i], o.w[i], carry)
	}
	if carry != 0 {
		sum.w[sum.n] = 1
		sum.n++
	}
	return sum.cmp(t)
}

// quoRem10 gives the quotient b/s, which is below 10, and makes b ten times the rest.
func (b *wide) quoRem10(s *wide) int {
	q := 0
	for b.cmp(s) >= 0 {
		var borrow uint64
		for i := range max(b.n, s.n) {
			b.w[i], borrow = bits.Sub64(b.w[i], s.w[i], borrow)
		}
		q++
	}
	b.mul(10)
	for b.n > 1 && b.w[b.n-1] == 0 {
		b.n--
	}
	return q
}
