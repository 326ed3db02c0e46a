package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"go.uber.org/zap"
)

const (
	kibi = 1 << 10
	mebi = 1 << 20
	gibi = 1 << 30
)

// What a process takes: these decide how little can be enough.
const (
	outsideHeap   = 20 * mebi // the pages of the program itself, of its threads and of the kernel for it
	heapBase      = 20 * mebi // of the heap, whatever the number of connectors
	heapConnector = 8 * mebi  // of the heap for each connector with few tables

	// Without a limit a process with one connector is to stay below this, and each further one adds its own.
	usualMemory   = 76 * mebi
	moreConnector = 24 * mebi

	// So much of records on their way covers the time that brokers take to acknowledge, at full speed.
	mostRecords  = 8 * mebi
	leastRecords = mebi

	// floorQuarters is the heap's floor in quarters of the bytes of records on their way. That is gcPercent above
	// what is in use while as many are on their way as may be, so that no kind of transaction goes beyond the floor, and hardly
	// more than those that make no garbage at all, which never come to it.
	floorQuarters = 9
)

// memorySize is the value of --memory.
type memorySize int64

// String implements pflag.Value.
func (m *memorySize) String() string {
	if *m == 0 {
		return ""
	}
	return sizeText(int64(*m))
}

// Type implements pflag.Value.
func (*memorySize) Type() string { return "SIZE" }

// Set implements pflag.Value.
func (m *memorySize) Set(text string) error {
	n, err := parseSize(text)
	*m = memorySize(n)
	return err
}

// parseSize reads a number of bytes as people write it: alone or with a unit. K, M and G are those of Java and Docker,
// powers of two; only kB, MB and GB are powers of ten.
func parseSize(text string) (int64, error) {
	text = strings.TrimSpace(text)
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
	var unit int64
	switch strings.ToLower(strings.TrimSpace(text[len(digits):])) {
	case "", "b":
		unit = 1
	case "k", "ki", "kib":
		unit = kibi
	case "m", "mi", "mib":
		unit = mebi
	case "g", "gi", "gib":
		unit = gibi
	case "kb":
		unit = 1e3
	case "mb":
		unit = 1e6
	case "gb":
		unit = 1e9
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	switch {
	case unit == 0 || err != nil && !errors.Is(err, strconv.ErrRange) || n < 0:
		return 0, errors.New("want a whole number of bytes, or one with KiB, MiB or GiB behind it, such as 256MiB")
	case err != nil || n > math.MaxInt64/unit:
		return 0, errors.New("that is more than any machine has")
	case n == 0:
		return 0, errors.New("0 is no memory to run in; leave the flag out for the default")
	}
	return n * unit, nil
}

// sizeText writes a number of bytes with the largest unit that leaves it whole, in MiB if there is none.
func sizeText(n int64) string {
	switch {
	case n >= gibi && n%gibi == 0:
		return strconv.FormatInt(n/gibi, 10) + "GiB"
	case n >= mebi:
		return strconv.FormatInt((n-1)/mebi+1, 10) + "MiB"
	}
	return strconv.FormatInt(n, 10)
}

// exactText is sizeText of a number that is not to be rounded up to the one that it is compared with.
func exactText(n int64) string {
	if n%mebi != 0 {
		return strconv.FormatInt(n, 10)
	}
	return sizeText(n)
}

// memory is how a process divides the memory that it may take.
type memory struct {
	total   int64  // of the process
	source  string // who says so, for the log
	heap    int64  // soft limit of the Go heap; 0: none
	floor   int64  // below it nothing is collected
	records int    // bytes of records on their way, of one connector
	risk    string // why the kernel may end the process, and what helps; "": nothing is known
}

// planMemory divides what a process of some connectors may take. asked is what --memory says (0: nothing), contained the
// limit of the container (0: none), heap what GOMEMLIMIT says (0: nothing). Only what was asked for can be too little: with a
// container's limit the process may well get by.
func planMemory(asked, contained, heap int64, connectors int) (m memory, err error) {
	connectors = max(connectors, 1)
	least := leastMemory(connectors)
	switch {
	case asked > 0 && asked < least:
		return m, fmt.Errorf("--memory %s is too little for %s: the least is %s. The program takes %s outside its heap, and of the heap %s and %s more for each connector; "+
			"many tables, rows of megabytes and large schema histories take more",
			exactText(asked), plural(connectors, "connector"), sizeText(least), sizeText(outsideHeap), sizeText(heapBase), sizeText(heapConnector))
	case asked > 0:
		m.total, m.source = asked, "--memory"
		if contained > 0 && asked > contained {
			m.risk = fmt.Sprintf("--memory is more than the container's limit of %s: the kernel may end the process; raise the limit, or leave the flag out to stay below it",
				sizeText(contained))
		}
	case contained > 0:
		// The kernel counts files that are read and sockets, too, and ends whoever goes beyond.
		m.total, m.source = contained-contained/10, "the container's limit"
		if m.total < least {
			m.risk = fmt.Sprintf("the container's memory limit of %s is lower than what Tidemark needs: the kernel may end the process; raise the limit to %s at least",
				sizeText(contained), sizeText(least*10/9))
		}
	default:
		m.total, m.source = usualMemory+int64(connectors-1)*moreConnector, "the default"
	}
	room := max(m.total-outsideHeap, m.total/4)
	room -= room / 20 // stacks, and what the collector is late by
	if asked > 0 || contained > 0 {
		m.heap = room
	}
	if heap > 0 { // Go has set it already, and whoever knows the variable means it
		m.heap = 0
		room = min(room, heap)
	}
	// They are the only large thing that can wait. They are held once as they are made and once more as they are sent.
	share := min(room/5/int64(connectors), mostRecords)
	m.records = int(max(share, leastRecords))
	m.floor = floorQuarters * share / 4 * int64(connectors)
	return m, nil
}

// leastMemory is how little some connectors can work with.
func leastMemory(connectors int) int64 {
	return outsideHeap + heapBase + int64(connectors)*heapConnector
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// boundMemory makes the process keep to --memory, else to the container's limit, else to the default, and returns how the
// memory is divided. What GOMEMLIMIT and GOGC say is left as it is.
func boundMemory(asked memorySize, connectors int, log *zap.Logger) (memory, error) {
	contained := containerMemory(os.DirFS("/"))
	var heap int64
	if limit := debug.SetMemoryLimit(-1); os.Getenv("GOMEMLIMIT") != "" && limit != math.MaxInt64 {
		heap = limit
	}
	m, err := planMemory(int64(asked), contained, heap, connectors)
	if err != nil {
		return m, err
	}
	if m.risk != "" {
		log.Warn(m.risk)
	}
	if m.heap > 0 {
		debug.SetMemoryLimit(m.heap)
	}
	if os.Getenv("GOGC") == "" {
		keepHeapFloor(m.floor)
	}
	return m, nil
}
