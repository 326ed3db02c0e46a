package binlog

import (
	"encoding/binary"
	"testing"

	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// ordersTable is a table of nine columns and n rows of it as they stand in a rows event.
func ordersTable(n int) (*schema.Table, []byte) {
	t := &schema.Table{Database: "inventory", Name: "orders", Key: []int{0}, Columns: []schema.Column{
		{Name: "id", Type: typeLongLong},
		{Name: "qty", Type: typeLong, Nullable: true},
		{Name: "name", Type: typeVarchar, Meta: 240, Collation: 255, Nullable: true},
		{Name: "price", Type: typeNewDecimal, Meta: 10<<8 | 2, Nullable: true},
		{Name: "at", Type: typeDatetime2, Meta: 3, Nullable: true},
		{Name: "changed", Type: typeTimestamp2, Nullable: true},
		{Name: "note", Type: typeBlob, Meta: 2, Collation: 255, Nullable: true},
		{Name: "doc", Type: typeJSON, Meta: 4, Nullable: true},
		{Name: "done", Type: typeTiny, Nullable: true},
	}}
	var b []byte
	for i := range n {
		b = append(b, 0, 0xfe) // no NULL; the bits beyond the columns are set
		b = binary.LittleEndian.AppendUint64(b, uint64(i))
		b = binary.LittleEndian.AppendUint32(b, uint32(i))
		b = append(append(b, 12), "hello, world"...)
		b = append(b, 0x80, 0, 0, 100, 50)
		b = append(b, 0x99, 0xb3, 0x02, 0x10, 0x00, 0x00, 0x00)
		b = append(b, 1, 2, 3, 4)
		b = append(binary.LittleEndian.AppendUint16(b, 20), "twenty bytes of text"...)
		b = append(binary.LittleEndian.AppendUint32(b, 2), 4, 0)
		b = append(b, 1)
	}
	return t, b
}

func TestRowsNextAllocatesNothing(t *testing.T) {
	table, body := ordersTable(50)
	r, err := NewRows(Info{}, Create, table, offset.Offset{}, body)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	if allocs := testing.AllocsPerRun(100, func() {
		r.Reset(body)
		for r.Next() {
			n++
		}
	}); allocs != 0 || n != 101*50 || r.Err() != nil {
		t.Fatalf("%v allocations, %d rows, %v", allocs, n, r.Err())
	}
}

func BenchmarkRowsNext(b *testing.B) {
	table, body := ordersTable(50)
	r, err := NewRows(Info{}, Create, table, offset.Offset{}, body)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		r.Reset(body)
		for r.Next() {
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/50, "ns/row")
}
