package offset

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// GTIDSet is an immutable set of GTIDs, safe to copy, to keep and to use from several goroutines. The zero value is the
// absent set (a position without GTIDs), which is not the same as a set that is present and empty: an offset with the
// latter still says that the server has GTIDs.
//
// On MariaDB a set is a position: the newest GTID of each domain. All up to its sequence number, whatever server they are
// from, count as members. A set can hold GTIDs of both kinds, though no server has such a one and [ParseGTIDSet] refuses
// its text.
//
// The set holds a shared, never changed base and, beside it, one interval of the base whose end has moved. So [GTIDSet.Add]
// of the next number, the usual case of a replication stream, copies four words and allocates nothing. Where several
// servers commit in turn, the ends that have moved before stand in a log that sets with the same base share.
type GTIDSet struct {
	base   *gtidBase
	moved  gtidEnd // last 0: none
	logged int     // so many ends of the base's log belong to this set
}

// gtidBase holds the sources by UUID, then tag; none is empty. The domains are MariaDB's, each once.
type gtidBase struct {
	sources []gtidSource
	domains []GTID
	log     atomic.Pointer[gtidLog] // nil until it is needed
}

// gtidSource holds the numbers of one source and tag: ascending intervals with a gap between each two.
type gtidSource struct {
	id        [16]byte
	tag       string
	intervals []gtidInterval
}

func (s *gtidSource) compare(id [16]byte, tag string) int {
	if order := bytes.Compare(s.id[:], id[:]); order != 0 {
		return order
	}
	return strings.Compare(s.tag, tag)
}

// is says whether a GTID is of this source and tag.
func (s *gtidSource) is(id GTID) bool { return s.id == id.Source && s.tag == id.Tag }

// firstAfter is the index of the first interval that begins after n.
func (s *gtidSource) firstAfter(n int64) int {
	i, exact := slices.BinarySearchFunc(s.intervals, n, func(iv gtidInterval, n int64) int { return cmp.Compare(iv.first, n) })
	if exact {
		i++
	}
	return i
}

// EmptyGTIDSet is the set that is present and has no members: what a server with GTIDs has before its first transaction.
func EmptyGTIDSet() GTIDSet { return GTIDSet{base: &gtidBase{}} }

// ParseGTIDSet reads a set as the server accepts it: of MySQL with UUIDs in any case, with or without dashes or in
// braces, tags, intervals in any order and overlapping; of MariaDB with several GTIDs of a domain, the last of which
// counts. There may be blanks and newlines around all of them. Empty text gives the set that is present and empty.
func ParseGTIDSet(text string) (GTIDSet, error) {
	var sources []gtidSource
	var domains []GTID
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		var err error
		if isMariaGTID(item) {
			var id GTID
			if id, err = parseMariaGTID(item); err == nil {
				domains = setDomain(domains, id)
			}
		} else {
			sources, err = parseSource(sources, item)
		}
		if err == nil && len(sources) > 0 && len(domains) > 0 {
			err = fmt.Errorf("GTID set: %q is of another kind than what stands before it: MySQL and MariaDB are mixed", item)
		}
		if err != nil {
			return GTIDSet{}, err
		}
	}
	return GTIDSet{base: &gtidBase{sources: normalise(sources), domains: domains}}, nil
}

// parseSource reads uuid{:[tag:]interval}: a tag holds for the intervals that follow it, up to the next one.
func parseSource(sources []gtidSource, item string) ([]gtidSource, error) {
	parts := strings.Split(item, ":")
	id, err := parseUUID(strings.TrimSpace(parts[0]))
	if err != nil {
		return nil, fmt.Errorf("GTID set: %w in %q", err, item)
	}
	s := gtidSource{id: id}
	for _, part := range parts[1:] {
		part = strings.TrimSpace(part)
		if part == "" {
			return nil, fmt.Errorf("GTID set: empty interval in %q", item)
		}
		if c := part[0]; c < '0' || c > '9' {
			tag, err := parseTag(part)
			if err != nil {
				return nil, fmt.Errorf("GTID set: %w in %q", err, item)
			}
			sources = append(sources, s)
			s = gtidSource{id: id, tag: tag}
			continue
		}
		iv, err := parseInterval(part)
		if err != nil {
			return nil, fmt.Errorf("GTID set: %w in %q", err, item)
		}
		if iv.first <= iv.last { // the server takes 5-3 as no number at all
			s.intervals = append(s.intervals, iv)
		}
	}
	return append(sources, s), nil
}

// normalise sorts sources and their intervals, joins what meets and leaves out what is empty. It uses the memory of its
// argument.
func normalise(sources []gtidSource) []gtidSource {
	slices.SortStableFunc(sources, func(a, b gtidSource) int { return a.compare(b.id, b.tag) })
	out := sources[:0]
	for _, s := range sources {
		if len(s.intervals) == 0 {
			continue
		}
		if n := len(out); n > 0 && out[n-1].compare(s.id, s.tag) == 0 {
			out[n-1].intervals = append(out[n-1].intervals, s.intervals...)
			continue
		}
		out = append(out, s)
	}
	for i := range out {
		out[i].intervals = joinIntervals(out[i].intervals)
	}
	return out
}

func joinIntervals(ivs []gtidInterval) []gtidInterval {
	slices.SortFunc(ivs, func(a, b gtidInterval) int { return cmp.Compare(a.first, b.first) })
	out := ivs[:1]
	for _, iv := range ivs[1:] {
		if last := &out[len(out)-1]; iv.first <= last.last+1 {
			last.last = max(last.last, iv.last)
		} else {
			out = append(out, iv)
		}
	}
	return out
}

// IsAbsent reports whether there is no set at all, as on a server without GTIDs.
func (g GTIDSet) IsAbsent() bool { return g.base == nil }

// IsEmpty reports whether the set has no members; the absent set has none either.
func (g GTIDSet) IsEmpty() bool {
	return g.base == nil || len(g.base.sources) == 0 && len(g.base.domains) == 0
}

// sources gives all sources with the moved ends applied. The result is shared and must not be changed.
func (g GTIDSet) sources() []gtidSource {
	if g.base == nil {
		return nil
	}
	sources := g.base.sources
	var own []bool // sources whose intervals have been copied
	for e := range g.ends {
		if e.iv == ofDomain {
			continue
		}
		if own == nil {
			sources, own = slices.Clone(sources), make([]bool, len(sources))
		}
		s := &sources[e.src]
		if !own[e.src] {
			s.intervals, own[e.src] = slices.Clone(s.intervals), true
		}
		s.intervals[e.iv].last = e.last
	}
	return sources
}

// Add returns the set with id in it. When id is the next number after an interval and is not followed by an interval that
// it meets, which is what a stream does, that takes the same short time however large the set is, and allocates nothing
// but, where several sources are added to in turn, now and then a new base. Otherwise it copies the list of sources.
// Adding to the absent set gives a present one.
//
// On MariaDB id becomes its domain's newest whatever its number is, as on a replica: without gtid_strict_mode numbers may
// fall, and what comes next in the binlog is always newer.
func (g GTIDSet) Add(id GTID) GTIDSet {
	if id.MariaDB {
		return g.addToDomain(id)
	}
	if m := g.moved; m.last != 0 && m.iv != ofDomain && id.Number == m.last+1 {
		if s := &g.base.sources[m.src]; s.is(id) && s.endsBefore(int(m.iv), id.Number) {
			g.moved.last = id.Number
			return g
		}
	}
	return g.addSlow(id)
}

// endsBefore reports whether interval i can be extended up to n without meeting the next one.
func (s *gtidSource) endsBefore(i int, n int64) bool {
	return i+1 == len(s.intervals) || s.intervals[i+1].first > n+1
}

func (g GTIDSet) addSlow(id GTID) GTIDSet {
	if g.Contains(id) {
		return g
	}
	var known []gtidSource
	if g.base != nil {
		known = g.base.sources
	}
	at, found := findSource(known, id.Source, id.Tag)
	if !found {
		added := gtidSource{id: id.Source, tag: id.Tag, intervals: []gtidInterval{{id.Number, id.Number}}}
		return g.with(slices.Insert(slices.Clone(g.sources()), at, added))
	}
	i := known[at].firstAfter(id.Number)
	// Interval i-1 lies before id, i after it.
	if i > 0 && g.end(at, i-1)+1 == id.Number && known[at].endsBefore(i-1, id.Number) {
		return g.move(gtidEnd{src: int32(at), iv: int32(i - 1), last: id.Number})
	}
	sources := slices.Clone(g.sources())
	ivs := slices.Insert(slices.Clone(sources[at].intervals), i, gtidInterval{id.Number, id.Number})
	sources[at].intervals = joinIntervals(ivs)
	return g.with(sources)
}

// with gives a set of these sources and g's domains.
func (g GTIDSet) with(sources []gtidSource) GTIDSet {
	return GTIDSet{base: &gtidBase{sources: sources, domains: g.domains()}}
}

func findSource(sources []gtidSource, id [16]byte, tag string) (int, bool) {
	low, high := 0, len(sources)
	for low < high {
		mid := (low + high) / 2
		switch order := sources[mid].compare(id, tag); {
		case order == 0:
			return mid, true
		case order < 0:
			low = mid + 1
		default:
			high = mid
		}
	}
	return low, false
}

// Contains reports whether id is in the set; on MariaDB whether its number is at most that of the domain's newest.
func (g GTIDSet) Contains(id GTID) bool {
	if g.base == nil {
		return false
	}
	if id.MariaDB {
		return g.containsInDomain(id)
	}
	// What a stream asks first: is this one new?
	if m := g.moved; m.last != 0 && m.iv != ofDomain && id.Number > m.last {
		if s := &g.base.sources[m.src]; s.is(id) && (int(m.iv)+1 == len(s.intervals) || id.Number < s.intervals[m.iv+1].first) {
			return false
		}
	}
	return g.containsRange(id.Source, id.Tag, gtidInterval{id.Number, id.Number})
}

// containsRange reports whether all numbers of an interval are in the set: one interval of it has them all, since there
// is a gap between each two.
func (g GTIDSet) containsRange(id [16]byte, tag string, iv gtidInterval) bool {
	at, found := findSource(g.base.sources, id, tag)
	if !found {
		return false
	}
	i := g.base.sources[at].firstAfter(iv.first)
	return i > 0 && iv.last <= g.end(at, i-1)
}

// ContainsSet reports whether every member of o is in g.
func (g GTIDSet) ContainsSet(o GTIDSet) bool {
	if o.IsEmpty() {
		return true
	}
	if g.IsEmpty() || len(subtractDomains(o.domains(), g.domains())) > 0 {
		return false
	}
	for _, s := range o.sources() {
		for _, iv := range s.intervals {
			if !g.containsRange(s.id, s.tag, iv) {
				return false
			}
		}
	}
	return true
}

// Equal reports whether both have the same members and are both present or both absent.
func (g GTIDSet) Equal(o GTIDSet) bool {
	if g == o {
		return true
	}
	if g.IsAbsent() || o.IsAbsent() {
		return false
	}
	return equalDomains(g.domains(), o.domains()) && slices.EqualFunc(g.sources(), o.sources(), func(a, b gtidSource) bool {
		return a.id == b.id && a.tag == b.tag && slices.Equal(a.intervals, b.intervals)
	})
}

// Union returns the set of all that is in g or o; it is absent only if both are. On MariaDB a domain's newest is the one
// with the higher number.
func (g GTIDSet) Union(o GTIDSet) GTIDSet {
	if g.IsAbsent() {
		return o
	}
	if o.IsEmpty() {
		return g
	}
	var all []gtidSource
	for _, s := range slices.Concat(g.sources(), o.sources()) {
		s.intervals = slices.Clone(s.intervals) // normalise works in place
		all = append(all, s)
	}
	return GTIDSet{base: &gtidBase{sources: normalise(all), domains: uniteDomains(g.domains(), o.domains())}}
}

// Subtract returns the set of all that is in g and not in o; it is absent if g is. On MariaDB the domains stay in which g
// has a higher number than o.
func (g GTIDSet) Subtract(o GTIDSet) GTIDSet {
	if g.IsEmpty() || o.IsEmpty() {
		return g
	}
	others := o.sources()
	var left []gtidSource
	for _, s := range g.sources() {
		if at, found := findSource(others, s.id, s.tag); found {
			s.intervals = subtractIntervals(s.intervals, others[at].intervals)
		}
		if len(s.intervals) > 0 {
			left = append(left, s)
		}
	}
	return GTIDSet{base: &gtidBase{sources: left, domains: subtractDomains(g.domains(), o.domains())}}
}

// Filter returns the set without the sources that keep refuses; it is told a UUID, or "domain-server" on MariaDB, as
// Debezium matches gtid.source.includes and gtid.source.excludes. The absent set stays absent.
func (g GTIDSet) Filter(keep func(source string) bool) GTIDSet {
	if g.IsEmpty() {
		return g
	}
	var kept gtidBase
	for _, s := range g.sources() {
		if keep(string(appendUUID(nil, s.id))) {
			kept.sources = append(kept.sources, s)
		}
	}
	for _, id := range g.domains() {
		if keep(mariaOrigin(id)) {
			kept.domains = append(kept.domains, id)
		}
	}
	return GTIDSet{base: &kept}
}

func subtractIntervals(from, minus []gtidInterval) []gtidInterval {
	var out []gtidInterval
	for _, iv := range from {
		for len(minus) > 0 && minus[0].last < iv.first {
			minus = minus[1:]
		}
		for _, m := range minus {
			if m.first > iv.last {
				break
			}
			if m.first > iv.first {
				out = append(out, gtidInterval{iv.first, m.first - 1})
			}
			iv.first = m.last + 1
		}
		if iv.first <= iv.last {
			out = append(out, iv)
		}
	}
	return out
}

// Append appends the server's canonical text without its newlines, which is how Debezium stores it: sources by UUID,
// the untagged numbers of a source first, then its tags by name; MariaDB's domains in the iteration order of the
// java.util.HashMap that Debezium keeps them in, which is ascending for domains below 16. The absent set gives nothing,
// like the empty one.
func (g GTIDSet) Append(dst []byte) []byte {
	if g.base == nil {
		return dst
	}
	if len(g.base.domains) > 0 {
		dst = g.appendDomains(dst)
		if len(g.base.sources) > 0 {
			dst = append(dst, ',')
		}
	}
	sources := g.base.sources
	if g.logged > 0 {
		sources = g.sources()
	}
	var before *gtidSource
	for i := range sources {
		s := &sources[i]
		if before == nil || before.id != s.id {
			if before != nil {
				dst = append(dst, ',')
			}
			dst = appendUUID(dst, s.id)
		}
		before = s
		if s.tag != "" {
			dst = append(dst, ':')
			dst = append(dst, s.tag...)
		}
		for j, iv := range s.intervals {
			if m := g.moved; m.last != 0 && int(m.src) == i && int(m.iv) == j { // never of a domain, whose iv is negative
				iv.last = m.last
			}
			dst = append(dst, ':')
			dst = strconv.AppendInt(dst, iv.first, 10)
			if iv.last != iv.first {
				dst = append(dst, '-')
				dst = strconv.AppendInt(dst, iv.last, 10)
			}
		}
	}
	return dst
}

// String is the text that [GTIDSet.Append] appends.
func (g GTIDSet) String() string { return string(g.Append(nil)) }
