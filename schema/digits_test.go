package schema

import (
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
		for _, n := range []int64{v - 1, v, v + 1, 7 * v, 11*v - 1, -v, math.MinInt64, math.MaxInt64} {
			check(n)
		}
		if v > math.MaxInt64/10 {
			break
		}
	}
}
