package offset

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func prepared(n int) Prepared {
	return Prepared{XID: "X'" + string(rune('a'+n)) + "',X'',1", Server: uuidA, File: "mysql-bin.000001", Pos: int64(100 * n), GTID: uuidA + ":" + string(rune('0'+n))}
}

// gtid is the GTID of a text that has one.
func gtid(text string) GTID {
	id, err := ParseGTID(text)
	if err != nil {
		panic(err)
	}
	return id
}

// inside is an offset in the middle of a transaction.
func inside(pos int) Offset {
	o := at(pos)
	o.Row, o.Event = 2, 3
	o.Side = &Side{
		Server: uuidA,
		Open: &Open{
			GTID: gtid(uuidA + ":24"), CommitMicros: 1730000000123456, Thread: 11, Rows: 1000, Captured: 900, Filters: "f00d",
			StatementPos: int64(pos) + 10, StatementEvent: 2,
		},
		XA: []Prepared{prepared(1), prepared(2)},
	}
	return o
}

// store writes o over what is stored, as a store does.
type place struct{ offset, side []byte }

func (p *place) write(t testing.TB, o Offset, offsetToo bool) {
	t.Helper()
	stored, err := Parse(p.offset)
	if err != nil {
		t.Fatal(err)
	}
	if side := o.AppendSide(nil, stored, p.side); side != nil {
		p.side = side
	}
	if offsetToo {
		p.offset = o.Append(nil)
	}
}

func (p *place) load(t testing.TB) (o Offset, ours bool) {
	t.Helper()
	stored, err := Parse(p.offset)
	if err != nil {
		t.Fatal(err)
	}
	with, ours, err := stored.ReadSide(p.side)
	if err != nil {
		t.Fatal(err)
	}
	return with, ours
}

func TestSideRecordBytes(t *testing.T) {
	var p place
	open := inside(479)
	open.Side.Open.EventPos = 569
	open.Side.FileTime = 1700000000
	p.write(t, open, true)
	const first = `{"offset":"{\"file\":\"mysql-bin.000001\",\"pos\":479,\"row\":2,\"event\":3}"`
	const rest = `,"transaction_rows":1000,"transaction_captured_rows":900,"table_filters":"f00d",` +
		`"transaction_gtid":"` + uuidA + `:24","transaction_commit_us":1730000000123456,"transaction_thread":11,"statement_pos":489,"statement_event":2,"event_pos":569,` +
		`"xa":"[{\"xid\":\"X'b',X'',1\",\"server_uuid\":\"` + uuidA + `\",\"file\":\"mysql-bin.000001\",\"pos\":100,\"gtid\":\"` + uuidA + `:1\"`
	want := first + `,"server_uuid":"` + uuidA + `","file_time":1700000000` + rest + `,\"new\":true},{\"xid\":\"X'c',X'',1\",\"server_uuid\":\"` + uuidA +
		`\",\"file\":\"mysql-bin.000001\",\"pos\":200,\"gtid\":\"` + uuidA + `:2\",\"new\":true}]"}`
	if got := string(p.side); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	// The second record has the copy of the first offset, and the list says which of the two each entry is of.
	next := at(909)
	next.Side = &Side{Server: uuidB, XA: []Prepared{prepared(2)}}
	p.write(t, next, true)
	want = `{"offset":"{\"file\":\"mysql-bin.000001\",\"pos\":909}","offset_before":"{\"file\":\"mysql-bin.000001\",\"pos\":479,\"row\":2,\"event\":3}",` +
		`"server_uuid":"` + uuidB + `","server_uuid_before":"` + uuidA + `","xa":"[{\"xid\":\"X'b',X'',1\",\"server_uuid\":\"` + uuidA +
		`\",\"file\":\"mysql-bin.000001\",\"pos\":100,\"gtid\":\"` + uuidA + `:1\",\"ended\":true},{\"xid\":\"X'c',X'',1\",\"server_uuid\":\"` + uuidA +
		`\",\"file\":\"mysql-bin.000001\",\"pos\":200,\"gtid\":\"` + uuidA + `:2\"}]"}`
	if got := string(p.side); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	// Connect takes a flat map only.
	var flat map[string]any
	if err := json.Unmarshal(p.side, &flat); err != nil {
		t.Fatal(err)
	}
	for name, value := range flat {
		switch value.(type) {
		case string, float64, bool, nil:
		default:
			t.Errorf("%s is %v", name, value)
		}
	}
	if got, want := (Key{"inventory", "dbserver1"}).Side().String(), `["tidemark:inventory",{"server":"dbserver1"}]`; got != want {
		t.Errorf("key %s, want %s", got, want)
	}
}

// fill sets every field of v to something, each another.
func fill(v reflect.Value, n *int64) {
	*n++
	if id, ok := v.Addr().Interface().(*GTID); ok { // which is text there
		*id = GTID{Source: [16]byte{byte(*n)}, Tag: "tag", Number: *n << 33}
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("é\"" + string(rune('a'+*n)))
	case reflect.Int64:
		v.SetInt(*n << 33)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	default:
		panic("a kind of field that the test does not know: " + v.Kind().String())
	}
}

// Whatever is in a Side comes back.
func TestI5_SideRecordKeepsEverything(t *testing.T) {
	o := at(4)
	o.Done = 77
	var n int64
	o.Side = new(Side)
	fill(reflect.ValueOf(o.Side).Elem(), &n)
	if n < 18 {
		t.Fatalf("only %d fields", n)
	}
	var p place
	p.write(t, o, true)
	got, ours := p.load(t)
	if diff := cmp.Diff(o.Side, got.Side); diff != "" || !ours || !got.Equal(o) || got.Done != o.Done {
		t.Errorf("ours %v, %d done, %s", ours, got.Done, diff)
	}
	// What is zero as well.
	o = at(5)
	o.Side = &Side{Open: &Open{Thread: -1}}
	p = place{}
	p.write(t, o, true)
	if got, ours = p.load(t); !ours || !reflect.DeepEqual(got.Side, o.Side) || got.Done != 0 {
		t.Errorf("%+v of %s", got.Side, p.side)
	}
	o.Side = &Side{Open: &Open{}}
	p.write(t, o, true)
	if got, _ = p.load(t); !reflect.DeepEqual(got.Side, o.Side) {
		t.Errorf("%+v of %s", got.Side, p.side)
	}
}

// A crash between the two writes leaves the offset before: of the record then only the server and the XA transactions
// count that were written with that one.
func TestI4_SideRecordAfterACrashBetweenTheTwo(t *testing.T) {
	var p place
	before := inside(479)
	p.write(t, before, true)
	after := at(909)
	after.Side = &Side{Server: uuidB, XA: []Prepared{prepared(2), prepared(3)}} // 1 was decided, 3 prepared
	p.write(t, after, false)
	for range 2 {
		o, ours := p.load(t)
		want := &Side{Server: uuidA, XA: []Prepared{prepared(1), prepared(2)}}
		if diff := cmp.Diff(want, o.Side); diff != "" || !ours || o.Pos != 479 || o.Done != 0 {
			t.Fatalf("ours %v, offset %s: %s", ours, o, diff)
		}
		p.write(t, after, false) // again, and again cut off
	}
	p.write(t, after, true)
	o, ours := p.load(t)
	if diff := cmp.Diff(after.Side, o.Side); diff != "" || !ours {
		t.Fatalf("ours %v: %s", ours, diff)
	}
}

// An XA transaction leaves the list only with the save after the one whose offset covers its end.
func TestI4_XATransactionsLeaveWithTheNextSave(t *testing.T) {
	var p place
	listed := func(o Offset, list ...Prepared) Offset {
		o.Side = &Side{Server: uuidA, XA: list}
		return o
	}
	p.write(t, listed(at(1), prepared(1)), true)
	p.write(t, listed(at(2)), true) // covers the end of 1
	if !strings.Contains(string(p.side), prepared(1).XID) {
		t.Errorf("left at once: %s", p.side)
	}
	if o, _ := p.load(t); len(o.Side.XA) != 0 {
		t.Errorf("still undecided: %v", o.Side.XA)
	}
	same := slices.Clone(p.side)
	p.write(t, listed(at(2)), true) // nothing moved
	if !bytes.Equal(p.side, same) {
		t.Errorf("changed to %s", p.side)
	}
	p.write(t, listed(at(3)), true)
	if strings.Contains(string(p.side), prepared(1).XID) {
		t.Errorf("has not left: %s", p.side)
	}
}

// The rows of an XA transaction are given out while the offset stands still.
func TestI5_RowsOfAnXATransactionAreCounted(t *testing.T) {
	var p place
	o := at(5)
	o.Side = &Side{Server: uuidA, XA: []Prepared{prepared(1)}}
	p.write(t, o, true)
	for done := range int64(3) {
		o := at(9)
		o.Side = &Side{Server: uuidA, Open: &Open{Thread: -1, XID: prepared(1).XID}, XA: []Prepared{prepared(1)}}
		o.Done = done
		p.write(t, o, true)
		got, ours := p.load(t)
		if !ours || got.Done != done || got.Side.Open.XID != prepared(1).XID {
			t.Fatalf("%d rows: %v, %+v of %s", done, ours, got.Side, p.side)
		}
	}
	if !strings.Contains(string(p.side), `"offset_before":"{\"file\":\"mysql-bin.000001\",\"pos\":5}"`) {
		t.Errorf("the offset before is lost: %s", p.side)
	}
}

// Rows that could not be counted cost the counts, not what else is known of the open transaction.
func TestI5_UncountedRowsKeepTheTransaction(t *testing.T) {
	for _, open := range []Open{
		{Rows: -1, Captured: 5, Filters: "f00d", GTID: gtid(uuidA + ":24"), Thread: 11},
		{Rows: -1, Captured: 5, Thread: -1, XID: prepared(1).XID},
		{Rows: -1, Captured: -1, Thread: 0},
		{Rows: 7, Captured: -1, Thread: 11},
		{Rows: -1, Captured: -1, Thread: -1},
	} {
		var p place
		o := at(9)
		o.Done, o.Side = 2, &Side{Server: uuidA, Open: &open}
		p.write(t, o, true)
		got, ours := p.load(t)
		if diff := cmp.Diff(o.Side, got.Side); !ours || got.Done != 2 || diff != "" {
			t.Errorf("%s: ours %v, done %d\n%s", p.side, ours, got.Done, diff)
		}
	}
}

func TestSideRecordOfSomebodyElsesOffset(t *testing.T) {
	var p place
	p.write(t, inside(479), true)
	theirs := at(5000)
	p.offset = theirs.Append(nil)
	o, ours := p.load(t)
	if ours || o.Side != nil || o.Done != 0 || o.Pos != 5000 {
		t.Fatalf("ours %v, %+v", ours, o)
	}
	message := ForeignSide(orders, o, p.side)
	for _, want := range []string{orders.String(), `"pos":5000`, "there were 2", prepared(1).XID, "mysql-bin.000001:200"} {
		if !strings.Contains(message, want) {
			t.Errorf("no %s in: %s", want, message)
		}
	}
	// Going on from theirs: there is a copy of it, and what was noted before it does not come back.
	next := at(6000)
	next.Side = &Side{Server: uuidB}
	p.write(t, next, false)
	if o, ours := p.load(t); !ours || o.Side != nil {
		t.Errorf("ours %v, %+v", ours, o.Side)
	}
	p.write(t, next, true)
	if o, ours := p.load(t); !ours || o.Side.Server != uuidB || o.Side.XA != nil {
		t.Errorf("ours %v, %+v", ours, o.Side)
	}
	// One that is stored again by somebody who writes the members in another order is the same.
	p.offset = []byte(`{"pos": 6000, "file": "mysql-bin.000001"}`)
	if _, ours := p.load(t); !ours {
		t.Error("not ours in another order")
	}
}

func TestReadSide(t *testing.T) {
	const copied = `"offset":"{\"file\":\"mysql-bin.000001\",\"pos\":4}"`
	for name, tt := range map[string]struct {
		record, wantErr string
		ours            bool
		want            *Side
	}{
		"none":             {record: "", ours: true},
		"deleted":          {record: "null", ours: true},
		"empty":            {record: " {} ", ours: true},
		"of a later one":   {record: `{` + copied + `,"server_uuid":"u","more":[{"a":1}],"chunks":"[]","transaction_thread":5}`, ours: true, want: &Side{Server: "u"}},
		"negative file":    {record: `{` + copied + `,"file_time":-1}`, wantErr: "a number in it is negative"},
		"no server":        {record: `{` + copied + `}`, ours: true, want: &Side{}},
		"another":          {record: `{"offset":"{\"file\":\"mysql-bin.000001\",\"pos\":5}","server_uuid":"u"}`},
		"before, empty":    {record: `{"offset":"{\"file\":\"a.1\",\"pos\":5}","offset_before":"{\"file\":\"mysql-bin.000001\",\"pos\":4}","server_uuid":"u"}`, ours: true},
		"not JSON":         {record: "offsets!", wantErr: "not JSON"},
		"cut off":          {record: `{` + copied, wantErr: "ends too early"},
		"no copy":          {record: `{"server_uuid":"u"}`, wantErr: `its "offset": it is empty`},
		"copy of nonsense": {record: `{"offset":"{\"x\":1}"}`, wantErr: "no offset of a MySQL connector"},
		"bad copy before":  {record: `{` + copied + `,"offset_before":"["}`, wantErr: `its "offset_before"`},
		"a list":           {record: `[` + copied + `]`, wantErr: "it is not JSON"},
		"wrong kind":       {record: `{` + copied + `,"transaction_rows":"5"}`, wantErr: `member "transaction_rows" is a string`},
		"negative":         {record: `{` + copied + `,"transaction_rows":-5}`, wantErr: "negative"},
		"no GTID":          {record: `{` + copied + `,"transaction_gtid":"u:7"}`, wantErr: `its "transaction_gtid": GTID "u:7"`},
		"negative too":     {record: `{` + copied + `,"event_pos":-5}`, wantErr: "negative"},
		"older": {record: `{` + copied + `,"transaction_rows":5,"statement_pos":40,"statement_event":2}`, ours: true, want: &Side{
			Open: &Open{Thread: -1, Rows: 5, StatementPos: 40, StatementEvent: 2},
		}},
		"bad xa":      {record: `{` + copied + `,"xa":"[5]"}`, wantErr: `its "xa"`},
		"nameless xa": {record: `{` + copied + `,"xa":"[{\"file\":\"a.1\"}]"}`, wantErr: "without xid"},
	} {
		t.Run(name, func(t *testing.T) {
			o, ours, err := at(4).ReadSide([]byte(tt.record))
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) || o.Side != nil {
					t.Fatalf("error %v, want …%s…", err, tt.wantErr)
				}
				return
			}
			if err != nil || ours != tt.ours || !reflect.DeepEqual(o.Side, tt.want) {
				t.Fatalf("ours %v, %+v, %v", ours, o.Side, err)
			}
		})
	}
	if _, _, err := at(4).ReadSide(bytes.Repeat([]byte("x"), maxSideRecord+1)); err == nil || !strings.Contains(err.Error(), "more than any") || len(err.Error()) > 1000 {
		t.Errorf("huge: %v", err)
	}
}

func TestFileStoreKeepsSideRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "connect.offsets")
	var said []string
	opts := &FileOptions{Warn: func(m string) { said = append(said, m) }}
	s := openTestFileWith(t, path, opts)
	other := at(7)
	save(t, s, customers, other) // without a side record
	o := inside(479)
	o.Done = 3
	save(t, s, orders, o)
	check := func(s *FileStore) {
		t.Helper()
		got, err := s.Load(t.Context(), orders)
		if err != nil || !got.Equal(o) || got.Done != 3 || !reflect.DeepEqual(got.Side, o.Side) {
			t.Fatalf("%+v, %v", got, err)
		}
		wantLoad(t, s, customers, other)
	}
	check(s)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := appendJavaMap(nil, []javaEntry{
		{customers.Append(nil), other.Append(nil)},
		{orders.Append(nil), o.Append(nil)},
		{[]byte(`["tidemark:orders",{"server":"shop"}]`), o.AppendSide(nil, Offset{}, nil)},
	})
	if !bytes.Equal(data, want) {
		t.Errorf("got  %q\nwant %q", data, want)
	}
	save(t, s, orders, o) // nothing new: nothing written
	if again, err := os.ReadFile(path); err != nil || !bytes.Equal(again, data) {
		t.Errorf("written without need: %q, %v", again, err)
	}
	next := at(909)
	next.Side = &Side{Server: uuidA}
	save(t, s, orders, next)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	// Somebody else goes on, with a file in which ours stays.
	entries, err := parseJavaMap(data)
	if err != nil {
		t.Fatal(err)
	}
	theirs := at(5000)
	entries[1].value = theirs.Append(nil)
	if err := os.WriteFile(path, appendJavaMap(nil, entries), 0o644); err != nil {
		t.Fatal(err)
	}
	s = openTestFileWith(t, path, opts)
	for range 3 {
		got, err := s.Load(t.Context(), orders)
		if err != nil || got.Side != nil || got.Pos != 5000 {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if len(said) != 1 || !strings.Contains(said[0], path) || !strings.Contains(said[0], orders.String()) {
		t.Errorf("said %q", said)
	}
	save(t, s, orders, o)
	check(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	// A deleted offset is gone, whatever is noted beside it.
	entries[1].value = nil
	if err := os.WriteFile(path, appendJavaMap(nil, entries), 0o644); err != nil {
		t.Fatal(err)
	}
	s = openTestFileWith(t, path, opts)
	if got, err := s.Load(t.Context(), orders); err != nil || !got.IsZero() || got.Side != nil {
		t.Errorf("%+v, %v", got, err)
	}
	save(t, s, orders, o)
	check(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	entries[1].value, entries[2].value = o.Append(nil), []byte("side!")
	if err := os.WriteFile(path, appendJavaMap(nil, entries), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := openTestFile(t, path, nil).Load(t.Context(), orders); err == nil || !strings.Contains(err.Error(), `entry ["tidemark:orders"`) || !strings.Contains(err.Error(), "nothing is started") {
		t.Errorf("%+v, %v", got, err)
	}
	if len(said) != 1 {
		t.Errorf("said %q", said)
	}
}

// The file was written by Tidemark, then loaded by Kafka Connect 4.3.1, which stored another offset for the connector: it
// keeps the side record as it is.
func TestConnectKeepsSideRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "connect.offsets")
	if err := os.WriteFile(path, readTestMap(t, "connect-side-record.dat"), 0o644); err != nil {
		t.Fatal(err)
	}
	said := 0
	s := openTestFileWith(t, path, &FileOptions{Warn: func(string) { said++ }})
	key := Key{"inventory-connector", "dbserver1"}
	o, err := s.Load(t.Context(), key)
	if err != nil || o.Pos != 5000 || o.Side != nil || said != 1 {
		t.Fatalf("%s, %v, said %d times", o, err, said)
	}
	// What Connect's offset replaced.
	ours := inside(900)
	with, known, err := ours.ReadSide(s.exact(key.Side()))
	if diff := cmp.Diff(ours.Side, with.Side); err != nil || !known || diff != "" {
		t.Errorf("%v, %v, %s", known, err, diff)
	}
}

func TestNamesOfSideRecordsAreRefused(t *testing.T) {
	s := openTestFile(t, filepath.Join(t.TempDir(), "connect.offsets"), nil)
	if err := s.Save(t.Context(), orders.Side(), at(1)); err == nil || !strings.Contains(err.Error(), `connector "tidemark:orders"`) {
		t.Error(err)
	}
	if err := orders.Check(); err != nil {
		t.Error(err)
	}
}

func FuzzSideRecord(f *testing.F) {
	o := inside(479)
	first := o.AppendSide(nil, Offset{}, nil)
	f.Add(first)
	next := at(909)
	next.Side = &Side{Server: uuidB, XA: []Prepared{prepared(2), prepared(3)}}
	f.Add(next.AppendSide(nil, o, first))
	f.Add([]byte(`{"offset":"{\"file\":\"a.1\",\"pos\":4}","xa":"[{\"xid\":\"x\",\"file\":\"a.1\",\"new\":true,\"ended\":true}]"}`))
	f.Fuzz(func(t *testing.T, record []byte) {
		r, err := parseSide(record)
		if err != nil || r == nil {
			return
		}
		_ = ForeignSide(orders, r.offset, record)
		written := r.offset.AppendSide(nil, r.before, nil)
		again, ours, err := r.offset.ReadSide(written)
		if err != nil || !ours || !reflect.DeepEqual(again.Side, r.offset.Side) || again.Done != r.offset.Done {
			t.Fatalf("%q: written %q, read %+v, %v, %v", record, written, again.Side, ours, err)
		}
	})
}
