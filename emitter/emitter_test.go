package emitter

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// testTable is t(id INT, d DECIMAL(5,2) DEFAULT 1.50, s VARCHAR(20), KEY of the columns given).
func testTable(key ...int) *schema.Table {
	def := "1.50"
	return &schema.Table{
		Database: "db", Name: "t", Key: key,
		Columns: []schema.Column{
			{Name: "id", Type: 3},
			{
				Name: "d", Type: 246, Meta: 5<<8 | 2, Nullable: true,
				Def: &schema.ColumnDef{
					Name: "d", Type: "DECIMAL", Length: 5, Scale: 2, Nullable: true, HasDefault: true, Default: &def,
				},
			},
			{Name: "s", Type: 15, Meta: 80, Collation: 255, Nullable: true},
		},
	}
}

// cells makes an image of testTable; a negative d is NULL, as is an s of "-".
func cells(id int32, hundredths int, s string) [][]byte {
	c := [][]byte{binary.LittleEndian.AppendUint32(nil, uint32(id)), nil, nil}
	if hundredths >= 0 {
		c[1] = []byte{0x80 | byte(hundredths/100>>8), byte(hundredths / 100), byte(hundredths % 100)}
	}
	if s != "-" {
		c[2] = []byte(s)
	}
	return c
}

func emit(t *testing.T, cfg Config, ev *binlog.Rows) []Record {
	t.Helper()
	cfg.Prefix = "p"
	cfg.Clock = func() time.Time { return time.Unix(1795979007, 735048990) }
	em, err := New(cfg)
	must(t, err)
	must(t, em.Begin(ev))
	var b Batch
	must(t, em.Row(&b, ev))
	return b.Records
}

func describe(records []Record) string {
	var lines []string
	for _, r := range records {
		value := "null"
		if r.Value != nil {
			value = regexp.MustCompile(`"source":.*"transaction":null`).ReplaceAllString(string(r.Value), "…")
			value, _, _ = strings.Cut(value, `,"ts_ms"`)
		}
		key := "null"
		if r.Key != nil {
			key = string(r.Key)
		}
		line := fmt.Sprintf("%d %s %s", r.Offset.Row, key, value)
		for _, h := range r.Headers {
			line += fmt.Sprintf(" %s=%s", h.Name, h.Value)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// TestI3_OnlyTheLastRecordMovesTheOffset has every kind of change, with and without tombstones and keys.
func TestI3_OnlyTheLastRecordMovesTheOffset(t *testing.T) {
	a, b := cells(1, 100, "x"), cells(2, 200, "x")
	const ra, rb = `{"id":1,"d":"ZA==","s":"x"}`, `{"id":2,"d":"AMg=","s":"x"}`
	for _, c := range []struct {
		name          string
		op            binlog.Op
		before, after [][]byte
		key           []int
		tombstones    bool
		want          string
	}{
		{"insert", binlog.Create, nil, a, []int{0}, true, `5 {"id":1} {"before":null,"after":` + ra + `,…,"op":"c"`},
		{"update", binlog.Update, a, b, []int{2}, true, `5 {"s":"x"} {"before":` + ra + `,"after":` + rb + `,…,"op":"u"`},
		{"update without key", binlog.Update, a, b, nil, true, `5 null {"before":` + ra + `,"after":` + rb + `,…,"op":"u"`},
		{
			"delete", binlog.Delete, a, nil,
			[]int{0},
			true,
			`4 {"id":1} {"before":` + ra + `,"after":null,…,"op":"d"` + "\n" + `5 {"id":1} null`,
		},
		{"delete without key", binlog.Delete, a, nil, nil, true, `4 null {"before":` + ra + `,"after":null,…,"op":"d"` + "\n" + `5 null null`},
		{"delete without tombstone", binlog.Delete, a, nil, []int{0}, false, `5 {"id":1} {"before":` + ra + `,"after":null,…,"op":"d"`},
		{
			"key change", binlog.Update, a, b,
			[]int{2, 0},
			true,
			`4 {"s":"x","id":1} {"before":` + ra + `,"after":null,…,"op":"d" __debezium.newkey={"s":"x","id":2}` + "\n" +
				`4 {"s":"x","id":1} null __debezium.newkey={"s":"x","id":2}` + "\n" +
				`5 {"s":"x","id":2} {"before":null,"after":` + rb + `,…,"op":"c" __debezium.oldkey={"s":"x","id":1}`,
		},
		{
			"key change without tombstone", binlog.Update, a, b,
			[]int{0},
			false,
			`4 {"id":1} {"before":` + ra + `,"after":null,…,"op":"d" __debezium.newkey={"id":2}` + "\n" +
				`5 {"id":2} {"before":null,"after":` + rb + `,…,"op":"c" __debezium.oldkey={"id":1}`,
		},
	} {
		ev := &binlog.Rows{
			Info: binlog.Info{Thread: -1}, Op: c.op, Table: testTable(c.key...), Row: 4, Before: c.before, After: c.after,
			Base: offset.Offset{File: "f", Pos: 4, Event: 2},
		}
		if got := describe(emit(t, Config{Tombstones: c.tombstones}, ev)); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

// TestConverters shows what replace.null.with.default and decimal.format do, in payload, schema and header.
func TestConverters(t *testing.T) {
	ev := &binlog.Rows{Op: binlog.Create, Table: testTable(0), After: cells(7, -1, "-"), Info: binlog.Info{Thread: -1}}
	for _, c := range []struct {
		converter Converter
		want      string
	}{
		{Converter{}, `"after":{"id":7,"d":null,"s":null}`},
		{Converter{ReplaceNullWithDefault: true}, `"after":{"id":7,"d":"AJY=","s":null}`},
		{Converter{ReplaceNullWithDefault: true, NumericDecimals: true}, `"after":{"id":7,"d":1.50,"s":null}`},
		{Converter{Schemas: true}, `"connect.decimal.precision":"5"},"default":"AJY=","field":"d"}`},
		{Converter{Schemas: true, NumericDecimals: true}, `"connect.decimal.precision":"5"},"default":1.50,"field":"d"}`},
		{Converter{}, `"snapshot":null`},
		{Converter{ReplaceNullWithDefault: true}, `"snapshot":"false"`},
		{Converter{}, `"gtid":null,"file":"","pos":0,"row":0,"thread":null,"query":null}`},
		{Converter{}, `"op":"c","ts_ms":1795979007735,"ts_us":1795979007735048,"ts_ns":1795979007735048990}`},
	} {
		if got := string(emit(t, Config{Value: c.converter}, ev)[0].Value); !strings.Contains(got, c.want) {
			t.Errorf("%+v: no %s in %s", c.converter, c.want, got)
		}
	}
	update := &binlog.Rows{Op: binlog.Update, Table: testTable(1), Before: cells(1, 100, "x"), After: cells(1, 225, "x")}
	got := emit(t, Config{}, update)
	if got[0].Headers[0].Name != newKeyHeader || string(got[0].Headers[0].Value) != `{"d":2.25}` {
		t.Errorf("the header is %s=%s", got[0].Headers[0].Name, got[0].Headers[0].Value)
	}
}

// TestEqualKeys of different bytes are no key change: a NOT NULL date of zeros is the epoch, like the epoch itself.
func TestEqualKeys(t *testing.T) {
	table := &schema.Table{Database: "db", Name: "t", Key: []int{0}, Columns: []schema.Column{{Name: "d", Type: 10}}}
	zero, epoch := []byte{0, 0, 0}, []byte{0x21, 0x64, 0x0f}
	ev := &binlog.Rows{Op: binlog.Update, Table: table, Before: [][]byte{zero}, After: [][]byte{epoch}}
	if got := describe(emit(t, Config{}, ev)); got != `1 {"d":0} {"before":{"d":0},"after":{"d":0},…,"op":"u"` {
		t.Errorf("got %s", got)
	}
}

// TestI6_ErrorsSayWhere names position, table, row and column, and leaves the batch as it was.
func TestI6_ErrorsSayWhere(t *testing.T) {
	em, err := New(Config{Prefix: "p", Tombstones: true})
	must(t, err)
	good := &binlog.Rows{
		Op: binlog.Update, Table: testTable(0), Before: cells(1, 1, "x"), After: cells(2, 1, "x"),
		Info: binlog.Info{File: "mysql-bin.000007", Pos: 1234},
	}
	var b Batch
	must(t, em.Begin(good))
	must(t, em.Row(&b, good))
	records, size := len(b.Records), b.Size()
	bad := *good
	bad.Row, bad.After = 3, [][]byte{good.After[0], {0x80}, nil}
	err = em.Row(&b, &bad)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"mysql-bin.000007:1234", "db.t", "row 3", `column "d"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %q", want, err)
		}
	}
	bad.After = good.After[:1]
	if err := em.Row(&b, &bad); err == nil || !strings.Contains(err.Error(), "only 1 columns") {
		t.Errorf("%v", err)
	}
	bad.Op = 9
	if err := em.Row(&b, &bad); err == nil {
		t.Error("no error for an unknown operation")
	}
	bad.Table = testTable(0)
	if err := em.Row(&b, &bad); err == nil || !strings.Contains(err.Error(), "not begun") {
		t.Errorf("%v", err)
	}
	if len(b.Records) != records || b.Size() != size {
		t.Errorf("the batch has %d records, %d bytes, want %d, %d", len(b.Records), b.Size(), records, size)
	}
	bad.Table = &schema.Table{Database: "db", Name: "odd", Columns: []schema.Column{{Name: "c", Type: 200}}}
	if err := em.Begin(&bad); err == nil || !strings.Contains(err.Error(), "db.odd") || !strings.Contains(err.Error(), "mysql-bin.000007:1234") {
		t.Errorf("%v", err)
	}
	if _, err := New(Config{}); err == nil {
		t.Error("no error without a prefix")
	}
}

func TestRunID(t *testing.T) {
	id := newRunID(time.UnixMilli(0x01a228b0cafa))
	if !regexp.MustCompile(`^01a228b0-cafa-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(id) {
		t.Errorf("got %s", id)
	}
}

// A source that is opened anew has tables of its own; what was compiled for the ones before must not pile up.
func TestForget(t *testing.T) {
	ev, _ := benchEvent(t)
	em := benchEmitter(t, Converter{})
	if err := em.Begin(ev); err != nil {
		t.Fatal(err)
	}
	em.Forget()
	if len(em.plans) != 0 {
		t.Errorf("%d plans are kept", len(em.plans))
	}
	if !ev.Next() {
		t.Fatal("no row")
	}
	var batch Batch
	if err := em.Row(&batch, ev); err == nil {
		t.Error("a row of an event that was begun before Forget was encoded")
	}
	if err := em.Begin(ev); err != nil {
		t.Fatal(err)
	}
	if err := em.Row(&batch, ev); err != nil || len(batch.Records) != 1 {
		t.Errorf("%d records, %v", len(batch.Records), err)
	}
}

// TestOnePlanForATable: a table that is altered again and again does not leave its former versions behind, whose plans of
// thousands of columns are megabytes each.
func TestOnePlanForATable(t *testing.T) {
	em, err := New(Config{Prefix: "p", Transactions: true})
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	for i := range 100 {
		for _, name := range []string{"t", "u"} {
			table := &schema.Table{Database: "d", Name: name, Columns: []schema.Column{{Name: fmt.Sprintf("c%d", i), Type: typeLong}}}
			ev, err := binlog.NewRows(binlog.Info{}, binlog.Create, table, offset.Offset{}, []byte{0, 1, 0, 0, 0})
			if err != nil {
				t.Fatal(err)
			}
			encodeEvent(t, em, &b, ev)
		}
	}
	if n, m, k := len(em.plans), len(em.newest), len(em.side.transaction.counts.versions); n != 2 || m != 2 || k != 2 || len(b.Records) != 200 {
		t.Errorf("%d plans of %d tables and %d counted versions are kept, %d records", n, m, k, len(b.Records))
	}
}
