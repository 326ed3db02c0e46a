package binlog

import (
	"context"
	"errors"
	"io"
	"runtime"
	"testing"
)

// TestTransactionsCostLittle: a transaction of one row costs an allocation for its GTID's text, and nothing else.
func TestTransactionsCostLittle(t *testing.T) {
	const transactions = 10000
	b := newBinlog("mysql-bin.000001")
	b.previous()
	for i := range transactions {
		b.gtid(int64(i + 1))
		b.query("BEGIN")
		b.insert("t", uint32(i))
		b.xid()
	}
	r, err := newReader(Config{Captured: func(_, _ string) bool { return true }}, b)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.startFiles(context.Background(), Start{}); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	events := 0
	for {
		ev, err := r.Read(context.Background())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if rows, ok := ev.(*Rows); ok {
			for rows.Next() {
			}
		}
		events++
	}
	runtime.ReadMemStats(&after)
	if per := float64(after.Mallocs-before.Mallocs) / transactions; events != 2*transactions || per > 1.1 {
		t.Errorf("%d events, %.2f allocations a transaction", events, per)
	}
}
