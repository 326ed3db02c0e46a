package sim

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// recorded is the history of a run without faults.
func recorded(t *testing.T, m mode) *history {
	t.Helper()
	var h *history
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := newSimulation(3, folder)
		if err != nil {
			t.Fatal(err)
		}
		defer s.close()
		s.fault, s.mode = 0, m
		if m == exactlyOnce {
			s.store = inTopic
		}
		if s.old {
			t.Fatal("another seed is needed")
		}
		s.work()
		s.sleep(10 * time.Second)
		s.arrive()
		_, s.changes = s.mysql.total()
		if h, err = s.finish(); err != nil {
			t.Fatal(err)
		}
		if len(s.list) > 0 {
			t.Fatal(s.report())
		}
	})
	if left := h.check(); len(left) > 0 {
		t.Fatal(left)
	}
	return h
}

// TestCheckerFindsFaults: a checker that has never found anything is not proven.
func TestCheckerFindsFaults(t *testing.T) {
	whole := recorded(t, atLeastOnce)
	at := partition{dataTopics()[0], 0}
	if n := len(whole.log[at]); n < 50 {
		t.Fatalf("only %d records", n)
	}
	keys := make(map[string]bool) // of an update that is not the first event of its key
	update := slices.IndexFunc(whole.log[at], func(r *kgo.Record) bool {
		known := keys[string(r.Key)]
		keys[string(r.Key)] = true
		return known && strings.Contains(string(r.Value), `"op":"u"`)
	})
	with := func(i int, value func(string) string) func(h *history) {
		return func(h *history) {
			r := *h.log[at][i]
			r.Value = []byte(value(string(r.Value)))
			h.log[at][i] = &r
		}
	}
	insert := func(i int, records ...*kgo.Record) func(h *history) {
		return func(h *history) { h.log[at] = slices.Insert(h.log[at], i, records...) }
	}
	for _, c := range []struct {
		name, want string
		change     func(h *history)
	}{
		{"a record is lost", "C1", func(h *history) { h.log[at] = slices.Delete(h.log[at], 20, 21) }},
		{"the last record is lost", "C1", func(h *history) { h.log[at] = h.log[at][:len(h.log[at])-1] }},
		{"a partition is lost", "C1", func(h *history) { h.log[at] = nil }},
		{"a record comes twice", "C3", insert(21, whole.log[at][20])},
		{"records come again from where no attempt began", "C3", func(h *history) { h.log[at] = append(h.log[at], h.log[at][20:]...) }},
		{"two records are swapped", "C1", func(h *history) { h.log[at][20], h.log[at][21] = h.log[at][21], h.log[at][20] }},
		{"a value is another", "C2", with(update, func(v string) string { return strings.Replace(v, `"ver":`, `"ver":1`, 1) })},
		{"a record of nobody", "C2", with(20, func(v string) string { return strings.Replace(v, `"pos":`, `"pos":1`, 1) })},
		{"a record of another operation", "C2", with(update, func(v string) string { return strings.Replace(v, `"op":"u"`, `"op":"c"`, 1) })},
		{"what was before is another", "C9", with(update, func(v string) string { return strings.Replace(v, `"ver":`, `"ver":1`, 1) })},
		{"a record is in another partition", "C3", func(h *history) {
			other := partition{at.topic, 1}
			h.log[other] = append(h.log[other], h.log[at][20])
		}},
		{"an offset is stored too early", "C6", func(h *history) {
			s := *h.saves[2]
			s.done.changes += 200
			h.saves[2] = &s
		}},
		{"an offset goes back", "C7", func(h *history) { h.saves = append(h.saves, h.saves[1]) }},
		{"a process goes on too early", "C7", func(h *history) {
			last := h.saves[len(h.saves)-1]
			h.loads = append(h.loads, load{at: last.finished, process: 2, done: h.saves[1].done})
		}},
		{"a process finds no offset", "C7", func(h *history) {
			h.loads = append(h.loads, load{at: h.saves[len(h.saves)-1].finished, process: 2, none: true})
		}},
		{"more comes again than the interval leaves", "C5", func(h *history) {
			first := h.saves[0]
			h.loads = append(h.loads, load{at: first.finished, process: 2, done: first.done})
			end := h.log[at][len(h.log[at])-1].Timestamp
			h.ended = map[int]time.Time{1: end.Add(time.Second)}
			for _, r := range slices.Clone(h.log[at]) {
				again := *r
				again.Timestamp = end.Add(2 * time.Second)
				h.log[at] = append(h.log[at], &again)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := *whole
			h.log = make(map[partition][]*kgo.Record)
			for at, records := range whole.log {
				h.log[at] = slices.Clone(records)
			}
			h.saves, h.loads, h.ended = slices.Clone(whole.saves), slices.Clone(whole.loads), maps.Clone(whole.ended)
			h.calm = func(time.Time, time.Time) bool { return true }
			c.change(&h)
			found := h.check()
			if !slices.ContainsFunc(found, func(v violation) bool { return v.check == c.want }) {
				t.Errorf("found %v, want %s", found, c.want)
			}
		})
	}
}

// TestCheckerFindsFaultsInTransactions does so for exactly-once delivery.
func TestCheckerFindsFaultsInTransactions(t *testing.T) {
	recorded := recorded(t, exactlyOnce)
	at := partition{dataTopics()[0], 0}
	for _, c := range []struct {
		name, want string
		change     func(h *history)
	}{
		{"a record is lost", "C1", func(h *history) { h.log[at] = slices.Delete(h.log[at], 20, 21) }},
		{"a record comes twice", "C4", func(h *history) { h.log[at] = slices.Insert(h.log[at], 21, h.log[at][20]) }},
		{"records come again from where an attempt began", "C4", func(h *history) { h.log[at] = append(h.log[at], h.log[at]...) }},
		{"a record is in another transaction", "C8", func(h *history) {
			last := len(h.log[at]) - 1
			r := *h.log[at][last]
			r.ProducerID, r.ProducerEpoch = h.log[at][0].ProducerID, h.log[at][0].ProducerEpoch
			h.log[at][last] = &r
		}},
		{"a transaction ends inside one of MySQL", "C8", func(h *history) {
			h.whole = true
			s := *h.saves[2]
			s.offset.Event = 2
			h.saves[2] = &s
		}},
		{"an offset goes back", "C7", func(h *history) {
			h.saves, h.offsets = append(h.saves, h.saves[1]), append(h.offsets, h.offsets[1])
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := *recorded
			h.log = make(map[partition][]*kgo.Record)
			for at, records := range recorded.log {
				h.log[at] = slices.Clone(records)
			}
			h.saves, h.offsets = slices.Clone(recorded.saves), slices.Clone(recorded.offsets)
			c.change(&h)
			if found := h.check(); !slices.ContainsFunc(found, func(v violation) bool { return v.check == c.want }) {
				t.Errorf("found %v, want %s", found, c.want)
			}
		})
	}
}

// TestStandstillIsFound: a run in which nothing arrives any more fails.
func TestStandstillIsFound(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := newSimulation(3, folder)
		if err != nil {
			t.Fatal(err)
		}
		defer s.close()
		s.fault = 0
		s.kafka.setDown(true, s.kafka.addresses...)
		s.work()
		s.arrive()
		if len(s.list) != 1 || s.list[0].check != "C12" {
			t.Errorf("found %v", s.list)
		}
		s.kafka.setDown(false, s.kafka.addresses...)
		if _, err := s.finish(); err != nil {
			t.Fatal(err)
		}
	})
}
