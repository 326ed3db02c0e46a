package binlog

import (
	"encoding/binary"
	"testing"
)

// A stream by GTIDs that begins behind the head of a file has the head's events all the same, with their own positions: they are no step
// of 4 GiB.
func TestHeadOfAFileThatBeginsLater(t *testing.T) {
	for name, begin := range map[string]int64{"far behind it": 1915550, "beyond 4 GiB": 1<<32 + 50, "right behind it": 0} {
		t.Run(name, func(t *testing.T) { headSentAgain(t, begin) })
	}
}

// headSentAgain reads a stream that begins at a position; 0: right behind the head.
func headSentAgain(t *testing.T, begin int64) {
	b := newBinlog("mysql-bin.000002")
	b.previous(1, 5)
	if begin == 0 {
		begin = b.end
	}
	binary.LittleEndian.PutUint64(b.events[0][headerSize:], uint64(begin))
	b.end = begin
	b.gtid(5)
	b.query("BEGIN")
	b.tableMap(1, "t")
	b.rows(evWrite, 1, true, 1)
	b.xid()
	r, err := newReader(Config{Captured: func(string, string) bool { return true }}, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := &r.asm
	a.jumps, a.gtids = true, true
	a.file, a.next = "mysql-bin.000002", 4
	for i, raw := range b.events {
		if _, err := a.feed(t.Context(), raw, -1); err != nil {
			t.Fatal(err)
		}
		if want := b.pos[i]; i > 2 && want >= begin && a.start != want || a.next > b.end {
			t.Errorf("event %d of type %d: from %d to %d, want %d", i, raw[4], a.start, a.next, want)
		}
	}
	if a.next != b.end {
		t.Errorf("the stream is at %d, want %d", a.next, b.end)
	}
}
