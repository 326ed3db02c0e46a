package schema

import (
	"slices"
	"strings"
)

// DDL of databases, and their character sets.

// debeziumCharset is what Debezium takes for the default character set of a database: its own, else that of the database
// used last, else the server's.
func (r *ddlRun) debeziumCharset(database string) string {
	if d := r.database(database); d != nil && d.charset != "" {
		return d.charset
	}
	if c := r.state.databaseCharset; c != "" && !strings.EqualFold(c, "DEFAULT") {
		return c
	}
	if r.state.serverCharset != "" {
		return r.state.serverCharset
	}
	return r.serverCharset(database)
}

// serverCharset is the real one.
func (r *ddlRun) serverCharset(database string) string {
	if d := r.database(database); d != nil && d.server != "" {
		return d.server
	}
	if database == r.s.Database && r.s.DatabaseCollation != 0 {
		return charsetName(r.s.DatabaseCollation)
	}
	if r.s.Collation != 0 {
		return charsetName(r.s.Collation)
	}
	return strings.ToLower(r.state.serverCharset)
}

func (r *ddlRun) putDatabase(name string, d *databaseState) {
	r.state.databases[r.c.databaseKey(name)] = d
}

func (r *ddlRun) createDatabase(change databaseChange) {
	known := r.database(change.name)
	d := databaseState{}
	if known != nil && change.exists { // it was there: nothing has changed but in Debezium's view
		d = *known
	} else {
		d.server = change.server(r.serverDefault())
	}
	d.named(change, r.state.serverCharset)
	r.putDatabase(change.name, &d)
}

// serverDefault is the server's default character set.
func (r *ddlRun) serverDefault() string {
	if r.s.Collation != 0 {
		return charsetName(r.s.Collation)
	}
	return strings.ToLower(r.state.serverCharset)
}

// server is the real character set that a statement gives a database; other if it names none.
func (c databaseChange) server(other string) string {
	switch {
	case strings.EqualFold(c.charset, "default"):
		return other
	case c.charset != "":
		return strings.ToLower(c.charset)
	case c.collate != "":
		return charsetOfCollation(c.collate)
	}
	return other
}

// named takes over what Debezium takes from the text: a collation only if there is no character set yet.
func (d *databaseState) named(change databaseChange, serverCharset string) {
	switch {
	case strings.EqualFold(change.charset, "default"):
		d.charset = serverCharset
	case change.charset != "":
		d.charset = change.charset
	case change.collate != "" && d.charset == "":
		d.charset = charsetOfCollation(change.collate)
	}
}

// alterDatabase gives no event: Debezium only notes the character set.
func (r *ddlRun) alterDatabase(change databaseChange) {
	if change.name == "" {
		change.name = r.s.Database
	}
	d := databaseState{}
	if known := r.database(change.name); known != nil {
		d = *known
	}
	if server := change.server(""); server != "" {
		d.server = server
	}
	d.named(change, r.state.serverCharset)
	r.putDatabase(change.name, &d)
}

func (r *ddlRun) dropDatabase(name string) {
	r.putDatabase(name, nil)
	key := r.c.databaseKey(name)
	for _, tables := range []map[TableName]*catalogTable{r.c.state.tables, r.state.tables} {
		for k := range tables {
			if k.Database == key {
				r.state.tables[k] = nil
			}
		}
	}
	r.unknown = slices.DeleteFunc(r.unknown, func(n TableName) bool { return r.c.databaseKey(n.Database) == key })
}

func (r *ddlRun) set(st *statement, text string) {
	for _, v := range st.settings {
		switch v.name {
		case "character_set_server":
			r.state.serverCharset = v.value
		case "character_set_database":
			r.state.databaseCharset = v.value
			d := databaseState{}
			if known := r.database(r.s.Database); known != nil {
				d = *known
			}
			d.charset = v.value
			r.putDatabase(r.s.Database, &d)
		}
	}
	if len(st.settings) > 0 {
		r.signal(ddlEvent{kind: eventSet, database: r.s.Database, ddl: text})
	}
}
