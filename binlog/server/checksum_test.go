package server

import (
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

// TestSumOf: the checksum is that of the bytes, whatever their number is and however many lie in front of them, and those
// behind the front stay what they are.
func TestSumOf(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 300 {
		for _, at := range []int{0, 1, 5, 15, 16, 31, 37, 63, 64, 200} {
			b := make([]byte, at+n)
			for i := range b {
				b[i] = byte(random.Uint32())
			}
			want := crc32.ChecksumIEEE(b[at:])
			if got := sumOf(b, at); got != want || crc32.ChecksumIEEE(b[at:]) != want {
				t.Fatalf("%d bytes behind %d: %08x, want %08x", n, at, got, want)
			}
		}
	}
}

func BenchmarkSumOf(b *testing.B) {
	data := make([]byte, 64+91)
	for b.Loop() {
		sumOf(data, 64)
	}
}
