package config

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/tidemark-cdc/tidemark/offset"
)

// StartMode says where a stream begins that has no stored offset.
type StartMode uint8

// The starting points.
const (
	Now      StartMode = iota // the server's present position
	Oldest                    // the first event that the server still has
	AtFile                    // Start.File, Start.Pos
	AtGTIDs                   // after the transactions in Start.GTIDs
	AtOffset                  // where a stored offset says, Start.Offset
)

// Start is a starting point. The zero value is the server's present position.
type Start struct {
	Mode  StartMode
	File  string // base name of a binlog file
	Pos   int64  // start of an event in File
	GTIDs string // a GTID set as the server writes it

	Offset string // the JSON of a stored offset, perhaps inside a transaction
}

// String is the starting point as ParseStart reads it.
func (s Start) String() string {
	switch s.Mode {
	case Oldest:
		return "oldest"
	case AtFile:
		return s.File + ":" + strconv.FormatInt(s.Pos, 10)
	case AtGTIDs:
		return s.GTIDs
	case AtOffset:
		return s.Offset
	default:
		return "now"
	}
}

// firstEvent is where the first event of a binlog file begins: after the magic number.
const firstEvent = 4

// ParseStart reads oldest, now, FILE:POS, a GTID set (uuid:1-9,uuid:tag:3 …; one or more lines) or the JSON of a stored
// offset.
func ParseStart(text string) (Start, error) {
	t := strings.TrimSpace(text)
	if strings.HasPrefix(t, "{") {
		o, err := offset.Parse([]byte(t))
		if err == nil && o.IsZero() {
			err = errors.New("the offset {} says nothing; give one with file and pos")
		}
		return Start{Mode: AtOffset, Offset: o.String()}, err
	}
	switch strings.ToLower(t) {
	case "now":
		return Start{Mode: Now}, nil
	case "oldest":
		return Start{Mode: Oldest}, nil
	case "":
		return Start{}, errors.New("empty; give oldest, now, FILE:POS, a GTID set or the JSON of an offset")
	}
	set, err := offset.ParseGTIDSet(t)
	if err == nil && !set.IsEmpty() {
		return Start{Mode: AtGTIDs, GTIDs: set.String()}, nil
	}
	if regexp.MustCompile(`^[0-9a-fA-F]{8}-`).MatchString(t) {
		if err == nil {
			err = fmt.Errorf("GTID set: no transaction is in %q", t)
		}
		return Start{}, err
	}
	if i := strings.LastIndexByte(t, ':'); i > 0 {
		if pos, err := strconv.ParseInt(t[i+1:], 10, 64); err == nil {
			file := t[:i]
			if strings.ContainsAny(file, `/\:`) || strings.ContainsAny(file, " \t") {
				return Start{}, fmt.Errorf("%q is not the base name of a binlog file, as in mysql-bin.000003:157", file)
			}
			if pos < firstEvent {
				return Start{}, fmt.Errorf("position %d lies before the first event of a binlog file, which is at %d", pos, firstEvent)
			}
			return Start{Mode: AtFile, File: file, Pos: pos}, nil
		}
	}
	return Start{}, fmt.Errorf("%q is none of oldest, now, FILE:POS (mysql-bin.000003:157), a GTID set (3e11fa47-71ca-11e1-9e33-c80aa9429562:1-77) and the JSON of a stored offset", text)
}

// Begin says where a connector without a stored offset starts, or with stored, whether its snapshot.mode allows to go
// on from a stored offset (then Start is zero). The error names what to use instead.
func (c *Connector) Begin(stored bool) (Start, error) {
	fail := func(why, instead string) (Start, error) {
		return Start{}, &KeyError{File: c.File, Key: "snapshot.mode", Text: fmt.Sprintf("%s %s. %s", c.SnapshotMode, why, instead)}
	}
	switch mode := c.SnapshotMode; mode {
	case "no_data":
		if stored {
			return Start{}, nil
		}
		return c.Start, nil
	case "initial", "when_needed", "recovery":
		if stored {
			return Start{}, nil
		}
		if mode == "recovery" {
			return fail("rebuilds the schema history for a stored offset, and there is no stored offset of this connector",
				`Check name and topic.prefix, which make up the offset's key, or set "snapshot.mode":"no_data" to stream from now on (or from start.position)`)
		}
		return fail("begins with a snapshot when no offset is stored; snapshots are not built yet",
			`Set "snapshot.mode":"no_data" to stream from now on (or from start.position), or let Debezium take the snapshot and hand its offset over`)
	default:
		return fail("takes or decides about a snapshot at every start; snapshots are not built yet",
			`Set "snapshot.mode":"no_data"`)
	}
}
