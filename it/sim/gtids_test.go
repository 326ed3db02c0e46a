package sim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// gtidSet is a GTID set without gaps: by uuid, the newest number. All sets here are such.
type gtidSet map[string]int64

func (s gtidSet) String() string {
	var parts []string
	for _, uuid := range slices.Sorted(maps.Keys(s)) {
		if n := s[uuid]; n == 1 {
			parts = append(parts, uuid+":1")
		} else if n > 1 {
			parts = append(parts, fmt.Sprintf("%s:1-%d", uuid, n))
		}
	}
	return strings.Join(parts, ",")
}

// parseGTIDs reads a set. One with gaps is an error: nobody here can have executed it.
func parseGTIDs(text string) (gtidSet, error) {
	set, err := mysql.ParseMysqlGTIDSet(text)
	if err != nil {
		return nil, err
	}
	return fromLibrary(set.(*mysql.MysqlGTIDSet))
}

func decodeGTIDs(data []byte) (gtidSet, error) {
	set, err := mysql.DecodeMysqlGTIDSet(data)
	if err != nil {
		return nil, err
	}
	return fromLibrary(set)
}

func fromLibrary(set *mysql.MysqlGTIDSet) (gtidSet, error) {
	s := gtidSet{}
	for _, part := range strings.Split(set.String(), ",") {
		if part == "" {
			continue
		}
		uuid, interval, _ := strings.Cut(part, ":")
		first, last, ranged := strings.Cut(interval, "-")
		if !ranged {
			last = first
		}
		var n int64
		if _, err := fmt.Sscan(last, &n); err != nil || first != "1" || strings.Contains(interval, ":") {
			return nil, fmt.Errorf("the GTID set %s has a gap", set)
		}
		s[uuid] = n
	}
	return s, nil
}

func (s gtidSet) encode() []byte {
	set, err := mysql.ParseMysqlGTIDSet(s.String())
	if err != nil {
		panic(err)
	}
	return set.(*mysql.MysqlGTIDSet).Encode()
}

func splitGTID(gtid string) (uuid string, n int64) {
	uuid, number, _ := strings.Cut(gtid, ":")
	n, _ = strconv.ParseInt(number, 10, 64)
	return uuid, n
}

func (s gtidSet) has(gtid string) bool {
	uuid, n := splitGTID(gtid)
	return n <= s[uuid]
}

func (s gtidSet) contains(o gtidSet) bool { return o.minus(s) == "" }

// minus is the text of what is in s and not in o.
func (s gtidSet) minus(o gtidSet) string {
	var parts []string
	for _, uuid := range slices.Sorted(maps.Keys(s)) {
		if n := s[uuid]; n > o[uuid] {
			parts = append(parts, fmt.Sprintf("%s:%d-%d", uuid, o[uuid]+1, n))
		}
	}
	return strings.Join(parts, ",")
}
