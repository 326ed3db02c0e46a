package schema

import (
	"slices"
	"strings"
)

// What BinlogDatabaseSchema, EventDispatcher and DdlChanges of Debezium 3.6.1 make of a parser's events.

// records are those of a text that has been applied; sql is the text as the binlog has it.
func (r *ddlRun) records(sql string) []SchemaChange {
	c := r.c
	global := isGlobalSet(sql, r.s.Database)
	if c.opts.OnlyCapturedTables && !global && !slices.ContainsFunc(r.events, r.wanted) {
		return nil
	}
	if len(r.events) == 0 {
		if r.script != nil && !slices.ContainsFunc(r.script.statements, func(s statement) bool { return s.kind != stmtTemporary }) {
			return nil // Debezium takes temporary tables for others
		}
		return r.dispatch(nil, SchemaChange{Database: r.s.Database, DDL: sql, Tables: []string{}})
	}
	var all []SchemaChange
	for _, group := range byDatabase(r.events) {
		database := group[0].databaseName()
		if c.opts.OnlyCapturedTables && database != "" && !c.capturedDatabase(database) {
			continue
		}
		tables := tableNames(group)
		for i := range group {
			all = append(all, r.record(&group[i], database, tables)...)
		}
	}
	return all
}

// wanted says whether an event is about something that is captured.
func (r *ddlRun) wanted(e ddlEvent) bool {
	switch e.kind {
	case eventCreateTable, eventAlterTable, eventDropTable, eventTruncate:
		return r.c.captured(e.table)
	case eventDatabase, eventSet:
		return r.c.capturedDatabase(e.database)
	}
	return false // CREATE INDEX
}

func (e ddlEvent) databaseName() string {
	switch e.kind {
	case eventDatabase, eventSet:
		return e.database
	}
	return e.table.Database
}

// byDatabase groups events that follow each other and are of one database.
func byDatabase(events []ddlEvent) [][]ddlEvent {
	var groups [][]ddlEvent
	for _, e := range events {
		if n := len(groups); n > 0 && groups[n-1][0].databaseName() == e.databaseName() {
			groups[n-1] = append(groups[n-1], e)
			continue
		}
		groups = append(groups, []ddlEvent{e})
	}
	return groups
}

// tableNames are the names of a group's tables in the order of Java's HashSet; nil if it has none.
func tableNames(group []ddlEvent) []string {
	var ids []TableName
	for _, e := range group {
		switch e.kind {
		case eventDatabase, eventSet:
		default:
			if !slices.Contains(ids, e.table) {
				ids = append(ids, e.table)
			}
		}
	}
	if ids == nil {
		return nil
	}
	var names []string
	for _, id := range javaSetOrder(javaSetOrder(ids, false), true) {
		names = append(names, id.Table)
	}
	return names
}

// record is that of one event; none if it is not to be written.
func (r *ddlRun) record(e *ddlEvent, database string, tables []string) []SchemaChange {
	sc := SchemaChange{Database: database, DDL: e.ddl, Tables: tables}
	change := Change{Database: e.table.Database, Table: e.table.Table}
	switch e.kind {
	case eventTruncate:
		return nil
	case eventDatabase, eventSet:
		return r.dispatch(nil, sc)
	case eventDropTable:
		change.Kind = DropTable
	default:
		change.Kind = AlterTable
		if e.kind == eventCreateTable {
			change.Kind = CreateTable
		}
		if e.previous != nil {
			change.PreviousDatabase, change.PreviousTable = e.previous.Database, e.previous.Table
		}
		if change.Definition = e.change; change.Definition == nil && !e.view {
			if t := r.table(e.table); t != nil { // as it is after the whole text
				change.Definition = t.def
			}
		}
		if change.Definition == nil {
			return r.dispatch(nil, sc)
		}
		if !r.c.opts.Comments {
			change.Definition = change.Definition.withoutComments()
		}
	}
	sc.Changes = []Change{change}
	return r.dispatch(&e.table, sc)
}

// dispatch decides where a record goes; table is the one that it has a definition of, if there is one.
func (r *ddlRun) dispatch(table *TableName, sc SchemaChange) []SchemaChange {
	c := r.c
	if c.opts.OnlyCapturedDatabases && sc.Database != "" && !c.capturedDatabase(sc.Database) {
		return nil
	}
	captured := table != nil && c.captured(*table)
	if table != nil && !captured && c.opts.OnlyCapturedTables {
		return nil
	}
	sc.Topic = true
	sc.History = !c.opts.OnlyCapturedTables || captured || isGlobalSet(sc.DDL, sc.Database)
	return []SchemaChange{sc}
}

func isGlobalSet(ddl, database string) bool {
	return database == "" && len(ddl) >= 4 && strings.EqualFold(ddl[:4], "SET ")
}

// withoutComments is the definition without its comments, itself if it has none.
func (d *Definition) withoutComments() *Definition {
	commented := func(c ColumnDef) bool { return c.Comment != "" || c.BlankComment }
	if d.Comment == "" && !d.BlankComment && !slices.ContainsFunc(d.Columns, commented) {
		return d
	}
	plain := *d
	plain.Comment, plain.BlankComment = "", false
	plain.Columns = slices.Clone(d.Columns)
	for i := range plain.Columns {
		plain.Columns[i].Comment, plain.Columns[i].BlankComment = "", false
	}
	return &plain
}
