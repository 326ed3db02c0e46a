package main

import (
	"testing"

	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// TestI10_OffsetMovedBack: an offset that was moved back to before a statement that the store knows keeps the definitions;
// only one behind all of them may have passed statements that nobody noted.
func TestI10_OffsetMovedBack(t *testing.T) {
	tables := []schema.StoredTable{{Database: "d", Table: "t", Versions: []schema.StoredVersion{{File: "b.000001", Pos: 100}, {File: "b.000001", Pos: 900}}}}
	for pos, want := range map[int64]bool{500: false, 900: true, 1500: true} {
		if got := allReached(tables, offset.Offset{File: "b.000001", Pos: pos}); got != want {
			t.Errorf("at %d: %v, want %v", pos, got, want)
		}
	}
}
