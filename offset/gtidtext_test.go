package offset

import "testing"

// TestGTIDText: each text is that of its GTID, in whatever order they come; a zero one has none.
func TestGTIDText(t *testing.T) {
	ids := []GTID{{}, mustGTID(t, uuidA+":8")}
	for _, text := range []string{uuidA + ":1", uuidA + ":89", uuidB + ":tag:8", "0-1-97", "1-1-0"} {
		for id, i := mustGTID(t, text), 0; i < 120; i++ {
			ids = append(ids, id)
			id.Number++
		}
		ids = append(ids, GTID{}, ids[len(ids)-1], ids[len(ids)-1], ids[len(ids)/2])
	}
	if s := ids[0].String(); s != "" || !ids[0].IsZero() || ids[1].IsZero() || mustGTID(t, "1-1-0").IsZero() {
		t.Errorf("the zero GTID is %q", s)
	}
	var texts GTIDText
	for i, id := range ids {
		if got := string(texts.Of(id)); got != id.String() {
			t.Fatalf("number %d: %q, want %q", i, got, id)
		}
	}
	id := ids[1]
	if n := testing.AllocsPerRun(1000, func() { id.Number++; texts.Of(id) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
