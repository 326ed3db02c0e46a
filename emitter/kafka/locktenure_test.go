package kafka

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestLockTenure(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(1000, 0).Add(time.Duration(s) * time.Second) }
	for _, tt := range []struct {
		name             string
		answered, joined []int // seconds
		want             int
	}{
		{"an answer counts for the session timeout, less a tenth", nil, []int{0}, 9},
		{"the newest counts, in whatever order they come", nil, []int{5, 0}, 14},
		{"while a rebalance is not joined, answers count no longer than the rebalance timeout", []int{10, 20, 29}, []int{0}, 29},
		{"but they count", []int{10}, []int{0}, 19},
	} {
		u := tenure{session: 10 * time.Second, rebalance: 30 * time.Second}
		for _, s := range tt.joined {
			u.settle(at(s))
		}
		for _, s := range tt.answered {
			u.answer(at(s))
		}
		if got := u.end(); !got.Equal(at(tt.want)) {
			t.Errorf("%s: ends at %d, want %d", tt.name, got.Unix()-1000, tt.want)
		}
	}
}

func TestAssignLock(t *testing.T) {
	const topic = "offsets-locks"
	member := func(id string, state LockState, generation int32) kmsg.JoinGroupResponseMember {
		m := kmsg.NewJoinGroupResponseMember()
		m.MemberID, m.ProtocolMetadata = id, lockMetadata(topic, "", state, generation)
		return m
	}
	waits := func(id string) kmsg.JoinGroupResponseMember { return member(id, LockWaiting, 7) }
	broken := waits("a")
	broken.ProtocolMetadata = []byte{1}
	for _, tt := range []struct {
		name    string
		members []kmsg.JoinGroupResponseMember
		want    string
	}{
		{"any one, always the same", []kmsg.JoinGroupResponseMember{waits("c"), waits("a"), waits("b")}, "a"},
		{"whoever has it", []kmsg.JoinGroupResponseMember{waits("a"), member("b", LockHeld, 3), waits("c")}, "b"},
		{"not whoever has missed that it has lost it", []kmsg.JoinGroupResponseMember{member("a", LockHeld, 3), member("b", LockHeld, 4)}, "b"},
		{"a claim before nothing", []kmsg.JoinGroupResponseMember{waits("a"), member("b", LockClaimed, -1)}, "b"},
		{"the lock before a claim", []kmsg.JoinGroupResponseMember{member("a", LockClaimed, 9), member("b", LockHeld, 0)}, "b"},
		{"one that cannot be understood has nothing", []kmsg.JoinGroupResponseMember{broken, member("b", LockClaimed, -1)}, "b"},
	} {
		assigned := assignLock(topic, tt.members)
		var holders []string
		for _, a := range assigned {
			if hasLock(topic, a.MemberAssignment) {
				holders = append(holders, a.MemberID)
			}
		}
		if len(assigned) != len(tt.members) || !slices.Equal(holders, []string{tt.want}) {
			t.Errorf("%s: %v, want %s", tt.name, holders, tt.want)
		}
	}
	if hasLock("other", assignLock(topic, []kmsg.JoinGroupResponseMember{waits("a")})[0].MemberAssignment) || hasLock(topic, nil) || hasLock(topic, []byte{0}) {
		t.Error("an assignment of something else is the lock")
	}
	if assignLock(topic, nil) != nil {
		t.Error("a group without members is given something")
	}
}
