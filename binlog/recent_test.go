package binlog

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tidemark-cdc/tidemark/schema"
)

// The versions that were looked up last are a short way to the newest one and nothing else: with and without them the same
// TABLE_MAPs give the same versions, whatever has happened to the tables.
func TestI10_RecentVersionsAreTheNewest(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 5))
		var both [2]*tables
		seen := [2]map[*version]int{{}, {}}
		for i := range both {
			r, err := newReader(Config{Captured: func(_, table string) bool { return table != "other" }, Catalog: schema.NewCatalog(schema.CatalogOptions{})}, nil)
			if err != nil {
				t.Fatal(err)
			}
			both[i] = &r.asm.tables
		}
		var did []string
		for range 200 {
			table := []string{"t", "u", "other"}[random.IntN(3)]
			what, id := random.IntN(10), uint64(random.IntN(3)*len(both[0].recent)+random.IntN(2))
			columns := [][]string{{"a"}, {"a", "b"}, {"b"}}[random.IntN(3)]
			b := &binlogBuilder{}
			b.mapped(id, table, random.IntN(2) == 0, columns...)
			var got [2]int
			for i, tables := range both {
				switch {
				case what == 0:
					tables.changed("db", table)
				case what == 1:
					tables.dropped(schema.TableName{Database: "db", Table: table}, tables.defs.key("db", table))
				case what == 2:
					tables.defs.change()
				default:
					if i == 1 {
						clear(tables.recent[:])
					}
					if err := tables.add(t.Context(), id, b.events[0][headerSize+8:], "f", 4); err != nil {
						t.Fatal(err)
					}
					v := tables.lookup(id)
					if _, ok := seen[i][v]; !ok {
						seen[i][v] = len(seen[i])
					}
					got[i] = seen[i][v]
				}
			}
			if did = append(did, fmt.Sprintf("%d %s %v %d", what, table, columns, id)); got[0] != got[1] {
				t.Fatalf("seed %d: version %d, without those looked up last %d, after %q", seed, got[0], got[1], did)
			}
		}
	}
}
