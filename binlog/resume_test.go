package binlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tidemark-cdc/tidemark/binlog/server"
	"github.com/tidemark-cdc/tidemark/offset"
)

// shifted is a numbered binlog in which every position is another one, as on another server.
func shifted() *binlogBuilder {
	b := newBinlog("mysql-bin.000001")
	b.previous()
	b.add(evIgnorable, flagIgnorable, make([]byte, 100))
	b.numbered = 1
	return b
}

// sevenRows is a transaction of seven rows of captured tables, and three of others in between. A server can cut its rows
// into events as it likes.
func sevenRows(b *binlogBuilder, cut bool) {
	b.transaction(func() {
		b.insert("other", 1, 2)
		if cut {
			b.tableMap(9, "t")
			b.rows(evWrite, 9, false, 1, 2)
			b.rows(evWrite, 9, false, 3)
			b.rows(evWrite, 9, true, 4)
		} else {
			b.insert("t", 1, 2, 3, 4)
		}
		b.insert("other", 3)
		b.insert("u", 5)
		b.insert("t", 6, 7)
	})
}

// TestI5_FoundByGTIDOnAnotherServer: there the open transaction is found by its GTID and its rows are counted: those of
// captured tables, or all of them when the table filters are others now.
func TestI5_FoundByGTIDOnAnotherServer(t *testing.T) {
	one, two := numberedBinlog(), shifted()
	for _, b := range []*binlogBuilder{one, two} {
		b.transaction(func() { b.insert("t", 0) })
		sevenRows(b, b == two)
		b.transaction(func() { b.insert("t", 8) })
	}
	all := playFrom(t, one, Config{ServerUUID: "one", Filters: "f"}, Start{}, true)
	for i, o := range all.offsets {
		if o.Side.Open.Filters != "f" || o.Side.Server != "one" || o.Side.Open.Thread != 42 || o.Side.Open.CommitMicros != 1700000001234567 {
			t.Fatalf("side %+v of %s", *o.Side.Open, o)
		}
		for _, filters := range []string{"f", "changed"} {
			got := playFrom(t, two, Config{ServerUUID: "two", Filters: filters}, Start{Offset: &o}, true)
			wantRows(t, got, all.rows[i+1:]...)
			if t.Failed() || len(got.warnings) > 0 {
				t.Fatalf("filters %q, from %s: warnings %q", filters, o, got.warnings)
			}
		}
		if i == 0 || i == len(all.offsets)-1 {
			continue
		}
		got := playFrom(t, two, Config{ServerUUID: "two", Filters: "f", Filtered: true}, Start{Offset: &o}, true)
		wantRows(t, got, all.rows[1:]...)
		if w := strings.Join(got.warnings, "\n"); !strings.Contains(w, "transaction "+testUUID+":2, which begins at mysql-bin.000001:") || !strings.Contains(w, "is sent again from its beginning: this server leaves rows out") {
			t.Errorf("warnings %q", w)
		}
		got = playFrom(t, two, Config{ServerUUID: "two", Filters: "f", Filtered: true, Once: true}, Start{Offset: &o}, true)
		if len(got.rows) > 0 {
			t.Errorf("rows %q", got.rows)
		}
		wantError(t, got.err, "would have to be sent again from its beginning: this server leaves rows out")
	}
}

// TestI5_RowsThatCannotBeCountedElsewhere: where one event's rows cannot be counted, what follows would be sent again.
func TestI5_RowsThatCannotBeCountedElsewhere(t *testing.T) {
	one, two := numberedBinlog(), shifted()
	for _, b := range []*binlogBuilder{one, two} {
		b.transaction(func() {
			b.insert("t", 1, 2)
			b.tableMap(9, "other")
			b.rows(evWrite, 9, true, 3)
			if b == two {
				last := len(b.events) - 1
				b.events[last][len(b.events[last])-6] = 0 // the bitmap of columns that are there
			}
			b.insert("t", 4, 5)
		})
	}
	all := playFrom(t, one, Config{ServerUUID: "one", Filters: "f"}, Start{}, true)
	from := Start{Offset: &all.offsets[2]}
	got := playFrom(t, two, Config{ServerUUID: "two", Filters: "f", Once: true}, from, false)
	wantRows(t, got, all.rows[3:]...)
	got = playFrom(t, two, Config{ServerUUID: "two", Filters: "changed"}, from, false)
	wantRows(t, got, all.rows[2:]...)
	if w := strings.Join(got.warnings, "\n"); !strings.Contains(w, "is sent again: rows of db.other") {
		t.Errorf("warnings %q", w)
	}
	got = playFrom(t, two, Config{ServerUUID: "two", Filters: "changed", Once: true}, from, false)
	if len(got.rows) > 0 {
		t.Errorf("rows %q", got.rows)
	}
	wantError(t, got.err, "would have to be sent again from its beginning: rows of db.other")
}

// TestI5_FiltersChangedOnTheSameServer: events are counted there, whatever is captured, so a table that is captured from
// now on has the rows behind the offset only.
func TestI5_FiltersChangedOnTheSameServer(t *testing.T) {
	b := numberedBinlog()
	sevenRows(b, false)
	all := playFrom(t, b, Config{ServerUUID: "me", Filters: "f"}, Start{}, true)
	got := playFrom(t, b, Config{ServerUUID: "me", Filters: "all", Captured: func(string, string) bool { return true }}, Start{Offset: &all.offsets[3]}, true)
	wantRows(t, got, "other 3", "u 5", "t 6", "t 7")
}

// TestI5_Recount: all rows of the open transaction come again to be counted, and it is said which of them the offset
// covers.
func TestI5_Recount(t *testing.T) {
	b := numberedBinlog()
	sevenRows(b, true)
	all := playFrom(t, b, Config{}, Start{}, true)
	for i, o := range all.offsets {
		o.Side = nil
		r, err := newReader(Config{Captured: func(_, table string) bool { return table != "other" }, Recount: true}, b.clone())
		if err != nil {
			t.Fatal(err)
		}
		if err := r.startFiles(t.Context(), Start{Offset: &o}); err != nil {
			t.Fatal(err)
		}
		var covered, rest []string
		for {
			ev, err := r.Read(t.Context())
			if err != nil {
				break
			}
			if rows, ok := ev.(*Rows); ok {
				for rows.Next() {
					text := fmt.Sprintf("%s %d", rows.Table.Name, fixedInt(rows.After[0]))
					if rows.Covered() {
						covered = append(covered, text)
					} else {
						rest = append(rest, text)
					}
				}
				if rows.Err() != nil {
					t.Fatal(rows.Err())
				}
			}
		}
		if diff := cmp.Diff(all.rows[:i+1], covered); diff != "" {
			t.Errorf("covered by %s (-want +got)\n%s", o, diff)
		}
		if diff := cmp.Diff(all.rows[i+1:], rest); diff != "" && len(rest)+len(all.rows[i+1:]) > 0 {
			t.Errorf("behind %s (-want +got)\n%s", o, diff)
		}
	}
}

// TestI5_SideCounts: the side of an offset has the rows before its event, over all tables and over captured ones, and where
// the open statement began.
func TestI5_SideCounts(t *testing.T) {
	b := numberedBinlog()
	b.group()
	begin := b.query("BEGIN")
	b.insert("other", 1, 2)
	first := b.tableMap(9, "t")
	b.rows(evWrite, 9, false, 1, 2)
	b.rows(evWrite, 9, true, 3)
	query := b.add(evRowsQuery, 0, append([]byte{6}, "insert"...))
	b.tableMap(9, "u")
	b.rows(evWrite, 9, true, 4)
	b.xid()
	got := playFrom(t, b, Config{}, Start{}, true)
	var counts []string
	for _, o := range got.offsets {
		s := o.Side.Open
		counts = append(counts, fmt.Sprintf("pos %d event %d row %d: %d rows, %d captured, statement %d is event %d", o.Pos, o.Event, o.Row, s.Rows, s.Captured, s.StatementPos, s.StatementEvent))
	}
	wantLines(t, counts, []string{
		fmt.Sprintf("pos %d event 4 row 1: 2 rows, 0 captured, statement %d is event 3", begin, first),
		fmt.Sprintf("pos %d event 4 row 2: 2 rows, 0 captured, statement %d is event 3", begin, first),
		fmt.Sprintf("pos %d event 5 row 1: 4 rows, 2 captured, statement %d is event 3", begin, first),
		fmt.Sprintf("pos %d event 8 row 1: 5 rows, 3 captured, statement %d is event 6", begin, query),
	})
	// A restart counts what it passes over.
	again := playFrom(t, b, Config{}, Start{Offset: &got.offsets[2]}, true)
	if diff := cmp.Diff(got.offsets[3].Side, again.offsets[0].Side); diff != "" {
		t.Error(diff)
	}
}

// TestI5_OtherTransactionsComeFirst: on a server that has applied transactions in another order, the open one is waited
// for; nothing is left out of the others.
func TestI5_OtherTransactionsComeFirst(t *testing.T) {
	one, two := numberedBinlog(), shifted()
	sevenRows(one, false)
	o := playFrom(t, one, Config{ServerUUID: "one"}, Start{}, true).offsets[4]
	two.numbered = 2
	two.transaction(func() { two.insert("t", 20) })
	two.numbered = 1
	sevenRows(two, true)
	got := playFrom(t, two, Config{ServerUUID: "two"}, Start{Offset: &o}, true)
	wantRows(t, got, "t 20", "t 6", "t 7")
	if len(got.warnings) != 1 || !strings.Contains(got.warnings[0], "lies in transaction "+testUUID+":1, and other transactions come before it") {
		t.Errorf("warnings %q", got.warnings)
	}
	if len(got.marks) == 0 || got.marks[0].GTIDs.String() != testUUID+":2" {
		t.Errorf("boundaries %v", got.marks)
	}
}

// TestI5_FewerRowsThanCounted: a transaction that has fewer rows than the offset counts is not the same one.
func TestI5_FewerRowsThanCounted(t *testing.T) {
	one, two := numberedBinlog(), shifted()
	sevenRows(one, false)
	o := playFrom(t, one, Config{ServerUUID: "one"}, Start{}, true).offsets[6]
	two.transaction(func() { two.insert("t", 1, 2) })
	got := playFrom(t, two, Config{ServerUUID: "two"}, Start{Offset: &o}, true)
	wantError(t, got.err, "5 rows more of the transaction that begins at mysql-bin.000001:", "replication or binlog filters")
}

// TestI5_ThreadAndTimeProveATransaction: without GTIDs the transaction at the stored position must have the thread and the
// commit time of the stored one.
func TestI5_ThreadAndTimeProveATransaction(t *testing.T) {
	b := anonymousBinlog()
	sevenRows(b, false)
	all := playFrom(t, b, Config{ServerUUID: "me"}, Start{}, true)
	o := all.offsets[2]
	wantRows(t, playFrom(t, b, Config{ServerUUID: "me"}, Start{Offset: &o}, true), all.rows[3:]...)
	for i, raw := range b.events {
		if raw[4] == evQuery && strings.HasSuffix(string(raw), "BEGIN") {
			b.events[i] = append([]byte(nil), raw...)
			binary.LittleEndian.PutUint32(b.events[i][headerSize:], 43)
		}
	}
	wantError(t, playFrom(t, b, Config{ServerUUID: "me"}, Start{Offset: &o}, true).err, "(thread 43,", "is not the one of the stored offset (thread 42,")
	wantError(t, playFrom(t, b, Config{ServerUUID: "you"}, Start{Offset: &o}, true).err, "says that a transaction begins at mysql-bin.000001:")
}

// TestI5_GTIDGivenTwice: a server that has lost the end of its binlog gives the GTID of the open transaction to another one.
// Nothing of that is skipped: the commit time tells, and on the same server it is an error.
func TestI5_GTIDGivenTwice(t *testing.T) {
	one, two := numberedBinlog(), shifted()
	for _, b := range []*binlogBuilder{one, two} {
		sevenRows(b, b == two)
		b.xa("x1", false, func() { b.insert("t", 8, 9) })
		b.decide("COMMIT", "x1")
	}
	all := playFrom(t, one, Config{ServerUUID: "one", Filters: "f"}, Start{}, true)
	was := func(o offset.Offset) *offset.Offset {
		side, open := *o.Side, *o.Side.Open
		open.CommitMicros--
		side.Open = &open
		o.Side = &side
		return &o
	}
	wantError(t, playFrom(t, one, Config{ServerUUID: "one", Filters: "f"}, Start{Offset: was(all.offsets[2])}, true).err,
		"1700000001234567 µs) is not the one of the stored offset (thread 42, 1700000001234566 µs)")
	for i, from := range map[int]int{2: 0, 7: 7} {
		b := two
		if from > 0 { // what was prepared is read again by its position
			b = one
		}
		got := playFrom(t, b, Config{ServerUUID: "two", Filters: "f"}, Start{Offset: was(all.offsets[i])}, false)
		wantRows(t, got, all.rows[from:]...)
		if w := strings.Join(got.warnings, "\n"); !strings.Contains(w, "is sent again from its beginning: it was committed at 1700000001234567 µs here") {
			t.Errorf("warnings %q", w)
		}
		got = playFrom(t, b, Config{ServerUUID: "two", Filters: "f", Once: true}, Start{Offset: was(all.offsets[i])}, false)
		if len(got.rows) > 0 {
			t.Errorf("rows %q", got.rows)
		}
		wantError(t, got.err, "would have to be sent again from its beginning: it was committed at 1700000001234567 µs here")
	}
}

// TestI5_TableMadeInTheOpenTransaction: of CREATE TABLE … SELECT a restart between its rows gives out only the rest of them,
// on another server too.
func TestI5_TableMadeInTheOpenTransaction(t *testing.T) {
	build := func(b *binlogBuilder) *binlogBuilder {
		b.transaction(func() {
			b.query("CREATE TABLE t (id INT NOT NULL) START TRANSACTION")
			b.insert("t", 1)
			b.insert("t", 2)
		})
		return b
	}
	all := playFrom(t, build(numberedBinlog()), Config{ServerUUID: "one", Filters: "f"}, Start{}, true)
	wantRows(t, all, "t 1", "t 2")
	for server, b := range map[string]*binlogBuilder{"one": numberedBinlog(), "two": shifted()} {
		lines, _, err := readTables(t, build(b), Config{ServerUUID: server, Filters: "f"}, Start{Offset: &all.offsets[0]})
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(lines, "\n"); strings.Contains(text, "CREATE") || !strings.HasSuffix(text, "t id") {
			t.Errorf("server %s: %q", server, lines)
		}
	}
}

// mariaTransaction writes a transaction as MariaDB does, of one statement for each id; with ANNOTATE_ROWS only for those who
// ask for it.
func (b *binlogBuilder) mariaTransaction(annotated bool, ids ...uint32) {
	body := append(binary.LittleEndian.AppendUint64(nil, uint64(b.numbered)), make([]byte, 4+1+6)...)
	b.numbered++
	b.add(evMariaGTID, 0, body)
	for _, id := range ids {
		if annotated {
			b.add(evAnnotateRows, 0, []byte("insert"))
		}
		b.insert("t", id)
	}
	b.xid()
}

// TestI5_MariaDBWithAndWithoutStatements: a MariaDB sends the texts of statements only to those who ask, so the numbers of
// events in a stored offset mean others when include.query was changed since. Its rows are counted then.
func TestI5_MariaDBWithAndWithoutStatements(t *testing.T) {
	build := func(annotated bool) *binlogBuilder {
		b := newBinlog("maria-bin.000001")
		b.add(evMariaGTIDList, 0, make([]byte, 4))
		b.numbered = 1
		b.mariaTransaction(annotated, 1, 2, 3, 4, 5, 6, 7)
		b.mariaTransaction(annotated, 8)
		return b
	}
	cfg := Config{ServerUUID: "me", Filters: "f"}
	for _, before := range []bool{false, true} {
		cfg.IncludeQuery = before
		all := playFrom(t, build(before), cfg, Start{}, true)
		cfg.IncludeQuery = !before
		for i, o := range all.offsets[:7] {
			wantRows(t, playFrom(t, build(!before), cfg, Start{Offset: &o}, true), all.rows[i+1:]...)
		}
	}
}

// TestSameFileNameOtherServer: an offset of another server is refused without GTIDs.
func TestSameFileNameOtherServer(t *testing.T) {
	o := offset.Offset{File: "mysql-bin.000003", Pos: 500, Side: &offset.Side{Server: "one"}}
	err := sameServer("db:3306", &server.Info{UUID: "two", GTIDMode: "OFF"}, o)
	if !errors.Is(err, server.ErrOtherServer) {
		t.Fatal(err)
	}
	wantError(t, err, "mysql-bin.000003:500 is from the server with server_uuid one; MySQL at db:3306 is two", "Check database.hostname")
	withGTIDs := o
	withGTIDs.GTIDs = offset.EmptyGTIDSet()
	err = sameServer("db:3306", &server.Info{UUID: "two", GTIDMode: "ON_PERMISSIVE"}, withGTIDs)
	wantError(t, err, "it does not use the GTIDs that the offset has (gtid_mode is ON_PERMISSIVE)", "set gtid_mode=ON there")
	for _, ok := range []error{
		sameServer("", &server.Info{UUID: "one", GTIDMode: "OFF"}, o),
		sameServer("", &server.Info{UUID: "two", GTIDMode: "ON"}, withGTIDs),
		sameServer("", &server.Info{UUID: "two", GTIDMode: "OFF"}, offset.Offset{File: "x", Pos: 4}),
	} {
		if ok != nil {
			t.Error(ok)
		}
	}
}

// TestUnprovenServerIsSaid: an offset of Debezium's does not say which server it is from. By GTIDs that does not matter, by position it is
// all there is.
func TestUnprovenServerIsSaid(t *testing.T) {
	plain, gtids := &server.Info{UUID: "two", GTIDMode: "OFF"}, &server.Info{UUID: "two", GTIDMode: "ON"}
	debezium := offset.Offset{File: "mysql-bin.000003", Pos: 500}
	withGTIDs := debezium
	withGTIDs.GTIDs = offset.EmptyGTIDSet()
	ours := debezium
	ours.Side = &offset.Side{Server: "two"}
	oursWithGTIDs := withGTIDs
	oursWithGTIDs.Side = ours.Side
	for name, c := range map[string]struct {
		info       *server.Info
		o          offset.Offset
		want, mode int
	}{
		"by position": {plain, debezium, 1, 0}, "by position, with GTIDs that the server does not use": {plain, withGTIDs, 1, 1},
		"by position, where the server has GTIDs": {gtids, debezium, 1, 0}, "by GTIDs": {gtids, withGTIDs, 0, 0}, "our own": {plain, ours, 0, 0},
		"our own, with GTIDs that the server does not use": {&server.Info{UUID: "two", GTIDMode: "ON_PERMISSIVE"}, oursWithGTIDs, 0, 1},
	} {
		core, logs := observer.New(zap.WarnLevel)
		sayUnproven(zap.New(core), c.info, c.o)
		if got := logs.FilterMessageSnippet("does not say which server it is from").Len(); got != c.want {
			t.Errorf("%s: said %d times", name, got)
		}
		if got := logs.FilterMessageSnippet("gtid_mode is not ON").Len(); got != c.mode {
			t.Errorf("%s: the mode was said %d times", name, got)
		}
	}
	sayUnproven(nil, plain, debezium)
}

const otherUUID = "9d1c0a5e-71ca-11e1-9e33-c80aa9429562"

// TestGTIDSources: what a stored set has of sources that do not count is not asked for, if the server does not know it, and
// what the server has purged of them is not missed; their rows are left out, unless they are wanted.
func TestGTIDSources(t *testing.T) {
	set := func(text string) offset.GTIDSet {
		s, err := offset.ParseGTIDSet(text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	only := func(source string) bool { return source == testUUID }
	info := &server.Info{GTIDMode: "ON", Executed: testUUID + ":1-9," + otherUUID + ":1-7", Purged: testUUID + ":1-2," + otherUUID + ":1-3"}
	for _, c := range []struct{ stored, want string }{
		{testUUID + ":1-5", testUUID + ":1-5," + otherUUID + ":1-3"},
		{testUUID + ":1-5," + otherUUID + ":1-5", testUUID + ":1-5," + otherUUID + ":1-5"},
		{testUUID + ":1-5," + otherUUID + ":1-50", testUUID + ":1-5," + otherUUID + ":1-7"},
		{testUUID + ":1-50", testUUID + ":1-50," + otherUUID + ":1-3"}, // what counts is refused later
	} {
		got, err := requested(set(c.stored), info, only)
		if err != nil || !got.Equal(set(c.want)) {
			t.Errorf("%s: %s, want %s, %v", c.stored, got, c.want, err)
		}
		if all, _ := requested(set(c.stored), info, nil); !all.Equal(set(c.stored)) {
			t.Errorf("all sources: %s", all)
		}
	}
	b := numberedBinlog()
	b.transaction(func() { b.insert("t", 1) })
	foreign := b.end
	b.transaction(func() { b.insert("t", 2) })
	other, err := offset.ParseGTID(otherUUID + ":1")
	if err != nil {
		t.Fatal(err)
	}
	for i := range b.events {
		if b.pos[i] == foreign {
			copy(b.events[i][headerSize+1:], other.Source[:])
		}
	}
	b.transaction(func() { b.insert("t", 3) })
	got := playFrom(t, b, Config{GTIDSources: only}, Start{}, true)
	wantRows(t, got, "t 1", "t 3")
	if last := got.marks[len(got.marks)-1].GTIDs.String(); last != testUUID+":1:3,"+otherUUID+":2" {
		t.Errorf("gtids %s", last)
	}
	wantRows(t, playFrom(t, b, Config{GTIDSources: only, SourceRows: true}, Start{}, true), "t 1", "t 2", "t 3")
}

// TestPositionsBeyond4GiBByGTID: by GTID the server leaves out what was read, so the stored position is the only thing that
// says how many times 4 GiB came before.
func TestPositionsBeyond4GiBByGTID(t *testing.T) {
	b := numberedBinlog()
	b.transaction(func() { b.insert("t", 1) })
	b.end += 3 << 32
	sevenRows(b, false)
	b.transaction(func() { b.insert("t", 8) })
	all := playFrom(t, b, Config{}, Start{}, true)
	wantRows(t, all, "t 1", "t 1", "t 2", "t 3", "t 4", "u 5", "t 6", "t 7", "t 8")
	for i, o := range all.offsets[1:] {
		if o.Pos < 3<<32 {
			t.Fatal(o)
		}
		groups := 1
		if o.GTIDs.Equal(all.marks[1].GTIDs) {
			groups = 2
		}
		r, err := newReader(Config{ServerUUID: "me", Captured: func(_, table string) bool { return table != "other" }}, b.liveFrom(groups))
		if err != nil {
			t.Fatal(err)
		}
		if err := r.startLive(t.Context(), livePlan{dump: server.DumpFrom{ByGTID: true}, start: o, gtids: true, inTx: true}); err != nil {
			t.Fatal(err)
		}
		r.begin()
		rest, offsets := readEvents(t, r)
		if len(rest) != len(all.rows)-2-i {
			t.Fatalf("%d rows behind %s", len(rest), o)
		}
		for k := range offsets {
			if !offsets[k].Equal(all.offsets[i+2+k]) {
				t.Fatalf("%s, want %s", offsets[k], all.offsets[i+2+k])
			}
		}
	}
}

// liveFrom is the binlog without the first groups, as a server sends it by GTIDs: positions stand in the headers only.
func (b *binlogBuilder) liveFrom(groups int) *binlogBuilder {
	c := &binlogBuilder{live: true}
	seen := 0
	for _, raw := range b.events {
		if raw[4] == evGTID {
			seen++
		}
		if seen == 0 || seen > groups {
			c.events, c.pos = append(c.events, raw), append(c.pos, -1)
		}
	}
	return c
}
