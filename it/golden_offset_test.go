package it

import (
	"bytes"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var zeroTime time.Time

// expectedOffset is the source offset that a record has to carry.
type expectedOffset struct {
	text string // exactly this
	// Or, of a record that is not the last of its row or DDL (I3): these members. A DDL that is several records leaves from where
	// its first one would be read again to us, somewhere in (0, before].
	members map[string]any
	before  int64
	// Or, of rows of an XA transaction: a whole state before the commit, without a row or an event in it; see compareXA.
	xa bool
}

// expectedOffsets are the offsets of Debezium, but that only the last record of a row, or of a DDL, may say that it is done.
func expectedOffsets(t *testing.T, records []TailRecord) []expectedOffset {
	t.Helper()
	offsets := make([]expectedOffset, len(records))
	counters := map[string]any{} // of the row before
	for i := range records {
		r := &records[i]
		if i+1 == len(records) || !sameRow(t, r, &records[i+1]) {
			offsets[i] = expectedOffset{text: r.source}
			counters = transactionCounters(members(t, r.source))
			continue
		}
		m := members(t, r.source)
		if r.payload(t).DDL != nil {
			offsets[i] = expectedOffset{members: m, before: r.payload(t).Source.Pos}
			delete(m, "pos")
			continue
		}
		row, ok := m["row"].(float64)
		if !ok {
			t.Fatalf("no row in offset %s", r.source)
		}
		if m["row"] = row - 1; row == 1 {
			delete(m, "row")
		}
		maps.DeleteFunc(m, func(k string, _ any) bool { return strings.HasPrefix(k, counterPrefix) })
		for k, v := range counters {
			m[k] = v
		}
		offsets[i] = expectedOffset{members: m}
	}
	return offsets
}

const counterPrefix = "transaction_data_collection_order_"

// transactionCounters are an offset's counters of rows in the open transaction.
func transactionCounters(m map[string]any) map[string]any {
	counters := map[string]any{}
	for k, v := range m {
		if strings.HasPrefix(k, counterPrefix) {
			counters[k] = v
		}
	}
	return counters
}

// sameRow says whether the record after r is of the same row: the tombstone or the create of a delete, or of the same DDL.
func sameRow(t *testing.T, r, next *TailRecord) bool {
	p, n := r.payload(t), next.payload(t)
	switch {
	case p.DDL != nil:
		return n.DDL != nil && n.Source.Pos == p.Source.Pos && n.Source.File == p.Source.File
	case next.Value == nil:
		return p.Op == "d"
	default:
		return next.hasHeader("__debezium.oldkey") && (p.Op == "d" || r.Value == nil)
	}
}

func members(t testing.TB, offset string) map[string]any {
	t.Helper()
	var m map[string]any
	mustJSON(t, []byte(offset), &m)
	return m
}

// compare compares the offset of a record with it.
func (e expectedOffset) compare(t *testing.T, what, got string) {
	t.Helper()
	switch {
	case e.xa:
		if s, err := ParseStored([]byte(got), zeroTime); err != nil || s.Row != 0 || s.Event != 0 {
			t.Errorf("%s: offset %s of a row of an XA transaction (%v)", what, got, err)
		}
	case e.members == nil:
		if got != e.text {
			t.Errorf("%s: offset\n got %s\nwant %s", what, got, e.text)
		}
	default:
		m := members(t, got)
		want := maps.Clone(e.members)
		if e.before > 0 {
			pos, _ := m["pos"].(float64)
			if pos < 4 || int64(pos) > e.before {
				t.Errorf("%s: offset %s is not before the statement at %d", what, got, e.before)
			}
			// What came before it may have another time and be of another server.
			for _, k := range []string{"pos", "ts_sec", "server_id"} {
				delete(m, k)
				delete(want, k)
			}
		}
		if a, b := marshal(t, m), marshal(t, want); a != b {
			t.Errorf("%s: offset\n got %s\nwant %s (it is not the last record of its row)", what, a, b)
		}
	}
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// checkOffsets requires of our own records what holds whatever Debezium does: offsets parse, and none goes back (I2).
func checkOffsets(t *testing.T, records []TailRecord) {
	t.Helper()
	var last Stored
	for i := range records {
		s, err := ParseStored([]byte(records[i].source), zeroTime)
		if err != nil {
			t.Errorf("%s: %v", records[i].what(t), err)
			continue
		}
		if back := compareStoredPlaces(s, last); back < 0 {
			t.Errorf("%s: the offset goes back from %v to %v", records[i].what(t), last, s)
		}
		last = s
	}
}

// compareStoredPlaces orders two offsets of one server.
func compareStoredPlaces(a, b Stored) int {
	if c := strings.Compare(a.File, b.File); c != 0 {
		return c
	}
	return slices.Compare([]int64{a.Pos, a.Event, int64(a.Row)}, []int64{b.Pos, b.Event, int64(b.Row)})
}

// compareStored requires, where it is not known which record had which offset, that the offsets that were stored are ours too.
func compareStored(t *testing.T, want *capture, got []TailRecord) {
	t.Helper()
	ours := map[string]bool{}
	for _, r := range got {
		ours[r.source] = true
	}
	compared := 0
	for _, text := range storedOffsets(t, want.dir) {
		if !ours[text] {
			t.Errorf("the offset %s was stored; no record of ours has it", text)
		}
		compared++
	}
	if compared == 0 {
		t.Errorf("no stored offset of the stream in %s", want.dir)
	}
}

// storedOffsets are the distinct offsets of the stream that a folder's connector stored, in their order.
func storedOffsets(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "offsets*.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, name := range names {
		for line := range bytes.Lines(gunzip(t, name)) {
			var r struct{ Value *string }
			mustJSON(t, line, &r)
			if r.Value == nil || !strings.Contains(*r.Value, `"server_id"`) || slices.Contains(all, *r.Value) {
				continue
			}
			all = append(all, *r.Value)
		}
	}
	return all
}

// expectedRecord is a record with the offset that it has to carry.
type expectedRecord struct {
	TailRecord
	offset expectedOffset
}

// compareXA requires one offset of all rows of an XA transaction: that before its XA COMMIT. What of it is written stands in the
// record beside the offset.
func compareXA(t *testing.T, records []TailRecord) {
	t.Helper()
	offsets := map[string]string{} // by GTID
	for i := range records {
		r := &records[i]
		if r.Value == nil {
			continue
		}
		gtid := sourceOf(t, *r).GTID
		if gtid == "" {
			continue
		}
		if before, ok := offsets[gtid]; ok && before != r.source {
			t.Errorf("%s: offset %s, but another row of its transaction has %s", r.what(t), r.source, before)
		}
		offsets[gtid] = r.source
	}
}

// moveXA takes the rows of XA transactions out that were rolled back, and puts those of the others where they are committed.
// Debezium writes them when they are prepared, with offsets that cover rows that were never written; ours say by their order and
// offsets that a transaction is one whole.
func moveXA(t *testing.T, f goldenFolder, records []TailRecord, offsets []expectedOffset) []expectedRecord {
	t.Helper()
	all := make([]expectedRecord, 0, len(records))
	moved := map[string][]expectedRecord{}
	used := map[string]bool{}
	for i := range records {
		r := expectedRecord{records[i], offsets[i]}
		name := r.short(t)
		after, isXA := f.xa[name]
		if isXA && strings.Contains(r.source, `"transaction_id"`) {
			t.Errorf("%s is not of an XA transaction", name)
		}
		if !isXA {
			all = append(all, r)
			all = append(all, moved[name]...)
			continue
		}
		used[name] = true
		r.offset = expectedOffset{xa: true}
		switch after {
		case xaRolledBack:
		case xaAtOnce:
			all = append(all, r)
		default:
			moved[after] = append(moved[after], r)
		}
	}
	for name := range f.xa {
		if !used[name] {
			t.Errorf("Debezium did not write the row %s of an XA transaction", name)
		}
	}
	return all
}

// short is a record's table and key; of transaction metadata the status and key.
func (r *TailRecord) short(t testing.TB) string {
	switch p := r.payload(t); {
	case p.Status != "":
		return p.Status + " " + r.keyText()
	case p.Source.Table != nil:
		return *p.Source.Table + " " + r.keyText()
	default:
		return "- " + r.keyText()
	}
}
