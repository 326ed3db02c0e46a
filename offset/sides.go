package offset

import "slices"

// Sides is memory for the sides of offsets inside transactions that are given up together: those of the records of a batch. So
// a rows event costs no allocation. What it hands out holds until Reset; an offset that is kept longer is kept as
// [Offset.Kept]. The zero value is ready. Not safe for concurrent use, and not to be copied.
type Sides struct {
	blocks []*[sidesBlock]openSide // they stay where they are, since offsets point into them
	used   int

	of    *Side // copied last …
	event uint64
	copy  *Side // … to this
}

// openSide is a side with its open transaction.
type openSide struct {
	side Side
	open Open
}

// sidesBlock is how many sides are allocated at a time.
const sidesBlock = 64

// Copy is a copy of side, which has an open transaction, in this memory. Event tells apart what side holds in turn: while both
// stay the same, so does the copy.
func (s *Sides) Copy(side *Side, event uint64) *Side {
	if s.of == side && s.event == event {
		return s.copy
	}
	block, i := s.used/sidesBlock, s.used%sidesBlock
	if block == len(s.blocks) {
		s.blocks = append(s.blocks, new([sidesBlock]openSide))
	}
	s.used++
	to := &s.blocks[block][i]
	to.put(side)
	s.of, s.event, s.copy = side, event, &to.side
	return s.copy
}

// Reset makes all memory free again, but for what an uncommonly large batch took.
func (s *Sides) Reset() {
	const most = 16
	if len(s.blocks) > most {
		s.blocks = slices.Clone(s.blocks[:most])
	}
	s.used, s.of, s.copy = 0, nil, nil
}

func (s *openSide) put(side *Side) {
	s.open, s.side = *side.Open, *side
	s.side.Open = &s.open
}

// Kept is the side in memory of its own, which may be kept however long.
func (s *Side) Kept() *Side {
	if s == nil || s.Open == nil {
		return s // shared, and never changed
	}
	own := new(openSide)
	own.put(s)
	return &own.side
}

// Kept is the offset with a side in memory of its own ([Side.Kept]).
func (o Offset) Kept() Offset {
	o.Side = o.Side.Kept()
	return o
}
