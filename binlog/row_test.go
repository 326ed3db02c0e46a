package binlog

import (
	"bytes"
	"slices"
	"testing"
)

// TestLastCell walks images whose last cell has a length prefix: with too few bytes behind it for the usual way of
// reading it, and cut off at each byte.
func TestLastCell(t *testing.T) {
	for prefix := uint8(1); prefix <= 4; prefix++ {
		for length := range 6 {
			cell0 := bytes.Repeat([]byte{'x'}, length)
			body := slices.Concat([]byte{0}, []byte{byte(length), 0, 0, 0}[:prefix], cell0)
			dst := make([][]byte, 1)
			w := walker{cells: []cell{{prefix: prefix}}, body: body}
			if i := w.image(dst); i >= 0 || len(w.body) != 0 || !bytes.Equal(dst[0], cell0) || dst[0] == nil {
				t.Errorf("prefix of %d bytes, cell of %d: got %q", prefix, length, dst[0])
			}
			for n := range body {
				w.body = body[:n]
				if i := w.image(dst); i != 0 {
					t.Errorf("prefix of %d bytes, cell of %d: cut at %d, nothing is missed", prefix, length, n)
				}
			}
		}
	}
	for prefix, length := range map[uint8]int{1: 0xff, 2: 0x1234, 3: 0x012345} {
		body := slices.Concat([]byte{0, byte(length), byte(length >> 8), byte(length >> 16)}[:1+prefix], make([]byte, length))
		dst := make([][]byte, 1)
		w := walker{cells: []cell{{prefix: prefix}}, body: body}
		if i := w.image(dst); i >= 0 || len(dst[0]) != length {
			t.Errorf("prefix of %d bytes: got %d bytes, want %d", prefix, len(dst[0]), length)
		}
	}
}
