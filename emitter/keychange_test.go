package emitter

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// TestI3_PrimaryKeyChanges has changes of a key of every kind: delete, tombstone and create in this order, with
// headers, as one row of the offset: whoever stops after the delete comes back to it.
func TestI3_PrimaryKeyChanges(t *testing.T) {
	for _, c := range []struct {
		name          string
		key           []int
		before, after [][]byte
		old, new      string // "": no change of the key
	}{
		{"another number", []int{0}, cells(1, 1, "x"), cells(101, 1, "x"), `{"id":1}`, `{"id":101}`},
		{"one of two", []int{0, 2}, cells(1, 1, "x"), cells(1, 1, "y"), `{"id":1,"s":"x"}`, `{"id":1,"s":"y"}`},
		{"both", []int{2, 0}, cells(1, 1, "x"), cells(2, 1, "y"), `{"s":"x","id":1}`, `{"s":"y","id":2}`},
		// MySQL calls these equal, Kafka does not.
		{"letter case", []int{2}, cells(1, 1, "Ann"), cells(1, 1, "ann"), `{"s":"Ann"}`, `{"s":"ann"}`},
		{"trailing space", []int{2}, cells(1, 1, "a"), cells(1, 1, "a "), `{"s":"a"}`, `{"s":"a "}`},
		{"another column", []int{0}, cells(1, 1, "x"), cells(1, 2, "y"), "", ""},
	} {
		ev := &binlog.Rows{
			Op: binlog.Update, Table: testTable(c.key...), Row: 6, Before: c.before, After: c.after,
			Base: offset.Offset{File: "f", Pos: 4, Event: 2},
		}
		var got []string
		for _, r := range emit(t, Config{Tombstones: true}, ev) {
			op := "tombstone"
			if r.Value != nil {
				_, rest, _ := strings.Cut(string(r.Value), `"op":"`)
				op = rest[:1]
			}
			line := fmt.Sprintf("%d %s %s", r.Offset.Row, op, r.Key)
			for _, h := range r.Headers {
				line += fmt.Sprintf(" %s=%s", strings.TrimPrefix(h.Name, "__debezium."), h.Value)
			}
			got = append(got, line)
		}
		want := []string{"7 u " + `{"id":1}`}
		if c.new != "" {
			want = []string{
				"6 d " + c.old + " newkey=" + c.new, "6 tombstone " + c.old + " newkey=" + c.new, "7 c " + c.new + " oldkey=" + c.old,
			}
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// TestI3_ManyKeysInOneEvent is UPDATE t SET id = id + 100 ORDER BY id DESC: each row has its own three records.
func TestI3_ManyKeysInOneEvent(t *testing.T) {
	const rows = 50
	table := &schema.Table{Database: "db", Name: "t", Key: []int{0}, Columns: []schema.Column{{Name: "id", Type: 3}}}
	var body []byte
	for id := uint32(rows); id > 0; id-- {
		body = binary.LittleEndian.AppendUint32(append(body, 0), id)
		body = binary.LittleEndian.AppendUint32(append(body, 0), id+100)
	}
	ev, err := binlog.NewRows(binlog.Info{Thread: -1}, binlog.Update, table, offset.Offset{File: "f", Pos: 4, Event: 2}, body)
	must(t, err)
	em, err := New(Config{Prefix: "p", Tombstones: true})
	must(t, err)
	var b Batch
	must(t, em.Begin(ev))
	for row := 0; ev.Next(); row++ {
		must(t, em.Row(&b, ev))
		last := b.Records[len(b.Records)-3:]
		old, moved := fmt.Sprintf(`{"id":%d}`, rows-row), fmt.Sprintf(`{"id":%d}`, rows-row+100)
		if string(last[0].Key) != old || string(last[1].Key) != old || last[1].Value != nil || string(last[2].Key) != moved ||
			string(last[0].Headers[0].Value) != moved || string(last[2].Headers[0].Value) != old ||
			last[1].Offset.Row != int64(row) || last[2].Offset.Row != int64(row)+1 {
			t.Fatalf("row %d: got %s", row, describe(last))
		}
	}
	if must(t, ev.Err()); len(b.Records) != 3*rows {
		t.Errorf("%d records, want %d", len(b.Records), 3*rows)
	}
}

// TestUpdateToNull keeps the column in the record, with null.
func TestUpdateToNull(t *testing.T) {
	for _, c := range []struct{ before, after, want string }{
		{"aaaa", "-", `1 {"id":1} {"before":{"id":1,"d":"AQ==","s":"aaaa"},"after":{"id":1,"d":"AQ==","s":null},…,"op":"u"`},
		{"-", "aaaa", `1 {"id":1} {"before":{"id":1,"d":"AQ==","s":null},"after":{"id":1,"d":"AQ==","s":"aaaa"},…,"op":"u"`},
		{"-", "", `1 {"id":1} {"before":{"id":1,"d":"AQ==","s":null},"after":{"id":1,"d":"AQ==","s":""},…,"op":"u"`},
	} {
		ev := &binlog.Rows{Op: binlog.Update, Table: testTable(0), Before: cells(1, 1, c.before), After: cells(1, 1, c.after)}
		if got := describe(emit(t, Config{}, ev)); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
