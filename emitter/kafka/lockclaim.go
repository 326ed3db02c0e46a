package kafka

import (
	"context"
	"slices"
	"time"
)

// Claim takes the lock before the group has decided, if nobody else is in the group: the coordinator makes the first member of a group
// wait (group.initial.rebalance.delay.ms), since others might come. Of several processes one at most has a claim: each looks for others
// only once it is seen itself, so of any two the one that looks last sees the other, which then is in the group for as long as it claims.
// Who is alone in a group is its leader, and decides for itself when others have come; a claim ends with that decision.
//
// It returns the others if there are any: then nothing is claimed, and the group decides. None are returned with a claim, and when the
// group has decided. It waits until the coordinator shows this process as a member, for which Run has to go on beside it, or until ctx
// ends; what waiting can heal is waited for.
func (l *Lock) Claim(ctx context.Context) ([]LockMember, error) {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		id, over, err := l.member(ctx)
		if over || err != nil {
			return nil, err
		}
		seen, err := retry(ctx, func() (lockSight, error) { return l.look(ctx) })
		if err != nil {
			return nil, l.explain(err)
		}
		if seen.has(id) && !seen.alone(id) {
			return slices.DeleteFunc(seen.members, func(m LockMember) bool { return m.ID == id }), nil
		}
		if l.claim(id, &seen) {
			return nil, nil
		}
		if err := pause(ctx, wait, nil); err != nil {
			return nil, err
		}
	}
}

// member waits until the coordinator is asked to have this process as a member, of the name that it returns, unless there is nothing
// to claim any more.
func (l *Lock) member(ctx context.Context) (id string, over bool, err error) {
	for {
		l.mu.Lock()
		id, entering, changed := l.id, l.entering, l.changed
		entered, over := !l.entered.IsZero(), l.state != LockWaiting || l.assigned
		l.mu.Unlock()
		if entered || over {
			return id, over, nil
		}
		select {
		case <-entering:
		case <-changed:
		case <-ctx.Done():
			return "", false, context.Cause(ctx)
		}
	}
}

// claim takes the lock if the member that was seen so is still this one, and alone, and says whether it has.
func (l *Lock) claim(id string, seen *lockSight) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != LockWaiting || l.decided || l.id != id || !seen.alone(id) || !seen.asked.After(l.doubted) {
		return false
	}
	l.doubted = time.Time{}
	l.tenancy++
	// The session of a member begins when the coordinator answers to its join, which it had not when it was seen to wait for others.
	l.tenure.settle(l.entered)
	if seen.joining {
		l.tenure.settle(seen.asked)
	}
	l.become(LockClaimed)
	return true
}

// Yield takes a claim back, so that the lock is not held until the group gives it to this process.
func (l *Lock) Yield() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == LockClaimed {
		l.become(LockWaiting)
	}
}

// upholdClaim asks the coordinator whether this process is still a member. While nobody else is, and the joins are not answered, that it
// is shows that its session has not begun. With others there, the coordinator may have answered unheard and waits for the next joins.
func (l *Lock) upholdClaim(ctx context.Context) {
	seen, err := l.look(ctx)
	if err != nil {
		return // the group's decision ends the claim, or time does
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.state != LockClaimed || l.generation >= 0:
	case !seen.has(l.id):
		l.doubt()
	case seen.asked.After(l.doubted):
		l.doubted = time.Time{}
		if seen.joining && seen.alone(l.id) {
			l.tenure.settle(seen.asked)
		}
		l.become(LockClaimed)
	}
}

// doubt notes that the coordinator may know nothing of this member any more. One that has moved before the group was formed shows
// the next process an empty group, so a claim is not certain until this member is seen again. The lock is held.
func (l *Lock) doubt() {
	l.doubted = time.Now()
	l.become(l.state)
}
