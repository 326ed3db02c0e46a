package binlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tidemark-cdc/tidemark/offset"
)

// clone is a builder that gives the same events from the beginning.
func (b *binlogBuilder) clone() *binlogBuilder {
	c := *b
	return &c
}

// xa writes the first half of an XA transaction.
func (b *binlogBuilder) xa(gtrid string, onePhase bool, body func()) (group int64) {
	group = b.end
	if b.numbered > 0 {
		b.gtid(b.numbered)
		b.numbered++
	} else {
		b.add(evAnonymous, 0, make([]byte, 25))
	}
	b.query(fmt.Sprintf("XA START X'%x',X'',1", gtrid))
	body()
	b.query(fmt.Sprintf("XA END X'%x',X'',1", gtrid))
	b.xaPrepare(gtrid, onePhase)
	return group
}

// decide writes the second half: COMMIT or ROLLBACK.
func (b *binlogBuilder) decide(what, gtrid string) {
	b.group()
	b.query(fmt.Sprintf("XA %s X'%x',X'',1", what, gtrid))
}

// group writes the event with which a group begins.
func (b *binlogBuilder) group() {
	if b.numbered > 0 {
		b.gtid(b.numbered)
		b.numbered++
	} else {
		b.add(evAnonymous, 0, make([]byte, 25))
	}
}

// transaction writes an ordinary transaction.
func (b *binlogBuilder) transaction(body func()) {
	b.group()
	b.query("BEGIN")
	body()
	b.xid()
}

type played struct {
	rows     []string        // table and id, in order
	infos    []Info          // of the rows
	offsets  []offset.Offset // after each row
	marks    []offset.Offset // of the boundaries
	warnings []string
	reopened int
	err      error
}

// playFrom reads a clone of a built binlog. The binlog can be read again, unless gone is set. What a side record says of a
// stored rows event must lead to the same as the way from BEGIN.
func playFrom(t testing.TB, b *binlogBuilder, cfg Config, start Start, gone bool) played {
	t.Helper()
	if cfg.ServerUUID == "" {
		cfg.ServerUUID = "me"
	}
	p := playWith(t, b, cfg, start, gone, jump{})
	for _, way := range shortWays(b, start.Offset) {
		wantSame(t, p, playWith(t, b, cfg, start, gone, way))
	}
	return p
}

func playWith(t testing.TB, b *binlogBuilder, cfg Config, start Start, gone bool, way jump) played {
	t.Helper()
	core, logs := observer.New(zap.WarnLevel)
	cfg.Log = zap.New(core)
	if cfg.Captured == nil {
		cfg.Captured = func(database, table string) bool { return database == "db" && table != "other" }
	}
	var p played
	r, err := newReader(cfg, b.clone())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.jump = way
	r.asm.early = true
	r.asm.reopen = func(_ context.Context, x offset.Prepared) (rawStream, bool, error) {
		p.reopened++
		if gone {
			return nil, false, errors.New("the file is gone")
		}
		return b.at("mysql-bin.000001", x.Pos), true, nil
	}
	if p.err = r.startFiles(t.Context(), start); p.err != nil {
		return p
	}
	r.begin()
	for {
		ev, err := r.Read(t.Context())
		if err != nil {
			if err != io.EOF {
				p.err = err
			}
			break
		}
		switch ev := ev.(type) {
		case *Rows:
			for ev.Next() {
				image := ev.After
				if image == nil {
					image = ev.Before
				}
				p.rows = append(p.rows, fmt.Sprintf("%s %d", ev.Table.Name, fixedInt(image[0])))
				p.infos, p.offsets = append(p.infos, ev.Info), append(p.offsets, ev.OffsetAfter())
			}
			if p.err = ev.Err(); p.err != nil {
				return p
			}
		case *Boundary:
			p.marks = append(p.marks, ev.Offset)
		}
	}
	for _, entry := range logs.All() {
		p.warnings = append(p.warnings, entry.Message)
	}
	return p
}

func wantRows(t testing.TB, got played, want ...string) {
	t.Helper()
	if got.err != nil {
		t.Fatal(got.err)
	}
	if diff := cmp.Diff(want, got.rows); diff != "" && len(want)+len(got.rows) > 0 {
		t.Errorf("rows (-want +got)\n%s", diff)
	}
}

// numberedBinlog is an empty binlog whose groups have GTIDs, from 1 on.
func numberedBinlog() *binlogBuilder {
	b := newBinlog("mysql-bin.000001")
	b.previous()
	b.numbered = 1
	return b
}

func anonymousBinlog() *binlogBuilder {
	b := newBinlog("mysql-bin.000001")
	b.previous()
	return b
}

var bothBinlogs = map[string]func() *binlogBuilder{"GTIDs": numberedBinlog, "positions": anonymousBinlog}

// TestXARollbackAfterPrepareGivesNoRow: rows of an XA transaction are given out when it is committed, in the order of
// the commits and with the source of their own events, and never when it is rolled back.
func TestXARollbackAfterPrepareGivesNoRow(t *testing.T) {
	for name, begin := range bothBinlogs {
		t.Run(name, func(t *testing.T) {
			b := begin()
			b.xa("x1", false, func() { b.insert("t", 1, 2); b.insert("other", 9); b.insert("u", 3) })
			b.xa("x2", false, func() { b.insert("t", 4) })
			third := b.xa("x3", false, func() { b.insert("t", 5) })
			b.transaction(func() { b.insert("t", 6) })
			b.decide("ROLLBACK", "x2")
			b.decide("COMMIT", "x3")
			b.decide("COMMIT", "x1")
			b.xa("x4", true, func() { b.insert("t", 7) })
			got := playFrom(t, b, Config{ServerUUID: "me"}, Start{}, true)
			wantRows(t, got, "t 6", "t 5", "t 1", "t 2", "u 3", "t 7")
			if got.reopened != 0 || len(got.warnings) != 0 {
				t.Errorf("%d times read again, warnings %q", got.reopened, got.warnings)
			}
			for i, info := range got.infos[1:] {
				if info.Thread != -1 {
					t.Errorf("row %s has thread %d", got.rows[i+1], info.Thread)
				}
			}
			if pos := got.infos[1].Pos; pos <= third || pos >= third+500 {
				t.Errorf("the row of x3 stands at %d, its transaction begins at %d", pos, third)
			}
			if name == "GTIDs" && got.infos[1].GTID.String() != testUUID+":3" {
				t.Errorf("the row of x3 has GTID %s", got.infos[1].GTID)
			}
		})
	}
}

// TestI4_PreparedTransactionsAreListed: as long as an XA transaction is undecided, its GTID is in gtids and it stands in the
// side of every offset; while its rows are given out it still does, and the offset is that before its XA COMMIT.
func TestI4_PreparedTransactionsAreListed(t *testing.T) {
	b := numberedBinlog()
	group := b.xa("x1", false, func() { b.insert("t", 1, 2) })
	prepared := b.end
	b.transaction(func() { b.insert("t", 3) })
	before := b.end
	b.decide("COMMIT", "x1")
	got := playFrom(t, b, Config{ServerUUID: "me", Filters: "f"}, Start{}, true)
	wantRows(t, got, "t 3", "t 1", "t 2")
	listed := []offset.Prepared{{XID: "X'7831',X'',1", Server: "me", File: "mysql-bin.000001", Pos: group, GTID: testUUID + ":1"}}
	list := func(o offset.Offset) string { return fmt.Sprintf("%s %d %+v", short(o), o.Done, o.Side.XA) }
	wantLines(t, []string{list(got.marks[0]), list(got.offsets[0]), list(got.offsets[1]), list(got.offsets[2]), list(got.marks[2])}, []string{
		fmt.Sprintf("000001:%d [1] 0 %+v", prepared, listed),
		fmt.Sprintf("000001:%d event 2 row 1 [1] 0 %+v", prepared+68, listed),
		fmt.Sprintf("000001:%d [1-2] 1 %+v", before, listed),
		fmt.Sprintf("000001:%d [1-2] 2 %+v", before, listed),
		fmt.Sprintf("000001:%d [1-3] 0 %+v", b.end, []offset.Prepared(nil)),
	})
	want := offset.Open{GTID: offset.GTID{Source: [16]byte(testSource()), Number: 3}, CommitMicros: 1700000001234567, Thread: -1, Filters: "f", XID: "X'7831',X'',1"}
	if diff := cmp.Diff(want, *got.offsets[2].Side.Open); diff != "" {
		t.Error(diff)
	}
}

// TestI5_XARestart starts from every offset that is given out around and inside XA transactions: the rows are read again
// from the binlog, and exactly those behind the offset come.
func TestI5_XARestart(t *testing.T) {
	for name, begin := range bothBinlogs {
		for _, limit := range []int{spoolMemory, 0} {
			t.Run(fmt.Sprintf("%s, %d bytes in memory", name, limit), func(t *testing.T) {
				b := begin()
				b.transaction(func() { b.insert("t", 1) })
				b.xa("x1", false, func() { b.insert("t", 2, 3); b.insert("other", 9, 9); b.insert("t", 4, 5) })
				b.xa("x2", false, func() { b.insert("u", 6) })
				b.transaction(func() { b.insert("t", 7) })
				b.decide("COMMIT", "x2")
				b.decide("COMMIT", "x1")
				b.xa("x3", true, func() { b.insert("u", 8); b.insert("t", 9, 10) })
				b.transaction(func() { b.insert("t", 11) })
				all := playFrom(t, b, Config{ServerUUID: "me"}, Start{}, true)
				wantRows(t, all, "t 1", "t 7", "u 6", "t 2", "t 3", "t 4", "t 5", "u 8", "t 9", "t 10", "t 11")
				for i, o := range all.offsets {
					got := playFrom(t, b, Config{ServerUUID: "me"}, Start{Offset: &o}, false)
					wantRows(t, got, all.rows[i+1:]...)
					if t.Failed() {
						t.Fatalf("from %s done %d side %+v, warnings %q", o, o.Done, *o.Side, got.warnings)
					}
					if diff := cmp.Diff(all.offsets[i+1:], got.offsets, cmp.Comparer(func(x, y offset.Offset) bool {
						return x.Equal(y) && x.Done == y.Done && cmp.Equal(x.Side, y.Side)
					})); diff != "" && len(got.offsets) > 0 {
						t.Fatalf("offsets from %s done %d (-want +got)\n%s", o, o.Done, diff)
					}
				}
				for _, o := range all.marks {
					rest := 0
					for _, row := range all.offsets {
						if done, _ := row.Before(o); done && (row.Side.Open == nil || row.Side.Open.XID == "") {
							rest++
						}
					}
					if got := playFrom(t, b, Config{ServerUUID: "me"}, Start{Offset: &o}, false); got.err != nil || rest == 0 && len(got.rows) == 0 {
						t.Fatalf("from %s: %d rows, %v", o, len(got.rows), got.err)
					}
				}
			})
		}
	}
}

// TestI5_XAIsFoundElsewhere: on another server an XA transaction that was being given out is found by its GTID, and its
// rows are counted: those of captured tables, or all when the table filters were changed.
func TestI5_XAIsFoundElsewhere(t *testing.T) {
	build := func(noise bool) *binlogBuilder {
		b := numberedBinlog()
		if noise { // positions are others there
			b.numbered = 0
			b.end += 1000
			b.numbered = 1
		}
		b.xa("x1", false, func() {
			b.insert("other", 8, 8)
			if noise { // rows events are cut otherwise
				b.tableMap(9, "t")
				b.rows(evWrite, 9, false, 1)
				b.rows(evWrite, 9, true, 2, 3)
			} else {
				b.insert("t", 1, 2, 3)
			}
			b.insert("other", 8)
			b.insert("t", 4, 5)
		})
		b.decide("COMMIT", "x1")
		return b
	}
	all := playFrom(t, build(false), Config{ServerUUID: "one", Filters: "f"}, Start{}, true)
	wantRows(t, all, "t 1", "t 2", "t 3", "t 4", "t 5")
	for i, o := range all.offsets {
		for _, filters := range []string{"f", "changed"} {
			got := playFrom(t, build(true), Config{ServerUUID: "two", Filters: filters}, Start{Offset: &o}, false)
			wantRows(t, got, all.rows[i+1:]...)
			if t.Failed() {
				t.Fatalf("filters %s, from %s done %d", filters, o, o.Done)
			}
		}
		got := playFrom(t, build(true), Config{ServerUUID: "two", Filters: "f", Filtered: true}, Start{Offset: &o}, false)
		wantRows(t, got, all.rows...)
		if w := strings.Join(got.warnings, "\n"); !strings.Contains(w, "XA transaction X'7831',X'',1, which is committed at mysql-bin.000001:") || !strings.Contains(w, "is sent again from its beginning") {
			t.Errorf("warnings %q", w)
		}
		got = playFrom(t, build(true), Config{ServerUUID: "two", Filters: "f", Filtered: true, Once: true}, Start{Offset: &o}, false)
		if len(got.rows) > 0 {
			t.Errorf("rows %q", got.rows)
		}
		wantError(t, got.err, "would have to be sent again from its beginning")
	}
}

// TestI5_XABinlogGone: when the rows of a prepared transaction are gone, the stream stops at its XA COMMIT and names it; a
// rollback needs none.
func TestI5_XABinlogGone(t *testing.T) {
	for _, what := range []string{"COMMIT", "ROLLBACK"} {
		b := numberedBinlog()
		b.xa("x1", false, func() { b.insert("t", 1) })
		prepared := playFrom(t, b, Config{}, Start{}, true).marks[0]
		b.decide(what, "x1")
		got := playFrom(t, b, Config{}, Start{Offset: &prepared}, true)
		if what == "ROLLBACK" {
			wantRows(t, got)
			continue
		}
		wantError(t, got.err, "XA COMMIT of X'7831',X'',1", "which were prepared at mysql-bin.000001:", "have to be read again", "the file is gone")
	}
	// Another transaction in its place.
	b := numberedBinlog()
	b.xa("x1", false, func() { b.insert("t", 1) })
	prepared := playFrom(t, b, Config{}, Start{}, true).marks[0]
	side := *prepared.Side
	side.XA = []offset.Prepared{{XID: "X'7832',X'',1", File: "mysql-bin.000001", Pos: side.XA[0].Pos}}
	prepared.Side = &side
	b.decide("COMMIT", "x2")
	got := playFrom(t, b, Config{}, Start{Offset: &prepared}, false)
	wantError(t, got.err, "XA COMMIT of X'7832',X'',1", "stands another transaction", "choices: ")
}

// TestXAPreparedBeforeTheStart: the rows of an XA transaction that was prepared before a taken-over offset were sent by
// Debezium; its commit is left out, and that is said.
func TestXAPreparedBeforeTheStart(t *testing.T) {
	for name, begin := range bothBinlogs {
		t.Run(name, func(t *testing.T) {
			b := begin()
			b.xa("x1", false, func() { b.insert("t", 1) })
			b.xa("x2", false, func() { b.insert("t", 2) })
			at := playFrom(t, b, Config{}, Start{}, true).marks[1]
			at.Side = nil // as Debezium stores it
			b.decide("COMMIT", "x1")
			b.decide("ROLLBACK", "x2")
			b.transaction(func() { b.insert("t", 3) })
			got := playFrom(t, b, Config{}, Start{Offset: &at}, false)
			wantRows(t, got, "t 3")
			if len(got.warnings) != 1 || !strings.Contains(got.warnings[0], "XA COMMIT of X'7831',X'',1 is left out") {
				t.Errorf("warnings %q", got.warnings)
			}
		})
	}
}

// TestI5_DebeziumInsideCompressedXA: Debezium's offset inside a compressed XA transaction is the end of the payload, with
// events that it counted inside; the rows before it are not sent again, the others come.
func TestI5_DebeziumInsideCompressedXA(t *testing.T) {
	for name, begin := range bothBinlogs {
		t.Run(name, func(t *testing.T) {
			b := begin()
			b.group()
			inner := newBinlog("")
			inner.events, inner.pos = nil, nil
			inner.query("XA START X'7831',X'',1")
			inner.insert("t", 1, 2)
			inner.insert("t", 3)
			inner.query("XA END X'7831',X'',1")
			inner.xaPrepare("x1", false)
			var content []byte
			for _, raw := range inner.events {
				content = append(content, raw...)
			}
			b.add(evPayload, 0, append([]byte{2, 1, 255, 0}, content...)) // not compressed
			end := b.end
			b.decide("COMMIT", "x1")
			b.transaction(func() { b.insert("t", 4) })
			set := "-"
			if name == "GTIDs" {
				set = ""
			}
			for _, c := range []struct {
				event, row int64
				want       []string
			}{
				{2, 1, []string{"t 2", "t 3", "t 4"}},
				{2, 2, []string{"t 3", "t 4"}},
				{4, 1, []string{"t 4"}},
			} {
				got := playFrom(t, b, Config{}, Start{Offset: stored(t, "mysql-bin.000001", end, c.event, c.row, set)}, false)
				wantRows(t, got, c.want...)
				if len(got.warnings) != 0 {
					t.Errorf("event %d row %d: warnings %q", c.event, c.row, got.warnings)
				}
				// Between its prepare and its commit the rows that are covered stay so.
				if len(got.marks) > 0 && got.marks[0].Side.XA != nil {
					again := playFrom(t, b, Config{}, Start{Offset: &got.marks[0]}, false)
					wantRows(t, again, c.want...)
				}
			}
		})
	}
}

// TestXASpool: what does not fit into memory waits in a file without a name, which is given back.
func TestXASpool(t *testing.T) {
	dir := t.TempDir()
	b := numberedBinlog()
	var want []string
	ids := make([]uint32, 20000)
	for i := range ids {
		ids[i] = uint32(i)
		want = append(want, fmt.Sprintf("t %d", i))
	}
	for _, x := range []string{"x1", "x2", "x3"} {
		b.xa(x, false, func() {
			for i := 0; i < len(ids); i += 500 {
				b.insert("t", ids[i:i+500]...)
			}
		})
	}
	b.decide("ROLLBACK", "x1")
	b.decide("COMMIT", "x3")
	b.decide("COMMIT", "x2")
	got := playFrom(t, b, Config{SpoolDir: dir}, Start{}, true)
	wantRows(t, got, append(want, want...)...)
	s := &spool{dir: dir, limit: 100 << 10}
	first, second := &spooled{}, &spooled{}
	for _, x := range []*spooled{first, second} {
		for i := range 3000 {
			if err := s.append(x, int64(i), header{typ: evWrite, time: 5, server: 7, flags: 1}, make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if s.memory > 200<<10 || s.size < 400<<10 {
		t.Errorf("%d bytes in memory, %d in the file", s.memory, s.size)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 0 {
		t.Errorf("files %v, %v", names, err)
	}
	for _, x := range []*spooled{second, first} {
		r := s.read(x)
		for i := range 3000 {
			f, err := r.next()
			if err != nil || f.pos != int64(i) || len(f.body) != 100 || f.h.typ != evWrite || f.h.time != 5 || f.h.server != 7 || f.h.flags != 1 {
				t.Fatal(i, f.pos, f.h, err)
			}
		}
		if _, err := r.next(); err != io.EOF {
			t.Fatal(err)
		}
	}
	s.release(second)
	s.release(first)
	if info, err := s.file.Stat(); err != nil || info.Size() != 0 || s.memory != 0 {
		t.Errorf("%d bytes left in memory, file %v %v", s.memory, info, err)
	}
	s.close()
}

// TestXASpoolUsesItsFileAgain: with transactions that are always undecided the file does not grow with all that came by, and
// what is written into the gaps is read back whole.
func TestXASpoolUsesItsFileAgain(t *testing.T) {
	s := &spool{dir: t.TempDir(), limit: 100 << 10}
	defer s.close()
	type sequence struct {
		*spooled
		mark byte
		size int
	}
	var live []sequence
	random := rand.New(rand.NewPCG(1, 2))
	most := int64(0)
	for n := range 2000 {
		x := sequence{&spooled{}, byte(n), 1 + random.IntN(40)}
		for i := range x.size {
			if err := s.append(x.spooled, int64(i), header{typ: evWrite}, bytes.Repeat([]byte{x.mark}, 4000)); err != nil {
				t.Fatal(err)
			}
		}
		if live = append(live, x); len(live) <= 20 {
			continue
		}
		i := random.IntN(len(live))
		x = live[i]
		r := s.read(x.spooled)
		for i := range x.size {
			if f, err := r.next(); err != nil || f.pos != int64(i) || len(f.body) != 4000 || bytes.Count(f.body, []byte{x.mark}) != 4000 {
				t.Fatal(n, i, f.pos, err)
			}
		}
		if _, err := r.next(); err != io.EOF {
			t.Fatal(err)
		}
		s.release(x.spooled)
		live = slices.Delete(live, i, i+1)
		info, err := s.file.Stat()
		if err != nil || info.Size() > s.size {
			t.Fatal(info.Size(), s.size, err)
		}
		most = max(most, s.size)
	}
	if most > 20*40*4100*2 {
		t.Errorf("the file had %d bytes", most)
	}
	for _, x := range live {
		s.release(x.spooled)
	}
	if info, err := s.file.Stat(); err != nil || info.Size() != 0 || s.size != 0 || len(s.free) != 0 || s.memory != 0 {
		t.Errorf("left: %d bytes, free %v, %d in memory, %v", s.size, s.free, s.memory, err)
	}
}

// TestXASpoolIsOnlyACache: without a place for the spool the rows are read again at the commit.
func TestXASpoolIsOnlyACache(t *testing.T) {
	b := numberedBinlog()
	var want []string
	b.xa("x1", false, func() {
		for i := range uint32(60) {
			ids := make([]uint32, 5000)
			for k := range ids {
				ids[k] = i
				want = append(want, fmt.Sprintf("t %d", i))
			}
			b.insert("t", ids...)
		}
	})
	b.decide("COMMIT", "x1")
	got := playFrom(t, b, Config{SpoolDir: t.TempDir() + "/missing"}, Start{}, true)
	wantError(t, got.err, "XA COMMIT of X'7831',X'',1", "the file is gone")
	dir := t.TempDir()
	os.Remove(dir)
	core, logs := observer.New(zap.WarnLevel)
	r, err := newReader(Config{Captured: func(_, _ string) bool { return true }, SpoolDir: dir, Log: zap.New(core)}, b.clone())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.asm.reopen = func(_ context.Context, x offset.Prepared) (rawStream, bool, error) {
		return b.at("mysql-bin.000001", x.Pos), true, os.Mkdir(dir, 0o700) // there is room again
	}
	if err := r.startFiles(t.Context(), Start{}); err != nil {
		t.Fatal(err)
	}
	n := 0
	for {
		ev, err := r.Read(t.Context())
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if rows, ok := ev.(*Rows); ok {
			for rows.Next() {
				n++
			}
		}
	}
	if n != len(want) || logs.FilterMessageSnippet("cannot be kept until its commit").Len() != 1 {
		t.Errorf("%d rows of %d, warnings %v", n, len(want), logs.All())
	}
}
