package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-cdc/tidemark/binlog/server"
	"github.com/tidemark-cdc/tidemark/cmd/internal/config"
)

// tableFinder finds tables of a server by name.
type tableFinder struct {
	tables     []server.TableID
	filter     *config.Filter
	ignoreCase bool
	show       func(database, table string) (string, error) // SHOW CREATE TABLE
}

// noTable is the error for a name that is none of a table with records.
type noTable struct{ text string }

func (e *noTable) Error() string { return e.text }
func (e *noTable) Unwrap() error { return server.ErrNoTable }

func noTablef(format string, args ...any) error { return &noTable{fmt.Sprintf(format, args...)} }

// definition finds a table by name, and the text of its definition.
func (f *tableFinder) definition(name string) (server.TableID, string, error) {
	id, err := f.find(name)
	if err != nil {
		return f.unlisted(name, err)
	}
	sql, err := f.show(id.Database, id.Name)
	return id, sql, err
}

// find finds database.table, or the only captured table of a name. Its error names tables whose names are near.
func (f *tableFinder) find(name string) (server.TableID, error) {
	same := func(a string) bool { return a == name || f.ignoreCase && strings.EqualFold(a, name) }
	var found, hidden []server.TableID
	for _, id := range f.tables {
		switch {
		case same(id.String()):
			return id, nil
		case !same(id.Name):
		case f.filter.Captured(id.Database, id.Name):
			found = append(found, id)
		default:
			hidden = append(hidden, id)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return server.TableID{}, noTablef("there is more than one table %s: give %s", name, enumerate(found))
	case len(hidden) > 0:
		return server.TableID{}, noTablef("there is no table %s that the connector captures: %s; to see its schemas all the same give %s",
			name, f.notCaptured(hidden[0]), enumerate(hidden))
	}
	near := ""
	if names := f.near(name); len(names) > 0 {
		near = "; names near it: " + strings.Join(names, ", ")
	}
	return server.TableID{}, noTablef("there is no table %s%s (tables on which the user has no privilege are not seen)", name, near)
}

// unlisted looks whether what is not among the tables is a view or one of the server's own tables; if not, err stands.
func (f *tableFinder) unlisted(name string, err error) (server.TableID, string, error) {
	var denied error
	for _, id := range f.candidates(name) {
		switch strings.ToLower(id.Database) {
		case "information_schema", "performance_schema":
			return id, "", noTablef("%s: what is in %s is no table with rows of its own, so that the binlog has no changes of it and no records are written", id, id.Database)
		}
		sql, failed := f.show(id.Database, id.Name)
		switch {
		case failed == nil: // one of the server's own
			return id, sql, nil
		case isView(failed):
			return id, "", noTablef("%s is a view: the binlog has no changes of it, so that no records are written; give the tables that it shows", id)
		case errors.Is(failed, server.ErrAccess): // it may be in another database
			denied = cmp.Or(denied, failed)
		case !errors.Is(failed, server.ErrNoTable):
			return id, "", failed
		}
	}
	return server.TableID{}, "", cmp.Or(denied, err)
}

// isView recognizes what ShowCreate says of a view. Only those need the privilege SHOW VIEW, which a user for the binlog has not.
func isView(err error) bool {
	return errors.Is(err, server.ErrNoTable) && strings.Contains(err.Error(), "is a view") ||
		errors.Is(err, server.ErrAccess) && strings.Contains(err.Error(), "SHOW VIEW command denied")
}

// candidates are the databases and tables that a name may mean: each dot may be the one between them, and without one it may
// be in each database that is captured and has tables.
func (f *tableFinder) candidates(name string) []server.TableID {
	const most = 20 // each is a question to the server
	var all []server.TableID
	for i := range len(name) {
		if name[i] == '.' && i > 0 && i < len(name)-1 {
			all = append(all, server.TableID{Database: name[:i], Name: name[i+1:]})
		}
	}
	if len(all) == 0 {
		for _, id := range f.tables {
			if last := len(all) - 1; f.filter.CapturedDatabase(id.Database) && (last < 0 || all[last].Database != id.Database) {
				all = append(all, server.TableID{Database: id.Database, Name: name})
			}
		}
	}
	return all[:min(len(all), most)]
}

// notCaptured says why a table is not captured; "" if it is.
func (f *tableFinder) notCaptured(id server.TableID) string {
	switch {
	case f.filter.Captured(id.Database, id.Name):
		return ""
	case !f.filter.CapturedDatabase(id.Database) && (strings.EqualFold(id.Database, "mysql") || strings.EqualFold(id.Database, "sys")):
		return "the connector leaves out the server's own tables (table.ignore.builtin)"
	case !f.filter.CapturedDatabase(id.Database):
		return fmt.Sprintf("the connector does not capture the database %s (database.include.list, database.exclude.list)", id.Database)
	}
	return fmt.Sprintf("the connector does not capture %s (table.include.list, table.exclude.list)", id)
}

// near names the first few tables that may be meant by a name.
func (f *tableFinder) near(name string) []string {
	const most = 5
	_, table, ok := strings.Cut(name, ".")
	if !ok {
		table = name
	}
	var names []string
	for _, id := range f.tables {
		if like(id.String(), name) || like(id.Name, table) || like(id.Name, name) {
			names = append(names, id.String())
		}
	}
	return names[:min(len(names), most)]
}

// like says whether two names differ in one place only, and there in two letters at most.
func like(a, b string) bool {
	const letters = 2
	a, b = strings.ToLower(a), strings.ToLower(b)
	longest, shortest := max(len(a), len(b)), min(len(a), len(b))
	front := 0
	for front < shortest && a[front] == b[front] {
		front++
	}
	back := 0
	for back < shortest-front && a[len(a)-1-back] == b[len(b)-1-back] {
		back++
	}
	return longest-front-back <= letters && front+back > 0
}

func enumerate(tables []server.TableID) string {
	names := make([]string, len(tables))
	for i, id := range tables {
		names[i] = id.String()
	}
	slices.Sort(names)
	return strings.Join(names, " or ")
}
