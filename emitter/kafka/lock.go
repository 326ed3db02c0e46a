package kafka

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
)

// LockConfig says which consumer group is the lock.
type LockConfig struct {
	ClientConfig // ClientID is what the other members see of this process, whatever client.id in Properties says

	Group             string // the consumer group; required
	Topic             string // the topic with one partition that its members share; required
	ReplicationFactor int16  // of the topic when it is made; 0 and -1: the brokers' default

	// Says is what the other members see of what this process would run; "": nothing.
	Says string

	// SessionTimeout is after how much silence a member counts as dead; 0: 10 s. The brokers have bounds for it
	// (group.min.session.timeout.ms, group.max.session.timeout.ms).
	SessionTimeout time.Duration
}

// LockState is what a [Lock] is at.
type LockState uint8

// The states of a lock. Only with the last two is [Lock.Held] ever true.
const (
	LockWaiting LockState = iota // another member has it, or it is not known yet who gets it
	LockClaimed                  // nobody else is there, and the group has not decided yet; see Lock.Claim
	LockHeld                     // the group has given it to this member
)

const (
	heartbeatEvery = 500 * time.Millisecond
	// rebalances is how many session timeouts a member has for joining a rebalance. With one only, a dead member that the
	// others have to wait for would cost the holder its lock.
	rebalances = 3
	// retryFor is how long a request is tried again before its fault is anybody's.
	retryFor = 30 * time.Second
)

// Lock says which one of several processes may do something: the one that a consumer group has given the only partition of
// a topic. Whoever has it keeps it when others come; when it leaves or is silent for the session timeout, one of the others gets
// it. Methods are safe for concurrent use; [Lock.Run] is to be called once.
type Lock struct {
	cfg    LockConfig
	client *Client
	log    *zap.Logger

	// until is when Held ends, in nanoseconds after born on the monotonic clock, which goes on while a process is stopped.
	until atomic.Int64
	born  time.Time

	rejoin chan struct{} // has a token when the group asks its members to join again

	mu         sync.Mutex
	state      LockState
	changed    chan struct{} // closed when state changes
	id         string        // as the coordinator has named this member; "" before
	entered    time.Time     // when it was first asked to have a member of that name; zero: not yet
	entering   chan struct{} // closed when it is asked
	generation int32         // of the group that this member has joined last; -1: none
	held       int32         // the generation in which it had the lock last, unless another has had it since; -1: none
	tenancy    int
	joining    bool // a join is under way, so a heartbeat may have an old generation
	decided    bool // the group has answered to a join once
	assigned   bool // and it was heard to whom it has given the lock
	tenure     tenure
	doubted    time.Time // since when it is not known whether the coordinator has lost this member; zero: it has not
	told       string    // the trouble that was said and is not over
	expired    bool      // it was said that the coordinator does not answer
}

// NewLock makes a lock without connecting. It returns all faults of the properties at once.
func NewLock(cfg LockConfig) (*Lock, error) {
	if cfg.SessionTimeout == 0 {
		cfg.SessionTimeout = 10 * time.Second
	}
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	properties := make(map[string]string, len(cfg.Properties))
	for name, value := range cfg.Properties {
		properties[name] = value
	}
	properties["client.id"] = cfg.ClientID
	connection := cfg.ClientConfig
	connection.Properties = properties
	client, err := newClient(connection,
		// A broker that is silent for longer is given up early enough for another try within the session.
		kgo.RequestTimeoutOverhead(max(cfg.SessionTimeout/4, heartbeatEvery)),
		kgo.RetryBackoffFn(func(tries int) time.Duration {
			return min(20*time.Millisecond<<min(tries, 5), heartbeatEvery)
		}),
		// A join that fails is tried again by Run, since it casts doubt on a claim.
		kgo.RetryTimeoutFn(func(key int16) time.Duration {
			if key == int16(kmsg.JoinGroup) {
				return time.Nanosecond
			}
			return retryFor
		}))
	if err != nil {
		return nil, err
	}
	return &Lock{
		cfg: cfg, client: client, log: cfg.Log, born: time.Now(), rejoin: make(chan struct{}, 1), changed: make(chan struct{}), entering: make(chan struct{}), generation: -1, held: -1,
		tenure: tenure{session: cfg.SessionTimeout, rebalance: rebalances * cfg.SessionTimeout},
	}, nil
}

// Held says whether this process has the lock for certain: the partition is assigned to it (or claimed, see [Lock.Claim]) and the
// coordinator has answered so recently that it cannot have given it to another. It does not block, and knows by itself that a process
// that was stopped and goes on has lost the lock. After false it may become true again, when the coordinator says that nothing
// has changed meanwhile; [Lock.State] tells a loss for good.
func (l *Lock) Held() bool { return int64(time.Since(l.born)) < l.until.Load() }

// State is what the lock is at, with a channel that is closed when that changes.
func (l *Lock) State() (LockState, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state, l.changed
}

// Tenancy is a number that changes when this process is given the lock after another may have had it. It stays the same while
// the lock is held, and also when it is lost, because this process stood still, say, and given back with nobody else there meanwhile.
func (l *Lock) Tenancy() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tenancy
}

// become sets the state and when Held ends. The lock is held.
func (l *Lock) become(s LockState) {
	if s != l.state {
		l.state = s
		close(l.changed)
		l.changed = make(chan struct{})
	}
	if s == LockWaiting || s == LockClaimed && !l.doubted.IsZero() {
		l.until.Store(math.MinInt64)
		return
	}
	l.until.Store(int64(l.tenure.end().Sub(l.born)))
}

// Run is the membership: it makes the topic if need be, joins the group, sends heartbeats and joins again whenever the group asks for
// it, until ctx ends; then it returns nil. What waiting can heal is waited for. The error tells what cannot be healed: settings that
// the brokers refuse, or, as long as the group has not answered once, rights that are missing ([ErrLockNotAllowed]).
func (l *Lock) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	var beats sync.WaitGroup
	beats.Go(func() { l.beats(ctx) })
	beats.Go(func() { l.ensureTopic(ctx) })
	defer beats.Wait()
	defer stop()
	const least, most = 50 * time.Millisecond, 2 * time.Second
	for wait, again := least, 0; ; {
		err := l.join(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			l.healed()
			wait, again = least, 0
			select {
			case <-l.rejoin:
			case <-ctx.Done():
				return nil
			}
		case errors.Is(err, errJoinAgain) && again < 3: // a name to be had, a rebalance behind this one
			again++
		case l.hopeless(err):
			return l.explain(err)
		default:
			l.trouble("the group that decides which process runs cannot be joined; trying again", err)
			if pause(ctx, wait, err) != nil {
				return nil
			}
			wait = min(2*wait, most)
			if Transient(err) {
				wait = min(wait, heartbeatEvery)
			}
		}
	}
}

// ensureTopic makes the topic. The group works without it, so a fault is said and no more.
func (l *Lock) ensureTopic(ctx context.Context) {
	err := l.client.EnsureTopic(ctx, l.cfg.Topic, TopicSpec{Create: true, Partitions: 1, ReplicationFactor: l.cfg.ReplicationFactor})
	if err != nil && ctx.Err() == nil {
		l.log.Warn("the topic of the lock cannot be made. The lock works without it, as far as the group of its name may be used, but tools that show groups say less", zap.Error(err))
	}
}

// errJoinAgain asks for another join at once.
var errJoinAgain = errors.New("the group is to be joined again")

// join joins the group and hears whether it has given the lock to this member. It returns as late as the group's members have
// all come, or have been given up.
func (l *Lock) join(ctx context.Context) error {
	select {
	case <-l.rejoin: // what asked for this join
	default:
	}
	l.lookBack(ctx)
	l.mu.Lock()
	req := l.joinRequest()
	sent := time.Now()
	l.joining = true
	if req.MemberID != "" && l.entered.IsZero() {
		l.entered = sent
		close(l.entering)
	}
	l.mu.Unlock()
	resp, err := req.RequestWith(ctx, l.client.inner.Kgo)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	l.mu.Lock()
	l.joining = false
	switch {
	case err == nil:
		l.id, l.generation, l.decided, l.doubted = resp.MemberID, resp.Generation, true, time.Time{}
		l.settled(sent)
	case errors.Is(err, kerr.MemberIDRequired) && resp.MemberID != "":
		l.id, err = resp.MemberID, errJoinAgain
	case errors.Is(err, kerr.UnknownMemberID):
		l.lost()
		err = errJoinAgain
	default:
		l.doubt()
	}
	l.mu.Unlock()
	if err != nil {
		return err
	}
	return l.sync(ctx, resp)
}

// lookBack looks whether others are in the group that this member has fallen out of with the lock: one of them may have it, or have had it.
func (l *Lock) lookBack(ctx context.Context) {
	l.mu.Lock()
	back := l.id == "" && l.held >= 0
	l.mu.Unlock()
	if !back {
		return
	}
	if members, err := l.members(ctx); err != nil || len(members) > 0 {
		l.mu.Lock()
		l.held = -1
		l.mu.Unlock()
	}
}

// joinRequest asks for a place in the group. The lock is held.
func (l *Lock) joinRequest() *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID = l.cfg.Group, l.id
	req.SessionTimeoutMillis = int32(l.tenure.session.Milliseconds())
	req.RebalanceTimeoutMillis = int32(l.tenure.rebalance.Milliseconds())
	req.ProtocolType = "consumer"
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name = lockProtocol
	protocol.Metadata = lockMetadata(l.cfg.Topic, l.cfg.Says, l.state, l.generation)
	req.Protocols = append(req.Protocols, protocol)
	return req
}

// sync hears what the group has decided, and decides itself when the group asks this member to.
func (l *Lock) sync(ctx context.Context, joined *kmsg.JoinGroupResponse) error {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.Generation = l.cfg.Group, joined.MemberID, joined.Generation
	req.ProtocolType, req.Protocol = joined.ProtocolType, joined.Protocol
	if joined.LeaderID == joined.MemberID {
		req.GroupAssignment = l.assign(joined)
	}
	resp, err := req.RequestWith(ctx, l.client.inner.Kgo)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	given := err == nil && hasLock(l.cfg.Topic, resp.MemberAssignment)
	var heard time.Time
	if given && !l.certain() {
		// The answer to the join came late, and to ask what was decided before is no sign of life to the coordinator (of Kafka 4.3, for one).
		heard, err = l.heartbeat(ctx, joined.MemberID, joined.Generation)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil && l.id == joined.MemberID && l.generation == joined.Generation:
		l.assigned = true
		if !heard.IsZero() {
			l.tenure.settle(heard)
		}
		if given {
			// Without this member the group was empty, which was one generation, if it still was when this one came back.
			if alone := l.held >= 0 && l.generation > l.held && l.generation <= l.held+2; l.state == LockWaiting && !alone {
				l.tenancy++
			}
			l.held = l.generation
			l.become(LockHeld)
		} else {
			l.held = -1
			l.become(LockWaiting)
		}
		return nil
	case err == nil, errors.Is(err, kerr.RebalanceInProgress):
		return errJoinAgain
	case errors.Is(err, kerr.UnknownMemberID), errors.Is(err, kerr.IllegalGeneration):
		l.lost()
		return errJoinAgain
	}
	return err
}

// assign is what the group's leader decides. Of itself it knows more than it said when it joined: whether it has claimed the lock since.
func (l *Lock) assign(joined *kmsg.JoinGroupResponse) []kmsg.SyncGroupRequestGroupAssignment {
	l.mu.Lock()
	claimed := l.state == LockClaimed
	l.mu.Unlock()
	if claimed {
		for i := range joined.Members {
			if m := &joined.Members[i]; m.MemberID == joined.MemberID {
				m.ProtocolMetadata = lockMetadata(l.cfg.Topic, l.cfg.Says, LockClaimed, -1)
			}
		}
	}
	return assignLock(l.cfg.Topic, joined.Members)
}

// lost is what a member has to do of which the group knows nothing any more: it has no lock and begins anew. The lock is held.
func (l *Lock) lost() {
	l.become(LockWaiting)
	if !l.entered.IsZero() {
		l.entered, l.entering = time.Time{}, make(chan struct{})
	}
	l.id, l.generation, l.doubted = "", -1, time.Time{}
}

// settled notes a request that the coordinator answered as to a member of its present generation. The lock is held.
func (l *Lock) settled(sent time.Time) {
	l.tenure.settle(sent)
	l.become(l.state)
}

// beats sends heartbeats until ctx ends.
func (l *Lock) beats(ctx context.Context) {
	tick := time.NewTicker(heartbeatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		l.beat(ctx)
		l.watch()
	}
}

// beat sends one heartbeat. A claim has no generation to send one for, and is held up by asking for the members instead.
func (l *Lock) beat(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, max(l.tenure.session/4, heartbeatEvery))
	defer cancel()
	l.mu.Lock()
	id, generation, state := l.id, l.generation, l.state
	l.mu.Unlock()
	if generation < 0 {
		if state == LockClaimed {
			l.upholdClaim(ctx)
		}
		return
	}
	sent, err := l.heartbeat(ctx, id, generation)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.id != id || l.generation != generation {
		return // joined anew meanwhile
	}
	switch {
	case err == nil:
		l.settled(sent)
	case errors.Is(err, kerr.RebalanceInProgress):
		l.tenure.answer(sent)
		l.become(l.state)
		l.askToJoin()
	case errors.Is(err, kerr.IllegalGeneration) && l.joining: // the join is being answered
	case errors.Is(err, kerr.UnknownMemberID), errors.Is(err, kerr.IllegalGeneration), errors.Is(err, kerr.FencedInstanceID):
		l.lost()
		l.askToJoin()
	}
}

// heartbeat says when it sent one as a member of a generation; the error is the coordinator's, too.
func (l *Lock) heartbeat(ctx context.Context, id string, generation int32) (sent time.Time, err error) {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID, req.Generation = l.cfg.Group, id, generation
	sent = time.Now()
	resp, err := req.RequestWith(ctx, l.client.inner.Kgo)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	return sent, err
}

// certain says whether this process would have the lock for certain if it had been given to it.
func (l *Lock) certain() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Before(l.tenure.end())
}

// askToJoin has Run join the group again. The lock is held.
func (l *Lock) askToJoin() {
	if l.joining {
		return
	}
	select {
	case l.rejoin <- struct{}{}:
	default:
	}
}

// watch says when it cannot be told any more who has the lock, and when it can again.
func (l *Lock) watch() {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch silent := l.state != LockWaiting && !l.Held(); {
	case silent && !l.expired:
		l.log.Warn("the coordinator of the group that decides which process runs has not answered for so long that another may run by now; nothing is sent until it answers",
			zap.String("group", l.cfg.Group), zap.Duration("session_timeout", l.tenure.session))
		l.expired = true
	case l.expired && l.state == LockWaiting:
		l.expired = false // what became of it is said by whoever hears of the state
	case l.expired && !silent:
		l.log.Info("the coordinator answers again: the lock was not lost", zap.String("group", l.cfg.Group))
		l.expired = false
	}
}

// trouble says what goes wrong once.
func (l *Lock) trouble(what string, err error) {
	if Transient(err) || errors.Is(err, errJoinAgain) {
		l.log.Debug(what, zap.String("group", l.cfg.Group), zap.Error(err))
		return
	}
	if text := err.Error(); l.told != text {
		l.told = text
		l.log.Warn(what, zap.String("group", l.cfg.Group), zap.Error(l.explain(err)))
	}
}

// healed says that it is over.
func (l *Lock) healed() {
	if l.told != "" {
		l.told = ""
		l.log.Info("the group is joined again", zap.String("group", l.cfg.Group))
	}
}

// Leave gives the lock back at once, so that the others need not wait for the session timeout. Call it when Run has returned.
func (l *Lock) Leave(ctx context.Context) error {
	l.mu.Lock()
	id := l.id
	l.decided, l.assigned = true, true // nothing is claimed any more
	l.lost()
	l.mu.Unlock()
	if id == "" {
		return nil
	}
	return l.Remove(ctx, "tidemark stops", LockMember{ID: id})
}

// Close ends the connections. A member that has not left stays in the group until its session times out.
func (l *Lock) Close() { l.client.Close() }

// ErrLockNotAllowed is the error of a lock whose group may not be used.
var ErrLockNotAllowed = errors.New("the lock is not allowed")

// hopeless tells errors that end the membership.
func (l *Lock) hopeless(err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Is(err, kerr.InvalidSessionTimeout) || errors.Is(err, kerr.InconsistentGroupProtocol) || errors.Is(err, kerr.InvalidGroupID) ||
		errors.Is(err, kerr.GroupAuthorizationFailed) && !l.decided
}

// explain adds what to do.
func (l *Lock) explain(err error) error {
	switch {
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		allow := l.client.allow()
		return fmt.Errorf("%w: consumer group %s: %w. Allow it: %s --operation Read --group 'tidemark-' --resource-pattern-type prefixed; %s --operation Create --operation Read --topic '%s'",
			ErrLockNotAllowed, l.cfg.Group, &brokerError{err, ""}, allow, allow, l.cfg.Topic)
	case errors.Is(err, kerr.InvalidSessionTimeout):
		return fmt.Errorf("consumer group %s: %w: the brokers do not allow a session timeout of %d ms: choose standby.session.timeout.ms between their group.min.session.timeout.ms and group.max.session.timeout.ms",
			l.cfg.Group, &brokerError{err, ""}, l.tenure.session.Milliseconds())
	case errors.Is(err, kerr.InconsistentGroupProtocol):
		return fmt.Errorf("consumer group %s: %w: other consumers are in it, which are not tidemark's; the group is the lock of this connector: stop them, or choose another group.id",
			l.cfg.Group, &brokerError{err, ""})
	}
	return fmt.Errorf("consumer group %s: %w", l.cfg.Group, err)
}
