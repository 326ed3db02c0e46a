package main

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"

	"go.uber.org/zap"
)

// Where the next collection comes, by Go's own formula, is the floor while less is in use than that leaves room for.
func TestFloorPercent(t *testing.T) {
	for _, floor := range []int64{2 * mebi, 5 * mebi, 24 * mebi, 73 * mebi, 1 << 40} {
		for _, roots := range []int64{0, 100 * kibi, mebi} {
			for _, live := range []int64{0, 1, 100 * kibi, mebi, 3 * mebi, 10 * mebi, 13 * mebi, 16 * mebi, 17 * mebi, 24 * mebi, 200 * mebi, 1 << 41} {
				percent := int64(floorPercent(floor, live, roots))
				goal := max(live+(live+roots)*percent/100, leastHeap*percent/100)
				want := max(floor, live+(live+roots)*gcPercent/100)
				// A percentage is a whole number, and the roots count only where there is something to find.
				if goal > want || goal < want-(live+roots)/100-leastHeap/100 {
					t.Errorf("floor %d, %d live, roots %d: %d %% is a heap of %d, want %d", floor, live, roots, percent, goal, want)
				}
			}
		}
	}
}

// What is in use decides about the heap only above the floor: a few MiB more or less make no difference.
func TestHeapFloor(t *testing.T) {
	const child = "TIDEMARK_TEST_HEAP_FLOOR"
	if os.Getenv(child) == "" { // the floor stays for the rest of the process
		cmd := exec.Command(os.Args[0], "-test.run=^TestHeapFloor$", "-test.v")
		cmd.Env = append(os.Environ(), child+"=1", "GOGC=", "GOMEMLIMIT=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	m, err := boundMemory(gibi, 1, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	goals := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	for _, used := range []int64{0, 4 * mebi, 9 * mebi, 13 * mebi, 40 * mebi, 2 * mebi, 11 * mebi} {
		inUse := make([]byte, used)
		runtime.GC()
		want := max(m.floor, used*(100+gcPercent)/100)
		least, most := want-want/50, want+want/50+2*mebi // the test itself has something in use, too
		var goal int64
		for begun := time.Now(); (goal < least || goal > most) && time.Since(begun) < 10*time.Second; time.Sleep(time.Millisecond) {
			metrics.Read(goals)
			goal = int64(goals[0].Value.Uint64())
		}
		if runtime.KeepAlive(inUse); goal < least || goal > most {
			t.Errorf("%d bytes in use: the heap grows to %d, want %d", used, goal, want)
		}
	}
}
