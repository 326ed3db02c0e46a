package binlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-cdc/tidemark/offset"
	"github.com/tidemark-cdc/tidemark/schema"
)

// ddl handles a statement outside a transaction that is DDL, or may be.
func (a *assembler) ddl(ctx context.Context, h *header, q queryEvent, s statement) (Event, error) {
	silent := a.silent()
	if err := a.resumeElsewhere(); err != nil {
		return nil, err
	}
	change := SchemaChange{Info: a.statementInfo(h), Row: a.lastRow, Record: a.offsetAt(h, a.next), Before: a.offsetAt(h, a.groupStart)}
	if err := a.apply(ctx, q, s, &change); err != nil {
		return nil, err
	}
	b := a.endGroup(h, false)
	switch {
	case silent || b == nil:
		return nil, nil
	case len(change.Changes) == 0 && len(change.Tables) == 0:
		return b, nil
	}
	change.Offset = b.Offset
	a.lastSec = change.Info.TsMicros / 1e6
	a.schema = change
	return &a.schema, nil
}

// ddlInside handles DDL in a transaction: CREATE TABLE … START TRANSACTION, in front of the rows of its query.
func (a *assembler) ddlInside(ctx context.Context, h *header, q queryEvent) (Event, error) {
	here := a.within(h)
	change := SchemaChange{Info: a.statementInfo(h), Row: a.lastRow, Record: here, Before: here}
	if err := a.apply(ctx, q, statement{kind: kindDDL}, &change); err != nil {
		return nil, err
	}
	// It stands in front of the rows, so it has been given out if some of them have.
	if a.silent() || a.skipping || a.pass.left() > 0 || len(change.Changes) == 0 && len(change.Tables) == 0 {
		return nil, nil
	}
	change.Offset = here
	change.Offset.Event++
	a.lastSec = change.Info.TsMicros / 1e6
	a.schema = change
	return &a.schema, nil
}

// apply moves the catalog by a statement and notes in change what it did. What lies before the start counts only where
// it stands for a snapshot: in files. A schema history wins over what the statement says.
func (a *assembler) apply(ctx context.Context, q queryEvent, s statement, change *SchemaChange) error {
	if a.silent() && !(a.early && len(a.history.entries) == 0) || a.maria.announced || a.defs == nil || a.defs.catalog == nil {
		return nil
	}
	entries, applied := a.history.of(change.Record)
	if applied { // read again: the catalog is behind it already
		change.Changes = a.history.changes(entries)
		return nil
	}
	st := decodeStatement(q)
	if a.silent() {
		st.Form = schema.ShowCreateForm
	} else {
		a.versions.begin(a.defs)
	}
	catalog := a.defs.change()
	changes, unknown, err := catalog.Apply(st)
	touched := catalog.Touched()
	switch {
	case len(entries) > 0:
		if err != nil {
			changes = a.history.changes(entries)
		}
		a.history.correct(entries, changes)
		touched = append(touched, a.history.take(entries, catalog, err != nil)...)
	case err != nil && s.kind == kindDDL && a.ahead(change.Record): // what it does is done already: no wonder that it cannot be done again
		changes = catalog.Skipped(st)
	case err != nil:
		if changes, touched, err = a.unparseable(ctx, st, s, unknown, err); err != nil {
			return err
		}
	default:
		a.confirm(st, changes, change.Record)
		touched = a.beforeCatalog(touched, changes, change.Record)
		if err := a.ask(ctx, unknown, changes); err != nil {
			return err
		}
	}
	if !a.silent() {
		change.Changes, change.Tables, change.AnsiQuotes = changes, a.storedTables(touched, st.SQL), st.AnsiQuotes
	}
	return nil
}

// ask completes the changes of tables that were not known: the server is asked what they are.
func (a *assembler) ask(ctx context.Context, unknown []schema.TableName, changes []schema.SchemaChange) error {
	for _, t := range unknown {
		a.tables.changed(t.Database, t.Table)
		var open []*schema.Change
		for i := range changes {
			for k := range changes[i].Changes {
				if c := &changes[i].Changes[k]; c.Database == t.Database && c.Table == t.Table && c.Kind != schema.DropTable {
					open = append(open, c)
				}
			}
		}
		if len(open) == 0 || a.silent() || !a.captured(t.Database, t.Table) {
			continue
		}
		def, err := a.defs.refresh(ctx, t.Database, t.Table)
		if err != nil {
			return a.errorf(fmt.Errorf("its definition could not be read: %w", err), t.Database+"."+t.Table)
		}
		if def == nil {
			continue
		}
		a.defs.adopt(t.Database, t.Table, def)
		for _, c := range open {
			c.Definition = def
		}
	}
	return nil
}

// unparseable goes on behind a statement that could not be understood: with column names in the binlog it costs no more
// than what only definitions say. It returns the records of a statement that is to be skipped, and the tables whose
// definitions do not hold any more.
func (a *assembler) unparseable(ctx context.Context, st schema.Statement, s statement, about []schema.TableName, cause error) (changes []schema.SchemaChange, touched []schema.TableName, err error) {
	if s.kind != kindDDL {
		return nil, nil, nil
	}
	ddl := lostDDL{where: at(a.file, a.start), sql: st.SQL, err: cause}
	for _, t := range about {
		if a.skipDDL && !a.named(t) {
			continue // TABLE_MAP's types are all that is compared then
		}
		if a.defs.at(t.Database, t.Table) != nil {
			touched = append(touched, t)
		}
		a.defs.lose(tableName{t.Database, t.Table}, ddl)
		a.tables.changed(t.Database, t.Table)
		if !a.named(t) && !a.silent() && a.captured(t.Database, t.Table) { // now, so that the next start knows it, too
			if _, err := a.defs.recover(ctx, t.Database, t.Table); err != nil && !errors.Is(err, errUntold) {
				return nil, nil, a.errorf(err, t.Database+"."+t.Table)
			}
		}
	}
	if !a.warnedDDL && !a.silent() {
		a.warnedDDL = true
		a.warn(fmt.Sprintf("%s: a statement was not understood, so what only it says of its table (defaults, comments, keys) is asked of the server or left out. "+
			"Others like it are not reported: %v", ddl.where, cause))
	}
	if a.skipDDL {
		changes = a.defs.catalog.Skipped(st)
	}
	return changes, touched, nil
}

// named says whether the binlog names the columns of a table, as far as that has been seen.
func (a *assembler) named(t schema.TableName) bool {
	key := a.defs.key(t.Database, t.Table)
	for _, v := range a.tables.newest {
		if a.defs.key(v.database, v.name) == key {
			return v.named
		}
	}
	return !a.tables.unnamed
}

// mentioned finds the names and words in a statement, without understanding it.
func mentioned(st schema.Statement) []string {
	var names []string
	s := scanner{text: []byte(st.SQL)}
	for {
		s.space()
		if len(s.text) == 0 {
			return names
		}
		if name, ok := s.name(); ok {
			names = append(names, name)
		} else if _, more := s.token(); !more {
			return names
		}
	}
}

// ahead says that the definitions were read from the server at a position that the stream has not come to yet.
func (a *assembler) ahead(here offset.Offset) bool {
	if a.catalogAt.File == "" {
		return false
	}
	covers, known := here.Covers(offset.Position{File: a.catalogAt.File, Pos: a.catalogAt.Pos, GTIDs: a.catalogAt.GTIDs})
	if covers || !known {
		a.catalogAt = offset.Offset{}
		return false
	}
	return true
}

// aheadHere is ahead at the event being handled.
func (a *assembler) aheadHere() bool {
	if a.catalogAt.File == "" {
		return false
	}
	here := offset.Offset{File: a.file, Pos: a.start}
	if a.gtids {
		here.GTIDs = a.set
	}
	return a.ahead(here)
}

// confirm notes which tables are known by a statement of the stream although the definitions are ahead.
func (a *assembler) confirm(st schema.Statement, changes []schema.SchemaChange, here offset.Offset) {
	if !a.ahead(here) {
		return
	}
	if a.tables.confirmed == nil {
		a.tables.confirmed = make(map[tableName]bool)
	}
	confirmed := a.tables.confirmed
	for _, c := range changes {
		for _, change := range c.Changes {
			key := a.defs.key(change.Database, change.Table)
			switch {
			case change.Kind == schema.CreateTable: // one that is LIKE another is no better known than that
				confirmed[key] = change.Definition != nil && !slices.ContainsFunc(mentioned(st), func(word string) bool { return strings.EqualFold(word, "LIKE") })
			case change.Kind == schema.DropTable:
				delete(confirmed, key)
			case change.PreviousTable != "":
				previous := a.defs.key(change.PreviousDatabase, change.PreviousTable)
				confirmed[key] = confirmed[previous]
				delete(confirmed, previous)
			}
		}
	}
}

// beforeCatalog keeps definitions that hold only from a later position on: those that were read from the server when the
// stream had not come so far. They already have what an ALTER TABLE does. It returns what is left of touched.
func (a *assembler) beforeCatalog(touched []schema.TableName, changes []schema.SchemaChange, here offset.Offset) []schema.TableName {
	if !a.ahead(here) {
		return touched
	}
	for _, c := range changes {
		for _, change := range c.Changes {
			name := schema.TableName{Database: change.Database, Table: change.Table}
			if a.tables.confirmed[a.defs.key(change.Database, change.Table)] {
				continue
			}
			def := a.versions.first(a.defs.key(change.Database, change.Table))
			if def != nil && change.Kind == schema.AlterTable && change.PreviousTable == "" {
				a.defs.adopt(name.Database, name.Table, def)
				touched = slices.DeleteFunc(touched, func(t schema.TableName) bool { return t == name })
			}
		}
	}
	return touched
}
