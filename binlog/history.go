package binlog

import (
	"slices"

	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// history is an adopted Debezium schema history, and how far the catalog has come in it.
type history struct {
	entries []schema.HistoryEntry
	at      []offset.Position // of the entries
	byPlace map[place][]int   // entries by position
	byGTIDs map[string][]int  // and by the set, which on another server is the only one that counts
	applied int               // entries before this one are in the catalog
}

// place is a position in binlog files, as a history has it.
type place struct {
	file       string
	pos, event int64
}

func newHistory(entries []schema.HistoryEntry) history {
	h := history{entries: entries, at: make([]offset.Position, len(entries)), byPlace: make(map[place][]int), byGTIDs: make(map[string][]int)}
	for i := range entries {
		e := &entries[i]
		p := offset.Position{File: e.File, Pos: e.Pos, Event: e.Event, Before: true}
		if e.GTIDs != "" {
			if set, err := offset.ParseGTIDSet(e.GTIDs); err == nil { // else the position counts alone
				p.GTIDs = set
			}
		}
		h.at[i] = p
		if e.Snapshot {
			continue
		}
		key := place{e.File, e.Pos, e.Event}
		h.byPlace[key] = append(h.byPlace[key], i)
		if !p.GTIDs.IsAbsent() {
			set := p.GTIDs.String()
			h.byGTIDs[set] = append(h.byGTIDs[set], i)
		}
	}
	return h
}

// advance puts the entries into the catalog whose positions o has come to. What a snapshot wrote holds from the beginning.
func (h *history) advance(o offset.Offset, defs *definitions) {
	for ; h.applied < len(h.entries); h.applied++ {
		e := &h.entries[h.applied]
		if !e.Snapshot && e.File != "" {
			if covers, known := o.Covers(h.at[h.applied]); !covers || !known {
				return
			}
		}
		_ = defs.change().Replay(e) // a text that is not understood says nothing
	}
}

// of finds the entries of the statement whose record has an offset, and says whether they are in the catalog already. By
// position first: a statement that is read again on the same server has the same.
func (h *history) of(record offset.Offset) (entries []int, applied bool) {
	if len(h.entries) == 0 {
		return nil, false
	}
	entries = h.byPlace[place{record.File, record.Pos, record.Event}]
	if len(entries) > 0 && !record.GTIDs.IsAbsent() && !h.at[entries[0]].GTIDs.IsAbsent() && !record.GTIDs.Equal(h.at[entries[0]].GTIDs) {
		entries = nil // the same place in the binlog of another server
	}
	if len(entries) == 0 && !record.GTIDs.IsAbsent() {
		entries = h.byGTIDs[record.GTIDs.String()]
	}
	return entries, len(entries) > 0 && entries[len(entries)-1] < h.applied
}

// take puts entries into the catalog, and those before them, and says what that has touched. The catalog has been moved by
// the entries' own statement, unless that was not understood.
func (h *history) take(entries []int, catalog *schema.Catalog, misunderstood bool) (touched []schema.TableName) {
	last := entries[len(entries)-1]
	for ; h.applied <= last; h.applied++ {
		e := &h.entries[h.applied]
		if len(e.Changes) == 0 && !misunderstood && slices.Contains(entries, h.applied) {
			continue
		}
		_ = catalog.Replay(e)
		touched = append(touched, catalog.Touched()...)
	}
	return touched
}

// correct replaces the definitions in the changes of a statement by those of its entries.
func (h *history) correct(entries []int, changes []schema.SchemaChange) {
	for i := range changes {
		for k := range changes[i].Changes {
			c := &changes[i].Changes[k]
			for _, e := range entries {
				for _, was := range h.entries[e].Changes {
					if was.Database == c.Database && was.Table == c.Table && was.Definition != nil && c.Definition != nil {
						c.Definition = was.Definition
					}
				}
			}
		}
	}
}

// changes are what entries say themselves.
func (h *history) changes(entries []int) []schema.SchemaChange {
	var changes []schema.SchemaChange
	for _, i := range entries {
		e := &h.entries[i]
		c := schema.SchemaChange{Database: e.Database, DDL: e.DDL, Changes: e.Changes, Topic: true, History: true}
		for _, change := range e.Changes {
			c.Tables = append(c.Tables, change.Table)
		}
		changes = append(changes, c)
	}
	return changes
}
