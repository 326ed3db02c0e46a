package binlog

import (
	"encoding/binary"
	"testing"
)

// A stream by GTIDs that begins behind the head of a file has the head's events all the same, with their own positions: they are no step
// of 4 GiB.
func TestHeadOfAFileThatBeginsLater(t *testing.T) {
	const begin = 1915550
	b := newBinlog("mysql-bin.000002")
	binary.LittleEndian.PutUint64(b.events[0][headerSize:], begin)
	b.previous(1, 5)
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
		if want := b.pos[i]; want >= begin && a.start != want || a.next > b.end {
			t.Errorf("event %d of type %d: from %d to %d, want %d", i, raw[4], a.start, a.next, want)
		}
	}
	if a.next != b.end {
		t.Errorf("the stream is at %d, want %d", a.next, b.end)
	}
}
