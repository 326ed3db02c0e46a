package offset

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

// branch is a set, and what it must be.
type branch struct {
	set     GTIDSet
	numbers map[int]int64 // of each source all up to this one
}

func (b branch) text() string {
	var parts []string
	for s := range 5 {
		if n := b.numbers[s]; n > 0 {
			parts = append(parts, fmt.Sprintf("00000000-0000-0000-0000-00000000000%d:1-%d", s, n))
		}
	}
	return strings.ReplaceAll(strings.Join(parts, ","), ":1-1,", ":1,")
}

// next is the set with the next transaction of a source.
func (b branch) next(t testing.TB, source int) branch {
	id, err := ParseGTID(fmt.Sprintf("00000000-0000-0000-0000-00000000000%d:%d", source, b.numbers[source]+1))
	if err != nil {
		t.Fatal(err)
	}
	c := branch{set: b.set.Add(id), numbers: map[int]int64{}}
	for s, n := range b.numbers {
		c.numbers[s] = n
	}
	c.numbers[source]++
	return c
}

func (b branch) check(t testing.TB) {
	t.Helper()
	want, err := ParseGTIDSet(b.text())
	if err != nil {
		t.Fatal(err)
	}
	if got := b.set.String(); got != want.String() {
		t.Fatalf("the set is %s, want %s", got, want)
	}
	if !b.set.Equal(want) || !want.Equal(b.set) || !b.set.ContainsSet(want) || !want.ContainsSet(b.set) {
		t.Fatalf("%s is not equal to itself", want)
	}
}

func someBranch(t testing.TB) branch {
	b := branch{numbers: map[int]int64{0: 7, 1: 3, 2: 9, 3: 2, 4: 5}}
	var err error
	if b.set, err = ParseGTIDSet(b.text()); err != nil {
		t.Fatal(err)
	}
	return b
}

// Each set stays what it is, whatever is added to those that it was made of, or to it.
func TestSetsThatBranch(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 3))
		all := []branch{someBranch(t)}
		for range 600 {
			from := all[len(all)-1]
			if random.IntN(4) == 0 {
				from = all[random.IntN(len(all))]
			}
			all = append(all, from.next(t, random.IntN(5)))
		}
		for _, b := range all {
			b.check(t)
		}
	}
}

// Several goroutines add to one set, and read it, at the same time.
func TestSetsThatBranchAtTheSameTime(t *testing.T) {
	for seed := range uint64(200) {
		root := someBranch(t)
		if seed%2 == 0 { // one whose log is still to be made, and one that has it
			root = root.next(t, 1)
		} else {
			root = root.next(t, 1).next(t, 2).next(t, 3)
		}
		var ready, done sync.WaitGroup
		start := make(chan struct{})
		results := make([][]branch, 4)
		for i := range results {
			ready.Add(1)
			done.Go(func() {
				random := rand.New(rand.NewPCG(seed, uint64(i)))
				b := root
				ready.Done()
				<-start
				for range 30 {
					b = b.next(t, random.IntN(5))
					results[i] = append(results[i], b)
				}
				root.check(t)
			})
		}
		ready.Wait()
		close(start)
		done.Wait()
		for _, all := range results {
			for _, b := range all {
				b.check(t)
			}
		}
	}
}
