package emitter

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// everLasting takes the time out of a test of the other rules.
func everLasting(cfg *ExactlyOnceConfig) {
	if cfg.Boundaries == AtCommits {
		cfg.longest = time.Hour
	}
}

// TestTransactions gives workloads, and the Kafka transactions that become of them: the rows of each MySQL transaction, which is
// named by its position, and the stored offset.
func TestTransactions(t *testing.T) {
	many := func(from, to, rows int) (text string) {
		for begin := from; begin <= to; begin += 100 {
			text += fmt.Sprintf("%d×%d ", begin, rows)
		}
		return text
	}
	for name, tt := range map[string]struct {
		change func(*ExactlyOnceConfig)
		work   func(t *testing.T, d *exactly)
		want   []string
	}{
		"what is there when the source waits": {
			work: func(t *testing.T, d *exactly) {
				d.transaction(t, 100, 1)
				d.transaction(t, 200, 2)
				d.deliver(t)
			},
			want: []string{"100×1 200×2 → 300"},
		},
		"one after the other": {
			work: func(t *testing.T, d *exactly) {
				for begin := int64(100); begin < 400; begin += 100 {
					d.transaction(t, begin, 1)
					d.deliver(t)
					wantSafe(t, d, begin+100)
				}
			},
			want: []string{"100×1 → 200", "200×1 → 300", "300×1 → 400"},
		},
		"what comes while one is being ended is gathered": {
			work: func(t *testing.T, d *exactly) {
				release := holdEnds(d.c)
				defer release()
				for begin := int64(100); begin < 400; begin += 100 {
					d.transaction(t, begin, 1)
					d.deliver(t)
				}
				release()
			},
			want: []string{"100×1 → 200", "200×1 300×1 → 400"},
		},
		"as many records as there may be": {
			change: everLasting,
			work:   func(t *testing.T, d *exactly) { d.transaction(t, 100, 10_000) },
			want:   []string{"100×10000 → 200"},
		},
		"one more": {
			change: everLasting,
			work:   func(t *testing.T, d *exactly) { d.transaction(t, 100, 10_001) },
			want:   []string{"100×9728 → 100+2/9728", "100×273 → 200"},
		},
		"much more": {
			change: everLasting,
			work: func(t *testing.T, d *exactly) {
				d.transaction(t, 100, 7)
				d.transaction(t, 200, 20_000)
				d.transaction(t, 300, 7)
			},
			want: []string{"100×7 → 200", "200×9728 → 200+2/9728", "200×9728 → 200+2/19456", "200×544 300×7 → 400"},
		},
		"source is never split": {
			change: func(cfg *ExactlyOnceConfig) { cfg.Boundaries = AtWholeTransactions },
			work: func(t *testing.T, d *exactly) {
				d.rows(t, 100, 0, 15_000)
				time.Sleep(2 * longestTransaction)
				d.rows(t, 100, 15_000, 10_000)
				d.commit(t, 100)
			},
			want: []string{"100×25000 → 200"},
		},
		"many small ones are as many as fit": {
			change: everLasting,
			work: func(t *testing.T, d *exactly) {
				for begin := int64(100); begin <= 3000; begin += 100 {
					d.transaction(t, begin, 500)
				}
			},
			want: []string{many(100, 2000, 500) + "→ 2100", many(2100, 3000, 500) + "→ 3100"},
		},
		"an unfinished one waits": {
			work: func(t *testing.T, d *exactly) {
				d.transaction(t, 100, 3)
				d.rows(t, 200, 0, 511)
				d.deliver(t)
				wantSafe(t, d, 200)
				time.Sleep(2 * longestTransaction)
				d.rows(t, 200, 511, 1)
				d.commit(t, 200)
				d.deliver(t)
			},
			want: []string{"100×3 → 200", "200×512 → 300"},
		},
		"one larger than a batch has its own": {
			change: everLasting,
			work: func(t *testing.T, d *exactly) {
				d.transaction(t, 100, 3)
				d.transaction(t, 200, 600)
				d.transaction(t, 300, 4)
			},
			want: []string{"100×3 → 200", "200×600 300×4 → 400"},
		},
		"a large row": {
			change: everLasting,
			work: func(t *testing.T, d *exactly) {
				d.transaction(t, 100, 3)
				d.rows(t, 200, 0, 1)
				b, err := d.Batch(t.Context())
				must(t, err)
				b.Records = append(b.Records, Record{
					Topic: testTopic, Partition: -1, Key: keys[0], Value: []byte("200/" + strings.Repeat("x", batchBytes)), Offset: inTransaction(200, 2, 2),
				})
				b.mem = append(b.mem, make([]byte, batchBytes)...)
				d.rows(t, 200, 2, 1)
				wantSafe(t, d, 200) // it is handed over, and what came before it is ended
				d.commit(t, 200)
			},
			want: []string{"100×3 → 200", "200×3 → 300"},
		},
		"time splits a large one that does not go on": {
			work: func(t *testing.T, d *exactly) {
				d.rows(t, 100, 0, 600)
				wantStored(t, d, "100+2/512")
				wantNoneOpen(t, d.c)
				d.rows(t, 100, 600, 10)
				d.commit(t, 100)
			},
			want: []string{"100×512 → 100+2/512", "100×98 → 200"},
		},
		"time ends small ones though nothing more comes": {
			work: func(t *testing.T, d *exactly) {
				d.transaction(t, 100, 300)
				d.rows(t, 200, 0, 213)
				wantStored(t, d, "200")
				wantNoneOpen(t, d.c)
			},
			want: []string{"100×300 → 200"},
		},
		"an interval": {
			change: func(cfg *ExactlyOnceConfig) { cfg.Boundaries, cfg.Interval = AtIntervals, time.Second },
			work: func(t *testing.T, d *exactly) {
				d.transaction(t, 100, 1)
				d.deliver(t)
				time.Sleep(100 * time.Millisecond)
				d.transaction(t, 200, 1)
				d.deliver(t)
				wantStored(t, d, "300")
				wantNoneOpen(t, d.c)
				d.transaction(t, 300, 1)
			},
			want: []string{"100×1 200×1 → 300", "300×1 → 400"},
		},
		"an interval has as many as come": {
			change: func(cfg *ExactlyOnceConfig) { cfg.Boundaries, cfg.Interval = AtIntervals, time.Hour },
			work: func(t *testing.T, d *exactly) {
				for begin := int64(100); begin <= 3000; begin += 100 {
					d.transaction(t, begin, 500)
				}
			},
			want: []string{many(100, 3000, 500) + "→ 3100"},
		},
		"and large ones, too": {
			change: func(cfg *ExactlyOnceConfig) { cfg.Boundaries, cfg.Interval = AtIntervals, time.Hour },
			work: func(t *testing.T, d *exactly) {
				d.transaction(t, 100, 3)
				d.transaction(t, 200, 600)
				d.transaction(t, 300, 4)
				d.transaction(t, 400, 10_001)
			},
			want: []string{"100×3 200×600 300×4 400×10001 → 500"},
		},
		"but not those that cannot be split": {
			change: func(cfg *ExactlyOnceConfig) { cfg.Boundaries, cfg.Interval = AtIntervals, time.Hour },
			work: func(t *testing.T, d *exactly) {
				d.transaction(t, 100, 3)
				for range 600 {
					b, err := d.Batch(t.Context())
					must(t, err)
					b.Records = append(b.Records, Record{Topic: testTopic, Partition: -1, Key: keys[0], Value: []byte("200/"), Offset: between(200)})
				}
				d.commit(t, 200)
			},
			want: []string{"100×3 → 200", "200×600 → 300"},
		},
		"a stop in an interval loses nothing of what is whole": {
			change: func(cfg *ExactlyOnceConfig) { cfg.Boundaries, cfg.Interval = AtIntervals, time.Hour },
			work: func(t *testing.T, d *exactly) {
				d.transaction(t, 100, 3)
				d.rows(t, 200, 0, 600)
			},
			want: []string{"100×3 200×512 → 200+2/512"}, // and the rest is given up
		},
		"an interval waits for the end of a large one": {
			change: func(cfg *ExactlyOnceConfig) { cfg.Boundaries, cfg.Interval = AtIntervals, time.Second },
			work: func(t *testing.T, d *exactly) {
				d.making.Lock()
				d.patience = time.Hour
				d.making.Unlock()
				d.transaction(t, 100, 3)
				d.rows(t, 200, 0, 600)
				time.Sleep(1500 * time.Millisecond)
				if o, stored := d.Safe(); stored {
					t.Errorf("stored is %s", short(o))
				}
				d.commit(t, 200)
				d.deliver(t)
				wantStored(t, d, "300")
			},
			want: []string{"100×3 200×600 → 300"},
		},
		"but not for ever": {
			change: func(cfg *ExactlyOnceConfig) { cfg.Boundaries, cfg.Interval = AtIntervals, time.Second },
			work: func(t *testing.T, d *exactly) {
				d.transaction(t, 100, 3)
				d.rows(t, 200, 0, 600)
				wantStored(t, d, "200+2/512")
				wantNoneOpen(t, d.c)
				d.rows(t, 200, 600, 1)
				d.commit(t, 200)
			},
			want: []string{"100×3 200×512 → 200+2/512", "200×89 → 300"},
		},
		"a large one in an interval": {
			change: func(cfg *ExactlyOnceConfig) { cfg.Boundaries, cfg.Interval = AtIntervals, time.Hour },
			work:   func(t *testing.T, d *exactly) { d.transaction(t, 100, 10_001) },
			want:   []string{"100×10001 → 200"},
		},
		"and is over inside one that takes longer": {
			change: func(cfg *ExactlyOnceConfig) { cfg.Boundaries, cfg.Interval = AtIntervals, 500*time.Millisecond },
			work: func(t *testing.T, d *exactly) {
				d.rows(t, 100, 0, 10_240)
				wantStored(t, d, "100+2/9728") // what of a large one is less than a batch waits
				wantNoneOpen(t, d.c)
				d.rows(t, 100, 10_240, 1)
				d.commit(t, 100)
			},
			want: []string{"100×9728 → 100+2/9728", "100×513 → 200"},
		},
		"offsets without records": {
			change: func(cfg *ExactlyOnceConfig) { cfg.FlushInterval = 500 * time.Millisecond },
			work: func(t *testing.T, d *exactly) {
				for pos := int64(100); pos < 300; pos++ {
					must(t, d.Boundary(t.Context(), between(pos)))
					d.deliver(t)
				}
				wantStored(t, d, "299")
				must(t, d.Boundary(t.Context(), inTransaction(300, 4, 0)))
				wantStored(t, d, "300+4/0")
				wantNoneOpen(t, d.c)
			},
			want: []string{" → 299", " → 300+4/0"},
		},
		"rows that are left out": {
			change: everLasting,
			work: func(t *testing.T, d *exactly) {
				d.rows(t, 100, 0, 2)
				must(t, d.Boundary(t.Context(), inTransaction(100, 2, 5)))
				d.deliver(t)
				d.rows(t, 100, 5, 600)
				must(t, d.Boundary(t.Context(), inTransaction(100, 9, 1)))
				d.rows(t, 100, 605, 1)
				d.commit(t, 100)
			},
			want: []string{"100×603 → 200"},
		},
		"rows that are left out behind a commit": {
			change: everLasting,
			work: func(t *testing.T, d *exactly) {
				d.transaction(t, 100, 3)
				must(t, d.Boundary(t.Context(), inTransaction(200, 2, 1)))
				d.deliver(t)
				wantStored(t, d, "200+2/1")
				d.rows(t, 200, 1, 2)
				d.commit(t, 200)
			},
			want: []string{"100×3 → 200+2/1", "200×2 → 300"},
		},
		"an idle boundary with records still behind it": {
			change: everLasting,
			work: func(t *testing.T, d *exactly) {
				must(t, d.Boundary(t.Context(), between(100)))
				d.rows(t, 100, 0, 5)
			},
			want: []string{" → 100"}, // the rows are given up
		},
		"the record of its end stays with the commit": {
			work: func(t *testing.T, d *exactly) {
				d.rows(t, 100, 0, 511)
				b, err := d.Batch(t.Context())
				must(t, err)
				b.Records = append(b.Records, Record{Topic: testTopic, Partition: -1, Key: keys[0], Value: []byte("100/end"), Offset: inTransaction(100, 3, 0)})
				d.deliver(t)
				wantStored(t, d, "100+2/511")
				d.commit(t, 100)
			},
			want: []string{"100×511 → 100+2/511", "100×1 → 200"},
		},
		"rows of three records": {
			change: everLasting,
			work: func(t *testing.T, d *exactly) {
				for i := range int64(3400) {
					b, err := d.Batch(t.Context())
					must(t, err)
					for n := range int64(3) {
						b.Records = append(b.Records, Record{
							Topic: testTopic, Partition: -1, Key: keys[n%2], Value: []byte("100/"), Offset: inTransaction(100, 2, i+n/2),
						})
					}
				}
				d.commit(t, 100)
			},
			want: []string{"100×9747 → 100+2/3249", "100×453 → 200"},
		},
		"rows without BEGIN cannot be split": {
			work: func(t *testing.T, d *exactly) {
				for range 20_000 {
					b, err := d.Batch(t.Context())
					must(t, err)
					b.Records = append(b.Records, Record{Topic: testTopic, Partition: -1, Key: keys[0], Value: []byte("100/"), Offset: between(100)})
				}
				time.Sleep(2 * longestTransaction)
				d.commit(t, 100)
			},
			want: []string{"100×20000 → 200"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t)
			d := exactlyOnce(t, c, tt.change)
			tt.work(t, d)
			flush(t, d)
			wantNoneOpen(t, c)
			d.Close()
			wantCommitted(t, c, tt.want...)
			wantNoneOpen(t, c)
			loaded, err := d.store.Load(t.Context(), shop)
			safe, _ := d.Safe()
			if err != nil || !loaded.Equal(safe) {
				t.Errorf("stored is %s (%v), and safe %s", loaded, err, safe)
			}
		})
	}
}

func (d *exactly) deliver(t *testing.T) {
	t.Helper()
	must(t, d.Deliver(t.Context()))
}

// wantStored waits until an offset is stored.
func wantStored(t *testing.T, d *exactly, want string) {
	t.Helper()
	var got string
	for range 500 {
		o, _ := d.Safe()
		if got = short(o); got == want {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("stored is %s, want %s", got, want)
}

// holdEnds makes the brokers keep requests for the end of a transaction until the function returned is called.
func holdEnds(c *kfake.Cluster) (release func()) {
	var once sync.Once
	wait := make(chan struct{})
	c.ControlKey(int16(kmsg.EndTxn), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		select {
		case <-wait:
		default:
			c.SleepControl(func() { <-wait })
		}
		return nil, nil, false
	})
	return func() { once.Do(func() { close(wait) }) }
}

// TestTransactionOfOneRequest has records and offset of a small transaction sent together, to each broker.
func TestTransactionOfOneRequest(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, testTopic))
	must(t, err)
	t.Cleanup(c.Close)
	var produced, ended atomic.Int32
	for key, n := range map[kmsg.Key]*atomic.Int32{kmsg.Produce: &produced, kmsg.EndTxn: &ended} {
		c.ControlKey(int16(key), func(kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			n.Add(1)
			return nil, nil, false
		})
	}
	d := exactlyOnce(t, c, nil)
	for begin := int64(100); begin <= 1000; begin += 100 {
		d.transaction(t, begin, 2)
		d.deliver(t)
		wantSafe(t, d, begin+100)
	}
	if p, e := produced.Load(), ended.Load(); p != 10 || e != 10 {
		t.Errorf("%d requests with records and %d ends of 10 transactions", p, e)
	}
}

// TestTransactionsOfOldKafka are as whole, without transaction.version 2.
func TestTransactionsOfOldKafka(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(2), kfake.SeedTopics(2, testTopic), kfake.MaxVersions(kversion.V3_9_0()))
	must(t, err)
	t.Cleanup(c.Close)
	for round := range int64(3) {
		d := exactlyOnce(t, c, nil)
		if d.TransactionVersion() >= 2 {
			t.Fatalf("transaction.version %d", d.TransactionVersion())
		}
		loaded, err := d.store.Load(t.Context(), shop)
		if err != nil || loaded.Pos != map[int64]int64{0: 0, 1: 600, 2: 1100}[round] {
			t.Fatalf("round %d: loaded %s, %v", round, loaded, err)
		}
		from := max(loaded.Pos, 100)
		for begin := from; begin < from+500; begin += 100 {
			d.transaction(t, begin, begin)
			if begin%200 == 0 {
				d.deliver(t)
			}
		}
		flush(t, d)
		d.rows(t, from+500, 0, 700) // rolled back
		d.Close()
		wantNoneOpen(t, c)
	}
	seen := map[string]int{}
	for _, r := range readCommitted(t, c, testTopic) {
		begin, _, _ := strings.Cut(string(r.Value), "/")
		seen[begin]++
	}
	for begin := 100; begin < 1600; begin += 100 {
		if n := seen[fmt.Sprint(begin)]; n != begin {
			t.Errorf("%d rows of %d", n, begin)
		}
	}
	if len(seen) != 15 {
		t.Errorf("rows of %v", seen)
	}
}

// TestTransactionsOfAnyWorkload has random work done, with whatever time it takes, and checks what the rules come to: every row is
// committed once and in order, each Kafka transaction has what its offset covers and at most as many records as there may be, and
// a MySQL transaction is only split where it has more.
func TestTransactionsOfAnyWorkload(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := cluster(t)
			r := rand.New(rand.NewPCG(seed, 7))
			d := exactlyOnce(t, c, func(cfg *ExactlyOnceConfig) {
				cfg.Window, cfg.MaxBytes = 1+r.IntN(3000), 1<<20
				if seed%2 == 0 {
					cfg.Boundaries = AtWholeTransactions
				}
			})
			d.making.Lock()
			d.longest = []time.Duration{time.Hour, time.Millisecond, 30 * time.Millisecond}[seed%3]
			d.making.Unlock()
			if r.IntN(2) == 0 {
				holdSome(c, r.Uint64())
			}
			sizes := map[string]int{}
			begin := int64(0)
			for total := 0; total < 60_000; {
				begin += 100
				n := int64(1 + r.IntN([]int{3, 100, 1500, 14_000}[r.IntN(4)]))
				for done := int64(0); done < n; {
					some := min(n-done, int64(1+r.IntN(3000)))
					d.rows(t, begin, done, some)
					if done += some; r.IntN(4) == 0 {
						d.deliver(t)
					}
				}
				if r.IntN(20) == 0 {
					time.Sleep(time.Duration(r.IntN(40)) * time.Millisecond)
				}
				d.commit(t, begin)
				if r.IntN(3) == 0 {
					d.deliver(t)
				}
				sizes[fmt.Sprint(begin)] = int(n)
				total += int(n)
			}
			flush(t, d)
			wantNoneOpen(t, c)
			seen := map[string]int{}
			for _, k := range committed(t, c) {
				last := ""
				for begin, n := range k.values {
					if len(begin) > len(last) || len(begin) == len(last) && begin > last {
						last = begin
					}
					seen[begin] += n
					whole := sizes[begin] <= mostInTransaction && d.longest == time.Hour || d.made.Boundaries == AtWholeTransactions
					if n != sizes[begin] && whole {
						t.Errorf("%s has %d rows of %s, which has %d", k, n, begin, sizes[begin])
					}
				}
				if k.records > mostInTransaction && (d.made.Boundaries != AtWholeTransactions || len(k.values) > 1) {
					t.Errorf("%s has %d records", k, k.records)
				}
				covers := k.offset.Pos/100*100 - 100
				if inside(k.offset) {
					covers = k.offset.Pos
				}
				if last != "" && (last != fmt.Sprint(covers) || inside(k.offset) && k.offset.Row != int64(seen[last]) || !inside(k.offset) && seen[last] != sizes[last]) {
					t.Errorf("%s: %d rows of %s are there then, of %d", k, seen[last], last, sizes[last])
				}
			}
			if !maps.Equal(seen, sizes) {
				t.Errorf("committed are %v, want %v", seen, sizes)
			}
			next := map[string]int{}
			for _, r := range readCommitted(t, c, testTopic) {
				of, row, _ := strings.Cut(string(r.Value), "/")
				n, _ := strconv.Atoi(row)
				key := fmt.Sprint(of, r.Partition)
				if before, found := next[key]; found && n != before+2 {
					t.Fatalf("row %d of %s comes after row %d", n, of, before)
				}
				next[key] = n
			}
		})
	}
}

// holdSome has the brokers take a while to end some transactions.
func holdSome(c *kfake.Cluster, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	c.ControlKey(int16(kmsg.EndTxn), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if r.IntN(3) == 0 {
			c.SleepControl(func() { time.Sleep(20 * time.Millisecond) })
		}
		return nil, nil, false
	})
}
