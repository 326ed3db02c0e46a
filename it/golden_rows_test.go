package it

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// rightRow is a record as it has to be where Debezium stops or loses rows, written down from the SQL. Images are the JSON of their
// payload; "" is null. Of a DDL, op is "ddl", key the database and after the statement's text.
type rightRow struct {
	table, op, key, before, after string
}

// text is the row in the form in which rows are compared.
func (r rightRow) text() string {
	null := func(s string) string {
		if s == "" {
			return "null"
		}
		return s
	}
	return fmt.Sprintf("%s %s key %s before %s after %s", r.table, r.op, null(r.key), null(r.before), null(r.after))
}

// rowOf reduces a record to what a rightRow has.
func rowOf(t *testing.T, r TailRecord) rightRow {
	t.Helper()
	p := r.payload(t)
	row := rightRow{op: p.Op, key: r.keyText(), before: compact(t, p.Before), after: compact(t, p.After)}
	if r.Key == nil {
		row.key = ""
	}
	switch {
	case r.Value == nil:
		row.op = "tombstone"
		row.table = r.Topic[strings.LastIndexAny(r.Topic, ".")+1:]
	case p.DDL != nil:
		row.op, row.after = "ddl", *p.DDL
	}
	if p.Source.Table != nil {
		row.table = *p.Source.Table
	}
	return row
}

// compact is JSON without blanks, "" for null and nothing.
func compact(t *testing.T, text json.RawMessage) string {
	t.Helper()
	if len(text) == 0 || string(text) == "null" {
		return ""
	}
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// compareRows compares the whole stream with rows that were written down.
func compareRows(t *testing.T, want []rightRow, got []TailRecord) {
	t.Helper()
	var a, b []string
	for _, r := range got {
		a = append(a, rowOf(t, r).text())
	}
	for _, r := range want {
		b = append(b, r.text())
	}
	matchSequence(t, a, b)
}

// compareWithRows compares byte for byte what Debezium did write before it stopped, or beside what it lost, with our record of the
// same place; those that goldenFolder.wrongRecords names are wrong there and must differ.
func compareWithRows(t *testing.T, f goldenFolder, want *capture, got []TailRecord) int {
	t.Helper()
	ours := map[string][]TailRecord{}
	for i := range got {
		ours[got[i].what(t)] = append(ours[got[i].what(t)], got[i])
	}
	compared := 0
	expected := expectedOffsets(t, want.records)
	for i := range want.records {
		w := &want.records[i]
		what := w.what(t)
		wrong := slices.Contains(f.wrongRecords, rowOf(t, *w).table+" "+w.keyText())
		if wrong {
			if len(ours[what]) > 0 && normalised(t, ours[what][0]).String() == normalised(t, *w).String() {
				t.Errorf("%s is said to be wrong, but it is ours too", what)
			}
			continue
		}
		if len(ours[what]) == 0 {
			t.Errorf("missing: %s", what)
			continue
		}
		g := ours[what][0]
		ours[what] = ours[what][1:]
		compareRecord(t, g, *w)
		expected[i].compare(t, what, g.source)
		compared++
	}
	return compared
}
