package binlog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

const testUUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"

// binlogBuilder writes events as a server does, without checksums, as a rawStream.
type binlogBuilder struct {
	events [][]byte
	pos    []int64
	end    int64
	live   bool // positions come from the headers

	numbered int64 // the number of the next GTID; 0: groups have none
}

func newBinlog(file string) *binlogBuilder {
	b := &binlogBuilder{end: firstPos}
	b.events, b.pos = [][]byte{artificialRotate(file)}, []int64{-1}
	body := make([]byte, 2+50+4+1+42+1)
	body[0] = 4
	copy(body[2:], "9.7.4")
	body[56] = headerSize
	for i := range 42 {
		body[57+i] = 8
	}
	body[57+evTableMap-1] = 8
	body[57+evWrite-1], body[57+evUpdate-1], body[57+evDelete-1] = 10, 10, 10
	b.add(evFormat, 0, body)
	return b
}

// add appends an event and returns its position.
func (b *binlogBuilder) add(typ byte, flags uint16, body []byte) int64 {
	raw := make([]byte, headerSize, headerSize+len(body))
	size := int64(headerSize + len(body))
	binary.LittleEndian.PutUint32(raw, 1700000000)
	raw[4] = typ
	binary.LittleEndian.PutUint32(raw[5:], 7)
	binary.LittleEndian.PutUint32(raw[9:], uint32(size))
	binary.LittleEndian.PutUint32(raw[13:], uint32(b.end+size))
	binary.LittleEndian.PutUint16(raw[17:], flags)
	start := b.end
	b.events, b.pos = append(b.events, append(raw, body...)), append(b.pos, start)
	b.end += size
	return start
}

func (b *binlogBuilder) previous(intervals ...int64) {
	body := make([]byte, 8)
	if len(intervals) > 0 {
		body[0] = 1
		body = append(body, testSource()...)
		body = binary.LittleEndian.AppendUint64(body, uint64(len(intervals)/2))
		for _, n := range intervals {
			body = binary.LittleEndian.AppendUint64(body, uint64(n))
		}
	}
	b.add(evPreviousGTIDs, 0, body)
}

func testSource() []byte {
	g, err := offset.ParseGTID(testUUID + ":1")
	if err != nil {
		panic(err)
	}
	return g.Source[:]
}

func (b *binlogBuilder) gtid(n int64) int64 {
	body := append([]byte{0}, testSource()...)
	body = binary.LittleEndian.AppendUint64(body, uint64(n))
	body = append(body, 2)
	body = append(body, make([]byte, 16)...)
	body = append(body, binary.LittleEndian.AppendUint64(nil, 1700000001234567)[:7]...)
	return b.add(evGTID, 0, body)
}

func (b *binlogBuilder) query(text string) int64 { return b.queryIn("db", text) }

func (b *binlogBuilder) queryIn(database, text string) int64 {
	body := binary.LittleEndian.AppendUint32(nil, 42) // thread
	body = append(body, 0, 0, 0, 0, byte(len(database)), 0, 0, 0, 0)
	body = append(append(body, database...), 0)
	return b.add(evQuery, 0, append(body, text...))
}

func (b *binlogBuilder) tableMap(id uint64, table string) int64 {
	body := binary.LittleEndian.AppendUint64(nil, id)[:6]
	body = append(body, 1, 0, 2)
	body = append(body, "db\x00"...)
	body = append(body, byte(len(table)))
	body = append(append(body, table...), 0)
	body = append(body, 1, typeLong, 0, 0) // one INT, no metadata, NOT NULL
	body = append(body, metaColumnName, 3, 2, 'i', 'd', metaSimpleKey, 1, 0)
	return b.add(evTableMap, 0, body)
}

func (b *binlogBuilder) rows(typ byte, id uint64, end bool, ids ...uint32) int64 {
	body := binary.LittleEndian.AppendUint64(nil, id)[:6]
	if end {
		body = append(body, 1, 0)
	} else {
		body = append(body, 0, 0)
	}
	body = append(body, 2, 0, 1, 0xff)
	if typ == evUpdate {
		body = append(body, 0xff)
	}
	for _, n := range ids {
		body = binary.LittleEndian.AppendUint32(append(body, 0), n)
	}
	return b.add(typ, 0, body)
}

func (b *binlogBuilder) xid() int64 { return b.add(evXID, 0, make([]byte, 8)) }

// xaPrepare ends an XA transaction whose xid is X'…',X”,1.
func (b *binlogBuilder) xaPrepare(gtrid string, onePhase bool) int64 {
	body := []byte{0}
	if onePhase {
		body[0] = 1
	}
	body = binary.LittleEndian.AppendUint32(body, 1)
	body = binary.LittleEndian.AppendUint32(body, uint32(len(gtrid)))
	body = binary.LittleEndian.AppendUint32(body, 0)
	return b.add(evXAPrepare, 0, append(body, gtrid...))
}

// insert is a whole statement.
func (b *binlogBuilder) insert(table string, ids ...uint32) {
	b.tableMap(9, table)
	b.rows(evWrite, 9, true, ids...)
}

func (b *binlogBuilder) next(context.Context) ([]byte, int64, error) {
	if len(b.events) == 0 {
		return nil, 0, io.EOF
	}
	raw, pos := b.events[0], b.pos[0]
	b.events, b.pos = b.events[1:], b.pos[1:]
	if b.live {
		pos = -1
	}
	return raw, pos, nil
}

func (b *binlogBuilder) close() error { return nil }

// play reads a built binlog, from a stored offset if one is given, and returns a line for every row and boundary.
func play(t testing.TB, b *binlogBuilder, from *offset.Offset) (lines, warnings []string, err error) {
	t.Helper()
	core, logs := observer.New(zap.WarnLevel)
	r, err := newReader(Config{Captured: func(database, table string) bool { return database == "db" && table != "other" }, Log: zap.New(core)}, b)
	if err != nil {
		t.Fatal(err)
	}
	start := Start{}
	if from != nil {
		start.Offset = from
	}
	if err := r.startFiles(context.Background(), start); err != nil {
		return nil, nil, err
	}
	for {
		var ev Event
		if ev, err = r.Read(context.Background()); err != nil {
			break
		}
		switch ev := ev.(type) {
		case *Rows:
			for ev.Next() {
				image := ev.After
				if image == nil {
					image = ev.Before
				}
				lines = append(lines, fmt.Sprintf("%s %d %s", ev.Table.Name, fixedInt(image[0]), short(ev.OffsetAfter())))
			}
			if err := ev.Err(); err != nil {
				return lines, warnings, err
			}
		case *Boundary:
			lines = append(lines, "boundary "+short(ev.Offset))
		case *Truncate:
			lines = append(lines, "truncate "+ev.Table+" "+short(ev.Offset))
		case *SchemaChange:
			lines = append(lines, "ddl "+short(ev.Offset))
		}
	}
	for _, entry := range logs.All() {
		warnings = append(warnings, entry.Message)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return lines, warnings, err
}

// short is an offset for reading: position, event, row and GTIDs without the uuid.
func short(o offset.Offset) string {
	s := fmt.Sprintf("%s:%d", strings.TrimPrefix(o.File, "mysql-bin."), o.Pos)
	if o.Event != 0 || o.Row != 0 {
		s += fmt.Sprintf(" event %d row %d", o.Event, o.Row)
	}
	if !o.GTIDs.IsAbsent() {
		s += " [" + strings.ReplaceAll(o.GTIDs.String(), testUUID+":", "") + "]"
	}
	return s
}

func stored(t testing.TB, file string, pos, event, row int64, gtids string) *offset.Offset {
	t.Helper()
	o := &offset.Offset{File: file, Pos: pos, Event: event, Row: row}
	if gtids != "-" {
		o.GTIDs = offset.EmptyGTIDSet()
		if gtids != "" {
			set, err := offset.ParseGTIDSet(testUUID + ":" + gtids)
			if err != nil {
				t.Fatal(err)
			}
			o.GTIDs = set
		}
	}
	return o
}

func wantLines(t testing.TB, got, want []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func wantError(t testing.TB, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v, want %q in it", err, part)
		}
	}
}

// twoTransactions has a transaction of five rows in two statements, and one of two rows.
func twoTransactions(gtids bool) (b *binlogBuilder, first, second int64) {
	b = newBinlog("mysql-bin.000001")
	b.previous()
	if gtids {
		b.gtid(1)
	} else {
		b.add(evAnonymous, 0, make([]byte, 25))
	}
	first = b.query("BEGIN")
	b.insert("t", 1, 2, 3)
	b.insert("t", 4, 5)
	b.xid()
	if gtids {
		b.gtid(2)
	} else {
		b.add(evAnonymous, 0, make([]byte, 25))
	}
	second = b.query("BEGIN")
	b.insert("t", 6, 7)
	b.xid()
	return b, first, second
}

func ids(lines []string) string {
	var got []string
	for _, l := range lines {
		if f := strings.Fields(l); f[0] == "t" {
			got = append(got, f[1])
		}
	}
	return strings.Join(got, " ")
}

// TestI5_OnlyTheStoredTransactionIsSkipped starts with counters that fit and counters that do not.
func TestI5_OnlyTheStoredTransactionIsSkipped(t *testing.T) {
	_, first, second := twoTransactions(true)
	for _, c := range []struct {
		name             string
		gtids            bool
		pos, event, row  int64
		set              string
		want             string
		warning, failure string
	}{
		{"by GTID", true, first, 2, 2, "", "3 4 5 6 7", "", ""},
		{"by GTID, all rows of an event", true, first, 2, 3, "", "4 5 6 7", "", ""},
		{"by GTID, second statement", true, first, 4, 1, "", "5 6 7", "", ""},
		{"by GTID, at the commit", true, first, 5, 0, "", "6 7", "", ""},
		{"by GTID, second transaction", true, second, 2, 1, "1", "7", "", ""},
		{"counters of the first with the position of the second", true, second, 4, 1, "", "1 2 3 4 5 6 7", "sent again from its beginning", ""},
		{"counters of the second, which is done", true, second, 2, 1, "1-2", "", "", ""},
		{"more events than there are", true, second, 8, 1, "1", "", "", "has 8 events of the transaction that begins at mysql-bin.000001"},
		{"rows of an event that has none", true, first, 1, 1, "", "", "", "but that is no rows event"},
		{"more rows than there are", true, first, 2, 4, "", "", "", "has 4 rows of this event, it has only 3"},
		{"rows without events", true, first, 0, 2, "", "1 2 3 4 5 6 7", "none is skipped", ""},
		{"by position", false, first - 7, 2, 2, "-", "3 4 5 6 7", "without GTIDs only the position says", ""},
		{"by position, no BEGIN there", false, second - 7 - 44, 2, 2, "-", "", "", "which does not"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, first2, second2 := twoTransactions(c.gtids)
			if !c.gtids { // without GTIDs the events before have another length
				switch {
				case c.pos < first:
					c.pos = first2
				default:
					c.pos = second2 - 44
				}
			}
			lines, warnings, err := play(t, b, stored(t, "mysql-bin.000001", c.pos, c.event, c.row, c.set))
			if c.failure != "" {
				wantError(t, err, c.failure)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := ids(lines); got != c.want {
				t.Errorf("rows %s, want %s", got, c.want)
			}
			if !strings.Contains(strings.Join(warnings, "\n"), c.warning) {
				t.Errorf("warnings %q, want %q", warnings, c.warning)
			}
		})
	}
}

// TestI4_GTIDsAreWholeTransactions: a GTID is in the set only behind its commit, whatever is in between; I8: what is not
// captured moves the offset, too.
// A GTID event with nothing behind it is what a crash can leave at the end of a file: that transaction was not committed.
func TestI4_GTIDWithoutTransaction(t *testing.T) {
	b := newBinlog("mysql-bin.000001")
	b.previous(1, 5) // 1-4
	b.gtid(5)
	b.add(evRotate, 0, append([]byte{4, 0, 0, 0, 0, 0, 0, 0}, "mysql-bin.000002"...))
	lines, _, err := play(t, b, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, lines, []string{"boundary 000002:4 [1-4]"})
}

func TestI4_GTIDsAreWholeTransactions(t *testing.T) {
	b := newBinlog("mysql-bin.000001")
	b.previous(1, 5) // 1-4
	b.gtid(5)
	begin := b.query("BEGIN")
	b.insert("t", 1)
	b.insert("other", 1)
	b.add(evHeartbeat, 0, []byte("mysql-bin.000001"))
	b.end -= int64(headerSize + len("mysql-bin.000001")) // it is not in the file
	b.insert("t", 2)
	b.xid()
	end5 := b.end
	b.gtid(6)
	b.query("BEGIN")
	b.insert("other", 2)
	b.query("COMMIT")
	end6 := b.end
	b.gtid(7)
	b.query("CREATE TABLE x (id INT)")
	end7 := b.end
	b.gtid(8)
	b.query("XA START X'61',X'',1")
	b.insert("other", 3)
	b.query("XA END X'61',X'',1")
	b.xaPrepare("a", false)
	end8 := b.end
	b.gtid(9)
	b.query("XA ROLLBACK X'61',X'',1")
	end9 := b.end
	b.gtid(10)
	b.query("TRUNCATE TABLE `t`")
	end10 := b.end
	lines, _, err := play(t, b, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, lines, []string{
		fmt.Sprintf("t 1 000001:%d event 2 row 1 [1-4]", begin),
		fmt.Sprintf("t 2 000001:%d event 6 row 1 [1-4]", begin),
		fmt.Sprintf("boundary 000001:%d [1-5]", end5),
		fmt.Sprintf("boundary 000001:%d [1-6]", end6),
		fmt.Sprintf("ddl 000001:%d [1-7]", end7),
		fmt.Sprintf("boundary 000001:%d [1-8]", end8),
		fmt.Sprintf("boundary 000001:%d [1-9]", end9),
		fmt.Sprintf("truncate t 000001:%d [1-10]", end10),
	})
}

// TestRowsWithoutBegin: an offset cannot name an event without a BEGIN, so the whole statement is sent again.
func TestRowsWithoutBegin(t *testing.T) {
	b := newBinlog("mysql-bin.000001")
	b.previous()
	first := b.tableMap(1, "t")
	b.rows(evWrite, 1, false, 1, 2)
	b.rows(evWrite, 1, true, 3)
	end := b.end
	lines, _, err := play(t, b, nil)
	if err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("000001:%d", first)
	wantLines(t, lines, []string{"t 1 " + at, "t 2 " + at, "t 3 " + at, fmt.Sprintf("boundary 000001:%d", end)})
}

func TestRotation(t *testing.T) {
	b := newBinlog("mysql-bin.999999")
	b.previous()
	rotate := func(file string) {
		b.add(evRotate, 0, append(binary.LittleEndian.AppendUint64(nil, firstPos), file...))
	}
	rotate("mysql-bin.1000000")
	b.end = firstPos
	b.events, b.pos = append(b.events, artificialRotate("mysql-bin.1000000")), append(b.pos, -1)
	begin := b.query("BEGIN")
	b.insert("t", 1)
	b.xid()
	lines, _, err := play(t, b, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, lines, []string{
		"boundary 1000000:4", fmt.Sprintf("t 1 1000000:%d event 2 row 1", begin), fmt.Sprintf("boundary 1000000:%d", b.end),
	})
}

// TestPositionsBeyond4GiB: headers have 32 bits of a position.
func TestPositionsBeyond4GiB(t *testing.T) {
	b := newBinlog("mysql-bin.000001")
	b.previous()
	b.live = true
	b.end = 1<<32 - 100
	raw := artificialRotate("mysql-bin.000002")
	binary.LittleEndian.PutUint64(raw[headerSize:], uint64(b.end))
	b.events, b.pos = append(b.events, raw), append(b.pos, -1)
	begin := b.query("BEGIN")
	b.insert("t", 1)
	b.xid()
	second := b.query("BEGIN")
	b.insert("t", 2)
	b.xid()
	if begin >= 1<<32 || second <= 1<<32 {
		t.Fatal(begin, second)
	}
	end := b.end
	body := []byte("mysql-bin.000002")
	b.end += 5 << 10 // left out by the server
	b.add(evHeartbeat, 0, body)
	b.events[len(b.events)-1][13] = byte(end + 5<<10) // a heartbeat's position is that of the last event
	binary.LittleEndian.PutUint32(b.events[len(b.events)-1][13:], uint32(end+5<<10))
	lines, _, err := play(t, b, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, lines, []string{
		fmt.Sprintf("boundary 000002:%d", int64(1<<32-100)),
		fmt.Sprintf("t 1 000002:%d event 2 row 1", begin), fmt.Sprintf("boundary 000002:%d", second),
		fmt.Sprintf("t 2 000002:%d event 2 row 1", second), fmt.Sprintf("boundary 000002:%d", end),
		fmt.Sprintf("boundary 000002:%d", end+5<<10),
	})
}

// TestI6_Grammar: what cannot be decoded, or must not come where it comes, is an error.
func TestI6_Grammar(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(b *binlogBuilder)
		want  string // "" for no error
	}{
		{"rows of a table id without TABLE_MAP", func(b *binlogBuilder) { b.query("BEGIN"); b.rows(evWrite, 5, true, 1) }, "table id 5, which no TABLE_MAP"},
		{"a dummy rows event", func(b *binlogBuilder) { b.query("BEGIN"); b.rows(evWrite, noTable, true); b.xid() }, ""},
		{"a table id of the statement before", func(b *binlogBuilder) { b.query("BEGIN"); b.insert("t", 1); b.rows(evWrite, 9, true, 1) }, "table id 9"},
		{"BEGIN in a transaction", func(b *binlogBuilder) { b.query("BEGIN"); b.query("BEGIN") }, "has no end"},
		{"GTID in a transaction", func(b *binlogBuilder) { b.query("BEGIN"); b.gtid(1) }, "has no end"},
		{"another file in a transaction", func(b *binlogBuilder) {
			b.query("BEGIN")
			b.events, b.pos = append(b.events, artificialRotate("mysql-bin.000002")), append(b.pos, -1)
		}, "has no end"},
		{"a commit without BEGIN", func(b *binlogBuilder) { b.xid() }, "commit (XID) without BEGIN"},
		{"INCIDENT", func(b *binlogBuilder) { b.add(evIncident, 0, []byte{1, 0, 0}) }, "INCIDENT"},
		{"an unknown event", func(b *binlogBuilder) { b.add(99, 0, nil) }, "event type 99 is not known"},
		{"an unknown event that may be ignored", func(b *binlogBuilder) { b.add(99, flagIgnorable, nil) }, ""},
		{"a text change of a captured table", func(b *binlogBuilder) { b.query("BEGIN"); b.query("insert into t values (1)") }, "table db.t: a change of rows is logged as SQL text"},
		{"a text change of another table", func(b *binlogBuilder) { b.query("BEGIN"); b.query("insert into other values (1)"); b.xid() }, ""},
		{"CREATE TABLE … SELECT as text", func(b *binlogBuilder) { b.query("create table t as select 1 as id") }, "table db.t: a change of rows is logged as SQL text"},
		{"CREATE TABLE … SELECT in row format", func(b *binlogBuilder) {
			b.query("BEGIN")
			b.query("CREATE TABLE `t` (\n  `id` int NOT NULL\n) START TRANSACTION")
			b.insert("t", 1)
			b.xid()
		}, ""},
		{"ROLLBACK of nothing sent", func(b *binlogBuilder) { b.query("BEGIN"); b.insert("other", 1); b.query("ROLLBACK") }, ""},
		{"ROLLBACK of rows sent", func(b *binlogBuilder) { b.query("BEGIN"); b.insert("t", 1); b.query("ROLLBACK") }, "is rolled back in the binlog"},
		{"ROLLBACK TO behind rows sent", func(b *binlogBuilder) { b.query("BEGIN"); b.insert("t", 1); b.query("ROLLBACK TO `s`") }, "is rolled back in the binlog"},
		{"XA PREPARE of another transaction", func(b *binlogBuilder) { b.query("XA START X'61',X'',1"); b.insert("t", 1); b.xaPrepare("b", false) }, "XA PREPARE of X'62',X'',1 in the XA transaction X'61',X'',1"},
		{"XA PREPARE alone", func(b *binlogBuilder) { b.xaPrepare("b", false) }, "XA PREPARE of X'62',X'',1 without XA START"},
		{"XA without its end", func(b *binlogBuilder) { b.query("XA START X'61',X'',1"); b.gtid(3) }, "has no end"},
		{"a row image that ends early", func(b *binlogBuilder) {
			b.query("BEGIN")
			b.tableMap(9, "t")
			b.rows(evWrite, 9, true, 1)
			last := len(b.events) - 1
			b.events[last] = b.events[last][:len(b.events[last])-1]
		}, "table db.t, row 0, column id: the row image ends too early"},
		{"a damaged TABLE_MAP", func(b *binlogBuilder) {
			b.query("BEGIN")
			b.tableMap(9, "t")
			last := len(b.events) - 1
			b.events[last] = b.events[last][:len(b.events[last])-5]
			b.rows(evWrite, 9, true, 1)
		}, "TABLE_MAP event is damaged"},
		{"a nested payload", func(b *binlogBuilder) { b.query("BEGIN"); b.add(evPayload, 0, []byte{0}) }, "inside the transaction"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBinlog("mysql-bin.000001")
			b.previous()
			c.build(b)
			_, _, err := play(t, b, nil)
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			wantError(t, err, "mysql-bin.00000", c.want)
		})
	}
}

// TestI6_FunctionAsText: what a stored function changes is not said, so it stops the stream only where a captured table of
// its database, or of the session's, is known.
func TestI6_FunctionAsText(t *testing.T) {
	call := func(session, function string) func(b *binlogBuilder) {
		return func(b *binlogBuilder) {
			b.query("BEGIN")
			b.queryIn(session, "SELECT "+function+"(5)")
			b.queryIn(session, "SELECT "+function+"(6)")
			b.xid()
		}
	}
	seen := func(table string, then func(b *binlogBuilder)) func(b *binlogBuilder) {
		return func(b *binlogBuilder) { b.query("BEGIN"); b.insert(table, 1); b.xid(); then(b) }
	}
	history := func(tables ...string) *schema.Catalog {
		c := schema.NewCatalog(schema.CatalogOptions{})
		for _, table := range tables {
			c.Set("db", table, &schema.Definition{Database: "db", Name: table, Columns: []schema.ColumnDef{{Name: "id"}}})
		}
		return c
	}
	for name, c := range map[string]struct {
		known *schema.Catalog
		build func(b *binlogBuilder)
		err   bool
	}{
		"nothing known":                        {nil, call("db", "`db`.`f`"), false},
		"a captured table seen":                {nil, seen("t", call("x", "`db`.`f`")), true},
		"another table seen":                   {nil, seen("other", call("x", "`db`.`f`")), false},
		"the session's database":               {nil, seen("t", call("db", "`x`.`f`")), true},
		"two other databases":                  {nil, seen("t", call("x", "`y`.`f`")), false},
		"a captured table in the catalog":      {history("t"), call("x", "`db`.`f`"), true},
		"another table in the catalog":         {history("other"), call("x", "`db`.`f`"), false},
		"the catalog, but of another database": {history("t"), call("x", "`y`.`f`"), false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBinlog("mysql-bin.000001")
			b.previous()
			c.build(b)
			core, logs := observer.New(zap.WarnLevel)
			r, err := newReader(Config{
				Captured: func(database, table string) bool { return database == "db" && table != "other" },
				Catalog:  c.known, Log: zap.New(core),
			}, b)
			if err != nil {
				t.Fatal(err)
			}
			for err == nil {
				_, err = r.Read(t.Context())
			}
			if c.err {
				wantError(t, err, "mysql-bin.000001:", "stored function ", ".f, which changes rows, is logged as SQL text", "perhaps captured ones of database db", "(how: README, Starting anew)")
				return
			}
			if err != io.EOF || logs.FilterMessageSnippet("stored functions").Len() != 1 {
				t.Fatalf("%v, warnings %v", err, logs.All())
			}
		})
	}
}

// TestI2_IdleTimeAfterARestart: ts_sec stays that of the stored offset, whenever the file was begun.
func TestI2_IdleTimeAfterARestart(t *testing.T) {
	b := newBinlog("mysql-bin.000001")
	b.previous()
	from := stored(t, "mysql-bin.000001", b.end, 0, 0, "-")
	from.TsSec = 1800000000
	b.add(evHeartbeat, 0, []byte("mysql-bin.000001"))
	binary.LittleEndian.PutUint32(b.events[len(b.events)-1], 0)
	r, err := newReader(Config{Captured: func(_, _ string) bool { return true }}, b)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.startFiles(t.Context(), Start{Offset: from}); err != nil {
		t.Fatal(err)
	}
	ev, err := r.Read(t.Context())
	idle, ok := ev.(*Boundary)
	if !ok || !idle.Idle || idle.Offset.TsSec != from.TsSec {
		t.Errorf("%+v, %v", ev, err)
	}
}

// TestI6_TextChangesElsewhereAreSaidOnce: they may reach captured tables by ways that cannot be seen.
func TestI6_TextChangesElsewhereAreSaidOnce(t *testing.T) {
	b := newBinlog("mysql-bin.000001")
	b.previous()
	for range 3 {
		b.query("BEGIN")
		b.query("insert into other values (1)")
		b.xid()
	}
	_, warnings, err := play(t, b, nil)
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "views, triggers and foreign keys") {
		t.Errorf("%q, %v", warnings, err)
	}
}

// TestI3_OffsetsOfARow: before and after.
func TestI3_OffsetsOfARow(t *testing.T) {
	table, body := ordersTable(2)
	r, err := NewRows(Info{}, Create, table, offset.Offset{File: "f", Pos: 5, Event: 2}, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if !r.Next() || r.OffsetBefore().Row != int64(i) || r.OffsetAfter().Row != int64(i+1) || r.OffsetAfter().Event != 2 {
			t.Fatal(i, r.OffsetBefore(), r.OffsetAfter())
		}
	}
	if r.Next() || r.Err() != nil {
		t.Fatal(r.Err())
	}
}

// FuzzAssembler feeds arbitrary events behind a good beginning: errors, no panic, and no more rows than bytes.
func FuzzAssembler(f *testing.F) {
	b, _, _ := twoTransactions(true)
	for _, raw := range b.events[2:] {
		f.Add(raw[4], raw[headerSize:], b.events[7][headerSize:])
	}
	f.Add(evQuery, append(append(make([]byte, 13), 0), "XA COMMIT X'61',X'',1"...), []byte{})
	f.Add(evQuery, append(append(make([]byte, 13), 0), "ALTER TABLE db.t ADD COLUMN x INT"...), []byte{})
	for _, typ := range []byte{evTaggedGTID, evPayload, evHeartbeatV2, evXAPrepare, evExecuteLoad, evPartialUpdate, evWriteV1} {
		f.Add(typ, []byte{0, 1, 2, 3}, []byte{})
	}
	f.Fuzz(func(t *testing.T, typ byte, body, rows []byte) {
		for _, in := range []string{"", "BEGIN", "XA START X'61',X'',1"} {
			b := newBinlog("mysql-bin.000001")
			b.previous()
			b.gtid(1)
			if in != "" {
				b.query(in)
				b.tableMap(9, "t")
			}
			b.add(typ, 0, body)
			b.add(evWrite, 0, rows)
			b.add(evUpdate, 0, rows)
			if in != "" && in != "BEGIN" {
				b.xaPrepare("a", len(rows)%2 == 0)
				b.gtid(2)
				b.query("XA COMMIT X'61',X'',1")
			}
			all := playFrom(t, b, Config{Transactions: true}, Start{}, false)
			if len(all.offsets) > 0 {
				playFrom(t, b, Config{Transactions: true}, Start{Offset: &all.offsets[0]}, false)
			}
		}
	})
}
