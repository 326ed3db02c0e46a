package offset

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// MaxGTIDNumber is the highest transaction number that MySQL gives to one source and tag.
const MaxGTIDNumber = math.MaxInt64 - 1

// maxTag is the longest tag of a GTID in bytes.
const maxTag = 32

// GTID names one transaction: the server that first committed it, an optional tag (MySQL 8.3 and later) and a number
// from 1 to [MaxGTIDNumber]. On MariaDB it is a domain, the server and a sequence number, with Source and Tag empty. It
// is comparable with ==; Tag is lower case. The zero value names none.
type GTID struct {
	Source [16]byte
	Tag    string
	Number int64

	MariaDB        bool
	Domain, Server uint32 // of MariaDB
}

// ParseGTID reads "uuid:number" or "uuid:tag:number" as MySQL writes it, upper case too, or MariaDB's
// "domain-server-sequence".
func ParseGTID(text string) (GTID, error) {
	if isMariaGTID(strings.TrimSpace(text)) {
		return parseMariaGTID(strings.TrimSpace(text))
	}
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

// IsZero reports whether g names no transaction.
func (g GTID) IsZero() bool { return g.Number == 0 && !g.MariaDB }

// Append appends the server's text of g to dst; nothing of the zero value.
func (g GTID) Append(dst []byte) []byte {
	if g.MariaDB {
		return appendMariaGTID(dst, g)
	}
	if g.IsZero() {
		return dst
	}
	dst = appendUUID(dst, g.Source)
	dst = append(dst, ':')
	if g.Tag != "" {
		dst = append(dst, g.Tag...)
		dst = append(dst, ':')
	}
	return strconv.AppendInt(dst, g.Number, 10)
}

// String is the server's text of g; "" of the zero value.
func (g GTID) String() string { return string(g.Append(nil)) }

// Origin is the text that gtid.source.includes and gtid.source.excludes are matched with: the UUID, on MariaDB
// "domain-server".
func (g GTID) Origin() string {
	if g.MariaDB {
		return mariaOrigin(g)
	}
	return string(appendUUID(nil, g.Source))
}

// gtidInterval holds the numbers first to last, both included.
type gtidInterval struct{ first, last int64 }

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

func appendUUID(dst []byte, id [16]byte) []byte {
	var text [36]byte
	hex.Encode(text[0:], id[:4])
	hex.Encode(text[9:], id[4:6])
	hex.Encode(text[14:], id[6:8])
	hex.Encode(text[19:], id[8:10])
	hex.Encode(text[24:], id[10:])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return append(dst, text[:]...)
}
