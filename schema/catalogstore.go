package schema

import (
	"cmp"
	"maps"
	"slices"
)

// Touched names what the last [Catalog.Apply] or [Catalog.Replay] has changed, in order: tables; databases, whose Table
// is empty; and the server's default character set, for which both are. The result is the caller's.
func (c *Catalog) Touched() []TableName { return slices.Clone(c.touched) }

// touch notes what an overlay changes.
func (c *Catalog) touch(changes catalogState) {
	var names []TableName
	for key, t := range changes.tables {
		was := c.state.tables[key]
		switch {
		case t != nil && was != t:
			names = append(names, t.name)
		case t == nil && was != nil:
			names = append(names, was.name)
		}
	}
	for key, d := range changes.databases {
		if was := c.state.databases[key]; d == nil && was != nil || d != nil && (was == nil || *was != *d) {
			names = append(names, TableName{Database: key})
		}
	}
	if changes.serverCharset != c.state.serverCharset || changes.databaseCharset != c.state.databaseCharset {
		names = append(names, TableName{})
	}
	slices.SortFunc(names, func(a, b TableName) int {
		return cmp.Or(cmp.Compare(a.Database, b.Database), cmp.Compare(a.Table, b.Table))
	})
	c.touched = names
}

// Version is what a [Store] keeps of a table, or of what else [Catalog.Touched] names, as it is now; the position is the
// caller's to put in.
func (c *Catalog) Version(name TableName) StoredVersion {
	var v StoredVersion
	switch {
	case name.Table != "":
		v.Definition = c.Definition(name.Database, name.Table)
	case name.Database != "":
		if d := c.state.databases[c.databaseKey(name.Database)]; d != nil {
			v.Charset, v.ServerCharset = d.charset, d.server
		}
	default:
		v.Charset, v.ServerCharset = c.state.databaseCharset, c.state.serverCharset
	}
	return v
}

// Load puts in what a [Store] has. Of each table the newest version counts that reached says the stream has come to;
// nothing is put in of one that has none. A version without a position holds from the beginning.
func (c *Catalog) Load(tables []StoredTable, reached func(v *StoredVersion) bool) {
	for i := range tables {
		t := &tables[i]
		v := t.at(reached)
		switch {
		case v == nil:
		case t.Table != "":
			c.Set(t.Database, t.Table, v.Definition)
		case t.Database != "":
			if v.Charset == "" && v.ServerCharset == "" {
				delete(c.state.databases, c.databaseKey(t.Database))
				break
			}
			c.state.databases[c.databaseKey(t.Database)] = &databaseState{charset: v.Charset, server: v.ServerCharset}
		default:
			c.state.databaseCharset, c.state.serverCharset = v.Charset, v.ServerCharset
		}
	}
}

// at is the newest version that has been reached; nil if there is none.
func (t *StoredTable) at(reached func(v *StoredVersion) bool) *StoredVersion {
	var at *StoredVersion
	for i := range t.Versions {
		v := &t.Versions[i]
		if v.File != "" && !reached(v) {
			break
		}
		at = v
	}
	return at
}

// Add adds a version to a table and leaves out those that no restart needs any more: all that are older than the newest
// one that reached says holds at the stored offset.
func (t *StoredTable) Add(v StoredVersion, reached func(v *StoredVersion) bool) {
	versions := t.Versions
	for len(versions) > 1 && reached(&versions[1]) {
		versions = versions[1:]
	}
	t.Versions = append(slices.Clone(versions), v)
}

// All is everything that the catalog knows, each with one version without a position, in order: what a store holds at
// first.
func (c *Catalog) All() []StoredTable {
	names := []TableName{{}}
	for key := range c.state.databases {
		names = append(names, TableName{Database: key})
	}
	for _, t := range c.state.tables {
		names = append(names, t.name)
	}
	slices.SortFunc(names, func(a, b TableName) int {
		return cmp.Or(cmp.Compare(a.Database, b.Database), cmp.Compare(a.Table, b.Table))
	})
	all := make([]StoredTable, len(names))
	for i, name := range names {
		all[i] = StoredTable{Database: name.Database, Table: name.Table, Versions: []StoredVersion{c.Version(name)}}
	}
	return all
}

// Databases names the databases that are known: those with tables, and those whose character set is.
func (c *Catalog) Databases() []string {
	names := map[string]bool{}
	for name := range c.state.databases {
		names[name] = true
	}
	for key := range c.state.tables {
		names[key.Database] = true
	}
	return slices.Sorted(maps.Keys(names))
}
