package sim

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

var oneSeed = flag.Uint64("seed", 0, "run only this seed")

// allSeeds is from how many seeds on everything that can happen must have happened.
const allSeeds = 200

// TestSim runs seeds: SIM_SEEDS of them, or the one that is given with -seed.
func TestSim(t *testing.T) {
	seeds := allSeeds
	if n, err := strconv.Atoi(os.Getenv("SIM_SEEDS")); err == nil {
		seeds = n
	}
	if *oneSeed != 0 {
		simulate(t, *oneSeed)
		return
	}
	var all tally
	t.Run("seeds", func(t *testing.T) {
		for seed := range uint64(seeds) {
			t.Run(fmt.Sprint(seed+1), func(t *testing.T) {
				t.Parallel()
				all.add(simulate(t, seed+1))
			})
		}
	})
	t.Log(all.String())
	if seeds >= allSeeds && !t.Failed() {
		for _, name := range all.missing() {
			t.Errorf("never happened in %d runs: %s", seeds, name)
		}
	}
}

// simulate runs a seed.
func simulate(t *testing.T, seed uint64) *simulation {
	var s *simulation
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var err error
		if s, err = newSimulation(seed, folder); err != nil {
			t.Fatal(err)
		}
		s.run()
		if len(s.list) > 0 {
			t.Errorf("to run it again: go test ./it/sim -run 'TestSim$' -args -seed=%d\n%s\n%s", seed, s.report(), s.log.String())
		} else if *oneSeed != 0 {
			t.Log(s.report())
		}
	})
	return s
}

// tally adds up what happened in many runs.
type tally struct {
	mu      sync.Mutex
	runs    int
	changes int
	records int
	repeats int
	hits    map[string]int
}

func (a *tally) add(s *simulation) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.hits == nil {
		a.hits = make(map[string]int)
	}
	a.runs++
	a.changes += s.checked.changes
	a.records += s.checked.records
	a.repeats += s.checked.repeats
	for name, n := range s.hits {
		a.hits[name] += n
	}
}

// missing are the faults and crash points that never came about.
func (a *tally) missing() (names []string) {
	for _, name := range everything() {
		if a.hits[name] == 0 {
			names = append(names, name)
		}
	}
	return names
}

func (a *tally) String() string {
	var b strings.Builder
	faults := 0
	for _, name := range everything() {
		fmt.Fprintf(&b, "%6d  %s\n", a.hits[name], name)
		faults += a.hits[name]
	}
	return fmt.Sprintf("%d runs, %d changes, %d records checked, %d of them repeats; faults: %d\n%s", a.runs, a.changes, a.records, a.repeats, faults, b.String())
}
