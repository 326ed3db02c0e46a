package emitter

import (
	"cmp"
	"slices"
	"sort"
	"strconv"
	"unicode/utf16"

	"github.com/tidemark-cdc/tidemark/schema"
)

// tableCount is how many events of one table are in the open transaction.
type tableCount struct {
	table  string       // database.table
	value  schema.Value // the same
	member string       // its name among an offset's members
	hash   uint32
	events int64
	digits *digits // of large counts; nil before
}

// countMap holds counts in the iteration order of the java.util.HashMap that Debezium has for them, which lives as long
// as its connector's task: by bucket, then in the order in which they came. The number of buckets grows, and stays as
// large when a transaction is over.
type countMap struct {
	tables   map[string]*tableCount        // all that have been seen, for their texts
	versions map[*schema.Table]*tableCount // the same by version
	order    []*tableCount                 // those with events
	capacity int                           // buckets; 0 is the smallest map
	low      digits                        // of small counts, which are those of most tables
}

const (
	smallestMap = 16
	fullBucket  = 8  // with so many in one bucket, a map of …
	treeLimit   = 64 // … fewer buckets grows
)

// clear begins a transaction.
func (m *countMap) clear() {
	for _, c := range m.order {
		c.events = 0
	}
	m.order = m.order[:0]
	if len(m.tables) > planLimit { // most are long gone
		clear(m.tables)
		clear(m.versions)
	}
}

// table is the count of a table, whether it has events or not.
func (m *countMap) table(name string) *tableCount {
	if c := m.tables[name]; c != nil {
		return c
	}
	if m.tables == nil {
		m.tables = make(map[string]*tableCount)
	}
	h := javaHash(name)
	c := &tableCount{table: name, value: text(name), member: tableCountPrefix + name, hash: h ^ h>>16}
	m.tables[name] = c
	return c
}

// version is the count of a version of a table.
func (m *countMap) version(t *schema.Table) *tableCount {
	if c := m.versions[t]; c != nil {
		return c
	}
	if m.versions == nil {
		m.versions = make(map[*schema.Table]*tableCount)
	}
	if len(m.versions) > planLimit {
		clear(m.versions)
	}
	c := m.table(t.Database + "." + t.Name)
	m.versions[t] = c
	return c
}

// add counts n events of a table.
func (m *countMap) add(c *tableCount, n int64) {
	c.events += n
	if c.events > n {
		return
	}
	m.capacity = max(m.capacity, smallestMap)
	at := m.end(c.hash)
	alike := 0
	for alike < at && m.bucket(m.order[at-1-alike].hash) == m.bucket(c.hash) {
		alike++
	}
	m.order = slices.Insert(m.order, at, c)
	if alike >= fullBucket && m.capacity < treeLimit {
		m.split()
	}
	if len(m.order) > m.capacity/4*3 {
		m.split()
	}
}

// remove takes back n events of a table.
func (m *countMap) remove(c *tableCount, n int64) {
	if c.events -= n; c.events == 0 {
		m.order = slices.DeleteFunc(m.order, func(o *tableCount) bool { return o == c })
	}
}

// text is a count in decimal.
func (m *countMap) text(c *tableCount) string {
	if c.events <= numbersAtOnce {
		if m.low.texts == "" {
			m.low.of(1)
		}
		return m.low.of(c.events)
	}
	if c.digits == nil {
		c.digits = new(digits)
	}
	return c.digits.of(c.events)
}

func (m *countMap) bucket(hash uint32) uint32 { return hash & uint32(m.capacity-1) }

// end is where the bucket of a hash ends in order.
func (m *countMap) end(hash uint32) int {
	return sort.Search(len(m.order), func(i int) bool { return m.bucket(m.order[i].hash) > m.bucket(hash) })
}

// split doubles the buckets. Those of one bucket keep their order.
func (m *countMap) split() {
	m.capacity *= 2
	slices.SortStableFunc(m.order, func(a, b *tableCount) int { return cmp.Compare(m.bucket(a.hash), m.bucket(b.hash)) })
}

// javaHash is Java's String.hashCode, over UTF-16 code units.
func javaHash(s string) uint32 {
	var h uint32
	for _, unit := range utf16.Encode([]rune(s)) {
		h = 31*h + uint32(unit)
	}
	return h
}

// digits renders the numbers of a counter, which nearly always grows by one, many at once: each is part of one string.
type digits struct {
	first int64
	texts string
	ends  [numbersAtOnce]uint16
}

const numbersAtOnce = 256

func (d *digits) of(n int64) string {
	i := n - d.first
	if d.texts == "" || i < 0 || i >= numbersAtOnce {
		var room [numbersAtOnce * 19]byte
		buf := room[:0]
		for j := range d.ends {
			buf = strconv.AppendInt(buf, n+int64(j), 10)
			d.ends[j] = uint16(len(buf))
		}
		d.first, d.texts, i = n, string(buf), 0
	}
	start := uint16(0)
	if i > 0 {
		start = d.ends[i-1]
	}
	return d.texts[start:d.ends[i]]
}
