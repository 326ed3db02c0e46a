package offset

import "sync/atomic"

// gtidEnd is an end that has moved since a base was made.
type gtidEnd struct {
	src  int32 // the source in the base …
	iv   int32 // … and its interval that ends at last; ofDomain: src is a domain, whose newest number is last
	last int64
}

// gtidLog holds ends that have moved, in the order in which they did: a later one of the same interval counts. Sets share
// it, each with the first so many; what is written is never changed. Only the set that has all of it can add to it.
type gtidLog struct {
	used atomic.Int32
	ends [gtidLogSize]gtidEnd
}

// gtidLogSize bounds what it takes to find the end of an interval. A base is made anew once in so many times.
const gtidLogSize = 256

// move returns the set with an end moved. The one that had moved last goes into the log, unless it is the same or another
// set has used the place: then there is a new base.
func (g GTIDSet) move(to gtidEnd) GTIDSet {
	m := g.moved
	if m.last == 0 || m.src == to.src && m.iv == to.iv {
		g.moved = to
		return g
	}
	log := g.base.log.Load()
	if log == nil {
		log = &gtidLog{}
		if !g.base.log.CompareAndSwap(nil, log) {
			log = g.base.log.Load()
		}
	}
	if g.logged < gtidLogSize && log.used.CompareAndSwap(int32(g.logged), int32(g.logged+1)) {
		log.ends[g.logged] = m
		g.logged++
		g.moved = to
		return g
	}
	return GTIDSet{base: &gtidBase{sources: g.sources(), domains: g.domains()}, moved: to}
}

// ends gives all ends that have moved, later ones later.
func (g GTIDSet) ends(yield func(gtidEnd) bool) {
	if g.logged > 0 {
		log := g.base.log.Load()
		for i := range log.ends[:g.logged] {
			if !yield(log.ends[i]) {
				return
			}
		}
	}
	if g.moved.last != 0 {
		yield(g.moved)
	}
}

// movedTo is where an interval's end has moved to; 0: it has not.
func (g GTIDSet) movedTo(src, iv int) int64 {
	if m := g.moved; m.last != 0 && int(m.src) == src && int(m.iv) == iv {
		return m.last
	}
	if g.logged > 0 {
		ends := g.base.log.Load().ends[:g.logged]
		for i := len(ends) - 1; i >= 0; i-- {
			if int(ends[i].src) == src && int(ends[i].iv) == iv {
				return ends[i].last
			}
		}
	}
	return 0
}

// end is the last number of an interval.
func (g GTIDSet) end(src, iv int) int64 {
	if last := g.movedTo(src, iv); last != 0 {
		return last
	}
	return g.base.sources[src].intervals[iv].last
}
