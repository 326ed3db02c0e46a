package emitter

import (
	"encoding/binary"
	"strconv"
	"testing"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// benchTable is orders(id BIGINT PRIMARY KEY, customer INT, name VARCHAR(60), price DECIMAL(10,2), placed DATETIME(3),
// changed TIMESTAMP, note TEXT, extra JSON, paid TINYINT(1)).
func benchTable() *schema.Table {
	return &schema.Table{
		Database: "shop", Name: "orders", Key: []int{0},
		Columns: []schema.Column{
			{Name: "id", Type: 8},
			{Name: "customer", Type: 3},
			{Name: "name", Type: 15, Meta: 240, Collation: 255, Nullable: true},
			{Name: "price", Type: 246, Meta: 10<<8 | 2},
			{Name: "placed", Type: 18, Meta: 3, Nullable: true},
			{Name: "changed", Type: 17},
			{Name: "note", Type: 252, Meta: 2, Collation: 255, Nullable: true},
			{Name: "extra", Type: 245, Meta: 4, Nullable: true},
			{Name: "paid", Type: 1},
		},
	}
}

// benchImage appends one row image as a rows event has it.
func benchImage(dst []byte, id int64) []byte {
	le := binary.LittleEndian
	dst = append(dst, 0, 0) // nothing is NULL
	dst = le.AppendUint64(dst, uint64(id))
	dst = le.AppendUint32(dst, 4711)
	name := "Margarethe Lindenbaum, Station Road 12"
	dst = append(append(dst, byte(len(name))), name...)
	dst = append(dst, 0x80, 0x00, 0x04, 0xd2, 0x38) // 1234.56
	// 2026-11-29 12:34:56.789: 17 bits of year*13+month, then day, hour, minute, second
	when := uint64(2026*13+11)<<22 | 29<<17 | 12<<12 | 34<<6 | 56 | 1<<39
	dst = append(dst, byte(when>>32), byte(when>>24), byte(when>>16), byte(when>>8), byte(when), 7890>>8, 7890&0xff)
	dst = binary.BigEndian.AppendUint32(dst, 1795955696)
	note := "Leave the parcel with the neighbour on the second floor."
	dst = append(le.AppendUint16(dst, uint16(len(note))), note...)
	json := []byte{
		0x00,        // small object
		3, 0, 39, 0, // members, bytes
		25, 0, 2, 0, 27, 0, 2, 0, 29, 0, 3, 0, // keys
		0x05, 57, 48, 0x04, 1, 0, 0x0c, 32, 0, // an int16, a literal, a string
		'i', 'd', 'o', 'k', 't', 'a', 'g',
		6, 'n', 'o', 'r', 't', 'h', '!',
	}
	dst = append(le.AppendUint32(dst, uint32(len(json))), json...)
	return append(dst, 1)
}

const benchJSON = `"after":{"id":0,"customer":4711,"name":"Margarethe Lindenbaum, Station Road 12","price":"AeJA",` +
	`"placed":1795955696789,"changed":"2026-11-29T12:34:56Z","note":"Leave the parcel with the neighbour on the ` +
	`second floor.","extra":"{\"id\":12345,\"ok\":true,\"tag\":\"north!\"}","paid":1}`

const benchRows = 45 // in an event, about 8 KiB

func benchEvent(tb testing.TB) (*binlog.Rows, []byte) {
	var body []byte
	for i := range benchRows {
		body = benchImage(body, int64(i))
	}
	ev, err := binlog.NewRows(binlog.Info{
		TsMicros: 1795979007728187, ServerID: 223344, GTID: gtid("8469a685-ec27-11f1-a4cd-0242ac110007:43"),
		File: "mysql-bin.000001", Pos: 22658, Thread: 16,
	}, binlog.Create, benchTable(), offset.Offset{File: "mysql-bin.000001", Pos: 22489, Event: 2}, body)
	if err != nil {
		tb.Fatal(err)
	}
	return ev, body
}

func benchEmitter(tb testing.TB, c Converter) *Emitter {
	c.ReplaceNullWithDefault = true
	em, err := New(Config{Prefix: "dbserver1", Key: c, Value: c, Tombstones: true, ExtendedHeaders: true})
	if err != nil {
		tb.Fatal(err)
	}
	return em
}

// encodeEvent walks and encodes all rows of ev.
func encodeEvent(tb testing.TB, em *Emitter, batch *Batch, ev *binlog.Rows) int {
	if err := em.Begin(ev); err != nil {
		tb.Fatal(err)
	}
	rows := 0
	for ev.Next() {
		if err := em.Row(batch, ev); err != nil {
			tb.Fatal(err)
		}
		rows++
	}
	if err := ev.Err(); err != nil {
		tb.Fatal(err)
	}
	return rows
}

// gtid is the GTID of a text that has one, the zero value for none.
func gtid(text string) offset.GTID {
	if text == "" {
		return offset.GTID{}
	}
	id, err := offset.ParseGTID(text)
	if err != nil {
		panic(err)
	}
	return id
}

// benchTransactions are where transactions of one row each come from, one after the other.
func benchTransactions() []binlog.Info {
	infos := make([]binlog.Info, 1000)
	for i := range infos {
		infos[i] = binlog.Info{
			TsMicros: 1795979007728187 + int64(i)*1237, ServerID: 223344, Thread: 16,
			GTID: gtid("8469a685-ec27-11f1-a4cd-0242ac110007:" + strconv.Itoa(4300+i)), File: "mysql-bin.000001", Pos: 22658 + int64(i)*517,
		}
	}
	return infos
}

var benchFormats = []struct {
	name string
	Converter
}{{"json", Converter{}}, {"json-schema", Converter{Schemas: true}}, {"avro", Converter{Avro: avroConverter(new(testIDs))}}}

// BenchmarkRow is the way from a row image's bytes to a record ready for Kafka, per row: walking, decoding, encoding.
func BenchmarkRow(b *testing.B) {
	for _, c := range benchFormats {
		b.Run(c.name, func(b *testing.B) {
			ev, body := benchEvent(b)
			em := benchEmitter(b, c.Converter)
			var batch Batch
			encodeEvent(b, em, &batch, ev)
			size := batch.Size() / benchRows
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; {
				ev.Reset(body)
				batch.Reset()
				n += encodeEvent(b, em, &batch, ev)
			}
			b.ReportMetric(float64(size), "B/record")
		})
	}
}

// BenchmarkEvent is the same for transactions of one row: what is done for each event is counted in full.
func BenchmarkEvent(b *testing.B) {
	for _, c := range benchFormats {
		b.Run(c.name, func(b *testing.B) {
			ev, _ := benchEvent(b)
			body := benchImage(nil, 4711)
			infos := benchTransactions()
			em := benchEmitter(b, c.Converter)
			var batch Batch
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				ev.Info = infos[n%len(infos)]
				ev.Reset(body)
				batch.Reset()
				encodeEvent(b, em, &batch, ev)
			}
		})
	}
}
