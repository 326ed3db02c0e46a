package binlog

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	fakemysql "github.com/go-mysql-org/go-mysql/server"

	"github.com/tidemark-cdc/tidemark/binlog/server"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// The tests of this file measure what reading costs by the very code that reads from a server: the network alone is
// replaced by memory.

// shop is what a measured binlog is like.
type shop struct {
	tables       int   // written to in turn
	transactions int   // of the whole binlog
	rows         int   // of each transaction, in one event
	executed     int   // intervals of the set that was executed before
	sources      int64 // servers that commit in turn
}

const shopColumns = "(`id` bigint NOT NULL, `qty` int DEFAULT NULL, `name` varchar(60) DEFAULT NULL, `price` decimal(10,2) DEFAULT NULL, `at` datetime(3) DEFAULT NULL, " +
	"`changed` timestamp NULL DEFAULT NULL, `note` text, `doc` json DEFAULT NULL, `done` tinyint DEFAULT NULL, PRIMARY KEY (`id`))"

// source is the UUID of a server.
func (s *shop) source(n int64) (id [16]byte) {
	copy(id[:], testSource())
	id[15] = byte(n)
	id[14] = byte(n >> 8)
	return id
}

// before is the set that was executed before the first transaction.
func (s *shop) before() string {
	var text strings.Builder
	for n := range s.sources {
		if n > 0 {
			text.WriteByte(',')
		}
		id := offset.GTID{Source: s.source(n), Number: 1}.String()
		text.WriteString(strings.TrimSuffix(id, ":1"))
		for i := range s.executed {
			fmt.Fprintf(&text, ":%d-%d", 1+10*i, 5+10*i)
		}
	}
	return text.String()
}

// packets is the stream as a server sends it, checksums and packet headers included.
func (s *shop) packets() []byte {
	b := newBinlog("mysql-bin.000001")
	b.events[1][len(b.events[1])-1] = 1 // with checksums
	t, images := ordersTable(s.rows)
	for n := range s.transactions {
		source := int64(n) % s.sources
		gtid := s.source(source)
		body := append([]byte{0}, gtid[:]...)
		body = binary.LittleEndian.AppendUint64(body, uint64(10*(s.executed-1)+6+n/int(s.sources)))
		body = append(append(body, 2), make([]byte, 16)...)
		body = append(body, binary.LittleEndian.AppendUint64(nil, uint64(1700000000000000+n))[:7]...)
		b.add(evGTID, 0, append(body, 0xfc, 0x80, 0x01, 0x17, 0x39, 0x01, 0x00))
		status := make([]byte, 43)
		body = binary.LittleEndian.AppendUint32(nil, 42)
		body = append(body, 0, 0, 0, 0, 9, 0, 0, byte(len(status)), 0)
		b.add(evQuery, 0, append(append(append(body, status...), "inventory\x00"...), "BEGIN"...))

		id := uint64(100 + n%s.tables)
		name := fmt.Sprintf("orders%d", n%s.tables)
		body = append(binary.LittleEndian.AppendUint64(nil, id)[:6], 1, 0, 9)
		body = append(body, "inventory\x00"...)
		body = append(append(append(body, byte(len(name))), name...), 0, byte(len(t.Columns)))
		var meta, names []byte
		for _, c := range t.Columns {
			body = append(body, c.Type)
			switch metaSize(c.Type) {
			case 1:
				meta = append(meta, byte(c.Meta))
			case 2:
				if c.Type == typeNewDecimal {
					meta = binary.BigEndian.AppendUint16(meta, c.Meta)
				} else {
					meta = binary.LittleEndian.AppendUint16(meta, c.Meta)
				}
			}
			names = append(append(names, byte(len(c.Name))), c.Name...)
		}
		body = append(append(append(body, byte(len(meta))), meta...), 0xfe, 1)
		body = append(body, metaSignedness, 1, 0, metaDefaultCharset, 3, 0xfc, 255, 0)
		body = append(append(body, metaColumnName, byte(len(names))), names...)
		b.add(evTableMap, 0, append(body, metaSimpleKey, 1, 0))

		body = append(binary.LittleEndian.AppendUint64(nil, id)[:6], 1, 0, 2, 0, byte(len(t.Columns)), 0xff, 0x01)
		b.add(evWrite, 0, append(body, images...))
		b.xid()
	}
	var out []byte
	end := uint32(firstPos)
	for i, ev := range b.events {
		size := uint32(len(ev) + checksumSize)
		binary.LittleEndian.PutUint32(ev[9:], size)
		if i > 0 {
			end += size
			binary.LittleEndian.PutUint32(ev[13:], end)
		}
		n := size + 1
		out = append(out, byte(n), byte(n>>8), byte(n>>16), byte(i+1), 0)
		out = binary.LittleEndian.AppendUint32(append(out, ev...), crc32.ChecksumIEEE(ev))
	}
	return out
}

// shopServer is a MySQL server that has one binlog.
type shopServer struct {
	fakemysql.EmptyHandler
	shop    *shop
	packets []byte
	read    func() // called before the stream is read from; may be nil
}

func (s *shopServer) HandleOtherCommand(byte, []byte) error { return nil }

func (s *shopServer) HandleQuery(query string) (*mysql.Result, error) {
	switch {
	case strings.HasPrefix(query, "SHOW GLOBAL VARIABLES"):
		return textResult([]string{"Variable_name", "Value"}, []any{"version", "9.7.0"}, []any{"server_uuid", testUUID}, []any{"gtid_mode", "ON"}, []any{"log_bin", "ON"})
	case strings.HasPrefix(query, "SHOW BINARY LOG STATUS"):
		return textResult([]string{"File", "Position", "Executed_Gtid_Set"}, []any{"mysql-bin.000001", 4, s.shop.before()})
	case strings.HasPrefix(query, "SELECT @source_binlog_checksum"):
		return textResult([]string{"c"}, []any{"CRC32"})
	case strings.HasPrefix(query, "SHOW REPLICAS"):
		return textResult([]string{"Server_Id", "Host", "Port", "Source_Id", "Replica_UUID"}, []any{99, "", 3306, 1, "x"})
	}
	return nil, nil
}

// dial is a connection to the server: in memory, and without a goroutine once the stream has begun.
func (s *shopServer) dial(context.Context, string, string) (net.Conn, error) {
	return &shopConn{Conn: dialFake(s, nil), packets: s.packets, read: s.read}, nil
}

type shopConn struct {
	net.Conn
	dumping atomic.Bool
	packets []byte
	read    func()
}

func (c *shopConn) Write(b []byte) (int, error) {
	if len(b) > 4 && (b[4] == mysql.COM_BINLOG_DUMP || b[4] == mysql.COM_BINLOG_DUMP_GTID) {
		c.dumping.Store(true)
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// Read gives at most what a TLS connection does.
func (c *shopConn) Read(b []byte) (int, error) {
	if !c.dumping.Load() {
		return c.Conn.Read(b)
	}
	if c.read != nil {
		c.read()
	}
	if len(c.packets) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), 16<<10)], c.packets)
	c.packets = c.packets[n:]
	return n, nil
}

// open opens a reader over the server. The definitions are ahead of the whole stream, as they are while a connector
// catches up.
func (s *shopServer) open(tb testing.TB) *Reader {
	tb.Helper()
	conn, err := server.Connect(tb.Context(), server.Config{Host: "db.example", Port: 3306, User: "u", Password: "pw", Dial: s.dial, Heartbeat: time.Minute})
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close()
	catalog := schema.NewCatalog(schema.CatalogOptions{})
	for n := range s.shop.tables {
		name := fmt.Sprintf("orders%d", n)
		def, err := schema.ParseCreateTable("inventory", "CREATE TABLE `"+name+"` "+shopColumns)
		if err != nil {
			tb.Fatal(err)
		}
		catalog.Set("inventory", name, def)
	}
	later, err := offset.ParseGTIDSet(strings.ReplaceAll(s.shop.before(), ":1-5", ":1-5:1000000000-1000000007"))
	if err != nil {
		tb.Fatal(err)
	}
	cfg := Config{
		Captured: func(string, string) bool { return true }, Catalog: catalog, Filters: "f",
		CatalogAt: offset.Offset{File: "mysql-bin.000009", Pos: 4000, GTIDs: later},
	}
	r, err := Open(tb.Context(), conn, Replica{ServerID: 7, Name: "shop"}, cfg, Start{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { r.Close() })
	return r
}

// shopReader reads transactions as the pipeline does, and looks at each row and its offset.
type shopReader struct {
	*Reader
	rows  int
	after offset.Offset
	sides offset.Sides
}

func (r *shopReader) transaction(ctx context.Context) error {
	r.sides.Reset()
	for {
		ev, err := r.Read(ctx)
		if err != nil {
			return err
		}
		switch ev := ev.(type) {
		case *Rows:
			for ev.Next() {
				r.rows++
				ev.PutOffsetAfter(&r.after, &r.sides)
			}
			if ev.Err() != nil {
				return ev.Err()
			}
		case *Boundary:
			if ev.Commit {
				r.after = ev.Offset
				return nil
			}
		}
	}
}

// TestTransactionsAllocateNothing: in the steady state neither a transaction nor an event of it allocates, but where sources take
// turns, for a share of their set.
func TestTransactionsAllocateNothing(t *testing.T) {
	for name, of := range map[string]struct {
		shop
		most uint64 // bytes a transaction
	}{
		"one table":      {shop{tables: 1, rows: 1, executed: 1, sources: 1}, 0},
		"many tables":    {shop{tables: 500, rows: 1, executed: 1, sources: 1}, 0},
		"many intervals": {shop{tables: 1, rows: 1, executed: 10_000, sources: 1}, 0},
		"two sources":    {shop{tables: 1, rows: 1, executed: 100, sources: 2}, 48},
		"many rows":      {shop{tables: 1, rows: 300, executed: 1, sources: 1}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			const measured = 1000
			const others = 16 // bytes a transaction that are the runtime's own
			s := of.shop
			s.transactions = 600 + measured + 1
			r := shopReader{Reader: (&shopServer{shop: &s, packets: s.packets()}).open(t)}
			next := func() {
				if err := r.transaction(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for range 600 {
				next()
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if n := testing.AllocsPerRun(measured, next); n != 0 {
				t.Errorf("%v allocations a transaction", n)
			}
			runtime.ReadMemStats(&after)
			if n := (after.TotalAlloc - before.TotalAlloc) / measured; n > of.most+others {
				t.Errorf("%d bytes a transaction", n)
			}
			if want := s.transactions * s.rows; r.rows != want {
				t.Errorf("%d rows, want %d", r.rows, want)
			}
			if want := fmt.Sprintf("%d", 10*(s.executed-1)+5+s.transactions/int(s.sources)); !strings.HasSuffix(r.after.GTIDs.String(), "-"+want) {
				t.Errorf("the set does not end with %s", want)
			}
		})
	}
}

func benchmarkShop(b *testing.B, s shop) {
	if s.transactions == 0 {
		s.transactions = 50_000
	}
	warm := max(100, 2*s.tables, 2*int(s.sources))
	s.transactions += warm
	from := &shopServer{shop: &s, packets: s.packets()}
	ctx := b.Context()
	var r shopReader
	left := 0
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if left == 0 {
			b.StopTimer()
			r = shopReader{Reader: from.open(b), rows: r.rows}
			for range warm {
				if err := r.transaction(ctx); err != nil {
					b.Fatal(err)
				}
			}
			left = s.transactions - warm
			b.StartTimer()
		}
		if err := r.transaction(ctx); err != nil {
			b.Fatal(err)
		}
		left--
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(s.rows), "ns/row")
}

// BenchmarkTransaction is a transaction of one row: GTID, BEGIN, TABLE_MAP, WRITE_ROWS, XID. What it costs does not hang
// on how much is known: intervals and sources of GTIDs, tables.
func BenchmarkTransaction(b *testing.B) {
	b.Run("one", func(b *testing.B) { benchmarkShop(b, shop{tables: 1, rows: 1, executed: 1, sources: 1}) })
	b.Run("intervals=10000", func(b *testing.B) { benchmarkShop(b, shop{tables: 1, rows: 1, executed: 10_000, sources: 1}) })
	b.Run("sources=2", func(b *testing.B) { benchmarkShop(b, shop{tables: 1, rows: 1, executed: 1, sources: 2}) })
	b.Run("sources=1000", func(b *testing.B) { benchmarkShop(b, shop{tables: 1, rows: 1, executed: 1, sources: 1000}) })
	b.Run("tables=5000", func(b *testing.B) { benchmarkShop(b, shop{tables: 5000, rows: 1, executed: 1, sources: 1}) })
}

// BenchmarkRows is a transaction of 100 rows, in one event.
func BenchmarkRows(b *testing.B) {
	benchmarkShop(b, shop{tables: 1, rows: 100, executed: 1, sources: 1, transactions: 2000})
}
