package emitter

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/emitter/kafka"
	"github.com/tidemark-cdc/tidemark/offset"
)

// wantFailed waits until a delivery has ended with an error.
func wantFailed(t *testing.T, d Delivery, want error, texts ...string) {
	t.Helper()
	select {
	case <-d.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("it goes on")
	}
	err := d.Err()
	if want != nil && !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want …%s…", err, text)
		}
	}
}

// TestI1_SafeWaitsForTheCommit though all records and the offset are acknowledged.
func TestI1_SafeWaitsForTheCommit(t *testing.T) {
	c := cluster(t)
	d := exactlyOnce(t, c, nil)
	release := holdEnds(c)
	defer release()
	d.transaction(t, 100, 3)
	if d.deliver(t); d.Unacked() != 3 {
		t.Errorf("%d are on their way", d.Unacked())
	}
	for range 100 {
		if d.tracker.Unacked() == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond)
	if o, ok := d.Safe(); ok || d.tracker.Unacked() > 0 || d.Unacked() != 3 {
		t.Fatalf("safe is %s, %d are not acknowledged, %d on their way", o, d.tracker.Unacked(), d.Unacked())
	}
	release()
	wantSafe(t, d, 200)
	if d.Unacked() != 0 {
		t.Errorf("%d are on their way", d.Unacked())
	}
}

// TestI2_TransactionsGoForward and never store an offset before the last one.
func TestI2_TransactionsGoForward(t *testing.T) {
	c := cluster(t)
	d := exactlyOnce(t, c, nil)
	d.transaction(t, 300, 1)
	flush(t, d)
	d.transaction(t, 200, 1)
	_ = d.Deliver(t.Context())
	wantFailed(t, d, nil, "lies before", "fault in tidemark")
	d.Close()
	wantNoneOpen(t, c)
	wantCommitted(t, c, "300×1 → 400")
}

// TestI7_NothingBehindARefusedRecord is committed, nor what is before it since the last commit of MySQL.
func TestI7_NothingBehindARefusedRecord(t *testing.T) {
	c := cluster(t)
	d := exactlyOnce(t, c, nil, "max.request.size", "5000")
	d.transaction(t, 100, 2)
	flush(t, d)
	d.transaction(t, 200, 2)
	d.rows(t, 300, 0, 1)
	b, err := d.Batch(t.Context())
	must(t, err)
	b.Records = append(b.Records, Record{Topic: testTopic, Partition: -1, Key: keys[0], Value: make([]byte, 6000), Offset: inTransaction(300, 2, 2)})
	d.rows(t, 300, 2, 1)
	d.commit(t, 300)
	if err := d.Deliver(t.Context()); err == nil || !strings.Contains(err.Error(), "max.request.size") {
		t.Errorf("delivered: %v", err)
	}
	wantFailed(t, d, nil, "Kafka does not take the record")
	time.Sleep(2 * longestTransaction)
	d.Close()
	wantNoneOpen(t, c)
	wantCommitted(t, c, "100×2 → 200")
}

// TestLargeOffset that a topic would not take ends the delivery with what helps.
func TestLargeOffset(t *testing.T) {
	c := cluster(t)
	d := exactlyOnce(t, c, nil, "max.request.size", "5000")
	o := between(200)
	o.Extra = []offset.Member{offset.TextMember("x", strings.Repeat("y", 5000))}
	must(t, d.Boundary(t.Context(), o))
	if err := d.Flush(t.Context()); err == nil {
		t.Error("stored")
	}
	wantFailed(t, d, nil, "storing offset", offsetsTopic, "producer.override.max.request.size")
}

// TestFenced is who had the transactional id before, and what it has begun is rolled back before the offset is loaded.
func TestFenced(t *testing.T) {
	c := cluster(t)
	first := exactlyOnce(t, c, func(cfg *ExactlyOnceConfig) { cfg.Boundaries = AtWholeTransactions })
	first.transaction(t, 100, 3)
	flush(t, first)
	first.rows(t, 200, 0, 700) // open
	for range 100 {
		if first.tracker.Unacked() == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	second := exactlyOnce(t, c, nil)
	loaded, err := second.store.Load(t.Context(), shop)
	if err != nil || loaded.Pos != 200 {
		t.Fatalf("loaded %s, %v", loaded, err)
	}
	second.transaction(t, 200, 5)
	flush(t, second)
	first.rows(t, 200, 700, 10)
	_ = first.Boundary(t.Context(), between(300))
	_ = first.Deliver(t.Context())
	wantFailed(t, first, ErrFenced, transactionID)
	second.transaction(t, 300, 1)
	flush(t, second)
	first.Close() // takes nothing back
	second.transaction(t, 400, 1)
	flush(t, second)
	wantCommitted(t, c, "100×3 → 200", "200×5 → 300", "300×1 → 400", "400×1 → 500")
}

// TestClosedInTheMiddle rolls back what is open.
func TestClosedInTheMiddle(t *testing.T) {
	c := cluster(t)
	d := exactlyOnce(t, c, func(cfg *ExactlyOnceConfig) { cfg.Boundaries = AtWholeTransactions })
	d.transaction(t, 100, 3)
	d.rows(t, 200, 0, 700)
	flush(t, d)
	d.Close()
	wantNoneOpen(t, c)
	wantCommitted(t, c, "100×3 → 200")
	for name, err := range map[string]error{
		"Deliver": d.Deliver(t.Context()), "Boundary": d.Boundary(t.Context(), between(300)), "Flush": d.Flush(t.Context()),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
}

// TestHandOverGivenUp in the middle of a MySQL transaction is not ended there.
func TestHandOverGivenUp(t *testing.T) {
	c := cluster(t)
	d := exactlyOnce(t, c, func(cfg *ExactlyOnceConfig) { cfg.Window = 100 })
	release := hold(c, 0)
	defer release()
	d.transaction(t, 100, 400)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := d.Deliver(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	release()
	for range 100 {
		if d.tracker.Unacked() == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(2 * longestTransaction)
	if o, ok := d.Safe(); ok {
		t.Errorf("stored is %s", o)
	}
	flush(t, d)
	wantCommitted(t, c, "100×400 → 200")
}

// TestOneCluster is what a transaction is in.
func TestOneCluster(t *testing.T) {
	c := cluster(t)
	other, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.ClusterID("other"))
	must(t, err)
	t.Cleanup(other.Close)
	client, err := kafka.NewClient(kafka.ClientConfig{Properties: map[string]string{"bootstrap.servers": other.ListenAddrs()[0]}})
	must(t, err)
	defer client.Close()
	_, err = NewExactlyOnce(t.Context(), client, ExactlyOnceConfig{ID: transactionID, Store: offsetStore(t, c), Key: shop})
	for _, text := range []string{offsetsTopic, "cluster other", "offsets.storage.topic", other.ListenAddrs()[0]} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want …%s…", err, text)
		}
	}
}

// cutting cuts a connection when a request for the end of a transaction has been written to it, or instead of it.
type cutting struct {
	net.Conn
	cut     *atomic.Bool // the next one
	arrives bool
	deaf    atomic.Bool // the answer is lost
}

func (c *cutting) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.deaf.Load() {
		return 0, io.EOF
	}
	return n, err
}

func (c *cutting) Write(b []byte) (int, error) {
	if len(b) < 6 || int16(binary.BigEndian.Uint16(b[4:])) != int16(kmsg.EndTxn) || !c.cut.CompareAndSwap(true, false) {
		return c.Conn.Write(b)
	}
	if !c.arrives {
		_ = c.Conn.Close()
		return len(b), nil // the system took it, and it was lost on the way
	}
	c.deaf.Store(true)
	n, err := c.Conn.Write(b)
	time.Sleep(20 * time.Millisecond) // the broker has it
	_ = c.Conn.Close()
	return n, err
}

// TestUnknownOutcome ends a delivery; the next one finds out what has become of the transaction.
func TestUnknownOutcome(t *testing.T) {
	for name, arrives := range map[string]bool{"committed": true, "lost": false} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t)
			store := offsetStore(t, c)
			var cut atomic.Bool
			client, err := kafka.NewClient(kafka.ClientConfig{
				Properties: map[string]string{"bootstrap.servers": strings.Join(c.ListenAddrs(), ",")},
				Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
					conn, err := new(net.Dialer).DialContext(ctx, network, address)
					if err != nil {
						return nil, err
					}
					return &cutting{Conn: conn, cut: &cut, arrives: arrives}, nil
				},
			})
			must(t, err)
			defer client.Close()
			cfg := ExactlyOnceConfig{ID: transactionID, Store: store, Key: shop, FlushInterval: time.Hour}
			first, err := NewExactlyOnce(t.Context(), client, cfg)
			must(t, err)
			d := &exactly{first, store, c}
			d.transaction(t, 100, 2)
			flush(t, d)
			cut.Store(true)
			d.transaction(t, 200, 2)
			d.deliver(t)
			wantFailed(t, d, ErrUnknownOutcome)
			if cut.Load() {
				t.Fatal("nothing was cut")
			}
			if o, _ := d.Safe(); o.Pos != 200 {
				t.Errorf("safe is %s", o)
			}
			d.Close()
			next, err := NewExactlyOnce(t.Context(), client, cfg)
			must(t, err)
			defer next.Close()
			loaded, err := store.Load(t.Context(), shop)
			must(t, err)
			d = &exactly{next, store, c}
			if arrives != (loaded.Pos == 300) || !arrives && loaded.Pos != 200 {
				t.Fatalf("loaded %s", loaded)
			}
			if !arrives {
				d.transaction(t, 200, 2)
			}
			d.transaction(t, 300, 2)
			flush(t, d)
			want := []string{"100×2 → 200", "200×2 → 300", "300×2 → 400"}
			if !arrives {
				want = []string{"100×2 → 200", "200×2 300×2 → 400"}
			}
			wantCommitted(t, c, want...)
		})
	}
}
