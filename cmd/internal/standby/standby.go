// Package standby has one of several processes with the same configuration run a connector, while the others wait to take over.
package standby

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/emitter/kafka"
)

// Config says which lock decides.
type Config struct {
	Lock kafka.LockConfig // ClientID is what this process's own begins with

	// Anew is called before the connector is run when another process of the group may have run it since this one did; nil: nobody hears
	// of that. When it is not, and the transactional id is another producer's all the same, that one does not ask the group.
	Anew func()

	// Fenced tells the errors of a connector to whose transactional id another producer has come; nil: there are none.
	Fenced func(error) bool
	// LastUse says of such an error until when at least the id was this process's; zero, or nil: that is not known.
	LastUse func(error) time.Time

	// Replaced tells those of one whose stream another process of the connector has taken from it at the database; nil: there are none.
	Replaced func(error) bool

	Log *zap.Logger
}

// FencedError is the error of a connector that another instance has fenced though the group has given the lock to this process: that one
// does not ask the group. Waiting would not end, and going on would fence it in turn.
type FencedError struct{ Cause error }

func (e *FencedError) Error() string {
	return fmt.Sprintf("fenced by another instance, which does not belong to the group of this one: a Kafka Connect task with exactly-once support of the same group.id and name, or a tidemark that is not allowed "+
		"to use the group. Stop one of the two before this one is started again: %v", e.Cause)
}

// Unwrap is the fault that showed it.
func (e *FencedError) Unwrap() error { return e.Cause }

// ExitCode is the exit code of a process that ends for it: EX_TEMPFAIL.
func (e *FencedError) ExitCode() int { return 75 }

// Standby is this process as one of those that may run a connector.
type Standby struct {
	lock     *kafka.Lock
	says     string // of what this process would run
	log      *zap.Logger
	fenced   func(error) bool
	replaced func(error) bool
	lastUse  func(error) time.Time
	base     string
	me       process
	run      func(ctx context.Context, may func() bool) error
	seen     chan sight
	stop     context.CancelFunc
	refused  atomic.Bool // may has been false in this turn
	free     atomic.Bool // the group turned out to be one that may not be used
	waits    bool        // it was said that this process stands by
	retook   time.Time   // when it went on though fenced or replaced

	anew    func()
	tenancy int
	began   time.Time // the first turn of the tenancy; zero: the next turn is the first one
	decided time.Time // when the group had given the lock to this process, in the tenancy
}

// New begins to look at the group, without waiting, so that Run need not. Close ends that.
func New(ctx context.Context, cfg Config) (*Standby, error) { return newAs(ctx, self(), cfg) }

func newAs(ctx context.Context, me process, cfg Config) (*Standby, error) {
	base := cfg.Lock.ClientID
	cfg.Lock.ClientID = me.clientID(base)
	if cfg.Lock.Log == nil {
		cfg.Lock.Log = cfg.Log
	}
	if cfg.LastUse == nil {
		cfg.LastUse = func(error) time.Time { return time.Time{} }
	}
	if cfg.Anew == nil {
		cfg.Anew = func() {}
	}
	lock, err := kafka.NewLock(cfg.Lock)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	s := &Standby{
		lock: lock, says: cfg.Lock.Says, log: cfg.Log, fenced: orNever(cfg.Fenced), replaced: orNever(cfg.Replaced), lastUse: cfg.LastUse, base: base, me: me, seen: make(chan sight, 1), stop: stop, anew: cfg.Anew,
	}
	go func() { s.seen <- s.look(ctx) }()
	return s, nil
}

func orNever(is func(error) bool) func(error) bool {
	if is == nil {
		return func(error) bool { return false }
	}
	return is
}

// Close ends the connections.
func (s *Standby) Close() {
	s.stop()
	s.lock.Close()
}

// Run calls run whenever this process is the one to run the connector, until ctx ends or run returns for another reason than that the lock
// is lost. run has to return soon when its context ends. It asks may right before it sends or stores anything: false says that
// another process may run by now. While ctx ends, may stays true until run has returned, so that it can store where it is; only then
// the lock is given back, upon which a waiting process takes over at once. Run is to be called once.
//
// A process that is alone in the group does not wait for the group's decision. One whose group may not be used runs without a lock, and
// says so.
func (s *Standby) Run(ctx context.Context, run func(ctx context.Context, may func() bool) error) error {
	s.run = run
	seen := sight{err: context.Canceled}
	select {
	case seen = <-s.seen:
	case <-ctx.Done():
	}
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.Is(seen.err, kafka.ErrLockNotAllowed):
		s.unlocked(seen.err)
		return s.fate(run(ctx, s.may))
	case seen.err != nil:
		return seen.err
	}
	if len(seen.alive) > 0 {
		s.say(seen.alive)
	}
	return s.member(ctx, len(seen.alive) == 0)
}

// sight is who was in the group.
type sight struct {
	alive []kafka.LockMember // those that may be alive
	err   error
}

// look lists the processes of the group before this one is in it. It waits while Kafka cannot be reached.
func (s *Standby) look(ctx context.Context) sight {
	members, err := s.lock.Members(ctx)
	alive := slices.DeleteFunc(members, func(m kafka.LockMember) bool { return processOf(s.base, m.Client).dead(s.me) })
	return sight{alive, err}
}

// enter returns when this process is in the group: with the lock if nobody else is. It takes those of this host that have died out of
// the group, so that nobody waits for them: then this process has the lock at once, or another one that stands by. A group without
// members makes the first one wait, so that is done when this process is one.
func (s *Standby) enter(ctx context.Context) {
	removed := map[string]bool{}
	for {
		others, err := s.lock.Claim(ctx)
		if err != nil && ctx.Err() == nil {
			s.log.Debug("the members of the group could not be asked for; this process waits for what the group decides", zap.Error(err))
		}
		dead := slices.DeleteFunc(others, func(m kafka.LockMember) bool { return removed[m.ID] || !processOf(s.base, m.Client).dead(s.me) })
		if len(dead) == 0 {
			return
		}
		if err := s.lock.Remove(ctx, "the process has died", dead...); err != nil {
			s.log.Debug("a process that has died could not be taken out of the group; it falls out when its session has timed out", zap.Error(err))
			return
		}
		for _, m := range dead {
			removed[m.ID] = true
		}
	}
}

// unlocked says that there is no lock.
func (s *Standby) unlocked(why error) {
	s.free.Store(true)
	s.log.Warn("the connector runs without a standby: nothing keeps another process with the same configuration from running it as well", zap.Error(why))
}

// fate is the error of a connector that has ended though nobody wanted it to.
func (s *Standby) fate(err error) error {
	if err != nil && s.fenced(err) {
		return &FencedError{err}
	}
	return err
}

// member runs the connector turn by turn while the membership is kept up beside it. alone says that nobody else was in the group.
func (s *Standby) member(ctx context.Context, alone bool) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx)) // the lock is held until the connector has stopped
	entering, entered := context.WithCancel(ctx)
	broken := make(chan error, 1)
	var membership sync.WaitGroup
	membership.Go(func() {
		if err := s.lock.Run(life); err != nil {
			broken <- err
			entered()
		}
	})
	defer func() {
		end()
		membership.Wait()
		leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if err := s.lock.Leave(leaving); err != nil {
			s.log.Warn("the lock could not be given back: a process that stands by takes over when the session has timed out", zap.Error(err))
		}
	}()
	s.enter(entering)
	entered()
	if ctx.Err() != nil {
		return nil
	}
	for {
		err := s.await(ctx, broken)
		switch {
		case ctx.Err() != nil:
			return err
		case alone && errors.Is(err, kafka.ErrLockNotAllowed): // nobody else is allowed either
			s.unlocked(err)
			return s.fate(s.run(ctx, s.may))
		case err != nil:
			return err
		}
		if again, err := s.turn(ctx, broken); !again {
			return err
		}
	}
}

// await returns when this process has the lock.
func (s *Standby) await(ctx context.Context, broken <-chan error) error {
	for {
		select {
		case err := <-broken:
			return err
		default:
		}
		state, changed := s.lock.State()
		var soon <-chan time.Time
		switch {
		case state == kafka.LockWaiting && !s.waits:
			s.standBy(ctx)
		case state != kafka.LockWaiting:
			if s.lock.Held() {
				if s.waits {
					s.waits = false
					s.log.Info("this process runs the connector now")
				}
				return nil
			}
			soon = time.After(10 * time.Millisecond) // the coordinator does not answer
		}
		select {
		case <-changed:
		case <-soon:
		case err := <-broken:
			return err
		case <-ctx.Done():
			if s.waits {
				s.log.Info("stopped while standing by")
			}
			return nil
		}
	}
}

// errLost is why a connector is stopped whose lock is lost.
var errLost = errors.New("another process may run the connector")

// turn runs the connector until it ends or the lock is lost, and says whether to wait for the lock again.
func (s *Standby) turn(ctx context.Context, broken <-chan error) (again bool, err error) {
	life, end := context.WithCancelCause(ctx)
	defer end(nil)
	if n := s.lock.Tenancy(); s.began.IsZero() || n != s.tenancy {
		s.anew()
		s.tenancy, s.began, s.decided = n, time.Now(), time.Time{}
		if state, _ := s.lock.State(); state == kafka.LockHeld {
			s.decided = s.began
		}
	}
	s.refused.Store(false)
	var watch sync.WaitGroup
	over := make(chan struct{})
	watch.Go(func() {
		for {
			state, changed := s.lock.State()
			if state == kafka.LockWaiting {
				end(errLost)
				return
			}
			if state == kafka.LockHeld && s.decided.IsZero() {
				s.decided = time.Now()
			}
			select {
			case <-changed:
			case err := <-broken:
				if errors.Is(err, kafka.ErrLockNotAllowed) {
					s.unlocked(err) // nobody else was there, and nobody else is allowed
					return
				}
				end(err)
				return
			case <-over:
				return
			}
		}
	})
	err = s.run(life, s.may)
	close(over)
	watch.Wait()
	cause := context.Cause(life)
	switch {
	case ctx.Err() != nil && !s.free.Load() && err != nil && (s.fenced(err) || s.replaced(err)):
		s.log.Warn("another process has begun to run the connector, so this one, which was to stop, has stored nothing more", zap.Error(err))
		return false, nil
	case ctx.Err() != nil:
		return false, err
	case s.free.Load():
		return false, s.fate(err)
	case errors.Is(cause, errLost):
		s.log.Warn("the lock is lost: another process may run the connector. It is stopped here, without storing anything more", zap.Error(err))
		return true, nil
	case cause != nil: // the membership has failed
		return false, cause
	case err != nil && (s.fenced(err) || s.replaced(err)):
		return s.yield(ctx, err, s.began, s.decided)
	case s.refused.Load() || err != nil && !s.lock.Held(): // whoever runs the connector now may be the cause of the error
		s.log.Warn("it is not certain any more that this process has the lock; the connector goes on when it is", zap.Error(err))
		return true, nil
	}
	return false, err
}

const (
	// settling is how long after its beginning a process may be fenced by one that began at the same time, or by a request of its own
	// that came twice.
	settling = 10 * time.Second
	// retake is how long a process that was fenced so, and has gone on, stops if it is fenced once more.
	retake = time.Minute
)

// confirmed is how long the group has for telling a process that is fenced that it has lost the lock: some heartbeats.
const confirmed = 2 * time.Second

// early says that who has fenced a process that has the lock may be one of the group, which began before it heard of the decision, or the
// process itself by a request that came twice. Where it had a claim at first, a coordinator that knew nothing of that may have let another one
// begin, too, and that shows at the next transaction only, whenever that is: unless the id was used since, or nobody else is there.
func (s *Standby) early(ctx context.Context, err error, began, decided time.Time) bool {
	switch {
	case decided.IsZero(), time.Since(began) < settling:
		return true
	case decided.Equal(began), s.lastUse(err).After(decided.Add(settling)):
		return false
	}
	others, failed := s.others(ctx)
	return failed != nil || len(others) > 0
}

// yield says what a process has to do that is fenced, or whose stream another one has taken. Where the group has not decided yet, it waits
// for that; where it has decided for another, this process has just not heard of it; otherwise the other one does not ask the group. One
// that was fenced early has the lock, and begins anew, once.
func (s *Standby) yield(ctx context.Context, err error, began, decided time.Time) (again bool, _ error) {
	if state, changed := s.lock.State(); state == kafka.LockHeld {
		select {
		case <-changed:
		case <-time.After(confirmed):
			if s.lock.Held() && (s.retook.IsZero() || time.Since(s.retook) > retake) && s.early(ctx, err, began, decided) {
				s.retook, s.began = time.Now(), time.Time{}
				s.log.Info("another process had begun to run the connector, too, and the group has decided for this one, which begins anew", zap.Error(err))
				return true, nil
			}
			if s.lock.Held() {
				return false, s.fate(err)
			}
		case <-ctx.Done():
			return false, nil
		}
	}
	s.lock.Yield()
	s.log.Info("another process has begun to run the connector, too; this one waits for what the group decides", zap.Error(err))
	return true, nil
}

// may says whether anything may be sent or stored.
func (s *Standby) may() bool {
	held := s.lock.Held() || s.free.Load()
	if !held {
		s.refused.Store(true)
	}
	return held
}

// others are the members of the group but for this process.
func (s *Standby) others(ctx context.Context) ([]kafka.LockMember, error) {
	asking, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	members, err := s.lock.Members(asking)
	if err != nil {
		s.log.Debug("the members of the group could not be asked for", zap.Error(err))
	}
	return slices.DeleteFunc(members, func(m kafka.LockMember) bool { return processOf(s.base, m.Client) == s.me }), err
}

// standBy says who runs the connector instead, as well as that is known.
func (s *Standby) standBy(ctx context.Context) {
	others, _ := s.others(ctx)
	s.say(others)
}

func (s *Standby) say(others []kafka.LockMember) {
	s.waits = true
	if len(others) == 0 {
		s.log.Info("standing by")
		return
	}
	who := others[0]
	for _, m := range others {
		if m.Holds {
			who = m
		}
	}
	where := []zap.Field{zap.String("address", who.Host), zap.Int("others", len(others))}
	s.log.Info("standing by: "+processOf(s.base, who.Client).String()+" runs the connector", where...)
	if s.says != "" && who.Says != "" && who.Says != s.says {
		s.log.Warn("that process has another configuration of the connector: its properties are not the same as here, and these count when this process takes over. "+
			"Compare the two; a connector of its own needs a name of its own", where...)
	}
}
