package binlog

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/tidemark-cdc/tidemark/binlog/server"
	"github.com/tidemark-cdc/tidemark/offset"
)

// sent is what a server sends that is asked by GTIDs: from the beginning of the file without what is in the set, or directly
// from the position on. In both cases the head of the file comes with its own positions.
func (b *binlogBuilder) sent(o offset.Offset, direct bool) *binlogBuilder {
	c := &binlogBuilder{live: true}
	done := false
	for i, raw := range b.events {
		switch raw[4] {
		case evRotate:
			if b.pos[i] < 0 && direct && len(c.events) == 0 {
				raw = slices.Clone(raw)
				binary.LittleEndian.PutUint64(raw[headerSize:], uint64(o.Pos))
			}
			done = false
		case evFormat, evPreviousGTIDs:
			done = false
		case evGTID:
			done = o.GTIDs.Contains(offset.GTID{Source: [16]byte(testSource()), Number: int64(binary.LittleEndian.Uint64(raw[headerSize+17:]))})
		}
		if done || direct && b.pos[i] >= 0 && b.pos[i] < o.Pos && raw[4] != evFormat && raw[4] != evPreviousGTIDs {
			continue
		}
		c.events, c.pos = append(c.events, raw), append(c.pos, -1)
	}
	return c
}

// readSent reads what a server sends from a stored offset on: rows and all offsets.
func readSent(t testing.TB, b *binlogBuilder, o offset.Offset, from server.DumpFrom, way jump) (rows []string, offsets []offset.Offset) {
	t.Helper()
	r, err := newReader(Config{ServerUUID: "me", Filters: "f", Captured: func(_, table string) bool { return table != "other" }}, b)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.jump = way
	if err := r.startLive(t.Context(), livePlan{dump: from, start: o, gtids: !o.GTIDs.IsAbsent(), inTx: true}); err != nil {
		t.Fatal(err)
	}
	r.begin()
	for {
		ev, err := r.Read(t.Context())
		if err != nil {
			if err.Error() != "EOF" {
				t.Fatal(err)
			}
			return rows, offsets
		}
		switch ev := ev.(type) {
		case *Rows:
			for ev.Next() {
				rows = append(rows, fmt.Sprintf("%s %d at %d", ev.Table.Name, fixedInt(ev.After[0]), ev.Info.Pos))
				offsets = append(offsets, ev.OffsetBefore(), ev.OffsetAfter())
			}
		case *Boundary:
			offsets = append(offsets, ev.Offset)
		}
	}
}

// TestI5_I8_RestartsNear4GiB: a stream by GTIDs, from the stored position or without what is in the set, and one by position,
// go on where the offset says and give the same offsets to the byte, with positions on both sides of 4 GiB.
func TestI5_I8_RestartsNear4GiB(t *testing.T) {
	for name, begin := range bothBinlogs {
		for _, at := range []int64{0, 1000, 1<<32 - 100, 1<<32 - 400, 1<<32 - 700, 1<<32 - 1000, 1 << 32, 1<<32 + 100_000, 5 << 32} {
			b := begin()
			if at > 0 {
				b.end = at
			}
			b.transaction(func() { b.insert("t", 1, 2) })
			sevenRows(b, true)
			b.transaction(func() { b.insert("other", 3) })
			b.transaction(func() { b.insert("u", 8) })
			b.live = true
			first := offset.Offset{File: "mysql-bin.000001", Pos: max(at, b.pos[3]), Side: &offset.Side{Server: "me"}, ServerID: 7}
			if name == "GTIDs" {
				first.GTIDs = offset.EmptyGTIDSet()
			}
			from := server.DumpFrom{File: first.File, Pos: first.Pos, ByGTID: name == "GTIDs", Direct: true}
			rows, offsets := readSent(t, b.sent(first, true), first, from, jump{})
			if len(rows) != 10 {
				t.Fatalf("%s from %d: %q", name, at, rows)
			}
			for i, o := range offsets {
				if o.Pos < first.Pos || o.Pos > b.end {
					t.Fatalf("%s from %d: offset %s, and the binlog ends at %d", name, at, o, b.end)
				}
				check := func(what string, rest []string, others []offset.Offset) {
					t.Helper()
					skip := len(offsets) - len(others)
					if len(rest) > len(rows) || !slices.Equal(rest, rows[len(rows)-len(rest):]) || skip < 0 || skip > i+1 || !slices.EqualFunc(others, offsets[skip:], sameOffset) {
						t.Fatalf("%s from %d, %s, at %s (%+v):\n got %q %v\nwant %q %v", name, at, what, o, o.Side.Open, rest, others, rows, offsets[i+1:])
					}
				}
				var ways []jump
				if o.Side.Open != nil && o.Side.Open.EventPos > 0 && o.Side.Open.EventPos < 1<<32 {
					ways = shortWays(b, &o)
				}
				for _, way := range append(ways, jump{}) {
					what := fmt.Sprint("straight ", way.open != nil)
					if name == "GTIDs" {
						rest, others := readSent(t, b.sent(o, false), o, server.DumpFrom{File: o.File, Pos: o.Pos, ByGTID: true}, way)
						check(what+" by set", rest, others)
						if o.Event > 0 {
							continue
						}
						rest, others = readSent(t, b.sent(o, true), o, server.DumpFrom{File: o.File, Pos: o.Pos, ByGTID: true, Direct: true}, way)
						check(what+" direct", rest, others)
					} else {
						rest, others := readSent(t, b.sent(o, true), o, server.DumpFrom{File: o.File, Pos: o.Pos}, way)
						check(what+" by position", rest, others)
					}
				}
			}
		}
	}
}

// heartbeatAt says that a server is at a position of the file, with its low 32 bits.
func (b *binlogBuilder) heartbeatAt(file string, pos int64) {
	raw := make([]byte, headerSize, headerSize+len(file))
	raw[4] = evHeartbeat
	binary.LittleEndian.PutUint32(raw[9:], uint32(headerSize+len(file)))
	binary.LittleEndian.PutUint32(raw[13:], uint32(pos))
	b.events, b.pos = append(b.events, append(raw, file...)), append(b.pos, -1)
}

// TestI8_HeartbeatsOnTheWayBeyond4GiB: while the server leaves out what is done, the stored position is the only thing that says
// where the stream is.
func TestI8_HeartbeatsOnTheWayBeyond4GiB(t *testing.T) {
	const file, here = "mysql-bin.000001", 3<<32 + 200_000
	b := numberedBinlog()
	o := offset.Offset{File: file, Pos: here, GTIDs: offset.EmptyGTIDSet(), Side: &offset.Side{Server: "me"}, ServerID: 7}
	for _, pos := range []int64{b.end, 70_000, 1<<32 - 5, here, here} {
		b.heartbeatAt(file, pos)
	}
	b.end = here + 50
	b.transaction(func() { b.insert("t", 1) })
	b.heartbeatAt(file, b.end+9)
	b.live = true
	beginAt, rowsAt := b.pos[len(b.pos)-5], b.pos[len(b.pos)-3]
	rows, offsets := readSent(t, b, o, server.DumpFrom{ByGTID: true}, jump{})
	if want := fmt.Sprintf("t 1 at %d", rowsAt); len(rows) != 1 || rows[0] != want {
		t.Errorf("rows %q, want %q", rows, want)
	}
	for i, got := range offsets {
		want := int64(here)
		switch {
		case i == len(offsets)-1:
			want = b.end + 9
		case i == len(offsets)-2:
			want = b.end
		case i > 4:
			want = beginAt
		}
		if got.Pos != want {
			t.Errorf("offset %d of %d is at %d, want %d", i, len(offsets), got.Pos, want)
		}
	}
}
