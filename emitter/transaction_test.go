package emitter

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// transactional is an emitter with transaction metadata and without schemas, whose clock stands still.
func transactional(t *testing.T, cfg Config) *Emitter {
	t.Helper()
	cfg.Prefix, cfg.Transactions = "p", true
	cfg.Clock = func() time.Time { return time.UnixMilli(1795979007735) }
	em, err := New(cfg)
	must(t, err)
	return em
}

// keyTable is a table of one INT, its key.
func keyTable(name string) *schema.Table {
	return &schema.Table{Database: "inventory", Name: name, Key: []int{0}, Columns: []schema.Column{{Name: "id", Type: 3}}}
}

func keyCells(id int) [][]byte { return [][]byte{{byte(id), 0, 0, 0}} }

func feed(t *testing.T, em *Emitter, b *Batch, ev *binlog.Rows) {
	t.Helper()
	must(t, em.Begin(ev))
	must(t, em.Row(b, ev))
}

// insert appends the record of one row.
func insert(t *testing.T, em *Emitter, b *Batch, table string) {
	t.Helper()
	feed(t, em, b, &binlog.Rows{Op: binlog.Create, Table: keyTable(table), After: keyCells(1), Base: at(4)})
}

// members are the names of an offset's members without the transaction's common part.
func members(o offset.Offset) []string {
	var names []string
	for _, m := range o.Members() {
		name := strings.TrimPrefix(m.Name, tableCountPrefix)
		names = append(names, name)
	}
	return names
}

// TestMembersInJavaOrder has more members than the smallest map of Java takes. The order was seen in Java.
func TestMembersInJavaOrder(t *testing.T) {
	em := transactional(t, Config{})
	gtids, err := offset.ParseGTIDSet("8469a685-ec27-11f1-a4cd-0242ac110007:1-20")
	must(t, err)
	var b Batch
	o := offset.Offset{TsSec: 1, File: "f", Pos: 4, GTIDs: gtids, Row: 1, ServerID: 1, Event: 2}
	must(t, em.Transaction(&b, &binlog.Begin{ID: "x", Offset: o}))
	for _, table := range []string{"orders", "customers", "order_lines", "nopk", "sentinel"} {
		insert(t, em, &b, table)
	}
	want := []string{
		"transaction_id", "ts_sec", "inventory.customers", "gtids", "server_id", "inventory.order_lines", "file", "pos",
		"inventory.orders", "inventory.sentinel", "row", "event", "inventory.nopk",
	}
	if got := members(em.Mark(o)); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// javaMap does what java.util.HashMap does with its table.
type javaMap struct {
	table [][]string
	size  int
}

func (m *javaMap) clear() {
	for i := range m.table {
		m.table[i] = nil
	}
	m.size = 0
}

func (m *javaMap) put(name string) {
	if m.table == nil {
		m.table = make([][]string, 16)
	}
	h := javaHash(name)
	bucket := &m.table[(h^h>>16)&uint32(len(m.table)-1)]
	*bucket = append(*bucket, name)
	if len(*bucket) > 8 && len(m.table) < 64 {
		m.resize()
	}
	if m.size++; m.size > len(m.table)*3/4 {
		m.resize()
	}
}

func (m *javaMap) resize() {
	old := m.table
	m.table = make([][]string, 2*len(old))
	for _, bucket := range old {
		for _, name := range bucket {
			h := javaHash(name)
			i := (h ^ h>>16) & uint32(len(m.table)-1)
			m.table[i] = append(m.table[i], name)
		}
	}
}

func (m *javaMap) names() []string { return slices.Concat(m.table...) }

// TestTableCountsInJavaOrder compares the order of counts with that of a map which is filled anew for each transaction
// and never shrinks.
func TestTableCountsInJavaOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		var m countMap
		var model javaMap
		for range 1 + r.IntN(4) {
			var names []string
			for range r.IntN(120) {
				if name := fmt.Sprintf("db%d.t%d", r.IntN(3), r.IntN(100)); !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
			m.clear()
			for _, name := range names {
				m.add(m.table(name), 1)
				m.add(m.table(name), 1)
			}
			model.clear()
			for _, name := range names {
				model.put(name)
			}
			want := model.names()
			for i, c := range m.order {
				if c.table != want[i] || c.events != 2 {
					t.Fatalf("round %d: number %d of %d is %s with %d events, want %s", round, i, len(names), c.table, c.events, want[i])
				}
			}
		}
	}
	// These have one bucket in every map: the ninth makes it grow.
	var m countMap
	for n := 0; len(m.order) < 12; n++ {
		if name := fmt.Sprintf("t%d", n); (javaHash(name)^javaHash(name)>>16)&63 == 5 {
			m.add(m.table(name), 1)
			if want := map[int]int{9: 32, 10: 64, 11: 64, 12: 64}[len(m.order)]; want != 0 && m.capacity != want {
				t.Errorf("%d buckets for %d names, want %d", m.capacity, len(m.order), want)
			}
		}
	}
	if got := javaHash("pos"); got != 0x1b254 {
		t.Errorf("hash %x", got)
	}
	if got := javaHash("😀"); got != 31*0xd83d+0xde00 {
		t.Errorf("hash %x", got)
	}
}

// TestI3_KeyChangeCountsTwice has a key change and a delete in one transaction: a key change is two events, a tombstone
// none, and the records before the last of a row carry the counts of before the row.
func TestI3_KeyChangeCountsTwice(t *testing.T) {
	em := transactional(t, Config{Tombstones: true})
	var b Batch
	info := binlog.Info{TsMicros: 1795979579089123}
	must(t, em.Transaction(&b, &binlog.Begin{Info: info, ID: "u:7", Offset: at(100)}))
	orders := keyTable("orders")
	feed(t, em, &b, &binlog.Rows{
		Op: binlog.Update, Table: orders, Before: keyCells(1), After: keyCells(2), Base: offset.Offset{File: "f", Pos: 100, Event: 2},
	})
	feed(t, em, &b, &binlog.Rows{
		Op: binlog.Delete, Table: keyTable("lines"), Before: keyCells(3), Base: offset.Offset{File: "f", Pos: 100, Event: 4},
	})
	feed(t, em, &b, &binlog.Rows{
		Op: binlog.Create, Table: orders, After: keyCells(3), Row: 1, Base: offset.Offset{File: "f", Pos: 100, Event: 6},
	})
	must(t, em.Commit(&b, &binlog.Boundary{Commit: true, Info: info, ID: "u:7", Before: offset.Offset{File: "f", Pos: 100, Event: 7}}))
	var got []string
	for _, r := range b.Records {
		block := "null"
		var v struct {
			Op, Status  string
			Transaction json.RawMessage
			Count       *int             `json:"event_count"`
			Collections *json.RawMessage `json:"data_collections"`
			TsMs        int64            `json:"ts_ms"`
		}
		if r.Value != nil {
			must(t, json.Unmarshal(r.Value, &v))
			block = string(v.Transaction)
			if v.Status != "" {
				block = string(r.Value)
			}
		}
		counts := ""
		for _, m := range r.Offset.Extra {
			counts += " " + strings.TrimPrefix(strings.TrimPrefix(m.Name, tableCountPrefix), "inventory.") + "=" + m.Value
		}
		got = append(got, fmt.Sprintf("%s %s %s %s event %d row %d%s", r.Topic, r.Key, v.Op, block, r.Offset.Event, r.Offset.Row, counts))
	}
	want := []string{
		`p.transaction {"id":"u:7"}  {"status":"BEGIN","id":"u:7","event_count":null,"data_collections":null,"ts_ms":1795979579089} event 0 row 0 transaction_id="u:7"`,
		`p.inventory.orders {"id":1} d {"id":"u:7","total_order":1,"data_collection_order":1} event 2 row 0 transaction_id="u:7"`,
		`p.inventory.orders {"id":1}  null event 2 row 0 transaction_id="u:7"`,
		`p.inventory.orders {"id":2} c {"id":"u:7","total_order":2,"data_collection_order":2} event 2 row 1 transaction_id="u:7" orders=2`,
		`p.inventory.lines {"id":3} d {"id":"u:7","total_order":3,"data_collection_order":1} event 4 row 0 transaction_id="u:7" orders=2`,
		`p.inventory.lines {"id":3}  null event 4 row 1 transaction_id="u:7" lines=1 orders=2`,
		`p.inventory.orders {"id":3} c {"id":"u:7","total_order":4,"data_collection_order":3} event 6 row 2 transaction_id="u:7" lines=1 orders=3`,
		`p.transaction {"id":"u:7"}  {"status":"END","id":"u:7","event_count":4,"data_collections":[{"data_collection":"inventory.lines","event_count":1},{"data_collection":"inventory.orders","event_count":3}],"ts_ms":1795979579089} event 7 row 0 transaction_id="u:7" lines=1 orders=3`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	after := offset.Offset{File: "f", Pos: 900}
	if got := em.Mark(after); len(got.Extra) != 0 {
		t.Errorf("after the transaction an offset has %v", got.Extra)
	}
}

// TestI8_LeftOutRowsAreNotCounted has a transaction of nothing but left out operations: it has a beginning and an end, and
// its boundary is inside it.
func TestI8_LeftOutRowsAreNotCounted(t *testing.T) {
	em := transactional(t, Config{Skip: map[string]bool{"c": true}})
	var b Batch
	must(t, em.Transaction(&b, &binlog.Begin{ID: "u:7", Offset: at(100)}))
	insert(t, em, &b, "orders")
	if len(b.Records) != 1 {
		t.Fatalf("%d records", len(b.Records))
	}
	if got := em.Mark(at(100)).Extra; len(got) != 1 || got[0] != (offset.Member{Name: "transaction_id", Value: `"u:7"`}) {
		t.Errorf("members %v", got)
	}
	must(t, em.Commit(&b, &binlog.Boundary{ID: "u:7"}))
	if len(b.Records) != 1 {
		t.Error("a boundary that is no commit has ended the transaction")
	}
	must(t, em.Commit(&b, &binlog.Boundary{Commit: true, ID: "u:7", Before: at(100)}))
	if got := string(b.Records[1].Value); !strings.Contains(got, `"status":"END","id":"u:7","event_count":0,"data_collections":[]`) {
		t.Errorf("got %s", got)
	}
	must(t, em.Commit(&b, &binlog.Boundary{Commit: true}))
	if len(b.Records) != 2 {
		t.Error("a commit without a beginning has given a record")
	}
}

// TestWithoutTransactions gives no records, no block and no members.
func TestWithoutTransactions(t *testing.T) {
	em, err := New(Config{Prefix: "p"})
	must(t, err)
	var b Batch
	em.Resume(offset.Offset{File: "f", Pos: 4, Extra: []offset.Member{{Name: "transaction_id", Value: `"u:7"`}}})
	must(t, em.Transaction(&b, &binlog.Begin{ID: "u:7", Offset: at(100)}))
	insert(t, em, &b, "orders")
	must(t, em.Commit(&b, &binlog.Boundary{Commit: true, ID: "u:7", Before: at(100)}))
	if len(b.Records) != 1 || !strings.Contains(string(b.Records[0].Value), `"transaction":null`) || b.Records[0].Offset.Extra != nil {
		t.Errorf("%d records, the first with the value %s and %v", len(b.Records), b.Records[0].Value, b.Records[0].Offset.Extra)
	}
}

// replayed is an event of the run that TestI5_ReplayCountsOn repeats.
type replayed struct {
	begin  *binlog.Begin
	row    *binlog.Rows
	commit *binlog.Boundary
}

// replayEvents makes the events of a Debezium run out of its records and their offsets.
func replayEvents(t *testing.T) []replayed {
	t.Helper()
	type line struct {
		Record []any
		Offset string
	}
	all := lines[line](t, "replay-transaction-metadata.jsonl.gz")
	tables := map[string]*schema.Table{"orders": keyTable("orders"), "customers": keyTable("customers")}
	var events []replayed
	for i := 0; i < len(all); i++ {
		o := plain(t, all[i].Offset)
		r := all[i].Record
		info := binlog.Info{TsMicros: o.TsSec * 1e6, File: o.File, ServerID: o.ServerID, Thread: -1}
		if r[0] == "transaction" {
			if id := r[2].(string); o.Event == 0 {
				events = append(events, replayed{begin: &binlog.Begin{Info: info, ID: id, Offset: o}})
			} else {
				events = append(events, replayed{commit: &binlog.Boundary{Commit: true, Info: info, ID: id, Before: o}})
			}
			continue
		}
		id := func(i int) int { return int(all[i].Record[2].(float64)) }
		info.Pos = int64(r[3].(float64))
		ev := &binlog.Rows{Info: info, Table: tables[r[0].(string)], Row: int(r[4].(float64)), Base: o}
		ev.Base.Row = 0
		switch r[1] {
		case "c":
			ev.Op, ev.After = binlog.Create, keyCells(id(i))
		case "u": // of a column that the table of this test lacks
			ev.Op, ev.Before, ev.After = binlog.Update, keyCells(id(i)), keyCells(id(i))
		case "d":
			ev.Op, ev.Before = binlog.Delete, keyCells(id(i))
			if i+2 < len(all) && all[i+2].Record[1] == "c" && all[i+2].Record[3] == r[3] && all[i+2].Record[4] == r[4] {
				ev.Op, ev.After = binlog.Update, keyCells(id(i+2))
				i++
			}
			i++
		}
		events = append(events, replayed{row: ev})
	}
	return events
}

// replay feeds the events from a stored offset on, as a reader gives them out, and returns the records and how many of
// them each event gave.
func replay(t *testing.T, events []replayed, stored offset.Offset) (records []Record, each []int) {
	t.Helper()
	em := transactional(t, Config{Tombstones: true})
	em.Resume(stored)
	var b Batch
	for _, e := range events {
		before := len(b.Records)
		switch {
		case e.begin != nil && e.begin.Offset.Pos >= stored.Pos:
			ev := *e.begin
			ev.Resume = ev.Offset.Pos == stored.Pos && (stored.Event > 0 || stored.Row > 0)
			must(t, em.Transaction(&b, &ev))
		case e.row != nil && (e.row.Base.Pos > stored.Pos || e.row.Base.Pos == stored.Pos &&
			(e.row.Base.Event > stored.Event || e.row.Base.Event == stored.Event && int64(e.row.Row) >= stored.Row)):
			feed(t, em, &b, e.row)
		case e.commit != nil && e.commit.Before.Pos >= stored.Pos:
			must(t, em.Commit(&b, e.commit))
		}
		each = append(each, len(b.Records)-before)
	}
	return b.Records, each
}

func asText(r Record) string {
	return fmt.Sprintf("%s %s %s %s", r.Topic, r.Key, r.Value, r.Offset)
}

// TestI5_ReplayCountsOn restarts from the offset of every record of a run with transaction metadata: the rest is the
// same, byte for byte, its counts and offsets included; nothing is lost, and nothing repeated that the offset covers.
// (Debezium loses the create of a key change.) An offset of a transaction's end does not cover that record.
func TestI5_ReplayCountsOn(t *testing.T) {
	events := replayEvents(t)
	all, each := replay(t, events, offset.Offset{})
	if len(all) != 32 {
		t.Fatalf("%d records, want 32", len(all))
	}
	k, partial := 0, 0
	for i, n := range each {
		first := k
		for j := range n {
			covered := k + 1
			switch {
			case events[i].commit != nil:
				covered = k
			case j < n-1:
				covered = first
				partial++
			}
			stored, err := offset.Parse([]byte(all[k].Offset.String()))
			must(t, err)
			rest, _ := replay(t, events, stored)
			if len(rest) != len(all)-covered {
				t.Errorf("from %s: %d records, want %d", stored, len(rest), len(all)-covered)
			} else {
				for l, r := range rest {
					if got, want := asText(r), asText(all[covered+l]); got != want {
						t.Errorf("from %s, record %d:\ngot  %s\nwant %s", stored, l, got, want)
					}
				}
			}
			k++
		}
	}
	if partial < 7 {
		t.Errorf("only %d records were not the last of their row", partial)
	}
}

// TestResumeElsewhere: rows that are sent again are counted again, under a beginning of their own; a transaction in which
// metadata was not written so far begins where the stored offset is.
func TestResumeElsewhere(t *testing.T) {
	stored, err := offset.Parse([]byte(`{"transaction_id":"u:7","ts_sec":5,"file":"f","pos":100,` +
		`"transaction_data_collection_order_inventory.orders":3,"row":1,"event":4}`))
	must(t, err)
	for _, c := range []struct {
		name   string
		begin  binlog.Begin
		stored offset.Offset
		want   string
	}{
		{
			"again from its beginning",
			binlog.Begin{ID: "u:7", Offset: at(900)},
			stored,
			`{"transaction_id":"u:7","file":"mysql-bin.000001","pos":900} total 1`,
		},
		{"its rest", binlog.Begin{ID: "u:7", Offset: at(100), Resume: true}, stored, ` total 4`},
		{
			"another one",
			binlog.Begin{ID: "u:8", Offset: at(900)},
			stored,
			`{"transaction_id":"u:8","file":"mysql-bin.000001","pos":900} total 1`,
		},
		{
			"not counted before",
			binlog.Begin{ID: "u:7", Offset: offset.Offset{TsSec: 5, File: "f", Pos: 100, Event: 4, Row: 1}, Resume: true},
			offset.Offset{TsSec: 5, File: "f", Pos: 100, Event: 4, Row: 1},
			`{"transaction_id":"u:7","ts_sec":5,"file":"f","pos":100,"row":1,"event":4} total 1`,
		},
	} {
		em := transactional(t, Config{})
		em.Resume(c.stored)
		var b Batch
		must(t, em.Transaction(&b, &c.begin))
		got := ""
		for _, r := range b.Records {
			got += r.Offset.String()
		}
		insert(t, em, &b, "orders")
		var v struct {
			Transaction struct {
				Total int `json:"total_order"`
			}
		}
		must(t, json.Unmarshal(b.Records[len(b.Records)-1].Value, &v))
		if got += fmt.Sprintf(" total %d", v.Transaction.Total); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
	em := transactional(t, Config{})
	em.Resume(stored)
	em.Resume(offset.Offset{File: "f", Pos: 4})
	if got := em.Mark(at(4)); got.Extra != nil {
		t.Errorf("what was taken up before is not forgotten: %v", got.Extra)
	}
}

// TestMarkKeepsOtherMembers of a stored offset, and replaces those of an older transaction.
func TestMarkKeepsOtherMembers(t *testing.T) {
	em := transactional(t, Config{})
	var b Batch
	must(t, em.Transaction(&b, &binlog.Begin{ID: `u:"7"`, Offset: at(100)}))
	o := at(100)
	o.Extra = []offset.Member{{Name: "snapshot", Value: `"INITIAL"`}, {Name: "transaction_id", Value: `"u:6"`}, {Name: tableCountPrefix + "a.b", Value: "1"}}
	before := slices.Clone(o.Extra)
	got := em.Mark(o).String()
	if want := `{"transaction_id":"u:\"7\"","file":"mysql-bin.000001","pos":100,"snapshot":"INITIAL"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if !slices.Equal(o.Extra, before) {
		t.Error("the offset given was changed")
	}
}

// TestDigits renders runs of numbers, and jumps.
func TestDigits(t *testing.T) {
	var d digits
	for _, n := range []int64{1, 2, 9, 10, 256, 257, 258, 999, 1000, 3, 1 << 62, 1<<62 + 255, 1<<62 + 256} {
		if got := d.of(n); got != fmt.Sprint(n) {
			t.Errorf("got %s, want %d", got, n)
		}
	}
}

// TestRowAllocatesNothingInTransactions: what offsets need is had for many rows at once.
func TestRowAllocatesNothingInTransactions(t *testing.T) {
	ev, body := benchEvent(t)
	em := transactional(t, Config{Value: Converter{Schemas: true}})
	var b Batch
	must(t, em.Transaction(&b, &binlog.Begin{ID: "8469a685-ec27-11f1-a4cd-0242ac110007:43", Offset: at(100)}))
	const events = 20
	if n := testing.AllocsPerRun(10, func() {
		for range events {
			ev.Reset(body)
			b.Reset()
			encodeEvent(t, em, &b, ev)
		}
	}); n/(events*benchRows) > 0.03 {
		t.Errorf("%v allocations for %d rows", n, events*benchRows)
	}
	if b.Size() < len(b.mem)+benchRows*64 {
		t.Errorf("the offsets' members do not count: %d bytes, %d of them text", b.Size(), len(b.mem))
	}
}

// TestManyTables has a transaction over 3,000 tables: the order stays right, and a batch is soon full.
func TestManyTables(t *testing.T) {
	em := transactional(t, Config{})
	var b Batch
	must(t, em.Transaction(&b, &binlog.Begin{ID: "u:7", Offset: at(100)}))
	var model javaMap
	for i := range 3000 {
		name := fmt.Sprintf("t%d", i)
		model.put("inventory." + name)
		if b.Size() > batchBytes {
			b.Reset()
		}
		insert(t, em, &b, name)
	}
	want := model.names()
	last := b.Records[len(b.Records)-1].Offset
	if n := len(last.Extra); n != 3001 {
		t.Fatalf("%d members", n)
	}
	for i, m := range last.Extra[1:] {
		if name := tableCountPrefix + want[i]; m.Name != name || m.Value != "1" {
			t.Fatalf("member %d is %s=%s, want %s", i, m.Name, m.Value, name)
		}
	}
}

// BenchmarkTransaction is a row in a transaction of its own, and in a large one.
func BenchmarkTransaction(b *testing.B) {
	for name, rows := range map[string]int{"one row": 1, "many": 1000} {
		b.Run(name, func(b *testing.B) {
			em, err := New(Config{Prefix: "p", Transactions: true})
			if err != nil {
				b.Fatal(err)
			}
			ev, body := benchEvent(b)
			begin := binlog.Begin{ID: "8469a685-ec27-11f1-a4cd-0242ac110007:43", Offset: at(100)}
			end := binlog.Boundary{Commit: true, Before: at(100)}
			var batch Batch
			b.ReportAllocs()
			for n := 0; n < b.N; n++ {
				if n%rows == 0 {
					if err := em.Transaction(&batch, &begin); err != nil {
						b.Fatal(err)
					}
				}
				if !ev.Next() {
					batch.Reset()
					ev.Reset(body)
					ev.Next()
				}
				if err := em.Begin(ev); err != nil {
					b.Fatal(err)
				}
				if err := em.Row(&batch, ev); err != nil {
					b.Fatal(err)
				}
				if n%rows == rows-1 {
					if err := em.Commit(&batch, &end); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// TestRefusedRowsAreNotCounted: a row that cannot be written, and is left out (event.processing.failure.handling.mode), is none
// of the transaction's events.
func TestRefusedRowsAreNotCounted(t *testing.T) {
	em := transactional(t, Config{})
	var b Batch
	must(t, em.Transaction(&b, &binlog.Begin{ID: "x", Offset: at(4)}))
	refused := func(table string) {
		t.Helper()
		wide := keyTable(table)
		wide.Columns = append(wide.Columns, schema.Column{Name: "v", Type: 3})
		// The key changes: a delete and a create.
		ev := &binlog.Rows{Op: binlog.Update, Table: wide, Before: append(keyCells(1), keyCells(1)...), After: append(keyCells(2), []byte{1, 2}), Base: at(4)}
		must(t, em.Begin(ev))
		if err := em.Row(&b, ev); err == nil {
			t.Fatal("the row was written")
		}
	}
	refused("orders")
	insert(t, em, &b, "customers")
	refused("customers")
	insert(t, em, &b, "customers")
	refused("orders")
	must(t, em.Commit(&b, &binlog.Boundary{Commit: true, ID: "x"}))
	if n := len(b.Records); n != 4 {
		t.Fatalf("%d records", n)
	}
	last := b.Records[2]
	var value struct {
		Transaction struct {
			Total int64 `json:"total_order"`
			Table int64 `json:"data_collection_order"`
		}
	}
	must(t, json.Unmarshal(last.Value, &value))
	if value.Transaction.Total != 2 || value.Transaction.Table != 2 || !slices.Contains(members(last.Offset), "inventory.customers") || slices.Contains(members(last.Offset), "inventory.orders") {
		t.Errorf("%s at %s", last.Value, last.Offset)
	}
	if end := string(b.Records[3].Value); !strings.Contains(end, `"event_count":2,"data_collections":[{"data_collection":"inventory.customers","event_count":2}]`) {
		t.Errorf("end %s", end)
	}
}
