package bench

import (
	"encoding/json"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/it"
)

// history is what the topics of a tool hold that was stopped and started again. Times are when the broker appended a record, whose
// clock is this machine's: nobody has to look, so nothing is taken from the tool, and nothing is added.
type history struct {
	distinct int64     // rows that are there
	repeated int64     // records of rows that were there already
	first    time.Time // the first record behind the stop
	fresh    time.Time // the first record of a row that was not there at the stop
}

// history reads what a workload of inserts with ids in a row, from base on, has made. stopped are the ends when the tool had stopped.
// Records of one key are in one partition, so whatever is read later of a key is later.
func (a *attempt) history(t testing.TB, base, rows int64, stopped map[string]map[int32]int64) history {
	t.Helper()
	var h history
	seen := make([]bool, rows)
	earliest := func(at *time.Time, r *kgo.Record) {
		// The stamp is the millisecond that has begun; what counts is its end.
		if stamp := r.Timestamp.Add(time.Millisecond); at.IsZero() || stamp.Before(*at) {
			*at = stamp
		}
	}
	a.topics.each(t, func(r *kgo.Record) bool {
		id, ok := idOf(r.Key)
		i := id - base
		if !ok || i < 0 || i >= rows {
			t.Fatalf("a record with the key %q, which was not written", r.Key)
		}
		after := r.Offset >= stopped[r.Topic][r.Partition]
		if after {
			earliest(&h.first, r)
		}
		if seen[i] {
			h.repeated++
			return true
		}
		seen[i] = true
		h.distinct++
		if after {
			earliest(&h.fresh, r)
		}
		return true
	})
	return h
}

// restart stops a tool in the middle of a transaction, starts it again, and waits for the end. elsewhere has what is stored be of
// another server with the same transactions.
func (s *stage) restart(t testing.TB, tool string, c cell, how syscall.Signal, elsewhere bool) Result {
	t.Helper()
	a := s.prepare(t, tool, c, c.workload.start, true)
	total := int64(c.workload.records)
	p := a.launch(t)
	a.topics.watch(t, p, total/2)
	one := Result{RSS: p.PeakRSS(t)}
	p.Signal(t, how)
	p.Wait(t, 2*time.Minute)
	stopped := a.topics.settled(t, 200*time.Millisecond)
	if sum(stopped) >= total {
		one.Also = "had ended before it was stopped: more rows are needed"
		return one
	}
	if covered, ok := a.covered(t); ok {
		one.Unstored = new(sum(stopped) - covered)
	}
	if elsewhere {
		one.Behind = a.elsewhere(t, c.workload.start)
	}
	p = a.launch(t)
	a.finish(t, p, &one, 1, total, stopped)
	return one
}

// begin lets a tool read a small workload, stops it, writes as much again and starts it: it has its offset and all that belongs to it.
func (s *stage) begin(t testing.TB, tool string, c cell) Result {
	t.Helper()
	rows := c.workload.rows
	base := nextID(t, s, c.workload)
	a := s.prepare(t, tool, c, now(t, s.mysql), true)
	p := a.launch(t)
	c.workload.more(t, s.mysql, base, rows)
	a.topics.watch(t, p, int64(rows))
	// Whoever stores offsets once a second has done it.
	time.Sleep(2 * time.Second)
	one := Result{RSS: p.PeakRSS(t)}
	p.Signal(t, syscall.SIGTERM)
	p.Wait(t, 2*time.Minute)
	stopped := a.topics.settled(t, 200*time.Millisecond)
	c.workload.more(t, s.mysql, base+int64(rows), rows)
	time.Sleep(time.Second) // the server has written
	p = a.launch(t)
	a.finish(t, p, &one, base, int64(2*rows), stopped)
	return one
}

// finish waits until a tool that was started again has written all, and says what came when.
func (a *attempt) finish(t testing.TB, p *process, one *Result, base, rows int64, stopped map[string]map[int32]int64) {
	t.Helper()
	a.topics.watch(t, p, rows)
	var h history
	// Repeated records make more than there are rows, so the end is when nothing comes any more.
	for _, quiet := range []time.Duration{3 * time.Second, 10 * time.Second, 30 * time.Second} {
		a.topics.settled(t, quiet)
		if h = a.history(t, base, rows, stopped); h.distinct == rows {
			break
		}
	}
	one.RSS = max(one.RSS, p.PeakRSS(t))
	p.Kill()
	one.Repeated, one.Lost = new(h.repeated), new(rows-h.distinct)
	if !h.first.IsZero() {
		one.First = h.first.Sub(p.begun)
	}
	if !h.fresh.IsZero() {
		one.New = h.fresh.Sub(p.begun)
	}
}

// covered is how many rows of the one transaction that was read lie before the stored offset, where the tool keeps that: Tidemark says
// in the record beside the offset how many lie before the event that the offset is in, and the offset how many in it.
func (a *attempt) covered(t testing.TB) (int64, bool) {
	t.Helper()
	if a.connector == nil || a.tool != "tidemark" {
		return 0, false
	}
	entries := a.stored(t)
	var offset struct {
		Row int64 `json:"row"`
	}
	var beside struct {
		Rows int64 `json:"transaction_rows"` // left out while nothing of the transaction is stored
	}
	for key, into := range map[string]any{
		it.OffsetKey(a.connector.Name, a.connector.Prefix): &offset,
		it.SideKey(a.connector.Name, a.connector.Prefix):   &beside,
	} {
		if text := entries[key]; text != "" {
			if err := json.Unmarshal([]byte(text), into); err != nil {
				t.Fatalf("%v in %s", err, text)
			}
		}
	}
	return beside.Rows + offset.Row, true
}

// stored is what the tool's offset file holds.
func (a *attempt) stored(t testing.TB) map[string]string {
	t.Helper()
	entries, err := it.ReadOffsetFile(a.connector.OffsetFile())
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// elsewhere has the record beside the offset name another server than that of the test, which is then one that has the same
// transactions at positions of its own. It returns how many bytes of the stored transaction lie before the offset.
func (a *attempt) elsewhere(t testing.TB, from position) int64 {
	t.Helper()
	entries := a.stored(t)
	key := it.SideKey(a.connector.Name, a.connector.Prefix)
	var beside map[string]any
	if err := json.Unmarshal([]byte(entries[key]), &beside); err != nil {
		t.Fatalf("%v in %s", err, entries[key])
	}
	at, ok := beside["event_pos"].(float64)
	if _, named := beside["server_uuid"]; !ok || !named {
		t.Fatalf("no server or no position in %s", entries[key])
	}
	beside["server_uuid"] = "00000000-1111-2222-3333-444444444444"
	text, err := json.Marshal(beside)
	if err != nil {
		t.Fatal(err)
	}
	entries[key] = string(text)
	var pairs []string
	for k, v := range entries {
		pairs = append(pairs, k, v)
	}
	it.WriteOffsetFile(t, a.connector.OffsetFile(), pairs...)
	return int64(at) - int64(from.pos)
}
