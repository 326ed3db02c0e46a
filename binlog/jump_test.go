package binlog

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tidemark-cdc/tidemark/offset"
)

// at is the binlog from a position in a file on, as a server sends it. Where no event begins, the next one is sent.
func (b *binlogBuilder) at(file string, pos int64) *binlogBuilder {
	c := &binlogBuilder{live: b.live}
	here := false
	for i, raw := range b.events {
		switch head := raw[4] == evFormat || raw[4] == evRotate; {
		case b.pos[i] < 0 && raw[4] == evRotate:
			here = here || string(raw[headerSize+8:]) == file
		case len(c.events) > 2: // further files
		case !head && b.pos[i] < pos:
			continue
		}
		if here {
			c.events, c.pos = append(c.events, raw), append(c.pos, b.pos[i])
		}
	}
	return c
}

// shortWays are the ways to a stored rows event: by a stream that begins there, and by reading on from the beginning of its
// statement. There are none if the side record knows of no such event.
func shortWays(b *binlogBuilder, o *offset.Offset) []jump {
	if o == nil || o.Side == nil || o.Side.Open == nil || o.Side.Open.EventPos == 0 {
		return nil
	}
	open := func(_ context.Context, file string, pos int64, _ bool) (rawStream, error) {
		return b.at(file, pos), nil
	}
	return []jump{{open: open}, {open: open, near: math.MaxInt64}}
}

// sameOffset compares everything about two offsets.
func sameOffset(o, p offset.Offset) bool {
	return o.String() == p.String() && o.Done == p.Done && reflect.DeepEqual(o.Side, p.Side)
}

// wantSame compares what two ways gave.
func wantSame(t testing.TB, want, got played) {
	t.Helper()
	if fmt.Sprint(want.err) != fmt.Sprint(got.err) {
		t.Errorf("straight: error %v, want %v", got.err, want.err)
	}
	if diff := cmp.Diff(want.warnings, got.warnings); diff != "" {
		t.Errorf("straight: warnings (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(want.rows, got.rows); diff != "" {
		t.Errorf("straight: rows (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(want.infos, got.infos); diff != "" {
		t.Errorf("straight: sources (-want +got)\n%s", diff)
	}
	if !slices.EqualFunc(want.offsets, got.offsets, sameOffset) || !slices.EqualFunc(want.marks, got.marks, sameOffset) {
		t.Errorf("straight: offsets %v and boundaries %v, want %v and %v", got.offsets, got.marks, want.offsets, want.marks)
	}
}

// counted notes which streams a way opens.
func (j jump) counted(opened *[]string) jump {
	open := j.open
	j.open = func(ctx context.Context, file string, pos int64, beside bool) (rawStream, error) {
		what := fmt.Sprint(pos)
		if beside {
			what += " beside"
		}
		*opened = append(*opened, what)
		return open(ctx, file, pos, beside)
	}
	return j
}

// statements is a transaction of three statements, the second of which has two tables and four rows events, and another
// transaction behind it.
type statements struct {
	*binlogBuilder
	begin, first, second, third int64   // where the transaction and its statements begin
	events                      []int64 // the rows events of captured tables
	rows                        []string
}

func threeStatements(b *binlogBuilder) *statements {
	s := &statements{binlogBuilder: b}
	b.group()
	s.begin = b.query("BEGIN")
	s.first = b.tableMap(8, "other")
	b.rows(evWrite, 8, true, 1, 2, 3)
	s.second = b.add(evRowsQuery, 0, append([]byte{6}, "insert"...))
	b.tableMap(9, "t")
	b.tableMap(10, "u")
	s.events = append(s.events, b.rows(evWrite, 9, false, 1, 2), b.rows(evWrite, 10, false, 3), b.rows(evWrite, 9, false, 4, 5), b.rows(evWrite, 10, true, 6))
	s.third = b.tableMap(9, "t")
	s.events = append(s.events, b.rows(evWrite, 9, true, 7, 8))
	b.xid()
	b.transaction(func() { b.insert("t", 9) })
	s.rows = []string{"t 1", "t 2", "u 3", "t 4", "t 5", "u 6", "t 7", "t 8", "t 9"}
	return s
}

// TestI5_StraightToTheRowsEvent: the streams that are opened on the way to a stored rows event, of a server that has its
// positions in the headers and in files.
func TestI5_StraightToTheRowsEvent(t *testing.T) {
	for name, begin := range bothBinlogs {
		for _, live := range []bool{false, true} {
			s := threeStatements(begin())
			s.live = live
			cfg := Config{ServerUUID: "me", Filters: "f", IncludeQuery: true}
			all := playFrom(t, s.binlogBuilder, cfg, Start{}, true)
			wantRows(t, all, s.rows...)
			for i, o := range all.offsets {
				event := o.Side.Open.EventPos
				if event != all.infos[i].Pos {
					t.Fatalf("%s: the rows event of %s is at %d, in its side record at %d", name, s.rows[i], all.infos[i].Pos, event)
				}
				beside := []string{fmt.Sprintf("%d beside", o.Side.Open.StatementPos), fmt.Sprint(event)}
				near := []string{fmt.Sprint(o.Side.Open.StatementPos)}
				if i == len(all.offsets)-1 { // the statement is the first of its transaction, so its beginning has been read
					beside, near = beside[1:], nil
				}
				for k, want := range [][]string{beside, near} {
					var opened []string
					way := shortWays(s.binlogBuilder, &o)[k].counted(&opened)
					got := playWith(t, s.binlogBuilder, cfg, Start{Offset: &o}, true, way)
					wantRows(t, got, s.rows[i+1:]...)
					if !slices.Equal(opened, want) || len(got.warnings) > 0 && name == "GTIDs" {
						t.Errorf("%s, live %v, behind %s: opened %q, want %q; %q", name, live, s.rows[i], opened, want, got.warnings)
					}
					for n := range got.infos {
						if got.infos[n] != all.infos[i+1+n] || !sameOffset(got.offsets[n], all.offsets[i+1+n]) {
							t.Errorf("%s, behind %s: %+v at %s, want %+v at %s", name, s.rows[i], got.infos[n], got.offsets[n], all.infos[i+1+n], all.offsets[i+1+n])
						}
					}
				}
			}
		}
	}
}

// changed is o with another side record of its open transaction.
func changed(o offset.Offset, change func(*offset.Side, *offset.Open)) *offset.Offset {
	side, open := *o.Side, *o.Side.Open
	side.Open = &open
	change(&side, &open)
	o.Side = &side
	return &o
}

// TestI5_NotStraight: nothing is opened when the side record does not say enough, when what lies in between is needed, and
// when it is not worth it.
func TestI5_NotStraight(t *testing.T) {
	s := threeStatements(numberedBinlog())
	cfg := Config{ServerUUID: "me", Filters: "f"}
	all := playFrom(t, s.binlogBuilder, cfg, Start{}, true)
	o := all.offsets[3] // t 4
	old := changed(o, func(_ *offset.Side, open *offset.Open) { open.EventPos = 0 })
	way := shortWays(s.binlogBuilder, &o)[0]
	far := way
	far.least = o.Side.Open.EventPos - s.begin
	short := way
	short.least = far.least + 1
	elsewhere, filters, recount := cfg, cfg, cfg
	elsewhere.ServerUUID, filters.Filters, recount.Recount = "you", "g", true
	for _, c := range []struct {
		name string
		cfg  Config
		from *offset.Offset
		way  jump
		want int
	}{
		{"far enough", cfg, &o, far, 2},
		{"not far enough", cfg, &o, short, 0},
		{"an old side record", cfg, old, way, 0},
		{"another server", elsewhere, &o, way, 0},
		{"other filters", filters, &o, way, 0},
		{"rows that are to be counted", recount, &o, way, 0},
		{"rows that could not be counted", cfg, changed(o, func(_ *offset.Side, open *offset.Open) { open.Rows = -1 }), way, 0},
		{"positions beyond 4 GiB", cfg, changed(o, func(_ *offset.Side, open *offset.Open) { open.EventPos += 1 << 32 }), way, 0},
	} {
		var opened []string
		got := playWith(t, s.binlogBuilder, c.cfg, Start{Offset: c.from}, true, c.way.counted(&opened))
		if want := s.rows[4:]; c.cfg.Recount {
			wantRows(t, got, s.rows...)
		} else {
			wantRows(t, got, want...)
		}
		if len(opened) != c.want || len(got.warnings) > 0 {
			t.Errorf("%s: opened %q, warnings %q", c.name, opened, got.warnings)
		}
	}
}

// TestI5_StraightFindsSomethingElse: whatever stands where the side record says, no row is lost and none comes twice: the
// transaction is read from its BEGIN, and that is said once.
func TestI5_StraightFindsSomethingElse(t *testing.T) {
	s := threeStatements(numberedBinlog())
	cfg := Config{ServerUUID: "me", Filters: "f"}
	all := playFrom(t, s.binlogBuilder, cfg, Start{}, true)
	gone := errors.New("it was purged")
	positions := func(pos ...int64) []string {
		var text []string
		for _, p := range pos {
			text = append(text, fmt.Sprint(p))
		}
		return text
	}
	for _, c := range []struct {
		name   string
		change func(*offset.Open)
		err    map[int64]error // of opening
		near   bool
		opened []string
		why    string
	}{
		{"another rows event", func(o *offset.Open) { o.EventPos = s.events[3] }, nil, false, nil, "the offset has 2 rows of it, and there it has 1"},
		{"another rows event nearby", func(o *offset.Open) { o.EventPos = s.events[0] }, nil, true, nil, "event 6 begins at"},
		{"no event", func(o *offset.Open) { o.EventPos++ }, nil, false, nil, "no event begins at mysql-bin.000001:"},
		{"no event nearby", func(o *offset.Open) { o.EventPos++ }, nil, true, nil, "begins at"},
		{"no rows", func(o *offset.Open) { o.EventPos = s.third }, nil, false, nil, "an event of type 19 there, not of rows"},
		{"a statement before BEGIN", func(o *offset.Open) { o.StatementPos = s.begin - 1 }, nil, false, []string{}, "behind a BEGIN at"},
		{"the end of the binlog", func(o *offset.Open) { o.EventPos = s.end }, nil, false, nil, "the binlog ends at"},
		{"the statement before it", func(o *offset.Open) { o.StatementPos, o.StatementEvent = s.first, 1 }, nil, false, nil, "of table id 9 there, which its statement does not name"},
		{"no beginning of a statement", func(o *offset.Open) { o.StatementPos = s.events[0] - 1 }, nil, false, nil, "no event begins at"},
		{"only a part of its beginning", func(o *offset.Open) { o.StatementPos = s.events[0] }, nil, false, nil, "of table id 9 there, which its statement does not name"},
		{"another number of the statement", func(o *offset.Open) { o.StatementEvent++ }, nil, true, nil, "event 9 begins at"},
		{"a number behind it", func(o *offset.Open) { o.StatementEvent += 3 }, nil, false, nil, "begins at"},
		{"the numbers the other way round", func(o *offset.Open) { o.StatementEvent += 5 }, nil, false, []string{}, "it is event 8"},
		{"a file that is purged", nil, map[int64]error{s.events[2]: gone}, false, nil, "it was purged"},
		{"a statement that is purged", nil, map[int64]error{s.second: gone}, false, positions(s.second), "it was purged"},
	} {
		o := all.offsets[4] // t 5
		from := changed(o, func(_ *offset.Side, open *offset.Open) {
			if c.change != nil {
				c.change(open)
			}
		})
		way := shortWays(s.binlogBuilder, from)[0]
		if c.near {
			way.near = math.MaxInt64
		}
		open := way.open
		way.open = func(ctx context.Context, file string, pos int64, beside bool) (rawStream, error) {
			if err := c.err[pos]; err != nil {
				return nil, err
			}
			return open(ctx, file, pos, beside)
		}
		var opened []string
		got := playWith(t, s.binlogBuilder, cfg, Start{Offset: from}, true, way.counted(&opened))
		wantRows(t, got, s.rows[5:]...)
		for n := range got.offsets {
			if !sameOffset(got.offsets[n], all.offsets[5+n]) {
				t.Errorf("%s: %s, want %s", c.name, got.offsets[n], all.offsets[5+n])
			}
		}
		if len(got.warnings) != 1 || !strings.Contains(got.warnings[0], c.why) || !strings.Contains(got.warnings[0], "cannot be gone to straight") {
			t.Errorf("%s: warnings %q, want %q", c.name, got.warnings, c.why)
		}
		if c.opened != nil && len(c.opened) != len(opened) {
			t.Errorf("%s: opened %q, want %q", c.name, opened, c.opened)
		}
	}
}

// TestI5_StraightIntoAStatementThatNamesATableLater: no server is known to write that. Its rows are reached from BEGIN.
func TestI5_StraightIntoAStatementThatNamesATableLater(t *testing.T) {
	b := numberedBinlog()
	b.transaction(func() {
		b.insert("t", 1)
		b.tableMap(9, "t")
		b.rows(evWrite, 9, false, 2)
		b.tableMap(10, "u")
		b.rows(evWrite, 10, false, 3)
		b.rows(evWrite, 9, false, 4, 5)
		b.rows(evWrite, 10, true, 6)
		b.insert("t", 7)
	})
	cfg := Config{ServerUUID: "me"}
	all := playWith(t, b, cfg, Start{}, true, jump{})
	o := all.offsets[3]
	got := playWith(t, b, cfg, Start{Offset: &o}, true, shortWays(b, &o)[0])
	wantRows(t, got, "t 5", "u 6", "t 7")
	for i := range got.offsets {
		if !sameOffset(got.offsets[i], all.offsets[4+i]) {
			t.Errorf("%s, want %s", got.offsets[i], all.offsets[4+i])
		}
	}
	if len(got.warnings) != 1 || !strings.Contains(got.warnings[0], "table id 10, of the rows at mysql-bin.000001:") {
		t.Errorf("warnings %q", got.warnings)
	}
}

// TestI5_StraightIntoATableMadeInTheTransaction: what stands between BEGIN and the first statement is handled before.
func TestI5_StraightIntoATableMadeInTheTransaction(t *testing.T) {
	b := numberedBinlog()
	b.transaction(func() {
		b.query("CREATE TABLE t (id INT NOT NULL) START TRANSACTION")
		b.mapped(9, "t", false, "id")
		b.rows(evWrite, 9, false, 1, 2)
		b.rows(evWrite, 9, true, 3)
	})
	cfg := Config{ServerUUID: "me"}
	all := playFrom(t, b, cfg, Start{}, true)
	wantRows(t, all, "t 1", "t 2", "t 3")
	for i, o := range all.offsets {
		wantRows(t, playFrom(t, b, cfg, Start{Offset: &o}, true), all.rows[i+1:]...)
		var opened []string
		playWith(t, b, cfg, Start{Offset: &o}, true, shortWays(b, &o)[0].counted(&opened))
		if len(opened) != 1 {
			t.Errorf("opened %q", opened)
		}
	}
}

// TestStraightIsInterrupted: when the caller's context ends on the way, a later Read goes on, and so it does when the way
// from BEGIN cannot be gone at once.
func TestStraightIsInterrupted(t *testing.T) {
	s := threeStatements(numberedBinlog())
	all := playFrom(t, s.binlogBuilder, Config{ServerUUID: "me"}, Start{}, true)
	for i := range 6 { // the opening that is interrupted
		o := *changed(all.offsets[4], func(_ *offset.Side, open *offset.Open) {
			if i > 2 { // the third is of the way from BEGIN
				open.EventPos = s.third
			}
		})
		r, err := newReader(Config{ServerUUID: "me", Captured: func(_, table string) bool { return table != "other" }}, s.clone())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r.jump = shortWays(s.binlogBuilder, &o)[0]
		open, n := r.jump.open, 0
		r.jump.open = func(c context.Context, file string, pos int64, beside bool) (rawStream, error) {
			if n++; n == 1+i%3 {
				cancel()
				return nil, c.Err()
			}
			return open(c, file, pos, beside)
		}
		if err := r.startFiles(t.Context(), Start{Offset: &o}); err != nil {
			t.Fatal(err)
		}
		r.begin()
		var rows []string
		interrupted := 0
		for {
			ev, err := r.Read(ctx)
			if errors.Is(err, context.Canceled) {
				interrupted++
				ctx = t.Context()
				continue
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if ev, ok := ev.(*Rows); ok {
				for ev.Next() {
					rows = append(rows, fmt.Sprintf("%s %d", ev.Table.Name, fixedInt(ev.After[0])))
				}
			}
		}
		wantLines(t, rows, s.rows[5:])
		if want := 1; interrupted != want && i != 2 {
			t.Errorf("opening %d: interrupted %d times", i, interrupted)
		}
		r.Close()
	}
}

// TestStraightAndTheWayFromBeginFails: what cannot be opened ends the stream, to be opened anew by the caller.
func TestStraightAndTheWayFromBeginFails(t *testing.T) {
	s := threeStatements(numberedBinlog())
	all := playFrom(t, s.binlogBuilder, Config{ServerUUID: "me"}, Start{}, true)
	o := all.offsets[4]
	down := errors.New("the server is down")
	way := shortWays(s.binlogBuilder, &o)[1]
	way.open = func(context.Context, string, int64, bool) (rawStream, error) { return nil, down }
	if got := playWith(t, s.binlogBuilder, Config{ServerUUID: "me"}, Start{Offset: &o}, true, way); !errors.Is(got.err, down) || len(got.rows) > 0 {
		t.Errorf("%v, rows %q", got.err, got.rows)
	}
	way = shortWays(s.binlogBuilder, &o)[1]
	open := way.open
	way.open = func(ctx context.Context, file string, pos int64, beside bool) (rawStream, error) {
		if pos == s.first { // the binlog was written anew meanwhile
			pos = s.third
		} else {
			return nil, down
		}
		return open(ctx, file, pos, beside)
	}
	if got := playWith(t, s.binlogBuilder, Config{ServerUUID: "me"}, Start{Offset: &o}, true, way); got.err == nil || len(got.rows) > 0 {
		t.Errorf("%v, rows %q", got.err, got.rows)
	}
}

// goldenPlay is all that a reader gives, in the form of offsets and what stands there.
type goldenPlay struct {
	events  []goldenEvent
	offsets []offset.Offset
}

// TestI5_GoldenStraight starts from every offset of a row in the recorded binlogs, with its side record, by way of BEGIN and
// straight: both must give the same, down to the side records.
func TestI5_GoldenStraight(t *testing.T) {
	type folder struct {
		name, lines string
	}
	var folders []folder
	for _, f := range goldenFolders {
		folders = append(folders, folder{f.name, "rows.jsonl.gz"})
	}
	for _, name := range []string{
		"transactions", "transactions-file-mode", "compressed", "offsets-transaction-metadata", "ddl", "offsets-xa", "offsets-xa-file-mode", "heartbeat-each-event",
	} {
		folders = append(folders, folder{name, "events.jsonl.gz"})
	}
	for _, name := range []string{
		"replay-from-offset", "replay-from-offset-file-mode", "replay-compressed-file-mode", "replay-ddl", "replay-ddl-file-mode",
		"replay-transaction-metadata", "replay-xa", "replay-xa-file-mode",
	} {
		folders = append(folders, folder{name, "replays.jsonl.gz"})
	}
	arrived := 0
	for _, f := range folders {
		t.Run(f.name, func(t *testing.T) {
			first, _, _ := bytes.Cut(unzip(t, f.name, f.lines), []byte("\n"))
			var head goldenHead
			if err := json.Unmarshal(first, &head); err != nil {
				t.Fatal(err)
			}
			path := goldenBinlog(t, f.name)
			read := func(start Start, way func(*jump)) (p goldenPlay) {
				core, logs := observer.New(zap.InfoLevel)
				r, err := OpenFiles(t.Context(), Config{Captured: including(head.Include), ServerUUID: "me", Filters: "f", Transactions: true, Log: zap.New(core)}, []string{path}, start)
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				way(&r.jump)
				p.events, p.offsets = readEvents(t, r)
				for _, entry := range logs.All() {
					switch {
					case strings.HasPrefix(entry.Message, "gone straight"):
						arrived++
					case strings.Contains(entry.Message, "gone to straight"):
						t.Error(entry.Message)
					}
				}
				return p
			}
			start := Start{}
			if head.Start != "" {
				o := mustOffset(t, head.Start)
				start.Offset = &o
			}
			all := read(start, func(*jump) {})
			step := 1 + len(all.events)/60
			for i, o := range all.offsets {
				if o.Side == nil || o.Side.Open == nil || o.Side.Open.EventPos == 0 || i%step != 0 {
					continue
				}
				from := Start{Offset: &o}
				want := read(from, func(j *jump) { j.open = nil })
				for _, near := range []int64{0, math.MaxInt64} {
					got := read(from, func(j *jump) { j.least, j.near = 0, near })
					if diff := cmp.Diff(want.events, got.events); diff != "" {
						t.Fatalf("from %s, by way of BEGIN and straight (-+)\n%s", o, diff)
					}
					if !slices.EqualFunc(want.offsets, got.offsets, sameOffset) {
						t.Fatalf("from %s: other offsets", o)
					}
				}
			}
		})
	}
	if arrived < 300 {
		t.Errorf("only %d starts went straight to their rows event", arrived)
	}
	t.Logf("%d starts went straight to their rows event", arrived)
}

// TestStraightFilesThatAreReadOnce: a pipe cannot be opened at a position.
func TestStraightFilesThatAreReadOnce(t *testing.T) {
	path := goldenBinlog(t, "basics")
	for _, c := range []struct {
		files []string
		want  bool
	}{{[]string{path}, true}, {[]string{path, filepath.Dir(path)}, false}, {[]string{path + "x"}, false}} {
		if got := (&filesAgain{files: c.files}).regular(); got != c.want {
			t.Errorf("%q: %v", c.files, got)
		}
	}
}

// TestCursorComparesTheHead: a stream that begins in another file, or in one of another format, is not looked at.
func TestCursorComparesTheHead(t *testing.T) {
	b := numberedBinlog()
	pos := b.query("BEGIN")
	f, err := parseFormat(b.events[1][headerSize:])
	if err != nil {
		t.Fatal(err)
	}
	other := f
	other.post = bytes.Clone(f.post)
	other.post[0]++
	for _, c := range []struct {
		file   string
		format *format
		want   string
	}{
		{"mysql-bin.000001", &f, ""},
		{"mysql-bin.000002", &f, "the stream does not begin in mysql-bin.000002"},
		{"mysql-bin.000001", &other, "mysql-bin.000001 has another format"},
	} {
		cursor := cursor{in: b.at("mysql-bin.000001", pos), file: c.file, pos: pos, format: c.format}
		e, err := cursor.next(t.Context())
		switch {
		case c.want != "":
			wantError(t, err, c.want)
		case err != nil || e.start != pos || binary.LittleEndian.Uint32(e.raw) == 0:
			t.Errorf("%v, an event at %d", err, e.start)
		}
	}
}
