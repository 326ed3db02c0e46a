package schema

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// The functions of this file read the text of a column's default as Debezium's BinlogDefaultValueConverter does. They
// return false where it fails, and so gives the schema no default. What it makes of odd texts is part of the schema's
// bytes, so it is kept: integers go through a double, escapes in strings stay.

// orError makes a parse function of a mapping.
func orError(parse func(string) (Value, bool)) func(string) (*Value, error) {
	return func(text string) (*Value, error) {
		v, ok := parse(text)
		if !ok {
			return nil, errNoValue
		}
		return &v, nil
	}
}

// withoutIntroducer takes the quotes and the character set from _utf8mb4'text'.
func withoutIntroducer(text string) string {
	rest, ok := strings.CutPrefix(text, "_")
	if !ok || !strings.HasSuffix(rest, "'") || strings.ContainsAny(rest, "\n\r") {
		return text
	}
	name, rest, ok := strings.Cut(rest[:len(rest)-1], "'")
	if !ok || name == "" {
		return text
	}
	for _, r := range name {
		if !(r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z') {
			return text
		}
	}
	return rest
}

func textDefault(text string) (*Value, error) {
	return &Value{Kind: String, Bytes: []byte(withoutIntroducer(text))}, nil
}

func parseBool(text string) (Value, bool) {
	text = trimmed(text)
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		return boolValue(n != 0), true
	}
	return boolValue(strings.EqualFold(text, "true")), true
}

func trimmed(text string) string { return withoutIntroducer(strings.TrimSpace(text)) }

// number reads a double, and TRUE and FALSE.
func number(text string) (float64, bool) {
	text = trimmed(text)
	switch {
	case strings.EqualFold(text, "true"):
		return 1, true
	case strings.EqualFold(text, "false"):
		return 0, true
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil && !math.IsNaN(f)
}

func parseInt(text, typ string) (Value, bool) {
	f, ok := number(text)
	if !ok {
		return Value{}, false
	}
	n := int64(0)
	switch f = math.Floor(f + 0.5); {
	case f >= math.MaxInt64:
		n = math.MaxInt64
	case f <= math.MinInt64:
		n = math.MinInt64
	default:
		n = int64(f)
	}
	switch typ {
	case "int16":
		n = int64(int16(n))
	case "int32":
		n = int64(int32(n))
	}
	return Value{Kind: Int, Int: n}, true
}

func parseYear(text string) (Value, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
	return Value{Kind: Int, Int: int64(adjustYear(int(n)))}, err == nil
}

func parseFloat(text string) (Value, bool) {
	f, ok := number(text)
	return Value{Kind: Float, Float: float64(float32(f))}, ok
}

func parseDouble(text string) (Value, bool) {
	f, ok := number(text)
	return Value{Kind: Double, Float: f}, ok
}

// parseUnscaled reads a decimal, rounded half up (away from zero) to the column's scale, as its unscaled value in two's
// complement.
func parseUnscaled(text string, scale int) ([]byte, bool) {
	text = trimmed(text)
	switch {
	case strings.EqualFold(text, "true"):
		text = "1"
	case strings.EqualFold(text, "false"):
		text = "0"
	}
	// Rat takes fractions and prefixes, too, and an exponent may ask for any amount of memory.
	if strings.Trim(text, "0123456789+-.eE") != "" || len(text) > 4*maxPrecision {
		return nil, false
	}
	if f, err := strconv.ParseFloat(text, 64); err != nil || math.Abs(f) >= 1e66 || f != 0 && math.Abs(f) < 1e-100 {
		return nil, false
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, false
	}
	unscaled := new(big.Int).Mul(r.Num(), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil))
	negative := unscaled.Sign() < 0
	unscaled.Abs(unscaled)
	// (2n + d) / 2d is n/d rounded half up.
	unscaled.Lsh(unscaled, 1).Add(unscaled, r.Denom())
	unscaled.Quo(unscaled, new(big.Int).Lsh(r.Denom(), 1))
	var n [4]uint64
	var all [32]byte
	if unscaled.BitLen() > 255 {
		return nil, false
	}
	unscaled.FillBytes(all[:])
	for i := range n {
		for _, b := range all[24-8*i:][:8] {
			n[i] = n[i]<<8 | uint64(b)
		}
	}
	var s Scratch
	return appendTwosComplement(&n, negative, &s), true
}

// parseBits reads binary digits, least significant byte first in the value.
func parseBits(text string, size int) (Value, bool) {
	text = trimmed(text)
	n, err := strconv.ParseUint(text, 2, 64)
	if err != nil {
		return Value{}, false
	}
	if digits := (len(text) + 7) / 8; digits > size {
		size = digits
	}
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(n)
		n >>= 8
	}
	return Value{Kind: Bytes, Bytes: b}, true
}

// parseDateTime reads a date with or without a time of day. ok is false for what is not in the calendar, and so for all
// that Debezium replaces by null or the epoch.
func parseDateTime(text string) (c civil, ok bool) {
	date, clock, timed := strings.Cut(trimmed(text), " ")
	parts := strings.Split(date, "-")
	if len(parts) != 3 {
		return c, false
	}
	if c.year, ok = digits(parts[0], 4); !ok {
		return c, false
	}
	if c.month, ok = digits(parts[1], 2); !ok {
		return c, false
	}
	if c.day, ok = digits(parts[2], 2); !ok || !c.ok() {
		return c, false
	}
	if !timed {
		return c, true
	}
	if c.hour, c.minute, c.second, c.micros, ok = parseClock(clock); !ok {
		return c, false
	}
	return c, c.hour <= 23 && c.minute <= 59 && c.second <= 59
}

// digits reads a number of up to so many digits.
func digits(text string, most int) (int, bool) {
	if len(text) < 1 || len(text) > most || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// parseClock reads h:m, h:m:s or h:m:s.f, of whose fraction only the µs count.
func parseClock(text string) (hour, minute, second, micros int, ok bool) {
	whole, fraction, _ := strings.Cut(text, ".")
	parts := strings.Split(whole, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return 0, 0, 0, 0, false
	}
	if hour, ok = digits(parts[0], 3); !ok {
		return 0, 0, 0, 0, false
	}
	if minute, ok = digits(parts[1], 2); !ok {
		return 0, 0, 0, 0, false
	}
	if len(parts) == 3 {
		if second, ok = digits(parts[2], 2); !ok {
			return 0, 0, 0, 0, false
		}
	}
	if fraction != "" {
		if len(fraction) > 6 {
			fraction = fraction[:6]
		}
		if micros, ok = digits(fraction, 6); !ok {
			return 0, 0, 0, 0, false
		}
		for i := len(fraction); i < 6; i++ {
			micros *= 10
		}
	}
	return hour, minute, second, micros, true
}

// parseTime gives µs.
func parseTime(text string) (int64, bool) {
	text = trimmed(text)
	if _, clock, ok := strings.Cut(text, " "); ok { // a date before it does not count
		text = clock
	}
	clock, negative := strings.CutPrefix(text, "-")
	var c civil
	var ok bool
	if c.hour, c.minute, c.second, c.micros, ok = parseClock(clock); !ok {
		return 0, false
	}
	micros := c.microsOfDay()
	if negative {
		micros = -micros
	}
	return micros, true
}

// isEpoch says whether a TIMESTAMP's default is a zero date or CURRENT_TIMESTAMP, which has become the epoch in the
// definition. Debezium writes the epoch without fraction for them where there must be a value.
func isEpoch(text string) bool {
	text = trimmed(text)
	return text == "0" || text == "1970-01-01 00:00:00" || strings.HasPrefix(text, "0000-")
}
