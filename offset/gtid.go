package offset

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// MaxGTIDNumber is the highest transaction number that MySQL gives to one source and tag.
const MaxGTIDNumber = math.MaxInt64 - 1

// maxTag is the longest tag of a GTID in bytes.
const maxTag = 32

// GTID names one transaction: the server that first committed it, an optional tag (MySQL 8.3 and later) and a number
// from 1 to [MaxGTIDNumber]. It is comparable with ==; Tag is lower case.
type GTID struct {
	Source [16]byte
	Tag    string
	Number int64
}

// ParseGTID reads "uuid:number" or "uuid:tag:number" as the server writes it; upper case is accepted.
func ParseGTID(text string) (GTID, error) {
	set, err := ParseGTIDSet(text)
	if err != nil {
		return GTID{}, fmt.Errorf("GTID %q: %w", text, err)
	}
	if len(set.base.sources) != 1 || len(set.base.sources[0].intervals) != 1 {
		return GTID{}, fmt.Errorf("GTID %q: want uuid:number or uuid:tag:number", text)
	}
	s := set.base.sources[0]
	if s.intervals[0].first != s.intervals[0].last {
		return GTID{}, fmt.Errorf("GTID %q: names several transactions", text)
	}
	return GTID{Source: s.id, Tag: s.tag, Number: s.intervals[0].first}, nil
}

// Append appends the server's text of g to dst.
func (g GTID) Append(dst []byte) []byte {
	dst = appendUUID(dst, g.Source)
	dst = append(dst, ':')
	if g.Tag != "" {
		dst = append(dst, g.Tag...)
		dst = append(dst, ':')
	}
	return strconv.AppendInt(dst, g.Number, 10)
}

// String is the server's text of g.
func (g GTID) String() string { return string(g.Append(nil)) }

// GTIDSet is an immutable set of GTIDs, safe to copy, to keep and to use from several goroutines. The zero value is the
// absent set (a position without GTIDs), which is not the same as a set that is present and empty: an offset with the
// latter still says that the server has GTIDs.
//
// The set holds a shared, never changed base and, beside it, one interval of the base whose end has moved. So [GTIDSet.Add]
// of the next number, the usual case of a replication stream, copies three words and allocates nothing.
type GTIDSet struct {
	base *gtidBase
	src  int32 // with last: the source in base …
	iv   int32 // … and its interval that ends at last
	last int64 // 0: base is all
}

// gtidBase holds the sources by UUID, then tag; none is empty.
type gtidBase struct{ sources []gtidSource }

// gtidSource holds the numbers of one source and tag: ascending intervals with a gap between each two.
type gtidSource struct {
	id        [16]byte
	tag       string
	intervals []gtidInterval
}

// gtidInterval holds the numbers first to last, both included.
type gtidInterval struct{ first, last int64 }

func (s *gtidSource) compare(id [16]byte, tag string) int {
	for i, b := range s.id {
		if b != id[i] {
			return cmp.Compare(b, id[i])
		}
	}
	return strings.Compare(s.tag, tag)
}

// EmptyGTIDSet is the set that is present and has no members: what a server with GTIDs has before its first transaction.
func EmptyGTIDSet() GTIDSet { return GTIDSet{base: &gtidBase{}} }

// ParseGTIDSet reads a set as the server accepts it: UUIDs in any case, with or without dashes or in braces, tags,
// intervals in any order and overlapping, blanks and newlines around all of them. Empty text gives the set that is
// present and empty.
func ParseGTIDSet(text string) (GTIDSet, error) {
	var sources []gtidSource
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		var err error
		if sources, err = parseSource(sources, item); err != nil {
			return GTIDSet{}, err
		}
	}
	return GTIDSet{base: &gtidBase{sources: normalise(sources)}}, nil
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

func parseUUID(text string) (id [16]byte, err error) {
	bad := func() ([16]byte, error) { return id, fmt.Errorf("no UUID: %q", text) }
	t := text
	if strings.HasPrefix(t, "{") && strings.HasSuffix(t, "}") {
		t = t[1 : len(t)-1]
	}
	if len(t) == 36 {
		if t[8] != '-' || t[13] != '-' || t[18] != '-' || t[23] != '-' {
			return bad()
		}
		t = t[:8] + t[9:13] + t[14:18] + t[19:23] + t[24:]
	}
	if len(t) != 32 {
		return bad()
	}
	if _, err := hex.Decode(id[:], []byte(t)); err != nil {
		return bad()
	}
	return id, nil
}

func parseTag(text string) (string, error) {
	if len(text) > maxTag {
		return "", fmt.Errorf("tag %q is longer than %d characters", text, maxTag)
	}
	tag := []byte(text)
	for i, c := range tag {
		switch {
		case c >= 'A' && c <= 'Z':
			tag[i] = c + 'a' - 'A'
		case c >= 'a' && c <= 'z', c == '_', i > 0 && c >= '0' && c <= '9':
		default:
			return "", fmt.Errorf("neither a tag nor an interval: %q", text)
		}
	}
	return string(tag), nil
}

func parseInterval(text string) (gtidInterval, error) {
	from, to, ranged := strings.Cut(text, "-")
	first, err := parseNumber(from)
	if err != nil {
		return gtidInterval{}, err
	}
	last := first
	if ranged {
		if last, err = parseNumber(to); err != nil {
			return gtidInterval{}, err
		}
	}
	return gtidInterval{first, last}, nil
}

func parseNumber(text string) (int64, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("no transaction number: %q", text)
	}
	if err != nil || n < 1 || n > MaxGTIDNumber {
		return 0, fmt.Errorf("transaction number %s is not between 1 and %d", text, int64(MaxGTIDNumber))
	}
	return int64(n), nil
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
func (g GTIDSet) IsEmpty() bool { return g.base == nil || len(g.base.sources) == 0 }

// sources gives all sources with the moved end applied. The result is shared and must not be changed.
func (g GTIDSet) sources() []gtidSource {
	if g.base == nil {
		return nil
	}
	if g.last == 0 {
		return g.base.sources
	}
	sources := slices.Clone(g.base.sources)
	s := &sources[g.src]
	s.intervals = slices.Clone(s.intervals)
	s.intervals[g.iv].last = g.last
	return sources
}

// Add returns the set with id in it. It allocates nothing when id is the next number after an interval and is not
// followed by an interval that it meets, and no other interval was extended since the last allocation: what a stream
// from one server does. Otherwise it copies the list of sources. Adding to the absent set gives a present one.
func (g GTIDSet) Add(id GTID) GTIDSet {
	if g.last != 0 && id.Number == g.last+1 {
		s := &g.base.sources[g.src]
		if s.id == id.Source && s.tag == id.Tag && s.endsBefore(int(g.iv), id.Number) {
			g.last = id.Number
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
	sources := g.sources()
	at, found := findSource(sources, id.Source, id.Tag)
	if !found {
		added := gtidSource{id: id.Source, tag: id.Tag, intervals: []gtidInterval{{id.Number, id.Number}}}
		return GTIDSet{base: &gtidBase{sources: slices.Insert(slices.Clone(sources), at, added)}}
	}
	s := &sources[at]
	i, _ := slices.BinarySearchFunc(s.intervals, id.Number, func(iv gtidInterval, n int64) int { return cmp.Compare(iv.first, n) })
	// s.intervals[i-1] lies before id, s.intervals[i] after it.
	if i > 0 && s.intervals[i-1].last+1 == id.Number && s.endsBefore(i-1, id.Number) {
		base := g.base
		if g.last != 0 {
			base = &gtidBase{sources: sources}
		}
		return GTIDSet{base: base, src: int32(at), iv: int32(i - 1), last: id.Number}
	}
	sources = slices.Clone(sources)
	ivs := slices.Insert(slices.Clone(s.intervals), i, gtidInterval{id.Number, id.Number})
	sources[at].intervals = joinIntervals(ivs)
	return GTIDSet{base: &gtidBase{sources: sources}}
}

func findSource(sources []gtidSource, id [16]byte, tag string) (int, bool) {
	return slices.BinarySearchFunc(sources, id, func(s gtidSource, id [16]byte) int { return s.compare(id, tag) })
}

// Contains reports whether id is in the set.
func (g GTIDSet) Contains(id GTID) bool {
	if g.base == nil {
		return false
	}
	at, found := findSource(g.base.sources, id.Source, id.Tag)
	if !found {
		return false
	}
	s := &g.base.sources[at]
	i, exact := slices.BinarySearchFunc(s.intervals, id.Number, func(iv gtidInterval, n int64) int { return cmp.Compare(iv.first, n) })
	if exact {
		return true
	}
	if i == 0 {
		return false
	}
	last := s.intervals[i-1].last
	if g.last != 0 && int(g.src) == at && int(g.iv) == i-1 {
		last = g.last
	}
	return id.Number <= last
}

// ContainsSet reports whether every member of o is in g.
func (g GTIDSet) ContainsSet(o GTIDSet) bool { return o.Subtract(g).IsEmpty() }

// Equal reports whether both have the same members and are both present or both absent.
func (g GTIDSet) Equal(o GTIDSet) bool {
	if g == o {
		return true
	}
	if g.IsAbsent() || o.IsAbsent() {
		return false
	}
	return slices.EqualFunc(g.sources(), o.sources(), func(a, b gtidSource) bool {
		return a.id == b.id && a.tag == b.tag && slices.Equal(a.intervals, b.intervals)
	})
}

// Union returns the set of all that is in g or o; it is absent only if both are.
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
	return GTIDSet{base: &gtidBase{sources: normalise(all)}}
}

// Subtract returns the set of all that is in g and not in o; it is absent if g is.
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
	return GTIDSet{base: &gtidBase{sources: left}}
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
// the untagged numbers of a source first, then its tags by name. The absent set gives nothing, like the empty one.
func (g GTIDSet) Append(dst []byte) []byte {
	if g.base == nil {
		return dst
	}
	var before *gtidSource
	for i := range g.base.sources {
		s := &g.base.sources[i]
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
			if g.last != 0 && int(g.src) == i && int(g.iv) == j {
				iv.last = g.last
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

func appendUUID(dst []byte, id [16]byte) []byte {
	for i, b := range id {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			dst = append(dst, '-')
		}
		const digits = "0123456789abcdef"
		dst = append(dst, digits[b>>4], digits[b&15])
	}
	return dst
}
