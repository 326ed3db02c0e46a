package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// lockProtocol is the name of the way in which members share the partition. No other consumer has it, so the coordinator lets
// none join by mistake, which would take the lock away.
const lockProtocol = "tidemark-lock"

// LockMember is a process in the group of a lock.
type LockMember struct {
	ID     string // the coordinator's name for it
	Client string // its ClientID
	Host   string // its address, as the coordinator sees it
	Holds  bool   // whether it has the lock; false, too, while the group is being joined
	Says   string // its [LockConfig.Says]; "", too, while the group is being joined
}

// Members are the processes that are in the group now, this one included if it is, in a fixed order. One that has died is there until
// its session times out. It waits while the cluster cannot be reached, until ctx ends.
func (l *Lock) Members(ctx context.Context) ([]LockMember, error) {
	members, err := retry(ctx, func() ([]LockMember, error) { return l.members(ctx) })
	if err != nil {
		return nil, l.explain(err)
	}
	return members, nil
}

func (l *Lock) members(ctx context.Context) ([]LockMember, error) {
	seen, err := l.look(ctx)
	return seen.members, err
}

// lockSight is the group at one moment, as its coordinator sees it.
type lockSight struct {
	members []LockMember
	asked   time.Time // when the coordinator was asked; the moment is then or later
	joining bool      // the coordinator waits for members to join: it has not answered to those who have
}

// alone says whether the member of this name is the only one.
func (s *lockSight) alone(id string) bool { return len(s.members) == 1 && s.has(id) }

func (s *lockSight) has(id string) bool {
	return slices.ContainsFunc(s.members, func(m LockMember) bool { return m.ID == id })
}

// look asks the coordinator once, as far as the client does not try again by itself.
func (l *Lock) look(ctx context.Context) (lockSight, error) {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = []string{l.cfg.Group}
	sent := time.Now()
	resp, err := req.RequestWith(ctx, l.client.inner.Kgo)
	if err != nil {
		return lockSight{}, err
	}
	if len(resp.Groups) != 1 {
		return lockSight{}, fmt.Errorf("asking for its members: the answer names %d groups", len(resp.Groups))
	}
	group := resp.Groups[0]
	if err := kerr.ErrorForCode(group.ErrorCode); err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return lockSight{}, err
	}
	members := make([]LockMember, len(group.Members))
	for i, m := range group.Members {
		members[i] = LockMember{ID: m.MemberID, Client: m.ClientID, Host: strings.TrimPrefix(m.ClientHost, "/"), Holds: hasLock(l.cfg.Topic, m.MemberAssignment)}
		if said := kmsg.NewConsumerMemberMetadata(); said.ReadFrom(m.ProtocolMetadata) == nil {
			members[i].Says = string(said.UserData)
		}
	}
	slices.SortFunc(members, func(a, b LockMember) int { return strings.Compare(a.ID, b.ID) })
	return lockSight{members: members, asked: sent, joining: group.State == "PreparingRebalance"}, nil
}

// Remove takes members out of the group, as if they had left. reason is for the brokers' logs. Members that are not there are
// no error.
func (l *Lock) Remove(ctx context.Context, reason string, members ...LockMember) error {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = l.cfg.Group
	for _, m := range members {
		member := kmsg.NewLeaveGroupRequestMember()
		member.MemberID, member.Reason = m.ID, &reason
		req.Members = append(req.Members, member)
		req.MemberID = m.ID // all that old brokers know of
	}
	resp, err := req.RequestWith(ctx, l.client.inner.Kgo)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil && !errors.Is(err, kerr.UnknownMemberID) && !errors.Is(err, kerr.GroupIDNotFound) {
		return l.explain(err)
	}
	return nil
}

// lockMetadata is what a member says of itself when it joins: that it has the lock, and since which generation, or that it has
// claimed it. Tools take it for a consumer's.
func lockMetadata(topic, says string, state LockState, generation int32) []byte {
	m := kmsg.NewConsumerMemberMetadata()
	if says != "" {
		m.UserData = []byte(says)
	}
	m.Version, m.Topics, m.Generation = 2, []string{topic}, -1
	if state != LockWaiting {
		owned := kmsg.NewConsumerMemberMetadataOwnedPartition()
		owned.Topic, owned.Partitions = topic, []int32{0}
		m.OwnedPartitions = append(m.OwnedPartitions, owned)
	}
	if state == LockHeld {
		m.Generation = generation
	}
	return m.AppendTo(nil)
}

// assignLock gives the lock to the member that has it, else to one that has claimed it, else to any one. One that says it has it from an
// older generation than another has missed that it lost it.
func assignLock(topic string, members []kmsg.JoinGroupResponseMember) []kmsg.SyncGroupRequestGroupAssignment {
	if len(members) == 0 {
		return nil
	}
	rank := func(m *kmsg.JoinGroupResponseMember) int64 {
		said := kmsg.NewConsumerMemberMetadata()
		if said.ReadFrom(m.ProtocolMetadata) != nil || len(said.OwnedPartitions) == 0 {
			return -2
		}
		return int64(said.Generation)
	}
	slices.SortFunc(members, func(a, b kmsg.JoinGroupResponseMember) int { return strings.Compare(a.MemberID, b.MemberID) })
	holder := slices.MaxFunc(members, func(a, b kmsg.JoinGroupResponseMember) int {
		return int(min(max(rank(&a)-rank(&b), -1), 1))
	})
	all := make([]kmsg.SyncGroupRequestGroupAssignment, len(members))
	for i, m := range members {
		a := kmsg.NewConsumerMemberAssignment()
		if m.MemberID == holder.MemberID {
			t := kmsg.NewConsumerMemberAssignmentTopic()
			t.Topic, t.Partitions = topic, []int32{0}
			a.Topics = append(a.Topics, t)
		}
		all[i] = kmsg.NewSyncGroupRequestGroupAssignment()
		all[i].MemberID, all[i].MemberAssignment = m.MemberID, a.AppendTo(nil)
	}
	return all
}

// hasLock says whether an assignment is that of the lock's holder.
func hasLock(topic string, assignment []byte) bool {
	a := kmsg.NewConsumerMemberAssignment()
	if len(assignment) == 0 || a.ReadFrom(assignment) != nil {
		return false
	}
	return slices.ContainsFunc(a.Topics, func(t kmsg.ConsumerMemberAssignmentTopic) bool {
		return t.Topic == topic && slices.Contains(t.Partitions, 0)
	})
}
