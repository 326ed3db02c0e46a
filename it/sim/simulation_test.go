package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tidemark-cdc/tidemark/emitter"
)

const flushTimeout = 5 * time.Second

// simulation is one run: a seed, the world, and the process of the moment.
type simulation struct {
	seed   uint64
	mode   mode
	store  storeKind
	folder string // for the file of definitions
	fault  int    // faults to come at most; 0: none

	flushInterval time.Duration
	heartbeat     time.Duration // of the server
	maxBytes      int           // of records on their way
	window        int           // of the tracker
	lasts         time.Duration // the time of faults
	locked        bool          // a group says which process runs
	session       time.Duration // of its members
	old           bool          // the brokers are of Kafka 3.9
	timeout       time.Duration // of transactions
	boundaries    emitter.Boundaries
	replaced      chan struct{} // has something when another process has been begun beside the one of the moment
	closing       chan struct{} // closed when no process is to be begun any more
	definitions   definitions
	changes       int // that must have arrived

	plan *rand.Rand // of which faults come when: the same for a seed each time; one goroutine's

	net   *network
	mysql *servers
	kafka *cluster
	disk  *disk
	notes *notes
	trap  trap

	mu         sync.Mutex
	rng        *rand.Rand // of how faults go, in whatever order they ask
	process    *process
	processes  []*process
	turn       *turn    // of the process that was allowed something last
	rival      *process // has been replaced by the process of the moment, and may not know it
	crashes    chan *process
	handing    bool // one process takes over from another, or is frozen: not both without transactions
	stopping   bool // processes are ended on purpose, and not started again
	ended      map[int]time.Time
	disturbed  []span
	list       []violation
	log        bytes.Buffer // what the processes log
	story      []string     // faults and what came of them
	hits       map[string]int
	ending     *ending
	checked    counts
	exits      error          // what a process ended with that nothing excuses
	supervised sync.WaitGroup // and what waits for something else
}

// span is when a fault was there that can keep acknowledgements or offsets back.
type span struct{ from, to time.Time }

func newSimulation(seed uint64, folder string) (*simulation, error) {
	rng := rand.New(rand.NewPCG(seed, 1))
	s := &simulation{
		seed: seed, folder: folder, rng: rng, fault: 6 + rng.IntN(10),
		store:         []storeKind{inFile, inTopic}[rng.IntN(2)],
		flushInterval: time.Duration(500+rng.IntN(4500)) * time.Millisecond,
		heartbeat:     time.Duration(1+rng.IntN(5)) * time.Second,
		lasts:         time.Duration(40+rng.IntN(50)) * time.Second,
		crashes:       make(chan *process, 16),
		replaced:      make(chan struct{}, 16),
		closing:       make(chan struct{}),
		mode:          []mode{atLeastOnce, exactlyOnce}[rng.IntN(2)],
		old:           rng.IntN(3) == 0,
		timeout:       time.Duration(10+rng.IntN(50)) * time.Second,
		boundaries:    []emitter.Boundaries{emitter.AtCommits, emitter.AtWholeTransactions, emitter.AtIntervals}[rng.IntN(3)],
		ended:         make(map[int]time.Time),
		hits:          make(map[string]int),
	}
	if s.mode == exactlyOnce {
		s.store = inTopic
	}
	s.locked, s.session = s.store == inTopic && rng.IntN(4) > 0, time.Duration(6+rng.IntN(5))*time.Second
	if rng.IntN(3) == 0 { // little room, so that the loop waits for Kafka
		s.maxBytes, s.window = 64<<10, 1<<(5+rng.IntN(5))
	}
	gtids := rng.IntN(4) > 0
	full := rng.IntN(2) == 0
	s.plan = rand.New(rand.NewPCG(seed, 5))
	s.net = newNetwork(rand.New(rand.NewPCG(seed, 2)))
	s.mysql = newServers(s.net, newWorkload(rand.New(rand.NewPCG(seed, 3)), full), gtids, map[bool]int{true: 2 + rng.IntN(2), false: 1}[gtids])
	s.disk = newDisk(rand.New(rand.NewPCG(seed, 4)))
	s.notes = &notes{s: s}
	var err error
	s.kafka, err = newCluster(s.net, s.old)
	s.say("seed %d: %s, offsets in a %s, flush interval %v, heartbeat %v, GTIDs %v, binlog_row_metadata full %v, window %d, locked %v (%v), boundaries %d, Kafka 3.9 %v, transaction timeout %v", seed, s.mode, s.store, s.flushInterval, s.heartbeat, gtids, full, s.window, s.locked, s.session, s.boundaries, s.old, s.timeout)
	return s, err
}

// grouped says that group.id is set, so that there are transactional ids. Without a lock then it is as if the group may not be used.
func (s *simulation) grouped() bool { return s.mode == exactlyOnce || s.locked }

// say tells the story of the run.
func (s *simulation) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.story = append(s.story, fmt.Sprintf("%10v  ", clock(time.Now()))+fmt.Sprintf(format, args...))
}

func (s *simulation) violated(check, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) < 20 {
		s.list = append(s.list, violation{check, fmt.Sprintf(format, args...)})
	}
}

func (s *simulation) intn(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rng.IntN(n)
}

func (s *simulation) coin() bool { return s.intn(2) == 0 }

func (s *simulation) upTo(d time.Duration) time.Duration {
	return time.Duration(s.intn(int(d/time.Millisecond))+1) * time.Millisecond
}

func (s *simulation) sleep(d time.Duration) { time.Sleep(d) }

// over says that no fault is to last longer.
func (s *simulation) over() bool { return time.Since(begin) > s.lasts+time.Minute }

// now is the process of the moment.
func (s *simulation) now() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// logger is a process's log, which is shown when a run fails.
func (s *simulation) logger(p *process) *zap.Logger {
	cfg := zap.NewDevelopmentEncoderConfig()
	cfg.EncodeTime = func(t time.Time, e zapcore.PrimitiveArrayEncoder) { e.AppendString(clock(t).String()) }
	core := zapcore.NewCore(zapcore.NewConsoleEncoder(cfg), zapcore.AddSync(&lockedLog{s}), zap.InfoLevel)
	return zap.New(core).With(zap.Int("process", p.number))
}

type lockedLog struct{ s *simulation }

func (l *lockedLog) Write(b []byte) (int, error) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	if l.s.log.Len() > 1<<20 {
		l.s.log.Reset()
	}
	return l.s.log.Write(b)
}

// next is the process of the moment, or, when p was the last one, another one that it begins.
func (s *simulation) next(p *process) *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != p {
		return s.process
	}
	return s.start()
}

// start begins a process. The lock is held.
func (s *simulation) start() *process {
	ctx, cancel := context.WithCancelCause(context.Background())
	p := &process{s: s, number: len(s.processes) + 1, ctx: ctx, cancel: cancel, done: make(chan struct{}), links: make(map[*link]bool)}
	s.process = p
	s.processes = append(s.processes, p)
	go func() {
		defer close(p.done)
		p.err = stopped(p.ctx, p.run())
		s.mu.Lock()
		defer s.mu.Unlock()
		if _, crashed := s.ended[p.number]; !crashed {
			s.ended[p.number] = time.Now()
		}
	}()
	return p
}

// crashed hears of the end of a process.
func (s *simulation) crashed(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended[p.number] = time.Now()
	if s.locked && !s.stopping {
		s.supervised.Go(func() { s.bury(p) })
	}
	select {
	case s.crashes <- p:
	default: // nobody listens any more
	}
}

// supervise starts a process whenever there is none, until the end.
func (s *simulation) supervise() {
	p := s.next(nil)
	for {
		select {
		case <-s.replaced:
			p = s.now()
			continue
		case <-s.closing:
			return
		case dead := <-s.crashes:
			if dead != p {
				continue
			}
		case <-p.done:
			if p.isDead() {
				break // its crash is heard of later, or was before it was known here
			}
			s.mu.Lock()
			stopping := s.stopping
			s.mu.Unlock()
			switch {
			case p.err == nil && p.ctx.Err() != nil:
			case replacedBy(p.err) && s.yield(p) != nil:
				s.say("process %d ends, since another one has taken its place: %v", p.number, p.err)
				p = s.now()
				continue
			case harmless(p.err):
				s.say("process %d ends: %v", p.number, p.err)
			default:
				s.mu.Lock()
				s.exits = p.err
				s.mu.Unlock()
				s.say("process %d ends: %v", p.number, p.err)
				return
			}
			if stopping {
				return
			}
		}
		s.sleep(s.upTo(3 * time.Second))
		p = s.next(p)
	}
}

// harmless says of an error that a process may end with it, and be started again by what looks after it.
func harmless(err error) bool { return diskFault(err) || errors.Is(err, emitter.ErrTimedOut) }

// terminate stops the process as SIGTERM does; its supervisor starts another one.
func (s *simulation) terminate() bool {
	p := s.now()
	p.cancel(context.Canceled)
	if !s.happens(p.done, time.Minute) {
		s.violated("C12", "process %d does not stop within a minute", p.number)
	}
	return !p.isDead()
}

// run is the whole run; what it finds is in list.
func (s *simulation) run() {
	defer s.close()
	s.work()
	s.heal()
	s.arrive()
	s.idle()
	_, s.changes = s.mysql.total()
	if len(s.list) == 0 {
		s.end()
	}
	h, err := s.finish()
	if err != nil {
		s.violated("C1", "%v", err)
		return
	}
	s.list = append(s.list, h.check()...)
	s.checked = h.counts()
}

// work has the primary work, the process run, and faults come.
func (s *simulation) work() {
	s.mysql.start()
	for range 30 { // what was there before the first start
		s.mysql.execute()
	}
	s.supervised.Go(s.supervise)
	working := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		for {
			select {
			case <-working:
				return
			case <-time.After(s.mysql.work.pause()):
				s.mysql.execute()
			}
		}
	})
	s.inject()
	close(working)
	work.Wait()
}

// inject brings faults, one after the other or two at a time.
func (s *simulation) inject() {
	var all sync.WaitGroup
	for range s.fault {
		s.sleep(time.Duration(s.plan.Int64N(int64(s.lasts) / int64(s.fault))))
		f := s.choose()
		together := s.plan.IntN(4) == 0
		from := time.Now()
		s.say("%s", f.name)
		run := func() {
			happened := f.do(s)
			s.mu.Lock()
			if happened {
				s.hits[f.name]++
			}
			s.disturbed = append(s.disturbed, span{from, time.Now()})
			s.mu.Unlock()
			if !happened {
				s.say("did not come about: %s", f.name)
			}
		}
		if together {
			all.Go(run)
		} else {
			run()
		}
	}
	if s.fault == 0 {
		s.sleep(s.lasts)
	}
	s.sleep(s.upTo(5 * time.Second))
	all.Wait()
}

// choose picks a fault: of those that few runs can have more often than of the others.
func (s *simulation) choose() fault {
	if s.plan.IntN(3) == 0 {
		all := points(s.mode, s.store)
		point := all[s.plan.IntN(len(all))]
		return fault{name: describe(point), do: func(s *simulation) bool { return s.crashAt(point) }}
	}
	from := faults
	switch s.plan.IntN(6) {
	case 0:
		from = handOver
	case 1:
		from = transactionFaults
	}
	possible := func(f fault) bool { return (f.only == "" || f.only == s.mode) && (f.possible == nil || f.possible(s)) }
	if !slices.ContainsFunc(from, possible) {
		from = faults
	}
	for {
		if f := from[s.plan.IntN(len(from))]; possible(f) {
			return f
		}
	}
}

// heal ends all faults.
func (s *simulation) heal() {
	s.say("no more faults")
	s.trap.clear()
	s.kafka.cutNone()
	s.kafka.setDown(false, s.kafka.addresses...)
	s.net.setSlow(0)
	s.mysql.refuseLogins(false)
	s.mysql.start()
	s.disk.setFull(false)
}

// arrive waits until everything has come and its offset is stored, with no help.
func (s *simulation) arrive() {
	transactions, changes := s.mysql.total()
	const most = 10 * time.Minute
	for from := time.Now(); time.Since(from) < most; s.sleep(250 * time.Millisecond) {
		if done, _ := s.notes.newest(); done.transactions == transactions && done.changes == changes {
			return
		}
		if s.exit() != nil {
			break
		}
	}
	done, o := s.notes.newest()
	s.violated("C12", "of %d transactions and %d changes, %v are done %v after the faults have ended (%v)", transactions, changes, done, most, o)
}

// finish stops the process and returns what is to be checked.
func (s *simulation) finish() (*history, error) {
	for range 100 { // one may just have ended, and the next not begun
		if p := s.now(); !p.isDead() && p.ctx.Err() == nil {
			break
		}
		s.sleep(100 * time.Millisecond)
	}
	s.mu.Lock()
	s.stopping = true
	exits := s.exits
	s.mu.Unlock()
	if exits != nil && s.ending == nil {
		s.violated("C12", "the process has ended with what waiting heals: %v", exits)
	} else if exits == nil {
		p := s.now()
		s.terminate()
		if p.err != nil {
			s.violated("C12", "the process does not stop in order: %v", p.err)
		}
	}
	for _, p := range s.processes {
		p.cancel(context.Canceled)
		if !s.happens(p.done, 2*time.Minute) {
			s.violated("C12", "process %d does not end", p.number)
			p.crash()
			<-p.done
		}
	}
	close(s.closing)
	s.supervised.Wait()
	return s.history()
}

// history is what is to be checked.
func (s *simulation) history() (*history, error) {
	level := kgo.ReadUncommitted()
	saves := slices.DeleteFunc(slices.Clone(s.notes.saves), func(s *save) bool { return s.refused })
	var offsets []*kgo.Record
	if s.mode == exactlyOnce {
		level = kgo.ReadCommitted()
		var err error
		if saves, offsets, err = s.committedSaves(); err != nil {
			return nil, err
		}
	}
	log, err := s.kafka.log(dataTopics(), level)
	if err != nil {
		return nil, err
	}
	// What came before the first offset was not to be brought. One that was not stored is not the first: the next attempt begins anew.
	for len(saves) > 0 && slices.ContainsFunc(s.notes.loads, func(l load) bool { return l.none && l.at.After(saves[0].at) }) {
		saves = saves[1:]
	}
	first := 0
	if len(saves) > 0 {
		first = saves[0].done.changes
	}
	return &history{
		exact: s.mode == exactlyOnce, whole: s.boundaries == emitter.AtWholeTransactions, offsets: offsets, first: first,
		rows: s.mysql.rows, changes: s.mysql.changes[first:s.changes], log: log, loads: s.notes.loads, saves: saves,
		complete: true, flush: s.flushInterval, ended: s.ended,
		calm: func(from, to time.Time) bool {
			for _, d := range s.disturbed {
				if d.from.Add(-time.Second).Before(to) && d.to.Add(15*time.Second).After(from) {
					return false
				}
			}
			return true
		},
	}, nil
}

func (s *simulation) close() {
	s.mysql.end()
	s.kafka.Close()
}

// report is what is shown of a run that failed.
func (s *simulation) report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", strings.Join(s.story, "\n"))
	for _, v := range s.list {
		fmt.Fprintf(&b, "FAILED %v\n", v)
	}
	return b.String()
}

func isErr(err, target error) bool { return errors.Is(err, target) }

// address is the server_uuid of the primary.
func (s *servers) address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.primary.uuid
}
