package offset

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ofDomain is the interval of a moved end that is a domain's newest number.
const ofDomain = -1

// isMariaGTID tells domain-server-sequence from all that MySQL writes: a UUID has no or four dashes, and intervals stand
// behind a colon.
func isMariaGTID(item string) bool {
	return strings.Count(item, "-") == 2 && strings.Trim(item, "0123456789- ") == ""
}

func parseMariaGTID(text string) (GTID, error) {
	id := GTID{MariaDB: true}
	domain, rest, _ := strings.Cut(text, "-")
	server, sequence, _ := strings.Cut(rest, "-")
	for _, part := range []struct {
		text string
		bits int
		what string
	}{{domain, 32, "domain"}, {server, 32, "server id"}, {sequence, 63, "sequence number"}} {
		n, err := strconv.ParseUint(strings.TrimSpace(part.text), 10, part.bits)
		if err != nil {
			return GTID{}, fmt.Errorf("GTID %q: the %s is not a whole number from 0 to 2^%d-1", text, part.what, part.bits)
		}
		switch part.what {
		case "domain":
			id.Domain = uint32(n)
		case "server id":
			id.Server = uint32(n)
		default:
			id.Number = int64(n)
		}
	}
	return id, nil
}

func appendMariaGTID(dst []byte, id GTID) []byte {
	dst = strconv.AppendUint(dst, uint64(id.Domain), 10)
	dst = strconv.AppendUint(append(dst, '-'), uint64(id.Server), 10)
	return strconv.AppendInt(append(dst, '-'), id.Number, 10)
}

func mariaOrigin(id GTID) string {
	return strconv.FormatUint(uint64(id.Domain), 10) + "-" + strconv.FormatUint(uint64(id.Server), 10)
}

// setDomain makes id the newest of its domain. It changes its argument. A domain keeps its place.
func setDomain(domains []GTID, id GTID) []GTID {
	if at := findDomain(domains, id.Domain); at >= 0 {
		domains[at] = id
		return domains
	}
	return append(domains, id)
}

// findDomain is linear: servers have a handful of domains.
func findDomain(domains []GTID, domain uint32) int {
	return slices.IndexFunc(domains, func(id GTID) bool { return id.Domain == domain })
}

// domains gives all domains with the moved numbers applied. The result is shared and must not be changed.
func (g GTIDSet) domains() []GTID {
	if g.base == nil {
		return nil
	}
	domains, own := g.base.domains, false
	for e := range g.ends {
		if e.iv != ofDomain {
			continue
		}
		if !own {
			domains, own = slices.Clone(domains), true
		}
		domains[e.src].Number = e.last
	}
	return domains
}

// newest is the newest number of the domain at an index.
func (g GTIDSet) newest(at int) int64 {
	if last := g.movedTo(at, ofDomain); last != 0 {
		return last
	}
	return g.base.domains[at].Number
}

// addToDomain allocates nothing while the transactions of one server in each domain come.
func (g GTIDSet) addToDomain(id GTID) GTIDSet {
	if g.base == nil {
		return GTIDSet{base: &gtidBase{domains: []GTID{id}}}
	}
	at := findDomain(g.base.domains, id.Domain)
	if at >= 0 && g.base.domains[at].Server == id.Server && id.Number != 0 {
		return g.move(gtidEnd{src: int32(at), iv: ofDomain, last: id.Number})
	}
	return GTIDSet{base: &gtidBase{sources: g.sources(), domains: setDomain(slices.Clone(g.domains()), id)}}
}

func (g GTIDSet) containsInDomain(id GTID) bool {
	at := findDomain(g.base.domains, id.Domain)
	return at >= 0 && id.Number <= g.newest(at)
}

func equalDomains(a, b []GTID) bool {
	if len(a) != len(b) {
		return false
	}
	for _, id := range a {
		if !slices.Contains(b, id) {
			return false
		}
	}
	return true
}

func uniteDomains(a, b []GTID) []GTID {
	all := slices.Clone(a)
	for _, id := range b {
		if at := findDomain(all, id.Domain); at < 0 || all[at].Number < id.Number {
			all = setDomain(all, id)
		}
	}
	return all
}

func subtractDomains(from, minus []GTID) []GTID {
	var left []GTID
	for _, id := range from {
		if at := findDomain(minus, id.Domain); at < 0 || minus[at].Number < id.Number {
			left = append(left, id)
		}
	}
	return left
}

// appendDomains writes the domains in the order of a HashMap<Long, …>, where a number below 2^32 is its own hash.
func (g GTIDSet) appendDomains(dst []byte) []byte {
	domains := g.base.domains
	one := func(at int) {
		id := domains[at]
		id.Number = g.newest(at)
		dst = appendMariaGTID(dst, id)
	}
	if len(domains) == 1 {
		one(0)
		return dst
	}
	hashes := make([]uint32, len(domains))
	for i, id := range domains {
		hashes[i] = id.Domain
	}
	for i, at := range bucketOrder(hashes) {
		if i > 0 {
			dst = append(dst, ',')
		}
		one(at)
	}
	return dst
}
