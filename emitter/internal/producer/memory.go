package producer

// memory is the memory of batches, in pieces of few sizes that go round. The producer's lock guards it.
type memory struct {
	limit int
	used  int // by batches
	kept  int // for batches to come
	free  [classes][][]byte
	spare []*batch // have no pieces …
	parts int      // … but room for so many parts
}

const (
	smallest = 1 << 10 // of the pieces; each next size is four times as large
	classes  = 4       // up to 64 KiB

	mostSpare = 256     // batches
	mostParts = 1 << 16 // of all of them, 3 MiB
)

func sizeOf(class int) int { return smallest << (2 * class) }

// piece is one of a size, empty. What was given back last is given out first, since the processor may still have it.
func (m *memory) piece(class int) []byte {
	m.used += sizeOf(class)
	if last := len(m.free[class]) - 1; last >= 0 {
		p := m.free[class][last]
		m.free[class] = m.free[class][:last]
		m.kept -= sizeOf(class)
		return p
	}
	m.evict()
	return make([]byte, 0, sizeOf(class))
}

// most is how many bytes are used and kept together; only what is used may be more. That is above the limit, so that sizes which
// are asked for less for a moment need not be given up for others and made again.
func (m *memory) most() int { return m.limit + m.limit/4 }

// evict makes room for a piece of a size of which none is kept: of the others fewer are kept.
func (m *memory) evict() {
	for class := range m.free {
		for last := len(m.free[class]) - 1; last >= 0 && m.used+m.kept > m.most(); last-- {
			m.free[class][last] = nil
			m.free[class] = m.free[class][:last]
			m.kept -= sizeOf(class)
		}
	}
}

// batch is one without records.
func (m *memory) batch() *batch {
	if last := len(m.spare) - 1; last >= 0 {
		b := m.spare[last]
		m.spare = m.spare[:last]
		m.parts -= cap(b.parts)
		return b
	}
	return &batch{}
}

// release takes back a batch that is done with.
func (m *memory) release(b *batch) {
	m.clear(b)
	if len(m.spare) < mostSpare && m.parts+cap(b.parts) <= mostParts {
		*b = batch{pieces: b.pieces, parts: b.parts[:0]}
		m.parts += cap(b.parts)
		m.spare = append(m.spare, b)
	}
}

// clear takes back the pieces of a batch. Those of sizes that do not go round are given up, and what is more than most.
func (m *memory) clear(b *batch) {
	for _, p := range b.pieces {
		m.used -= cap(p)
		for class := range classes {
			if cap(p) == sizeOf(class) && m.used+m.kept+cap(p) <= m.most() {
				m.kept += cap(p)
				m.free[class] = append(m.free[class], p[:0])
			}
		}
	}
	clear(b.pieces)
	b.pieces = b.pieces[:0]
}
