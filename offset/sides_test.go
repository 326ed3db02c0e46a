package offset

import (
	"reflect"
	"testing"
)

func openAt(n int64) *Side {
	return &Side{Server: "s", Open: &Open{GTID: GTID{Tag: "u", Number: 7}, Rows: n, XID: "x"}, XA: []Prepared{{XID: "y"}}}
}

// TestSides keep what they hold where it is until Reset, and are the same memory behind it.
func TestSides(t *testing.T) {
	var s Sides
	const many = 3*sidesBlock + 1
	round := func() (copies []*Side) {
		from := new(Side)
		for n := range int64(many) {
			*from = *openAt(n)
			c := s.Copy(from, uint64(n))
			if again := s.Copy(from, uint64(n)); again != c || c == from || c.Open == from.Open {
				t.Fatalf("side %d is copied to %p and %p from %p", n, c, again, from)
			}
			copies = append(copies, c)
		}
		for n, c := range copies {
			if !reflect.DeepEqual(c, openAt(int64(n))) {
				t.Fatalf("side %d is %+v, %+v", n, c, c.Open)
			}
		}
		return copies
	}
	first := round()
	s.Reset()
	if second := round(); second[0] != first[0] || second[many-1] != first[many-1] {
		t.Error("memory is not used again")
	}
	// The same event before and behind a Reset: what it was copied to is free.
	from := openAt(1)
	before := s.Copy(from, 1)
	s.Reset()
	if s.Copy(openAt(2), 2); s.Copy(from, 1) == before || before.Open.Rows != 1 && before.Open.Rows != 2 {
		t.Error("a copy outlives Reset")
	}
	from = openAt(0)
	if n := testing.AllocsPerRun(10, func() {
		s.Reset()
		for n := range uint64(many) {
			s.Copy(from, n)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestSidesGiveUp what one large batch took.
func TestSidesGiveUp(t *testing.T) {
	var s Sides
	from := openAt(0)
	for n := range uint64(100 * sidesBlock) {
		s.Copy(from, n)
	}
	s.Reset()
	if n := cap(s.blocks); n > 20 {
		t.Errorf("%d blocks are kept", n)
	}
	if s.Copy(from, 0); s.used != 1 {
		t.Errorf("%d are used", s.used)
	}
}

// TestKept offsets do not change with the memory that they were in. Sides between transactions are shared.
func TestKept(t *testing.T) {
	var s Sides
	o := Offset{File: "f", Pos: 4, Row: 2, Side: s.Copy(openAt(5), 1)}
	kept := o.Kept()
	s.Reset()
	s.Copy(openAt(6), 2)
	if !kept.Equal(o) || !reflect.DeepEqual(kept.Side, openAt(5)) {
		t.Errorf("kept is %+v with %+v", kept, kept.Side.Open)
	}
	between := Offset{File: "f", Pos: 4, Side: &Side{Server: "s"}}
	if got := between.Kept(); got.Side != between.Side {
		t.Error("a side that is shared is copied")
	}
	if got := (Offset{File: "f"}).Kept(); got.Side != nil {
		t.Errorf("the side of none is %+v", got.Side)
	}
}
