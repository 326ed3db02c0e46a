package main

import (
	"testing"

	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// Tables that were dropped before the stored offset are of no use to any restart; one that a restart would see dropped again
// is.
func TestDropped(t *testing.T) {
	was := schema.StoredVersion{Definition: &schema.Definition{}}
	gone := schema.StoredVersion{File: "mysql-bin.000002", Pos: 500}
	again := schema.StoredVersion{File: "mysql-bin.000002", Pos: 600, Definition: &schema.Definition{}}
	tables := []schema.StoredTable{
		{},
		{Database: "d"},
		{Database: "d", Table: "dropped", Versions: []schema.StoredVersion{was, gone}},
		{Database: "d", Table: "kept", Versions: []schema.StoredVersion{was}},
		{Database: "d", Table: "made again", Versions: []schema.StoredVersion{was, gone, again}},
		{Database: "d", Versions: []schema.StoredVersion{gone}},
	}
	for pos, want := range map[int64]int{499: 0, 500: 1} {
		got := dropped(tables, offset.Offset{File: "mysql-bin.000002", Pos: pos})
		if len(got) != want || want == 1 && (got[0].Table != "dropped" || got[0].Versions != nil) {
			t.Errorf("at %d: %+v", pos, got)
		}
	}
}
