package bench

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/it"
)

// process is a started tool.
type process struct {
	*it.Process
	begun time.Time // just before it was executed
}

func start(t testing.TB, name string, command ...string) *process {
	t.Helper()
	begun := time.Now()
	return &process{it.Start(t, name, command...), begun}
}

// cpu is the time that the process, with all its threads, those that have ended among them, has been on a CPU.
func (p *process) cpu(t testing.TB) time.Duration {
	t.Helper()
	d, err := cpuOf(p.PID())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// cpuOf asks the clock that Linux keeps of each process. /proc/<pid>/stat tells the same time, in ticks of 10 ms.
func cpuOf(pid int) (time.Duration, error) {
	const scheduled = 2 // CPUCLOCK_SCHED: in nanoseconds, as the scheduler counts
	var at syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, uintptr(^pid<<3|scheduled), uintptr(unsafe.Pointer(&at)), 0); errno != 0 {
		return 0, fmt.Errorf("the CPU time of process %d: %w", pid, errno)
	}
	return time.Duration(at.Nano()), nil
}

// topics are those that a run of a tool writes to.
type topics struct {
	kafka  *it.Kafka
	client *kgo.Client
	names  []string
	least  time.Duration // what has to lie between two looks at their ends

	asked kmsg.ListOffsetsRequest
}

// most is how long nobody looks while nothing is near: each look costs the broker, and this process, some of the CPUs' time.
const most = 250 * time.Millisecond

// newTopics makes the topics of a run, all in the same way for every tool. They are removed at the end of the test. Those that nobody
// reads from their start again need not hold what they were given: the broker then removes it behind the newest.
func newTopics(t testing.TB, k *it.Kafka, partitions int, names []string, whole bool) *topics {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(k.Addr()), kgo.RetryTimeout(30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	s := &topics{
		kafka: k, client: c, names: names, asked: kmsg.NewListOffsetsRequest(),
		least: max(5*time.Millisecond, time.Duration(len(names)*partitions)*20*time.Microsecond),
	}
	s.asked.IsolationLevel = 1 // what is committed
	for _, name := range names {
		topic := kmsg.NewListOffsetsRequestTopic()
		topic.Topic = name
		for i := range partitions {
			p := kmsg.NewListOffsetsRequestTopicPartition()
			p.Partition = int32(i)
			topic.Partitions = append(topic.Partitions, p)
		}
		s.asked.Topics = append(s.asked.Topics, topic)
	}
	admin := kadm.NewClient(c)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	// What the last run wrote must not fill the memory.
	settings := map[string]*string{"file.delete.delay.ms": kadm.StringPtr("500"), "max.message.bytes": kadm.StringPtr("8388608")}
	if !whole {
		settings["segment.bytes"] = kadm.StringPtr("67108864")
		settings["retention.bytes"] = kadm.StringPtr("134217728")
	}
	for part := names; len(part) > 0; {
		some := part[:min(len(part), 500)]
		part = part[len(some):]
		made, err := admin.CreateTopics(ctx, int32(partitions), 1, settings, some...)
		if err == nil {
			err = made.Error()
		}
		if err != nil {
			t.Fatalf("making topics: %v", err)
		}
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		for part := names; len(part) > 0; {
			some := part[:min(len(part), 500)]
			part = part[len(some):]
			if _, err := admin.DeleteTopics(ctx, some...); err != nil {
				t.Logf("removing topics: %v", err)
			}
		}
		c.Close()
	})
	return s
}

// ends are the offsets behind the last record of each partition.
func (s *topics) ends(t testing.TB) map[string]map[int32]int64 {
	t.Helper()
	return s.list(t, -1)
}

// list asks the one broker there is, in one request, for the offsets at a time: -1 for the ends, -2 for the starts.
func (s *topics) list(t testing.TB, at int64) map[string]map[int32]int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	for i := range s.asked.Topics {
		for j := range s.asked.Topics[i].Partitions {
			s.asked.Topics[i].Partitions[j].Timestamp = at
		}
	}
	for {
		answer, err := s.client.SeedBrokers()[0].Request(ctx, &s.asked)
		if err != nil {
			t.Fatalf("counting records: %v", err)
		}
		var failed error
		all := map[string]map[int32]int64{}
		for _, topic := range answer.(*kmsg.ListOffsetsResponse).Topics {
			all[topic.Topic] = make(map[int32]int64, len(topic.Partitions))
			for _, p := range topic.Partitions {
				all[topic.Topic][p.Partition] = p.Offset
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					failed = fmt.Errorf("%s/%d: %w", topic.Topic, p.Partition, err)
				}
			}
		}
		if failed == nil {
			return all
		}
		// A topic is made before its leader knows of it.
		if ctx.Err() != nil || !kerr.IsRetriable(failed) {
			t.Fatalf("counting records: %v", failed)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// count is the number of records that were ever written to the topics and are committed, with those that end transactions.
func (s *topics) count(t testing.TB) int64 {
	t.Helper()
	return sum(s.ends(t))
}

func sum(offsets map[string]map[int32]int64) int64 {
	var n int64
	for _, partitions := range offsets {
		for _, o := range partitions {
			n += o
		}
	}
	return n
}

// each reads all records that the topics hold now.
func (s *topics) each(t testing.TB, see func(*kgo.Record) (more bool)) {
	t.Helper()
	ends, starts := s.ends(t), s.list(t, -2)
	open := 0
	from := map[string]map[int32]kgo.Offset{}
	for topic, partitions := range ends {
		from[topic] = map[int32]kgo.Offset{}
		for partition, end := range partitions {
			if end > starts[topic][partition] {
				from[topic][partition] = kgo.NewOffset().AtStart()
				open++
			}
		}
	}
	if open == 0 {
		return
	}
	c, err := kgo.NewClient(kgo.SeedBrokers(s.kafka.Addr()), kgo.ConsumePartitions(from), kgo.FetchMaxWait(200*time.Millisecond),
		kgo.FetchMaxBytes(8<<20), kgo.MaxConcurrentFetches(1), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for more := true; open > 0 && more; {
		fetches := c.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			t.Fatalf("reading records: %v", err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			end := ends[r.Topic][r.Partition]
			if r.Offset >= end || !more {
				return
			}
			if r.Offset == end-1 {
				open--
			}
			if !r.Attrs.IsControl() {
				more = see(r)
			}
		})
	}
}

// sample is how far a tool was at a moment.
type sample struct {
	at    time.Time
	count int64
	cpu   time.Duration
}

// patience is how long a tool may write nothing before it counts as stuck.
const patience = 3 * time.Minute

// watch waits until the topics hold so many records, and returns how far the tool was at each mark: when there were first as many or
// more. It looks rarely while no mark is near.
func (s *topics) watch(t testing.TB, p *process, marks ...int64) []sample {
	t.Helper()
	var reached []sample
	last := sample{at: time.Now()}
	for {
		now := sample{count: s.count(t), at: time.Now()}
		var perRecord time.Duration
		if now.count != last.count {
			now.cpu = p.cpu(t)
			for len(reached) < len(marks) && now.count >= marks[len(reached)] {
				reached = append(reached, now)
			}
			perRecord = now.at.Sub(last.at) / time.Duration(max(now.count-last.count, 1))
			last = now
		}
		if len(reached) == len(marks) {
			return reached
		}
		if p.Ended() {
			t.Fatalf("it ended after %d of %d records", now.count, marks[len(marks)-1])
		}
		if now.at.Sub(last.at) > patience {
			t.Fatalf("it has written %d of %d records, and nothing for %v", now.count, marks[len(marks)-1], patience)
		}
		wait := 4 * s.least // nothing is known of its speed
		if perRecord > 0 {
			wait = min(most, perRecord*time.Duration(marks[len(reached)]-now.count)*2/3)
		}
		time.Sleep(max(s.least, wait))
	}
}

// rest waits until nothing has come for a while, and returns how far the tool was then. Records that end transactions count, so that
// the last transaction may be missing when there are enough.
func (s *topics) rest(t testing.TB, p *process, last sample) sample {
	t.Helper()
	for time.Since(last.at) < 500*time.Millisecond {
		time.Sleep(s.least)
		if now := (sample{count: s.count(t), at: time.Now()}); now.count != last.count {
			now.cpu = p.cpu(t)
			last = now
		}
	}
	return last
}

// settled are the ends when they have not changed for a while.
func (s *topics) settled(t testing.TB, quiet time.Duration) map[string]map[int32]int64 {
	t.Helper()
	last, since := s.ends(t), time.Now()
	for time.Since(since) < quiet {
		time.Sleep(max(s.least, 20*time.Millisecond))
		if ends := s.ends(t); sum(ends) != sum(last) {
			last, since = ends, time.Now()
		}
	}
	return last
}
