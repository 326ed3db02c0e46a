package binlog

import (
	"fmt"
	"time"

	"github.com/tidemark-cdc/tidemark/binlog/server"
)

// place finds the event's position in 64 bits. Headers have its end in 32 bits only, so it is counted on from the last
// one; by GTID the server leaves transactions out, so it may also jump.
func (a *assembler) place(h *header, start int64) bool {
	size, home := int64(h.size), homes[h.typ]
	switch {
	case start >= 0:
		a.start, a.next = start, start+size
	case home == nowhere || h.end == 0 || h.flags&flagArtificial != 0:
		a.start = a.next
	case home == atHead && h.typ != evMariaGTIDList && int64(h.end) <= a.next:
		a.start = a.next // of the head of the file, which is sent again though the stream begins behind it
	default:
		from := a.next
		if a.below() && home != atHead {
			from = a.floor.Pos
		}
		due := from + size
		gap := int64(h.end - uint32(due)) // modulo 2^32
		if gap >= 1<<31 && !a.jumps {
			return false
		}
		a.start, a.next = from+gap, due+gap
		if gap == checksumSize { // the checksum was taken off
			a.start -= checksumSize
		}
	}
	return true
}

// below says that the stream has not come to the floor yet, under which there is nothing but the head of the file.
func (a *assembler) below() bool {
	return a.jumps && a.next < a.floor.Pos && a.floor.File == a.file
}

func (a *assembler) newFormat(h *header, body []byte) error {
	f, err := parseFormat(body)
	if err != nil {
		return a.errorf(err, "")
	}
	if err := a.sameFile(int64(h.time)); err != nil {
		return a.errorf(err, "")
	}
	a.begun(int64(h.time))
	a.format = f
	a.tables.forget()
	a.uncaptured = nil
	return nil
}

// sameFile refuses a file that has the name of the stored offset's and was begun at another time.
func (a *assembler) sameFile(seconds int64) error {
	k := a.before
	if k.file != a.file || k.seconds == 0 || seconds == 0 || k.seconds == seconds {
		return nil
	}
	return k.another(seconds)
}

func (k fileTime) another(seconds int64) error {
	utc := func(s int64) string { return time.Unix(s, 0).UTC().Format("2006-01-02 15:04:05 MST") }
	return fmt.Errorf("binlog file %s was begun at %s, and the one of the stored offset at %s, on the same server (server_uuid): %w. "+
		"The binlog was written anew (RESET BINARY LOGS AND GTIDS, RESET MASTER, a restored backup or disk snapshot), so what was committed since the stored offset cannot be told, "+
		"and GTIDs may have been given twice; "+startElsewhere, k.file, utc(seconds), utc(k.seconds), server.ErrOtherServer)
}

// rotate follows the stream to another file.
func (a *assembler) rotate(h *header, body []byte) (Event, error) {
	if len(body) < 8 {
		return nil, a.errorf(errShort, "")
	}
	file, pos := string(body[8:]), int64(fixedInt(body[:8]))
	artificial := h.end == 0 || h.flags&flagArtificial != 0
	if a.file == file && artificial {
		if pos > a.next {
			a.next = pos
		}
		return nil, nil
	}
	a.xaUnfinished()
	a.finishGroup()
	first := a.file == ""
	a.left = a.next
	a.file, a.next, a.headed = file, pos, false
	a.begun(0)
	a.start = pos
	if first || a.silent() {
		return nil, nil
	}
	return a.quiet(a.boundaryAt(h, false))
}

// quiet holds back boundaries as long as the stored transaction has not been found: they would be steps back.
func (a *assembler) quiet(b *Boundary) (Event, error) {
	if a.waits() {
		return nil, nil
	}
	return b, nil
}

// waits says that the stored transaction, which must come next, has not come yet.
func (a *assembler) waits() bool { return a.resume != nil && !a.resume.waiting || a.cover != nil }

func (a *assembler) heartbeat(h *header, body []byte) (Event, error) {
	file, pos, low, err := parseHeartbeat(*h, body)
	if err != nil {
		return nil, a.errorf(err, "")
	}
	if a.pending || a.statement || a.xa != nil || a.silent() || a.waits() || a.file == "" || file != a.file {
		return nil, nil
	}
	switch {
	case low && a.below(): // the server is leaving out what is done, and may be anywhere up to where the stream was resumed
		pos = a.floor.Pos + floorSlack
	case low:
		pos = a.next + int64(uint32(pos)-uint32(a.next))
		if pos-a.next >= 1<<31 { // behind us: nothing was left out
			pos = a.next
		}
	}
	// With GTIDs what was left out on the way here is in the set already.
	a.next = max(a.next, pos)
	b := a.boundaryAt(h, false)
	b.Idle = true
	return b, nil
}
