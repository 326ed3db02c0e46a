package binlog

import (
	"testing"

	"github.com/tidemark-cdc/tidemark/offset"
)

// TestGTIDTexts: each text is that of its GTID, in whatever order they come, and stays so.
func TestGTIDTexts(t *testing.T) {
	var ids []offset.GTID
	for _, text := range []string{testUUID + ":1", testUUID + ":89", testUUID + ":tag:8", testUUID + ":9999998", "0-1-97", "0-2-97", "1-1-97"} {
		id, err := offset.ParseGTID(text)
		if err != nil {
			t.Fatal(err)
		}
		for range 120 {
			ids = append(ids, id)
			id.Number++
		}
		ids = append(ids, id, id)
	}
	for i := range 240 { // in turn, and back
		ids = append(ids, ids[i*7%840], ids[840-i])
	}
	var texts gtidTexts
	var got []string
	for _, id := range ids {
		got = append(got, texts.of(id))
	}
	for i, id := range ids {
		if got[i] != id.String() {
			t.Fatalf("number %d: %s, want %s", i, got[i], id)
		}
	}
	id := ids[0]
	if n := testing.AllocsPerRun(1000, func() { id.Number++; texts.of(id) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
