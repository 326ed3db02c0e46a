package kafka

import (
	"io"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// initialDelay is what brokers do with the first members of a group (group.initial.rebalance.delay.ms) and kfake does not: their joins
// are answered when the time is over, until which the group shows them and waits for more.
type initialDelay struct {
	cluster *kfake.Cluster
	lasts   time.Duration

	mu        sync.Mutex
	state     string    // of the group, as it is said to be
	over      time.Time // zero: nobody has come
	waiting   []string  // the names of those who have come, in that order
	forgotten []string
	end       func(*kmsg.JoinGroupRequest) (kmsg.Response, error) // of joins that are not waited with any more
	ended     chan struct{}
}

// initialDelay has the first members of the group wait so.
func (r *lockRig) initialDelay(lasts time.Duration) *initialDelay {
	if lasts > 0 {
		lasts += 3 * time.Millisecond // so that nobody looks in the moment in which kfake takes over, before it has a member
	}
	d := &initialDelay{cluster: r.cluster, lasts: lasts, state: "PreparingRebalance", ended: make(chan struct{})}
	r.cluster.ControlKey(int16(kmsg.JoinGroup), d.join)
	r.cluster.ControlKey(int16(kmsg.DescribeGroups), d.describe)
	r.cluster.ControlKey(int16(kmsg.LeaveGroup), d.leave)
	r.delays = append(r.delays, d)
	return d
}

func (d *initialDelay) join(r kmsg.Request) (kmsg.Response, error, bool) {
	d.cluster.KeepControl()
	req := r.(*kmsg.JoinGroupRequest)
	if req.MemberID == "" {
		req.SessionTimeoutMillis = 60_000 // after which kfake would forget the name, though the member has come here
		return nil, nil, false
	}
	d.mu.Lock()
	if slices.Contains(d.forgotten, req.MemberID) {
		d.mu.Unlock()
		return joinError(req, kerr.UnknownMemberID), nil, true
	}
	if d.over.IsZero() {
		d.over = time.Now().Add(d.lasts)
	}
	wait, ended := time.Until(d.over), d.ended
	place := slices.Index(d.waiting, req.MemberID)
	if wait > 0 && place < 0 {
		place = len(d.waiting)
		d.waiting = append(d.waiting, req.MemberID)
	}
	d.mu.Unlock()
	if wait <= 0 {
		return nil, nil, false
	}
	wait += time.Duration(place) * time.Microsecond // so that the first one is the first in kfake's group, too, and leads it
	early := false
	d.cluster.SleepControl(func() {
		select {
		case <-ended:
			early = true
		case <-time.After(wait):
		}
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case early:
		resp, err := d.end(req)
		return resp, err, true
	case !slices.Contains(d.waiting, req.MemberID):
		return joinError(req, kerr.UnknownMemberID), nil, true
	}
	return nil, nil, false
}

func joinError(req *kmsg.JoinGroupRequest, code *kerr.Error) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.JoinGroupResponse)
	resp.ErrorCode = code.Code
	return resp
}

func (d *initialDelay) describe(r kmsg.Request) (kmsg.Response, error, bool) {
	d.cluster.KeepControl()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over.IsZero() || time.Until(d.over) <= 0 {
		return nil, nil, false
	}
	group := kmsg.NewDescribeGroupsResponseGroup()
	group.Group, group.State = r.(*kmsg.DescribeGroupsRequest).Groups[0], d.state
	for _, id := range d.waiting {
		m := kmsg.NewDescribeGroupsResponseGroupMember()
		m.MemberID, m.ClientID = id, id[:len(id)-len("-00112233445566778899aabbccddeeff")]
		group.Members = append(group.Members, m)
	}
	resp := r.ResponseKind().(*kmsg.DescribeGroupsResponse)
	resp.Groups = append(resp.Groups, group)
	return resp, nil, true
}

func (d *initialDelay) leave(r kmsg.Request) (kmsg.Response, error, bool) {
	d.cluster.KeepControl()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range r.(*kmsg.LeaveGroupRequest).Members {
		if i := slices.Index(d.waiting, m.MemberID); i >= 0 && time.Until(d.over) > 0 {
			d.waiting = slices.Delete(d.waiting, i, i+1)
		}
	}
	return nil, nil, false
}

// becomes changes what is said of the group.
func (d *initialDelay) becomes(state string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state = state
}

// endJoins ends the joins that wait. The lock is held.
func (d *initialDelay) endJoins(how func(*kmsg.JoinGroupRequest) (kmsg.Response, error)) {
	d.end = how
	close(d.ended)
	d.ended = make(chan struct{})
}

// cut cuts the connections over which members join, which are members all the same.
func (d *initialDelay) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.endJoins(func(*kmsg.JoinGroupRequest) (kmsg.Response, error) { return nil, io.EOF })
}

// move has another broker coordinate the group, which knows nothing of members that wait to be joined.
func (d *initialDelay) move() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forgotten, d.waiting, d.over = append(d.forgotten, d.waiting...), nil, time.Time{}
	d.endJoins(func(req *kmsg.JoinGroupRequest) (kmsg.Response, error) {
		return joinError(req, kerr.NotCoordinator), nil
	})
}
