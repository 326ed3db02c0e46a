package emitter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestBatchWaitsForMemory fills the memory while nothing is acknowledged.
func TestBatchWaitsForMemory(t *testing.T) {
	c := cluster(t)
	release := hold(c, 0)
	defer release()
	d := delivery(t, c, DeliveryConfig{MaxBytes: 1 << 20})
	value := strings.Repeat("x", 10_000)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	n := 0
	for {
		b, err := d.Batch(ctx)
		if err != nil {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			break
		}
		start := len(b.mem)
		b.mem = append(b.mem, value...)
		b.Records = append(b.Records, Record{
			Topic: testTopic, Partition: -1, Key: keyFor(0, 0), Value: b.mem[start:], Offset: at(int64(n)),
		})
		if n++; n > 1000 {
			t.Fatal("no end")
		}
	}
	if n < 50 || n*len(value) > 5<<18 {
		t.Errorf("waits with %d records of %d bytes", n, len(value))
	}
	release()
	add(t, d, keyFor(0, 0), "last", int64(n))
	flush(t, d)
	wantSafe(t, d, int64(n))
	if got := consume(t, c, n+1); len(got[0]) != n+1 {
		t.Errorf("%d records", len(got[0]))
	}
}

// TestBatchLargerThanMemory lets one row through that is larger than the bound.
func TestBatchLargerThanMemory(t *testing.T) {
	d := delivery(t, cluster(t), DeliveryConfig{MaxBytes: 1 << 20}, "max.request.size", "8000000")
	for i := range 3 {
		add(t, d, keyFor(0, 0), strings.Repeat("x", 3<<20), int64(i+1))
	}
	flush(t, d)
	wantSafe(t, d, 3)
	if n := cap(d.batch.mem); n > 2*batchBytes {
		t.Errorf("%d bytes are kept", n)
	}
}

// TestLargeRecordsGoOneByOne when they are of one batch, or all of them would be in memory at once.
func TestLargeRecordsGoOneByOne(t *testing.T) {
	c := cluster(t)
	release := hold(c, 0)
	defer release()
	d := delivery(t, c, DeliveryConfig{MaxBytes: 1 << 20}, "max.request.size", "8000000")
	b, err := d.Batch(t.Context())
	must(t, err)
	for i := range int64(3) {
		b.Records = append(b.Records, Record{Topic: testTopic, Key: keyFor(0, 0), Value: make([]byte, 3<<20), Offset: at(i + 1)})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := d.Deliver(ctx); !errors.Is(err, context.DeadlineExceeded) || d.Unacked() != 1 {
		t.Errorf("%v, %d records are handed over", err, d.Unacked())
	}
	release()
	flush(t, d)
	wantSafe(t, d, 3)
}

// TestBounds that the properties of the producer set.
func TestBounds(t *testing.T) {
	c := cluster(t)
	for _, tt := range []struct {
		bytes           int
		buffer, request string
		memory, record  int
	}{
		{0, "1073741824", "5000", defaultMaxBytes, 5000},
		{8 << 20, "1048576", "5000", 1 << 19, 5000},
		{1 << 20, "33554432", "5000", 1 << 20, 5000},
		{1 << 20, "1048576", "5000000", 1 << 19, 1 << 20},
	} {
		d := delivery(t, c, DeliveryConfig{MaxBytes: tt.bytes}, "buffer.memory", tt.buffer, "max.request.size", tt.request)
		if d.cfg.MaxBytes != tt.memory || d.largest != tt.record {
			t.Errorf("%+v: %d bytes in memory, %d of a record", tt, d.cfg.MaxBytes, d.largest)
		}
	}
}

// TestDeliverGoesOn where it was when its context ended while the window was full.
func TestDeliverGoesOn(t *testing.T) {
	c := cluster(t)
	release := hold(c, 0)
	defer release()
	d := delivery(t, c, DeliveryConfig{Window: 4})
	for i := range 20 {
		add(t, d, keyFor(0, 0), fmt.Sprint(i), int64(i+1))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := d.Deliver(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v", err)
	}
	release()
	flush(t, d)
	wantSafe(t, d, 20)
	for i, r := range consume(t, c, 20)[0] {
		if string(r.Value) != fmt.Sprint(i) {
			t.Fatalf("record %d is %s", i, r.Value)
		}
	}
}
