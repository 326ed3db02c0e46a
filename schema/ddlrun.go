package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// ddlRun applies the statements of one text to a catalog and notes what Debezium's parser would signal of each.
type ddlRun struct {
	c       *Catalog
	s       Statement
	script  *script
	state   catalogState // what has changed
	events  []ddlEvent
	unknown []TableName
	named   []TableName // all tables that were named
}

type ddlEventKind uint8

const (
	eventCreateTable ddlEventKind = iota + 1 // and CREATE VIEW, whose table is never known
	eventAlterTable
	eventDropTable
	eventTruncate
	eventIndex
	eventDatabase // CREATE, DROP DATABASE, USE
	eventSet
)

// ddlEvent is what one statement, or one table of it, did.
type ddlEvent struct {
	kind     ddlEventKind
	table    TableName
	previous *TableName // the name before RENAME TABLE
	database string
	ddl      string
	change   *Definition // of a table that the catalog does not hold: CREATE TABLE … SELECT
	view     bool
}

func (r *ddlRun) name(ref tableRef) TableName {
	name := TableName{ref.database, ref.table}
	if name.Database == "" {
		name.Database = r.s.Database
	}
	r.named = append(r.named, name)
	return name
}

func (r *ddlRun) table(name TableName) *catalogTable {
	key := r.c.key(name)
	if t, ok := r.state.tables[key]; ok {
		return t
	}
	return r.c.state.tables[key]
}

func (r *ddlRun) put(name TableName, t *catalogTable) { r.state.tables[r.c.key(name)] = t }

func (r *ddlRun) database(name string) *databaseState {
	key := r.c.databaseKey(name)
	if d, ok := r.state.databases[key]; ok {
		return d
	}
	return r.c.state.databases[key]
}

// miss notes a table whose definition is not known.
func (r *ddlRun) miss(name TableName) {
	if !slices.Contains(r.unknown, name) {
		r.unknown = append(r.unknown, name)
	}
}

// forget takes a table back that is gone.
func (r *ddlRun) forget(name TableName) {
	r.unknown = slices.DeleteFunc(r.unknown, func(n TableName) bool { return n == name })
}

func (r *ddlRun) signal(e ddlEvent) { r.events = append(r.events, e) }

func (r *ddlRun) statement(st *statement) error {
	text := r.script.source(st.first, st.last)
	switch st.kind {
	case stmtCreateTable:
		return r.createTable(st.create, text)
	case stmtAlterTable:
		return r.alterTable(st.alter, text)
	case stmtRenameTables:
		return r.renameTables(st)
	case stmtDropTables:
		r.dropTables(st)
	case stmtTruncate:
		r.signal(ddlEvent{kind: eventTruncate})
	case stmtView:
		name := TableName{cmp.Or(st.view.database, r.s.Database), st.view.table}
		r.signal(ddlEvent{kind: st.viewEvent, table: name, ddl: r.script.source(st.first+1, st.last), view: true})
	case stmtCreateDatabase:
		r.createDatabase(st.database)
		r.signal(ddlEvent{kind: eventDatabase, database: st.database.name, ddl: text})
	case stmtAlterDatabase:
		r.alterDatabase(st.database)
	case stmtDropDatabase:
		r.dropDatabase(st.database.name)
		r.signal(ddlEvent{kind: eventDatabase, database: st.database.name, ddl: text})
	case stmtCreateIndex:
		return r.createIndex(st)
	case stmtDropIndex:
		return r.dropIndex(st.dropped)
	case stmtUse:
		r.s.Database = st.database.name
		r.state.databaseCharset = ""
		if d := r.database(st.database.name); d != nil {
			r.state.databaseCharset = d.charset
		}
		r.signal(ddlEvent{kind: eventDatabase, database: st.database.name, ddl: text})
	case stmtSet:
		r.set(st, text)
	}
	return nil
}

func (r *ddlRun) createTable(c *createTable, text string) error {
	name := r.name(c.table)
	existing := r.table(name)
	if existing != nil && c.ifNotExists && !c.replace {
		return nil
	}
	created := ddlEvent{kind: eventCreateTable, table: name, ddl: text}
	switch {
	case c.like != nil:
		from := r.table(r.name(*c.like))
		if from == nil {
			r.put(name, nil)
			r.miss(name)
			return nil
		}
		def := *from.def
		def.Database, def.Name, def.Comment, def.BlankComment = name.Database, name.Table, "", false
		t := &catalogTable{name: name, def: &def}
		if r.s.Form == ShowCreateForm && from.model != nil {
			if err := t.show(from.model.like(name)); err != nil {
				return err
			}
		}
		r.put(name, t)
	default:
		def := createDefinition(name.Database, name.Table, c, r.debeziumCharset(name.Database), r.serverCharset(name.Database))
		if err := def.unique(); err != nil {
			return err
		}
		if c.query { // it has columns that the text does not name
			created.change = def
			r.put(name, nil)
			r.miss(name)
			break
		}
		t := &catalogTable{name: name, def: def}
		if r.s.Form == ShowCreateForm {
			if err := t.show(r.newModel(name, c)); err != nil {
				return err
			}
		}
		r.put(name, t)
	}
	r.signal(created)
	return nil
}

func (r *ddlRun) alterTable(a *alterTable, text string) error {
	name := r.name(a.table)
	to := name
	for _, item := range a.items {
		if item.kind == alterRenameTable {
			to = r.name(item.table)
		}
	}
	t := r.table(name)
	if t == nil {
		if a.ifExists {
			return nil
		}
		if to != name {
			r.put(to, nil)
		}
		r.miss(to)
		return nil
	}
	altered := &catalogTable{name: to}
	if r.s.Form == ShowCreateForm {
		model, err := r.alterModel(t, a)
		if err != nil {
			return err
		}
		model.database, model.name = to.Database, to.Table
		if err := altered.show(model); err != nil {
			return err
		}
	} else {
		def, err := alterDefinition(t.def, a, r.serverCharset(name.Database))
		if err == nil {
			err = def.unique()
		}
		if err != nil {
			return err
		}
		def.Database, def.Name = to.Database, to.Table
		altered.def = def
	}
	if to != name {
		r.put(name, nil)
	}
	r.put(to, altered)
	r.signal(ddlEvent{kind: eventAlterTable, table: to, ddl: text})
	return nil
}

// unique is an error if two columns have one name: no statement makes that, so the definition is not the table's.
func (d *Definition) unique() error {
	seen := make(map[string]bool, len(d.Columns))
	for i := range d.Columns {
		name := strings.ToLower(d.Columns[i].Name)
		if seen[name] {
			return fmt.Errorf("table %s.%s would have two columns %s", d.Database, d.Name, d.Columns[i].Name)
		}
		seen[name] = true
	}
	return nil
}

// renamed is a table under another name.
func (t *catalogTable) renamed(name TableName) *catalogTable {
	def := *t.def
	def.Database, def.Name = name.Database, name.Table
	return &catalogTable{name: name, def: &def, model: t.model.like(name)}
}

func (r *ddlRun) renameTables(st *statement) error {
	prefix := r.script.text[r.script.tokens[st.first].start:r.script.tokens[st.renames[0].from.first].start]
	for _, pair := range st.renames {
		from, to := r.name(pair.from), r.name(pair.to)
		t := r.table(from)
		r.forget(from)
		switch {
		case t != nil:
			r.put(from, nil)
			r.put(to, t.renamed(to))
		case pair.ifExists:
		default:
			r.put(to, nil)
			r.miss(to)
		}
		r.signal(ddlEvent{
			kind: eventAlterTable, table: to, previous: &from,
			ddl: prefix + r.script.source(pair.from.first, pair.to.last),
		})
	}
	return nil
}

func (r *ddlRun) dropTables(st *statement) {
	prefix := r.script.text[r.script.tokens[st.first].start:r.script.tokens[st.drops[0].first].start]
	for _, ref := range st.drops {
		name := r.name(ref)
		r.put(name, nil)
		r.forget(name)
		ddl := prefix + name.quoted('`')
		if st.dropType != "" {
			ddl += " " + st.dropType
		}
		r.signal(ddlEvent{kind: eventDropTable, table: name, ddl: ddl})
	}
}

// quoted is database.table in quotes, as Debezium's TableId prints it: a name that begins or ends with the quote is left
// as it is.
func (n TableName) quoted(quote byte) string {
	q := string(quote)
	quoted := func(name string) string {
		if strings.HasPrefix(name, q) || strings.HasSuffix(name, q) {
			return name
		}
		return q + strings.ReplaceAll(name, q, q+q) + q
	}
	if n.Database == "" {
		return quoted(n.Table)
	}
	return quoted(n.Database) + "." + quoted(n.Table)
}

func (r *ddlRun) createIndex(st *statement) error {
	name := r.name(st.index.table)
	t := r.table(name)
	key := &st.index.key
	if t == nil {
		if key.kind == keyUnique {
			r.miss(name)
		}
		return nil
	}
	if r.s.Form == ShowCreateForm {
		return r.alterShown(t, &alterTable{items: []alterItem{{kind: alterAddKey, key: key}}})
	}
	if key.kind != keyUnique {
		return nil
	}
	e := editDefinition(t.def, r.c.opts.MariaDB)
	if !e.uniqueKey(key) {
		return nil
	}
	r.put(name, &catalogTable{name: name, def: e.definition()})
	first := st.first
	if !r.c.opts.MariaDB { // whose text is without CREATE
		first++
	}
	r.signal(ddlEvent{kind: eventIndex, table: name, ddl: r.script.source(first, st.last)})
	return nil
}

// dropIndex changes nothing in Debezium's view.
func (r *ddlRun) dropIndex(d *dropIndex) error {
	t := r.table(r.name(d.table))
	if t == nil || r.s.Form != ShowCreateForm {
		return nil
	}
	item := alterItem{kind: alterDropKey, name: d.name}
	if strings.EqualFold(d.name, "PRIMARY") {
		item.kind = alterDropPrimary
	}
	return r.alterShown(t, &alterTable{items: []alterItem{item}})
}

// alterShown applies a change that is no ALTER TABLE to a table in the form of SHOW CREATE TABLE.
func (r *ddlRun) alterShown(t *catalogTable, a *alterTable) error {
	model, err := r.alterModel(t, a)
	if err != nil {
		return err
	}
	altered := &catalogTable{name: t.name}
	if err := altered.show(model); err != nil {
		return err
	}
	r.put(t.name, altered)
	return nil
}
