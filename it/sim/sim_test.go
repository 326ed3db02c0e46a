package sim

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

var oneSeed = flag.Uint64("seed", 0, "run only this seed")

// allSeeds is from how many seeds on everything that can happen must have happened.
const allSeeds = 200

// TestSim runs seeds: SIM_SEEDS of them, from SIM_FROM (1) on, or the one that is given with -seed.
func TestSim(t *testing.T) {
	seeds := allSeeds
	if n, err := strconv.Atoi(os.Getenv("SIM_SEEDS")); err == nil {
		seeds = n
	}
	first := uint64(1)
	if n, err := strconv.ParseUint(os.Getenv("SIM_FROM"), 10, 64); err == nil {
		first = n
	}
	if *oneSeed != 0 {
		simulate(t, *oneSeed)
		return
	}
	var all tally
	t.Run("seeds", func(t *testing.T) {
		for seed := first; seed < first+uint64(seeds); seed++ {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				all.add(simulate(t, seed))
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
	mu    sync.Mutex
	modes [2]counted
}

// counted is what happened in the runs of a mode.
type counted struct {
	runs    int
	checked counts
	hits    map[string]int
}

var modes = [2]mode{atLeastOnce, exactlyOnce}

func (a *tally) add(s *simulation) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := &a.modes[slices.Index(modes[:], s.mode)]
	if c.hits == nil {
		c.hits = make(map[string]int)
	}
	c.runs++
	c.checked.changes += s.checked.changes
	c.checked.records += s.checked.records
	c.checked.repeats += s.checked.repeats
	c.checked.transactions += s.checked.transactions
	for name, n := range s.hits {
		c.hits[name] += n
	}
}

// missing are the faults and crash points that never came about.
func (a *tally) missing() (names []string) {
	for i, m := range modes {
		for _, name := range everything(m) {
			if a.modes[i].hits[name] == 0 {
				names = append(names, fmt.Sprintf("%s (%s)", name, m))
			}
		}
	}
	return names
}

func (a *tally) String() string {
	var b strings.Builder
	faults := [2]int{}
	var names []string
	for i, m := range modes {
		for _, name := range everything(m) {
			faults[i] += a.modes[i].hits[name]
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	for i, m := range modes {
		c := a.modes[i]
		fmt.Fprintf(&b, "%s: %d runs, %d changes, %d records checked, %d of them repeats; %d Kafka transactions; faults: %d\n",
			m, c.runs, c.checked.changes, c.checked.records, c.checked.repeats, c.checked.transactions, faults[i])
	}
	fmt.Fprintf(&b, "%14s %14s\n", modes[0], modes[1])
	for _, name := range names {
		for i, m := range modes {
			n := "-" // has no place there
			if slices.Contains(everything(m), name) {
				n = fmt.Sprint(a.modes[i].hits[name])
			}
			fmt.Fprintf(&b, "%14s ", n)
		}
		fmt.Fprintf(&b, " %s\n", name)
	}
	return b.String()
}
