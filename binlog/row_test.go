package binlog

import (
	"bytes"
	"math/rand/v2"
	"reflect"
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
			w := walker{cells: []cell{behind(prefix)}, body: body}
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
		w := walker{cells: []cell{behind(prefix)}, body: body}
		if i := w.image(dst); i >= 0 || len(dst[0]) != length {
			t.Errorf("prefix of %d bytes: got %d bytes, want %d", prefix, len(dst[0]), length)
		}
	}
}

// TestImagesOfManyColumns compares the walk over whole images with that over some columns, here all: with NULLs anywhere, and
// cut off at each byte.
func TestImagesOfManyColumns(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		n := 1 + random.IntN(70)
		cells, all := make([]cell, n), make([]int, n)
		body := make([]byte, (n+7)/8)
		sparse := random.IntN(6)
		for i := range cells {
			all[i] = i
			if cells[i] = (cell{size: uint16(random.IntN(10))}); random.IntN(2) == 0 {
				cells[i] = behind(uint8(1 + random.IntN(4)))
			}
			if random.IntN(1+sparse) == 1 {
				body[i>>3] |= 1 << (i & 7)
				continue
			}
			size := int(cells[i].size)
			if prefix := cells[i].prefix; prefix > 0 {
				size = random.IntN(20)
				body = append(body, []byte{byte(size), 0, 0, 0}[:prefix]...)
			}
			for range size {
				body = append(body, byte(random.IntN(256)))
			}
		}
		if n&7 != 0 { // bits behind the last column mean nothing
			body[n>>3] |= 0xff << (n & 7)
		}
		for cut := (n + 7) / 8; cut <= len(body)+9; cut++ {
			part := append(slices.Clip(body), 1, 2, 3, 4, 5, 6, 7, 8, 9)[:cut]
			got, want := walker{cells: cells, body: part}, walker{cells: cells, body: part}
			gotCells, wantCells := make([][]byte, n), make([][]byte, n)
			if g, w := got.image(gotCells), want.columns(wantCells, all); g != w || w < 0 && !bytes.Equal(got.body, want.body) {
				t.Fatalf("%v, image %x: got %d and left %x, want %d and %x", cells, part, g, got.body, w, want.body)
			} else if w < 0 && !reflect.DeepEqual(gotCells, wantCells) {
				t.Fatalf("%v, image %x: got %x, want %x", cells, part, gotCells, wantCells)
			}
		}
	}
}
