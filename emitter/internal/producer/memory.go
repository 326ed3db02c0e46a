package producer

import "math/bits"

// memory is the memory of batches, in pieces of few sizes that go round. The producer's lock guards it.
type memory struct {
	limit int
	used  int // by batches
	kept  int // for batches to come
	free  [classes][]*batch
}

const (
	smallest = 1 << 10 // of the pieces; each next size is four times as large
	classes  = 6       // up to a megabyte
)

// class is the smallest size of pieces with n bytes; classes or more: there is none.
func class(n int) int { return (bits.Len(uint((n-1)/smallest)) + 1) / 2 }

func sizeOf(class int) int { return smallest << (2 * class) }

// batch is an empty batch with room for n bytes, its head among them.
func (m *memory) batch(n int) *batch {
	c := class(n)
	if c >= classes {
		m.used += n
		return &batch{buf: make([]byte, batchHead, n)}
	}
	m.used += sizeOf(c)
	if last := len(m.free[c]) - 1; last >= 0 {
		b := m.free[c][last]
		m.free[c] = m.free[c][:last]
		m.kept -= sizeOf(c)
		return b
	}
	return &batch{buf: make([]byte, batchHead, sizeOf(c))}
}

// grow moves a batch to a larger piece, with room for n bytes more, if need be more than most.
func (m *memory) grow(b *batch, n, most int) {
	larger := m.batch(min(max(len(b.buf)+n, 4*cap(b.buf)), max(most, len(b.buf)+n)))
	old := *b
	b.buf = append(larger.buf, old.buf[batchHead:]...)
	larger.buf = old.buf
	m.release(larger)
}

// release takes back a batch that is done with, and the memory of a compressed form.
func (m *memory) release(b *batch) {
	size := cap(b.buf)
	m.used -= size
	c := class(size)
	if c >= classes || sizeOf(c) != size || m.kept+size > m.limit/2 {
		return
	}
	m.kept += size
	*b = batch{buf: b.buf[:batchHead], parts: b.parts[:0]}
	m.free[c] = append(m.free[c], b)
}
