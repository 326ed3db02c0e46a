package sim

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const lockGroup = "tidemark-" + connector

// handOver are the faults in which there are two processes.
var handOver = []fault{
	{name: "process: killed, and a standby takes over", possible: func(s *simulation) bool { return s.locked }, do: alone(func(s *simulation) bool {
		p := s.standBy()
		if p == nil {
			return false
		}
		p.crash()
		return true
	})},
	{name: "process: stopped, and a standby takes over", possible: func(s *simulation) bool { return s.locked }, do: alone(func(s *simulation) bool {
		p := s.standBy()
		return p != nil && s.leave(p)
	})},
	{name: "process: frozen while a standby takes over", only: exactlyOnce, possible: func(s *simulation) bool { return s.locked }, do: func(s *simulation) bool {
		p := s.now()
		thaw := p.freeze()
		defer thaw()
		s.sleep(s.upTo(5 * time.Second))
		if s.replace(p) == nil {
			return false
		}
		s.sleep(s.upTo(30 * time.Second))
		thaw()
		s.sleep(s.upTo(15 * time.Second))
		return s.leave(p)
	}},
	{name: "process: another one begins at the same time", possible: func(s *simulation) bool { return s.locked }, do: alone(func(s *simulation) bool {
		p := s.now()
		if s.coin() {
			p.crash()
			s.sleep(s.upTo(4 * time.Second))
		} else { // which leaves a group without members
			if !s.terminate() {
				return false
			}
			s.next(p)
		}
		if p = s.now(); s.replace(p) == nil {
			return false
		}
		s.sleep(s.upTo(20 * time.Second))
		return s.leave(p)
	})},
	{name: "process: frozen while another takes over, without a lock", only: exactlyOnce, possible: func(s *simulation) bool { return !s.locked }, do: alone(takeOver)},
}

// alone is a fault beside which there is no other such one, where delivery is at least once: a process that is frozen while another takes over
// would send what it had in hand, and no lock can keep it from that. Nor is there where no lock says which of three goes on.
func alone(do func(s *simulation) bool) func(s *simulation) bool {
	return func(s *simulation) bool {
		s.mu.Lock()
		other := s.handing && (s.mode == atLeastOnce || !s.locked)
		s.handing = true
		s.mu.Unlock()
		if other {
			return false
		}
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.handing = false
		}()
		return do(s)
	}
}

// turn is one time for which a process runs the connector by leave of the lock.
type turn struct {
	p    *process
	over bool // another process has been allowed something since
}

// only is may for a turn that begins. It sees to it that of two processes the one that has been allowed something last is the only one.
func (p *process) only(may func() bool) func() bool {
	t := &turn{p: p}
	return func() bool {
		if !may() {
			return false
		}
		if other := p.s.takes(t); other != nil && !p.isDead() {
			p.s.violated("lock", "process %d is allowed to go on after process %d was", p.number, other.number)
		}
		return true
	}
}

// takes notes that a turn is allowed something, and returns the process that was in between; nil: there is none.
func (s *simulation) takes(t *turn) *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.turn
	switch {
	case t.over:
		return last.p
	case last != nil && last.p != t.p:
		last.over = true
	}
	s.turn = t
	return nil
}

// standBy begins a process beside the one of the moment, which it returns after a while; nil: that is not there any more.
func (s *simulation) standBy() *process {
	p := s.now()
	if s.replace(p) == nil {
		return nil
	}
	s.sleep(s.upTo(8 * time.Second))
	return p
}

// leave stops a process as SIGTERM does, beside another one that goes on.
func (s *simulation) leave(p *process) bool {
	s.mu.Lock()
	s.rival = nil
	s.mu.Unlock()
	p.cancel(context.Canceled)
	if !s.happens(p.done, time.Minute) {
		s.violated("C12", "process %d, beside which another one runs, does not stop within a minute", p.number)
		return false
	}
	if p.err != nil && !p.isDead() && !harmless(p.err) {
		s.violated("fence", "process %d, beside which another one runs, ends with: %v", p.number, p.err)
	}
	return !p.isDead()
}

// bury takes the members of a process that has died out of the group when their session has timed out. The brokers do that themselves, but
// those of kfake do not start the clock of a member whose connection has ended when its join is answered.
func (s *simulation) bury(p *process) {
	s.sleep(s.session)
	cl, err := s.kafka.client()
	if err != nil {
		return
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	groups, err := kadm.NewClient(cl).DescribeGroups(ctx, lockGroup)
	if err != nil {
		return
	}
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = lockGroup
	for _, m := range groups[lockGroup].Members {
		if strings.HasPrefix(m.ClientID, clientOf(p)+"-") {
			member := kmsg.NewLeaveGroupRequestMember()
			member.MemberID = m.MemberID
			req.Members = append(req.Members, member)
		}
	}
	if len(req.Members) > 0 {
		_, _ = req.RequestWith(ctx, cl)
	}
}

// clientOf is what the client id of a process in the group begins with.
func clientOf(p *process) string { return fmt.Sprintf("process-%d", p.number) }
