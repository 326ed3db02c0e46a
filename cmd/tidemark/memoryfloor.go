package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// gcPercent is how much garbage there may be for what is in use, above the floor. The default of 100 doubles what is in use, and a
// row makes almost none, so that the collector has little to do with half of it, too.
const gcPercent = 50

// leastHeap is where Go collects with a percentage of 100 at the earliest; with another it is in proportion.
const leastHeap = 4 * mebi

// heapFloor lets the heap grow to a floor before garbage is collected, however little is in use. What is in use hangs on the
// transactions' size and on the moment, and without a floor the peak is a multiple of what one collection happened to find.
// A small heap would also be collected often, for almost nothing.
//
// Go knows percentages only, so a new one is set behind each collection. Where nothing is collected, nothing is done.
type heapFloor struct {
	bytes   int64
	percent int // set last
	samples []metrics.Sample
}

// collection becomes garbage with each, whereupon its finalizer runs.
type collection struct{ floor *heapFloor }

// keepHeapFloor sets the percentage for now, and behind each collection from now on.
func keepHeapFloor(bytes int64) {
	f := &heapFloor{bytes: bytes, samples: []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}}
	f.collected(&collection{f})
}

func (f *heapFloor) collected(c *collection) {
	metrics.Read(f.samples)
	of := func(i int) int64 { return int64(f.samples[i].Value.Uint64()) }
	if percent := floorPercent(f.bytes, of(0), of(1)+of(2)); percent != f.percent {
		f.percent = percent
		debug.SetGCPercent(percent)
	}
	runtime.SetFinalizer(c, func(c *collection) { c.floor.collected(c) })
}

// floorPercent is the percentage with which the next collection comes when the heap has grown to a floor, or by gcPercent if
// that is later. Go takes it of what the last one has found live and of the roots, that is stacks and globals.
func floorPercent(floor, live, roots int64) int {
	percent := min((floor-live)*100/max(live+roots, 1), floor*100/leastHeap)
	return int(max(percent, gcPercent))
}
