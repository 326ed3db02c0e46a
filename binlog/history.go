package binlog

import (
	"context"
	"strings"

	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// HistoryDefinitions is the [Definitions] of a Debezium schema history. A reader that is given it tells it how far the
// stream has come: entries up to the start position hold from the beginning, later ones from their position on (I10,
// I11). It is for one reader.
type HistoryDefinitions struct {
	entries []schema.HistoryEntry // not reached yet
	tables  map[tableName]*schema.Definition
}

// NewHistoryDefinitions takes a history as [schema.ReadHistory] returns it, in its order.
func NewHistoryDefinitions(entries []schema.HistoryEntry) *HistoryDefinitions {
	return &HistoryDefinitions{entries: entries, tables: make(map[tableName]*schema.Definition)}
}

// Definition is the table's definition at the present position of the stream.
func (h *HistoryDefinitions) Definition(database, table string) *schema.Definition {
	return h.tables[tableName{database, table}]
}

// Refresh is Definition: a history knows nothing newer.
func (h *HistoryDefinitions) Refresh(_ context.Context, database, table string) (*schema.Definition, error) {
	return h.Definition(database, table), nil
}

// Tables names the tables of a database at the present position of the stream, in no order.
func (h *HistoryDefinitions) Tables(database string) []string {
	var names []string
	for t := range h.tables {
		if strings.EqualFold(t.database, database) {
			names = append(names, t.table)
		}
	}
	return names
}

// advance applies the entries up to a position. What a snapshot wrote holds where the stream begins.
func (h *HistoryDefinitions) advance(file string, pos int64) {
	for len(h.entries) > 0 {
		e := &h.entries[0]
		if !e.Snapshot && e.File != "" {
			ahead, comparable := offset.Offset{File: file, Pos: pos}.Before(offset.Offset{File: e.File, Pos: e.Pos})
			if ahead || !comparable {
				return
			}
		}
		for i := range e.Changes {
			h.apply(&e.Changes[i])
		}
		h.entries = h.entries[1:]
	}
}

func (h *HistoryDefinitions) apply(c *schema.Change) {
	if c.PreviousTable != "" {
		delete(h.tables, tableName{c.PreviousDatabase, c.PreviousTable})
	}
	name := tableName{c.Database, c.Table}
	if c.Definition == nil {
		delete(h.tables, name)
		return
	}
	h.tables[name] = c.Definition
}
