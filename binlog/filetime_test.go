package binlog

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/tidemark-cdc/tidemark/binlog/server"
	"github.com/tidemark-cdc/tidemark/offset"
)

// begunAt sets when a built binlog's files were begun.
func begunAt(b *binlogBuilder, seconds uint32) {
	for _, raw := range b.events {
		if raw[4] == evFormat {
			binary.LittleEndian.PutUint32(raw, seconds)
		}
	}
}

// TestBinlogWrittenAnew: after RESET BINARY LOGS AND GTIDS, or on a server that was restored from a backup, files have the names that they had and
// GTIDs are given a second time. The stored offset knows when its file was begun, and a file that was begun at another time is refused:
// where the stream comes by it, and by GTIDs, where the stream begins elsewhere, before it is opened.
func TestBinlogWrittenAnew(t *testing.T) {
	for _, gtids := range []bool{true, false} {
		begin := numberedBinlog
		if !gtids {
			begin = anonymousBinlog
		}
		b := threeStatements(begin())
		s := &dumpServer{t: t, log: b.binlogBuilder, gtids: gtids}
		_, offsets := s.read(Start{File: "mysql-bin.000001", Pos: firstPos})
		inside, between := offsets[3], offset.Offset{File: "mysql-bin.000001", Pos: b.end, ServerID: 7, Side: &offset.Side{Server: testUUID, FileTime: 1700000000}}
		if gtids {
			between.GTIDs = offset.EmptyGTIDSet()
		}
		for i, o := range offsets {
			if o.Side.FileTime != 1700000000 {
				t.Fatalf("offset %d has the time %d", i, o.Side.FileTime)
			}
		}
		for name, o := range map[string]offset.Offset{"inside a transaction": inside, "between transactions": between} {
			for _, c := range []struct {
				now, stored int64
				server      string
				same        bool
			}{
				{1700000000, 1700000000, testUUID, true},
				{1700000001, 1700000000, testUUID, false},
				{1700000001, 0, testUUID, true}, // not known
				{1700000001, 1700000000, otherUUID, true},
			} {
				if c.server == otherUUID && !gtids || name == "between transactions" && !gtids && c.same {
					continue // the first is refused for its server; there is nothing to read in the other
				}
				begunAt(b.binlogBuilder, uint32(c.now))
				side := *o.Side
				side.FileTime, side.Server = c.stored, c.server
				o.Side = &side
				err := s.open(Start{Offset: &o})
				if c.same && err != nil || !c.same && (!errors.Is(err, server.ErrOtherServer) || server.Transient(err)) {
					t.Errorf("GTIDs %v, %s, begun at %d, stored %d: %v", gtids, name, c.now, c.stored, err)
				}
				if gtids && name == "between transactions" && !c.same && (len(s.dumps) != 1 || s.registered != 0) {
					t.Errorf("asked for %q, registered %d times: the stream was opened", s.dumps, s.registered)
				}
				if !c.same {
					wantError(t, err, "binlog file mysql-bin.000001 was begun at 2023-11-14 22:13:21 UTC, and the one of the stored offset at 2023-11-14 22:13:20 UTC", "RESET BINARY LOGS AND GTIDS")
				}
			}
			begunAt(b.binlogBuilder, 1700000000)
		}
	}
}

// TestTimeOfTheFileFollowsTheStream: offsets of the next file have its time, and none until it has told it.
func TestTimeOfTheFileFollowsTheStream(t *testing.T) {
	var l ledger
	l.begun(5)
	first := l.between()
	l.begun(5)
	if l.between() != first || first.FileTime != 5 {
		t.Errorf("the same file: %+v", l.between())
	}
	l.begun(0)
	if l.between().FileTime != 0 || first.FileTime != 5 {
		t.Errorf("the next file: %+v, before %+v", l.between(), first)
	}
	a := assembler{spot: spot{file: "mysql-bin.000001", next: 500}, ledger: ledger{born: 5}}
	body := append(binary.LittleEndian.AppendUint64(nil, 4), "mysql-bin.000002"...)
	if _, err := a.rotate(&header{typ: evRotate, end: 520}, body); err != nil || a.born != 0 {
		t.Errorf("after ROTATE: %d, %v", a.born, err)
	}
}
