package schema

import (
	"fmt"
	"math"
	"strconv"
	"testing"
)

func TestAppendInt(t *testing.T) {
	check := func(n int64) {
		if got, want := string(AppendInt([]byte("x"), n)), "x"+strconv.FormatInt(n, 10); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for n := range int64(20_000) {
		check(n)
	}
	for v := int64(1); v > 0; v *= 10 {
		for _, n := range []int64{v - 1, v, v + 1, 7 * v, 11*v - 1, -v, -7*v - 3, math.MinInt64, math.MaxInt64} {
			check(n)
		}
		if v > math.MaxInt64/10 {
			break
		}
	}
}

func TestPutNineDigits(t *testing.T) {
	for _, n := range []uint32{0, 7, 10, 123, 99_999_999, 100_000_000, 123_456_789, 999_999_999} {
		var b [9]byte
		PutNineDigits(&b, n)
		if want := fmt.Sprintf("%09d", n); string(b[:]) != want {
			t.Errorf("got %s, want %s", b, want)
		}
	}
}
