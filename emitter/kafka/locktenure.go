package kafka

import "time"

// tenure says until when a member of a group can be sure that the group has given what it has to nobody else. All times are when
// a request was sent: the coordinator dealt with it then or later, so it counts from then or later, too.
//
// The coordinator drops a member that it has not heard of for the session timeout, and one that does not join a rebalance
// within the rebalance timeout, though it sends heartbeats. Nobody else is given the partition before.
type tenure struct {
	session, rebalance time.Duration

	answered time.Time // the last request that was answered as to a member
	joined   time.Time // the last one whose answer showed that there was no rebalance to join
}

// answer notes a request that was answered as to a member while the group waits for its members to join again.
func (t *tenure) answer(sent time.Time) {
	if sent.After(t.answered) {
		t.answered = sent
	}
}

// settle notes one that was answered as to a member of the present generation.
func (t *tenure) settle(sent time.Time) {
	t.answer(sent)
	if sent.After(t.joined) {
		t.joined = sent
	}
}

// end is when certainty ends. A tenth is left for what is on its way to a broker, and for clocks that run at different speeds.
func (t *tenure) end() time.Time {
	end := t.answered.Add(t.session)
	if join := t.joined.Add(t.rebalance); join.Before(end) {
		end = join
	}
	return end.Add(-t.session / 10)
}
