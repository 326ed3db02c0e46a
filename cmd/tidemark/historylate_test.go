package main

import (
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/tidemark-cdc/tidemark/binlog"
	"github.com/tidemark-cdc/tidemark/binlog/server"
	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
	"github.com/tidemark-cdc/tidemark/emitter"
	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// A history whose definitions are of a later position than the start is begun when the stream has come there, and has
// nothing of the statements before, which those definitions have.
func TestLateHistory(t *testing.T) {
	place := func(pos int64) offset.Offset { return offset.Offset{File: "mysql-bin.000002", Pos: pos} }
	for name, last := range map[string]binlog.Event{
		"a commit":      &binlog.Boundary{Offset: place(700)},
		"DDL":           &binlog.SchemaChange{Offset: place(700)},
		"behind it":     &binlog.Boundary{Offset: place(900)},
		"DDL behind it": &binlog.SchemaChange{Offset: place(900)},
	} {
		t.Run(name, func(t *testing.T) {
			w := &written{}
			c := &config.Connector{Filter: &config.Filter{}}
			em, err := emitter.New(emitter.Config{Prefix: "p"})
			if err != nil {
				t.Fatal(err)
			}
			s := &schemas{c: c, history: w, emitter: em, log: zap.NewNop()}
			l := lateHistory{
				at: place(700), opts: catalogOptions(c),
				texts: []server.TableText{{TableID: server.TableID{Database: "d", Name: "t"}, SQL: "CREATE TABLE `t` (\n  `a` int\n)"}},
			}
			if err := s.beginHistory(t.Context(), true, true, l); err != nil {
				t.Fatal(err)
			}
			event := func(e binlog.Event) {
				t.Helper()
				if s.late != nil {
					if err := s.reached(t.Context(), e); err != nil {
						t.Fatal(err)
					}
				}
				if ddl, ok := e.(*binlog.SchemaChange); ok {
					ddl.Changes = []schema.SchemaChange{{Database: "d", DDL: "ALTER " + name, History: true}}
					if err := s.changed(t.Context(), ddl); err != nil {
						t.Fatal(err)
					}
				}
			}
			event(&binlog.SchemaChange{Offset: place(500)})
			event(&binlog.Rows{})
			event(&binlog.Boundary{Offset: place(600)})
			if len(w.records) != 0 {
				t.Fatalf("written too early: %v", w.records)
			}
			event(last)
			begun := len(w.records)
			if begun == 0 || !strings.HasPrefix(w.records[0].DDL, "SET character_set_server") {
				t.Fatalf("not begun: %v", w.records)
			}
			own := strings.HasPrefix(w.records[begun-1].DDL, "ALTER")
			if want := name == "DDL behind it"; own != want {
				t.Errorf("the last record is %q", w.records[begun-1].DDL)
			}
			event(&binlog.SchemaChange{Offset: place(1000)})
			if len(w.records) != begun+1 {
				t.Errorf("%d records after the next statement, want %d", len(w.records), begun+1)
			}
		})
	}
}

// A crash may come between the beginning of a late history and the offset behind it: the next start must not take its
// definitions for those of the stored offset, nor write what they have already.
func TestAdoptedLater(t *testing.T) {
	entry := func(snapshot bool, pos int64) schema.HistoryEntry {
		return schema.HistoryEntry{File: "mysql-bin.000002", Pos: pos, Snapshot: snapshot}
	}
	history := []schema.HistoryEntry{entry(true, 100), entry(false, 300), entry(true, 700), entry(true, 700), entry(false, 900)}
	for pos, want := range map[int64]int64{50: 700, 699: 700, 700: 0, 800: 0, 1000: 0} {
		s, cfg := &schemas{}, binlog.Config{History: history}
		s.adoptedLater(&cfg, offset.Offset{File: "mysql-bin.000002", Pos: pos})
		if cfg.CatalogAt.Pos != want || s.unwritten.Pos != want {
			t.Errorf("at %d: the definitions are those of %d, and the history has what is before %d; want %d", pos, cfg.CatalogAt.Pos, s.unwritten.Pos, want)
		}
	}
}
