package sim

import (
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// fault is something that goes wrong. do returns when it is over, and says whether it really happened.
type fault struct {
	name     string
	possible func(s *simulation) bool // nil: always
	only     mode                     // "": both
	do       func(s *simulation) bool
}

func onFile(s *simulation) bool    { return s.store == inFile }
func onTopic(s *simulation) bool   { return s.store == inTopic }
func withGTIDs(s *simulation) bool { return s.mysql.gtids }

// faults are all that can go wrong and that waiting heals.
var faults = slices.Concat([]fault{
	{name: "MySQL: connection cut after n bytes", do: cutStream},
	{name: "MySQL: half-open connection", do: halfOpen},
	{name: "MySQL: restart", do: func(s *simulation) bool { s.mysql.restart(s.upTo(20 * time.Second)); return true }},
	{name: "MySQL: failover to another server", possible: withGTIDs, do: func(s *simulation) bool { s.mysql.failover(s.upTo(10 * time.Second)); return true }},
	{name: "MySQL: FLUSH BINARY LOGS", do: func(s *simulation) bool { s.mysql.flushLogs(); return true }},
	{name: "MySQL: purge of what is done", do: purgeDone},
	{name: "MySQL: too many connections", do: refuseLogins},
	{name: "network: slow", do: func(s *simulation) bool {
		s.net.setSlow(s.upTo(400 * time.Millisecond))
		s.sleep(s.upTo(5 * time.Second))
		s.net.setSlow(0)
		return true
	}},
	{name: "Kafka: leaders move", do: func(s *simulation) bool { s.kafka.ShufflePartitionLeaders(); return true }},
	{name: "Kafka: coordinators move", do: func(s *simulation) bool { s.kafka.RehashCoordinators(); return true }},
	{name: "Kafka: a broker is down", do: func(s *simulation) bool { return s.brokersDown(1, 20*time.Second) }},
	{name: "Kafka: all brokers are down", do: func(s *simulation) bool { return s.brokersDown(brokers, 60*time.Second) }},
	{name: "process: SIGTERM", do: func(s *simulation) bool { return s.terminate() }},
	{name: "process: kill -9", do: func(s *simulation) bool {
		p := s.now()
		p.crash()
		return true
	}},
	{name: "process: frozen", do: alone(func(s *simulation) bool {
		p := s.now()
		thaw := p.freeze()
		s.sleep(s.upTo(60 * time.Second))
		thaw()
		return !p.isDead()
	})},
	{name: "disk: full", only: atLeastOnce, possible: onFile, do: func(s *simulation) bool {
		s.disk.setFull(true)
		s.sleep(s.upTo(15 * time.Second))
		s.disk.setFull(false)
		return s.disk.hits("full") > 0
	}},
	{name: "disk: rename fails", only: atLeastOnce, possible: onFile, do: func(s *simulation) bool { return s.diskFails("rename") }},
	{name: "disk: sync of the folder fails", only: atLeastOnce, possible: onFile, do: func(s *simulation) bool { return s.diskFails("sync") }},
	{name: "offsets: writes fail", possible: onTopic, do: func(s *simulation) bool {
		return s.brokerError(kerr.NotEnoughReplicas, kmsg.Produce, offsetsTopic, 1+s.intn(8))
	}},
	{name: "offsets: written, and said to be not", possible: onTopic, do: func(s *simulation) bool {
		return s.brokerError(kerr.NotEnoughReplicasAfterAppend, kmsg.Produce, offsetsTopic, 1+s.intn(3))
	}},
	{name: "offsets: connection cut after the request was delivered", only: atLeastOnce, possible: onTopic, do: func(s *simulation) bool {
		return s.cutRequest(forOffsets, keyProduce, cutAfter, 5)
	}},
	{name: "Kafka: connection cut before a request", do: func(s *simulation) bool { return s.cutRequest(forData, keyProduce, cutBefore, 5) }},
	{name: "Kafka: connection cut within a request", do: func(s *simulation) bool { return s.cutRequest(forData, keyProduce, cutAmid, 5) }},
	{name: "Kafka: connection cut after the request was delivered", do: func(s *simulation) bool { return s.cutRequest(forData, keyProduce, cutAfter, 5) }},
}, handOver, brokerErrors(), transactionFaults)

// brokerErrors are answers to requests for change events.
func brokerErrors() []fault {
	var all []fault
	add := func(err *kerr.Error, key kmsg.Key, what string) {
		// Of a topic that does not exist no broker says that it has no leader.
		possible := func(s *simulation) bool { return key != kmsg.Metadata || s.kafka.hasTopics() }
		all = append(all, fault{name: "Kafka: " + err.Message + " for " + what, possible: possible, do: func(s *simulation) bool {
			topic := ""
			if key == kmsg.Produce {
				topics := dataTopics()
				topic = topics[s.intn(len(topics))]
			}
			return s.brokerError(err, key, topic, 1+s.intn(6))
		}})
	}
	for _, err := range []*kerr.Error{
		kerr.NotEnoughReplicas, kerr.NotEnoughReplicasAfterAppend, kerr.RequestTimedOut, kerr.KafkaStorageError, kerr.NotLeaderForPartition, kerr.UnknownTopicOrPartition,
	} {
		add(err, kmsg.Produce, "records")
	}
	add(kerr.LeaderNotAvailable, kmsg.Metadata, "metadata")
	add(kerr.CoordinatorLoadInProgress, kmsg.InitProducerID, "a producer id")
	return all
}

// brokerError has the brokers answer n requests with an error. What is not asked for within a while is given up.
func (s *simulation) brokerError(err *kerr.Error, key kmsg.Key, topic string, n int) bool {
	f := kfake.Fault{Keys: []kmsg.Key{key}, Topic: topic, Err: err, Count: n}
	f.TopLevel = key == kmsg.InitProducerID || key == kmsg.EndTxn
	h := s.kafka.Fault(f)
	tries := 50
	if key == kmsg.InitProducerID {
		s.now().crash() // the next one asks for an id, when it has the lock
		tries = 125
	}
	for range tries {
		if h.Hits() >= n || s.over() {
			break
		}
		s.sleep(200 * time.Millisecond)
	}
	h.Remove()
	return h.Hits() > 0
}

// cutRequest cuts a connection at one of the next so many requests of a kind.
func (s *simulation) cutRequest(purpose string, key int16, how, most int) bool {
	done := s.kafka.cutNext(purpose, key, how, s.intn(most))
	defer s.kafka.cutNone()
	return s.happens(done, 10*time.Second)
}

// happens waits for something.
func (s *simulation) happens(done <-chan struct{}, most time.Duration) bool {
	select {
	case <-done:
		return true
	case <-time.After(most):
		return false
	}
}

func cutStream(s *simulation) bool {
	streams := s.mysql.streamsNow()
	if len(streams) == 0 {
		return false
	}
	done := make(chan struct{})
	var once sync.Once
	n := s.intn(8000)
	streams[len(streams)-1].end.breakAfter(n, func() { once.Do(func() { close(done) }) })
	return s.happens(done, 10*time.Second)
}

func halfOpen(s *simulation) bool {
	streams := s.mysql.streamsNow()
	if len(streams) == 0 {
		return false
	}
	streams[len(streams)-1].end.silence()
	s.sleep(4 * s.heartbeat)
	return true
}

func refuseLogins(s *simulation) bool {
	s.mysql.refuseLogins(true)
	s.mysql.stop()
	s.mysql.start()
	s.sleep(s.upTo(10 * time.Second))
	s.mysql.refuseLogins(false)
	return true
}

// purgeDone purges the files before the one of the stored offset.
func purgeDone(s *simulation) bool {
	_, o := s.notes.newest()
	if o.Side == nil || o.Side.Server != s.mysql.address() {
		return false
	}
	return s.mysql.purge(o.File) > 0
}

func (s *simulation) brokersDown(n int, most time.Duration) bool {
	list := slices.Clone(s.kafka.addresses)
	at := s.intn(len(list))
	list = append(list[at:], list[:at]...)[:n]
	s.kafka.setDown(true, list...)
	for _, purpose := range []string{forData, forOffsets, forLock} {
		for _, l := range s.now().connections(purpose) {
			if slices.Contains(list, l.peer) {
				l.end.abort()
			}
		}
	}
	s.sleep(s.upTo(most))
	s.kafka.setDown(false, list...)
	return true
}

func (s *simulation) diskFails(operation string) bool {
	before := s.disk.hits(operation)
	s.disk.failNext(operation, 1+s.intn(2))
	for range 50 {
		if s.disk.hits(operation) > before || s.over() {
			break
		}
		s.sleep(200 * time.Millisecond)
	}
	s.disk.failNext(operation, 0)
	return s.disk.hits(operation) > before
}

func (d *disk) setFull(full bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full = full
}

func (d *disk) failNext(operation string, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail[operation] = n
}

func (d *disk) hits(operation string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failures[operation]
}

// diskFault says whether an error is one that the disk was made to give.
func diskFault(err error) bool {
	return isErr(err, syscall.EIO) || isErr(err, syscall.ENOSPC)
}

// trap crashes a process at a point.
type trap struct {
	mu    sync.Mutex
	point string
	after int // times that it is passed before
	done  chan struct{}
}

// set has the n-th process crash that passes a point; what is returned is closed then.
func (t *trap) set(point string, after int) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.point, t.after, t.done = point, after, make(chan struct{})
	return t.done
}

func (t *trap) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.point = ""
}

func (t *trap) armed(point string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.point == point && t.after == 0
}

func (t *trap) trips(p *process, point string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.point != point {
		return false
	}
	if t.after--; t.after >= 0 {
		return false
	}
	t.point = ""
	close(t.done)
	return true
}

// crashAt has the process crash at a point.
func (s *simulation) crashAt(point string) bool {
	most := 30
	switch point {
	case pointBetween, pointBeforeOffset, pointAfterOffset, pointSynced, pointTorn, pointRenamed, pointSomeAcks:
		most = 3
	case pointBeforeSchema, pointAfterSchema:
		most = 1
	case pointLoaded, pointOpened:
		most = 1
		defer s.happens(s.trap.set(point, 0), 25*time.Second) // another one may have to wait for the lock
		s.now().crash()
		return true
	}
	done := s.trap.set(point, s.intn(most))
	defer s.trap.clear()
	return s.happens(done, 15*time.Second)
}

// everything is all that can happen in runs of a mode.
func everything(m mode) (names []string) {
	for _, f := range faults {
		if f.only == "" || f.only == m {
			names = append(names, f.name)
		}
	}
	var crashes []string
	for _, store := range []storeKind{inFile, inTopic} {
		for _, point := range points(m, store) {
			crashes = append(crashes, describe(point))
		}
	}
	slices.Sort(crashes)
	return append(append(names, slices.Compact(crashes)...), ends...)
}

func describe(point string) string { return fmt.Sprintf("crash %s", point) }
