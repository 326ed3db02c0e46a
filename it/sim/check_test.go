package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// history is what a run leaves to be checked.
type history struct {
	rows         map[rowsPlace]*event
	changes      []*change
	log          map[partition][]*kgo.Record
	loads        []load
	saves        []*save
	exact        bool          // delivered exactly once: the log is of what is committed
	whole        bool          // then: no Kafka transaction ends inside one of MySQL
	offsets      []*kgo.Record // then: the records of saves
	first        int           // number of the first change
	transactions int           // of Kafka, whose records were checked
	complete     bool          // everything must have arrived
	flush        time.Duration
	calm         func(from, to time.Time) bool // no fault kept acknowledgements or offsets back
	ended        map[int]time.Time             // processes: when the life of each ended
}

// violation is a check that failed.
type violation struct{ check, text string }

func (v violation) String() string { return v.check + ": " + v.text }

// element is a record as it must be: the n-th of a change.
type element struct {
	change *change
	n      int
	key    string
}

func keyText(row []any) string { return fmt.Sprintf(`{"id":%d}`, row[0]) }

// elements are the records of a change.
func (c *change) elements() []element {
	switch c.op {
	case 'd':
		k := keyText(c.before)
		return []element{{c, 0, k}, {c, 1, k}}
	case 'k':
		k := keyText(c.before)
		return []element{{c, 0, k}, {c, 1, k}, {c, 2, keyText(c.after)}}
	}
	return []element{{c, 0, keyText(c.after)}}
}

// envelope is what is read of a change event.
type envelope struct {
	Before, After json.RawMessage
	Op            string
	Source        struct {
		File  string
		Pos   int64
		Row   int
		GTID  string
		Table string
	}
}

// check holds a run against C1 to C9. C1 and C2 come by each record being found in what the primary has
// executed, and each of that in the partition of its key.
func (h *history) check() (all []violation) {
	report := func(check, format string, args ...any) {
		if len(all) < 20 {
			all = append(all, violation{check, fmt.Sprintf(format, args...)})
		}
	}
	h.checkOffsets(report)
	found := make(map[partition][]element)
	home := make(map[string]partition) // by topic and key
	for at, records := range h.log {
		events := envelopes(records)
		found[at] = h.identify(at, records, events, home, report)
		checkChain(at, records, events, report)
	}
	want := h.expected(home, report)
	for at := range h.log {
		h.checkOrder(at, found[at], want[at], report)
		if !h.exact {
			h.checkAcknowledged(at, found[at], want[at], report)
			h.checkRepeats(at, found[at], report)
		}
	}
	if h.exact {
		h.checkTransactions(found, report)
	}
	return all
}

type reporter func(check, format string, args ...any)

// envelopes reads the values of records; nil for one that is none.
func envelopes(records []*kgo.Record) []*envelope {
	list := make([]*envelope, len(records))
	for i, r := range records {
		if v := new(envelope); r.Value != nil && json.Unmarshal(r.Value, v) == nil {
			list[i] = v
		}
	}
	return list
}

// identify finds out which element each record is.
func (h *history) identify(at partition, records []*kgo.Record, events []*envelope, home map[string]partition, report reporter) []element {
	list := make([]element, 0, len(records))
	for i, r := range records {
		if first, ok := home[at.topic+string(r.Key)]; ok && first != at {
			report("C3", "key %s of %s is in partitions %d and %d", r.Key, at.topic, first.n, at.n)
		}
		home[at.topic+string(r.Key)] = at
		e, err := h.element(at, r, events[i], list)
		if err != nil {
			report("C2", "%s-%d, record %d, key %s: %v: %s", at.topic, at.n, r.Offset, r.Key, err, r.Value)
			return list
		}
		list = append(list, e)
	}
	return list
}

func (h *history) element(at partition, r *kgo.Record, v *envelope, before []element) (element, error) {
	if r.Value == nil {
		i := len(before) - 1
		if i < 0 || before[i].n != 0 || before[i].key != string(r.Key) || !strings.ContainsRune("dk", rune(before[i].change.op)) {
			return element{}, fmt.Errorf("a tombstone without a delete before it")
		}
		return element{before[i].change, 1, before[i].key}, nil
	}
	if v == nil {
		return element{}, fmt.Errorf("it is no JSON")
	}
	ev := h.rows[rowsPlace{v.Source.GTID, v.Source.File, v.Source.Pos}]
	if ev == nil || v.Source.Row >= len(ev.changes) {
		return element{}, fmt.Errorf("the primary has not executed it")
	}
	c := ev.changes[v.Source.Row]
	if v.Source.Table != c.table || prefix+"."+database+"."+c.table != at.topic {
		return element{}, fmt.Errorf("it is of table %s", c.table)
	}
	e := element{change: c, key: string(r.Key)}
	op, was, is := string(c.op), c.before, c.after
	if c.op == 'k' {
		if op = "d"; v.Op == "c" {
			op, was, e.n = "c", nil, 2
		} else {
			is = nil
		}
	}
	for _, want := range c.elements() {
		if want.n == e.n && want.key != e.key {
			return element{}, fmt.Errorf("its key must be %s", want.key)
		}
	}
	if v.Op != op {
		return element{}, fmt.Errorf("its op must be %s", op)
	}
	if err := same(v.Before, c.columns, was); err != nil {
		return element{}, fmt.Errorf("before: %w", err)
	}
	if err := same(v.After, c.columns, is); err != nil {
		return element{}, fmt.Errorf("after: %w", err)
	}
	return e, nil
}

// same compares a row image with what it must be.
func same(text json.RawMessage, columns []column, row []any) error {
	if row == nil {
		if len(text) > 0 && string(text) != "null" {
			return fmt.Errorf("it must be null")
		}
		return nil
	}
	if string(text) == rowText(columns, row) {
		return nil
	}
	got, err := object(text)
	if err != nil {
		return err
	}
	if len(got) != len(columns) {
		return fmt.Errorf("%d fields, and the table has %d columns", len(got), len(columns))
	}
	for i, c := range columns {
		var want any
		switch v := row[i].(type) {
		case int64:
			want = json.Number(fmt.Sprint(v))
		case string:
			want = v
		}
		if v, ok := got[c.name]; !ok || v != want {
			return fmt.Errorf("%s must be %v", c.name, want)
		}
	}
	return nil
}

// rowText is a row image as it mostly is.
func rowText(columns []column, row []any) string {
	b := []byte{'{'}
	for i, c := range columns {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), c.name...), '"', ':')
		switch v := row[i].(type) {
		case int64:
			b = strconv.AppendInt(b, v, 10)
		case string:
			b = append(append(append(b, '"'), v...), '"')
		default:
			b = append(b, "null"...)
		}
	}
	return string(append(b, '}'))
}

func object(text []byte) (map[string]any, error) {
	got := make(map[string]any)
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err := d.Decode(&got)
	return got, err
}

// expected is what each partition must hold, in binlog order.
func (h *history) expected(home map[string]partition, report reporter) map[partition][]element {
	want := make(map[partition][]element)
	lost := 0
	for _, c := range h.changes {
		topic := prefix + "." + database + "." + c.table
		for _, e := range c.elements() {
			at, ok := home[topic+e.key]
			if !ok {
				lost++
				if h.complete && lost == 1 {
					report("C1", "change %d (%c of %s) and perhaps others are lost: no record has the key %s", c.seq, c.op, c.table, e.key)
				}
				continue
			}
			want[at] = append(want[at], e)
		}
	}
	return want
}

// checkOrder holds that a partition has its elements in binlog order, and that what comes again is a replay without gaps
// that begins at an offset with which an attempt began.
func (h *history) checkOrder(at partition, found, want []element, report reporter) {
	index := make(map[element]int, len(want))
	for i, e := range want {
		index[e] = i
	}
	starts := make(map[int]bool)
	for _, l := range h.loads {
		starts[sort.Search(len(want), func(i int) bool { return want[i].change.seq >= l.done.changes })] = true
	}
	last, newest := -1, -1
	for i, e := range found {
		n := index[e]
		switch {
		case n == last+1:
		case n > last:
			report("C1", "%s-%d: change %d (record %d of it) is missing at %d, where change %d comes", at.topic, at.n, want[last+1].change.seq, want[last+1].n, i, e.change.seq)
			return
		case h.exact:
			report("C4", "%s-%d: change %d comes again at %d, behind change %d", at.topic, at.n, e.change.seq, i, want[last].change.seq)
			return
		case !starts[n]:
			report("C3", "%s-%d: change %d comes again at %d, behind change %d, and no attempt began there", at.topic, at.n, e.change.seq, i, want[last].change.seq)
			return
		}
		last = n
		newest = max(newest, n)
	}
	if h.complete && newest < len(want)-1 {
		report("C1", "%s-%d: the last %d records are missing, from change %d on", at.topic, at.n, len(want)-1-newest, want[newest+1].change.seq)
	}
}

// checkAcknowledged holds that each offset was stored when everything before it was in the topics.
func (h *history) checkAcknowledged(at partition, found, want []element, report reporter) {
	first := make(map[element]int64, len(want))
	for i, e := range found {
		if _, ok := first[e]; !ok {
			first[e] = h.log[at][i].Offset
		}
	}
	reach := make([]int64, len(want)+1) // the partition's end once the first i are there
	for i, e := range want {
		reach[i+1] = math.MaxInt64
		if offset, ok := first[e]; ok {
			reach[i+1] = max(reach[i], offset+1)
		}
	}
	for _, s := range h.saves {
		n := sort.Search(len(want), func(i int) bool { return want[i].change.seq >= s.done.changes })
		if reach[n] > s.ends[at] {
			report("C6", "process %d stores %v (%v) at %v when %s-%d ends at %d, and not all of that is there yet", s.process, s.done, s.offset, clock(s.at), at.topic, at.n, s.ends[at])
			return
		}
	}
}

// checkOffsets holds that offsets only move forward, and that what is loaded is what was stored.
func (h *history) checkOffsets(report reporter) {
	var stored progress
	for _, s := range h.saves {
		if s.done.transactions < stored.transactions || s.done.changes < stored.changes {
			report("C7", "process %d stores %v behind %v", s.process, s.done, stored)
		}
		if !s.finished.IsZero() {
			stored = s.done
		}
	}
	for _, l := range h.loads {
		least, possible := progress{}, false
		for _, s := range h.saves {
			if !s.finished.IsZero() && !s.finished.After(l.at) {
				least = s.done
			}
		}
		for _, s := range h.saves {
			possible = possible || s.done == l.done && !s.at.After(l.at)
		}
		if l.none {
			if least != (progress{}) {
				report("C7", "process %d finds no offset, and %v was stored", l.process, least)
			}
			continue
		}
		if !possible || l.done.changes < least.changes || l.done.transactions < least.transactions {
			report("C7", "process %d goes on from %v at %v, and %v was stored", l.process, l.done, clock(l.at), least)
		}
	}
}

// counts says how much there was to check.
func (h *history) counts() counts {
	c := counts{changes: len(h.changes), transactions: h.transactions}
	for _, e := range h.changes {
		c.repeats -= len(e.elements())
	}
	for _, records := range h.log {
		c.records += len(records)
	}
	c.repeats += c.records
	return c
}

// checkRepeats holds that what an attempt repeats is not older than what the intervals of saving leave, when nothing kept them
// from it.
func (h *history) checkRepeats(at partition, found []element, report reporter) {
	first := make(map[element]time.Time)
	for i, e := range found {
		written := h.log[at][i].Timestamp
		before, again := first[e]
		if !again {
			first[e] = written
			continue
		}
		// The life that ended before it came again.
		end := time.Time{}
		for _, t := range h.ended {
			if t.Before(written) && t.After(end) && t.After(before) {
				end = t
			}
		}
		limit := h.flush + 3*time.Second
		if !end.IsZero() && end.Sub(before) > limit && h.calm(before, end) {
			report("C5", "%s-%d: change %d, written at %v, comes again at %v, though the process lived until %v and offsets are stored every %v",
				at.topic, at.n, e.change.seq, clock(before), clock(written), clock(end), h.flush)
			return
		}
	}
}

// checkChain holds that of one key each event's before is what the event before has as after. Columns may come and go.
func checkChain(at partition, records []*kgo.Record, events []*envelope, report reporter) {
	last := make(map[string][]byte) // by key
	seen := make(map[string]bool)
	for i, r := range records {
		v := events[i]
		if v == nil {
			continue
		}
		id := fmt.Sprintf("%s %s:%d:%d", r.Key, v.Source.File, v.Source.Pos, v.Source.Row)
		if v.Source.GTID != "" { // which has another place on another server
			id = string(r.Key) + v.Source.GTID + string(v.Before) + string(v.After)
		}
		if seen[id] {
			continue
		}
		seen[id] = true
		was, there := last[string(r.Key)]
		if v.Op != "c" && there && !bytes.Equal(was, v.Before) {
			if name := differ(was, v.Before); name != "" {
				report("C9", "%s-%d, record %d, key %s: before.%s is not what it was", at.topic, at.n, r.Offset, r.Key, name)
				return
			}
		}
		last[string(r.Key)] = v.After
	}
}

// differ names a field that two images have with different values; "": there is none.
func differ(a, b []byte) string {
	was, err1 := object(a)
	is, err2 := object(b)
	if err1 != nil || err2 != nil {
		return "*"
	}
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if v, ok := is[name]; ok && v != was[name] {
			return name
		}
	}
	return ""
}

var begin = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of the time in a bubble

func clock(t time.Time) time.Duration { return t.Sub(begin).Round(time.Millisecond) }
