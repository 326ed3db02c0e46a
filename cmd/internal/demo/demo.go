// Package demo shows the whole loop with nothing else installed: a recorded binlog is read by a worker process, which
// writes to a Kafka broker embedded here, is killed in the middle of a transaction, and goes on at the exact row.
package demo

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/offset"
)

// Binlog is a binlog recorded from a MySQL 9.7 server with GTIDs: seven transactions on the tables customers and orders
// of the database shop.
//
//go:embed mysql-bin.000002
var recorded []byte

const (
	binlogName = "mysql-bin.000002"
	// killAfter is the record after which the worker is killed: inside the transaction that changes ten rows.
	killAfter = 12
)

// Key is the key of the offset that the demo's worker stores.
var Key = offset.Key{Connector: "demo", Server: "demo"}

// Worker returns the command of a worker process that reads the binlog, writes to the broker and keeps its offset in
// the file. After pauseAfter rows (0: never) it stands still until it is killed.
type Worker func(ctx context.Context, broker, binlogFile, offsetFile string, pauseAfter int) *exec.Cmd

// Run runs the demo and returns when it has ended, within seconds. It returns an error if a record is lost, repeated or
// out of order, so that the demo proves what it says. The URL of a schema registry says that the worker writes Avro with
// schemas registered there; "": JSON.
func Run(ctx context.Context, out io.Writer, worker Worker, openStore func(path string) (offset.Store, error), registry string) error {
	dir, err := os.MkdirTemp("", "tidemark-demo-")
	if err != nil {
		return fmt.Errorf("the demo needs a folder for its files in %s, which TMPDIR chooses: %w", os.TempDir(), err)
	}
	defer os.RemoveAll(dir)
	d := &demo{registry: registry, out: out, worker: worker, openStore: openStore, binlogFile: filepath.Join(dir, binlogName), offsetFile: filepath.Join(dir, "offsets.dat")}
	if err := os.WriteFile(d.binlogFile, recorded, 0o600); err != nil {
		return err
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DefaultNumPartitions(1), kfake.AllowAutoTopicCreation())
	if err != nil {
		return fmt.Errorf("the embedded broker: %w", err)
	}
	defer cluster.Close()
	d.broker = cluster.ListenAddrs()[0]
	d.consumer, err = kgo.NewClient(kgo.SeedBrokers(d.broker), kgo.ConsumeRegex(), kgo.ConsumeTopics(`^demo\..*`),
		kgo.MetadataMinAge(10*time.Millisecond), kgo.MetadataMaxAge(200*time.Millisecond), kgo.FetchMaxWait(50*time.Millisecond))
	if err != nil {
		return err
	}
	defer d.consumer.Close()
	if registry != "" {
		if d.avro, err = newAvroReader(registry); err != nil {
			return err
		}
	}
	return d.run(ctx)
}

type demo struct {
	out                            io.Writer
	worker                         Worker
	openStore                      func(string) (offset.Store, error)
	broker, binlogFile, offsetFile string
	consumer                       *kgo.Client
	registry                       string      // "": records are JSON
	avro                           *avroReader // nil: records are JSON
	seen                           []change    // every record of the topics, as they came
}

// change is what the demo shows and checks of one record.
type change struct {
	topic, key, op string
	coordinate     string // file:pos:row and the step within the row
	gtid           string
	before, after  string
}

func (d *demo) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	want, atKill, err := d.expected(ctx)
	if err != nil {
		return err
	}
	d.say(`Tidemark demo
Embedded here: a Kafka broker (franz-go's kfake, in this process, on %s) and a binlog that a MySQL 9.7 server wrote.
The rest is what runs in production: reader, encoder, producer, offset file. It is slowed down so that you can watch.
`, d.broker)
	if d.registry != "" {
		d.say("Records are Avro. Their schemas are in the registry at %s; they are shown here as a consumer reads them.\n", withoutLogin(d.registry))
	}

	first, err := d.start(ctx, killAfter)
	if err != nil {
		return err
	}
	if err := d.consume(ctx, killAfter); err != nil {
		return err
	}
	// The worker waits there until its offset is stored, which makes the resume exact: what is not stored yet when a
	// process is killed is written once more, never lost.
	if err := d.settled(ctx, atKill); err != nil {
		return err
	}
	if err := first.Process.Kill(); err != nil {
		return err
	}
	_ = first.Wait() // its error is that it was killed
	stored, err := d.stored(ctx)
	if err != nil {
		return err
	}
	d.say(`
kill -9 %d, in the middle of transaction %s.
Stored offset: %s
  which says: go back to the BEGIN at %s:%d, and there skip %d events and %d row(s) of the next one.
`, first.Process.Pid, d.seen[len(d.seen)-1].gtid, stored, stored.File, stored.Pos, stored.Event, stored.Row)

	second, err := d.start(ctx, 0)
	if err != nil {
		return err
	}
	if err := d.consume(ctx, len(want)); err != nil {
		return err
	}
	if err := second.Wait(); err != nil {
		return fmt.Errorf("the worker: %w", err)
	}
	if err := d.drain(ctx); err != nil {
		return err
	}
	stored, err = d.stored(ctx)
	if err != nil {
		return err
	}
	if err := d.check(want); err != nil {
		return err
	}
	d.say(`
The binlog is at its end. Stored offset: %s
Checked: the binlog has %d records to give, the topics have the same %d, each once and in order. Nothing lost, nothing repeated.

The same on your own MySQL, printed here, without Kafka and without leaving a trace:
  tidemark tail 'mysql://USER:PASSWORD@HOST:3306/DATABASE'
`, stored, len(want), len(d.seen))
	return nil
}

func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.out, format, args...) }

// start starts a worker.
func (d *demo) start(ctx context.Context, pauseAfter int) (*exec.Cmd, error) {
	cmd := d.worker(ctx, d.broker, d.binlogFile, d.offsetFile, pauseAfter)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("the worker: %w", err)
	}
	d.say("\nworker started, process %d\n", cmd.Process.Pid)
	return cmd, nil
}

// consume shows records as they come until n have been seen since the beginning.
func (d *demo) consume(ctx context.Context, n int) error {
	for len(d.seen) < n {
		if err := d.poll(ctx); err != nil {
			return fmt.Errorf("%d of %d records came: %w", len(d.seen), n, err)
		}
	}
	return nil
}

// drain gives records that should not come a moment to come.
func (d *demo) drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	for {
		if err := d.poll(ctx); err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				return nil
			}
			return err
		}
	}
}

func (d *demo) poll(ctx context.Context) error {
	fetches := d.consumer.PollFetches(ctx)
	if err := ctx.Err(); err != nil && fetches.NumRecords() == 0 {
		return err
	}
	var failed error
	fetches.EachRecord(func(r *kgo.Record) {
		c, err := d.parse(ctx, r)
		if err != nil {
			failed = err
			return
		}
		d.seen = append(d.seen, c)
		d.show(c)
	})
	return failed
}

func (d *demo) show(c change) {
	switch {
	case c.op == "":
		d.say("  %-20s %s  tombstone\n", c.topic, c.key)
	case c.after == "null":
		d.say("  %-20s %s  %s  %s\n", c.topic, c.key, c.op, c.before)
	default:
		d.say("  %-20s %s  %s  %s\n", c.topic, c.key, c.op, c.after)
	}
}

// parse reads a record of the demo's topics.
func (d *demo) parse(ctx context.Context, r *kgo.Record) (change, error) {
	key, err := d.avro.text(ctx, r.Key)
	if err != nil {
		return change{}, err
	}
	c := change{topic: r.Topic, key: string(key)}
	if r.Value == nil {
		return c, nil
	}
	text, err := d.avro.text(ctx, r.Value)
	if err != nil {
		return c, err
	}
	var v struct {
		Before, After json.RawMessage
		Op            string
		Source        struct {
			File     string
			GTID     json.RawMessage
			Pos, Row int64
		}
	}
	if err := json.Unmarshal(text, &v); err != nil {
		return c, fmt.Errorf("record %d of %s is not an event: %w", r.Offset, r.Topic, err)
	}
	if err := json.Unmarshal(branch(v.Source.GTID), &c.gtid); err != nil {
		return c, fmt.Errorf("record %d of %s has no GTID: %w", r.Offset, r.Topic, err)
	}
	c.op, c.before, c.after = v.Op, string(branch(v.Before)), string(branch(v.After))
	c.coordinate = fmt.Sprintf("%s:%d:%d", v.Source.File, v.Source.Pos, v.Source.Row)
	return c, nil
}

// expected counts what the binlog has to give, by topic, with the reader alone, and gives the offset that holds after
// the row at which the worker is killed.
func (d *demo) expected(ctx context.Context) (want []string, atKill offset.Offset, err error) {
	source, err := binlog.OpenFiles(ctx, binlog.Config{Captured: func(string, string) bool { return true }}, []string{d.binlogFile}, binlog.Start{Oldest: true})
	if err != nil {
		return nil, atKill, err
	}
	defer source.Close()
	row := 0
	for {
		event, err := source.Read(ctx)
		if errors.Is(err, io.EOF) {
			return want, atKill, nil
		}
		if err != nil {
			return nil, atKill, err
		}
		rows, ok := event.(*binlog.Rows)
		if !ok {
			continue
		}
		for rows.Next() {
			if row++; row == killAfter {
				atKill = rows.OffsetAfter()
			}
			at := fmt.Sprintf("demo.%s.%s %s:%d:%d", rows.Table.Database, rows.Table.Name, rows.Info.File, rows.Info.Pos, rows.Row)
			switch {
			case rows.Op == binlog.Create:
				want = append(want, at+" c")
			case rows.Op == binlog.Delete:
				want = append(want, at+" d", "tombstone")
			case string(rows.Before[rows.Table.Key[0]]) != string(rows.After[rows.Table.Key[0]]):
				want = append(want, at+" d", "tombstone", at+" c")
			default:
				want = append(want, at+" u")
			}
		}
		if err := rows.Err(); err != nil {
			return nil, atKill, err
		}
	}
}

// check compares what came with what the binlog has, topic by topic.
func (d *demo) check(want []string) error {
	if len(d.seen) != len(want) {
		return fmt.Errorf("the topics have %d records, the binlog gives %d", len(d.seen), len(want))
	}
	byTopic := map[string][]string{}
	topic := ""
	for _, w := range want {
		if w != "tombstone" {
			topic, _, _ = strings.Cut(w, " ")
		}
		byTopic[topic] = append(byTopic[topic], w)
	}
	for i, c := range d.seen {
		got := "tombstone"
		if c.op != "" {
			got = c.topic + " " + c.coordinate + " " + c.op
		}
		rest := byTopic[c.topic]
		if len(rest) == 0 || rest[0] != got {
			return fmt.Errorf("record %d is %q, want %v", i, got, rest)
		}
		byTopic[c.topic] = rest[1:]
	}
	return nil
}

// stored reads the offset file, which no worker may have open.
func (d *demo) stored(ctx context.Context) (offset.Offset, error) { return d.load(ctx, d.offsetFile) }

func (d *demo) load(ctx context.Context, path string) (offset.Offset, error) {
	store, err := d.openStore(path)
	if err != nil {
		return offset.Offset{}, err
	}
	defer store.Close()
	return store.Load(ctx, Key)
}

// settled waits until the worker, which stands still, has stored the offset of its last row. The worker has the file
// locked, so a copy of it is read; the file is replaced at once, so the copy is a whole one.
func (d *demo) settled(ctx context.Context, want offset.Offset) error {
	seen := d.offsetFile + ".seen"
	for {
		data, err := os.ReadFile(d.offsetFile)
		if err == nil {
			if err := os.WriteFile(seen, data, 0o600); err != nil {
				return err
			}
			stored, err := d.load(ctx, seen)
			if err != nil {
				return err
			}
			if stored.Equal(want) {
				return nil
			}
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the worker does not store the offset of its last row: %w", ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
